//! `heliostat simulate`: a run in virtual time, with the columns of a live run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::builder::ArgPredicate;

use self::play::{JobsListeners, ReadyRun, RunLoad};
use super::caveats::{Allow, say_caveats_of_input, say_taken, say_unplaced};
use super::changes::KeyChanges;
use super::interrupt::stopped_by_ctrl_c;
use super::numbers::several;
use super::progress::RunClock;
use super::record::RecordArgs;
use super::summary::Shown;
use super::timeline;
use super::workload::ReadingArgs;
use super::{
    CliError, OutputFormat, can_write, event_log, explain, jobs, outcome, print, read_text,
    read_topology_with, rows, study, tables, write_text,
};
use crate::coflows::network::{NetworkKind, Within};
use crate::config;
use crate::runtime::jobs::report::JobsResult;
use crate::runtime::jobs::simulate as of_jobs;
use crate::runtime::record::Pace;
use crate::runtime::report::{ResultNames, RunEnd, RunMachine, RunResult};
use crate::runtime::rows::{ResultRow, RowSink};
use crate::runtime::settings::RunPlan;
use crate::runtime::simulate::Progress;
use crate::runtime::study::AnyResult;
use crate::sim::faults::Fault;
use crate::topology::Topology;
use crate::units::{Span, Time};
use crate::workload::coflow_benchmark::LocalFlows;

mod play;
#[cfg(test)]
mod tests;

