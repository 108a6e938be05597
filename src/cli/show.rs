//! `heliostat show`: what a running daemon sees, through REST.

use std::io::IsTerminal;

use serde::de::DeserializeOwned;

use super::client::Where;
use super::numbers::several;
use super::tables::{self, TextTable, percent, span};
use super::{CliError, OutputFormat, print, write_stdout};
use crate::api::wire;
use crate::client::Client;
use crate::ids::RackId;
use crate::units::{BitRate, Span, Time};

pub mod answers;

/// Shows what a running daemon sees: circuits, demand, coflows, ports, topology, paths, switches,
/// queues, policy, decisions, stats
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// What to show
    #[arg(value_enum)]
    what: ShowCommand,
    /// Of decisions, only those about the job of this name or number
    #[arg(long, value_name = "JOB")]
    job: Option<String>,
    /// Of decisions, only those about this stage, a number from 0 on
    #[arg(long, value_name = "N")]
    stage: Option<u32>,
    /// What is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    /// Shows it again and again, until interrupted; with a length of time, that often
    #[arg(short, long, value_name = "EVERY", num_args = 0..=1, require_equals = true, default_missing_value = "1s")]
    watch: Option<Span>,
    #[command(flatten)]
    place: Where,
}

/// What can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ShowCommand {
    /// Circuits with light, being set up, or promised
    Circuits,
    /// Traffic by rack pair
    Demand,
    /// Coflows and their progress
    Coflows,
    /// Ports of the OCS, their counters and faults
    Ports,
    /// The network
    Topology,
    /// The lists of switches that flows take, in a network of several switches
    Paths,
    /// Its switches: load and capacity, and what their ports carried
    Switches,
    /// The queues by priority of all ports, under `network: priority`
    Queues,
    /// The policy in force
    Policy,
    /// Where a task scheduler put tasks, and why: what it expected, and which placements lost; of
    /// placement policies that say it, such as joint
    Decisions,
    /// Counters of the control loop, and what failed
    Stats,
}

impl ShowCommand {
    fn path(self) -> &'static str {
        match self {
            Self::Circuits => "/api/v1/circuits",
            Self::Demand => "/api/v1/demand",
            Self::Coflows => "/api/v1/coflows",
            Self::Ports => "/api/v1/ports",
            Self::Topology => "/api/v1/topology",
            Self::Paths | Self::Switches => "/api/v1/paths",
            Self::Queues => "/api/v1/queues",
            Self::Policy => "/api/v1/policy",
            Self::Decisions => "/api/v1/jobs/decisions",
            Self::Stats => "/api/v1/stats",
        }
    }
}

impl ShowCommand {
    /// What a table of it counts, and what is said if there is nothing.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Circuits => ("circuits that are up, being set up, or promised", "no circuits"),
            Self::Demand => (
                "demand: as the last decision saw it; sent, over OCS: since the start; waiting: now",
                "no traffic between racks",
            ),
            Self::Coflows => ("coflows by id; received: payload", "no coflows"),
            Self::Ports => (
                "ports of the OCS; bytes and packets since the start",
                "no ports: the network has no optical plane",
            ),
            Self::Paths => (
                "lists of switches between hosts",
                "no lists of switches: no coflow sends between hosts, and none was set by hand",
            ),
            Self::Switches => (
                "switches and their ports; rate: now; bytes, packets, drops: since the start",
                "no switches but one, which has no limits",
            ),
            Self::Queues => (
                "queues through which something went since the start",
                "nothing went through any queue, or there are no priorities",
            ),
            Self::Decisions => (
                "where tasks were put, and below each decision the placements that lost",
                "no decisions: no scheduler has reported any",
            ),
            Self::Stats => ("the control loop since the start", ""),
            Self::Topology | Self::Policy => ("", ""),
        }
    }
}

/// Runs the subcommand.
///
/// # Errors
/// No daemon, no answer in time, or an answer that is an error.
pub fn run(args: &Args) -> Result<(), CliError> {
    if args.what != ShowCommand::Decisions && (args.job.is_some() || args.stage.is_some()) {
        return Err(CliError::Usage("--job and --stage are about decisions".into()));
    }
    let client = args.place.client()?;
    let mut before = None;
    let Some(every) = args.watch else {
        return print(&look(args, &client, &mut before)?);
    };
    // On a terminal, each look replaces the last one; in a pipe, they follow each other.
    let clear = if std::io::stdout().is_terminal() { "\x1b[H\x1b[2J" } else { "" };
    loop {
        let text = look(args, &client, &mut before)?;
        write_stdout(clear).and_then(|()| print(&text))?;
        std::thread::sleep(every.max(Span::millis(10)).std());
    }
}

/// One look, as text, and what the next one compares with. The API has hosts by number; the
/// topology has their names.
fn look(
    args: &Args,
    client: &Client,
    before: &mut Option<wire::Demand>,
) -> Result<String, CliError> {
    let answer = client.get(&path(args))?;
    let names = if args.what == ShowCommand::Paths { host_names(client)? } else { vec![] };
    let mut text = render(args.what, args.output, &answer, &names)?;
    if args.output == OutputFormat::Table {
        match args.what {
            ShowCommand::Circuits if parse::<wire::Circuits>(&answer)?.circuits.is_empty() => {
                text += &were_set(&parse(&client.get(ShowCommand::Stats.path())?)?)
            }
            ShowCommand::Demand => {
                let now: wire::Demand = parse(&answer)?;
                text += &before
                    .replace(now.clone())
                    .map_or_else(String::new, |before| rates(&before, &now));
            }
            _ => {}
        }
    }
    Ok(text)
}

