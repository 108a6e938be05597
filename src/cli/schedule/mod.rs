//! `heliostat schedule`: jobs on the racks of a running daemon, over its REST API.

#[cfg(test)]
#[path = "../../http/rig.rs"]
mod rig;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::caveats::Allow;
use super::client::Where;
use super::numbers::several;
use super::summary::{Shown, ShownOnce};
use super::timeline;
use super::workload::ReadingArgs;
use super::{
    CliError, can_write, interrupt, jobs, machine, origin, print, read_policy, tables, write_text,
};
use crate::api::wire;
use crate::cli::log::{self, say};
use crate::client::board::Reporter;
use crate::client::counters::ControllerCounters;
use crate::client::remote::Remote;
use crate::client::{Client, parse};
use crate::config;
use crate::control::policy::CircuitPolicy;
use crate::placement::Kind;
use crate::placement::decision::PlacementDecision;
use crate::runtime::jobs::live;
use crate::runtime::jobs::report::JobsResult;
use crate::runtime::record::Recorder;
use crate::runtime::report::caveats::Given;
use crate::runtime::report::{FabricCounts, ResultNames, ResultOrigin, RunEnd, RunResult};
use crate::runtime::settings::RunPlan;
use crate::scheduler::SchedulerEvent;
use crate::scheduler::record::SchedulerSnapshot;
use crate::scheduler::spec::JobPolicy;
use crate::topology::Topology;
use crate::workload::jobs::JobList;

/// Runs jobs on the racks of a running daemon: tasks hold slots, shuffles are real TCP between the
/// hosts, circuits come from the daemon
///
/// The scheduler is that of `simulate --jobs`, by the wall clock; it speaks to the daemon over REST
/// only. `--fail` tells it that hosts and racks are gone, as in simulation: their tasks run again
/// elsewhere, and coflows of them are cancelled. The hosts themselves stay up.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The jobs: our YAML, a SWIM trace, TPC-H queries, or the name of shipped ones
    #[arg(long, value_name = "FILE|NAME")]
    workload: PathBuf,
    /// The policy, a file or the name of a shipped one; its `placement` section says where tasks
    /// go. The rest of it is the daemon's business [default: the daemon's own; joint, if that
    /// places no tasks]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    #[command(flatten)]
    place: Where,
    /// Divides all bytes; times stay [default: the policy's scale, or 1]
    #[arg(long, value_name = "K", value_parser = crate::cli::numbers::positive)]
    scale: Option<u64>,
    /// Divides all times: arrivals and how long tasks compute
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = crate::cli::numbers::positive)]
    time_scale: u64,
    /// Decides whatever is drawn of a trace's tasks
    #[arg(long, default_value_t = 1, value_parser = crate::cli::numbers::whole)]
    seed: u64,
    #[command(flatten)]
    tuning: jobs::Tuning,
    #[command(flatten)]
    allow: Allow,
    /// Options that were given and that the result depends on.
    #[arg(skip)]
    pub(super) given: BTreeMap<String, String>,
    #[command(flatten)]
    shown: ShownOnce,
    /// Writes the whole result to this file
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What is run, and where the result goes.
pub(super) struct RemoteJobs<'a> {
    /// The file of the daemon's network, if it is known.
    pub topology: Option<&'a Path>,
    pub client: Arc<Client>,
    pub workload: &'a Path,
    pub policy: Option<&'a Path>,
    pub reading: ReadingArgs,
    pub seed: u64,
    pub tuning: &'a jobs::Tuning,
    pub shown: Shown,
    /// Whether the network asks for more than the machine carries.
    pub forced: bool,
    /// Options that the result depends on.
    pub given: &'a BTreeMap<String, String>,
    pub allow: Allow,
    pub json: Option<&'a Path>,
    pub recorder: Option<&'a Recorder>,
}

/// Runs the subcommand.
///
/// # Errors
/// Bad files, no daemon or one that does not fit, or a run that was cut short.
pub fn run(args: &Args) -> Result<(), CliError> {
    log::in_background()?;
    let stop = Arc::new(AtomicBool::new(false));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|e| CliError::Failed(format!("start the runtime: {e}")))?;
    runtime.spawn(interrupt::wait_for_signal(stop.clone(), (PathBuf::new(), Vec::new)));
    let ask = RemoteJobs {
        topology: None,
        client: Arc::new(args.place.client_to_change()?),
        workload: &args.workload,
        policy: args.policy.as_deref(),
        reading: ReadingArgs {
            scale: args.scale,
            time_scale: args.time_scale,
            ..ReadingArgs::default()
        },
        seed: args.seed,
        tuning: &args.tuning,
        shown: args.shown.into(),
        forced: false,
        given: &args.given,
        allow: args.allow,
        json: args.json.as_deref(),
        recorder: None,
    };
    carry(&ask, &stop)
}

