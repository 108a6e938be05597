//! Several policies on the same workloads: their runs, and the tables that hold them against the first.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use indicatif::{ProgressBar, ProgressStyle};

use super::interrupt::stopped_by_ctrl_c;
use super::results;
use super::tables::{self, Rows};
use super::{CliError, Output};
use crate::runtime::parallel::in_parallel;
use crate::runtime::statistics::Estimate;
use crate::runtime::study::{Account, Against, AnyResult, Figure, Group, Measured, Normalised, Policy, Study, Unit};

/// The figures of the table; all others are in JSON and CSV.
const SHOWN: [&str; 6] = ["average CCT", "p95 CCT", "average JCT", "p95 JCT", "makespan", "OCS share"];

/// As many threads as are asked for, else one a core.
pub fn threads(asked: Option<u32>) -> usize {
    asked.map_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()), |k| k as usize)
}

/// Names of policies for their tables: their own, or if two have the same, those of their files.
pub fn labels<'a>(policies: impl Iterator<Item = (&'a std::path::PathBuf, &'a str)>) -> Vec<String> {
    let all: Vec<(&Path, &str)> = policies.map(|(file, name)| (file.as_path(), name)).collect();
    let names: BTreeSet<&str> = all.iter().map(|p| p.1).collect();
    let label = |(file, name): &(&Path, &str)| if names.len() == all.len() { (*name).to_owned() } else { file.display().to_string() };
    all.iter().map(label).collect()
}

/// The results of each policy, by policy and seed; shorter lists where a run was stopped.
pub type Results = Vec<Vec<AnyResult>>;

/// Runs `one` for every policy (by its place in `names`) and each of the first `seeds` numbers, on some threads. All policies run a seed
/// before the next one begins, so that what Ctrl-C leaves can be compared.
///
/// # Errors
/// The error of the first run that failed, or that none had ended.
pub fn run_all(
    names: &[String],
    seeds: u32,
    threads: Option<u32>,
    one: impl Fn(usize, u64, &AtomicBool) -> Result<Option<AnyResult>, CliError> + Sync,
) -> Result<Results, CliError> {
    let (stop, total) = (stopped_by_ctrl_c(), names.len() * seeds as usize);
    let bar = ProgressBar::new(total as u64);
    bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} runs, {eta} to go").expect("a valid template"));
    let ended = AtomicUsize::new(0);
    let run = |k: usize| {
        let result = if stop.load(Relaxed) { Ok(None) } else { one(k % names.len(), (k / names.len()) as u64, &stop) };
        ended.fetch_add(usize::from(matches!(result, Ok(Some(_)))), Relaxed);
        bar.inc(1);
        result
    };
    let all = in_parallel(total, self::threads(threads), run);
    bar.finish_and_clear();
    let mut by: Results = names.iter().map(|_| vec![]).collect();
    for (k, result) in all.into_iter().enumerate() {
        by[k % names.len()].extend(result?);
    }
    if ended.into_inner() == 0 {
        return Err(CliError::Failed("stopped before any run had ended".into()));
    }
    Ok(by)
}

/// All results as `--json` writes them: a list, policy by policy.
pub fn results_json(results: &Results) -> String {
    results::list_json(&results.iter().flatten().collect::<Vec<_>>())
}

/// What is compared of the results, by policy.
pub fn of(names: &[String], results: &Results) -> Study {
    let group = |(name, runs): (&String, &Vec<AnyResult>)| Group { label: name.clone(), runs: runs.iter().map(Account::from).collect() };
    let groups: Vec<Group> = names.iter().zip(results).map(group).filter(|g| !g.runs.is_empty()).collect();
    Study::new(&groups)
}

/// The study as it is printed. Of a single policy, its figures alone.
pub fn show(study: &Study, output: Output) -> String {
    match (output, &study.policies[..]) {
        (Output::Json, _) => tables::json(study),
        (Output::Csv, _) => exact(study).csv(),
        (Output::Table, [only]) => figures(only).table() + "\n",
        (Output::Table, _) => tables(study) + "\n",
    }
}

