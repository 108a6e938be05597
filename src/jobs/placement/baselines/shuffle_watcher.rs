//! ShuffleWatcher: each job on the racks between which it would move the fewest bytes.
//!
//! Ahmad et al., "ShuffleWatcher", USENIX ATC 2014, has three parts. Shuffle-aware map placement
//! weighs maps that read from other racks against shuffles that leave their rack, and puts a job on
//! few racks. Shuffle-aware reduce placement gives racks reduces in proportion to the map output
//! that they hold. Network-aware shuffle scheduling starts maps rather than reduces while the
//! network into a rack is loaded. A job's racks do not depend on other jobs, as Corral's authors
//! remark (SIGCOMM 2015, section 6.1).
//!
//! The racks stand in the order of how many of the job's blocks they hold. Then k racks cost
//! `input` x (1 - share of blocks in them) + `shuffle` x (1 - 1 / k) bytes between racks. The
//! cheapest k counts, the smaller among equals. There are never too few racks: together they have
//! slots for all tasks of the job's largest stage. They are preferred only: tasks that find no slot
//! there run elsewhere, since ShuffleWatcher "always place\[s\] a task if there exist available
//! slots" (Tian et al., PushBox, TPDS 2022, section 2.3). Corral's authors have it otherwise: jobs
//! are scheduled "in a subset of racks", "in the worst case all jobs on a single rack" (sections
//! 6.1 and 6.2); that is [`ShuffleWatcherOptions::confine`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{JobId, RackId};
use crate::placement::hdfs;
use crate::placement::policy::{Block, Pick, Placement, View, first_of, gone, lost_plans};
use crate::placement::spec::{Common, PolicyOptions};
use crate::units::{Bytes, Span, exact};
use crate::workload::jobs::EdgeSpec;

/// Options of the policy `shuffle-watcher`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ShuffleWatcherOptions {
    /// Whether a job stays in the racks between which it moves the fewest bytes, whatever slots
    /// they have, as Corral's authors have it. Else racks with slots for all tasks of a stage are
    /// preferred to others. False if left out.
    pub confine: bool,
    /// The network into a rack is loaded, and maps go first, while what is on its way there takes
    /// longer than this; 1 s if left out.
    #[serde(serialize_with = "exact")]
    pub busy: Span,
}

impl Default for ShuffleWatcherOptions {
    fn default() -> Self {
        Self { confine: false, busy: Span::secs(1) }
    }
}

impl PolicyOptions for ShuffleWatcherOptions {
    fn build(&self, common: &Common, _: Bytes) -> Box<dyn Placement> {
        Box::new(ShuffleWatcher::new(*self, common.clone()))
    }
}

/// The policy.
#[derive(Clone, Debug)]
pub struct ShuffleWatcher {
    options: ShuffleWatcherOptions,
    common: Common,
    /// By job: its racks, in ascending order.
    racks: BTreeMap<JobId, Vec<RackId>>,
    dropped: Vec<(JobId, String)>,
}

impl ShuffleWatcher {
    /// A policy with these parameters.
    pub fn new(options: ShuffleWatcherOptions, common: Common) -> Self {
        Self { options, common, racks: BTreeMap::new(), dropped: Vec::new() }
    }
}

/// The racks between which a job moves the fewest bytes, in ascending order, as many at least as
/// have slots for `tasks`; all, if they have fewer. `blocks` says of each block in which racks it
/// is, `slots` how many each rack has. O(R (R + blocks)).
pub fn cheapest(
    (input, shuffle): (u64, u64),
    blocks: &[Vec<RackId>],
    slots: &[u32],
    tasks: u32,
) -> Vec<RackId> {
    let racks = slots.len();
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
    let room = |k: usize| order[..k].iter().map(|r| u64::from(slots[r.index()])).sum::<u64>();
    let least = (1..racks).find(|&k| room(k) >= u64::from(tasks)).unwrap_or(racks);
    // Fractions with different k are compared crosswise.
    let best = (least..=racks)
        .reduce(|a, b| if cost(b) * a as u128 >= cost(a) * b as u128 { a } else { b })
        .unwrap_or(0);
    let mut chosen = order[..best].to_vec();
    chosen.sort_unstable();
    chosen
}

impl ShuffleWatcher {
    /// Of a job's racks, those that have fewer reduces of a stage than their part. O(racks of the
    /// job).
    fn lacking<'a>(
        &self,
        view: &dyn View,
        (job, stage): (JobId, usize),
        racks: &'a [RackId],
    ) -> Vec<&'a RackId> {
        let outputs: Vec<u64> = racks.iter().map(|&r| output(view, (job, stage), r)).collect();
        let parts = parts(view.counts(job, stage).tasks(), &outputs);
        racks
            .iter()
            .zip(parts)
            .filter(|&(&r, part)| tasks_in(view, (job, stage), r) < part)
            .map(|l| l.0)
            .collect()
    }

    /// Whether a rack may have one more reduce of a stage: it has fewer than its part of them, or
    /// none of the job's racks that has fewer has a host that is up. O(racks of the job).
    fn has_part(&self, view: &dyn View, key: (JobId, usize), rack: RackId) -> bool {
        let Some(racks) = self.racks.get(&key.0) else { return true };
        let lacking = self.lacking(view, key, racks);
        lacking.contains(&&rack) || !lacking.into_iter().any(|&r| view.slots(r) > 0)
    }

    /// Whether more tasks of a stage wait than the racks for them have free slots. O(racks of the
    /// job).
    fn overflows(&self, view: &dyn View, (job, stage): (JobId, usize)) -> bool {
        let Some(racks) = self.racks.get(&job) else { return true };
        let for_it = if is_map(view, job, stage) {
            racks.iter().collect()
        } else {
            self.lacking(view, (job, stage), racks)
        };
        let free: u64 = for_it.into_iter().map(|&r| u64::from(view.free(r))).sum();
        u64::from(view.counts(job, stage).pending) > free
    }

    /// A task for a slot of a rack, of those that may have it: maps first while the network into
    /// the rack is loaded.
    fn first(
        &self,
        view: &dyn View,
        loaded: bool,
        may: impl Fn(JobId, usize) -> bool,
    ) -> Option<Pick> {
        let maps = || first_of(view, |job, s| is_map(view, job, s) && may(job, s));
        loaded.then(maps).flatten().or_else(|| first_of(view, &may))
    }
}

