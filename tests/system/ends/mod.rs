//! Errors and ends: whatever happens to a run, it says what, leaves nothing behind, and touches no
//! objects of others.
//!
//! The built binary is driven from outside, as a user drives it. What needs root prints `SKIP name:
//! reason` without it.

mod background;
mod capture;
mod compared;
mod completions;
mod faults;
mod inputs;
mod jobs;
mod journal;
mod logs;
mod paths;
mod recording;
mod removed;
mod rights;
mod rotation;
mod service;
mod shared_places;
mod silence;
mod stops;
mod sweeps;
mod taken;
mod threads;
mod traffic;
mod virtual_runs;
