//! Measured TPC-H queries on Spark as jobs: the graphs of stages and task times that Decima was
//! trained with.
//!
//! The file is a JSON list, one entry a query and input size:
//!
//! ```text
//! [{"size": "2g", "query": 1, "stages": [{"id": 0, "num_tasks": 12, "parents": [],
//!    "first_wave": {"<executors>": [<ms>, ..], ..}, "rest_wave": {..}, "fresh_durations": {..}}, ..]}, ..]
//! ```
//!
//! Source: Mao et al., SIGCOMM 2019, <https://github.com/hongzimao/decima-sim>. For each number of
//! executors it has the times of all tasks of a stage: those of the first wave and the rest. The
//! times contain what Spark's shuffles took on the measured cluster.
//!
//! The file says nothing of bytes between stages, so they are a model. The stages without parents
//! read the input size, each in proportion to its tasks. A stage passes on `selectivity` per cent
//! of what it received, evenly to its children. A stage without children writes that for good.

use std::collections::BTreeMap;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Deserialize;

use super::TraceError;
use super::draws::exponential;
use super::jobs::{EdgeSpec, JobList, JobSpec, StageSpec, TaskTimes};
use crate::ids::JobId;
use crate::text;
use crate::units::{Bytes, Span, Time};

/// The longest text that is read.
const MAX_TEXT: usize = 256_000_000;
/// The most tasks of a stage.
const MAX_TASKS: u32 = 1_000_000;
/// The longest task, in milliseconds.
const MAX_MS: u64 = 1_000_000_000;

/// A query with its stages, in the order of their ids.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Query {
    /// Its input as the file has it, such as `2g`.
    pub size: String,
    /// Number of the TPC-H query.
    pub query: u32,
    /// The stages, in the order of their ids, from zero.
    pub stages: Vec<QueryStage>,
}

/// One stage of a query.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct QueryStage {
    /// Its place in the list.
    pub id: usize,
    /// Number of tasks.
    pub num_tasks: u32,
    /// The stages whose output it reads; each is earlier.
    pub parents: Vec<usize>,
    /// By number of executors: milliseconds of the first task of each executor.
    pub first_wave: BTreeMap<u32, Vec<u64>>,
    /// By number of executors: milliseconds of the other tasks.
    pub rest_wave: BTreeMap<u32, Vec<u64>>,
}

/// How queries become jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryOptions {
    /// Number of jobs, drawn evenly from the queries; none: every query once, in the order of the
    /// file.
    pub jobs: Option<usize>,
    /// Mean time between two arrivals, a Poisson process; zero: all at once.
    pub mean_gap: Span,
    /// Times are those of the greatest measured number of executors that is not above this one
    /// (else the smallest measured).
    pub executors: u32,
    /// What a stage passes on, in per cent of what it received.
    pub selectivity: u32,
    /// Share of recurring jobs, in per cent.
    pub recurring: u32,
    /// Number of queues among which the jobs are spread.
    pub queues: u32,
    /// The seed.
    pub seed: u64,
}

impl Default for QueryOptions {
    fn default() -> Self {
        Self {
            jobs: None,
            mean_gap: Span::secs(25),
            executors: 50,
            selectivity: 50,
            recurring: 0,
            queues: 1,
            seed: 1,
        }
    }
}

/// What speaks against this format, by how a text begins.
///
/// # Errors
/// In words.
pub fn fits(text: &str) -> Result<(), String> {
    if begins(text) {
        Ok(())
    } else {
        Err("it is a JSON list of queries with `num_tasks` and `first_wave`".into())
    }
}

fn begins(text: &str) -> bool {
    let head = text
        .get(..text.len().min(100_000))
        .or_else(|| text.get(..text.len().min(99_997)))
        .unwrap_or("");
    head.trim_start().starts_with('[')
        && head.contains("\"first_wave\"")
        && head.contains("\"num_tasks\"")
}

