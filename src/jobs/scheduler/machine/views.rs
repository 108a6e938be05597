//! What a scheduler shows.

use super::TaskScheduler;
use crate::ids::JobId;
use crate::placement::decision::{Keep, KeptDecisions};
use crate::placement::policy::Unanswered;
use crate::scheduler::record::{
    EndedJobs, Explained, JobRecord, SchedulerCounters, SchedulerSnapshot, TaskCounts, TaskRun,
};
use crate::scheduler::stage::Doing;
use crate::scheduler::state::{JobState, SchedulerState};

impl TaskScheduler {
    /// Everything that the API and the reports show, but for what was taken ([`Self::take_ended`]).
    /// O(jobs log jobs + tasks of stages that run).
    pub fn snapshot(&self) -> SchedulerSnapshot {
        let held = self.state.jobs.iter().map(|(_, j)| (record(j), tasks(j)));
        let ended = self
            .ended
            .jobs
            .iter()
            .map(|j| (j.clone(), TaskCounts { finished: j.tasks, ..TaskCounts::default() }));
        let mut all: Vec<(JobRecord, TaskCounts)> = ended.chain(held).collect();
        all.sort_by_key(|j| j.0.id);
        let (jobs, tasks) = all.into_iter().unzip();
        SchedulerSnapshot {
            now: self.state.now,
            policy: self.policy.name().into(),
            jobs,
            tasks,
            free_slots: self.state.slots.free(),
            computing: self.state.computing,
            fetching: self.state.fetching,
            coflows: self.state.transfers.len(),
            counters: self.counters(),
            fallbacks: self.policy.fallbacks().to_vec(),
            first_fallback: self.policy.unanswered().first.map(Into::into),
        }
    }

    /// Every attempt of a task that has ended, in the order of the ends, but for those that were
    /// taken.
    pub fn timeline(&self) -> &[TaskRun] {
        &self.ended.tasks
    }

    /// What has ended since the last call: for runs that are too long to keep it all.
    pub fn take_ended(&mut self) -> EndedJobs {
        std::mem::take(&mut self.ended)
    }

    /// From now on keeps why the tasks of a job start where they do.
    pub fn explain(&mut self, job: JobId) {
        self.explains = Some(job);
        self.keep_decisions(Keep::Job(job));
    }

    /// From now on keeps what the policy says of where it puts tasks of these jobs.
    pub fn keep_decisions(&mut self, keep: Keep) {
        self.policy.note_decisions(keep);
        self.decisions = KeptDecisions::of(keep);
    }

    /// What the policy said of where it put tasks.
    pub fn decisions(&self) -> &KeptDecisions {
        &self.decisions
    }

    /// Why the tasks of the job that is explained started where they did, in the order of their
    /// starts.
    pub fn explained(&self) -> &[Explained] {
        &self.explained
    }

    /// Sums over the run.
    pub fn counters(&self) -> SchedulerCounters {
        let Unanswered { offers, late, .. } = self.policy.unanswered();
        SchedulerCounters { fallbacks: offers, late_answers: late, ..self.counters }
    }

    /// The books.
    pub fn state(&self) -> &SchedulerState {
        &self.state
    }

    /// Whether every job that was submitted has finished.
    pub fn is_idle(&self) -> bool {
        self.counters.jobs_finished == self.state.jobs.total() as u64
    }
}

fn tasks(j: &JobState) -> TaskCounts {
    let mut all = TaskCounts::default();
    for s in &j.stages {
        let running = u64::from(s.counts.running);
        let computing = if running > 0 {
            s.tasks.iter().filter(|t| t.doing == Doing::Computing).count() as u64
        } else {
            0
        };
        all.finished += u64::from(s.counts.finished);
        all.computing += computing;
        all.fetching += running - computing;
    }
    all
}

/// The account of a job.
pub(super) fn record(j: &JobState) -> JobRecord {
    let a = &j.account;
    JobRecord {
        started: a.started,
        finished: a.finished,
        jct: a.finished.map(|t| t.since(j.spec.arrival)),
        slot_time: a.slot_time,
        shuffled: a.shuffled,
        read: a.read,
        between_racks: a.between_racks,
        shuffle_ccts: j.stages.iter().filter_map(|s| s.shuffle).map(|(a, b)| b.since(a)).collect(),
        near: a.near,
        reruns: a.reruns,
        ..JobRecord::unseen(&j.spec)
    }
}
