//! The result of a run of jobs, live or simulated.

use serde::{Deserialize, Serialize};

use crate::coflows::CoflowRecord;
use crate::control::record::Tampered;
use crate::fabric::meter::Utilisation;
use crate::ids::JobId;
use crate::placement::decision::PlacementDecision;
use crate::runtime::report::caveats::{Caveat, CaveatFacts, Given};
use crate::runtime::report::{ResultOrigin, RunEnd, RunMachine, RunResult, Summary};
use crate::runtime::spans::SpanList;
use crate::scheduler::record::{
    Explained, JobRecord, SchedulerCounters, SchedulerSnapshot, TaskRun,
};
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};

/// Everything that a run of jobs measured; what `--json` writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JobsResult {
    /// Where the result comes from.
    pub origin: ResultOrigin,
    /// `timed`, `netlink` or `sim`.
    pub mechanism: String,
    /// Name of the topology.
    pub topology: String,
    /// Name of the policy.
    pub policy: String,
    /// Name of the placement policy.
    pub placement: String,
    /// Name of the list of jobs.
    pub workload: String,
    /// `host` or `rack`: between what flows were counted.
    pub grain: String,
    /// Whether the run went outside the scale that this machine can really carry.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
    /// Why the run ended.
    #[serde(default)]
    pub end: RunEnd,
    /// The instant, by the daemon's clock and its event log, from which this result counts its
    /// times; only of live runs.
    #[serde(default, rename = "zero_ns", skip_serializing_if = "Option::is_none")]
    pub zero: Option<Time>,
    /// Since when, and until when, another process changed the network under the run: what was
    /// measured may not be what it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tampered: Option<Tampered>,
    /// Instants at which something happened; only in simulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// Every job, by id.
    pub jobs: Vec<JobRecord>,
    /// The sums.
    pub summary: JobsSummary,
    /// The network's sums.
    pub network: Summary,
    /// Every coflow, by id.
    pub coflows: Vec<CoflowRecord>,
    /// Every attempt of a task, by its end.
    pub timeline: Vec<TaskRun<String>>,
    /// Why the tasks of one job started where they did, if asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explained: Vec<Explained<String>>,
    /// Where the placement policy put tasks of that job, and why, if it says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<PlacementDecision>,
    /// What links carried over time; of simulations only if asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<Utilisation>,
    /// The machine: of live runs what it is and what it did; of simulations what the run took, if
    /// asked for. All else is the same on every machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<RunMachine>,
    /// Why the run is not, or not wholly, what its name says; empty if nothing speaks against it.
    #[serde(default)]
    pub caveats: Vec<Caveat>,
}

/// The sums of a run of jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JobsSummary {
    /// Jobs that finished.
    pub finished: usize,
    /// Jobs that did not.
    pub unfinished: usize,
    /// Time from the first arrival to the last finish.
    #[serde(rename = "makespan_ns")]
    pub makespan: Span,
    /// Mean job completion time.
    #[serde(rename = "average_jct_ns")]
    pub average_jct: Span,
    /// Median job completion time (nearest rank).
    #[serde(rename = "median_jct_ns")]
    pub median_jct: Span,
    /// 95th percentile of the job completion times.
    #[serde(rename = "p95_jct_ns")]
    pub p95_jct: Span,
    /// Mean time of a shuffle over the network, from its first flow to its last; a job that
    /// finished and sent nothing counts as zero, so that a policy which sends less does not look
    /// worse.
    #[serde(rename = "average_cct_ns")]
    pub average_cct: Span,
    /// Median of these.
    #[serde(rename = "median_cct_ns")]
    pub median_cct: Span,
    /// 95th percentile of these.
    #[serde(rename = "p95_cct_ns")]
    pub p95_cct: Span,
    /// Jobs with a shuffle over the network.
    #[serde(rename = "jobs_sending", default)]
    pub sending: usize,
    /// Time that tasks held slots.
    #[serde(rename = "slot_time_ns")]
    pub slot_time: Span,
    /// Share of the bytes between racks that went over circuits, 0..=1.
    pub ocs_share: f64,
    /// Bytes that the scheduler asked of the network: shuffles and reads.
    #[serde(rename = "planned_bytes")]
    pub bytes_planned: Bytes,
    /// Bytes between racks, among these.
    #[serde(rename = "between_racks_bytes")]
    pub bytes_between_racks: Bytes,
    /// Bytes that arrived.
    #[serde(rename = "received_bytes")]
    pub bytes_received: Bytes,
    /// Tasks with a block that ran on its host, in its rack, elsewhere.
    pub near: [u64; 3],
    /// Starts of tasks beyond one a task.
    #[serde(default)]
    pub reruns: u64,
    /// The scheduler's counters.
    pub counters: SchedulerCounters,
    /// Jobs whose guideline was dropped, and why. Older results call it `fallbacks`.
    #[serde(rename = "guidelines_dropped", alias = "fallbacks")]
    pub fallbacks: Vec<(JobId, String)>,
    /// Why the fallback decided the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_fallback: Option<String>,
}

