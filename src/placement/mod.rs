//! Placement: where data and tasks go.
//!
//! Each published system, and each baseline, is a file or folder; what they share (latency response functions, replicas, slot
//! calendars) stands once. Planners are pure functions of jobs and a cluster.

pub mod baselines;
pub mod calendar;
pub mod cluster;
pub mod codecide;
pub mod corral;
pub mod coscheduler;
pub mod hit;
pub mod jobpacker;
pub mod latency;
pub mod policy;
pub mod replicas;
pub mod spec;
