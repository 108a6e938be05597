//! `heliostat simulate`: a run in virtual time, with the columns of a live run.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{SignalKind, signal};

use super::progress::Clock;
use super::record::RecordArgs;
use super::workload::Reading;
use super::{CliError, Output, can_write, explain, jobs, limits, print, read_text, repeat, tables, timeline, write_text};
use crate::coflows::network::NetworkKind;
use crate::config;
use crate::fabric::sim::faults::Fault;
use crate::runtime::jobs::report::JobsResult;
use crate::runtime::jobs::simulate::{self as of_jobs, Ask, Course};
use crate::runtime::record::{Pace, Recorder};
use crate::runtime::report::{End, Machine, RunResult};
use crate::runtime::settings::RunPlan;
use crate::runtime::simulate::{How, Progress, bucket, simulate_alone, simulate_watched};
use crate::scheduler::Event;
use crate::scheduler::spec::JobPolicy;
use crate::topology::Topology;
use crate::units::{Span, Time};
use crate::workload::Adjust;
use crate::workload::coflow_benchmark::Local;

/// Runs a workload in virtual time: the same controller, the same policies, a model in the place of the kernel
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The network, such as topologies/hybrid-8x2.yaml
    topology: PathBuf,
    /// How circuits are decided, such as policies/c-through.yaml
    #[arg(long)]
    policy: PathBuf,
    /// What is sent: a workload in any format; of jobs, every shuffle with tasks spread evenly over the hosts. Or the name of a mix
    /// that is drawn from the seed (facebook, coflowsim, jobpacker, co-scheduler, corral-w1, corral-w2, corral-w3)
    #[arg(long, required_unless_present = "jobs", conflicts_with = "jobs")]
    workload: Option<PathBuf>,
    /// Jobs instead: tasks on slots, placed by the policy's `placement` section, and their shuffles. A file of jobs in any format, or
    /// the name of a mix of jobs (jobpacker, co-scheduler, corral-w1, corral-w2, corral-w3)
    #[arg(long, value_name = "FILE|MIX")]
    jobs: Option<PathBuf>,
    /// Decides whatever is drawn: mixes, and tasks of jobs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Repeats the run with so many seeds, this one and those after it, and prints means with their 95% intervals. With jobs the
    /// `seed` of the policy's `placement` goes up with them, too
    #[arg(long, value_name = "N", conflicts_with_all = ["events", "timeline", "record"], value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repeat: Option<u32>,
    /// Repetitions that run at once [default: as many as the machine has cores]
    #[arg(long, value_name = "K", requires = "repeat", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
    /// Something that breaks, and is well again: r2.uplink=down@10s+5s, h3-1.nic=50%@2s, r2.tor=down@1s, eps=down@1s+100ms,
    /// ocs0.in3=stuck@2s, ocs0.out3=dark@2s+5s, ocs0.in3=slow20ms@0s, ocs0.in3=deaf@1s
    #[arg(long, value_name = "WHAT=STATE@TIME[+TIME]")]
    fault: Vec<String>,
    /// A file of such faults, one a line
    #[arg(long, value_name = "FILE")]
    faults: Option<PathBuf>,
    /// Every coflow by itself on an idle network, as if it were the only one
    #[arg(long, conflicts_with_all = ["events", "jobs", "repeat", "until", "fault", "faults", "record"])]
    alone: bool,
    /// Says of each task of this job (its name, or its number as in JSON) why it started when and where it did; a table more, or in JSON
    /// `explained`
    #[arg(long, value_name = "JOB", requires = "jobs", conflicts_with = "repeat")]
    explain: Option<String>,
    #[command(flatten)]
    tuning: jobs::Tuning,
    #[command(flatten)]
    how: jobs::Virtual,
    #[command(flatten)]
    wrong: jobs::Wrong,
    #[command(flatten)]
    reading: Reading,
    /// Ends the run at this time even if coflows or jobs are unfinished, such as 60s
    #[arg(long)]
    until: Option<Span>,
    /// What links carry over time is told in buckets of at least this length, such as 100ms; they grow with a long run, of which there
    /// are at most 256 [default: what the last arrival and the bytes suggest]
    #[arg(long, value_name = "TIME", conflicts_with = "alone")]
    bucket: Option<Span>,
    /// Adds to JSON what the run took on this machine: seconds, and events a second. All else is the same on every machine
    #[arg(long, conflicts_with = "repeat")]
    timing: bool,
    /// What is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    /// Writes the whole result to this file
    #[arg(long)]
    json: Option<PathBuf>,
    /// Writes the controller's event log to this file, one JSON object a line
    #[arg(long)]
    events: Option<PathBuf>,
    #[command(flatten)]
    record: RecordArgs,
}

