//! `heliostat spark`: an application of Apache Spark in the hosts of a network, its shuffles over
//! circuits.
//!
//! The network is `heliostat run` in a process of its own. The driver and one executor a host are
//! processes in the hosts' namespaces, without master and workers. Spark's side of it is the
//! plug-in in `spark/` (`plugin`).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use serde::Deserialize as _;
use tokio::signal::unix::{SignalKind, signal};

use super::changes::KeyChanges;
use super::log::say;
use super::{
    CliError, can_write, files, print, read_policy_with, read_topology_with, running, write_text,
};
use crate::api::wire;
use crate::coflows::elephants::Admit;
use crate::fabric::PORTS;
use crate::kernel::ownership::{self, FabricNote};
use crate::runtime::open;
use crate::units::Bytes;
use crate::workload::spark_log::{self, SparkLog};
use crate::{client, config};

mod classes;
mod network;
mod plugin;
mod result;
mod shown;
mod submit;

use network::SparkNetwork;
use plugin::Spark;
use shown::SparkOutcome;

/// The policy of a run that names none.
const DEFAULT_POLICY: &str = "declared";
/// The most bytes of Spark's own log of events that are read.
const MOST: u64 = 1 << 30;
/// The directory of Spark's own log of events, and the name of that log.
const EVENTS: &str = "events";
/// Where it says what is written of warnings, in the temporary directory.
const LOG4J: &str = "log4j2.properties";
/// Options of all JVMs. Many share few processors: a small compiler and collector take less of them
/// while they start. One that cannot map the archive of classes says nothing, and loads them.
const JAVA: &str = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss512k -Xlog:cds*=off \
                    -Djava.net.preferIPv4Stack=true";
/// How often it is looked whether a process is up, or has ended.
const LOOK: Duration = Duration::from_millis(50);

/// Runs an application of Apache Spark in the hosts of a network, its shuffles over circuits
///
/// The driver runs in the first host, and an executor in every host. `--` and the application with
/// its arguments come last. Spark and a JDK are not installed by it.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Example: heliostat spark hybrid-4x2 --baseline --python spark-env/bin/python -- app.py 100"
)]
pub struct Args {
    /// The topology: a file (YAML), or the name of a shipped one
    #[arg(required_unless_present_any = ["jar", "network"])]
    topology: Option<PathBuf>,
    /// Runs on this network instead, which is up and stays up; several applications may at once
    #[arg(long, value_name = "NAME", conflicts_with_all = ["topology", "policy", "baseline", "set", "name"])]
    network: Option<String>,
    /// The policy: a file (YAML), or the name of a shipped one; it must admit all traffic, or name
    /// ports, since Spark marks none
    #[arg(long, value_name = "FILE|NAME", default_value = DEFAULT_POLICY)]
    policy: PathBuf,
    /// What Spark and the controller say to each other
    #[arg(long, value_enum, default_value_t)]
    mode: Mode,
    /// Runs the application with circuits off first, and compares
    #[arg(long)]
    baseline: bool,
    #[command(flatten)]
    changes: KeyChanges,
    /// Name of the network [default: the topology's]
    #[arg(long)]
    name: Option<String>,
    /// Executors, each in a host of its own, rack by rack in turn [default: one in every host]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    executors: Option<u32>,
    /// Tasks that an executor runs at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    cores: u32,
    /// Memory of an executor; Spark takes 450 MiB at least
    #[arg(long, value_name = "SIZE", default_value = "504MB")]
    memory: Bytes,
    /// The Python in which pyspark is installed [default: $PYSPARK_PYTHON, or python3]
    #[arg(long, value_name = "PROGRAM")]
    python: Option<PathBuf>,
    /// A setting of Spark; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    conf: Vec<String>,
    /// Also writes what became of jobs, tasks and shuffles to a file, which `report` and `plot`
    /// read
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Keeps what the network, the driver and the executors logged in this directory
    #[arg(long, value_name = "DIR")]
    logs: Option<PathBuf>,
    /// Only writes the plug-in, for a Spark cluster of your own
    #[arg(long, value_name = "FILE", conflicts_with_all = ["topology", "baseline", "app"])]
    jar: Option<PathBuf>,
    /// The application and its arguments, after `--`, as spark-submit takes them
    #[arg(last = true, required_unless_present = "jar", value_name = "APP")]
    app: Vec<OsString>,
}

/// What Spark and the controller say to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Nothing: circuits by the policy's own measure of demand
    Off,
    /// Spark declares each shuffle as a coflow, with the racks where its tasks run
    Declare,
    /// The controller says in which racks the tasks that read a shuffle run
    #[default]
    Place,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Declare => "declare",
            Self::Place => "place",
        }
    }
}

