//! A run of an application as a result of jobs, which `report`, `plot` and `compare` read: Spark's
//! jobs, the tasks of its stages on their slots, and its shuffles as coflows.

use super::shown::{SparkOutcome, SparkShuffle};
use super::{CliError, SparkRun};
use crate::api::wire;
use crate::cli::origin;
use crate::client::counters::ControllerCounters;
use crate::client::{self, Client};
use crate::coflows::CoflowRecord;
use crate::coflows::bounds::hybrid_racks;
use crate::config;
use crate::demand::DemandMatrix;
use crate::ids::{CoflowId, JobId, RackId};
use crate::placement::locality::Locality;
use crate::runtime::jobs::report::JobsResult;
use crate::runtime::report::caveats::Given;
use crate::runtime::report::{ResultNames, ResultOrigin, RunResult};
use crate::scheduler::TaskRef;
use crate::scheduler::record::{
    JobRecord, SchedulerCounters as Scheduled, SchedulerSnapshot, TaskRun,
};
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};
use crate::workload::spark_log::{Past, SparkLog, history};

/// What the network is, and what it had counted before the application.
pub struct NetworkBefore {
    topology: Topology,
    policy: crate::runtime::settings::RunPlan,
    before: ControllerCounters,
    started_at: Option<String>,
    /// The zero of its clock, in milliseconds since 1970.
    epoch_ms: u64,
}

impl NetworkBefore {
    /// Before an application begins.
    ///
    /// # Errors
    /// The network does not answer.
    pub fn read(client: &Client) -> Result<Self, CliError> {
        let topology: wire::Topology = client::parse(&client.get("/api/v1/topology")?)?;
        let topology = Topology::try_from(&topology)
            .map_err(|e| CliError::Failed(format!("the network's topology: {e}")))?;
        let policy = client.get("/api/v1/policy")?;
        let policy = config::read_policy(&policy, "the network's policy")?;
        let stats: wire::Stats = client::parse(&client.get("/api/v1/stats")?)?;
        let epoch = stats.started_at.as_deref().and_then(origin::ms_of).unwrap_or_default();
        let started_at = origin::here_and_now(&ResultOrigin::default()).started_at;
        Ok(Self {
            topology,
            policy,
            before: ControllerCounters::read(client)?,
            started_at,
            epoch_ms: epoch,
        })
    }

    /// The result once it has ended.
    ///
    /// # Errors
    /// The network does not answer.
    pub fn result(
        &self,
        client: &Client,
        plan: &SparkRun<'_>,
        log: &SparkLog,
        outcome: &SparkOutcome,
    ) -> Result<JobsResult, CliError> {
        let past = history(log, plan.args.cores as usize);
        let mut clock = ClockOffsets { epoch_ms: self.epoch_ms, zero: Time::ZERO };
        clock.zero = past.first().map_or(self.before.at(), |p| clock.ms(p.submitted_ms));
        let after = ControllerCounters::settled(client)?;
        let mut counted = after.since(&self.before, clock.daemon(after.at()));
        if let Some(t) = &mut counted.tampered {
            let own = |at: Time| clock.daemon(self.before.at() + at.since(Time::ZERO));
            (t.from, t.until) = (own(t.from), own(t.until));
        }
        let coflows: Vec<_> =
            outcome.shuffles.iter().filter_map(|s| coflow(s, &self.topology, clock)).collect();
        let received = coflows.iter().map(|c| c.bytes).fold(Bytes::ZERO, Bytes::saturating_add);
        let settings = config::settings(&self.policy);
        let at = &plan.place;
        let given = match &at.up {
            Some(_) => ResultOrigin::default(),
            None => origin::of(plan.args.topology.as_deref(), Some(&plan.args.policy), None),
        };
        let here = origin::here_and_now(&ResultOrigin { settings, ..given });
        let workload = plan.workload();
        let names = ResultNames {
            mechanism: self.before.mechanism(),
            topology: &self.topology.name,
            policy: &self.policy.policy.name,
            workload: &workload,
        };
        let mut network = RunResult::new(names, coflows, counted, received);
        network.origin = ResultOrigin { started_at: self.started_at.clone(), ..here };
        network.zero = Some(clock.zero);
        let utilisation = format!("/api/v1/utilisation?from_ns={}", clock.zero.0);
        network.utilisation = Some(client::parse(&client.get(&utilisation)?)?);
        let jobs: Vec<JobRecord> =
            past.iter().enumerate().map(|(k, p)| job(k, p, &outcome.shuffles, clock)).collect();
        let starts = past.iter().map(|p| p.attempts.len() as u64).sum();
        let end = SchedulerSnapshot {
            now: network.summary.ended,
            policy: format!("spark-{}", plan.mode.name()),
            jobs,
            tasks: vec![],
            free_slots: 0,
            computing: 0,
            fetching: 0,
            coflows: 0,
            counters: Scheduled { starts, ..Scheduled::default() },
            fallbacks: vec![],
            first_fallback: None,
        };
        let mut result = JobsResult::new(end, &[], &self.topology, "rack", network);
        let tasks = |(k, p): (usize, &Past)| timeline(JobId::from(k), p, clock).collect::<Vec<_>>();
        result.timeline = past.iter().enumerate().flat_map(tasks).collect();
        result.timeline.sort_by_key(|t| (t.ended, t.task));
        Ok(result.judged(&Given::default()))
    }
}

