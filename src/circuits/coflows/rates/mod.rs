//! Rates: how the flows of coflows share links that are given.
//!
//! | rule | what each flow gets | after |
//! |---|---|---|
//! | [`max_min`](max_min()) | all flows grow together until a link of theirs is full | TCP, roughly; within a coflow: Aalo |
//! | [`madd`](madd()) | the flows of a coflow end together, no sooner than its slowest link allows | Varys |
//! | [`greedy`](greedy()) | flow after flow takes all that its links have left | Sincronia; what Varys leaves over |
//! | [`equal_progress`](equal_progress()) | all coflows grow together, each in the proportion of its bytes | HUG, DRF |
//!
//! Each is a function of [`Demand`]s and of the links' [`FreeCapacity`]. It takes what it gives
//! from the latter, so rules are chained by the order in which they are called: coflow after
//! coflow, or one rule after another. Rates are whole bits per second, so no link is ever above its
//! capacity.

mod demand;
mod equal_progress;
mod free;
mod given;
mod greedy;
mod madd;
mod max_min;

#[cfg(test)]
mod tests;

pub use demand::{CoflowLevels, Deltas, Demand, HostGroup, LevelsScratch};
pub use equal_progress::{equal_progress, paces};
pub use free::FreeCapacity;
pub use given::{Rates, Remainder};
pub use greedy::{greedy, greedy_but};
pub use madd::{bottleneck, madd};
pub use max_min::max_min;

/// The most links that a flow crosses.
pub const MAX_HOPS: usize = 15;

/// The links that a flow crosses: first its sender's interface, then its receiver's, then those
/// between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Path {
    links: [u32; MAX_HOPS],
    len: u8,
}

impl Path {
    /// A path over these links.
    ///
    /// # Panics
    /// If there are more than [`MAX_HOPS`].
    pub fn new(links: &[u32]) -> Self {
        let mut p = Self { links: [0; MAX_HOPS], len: links.len() as u8 };
        p.links[..links.len()].copy_from_slice(links);
        p
    }

    /// The links.
    pub fn links(&self) -> &[u32] {
        &self.links[..usize::from(self.len)]
    }

    /// The sender's interface.
    pub fn up(&self) -> u32 {
        self.links[0]
    }

    /// The receiver's interface.
    pub fn down(&self) -> u32 {
        self.links[1]
    }
}
