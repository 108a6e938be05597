//! Maximum weight bipartite matching: the best set of one-way circuits.

use super::assignment::{self, Assignment, NONE};
use super::dense::{Dense, Weights};
use super::num::{self, Scale};
use super::simd;
use super::sparse::{self, Cells, Rows};
use super::{edmonds, plane_by_plane};
use crate::circuits::{Ask, Decision, Matching, Scheduler};
use crate::demand::DemandMatrix;
use crate::ids::RackId;

/// Up to one cell in this many the sparse solver is the faster one (measured, `benches/matching.rs`).
pub(super) const SPARSE: usize = 4;

/// The matching of inputs to outputs whose cells of `demand` have the largest sum.
///
/// A partial matching: no rack is joined with itself and no pair without demand is joined. Exact for every `u64`.
///
/// # Arguments
/// - `demand`: bytes by (input, output), `R x R`.
/// - `keep`: what is up now. Among matchings of equal weight the one that keeps most of these circuits is taken, so that
///   circuits do not blink for nothing. Further ties are broken the same way in every run.
///
/// # Complexity
/// O(R^3) time at worst, O(R^2) space.
///
/// # Example
/// ```
/// use heliostat::{circuits::matching::bipartite, demand::DemandMatrix};
/// let d = DemandMatrix::from_rows(&[&[0, 5, 4], &[5, 0, 1], &[3, 0, 0]]);
/// assert_eq!(bipartite(&d, None).weight(&d), 10);
/// ```
///
/// # Source
/// Jonker and Volgenant, Computing 38 (1987). Helios (Farrington et al., SIGCOMM 2010) schedules its circuits by it.
pub fn bipartite(demand: &DemandMatrix, keep: Option<&Matching>) -> Matching {
    let keep = keep.filter(|k| !k.is_empty());
    if let Some(cells) = Cells::read(demand, SPARSE) {
        return matching(demand, &cells.assign(keep));
    }
    let (bits, _) = simd::survey(demand.cells());
    let scale = Scale::new(demand.racks(), bits.into(), keep.is_some());
    let column = if let Some(shift) = scale.shift() {
        let keep = kept(demand.racks(), keep);
        Dense::cold(&Weights { n: demand.racks(), cells: simd::signed(demand.cells()), shift, keep: &keep }).column
    } else if scale.narrow() {
        assignment::solve(demand.racks(), &num::one_way::<i64>(demand, keep, &scale)).column
    } else {
        assignment::solve(demand.racks(), &num::one_way::<i128>(demand, keep, &scale)).column
    };
    matching(demand, &column)
}

/// By row: what is up now; empty for nothing.
fn kept(racks: usize, keep: Option<&Matching>) -> Vec<u32> {
    keep.map_or(vec![], |k| (0..racks).map(|i| k.output(RackId::from(i)).map_or(NONE, |j| j.0)).collect())
}

/// The prices and the matching of the last interval: a warm start for the next. Begin with the default.
#[derive(Clone, Debug, Default)]
pub struct Prices(Option<(Kind, Vec<i64>, Vec<u32>)>);

/// Whose prices they are: the solvers count differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Dense,
    Sparse,
}

impl Prices {
    /// Takes the prices and the matching of this kind for `n` racks, if there are such.
    fn take(&mut self, kind: Kind, n: usize) -> Option<(Vec<i64>, Vec<u32>)> {
        self.0.take().filter(|(k, v, _)| *k == kind && v.len() == n).map(|(_, v, column)| (v, column))
    }

    /// Keeps prices that have not run away: all of them below `limit`.
    fn put(&mut self, kind: Kind, v: Vec<i64>, column: Vec<u32>, limit: u128) {
        self.0 = Some((kind, v, column)).filter(|(_, v, _)| v.iter().all(|x| u128::from(x.unsigned_abs()) < limit));
    }
}

/// [`bipartite()`] from the prices and the matching of a similar matrix, which are replaced by this one's. The weight is the same as
/// without; where demand drifts, only rows that another column now suits better are looked at again.
///
/// Cells that have no room in 64 bits are solved afresh: where R + 1 times the largest is about 2^58 or more (2^53 where demand is
/// dense).
pub fn bipartite_from(prices: &mut Prices, demand: &DemandMatrix, keep: Option<&Matching>) -> Matching {
    let racks = demand.racks();
    if let Some(cells) = Cells::read(demand, SPARSE) {
        let scale = Scale::new(racks, cells.bits().into(), true);
        if !scale.narrow() {
            *prices = Prices::default();
            return matching(demand, &cells.assign(keep));
        }
        let rows = cells.rows::<i64>(keep, &scale);
        let a = assign_sparse(prices, &rows);
        return matching(demand, &a.column);
    }
    let (bits, _) = simd::survey(demand.cells());
    let scale = Scale::new(racks, bits.into(), true);
    let Some(shift) = scale.shift() else {
        *prices = Prices::default();
        return bipartite(demand, keep);
    };
    let keep = kept(racks, keep);
    let w = Weights { n: racks, cells: simd::signed(demand.cells()), shift, keep: &keep };
    matching(demand, &assign_dense(prices, &w).column)
}

/// Warm if there are prices of this kind, and leaves its own.
pub(super) fn assign_sparse(prices: &mut Prices, rows: &Rows<i64>) -> Assignment<i64> {
    let a = match prices.take(Kind::Sparse, rows.racks()) {
        Some((v, column)) => sparse::solve_from(rows, v, &column),
        None => sparse::solve(rows),
    };
    prices.put(Kind::Sparse, a.v.clone(), a.column.clone(), num::I64_LIMIT);
    a
}

/// Warm if there are prices of this kind, and leaves its own.
pub(super) fn assign_dense(prices: &mut Prices, w: &Weights) -> Assignment<i64> {
    let s = match prices.take(Kind::Dense, w.n) {
        Some((v, column)) => Dense::warm(w, v, &column),
        None => Dense::cold(w),
    };
    prices.put(Kind::Dense, s.prices(), s.column.clone(), num::QUICK_LIMIT);
    s.assignment(w)
}

pub(super) fn matching(demand: &DemandMatrix, column: &[u32]) -> Matching {
    let joined = |(i, &j): (usize, &u32)| (j != NONE && demand.get(RackId::from(i), RackId(j)) > 0).then_some(RackId(j));
    Matching { out: column.iter().enumerate().map(joined).collect() }
}

/// A maximum weight bipartite matching every interval, as in Helios, started warm; on duplex planes [`super::edmonds()`].
#[derive(Clone, Debug, Default)]
pub struct Bipartite {
    /// By plane.
    prices: Vec<Prices>,
}

impl Scheduler for Bipartite {
    fn name(&self) -> &'static str {
        "bipartite"
    }
    fn decide(&mut self, ask: &Ask) -> Decision {
        self.prices.resize(ask.planes.len(), Prices::default());
        plane_by_plane(ask, false, |p, demand| {
            let (duplex, keep) = (ask.planes[p].duplex, ask.current.get(p));
            if duplex { edmonds(demand, keep) } else { bipartite_from(&mut self.prices[p], demand, keep) }
        })
    }
}
