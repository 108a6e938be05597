//! Corral: plans which racks a job gets, and in which order (Jalaparti et al., SIGCOMM 2015,
//! section 4).
//!
//! Two phases. Provisioning ([`provision`]) walks through allocations of racks to jobs, on the
//! paper's way and on one of ours; prioritisation ([`prioritise`]) lays out one allocation in time.
//! The best layout is the plan. With it comes a lower bound ([`lp`], [`price`]) on what any planner
//! of whole racks could reach, and the gap to it. A plan is a guideline: the scheduler drops it for
//! a job whose racks have failed.

use serde::{Deserialize, Serialize};

use crate::ids::{JobId, RackId, by_name};
use crate::units::{Span, Time};
use crate::workload::jobs::JobSpec;

use super::cluster::Cluster;
use super::latency::corral as response;

pub mod executor;
mod free;
pub mod hull;
pub mod lp;
pub mod price;
pub mod prioritise;
pub mod provision;
pub mod replay;
#[cfg(test)]
mod tests;

/// What a plan is good at (section 3.2).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    /// All jobs are there at once; the makespan counts.
    #[default]
    Batch,
    /// Jobs arrive at known times; the mean time from arrival to completion counts.
    Online,
}

/// Which allocations are laid out ([`provision`]).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Provisioning {
    /// The paper's only: the longest job gets the next rack
    Longest,
    /// Those, and those of the way on which the job that gains most gets wider; the better of both
    /// is taken
    #[default]
    Best,
}

/// By which rule a job was chosen to get wider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WideningRule {
    /// The longest.
    Longest,
    /// The one that saves most latency for the rack time that it costs.
    Gain,
}

/// Corral's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "Options")]
pub struct CorralPlanOptions {
    /// Batch or online.
    pub scenario: Scenario,
    /// Price of uneven data, alpha, in hundredths of the paper's choice (section 4.5); 0 for none.
    pub imbalance_percent: u64,
    /// Which allocations are laid out.
    pub provisioning: Provisioning,
}

impl Default for CorralPlanOptions {
    fn default() -> Self {
        Self { scenario: Scenario::Batch, imbalance_percent: 100, provisioning: Provisioning::Best }
    }
}

/// A job of which only its latency matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malleable {
    /// A_j; zero in a batch.
    pub arrival: Time,
    /// L'_j(r) for r = 1 ..= R, at index r - 1.
    pub curve: Vec<Span>,
}

/// The planning problem (section 4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanningProblem {
    /// R.
    pub racks: usize,
    /// What counts.
    pub scenario: Scenario,
    /// Which allocations are laid out.
    pub provisioning: Provisioning,
    /// The jobs, by their places.
    pub jobs: Vec<Malleable>,
}

impl PlanningProblem {
    /// Of jobs on a cluster. O(J R).
    pub fn of(jobs: &[JobSpec], cluster: &Cluster, options: CorralPlanOptions) -> Self {
        let one = |job: &JobSpec| Malleable {
            arrival: if options.scenario == Scenario::Batch { Time::ZERO } else { job.arrival },
            curve: response::curve(job, cluster, options.imbalance_percent),
        };
        let (scenario, provisioning) = (options.scenario, options.provisioning);
        Self { racks: cluster.racks, scenario, provisioning, jobs: jobs.iter().map(one).collect() }
    }
}

/// Where and when a job is to run: Corral's tuple {R_j, p_j}, with its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CorralJob {
    /// The job.
    pub job: JobId,
    /// R_j, in ascending order.
    #[serde(serialize_with = "by_name::list")]
    pub racks: Vec<RackId>,
    /// p_j: 0 is the first; by start, then in the order of prioritisation.
    pub priority: u32,
    /// T_j.
    #[serde(rename = "start_ns")]
    pub start: Time,
    /// T_j and L'_j.
    #[serde(rename = "finish_ns")]
    pub finish: Time,
}

