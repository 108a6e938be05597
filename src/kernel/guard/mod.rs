//! Comparison of the network with what was built.

pub(crate) mod believed;
pub mod build_log;
pub mod drift;
pub mod settings;
pub mod watched;
