//! ShuffleWatcher: each job on the racks between which it would move the fewest bytes.
//!
//! Ahmad et al., "ShuffleWatcher", USENIX ATC 2014: shuffle-aware map placement weighs maps that read from other racks against shuffles that
//! leave their rack, and puts a job on few racks; shuffle-aware reduce placement gives racks reduces in proportion to the map output that
//! they hold; network-aware shuffle scheduling starts maps rather than reduces while the network into a rack is loaded. Each job is decided
//! by itself, without the others, as Corral's authors remark (SIGCOMM 2015, section 6.1).
//!
//! With the racks in the order of how many of the job's blocks they hold, k racks cost `input` x (1 - share of blocks in
//! them) + `shuffle` x (1 - 1 / k) bytes between racks; the cheapest k counts, the smaller among equals.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{JobId, RackId};
use crate::placement::hdfs;
use crate::placement::policy::{Block, Pick, Placement, View, first_of, gone, lost_plans};
use crate::placement::spec::{Common, PolicyOptions};
use crate::units::Bytes;
use crate::workload::jobs::EdgeSpec;

/// Options of the policy `shuffle-watcher`: none of its own; `busy` is every policy's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShuffleWatcherOptions {}

impl PolicyOptions for ShuffleWatcherOptions {
    fn build(&self, common: &Common, _: Bytes) -> Box<dyn Placement> {
        Box::new(ShuffleWatcher::new(common.clone()))
    }
}

/// The policy.
#[derive(Clone, Debug)]
pub struct ShuffleWatcher {
    common: Common,
    /// By job: its racks, in ascending order.
    racks: BTreeMap<JobId, Vec<RackId>>,
    dropped: Vec<(JobId, String)>,
}

impl ShuffleWatcher {
    /// A policy with these parameters.
    pub fn new(common: Common) -> Self {
        Self { common, racks: BTreeMap::new(), dropped: Vec::new() }
    }
}

/// The racks between which a job moves the fewest bytes, in ascending order. `blocks` says of each block in which racks it is.
/// O(R (R + blocks)).
pub fn cheapest(input: u64, shuffle: u64, blocks: &[Vec<RackId>], racks: usize) -> Vec<RackId> {
    let mut held = vec![0u64; racks];
    blocks.iter().flatten().for_each(|r| held[r.index()] += 1);
    let mut order: Vec<RackId> = (0..racks).map(RackId::from).collect();
    order.sort_by_key(|r| (std::cmp::Reverse(held[r.index()]), *r));
    let cost = |k: usize| {
        let (chosen, all) = (&order[..k], blocks.len().max(1) as u128);
        let far = blocks.iter().filter(|b| !b.iter().any(|r| chosen.contains(r))).count() as u128;
        // Times blocks and k, to stay in integers.
        u128::from(input) * far * k as u128 + u128::from(shuffle) * (k as u128 - 1) * all
    };
    // Fractions with different k are compared crosswise.
    let best = (1..=racks).reduce(|a, b| if cost(b) * a as u128 >= cost(a) * b as u128 { a } else { b }).unwrap_or(0);
    let mut chosen = order[..best].to_vec();
    chosen.sort_unstable();
    chosen
}

impl ShuffleWatcher {
    /// Whether a rack may have one more reduce of a stage: it has fewer than its part of them, or none of the job's racks that has
    /// fewer has a host that is up. O(racks of the job).
    fn has_part(&self, view: &dyn View, (job, stage): (JobId, usize), rack: RackId) -> bool {
        let Some(racks) = self.racks.get(&job) else { return true };
        let outputs: Vec<u64> = racks.iter().map(|&r| output(view, (job, stage), r)).collect();
        let held: Vec<u64> = racks.iter().map(|&r| tasks_in(view, (job, stage), r)).collect();
        let parts = parts(view.counts(job, stage).tasks(), &outputs);
        let lacks = |k: &usize| held[*k] < parts[*k];
        match racks.binary_search(&rack) {
            Ok(own) if lacks(&own) => true,
            _ => !(0..racks.len()).filter(lacks).any(|k| view.slots(racks[k]) > 0),
        }
    }
}

/// Tasks of a stage that run in a rack or have left their output there.
fn tasks_in(view: &dyn View, (job, stage): (JobId, usize), rack: RackId) -> u64 {
    u64::from(view.running_in(job, stage, rack)) + u64::from(view.output_in(job, stage, rack))
}

