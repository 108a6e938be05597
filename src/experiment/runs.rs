//! Plays every system on every setting for every seed, in parallel.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::case_study;
use super::concurrency::utilisation;
use super::decision::decision;
use super::floor::{ClusterBounds as Bounds, floors};
use super::hops::Hops;
use super::measure::PARTS;
pub use super::measure::{Measure, Measures};
use super::setting::{ExperimentSetting, SettingWork, System};
use super::stored::Stored;
use super::{Experiment, Size};
use crate::placement::Policy;
use crate::placement::cluster::{Cluster, ELEPHANT};
use crate::placement::corral::{self, Provisioning, Scenario};
use crate::runtime::jobs::report::JobsResult;
use crate::runtime::jobs::simulate::{JobRunOptions, SimulatedJobs, simulate_with};
use crate::runtime::parallel::in_parallel;
use crate::runtime::spans::percentile;
use crate::runtime::study::SMALL_JOB;
use crate::scheduler::record::{JobRecord, TaskRun};
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};
use crate::workload::jobs::JobList;

/// What no scheduler can be below has the place of a system among the outcomes, on each setting
/// whose jobs are run.
pub const FLOOR: &str = "floor";

/// How far an experiment is.
#[derive(Clone, Debug)]
pub struct ExperimentProgress {
    /// Runs that are over, and of how many.
    pub done: (usize, usize),
    /// The last of them: setting, system, seed.
    pub last: (&'static str, &'static str, u64),
    /// How long it took, s of real time.
    pub took: f64,
}

/// All outcomes, by setting, system and seed: `None` where the experiment was stopped before.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcomes {
    /// The experiment's size.
    pub size: Size,
    by: BTreeMap<(&'static str, &'static str), Vec<Option<Measures>>>,
}

/// What makes a run: its setting, its system, and its outcome if it was run.
pub(super) type SystemRun = ((&'static str, &'static str), Option<Measures>);

impl Outcomes {
    /// The outcomes of runs, those of one setting and system by repetition.
    pub(super) fn new(size: Size, runs: impl IntoIterator<Item = SystemRun>) -> Self {
        let mut by: BTreeMap<_, Vec<_>> = BTreeMap::new();
        runs.into_iter().for_each(|(of, outcome)| by.entry(of).or_default().push(outcome));
        Self { size, by }
    }

    /// Of one system on one setting, by repetition.
    pub fn of(&self, setting: &str, system: &str) -> &[Option<Measures>] {
        self.by.iter().find(|(k, _)| **k == (setting, system)).map_or(&[], |(_, v)| v)
    }

    /// The values of a measure, of the repetitions that were run.
    pub fn values(&self, setting: &str, system: &str, measure: Measure) -> Vec<f64> {
        self.of(setting, system).iter().flatten().filter_map(|o| o.get(&measure).copied()).collect()
    }

    /// Whether something was left out.
    pub fn is_partial(&self) -> bool {
        self.by.values().flatten().any(Option::is_none)
    }
}

