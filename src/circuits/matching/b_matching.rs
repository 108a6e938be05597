//! Weighted b-matching: the best circuits for several equal planes (or wavelengths) at once.

use super::num::QUICK_LIMIT;
use super::{deduct, edmonds, transport, usable_pair};
use crate::demand::DemandMatrix;
use crate::ids::RackId;
use crate::{Ask, Decision, Matching, Scheduler, steps};

const NONE: u32 = u32::MAX;

/// Circuits for planes that are alike: at most one an input and one an output on each plane,
/// together carrying as many bytes of `demand` as possible.
///
/// A circuit carries at most `carries` bytes. A pair with more than that may have circuits on
/// several planes. To go plane after plane, taking the best matching each time, is not optimal;
/// this is.
///
/// # Arguments
/// - `demand`: bytes by (input, output), `R x R`.
/// - `carries`: what one circuit carries within the interval; `u64::MAX` where each pair is to have
///   one circuit at most.
/// - `current`: what is up now, W planes. Among the best sets the one that keeps most pairs is
///   taken, and kept pairs stay on their planes where the others leave room.
///
/// # Returns
/// One matching a plane.
///
/// # Complexity
/// O(W R^3) time at worst, near O(W R^2) on most: W R shortest augmenting paths in a network with
/// port capacities W; then O(W^2 R^2) at worst to colour the circuits.
///
/// # Example
/// ```
/// use heliostat_circuits::{Matching, matching::b_matching, demand::DemandMatrix};
/// let d = DemandMatrix::from_rows(&[&[0, 9, 4], &[0, 0, 8], &[0, 0, 0]]);
/// let planes = b_matching(&d, 6, &[Matching::empty(3), Matching::empty(3)]);
/// // Two circuits for each of the pairs 0 -> 1 and 1 -> 2, 17 bytes in all: more than one for each of the three pairs, 16.
/// let both = Matching::from_pairs(3, [(0, 1), (1, 2)]);
/// assert_eq!(planes, [both.clone(), both]);
/// ```
///
/// # Source
/// R. K. Ahuja, T. L. Magnanti and J. B. Orlin, *Network Flows* (1993), section 9.7 (successive
/// shortest paths); D. Koenig (1916) for the colouring. Wavelengths as ports of capacity W:
/// Co-scheduler, section VI.
pub fn b_matching(demand: &DemandMatrix, carries: u64, current: &[Matching]) -> Vec<Matching> {
    let racks = demand.racks();
    let mut left = Gains::new(demand, carries, current).best(current.len() as u32);
    let mut c = Colouring {
        inputs: vec![vec![NONE; racks]; current.len()],
        outputs: vec![vec![NONE; racks]; current.len()],
    };
    for (p, m) in current.iter().enumerate() {
        for (i, j) in m.pairs().filter(|(i, j)| i.index() < racks && j.index() < racks) {
            let used = &mut left[i.index() * racks + j.index()];
            if *used > 0 {
                *used -= 1;
                c.set(p, i.0, j.0);
            }
        }
    }
    for (k, used) in left.iter().enumerate() {
        (0..*used).for_each(|_| c.add((k / racks) as u32, (k % racks) as u32));
    }
    let matching = |row: Vec<u32>| Matching {
        out: row.into_iter().map(|j| (j != NONE).then_some(RackId(j))).collect(),
    };
    c.inputs.into_iter().map(matching).collect()
}

/// What circuits are worth: their bytes, and between equals that they are up.
struct Gains<'a> {
    demand: &'a DemandMatrix,
    carries: u64,
    /// By pair: number of planes on which it is up now; as many of its circuits, from the first,
    /// earn a bonus.
    up: Vec<u32>,
    /// Weight of a byte: larger than that of all bonuses together, so that bonuses only decide
    /// between equal bytes.
    factor: u128,
}

impl<'a> Gains<'a> {
    fn new(demand: &'a DemandMatrix, carries: u64, current: &[Matching]) -> Self {
        let n = demand.racks();
        let mut up = vec![0; n * n];
        for (i, j) in
            current.iter().flat_map(Matching::pairs).filter(|(i, j)| i.index() < n && j.index() < n)
        {
            up[i.index() * n + j.index()] += 1;
        }
        Self { demand, carries: carries.max(1), up, factor: (current.len() * n + 1) as u128 }
    }

