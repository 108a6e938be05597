//! Several policies on the same workloads: their runs, and the tables that hold them against the
//! first.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::apart::{self, RunKeys};
use super::caveats::Allow;
use super::interrupt::stopped_by_ctrl_c;
use super::results;
use super::tables::{self, TextTable};
use super::{CliError, DocumentOutput};
use crate::runtime::parallel::in_parallel;
use crate::runtime::report::caveats::{Caveat, kinds, marked};
use crate::runtime::statistics::MeanEstimate;
use crate::runtime::study::{
    Against, AnyResult, FigureUnit, Measured, Normalised, Policy, PolicyRuns, RunAccount, Study,
};

/// The figures of the table; all others are in JSON and CSV.
const SHOWN: [&str; 8] = [
    "average CCT",
    "median CCT",
    "p95 CCT",
    "average JCT",
    "median JCT",
    "p95 JCT",
    "makespan",
    "OCS share",
];

/// A table: policies against the first of them, and what must be said of it.
#[derive(Clone, Debug, Serialize)]
pub struct ComparedPolicies {
    /// What its runs have in common and those of other tables have not.
    #[serde(rename = "of", skip_serializing_if = "Vec::is_empty")]
    pub scene: Vec<(String, String)>,
    /// The policies.
    #[serde(flatten)]
    pub study: Study,
    /// Keys of the policies, besides their schedulers, that have several values: by key, the value
    /// of each row.
    pub differences: Vec<Difference>,
    /// What else is to be known, such as what was pooled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A key of policies that has several values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The key.
    pub key: String,
    /// By row: its name and its value.
    pub values: Vec<(String, String)>,
}

impl ComparedPolicies {
    /// Of rows with their keys.
    pub fn new(
        rows: Vec<(PolicyRuns, RunKeys)>,
        scene: Vec<(String, String)>,
        notes: impl IntoIterator<Item = String>,
    ) -> Self {
        let named: Vec<(String, &RunKeys)> =
            rows.iter().map(|(g, k)| (g.label.clone(), k)).collect();
        let differences = apart::differences(&named)
            .into_iter()
            .map(|(key, values)| Difference { key, values })
            .collect();
        let groups: Vec<PolicyRuns> = rows.into_iter().map(|r| r.0).collect();
        Self { scene, study: Study::new(&groups), differences, notes: notes.into_iter().collect() }
    }

    /// What is said below its table: caveats, what the policies differ in, notes.
    fn remarks(&self) -> String {
        let rows: Vec<(&str, &[Caveat])> =
            self.study.policies.iter().map(|p| (p.policy.as_str(), &p.caveats[..])).collect();
        let mut text = caveat_lines(&rows);
        let all: Vec<_> =
            self.differences.iter().map(|d| (d.key.clone(), d.values.clone())).collect();
        text += &differences(&all);
        self.notes.iter().for_each(|n| text += &format!("{n}\n"));
        text
    }
}

/// What policies differ in besides their schedulers, for people; empty if in nothing.
pub fn differences(all: &[(String, Vec<(String, String)>)]) -> String {
    let of = |(key, values): &(String, Vec<(String, String)>)| {
        let values = values.iter().map(|(row, value)| format!("{row} {value}")).collect::<Vec<_>>();
        format!("{key} ({})", values.join(", "))
    };
    let all: Vec<String> = all.iter().map(of).collect();
    let line = || {
        tables::wrapped(
            &format!("Besides the scheduler, the policies differ in: {}.", all.join("; ")),
            2,
        )
    };
    if all.is_empty() { String::new() } else { line() + "\n" }
}

/// Caveats of several rows, a line each, with the names of the rows that have it.
pub fn caveat_lines(rows: &[(&str, &[Caveat])]) -> String {
    let mut said: Vec<(String, Vec<&str>)> = vec![];
    for (name, all) in rows {
        for text in all.iter().map(ToString::to_string) {
            match said.iter_mut().find(|s| s.0 == text) {
                Some(s) => s.1.push(name),
                None => said.push((text, vec![name])),
            }
        }
    }
    // In one line, so that what is said can be searched for.
    said.iter().map(|(text, names)| format!("(!) {}: {text}\n", names.join(", "))).collect()
}

