//! Coflows by their sums (`within: sums`): of a coflow is known what each sender has still to send and each receiver to receive, and not
//! what each flow has. m senders and r receivers are m + r numbers, and m x r flows.
//!
//! Senders and receivers have rates, and a coflow's senders have together what its receivers have. So a sender sends to the receivers that
//! have room, and a receiver takes from the senders that have. That is what flows can do where one end of all of them is the same. Where
//! many send to many, a sender may send more to one receiver than its flow to it has, and less to another one. On loads like Facebook's the
//! mean CCT is within a few percent of that of flows (docs/performance.md).
//!
//! An event is a coflow that comes or ends, or a sender or receiver that is through. Nothing that is observed changes what happens: amounts
//! are real numbers, and are brought up to an instant only where rates are decided anew.

use std::collections::{BTreeMap, BTreeSet};

use super::bundle::{BYTE, bytes};
use super::engine::{Engine, Part, World};
use super::links::Links;
use crate::coflows::CoflowSpec;
use crate::coflows::network::{Network, NetworkKind, Within};
use crate::coflows::orders::{self, Aalo, Sharing};
use crate::coflows::rates;
use crate::ids::{CoflowId, FlowId, HostId, JobId, RackId};
use crate::units::{Bytes, Time};

mod coflow;
mod lanes;
mod room;
mod side;
#[cfg(test)]
mod tests;

use coflow::Coflow;
use room::Room;

/// Whether a network can be known so: nothing tells the flows of a coflow apart that has the same senders and receivers. No circuits, no
/// graph of switches, and no limits but the hosts' interfaces.
pub fn serves(network: Network, links: &Links, dark: bool) -> bool {
    network.kind.has_within(Within::Sums) && dark && links.topology().eps.graph().is_none() && links.two_sided(false)
}

/// What must be decided anew: the rates of the coflows from a place on, and perhaps the order.
#[derive(Clone, Copy, Debug)]
struct Anew {
    from: usize,
    order: bool,
}

const ALL: Anew = Anew { from: 0, order: true };

/// Coflows under way, in the order in which they are served.
pub struct Sums {
    network: Network,
    capacity: Vec<f64>,
    coflows: Vec<Coflow>,
    /// The jobs of coflows that come next.
    jobs: BTreeMap<CoflowId, JobId>,
    /// Units that coflows of a job have sent that are over.
    attained: BTreeMap<JobId, u128>,
    /// When the first sender or receiver is through.
    next: Option<Time>,
    /// When the first coflow leaves its queue, or the guard against starvation turns.
    turn: Option<Time>,
    /// What rates leave of the interfaces.
    room: Room,
    /// The instant of the last [`Engine::settle`].
    settled: Time,
    /// Kept for their memory.
    parts: [Vec<f64>; 2],
}

impl Sums {
    /// No coflows on interfaces of these capacities: those that send, by host, then those that receive.
    pub fn new(network: Network, interfaces: &[u64]) -> Self {
        Self {
            network,
            capacity: interfaces.iter().map(|&c| c as f64).collect(),
            coflows: Vec::new(),
            jobs: BTreeMap::new(),
            attained: BTreeMap::new(),
            next: None,
            turn: None,
            room: Room::default(),
            settled: Time::ZERO,
            parts: Default::default(),
        }
    }

    fn queues(&self) -> Option<Aalo> {
        (self.network.kind == NetworkKind::Aalo).then_some(self.network.aalo)
    }

    /// Whether all coflows progress at the same pace now: always, or because the guard against starvation has its turn.
    fn all_share(&self, now: Time) -> bool {
        self.network.kind == NetworkKind::FairPerCoflow || self.network.starvation.is_some_and(|g| g.phase(now).0)
    }

    /// Does the work of coflows of which a sum is through, and finishes those that are over. Says what that calls for.
    fn finish(&mut self, world: &mut World) -> Option<Anew> {
        if self.next.is_none_or(|t| t > world.now) {
            return None;
        }
        let is_due = |c: &Coflow| c.next.is_some_and(|t| t <= world.now);
        let from = self.coflows.iter().position(is_due)?;
        for c in self.coflows[from..].iter_mut().filter(|c| is_due(c)) {
            c.advance(world.now);
            // Even if rounding has left something.
            c.renew();
        }
        Some(Anew { from, order: self.retire(world) })
    }

    /// Finishes coflows that are over. Says whether there were any.
    fn retire(&mut self, world: &mut World) -> bool {
        let over: Vec<Coflow> = self.coflows.extract_if(.., |c| c.is_over()).collect();
        let any = !over.is_empty();
        for c in over {
            self.count(&c, world.now);
            c.finish(world.now, world);
        }
        any
    }

    /// What a coflow that is over has sent counts for its job.
    fn count(&mut self, c: &Coflow, now: Time) {
        if let Some(job) = c.job {
            *self.attained.entry(job).or_insert(0) += c.sent(now);
        }
    }

