//! Bundles of flows, each at the pace of the link that limits it.
//!
//! All bundles that one link limits have that link's rate, so one [`LinkClock`] a link measures
//! their work. When rates change, clocks change their pace, and no bundle is touched. A bundle
//! changes its clock only when another link limits it, or circuits change its route. All of that is
//! exact.

use std::collections::BTreeMap;

use super::bit_set::BitSet;
use super::bundle::Bundle;
use super::clock::{Expected, LinkClock};
use super::earliest::EarliestTimes;
use super::engine::EngineWorld;
use super::maxmin::{FillingChanges, MaxMin};
use super::queues;
use crate::coflows::rates::Path;
use crate::ids::{HostId, RackId};
use crate::units::Time;

/// How bundles share links.
pub enum Solver {
    /// All links alike.
    Alike(MaxMin),
    /// Some are queues of ports.
    Queued(queues::QueueSolver),
}

/// Calls the same function of either.
macro_rules! of {
    ($shares:expr, $s:ident => $call:expr) => {
        match $shares {
            Solver::Alike($s) => $call,
            Solver::Queued($s) => $call,
        }
    };
}

impl Solver {
    fn set(&mut self, bundle: u32, path: Path, flows: u32) {
        of!(self, s => s.set(bundle, path, flows));
    }

    fn limit(&mut self, capacity: &[u64]) {
        of!(self, s => s.limit(capacity));
    }

    fn refill(&mut self) -> FillingChanges {
        of!(self, s => s.refill())
    }

    fn level(&self, link: u32) -> u64 {
        of!(self, s => s.level(link))
    }

    fn bottleneck(&self, bundle: u32) -> Option<u32> {
        of!(self, s => s.bottleneck(bundle))
    }
}

/// The parts of [`Engine`] for a model with its bundles in `self.paced` that finishes what is due
/// by `self.finish_all`.
macro_rules! paced_engine {
    () => {
        fn limit(&mut self, world: &mut $crate::engine::EngineWorld) {
            self.paced.limit(world);
        }

        fn next_event(&self) -> Option<$crate::units::Time> {
            self.paced.next_event()
        }

        fn is_moving(&self) -> bool {
            self.next_event().is_some()
        }

        fn pass(&mut self, world: &mut $crate::engine::EngineWorld) {
            if self.finish_all(world) || self.paced.has_ended() {
                self.paced.rerate(world);
            }
        }

        fn catch_up(&mut self, world: &mut $crate::engine::EngineWorld) {
            if self.finish_all(world) {
                self.paced.go_on(world.now);
            }
        }

        fn reroute(
            &mut self,
            pairs: &[($crate::ids::RackId, $crate::ids::RackId)],
            world: &mut $crate::engine::EngineWorld,
        ) {
            self.paced.reroute(pairs, world);
        }

        fn settle(&mut self, world: &mut $crate::engine::EngineWorld) {
            self.paced.settle(world);
        }

        fn backlog(
            &mut self,
            most: u128,
            _books: bool,
            each: &mut dyn FnMut(($crate::ids::HostId, $crate::ids::HostId), u128),
            world: &mut $crate::engine::EngineWorld,
        ) {
            self.paced.backlog(most, each, world);
        }
    };
}
pub(super) use paced_engine;

/// Bundles, their fair rates and their clocks.
pub struct ServiceClocks {
    pub shares: Solver,
    /// The clock of each link.
    clocks: Vec<LinkClock>,
    /// By link: when bundles are due by its clock.
    expected: Vec<Expected>,
    /// By link: when the next bundle on its clock is due.
    next: EarliestTimes,
    pub bundles: Vec<Bundle>,
    pub by_racks: BTreeMap<(RackId, RackId), Vec<u32>>,
    /// Bundles with flows.
    pub active: BitSet,
    /// Bundles whose flows or route have changed.
    touched: Vec<u32>,
    /// Links whose clock has changed.
    stale: Vec<u32>,
    /// The first instant at which flows ended whose bandwidth has not been shared again.
    ended: Option<Time>,
}

impl ServiceClocks {
    /// No flows, on this many links.
    pub fn new(shares: Solver, links: usize) -> Self {
        Self {
            shares,
            clocks: (0..links).map(|_| LinkClock::default()).collect(),
            expected: (0..links).map(|_| Expected::default()).collect(),
            next: EarliestTimes::new(links),
            bundles: Vec::new(),
            by_racks: BTreeMap::new(),
            active: BitSet::default(),
            touched: Vec::new(),
            stale: Vec::new(),
            ended: None,
        }
    }

    /// Service of a bundle now: the work of a flow that had always been there, in units.
    pub fn service(&self, b: u32, now: Time) -> u128 {
        let bundle = &self.bundles[b as usize];
        bundle
            .link
            .map_or(bundle.ahead, |l| self.clocks[l as usize].at(now).wrapping_add(bundle.ahead))
    }

    /// Puts a bundle on the links of its present route. It must be booked.
    pub fn enter(&mut self, b: u32, world: &EngineWorld) {
        let bundle = &mut self.bundles[b as usize];
        bundle.route = world.route((bundle.from, bundle.to), bundle.racks, bundle.elephant);
        let path = world.links.path(bundle.from, bundle.to, bundle.route);
        self.shares.set(b, path, bundle.flows.len() as u32);
        self.touched.push(b);
    }

    /// Moves a bundle with flows to its present route, if that has changed.
    pub fn change_over(&mut self, b: u32, world: &mut EngineWorld) {
        let bundle = &self.bundles[b as usize];
        if self.active.contains(b)
            && world.route((bundle.from, bundle.to), bundle.racks, bundle.elephant) != bundle.route
        {
            self.book(b, world);
            self.enter(b, world);
        }
    }

