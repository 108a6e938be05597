//! Co-scheduler: places data, maps and reduces so that shuffles are worth circuits and use many of
//! them (Li and Shen, ToN 2022).
//!
//! A job goes through it in four steps. [`data`]: on how many racks its input lies, and so its maps
//! run. [`maps`]: which racks those may be. When all maps are done, three parts follow.
//! [`reduces`]: every number of reduce racks that keeps the shuffle on circuits, and how many tasks
//! each then gets. [`explore`]: which racks are free for them soonest. [`decide`]: the choice that
//! ends its shuffle first. [`order`] says which task gets a free slot. Everything is a pure
//! function; the scheduler asks and acts.
//!
//! [`schedule`] plays all of it through for a list of jobs, offline.
//!
//! How long a shuffle takes is asked of a [`network::CoflowForecaster`]. The paper's is idle; a
//! controller that knows its circuits can answer better.

pub mod data;
pub mod decide;
pub mod executor;
pub mod explore;
pub mod maps;
pub mod network;
pub mod order;
pub mod reduces;
pub mod schedule;
#[cfg(test)]
mod tests;
