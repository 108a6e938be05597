//! Our own jobs files.
//!
//! ```yaml
//! name: example
//! jobs:
//!   - {name: sort, queue: 0, arrival: 0ms, recurring: true,                                  # a MapReduce
//!      maps: 8, map_time: 500ms, input: 64MB, shuffle: 120MB, reduces: 4, reduce_time: 800ms, output: 10MB}
//!   - name: join                                                                           # any other graph of stages
//!     stages:
//!       - {name: left, tasks: 4, time: 500ms, input: 64MB}
//!       - {name: right, tasks: 2, time: [300ms, 1s], input: 32MB}
//!       - {name: out, tasks: 4, time: 800ms, output: 10MB}
//!     edges:
//!       - {from: left, to: out, bytes: 100MB}
//!       - {from: right, to: out, bytes: 20MB, shares: [1, 1, 2, 4]}
//!   - {name: far, maps: 2, map_time: 1s, shuffle: 9MB, types: [access, core, access], reduces: 2, reduce_time: 1s}
//! ```
//!
//! A time is one length for all tasks of a stage, or a list with one a task. Stages come in any
//! order; those without a path between them keep the file's. An edge names its stages, or gives
//! their places in the list from zero.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};

use super::error::{Flaw, Flaws, PathStep};
use crate::ids::JobId;
use crate::topology::types::Types;
use crate::units::{Bytes, Span, Time};
use crate::workload::jobs::{EdgeSpec, JobList, JobSpec, StageSpec, TaskTimes};

mod write;
pub use write::write;

/// The most tasks of one stage.
const MAX_TASKS: u32 = 1_000_000;
/// The most tasks of one file.
const MAX_ALL_TASKS: u64 = 20_000_000;
/// The most stages of one job.
const MAX_STAGES: usize = 10_000;
/// The greatest number of a queue.
const MAX_QUEUE: u32 = 9_999;
/// The most bytes of one stage or edge: one petabyte.
const MAX_BYTES: Bytes = Bytes(1_000_000_000_000_000);
/// The longest time (about thirty years).
const MAX_TIME: Span = Span::secs(1_000_000_000);

/// A jobs file as it is written.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawJobs {
    /// What people call it.
    name: String,
    /// What it is for.
    #[serde(default)]
    #[expect(dead_code, reason = "for the reader of the file")]
    description: String,
    /// The jobs, in any order.
    jobs: Vec<JobEntry>,
}

/// A job: a MapReduce (`maps`, `reduces` ..) or a graph of `stages` and `edges`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct JobEntry {
    /// What people call it; its place in the file if it has no name.
    name: Option<String>,
    /// Number of the queue in which it waits.
    #[serde(default)]
    queue: u32,
    /// When it is submitted, from the beginning of the run.
    #[serde(default)]
    arrival: Span,
    /// Whether it ran before, so that a planner knows its sizes and times ahead; else it is ad hoc.
    #[serde(default)]
    recurring: bool,
    /// MapReduce: number of map tasks.
    maps: Option<u32>,
    /// MapReduce: how long each map task computes.
    map_time: Option<Times>,
    /// MapReduce: bytes that the map tasks read from data blocks.
    input: Option<Bytes>,
    /// MapReduce: bytes from the map tasks to the reduce tasks.
    shuffle: Option<Bytes>,
    /// MapReduce: by reduce task, its share of the shuffle in any unit; all have the same if left
    /// out.
    shares: Option<Vec<u64>>,
    /// MapReduce: the tiers of the switches that the flows of its shuffle must cross, in their
    /// order, such as [access, aggregation, core, aggregation, access]; any if left out.
    types: Option<Types>,
    /// MapReduce: number of reduce tasks; without them the job ends with its map tasks.
    reduces: Option<u32>,
    /// MapReduce: how long each reduce task computes, its shuffle not included.
    reduce_time: Option<Times>,
    /// MapReduce: bytes that the job writes.
    output: Option<Bytes>,
    /// Graph: the stages, in any order.
    stages: Option<Vec<StageEntry>>,
    /// Graph: the shuffles between them.
    edges: Option<Vec<EdgeEntry>>,
}