    /// Moves coflows to the queues that they have reached. Says whether one has moved.
    fn move_on(&mut self, now: Time) -> bool {
        let Some(aalo) = self.queues() else { return false };
        let mut any = false;
        for c in self.coflows.iter_mut().filter(|c| c.turn.is_some_and(|t| t <= now)) {
            // What rounding leaves it short of the limit does not count.
            c.queue = orders::queue(bytes(c.before + c.sent(now)), &aalo).max(c.queue + 1);
            (any, c.turn) = (true, None);
        }
        any
    }

    /// Tells each coflow of a job what the job's others have sent. One that comes begins in the queue in which they leave it.
    fn attain(&mut self, now: Time) {
        let Some(aalo) = self.queues() else { return };
        let mut all = BTreeMap::<JobId, u128>::new();
        self.coflows.iter().filter_map(|c| c.job.map(|j| (j, c.sent(now)))).for_each(|(j, sent)| *all.entry(j).or_insert(0) += sent);
        for c in &mut self.coflows {
            let Some(job) = c.job else { continue };
            c.before = self.attained.get(&job).copied().unwrap_or(0) + all[&job] - c.sent(now);
            if c.arrival == now {
                c.queue = orders::queue(bytes(c.before), &aalo);
            }
        }
    }

    /// Decides rates anew. O(hosts + coflows x hosts / 64 + interfaces of coflows whose rates change), and what the order takes.
    fn decide(&mut self, mut anew: Anew, world: &mut World) {
        let now = world.now;
        loop {
            let again = if anew.order {
                self.begin(world)
            } else if self.network.kind == NetworkKind::Varys || self.is_weighted() || self.all_share(now) {
                self.go_on(now)
            } else {
                self.fill_behind(anew.from, now)
            };
            // Others are through at this very instant.
            if !again {
                break;
            }
            anew.order |= self.retire(world);
        }
        self.await_next(now);
    }

    /// Gives all coflows base rates, in an order that is new, and what is left beside. Says whether a sum is through.
    fn begin(&mut self, world: &mut World) -> bool {
        let now = world.now;
        self.coflows.iter_mut().for_each(|c| _ = c.advance(now));
        self.retire(world);
        self.attain(now);
        self.order();
        self.coflows.iter_mut().for_each(Coflow::restart);
        self.room = Room::new(&self.capacity);
        if self.all_share(now) {
            self.share();
        } else if self.network.kind == NetworkKind::Varys {
            self.coflows.iter_mut().for_each(|c| c.progress(f64::INFINITY, &mut self.room));
        } else if self.is_weighted() {
            self.share_by_queue();
        }
        self.fill(0, now)
    }

    /// Coflows from a place on get all that those before leave them. Says whether a sum is through.
    fn fill_behind(&mut self, from: usize, now: Time) -> bool {
        self.room = Room::new(&self.capacity);
        self.coflows[..from].iter().for_each(|c| c.hold(&mut self.room));
        self.fill(from, now)
    }

    /// Coflows from a place on get all that there is for them beside base rates, in order. Says whether a sum is through.
    fn fill(&mut self, from: usize, now: Time) -> bool {
        let mut again = false;
        for c in &mut self.coflows[from..] {
            again |= c.fill(now, &mut self.room, &mut self.parts);
        }
        again
    }

    /// Where a sum is through a coflow goes on with the base rates that remain, and what there is beside. What it leaves is offered to all,
    /// and stays with them until a coflow comes or ends. Says whether another sum is through.
    fn go_on(&mut self, now: Time) -> bool {
        let mut again = false;
        for c in self.coflows.iter_mut().filter(|c| c.is_anew) {
            c.go_on(&mut self.room);
            again |= c.fill(now, &mut self.room, &mut self.parts);
        }
        for c in &mut self.coflows {
            if !self.room.is_open() {
                break;
            }
            again |= c.add(now, &mut self.room, &mut self.parts);
        }
        again
    }

    /// Puts coflows into the order in which they are served.
    fn order(&mut self) {
        self.coflows.sort_by_key(|c| (c.arrival, c.id));
        let order = match self.network.kind {
            NetworkKind::Varys => {
                orders::by_time(&self.coflows.iter_mut().map(|c| c.bottleneck(&self.capacity)).collect::<Vec<(u64, u64)>>())
            }
            NetworkKind::Sincronia => {
                let weights: Vec<u32> = self.coflows.iter().map(|c| c.weight).collect();
                let hosts = self.capacity.len() / 2;
                let seconds = |c: &Coflow| c.loads(hosts).map(|(l, bits)| (l, bits / self.capacity[l as usize].max(1.0))).collect();
                orders::bssi_of(&self.coflows.iter().map(seconds).collect::<Vec<_>>(), &weights, self.capacity.len())
            }
            NetworkKind::Aalo => return self.coflows.sort_by_key(|c| c.queue),
            _ => return,
        };
        let mut old: Vec<Option<Coflow>> = std::mem::take(&mut self.coflows).into_iter().map(Some).collect();
        self.coflows = order.into_iter().filter_map(|k| old[k].take()).collect();
    }

