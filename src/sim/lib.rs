//! The flow-level model in virtual time.
//!
//! Flows share links max-min fairly ([`maxmin`]), as many long TCP flows roughly do. The links are
//! every host's network interface up and down, every rack's EPS uplink up and down, and every
//! circuit while it has light, each at the rate of its payload
//! ([`bounds::payload_rate`](crate::coflows::bounds::payload_rate)). A flow between racks uses the
//! circuit of its rack pair if there is one that admits it, else the EPS, unless elephants have to
//! wait for their circuits. It changes its route at the instant at which a circuit gets or loses
//! its light. Where links have a delay, a flow's last byte arrives later by the delay of its route
//! (`delays`). There are no packets, queues, losses or round trips: what the kernel fabric measures
//! beyond this model is TCP's.
//!
//! Time is in whole nanoseconds and rates in whole bits per second; work is exact (see [`bundle`]).
//! The same calls give the same answers, byte for byte.
#![forbid(unsafe_code)]

use heliostat_base::{ids, paths, topology, units};
use heliostat_circuits as circuits;
use heliostat_circuits::{coflows, demand};
use heliostat_seam::{fabric, plan};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::coflows::elephants::Admit;
use crate::coflows::network::{Network, NetworkKind, Within};
use crate::coflows::{CoflowSpec, RackBytes};
use crate::demand::hedera::Elephants;
use crate::demand::{DemandMatrix, HostFlow};
use crate::fabric::{Fabric, FabricError, Observation, OpResult};
use crate::ids::{CoflowId, FlowId, HostId, JobId, PlaneId, RackId};
use crate::paths::{Switches, Units};
use crate::plan::paths::{Lists, PathError, Steer, SteerResult};
use crate::plan::{Op, OpError};
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};

/// Lends an engine the other parts of the fabric.
macro_rules! world {
    ($f:ident) => {
        &mut EngineWorld {
            links: &$f.links,
            crossbars: &$f.crossbars,
            admit: $f.admit,
            ledger: &mut $f.ledger,
            done: &mut $f.done,
            over: $f.over.as_mut(),
            now: $f.now,
        }
    };
}

mod aggregate;
mod big_switch;
mod bit_set;
pub mod bundle;
mod clock;
mod crossbar;
mod delays;
mod earliest;
mod engine;
mod fair_share;
pub mod faults;
mod ledger;
mod links;
pub mod maxmin;
pub mod meter;
mod model;
mod ordered;
mod queues;
mod service_clocks;
mod settings;
mod sunflow;
mod table;
mod waiting;

#[cfg(test)]
mod breaking;
#[cfg(test)]
mod laws;

#[cfg(test)]
#[path = "../testing.rs"]
mod testing;

use crate::fabric::meter::Utilisation;
use crossbar::Crossbars;
use delays::Delays;
use engine::{Engine, EngineWorld, InFlight};
use faults::{BrokenPart, Which};
pub use ledger::CoflowReceipt;
use ledger::Ledger;
use links::Links;
use meter::{BucketMeter, Totals};
pub use model::{Model, NoSums};
pub use settings::SimSettings;
use table::CellTable;

/// A flow's last byte was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowFinished {
    /// Its coflow.
    pub coflow: CoflowId,
    /// Its number in its coflow.
    pub flow: FlowId,
    /// When it finished.
    pub at: Time,
}

/// A network that exists in virtual time only.
pub struct SimFabric {
    links: Links,
    /// Which flows circuits take, and whether these have another route.
    admit: Admit,
    circuits: bool,
    /// The most that a sender's buffer holds of each flow.
    buffer: Bytes,
    now: Time,
    crossbars: Crossbars,
    ledger: Ledger,
    model: Model,
    engine: Box<dyn Engine>,
    /// What engines have finished, and what has arrived if links have delays.
    done: Vec<FlowFinished>,
    /// The same for coflows that end as wholes.
    over: Option<Vec<(CoflowId, Time)>>,
    /// Present if links have delays: what is in `done` passes through it before a caller sees it.
    delays: Option<Delays>,
    /// Links that carry less than their rate, by how many percent.
    broken: Vec<(Which, u32)>,
    meter: Option<BucketMeter>,
    /// After the end of a flow, bandwidth is shared again at multiples of this only; zero: at once.
    resolution: Span,
    /// The switches, for lists of switches; or why flows take no lists here.
    switches: Result<Switches, &'static str>,
    lists: Lists,
    /// By rack pair, while a backlog is summed; else zero.
    waiting: CellTable<u128>,
    /// Whether observations have the backlog of all pairs of racks.
    waits: bool,
    /// The zeros that observations have for bytes that are not counted.
    nothing: DemandMatrix,
}

