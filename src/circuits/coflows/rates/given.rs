//! The rates of one coflow.

use super::{Demand, FreeCapacity};

/// What a group still has to send, and how fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remainder {
    /// Bits per second times nanoseconds.
    pub units: u128,
    /// Bits per second, not zero.
    pub rate: u64,
}

impl Remainder {
    /// Nanoseconds that it takes, rounded up; `None` if they are too many.
    pub fn time(&self) -> Option<u64> {
        match u64::try_from(self.units) {
            Ok(small) => Some(small.div_ceil(self.rate)),
            Err(_) => u64::try_from(self.units.div_ceil(u128::from(self.rate))).ok(),
        }
    }

    /// Whether it takes less time than another one. No division, and 64 bits nearly always do.
    pub fn is_sooner(&self, other: &Self) -> bool {
        match (u64::try_from(self.units), u64::try_from(other.units)) {
            (Ok(a), Ok(b)) => {
                u128::from(a) * u128::from(other.rate) < u128::from(b) * u128::from(self.rate)
            }
            _ => {
                self.units.saturating_mul(u128::from(other.rate))
                    < other.units.saturating_mul(u128::from(self.rate))
            }
        }
    }
}

/// The rates of one coflow's groups, in bits per second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    groups: usize,
    /// By group; empty until one is given something, which many a coflow that waits never is.
    of: Vec<u64>,
    /// Groups that were given something; some may have stopped.
    given: Vec<u32>,
    total: u64,
}

impl Rates {
    /// Rates at which nothing moves.
    pub fn new(groups: usize) -> Self {
        Self { groups, of: Vec::new(), given: Vec::new(), total: 0 }
    }

    /// The rate of a group.
    pub fn of(&self, group: u32) -> u64 {
        self.of.get(group as usize).copied().unwrap_or(0)
    }

    /// The groups whose rate is not zero, in the order in which they were given one.
    pub fn running(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.given.iter().map(|&g| (g, self.of[g as usize])).filter(|r| r.1 > 0)
    }

    /// How many groups were given something; some may have stopped.
    pub fn given(&self) -> usize {
        self.given.len()
    }

    /// The group that was given something as the `k`th.
    pub fn group(&self, k: usize) -> u32 {
        self.given[k]
    }

    /// The sum of all rates.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Gives a group more.
    pub fn add(&mut self, group: u32, rate: u64) {
        if self.of.is_empty() {
            self.of = vec![0; self.groups];
        }
        let of = &mut self.of[group as usize];
        if *of == 0 && rate > 0 {
            self.given.push(group);
        }
        *of += rate;
        self.total = self.total.saturating_add(rate);
    }

    /// Gives a group another rate than `before`, which it has.
    pub fn change(&mut self, group: u32, before: u64, rate: u64) {
        if self.of.is_empty() {
            self.of = vec![0; self.groups];
        }
        debug_assert_eq!(self.of[group as usize], before);
        if before == 0 && rate > 0 {
            if self.given.len() == self.given.capacity() {
                self.tidy();
                self.given.reserve(self.given.len().max(self.given.capacity() / 2) + 1);
            }
            self.given.push(group);
        }
        self.of[group as usize] = rate;
        self.total = self.total.saturating_sub(before).saturating_add(rate);
    }

    /// Forgets the groups that have stopped, and brings the others into their order. O(n log n) for
    /// those that were given something.
    pub fn tidy(&mut self) {
        let of = &self.of;
        self.given.retain(|&g| of[g as usize] > 0);
        self.given.sort_unstable();
        self.given.dedup();
    }

    /// A group stops, for as long as the others keep their rates.
    pub fn stop(&mut self, group: u32) {
        self.total -= self.of.get_mut(group as usize).map_or(0, std::mem::take);
    }

    /// Everything stops.
    pub fn clear(&mut self) {
        // Most of all in one go, few of many one by one.
        if self.given.len() > self.of.len() / 4 {
            self.of.fill(0);
        } else {
            self.given.iter().for_each(|&g| self.of[g as usize] = 0);
        }
        self.given.clear();
        self.total = 0;
    }

    /// Everything stops, and what was given goes back to the links.
    pub fn give_back(&mut self, demand: &Demand, free: &mut FreeCapacity) {
        for g in self.given.drain(..) {
            let rate = std::mem::take(&mut self.of[g as usize]);
            if rate > 0 {
                demand.give(g, rate, free);
            }
        }
        self.total = 0;
    }
}
