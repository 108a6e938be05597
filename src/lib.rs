//! Heliostat: an SDN controller and optical-circuit-switch manager for hybrid electrical/optical data-centre networks.
//!
//! # The rooms, in the order in which data passes through them
//!
//! A room may use rooms above it in this list, never one below; `tests/tidy.rs` guards the walls.
#![warn(missing_docs)]

pub mod units;

pub mod ids;

pub mod topology;

pub mod demand;

pub mod circuits;

pub mod coflows;

pub mod workload;

pub mod plan;

pub mod fabric;

pub mod control;

pub mod runtime;

pub mod config;

pub mod api;

pub mod cli;
