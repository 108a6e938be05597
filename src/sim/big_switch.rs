//! Max-min fair flows on a big switch: each flow crosses two links, its sender's interface and its
//! receiver's.
//!
//! This also covers racks whose uplinks and circuits carry all that their hosts can send. The rate
//! of a flow is the lower level of its two links. So all flows whose tighter link is the same have
//! one rate, and one clock a link measures their work. When rates change, the clocks change their
//! pace, and no flow is touched. A pair of hosts changes its clock only when the levels of its two
//! links change their order. A circuit changes no rate, only what is booked as sent over circuits
//! ([`Ways`]). All of that is exact; [`super::shared`] gives the same results on any network.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::FlowFinished;
use super::bit_set::BitSet;
use super::bundle::{WORK_PER_BYTE, bytes};
use super::clock::LinkClock;
use super::engine::{Engine, EngineWorld, InFlight};
use super::waiting::BundleEnds;
use crate::coflows::CoflowSpec;
use crate::demand::DemandMatrix;
use crate::demand::hedera::Elephants;
use crate::ids::{CoflowId, FlowId, HostId, RackId};
use crate::units::Time;

mod dues;
mod large;
mod levels;
mod lines;
#[cfg(test)]
mod model;
mod ways;

use dues::Dues;
use large::Large;
use levels::Levels;
use lines::PairLines;
use ways::Ways;
pub use ways::{Changing, Fixed};

/// The most hosts for which a table by pair of hosts is kept if there are no circuits.
pub const MAX_HOSTS: usize = 2048;

/// The same if circuits may change routes: then a pair takes more memory.
pub const MAX_CHANGING: usize = 1024;

/// Whether this model can run interfaces of these capacities (first all up, then all down): none is
/// too large.
pub fn serves(capacity: &[u64]) -> bool {
    capacity.iter().all(|&c| c < levels::MAX_RATE)
}

/// A flow: its pair's service at which it ends, its coflow, its number, its bytes, and the mark
/// that tells its share over circuits.
type EndingFlow<M> = (u128, CoflowId, FlowId, u64, M);

/// Work of a flow.
fn size<M>(f: &EndingFlow<M>) -> u128 {
    u128::from(f.3) * WORK_PER_BYTE
}

/// The flows between two hosts on one route. All have the same rate.
struct RoutedPair<W: Ways> {
    flows: BinaryHeap<Reverse<EndingFlow<W::Mark>>>,
    /// Work done and not booked, minus the pair's service once for each active flow; modulo 2^128.
    unbooked: u128,
    way: W,
}

impl<W: Ways> RoutedPair<W> {
    fn new() -> Self {
        Self { flows: BinaryHeap::new(), unbooked: 0, way: W::default() }
    }

    fn push(&mut self, f: EndingFlow<W::Mark>) {
        self.unbooked = self.unbooked.wrapping_sub(f.0.wrapping_sub(size(&f)));
        self.flows.push(Reverse(f));
    }

    /// Removes the first flow, which has sent all.
    fn pop(&mut self) {
        if let Some(Reverse(f)) = self.flows.pop() {
            self.unbooked = self.unbooked.wrapping_add(f.0);
        }
    }

    /// Removes the flows of a coflow at this service, up to which the pair is booked. `each` gets
    /// what each of them has sent, and how much of that over circuits.
    fn cancel(&mut self, coflow: CoflowId, service: u128, mut each: impl FnMut(u128, u128)) {
        let Self { flows, unbooked, way } = self;
        flows.retain(|Reverse(f)| {
            if f.1 == coflow {
                *unbooked = unbooked.wrapping_add(service);
                each(size(f) - f.0.saturating_sub(service), way.over_ocs(f.4, service));
            }
            f.1 != coflow
        });
    }

    /// Books the work done up to this service, at which no flow is overdue, and returns it. O(1).
    fn book(&mut self, service: u128) -> u128 {
        let each = service.wrapping_mul(self.flows.len() as u128);
        let units = self.unbooked.wrapping_add(each);
        self.unbooked = 0u128.wrapping_sub(each);
        units
    }
}

