//! Lists of switches by labels: a path's number in the destination MAC, one program a switch port.
//!
//! A change has two phases. First a path with the new list gets a record under a number that no
//! packet carries; then one store at the first switch gives that number to all packets from then
//! on. Each packet is labelled once, so it crosses the old list or the new one and never a mixture.
//! The old number is used again when as many packets have come out as went in, or when none can be
//! on its way any more.
//!
//! Source: Reitblatt et al., *Abstractions for network update*, SIGCOMM 2012: per-packet
//! consistency by versions stamped at the ingress.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::egress::EgressMap;
use super::packet::PacketSwitch;
use crate::bpf::switches::{self, ADMITTED, DELIVERED, FLOWS, HOPS, PathArrays, PathEntry, SETS};
use crate::ids::{HostId, RackId};
use crate::network::EmulatedNetwork;
use crate::nl::NEW;
use crate::plan::paths::{Lists, PathEnds, PathError, Ports, Steer};
use crate::units::{Span, Time};
use crate::{Clock, queues, tc};

mod keep;

/// Paths beside the racks' default ones that a fabric holds at once.
const PATHS: usize = 32_768;
/// Time after a change by which a packet whose number was read just before it has been counted.
const COUNTED: Span = Span::millis(10);

/// The arrays, and what was written into them.
pub struct Labels {
    arrays: PathArrays,
    ways: EgressMap,
    clock: Clock,
    /// By host: its rack and its number there.
    places: Vec<(usize, usize)>,
    /// The daemon is the only writer, so this is what the programs do.
    lists: Lists,
    /// By pair or flow that has a list: the number of its path.
    numbers: BTreeMap<PathEnds, u32>,
    sets: PathSets,
    book: Book,
    drain: Span,
    /// The cells of pairs that are not zero, by their place in the array, as they were written.
    given: BTreeMap<usize, u64>,
    compared: keep::KeepCursor,
}

impl Labels {
    /// Writes the default paths of all racks, and loads a program for every port.
    ///
    /// # Errors
    /// What the kernel refused, or a default way of too many switches.
    pub fn install(net: &mut EmulatedNetwork, ways: EgressMap, clock: Clock) -> io::Result<Self> {
        let topology = net.topology.clone();
        let racks = topology.rack_count();
        let most = topology.racks.iter().map(|r| r.hosts as usize).max().unwrap_or(1);
        let (defaults, paths) = (racks * racks, racks * racks + PATHS);
        let arrays = PathArrays::new(racks, most, net.eps.len(), paths)?;
        let mut book = Book::new(defaults as u32..paths as u32);
        for (from, to) in
            (0..racks).flat_map(|a| (0..racks).filter(move |&b| a != b).map(move |b| (a, b)))
        {
            let record = ways.default(RackId::from(from), RackId::from(to));
            if record.len() > HOPS {
                let why = format!(
                    "the way from rack {from} to rack {to} crosses {} switches; `timed` carries at most {HOPS}",
                    record.len()
                );
                return Err(io::Error::new(io::ErrorKind::Unsupported, why));
            }
            let number = (from * racks + to) as u32;
            write(&arrays, number, &record);
            book.keep(record, number);
        }
        for (k, s) in net.eps.iter_mut().enumerate() {
            hang(&arrays, k as u16, s)?;
        }
        let places = topology.hosts.iter().map(|h| (h.rack.index(), h.index as usize)).collect();
        let drain = queues::drain(&topology, HOPS);
        let (lists, numbers, sets, given, compared) = Default::default();
        Ok(Self { arrays, ways, clock, places, lists, numbers, sets, book, drain, given, compared })
    }