/// Runs a workload in virtual time: the same controller, the same policies, a model instead of the
/// kernel
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The network: a file, or the name of a shipped one, such as hybrid-8x2
    topology: PathBuf,
    /// How circuits are decided: a file, or the name of a shipped one, such as c-through. Several
    /// policies run the same workload, and are compared with the first [default: with --jobs,
    /// joint]
    #[arg(
        long,
        required_unless_present = "jobs",
        default_value_if("jobs", ArgPredicate::IsPresent, jobs::DEFAULT_POLICY),
        value_name = "FILE|NAME"
    )]
    policy: Vec<PathBuf>,
    /// What is sent: a workload in any format, a file or the name of a shipped one; of jobs, every
    /// shuffle with tasks spread evenly over the hosts. Or the name of a mix that is drawn from the
    /// seed; `heliostat list workloads` names them all
    #[arg(
        long,
        value_name = "FILE|NAME",
        required_unless_present = "jobs",
        conflicts_with = "jobs"
    )]
    workload: Option<PathBuf>,
    /// Jobs instead: tasks on slots, placed by the policy's `placement` section, and their
    /// shuffles. A file of jobs in any format, or the name of a shipped one or of a mix of jobs
    #[arg(help_heading = "Jobs", long, value_name = "FILE|NAME")]
    jobs: Option<PathBuf>,
    /// Decides whatever is drawn: mixes, and tasks of jobs
    #[arg(long, default_value_t = 1, value_parser = crate::cli::numbers::whole)]
    seed: u64,
    /// Repeats the run with N seeds, this one and those after it, and prints means with their 95%
    /// intervals. With jobs the `seed` of the policy's `placement` goes up with them, too
    #[arg(long, value_name = "N", conflicts_with_all = ["events", "timeline", "record"], value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repeat: Option<u32>,
    /// Runs at once, of several policies or repetitions [default: as many as the machine has cores]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
    /// The `seed` of the policy's `placement`, which places data, goes up with --seed from 1 on, as
    /// it does in repetitions
    #[arg(help_heading = "Jobs", long, requires = "jobs", conflicts_with = "repeat")]
    place_by_seed: bool,
    /// Tasks whose stage has an output write it before they are done, as to HDFS: a copy goes to a
    /// host of another rack, and from there one to a neighbour. Else output costs nothing
    #[arg(help_heading = "Jobs", long, requires = "jobs")]
    write_output: bool,
    /// Something that breaks, and is well again: r2.uplink=down@10s+5s, h3-1.nic=50%@2s,
    /// r2.tor=down@1s, eps=down@1s+100ms, ocs0.in3=stuck@2s, ocs0.out3=dark@2s+5s,
    /// ocs0.in3=slow20ms@0s, ocs0.in3=deaf@1s
    #[arg(help_heading = "Faults", long, value_name = "WHAT=STATE@TIME[+TIME]")]
    fault: Vec<String>,
    /// A file of faults, one a line
    #[arg(help_heading = "Faults", long, value_name = "FILE")]
    faults: Option<PathBuf>,
    /// Runs every coflow alone on an idle network
    #[arg(long, conflicts_with_all = ["events", "jobs", "repeat", "until", "fault", "faults", "record"])]
    alone: bool,
    /// Says of each task of this job (its name, or its number as in JSON) why it started when and
    /// where it did; tables more, or in JSON `explained` and `decisions`
    #[arg(
        help_heading = "Jobs",
        long,
        value_name = "JOB",
        requires = "jobs",
        conflicts_with = "repeat"
    )]
    explain: Option<String>,
    #[command(flatten)]
    pub(super) changes: KeyChanges,
    #[command(flatten)]
    tuning: jobs::Tuning,
    #[command(flatten)]
    how: jobs::VirtualArgs,
    #[command(flatten)]
    wrong: jobs::ForesightErrors,
    #[command(flatten)]
    reading: ReadingArgs,
    /// Ends the run at this time even if coflows or jobs are unfinished, such as 60s
    #[arg(long)]
    until: Option<Span>,
    /// Shares out what finished flows leave only at multiples of this time, such as 100ms, or when
    /// a coflow comes or a circuit changes its way. Large runs under max-min take much less time,
    /// for CCTs that are a little longer. Under orders of coflows they are much longer [default: at
    /// once, which is exact]
    #[arg(long, value_name = "TIME", conflicts_with = "alone")]
    resolution: Option<Span>,
    /// Tells what links carry over time in buckets of at least this length, such as 100ms. They
    /// grow with a long run, of which there are at most 256 [default: what the last arrival and the
    /// bytes suggest]
    #[arg(help_heading = "Output", long, value_name = "TIME", conflicts_with = "alone")]
    bucket: Option<Span>,
    /// Adds to JSON what the run took on this machine, seconds and events a second, and to `origin`
    /// the machine's name and the date. All else is the same on every machine
    #[arg(help_heading = "Output", long, conflicts_with = "repeat")]
    timing: bool,
    #[command(flatten)]
    allow: Allow,
    /// Options that were given and that the result depends on.
    #[arg(skip)]
    pub(super) given: BTreeMap<String, String>,
    #[command(flatten)]
    shown: Shown,
    /// Writes the whole result to this file; of several policies or repetitions, a list of them
    #[arg(help_heading = "Output", long)]
    json: Option<PathBuf>,
    /// Writes what ends into this directory as it does, a row (a JSON object) a line: coflows.jsonl
    /// and, of jobs, jobs.jsonl and timeline.jsonl. At the end result.json with the sums, which are
    /// all that is printed. Memory does not grow with what has ended. `compare`, `plot` and
    /// `report` read DIR as a result
    #[arg(help_heading = "Output", long, value_name = "DIR", conflicts_with_all = ["json", "timeline", "repeat", "alone"])]
    rows: Option<PathBuf>,
    /// Writes the controller's event log to this file, one JSON object a line
    #[arg(help_heading = "Output", long)]
    events: Option<PathBuf>,
    #[command(flatten)]
    record: RecordArgs,
}

