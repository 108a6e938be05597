//! Tells a daemon, now and then, how far jobs are: for those who watch it.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::Client;
use crate::api::wire::{Job, JobsReport};
use crate::scheduler::record::{JobRecord, Snapshot, TaskCounts};

/// Time between two reports.
const EVERY: Duration = Duration::from_millis(250);

/// What a daemon has been told of the jobs of a run.
pub struct Reporter {
    client: Arc<Client>,
    run: u64,
    workload: String,
    slots: u64,
    /// By number, as they were told.
    told: Vec<Job>,
    last: Option<Instant>,
}

impl Reporter {
    /// Of jobs that work on `slots` slots.
    pub fn new(client: Arc<Client>, workload: &str, slots: u64) -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { client, run: since_1970.as_nanos() as u64, workload: workload.into(), slots, told: vec![], last: None }
    }

    /// Tells what has changed, if that is due or the `last` word. A daemon that does not hear it misses nothing that it decides by.
    pub fn tell(&mut self, s: &Snapshot, last: bool) {
        if !last && self.last.is_some_and(|t| t.elapsed() < EVERY) {
            return;
        }
        self.last = Some(Instant::now());
        let all: Vec<Job> = s.jobs.iter().zip(&s.tasks).map(job).collect();
        let jobs = all.iter().enumerate().filter(|(k, j)| self.told.get(*k) != Some(j)).map(|(_, j)| j.clone()).collect();
        let (workload, policy) = (self.workload.clone(), s.policy.clone());
        let report = JobsReport { run: self.run, now_ns: s.now.0, workload, policy, slots: self.slots, jobs };
        let body = serde_json::to_string(&report).unwrap_or_default();
        match self.client.ask("PUT", "/api/v1/jobs", &[], &body) {
            Ok((204, _)) => self.told = all,
            Ok((status, text)) => tracing::debug!("jobs are not told: status {status}: {text}"),
            Err(e) => tracing::debug!("jobs are not told: {e}"),
        }
    }
}

fn job((j, t): (&JobRecord, &TaskCounts)) -> Job {
    Job {
        id: j.id.0,
        name: j.name.clone(),
        queue: j.queue,
        tasks: j.tasks,
        tasks_finished: t.finished,
        computing: t.computing,
        waiting: t.fetching,
        arrival_ns: j.arrival.0,
        started_ns: j.started.map(|t| t.0),
        finished_ns: j.finished.map(|t| t.0),
    }
}