/// Runs an experiment on `threads` threads. Repetition by repetition, so that an experiment which
/// is stopped has whole ones.
///
/// # Errors
/// The first run that failed: which, and why.
pub fn run(
    e: &Experiment,
    size: Size,
    threads: usize,
    stop: &AtomicBool,
    watch: &(dyn Fn(ExperimentProgress) + Sync),
) -> Result<Outcomes, String> {
    let floor = |s: &ExperimentSetting| (s.work == SettingWork::Run).then_some(None);
    let pairs: Vec<(&ExperimentSetting, Option<&System>)> = e
        .settings
        .iter()
        .flat_map(|s| s.systems.iter().map(Some).chain(floor(s)).map(move |y| (s, y)))
        .collect();
    let total = pairs.len() * size.repeats;
    let shown = e.settings.iter().map(|s| s.systems.len()).sum::<usize>() * size.repeats;
    let done = std::sync::atomic::AtomicUsize::new(0);
    let one = |k: usize| -> Result<Option<Measures>, String> {
        let ((setting, system), seed) =
            (pairs[k % pairs.len()], size.seed + (k / pairs.len()) as u64);
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let Some(system) = system else {
            return Ok(Some(floors(&Bounds::of(setting), &setting.load.errors_of(seed).0.jobs)));
        };
        let began = Instant::now();
        let outcome =
            play(setting, system, seed, e.resolution.unwrap_or(setting.resolution()), stop)
                .map_err(|e| format!("{}, {}, seed {seed}: {e}", setting.name, system.name))?;
        let done = (done.fetch_add(1, Ordering::Relaxed) + 1, shown);
        watch(ExperimentProgress {
            done,
            last: (setting.name, system.name, seed),
            took: began.elapsed().as_secs_f64(),
        });
        Ok(outcome)
    };
    let name = |k: usize| {
        (pairs[k % pairs.len()].0.name, pairs[k % pairs.len()].1.map_or(FLOOR, |y| y.name))
    };
    let runs = in_parallel(total, threads, one)
        .into_iter()
        .enumerate()
        .map(|(k, outcome)| Ok((name(k), outcome?)));
    Ok(Outcomes::new(size, runs.collect::<Result<Vec<SystemRun>, String>>()?))
}

/// One run; `None` if it was stopped.
fn play(
    setting: &ExperimentSetting,
    system: &System,
    seed: u64,
    resolution: Span,
    stop: &AtomicBool,
) -> Result<Option<Measures>, String> {
    let errors = setting.load.errors;
    if let SettingWork::CaseStudy(places) = setting.work {
        let cost = case_study::costs(&setting.topology, places)
            .map_or(f64::NAN, |(given, placed)| if system.name == "Hit" { placed } else { given });
        return Ok(Some(BTreeMap::from([(Measure::ShuffleCost, cost)])));
    }
    if let SettingWork::Concurrency(m) = setting.work {
        let used = utilisation(&setting.topology, system.plan.run.network, m, seed);
        return Ok(Some(BTreeMap::from([(Measure::Utilisation, used)])));
    }
    if let SettingWork::Decide(coflows) = setting.work {
        return Ok(Some(BTreeMap::from([(Measure::Decision, decision(coflows))])));
    }
    let (jobs, foreseen) = setting.load.errors_of(seed);
    if let SettingWork::Plan(scenario) = setting.work {
        return Ok(Some(planned(setting, system, &jobs, scenario)));
    }
    let mut jobs_by = system.jobs_by.clone();
    jobs_by.placement.common.seed = seed;
    let ask = SimulatedJobs {
        topology: &setting.topology,
        plan: &system.plan,
        jobs_by: &jobs_by,
        jobs: &jobs,
        failures: &[],
        faults: &[],
        until: None,
    };
    let remaining = (errors.remaining_percent > 0).then_some((errors.remaining_percent, seed));
    let writes = setting.load.writes;
    let course = JobRunOptions {
        foreseen: Some(&foreseen),
        remaining,
        stop: Some(stop),
        writes,
        resolution,
        ..JobRunOptions::default()
    };
    simulated(&ask, &course, setting.load.window)
        .map(|o| (!stop.load(Ordering::Relaxed)).then_some(o))
}

/// A run in virtual time of jobs that arrive within `window`.
pub(super) fn simulated(
    ask: &SimulatedJobs,
    course: &JobRunOptions,
    window: Span,
) -> Result<Measures, String> {
    let (mut ways, mut stored) = (Hops::new(ask.topology), Stored::new(ask.topology, ask.jobs));
    let result = simulate_with(ask, course, &mut |line| {
        ways.iter_mut().for_each(|w| w.hear(&line));
        stored.hear(&line);
    })?;
    let mut out = outcome(&result, ask.jobs, ask.topology, window, ways.as_ref());
    out.extend(stored.spread().map(|v| (Measure::DataSpread, v)));
    Ok(out)
}

