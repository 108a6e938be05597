//! The flow-level model in virtual time.
