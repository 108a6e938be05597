//! One active coflow: the work left of its groups, their rates, and since when they have them.

use super::flows::{Booked, GroupMember, MergedFlows, OrderedFlow, of_group, shares};
use super::roster::{GroupFacts, Roster};
use crate::FlowFinished;
use crate::bit_set::BitSet;
use crate::bundle::{BundleRoute, WORK_PER_BYTE};
use crate::coflows::orders::Aalo;
use crate::coflows::rates::{Demand, FreeCapacity, Rates, Remainder};
use crate::engine::{EngineWorld, InFlight};
use crate::ids::{CoflowId, FlowId, HostId, JobId, RackId};
use crate::meter::Totals;
use crate::units::Time;

/// A group that has ended, and the rates that it had.
#[derive(Clone, Copy, Debug)]
pub struct Gone {
    /// The group.
    pub group: u32,
    /// Its base rate.
    pub base: u64,
    /// Its extra rate.
    pub extra: u64,
}

/// Facts about a coflow that do not depend on its flows' priorities.
#[derive(Clone, Copy, Debug)]
pub struct CoflowFacts {
    /// Its number.
    pub id: CoflowId,
    /// When it came.
    pub arrival: Time,
    /// Among flows of equal priority, coflows with smaller values go first.
    pub priority: u64,
    /// What its completion time counts, 1 at least.
    pub weight: u32,
    /// The job to which it belongs, if the job has several coflows.
    pub job: Option<JobId>,
}

/// When a coflow leaves its queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueExit {
    /// Work after which it does.
    pub limit: u128,
    /// The coordinator that sees it.
    pub aalo: Aalo,
}

/// An active coflow. The rate of a group is the sum of two: a `base` that stays until all rates are
/// decided again, and an `extra` that may change with every flow that ends. So a coflow whose
/// groups all move at base rates is one event, not thousands.
pub struct ActiveCoflow {
    /// Its number.
    pub id: CoflowId,
    /// When it came.
    pub arrival: Time,
    /// Smaller values go first, where priorities count: the priority of its flows in the network,
    /// then its own.
    pub priority: (u8, u64),
    /// What its completion time counts, 1 at least.
    pub weight: u32,
    /// Aalo's queue.
    pub queue: u32,
    /// The job to which it belongs, and the work that the job's other coflows had done when the
    /// order was last made.
    pub job: Option<JobId>,
    pub before: u128,
    /// Work left.
    pub demand: Demand,
    /// Bits/s of each group by the last full decision.
    pub base: Rates,
    /// Bits/s of each group on top of `base`; shared again whenever a flow ends.
    pub extra: Rates,
    /// Facts about each group.
    roster: Roster,
    /// By group; empty until a group that is not done is booked.
    booked: Vec<Booked>,
    /// Active groups that have ever had an extra rate.
    begun: BitSet,
    /// Whether groups have ever had base rates, so that any may have begun.
    all_begun: bool,
    /// The instant up to which the work of all groups is counted.
    settled: Time,
    /// By group: the instant up to which its work is counted, if that is later; empty if there is
    /// none.
    since: Vec<Time>,
    /// The flows of groups with several flows, by group, then by number.
    members: Vec<GroupMember>,
    /// Work done by all groups together at an instant.
    sent: (u128, Time),
    /// Their rates together since then, as work a nanosecond.
    speed: u128,
    /// When it was last booked.
    looked: Time,
    /// When the last group ends that moves at its base rate alone.
    steady: Option<Time>,
    /// When it leaves its queue.
    pub turn: Option<Time>,
    /// When it must be looked at; `None`: never while nothing else changes.
    pub next: Option<Time>,
}

impl ActiveCoflow {
    /// The flows of one priority of a coflow, with all rates zero at `now`.
    pub fn new(own: CoflowFacts, priority: u8, groups: MergedFlows, now: Time) -> Self {
        let MergedFlows { demand, roster, members, booked } = groups;
        let rates = Rates::new(demand.groups());
        let (base, extra) = (rates.clone(), rates);
        let sent = booked.iter().map(|b| b.sent).sum();
        Self {
            id: own.id,
            arrival: own.arrival,
            priority: (priority, own.priority),
            weight: own.weight,
            job: own.job,
            before: 0,
            queue: 0,
            demand,
            base,
            extra,
            roster,
            booked,
            begun: BitSet::default(),
            all_begun: false,
            settled: now,
            since: Vec::new(),
            members,
            sent: (sent, now),
            speed: 0,
            looked: now,
            steady: None,
            turn: None,
            next: None,
        }
    }