/// Where what is to be shown is found.
fn path(args: &Args) -> String {
    let stage = args.stage.map(|n| n.to_string());
    let asked = [("job", args.job.as_ref()), ("stage", stage.as_ref())];
    let given = asked.iter().filter_map(|(key, value)| Some((key, (*value)?)));
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(given).finish();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{}{mark}{query}", args.what.path())
}

/// Circuits may be shorter than the time between two looks: how many there were.
fn were_set(s: &wire::Stats) -> String {
    match s.circuits_set {
        0 => "none was set since the start\n".into(),
        n => format!(
            "{} set since the start; `heliostat run --events` writes each down, and the page shows them over time\n",
            several(n as usize, "circuit")
        ),
    }
}

/// What was sent between two looks, by pair of racks, in bits per second.
fn rates(before: &wire::Demand, now: &wire::Demand) -> String {
    let seconds = now.now_ns.saturating_sub(before.now_ns) as f64 / 1e9;
    let cell = |m: &[Vec<u64>], i: usize, j: usize| {
        m.get(i).and_then(|row| row.get(j)).copied().unwrap_or(0)
    };
    let gained = |now: &[Vec<u64>], before: &[Vec<u64>], i, j| {
        cell(now, i, j).saturating_sub(cell(before, i, j))
    };
    let told =
        |bytes: u64| BitRate((bytes as f64 * 8.0 / seconds / 1e5) as u64 * 100_000).to_string();
    let mut rows = TextTable::new(&["from", "to", "rate", "over OCS"]);
    let racks = now.sent_bytes.len();
    for (i, j) in (0..racks).flat_map(|i| (0..racks).map(move |j| (i, j))) {
        let sent = gained(&now.sent_bytes, &before.sent_bytes, i, j);
        if sent > 0 && seconds > 0.0 {
            let ocs = gained(&now.over_ocs_bytes, &before.over_ocs_bytes, i, j);
            rows.rows.push(vec![
                RackId::from(i).to_string(),
                RackId::from(j).to_string(),
                told(sent),
                percent(ocs as f64 / sent as f64),
            ]);
        }
    }
    let since = span(Span(now.now_ns.saturating_sub(before.now_ns) / 1_000_000 * 1_000_000));
    if rows.rows.is_empty() {
        format!("nothing was sent in the last {since}\n")
    } else {
        format!("\n in the last {since}\n{}\n", rows.table())
    }
}

/// The names of a network's hosts, by number.
pub(super) fn host_names(client: &Client) -> Result<Vec<String>, CliError> {
    let topology: wire::Topology = parse(&client.get(ShowCommand::Topology.path())?)?;
    Ok(topology.hosts.into_iter().map(|h| h.name).collect())
}

/// What a host is called.
pub(super) fn host_name(names: &[String], host: u32) -> String {
    names.get(host as usize).map_or_else(|| host.to_string(), Clone::clone)
}

/// An answer of the API as text. JSON stays as it came, with line breaks. `names` are those of
/// hosts by number, where they are shown.
fn render(
    what: ShowCommand,
    output: OutputFormat,
    answer: &str,
    names: &[String],
) -> Result<String, CliError> {
    if output == OutputFormat::Json {
        let value: serde_json::Value = parse(answer)?;
        return Ok(serde_json::to_string_pretty(&value).expect("a JSON value is plain data") + "\n");
    }
    let exact = output == OutputFormat::Csv;
    let rows = match what {
        ShowCommand::Circuits => answers::circuits(&parse(answer)?, exact),
        ShowCommand::Demand => answers::demand(&parse(answer)?, exact),
        ShowCommand::Coflows => answers::coflows(&parse(answer)?, exact),
        ShowCommand::Ports => answers::ports(&parse(answer)?, exact),
        ShowCommand::Topology if exact => answers::hosts(&parse(answer)?),
        ShowCommand::Topology => answers::topology(&parse(answer)?),
        ShowCommand::Paths => answers::paths(&parse(answer)?, names, exact),
        ShowCommand::Switches => answers::switches(&parse(answer)?, exact),
        ShowCommand::Queues => answers::queues(&parse(answer)?, exact),
        ShowCommand::Policy => answers::policy(&parse(answer)?),
        ShowCommand::Decisions => answers::decisions(&parse(answer)?, exact),
        ShowCommand::Stats => answers::stats(&parse(answer)?, exact),
    };
    if exact {
        return Ok(rows.csv());
    }
    let now = serde_json::from_str::<AnswerTime>(answer).ok().map(|c| Time(c.now_ns));
    let at = now.map_or_else(String::new, |t| {
        format!("{} after the daemon's start", tables::span(Span(t.0 / 1_000_000 * 1_000_000)))
    });
    let (counted, nothing) = what.words();
    if rows.rows.is_empty() {
        return Ok(if at.is_empty() {
            format!("{nothing}\n")
        } else {
            format!("{nothing}, {at}\n")
        });
    }
    let caption = if counted.is_empty() { String::new() } else { format!(" {at}: {counted}\n") };
    Ok(caption + &rows.table() + "\n")
}

/// When an answer was true.
#[derive(serde::Deserialize)]
struct AnswerTime {
    now_ns: u64,
}

fn parse<T: DeserializeOwned>(answer: &str) -> Result<T, CliError> {
    serde_json::from_str(answer).map_err(|e| {
        CliError::Failed(format!("the daemon's answer is not one of this version's: {e}"))
    })
}

#[cfg(test)]
mod tests;
