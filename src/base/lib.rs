//! Units, identifiers, topologies and paths: what all rooms of Heliostat speak in.
#![forbid(unsafe_code)]

pub mod ids;
pub mod paths;
pub mod text;
pub mod topology;
pub mod units;

#[cfg(test)]
#[path = "../testing.rs"]
mod testing;
