//! One coflow under way: what its groups still have to send, at which rates, and since when.

use super::flows::{Booked, Flow, MergedFlows, Member, of_group, shares};
use super::roster::{About, Roster};
use crate::FlowFinished;
use crate::bundle::{WORK_PER_BYTE, Route};
use crate::coflows::orders::Aalo;
use crate::coflows::rates::{Demand, Free, Rates, Remainder};
use crate::engine::{InFlight, World};
use crate::ids::{CoflowId, FlowId, HostId, JobId, RackId};
use crate::meter::Totals;
use crate::bit_set::BitSet;
use crate::units::Time;

/// A group that has finished, and the rates that it had.
#[derive(Clone, Copy, Debug)]
pub struct Gone {
    /// The group.
    pub group: u32,
    /// Its base rate.
    pub base: u64,
    /// Its extra rate.
    pub extra: u64,
}

/// What a coflow has of its own, whatever the priorities of its flows.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    /// Its number.
    pub id: CoflowId,
    /// When it came.
    pub arrival: Time,
    /// Among flows of equal priority coflows with smaller ones go first.
    pub priority: u64,
    /// What its completion time counts, 1 at least.
    pub weight: u32,
    /// The job of which it is one of several coflows.
    pub job: Option<JobId>,
}

/// When a coflow leaves its queue.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// Units after which it does.
    pub limit: u128,
    /// The coordinator that sees it.
    pub aalo: Aalo,
}

/// A coflow under way. A group's rate is the sum of two: a `base` that stays until all rates are decided anew, and an `extra` that
/// may change with every flow that ends. So a coflow whose groups all move at base rates is one event, not thousands.
pub struct ActiveCoflow {
    /// Its number.
    pub id: CoflowId,
    /// When it came.
    pub arrival: Time,
    /// Smaller ones go first, where priorities count: that of its flows in the network, then its own.
    pub priority: (u8, u64),
    /// What its completion time counts, 1 at least.
    pub weight: u32,
    /// Aalo's queue.
    pub queue: u32,
    /// The job of which it is one of several coflows, and the units that the others had sent when the order was last made.
    pub job: Option<JobId>,
    pub before: u128,
    /// What is left.
    pub demand: Demand,
    /// Bits/s of each group that the last full decision gave; they hold until the next one.
    pub base: Rates,
    /// Bits/s of each group on top of `base`; decided anew whenever a flow ends.
    pub extra: Rates,
    /// What is known of each group.
    roster: Roster,
    /// By group; empty until something of a group that goes on is booked.
    booked: Vec<Booked>,
    /// Groups under way that were ever given an extra rate.
    begun: BitSet,
    /// Whether groups were ever given base rates, so that any may have begun.
    all_begun: bool,
    /// Time up to which the work of all groups is done.
    settled: Time,
    /// By group: up to when its work is done, where that is later; empty until it is of one.
    since: Vec<Time>,
    /// The flows of groups with several, by group, then by number.
    members: Vec<Member>,
    /// Units that all groups together had sent at an instant.
    sent: (u128, Time),
    /// Units a nanosecond of all groups together since then: the sum of the rates.
    speed: u128,
    /// When the books were last brought up to date.
    looked: Time,
    /// When the last group ends that moves at its base rate alone.
    steady: Option<Time>,
    /// When it leaves its queue.
    pub turn: Option<Time>,
    /// When something of it must be looked at; `None`: never if nothing else changes.
    pub next: Option<Time>,
}

