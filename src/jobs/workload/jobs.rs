//! Jobs: stages of tasks, and the bytes between them.
//!
//! A job is a directed acyclic graph of stages. A stage without incoming edges reads data blocks (a
//! MapReduce's map stage); an edge is a shuffle: every task of its first stage sends to every task
//! of its second. A MapReduce is two stages and one edge. Where the tasks run is not said here:
//! that is what placement decides.

use serde::{Deserialize, Serialize};

use crate::ids::JobId;
use crate::topology::types::Types;
use crate::units::{Bytes, Span, Time};

/// How long the tasks of a stage compute, network not included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskTimes {
    /// One time for all tasks.
    Even(Span),
    /// By task, as many as the stage has tasks.
    Each(Vec<Span>),
}

impl TaskTimes {
    /// The time of task `k` of the stage.
    ///
    /// # Panics
    /// If the stage has no task `k`.
    pub fn of(&self, k: usize) -> Span {
        match self {
            Self::Even(t) => *t,
            Self::Each(all) => all[k],
        }
    }

    /// The longest.
    pub fn longest(&self) -> Span {
        match self {
            Self::Even(t) => *t,
            Self::Each(all) => all.iter().copied().max().unwrap_or(Span::ZERO),
        }
    }

    /// Their sum, of a stage of `tasks` tasks: slot time that the stage takes, network not
    /// included.
    pub fn total(&self, tasks: u32) -> Span {
        match self {
            Self::Even(t) => *t * u64::from(tasks),
            Self::Each(all) => all.iter().copied().fold(Span::ZERO, |a, b| a + b),
        }
    }
}

/// Tasks that are alike and do not wait for each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageSpec {
    /// What people call it: `map`, `reduce`.
    pub name: String,
    /// Number of tasks, at least one.
    pub tasks: u32,
    /// How long each computes.
    pub times: TaskTimes,
    /// Bytes that the stage reads from data blocks, spread evenly over its tasks: one block a task.
    /// Zero: it reads none.
    pub input: Bytes,
    /// Bytes that the stage writes for good, spread evenly over its tasks.
    pub output: Bytes,
    /// Whether a task computes while its bytes come, from when all that it reads is there to be
    /// fetched. Else it computes when it has all of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub streams: bool,
}

/// The largest share of a task in a shuffle: sums and products with bytes stay whole numbers.
pub const MAX_SHARE: u64 = 1_000_000_000;

/// A shuffle between two stages: every task of `from` sends the same to a task of `to`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeSpec {
    /// Place of the sending stage in [`JobSpec::stages`].
    pub from: usize,
    /// Place of the receiving stage; greater than `from`.
    pub to: usize,
    /// All bytes of this shuffle.
    pub bytes: Bytes,
    /// By task of `to`: its share of the bytes, in any unit, at most [`MAX_SHARE`]; `None`: all
    /// have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<Vec<u64>>,
    /// The tiers of the switches that its flows must cross, in their order; empty: any.
    #[serde(default, skip_serializing_if = "Types::are_free")]
    pub types: Types,
}

impl EdgeSpec {
    /// A shuffle of which every receiving task has the same share.
    pub fn even(from: usize, to: usize, bytes: Bytes) -> Self {
        Self { from, to, bytes, shares: None, types: Types::default() }
    }

    /// By receiving task, its bytes: with S(n) the sum of the first n shares, floor(B S(n+1) / S) -
    /// floor(B S(n) / S), so that the total is exact; `None` where all have the same. O(tasks).
    pub fn by_receiver(&self) -> Option<Vec<u64>> {
        let shares = self.shares.as_ref()?;
        let all = shares.iter().map(|&s| u128::from(s)).sum::<u128>().max(1);
        let (mut sum, mut sent) = (0u128, 0u64);
        let of = |share: &u64| {
            sum += u128::from(*share);
            let until = (u128::from(self.bytes.0) * sum / all) as u64;
            until - std::mem::replace(&mut sent, until)
        };
        Some(shares.iter().map(of).collect())
    }