/// What a run measured; `ways` has heard its shuffles, if its network has several switches.
pub(super) fn outcome(
    r: &JobsResult,
    jobs: &JobList,
    topology: &Topology,
    window: Span,
    ways: Option<&Hops>,
) -> Measures {
    let slots = topology.hosts.iter().map(|h| u64::from(h.slots)).sum();
    let mut out = measured(r, jobs, slots, window);
    out.extend(by_job(r, jobs));
    out.extend(by_user(r));
    out.extend(by_phase(r, jobs));
    if let Some(ways) = ways {
        out.extend(ways.measures());
        out.extend(by_task(r, jobs));
    }
    out
}

fn planned(
    setting: &ExperimentSetting,
    system: &System,
    jobs: &JobList,
    scenario: Scenario,
) -> Measures {
    let provisioning = match system.jobs_by.placement.policy {
        Policy::Corral(options) => options.provisioning,
        _ => Provisioning::default(),
    };
    let cluster = Cluster::of(&setting.topology, Bytes::ZERO);
    let began = Instant::now();
    let plan = corral::plan(
        &jobs.jobs,
        &cluster,
        corral::CorralPlanOptions {
            scenario,
            provisioning,
            ..corral::CorralPlanOptions::default()
        },
    );
    BTreeMap::from([
        (Measure::PlanTime, began.elapsed().as_secs_f64()),
        (Measure::Gap, plan.gap * 100.0),
    ])
}

fn measured(r: &JobsResult, jobs: &JobList, slots: u64, window: Span) -> Measures {
    let s = &r.summary;
    let seconds = |t: Span| t.as_secs_f64();
    let jcts = |keep: &dyn Fn(&JobRecord) -> bool| -> Vec<Span> {
        r.jobs.iter().filter(|j| keep(j)).filter_map(|j| j.jct).collect()
    };
    let at =
        |all: &[Span], percent| (!all.is_empty()).then(|| percentile(all, percent).as_secs_f64());
    let median = |keep: &dyn Fn(&JobRecord) -> bool| at(&jcts(keep), 50);
    let mean = |all: &[Span]| {
        (!all.is_empty())
            .then(|| all.iter().map(|t| t.as_secs_f64()).sum::<f64>() / all.len() as f64)
    };
    let percent = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    let work: Span = jobs.jobs.iter().fold(Span::ZERO, |w, j| w + j.work());
    let bytes: Bytes = jobs.jobs.iter().map(|j| j.input_bytes() + j.shuffle_bytes()).sum();
    let mut out = BTreeMap::from([
        (Measure::Makespan, seconds(s.makespan)),
        (Measure::MeanJct, seconds(s.average_jct)),
        (Measure::MedianJct, seconds(s.median_jct)),
        (Measure::MeanCct, seconds(s.average_cct)),
        (Measure::OcsShare, 100.0 * s.ocs_share),
        (Measure::Crossing, percent(s.bytes_between_racks.0, bytes.0)),
        (Measure::Waiting, percent(waited(r), s.slot_time.0)),
        (Measure::Computing, seconds(work) / slots.max(1) as f64),
        (Measure::Far, percent(s.near[2], s.near.iter().sum())),
        (Measure::Unfinished, s.unfinished as f64),
        (Measure::Sending, s.sending as f64),
    ]);
    let some = [
        (Measure::P95Jct, at(&jcts(&|_| true), 95)),
        (Measure::P99Jct, at(&jcts(&|_| true), 99)),
        (Measure::SmallJct, mean(&jcts(&|j| j.shuffle_bytes < SMALL_JOB))),
        (Measure::LargeJct, mean(&jcts(&|j| j.shuffle_bytes >= SMALL_JOB))),
        (Measure::MedianRecurring, median(&|j| j.recurring)),
        (Measure::MedianAdHoc, median(&|j| !j.recurring)),
    ];
    out.extend(some.into_iter().filter_map(|(measure, value)| Some((measure, value?))));
    out.extend((window > Span::ZERO).then(|| (Measure::Overrun, percent(s.makespan.0, window.0))));
    out
}

