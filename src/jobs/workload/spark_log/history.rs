//! What an application did when: its jobs, and every attempt of a task on a slot of its host.

use std::collections::BTreeMap;

use super::{JobUnit, SparkLog};
use crate::units::{Bytes, Span};

/// What became one job: a query of Spark SQL, or one of Spark's own jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// Its name, as [`super::to_jobs`] has it.
    pub name: String,
    /// When it was submitted, in milliseconds since 1970.
    pub submitted_ms: u64,
    /// When the last of its jobs ended, if all did what they should.
    pub ended_ms: Option<u64>,
    /// Attempts of its tasks, by their launch.
    pub attempts: Vec<LoggedAttempt>,
}

/// An attempt of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedAttempt {
    /// Spark's number of the stage.
    pub stage: u32,
    /// The task's partition.
    pub task: u32,
    /// Which attempt of the task, from one.
    pub attempt: u32,
    /// The host.
    pub host: String,
    /// The slot of the host, of those that this application had there.
    pub slot: u32,
    /// When it was launched, in milliseconds since 1970.
    pub launched_ms: u64,
    /// How long it waited for its shuffle, in all.
    pub waited: Span,
    /// When it ended.
    pub ended_ms: u64,
    /// Whether it did its work.
    pub finished: bool,
    /// What it read of shuffles.
    pub shuffle_read: Bytes,
}

/// What a log says of a task that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EndedTask {
    pub stage: u32,
    pub task: u32,
    pub host: String,
    pub launched_ms: u64,
    pub ended_ms: u64,
    pub waited_ms: u64,
    pub finished: bool,
    pub shuffle_read: u64,
}

/// The application's jobs by their submission, with all that ran; it has `slots` slots a host.
/// Tasks of stages that no job has are left out.
///
/// Spark learns of an end after the slot has its next task. So an attempt ends here no later than
/// the next one in its slot begins. O(tasks (log tasks + slots)).
pub fn history(log: &SparkLog, slots: usize) -> Vec<Past> {
    let mut all: BTreeMap<JobUnit, Past> = BTreeMap::new();
    let mut unit_of: BTreeMap<u32, JobUnit> = BTreeMap::new();
    for job in &log.jobs {
        let ended = log.ended.get(&job.id).copied().flatten();
        let past = all.entry(job.unit).or_insert_with(|| Past {
            name: job.unit.name(),
            submitted_ms: job.submitted_ms,
            ended_ms: Some(0),
            attempts: vec![],
        });
        past.submitted_ms = past.submitted_ms.min(job.submitted_ms);
        past.ended_ms = past.ended_ms.zip(ended).map(|(a, b)| a.max(b));
        for stage in &job.stages {
            unit_of.entry(stage.id).or_insert(job.unit);
        }
    }
    let mut tasks: Vec<&EndedTask> = log.attempts.iter().collect();
    tasks.sort_by_key(|t| (t.launched_ms, t.stage, t.task));
    // By host: the last attempt in each slot, and its end.
    let mut last: BTreeMap<&str, Vec<(u64, JobUnit, usize)>> = BTreeMap::new();
    let mut tries: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for t in tasks {
        let Some(&unit) = unit_of.get(&t.stage) else { continue };
        let held = last.entry(&t.host).or_default();
        let soonest = (0..held.len()).min_by_key(|&k| (held[k].0.max(t.launched_ms), k));
        let slot = match soonest {
            Some(k) if held[k].0 <= t.launched_ms || held.len() >= slots => k,
            _ => held.len(),
        };
        if let Some(&(_, unit, k)) = held.get(slot)
            && let Some(before) = all.get_mut(&unit).and_then(|p| p.attempts.get_mut(k))
        {
            before.ended_ms = before.ended_ms.min(t.launched_ms);
        }
        let Some(past) = all.get_mut(&unit) else { continue };
        let own = (t.ended_ms, unit, past.attempts.len());
        match held.get_mut(slot) {
            Some(it) => *it = own,
            None => held.push(own),
        }
        let attempt = tries.entry((t.stage, t.task)).or_default();
        *attempt += 1;
        past.attempts.push(LoggedAttempt {
            stage: t.stage,
            task: t.task,
            attempt: *attempt,
            host: t.host.clone(),
            slot: slot as u32,
            launched_ms: t.launched_ms,
            waited: Span::millis(t.waited_ms),
            ended_ms: t.ended_ms,
            finished: t.finished,
            shuffle_read: Bytes(t.shuffle_read),
        });
    }
    let mut all: Vec<Past> = all.into_values().collect();
    all.sort_by_key(|p| p.submitted_ms);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::spark_log::parse;

    #[test]
    fn a_recorded_application_ran_on_its_hosts() {
        let file = crate::testing::repository("spark/tests/spark-4.3.jsonl");
        let all = history(&parse(&std::fs::read_to_string(file).unwrap()).unwrap(), 1);
        let of = |p: &Past| (p.name.clone(), p.attempts.len());
        let counts: Vec<_> = all.iter().map(of).collect();
        let named = |name: &str, n| (name.to_owned(), n);
        assert_eq!(counts.iter().map(|c| c.1).sum::<usize>(), 29, "every task of the log");
        assert_eq!(counts[0].0, "job-0");
        assert!(counts.contains(&named("query-0", counts[1].1)), "{counts:?}");
        for p in &all {
            assert!(p.ended_ms.unwrap() >= p.attempts.iter().map(|a| a.ended_ms).max().unwrap());
            assert!(p.attempts.iter().all(|a| a.finished && a.launched_ms >= p.submitted_ms));
        }
        let read: u64 = all.iter().flat_map(|p| &p.attempts).map(|a| a.shuffle_read.0).sum();
        assert_eq!(read, 300_981);
    }

    #[test]
    fn a_slot_has_one_task_at_a_time_and_what_fails_is_tried_again() {
        let task = |index: u32, from: u64, until: u64, reason: &str| {
            format!(
                r#"{{"Event":"SparkListenerTaskEnd","Stage ID":0,"Task End Reason":{{"Reason":"{reason}"}},"Task Info":{{"Index":{index},"Host":"h1-0","Launch Time":{from},"Finish Time":{until}}},"Task Metrics":{{"Executor Run Time":5,"Shuffle Read Metrics":{{"Remote Bytes Read":7,"Local Bytes Read":1,"Fetch Wait Time":3}}}}}}"#
            )
        };
        let job = r#"{"Event":"SparkListenerJobStart","Job ID":4,"Submission Time":90,"Stage Infos":[{"Stage ID":0}]}"#;
        let lost = task(1, 100, 150, "ExecutorLostFailure");
        let lines =
            [job.to_owned(), task(0, 100, 200, "Success"), lost, task(1, 160, 300, "Success")];
        let log = parse(&lines.join("\n")).unwrap();
        let all = history(&log, 2);
        let of = |a: &LoggedAttempt| (a.task, a.attempt, a.slot, a.finished);
        assert_eq!(
            all[0].attempts.iter().map(of).collect::<Vec<_>>(),
            [(0, 1, 0, true), (1, 1, 1, false), (1, 2, 1, true)]
        );
        assert_eq!((all[0].ended_ms, all[0].attempts[0].waited), (None, Span::millis(3)));
        // With one slot, what Spark hears late of ends when the next one begins.
        let all = history(&log, 1);
        let of = |a: &LoggedAttempt| (a.task, a.slot, a.launched_ms, a.ended_ms);
        assert_eq!(
            all[0].attempts.iter().map(of).collect::<Vec<_>>(),
            [(0, 0, 100, 100), (1, 0, 100, 150), (1, 0, 160, 300)]
        );
    }
}
