//! Coflows of rack pairs, as they are posted over the API, sent by an emulation's own traffic.

use std::sync::Arc;

use super::emulation::Emulation;
use super::handle::Handle;
use crate::coflows::{CoflowSpec, FlowSpec, RackBytes};
use crate::fabric::traffic::Traffic;
use crate::ids::CoflowId;
use crate::units::{Bytes, Time};

/// Sends coflows of rack pairs: each pair's bytes evenly from the rack's hosts. Pairs are marked as elephants
/// by the threshold of the policy in force.
pub struct Posted {
    traffic: Arc<Traffic>,
    handle: Handle,
}

impl Posted {
    /// Over an emulation's traffic.
    pub fn new(e: &Emulation) -> Self {
        Self { traffic: e.traffic.clone(), handle: e.live.handle.clone() }
    }

    /// Starts sending; the traffic reports progress and the end to the controller, which must know the coflow already.
    pub fn send(&self, id: CoflowId, name: &str, pairs: &[RackBytes]) {
        let topology = &self.handle.topology;
        let mut flows = vec![];
        for p in pairs.iter().filter(|p| p.from != p.to) {
            let (from, to) = (topology.hosts_of(p.from), topology.hosts_of(p.to));
            let n = from.len() as u64;
            let share = |k: u64| Bytes(p.bytes.0 / n + u64::from(k < p.bytes.0 % n));
            flows.extend(from.iter().enumerate().map(|(k, h)| FlowSpec { from: h.id, to: to[k % to.len()].id, bytes: share(k as u64) }));
        }
        let bytes = |i, j| pairs.iter().filter(|p| (p.from, p.to) == (i, j)).map(|p| p.bytes).sum::<Bytes>();
        let spec = CoflowSpec { id, name: name.into(), arrival: Time::ZERO, weight: 1, flows };
        let threshold = self.handle.snapshot().policy.elephants.threshold;
        self.traffic.launch(&spec, |i, j| bytes(i, j) >= threshold);
    }

    /// Stops sending a coflow.
    pub fn cancel(&self, id: CoflowId) {
        self.traffic.cancel(id);
    }
}
