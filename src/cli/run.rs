//! `heliostat run`: build a network on this machine, control its circuits, and carry a workload
//! over it.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use progress::LiveProgress;
use service::ServiceManager;
use up::{explain, no_api, start};
use watch::PolicyFile;

use super::caveats::{Allow, say_taken, say_unplaced};
use super::changes::KeyChanges;
use super::log::{self, say};
use super::numbers::{self, several};
use super::record::RecordArgs;
use super::summary::Shown;
use super::workload::ReadingArgs;
use super::{
    CliError, attach, can_write, files, interrupt, jobs, limits, machine, origin, read_policy_with,
    read_topology_with, schedule, user_namespace,
};
use crate::api;
use crate::circuits::external::ProgramAt;
use crate::config::{self, SimulationLoad};
use crate::control::policy::{CircuitPolicy, SchedulerKind};
use crate::kernel::ownership::{self, Owned};
use crate::kernel::scale::Capacity;
use crate::kernel::{Mechanism, rights, sys};
use crate::runtime::emulation::EmulationOptions;
use crate::runtime::record::{Pace, Recorder};
use crate::runtime::report::caveats::Given;
use crate::runtime::report::{ResultOrigin, RunResult};
use crate::runtime::settings::RunPlan;
use crate::topology::Topology;
use crate::units::Span;
use crate::workload::coflow_benchmark::LocalFlows;
use crate::workload::{Adjust, Workload};

mod banner;
mod compare;
mod detach;
mod events;
mod journal;
mod lacking;
mod progress;
mod report;
mod service;
mod up;
mod watch;

/// The policy of a run that names none, and has no jobs: the shipped one under which every
/// program's traffic gets circuits.
const DEFAULT_POLICY: &str = "c-through";
/// The patience of runs that have an end.
const PATIENCE: Span = Span::secs(30);

