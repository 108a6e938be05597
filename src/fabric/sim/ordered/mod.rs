//! Coflow after coflow: the network schedulers that know coflows.
//!
//! Rates are decided by the rules of [`crate::coflows::rates`] in an order of [`crate::coflows::orders`]. A decision is made when
//! a coflow comes or ends, when a circuit changes and, but for those that decide by coflow
//! ([`Discipline::by_coflow`]), when a flow ends. Then only the coflow that it belongs to and those behind it are
//! given rates anew: those before it do not see them. That is exact.

use std::collections::BTreeMap;

use super::bundle::BYTE;
use super::engine::{Engine, Part, World};
use super::meter::Totals;
use crate::coflows::CoflowSpec;
use crate::coflows::network::Network;
use crate::coflows::orders::{self, Aalo};
use crate::coflows::rates::{self, Demand, Free, Group, Rates};
use crate::ids::{CoflowId, FlowId, HostId, RackId};
use crate::units::{Bytes, Time};

mod disciplines;
mod live;
mod reach;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod youngest_first;

use disciplines::{Discipline, discipline};
use live::{About, Gone, Live};
use reach::Reach;

/// Coflows under way, in the order in which they are served. Where priorities count, a coflow with flows of several priorities stands
/// here once for each.
pub struct Ordered {
    discipline: Box<dyn Discipline>,
    capacity: Vec<u64>,
    free: Free,
    /// First one first.
    coflows: Vec<Live>,
    /// Priorities that were given, by coflow.
    given: BTreeMap<CoflowId, u64>,
    /// The earliest of their next events.
    next: Option<Time>,
    /// What a flow's end reaches, where that is known.
    reach: Reach,
    /// Kept for their memory.
    ended: Vec<(usize, u32)>,
    gone: Vec<Gone>,
}

/// What must be decided anew: the rates from a place on, and before that perhaps the order.
#[derive(Clone, Copy)]
struct Anew {
    from: usize,
    order: bool,
}

/// Everything.
const ALL: Anew = Anew { from: 0, order: true };

impl Ordered {
    /// No coflows on links of these capacities.
    pub fn new(network: Network, capacity: &[u64]) -> Self {
        Self::under(discipline(&network), capacity)
    }