/// Bytes that the stages before one leave in a rack, by where their tasks are or were.
fn output(view: &dyn View, (job, stage): (JobId, usize), rack: RackId) -> u64 {
    let part = |e: &EdgeSpec| {
        let (tasks, all) = (tasks_in(view, (job, e.from), rack), u64::from(view.counts(job, e.from).tasks().max(1)));
        u64::try_from(u128::from(e.bytes.0) * u128::from(tasks) / u128::from(all)).unwrap_or(u64::MAX)
    };
    view.job(job).edges_into(stage).map(part).sum()
}

/// `tasks` in proportion to `outputs`, each part rounded up; without outputs all parts are `tasks`.
fn parts(tasks: u32, outputs: &[u64]) -> Vec<u64> {
    let all: u128 = outputs.iter().map(|&o| u128::from(o)).sum();
    if all == 0 {
        return vec![u64::from(tasks); outputs.len()];
    }
    outputs.iter().map(|&o| (u128::from(tasks) * u128::from(o)).div_ceil(all) as u64).collect()
}

impl Placement for ShuffleWatcher {
    fn name(&self) -> &'static str {
        "shuffle-watcher"
    }

    fn place_data(&mut self, view: &dyn View, job: JobId) -> Vec<Vec<Block>> {
        hdfs::blocks(view, job, self.common.seed)
    }

    fn slowstart(&self, _: &dyn View, _: JobId) -> u32 {
        self.common.slowstart
    }

    fn submitted(&mut self, view: &dyn View, job: JobId) {
        let (spec, t) = (view.job(job), view.topology());
        let in_racks = |b: &Block| b.iter().map(|&h| t.rack_of(h)).collect::<Vec<_>>();
        let blocks: Vec<Vec<RackId>> = (0..spec.stages.len()).flat_map(|s| view.blocks(job, s).iter().map(in_racks)).collect();
        let racks = cheapest(spec.input_bytes().0, spec.shuffle_bytes().0, &blocks, t.rack_count());
        if !gone(view, &racks, self.common.lost_percent) {
            self.racks.insert(job, racks);
        }
    }

    fn offer(&mut self, view: &dyn View, rack: RackId) -> Option<Pick> {
        let here = |job: JobId| self.racks.get(&job).is_none_or(|r| r.binary_search(&rack).is_ok());
        let map = |job: JobId, s: usize| view.job(job).edges_into(s).next().is_none();
        // Loaded: what is on its way into the rack takes longer than a heavy reduce is worth waiting for.
        let uplink = view.topology().racks[rack.index()].uplink;
        let loaded = uplink.time_for(view.shuffling_into(rack)) > self.common.busy;
        let maps_first = if loaded { first_of(view, |job, s| here(job) && map(job, s)) } else { None };
        maps_first.or_else(|| first_of(view, |job, s| here(job) && (map(job, s) || self.has_part(view, (job, s), rack))))
    }

    fn cluster_changed(&mut self, view: &dyn View) {
        let plans = self.racks.iter().map(|(&job, racks)| (job, &racks[..]));
        for (job, why) in lost_plans(view, plans, self.common.lost_percent) {
            self.racks.remove(&job);
            self.dropped.push((job, why));
        }
    }

    fn guideline(&self, job: JobId, _: usize) -> Option<&[RackId]> {
        self.racks.get(&job).map(Vec::as_slice)
    }

    fn fallbacks(&self) -> &[(JobId, String)] {
        &self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heavy_shuffle_stays_in_one_rack_and_a_heavy_input_goes_to_its_blocks() {
        let block = |racks: &[u32]| racks.iter().map(|&r| RackId(r)).collect::<Vec<_>>();
        let blocks = [block(&[0, 2]), block(&[1, 2]), block(&[1, 3]), block(&[3, 0])];
        let racks = |input, shuffle| cheapest(input, shuffle, &blocks, 4).iter().map(|r| r.0).collect::<Vec<_>>();
        // All racks hold two of the four blocks. One rack: half of the input moves; two (0 and 1): none, but half of the shuffle.
        assert_eq!(racks(100, 1000), [0]);
        assert_eq!(racks(1000, 100), [0, 1]);
        assert_eq!(racks(0, 0), [0]);
    }

    #[test]
    fn reduces_follow_the_map_output() {
        assert_eq!(parts(10, &[30, 10, 0]), [8, 3, 0], "7.5 and 2.5, rounded up");
        assert_eq!(parts(4, &[5, 5]), [2, 2]);
        assert_eq!(parts(4, &[0, 0]), [4, 4], "without output any rack will do");
        assert_eq!(parts(u32::MAX, &[u64::MAX, u64::MAX]), [1 << 31, 1 << 31]);
    }
}
