//! `heliostat experiment`: a paper's evaluation, each of its numbers beside ours.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::tables::Rows;
use super::{CliError, print, simulate, write_text};
use crate::experiment::report::{Report, Row, name};
use crate::experiment::runs::{Measure, Progress, run as run_all};
use crate::experiment::{Paper, Size};

/// Runs a paper's evaluation, and prints each of its numbers beside ours
///
/// The paper's network, jobs and baselines, in virtual time, over several seeds: means with their 95% intervals, and a verdict. Ctrl-C
/// ends it; the report then holds what was run.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Whose evaluation
    #[arg(value_enum)]
    paper: Paper,
    /// Three repetitions instead of the paper's (20; Corral 10)
    #[arg(long)]
    quick: bool,
    /// So many repetitions
    #[arg(long, value_name = "N", conflicts_with = "quick", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeat: Option<u32>,
    /// The first seed; repetitions take those after it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Runs at once
    #[arg(long, value_name = "K", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,
    /// What is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    /// Writes everything to this file, every repetition included
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// How the report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
enum Output {
    /// For people
    #[default]
    Table,
    /// Everything, for programs
    Json,
    /// The paper's numbers and ours, for spreadsheets
    Csv,
    /// The tables, for documents
    Markdown,
}

/// Runs the subcommand.
///
/// # Errors
/// A run that fails, or files that cannot be written.
pub fn run(args: &Args) -> Result<(), CliError> {
    let repeats = args.repeat.map_or_else(|| args.paper.repeats(args.quick), |n| n as usize);
    let size = Size { seed: args.seed, repeats, jobs_percent: 100 };
    let experiment = args.paper.experiment(size);
    let (stop, threads, began) = (simulate::stopped_by_ctrl_c(), args.threads as usize, Instant::now());
    let tell = |p: Progress| {
        let ((done, of), (setting, system, seed)) = (p.done, p.last);
        eprintln!("{done}/{of} {setting}, {system}, seed {seed}: {:.1} s", p.took);
    };
    let outcomes = run_all(&experiment, size, threads, &stop, &tell).map_err(CliError::Failed)?;
    if stop.load(Ordering::Relaxed) {
        eprintln!("stopped: the report is that of the runs so far");
    }
    let report = Report::new(&experiment, &outcomes, began.elapsed().as_secs_f64(), threads);
    let json = || serde_json::to_string_pretty(&report).expect("a report is plain data") + "\n";
    args.json.as_ref().map_or(Ok(()), |file| write_text(file, &json()))?;
    print(&match args.output {
        Output::Json => json(),
        Output::Csv => exact(&report).csv(),
        Output::Table => text(&report, Rows::table),
        Output::Markdown => text(&report, Rows::markdown),
    })
}

/// The tables, one after another, and why some numbers differ.
fn text(r: &Report, draw: impl Fn(&Rows) -> String) -> String {
    let mut out = format!("{}\n\n{}\n", draw(&numbers(r)), draw(&means(r)));
    for (setting, about) in &r.settings {
        out += &format!("\n{setting}: {about}");
    }
    let differ: Vec<&Row> = r.rows.iter().filter(|w| !w.why.is_empty()).collect();
    if !differ.is_empty() {
        out += "\n\nWhere it differs, what was measured:\n";
    }
    for w in differ {
        let off = w.off.map_or(String::new(), |o| format!(" ({o:+.1} points)"));
        out += &format!("\n- {}, {}{off}: {}", w.setting, w.figure, w.why);
    }
    let runs = r.size.repeats;
    let partial = if r.partial { ", stopped before the end" } else { "" };
    out + &format!("\n\n{runs} repetitions from seed {}, {:.0} s on {} threads{partial}\n", r.size.seed, r.took_s, r.threads)
}

fn numbers(r: &Report) -> Rows {
    let mut rows = Rows::new(&["setting", "figure", "paper", "ours", "95% interval", "verdict", "source"]);
    for w in &r.rows {
        let number = |v: f64| format!("{v:.1}{}", w.unit);
        let ours = if w.values.is_empty() { "-".into() } else { number(w.mean) };
        let half = w.half.map_or("-".into(), |h| format!("+-{h:.1}"));
        let paper = w.paper.map_or("-".into(), |p| p.words(w.unit));
        rows.rows.push(vec![w.setting.into(), w.figure.clone(), paper, ours, half, w.verdict.words().into(), w.source.into()]);
    }
    rows
}

fn exact(r: &Report) -> Rows {
    let mut rows = Rows::new(&["setting", "figure", "unit", "paper", "mean", "half_interval", "runs", "off", "verdict", "source"]);
    let number = |v: Option<f64>| v.map_or(String::new(), |v| v.to_string());
    for w in &r.rows {
        rows.rows.push(vec![
            w.setting.into(),
            w.figure.clone(),
            w.unit.trim().into(),
            w.paper.map_or(String::new(), |p| p.words("")),
            number((!w.values.is_empty()).then_some(w.mean)),
            number(w.half),
            w.values.len().to_string(),
            number(w.off),
            w.verdict.words().into(),
            w.source.into(),
        ]);
    }
    rows
}

/// What is behind the comparisons.
fn means(r: &Report) -> Rows {
    const SHOWN: [Measure; 9] = [
        Measure::Makespan,
        Measure::MeanJct,
        Measure::MedianJct,
        Measure::MeanCct,
        Measure::OcsShare,
        Measure::Crossing,
        Measure::Waiting,
        Measure::Computing,
        Measure::Unfinished,
    ];
    let mut header = vec!["setting", "system"];
    header.extend(SHOWN.map(name));
    let mut rows = Rows { header, rows: Vec::new() };
    for m in r.measured.iter().filter(|m| m.means.iter().any(|v| v.0 == Measure::Makespan)) {
        let of = |which| m.means.iter().find(|v| v.0 == which).map_or("-".into(), |v| shown(which, v.1));
        let cells = SHOWN.map(of);
        rows.rows.push([m.setting.to_owned(), m.system.to_owned()].into_iter().chain(cells).collect());
    }
    rows
}

fn shown(m: Measure, v: f64) -> String {
    match m {
        Measure::OcsShare | Measure::Crossing | Measure::Waiting => format!("{v:.1}%"),
        Measure::Unfinished => format!("{v:.0}"),
        _ => format!("{v:.1}s"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::experiment::report::Measured;

    #[test]
    fn every_output_has_every_number_of_the_paper() {
        // Stopped before it begins: all numbers of the paper, none of ours.
        let size = Size { seed: 1, repeats: 2, jobs_percent: 1 };
        let e = Paper::CoScheduler.experiment(size);
        let outcomes = run_all(&e, size, 2, &AtomicBool::new(true), &|_| {}).unwrap();
        let r = Report::new(&e, &outcomes, 0.0, 2);
        assert!(r.partial && r.rows.len() == e.claims.len() && r.measured.iter().all(|m: &Measured| m.runs == 0));
        for text in [text(&r, Rows::table), text(&r, Rows::markdown), exact(&r).csv()] {
            assert!(text.matches("not run").count() == r.rows.len() && text.contains("95.2"), "{text}");
        }
        let back: serde_json::Value = serde_json::from_str(&serde_json::to_string(&r).unwrap()).unwrap();
        assert_eq!((back["rows"].as_array().unwrap().len(), &back["rows"][0]["paper"]["about"]), (19, &56.0.into()));
    }
}
