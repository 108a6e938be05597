//! The flow-level model in virtual time.
//!
//! Flows share links max-min fairly ([`maxmin`]), as many long TCP flows roughly do. The links are every host's network
//! interface up and down, every rack's EPS uplink up and down, and every circuit while it has light, each at the rate
//! of its payload ([`payload_rate`]). A flow between racks goes over the circuit of its rack pair when there is one and it is
//! admitted, else through the EPS; it changes over at the very instant at which a circuit gets or loses its light.
//! There are no packets, queues, losses or round trips: what the kernel fabric measures beyond this model is TCP's.
//!
//! Time is in whole nanoseconds and rates in whole bits per second; work is exact (see [`bundle`]). The same calls give the same
//! answers, byte for byte.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use super::{Fabric, FabricError, Observation, OpResult};
use crate::coflows::bounds::payload_rate;
use crate::coflows::{CoflowSpec, RackBytes};
use crate::demand::DemandMatrix;
use crate::fabric::SEND_BUFFER;
use crate::ids::{CoflowId, FlowId, HostId, PlaneId, RackId};
use crate::plan::Op;
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};

pub mod bundle;
mod crossbar;
mod ledger;
pub mod maxmin;

#[cfg(test)]
mod laws;

use bundle::{Bundle, Route};
use crossbar::Crossbars;
pub use ledger::Delivered;
use ledger::Ledger;
use maxmin::{MaxMin, Path};

/// A flow's last byte was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowFinished {
    /// Its coflow.
    pub coflow: CoflowId,
    /// Its place in the coflow's list.
    pub flow: FlowId,
    /// When.
    pub at: Time,
}

/// A network that exists in virtual time only.
pub struct SimFabric {
    topology: Arc<Topology>,
    /// Circuits take all flows, not only those that are marked.
    admit_all: bool,
    now: Time,
    shares: MaxMin,
    crossbars: Crossbars,
    ledger: Ledger,
    bundles: Vec<Bundle>,
    by_hosts: BTreeMap<(HostId, HostId, bool), u32>,
    by_racks: BTreeMap<(RackId, RackId), Vec<u32>>,
    /// Bundles with flows.
    active: BTreeSet<u32>,
    /// Bundles whose first finish must be forecast anew.
    stale: BTreeSet<u32>,
    /// (when, bundle, forecast): out of date if the bundle has a newer forecast.
    finishes: BinaryHeap<Reverse<(Time, u32, u64)>>,
    done: Vec<FlowFinished>,
}

impl SimFabric {
    /// A network at rest at time zero. `admit_all`: circuits take all flows of their rack pair, not only elephants.
    pub fn new(topology: Arc<Topology>, admit_all: bool) -> Self {
        let nics = || topology.hosts.iter().map(|h| h.nic);
        let uplinks = || topology.racks.iter().map(|r| r.uplink);
        let circuits = topology.planes.iter().flat_map(|p| std::iter::repeat_n(p.rate, topology.rack_count()));
        let rates = nics().chain(nics()).chain(uplinks()).chain(uplinks()).chain(circuits);
        Self {
            shares: MaxMin::new(rates.map(|r| payload_rate(r).0).collect()),
            crossbars: Crossbars::new(&topology),
            ledger: Ledger::new(&topology),
            topology,
            admit_all,
            now: Time::ZERO,
            bundles: Vec::new(),
            by_hosts: BTreeMap::new(),
            by_racks: BTreeMap::new(),
            active: BTreeSet::new(),
            stale: BTreeSet::new(),
            finishes: BinaryHeap::new(),
            done: Vec::new(),
        }
    }

