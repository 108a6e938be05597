//! What watches that the network stays as it was built.

pub(crate) mod believed;
pub mod book;
pub mod keeper;
pub mod kept;
pub mod settings;
