//! Coflows as aggregates (`within: sums`): the simulator knows what each sender has still to send
//! and what each receiver has still to receive, not what each flow has. A coflow of m senders and r
//! receivers has m + r numbers instead of m x r.
//!
//! Senders and receivers have rates, and the rates of a coflow's senders add up to those of its
//! receivers. A sender sends to whichever receivers have bandwidth. That is exact where all flows
//! share one end. Where many send to many, a sender may send more to one receiver than their flow
//! has, and less to another. On loads like Facebook's the mean CCT is within a few percent of that
//! of flows (docs/performance.md).
//!
//! An event is a coflow that arrives or ends, or a sender or receiver that is done. Observations
//! never change what happens: amounts are real numbers, and they advance only where rates are
//! decided.

use std::collections::{BTreeMap, BTreeSet};

use super::bundle::{WORK_PER_BYTE, bytes};
use super::engine::{Engine, EngineWorld, InFlight};
use crate::coflows::CoflowSpec;
use crate::coflows::network::{Network, NetworkKind};
use crate::coflows::orders::{self, Aalo, Sharing};
use crate::coflows::rates;
use crate::ids::{CoflowId, FlowId, HostId, JobId, RackId};
use crate::units::{Bytes, Time};

mod coflow;
mod endpoints;
mod levels;
mod maxmin;
mod reduce;
mod residual;
mod schedule;
#[cfg(test)]
mod tests;

use coflow::AggregateCoflow;
pub use maxmin::AggregateMaxMin;
use residual::Residual;
use schedule::Schedule;

/// Active coflows, in the order in which they are served.
pub struct Sums {
    network: Network,
    capacity: Vec<f64>,
    coflows: Vec<AggregateCoflow>,
    places: Schedule,
    /// Indices of coflows with a host that is done, whose rates were not changed yet.
    through: Vec<usize>,
    /// Jobs of the coflows that arrive next.
    jobs: BTreeMap<CoflowId, JobId>,
    /// Attained service of each job: work done by its coflows that have ended.
    attained: BTreeMap<JobId, u128>,
    /// When the first sender or receiver is done.
    next: Option<Time>,
    /// When the first coflow changes its queue, or the guard against starvation takes its turn.
    turn: Option<Time>,
    /// Bandwidth of the interfaces that the rates leave.
    room: Residual,
    /// The instant of the last [`Engine::settle`].
    settled: Time,
    /// Buffers that are kept.
    parts: [Vec<f64>; 2],
}

impl Sums {
    /// No coflows, on interfaces of these capacities: first those that send, by host, then those
    /// that receive.
    pub fn new(network: Network, interfaces: &[u64]) -> Self {
        Self {
            network,
            capacity: interfaces.iter().map(|&c| c as f64).collect(),
            coflows: Vec::new(),
            places: Schedule::default(),
            through: Vec::new(),
            jobs: BTreeMap::new(),
            attained: BTreeMap::new(),
            next: None,
            turn: None,
            room: Residual::default(),
            settled: Time::ZERO,
            parts: Default::default(),
        }
    }

    fn queues(&self) -> Option<Aalo> {
        (self.network.kind == NetworkKind::Aalo).then_some(self.network.aalo)
    }

    /// Whether all coflows progress at the same pace now: by the policy, or because the guard
    /// against starvation has its turn.
    fn all_share(&self, now: Time) -> bool {
        self.network.kind == NetworkKind::FairPerCoflow
            || self.network.starvation.is_some_and(|g| g.phase(now).0)
    }

    /// Counts the work of coflows with a host that is done, and finishes those that are over.
    /// `None` if no host is done, else whether a coflow was finished.
    fn finish(&mut self, world: &mut EngineWorld) -> Option<bool> {
        if self.next.is_none_or(|t| t > world.now) {
            return None;
        }
        let due = self.places.through(world.now);
        for &p in &due {
            self.coflows[p].advance(world.now);
            // Even if rounding has left something.
            self.coflows[p].is_stale = true;
            self.places.leave(p, &self.coflows[p]);
        }
        self.through = due;
        (!self.through.is_empty()).then(|| self.retire(world))
    }

