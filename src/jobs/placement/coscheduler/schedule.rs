//! Co-scheduler offline: what it makes of a list of jobs on a cluster without other jobs.
//!
//! Jobs are taken by arrival, and each stage by the rules of this room on slot calendars. Maps go
//! to racks that hold their data; reduces get the best schedule for the slots that are then free.
//! This is a forecast; in a run the scheduler asks again at every step.

use serde::Serialize;

use crate::ids::{JobId, RackId};
use crate::units::{Bytes, Span, Time};
use crate::workload::jobs::JobSpec;

use super::super::calendar::Calendar;
use super::super::cluster::Cluster;
use super::super::jobpacker::manager::stage_time;
use super::super::jobpacker::{StagePlan, TaskGroup};
use super::super::latency::hybrid::{reads_blocks, shuffle_heavy};
use super::data::{DataGuideline, Sir, guideline, matrix};
use super::decide::{ConsideredSchedules, ScheduleQuestion, coflow, decide};
use super::network::{CoflowForecaster, Idle};
use super::reduces::{recurring_widths, widths};

/// Where and when a job would run, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ForecastJob {
    /// The job.
    pub job: JobId,
    /// Whether its maps follow a guideline: its shuffle reaches T_e, or is expected to.
    pub heavy: bool,
    /// Where its data lies.
    pub data: DataGuideline,
    /// All its stages.
    pub stages: Vec<StagePlan>,
    /// By stage: what was considered for its tasks; nothing where there was no guideline.
    pub decisions: Vec<Option<ConsideredSchedules>>,
    /// When it ends.
    #[serde(rename = "finish_ns")]
    pub finish: Time,
}

/// A forecast for a list of jobs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobForecast {
    /// In the order of the jobs.
    pub jobs: Vec<ForecastJob>,
    /// When the last job ends.
    #[serde(rename = "makespan_ns")]
    pub makespan: Span,
    /// Mean time from arrival to completion, in nanoseconds.
    pub mean_completion_ns: f64,
}

/// Lays out jobs, given in the order of their arrival. `seed` draws the racks of their data. O(J
/// R^2 (stages + edges)) and O(R slots) a stage.
pub fn schedule(jobs: &[JobSpec], cluster: &Cluster, seed: u64) -> JobForecast {
    let mut calendar = Calendar::new(cluster.racks, cluster.rack_slots());
    let one = |job: &JobSpec| {
        let data = guideline(job, cluster, Sir::default(), seed.wrapping_add(u64::from(job.id.0)));
        let heavy = if job.recurring {
            shuffle_heavy(job, cluster)
        } else {
            job.input_bytes() >= cluster.elephant
        };
        Layer { job, cluster, data, heavy }.lay(&mut calendar)
    };
    let planned: Vec<ForecastJob> = jobs.iter().map(one).collect();
    let makespan = planned.iter().map(|p| p.finish.since(Time::ZERO)).max().unwrap_or(Span::ZERO);
    let total: u128 =
        planned.iter().zip(jobs).map(|(p, j)| u128::from(p.finish.since(j.arrival).0)).sum();
    JobForecast {
        mean_completion_ns: total as f64 / planned.len().max(1) as f64,
        jobs: planned,
        makespan,
    }
}

struct Layer<'a> {
    job: &'a JobSpec,
    cluster: &'a Cluster,
    data: DataGuideline,
    heavy: bool,
}

