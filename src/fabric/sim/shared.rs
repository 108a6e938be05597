//! Max-min fair flows on any network: what many long TCP flows roughly do.
//!
//! All flows between the same two hosts that go the same way have the same rate, whichever coflow they belong to: they are one
//! [`Bundle`]. And all bundles that the same link holds back have that link's rate, so one [`Clock`] a link measures their work: when
//! rates change, clocks change their pace, not bundles. A bundle changes its clock only when another link holds it back, or
//! circuits change its way. All of that is exact.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::FlowFinished;
use super::bundle::Bundle;
use super::clock::{Clock, Expected};
use super::engine::{Engine, Part, World};
use super::maxmin::{Changes, MaxMin};
use super::numbers::Numbers;
use super::queues::{self, Queues};
use super::soonest::Soonest;
use crate::coflows::CoflowSpec;
use crate::coflows::rates::Path;
use crate::ids::{CoflowId, FlowId, HostId, RackId};
use crate::units::Time;

/// How bundles share links.
enum Shares {
    /// All links alike.
    Alike(MaxMin),
    /// Some are queues of ports.
    Queued(queues::Shares),
}

/// Calls the same function of either.
macro_rules! of {
    ($shares:expr, $s:ident => $call:expr) => {
        match $shares {
            Shares::Alike($s) => $call,
            Shares::Queued($s) => $call,
        }
    };
}

impl Shares {
    fn set(&mut self, bundle: u32, path: Path, flows: u32) {
        of!(self, s => s.set(bundle, path, flows));
    }

    fn limit(&mut self, capacity: &[u64]) {
        of!(self, s => s.limit(capacity));
    }

    fn refill(&mut self) -> Changes {
        of!(self, s => s.refill())
    }

    fn level(&self, link: u32) -> u64 {
        of!(self, s => s.level(link))
    }

    fn bottleneck(&self, bundle: u32) -> Option<u32> {
        of!(self, s => s.bottleneck(bundle))
    }
}

/// Bundles and their shares.
pub struct Shared {
    shares: Shares,
    /// The clock of each link.
    clocks: Vec<Clock>,
    /// By link: when bundles are due by its clock.
    expected: Vec<Expected>,
    /// By link: when its clock will next be due.
    next: Soonest,
    bundles: Vec<Bundle>,
    /// Only looked up, never gone through.
    by_hosts: HashMap<(HostId, HostId, bool), u32>,
    by_racks: BTreeMap<(RackId, RackId), Vec<u32>>,
    /// Bundles with flows.
    active: Numbers,
    /// Bundles that got or lost flows, or go another way.
    touched: Vec<u32>,
    /// Links whose clock must be read anew.
    stale: Vec<u32>,
    /// Since when there are ended flows whose rates were not given to others yet.
    ended: Option<Time>,
}

impl Shared {
    /// No flows on links of these capacities, some of which may be queues.
    pub fn new(capacity: &[u64], queues: Option<Queues>) -> Self {
        Self {
            shares: match queues {
                None => Shares::Alike(MaxMin::new(capacity.to_vec())),
                Some(queues) => Shares::Queued(queues::Shares::new(capacity, queues)),
            },
            clocks: capacity.iter().map(|_| Clock::default()).collect(),
            expected: capacity.iter().map(|_| Expected::default()).collect(),
            next: Soonest::new(capacity.len()),
            bundles: Vec::new(),
            by_hosts: HashMap::new(),
            by_racks: BTreeMap::new(),
            active: Numbers::default(),
            touched: Vec::new(),
            stale: Vec::new(),
            ended: None,
        }
    }

    /// What a flow of this bundle which had always been there would have sent by now, in units.
    fn service(&self, b: u32, now: Time) -> u128 {
        let bundle = &self.bundles[b as usize];
        bundle.link.map_or(bundle.ahead, |l| self.clocks[l as usize].at(now).wrapping_add(bundle.ahead))
    }

    /// Puts a bundle on the links of the way that it must go now. It must be booked.
    fn enter(&mut self, b: u32, world: &World) {
        let bundle = &mut self.bundles[b as usize];
        bundle.route = world.route((bundle.from, bundle.to), bundle.racks, bundle.elephant);
        let path = world.links.path(bundle.from, bundle.to, bundle.route);
        self.shares.set(b, path, bundle.flows.len() as u32);
        self.touched.push(b);
    }

