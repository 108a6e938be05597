//! Max-min fair flows on a network whose flows cross two links each: their sender's interface and their receiver's.
//!
//! That is a big switch, or racks whose uplinks, and circuits if there are any, carry all that their hosts can send. There the rate of
//! every flow is the smaller of two numbers, the levels to which its two links are filled. So the work of all flows whose tighter link
//! is the same goes on at the same pace, and one clock a link measures it, whichever host is at the other end and whichever coflow they
//! belong to: when rates change, clocks change their pace, not flows. A pair of hosts changes its clock only when its two links change
//! their order by level. A circuit changes no rate, only what the books say ([`Ways`]). All of that is exact; [`super::shared`] gives the
//! same results on any network.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::FlowFinished;
use super::bundle::{BYTE, bytes};
use super::clock::Clock;
use super::engine::{Engine, Part, World};
use super::numbers::Numbers;
use super::waiting::Waiting;
use crate::coflows::CoflowSpec;
use crate::demand::DemandMatrix;
use crate::ids::{CoflowId, FlowId, HostId, RackId};
use crate::units::Time;

mod levels;
mod ways;

use levels::Levels;
use ways::Ways;
pub use ways::{Changing, Fixed};

/// The most hosts for which a table by pair of hosts is kept.
pub const MAX_HOSTS: usize = 1024;

/// Whether these capacities of interfaces, first all up, then all down, are served: there are not too many, and none is too large.
pub fn serves(capacity: &[u64]) -> bool {
    capacity.len() <= 2 * MAX_HOSTS && capacity.iter().all(|&c| c < levels::MAX_RATE)
}

/// A flow: when it is due by its pair's service, its numbers, its bytes, and what tells how much of it went over circuits.
type Flow<M> = (u128, CoflowId, FlowId, u64, M);

/// What a flow asks, in units.
fn size<M>(f: &Flow<M>) -> u128 {
    u128::from(f.3) * BYTE
}

/// The flows between two hosts that go the same way. They all have the same rate.
struct Pair<W: Ways> {
    flows: BinaryHeap<Reverse<Flow<W::Mark>>>,
    /// Of all flows together: by how much the service at which each is due exceeds its size, modulo 2^128.
    before: u128,
    /// Units of flows that are finished.
    finished: u128,
    /// Units that are booked, on the way that they went.
    booked: u128,
    way: W,
}

impl<W: Ways> Pair<W> {
    fn new() -> Self {
        Self { flows: BinaryHeap::new(), before: 0, finished: 0, booked: 0, way: W::default() }
    }

    fn push(&mut self, f: Flow<W::Mark>) {
        self.before = self.before.wrapping_add(f.0.wrapping_sub(size(&f)));
        self.flows.push(Reverse(f));
    }

    fn pop(&mut self) {
        if let Some(Reverse(f)) = self.flows.pop() {
            self.before = self.before.wrapping_sub(f.0.wrapping_sub(size(&f)));
            self.finished += size(&f);
        }
    }

    /// Units sent by the time of this service, at which no flow is overdue. O(1).
    fn sent(&self, service: u128) -> u128 {
        let each = service.wrapping_mul(self.flows.len() as u128);
        self.finished.wrapping_add(each.wrapping_sub(self.before))
    }
}

/// What tells the service of a pair; apart from all else about it, so that those of all pairs are read fast.
#[derive(Clone, Copy, Default)]
struct Place {
    /// The clock that measures its service; `None` while it has no flows.
    link: Option<u32>,
    /// Its service is the clock's plus this, modulo 2^128.
    ahead: u128,
}

impl Place {
    /// The pair's service, given what clocks read.
    fn service(self, reading: impl FnOnce(usize) -> u128) -> u128 {
        self.link.map_or(0, |l| reading(l as usize).wrapping_add(self.ahead))
    }
}

/// All pairs.
pub struct Pairs<W: Ways> {
    hosts: usize,
    levels: Levels,
    clocks: Vec<Clock>,
    /// By sender and receiver; those of marked flows after all others, where they may go another way.
    pairs: Vec<Pair<W>>,
    /// The place of each pair.
    places: Vec<Place>,
    /// Pairs that have flows.
    active: Numbers,
    /// By pair, once that was asked for: what its flows have still to send.
    waiting: Vec<Waiting>,
    /// Pairs that have flows and no clock yet.
    fresh: Vec<u32>,
    /// By clock: its pace or its first finish changed.
    stale: Vec<u32>,
    next: Option<Time>,
    /// Since when there are ended flows whose rates were not given to others yet.
    ended: Option<Time>,
}

