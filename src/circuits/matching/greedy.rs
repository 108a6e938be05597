//! Greedy matching: the heaviest pair first.

use super::{mirrored, plane_by_plane};
use crate::demand::DemandMatrix;
use crate::ids::RackId;
use crate::{Ask, Decision, Matching, Scheduler, steps};

/// Joins the heaviest pair whose ports are both free, and so on: at least half of the maximum
/// weight.
///
/// # Arguments
/// - `demand`: bytes by (input, output), `R x R`. Equal pairs go by the smaller (input, output).
///
/// # Complexity
/// O(E log E) time for E pairs with demand.
///
/// # Example
/// ```
/// use heliostat_circuits::{Matching, matching::greedy, demand::DemandMatrix};
/// let d = DemandMatrix::from_rows(&[&[0, 5, 4], &[4, 0, 0], &[0, 0, 0]]);
/// assert_eq!(greedy(&d), Matching::from_pairs(3, [(0, 1), (1, 0)]));
/// ```
///
/// # Source
/// R. Preis, STACS 1999, on the half; the common baseline of the circuit scheduling papers.
pub fn greedy(demand: &DemandMatrix) -> Matching {
    steps::count(demand.racks());
    let mut pairs: Vec<(RackId, RackId, u128)> = Vec::new();
    demand.entries().for_each(|(i, j, b)| pairs.push((i, j, b.into())));
    heaviest_first(&mut pairs);
    let mut m = Matching::empty(demand.racks());
    let mut taken = vec![false; demand.racks()];
    for (i, j, _) in pairs {
        if m.out[i.index()].is_none() && !taken[j.index()] {
            m.out[i.index()] = Some(j);
            taken[j.index()] = true;
        }
    }
    m
}

/// [`greedy()`] for duplex circuits: the heaviest pair by `D(i,j) + D(j,i)` first, both directions
/// joined. O(E log E).
pub fn greedy_pairs(demand: &DemandMatrix) -> Matching {
    steps::count(demand.racks());
    let mut pairs: Vec<(RackId, RackId, u128)> = Vec::new();
    for i in (0..demand.racks()).map(RackId::from) {
        for j in (i.index() + 1..demand.racks()).map(RackId::from) {
            let sum = u128::from(demand.get(i, j)) + u128::from(demand.get(j, i));
            if sum > 0 {
                pairs.push((i, j, sum));
            }
        }
    }
    heaviest_first(&mut pairs);
    let mut mate = vec![None; demand.racks()];
    for (i, j, _) in pairs {
        if mate[i.index()].is_none() && mate[j.index()].is_none() {
            mate[i.index()] = Some(j);
            mate[j.index()] = Some(i);
        }
    }
    mirrored(mate)
}

fn heaviest_first(pairs: &mut [(RackId, RackId, u128)]) {
    pairs.sort_unstable_by(|a, b| b.2.cmp(&a.2).then((a.0, a.1).cmp(&(b.0, b.1))));
}

/// A greedy matching every interval.
pub struct Greedy;

impl Scheduler for Greedy {
    fn decide(&mut self, ask: &Ask) -> Decision {
        plane_by_plane(ask, false, |p, demand| {
            if ask.planes[p].duplex { greedy_pairs(demand) } else { greedy(demand) }
        })
    }
}
