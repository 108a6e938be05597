//! JobPacker's job manager (section 4.3.2): lays jobs out one after another on slot calendars.
//!
//! A shuffle-heavy job tries each of its feasible pairs and takes the one that ends it soonest; its
//! tasks are spread evenly over the racks that have room for them soonest. Any other job takes the
//! containers that are free first, wherever they are.

use crate::ids::RackId;
use crate::units::{Span, Time};
use crate::workload::jobs::{JobSpec, StageSpec, TaskTimes};

use super::super::calendar::Calendar;
use super::super::cluster::Cluster;
use super::super::latency::hybrid::{reads_blocks, shuffle};
use super::profile::{Profile, profile};
use super::{JobPackerPlan, JobPackerPlanOptions, PackedJob, RackTurn, StagePlan, TaskGroup, sort};

/// The offline schedule of jobs, which all are taken as recurring.
///
/// O(J R^2 (stages + edges)) to profile, O(J^2) to sort a batch, and O(R different times) for each
/// stage of each pair of each job.
pub fn plan(jobs: &[JobSpec], cluster: &Cluster, options: JobPackerPlanOptions) -> JobPackerPlan {
    let profiles: Vec<Profile> = jobs
        .iter()
        .map(|j| profile(j, cluster, options.shuffle_model, options.keep_elephants))
        .collect();
    let mut calendar = Calendar::new(cluster.racks, cluster.rack_slots());
    let mut planned: Vec<(usize, PackedJob)> = vec![];
    for j in sort::order(jobs, &profiles, cluster, options) {
        let manager = JobManager { job: &jobs[j], cluster, options };
        let (stages, pair, after) = manager.best(&profiles[j].pairs, &calendar);
        calendar = after;
        planned.push((j, manager.planned(stages, pair)));
    }
    let sequences = sequences(planned.iter().map(|p| &p.1), cluster.racks);
    let makespan = planned.iter().map(|p| p.1.finish.since(Time::ZERO)).max().unwrap_or(Span::ZERO);
    let total: u128 = planned
        .iter()
        .map(|(j, p)| u128::from(p.finish.since(manager_arrival(&jobs[*j], options)).0))
        .sum();
    let mean_completion_ns = total as f64 / planned.len().max(1) as f64;
    JobPackerPlan {
        scenario: options.scenario,
        jobs: planned.into_iter().map(|p| p.1).collect(),
        sequences,
        makespan,
        mean_completion_ns,
    }
}

/// In a batch all jobs are there at once.
fn manager_arrival(job: &JobSpec, options: JobPackerPlanOptions) -> Time {
    match options.scenario {
        super::Scenario::Batch => Time::ZERO,
        super::Scenario::Online => job.arrival,
    }
}

/// Each rack's turns, by time; at the same time, by the order of the jobs.
fn sequences<'a>(jobs: impl Iterator<Item = &'a PackedJob>, racks: usize) -> Vec<Vec<RackTurn>> {
    let mut all = vec![vec![]; racks];
    for p in jobs {
        for s in &p.stages {
            for g in s.groups.iter().filter(|g| g.tasks > 0) {
                all[g.rack.index()].push(RackTurn {
                    job: p.job,
                    stage: s.stage,
                    tasks: g.tasks,
                    from: g.from,
                });
            }
        }
    }
    all.iter_mut().for_each(|turns| turns.sort_by_key(|t| t.from));
    all
}

struct JobManager<'a> {
    job: &'a JobSpec,
    cluster: &'a Cluster,
    options: JobPackerPlanOptions,
}

type LaidStages = (Vec<StagePlan>, Option<(usize, usize)>, Calendar);

