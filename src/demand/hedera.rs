//! Hedera's natural demand: what the busy pairs would send were only the hosts' links the limit.
//!
//! What a pair sends over a slow network says little of what it would send over a fast one. Hedera (Al-Fares et al., NSDI
//! 2010, section 4.2) takes only *which* flows there are, and shares the ends' capacities among them max-min fairly: sources
//! raise their flows, overbooked destinations cut theirs, until nothing changes. Helios schedules circuits on it.

use super::DemandMatrix;
use crate::ids::RackId;
use crate::topology::Topology;
use crate::units::Span;

/// The natural demand of an interval between racks, in bytes.
///
/// A pair is an elephant if the bytes it sent and those that wait make a tenth of a host's link (Hedera's threshold) over the
/// interval. Elephants are shared out by [`natural`], one flow a pair, with the sum of a rack's host links as its capacity in
/// each direction. All other pairs (acknowledgements, mice) keep what they have, and do not press on the elephants.
///
/// # Arguments
/// - `sent`: bytes of the last interval, `R x R`; `backlog`: bytes that wait now, `R x R`.
/// - `topology`: the hosts and their links; `interval`: its length.
///
/// # Panics
/// If the matrices and the topology differ in size.
pub fn estimate(sent: &DemandMatrix, backlog: &DemandMatrix, topology: &Topology, interval: Span) -> DemandMatrix {
    let racks = topology.rack_count();
    assert!(sent.racks() == racks && backlog.racks() == racks, "matrices of one network");
    let capacity: Vec<u64> = topology.racks.iter().map(|r| topology.rack_nic(r.id).bytes_in(interval).0).collect();
    let tenth = |r: RackId| {
        let nic = topology.hosts_of(r).iter().map(|h| h.nic).min().unwrap_or_default();
        (nic.bytes_in(interval).0 / 10).max(1)
    };
    let tenths: Vec<u64> = topology.racks.iter().map(|r| tenth(r.id)).collect();
    let wants = sent.map_pairs(|i, j, s| s.saturating_add(backlog.get(i, j)));
    let elephants = wants.map_pairs(|i, _, b| u64::from(b >= tenths[i.index()]));
    let shares = natural(&elephants, &capacity, &capacity);
    wants.map_pairs(|i, j, b| if elephants.get(i, j) > 0 { shares.get(i, j) } else { b })
}

/// Hedera's demand estimation on any set of flows.
///
/// # Arguments
/// - `flows`: how many flows each pair has, `R x R` (all flows of a pair get the same).
/// - `out`, `into`: what each rack can send and receive, in bytes; R each.
///
/// # Returns
/// Bytes by pair, the sum over its flows, rounded down a flow. No rack sends more than `out` or receives more than `into`.
///
/// # Complexity
/// O(R^2) a round; as many rounds as destinations are cut one after the other, O(R) at most.
///
/// # Source
/// Hedera, NSDI 2010, figures 7 and 8.
pub fn natural(flows: &DemandMatrix, out: &[u64], into: &[u64]) -> DemandMatrix {
    let racks = flows.racks();
    assert!(out.len() == racks && into.len() == racks, "a capacity for each rack");
    let mut e = Estimate { flows, each: DemandMatrix::zero(racks), cut: vec![false; racks * racks] };
    for _ in 0..4 * racks + 4 {
        let before = e.each.clone();
        for (i, &capacity) in out.iter().enumerate() {
            e.raise(RackId::from(i), capacity);
        }
        for (j, &capacity) in into.iter().enumerate() {
            e.limit(RackId::from(j), capacity);
        }
        if e.each == before {
            break;
        }
    }
    e.each.map_pairs(|i, j, d| d.saturating_mul(flows.get(i, j)))
}

struct Estimate<'a> {
    flows: &'a DemandMatrix,
    /// Bytes of each flow of a pair.
    each: DemandMatrix,
    /// By cell: its destination has cut it; its source raises it no more ("converged").
    cut: Vec<bool>,
}

