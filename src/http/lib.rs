//! The REST API with its web page, and the client of it.
#![forbid(unsafe_code)]

use heliostat_base::{ids, paths, text, topology, units};
use heliostat_circuits as circuits;
use heliostat_circuits::{coflows, demand};
use heliostat_control as control;
use heliostat_jobs::{placement, scheduler};
#[cfg(test)]
use heliostat_kernel as kernel;
use heliostat_run::{config, runtime};
use heliostat_seam::{fabric, plan};
#[cfg(test)]
use heliostat_sim as sim;

pub mod api;

pub mod client;

#[cfg(test)]
#[path = "../testing.rs"]
mod testing;

#[cfg(test)]
mod rig;
