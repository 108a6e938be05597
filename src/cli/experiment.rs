//! `heliostat experiment`: a paper's evaluation, each of its numbers beside ours.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

mod explain;
mod list;

use super::interrupt::{stopped_by_ctrl_c, wait_for_signal};
use super::jobs::GrainArg;
use super::log::{self, say};
use super::run::MechanismArg;
use super::tables::{self, Rows};
use super::user_namespace::REMEDY;
use super::{CliError, DocumentOutput, can_write, print, read_workload, write_text};
use crate::experiment::assumptions::Assumptions;
use crate::experiment::claim::Verdict;
use crate::experiment::joint::{self, WITHOUT};
use crate::experiment::live::{self, Place, Slower};
use crate::experiment::measure::PARTS;
use crate::experiment::report::{Live, Report, Row, name};
use crate::experiment::runs::{Measure, Progress, run as run_all};
use crate::experiment::setting::shuffling;
use crate::experiment::{Experiment, Paper, Size, Traces};
use crate::kernel::{ownership, rights};
use crate::runtime::statistics::Estimate;
use crate::units::{Bytes, Span};
use crate::workload::{TraceError, coflow_benchmark, swim};

/// Runs a paper's evaluation, and prints each of its numbers beside ours
///
/// The paper's network, jobs and baselines, in virtual time, over several seeds: means with their
/// 95% intervals, and a verdict. Ctrl-C ends it; the report then holds what was run.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The paper whose evaluation is run
    #[arg(value_enum, required_unless_present = "list")]
    paper: Option<Paper>,
    /// Lists the evaluations: of which paper, what they show, how long they take; with a paper, its
    /// settings and systems
    #[arg(long)]
    list: bool,
    /// A look: three repetitions instead of the paper's (20; Corral, Hit and PushBox 10); PushBox's
    /// sweeps have fewer points
    #[arg(long)]
    quick: bool,
    /// Number of repetitions, with `--quick` too
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeat: Option<u32>,
    /// The first seed; repetitions take those after it [default: 1; joint: 21, since draws 1 to 20
    /// are those with which it was tuned]
    #[arg(long, value_parser = crate::cli::numbers::whole)]
    seed: Option<u64>,
    /// Runs at once
    #[arg(long, value_name = "K", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,
    /// Of joint: only joint, as it is and without each of its parts, and a table of what each part
    /// brings; with --quick a fifth of the jobs
    #[arg(long, conflicts_with_all = ["live", "explain", "system"])]
    ablate: bool,
    /// Runs only this setting, by its name in the report; may be given more than once
    #[arg(long, value_name = "SETTING")]
    only: Vec<String>,
    /// Runs only this system; may be given more than once
    #[arg(long, value_name = "SYSTEM")]
    system: Vec<String>,
    /// Runs only what the rows need whose setting and figure contain this text (`Fair, mean JCT
    /// less, PushBox vs NEAT`), and prints where the time of both sides goes and what decides it
    #[arg(long, value_name = "ROW", conflicts_with_all = ["only", "system", "live"])]
    explain: Option<String>,
    /// Between which places flows go in virtual time, in all settings: hosts, or racks as a whole
    /// [default: as in the paper; JobPacker's, Co-scheduler's and Corral's simulators have racks]
    #[arg(long, value_enum, conflicts_with = "live")]
    grain: Option<GrainArg>,
    /// Shares out what finished flows leave only at multiples of this time, such as 100ms, or when
    /// a shuffle begins or a circuit changes its way, as by `simulate --resolution` [default: at
    /// once, which is exact; 50ms with PushBox's trace]
    #[arg(long, value_name = "TIME", conflicts_with = "live")]
    resolution: Option<Span>,
    /// PushBox: the Facebook coflow trace (FB2010-1Hr-150-0.txt), whose coflows are the jobs'
    /// shuffles. JobPacker, Co-scheduler: a SWIM trace from whose rows the jobs are drawn; more
    /// than one are pooled [default: coflow-benchmark/FB2010-1Hr-150-0.txt, or
    /// SWIM/FB-2009_samples_24_times_1hr_0.tsv and _1.tsv, in the folder that HELIOSTAT_TRACES
    /// names; else published percentiles]
    #[arg(long, value_name = "FILE")]
    trace: Vec<PathBuf>,
    /// Draws the jobs from published percentiles, whatever traces there are
    #[arg(long, conflicts_with = "trace")]
    no_trace: bool,
    #[command(flatten)]
    emulated: Emulated,
    #[command(flatten)]
    unprinted: Unprinted,
    /// What is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: DocumentOutput,
    /// Writes everything to this file, every repetition included
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The evaluation on a network that this machine emulates.
#[derive(clap::Args, Clone, Copy, Debug)]
struct Emulated {
    /// Runs the jobs by real TCP on a network of namespaces, and in virtual time beside it: single
    /// jobs, unless --only names others
    #[arg(
        help_heading = "On an emulated network (Hit; needs root)",
        long,
        conflicts_with = "threads"
    )]
    live: bool,
    /// How packets know their lists of switches
    #[arg(
        help_heading = "On an emulated network (Hit; needs root)",
        long,
        value_enum,
        default_value_t,
        requires = "live"
    )]
    mechanism: MechanismArg,
    /// Rates are divided by this, and bytes
    #[arg(help_heading = "On an emulated network (Hit; needs root)", long, value_name = "N", default_value_t = Slower::default().rates, requires = "live", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    slower: u64,
    /// Times are divided by this, and bytes once more
    #[arg(help_heading = "On an emulated network (Hit; needs root)", long, value_name = "N", default_value_t = Slower::default().times, requires = "live", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    shorter: u64,
}

