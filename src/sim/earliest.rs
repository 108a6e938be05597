//! The earliest of many times that change.

use crate::units::Time;

/// Times by number, in about as many chunks as a chunk has times, with the earliest of each chunk.
/// Most changes do not touch the earliest of a chunk, so they cost less than in a tree.
#[derive(Debug)]
pub struct EarliestTimes {
    times: Vec<Time>,
    /// The earliest time of each chunk.
    earliest: Vec<Time>,
    /// A chunk has two to this power times.
    shift: u32,
}

impl EarliestTimes {
    /// `n` times, all never.
    pub fn new(n: usize) -> Self {
        let shift = n.next_power_of_two().ilog2() / 2;
        Self { times: vec![Time::MAX; n], earliest: vec![Time::MAX; n.div_ceil(1 << shift)], shift }
    }

    fn chunk(&self, c: usize) -> &[Time] {
        let from = c << self.shift;
        &self.times[from..self.times.len().min(from + (1 << self.shift))]
    }

    /// Sets a time; `None` is never. O(1), or O(sqrt n) if it was the earliest of its chunk.
    pub fn set(&mut self, k: u32, time: Option<Time>) {
        let (time, c) = (time.unwrap_or(Time::MAX), k as usize >> self.shift);
        let old = std::mem::replace(&mut self.times[k as usize], time);
        if time <= self.earliest[c] {
            self.earliest[c] = time;
        } else if old == self.earliest[c] {
            self.earliest[c] = self.chunk(c).iter().copied().fold(Time::MAX, Time::min);
        }
    }

    /// The earliest time. O(sqrt n).
    pub fn first(&self) -> Option<Time> {
        Some(self.earliest.iter().copied().fold(Time::MAX, Time::min)).filter(|&t| t < Time::MAX)
    }

    /// Appends the numbers of all times up to `t` to `list`, in order. O(sqrt n x (1 + those)).
    pub fn up_to(&self, t: Time, list: &mut Vec<u32>) {
        for c in (0..self.earliest.len()).filter(|&c| self.earliest[c] <= t) {
            let due =
                self.chunk(c).iter().enumerate().filter(|&(_, &end)| end <= t && end < Time::MAX);
            list.extend(due.map(|(k, _)| ((c << self.shift) + k) as u32));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn it_is_the_smallest_of_a_list(n in 1usize..20, sets in prop::collection::vec((0u32..20, prop::option::of(0u64..50)), 0..40)) {
            let (mut s, mut list) = (EarliestTimes::new(n), vec![None; n]);
            for (k, t) in sets.into_iter().map(|(k, t)| (k % n as u32, t.map(Time))) {
                s.set(k, t);
                list[k as usize] = t;
                prop_assert_eq!(s.first(), list.iter().flatten().copied().min());
                let mut due = Vec::new();
                s.up_to(Time(25), &mut due);
                prop_assert_eq!(due, (0..n as u32).filter(|&k| list[k as usize].is_some_and(|t| t <= Time(25))).collect::<Vec<_>>());
            }
        }
    }
}
