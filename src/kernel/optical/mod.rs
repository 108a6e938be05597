//! Circuits: both mechanisms that carry them, their times and their probes.

pub mod backlog;
mod bell;
pub mod doors;
pub mod flips;
pub mod nudges;
pub mod prober;
pub mod slots;
pub mod switched;
pub mod timed;
