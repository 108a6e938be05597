//! Max-min fair flows on a network whose flows cross two links each: their sender's interface and their receiver's.
//!
//! That is a big switch, or racks whose uplinks carry all that their hosts can send. There the rate of every flow is the smaller
//! of two numbers, the levels to which its two links are filled. So the work of all flows whose tighter link is the same goes
//! on at the same pace, and one clock a link measures it, whichever host is at the other end and whichever coflow they belong
//! to: when rates change, clocks change their pace, not flows. A pair of hosts changes its clock only when its two links change
//! their order by level. All of that is exact; [`super::shared`] gives the same results on any network.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::FlowFinished;
use super::bundle::{BYTE, Route};
use super::clock::Clock;
use super::engine::{Engine, Part, World};
use crate::coflows::CoflowSpec;
use crate::ids::{CoflowId, FlowId, HostId, RackId};
use crate::units::Time;

mod levels;

use levels::Levels;

/// The most hosts for which a table by pair of hosts is kept.
const MAX_HOSTS: usize = 1024;

/// Whether these capacities of interfaces, first all up, then all down, are served: there are not too many, and none is too large.
pub fn serves(capacity: &[u64]) -> bool {
    capacity.len() <= 2 * MAX_HOSTS && capacity.iter().all(|&c| c < levels::MAX_RATE)
}

/// A flow: when it is due by its pair's service, its numbers and its bytes.
type Flow = (u128, CoflowId, FlowId, u64);

/// What a flow asks, in units.
fn size(f: &Flow) -> u128 {
    u128::from(f.3) * BYTE
}

/// The flows between two hosts. They all have the same rate.
#[derive(Default)]
struct Pair {
    flows: BinaryHeap<Reverse<Flow>>,
    /// The clock that measures its service; `None` while it has no flows.
    link: Option<u32>,
    /// Its service is the clock's plus this, modulo 2^128.
    ahead: u128,
    /// Of all flows together: by how much the service at which each is due exceeds its size, modulo 2^128.
    before: u128,
    /// Units of flows that are finished.
    finished: u128,
    /// Units that are booked.
    booked: u128,
}

impl Pair {
    fn push(&mut self, f: Flow) {
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

/// All pairs.
pub struct Pairs {
    hosts: usize,
    levels: Levels,
    clocks: Vec<Clock>,
    /// By sender and receiver.
    pairs: Vec<Pair>,
    /// Pairs that have flows and no clock yet.
    fresh: Vec<u32>,
    /// By clock: its pace or its first finish changed.
    stale: Vec<u32>,
    next: Option<Time>,
}

impl Pairs {
    /// No flows between hosts whose interfaces have these capacities: first all up, then all down.
    pub fn new(capacity: &[u64]) -> Self {
        let hosts = capacity.len() / 2;
        Self {
            hosts,
            levels: Levels::new(capacity),
            clocks: (0..2 * hosts).map(|_| Clock::default()).collect(),
            pairs: (0..hosts * hosts).map(|_| Pair::default()).collect(),
            fresh: Vec::new(),
            stale: Vec::new(),
            next: None,
        }
    }

    fn hosts_of(&self, pair: u32) -> (HostId, HostId) {
        (HostId::from(pair as usize / self.hosts), HostId::from(pair as usize % self.hosts))
    }

    /// Units that a flow of this pair which had always been there would have sent.
    fn service(&self, pair: u32, now: Time) -> u128 {
        let p = &self.pairs[pair as usize];
        p.link.map_or(0, |l| self.clocks[l as usize].at(now).wrapping_add(p.ahead))
    }

    /// The flows of a pair and what they have left, as of the last settling.
    fn flows_of(&self, p: &Pair, mut each: impl FnMut(&Flow, u128)) {
        let service = p.link.map_or(0, |l| self.clocks[l as usize].settled().wrapping_add(p.ahead));
        p.flows.iter().for_each(|Reverse(f)| each(f, f.0.saturating_sub(service)));
    }

    /// Tells the clock of a pair when its first flow is due.
    fn enter(&mut self, pair: u32) {
        let p = &self.pairs[pair as usize];
        if let (Some(l), Some(Reverse(first))) = (p.link, p.flows.peek()) {
            self.clocks[l as usize].expect(first.0.wrapping_sub(p.ahead), pair);
            self.stale.push(l);
        }
    }

    /// Finishes what is due by this clock.
    fn finish(&mut self, link: u32, world: &mut World) {
        while let Some(pair) = self.clocks[link as usize].due(world.now) {
            // A pair that has gone to another clock, or whose first flow is another one now, is expected anew there.
            let p = &self.pairs[pair as usize];
            if p.link != Some(link) {
                continue;
            }
            let service = self.service(pair, world.now);
            let (from, to) = self.hosts_of(pair);
            let p = &mut self.pairs[pair as usize];
            let racks = (world.links.topology().rack_of(from), world.links.topology().rack_of(to));
            while let Some(Reverse(f)) = p.flows.peek().filter(|f| f.0.0 <= service).copied() {
                p.pop();
                world.ledger.close(f.1, racks, size(&f), 0);
                world.done.push(FlowFinished { coflow: f.1, flow: f.2, at: world.now });
                self.levels.remove(from.index(), to.index());
            }
            if p.booked < p.finished {
                world.ledger.carried(racks, route(racks), p.finished - p.booked, 0);
                p.booked = p.finished;
            }
            if p.flows.is_empty() {
                p.link = None;
            }
            self.enter(pair);
        }
        self.stale.push(link);
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
            let pair = (up as usize * self.hosts + down as usize) as u32;
            if self.pairs[pair as usize].link.is_some() {
                self.attach(pair, now);
            }
        }
        for pair in std::mem::take(&mut self.fresh) {
            if self.pairs[pair as usize].link.is_none() && !self.pairs[pair as usize].flows.is_empty() {
                self.attach(pair, now);
            }
        }
        self.stale.sort_unstable();
        self.stale.dedup();
        for l in std::mem::take(&mut self.stale) {
            let pairs = &self.pairs;
            self.clocks[l as usize].forecast(now, |key, pair| {
                let p = &pairs[pair as usize];
                p.link == Some(l) && p.flows.peek().is_some_and(|f| f.0.0.wrapping_sub(p.ahead) == key)
            });
        }
        self.next = self.clocks.iter().filter_map(Clock::next).min();
    }

    /// Puts a pair on the clock of its tighter link. Its service goes on where it was.
    fn attach(&mut self, pair: u32, now: Time) {
        let (from, to) = (pair / self.hosts as u32, pair % self.hosts as u32 + self.hosts as u32);
        let service = self.service(pair, now);
        let link = self.levels.tighter(from, to);
        let ahead = service.wrapping_sub(self.clocks[link as usize].at(now));
        let p = &mut self.pairs[pair as usize];
        (p.link, p.ahead) = (Some(link), ahead);
        self.enter(pair);
    }
}

/// Flows within a rack do not cross its uplink.
fn route(racks: (RackId, RackId)) -> Route {
    if racks.0 == racks.1 { Route::Local } else { Route::Eps }
}

impl Engine for Pairs {
    fn add(&mut self, coflow: &CoflowSpec, _marked: &[bool], world: &mut World) {
        for (k, f) in coflow.flows.iter().enumerate() {
            if world.is_free(coflow, k) {
                continue;
            }
            let pair = (f.from.index() * self.hosts + f.to.index()) as u32;
            let due = self.service(pair, world.now) + u128::from(f.bytes.0) * BYTE;
            let p = &mut self.pairs[pair as usize];
            let first = p.flows.peek().is_none_or(|Reverse(f)| due < f.0);
            p.push((due, coflow.id, k.into(), f.bytes.0));
            self.levels.add(f.from.index(), f.to.index());
            if self.pairs[pair as usize].link.is_none() {
                self.fresh.push(pair);
            } else if first {
                self.enter(pair);
            }
        }
        self.refill(world.now);
    }