    /// What circuit number `k` of a pair is worth: never more than the one before it.
    fn of(&self, i: usize, j: usize, k: u32) -> u128 {
        let at = i * self.demand.racks() + j;
        let bytes = self.demand.cells()[at]
            .saturating_sub(self.carries.saturating_mul(k.into()))
            .min(self.carries);
        u128::from(bytes) * self.factor + u128::from(bytes > 0 && k < self.up[at])
    }

    /// By pair: its circuits in a best set for `planes` planes.
    fn best(&self, planes: u32) -> Vec<u32> {
        let n = self.demand.racks();
        let largest = self.demand.cells().iter().max().map_or(0, |&b| b.min(self.carries));
        if (u128::from(largest) + 1) * self.factor < QUICK_LIMIT {
            transport::solve(n, planes, |i, j, k| self.of(i, j, k) as i64 * 2)
        } else {
            transport::solve(n, planes, |i, j, k| self.of(i, j, k) as i128 * 2)
        }
    }
}

/// Circuits by plane: at most one a port.
struct Colouring {
    inputs: Vec<Vec<u32>>,
    outputs: Vec<Vec<u32>>,
}

impl Colouring {
    fn set(&mut self, p: usize, i: u32, j: u32) {
        (self.inputs[p][i as usize], self.outputs[p][j as usize]) = (j, i);
    }

    /// Adds a circuit whose ports each have a plane free: on a common one, or after an alternating
    /// path has made one common.
    fn add(&mut self, i: u32, j: u32) {
        steps::count(1);
        let planes = self.inputs.len();
        let free = |list: &[Vec<u32>], k: u32| {
            (0..planes).find(|&p| list[p][k as usize] == NONE).expect("at most W circuits a port")
        };
        let common = (0..planes)
            .find(|&p| self.inputs[p][i as usize] == NONE && self.outputs[p][j as usize] == NONE);
        let p = common.unwrap_or_else(|| {
            let (a, b) = (free(&self.inputs, i), free(&self.outputs, j));
            self.swap(j, a, b);
            a
        });
        self.set(p, i, j);
    }

    /// Exchanges planes `a` and `b` along the path from output `j`, which has a circuit on `a` and
    /// none on `b`.
    fn swap(&mut self, j: u32, a: usize, b: usize) {
        let (mut path, mut output, mut j, mut p, mut q) = (Vec::new(), true, j, a, b);
        loop {
            let list = if output { &self.outputs } else { &self.inputs };
            let next = list[p][j as usize];
            if next == NONE {
                break;
            }
            path.push(if output { (p, next, j) } else { (p, j, next) });
            (output, j) = (!output, next);
            std::mem::swap(&mut p, &mut q);
        }
        for &(p, i, j) in &path {
            (self.inputs[p][i as usize], self.outputs[p][j as usize]) = (NONE, NONE);
        }
        for &(p, i, j) in &path {
            self.set(if p == a { b } else { a }, i, j);
        }
    }
}

/// [`b_matching()`] every interval over planes that are alike (rate, delta, usable ports), one
/// group of equal planes after the other; duplex planes get [`edmonds()`] each.
pub struct BMatching;

