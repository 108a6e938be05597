//! Maximum weight bipartite matching: the best set of one-way circuits.

use super::assignment::{self, Assignment, NONE};
use super::num::{self, Num, Scale};
use super::sparse::{self, Rows};
use super::{edmonds, plane_by_plane};
use crate::circuits::{Ask, Decision, Matching, Scheduler};
use crate::demand::DemandMatrix;
use crate::ids::RackId;

/// Up to one cell in this many the sparse solver is the faster one (measured, `benches/matching.rs`).
const SPARSE: usize = 4;

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
    let largest = demand.cells().iter().copied().max().unwrap_or(0);
    if largest == 0 {
        return Matching::empty(demand.racks());
    }
    let scale = Scale::new(demand.racks(), largest.into(), keep.is_some_and(|k| !k.is_empty()));
    if scale.narrow() {
        matching(demand, &solve::<i64>(demand, keep, &scale))
    } else {
        matching(demand, &solve::<i128>(demand, keep, &scale))
    }
}

/// Cells without demand, the diagonal too, count zero: an assignment through them stands for "not joined".
fn solve<N: Num>(demand: &DemandMatrix, keep: Option<&Matching>, scale: &Scale) -> Assignment<N> {
    if is_sparse(demand) {
        sparse::solve(&Rows::one_way(demand, keep, scale))
    } else {
        assignment::solve(demand.racks(), &num::one_way::<N>(demand, keep, scale))
    }
}

fn is_sparse(demand: &DemandMatrix) -> bool {
    demand.cells().iter().filter(|&&b| b > 0).count() <= demand.cells().len() / SPARSE
}

/// The prices of the last interval: a warm start for the next. Begin with the default.
#[derive(Clone, Debug, Default)]
pub struct Prices(Option<Vec<i64>>);

/// [`bipartite()`] from the prices of a similar matrix, which are replaced by this one's. The weight is the same as without;
/// the time is less when demand drifts, by a hundred times on the matrices that are hardest.
///
/// Only the dense solver keeps prices; matrices with few cells are solved afresh, and so are weights beyond 64 bits.
pub fn bipartite_from(prices: &mut Prices, demand: &DemandMatrix, keep: Option<&Matching>) -> Matching {
    let racks = demand.racks();
    let largest = demand.cells().iter().copied().max().unwrap_or(0);
    let scale = Scale::new(racks, largest.into(), true);
    if is_sparse(demand) || !scale.narrow() {
        *prices = Prices::default();
        return bipartite(demand, keep);
    }
    let mut a = assignment::solve_from(racks, &num::one_way::<i64>(demand, keep, &scale), prices.0.take());
    // Prices count only against each other: kept near zero they never run away.
    let least = a.v.iter().copied().min().unwrap_or(0);
    a.v.iter_mut().for_each(|v| *v -= least);
    let m = matching(demand, &a);
    prices.0 = Some(a.v).filter(|v| v.iter().all(|&x| u128::from(x.unsigned_abs()) < num::I64_LIMIT));
    m
}

/// By the solver that suits the number of cells with weight.
pub(super) fn assign<N: Num>(n: usize, w: &[N]) -> Assignment<N> {
    let filled = w.iter().filter(|&&x| x > N::ZERO).count();
    if filled <= n * n / SPARSE { sparse::solve(&Rows::of(n, w)) } else { assignment::solve(n, w) }
}

fn matching<N>(demand: &DemandMatrix, a: &Assignment<N>) -> Matching {
    let joined = |(i, &j): (usize, &u32)| (j != NONE && demand.get(RackId::from(i), RackId(j)) > 0).then_some(RackId(j));
    Matching { out: a.column.iter().enumerate().map(joined).collect() }
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
