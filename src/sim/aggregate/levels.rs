//! Max-min fair rates where the flows of a coflow are not told apart.
//!
//! The *level* of an interface is its fair share: the rate that it gives to each flow that nothing
//! else limits. A flow has the lower level of its sender's and its receiver's interface. An
//! interface whose flows are all limited at their other ends has no level. So the rate of a sender
//! within a coflow follows from the levels of the coflow's receivers. A sender has the same number
//! of flows to each receiver; only the flow from a host to itself may be missing.
//!
//! Interfaces get their levels one by one, the lowest first. The order hardly changes from one call
//! to the next, so each call starts with the order of the last one. Of the next few interfaces, the
//! one with the lowest level is served first. If its level is lower than one that was given before,
//! the earlier one is taken back. The levels are max-min fair once they rise along the order: each
//! flow is then limited by a full interface on which no other flow has more.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Flows of one interface, by whether the interfaces at their other ends have a level yet.
#[derive(Clone, Copy, Debug, Default)]
struct Crossflow {
    /// Flows to interfaces without a level.
    rising: f64,
    /// Bits a second of the flows to interfaces with one.
    given: f64,
}

impl Crossflow {
    fn and(self, other: Self) -> Self {
        Self { rising: self.rising + other.rising, given: self.given + other.given }
    }
}

/// A coflow while its rates are computed.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct CoflowShare {
    /// Flows of a pair of sender and receiver, and flows that a host would have to itself but has
    /// not.
    flows: f64,
    self_pair: f64,
    /// By side: the flows of one interface of the other side that belong to this coflow. All
    /// interfaces of a side have the same.
    seen: [Crossflow; 2],
    /// By side: interfaces without a level.
    open: [u32; 2],
    /// By side: index of its first rate in `rates`.
    begins: [u32; 2],
}

/// Active senders and receivers of one coflow, as the solver last saw them: the coflow's own lists
/// are newer until [`InterfaceLevels::lose`] is called. `is_apart`: a host that sends and receives
/// has no flow to itself.
#[derive(Default)]
struct Hosts {
    sides: [Vec<u32>; 2],
    is_apart: bool,
}

/// One coflow on one interface.
#[derive(Clone, Copy, Debug)]
struct InterfaceMember {
    /// Twice the coflow's number; plus one if the host has no flow to itself.
    group: u32,
    /// Index of the host on its side of the coflow.
    at: u32,
}

impl InterfaceMember {
    fn group(self) -> usize {
        self.group as usize / 2
    }

    fn is_hole(self) -> bool {
        self.group % 2 == 1
    }

    /// `flows` if the host has no flow to itself, else zero. A table, because a branch here is
    /// mispredicted every other time.
    fn hole(self, flows: f64) -> f64 {
        [0.0, flows][self.group as usize % 2]
    }
}

/// The solver: coflows by interface, and their rates. Interfaces are numbered by host, first all
/// that send, then all that receive.
#[derive(Default)]
pub struct InterfaceLevels {
    hosts: usize,
    /// By number of the coflow; then the numbers that are free.
    coflows: Vec<Hosts>,
    free: Vec<u32>,
    /// By interface: its coflows.
    members: Vec<Vec<InterfaceMember>>,
    /// By host: flows from the host to itself that its coflows do not have.
    holes: Vec<f64>,
    /// Interfaces in the order of the last levels (a few may have no coflow any more), and whether
    /// an interface is in this list.
    order: Vec<u32>,
    is_listed: Vec<bool>,
    groups: Vec<CoflowShare>,
    /// Bits a second of each sender and receiver.
    rates: Vec<f64>,
    /// By interface, once it is known: the level in bits a second; 0 if no flow needs it.
    levels: Vec<Option<f64>>,
    /// Buffers that are kept: interfaces with a level, in order, and the next candidates, by the
    /// least level that they can have.
    done: Vec<(f64, u32)>,
    next: BinaryHeap<Reverse<(u64, u32)>>,
}

/// Fewer flows count as none: numbers of flows are real numbers.
const NONE: f64 = 1e-9;

/// A level may be lower than the one before it by this fraction: rounding makes as much.
const SAME: f64 = 1e-9;

/// How many candidates are compared for the next level (measured: a few more or less take as long).
/// Two in tests, so that some levels are taken back there.
const NEXT: usize = if cfg!(test) { 2 } else { 8 };