impl SimFabric {
    /// A network at rest at time zero.
    pub fn new(topology: Arc<Topology>, settings: SimSettings) -> Self {
        let SimSettings {
            admit,
            circuits,
            network,
            buffer,
            may_fail,
            bucket,
            counters,
            backlog,
            progress,
            wholes,
            resolution,
        } = settings;
        let dark = !circuits || topology.planes.is_empty();
        let links =
            Links::new(topology.clone(), !dark, may_fail, network.kind == NetworkKind::MaxMin);
        // If flows must be known one by one, `within: sums` of a caller that did not ask
        // `Model::of` is simulated flow by flow.
        let by_flows = || Network { within: Within::default(), ..network };
        let model = Model::choose(&links, network, admit, dark)
            .or_else(|_| Model::choose(&links, by_flows(), admit, dark));
        let model = model.expect("flows can be distinguished");
        let mut ledger = Ledger::new(&topology, progress);
        if counters {
            ledger.count_pairs();
        }
        let delayed = topology.links.all().any(|l| l.delay > Span::ZERO);
        let switches = match topology.eps.graph() {
            _ if network.kind == NetworkKind::Sunflow => {
                Err("coflows take circuits one after the other under `network: sunflow`")
            }
            None => Err("its packet network is one switch"),
            Some(_) => Ok(Switches::new(&topology, Units::default())),
        };
        Self {
            model,
            engine: model.build(&links, network),
            switches,
            lists: Lists::default(),
            meter: bucket.map(|b| BucketMeter::new(b, &links)),
            waiting: CellTable::new(topology.rack_count()),
            waits: backlog,
            nothing: DemandMatrix::zero(topology.rack_count()),
            links,
            // Where there can be no circuits, elephants do not wait for one.
            admit: if dark && admit == Admit::Wait { Admit::Marked } else { admit },
            circuits,
            buffer,
            now: Time::ZERO,
            crossbars: Crossbars::new(&topology),
            ledger,
            done: Vec::new(),
            over: (wholes && !delayed).then(Vec::new),
            delays: delayed.then(Delays::default),
            broken: Vec::new(),
            resolution,
        }
    }

    /// The model that carries the flows.
    pub fn model(&self) -> Model {
        self.model
    }

    /// Starts a coflow's flows at `now`, which must not lie in the past. `elephants` says of each
    /// flow whether it is marked ([`crate::coflows::elephants::marks`]). Flows within a host, and
    /// empty ones, finish at once.
    pub fn add_flows(&mut self, coflow: &CoflowSpec, elephants: &[bool], now: Time) {
        self.run(now);
        if let Some(delays) = &mut self.delays {
            delays.add(coflow, elephants);
        }
        self.engine.add(coflow, elephants, world!(self));
        self.arrive();
    }

    /// Sets the priority of `coflow`, which may arrive later, under strict priorities: smaller
    /// values go first. A coflow without a given priority has its bytes for one.
    pub fn prefer(&mut self, coflow: CoflowId, priority: u64, now: Time) {
        self.run(now);
        self.engine.prefer(coflow, priority, world!(self));
    }

    /// `coflow`, which arrives next, belongs to a job: schedulers that count what coflows have sent
    /// count the whole job.
    pub fn belongs(&mut self, coflow: CoflowId, job: JobId) {
        self.engine.belongs(coflow, job);
    }

    /// Gives active flows of a coflow other strict priorities at `now`, 0 (first) to 7.
    pub fn prioritise(&mut self, coflow: CoflowId, flows: &[(FlowId, u8)], now: Time) {
        self.run(now);
        self.engine.prioritise(coflow, flows, world!(self));
    }

    /// Bytes that every active flow has still to send at `now`, rounded up, in the order of coflow
    /// and flow. O(flows log flows).
    pub fn left(&mut self, now: Time) -> Vec<(CoflowId, FlowId, Bytes)> {
        self.run(now);
        self.engine.settle(world!(self));
        let mut left = Vec::new();
        self.engine.left(&mut |coflow, flow, units| {
            left.push((coflow, flow, bundle::bytes(units + bundle::WORK_PER_BYTE - 1)))
        });
        left.sort_unstable();
        left
    }

