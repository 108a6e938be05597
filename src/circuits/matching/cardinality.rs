//! Maximum cardinality and bottleneck matchings: as many circuits as can be, and the thinnest of
//! them as thick as can be.

use super::wide::Wide;
use super::{edmonds, plane_by_plane};
use crate::demand::DemandMatrix;
use crate::ids::RackId;
use crate::{Ask, Decision, Matching, Scheduler, steps};

/// No row or column.
pub(crate) const NONE: u32 = u32::MAX;

/// A matching of most pairs with demand, whatever their weight.
///
/// # Arguments
/// - `demand`: bytes by (input, output), `R x R`; only whether a cell is zero matters.
///
/// # Complexity
/// O(E sqrt(R)) time for E pairs with demand.
///
/// # Example
/// ```
/// use heliostat_circuits::{matching::hopcroft_karp, demand::DemandMatrix};
/// let d = DemandMatrix::from_rows(&[&[0, 9, 1], &[0, 0, 0], &[0, 1, 0]]);
/// assert_eq!(hopcroft_karp(&d).len(), 2);
/// ```
///
/// # Source
/// J. E. Hopcroft and R. M. Karp, *An n^(5/2) algorithm for maximum matchings in bipartite graphs*,
/// SIAM J. Comput. 2 (1973).
pub fn hopcroft_karp(demand: &DemandMatrix) -> Matching {
    matching(&most(demand.racks(), demand.cells(), 1))
}

/// Among the matchings of most pairs with demand, one whose lightest pair is heaviest.
///
/// # Arguments
/// - `demand`: bytes by (input, output), `R x R`.
///
/// # Complexity
/// O(R^3 / 64 log E) at worst: a bisection, in which each threshold goes on from the matching of a
/// lower one, and one [`hopcroft_karp`].
///
/// # Example
/// ```
/// use heliostat_circuits::{Matching, matching::bottleneck, demand::DemandMatrix};
/// let d = DemandMatrix::from_rows(&[&[0, 100, 5], &[3, 0, 4], &[6, 7, 0]]);
/// assert_eq!(bottleneck(&d), Matching::from_pairs(3, [(0, 1), (1, 2), (2, 0)]));
/// ```
///
/// # Source
/// H. N. Gabow and R. E. Tarjan, *Algorithms for two bottleneck optimization problems*, J.
/// Algorithms 9 (1988), for the problem.
pub fn bottleneck(demand: &DemandMatrix) -> Matching {
    let mut weights: Vec<u64> = demand.entries().map(|e| e.2).collect();
    weights.sort_unstable();
    weights.dedup();
    let Some(&first) = weights.first() else { return Matching::empty(demand.racks()) };
    let mut held = ThresholdMatching::new(demand, first);
    // The last threshold that still allows as many pairs lies in `low..high`.
    let (mut low, mut high) = (0, weights.len());
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        if held.rise(weights[middle]) { low = middle } else { high = middle }
    }
    matching(&most(demand.racks(), demand.cells(), weights[low]))
}

/// A matching of most cells that are at least a threshold.
struct ThresholdMatching {
    /// By row: columns with demand, and how much.
    rows: Vec<Vec<(u32, u64)>>,
    column: Vec<u32>,
    row: Vec<u32>,
    pairs: usize,
}

impl ThresholdMatching {
    fn new(demand: &DemandMatrix, threshold: u64) -> Self {
        let n = demand.racks();
        let mut rows = vec![Vec::new(); n];
        demand.entries().for_each(|(i, j, b)| rows[i.index()].push((j.0, b)));
        let mut held = Self { rows, column: vec![NONE; n], row: vec![NONE; n], pairs: 0 };
        held.rise(threshold);
        held.pairs = held.column.iter().filter(|&&j| j != NONE).count();
        held
    }

    /// Goes on from the matching that it holds to one at a higher threshold; says whether that has
    /// as many pairs, and keeps its own if not.
    fn rise(&mut self, threshold: u64) -> bool {
        let n = self.rows.len();
        let (mut wide, mut column, mut row) = (Wide::new(n), self.column.clone(), self.row.clone());
        for (i, cells) in self.rows.iter().enumerate() {
            wide.fill(i, cells.iter().map(|&(j, b)| (j, b >= threshold)));
        }
        let cell = |i: usize, j: u32| {
            self.rows[i].binary_search_by_key(&j, |c| c.0).map_or(0, |k| self.rows[i][k].1)
        };
        for (i, own) in column.iter_mut().enumerate().filter(|c| *c.1 != NONE) {
            if cell(i, *own) >= threshold {
                wide.take(*own);
            } else {
                row[*own as usize] = NONE;
                *own = NONE;
            }
        }
        let mut pairs = column.iter().filter(|&&j| j != NONE).count();
        // A row from which no path leads to a free column has none later, either.
        let mut spare = (n - pairs) as u32;
        for i in 0..n as u32 {
            if column[i as usize] == NONE {
                if pairs + (spare as usize) < self.pairs {
                    return false;
                }
                spare -= 1;
                pairs += usize::from(wide.place(i, &mut column, &mut row));
            }
        }
        let enough = pairs >= self.pairs;
        if enough {
            (self.column, self.row) = (column, row);
        }
        enough
    }
}