/// Runs the subcommand.
///
/// # Errors
/// Files that cannot be read or make no sense.
pub fn run(args: &Args) -> Result<(), CliError> {
    args.check()?;
    can_write([&args.json, &args.events, &args.tuning.timeline].into_iter().flatten())?;
    args.tuning.timeline.as_deref().map_or(Ok(()), super::can_draw)?;
    let topology = args.read_topology()?;
    if args.policy.len() > 1 || args.repeat.is_some() {
        return compare(args, &topology);
    }
    let play = ReadyRun::new(args, &topology, &args.policy[0])?;
    match &play.load {
        RunLoad::Coflows { .. } => {
            say_unplaced([&play.plan]);
            run_workload(args, &play)
        }
        RunLoad::Jobs { .. } => run_jobs(args, &play),
    }
}

/// The result of the first policy with the seed of `args`, without a word; `None` if it was
/// stopped.
///
/// # Errors
/// As [`run()`], and a run in which the fallback decided, unless that is allowed.
pub(super) fn quietly(args: &Args, stop: &AtomicBool) -> Result<Option<AnyResult>, CliError> {
    args.check()?;
    let topology = args.read_topology()?;
    let play = ReadyRun::new(args, &topology, &args.policy[0])?;
    let result = play.quietly(args.seed, stop)?;
    result.as_ref().map_or(Ok(()), |r| args.allow.accept(&play.plan.policy.name, r.caveats()))?;
    Ok(result)
}

/// Every policy with every seed, and the policies held against the first.
fn compare(args: &Args, topology: &Arc<Topology>) -> Result<(), CliError> {
    let plays = args
        .policy
        .iter()
        .map(|p| ReadyRun::new(args, topology, p))
        .collect::<Result<Vec<ReadyRun>, _>>()?;
    let seeds = args.repeat.unwrap_or(1);
    if let RunLoad::Coflows { what, .. } = &plays[0].load {
        if args.repeat.is_some() && !args.reading.depends_on_seed(what)? {
            let why = "has the same coflows for every seed; repeat a mix, or jobs";
            return Err(CliError::Usage(format!("--repeat: {} {why}", what.display())));
        }
        say_unplaced(plays.iter().map(|p| &p.plan));
    }
    let one = |policy: usize, k: u64, stop: &AtomicBool| {
        plays[policy].quietly(args.seed.wrapping_add(k), stop)
    };
    let names =
        study::labels(args.policy.iter().zip(plays.iter().map(|p| p.plan.policy.name.as_str())));
    let results = study::run_all(&names, seeds, args.threads, one)?;
    args.json.as_ref().map_or(Ok(()), |file| write_text(file, &study::results_json(&results)))?;
    let first = results.iter().flatten().next();
    let what = args.workload.as_deref().or(args.jobs.as_deref());
    what.zip(first).into_iter().for_each(|(file, r)| say_caveats_of_input(file, r.caveats()));
    print(&study::show(&[study::of(&names, &results)], args.shown.output))?;
    let (ended, all) = (results.iter().map(Vec::len).sum::<usize>(), names.len() * seeds as usize);
    if ended < all {
        Err(CliError::Failed(format!(
            "interrupted; {ended} of {} had ended, and count",
            several(all, "run")
        )))
    } else {
        study::accept(args.allow, &names, &results)
    }
}

