//! Circuits: both mechanisms that carry them, their times and their probes.

pub mod backlog;
mod parker;
pub mod admission;
pub mod switcher;
pub mod queue_waker;
pub mod prober;
pub mod slots;
pub mod switched;
pub mod timed;