/// Where the completion times of jobs go, in the mean over those that finished: until the first
/// slot; until the last of the tasks that wait for no other ends; until the task that ends last has
/// a slot; until it has its input; until it ends.
fn by_phase(r: &JobsResult, jobs: &JobList) -> Vec<(Measure, f64)> {
    let receives = |t: &TaskRun<String>| {
        jobs.jobs[t.task.job.index()].edges_into(t.task.stage as usize).next().is_some()
    };
    let mut ends: Vec<(Time, Option<&TaskRun<String>>)> = vec![(Time::ZERO, None); jobs.jobs.len()];
    for t in r.timeline.iter().filter(|t| t.finished) {
        let (maps, last) = &mut ends[t.task.job.index()];
        if !receives(t) {
            *maps = t.ended.max(*maps);
        } else if last.is_none_or(|l| t.ended > l.ended) {
            *last = Some(t);
        }
    }
    let (mut sums, mut n) = ([0.0; 5], 0.0);
    for (j, (maps, last)) in r.jobs.iter().zip(ends) {
        let (Some(started), Some(finished)) = (j.started, j.finished) else { continue };
        let maps = maps.max(started).min(finished);
        let slot = last.map_or(finished, |t| t.started.max(maps));
        let input = last.map_or(finished, |t| t.computes.unwrap_or(t.ended).max(slot));
        let moments = [j.arrival, started, maps, slot, input, finished];
        sums.iter_mut()
            .zip(moments.windows(2))
            .for_each(|(sum, m)| *sum += m[1].since(m[0]).as_secs_f64());
        n += 1.0;
    }
    if n > 0.0 { PARTS.into_iter().zip(sums.map(|s| s / n)).collect() } else { Vec::new() }
}

/// How alike users are served, where there are several.
fn by_user(r: &JobsResult) -> Vec<(Measure, f64)> {
    let mut by: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for (queue, jct) in r.jobs.iter().filter_map(|j| Some((j.queue, j.jct?))) {
        let of = by.entry(queue).or_default();
        *of = (of.0 + jct.as_secs_f64(), of.1 + 1.0);
    }
    let means: Vec<f64> = by.values().map(|(sum, n)| sum / n).collect();
    let (sum, squares) = (means.iter().sum::<f64>(), means.iter().map(|m| m * m).sum::<f64>());
    let slowest = means.iter().copied().fold(0.0, f64::max);
    let several = means.len() > 1 && squares > 0.0;
    if several {
        vec![
            (Measure::Jain, sum * sum / (means.len() as f64 * squares)),
            (Measure::SlowestUser, slowest),
        ]
    } else {
        Vec::new()
    }
}