/// What `most` finds at the last of the rising `thresholds` at which it finds as many pairs as at
/// the first.
fn thickest<T: Copy>(thresholds: &[T], most: impl Fn(T) -> Matching) -> Option<Matching> {
    let mut best = most(*thresholds.first()?);
    // The last threshold that still allows as many pairs lies in `low..high`.
    let (mut low, mut high) = (0, thresholds.len());
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        let m = most(thresholds[middle]);
        if m.len() == best.len() {
            (low, best) = (middle, m);
        } else {
            high = middle;
        }
    }
    Some(best)
}

/// [`hopcroft_karp`] for duplex circuits: most pairs that have at least `least` in both directions
/// together. O(R^3).
fn most_pairs(demand: &DemandMatrix, least: u128) -> Matching {
    edmonds(&demand.map_pairs(|i, j, _| u64::from(i < j && both(demand, i, j) >= least)), None)
}

/// [`bottleneck`] for duplex circuits: a bisection of [`most_pairs`].
fn bottleneck_pairs(demand: &DemandMatrix) -> Matching {
    let mut sums: Vec<u128> = demand.entries().map(|(i, j, _)| both(demand, i, j)).collect();
    sums.sort_unstable();
    sums.dedup();
    thickest(&sums, |s| most_pairs(demand, s)).unwrap_or_else(|| Matching::empty(demand.racks()))
}

fn both(demand: &DemandMatrix, i: RackId, j: RackId) -> u128 {
    u128::from(demand.get(i, j)) + u128::from(demand.get(j, i))
}

/// [`hopcroft_karp()`] every interval; on duplex planes as many pairs as can be, by [`edmonds()`]
/// on equal weights.
pub struct HopcroftKarp;

impl Scheduler for HopcroftKarp {
    fn decide(&mut self, ask: &Ask) -> Decision {
        plane_by_plane(ask, false, |p, demand| {
            if ask.planes[p].duplex { most_pairs(demand, 1) } else { hopcroft_karp(demand) }
        })
    }
}

/// [`bottleneck()`] every interval; on duplex planes the same of pairs, by their bytes both ways.
pub struct Bottleneck;

impl Scheduler for Bottleneck {
    fn decide(&mut self, ask: &Ask) -> Decision {
        plane_by_plane(ask, false, |p, demand| {
            if ask.planes[p].duplex { bottleneck_pairs(demand) } else { bottleneck(demand) }
        })
    }
}

fn matching(columns: &[u32]) -> Matching {
    Matching { out: columns.iter().map(|&j| (j != NONE).then_some(RackId(j))).collect() }
}

/// By row: its column in a matching of most cells that are at least `threshold` (which is not
/// zero), of `n * n` row-major cells.
pub(crate) fn most(n: usize, cells: &[u64], threshold: u64) -> Vec<u32> {
    let rows = cells.chunks_exact(n.max(1)).map(|row| {
        let edges = row.iter().enumerate().filter(|c| *c.1 >= threshold.max(1));
        edges.map(|(j, _)| j as u32).collect()
    });
    let mut s = CardinalitySearch {
        rows: rows.collect(),
        column: vec![NONE; n],
        row: vec![NONE; n],
        level: vec![0; n],
        next: vec![0; n],
    };
    while s.layer() {
        // However many paths there are, no cell is tried twice.
        steps::count(n);
        s.next.fill(0);
        for i in 0..n as u32 {
            if s.column[i as usize] == NONE {
                s.augment(i);
            }
        }
    }
    s.column
}

struct CardinalitySearch {
    rows: Vec<Vec<u32>>,
    column: Vec<u32>,
    row: Vec<u32>,
    /// By row: its distance from the free rows.
    level: Vec<u32>,
    /// By row: the first edge not yet tried in this phase.
    next: Vec<u32>,
}

