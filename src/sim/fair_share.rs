//! Max-min fair flows on any network: what many long TCP flows roughly do.
//!
//! All flows between the same two hosts on one route have the same rate, whichever coflow they
//! belong to: they are one [`Bundle`](super::bundle::Bundle). All of that is exact.

use std::collections::{BTreeSet, HashMap};

use super::FlowFinished;
use super::bundle::{Bundle, WORK_PER_BYTE};
use super::engine::{Engine, EngineWorld, InFlight};
use super::maxmin::MaxMin;
use super::queues::{self, Queues};
use super::service_clocks::{ServiceClocks, Solver, paced_engine};
use crate::coflows::CoflowSpec;
use crate::ids::{CoflowId, FlowId, HostId, RackId};

/// Bundles by pair of hosts.
pub struct FairShare {
    paced: ServiceClocks,
    /// For look-ups only; it is never iterated.
    by_hosts: HashMap<(HostId, HostId, bool), u32>,
}

impl FairShare {
    /// No flows, on links of these capacities, some of which may be queues.
    pub fn new(capacity: &[u64], queues: Option<Queues>) -> Self {
        let shares = match queues {
            None => Solver::Alike(MaxMin::new(capacity.to_vec())),
            Some(queues) => Solver::Queued(queues::QueueSolver::new(capacity, queues)),
        };
        Self { paced: ServiceClocks::new(shares, capacity.len()), by_hosts: HashMap::new() }
    }

    fn bundle(&mut self, from: HostId, to: HostId, racks: (RackId, RackId), elephant: bool) -> u32 {
        let new = self.paced.bundles.len() as u32;
        let b = *self.by_hosts.entry((from, to, elephant)).or_insert(new);
        if b == new {
            self.paced.bundles.push(Bundle::new(from, to, racks, elephant));
            self.paced.by_racks.entry(racks).or_default().push(b);
        }
        b
    }

    /// Finishes what is due; true if anything is.
    fn finish_all(&mut self, world: &mut EngineWorld) -> bool {
        self.paced.finish_all(world, |paced, b, link, world| {
            paced.book(b, world);
            let service = paced.service(b, world.now);
            let (racks, route, ahead) = paced.bundles[b as usize].at();
            while let Some((f, over_ocs, beyond)) = paced.bundles[b as usize].pop() {
                world.ledger.carried(racks, route, 0, beyond);
                world.ledger.close(f.coflow, racks, f.size, over_ocs);
                let at = paced.when(link, f.due, ahead, world.now);
                world.done.push(FlowFinished { coflow: f.coflow, flow: f.flow, at });
            }
            if paced.bundles[b as usize].flows.is_empty() {
                paced.rest(b, service);
            }
            paced.enter(b, world);
        })
    }
}

impl Engine for FairShare {
    fn add(&mut self, coflow: &CoflowSpec, marked: &[bool], world: &mut EngineWorld) {
        let mut got = Vec::new();
        for (k, f) in coflow.flows.iter().enumerate() {
            if world.is_free(coflow.id, k, &f) {
                continue;
            }
            let racks =
                (world.links.topology().rack_of(f.from), world.links.topology().rack_of(f.to));
            let b = self.bundle(f.from, f.to, racks, marked.get(k).copied().unwrap_or(false));
            self.paced.book(b, world);
            self.paced.bundles[b as usize].push(
                coflow.id,
                k.into(),
                u128::from(f.bytes.0) * WORK_PER_BYTE,
            );
            got.push(b);
        }
        got.sort_unstable();
        got.dedup();
        for b in got {
            self.paced.active.insert(b);
            self.paced.enter(b, world);
        }
        self.paced.rerate(world);
    }

    fn cancel(&mut self, coflow: CoflowId, world: &mut EngineWorld) {
        for b in self.paced.active.iter().collect::<Vec<_>>() {
            if !self.paced.bundles[b as usize].flows().any(|f| f.coflow == coflow) {
                continue;
            }
            self.paced.book(b, world);
            let (service, bundle) =
                (self.paced.service(b, world.now), &mut self.paced.bundles[b as usize]);
            for f in bundle.flows().filter(|f| f.coflow == coflow) {
                world.ledger.close(coflow, bundle.racks, bundle.sent(f), bundle.over_ocs(f));
            }
            bundle.cancel(coflow);
            if bundle.flows.is_empty() {
                self.paced.rest(b, service);
            }
            self.paced.enter(b, world);
        }
        self.paced.rerate(world);
    }

    paced_engine!();

    fn steer(&mut self, pairs: &BTreeSet<(HostId, HostId)>, world: &mut EngineWorld) {
        for (&(from, to), elephant) in pairs.iter().flat_map(|p| [(p, false), (p, true)]) {
            if let Some(&b) = self.by_hosts.get(&(from, to, elephant)) {
                self.paced.change_over(b, world);
            }
        }
        self.paced.rerate_touched(world);
    }

    fn parts(&self, each: &mut dyn FnMut(InFlight)) {
        for b in self.paced.underway() {
            for f in b.flows() {
                let (sent, over_ocs, left) = (b.sent(f), b.over_ocs(f), b.left(f));
                each(InFlight {
                    coflow: f.coflow,
                    flow: f.flow,
                    flows: 1,
                    hosts: (b.from, b.to),
                    sent,
                    over_ocs,
                    left,
                });
            }
        }
    }

    fn left(&self, each: &mut dyn FnMut(CoflowId, FlowId, u128)) {
        for b in self.paced.underway() {
            b.flows().for_each(|f| each(f.coflow, f.flow, b.left(f)));
        }
    }
}
