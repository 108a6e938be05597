//! Corral's cluster scheduler, which carries a plan out; and LocalShuffle, which has Corral's tasks
//! and HDFS's data.
//!
//! Corral (SIGCOMM 2015) section 3.1: every planned job has racks R_j and a priority p_j. Its
//! blocks have a replica in R_j, its tasks run in R_j only, and a free slot goes to the job of
//! highest priority that is assigned the rack. Within the rack, delay scheduling waits for the host
//! of a block. Jobs that were not planned have HDFS's data and delay scheduling, on what the others
//! leave. With `ad_hoc: fair` they come before the others, until they have their share of the rack:
//! section 6.4 has them scheduled as by Yarn's capacity scheduler. When more than a share of the
//! hosts of R_j is gone, the guideline is dropped for that job.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CorralPlanOptions, Provisioning, Scenario, guidelines};
use crate::ids::{JobId, RackId};
use crate::placement::baselines::delay::Waits;
use crate::placement::baselines::missed::YARN;
use crate::placement::cluster::Cluster;
use crate::placement::policy::{
    Block, Locality, Pick, Placement, ReduceStart, View, first_of, is_over, lost_plans, startable,
};
use crate::placement::spec::{BadOption, Common, PolicyOptions, outside};
use crate::placement::{hdfs, replicas};
use crate::topology::Topology;
use crate::units::{Bytes, Time, exact_or_null};
use crate::workload::jobs::JobSpec;

/// Which slots jobs have that were not planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AdHoc {
    /// Those that planned jobs leave.
    #[default]
    Rest,
    /// Their share of each rack's slots, as many jobs as they are of all that may run there; then
    /// those that planned jobs leave.
    Fair,
}

/// Options of the policy `corral`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CorralOptions {
    /// What a plan is good at; batch if all planned jobs arrive at once, else online, if left out.
    pub objective: Option<Scenario>,
    /// The price of uneven data, alpha, in per cent of the paper's (section 4.5), 0 to 10000; 100
    /// if left out.
    #[schemars(range(max = 10000))]
    pub imbalance: u64,
    /// Which allocations of racks are laid out: longest (the paper's) or best (those and others);
    /// longest if left out.
    pub provisioning: Provisioning,
    /// Which slots jobs have that were not planned: rest (what planned jobs leave) or fair (their
    /// share first); rest if left out.
    pub ad_hoc: AdHoc,
    /// T_e in plans, more than zero; `elephants.threshold` if left out.
    #[serde(serialize_with = "exact_or_null")]
    pub elephant: Option<Bytes>,
}

impl Default for CorralOptions {
    /// The paper's.
    fn default() -> Self {
        Self {
            objective: None,
            imbalance: 100,
            provisioning: Provisioning::Longest,
            ad_hoc: AdHoc::Rest,
            elephant: None,
        }
    }
}

impl PolicyOptions for CorralOptions {
    const REDUCES: ReduceStart = ReduceStart::RampUp;
    const COUNTS_OFFERS: bool = true;
    const MISSED: Option<u32> = Some(YARN);

    fn check(&self) -> Vec<BadOption> {
        let elephant = self.elephant.and_then(|e| outside("elephant", e.0, (1, u64::MAX)));
        outside("imbalance", self.imbalance, (0, 10_000)).into_iter().chain(elephant).collect()
    }

    fn build(&self, common: &Common, elephant: Bytes) -> Box<dyn Placement> {
        Box::new(Corral::new("corral", true, (*self, common.clone()), elephant))
    }
}

/// Options of the policy `local-shuffle`: those of `corral`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct LocalShuffleOptions(pub CorralOptions);

impl PolicyOptions for LocalShuffleOptions {
    const REDUCES: ReduceStart = CorralOptions::REDUCES;
    const COUNTS_OFFERS: bool = CorralOptions::COUNTS_OFFERS;
    const MISSED: Option<u32> = CorralOptions::MISSED;

    fn check(&self) -> Vec<BadOption> {
        self.0.check()
    }

    fn build(&self, common: &Common, elephant: Bytes) -> Box<dyn Placement> {
        Box::new(Corral::new("local-shuffle", false, (self.0, common.clone()), elephant))
    }
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Corral {
    name: &'static str,
    /// Whether blocks go where the plan says; else this is LocalShuffle.
    places_data: bool,
    options: CorralOptions,
    common: Common,
    elephant: Bytes,
    /// R_j and p_j.
    plan: BTreeMap<JobId, (Vec<RackId>, u32)>,
    /// By rack: planned jobs that were submitted and have not finished, by priority.
    assigned: Vec<BTreeSet<(u32, JobId)>>,
    /// Other jobs that were submitted and have not finished.
    unplanned: BTreeSet<JobId>,
    /// By rack: planned data.
    held: Vec<Bytes>,
    waits: Waits,
    dropped: Vec<(JobId, String)>,
}

impl Corral {
    /// Under a name; `elephant` is T_e, unless the options have one.
    fn new(
        name: &'static str,
        places_data: bool,
        (options, common): (CorralOptions, Common),
        elephant: Bytes,
    ) -> Self {
        let waits = Waits::of(&common);
        let (plan, assigned, unplanned, held, dropped) = Default::default();
        let elephant = options.elephant.unwrap_or(elephant);
        Self {
            name,
            places_data,
            options,
            common,
            elephant,
            plan,
            assigned,
            unplanned,
            held,
            waits,
            dropped,
        }
    }