    /// Finishes coflows that are over. True if there were any: then the order must be made again.
    fn retire(&mut self, world: &mut EngineWorld) -> bool {
        let over: Vec<AggregateCoflow> = self.coflows.extract_if(.., |c| c.is_over()).collect();
        let any = !over.is_empty();
        for c in over {
            self.count(c.job, c.sent(world.now));
            c.finish(world);
        }
        any
    }

    /// Adds the work of a coflow that is over to its job's attained service (Aalo).
    fn count(&mut self, job: Option<JobId>, sent: u128) {
        if let Some(job) = job {
            *self.attained.entry(job).or_insert(0) += sent;
        }
    }

    /// Moves coflows to the queues that they have reached. True if one has moved.
    fn move_on(&mut self, now: Time) -> bool {
        let Some(aalo) = self.queues() else { return false };
        if self.turn.is_none_or(|t| t > now) {
            return false;
        }
        let due = self.places.turns(now);
        for &p in &due {
            let c = &mut self.coflows[p];
            // Rounding may leave it a little short of the limit; it moves to the next queue all the
            // same.
            c.queue = orders::queue(bytes(c.before + c.sent(now)), &aalo).max(c.queue + 1);
        }
        !due.is_empty()
    }

    /// Tells each coflow what the other coflows of its job have sent. A new coflow begins in the
    /// queue where they are.
    fn attain(&mut self, now: Time) {
        let Some(aalo) = self.queues() else { return };
        let mut all = BTreeMap::<JobId, u128>::new();
        self.coflows
            .iter()
            .filter_map(|c| c.job.map(|j| (j, c.sent(now))))
            .for_each(|(j, sent)| *all.entry(j).or_insert(0) += sent);
        for c in &mut self.coflows {
            let Some(job) = c.job else { continue };
            c.before = self.attained.get(&job).copied().unwrap_or(0) + all[&job] - c.sent(now);
            if c.arrival == now {
                c.queue = orders::queue(bytes(c.before), &aalo);
            }
        }
    }

    /// Decides all rates; with `order`, also the order. O(coflows x words of hosts with room +
    /// interfaces of coflows whose rates change) where the order stays. A new order takes O(coflows
    /// x hosts / 64 + interfaces of coflows that move), and what sorting takes.
    fn decide(&mut self, mut order: bool, world: &mut EngineWorld) {
        // Other hosts may be done at this very instant.
        while !order && self.go_on(world.now) {
            order = self.retire(world);
        }
        if order {
            self.begin(world);
        }
        self.await_next(world.now);
    }

    /// Gives all coflows base rates in a new order, and then what is left.
    fn begin(&mut self, world: &mut EngineWorld) {
        let now = world.now;
        self.coflows.iter_mut().for_each(|c| _ = c.advance(now));
        self.retire(world);
        self.attain(now);
        self.order();
        self.coflows.iter_mut().for_each(AggregateCoflow::restart);
        self.room = Residual::new(&self.capacity);
        self.places.reset(&self.coflows);
        self.through.clear();
        if self.all_share(now) {
            self.share();
        } else if self.network.kind == NetworkKind::Varys {
            self.coflows.iter_mut().for_each(|c| c.progress(f64::INFINITY, &mut self.room));
        } else if self.is_weighted() {
            self.share_by_queue();
        }
        (0..self.coflows.len()).for_each(|p| self.fill(p, now));
    }

    /// Gives a coflow all that is left on top of its base rates.
    fn fill(&mut self, place: usize, now: Time) {
        let through = self.coflows[place].fill(now, &mut self.room, &mut self.parts);
        self.note(place, through, now);
    }