/// Numbers that the papers do not print; without an option, the calibrated one
/// (docs/experiments.md).
#[derive(clap::Args, Clone, Copy, Debug)]
struct Unprinted {
    /// Data a second that a task processes, such as 10MB
    #[arg(help_heading = "Numbers that the papers do not print", long, value_name = "SIZE", value_parser = rate)]
    task_rate: Option<Bytes>,
    /// The same on the paper's testbed: Corral's 210 machines, JobPacker's GENI
    #[arg(help_heading = "Numbers that the papers do not print", long, value_name = "SIZE", value_parser = rate)]
    testbed_rate: Option<Bytes>,
    /// Time in which the jobs of online settings arrive, in per cent of the paper's, such as 3.5
    #[arg(help_heading = "Numbers that the papers do not print", long, value_name = "PERCENT", value_parser = permille)]
    window: Option<u32>,
    /// PushBox: the most bytes of a task that is cut from a port of the trace, such as 4GB; 0B: a
    /// port is a task
    #[arg(help_heading = "Numbers that the papers do not print", long, value_name = "SIZE")]
    port_block: Option<Bytes>,
    /// PushBox: length of the windows of the trace of which a repetition is put together, such as
    /// 60s; 0s: each has the whole trace
    #[arg(help_heading = "Numbers that the papers do not print", long, value_name = "TIME")]
    trace_window: Option<Span>,
    /// Hit-scheduler: the lowest probability, in per cent, with which PNA starts a task on a host
    #[arg(help_heading = "Numbers that the papers do not print", long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(0..=99))]
    p_min: Option<u32>,
}

/// A rate, in bytes a second. A lower one than allowed would give tasks that take days.
fn rate(text: &str) -> Result<Bytes, String> {
    let rate: Bytes = text.parse().map_err(|e: crate::units::ParseUnitError| e.to_string())?;
    if rate < Bytes(1000) { Err("allowed: 1kB a second and more".into()) } else { Ok(rate) }
}

/// Per cent with at most one place after the point, in thousandths.
fn permille(text: &str) -> Result<u32, String> {
    let (whole, tenths) = text.split_once('.').unwrap_or((text, "0"));
    let digits =
        |t: &str| if t.bytes().all(|b| b.is_ascii_digit()) { t.parse::<u32>().ok() } else { None };
    let value = digits(whole)
        .zip(digits(tenths).filter(|_| tenths.len() == 1))
        .and_then(|(w, t)| w.checked_mul(10)?.checked_add(t));
    value
        .filter(|v| (1..=1_000_000).contains(v))
        .ok_or_else(|| "allowed: 0.1 to 100000, with one place after the point".into())
}

