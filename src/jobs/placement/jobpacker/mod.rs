//! JobPacker: packs shuffles onto few pairs of racks, so that circuits carry them (Li and Shen,
//! ICPP 2019).
//!
//! Offline, for the recurring jobs of the next period, there are three parts. [`profile`] finds the
//! pairs of widths that are worth considering, and [`sort`] the order of the jobs. [`manager`] lays
//! them out one after another on slot calendars, each with its best pair. In real time,
//! [`realtime`] takes the next task of a rack's sequence or an ad-hoc job's, and [`aggregate`]
//! holds a shuffle back until it is worth a circuit.

use serde::{Deserialize, Serialize};

use crate::ids::{JobId, RackId, by_name};
use crate::units::{Span, Time};

use super::corral::Scenario;
use super::latency::hybrid::ShuffleModel;

pub mod aggregate;
pub mod executor;
pub mod manager;
pub mod profile;
pub mod realtime;
pub mod sort;
#[cfg(test)]
mod tests;

pub use manager::plan;

/// JobPacker's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "Options")]
pub struct JobPackerPlanOptions {
    /// Batch or online.
    pub scenario: Scenario,
    /// Which formula gives the time of a shuffle.
    pub shuffle_model: ShuffleModel,
    /// B, at least one.
    pub sub_batches: u32,
    /// Containers reserved beyond the estimate, in hundredths of it (1.0 in the paper is 100).
    pub over_provisioning_percent: u32,
    /// Ours: whether pairs of widths that would cut elephants into mice are left out, where there
    /// are others.
    pub keep_elephants: bool,
    /// Draws the order of the sub-batches.
    pub seed: u64,
}

impl Default for JobPackerPlanOptions {
    /// The paper's (section 5.2).
    fn default() -> Self {
        Self {
            scenario: Scenario::Batch,
            shuffle_model: ShuffleModel::Figure,
            sub_batches: 5,
            over_provisioning_percent: 0,
            keep_elephants: false,
            seed: 0,
        }
    }
}

/// Tasks of one stage that run in one rack in the same containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TaskGroup {
    /// The rack.
    #[serde(serialize_with = "by_name::one")]
    pub rack: RackId,
    /// Containers that are held, over-provisioned ones included.
    pub containers: u32,
    /// Tasks that run in them, perhaps in waves; none where all containers are over-provisioned.
    pub tasks: u32,
    /// Time from which the containers are held: for the first task, or for the shuffle before it.
    #[serde(rename = "from_ns")]
    pub from: Time,
    /// Time until which they are held.
    #[serde(rename = "until_ns")]
    pub until: Time,
}

/// Where and when a stage is to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StagePlan {
    /// Its place in the job.
    pub stage: usize,
    /// By time and rack.
    pub groups: Vec<TaskGroup>,
    /// How long the longest of its incoming shuffles takes, which all its groups wait for.
    #[serde(rename = "shuffle_ns")]
    pub shuffle: Span,
    /// When its last task ends.
    #[serde(rename = "finish_ns")]
    pub finish: Time,
}

impl StagePlan {
    /// The racks that run its tasks, in ascending order.
    pub fn racks(&self) -> Vec<RackId> {
        let mut racks: Vec<RackId> =
            self.groups.iter().filter(|g| g.tasks > 0).map(|g| g.rack).collect();
        racks.sort_unstable();
        racks.dedup();
        racks
    }
}

/// Where and when a job is to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PackedJob {
    /// The job.
    pub job: JobId,
    /// It is shuffle-heavy, and got this (map-width, reduce-width).
    pub pair: Option<(usize, usize)>,
    /// R_map: where its input is to lie.
    #[serde(serialize_with = "by_name::list")]
    pub data: Vec<RackId>,
    /// All its stages.
    pub stages: Vec<StagePlan>,
    /// When it ends.
    #[serde(rename = "finish_ns")]
    pub finish: Time,
}

/// A rack's turn: tasks of one stage of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RackTurn {
    /// The job.
    pub job: JobId,
    /// The stage of the job.
    pub stage: usize,
    /// How many of its tasks.
    pub tasks: u32,
    /// When, in the plan.
    #[serde(rename = "from_ns")]
    pub from: Time,
}

/// The offline schedule.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobPackerPlan {
    /// Batch or online.
    pub scenario: Scenario,
    /// In the order in which they were laid out, which is their priority.
    pub jobs: Vec<PackedJob>,
    /// By rack: its sequence.
    pub sequences: Vec<Vec<RackTurn>>,
    /// When the last job ends.
    #[serde(rename = "makespan_ns")]
    pub makespan: Span,
    /// Mean time from arrival to completion, in nanoseconds.
    pub mean_completion_ns: f64,
}
