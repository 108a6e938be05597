//! The report of an experiment: each number of the paper beside ours, what else was measured, and
//! why the two differ.

use std::collections::BTreeMap;

use serde::Serialize;

use super::assumptions::{Assumptions, Calibration};
use super::claim::{Claim, ClaimVerdict, Printed, Reach};
use super::live::{Both, LiveAndSimulated, Slower};
use super::runs::{FLOOR, Measure, Outcomes};
use super::setting::{ExperimentSetting, System};
use super::versus::{self, Versus};
use super::{Experiment, Paper, Size};
use crate::runtime::statistics::{MeanEstimate, mean};
use crate::units::Span;

/// A number of the paper beside ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PaperFigure {
    /// On which setting.
    pub setting: &'static str,
    /// What is compared, for people.
    pub figure: String,
    /// The unit of both.
    pub unit: &'static str,
    /// What the paper prints.
    pub paper: Option<Printed>,
    /// The figure, table or section that prints it.
    pub source: &'static str,
    /// Ours, by repetition.
    pub values: Vec<f64>,
    /// Their mean.
    pub mean: f64,
    /// Half of the 95 % confidence interval of the mean.
    pub half: Option<f64>,
    /// How far the mean is from what is printed, in points (seconds, where the unit is a second).
    pub off: Option<f64>,
    /// How ours compares with the paper's.
    pub verdict: ClaimVerdict,
    /// What was measured on both sides of a comparison that came out differently.
    pub why: String,
}

/// What stands in the place of an interval where all repetitions measured the same.
pub const SAME: &str = "same in all runs";

/// What no scheduler can be below on a setting, beside the best that was measured there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bound {
    /// The setting.
    pub setting: &'static str,
    /// Of which measure.
    pub measure: Measure,
    /// Repetitions that the floor and all systems have.
    pub runs: usize,
    /// The floor, in the mean over them.
    pub floor: f64,
    /// The system that has the least, and what it has.
    pub best: (&'static str, f64),
    /// By how many per cent of that it could be less.
    pub leaves_percent: f64,
}

/// What was measured of one system on one setting, in the mean.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredSystem {
    /// The setting.
    pub setting: &'static str,
    /// The system.
    pub system: &'static str,
    /// Repetitions that were run.
    pub runs: usize,
    /// Means.
    pub means: Vec<(Measure, f64)>,
}

/// Everything that an experiment found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExperimentReport {
    /// Heliostat's version.
    pub version: &'static str,
    /// Whose evaluation.
    pub paper: Paper,
    /// What was asked.
    pub size: Size,
    /// What was chosen for the numbers that the paper does not print.
    pub calibration: Calibration,
    /// What was taken for them.
    pub free: Assumptions,
    /// It was stopped before its end.
    pub partial: bool,
    /// Real time that it took, in seconds.
    pub took_s: f64,
    /// Number of threads.
    pub threads: usize,
    /// Name and description of each setting.
    pub settings: Vec<(&'static str, String)>,
    /// What no scheduler can be below.
    pub bounds: Vec<Bound>,
    /// The paper's numbers.
    pub rows: Vec<PaperFigure>,
    /// The means behind them.
    pub measured: Vec<MeasuredSystem>,
    /// `joint` beside the best of the others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub versus: Vec<Versus>,
    /// Where the network was emulated: how, and virtual time beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveReport>,
}

/// What was measured on an emulated network beside virtual time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveReport {
    /// The mechanism of the emulation.
    pub mechanism: &'static str,
    /// By how much rates and times were smaller; what was measured is multiplied back.
    pub slower: Slower,
    /// By setting, system and measure.
    pub pairs: Vec<LiveAndSimulated>,
}

