//! `heliostat compare`: results of runs against the first of them; of two runs, coflow by coflow or
//! job by job.

pub(super) mod groups;
pub mod jobs;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::apart::{self, Grouping, RunKeys};
use super::tables::{self, TextTable, ratio};
use super::{CliError, DocumentOutput, print, results, study};
use crate::coflows::CoflowRecord;
use crate::ids::CoflowId;
use crate::runtime::report::RunResult;
use crate::runtime::report::caveats::Caveat;
use crate::runtime::spans::percentile;
use crate::runtime::study::{AnyResult, PolicyRuns, Study};
use crate::units::{Bytes, Span};

/// Compares results with the first: runs of the same coflows or jobs, one or repeated ones a file
///
/// Two runs are compared coflow by coflow or job by job, such as a live run and its simulation.
/// More results, or files with several of them, become a row each. It has means with 95 %
/// intervals, differences of pairs with the same workload, and completion times over those of the
/// first by class of size. Runs that differ in anything but their seed are never pooled unless
/// --pool says so.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Results, written by --json; or directories that `heliostat sweep` filled. All are compared
    /// with the first
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Names of the rows, in their order [default: what tells them apart]
    #[arg(long, value_name = "TEXT")]
    label: Vec<String>,
    /// The row that all others are compared with, by its name [default: the first]
    #[arg(long, value_name = "TEXT")]
    against: Option<String>,
    #[command(flatten)]
    grouping: Grouping,
    /// What is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: DocumentOutput,
}

/// Two runs side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// What the first run was.
    pub a: RunLabel,
    /// What the second run was.
    pub b: RunLabel,
    /// By coflow.
    pub coflows: Vec<ComparedCoflow>,
    /// Mean of the coflows' ratios; absent if no coflow has one.
    pub mean_ratio: Option<f64>,
    /// Mean of the coflows' distances from a ratio of one.
    pub mean_error: Option<f64>,
}

/// What a run was, and its sums.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunLabel {
    /// Topology, policy, mechanism.
    pub run: String,
    /// First arrival to last finish.
    #[serde(rename = "makespan_ns")]
    pub makespan: Span,
    /// Mean completion time.
    #[serde(rename = "average_cct_ns")]
    pub average_cct: Span,
    /// Median of the completion times.
    #[serde(rename = "median_cct_ns")]
    pub median_cct: Span,
    /// 95th percentile of the completion times.
    #[serde(rename = "p95_cct_ns")]
    pub p95_cct: Span,
    /// Share of the bytes between racks that went over circuits.
    pub ocs_share: f64,
    /// Coflows that finished.
    pub finished: usize,
    /// Why the run is not what its name says.
    pub caveats: Vec<Caveat>,
}

/// One coflow in both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedCoflow {
    /// Its number.
    pub id: CoflowId,
    /// Its name.
    pub name: String,
    /// Its payload.
    pub bytes: Bytes,
    /// Completion time in the first run.
    #[serde(rename = "cct_a_ns")]
    pub cct_a: Option<Span>,
    /// Completion time in the second run.
    #[serde(rename = "cct_b_ns")]
    pub cct_b: Option<Span>,
    /// The second over the first; absent unless both finished and the first took time.
    pub ratio: Option<f64>,
}

/// Runs the subcommand.
///
/// # Errors
/// Files that cannot be read, are no results, or are of different coflows.
pub fn run(args: &Args) -> Result<(), CliError> {
    let read = args
        .files
        .iter()
        .map(|f| Ok((f.as_path(), results::read(f)?)))
        .collect::<Result<Vec<_>, CliError>>()?;
    let [(a_file, a), (b_file, b)] = &read[..] else { return several(args, &read) };
    let grouped = args.grouping.by.is_some() || !args.grouping.pool.pool.is_empty();
    if !args.label.is_empty() || args.against.is_some() || grouped {
        return several(args, &read);
    }
    let unlike = |why: String| {
        CliError::Invalid(format!("{} and {}: {why}", a_file.display(), b_file.display()))
    };
    let names = RunNames::of(&read);
    match (&a[..], &b[..]) {
        ([AnyResult::Coflows(x)], [AnyResult::Coflows(y)]) => {
            let c = compare(x, y).map_err(unlike)?;
            let more = names.remarks([&x.caveats, &y.caveats]);
            show(
                args.output,
                &c,
                || vec![lines(&c, &names), sums(&c, &names)],
                (&by_class(&read), &more),
                || exact(&c),
            )
        }
        ([AnyResult::Jobs(x)], [AnyResult::Jobs(y)]) => {
            let c = jobs::compare(x, y).map_err(unlike)?;
            let more = names.remarks([&x.caveats, &y.caveats]);
            let tables = || vec![jobs::lines(&c, &names), jobs::sums(&c, &names)];
            show(args.output, &c, tables, (&by_class(&read), &more), || jobs::exact(&c))
        }
        ([AnyResult::Coflows(_)], [AnyResult::Jobs(_)])
        | ([AnyResult::Jobs(_)], [AnyResult::Coflows(_)]) => {
            Err(unlike("one is a run of jobs, the other of coflows".into()))
        }
        _ => several(args, &read),
    }
}

