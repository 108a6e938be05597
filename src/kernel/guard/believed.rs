//! Counters that another program may have written: a number that a rack cannot have sent is
//! rejected and reported.

use std::sync::Arc;

use crate::demand::DemandMatrix;
use crate::fabric::Damage;
use crate::ids::RackId;
use crate::topology::Topology;
use crate::units::{Bytes, NANOS, Span, Time};

/// A rack never sends more than this many times what the interfaces of its hosts carry.
const TIMES: u128 = 2;
/// How much later than it says an observation may have read the counters.
const LATE: Span = Span::millis(100);
/// Always accepted, whatever the rates are: queues and sockets that empty.
const AT_ONCE: Bytes = Bytes(64 << 20);

/// The counters of a network, as far as they are accepted.
#[derive(Debug)]
pub struct Believed {
    topology: Arc<Topology>,
    /// When the counters were read last; `None` before the first time.
    at: Option<Time>,
    /// Last readings: bytes sent, and bytes that crossed an OCS.
    read: [DemandMatrix; 2],
    /// The accepted part of them.
    sums: [DemandMatrix; 2],
}

impl Believed {
    /// Nothing counted yet.
    pub fn new(topology: Arc<Topology>) -> Self {
        let zero = || DemandMatrix::zero(topology.rack_count());
        Self { at: None, read: [zero(), zero()], sums: [zero(), zero()], topology }
    }

    /// Takes readings at `now`: bytes sent, and bytes that crossed an OCS, `R x R` each. If a
    /// pair's counter fell, or rose by more than the rack's hosts can have sent, it counts on from
    /// the new reading. O(R^2).
    pub fn take(
        &mut self,
        sent: DemandMatrix,
        crossed: DemandMatrix,
        now: Time,
    ) -> (DemandMatrix, DemandMatrix, Option<Damage>) {
        let read = [sent, crossed];
        let first = self.at.is_none();
        let elapsed = now.since(self.at.unwrap_or(now)) + LATE;
        let racks = self.topology.rack_count();
        let (mut refused, mut example) = (0u64, None);
        for from in (0..racks).map(RackId::from) {
            let most = self.most(from, elapsed);
            for to in (0..racks).map(RackId::from) {
                let more =
                    [0, 1].map(|k| read[k].get(from, to).checked_sub(self.read[k].get(from, to)));
                match more {
                    [Some(a), Some(b)] if first || (a <= most && b <= most) => {
                        for (sum, more) in
                            self.sums.iter_mut().zip([a, b]).filter(|(_, more)| *more > 0)
                        {
                            sum.set(from, to, sum.get(from, to).saturating_add(more));
                        }
                    }
                    _ => {
                        refused += 1;
                        example.get_or_insert((from, to));
                    }
                }
            }
        }
        (self.read, self.at) = (read, Some(now));
        let damage = example.map(|(from, to)| {
            let others = if refused > 1 { format!(", and {} more", refused - 1) } else { String::new() };
            let what =
                format!("another program wrote into the counters of bytes from {from} to {to}{others}: what they said is not counted");
            Damage { what, ..Damage::default() }
        });
        (self.sums[0].clone(), self.sums[1].clone(), damage)
    }

    /// Bytes that the hosts of a rack can have sent in a time, at most.
    fn most(&self, rack: RackId, elapsed: Span) -> u64 {
        let hosts = self.topology.hosts.iter().filter(|h| h.rack == rack);
        let bits: u128 = hosts.map(|h| u128::from(h.nic.0)).sum();
        let bytes =
            TIMES * bits * u128::from(elapsed.0) / (8 * u128::from(NANOS)) + u128::from(AT_ONCE.0);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BitRate;
    use proptest::prelude::*;

    const RACKS: usize = 3;

    fn believed() -> Believed {
        let gbit = BitRate::mbit(1000);
        Believed::new(Arc::new(Topology::uniform("t", RACKS, 2, gbit, gbit, vec![])))
    }

    fn of(cells: &[(u32, u32, u64)]) -> DemandMatrix {
        let mut d = DemandMatrix::zero(RACKS);
        cells.iter().for_each(|&(i, j, b)| d.set(RackId(i), RackId(j), b));
        d
    }

    #[test]
    fn what_no_rack_can_have_sent_is_told_and_not_counted() {
        let mut b = believed();
        // What was counted before the beginning is ignored.
        let (sent, ..) = b.take(of(&[(0, 1, 1 << 40)]), of(&[]), Time(0));
        assert_eq!(sent, of(&[(0, 1, 1 << 40)]));
        let second = |n: u64| Time(n * 1_000_000_000);
        // What another program writes, each time after an honest count.
        for (k, written) in (0u64..).zip([u64::MAX - 7, 1 << 63, 0, 3 << 40]) {
            let (n, before) = (2 * k + 1, (1 << 40) + 7 * k);
            let (sent, crossed, damage) =
                b.take(of(&[(0, 1, written), (1, 2, n * 1000)]), of(&[]), second(n));
            assert_eq!(
                (sent, crossed),
                (of(&[(0, 1, before), (1, 2, n * 1000)]), of(&[])),
                "{written}"
            );
            assert!(damage.expect("told").what.contains("bytes from r0 to r1: what"), "{written}");
            // It counts on from there.
            let (sent, _, damage) =
                b.take(of(&[(0, 1, written + 7), (1, 2, n * 1000)]), of(&[]), second(n + 1));
            assert_eq!(
                (sent, damage),
                (of(&[(0, 1, before + 7), (1, 2, n * 1000)]), None),
                "{written}"
            );
        }
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        /// What hosts can have sent is accepted to the byte, and bytes crossed never exceed bytes
        /// sent, whatever is written.
        #[test]
        fn honest_counters_are_believed_and_no_sum_runs_back(
            steps in prop::collection::vec((prop::bool::weighted(0.8), any::<u64>(), any::<u64>()), 1..20),
        ) {
            let (mut b, mut honest, mut real) = (believed(), true, [0u64; 2]);
            let mut last = (0, 0);
            for (k, (fair, a, c)) in steps.into_iter().enumerate() {
                let now = Time((k as u64 + 1) * 100_000_000);
                let written = if fair && honest {
                    real[0] += a % 25_000_000;
                    real[1] = real[0].min(real[1] + c % 25_000_000);
                    real
                } else {
                    honest = false;
                    [a, c]
                };
                let (sent, crossed, damage) = b.take(of(&[(0, 2, written[0])]), of(&[(0, 2, written[1])]), now);
                let seen = (sent.get(RackId(0), RackId(2)), crossed.get(RackId(0), RackId(2)));
                if honest {
                    prop_assert_eq!((seen, damage), ((real[0], real[1]), None));
                } else if k > 0 {
                    prop_assert!(seen.0 >= last.0 && seen.1 >= last.1);
                }
                last = seen;
            }
        }
    }
}
