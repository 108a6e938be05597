//! Recordings: every event that went into the two state machines of a run, and every action that
//! came out, one JSON object a line.
//!
//! A [`Recorder`] takes the lines from the drivers and writes them on a thread of its own.
//! [`replay`] plays a file's events again, without a kernel, and checks that the machines want the
//! same actions, byte for byte. A failure that was recorded becomes a test by copying its file to
//! `tests/recorded/`.
//!
//! # The file
//!
//! The first line is `head`: what the controller was made of. Where there is a scheduler, a line
//! `jobs` says what that was made of, before its first event. Then, in the order in which it
//! happened:
//!
//! | line | meaning |
//! |---|---|
//! | `tell`, `job_tell` | an event that the controller, or the scheduler, was told, and when |
//! | `skip` | cycles of the controller that were skipped up to then |
//! | `refused`, `job_refused` | it did not accept the event before |
//! | `act`, `job_act` | an action that it wanted |
//! | `idle`, `job_idle` | it was asked, and wanted nothing more |
//! | `lost` | the disk was too slow: nothing follows |
//! | `end` | the run ended; without this line the file was cut off |
//!
//! Actions are written in full, not as a hash: so a recording can be read as a log, and the first
//! difference is shown as two texts.

use serde::{Deserialize, Serialize};

use crate::control;
use crate::runtime::planned::scheduler;
use crate::runtime::settings::RunPlan;
use crate::scheduler::spec::JobPolicy;
use crate::scheduler::{self, TaskScheduler};
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};
use crate::workload::jobs::JobSpec;

pub mod replay;
#[cfg(test)]
mod tests;
mod writer;

pub use writer::{Pace, Recorder, Recording, RecordingSummary};

/// The version of the file's format. Another one is not read.
pub const FORMAT: u32 = 1;

/// The first line: what the controller of the run was made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordingHead {
    /// The format's version, [`FORMAT`].
    pub format: u32,
    /// The version of the program that recorded.
    pub version: String,
    /// `timed`, `netlink` or `sim`.
    pub mechanism: String,
    /// The seed of what was drawn for the run; it is part of the inputs, and nothing is drawn in a
    /// replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The network.
    pub topology: Topology,
    /// How circuits and jobs are decided.
    pub plan: RunPlan,
    /// When the first cycle began.
    pub start: Time,
    /// How long before it takes effect an operation must be in place
    /// ([`crate::fabric::Fabric::notice`]).
    pub notice: Span,
}

/// What the scheduler of a run was made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobsHead {
    /// The network as the scheduler sees it.
    pub topology: Topology,
    /// How jobs are scheduled.
    pub policy: JobPolicy,
    /// Least bytes for which a rack pair is worth a circuit.
    pub elephant: Bytes,
    /// The jobs as planners foresee them.
    pub foreseen: Vec<JobSpec>,
    /// Per cent by which estimates of remaining times are off at most, and the seed of the errors.
    pub misjudged: Option<(u32, u64)>,
}

impl JobsHead {
    /// The scheduler that this describes, with its planning done.
    ///
    /// # Errors
    /// Jobs that the policy cannot plan.
    pub fn scheduler(&self) -> Result<TaskScheduler, String> {
        let placement = self.policy.placement.build(self.elephant);
        scheduler(
            self.topology.clone().into(),
            placement,
            self.policy.settings.clone(),
            &self.foreseen,
            self.misjudged,
        )
    }
}

/// A line as it is written.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordingEntry {
    /// The first.
    Head(Box<RecordingHead>),
    /// The controller hears something.
    Tell {
        /// The time of the event.
        at: Time,
        /// The event.
        event: control::Event,
    },
    /// Cycles of the controller are skipped.
    Skip {
        /// Time up to which they are skipped.
        at: Time,
    },
    /// The controller did not accept the event before.
    Refused {
        /// Why, in the controller's words.
        why: String,
    },
    /// The controller wants this done.
    Act {
        /// The action.
        action: control::Action,
    },
    /// The controller wants nothing more.
    Idle {},
    /// There is a scheduler.
    Jobs(Box<JobsHead>),
    /// The scheduler hears something.
    JobTell {
        /// When, counted from the start of the jobs.
        at: Time,
        /// The event.
        event: scheduler::SchedulerEvent,
    },
    /// The scheduler did not accept the event before.
    JobRefused {
        /// Why, in the scheduler's words.
        why: String,
    },
    /// The scheduler wants this done.
    JobAct {
        /// The action.
        action: scheduler::SchedulerAction,
    },
    /// The scheduler wants nothing more.
    JobIdle {},
    /// Nothing follows, although the run went on.
    Lost {
        /// What happened.
        why: String,
    },
    /// The run ended.
    End {
        /// Lines before this one.
        lines: u64,
    },
}

/// Where a driver puts what goes into its machine and comes out of it; nowhere, if nothing is
/// recorded.
#[derive(Clone, Default)]
pub struct RecordingTap {
    recorder: Option<Recorder>,
    /// Whether an event was put since the machine wanted nothing more.
    stirred: bool,
}

impl RecordingTap {
    /// Puts into a recorder, if there is one.
    pub fn new(recorder: Option<Recorder>) -> Self {
        Self { recorder, stirred: false }
    }

    /// Puts a line that costs something to make. O(1) if nothing is recorded.
    pub fn put(&mut self, entry: impl FnOnce() -> RecordingEntry) {
        if let Some(r) = &self.recorder {
            self.stirred = true;
            r.put(entry());
        }
    }

    /// The machine wants nothing more: said once after anything else.
    pub fn idle(&mut self, entry: RecordingEntry) {
        if let Some(r) = self.recorder.as_ref().filter(|_| self.stirred) {
            self.stirred = false;
            r.put(entry);
        }
    }
}
