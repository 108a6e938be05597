//! Slots: which host has how many free, by rack, and when those that are held will be free.
//!
//! Slots of a host are numbered from zero; the lowest free one is given out. The hosts of a rack with free slots are kept in the
//! order of how many they have, so that a rack's least loaded host is found at once.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::ids::{HostId, RackId};
use crate::topology::Topology;
use crate::units::Time;

/// A host's slots.
#[derive(Clone, Debug)]
struct Host {
    rack: RackId,
    up: bool,
    /// Free slots, the lowest number last.
    free: Vec<u32>,
    total: u32,
}

/// A rack's slots.
#[derive(Clone, Debug, Default)]
struct Rack {
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
pub struct Slots {
    hosts: Vec<Host>,
    racks: Vec<Rack>,
    free: u64,
}

impl Slots {
    /// All slots of a network, free.
    pub fn new(t: &Topology) -> Self {
        let hosts = t.hosts.iter().map(|h| Host { rack: h.rack, up: false, free: Vec::new(), total: h.slots }).collect();
        let mut s = Self { hosts, racks: vec![Rack::default(); t.rack_count()], free: 0 };
        t.hosts.iter().for_each(|h| s.bring_up(h.id));
        s
    }

    /// Free slots of the cluster.
    pub fn free(&self) -> u64 {
        self.free
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

    /// Takes the lowest free slot of a host until about `eta`. O(log).
    ///
    /// # Panics
    /// If the host has no free slot.
    pub fn take(&mut self, host: HostId, eta: Time) -> u32 {
        let h = &mut self.hosts[host.index()];
        let before = h.free.len() as u32;
        let slot = h.free.pop().expect("a free slot was asked for before");
        let r = &mut self.racks[h.rack.index()];
        r.open.remove(&(Reverse(before), host));
        if before > 1 {
            r.open.insert((Reverse(before - 1), host));
        }
        r.held.insert((eta, host, slot));
        r.free -= 1;
        self.free -= 1;
        slot
    }

    /// Moves the expected end of a held slot from `old` to `new`.
    pub fn expect(&mut self, host: HostId, slot: u32, old: Time, new: Time) {
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
    }

    /// When each slot of a rack that is up will be free, in ascending order. O(slots).
    pub fn releases(&self, rack: RackId, now: Time) -> Vec<Time> {
        let r = &self.racks[rack.index()];
        std::iter::repeat_n(now, r.free as usize).chain(r.held.iter().map(|e| e.0.max(now))).collect()
    }

    /// When `n` slots of a rack will be free at once; `None` if it has fewer. O(n).
    pub fn released(&self, rack: RackId, n: u32, now: Time) -> Option<Time> {
        let r = &self.racks[rack.index()];
        match n.checked_sub(r.free) {
            None | Some(0) => Some(now),
            Some(more) => r.held.iter().nth(more as usize - 1).map(|e| e.0.max(now)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BitRate;

    fn slots() -> Slots {
        let mut t = Topology::uniform("t", 0, 0, BitRate(8), BitRate(8), vec![]);
        t.push_rack(2, 2, BitRate(8), BitRate(8));
        t.push_rack(1, 3, BitRate(8), BitRate(8));
        Slots::new(&t)
    }

    #[test]
    fn the_least_loaded_host_comes_first_and_slots_are_given_out_from_zero() {
        let mut s = slots();
        assert_eq!((s.free(), s.least_loaded(RackId(0))), (7, Some(HostId(0))));
        assert_eq!((s.take(HostId(0), Time(5)), s.least_loaded(RackId(0))), (0, Some(HostId(1))));
        assert_eq!((s.take(HostId(1), Time(9)), s.take(HostId(1), Time(7))), (0, 1));
        assert_eq!((s.least_loaded(RackId(0)), s.free_in(RackId(0)), s.free_on(HostId(1))), (Some(HostId(0)), 1, 0));
        s.give(HostId(1), 0, Time(9));
        assert_eq!((s.take(HostId(1), Time(9)), s.free()), (0, 4));
    }

    #[test]
    fn slots_are_released_by_their_expected_ends() {
        let mut s = slots();
        for eta in [30, 10, 20] {
            s.take(HostId(2), Time(eta));
        }
        let at = |s: &Slots, n| s.released(RackId(1), n, Time(12));
        assert_eq!(
            [at(&s, 0), at(&s, 1), at(&s, 2), at(&s, 3), at(&s, 4)],
            [Some(Time(12)), Some(Time(12)), Some(Time(20)), Some(Time(30)), None]
        );
        s.expect(HostId(2), 1, Time(10), Time(40));
        assert_eq!(at(&s, 1), Some(Time(20)));
        s.give(HostId(2), 2, Time(20));
        assert_eq!((at(&s, 1), at(&s, 2)), (Some(Time(12)), Some(Time(30))));
    }

    #[test]
    fn a_host_that_is_down_has_no_slots() {
        let mut s = slots();
        let slot = s.take(HostId(0), Time(5));
        s.give(HostId(0), slot, Time(5));
        s.take_down(HostId(0));
        s.take_down(HostId(0));
        assert_eq!((s.free(), s.slots_in(RackId(0)), s.hosts_up(RackId(0)), s.is_up(HostId(0))), (5, 2, 1, false));
        assert_eq!(s.least_loaded(RackId(0)), Some(HostId(1)));
        s.bring_up(HostId(0));
        s.bring_up(HostId(0));
        assert_eq!((s.free(), s.free_on(HostId(0))), (7, 2));
    }
}
