//! Jobs of a task scheduler on this network.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Its number.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Number of its queue.
    pub queue: u32,
    /// How many tasks it has.
    pub tasks: u64,
    /// How many of them have done their work.
    pub tasks_finished: u64,
    /// Slots in which its tasks compute.
    pub computing: u64,
    /// Slots that its tasks hold while they wait for their input.
    pub waiting: u64,
    /// When it was submitted.
    pub arrival_ns: u64,
    /// When its first task got a slot.
    pub started_ns: Option<u64>,
    /// When its last task finished.
    pub finished_ns: Option<u64>,
}

/// What a task scheduler reports of its jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobsReport {
    /// Tells this run of the scheduler from others; a number that is not chosen twice, such as the
    /// time of its beginning.
    pub run: u64,
    /// The scheduler's clock: the zero of times in the report is its own.
    pub now_ns: u64,
    /// Name of the list of jobs.
    pub workload: String,
    /// Name of the placement policy.
    pub policy: String,
    /// Slots in all.
    pub slots: u64,
    /// Jobs that have changed since the report before.
    pub jobs: Vec<Job>,
}

/// The jobs of the scheduler that reported last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Jobs {
    /// Time of the answer.
    pub now_ns: u64,
    /// Which run of a scheduler they are of.
    pub run: u64,
    /// Name of the list of jobs; empty if no scheduler has reported.
    pub workload: String,
    /// Name of the placement policy.
    pub policy: String,
    /// Slots in all.
    pub slots: u64,
    /// Those that were submitted, by number.
    pub jobs: Vec<Job>,
    /// Who held slots when: one sample for each report.
    pub samples: Vec<SlotsSample>,
}

/// Who held slots at an instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SlotsSample {
    /// The instant, in ns since the start of the run.
    pub at_ns: u64,
    /// By job, those that hold any.
    pub held: Vec<SlotsHeld>,
}

/// The slots that the tasks of a job hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SlotsHeld {
    /// The job's number.
    pub job: u32,
    /// Slots in which its tasks compute.
    pub computing: u64,
    /// Slots that its tasks hold while they wait for their input.
    pub waiting: u64,
}
