//! What is reported of jobs and tasks.

use serde::{Deserialize, Serialize};

use super::TaskRef;
use crate::ids::{HostId, JobId};
use crate::placement::policy::Locality;
use crate::placement::why::Why;
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time, is_zero};
use crate::workload::jobs::JobSpec;

/// One attempt of a task: a bar of the timeline. Results have hosts by name (`H` is `String`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TaskRun<H = HostId> {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// Its attempt, from one.
    pub attempt: u32,
    /// The host.
    pub host: H,
    /// Slot of the host in which it ran.
    pub slot: u32,
    /// How near it was to its block.
    pub near: Locality,
    /// When it got its slot.
    #[serde(rename = "started_ns")]
    pub started: Time,
    /// When it had its input; `None` if it never did.
    #[serde(rename = "computes_ns")]
    pub computes: Option<Time>,
    /// When it gave its slot back.
    #[serde(rename = "ended_ns")]
    pub ended: Time,
    /// Whether it did its work; else it was given up.
    pub finished: bool,
}

impl TaskRun {
    /// The same with the host's name.
    pub fn named(&self, topology: &Topology) -> TaskRun<String> {
        let &Self { task, attempt, host, slot, near, started, computes, ended, finished } = self;
        TaskRun {
            host: topology.host_name(host),
            task,
            attempt,
            slot,
            near,
            started,
            computes,
            ended,
            finished,
        }
    }
}

/// Why an attempt of a task started when and where it did. Results have hosts by name (`H` is
/// `String`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Explained<H = HostId> {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// Its attempt, from one.
    pub attempt: u32,
    /// Since when it might have had a slot: when its stage might, or its last attempt was given up.
    #[serde(rename = "waited_since_ns")]
    pub waited_since: Time,
    /// When it got one.
    #[serde(rename = "started_ns")]
    pub started: Time,
    /// The host.
    pub host: H,
    /// How near it is to its block.
    pub near: Locality,
    /// What the policy says of it, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
}

impl Explained {
    /// The same with the host's name.
    pub fn named(&self, topology: &Topology) -> Explained<String> {
        let Self { task, attempt, waited_since, started, host, near, why } = self.clone();
        Explained {
            host: topology.host_name(host),
            task,
            attempt,
            waited_since,
            started,
            near,
            why,
        }
    }
}

/// The account of one job: a line of the result table, live and simulated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JobRecord {
    /// Its number.
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// Its queue.
    pub queue: u32,
    /// Whether its sizes and times are known ahead.
    pub recurring: bool,
    /// Number of tasks.
    pub tasks: u64,
    /// When it was submitted.
    #[serde(rename = "arrival_ns")]
    pub arrival: Time,
    /// When its first task got a slot.
    #[serde(rename = "started_ns")]
    pub started: Option<Time>,
    /// When its last task finished; `None` if the run ended first.
    #[serde(rename = "finished_ns")]
    pub finished: Option<Time>,
    /// Job completion time.
    #[serde(rename = "jct_ns")]
    pub jct: Option<Span>,
    /// Time that its tasks held slots.
    #[serde(rename = "slot_time_ns")]
    pub slot_time: Span,
    /// Bytes of its shuffles as specified, wherever they went.
    pub shuffle_bytes: Bytes,
    /// Bytes of shuffles asked of the network.
    #[serde(rename = "shuffled_bytes")]
    pub shuffled: Bytes,
    /// Bytes of blocks asked of the network.
    #[serde(rename = "read_bytes")]
    pub read: Bytes,
    /// Bytes between racks, of both.
    #[serde(rename = "between_racks_bytes")]
    pub between_racks: Bytes,
    /// By stage that has a shuffle over the network: from its first flow to its last.
    #[serde(rename = "shuffle_ccts_ns")]
    pub shuffle_ccts: Vec<Span>,
    /// Tasks with a block that ran on its host, in its rack, elsewhere.
    pub near: [u32; 3],
    /// Starts beyond one a task.
    pub reruns: u32,
}

impl JobRecord {
    /// The record of a job that has not been submitted.
    pub fn unseen(job: &JobSpec) -> Self {
        Self {
            id: job.id,
            name: job.name.clone(),
            queue: job.queue,
            recurring: job.recurring,
            tasks: job.tasks(),
            arrival: job.arrival,
            started: None,
            finished: None,
            jct: None,
            slot_time: Span::ZERO,
            shuffle_bytes: job.shuffle_bytes(),
            shuffled: Bytes::ZERO,
            read: Bytes::ZERO,
            between_racks: Bytes::ZERO,
            shuffle_ccts: Vec::new(),
            near: [0; 3],
            reruns: 0,
        }
    }
}

/// What has ended in a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndedJobs {
    /// Jobs, in the order in which they did.
    pub jobs: Vec<JobRecord>,
    /// Attempts of tasks, in the order in which they did.
    pub tasks: Vec<TaskRun>,
}

/// What happened in all.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[schemars(rename = "Counters")]
pub struct SchedulerCounters {
    /// Tasks started, again included.
    pub starts: u64,
    /// Jobs finished.
    pub jobs_finished: u64,
    /// Starts outside a guideline that was not dropped: never, if the policy keeps its word.
    pub violations: u64,
    /// Shuffles let go before the policy wanted, because nothing moved any more.
    pub released_holds: u64,
    /// Waiting tasks that gave their slot to one they waited for.
    pub preempted: u64,
    /// Hosts that went down.
    pub hosts_failed: u64,
    /// Outputs that were lost and computed again.
    pub outputs_lost: u64,
    /// Blocks all of whose replicas were gone.
    pub blocks_restored: u64,
    /// Offers that the fallback decided, since the program of the policy `external` gave no answer
    /// in time, or a wrong one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fallbacks: u64,
    /// Offers among these for which the answer was only late.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late_answers: u64,
}

/// What the tasks of a job do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskCounts {
    /// Tasks that have finished.
    pub finished: u64,
    /// Tasks that compute.
    pub computing: u64,
    /// Tasks that hold a slot and wait for their input.
    pub fetching: u64,
}

/// What the scheduler shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SchedulerSnapshot {
    /// When it was taken.
    pub now: Time,
    /// The placement policy.
    pub policy: String,
    /// All jobs, by id.
    pub jobs: Vec<JobRecord>,
    /// By job: what its tasks do.
    pub tasks: Vec<TaskCounts>,
    /// Slots that are free.
    pub free_slots: u64,
    /// Tasks that compute.
    pub computing: u64,
    /// Tasks that hold a slot and wait for input.
    pub fetching: u64,
    /// Coflows on their way.
    pub coflows: usize,
    /// Sums over the run.
    pub counters: SchedulerCounters,
    /// Jobs whose guideline was dropped, and why.
    pub fallbacks: Vec<(JobId, String)>,
    /// Why the fallback decided [`SchedulerCounters::fallbacks`]: the first reason other than a
    /// late answer, else the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_fallback: Option<String>,
}
