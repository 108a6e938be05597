//! How the controller decides about circuits: the part of a policy file that can change while a run lasts.

use serde::{Deserialize, Serialize};

use crate::circuits::Scheduler;
use crate::circuits::{decompose, matching};
use crate::coflows::sunflow::{Order, Sunflow};
pub use crate::demand::Estimator;
use crate::topology::{Plane, StopMode};
use crate::units::{Bytes, Span};

/// How the controller decides about circuits, checked. It can be replaced while a run lasts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CircuitPolicy {
    /// Its name in results.
    pub name: String,
    /// Reconfiguration interval: one decision each.
    pub interval: Span,
    /// What a cycle may take to poll, decide and write. Its decision takes effect so long after the cycle's beginning (plus the
    /// notice that the fabric needs to drain queues), however fast it was: compute time is charged to the interval.
    pub lead: Span,
    /// A rack-to-rack aggregate of one coflow below this is never marked as an elephant, and demand below it never gets a circuit.
    pub elephant_threshold: Bytes,
    /// Where demand comes from.
    pub demand: Estimator,
    /// How much of the counters' old estimate stays with each interval, in percent, 100 at most: see
    /// [`crate::demand::counters`]. Only estimators that read the ToRs' counters age.
    pub ageing: u8,
    /// The circuit scheduler.
    pub scheduler: SchedulerKind,
    /// Whether newly connected circuits are probed with a frame.
    pub probes: bool,
}

/// The circuit schedulers by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulerKind {
    /// Maximum weight matching of a general graph; circuits in pairs.
    Edmonds,
    /// Maximum weight bipartite matching; circuits one way.
    Bipartite,
    /// Maximum weight b-matching over all planes at once.
    BMatching,
    /// Heaviest pair first.
    Greedy,
    /// Most circuits, whatever their weight.
    HopcroftKarp,
    /// Most circuits, the thinnest of them as thick as can be.
    Bottleneck,
    /// iSLIP: blind to weights, fair over time.
    Islip,
    /// Fixed rotation, blind to demand.
    RoundRobin,
    /// Bipartite, but a change must pay for its dark time.
    Hold,
    /// Birkhoff-von Neumann: the whole demand, cut into configurations.
    Bvn,
    /// Birkhoff-von Neumann, thickest configurations first.
    BvnBottleneck,
    /// Birkhoff+: fewer configurations, by a barrier against thin cells.
    BirkhoffPlus,
    /// Preemptive optimal clearance: an open shop; circuits go on where they can.
    Clearance,
    /// Mordia's traffic matrix scheduling: shares of the interval in proportion to demand.
    Tms,
    /// Solstice: few long configurations first.
    Solstice,
    /// Eclipse: most bytes within the interval, every dark time counted.
    Eclipse,
    /// Sunflow: every circuit with times of its own; coflows by shortest lower bound.
    Sunflow,
    /// Sunflow, smallest effective bottleneck first.
    SunflowSebf,
    /// Sunflow, first come first served.
    SunflowFifo,
    /// Sunflow, least attained service first.
    SunflowLas,
    /// Sunflow, shortest lower bound over weight first.
    SunflowWeighted,
    /// Only circuits set by hand over the API.
    Manual,
    /// No circuits.
    EpsOnly,
}

impl SchedulerKind {
    /// Every kind, by the order in which the documentation lists them.
    pub const ALL: [Self; 23] = [
        Self::Edmonds,
        Self::Bipartite,
        Self::BMatching,
        Self::Greedy,
        Self::HopcroftKarp,
        Self::Bottleneck,
        Self::Islip,
        Self::RoundRobin,
        Self::Hold,
        Self::Bvn,
        Self::BvnBottleneck,
        Self::BirkhoffPlus,
        Self::Clearance,
        Self::Tms,
        Self::Solstice,
        Self::Eclipse,
        Self::Sunflow,
        Self::SunflowSebf,
        Self::SunflowFifo,
        Self::SunflowLas,
        Self::SunflowWeighted,
        Self::Manual,
        Self::EpsOnly,
    ];

    /// A fresh scheduler of this kind.
    pub fn build(self) -> Box<dyn Scheduler> {
        match self {
            Self::Edmonds => Box::new(matching::Edmonds::default()),
            Self::Bipartite => Box::new(matching::Bipartite::default()),
            Self::BMatching => Box::new(matching::BMatching),
            Self::Greedy => Box::new(matching::Greedy),
            Self::HopcroftKarp => Box::new(matching::HopcroftKarp),
            Self::Bottleneck => Box::new(matching::Bottleneck),
            Self::Islip => Box::new(matching::Islip::default()),
            Self::RoundRobin => Box::new(matching::RoundRobin),
            Self::Hold => Box::new(matching::Hold),
            Self::Bvn => Box::new(decompose::Bvn),
            Self::BvnBottleneck => Box::new(decompose::BvnBottleneck),
            Self::BirkhoffPlus => Box::new(decompose::BirkhoffPlus),
            Self::Clearance => Box::new(decompose::Clearance),
            Self::Tms => Box::new(decompose::Tms),
            Self::Solstice => Box::new(decompose::Solstice),
            Self::Eclipse => Box::new(decompose::Eclipse),
            Self::Sunflow => Box::new(Sunflow { order: Order::Shortest }),
            Self::SunflowSebf => Box::new(Sunflow { order: Order::Sebf }),
            Self::SunflowFifo => Box::new(Sunflow { order: Order::Fifo }),
            Self::SunflowLas => Box::new(Sunflow { order: Order::Las }),
            Self::SunflowWeighted => Box::new(Sunflow { order: Order::Weighted }),
            Self::Manual => Box::new(matching::Manual),
            Self::EpsOnly => Box::new(matching::EpsOnly),
        }
    }
}

impl SchedulerKind {
    /// Whether one decision is meant for the whole demand, in many configurations, and not for one interval. On duplex planes, and
    /// Sunflow on all-stop ones, all fall back to one matching an interval.
    pub fn plans_ahead(self, plane: &Plane) -> bool {
        let decomposes =
            matches!(self, Self::Bvn | Self::BvnBottleneck | Self::BirkhoffPlus | Self::Clearance | Self::Solstice | Self::Eclipse);
        let sunflow = matches!(self, Self::Sunflow | Self::SunflowSebf | Self::SunflowFifo | Self::SunflowLas | Self::SunflowWeighted);
        !plane.duplex && (decomposes || (sunflow && plane.stop == StopMode::NotAllStop))
    }
}

impl Default for CircuitPolicy {
    fn default() -> Self {
        Self {
            name: "default".into(),
            interval: Span::millis(100),
            lead: Span::millis(5),
            elephant_threshold: Bytes(0),
            demand: Estimator::Counters,
            ageing: 0,
            scheduler: SchedulerKind::Bipartite,
            probes: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_builds_the_scheduler_of_its_name() {
        let mut seen = std::collections::BTreeSet::new();
        for kind in SchedulerKind::ALL {
            let name = serde_json::to_value(kind).unwrap();
            assert_eq!(kind.build().name(), name.as_str().unwrap());
            assert!(seen.insert(name.to_string()));
        }
        let schema = schemars::schema_for!(SchedulerKind).to_value();
        assert_eq!(schema["oneOf"].as_array().unwrap().len(), SchedulerKind::ALL.len(), "ALL lists every kind");
    }
}