/// Runs the subcommand.
///
/// # Errors
/// A run that fails, or files that cannot be written.
pub fn run(args: &Args) -> Result<(), CliError> {
    let paper = match args.paper {
        _ if args.list => return print(&list::listed(args.paper)),
        Some(paper) => paper,
        None => {
            return Err(CliError::Usage(
                "name a paper: heliostat experiment --list names them".into(),
            ));
        }
    };
    if args.ablate && paper != Paper::Joint {
        return Err(CliError::Usage("--ablate leaves out parts of joint; allowed: joint".into()));
    }
    can_write(&args.json)?;
    let repeats = args.repeat.map_or_else(|| paper.repeats(args.quick), |n| n as usize);
    let Unprinted { task_rate, testbed_rate, window, port_block, trace_window, p_min } =
        args.unprinted;
    let free = Assumptions {
        task_rate,
        testbed_rate,
        window_permille: window,
        port_block,
        trace_window,
        p_min,
    };
    let size = Size {
        seed: args.seed.unwrap_or(paper.first_seed()),
        repeats,
        jobs_percent: if args.ablate && args.quick { joint::LOOK_PERCENT } else { 100 },
        thin: args.quick && !args.ablate,
        free,
    };
    let mut experiment = paper.experiment_with(size, &traces(args, paper)?);
    if args.ablate {
        joint::ablate(&mut experiment, args.quick);
    }
    let report = if args.emulated.live {
        emulate(args, paper, experiment, size)?
    } else {
        experiment.only(&args.only, &args.system).map_err(CliError::Usage)?;
        args.explain
            .as_ref()
            .map_or(Ok(()), |row| explain::only(&mut experiment, row))
            .map_err(|e| CliError::Usage(format!("--explain: {e}")))?;
        let grain = args.grain.map_or(Ok(()), |grain| experiment.between(grain.into()));
        grain.map_err(|e| CliError::Usage(format!("--grain: {e}")))?;
        experiment.resolution = args.resolution;
        let (stop, threads, began) = (stopped_by_ctrl_c(), args.threads as usize, Instant::now());
        let outcomes =
            run_all(&experiment, size, threads, &stop, &tell).map_err(CliError::Failed)?;
        say_if_stopped(&stop);
        let report = Report::new(&experiment, &outcomes, began.elapsed().as_secs_f64(), threads);
        if args.explain.is_some() && args.output == DocumentOutput::Table {
            return print(&format!("{}\n", explain::text(&report, &experiment.claims)));
        }
        report
    };
    let json = || tables::json(&report);
    args.json.as_ref().map_or(Ok(()), |file| write_text(file, &json()))?;
    print(&match args.output {
        DocumentOutput::Json => json(),
        DocumentOutput::Csv => exact(&report).csv(),
        output => text(&report, output),
    })
}

/// Runs what the paper ran in Mininet on networks of this machine.
fn emulate(
    args: &Args,
    paper: Paper,
    mut experiment: Experiment,
    size: Size,
) -> Result<Report, CliError> {
    let usual: Vec<String> = paper.live_settings().iter().map(|s| (*s).to_owned()).collect();
    if usual.is_empty() {
        return Err(CliError::Usage(
            "--live: of the evaluations only that of `hit` was made on an emulated network".into(),
        ));
    }
    experiment
        .only(if args.only.is_empty() { &usual } else { &args.only }, &args.system)
        .map_err(CliError::Usage)?;
    if !rights::suffice() {
        return Err(CliError::Failed(format!("--live builds networks: {REMEDY}")));
    }
    log::in_background()?;
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|e| CliError::Failed(format!("start the runtime: {e}")))?;
    let (stop, base) = (Arc::new(AtomicBool::new(false)), ownership::base());
    let (options, slower) = (
        live::options(base.clone(), args.emulated.mechanism.wanted()),
        Slower { rates: args.emulated.slower, times: args.emulated.shorter },
    );
    let name = options.name.clone();
    runtime.spawn(wait_for_signal(
        stop.clone(),
        (base.join(&name), move || ownership::abandon(&base, &name).into_iter().collect()),
    ));
    let (place, began) = (Place { options, slower }, Instant::now());
    let both = live::run(&experiment, size, &place, &stop, &tell).map_err(CliError::Failed)?;
    say_if_stopped(&stop);
    Ok(Report::live(&experiment, &both, slower, began.elapsed().as_secs_f64()))
}

