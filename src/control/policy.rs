//! A policy: how the controller decides. Read from `policies/*.yaml` by [`crate::config`].

use serde::{Deserialize, Serialize};

use crate::circuits::Scheduler;
use crate::circuits::{decompose, matching};
pub use crate::coflows::elephants::{Admit, ELEPHANT_DSCP, Elephants};
pub use crate::demand::Estimator;
use crate::units::{Bytes, Span};

/// How the controller decides, checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Its name in results.
    pub name: String,
    /// Reconfiguration interval: one decision each.
    pub interval: Span,
    /// What a cycle may take to poll, decide and write. Its decision takes effect so long after the cycle's beginning (plus the
    /// notice that the fabric needs to drain queues), however fast it was: compute time is charged to the interval.
    pub lead: Span,
    /// What may use circuits.
    pub elephants: Elephants,
    /// Where demand comes from.
    pub demand: Estimator,
    /// The circuit scheduler.
    pub scheduler: SchedulerKind,
    /// Sizes and rates of the workload are divided by this, times stay (1 = as given).
    pub scale: u64,
    /// TCP congestion control of the generated traffic.
    pub congestion: String,
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
    /// Heaviest pair first.
    Greedy,
    /// iSLIP: blind to weights, fair over time.
    Islip,
    /// Fixed rotation, blind to demand.
    RoundRobin,
    /// Bipartite, but a change must pay for its dark time.
    Hold,
    /// Birkhoff-von Neumann: the whole demand, cut into configurations.
    Bvn,
    /// Mordia's traffic matrix scheduling: shares of the interval in proportion to demand.
    Tms,
    /// Solstice: few long configurations first.
    Solstice,
    /// Eclipse: most bytes within the interval, every dark time counted.
    Eclipse,
    /// Sunflow: every circuit with times of its own.
    Sunflow,
    /// Only circuits set by hand over the API.
    Manual,
    /// No circuits.
    EpsOnly,
}

impl SchedulerKind {
    /// A fresh scheduler of this kind.
    pub fn build(self) -> Box<dyn Scheduler> {
        match self {
            Self::Edmonds => Box::new(matching::Edmonds),
            Self::Bipartite => Box::new(matching::Bipartite::default()),
            Self::Greedy => Box::new(matching::Greedy),
            Self::Islip => Box::new(matching::Islip::default()),
            Self::RoundRobin => Box::new(matching::RoundRobin),
            Self::Hold => Box::new(matching::Hold),
            Self::Bvn => Box::new(decompose::Bvn),
            Self::Tms => Box::new(decompose::Tms),
            Self::Solstice => Box::new(decompose::Solstice),
            Self::Eclipse => Box::new(decompose::Eclipse),
            Self::Sunflow => Box::new(crate::coflows::sunflow::Sunflow),
            Self::Manual => Box::new(matching::Manual),
            Self::EpsOnly => Box::new(matching::EpsOnly),
        }
    }
}

impl SchedulerKind {
    /// Whether one decision is meant for the whole demand, in many configurations, and not for one interval.
    pub fn plans_ahead(self) -> bool {
        matches!(self, Self::Bvn | Self::Solstice | Self::Eclipse | Self::Sunflow)
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            name: "default".into(),
            interval: Span::millis(100),
            lead: Span::millis(5),
            elephants: Elephants { admit: Admit::Marked, threshold: Bytes(0) },
            demand: Estimator::Counters,
            scheduler: SchedulerKind::Bipartite,
            scale: 1,
            congestion: "cubic".into(),
            probes: true,
        }
    }
}