/// What the sums over jobs are made of.
#[derive(Clone, Debug, Default)]
pub struct JobsTally {
    jcts: SpanList,
    ccts: SpanList,
    sending: usize,
    unfinished: usize,
    /// First arrival and last finish.
    first: Option<Time>,
    last: Option<Time>,
    slot_time: Span,
    planned: Bytes,
    between_racks: Bytes,
    near: [u64; 3],
    reruns: u64,
}

impl JobsTally {
    /// Counts a job.
    pub fn add(&mut self, j: &JobRecord) {
        match j.jct {
            Some(jct) => self.jcts.push(jct),
            None => self.unfinished += 1,
        }
        let none = j.shuffle_ccts.is_empty().then_some(Span::ZERO).filter(|_| j.jct.is_some());
        j.shuffle_ccts.iter().copied().chain(none).for_each(|cct| self.ccts.push(cct));
        self.sending += usize::from(!j.shuffle_ccts.is_empty());
        self.first = self.first.into_iter().chain([j.arrival]).min();
        self.last = self.last.max(j.finished);
        self.slot_time += j.slot_time;
        self.planned = self.planned.saturating_add(j.shuffled).saturating_add(j.read);
        self.between_racks = self.between_racks.saturating_add(j.between_racks);
        self.near.iter_mut().zip(j.near).for_each(|(sum, n)| *sum += u64::from(n));
        self.reruns += u64::from(j.reruns);
    }
}

impl JobsSummary {
    /// Of jobs that were counted before, the scheduler's last snapshot with the other ones, and
    /// what the network measured. O(jobs).
    pub fn new(mut jobs: JobsTally, end: &SchedulerSnapshot, network: &Summary) -> Self {
        end.jobs.iter().for_each(|j| jobs.add(j));
        let first = jobs.first.unwrap_or(Time::ZERO);
        let last = jobs.last.unwrap_or(first);
        Self {
            finished: jobs.jcts.len(),
            unfinished: jobs.unfinished,
            makespan: last.since(first),
            average_jct: jobs.jcts.mean(),
            median_jct: jobs.jcts.percentile(50),
            p95_jct: jobs.jcts.percentile(95),
            average_cct: jobs.ccts.mean(),
            median_cct: jobs.ccts.percentile(50),
            p95_cct: jobs.ccts.percentile(95),
            sending: jobs.sending,
            slot_time: jobs.slot_time,
            ocs_share: network.ocs_share,
            bytes_planned: jobs.planned,
            bytes_between_racks: jobs.between_racks,
            bytes_received: network.bytes_received,
            near: jobs.near,
            reruns: jobs.reruns,
            counters: end.counters,
            fallbacks: end.fallbacks.clone(),
            first_fallback: end.first_fallback.clone(),
        }
    }
}

impl JobsResult {
    /// Puts together what the scheduler and the network say at the end of a run.
    pub fn new(
        end: SchedulerSnapshot,
        timeline: &[TaskRun],
        topology: &Topology,
        grain: &str,
        network: RunResult,
    ) -> Self {
        Self::summed(JobsTally::default(), end, timeline, topology, grain, network)
    }

    /// The same where sums are over more jobs than are listed: those that were counted before, too.
    pub fn summed(
        before: JobsTally,
        end: SchedulerSnapshot,
        timeline: &[TaskRun],
        topology: &Topology,
        grain: &str,
        network: RunResult,
    ) -> Self {
        Self {
            origin: network.origin,
            mechanism: network.mechanism,
            topology: network.topology,
            policy: network.policy,
            workload: network.workload,
            grain: grain.into(),
            forced: network.forced,
            end: network.end,
            zero: network.zero,
            tampered: network.tampered,
            events: network.events,
            summary: JobsSummary::new(before, &end, &network.summary),
            placement: end.policy,
            jobs: end.jobs,
            network: network.summary,
            coflows: network.coflows,
            timeline: timeline.iter().map(|t| t.named(topology)).collect(),
            explained: Vec::new(),
            decisions: Vec::new(),
            utilisation: network.utilisation,
            machine: network.machine,
            caveats: network.caveats,
        }
    }
}

impl JobsResult {
    /// The same with its caveats, which depend on all else that the result holds.
    #[must_use]
    pub fn judged(mut self, given: &Given) -> Self {
        let (s, n) = (&self.summary, &self.network);
        let facts = CaveatFacts {
            what: "jobs",
            ends: (self.end, s.finished, s.unfinished, None),
            stats: &n.stats,
            offers: Some((&s.counters, s.first_fallback.as_deref())),
            live: self.zero.is_some(),
            forced: self.forced,
            tampered: self.tampered.as_ref(),
            misdelivered: n.misdelivered,
            faulty_ports: n.faulty_ports,
            machine: self.machine.as_ref(),
            given,
        };
        self.caveats = facts.caveats();
        self
    }
}