/// Builds the network, controls its circuits, and carries a workload over it; without one, stays up
/// until it is stopped
///
/// After Ctrl-C a network without a workload ends with exit code 0, and one whose coflows or jobs
/// were unfinished with 1.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The topology: a file (YAML), or the name of a shipped one, such as hybrid-8x2.
    topology: PathBuf,
    /// The policy: a file (YAML), or the name of a shipped one. Several policies carry the workload
    /// one after another, and are compared with the first [default: c-through, under which all
    /// traffic may ride circuits; with --schedule joint, which places tasks and sets circuits for
    /// them].
    #[arg(long, value_name = "FILE|NAME")]
    policy: Vec<PathBuf>,
    /// The workload: our YAML, a trace of the coflow-benchmark, or the name of a shipped workload.
    /// Its coflows are sent as real TCP between the hosts.
    #[arg(help_heading = "Workload", long, value_name = "FILE|NAME")]
    workload: Option<PathBuf>,
    /// Carries the workload N times under each policy, and prints means with their 95 % intervals.
    #[arg(help_heading = "Workload", long, value_name = "N", requires = "workload", conflicts_with_all = ["record", "baseline"], value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: Option<u32>,
    #[command(flatten)]
    pub(super) changes: KeyChanges,
    #[command(flatten)]
    reading: ReadingArgs,
    /// Jobs to run on the network (YAML, SWIM or TPC-H), as `heliostat schedule` runs them: over
    /// the API of this very run.
    #[arg(help_heading = "Jobs", long, value_name = "FILE", conflicts_with = "workload")]
    schedule: Option<PathBuf>,
    #[command(flatten)]
    tuning: jobs::Tuning,
    /// Runs the workload with circuits off first, and compares.
    #[arg(help_heading = "Workload", long, requires = "workload", conflicts_with = "record")]
    baseline: bool,
    /// How circuits are carried.
    #[arg(help_heading = "Network", long, value_enum, default_value_t)]
    mechanism: MechanismArg,
    /// Name of the fabric and prefix of its namespaces. Default: the topology's name.
    #[arg(help_heading = "Network", long)]
    name: Option<String>,
    /// Controls nodes that Mininet made: the name that mininet/hybrid.py printed, or its file.
    #[arg(help_heading = "Network", long, value_name = "NAME|FILE")]
    attach: Option<String>,
    /// Where the REST API listens; port 0 for any.
    #[arg(help_heading = "API", long, value_name = "ADDR", default_value = "127.0.0.1:7447", value_parser = numbers::address)]
    listen: SocketAddr,
    /// The token that a caller must show; needed when the API listens beyond this machine.
    #[arg(help_heading = "API", long, env = "HELIOSTAT_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// A file with that token, for everything; it goes before --token. Other users cannot read the
    /// file, unlike the command line.
    #[arg(help_heading = "API", long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A file with a token for requests that change nothing.
    #[arg(help_heading = "API", long, value_name = "FILE")]
    read_token_file: Option<PathBuf>,
    /// Keeps the event log and the outcome of posted coflows in this directory: after a restart
    /// clients find both, and no number is given twice.
    #[arg(help_heading = "API", long, value_name = "DIR", conflicts_with_all = ["workload", "baseline", "repeat"])]
    journal: Option<PathBuf>,
    /// Runs in the background, and returns when the network is up: `heliostat ps`, `logs`, `stop`.
    #[arg(help_heading = "Network", short, long)]
    detach: bool,
    /// This process is the one that was put in the background: the same command line and this
    /// option.
    #[arg(long, hide = true)]
    pub(super) detached: bool,
    /// Runs although this machine cannot carry the rates of this network; the result says so.
    #[arg(help_heading = "Network", long)]
    force: bool,
    #[command(flatten)]
    allow: Allow,
    /// Options that were given and that the result depends on.
    #[arg(skip)]
    pub(super) given: BTreeMap<String, String>,
    #[command(flatten)]
    shown: Shown,
    /// How long a coflow may wait without moving, whatever the cause is; then it is broken off.
    /// Waiting for a circuit, or behind better priorities, does not count [default: 30s with
    /// --workload or --schedule, else no limit].
    #[arg(help_heading = "Workload", long, value_name = "TIME")]
    patience: Option<Span>,
    /// Looks at the policy file twice a second, and decides by it when it was written again; a bad
    /// one changes nothing.
    #[arg(long, requires = "policy", conflicts_with_all = ["workload", "schedule", "set"])]
    watch: bool,
    /// Also writes everything that was measured to a file; of several policies or repetitions, a
    /// list of results.
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also writes the event log to this file, a line of JSON an event, for `heliostat plot`. What
    /// it holds is dropped, but with --journal the log goes on behind it. At SIGUSR1 the file is
    /// opened by its name again, for logrotate.
    #[arg(help_heading = "Output", long, value_name = "FILE", conflicts_with_all = ["baseline", "repeat"])]
    events: Option<PathBuf>,
    #[command(flatten)]
    record: RecordArgs,
}

/// How circuits are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum MechanismArg {
    /// `timed` where bpf() is allowed, else `netlink`.
    #[default]
    Auto,
    /// BPF programs that compare each circuit's times with their own clock.
    Timed,
    /// Filters that a thread replaces by netlink.
    Netlink,
}

impl MechanismArg {
    /// The mechanism that is asked for; `None`: the best that the kernel allows.
    pub fn wanted(self) -> Option<Mechanism> {
        match self {
            Self::Auto => None,
            Self::Timed => Some(Mechanism::Timed),
            Self::Netlink => Some(Mechanism::Netlink),
        }
    }
}