/// The figures of one policy, which heads the table: a row each.
fn figures(policy: &Policy) -> Rows {
    let mut rows = Rows::new(&[policy.policy.as_str(), "runs", "mean ± 95 %", "min", "max"]);
    for f in &policy.figures {
        let number = |v: f64| format!("{v:.4}");
        let (least, most) = range(f);
        let mean = f.estimate.half.map_or(number(f.estimate.mean), |half| format!("{} ± {half:.4}", number(f.estimate.mean)));
        rows.rows.push(vec![Figure::title(f.name, f.unit), f.values.len().to_string(), mean, number(least), number(most)]);
    }
    rows
}

fn range(f: &Measured) -> (f64, f64) {
    (f.values.iter().copied().fold(f64::INFINITY, f64::min), f.values.iter().copied().fold(f64::NEG_INFINITY, f64::max))
}

/// The policies, then their completion times over those of the first.
fn tables(study: &Study) -> String {
    let first = &study.policies[0];
    let unfinished: f64 =
        study.policies.iter().flat_map(|p| &p.figures).filter(|f| f.name.ends_with("unfinished")).map(|f| f.estimate.mean).sum();
    let mut text = policies(study).folded(2, 2);
    let paired = if first.runs > 1 { ", in pairs with the same workload; ± is half of a 95 % interval" } else { "" };
    text += &format!("\n\nDifferences are against {}{paired}.", first.policy);
    if unfinished > 0.0 {
        text += &format!("\nNot all {} finished: see -o csv.", things(study));
    }
    let few: Vec<String> =
        study.policies.iter().filter(|p| p.pairs < p.runs).map(|p| format!("{} {} of {}", p.policy, p.pairs, p.runs)).collect();
    if !few.is_empty() {
        text += &format!("\nRuns with a partner: {}.", few.join(", "));
    }
    let normalised = normalised(study);
    if !normalised.rows.is_empty() {
        text += &format!("\n\n{}", normalised.folded(1, 1));
    }
    text
}

const fn things(study: &Study) -> &'static str {
    if study.of_jobs { "jobs" } else { "coflows" }
}

/// A row a policy: the mean of each figure, and how it differs from the first policy's.
fn policies(study: &Study) -> Rows {
    let shown: Vec<usize> = SHOWN.iter().filter_map(|name| study.policies[0].figures.iter().position(|f| f.name == *name)).collect();
    let columns: Vec<Column> = shown.iter().map(|&k| Column::of(study.policies.iter().map(|p| &p.figures[k]))).collect();
    let mut header = vec!["policy".to_owned(), "runs".into()];
    header.extend(columns.iter().flat_map(|c| [c.title.clone(), "difference".into()]));
    let mut rows = Rows::new(&header);
    for p in &study.policies {
        let mut row = vec![p.policy.clone(), p.runs.to_string()];
        for (column, &k) in columns.iter().zip(&shown) {
            let f = &p.figures[k];
            row.extend([column.cell(f.estimate), f.against_first.map_or(String::new(), |a| difference(&a, f.unit))]);
        }
        rows.rows.push(row);
    }
    rows
}

/// A column of one figure: all its cells have the same unit and as many decimals.
struct Column {
    title: String,
    factor: f64,
    decimals: usize,
}

impl Column {
    fn of<'a>(figures: impl Iterator<Item = &'a Measured>) -> Self {
        let all: Vec<&Measured> = figures.collect();
        let most = all.iter().map(|f| f.estimate.mean.abs()).fold(0.0, f64::max);
        let (name, unit) = (all[0].name, all[0].unit);
        let (factor, unit) = match unit {
            Unit::Seconds if most < 1e-3 => (1e6, " (us)"),
            Unit::Seconds if most < 1.0 => (1e3, " (ms)"),
            Unit::Seconds => (1.0, " (s)"),
            Unit::Share => (100.0, " (%)"),
            Unit::Gigabytes => (1.0, " (GB)"),
            Unit::Count => (1.0, ""),
        };
        // Four digits of the largest are enough for people; of a share, one decimal.
        let digits = (most * factor).max(1.0).log10() as usize;
        Self { title: format!("{name}{unit}"), factor, decimals: if unit == " (%)" { 1 } else { 3usize.saturating_sub(digits) } }
    }

    fn cell(&self, e: Estimate) -> String {
        let number = |v: f64| format!("{:.*}", self.decimals, v * self.factor);
        e.half.map_or(number(e.mean), |half| format!("{} ± {}", number(e.mean), number(half)))
    }
}

