//! Tells a daemon, now and then, how far jobs are: for those who watch it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::Client;
use crate::api::wire::{self, Job, JobsReport};
use crate::placement::decision::{MOST_KEPT, PlacementDecision};
use crate::scheduler::record::{JobRecord, SchedulerSnapshot, TaskCounts};

/// Time between two reports.
const EVERY: Duration = Duration::from_millis(250);
/// The most jobs of one report, some 165 bytes each: a daemon takes bodies of 4 MiB.
const JOBS: usize = 5000;
/// The most decisions of one report, some 7 kB each at most.
const DECISIONS: usize = 400;

/// A thread that reports. A daemon that answers slowly does not hold up the scheduler: it hears
/// less often.
pub struct Reporter {
    to: Option<SyncSender<(SchedulerSnapshot, Vec<PlacementDecision>)>>,
    thread: Option<JoinHandle<()>>,
    last: Option<Instant>,
    /// Decisions that were not reported yet.
    decisions: Vec<PlacementDecision>,
}

impl Reporter {
    /// Of jobs that work on `slots` slots. Without a thread nothing is sent.
    pub fn new(client: Arc<Client>, workload: &str, slots: u64) -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut work = BoardWriter {
            client,
            run: since_1970.as_nanos() as u64,
            workload: workload.into(),
            slots,
            told: BTreeMap::new(),
        };
        let (to, told) = sync_channel::<(SchedulerSnapshot, Vec<PlacementDecision>)>(1);
        let body = move || told.into_iter().for_each(|(s, decisions)| work.report(&s, &decisions));
        let thread = std::thread::Builder::new().name("reports".into()).spawn(body).ok();
        Self { to: Some(to), thread, last: None, decisions: Vec::new() }
    }

    /// Reports jobs, at most four times a second, and the decisions since the last call. A report
    /// that is lost changes no decision of the daemon.
    pub fn tell(&mut self, s: &SchedulerSnapshot, decisions: Vec<PlacementDecision>) {
        self.keep(decisions);
        if self.last.is_some_and(|t| t.elapsed() < EVERY) {
            return;
        }
        self.last = Some(Instant::now());
        // While the thread has two to send, this one is left out.
        let all = (s.clone(), std::mem::take(&mut self.decisions));
        let refused = self.to.as_ref().and_then(|to| to.try_send(all).err());
        if let Some(TrySendError::Full((_, decisions))) = refused {
            self.decisions = decisions;
        }
    }

    /// Keeps the newest decisions until they are reported.
    fn keep(&mut self, decisions: Vec<PlacementDecision>) {
        self.decisions.extend(decisions);
        self.decisions.drain(..self.decisions.len().saturating_sub(MOST_KEPT));
    }

    /// Reports how jobs are at the end, and waits until that was sent.
    pub fn finish(mut self, s: &SchedulerSnapshot) {
        if let Some(to) = self.to.take() {
            let _ = to.send((s.clone(), std::mem::take(&mut self.decisions)));
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the daemon has heard of the jobs of a run.
struct BoardWriter {
    client: Arc<Client>,
    run: u64,
    workload: String,
    slots: u64,
    /// By number, as they were sent.
    told: BTreeMap<u32, Job>,
}

impl BoardWriter {
    /// Tells what has changed, in as many reports as it needs.
    fn report(&mut self, s: &SchedulerSnapshot, decisions: &[PlacementDecision]) {
        let changed: Vec<Job> = s
            .jobs
            .iter()
            .zip(&s.tasks)
            .map(job)
            .filter(|j| self.told.get(&j.id) != Some(j))
            .collect();
        // One without a job is about the slots.
        let mut jobs = changed.chunks(JOBS);
        let mut decisions = decisions.chunks(DECISIONS);
        let mut first = true;
        loop {
            let (some, made) = (jobs.next(), decisions.next());
            if !first && some.is_none() && made.is_none() {
                return;
            }
            first = false;
            let made = made.unwrap_or_default().iter().map(Into::into).collect();
            if !self.send(s, some.unwrap_or_default().to_vec(), made) {
                return;
            }
        }
    }

    /// Sends one report; returns whether it was taken.
    fn send(
        &mut self,
        s: &SchedulerSnapshot,
        jobs: Vec<Job>,
        decisions: Vec<wire::Decision>,
    ) -> bool {
        let (workload, policy) = (self.workload.clone(), s.policy.clone());
        let report = JobsReport {
            run: self.run,
            now_ns: s.now.0,
            workload,
            policy,
            slots: self.slots,
            jobs,
            decisions,
        };
        let body = serde_json::to_string(&report).unwrap_or_default();
        match self.client.ask("PUT", "/api/v1/jobs", &[], &body) {
            Ok((204, _)) => {
                self.told.extend(report.jobs.into_iter().map(|j| (j.id, j)));
                return true;
            }
            Ok((status, text)) => tracing::debug!("jobs are not reported: status {status}: {text}"),
            Err(e) => tracing::debug!("jobs are not reported: {e}"),
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
