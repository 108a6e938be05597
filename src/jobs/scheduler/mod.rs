//! The companion task scheduler: it decides which task runs on which slot, and which bytes move
//! when.
//!
//! A [`TaskScheduler`] takes [`SchedulerEvent`]s and a time, says with
//! [`TaskScheduler::poll_timeout`] when it wants to be woken, and with
//! [`TaskScheduler::poll_action`] what it wants done. It has no clock, socket, thread or random
//! number inside. Where data and tasks go it asks a
//! [`Placement`](crate::placement::policy::Placement) policy; this room keeps the books.
//!
//! # What happens to a job
//!
//! 1. It is submitted; its blocks get their hosts (`PlaceData`), and once they are there its first
//!    stage may start.
//! 2. A task gets a slot when the policy gives it one. If none of its block's replicas is on its
//!    host, it first reads the block over the network; then it computes; then its output is on its
//!    host.
//! 3. A task that waits for a shuffle gets a slot when no task before it is pending and enough of
//!    them have finished (slowstart). When the policy says so, it fetches what there is, together
//!    with the others of its stage, as one coflow; outputs that come later are fetched in rounds.
//!    When it has everything it computes.
//! 4. With the last task of the last stage the job is finished.
//!
//! Under a policy that looks at the network ([`Needs`](crate::placement::network::Needs)) flows may
//! be asked how far they are, and get strict priorities, which change under way.
//!
//! # Failures
//!
//! When a host goes down, its tasks start again elsewhere, and outputs that were on it are computed
//! again if a task still needs them. Tasks that hold slots never wait for ever: if nothing moves
//! any more, held shuffles are let go, and then a waiting task gives its slot to one that it waits
//! for.
//!
//! # Files
//!
//! [`slots`], [`queues`] and [`net`] are indexes, [`share`] the arithmetic of shuffles, [`stage`]
//! and [`state`] the books, [`machine`] the state machine with its parts in `machine/` and
//! [`record`] what is reported.

use serde::{Deserialize, Serialize};

use crate::circuits::external::NoAnswer;
use crate::coflows::CoflowSpec;
use crate::ids::{CoflowId, FlowId, HostId, JobId, RackId};
use crate::placement::advisor::PlacementRequest;
use crate::placement::offers::{OfferAnswer, OfferQuestion};
use crate::placement::policy::{Block, Locality};
use crate::units::{Bytes, Span, Time};
use crate::workload::jobs::JobSpec;

pub mod held;
pub mod machine;
pub mod net;
pub mod queues;
pub mod ramp;
pub mod record;
pub mod share;
pub mod slots;
pub mod spec;
pub mod stage;
pub mod state;

pub use machine::TaskScheduler;

/// One task of one job.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct TaskRef {
    /// Its job.
    pub job: JobId,
    /// Its stage's place in the job.
    pub stage: u32,
    /// Its number in the stage.
    pub task: u32,
}

/// What the scheduler hears.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum SchedulerEvent {
    /// A job is submitted; ids come in their order from zero.
    Submitted(Box<JobSpec>),
    /// The blocks of a job are where [`SchedulerAction::PlaceData`] wanted them.
    DataPlaced(JobId),
    /// A task has computed. Word of an attempt that was given up is ignored.
    TaskFinished(TaskRef, u32),
    /// A flow's last byte was received. Not needed: the coflow's end is enough, but then tasks wait
    /// for the slowest flow of all.
    FlowFinished(CoflowId, FlowId),
    /// A coflow's last byte was received.
    CoflowFinished(CoflowId),
    /// How far flows are. Told only while [`TaskScheduler::wants_progress`].
    Progress {
        /// Bytes that every flow on its way has still to send, in the order of coflow and flow.
        left: Vec<(CoflowId, FlowId, Bytes)>,
    },
    /// A host is gone, with the tasks and outputs on it.
    HostFailed(HostId),
    /// A host is back, empty.
    HostRecovered(HostId),
    /// All hosts of a rack are gone.
    RackFailed(RackId),
    /// All hosts of a rack are back.
    RackRecovered(RackId),
    /// The answer to [`SchedulerAction::AskPlacement`].
    Placed {
        /// Its job.
        job: JobId,
        /// Its stage.
        stage: usize,
        /// Tasks by rack; `None`: the controller cannot say.
        racks: Option<Vec<(RackId, u32)>>,
    },
    /// The answer to [`SchedulerAction::Consult`], told before anything else.
    Advised {
        /// What the program says, or why it says nothing.
        answer: Result<OfferAnswer, NoAnswer>,
    },
    /// Time has passed.
    Tick,
}

/// What the scheduler wants done.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum SchedulerAction {
    /// Put a job's blocks there (by stage, by task), then say [`SchedulerEvent::DataPlaced`].
    PlaceData {
        /// Its job.
        job: JobId,
        /// By stage: one block a task, or none.
        blocks: Vec<Vec<Block>>,
    },
    /// A task holds this slot from now on.
    StartTask {
        /// The task.
        task: TaskRef,
        /// How often it has started, this time included.
        attempt: u32,
        /// The host.
        host: HostId,
        /// Slot of the host in which it runs.
        slot: u32,
        /// How near it is to its block.
        near: Locality,
    },
    /// Let a task compute for `span`, then say [`SchedulerEvent::TaskFinished`].
    Compute {
        /// The task.
        task: TaskRef,
        /// Its attempt.
        attempt: u32,
        /// How long it computes.
        span: Span,
    },
    /// A task gives up its slot; nothing more is expected of this attempt.
    StopTask {
        /// The task.
        task: TaskRef,
        /// Its attempt.
        attempt: u32,
    },
    /// Send these flows now, then say [`SchedulerEvent::CoflowFinished`] (and, if possible,
    /// [`SchedulerEvent::FlowFinished`] of each).
    StartCoflow {
        /// The coflow, between the hosts of the network as the scheduler's [`Grain`](state::Grain)
        /// has them.
        coflow: CoflowSpec,
        /// The job that it is for.
        job: JobId,
        /// The stage whose tasks receive it.
        stage: usize,
        /// Whether it is a shuffle; else it reads data blocks.
        shuffle: bool,
    },
    /// What is on its way of this coflow is not wanted any more.
    CancelCoflow(CoflowId),
    /// Flows of a coflow on its way have other strict priorities from now on.
    Prioritise {
        /// The coflow.
        coflow: CoflowId,
        /// Its flows that change, by number, each with its new priority, 0 (first) to 7.
        flows: Vec<(FlowId, u8)>,
    },
    /// Ask the controller of the network where the tasks of a stage shall go, then say
    /// [`SchedulerEvent::Placed`]; they wait for it.
    AskPlacement {
        /// The job.
        job: JobId,
        /// The stage.
        stage: usize,
        /// What will be shuffled; too long for logs.
        #[serde(skip)]
        request: Box<PlacementRequest>,
    },
    /// Ask the program which task shall start, then say [`SchedulerEvent::Advised`]; nothing else
    /// is decided before.
    Consult {
        /// What it is asked.
        question: Box<OfferQuestion>,
    },
    /// A job is finished.
    FinishJob(JobId),
}

/// Why an event was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RejectedEvent(pub String);

/// Since when nothing was decided.
pub(crate) const NEVER: Time = Time::MAX;

#[cfg(test)]
mod tests;
