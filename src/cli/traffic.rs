//! `heliostat traffic`: bulk flows and requests with responses between hosts of a running network,
//! sent by Heliostat's own senders.
//!
//! Each transfer is a coflow that is posted over REST, so that the controller sees it as it sees
//! any other, and results are those of runs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::caveats::Allow;
use super::client::Where;
use super::tables::{self, TextTable};
use super::{
    CliError, OutputFormat, can_write, interrupt, origin, outcome, print, summary, write_text,
};
use crate::api::wire;
use crate::client::counters::ControllerCounters;
use crate::client::remote::Remote;
use crate::client::{Client, parse};
use crate::coflows::{CoflowRecord, CoflowSpec, FlowSpec};
use crate::config;
use crate::ids::{CoflowId, HostId};
use crate::runtime::jobs::live::{JobsNetwork as _, NetworkEvent};
use crate::runtime::report::caveats::Given;
use crate::runtime::report::{ResultNames, ResultOrigin, RunEnd, RunResult};
use crate::runtime::spans::percentile;
use crate::topology::Topology;
use crate::units::{BitRate, Bytes, Span, Time};

/// Sends traffic between hosts of a running network, and shows what became of it: times, rates,
/// share over circuits
///
/// Transfers are coflows that the running network sends itself, marked as elephants are. Ctrl-C
/// takes back what is on its way; the rest counts.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: TrafficCommand,
    #[command(flatten)]
    place: Where,
}

#[derive(clap::Subcommand, Clone, Debug)]
enum TrafficCommand {
    /// Bulk transfers from hosts to hosts
    Bulk {
        /// Payload of a transfer
        #[arg(long, default_value = "100MB")]
        bytes: Bytes,
        /// Flows, each of its own connection, among which a transfer's payload is divided
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
        flows: u32,
        #[command(flatten)]
        load: TrafficArgs,
    },
    /// Requests from hosts to hosts, each with a response to come back once it has arrived
    Requests {
        /// Payload of a request
        #[arg(long, default_value = "1kB")]
        request: Bytes,
        /// Payload of a response
        #[arg(long, default_value = "100kB")]
        response: Bytes,
        #[command(flatten)]
        load: TrafficArgs,
    },
}

/// Between whom, how often, and what is shown
#[derive(clap::Args, Clone, Debug)]
struct TrafficArgs {
    /// FROM:TO by the names of hosts, such as h0-0:h3-1; one or more
    #[arg(required = true, value_name = "FROM:TO")]
    pairs: Vec<String>,
    /// How many of each pair, one after another [default: 1; with --duration, no limit]
    #[arg(long, value_name = "N", value_parser = crate::cli::numbers::positive)]
    count: Option<u64>,
    /// No new ones begin after this time, such as 10s
    #[arg(long, value_name = "TIME")]
    duration: Option<Span>,
    /// How many of each pair are on their way at once
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    open: u32,
    /// What is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    allow: Allow,
    /// Writes the whole result to this file, in the form of a run's
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What is sent between two hosts: transfers one after another.
struct TrafficPair {
    name: String,
    /// Of each exchange: its transfers, each as flows.
    steps: Vec<Vec<FlowSpec>>,
}

/// What became of a pair's exchanges.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct PairResult {
    from: String,
    to: String,
    /// Exchanges that finished: transfers, or requests with their responses.
    finished: usize,
    unfinished: usize,
    /// Payload of those that finished.
    bytes: Bytes,
    /// Of those that finished: the time that their transfers were on their way.
    p50_ns: Span,
    p90_ns: Span,
    p99_ns: Span,
    max_ns: Span,
    /// Payload over that time.
    rate_bps: BitRate,
    /// Share of the bytes between racks that went over circuits, 0..=1.
    ocs_share: f64,
}

/// The result of a run, and a row a pair.
#[derive(Clone, Debug, Serialize)]
struct TrafficReport {
    #[serde(flatten)]
    run: RunResult,
    traffic: Vec<PairResult>,
}

