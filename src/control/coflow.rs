//! A coflow as the controller shows it.

use serde::{Deserialize, Serialize};

use crate::coflows::flows::Pairs;
use crate::ids::CoflowId;
use crate::units::{Bytes, Span, Time};

/// A coflow's progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoflowView {
    /// Its number.
    pub id: CoflowId,
    /// What people call it.
    pub name: String,
    /// When it arrived.
    pub arrival: Time,
    /// Bytes asked, by rack pair.
    pub pairs: Pairs,
    /// Payload bytes asked between racks.
    pub bytes: Bytes,
    /// Payload bytes received.
    pub received: Bytes,
    /// Estimate of the bytes between racks that went over circuits.
    pub over_ocs: Bytes,
    /// When it was done.
    pub finished: Option<Time>,
    /// When it was taken back, or broke.
    #[serde(default)]
    pub cancelled: Option<Time>,
    /// Why it broke, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Coflow completion time.
    pub cct: Option<Span>,
    /// Lower bound of its completion time on this network.
    pub bound: Span,
    /// The strict priority that was said of all its flows between racks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
}

impl CoflowView {
    /// When it finished or was cancelled; `None` of one that is open.
    pub fn closed(&self) -> Option<Time> {
        self.finished.or(self.cancelled)
    }
}