/// What a run needs, read and checked.
struct CheckedRun {
    topology: Arc<Topology>,
    run: RunPlan,
    workload: Option<Workload>,
    /// The policies after the first, each with the workload as it scales it.
    others: Vec<(RunPlan, Workload)>,
    forced: bool,
    options: EmulationOptions,
    /// Where results come from: of the first policy, then of the others.
    origins: Vec<ResultOrigin>,
    /// Where the API listens over TCP, and which tokens it wants there.
    api: api::ServerOptions,
    /// Takes what the machines hear and want.
    recorder: Option<Recorder>,
    /// Changes when the event log is to be opened by its name again.
    reopen: interrupt::Reopen,
    /// The API's address, taken before anything is built and before a user namespace is entered:
    /// its sockets stay outside, where other commands can reach them.
    listener: Option<TcpListener>,
}

/// Runs the subcommand.
///
/// # Errors
/// Bad files, a kernel that refuses, a name that is taken, or a run that was interrupted.
pub fn run(args: &Args) -> Result<(), CliError> {
    if args.schedule.is_none() {
        args.tuning.refuse("--schedule")?;
    }
    if args.policy.len() > 1 && (args.baseline || args.events.is_some() || args.record.is_some()) {
        return Err(CliError::Usage(
            "--baseline, --events and --record are about one policy; to compare with no circuits, add --policy eps-only".into(),
        ));
    }
    can_write([&args.json, &args.events, &args.tuning.timeline].into_iter().flatten())?;
    args.tuning.timeline.as_deref().map_or(Ok(()), super::can_draw)?;
    if args.detach && !args.detached {
        let name = args.name.clone().map_or_else(
            || read_topology_with(&args.topology, &args.changes.all).map(|t| t.name),
            Ok,
        )?;
        check_name(&name)?;
        return detach::start(&name);
    }
    // Before the file is read: what is written while the network is built is seen afterwards.
    let watch =
        args.policy.first().filter(|_| args.watch).map(|file| PolicyFile::new(file)).transpose()?;
    // A signal that is meant for the event log must not end a daemon that is starting and has no
    // handler yet.
    sys::ignore_signal(libc::SIGUSR1);
    let plan = prepare(args)?;
    log::in_background()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|e| CliError::Failed(format!("start the runtime: {e}")))?;
    let stop = Arc::new(AtomicBool::new(false));
    let (base, name) = (plan.options.base.clone(), plan.options.name.clone());
    runtime.spawn(interrupt::reopen_at_signal(plan.reopen.clone()));
    let guest = plan.options.attach.is_some().then(|| "what was set in Mininet's nodes".to_owned());
    let abandon = (base.join(&name), move || {
        ownership::abandon(&base, &name).into_iter().chain(guest).collect()
    });
    runtime.spawn(interrupt::wait_for_signal(stop.clone(), abandon));
    args.record.around(Pace::Live, None, |recorder| {
        let plan = CheckedRun { recorder: recorder.cloned(), ..plan };
        match (&args.schedule, &plan.workload) {
            (Some(jobs), _) => schedule_jobs(args, &plan, jobs, &stop),
            (None, Some(workload)) if args.policy.len() > 1 || args.repeat.is_some() => {
                compare::compare(args, &plan, workload, &stop)
            }
            (None, Some(workload)) => carry(args, &plan, workload, &stop),
            (None, None) => serve(args, &plan, watch, &stop),
        }
    })
}

