//! Plans of circuits and paths, and the fabric that carries them out: what the controller, the
//! simulator and the kernel share.
#![forbid(unsafe_code)]

use heliostat_base::{ids, paths, topology, units};
use heliostat_circuits as circuits;
use heliostat_circuits::demand;

pub mod plan;

pub mod fabric;

#[cfg(test)]
#[path = "../testing.rs"]
mod testing;