impl InterfaceLevels {
    /// No coflows, between `hosts` hosts.
    pub fn new(hosts: usize) -> Self {
        let members = (0..2 * hosts).map(|_| Vec::new()).collect();
        Self {
            hosts,
            members,
            holes: vec![0.0; hosts],
            is_listed: vec![false; 2 * hosts],
            levels: vec![None; 2 * hosts],
            ..Self::default()
        }
    }

    /// Adds a coflow between these senders and receivers; `is_apart`: no host has a flow to itself.
    /// Returns its number. O(hosts of the coflow).
    pub fn enter(&mut self, hosts: [&[u32]; 2], is_apart: bool) -> u32 {
        let number = self.free.pop().unwrap_or(self.coflows.len() as u32);
        if number as usize == self.coflows.len() {
            self.coflows.push(Hosts::default());
            self.groups.push(CoflowShare::default());
        }
        self.coflows[number as usize] = Hosts { sides: hosts.map(<[u32]>::to_vec), is_apart };
        for (side, hosts) in hosts.iter().enumerate() {
            for (&host, at) in hosts.iter().zip(0..) {
                let l = side * self.hosts + host as usize;
                self.members[l].push(InterfaceMember { group: 2 * number, at });
                if !std::mem::replace(&mut self.is_listed[l], true) {
                    self.order.push(l as u32);
                }
            }
        }
        if is_apart {
            let mut sends = vec![false; self.hosts];
            hosts[0].iter().for_each(|&host| sends[host as usize] = true);
            for &host in hosts[1].iter().filter(|&&host| sends[host as usize]) {
                for side in 0..2 {
                    self.last_member(side, host).group += 1;
                }
            }
        }
        number
    }

    /// The coflow that was added last to an interface.
    fn last_member(&mut self, side: usize, host: u32) -> &mut InterfaceMember {
        self.members[side * self.hosts + host as usize].last_mut().expect("a coflow has come")
    }

    /// Index of a coflow among those of an interface. O(coflows of the interface).
    fn place_of(&self, number: u32, side: usize, host: u32) -> Option<usize> {
        self.members[side * self.hosts + host as usize].iter().position(|m| m.group / 2 == number)
    }

    /// Removes a host from one side of a coflow; the last host of that side takes its index.
    /// O(coflows of three interfaces).
    pub fn lose(&mut self, number: u32, side: usize, host: u32) {
        let Some(place) = self.place_of(number, side, host) else { return };
        let gone = self.members[side * self.hosts + host as usize].remove(place);
        let hosts = &mut self.coflows[number as usize].sides[side];
        hosts.swap_remove(gone.at as usize);
        if let Some(&moved) = hosts.get(gone.at as usize)
            && let Some(place) = self.place_of(number, side, moved)
        {
            self.members[side * self.hosts + moved as usize][place].at = gone.at;
        }
        if gone.is_hole()
            && let Some(place) = self.place_of(number, 1 - side, host)
        {
            self.members[(1 - side) * self.hosts + host as usize][place].group -= 1;
        }
    }

    /// Removes a coflow. O(coflows of its interfaces).
    pub fn leave(&mut self, number: u32) {
        let Hosts { sides, .. } = std::mem::take(&mut self.coflows[number as usize]);
        for (side, hosts) in sides.iter().enumerate() {
            for &host in hosts {
                if let Some(place) = self.place_of(number, side, host) {
                    self.members[side * self.hosts + host as usize].remove(place);
                }
            }
        }
        self.free.push(number);
    }

    /// Computes the rates of all coflows, given as (number, flows of a pair of sender and
    /// receiver), on interfaces of these capacities. O(interfaces of coflows) where the order
    /// hardly changes, else a few times that and O(hosts log hosts).
    pub fn share(&mut self, capacity: &[f64], coflows: impl Iterator<Item = (u32, f64)>) {
        let mut begin = 0;
        for (number, flows) in coflows {
            let Hosts { sides, is_apart } = &self.coflows[number as usize];
            let [up, down] = sides.each_ref().map(|hosts| hosts.len() as u32);
            // The last sender and the last receiver have flows even if they are one host: amounts
            // are not exact.
            let hole = if *is_apart && [up, down] != [1, 1] { flows } else { 0.0 };
            self.groups[number as usize] = CoflowShare {
                flows,
                self_pair: hole,
                begins: [begin, begin + up],
                ..CoflowShare::default()
            };
            begin += up + down;
        }
        self.rates.resize(begin as usize, 0.0);
        self.reset();
        if !self.give_all(capacity, NEXT) {
            self.reset();
            self.give_all(capacity, usize::MAX);
        }
    }

