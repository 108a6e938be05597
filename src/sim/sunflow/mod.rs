//! Sunflow: every coflow over circuits of its own, and nothing over the packet network.
//!
//! Whenever a coflow arrives or ends, the reservations are made again: coflows in their order, each
//! takes the port time that those before it leave ([`crate::circuits::sunflow`]). A circuit that
//! continues does not go dark. A circuit is for one coflow; no other uses its light. Flows of a
//! coflow between the same two racks go one after another.
//!
//! With a guard against starvation, windows of that alternate with rounds in which all coflows
//! share fixed circuits ([`crate::circuits::sunflow::round`]). What arrives during a round waits
//! for its end, unless nothing else is there.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use super::FlowFinished;
use super::bundle::{BundleRoute, WORK_PER_BYTE};
use super::engine::{Engine, EngineWorld, InFlight};
use crate::circuits::sunflow::Order;
use crate::circuits::sunflow::need::LightNeed;
use crate::circuits::sunflow::round::round;
use crate::circuits::sunflow::window::{HeldCircuit, PairCircuit, plan};
use crate::coflows::CoflowSpec;
use crate::coflows::network::{Guard, Network};
use crate::ids::{CoflowId, FlowId, HostId, RackId};
use crate::topology::Topology;
use crate::units::{Span, Time};

mod live;
#[cfg(test)]
mod tests;

use live::LiveCoflow;

/// A flow within a rack: its end, its coflow, its number, its hosts, its bytes.
type LocalFlow = (Time, CoflowId, FlowId, (HostId, HostId), u64);

/// Active coflows, and the circuits planned for them.
pub struct SunflowCoflows {
    order: Order,
    guard: Option<Guard>,
    /// When the guard begins or ends a round, if there are coflows.
    turn: Option<Time>,
    /// Bits per second of payload over a circuit.
    rate: u64,
    delta: Span,
    /// In order.
    coflows: Vec<LiveCoflow>,
    /// The circuits, each with the instant up to which its light was used.
    circuits: Vec<(PairCircuit, Time)>,
    /// When the next flow of a circuit ends, or its light.
    ends: BinaryHeap<Reverse<(Time, u32)>>,
    /// The circuits that existed at the last plan, and when that was.
    stood: (Time, Vec<HeldCircuit>),
    /// The instant up to which circuits are planned.
    horizon: Option<Time>,
    /// How far to plan. It follows the number of circuits that begin in it, and does not change
    /// results.
    span: Span,
    locals: BinaryHeap<Reverse<LocalFlow>>,
}

impl SunflowCoflows {
    /// No coflows, and all ports of the topology's first plane dark.
    pub fn new(network: Network, topology: &Topology) -> Self {
        let plane = topology.planes.first();
        Self {
            order: network.order,
            guard: network.starvation,
            turn: None,
            rate: plane.map_or(0, |p| topology.payload(p.rate).0),
            delta: plane.map_or(Span::ZERO, |p| p.delta),
            coflows: Vec::new(),
            circuits: Vec::new(),
            ends: BinaryHeap::new(),
            stood: (Time::ZERO, Vec::new()),
            horizon: None,
            span: Span::secs(1),
            locals: BinaryHeap::new(),
        }
    }

    /// Makes the reservations again, in a new order.
    fn replan(&mut self, world: &mut EngineWorld) {
        self.catch_up(world);
        if self.stood.0 < world.now {
            self.stood = (world.now, self.stands(world.now, |_| 0));
        }
        self.coflows.retain(|c| c.need.pending() > 0 && !c.cancelled);
        self.coflows.sort_by_cached_key(|c| c.key(self.order, self.delta));
        self.turn = self.guard.filter(|_| !self.coflows.is_empty()).map(|g| g.phase(world.now).1);
        let held = std::mem::take(&mut self.stood.1);
        match self.guard.filter(|_| self.all_share(world.now)) {
            Some(guard) => self.join(world.now, &held, guard),
            None => self.plan(world.now, &held),
        }
        self.stood.1 = held;
    }

    /// Whether the guard against starvation lets all coflows share now.
    fn all_share(&self, now: Time) -> bool {
        self.guard.is_some_and(|g| g.phase(now).0)
    }

    /// Joins all ports by the fixed assignment of this round.
    fn join(&mut self, now: Time, held: &[HeldCircuit], guard: Guard) {
        let needs: Vec<&LightNeed> = self.coflows.iter().map(|c| &c.need).collect();
        let circuits = round(&needs, self.delta, held, (now, guard.phase(now).1), guard.round(now));
        self.horizon = None;
        self.follow(circuits);
    }

