//! Maximum weight matching of a general graph: the best set of circuits that come in pairs.

use super::assignment::{self, Assignment};
use super::bipartite::{HeldPrices, Prices, Workspace, assign_dense, assign_sparse};
use super::blossom::{BlossomState, NONE, WeightTable, WeightedGraph};
use super::dense::Weights;
use super::num::Scale;
use super::sparse::RankedRows;
use super::symmetric::{self, Symmetric};
use super::{at_most, mirrored, plane_by_plane};
use crate::demand::DemandMatrix;
use crate::ids::RackId;
use crate::{Ask, Decision, Matching, Scheduler};

/// Up to one cell in this many the sparse solver is the faster one (measured, `scripts/peers`). The
/// symmetric matrix has up to two cells for each of the demand's.
const SPARSE: usize = 6;

/// Of up to this number of racks a search may have a place for each rack in each of its cycles: 16
/// MB at most.
const SPREAD: usize = if cfg!(test) { 9 } else { 2048 };

/// The matching of racks in pairs with the largest sum of `D(i,j) + D(j,i)`; every pair is joined
/// both ways.
///
/// A partial matching: a pair without demand is not joined. Exact for every `u64`; the duals
/// certify the optimum.
///
/// The fractional relaxation of this problem is the assignment problem on the symmetric weights,
/// with the diagonal for "not matched". Its optimum is made of even cycles, which are matched at
/// once, and odd cycles, each of which leaves one rack exposed; a blossom search from each of those
/// finishes, starting from the assignment's duals.
///
/// # Arguments
/// - `demand`: bytes by (input, output), `R x R`.
/// - `keep`: what is up now. Among matchings of equal weight the one that keeps most of these
///   circuits is taken. Further ties are broken the same way in every run.
///
/// # Complexity
/// O(R^3 log R) time at worst, O(R^2 log R) a blossom search; O(R^2) space.
///
/// # Example
/// ```
/// use heliostat_circuits::{Matching, matching::edmonds, demand::DemandMatrix};
/// let d = DemandMatrix::from_rows(&[&[0, 5, 0, 0], &[0, 0, 6, 0], &[0, 0, 0, 2], &[0, 0, 0, 0]]);
/// assert_eq!(edmonds(&d, None), Matching::from_pairs(4, [(0, 1), (1, 0), (2, 3), (3, 2)]));
/// ```
///
/// # Source
/// J. Edmonds, *Maximum matching and a polyhedron with 0,1-vertices* (1965); H. N. Gabow (1974) and
/// E. L. Lawler (1976) for O(n^3). c-Through (Wang et al., SIGCOMM 2010) schedules its circuits by
/// it.
pub fn edmonds(demand: &DemandMatrix, keep: Option<&Matching>) -> Matching {
    Workspace::default().edmonds(demand, keep)
}

impl Workspace {
    /// As [`edmonds()`].
    pub fn edmonds(&mut self, demand: &DemandMatrix, keep: Option<&Matching>) -> Matching {
        solve(demand, keep, keep.is_some_and(|k| !k.is_empty()), None, self)
    }
}

/// [`edmonds()`] from the fractional optimum of a similar matrix, which is replaced by this one's.
/// The weight is the same as without. Weights that have no room in 64 bits are solved afresh, as in
/// [`super::bipartite_from`].
pub fn edmonds_from(
    prices: &mut Prices,
    demand: &DemandMatrix,
    keep: Option<&Matching>,
) -> Matching {
    solve(demand, keep, true, Some(&mut prices.held), &mut prices.room)
}

fn solve(
    demand: &DemandMatrix,
    keep: Option<&Matching>,
    keeping: bool,
    mut held: Option<&mut HeldPrices>,
    room: &mut Workspace,
) -> Matching {
    let n = demand.racks();
    let sparse = room.cells.read(demand, SPARSE);
    if let Some(mut cells) = sparse.then(|| room.cells.both_ways()).flatten() {
        let scale = Scale::new(n, cells.bits().into(), keeping);
        if scale.narrow() {
            let rows = cells.pairs::<i64>(keep, &scale);
            let a = assign_sparse(held, &rows);
            return paired(if n <= SPREAD {
                finish(&RankedRows(&rows), &a)
            } else {
                finish(&rows, &a)
            });
        }
    }
    let bits = at_most(demand);
    if bits == 0 {
        return Matching::empty(n);
    }
    let scale = Scale::new(n, 2 * u128::from(bits), keeping);
    if scale.narrow() {
        let mut w = std::mem::take(&mut room.weights);
        symmetric::both_ways(demand, keep, &scale, &mut w);
        let a = match scale.shift() {
            Some((_, spare)) => {
                let weights = Weights::new(n, &w, (0, spare), &[]).symmetric();
                assign_dense(held, &mut room.dense, &weights);
                room.dense.assignment(&weights)
            }
            None => assignment::solve(n, &w),
        };
        let mate = finish(&WeightTable(n, &w), &a);
        room.weights = w;
        return paired(mate);
    }
    if let Some(held) = held.as_mut() {
        held.clear();
    }
    let mut w = Vec::<i128>::new();
    symmetric::both_ways(demand, keep, &scale, &mut w);
    paired(finish(&WeightTable(n, &w), &assignment::solve(n, &w)))
}

