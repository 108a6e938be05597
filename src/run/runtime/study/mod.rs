//! Runs of the same workloads under several policies, held against the first policy.
//!
//! What is compared is paired: the run of a workload under one policy with the run of the same
//! workload under the first. So a difference can be clear although workloads differ more than
//! policies do.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Serialize;

mod figures;

pub use figures::{Figure, FigureUnit};

use crate::runtime::jobs::report::JobsResult;
use crate::runtime::report::caveats::{self, Caveat};
use crate::runtime::report::{ResultOrigin, RunResult};
use crate::runtime::spans::percentile;
use crate::runtime::statistics::{MeanEstimate, Paired, mean};
use crate::units::{Bytes, Span};
use crate::workload::stats::{CLASSES, class_of};

/// A job that shuffles less than this is a small one (PushBox, section 7.3).
pub const SMALL_JOB: Bytes = Bytes(100_000_000);
/// The classes of jobs.
const JOB_CLASSES: [&str; 2] = ["small", "large"];
/// The name of all coflows or jobs together.
const ALL: &str = "all";

/// The result of one run, of either kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum AnyResult {
    /// A workload of coflows.
    Coflows(Box<RunResult>),
    /// Jobs.
    Jobs(Box<JobsResult>),
}

impl AnyResult {
    /// Why it is not what its name says.
    pub fn caveats(&self) -> &[Caveat] {
        match self {
            Self::Coflows(r) => &r.caveats,
            Self::Jobs(r) => &r.caveats,
        }
    }

    /// Where it comes from.
    pub fn origin(&self) -> &ResultOrigin {
        match self {
            Self::Coflows(r) => &r.origin,
            Self::Jobs(r) => &r.origin,
        }
    }
}

/// What is compared of one run.
#[derive(Clone, Debug)]
pub struct RunAccount {
    /// Whether it was of jobs.
    pub of_jobs: bool,
    /// Name of the topology.
    pub topology: String,
    /// Name of the policy.
    pub policy: String,
    /// Of jobs: name of the placement policy.
    pub placement: Option<String>,
    /// `timed`, `netlink` or `sim`.
    pub mechanism: String,
    /// Name of the workload, without the seed that it was drawn from.
    pub workload: String,
    /// Options that the result depends on.
    pub options: BTreeMap<String, String>,
    /// All keys of the policy.
    pub settings: BTreeMap<String, String>,
    /// Why the run is not what its name says.
    pub caveats: Vec<Caveat>,
    /// What it has of that in which the runs of a row may differ: pairs have the same.
    pub pooled: Vec<String>,
    seed: Option<u64>,
    /// Equal for runs of the same coflows or jobs.
    load: u64,
    figures: Vec<Figure>,
    /// By coflow or job: its class, and its completion time if it finished.
    times: Vec<(Option<usize>, Option<Span>)>,
}

impl From<&AnyResult> for RunAccount {
    fn from(r: &AnyResult) -> Self {
        match r {
            AnyResult::Coflows(r) => Self {
                of_jobs: false,
                topology: r.topology.clone(),
                policy: r.policy.clone(),
                placement: None,
                mechanism: r.mechanism.clone(),
                workload: without_seed(&r.workload).into(),
                options: r.origin.options.clone(),
                settings: r.origin.settings.clone(),
                caveats: r.caveats.clone(),
                pooled: vec![],
                seed: r.origin.seed,
                load: hashed(r.coflows.iter().map(|c| (c.id, &c.name, c.bytes.0))),
                figures: figures::of_coflows(r),
                times: r
                    .coflows
                    .iter()
                    .map(|c| (c.longest_flow.map(|l| class_of(c.flows, l)), c.cct))
                    .collect(),
            },
            AnyResult::Jobs(r) => Self {
                of_jobs: true,
                topology: r.topology.clone(),
                policy: r.policy.clone(),
                placement: Some(r.placement.clone()),
                mechanism: r.mechanism.clone(),
                workload: without_seed(&r.workload).into(),
                options: r.origin.options.clone(),
                settings: r.origin.settings.clone(),
                caveats: r.caveats.clone(),
                pooled: vec![],
                seed: r.origin.seed,
                load: hashed(r.jobs.iter().map(|j| (j.id, &j.name, j.tasks, j.shuffle_bytes.0))),
                figures: figures::of_jobs(r),
                times: r
                    .jobs
                    .iter()
                    .map(|j| (Some(usize::from(j.shuffle_bytes >= SMALL_JOB)), j.jct))
                    .collect(),
            },
        }
    }
}

