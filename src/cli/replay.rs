//! `heliostat replay`: a recorded run again, without a kernel.

use std::io::BufReader;
use std::path::PathBuf;

use super::files::unread;
use super::tables::{self, TextTable, bytes, span};
use super::{CliError, OutputFormat, print, show};
use crate::api::wire;
use crate::control::record::Snapshot;
use crate::runtime::open;
use crate::runtime::record::replay::{Ending, ReplayError, Replayed, replay};
use crate::units::{Bytes, Span, Time};

/// Plays a recorded run again, without a kernel: the controller and the scheduler must want what
/// they wanted then, byte for byte
///
/// Exit code 1 and both texts at the first difference, 3 for a file that is damaged. A file that
/// was cut off is played as far as it goes.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// What `run --record` or `simulate --record` wrote
    file: PathBuf,
    /// Stops before the first event after this time of the run, such as 2s, and shows the state
    /// then
    #[arg(long, value_name = "TIME")]
    at: Option<Span>,
    /// What is printed; JSON holds the whole state at the end, or at the time asked for
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

/// Runs the subcommand.
///
/// # Errors
/// A file that is none, or a machine that does something else.
pub fn run(args: &Args) -> Result<(), CliError> {
    let name = open::name(&args.file);
    let file = open::to_read(&args.file).map_err(|e| unread(&args.file, &e.into()))?;
    let done =
        replay(BufReader::new(file), args.at.map(|at| Time::ZERO + at)).map_err(|e| match e {
            ReplayError::Io(_) | ReplayError::Malformed { .. } => {
                CliError::Invalid(format!("{name}: {e}"))
            }
            ReplayError::Differs { .. } | ReplayError::Panicked { .. } => {
                CliError::Failed(format!("{name}: {e}"))
            }
        })?;
    if let Some(why) = incomplete(&done.ending) {
        tracing::warn!("{name}: {why}; what comes before is as recorded");
    }
    print(&match args.output {
        OutputFormat::Json => tables::json(&done),
        OutputFormat::Csv => summary(&done, true).csv(),
        OutputFormat::Table if args.at.is_none() => summary(&done, false).table() + "\n",
        OutputFormat::Table => {
            [summary(&done, false).table(), state(&done.snapshot)].join("\n\n") + "\n"
        }
    })
}

/// Why there is less than the run.
fn incomplete(ending: &Ending) -> Option<String> {
    match ending {
        Ending::Complete | Ending::Asked => None,
        Ending::CutOff { within_line: false } => {
            Some("the recording was cut off: its last line is no `end`".into())
        }
        Ending::CutOff { within_line: true } => {
            Some("the recording was cut off within its last line, which is not played".into())
        }
        Ending::Lost { why } => Some(format!("the recording ends before the run did: {why}")),
    }
}

fn summary(r: &Replayed, exact: bool) -> TextTable {
    let ending = match &r.ending {
        Ending::Complete => "as recorded, to the end".to_owned(),
        Ending::Asked => "as recorded, up to the time asked for".to_owned(),
        cut => format!("as recorded, but {}", incomplete(cut).unwrap_or_default()),
    };
    let now = r.snapshot.now;
    let mut rows = TextTable::new(&["what", "value"]);
    let mut row = |what: &str, value: String| rows.rows.push(vec![what.into(), value]);
    row("replay", ending);
    row("recorded by", format!("heliostat {}, mechanism {}", r.version, r.mechanism));
    row("lines", r.lines.to_string());
    row("time", if exact { now.0.to_string() } else { now.to_string() });
    for (who, c) in [("controller", r.controller), ("scheduler", r.scheduler)] {
        if c.events > 0 {
            row(who, format!("{} events ({} refused), {} actions", c.events, c.refused, c.actions));
        }
    }
    let (open, totals) = (r.snapshot.coflows.open, r.snapshot.coflows.totals);
    row("cycles", r.snapshot.stats.cycles.to_string());
    let stats = &r.snapshot.stats;
    if let Some(why) = &stats.first_fallback {
        row(
            "cycles decided by the fallback",
            format!("{} (the first time: {why})", stats.fallbacks),
        );
    }
    row(
        "coflows",
        format!("{open} open, {} finished, {} cancelled", totals.finished, totals.cancelled),
    );
    if let Some(jobs) = &r.jobs {
        let done = jobs.jobs.iter().filter(|j| j.finished.is_some()).count();
        row(
            "jobs",
            format!(
                "{done} of {} finished; {} tasks compute, {} wait for bytes",
                jobs.jobs.len(),
                jobs.computing,
                jobs.fetching
            ),
        );
    }
    for f in &r.snapshot.failures {
        row(&f.trouble.to_string(), format!("{} ({} times)", f.why, f.attempts));
    }
    rows
}

/// Circuits, demand and open coflows.
fn state(s: &Snapshot) -> String {
    let circuits = s.circuits.iter().map(Into::into).collect();
    let circuits = wire::Circuits { revision: s.revision, now_ns: s.now.0, circuits };
    let mut coflows = TextTable::new(&["coflow", "id", "bytes", "received", "open for"]);
    for c in s.coflows.live.iter().filter(|c| c.closed().is_none()) {
        let age = span(s.now.since(c.arrival));
        coflows.rows.push(vec![
            c.name.clone(),
            c.id.0.to_string(),
            bytes(c.bytes),
            bytes(c.received),
            age,
        ]);
    }
    let demand = format!(
        "demand {}, waiting {}",
        bytes(Bytes(s.demand.total())),
        bytes(Bytes(s.backlog.total()))
    );
    [show::answers::circuits(&circuits, false).table(), coflows.table(), demand].join("\n\n")
}
