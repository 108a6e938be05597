//! Event logs of Apache Spark as jobs: what its jobs, stages and tasks did, and what they shuffled.
//!
//! The file has one JSON object a line, which Spark writes where `spark.eventLog.enabled` is set.
//! Four kinds of events say all that is needed; others are skipped:
//!
//! ```text
//! {"Event":"SparkListenerJobStart","Job ID":0,"Submission Time":<ms>,"Stage Infos":[{"Stage ID":1,"Parent IDs":[0],"RDD Info":[..]}],..}
//! {"Event":"SparkListenerJobEnd","Job ID":0,"Completion Time":<ms>,"Job Result":{"Result":"JobSucceeded"}}
//! {"Event":"SparkListenerStageCompleted","Stage Info":{"Stage ID":0,..}}
//! {"Event":"SparkListenerTaskEnd","Stage ID":0,"Task Info":{"Index":2,..},"Task Metrics":{..},..}
//! ```
//!
//! Source: `JsonProtocol` of Spark, <https://github.com/apache/spark>.
//!
//! A query of Spark SQL is several of Spark's jobs, one a shuffle under adaptive execution: they
//! become one job here, and so does each of Spark's other jobs. A stage that Spark skipped, since
//! its output was there, is the stage that wrote it. Output that another job wrote is read as data
//! blocks. A task computes for as long as it ran without waiting for its shuffle.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::TraceError;
use super::jobs::{EdgeSpec, JobList, JobSpec, MAX_SHARE, StageSpec, TaskTimes};
use crate::ids::JobId;
use crate::text;
use crate::units::{Bytes, Span, Time};

mod history;

pub use history::{LoggedAttempt, Past, history};

/// The longest text that is read.
const MAX_TEXT: usize = 1_000_000_000;
/// The most tasks of a stage.
const MAX_TASKS: usize = 1_000_000;
/// The largest number of bytes, and the longest time in milliseconds, of a task.
const MAX: u64 = 1_000_000_000_000;
/// The latest instant in milliseconds since 1970: more than two centuries from then.
const MAX_INSTANT: u64 = 8_000_000_000_000;

/// What a log says of an application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SparkLog {
    /// In the order of their submission.
    jobs: Vec<LoggedJob>,
    /// Stages that were completed, by Spark's number.
    stages: BTreeMap<u32, LoggedStage>,
    /// By job that ended: when, if it did what it should.
    ended: BTreeMap<u32, Option<u64>>,
    /// Attempts of tasks, in the order of their ends.
    attempts: Vec<history::EndedTask>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct LoggedJob {
    id: u32,
    /// What it becomes a part of.
    unit: JobUnit,
    submitted_ms: u64,
    pool: String,
    stages: Vec<PlannedStage>,
}

/// What becomes one job: a query, or one of Spark's jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum JobUnit {
    Query(u64),
    Job(u32),
}

impl JobUnit {
    fn name(self) -> String {
        match self {
            Self::Query(n) => format!("query-{n}"),
            Self::Job(n) => format!("job-{n}"),
        }
    }
}