/// Runs the subcommand.
///
/// # Errors
/// No network, hosts that it does not have, a file that cannot be written, or transfers that broke.
pub fn run(args: &Args) -> Result<(), CliError> {
    let (TrafficCommand::Bulk { load, .. } | TrafficCommand::Requests { load, .. }) = &args.what;
    can_write(&load.json)?;
    let client = Arc::new(args.place.client_to_change()?);
    let topology: wire::Topology = parse(&client.get("/api/v1/topology")?)?;
    let topology = Topology::try_from(&topology)
        .map_err(|why| CliError::Failed(format!("the daemon's network: {why}")))?;
    let pairs = load
        .pairs
        .iter()
        .map(|text| args.what.pair(text, &topology))
        .collect::<Result<Vec<TrafficPair>, _>>()?;
    let stop = Arc::new(AtomicBool::new(false));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|e| CliError::Failed(format!("start the runtime: {e}")))?;
    runtime.spawn(interrupt::wait_for_signal(stop.clone(), (PathBuf::new(), Vec::new)));
    let (report, broken) = send(&client, &topology, &pairs, load, &stop)?;
    print(&show(&report, load.output))?;
    load.json.as_ref().map_or(Ok(()), |file| write_text(file, &tables::json(&report)))?;
    match broken {
        Some(why) => Err(CliError::Failed(why)),
        None if stop.load(Relaxed) => {
            Err(CliError::Failed("interrupted; what had finished by then is printed above".into()))
        }
        None => load.allow.accept(&report.run.policy, &report.run.caveats),
    }
}

impl TrafficCommand {
    /// What `FROM:TO` stands for.
    fn pair(&self, text: &str, topology: &Topology) -> Result<TrafficPair, CliError> {
        let bad = |why: String| {
            CliError::Usage(format!("{text}: {why}; write FROM:TO, such as h0-0:h1-0"))
        };
        let host = |name: &str| {
            topology
                .host_by_name(name)
                .ok_or_else(|| bad(format!("{} has no host {name}", topology.name)))
        };
        let (from, to) = text.split_once(':').ok_or_else(|| bad("no `:`".into()))?;
        let (from, to) = (host(from)?, host(to)?);
        if from == to {
            return Err(bad("two hosts are needed".into()));
        }
        let steps = match *self {
            Self::Bulk { bytes, flows, .. } => vec![divided(from, to, bytes, flows)],
            Self::Requests { request, response, .. } => {
                vec![divided(from, to, request, 1), divided(to, from, response, 1)]
            }
        };
        if steps.iter().any(Vec::is_empty) {
            return Err(CliError::Usage("nothing to send: sizes are above zero".into()));
        }
        Ok(TrafficPair { name: text.into(), steps })
    }
}

/// Bytes as flows that are as equal as they can be; none is empty.
fn divided(from: HostId, to: HostId, bytes: Bytes, flows: u32) -> Vec<FlowSpec> {
    let (each, more) = (bytes.0 / u64::from(flows), bytes.0 % u64::from(flows));
    let sizes = (0..u64::from(flows)).map(|k| Bytes(each + u64::from(k < more)));
    sizes.filter(|b| *b > Bytes::ZERO).map(|bytes| FlowSpec { from, to, bytes }).collect()
}

/// Transfers that follow each other: the numbers of their coflows.
struct Exchange {
    pair: usize,
    coflows: Vec<CoflowId>,
}

/// Posts the exchanges, as each may begin.
struct ExchangeSender<'a> {
    remote: Remote,
    pairs: &'a [TrafficPair],
    begun: Instant,
    /// By the coflow that is on its way.
    open: BTreeMap<CoflowId, Exchange>,
    ended: Vec<Exchange>,
    next: u32,
}