    /// Puts a bundle with flows on the way that it must go now, if that is another one.
    fn change_over(&mut self, b: u32, world: &mut World) {
        let bundle = &self.bundles[b as usize];
        if self.active.contains(b) && world.route((bundle.from, bundle.to), bundle.racks, bundle.elephant) != bundle.route {
            self.book(b, world);
            self.enter(b, world);
        }
    }

    /// Shares the links anew, sets the clocks' paces, and puts bundles on the clocks of the links that hold them back.
    fn rerate(&mut self, world: &World) {
        let now = world.now;
        let changes = self.shares.refill();
        for &l in &changes.levels {
            self.clocks[l as usize].set_pace(self.shares.level(l), now);
        }
        self.stale.extend(changes.levels);
        for &b in &changes.moved {
            self.attach(b, now);
        }
        for b in std::mem::take(&mut self.touched) {
            if changes.moved.binary_search(&b).is_err() {
                self.expect(b);
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
            let bundles = &self.bundles;
            let first = self.expected[l as usize].next(|reading, b| bundles[b as usize].is_due_at(l, reading));
            self.next.set(l, first.and_then(|reading| self.clocks[l as usize].will_read(reading, now)));
        }
    }

    /// Puts a bundle on the clock of the link that holds it back. Its service goes on where it was.
    fn attach(&mut self, b: u32, now: Time) {
        let service = self.service(b, now);
        let bundle = &mut self.bundles[b as usize];
        bundle.link = self.shares.bottleneck(b);
        bundle.ahead = bundle.link.map_or(service, |l| service.wrapping_sub(self.clocks[l as usize].at(now)));
        self.expect(b);
    }

    /// Tells the clock of a bundle when its first flow is due.
    fn expect(&mut self, b: u32) {
        let bundle = &self.bundles[b as usize];
        if let (Some(l), Some(first)) = (bundle.link, bundle.first()) {
            self.expected[l as usize].expect(first.due.wrapping_sub(bundle.ahead), b);
            self.stale.push(l);
        }
    }

    /// Writes into the books what a bundle has sent by now.
    fn book(&mut self, b: u32, world: &mut World) {
        let service = self.service(b, world.now);
        let bundle = &mut self.bundles[b as usize];
        let units = bundle.book(service);
        world.ledger.carried(bundle.racks, bundle.route, units, 0);
    }

    fn bundle(&mut self, from: HostId, to: HostId, racks: (RackId, RackId), elephant: bool) -> u32 {
        let new = self.bundles.len() as u32;
        let b = *self.by_hosts.entry((from, to, elephant)).or_insert(new);
        if b == new {
            self.bundles.push(Bundle::new(from, to, racks, elephant));
            self.by_racks.entry(racks).or_default().push(b);
        }
        b
    }

    /// Finishes what is due; says whether anything is.
    fn finish_all(&mut self, world: &mut World) -> bool {
        let mut due = Vec::new();
        self.next.up_to(world.now, &mut due);
        due.iter().for_each(|&l| self.finish(l, world));
        !due.is_empty()
    }

    /// Finishes what is due by this clock.
    fn finish(&mut self, link: u32, world: &mut World) {
        while let Some(b) = self.expected[link as usize].due(self.clocks[link as usize].at(world.now)) {
            // A bundle that has gone to another clock is expected anew there.
            if self.bundles[b as usize].link != Some(link) {
                continue;
            }
            self.book(b, world);
            let (service, bundle) = (self.service(b, world.now), &mut self.bundles[b as usize]);
            while let Some((f, over_ocs, beyond)) = bundle.pop() {
                world.ledger.carried(bundle.racks, bundle.route, 0, beyond);
                world.ledger.close(f.coflow, bundle.racks, f.size, over_ocs);
                let at = self.clocks[link as usize].when(f.due.wrapping_sub(bundle.ahead), world.now);
                world.done.push(FlowFinished { coflow: f.coflow, flow: f.flow, at });
            }
            if bundle.flows.is_empty() {
                (bundle.link, bundle.ahead) = (None, service);
                self.active.remove(b);
            }
            self.enter(b, world);
        }
        self.stale.push(link);
    }
}

impl Engine for Shared {
    fn add(&mut self, coflow: &CoflowSpec, marked: &[bool], world: &mut World) {
        let mut got = Vec::new();
        for (k, f) in coflow.flows.iter().enumerate() {
            if world.is_free(coflow.id, k, &f) {
                continue;
            }
            let racks = (world.links.topology().rack_of(f.from), world.links.topology().rack_of(f.to));
            let b = self.bundle(f.from, f.to, racks, marked.get(k).copied().unwrap_or(false));
            self.book(b, world);
            self.bundles[b as usize].push(coflow.id, k.into(), f.bytes);
            got.push(b);
        }
        got.sort_unstable();
        got.dedup();
        for b in got {
            self.active.insert(b);
            self.enter(b, world);
        }
        self.rerate(world);
    }

