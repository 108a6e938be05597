//! JobPacker's real-time scheduler, which carries an offline schedule out.
//!
//! JobPacker (ICPP 2019) section 4.4: a free slot of a rack goes to the first job of the rack's
//! sequence that has a task to run. Only where there is none does it go to an ad-hoc job, by the
//! rules of [`realtime`]. The reduces of a rack fetch together, when that is worth a circuit
//! ([`aggregate`]). The jobs of a rack that fails go by the default scheduler.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::aggregate::{self, Aggregate};
use super::{JobPackerPlanOptions, realtime};
use crate::ids::{JobId, RackId};
use crate::placement::cluster::{Cluster, ELEPHANT};
use crate::placement::corral::Scenario;
use crate::placement::corral::executor::{recurring, scenario};
use crate::placement::latency::hybrid::{self, ShuffleModel};
use crate::placement::policy::{
    Block, FetchStart, Pick, Placement, View, gone, is_over, startable,
};
use crate::placement::spec::{BadOption, Common, PolicyOptions, outside};
use crate::placement::{hdfs, replicas};
use crate::topology::Topology;
use crate::units::{Bytes, Time, exact_or_null};
use crate::workload::jobs::JobSpec;

/// Options of the policy `jobpacker`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct JobPackerOptions {
    /// What a plan is good at; batch if all planned jobs arrive at once, else online, if left out.
    pub objective: Option<Scenario>,
    /// B, into how many sub-batches a batch is divided (section 4.3.2), 1 to 1000; 5 if left out.
    #[schemars(range(min = 1, max = 1000))]
    pub sub_batches: u32,
    /// Slots that are planned beyond the estimate, in per cent of it, 0 to 1000; 0 if left out.
    #[schemars(range(max = 1000))]
    pub over_provisioning: u32,
    /// Which formula gives the time of a shuffle; figure if left out.
    pub shuffle_model: ShuffleModel,
    /// T_e in plans, more than zero; `elephants.threshold` if left out.
    #[serde(serialize_with = "exact_or_null")]
    pub elephant: Option<Bytes>,
    /// When the reduces of a rack begin to fetch (section 4.2). `total`: when they get T_e from all
    /// map racks together. `pair`: when they get it from every one. `whole`, ours: so that the rest
    /// is T_e again. `pair` if left out.
    pub aggregate: Aggregate,
    /// Ours: whether a rack runs no more tasks of a stage than its schedule says. Else a free slot
    /// of a planned rack takes any task of the first job of its sequence, as in section 4.4. False
    /// if left out.
    pub exact_tasks: bool,
    /// Ours: whether plans leave out pairs of widths that would cut elephants into mice, where
    /// there are others; section 4.3 has all of the zone. False if left out.
    pub keep_elephants: bool,
}

impl Default for JobPackerOptions {
    /// The paper's.
    fn default() -> Self {
        Self {
            objective: None,
            sub_batches: 5,
            over_provisioning: 0,
            shuffle_model: ShuffleModel::Figure,
            elephant: None,
            aggregate: Aggregate::default(),
            exact_tasks: false,
            keep_elephants: false,
        }
    }
}

impl PolicyOptions for JobPackerOptions {
    /// Section 5.2.
    const SLOWSTART: u32 = 70;

    fn check(&self) -> Vec<BadOption> {
        let batches = outside("sub_batches", self.sub_batches.into(), (1, 1_000));
        let spare = outside("over_provisioning", self.over_provisioning.into(), (0, 1_000));
        let elephant = self.elephant.and_then(|e| outside("elephant", e.0, (1, u64::MAX)));
        [batches, spare, elephant].into_iter().flatten().collect()
    }

    fn build(&self, common: &Common, elephant: Bytes) -> Box<dyn Placement> {
        Box::new(JobPacker::new(*self, common.clone(), elephant))
    }
}

/// A job's part of the schedule.
#[derive(Clone, Debug)]
struct JobPart {
    data: Vec<RackId>,
    /// By stage: its racks, ascending, and how many of its tasks each runs.
    stages: Vec<(Vec<RackId>, Vec<u32>)>,
}

/// The policy.
#[derive(Clone, Debug)]
pub struct JobPacker {
    options: JobPackerOptions,
    common: Common,
    cluster: Cluster,
    plan: BTreeMap<JobId, JobPart>,
    /// By rack: stages in the order of the schedule.
    sequences: Vec<Vec<(JobId, usize)>>,
    /// Recurring jobs that are foreseen to be shuffle-heavy.
    foreseen: BTreeSet<JobId>,
    /// Submitted, not finished, and heavy.
    heavy: Vec<JobId>,
    /// Output that was there, by map rack, when reduces of a rack last began to fetch.
    fetched: BTreeMap<(JobId, usize, RackId), Vec<Bytes>>,
    dropped: Vec<(JobId, String)>,
}

