//! `heliostat check`: is a file valid, and if not, where and why not.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::ValueEnum as _;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::caveats::{said_of, unplaced};
use super::files::{read_any, read_stdin};
use super::log::say;
use super::numbers::several;
use super::tables::word;
use super::{CliError, limits, print, results, sketch, write_sheet};
use crate::coflows::network::{NetworkKind, Service};
use crate::config::{self, ConfigError, Format, JobsReading, SimulationLoad, yaml};
use crate::control::policy::{CircuitPolicy, SchedulerKind};
use crate::draw;
use crate::runtime::open;
use crate::runtime::report::form::FORMAT;
use crate::runtime::result_schema;
use crate::runtime::settings::RunPlan;
use crate::runtime::study::{AnyResult, RunAccount};
use crate::topology::graph::Graph;
use crate::topology::{Plane, Topology};
use crate::units::{BitRate, Bytes};
use crate::workload::Workload;
use crate::workload::coflow_benchmark::PortMapping;
use crate::workload::jobs::{JobList, JobSpec};

/// Checks topologies, policies, workloads, jobs and results, each file alone and all of them
/// together
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The files, of any kind, or names of shipped ones; - is stdin. Each policy and workload must
    /// fit one of the topologies among them
    #[arg(required_unless_present = "schema")]
    files: Vec<PathBuf>,
    /// Prints the JSON Schema of a kind of file instead
    #[arg(long, value_enum, conflicts_with = "files")]
    schema: Option<FileKind>,
    /// Lets ports or nodes of a trace that the topology has no host for fall on hosts that it has,
    /// as `simulate --fold` does
    #[arg(long, conflicts_with = "schema")]
    fold: bool,
    /// Also draws the topology, of which there must be one among the files, into a file (.svg, .png
    /// or .pdf): its switches by tier, racks, planes and rates
    #[arg(long, value_name = "FILE", conflicts_with = "schema")]
    svg: Option<PathBuf>,
}

/// The kinds of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FileKind {
    /// A network
    Topology,
    /// How circuits are decided
    Policy,
    /// What is sent
    Workload,
    /// What is computed: jobs of stages
    Jobs,
    /// What was measured, as `--json` of run, simulate and schedule writes it
    Result,
}

const KINDS: [FileKind; 4] =
    [FileKind::Topology, FileKind::Policy, FileKind::Workload, FileKind::Jobs];

impl FileKind {
    /// The JSON Schema, whose id has the version of the form: that of the program, or of results
    /// their own.
    fn schema(self) -> Value {
        let mut schema = match self {
            Self::Topology => config::schema_topology(),
            Self::Policy => config::schema_policy(),
            Self::Workload => config::schema_workload(),
            Self::Jobs => config::schema_jobs(),
            Self::Result => result_schema::schema(),
        };
        let version = match self {
            Self::Result => FORMAT.to_string(),
            _ => env!("CARGO_PKG_VERSION").to_owned(),
        };
        let kind = self.to_possible_value().map(|v| v.get_name().to_owned()).unwrap_or_default();
        schema["$id"] = format!("urn:heliostat:schema:{kind}:{version}").into();
        schema
    }

    /// The keys that tell this kind from the others: `name` is in all.
    fn keys(self) -> Vec<String> {
        let schema = self.schema();
        let keys = schema["properties"].as_object().into_iter().flatten().map(|(k, _)| k.clone());
        keys.filter(|k| k != "name" && k != "description").collect()
    }
}

/// A file that could be read.
struct File {
    name: String,
    text: String,
}