/// What tables call two runs: what tells them apart.
pub struct RunNames {
    a: String,
    b: String,
    /// Lines about what their policies differ in.
    differences: String,
}

impl RunNames {
    /// As rows of more than two results are called; by their files, if nothing else tells them
    /// apart.
    fn of(read: &[(&Path, Vec<AnyResult>)]) -> Self {
        let rows = rows(read);
        let by_file = || match [read[0].0, read[1].0].map(|f| f.display().to_string()) {
            [a, b] if a == b => (format!("{a} (first)"), format!("{b} (second)")),
            [a, b] => (a, b),
        };
        let (a, b) = match &rows[..] {
            [(a, _), (b, _)] if a.label != b.label => (a.label.clone(), b.label.clone()),
            _ => by_file(),
        };
        let named = [&a, &b]
            .into_iter()
            .zip(&rows)
            .map(|(name, row)| (name.clone(), &row.1))
            .collect::<Vec<_>>();
        let differences = study::differences(&apart::differences(&named));
        Self { a, b, differences }
    }

    /// What is said below the tables: against which run, caveats of both, and what else their
    /// policies differ in.
    fn remarks(&self, caveats: [&[Caveat]; 2]) -> String {
        let both = [(self.a.as_str(), caveats[0]), (self.b.as_str(), caveats[1])];
        format!(
            "Ratios and differences are against {}.\n{}{}",
            self.a,
            study::caveat_lines(&both),
            self.differences
        )
    }

    /// The second over the first.
    fn ratio(&self) -> String {
        format!("{}/{}", self.b, self.a)
    }

    /// A column for each run.
    fn both(&self, what: &str) -> [String; 2] {
        [format!("{what} {}", self.a), format!("{what} {}", self.b)]
    }

    /// The table of the sums, without its rows.
    fn sums(&self) -> TextTable {
        TextTable::new(&["summary", &self.a, &self.b, &self.ratio()])
    }
}

/// More than two results, or repeated ones.
fn several(args: &Args, read: &[(&Path, Vec<AnyResult>)]) -> Result<(), CliError> {
    print(&study::show(
        &groups::studies(read, &args.grouping, &args.label, args.against.as_deref())?,
        args.output,
    ))
}

/// Completion times by class over those of the first.
fn by_class(read: &[(&Path, Vec<AnyResult>)]) -> TextTable {
    study::normalised(&Study::new(&rows(read).into_iter().map(|r| r.0).collect::<Vec<_>>()))
}

/// Two runs as rows of one table, whatever they differ in.
fn rows(read: &[(&Path, Vec<AnyResult>)]) -> Vec<(PolicyRuns, RunKeys)> {
    let one = Grouping { by: Some(vec![]), ..Grouping::default() };
    let tables = groups::tables(read, &one).unwrap_or_default();
    tables.into_iter().next().map(groups::rows).unwrap_or_default()
}

/// The tables of both runs, then that of the classes, which has the most columns.
fn show(
    output: DocumentOutput,
    c: &impl Serialize,
    tables: impl Fn() -> Vec<TextTable>,
    (classes, remarks): (&TextTable, &str),
    exact: impl Fn() -> TextTable,
) -> Result<(), CliError> {
    print(&match output {
        DocumentOutput::Json => tables::json(c),
        DocumentOutput::Csv => exact().csv(),
        _ => {
            let tables = tables()
                .into_iter()
                .filter(|t| !t.rows.is_empty())
                .map(|t| t.drawn(output, t.header.len(), 1));
            let classes = (!classes.rows.is_empty()).then(|| classes.drawn(output, 1, 1));
            tables::document(
                tables.chain(classes).collect::<Vec<_>>().join("\n\n") + "\n\n" + remarks,
                output,
            )
        }
    })
}