    /// The same under rules of one's own.
    pub fn under(discipline: Box<dyn Discipline>, capacity: &[u64]) -> Self {
        Self {
            discipline,
            capacity: capacity.to_vec(),
            free: Free::new(capacity),
            coflows: Vec::new(),
            given: BTreeMap::new(),
            next: None,
            reach: Reach::new(capacity.len()),
            ended: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// The slow twin: it gives rates anew to all coflows behind a flow that ends.
    #[cfg(test)]
    pub fn slow(network: Network, capacity: &[u64]) -> Self {
        Self { reach: Reach::new(0), ..Self::new(network, capacity) }
    }

    /// Does the work of all coflows that are due; says what must be decided.
    fn due(&mut self, world: &mut World) -> Option<Anew> {
        let (now, mut anew, mut over) = (world.now, None, false);
        let mut list = std::mem::take(&mut self.ended);
        self.reach.due(now, &mut list);
        let (mut ended, mut gone, mut from) = (list.drain(..).peekable(), std::mem::take(&mut self.gone), 0);
        while let Some(place) = self.next_due(from, ended.peek().map(|e| e.0), now) {
            from = place + 1;
            let c = &mut self.coflows[place];
            gone.clear();
            if self.reach.is_ready() {
                c.due_base(world, &mut self.free, &mut gone);
                while let Some(e) = ended.next_if(|e| e.0 == place) {
                    gone.extend(c.work(e.1, world, &mut self.free));
                }
                gone.iter().for_each(|e| self.reach.leave(place, c, e));
            } else {
                c.due(world, &mut self.free, &mut gone);
            }
            over |= c.demand.live() == 0;
            // A coflow that changes its queue moves back: those before it stay where they are.
            let queue = queue_of(self.discipline.queues(), c, now);
            let moves = std::mem::replace(&mut c.queue, queue) != queue;
            // What was given by coflow is offered to all anew.
            let first = if gone.iter().any(|e| e.base > 0) { 0 } else { self.first_equal(place) };
            let a = anew.get_or_insert(Anew { from: first, order: false });
            (a.from, a.order) = (a.from.min(first), a.order | moves);
        }
        drop(ended);
        (self.ended, self.gone) = (list, gone);
        if over {
            self.coflows.retain(|c| c.demand.live() > 0);
            self.reach.forget();
            if self.discipline.end_reorders() {
                return Some(ALL);
            }
        }
        anew
    }

    /// The first coflow from a place on that must be looked at now, where flows of `ends` have ended.
    fn next_due(&self, from: usize, ends: Option<usize>, now: Time) -> Option<usize> {
        let to = ends.unwrap_or(self.coflows.len());
        if self.reach.is_ready() && !self.has_calm_events() {
            return ends;
        }
        let calm = (from..to).find(|&k| self.coflows[k].next.is_some_and(|t| t <= now));
        calm.or(ends)
    }

    /// Whether something happens to coflows while no flow with an extra rate ends.
    fn has_calm_events(&self) -> bool {
        self.discipline.queues().is_some() || self.discipline.by_coflow()
    }

    /// The first of those that share with the coflow at `place` as equals.
    fn first_equal(&self, place: usize) -> usize {
        let priority = self.coflows[place].priority;
        if self.discipline.equals_share() { self.coflows.partition_point(|c| c.priority < priority) } else { place }
    }

    fn decide(&mut self, anew: Anew, world: &mut World) {
        if self.reach.is_ready() && !anew.order {
            return self.follow(world);
        }
        let by_coflow = self.discipline.by_coflow();
        let from = if by_coflow || self.discipline.weighted().is_some() { 0 } else { anew.from };
        for c in &mut self.coflows[from..] {
            if by_coflow && anew.order {
                c.settle(world, &mut self.free);
                c.halt();
            } else {
                c.settle_extra(world, &mut self.free);
                c.stop_extra(&mut self.free);
            }
        }
        if by_coflow && anew.order {
            self.free = Free::new(&self.capacity);
        }
        // Settling may have ended some at this very instant.
        self.coflows.retain(|c| c.demand.live() > 0);
        if anew.order {
            self.coflows.sort_by_key(|c| (c.arrival, c.id));
            self.discipline.order(&mut self.coflows, &self.capacity);
            self.share_base(world.now);
        }
        let from = from.min(self.coflows.len());
        if by_coflow {
            while self.fill(world) {}
            if self.coflows.iter().any(|c| c.demand.live() == 0) {
                self.coflows.iter_mut().for_each(|c| c.stop_extra(&mut self.free));
                return self.decide(ALL, world);
            }
        } else {
            self.share(from);
        }
        for c in &mut self.coflows[from..] {
            let limit = limit_of(self.discipline.queues(), c);
            c.forecast(world.now, limit);
        }
        self.prepare(world);
        self.next = self.coflows.iter().filter_map(|c| c.next).chain(self.reach.next()).min();
    }

    /// Makes ready for following what the ends of flows reach, if flows cross two links each and take all that those have left.
    fn prepare(&mut self, world: &World) {
        let fair = self.discipline.is_fair_within();
        self.reach.forget();
        if !fair && self.discipline.weighted().is_none() && self.coflows.iter().all(|c| c.demand.is_plain()) {
            self.reach.learn(&mut self.coflows, &self.free, world.links.topology().hosts.len());
        }
        if self.reach.is_ready() {
            let queues = self.discipline.queues();
            self.coflows.iter_mut().for_each(|c| c.forecast_calm(world.now, limit_of(queues, c)));
        }
    }

    /// Gives rates anew to those flows that the ends of others reach: what giving them to all would give.
    fn follow(&mut self, world: &mut World) {
        let over = self.reach.follow(&mut self.coflows, &mut self.free, world);
        if over {
            return self.decide(ALL, world);
        }
        if let Some(queues) = self.discipline.queues() {
            self.coflows.iter_mut().for_each(|c| c.forecast_calm(world.now, limit_of(Some(queues), c)));
        }
        self.next = self.reach.next();
        if self.has_calm_events() {
            self.next = self.coflows.iter().filter_map(|c| c.next).chain(self.next).min();
        }
    }

    /// Gives what is left to all coflows, in order, after what has been given so was taken back. Says whether anybody turned out to be
    /// through, so that it must be done again.
    fn fill(&mut self, world: &mut World) -> bool {
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

    /// Gives base rates to all coflows, which have none.
    fn share_base(&mut self, now: Time) {
        if !self.discipline.by_coflow() {
            return;
        }
        let mut rates: Vec<Rates> = self.coflows.iter_mut().map(|c| std::mem::take(&mut c.base)).collect();
        let demands: Vec<&Demand> = self.coflows.iter().map(|c| &c.demand).collect();
        let last = self.discipline.base(&demands, &mut self.free, &mut rates);
        self.coflows.iter_mut().zip(rates).zip(last).for_each(|((c, rates), last)| c.set_base(rates, last, now));
    }

    /// Gives extra rates to the coflows from this place on, which have none.
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
            return coflows.chunk_by_mut(|a, b| a.priority == b.priority).for_each(|equals| together(equals, free));
        }
        coflows.iter_mut().for_each(|c| within(fair, c, free));
    }
}

/// Shares what is free among the flows of one coflow.
fn within(fair: bool, c: &mut Live, free: &mut Free) {
    if fair {
        rates::max_min(&[&c.demand], free, std::slice::from_mut(&mut c.extra));
    } else {
        rates::greedy(&c.demand, free, &mut c.extra);
    }
}

/// Shares what is free among the flows of several coflows.
fn together(coflows: &mut [Live], free: &mut Free) {
    let mut rates: Vec<Rates> = coflows.iter_mut().map(|c| std::mem::take(&mut c.extra)).collect();
    rates::max_min(&coflows.iter().map(|c| &c.demand).collect::<Vec<_>>(), free, &mut rates);
    coflows.iter_mut().zip(rates).for_each(|(c, r)| c.extra = r);
}

/// Aalo with weights: first every queue within its share of each link, then all in order over what is left.
fn weighted(aalo: &Aalo, fair: bool, coflows: &mut [Live], free: &mut Free) {
    let weight = |q: u32| u64::from(aalo.queues.saturating_sub(q).max(1));
    let total: u64 = coflows.chunk_by(|a, b| a.queue == b.queue).map(|same| weight(same[0].queue)).sum();
    let whole: Vec<u64> = (0..free.links() as u32).map(|l| free.left(l)).collect();
    for same in coflows.chunk_by_mut(|a, b| a.queue == b.queue) {
        let part = |c: &u64| (u128::from(*c) * u128::from(weight(same[0].queue)) / u128::from(total)) as u64;
        let mut own = Free::new(&whole.iter().map(part).collect::<Vec<_>>());
        for c in same {
            within(fair, c, &mut own);
            c.extra.running().for_each(|(g, rate)| c.demand.take(g, rate, free));
        }
    }
    coflows.iter_mut().for_each(|c| within(fair, c, free));
}

/// The queue of a coflow by what it has sent.
fn queue_of(queues: Option<&Aalo>, c: &Live, now: Time) -> u32 {
    queues.map_or(0, |aalo| orders::queue(super::bundle::bytes(c.sent(now)), aalo))
}

/// Units at which a coflow leaves its queue.
fn limit_of(queues: Option<&Aalo>, c: &Live) -> Option<u128> {
    queues?.limit(c.queue).map(|Bytes(b)| u128::from(b) * BYTE)
}

/// A flow by its priority in the network, its hosts and its number.
type Ranked = (u8, HostId, HostId, FlowId);

/// A coflow's flows in order, those that need no time left out. Only where priorities count are any told apart by them.
fn ranked(coflow: &CoflowSpec, discipline: &dyn Discipline, world: &mut World) -> Vec<Ranked> {
    let mut flows: Vec<Ranked> = Vec::with_capacity(coflow.flows.len());
    for (k, f) in coflow.flows.iter().enumerate() {
        if world.is_free(coflow, k) {
            continue;
        }
        let rack = |host| world.links.topology().rack_of(host);
        let priority = discipline.priority(coflow, k, rack(f.from) == rack(f.to));
        flows.push((priority, f.from, f.to, k.into()));
    }
    flows.sort_unstable();
    flows
}

/// Flows of one priority by host pair: what the groups are, and which flows are in each.
fn groups(coflow: &CoflowSpec, flows: &[Ranked], marked: &[bool], world: &World) -> (Demand, Vec<About>, Vec<(u32, FlowId)>) {
    let (mut list, mut about, mut more) = (Vec::with_capacity(flows.len()), Vec::with_capacity(flows.len()), Vec::new());
    for same in flows.chunk_by(|a, b| (a.1, a.2) == (b.1, b.2)) {
        let (_, from, to, flow) = same[0];
        let marked = marked.get(flow.index()).copied().unwrap_or(false);
        let racks = (world.links.topology().rack_of(from), world.links.topology().rack_of(to));
        let route = world.route(racks, marked);
        let Bytes(bytes) = same.iter().map(|f| coflow.flows[f.3.index()].bytes).sum();
        more.extend(same[1..].iter().map(|f| (list.len() as u32, f.3)));
        list.push(Group { path: world.links.path(from, to, route), left: u128::from(bytes) * BYTE });
        about.push(About { hosts: (from, to), racks, marked, route, flow, bytes });
    }
    (Demand::new(&list), about, more)
}

impl Engine for Ordered {
    fn add(&mut self, coflow: &CoflowSpec, marked: &[bool], world: &mut World) {
        let flows = ranked(coflow, &*self.discipline, world);
        if flows.is_empty() {
            return;
        }
        let own = self.given.get(&coflow.id).copied().unwrap_or(coflow.bytes().0);
        for same in flows.chunk_by(|a, b| a.0 == b.0) {
            let (demand, about, more) = groups(coflow, same, marked, world);
            self.coflows.push(Live::new(coflow.id, world.now, (same[0].0, own), demand, about, more));
        }
        self.decide(ALL, world);
    }

