//! Spans of which there may be very many, for their mean and exact percentiles.

use crate::units::Span;
use crate::workload::stats::place_of;

/// Spans, in no order.
#[derive(Clone, Debug, Default)]
pub struct SpanList {
    values: Vec<Span>,
    sum: u128,
}

impl SpanList {
    /// Takes one more. O(1) amortised.
    pub fn push(&mut self, value: Span) {
        self.sum += u128::from(value.0);
        self.values.push(value);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The mean, rounded down; zero of nothing.
    pub fn mean(&self) -> Span {
        Span((self.sum / self.len().max(1) as u128) as u64)
    }

    /// The `percent`th percentile by nearest rank; zero of nothing. O(n).
    pub fn percentile(&mut self, percent: usize) -> Span {
        if self.is_empty() {
            return Span::ZERO;
        }
        let place = place_of(self.len(), percent);
        *self.values.select_nth_unstable(place).1
    }
}

impl FromIterator<Span> for SpanList {
    fn from_iter<T: IntoIterator<Item = Span>>(all: T) -> Self {
        let mut spans = Self::default();
        all.into_iter().for_each(|s| spans.push(s));
        spans
    }
}

/// The `percent`th percentile of a list by nearest rank; zero of nothing. O(n).
pub fn percentile(values: &[Span], percent: usize) -> Span {
    values.iter().copied().collect::<SpanList>().percentile(percent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::stats::nearest_rank;
    use proptest::prelude::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let mut v: SpanList = (1..=20).rev().map(Span).collect();
        assert_eq!([50, 95, 100, 0].map(|p| v.percentile(p)), [10, 19, 20, 1].map(Span));
        let largest: SpanList = [Span(u64::MAX); 3].into_iter().collect();
        assert_eq!(
            (v.mean(), largest.mean(), SpanList::default().mean()),
            (Span(10), Span(u64::MAX), Span::ZERO)
        );
        assert_eq!(SpanList::default().percentile(50), Span::ZERO);
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn they_are_those_of_a_sorted_list(
            all in prop::collection::vec(0..50u64, 1..60),
            percents in prop::collection::vec(0..=100usize, 1..5),
        ) {
            let mut spans: SpanList = all.iter().copied().map(Span).collect();
            let mut sorted = all;
            sorted.sort_unstable();
            for p in percents {
                prop_assert_eq!(Some(spans.percentile(p).0), nearest_rank(&sorted, p));
            }
        }
    }
}
