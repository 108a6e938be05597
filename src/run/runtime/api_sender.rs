//! Sends coflows that are posted over the API, by an emulation's own traffic.

use std::sync::Arc;

use super::emulation::Emulation;
use super::handle::Handle;
use crate::coflows::elephants::is_elephant;
use crate::coflows::{FlowSpec, RackBytes};
use crate::fabric::{FlowProgress, Shipment};
use crate::ids::{CoflowId, FlowId};
use crate::kernel::traffic::Traffic;
use crate::topology::Topology;
use crate::units::Bytes;

/// Sender of coflows. Rack pairs are marked as elephants by the threshold of the policy in force.
pub struct ApiSender {
    traffic: Arc<Traffic>,
    handle: Handle,
    last_own: Box<dyn Fn() -> Option<CoflowId> + Send + Sync>,
}

impl ApiSender {
    /// A sender over an emulation's traffic.
    pub fn new(e: &Emulation) -> Self {
        Self {
            traffic: e.traffic.clone(),
            handle: e.live.handle.clone(),
            last_own: Box::new(e.last_own()),
        }
    }

    /// The largest number of the workload's coflows, if the emulation runs a workload. Numbers up
    /// to it belong to the workload.
    pub fn last_own(&self) -> Option<CoflowId> {
        (self.last_own)()
    }

    /// Starts sending. The traffic reports progress, and the ends that are asked for, to the
    /// controller, which must know the coflow.
    pub fn send(&self, what: Shipment<'_>) {
        let pairs = RackBytes::of(&what.coflow.flows, &self.handle.topology);
        let threshold = self.handle.snapshot().policy.elephant_threshold;
        self.traffic.ship(what, |i, j| is_elephant(&pairs, i, j, threshold));
    }

    /// Stops sending a coflow.
    pub fn cancel(&self, id: CoflowId) {
        self.traffic.cancel(id);
    }

    /// Progress of its flows, in order.
    pub fn flows(&self, id: CoflowId) -> Option<Vec<FlowProgress>> {
        self.traffic.flows(id)
    }

    /// Bytes left of the active flows ([`Traffic::left`]).
    pub fn left(&self) -> Vec<(CoflowId, Vec<(FlowId, Bytes)>)> {
        self.traffic.left()
    }

    /// Payload between racks that TCP has sent again ([`Traffic::sent_again`]).
    pub fn sent_again(&self) -> Bytes {
        self.traffic.sent_again()
    }
}

/// Flows for a coflow of which only rack pairs are known: the bytes of a pair are divided evenly
/// among the hosts. O(pairs x hosts a rack).
pub fn spread(topology: &Topology, pairs: &[RackBytes]) -> Vec<FlowSpec> {
    let mut flows = vec![];
    for p in pairs.iter().filter(|p| p.from != p.to) {
        let (from, to) = (topology.hosts_of(p.from), topology.hosts_of(p.to));
        let n = from.len() as u64;
        let share = |k: u64| Bytes(p.bytes.0 / n + u64::from(k < p.bytes.0 % n));
        flows.extend(from.iter().enumerate().map(|(k, h)| FlowSpec {
            from: h.id,
            to: to[k % to.len()].id,
            bytes: share(k as u64),
        }));
    }
    flows
}