impl Estimate<'_> {
    fn of(&self, i: RackId, j: RackId) -> (u128, u128) {
        (self.flows.get(i, j).into(), self.each.get(i, j).into())
    }

    fn is_cut(&self, i: RackId, j: RackId) -> bool {
        self.cut[i.index() * self.flows.racks() + j.index()]
    }

    /// Shares what the cut flows leave of the source's capacity equally among the others.
    fn raise(&mut self, i: RackId, capacity: u64) {
        let (mut used, mut count) = (0, 0);
        let all = || (0..self.flows.racks()).map(RackId::from);
        for j in all() {
            let (n, d) = self.of(i, j);
            if self.is_cut(i, j) { used += n * d } else { count += n }
        }
        let Some(share) = u128::from(capacity).saturating_sub(used).checked_div(count) else { return };
        for j in (0..self.flows.racks()).map(RackId::from) {
            if self.flows.get(i, j) > 0 && !self.is_cut(i, j) {
                self.each.set(i, j, share as u64);
            }
        }
    }

    /// Cuts the flows of an overbooked destination to the largest equal share at which all fit.
    fn limit(&mut self, j: RackId, capacity: u64) {
        let mut from: Vec<(u128, u128, RackId)> = Vec::new();
        for i in (0..self.flows.racks()).map(RackId::from) {
            let (n, d) = self.of(i, j);
            if n > 0 {
                from.push((d, n, i));
            }
        }
        let capacity = u128::from(capacity);
        if from.iter().map(|&(d, n, _)| d * n).sum::<u128>() <= capacity {
            return;
        }
        from.sort_unstable();
        let (mut left, mut count) = (capacity, from.iter().map(|f| f.1).sum::<u128>());
        for &(d, n, i) in &from {
            let share = left / count;
            if d >= share {
                self.each.set(i, j, share as u64);
                self.cut[i.index() * self.flows.racks() + j.index()] = true;
                left -= share * n;
            } else {
                left -= d * n;
            }
            count -= n;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BitRate;
    use proptest::prelude::*;

    #[test]
    fn the_papers_example() {
        // Figure 8: four hosts; the number of flows a pair, then the demand of each flow in thirds of a link.
        let flows = DemandMatrix::from_rows(&[&[0, 1, 1, 1], &[2, 0, 1, 0], &[1, 0, 0, 1], &[0, 2, 0, 0]]);
        let link = [3_000_000; 4];
        let thirds = [[0, 1, 1, 1], [2, 0, 1, 0], [1, 0, 0, 2], [0, 2, 0, 0]].map(|r| r.map(|x| x * 1_000_000));
        let rows: Vec<&[u64]> = thirds.iter().map(|r| r.as_slice()).collect();
        assert_eq!(natural(&flows, &link, &link), DemandMatrix::from_rows(&rows));
    }

    #[test]
    fn mice_do_not_press_on_elephants() {
        let t = Topology::uniform("t", 3, 2, BitRate::mbit(80), BitRate::mbit(8), vec![]);
        // A host link carries 1 MB in 100 ms, a rack 2 MB.
        let sent = DemandMatrix::from_rows(&[&[0, 100_000, 20_000], &[3_000, 0, 0], &[0, 99_999, 0]]);
        let backlog = DemandMatrix::from_rows(&[&[0, 0, 80_000], &[0, 0, 0], &[0, 0, 0]]);
        let found = estimate(&sent, &backlog, &t, Span::millis(100));
        assert_eq!(found, DemandMatrix::from_rows(&[&[0, 1_000_000, 1_000_000], &[3_000, 0, 0], &[0, 99_999, 0]]));
    }

    /// What an end can carry: nothing, a few bytes or many.
    fn capacity() -> impl Strategy<Value = u64> {
        prop_oneof![1 => Just(0u64), 1 => 0u64..100, 4 => 0u64..1 << 40]
    }

    proptest! {
        #[test]
        fn nothing_is_overbooked_and_no_flow_could_have_more(
            racks in 1usize..7, counts in prop::collection::vec(0u64..4, 49), out in prop::collection::vec(capacity(), 7),
            into in prop::collection::vec(capacity(), 7),
        ) {
            let flows = DemandMatrix::zero(racks).map_pairs(|i, j, _| counts[i.index() * 7 + j.index()]);
            let d = natural(&flows, &out[..racks], &into[..racks]);
            let row = |i: usize| d.row(RackId::from(i)).iter().sum::<u64>();
            let column = |j: usize| (0..racks).map(|i| d.get(RackId::from(i), RackId::from(j))).sum::<u64>();
            for i in 0..racks {
                prop_assert!(row(i) <= out[i] && column(i) <= into[i]);
            }
            // Rounding leaves less than one byte a flow at an end, and what one end leaves the other may pass on.
            let slack = 64 * 49;
            for (i, j, _) in flows.entries() {
                let (full_out, full_in) = (row(i.index()) + slack >= out[i.index()], column(j.index()) + slack >= into[j.index()]);
                prop_assert!(full_out || full_in, "{i} -> {j} could have more: {d:?}");
            }
        }

        #[test]
        fn extremes_do_not_panic(cells in prop::collection::vec(any::<u64>(), 9), capacity: u64) {
            let m = DemandMatrix::zero(3).map_pairs(|i, j, _| cells[i.index() * 3 + j.index()]);
            let d = natural(&m.map(|c| c % 1_000_000), &[capacity; 3], &[capacity; 3]);
            prop_assert!(d.entries().all(|(.., b)| b <= capacity));
            let t = Topology::uniform("t", 3, 1, BitRate(capacity), BitRate::mbit(8), vec![]);
            estimate(&m, &m, &t, Span::secs(capacity % 1000));
        }
    }
}
