//! A maximum weight bipartite matching that is kept up while demand changes cell by cell and row by row.

use super::bipartite::{bipartite, matching};
use super::dense::{Dense, Weights};
use super::num::Scale;
use super::{at_most, simd};
use crate::Matching;
use crate::demand::DemandMatrix;
use crate::ids::RackId;

/// A demand matrix and its best matching. After each change only what the change touches is looked at: nothing, where the duals still
/// prove the matching; else one row and one search from it.
///
/// # Complexity
/// [`Online::new`] as [`bipartite()`]. [`Online::update_cell`] O(1) where the matching stays, O(R) to look at one row, O(R^2) at worst for
/// a search. [`Online::update_row`] O(R) and one search. While a cell has 2^53 bytes (9 PB) or more, each [`Online::matching`] is
/// solved afresh.
///
/// # Example
/// ```
/// use heliostat_circuits::{Matching, matching::Online, demand::DemandMatrix, ids::RackId};
/// let mut best = Online::new(DemandMatrix::from_rows(&[&[0, 5, 4], &[5, 0, 1], &[3, 0, 0]]));
/// assert_eq!(best.matching().weight(best.demand()), 10);
/// best.update_cell(RackId(2), RackId(1), 9);
/// assert_eq!(best.matching().weight(best.demand()), 18);
/// ```
///
/// # Source
/// G. Mills-Tettey, A. Stentz and M. B. Dias, *The dynamic Hungarian algorithm for the assignment problem with changing costs*,
/// CMU-RI-TR-07-27 (2007).
#[derive(Clone, Debug)]
pub struct Online {
    demand: DemandMatrix,
    /// The solver with its spare bits; `None` while some cell has no room in it.
    dense: Option<(u32, Dense)>,
}

fn weights(demand: &DemandMatrix, spare: u32) -> Weights<'_> {
    Weights::new(demand.racks(), simd::signed(demand.cells()), (0, spare), &[])
}

/// Number of spare bits below the weights of cells of up to `bytes` bytes; `None` where they have no room.
fn spare(bytes: u64, racks: usize) -> Option<u32> {
    Scale::new(racks, bytes.into(), false).shift().map(|s| s.1)
}

impl Online {
    /// Solves `demand` (bytes, `R x R`) once.
    pub fn new(demand: DemandMatrix) -> Self {
        let bits = at_most(&demand);
        let dense = spare(bits, demand.racks()).map(|spare| {
            let mut dense = Dense::default();
            dense.cold(&weights(&demand, spare));
            (spare, dense)
        });
        Self { demand, dense }
    }

    /// The present demand.
    pub fn demand(&self) -> &DemandMatrix {
        &self.demand
    }

    /// A matching of maximum weight. O(R), but where cells are too large for the vector solver.
    pub fn matching(&self) -> Matching {
        self.dense.as_ref().map_or_else(|| bipartite(&self.demand, None), |s| matching(&self.demand, &s.1.column))
    }

    /// Replaces one cell; the diagonal stays zero.
    ///
    /// # Panics
    /// If a rack does not exist.
    pub fn update_cell(&mut self, input: RackId, output: RackId, bytes: u64) {
        let before = self.demand.get(input, output);
        self.demand.set(input, output, bytes);
        let racks = self.demand.racks();
        if input == output || before == bytes {
            return;
        }
        let Some((room, s)) = self.dense.as_mut().filter(|s| spare(bytes, racks) >= Some(s.0)) else { return self.anew() };
        let w = weights(&self.demand, *room);
        let (i, j) = (input.index(), output.index());
        let own = s.column[i] as usize == j;
        // A better cell that is matched stays the best; another that is not worth more than the row's own stays out.
        let stays = if own { bytes > before } else { w.at(i, j) <= s.worth(&w, i, j) };
        if !stays && !s.repair(&w, i) {
            self.anew();
        }
    }

    /// Replaces what one rack sends; its own cell stays zero.
    ///
    /// # Panics
    /// If the rack does not exist, or `row` has not R cells.
    pub fn update_row(&mut self, input: RackId, row: &[u64]) {
        assert_eq!(row.len(), self.demand.racks(), "a row has a cell for each rack");
        for (j, &bytes) in row.iter().enumerate() {
            self.demand.set(input, RackId::from(j), bytes);
        }
        let racks = self.demand.racks();
        let room = self.dense.as_mut().filter(|s| row.iter().all(|&b| spare(b, racks) >= Some(s.0)));
        let done = room.is_some_and(|(spare, s)| s.repair(&weights(&self.demand, *spare), input.index()));
        if !done {
            self.anew();
        }
    }

    fn anew(&mut self) {
        *self = Self::new(std::mem::take(&mut self.demand));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn every_update_leaves_the_maximum(
            r in 1usize..9,
            first in prop::collection::vec(0u64..9, 64),
            changes in prop::collection::vec(
                (0usize..8, 0usize..8, prop_oneof![3 => 0u64..12, 1 => Just(1 << 40), 1 => Just(u64::MAX)]), 1..30,
            ),
            rows in prop::collection::vec((0usize..8, prop::collection::vec(0u64..20, 8)), 1..10),
        ) {
            let mut best = Online::new(DemandMatrix::zero(r).map_pairs(|i, j, _| first[i.index() * 8 + j.index()]));
            for (i, j, bytes) in changes {
                best.update_cell(RackId::from(i % r), RackId::from(j % r), bytes);
                prop_assert_eq!(best.matching().weight(best.demand()), bipartite(best.demand(), None).weight(best.demand()));
            }
            for (i, row) in rows {
                best.update_row(RackId::from(i % r), &row[..r]);
                prop_assert_eq!(best.matching().weight(best.demand()), bipartite(best.demand(), None).weight(best.demand()));
            }
        }
    }
}
