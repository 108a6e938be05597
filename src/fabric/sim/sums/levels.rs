//! Max-min fair rates where flows are not told apart.
//!
//! Under max-min every interface has a level: what it gives to each flow that nothing else holds back. A flow has the lower one of its
//! sender's and its receiver's. An interface whose flows all have less at their other ends has none. So what a sender sends to the
//! receivers of a coflow follows from these levels, and from how many flows it has to each of them, which is the same number for all. Only
//! to itself a host may have none.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A coflow as it is shared.
#[derive(Clone, Copy)]
pub struct Shared<'a> {
    /// Flows between a sender and a receiver.
    pub flows: f64,
    /// Whether a host that sends and receives has none to itself.
    pub is_apart: bool,
    /// Hosts that send, and hosts that receive.
    pub hosts: [&'a [u32]; 2],
    /// The same as bits.
    pub bits: [&'a [u64]; 2],
}

impl Shared<'_> {
    /// Whether a host sends and receives, but not to itself.
    fn is_hole(&self, host: u32) -> bool {
        // Its last sender and its last receiver have flows even if they are one host: amounts are not exact.
        let is_last = self.hosts.iter().all(|side| side.len() == 1);
        self.is_apart && !is_last && self.bits.iter().all(|bits| bits[host as usize / 64] >> (host % 64) & 1 == 1)
    }
}

/// A coflow while rates are found. What an interface of one side has to those of the other one is the same for all.
#[derive(Clone, Copy, Debug)]
struct Group {
    flows: f64,
    /// By side: interfaces that have no level yet.
    open: [u32; 2],
    /// By side, as an interface of the other side sees it: its flows to those that have no level yet, and bits a second of its flows to the
    /// others.
    rising: [f64; 2],
    given: [f64; 2],
}

/// An interface of a coflow.
#[derive(Clone, Copy, Debug, Default)]
struct Member {
    group: u32,
    /// Its place in [`Levels::rates`].
    at: u32,
    is_hole: bool,
}

/// Finds the rates. It keeps its memory.
#[derive(Default)]
pub struct Levels {
    groups: Vec<Group>,
    /// Of each coflow, senders and then receivers: rates in bits a second.
    rates: Vec<f64>,
    /// By interface, senders by host and then receivers: where its members begin, and all members.
    begins: Vec<u32>,
    members: Vec<Member>,
    /// By host: flows to itself that its coflows do not have.
    holes: Vec<f64>,
    /// By interface, once it is known: bits a second of a flow that nothing else holds back; 0 if no flow waits for that.
    levels: Vec<Option<f64>>,
    /// Interfaces without a level, by the least level that they can have.
    rising: BinaryHeap<Reverse<(u64, u32)>>,
}

/// Fewer flows are none: numbers of flows are real numbers.
const NONE: f64 = 1e-9;

