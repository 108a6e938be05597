//! What a placement policy may know of the network: flows on their way, and the tasks that wait for
//! their bytes.
//!
//! The scheduler keeps it for policies that ask for it by [`Needs`]; [`View`](super::policy::View)
//! answers from it. Bytes left are those of the last word of the network, and a flow's own before
//! the first.

use crate::ids::{CoflowId, FlowId, JobId};
use crate::units::{Bytes, Span};

/// What a policy needs of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Needs {
    /// It asks about flows and inputs. Else the scheduler keeps no books of them, and all answers
    /// about them are empty.
    pub network: bool,
    /// Each task fetches by flows of its own, so that tasks of one job on one host may have
    /// different priorities. Else tasks of a stage on one host share their flows.
    pub flows_by_task: bool,
    /// What comes from the same rack is as good as local: it does not count.
    pub rack_local: bool,
    /// Shortest time between two samples of how far flows are. One answer costs O(flows on their
    /// way).
    pub sample: Span,
    /// Receive rates: per cent of a new sample in the moving average, 1 to 100.
    pub ema_percent: u32,
}

/// A task that holds a slot and has input to come over the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskInput {
    /// Whose.
    pub job: JobId,
    /// Which stage.
    pub stage: usize,
    /// Its number in the stage.
    pub task: u32,
    /// Bytes that count and have still to come: of its flows on their way, and what it will ask
    /// for.
    pub left: Bytes,
    /// Whether some of them are on their way.
    pub is_coming: bool,
    /// The size of the coflow into its stage, as
    /// [`View::coflow_size`](super::policy::View::coflow_size).
    pub coflow: Bytes,
}

/// A flow on its way, as one of its two hosts sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowAt {
    /// Whose.
    pub coflow: CoflowId,
    /// Its number in the coflow.
    pub flow: FlowId,
    /// The job of its coflow.
    pub job: JobId,
    /// The stage into which that goes.
    pub stage: usize,
    /// Bytes that it has still to send.
    pub left: Bytes,
    /// Bytes that it has sent.
    pub sent: Bytes,
    /// Its bytes count, as [`Needs::rack_local`] says.
    pub counts: bool,
    /// The task that waits for it, where each has flows of its own.
    pub task: Option<u32>,
}