impl<W: Ways> Pairs<W> {
    /// No flows between hosts whose interfaces have these capacities: first all up, then all down. With two `classes` marked
    /// flows may go another way than the others between the same hosts.
    pub fn new(capacity: &[u64], classes: usize) -> Self {
        let hosts = capacity.len() / 2;
        let pairs = hosts * hosts * classes;
        Self {
            hosts,
            levels: Levels::new(capacity),
            clocks: (0..2 * hosts).map(|_| Clock::default()).collect(),
            pairs: (0..pairs).map(|_| Pair::new()).collect(),
            places: vec![Place::default(); pairs],
            active: Numbers::default(),
            waiting: Vec::new(),
            fresh: Vec::new(),
            stale: Vec::new(),
            next: None,
            ended: None,
        }
    }

    /// The pair of flows between two hosts.
    fn number(&self, from: HostId, to: HostId, marked: bool) -> u32 {
        let apart = marked && self.pairs.len() > self.hosts * self.hosts;
        ((usize::from(apart) * self.hosts + from.index()) * self.hosts + to.index()) as u32
    }

    /// Sender and receiver, and whether only marked flows are meant.
    fn ends(&self, pair: u32) -> (HostId, HostId, bool) {
        // Division of 32 bits is the faster one.
        let hosts = self.hosts as u32;
        let (from, to) = (pair / hosts, pair % hosts);
        let apart = from >= hosts;
        (HostId(if apart { from - hosts } else { from }), HostId(to), apart)
    }

    fn racks(&self, pair: u32, world: &World) -> (RackId, RackId) {
        let (from, to, _) = self.ends(pair);
        (world.links.topology().rack_of(from), world.links.topology().rack_of(to))
    }

    /// Units that a flow of this pair which had always been there would have sent.
    fn service(&self, pair: u32, now: Time) -> u128 {
        self.places[pair as usize].service(|l| self.clocks[l].at(now))
    }

    /// The same as of the last settling.
    fn settled(&self, pair: u32) -> u128 {
        self.places[pair as usize].service(|l| self.clocks[l].settled())
    }

    /// The flows of a pair and what they have left, as of the last settling; with the pair's service then.
    fn flows_of(&self, pair: u32, mut each: impl FnMut(&Flow<W::Mark>, u128, u128)) {
        let service = self.settled(pair);
        self.pairs[pair as usize].flows.iter().for_each(|Reverse(f)| each(f, f.0.saturating_sub(service), service));
    }

    /// Writes into the books what a pair has sent by this service, at which no flow is overdue.
    fn book(&mut self, pair: u32, service: u128, world: &mut World) {
        let racks = self.racks(pair, world);
        let p = &mut self.pairs[pair as usize];
        let sent = p.sent(service);
        debug_assert_eq!(sent, p.finished + p.flows.iter().map(|f| size(&f.0) - f.0.0.saturating_sub(service)).sum::<u128>());
        world.ledger.carried(racks, p.way.route(racks), sent - p.booked, 0);
        p.booked = sent;
    }

    /// Pairs with flows between these racks, if circuits may change their ways.
    fn between(&self, racks: impl Iterator<Item = (RackId, RackId)>, world: &World) -> Vec<u32> {
        let mut found = Vec::new();
        for (a, b) in racks.filter(|_| W::CIRCUITS) {
            for from in world.links.topology().hosts_of(a) {
                for to in world.links.topology().hosts_of(b) {
                    let first = self.number(from.id, to.id, false);
                    let both = (first..self.pairs.len() as u32).step_by(self.hosts * self.hosts);
                    found.extend(both.filter(|&pair| self.active.contains(pair)));
                }
            }
        }
        found
    }

    /// A pair without flows has no clock.
    fn rest(&mut self, pair: u32) {
        self.places[pair as usize].link = None;
        self.active.remove(pair);
    }

    /// Tells the clock of a pair when its first flow is due.
    fn enter(&mut self, pair: u32) {
        let place = self.places[pair as usize];
        if let (Some(l), Some(Reverse(first))) = (place.link, self.pairs[pair as usize].flows.peek()) {
            self.clocks[l as usize].expect(first.0.wrapping_sub(place.ahead), pair);
            self.stale.push(l);
        }
    }

