//! Tetris: the task whose demands fit best into what a rack has free, and of jobs that are nearly done rather than others.
//!
//! Grandl et al., "Multi-resource packing for cluster schedulers", SIGCOMM 2014. A task asks for one slot and for the network into its rack
//! (what it reads from elsewhere over its time). Its alignment (section 3.2) is the dot product of what it asks and what is free, both
//! as shares of the rack's capacity; a task that reads from elsewhere loses a tenth. Its score (section 3.3.2) is the alignment minus
//! the job's remaining work, scaled so that both have the same mean. Only the jobs that are furthest below their fair share take part: the
//! first 1 - f of the queues' order (section 3.4); f = 0.25.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{JobId, RackId};
use crate::placement::hdfs;
use crate::placement::policy::{Block, Locality, Pick, Placement, View, startable};
use crate::placement::spec::{Common, PolicyOptions};
use crate::units::Bytes;

/// Options of the policy `tetris`: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TetrisOptions {}

impl PolicyOptions for TetrisOptions {
    fn build(&self, common: &Common, _: Bytes) -> Box<dyn Placement> {
        Box::new(Tetris::new(common.clone()))
    }
}

/// The fairness knob f, in per cent: so many of the jobs wait.
const KNOB: usize = 25;
/// What is on its way into a rack is taken as load for so many seconds.
const WINDOW: f64 = 1.0;

/// The policy.
#[derive(Clone, Debug)]
pub struct Tetris {
    common: Common,
}

impl Tetris {
    /// With parameters.
    pub fn new(common: Common) -> Self {
        Self { common }
    }
}

/// Of candidates (alignment, remaining work), the place of the best: the first with the largest alignment - e x work, where e is the
/// mean alignment over the mean work.
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

/// What a task of this stage would ask of the rack, in the same shares, and whether it reads from elsewhere.
fn demand(view: &dyn View, p: Pick, rack: RackId) -> ([f64; 2], bool) {
    let job = view.job(p.job);
    let stage = &job.stages[p.stage];
    let far = view.locality(p.job, p.stage, rack) == Some(Locality::Remote);
    let shuffle: Bytes = job.edges_into(p.stage).map(|e| e.bytes).sum();
    let bytes = (shuffle.0 + if far { stage.input.0 } else { 0 }) as f64 / f64::from(stage.tasks);
    let seconds = stage.times.longest().as_secs_f64().max(1e-3);
    let capacity = view.topology().racks[rack.index()].uplink.bytes_per_second().max(1) as f64;
    ([1.0 / f64::from(view.slots(rack).max(1)), (bytes / seconds / capacity).min(1.0)], far || shuffle.0 > 0)
}

/// Slot time that the job still takes.
fn remaining(view: &dyn View, job: JobId) -> f64 {
    let stages = view.job(job).stages.iter().enumerate();
    stages.map(|(s, st)| f64::from(view.counts(job, s).pending) * st.times.longest().as_secs_f64()).sum()
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
        let eligible = (ready.len() * (100 - KNOB)).div_ceil(100);
        let picks: Vec<Pick> =
            ready[..eligible].iter().filter_map(|&job| startable(view, job).next().map(|stage| Pick::of(job, stage))).collect();
        let room = free(view, rack);
        let judge = |p: &Pick| {
            let (ask, elsewhere) = demand(view, *p, rack);
            let dot = ask[0] * room[0] + ask[1] * room[1];
            (if elsewhere { dot * 0.9 } else { dot }, remaining(view, p.job))
        };
        best(&picks.iter().map(judge).collect::<Vec<_>>()).map(|k| picks[k])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_fit_wins_unless_another_job_is_nearly_done() {
        assert_eq!(best(&[]), None);
        assert_eq!(best(&[(0.1, 5.0), (0.5, 5.0), (0.5, 5.0)]), Some(1), "alignment decides, ties by order");
        // Means 0.3 and 10: e = 0.03. Scores 0.4 - 0.57 and 0.2 - 0.03.
        assert_eq!(best(&[(0.4, 19.0), (0.2, 1.0)]), Some(1));
        assert_eq!(best(&[(0.4, 0.0), (0.2, 0.0)]), Some(0));
    }
}