    /// Starts a coflow's flows at `now`, which must not lie in the past. `elephants` says of each flow whether it is marked
    /// ([`crate::coflows::elephants::marks`]). Flows within a host, and empty ones, finish at once. O(F log F + refilling).
    pub fn add_flows(&mut self, coflow: &CoflowSpec, elephants: &[bool], now: Time) {
        self.run(now);
        for (k, f) in coflow.flows.iter().enumerate() {
            let flow = FlowId::from(k);
            let racks = (self.topology.rack_of(f.from), self.topology.rack_of(f.to));
            self.ledger.open(coflow.id);
            if f.from == f.to || f.bytes == Bytes::ZERO {
                self.ledger.close(coflow.id, racks, u128::from(f.bytes.0) * bundle::BYTE, 0);
                self.done.push(FlowFinished { coflow: coflow.id, flow, at: self.now });
                continue;
            }
            let b = self.bundle(f.from, f.to, racks, elephants.get(k).copied().unwrap_or(false));
            self.settle(b);
            self.bundles[b as usize].push(coflow.id, flow, f.bytes);
            self.active.insert(b);
            self.stale.insert(b);
        }
        for b in self.stale.clone() {
            self.enter(b);
        }
        self.rerate();
    }

    /// Lets time pass up to `to`; returns the flows that have finished since the last call, by time.
    pub fn advance(&mut self, to: Time) -> Vec<FlowFinished> {
        self.run(to);
        std::mem::take(&mut self.done)
    }

    /// When something will next happen by itself: a flow finishes, or a circuit gets or loses its light. `None`: never.
    pub fn next_event(&self) -> Option<Time> {
        let finish = self.finishes.peek().map(|f| f.0.0);
        finish.into_iter().chain(self.crossbars.next_edge()).min()
    }

    /// Whether any flow will finish if nothing changes.
    pub fn is_moving(&self) -> bool {
        !self.finishes.is_empty()
    }

    /// Whether a circuit has light now: what a probe frame would find.
    pub fn is_up(&self, plane: PlaneId, input: RackId, output: RackId) -> bool {
        self.crossbars.is_up(plane, input, output)
    }

    /// What the coflows that are not done have received by rack pair, cumulative; pairs without news are left out.
    pub fn progress(&mut self) -> Vec<(CoflowId, Vec<RackBytes>)> {
        self.settle_all();
        let (bundles, active) = (&self.bundles, &self.active);
        self.ledger.progress(active.iter().map(|&b| &bundles[b as usize]))
    }

    /// What every coflow has received so far.
    pub fn delivered(&mut self) -> BTreeMap<CoflowId, Delivered> {
        self.settle_all();
        self.ledger.delivered(self.active.iter().map(|&b| &self.bundles[b as usize]))
    }

    /// Lets time pass; finishes are kept in `done`.
    fn run(&mut self, to: Time) {
        while let Some(t) = self.next_event().filter(|&t| t <= to) {
            self.now = self.now.max(t);
            self.finish_due();
            if self.crossbars.next_edge().is_some_and(|e| e <= self.now) {
                self.edges();
            }
            self.rerate();
        }
        self.now = self.now.max(to);
    }

    fn finish_due(&mut self) {
        while let Some(&Reverse((t, b, forecast))) = self.finishes.peek().filter(|f| f.0.0 <= self.now) {
            self.finishes.pop();
            if self.bundles[b as usize].forecast != forecast {
                continue;
            }
            self.settle(b);
            let bundle = &mut self.bundles[b as usize];
            while let Some((f, over_ocs, beyond)) = bundle.pop() {
                self.ledger.carried(bundle, 0, beyond);
                self.ledger.close(f.coflow, bundle.racks, f.size, over_ocs);
                self.done.push(FlowFinished { coflow: f.coflow, flow: f.flow, at: t });
            }
            if bundle.flows.is_empty() {
                self.active.remove(&b);
            }
            self.enter(b);
            self.stale.insert(b);
        }
    }

    /// Circuits got or lost their light: their racks' flows change over.
    fn edges(&mut self) {
        for pair in self.crossbars.refresh(self.now) {
            for b in self.by_racks.get(&pair).cloned().unwrap_or_default() {
                if self.active.contains(&b) && self.route(b) != self.bundles[b as usize].route {
                    self.settle(b);
                    self.enter(b);
                }
            }
        }
    }