/// A plan, and how good it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CorralPlan {
    /// Batch or online.
    pub scenario: Scenario,
    /// One entry a job, in the order of the jobs.
    pub jobs: Vec<CorralJob>,
    /// When the last job ends.
    #[serde(rename = "makespan_ns")]
    pub makespan: Span,
    /// Mean time from arrival to completion, in nanoseconds.
    pub mean_completion_ns: f64,
    /// No plan of whole racks has a smaller makespan (batch) or mean completion (online), in
    /// nanoseconds.
    pub bound_ns: f64,
    /// By how much the plan's figure is above the bound, as a share of the bound.
    pub gap: f64,
    /// How many allocations were laid out, in part or in full; all others could not be better.
    pub laid_out: usize,
    /// By which rule the allocation was found.
    pub rule: WideningRule,
}

/// Plans jobs on a cluster, and says how good the plan is.
pub fn plan(jobs: &[JobSpec], cluster: &Cluster, options: CorralPlanOptions) -> CorralPlan {
    let mut plan = solve(&PlanningProblem::of(jobs, cluster, options));
    name(&mut plan.jobs, jobs);
    plan
}

/// Plans jobs on a cluster, and does not ask how good that is: for callers that only carry it out.
pub fn guidelines(
    jobs: &[JobSpec],
    cluster: &Cluster,
    options: CorralPlanOptions,
) -> Vec<CorralJob> {
    let problem = PlanningProblem::of(jobs, cluster, options);
    let mut planned = planned(&problem, &provision::best(&problem).racks);
    name(&mut planned, jobs);
    planned
}

fn name(planned: &mut [CorralJob], jobs: &[JobSpec]) {
    planned.iter_mut().zip(jobs).for_each(|(entry, job)| entry.job = job.id);
}

/// Plans a problem; jobs are named by their places.
///
/// O(J R log(J R)) for the walk, and O(J (R + log J)) for each allocation that is laid out, of
/// which there are at most J R.
pub fn solve(problem: &PlanningProblem) -> CorralPlan {
    let best = provision::best(problem);
    judge(problem, planned(problem, &best.racks), &best)
}

/// An allocation laid out. O(J (R + log J)).
fn planned(problem: &PlanningProblem, racks: &[usize]) -> Vec<CorralJob> {
    let layout = prioritise::layout(problem, racks);
    let mut by_start: Vec<usize> = layout.iter().enumerate().map(|(k, _)| k).collect();
    by_start.sort_by_key(|&k| layout[k].start);
    let mut jobs: Vec<CorralJob> = vec![];
    for (priority, &k) in by_start.iter().enumerate() {
        let slot = &layout[k];
        let (start, finish) = (slot.start, slot.finish);
        jobs.push(CorralJob {
            job: JobId::from(slot.job),
            racks: slot.racks.clone(),
            priority: priority as u32,
            start,
            finish,
        });
    }
    jobs.sort_by_key(|p| p.job);
    jobs
}

fn judge(problem: &PlanningProblem, jobs: Vec<CorralJob>, best: &provision::Best) -> CorralPlan {
    let makespan = jobs.iter().map(|p| p.finish.since(Time::ZERO)).max().unwrap_or(Span::ZERO);
    let total: u128 =
        jobs.iter().zip(&problem.jobs).map(|(p, j)| u128::from(p.finish.since(j.arrival).0)).sum();
    let mean = total as f64 / (jobs.len().max(1)) as f64;
    let (value, bound) = match problem.scenario {
        Scenario::Batch => (makespan.0 as f64, lp::batch(problem)),
        Scenario::Online => (mean, lp::online(problem, total as f64)),
    };
    let gap = if bound > 0.0 { value / bound - 1.0 } else { 0.0 };
    let (laid_out, rule) = (best.laid_out, best.at.0);
    CorralPlan {
        scenario: problem.scenario,
        jobs,
        makespan,
        mean_completion_ns: mean,
        bound_ns: bound,
        gap,
        laid_out,
        rule,
    }
}
