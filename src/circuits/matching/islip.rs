//! iSLIP: outputs and inputs agree in rounds, by pointers that rotate; blind to weights, fair over
//! time.

use super::{greedy_pairs, plane_by_plane};
use crate::demand::DemandMatrix;
use crate::ids::RackId;
use crate::{Ask, Decision, Matching, Scheduler, steps};

/// Where each port begins to look; moves on as circuits are given. Begin with the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pointers {
    /// By output: the first input to grant.
    grant: Vec<usize>,
    /// By input: the first output to accept.
    accept: Vec<usize>,
}

/// A maximal matching of pairs with demand, found in rounds. Every free output grants the next
/// input at or after its pointer that asks for it. Every free input accepts the next grant at or
/// after its own pointer.
///
/// The pointers move one beyond what was accepted, in the first round only, which is what keeps any
/// pair from starving: a pair that always has demand is joined at least once in R^2 calls.
///
/// # Arguments
/// - `demand`: bytes by (input, output), `R x R`; only whether a cell is zero matters.
/// - `pointers`: what earlier calls left.
///
/// # Complexity
/// O(R^2) a round, R rounds at most, about log R in the mean.
///
/// # Example
/// ```
/// use heliostat_circuits::{matching::{Pointers, islip}, Matching, demand::DemandMatrix};
/// let d = DemandMatrix::from_rows(&[&[0, 1, 1], &[0, 0, 0], &[0, 0, 0]]);
/// let mut p = Pointers::default();
/// assert_eq!(islip(&d, &mut p), Matching::from_pairs(3, [(0, 1)]));
/// assert_eq!(islip(&d, &mut p), Matching::from_pairs(3, [(0, 2)]));
/// ```
///
/// # Source
/// N. McKeown, *The iSLIP scheduling algorithm for input-queued switches*, IEEE/ACM Trans.
/// Networking 7 (1999).
pub fn islip(demand: &DemandMatrix, pointers: &mut Pointers) -> Matching {
    let n = demand.racks();
    pointers.grant.resize(n, 0);
    pointers.accept.resize(n, 0);
    let mut m = Matching::empty(n);
    let mut taken = vec![false; n];
    for round in 0..n {
        steps::count(2 * n);
        let mut granted = vec![Vec::new(); n];
        for j in (0..n).filter(|&j| !taken[j]) {
            let asks =
                |&i: &usize| m.out[i].is_none() && demand.get(RackId::from(i), RackId::from(j)) > 0;
            if let Some(i) = from_pointer(pointers.grant[j], n).find(asks) {
                granted[i].push(j);
            }
        }
        let before = m.len();
        for (i, outputs) in granted.iter().enumerate() {
            let Some(j) = from_pointer(pointers.accept[i], n).find(|j| outputs.contains(j)) else {
                continue;
            };
            m.out[i] = Some(RackId::from(j));
            taken[j] = true;
            if round == 0 {
                pointers.accept[i] = (j + 1) % n;
                pointers.grant[j] = (i + 1) % n;
            }
        }
        if m.len() == before {
            break;
        }
    }
    m
}

fn from_pointer(pointer: usize, n: usize) -> impl Iterator<Item = usize> {
    (0..n).map(move |k| (pointer + k) % n)
}

/// [`islip()`] every interval; on duplex planes [`greedy_pairs()`].
#[derive(Clone, Debug, Default)]
pub struct Islip {
    /// The pointers of each plane.
    pointers: Vec<Pointers>,
}

impl Scheduler for Islip {
    fn decide(&mut self, ask: &Ask) -> Decision {
        self.pointers.resize(ask.planes.len(), Pointers::default());
        plane_by_plane(ask, false, |p, demand| {
            if ask.planes[p].duplex {
                greedy_pairs(demand)
            } else {
                islip(demand, &mut self.pointers[p])
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn it_is_maximal_and_nobody_starves(r in 1usize..6, v in prop::collection::vec(0u64..2, 25), calls in 0usize..9) {
            let d = DemandMatrix::zero(r).map_pairs(|i, j, _| v[i.index() * 5 + j.index()]);
            let mut p = Pointers::default();
            for _ in 0..calls {
                islip(&d, &mut p);
            }
            let mut met = DemandMatrix::zero(r);
            for _ in 0..r * r {
                let m = islip(&d, &mut p);
                prop_assert_eq!(&Matching::from_pairs(r, m.pairs().map(|(i, j)| (i.index(), j.index()))), &m);
                m.pairs().for_each(|(i, j)| met.add(i, j, 1));
                for (i, j, _) in d.entries() {
                    prop_assert!(m.output(i).is_some() || m.input(j).is_some(), "{i} -> {j} could be joined");
                }
                prop_assert!(m.pairs().all(|(i, j)| d.get(i, j) > 0));
            }
            prop_assert!(d.entries().all(|(i, j, _)| met.get(i, j) > 0), "{d:?} {met:?}");
        }
    }

    #[test]
    fn all_with_all_becomes_a_rotation() {
        let d = DemandMatrix::zero(5).map_pairs(|_, _, _| 1);
        let mut p = Pointers::default();
        // The pointers part after some calls; from then on all ports are used nearly always.
        let sizes: Vec<usize> = (0..40).map(|_| islip(&d, &mut p).len()).collect();
        assert!(sizes[20..].iter().all(|&s| s >= 4), "{sizes:?}");
    }
}