/// Carries a workload, without circuits before if that was asked for.
fn carry(
    args: &Args,
    plan: &CheckedRun,
    workload: &Workload,
    stop: &AtomicBool,
) -> Result<(), CliError> {
    let mut results = vec![];
    if args.baseline {
        let off = CircuitPolicy {
            scheduler: SchedulerKind::EpsOnly,
            name: "eps-only".into(),
            ..plan.run.policy.clone()
        };
        results.push(one(args, plan, (&plan.run.under(off), workload), &plan.origins[0], stop)?);
    }
    if !stop.load(Relaxed) {
        results.push(one(args, plan, (&plan.run, workload), &plan.origins[0], stop)?);
    }
    if results.is_empty() {
        return Err(interrupted_at_once());
    }
    report::report(args, &results)?;
    if stop.load(Relaxed) {
        let only_off = args.baseline && results.len() == 1;
        let off = "interrupted in the run with circuits off, which --baseline makes first: the result is of that run alone, so far as it came";
        let on = "interrupted; what had finished by then is printed above";
        return Err(CliError::Failed(if only_off { off } else { on }.into()));
    }
    let last = results.last().expect("at least one run");
    match last.summary.unfinished {
        0 => args.allow.accept(&last.policy, &last.caveats),
        n => {
            let why = last.coflows.iter().find_map(|c| c.lost.as_ref());
            let why =
                why.map_or_else(String::new, |why| format!("; the first that was lost: {why}"));
            Err(CliError::Failed(format!("{} did not finish{why}", several(n, "coflow"))))
        }
    }
}

fn interrupted_at_once() -> CliError {
    CliError::Failed("interrupted before any run had ended".into())
}

fn prepare(args: &Args) -> Result<CheckedRun, CliError> {
    let changes = &args.changes.all;
    let mut topology = read_topology_with(&args.topology, changes)?;
    let default = if args.schedule.is_some() { jobs::DEFAULT_POLICY } else { DEFAULT_POLICY };
    let file = args.policy.first().map_or(Path::new(default), |file| file);
    let run = read_policy_with(file, changes)?;
    if args.schedule.is_some() {
        // Here, what is built is what the placement policy is meant for.
        topology =
            jobs::scheduling(&run, &file.display().to_string())?.placement.network(&topology);
        if !rights::suffice() {
            let why = "without root the network is in a namespace of its own, which the scheduler cannot enter";
            return Err(CliError::Failed(format!(
                "--schedule: {why}; run as root, or `heliostat schedule` beside `heliostat run`"
            )));
        }
    }
    config::fit(&topology, &run)?;
    check_program(&run)?;
    limits::fits_into_memory(&topology, &run, SimulationLoad::default())?;
    for line in config::advice(&topology, &run) {
        tracing::warn!("{line}");
    }
    if args.reading.local == LocalFlows::Ports {
        return Err(CliError::Usage(
            "--local ports: in an emulation, what stays in a host crosses no interface; it is for `simulate`".into(),
        ));
    }
    let policies =
        args.policy.iter().map(|p| Some(p.as_path())).chain(args.policy.is_empty().then_some(None));
    let origins: Vec<ResultOrigin> =
        policies.map(|p| origin::of(Some(&args.topology), p, args.workload.as_deref())).collect();
    let adjust = |run: &RunPlan| Adjust {
        scale: args.reading.scale.unwrap_or(run.run.scale),
        ..args.reading.adjust()
    };
    let read = args.workload.as_ref().map(|f| args.reading.read(f, &topology)).transpose()?;
    args.workload.iter().zip(&read).for_each(|(file, w)| say_taken(file, &w.taken));
    let others = args.policy.iter().skip(1).map(|file| {
        let workload = read.clone().ok_or_else(|| {
            CliError::Usage("--policy: several policies are compared on a --workload".into())
        })?;
        let run = read_policy_with(file, changes)?;
        config::fit(&topology, &run)?;
        let workload = workload.adjusted(&adjust(&run));
        limits::ends_live(&topology, &workload)?;
        Ok((run, workload))
    });
    let others = others.collect::<Result<Vec<(RunPlan, Workload)>, CliError>>()?;
    let plans = std::iter::once(&run).chain(others.iter().map(|o| &o.0));
    if read.is_some() {
        say_unplaced(plans.clone());
    }
    let of = |(origin, plan): (ResultOrigin, &RunPlan)| ResultOrigin {
        options: args.given.clone(),
        settings: config::settings(plan),
        ..origin
    };
    let origins = origins.into_iter().zip(plans).map(of).collect();
    let workload = read.map(|w| w.adjusted(&adjust(&run)));
    workload.as_ref().map_or(Ok(()), |w| limits::ends_live(&topology, w))?;
    if args.attach.is_some() {
        check_attach()?;
    }
    let attach = args.attach.as_deref().map(|a| attach::read(a, &topology)).transpose()?;
    let base = ownership::base();
    let exceeded = Capacity::of_this_machine(&base).exceeded_by(&topology);
    if let Some(why) = exceeded.as_ref().filter(|_| topology.eps.graph().is_some()) {
        tracing::warn!("{why}; while all send at once, links are slower than they claim");
    } else if let Some(why) = exceeded.as_ref().filter(|_| !args.force) {
        return Err(CliError::Failed(format!(
            "{why}; circuits would be slower than they claim. Run it all the same with --force"
        )));
    }
    let name = args.name.clone().unwrap_or_else(|| topology.name.clone());
    check_name(&name)?;
    Owned::free(&base, &name).map_err(|e| explain(&e.into()))?;
    let api = listen(args)?;
    let listener = api::reserve(&api).map_err(no_api)?;
    user_namespace::enter_unless_root()?;
    lacking::check_links(&args.topology, &topology)?;
    let patience =
        args.patience.or((args.workload.is_some() || args.schedule.is_some()).then_some(PATIENCE));
    let options =
        EmulationOptions { name, mechanism: args.mechanism.wanted(), base, attach, patience };
    Ok(CheckedRun {
        topology: Arc::new(topology),
        run,
        workload,
        others,
        forced: exceeded.is_some(),
        options,
        origins,
        api,
        recorder: None,
        reopen: interrupt::Reopen::default(),
        listener,
    })
}