impl ExperimentReport {
    /// Of what was run.
    pub fn new(e: &Experiment, outcomes: &Outcomes, took_s: f64, threads: usize) -> Self {
        let pairs = e.settings.iter().flat_map(|s| s.systems.iter().map(move |y| (s.name, y.name)));
        Self {
            version: env!("CARGO_PKG_VERSION"),
            paper: e.paper,
            size: outcomes.size,
            calibration: e.calibration,
            free: e.free,
            partial: outcomes.is_partial(),
            took_s,
            threads,
            settings: e.settings.iter().map(|s| (s.name, about(s))).collect(),
            bounds: e.settings.iter().flat_map(|s| bounds(s, outcomes)).collect(),
            rows: e.claims.iter().map(|c| row(c, outcomes)).collect(),
            measured: pairs.map(|(s, y)| measured(s, y, outcomes)).collect(),
            versus: e
                .settings
                .iter()
                .filter(|_| e.paper == Paper::Joint)
                .flat_map(|s| versus::of(s, outcomes))
                .collect(),
            live: None,
        }
    }

    /// Of what was run on an emulated network.
    pub fn live(e: &Experiment, both: &Both, slower: Slower, took_s: f64) -> Self {
        let live = LiveReport { mechanism: both.mechanism, slower, pairs: both.pairs(e) };
        Self { live: Some(live), ..Self::new(e, &both.live, took_s, 1) }
    }
}

impl PaperFigure {
    /// Whether there are several repetitions, and all measured the same.
    pub fn is_same(&self) -> bool {
        self.values.len() > 1 && self.values.windows(2).all(|v| v[0] == v[1])
    }

    /// Half of the interval, for people.
    pub fn interval(&self) -> String {
        if self.is_same() {
            SAME.into()
        } else {
            self.half.map_or("-".into(), |h| format!("+-{h:.1}"))
        }
    }
}

impl ExperimentReport {
    /// How many of the paper's numbers came out how, best first; those by which a free number was
    /// chosen are not among them.
    pub fn tally(&self) -> Vec<(ClaimVerdict, usize)> {
        let mut by = BTreeMap::new();
        self.rows
            .iter()
            .filter(|r| r.verdict.is_prediction())
            .for_each(|r| *by.entry(r.verdict).or_default() += 1);
        by.into_iter().collect()
    }

    /// What was taken for the numbers that the paper does not print, for people.
    pub fn unprinted(&self) -> String {
        let Calibration { free, why } = self.calibration;
        let chosen = if self.free == free {
            format!("calibrated: {why}")
        } else {
            format!("asked for; calibrated: {}", free.words())
        };
        format!("Not in the paper: {} ({chosen})", self.free.words())
    }
}

fn row(c: &Claim, outcomes: &Outcomes) -> PaperFigure {
    let values = c.values(outcomes);
    let MeanEstimate { mean, half } = MeanEstimate::of(&values);
    let reach = c.reach(outcomes).filter(|&r| c.is_beyond(r));
    let verdict = match c.verdict(mean, half) {
        _ if values.is_empty() => ClaimVerdict::NotRun,
        told if reach.is_some() && told.is_prediction() => ClaimVerdict::BeyondBound,
        told => told,
    };
    let off = c.printed.filter(|_| !values.is_empty()).map(|p| p.off(mean));
    let why = match (verdict, c.untold, reach) {
        (
            ClaimVerdict::Same
            | ClaimVerdict::Ours
            | ClaimVerdict::NotRun
            | ClaimVerdict::Calibrated,
            ..,
        ) => String::new(),
        (ClaimVerdict::CannotTell, Some(reason), _) => reason.into(),
        (ClaimVerdict::BeyondBound, _, Some(r)) => beyond(c, r),
        _ => why(c, outcomes),
    };
    let figure = figure(c);
    PaperFigure {
        setting: c.of.setting,
        figure,
        unit: c.unit(),
        paper: c.printed,
        source: c.source,
        values,
        mean,
        half,
        off,
        verdict,
        why,
    }
}