    /// The facts that do not depend on priorities.
    pub fn own(&self) -> CoflowFacts {
        CoflowFacts {
            id: self.id,
            arrival: self.arrival,
            priority: self.priority.1,
            weight: self.weight,
            job: self.job,
        }
    }

    /// Sender and receiver of a group, and their racks.
    pub fn between(&self, g: u32) -> ((HostId, HostId), (RackId, RackId)) {
        self.roster.between(self.demand.ends(g))
    }

    /// Facts about a group.
    pub fn about(&self, g: u32) -> GroupFacts {
        self.roster.about(g, self.demand.ends(g))
    }

    /// Work done by it and its job's other coflows.
    pub fn attained(&self, now: Time) -> u128 {
        self.before + self.sent(now)
    }

    /// Work done.
    pub fn sent(&self, now: Time) -> u128 {
        self.sent.0 + self.speed * u128::from(now.since(self.sent.1).0)
    }

    /// Counts the work that is due: of all groups when the steady ones end, else of those with
    /// extra rates. Groups that are done are finished and stopped, their rates return to `free`,
    /// and they are appended to `gone`. O(those groups).
    pub fn due(&mut self, world: &mut EngineWorld, free: &mut FreeCapacity, gone: &mut Vec<Gone>) {
        if self.steady.is_some_and(|t| t <= world.now) {
            self.steady = None;
            self.settle_base(world, free, gone);
        }
        self.settle_given(world, free, gone);
    }

    /// The same for steady groups, if their end is due.
    pub fn due_base(
        &mut self,
        world: &mut EngineWorld,
        free: &mut FreeCapacity,
        gone: &mut Vec<Gone>,
    ) {
        if self.steady.is_some_and(|t| t <= world.now) {
            self.extra.tidy();
            self.due(world, free, gone);
        }
    }

    /// Counts the work of all groups up to now. There are many, so it touches as little of each as
    /// it can.
    pub fn settle(&mut self, world: &mut EngineWorld, free: &mut FreeCapacity) {
        self.settle_extra(world, free);
        self.demand.expect(self.base.given());
        for k in 0..self.base.given() {
            let g = self.base.group(k);
            // Groups with extra rates have been counted already.
            let units = u128::from(self.base.of(g)) * u128::from(world.now.since(self.since(g)).0);
            if units > 0
                && let Some(beyond) = self.demand.sent(g, units)
            {
                self.over(g, beyond, world, free);
            }
        }
        self.settled = world.now;
    }

    /// The instant up to which the work of a group is counted.
    fn since(&self, g: u32) -> Time {
        self.since.get(g as usize).map_or(self.settled, |&t| t.max(self.settled))
    }

    /// Notes that the work of a group is counted up to now.
    fn done(&mut self, g: u32, now: Time) {
        if self.since.is_empty() {
            self.since = vec![self.settled; self.demand.groups()];
        }
        self.since[g as usize] = now;
    }

    /// Counts the work of the groups with extra rates up to now.
    pub fn settle_extra(&mut self, world: &mut EngineWorld, free: &mut FreeCapacity) {
        self.settle_given(world, free, &mut Vec::new());
    }

    fn settle_base(
        &mut self,
        world: &mut EngineWorld,
        free: &mut FreeCapacity,
        gone: &mut Vec<Gone>,
    ) {
        self.demand.expect(self.base.given());
        for k in 0..self.base.given() {
            gone.extend(self.work(self.base.group(k), world, free));
        }
    }

    fn settle_given(
        &mut self,
        world: &mut EngineWorld,
        free: &mut FreeCapacity,
        gone: &mut Vec<Gone>,
    ) {
        for k in 0..self.extra.given() {
            gone.extend(self.work(self.extra.group(k), world, free));
        }
    }

