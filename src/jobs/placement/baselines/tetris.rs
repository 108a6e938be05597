//! Tetris: the task whose demands fit best into what a rack has free, and of jobs that are nearly
//! done rather than others.
//!
//! Grandl et al., "Multi-resource packing for cluster schedulers", SIGCOMM 2014. A task asks for
//! one slot and for the network into its rack (what it reads from elsewhere over its time). Only
//! tasks take part whose demands are free; a rack into which nothing is on its way takes every
//! task. Its alignment (section 3.2) is the dot product of what it asks and what is free, both as
//! shares of the rack's capacity; a task that reads from elsewhere loses a tenth. Its score
//! (section 3.3.2) is the alignment minus the job's remaining work (time x share of each resource,
//! over its pending tasks), scaled so that both have the same mean. Only the jobs that are furthest
//! below their fair share take part: the first 1 - f of the queues' order (section 3.4). Tasks of a
//! stage of which a part b has finished come before all others, since the next stage, or the end of
//! the job, waits for the last of them (section 3.5).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{JobId, RackId};
use crate::placement::hdfs;
use crate::placement::policy::{Block, Locality, OfferAlarm, Pick, Placement, View, startable};
use crate::placement::spec::{BadOption, Common, PolicyOptions, outside};
use crate::units::{Bytes, Span, Time, exact};

/// Options of the policy `tetris`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TetrisOptions {
    /// The fairness knob f: the part of the jobs, in per cent, that waits: those furthest ahead of
    /// their fair share; 25 if left out. 0 packs best.
    #[schemars(range(max = 99))]
    pub fairness: u32,
    /// The barrier knob b: the part of a stage's tasks, in per cent, after whose end the others go
    /// first; 90 if left out, 100 is never.
    #[schemars(range(max = 100))]
    pub barrier: u32,
    /// A rack whose network had no room for any task is looked at again after this time, at least 1
    /// ms; 1 s if left out.
    #[serde(serialize_with = "exact")]
    pub retry: Span,
}

impl Default for TetrisOptions {
    fn default() -> Self {
        Self { fairness: 25, barrier: 90, retry: Span::secs(1) }
    }
}

impl PolicyOptions for TetrisOptions {
    fn check(&self) -> Vec<BadOption> {
        let short = || BadOption {
            key: "retry".into(),
            message: format!("a rack without room is looked at again after {}", self.retry),
            allowed: "1 ms or more".into(),
        };
        let knobs = [
            outside("fairness", self.fairness.into(), (0, 99)),
            outside("barrier", self.barrier.into(), (0, 100)),
        ];
        knobs.into_iter().flatten().chain((self.retry < Span::millis(1)).then(short)).collect()
    }

    fn build(&self, common: &Common, _: Bytes) -> Box<dyn Placement> {
        Box::new(Tetris::new(*self, common.clone()))
    }
}

/// Seconds over which what is on its way into a rack is spread to count as load.
const WINDOW: f64 = 1.0;

/// The policy.
#[derive(Clone, Debug)]
pub struct Tetris {
    options: TetrisOptions,
    common: Common,
    alarm: OfferAlarm,
}

impl Tetris {
    /// A policy with its options and parameters.
    pub fn new(options: TetrisOptions, common: Common) -> Self {
        Self { options, common, alarm: OfferAlarm::default() }
    }

    /// Whether the rest of a stage goes first: part b of its tasks has finished.
    fn is_before_a_barrier(&self, view: &dyn View, p: &Pick) -> bool {
        let c = view.counts(p.job, p.stage);
        self.options.barrier < 100
            && u64::from(c.finished) * 100 >= u64::from(c.tasks()) * u64::from(self.options.barrier)
    }
}

/// Of candidates (alignment, remaining work), the place of the best: the first with the largest
/// alignment - e x work, where e is the mean alignment over the mean work.
pub fn best(candidates: &[(f64, f64)]) -> Option<usize> {
    let n = candidates.len().max(1) as f64;
    let (a, p) = candidates.iter().fold((0.0, 0.0), |s, c| (s.0 + c.0 / n, s.1 + c.1 / n));
    let e = if p > 0.0 { a / p } else { 0.0 };
    let score = |k: &usize| candidates[*k].0 - e * candidates[*k].1;
    (0..candidates.len()).max_by(|x, y| score(x).total_cmp(&score(y)).then(y.cmp(x)))
}

/// Shares of the rack that are free: slots, and the network into it.
fn free(view: &dyn View, rack: RackId) -> [f64; 2] {
    let capacity = view.topology().racks[rack.index()].uplink.bytes_per_second().max(1) as f64;
    let load = view.shuffling_into(rack).0 as f64 / (capacity * WINDOW);
    [f64::from(view.free(rack)) / f64::from(view.slots(rack).max(1)), (1.0 - load).max(0.0)]
}