/// Runs jobs, and prints and writes what came of them.
///
/// # Errors
/// As [`run()`].
pub(super) fn carry(ask: &RemoteJobs, stop: &AtomicBool) -> Result<(), CliError> {
    can_write([ask.json, ask.tuning.timeline.as_deref()].into_iter().flatten())?;
    ask.tuning.timeline.as_deref().map_or(Ok(()), super::can_draw)?;
    let client = &ask.client;
    let topology: wire::Topology = parse(&client.get("/api/v1/topology")?)?;
    let topology = Topology::try_from(&topology)
        .map_err(|why| CliError::Failed(format!("the daemon's network: {why}")))?;
    let topology = Arc::new(topology);
    let theirs = config::read_policy(&client.get("/api/v1/policy")?, "the daemon's policy")?;
    let (plan, file) = chosen(ask.policy, &theirs)?;
    let jobs_by = jobs::scheduling(&plan, &file)?;
    if ask.policy.is_none() && jobs_by.placement.kind() == Kind::External {
        let why = "the daemon's policy names a program, which is started only from a file of yours";
        return Err(CliError::Usage(format!("{why}: give it with --policy")));
    }
    fits(&topology, &jobs_by, (&plan.policy, &theirs.policy), &file)?;
    let list = ask.tuning.read(ask.workload, (&plan, &topology), &ask.reading, ask.seed)?;
    let failures = ask.tuning.failures(&topology)?;
    let what = live::LiveJobs {
        topology: &topology,
        jobs_by: &jobs_by,
        elephant: plan.policy.elephant_threshold,
        jobs: &list,
        failures: &failures,
    };
    let origin = origin::here_and_now(&origin::of(ask.topology, ask.policy, Some(ask.workload)));
    // The daemon sets circuits by its own policy, and tasks are placed by this one.
    let settings = config::settings(&RunPlan { jobs: plan.jobs.clone(), ..theirs.clone() });
    let origin = ResultOrigin { options: ask.given.clone(), settings, ..origin };
    let machine = machine::MachineWatch::start();
    let (result, ended) =
        play(client, &what, (&plan.policy, &theirs.policy), (stop, ask.recorder))?;
    let machine = Some(if ask.topology.is_some() { machine.end() } else { machine.facts() });
    let result = JobsResult { origin, machine, forced: ask.forced, ..result };
    let result = result.judged(&Given {
        faults: failures.iter().filter(|f| is_failure(&f.1)).count() as u64,
        ..Given::default()
    });
    print(&jobs::result(&result, ask.shown))?;
    if let Some(file) = ask.json {
        write_text(file, &tables::json(&result))?;
    }
    let timeline = ask.tuning.timeline.as_deref();
    let drawn = timeline.map_or(Ok(()), |file| timeline::write(&result, &topology, file));
    // Why the run broke says more than why its picture cannot be written.
    ended.and(drawn)?;
    if stop.load(Relaxed) && result.summary.unfinished > 0 {
        return Err(CliError::Failed(
            "interrupted; what had finished by then is printed above, the rest is cancelled".into(),
        ));
    }
    ask.allow.accept(&result.policy, &result.caveats)
}

/// The policy that places tasks, and what it is called in messages: a file, else the daemon's, else
/// a shipped one with the daemon's thresholds, which a line says.
fn chosen(policy: Option<&Path>, theirs: &RunPlan) -> Result<(RunPlan, String), CliError> {
    if let Some(file) = policy {
        return Ok((read_policy(file)?, file.display().to_string()));
    }
    if theirs.jobs.is_some() {
        return Ok((theirs.clone(), "the daemon's policy".into()));
    }
    let ours = jobs::DEFAULT_POLICY;
    let placing = read_policy(Path::new(ours))?.jobs;
    say!("the daemon's policy {} places no tasks; they are placed by {ours}", theirs.policy.name);
    Ok((RunPlan { jobs: placing, ..theirs.clone() }, ours.into()))
}

/// Whether this is word of a failure, and not that it is over.
fn is_failure(event: &SchedulerEvent) -> bool {
    matches!(event, SchedulerEvent::HostFailed(_) | SchedulerEvent::RackFailed(_))
}

/// Whether the daemon's network is the one that the placement policy is meant for, and its circuits
/// go by the same threshold.
fn fits(
    topology: &Topology,
    jobs_by: &JobPolicy,
    (policy, theirs): (&CircuitPolicy, &CircuitPolicy),
    file: &str,
) -> Result<(), CliError> {
    let meant = jobs_by.placement.network(topology);
    let uplink = |t: &Topology| t.racks.iter().map(|r| r.uplink).min().unwrap_or_default();
    if meant.racks != topology.racks || meant.planes != topology.planes {
        let what = format!(
            "{} racks with an EPS uplink of {} each and no circuits",
            meant.rack_count(),
            uplink(&meant)
        );
        let has = format!("{} planes and uplinks of {}", topology.planes.len(), uplink(topology));
        return Err(CliError::Invalid(format!(
            "{file}: policy {} is meant for {what}; the daemon's network {} has {has}. Start a daemon on a topology of that kind",
            policy.name, topology.name
        )));
    }
    let (ours, other) = (policy.elephant_threshold, theirs.elephant_threshold);
    if ours != other {
        tracing::warn!(
            "{file} places tasks by an elephant threshold of {ours}, the daemon ({}) sets circuits by {other}",
            theirs.name
        );
    }
    Ok(())
}

