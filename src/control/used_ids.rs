//! Numbers that have been given: none is given twice, however long ago its coflow ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::CoflowId;

/// The most ranges that are kept apart.
const MOST: usize = 4096;

/// A set of numbers as ranges. It stays small: where there are more than 4096 ranges, the two
/// lowest are joined, and the numbers between them count as used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedIds {
    /// The first of each range and its last.
    ranges: Arc<BTreeMap<u32, u32>>,
}

impl UsedIds {
    /// Adds a number; says whether it was new. O(log ranges), and a copy of them where a snapshot
    /// shares them.
    pub fn insert(&mut self, id: CoflowId) -> bool {
        if self.contains(id) {
            return false;
        }
        let ranges = Arc::make_mut(&mut self.ranges);
        let (mut first, mut last) = (id.0, id.0);
        let below = ranges.range(..id.0).next_back().map(|(&a, &b)| (a, b));
        if let Some((a, _)) = below.filter(|&(_, b)| b.checked_add(1) == Some(id.0)) {
            first = a;
        }
        if let Some(b) = id.0.checked_add(1).and_then(|next| ranges.remove(&next)) {
            last = b;
        }
        ranges.insert(first, last);
        if ranges.len() > MOST
            && let Some((lowest, _)) = ranges.pop_first()
            && let Some((_, last)) = ranges.pop_first()
        {
            ranges.insert(lowest, last);
        }
        true
    }

    /// Adds all numbers above the largest, up to this one. O(log ranges).
    pub fn fill(&mut self, to: CoflowId) {
        let Some(top) = self.max().filter(|&top| top < to) else {
            self.insert(to);
            return;
        };
        let ranges = Arc::make_mut(&mut self.ranges);
        ranges.range_mut(..=top.0).next_back().into_iter().for_each(|(_, last)| *last = to.0);
    }

    /// Whether a number was used, or lies between ranges that were joined. O(log ranges).
    pub fn contains(&self, id: CoflowId) -> bool {
        self.ranges.range(..=id.0).next_back().is_some_and(|(_, &last)| id.0 <= last)
    }

    /// The largest number. O(log ranges).
    pub fn max(&self) -> Option<CoflowId> {
        self.ranges.last_key_value().map(|(_, &last)| CoflowId(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn a_set_of_ranges_is_a_set(ids in prop::collection::vec(prop_oneof![0u32..40, u32::MAX - 3..=u32::MAX], 0..60)) {
            let (mut used, mut set) = (UsedIds::default(), BTreeSet::new());
            for id in ids {
                prop_assert_eq!(used.insert(CoflowId(id)), set.insert(id));
                prop_assert_eq!(used.max().map(|m| m.0), set.last().copied());
            }
            for id in (0..42).chain(u32::MAX - 5..=u32::MAX) {
                prop_assert_eq!(used.contains(CoflowId(id)), set.contains(&id), "{}", id);
            }
            let ranges: Vec<_> = used.ranges.iter().collect();
            prop_assert!(ranges.windows(2).all(|w| *w[0].1 + 1 < *w[1].0), "neighbours are one range: {:?}", ranges);
        }
    }

    #[test]
    fn what_lies_between_the_largest_and_a_number_is_filled() {
        let mut used = UsedIds::default();
        used.fill(CoflowId(5));
        assert!(used.contains(CoflowId(5)) && !used.contains(CoflowId(4)), "there was none below");
        used.fill(CoflowId(u32::MAX));
        assert!(
            [6, 1000, u32::MAX].map(CoflowId).iter().all(|&id| used.contains(id))
                && !used.contains(CoflowId(4))
        );
        used.fill(CoflowId(3));
        assert!(
            used.contains(CoflowId(3))
                && !used.contains(CoflowId(4))
                && used.max() == Some(CoflowId(u32::MAX))
        );
    }

    #[test]
    fn many_ranges_are_joined_and_none_is_given_again() {
        let mut used = UsedIds::default();
        let ids = || (0..10_000).map(|k| CoflowId(k * 7));
        assert!(ids().all(|id| used.insert(id)));
        assert!(used.ranges.len() <= MOST && ids().all(|id| !used.insert(id)));
        assert!(
            used.contains(CoflowId(1)) && !used.contains(CoflowId(9_999 * 7 - 1)),
            "only the lowest are joined"
        );
    }
}