/// What gives the service of a pair. It is stored apart from the rest of the pair, so that all
/// pairs are read fast.
#[derive(Clone, Copy, Default)]
struct PairService {
    /// The link whose clock measures the service; `None` without flows.
    link: Option<u32>,
    /// The service minus the clock's reading, modulo 2^128.
    ahead: u128,
}

impl PairService {
    /// The pair's service, given the readings of the clocks.
    fn service(self, reading: impl FnOnce(usize) -> u128) -> u128 {
        self.link.map_or(0, |l| reading(l as usize).wrapping_add(self.ahead))
    }
}

/// All pairs of hosts.
pub struct RoutedPairs<W: Ways> {
    hosts: usize,
    /// Two if marked flows may take another route than the others between the same hosts, else one.
    classes: usize,
    levels: Levels,
    clocks: Vec<LinkClock>,
    /// When the first flow of each pair ends, by the pair's clock.
    dues: Dues,
    /// By clock: when the first flow on it ends.
    due: Vec<Option<Time>>,
    /// By sender and receiver. Where marked flows may take another route, their pairs follow all
    /// others.
    pairs: Vec<RoutedPair<W>>,
    /// The place of each pair.
    places: Vec<PairService>,
    /// Pairs with flows.
    active: BitSet,
    /// By pair, once it was asked for: what its flows have still to send.
    waiting: Vec<BundleEnds>,
    /// The same, for readers by pair of racks.
    lines: PairLines,
    /// By pair, once it was asked for: its large flows.
    large: Large,
    /// Pairs with flows and without a clock.
    fresh: Vec<u32>,
    /// Clocks whose pace or whose first end has changed.
    stale: BitSet,
    /// Places that are due, as (reading, pair); a buffer that is kept.
    found: Vec<(u128, u32)>,
    over: Vec<(u32, u32)>,
    next: Option<Time>,
    /// The first instant at which flows ended whose bandwidth has not been shared again.
    ended: Option<Time>,
}

impl<W: Ways> RoutedPairs<W> {
    /// No flows, between hosts with interfaces of these capacities: first all up, then all down.
    /// With two `classes`, marked flows may take another route than the others between the same
    /// hosts.
    pub fn new(capacity: &[u64], classes: usize) -> Self {
        let hosts = capacity.len() / 2;
        let pairs = hosts * hosts * classes;
        Self {
            hosts,
            classes,
            levels: Levels::new(capacity),
            clocks: (0..2 * hosts).map(|_| LinkClock::default()).collect(),
            dues: Dues::new(2 * hosts, classes * hosts),
            due: vec![None; 2 * hosts],
            pairs: (0..pairs).map(|_| RoutedPair::new()).collect(),
            places: vec![PairService::default(); pairs],
            active: BitSet::default(),
            waiting: Vec::new(),
            lines: PairLines::default(),
            large: Large::default(),
            fresh: Vec::new(),
            stale: BitSet::default(),
            found: Vec::new(),
            over: Vec::new(),
            next: None,
            ended: None,
        }
    }

    /// Number of the pair of two hosts; where marked flows may take another route, they have a pair
    /// of their own.
    fn number(&self, (from, to, marked): (HostId, HostId, bool)) -> u32 {
        let apart = marked && self.classes > 1;
        ((usize::from(apart) * self.hosts + from.index()) * self.hosts + to.index()) as u32
    }

    /// Sender, receiver, and whether the pair is one of marked flows.
    fn ends(&self, pair: u32) -> (HostId, HostId, bool) {
        // A division of 32 bits is faster.
        let hosts = self.hosts as u32;
        let (from, to) = (pair / hosts, pair % hosts);
        let apart = from >= hosts;
        (HostId(if apart { from - hosts } else { from }), HostId(to), apart)
    }

    fn racks(&self, pair: u32, world: &EngineWorld) -> (RackId, RackId) {
        let (from, to, _) = self.ends(pair);
        (world.links.topology().rack_of(from), world.links.topology().rack_of(to))
    }