/// Whether a program at an address can be asked from where the network will be.
fn check_program(run: &RunPlan) -> Result<(), CliError> {
    match run.run.program.as_ref().map(|p| &p.at) {
        Some(ProgramAt::Url(url)) if !rights::are_of_the_machine() => {
            let why = format!(
                "without root the network is in a namespace of its own, from which {url} cannot be reached"
            );
            Err(CliError::Failed(format!(
                "external: {why}; run as root, or name the program by `command`"
            )))
        }
        _ => Ok(()),
    }
}

/// Whether this process may control Mininet's nodes.
fn check_attach() -> Result<(), CliError> {
    let missing = [rights::missing(), rights::missing_to_attach()].concat();
    let lacks = || {
        format!(
            "--attach: Mininet's nodes are root's; run as root: this process lacks {}",
            rights::names(&missing)
        )
    };
    if missing.is_empty() { Ok(()) } else { Err(CliError::Failed(lacks())) }
}

fn check_name(name: &str) -> Result<(), CliError> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty()
        || name.len() > 32
        || !name.chars().all(good)
        || !name.starts_with(|c: char| c.is_ascii_lowercase())
    {
        return Err(CliError::Usage(format!(
            "--name {name}: a letter, then letters, digits and `-` in lower case, at most 32"
        )));
    }
    Ok(())
}

/// Where the API listens over TCP, and its tokens.
fn listen(args: &Args) -> Result<api::ServerOptions, CliError> {
    let token = files::token(args.token_file.as_deref(), args.token.as_deref())?;
    let read_token = files::token(args.read_token_file.as_deref(), None)?;
    if (args.schedule.is_some() || args.watch) && read_token.is_some() && token.is_none() {
        let why = "--schedule and --watch change things over the API; beside --read-token-file they need --token-file";
        return Err(CliError::Usage(why.into()));
    }
    Ok(api::ServerOptions {
        listen: Some(args.listen),
        token,
        read_token,
        ..api::ServerOptions::default()
    })
}

