//! Max-min fair flows on any network: what many long TCP flows roughly do.
//!
//! All flows between the same two hosts that go the same way have the same rate, whichever coflow they belong to: they are one
//! [`Bundle`], whose work is a single number. That is exact.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use super::FlowFinished;
use super::bundle::Bundle;
use super::engine::{Engine, Part, World};
use super::maxmin::MaxMin;
use crate::coflows::CoflowSpec;
use crate::ids::{CoflowId, HostId, RackId};
use crate::units::Time;

/// Bundles and their shares.
pub struct Shared {
    shares: MaxMin,
    bundles: Vec<Bundle>,
    by_hosts: BTreeMap<(HostId, HostId, bool), u32>,
    by_racks: BTreeMap<(RackId, RackId), Vec<u32>>,
    /// Bundles with flows.
    active: BTreeSet<u32>,
    /// Bundles whose first finish must be forecast anew.
    stale: BTreeSet<u32>,
    /// (when, bundle, forecast): out of date if the bundle has a newer forecast.
    finishes: BinaryHeap<Reverse<(Time, u32, u64)>>,
}

impl Shared {
    /// No flows on links of these capacities.
    pub fn new(capacity: &[u64]) -> Self {
        Self {
            shares: MaxMin::new(capacity.to_vec()),
            bundles: Vec::new(),
            by_hosts: BTreeMap::new(),
            by_racks: BTreeMap::new(),
            active: BTreeSet::new(),
            stale: BTreeSet::new(),
            finishes: BinaryHeap::new(),
        }
    }

    /// Puts a bundle on the links of the way that it must go now. It must be settled.
    fn enter(&mut self, b: u32, world: &World) {
        let bundle = &mut self.bundles[b as usize];
        bundle.route = world.route(bundle.racks, bundle.elephant);
        let path = world.links.path(bundle.from, bundle.to, bundle.route);
        self.shares.set(b, path, bundle.flows.len() as u64);
    }

    /// Shares the links anew, and forecasts the next finish of every bundle that this or a flow's coming or going touched.
    fn rerate(&mut self, world: &mut World) {
        for b in self.shares.refill() {
            self.settle_one(b, world);
            self.bundles[b as usize].rate = self.shares.rate(b);
            self.stale.insert(b);
        }
        for b in std::mem::take(&mut self.stale) {
            let bundle = &mut self.bundles[b as usize];
            bundle.rate = self.shares.rate(b);
            bundle.forecast += 1;
            if let Some(t) = bundle.next_finish(world.now) {
                self.finishes.push(Reverse((t, b, bundle.forecast)));
            }
        }
        while self.finishes.peek().is_some_and(|f| self.bundles[f.0.1 as usize].forecast != f.0.2) {
            self.finishes.pop();
        }
    }

    fn settle_one(&mut self, b: u32, world: &mut World) {
        let bundle = &mut self.bundles[b as usize];
        let units = bundle.settle(world.now);
        world.ledger.carried(bundle.racks, bundle.route, units, 0);
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
}

impl Engine for Shared {
    fn add(&mut self, coflow: &CoflowSpec, marked: &[bool], world: &mut World) {
        for (k, f) in coflow.flows.iter().enumerate() {
            if world.is_free(coflow, k) {
                continue;
            }
            let racks = (world.links.topology().rack_of(f.from), world.links.topology().rack_of(f.to));
            let b = self.bundle(f.from, f.to, racks, marked.get(k).copied().unwrap_or(false));
            self.settle_one(b, world);
            self.bundles[b as usize].push(coflow.id, k.into(), f.bytes);
            self.active.insert(b);
            self.stale.insert(b);
        }
        for b in self.stale.clone() {
            self.enter(b, world);
        }
        self.rerate(world);
    }

    fn cancel(&mut self, coflow: CoflowId, world: &mut World) {
        for b in self.active.iter().copied().collect::<Vec<_>>() {
            if !self.bundles[b as usize].flows.iter().any(|f| f.coflow == coflow) {
                continue;
            }
            self.settle_one(b, world);
            let bundle = &mut self.bundles[b as usize];
            for f in bundle.flows.iter().filter(|f| f.coflow == coflow) {
                world.ledger.close(coflow, bundle.racks, bundle.sent(f), bundle.over_ocs(f));
            }
            bundle.flows.retain(|f| f.coflow != coflow);
            if bundle.flows.is_empty() {
                self.active.remove(&b);
            }
            self.enter(b, world);
            self.stale.insert(b);
        }
        self.rerate(world);
    }

    fn limit(&mut self, world: &mut World) {
        self.shares.limit(world.links.capacity());
        self.rerate(world);
    }

    fn next_event(&self) -> Option<Time> {
        self.finishes.peek().map(|f| f.0.0)
    }

    fn is_moving(&self) -> bool {
        !self.finishes.is_empty()
    }

    fn pass(&mut self, world: &mut World) {
        let mut any = false;
        while let Some(&Reverse((t, b, forecast))) = self.finishes.peek().filter(|f| f.0.0 <= world.now) {
            self.finishes.pop();
            if self.bundles[b as usize].forecast != forecast {
                continue;
            }
            any = true;
            self.settle_one(b, world);
            let bundle = &mut self.bundles[b as usize];
            while let Some((f, over_ocs, beyond)) = bundle.pop() {
                world.ledger.carried(bundle.racks, bundle.route, 0, beyond);
                world.ledger.close(f.coflow, bundle.racks, f.size, over_ocs);
                world.done.push(FlowFinished { coflow: f.coflow, flow: f.flow, at: t });
            }
            if bundle.flows.is_empty() {
                self.active.remove(&b);
            }
            self.enter(b, world);
            self.stale.insert(b);
        }
        if any {
            self.rerate(world);
        }
    }

    fn reroute(&mut self, pairs: &[(RackId, RackId)], world: &mut World) {
        for pair in pairs {
            for b in self.by_racks.get(pair).cloned().unwrap_or_default() {
                let bundle = &self.bundles[b as usize];
                if self.active.contains(&b) && world.route(bundle.racks, bundle.elephant) != bundle.route {
                    self.settle_one(b, world);
                    self.enter(b, world);
                }
            }
        }
        self.rerate(world);
    }

    fn settle(&mut self, world: &mut World) {
        for b in self.active.iter().copied().collect::<Vec<_>>() {
            self.settle_one(b, world);
        }
    }

    fn parts(&self, each: &mut dyn FnMut(Part)) {
        for b in self.active.iter().map(|&b| &self.bundles[b as usize]) {
            for f in &b.flows {
                each(Part { coflow: f.coflow, hosts: (b.from, b.to), sent: b.sent(f), over_ocs: b.over_ocs(f), left: b.left(f) });
            }
        }
    }
}