    /// Service of a pair: the work that a flow would have done that had always been there.
    fn service(&self, pair: u32, now: Time) -> u128 {
        self.places[pair as usize].service(|l| self.clocks[l].at(now))
    }

    /// The same at the last settling.
    fn settled(&self, pair: u32) -> u128 {
        self.places[pair as usize].service(|l| self.clocks[l].settled())
    }

    /// The flows of a pair and the work left of each at the last settling, with the pair's service
    /// then.
    fn flows_of(&self, pair: u32, mut each: impl FnMut(&EndingFlow<W::Mark>, u128, u128)) {
        let service = self.settled(pair);
        self.pairs[pair as usize]
            .flows
            .iter()
            .for_each(|Reverse(f)| each(f, f.0.saturating_sub(service), service));
    }

    /// Books what a pair has sent up to this service, at which no flow is overdue.
    fn book(&mut self, pair: u32, service: u128, world: &mut EngineWorld) {
        let racks = self.racks(pair, world);
        let p = &mut self.pairs[pair as usize];
        let units = p.book(service);
        world.ledger.carried(racks, p.way.route(racks), units, 0);
    }

    /// Pairs with flows between these racks, if circuits may change their routes.
    fn between(
        &self,
        racks: impl Iterator<Item = (RackId, RackId)>,
        world: &EngineWorld,
    ) -> Vec<u32> {
        let mut found = Vec::new();
        for (a, b) in racks.filter(|_| W::CIRCUITS) {
            for from in world.links.topology().hosts_of(a) {
                for to in world.links.topology().hosts_of(b) {
                    let first = self.number((from.id, to.id, false));
                    let both = (first..self.pairs.len() as u32).step_by(self.hosts * self.hosts);
                    found.extend(both.filter(|&pair| self.active.contains(pair)));
                }
            }
        }
        found
    }

    /// Index of a pair among those of a link.
    fn place_at(&self, link: u32, (from, to, apart): (HostId, HostId, bool)) -> usize {
        let other = if (link as usize) < self.hosts { to } else { from };
        usize::from(apart) * self.hosts + other.index()
    }

    /// The pair at an index of a link.
    fn pair_at(&self, link: u32, place: u32) -> u32 {
        let (hosts, up) = (self.hosts as u32, (link as usize) < self.hosts);
        let (class, other) = (place / hosts, place % hosts);
        let (from, to) = if up { (link, other) } else { (other, link - hosts) };
        (class * hosts + from) * hosts + to
    }

    /// Takes a pair without flows off its clock.
    fn rest(&mut self, pair: u32) {
        if let Some(l) = self.places[pair as usize].link.take() {
            self.dues.set(l, self.place_at(l, self.ends(pair)), None);
        }
        self.active.remove(pair);
    }

    /// Tells the clock of a pair when the pair's first flow ends.
    fn enter(&mut self, pair: u32) {
        let place = self.places[pair as usize];
        if let (Some(l), Some(Reverse(first))) =
            (place.link, self.pairs[pair as usize].flows.peek())
        {
            self.dues.set(
                l,
                self.place_at(l, self.ends(pair)),
                Some(first.0.wrapping_sub(place.ahead)),
            );
            self.stale.insert(l);
        }
    }

    /// Finishes the flows that are due.
    fn finish_all(&mut self, world: &mut EngineWorld) {
        let (mut found, mut over) =
            (std::mem::take(&mut self.found), std::mem::take(&mut self.over));
        for l in 0..self.clocks.len() as u32 {
            if self.due[l as usize].is_some_and(|t| t <= world.now) {
                self.dues.up_to(l, self.clocks[l as usize].at(world.now), &mut found);
                over.extend(found.drain(..).map(|(_, place)| (l, self.pair_at(l, place))));
                self.stale.insert(l);
            }
        }
        // Pairs lie far apart in memory. Reading all of them first lets the processor fetch many at
        // once.
        for &(_, pair) in &over {
            std::hint::black_box((
                self.places[pair as usize].link,
                self.pairs[pair as usize].flows.peek().map(|f| f.0.0),
            ));
        }
        over.drain(..).for_each(|(link, pair)| self.finish(link, pair, world));
        (self.found, self.over) = (found, over);
    }

