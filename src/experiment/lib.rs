//! The papers' evaluations as runnable comparisons.
//!
//! A [`plan`](Experiment) names [settings](setting): a network, systems that schedule on it, and
//! jobs drawn from a seed; and [claims](claim): numbers that the paper prints. [`runs`] plays every
//! system on every setting for every seed, in parallel; the [report] holds what came out against
//! what the paper prints, and says by what it was measured why the two differ.
//!
//! Task times are not in the papers (they were measured on a Hadoop node), so where makespans and
//! completion times depend on the proportion of computing to network, ours can differ; see
//! `docs/experiments.md`.
#![forbid(unsafe_code)]

use heliostat_base::{ids, paths, topology, units};
use heliostat_circuits::coflows;
use heliostat_control as control;
use heliostat_jobs::{placement, scheduler, workload};
use heliostat_kernel as kernel;
use heliostat_run::{config, runtime};
use heliostat_seam::plan;
use heliostat_sim as sim;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub mod assumptions;
pub mod case_study;
pub mod claim;
pub mod concurrency;
pub mod corral;
pub mod coscheduler;
pub mod decision;
pub mod floor;
pub mod hit;
pub mod hops;
pub mod jobpacker;
pub mod joint;
pub mod live;
pub mod measure;
pub mod pushbox;
pub mod report;
pub mod runs;
pub mod setting;
pub mod stored;
#[cfg(test)]
mod tests;
pub mod versus;

#[cfg(test)]
#[path = "../testing.rs"]
mod testing;

use assumptions::{Assumptions, Calibration};
use claim::{Claim, ClaimSide};
use setting::ExperimentSetting;

use crate::scheduler::state::Grain;
use crate::units::Span;
use crate::workload::coflow_benchmark::Trace;
use crate::workload::swim::SwimJob;

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
    /// Hit-scheduler (ICPP 2018), section 7
    Hit,
    /// PushBox (TPDS 2022), sections 4, 6 and 7
    Pushbox,
    /// No paper's: `joint` in the settings of all five, beside bounds and strong baselines
    Joint,
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
    /// Sweeps have only some of their points.
    #[serde(default)]
    pub thin: bool,
    /// What the paper does not print; [`Paper::experiment`] fills in the calibration's.
    pub free: Assumptions,
}

/// An evaluation: what is run, and what the paper says of it.
pub struct Experiment {
    /// Whose.
    pub paper: Paper,
    /// What was chosen for the numbers that the paper does not print, for these jobs.
    pub calibration: Calibration,
    /// What was taken for them.
    pub free: Assumptions,
    /// What ends of flows leave is shared again at multiples of this only; zero: at once
    /// ([`Extras::resolution`](crate::runtime::simulate::Extras::resolution)); `None`: as each
    /// setting has it.
    pub resolution: Option<Span>,
    /// In the order of the report.
    pub settings: Vec<ExperimentSetting>,
    /// In the order of the report.
    pub claims: Vec<Claim>,
}

impl Experiment {
    /// Has flows of all systems go between these places, whatever the paper's simulator has.
    ///
    /// # Errors
    /// Racks as a whole are asked for, and a system that looks at hosts.
    pub fn between(&mut self, grain: Grain) -> Result<(), String> {
        let systems = || self.settings.iter().flat_map(|s| &s.systems);
        if let Some(s) =
            systems().find(|s| grain == Grain::Rack && s.jobs_by.placement.kind().is_by_host())
        {
            return Err(format!("`{}` looks at the hosts' interfaces; allowed: host", s.name));
        }
        self.settings
            .iter_mut()
            .flat_map(|s| &mut s.systems)
            .for_each(|s| s.jobs_by.settings.grain = grain);
        Ok(())
    }

    /// Leaves out all settings and systems but those named, and what is claimed of others; none
    /// named: all stay.
    ///
    /// # Errors
    /// A name that is not there, and the names that are.
    pub fn only(&mut self, settings: &[String], systems: &[String]) -> Result<(), String> {
        let there: BTreeSet<&str> = self.settings.iter().map(|s| s.name).collect();
        let run: BTreeSet<&str> =
            self.settings.iter().flat_map(|s| s.systems.iter().map(|y| y.name)).collect();
        for (what, asked, known) in [("setting", settings, &there), ("system", systems, &run)] {
            if let Some(name) = asked.iter().find(|n| !known.contains(n.as_str())) {
                let known: Vec<&str> = known.iter().copied().collect();
                return Err(format!("there is no {what} `{name}`; allowed: {}", known.join(", ")));
            }
        }
        let among =
            |asked: &[String], name: &str| asked.is_empty() || asked.iter().any(|n| n == name);
        self.settings.iter_mut().for_each(|s| s.systems.retain(|y| among(systems, y.name)));
        self.settings.retain(|s| among(settings, s.name) && !s.systems.is_empty());
        let kept = |side: ClaimSide| among(settings, side.setting) && among(systems, side.system);
        self.claims.retain(|c| {
            kept(c.of)
                && c.against.is_none_or(kept)
                && c.beyond.is_none_or(|(a, b)| kept(a) && kept(b))
        });
        Ok(())
    }
}