    /// Whether jobs that were not planned hold fewer of a rack's slots than their share. O(their
    /// stages).
    fn owed(&self, view: &dyn View, rack: RackId) -> bool {
        let jobs = self.unplanned.len() as u64;
        let all = jobs + self.assigned.get(rack.index()).map_or(0, |a| a.len() as u64);
        let of = |&job: &JobId| {
            (0..view.job(job).stages.len())
                .map(|s| u64::from(view.running_in(job, s, rack)))
                .sum::<u64>()
        };
        self.unplanned.iter().map(of).sum::<u64>() * all < u64::from(view.slots(rack)) * jobs
    }

    /// The next task of the planned jobs on a rack. In its racks a job waits for a host; a block
    /// that is in none of them is worth no wait.
    fn of_planned(&mut self, view: &dyn View, rack: RackId) -> Option<Pick> {
        let waits = &mut self.waits;
        let mut near = |job: JobId, s: usize| match view.locality(job, s, rack)? {
            Locality::Remote => Some(()),
            near => waits.may(view, (job, s), near).then_some(()),
        };
        self.assigned.get(rack.index()).into_iter().flatten().find_map(|&(_, job)| {
            let stage = startable(view, job).find(|&s| near(job, s).is_some())?;
            Some(Pick::of(job, stage))
        })
    }

    /// The next task of the other jobs.
    fn of_others(&mut self, view: &dyn View, rack: RackId) -> Option<Pick> {
        let (waits, plan) = (&mut self.waits, &self.plan);
        let free = |job: JobId, s: usize| {
            !plan.contains_key(&job)
                && view.locality(job, s, rack).is_some_and(|n| waits.may(view, (job, s), n))
        };
        first_of(view, free)
    }

    fn forget(&mut self, job: JobId) {
        self.unplanned.remove(&job);
        self.assigned.iter_mut().for_each(|a| a.retain(|e| e.1 != job));
    }
}

/// Batch if all of the jobs arrive at once.
pub fn scenario(jobs: &[JobSpec]) -> Scenario {
    if jobs.windows(2).all(|w| w[0].arrival == w[1].arrival) {
        Scenario::Batch
    } else {
        Scenario::Online
    }
}

/// The jobs that are known ahead.
pub fn recurring(jobs: &[JobSpec]) -> Vec<JobSpec> {
    jobs.iter().filter(|j| j.recurring).cloned().collect()
}

impl Placement for Corral {
    fn name(&self) -> &'static str {
        self.name
    }

    fn plan(&mut self, topology: &Topology, jobs: &[JobSpec]) -> Result<(), String> {
        let known = recurring(jobs);
        self.assigned = vec![BTreeSet::new(); topology.rack_count()];
        self.held = vec![Bytes::ZERO; topology.rack_count()];
        if known.is_empty() {
            return Ok(());
        }
        let cluster = Cluster::of(topology, self.elephant);
        let planned = guidelines(
            &known,
            &cluster,
            CorralPlanOptions {
                scenario: self.options.objective.unwrap_or(scenario(&known)),
                imbalance_percent: self.options.imbalance,
                provisioning: self.options.provisioning,
            },
        );
        self.plan = planned.into_iter().map(|p| (p.job, (p.racks, p.priority))).collect();
        Ok(())
    }

    fn place_data(&mut self, view: &dyn View, job: JobId) -> Vec<Vec<Block>> {
        let Some((racks, _)) = self.plan.get(&job).filter(|_| self.places_data) else {
            return hdfs::blocks(view, job, self.common.seed);
        };
        let (seed, spec) = (hdfs::mixed(self.common.seed, job), view.job(job));
        let held = &mut self.held;
        let racks_of = |s: usize| {
            let stage = &spec.stages[s];
            replicas::corral(
                stage.tasks,
                Bytes(stage.input.0 / u64::from(stage.tasks)),
                racks,
                held,
                seed,
            )
        };
        hdfs::in_racks(view, job, self.common.seed, racks_of)
    }

    fn slowstart(&self, _: &dyn View, _: JobId) -> u32 {
        self.common.slowstart
    }

    fn submitted(&mut self, _: &dyn View, job: JobId) {
        let Some((racks, priority)) = self.plan.get(&job) else {
            self.unplanned.insert(job);
            return;
        };
        for r in racks {
            self.assigned[r.index()].insert((*priority, job));
        }
    }

    fn offer(&mut self, view: &dyn View, rack: RackId) -> Option<Pick> {
        if self.options.ad_hoc == AdHoc::Fair && self.owed(view, rack) {
            return self.of_others(view, rack).or_else(|| self.of_planned(view, rack));
        }
        self.of_planned(view, rack).or_else(|| self.of_others(view, rack))
    }

    fn wake_at(&self) -> Option<Time> {
        self.waits.wake_at()
    }

    fn woken(&mut self, now: Time) {
        self.waits.woken(now);
    }

    fn started(&mut self, view: &dyn View, pick: Pick, _: RackId, near: Locality) {
        self.waits.started(view, pick, near);
    }

    fn stage_finished(&mut self, view: &dyn View, job: JobId, _: usize) {
        if is_over(view, job) {
            self.forget(job);
        }
    }

    fn cluster_changed(&mut self, view: &dyn View) {
        let plans = self.plan.iter().map(|(&job, (racks, _))| (job, &racks[..]));
        for (job, why) in lost_plans(view, plans, self.common.lost_percent) {
            self.plan.remove(&job);
            let open = self.assigned.iter().flatten().any(|e| e.1 == job);
            self.forget(job);
            self.unplanned.extend(open.then_some(job));
            self.dropped.push((job, why));
        }
    }

    fn guideline(&self, job: JobId, _: usize) -> Option<&[RackId]> {
        self.plan.get(&job).map(|p| p.0.as_slice())
    }

    fn fallbacks(&self) -> &[(JobId, String)] {
        &self.dropped
    }
}