    fn prefer(&mut self, coflow: CoflowId, priority: u64, world: &mut World) {
        self.given.insert(coflow, priority);
        let mut any = false;
        for c in self.coflows.iter_mut().filter(|c| c.id == coflow) {
            (c.priority.1, any) = (priority, true);
        }
        if any {
            self.decide(ALL, world);
        }
    }

    fn cancel(&mut self, coflow: CoflowId, world: &mut World) {
        let before = self.coflows.len();
        for c in self.coflows.iter_mut().filter(|c| c.id == coflow) {
            c.settle(world, &mut self.free);
            c.stop(&mut self.free);
            c.cancel(world);
        }
        self.coflows.retain(|c| c.id != coflow);
        if self.coflows.len() < before {
            self.decide(ALL, world);
        }
    }

    fn limit(&mut self, world: &mut World) {
        for c in &mut self.coflows {
            c.settle(world, &mut self.free);
            c.stop(&mut self.free);
        }
        self.capacity = world.links.capacity().to_vec();
        self.free = Free::new(&self.capacity);
        self.decide(ALL, world);
    }

    fn next_event(&self) -> Option<Time> {
        self.next
    }

    fn is_moving(&self) -> bool {
        self.coflows.iter().any(|c| c.base.total() + c.extra.total() > 0)
    }