/// What Corral's figures 7, 9 and 11 show of jobs by their kind and size.
fn by_job(r: &JobsResult, jobs: &JobList) -> Vec<(Measure, f64)> {
    let jcts = |keep: &dyn Fn(&JobRecord) -> bool| -> Vec<Span> {
        r.jobs.iter().filter(|j| keep(j)).filter_map(|j| j.jct).collect()
    };
    let mean = |all: &[Span]| {
        (!all.is_empty())
            .then(|| all.iter().map(|t| t.as_secs_f64()).sum::<f64>() / all.len() as f64)
    };
    let ad_hoc = jcts(&|j| !j.recurring);
    let of_ad_hoc = || r.jobs.iter().filter(|j| !j.recurring);
    let (first, last) =
        (of_ad_hoc().map(|j| j.arrival).min(), of_ad_hoc().filter_map(|j| j.finished).max());
    let mut reduces: Vec<(Span, u64)> = vec![(Span::ZERO, 0); jobs.jobs.len()];
    let of_last_stage = |t: &&TaskRun<String>| {
        t.task.stage > 0 && t.task.stage as usize + 1 == jobs.jobs[t.task.job.index()].stages.len()
    };
    for t in r.timeline.iter().filter(|t| t.finished).filter(of_last_stage) {
        let of = &mut reduces[t.task.job.index()];
        (of.0, of.1) = (of.0 + t.ended.since(t.started), of.1 + 1);
    }
    let means: Vec<Span> =
        reduces.into_iter().filter(|r| r.1 > 0).map(|r| Span(r.0.0 / r.1)).collect();
    let all = [
        (Measure::FewTasksJct, mean(&jcts(&|j| j.tasks <= 50))),
        (Measure::SomeTasksJct, mean(&jcts(&|j| (51..=500).contains(&j.tasks)))),
        (Measure::ManyTasksJct, mean(&jcts(&|j| j.tasks > 500))),
        (Measure::HeavyJct, mean(&jcts(&|j| j.shuffle_bytes >= ELEPHANT))),
        (Measure::LightJct, mean(&jcts(&|j| j.shuffle_bytes < ELEPHANT))),
        (Measure::MeanRecurring, mean(&jcts(&|j| j.recurring))),
        (Measure::P90AdHoc, (!ad_hoc.is_empty()).then(|| percentile(&ad_hoc, 90).as_secs_f64())),
        (Measure::MakespanAdHoc, first.zip(last).map(|(a, b)| b.since(a).as_secs_f64())),
        (Measure::SlotTime, Some(r.summary.slot_time.as_secs_f64())),
        (
            Measure::MedianReduceTime,
            (!means.is_empty()).then(|| percentile(&means, 50).as_secs_f64()),
        ),
    ];
    all.into_iter().filter_map(|(m, v)| Some((m, v?))).collect()
}

/// How long tasks that read blocks and tasks that receive a shuffle hold their slots, and what the
/// network carries of both.
fn by_task(r: &JobsResult, jobs: &JobList) -> Vec<(Measure, f64)> {
    let receives = |t: &TaskRun<String>| {
        jobs.jobs[t.task.job.index()].edges_into(t.task.stage as usize).next().is_some()
    };
    let mean = |which: bool| {
        let all: Vec<f64> = r
            .timeline
            .iter()
            .filter(|t| t.finished && receives(t) == which)
            .map(|t| t.ended.since(t.started).as_secs_f64())
            .collect();
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    };
    let sum = |of: fn(&JobRecord) -> Bytes| r.jobs.iter().map(|j| of(j).0 as f64).sum::<f64>();
    let (shuffled, read) = (sum(|j| j.shuffled), sum(|j| j.read));
    let percent = |part: f64| (shuffled + read > 0.0).then(|| 100.0 * part / (shuffled + read));
    let all = [
        (Measure::FirstMaps, first_maps(r, receives)),
        (Measure::MapTime, mean(false)),
        (Measure::ReduceTime, mean(true)),
        (Measure::ShuffleShare, percent(shuffled)),
        (Measure::ReadShare, percent(read)),
    ];
    all.into_iter().filter_map(|(m, v)| Some((m, v?))).collect()
}

/// When a quarter of the tasks that receive no shuffle had ended, in seconds from the start of the
/// run.
fn first_maps(r: &JobsResult, receives: impl Fn(&TaskRun<String>) -> bool) -> Option<f64> {
    let mut ends: Vec<Time> =
        r.timeline.iter().filter(|t| t.finished && !receives(t)).map(|t| Time(t.ended.0)).collect();
    ends.sort_unstable();
    ends.get(ends.len().div_ceil(4).saturating_sub(1)).map(|t| t.since(Time::ZERO).as_secs_f64())
}

/// Nanoseconds that tasks held slots before they computed.
fn waited(r: &JobsResult) -> u64 {
    r.timeline.iter().map(|t| t.computes.unwrap_or(t.ended).since(Time(t.started.0)).0).sum()
}
