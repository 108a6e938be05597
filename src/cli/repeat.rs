//! Repetitions over seeds: the figures of many runs, with means and their 95 % intervals.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use serde::Serialize;

use super::simulate::stopped_by_ctrl_c;
use super::tables::Rows;
use super::{CliError, Output};
use crate::runtime::jobs::report::JobsResult;
use crate::runtime::repeat::{half_interval, mean, repeat};
use crate::runtime::report::{RunResult, percentile};
use crate::units::Span;

/// A figure over all repetitions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Its name, with its unit where it has one.
    pub name: &'static str,
    /// By repetition, in the order of the seeds.
    pub values: Vec<f64>,
    /// Their mean.
    pub mean: f64,
    /// Half of the 95 % confidence interval of the mean by Student's t; none of a single value.
    pub half: Option<f64>,
}

/// Runs `one` for `n` seeds from `first` on, at most `threads` at once (as many as the machine has cores). Ctrl-C ends it: `one` is told
/// by its flag, answers `None`, and what had ended counts.
///
/// # Errors
/// The error of the smallest seed that failed, or that none had ended.
pub fn over_seeds<T: Send>(
    first: u64,
    n: u32,
    threads: Option<u32>,
    one: impl Fn(u64, &AtomicBool) -> Result<Option<T>, CliError> + Sync,
) -> Result<Vec<T>, CliError> {
    let stop = stopped_by_ctrl_c();
    let threads = threads.map_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()), |k| k as usize);
    let unless_stopped = |seed| if stop.load(Relaxed) { Ok(None) } else { one(seed, &stop) };
    let results: Vec<T> = repeat(first, n as usize, threads, unless_stopped)?.into_iter().flatten().collect();
    match results.len() {
        0 => Err(CliError::Failed("stopped before any repetition had ended".into())),
        k if k < n as usize => {
            eprintln!("stopped: {k} of {n} repetitions had ended, and count");
            Ok(results)
        }
        _ => Ok(results),
    }
}

fn figure<T>(results: &[T], name: &'static str, of: impl Fn(&T) -> f64) -> Figure {
    let values: Vec<f64> = results.iter().map(of).collect();
    Figure { name, mean: mean(&values), half: half_interval(&values), values }
}

/// The figures of some runs of jobs.
pub fn figures_of_jobs(results: &[JobsResult]) -> Vec<Figure> {
    let figure = |name, of: &dyn Fn(&JobsResult) -> f64| figure(results, name, of);
    let span = |name, of: &dyn Fn(&JobsResult) -> Span| figure(name, &|r| of(r).as_secs_f64());
    vec![
        figure("jobs finished", &|r| r.summary.finished as f64),
        figure("jobs unfinished", &|r| r.summary.unfinished as f64),
        span("makespan (s)", &|r| r.summary.makespan),
        span("average JCT (s)", &|r| r.summary.average_jct),
        span("median JCT (s)", &|r| r.summary.median_jct),
        span("p95 JCT (s)", &|r| r.summary.p95_jct),
        span("average shuffle CCT (s)", &|r| r.summary.average_cct),
        span("median shuffle CCT (s)", &|r| r.summary.median_cct),
        span("p95 shuffle CCT (s)", &|r| r.summary.p95_cct),
        span("slot time (s)", &|r| r.summary.slot_time),
        figure("OCS share", &|r| r.summary.ocs_share),
        figure("bytes planned (GB)", &|r| r.summary.bytes_planned.0 as f64 / 1e9),
        figure("of these between racks (GB)", &|r| r.summary.bytes_between_racks.0 as f64 / 1e9),
        figure("starts outside a guideline", &|r| r.summary.counters.violations as f64),
    ]
}

/// The figures of some runs.
pub fn figures(results: &[RunResult]) -> Vec<Figure> {
    let figure = |name, of: &dyn Fn(&RunResult) -> f64| figure(results, name, of);
    let ccts = |r: &RunResult| r.coflows.iter().filter_map(|c| c.cct).collect::<Vec<Span>>();
    vec![
        figure("coflows finished", &|r| r.summary.finished as f64),
        figure("coflows unfinished", &|r| r.summary.unfinished as f64),
        figure("makespan (s)", &|r| r.summary.makespan.as_secs_f64()),
        figure("average CCT (s)", &|r| r.summary.average_cct.as_secs_f64()),
        figure("median CCT (s)", &|r| percentile(&ccts(r), 50).as_secs_f64()),
        figure("p95 CCT (s)", &|r| r.summary.p95_cct.as_secs_f64()),
        figure("OCS share", &|r| r.summary.ocs_share),
        figure("circuits set", &|r| r.summary.stats.circuits_set as f64),
    ]
}

/// The figures as they are printed.
pub fn show(figures: &[Figure], output: Output) -> String {
    let range = |f: &Figure| {
        let least = f.values.iter().copied().fold(f64::INFINITY, f64::min);
        (least, f.values.iter().copied().fold(f64::NEG_INFINITY, f64::max))
    };
    let rows = |number: &dyn Fn(f64) -> String| {
        let mut rows = Rows::new(&["figure", "runs", "mean", "half of 95% interval", "min", "max"]);
        for f in figures {
            let ((least, most), half) = (range(f), f.half.map_or("-".into(), number));
            rows.rows.push(vec![f.name.into(), f.values.len().to_string(), number(f.mean), half, number(least), number(most)]);
        }
        rows
    };
    match output {
        Output::Table => rows(&|v| format!("{v:.4}")).table() + "\n",
        Output::Csv => rows(&|v| v.to_string()).csv(),
        Output::Json => serde_json::to_string_pretty(figures).expect("figures are plain data") + "\n",
    }
}

/// Every repetition's whole result, as `--json` writes it: a list.
pub fn results_json<T>(results: &[T], one: impl Fn(&T, Output) -> String) -> String {
    let all: Vec<String> = results.iter().map(|r| one(r, Output::Json)).collect();
    format!("[{}]\n", all.join(","))
}
