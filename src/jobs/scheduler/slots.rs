//! Slots: which host has how many free, by rack, and when those that are held will be free.
//!
//! Slots of a host are numbered from zero; the lowest free one is given out. The hosts of a rack
//! with free slots are kept in the order of how many they have, so that a rack's least loaded host
//! is found at once.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::ids::{HostId, RackId};
use crate::placement::coscheduler::explore::remaining;
use crate::topology::Topology;
use crate::units::{Span, Time};

/// A host's slots.
#[derive(Clone, Debug)]
struct SchedulerHost {
    rack: RackId,
    up: bool,
    /// Free slots, the lowest number last.
    free: Vec<u32>,
    /// By slot: since when its task computes, and how long it does in all; no time while it waits
    /// for its input.
    works: Vec<(Option<Time>, Span)>,
    total: u32,
}

/// A rack's slots.
#[derive(Clone, Debug, Default)]
struct SchedulerRack {
    free: u32,
    slots: u32,
    hosts_up: u32,
    /// Hosts that are up and have free slots: most free first, then by id.
    open: BTreeSet<(Reverse<u32>, HostId)>,
    /// Held slots by the time at which they are expected to become free.
    held: BTreeSet<(Time, HostId, u32)>,
}

/// All slots of a cluster.
#[derive(Clone, Debug)]
pub struct ClusterSlots {
    hosts: Vec<SchedulerHost>,
    racks: Vec<SchedulerRack>,
    free: u64,
    /// Hosts with a free slot.
    open: u32,
    /// Slots that have become free.
    freed: u64,
    /// Thousandths by which estimates are off at most, and the seed from which the errors are
    /// drawn.
    off: (u64, u64),
}

impl ClusterSlots {
    /// All slots of a network, free.
    pub fn new(t: &Topology) -> Self {
        let hosts = t
            .hosts
            .iter()
            .map(|h| SchedulerHost {
                rack: h.rack,
                up: false,
                free: Vec::new(),
                works: vec![(None, Span::ZERO); h.slots as usize],
                total: h.slots,
            })
            .collect();
        let mut s = Self {
            hosts,
            racks: vec![SchedulerRack::default(); t.rack_count()],
            free: 0,
            open: 0,
            freed: 0,
            off: (0, 0),
        };
        t.hosts.iter().for_each(|h| s.bring_up(h.id));
        s
    }

    /// Free slots of the cluster.
    pub fn free(&self) -> u64 {
        self.free
    }

    /// Hosts of the cluster that have a free slot.
    pub fn hosts_open(&self) -> u32 {
        self.open
    }

    /// Slots that tasks have given back since the beginning.
    pub fn freed(&self) -> u64 {
        self.freed
    }

    /// Free slots of a rack.
    pub fn free_in(&self, rack: RackId) -> u32 {
        self.racks[rack.index()].free
    }

    /// Slots of a rack on hosts that are up.
    pub fn slots_in(&self, rack: RackId) -> u32 {
        self.racks[rack.index()].slots
    }

    /// Hosts of a rack that are up.
    pub fn hosts_up(&self, rack: RackId) -> u32 {
        self.racks[rack.index()].hosts_up
    }

    /// Whether a host is up.
    pub fn is_up(&self, host: HostId) -> bool {
        self.hosts[host.index()].up
    }

    /// Free slots of a host; none while it is down.
    pub fn free_on(&self, host: HostId) -> u32 {
        self.hosts[host.index()].free.len() as u32
    }

    /// The host of a rack with the most free slots, the lowest id among equals.
    pub fn least_loaded(&self, rack: RackId) -> Option<HostId> {
        self.racks[rack.index()].open.first().map(|e| e.1)
    }

    /// Makes [`Self::releases`] wrong by at most `percent` per cent of a task's remaining time,
    /// drawn for each task from the seed: what estimators of the remaining time get wrong.
    pub fn misjudge(&mut self, percent: u32, seed: u64) {
        self.off = (u64::from(percent.min(100)) * 10, seed);
    }