/// A stage of a job, which may be skipped.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct PlannedStage {
    #[serde(rename = "Stage ID")]
    id: u32,
    #[serde(rename = "Parent IDs", default)]
    parents: Vec<u32>,
    /// The stage's own data set is the first.
    #[serde(rename = "RDD Info", default)]
    data: Vec<Data>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Data {
    #[serde(rename = "RDD ID")]
    id: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct LoggedStage {
    is_completed: bool,
    /// By partition: the task that computed it last.
    tasks: BTreeMap<u32, LoggedTask>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LoggedTask {
    ms: u64,
    shuffle_read: u64,
    shuffle_written: u64,
    read: u64,
    written: u64,
}

#[derive(Deserialize)]
struct EventKind {
    #[serde(rename = "Event")]
    event: String,
}

#[derive(Deserialize)]
struct JobStart {
    #[serde(rename = "Job ID")]
    id: u32,
    #[serde(rename = "Submission Time")]
    submitted_ms: u64,
    #[serde(rename = "Stage Infos")]
    stages: Vec<PlannedStage>,
    #[serde(rename = "Properties", default)]
    properties: Option<Properties>,
}

#[derive(Default, Deserialize)]
struct Properties {
    #[serde(rename = "spark.sql.execution.id")]
    query: Option<String>,
    #[serde(rename = "spark.scheduler.pool")]
    pool: Option<String>,
}

#[derive(Deserialize)]
struct JobEnd {
    #[serde(rename = "Job ID")]
    id: u32,
    #[serde(rename = "Completion Time")]
    ended_ms: u64,
    #[serde(rename = "Job Result")]
    result: JobEnded,
}

#[derive(Deserialize)]
struct JobEnded {
    #[serde(rename = "Result")]
    result: String,
}

#[derive(Deserialize)]
struct StageCompleted {
    #[serde(rename = "Stage Info")]
    stage: StageInfo,
}

#[derive(Deserialize)]
struct StageInfo {
    #[serde(rename = "Stage ID")]
    id: u32,
    #[serde(rename = "Failure Reason")]
    failure: Option<String>,
}

#[derive(Deserialize)]
struct TaskEnd {
    #[serde(rename = "Stage ID")]
    stage: u32,
    #[serde(rename = "Task End Reason")]
    reason: Reason,
    #[serde(rename = "Task Info")]
    info: TaskInfo,
    #[serde(rename = "Task Metrics")]
    metrics: Option<Metrics>,
}

#[derive(Deserialize)]
struct Reason {
    #[serde(rename = "Reason")]
    reason: String,
}

#[derive(Deserialize)]
struct TaskInfo {
    #[serde(rename = "Index")]
    index: u32,
    /// The same as the index, but in a stage that is tried again; logs before Spark 3.3 lack it.
    #[serde(rename = "Partition ID")]
    partition: Option<u32>,
    #[serde(rename = "Host", default)]
    host: String,
    #[serde(rename = "Launch Time", default)]
    launched_ms: u64,
    #[serde(rename = "Finish Time", default)]
    ended_ms: u64,
}

#[derive(Deserialize)]
struct Metrics {
    #[serde(rename = "Executor Deserialize Time", default)]
    deserialize_ms: u64,
    #[serde(rename = "Executor Run Time")]
    run_ms: u64,
    #[serde(rename = "Shuffle Read Metrics", default)]
    shuffle_read: ShuffleRead,
    #[serde(rename = "Shuffle Write Metrics", default)]
    shuffle_written: ShuffleWritten,
    #[serde(rename = "Input Metrics", default)]
    read: Read,
    #[serde(rename = "Output Metrics", default)]
    written: BytesWritten,
}

#[derive(Default, Deserialize)]
struct ShuffleRead {
    #[serde(rename = "Remote Bytes Read")]
    remote: u64,
    #[serde(rename = "Local Bytes Read")]
    local: u64,
    #[serde(rename = "Fetch Wait Time", default)]
    wait_ms: u64,
}

#[derive(Default, Deserialize)]
struct ShuffleWritten {
    #[serde(rename = "Shuffle Bytes Written")]
    bytes: u64,
}

#[derive(Default, Deserialize)]
struct Read {
    #[serde(rename = "Bytes Read")]
    bytes: u64,
}

#[derive(Default, Deserialize)]
struct BytesWritten {
    #[serde(rename = "Bytes Written")]
    bytes: u64,
}

impl Metrics {
    fn task(&self) -> Result<LoggedTask, String> {
        let task = LoggedTask {
            ms: (self.deserialize_ms.saturating_add(self.run_ms))
                .saturating_sub(self.shuffle_read.wait_ms),
            shuffle_read: self.shuffle_read.remote.saturating_add(self.shuffle_read.local),
            shuffle_written: self.shuffle_written.bytes,
            read: self.read.bytes,
            written: self.written.bytes,
        };
        let all = [task.ms, task.shuffle_read, task.shuffle_written, task.read, task.written];
        if all.iter().any(|&n| n > MAX) {
            Err(format!("a time or bytes of a task above {MAX}"))
        } else {
            Ok(task)
        }
    }
}

/// What speaks against this format, by how a text begins.
///
/// # Errors
/// In words.
pub fn fits(text: &str) -> Result<(), String> {
    let first = text.lines().find(|l| !l.trim().is_empty()).unwrap_or("");
    let event = first.trim_start().starts_with('{')
        && first.contains("\"Event\"")
        && first.contains("SparkListener");
    if event {
        Ok(())
    } else {
        Err("a line is a JSON object with `Event`, such as \"SparkListenerLogStart\"".into())
    }
}

/// Reads a log. O(length of the text).
///
/// # Errors
/// The first fault, with line and column where there is one, and what is allowed.
pub fn parse(text: &str) -> Result<SparkLog, TraceError> {
    if text.len() > MAX_TEXT {
        return Err(TraceError {
            line: 0,
            column: 0,
            why: format!("the file has {} bytes; at most {MAX_TEXT}", text.len()),
        });
    }
    let mut log = SparkLog::default();
    for (k, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
        log.take(k + 1, line)?;
    }
    log.stages.retain(|_, s| s.is_completed && !s.tasks.is_empty());
    Ok(log)
}

/// A line as what its event is.
fn read<T: DeserializeOwned>(number: usize, line: &str) -> Result<T, TraceError> {
    let mut json = serde_json::Deserializer::from_str(line);
    serde_path_to_error::deserialize(&mut json).map_err(|e| {
        let (path, inner) = (e.path().to_string(), e.inner());
        let why = inner.to_string();
        let why = why
            .rsplit_once(" at line ")
            .map_or(&*why, |w| w.0)
            .replace("missing field", "missing key");
        TraceError {
            line: number,
            column: inner.column(),
            why: format!("{path}: {}", text::told(&why)),
        }
    })
}

impl SparkLog {
    fn take(&mut self, number: usize, line: &str) -> Result<(), TraceError> {
        let bad = |why: String| TraceError { line: number, column: 1, why };
        match &*read::<EventKind>(number, line)?.event {
            "SparkListenerJobStart" => {
                let start: JobStart = read(number, line)?;
                let said = start.properties.unwrap_or_default();
                let query = said.query.map(|q| {
                    q.parse().map_err(|_| bad("spark.sql.execution.id is no whole number".into()))
                });
                let unit = query.transpose()?.map_or(JobUnit::Job(start.id), JobUnit::Query);
                let pool = said.pool.unwrap_or_default();
                self.jobs.push(LoggedJob {
                    id: start.id,
                    unit,
                    submitted_ms: start.submitted_ms,
                    pool,
                    stages: start.stages,
                });
            }
            "SparkListenerJobEnd" => {
                let end: JobEnd = read(number, line)?;
                let succeeded = end.result.result == "JobSucceeded";
                self.ended.insert(end.id, succeeded.then_some(end.ended_ms.min(MAX_INSTANT)));
            }
            "SparkListenerStageCompleted" => {
                let StageInfo { id, failure } = read::<StageCompleted>(number, line)?.stage;
                self.stages.entry(id).or_default().is_completed |= failure.is_none();
            }
            "SparkListenerTaskEnd" => {
                let end: TaskEnd = read(number, line)?;
                let (info, finished) = (end.info, end.reason.reason == "Success");
                let partition = info.partition.unwrap_or(info.index);
                let task = end.metrics.as_ref().map(Metrics::task).transpose().map_err(bad)?;
                let launched_ms = info.launched_ms.min(MAX_INSTANT);
                self.attempts.push(history::EndedTask {
                    stage: end.stage,
                    task: partition,
                    host: info.host,
                    launched_ms,
                    ended_ms: info.ended_ms.clamp(launched_ms, MAX_INSTANT),
                    waited_ms: end.metrics.map_or(0, |m| m.shuffle_read.wait_ms.min(MAX)),
                    finished,
                    shuffle_read: task.map_or(0, |t| t.shuffle_read),
                });
                let Some(task) = task.filter(|_| finished) else { return Ok(()) };
                let stage = self.stages.entry(end.stage).or_default();
                stage.tasks.insert(partition, task);
                if stage.tasks.len() > MAX_TASKS {
                    return Err(bad(format!(
                        "stage {} has more than {MAX_TASKS} tasks",
                        end.stage
                    )));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// By stage that ran: the unit that ran it, and the stages that wrote what it reads.
    fn graph(&self) -> BTreeMap<u32, (JobUnit, Vec<u32>)> {
        let mut graph: BTreeMap<u32, (JobUnit, Vec<u32>)> = BTreeMap::new();
        // The stage that computed a data set last.
        let mut of_data: BTreeMap<u64, u32> = BTreeMap::new();
        for job in &self.jobs {
            let data: BTreeMap<u32, u64> =
                job.stages.iter().filter_map(|s| Some((s.id, s.data.first()?.id))).collect();
            let mut stages: Vec<&PlannedStage> =
                job.stages.iter().filter(|s| self.stages.contains_key(&s.id)).collect();
            stages.sort_by_key(|s| s.id);
            for s in stages {
                let wrote = |p: &u32| {
                    let skipped = || data.get(p).and_then(|d| of_data.get(d)).copied();
                    if self.stages.contains_key(p) { Some(*p) } else { skipped() }
                };
                let mut parents: Vec<u32> =
                    s.parents.iter().filter_map(wrote).filter(|&p| p < s.id).collect();
                parents.sort_unstable();
                parents.dedup();
                if graph.contains_key(&s.id) {
                    continue;
                }
                graph.insert(s.id, (job.unit, parents));
                data.get(&s.id).map(|d| of_data.insert(*d, s.id));
            }
        }
        graph
    }
}

impl LoggedStage {
    fn sum(&self, what: impl Fn(&LoggedTask) -> u64) -> u64 {
        self.tasks.values().map(what).fold(0, u64::saturating_add)
    }

    /// What each task read of shuffles, as shares; `None` where all read the same.
    fn shares(&self) -> Option<Vec<u64>> {
        let reads: Vec<u64> = self.tasks.values().map(|t| t.shuffle_read).collect();
        let most = reads.iter().copied().max().unwrap_or(0);
        let unit = most.div_ceil(MAX_SHARE).max(1);
        let is_even = reads.iter().all(|r| *r == most);
        (!is_even).then(|| reads.iter().map(|r| r.div_ceil(unit)).collect())
    }
}

/// The application's jobs. The first is submitted at zero; fair pools are queues. O(tasks, and
/// stages times their logarithm).
pub fn to_jobs(name: &str, log: &SparkLog) -> JobList {
    let graph = log.graph();
    let mut pools: Vec<&str> = log.jobs.iter().map(|j| &*j.pool).collect();
    pools.sort_unstable();
    pools.dedup();
    let zero = log.jobs.iter().map(|j| j.submitted_ms).min().unwrap_or(0);
    let mut units: BTreeMap<JobUnit, &LoggedJob> = BTreeMap::new();
    for job in &log.jobs {
        let first = units.entry(job.unit).or_insert(job);
        if job.submitted_ms < first.submitted_ms {
            *first = job;
        }
    }
    let jobs = units.iter().filter_map(|(&unit, first)| {
        let ids: Vec<u32> =
            graph.iter().filter(|(_, (of, _))| *of == unit).map(|(id, _)| *id).collect();
        let place = |id: u32| ids.binary_search(&id).ok();
        let (mut stages, mut edges) = (vec![], vec![]);
        for (to, id) in ids.iter().enumerate() {
            let stage = &log.stages[id];
            let (all, shares) = (stage.sum(|t| t.shuffle_read), stage.shares());
            let mut foreign = all;
            for (parent, bytes) in divided(
                all,
                graph[id].1.iter().map(|p| (*p, log.stages[p].sum(|t| t.shuffle_written))),
            ) {
                let Some(from) = place(parent) else { continue };
                foreign -= bytes;
                edges.push(EdgeSpec {
                    shares: shares.clone(),
                    ..EdgeSpec::even(from, to, Bytes(bytes))
                });
            }
            stages.push(StageSpec {
                name: format!("stage-{id}"),
                tasks: stage.tasks.len() as u32,
                times: TaskTimes::Each(stage.tasks.values().map(|t| Span::millis(t.ms)).collect()),
                input: Bytes(stage.sum(|t| t.read).saturating_add(foreign)),
                output: Bytes(stage.sum(|t| t.written)),
                streams: true,
            });
        }
        edges.sort_by_key(|e| (e.from, e.to));
        let queue = pools.binary_search(&&*first.pool).unwrap_or(0) as u32;
        let arrival = Time::ZERO + Span::millis((first.submitted_ms - zero).min(MAX));
        (!stages.is_empty()).then_some(JobSpec {
            id: JobId(0),
            name: unit.name(),
            queue,
            arrival,
            recurring: false,
            stages,
            edges,
        })
    });
    JobList::new(name, jobs.collect())
}

/// Bytes divided in proportion to weights, evenly where all are zero; the sum is exact.
fn divided(bytes: u64, weights: impl ExactSizeIterator<Item = (u32, u64)>) -> Vec<(u32, u64)> {
    let weights: Vec<(u32, u64)> = weights.collect();
    let all: u128 = weights.iter().map(|w| u128::from(w.1)).sum();
    let (mut sum, mut given) = (0u128, 0u64);
    let of = |(of, weight): &(u32, u64)| {
        sum += if all == 0 { 1 } else { u128::from(*weight) };
        let until =
            (u128::from(bytes) * sum / if all == 0 { weights.len() as u128 } else { all }) as u64;
        (*of, until - std::mem::replace(&mut given, until))
    };
    weights.iter().map(of).collect()
}

#[cfg(test)]
mod tests;