    /// Rates of the senders and of the receivers of a coflow, in bits a second.
    pub fn rates(&self, number: u32) -> [&[f64]; 2] {
        let (g, sides) = (&self.groups[number as usize], &self.coflows[number as usize].sides);
        [0, 1].map(|k| &self.rates[g.begins[k] as usize..][..sides[k].len()])
    }

    /// Takes all levels back.
    fn reset(&mut self) {
        for (g, hosts) in self.groups.iter_mut().zip(&self.coflows) {
            g.open = hosts.sides.each_ref().map(|hosts| hosts.len() as u32);
            g.seen = g.open.map(|n| Crossflow { rising: g.flows * f64::from(n), given: 0.0 });
        }
        self.levels.fill(None);
        for (hole, members) in self.holes.iter_mut().zip(&self.members) {
            *hole = members.iter().map(|m| m.hole(self.groups[m.group()].self_pair)).sum();
        }
    }

    /// Gives levels in the order of the last call, each time to the lowest of `width` candidates.
    /// False if the order has changed too much for that; never if `width` covers all.
    fn give_all(&mut self, capacity: &[f64], width: usize) -> bool {
        let mut order = std::mem::take(&mut self.order);
        order.retain(|&l| {
            self.is_listed[l as usize] = !self.members[l as usize].is_empty();
            self.is_listed[l as usize]
        });
        let (mut done, mut next) = (std::mem::take(&mut self.done), std::mem::take(&mut self.next));
        done.clear();
        next.clear();
        let entry = |level: f64, l: u32| Reverse((level.max(0.0).to_bits(), l));
        let (mut rest, mut patience) = (order.iter(), order.len() / 4);
        let is_found = loop {
            while next.len() < width
                && let Some(&l) = rest.next()
            {
                next.push(entry(self.level(l as usize, capacity), l));
            }
            let Some(Reverse((_, l))) = next.pop() else { break true };
            // Other interfaces have got levels since this candidate was looked at, so its own is
            // higher now, perhaps above the next one's.
            let level = self.level(l as usize, capacity);
            if next.peek().is_some_and(|Reverse((lowest, _))| f64::from_bits(*lowest) < level) {
                next.push(entry(level, l));
                continue;
            }
            match done.last() {
                Some(&(last, before)) if level < last * (1.0 - SAME) && width < order.len() => {
                    if patience == 0 {
                        break false;
                    }
                    patience -= 1;
                    done.pop();
                    self.take_back(before as usize);
                    next.push(entry(last, before));
                    next.push(entry(level, l));
                }
                last => {
                    let last = last.map_or(0.0, |d| d.0);
                    let waits = level < f64::INFINITY;
                    // Rounding may have given a little more than the capacity.
                    self.give(l as usize, if waits { level.max(0.0) } else { 0.0 });
                    done.push((if waits { level.max(last) } else { last }, l));
                }
            }
        };
        if is_found {
            order.clear();
            order.extend(done.iter().map(|d| d.1));
        }
        (self.order, self.done, self.next) = (order, done, next);
        is_found
    }

    /// The level that an interface gets if it is the next one. Infinite if none of its flows needs
    /// a level; negative if its flows have more than its capacity already.
    fn level(&self, l: usize, capacity: &[f64]) -> f64 {
        let Crossflow { rising, given } = self.seen(l);
        let left = capacity[l] - given;
        if rising > NONE {
            left / rising
        } else if left < -SAME * capacity[l] {
            -1.0
        } else {
            f64::INFINITY
        }
    }

    /// Level of the same host's interface in the other direction.
    fn level_of_twin(&self, l: usize) -> Option<f64> {
        self.levels[if l < self.hosts { l + self.hosts } else { l - self.hosts }]
    }

