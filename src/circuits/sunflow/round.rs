//! A round of Sunflow's guard against starvation: circuits that all coflows share.
//!
//! Between windows in which coflows go in their order, all ports are joined by one of the R - 1
//! fixed assignments that together join all pairs of racks, the next one in each round. So every
//! coflow gets light for each of its pairs in R - 1 rounds, whatever its place.

use super::need::LightNeed;
use super::window::{HeldCircuit, PairCircuit};
use crate::units::{Span, Time};

/// Circuits from `at` to `until` by the fixed assignment of `round`: input i to output i + 1 +
/// (round modulo R - 1). The coflows that need a circuit share its light evenly, what one does not
/// need going to the others, and use it one after another.
///
/// # Arguments
/// - `coflows`: in order of priority; `delta`: time in the dark for a new circuit.
/// - `held`: circuits that exist at `at`; those that are of the assignment go on.
///
/// # Complexity
/// O(R (K log K + H)) for R ports, K coflows and H circuits held.
///
/// # Source
/// Huang, Sun, Ng, *Sunflow: efficient optical circuit scheduling for coflows*, CoNEXT 2016,
/// section 4.2. That coflows share a circuit evenly is ours, where the paper says that they share
/// it.
pub fn round(
    coflows: &[&LightNeed],
    delta: Span,
    held: &[HeldCircuit],
    (at, until): (Time, Time),
    round: u64,
) -> Vec<PairCircuit> {
    let ports = coflows.first().map_or(0, |n| n.ports() as u64);
    let Some(beyond) = ports.checked_sub(1).filter(|&n| n > 0).map(|n| 1 + round % n) else {
        return vec![];
    };
    let mut circuits = Vec::new();
    for input in 0..ports {
        let joined = (input as u32, ((input + beyond) % ports) as u32);
        let up = held
            .iter()
            .filter(|h| h.ports == joined)
            .map(|h| at.max(h.ready))
            .min()
            .unwrap_or(at + delta);
        let wants = coflows.iter().enumerate().filter_map(|(place, n)| {
            n.find(joined.0, joined.1).map(|pair| (place, pair, n.rest(pair).0))
        });
        let wants: Vec<_> = wants.collect();
        let shares = even(until.since(up).0, &wants.iter().map(|w| w.2).collect::<Vec<_>>());
        let mut up_from = up;
        for (&(place, pair, _), share) in wants.iter().zip(shares).filter(|w| w.1 > 0) {
            let until = up_from + Span(share);
            circuits.push(PairCircuit { place, pair, from: at, up_from, until });
            up_from = until;
        }
    }
    circuits
}

/// Divides `light` evenly: no share is larger than what is needed, and what is left over goes to
/// those that need more.
fn even(light: u64, needs: &[u64]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..needs.len()).collect();
    order.sort_by_key(|&k| needs[k]);
    let (mut shares, mut left) = (vec![0; needs.len()], light);
    for (done, k) in order.into_iter().enumerate() {
        shares[k] = needs[k].min(left / (needs.len() - done) as u64);
        left -= shares[k];
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Circuits as input, output, coflow, light from and to.
    fn found(
        coflows: &[LightNeed],
        held: &[HeldCircuit],
        number: u64,
    ) -> Vec<(u32, u32, usize, u64, u64)> {
        let needs: Vec<&LightNeed> = coflows.iter().collect();
        let all = round(&needs, Span(10), held, (Time(1000), Time(1100)), number);
        all.iter()
            .map(|c| (needs[c.place].pair(c.pair), c))
            .map(|((i, j), c)| (i, j, c.place, c.up_from.0, c.until.0))
            .collect()
    }

    #[test]
    fn coflows_share_a_fixed_assignment_and_each_pair_has_its_round() {
        let coflows = [
            LightNeed::new(3, &[(0, 1, 20), (0, 2, 500)]),
            LightNeed::new(3, &[(0, 1, 500), (1, 2, 30)]),
            LightNeed::new(3, &[(0, 1, 500)]),
        ];
        // 90 of light: 20 are enough for the first, the others have 35 each.
        let first = [
            (0, 1, 0, 1010, 1030),
            (0, 1, 1, 1030, 1065),
            (0, 1, 2, 1065, 1100),
            (1, 2, 1, 1010, 1040),
        ];
        assert_eq!(found(&coflows, &[], 0), first);
        assert_eq!(found(&coflows, &[], 1), [(0, 2, 0, 1010, 1100)]);
        assert_eq!(found(&coflows, &[], 2), first, "three ports have two assignments");
        // A circuit that exists goes on, and one that is being set up is so in the time it has
        // left.
        let held = [HeldCircuit { ports: (0, 2), ready: Time(400), owner: 0 }];
        assert_eq!(found(&coflows, &held, 1), [(0, 2, 0, 1000, 1100)]);
        assert_eq!(
            found(&coflows, &[HeldCircuit { ready: Time(1004), ..held[0] }], 1),
            [(0, 2, 0, 1004, 1100)]
        );
        assert_eq!(found(&[], &[], 0), []);
        assert_eq!(found(&[LightNeed::new(1, &[])], &[], 0), [], "one rack has no pair");
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn shares_are_max_min_fair(light in 0u64..200, needs in prop::collection::vec(0u64..100, 0..6)) {
            let shares = even(light, &needs);
            // By the book: a unit after another to the least that has not enough.
            let mut slow = vec![0; needs.len()];
            for _ in 0..light {
                if let Some(k) = (0..needs.len()).filter(|&k| slow[k] < needs[k]).min_by_key(|&k| (slow[k], std::cmp::Reverse(needs[k]))) {
                    slow[k] += 1;
                }
            }
            let sorted = |mut v: Vec<u64>| { v.sort_unstable(); v };
            prop_assert_eq!(shares.iter().sum::<u64>(), slow.iter().sum::<u64>());
            prop_assert!(sorted(shares).iter().zip(sorted(slow)).all(|(a, b)| a.abs_diff(b) <= 1));
        }

        #[test]
        fn all_pairs_are_joined_once_in_as_many_rounds(ports in 2usize..9, from in 0u64..100) {
            let to = |i: u32| (0..ports as u32).filter(move |&j| i != j).map(move |j| (i, j, 500));
            let all: Vec<_> = (0..ports as u32).flat_map(to).collect();
            let need = LightNeed::new(ports, &all);
            let rounds = (from..from + ports as u64 - 1).flat_map(|n| found(std::slice::from_ref(&need), &[], n));
            let mut joined: Vec<_> = rounds.map(|(i, j, ..)| (i, j, 500)).collect();
            joined.sort_unstable();
            prop_assert_eq!(joined, all);
        }
    }
}