/// Tasks that are alike.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StageEntry {
    /// What people call it, and how edges name it.
    name: Option<String>,
    /// Number of tasks.
    tasks: u32,
    /// How long each task computes, its shuffle not included.
    time: Times,
    /// Bytes that it reads from data blocks, spread evenly over its tasks.
    #[serde(default)]
    input: Bytes,
    /// Bytes that it writes for good, spread evenly over its tasks.
    #[serde(default)]
    output: Bytes,
    /// Whether a task computes while its bytes come, as those of Spark do; else it computes when it
    /// has them all.
    #[serde(default)]
    streams: bool,
}

/// A shuffle: every task of `from` sends the same to a task of `to`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EdgeEntry {
    /// The sending stage.
    from: StageRef,
    /// The receiving stage.
    to: StageRef,
    /// All bytes of the shuffle; zero makes `to` wait for `from` and moves nothing.
    #[serde(default)]
    bytes: Bytes,
    /// By task of `to`, its share of the bytes in any unit; all have the same if left out.
    shares: Option<Vec<u64>>,
    /// The tiers of the switches that its flows must cross, in their order; any if left out. All
    /// edges to one stage have the same.
    types: Option<Types>,
}

/// A stage of the same job, by its name or by its place in the list from zero.
#[derive(Clone, Debug, JsonSchema)]
#[serde(untagged)]
enum StageRef {
    Place(u32),
    Name(String),
}

impl<'de> Deserialize<'de> for StageRef {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl Visitor<'_> for V {
            type Value = StageRef;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("the name of a stage, or its place in the list from zero")
            }
            fn visit_u64<E: de::Error>(self, v: u64) -> Result<StageRef, E> {
                u32::try_from(v)
                    .map(StageRef::Place)
                    .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(v), &self))
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<StageRef, E> {
                Ok(StageRef::Name(v.into()))
            }
        }
        d.deserialize_any(V)
    }
}

/// One time for all tasks, or a list of one a task.
#[derive(Clone, Debug)]
struct Times(TaskTimes);

/// Only for the schema: what [`Times`] takes.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum TimesForm {
    /// For every task.
    Even(Span),
    /// One for each task.
    Each(Vec<Span>),
}

impl JsonSchema for Times {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Times".into()
    }
    fn json_schema(g: &mut schemars::SchemaGenerator) -> schemars::Schema {
        TimesForm::json_schema(g)
    }
}

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Times;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("a length of time such as \"500ms\", or a list of one a task")
            }
            fn visit_u64<E: de::Error>(self, v: u64) -> Result<Times, E> {
                Ok(Times(TaskTimes::Even(Span(v))))
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Times, E> {
                v.parse().map(|t| Times(TaskTimes::Even(t))).map_err(E::custom)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Times, A::Error> {
                let mut all = Vec::new();
                while let Some(t) = seq.next_element()? {
                    all.push(t);
                }
                Ok(Times(TaskTimes::Each(all)))
            }
        }
        d.deserialize_any(V)
    }
}

impl RawJobs {
    /// The jobs, by arrival. O(n log n) in what the file holds.
    ///
    /// # Errors
    /// Everything that makes no sense.
    pub fn check(self) -> Result<JobList, Vec<Flaw>> {
        let mut flaws = Flaws::default();
        let mut jobs = Vec::with_capacity(self.jobs.len());
        let mut tasks = 0u64;
        for (k, entry) in self.jobs.into_iter().enumerate() {
            let at = DocumentPath(vec!["jobs".into(), k.into()]);
            let Some(job) = entry.check(k, &at, &mut flaws) else { continue };
            tasks = tasks.saturating_add(job.tasks());
            if tasks > MAX_ALL_TASKS {
                flaws.add(at.0, "too many tasks", format!("at most {MAX_ALL_TASKS} in a file"));
                break;
            }
            jobs.push(job);
        }
        let name = self.name;
        flaws.done(|| JobList::new(name, jobs))
    }

    /// A flaw for each of the jobs' types that is among `wrong`, with what is wrong and what is
    /// allowed.
    pub fn types_among(self, wrong: &BTreeMap<Types, (String, String)>) -> Vec<Flaw> {
        let mut flaws = Flaws::default();
        for (k, job) in self.jobs.into_iter().enumerate() {
            let at = DocumentPath(vec!["jobs".into(), k.into()]);
            let mut look = |types: Option<Types>, path| {
                if let Some((what, allowed)) = types.and_then(|t| wrong.get(&t)) {
                    flaws.add(path, what.clone(), allowed.clone());
                }
            };
            look(job.types, at.key("types"));
            for (i, e) in job.edges.into_iter().flatten().enumerate() {
                look(e.types, at.at(&["edges".into(), i.into(), "types".into()]));
            }
        }
        flaws.0
    }
}

