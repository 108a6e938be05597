//! Repetitions over seeds: runs in parallel, and means with their 95 % intervals.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use serde::Serialize;

use super::tables::{self, Rows};
use super::{CliError, Output};
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

/// Runs `one` for every seed from `first` on, `n` of them, on at most `threads` threads. The order of the results is that of the seeds,
/// whatever the threads did.
///
/// # Errors
/// The error of the smallest seed that failed.
pub fn repeat<T: Send>(first: u64, n: usize, threads: usize, one: impl Fn(u64) -> Result<T, CliError> + Sync) -> Result<Vec<T>, CliError> {
    let next = AtomicUsize::new(0);
    let done: Vec<Mutex<Option<Result<T, CliError>>>> = (0..n).map(|_| Mutex::new(None)).collect();
    thread::scope(|s| {
        for _ in 0..threads.clamp(1, n.max(1)) {
            s.spawn(|| {
                loop {
                    let k = next.fetch_add(1, Ordering::Relaxed);
                    let Some(slot) = done.get(k) else { break };
                    let result = one(first.wrapping_add(k as u64));
                    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
                }
            });
        }
    });
    let taken = |m: Mutex<Option<_>>| m.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.into_iter().map(|m| taken(m).expect("every seed was run")).collect()
}

/// Half the width of the 95 % confidence interval of the mean; none of fewer than two values.
pub fn half_interval(values: &[f64]) -> Option<f64> {
    /// Student's t at 97.5 % by degrees of freedom, from 1.
    const T: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101,
        2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    let freedom = values.len().checked_sub(1).filter(|f| *f > 0)?;
    // Between the degrees of the usual tables, the next smaller one: a little too wide, never too narrow.
    let t = match freedom {
        1..=30 => T[freedom - 1],
        31..=39 => 2.042,
        40..=59 => 2.021,
        60..=119 => 2.000,
        _ => 1.980,
    };
    let mean = mean(values);
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / freedom as f64;
    Some(t * (variance / values.len() as f64).sqrt())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The figures of some runs.
pub fn figures(results: &[RunResult]) -> Vec<Figure> {
    let figure = |name, of: &dyn Fn(&RunResult) -> f64| {
        let values: Vec<f64> = results.iter().map(of).collect();
        Figure { name, mean: mean(&values), half: half_interval(&values), values }
    };
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
pub fn results_json(results: &[RunResult]) -> String {
    let all: Vec<String> = results.iter().map(|r| tables::run_result(r, Output::Json)).collect();
    format!("[{}]\n", all.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_students() {
        // Five values with mean 10 and standard deviation 1.5811: t(4) = 2.776, 2.776 * 1.5811 / sqrt(5) = 1.963.
        let half = half_interval(&[8.0, 9.0, 10.0, 11.0, 12.0]).unwrap();
        assert!((half - 1.963).abs() < 0.001, "{half}");
        assert_eq!((half_interval(&[3.0]), half_interval(&[]), half_interval(&[2.0, 2.0])), (None, None, Some(0.0)));
        let many: Vec<f64> = (0..200).map(|k| f64::from(k % 2)).collect();
        assert!((half_interval(&many).unwrap() - 1.98 * 0.501_255 / 200f64.sqrt()).abs() < 1e-5);
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let one = |seed| Ok(seed * 3);
        let want: Vec<u64> = (5..25).map(|s| s * 3).collect();
        for threads in [0, 1, 2, 7, 100] {
            assert_eq!(repeat(5, 20, threads, one), Ok(want.clone()));
        }
        assert_eq!(repeat(5, 0, 2, one), Ok(vec![]));
        let odd = |seed: u64| if seed % 2 == 1 { Err(CliError::Failed(seed.to_string())) } else { Ok(seed) };
        assert_eq!(repeat(2, 9, 3, odd), Err(CliError::Failed("3".into())));
    }
}