/// Refuses results of which a fallback decided.
///
/// # Errors
/// The first such policy and why.
pub fn accept(allow: Allow, names: &[String], results: &Results) -> Result<(), CliError> {
    let all = names
        .iter()
        .zip(results)
        .flat_map(|(name, runs)| runs.iter().map(move |r| (name, r.caveats())));
    all.into_iter().try_for_each(|(name, caveats)| allow.accept(name, caveats))
}

/// As many threads as are asked for, else one a core.
pub fn threads(asked: Option<u32>) -> usize {
    asked
        .map_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()), |k| k as usize)
}

/// Names of policies for their tables: their own, or if two have the same, those of their files.
pub fn labels<'a>(
    policies: impl Iterator<Item = (&'a std::path::PathBuf, &'a str)>,
) -> Vec<String> {
    let all: Vec<(&Path, &str)> = policies.map(|(file, name)| (file.as_path(), name)).collect();
    let names: BTreeSet<&str> = all.iter().map(|p| p.1).collect();
    let label = |(file, name): &(&Path, &str)| {
        if names.len() == all.len() { (*name).to_owned() } else { file.display().to_string() }
    };
    all.iter().map(label).collect()
}

/// The results of each policy, by policy and seed; shorter lists where a run was stopped.
pub type Results = Vec<Vec<AnyResult>>;

/// Runs `one` for every policy (by its place in `names`) and each of the first `seeds` numbers, on
/// some threads. All policies run a seed before the next one begins, so that what Ctrl-C leaves can
/// be compared.
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
    bar.set_style(
        ProgressStyle::with_template("{bar:30} {pos}/{len} runs, {eta} to go")
            .expect("a valid template"),
    );
    let ended = AtomicUsize::new(0);
    let run = |k: usize| {
        let result = if stop.load(Relaxed) {
            Ok(None)
        } else {
            one(k % names.len(), (k / names.len()) as u64, &stop)
        };
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
pub fn of(names: &[String], results: &Results) -> ComparedPolicies {
    let group = |(name, runs): (&String, &Vec<AnyResult>)| {
        let runs: Vec<RunAccount> = runs.iter().map(RunAccount::from).collect();
        let keys = runs.first().map(|a| RunKeys::of(a, ""))?;
        Some((PolicyRuns { label: name.clone(), runs }, keys))
    };
    ComparedPolicies::new(names.iter().zip(results).filter_map(group).collect(), vec![], None)
}

/// Tables as they are printed. Of a single policy, its figures alone. In JSON, one table is an
/// object, and several are a list.
pub fn show(all: &[ComparedPolicies], output: impl Into<DocumentOutput>) -> String {
    let output = output.into();
    let text = |c: &ComparedPolicies| {
        let table = if let [only] = &c.study.policies[..] {
            let figures = figures(only);
            figures.drawn(output, figures.header.len(), 1)
        } else {
            tables(&c.study, output)
        };
        let remarks = c.remarks();
        let remarks = if remarks.is_empty() { String::new() } else { format!("\n{remarks}") };
        let caption = if c.scene.is_empty() {
            String::new()
        } else {
            format!("{}\n\n", apart::said(&c.scene))
        };
        format!("{caption}{table}\n{remarks}")
    };
    match (output, all) {
        (DocumentOutput::Json, [only]) => tables::json(only),
        (DocumentOutput::Json, _) => tables::json_list(all),
        (DocumentOutput::Csv, _) => exact(all).csv(),
        _ => tables::document(all.iter().map(text).collect::<Vec<_>>().join("\n\n"), output),
    }
}

/// The figures of one policy, which heads the table: a row each.
fn figures(policy: &Policy) -> TextTable {
    let name = marked(&policy.policy, &policy.caveats);
    let several = policy.runs > 1;
    let mut rows = if several {
        TextTable::new(&[&name, "runs", "mean ± 95 %", "min", "max"])
    } else {
        TextTable::new(&[&name, "value"])
    };
    for f in &policy.figures {
        let column = Column::of(std::iter::once(f));
        let (least, most) = range(f);
        let mut row = vec![column.cell(f.estimate)];
        if several {
            row.insert(0, f.values.len().to_string());
            row.extend([least, most].map(|v| column.number(v)));
        }
        row.insert(0, column.title);
        rows.rows.push(row);
    }
    rows
}

fn range(f: &Measured) -> (f64, f64) {
    (
        f.values.iter().copied().fold(f64::INFINITY, f64::min),
        f.values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    )
}

/// The policies, then their completion times over those of the first.
fn tables(study: &Study, output: DocumentOutput) -> String {
    let first = &study.policies[0];
    let unfinished: f64 = study
        .policies
        .iter()
        .flat_map(|p| &p.figures)
        .filter(|f| f.name.ends_with("unfinished"))
        .map(|f| f.estimate.mean)
        .sum();
    let mut text = policies(study).drawn(output, 2, 2);
    text += &format!("\n\nDifferences are against {}.", first.policy);
    if first.runs > 1 {
        text += "\nEach is the mean over pairs of runs with the same workload: a mean of ratios, which may differ from the\n\
                 ratio of the means in the table. ± is half of a 95 % interval.";
    }
    if unfinished > 0.0 {
        text += &format!("\nNot all {} finished: see -o csv.", things(study));
    }
    let few: Vec<String> = study
        .policies
        .iter()
        .filter(|p| p.pairs < p.runs)
        .map(|p| format!("{} {} of {}", p.policy, p.pairs, p.runs))
        .collect();
    if !few.is_empty() {
        text += &format!("\nRuns with a partner: {}.", few.join(", "));
    }
    let normalised = normalised(study);
    if !normalised.rows.is_empty() {
        text += &format!("\n\n{}", normalised.drawn(output, 1, 1));
        if first.runs > 1 {
            text += "\n\nIn each pair a mean (or 95th percentile) is divided by the first policy's; printed is the mean over pairs.";
        }
    }
    text
}

const fn things(study: &Study) -> &'static str {
    if study.of_jobs { "jobs" } else { "coflows" }
}

