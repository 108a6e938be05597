//! Incremental sharing when a flow ends: one strategy for greedy sharing within a coflow, one for
//! max-min sharing.

use super::active::{ActiveCoflow, Gone};
use super::greedy_chains::GreedyChains;
use super::levels::FairLevels;
use crate::coflows::rates::FreeCapacity;
use crate::engine::EngineWorld;
use crate::units::Time;

/// At most one of the two is ready.
pub struct Incremental {
    /// For flows that take, one after another, all that their links have left.
    pub chains: GreedyChains,
    /// For coflows whose flows share max-min fairly.
    pub levels: FairLevels,
}

impl Incremental {
    /// For `links` links, without knowledge; for none, neither strategy is ever ready.
    pub fn new(links: usize) -> Self {
        Self { chains: GreedyChains::new(links), levels: FairLevels::new(links) }
    }

    /// Whether [`Incremental::follow`] may be called.
    pub fn is_ready(&self) -> bool {
        self.chains.is_ready() || self.levels.is_ready()
    }

    /// Drops what it knows, which is out of date.
    pub fn forget(&mut self) {
        self.chains.forget();
        self.levels.forget();
    }

    /// When the first flow ends.
    pub fn next(&self) -> Option<Time> {
        if self.levels.is_ready() { self.levels.next() } else { self.chains.next() }
    }

    /// Appends the flows that are due to `list`, in order, as (coflow, group).
    pub fn due(&mut self, now: Time, list: &mut Vec<(usize, u32)>) {
        if self.levels.is_ready() { self.levels.due(now, list) } else { self.chains.due(now, list) }
    }

    /// A group of the coflow at index `k` has ended.
    pub fn leave(&mut self, k: usize, c: &ActiveCoflow, gone: &Gone) {
        if self.levels.is_ready() {
            self.levels.leave(k, c, gone)
        } else {
            self.chains.leave(k, c, gone)
        }
    }

    /// Gives the bandwidth that was freed to the flows that may have it. True if a coflow has ended
    /// by that.
    pub fn follow(
        &mut self,
        coflows: &mut [ActiveCoflow],
        free: &mut FreeCapacity,
        world: &mut EngineWorld,
    ) -> bool {
        if self.levels.is_ready() {
            self.levels.follow(coflows, free, world.now);
            return false;
        }
        self.chains.follow(coflows, free, world)
    }
}
