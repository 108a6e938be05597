//! What the subcommands that run jobs share: options, and the tables of a result.

use std::path::{Path, PathBuf};

use super::files::read_shipped;
use super::summary::{self, Shown};
use super::tables::{self, TextTable};
use super::workload::reading::{self, JobsArgs, ModelArgs};
use super::workload::{CoflowMix, ReadingArgs};
use super::{CliError, OutputFormat, outcome};
use crate::config;
use crate::config::shipped::Shelf;
use crate::placement::Kind;
use crate::runtime::jobs::errors::Errors;
use crate::runtime::jobs::report::JobsResult;
use crate::runtime::settings::RunPlan;
use crate::scheduler::SchedulerEvent;
use crate::scheduler::spec::JobPolicy;
use crate::scheduler::state::Grain;
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};
use crate::workload::jobs::JobList;

/// With more hosts than this, flows are counted between racks unless hosts are asked for.
const HOSTS_BY_HOST: usize = 64;

/// How jobs are run in virtual time
#[derive(clap::Args, Clone, Debug, Default)]
pub struct VirtualArgs {
    /// Ends of flows in virtual time: hosts, or racks as a whole [default: hosts, of at most 64]
    #[arg(help_heading = "Jobs", long, value_enum)]
    pub grain: Option<GrainArg>,
}

/// Which jobs are run, and what is drawn of them
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Tuning {
    /// Draws the tasks on their slots over time into this file (.svg, .png or .pdf), 7 in wide; in
    /// other sizes, `heliostat plot --kind timeline` draws it of the result
    #[arg(help_heading = "Jobs", long, value_name = "FILE")]
    pub timeline: Option<PathBuf>,
    /// Keeps only jobs that shuffle at least this
    #[arg(help_heading = "Jobs", long, value_name = "BYTES")]
    pub min_shuffle: Option<Bytes>,
    /// Then keeps N of them, drawn evenly
    #[arg(help_heading = "Jobs", long, value_name = "N")]
    pub sample: Option<usize>,
    /// Then keeps the first N; of a mix, draws N
    #[arg(help_heading = "Jobs", long, value_name = "N")]
    pub first: Option<usize>,
    /// All jobs arrive at once
    #[arg(help_heading = "Jobs", long)]
    pub batch: bool,
    /// Says to the scheduler that a host or rack fails at that time, and is back after +TIME:
    /// h3-1@10s, r2@10s+30s; may be given more than once
    #[arg(help_heading = "Jobs", long, value_name = "WHAT@TIME[+TIME]")]
    pub fail: Vec<String>,
    /// How a trace's bytes become tasks.
    #[command(flatten)]
    pub model: ModelArgs,
}

/// What is foreseen wrongly, in virtual time
#[derive(clap::Args, Clone, Debug, Default)]
pub struct ForesightErrors {
    /// Planners see the sizes of recurring jobs too large or too small by at most this share: 0.5
    /// is half of the size
    #[arg(help_heading = "Errors of foresight (jobs)", long, value_name = "SHARE", value_parser = share)]
    pub size_error: Option<u32>,
    /// Some jobs arrive up to TIME sooner or later than foreseen
    #[arg(help_heading = "Errors of foresight (jobs)", long, value_name = "TIME")]
    pub arrival_delay: Option<Span>,
    /// The share of the jobs that do [default: 0.5]
    #[arg(help_heading = "Errors of foresight (jobs)", long, value_name = "SHARE", value_parser = share, requires = "arrival_delay")]
    pub delayed: Option<u32>,
    /// The remaining times of running tasks are estimated too long or too short by at most this
    /// share
    #[arg(help_heading = "Errors of foresight (jobs)", long, value_name = "SHARE", value_parser = share)]
    pub remaining_error: Option<u32>,
}

/// A share from 0 to 1 as per cent.
fn share(text: &str) -> Result<u32, String> {
    let share: f64 = text.parse().map_err(|_| "not a number; 0 to 1".to_owned())?;
    if (0.0..=1.0).contains(&share) {
        Ok((share * 100.0).round() as u32)
    } else {
        Err("a share is 0 to 1".into())
    }
}

impl ForesightErrors {
    /// The errors, drawn from the seed.
    pub fn errors(&self, seed: u64) -> Errors {
        Errors {
            shuffle_percent: 0,
            size_percent: self.size_error.unwrap_or(0),
            delayed_percent: if self.arrival_delay.is_some() {
                self.delayed.unwrap_or(50)
            } else {
                0
            },
            delay: self.arrival_delay.unwrap_or(Span::ZERO),
            remaining_percent: self.remaining_error.unwrap_or(0),
            seed,
        }
    }
}

