//! Comparison of the network with what was built.

pub(crate) mod believed;
pub mod book;
pub mod keeper;
pub mod kept;
pub mod settings;
