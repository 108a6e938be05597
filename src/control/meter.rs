//! Distributions of durations, for the control loop's own account.

use hdrhistogram::Histogram;

use super::record::Quantiles;
use crate::units::Span;

/// Collects durations with three significant digits, from a nanosecond to an hour.
#[derive(Clone, Debug)]
pub struct Meter {
    histogram: Histogram<u64>,
    max: Span,
}

impl Default for Meter {
    fn default() -> Self {
        Self { histogram: Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("valid bounds"), max: Span::ZERO }
    }
}

impl Meter {
    /// Adds one duration.
    pub fn add(&mut self, d: Span) {
        self.add_many(d, 1);
    }

    /// Adds the same duration `n` times. O(1).
    pub fn add_many(&mut self, d: Span, n: u64) {
        self.histogram.saturating_record_n(d.0, n);
        self.max = self.max.max(d);
    }

    /// The distribution so far.
    pub fn quantiles(&self) -> Quantiles {
        let q = |x| Span(self.histogram.value_at_quantile(x)).0.min(self.max.0);
        Quantiles { count: self.histogram.len(), p50: Span(q(0.5)), p99: Span(q(0.99)), max: self.max }
    }
}
