//! The cheapest list between two hosts, under the switches' capacities.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{List, SwitchRates, Switches};
use crate::ids::HostId;
use crate::topology::graph::Tier;

/// What a list weighs, in the order in which it counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight {
    /// Bits a second beyond the switches' capacities, summed over the list: zero if the flow fits.
    pub beyond: u128,
    /// The sum of unit costs ([`Switches::cost`]).
    pub cost: u64,
    /// Switches and relaying servers.
    pub length: u32,
}

impl Weight {
    /// No way.
    pub(super) const NONE: Self = Self { beyond: u128::MAX, cost: u64::MAX, length: u32::MAX };

    pub(super) fn plus(self, other: Self) -> Self {
        if self == Self::NONE || other == Self::NONE {
            return Self::NONE;
        }
        Self {
            beyond: self.beyond + other.beyond,
            cost: self.cost + other.cost,
            length: self.length + other.length,
        }
    }
}

/// By switch: its own weight for a flow of `rate` b/s besides `load`.
pub(super) fn own_weights(net: &Switches, load: &SwitchRates, rate: u64) -> Vec<Weight> {
    let of = |s: u32| Weight {
        beyond: u128::from(load.beyond(net, s, rate)),
        cost: u64::from(net.units[s as usize]),
        length: 1,
    };
    (0..net.len() as u32).map(of).collect()
}

/// The weights of the best ways from every switch to one.
#[derive(Clone, Debug)]
pub struct PathSearch {
    to: u32,
    /// By switch: its own weight for this flow.
    own: Vec<Weight>,
    /// By switch: of the best way on from it that only goes down; in a network without layers, of
    /// the best way.
    down: Vec<Weight>,
    /// By switch: of the best way on from it that may go up first.
    up: Vec<Weight>,
}

impl PathSearch {
    /// All best ways to the switch `to` for a flow of `rate` b/s besides `load`. In a layered
    /// network they go up, and then down, as the tiers of a policy demand (section 3.2):
    /// O(switches + links). In others, and where no such way exists, any way: O(links log
    /// switches).
    pub fn new(net: &Switches, load: &SwitchRates, to: u32, rate: u64) -> Self {
        let own = own_weights(net, load, rate);
        let none = vec![Weight::NONE; net.len()];
        let mut search = Self { to, own, down: none.clone(), up: none };
        if net.layered {
            search.by_layers(net);
        } else {
            search.anywhere(net);
        }
        search
    }

    fn by_layers(&mut self, net: &Switches) {
        let lower = |s: u32, t: u32| net.height[t as usize] < net.height[s as usize];
        self.down[self.to as usize] = Weight::default();
        for &s in &net.by_height {
            for &t in net.neighbours[s as usize].iter().filter(|&&t| lower(s, t)) {
                let on = self.own[t as usize].plus(self.down[t as usize]);
                self.down[s as usize] = self.down[s as usize].min(on);
            }
        }
        self.up.clone_from(&self.down);
        for &s in net.by_height.iter().rev() {
            for &t in net.neighbours[s as usize].iter().filter(|&&t| lower(t, s)) {
                let on = self.own[t as usize].plus(self.up[t as usize]);
                self.up[s as usize] = self.up[s as usize].min(on);
            }
        }
    }

    /// Dijkstra from the end.
    fn anywhere(&mut self, net: &Switches) {
        self.down[self.to as usize] = Weight::default();
        let mut heap = BinaryHeap::from([Reverse((Weight::default(), self.to))]);
        while let Some(Reverse((far, s))) = heap.pop() {
            if far > self.down[s as usize] {
                continue;
            }
            let on = self.own[s as usize].plus(far);
            for &t in &net.neighbours[s as usize] {
                if on < self.down[t as usize] {
                    self.down[t as usize] = on;
                    heap.push(Reverse((on, t)));
                }
            }
        }
        self.up.clone_from(&self.down);
    }

    /// The weight of the best way from a switch, both ends included; `None`: there is no way. O(1).
    pub fn weight(&self, from: u32) -> Option<Weight> {
        let all = self.own[from as usize].plus(self.up[from as usize]);
        (all != Weight::NONE).then_some(all)
    }

    /// The switches of the best way from a switch, both ends included. Of equal ones it takes at
    /// every switch the next one with the most room left, and of these the one of the lowest
    /// number. O(length x degree).
    pub fn way(&self, net: &Switches, load: &SwitchRates, from: u32) -> Option<Vec<u32>> {
        self.walk(net, from, |s| u64::MAX - load.residual(net, s))
    }

    /// The same; of equal next switches it takes the one of the lowest number, whatever room they
    /// have.
    pub fn lowest_way(&self, net: &Switches, from: u32) -> Option<Vec<u32>> {
        self.walk(net, from, |_| 0)
    }

    /// A best way; of equal next switches the one that costs least by `then`, then the lowest.
    fn walk(&self, net: &Switches, from: u32, then: impl Fn(u32) -> u64) -> Option<Vec<u32>> {
        self.weight(from)?;
        let (mut at, mut may_rise, mut way) = (from, true, vec![from]);
        while at != self.to {
            let rises = |t: u32| net.layered && net.height[t as usize] > net.height[at as usize];
            let on = |t: u32| {
                let rest = if net.layered && !rises(t) { &self.down } else { &self.up };
                self.own[t as usize].plus(rest[t as usize])
            };
            let next =
                net.neighbours[at as usize].iter().copied().filter(|&t| may_rise || !rises(t));
            let next = next.min_by_key(|&t| (on(t), then(t), t)).expect("the way goes on");
            may_rise &= !net.layered || rises(next);
            at = next;
            way.push(at);
        }
        Some(way)
    }
}

/// The best list from one host to another for a flow of `rate` b/s besides `load`, and its weight;
/// empty within a host. `None`: there is no way. The cost of [`PathSearch::new`].
pub fn cheapest(
    net: &Switches,
    load: &SwitchRates,
    (from, to): (HostId, HostId),
    rate: u64,
) -> Option<(List, Weight)> {
    if from == to {
        return Some((List::default(), Weight::default()));
    }
    found(net, load, &PathSearch::new(net, load, net.stands(to), rate), net.stands(from))
}

/// A search's answer for flows that begin at a switch.
pub(super) fn found(
    net: &Switches,
    load: &SwitchRates,
    search: &PathSearch,
    from: u32,
) -> Option<(List, Weight)> {
    Some((strip(net, search.way(net, load, from)?), search.weight(from)?))
}

/// The shortest list by unit costs whatever switches carry and can carry, of equal ones the one
/// with the lowest numbers; empty within a host. `None`: there is no way. The cost of
/// [`PathSearch::new`].
pub fn lowest(net: &Switches, (from, to): (HostId, HostId)) -> Option<List> {
    if from == to {
        return Some(List::default());
    }
    let search = PathSearch::new(net, &SwitchRates::new(net), net.stands(to), 0);
    Some(strip(net, search.lowest_way(net, net.stands(from))?))
}

/// A way without the hosts' own nodes, where servers relay.
pub(super) fn strip(net: &Switches, mut way: Vec<u32>) -> List {
    if net.tier(way[0]) == Tier::Server {
        way.remove(0);
        way.pop();
    }
    List(way)
}