    /// Extends the plan beyond its end. That is valid because no coflow arrived or finished since
    /// it was made.
    fn plan_further(&mut self, world: &mut EngineWorld) {
        self.catch_up(world);
        let held = self.stands(world.now, |place| place);
        self.stood = (world.now, held.iter().map(|h| HeldCircuit { owner: 0, ..*h }).collect());
        self.plan(world.now, &held);
    }

    fn plan(&mut self, now: Time, held: &[HeldCircuit]) {
        let needs: Vec<&LightNeed> = self.coflows.iter().map(|c| &c.need).collect();
        let end = self.turn.unwrap_or(Time::MAX);
        let mut window = plan(&needs, self.delta, held, now, self.span.min(end.since(now)));
        // A round takes the ports of all circuits.
        window.circuits.retain(|c| c.up_from < end);
        window.circuits.iter_mut().for_each(|c| c.until = c.until.min(end));
        let (ports, n) = (needs.first().map_or(0, |n| n.ports()), window.circuits.len());
        if n > 16 * ports {
            self.span = Span((self.span.0 / 2).max(1));
        } else if n < 4 * ports {
            self.span = (self.span * 2).min(Span::secs(1000));
        }
        // Circuits that never end need no further plan.
        self.horizon =
            window.circuits.iter().any(|c| c.until < Time::MAX).then_some(window.horizon);
        self.follow(window.circuits);
    }

    /// Sets the circuits of the plan.
    fn follow(&mut self, circuits: Vec<PairCircuit>) {
        self.circuits = circuits.into_iter().map(|c| (c, c.up_from)).collect();
        self.ends.clear();
        // A pair may have several circuits, each but the last cut short by a coflow before its own.
        let mut before: BTreeMap<(usize, u32), u64> = BTreeMap::new();
        for k in 0..self.circuits.len() as u32 {
            let (c, _) = self.circuits[k as usize];
            let light = before.get(&(c.place, c.pair)).copied().unwrap_or(0);
            self.forecast(k, light);
            let light = light.saturating_add(c.until.since(c.up_from).0);
            if light < self.coflows[c.place].need.rest(c.pair).0 {
                before.insert((c.place, c.pair), light);
            }
        }
    }

    /// Notes when the next flow of a circuit ends, or its light; the pair's other circuits will
    /// have given `light` until it begins.
    fn forecast(&mut self, k: u32, light: u64) {
        let (c, used) = self.circuits[k as usize];
        if used < c.until {
            self.ends.push(Reverse((
                self.coflows[c.place].next_end(c.pair, used, light).min(c.until),
                k,
            )));
        }
    }

    /// Uses the light of a circuit up to `to`.
    fn shine(&mut self, k: u32, to: Time, world: &mut EngineWorld) {
        let (c, used) = self.circuits[k as usize];
        let to = to.min(c.until);
        if to > used {
            self.circuits[k as usize].1 = to;
            self.coflows[c.place].use_light(c.pair, used, to.since(used).0, world);
        }
    }

    /// Uses the light of all circuits up to now.
    fn catch_up(&mut self, world: &mut EngineWorld) {
        (0..self.circuits.len() as u32).for_each(|k| self.shine(k, world.now, world));
    }

    /// The circuits that exist at `now`, or ended at it.
    fn stands(&self, now: Time, owner: impl Fn(usize) -> usize) -> Vec<HeldCircuit> {
        let standing = self.circuits.iter().map(|c| c.0).filter(|c| c.from < now && c.until >= now);
        standing
            .map(|c| HeldCircuit {
                ports: self.coflows[c.place].need.pair(c.pair),
                ready: c.up_from,
                owner: owner(c.place),
            })
            .collect()
    }

    /// Ends flows within a rack that are due.
    fn end_locals(&mut self, world: &mut EngineWorld) {
        while let Some(&Reverse((at, coflow, flow, hosts, bytes))) =
            self.locals.peek().filter(|l| l.0.0 <= world.now)
        {
            self.locals.pop();
            let rack = world.links.topology().rack_of(hosts.0);
            let size = u128::from(bytes) * WORK_PER_BYTE;
            world.ledger.carried((rack, rack), BundleRoute::Local, size, 0);
            world.ledger.close(coflow, (rack, rack), size, 0);
            world.done.push(FlowFinished { coflow, flow, at });
        }
    }
}

