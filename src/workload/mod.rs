//! What is run: coflows today, jobs with tasks and data blocks beside them.
//!
//! A workload comes from our own YAML ([`yaml`]), from a trace of the coflow-benchmark ([`coflow_benchmark`]) or from a
//! seed ([`synth`]). [`read`] tells the first two apart by their first line. Whatever the source, the result is a
//! [`Workload`] over the hosts of one [`Topology`], and [`Adjust`] shrinks it for an emulation.

use serde::{Deserialize, Serialize};

use crate::coflows::CoflowSpec;
use crate::ids::CoflowId;
use crate::topology::Topology;
use crate::units::{Bytes, Time};

pub mod coflow_benchmark;
mod locate;
pub mod stats;
pub mod synth;
pub mod yaml;

/// A list of coflows, by arrival.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Workload {
    /// What people call it.
    pub name: String,
    /// In the order of arrival, ids dense from zero.
    pub coflows: Vec<CoflowSpec>,
}

/// Why a text is not a workload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {}{}{why}", .path.as_deref().unwrap_or(""), if .path.is_some() { ": " } else { "" })]
pub struct WorkloadError {
    /// The file as the user named it.
    pub file: String,
    /// From one.
    pub line: usize,
    /// From one, in characters.
    pub column: usize,
    /// Which key, such as `coflows[3].flows[0].to`; only in YAML.
    pub path: Option<String>,
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
    /// Brings coflows into the order of their arrival (ties keep their order) and numbers them from zero.
    pub fn new(name: impl Into<String>, mut coflows: Vec<CoflowSpec>) -> Self {
        coflows.sort_by_key(|c| c.arrival);
        for (k, c) in coflows.iter_mut().enumerate() {
            c.id = CoflowId::from(k);
        }
        Self { name: name.into(), coflows }
    }

    /// This workload cut short, with smaller flows and shorter gaps. A scale of zero counts as one. O(flows).
    #[must_use]
    pub fn adjusted(mut self, adjust: &Adjust) -> Self {
        self.coflows.truncate(adjust.first.unwrap_or(usize::MAX));
        for c in &mut self.coflows {
            c.arrival = Time(c.arrival.0 / adjust.time_scale.max(1));
            for f in &mut c.flows {
                f.bytes = Bytes(f.bytes.0.div_ceil(adjust.scale.max(1)));
            }
        }
        self
    }

    /// All payload bytes.
    pub fn bytes(&self) -> Bytes {
        self.coflows.iter().map(CoflowSpec::bytes).sum()
    }
}

/// Reads a workload of either format: a text that begins with two integers is a coflow-benchmark trace, any other is YAML.
///
/// `file` is what errors call the text; `mapping` says how a trace's ports become hosts.
///
/// # Errors
/// The first fault with its line and column.
pub fn read(text: &str, file: &str, topology: &Topology, mapping: &coflow_benchmark::Mapping) -> Result<Workload, WorkloadError> {
    if coflow_benchmark::looks_like(text) {
        let name = file.rsplit('/').next().unwrap_or(file);
        coflow_benchmark::parse(text, file)?.to_workload(name, topology, mapping)
    } else {
        yaml::parse(text, file, topology)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BitRate;
    use proptest::prelude::*;

    #[test]
    fn the_format_is_recognised_and_the_workload_adjusted() {
        let t = Topology::uniform("t", 4, 2, BitRate::mbit(1000), BitRate::mbit(100), vec![]);
        let m = coflow_benchmark::Mapping::default();
        let w = read("3 2\n1 0 1 0 1 1:2.0\n2 1000 1 1 1 2:4.0\n", "dir/x.txt", &t, &m).unwrap();
        assert_eq!((w.name.as_str(), w.coflows.len(), w.bytes()), ("x.txt", 2, Bytes(6_000_000)));
        let small = w.clone().adjusted(&Adjust { first: Some(2), scale: 7, time_scale: 10 });
        assert_eq!(small.coflows[1].arrival, Time(100_000_000));
        assert_eq!(small.coflows[0].flows[0].bytes, Bytes(285_715));
        assert_eq!(w.adjusted(&Adjust { first: Some(1), ..Adjust::default() }).coflows.len(), 1);
        assert_eq!(read("name: n\ncoflows: []\n", "n.yaml", &t, &m).unwrap(), Workload::new("n", vec![]));
    }

    proptest! {
        #[test]
        fn reading_never_panics(s in "\\PC{0,80}") {
            let t = Topology::uniform("t", 2, 1, BitRate::mbit(1000), BitRate::mbit(100), vec![]);
            let _ = read(&s, "f", &t, &coflow_benchmark::Mapping::default());
        }
    }
}