    /// Finishes what is due by this clock.
    fn finish(&mut self, link: u32, world: &mut World) {
        while let Some(pair) = self.clocks[link as usize].due(world.now) {
            // A pair that has gone to another clock, or whose first flow is another one now, is expected anew there.
            if self.places[pair as usize].link != Some(link) {
                continue;
            }
            let (service, racks, (from, to, _)) = (self.service(pair, world.now), self.racks(pair, world), self.ends(pair));
            let ahead = self.places[pair as usize].ahead;
            let p = &mut self.pairs[pair as usize];
            while let Some(Reverse(f)) = p.flows.peek().filter(|f| f.0.0 <= service).copied() {
                p.pop();
                self.waiting.get_mut(pair as usize).into_iter().for_each(|w| w.pop(f.0));
                world.ledger.close(f.1, racks, size(&f), p.way.over_ocs(f.4, f.0));
                let at = self.clocks[link as usize].when(f.0.wrapping_sub(ahead), world.now);
                world.done.push(FlowFinished { coflow: f.1, flow: f.2, at });
                self.levels.remove(from.index(), to.index());
            }
            if p.booked < p.finished {
                world.ledger.carried(racks, p.way.route(racks), p.finished - p.booked, 0);
                p.booked = p.finished;
            }
            if p.flows.is_empty() {
                self.rest(pair);
            }
            self.enter(pair);
        }
        self.stale.push(link);
    }

    /// Finishes what is due.
    fn finish_all(&mut self, world: &mut World) {
        for l in 0..self.clocks.len() as u32 {
            if self.clocks[l as usize].next().is_some_and(|t| t <= world.now) {
                self.finish(l, world);
            }
        }
    }

    /// Fills the links anew, sets the clocks' paces, and moves the pairs whose links changed their order.
    fn refill(&mut self, now: Time) {
        self.levels.fill();
        for l in 0..self.clocks.len() as u32 {
            let pace = self.levels.pace(l);
            if self.clocks[l as usize].pace() != pace {
                self.clocks[l as usize].set_pace(pace, now);
                self.stale.push(l);
            }
        }
        for (up, down) in self.levels.sort() {
            for pair in (up as usize * self.hosts + down as usize..self.pairs.len()).step_by(self.hosts * self.hosts) {
                if self.places[pair].link.is_some() {
                    self.attach(pair as u32, now);
                }
            }
        }
        for pair in std::mem::take(&mut self.fresh) {
            if self.places[pair as usize].link.is_none() && !self.pairs[pair as usize].flows.is_empty() {
                self.attach(pair, now);
            }
        }
        self.ended = None;
        self.forecast(now);
    }

    /// Finds out when flows end by those clocks that must be read anew.
    fn forecast(&mut self, now: Time) {
        self.stale.sort_unstable();
        self.stale.dedup();
        for l in std::mem::take(&mut self.stale) {
            let (pairs, places) = (&self.pairs, &self.places);
            self.clocks[l as usize].forecast(now, |key, pair| {
                let (p, place) = (&pairs[pair as usize], places[pair as usize]);
                place.link == Some(l) && p.flows.peek().is_some_and(|f| f.0.0.wrapping_sub(place.ahead) == key)
            });
        }
        self.next = self.clocks.iter().filter_map(Clock::next).min();
    }

    /// Passes pairs with flows, and what these have still to send, of each at most `most`; `books` as in [`Engine::backlog`].
    fn wait(&mut self, most: u128, books: bool, world: &mut World, mut each: impl FnMut(u32, u128)) {
        if books {
            self.settle(world);
        } else {
            // Ports are counted all the same.
            for pair in self.between(world.crossbars.joined(), world) {
                self.book(pair, self.service(pair, world.now), world);
            }
        }
        if self.waiting.is_empty() {
            self.waiting = self.pairs.iter().map(|p| p.flows.iter().map(|f| f.0.0).collect()).collect();
        }
        let readings: Vec<u128> = self.clocks.iter().map(|c| c.at(world.now)).collect();
        let (places, waiting) = (&self.places, &mut self.waiting);
        self.active.each(|pair| {
            let service = places[pair as usize].service(|l| readings[l]);
            each(pair, waiting[pair as usize].sum(service, most));
        });
    }

    /// Puts a pair on the clock of its tighter link. Its service goes on where it was.
    fn attach(&mut self, pair: u32, now: Time) {
        let (from, to, _) = self.ends(pair);
        let service = self.service(pair, now);
        let link = self.levels.tighter(from.0, to.0 + self.hosts as u32);
        let ahead = service.wrapping_sub(self.clocks[link as usize].at(now));
        self.places[pair as usize] = Place { link: Some(link), ahead };
        self.enter(pair);
    }
}