    /// Counts the work of a group up to now. If it is done, it is finished and stopped, and its
    /// rate returns to `free`.
    #[inline]
    pub fn work(
        &mut self,
        g: u32,
        world: &mut EngineWorld,
        free: &mut FreeCapacity,
    ) -> Option<Gone> {
        let (rate, dt) = (self.base.of(g) + self.extra.of(g), world.now.since(self.since(g)).0);
        self.done(g, world.now);
        if dt == 0 || rate == 0 {
            return None;
        }
        let beyond = self.demand.sent(g, u128::from(rate) * u128::from(dt))?;
        Some(self.over(g, beyond, world, free))
    }

    /// Ends a group that is done and would have done `beyond` units too much.
    fn over(
        &mut self,
        g: u32,
        beyond: u128,
        world: &mut EngineWorld,
        free: &mut FreeCapacity,
    ) -> Gone {
        let (base, extra) = (self.base.of(g), self.extra.of(g));
        let rate = base + extra;
        self.sent = (self.sent(world.now) - beyond, world.now);
        self.speed -= u128::from(rate);
        self.demand.give(g, rate, free);
        let early = (beyond / u128::from(rate)) as u64;
        self.base.stop(g);
        self.extra.stop(g);
        self.begun.remove(g);
        self.finish(g, Time(world.now.0 - early), world);
        Gone { group: g, base, extra }
    }

    /// Whether a group has sent all by `now` at its base rate, and has not been ended yet.
    pub fn is_through(&self, g: u32, now: Time) -> bool {
        let base = self.base.of(g);
        base > 0 && {
            let did = u128::from(base) * u128::from(now.since(self.since(g)).0);
            did > 0 && did >= self.demand.left(g)
        }
    }

    /// Counts the work up to now of a group that has had this rate and is not done.
    #[inline]
    fn go_on(&mut self, g: u32, rate: u64, now: Time) {
        if rate > 0 {
            let end =
                self.demand.sent(g, u128::from(rate) * u128::from(now.since(self.since(g)).0));
            debug_assert!(end.is_none(), "who is through is noticed before");
        }
    }

    /// Changes the extra rate of a group that is not done. Returns when it ends, if it has a rate.
    pub fn set_extra(&mut self, g: u32, before: u64, rate: u64, now: Time) -> Option<Time> {
        debug_assert_eq!(before, self.extra.of(g));
        let base = self.base.of(g);
        self.go_on(g, base + before, now);
        self.done(g, now);
        self.extra.change(g, before, rate);
        if before == 0 {
            self.begun.insert(g);
        }
        if self.sent.1 < now {
            self.sent = (self.sent(now), now);
        }
        self.speed = self.speed + u128::from(rate) - u128::from(before);
        if rate == 0 {
            return None;
        }
        Remainder { units: self.demand.left(g), rate: base + rate }
            .time()
            .and_then(|ns| now.0.checked_add(ns))
            .map(Time)
    }

    /// When a settled group with a rate ends.
    pub fn end(&self, g: u32) -> Option<Time> {
        let rate = self.base.of(g) + self.extra.of(g);
        let left = self.demand.left(g);
        let ns = Remainder { units: left, rate }.time()?;
        self.since(g).0.checked_add(ns).map(Time)
    }

    fn finish(&mut self, g: u32, at: Time, world: &mut EngineWorld) {
        let over_ocs = self.book(g, world).over_ocs;
        let a = self.about(g);
        // All bytes of the group are booked with its first flow.
        world.ledger.close(self.id, a.racks, a.size(), over_ocs);
        world.done.push(FlowFinished { coflow: self.id, flow: a.flow, at });
        for m in of_group(&self.members, g).iter().skip(1) {
            world.ledger.close(self.id, a.racks, 0, 0);
            world.done.push(FlowFinished { coflow: self.id, flow: m.flow, at });
        }
    }

    /// Closes all its flows as they are. It must be settled and stopped.
    pub fn cancel(&mut self, world: &mut EngineWorld) {
        self.book_all(world);
        self.demand.live_groups(|g| {
            let (a, booked) = (self.about(g), self.booked[g as usize]);
            world.ledger.close(self.id, a.racks, booked.sent, booked.over_ocs);
            of_group(&self.members, g)
                .iter()
                .skip(1)
                .for_each(|_| world.ledger.close(self.id, a.racks, 0, 0));
        });
    }