/// A path into the document, for flaws below it.
struct DocumentPath(Vec<PathStep>);

impl DocumentPath {
    fn at(&self, steps: &[PathStep]) -> Vec<PathStep> {
        [&self.0, steps].concat()
    }
    fn key(&self, key: &str) -> Vec<PathStep> {
        self.at(&[key.into()])
    }
}

fn limit_bytes(bytes: Bytes, at: Vec<PathStep>, flaws: &mut Flaws) {
    flaws.unless(
        bytes <= MAX_BYTES,
        at,
        format!("{bytes} are too many"),
        format!("at most {MAX_BYTES}"),
    );
}

/// Whether the shares of a shuffle suit its receiving tasks.
fn limit_shares(edge: &EdgeSpec, tasks: u32, at: Vec<PathStep>, flaws: &mut Flaws) {
    if let Err((what, allowed)) = edge.check_shares(tasks) {
        flaws.add(at, what, allowed);
    }
}

/// The types of a shuffle, which are some if they are said at all.
fn types_of(types: Option<Types>, at: Vec<PathStep>, flaws: &mut Flaws) -> Types {
    let Some(types) = types else { return Types::default() };
    if let Err((what, allowed)) = if types.are_free() {
        Err(("no types".into(), "one tier at least, or no `types`".into()))
    } else {
        types.check()
    } {
        flaws.add(at, what, allowed);
    }
    types
}

/// Whether a stage's number of tasks and times make sense.
fn limit_tasks(
    tasks: u32,
    tasks_at: Vec<PathStep>,
    times: &TaskTimes,
    time_at: Vec<PathStep>,
    flaws: &mut Flaws,
) {
    let fits = (1..=MAX_TASKS).contains(&tasks);
    flaws.unless(fits, tasks_at, format!("{tasks} tasks"), format!("1 to {MAX_TASKS}"));
    if let TaskTimes::Each(all) = times {
        let n = all.len();
        flaws.unless(
            n == tasks as usize,
            time_at.clone(),
            format!("{n} times for {tasks} tasks"),
            "one length, or a list of one a task",
        );
    }
    let longest = times.longest();
    flaws.unless(
        longest <= MAX_TIME,
        time_at,
        format!("{longest} are too long"),
        format!("at most {MAX_TIME}"),
    );
}

impl JobEntry {
    /// The job, unless something is wrong with it.
    fn check(self, k: usize, at: &DocumentPath, flaws: &mut Flaws) -> Option<JobSpec> {
        let before = flaws.0.len();
        flaws.unless(
            self.queue <= MAX_QUEUE,
            at.key("queue"),
            format!("queue {}", self.queue),
            format!("0 to {MAX_QUEUE}"),
        );
        let long = self.arrival > MAX_TIME;
        flaws.unless(
            !long,
            at.key("arrival"),
            format!("{} are too long", self.arrival),
            format!("at most {MAX_TIME}"),
        );
        let name = self.name.clone().unwrap_or_else(|| format!("job-{k}"));
        let (queue, arrival, recurring) = (self.queue, Time::ZERO + self.arrival, self.recurring);
        let parts = if self.stages.is_some() || self.edges.is_some() {
            self.graph(at, flaws)
        } else {
            self.map_reduce(at, flaws)
        };
        let (stages, edges) = parts.filter(|_| flaws.0.len() == before)?;
        Some(JobSpec { id: JobId(0), name, queue, arrival, recurring, stages, edges })
    }