/// Two runs of the same coflows: same numbers, names and bytes.
///
/// # Errors
/// Which coflows are not the same.
pub fn compare(a: &RunResult, b: &RunResult) -> Result<Comparison, String> {
    let index = |r: &RunResult| {
        r.coflows
            .iter()
            .map(|c| ((c.id, c.name.clone(), c.bytes), c.cct))
            .collect::<BTreeMap<_, _>>()
    };
    let (in_a, in_b) = (index(a), index(b));
    let only = |x: &RunResult, y: &BTreeMap<_, _>| {
        let odd = |c: &&CoflowRecord| !y.contains_key(&(c.id, c.name.clone(), c.bytes));
        x.coflows
            .iter()
            .filter(odd)
            .map(|c| format!("{} `{}` of {}", c.id.0, c.name, tables::bytes(c.bytes)))
            .collect::<Vec<_>>()
    };
    let mut faults = Vec::new();
    for (which, list) in [("first", only(a, &in_b)), ("second", only(b, &in_a))] {
        if !list.is_empty() {
            let more = if list.len() > 5 {
                format!(" and {} more", list.len() - 5)
            } else {
                String::new()
            };
            faults.push(format!(
                "only the {which} has coflow {}{more}",
                list[..list.len().min(5)].join(", ")
            ));
        }
    }
    if !faults.is_empty() {
        return Err(format!("these are not runs of the same coflows: {}", faults.join("; ")));
    }
    let line = |((id, name, bytes), cct_a): ((CoflowId, String, Bytes), Option<Span>)| {
        let cct_b = in_b[&(id, name.clone(), bytes)];
        let ratio = cct_a.zip(cct_b).and_then(|(x, y)| ratio(y, x));
        ComparedCoflow { id, name, bytes, cct_a, cct_b, ratio }
    };
    let coflows: Vec<ComparedCoflow> = in_a.into_iter().map(line).collect();
    let ratios: Vec<f64> = coflows.iter().filter_map(|l| l.ratio).collect();
    let mean = |f: fn(f64) -> f64| {
        (!ratios.is_empty())
            .then(|| ratios.iter().map(|&r| f(r)).sum::<f64>() / ratios.len() as f64)
    };
    Ok(Comparison {
        a: label(a),
        b: label(b),
        mean_ratio: mean(|r| r),
        mean_error: mean(|r| (r - 1.0).abs()),
        coflows,
    })
}

fn label(r: &RunResult) -> RunLabel {
    let s = &r.summary;
    RunLabel {
        run: format!("{} {} {}", r.topology, r.policy, r.mechanism),
        makespan: s.makespan,
        average_cct: s.average_cct,
        median_cct: percentile(&r.coflows.iter().filter_map(|c| c.cct).collect::<Vec<_>>(), 50),
        p95_cct: s.p95_cct,
        ocs_share: s.ocs_share,
        finished: s.finished,
        caveats: r.caveats.clone(),
    }
}

fn lines(c: &Comparison, names: &RunNames) -> TextTable {
    let [a, b] = names.both("CCT");
    let mut rows = TextTable::new(&["coflow", "bytes", &a, &b, "difference", &names.ratio()]);
    let cct = |s: Option<Span>| s.map_or("unfinished".into(), tables::span);
    for l in &c.coflows {
        let difference = l.cct_a.zip(l.cct_b).map_or("-".into(), |(a, b)| difference(a, b));
        let ratio = l.ratio.map_or("-".into(), |r| format!("{r:.3}"));
        rows.rows.push(vec![
            l.name.clone(),
            tables::bytes(l.bytes),
            cct(l.cct_a),
            cct(l.cct_b),
            difference,
            ratio,
        ]);
    }
    rows
}

fn difference(a: Span, b: Span) -> String {
    if b >= a {
        format!("+{}", tables::span(b.saturating_sub(a)))
    } else {
        format!("-{}", tables::span(a.saturating_sub(b)))
    }
}

fn sums(c: &Comparison, names: &RunNames) -> TextTable {
    let mut rows = names.sums();
    let (a, b) = (&c.a, &c.b);
    let mut row = |name: &str, a: String, b: String, r: Option<f64>| {
        rows.rows.push(vec![name.into(), a, b, r.map_or(String::new(), |r| format!("{r:.3}"))]);
    };
    row("run", a.run.clone(), b.run.clone(), None);
    row("coflows finished", a.finished.to_string(), b.finished.to_string(), None);
    for (name, x, y) in [
        ("makespan", a.makespan, b.makespan),
        ("average CCT", a.average_cct, b.average_cct),
        ("median CCT", a.median_cct, b.median_cct),
        ("p95 CCT", a.p95_cct, b.p95_cct),
    ] {
        row(name, tables::span(x), tables::span(y), ratio(y, x));
    }
    row("OCS share", tables::percent(a.ocs_share), tables::percent(b.ocs_share), None);
    row("mean of the coflows' ratios", String::new(), String::new(), c.mean_ratio);
    row("mean distance of these from 1", String::new(), String::new(), c.mean_error);
    rows
}