impl ExchangeSender<'_> {
    /// Sends the next transfer of an exchange.
    fn step(&mut self, mut exchange: Exchange) -> Result<(), String> {
        let pair = &self.pairs[exchange.pair];
        let id = CoflowId(self.next);
        self.next += 1;
        let flows = pair.steps[exchange.coflows.len()].clone();
        let arrival = Time(self.begun.elapsed().as_nanos() as u64);
        let spec = CoflowSpec::new(id, pair.name.clone(), arrival, flows);
        exchange.coflows.push(id);
        self.open.insert(id, exchange);
        self.remote.start(&spec)
    }

    /// Sends all that is asked for, until `stop`.
    fn all(&mut self, load: &TrafficArgs, stop: &AtomicBool) -> Result<(), String> {
        let most = load.count.unwrap_or(if load.duration.is_some() { u64::MAX } else { 1 });
        let mut left = vec![most; self.pairs.len()];
        let mut begin = |it: &mut Self, pair: usize| {
            let late = load.duration.is_some_and(|d| it.begun.elapsed() >= d.std());
            if left[pair] == 0 || late || stop.load(Relaxed) {
                return Ok(());
            }
            left[pair] -= 1;
            it.step(Exchange { pair, coflows: vec![] })
        };
        for pair in 0..self.pairs.len() {
            (0..load.open).try_for_each(|_| begin(self, pair))?;
        }
        while !self.open.is_empty() && !stop.load(Relaxed) {
            let Some(NetworkEvent::Coflow(id)) = self.remote.next(LOOK)? else { continue };
            let Some(exchange) = self.open.remove(&id) else { continue };
            let pair = exchange.pair;
            if exchange.coflows.len() < self.pairs[pair].steps.len() {
                self.step(exchange)?;
            } else {
                self.ended.push(exchange);
                begin(self, pair)?;
            }
        }
        Ok(())
    }
}

/// Time between two looks at whether to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Sends everything; what came of it, and why it ended early if something broke.
fn send(
    client: &Arc<Client>,
    topology: &Topology,
    pairs: &[TrafficPair],
    load: &TrafficArgs,
    stop: &AtomicBool,
) -> Result<(TrafficReport, Option<String>), CliError> {
    let policy = config::read_policy(&client.get("/api/v1/policy")?, "the daemon's policy")?;
    let origin =
        ResultOrigin { settings: config::settings(&policy), ..origin::of(None, None, None) };
    let (before, origin) = (ControllerCounters::read(client)?, origin::here_and_now(&origin));
    let remote = Remote::new(client.clone())?;
    let mut s = ExchangeSender {
        remote,
        pairs,
        begun: Instant::now(),
        open: BTreeMap::new(),
        ended: vec![],
        next: 0,
    };
    let mut broken = s.all(load, stop).err();
    let ended = Time(s.begun.elapsed().as_nanos() as u64);
    broken = s.remote.close().err().map(|e| e.to_string()).or(broken);
    let counted = ControllerCounters::settled(client)?.since(&before, ended);
    let utilisation = match before.utilisation_since(client) {
        Ok(u) => Some(u),
        Err(e) => {
            broken = broken.or(Some(e.to_string()));
            None
        }
    };
    s.remote.note_ended()?;
    let coflows = s.remote.coflows(topology);
    let traffic = pairs.iter().enumerate().map(|(k, p)| of_pair(k, p, &s, &coflows)).collect();
    let policy = policy.policy.name;
    let of = ResultNames {
        mechanism: before.mechanism(),
        topology: &topology.name,
        policy: &policy,
        workload: "traffic",
    };
    let run = RunResult::new(of, coflows, counted, s.remote.received());
    let end =
        if stop.load(Relaxed) || broken.is_some() { RunEnd::Stopped } else { RunEnd::Finished };
    let run = RunResult { origin, end, zero: Some(before.at()), utilisation, ..run }
        .judged(&Given::default());
    Ok((TrafficReport { run, traffic }, broken))
}