impl JobPacker {
    /// A policy with parameters; `elephant` is T_e, unless the options have one.
    fn new(options: JobPackerOptions, common: Common, elephant: Bytes) -> Self {
        let cluster =
            Cluster { elephant: options.elephant.unwrap_or(elephant), ..Cluster::jobpacker() };
        Self {
            options,
            common,
            cluster,
            plan: BTreeMap::new(),
            sequences: Vec::new(),
            foreseen: BTreeSet::new(),
            heavy: Vec::new(),
            fetched: BTreeMap::new(),
            dropped: Vec::new(),
        }
    }

    /// Whether a rack may start a task of a stage now.
    fn has_room(&self, view: &dyn View, job: JobId, stage: usize, rack: RackId) -> bool {
        let planned = || {
            self.plan
                .get(&job)
                .and_then(|p| p.stages.get(stage))
                .is_some_and(|s| s.0.contains(&rack))
        };
        self.share_left(view, job, stage, rack) > 0 || (!self.options.exact_tasks && planned())
    }

    /// How many tasks of a stage a rack is still to start by the schedule.
    fn share_left(&self, view: &dyn View, job: JobId, stage: usize, rack: RackId) -> u32 {
        let Some((racks, tasks)) = self.plan.get(&job).and_then(|p| p.stages.get(stage)) else {
            return 0;
        };
        let Ok(k) = racks.binary_search(&rack) else { return 0 };
        tasks[k]
            .saturating_sub(view.running_in(job, stage, rack) + view.output_in(job, stage, rack))
    }

    /// Whether a job is taken as shuffle-heavy: from its sizes if they are known, else from its
    /// input, whose limit goes with T_e.
    fn is_heavy(&self, job: &JobSpec) -> bool {
        let scaled = |b: Bytes| {
            Bytes(
                (u128::from(b.0) * u128::from(ELEPHANT.0)
                    / u128::from(self.cluster.elephant.0.max(1))) as u64,
            )
        };
        if job.recurring {
            self.foreseen.contains(&job.id)
        } else {
            realtime::ad_hoc_heavy(scaled(job.input_bytes()))
        }
    }
}

/// What the finished tasks before a stage have made for it, by rack.
pub fn output_by_rack(view: &dyn View, job: JobId, stage: usize) -> Vec<Bytes> {
    bytes_by_rack(view, job, stage, |s, r| view.output_in(job, s, r))
}

/// Bytes that tasks of the stages before a stage make for it, by rack; `tasks` gives their number
/// in a stage and a rack.
fn bytes_by_rack(
    view: &dyn View,
    job: JobId,
    stage: usize,
    tasks: impl Fn(usize, RackId) -> u32,
) -> Vec<Bytes> {
    let spec = view.job(job);
    let racks = view.topology().rack_count();
    let mut made = vec![0u64; racks];
    for e in spec.edges_into(stage) {
        let senders = u128::from(spec.stages[e.from].tasks);
        for (r, sum) in made.iter_mut().enumerate() {
            *sum += (u128::from(e.bytes.0) * u128::from(tasks(e.from, RackId::from(r))) / senders)
                as u64;
        }
    }
    made.into_iter().map(Bytes).collect()
}

