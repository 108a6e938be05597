//! Circuits: both mechanisms that carry them, their times and their probes.

pub mod admission;
pub mod backlog;
mod held;
mod parker;
pub mod prober;
pub mod queue_waker;
pub mod slots;
pub mod switched;
pub mod switcher;
pub mod timed;