impl Layer<'_> {
    fn lay(self, calendar: &mut Calendar) -> ForecastJob {
        let (mut stages, mut decisions): (Vec<StagePlan>, Vec<Option<ConsideredSchedules>>) =
            (vec![], vec![]);
        for s in 0..self.job.stages.len() {
            let (stage, decision) = if reads_blocks(self.job, s) {
                (self.maps(s, calendar), None)
            } else {
                self.reduces(s, &stages, calendar)
            };
            stages.push(stage);
            decisions.push(decision);
        }
        let finish = stages.iter().map(|s| s.finish).max().unwrap_or(Time::ZERO);
        ForecastJob {
            job: self.job.id,
            heavy: self.heavy,
            data: self.data,
            stages,
            decisions,
            finish,
        }
    }

    /// Maps of a heavy job: evenly on the R_map racks with its data that have room for their share
    /// soonest. Others: what is free first.
    fn maps(&self, stage: usize, calendar: &mut Calendar) -> StagePlan {
        let tasks = self.job.stages[stage].tasks;
        let share = if self.heavy {
            let width = self.data.width.min(tasks as usize).max(1);
            let each = tasks.div_ceil(width as u32).min(self.cluster.rack_slots());
            let mut racks: Vec<(Option<Time>, RackId)> = self
                .data
                .sets
                .racks()
                .into_iter()
                .map(|r| (calendar.racks[r.index()].ready(each), r))
                .collect();
            racks.sort_unstable();
            let (base, more) = (tasks / width as u32, tasks as usize % width);
            racks
                .iter()
                .take(width)
                .enumerate()
                .map(|(k, r)| (r.1, base + u32::from(k < more)))
                .collect()
        } else {
            anywhere(tasks, calendar)
        };
        let mut groups = vec![];
        for (rack, tasks) in share {
            let own = &mut calendar.racks[rack.index()];
            let containers = tasks.min(own.slots());
            let from =
                own.take(containers).last().map_or(self.job.arrival, |t| t.0.max(self.job.arrival));
            let until = from + stage_time(&self.job.stages[stage], tasks, containers);
            own.give(containers, until);
            groups.push(TaskGroup { rack, containers, tasks, from, until });
        }
        finished(stage, groups, Span::ZERO)
    }

    /// Bytes for a stage, by the rack that holds them: every task of a stage makes the same share.
    fn inputs(&self, stage: usize, done: &[StagePlan]) -> Vec<(RackId, Bytes)> {
        let mut by_rack = vec![0u64; self.cluster.racks];
        for e in self.job.edges_into(stage) {
            let all = u128::from(self.job.stages[e.from].tasks);
            let (mut before, mut given) = (0u128, 0u64);
            for g in &done[e.from].groups {
                before += u128::from(g.tasks);
                let until = (u128::from(e.bytes.0) * before / all) as u64;
                by_rack[g.rack.index()] += until - given;
                given = until;
            }
        }
        by_rack
            .into_iter()
            .enumerate()
            .filter(|b| b.1 > 0)
            .map(|(r, b)| (RackId::from(r), Bytes(b)))
            .collect()
    }

    fn reduces(
        &self,
        stage: usize,
        done: &[StagePlan],
        calendar: &mut Calendar,
    ) -> (StagePlan, Option<ConsideredSchedules>) {
        let spec = &self.job.stages[stage];
        let ready = self
            .job
            .edges_into(stage)
            .map(|e| done[e.from].finish)
            .max()
            .unwrap_or(self.job.arrival);
        let maps = self.inputs(stage, done);
        let widths = match self.job.recurring {
            true => {
                recurring_widths(&matrix(self.job, self.cluster), &maps, spec.tasks, self.cluster)
            }
            false => widths(&maps, spec.tasks, self.cluster),
        };
        let free: Vec<Vec<Span>> = calendar.racks.iter().map(|r| r.releases(ready)).collect();
        let question = ScheduleQuestion {
            cluster: self.cluster,
            maps: &maps,
            reduces: spec.tasks,
            widths: &widths,
            free: &free,
        };
        let decision = decide(&question, &Idle(self.cluster));
        let share = decision
            .as_ref()
            .map_or_else(|| anywhere(spec.tasks, calendar), |d| d.best().racks.clone());
        let cct = Idle(self.cluster).completion(&coflow(&maps, &share), Span::ZERO);
        let held: Vec<(RackId, u32, u32)> = share
            .iter()
            .map(|&(r, tasks)| (r, tasks.min(calendar.racks[r.index()].slots()), tasks))
            .collect();
        let mut from = ready;
        for &(rack, containers, _) in &held {
            from = calendar.racks[rack.index()]
                .take(containers)
                .last()
                .map_or(from, |t| t.0.max(from));
        }
        let mut groups = vec![];
        for (rack, containers, tasks) in held {
            let until = from + cct + stage_time(spec, tasks, containers);
            calendar.racks[rack.index()].give(containers, until);
            groups.push(TaskGroup { rack, containers, tasks, from, until });
        }
        (finished(stage, groups, cct), decision)
    }
}

