//! What became of an application's shuffles and jobs, and how it is shown.

use serde::{Deserialize, Serialize};

use super::{Mode, SparkRun, note};
use crate::api::wire;
use crate::cli::tables::{self, TextTable};
use crate::runtime::jobs::report::JobsResult;
use crate::units::{Bytes, Span};

/// The most pairs of racks that a line shows.
const PAIRS: usize = 6;

/// A line of the plug-in's report.
#[derive(Deserialize)]
#[serde(untagged)]
enum PluginLine {
    Shuffle(Box<SparkShuffle>),
    Job(SparkJob),
}

/// An attempt of a stage that read a shuffle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SparkShuffle {
    /// Spark's number of the stage.
    pub stage: u32,
    /// Which attempt of it.
    pub attempt: u32,
    /// The stage, the shuffles that it reads and the application: the name of its coflow.
    pub name: String,
    /// Spark's numbers of these shuffles.
    pub shuffles: Vec<u32>,
    /// Tasks that read.
    pub tasks: u32,
    /// When it was submitted, in milliseconds since 1970.
    pub started_ms: u64,
    /// From then until its last task had ended.
    pub took_ms: u64,
    /// Map output, as Spark's map tasks counted it.
    pub shuffle_bytes: u64,
    /// What tasks read from other hosts, as Spark counted it.
    pub remote_read_bytes: u64,
    /// Tasks by rack as the controller said; empty: Spark decided.
    pub placed: Vec<SparkRackTasks>,
    /// Why the controller did not, if it was to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_placed: Option<String>,
    /// Where tasks ran.
    pub ran: Vec<SparkRackTasks>,
    /// What the ToRs counted between racks meanwhile, other traffic included.
    #[serde(default)]
    pub sent_bytes: u64,
    /// Bytes among these that went over circuits.
    #[serde(default)]
    pub over_ocs_bytes: u64,
    /// The same by pair of racks.
    #[serde(default)]
    pub pairs: Vec<RackPairBytes>,
    /// The coflow that was declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coflow: Option<wire::Coflow>,
}

/// Tasks in a rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SparkRackTasks {
    rack: u32,
    tasks: u32,
}

/// Bytes from a rack to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RackPairBytes {
    from: u32,
    to: u32,
    bytes: u64,
}

/// A job of Spark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SparkJob {
    /// Spark's number.
    pub job: u32,
    /// When it was submitted, in milliseconds since 1970.
    pub started_ms: u64,
    /// When it ended.
    pub ended_ms: u64,
    /// Whether it did what it should.
    pub succeeded: bool,
}

/// One run of the application.
#[derive(Debug, PartialEq, Serialize)]
pub struct SparkOutcome {
    policy: String,
    mode: Mode,
    circuits: bool,
    /// Time in which a job ran, whichever it was.
    jobs_ns: Span,
    /// Time in which a stage read a shuffle.
    shuffles_ns: Span,
    /// What the ToRs counted between racks meanwhile, other traffic included.
    sent_bytes: u64,
    over_ocs_bytes: u64,
    /// Its shuffles, in the order of their ends.
    pub shuffles: Vec<SparkShuffle>,
    jobs: Vec<SparkJob>,
    /// Why the application failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// The same as a result of jobs, if the network told what it counted.
    #[serde(skip)]
    pub result: Option<Box<JobsResult>>,
}

/// A run as `--json` writes it: a result of jobs, and what only Spark and the plug-in know.
#[derive(Serialize)]
struct SparkResult<'a> {
    #[serde(flatten)]
    result: Option<&'a JobsResult>,
    spark: &'a SparkOutcome,
}

/// Time that these intervals of milliseconds cover together.
fn covered(intervals: impl Iterator<Item = (u64, u64)>) -> Span {
    let mut all: Vec<(u64, u64)> = intervals.collect();
    all.sort_unstable();
    let (mut sum, mut until) = (0, 0);
    for (from, to) in all {
        sum += to.saturating_sub(from.max(until));
        until = until.max(to);
    }
    Span::millis(sum)
}

fn share(part: u64, whole: u64) -> String {
    if whole == 0 { "-".into() } else { tables::percent(part as f64 / whole as f64) }
}

fn racks(tasks: &[SparkRackTasks]) -> String {
    tasks.iter().map(|t| format!("r{}:{}", t.rack, t.tasks)).collect::<Vec<_>>().join(" ")
}