impl Scheduler for BMatching {
    fn decide(&mut self, ask: &Ask) -> Decision {
        let mut left = ask.demand.clone();
        let nothing = Matching::empty(left.racks());
        let mut all: Vec<Option<Matching>> = vec![None; ask.planes.len()];
        for first in 0..ask.planes.len() {
            if all[first].is_some() {
                continue;
            }
            let plane = &ask.planes[first];
            let alike = |&p: &usize| {
                let other = &ask.planes[p];
                all[p].is_none()
                    && (other.rate, other.delta, other.duplex) == (plane.rate, plane.delta, false)
                    && ask.usable[p] == ask.usable[first]
            };
            let group: Vec<usize> = if plane.duplex {
                vec![first]
            } else {
                (first..ask.planes.len()).filter(alike).collect()
            };
            let wanted = left.map_pairs(|i, j, d| {
                if usable_pair(&ask.usable[first], plane.duplex, i, j) { d } else { 0 }
            });
            let current: Vec<Matching> =
                group.iter().map(|&p| ask.current.get(p).unwrap_or(&nothing).clone()).collect();
            let found = if plane.duplex {
                vec![edmonds(&wanted, Some(&current[0]))]
            } else {
                let carries = plane.rate.bytes_in(ask.interval.saturating_sub(plane.delta)).0;
                b_matching(&wanted, carries, &current)
            };
            for (p, m) in group.into_iter().zip(found) {
                deduct(&mut left, ask, p, &m);
                all[p] = Some(m);
            }
        }
        Decision::hold(all.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bytes that circuits carry, each at most `carries`.
    fn carried(d: &DemandMatrix, carries: u64, planes: &[Matching]) -> u64 {
        let mut left = d.clone();
        for (i, j) in planes.iter().flat_map(Matching::pairs) {
            left.set(i, j, left.get(i, j).saturating_sub(carries));
        }
        d.total() - left.total()
    }

    /// The most bytes, by trying all numbers of circuits of all pairs.
    fn brute(d: &DemandMatrix, carries: u64, k: usize, room: &mut [Vec<u32>; 2]) -> u64 {
        let n = d.racks();
        if k == n * n {
            return 0;
        }
        let (i, j) = (k / n, k % n);
        let (b, most) = (d.get(RackId::from(i), RackId::from(j)), room[0][i].min(room[1][j]));
        let mut best = 0;
        for c in 0..=most {
            room[0][i] -= c;
            room[1][j] -= c;
            best = best.max(b.min(carries * u64::from(c)) + brute(d, carries, k + 1, room));
            room[0][i] += c;
            room[1][j] += c;
            if carries * u64::from(c) >= b {
                break;
            }
        }
        best
    }

    #[test]
    fn plane_after_plane_is_not_optimal_and_this_is() {
        // The heaviest matching (9 + 1 = 10 against 5 + 4) spoils the second plane.
        let d =
            DemandMatrix::from_rows(&[&[0, 9, 5, 0], &[0, 0, 0, 0], &[0, 4, 0, 1], &[0, 0, 0, 0]]);
        let two = [Matching::empty(4), Matching::empty(4)];
        assert_eq!(carried(&d, u64::MAX, &b_matching(&d, u64::MAX, &two)), 19);
        let huge = DemandMatrix::zero(5).map(|_| u64::MAX);
        assert_eq!(b_matching(&huge, u64::MAX, &two).iter().map(Matching::len).sum::<usize>(), 10);
        assert!(b_matching(&DemandMatrix::zero(3), 5, &two).iter().all(Matching::is_empty));
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn it_equals_brute_force(r in 1usize..4, w in 1usize..4, carries in 1u64..6, v in prop::collection::vec(0u64..9, 9), shift: u64) {
            let d = DemandMatrix::zero(r).map_pairs(|i, j, _| v[i.index() * 3 + j.index()]);
            let mut current = vec![Matching::empty(r); w];
            current[0] = super::super::round_robin(r, shift);
            let found = b_matching(&d, carries, &current);
            prop_assert_eq!(found.len(), w);
            for m in &found {
                prop_assert_eq!(&Matching::from_pairs(r, m.pairs().map(|(i, j)| (i.index(), j.index()))), m);
            }
            let mut room = [vec![w as u32; r], vec![w as u32; r]];
            prop_assert_eq!(carried(&d, carries, &found), brute(&d, carries, 0, &mut room));
            // Asked again, nothing moves.
            prop_assert_eq!(&b_matching(&d, carries, &found), &found);
        }

        #[test]
        fn one_plane_is_a_bipartite_matching(r in 1usize..9, v in prop::collection::vec(prop_oneof![Just(0u64), 0u64..1000], 64)) {
            let d = DemandMatrix::zero(r).map_pairs(|i, j, _| v[i.index() * 8 + j.index()]);
            let found = b_matching(&d, u64::MAX, &[Matching::empty(r)]);
            prop_assert_eq!(found[0].weight(&d), super::super::bipartite(&d, None).weight(&d));
        }
    }
}