/// Runs the subcommand.
///
/// # Errors
/// Spark or a JDK is missing, a network that does not come up, or an application that fails.
pub fn run(args: &Args) -> Result<(), CliError> {
    can_write(args.json.iter())?;
    if let Some(to) = &args.jar {
        let jar = Spark::find(args.python.as_deref())?.plugin()?;
        return fs::copy(&jar, to).map(drop).map_err(|e| files::failed(to, &e));
    }
    let words = args.app.iter().map(|a| a.to_string_lossy());
    let mut options = words.take_while(|a| !a.ends_with(".py"));
    if options.any(|a| a.starts_with("--driver-class-path")) {
        return Err(CliError::Usage(
            "--driver-class-path hides the plug-in from the driver; say it as a setting: \
             --conf spark.driver.extraClassPath=PATH before `--`"
                .into(),
        ));
    }
    let place = args
        .network
        .as_ref()
        .map_or_else(|| TargetNetwork::new(args), |name| TargetNetwork::up(name))?;
    let declared = place.port.is_some() && args.mode != Mode::Off;
    if place.admit != Admit::All && !declared {
        return Err(CliError::Invalid(format!(
            "the policy {} admits marked traffic only, and Spark marks none; take one with \
             `elephants: {{admit: all}}`, or --set elephants.admit=all; or, unless the mode is off, \
             --set elephants.port=7080",
            place.policy
        )));
    }
    let hosts = place.hosts(args.executors)?;
    let spark = Spark::find(args.python.as_deref())?;
    let jar = spark.plugin()?;
    let classes = classes::archive(&spark, &jar, JAVA)
        .inspect_err(|why| note(&format!("no archive of Spark's classes, {why}")))
        .ok();
    let classes = classes.as_deref();
    let stop = Arc::new(AtomicBool::new(false));
    listen(&stop)?;
    let mut outcomes = vec![];
    for (mode, circuits) in
        args.baseline.then_some((Mode::Off, false)).into_iter().chain([(args.mode, true)])
    {
        let (spark, jar, place) = (&spark, &*jar, &place);
        let plan = SparkRun { args, spark, jar, classes, hosts, mode, place, circuits };
        outcomes.push(one(&plan, &stop)?);
        if stop.load(Relaxed) || outcomes.iter().any(|o| o.failed.is_some()) {
            break;
        }
    }
    print(&shown::tables(&outcomes))?;
    if let Some(json) = &args.json {
        let all: Vec<_> = outcomes.iter().map(SparkOutcome::written).collect();
        write_text(json, &super::tables::json_list(&all))?;
    }
    if stop.load(Relaxed) {
        return Err(CliError::Failed(
            "interrupted; what had ended by then is printed above".into(),
        ));
    }
    outcomes.into_iter().find_map(|o| o.failed).map_or(Ok(()), |why| Err(CliError::Failed(why)))
}

/// Where an application runs.
struct TargetNetwork {
    /// The network's name.
    name: String,
    /// Its policy's name.
    policy: String,
    /// Which traffic the policy lets onto circuits.
    admit: Admit,
    /// The policy's `elephants.port`: packets from these TCP ports need no mark to use circuits.
    port: Option<u16>,
    /// Names of its hosts, the first of every rack, then the second of every rack, and so on.
    hosts: Vec<String>,
    /// The network, if it is up already.
    up: Option<FabricNote>,
}

impl TargetNetwork {
    /// A network of its own.
    ///
    /// # Errors
    /// Files that cannot be read, or do not fit each other.
    fn new(args: &Args) -> Result<Self, CliError> {
        let file = args.topology.as_deref().unwrap_or(Path::new(""));
        let topology = read_topology_with(file, &args.changes.all)?;
        let policy = read_policy_with(&args.policy, &args.changes.all)?;
        config::fit(&topology, &policy)?;
        let hosts = topology.hosts.iter().map(|h| (h.rack.0, topology.host_name(h.id)));
        Ok(Self {
            name: args.name.clone().unwrap_or_else(|| topology.name.clone()),
            admit: policy.run.admit,
            port: policy.run.port,
            policy: policy.policy.name,
            hosts: rack_by_rack(hosts),
            up: None,
        })
    }

    /// A network that is up.
    ///
    /// # Errors
    /// There is none of this name, or it does not answer.
    fn up(name: &str) -> Result<Self, CliError> {
        let note = running::choose(Some(name))?;
        let client = network::client(&note);
        let topology: wire::Topology = client::parse(&client.get("/api/v1/topology")?)?;
        let policy: serde_json::Value = client::parse(&client.get("/api/v1/policy")?)?;
        let elephants = &policy["elephants"];
        let unreadable = |e| CliError::Failed(format!("the policy of {name}: {e}"));
        let admit = Admit::deserialize(&elephants["admit"]).map_err(unreadable)?;
        let port = Option::deserialize(&elephants["port"]).map_err(unreadable)?;
        Ok(Self {
            name: name.into(),
            policy: policy["name"].as_str().unwrap_or_default().into(),
            admit,
            port,
            hosts: rack_by_rack(topology.hosts.into_iter().map(|h| (h.rack, h.name))),
            up: Some(note),
        })
    }

