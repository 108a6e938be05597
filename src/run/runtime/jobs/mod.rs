//! Jobs: the task scheduler beside the controller, in virtual time and live.
//!
//! The [`TaskScheduler`](crate::scheduler::TaskScheduler) says what shall happen, and [`drive`]
//! lets it happen. [`simulate`] does so over the simulated fabric. [`live`] does so by the wall
//! clock, over a network that is controlled elsewhere or over an emulation of this process
//! ([`emulated`]). Every run ends in a [`JobsResult`](report::JobsResult).

pub mod drive;
pub mod emulated;
pub mod errors;
pub mod live;
pub mod report;
pub mod simulate;
pub mod writes;

#[cfg(test)]
mod stability;
#[cfg(test)]
pub(crate) mod tests;
