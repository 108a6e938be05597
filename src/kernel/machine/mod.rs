//! What this machine is and what this process may do on it.

pub mod features;
pub mod missing;
pub mod programs;
pub mod rights;
pub mod scale;
pub mod sys;