    /// Where a host is done, its coflow continues with the base rates that remain and what is left.
    /// What it frees is offered to all, and stays with them until a coflow arrives or ends. True if
    /// another host is done.
    fn go_on(&mut self, now: Time) -> bool {
        for p in std::mem::take(&mut self.through) {
            self.coflows[p].go_on(&mut self.room);
            self.fill(p, now);
        }
        for p in self.places.with_room(&self.room) {
            let c = &mut self.coflows[p];
            if !self.room.is_open() {
                break;
            }
            if !c.has_room(&self.room) {
                continue;
            }
            if c.advance(now) {
                self.places.leave(p, c);
                self.through.push(p);
                continue;
            }
            let through = c.add(&mut self.room, &mut self.parts);
            self.note(p, through, now);
        }
        !self.through.is_empty()
    }

    /// Notes a coflow's new rates, with which its first host is done at an instant; `None`: its
    /// rates have not changed.
    fn note(&mut self, place: usize, through: Option<Time>, now: Time) {
        let Some(through) = through else { return };
        let c = &self.coflows[place];
        let limit = self.queues().and_then(|aalo| {
            aalo.limit(c.queue).map(|Bytes(b)| (aalo, u128::from(b) * WORK_PER_BYTE))
        });
        let turn = limit.and_then(|(aalo, b)| {
            c.when_sent(b.saturating_sub(c.before)).map(|t| aalo.looks_from(t.max(now)))
        });
        self.places.set(place, c, through, turn.unwrap_or(Time::MAX));
    }

    /// Sorts the coflows into the order in which they are served.
    fn order(&mut self) {
        let mut order: Vec<(Time, CoflowId, usize)> =
            self.coflows.iter().zip(0..).map(|(c, place)| (c.arrival, c.id, place)).collect();
        order.sort_unstable();
        let mut order: Vec<usize> = order.into_iter().map(|(_, _, place)| place).collect();
        let among = match self.network.kind {
            NetworkKind::Varys => orders::by_time(
                &order
                    .iter()
                    .map(|&p| self.coflows[p].bottleneck(&self.capacity))
                    .collect::<Vec<(u64, u64)>>(),
            ),
            NetworkKind::Sincronia => {
                let weights: Vec<u32> = order.iter().map(|&p| self.coflows[p].weight).collect();
                let hosts = self.capacity.len() / 2;
                let seconds = |c: &AggregateCoflow| {
                    c.loads(hosts)
                        .map(|(l, bits)| (l, bits / self.capacity[l as usize].max(1.0)))
                        .collect()
                };
                orders::bssi_of(
                    &order.iter().map(|&p| seconds(&self.coflows[p])).collect::<Vec<_>>(),
                    &weights,
                    self.capacity.len(),
                )
            }
            _ => (0..order.len()).collect(),
        };
        order = among.into_iter().map(|k| order[k]).collect();
        if self.network.kind == NetworkKind::Aalo {
            order.sort_by_key(|&p| self.coflows[p].queue);
        }
        // Coflows are large: each is moved at most once.
        if !order.is_sorted() {
            let mut old: Vec<Option<AggregateCoflow>> =
                std::mem::take(&mut self.coflows).into_iter().map(Some).collect();
            self.coflows = order.into_iter().filter_map(|p| old[p].take()).collect();
        }
    }

    /// Gives all coflows the same pace, measured on the busiest interface of each.
    fn share(&mut self) {
        let hosts = self.capacity.len() / 2;
        let loads: Vec<Vec<(u32, u64)>> = self
            .coflows
            .iter()
            .map(|c| c.loads(hosts).map(|(l, bits)| (l, bits.ceil() as u64)).collect())
            .collect();
        let capacity: Vec<u64> = self.capacity.iter().map(|&c| c as u64).collect();
        for (c, pace) in self.coflows.iter_mut().zip(rates::paces(&loads, &capacity)) {
            c.progress(pace as f64, &mut self.room);
        }
    }

    /// Whether each queue has a part of the interfaces.
    fn is_weighted(&self) -> bool {
        self.queues().is_some_and(|aalo| aalo.sharing == Sharing::Weighted)
    }

