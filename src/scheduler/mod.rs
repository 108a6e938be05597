//! The companion task scheduler: a state machine that decides which task runs where and when, and touches nothing.
