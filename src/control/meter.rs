//! Distributions of durations, for the control loop's own account.

use std::sync::OnceLock;

use super::histogram::Histogram;
use super::record::Quantiles;
use crate::units::{NANOS, Span};

/// The longest duration that is distinguished from longer ones.
const HOUR: u64 = 3600 * NANOS;

/// Collects durations with three significant digits, from a nanosecond to an hour.
#[derive(Clone, Debug)]
pub struct DurationMeter {
    /// Grows with what it holds: all of it for an hour is 300 kB, and many a controller in virtual
    /// time never waits.
    digits: hdrhistogram::Histogram<u64>,
    /// The same by ranges that never change.
    histogram: Histogram,
    max: Span,
    /// What was asked of it since the last duration came: to find it costs a pass over the
    /// histogram.
    quantiles: OnceLock<Quantiles>,
}

impl Default for DurationMeter {
    fn default() -> Self {
        let digits = hdrhistogram::Histogram::new(3).expect("three digits are allowed");
        Self {
            digits,
            histogram: Histogram::default(),
            max: Span::ZERO,
            quantiles: OnceLock::new(),
        }
    }
}

impl DurationMeter {
    /// Adds one duration.
    pub fn add(&mut self, d: Span) {
        self.add_many(d, 1);
    }

    /// Adds the same duration `n` times. O(1).
    pub fn add_many(&mut self, d: Span, n: u64) {
        self.digits.record_n(d.0.min(HOUR), n).expect("it grows to what it must hold");
        self.histogram.add(d, n);
        self.max = self.max.max(d);
        self.quantiles.take();
    }

    /// The distribution so far. O(1) if nothing was added since the last call.
    pub fn quantiles(&self) -> Quantiles {
        *self.quantiles.get_or_init(|| self.find_quantiles())
    }

    /// The distribution so far, by ranges.
    pub fn histogram(&self) -> &Histogram {
        &self.histogram
    }

    fn find_quantiles(&self) -> Quantiles {
        let q = |x| Span(self.digits.value_at_quantile(x)).0.min(self.max.0);
        Quantiles { count: self.digits.len(), p50: Span(q(0.5)), p99: Span(q(0.99)), max: self.max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_hour_is_the_longest_and_nothing_the_shortest() {
        let mut m = DurationMeter::default();
        assert_eq!(m.quantiles(), Quantiles::default());
        m.add_many(Span::ZERO, 3);
        m.add(Span(u64::MAX));
        let q = m.quantiles();
        assert_eq!((q.count, q.p50, q.max), (4, Span::ZERO, Span(u64::MAX)));
        assert!(q.p99.0.abs_diff(HOUR) <= HOUR / 1000);
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn quantiles_are_those_of_the_sorted_list(times in prop::collection::vec(0u64..1 << 40, 1..200)) {
            let mut m = DurationMeter::default();
            let (first, rest) = times.split_at(times.len() / 2);
            first.iter().for_each(|&t| m.add(Span(t)));
            m.quantiles();
            rest.iter().for_each(|&t| m.add(Span(t)));
            let sorted = { let mut s = times.clone(); s.sort_unstable(); s };
            let rank = |percent: usize| sorted[(sorted.len() * percent).div_ceil(100) - 1];
            let q = m.quantiles();
            prop_assert_eq!(m.quantiles(), q);
            prop_assert_eq!((q.count, q.max.0), (times.len() as u64, sorted[sorted.len() - 1]));
            for (got, want) in [(q.p50.0, rank(50)), (q.p99.0, rank(99))] {
                prop_assert!(got.abs_diff(want) <= want / 1000 + 1, "{} for {}", got, want);
            }
        }
    }
}
