//! Placement policies by name, with their parameters: what the `placement` section of a policy file says.

use serde::{Deserialize, Serialize};

use super::baselines::delay::Delay;
use super::baselines::fair::Fair;
use super::policy::Placement;
use crate::topology::Topology;
use crate::units::{BitRate, Bytes, Span};

/// The policies by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Hadoop's Fair Scheduler; on a hybrid network, F-Hybrid.
    Fair,
    /// Fair on a packet core as fast as the circuits, without circuits.
    FEps,
    /// Queues of capacity and delay scheduling: Yarn-CS.
    Capacity,
    /// Fair with delay scheduling.
    Delay,
}

/// A placement policy and its parameters. Those that a policy does not use do nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// Which.
    pub kind: Kind,
    /// Per cent of the tasks before that must have finished before a stage gets slots.
    pub slowstart: u32,
    /// Where data goes is drawn from this.
    pub seed: u64,
    /// Delay scheduling: how long a job waits for a slot on a host of its blocks, and then for one in their rack.
    pub wait: (Span, Span),
}

impl Spec {
    /// Of a kind, with its usual parameters: a slowstart of 5 per cent as in Hadoop; waits of three seconds each, as far as the kind
    /// waits at all.
    pub fn new(kind: Kind) -> Self {
        Self { kind, slowstart: 5, seed: 1, wait: (Span::secs(3), Span::secs(3)) }
    }

    /// The policy. `elephant` is the threshold T_e.
    pub fn build(&self, elephant: Bytes) -> Box<dyn Placement> {
        let _ = elephant;
        let (slowstart, seed) = (self.slowstart, self.seed);
        match self.kind {
            Kind::Fair => Box::new(Fair::new("fair", slowstart, seed)),
            Kind::FEps => Box::new(Fair::new("f-eps", slowstart, seed)),
            Kind::Capacity => Box::new(Delay::new("capacity", self.wait, slowstart, seed)),
            Kind::Delay => Box::new(Delay::new("delay", self.wait, slowstart, seed)),
        }
    }

    /// The network that the policy is meant for: F-EPS has an EPS as fast as all circuits of a rack together, and no planes.
    pub fn network(&self, t: &Topology) -> Topology {
        let mut t = t.clone();
        if self.kind == Kind::FEps {
            let fast = t.ocs_rate();
            t.racks.iter_mut().for_each(|r| r.uplink = BitRate(r.uplink.0.max(fast.0)));
            t.planes.clear();
            t.eps.oversubscription_percent = t.oversubscription_percent();
        }
        t
    }
}