    /// Books what a group has sent by now, all of it on its present route. Returns what is booked
    /// then.
    fn book(&self, g: u32, world: &mut EngineWorld) -> Booked {
        let (a, before) = (self.about(g), self.booked(g));
        let sent = a.size() - self.left(g, world.now);
        let units = sent - before.sent;
        world.ledger.carried(a.racks, a.route, units, 0);
        let over_ocs = if let BundleRoute::Ocs(_) = a.route { units } else { 0 };
        Booked { sent, over_ocs: before.over_ocs + over_ocs }
    }

    /// What was booked of a group that is not done.
    fn booked(&self, g: u32) -> Booked {
        self.booked.get(g as usize).copied().unwrap_or_default()
    }

    /// Work left of a group at `now`.
    fn left(&self, g: u32, now: Time) -> u128 {
        let rate = self.base.of(g) + self.extra.of(g);
        let did = u128::from(rate) * u128::from(now.since(self.since(g)).0);
        self.demand.left(g).saturating_sub(did)
    }

    /// Brings the books up to now, and changes nothing else: looking at a run does not change it.
    /// O(groups).
    pub fn book_all(&mut self, world: &mut EngineWorld) {
        let mut live = Vec::with_capacity(self.demand.live());
        self.demand.live_groups(|g| live.push((g, self.book(g, world))));
        self.keep(&live);
        self.looked = world.now;
    }

    /// Notes what was booked of these groups.
    fn keep(&mut self, booked: &[(u32, Booked)]) {
        self.booked.resize(self.demand.groups(), Booked::default());
        booked.iter().for_each(|&(g, b)| self.booked[g as usize] = b);
    }

    /// Adds the work that it has done by `now` and that was not booked to `beyond`. O(groups that
    /// have begun), or O(1) if none has.
    pub fn look(&self, now: Time, beyond: &mut Totals) {
        if self.sent(now) == 0 {
            return;
        }
        let mut count = |g| {
            let a = self.about(g);
            beyond.count(a.racks, a.route, a.size() - self.left(g, now) - self.booked(g).sent);
        };
        if self.all_begun {
            self.demand.live_groups(count)
        } else {
            self.begun.iter().for_each(&mut count)
        }
    }

    /// Moves a group to its present route. It must be settled and stopped.
    pub fn reroute(&mut self, g: u32, world: &mut EngineWorld) {
        // The work of a group that is done has been booked.
        if self.demand.left(g) > 0 {
            let booked = self.book(g, world);
            self.keep(&[(g, booked)]);
        }
        let a = self.about(g);
        let route = world.route(a.hosts, a.racks, a.marked);
        self.roster.set_route(g, route);
        self.demand.reroute(g, world.links.path(a.hosts.0, a.hosts.1, route));
    }

    /// Returns the extra rates. It must be settled.
    pub fn stop_extra(&mut self, free: &mut FreeCapacity) {
        self.extra.give_back(&self.demand, free);
    }

    /// Returns all rates. It must be settled.
    pub fn stop(&mut self, free: &mut FreeCapacity) {
        self.stop_extra(free);
        self.base.give_back(&self.demand, free);
        self.steady = None;
    }

    /// Sets all rates to zero without returning them: the caller knows what links have left. It
    /// must be settled.
    pub fn halt(&mut self) {
        self.extra.clear();
        self.base.clear();
        self.steady = None;
    }

    /// Sets its base rates, of which that of `last` ends last. The extra rates must be zero. It
    /// must be settled.
    pub fn set_base(&mut self, rates: Rates, last: Option<Remainder>, now: Time) {
        debug_assert!(self.settled == now && self.extra.total() == 0);
        self.all_begun |= rates.given() > 0;
        self.base = rates;
        self.steady = last.and_then(|l| l.time()).and_then(|ns| now.0.checked_add(ns)).map(Time);
    }

