//! What the end of a flow reaches: by the rule by which flows share what their coflow is left.

use super::levels::FairLevels;
use super::active::{Gone, ActiveCoflow};
use super::greedy_chains::GreedyChains;
use crate::coflows::rates::Free;
use crate::engine::World;
use crate::units::Time;

/// At most one of the two is ready.
pub struct Incremental {
    /// Where flow after flow takes all that its links have left.
    pub chains: GreedyChains,
    /// Where the flows of a coflow share max-min fairly.
    pub levels: FairLevels,
}

impl Incremental {
    /// For `links` links, of which nothing is known; for none, neither is ever ready.
    pub fn new(links: usize) -> Self {
        Self { chains: GreedyChains::new(links), levels: FairLevels::new(links) }
    }

    /// Whether it may be asked to follow.
    pub fn is_ready(&self) -> bool {
        self.chains.is_ready() || self.levels.is_ready()
    }

    /// What it knows is out of date.
    pub fn forget(&mut self) {
        self.chains.forget();
        self.levels.forget();
    }

    /// When the first flow ends.
    pub fn next(&self) -> Option<Time> {
        if self.levels.is_ready() { self.levels.next() } else { self.chains.next() }
    }

    /// The flows that are due, as (coflow, group), appended to `list` in order.
    pub fn due(&mut self, now: Time, list: &mut Vec<(usize, u32)>) {
        if self.levels.is_ready() { self.levels.due(now, list) } else { self.chains.due(now, list) }
    }

    /// A group of the coflow at `k` has ended.
    pub fn leave(&mut self, k: usize, c: &ActiveCoflow, gone: &Gone) {
        if self.levels.is_ready() { self.levels.leave(k, c, gone) } else { self.chains.leave(k, c, gone) }
    }

    /// Gives what was given back to the flows that may have it now. Says whether a coflow has ended thereby.
    pub fn follow(&mut self, coflows: &mut [ActiveCoflow], free: &mut Free, world: &mut World) -> bool {
        if self.levels.is_ready() {
            self.levels.follow(coflows, free, world.now);
            return false;
        }
        self.chains.follow(coflows, free, world)
    }
}
