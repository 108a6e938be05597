//! Maximum weight bipartite matching: the best set of one-way circuits.

use super::assignment::{self, Assignment, NONE};
use super::dense::{Dense, Weights};
use super::num::{self, Scale};
use super::simd;
use super::sparse::{self, SparseCells, SparseRows};
use super::{at_most, edmonds, one_way, plane_by_plane};
use crate::demand::DemandMatrix;
use crate::ids::RackId;
use crate::topology::Plane;
use crate::{Ask, Decision, Matching, Scheduler};

/// Up to one cell in this many the sparse solver is the faster one (measured,
/// `benches/matching.rs`).
pub(super) const SPARSE: usize = 4;

/// The matching of inputs to outputs whose cells of `demand` have the largest sum.
///
/// A partial matching: no rack is joined with itself and no pair without demand is joined. Exact
/// for every `u64`.
///
/// # Arguments
/// - `demand`: bytes by (input, output), `R x R`.
/// - `keep`: what is up now. Among matchings of equal weight the one that keeps most of these
///   circuits is taken, so that circuits do not blink for nothing. Further ties are broken the same
///   way in every run.
///
/// # Complexity
/// O(R^3) time at worst, O(R^2) space.
///
/// # Example
/// ```
/// use heliostat_circuits::{matching::bipartite, demand::DemandMatrix};
/// let d = DemandMatrix::from_rows(&[&[0, 5, 4], &[5, 0, 1], &[3, 0, 0]]);
/// assert_eq!(bipartite(&d, None).weight(&d), 10);
/// ```
///
/// # Source
/// Jonker and Volgenant, Computing 38 (1987). Helios (Farrington et al., SIGCOMM 2010) schedules
/// its circuits by it.
pub fn bipartite(demand: &DemandMatrix, keep: Option<&Matching>) -> Matching {
    Workspace::default().bipartite(demand, keep)
}

/// Memory for matchings that are asked for again and again: what one call has reserved the next one
/// uses. Nothing else is carried over, so the answers are those of the functions of the same names.
/// Begin with the default.
///
/// # Example
/// ```
/// use heliostat_circuits::{matching::{Workspace, bipartite}, demand::DemandMatrix};
/// let mut room = Workspace::default();
/// for x in 0..9 {
///     let d = DemandMatrix::from_rows(&[&[0, 5, 4], &[5, 0, x], &[3, 0, 0]]);
///     assert_eq!(room.bipartite(&d, None), bipartite(&d, None));
/// }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    pub(super) cells: SparseCells,
    pub(super) dense: Dense,
    /// By row: what is up now.
    keep: Vec<u32>,
    /// Symmetric weights.
    pub(super) weights: Vec<i64>,
}

impl Workspace {
    /// As [`bipartite()`].
    pub fn bipartite(&mut self, demand: &DemandMatrix, keep: Option<&Matching>) -> Matching {
        let keep = keep.filter(|k| !k.is_empty());
        if self.cells.read(demand, SPARSE) {
            return joined(&self.cells.assign(keep));
        }
        let bits = at_most(demand);
        let scale = Scale::new(demand.racks(), bits.into(), keep.is_some());
        if let Some(shift) = scale.shift() {
            self.keep(demand.racks(), keep);
            self.dense.cold(&Weights::new(
                demand.racks(),
                simd::signed(demand.cells()),
                shift,
                &self.keep,
            ));
            matching(demand, &self.dense.column)
        } else if scale.narrow() {
            matching(
                demand,
                &assignment::solve(demand.racks(), &num::one_way::<i64>(demand, keep, &scale))
                    .column,
            )
        } else {
            matching(
                demand,
                &assignment::solve(demand.racks(), &num::one_way::<i128>(demand, keep, &scale))
                    .column,
            )
        }
    }

    /// Writes down what is up now; nothing for nothing.
    fn keep(&mut self, racks: usize, keep: Option<&Matching>) {
        self.keep.clear();
        self.keep.extend(
            keep.into_iter()
                .flat_map(|k| (0..racks).map(|i| k.output(RackId::from(i)).map_or(NONE, |j| j.0))),
        );
    }
}

/// The prices and the matching of the last interval: a warm start for the next. Begin with the
/// default.
#[derive(Clone, Debug, Default)]
pub struct Prices {
    pub(super) held: HeldPrices,
    pub(super) room: Workspace,
}

/// Prices and matching, and the kind of solver that left them.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldPrices(Option<(SolverKind, Vec<i64>, Vec<u32>)>);

/// The kind of solver: each counts prices differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SolverKind {
    Dense,
    Sparse,
}

