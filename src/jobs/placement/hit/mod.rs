//! Hit-scheduler: tasks and the lists of switches of their flows are chosen together, so that
//! shuffles cross few switches.
//!
//! A [`wave::Wave`] is the tasks of a job that get slots at once and the bytes between them.
//! [`wave::place`] gives every task a host: tasks grade hosts by what they would save there
//! ([`wave::utilities`]), a stable [`matching`] assigns them, and maps and reduces take turns until
//! nothing is saved any more. The lists themselves come from [`crate::paths::optimise`].
//!
//! Source: Yang, Rang and Cheng, *Hit: a scheduler that optimises shuffle traffic by joint task
//! placement and flow policies* (ICPP 2018), section 5.

pub mod executor;
pub mod matching;
pub mod plan;
pub mod votes;
pub mod wave;
