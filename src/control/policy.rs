//! How the controller decides about circuits: the part of a policy file that can change while a run
//! lasts.

use serde::{Deserialize, Serialize};

pub use crate::circuits::SchedulerKind;
pub use crate::demand::Estimator;
use crate::paths::Units;
pub use crate::paths::choose::PathPolicy;
use crate::units::{Bytes, Span};

/// How the controller decides about circuits, checked. It can be replaced while a run lasts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CircuitPolicy {
    /// Its name in results.
    pub name: String,
    /// Reconfiguration interval: one decision each.
    pub interval: Span,
    /// What a cycle may take to poll, decide and write. Its decision takes effect this long after
    /// the cycle's beginning (plus the notice that the fabric needs to drain queues), however fast
    /// it was: compute time is charged to the interval.
    pub lead: Span,
    /// Whether a decision is also made when a coflow arrives, beside the one of each interval; only
    /// under [`Estimator::Declared`], where an interval that is cut short changes no measure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_arrivals: bool,
    /// A rack-to-rack aggregate of one coflow below this is never marked as an elephant, and demand
    /// below it never gets a circuit.
    pub elephant_threshold: Bytes,
    /// Where demand comes from.
    pub demand: Estimator,
    /// How much of the counters' old estimate stays with each interval, in percent, 100 at most:
    /// see [`crate::demand::counters`]. Only estimators that read the ToRs' counters age.
    pub ageing: u8,
    /// The circuit scheduler.
    pub scheduler: SchedulerKind,
    /// Decides where the program of the scheduler `external` does not; `None`: the circuits then
    /// stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<SchedulerKind>,
    /// Whether newly connected circuits are probed with a frame.
    pub probes: bool,
    /// Which lists of switches the flows of coflows take.
    #[serde(default, skip_serializing_if = "PathPolicy::is_ecmp")]
    pub paths: PathPolicy,
    /// Draws the switches of [`PathPolicy::Vlb`].
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub paths_seed: u64,
    /// What a byte costs a switch that it crosses: those of the placement policy `hit`, so that
    /// tasks and lists have the same costs.
    #[serde(default, skip_serializing_if = "Units::is_usual")]
    pub units: Units,
}

fn one() -> u64 {
    1
}

fn is_one(n: &u64) -> bool {
    *n == 1
}

impl Default for CircuitPolicy {
    fn default() -> Self {
        Self {
            name: "default".into(),
            interval: Span::millis(100),
            lead: Span::millis(5),
            at_arrivals: false,
            elephant_threshold: Bytes(0),
            demand: Estimator::Counters,
            ageing: 0,
            scheduler: SchedulerKind::Bipartite,
            fallback: None,
            probes: true,
            paths: PathPolicy::Ecmp,
            paths_seed: 1,
            units: Units::default(),
        }
    }
}
