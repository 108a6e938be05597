//! What is run: coflows between given hosts, and jobs whose tasks a scheduler places.
//!
//! Coflows come from our own YAML (read by the crate `run`), from a trace of the coflow-benchmark
//! ([`coflow_benchmark`]), of CoflowSim ([`coflowsim`]), htsim ([`htsim`]), Sunflow
//! ([`sunflow_trace`]) or Sincronia ([`sincronia`]), or from a seed ([`synth`]). Whatever the
//! source, the result is a [`Workload`] over the hosts of one
//! [`Topology`](crate::topology::Topology), and [`Adjust`] shrinks it for an emulation.
//!
//! Jobs ([`jobs`]) come from our own YAML, from SWIM's rows ([`swim`]) or published distributions
//! ([`synth_jobs`]), both through a model of tasks ([`job_model`]), from measured queries
//! ([`decima`]), or from event logs of Spark ([`spark_log`]). [`spread`] turns jobs into coflows
//! without a task scheduler.

use serde::{Deserialize, Serialize};

use crate::coflows::{CoflowSpec, FlowSpec};
use crate::ids::CoflowId;
use crate::units::{Bytes, Time};

pub mod coflow_benchmark;
pub mod coflowsim;
pub mod csv;
pub mod decima;
pub(crate) mod draws;
pub mod flow_sizes;
pub mod htsim;
pub mod job_model;
pub mod job_stats;
pub mod jobs;
pub mod puma;
pub mod pushbox;
pub mod sincronia;
pub mod spark_log;
pub mod spread;
pub mod stats;
pub mod sunflow_trace;
pub mod swim;
pub mod synth;
pub mod synth_jobs;
mod taken;
pub mod tpch;
pub mod trace_jobs;
mod words;

pub use taken::{Fewer, Folded, LeftOut, Taken};

/// A list of coflows, by arrival.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Workload {
    /// What people call it.
    pub name: String,
    /// The coflows in the order of arrival, ids dense from zero.
    pub coflows: Vec<CoflowSpec>,
    /// What became of its file when it was read.
    #[serde(default, skip_serializing_if = "Taken::is_plain")]
    pub taken: Taken,
}

/// The lines of a trace that say something, with their numbers from one: not the blank ones, nor
/// those that begin with `#`.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(k, l)| (k + 1, l))
        .filter(|(_, l)| !l.trim().is_empty() && !l.trim_start().starts_with('#'))
}

/// Why a text is not a trace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {why}")]
pub struct TraceError {
    /// The line, from one; zero when the fault is not at one place.
    pub line: usize,
    /// The column, from one, in characters; zero when the fault is not at one place.
    pub column: usize,
    /// What is wrong, and what is allowed.
    pub why: String,
}

/// What is done to every workload before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adjust {
    /// Keep only this many coflows, the first to arrive.
    pub first: Option<usize>,
    /// Divides the bytes of every flow, rounded up; times stay.
    pub scale: u64,
    /// Divides every arrival, so that a long trace fits a short run.
    pub time_scale: u64,
}

impl Default for Adjust {
    fn default() -> Self {
        Self { first: None, scale: 1, time_scale: 1 }
    }
}

impl Workload {
    /// Brings coflows into the order of their arrival (ties keep their order) and numbers them from
    /// zero.
    pub fn new(name: impl Into<String>, mut coflows: Vec<CoflowSpec>) -> Self {
        coflows.sort_by_key(|c| c.arrival);
        for (k, c) in coflows.iter_mut().enumerate() {
            c.id = CoflowId::from(k);
        }
        Self { name: name.into(), coflows, taken: Taken::default() }
    }

    /// This workload cut short, with smaller flows and shorter gaps. A scale of zero counts as one.
    /// O(flows).
    #[must_use]
    pub fn adjusted(mut self, adjust: &Adjust) -> Self {
        let there = self.coflows.len();
        if let Some(asked) = adjust.first {
            self.coflows.truncate(asked);
            self.taken.fewer =
                (asked > there).then_some(Fewer { asked: asked as u64, there: there as u64 });
        }
        for c in &mut self.coflows {
            c.arrival = Time(c.arrival.0 / adjust.time_scale.max(1));
            if adjust.scale > 1 {
                c.flows = c
                    .flows
                    .iter()
                    .map(|f| FlowSpec { bytes: Bytes(f.bytes.0.div_ceil(adjust.scale)), ..f })
                    .collect();
            }
        }
        self
    }

    /// All payload bytes.
    pub fn bytes(&self) -> Bytes {
        self.coflows.iter().map(CoflowSpec::bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coflows::FlowSpec;
    use crate::ids::HostId;

    #[test]
    fn workloads_are_sorted_numbered_and_adjusted() {
        let coflow = |name: &str, at, bytes| {
            CoflowSpec::new(
                CoflowId(9),
                name,
                Time(at),
                vec![FlowSpec { from: HostId(0), to: HostId(1), bytes: Bytes(bytes) }],
            )
        };
        let w = Workload::new(
            "w",
            vec![coflow("late", 1000, 2_000_000), coflow("a", 0, 4), coflow("b", 0, 5)],
        );
        let order: Vec<_> = w.coflows.iter().map(|c| (c.id.0, c.name.as_str())).collect();
        assert_eq!((order, w.bytes()), (vec![(0, "a"), (1, "b"), (2, "late")], Bytes(2_000_009)));
        let small = w.clone().adjusted(&Adjust { first: None, scale: 7, time_scale: 10 });
        let sizes: Vec<_> =
            small.coflows.iter().map(|c| (c.arrival.0, c.flows.at(0).bytes.0)).collect();
        assert_eq!(sizes, [(0, 1), (0, 1), (100, 285_715)]);
        let first = |n| w.clone().adjusted(&Adjust { first: Some(n), ..Adjust::default() });
        assert_eq!(
            (first(1).coflows.len(), first(1).taken.fewer, first(3).taken.fewer),
            (1, None, None)
        );
        let fewer = first(4).taken.fewer.expect("there are three");
        assert_eq!(fewer.to_string(), "3 coflows, where 4 were asked for");
    }
}