fn run_workload(args: &Args, play: &ReadyRun) -> Result<(), CliError> {
    let workload = play.workload(args.seed)?;
    args.workload.iter().for_each(|file| say_taken(file, &workload.taken));
    let mut log = String::new();
    let keep = args.events.is_some();
    let mut write = |record| {
        if keep {
            log.push_str(&event_log::of_network(&record));
        }
    };
    let (stop, clock) = (stopped_by_ctrl_c(), RunClock::start());
    let mut watch = |at: Progress| {
        clock.show(
            at.now,
            at.events,
            &format!("{} open, {} to come", several(at.open, "coflow"), at.coming),
        );
        !stop.load(Ordering::Relaxed)
    };
    let writer = args.writer(false, &stop)?;
    let rows = |row: ResultRow| writer.iter().for_each(|w| w.put(row));
    let rows: Option<RowSink> = args.has_no_lists().then_some(&rows);
    let around = |record: Option<&_>| {
        play.coflows(args.seed, &workload, (record, rows), &mut write, &mut watch)
    };
    let result = args.record.around(Pace::Virtual, Some(args.seed), around)?;
    let took = clock.stop(result.end);
    let machine = args.timing.then(|| RunMachine::new(result.events.unwrap_or(0), took));
    let result = RunResult { machine, ..result };
    writer.map_or(Ok(()), |w| w.end(&result))?;
    print(&outcome::run_result(&result, args.shown()))?;
    if let Some(file) = &args.json {
        write_text(file, &tables::json(&result))?;
    }
    if let Some(file) = &args.events {
        let of = ResultNames {
            mechanism: &result.mechanism,
            topology: &result.topology,
            policy: &result.policy,
            workload: &result.workload,
        };
        log.insert_str(
            0,
            &event_log::EventLogHead::new(event_log::LogClock::Virtual, &result.origin, of).line(),
        );
        write_text(file, &log)?;
    }
    whole(result.end, "coflow", result.summary.unfinished)?;
    args.allow.accept(&result.policy, &result.caveats)
}

/// What has been printed and written is no whole result, if nothing moved any more or Ctrl-C ended
/// it. That --until ended it was asked for.
fn whole(end: RunEnd, what: &str, unfinished: usize) -> Result<(), CliError> {
    let why = match end {
        RunEnd::Stuck => "nothing moves any more, or not before virtual time ends",
        RunEnd::Stopped if unfinished > 0 => "interrupted",
        _ => return Ok(()),
    };
    Err(CliError::Failed(format!("{} did not finish: {why}", several(unfinished, what))))
}

fn run_jobs(args: &Args, play: &ReadyRun) -> Result<(), CliError> {
    let (stop, clock) = (stopped_by_ctrl_c(), RunClock::start());
    let open = |coflows, coming| {
        format!("{} open, {} to come", several(coflows, "coflow"), several(coming, "job"))
    };
    let watch =
        |at: of_jobs::JobsProgress| clock.show(at.now, at.events, &open(at.coflows, at.coming));
    let mut log = String::new();
    let keep = args.events.is_some();
    let writer = args.writer(true, &stop)?;
    let rows = |row: ResultRow| writer.iter().for_each(|w| w.put(row));
    let rows: Option<RowSink> = args.has_no_lists().then_some(&rows);
    let result = args.record.around(Pace::Virtual, Some(args.seed), |record| {
        play.jobs(
            args.seed,
            &stop,
            JobsListeners { watch: Some(&watch), record, rows },
            &mut |line| {
                if keep {
                    log.push_str(&event_log::of_jobs(&line));
                }
            },
        )
    })?;
    let took = clock.stop(result.end);
    let machine = args.timing.then(|| RunMachine::new(result.events.unwrap_or(0), took));
    let result = JobsResult { machine, ..result };
    writer.map_or(Ok(()), |w| w.end(&result))?;
    print(&jobs::result(&result, args.shown()))?;
    if args.explain.is_some() && args.shown.output == OutputFormat::Table {
        print(&format!("\n{}\n{}", explain::table(&result).table(), explain::decisions(&result)))?;
    }
    if let Some(file) = &args.json {
        write_text(file, &tables::json(&result))?;
    }
    if let Some(file) = &args.events {
        let of = ResultNames {
            mechanism: &result.mechanism,
            topology: &result.topology,
            policy: &result.policy,
            workload: &result.workload,
        };
        log.insert_str(
            0,
            &event_log::EventLogHead::new(event_log::LogClock::Virtual, &result.origin, of).line(),
        );
        write_text(file, &log)?;
    }
    if let Some(file) = &args.tuning.timeline {
        timeline::write(&result, play.topology, file)?;
    }
    whole(result.end, "job", result.summary.unfinished)?;
    args.allow.accept(&result.policy, &result.caveats)
}

