//! `heliostat experiment`: a paper's evaluation, each of its numbers beside ours.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

mod explain;
mod list;
mod printed;

use super::interrupt::{stopped_by_ctrl_c, wait_for_signal};
use super::jobs::GrainArg;
use super::log::{self, say};
use super::run::MechanismArg;
use super::tables;
use super::user_namespace::REMEDY;
use super::{CliError, DocumentOutput, can_write, print, read_workload, write_text};
use crate::experiment::assumptions::Assumptions;
use crate::experiment::joint;
use crate::experiment::live::{self, EmulationSetup, Slower};
use crate::experiment::report::ExperimentReport;
use crate::experiment::runs::{ExperimentProgress, run as run_all};
use crate::experiment::setting::shuffling;
use crate::experiment::{Experiment, Paper, Size, Traces};
use crate::kernel::{ownership, rights};
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
    /// a shuffle begins or a circuit changes its way. [default: at once, which is exact; 50ms with
    /// PushBox's trace]
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
    emulated: EmulatedArgs,
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
struct EmulatedArgs {
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
        let report =
            ExperimentReport::new(&experiment, &outcomes, began.elapsed().as_secs_f64(), threads);
        if args.explain.is_some() && args.output == DocumentOutput::Table {
            return print(&format!("{}\n", explain::text(&report, &experiment.claims)));
        }
        report
    };
    let json = || tables::json(&report);
    args.json.as_ref().map_or(Ok(()), |file| write_text(file, &json()))?;
    print(&match args.output {
        DocumentOutput::Json => json(),
        DocumentOutput::Csv => printed::exact(&report).csv(),
        output => printed::text(&report, output),
    })
}

/// Runs what the paper ran in Mininet on networks of this machine.
fn emulate(
    args: &Args,
    paper: Paper,
    mut experiment: Experiment,
    size: Size,
) -> Result<ExperimentReport, CliError> {
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
    let (place, began) = (EmulationSetup { options, slower }, Instant::now());
    let both = live::run(&experiment, size, &place, &stop, &tell).map_err(CliError::Failed)?;
    say_if_stopped(&stop);
    Ok(ExperimentReport::live(&experiment, &both, slower, began.elapsed().as_secs_f64()))
}

fn tell(p: ExperimentProgress) {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
