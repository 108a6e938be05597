//! Workloads, the placement of tasks, and the scheduler that starts them.
//!
//! A room may use rooms above it in this list, never one below.
#![forbid(unsafe_code)]

use heliostat_base::{ids, paths, text, topology, units};
use heliostat_circuits as circuits;
use heliostat_circuits::coflows;
#[cfg(test)]
use heliostat_circuits::demand;
#[cfg(test)]
use heliostat_sim as sim;

pub mod workload;

pub mod placement;

pub mod scheduler;

#[cfg(test)]
#[path = "../testing.rs"]
mod testing;