    fn cancel(&mut self, coflow: CoflowId, world: &mut World) {
        for b in self.active.iter().collect::<Vec<_>>() {
            if !self.bundles[b as usize].flows().any(|f| f.coflow == coflow) {
                continue;
            }
            self.book(b, world);
            let (service, bundle) = (self.service(b, world.now), &mut self.bundles[b as usize]);
            for f in bundle.flows().filter(|f| f.coflow == coflow) {
                world.ledger.close(coflow, bundle.racks, bundle.sent(f), bundle.over_ocs(f));
            }
            bundle.cancel(coflow);
            if bundle.flows.is_empty() {
                self.stale.extend(bundle.link);
                (bundle.link, bundle.ahead) = (None, service);
                self.active.remove(b);
            }
            self.enter(b, world);
        }
        self.rerate(world);
    }

    fn limit(&mut self, world: &mut World) {
        self.shares.limit(world.links.capacity());
        self.rerate(world);
    }

    fn next_event(&self) -> Option<Time> {
        self.next.first().into_iter().chain(self.ended).min()
    }

    fn is_moving(&self) -> bool {
        self.next_event().is_some()
    }

    fn pass(&mut self, world: &mut World) {
        if self.finish_all(world) || self.ended.is_some() {
            self.rerate(world);
        }
    }

    fn catch_up(&mut self, world: &mut World) {
        if self.finish_all(world) {
            self.ended.get_or_insert(world.now);
            let touched = std::mem::take(&mut self.touched);
            touched.iter().for_each(|&b| self.expect(b));
            self.touched = touched;
            self.forecast(world.now);
        }
    }

    fn reroute(&mut self, pairs: &[(RackId, RackId)], world: &mut World) {
        for pair in pairs {
            for b in self.by_racks.get(pair).cloned().unwrap_or_default() {
                self.change_over(b, world);
            }
        }
        if !self.touched.is_empty() {
            self.rerate(world);
        }
    }

    fn steer(&mut self, pairs: &BTreeSet<(HostId, HostId)>, world: &mut World) {
        for (&(from, to), elephant) in pairs.iter().flat_map(|p| [(p, false), (p, true)]) {
            if let Some(&b) = self.by_hosts.get(&(from, to, elephant)) {
                self.change_over(b, world);
            }
        }
        if !self.touched.is_empty() {
            self.rerate(world);
        }
    }

    fn settle(&mut self, world: &mut World) {
        let active = std::mem::take(&mut self.active);
        active.iter().for_each(|b| self.book(b, world));
        self.active = active;
    }

    fn parts(&self, each: &mut dyn FnMut(Part)) {
        for b in self.active.iter().map(|b| &self.bundles[b as usize]) {
            for f in b.flows() {
                let (sent, over_ocs, left) = (b.sent(f), b.over_ocs(f), b.left(f));
                each(Part { coflow: f.coflow, flow: f.flow, flows: 1, hosts: (b.from, b.to), sent, over_ocs, left });
            }
        }
    }

    fn left(&self, each: &mut dyn FnMut(CoflowId, FlowId, u128)) {
        for b in self.active.iter().map(|b| &self.bundles[b as usize]) {
            b.flows().for_each(|f| each(f.coflow, f.flow, b.left(f)));
        }
    }

    fn backlog(&mut self, most: u128, _books: bool, each: &mut dyn FnMut((HostId, HostId), u128), world: &mut World) {
        let active = std::mem::take(&mut self.active);
        for b in active.iter() {
            self.book(b, world);
            let bundle = &mut self.bundles[b as usize];
            each((bundle.from, bundle.to), bundle.backlog(most));
        }
        self.active = active;
    }
}