    /// Takes the lowest free slot of a host from `now` until about `eta`. O(log).
    ///
    /// # Panics
    /// If the host has no free slot.
    pub fn take(&mut self, host: HostId, now: Time, eta: Time) -> u32 {
        let h = &mut self.hosts[host.index()];
        let before = h.free.len() as u32;
        let slot = h.free.pop().expect("a free slot was asked for before");
        h.works[slot as usize] = (None, eta.since(now));
        let r = &mut self.racks[h.rack.index()];
        r.open.remove(&(Reverse(before), host));
        if before > 1 {
            r.open.insert((Reverse(before - 1), host));
        }
        self.open -= u32::from(before == 1);
        r.held.insert((eta, host, slot));
        r.free -= 1;
        self.free -= 1;
        slot
    }

    /// Moves the expected end of a held slot from `old` to `new`: its task begins to compute at
    /// `now`.
    pub fn expect(&mut self, host: HostId, slot: u32, old: Time, (now, new): (Time, Time)) {
        self.hosts[host.index()].works[slot as usize] = (Some(now), new.since(now));
        let r = &mut self.racks[self.hosts[host.index()].rack.index()];
        if r.held.remove(&(old, host, slot)) {
            r.held.insert((new, host, slot));
        }
    }

    /// Gives a slot back that was expected to be free at `eta`. O(slots of the host).
    pub fn give(&mut self, host: HostId, slot: u32, eta: Time) {
        let h = &mut self.hosts[host.index()];
        let r = &mut self.racks[h.rack.index()];
        if !r.held.remove(&(eta, host, slot)) || !h.up {
            return;
        }
        let before = h.free.len() as u32;
        let at = h.free.partition_point(|&s| s > slot);
        h.free.insert(at, slot);
        if before > 0 {
            r.open.remove(&(Reverse(before), host));
        }
        r.open.insert((Reverse(before + 1), host));
        r.free += 1;
        self.free += 1;
        self.freed += 1;
        self.open += u32::from(before == 0);
    }

    /// Takes a host out; the caller has given back its held slots. Does nothing if it is down.
    pub fn take_down(&mut self, host: HostId) {
        let h = &mut self.hosts[host.index()];
        if !std::mem::take(&mut h.up) {
            return;
        }
        let r = &mut self.racks[h.rack.index()];
        let free = h.free.len() as u32;
        r.open.remove(&(Reverse(free), host));
        h.free.clear();
        r.free -= free;
        r.slots -= h.total;
        r.hosts_up -= 1;
        self.free -= u64::from(free);
        self.open -= u32::from(free > 0);
    }

    /// Brings a host back with all its slots free. Does nothing if it is up.
    pub fn bring_up(&mut self, host: HostId) {
        let h = &mut self.hosts[host.index()];
        if std::mem::replace(&mut h.up, true) {
            return;
        }
        h.free = (0..h.total).rev().collect();
        let r = &mut self.racks[h.rack.index()];
        if h.total > 0 {
            r.open.insert((Reverse(h.total), host));
        }
        r.free += h.total;
        r.slots += h.total;
        r.hosts_up += 1;
        self.free += u64::from(h.total);
        self.open += u32::from(h.total > 0);
    }

    /// When each slot of a rack that is up will be free, in ascending order: now and the estimated
    /// remaining time of its task, from its progress (Co-scheduler eq. 12). O(slots log slots).
    pub fn releases(&self, rack: RackId, now: Time) -> Vec<Time> {
        let r = &self.racks[rack.index()];
        let held = r.held.iter().map(|&(_, host, slot)| now + self.left(now, host, slot));
        let mut all: Vec<Time> = std::iter::repeat_n(now, r.free as usize).chain(held).collect();
        all.sort_unstable();
        all
    }