    /// Flows of an interface over all its coflows. O(coflows of the interface).
    fn seen(&self, l: usize) -> Crossflow {
        let other = usize::from(l < self.hosts);
        // Two sums, so that one addition does not wait for the other.
        let mut sums = [Crossflow::default(); 2];
        let (pairs, last) = self.members[l].as_chunks::<2>();
        for two in pairs {
            for (sum, m) in sums.iter_mut().zip(two) {
                *sum = sum.and(self.groups[m.group()].seen[other]);
            }
        }
        for m in last {
            sums[0] = sums[0].and(self.groups[m.group()].seen[other]);
        }
        let Crossflow { rising, given } = sums[0].and(sums[1]);
        let holes = self.holes[if l < self.hosts { l } else { l - self.hosts }];
        match self.level_of_twin(l) {
            None => Crossflow { rising: rising - holes, given },
            Some(level) => Crossflow { rising, given: given - holes * level },
        }
    }

    /// Fixes the level of one interface, and charges the rates that follow to the interfaces at the
    /// other ends.
    fn give(&mut self, l: usize, level: f64) {
        let (side, other) = (usize::from(l >= self.hosts), usize::from(l < self.hosts));
        let to_itself = self.level_of_twin(l).unwrap_or(level);
        for m in &self.members[l] {
            let g = &mut self.groups[m.group()];
            let hole = m.hole(g.self_pair * to_itself);
            let Crossflow { rising, given } = g.seen[other];
            self.rates[(g.begins[side] + m.at) as usize] = (given + level * rising - hole).max(0.0);
            g.open[side] -= 1;
            g.seen[side] = Crossflow {
                rising: g.flows * f64::from(g.open[side]),
                given: g.seen[side].given + g.flows * level,
            };
        }
        self.levels[l] = Some(level);
    }

