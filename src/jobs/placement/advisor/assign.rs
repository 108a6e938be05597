//! Which reduce task goes to which rack, where they read unequal parts of the map output.

use std::cmp::Reverse;

use crate::ids::RackId;
use crate::placement::coscheduler::network::RackTransfer;
use crate::units::Bytes;

/// Map output by rack, and what each reduce task reads of it.
#[derive(Clone, Copy)]
pub(super) struct Skewed<'a> {
    /// Bytes by source rack, each rack once.
    pub maps: &'a [(RackId, Bytes)],
    /// For each of `maps`: bytes by reduce task.
    pub by_task: &'a [Vec<Bytes>],
}

impl Skewed<'_> {
    fn tasks(&self) -> usize {
        self.by_task.first().map_or(0, Vec::len)
    }

    /// All that a task reads.
    fn reads(&self, task: usize) -> u64 {
        self.by_task.iter().map(|row| row[task].0).fold(0, u64::saturating_add)
    }

    /// The rack of each task. Each of `racks` takes a number of tasks, in all at least as many as
    /// there are.
    ///
    /// The task that reads most comes first. It goes to the rack that then receives least from
    /// other racks; among equals to the one that holds more of it, then to the first.
    /// O(tasks (log tasks + maps + racks)).
    pub(super) fn assign(&self, racks: &[(RackId, u32)]) -> Vec<RackId> {
        let mut row = vec![None; racks.iter().map(|r| r.0.index() + 1).max().unwrap_or(0)];
        for (k, (rack, _)) in self.maps.iter().enumerate() {
            if let Some(of) = row.get_mut(rack.index()) {
                *of = Some(k);
            }
        }
        let local =
            |rack: RackId, task: usize| row[rack.index()].map_or(0, |k| self.by_task[k][task].0);
        let reads: Vec<u64> = (0..self.tasks()).map(|t| self.reads(t)).collect();
        let mut order: Vec<usize> = (0..reads.len()).collect();
        order.sort_by_key(|&t| (Reverse(reads[t]), t));
        let (mut room, mut receives) = (racks.to_vec(), vec![0u64; racks.len()]);
        let mut all = vec![RackId(0); reads.len()];
        for task in order {
            let key = |k: usize| {
                let own = local(room[k].0, task);
                (receives[k].saturating_add(reads[task] - own), Reverse(own), k)
            };
            let with_room = (0..room.len()).filter(|&k| room[k].1 > 0);
            let (bytes, _, k) = with_room.map(key).min().expect("a place for each task");
            (receives[k], all[task]) = (bytes, room[k].0);
            room[k].1 -= 1;
        }
        all
    }

    /// The bytes of a placement: by map rack, then as `racks`. O(maps (tasks + racks) + assign).
    pub(super) fn coflow(&self, racks: &[(RackId, u32)]) -> Vec<RackTransfer> {
        let to = self.assign(racks);
        let mut slot = vec![0; racks.iter().map(|r| r.0.index() + 1).max().unwrap_or(0)];
        racks.iter().enumerate().for_each(|(k, r)| slot[r.0.index()] = k);
        let mut out = Vec::with_capacity(self.maps.len() * racks.len());
        for (&(from, _), row) in self.maps.iter().zip(self.by_task) {
            let mut sums = vec![Bytes::ZERO; racks.len()];
            for (&bytes, rack) in row.iter().zip(&to) {
                let sum = &mut sums[slot[rack.index()]];
                *sum = sum.saturating_add(bytes);
            }
            out.extend(sums.into_iter().zip(racks).map(|(bytes, r)| RackTransfer {
                from,
                to: r.0,
                bytes,
            }));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{NetworkState, PlacementRequest, ShuffleSpec, decide, decide_slowly};
    use super::*;
    use crate::coflows::bounds::hybrid_racks;
    use crate::demand::DemandMatrix;
    use crate::topology::Topology;
    use crate::units::{BitRate, Span};

    fn maps(by_task: &[Vec<Bytes>]) -> Vec<(RackId, Bytes)> {
        let sum = |row: &Vec<Bytes>| Bytes(row.iter().map(|b| b.0).sum());
        by_task.iter().enumerate().map(|(r, row)| (RackId::from(r), sum(row))).collect()
    }

    fn rows(bytes: &[&[u64]]) -> Vec<Vec<Bytes>> {
        bytes.iter().map(|row| row.iter().map(|&b| Bytes(b)).collect()).collect()
    }

    fn racks(tasks: &[u32]) -> Vec<(RackId, u32)> {
        let all = tasks.iter().enumerate().filter(|t| *t.1 > 0);
        all.map(|(r, &n)| (RackId::from(r), n)).collect()
    }

    fn network(racks: usize) -> Topology {
        let mbit = BitRate::mbit;
        Topology::uniform("t", racks, 1, mbit(1000), mbit(100), vec![])
    }

    fn ask(by_task: &[Vec<Bytes>], even: bool, slots: &[usize]) -> PlacementRequest {
        let shuffle = ShuffleSpec::Open {
            maps: maps(by_task),
            by_task: if even { vec![] } else { by_task.to_vec() },
            reduces: by_task[0].len() as u32,
            free: slots.iter().map(|&n| vec![Span::ZERO; n]).collect(),
            at_most: None,
            waves: false,
        };
        PlacementRequest { shuffle, ready: Span::ZERO, deadline: None }
    }

    #[test]
    fn a_task_with_most_of_the_bytes_goes_where_they_are() {
        // Task 1 reads nearly all, and most of that is in rack 2.
        let by_task = rows(&[&[10, 200, 10], &[10, 100, 10], &[10, 900, 10]]);
        let skewed = Skewed { maps: &maps(&by_task), by_task: &by_task };
        let place = racks(&[1, 1, 1]);
        // Tasks 0 and 2 are alike: the first goes to the first rack.
        assert_eq!(skewed.assign(&place), [RackId(0), RackId(2), RackId(1)]);
        let moved = skewed.coflow(&place);
        let between: Vec<_> = moved.iter().filter(|t| t.from != t.to).collect();
        let sums = |t: &&RackTransfer| (t.from.0, t.to.0, t.bytes.0);
        let expected = [(0, 1, 10), (0, 2, 200), (1, 0, 10), (1, 2, 100), (2, 0, 10), (2, 1, 10)];
        assert_eq!(between.iter().map(sums).collect::<Vec<_>>(), expected);
        let p = decide(
            &network(3),
            &NetworkState::idle(&network(3), Bytes(1)),
            &ask(&by_task, false, &[1, 1, 1]),
        );
        assert_eq!(p.unwrap().tasks, skewed.assign(&place));
    }

    #[test]
    fn racks_with_few_slots_take_few_tasks() {
        let by_task = rows(&[&[50, 40, 30, 20], &[0, 0, 0, 0]]);
        let t = network(2);
        let p =
            decide(&t, &NetworkState::idle(&t, Bytes(1)), &ask(&by_task, false, &[2, 4])).unwrap();
        // The two largest stay.
        assert_eq!(p.tasks, [RackId(0), RackId(0), RackId(1), RackId(1)]);
        assert_eq!(p.pairs.iter().map(|w| w.bytes.0).collect::<Vec<_>>(), [50]);
    }

    fn case() -> impl Strategy<Value = (Vec<Vec<Bytes>>, Vec<usize>)> {
        (2usize..5, 1usize..6).prop_flat_map(|(racks, tasks)| {
            let bytes = prop_oneof![3 => 0u64..50_000, 1 => 1_000_000u64..9_000_000];
            let row = prop::collection::vec(bytes.prop_map(Bytes), tasks);
            let slots = prop::collection::vec(0usize..4, racks);
            (prop::collection::vec(row, racks), slots)
        })
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn every_task_has_a_rack_and_every_byte_moves_once((by_task, slots) in case()) {
            let (t, n) = (network(slots.len()), by_task[0].len());
            let s = NetworkState::idle(&t, Bytes(1));
            let request = ask(&by_task, false, &slots);
            let answer = decide(&t, &s, &request);
            prop_assert_eq!(answer.is_ok(), slots.iter().sum::<usize>() >= n);
            let Ok(p) = answer else { return Ok(()) };
            prop_assert_eq!(&p.chosen, &decide_slowly(&t, &s, &request).unwrap().chosen);
            for &(rack, tasks) in &p.chosen.racks {
                prop_assert_eq!(p.tasks.iter().filter(|r| **r == rack).count(), tasks as usize);
                prop_assert!(tasks as usize <= slots[rack.index()]);
            }
            prop_assert_eq!(p.tasks.len(), n);
            let mut moved = DemandMatrix::zero(slots.len());
            p.pairs.iter().for_each(|w| moved.add(w.from, w.to, w.bytes.0));
            let mut asked = DemandMatrix::zero(slots.len());
            for (from, row) in by_task.iter().enumerate() {
                for (&to, bytes) in p.tasks.iter().zip(row) {
                    if to.index() != from && bytes.0 > 0 {
                        asked.add(RackId::from(from), to, bytes.0);
                    }
                }
            }
            prop_assert_eq!(moved, asked);
        }

        /// Of all ways to put tasks on racks, none receives its bytes in less than half of the
        /// time: the greedy choice is close to the best.
        #[test]
        fn the_choice_is_close_to_the_best_of_all((by_task, slots) in case()) {
            let (t, n, racks) = (network(slots.len()), by_task[0].len(), slots.len());
            prop_assume!(slots.iter().sum::<usize>() >= n);
            let p = decide(&t, &NetworkState::idle(&t, Bytes(1)), &ask(&by_task, false, &slots)).unwrap();
            let bound = |to: &[RackId]| {
                let mut m = DemandMatrix::zero(racks);
                for (from, row) in by_task.iter().enumerate() {
                    for (&to, bytes) in to.iter().zip(row).filter(|x| x.0.index() != from) {
                        m.add(RackId::from(from), to, bytes.0);
                    }
                }
                hybrid_racks(&m, &t)
            };
            let all = (0..racks.pow(n as u32)).map(|k| {
                (0..n).map(|i| RackId::from(k / racks.pow(i as u32) % racks)).collect::<Vec<_>>()
            });
            let fits = |to: &Vec<RackId>| {
                (0..racks).all(|r| to.iter().filter(|x| x.index() == r).count() <= slots[r])
            };
            let best = all.filter(fits).map(|to| bound(&to)).min().unwrap();
            prop_assert!(bound(&p.tasks) <= best * 2, "{:?}: {} and {best}", p.tasks, bound(&p.tasks));
        }
    }
}