    /// The keys of the short form that the entry has.
    fn short_keys(&self) -> Vec<&'static str> {
        let has = [
            ("maps", self.maps.is_some()),
            ("map_time", self.map_time.is_some()),
            ("input", self.input.is_some()),
            ("shuffle", self.shuffle.is_some()),
            ("shares", self.shares.is_some()),
            ("types", self.types.is_some()),
            ("reduces", self.reduces.is_some()),
            ("reduce_time", self.reduce_time.is_some()),
            ("output", self.output.is_some()),
        ];
        has.into_iter().filter(|h| h.1).map(|h| h.0).collect()
    }

    fn map_reduce(
        self,
        at: &DocumentPath,
        flaws: &mut Flaws,
    ) -> Option<(Vec<StageSpec>, Vec<EdgeSpec>)> {
        let (Some(maps), Some(map_time)) = (self.maps, self.map_time) else {
            flaws.add(
                at.0.clone(),
                "a job without stages",
                "a MapReduce: `maps` and `map_time` at least; or `stages` and `edges`",
            );
            return None;
        };
        let reduces = self.reduces.unwrap_or(0);
        let of = |b: Option<Bytes>| b.unwrap_or_default();
        let (input, shuffle, output) = (of(self.input), of(self.shuffle), of(self.output));
        for (bytes, key) in [(input, "input"), (shuffle, "shuffle"), (output, "output")] {
            limit_bytes(bytes, at.key(key), flaws);
        }
        limit_tasks(maps, at.key("maps"), &map_time.0, at.key("map_time"), flaws);
        let map_output = if reduces == 0 { output } else { Bytes::ZERO };
        let map = StageSpec {
            name: "map".into(),
            tasks: maps,
            times: map_time.0,
            input,
            output: map_output,
            streams: false,
        };
        if reduces == 0 {
            flaws.unless(
                shuffle == Bytes::ZERO,
                at.key("shuffle"),
                "a shuffle to no reduce task",
                "`reduces` of 1 or more, or no shuffle",
            );
            flaws.unless(
                self.shares.is_none(),
                at.key("shares"),
                "shares of no reduce task",
                "`reduces` of 1 or more",
            );
            flaws.unless(
                self.types.is_none(),
                at.key("types"),
                "types of no shuffle",
                "`reduces` of 1 or more",
            );
            flaws.unless(
                self.reduce_time.is_none(),
                at.key("reduce_time"),
                "times of no reduce task",
                "`reduces` of 1 or more",
            );
            return Some((vec![map], vec![]));
        }
        let Some(Times(times)) = self.reduce_time else {
            flaws.add(
                at.key("reduces"),
                "reduce tasks without a time",
                "`reduce_time` beside `reduces`",
            );
            return None;
        };
        limit_tasks(reduces, at.key("reduces"), &times, at.key("reduce_time"), flaws);
        let reduce = StageSpec {
            name: "reduce".into(),
            tasks: reduces,
            times,
            input: Bytes::ZERO,
            output,
            streams: false,
        };
        let types = types_of(self.types, at.key("types"), flaws);
        let edge = EdgeSpec { shares: self.shares, types, ..EdgeSpec::even(0, 1, shuffle) };
        limit_shares(&edge, reduces, at.key("shares"), flaws);
        Some((vec![map, reduce], vec![edge]))
    }

    fn graph(
        self,
        at: &DocumentPath,
        flaws: &mut Flaws,
    ) -> Option<(Vec<StageSpec>, Vec<EdgeSpec>)> {
        for key in self.short_keys() {
            flaws.add(
                at.key(key),
                format!("`{key}` beside `stages`"),
                "a MapReduce's keys, or `stages` and `edges`, not both",
            );
        }
        let stages = self.stages.unwrap_or_default();
        let fits = (1..=MAX_STAGES).contains(&stages.len());
        flaws.unless(
            fits,
            at.key("stages"),
            format!("{} stages", stages.len()),
            format!("1 to {MAX_STAGES}"),
        );
        let stages: Vec<StageSpec> =
            stages.into_iter().enumerate().map(|(i, s)| stage(s, i, at, flaws)).collect();
        let edges = edges(self.edges.unwrap_or_default(), &stages, at, flaws)?;
        let Some(order) = topological(stages.len(), &edges) else {
            flaws.add(
                at.key("edges"),
                "the stages wait for each other in a circle",
                "edges that lead from earlier stages to later ones",
            );
            return None;
        };
        let mut new = vec![0; order.len()];
        for (to, &from) in order.iter().enumerate() {
            new[from] = to;
        }
        let mut edges: Vec<_> =
            edges.into_iter().map(|e| EdgeSpec { from: new[e.from], to: new[e.to], ..e }).collect();
        edges.sort_unstable_by_key(|e| (e.from, e.to));
        let mut stages: Vec<_> = stages.into_iter().map(Some).collect();
        let stages = order
            .iter()
            .map(|&k| stages[k].take().expect("an order names every stage once"))
            .collect();
        Some((stages, edges))
    }
}