    fn pass(&mut self, world: &mut World) {
        if let Some(anew) = self.due(world) {
            self.decide(anew, world);
        }
    }

    fn reroute(&mut self, pairs: &[(RackId, RackId)], world: &mut World) {
        if pairs.is_empty() {
            return;
        }
        let mut any = false;
        for c in &mut self.coflows {
            let changed = |g: &usize| c.about[*g].route != world.route(c.about[*g].racks, c.about[*g].marked);
            let list: Vec<usize> = (0..c.about.len()).filter(|g| pairs.binary_search(&c.about[*g].racks).is_ok() && changed(g)).collect();
            if list.is_empty() {
                continue;
            }
            any = true;
            c.settle(world, &mut self.free);
            c.stop(&mut self.free);
            list.into_iter().for_each(|g| c.reroute(g as u32, world));
        }
        if any {
            self.decide(ALL, world);
        }
    }

    fn settle(&mut self, world: &mut World) {
        self.coflows.iter_mut().for_each(|c| c.book_all(world));
    }

    fn look(&mut self, beyond: &mut Totals, world: &mut World) {
        self.coflows.iter().for_each(|c| c.look(world.now, beyond));
    }

    fn parts(&self, each: &mut dyn FnMut(Part)) {
        self.coflows.iter().for_each(|c| c.parts(each));
    }
}