    /// Shares the links again, sets the paces of the clocks, and puts bundles on the clocks of the
    /// links that limit them.
    pub fn rerate(&mut self, world: &EngineWorld) {
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

    /// Computes the next end on each clock that has changed.
    fn forecast(&mut self, now: Time) {
        self.stale.sort_unstable();
        self.stale.dedup();
        for l in std::mem::take(&mut self.stale) {
            let bundles = &self.bundles;
            let first = self.expected[l as usize]
                .next(|reading, b| bundles[b as usize].is_due_at(l, reading));
            self.next
                .set(l, first.and_then(|reading| self.clocks[l as usize].will_read(reading, now)));
        }
    }

    /// Puts a bundle on the clock of the link that limits it. Its service continues where it was.
    fn attach(&mut self, b: u32, now: Time) {
        let service = self.service(b, now);
        let bundle = &mut self.bundles[b as usize];
        bundle.link = self.shares.bottleneck(b);
        bundle.ahead =
            bundle.link.map_or(service, |l| service.wrapping_sub(self.clocks[l as usize].at(now)));
        self.expect(b);
    }

    /// Tells the clock of a bundle when its first flow ends.
    pub fn expect(&mut self, b: u32) {
        let bundle = &self.bundles[b as usize];
        if let (Some(l), Some(first)) = (bundle.link, bundle.first()) {
            self.expected[l as usize].expect(first.due.wrapping_sub(bundle.ahead), b);
            self.stale.push(l);
        }
    }

    /// Books what a bundle has sent by now.
    pub fn book(&mut self, b: u32, world: &mut EngineWorld) {
        let service = self.service(b, world.now);
        let bundle = &mut self.bundles[b as usize];
        let units = bundle.book(service);
        world.ledger.carried(bundle.racks, bundle.route, units, 0);
    }

    /// Takes a bundle without flows, whose service is `service`, off its clock.
    pub fn rest(&mut self, b: u32, service: u128) {
        let bundle = &mut self.bundles[b as usize];
        self.stale.extend(bundle.link);
        (bundle.link, bundle.ahead) = (None, service);
        self.active.remove(b);
    }

    /// Finishes what is due: calls `finish(bundle, link)` for each bundle that is due on the clock
    /// of a link, perhaps without effect. True if any clock is due.
    pub fn finish_all(
        &mut self,
        world: &mut EngineWorld,
        mut finish: impl FnMut(&mut Self, u32, u32, &mut EngineWorld),
    ) -> bool {
        let mut due = Vec::new();
        self.next.up_to(world.now, &mut due);
        for &link in &due {
            while let Some(b) =
                self.expected[link as usize].due(self.clocks[link as usize].at(world.now))
            {
                // A bundle that has moved to another clock is expected there.
                if self.bundles[b as usize].link == Some(link) {
                    finish(self, b, link, world);
                }
            }
            self.stale.push(link);
        }
        !due.is_empty()
    }

    /// When the clock of `link` had the reading at which a flow of a bundle was due; that is not
    /// later than now.
    pub fn when(&self, link: u32, due: u128, ahead: u128, now: Time) -> Time {
        self.clocks[link as usize].when(due.wrapping_sub(ahead), now)
    }

    /// Whether flows have ended whose bandwidth has not been shared again.
    pub fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Flows have ended, and all others keep their rates for now.
    pub fn go_on(&mut self, now: Time) {
        self.ended.get_or_insert(now);
        let touched = std::mem::take(&mut self.touched);
        touched.iter().for_each(|&b| self.expect(b));
        self.touched = touched;
        self.forecast(now);
    }

    /// When the next flow ends, or the first one ended whose bandwidth has not been shared again.
    pub fn next_event(&self) -> Option<Time> {
        self.next.first().into_iter().chain(self.ended).min()
    }

    /// The capacities of links have changed.
    pub fn limit(&mut self, world: &EngineWorld) {
        self.shares.limit(world.links.capacity());
        self.rerate(world);
    }

    /// Flows between these racks move to their present routes.
    pub fn reroute(&mut self, pairs: &[(RackId, RackId)], world: &mut EngineWorld) {
        for pair in pairs {
            for b in self.by_racks.get(pair).cloned().unwrap_or_default() {
                self.change_over(b, world);
            }
        }
        self.rerate_touched(world);
    }

    /// Shares the links again if a bundle has changed its route.
    pub fn rerate_touched(&mut self, world: &EngineWorld) {
        if !self.touched.is_empty() {
            self.rerate(world);
        }
    }

    /// Brings the books of all bundles up to now.
    pub fn settle(&mut self, world: &mut EngineWorld) {
        let active = std::mem::take(&mut self.active);
        active.iter().for_each(|b| self.book(b, world));
        self.active = active;
    }

    /// Passes the backlog at the senders, at most `most` units of each flow, and brings the books
    /// up to now.
    pub fn backlog(
        &mut self,
        most: u128,
        each: &mut dyn FnMut((HostId, HostId), u128),
        world: &mut EngineWorld,
    ) {
        let active = std::mem::take(&mut self.active);
        for b in active.iter() {
            self.book(b, world);
            let bundle = &mut self.bundles[b as usize];
            each((bundle.from, bundle.to), bundle.backlog(most));
        }
        self.active = active;
    }

    /// The bundles with flows.
    pub fn underway(&self) -> impl Iterator<Item = &Bundle> {
        self.active.iter().map(|b| &self.bundles[b as usize])
    }
}