impl ActiveCoflow {
    /// The flows of one priority of a coflow, at rest at `now`.
    pub fn new(own: Own, priority: u8, groups: MergedFlows, now: Time) -> Self {
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

    /// What it has of its own.
    pub fn own(&self) -> Own {
        Own { id: self.id, arrival: self.arrival, priority: self.priority.1, weight: self.weight, job: self.job }
    }

    /// Sender and receiver of a group, and their racks.
    pub fn between(&self, g: u32) -> ((HostId, HostId), (RackId, RackId)) {
        self.roster.between(self.demand.ends(g))
    }

    /// What is known of a group.
    pub fn about(&self, g: u32) -> About {
        self.roster.about(g, self.demand.ends(g))
    }

    /// Units that it and its job's other coflows have sent.
    pub fn attained(&self, now: Time) -> u128 {
        self.before + self.sent(now)
    }

    /// Units that it has sent.
    pub fn sent(&self, now: Time) -> u128 {
        self.sent.0 + self.speed * u128::from(now.since(self.sent.1).0)
    }

    /// Does the work that is due: of all groups when the steady ones end, else of those with extra rates. Groups that are through
    /// finish and stop, what they had goes back to `free`, and they are appended to `gone`. O(those groups).
    pub fn due(&mut self, world: &mut World, free: &mut Free, gone: &mut Vec<Gone>) {
        if self.steady.is_some_and(|t| t <= world.now) {
            self.steady = None;
            self.settle_base(world, free, gone);
        }
        self.settle_given(world, free, gone);
    }

    /// Does the work of the steady groups if their end is due.
    pub fn due_base(&mut self, world: &mut World, free: &mut Free, gone: &mut Vec<Gone>) {
        if self.steady.is_some_and(|t| t <= world.now) {
            self.extra.tidy();
            self.due(world, free, gone);
        }
    }

    /// Does the work of all groups up to now. Reads and writes no more of each than it must: there are many.
    pub fn settle(&mut self, world: &mut World, free: &mut Free) {
        self.settle_extra(world, free);
        self.demand.expect(self.base.given());
        for k in 0..self.base.given() {
            let g = self.base.group(k);
            // Nothing for those with extra rates: their work is done.
            let units = u128::from(self.base.of(g)) * u128::from(world.now.since(self.since(g)).0);
            if units > 0
                && let Some(beyond) = self.demand.sent(g, units)
            {
                self.over(g, beyond, world, free);
            }
        }
        self.settled = world.now;
    }

    /// Time up to which the work of a group is done.
    fn since(&self, g: u32) -> Time {
        self.since.get(g as usize).map_or(self.settled, |&t| t.max(self.settled))
    }

    /// The work of a group is done up to now.
    fn done(&mut self, g: u32, now: Time) {
        if self.since.is_empty() {
            self.since = vec![self.settled; self.demand.groups()];
        }
        self.since[g as usize] = now;
    }

    /// Does the work up to now of the groups with extra rates.
    pub fn settle_extra(&mut self, world: &mut World, free: &mut Free) {
        self.settle_given(world, free, &mut Vec::new());
    }

    fn settle_base(&mut self, world: &mut World, free: &mut Free, gone: &mut Vec<Gone>) {
        self.demand.expect(self.base.given());
        for k in 0..self.base.given() {
            gone.extend(self.work(self.base.group(k), world, free));
        }
    }

    fn settle_given(&mut self, world: &mut World, free: &mut Free, gone: &mut Vec<Gone>) {
        for k in 0..self.extra.given() {
            gone.extend(self.work(self.extra.group(k), world, free));
        }
    }

    /// Does the work of a group up to now. If it is through it finishes and stops, and what it had goes back to `free`.
    #[inline]
    pub fn work(&mut self, g: u32, world: &mut World, free: &mut Free) -> Option<Gone> {
        let (rate, dt) = (self.base.of(g) + self.extra.of(g), world.now.since(self.since(g)).0);
        self.done(g, world.now);
        if dt == 0 || rate == 0 {
            return None;
        }
        let beyond = self.demand.sent(g, u128::from(rate) * u128::from(dt))?;
        Some(self.over(g, beyond, world, free))
    }

    /// Ends a group that is through and was given `beyond` units more than it needed.
    fn over(&mut self, g: u32, beyond: u128, world: &mut World, free: &mut Free) -> Gone {
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

    /// Does the work up to now of a group that has moved at this rate and is not through.
    #[inline]
    fn go_on(&mut self, g: u32, rate: u64, now: Time) {
        if rate > 0 {
            let end = self.demand.sent(g, u128::from(rate) * u128::from(now.since(self.since(g)).0));
            debug_assert!(end.is_none(), "who is through is noticed before");
        }
    }

    /// A group that is not through has another extra rate from now on. Returns when it ends, if it has one.
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
        Remainder { units: self.demand.left(g), rate: base + rate }.time().and_then(|ns| now.0.checked_add(ns)).map(Time)
    }

    /// When a settled group with a rate ends.
    pub fn end(&self, g: u32) -> Option<Time> {
        let rate = self.base.of(g) + self.extra.of(g);
        let left = self.demand.left(g);
        let ns = Remainder { units: left, rate }.time()?;
        self.since(g).0.checked_add(ns).map(Time)
    }

    fn finish(&mut self, g: u32, at: Time, world: &mut World) {
        let over_ocs = self.book(g, world).over_ocs;
        let a = self.about(g);
        // The group's bytes are booked with its first flow.
        world.ledger.close(self.id, a.racks, a.size(), over_ocs);
        world.done.push(FlowFinished { coflow: self.id, flow: a.flow, at });
        for m in of_group(&self.members, g).iter().skip(1) {
            world.ledger.close(self.id, a.racks, 0, 0);
            world.done.push(FlowFinished { coflow: self.id, flow: m.flow, at });
        }
    }

    /// Closes all its flows as they are. It must be settled, and have stopped.
    pub fn cancel(&mut self, world: &mut World) {
        self.book_all(world);
        self.demand.live_groups(|g| {
            let (a, booked) = (self.about(g), self.booked[g as usize]);
            world.ledger.close(self.id, a.racks, booked.sent, booked.over_ocs);
            of_group(&self.members, g).iter().skip(1).for_each(|_| world.ledger.close(self.id, a.racks, 0, 0));
        });
    }

    /// Writes into the books what a group has sent by now: since the last time all on its present way. Returns what they hold then.
    fn book(&self, g: u32, world: &mut World) -> Booked {
        let (a, before) = (self.about(g), self.booked(g));
        let sent = a.size() - self.left(g, world.now);
        let units = sent - before.sent;
        world.ledger.carried(a.racks, a.route, units, 0);
        let over_ocs = if let Route::Ocs(_) = a.route { units } else { 0 };
        Booked { sent, over_ocs: before.over_ocs + over_ocs }
    }

    /// What the books hold of a group that goes on.
    fn booked(&self, g: u32) -> Booked {
        self.booked.get(g as usize).copied().unwrap_or_default()
    }

    /// What a group still has to send at `now`.
    fn left(&self, g: u32, now: Time) -> u128 {
        let rate = self.base.of(g) + self.extra.of(g);
        let did = u128::from(rate) * u128::from(now.since(self.since(g)).0);
        self.demand.left(g).saturating_sub(did)
    }

    /// Brings the books up to now, and nothing else: observing changes nothing. O(groups).
    pub fn book_all(&mut self, world: &mut World) {
        let mut live = Vec::with_capacity(self.demand.live());
        self.demand.live_groups(|g| live.push((g, self.book(g, world))));
        self.keep(&live);
        self.looked = world.now;
    }

    /// Notes what the books hold of these groups.
    fn keep(&mut self, booked: &[(u32, Booked)]) {
        self.booked.resize(self.demand.groups(), Booked::default());
        booked.iter().for_each(|&(g, b)| self.booked[g as usize] = b);
    }

    /// Adds to `beyond` what it has sent by `now` and the books do not hold. O(groups that have begun), or O(1) if none has.
    pub fn look(&self, now: Time, beyond: &mut Totals) {
        if self.sent(now) == 0 {
            return;
        }
        let mut count = |g| {
            let a = self.about(g);
            beyond.count(a.racks, a.route, a.size() - self.left(g, now) - self.booked(g).sent);
        };
        if self.all_begun { self.demand.live_groups(count) } else { self.begun.iter().for_each(&mut count) }
    }

    /// Moves a group to the way that it must go now. It must be settled, and have stopped.
    pub fn reroute(&mut self, g: u32, world: &mut World) {
        // What a group that is done has sent is in the books.
        if self.demand.left(g) > 0 {
            let booked = self.book(g, world);
            self.keep(&[(g, booked)]);
        }
        let a = self.about(g);
        let route = world.route(a.hosts, a.racks, a.marked);
        self.roster.set_route(g, route);
        self.demand.reroute(g, world.links.path(a.hosts.0, a.hosts.1, route));
    }

    /// The extra rates go back. It must be settled.
    pub fn stop_extra(&mut self, free: &mut Free) {
        self.extra.give_back(&self.demand, free);
    }

    /// All rates go back. It must be settled.
    pub fn stop(&mut self, free: &mut Free) {
        self.stop_extra(free);
        self.base.give_back(&self.demand, free);
        self.steady = None;
    }

    /// Ends all rates without giving them back: the caller knows what links have left. It must be settled.
    pub fn halt(&mut self) {
        self.extra.clear();
        self.base.clear();
        self.steady = None;
    }

    /// It has other base rates from now on, of which that of `last` ends last. The extra rates must be zero. Settled.
    pub fn set_base(&mut self, rates: Rates, last: Option<Remainder>, now: Time) {
        debug_assert!(self.settled == now && self.extra.total() == 0);
        self.all_begun |= rates.given() > 0;
        self.base = rates;
        self.steady = last.and_then(|l| l.time()).and_then(|ns| now.0.checked_add(ns)).map(Time);
    }

    /// Finds out when it must be looked at next, after new extra rates: when the first group with one ends, when the steady ones do,
    /// or when it leaves its queue. Groups with extra rates must be settled at `now`. O(groups with extra rates).
    pub fn forecast(&mut self, now: Time, turn: Option<Turn>) {
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

    /// The same without the ends of groups with extra rates: when the steady ones end, or when it leaves its queue.
    pub fn forecast_calm(&mut self, now: Time, turn: Option<Turn>) {
        let sent = self.sent(now);
        let after = |t: Turn| match t.limit.saturating_sub(sent) {
            // Sent between two looks of the coordinator.
            0 => Some(1),
            left => left.checked_div(self.speed).map(|_| left.div_ceil(self.speed)),
        };
        let at = |t: Turn| {
            let ns = u64::try_from(after(t)?).ok()?;
            now.0.checked_add(ns).map(|at| t.aalo.looks_from(Time(at)))
        };
        self.turn = turn.and_then(at);
        self.next = self.turn.into_iter().chain(self.steady).min();
    }

    /// What is under way, as of the last [`Live::book_all`].
    pub fn parts(&self, each: &mut dyn FnMut(InFlight)) {
        self.demand.live_groups(|g| {
            let (a, left) = (self.about(g), self.left_then(g));
            let (flows, over_ocs) = (of_group(&self.members, g).len().max(1) as u32, self.booked(g).over_ocs);
            each(InFlight { coflow: self.id, flow: a.flow, flows, hosts: a.hosts, sent: a.size() - left, over_ocs, left });
        });
    }

    /// Flows under way and the units that each has still to send, as of the last [`Live::book_all`].
    pub fn flows_left(&self, each: &mut dyn FnMut(CoflowId, FlowId, u128)) {
        self.demand.live_groups(|g| match of_group(&self.members, g) {
            [] => each(self.id, self.roster.asked(g).0, self.left_then(g)),
            several => several.iter().zip(shares(several, self.left_then(g))).for_each(|(m, left)| each(self.id, m.flow, left)),
        });
    }

    /// The flows under way.
    pub fn flow_ids(&self, each: &mut dyn FnMut(FlowId)) {
        self.demand.live_groups(|g| match of_group(&self.members, g) {
            [] => each(self.roster.asked(g).0),
            several => several.iter().for_each(|m| each(m.flow)),
        });
    }

    /// Its flows under way, singly, appended to `flows`. It must be settled, have stopped, and be booked up to now.
    pub fn loosen(&self, flows: &mut Vec<Flow>) {
        self.demand.live_groups(|g| {
            let (a, mut over_ocs) = (self.about(g), self.booked(g).over_ocs);
            let alone = [Member { group: g, flow: a.flow, bytes: a.bytes, weight: 1 }];
            let members = if of_group(&self.members, g).is_empty() { &alone } else { of_group(&self.members, g) };
            for (m, left) in members.iter().zip(shares(members, self.demand.left(g))) {
                // What went over circuits is told by coflow only, so it may count for the first flows.
                let sent = u128::from(m.bytes) * WORK_PER_BYTE - left;
                let own = over_ocs.min(sent);
                over_ocs -= own;
                let (priority, marked) = (self.priority.0, a.marked);
                flows.push(Flow { priority, hosts: a.hosts, flow: m.flow, marked, bytes: m.bytes, left, over_ocs: own });
            }
        });
    }

    /// What a group still had to send when the books were last brought up to date.
    fn left_then(&self, g: u32) -> u128 {
        self.left(g, self.looked.max(self.since(g)))
    }
}