    /// All coflows progress at the same pace, measured by what each has on its own busiest interface.
    fn share(&mut self) {
        let hosts = self.capacity.len() / 2;
        let loads: Vec<Vec<(u32, u64)>> =
            self.coflows.iter().map(|c| c.loads(hosts).map(|(l, bits)| (l, bits.ceil() as u64)).collect()).collect();
        let capacity: Vec<u64> = self.capacity.iter().map(|&c| c as u64).collect();
        for (c, pace) in self.coflows.iter_mut().zip(rates::paces(&loads, &capacity)) {
            c.progress(pace as f64, &mut self.room);
        }
    }

    /// Whether queues have their parts of interfaces.
    fn is_weighted(&self) -> bool {
        self.queues().is_some_and(|aalo| aalo.sharing == Sharing::Weighted)
    }

    /// Every queue with coflows has its part of each interface, by weight, which its coflows take in order.
    fn share_by_queue(&mut self) {
        let aalo = self.network.aalo;
        let weight = |q: u32| f64::from(aalo.queues.saturating_sub(q).max(1));
        let total: f64 = self.coflows.chunk_by(|a, b| a.queue == b.queue).map(|same| weight(same[0].queue)).sum();
        for same in self.coflows.chunk_by_mut(|a, b| a.queue == b.queue) {
            let mut part = Room::part(&self.capacity, weight(same[0].queue) / total);
            same.iter_mut().for_each(|c| c.fill_base(&mut part, &mut self.room, &mut self.parts));
        }
    }

    /// Finds out what happens next while rates stay.
    fn await_next(&mut self, now: Time) {
        self.next = self.coflows.iter().filter_map(|c| c.next).min();
        if let Some(aalo) = self.queues() {
            for c in &mut self.coflows {
                let limit = aalo.limit(c.queue).map(|Bytes(b)| (u128::from(b) * BYTE).saturating_sub(c.before));
                c.turn = limit.and_then(|units| c.when_sent(units)).map(|t| aalo.looks_from(t.max(now)));
            }
        }
        let phase = self.network.starvation.filter(|_| self.is_moving()).map(|g| g.phase(now).1);
        self.turn = self.coflows.iter().filter_map(|c| c.turn).chain(phase).min();
    }
}

impl Engine for Sums {
    fn add(&mut self, coflow: &CoflowSpec, _: &[bool], world: &mut World) {
        let job = self.jobs.remove(&coflow.id);
        if let Some(c) = Coflow::new(coflow, job, world.ledger.counts_pairs(), world) {
            self.coflows.push(c);
            self.decide(ALL, world);
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

    fn cancel(&mut self, coflow: CoflowId, world: &mut World) {
        let Some(k) = self.coflows.iter().position(|c| c.id == coflow) else { return };
        let mut c = self.coflows.remove(k);
        c.book(Some(world.now), world);
        c.close(c.sent(world.now), world);
        self.count(&c, world.now);
        self.decide(ALL, world);
    }

    fn limit(&mut self, world: &mut World) {
        let interfaces = &world.links.capacity()[..self.capacity.len()];
        self.capacity = interfaces.iter().map(|&c| c as f64).collect();
        self.coflows.iter_mut().for_each(Coflow::limit);
        self.decide(ALL, world);
    }

    fn next_event(&self) -> Option<Time> {
        self.next.into_iter().chain(self.turn).min()
    }

    /// All that happens: a sum that is through leaves the others of its coflow with other rates.
    fn next_appointment(&self) -> Option<Time> {
        self.next_event()
    }

    fn is_moving(&self) -> bool {
        self.coflows.iter().any(Coflow::moves)
    }

    fn pass(&mut self, world: &mut World) {
        let turns = self.network.starvation.is_some_and(|g| g.turns_at(world.now));
        let (through, moved) = (self.finish(world), self.move_on(world.now));
        match through {
            _ if moved || turns => self.decide(ALL, world),
            Some(anew) => self.decide(anew, world),
            None => self.await_next(world.now),
        }
    }

    fn catch_up(&mut self, world: &mut World) {
        self.pass(world);
    }

    fn reroute(&mut self, _: &[(RackId, RackId)], _: &mut World) {}

    fn steer(&mut self, _: &BTreeSet<(HostId, HostId)>, _: &mut World) {}

    fn settle(&mut self, world: &mut World) {
        self.settled = world.now;
        self.coflows.iter_mut().for_each(|c| c.book(Some(world.now), world));
    }

    fn parts(&self, each: &mut dyn FnMut(Part)) {
        self.coflows.iter().for_each(|c| c.parts(self.settled, each));
    }
}