/// Why a number is beyond what can be reached.
fn beyond(c: &Claim, r: Reach) -> String {
    let floor =
        format!("no scheduler has a {} below {:.1} s on these jobs", name(c.measure), r.floor);
    match (r.most, c.against) {
        (Some(most), Some(base)) => {
            format!("{floor}, so that at most {most:.1} % can be saved of what {} has", base.system)
        }
        _ => floor,
    }
}

/// The floors of a setting's measures, by the repetitions that all of its systems have: one that
/// was stopped has more of some.
fn bounds(s: &ExperimentSetting, outcomes: &Outcomes) -> Vec<Bound> {
    let measures =
        [Measure::Makespan, Measure::MeanJct, Measure::MedianJct, Measure::P95Jct, Measure::P99Jct];
    let bound = |m: Measure| {
        let floors = outcomes.values(s.name, FLOOR, m);
        let of = |y: &System| (y.name, outcomes.values(s.name, y.name, m));
        let all: Vec<_> = s.systems.iter().map(of).filter(|(_, v)| !v.is_empty()).collect();
        let runs = all.iter().map(|(_, v)| v.len()).fold(floors.len(), usize::min);
        let first = |v: &[f64]| Some(mean(v.get(..runs).filter(|v| !v.is_empty())?));
        let floor = first(&floors)?;
        let means = all.iter().filter_map(|(name, v)| Some((*name, first(v)?)));
        let best = means.min_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(Bound {
            setting: s.name,
            measure: m,
            runs,
            floor,
            best,
            leaves_percent: 100.0 * (1.0 - floor / best.1.max(f64::MIN_POSITIVE)),
        })
    };
    measures.into_iter().filter_map(bound).collect()
}

/// What a number is about, for people.
pub fn figure(c: &Claim) -> String {
    let what = name(c.measure);
    let less = if c.measure.more_is_better() { "more" } else { "less" };
    let figure = match c.against {
        None => format!("{what}, {}", c.of.system),
        Some(base) if base.setting == c.of.setting => {
            format!("{what} {less}, {} vs {}", c.of.system, base.system)
        }
        Some(base) => {
            format!("{what} {less}, {} vs {} ({})", c.of.system, base.system, base.setting)
        }
    };
    c.beyond
        .map_or(figure.clone(), |(there, _)| format!("{figure}, beyond that of {}", there.setting))
}

/// What a setting is; and where jobs do not come in the paper's time, in how much they do.
fn about(s: &ExperimentSetting) -> String {
    let window = s.load.window;
    let other = window > Span::ZERO && s.load.free.window_permille.is_some_and(|p| p != 1000);
    if other { format!("{}; here they arrive in {window}", s.about) } else { s.about.clone() }
}