fn tell(p: Progress) {
    let ((done, of), (setting, system, seed)) = (p.done, p.last);
    say!("{done}/{of} {setting}, {system}, seed {seed}: {:.1} s", p.took);
}

fn say_if_stopped(stop: &AtomicBool) {
    if stop.load(Ordering::Relaxed) {
        say!("stopped: the report is that of the runs so far");
    }
}

/// The traces that were named, or that are where they usually are.
fn traces(args: &Args, paper: Paper) -> Result<Traces, CliError> {
    let usual: &[&str] = match paper {
        _ if args.no_trace => &[],
        Paper::Pushbox => &["coflow-benchmark/FB2010-1Hr-150-0.txt"],
        Paper::Jobpacker | Paper::CoScheduler => {
            &["SWIM/FB-2009_samples_24_times_1hr_0.tsv", "SWIM/FB-2009_samples_24_times_1hr_1.tsv"]
        }
        Paper::Corral | Paper::Hit => return Ok(Traces::default()),
        Paper::Joint if !args.trace.is_empty() => {
            return Err(CliError::Usage("joint takes its traces from the folder that HELIOSTAT_TRACES names; leave --trace out".into()));
        }
        Paper::Joint => {
            let one = |paper| traces(args, paper);
            return Ok(Traces {
                coflows: one(Paper::Pushbox)?.coflows,
                jobs: one(Paper::Jobpacker)?.jobs,
            });
        }
    };
    let there = || {
        let folder = std::env::var_os("HELIOSTAT_TRACES").map(PathBuf::from)?;
        Some(usual.iter().map(|f| folder.join(f)).collect::<Vec<_>>())
            .filter(|all| all.iter().all(|f| f.is_file()))
    };
    let files =
        if args.trace.is_empty() { there().unwrap_or_default() } else { args.trace.clone() };
    if files.is_empty() {
        say!("no trace (--trace): the jobs are drawn from published classes or percentiles");
        return Ok(Traces::default());
    }
    let wrong = |file: &Path, e: TraceError| {
        CliError::Invalid(format!("{}:{}:{}: {}", file.display(), e.line, e.column, e.why))
    };
    if paper == Paper::Pushbox {
        let [file] = &files[..] else {
            return Err(CliError::Usage("pushbox takes one --trace".into()));
        };
        let trace = coflow_benchmark::parse(&read_workload(file)?).map_err(|e| wrong(file, e))?;
        return Ok(Traces { coflows: Some(Arc::new(trace)), jobs: None });
    }
    let mut rows = Vec::new();
    for file in &files {
        rows.extend(swim::parse(&read_workload(file)?).map_err(|e| wrong(file, e))?);
    }
    Ok(Traces { coflows: None, jobs: Some(shuffling(rows).into()) })
}

/// The tables, one after another, and why some numbers differ.
fn text(r: &Report, output: DocumentOutput) -> String {
    let draw = |rows: &Rows, first| rows.drawn(output, first, 1);
    let numbers = numbers(r);
    // A row is a sentence, and stays one.
    let mut out = format!("{}\n\n{}\n", draw(&numbers, numbers.header.len()), draw(&means(r), 2));
    for (setting, about) in &r.settings {
        out += &format!("\n{}", tables::wrapped(&format!("{setting}: {about}"), 2));
    }
    if !r.versus.is_empty() {
        out += &format!(
            "\n\n`joint`, and by how much it has more than the best of the others:\n\n{}",
            draw(&versus(r), 2)
        );
    }
    let parts = parts(r);
    if !parts.rows.is_empty() {
        out += &format!(
            "\n\nBy how much `joint` has more without one of its parts:\n\n{}",
            draw(&parts, 2)
        );
    }
    if !r.bounds.is_empty() {
        out += &format!(
            "\n\nWhat no scheduler can be below: floor, the least here, and what that leaves:\n\n{}",
            draw(&bounds(r), 1)
        );
    }
    if let Some(live) = &r.live {
        let Slower { rates, times } = live.slower;
        out += &format!(
            "\n\nOn networks emulated by {}, with rates divided by {rates}, times by {times} and bytes by both; what was measured is multiplied back:\n\n{}",
            live.mechanism,
            draw(&pairs(live), 2)
        );
    }
    out +=
        &format!("\n\n{}\n{}", tables::wrapped(&r.unprinted(), 0), tables::wrapped(&counted(r), 0));
    let differ: Vec<&Row> = r.rows.iter().filter(|w| !w.why.is_empty()).collect();
    if !differ.is_empty() {
        out += "\n\nWhere it differs, what was measured:\n";
    }
    for w in differ {
        let off = w.off.map_or(String::new(), |o| format!(" ({o:+.1} points)"));
        out += &format!(
            "\n{}",
            tables::wrapped(&format!("- {}, {}{off}: {}", w.setting, w.figure, w.why), 2)
        );
    }
    let runs = r.size.repeats;
    let partial = if r.partial { ", stopped before the end" } else { "" };
    let look = if r.size.thin { ", a look" } else { "" };
    out += &format!(
        "\n\n{runs} repetitions{look}, from seed {}, {:.0} s on {} threads{partial}\n",
        r.size.seed, r.took_s, r.threads
    );
    tables::document(out, output)
}