impl Placement for JobPacker {
    fn name(&self) -> &'static str {
        "jobpacker"
    }

    fn plan(&mut self, topology: &Topology, jobs: &[JobSpec]) -> Result<(), String> {
        self.cluster = Cluster::of(topology, self.cluster.elephant);
        self.sequences = vec![Vec::new(); topology.rack_count()];
        let known = recurring(jobs);
        self.foreseen = known
            .iter()
            .filter(|j| hybrid::shuffle_heavy(j, &self.cluster))
            .map(|j| j.id)
            .collect();
        if known.is_empty() {
            return Ok(());
        }
        let p = self.options;
        let options = JobPackerPlanOptions {
            scenario: p.objective.unwrap_or(scenario(&known)),
            shuffle_model: p.shuffle_model,
            sub_batches: p.sub_batches,
            over_provisioning_percent: p.over_provisioning,
            keep_elephants: p.keep_elephants,
            seed: self.common.seed,
        };
        let plan = super::plan(&known, &self.cluster, options);
        for p in plan.jobs {
            let tasks = |s: &super::StagePlan| {
                let of =
                    |r: &RackId| s.groups.iter().filter(|g| g.rack == *r).map(|g| g.tasks).sum();
                let racks: Vec<RackId> = s.racks();
                (racks.clone(), racks.iter().map(of).collect())
            };
            let mut stages = vec![(Vec::new(), Vec::new()); p.stages.len()];
            p.stages.iter().for_each(|s| stages[s.stage] = tasks(s));
            self.plan.insert(p.job, JobPart { data: p.data, stages });
        }
        for (rack, turns) in plan.sequences.into_iter().enumerate() {
            for t in turns {
                if !self.sequences[rack].contains(&(t.job, t.stage)) {
                    self.sequences[rack].push((t.job, t.stage));
                }
            }
        }
        Ok(())
    }

    fn place_data(&mut self, view: &dyn View, job: JobId) -> Vec<Vec<Block>> {
        let Some(p) = self.plan.get(&job).filter(|p| !p.data.is_empty()) else {
            return hdfs::blocks(view, job, self.common.seed);
        };
        let (seed, racks) = (hdfs::mixed(self.common.seed, job), view.topology().rack_count());
        let share = |s: usize| -> Vec<(RackId, u32)> {
            p.stages[s].0.iter().copied().zip(p.stages[s].1.iter().copied()).collect()
        };
        hdfs::in_racks(view, job, self.common.seed, |s| replicas::jobpacker(&share(s), racks, seed))
    }

    fn slowstart(&self, _: &dyn View, _: JobId) -> u32 {
        self.common.slowstart
    }

    fn submitted(&mut self, view: &dyn View, job: JobId) {
        if self.is_heavy(view.job(job)) {
            self.heavy.push(job);
        }
    }

    fn offer(&mut self, view: &dyn View, rack: RackId) -> Option<Pick> {
        // Jobs that have not come yet cannot be asked about: those that may start are in the
        // queues.
        let ready: BTreeSet<JobId> = view.ready().collect();
        let can = |&&(job, s): &&(JobId, usize)| {
            ready.contains(&job)
                && view.may_start(job, s)
                && view.counts(job, s).pending > 0
                && self.has_room(view, job, s, rack)
        };
        if let Some(&(job, stage)) =
            self.sequences.get(rack.index()).and_then(|q| q.iter().find(can))
        {
            return Some(Pick::of(job, stage));
        }
        let ad_hoc: Vec<JobId> = view.ready().filter(|j| !self.plan.contains_key(j)).collect();
        let flags: Vec<bool> = ad_hoc.iter().map(|j| self.heavy.contains(j)).collect();
        let runs =
            |j: &JobId| (0..view.job(*j).stages.len()).any(|s| view.running_in(*j, s, rack) > 0);
        let job = ad_hoc[realtime::choose(self.heavy.iter().any(runs), &flags)?];
        startable(view, job).next().map(|stage| Pick::of(job, stage))
    }

    fn shuffle(&mut self, view: &dyn View, job: JobId, stage: usize) -> FetchStart {
        let (made, counts) = (output_by_rack(view, job, stage), view.counts(job, stage));
        let coming = bytes_by_rack(view, job, stage, |s, r| view.running_in(job, s, r));
        let done = coming.iter().all(|b| b.0 == 0);
        let heavy = self.heavy.contains(&job);
        let mut racks = Vec::new();
        for rack in view.topology().racks.iter().map(|r| r.id) {
            let waiting = view.waiting_in(job, stage, rack);
            // A task that waits when all maps are done may have fetched nothing yet.
            let before = self.fetched.get(&(job, stage, rack)).filter(|_| !done);
            let ready: Vec<Bytes> = made
                .iter()
                .enumerate()
                .map(|(k, b)| b.saturating_sub(before.map_or(Bytes::ZERO, |f| f[k])))
                .collect();
            let round = aggregate::FetchRound {
                ready: &ready,
                coming: &coming,
                waiting,
                // Where all slots of the rack wait for this, no other task can join them; nor can
                // one that runs elsewhere.
                without: if waiting < view.slots(rack) {
                    self.share_left(view, job, stage, rack).min(counts.pending)
                } else {
                    0
                },
                reduces: counts.tasks(),
                all_assigned: counts.pending == 0,
                aggregate: self.options.aggregate,
            };
            if waiting > 0 && (!heavy || round.may_fetch(&self.cluster)) {
                racks.push(rack);
                self.fetched.insert((job, stage, rack), made.clone());
            }
        }
        // While maps run something will happen; afterwards racks might wait for each other's slots.
        let until = if done { view.now() + self.common.patience } else { Time::MAX };
        if racks.is_empty() { FetchStart::Hold(until) } else { FetchStart::Racks(racks, until) }
    }

    fn stage_finished(&mut self, view: &dyn View, job: JobId, _: usize) {
        if is_over(view, job) {
            self.heavy.retain(|j| *j != job);
            self.fetched.retain(|k, _| k.0 != job);
            self.sequences.iter_mut().for_each(|s| s.retain(|t| t.0 != job));
        }
    }

    fn cluster_changed(&mut self, view: &dyn View) {
        // One rack that fails is enough: its share of the tasks has nowhere to go.
        let lost = self.common.lost_percent;
        let down: Vec<RackId> = view
            .topology()
            .racks
            .iter()
            .map(|r| r.id)
            .filter(|&r| gone(view, &[r], lost))
            .collect();
        let hit = |p: &JobPart| p.stages.iter().any(|s| s.0.iter().any(|r| down.contains(r)));
        let over: Vec<JobId> = self.plan.iter().filter(|(_, p)| hit(p)).map(|p| *p.0).collect();
        for job in over {
            self.plan.remove(&job);
            self.dropped.push((
                job,
                format!("more than {lost} % of the hosts of one of its racks are down"),
            ));
        }
    }

    fn guideline(&self, job: JobId, stage: usize) -> Option<&[RackId]> {
        self.plan.get(&job).and_then(|p| p.stages.get(stage)).map(|s| s.0.as_slice())
    }

    fn fallbacks(&self) -> &[(JobId, String)] {
        &self.dropped
    }
}