    /// Computes when it must be looked at next, after new extra rates: when the first group with
    /// one ends, when the steady groups do, or when it leaves its queue. Groups with extra rates
    /// must be settled at `now`. O(groups with extra rates).
    pub fn forecast(&mut self, now: Time, turn: Option<QueueExit>) {
        let mut first: Option<Remainder> = None;
        for k in 0..self.extra.given() {
            let g = self.extra.group(k);
            let (base, extra) = (self.base.of(g), self.extra.of(g));
            if base > 0 && self.since(g) < now {
                self.go_on(g, base, now);
            }
            self.done(g, now);
            let end = Remainder { units: self.demand.left(g), rate: base + extra };
            if end.units == 0 {
                continue;
            }
            self.begun.insert(g);
            if first.is_none_or(|first| end.is_sooner(&first)) {
                first = Some(end);
            }
        }
        self.sent = (self.sent(now), now);
        self.speed = [&self.base, &self.extra].iter().map(|r| u128::from(r.total())).sum();
        let end = first.and_then(|f| f.time()).and_then(|ns| now.0.checked_add(ns)).map(Time);
        self.forecast_calm(now, turn);
        self.next = self.next.into_iter().chain(end).min();
    }

    /// The same without the ends of groups with extra rates.
    pub fn forecast_calm(&mut self, now: Time, turn: Option<QueueExit>) {
        let sent = self.sent(now);
        let after = |t: QueueExit| match t.limit.saturating_sub(sent) {
            // Sent between two looks of the coordinator.
            0 => Some(1),
            left => left.checked_div(self.speed).map(|_| left.div_ceil(self.speed)),
        };
        let at = |t: QueueExit| {
            let ns = u64::try_from(after(t)?).ok()?;
            now.0.checked_add(ns).map(|at| t.aalo.looks_from(Time(at)))
        };
        self.turn = turn.and_then(at);
        self.next = self.turn.into_iter().chain(self.steady).min();
    }

    /// What is in flight at the last [`ActiveCoflow::book_all`].
    pub fn parts(&self, each: &mut dyn FnMut(InFlight)) {
        self.demand.live_groups(|g| {
            let (a, left) = (self.about(g), self.left_then(g));
            let (flows, over_ocs) =
                (of_group(&self.members, g).len().max(1) as u32, self.booked(g).over_ocs);
            each(InFlight {
                coflow: self.id,
                flow: a.flow,
                flows,
                hosts: a.hosts,
                sent: a.size() - left,
                over_ocs,
                left,
            });
        });
    }

    /// Active flows and the work left of each, at the last [`ActiveCoflow::book_all`].
    pub fn flows_left(&self, each: &mut dyn FnMut(CoflowId, FlowId, u128)) {
        self.demand.live_groups(|g| match of_group(&self.members, g) {
            [] => each(self.id, self.roster.asked(g).0, self.left_then(g)),
            several => several
                .iter()
                .zip(shares(several, self.left_then(g)))
                .for_each(|(m, left)| each(self.id, m.flow, left)),
        });
    }

    /// The active flows.
    pub fn flow_ids(&self, each: &mut dyn FnMut(FlowId)) {
        self.demand.live_groups(|g| match of_group(&self.members, g) {
            [] => each(self.roster.asked(g).0),
            several => several.iter().for_each(|m| each(m.flow)),
        });
    }

    /// Appends its active flows, one by one, to `flows`. It must be settled, stopped, and booked up
    /// to now.
    pub fn loosen(&self, flows: &mut Vec<OrderedFlow>) {
        self.demand.live_groups(|g| {
            let (a, mut over_ocs) = (self.about(g), self.booked(g).over_ocs);
            let alone = [GroupMember { group: g, flow: a.flow, bytes: a.bytes, weight: 1 }];
            let members = if of_group(&self.members, g).is_empty() {
                &alone
            } else {
                of_group(&self.members, g)
            };
            for (m, left) in members.iter().zip(shares(members, self.demand.left(g))) {
                // Work over circuits is known by coflow only, so it may be counted for the first
                // flows.
                let sent = u128::from(m.bytes) * WORK_PER_BYTE - left;
                let own = over_ocs.min(sent);
                over_ocs -= own;
                let (priority, marked) = (self.priority.0, a.marked);
                flows.push(OrderedFlow {
                    priority,
                    hosts: a.hosts,
                    flow: m.flow,
                    marked,
                    bytes: m.bytes,
                    left,
                    over_ocs: own,
                });
            }
        });
    }

    /// Work left of a group when it was last booked.
    fn left_then(&self, g: u32) -> u128 {
        self.left(g, self.looked.max(self.since(g)))
    }
}