/// From Spark's clock, and the network's, to the time of the result.
#[derive(Clone, Copy)]
struct ClockOffsets {
    epoch_ms: u64,
    zero: Time,
}

impl ClockOffsets {
    /// Of milliseconds since 1970.
    fn ms(self, ms: u64) -> Time {
        self.daemon(Time(ms.saturating_sub(self.epoch_ms).saturating_mul(1_000_000)))
    }

    /// Of the network's time.
    fn daemon(self, at: Time) -> Time {
        Time(at.since(self.zero).0)
    }
}

/// A shuffle as a coflow: as the controller followed it, or, if it was not declared, as the ToRs
/// counted it while its stage read. Nothing if it sent nothing between racks.
fn coflow(s: &SparkShuffle, topology: &Topology, clock: ClockOffsets) -> Option<CoflowRecord> {
    let share =
        |ocs: u64, all: u64| if all == 0 { 0.0 } else { (ocs as f64 / all as f64).min(1.0) };
    if let Some(c) = &s.coflow {
        return Some(CoflowRecord {
            id: CoflowId(c.id),
            name: c.name.clone(),
            flows: c.pairs.len(),
            bytes: Bytes(c.asked_bytes),
            longest_flow: None,
            bytes_between_racks: Bytes(c.asked_bytes),
            ocs_share: share(c.over_ocs_bytes, c.received_bytes),
            arrival: clock.daemon(Time(c.arrival_ns)),
            finished: c.finished_ns.map(|t| clock.daemon(Time(t))),
            cct: c.cct_ns.map(Span),
            lost: c.why.clone(),
            bound: Span(c.bound_ns),
        });
    }
    let mut demand = DemandMatrix::zero(topology.rack_count());
    for (from, to, bytes) in s.pairs() {
        demand.add(RackId(from), RackId(to), bytes);
    }
    let (arrival, took) = (clock.ms(s.started_ms), Span::millis(s.took_ms));
    (s.sent_bytes > 0).then(|| CoflowRecord {
        id: CoflowId(s.stage),
        name: s.name.clone(),
        flows: s.pairs().count(),
        bytes: Bytes(s.sent_bytes),
        longest_flow: None,
        bytes_between_racks: Bytes(s.sent_bytes),
        ocs_share: share(s.over_ocs_bytes, s.sent_bytes),
        arrival,
        finished: Some(arrival + took),
        cct: Some(took),
        lost: None,
        bound: hybrid_racks(&demand, topology),
    })
}

fn job(k: usize, p: &Past, shuffles: &[SparkShuffle], clock: ClockOffsets) -> JobRecord {
    let arrival = clock.ms(p.submitted_ms);
    let finished = p.ended_ms.map(|ms| clock.ms(ms));
    let own: Vec<&SparkShuffle> =
        shuffles.iter().filter(|s| p.attempts.iter().any(|a| a.stage == s.stage)).collect();
    let mut tasks: Vec<(u32, u32)> = p.attempts.iter().map(|a| (a.stage, a.task)).collect();
    tasks.sort_unstable();
    tasks.dedup();
    let sum = |all: &mut dyn Iterator<Item = u64>| Bytes(all.fold(0, u64::saturating_add));
    let held =
        |ms: u64, a: &crate::workload::spark_log::LoggedAttempt| ms + a.ended_ms - a.launched_ms;
    JobRecord {
        id: JobId::from(k),
        name: p.name.clone(),
        queue: 0,
        recurring: false,
        tasks: tasks.len() as u64,
        arrival,
        started: p.attempts.first().map(|a| clock.ms(a.launched_ms)),
        finished,
        jct: finished.map(|t| t.since(arrival)),
        slot_time: Span::millis(p.attempts.iter().fold(0, held)),
        shuffle_bytes: sum(&mut own.iter().map(|s| s.shuffle_bytes)),
        shuffled: sum(&mut own.iter().map(|s| s.remote_read_bytes)),
        read: Bytes::ZERO,
        between_racks: sum(&mut own.iter().map(|s| s.sent_bytes)),
        shuffle_ccts: own.iter().filter(|s| s.sent_bytes > 0).map(|s| s.time()).collect(),
        near: [0; 3],
        reruns: (p.attempts.len() - tasks.len()) as u32,
    }
}