impl Args {
    /// Refuses options that do not go together, in ways that the parser does not see.
    fn check(&self) -> Result<(), CliError> {
        if self.jobs.is_none() {
            self.tuning
                .refuse("--jobs")
                .and(self.how.refuse("--jobs"))
                .and(self.wrong.refuse("--jobs"))?;
        }
        if self.policy.len() == 1 {
            return Ok(());
        }
        let of_one = [
            ("--events", self.events.is_some()),
            ("--timeline", self.tuning.timeline.is_some()),
            ("--record", self.record.is_some()),
            ("--rows", self.rows.is_some()),
            ("--explain", self.explain.is_some()),
            ("--timing", self.timing),
        ];
        let given = of_one.iter().find(|o| o.1).map(|o| o.0);
        given.map_or(Ok(()), |option| {
            Err(CliError::Usage(format!("{option} is about one run; give one --policy with it")))
        })
    }

    /// Writes rows, if that is asked for.
    fn writer<'a>(
        &'a self,
        of_jobs: bool,
        stop: &'a AtomicBool,
    ) -> Result<Option<rows::RowsWriter<'a>>, CliError> {
        self.rows
            .as_ref()
            .map(|directory| rows::RowsWriter::create(directory, of_jobs, stop))
            .transpose()
    }

    /// Whether nothing reads the lists of the result: what has ended need not be kept.
    fn has_no_lists(&self) -> bool {
        // What is explained names jobs.
        let reads = self.json.is_some()
            || self.tuning.timeline.is_some()
            || self.alone
            || self.explain.is_some();
        self.rows.is_some() || self.shown.summary && !reads
    }

    /// What is printed: of rows that are written elsewhere, the sums.
    fn shown(&self) -> Shown {
        Shown { summary: self.shown.summary || self.rows.is_some(), ..self.shown }
    }

    fn read_topology(&self) -> Result<Arc<Topology>, CliError> {
        let topology = read_topology_with(&self.topology, &self.changes.all)?;
        Ok(Arc::new(Topology { loopback: self.reading.local == LocalFlows::Ports, ..topology }))
    }

    /// What `--fault` and `--faults` say.
    fn read_faults(&self, topology: &Topology, plan: &RunPlan) -> Result<Vec<Fault>, CliError> {
        let one = |text: &String| {
            config::faults::read_fault(text, topology)
                .map_err(|e| CliError::Usage(format!("--fault {e}")))
        };
        let mut all = self.fault.iter().map(one).collect::<Result<Vec<_>, _>>()?;
        if let Some(file) = &self.faults {
            let list = config::faults::read_faults(
                &read_text(file)?,
                &file.display().to_string(),
                topology,
            );
            all.extend(list.map_err(CliError::Invalid)?);
        }
        if !all.is_empty() && plan.run.network.kind == NetworkKind::Sunflow {
            return Err(CliError::Usage("--fault: `network: sunflow` knows no faults; use a policy with `scheduler: sunflow`".into()));
        }
        if !all.is_empty() && plan.run.network.within == Within::Sums {
            return Err(CliError::Usage(
                "--fault: `within: sums` knows no faults; use a policy with another `within`"
                    .into(),
            ));
        }
        Ok(all)
    }

    /// Refuses a resolution where rates do not follow from which flows there are.
    fn check_resolution(&self, plan: &RunPlan) -> Result<(), CliError> {
        if self.resolution() > Span::ZERO && plan.run.network.kind == NetworkKind::Sunflow {
            let why = "`network: sunflow` reserves circuits, whose rates no end of a flow changes; leave it out";
            return Err(CliError::Usage(format!("--resolution: {why}")));
        }
        Ok(())
    }

    /// How coarsely ends of flows are noticed; zero: at once.
    fn resolution(&self) -> Span {
        self.resolution.unwrap_or(Span::ZERO)
    }

    fn until(&self) -> Option<Time> {
        self.until.map(|s| Time::ZERO + s)
    }
}