    /// Whether the shares suit `tasks` receiving tasks.
    ///
    /// # Errors
    /// What is wrong with them, and what is allowed.
    pub fn check_shares(&self, tasks: u32) -> Result<(), (String, String)> {
        let Some(shares) = &self.shares else { return Ok(()) };
        if shares.len() != tasks as usize {
            return Err((
                format!("{} shares for {tasks} receiving tasks", shares.len()),
                "one a task".into(),
            ));
        }
        if let Some(large) = shares.iter().find(|&&s| s > MAX_SHARE) {
            return Err((format!("a share of {large}"), format!("0 to {MAX_SHARE}")));
        }
        if shares.iter().all(|&s| s == 0) {
            return Err(("shares that are all zero".into(), "one of 1 or more at least".into()));
        }
        Ok(())
    }
}

/// A job as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// Its number in this run: dense from zero, by arrival.
    pub id: JobId,
    /// What people call it.
    pub name: String,
    /// Number of the queue in which it waits, dense from zero.
    pub queue: u32,
    /// When it is submitted.
    pub arrival: Time,
    /// Whether it ran before: its sizes and times are known ahead, so that a planner may count on
    /// them. Else it is ad hoc.
    pub recurring: bool,
    /// The stages, in topological order.
    pub stages: Vec<StageSpec>,
    /// By `from`, then `to`; at most one a pair.
    pub edges: Vec<EdgeSpec>,
}

impl JobSpec {
    /// A MapReduce with even tasks; a job that has no reduce task is its map stage alone.
    pub fn map_reduce(
        name: impl Into<String>,
        arrival: Time,
        map: StageSpec,
        reduce: StageSpec,
        shuffle: Bytes,
    ) -> Self {
        let (stages, edges) = match reduce.tasks {
            0 => (vec![map], vec![]),
            _ => (vec![map, reduce], vec![EdgeSpec::even(0, 1, shuffle)]),
        };
        Self { id: JobId(0), name: name.into(), queue: 0, arrival, recurring: false, stages, edges }
    }

    /// All bytes that its shuffles move.
    pub fn shuffle_bytes(&self) -> Bytes {
        self.edges.iter().map(|e| e.bytes).sum()
    }

    /// All bytes that it reads from data blocks.
    pub fn input_bytes(&self) -> Bytes {
        self.stages.iter().map(|s| s.input).sum()
    }

    /// All its tasks.
    pub fn tasks(&self) -> u64 {
        self.stages.iter().map(|s| u64::from(s.tasks)).sum()
    }

    /// Slot time of all its tasks, network not included.
    pub fn work(&self) -> Span {
        self.stages.iter().map(|s| s.times.total(s.tasks)).fold(Span::ZERO, |a, b| a + b)
    }

    /// The types of the shuffles into a stage: they are one coflow, so they have the same.
    pub fn types_into(&self, stage: usize) -> Types {
        self.edges_into(stage).next().map(|e| e.types.clone()).unwrap_or_default()
    }

    /// The shuffles that a stage waits for.
    pub fn edges_into(&self, stage: usize) -> impl Iterator<Item = &EdgeSpec> {
        self.edges.iter().filter(move |e| e.to == stage)
    }

    /// Whether the job makes sense: what readers of files and traces must prove before they hand it
    /// on.
    ///
    /// # Errors
    /// The first thing that is wrong, and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        if self.stages.is_empty() {
            return Err("a job without stages; at least one".into());
        }
        for s in &self.stages {
            match &s.times {
                _ if s.tasks == 0 => {
                    return Err(format!("stage `{}` has no task; at least one", s.name));
                }
                TaskTimes::Each(all) if all.len() != s.tasks as usize => {
                    return Err(format!(
                        "stage `{}` has {} tasks and {} times; one a task",
                        s.name,
                        s.tasks,
                        all.len()
                    ));
                }
                _ => {}
            }
        }
        for (k, e) in self.edges.iter().enumerate() {
            if e.from >= e.to || e.to >= self.stages.len() {
                return Err(format!(
                    "an edge from stage {} to {}; to a later one of {} stages",
                    e.from,
                    e.to,
                    self.stages.len()
                ));
            }
            if k > 0 && (self.edges[k - 1].from, self.edges[k - 1].to) >= (e.from, e.to) {
                return Err(format!(
                    "edge {} to {} out of order or twice; by first stage, then second",
                    e.from, e.to
                ));
            }
            e.check_shares(self.stages[e.to].tasks)
                .map_err(|(what, allowed)| format!("{what}; {allowed}"))?;
            e.types.check().map_err(|(what, allowed)| format!("{what}; {allowed}"))?;
            if e.types != self.types_into(e.to) {
                let into = &self.stages[e.to].name;
                return Err(format!(
                    "shuffles into stage `{into}` with different types; the same for all: they are one coflow"
                ));
            }
        }
        Ok(())
    }
}

