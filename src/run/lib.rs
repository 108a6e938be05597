//! The drivers, live and in virtual time, their results, and the files that they read.
//!
//! `runtime` joins the controller and a fabric; `config` reads topologies, policies and workloads.
#![forbid(unsafe_code)]

use heliostat_base::{ids, paths, text, topology, units};
use heliostat_circuits as circuits;
use heliostat_circuits::{coflows, demand};
use heliostat_control as control;
use heliostat_jobs::{placement, scheduler, workload};
use heliostat_kernel as kernel;
use heliostat_seam::{fabric, plan};
use heliostat_sim as sim;

pub mod runtime;

pub mod config;

#[cfg(test)]
#[path = "../testing.rs"]
mod testing;