    /// Cancels at `now` what a coflow still has to send.
    pub fn cancel(&mut self, coflow: CoflowId, now: Time) {
        self.run(now);
        self.engine.cancel(coflow, world!(self));
        if let Some(delays) = &mut self.delays {
            delays.cancel(coflow);
        }
    }

    /// Something breaks at `now`, or works again. Links need [`SimSettings::may_fail`].
    pub fn strike(&mut self, what: &BrokenPart, begins: bool, now: Time) {
        self.run(now);
        match *what {
            BrokenPart::Links { which, percent } => {
                if begins {
                    self.broken.push((which, percent));
                } else if let Some(k) = self.broken.iter().position(|&b| b == (which, percent)) {
                    self.broken.remove(k);
                }
                self.links.suffer(&self.broken);
                self.engine.limit(world!(self));
                self.arrive();
            }
            BrokenPart::Port { plane, side, rack, how } => {
                self.crossbars.strike((plane, side, rack), how, begins);
                self.edges();
            }
        }
    }

    /// Lets time pass until `to`; returns the flows that have finished since the last call, by
    /// time.
    pub fn advance(&mut self, to: Time) -> Vec<FlowFinished> {
        self.run(to);
        if self.resolution > Span::ZERO {
            self.done.sort_by_key(|d| d.at);
        }
        std::mem::take(&mut self.done)
    }

