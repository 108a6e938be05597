//! Packet networks of several switches: lists of switches, their labels and routes, priorities.

pub mod egress;
pub mod labels;
pub mod packet;
pub mod priorities;
pub mod route_lists;
pub mod steering;
pub(crate) mod uplinks;
