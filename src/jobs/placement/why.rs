//! Why a task went where it did: what a policy can say of its last pick.

use serde::{Deserialize, Serialize};

use crate::ids::JobId;
use crate::units::{Bytes, Span};

/// The moment at which a task was given its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Moment {
    /// Its stage had just come to wait for slots.
    Arrival,
    /// A slot, or the network of a host, had become free.
    SlotChange,
}

/// Why a job did not take a slot that it could have had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// It waits for a slot near its data.
    Locality,
    /// The host has as many tasks that fetch as it may have.
    Network,
    /// Its task is local, and would compute for longer than the network of the host, left to a job
    /// before it, is busy.
    Hinders,
}

/// Why a task was picked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Why {
    /// The moment at which it was picked.
    pub moment: Moment,
    /// Jobs before it that left the slot to it, and why, in their order; the first [`MAX_LEFT`].
    pub left_by: Vec<(JobId, Refusal)>,
    /// Tasks on the host that had input to come.
    pub inputs: u32,
    /// Whether it took its place beyond the limit of those, since its coflow was smaller than
    /// theirs.
    pub wild_card: bool,
    /// Bytes that it had to fetch over the network.
    #[serde(rename = "fetch_bytes")]
    pub fetches: Bytes,
    /// How long the network of the host would still be busy for the tasks there.
    #[serde(rename = "transfer_ns")]
    pub transfer: Span,
    /// How long the task would compute.
    #[serde(rename = "computing_ns")]
    pub computing: Span,
}

/// The most jobs of which [`Why`] says that they left a slot.
pub const MAX_LEFT: usize = 16;