/// Runs the subcommand.
///
/// # Errors
/// Files that cannot be read or make no sense.
pub fn run(args: &Args) -> Result<(), CliError> {
    if args.jobs.is_none() {
        args.tuning.refuse("--jobs").and(args.how.refuse("--jobs")).and(args.wrong.refuse("--jobs"))?;
    }
    can_write([&args.json, &args.events, &args.tuning.timeline].into_iter().flatten())?;
    let (file, policy_file) = (args.topology.display().to_string(), args.policy.display().to_string());
    let topology = config::read_topology(&read_text(&args.topology)?, &file)?;
    let topology = Arc::new(Topology { loopback: args.reading.local == Local::Ports, ..topology });
    let plan = config::read_policy(&read_text(&args.policy)?, &policy_file)?;
    config::fit(&topology, &plan)?;
    limits::fits_into_memory(&topology, &plan)?;
    match (&args.jobs, &args.workload) {
        (Some(jobs), _) => run_jobs(args, &topology, &plan, jobs),
        (None, Some(workload)) => run_workload(args, &topology, &plan, workload),
        (None, None) => Err(CliError::Usage("either --workload or --jobs".into())),
    }
}

fn run_workload(args: &Args, topology: &Arc<Topology>, plan: &RunPlan, workload: &Path) -> Result<(), CliError> {
    let adjust = Adjust { scale: args.reading.scale.unwrap_or(plan.run.scale), ..args.reading.adjust() };
    let load = |seed| Ok::<_, CliError>(args.reading.draw(workload, topology, seed)?.adjusted(&adjust));
    let faults = args.read_faults(topology, plan)?;
    let how = How { until: args.until(), faults: &faults, bucket: None, record: None };
    if let Some(n) = args.repeat {
        if !args.reading.depends_on_seed(workload)? {
            let why = "has the same coflows for every seed; repeat a mix, or jobs";
            return Err(CliError::Usage(format!("--repeat: {} {why}", workload.display())));
        }
        let one = |seed, stop: &AtomicBool| {
            let load = load(seed)?;
            let how = How { bucket: Some(args.bucket.unwrap_or_else(|| bucket(topology, &load))), ..how };
            let result = simulate_watched(topology, plan, &load, &how, &mut |_| {}, &mut |_| !stop.load(Ordering::Relaxed));
            let result = result.map_err(|e| CliError::Failed(format!("seed {seed}: {e}")))?;
            Ok((result.end != End::Stopped).then_some(result))
        };
        let results = repeat::over_seeds(args.seed, n, args.threads, one)?;
        args.json.as_ref().map_or(Ok(()), |file| write_text(file, &repeat::results_json(&results, tables::run_result)))?;
        return print(&repeat::show(&repeat::figures(&results), args.output));
    }
    let workload = load(args.seed)?;
    if !args.alone {
        limits::ends_in_time(topology, plan, &workload, args.until())?;
    }
    let mut log = String::new();
    let keep = args.events.is_some();
    let mut write = |record| {
        if keep {
            push_line(&mut log, &record);
        }
    };
    let how = How { bucket: Some(args.bucket.unwrap_or_else(|| bucket(topology, &workload))), ..how };
    let (stop, clock) = (stopped_by_ctrl_c(), Clock::start());
    let mut watch = |at: Progress| {
        clock.show(at.now, at.events, &format!("{} coflows open, {} to come", at.open, at.coming));
        !stop.load(Ordering::Relaxed)
    };
    let result = args.record.around(Pace::Virtual, Some(args.seed), |record| {
        let result = if args.alone {
            simulate_alone(topology, plan, &workload, &mut watch)
        } else {
            simulate_watched(topology, plan, &workload, &How { record, ..how }, &mut write, &mut watch)
        };
        result.map_err(|e| CliError::Failed(e.to_string()))
    })?;
    let took = clock.stop(result.end);
    let machine = args.timing.then(|| Machine::new(result.events.unwrap_or(0), took));
    let result = RunResult { machine, ..result };
    print(&tables::run_result(&result, args.output))?;
    if let Some(file) = &args.json {
        write_text(file, &tables::run_result(&result, Output::Json))?;
    }
    args.events.as_ref().map_or(Ok(()), |file| write_text(file, &log))?;
    stuck(result.end, "coflows", result.summary.unfinished)
}

/// What has been printed and written is no whole result, if nothing moved any more.
fn stuck(end: End, what: &str, unfinished: usize) -> Result<(), CliError> {
    let why = || CliError::Failed(format!("{unfinished} {what} did not finish: nothing moves any more"));
    if end == End::Stuck { Err(why()) } else { Ok(()) }
}