impl JobManager<'_> {
    /// The pair with the earliest completion; among equals the narrowest, then the one with fewer
    /// map racks.
    fn best(&self, pairs: &[(usize, usize)], calendar: &Calendar) -> LaidStages {
        let mut best: Option<((Time, usize, usize), LaidStages)> = None;
        for &(m, r) in pairs {
            let mut after = calendar.clone();
            let stages = self.lay(Some((m, r)), &mut after);
            let key = (finish(&stages), m + r, m);
            if best.as_ref().is_none_or(|b| key < b.0) {
                best = Some((key, (stages, Some((m, r)), after)));
            }
        }
        best.map_or_else(
            || {
                let mut after = calendar.clone();
                (self.lay(None, &mut after), None, after)
            },
            |b| b.1,
        )
    }

    /// All stages in their order, with a pair of widths or on whatever is free first.
    fn lay(&self, pair: Option<(usize, usize)>, calendar: &mut Calendar) -> Vec<StagePlan> {
        let mut done: Vec<StagePlan> = vec![];
        for (s, stage) in self.job.stages.iter().enumerate() {
            let width = pair.map(|(m, r)| if reads_blocks(self.job, s) { m } else { r });
            let share = match width {
                Some(w) => self.even(stage, w, calendar),
                None => self.anywhere(stage, calendar),
            };
            let laid = if reads_blocks(self.job, s) {
                self.at_once(s, &share, calendar)
            } else {
                self.after(s, &share, &done, calendar)
            };
            done.push(laid);
        }
        done
    }

    /// (rack, containers, tasks): a stage evenly on the `width` racks that have room for its share
    /// soonest; in waves, if a rack has fewer containers than that.
    fn even(
        &self,
        stage: &StageSpec,
        width: usize,
        calendar: &Calendar,
    ) -> Vec<(RackId, u32, u32)> {
        let width = width.min(stage.tasks as usize).max(1);
        let each = stage.tasks.div_ceil(width as u32);
        let containers = self.with_spare(each).min(self.cluster.rack_slots());
        let racks = calendar.soonest(width, containers).expect("all racks have as many containers");
        let (base, more) = (stage.tasks / width as u32, stage.tasks as usize % width);
        racks
            .iter()
            .enumerate()
            .map(|(k, (_, rack))| (*rack, containers, base + u32::from(k < more)))
            .collect()
    }

    /// A stage on the containers of the cluster that are free first.
    fn anywhere(&self, stage: &StageSpec, calendar: &Calendar) -> Vec<(RackId, u32, u32)> {
        let of = calendar.first(self.with_spare(stage.tasks));
        let all: u32 = of.iter().map(|f| f.1).sum();
        let (mut before, mut given) = (0u64, 0u64);
        let share = |(rack, n): (RackId, u32)| {
            before += u64::from(n);
            let until = u64::from(stage.tasks) * before / u64::from(all);
            let tasks = until - given;
            given = until;
            (rack, n, tasks as u32)
        };
        of.into_iter().map(share).collect()
    }

    /// Number of containers with the spare ones (section 4.3.2, over-provisioning).
    fn with_spare(&self, containers: u32) -> u32 {
        let all = u64::from(containers) * (100 + u64::from(self.options.over_provisioning_percent));
        u32::try_from(all.div_ceil(100)).unwrap_or(u32::MAX)
    }

    /// A stage that reads blocks: in each rack it begins when the rack has all containers that it
    /// asks for.
    fn at_once(
        &self,
        stage: usize,
        share: &[(RackId, u32, u32)],
        calendar: &mut Calendar,
    ) -> StagePlan {
        let arrival = manager_arrival(self.job, self.options);
        let mut groups = vec![];
        for &(rack, containers, tasks) in share {
            let own = &mut calendar.racks[rack.index()];
            let from = own.take(containers).last().map_or(arrival, |t| t.0.max(arrival));
            let until = from + stage_time(&self.job.stages[stage], tasks, containers);
            own.give(containers, until);
            groups.push(TaskGroup { rack, containers, tasks, from, until });
        }
        self.stage(stage, groups, Span::ZERO)
    }

    /// A stage behind shuffles: they begin when all its containers are there and the stages before
    /// it are done (section 4.2).
    fn after(
        &self,
        stage: usize,
        share: &[(RackId, u32, u32)],
        done: &[StagePlan],
        calendar: &mut Calendar,
    ) -> StagePlan {
        let mut from =
            self.job.edges_into(stage).map(|e| done[e.from].finish).max().unwrap_or(Time::ZERO);
        for &(rack, containers, _) in share {
            let taken = calendar.racks[rack.index()].take(containers);
            from = from.max(taken.last().map_or(Time::ZERO, |t| t.0));
        }
        let width = share.iter().filter(|s| s.2 > 0).count().max(1);
        let time = |e: &crate::workload::jobs::EdgeSpec| {
            shuffle(
                e.bytes,
                done[e.from].racks().len().max(1),
                width,
                self.cluster,
                self.options.shuffle_model,
            )
        };
        let shuffle = self.job.edges_into(stage).map(time).max().unwrap_or(Span::ZERO);
        let mut groups = vec![];
        for &(rack, containers, tasks) in share {
            let until = from + shuffle + stage_time(&self.job.stages[stage], tasks, containers);
            calendar.racks[rack.index()].give(containers, until);
            groups.push(TaskGroup { rack, containers, tasks, from, until });
        }
        self.stage(stage, groups, shuffle)
    }

    fn stage(&self, stage: usize, mut groups: Vec<TaskGroup>, shuffle: Span) -> StagePlan {
        groups.sort_by_key(|g| (g.from, g.rack));
        let finish =
            groups.iter().filter(|g| g.tasks > 0).map(|g| g.until).max().unwrap_or(Time::ZERO);
        StagePlan { stage, groups, shuffle, finish }
    }

    fn planned(&self, stages: Vec<StagePlan>, pair: Option<(usize, usize)>) -> PackedJob {
        let mut data: Vec<RackId> = stages
            .iter()
            .filter(|s| reads_blocks(self.job, s.stage))
            .flat_map(StagePlan::racks)
            .collect();
        data.sort_unstable();
        data.dedup();
        PackedJob { job: self.job.id, pair, data, finish: finish(&stages), stages }
    }
}

fn finish(stages: &[StagePlan]) -> Time {
    stages.iter().map(|s| s.finish).max().unwrap_or(Time::ZERO)
}

/// How long `tasks` tasks of a stage take in `containers` containers: the mean a wave, but not less
/// than the longest task.
pub fn stage_time(stage: &StageSpec, tasks: u32, containers: u32) -> Span {
    let waves = u64::from(tasks.div_ceil(containers.max(1)));
    match &stage.times {
        _ if tasks == 0 => Span::ZERO,
        TaskTimes::Even(t) => *t * waves,
        TaskTimes::Each(_) => {
            let mean =
                (stage.times.total(stage.tasks) * waves).0.div_ceil(u64::from(stage.tasks.max(1)));
            Span(mean).max(stage.times.longest())
        }
    }
}
