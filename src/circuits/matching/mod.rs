//! Matchings of a demand matrix: one algorithm a file, each a pure function, and the
//! [`Scheduler`](super::Scheduler)s that wrap them.
//!
//! | function | circuits | finds |
//! |---|---|---|
//! | [`bipartite()`] | one way | the maximum weight, exactly |
//! | [`Workspace`] | one way, in pairs | the same again and again, without asking for memory each time |
//! | [`edmonds()`] | in pairs | the maximum weight, exactly |
//! | [`b_matching()`] | one way, several planes | the maximum weight over all planes, exactly |
//! | [`greedy()`], [`greedy_pairs()`] | one way, in pairs | at least half of it |
//! | [`hopcroft_karp()`] | one way | most circuits |
//! | [`bottleneck()`] | one way | most circuits, the thinnest as thick as can be |
//! | [`islip()`] | one way | a maximal matching, fair over time |
//! | [`round_robin()`], [`tournament()`] | one way, in pairs | a rotation, blind to demand |
//! | [`hold()`] | either | most bytes carried in the interval, dark time counted |
//!
//! With several planes the periodic schedulers go plane after plane: what a plane can carry within
//! the interval is taken from the demand before the next one is asked. Pairs with a port that is
//! not usable are left out.

use super::{Ask, Decision, Matching, Usable};
use crate::demand::DemandMatrix;
use crate::ids::RackId;
use crate::topology::{Plane, StopMode};

pub(crate) mod assignment;
mod b_matching;
mod bipartite;
mod blossom;
mod cardinality;
mod dense;
mod edmonds;
mod eps_only;
#[cfg(test)]
mod exhaustive;
mod greedy;
mod hold;
mod islip;
mod manual;
mod num;
mod round_robin;
mod simd;
mod sparse;
mod symmetric;
#[cfg(test)]
mod tests;
mod transport;
pub(crate) mod wide;

pub use b_matching::{BMatching, b_matching};
pub use bipartite::{Bipartite, Prices, Workspace, bipartite, bipartite_from};
pub use cardinality::{Bottleneck, HopcroftKarp, bottleneck, hopcroft_karp};
pub use edmonds::{Edmonds, edmonds, edmonds_from};
pub use eps_only::EpsOnly;
pub use greedy::{Greedy, greedy, greedy_pairs};
pub use hold::{DarkTimeAware, hold};
pub use islip::{Islip, Pointers, islip};
pub use manual::Manual;
pub use round_robin::{RoundRobin, round_robin, rounds, tournament};

/// Asks `one` for a matching of each plane, in order. It gets the plane's number, and the demand
/// that usable ports may carry and that earlier planes leave. With `pairs`, every plane has only
/// racks whose ports may be used both ways. O(R^2) a plane besides `one`.
pub fn plane_by_plane(
    ask: &Ask,
    pairs: bool,
    mut one: impl FnMut(usize, &DemandMatrix) -> Matching,
) -> Decision {
    let mut left = ask.demand.clone();
    let mut all = Vec::with_capacity(ask.planes.len());
    for (p, plane) in ask.planes.iter().enumerate() {
        let (pairs, usable) = (pairs || plane.duplex, &ask.usable[p]);
        let may = |i, j, d| if usable_pair(usable, pairs, i, j) { d } else { 0 };
        let m = if usable.is_all() { one(p, &left) } else { one(p, &left.map_pairs(may)) };
        // What the last plane leaves is not asked for.
        if p + 1 < ask.planes.len() {
            deduct(&mut left, ask, p, &m);
        }
        all.push(m);
    }
    Decision::hold(all)
}

/// Takes from `left` what plane `p` carries within the interval by `m`, dark time counted.
fn deduct(left: &mut DemandMatrix, ask: &Ask, p: usize, m: &Matching) {
    let plane = &ask.planes[p];
    let stays = plane.rate.bytes_in(ask.interval).0;
    let moves = plane.rate.bytes_in(ask.interval.saturating_sub(plane.delta)).0;
    let unchanged = ask.current.get(p) == Some(m);
    for (i, j) in m.pairs() {
        let kept = ask.current.get(p).is_some_and(|c| c.output(i) == Some(j));
        let kept = unchanged || (kept && plane.stop == StopMode::NotAllStop);
        left.set(i, j, left.get(i, j).saturating_sub(if kept { stays } else { moves }));
    }
}

/// Whether the ports of a circuit (of both directions, where they come in pairs) may be used.
pub fn usable_pair(usable: &Usable, pairs: bool, i: RackId, j: RackId) -> bool {
    let (i, j) = (i.index(), j.index());
    usable.input[i] && usable.output[j] && (!pairs || (usable.input[j] && usable.output[i]))
}

/// A number that no cell of the demand exceeds: the bits of all, or-ed. O(R^2), several cells at a
/// time.
pub(crate) fn at_most(demand: &DemandMatrix) -> u64 {
    simd::bits(simd::SimdLevel::for_rows_of(demand.racks()), demand.cells())
}

/// Appends the places and the values of a row's cells that are not zero. O(R), several cells at a
/// time.
pub(crate) fn gather(row: &[u64], columns: &mut Vec<u32>, values: &mut Vec<u64>) {
    simd::gather(simd::SimdLevel::for_rows_of(row.len()), row, columns, values);
}

/// What to say of a scheduler of circuits one way on a duplex plane.
fn one_way(plane: &Plane) -> Option<String> {
    plane.duplex.then(|| {
        format!("plane {} is duplex: edmonds is the exact matching there, not bipartite", plane.id)
    })
}

/// No circuit on any plane.
fn none(ask: &Ask) -> Decision {
    Decision::hold(ask.planes.iter().map(|_| Matching::empty(ask.demand.racks())))
}

/// The duplex matching in which every rack is joined with its mate, both ways.
fn mirrored(mate: Vec<Option<RackId>>) -> Matching {
    debug_assert!(
        mate.iter()
            .enumerate()
            .all(|(i, m)| m.is_none_or(|j| mate[j.index()] == Some(RackId::from(i))))
    );
    Matching { out: mate }
}