/// How many numbers came out how.
fn counted(r: &Report) -> String {
    let tally = r.tally();
    let all: Vec<String> = tally.iter().map(|(v, n)| format!("{n} {}", v.words())).collect();
    let chosen = r.rows.iter().filter(|w| w.verdict == Verdict::Calibrated).count();
    let of = tally.iter().map(|t| t.1).sum::<usize>();
    format!(
        "Of {of} numbers of the paper: {} ({chosen} more, by which free numbers were chosen, are not counted)",
        all.join(", ")
    )
}

fn numbers(r: &Report) -> Rows {
    let mut rows =
        Rows::new(&["setting", "figure", "paper", "ours", "95% interval", "verdict", "source"]);
    for w in &r.rows {
        let number = |v: f64| format!("{v:.1}{}", w.unit);
        let ours = if w.values.is_empty() { "-".into() } else { number(w.mean) };
        let half = if w.values.is_empty() { "-".into() } else { w.interval() };
        let paper = w.paper.map_or("-".into(), |p| p.words(w.unit));
        rows.rows.push(vec![
            w.setting.into(),
            w.figure.clone(),
            paper,
            ours,
            half,
            w.verdict.words().into(),
            w.source.into(),
        ]);
    }
    rows
}

/// Floors by setting: of each measure the floor, the least that was measured, and what that leaves.
fn bounds(r: &Report) -> Rows {
    let measures =
        [Measure::Makespan, Measure::MeanJct, Measure::MedianJct, Measure::P95Jct, Measure::P99Jct];
    let mut rows = Rows::new(&[
        "setting",
        "makespan",
        "mean JCT",
        "median",
        "95th percentile",
        "99th percentile",
    ]);
    for of in r.bounds.chunk_by(|a, b| a.setting == b.setting) {
        let one = |m| of.iter().find(|b| b.measure == m);
        let cell = |m| {
            one(m).map_or("-".into(), |b| {
                format!("{:.1} of {:.1}s: {:.0}%", b.floor, b.best.1, b.leaves_percent)
            })
        };
        rows.rows
            .push(std::iter::once(of[0].setting.to_owned()).chain(measures.map(cell)).collect());
    }
    rows
}

/// A ratio and half of its interval.
fn percent(e: Option<Estimate>) -> String {
    let half = |e: Estimate| e.half.map_or(String::new(), |h| format!(" +-{h:.1}"));
    e.map_or("-".into(), |e| format!("{:+.1}{}%", e.mean, half(e)))
}

/// `joint` beside the floor, the best published system and the best strong baseline.
fn versus(r: &Report) -> Rows {
    let mut rows = Rows::new(&[
        "setting",
        "figure",
        "bound",
        "joint",
        "best published",
        "against it",
        "best strong baseline",
        "against it",
    ]);
    for v in &r.versus {
        let mut cells = vec![v.setting.to_owned(), name(v.measure).to_owned()];
        cells.extend(
            [v.floor, Some(v.joint)].map(|n| n.map_or("-".into(), |n| shown(v.measure, n))),
        );
        for b in [v.published, v.strong] {
            cells.push(
                b.map_or("-".into(), |b| format!("{} {}", b.system, shown(v.measure, b.mean))),
            );
            cells.push(percent(b.and_then(|b| b.percent)));
        }
        rows.rows.push(cells);
    }
    rows
}

