//! What a list of jobs looks like: counts and percentiles.

use serde::Serialize;

use super::jobs::{JobList, JobSpec};
use super::stats::Percentiles;
use crate::units::{Bytes, Span};

/// The figures of a list of jobs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobStats {
    /// Number of jobs.
    pub jobs: usize,
    /// Number of those that are recurring.
    pub recurring: usize,
    /// Number of queues in use.
    pub queues: usize,
    /// Tasks of all jobs.
    pub tasks: u64,
    /// Bytes read.
    #[serde(rename = "input_bytes")]
    pub input: Bytes,
    /// Bytes of all shuffles.
    #[serde(rename = "shuffle_bytes")]
    pub shuffle: Bytes,
    /// Bytes written.
    #[serde(rename = "output_bytes")]
    pub output: Bytes,
    /// Slot time of all tasks, network not included.
    #[serde(rename = "work_ns")]
    pub work: Span,
    /// Time from the first arrival to the last.
    #[serde(rename = "arrivals_ns")]
    pub arrivals: Span,
    /// Stages a job.
    pub stages: Percentiles,
    /// Tasks a job.
    pub job_tasks: Percentiles,
    /// Bytes read a job.
    #[serde(rename = "job_input_bytes")]
    pub job_input: Percentiles,
    /// Bytes of all shuffles of a job.
    #[serde(rename = "job_shuffle_bytes")]
    pub job_shuffle: Percentiles,
    /// Bytes written a job.
    #[serde(rename = "job_output_bytes")]
    pub job_output: Percentiles,
    /// Nanoseconds of a task, its longest of each stage.
    #[serde(rename = "task_time_ns")]
    pub task_time: Percentiles,
    /// Nanoseconds from a job's arrival to its end if it had all slots and the network took no
    /// time.
    #[serde(rename = "shortest_ns")]
    pub shortest: Percentiles,
}

/// The figures of `list`. O(tasks + n log n).
pub fn job_stats(list: &JobList) -> JobStats {
    let jobs = &list.jobs;
    let output = |j: &JobSpec| j.stages.iter().map(|s| s.output).sum::<Bytes>();
    let queues: std::collections::BTreeSet<u32> = jobs.iter().map(|j| j.queue).collect();
    let ends = (jobs.first(), jobs.last());
    JobStats {
        jobs: jobs.len(),
        recurring: jobs.iter().filter(|j| j.recurring).count(),
        queues: queues.len(),
        tasks: jobs.iter().map(JobSpec::tasks).sum(),
        input: jobs.iter().map(JobSpec::input_bytes).sum(),
        shuffle: jobs.iter().map(JobSpec::shuffle_bytes).sum(),
        output: jobs.iter().map(output).sum(),
        work: jobs.iter().map(JobSpec::work).fold(Span::ZERO, |a, b| a + b),
        arrivals: if let (Some(a), Some(b)) = ends {
            b.arrival.since(a.arrival)
        } else {
            Span::ZERO
        },
        stages: Percentiles::of(jobs.iter().map(|j| j.stages.len() as u64)),
        job_tasks: Percentiles::of(jobs.iter().map(JobSpec::tasks)),
        job_input: Percentiles::of(jobs.iter().map(|j| j.input_bytes().0)),
        job_shuffle: Percentiles::of(jobs.iter().map(|j| j.shuffle_bytes().0)),
        job_output: Percentiles::of(jobs.iter().map(|j| output(j).0)),
        task_time: Percentiles::of(
            jobs.iter().flat_map(|j| j.stages.iter().map(|s| s.times.longest().0)),
        ),
        shortest: Percentiles::of(jobs.iter().map(|j| critical(j).0)),
    }
}

/// The longest chain of stages, by their longest tasks. O(stages x edges).
fn critical(job: &JobSpec) -> Span {
    let mut ends: Vec<Span> = Vec::with_capacity(job.stages.len());
    for (k, s) in job.stages.iter().enumerate() {
        let ready = job.edges_into(k).map(|e| ends[e.from]).max().unwrap_or(Span::ZERO);
        ends.push(ready + s.times.longest());
    }
    ends.into_iter().max().unwrap_or(Span::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Time;
    use crate::workload::job_model::{JobModel, SwimJob};

    #[test]
    fn figures_sum_up() {
        let row = |k: u64| SwimJob {
            name: "j".into(),
            arrival: Time(k),
            input: Bytes(k),
            shuffle: Bytes(2 * k),
            output: Bytes(3 * k),
        };
        let rows: Vec<SwimJob> = (1..=4).map(|k| row(k * 1000)).collect();
        let model = JobModel {
            block: Bytes(1000),
            queues: 1,
            recurring: 100,
            map_rate: Bytes(500),
            reduce_rate: Bytes(1000),
            ..JobModel::default()
        };
        let s = job_stats(&model.jobs("l", &rows, 1));
        assert_eq!((s.jobs, s.recurring, s.queues, s.tasks), (4, 4, 1, 14));
        assert_eq!(
            (s.input, s.shuffle, s.output, s.arrivals),
            (Bytes(10_000), Bytes(20_000), Bytes(30_000), Span(3000))
        );
        assert_eq!((s.job_shuffle.p50, s.job_shuffle.max, s.stages.min), (4000, 8000, 2));
        // A map task: 1 s and 1000 B at 500 B/s; a reduce task of the last job: 1 s and 8000 B at
        // 1000 B/s.
        assert_eq!((s.shortest.max, s.task_time.max), (12_000_000_000, 9_000_000_000));
        assert_eq!(job_stats(&JobList::default()).shortest, Percentiles::default());
    }
}