fn run_jobs(args: &Args, topology: &Topology, plan: &RunPlan, file: &Path) -> Result<(), CliError> {
    let jobs_by = jobs::scheduling(plan, &args.policy.display().to_string())?;
    let (failures, faults) = (args.tuning.failures(topology)?, args.read_faults(topology, plan)?);
    let run = JobsRun { args, topology, plan, file, jobs_by, failures, faults };
    if let Some(n) = args.repeat {
        let one = |seed, stop: &AtomicBool| {
            let result = run.play(seed, stop, (None, None), &mut |_| {})?;
            Ok((result.end != End::Stopped).then_some(result))
        };
        let results = repeat::over_seeds(args.seed, n, args.threads, one)?;
        args.json.as_ref().map_or(Ok(()), |file| write_text(file, &repeat::results_json(&results, jobs::result)))?;
        return print(&repeat::show(&repeat::figures_of_jobs(&results), args.output));
    }
    let (stop, clock) = (stopped_by_ctrl_c(), Clock::start());
    let watch = |at: of_jobs::Progress| clock.show(at.now, at.events, &format!("{} coflows open, {} jobs to come", at.coflows, at.coming));
    let mut log = String::new();
    let keep = args.events.is_some();
    let result = args.record.around(Pace::Virtual, Some(args.seed), |record| {
        run.play(args.seed, &stop, (Some(&watch), record), &mut |line| {
            if keep {
                push_line(&mut log, &line);
            }
        })
    })?;
    let took = clock.stop(result.end);
    let machine = args.timing.then(|| Machine::new(result.events.unwrap_or(0), took));
    let result = JobsResult { machine, ..result };
    print(&jobs::result(&result, args.output))?;
    if args.explain.is_some() && args.output == Output::Table {
        print(&format!("\n{}\n", explain::table(&result, topology).table()))?;
    }
    if let Some(file) = &args.json {
        write_text(file, &jobs::result(&result, Output::Json))?;
    }
    if let Some(file) = &args.tuning.timeline {
        write_text(file, &timeline::svg(&result, topology))?;
    }
    args.events.as_ref().map_or(Ok(()), |file| write_text(file, &log))?;
    stuck(result.end, "jobs", result.summary.unfinished)
}

/// What runs of the same jobs with several seeds share.
struct JobsRun<'a> {
    args: &'a Args,
    topology: &'a Topology,
    plan: &'a RunPlan,
    file: &'a Path,
    jobs_by: JobPolicy,
    failures: Vec<(Time, Event)>,
    faults: Vec<Fault>,
}

impl JobsRun<'_> {
    /// The run whose jobs, tasks and errors of foresight are drawn from `seed`. Of a repetition, data is placed by a seed of its own.
    fn play(
        &self,
        seed: u64,
        stop: &AtomicBool,
        (watch, record): (Option<&dyn Fn(of_jobs::Progress)>, Option<&Recorder>),
        write: &mut dyn FnMut(of_jobs::Line),
    ) -> Result<JobsResult, CliError> {
        let Self { args, topology, plan, failures, faults, .. } = self;
        let errors = args.wrong.errors(seed);
        let (list, foreseen) = errors.apply(&args.tuning.read(self.file, plan, &args.reading, seed)?);
        let remaining = (errors.remaining_percent > 0).then_some((errors.remaining_percent, seed));
        let bucket = Some(args.bucket.unwrap_or_else(|| of_jobs::bucket(topology, &list)));
        let explain = args.explain.as_ref().map(|job| explain::find(&list, job)).transpose()?;
        let course = Course { foreseen: Some(&foreseen), remaining, stop: Some(stop), bucket, watch, record, explain };
        let mut jobs_by = self.jobs_by.clone();
        jobs_by.settings.grain = args.how.grain(topology, jobs_by.placement.kind());
        jobs_by.placement.common.seed = jobs_by.placement.common.seed.wrapping_add(seed.wrapping_sub(args.seed));
        let ask = Ask { topology, plan, jobs_by: &jobs_by, jobs: &list, failures, faults, until: args.until() };
        of_jobs::simulate_with(&ask, &course, write).map_err(CliError::Failed)
    }
}

fn push_line(log: &mut String, line: &impl serde::Serialize) {
    log.push_str(&serde_json::to_string(line).expect("a record is plain data"));
    log.push('\n');
}

impl Args {
    /// What `--fault` and `--faults` say.
    fn read_faults(&self, topology: &Topology, plan: &RunPlan) -> Result<Vec<Fault>, CliError> {
        let one = |text: &String| config::faults::read_fault(text, topology).map_err(|e| CliError::Usage(format!("--fault {e}")));
        let mut all = self.fault.iter().map(one).collect::<Result<Vec<_>, _>>()?;
        if let Some(file) = &self.faults {
            let list = config::faults::read_faults(&read_text(file)?, &file.display().to_string(), topology);
            all.extend(list.map_err(CliError::Invalid)?);
        }
        if !all.is_empty() && plan.run.network.kind == NetworkKind::Sunflow {
            return Err(CliError::Usage("--fault: `network: sunflow` knows no faults; use a policy with `scheduler: sunflow`".into()));
        }
        Ok(all)
    }

    fn until(&self) -> Option<Time> {
        self.until.map(|s| Time::ZERO + s)
    }
}

/// Becomes true at the first Ctrl-C from here on. A second one ends the process, should the run not look in time.
pub(super) fn stopped_by_ctrl_c() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let (flag, (listens, heard)) = (stop.clone(), std::sync::mpsc::channel());
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            let Ok(mut signals) = signal(SignalKind::interrupt()) else { return };
            let _ = listens.send(());
            if signals.recv().await.is_some() {
                flag.store(true, Ordering::Relaxed);
            }
            if signals.recv().await.is_some() {
                std::process::exit(130);
            }
        });
    });
    // If nobody can listen, Ctrl-C ends the process.
    let _ = heard.recv();
    stop
}
