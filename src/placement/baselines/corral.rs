//! Corral's cluster scheduler, which carries a plan out; and LocalShuffle, which has Corral's tasks and HDFS's data.
//!
//! Corral (SIGCOMM 2015) section 3.1: every planned job has racks R_j and a priority p_j. Its blocks have a replica in R_j, its tasks run
//! in R_j only, and a free slot goes to the job of highest priority that is assigned the rack; within the rack, delay scheduling waits
//! for the host of a block. Jobs that were not planned have HDFS's data and delay scheduling, on what the others leave. When more
//! than a share of the hosts of R_j is gone, the guideline is dropped for that job.

use std::collections::{BTreeMap, BTreeSet};

use super::delay::Waits;
use super::{first_of, hdfs};
use crate::ids::{JobId, RackId};
use crate::placement::cluster::Cluster;
use crate::placement::corral::{self, Options, Scenario};
use crate::placement::policy::{Block, Locality, Pick, Placement, View, startable};
use crate::placement::replicas;
use crate::placement::spec::Spec;
use crate::topology::Topology;
use crate::units::{Bytes, Time};
use crate::workload::jobs::JobSpec;

/// The policy.
#[derive(Clone, Debug)]
pub struct Corral {
    name: &'static str,
    /// Blocks go where the plan says; else this is LocalShuffle.
    places_data: bool,
    spec: Spec,
    elephant: Bytes,
    /// R_j and p_j.
    plan: BTreeMap<JobId, (Vec<RackId>, u32)>,
    /// By rack: planned jobs that were submitted and have not finished, by priority.
    assigned: Vec<BTreeSet<(u32, JobId)>>,
    /// By rack: planned data.
    held: Vec<Bytes>,
    waits: Waits,
    dropped: Vec<(JobId, String)>,
}

impl Corral {
    /// Corral.
    pub fn new(spec: Spec, elephant: Bytes) -> Self {
        Self::with("corral", true, spec, elephant)
    }

    /// LocalShuffle.
    pub fn local_shuffle(spec: Spec, elephant: Bytes) -> Self {
        Self::with("local-shuffle", false, spec, elephant)
    }

    fn with(name: &'static str, places_data: bool, spec: Spec, elephant: Bytes) -> Self {
        let waits = Waits::new(spec.wait.0, spec.wait.1);
        let (plan, assigned, held, dropped) = (BTreeMap::new(), Vec::new(), Vec::new(), Vec::new());
        Self { name, places_data, spec, elephant, plan, assigned, held, waits, dropped }
    }

    fn forget(&mut self, job: JobId) {
        self.assigned.iter_mut().for_each(|a| a.retain(|e| e.1 != job));
    }
}

/// Batch if all of the jobs arrive at once.
pub fn scenario(jobs: &[JobSpec]) -> Scenario {
    if jobs.windows(2).all(|w| w[0].arrival == w[1].arrival) { Scenario::Batch } else { Scenario::Online }
}

/// The jobs that are known ahead.
pub fn recurring(jobs: &[JobSpec]) -> Vec<JobSpec> {
    jobs.iter().filter(|j| j.recurring).cloned().collect()
}

/// Whether a job has nothing left to do.
pub fn is_over(view: &dyn View, job: JobId) -> bool {
    (0..view.job(job).stages.len()).all(|s| view.counts(job, s).pending + view.counts(job, s).running == 0)
}

/// Whether more than `percent` of the hosts of these racks are down.
pub fn gone(view: &dyn View, racks: &[RackId], percent: u32) -> bool {
    let all: u64 = racks.iter().map(|r| u64::from(view.topology().racks[r.index()].hosts)).sum();
    let up: u64 = racks.iter().map(|&r| u64::from(view.hosts_up(r))).sum();
    (all - up) * 100 > all * u64::from(percent)
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
        let planned = corral::guidelines(
            &known,
            &cluster,
            Options {
                scenario: self.spec.planner.objective.unwrap_or(scenario(&known)),
                imbalance_percent: self.spec.planner.imbalance_percent,
                provisioning: self.spec.planner.provisioning,
            },
        );
        self.plan = planned.into_iter().map(|p| (p.job, (p.racks, p.priority))).collect();
        Ok(())
    }

    fn place_data(&mut self, view: &dyn View, job: JobId) -> Vec<Vec<Block>> {
        let Some((racks, _)) = self.plan.get(&job).filter(|_| self.places_data) else { return hdfs::blocks(view, job, self.spec.seed) };
        let (seed, spec) = (hdfs::mixed(self.spec.seed, job), view.job(job));
        let held = &mut self.held;
        let racks_of = |s: usize| {
            let stage = &spec.stages[s];
            replicas::corral(stage.tasks, Bytes(stage.input.0 / u64::from(stage.tasks)), racks, held, seed)
        };
        hdfs::in_racks(view, job, self.spec.seed, racks_of)
    }

    fn slowstart(&self, _: &dyn View, _: JobId) -> u32 {
        self.spec.slowstart
    }

    fn submitted(&mut self, _: &dyn View, job: JobId) {
        let Some((racks, priority)) = self.plan.get(&job) else { return };
        for r in racks {
            self.assigned[r.index()].insert((*priority, job));
        }
    }

    fn offer(&mut self, view: &dyn View, rack: RackId) -> Option<Pick> {
        let (waits, plan) = (&mut self.waits, &self.plan);
        // In its racks a job waits for a host; a block that is in none of them is worth no wait.
        let mut near = |job: JobId, s: usize| match view.locality(job, s, rack)? {
            Locality::Remote => Some(()),
            near => waits.may(view.now(), job, near).then_some(()),
        };
        for &(_, job) in self.assigned.get(rack.index()).into_iter().flatten() {
            if let Some(stage) = startable(view, job).find(|&s| near(job, s).is_some()) {
                return Some(Pick { job, stage });
            }
        }
        let free =
            |job: JobId, s: usize| !plan.contains_key(&job) && view.locality(job, s, rack).is_some_and(|n| waits.may(view.now(), job, n));
        first_of(view, free)
    }

    fn wake_at(&self) -> Option<Time> {
        self.waits.wake_at()
    }

    fn woken(&mut self, now: Time) {
        self.waits.woken(now);
    }

    fn started(&mut self, view: &dyn View, pick: Pick, _: RackId, near: Locality) {
        if !view.blocks(pick.job, pick.stage).is_empty() {
            self.waits.started(view.now(), pick.job, near);
        }
    }

    fn stage_finished(&mut self, view: &dyn View, job: JobId, _: usize) {
        if is_over(view, job) {
            self.forget(job);
        }
    }

    fn cluster_changed(&mut self, view: &dyn View) {
        let lost = self.spec.lost_percent;
        let over: Vec<JobId> = self.plan.iter().filter(|(_, (racks, _))| gone(view, racks, lost)).map(|p| *p.0).collect();
        for job in over {
            self.plan.remove(&job);
            self.forget(job);
            self.dropped.push((job, format!("more than {lost} % of the hosts of its racks are down")));
        }
    }

    fn guideline(&self, job: JobId, _: usize) -> Option<&[RackId]> {
        self.plan.get(&job).map(|p| p.0.as_slice())
    }

    fn fallbacks(&self) -> &[(JobId, String)] {
        &self.dropped
    }
}