/// Public traces from which papers took their jobs; where one is missing, jobs are drawn from
/// published numbers.
#[derive(Clone, Debug, Default)]
pub struct Traces {
    /// Facebook's coflows, for PushBox.
    pub coflows: Option<Arc<Trace>>,
    /// Rows of SWIM's Facebook jobs, for JobPacker and Co-scheduler.
    pub jobs: Option<Arc<[SwimJob]>>,
}

impl Paper {
    /// The settings that are run where networks are emulated, if nothing else is asked for; none:
    /// this paper's are for virtual time only.
    pub fn live_settings(self) -> &'static [&'static str] {
        if self == Self::Hit { &hit::LIVE } else { &[] }
    }

    /// The evaluation without traces.
    pub fn experiment(self, size: Size) -> Experiment {
        self.experiment_with(size, &Traces::default())
    }

    /// The evaluation with traces, if it wants any.
    pub fn experiment_with(self, size: Size, traces: &Traces) -> Experiment {
        let calibration = self.calibrated(traces.jobs.is_some());
        let size = Size { free: size.free.or(calibration.free), ..size };
        let rows = traces.jobs.as_ref();
        let (settings, claims) = match self {
            Self::Jobpacker => (jobpacker::settings(size, rows), jobpacker::claims()),
            Self::CoScheduler => (coscheduler::settings(size, rows), coscheduler::claims()),
            Self::Corral => (corral::settings(size), corral::claims()),
            Self::Hit => (hit::settings(size), hit::claims()),
            Self::Pushbox => {
                (pushbox::settings(size, traces.coflows.as_ref()), pushbox::claims(size))
            }
            Self::Joint => (joint::settings(size, traces), joint::claims()),
        };
        Experiment { paper: self, calibration, free: size.free, resolution: None, settings, claims }
    }

    /// What the evaluation shows, in a sentence.
    pub fn shows(self) -> &'static str {
        match self {
            Self::Jobpacker => {
                "JobPacker's makespans, completion times and share of circuits, against Corral, F-Hybrid and F-EPS"
            }
            Self::CoScheduler => {
                "Co-scheduler's shuffles on circuits, against Fair, Corral and parts of itself"
            }
            Self::Corral => {
                "Jobs on racks that are planned ahead, against Yarn-CS, ShuffleWatcher and LocalShuffle; its planner's gaps"
            }
            Self::Hit => {
                "Tasks placed so that shuffles cross few switches, against Capacity and PNA, on four shapes of networks"
            }
            Self::Pushbox => {
                "Few tasks that fetch at once, against Hadoop, ShuffleWatcher and NEAT, by load, queues and its own parts"
            }
            Self::Joint => {
                "`joint` against all of these, as published and with the least remaining work first and late reduces"
            }
        }
    }

    /// The first draw. What `joint` is tuned with are the draws before.
    pub fn first_seed(self) -> u64 {
        if self == Self::Joint { joint::HELD_OUT } else { 1 }
    }

    /// Minutes of processor time that `--quick` took (docs/experiments.md says where).
    pub fn quick_minutes(self) -> f64 {
        match self {
            Self::Jobpacker => 6.0,
            Self::CoScheduler => 9.5,
            Self::Corral => 1.0,
            Self::Hit => 2.0 / 60.0,
            Self::Pushbox => 25.0,
            Self::Joint => 60.0,
        }
    }

    /// Repetitions: the paper's, or `quick`ly a few.
    pub fn repeats(self, quick: bool) -> usize {
        match (self, quick) {
            (_, true) => 3,
            (Self::Jobpacker | Self::CoScheduler, false) => 20,
            // One testbed, one run; ours are as many as give an interval.
            (Self::Corral | Self::Hit | Self::Pushbox | Self::Joint, false) => 10,
        }
    }
}