/// Tasks by rack on the containers that are free first; in waves, if there are fewer containers
/// than tasks.
fn anywhere(tasks: u32, calendar: &Calendar) -> Vec<(RackId, u32)> {
    let of = calendar.first(tasks);
    let all: u64 = of.iter().map(|f| u64::from(f.1)).sum();
    let (mut before, mut given) = (0u64, 0u64);
    let share = |(rack, n): (RackId, u32)| {
        before += u64::from(n);
        let own = u64::from(tasks) * before / all - given;
        given += own;
        (rack, own as u32)
    };
    of.into_iter().map(share).collect()
}

fn finished(stage: usize, groups: Vec<TaskGroup>, shuffle: Span) -> StagePlan {
    let finish = groups.iter().map(|g| g.until).max().unwrap_or(Time::ZERO);
    StagePlan { stage, groups, shuffle, finish }
}

#[cfg(test)]
mod tests {
    use super::super::super::latency::samples::{any_map_reduce, map_reduce};
    use super::*;
    use crate::workload::jobs::JobList;
    use proptest::prelude::*;

    #[test]
    fn a_heavy_job_follows_its_guidelines() {
        let c = Cluster { racks: 12, hosts: 2, slots: 5, ..Cluster::co_scheduler() };
        let jobs = JobList::new("t", vec![map_reduce((40, 1000), (8, 1000), 16 * 1_125)]).jobs;
        let s = schedule(&jobs, &c, 1);
        let p = &s.jobs[0];
        // Four racks of ten maps, all with the data; each holds 4 T_e, so up to four racks of
        // reduces, and four are fastest.
        assert_eq!(
            (p.heavy, p.data.width, p.stages[0].groups.iter().map(|g| g.tasks).collect::<Vec<_>>()),
            (true, 4, vec![10; 4])
        );
        assert!(p.stages[0].racks().iter().all(|r| p.data.sets.racks().contains(r)));
        let d = p.decisions[1].as_ref().unwrap();
        assert_eq!(
            (d.candidates.len(), d.best().racks.len(), p.stages[1].shuffle),
            (4, 4, d.best().cct)
        );
        assert_eq!(p.finish, Time::ZERO + Span::secs(2) + d.best().cct);
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn no_container_is_used_twice_and_every_task_is_placed_once(
            jobs in prop::collection::vec(any_map_reduce(), 1..10), seed in 0u64..9
        ) {
            let c = Cluster { racks: 5, hosts: 2, slots: 4, ..Cluster::co_scheduler() };
            let jobs = JobList::new("t", jobs.into_iter().enumerate().map(|(k, j)| JobSpec { recurring: k % 2 == 0, ..j }).collect()).jobs;
            let s = schedule(&jobs, &c, seed);
            let mut events: Vec<Vec<(Time, i64)>> = vec![vec![]; c.racks];
            for (p, job) in s.jobs.iter().zip(&jobs) {
                for (stage, plan) in p.stages.iter().enumerate() {
                    prop_assert_eq!(plan.groups.iter().map(|g| g.tasks).sum::<u32>(), job.stages[stage].tasks);
                    for g in &plan.groups {
                        events[g.rack.index()].extend([(g.until, -i64::from(g.containers)), (g.from, i64::from(g.containers))]);
                    }
                }
            }
            for rack in &mut events {
                rack.sort_unstable();
                let mut used = 0;
                let most = rack.iter().map(|e| { used += e.1; used }).max().unwrap_or(0);
                prop_assert!(most <= i64::from(c.rack_slots()));
            }
            prop_assert_eq!(schedule(&jobs, &c, seed), s);
        }
    }
}