/// The ends of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum GrainArg {
    /// Hosts.
    Host,
    /// Racks as a whole; what stays in a rack takes no time.
    Rack,
}

impl From<GrainArg> for Grain {
    fn from(grain: GrainArg) -> Self {
        match grain {
            GrainArg::Host => Self::Host,
            GrainArg::Rack => Self::Rack,
        }
    }
}

impl Tuning {
    /// Refuses options that say something of jobs only, where none are run; `jobs` is the option
    /// that would run them.
    ///
    /// # Errors
    /// The first such option.
    pub fn refuse(&self, jobs: &str) -> Result<(), CliError> {
        let given = [
            ("--timeline", self.timeline.is_some()),
            ("--min-shuffle", self.min_shuffle.is_some()),
            ("--sample", self.sample.is_some()),
            ("--first", self.first.is_some()),
            ("--batch", self.batch),
            ("--fail", !self.fail.is_empty()),
        ];
        refuse(&given, jobs)?;
        refuse(&self.model.given(), jobs)
    }

    /// What `--fail` says, by time.
    ///
    /// # Errors
    /// What is no host or rack, or no time.
    pub fn failures(&self, topology: &Topology) -> Result<Vec<(Time, SchedulerEvent)>, CliError> {
        let mut all = Vec::new();
        for text in &self.fail {
            all.extend(failure(text, topology)?);
        }
        all.sort_by_key(|f| f.0);
        Ok(all)
    }

    /// Reads the jobs: our YAML, a SWIM trace, TPC-H queries, or coflows of a trace as jobs. Or
    /// draws those of a mix, 50 unless `--first` says how many.
    ///
    /// # Errors
    /// A file that cannot be read or makes no sense, a mix of coflows, types of lists that the
    /// network has not.
    pub fn read(
        &self,
        file: &Path,
        on: (&RunPlan, &Topology),
        reading: &ReadingArgs,
        seed: u64,
    ) -> Result<JobList, CliError> {
        let (plan, topology) = on;
        let reading =
            ReadingArgs { scale: Some(reading.scale.unwrap_or(plan.run.scale)), ..reading.clone() };
        let args = JobsArgs {
            model: self.model.clone(),
            seed,
            min_shuffle: self.min_shuffle,
            sample: self.sample,
            jobs: self.first,
            batch: self.batch,
            mean_gap: reading::MEAN_GAP,
            executors: reading::EXECUTORS,
            selectivity: reading::SELECTIVITY,
        };
        let how = args.how(&reading)?;
        match CoflowMix::named(file) {
            Some(mix) => {
                Ok(how.select.of(mix.draw_jobs(&self.model, self.first.unwrap_or(50), seed)?, seed))
            }
            None => {
                let (text, name) = (
                    read_shipped(Shelf::Workloads, file, &CoflowMix::of_jobs())?,
                    file.display().to_string(),
                );
                let list = config::read_any_jobs(&text, &name, &how)?;
                config::check_types(&list, topology, &text, &name)?;
                Ok(list)
            }
        }
    }
}

/// The policy of jobs where none is named: the shipped one that places tasks and sets circuits for
/// them together.
pub const DEFAULT_POLICY: &str = "joint";