fn one(
    args: &Args,
    plan: &CheckedRun,
    (run, workload): (&RunPlan, &Workload),
    origin: &ResultOrigin,
    stop: &AtomicBool,
) -> Result<RunResult, CliError> {
    let running = start(args, plan, run)?;
    let mut progress = LiveProgress::new(&run.policy.name, workload.coflows.len());
    let origin = origin::here_and_now(origin);
    let machine = machine::MachineWatch::start();
    let mut result = running.e.run(workload, stop, |s| progress.show(s));
    progress.done();
    (result.forced, result.origin, result.machine) = (plan.forced, origin, Some(machine.end()));
    let result = result.judged(&Given { taken: workload.taken.clone(), faults: 0 });
    let lost = running.lost();
    running.end()?;
    lost.map_or(Ok(result), |why| Err(CliError::Failed(why)))
}

/// Runs jobs over the API of the emulation that is started for them.
fn schedule_jobs(
    args: &Args,
    plan: &CheckedRun,
    jobs: &Path,
    stop: &AtomicBool,
) -> Result<(), CliError> {
    let running = start(args, plan, &plan.run)?;
    let manager = ServiceManager::up(&running.e.live.handle);
    let client = Arc::new(running.place(plan).client()?);
    let ask = schedule::RemoteJobs {
        topology: Some(&args.topology),
        client: client.clone(),
        workload: jobs,
        policy: args.policy.first().map(PathBuf::as_path),
        reading: args.reading.clone(),
        seed: 1,
        tuning: &args.tuning,
        shown: args.shown,
        forced: plan.forced,
        given: &args.given,
        allow: args.allow,
        json: args.json.as_deref(),
        recorder: plan.recorder.as_ref(),
    };
    // The jobs' run hears only of the API, which outlives a controller that has died, and does not
    // know of an API that has died itself.
    let (ends, over) = (AtomicBool::new(stop.load(Relaxed)), AtomicBool::new(false));
    let ended = std::thread::scope(|s| {
        s.spawn(|| {
            while !over.load(Relaxed) && !ends.load(Relaxed) {
                std::thread::sleep(LOOK);
                let lost = running.lost();
                lost.iter().for_each(|why| client.give_up(why));
                ends.store(stop.load(Relaxed) || lost.is_some(), Relaxed);
            }
        });
        let ended = schedule::carry(&ask, &ends);
        over.store(true, Relaxed);
        ended
    });
    // A thread that dies shuts its connections before it has ended.
    let until = Instant::now() + DYING;
    let unreachable = matches!(ended, Err(CliError::Unreachable(_) | CliError::TimedOut(_)));
    let mut lost = running.lost();
    while unreachable && lost.is_none() && Instant::now() < until {
        std::thread::sleep(LOOK);
        lost = running.lost();
    }
    drop(manager);
    running.end()?;
    lost.map_or(ended, |why| Err(CliError::Failed(why)))
}

/// Time that a thread which has panicked may take to end.
const DYING: Duration = Duration::from_secs(2);

/// Time between two looks at a run: whether it was asked to stop, and whether everything in it
/// still works.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// Stays up until a signal, or until something that it needs has died.
fn serve(
    args: &Args,
    plan: &CheckedRun,
    mut watch: Option<PolicyFile>,
    stop: &AtomicBool,
) -> Result<(), CliError> {
    let running = start(args, plan, &plan.run)?;
    let (name, url) = (&plan.options.name, running.server.url());
    say!("{}", banner::up(name, args.detached, &url));
    let manager = ServiceManager::up(&running.e.live.handle);
    let daemon = running.place(plan);
    let mut why = None;
    for tick in 1_u32.. {
        std::thread::sleep(LOOK);
        if let Some(watch) = watch.as_mut().filter(|_| tick.is_multiple_of(10)) {
            watch.look(&daemon);
        }
        // Attached nodes are many, and looked at once a second.
        why = if tick.is_multiple_of(20) { running.lost() } else { running.e.died() };
        if stop.load(Relaxed) || why.is_some() {
            break;
        }
    }
    drop(manager);
    running.end()?;
    why.map_or(Ok(()), |why| Err(CliError::Failed(why)))
}