impl RunAccount {
    /// All its numbers.
    pub fn figures(&self) -> &[Figure] {
        &self.figures
    }
}

/// The name of a workload without the seed at its end, which mixes have there.
pub fn without_seed(name: &str) -> &str {
    let (start, seed) = name.rsplit_once("-seed-").unwrap_or((name, "x"));
    if !seed.is_empty() && seed.bytes().all(|b| b.is_ascii_digit()) { start } else { name }
}

fn hashed(items: impl Iterator<Item = impl Hash>) -> u64 {
    let mut hasher = DefaultHasher::new();
    items.for_each(|item| item.hash(&mut hasher));
    hasher.finish()
}

/// Runs under one policy.
#[derive(Clone, Debug)]
pub struct PolicyRuns {
    /// What tells it from the others.
    pub label: String,
    /// Its runs.
    pub runs: Vec<RunAccount>,
}

/// All policies, each with what its runs came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Study {
    /// Whether jobs were run; else coflows.
    pub of_jobs: bool,
    /// By policy, in the order in which they were given.
    pub policies: Vec<Policy>,
}

/// What the runs under one policy came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Policy {
    /// What tells it from the others.
    pub policy: String,
    /// Its runs.
    pub runs: usize,
    /// Those whose workload the first policy ran, too.
    pub pairs: usize,
    /// Why its runs are not what their name says.
    pub caveats: Vec<Caveat>,
    /// What was measured.
    pub figures: Vec<Measured>,
    /// Completion times by class over those under the first policy; none of the first itself.
    pub normalised: Vec<Normalised>,
}

/// A figure over all runs under one policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// Its name.
    pub name: &'static str,
    /// Its unit.
    pub unit: FigureUnit,
    /// Its value in each run.
    pub values: Vec<f64>,
    /// Their mean, with half of its 95 % interval.
    #[serde(flatten)]
    pub estimate: MeanEstimate,
    /// Against the same workloads under the first policy; none of the first itself, nor without a
    /// pair.
    pub against_first: Option<Against>,
}

/// A figure against the first policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Against {
    /// The differences of the pairs.
    #[serde(flatten)]
    pub paired: Paired,
    /// The 95 % interval of the difference holds zero: it is not known which of the two is more.
    pub unclear: bool,
}

impl Against {
    fn new(paired: Paired, unit: FigureUnit) -> Self {
        let mut against = Self { paired, unclear: false };
        against.unclear = against.told(unit).is_unclear();
        against
    }

    /// The difference that people see: in per cent of the first policy's; of a share, and
    /// where the first policy's is zero, as it is.
    pub fn told(&self, unit: FigureUnit) -> MeanEstimate {
        self.paired.percent.filter(|_| unit != FigureUnit::Share).unwrap_or(self.paired.difference)
    }
}

/// Completion times of a class over those of the same coflows or jobs under the first policy: below
/// 1 is faster. Only what finished in both runs of a pair counts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Normalised {
    /// All, or one of Varys' classes; of jobs, small or large.
    pub class: &'static str,
    /// How many coflows or jobs, over all pairs.
    pub count: usize,
    /// Mean completion time over the first policy's, a pair each.
    pub average: MeanEstimate,
    /// The same of the 95th percentiles.
    pub p95: MeanEstimate,
}

impl Study {
    /// Holds groups against the first of them. All runs must be of the same kind.
    pub fn new(groups: &[PolicyRuns]) -> Self {
        let of_jobs = groups.iter().flat_map(|g| &g.runs).any(|r| r.of_jobs);
        let policy = |(k, group): (usize, &PolicyRuns)| match (&groups[0], k) {
            (_, 0) => Policy::new(group, &[], of_jobs, false),
            (first, _) => Policy::new(group, &pairs(group, first), of_jobs, true),
        };
        Self { of_jobs, policies: groups.iter().enumerate().map(policy).collect() }
    }
}

impl PolicyRuns {
    /// A seed of which there are several runs of one load and of the same in what is pooled, where
    /// all runs have seeds: what else they differ in is not known.
    pub fn ambiguous(&self) -> Option<u64> {
        let mut seen = BTreeSet::new();
        let seeds: Option<Vec<u64>> = self.runs.iter().map(|r| r.seed).collect();
        seeds?
            .into_iter()
            .zip(&self.runs)
            .find(|(seed, r)| !seen.insert((r.load, *seed, &r.pooled)))
            .map(|(seed, _)| seed)
    }
}

