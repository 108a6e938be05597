//! The papers' evaluations as runnable comparisons.
//!
//! A [`plan`](Experiment) names [settings](setting): a network, systems that schedule on it, and jobs drawn from a seed; and
//! [claims](claim): numbers that the paper prints. [`runs`] plays every system on every setting for every seed, in parallel; the
//! [report] holds what came out against what the paper prints, and says by what it was measured why the two differ.
//!
//! Task times are not in the papers (they were measured on a Hadoop node), so where makespans and completion times depend on the
//! proportion of computing to network, ours can differ; see `docs/experiments.md`.

use serde::{Deserialize, Serialize};

pub mod claim;
pub mod corral;
pub mod coscheduler;
pub mod jobpacker;
pub mod report;
pub mod runs;
pub mod setting;
#[cfg(test)]
mod tests;

use claim::Claim;
use setting::Setting;

/// Whose evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Paper {
    /// JobPacker (ICPP 2019), section 5
    Jobpacker,
    /// Co-scheduler (ToN 2022), section V
    CoScheduler,
    /// Corral (SIGCOMM 2015), section 6, and its planner
    Corral,
}

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// The first seed; repetitions take those after it.
    pub seed: u64,
    /// Repetitions.
    pub repeats: usize,
    /// Jobs in per cent of the paper's; tests run fewer.
    pub jobs_percent: usize,
}

/// An evaluation: what is run, and what the paper says of it.
pub struct Experiment {
    /// Whose.
    pub paper: Paper,
    /// In the order of the report.
    pub settings: Vec<Setting>,
    /// In the order of the report.
    pub claims: Vec<Claim>,
}

impl Paper {
    /// The evaluation.
    pub fn experiment(self, size: Size) -> Experiment {
        let (settings, claims) = match self {
            Self::Jobpacker => (jobpacker::settings(size), jobpacker::claims()),
            Self::CoScheduler => (coscheduler::settings(size), coscheduler::claims()),
            Self::Corral => (corral::settings(size), corral::claims()),
        };
        Experiment { paper: self, settings, claims }
    }

    /// Repetitions: the paper's, or `quick`ly a few.
    pub fn repeats(self, quick: bool) -> usize {
        match (self, quick) {
            (_, true) => 3,
            (Self::Jobpacker | Self::CoScheduler, false) => 20,
            // One testbed, one run; ours are as many as give an interval.
            (Self::Corral, false) => 10,
        }
    }
}