/// Whether what is asked is free.
fn fits(ask: [f64; 2], room: [f64; 2]) -> bool {
    ask[0] <= room[0] && ask[1] <= room[1]
}

/// What a task of a stage asks of the rack, in the same shares, if it reads its block from
/// elsewhere (`far`), and for how many seconds.
fn ask(view: &dyn View, (job, s): (JobId, usize), rack: RackId, far: bool) -> ([f64; 2], f64) {
    let job = view.job(job);
    let stage = &job.stages[s];
    let shuffle: Bytes = job.edges_into(s).map(|e| e.bytes).sum();
    let bytes = (shuffle.0 + if far { stage.input.0 } else { 0 }) as f64 / f64::from(stage.tasks);
    let seconds = stage.times.longest().as_secs_f64().max(1e-3);
    let capacity = view.topology().racks[rack.index()].uplink.bytes_per_second().max(1) as f64;
    ([1.0 / f64::from(view.slots(rack).max(1)), (bytes / seconds / capacity).min(1.0)], seconds)
}

/// Time x share of each resource that the job's pending tasks take of the rack.
fn remaining(view: &dyn View, job: JobId, rack: RackId) -> f64 {
    let of = |s: usize| {
        let (ask, seconds) = ask(view, (job, s), rack, false);
        f64::from(view.counts(job, s).pending) * seconds * (ask[0] + ask[1])
    };
    (0..view.job(job).stages.len()).map(of).sum()
}

impl Placement for Tetris {
    fn name(&self) -> &'static str {
        "tetris"
    }

    fn place_data(&mut self, view: &dyn View, job: JobId) -> Vec<Vec<Block>> {
        hdfs::blocks(view, job, self.common.seed)
    }

    fn slowstart(&self, _: &dyn View, _: JobId) -> u32 {
        self.common.slowstart
    }

    fn offer(&mut self, view: &dyn View, rack: RackId) -> Option<Pick> {
        let ready: Vec<JobId> = view.ready().collect();
        let eligible = (ready.len() * (100 - self.options.fairness as usize)).div_ceil(100);
        let first = |&job: &JobId| startable(view, job).next().map(|stage| Pick::of(job, stage));
        let picks: Vec<Pick> = ready[..eligible].iter().filter_map(first).collect();
        let room = free(view, rack);
        let judge = |p: &Pick| {
            let far = view.locality(p.job, p.stage, rack) == Some(Locality::Remote);
            let (ask, _) = ask(view, (p.job, p.stage), rack, far);
            let dot = ask[0] * room[0] + ask[1] * room[1];
            let elsewhere =
                far || view.job(p.job).edges_into(p.stage).any(|e| e.bytes > Bytes::ZERO);
            fits(ask, room).then(|| {
                (*p, (if elsewhere { dot * 0.9 } else { dot }, remaining(view, p.job, rack)))
            })
        };
        let mut fitting: Vec<(Pick, (f64, f64))> = picks.iter().filter_map(judge).collect();
        if fitting.is_empty() && !picks.is_empty() {
            self.alarm.by(view.now() + self.options.retry);
        }
        if fitting.iter().any(|f| self.is_before_a_barrier(view, &f.0)) {
            fitting.retain(|f| self.is_before_a_barrier(view, &f.0));
        }
        best(&fitting.iter().map(|f| f.1).collect::<Vec<_>>()).map(|k| fitting[k].0)
    }

    fn wake_at(&self) -> Option<Time> {
        self.alarm.at()
    }

    fn woken(&mut self, now: Time) {
        self.alarm.woken(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_fit_wins_unless_another_job_is_nearly_done() {
        assert_eq!(best(&[]), None);
        assert_eq!(
            best(&[(0.1, 5.0), (0.5, 5.0), (0.5, 5.0)]),
            Some(1),
            "alignment decides, ties by order"
        );
        // Means 0.3 and 10: e = 0.03. Scores 0.4 - 0.57 and 0.2 - 0.03.
        assert_eq!(best(&[(0.4, 19.0), (0.2, 1.0)]), Some(1));
        assert_eq!(best(&[(0.4, 0.0), (0.2, 0.0)]), Some(0));
    }

    #[test]
    fn nothing_starts_where_its_demand_is_not_free() {
        assert!(
            fits([0.5, 0.5], [0.5, 0.5]) && fits([0.25, 1.0], [0.25, 1.0]),
            "an idle network takes every task"
        );
        assert!(!fits([0.5, 0.6], [1.0, 0.5]) && !fits([0.5, 0.1], [0.25, 1.0]));
    }
}