    /// Changes the list of one pair of hosts, or of one flow; gives when packets had it.
    ///
    /// # Errors
    /// Why not; nothing has changed then.
    pub fn steer(&mut self, op: &Steer) -> Result<Time, PathError> {
        let record = self.ways.wanted(op)?;
        let ends = op.ends();
        if self.lists.at(ends) == op.list.as_ref() {
            return Ok(self.clock.now());
        }
        if record.len() > HOPS {
            return Err(PathError::TooLong { length: record.len(), most: HOPS });
        }
        // A flow's cell first: there may be none left.
        let cell = ends.ports.map(|p| self.sets.cell(ends.hosts(), p)).transpose()?;
        let number = op.list.is_some().then(|| self.number(record)).transpose()?;
        match (ends.ports, cell) {
            (Some(ports), Some(cell)) => self.give_flow(ends.hosts(), ports, cell, number),
            _ => self.give_pair(ends.hosts(), number.unwrap_or(0)),
        }
        let old = match number {
            Some(n) => self.numbers.insert(ends, n),
            None => self.numbers.remove(&ends),
        };
        self.lists.follow(op);
        let now = self.clock.now();
        if let Some(old) = old {
            self.book.leave(old, now);
        }
        Ok(now)
    }

    /// Where the array has a pair of hosts.
    fn pair(&self, (from, to): (HostId, HostId)) -> usize {
        self.arrays.pair(self.places[from.index()], self.places[to.index()])
    }

    /// All of a pair's packets that are of no flow with a path of its own get this number from now
    /// on.
    fn give_pair(&mut self, hosts: (HostId, HostId), number: u32) {
        let (at, cell) =
            (self.pair(hosts), u64::from(number) | (self.sets.of(hosts).unwrap_or(0) as u64) << 32);
        self.arrays.pairs.cell(at, 0).store(cell, Release);
        match cell {
            0 => self.given.remove(&at),
            cell => self.given.insert(at, cell),
        };
    }

    /// A flow's packets get this number from now on; `None`: that of its pair. The cell is the
    /// flow's.
    fn give_flow(
        &mut self,
        hosts: (HostId, HostId),
        ports: Ports,
        (set, k): (usize, usize),
        number: Option<u32>,
    ) {
        let of_pair = self.numbers.get(&hosts.into()).copied().unwrap_or(0);
        self.arrays
            .flows
            .cell(set, k)
            .store(number.map_or(0, |n| switches::flow_cell(ports, n)), Release);
        if number.is_some() {
            self.sets.keep(hosts, ports, (set, k));
        } else {
            self.sets.leave(hosts, ports);
        }
        self.give_pair(hosts, of_pair);
    }

    /// The number of a path with this record, for one more pair; written if there is none yet.
    fn number(&mut self, record: Vec<PathEntry>) -> Result<u32, PathError> {
        let (arrays, now, drain) = (&self.arrays, self.clock.now(), self.drain);
        let on_the_way = |n: u32| {
            let count = |k: usize| arrays.counts.cell(n as usize, k).load(Acquire);
            count(ADMITTED).saturating_sub(count(DELIVERED))
        };
        let free = |lost: u64, n: u32, since: Time| {
            let passed = now.since(since);
            passed >= drain || passed >= COUNTED && on_the_way(n) == lost
        };
        let (number, fresh) =
            self.book.take(&record, free, on_the_way).ok_or(PathError::Full(PATHS))?;
        if fresh {
            write(&self.arrays, number, &record);
        }
        Ok(number)
    }

    /// The lists that pairs have by a change.
    pub fn steered(&self) -> Lists {
        self.lists.clone()
    }

    /// Packets that first switches sent off, and that last switches delivered, as the kernel
    /// handles them (aggregated).
    pub fn packets(&self) -> [u64; 2] {
        let sum = |k: usize| {
            (0..self.ways.racks().pow(2) + PATHS)
                .map(|n| self.arrays.counts.cell(n, k).load(Relaxed))
                .sum()
        };
        // Delivered first: it can never be seen ahead of admitted.
        let delivered = sum(DELIVERED);
        [sum(ADMITTED), delivered]
    }

    /// By switch, the packets that it dropped because it is not on their path.
    pub fn strays(&self) -> Vec<u64> {
        (0..self.arrays.strays.len()).map(|s| self.arrays.strays.cell(s, 0).load(Relaxed)).collect()
    }
}

/// Which flows have paths of their own, and where the arrays have them.
#[derive(Debug, Default)]
struct PathSets {
    /// By pair of hosts: its set, and the cells of its flows.
    by_pair: BTreeMap<(HostId, HostId), (usize, BTreeMap<Ports, usize>)>,
    used: BTreeSet<usize>,
    /// The set that was taken last. Those behind it come first, so that no packet finds a set that
    /// has just changed its pair.
    last: usize,
}