    /// Puts a bundle on the links of the way that it must go now. It must be settled.
    fn enter(&mut self, b: u32) {
        let route = self.route(b);
        let bundle = &mut self.bundles[b as usize];
        bundle.route = route;
        let (hosts, racks) = (self.topology.hosts.len() as u32, self.topology.rack_count() as u32);
        let (up, down) = (bundle.from.0, hosts + bundle.to.0);
        let (from, to) = (bundle.racks.0.0, bundle.racks.1.0);
        let path = match route {
            Route::Local => Path::new(&[up, down]),
            Route::Eps => Path::new(&[up, down, 2 * hosts + from, 2 * hosts + racks + to]),
            Route::Ocs(plane) => Path::new(&[up, down, 2 * hosts + (2 + plane.0) * racks + from]),
        };
        self.shares.set(b, path, bundle.flows.len() as u64);
    }

    fn route(&self, b: u32) -> Route {
        let b = &self.bundles[b as usize];
        if b.racks.0 == b.racks.1 {
            return Route::Local;
        }
        let circuit = if b.elephant || self.admit_all { self.crossbars.plane(b.racks.0, b.racks.1) } else { None };
        circuit.map_or(Route::Eps, Route::Ocs)
    }

    /// Shares the links anew, and forecasts the next finish of every bundle that this or a flow's coming or going touched.
    fn rerate(&mut self) {
        for b in self.shares.refill() {
            self.settle(b);
            self.bundles[b as usize].rate = self.shares.rate(b);
            self.stale.insert(b);
        }
        for b in std::mem::take(&mut self.stale) {
            let bundle = &mut self.bundles[b as usize];
            bundle.rate = self.shares.rate(b);
            bundle.forecast += 1;
            if let Some(t) = bundle.next_finish(self.now) {
                self.finishes.push(Reverse((t, b, bundle.forecast)));
            }
        }
        while self.finishes.peek().is_some_and(|f| self.bundles[f.0.1 as usize].forecast != f.0.2) {
            self.finishes.pop();
        }
    }

    fn settle(&mut self, b: u32) {
        let bundle = &mut self.bundles[b as usize];
        let units = bundle.settle(self.now);
        self.ledger.carried(bundle, units, 0);
    }

    fn settle_all(&mut self) {
        for b in self.active.iter().copied().collect::<Vec<_>>() {
            self.settle(b);
        }
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

    fn backlog(&self) -> DemandMatrix {
        let most = u128::from(SEND_BUFFER.0) * bundle::BYTE;
        let mut m = DemandMatrix::zero(self.topology.rack_count());
        for b in self.active.iter().map(|&b| &self.bundles[b as usize]).filter(|b| b.route != Route::Local) {
            let waiting: u128 = b.flows.iter().map(|f| b.left(f).min(most)).sum();
            m.add(b.racks.0, b.racks.1, bundle::bytes(waiting).0);
        }
        m
    }
}

impl Fabric for SimFabric {
    fn observe(&mut self, now: Time) -> Result<Observation, FabricError> {
        self.run(now);
        self.settle_all();
        let (sent, over_ocs) = self.ledger.matrices();
        let mut programmed = self.crossbars.programmed.clone();
        programmed.timetable.forget_before(self.now);
        let (backlog, ports) = (self.backlog(), self.ledger.ports());
        Ok(Observation { at: self.now, programmed, sent, over_ocs, backlog, ports })
    }

    fn apply(&mut self, ops: &[Op], now: Time) -> Vec<OpResult> {
        self.run(now);
        let results = self.crossbars.apply(ops, &self.topology, self.now);
        self.edges();
        self.rerate();
        results
    }

    fn notice(&self) -> Span {
        Span::ZERO
    }

    fn mechanism(&self) -> &'static str {
        "sim"
    }
}