    /// T_rem = t_elapsed (1 - P) / P of the task in a held slot; while nothing is done, as long as
    /// it takes in all.
    fn left(&self, now: Time, host: HostId, slot: u32) -> Span {
        let (begun, all) = self.hosts[host.index()].works[slot as usize];
        let elapsed = now.since(begun.unwrap_or(now)).min(all);
        let left = remaining(elapsed, elapsed.0, all.0).unwrap_or(all);
        let (off, seed) = self.off;
        if off == 0 {
            return left;
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ begun.map_or(0, |t| t.0));
        rng.set_stream(u64::from(host.0) << 32 | u64::from(slot));
        Span(
            u64::try_from(
                u128::from(left.0) * u128::from(rng.random_range(1000 - off..=1000 + off)) / 1000,
            )
            .unwrap_or(u64::MAX),
        )
    }

    /// When `n` slots of a rack will be free at once; `None` if it has fewer. O(slots log slots).
    pub fn released(&self, rack: RackId, n: u32, now: Time) -> Option<Time> {
        let r = &self.racks[rack.index()];
        if n <= r.free { Some(now) } else { self.releases(rack, now).get(n as usize - 1).copied() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BitRate;

    fn slots() -> ClusterSlots {
        let mut t = Topology::uniform("t", 0, 0, BitRate(8), BitRate(8), vec![]);
        t.push_rack(2, 2, BitRate(8), BitRate(8));
        t.push_rack(1, 3, BitRate(8), BitRate(8));
        ClusterSlots::new(&t)
    }

    #[test]
    fn the_least_loaded_host_comes_first_and_slots_are_given_out_from_zero() {
        let mut s = slots();
        assert_eq!((s.free(), s.least_loaded(RackId(0))), (7, Some(HostId(0))));
        assert_eq!(
            (s.take(HostId(0), Time(0), Time(5)), s.least_loaded(RackId(0))),
            (0, Some(HostId(1)))
        );
        assert_eq!(
            (s.take(HostId(1), Time(0), Time(9)), s.take(HostId(1), Time(0), Time(7))),
            (0, 1)
        );
        assert_eq!(
            (s.least_loaded(RackId(0)), s.free_in(RackId(0)), s.free_on(HostId(1))),
            (Some(HostId(0)), 1, 0)
        );
        s.give(HostId(1), 0, Time(9));
        assert_eq!((s.take(HostId(1), Time(0), Time(9)), s.free()), (0, 4));
    }

    #[test]
    fn slots_are_released_by_their_expected_ends() {
        let mut s = slots();
        for eta in [30, 10, 20] {
            s.take(HostId(2), Time(0), Time(eta));
        }
        // All three have their input from the beginning.
        for (slot, eta) in [(0, 30), (1, 10), (2, 20)] {
            s.expect(HostId(2), slot, Time(eta), (Time(0), Time(eta)));
        }
        let at = |s: &ClusterSlots, n| s.released(RackId(1), n, Time(12));
        assert_eq!(
            [at(&s, 0), at(&s, 1), at(&s, 2), at(&s, 3), at(&s, 4)],
            [Some(Time(12)), Some(Time(12)), Some(Time(20)), Some(Time(30)), None]
        );
        s.expect(HostId(2), 1, Time(10), (Time(10), Time(40)));
        assert_eq!(at(&s, 1), Some(Time(20)));
        s.give(HostId(2), 2, Time(20));
        assert_eq!((at(&s, 1), at(&s, 2)), (Some(Time(12)), Some(Time(30))));
    }

    #[test]
    fn estimates_go_by_progress_and_may_be_off() {
        let mut s = slots();
        for _ in 0..3 {
            s.take(HostId(2), Time(0), Time(1000));
        }
        s.expect(HostId(2), 1, Time(1000), (Time(400), Time(1400)));
        // One has done 600 of 1000; the others wait for their input and have done nothing.
        assert_eq!(s.releases(RackId(1), Time(1000)), [1400, 2000, 2000].map(Time));
        s.misjudge(50, 7);
        let off = s.releases(RackId(1), Time(1000));
        assert_eq!(off, s.releases(RackId(1), Time(1000)), "an estimate is drawn once");
        let sorted =
            off.is_sorted() && off[0] >= Time(1200) && off.iter().all(|t| *t <= Time(2500));
        assert!(sorted && off != [1400, 2000, 2000].map(Time), "{off:?}");
    }

    #[test]
    fn a_misjudged_remaining_time_changes_where_co_scheduler_runs_reduces_if_it_must_wait_for_slots()
     {
        use crate::placement::cluster::Cluster;
        use crate::placement::coscheduler::{decide, network::Idle};
        use crate::units::Bytes;
        // Three racks of two slots; maps of 4 T_e in the first; two reduces, which may go to any
        // one rack.
        let mut t = Topology::uniform("t", 0, 0, BitRate(8), BitRate(8), vec![]);
        (0..3).for_each(|_| t.push_rack(1, 2, BitRate(8), BitRate(8)));
        let cluster = Cluster { racks: 3, hosts: 1, slots: 2, ..Cluster::co_scheduler() };
        let maps = [(RackId(0), Bytes(4 * cluster.elephant.0))];
        let busy = |mut s: ClusterSlots, ends: [u64; 3]| {
            for (host, end) in ends.into_iter().enumerate().filter(|e| e.1 > 0) {
                for slot in 0..2 {
                    s.take(HostId::from(host), Time(0), Time(end));
                    s.expect(HostId::from(host), slot, Time(end), (Time(0), Time(end)));
                }
            }
            s
        };
        let chosen = |s: &ClusterSlots| {
            let free: Vec<Vec<Span>> = (0..3)
                .map(|r| {
                    s.releases(RackId(r), Time(1)).into_iter().map(|t| t.since(Time(1))).collect()
                })
                .collect();
            let q = decide::ScheduleQuestion {
                cluster: &cluster,
                maps: &maps,
                reduces: 2,
                widths: &[1],
                free: &free,
            };
            decide::decide(&q, &Idle(&cluster)).unwrap().best().racks.clone()
        };
        let second = 1_000_000_000;
        let full = busy(ClusterSlots::new(&t), [100 * second, 101 * second, 102 * second]);
        let wrong = |seed: u64| {
            let mut s = full.clone();
            s.misjudge(50, seed);
            chosen(&s)
        };
        assert_eq!(chosen(&full), [(RackId(0), 2)], "the rack that is free soonest");
        let others = (0..20).filter(|&seed| wrong(seed) != chosen(&full)).count();
        assert!(
            (5..=20).contains(&others),
            "half off, each of three racks may seem the first: {others} of 20"
        );
        // While a rack has slots free, the choice does not depend on how long the others will take.
        let idle = busy(ClusterSlots::new(&t), [100 * second, 0, 102 * second]);
        for seed in 0..20 {
            let mut s = idle.clone();
            s.misjudge(50, seed);
            assert_eq!(chosen(&s), chosen(&idle));
        }
    }

    #[test]
    fn a_host_that_is_down_has_no_slots() {
        let mut s = slots();
        let slot = s.take(HostId(0), Time(0), Time(5));
        s.give(HostId(0), slot, Time(5));
        s.take_down(HostId(0));
        s.take_down(HostId(0));
        assert_eq!(
            (
                s.free(),
                s.slots_in(RackId(0)),
                s.hosts_up(RackId(0)),
                s.is_up(HostId(0)),
                s.hosts_open()
            ),
            (5, 2, 1, false, 2)
        );
        assert_eq!(s.least_loaded(RackId(0)), Some(HostId(1)));
        s.bring_up(HostId(0));
        s.bring_up(HostId(0));
        assert_eq!((s.free(), s.free_on(HostId(0)), s.hosts_open()), (7, 2, 3));
    }
}