/// The run itself: the result, and why it ended early if it did.
fn play(
    client: &Arc<Client>,
    ask: &live::LiveJobs,
    (policy, theirs): (&CircuitPolicy, &CircuitPolicy),
    (stop, recorder): (&AtomicBool, Option<&Recorder>),
) -> Result<(JobsResult, Result<(), CliError>), CliError> {
    let (topology, list) = (ask.topology, ask.jobs);
    let before = ControllerCounters::read(client)?;
    let mut remote = Remote::new(client.clone())?;
    let mut progress = ScheduleProgress::new(&policy.name, list.jobs.len());
    let mut reporter = Reporter::new(
        client.clone(),
        &list.name,
        topology.hosts.iter().map(|h| u64::from(h.slots)).sum(),
    );
    let mut watch = |s: &SchedulerSnapshot, decisions: Vec<PlacementDecision>| {
        progress.show(s);
        reporter.tell(s, decisions);
    };
    let outcome =
        live::run(ask, recorder, &mut remote, stop, &mut watch).map_err(CliError::Failed)?;
    reporter.finish(&outcome.end);
    progress.done();
    let mut ended = match outcome.broken {
        Some(why) => Err(remote.lost().map_or(CliError::Failed(why), Into::into)),
        None => Ok(()),
    };
    if let Err(e) = remote.close()
        && ended.is_ok()
    {
        ended = Err(e.into());
    }
    let end = outcome.end.now;
    // A daemon that is gone tells nothing more; what it told before still counts.
    let after = ControllerCounters::settled(client).and_then(|c| remote.note_ended().map(|()| c));
    let counted = match after {
        Ok(after) => after.since(&before, end),
        Err(e) => {
            ended = ended.and(Err(e.into()));
            FabricCounts { ended: end, ..FabricCounts::default() }
        }
    };
    let utilisation = match before.utilisation_since(client) {
        Ok(u) => Some(u),
        Err(e) => {
            ended = ended.and(Err(e.into()));
            None
        }
    };
    let coflows = remote.coflows(topology);
    let of = ResultNames {
        mechanism: before.mechanism(),
        topology: &topology.name,
        policy: &theirs.name,
        workload: &list.name,
    };
    let network = RunResult::new(of, coflows, counted, remote.received());
    let end = if stop.load(Relaxed) { RunEnd::Stopped } else { RunEnd::Finished };
    let network = RunResult { end, zero: Some(before.at()), utilisation, ..network };
    Ok((
        JobsResult::new(with_all(outcome.end, list), &outcome.timeline, topology, "host", network),
        ended,
    ))
}

/// Jobs that had not arrived when the run ended count as unfinished.
fn with_all(mut end: SchedulerSnapshot, list: &JobList) -> SchedulerSnapshot {
    let missing = list.jobs.iter().skip(end.jobs.len());
    end.jobs.extend(missing.map(crate::scheduler::record::JobRecord::unseen));
    end
}

/// Progress on stderr: a line that changes on a terminal, a line every two seconds elsewhere.
struct ScheduleProgress {
    name: String,
    jobs: usize,
    bar: Option<ProgressBar>,
    printed: Instant,
}

impl ScheduleProgress {
    fn new(name: &str, jobs: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template(
                "{prefix} [{elapsed}] {bar:30} {pos}/{len} jobs; {msg}",
            )
            .expect("a valid template");
            ProgressBar::new(jobs as u64).with_style(style).with_prefix(name.to_owned())
        });
        Self { name: name.into(), jobs, bar, printed: Instant::now() }
    }

    fn show(&mut self, s: &SchedulerSnapshot) {
        let done = s.counters.jobs_finished;
        let (tasks, coflows) =
            (several(s.computing as usize, "running task"), several(s.coflows, "coflow"));
        let tasks = format!("{tasks}, {} waiting for bytes; {coflows} on the way", s.fetching);
        match &self.bar {
            Some(bar) => {
                bar.set_position(done);
                bar.set_message(tasks);
            }
            None if self.printed.elapsed() >= Duration::from_secs(2) => {
                self.printed = Instant::now();
                say!("{}: {done}/{} jobs; {tasks}", self.name, self.jobs);
            }
            None => {}
        }
    }

    fn done(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
