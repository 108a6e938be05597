//! Ours: placement and circuits decided together, by one estimate of when a stage ends.
//!
//! - *Order*: the least remaining work first, in slot time and network time ([`index`]), with a
//!   guard: a job that has waited twice as long as fair sharing between users would have had it
//!   wait goes first.
//! - *Data*: a job's blocks have three homes, each of as few racks as its tasks fill ([`homes`]).
//! - *Maps*: on the racks of a home that have room now, the fewest; elsewhere, where reading over
//!   the network ends sooner than waiting.
//! - *Reduces*: late, when what they wait for has finished. Of some placements the one is taken
//!   whose shuffle ends first, with what it costs other shuffles counted ([`price`]). It is
//!   promised: the slots of these racks go to the stage before any map.
//! - *Circuits*: those of `scheduler: sunflow`: coflow after coflow, the shortest first, each pair
//!   over one circuit as soon as both ports are free, standing circuits first.
//!
//! docs/joint.md has the model, a worked example, and what was measured.

pub mod executor;
pub mod homes;
pub mod index;
pub mod price;
#[cfg(test)]
mod tests;
