//! Netlink, tc, and what nodes hold of both.

pub mod diag;
pub mod inventory;
pub mod msg;
pub mod nl;
pub mod tc;
pub mod wire;