fn stage(s: StageEntry, i: usize, at: &DocumentPath, flaws: &mut Flaws) -> StageSpec {
    let step = |key: &str| at.at(&["stages".into(), i.into(), key.into()]);
    limit_tasks(s.tasks, step("tasks"), &s.time.0, step("time"), flaws);
    limit_bytes(s.input, step("input"), flaws);
    limit_bytes(s.output, step("output"), flaws);
    let name = s.name.unwrap_or_else(|| format!("stage-{i}"));
    StageSpec {
        name,
        tasks: s.tasks,
        times: s.time.0,
        input: s.input,
        output: s.output,
        streams: s.streams,
    }
}

/// The edges with their stages found; nothing if one of them makes no sense.
fn edges(
    entries: Vec<EdgeEntry>,
    stages: &[StageSpec],
    at: &DocumentPath,
    flaws: &mut Flaws,
) -> Option<Vec<EdgeSpec>> {
    let mut by_name: std::collections::BTreeMap<&str, Vec<usize>> = Default::default();
    for (k, s) in stages.iter().enumerate() {
        by_name.entry(&s.name).or_default().push(k);
    }
    let find = |stage: &StageRef| match stage {
        StageRef::Place(k) => Some(*k as usize)
            .filter(|k| *k < stages.len())
            .ok_or_else(|| format!("there is no stage {k}")),
        StageRef::Name(n) => match by_name.get(n.as_str()).map_or(&[][..], |v| v) {
            [k] => Ok(*k),
            [] => Err(format!("`{n}` is not a stage of this job")),
            _ => Err(format!("`{n}` names several stages")),
        },
    };
    let names: Vec<&str> = stages.iter().map(|s| s.name.as_str()).take(20).collect();
    let allowed =
        format!("0 to {}, or one of {}", stages.len().saturating_sub(1), names.join(", "));
    let (before, mut seen, mut found) =
        (flaws.0.len(), std::collections::BTreeSet::new(), Vec::new());
    for (i, e) in entries.into_iter().enumerate() {
        let place = |key: &str| at.at(&["edges".into(), i.into(), key.into()]);
        limit_bytes(e.bytes, place("bytes"), flaws);
        let mut end = |r: &StageRef, key: &str| {
            find(r).map_err(|why| flaws.add(place(key), why, allowed.clone())).ok()
        };
        let (Some(from), Some(to)) = (end(&e.from, "from"), end(&e.to, "to")) else { continue };
        if !seen.insert((from, to)) {
            flaws.add(
                at.at(&["edges".into(), i.into()]),
                "a second edge between the same stages",
                "at most one a pair",
            );
        }
        let types = types_of(e.types, place("types"), flaws);
        let edge = EdgeSpec { shares: e.shares, types, ..EdgeSpec::even(from, to, e.bytes) };
        limit_shares(&edge, stages[to].tasks, place("shares"), flaws);
        if let Some(first) = found.iter().find(|f: &&EdgeSpec| f.to == to && f.types != edge.types)
        {
            let others =
                if first.types.are_free() { "none".into() } else { format!("[{}]", first.types) };
            let what = format!(
                "other types than those of the shuffle from `{}` to the same stage",
                stages[first.from].name
            );
            flaws.add(
                at.at(&["edges".into(), i.into()]),
                what,
                format!("the same for all, since they are one coflow: {others}"),
            );
        }
        found.push(edge);
    }
    (flaws.0.len() == before).then_some(found)
}

/// The stages so that every edge leads forward, the first of the file first where there is a
/// choice; `None` if there is a circle. O((n + edges) log n).
fn topological(n: usize, edges: &[EdgeSpec]) -> Option<Vec<usize>> {
    let (mut waits, mut next) = (vec![0usize; n], vec![vec![]; n]);
    for e in edges {
        waits[e.to] += 1;
        next[e.from].push(e.to);
    }
    let mut ready: std::collections::BTreeSet<usize> = (0..n).filter(|&k| waits[k] == 0).collect();
    let mut order = Vec::with_capacity(n);
    while let Some(k) = ready.pop_first() {
        order.push(k);
        for &to in &next[k] {
            waits[to] -= 1;
            if waits[to] == 0 {
                ready.insert(to);
            }
        }
    }
    (order.len() == n).then_some(order)
}

#[cfg(test)]
mod tests;
