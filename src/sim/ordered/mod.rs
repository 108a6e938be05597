//! The network schedulers that serve coflows in an order.
//!
//! Rates are decided by the rules of [`crate::coflows::rates`], in an order of
//! [`crate::coflows::orders`]. A decision is made when a coflow arrives or ends, and when a circuit
//! changes. Schedulers that do not decide by coflow ([`Discipline::by_coflow`]) also decide when a
//! flow ends. Then only the coflow of that flow and those behind it get new rates, because those
//! before it do not see them. All of that is exact.

use std::collections::{BTreeMap, BTreeSet};

use super::bundle::WORK_PER_BYTE;
use super::engine::{Engine, EngineWorld, InFlight};
use super::meter::Totals;
use crate::coflows::CoflowSpec;
use crate::coflows::network::{Decide, Guard, Network};
use crate::coflows::orders::{self, Aalo};
use crate::coflows::rates::{self, Demand, FreeCapacity, Rates};
use crate::ids::{CoflowId, FlowId, HostId, JobId, RackId};
use crate::units::{Bytes, Time};

mod active;
mod disciplines;
mod flows;
mod greedy_chains;
mod incremental;
mod levels;
mod priorities;
mod roster;
mod shares;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod youngest_first;

use active::{ActiveCoflow, CoflowFacts, Gone, QueueExit};
use disciplines::{Discipline, discipline};
use flows::MergedFlows;
use incremental::Incremental;
use roster::GroupFacts;
use shares::{together, weighted, within};

/// Active coflows, in the order in which they are served. Where priorities count, a coflow with
/// flows of several priorities is here once for each.
pub struct Ordered {
    discipline: Box<dyn Discipline>,
    decides: Decide,
    guard: Option<Guard>,
    capacity: Vec<u64>,
    free: FreeCapacity,
    /// In order.
    coflows: Vec<ActiveCoflow>,
    /// Priorities that were given, by coflow.
    given: BTreeMap<CoflowId, u64>,
    /// Jobs of the coflows that arrive next.
    jobs: BTreeMap<CoflowId, JobId>,
    /// Attained service of each job: work done by its coflows that have ended.
    attained: BTreeMap<JobId, u128>,
    /// The earliest of their next events.
    next: Option<Time>,
    /// When the first coflow leaves its queue, or the guard against starvation takes its turn.
    turn: Option<Time>,
    /// What the ends of flows made necessary and was postponed, and since when.
    pending: Option<(Time, Due)>,
    /// Incremental sharing when a flow ends, where it is possible.
    following: Incremental,
    /// A buffer that is kept.
    ended: Vec<(usize, u32)>,
    gone: Vec<Gone>,
}

/// What must be decided again: the rates from an index on, and before that perhaps the order.
#[derive(Clone, Copy)]
struct Stale {
    from: usize,
    order: bool,
}

/// What the ends of flows make necessary.
#[derive(Clone, Copy)]
struct Due {
    stale: Stale,
    /// Whether a coflow is over.
    over: bool,
}

/// Everything.
const ALL: Stale = Stale { from: 0, order: true };

impl Ordered {
    /// No coflows on links of these capacities.
    pub fn new(network: Network, capacity: &[u64]) -> Self {
        Self {
            decides: network.decide,
            guard: network.starvation,
            ..Self::under(discipline(&network), capacity)
        }
    }