    /// Finishes the due flows of a pair on this clock.
    fn finish(&mut self, link: u32, pair: u32, world: &mut EngineWorld) {
        let (racks, (from, to, _)) = (self.racks(pair, world), self.ends(pair));
        let ahead = self.places[pair as usize].ahead;
        let (service, p) = (
            self.clocks[link as usize].at(world.now).wrapping_add(ahead),
            &mut self.pairs[pair as usize],
        );
        while let Some(Reverse(f)) = p.flows.peek().filter(|f| f.0.0 <= service).copied() {
            p.pop();
            self.waiting.get_mut(pair as usize).into_iter().for_each(|w| w.pop(f.0));
            self.lines.change(pair);
            self.large.pop(pair, f.0);
            world.ledger.close(f.1, racks, size(&f), p.way.over_ocs(f.4, f.0));
            let at = self.clocks[link as usize].when(f.0.wrapping_sub(ahead), world.now);
            world.done.push(FlowFinished { coflow: f.1, flow: f.2, at });
            self.levels.remove(from.index(), to.index());
        }
        let units = p.book(service);
        world.ledger.carried(racks, p.way.route(racks), units, 0);
        if p.flows.is_empty() {
            self.rest(pair);
        }
        self.enter(pair);
    }

    /// Computes the levels again, sets the paces of the clocks, and moves the pairs whose links
    /// have changed their order.
    fn refill(&mut self, now: Time) {
        self.levels.fill();
        for l in 0..self.clocks.len() as u32 {
            let pace = self.levels.pace(l);
            if self.clocks[l as usize].pace() != pace {
                self.clocks[l as usize].set_pace(pace, now);
                self.stale.insert(l);
            }
        }
        for (up, down) in self.levels.sort() {
            for apart in [false, true].into_iter().take(self.classes) {
                let ends = (HostId(up), HostId(down), apart);
                let pair = self.number(ends);
                if self.places[pair as usize].link.is_some() {
                    self.attach(pair, ends, now);
                }
            }
        }
        for pair in std::mem::take(&mut self.fresh) {
            if self.places[pair as usize].link.is_none()
                && !self.pairs[pair as usize].flows.is_empty()
            {
                self.attach(pair, self.ends(pair), now);
            }
        }
        self.ended = None;
        self.forecast(now);
    }

    /// Computes the next end on each clock that has changed.
    fn forecast(&mut self, now: Time) {
        let (dues, clocks, due) = (&self.dues, &self.clocks, &mut self.due);
        self.stale.drain(|l| {
            due[l as usize] =
                dues.first(l).and_then(|reading| clocks[l as usize].will_read(reading, now))
        });
        self.next = self.due.iter().copied().flatten().min();
    }

    /// Prepares a look at the backlog, and returns the readings of the clocks; `books` as in
    /// [`Engine::backlog`].
    fn before_a_look(&mut self, books: bool, world: &mut EngineWorld) -> Vec<u128> {
        if books {
            self.settle(world);
        } else {
            // The counters of ports are kept in any case.
            for pair in self.between(world.crossbars.joined(), world) {
                self.book(pair, self.service(pair, world.now), world);
            }
        }
        if self.waiting.is_empty() {
            self.waiting =
                self.pairs.iter().map(|p| p.flows.iter().map(|f| f.0.0).collect()).collect();
        }
        self.clocks.iter().map(|c| c.at(world.now)).collect()
    }

    /// Counts the large flows at the last settling.
    fn count_large(&mut self, least: &[u128]) {
        let mut large = std::mem::take(&mut self.large);
        large.begin(self.hosts, self.pairs.len(), least);
        self.active.each(|pair| self.flows_of(pair, |f, left, _| large.push(pair, f.0, left)));
        self.large = large;
    }

