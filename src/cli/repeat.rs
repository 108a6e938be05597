//! Repetitions over seeds: the figures of many runs, with means and their 95 % intervals.

use serde::Serialize;

use super::Output;
use super::tables::{self, Rows};
use crate::runtime::repeat::{half_interval, mean};
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
