//! Coflows that are over: the last of them, each made into a view once and shared by all snapshots.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::coflow::CoflowView;
use crate::ids::CoflowId;
use crate::units::{Span, Time};

/// Least number of closed coflows that are kept, however old they are.
pub const KEPT: usize = 1000;
/// Age below which a closed coflow is kept too, unless [`MOST`] or [`MOST_PAIRS`] is reached.
pub const YOUNG: Span = Span::secs(60);
/// The most that are kept, apart from the chunk that is being filled.
pub const MOST: usize = 16_384;
/// The most rack pairs of all kept ones together: 16 MB.
pub const MOST_PAIRS: usize = 1 << 20;
/// Number of closed coflows that are shared and forgotten together.
const CHUNK: usize = 64;

type Chunk = Vec<(CoflowId, Arc<CoflowView>)>;

/// The last coflows that ended, in the order of their ends. Cloning costs O([`MOST`] / 64),
/// whatever a coflow's size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Closed {
    /// All are full but the last one.
    chunks: VecDeque<Arc<Chunk>>,
    /// How many were forgotten.
    forgotten: u64,
    /// Rack pairs of all that are kept.
    pairs: usize,
}

impl Closed {
    /// None is kept yet; `forgotten` have ended before.
    pub fn after_forgotten(forgotten: u64) -> Self {
        Self { forgotten, ..Self::default() }
    }

    /// Appends a coflow that ended, and forgets the oldest ones beyond the limits at `now`. O(1)
    /// amortised.
    pub fn push(&mut self, view: impl Into<Arc<CoflowView>>, now: Time) {
        let view = view.into();
        self.pairs += view.pairs.len();
        if self.chunks.back().is_none_or(|c| c.len() == CHUNK) {
            self.chunks.push_back(Arc::new(Vec::with_capacity(CHUNK)));
        }
        if let Some(last) = self.chunks.back_mut() {
            Arc::make_mut(last).push((view.id, view));
        }
        while self.chunks.len() > 1 && self.is_too_much(now) {
            let Some(oldest) = self.chunks.pop_front() else { break };
            self.forgotten += oldest.len() as u64;
            self.pairs -= oldest.iter().map(|c| c.1.pairs.len()).sum::<usize>();
        }
    }

    /// Whether the oldest chunk is to be forgotten.
    fn is_too_much(&self, now: Time) -> bool {
        let youngest = self.chunks.front().and_then(|c| c.last()).and_then(|c| c.1.closed());
        let old = youngest.is_some_and(|t| now.since(t) >= YOUNG);
        self.pairs > MOST_PAIRS || self.len() >= KEPT + CHUNK && (old || self.len() > MOST)
    }

    /// Number of coflows that are kept.
    pub fn len(&self) -> usize {
        self.chunks.back().map_or(0, |last| (self.chunks.len() - 1) * CHUNK + last.len())
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// How many have ended since the start, those that are forgotten included.
    pub fn total(&self) -> u64 {
        self.forgotten + self.len() as u64
    }

    /// The kept ones, in the order of their ends.
    pub fn iter(&self) -> impl Iterator<Item = &CoflowView> {
        self.chunks.iter().flat_map(|c| c.iter()).map(|c| &*c.1)
    }

    /// The kept one at this place in the order of their ends. O(1).
    pub fn nth(&self, k: usize) -> Option<&CoflowView> {
        self.chunks.get(k / CHUNK)?.get(k % CHUNK).map(|c| &*c.1)
    }

    /// The place of the first of the kept ones that ended after the first `n` of all.
    pub fn first_after(&self, n: u64) -> usize {
        usize::try_from(n.saturating_sub(self.forgotten)).map_or(self.len(), |k| k.min(self.len()))
    }

    /// Kept coflows that ended after the first `n` of all ([`Closed::total`] at an earlier time),
    /// in order. O(their number).
    pub fn after(&self, n: u64) -> impl Iterator<Item = &CoflowView> {
        let skip = self.first_after(n);
        let rest = self.chunks.iter().skip(skip / CHUNK).flat_map(|c| c.iter());
        rest.skip(skip % CHUNK).map(|c| &*c.1)
    }

    /// The kept one of this number, the newest first. O(kept).
    pub fn get(&self, id: CoflowId) -> Option<&CoflowView> {
        self.chunks.iter().rev().flat_map(|c| c.iter().rev()).find(|c| c.0 == id).map(|c| &*c.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coflows::RackBytes;
    use crate::ids::RackId;
    use crate::units::Bytes;
    use proptest::prelude::*;

    fn view(id: u32, pairs: usize, at: Time) -> CoflowView {
        let pair = RackBytes { from: RackId(0), to: RackId(1), bytes: Bytes(1) };
        let (id, name, arrival, pairs) =
            (CoflowId(id), String::new(), Time::ZERO, vec![pair; pairs].into());
        let (bytes, received, over_ocs) = (Bytes(1), Bytes(1), Bytes(0));
        let (finished, cancelled, cct, bound) = (Some(at), None, None, Span::ZERO);
        CoflowView {
            id,
            name,
            arrival,
            pairs,
            bytes,
            received,
            over_ocs,
            finished,
            cancelled,
            why: None,
            cct,
            bound,
            priority: None,
        }
    }

    #[test]
    fn young_ones_are_kept_and_of_the_old_ones_the_last() {
        let mut c = Closed::default();
        (0..5000).for_each(|k| c.push(view(k, 1, Time(u64::from(k))), Time(u64::from(k))));
        assert_eq!((c.len(), c.total(), c.get(CoflowId(0)).unwrap().id), (5000, 5000, CoflowId(0)));
        let later = Time(YOUNG.0 + 10_000);
        c.push(view(5000, 1, later), later);
        assert!((KEPT..KEPT + 2 * CHUNK).contains(&c.len()), "{}", c.len());
        assert_eq!(
            (c.total(), c.get(CoflowId(0)), c.iter().last().unwrap().id),
            (5001, None, CoflowId(5000))
        );
        (0..MOST as u32 + 3000).for_each(|k| c.push(view(6000 + k, 1, later), later));
        assert!(c.len() <= MOST + CHUNK, "many at once: {}", c.len());
    }

    #[test]
    fn large_ones_are_forgotten_sooner() {
        let mut c = Closed::default();
        (0..3000).for_each(|k| c.push(view(k, 4032, Time::ZERO), Time::ZERO));
        assert!(
            c.pairs <= MOST_PAIRS + CHUNK * 4032 && c.len() > 200,
            "{} of {}",
            c.pairs,
            c.len()
        );
        assert_eq!(c.pairs, c.iter().map(|v| v.pairs.len()).sum::<usize>());
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        /// Against a plain list; a snapshot that was taken before stays as it was.
        #[test]
        fn what_came_after_is_found(before in 0usize..200, then in 0usize..200, n in 0u64..500) {
            let (mut c, mut list) = (Closed::default(), vec![]);
            for k in 0..before + then {
                if k == before {
                    let (shared, old) = (c.clone(), list.clone());
                    c.push(view(k as u32, 0, Time::ZERO), Time::ZERO);
                    prop_assert!(shared.iter().map(|v| v.id.0).eq(old.iter().copied()));
                } else {
                    c.push(view(k as u32, 0, Time::ZERO), Time::ZERO);
                }
                list.push(k as u32);
            }
            prop_assert!(c.after(n).map(|v| v.id.0).eq(list.iter().copied().skip(n as usize)));
            prop_assert_eq!(c.get(CoflowId(n as u32)).is_some(), (n as usize) < list.len());
        }
    }
}