    /// Coflows that ended as wholes since the last call, and when: [`SimFabric::advance`] has not
    /// returned their flows.
    pub fn take_over(&mut self) -> Vec<(CoflowId, Time)> {
        self.over.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// When the next event happens: a flow finishes, its last byte arrives, or a circuit gets or
    /// loses its light. `None`: never.
    pub fn next_event(&self) -> Option<Time> {
        let arrives = self.delays.as_ref().and_then(Delays::next);
        self.next_pass().into_iter().chain(self.crossbars.next_edge()).chain(arrives).min()
    }

    /// When the end of a flow at `t` is noticed.
    fn notices(&self, t: Time) -> Time {
        t.0.checked_next_multiple_of(self.resolution.0).map_or(t, Time)
    }

    /// Whether any flow will finish if nothing changes.
    pub fn is_moving(&self) -> bool {
        self.engine.is_moving() || self.delays.as_ref().is_some_and(|d| d.next().is_some())
    }

    /// Where a probe frame sent into this input now would come out.
    pub fn comes_out(&self, plane: PlaneId, input: RackId) -> Option<RackId> {
        self.crossbars.comes_out(plane, input)
    }

    /// Whether a circuit has light now.
    pub fn is_up(&self, plane: PlaneId, input: RackId, output: RackId) -> bool {
        self.crossbars.is_up(plane, input, output)
    }

    /// Bytes received by rack pair of the `wanted` coflows that are not done, cumulative; pairs
    /// without news are left out.
    pub fn progress(
        &mut self,
        wanted: impl Fn(CoflowId) -> bool,
    ) -> Vec<(CoflowId, Vec<RackBytes>)> {
        let ids: BTreeSet<CoflowId> = self.ledger.underway().filter(|&id| wanted(id)).collect();
        if ids.is_empty() {
            return vec![];
        }
        let parts = self.parts(|id| ids.contains(&id));
        self.ledger.progress(&ids, parts.into_iter())
    }

    /// What a coflow that ended or was cancelled has received; it is forgotten then.
    pub fn forget(&mut self, coflow: CoflowId) -> CoflowReceipt {
        self.ledger.forget(coflow)
    }

    /// What every coflow that was not forgotten has received so far.
    pub fn delivered(&mut self) -> BTreeMap<CoflowId, CoflowReceipt> {
        let parts = self.parts(|_| true);
        self.ledger.delivered(parts.into_iter())
    }

    /// Bytes between racks up to now, and those of them over circuits.
    pub fn sent_between_racks(&mut self) -> [Bytes; 2] {
        self.engine.settle(world!(self));
        let totals = self.ledger.totals();
        let over_ocs: u128 = totals.planes.iter().sum();
        [totals.up.iter().sum::<u128>() + over_ocs, over_ocs].map(bundle::bytes)
    }

    fn parts(&mut self, wanted: impl Fn(CoflowId) -> bool) -> Vec<((RackId, RackId), InFlight)> {
        self.engine.settle(world!(self));
        let (mut parts, t) = (Vec::new(), self.links.topology());
        self.engine.parts(&mut |p| {
            if wanted(p.coflow) {
                parts.push(((t.rack_of(p.hosts.0), t.rack_of(p.hosts.1)), p));
            }
        });
        parts
    }

    /// Lets time pass; ends of flows are kept in `done`.
    fn run(&mut self, to: Time) {
        while let Some(t) = self.next_event().filter(|&t| t <= to) {
            self.read_meter(Time(t.0.saturating_sub(1)));
            self.now = self.now.max(t);
            self.pass();
            if self.crossbars.next_edge().is_some_and(|e| e <= self.now) {
                self.edges();
            }
        }
        self.read_meter(to);
        self.now = self.now.max(to);
        self.catch_up();
    }

    /// When the engine does what the ends of flows made necessary, or has another event; before
    /// that, when a flow ends that must be counted.
    fn next_pass(&self) -> Option<Time> {
        // The end of a flow slows its coflow down, so the coflow changes its queue later than
        // expected.
        let before = |t: Time| {
            self.engine
                .next_end()
                .filter(|&end| self.resolution > Span::ZERO && self.now < end && end < t)
        };
        let appointment = self.engine.next_appointment().map(|t| before(t).unwrap_or(t));
        self.engine.next_event().map(|t| self.notices(t)).into_iter().chain(appointment).min()
    }

    /// Does what is due now.
    fn pass(&mut self) {
        if self.resolution > Span::ZERO && self.next_pass().is_none_or(|t| t > self.now) {
            self.catch_up();
        } else {
            self.engine.pass(world!(self));
        }
        // A last byte may arrive although no flow ends.
        self.arrive();
    }

    /// Finishes flows that have ended without being noticed.
    fn catch_up(&mut self) {
        if self.resolution > Span::ZERO && self.engine.next_event().is_some_and(|t| t <= self.now) {
            self.engine.catch_up(world!(self));
            self.arrive();
        }
    }

    /// If links have delays, puts what engines have finished on its way, and what has arrived into
    /// `done`.
    fn arrive(&mut self) {
        let Some(mut delays) = self.delays.take() else { return };
        let mut done = std::mem::take(&mut self.done);
        let world = world!(self);
        let of = |(from, to, marked): delays::FlowHosts| {
            let t = world.links.topology();
            let route = world.route((from, to), (t.rack_of(from), t.rack_of(to)), marked);
            world.links.delay(from, to, route)
        };
        delays.pass(&mut done, world.now, of);
        (self.delays, self.done) = (Some(delays), done);
    }

    /// Ends the buckets up to `to`; nothing happens before it.
    fn read_meter(&mut self, to: Time) {
        while let Some(edge) = self.meter.as_ref().map(BucketMeter::edge).filter(|&e| e <= to) {
            self.now = self.now.max(edge);
            self.catch_up();
            let mut beyond = Totals::new(self.links.topology());
            self.engine.look(&mut beyond, world!(self));
            self.meter.as_mut().expect("it has an edge").read(&beyond.plus(self.ledger.totals()));
        }
    }

    /// What links carried up to now, if [`SimSettings::bucket`] asked for it; the account ends
    /// here. With [`NetworkKind::Sunflow`], a flow within a rack counts when it ends.
    pub fn utilisation(&mut self) -> Option<Utilisation> {
        let meter = self.meter.take()?;
        self.engine.settle(world!(self));
        Some(meter.finish(self.ledger.totals(), self.now, self.links.topology()))
    }

    /// Circuits got or lost their light: the flows of their racks change their routes.
    fn edges(&mut self) {
        let changed = self.crossbars.refresh(self.now);
        self.engine.reroute(&changed, world!(self));
        self.arrive();
    }

    /// Changes one list; adds the pairs whose flows change their route to `changed`.
    fn steer_one(
        &mut self,
        op: &Steer,
        changed: &mut BTreeSet<(HostId, HostId)>,
    ) -> Result<Time, PathError> {
        let switches = self.switches.as_ref().map_err(|why| PathError::NotHere((*why).into()))?;
        if op.ports.is_some() {
            return Err(PathError::NotHere(
                "flows have no ports in virtual time, so that none has a list of its own".into(),
            ));
        }
        plan::paths::check(op, switches)?;
        let many = |(links, most)| {
            PathError::Refused(format!(
                "the list has {links} links with those of its hosts; at most {most} here"
            ))
        };
        if self.links.steer((op.from, op.to), op.list.as_ref()).map_err(many)? {
            changed.insert((op.from, op.to));
        }
        plan::paths::apply(&mut self.lists, op, switches)?;
        Ok(self.now)
    }

    /// Backlog at the senders by rack pair. Brings the books up to now as far as they are read.
    fn backlog(&mut self) -> DemandMatrix {
        let (most, books) =
            (u128::from(self.buffer.0) * bundle::WORK_PER_BYTE, self.ledger.counts_pairs());
        if self.waits
            && let Some(whole) = self.engine.backlog_by_rack(most, books, world!(self))
        {
            return whole;
        }
        let t = self.links.topology();
        let (racks, waiting) = (t.rack_count(), &mut self.waiting);
        let mut pairs = Vec::new();
        let mut add = |hosts: (HostId, HostId), units| {
            let (from, to) = (t.rack_of(hosts.0), t.rack_of(hosts.1));
            let sum = waiting.at(from.index() * racks + to.index());
            if *sum == 0 && units > 0 {
                pairs.push((from, to));
            }
            *sum += units;
        };
        if self.waits {
            self.engine.backlog(most, books, &mut add, world!(self));
        } else {
            self.engine.backlog_of_circuits(most, books, &mut add, world!(self));
        }
        let mut m = self.nothing.clone();
        let bytes = |(from, to): (RackId, RackId)| {
            let units = std::mem::take(waiting.at(from.index() * racks + to.index()));
            (from, to, bundle::bytes(units).0)
        };
        m.set_all(pairs.into_iter().map(bytes));
        m
    }

    /// From now on observations have the bytes sent and the whole backlog
    /// ([`SimSettings::counters`], [`SimSettings::backlog`]).
    pub fn tell_all(&mut self) {
        self.ledger.count_pairs();
        self.waits = true;
    }
}

impl Fabric for SimFabric {
    fn observe(&mut self, now: Time) -> Result<Observation, FabricError> {
        self.run(now);
        let backlog = self.backlog();
        let (sent, over_ocs) =
            self.ledger.matrices().unwrap_or_else(|| (self.nothing.clone(), self.nothing.clone()));
        let mut programmed = self.crossbars.programmed.clone();
        programmed.timetable.forget_before(self.now);
        Ok(Observation {
            at: self.now,
            programmed,
            sent,
            over_ocs,
            backlog,
            held: None,
            ports: self.ledger.ports(),
            flows: None,
            elephants: None,
            damage: vec![],
        })
    }