/// `joint` without one of its parts.
fn parts(r: &Report) -> Rows {
    let names: Vec<&str> = WITHOUT.iter().map(|w| w.0).collect();
    let mut rows = Rows::new(&[&["setting", "figure"][..], &names[..]].concat());
    for v in r.versus.iter().filter(|v| !v.without.is_empty()) {
        let of =
            |n: &&str| percent(v.without.iter().find(|b| b.system == *n).and_then(|b| b.percent));
        rows.rows.push(
            [v.setting, name(v.measure)]
                .map(str::to_owned)
                .into_iter()
                .chain(names.iter().map(of))
                .collect(),
        );
    }
    rows
}

/// The emulated network beside virtual time.
fn pairs(live: &Live) -> Rows {
    let mut rows = Rows::new(&["setting", "system", "measured", "simulated", "live", "live more"]);
    for p in &live.pairs {
        let cells = [p.setting, p.system, name(p.measure)].map(str::to_owned).into_iter();
        rows.rows.push(
            cells
                .chain([
                    shown(p.measure, p.simulated),
                    shown(p.measure, p.live),
                    format!("{:+.1}%", p.more_percent),
                ])
                .collect(),
        );
    }
    rows
}

/// The paper's numbers, what no scheduler can be below beside the least that was measured, and the
/// parts of the mean completion time of each system; of `joint` by how many per cent it has more
/// without a part.
fn exact(r: &Report) -> Rows {
    let mut rows = Rows::new(&[
        "setting",
        "figure",
        "unit",
        "paper",
        "mean",
        "half_interval",
        "runs",
        "off",
        "verdict",
        "source",
    ]);
    let number = |v: Option<f64>| v.map_or(String::new(), |v| v.to_string());
    for w in &r.rows {
        rows.rows.push(vec![
            w.setting.into(),
            w.figure.clone(),
            w.unit.trim().into(),
            w.paper.map_or(String::new(), |p| p.words("")),
            number((!w.values.is_empty()).then_some(w.mean)),
            number(if w.is_same() { Some(0.0) } else { w.half }),
            w.values.len().to_string(),
            number(w.off),
            w.verdict.words().into(),
            w.source.into(),
        ]);
    }
    for b in &r.bounds {
        let runs = b.runs.to_string();
        let row = |what: &str, value: f64, source: &str| {
            let figure = format!("{what} {}", name(b.measure));
            let [none, runs, value] = [String::new(), runs.clone(), value.to_string()];
            vec![
                b.setting.into(),
                figure,
                "s".into(),
                none.clone(),
                value,
                none.clone(),
                runs,
                none,
                what.into(),
                source.into(),
            ]
        };
        rows.rows.extend([row("floor", b.floor, ""), row("least", b.best.1, b.best.0)]);
    }
    for m in &r.measured {
        for (part, mean) in m.means.iter().filter(|v| PARTS.contains(&v.0)) {
            let none = String::new;
            rows.rows.push(vec![
                m.setting.into(),
                format!("part {}", name(*part)),
                "s".into(),
                none(),
                mean.to_string(),
                none(),
                m.runs.to_string(),
                none(),
                "part".into(),
                m.system.into(),
            ]);
        }
    }
    for v in &r.versus {
        for (b, e) in v.without.iter().filter_map(|b| Some((b, b.percent?))) {
            let [none, runs] = [String::new(), r.size.repeats.to_string()];
            rows.rows.push(vec![
                v.setting.into(),
                name(v.measure).into(),
                "%".into(),
                none.clone(),
                e.mean.to_string(),
                number(e.half),
                runs,
                none,
                "more without".into(),
                b.system.into(),
            ]);
        }
    }
    rows
}