impl Levels {
    /// Shares interfaces of these capacities, those that send, by host, and then those that receive. O(interfaces of coflows), a few times,
    /// and O(hosts log hosts).
    pub fn share<'a>(&mut self, capacity: &[f64], coflows: impl Iterator<Item = Shared<'a>> + Clone) {
        let hosts = capacity.len() / 2;
        self.list(hosts, coflows);
        self.rising.clear();
        for (l, &all) in capacity.iter().enumerate().filter(|&(l, _)| self.begins[l] < self.begins[l + 1]) {
            let (flows, _) = self.seen(l, hosts);
            self.rising.push(Reverse(((all / flows.max(NONE)).to_bits(), l as u32)));
        }
        while let Some(Reverse((_, l))) = self.rising.pop() {
            let (flows, given) = self.seen(l as usize, hosts);
            // Rounding may have given a little more than there is.
            let level = if flows > NONE { ((capacity[l as usize] - given) / flows).max(0.0) } else { 0.0 };
            // Others have got levels since it was looked at: it gives more now, perhaps more than the next one does.
            if self.rising.peek().is_some_and(|Reverse((next, _))| f64::from_bits(*next) < level) {
                self.rising.push(Reverse((level.to_bits(), l)));
            } else {
                self.give(l as usize, hosts, level);
            }
        }
    }

    /// What the senders of each coflow and then its receivers have got, in bits a second.
    pub fn rates(&self) -> &[f64] {
        &self.rates
    }

    fn members(&self, l: usize) -> std::ops::Range<usize> {
        self.begins[l] as usize..self.begins[l + 1] as usize
    }

    /// The level of the interface by which the host of `l` does the other thing.
    fn level_of_twin(&self, l: usize, hosts: usize) -> Option<f64> {
        self.levels[if l < hosts { l + hosts } else { l - hosts }]
    }

    /// Flows of an interface to those that have no level yet, and bits a second of its flows to the others.
    fn seen(&self, l: usize, hosts: usize) -> (f64, f64) {
        let other = usize::from(l < hosts);
        let (mut rising, mut given) = (0.0, 0.0);
        for m in &self.members[self.members(l)] {
            let g = &self.groups[m.group as usize];
            rising += g.rising[other];
            given += g.given[other];
        }
        let holes = self.holes[l % hosts];
        match self.level_of_twin(l, hosts) {
            None => (rising - holes, given),
            Some(level) => (rising, given - holes * level),
        }
    }

    /// An interface has this level: so its flows to those that have none yet have.
    fn give(&mut self, l: usize, hosts: usize, level: f64) {
        let (side, other) = (usize::from(l >= hosts), usize::from(l < hosts));
        let to_itself = self.level_of_twin(l, hosts).unwrap_or(level);
        for m in &self.members[self.begins[l] as usize..self.begins[l + 1] as usize] {
            let g = &mut self.groups[m.group as usize];
            let hole = if m.is_hole { g.flows * to_itself } else { 0.0 };
            self.rates[m.at as usize] = (g.given[other] + level * g.rising[other] - hole).max(0.0);
            g.open[side] -= 1;
            g.rising[side] = g.flows * f64::from(g.open[side]);
            g.given[side] += g.flows * level;
        }
        self.levels[l] = Some(level);
    }

    /// Lists coflows, and their members by interface.
    fn list<'a>(&mut self, hosts: usize, coflows: impl Iterator<Item = Shared<'a>> + Clone) {
        let group = |c: Shared| {
            let open = c.hosts.map(|hosts| hosts.len() as u32);
            Group { flows: c.flows, open, rising: open.map(|n| c.flows * f64::from(n)), given: [0.0; 2] }
        };
        self.groups.clear();
        self.groups.extend(coflows.clone().map(group));
        self.levels.clear();
        self.levels.resize(2 * hosts, None);
        self.holes.clear();
        self.holes.resize(hosts, 0.0);
        self.begins.clear();
        self.begins.resize(2 * hosts + 2, 0);
        // Shifted by one: each begin is moved on to its end while members are put in.
        for c in coflows.clone() {
            for (k, side) in c.hosts.iter().enumerate() {
                let counts = &mut self.begins[k * hosts + 2..];
                side.iter().for_each(|&host| counts[host as usize] += 1);
            }
        }
        for l in 2..self.begins.len() {
            self.begins[l] += self.begins[l - 1];
        }
        let all = self.begins[2 * hosts + 1] as usize;
        self.rates.resize(all, 0.0);
        self.members.resize(all, Member::default());
        let mut at = 0;
        for (group, c) in coflows.enumerate() {
            for (k, side) in c.hosts.iter().enumerate() {
                let ends = &mut self.begins[k * hosts + 1..];
                for &host in *side {
                    let (end, is_hole) = (&mut ends[host as usize], c.is_hole(host));
                    self.members[*end as usize] = Member { group: group as u32, at, is_hole };
                    self.holes[host as usize] += if is_hole && k == 0 { c.flows } else { 0.0 };
                    *end += 1;
                    at += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Flows of a pair, whether a host has none to itself, senders, and receivers.
    type Load = Vec<(f64, bool, [Vec<u32>; 2])>;

    /// By the book: all flows that cross no full interface rise together, until one is full.
    fn slowly(capacity: &[f64], coflows: &Load) -> Vec<f64> {
        let hosts = capacity.len() / 2;
        let mut flows = Vec::new();
        for (c, (n, is_apart, [up, down])) in coflows.iter().enumerate() {
            let is_last = up.len() == 1 && down.len() == 1;
            let pairs = up.iter().flat_map(|&a| down.iter().map(move |&b| (a, b))).filter(|(a, b)| a != b || !is_apart || is_last);
            flows.extend(pairs.map(|(a, b)| (c, a as usize, hosts + b as usize, *n, None)));
        }
        while flows.iter().any(|f| f.4.is_none()) {
            let level = |l: usize| {
                let mine = flows.iter().filter(|f| f.1 == l || f.2 == l);
                let (n, used) = mine.fold((0.0, 0.0), |(n, used), f| f.4.map_or((n + f.3, used), |rate: f64| (n, used + f.3 * rate)));
                if n > 0.0 { (capacity[l] - used) / n } else { f64::INFINITY }
            };
            let levels: Vec<f64> = (0..2 * hosts).map(level).collect();
            let least = levels.iter().copied().fold(f64::INFINITY, f64::min);
            let is_full = |l: usize| levels[l] <= least * (1.0 + 1e-12);
            flows.iter_mut().filter(|f| f.4.is_none() && (is_full(f.1) || is_full(f.2))).for_each(|f| f.4 = Some(least));
        }
        let of = |c: usize, l: usize| flows.iter().filter(|f| f.0 == c && (f.1 == l || f.2 == l)).map(|f| f.3 * f.4.unwrap_or(0.0)).sum();
        let members = |(c, (_, _, [up, down])): (usize, &(f64, bool, [Vec<u32>; 2]))| {
            let all = up.iter().map(|&a| a as usize).chain(down.iter().map(|&b| hosts + b as usize));
            all.map(|l| (c, l)).collect::<Vec<_>>()
        };
        coflows.iter().enumerate().flat_map(members).map(|(c, l)| of(c, l)).collect()
    }

    fn quickly(capacity: &[f64], coflows: &Load) -> Vec<f64> {
        let words: Vec<_> = coflows.iter().map(|(_, _, sides)| sides.each_ref().map(|s| [s.iter().map(|h| 1 << h).sum::<u64>()])).collect();
        let shared = coflows.iter().zip(&words).map(|((flows, is_apart, hosts), words)| Shared {
            flows: *flows,
            is_apart: *is_apart,
            hosts: hosts.each_ref().map(|h| &h[..]),
            bits: words.each_ref().map(|w| &w[..]),
        });
        let mut levels = Levels::default();
        levels.share(capacity, shared);
        levels.rates().to_vec()
    }

    #[test]
    fn by_hand() {
        // Host 2 receives four flows: 3 each. Host 0 sends one of these and one to host 3, which takes the other 9.
        let coflows = vec![(1.0, true, [vec![0], vec![2, 3]]), (3.0, true, [vec![1], vec![2]])];
        assert_eq!(quickly(&[12.0; 8], &coflows), [12.0, 3.0, 9.0, 9.0, 9.0]);
        // Three hosts send to each other: each has two flows, and with one to itself three.
        let all = |is_apart| vec![(1.0, is_apart, [vec![0, 1, 2], vec![0, 1, 2]]), (1.0, true, [vec![0], vec![3]])];
        assert_eq!(quickly(&[12.0; 8], &all(true)), [8.0, 12.0, 12.0, 12.0, 10.0, 10.0, 4.0, 4.0]);
        assert_eq!(quickly(&[12.0; 8], &all(false)), [9.0, 12.0, 12.0, 11.0, 11.0, 11.0, 3.0, 3.0]);
    }

    proptest! {
        #[test]
        fn as_if_flows_were_told_apart(
            capacity in prop::collection::vec(1u32..9, 10),
            coflows in prop::collection::vec(
                (1u32..4, any::<bool>(), prop::collection::btree_set(0u32..5, 1..6), prop::collection::btree_set(0u32..5, 1..6)),
                0..6,
            ),
        ) {
            let capacity: Vec<f64> = capacity.into_iter().map(|c| 60.0 * f64::from(c)).collect();
            let sides = |up, down| [up, down].map(|side: std::collections::BTreeSet<u32>| side.into_iter().collect());
            let load = coflows.into_iter().map(|(n, is_apart, up, down)| (f64::from(n) / 2.0, is_apart, sides(up, down)));
            let coflows: Load = load.collect();
            for (quick, slow) in quickly(&capacity, &coflows).into_iter().zip(slowly(&capacity, &coflows)) {
                prop_assert!((quick - slow).abs() < 1e-6, "{quick} {slow}");
            }
        }
    }
}
