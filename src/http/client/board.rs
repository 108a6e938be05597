//! Tells a daemon, now and then, how far jobs are: for those who watch it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::Client;
use crate::api::wire::{Job, JobsReport};
use crate::scheduler::record::{JobRecord, Snapshot, TaskCounts};

/// Time between two reports.
const EVERY: Duration = Duration::from_millis(250);
/// The most jobs of one report, some 165 bytes each: a daemon takes bodies of 4 MiB.
const JOBS: usize = 5000;

/// A thread that reports. A daemon that answers slowly does not hold up the scheduler: it hears
/// less often.
pub struct Reporter {
    to: Option<SyncSender<Snapshot>>,
    thread: Option<JoinHandle<()>>,
    last: Option<Instant>,
}

impl Reporter {
    /// Of jobs that work on `slots` slots. Without a thread nothing is sent.
    pub fn new(client: Arc<Client>, workload: &str, slots: u64) -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut work = Work {
            client,
            run: since_1970.as_nanos() as u64,
            workload: workload.into(),
            slots,
            told: BTreeMap::new(),
        };
        let (to, snapshots) = sync_channel(1);
        let body = move || snapshots.into_iter().for_each(|s| work.report(&s));
        let thread = std::thread::Builder::new().name("reports".into()).spawn(body).ok();
        Self { to: Some(to), thread, last: None }
    }

    /// Reports jobs, at most four times a second. A report that is lost changes no decision of the
    /// daemon.
    pub fn tell(&mut self, s: &Snapshot) {
        if self.last.is_some_and(|t| t.elapsed() < EVERY) {
            return;
        }
        self.last = Some(Instant::now());
        // While the thread has two to send, this one is left out.
        self.to.iter().for_each(|to| drop(to.try_send(s.clone())));
    }

    /// Reports how jobs are at the end, and waits until that was sent.
    pub fn finish(mut self, s: &Snapshot) {
        if let Some(to) = self.to.take() {
            let _ = to.send(s.clone());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the daemon has heard of the jobs of a run.
struct Work {
    client: Arc<Client>,
    run: u64,
    workload: String,
    slots: u64,
    /// By number, as they were sent.
    told: BTreeMap<u32, Job>,
}

impl Work {
    /// Tells what has changed, in as many reports as it needs.
    fn report(&mut self, s: &Snapshot) {
        let changed: Vec<Job> = s
            .jobs
            .iter()
            .zip(&s.tasks)
            .map(job)
            .filter(|j| self.told.get(&j.id) != Some(j))
            .collect();
        // One without a job is about the slots.
        let parts =
            changed.chunks(JOBS).map(<[Job]>::to_vec).chain(changed.is_empty().then(Vec::new));
        for jobs in parts.collect::<Vec<_>>() {
            if !self.send(s, jobs) {
                return;
            }
        }
    }

    /// Sends one report; returns whether it was taken.
    fn send(&mut self, s: &Snapshot, jobs: Vec<Job>) -> bool {
        let (workload, policy) = (self.workload.clone(), s.policy.clone());
        let report = JobsReport {
            run: self.run,
            now_ns: s.now.0,
            workload,
            policy,
            slots: self.slots,
            jobs,
        };
        let body = serde_json::to_string(&report).unwrap_or_default();
        match self.client.ask("PUT", "/api/v1/jobs", &[], &body) {
            Ok((204, _)) => {
                self.told.extend(report.jobs.into_iter().map(|j| (j.id, j)));
                return true;
            }
            Ok((status, text)) => tracing::debug!("jobs are not told: status {status}: {text}"),
            Err(e) => tracing::debug!("jobs are not told: {e}"),
        }
        false
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