/// What is measured, for people.
pub fn name(m: Measure) -> &'static str {
    match m {
        Measure::Makespan => "makespan",
        Measure::MeanJct => "mean JCT",
        Measure::MedianJct => "median JCT",
        Measure::P95Jct => "95th percentile of the JCT",
        Measure::P99Jct => "99th percentile of the JCT",
        Measure::SmallJct => "mean JCT of jobs below 100 MB",
        Measure::LargeJct => "mean JCT of jobs from 100 MB on",
        Measure::FewTasksJct => "mean JCT of jobs of 1 to 50 tasks",
        Measure::SomeTasksJct => "mean JCT of jobs of 51 to 500 tasks",
        Measure::ManyTasksJct => "mean JCT of jobs of over 500 tasks",
        Measure::HeavyJct => "mean JCT of shuffle-heavy jobs",
        Measure::LightJct => "mean JCT of all other jobs",
        Measure::MeanRecurring => "mean JCT of recurring jobs",
        Measure::P90AdHoc => "90th percentile of the JCT of ad-hoc jobs",
        Measure::MakespanAdHoc => "makespan of ad-hoc jobs",
        Measure::SlotTime => "time of all tasks",
        Measure::MedianReduceTime => "median reduce time of jobs",
        Measure::DataSpread => "variation of data by rack",
        Measure::MedianRecurring => "median JCT of recurring jobs",
        Measure::MedianAdHoc => "median JCT of ad-hoc jobs",
        Measure::MeanCct => "mean CCT",
        Measure::OcsShare => "OCS share",
        Measure::Crossing => "bytes that cross racks",
        Measure::Waiting => "slot time spent waiting",
        Measure::Computing => "computing bound",
        Measure::Far => "blocks read from afar",
        Measure::Overrun => "makespan of the arrivals' time",
        Measure::Unfinished => "jobs unfinished",
        Measure::Gap => "gap to the lower bound",
        Measure::PlanTime => "time to plan",
        Measure::Decision => "median time of a decision",
        Measure::ShuffleCost => "shuffle cost",
        Measure::CountedCost => "bytes counted at switches, over those by lists",
        Measure::RouteLength => "route length",
        Measure::FlowDelay => "flow delay",
        Measure::FirstMaps => "first quarter of the maps",
        Measure::Throughput => "shuffle throughput",
        Measure::MapTime => "map time",
        Measure::ReduceTime => "reduce time",
        Measure::ShuffleShare => "shuffles in the traffic",
        Measure::ReadShare => "remote reads in the traffic",
        Measure::Utilisation => "hosts' interfaces in use",
        Measure::FirstSlot => "until the first slot",
        Measure::Maps => "until the last map ends",
        Measure::LastSlot => "until the last reduce has a slot",
        Measure::LastInput => "until it has its input",
        Measure::LastComputing => "until it ends",
        Measure::Sending => "jobs that send",
        Measure::Jain => "Jain's index of users",
        Measure::SlowestUser => "mean JCT of the slowest user",
    }
}

/// The measured facts that explain a difference: where the time and the bytes of both sides went.
fn why(c: &Claim, outcomes: &Outcomes) -> String {
    let side = |s: super::claim::ClaimSide| {
        let of = |m| mean(&outcomes.values(s.setting, s.system, m));
        let (crossing, ocs, waiting) =
            (of(Measure::Crossing), of(Measure::OcsShare), of(Measure::Waiting));
        if !outcomes.values(s.setting, s.system, Measure::RouteLength).is_empty() {
            let (hops, cost) = (of(Measure::RouteLength), of(Measure::ShuffleCost));
            return format!(
                "{}: {hops:.1} hops a flow, {cost:.0} GB x switches, {waiting:.0} % of slot time is waiting",
                s.system
            );
        }
        format!(
            "{}: {crossing:.0} % of all bytes cross racks, {ocs:.0} % of these by OCS, {waiting:.0} % of slot time is waiting",
            s.system
        )
    };
    match c.measure {
        Measure::Gap => {
            "batch: to the programme's optimum; online: to a bound that may be below the programme's (docs/placement.md)".into()
        }
        Measure::PlanTime | Measure::Decision | Measure::Utilisation => String::new(),
        _ => {
            let bound = mean(&outcomes.values(c.of.setting, c.of.system, Measure::Computing));
            let makespan = mean(&outcomes.values(c.of.setting, c.of.system, Measure::Makespan));
            let both: Vec<String> = std::iter::once(c.of).chain(c.against).map(side).collect();
            format!("{}; computing alone would fill all slots for {bound:.0} s of {makespan:.0} s", both.join("; "))
        }
    }
}

fn measured(setting: &'static str, system: &'static str, outcomes: &Outcomes) -> MeasuredSystem {
    let all: Vec<_> = outcomes.of(setting, system).iter().flatten().collect();
    let measures: std::collections::BTreeSet<Measure> =
        all.iter().flat_map(|o| o.keys().copied()).collect();
    let means =
        measures.into_iter().map(|m| (m, mean(&outcomes.values(setting, system, m)))).collect();
    MeasuredSystem { setting, system, runs: all.len(), means }
}