impl Engine for SunflowCoflows {
    fn add(&mut self, coflow: &CoflowSpec, _marked: &[bool], world: &mut EngineWorld) {
        let mut between = Vec::with_capacity(coflow.flows.len());
        for (k, f) in coflow.flows.iter().enumerate() {
            if world.is_free(coflow.id, k, &f) {
                continue;
            }
            let t = world.links.topology();
            let racks: (RackId, RackId) = (t.rack_of(f.from), t.rack_of(f.to));
            if racks.0 == racks.1 {
                let rate = [f.from, f.to]
                    .map(|h| t.payload(t.hosts[h.index()].nic))
                    .into_iter()
                    .min()
                    .unwrap_or_default();
                let hosts = (f.from, f.to);
                self.locals.push(Reverse((
                    world.now + rate.time_for(f.bytes),
                    coflow.id,
                    k.into(),
                    hosts,
                    f.bytes.0,
                )));
            } else {
                between.push(k);
            }
        }
        if !between.is_empty() {
            self.coflows.push(LiveCoflow::new(coflow, &between, self.rate, world));
            if self.turn.is_none() || !self.all_share(world.now) {
                self.replan(world);
            }
        }
    }

    fn cancel(&mut self, coflow: CoflowId, world: &mut EngineWorld) {
        for Reverse((_, id, _, hosts, _)) in self.locals.iter().filter(|l| l.0.1 == coflow) {
            let rack = world.links.topology().rack_of(hosts.0);
            world.ledger.close(*id, (rack, rack), 0, 0);
        }
        self.locals.retain(|l| l.0.1 != coflow);
        self.catch_up(world);
        if let Some(c) = self.coflows.iter_mut().find(|c| c.id == coflow) {
            c.cancel(world);
            self.replan(world);
        }
    }

    /// Its circuits do not depend on the links behind them.
    fn limit(&mut self, _world: &mut EngineWorld) {}

    fn next_event(&self) -> Option<Time> {
        let (end, local) = (self.ends.peek().map(|e| e.0.0), self.locals.peek().map(|l| l.0.0));
        [end, local, self.horizon, self.turn].into_iter().flatten().min().filter(|&t| t < Time::MAX)
    }

    fn next_appointment(&self) -> Option<Time> {
        self.next_event()
    }

    fn is_moving(&self) -> bool {
        self.next_event().is_some()
    }

    fn catch_up(&mut self, world: &mut EngineWorld) {
        // It is never late.
        self.pass(world);
    }

    fn pass(&mut self, world: &mut EngineWorld) {
        self.end_locals(world);
        let mut over = false;
        while let Some(&Reverse((t, k))) = self.ends.peek().filter(|e| e.0.0 <= world.now) {
            self.ends.pop();
            self.shine(k, t, world);
            self.forecast(k, 0);
            over |= self.coflows[self.circuits[k as usize].0.place].need.pending() == 0;
        }
        if self.turn.is_some_and(|t| t <= world.now) || over && !self.all_share(world.now) {
            self.replan(world);
        } else if self.horizon.is_some_and(|h| h <= world.now) {
            self.plan_further(world);
        }
    }

    fn reroute(&mut self, _pairs: &[(RackId, RackId)], _world: &mut EngineWorld) {}

    fn steer(&mut self, _pairs: &BTreeSet<(HostId, HostId)>, _world: &mut EngineWorld) {}

    fn settle(&mut self, world: &mut EngineWorld) {
        self.catch_up(world);
    }

    fn parts(&self, each: &mut dyn FnMut(InFlight)) {
        self.coflows.iter().for_each(|c| c.parts(each));
        for &Reverse((_, coflow, flow, hosts, bytes)) in &self.locals {
            each(InFlight {
                coflow,
                flow,
                flows: 1,
                hosts,
                sent: 0,
                over_ocs: 0,
                left: u128::from(bytes) * WORK_PER_BYTE,
            });
        }
    }

    fn left(&self, each: &mut dyn FnMut(CoflowId, FlowId, u128)) {
        self.coflows.iter().for_each(|c| c.left(each));
        self.locals.iter().for_each(|Reverse((_, coflow, flow, _, bytes))| {
            each(*coflow, *flow, u128::from(*bytes) * WORK_PER_BYTE)
        });
    }
}