/// A row a policy: the mean of each figure, and how it differs from the first policy's.
fn policies(study: &Study) -> TextTable {
    let shown: Vec<usize> = SHOWN
        .iter()
        .filter_map(|name| study.policies[0].figures.iter().position(|f| f.name == *name))
        .collect();
    let columns: Vec<Column> =
        shown.iter().map(|&k| Column::of(study.policies.iter().map(|p| &p.figures[k]))).collect();
    let mut header = vec!["policy".to_owned(), "runs".into()];
    header.extend(columns.iter().flat_map(|c| [c.title.clone(), "difference".into()]));
    let mut rows = TextTable::new(&header);
    for p in &study.policies {
        let mut row = vec![marked(&p.policy, &p.caveats), p.runs.to_string()];
        for (column, &k) in columns.iter().zip(&shown) {
            let f = &p.figures[k];
            row.extend([
                column.cell(f.estimate),
                f.against_first.map_or(String::new(), |a| difference(&a, f.unit)),
            ]);
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
            FigureUnit::Seconds if most < 1e-3 => (1e6, " (us)"),
            FigureUnit::Seconds if most < 1.0 => (1e3, " (ms)"),
            FigureUnit::Seconds => (1.0, " (s)"),
            FigureUnit::Share => (100.0, " (%)"),
            FigureUnit::Gigabytes => (1.0, " (GB)"),
            FigureUnit::Count => (1.0, ""),
        };
        // Four digits of the largest are enough for people; of a share, one decimal; of what is
        // counted, none where all are whole.
        let digits = (most * factor).max(1.0).log10() as usize;
        let whole = unit.is_empty() && all.iter().all(|f| f.estimate.mean.fract() == 0.0);
        let decimals = match unit {
            " (%)" => 1,
            _ if whole => 0,
            _ => 3usize.saturating_sub(digits),
        };
        Self { title: format!("{name}{unit}"), factor, decimals }
    }

    fn number(&self, v: f64) -> String {
        format!("{:.*}", self.decimals, v * self.factor)
    }

    fn cell(&self, e: MeanEstimate) -> String {
        let number = |v| self.number(v);
        e.half.map_or(number(e.mean), |half| format!("{} ± {}", number(e.mean), number(half)))
    }
}

