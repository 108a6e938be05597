//! What watches that the network stays as it was built.

pub(crate) mod believed;
pub mod build_log;
pub mod drift;
pub mod watched;
pub mod settings;