impl PathSets {
    /// The set of a pair of hosts, if flows of it have paths of their own.
    fn of(&self, hosts: (HostId, HostId)) -> Option<usize> {
        self.by_pair.get(&hosts).map(|s| s.0)
    }

    /// The cell of a flow, or the one that it would have.
    ///
    /// # Errors
    /// As many flows or pairs as there is room for have paths of their own.
    fn cell(&self, hosts: (HostId, HostId), ports: Ports) -> Result<(usize, usize), PathError> {
        let Some((set, flows)) = self.by_pair.get(&hosts) else {
            let mut all = (self.last + 1..SETS).chain(1..=self.last);
            let free = all.find(|s| !self.used.contains(s));
            return free.map(|s| (s, 0)).ok_or(PathError::ManyPairs(SETS - 1));
        };
        let free = || (0..FLOWS).find(|k| flows.values().all(|used| used != k));
        let cell = flows.get(&ports).copied().or_else(free);
        cell.map(|k| (*set, k)).ok_or(PathError::ManyFlows(FLOWS))
    }

    fn keep(&mut self, hosts: (HostId, HostId), ports: Ports, (set, k): (usize, usize)) {
        if self.used.insert(set) {
            self.last = set;
        }
        self.by_pair.entry(hosts).or_insert_with(|| (set, BTreeMap::new())).1.insert(ports, k);
    }

    fn leave(&mut self, hosts: (HostId, HostId), ports: Ports) {
        let Some((set, flows)) = self.by_pair.get_mut(&hosts) else { return };
        flows.remove(&ports);
        if flows.is_empty() {
            self.used.remove(set);
            self.by_pair.remove(&hosts);
        }
    }
}

/// A program on every port of switch `own`. Where it is limited, cables' ports lead to the limit
/// already, and packets go on behind it.
fn hang(arrays: &PathArrays, own: u16, s: &mut PacketSwitch) -> io::Result<()> {
    let divert = s.limit.map(|(way_in, _)| way_in);
    let first = |&(r, link): &(usize, u32)| {
        Ok((link, switches::load_first(arrays, own, r, divert)?, "heliostat_first"))
    };
    let mut programs = s.racks.iter().map(first).collect::<io::Result<Vec<_>>>()?;
    let next: Vec<u32> = match s.limit {
        Some((_, way_out)) => vec![way_out],
        None => s.cables.iter().map(|&(_, link)| link).collect(),
    };
    if let Some((&link, others)) = next.split_first() {
        let program = switches::load_next(arrays, own)?;
        for &other in others {
            programs.push((other, program.try_clone()?, "heliostat_next"));
        }
        programs.push((link, program, "heliostat_next"));
    }
    let on = |(link, program, name): &(u32, OwnedFd, &str)| {
        [(tc::clsact(*link), NEW), (tc::bpf_ingress(*link, program.as_fd(), name), NEW)]
    };
    s.node.send(programs.iter().flat_map(on).collect())?;
    s.node.log.hold(programs.into_iter().map(|p| p.1));
    Ok(())
}

/// Puts a record into the kernel, the last switch first; no packet carries its number yet.
fn write(arrays: &PathArrays, number: u32, record: &[PathEntry]) {
    for k in (0..HOPS).rev() {
        arrays.paths.cell(number as usize, k).store(record.get(k).map_or(0, |e| e.cell()), Release);
    }
}

/// The number of each record. Equal records share one.
#[derive(Debug, Default)]
struct Book {
    by_record: BTreeMap<Vec<PathEntry>, u32>,
    held: BTreeMap<u32, HeldRecord>,
    /// Numbers without a record.
    free: VecDeque<u32>,
    /// Numbers that no pair has any more, and since when; the oldest first. They keep their records
    /// until they are needed.
    left: VecDeque<(u32, Time)>,
    /// By number: packets that never came out, dropped at a full queue while it was used before.
    lost: BTreeMap<u32, u64>,
}