impl HeldPrices {
    /// Takes the prices and the matching of this kind for `n` racks, if there are any.
    fn take(&mut self, kind: SolverKind, n: usize) -> Option<(Vec<i64>, Vec<u32>)> {
        self.0
            .take()
            .filter(|(k, v, _)| *k == kind && v.len() == n)
            .map(|(_, v, column)| (v, column))
    }

    /// Keeps prices that have not run away: all of them below `limit`.
    fn put(&mut self, kind: SolverKind, v: Vec<i64>, column: Vec<u32>, limit: u128) {
        self.0 = Some((kind, v, column))
            .filter(|(_, v, _)| v.iter().all(|x| u128::from(x.unsigned_abs()) < limit));
    }

    /// Forgets them.
    pub(super) fn clear(&mut self) {
        self.0 = None;
    }
}

/// [`bipartite()`] from the prices and the matching of a similar matrix, which are replaced by this
/// one's. The weight is the same as without; where demand drifts, only rows that another column now
/// suits better are looked at again.
///
/// Cells that have no room in 64 bits are solved afresh: where R + 1 times the largest is about
/// 2^58 or more (2^53 where demand is dense).
pub fn bipartite_from(
    prices: &mut Prices,
    demand: &DemandMatrix,
    keep: Option<&Matching>,
) -> Matching {
    let racks = demand.racks();
    let Prices { held, room } = prices;
    if room.cells.read(demand, SPARSE) {
        let scale = Scale::new(racks, room.cells.bits().into(), true);
        if !scale.narrow() {
            held.clear();
            return joined(&room.cells.assign(keep));
        }
        let rows = room.cells.rows::<i64>(keep, &scale);
        return joined(&assign_sparse(Some(held), &rows).column);
    }
    let bits = at_most(demand);
    let scale = Scale::new(racks, bits.into(), true);
    let Some(shift) = scale.shift() else {
        held.clear();
        return room.bipartite(demand, keep);
    };
    room.keep(racks, keep);
    assign_dense(
        Some(held),
        &mut room.dense,
        &Weights::new(racks, simd::signed(demand.cells()), shift, &room.keep),
    );
    matching(demand, &room.dense.column)
}

/// Warm if prices of this kind are held; what is held is then its own.
pub(super) fn assign_sparse(
    held: Option<&mut HeldPrices>,
    rows: &SparseRows<i64>,
) -> Assignment<i64> {
    let Some(held) = held else { return sparse::solve(rows) };
    let a = match held.take(SolverKind::Sparse, rows.racks()) {
        Some((v, column)) => sparse::solve_from(rows, v, &column),
        None => sparse::solve(rows),
    };
    held.put(SolverKind::Sparse, a.v.clone(), a.column.clone(), num::I64_LIMIT);
    a
}

/// Warm if prices of this kind are held; what is held is then its own.
pub(super) fn assign_dense(held: Option<&mut HeldPrices>, dense: &mut Dense, w: &Weights) {
    let Some(held) = held else { return dense.cold(w) };
    match held.take(SolverKind::Dense, w.n) {
        Some((v, column)) => dense.warm(w, &v, &column),
        None => dense.cold(w),
    }
    held.put(SolverKind::Dense, dense.prices(w), dense.column.clone(), num::QUICK_LIMIT);
}

/// From columns by row, all of which have demand.
fn joined(column: &[u32]) -> Matching {
    Matching { out: column.iter().map(|&j| (j != NONE).then_some(RackId(j))).collect() }
}

pub(super) fn matching(demand: &DemandMatrix, column: &[u32]) -> Matching {
    let joined = |(i, &j): (usize, &u32)| {
        (j != NONE && demand.get(RackId::from(i), RackId(j)) > 0).then_some(RackId(j))
    };
    Matching { out: column.iter().enumerate().map(joined).collect() }
}

/// A maximum weight bipartite matching every interval, as in Helios, started warm; on duplex planes
/// [`super::edmonds()`].
#[derive(Clone, Debug, Default)]
pub struct Bipartite {
    /// The last prices of each plane.
    prices: Vec<Prices>,
}

impl Scheduler for Bipartite {
    fn decide(&mut self, ask: &Ask) -> Decision {
        self.prices.resize(ask.planes.len(), Prices::default());
        plane_by_plane(ask, false, |p, demand| {
            let (duplex, keep) = (ask.planes[p].duplex, ask.current.get(p));
            if duplex {
                edmonds(demand, keep)
            } else {
                bipartite_from(&mut self.prices[p], demand, keep)
            }
        })
    }
    fn advice(&self, plane: &Plane) -> Option<String> {
        one_way(plane)
    }
}