/// What is behind the comparisons.
fn means(r: &Report) -> Rows {
    use Measure::{
        Computing, Crossing, Makespan, MapTime, MeanCct, MeanJct, MedianJct, OcsShare, ReduceTime,
        RouteLength, ShuffleCost,
    };
    use Measure::{CountedCost, P95Jct, P99Jct, Unfinished, Waiting};
    let shown_ones = match r.paper {
        Paper::Pushbox => {
            [Makespan, MeanJct, MedianJct, P95Jct, P99Jct, MeanCct, Crossing, Waiting, Unfinished]
        }
        Paper::Hit if r.live.is_some() => [
            Makespan,
            MeanJct,
            MapTime,
            ReduceTime,
            MeanCct,
            RouteLength,
            ShuffleCost,
            CountedCost,
            Unfinished,
        ],
        Paper::Hit => [
            Makespan,
            MeanJct,
            MapTime,
            ReduceTime,
            MeanCct,
            RouteLength,
            ShuffleCost,
            Waiting,
            Unfinished,
        ],
        Paper::Joint => [
            Makespan,
            MeanJct,
            MedianJct,
            P95Jct,
            P99Jct,
            MeanCct,
            OcsShare,
            ShuffleCost,
            Unfinished,
        ],
        _ => [
            Makespan, MeanJct, MedianJct, MeanCct, OcsShare, Crossing, Waiting, Computing,
            Unfinished,
        ],
    };
    let mut header = vec!["setting", "system"];
    header.extend(shown_ones.map(name));
    let mut rows = Rows::new(&header);
    for m in r.measured.iter().filter(|m| m.means.iter().any(|v| v.0 == Measure::Makespan)) {
        let of =
            |which| m.means.iter().find(|v| v.0 == which).map_or("-".into(), |v| shown(which, v.1));
        let cells = shown_ones.map(of);
        rows.rows
            .push([m.setting.to_owned(), m.system.to_owned()].into_iter().chain(cells).collect());
    }
    rows
}

fn shown(m: Measure, v: f64) -> String {
    match m {
        Measure::OcsShare | Measure::Crossing | Measure::Waiting => format!("{v:.1}%"),
        Measure::Unfinished => format!("{v:.0}"),
        Measure::RouteLength => format!("{v:.2}"),
        Measure::CountedCost | Measure::Jain => format!("{v:.3}"),
        Measure::ShuffleCost => format!("{v:.1}GB"),
        _ => format!("{v:.1}s"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::experiment::assumptions::Assumptions;
    use crate::experiment::report::Measured;

    #[test]
    fn free_numbers_are_read_with_their_units() {
        let read = ["3.5", "100", "0.1", "0", "x", "3.55", "-1", "+1", ".5", "99999999999"]
            .map(|t| permille(t).ok());
        assert_eq!(read, [Some(35), Some(1000), Some(1), None, None, None, None, None, None, None]);
        assert_eq!(
            (rate("31MB").unwrap(), rate("10").is_err(), rate("fast").is_err()),
            (Bytes(31_000_000), true, true)
        );
    }

    #[test]
    fn every_output_has_every_number_of_the_paper() {
        // Stopped before it begins: all numbers of the paper, none of ours.
        let size = Size {
            seed: 1,
            repeats: 2,
            jobs_percent: 1,
            thin: false,
            free: Assumptions::default(),
        };
        let e = Paper::CoScheduler.experiment(size);
        let outcomes = run_all(&e, size, 2, &AtomicBool::new(true), &|_| {}).unwrap();
        let r = Report::new(&e, &outcomes, 0.0, 2);
        assert!(
            r.partial
                && r.rows.len() == e.claims.len()
                && r.measured.iter().all(|m: &Measured| m.runs == 0)
        );
        let drawn = [DocumentOutput::Table, DocumentOutput::Markdown, DocumentOutput::Latex]
            .map(|output| text(&r, output));
        for text in drawn.into_iter().chain([exact(&r).csv()]) {
            assert!(
                text.matches("not run").count() == r.rows.len() && text.contains("95.2"),
                "{text}"
            );
        }

        let back: serde_json::Value =
            serde_json::from_str(&serde_json::to_string(&r).unwrap()).unwrap();
        assert_eq!(
            (back["rows"].as_array().unwrap().len(), &back["rows"][0]["paper"]["about"]),
            (r.rows.len(), &227.0.into())
        );
    }
}