fn timeline(job: JobId, p: &Past, clock: ClockOffsets) -> impl Iterator<Item = TaskRun<String>> {
    p.attempts.iter().map(move |a| {
        let (started, ended) = (clock.ms(a.launched_ms), clock.ms(a.ended_ms));
        TaskRun {
            task: TaskRef { job, stage: a.stage, task: a.task },
            attempt: a.attempt,
            host: a.host.clone(),
            slot: a.slot,
            near: Locality::Host,
            started,
            computes: Some((started + a.waited).min(ended)),
            ended,
            finished: a.finished,
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::units::BitRate;
    use crate::workload::spark_log::LoggedAttempt;

    /// The zero of the result is 1.5 s after 1970, half a second after that of the network.
    const CLOCK: ClockOffsets = ClockOffsets { epoch_ms: 1_000, zero: Time(500_000_000) };

    fn shuffle(sent: u64) -> SparkShuffle {
        let pairs = [json!({"from": 0, "to": 1, "bytes": sent})];
        serde_json::from_value(json!({
            "stage": 5, "attempt": 0, "name": "stage 5 shuffle 1 of a", "shuffles": [1], "tasks": 2,
            "started_ms": 2_000, "took_ms": 300, "shuffle_bytes": 9_000, "remote_read_bytes": 4_000,
            "placed": [], "ran": [], "sent_bytes": sent, "over_ocs_bytes": sent / 4, "pairs": pairs,
        }))
        .unwrap()
    }

    #[test]
    fn a_shuffle_that_was_not_declared_is_what_was_counted_while_its_stage_read() {
        let (rate, half) = (BitRate::mbit(8), Time(500_000_000));
        let t = Topology::uniform("t", 2, 1, rate, rate, vec![]);
        let c = coflow(&shuffle(4_400), &t, CLOCK).unwrap();
        assert_eq!((c.id, c.flows, c.bytes), (CoflowId(5), 1, Bytes(4_400)));
        assert_eq!((c.arrival, c.cct), (half, Some(Span::millis(300))));
        assert!((c.ocs_share - 0.25).abs() < 1e-9 && c.bound >= Span::micros(4_400));
        assert_eq!(coflow(&shuffle(0), &t, CLOCK), None);
    }

    #[test]
    fn a_job_has_the_times_of_its_tasks_and_the_bytes_of_its_shuffles() {
        let run = |task: u32, attempt: u32, launched_ms: u64, finished: bool| LoggedAttempt {
            stage: 5,
            task,
            attempt,
            host: "h1-0".into(),
            slot: 0,
            launched_ms,
            waited: Span::millis(40),
            ended_ms: launched_ms + 100,
            finished,
            shuffle_read: Bytes(7),
        };
        let attempts =
            vec![run(0, 1, 2_000, false), run(1, 1, 2_100, true), run(0, 2, 2_200, true)];
        let (name, submitted_ms, ended_ms) = ("query-0".to_owned(), 1_900, Some(2_350));
        let past = Past { name, submitted_ms, ended_ms, attempts };
        let other = SparkShuffle { stage: 6, ..shuffle(100) };
        let j = job(0, &past, &[shuffle(4_400), other], CLOCK);
        assert_eq!((j.tasks, j.reruns, j.slot_time), (2, 1, Span::millis(300)));
        assert_eq!((j.arrival, j.jct), (Time(400_000_000), Some(Span::millis(450))));
        assert_eq!((j.between_racks, j.shuffle_ccts), (Bytes(4_400), vec![Span::millis(300)]));
        let tasks: Vec<_> = timeline(JobId(0), &past, CLOCK).collect();
        assert_eq!(tasks[0].computes, Some(Time(540_000_000)));
        assert_eq!((tasks[2].attempt, tasks[2].finished, tasks[2].task.stage), (2, true, 5));
    }
}