/// Whether a stage receives no shuffle.
fn is_map(view: &dyn View, job: JobId, stage: usize) -> bool {
    view.job(job).edges_into(stage).next().is_none()
}

/// Tasks of a stage that run in a rack or have left their output there.
fn tasks_in(view: &dyn View, (job, stage): (JobId, usize), rack: RackId) -> u64 {
    u64::from(view.running_in(job, stage, rack)) + u64::from(view.output_in(job, stage, rack))
}

/// Bytes that the stages before one leave in a rack, by where their tasks are or were.
fn output(view: &dyn View, (job, stage): (JobId, usize), rack: RackId) -> u64 {
    let part = |e: &EdgeSpec| {
        let (tasks, all) = (
            tasks_in(view, (job, e.from), rack),
            u64::from(view.counts(job, e.from).tasks().max(1)),
        );
        u64::try_from(u128::from(e.bytes.0) * u128::from(tasks) / u128::from(all))
            .unwrap_or(u64::MAX)
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
        let blocks: Vec<Vec<RackId>> =
            (0..spec.stages.len()).flat_map(|s| view.blocks(job, s).iter().map(in_racks)).collect();
        let slots: Vec<u32> = t.racks.iter().map(|r| view.slots(r.id)).collect();
        let largest = spec.stages.iter().map(|s| s.tasks).max().unwrap_or(0);
        let tasks = if self.options.confine { 0 } else { largest };
        let racks =
            cheapest((spec.input_bytes().0, spec.shuffle_bytes().0), &blocks, &slots, tasks);
        if !gone(view, &racks, self.common.lost_percent) {
            self.racks.insert(job, racks);
        }
    }

    fn offer(&mut self, view: &dyn View, rack: RackId) -> Option<Pick> {
        // Loaded: what is on its way into the rack takes longer than a heavy reduce is worth
        // waiting for.
        let uplink = view.topology().racks[rack.index()].uplink;
        let loaded = uplink.time_for(view.shuffling_into(rack)) > self.options.busy;
        let here = |job: JobId| self.racks.get(&job).is_none_or(|r| r.binary_search(&rack).is_ok());
        let own = self.first(view, loaded, |job, s| {
            here(job) && (is_map(view, job, s) || self.has_part(view, (job, s), rack))
        });
        let others = || self.first(view, loaded, |job, s| self.overflows(view, (job, s)));
        own.or_else(|| if self.options.confine { None } else { others() })
    }

    fn cluster_changed(&mut self, view: &dyn View) {
        let plans = self.racks.iter().map(|(&job, racks)| (job, &racks[..]));
        for (job, why) in lost_plans(view, plans, self.common.lost_percent) {
            self.racks.remove(&job);
            self.dropped.push((job, why));
        }
    }

    fn guideline(&self, job: JobId, _: usize) -> Option<&[RackId]> {
        self.racks.get(&job).filter(|_| self.options.confine).map(Vec::as_slice)
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
        let racks = |input, shuffle| {
            cheapest((input, shuffle), &blocks, &[2; 4], 0).iter().map(|r| r.0).collect::<Vec<_>>()
        };
        // All racks hold two of the four blocks. One rack: half of the input moves; two (0 and 1):
        // none, but half of the shuffle.
        assert_eq!(racks(100, 1000), [0]);
        assert_eq!(racks(1000, 100), [0, 1]);
        assert_eq!(racks(0, 0), [0]);
    }

    #[test]
    fn racks_have_slots_for_a_stage_if_there_are_as_many() {
        let blocks = vec![vec![RackId(2)]; 5];
        let racks = |tasks| {
            cheapest((100, 1000), &blocks, &[20, 20, 20, 20], tasks)
                .iter()
                .map(|r| r.0)
                .collect::<Vec<_>>()
        };
        assert_eq!([racks(1), racks(20)], [[2], [2]]);
        assert_eq!(racks(21), [0, 2]);
        assert_eq!([racks(61), racks(80), racks(1000)], [[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]]);
    }

    #[test]
    fn reduces_follow_the_map_output() {
        assert_eq!(parts(10, &[30, 10, 0]), [8, 3, 0], "7.5 and 2.5, rounded up");
        assert_eq!(parts(4, &[5, 5]), [2, 2]);
        assert_eq!(parts(4, &[0, 0]), [4, 4], "without output any rack will do");
        assert_eq!(parts(u32::MAX, &[u64::MAX, u64::MAX]), [1 << 31, 1 << 31]);
    }
}