    /// The hosts that get an executor.
    fn hosts(&self, executors: Option<u32>) -> Result<&[String], CliError> {
        let n = executors.map_or(self.hosts.len(), |n| n as usize);
        self.hosts.get(..n).ok_or_else(|| {
            CliError::Usage(format!(
                "--executors {n}: {} has {} hosts, and a host has one executor",
                self.name,
                self.hosts.len()
            ))
        })
    }
}

/// Hosts of a list that goes rack by rack: the first of every rack, then the second of every rack,
/// and so on.
fn rack_by_rack(hosts: impl Iterator<Item = (u32, String)>) -> Vec<String> {
    let mut seen = BTreeMap::<u32, u32>::new();
    let mut all: Vec<_> = hosts
        .map(|(rack, name)| {
            let before = seen.entry(rack).or_default();
            *before += 1;
            (*before, rack, name)
        })
        .collect();
    all.sort_unstable();
    all.into_iter().map(|h| h.2).collect()
}

/// Has `stop` become true at the first signal that asks to end. At the second this process ends at
/// once; the kernel then signals the network and Spark.
fn listen(stop: &Arc<AtomicBool>) -> Result<(), CliError> {
    let failed = |e: std::io::Error| CliError::Failed(format!("listen to signals: {e}"));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let entered = runtime.enter();
    let kinds = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::quit(),
        SignalKind::hangup(),
    ];
    let (asked, mut heard) = tokio::sync::mpsc::channel(1);
    for kind in kinds {
        let (mut signals, asked) = (signal(kind).map_err(failed)?, asked.clone());
        runtime.spawn(async move {
            while signals.recv().await.is_some() && asked.send(()).await.is_ok() {}
        });
    }
    drop(entered);
    let stop = stop.clone();
    std::thread::spawn(move || {
        runtime.block_on(async {
            heard.recv().await;
            stop.store(true, Relaxed);
            note("stopping; ask again to stop at once");
            heard.recv().await;
            std::process::exit(1);
        });
    });
    Ok(())
}

/// What is run.
struct SparkRun<'a> {
    /// As it was asked.
    args: &'a Args,
    /// The Spark that runs it.
    spark: &'a Spark,
    /// The plug-in.
    jar: &'a Path,
    /// The archive of Spark's classes, if there is one.
    classes: Option<&'a Path>,
    /// Hosts with an executor; the driver is in the first.
    hosts: &'a [String],
    /// What Spark and the controller say to each other.
    mode: Mode,
    /// Where it runs.
    place: &'a TargetNetwork,
    /// Whether there are circuits.
    circuits: bool,
}

impl SparkRun<'_> {
    /// What the application is called: its file, without its ending.
    fn workload(&self) -> String {
        let file = self.args.app.iter().map(Path::new).find(|a| a.extension().is_some());
        let name = file.and_then(Path::file_stem).map(|s| s.to_string_lossy().into_owned());
        name.unwrap_or_else(|| "application".into())
    }
}

/// This program.
fn program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| "heliostat".into())
}

/// Runs the application once.
fn one(plan: &SparkRun<'_>, stop: &AtomicBool) -> Result<SparkOutcome, CliError> {
    let scratch = tempfile::Builder::new().prefix("heliostat-spark-").tempdir();
    let scratch =
        scratch.map_err(|e| CliError::Failed(format!("make a temporary directory: {e}")))?;
    let logs = match &plan.args.logs {
        None => scratch.path().join("logs"),
        Some(dir) if plan.args.baseline => {
            dir.join(if plan.circuits { "circuits" } else { "baseline" })
        }
        Some(dir) => dir.clone(),
    };
    for dir in [&logs, &scratch.path().join(EVENTS)] {
        fs::create_dir_all(dir).map_err(|e| files::failed(dir, &e))?;
    }
    let network = match &plan.place.up {
        Some(note) => SparkNetwork::up(note.clone())?,
        None => SparkNetwork::start(plan, &logs)?,
    };
    let client = network.client();
    let before = result::NetworkBefore::read(&client);
    let mut outcome = SparkOutcome::new(plan);
    let submitted = submit::submit(plan, scratch.path(), &logs, &mut outcome, stop);
    outcome.total(network.carried());
    let log = log(scratch.path(), plan.args.logs.as_ref().map(|_| &*logs));
    let result =
        before.and_then(|before| log.and_then(|log| before.result(&client, plan, &log, &outcome)));
    outcome.result = result.map(Box::new).map_err(|e| note(&format!("no result: {e}"))).ok();
    let ended = network.end();
    if let Err(why) | Ok(Some(why)) = &submitted {
        outcome.failed = Some(kept(why, scratch, plan.args.logs.as_deref()));
    }
    ended.map(|()| outcome)
}