/// How jobs are scheduled by a policy file.
///
/// # Errors
/// A policy without a `placement` section.
pub fn scheduling(plan: &RunPlan, file: &str) -> Result<JobPolicy, CliError> {
    let placing = || {
        Shelf::Policies
            .files()
            .filter(|f| f.text.contains("\nplacement:"))
            .map(|f| f.name)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let why = || {
        format!(
            "{file}: no `placement` section, which says where tasks go; shipped policies with one: {}",
            placing()
        )
    };
    plan.jobs.clone().ok_or_else(|| CliError::Invalid(why()))
}

fn refuse(given: &[(&str, bool)], jobs: &str) -> Result<(), CliError> {
    let why = |option| {
        CliError::Usage(format!(
            "{option} says something of jobs, and none are run; it is allowed with {jobs} FILE"
        ))
    };
    given.iter().find(|g| g.1).map_or(Ok(()), |g| Err(why(g.0)))
}

impl ForesightErrors {
    /// Refuses all of them where no jobs are run.
    ///
    /// # Errors
    /// The first that is given.
    pub fn refuse(&self, jobs: &str) -> Result<(), CliError> {
        let given = [
            ("--size-error", self.size_error.is_some()),
            ("--arrival-delay", self.arrival_delay.is_some()),
            ("--remaining-error", self.remaining_error.is_some()),
        ];
        refuse(&given, jobs)
    }
}

impl VirtualArgs {
    /// Refuses all of them where no jobs are run.
    ///
    /// # Errors
    /// The first that is given.
    pub fn refuse(&self, jobs: &str) -> Result<(), CliError> {
        refuse(&[("--grain", self.grain.is_some())], jobs)
    }

    /// The ends of flows under this placement policy.
    ///
    /// # Errors
    /// Racks are asked for, and the policy thinks of hosts.
    pub fn grain(&self, topology: &Topology, policy: Kind) -> Result<Grain, CliError> {
        match self.grain {
            Some(GrainArg::Rack) if policy.is_by_host() => {
                let why = format!(
                    "`{}` looks at the hosts' interfaces; it needs --grain host",
                    policy.name()
                );
                Err(CliError::Usage(format!("--grain rack: {why}")))
            }
            Some(GrainArg::Rack) => Ok(Grain::Rack),
            None if topology.hosts.len() > HOSTS_BY_HOST && !policy.is_by_host() => Ok(Grain::Rack),
            Some(GrainArg::Host) | None => Ok(Grain::Host),
        }
    }
}

/// A run of jobs as it is printed. Table: the jobs, then what was run and the sums. JSON: the whole
/// [`JobsResult`]. CSV: the jobs in base units. With `--summary`, all but the jobs.
pub fn result(r: &JobsResult, shown: Shown) -> String {
    match (shown.output, shown.summary) {
        (OutputFormat::Table, summary_only) => {
            let jobs =
                if summary_only { String::new() } else { format!("{}\n\n", table(r).table()) };
            format!(
                "{jobs}{}\n{}\n{}",
                caption(r),
                summary(r).table(),
                outcome::caveats(&r.caveats)
            )
        }
        (OutputFormat::Json, false) => tables::json(r),
        (OutputFormat::Csv, false) => exact(r).csv(),
        (output, true) => summary::for_programs(r, output),
    }
}

/// What was run, in a line above the sums.
fn caption(r: &JobsResult) -> String {
    let seed = r.origin.seed.map_or_else(String::new, |s| format!(", seed {s}"));
    format!(
        "{} on {}, placed by {}, circuits by {}, mechanism {}{seed}{}",
        r.workload,
        r.topology,
        r.placement,
        r.policy,
        r.mechanism,
        summary::ended(r.end)
    )
}

fn table(r: &JobsResult) -> TextTable {
    let mut rows = TextTable::new(&[
        "job",
        "queue",
        "tasks",
        "near/rack/far",
        "JCT",
        "slot time",
        "shuffle",
        "sent",
        "shuffle CCT",
    ]);
    for j in &r.jobs {
        let cct = j.shuffle_ccts.iter().max();
        rows.rows.push(vec![
            j.name.clone(),
            j.queue.to_string(),
            j.tasks.to_string(),
            format!("{}/{}/{}", j.near[0], j.near[1], j.near[2]),
            j.jct.map_or("unfinished".into(), tables::span),
            tables::span(j.slot_time),
            tables::bytes(j.shuffle_bytes),
            tables::bytes(j.shuffled),
            cct.map_or("-".into(), |s| tables::span(*s)),
        ]);
    }
    rows
}

/// The jobs of a run in base units.
pub fn exact(r: &JobsResult) -> TextTable {
    let mut rows = TextTable::new(&[
        "job",
        "queue",
        "recurring",
        "tasks",
        "near_host",
        "near_rack",
        "remote",
        "arrival_ns",
        "started_ns",
        "finished_ns",
        "jct_ns",
        "slot_time_ns",
        "shuffle_bytes",
        "shuffled_bytes",
        "read_bytes",
        "between_racks_bytes",
        "shuffle_cct_ns",
        "reruns",
    ]);
    let time = |t: Option<Time>| t.map_or(String::new(), |t| t.0.to_string());
    for j in &r.jobs {
        rows.rows.push(vec![
            j.name.clone(),
            j.queue.to_string(),
            j.recurring.to_string(),
            j.tasks.to_string(),
            j.near[0].to_string(),
            j.near[1].to_string(),
            j.near[2].to_string(),
            j.arrival.0.to_string(),
            time(j.started),
            time(j.finished),
            j.jct.map_or(String::new(), |s| s.0.to_string()),
            j.slot_time.0.to_string(),
            j.shuffle_bytes.0.to_string(),
            j.shuffled.0.to_string(),
            j.read.0.to_string(),
            j.between_racks.0.to_string(),
            j.shuffle_ccts.iter().max().map_or(String::new(), |s| s.0.to_string()),
            j.reruns.to_string(),
        ]);
    }
    rows
}

/// The sums of a run of jobs, for people: one a row.
pub fn summary(r: &JobsResult) -> TextTable {
    let s = &r.summary;
    let mut rows = TextTable::new(&["summary", ""]);
    let mut row = |name: &str, value: String| rows.rows.push(vec![name.into(), value]);
    let of = if s.unfinished == 0 {
        String::new()
    } else {
        format!(" of {}", s.finished + s.unfinished)
    };
    let three =
        |a, b, c| format!("{} / {} / {}", tables::span(a), tables::span(b), tables::span(c));
    row("jobs finished", format!("{}{of}", s.finished));
    row("makespan", tables::span(s.makespan));
    row("JCT average / median / p95", three(s.average_jct, s.median_jct, s.p95_jct));
    row("shuffle CCT average / median / p95", three(s.average_cct, s.median_cct, s.p95_cct));
    row("jobs that send", s.sending.to_string());
    if summary::has_circuits(&r.network) {
        row("OCS share", tables::percent(s.ocs_share));
    }
    row("slot time", tables::span(s.slot_time));
    row(
        "bytes planned / received",
        format!("{} / {}", tables::bytes(s.bytes_planned), tables::bytes(s.bytes_received)),
    );
    let wire = tables::bytes(r.network.bytes_on_wire);
    row(
        "between racks planned / on the wire",
        format!("{} / {wire}", tables::bytes(s.bytes_between_racks)),
    );
    if let Some(again) = r.network.bytes_sent_again {
        row("of that sent again by TCP", tables::bytes(again));
    }
    row(
        "tasks at their block / in its rack / far",
        format!("{} / {} / {}", s.near[0], s.near[1], s.near[2]),
    );
    // Rows of what seldom happens are there only if it did. Older results have this of each job
    // only.
    let again = s.reruns.max(r.jobs.iter().map(|j| u64::from(j.reruns)).sum());
    let seldom = [
        ("tasks started again", again),
        ("outputs lost with a host", s.counters.outputs_lost),
        ("tasks that gave way", s.counters.preempted),
        ("starts outside a guideline", s.counters.violations),
        ("offers decided by the fallback", s.counters.fallbacks),
        ("guidelines dropped", s.fallbacks.len() as u64),
    ];
    seldom.iter().filter(|r| r.1 > 0).for_each(|(name, n)| row(name, n.to_string()));
    rows
}

/// What one `--fail` says: that a host or rack fails, and perhaps that it comes back.
///
/// # Errors
/// What is no host or rack, or no time.
pub(super) fn failure(
    text: &str,
    topology: &Topology,
) -> Result<Vec<(Time, SchedulerEvent)>, CliError> {
    let bad = |why: String| {
        CliError::Usage(format!("--fail {text}: {why}; write h3-1@10s or r2@10s+30s"))
    };
    let (what, when) = text.split_once('@').ok_or_else(|| bad("no time".into()))?;
    let (at, long) = when.split_once('+').map_or((when, None), |(a, b)| (a, Some(b)));
    let at = Time::ZERO + at.parse::<Span>().map_err(|e| bad(e.to_string()))?;
    let long = long.map(|l| l.parse::<Span>().map_err(|e| bad(e.to_string()))).transpose()?;
    let rack = what.strip_prefix('r').and_then(|r| r.parse().ok()).map(crate::ids::RackId);
    let (down, up) =
        match (topology.host_by_name(what), rack.filter(|r| r.index() < topology.rack_count())) {
            (Some(h), _) => (SchedulerEvent::HostFailed(h), SchedulerEvent::HostRecovered(h)),
            (_, Some(r)) => (SchedulerEvent::RackFailed(r), SchedulerEvent::RackRecovered(r)),
            _ => return Err(bad(format!("no host or rack {what}"))),
        };
    Ok([Some((at, down)), long.map(|l| (at + l, up))].into_iter().flatten().collect())
}