    /// Puts a pair with flows on the clock of its tighter link. Its service continues where it was.
    fn attach(&mut self, pair: u32, ends: (HostId, HostId, bool), now: Time) {
        let old = self.places[pair as usize];
        let link = self.levels.tighter(ends.0.0, ends.1.0 + self.hosts as u32);
        if old.link == Some(link) {
            return;
        }
        let service = old.service(|l| self.clocks[l].at(now));
        let ahead = service.wrapping_sub(self.clocks[link as usize].at(now));
        let new = PairService { link: Some(link), ahead };
        self.places[pair as usize] = new;
        self.lines.go_over(pair, old, new);
        self.large.go_over(pair);
        let Some(l) = old.link else { return self.enter(pair) };
        // When its first flow ends is known without reading the flows, which are far away in
        // memory.
        let place = self.place_at(l, ends);
        let due = self.dues.get(l, place).map(|reading| reading.wrapping_add(old.ahead));
        self.dues.set(l, place, None);
        self.dues.set(link, self.place_at(link, ends), due.map(|due| due.wrapping_sub(ahead)));
        [l, link].into_iter().for_each(|l| self.stale.insert(l));
    }
}

impl<W: Ways> Engine for RoutedPairs<W> {
    fn add(&mut self, coflow: &CoflowSpec, marked: &[bool], world: &mut EngineWorld) {
        for (k, f) in coflow.flows.iter().enumerate() {
            if world.is_free(coflow.id, k, &f) {
                continue;
            }
            let marked = W::CIRCUITS && marked.get(k).copied().unwrap_or(false);
            let pair = self.number((f.from, f.to, marked));
            let (service, racks) = (self.service(pair, world.now), self.racks(pair, world));
            let due = service + u128::from(f.bytes.0) * WORK_PER_BYTE;
            let p = &mut self.pairs[pair as usize];
            if W::CIRCUITS && p.flows.is_empty() {
                p.way = W::default();
                p.way.change(world.route((f.from, f.to), racks, marked), service);
            }
            let first = p.flows.peek().is_none_or(|Reverse(f)| due < f.0);
            p.push((due, coflow.id, k.into(), f.bytes.0, p.way.mark(service)));
            self.waiting.get_mut(pair as usize).into_iter().for_each(|w| w.push(due));
            self.lines.change(pair);
            self.large.push(pair, due, due - service);
            self.active.insert(pair);
            self.levels.add(f.from.index(), f.to.index());
            if self.places[pair as usize].link.is_none() {
                self.fresh.push(pair);
            } else if first {
                self.enter(pair);
            }
        }
        self.refill(world.now);
    }

    fn cancel(&mut self, coflow: CoflowId, world: &mut EngineWorld) {
        self.settle(world);
        for pair in self.active.iter().collect::<Vec<_>>() {
            if !self.pairs[pair as usize].flows.iter().any(|f| f.0.1 == coflow) {
                continue;
            }
            let (service, racks, (from, to, _)) =
                (self.service(pair, world.now), self.racks(pair, world), self.ends(pair));
            let (p, levels) = (&mut self.pairs[pair as usize], &mut self.levels);
            p.cancel(coflow, service, |sent, over_ocs| {
                levels.remove(from.index(), to.index());
                world.ledger.close(coflow, racks, sent, over_ocs);
            });
            self.large.keep(pair, p.flows.iter().map(|f| f.0.0));
            let is_empty = p.flows.is_empty();
            self.places[pair as usize].link.into_iter().for_each(|l| self.stale.insert(l));
            if is_empty {
                self.rest(pair);
            }
            self.enter(pair);
        }
        self.waiting.clear();
        self.lines.clear();
        self.refill(world.now);
    }

    fn limit(&mut self, world: &mut EngineWorld) {
        self.levels.limit(&world.links.capacity()[..2 * self.hosts]);
        self.refill(world.now);
    }

    fn next_event(&self) -> Option<Time> {
        self.next.into_iter().chain(self.ended).min()
    }

    fn is_moving(&self) -> bool {
        self.next_event().is_some()
    }

    fn pass(&mut self, world: &mut EngineWorld) {
        if self.next_event().is_none_or(|t| t > world.now) {
            return;
        }
        self.finish_all(world);
        self.refill(world.now);
    }