    /// Undoes the last [`InterfaceLevels::give`].
    fn take_back(&mut self, l: usize) {
        let (side, level) = (usize::from(l >= self.hosts), self.levels[l].take().unwrap_or(0.0));
        for m in &self.members[l] {
            let g = &mut self.groups[m.group()];
            g.open[side] += 1;
            g.seen[side] = Crossflow {
                rising: g.flows * f64::from(g.open[side]),
                given: g.seen[side].given - g.flows * level,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Flows of a pair; whether a host has none to itself; senders and receivers.
    type PairLoads = Vec<(f64, bool, [Vec<u32>; 2])>;

    /// The slow twin, by definition: the rates of all flows that cross no full interface rise
    /// together until one is full.
    fn slowly(capacity: &[f64], coflows: &PairLoads) -> Vec<f64> {
        let hosts = capacity.len() / 2;
        let mut flows = Vec::new();
        for (c, (n, is_apart, [up, down])) in coflows.iter().enumerate() {
            let is_last = up.len() == 1 && down.len() == 1;
            let pairs = up
                .iter()
                .flat_map(|&a| down.iter().map(move |&b| (a, b)))
                .filter(|(a, b)| a != b || !is_apart || is_last);
            flows.extend(pairs.map(|(a, b)| (c, a as usize, hosts + b as usize, *n, None)));
        }
        while flows.iter().any(|f| f.4.is_none()) {
            let level = |l: usize| {
                let mine = flows.iter().filter(|f| f.1 == l || f.2 == l);
                let (n, used) = mine.fold((0.0, 0.0), |(n, used), f| {
                    f.4.map_or((n + f.3, used), |rate: f64| (n, used + f.3 * rate))
                });
                if n > 0.0 { (capacity[l] - used) / n } else { f64::INFINITY }
            };
            let levels: Vec<f64> = (0..2 * hosts).map(level).collect();
            let least = levels.iter().copied().fold(f64::INFINITY, f64::min);
            let is_full = |l: usize| levels[l] <= least * (1.0 + 1e-12);
            flows
                .iter_mut()
                .filter(|f| f.4.is_none() && (is_full(f.1) || is_full(f.2)))
                .for_each(|f| f.4 = Some(least));
        }
        let of = |c: usize, l: usize| {
            flows
                .iter()
                .filter(|f| f.0 == c && (f.1 == l || f.2 == l))
                .map(|f| f.3 * f.4.unwrap_or(0.0))
                .sum()
        };
        let members = |(c, (_, _, [up, down])): (usize, &(f64, bool, [Vec<u32>; 2]))| {
            let all =
                up.iter().map(|&a| a as usize).chain(down.iter().map(|&b| hosts + b as usize));
            all.map(|l| (c, l)).collect::<Vec<_>>()
        };
        coflows.iter().enumerate().flat_map(members).map(|(c, l)| of(c, l)).collect()
    }

    /// By a new solver, to which the coflows are added one after the other.
    fn quickly(capacity: &[f64], coflows: &PairLoads) -> Vec<f64> {
        let mut levels = InterfaceLevels::new(capacity.len() / 2);
        let numbers = coflows
            .iter()
            .map(|(_, is_apart, sides)| levels.enter(sides.each_ref().map(|s| &s[..]), *is_apart))
            .collect();
        rates(&mut levels, capacity, coflows, numbers)
    }

    fn rates(
        levels: &mut InterfaceLevels,
        capacity: &[f64],
        coflows: &PairLoads,
        numbers: Vec<u32>,
    ) -> Vec<f64> {
        levels.share(capacity, numbers.iter().copied().zip(coflows.iter().map(|c| c.0)));
        numbers.into_iter().flat_map(|number| levels.rates(number).concat()).collect()
    }

    #[test]
    fn by_hand() {
        // Host 2 receives four flows: 3 each. Host 0 sends one of these and one to host 3, which
        // takes the other 9.
        let coflows = vec![(1.0, true, [vec![0], vec![2, 3]]), (3.0, true, [vec![1], vec![2]])];
        assert_eq!(quickly(&[12.0; 8], &coflows), [12.0, 3.0, 9.0, 9.0, 9.0]);
        // Three hosts send to each other: each has two flows, and with one to itself three.
        let all = |is_apart| {
            vec![(1.0, is_apart, [vec![0, 1, 2], vec![0, 1, 2]]), (1.0, true, [vec![0], vec![3]])]
        };
        assert_eq!(quickly(&[12.0; 8], &all(true)), [8.0, 12.0, 12.0, 12.0, 10.0, 10.0, 4.0, 4.0]);
        assert_eq!(quickly(&[12.0; 8], &all(false)), [9.0, 12.0, 12.0, 11.0, 11.0, 11.0, 3.0, 3.0]);
    }

    fn any_load() -> impl Strategy<Value = (Vec<f64>, PairLoads)> {
        let side = || prop::collection::btree_set(0u32..5, 1..6);
        let sides = |up: BTreeSet<u32>, down: BTreeSet<u32>| {
            [up, down].map(|side| side.into_iter().collect())
        };
        let coflow =
            (1u32..4, any::<bool>(), side(), side()).prop_map(move |(n, is_apart, up, down)| {
                let flows = f64::from(n) / 2.0;
                (flows, is_apart, sides(up, down))
            });
        let capacity = prop::collection::vec((1u32..9).prop_map(|c| 60.0 * f64::from(c)), 10);
        (capacity, prop::collection::vec(coflow, 0..6))
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn as_if_flows_were_told_apart((capacity, coflows) in any_load()) {
            for (quick, slow) in quickly(&capacity, &coflows).into_iter().zip(slowly(&capacity, &coflows)) {
                prop_assert!((quick - slow).abs() < 1e-6, "{quick} {slow}");
            }
        }

        #[test]
        fn while_hosts_are_through_and_coflows_come_and_go(
            (capacity, coflows) in any_load(),
            steps in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0usize..3), 0..30),
        ) {
            let mut levels = InterfaceLevels::new(5);
            let (mut open, mut numbers): (PairLoads, Vec<u32>) = (vec![], vec![]);
            let mut rest = coflows.into_iter();
            for (which, host, what) in steps {
                if what == 0 || open.is_empty() {
                    let Some(c) = rest.next() else { continue };
                    numbers.push(levels.enter(c.2.each_ref().map(|s| &s[..]), c.1));
                    open.push(c);
                } else {
                    let (k, side) = (which.index(open.len()), what - 1);
                    let hosts = &mut open[k].2[side];
                    if hosts.len() > 1 {
                        levels.lose(numbers[k], side, hosts.swap_remove(host.index(hosts.len())));
                    } else {
                        levels.leave(numbers.remove(k));
                        open.remove(k);
                    }
                }
                let quick = rates(&mut levels, &capacity, &open, numbers.clone());
                for (quick, slow) in quick.into_iter().zip(slowly(&capacity, &open)) {
                    prop_assert!((quick - slow).abs() < 1e-6, "{quick} {slow}");
                }
            }
        }
    }
}