fn of_pair(
    number: usize,
    pair: &TrafficPair,
    s: &ExchangeSender,
    coflows: &[CoflowRecord],
) -> PairResult {
    let of = |e: &&Exchange| e.pair == number;
    let whole: Vec<Vec<&CoflowRecord>> = s
        .ended
        .iter()
        .filter(of)
        .map(|e| e.coflows.iter().map(|id| &coflows[id.index()]).collect())
        .collect();
    let times: Vec<Span> = whole
        .iter()
        .filter_map(|steps| {
            steps.iter().map(|c| c.cct).try_fold(Span::ZERO, |sum, cct| Some(sum + cct?))
        })
        .collect();
    let (bytes, between): (Bytes, Bytes) = (
        whole.iter().flatten().map(|c| c.bytes).sum(),
        whole.iter().flatten().map(|c| c.bytes_between_racks).sum(),
    );
    let over: f64 =
        whole.iter().flatten().map(|c| c.ocs_share * c.bytes_between_racks.0 as f64).sum();
    let seconds: f64 = times.iter().map(|t| t.as_secs_f64()).sum();
    let (from, to) = pair.name.split_once(':').unwrap_or_default();
    PairResult {
        from: from.into(),
        to: to.into(),
        finished: times.len(),
        unfinished: s.open.values().filter(of).count() + whole.len() - times.len(),
        bytes,
        p50_ns: percentile(&times, 50),
        p90_ns: percentile(&times, 90),
        p99_ns: percentile(&times, 99),
        max_ns: percentile(&times, 100),
        rate_bps: BitRate((bytes.0 as f64 * 8.0 / seconds.max(1e-9)) as u64),
        ocs_share: over / (between.0 as f64).max(1.0),
    }
}

fn show(r: &TrafficReport, output: OutputFormat) -> String {
    match output {
        OutputFormat::Json => tables::json(r),
        OutputFormat::Csv => rows(&r.traffic, true).csv(),
        OutputFormat::Table => {
            let (pairs, sums) =
                (rows(&r.traffic, false).table(), summary::summary(&r.run.summary).table());
            format!(
                "{pairs}\n\n{}\n{sums}\n{}",
                summary::caption(&r.run),
                outcome::caveats(&r.run.caveats)
            )
        }
    }
}

fn rows(pairs: &[PairResult], exact: bool) -> TextTable {
    let people = [
        "from",
        "to",
        "finished",
        "unfinished",
        "bytes",
        "p50",
        "p90",
        "p99",
        "max",
        "rate",
        "OCS share",
    ];
    let programs = [
        "from",
        "to",
        "finished",
        "unfinished",
        "bytes",
        "p50_ns",
        "p90_ns",
        "p99_ns",
        "max_ns",
        "rate_bps",
        "ocs_share",
    ];
    let mut rows = TextTable::new(if exact { &programs } else { &people });
    for p in pairs {
        let times = [p.p50_ns, p.p90_ns, p.p99_ns, p.max_ns].map(|t| tables::length(exact, t.0));
        let mut row =
            vec![p.from.clone(), p.to.clone(), p.finished.to_string(), p.unfinished.to_string()];
        row.push(if exact { p.bytes.0.to_string() } else { tables::bytes(p.bytes) });
        row.extend(times);
        row.push(if exact {
            p.rate_bps.0.to_string()
        } else {
            BitRate(p.rate_bps.0 / 100_000 * 100_000).to_string()
        });
        row.push(if exact { format!("{:.6}", p.ocs_share) } else { tables::percent(p.ocs_share) });
        rows.rows.push(row);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_is_divided_and_nothing_is_lost() {
        let sizes = |bytes, flows| {
            divided(HostId(0), HostId(1), Bytes(bytes), flows)
                .iter()
                .map(|f| f.bytes.0)
                .collect::<Vec<_>>()
        };
        assert_eq!((sizes(10, 3), sizes(2, 3), sizes(0, 1)), (vec![4, 3, 3], vec![1, 1], vec![]));
    }
}