impl CardinalitySearch {
    /// Searches breadth first from the free rows; says whether a free column can be reached.
    fn layer(&mut self) -> bool {
        let mut queue: Vec<u32> = Vec::new();
        for (i, level) in self.level.iter_mut().enumerate() {
            let free = self.column[i] == NONE;
            *level = if free { 0 } else { NONE };
            if free {
                queue.push(i as u32);
            }
        }
        let (mut found, mut head) = (false, 0);
        while let Some(&i) = queue.get(head) {
            steps::count(1);
            head += 1;
            for &j in &self.rows[i as usize] {
                let k = self.row[j as usize];
                if k == NONE {
                    found = true;
                } else if self.level[k as usize] == NONE {
                    self.level[k as usize] = self.level[i as usize] + 1;
                    queue.push(k);
                }
            }
        }
        found
    }

    /// Depth first from free row `root` along the layers, with its own stack.
    fn augment(&mut self, root: u32) {
        let mut path = vec![root];
        while let Some(&i) = path.last() {
            let Some(&j) = self.rows[i as usize].get(self.next[i as usize] as usize) else {
                path.pop();
                continue;
            };
            self.next[i as usize] += 1;
            let k = self.row[j as usize];
            if k == NONE {
                // Each row on the path takes the column that it tried last.
                for &i in &path {
                    let j = self.rows[i as usize][self.next[i as usize] as usize - 1];
                    self.column[i as usize] = j;
                    self.row[j as usize] = i;
                }
                return;
            }
            if self.level[k as usize] == self.level[i as usize] + 1 {
                path.push(k);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// (most pairs, heaviest possible lightest pair among those) by trying everything.
    fn brute(d: &DemandMatrix, i: usize, taken: u32) -> (usize, u64) {
        if i == d.racks() {
            return (0, u64::MAX);
        }
        let row = d.row(RackId::from(i));
        let joined = (0..d.racks()).filter(|&j| row[j] > 0 && taken & (1 << j) == 0).map(|j| {
            let (n, least) = brute(d, i + 1, taken | 1 << j);
            (n + 1, least.min(row[j]))
        });
        joined.max().unwrap_or((0, 0)).max(brute(d, i + 1, taken))
    }

    /// [`brute`] for pairs, by their sums.
    fn brute_pairs(d: &DemandMatrix, i: usize, taken: u32) -> (usize, u128) {
        if i == d.racks() {
            return (0, u128::MAX);
        }
        let alone = brute_pairs(d, i + 1, taken);
        if taken & (1 << i) != 0 {
            return alone;
        }
        let sum = |j: usize| both(d, RackId::from(i), RackId::from(j));
        let joined = (i + 1..d.racks()).filter(|&j| sum(j) > 0 && taken & (1 << j) == 0).map(|j| {
            let (n, least) = brute_pairs(d, i + 1, taken | 1 << j);
            (n + 2, least.min(sum(j)))
        });
        joined.max().unwrap_or((0, 0)).max(alone)
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn most_duplex_pairs_and_the_thickest(
            r in 1usize..7, cells in prop::collection::vec(prop_oneof![3 => Just(0u64), 1 => 0u64..6], 49),
        ) {
            let d = DemandMatrix::zero(r).map_pairs(|i, j, _| cells[i.index() * 7 + j.index()]);
            let (n, least) = brute_pairs(&d, 0, 0);
            for m in [most_pairs(&d, 1), bottleneck_pairs(&d)] {
                prop_assert!(m.pairs().all(|(i, j)| m.output(j) == Some(i) && both(&d, i, j) > 0));
                prop_assert_eq!(m.len(), n);
            }
            let lightest = bottleneck_pairs(&d).pairs().map(|(i, j)| both(&d, i, j)).min();
            prop_assert_eq!(lightest, (n > 0).then_some(least));
        }

        #[test]
        fn most_pairs_and_the_thickest(r in 1usize..7, cells in prop::collection::vec(prop_oneof![Just(0u64), 0u64..6], 49)) {
            let d = DemandMatrix::zero(r).map_pairs(|i, j, _| cells[i.index() * 7 + j.index()]);
            let (n, least) = brute(&d, 0, 0);
            for m in [hopcroft_karp(&d), bottleneck(&d)] {
                prop_assert_eq!(&Matching::from_pairs(r, m.pairs().map(|(i, j)| (i.index(), j.index()))), &m);
                prop_assert!(m.pairs().all(|(i, j)| d.get(i, j) > 0));
                prop_assert_eq!(m.len(), n);
            }
            let mut weights: Vec<u64> = d.entries().map(|e| e.2).collect();
            weights.sort_unstable();
            weights.dedup();
            let afresh = thickest(&weights, |w| matching(&most(r, d.cells(), w)));
            prop_assert_eq!(bottleneck(&d), afresh.unwrap_or_else(|| Matching::empty(r)));
            let lightest = bottleneck(&d).pairs().map(|(i, j)| d.get(i, j)).min();
            prop_assert_eq!(lightest, (n > 0).then_some(least));
        }
    }
}