#[derive(Debug)]
struct HeldRecord {
    record: Vec<PathEntry>,
    /// Pairs that have it; a default path counts as one pair more.
    pairs: usize,
}

impl Book {
    fn new(numbers: std::ops::Range<u32>) -> Self {
        Self { free: numbers.collect(), ..Self::default() }
    }

    /// Keeps a default path for ever. Of two with one record the first is shared.
    fn keep(&mut self, record: Vec<PathEntry>, number: u32) {
        self.by_record.entry(record.clone()).or_insert(number);
        self.held.insert(number, HeldRecord { record, pairs: 1 });
    }

    /// One more pair has the path with this record: its number, and whether the record is new.
    /// `missing` says how many packets of a number never came out. `free` says whether a number
    /// that was left may get another record: by the packets of it that were lost before, itself,
    /// and since when no pair has it. O(log paths + those left lately).
    fn take(
        &mut self,
        record: &[PathEntry],
        free: impl Fn(u64, u32, Time) -> bool,
        missing: impl Fn(u32) -> u64,
    ) -> Option<(u32, bool)> {
        if let Some(&number) = self.by_record.get(record) {
            let held = self.held.get_mut(&number)?;
            held.pairs += 1;
            if held.pairs == 1 {
                self.left.retain(|&(n, _)| n != number);
            }
            return Some((number, false));
        }
        let number = self.free.pop_front().or_else(|| {
            let lost = |n| self.lost.get(&n).copied().unwrap_or(0);
            let at = self.left.iter().position(|&(n, since)| free(lost(n), n, since))?;
            let (number, _) = self.left.remove(at)?;
            self.lost.insert(number, missing(number));
            let old = self.held.remove(&number)?;
            self.by_record.remove(&old.record);
            Some(number)
        })?;
        self.by_record.insert(record.to_vec(), number);
        self.held.insert(number, HeldRecord { record: record.to_vec(), pairs: 1 });
        Some((number, true))
    }

    /// Takes the path away from one pair.
    fn leave(&mut self, number: u32, now: Time) {
        if let Some(held) = self.held.get_mut(&number) {
            held.pairs -= 1;
            if held.pairs == 0 {
                self.left.push_back((number, now));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(k: u32) -> Vec<PathEntry> {
        vec![PathEntry { switch: 1, out: k, rack: Some(0) }]
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        /// Pairs take and leave records; some of the numbers that are left still have packets on
        /// their way.
        #[test]
        fn no_number_changes_its_record_while_it_may_be_on_its_way(steps in prop::collection::vec((0..6usize, 0..9u32, 0..16u8), 1..80)) {
            const FIRST: u32 = 2;
            let mut book = Book::new(FIRST..FIRST + 4);
            book.keep(record(0), 0);
            book.keep(record(1), 1);
            let mut pairs: [Option<(u32, u32)>; 6] = Default::default();
            let mut means: BTreeMap<u32, u32> = [(0, 0), (1, 1)].into();
            for (t, (pair, wanted, busy)) in steps.into_iter().enumerate() {
                let free = |_: u64, n: u32, _: Time| busy >> (n - FIRST) & 1 == 0;
                if let Some((number, fresh)) = book.take(&record(wanted), free, |_| 0) {
                    if fresh {
                        prop_assert!(pairs.iter().flatten().all(|&(n, _)| n != number), "a pair has it");
                        let was = means.insert(number, wanted);
                        prop_assert!(was.is_none() || free(0, number, Time(0)), "a packet may carry it");
                        prop_assert!(number >= FIRST);
                    }
                    prop_assert_eq!(means[&number], wanted);
                    if let Some((old, _)) = pairs[pair].replace((number, wanted)) {
                        book.leave(old, Time(t as u64));
                    }
                } else {
                    let used = pairs.iter().flatten().filter(|p| p.0 >= FIRST).map(|p| p.0).collect::<std::collections::BTreeSet<_>>();
                    prop_assert!((FIRST..FIRST + 4).all(|n| used.contains(&n) || busy >> (n - FIRST) & 1 == 1), "there was room");
                }
                for (n, k) in pairs.iter().flatten() {
                    prop_assert_eq!(&book.held[n].record, &record(*k));
                }
            }
        }
    }
}