    fn cancel(&mut self, coflow: CoflowId, world: &mut World) {
        self.settle(world);
        for pair in 0..self.pairs.len() as u32 {
            if !self.pairs[pair as usize].flows.iter().any(|f| f.0.1 == coflow) {
                continue;
            }
            let (service, (from, to)) = (self.service(pair, world.now), self.hosts_of(pair));
            let racks = (world.links.topology().rack_of(from), world.links.topology().rack_of(to));
            let p = &mut self.pairs[pair as usize];
            for Reverse(f) in p.flows.iter().filter(|f| f.0.1 == coflow) {
                self.levels.remove(from.index(), to.index());
                let sent = size(f) - f.0.saturating_sub(service);
                p.finished += sent;
                p.before = p.before.wrapping_sub(f.0.wrapping_sub(size(f)));
                world.ledger.close(coflow, racks, sent, 0);
            }
            p.flows.retain(|f| f.0.1 != coflow);
            self.stale.extend(p.link);
            if p.flows.is_empty() {
                p.link = None;
            }
            self.enter(pair);
        }
        self.refill(world.now);
    }

    fn limit(&mut self, world: &mut World) {
        self.levels.limit(&world.links.capacity()[..2 * self.hosts]);
        self.refill(world.now);
    }

    fn next_event(&self) -> Option<Time> {
        self.next
    }

    fn is_moving(&self) -> bool {
        self.next.is_some()
    }

    fn pass(&mut self, world: &mut World) {
        if self.next.is_none_or(|t| t > world.now) {
            return;
        }
        for l in 0..self.clocks.len() as u32 {
            if self.clocks[l as usize].next().is_some_and(|t| t <= world.now) {
                self.finish(l, world);
            }
        }
        self.refill(world.now);
    }

    fn reroute(&mut self, _pairs: &[(RackId, RackId)], _world: &mut World) {}

    fn steer(&mut self, _pairs: &BTreeSet<(HostId, HostId)>, _world: &mut World) {}

    fn settle(&mut self, world: &mut World) {
        for pair in 0..self.pairs.len() as u32 {
            if self.pairs[pair as usize].flows.is_empty() {
                continue;
            }
            let service = self.service(pair, world.now);
            let (from, to) = self.hosts_of(pair);
            let racks = (world.links.topology().rack_of(from), world.links.topology().rack_of(to));
            let p = &mut self.pairs[pair as usize];
            let sent = p.sent(service);
            debug_assert_eq!(sent, p.finished + p.flows.iter().map(|f| size(&f.0) - f.0.0.saturating_sub(service)).sum::<u128>());
            world.ledger.carried(racks, route(racks), sent - p.booked, 0);
            p.booked = sent;
        }
        // What is under way is read after this, as of now.
        self.clocks.iter_mut().for_each(|c| c.settle(world.now));
    }

    fn parts(&self, each: &mut dyn FnMut(Part)) {
        for (k, p) in self.pairs.iter().enumerate().filter(|(_, p)| !p.flows.is_empty()) {
            let hosts = self.hosts_of(k as u32);
            self.flows_of(p, |f, left| each(Part { coflow: f.1, hosts, sent: size(f) - left, over_ocs: 0, left }));
        }
    }

    fn left(&self, each: &mut dyn FnMut(CoflowId, FlowId, u128)) {
        self.pairs.iter().for_each(|p| self.flows_of(p, |f, left| each(f.1, f.2, left)));
    }
}
