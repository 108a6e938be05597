//! Jobs: the task scheduler beside the controller, in virtual time and live.
//!
//! The [`Scheduler`](crate::scheduler::Scheduler) says what shall happen; [`simulate`] lets it happen over the simulated fabric,
//! [`live`] by the wall clock over a network that somebody else controls. Every run ends in a [`JobsResult`](report::JobsResult).

pub mod errors;
pub mod live;
pub mod report;
pub mod simulate;

#[cfg(test)]
mod stability;
#[cfg(test)]
mod tests;