impl Policy {
    fn new(
        group: &PolicyRuns,
        pairs: &[(&RunAccount, &RunAccount)],
        of_jobs: bool,
        against: bool,
    ) -> Self {
        let names = group.runs.first().map_or(&[][..], |r| &r.figures);
        let measured = |(k, f): (usize, &Figure)| {
            let values: Vec<f64> = group.runs.iter().map(|r| r.figures[k].value).collect();
            let pairs: Vec<(f64, f64)> = pairs
                .iter()
                .map(|(run, base)| (run.figures[k].value, base.figures[k].value))
                .collect();
            let paired = (!pairs.is_empty()).then(|| Paired::of(&pairs));
            let against_first = paired.map(|paired| Against::new(paired, f.unit));
            Measured {
                name: f.name,
                unit: f.unit,
                estimate: MeanEstimate::of(&values),
                values,
                against_first,
            }
        };
        let figures = names.iter().enumerate().map(measured).collect();
        let pairs_held = if against { pairs.len() } else { group.runs.len() };
        let normalised = if pairs.is_empty() { vec![] } else { normalised(pairs, of_jobs) };
        let caveats =
            caveats::of_several(&group.runs.iter().map(|r| &r.caveats[..]).collect::<Vec<_>>());
        Self {
            policy: group.label.clone(),
            runs: group.runs.len(),
            pairs: pairs_held,
            caveats,
            figures,
            normalised,
        }
    }
}

/// The runs of a group, each with its partner in the first group: the run of the same workload and
/// of the same pooled values. Runs without a partner are left out. Runs of one workload
/// differ by their seeds where all have one, else by their order.
fn pairs<'a>(
    group: &'a PolicyRuns,
    first: &'a PolicyRuns,
) -> Vec<(&'a RunAccount, &'a RunAccount)> {
    let seeded = group.runs.iter().chain(&first.runs).all(|r| r.seed.is_some());
    let keyed = |runs: &'a [RunAccount]| {
        let mut seen: BTreeMap<(u64, Option<u64>, &[String]), usize> = BTreeMap::new();
        let mut of = |r: &'a RunAccount| {
            let key = (r.load, r.seed.filter(|_| seeded), &r.pooled[..]);
            let again = seen.entry(key).or_default();
            *again += 1;
            (key, *again)
        };
        runs.iter().map(|r| (of(r), r)).collect::<Vec<_>>()
    };
    let bases: BTreeMap<_, &RunAccount> = keyed(&first.runs).into_iter().collect();
    keyed(&group.runs).into_iter().filter_map(|(key, run)| Some((run, *bases.get(&key)?))).collect()
}

/// By class, all first; classes without a coflow or job are left out.
fn normalised(pairs: &[(&RunAccount, &RunAccount)], of_jobs: bool) -> Vec<Normalised> {
    let classes: &[&'static str] = if of_jobs { &JOB_CLASSES } else { &CLASSES };
    let all = std::iter::once((ALL, None))
        .chain(classes.iter().enumerate().map(|(k, name)| (*name, Some(k))));
    all.filter_map(|(name, class)| of_class(pairs, name, class)).collect()
}

fn of_class(
    pairs: &[(&RunAccount, &RunAccount)],
    name: &'static str,
    class: Option<usize>,
) -> Option<Normalised> {
    let (mut count, mut averages, mut p95s) = (0, vec![], vec![]);
    for (run, base) in pairs {
        let both =
            run.times.iter().zip(&base.times).filter(|(_, b)| class.is_none() || b.0 == class);
        let (ours, theirs): (Vec<Span>, Vec<Span>) = both.filter_map(|(a, b)| a.1.zip(b.1)).unzip();
        count += ours.len();
        let seconds =
            |all: &[Span]| mean(&all.iter().map(|s| s.as_secs_f64()).collect::<Vec<f64>>());
        let at_95 = |all: &[Span]| percentile(all, 95).as_secs_f64();
        averages.extend(over(seconds(&ours), seconds(&theirs)));
        p95s.extend(over(at_95(&ours), at_95(&theirs)));
    }
    let found = !averages.is_empty();
    found.then(|| Normalised {
        class: name,
        count,
        average: MeanEstimate::of(&averages),
        p95: MeanEstimate::of(&p95s),
    })
}

fn over(value: f64, base: f64) -> Option<f64> {
    (base > 0.0).then(|| value / base)
}

#[cfg(test)]
mod tests;