    /// The same under the caller's own rules.
    pub fn under(discipline: Box<dyn Discipline>, capacity: &[u64]) -> Self {
        Self {
            discipline,
            decides: Decide::default(),
            guard: None,
            capacity: capacity.to_vec(),
            free: FreeCapacity::new(capacity),
            coflows: Vec::new(),
            given: BTreeMap::new(),
            jobs: BTreeMap::new(),
            attained: BTreeMap::new(),
            next: None,
            turn: None,
            pending: None,
            following: Incremental::new(capacity.len()),
            ended: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// The slow twin: when a flow ends, it shares among all coflows behind it.
    #[cfg(test)]
    pub fn slow(network: Network, capacity: &[u64]) -> Self {
        Self { following: Incremental::new(0), ..Self::new(network, capacity) }
    }

    /// The twin of changes of priority: it begins at `world.now` with the given priority and work
    /// left of each flow.
    #[cfg(test)]
    pub fn resume(
        network: Network,
        capacity: &[u64],
        coflows: &[(CoflowSpec, Vec<(u8, u128)>)],
        world: &mut EngineWorld,
    ) -> Self {
        let mut engine = Self::new(network, capacity);
        for (c, state) in coflows {
            let flow = |k: usize| (c.flows.at(k), state[k]);
            let flows = (0..state.len()).map(flow).enumerate().filter(|(_, (_, s))| s.1 > 0).map(
                |(k, (f, (priority, left)))| {
                    world.ledger.open(c.id);
                    flows::OrderedFlow {
                        priority,
                        hosts: (f.from, f.to),
                        flow: k.into(),
                        marked: false,
                        bytes: f.bytes.0,
                        left,
                        over_ocs: 0,
                    }
                },
            );
            let flows = flows::by_priority(c.id, flows.collect(), world);
            let own = CoflowFacts {
                id: c.id,
                arrival: c.arrival,
                priority: engine.place(c),
                weight: c.weight,
                job: None,
            };
            engine.enter(own, flows, world);
        }
        engine.decide(ALL, world);
        engine
    }

    /// Whether the guard against starvation lets all flows share now.
    fn all_share(&self, now: Time) -> bool {
        self.guard.is_some_and(|g| g.phase(now).0)
    }

    /// Whether all flows begin or end to share at this instant.
    fn turns(&self, now: Time) -> bool {
        !self.coflows.is_empty() && self.guard.is_some_and(|g| g.turns_at(now))
    }

    /// Sets the time of the next event: `first`, an event of a coflow, or the turn of the guard
    /// against starvation.
    fn await_next(&mut self, first: Option<Time>, coflows: bool, now: Time) {
        let looked_at = if coflows { &self.coflows[..] } else { &[] };
        let calm = looked_at.iter().filter_map(|c| c.next);
        // If nothing moves in one phase, no link works, and nothing will move in the other.
        let phase = self.guard.filter(|_| self.is_moving()).map(|g| g.phase(now).1);
        let turns = looked_at.iter().filter_map(|c| c.turn);
        self.turn = turns.chain(phase).min();
        self.next = calm.chain(first).chain(phase).min();
    }

    /// Continues without a decision, so the bandwidth of ended flows stays idle. If nothing moves
    /// any more, it decides after all: else no coflow would ever end.
    fn go_on(&mut self, world: &mut EngineWorld) {
        if !self.is_moving() {
            return self.decide(ALL, world);
        }
        for c in self.coflows.iter_mut().filter(|c| c.next.is_some_and(|t| t <= world.now)) {
            c.forecast(world.now, None);
        }
        self.await_next(None, true, world.now);
    }

    /// Computes the next event while rates stay.
    fn look_ahead(&mut self, now: Time) {
        let (queues, ready) = (self.discipline.queues(), self.following.is_ready());
        // With incremental sharing, `next` of a coflow under queues is when it changes its queue,
        // which the end of a flow moves.
        for c in self
            .coflows
            .iter_mut()
            .filter(|c| ready && queues.is_some() || c.next.is_some_and(|t| t <= now))
        {
            let turn = turn_of(queues, c).filter(|_| self.decides == Decide::FlowEnds);
            if ready { c.forecast_calm(now, turn) } else { c.forecast(now, turn) }
        }
        self.await_next(self.following.next(), true, now);
    }

    /// Counts the work of all coflows that are due; returns what must be decided.
    fn due(&mut self, world: &mut EngineWorld) -> Option<Stale> {
        let before = self.pending.take().map(|p| p.1);
        let due = self.work(before, world)?;
        if due.over {
            self.retire(world.now);
            self.following.forget();
            if self.discipline.end_reorders() || self.decides == Decide::CoflowEvents {
                return Some(ALL);
            }
        }
        Some(due.stale)
    }

    /// Counts the work of all coflows that are due; returns what that makes necessary, joined with
    /// `before`.
    fn work(&mut self, before: Option<Due>, world: &mut EngineWorld) -> Option<Due> {
        let (now, mut due) = (world.now, before);
        let mut list = std::mem::take(&mut self.ended);
        self.following.due(now, &mut list);
        let (mut ended, mut gone, mut from) =
            (list.drain(..).peekable(), std::mem::take(&mut self.gone), 0);
        while let Some(place) = self.next_due(from, ended.peek().map(|e| e.0), now) {
            from = place + 1;
            let c = &mut self.coflows[place];
            gone.clear();
            if self.following.is_ready() {
                c.due_base(world, &mut self.free, &mut gone);
                while let Some(e) = ended.next_if(|e| e.0 == place) {
                    gone.extend(c.work(e.1, world, &mut self.free));
                }
                gone.iter().for_each(|e| self.following.leave(place, c, e));
            } else {
                c.due(world, &mut self.free, &mut gone);
            }
            let over = c.demand.live() == 0;
            // A coflow that changes its queue moves back, so those before it keep their indices.
            let queue = if self.decides == Decide::FlowEnds {
                queue_of(self.discipline.queues(), c, now)
            } else {
                c.queue
            };
            let moves = std::mem::replace(&mut c.queue, queue) != queue;
            // Bandwidth that was given by coflow is offered to all again.
            let first = if gone.iter().any(|e| e.base > 0) { 0 } else { self.first_equal(place) };
            let d = due.get_or_insert(Due { stale: Stale { from: first, order: false }, over });
            d.stale = Stale { from: d.stale.from.min(first), order: d.stale.order | moves };
            d.over |= over;
        }
        drop(ended);
        (self.ended, self.gone) = (list, gone);
        due
    }

    /// The first coflow from an index on that must be looked at now, where flows of `ends` have
    /// ended.
    fn next_due(&self, from: usize, ends: Option<usize>, now: Time) -> Option<usize> {
        let to = ends.unwrap_or(self.coflows.len());
        if self.following.is_ready() && !self.has_calm_events() {
            return ends;
        }
        let calm = (from..to).find(|&k| self.coflows[k].next.is_some_and(|t| t <= now));
        calm.or(ends)
    }

    /// Whether coflows have events while no flow with an extra rate ends.
    fn has_calm_events(&self) -> bool {
        self.discipline.queues().is_some() || self.discipline.by_coflow()
    }

    /// The first of the coflows that share equally with the one at `place`.
    fn first_equal(&self, place: usize) -> usize {
        let priority = self.coflows[place].priority;
        if self.discipline.equals_share() {
            self.coflows.partition_point(|c| c.priority < priority)
        } else {
            place
        }
    }

    /// Removes coflows that are over; their work counts for their jobs.
    fn retire(&mut self, now: Time) {
        let attained = &mut self.attained;
        self.coflows.retain(|c| {
            let stays = c.demand.live() > 0;
            if let Some(job) = c.job.filter(|_| !stays) {
                *attained.entry(job).or_insert(0) += c.sent(now);
            }
            stays
        });
    }

    /// Tells each coflow what the other coflows of its job have sent. A new coflow begins in the
    /// queue where they are.
    fn attain(&mut self, now: Time) {
        let Some(aalo) = self.discipline.queues().copied() else { return };
        let mut all = BTreeMap::<JobId, u128>::new();
        self.coflows
            .iter()
            .filter_map(|c| c.job.map(|job| (job, c.sent(now))))
            .for_each(|(job, sent)| *all.entry(job).or_insert(0) += sent);
        for c in &mut self.coflows {
            let Some(job) = c.job else { continue };
            c.before = self.attained.get(&job).copied().unwrap_or(0) + all[&job] - c.sent(now);
            if c.arrival == now && self.decides == Decide::FlowEnds {
                c.queue = orders::queue(super::bundle::bytes(c.before), &aalo);
            }
        }
    }

    fn decide(&mut self, stale: Stale, world: &mut EngineWorld) {
        if self.following.is_ready() && !stale.order {
            return self.follow(world);
        }
        self.following.forget();
        self.pending = None;
        let (by_coflow, all_share) = (self.discipline.by_coflow(), self.all_share(world.now));
        let by_levels = !all_share && self.has_levels();
        let from = if by_coflow || all_share || by_levels || self.discipline.weighted().is_some() {
            0
        } else {
            stale.from
        };
        for c in &mut self.coflows[from..] {
            if by_coflow && stale.order {
                c.settle(world, &mut self.free);
                c.halt();
            } else {
                c.settle_extra(world, &mut self.free);
                c.stop_extra(&mut self.free);
            }
        }
        if by_coflow && stale.order {
            self.free = FreeCapacity::new(&self.capacity);
        }
        // Settling may have ended some at this very instant.
        self.retire(world.now);
        if stale.order {
            self.attain(world.now);
            if self.decides == Decide::CoflowEvents {
                let queues = self.discipline.queues();
                let queue = |c: &ActiveCoflow, aalo| {
                    orders::queue(super::bundle::bytes(c.attained(world.now)), aalo)
                };
                self.coflows
                    .iter_mut()
                    .for_each(|c| c.queue = queues.map_or(0, |aalo| queue(c, aalo)));
            }
            self.coflows.sort_by_key(|c| (c.arrival, c.id));
            self.discipline.order(&mut self.coflows, &self.capacity);
            if !all_share {
                self.share_base(world.now);
            }
        }
        let from = from.min(self.coflows.len());
        if all_share {
            self.coflows.iter_mut().for_each(|c| c.demand.index());
            together(&mut self.coflows, &mut self.free);
        } else if by_coflow {
            while self.fill(world) {}
            if self.coflows.iter().any(|c| c.demand.live() == 0) {
                self.coflows.iter_mut().for_each(|c| c.stop_extra(&mut self.free));
                return self.decide(ALL, world);
            }
        } else if by_levels
            && self.following.levels.learn(
                &mut self.coflows,
                &mut self.free,
                self.discipline.weighted(),
            )
        {
            // It has given the rates as well.
        } else {
            self.share(from);
        }
        for c in &mut self.coflows[from..] {
            let turn =
                turn_of(self.discipline.queues(), c).filter(|_| self.decides == Decide::FlowEnds);
            c.forecast(world.now, turn);
        }
        self.prepare(world);
        self.await_next(self.following.next(), true, world.now);
    }

    /// Whether the flows of a coflow share max-min fairly, cross two links each, and every end of a
    /// flow counts.
    fn has_levels(&self) -> bool {
        let fair = self.discipline.is_fair_within() && !self.discipline.equals_share();
        fair && self.decides == Decide::FlowEnds && self.coflows.iter().all(|c| c.demand.is_plain())
    }

    /// Prepares incremental sharing, if flows cross two links each and take all that these have
    /// left, flow by flow or coflow by coflow.
    fn prepare(&mut self, world: &EngineWorld) {
        let greedy = !(self.discipline.is_fair_within()
            || self.discipline.weighted().is_some()
            || self.all_share(world.now));
        if greedy
            && self.decides == Decide::FlowEnds
            && self.coflows.iter().all(|c| c.demand.is_plain())
        {
            self.following.chains.learn(
                &mut self.coflows,
                &self.free,
                world.links.topology().hosts.len(),
            );
        }
        self.following.levels.forecast(&self.coflows);
        if self.following.is_ready() {
            let queues = self.discipline.queues();
            self.coflows.iter_mut().for_each(|c| c.forecast_calm(world.now, turn_of(queues, c)));
        }
    }

    /// Changes the rates that the ends of flows affect. The result is that of sharing among all
    /// flows.
    fn follow(&mut self, world: &mut EngineWorld) {
        let over = self.following.follow(&mut self.coflows, &mut self.free, world);
        if over {
            return self.decide(ALL, world);
        }
        if let Some(queues) = self.discipline.queues() {
            self.coflows
                .iter_mut()
                .for_each(|c| c.forecast_calm(world.now, turn_of(Some(queues), c)));
        }
        self.await_next(self.following.next(), self.has_calm_events(), world.now);
    }

    /// Shares what is left among all coflows, in order, after the extra rates were returned. True
    /// if a group turns out to be done, so that it must be called again.
    fn fill(&mut self, world: &mut EngineWorld) -> bool {
        let (free, mut through) = (&mut self.free, Vec::new());
        // Nothing was sent at these rates.
        self.coflows.iter_mut().for_each(|c| c.stop_extra(free));
        for (k, c) in self.coflows.iter_mut().enumerate() {
            let mut extra = std::mem::take(&mut c.extra);
            rates::greedy_but(&c.demand, free, &mut extra, |g| {
                let is = c.is_through(g, world.now);
                through.extend(is.then_some((k, g)));
                is
            });
            c.extra = extra;
        }
        for &(k, g) in &through {
            self.coflows[k].work(g, world, free);
        }
        !through.is_empty()
    }

    /// Rank of a coflow among those whose flows have the same priority: the priority that was
    /// given, else its size. Where equals share, all coflows without a given priority have one
    /// rank.
    fn place(&self, coflow: &CoflowSpec) -> u64 {
        let own = if self.discipline.equals_share() { u64::MAX } else { coflow.bytes().0 };
        self.given.get(&coflow.id).copied().unwrap_or(own)
    }

    /// Adds flows of a coflow, with all rates zero, as groups by priority.
    fn enter(&mut self, own: CoflowFacts, flows: Vec<(u8, MergedFlows)>, world: &EngineWorld) {
        for (priority, groups) in flows {
            self.coflows.push(ActiveCoflow::new(own, priority, groups, world.now));
        }
    }

    /// Moves the flows `of(hosts, racks)` to their present routes, where these have changed.
    fn change_over(
        &mut self,
        of: impl Fn((HostId, HostId), (RackId, RackId)) -> bool,
        world: &mut EngineWorld,
    ) {
        let mut any = false;
        for c in &mut self.coflows {
            let changes = |g: u32| {
                let (hosts, racks) = c.between(g);
                of(hosts, racks) && {
                    let GroupFacts { route, marked, .. } = c.about(g);
                    route != world.route(hosts, racks, marked)
                }
            };
            let list: Vec<u32> = (0..c.demand.groups() as u32).filter(|&g| changes(g)).collect();
            if list.is_empty() {
                continue;
            }
            any = true;
            c.settle(world, &mut self.free);
            c.stop(&mut self.free);
            list.into_iter().for_each(|g| c.reroute(g, world));
        }
        if any {
            self.decide(ALL, world);
        }
    }

    /// Gives base rates to all coflows, which have none.
    fn share_base(&mut self, now: Time) {
        if !self.discipline.by_coflow() {
            return;
        }
        let mut rates: Vec<Rates> =
            self.coflows.iter_mut().map(|c| std::mem::take(&mut c.base)).collect();
        let demands: Vec<&Demand> = self.coflows.iter().map(|c| &c.demand).collect();
        let last = self.discipline.base(&demands, &mut self.free, &mut rates);
        self.coflows
            .iter_mut()
            .zip(rates)
            .zip(last)
            .for_each(|((c, rates), last)| c.set_base(rates, last, now));
    }

    /// Gives extra rates to the coflows from this index on, which have none.
    fn share(&mut self, from: usize) {
        let (free, coflows) = (&mut self.free, &mut self.coflows[from..]);
        let fair = self.discipline.is_fair_within();
        if fair {
            coflows.iter_mut().for_each(|c| c.demand.index());
        }
        if let Some(aalo) = self.discipline.weighted() {
            return weighted(aalo, fair, coflows, free);
        }
        if self.discipline.equals_share() {
            return coflows
                .chunk_by_mut(|a, b| a.priority == b.priority)
                .for_each(|equals| together(equals, free));
        }
        coflows.iter_mut().for_each(|c| within(fair, c, free));
    }
}

/// Queue of a coflow by what it has sent; its present queue while the coordinator does not look.
fn queue_of(queues: Option<&Aalo>, c: &ActiveCoflow, now: Time) -> u32 {
    let looks = queues.filter(|aalo| aalo.looks_at(now));
    looks.map_or(c.queue, |aalo| orders::queue(super::bundle::bytes(c.attained(now)), aalo))
}

/// When a coflow leaves its queue.
fn turn_of(queues: Option<&Aalo>, c: &ActiveCoflow) -> Option<QueueExit> {
    let aalo = queues?;
    aalo.limit(c.queue).map(|Bytes(b)| QueueExit {
        limit: (u128::from(b) * WORK_PER_BYTE).saturating_sub(c.before),
        aalo: *aalo,
    })
}

impl Engine for Ordered {
    fn add(&mut self, coflow: &CoflowSpec, marked: &[bool], world: &mut EngineWorld) {
        let flows = flows::fresh(coflow, marked, world, |k, local| {
            self.discipline.priority(coflow, k, local)
        });
        let job = self.jobs.remove(&coflow.id);
        if flows.is_empty() {
            return;
        }
        let priority = self.place(coflow);
        self.enter(
            CoflowFacts {
                id: coflow.id,
                arrival: world.now,
                priority,
                weight: coflow.weight.max(1),
                job,
            },
            flows,
            world,
        );
        self.decide(ALL, world);
    }

    fn prefer(&mut self, coflow: CoflowId, priority: u64, world: &mut EngineWorld) {
        self.given.insert(coflow, priority);
        let mut any = false;
        for c in self.coflows.iter_mut().filter(|c| c.id == coflow) {
            (c.priority.1, any) = (priority, true);
        }
        if any {
            self.decide(ALL, world);
        }
    }

    fn belongs(&mut self, coflow: CoflowId, job: JobId) {
        if self.discipline.queues().is_some() {
            self.jobs.insert(coflow, job);
        }
    }

    fn prioritise(&mut self, coflow: CoflowId, flows: &[(FlowId, u8)], world: &mut EngineWorld) {
        if self.discipline.has_priorities()
            && self.move_flows(coflow, &flows.iter().copied().collect(), world)
        {
            self.decide(ALL, world);
        }
    }

    fn left(&self, each: &mut dyn FnMut(CoflowId, FlowId, u128)) {
        self.coflows.iter().for_each(|c| c.flows_left(each));
    }

    fn cancel(&mut self, coflow: CoflowId, world: &mut EngineWorld) {
        let before = self.coflows.len();
        for c in self.coflows.iter_mut().filter(|c| c.id == coflow) {
            c.settle(world, &mut self.free);
            c.stop(&mut self.free);
            c.cancel(world);
        }
        for c in self.coflows.extract_if(.., |c| c.id == coflow) {
            c.job
                .into_iter()
                .for_each(|job| *self.attained.entry(job).or_insert(0) += c.sent(world.now));
        }
        if self.coflows.len() < before {
            self.decide(ALL, world);
        }
    }

    fn limit(&mut self, world: &mut EngineWorld) {
        for c in &mut self.coflows {
            c.settle(world, &mut self.free);
            c.stop(&mut self.free);
        }
        self.capacity = world.links.capacity().to_vec();
        self.free = FreeCapacity::new(&self.capacity);
        self.decide(ALL, world);
    }

    fn next_event(&self) -> Option<Time> {
        self.next.into_iter().chain(self.pending.as_ref().map(|p| p.0)).min()
    }

    fn next_end(&self) -> Option<Time> {
        self.next
    }

    fn next_appointment(&self) -> Option<Time> {
        self.turn
    }

    fn is_moving(&self) -> bool {
        self.pending.is_some() || self.coflows.iter().any(|c| c.base.total() + c.extra.total() > 0)
    }

    fn pass(&mut self, world: &mut EngineWorld) {
        let due = self.due(world);
        match due {
            _ if self.turns(world.now) => self.decide(ALL, world),
            Some(stale) if self.decides == Decide::CoflowEvents && !stale.order => {
                self.go_on(world)
            }
            Some(stale) => self.decide(stale, world),
            None => {}
        }
    }

    fn catch_up(&mut self, world: &mut EngineWorld) {
        let (since, before) = self.pending.take().unzip();
        if let Some(due) = self.work(before, world) {
            self.pending = Some((since.unwrap_or(world.now), due));
            self.look_ahead(world.now);
        }
    }

    fn reroute(&mut self, pairs: &[(RackId, RackId)], world: &mut EngineWorld) {
        if !pairs.is_empty() {
            self.change_over(|_, racks| pairs.binary_search(&racks).is_ok(), world);
        }
    }

    fn steer(&mut self, pairs: &BTreeSet<(HostId, HostId)>, world: &mut EngineWorld) {
        self.change_over(|hosts, _| pairs.contains(&hosts), world);
    }

    fn settle(&mut self, world: &mut EngineWorld) {
        self.coflows.iter_mut().for_each(|c| c.book_all(world));
    }

    fn look(&mut self, beyond: &mut Totals, world: &mut EngineWorld) {
        self.coflows.iter().for_each(|c| c.look(world.now, beyond));
    }

    fn parts(&self, each: &mut dyn FnMut(InFlight)) {
        self.coflows.iter().for_each(|c| c.parts(each));
    }
}