/// A difference in per cent of the first policy's; of a share, in points.
fn difference(a: &Against, unit: FigureUnit) -> String {
    let (e, factor, suffix) = (
        a.told(unit),
        if unit == FigureUnit::Share { 100.0 } else { 1.0 },
        if unit == FigureUnit::Share { " points" } else { " %" },
    );
    if e.mean == 0.0 && e.half.is_none_or(|half| half == 0.0) {
        return "equal".into();
    }
    let half = e.half.map_or(String::new(), |half| format!(" ± {:.1}", half * factor));
    let text = format!("{:+.1}{half}{suffix}", e.mean * factor);
    if a.unclear { format!("unclear, {text}") } else { text }
}

/// Completion times over those of the first policy: two rows a policy, a column a class.
pub fn normalised(study: &Study) -> TextTable {
    let Some(most) = study.policies.iter().map(|p| &p.normalised).max_by_key(|n| n.len()) else {
        return TextTable::default();
    };
    let title = if study.of_jobs { "JCT" } else { "CCT" };
    let mut header = vec![format!("{title} over that of {}", study.policies[0].policy)];
    header.extend(most.iter().map(|n| format!("{} ({})", n.class, n.count)));
    let mut rows = TextTable::new(&header);
    let cell = |e: MeanEstimate| {
        e.half.map_or(format!("{:.3}", e.mean), |half| format!("{:.3} ± {half:.3}", e.mean))
    };
    for p in study.policies.iter().filter(|p| !p.normalised.is_empty()) {
        let of = |pick: fn(&Normalised) -> MeanEstimate| {
            most.iter().map(move |m| {
                p.normalised
                    .iter()
                    .find(|n| n.class == m.class)
                    .map_or("-".into(), |n| cell(pick(n)))
            })
        };
        for (what, pick) in [
            ("average", (|n: &Normalised| n.average) as fn(&Normalised) -> MeanEstimate),
            ("p95", |n| n.p95),
        ] {
            rows.rows.push(
                [format!("{}, {what}", marked(&p.policy, &p.caveats))]
                    .into_iter()
                    .chain(of(pick))
                    .collect(),
            );
        }
    }
    rows
}

/// Everything, a row a policy and figure; what tells tables apart comes first.
pub fn exact(all: &[ComparedPolicies]) -> TextTable {
    let mut rows = TextTable::default();
    for c in all {
        let own = exact_of(&c.study);
        let (names, values): (Vec<String>, Vec<String>) = c.scene.iter().cloned().unzip();
        rows.header = [names, own.header].concat();
        rows.rows.extend(own.rows.into_iter().map(|row| [values.clone(), row].concat()));
    }
    rows
}

fn exact_of(study: &Study) -> TextTable {
    let mut rows = TextTable::new(&[
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
        "caveats",
    ]);
    let or_empty = |v: Option<f64>| v.map_or(String::new(), |v| v.to_string());
    for p in &study.policies {
        for f in &p.figures {
            let (least, most) = range(f);
            let a = f.against_first;
            let percent = a.and_then(|a| a.paired.percent);
            let mut row = vec![
                p.policy.clone(),
                f.name.into(),
                tables::word(&f.unit),
                f.values.len().to_string(),
            ];
            row.extend([
                f.estimate.mean.to_string(),
                or_empty(f.estimate.half),
                least.to_string(),
                most.to_string(),
            ]);
            row.push(a.map_or(String::new(), |a| a.paired.pairs.to_string()));
            row.extend([
                or_empty(a.map(|a| a.paired.difference.mean)),
                or_empty(a.and_then(|a| a.paired.difference.half)),
            ]);
            row.extend([or_empty(percent.map(|p| p.mean)), or_empty(percent.and_then(|p| p.half))]);
            row.push(a.map_or(String::new(), |a| a.unclear.to_string()));
            row.push(kinds(&p.caveats));
            rows.rows.push(row);
        }
        for n in &p.normalised {
            for (what, e) in [("average", n.average), ("p95", n.p95)] {
                let mut row = vec![
                    p.policy.clone(),
                    format!("normalised {what}, {}", n.class),
                    "ratio".into(),
                    p.pairs.to_string(),
                ];
                row.extend([e.mean.to_string(), or_empty(e.half)]);
                row.resize(rows.header.len() - 1, String::new());
                row.push(kinds(&p.caveats));
                rows.rows.push(row);
            }
        }
    }
    rows
}