    fn catch_up(&mut self, world: &mut EngineWorld) {
        if self.next.is_some_and(|t| t <= world.now) {
            self.finish_all(world);
            self.ended.get_or_insert(world.now);
            self.forecast(world.now);
        }
    }

    fn reroute(&mut self, pairs: &[(RackId, RackId)], world: &mut EngineWorld) {
        for pair in self.between(pairs.iter().copied(), world) {
            let (racks, (from, to, marked)) = (self.racks(pair, world), self.ends(pair));
            let route = world.route((from, to), racks, marked);
            if self.pairs[pair as usize].way.route(racks) != route {
                let service = self.service(pair, world.now);
                self.book(pair, service, world);
                self.pairs[pair as usize].way.change(route, service);
            }
        }
    }

    fn steer(&mut self, _pairs: &BTreeSet<(HostId, HostId)>, _world: &mut EngineWorld) {}

    fn settle(&mut self, world: &mut EngineWorld) {
        // What is in flight is read after this, at this instant.
        self.clocks.iter_mut().for_each(|c| c.settle(world.now));
        let active = std::mem::take(&mut self.active);
        active.each(|pair| self.book(pair, self.settled(pair), world));
        self.active = active;
    }

    fn parts(&self, each: &mut dyn FnMut(InFlight)) {
        for pair in self.active.iter() {
            let ((from, to, _), p) = (self.ends(pair), &self.pairs[pair as usize]);
            self.flows_of(pair, |f, left, service| {
                let over_ocs = p.way.over_ocs(f.4, service);
                each(InFlight {
                    coflow: f.1,
                    flow: f.2,
                    flows: 1,
                    hosts: (from, to),
                    sent: size(f) - left,
                    over_ocs,
                    left,
                });
            });
        }
    }

    fn left(&self, each: &mut dyn FnMut(CoflowId, FlowId, u128)) {
        self.active.iter().for_each(|pair| self.flows_of(pair, |f, left, _| each(f.1, f.2, left)));
    }

    fn backlog(
        &mut self,
        most: u128,
        books: bool,
        each: &mut dyn FnMut((HostId, HostId), u128),
        world: &mut EngineWorld,
    ) {
        let (readings, hosts) = (self.before_a_look(books, world), self.hosts);
        let (places, waiting) = (&self.places, &mut self.waiting);
        self.active.each(|pair| {
            let (from, to) = (pair as usize / hosts % hosts, pair as usize % hosts);
            let service = places[pair as usize].service(|l| readings[l]);
            each((HostId::from(from), HostId::from(to)), waiting[pair as usize].sum(service, most));
        });
    }

    fn backlog_of_circuits(
        &mut self,
        most: u128,
        books: bool,
        each: &mut dyn FnMut((HostId, HostId), u128),
        world: &mut EngineWorld,
    ) {
        let readings = self.before_a_look(books, world);
        for pair in self.between(world.crossbars.joined(), world) {
            let ((from, to, _), service) =
                (self.ends(pair), self.places[pair as usize].service(|l| readings[l]));
            each((from, to), self.waiting[pair as usize].sum(service, most));
        }
    }

    fn elephants(&mut self, least: &[u128], world: &mut EngineWorld) -> Option<Elephants> {
        if !self.large.is_for(least) {
            self.clocks.iter_mut().for_each(|c| c.settle(world.now));
            self.count_large(least);
        }
        let readings: Vec<u128> = self.clocks.iter().map(|c| c.at(world.now)).collect();
        Some(self.large.ask(&readings, &self.places))
    }

    fn backlog_by_rack(
        &mut self,
        most: u128,
        books: bool,
        world: &mut EngineWorld,
    ) -> Option<DemandMatrix> {
        let (n, t) = (self.hosts, world.links.topology());
        let one_host_a_rack =
            t.rack_count() == n && (0..n).all(|h| t.rack_of(HostId::from(h)).index() == h);
        if !one_host_a_rack || self.pairs.len() > n * n {
            return None;
        }
        let readings = self.before_a_look(books, world);
        Some(DemandMatrix::from_cells(
            n,
            self.lines.bytes(most, &readings, &mut self.waiting, &self.places),
        ))
    }
}
