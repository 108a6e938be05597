//! What a program is asked about free slots, and what it answers, as JSON.
//!
//! Times are nanoseconds of the run's clock, racks and hosts numbers from zero.

use serde::{Deserialize, Serialize};

use super::locality::Locality;
use crate::ids::{HostId, JobId, RackId};
use crate::units::{Bytes, Time};

/// All that a program may decide by: which task shall have a free slot of this rack?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferQuestion {
    /// Number of the offer, from zero; the answer repeats it.
    pub offer: u64,
    /// Now.
    pub at_ns: Time,
    /// The rack that has a free slot.
    pub rack: RackId,
    /// Its hosts that are up: each with its free slots.
    pub hosts: Vec<(HostId, u32)>,
    /// By rack: free slots.
    pub free: Vec<u32>,
    /// By rack: bytes of shuffles that are on their way into it from others.
    pub shuffling_into: Vec<Bytes>,
    /// Jobs that have a task which may start now, in the order of the queues: the first is the one
    /// whose turn it is.
    pub ready: Vec<ReadyJob>,
}

/// A job that has a task which may start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyJob {
    /// Its number.
    pub job: JobId,
    /// Its name.
    pub name: String,
    /// Its queue.
    pub queue: u32,
    /// When it came.
    pub arrival_ns: Time,
    /// Its stages of which a task may start, in their order.
    pub stages: Vec<ReadyStage>,
}

/// A stage of which a task may start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyStage {
    /// Its place in the job.
    pub stage: usize,
    /// Tasks that have no slot yet.
    pub pending: u32,
    /// Tasks that hold a slot.
    pub running: u32,
    /// Tasks that have finished.
    pub finished: u32,
    /// How near to its block a task can run in this rack: `host`, `rack` or `remote`.
    pub near: Locality,
    /// Racks in which tasks of the stage hold slots: rack, tasks.
    pub running_in: Vec<(RackId, u32)>,
    /// The shuffles into the stage.
    pub inputs: Vec<Shuffled>,
}

/// A shuffle into a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shuffled {
    /// The stage that sends.
    pub from: usize,
    /// Bytes of all of it.
    pub bytes: Bytes,
    /// Where its output is: rack, finished tasks.
    pub output_in: Vec<(RackId, u32)>,
}

/// What a program answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfferAnswer {
    /// The offer.
    pub offer: u64,
    /// What starts; `None`: nothing, until something changes in the rack or a stage becomes ready.
    pub start: Option<Start>,
    /// Where nothing starts: when the slot shall be offered again at the latest; 1 ms from now at
    /// the soonest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again_at_ns: Option<Time>,
}

/// A task that starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Its job.
    pub job: JobId,
    /// Its stage.
    pub stage: usize,
    /// On which host, in whatever rack; left out: the one of the offered rack that suits the stage
    /// best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostId>,
    /// Which task; left out: the one whose block is nearest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<u32>,
}