/// What the files turned out to be.
#[derive(Default)]
struct CheckedFiles {
    topologies: Vec<Topology>,
    policies: Vec<RunPlan>,
    workloads: Vec<File>,
    jobs: Vec<JobList>,
    /// What is said of valid files.
    said: String,
    errors: Vec<String>,
    advice: Vec<String>,
    /// Whether ends that a topology has not are folded.
    fold: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// Files that are invalid.
pub fn run(args: &Args) -> Result<(), CliError> {
    if let Some(kind) = args.schema {
        return print(
            &(serde_json::to_string_pretty(&kind.schema()).expect("a schema is plain data") + "\n"),
        );
    }
    let mut files = Vec::new();
    let mut found = CheckedFiles { fold: args.fold, ..CheckedFiles::default() };
    for path in &args.files {
        match read(path) {
            Ok(file) => files.push(file),
            Err(e) => found.errors.push(e.to_string()),
        }
    }
    let found = check(files, found);
    print(&found.said)?;
    for line in &found.advice {
        say!("note: {line}");
    }
    if let (Some(file), true) = (&args.svg, found.errors.is_empty()) {
        let [topology] = &*found.topologies else {
            return Err(CliError::Usage(format!(
                "--svg draws one topology, and there are {} among the files",
                found.topologies.len()
            )));
        };
        write_sheet(&sketch::sheet(topology).map_err(CliError::Failed)?, file, draw::TWO_A_POINT)?;
    }
    if found.errors.is_empty() {
        Ok(())
    } else {
        Err(CliError::Invalid(summary(&found.errors, args.files.len())))
    }
}

/// The errors, under a line that counts them.
fn summary(errors: &[String], files: usize) -> String {
    match (errors, files) {
        ([only], 1) => only.clone(),
        ([only], _) => format!("an error in one of {files} files\n{only}"),
        _ => format!(
            "{} errors in {files} file{}\n{}",
            errors.len(),
            if files == 1 { "" } else { "s" },
            errors.join("\n")
        ),
    }
}

fn read(path: &Path) -> Result<File, CliError> {
    if path != Path::new("-") {
        return Ok(File { name: open::name(path), text: read_any(path)? });
    }
    Ok(File { name: "stdin".into(), text: read_stdin()? })
}

/// Every file by itself, then those that belong together.
fn check(files: Vec<File>, mut found: CheckedFiles) -> CheckedFiles {
    for file in files {
        match kind(&file) {
            Ok(FileKind::Topology) => match config::read_topology(&file.text, &file.name) {
                Ok(t) => {
                    let _ = writeln!(
                        found.said,
                        "{}: topology {}: {}",
                        file.name,
                        t.name,
                        describe_topology(&t)
                    );
                    found.topologies.push(t);
                }
                Err(e) => found.errors.push(e.to_string()),
            },
            Ok(FileKind::Policy) => match config::read_policy(&file.text, &file.name) {
                Ok(p) => {
                    let _ = writeln!(
                        found.said,
                        "{}: policy {}: {}",
                        file.name,
                        p.policy.name,
                        describe_policy(&p)
                    );
                    found.policies.push(p);
                }
                Err(e) => found.errors.push(e.to_string()),
            },
            Ok(FileKind::Workload) => found.workloads.push(file),
            Ok(FileKind::Result) => match results::parse(&file.text, Path::new(&file.name)) {
                Ok(all) => found.said.push_str(&describe_results(&file.name, &all)),
                Err(e) => found.errors.push(e.to_string()),
            },
            Ok(FileKind::Jobs) => {
                match config::read_any_jobs(&file.text, &file.name, &JobsReading::default()) {
                    Ok(list) => {
                        found.said.push_str(&describe(&file.name, &list));
                        found.jobs.push(list);
                    }
                    Err(e) => found.errors.push(e.to_string()),
                }
            }
            Err(e) => found.errors.push(e.to_string()),
        }
    }
    workloads(&mut found);
    policies(&mut found);
    // Many files are not meant to be run as every policy on every topology.
    if let ([t], [p]) = (&*found.topologies, &*found.policies) {
        if let Ok(model) = config::model(t, p) {
            let _ = writeln!(found.said, "{} on {}: simulated as {model}", p.policy.name, t.name);
        }
        found.advice.extend(config::advice(t, p));
        for list in &found.jobs {
            match runs_jobs(t, p, list) {
                Ok(endless) => found.advice.extend(endless),
                Err(e) => found.errors.push(e.to_string()),
            }
        }
    }
    if found.errors.is_empty() {
        found.errors.extend(too_large(&found));
    }
    found
}

/// Policies: each must fit one of the topologies, if there are any. Those that it does not fit are
/// named.
fn policies(found: &mut CheckedFiles) {
    for p in &found.policies {
        let fits: Vec<(&Topology, Result<(), ConfigError>)> =
            found.topologies.iter().map(|t| (t, config::fit(t, p))).collect();
        let unfit: Vec<&str> =
            fits.iter().filter(|(_, fit)| fit.is_err()).map(|(t, _)| &*t.name).collect();
        if !unfit.is_empty() && unfit.len() < fits.len() {
            let (name, all) = (&p.policy.name, fits.len());
            found.advice.push(format!(
                "policy {name} does not fit {} of the {all} topologies: {}",
                unfit.len(),
                unfit.join(", ")
            ));
        } else if let Some(Err(e)) = fits
            .into_iter()
            .map(|(_, fit)| fit)
            .min_by_key(|fit| fit.as_ref().err().map(|e| e.problems.len()))
        {
            found.errors.push(e.to_string());
        }
    }
}

/// Whether a run of coflows fits into memory; if it does not end by itself, why. It may be meant to
/// be ended before.
fn runs(t: &Topology, p: &RunPlan, w: &Workload) -> Result<Option<String>, CliError> {
    limits::fits_into_memory(t, p, limits::flows(w))?;
    Ok(limits::ends_in_time(t, p, w, None).err().map(|e| e.to_string()))
}

/// The same of a run of jobs.
fn runs_jobs(t: &Topology, p: &RunPlan, list: &JobList) -> Result<Option<String>, CliError> {
    limits::fits_into_memory(t, p, limits::tasks(list))?;
    Ok(limits::jobs_end_in_time(t, p, list, None).unwrap_or_else(|e| Some(e.to_string())))
}

/// Networks for which this machine lacks the memory of a run, even of one without circuits.
fn too_large(found: &CheckedFiles) -> Vec<String> {
    let least = RunPlan::from(CircuitPolicy {
        scheduler: SchedulerKind::EpsOnly,
        ..CircuitPolicy::default()
    });
    let by = if let [p] = &*found.policies { p } else { &least };
    let refused = found
        .topologies
        .iter()
        .filter_map(|t| limits::fits_into_memory(t, by, SimulationLoad::default()).err());
    refused.map(|e| e.to_string()).collect()
}

/// What is said of a valid network: sizes, rates, dark times.
fn describe_topology(t: &Topology) -> String {
    let range = |rates: Vec<BitRate>| match (rates.iter().min(), rates.iter().max()) {
        (Some(a), Some(b)) if a == b => a.to_string(),
        (Some(a), Some(b)) => format!("{a} to {b}"),
        _ => "none".into(),
    };
    let nics = range(t.hosts.iter().map(|h| h.nic).collect());
    let graph = |g: &Graph| {
        format!(
            "an EPS graph of {} and {}",
            several(g.switches.len(), "switch"),
            several(g.cables.len(), "link")
        )
    };
    let uplinks = || format!("EPS uplinks {}", range(t.racks.iter().map(|r| r.uplink).collect()));
    let eps = t.eps.graph().map_or_else(uplinks, graph);
    let plane = |p: &Plane| format!("{} with {} of dark time", p.rate, p.delta);
    let mut planes: Vec<String> = t.planes.iter().map(plane).collect();
    planes.dedup();
    let each = if planes.is_empty() { String::new() } else { format!(" of {}", planes.join(", ")) };
    let (racks, hosts) = (several(t.rack_count(), "rack"), several(t.hosts.len(), "host"));
    format!(
        "{racks}, {hosts} with NICs of {nics}, {eps}, {}{each}",
        several(t.planes.len(), "OCS plane")
    )
}

/// What is said of a valid policy: who sets circuits by what, how coflows are served, who places
/// tasks.
fn describe_policy(p: &RunPlan) -> String {
    let c = &p.policy;
    let network = p.run.network.kind;
    let circuits = match c.scheduler {
        _ if network == NetworkKind::Sunflow => "circuits for each coflow".into(),
        SchedulerKind::EpsOnly => "no circuits".into(),
        by => format!(
            "circuits by {} from {} every {}, threshold {}",
            by.name(),
            word(&c.demand),
            c.interval,
            c.elephant_threshold
        ),
    };
    let strict = if network.service() == Service::Strict {
        ", strict priorities at every port of the packet network"
    } else {
        ""
    };
    let placement = p
        .jobs
        .as_ref()
        .map_or(String::new(), |j| format!(", tasks placed by {}", j.placement.kind().name()));
    format!("{circuits}, network {}{strict}{placement}", word(&network))
}

/// What is said of a valid list of jobs.
fn describe(file: &str, list: &JobList) -> String {
    let (n, tasks) =
        (several(list.jobs.len(), "job"), list.jobs.iter().map(JobSpec::tasks).sum::<u64>());
    let shuffles: Bytes = list.jobs.iter().map(JobSpec::shuffle_bytes).sum();
    let recurring = list.jobs.iter().filter(|j| j.recurring).count();
    format!(
        "{file}: jobs {}: {n} ({recurring} recurring), {tasks} tasks, {shuffles} of shuffles\n",
        list.name
    )
}

/// In whose format a workload is; nothing of our own.
fn of(file: &File) -> String {
    config::format_of(&file.text)
        .name()
        .map_or(String::new(), |name| format!(" in the format of {name}"))
}

/// Workloads: each must fit one of the topologies; by its form alone if there is none.
fn workloads(found: &mut CheckedFiles) {
    // `too_large` reports a wrong HELIOSTAT_MEMORY.
    let mapping = PortMapping {
        most: limits::most_flows().unwrap_or_default(),
        fold: found.fold,
        ..PortMapping::default()
    };
    for file in std::mem::take(&mut found.workloads) {
        let mut errors = Vec::new();
        if found.topologies.is_empty() {
            match config::check_workload_form(&file.text, &file.name) {
                Ok(()) => {
                    let _ = writeln!(
                        found.said,
                        "{}: workload{}; name a topology to check its places too",
                        file.name,
                        of(&file)
                    );
                }
                Err(e) => errors.push(e),
            }
        }
        let mut fits = false;
        for t in &found.topologies {
            match config::read_workload(&file.text, &file.name, t, &mapping) {
                Ok(w) => {
                    fits = true;
                    if let ([_], [p]) = (&*found.topologies, &*found.policies) {
                        found.advice.extend(unplaced([p]));
                        match runs(t, p, &w) {
                            Ok(endless) => found.advice.extend(endless),
                            Err(e) => found.errors.push(e.to_string()),
                        }
                    }
                    found
                        .advice
                        .extend(said_of(&w.taken).map(|what| format!("{}: {what}", file.name)));
                    let (n, b) = (several(w.coflows.len(), "coflow"), w.bytes());
                    let _ = writeln!(
                        found.said,
                        "{}: workload {}{} on {}: {n}, {b}",
                        file.name,
                        w.name,
                        of(&file),
                        t.name
                    );
                }
                Err(e) => errors.push(e),
            }
        }
        // It was meant for the one where least is wrong.
        let nearest = errors.into_iter().min_by_key(|e| e.problems.len());
        found.errors.extend(nearest.filter(|_| !fits).map(|e| e.to_string()));
    }
}

/// Whether a text is a result, or a list of them.
fn is_result(text: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Peek {
        #[serde(rename = "mechanism")]
        _mechanism: IgnoredAny,
        #[serde(rename = "summary")]
        _summary: IgnoredAny,
    }
    serde_json::from_str::<Peek>(text).is_ok()
        || serde_json::from_str::<Vec<Peek>>(text).is_ok_and(|all| !all.is_empty())
}

/// Of what results are.
fn describe_results(name: &str, all: &[AnyResult]) -> String {
    let of = |r: &AnyResult| {
        let a = RunAccount::from(r);
        format!("{} on {} ({})", a.policy, a.topology, a.mechanism)
    };
    let of: BTreeSet<String> = all.iter().map(of).collect();
    format!(
        "{name}: {}: {}\n",
        several(all.len(), "result"),
        of.into_iter().collect::<Vec<_>>().join(", ")
    )
}

/// Tells what a file is by its keys.
fn kind(file: &File) -> Result<FileKind, ConfigError> {
    if is_result(&file.text) {
        return Ok(FileKind::Result);
    }
    match config::format_of(&file.text) {
        Format::Coflows | Format::Jobs => {}
        foreign if foreign.is_jobs() => return Ok(FileKind::Jobs),
        _ => return Ok(FileKind::Workload),
    }
    config::of_no_format(&file.text, &file.name).map_or(Ok(()), Err)?;
    let keys = yaml::keys(&file.text, &file.name)?;
    let score = |kind: FileKind| kind.keys().iter().filter(|k| keys.contains(k)).count();
    let best = KINDS.into_iter().rev().max_by_key(|&k| score(k)).filter(|&k| score(k) > 0);
    best.ok_or_else(|| {
        let allowed =
            KINDS.map(|k| format!("{k:?}: {}", k.keys().join(", "))).join("; ").to_lowercase();
        ConfigError::at(
            &file.text,
            &file.name,
            (1, 1),
            "neither a topology, nor a policy, nor a workload, nor jobs",
            allowed,
        )
    })
}

#[cfg(test)]
mod tests;
