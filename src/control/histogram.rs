//! Durations counted by ranges that never change, so that those who scrape can add them up over
//! time and machines.

use serde::{Deserialize, Serialize};

use crate::units::Span;

/// The largest duration of each range but the last, which has none: 1, 2 and 5 of every power of
/// ten from 10 us to 1000 s.
pub const BOUNDS: [Span; 25] = {
    let mut bounds = [Span(10_000); 25];
    let mut k = 1;
    while k < bounds.len() {
        // 1 to 2 and 5 to 10 double; 2 to 5 is half a step more.
        bounds[k] = Span(if k % 3 == 2 { bounds[k - 1].0 * 5 / 2 } else { bounds[k - 1].0 * 2 });
        k += 1;
    }
    bounds
};

/// How many durations were in each range, and their sum. 216 bytes, whatever is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    counts: [u64; BOUNDS.len() + 1],
    sum: Span,
}

impl Histogram {
    /// Counts the same duration `n` times. O(log ranges).
    pub fn add(&mut self, d: Span, n: u64) {
        self.counts[BOUNDS.partition_point(|&b| b < d)] += n;
        self.sum = Span(self.sum.0.saturating_add(d.0.saturating_mul(n)));
    }

    /// How many durations each range has, by its largest; `None`: longer than all bounds.
    pub fn ranges(&self) -> impl Iterator<Item = (Option<Span>, u64)> + '_ {
        BOUNDS.into_iter().map(Some).chain([None]).zip(self.counts)
    }

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of all durations; it stops at the longest that there is.
    pub fn sum(&self) -> Span {
        self.sum
    }
}

/// What a controller counts so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histograms {
    /// Time to read the fabric, of each cycle.
    pub poll: Histogram,
    /// Time to decide.
    pub decide: Histogram,
    /// Time to carry out.
    pub apply: Histogram,
    /// The three together.
    pub cycle: Histogram,
    /// Dark time asked for, of circuits that were probed.
    pub dark_asked: Histogram,
    /// Dark time that the probes saw.
    pub dark_achieved: Histogram,
    /// Completion times of coflows that have finished.
    pub cct: Histogram,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_are_1_2_and_5_of_powers_of_ten() {
        let us = |k: usize| BOUNDS[k].0 / 1000;
        assert_eq!([0, 1, 2, 3, 4, 5, 6].map(us), [10, 20, 50, 100, 200, 500, 1000]);
        assert_eq!(BOUNDS[24], Span::secs(1000));
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn every_duration_is_in_the_first_range_that_it_fits(all in prop::collection::vec((any::<u64>(), 0u64..40, 1u64..4), 0..50)) {
            let mut h = Histogram::default();
            let all: Vec<(u64, u64)> = all.into_iter().map(|(d, shift, n)| (d >> shift, n)).collect();
            all.iter().for_each(|&(d, n)| h.add(Span(d), n));
            prop_assert_eq!(h.count(), all.iter().map(|x| x.1).sum::<u64>());
            let sum = all.iter().map(|&(d, n)| u128::from(d) * u128::from(n)).sum::<u128>();
            prop_assert_eq!(u128::from(h.sum().0), sum.min(u64::MAX.into()));
            let mut before = None;
            for (most, n) in h.ranges() {
                let fits = |d: u64| before.is_none_or(|b: Span| d > b.0) && most.is_none_or(|m| d <= m.0);
                prop_assert_eq!(n, all.iter().filter(|x| fits(x.0)).map(|x| x.1).sum::<u64>());
                before = most;
            }
        }
    }
}