fn exact(c: &Comparison) -> TextTable {
    let mut rows = TextTable::new(&["coflow", "bytes", "cct_a_ns", "cct_b_ns", "ratio"]);
    let cct = |s: Option<Span>| s.map_or(String::new(), |s| s.0.to_string());
    for l in &c.coflows {
        let ratio = l.ratio.map_or(String::new(), |r| format!("{r:.6}"));
        rows.rows.push(vec![
            l.name.clone(),
            l.bytes.0.to_string(),
            cct(l.cct_a),
            cct(l.cct_b),
            ratio,
        ]);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::settings::RunPlan;
    use crate::runtime::simulate::simulate;
    use crate::topology::Topology;
    use crate::units::BitRate;
    use crate::workload::coflow_benchmark::parse;
    use std::sync::Arc;

    fn result(uplink: u64, trace: &str) -> RunResult {
        let t = Arc::new(Topology::uniform(
            "t",
            3,
            1,
            BitRate::mbit(1000),
            BitRate::mbit(uplink),
            vec![],
        ));
        let w = parse(trace).unwrap().to_workload("w", &t, &Default::default()).unwrap();
        simulate(&t, &RunPlan::default(), &w, None, &mut |_| ()).unwrap()
    }

    #[test]
    fn ratios_are_the_second_over_the_first() {
        let trace = "3 2\n1 0 1 0 1 1:2.0\n2 5 1 2 1 2:4.0\n";
        let c = compare(&result(100, trace), &result(200, trace)).unwrap();
        assert!((c.coflows[0].ratio.unwrap() - 0.5).abs() < 1e-6);
        assert_eq!(
            (c.coflows[1].cct_a, c.coflows[1].ratio),
            (Some(Span::ZERO), None),
            "within a host"
        );
        assert!(
            (c.mean_ratio.unwrap() - 0.5).abs() < 1e-6
                && (c.mean_error.unwrap() - 0.5).abs() < 1e-6
        );
        let names = RunNames { a: "slow".into(), b: "fast".into(), differences: String::new() };
        assert_eq!(
            lines(&c, &names).header,
            ["coflow", "bytes", "CCT slow", "CCT fast", "difference", "fast/slow"]
        );
        assert_eq!(lines(&c, &names).rows.len(), 2);
        let sums = sums(&c, &names);
        assert_eq!(sums.header, ["summary", "slow", "fast", "fast/slow"]);
        assert!(
            lines(&c, &names).rows[0][4].starts_with('-')
                && sums.table().contains("makespan")
                && exact(&c).csv().lines().count() == 3
        );
    }

    #[test]
    fn runs_are_called_by_what_tells_them_apart() {
        let of =
            |uplink| vec![AnyResult::Coflows(Box::new(result(uplink, "3 1\n1 0 1 0 1 1:2.0\n")))];
        let mut other = of(200);
        let AnyResult::Coflows(r) = &mut other[0] else { panic!("coflows") };
        r.policy = "other".into();
        let names = RunNames::of(&[(Path::new("x.json"), of(100)), (Path::new("y.json"), other)]);
        assert_eq!((&*names.b, names.ratio()), ("other", format!("other/{}", names.a)));
        let names = RunNames::of(&[(Path::new("x.json"), of(100)), (Path::new("y.json"), of(200))]);
        assert_eq!([names.a, names.b], ["x", "y"]);
        let names =
            RunNames::of(&[(Path::new("p/x.json"), of(100)), (Path::new("q/x.json"), of(200))]);
        assert_eq!([names.a, names.b], ["p/x.json", "q/x.json"]);
        let names = RunNames::of(&[(Path::new("x.json"), of(100)), (Path::new("x.json"), of(100))]);
        assert_eq!([names.a, names.b], ["x.json (first)", "x.json (second)"]);
    }

    #[test]
    fn different_coflows_are_named() {
        let a = result(100, "3 2\n1 0 1 0 1 1:2.0\n2 0 1 2 1 2:4.0\n");
        let b = result(100, "3 1\n7 0 1 0 1 1:2.0\n");
        let e = compare(&a, &b).unwrap_err();
        assert!(
            e.contains("only the first has coflow 0 `1` of 2MB, 1 `2` of 4MB")
                && e.contains("only the second has coflow 0 `7`"),
            "{e}"
        );
    }
}