/// A list of jobs, by arrival.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JobList {
    /// What people call it.
    pub name: String,
    /// In the order of arrival, ids dense from zero.
    pub jobs: Vec<JobSpec>,
}

impl JobList {
    /// Brings jobs into the order of their arrival (ties keep their order) and numbers them from
    /// zero.
    pub fn new(name: impl Into<String>, mut jobs: Vec<JobSpec>) -> Self {
        jobs.sort_by_key(|j| j.arrival);
        for (k, j) in jobs.iter_mut().enumerate() {
            j.id = JobId::from(k);
        }
        Self { name: name.into(), jobs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(tasks: u32, times: TaskTimes) -> StageSpec {
        StageSpec {
            name: "map".into(),
            tasks,
            times,
            input: Bytes(100),
            output: Bytes(0),
            streams: false,
        }
    }

    #[test]
    fn a_map_reduce_is_two_stages_and_one_edge() {
        let even = |n| stage(n, TaskTimes::Even(Span::millis(5)));
        let job = JobSpec::map_reduce("j", Time(7), even(4), even(2), Bytes(80));
        assert_eq!(
            (job.check(), job.tasks(), job.shuffle_bytes(), job.input_bytes()),
            (Ok(()), 6, Bytes(80), Bytes(200))
        );
        assert_eq!(
            (job.work(), job.edges_into(1).count(), job.edges_into(0).count()),
            (Span::millis(30), 1, 0)
        );
        let alone = JobSpec::map_reduce("j", Time(7), even(4), even(0), Bytes(80));
        assert_eq!(
            (alone.check(), alone.stages.len(), alone.shuffle_bytes()),
            (Ok(()), 1, Bytes(0))
        );
    }

    #[test]
    fn shares_divide_every_byte() {
        let of = |bytes, shares: &[u64]| {
            EdgeSpec { shares: Some(shares.to_vec()), ..EdgeSpec::even(0, 1, Bytes(bytes)) }
                .by_receiver()
        };
        assert_eq!(of(400, &[1, 3]), Some(vec![100, 300]));
        assert_eq!(of(10, &[1, 0, 1, 1]), Some(vec![3, 0, 3, 4]));
        assert_eq!(EdgeSpec::even(0, 1, Bytes(9)).by_receiver(), None);
        let most = vec![MAX_SHARE; 1000];
        assert_eq!(
            of(1_000_000_000_000_000, &most).unwrap().iter().sum::<u64>(),
            1_000_000_000_000_000
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let even = || stage(1, TaskTimes::Even(Span::millis(5)));
        let good = JobSpec::map_reduce("j", Time(0), even(), even(), Bytes(1));
        let edge = |from, to| EdgeSpec::even(from, to, Bytes(1));
        let shared = |shares: &[u64]| JobSpec {
            edges: vec![EdgeSpec { shares: Some(shares.to_vec()), ..edge(0, 1) }],
            ..good.clone()
        };
        let bad = [
            JobSpec { stages: vec![], ..good.clone() },
            JobSpec {
                stages: vec![stage(0, TaskTimes::Even(Span::ZERO))],
                edges: vec![],
                ..good.clone()
            },
            JobSpec {
                stages: vec![stage(2, TaskTimes::Each(vec![Span::ZERO]))],
                edges: vec![],
                ..good.clone()
            },
            JobSpec { edges: vec![edge(1, 0)], ..good.clone() },
            JobSpec { edges: vec![edge(0, 2)], ..good.clone() },
            JobSpec { edges: vec![edge(0, 1), edge(0, 1)], ..good.clone() },
            shared(&[1, 2]),
            shared(&[0]),
            shared(&[MAX_SHARE + 1]),
        ];
        assert_eq!(shared(&[7]).check(), Ok(()));
        assert!(bad.iter().all(|j| j.check().is_err()));
        let each = TaskTimes::Each(vec![Span(1), Span(9), Span(2)]);
        assert_eq!((each.of(1), each.longest(), each.total(3)), (Span(9), Span(9), Span(12)));
        assert_eq!(
            JobList::new("l", vec![JobSpec { arrival: Time(9), ..good.clone() }, good]).jobs[1].id,
            JobId(1)
        );
    }
}