impl<W: Ways> Engine for Pairs<W> {
    fn add(&mut self, coflow: &CoflowSpec, marked: &[bool], world: &mut World) {
        for (k, f) in coflow.flows.iter().enumerate() {
            if world.is_free(coflow, k) {
                continue;
            }
            let marked = W::CIRCUITS && marked.get(k).copied().unwrap_or(false);
            let pair = self.number(f.from, f.to, marked);
            let (service, racks) = (self.service(pair, world.now), self.racks(pair, world));
            let due = service + u128::from(f.bytes.0) * BYTE;
            let p = &mut self.pairs[pair as usize];
            if W::CIRCUITS && p.flows.is_empty() {
                p.way = W::default();
                p.way.change(world.route((f.from, f.to), racks, marked), service);
            }
            let first = p.flows.peek().is_none_or(|Reverse(f)| due < f.0);
            p.push((due, coflow.id, k.into(), f.bytes.0, p.way.mark(service)));
            self.waiting.get_mut(pair as usize).into_iter().for_each(|w| w.push(due));
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

    fn cancel(&mut self, coflow: CoflowId, world: &mut World) {
        self.settle(world);
        for pair in self.active.iter().collect::<Vec<_>>() {
            if !self.pairs[pair as usize].flows.iter().any(|f| f.0.1 == coflow) {
                continue;
            }
            let (service, racks, (from, to, _)) = (self.service(pair, world.now), self.racks(pair, world), self.ends(pair));
            let p = &mut self.pairs[pair as usize];
            for Reverse(f) in p.flows.iter().filter(|f| f.0.1 == coflow) {
                self.levels.remove(from.index(), to.index());
                let sent = size(f) - f.0.saturating_sub(service);
                p.finished += sent;
                p.before = p.before.wrapping_sub(f.0.wrapping_sub(size(f)));
                world.ledger.close(coflow, racks, sent, p.way.over_ocs(f.4, service));
            }
            p.flows.retain(|f| f.0.1 != coflow);
            self.stale.extend(self.places[pair as usize].link);
            if p.flows.is_empty() {
                self.rest(pair);
            }
            self.enter(pair);
        }
        self.waiting.clear();
        self.refill(world.now);
    }

    fn limit(&mut self, world: &mut World) {
        self.levels.limit(&world.links.capacity()[..2 * self.hosts]);
        self.refill(world.now);
    }

    fn next_event(&self) -> Option<Time> {
        self.next.into_iter().chain(self.ended).min()
    }

    fn is_moving(&self) -> bool {
        self.next_event().is_some()
    }

    fn pass(&mut self, world: &mut World) {
        if self.next_event().is_none_or(|t| t > world.now) {
            return;
        }
        self.finish_all(world);
        self.refill(world.now);
    }

    fn catch_up(&mut self, world: &mut World) {
        if self.next.is_some_and(|t| t <= world.now) {
            self.finish_all(world);
            self.ended.get_or_insert(world.now);
            self.forecast(world.now);
        }
    }

    fn reroute(&mut self, pairs: &[(RackId, RackId)], world: &mut World) {
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

    fn steer(&mut self, _pairs: &BTreeSet<(HostId, HostId)>, _world: &mut World) {}

    fn settle(&mut self, world: &mut World) {
        // What is under way is read after this, as of now.
        self.clocks.iter_mut().for_each(|c| c.settle(world.now));
        let active = std::mem::take(&mut self.active);
        active.each(|pair| self.book(pair, self.settled(pair), world));
        self.active = active;
    }

    fn parts(&self, each: &mut dyn FnMut(Part)) {
        for pair in self.active.iter() {
            let ((from, to, _), p) = (self.ends(pair), &self.pairs[pair as usize]);
            self.flows_of(pair, |f, left, service| {
                let over_ocs = p.way.over_ocs(f.4, service);
                each(Part { coflow: f.1, flow: f.2, flows: 1, hosts: (from, to), sent: size(f) - left, over_ocs, left });
            });
        }
    }

    fn left(&self, each: &mut dyn FnMut(CoflowId, FlowId, u128)) {
        self.active.iter().for_each(|pair| self.flows_of(pair, |f, left, _| each(f.1, f.2, left)));
    }

    fn backlog(&mut self, most: u128, books: bool, each: &mut dyn FnMut((HostId, HostId), u128), world: &mut World) {
        let hosts = self.hosts;
        self.wait(most, books, world, |pair, units| {
            let (from, to) = (pair as usize / hosts % hosts, pair as usize % hosts);
            each((HostId::from(from), HostId::from(to)), units);
        });
    }

    fn backlog_by_rack(&mut self, most: u128, books: bool, world: &mut World) -> Option<DemandMatrix> {
        let (n, t) = (self.hosts, world.links.topology());
        let one_host_a_rack = t.rack_count() == n && (0..n).all(|h| t.rack_of(HostId::from(h)).index() == h);
        if !one_host_a_rack || self.pairs.len() > n * n {
            return None;
        }
        let mut cells = vec![0; n * n];
        self.wait(most, books, world, |pair, units| cells[pair as usize] = bytes(units).0);
        Some(DemandMatrix::from_cells(n, cells))
    }
}