/// A difference in per cent of the first policy's; of a share, in points.
fn difference(a: &Against, unit: Unit) -> String {
    let (e, factor, suffix) =
        (a.told(unit), if unit == Unit::Share { 100.0 } else { 1.0 }, if unit == Unit::Share { " points" } else { " %" });
    if e.mean == 0.0 && e.half.is_none_or(|half| half == 0.0) {
        return "equal".into();
    }
    let half = e.half.map_or(String::new(), |half| format!(" ± {:.1}", half * factor));
    let text = format!("{:+.1}{half}{suffix}", e.mean * factor);
    if a.unclear { format!("unclear, {text}") } else { text }
}

/// Completion times over those of the first policy: two rows a policy, a column a class.
pub fn normalised(study: &Study) -> Rows {
    let Some(most) = study.policies.iter().map(|p| &p.normalised).max_by_key(|n| n.len()) else { return Rows::default() };
    let title = if study.of_jobs { "JCT" } else { "CCT" };
    let mut header = vec![format!("{title} over that of {}", study.policies[0].policy)];
    header.extend(most.iter().map(|n| format!("{} ({})", n.class, n.count)));
    let mut rows = Rows::new(&header);
    let cell = |e: Estimate| e.half.map_or(format!("{:.3}", e.mean), |half| format!("{:.3} ± {half:.3}", e.mean));
    for p in study.policies.iter().filter(|p| !p.normalised.is_empty()) {
        let of = |pick: fn(&Normalised) -> Estimate| {
            most.iter().map(move |m| p.normalised.iter().find(|n| n.class == m.class).map_or("-".into(), |n| cell(pick(n))))
        };
        for (what, pick) in [("average", (|n: &Normalised| n.average) as fn(&Normalised) -> Estimate), ("p95", |n| n.p95)] {
            rows.rows.push([format!("{}, {what}", p.policy)].into_iter().chain(of(pick)).collect());
        }
    }
    rows
}

/// Everything, a row a policy and figure.
pub fn exact(study: &Study) -> Rows {
    let mut rows = Rows::new(&[
        "policy",
        "figure",
        "unit",
        "runs",
        "mean",
        "half_interval",
        "min",
        "max",
        "pairs",
        "difference",
        "difference_half_interval",
        "percent",
        "percent_half_interval",
        "unclear",
    ]);
    let or_empty = |v: Option<f64>| v.map_or(String::new(), |v| v.to_string());
    let words = |unit: Unit| serde_json::to_value(unit).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default();
    for p in &study.policies {
        for f in &p.figures {
            let (least, most) = range(f);
            let a = f.against_first;
            let percent = a.and_then(|a| a.paired.percent);
            let mut row = vec![p.policy.clone(), f.name.into(), words(f.unit), f.values.len().to_string()];
            row.extend([f.estimate.mean.to_string(), or_empty(f.estimate.half), least.to_string(), most.to_string()]);
            row.push(a.map_or(String::new(), |a| a.paired.pairs.to_string()));
            row.extend([or_empty(a.map(|a| a.paired.difference.mean)), or_empty(a.and_then(|a| a.paired.difference.half))]);
            row.extend([or_empty(percent.map(|p| p.mean)), or_empty(percent.and_then(|p| p.half))]);
            row.push(a.map_or(String::new(), |a| a.unclear.to_string()));
            rows.rows.push(row);
        }
        for n in &p.normalised {
            for (what, e) in [("average", n.average), ("p95", n.p95)] {
                let mut row = vec![p.policy.clone(), format!("normalised {what}, {}", n.class), "ratio".into(), p.pairs.to_string()];
                row.extend([e.mean.to_string(), or_empty(e.half)]);
                row.resize(rows.header.len(), String::new());
                rows.rows.push(row);
            }
        }
    }
    rows
}