/// What Spark logged of the application; nothing if it wrote no log. It is kept beside the other
/// logs, if those are.
fn log(scratch: &Path, kept: Option<&Path>) -> Result<SparkLog, CliError> {
    let directory = scratch.join(EVENTS);
    let all = fs::read_dir(&directory).map_err(|e| files::failed(&directory, &e))?;
    // Hadoop keeps checksums in files whose names begin with a dot.
    let is_log = |f: &fs::DirEntry| !f.file_name().as_encoded_bytes().starts_with(b".");
    let Some(file) = all.filter_map(Result::ok).find(is_log).map(|f| f.path()) else {
        return Ok(SparkLog::default());
    };
    let text = open::text(&file, MOST)
        .map_err(|e| CliError::Failed(format!("{}: {e}", file.display())))?;
    // The last line of one that was killed may be half of one.
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    if let Some(kept) = kept {
        write_text(&kept.join(format!("{EVENTS}.jsonl")), whole)?;
    }
    spark_log::parse(whole).map_err(|e| CliError::Failed(format!("Spark's log of events:{e}")))
}

/// Why an application failed, and where its logs are: they outlive a failure.
fn kept(why: &str, scratch: tempfile::TempDir, logs: Option<&Path>) -> String {
    let place = logs.map_or_else(|| scratch.keep().join("logs"), Path::to_path_buf);
    format!("{why}; what its processes logged is in {}", place.display())
}

/// Settings of Spark that this run needs.
fn settings(plan: &SparkRun<'_>, scratch: &Path, logs: &Path) -> BTreeMap<&'static str, String> {
    let driver = plan.hosts[0].clone();
    let tasks = plan.hosts.len() as u32 * plan.args.cores;
    let mut java = format!("{JAVA} -Dlog4j2.configurationFile={}", scratch.join(LOG4J).display());
    if let Some(classes) = plan.classes {
        java += &format!(" -XX:SharedArchiveFile={}", classes.display());
    }
    let off = || "false".to_owned();
    let mut all = BTreeMap::from([
        ("spark.heliostat.program", program().display().to_string()),
        ("spark.heliostat.network", plan.place.name.clone()),
        ("spark.heliostat.hosts", plan.hosts.join(",")),
        ("spark.heliostat.logs", logs.display().to_string()),
        ("spark.heliostat.mode", plan.mode.name().to_owned()),
        ("spark.heliostat.report", scratch.join("report.jsonl").display().to_string()),
        (
            "spark.heliostat.controller",
            format!("unix:{}", ownership::base().join(&plan.place.name).join("api.sock").display()),
        ),
        ("spark.driver.host", driver.clone()),
        ("spark.driver.bindAddress", driver),
        ("spark.driver.memory", "512m".into()),
        ("spark.driver.defaultJavaOptions", java.clone()),
        ("spark.executor.defaultJavaOptions", java),
        ("spark.executor.memory", format!("{}k", plan.args.memory.0 / 1024)),
        ("spark.executor.cores", plan.args.cores.to_string()),
        ("spark.local.dir", scratch.join("local").display().to_string()),
        ("spark.ui.enabled", off()),
        ("spark.eventLog.enabled", "true".into()),
        ("spark.eventLog.dir", format!("file://{}", scratch.join(EVENTS).display())),
        ("spark.eventLog.rolling.enabled", off()),
        ("spark.eventLog.compress", off()),
        // The application begins when all executors are there.
        ("spark.scheduler.minRegisteredResourcesRatio", "1.0".into()),
        ("spark.scheduler.maxRegisteredResourcesWaitingTime", "300s".into()),
        // Else Spark waits three seconds for a host that holds a fifth of a task's input.
        ("spark.shuffle.reduceLocality.enabled", off()),
        ("spark.locality.wait", "0".into()),
        // All hosts share the machine's files.
        ("spark.shuffle.readHostLocalDisk", off()),
        ("spark.sql.shuffle.partitions", tasks.to_string()),
        ("spark.sql.adaptive.coalescePartitions.enabled", off()),
    ]);
    if let Some(port) = plan.place.port {
        // Executors serve their map output from one of these ports. The driver, which serves no
        // shuffle, does not.
        all.extend([
            ("spark.blockManager.port", port.to_string()),
            ("spark.driver.blockManager.port", "0".into()),
            ("spark.port.maxRetries", (PORTS - 1).to_string()),
        ]);
    }
    all
}

/// Says something beside the application's own output.
fn note(text: &str) {
    say!("heliostat: {text}");
}