/// Reads the file. O(length of the text).
///
/// # Errors
/// The first fault, with line and column where there is one, and what is allowed.
pub fn parse(text: &str) -> Result<Vec<Query>, TraceError> {
    let at = |line, column, why: String| TraceError { line, column, why };
    if text.len() > MAX_TEXT {
        return Err(at(0, 0, format!("the file has {} bytes; at most {MAX_TEXT}", text.len())));
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let queries: Vec<Query> = serde_path_to_error::deserialize(&mut json).map_err(|e| {
        let (path, inner) = (e.path().to_string(), e.inner());
        let why = inner.to_string();
        let why = why
            .rsplit_once(" at line ")
            .map_or(&*why, |w| w.0)
            .replace("missing field", "missing key");
        at(inner.line(), inner.column(), format!("{path}: {}", text::told(&why)))
    })?;
    json.end().map_err(|e| at(e.line(), e.column(), e.to_string()))?;
    for (k, q) in queries.iter().enumerate() {
        q.check()
            .map_err(|why| at(0, 0, format!("entry {k} (query {}, {}): {why}", q.query, q.size)))?;
    }
    Ok(queries)
}

impl Query {
    fn check(&self) -> Result<(), String> {
        if self.bytes().is_none() {
            return Err("size is not a whole number of gigabytes such as 2g".into());
        }
        if self.stages.is_empty() {
            return Err("no stages; at least one".into());
        }
        for (k, s) in self.stages.iter().enumerate() {
            let bad = |why: &str| Err(format!("stage {k}: {why}"));
            if s.id != k {
                return bad("its id is not its place in the list");
            }
            if !(1..=MAX_TASKS).contains(&s.num_tasks) {
                return bad("num_tasks is out of range; 1 to 1000000");
            }
            if s.parents.iter().any(|&p| p >= k) {
                return bad("a parent is not an earlier stage");
            }
            if s.first_wave.values().all(Vec::is_empty) {
                return bad("no times in first_wave");
            }
            if s.first_wave.values().chain(s.rest_wave.values()).flatten().any(|&ms| ms > MAX_MS) {
                return bad("a time is above 1000000000 ms");
            }
        }
        Ok(())
    }

    /// Bytes of its input.
    fn bytes(&self) -> Option<Bytes> {
        let digits =
            self.size.strip_suffix('g').filter(|d| d.bytes().all(|b| b.is_ascii_digit()))?;
        digits.parse::<u64>().ok().filter(|g| *g <= 1_000_000).map(|g| Bytes(g * 1_000_000_000))
    }

    /// The query as a job. O(tasks + edges).
    fn job(&self, ask: &QueryOptions) -> JobSpec {
        let input = self.bytes().unwrap_or_default().0;
        let readers: u64 = self
            .stages
            .iter()
            .filter(|s| s.parents.is_empty())
            .map(|s| u64::from(s.num_tasks))
            .sum();
        let mut children = vec![0u64; self.stages.len()];
        let mut parents: Vec<Vec<usize>> = self.stages.iter().map(|s| s.parents.clone()).collect();
        for list in &mut parents {
            list.sort_unstable();
            list.dedup();
            list.iter().for_each(|&p| children[p] += 1);
        }
        let mut passed = vec![0u64; self.stages.len()];
        let (mut stages, mut edges) = (Vec::new(), Vec::new());
        for (k, s) in self.stages.iter().enumerate() {
            let own = if s.parents.is_empty() {
                (u128::from(input) * u128::from(s.num_tasks) / u128::from(readers)) as u64
            } else {
                0
            };
            let shares = parents[k].iter().map(|&p| (p, passed[p] / children[p]));
            let received = own + shares.clone().map(|s| s.1).sum::<u64>();
            edges.extend(shares.map(|(from, bytes)| EdgeSpec::even(from, k, Bytes(bytes))));
            passed[k] = (u128::from(received) * u128::from(ask.selectivity.min(100)) / 100) as u64;
            let output = Bytes(if children[k] == 0 { passed[k] } else { 0 });
            stages.push(StageSpec {
                name: format!("stage-{k}"),
                tasks: s.num_tasks,
                times: s.times(ask.executors),
                input: Bytes(own),
                output,
                streams: false,
            });
        }
        edges.sort_unstable_by_key(|e| (e.from, e.to));
        let name = format!("tpch-{}-{}", self.query, self.size);
        JobSpec {
            id: JobId(0),
            name,
            queue: 0,
            arrival: Time::ZERO,
            recurring: false,
            stages,
            edges,
        }
    }
}

impl QueryStage {
    /// Times of all tasks: the first wave, then the rest; repeated from the beginning where the
    /// file has fewer.
    fn times(&self, executors: u32) -> TaskTimes {
        let known = self.first_wave.iter().filter(|w| !w.1.is_empty());
        let best = known.clone().rfind(|w| *w.0 <= executors).or_else(|| known.clone().next());
        let (key, first) = best.expect("parse proves that there are times");
        let rest = self.rest_wave.get(key).map_or(&[][..], |v| v);
        let all = first.iter().chain(rest).cycle().take(self.num_tasks as usize);
        TaskTimes::Each(all.map(|&ms| Span::millis(ms)).collect())
    }
}

/// Queries as jobs that arrive one after the other. O(all tasks).
pub fn to_jobs(name: &str, queries: &[Query], ask: &QueryOptions) -> JobList {
    let mut rng = ChaCha8Rng::seed_from_u64(ask.seed);
    let n = if queries.is_empty() { 0 } else { ask.jobs.unwrap_or(queries.len()) };
    let mut at = Time::ZERO;
    let jobs = (0..n).map(|k| {
        let query = if ask.jobs.is_some() { rng.random_range(0..queries.len()) } else { k };
        let (recurring, queue) =
            (rng.random_range(0..100) < ask.recurring, rng.random_range(0..ask.queues.max(1)));
        let job = JobSpec { arrival: at, recurring, queue, ..queries[query].job(ask) };
        at += exponential(&mut rng, ask.mean_gap);
        job
    });
    JobList::new(name, jobs.collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = r#"[{"size": "2g", "query": 7, "stages": [
 {"id": 0, "num_tasks": 3, "parents": [], "first_wave": {"2": [10, 20], "5": [1, 2, 3]}, "rest_wave": {"2": [5], "5": []}},
 {"id": 1, "num_tasks": 1, "parents": [], "first_wave": {"2": [7]}, "rest_wave": {"2": []}, "fresh_durations": {"2": [7]}},
 {"id": 2, "num_tasks": 2, "parents": [1, 0], "first_wave": {"5": [4]}, "rest_wave": {}},
 {"id": 3, "num_tasks": 1, "parents": [2, 0], "first_wave": {"2": [9]}, "rest_wave": {}}]}]"#;

    #[test]
    fn a_query_becomes_a_graph() {
        assert!(begins(TEXT) && !begins("[1, 2]") && !begins("name: x"));
        let queries = parse(TEXT).unwrap();
        let list =
            to_jobs("l", &queries, &QueryOptions { executors: 4, ..QueryOptions::default() });
        let j = &list.jobs[0];
        assert_eq!(
            (j.check(), j.name.as_str(), j.input_bytes()),
            (Ok(()), "tpch-7-2g", Bytes(2_000_000_000))
        );
        let ms = |v: &[u64]| TaskTimes::Each(v.iter().map(|m| Span::millis(*m)).collect());
        assert_eq!(
            j.stages.iter().map(|s| s.times.clone()).collect::<Vec<_>>(),
            [ms(&[10, 20, 5]), ms(&[7]), ms(&[4, 4]), ms(&[9])]
        );
        // Stage 0 reads 1500 MB and passes half of it, half each to stages 2 and 3; stage 1 reads
        // 500 MB.
        let edges: Vec<_> = j.edges.iter().map(|e| (e.from, e.to, e.bytes.0 / 1_000_000)).collect();
        assert_eq!(edges, [(0, 2, 375), (0, 3, 375), (1, 2, 250), (2, 3, 312)]);
        assert_eq!((j.stages[3].output, j.stages[0].output), (Bytes(343_750_000), Bytes(0)));
    }

    #[test]
    fn faults_are_placed() {
        for (from, to, says) in [
            ("\"id\": 1", "\"id\": 2", "0:0: entry 0 (query 7, 2g): stage 1: its id"),
            ("[1, 0]", "[3, 0]", "stage 2: a parent is not"),
            ("\"2g\"", "\"2\"", "size is not"),
            (
                "\"num_tasks\": 3",
                "\"num_tasks\": -3",
                "2:26: [0].stages[0].num_tasks: invalid value",
            ),
            ("{\"5\": [4]}", "{\"5\": []}", "stage 2: no times"),
            ("]}]", "]", "[0]"),
        ] {
            assert!(TEXT.contains(from), "{from}");
            let e = parse(&TEXT.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(e.contains(says), "{e}");
        }
    }

    #[test]
    fn jobs_are_drawn_from_a_seed() {
        let queries = parse(TEXT).unwrap();
        let ask =
            QueryOptions { jobs: Some(40), recurring: 50, queues: 3, ..QueryOptions::default() };
        let (a, b) = (to_jobs("l", &queries, &ask), to_jobs("l", &queries, &ask));
        assert!(
            a == b
                && a.jobs.len() == 40
                && a != to_jobs("l", &queries, &QueryOptions { seed: 2, ..ask })
        );
        assert!(
            a.jobs.iter().any(|j| j.recurring)
                && a.jobs.iter().any(|j| !j.recurring && j.queue == 2)
        );
        assert_eq!(to_jobs("l", &[], &ask).jobs.len(), 0);
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn mutated_files_never_panic(edits in prop::collection::vec((0..TEXT.len(), 0usize..6, "[-0-9a-z\":{}\\[\\], ]{0,4}"), 1..4)) {
            let mut bytes = TEXT.as_bytes().to_vec();
            for (at, len, new) in edits {
                let at = at.min(bytes.len());
                let end = (at + len).min(bytes.len());
                bytes.splice(at..end, new.bytes());
            }
            let text = String::from_utf8_lossy(&bytes);
            if let Ok(q) = parse(&text) {
                prop_assert!(to_jobs("l", &q, &QueryOptions::default()).jobs.iter().all(|j| j.check().is_ok()));
            }
            let _ = fits(&text);
        }

        #[test]
        fn arbitrary_text_never_panics(s in "\\PC{0,200}") {
            let _ = (fits(&s), parse(&s));
        }
    }
}