    fn flows(&mut self) -> Result<Vec<HostFlow>, FabricError> {
        let mut flows = Vec::new();
        self.engine.settle(world!(self));
        self.engine.parts(&mut |p| {
            let id = u64::from(p.coflow.0) << 32 | u64::from(p.flow.0);
            let [sent, waits] = [p.sent, p.left].map(|units| bundle::bytes(units).0);
            flows.push(HostFlow {
                from: p.hosts.0,
                to: p.hosts.1,
                id,
                flows: p.flows,
                sent,
                waits,
            });
        });
        Ok(flows)
    }

    fn elephants(&mut self, tenths: &[u64]) -> Result<Option<Elephants>, FabricError> {
        let least: Vec<u128> =
            tenths.iter().map(|&bytes| u128::from(bytes) * bundle::WORK_PER_BYTE).collect();
        Ok(self.engine.elephants(&least, world!(self)))
    }

    fn apply(&mut self, ops: &[Op], now: Time) -> Vec<OpResult> {
        self.run(now);
        if !self.circuits {
            let none = |&op| OpResult { op, outcome: Err(OpError::NoCircuits) };
            return ops.iter().map(none).collect();
        }
        let results = self.crossbars.apply(ops, self.links.topology(), self.now);
        self.edges();
        results
    }

    fn steer(&mut self, ops: &[Steer], now: Time) -> Vec<SteerResult> {
        self.run(now);
        let mut changed = BTreeSet::new();
        let results = ops
            .iter()
            .map(|op| SteerResult { op: op.clone(), outcome: self.steer_one(op, &mut changed) })
            .collect();
        self.engine.steer(&changed, world!(self));
        self.arrive();
        results
    }

    fn steered(&self) -> Lists {
        self.lists.clone()
    }

    fn notice(&self) -> Span {
        Span::ZERO
    }

    fn mechanism(&self) -> &'static str {
        "sim"
    }
}