    /// Gives every queue with coflows its weighted part of each interface, which its coflows take
    /// in order.
    fn share_by_queue(&mut self) {
        let aalo = self.network.aalo;
        let weight = |q: u32| f64::from(aalo.queues.saturating_sub(q).max(1));
        let total: f64 = self
            .coflows
            .chunk_by(|a, b| a.queue == b.queue)
            .map(|same| weight(same[0].queue))
            .sum();
        for same in self.coflows.chunk_by_mut(|a, b| a.queue == b.queue) {
            let mut part = Residual::part(&self.capacity, weight(same[0].queue) / total);
            same.iter_mut().for_each(|c| c.fill_base(&mut part, &mut self.room, &mut self.parts));
        }
    }

    /// Computes what happens next while rates stay.
    fn await_next(&mut self, now: Time) {
        let [through, turn] = self.places.next();
        let phase = self.network.starvation.filter(|_| self.is_moving()).map(|g| g.phase(now).1);
        (self.next, self.turn) = (through, turn.into_iter().chain(phase).min());
    }
}

impl Engine for Sums {
    fn add(&mut self, coflow: &CoflowSpec, _: &[bool], world: &mut EngineWorld) {
        let job = self.jobs.remove(&coflow.id);
        if let Some(c) = AggregateCoflow::new(coflow, job, world.ledger.counts_pairs(), world) {
            self.coflows.push(c);
            self.decide(true, world);
        }
    }

    fn belongs(&mut self, coflow: CoflowId, job: JobId) {
        if self.queues().is_some() {
            self.jobs.insert(coflow, job);
        }
    }

    fn left(&self, each: &mut dyn FnMut(CoflowId, FlowId, u128)) {
        self.parts(&mut |p| each(p.coflow, p.flow, p.left));
    }

    fn cancel(&mut self, coflow: CoflowId, world: &mut EngineWorld) {
        let Some(k) = self.coflows.iter().position(|c| c.id == coflow) else { return };
        let mut c = self.coflows.remove(k);
        let sent = c.cancel(world);
        self.count(c.job, sent);
        self.decide(true, world);
    }

    fn limit(&mut self, world: &mut EngineWorld) {
        let interfaces = &world.links.capacity()[..self.capacity.len()];
        self.capacity = interfaces.iter().map(|&c| c as f64).collect();
        self.coflows.iter_mut().for_each(AggregateCoflow::limit);
        self.decide(true, world);
    }

    fn next_event(&self) -> Option<Time> {
        self.next.into_iter().chain(self.turn).min()
    }

    /// All that happens: a sum that ends leaves the others of its coflow with other rates.
    fn next_appointment(&self) -> Option<Time> {
        self.next_event()
    }

    fn is_moving(&self) -> bool {
        self.places.any_moves()
    }

    fn pass(&mut self, world: &mut EngineWorld) {
        let turns = self.network.starvation.is_some_and(|g| g.turns_at(world.now));
        // Those that leave their queue are known by place, and who is over leaves its place.
        let moved = self.move_on(world.now);
        match self.finish(world) {
            _ if moved || turns => self.decide(true, world),
            Some(over) => self.decide(over, world),
            None => self.await_next(world.now),
        }
    }

    fn catch_up(&mut self, world: &mut EngineWorld) {
        self.pass(world);
    }

    fn reroute(&mut self, _: &[(RackId, RackId)], _: &mut EngineWorld) {}

    fn steer(&mut self, _: &BTreeSet<(HostId, HostId)>, _: &mut EngineWorld) {}

    fn settle(&mut self, world: &mut EngineWorld) {
        self.settled = world.now;
        self.coflows.iter_mut().for_each(|c| c.book(Some(world.now), world));
    }

    fn parts(&self, each: &mut dyn FnMut(InFlight)) {
        self.coflows.iter().for_each(|c| c.parts(self.settled, each));
    }
}