/// From an optimal assignment of the symmetric weights to every rack's mate.
fn finish<N: Symmetric, G: WeightedGraph<N>>(w: &G, a: &Assignment<N>) -> Vec<u32> {
    let (y, mate) = matched_cycles(w, a);
    if y.iter().zip(&mate).all(|(&y, &m)| m != NONE || y == N::ZERO) {
        return mate;
    }
    let mut m = BlossomState::new(mate.len(), w, y, mate);
    m.run();
    m.mate
}

fn paired(mate: Vec<u32>) -> Matching {
    mirrored(mate.into_iter().map(|m| (m != NONE).then_some(RackId(m))).collect())
}

/// The machine from which [`finish`] goes on.
#[cfg(test)]
pub(super) fn begin<'a, N: Symmetric, G: WeightedGraph<N>>(
    w: &'a G,
    a: &Assignment<N>,
) -> BlossomState<'a, N, G> {
    let (y, mate) = matched_cycles(w, a);
    BlossomState::new(mate.len(), w, y, mate)
}

/// The duals and a matching of tight edges, from any optimal assignment of the symmetric weights.
/// It is made of cycles and of paths. The racks at a path's two ends have dual zero: by symmetry, a
/// rack that is alone as a row may as well be alone as a column.
fn matched_cycles<N: Symmetric, G: WeightedGraph<N>>(
    w: &G,
    a: &Assignment<N>,
) -> (Vec<N>, Vec<u32>) {
    let n = a.column.len();
    let y: Vec<N> = a.u.iter().zip(&a.v).map(|(&u, &v)| u + v).collect();
    let mut mate = vec![NONE; n];
    let mut seen = vec![false; n];
    let mut entered = vec![false; n];
    a.column.iter().filter(|&&j| j != NONE).for_each(|&j| entered[j as usize] = true);
    let mut chain = Vec::new();
    for start in (0..n).filter(|&i| !entered[i]).chain(0..n) {
        chain.clear();
        let mut i = start;
        while i != NONE as usize && !std::mem::replace(&mut seen[i], true) {
            chain.push(i);
            i = a.column[i] as usize;
        }
        // Begin with a rack of dual zero, if there is one: it may stay exposed. (A path does
        // already.)
        if entered[start] {
            let rest = chain.iter().position(|&i| y[i] == N::ZERO).unwrap_or(0);
            chain.rotate_left(rest);
        }
        match_chain(&chain, |i, j| w.weight(i as u32, j as u32) > N::ZERO, &mut mate);
    }
    (y, mate)
}

/// Matches a chain's consecutive racks where they have an edge; the first of an odd number stays
/// exposed.
fn match_chain(chain: &[usize], edge: impl Fn(usize, usize) -> bool, mate: &mut [u32]) {
    for pair in chain[chain.len() % 2..].chunks_exact(2) {
        if edge(pair[0], pair[1]) {
            mate[pair[0]] = pair[1] as u32;
            mate[pair[1]] = pair[0] as u32;
        }
    }
}

/// A maximum weight matching of pairs every interval, as in c-Through. On planes that are not
/// duplex both directions are set as well.
#[derive(Clone, Debug, Default)]
pub struct Edmonds {
    /// The last prices of each plane.
    prices: Vec<Prices>,
}

impl Scheduler for Edmonds {
    fn decide(&mut self, ask: &Ask) -> Decision {
        self.prices.resize(ask.planes.len(), Prices::default());
        plane_by_plane(ask, true, |p, demand| {
            edmonds_from(&mut self.prices[p], demand, ask.current.get(p))
        })
    }
}