impl SparkShuffle {
    /// Bytes by sending and receiving rack, as the ToRs counted them.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32, u64)> {
        self.pairs.iter().map(|p| (p.from, p.to, p.bytes))
    }

    /// How long it took: its coflow, or, if it was not declared or did not end, its stage.
    pub fn time(&self) -> Span {
        let cct = self.coflow.as_ref().and_then(|c| c.cct_ns).map(Span);
        cct.unwrap_or(Span::millis(self.took_ms))
    }

    /// Whether tasks ran where the controller said.
    fn placement(&self) -> String {
        match (&self.not_placed, self.placed.is_empty()) {
            (Some(why), _) => format!("no: {why}"),
            (None, true) => "-".into(),
            (None, false) if self.placed == self.ran => racks(&self.placed),
            (None, false) => format!("{}, ran {}", racks(&self.placed), racks(&self.ran)),
        }
    }

    /// For people, when it ends.
    fn line(&self) -> String {
        let mut pairs = self.pairs.clone();
        pairs.sort_by_key(|p| (std::cmp::Reverse(p.bytes), p.from, p.to));
        let shown = pairs
            .iter()
            .take(PAIRS)
            .map(|p| format!("r{}>r{} {}", p.from, p.to, tables::bytes(Bytes(p.bytes))));
        let mut shown: Vec<String> = shown.collect();
        if pairs.len() > PAIRS {
            shown.push(format!("{} others", pairs.len() - PAIRS));
        }
        let cct = self
            .coflow
            .as_ref()
            .and_then(|c| c.cct_ns)
            .map_or_else(String::new, |ns| format!(", CCT {}", tables::span(Span(ns))));
        format!(
            "stage {}: {} of shuffle, {} between racks{cct}, {} by OCS ({})",
            self.stage,
            tables::bytes(Bytes(self.shuffle_bytes)),
            tables::bytes(Bytes(self.sent_bytes)),
            share(self.over_ocs_bytes, self.sent_bytes),
            shown.join(", ")
        )
    }
}

impl SparkOutcome {
    /// Of a run that begins.
    pub fn new(plan: &SparkRun<'_>) -> Self {
        Self {
            policy: plan.place.policy.clone(),
            mode: plan.mode,
            circuits: plan.circuits,
            jobs_ns: Span::ZERO,
            shuffles_ns: Span::ZERO,
            sent_bytes: 0,
            over_ocs_bytes: 0,
            shuffles: vec![],
            jobs: vec![],
            failed: None,
            result: None,
        }
    }

    /// As a file has it.
    pub fn written(&self) -> impl Serialize {
        SparkResult { result: self.result.as_deref(), spark: self }
    }

    /// Takes a line of the report.
    pub fn take(&mut self, line: &str) {
        match serde_json::from_str(line) {
            Ok(PluginLine::Shuffle(s)) => {
                note(&s.line());
                self.shuffles.push(*s);
            }
            Ok(PluginLine::Job(j)) => self.jobs.push(j),
            Err(e) => note(&format!("the plug-in reported what cannot be read: {e}")),
        }
        self.jobs_ns = covered(self.jobs.iter().map(|j| (j.started_ms, j.ended_ms)));
        self.shuffles_ns =
            covered(self.shuffles.iter().map(|s| (s.started_ms, s.started_ms + s.took_ms)));
    }

    /// Takes the bytes that the network carried meanwhile, if they are known.
    pub fn total(&mut self, carried: Option<(u64, u64)>) {
        (self.sent_bytes, self.over_ocs_bytes) = carried.unwrap_or_default();
    }

    fn title(&self) -> String {
        if self.circuits {
            format!("{}, mode {}", self.policy, self.mode.name())
        } else {
            "no circuits".into()
        }
    }
}

/// The tables of all runs: the shuffles of each, then how the runs compare.
pub fn tables(outcomes: &[SparkOutcome]) -> String {
    let mut text = String::new();
    for o in outcomes.iter().filter(|o| !o.shuffles.is_empty()) {
        let header = [
            "stage",
            "tasks",
            "shuffle",
            "between racks",
            "by OCS",
            "CCT",
            "bound",
            "stage time",
            "racks of tasks",
        ];
        let mut rows = TextTable::new(&header);
        for s in &o.shuffles {
            let coflow = s.coflow.as_ref();
            let length =
                |ns: Option<u64>| ns.map_or_else(|| "-".into(), |ns| tables::span(Span(ns)));
            rows.rows.push(vec![
                if s.attempt > 0 {
                    format!("{}.{}", s.stage, s.attempt)
                } else {
                    s.stage.to_string()
                },
                s.tasks.to_string(),
                tables::bytes(Bytes(s.shuffle_bytes)),
                tables::bytes(Bytes(s.sent_bytes)),
                share(s.over_ocs_bytes, s.sent_bytes),
                length(coflow.and_then(|c| c.cct_ns)),
                length(coflow.map(|c| c.bound_ns)),
                tables::span(Span::millis(s.took_ms)),
                s.placement(),
            ]);
        }
        text += &format!("{}\n{}\n\n", o.title(), rows.table());
    }
    let mut rows =
        TextTable::new(&["run", "jobs", "in jobs", "in shuffles", "between racks", "by OCS"]);
    for o in outcomes {
        rows.rows.push(vec![
            o.title(),
            o.jobs.len().to_string(),
            tables::span(o.jobs_ns),
            tables::span(o.shuffles_ns),
            tables::bytes(Bytes(o.sent_bytes)),
            share(o.over_ocs_bytes, o.sent_bytes),
        ]);
    }
    text + &rows.table() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_overlap_count_once() {
        assert_eq!(covered([(10, 20), (15, 18), (30, 31), (19, 25)].into_iter()), Span::millis(16));
        assert_eq!(covered(std::iter::empty()), Span::ZERO);
    }
}
