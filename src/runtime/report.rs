//! The result of a run, live or simulated: the same columns, so that the two can be compared coflow by coflow.

use serde::{Deserialize, Serialize};

use crate::coflows::CoflowRecord;
use crate::control::record::Stats;
use crate::units::{Bytes, Span, Time};

/// Everything that a run measured; what `--json` writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Heliostat's version.
    pub version: String,
    /// `timed`, `netlink` or `sim`.
    pub mechanism: String,
    /// Name of the topology.
    pub topology: String,
    /// Name of the policy.
    pub policy: String,
    /// Name of the workload.
    pub workload: String,
    /// TCP congestion control (`-` in simulation).
    pub congestion: String,
    /// Whether the run went outside the scale that this machine carries honestly.
    pub forced: bool,
    /// Every coflow, by id.
    pub coflows: Vec<CoflowRecord>,
    /// The sums.
    pub summary: Summary,
}

/// The sums of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Coflows that finished.
    pub finished: usize,
    /// Coflows that did not.
    pub unfinished: usize,
    /// From the first arrival to the last finish.
    pub makespan: Span,
    /// Mean completion time of the finished coflows.
    pub average_cct: Span,
    /// 95th percentile of their completion times (nearest rank).
    pub p95_cct: Span,
    /// Share of all bytes between racks that went over circuits, 0..=1.
    pub ocs_share: f64,
    /// Payload bytes asked.
    pub bytes_asked: Bytes,
    /// Payload bytes received.
    pub bytes_received: Bytes,
    /// Bytes that the ToRs counted on the wire between racks (headers of the first segment of each burst included).
    pub bytes_on_wire: Bytes,
    /// Packets that came to a dark port.
    pub lost_dark: u64,
    /// Packets that would have come out at the wrong rack.
    pub misdelivered: u64,
    /// When the run ended.
    pub ended: Time,
    /// The control loop's counters.
    pub stats: Stats,
}
