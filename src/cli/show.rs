//! `heliostat show`: what a running daemon sees, through REST.

use std::io::IsTerminal;

use serde::de::DeserializeOwned;

use super::client::Where;
use super::numbers::several;
use super::tables::{self, Rows, bytes, percent, span};
use super::{CliError, Output, print, write_stdout};
use crate::api::wire;
use crate::client::Client;
use crate::ids::RackId;
use crate::units::{BitRate, Bytes, Span, Time};

/// Shows what a running daemon sees: circuits, demand, coflows, ports, topology, paths, switches,
/// queues, policy, stats
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// What to show
    #[arg(value_enum)]
    what: What,
    /// What is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    /// Shows it again and again, until interrupted; with a length of time, that often
    #[arg(short, long, value_name = "EVERY", num_args = 0..=1, require_equals = true, default_missing_value = "1s")]
    watch: Option<Span>,
    #[command(flatten)]
    place: Where,
}

/// What can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum What {
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
    /// Counters of the control loop, and what failed
    Stats,
}

impl What {
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
            Self::Stats => "/api/v1/stats",
        }
    }
}

impl What {
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
    let answer = client.get(args.what.path())?;
    let names = if args.what == What::Paths { host_names(client)? } else { vec![] };
    let mut text = render(args.what, args.output, &answer, &names)?;
    if args.output == Output::Table {
        match args.what {
            What::Circuits if parse::<wire::Circuits>(&answer)?.circuits.is_empty() => {
                text += &were_set(&parse(&client.get(What::Stats.path())?)?)
            }
            What::Demand => {
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
    let mut rows = Rows::new(&["from", "to", "rate", "over OCS"]);
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
    let topology: wire::Topology = parse(&client.get(What::Topology.path())?)?;
    Ok(topology.hosts.into_iter().map(|h| h.name).collect())
}

/// What a host is called.
pub(super) fn host_name(names: &[String], host: u32) -> String {
    names.get(host as usize).map_or_else(|| host.to_string(), Clone::clone)
}

/// An answer of the API as text. JSON stays as it came, with line breaks. `names` are those of
/// hosts by number, where they are shown.
fn render(what: What, output: Output, answer: &str, names: &[String]) -> Result<String, CliError> {
    if output == Output::Json {
        let value: serde_json::Value = parse(answer)?;
        return Ok(serde_json::to_string_pretty(&value).expect("a JSON value is plain data") + "\n");
    }
    let exact = output == Output::Csv;
    let rows = match what {
        What::Circuits => circuits(&parse(answer)?, exact),
        What::Demand => demand(&parse(answer)?, exact),
        What::Coflows => coflows(&parse(answer)?, exact),
        What::Ports => ports(&parse(answer)?, exact),
        What::Topology if exact => hosts(&parse(answer)?),
        What::Topology => topology(&parse(answer)?),
        What::Paths => paths(&parse(answer)?, names, exact),
        What::Switches => switches(&parse(answer)?, exact),
        What::Queues => queues(&parse(answer)?, exact),
        What::Policy => policy(&parse(answer)?),
        What::Stats => stats(&parse(answer)?, exact),
    };
    if exact {
        return Ok(rows.csv());
    }
    let now = serde_json::from_str::<Clock>(answer).ok().map(|c| Time(c.now_ns));
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
struct Clock {
    now_ns: u64,
}

fn parse<T: DeserializeOwned>(answer: &str) -> Result<T, CliError> {
    serde_json::from_str(answer).map_err(|e| {
        CliError::Failed(format!("the daemon's answer is not one of this version's: {e}"))
    })
}

/// A quantity for people, or as it is.
fn quantity(exact: bool, value: u64, show: impl Fn(u64) -> String) -> String {
    if exact { value.to_string() } else { show(value) }
}

fn data(exact: bool, b: u64) -> String {
    quantity(exact, b, |b| bytes(Bytes(b)))
}

fn length(exact: bool, ns: u64) -> String {
    quantity(exact, ns, |ns| span(Span(ns)))
}

fn instant(exact: bool, ns: u64) -> String {
    quantity(exact, ns, |ns| Time(ns).to_string())
}

/// Nothing: a dash for people, an empty cell for programs.
fn or_none<T>(exact: bool, value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or_else(|| if exact { String::new() } else { "-".into() }, show)
}

fn header(exact: bool, people: &[&'static str], programs: &[&'static str]) -> Rows {
    Rows::new(if exact { programs } else { people })
}

pub(super) fn circuits(c: &wire::Circuits, exact: bool) -> Rows {
    let people =
        ["plane", "input", "output", "state", "by hand", "set up at", "light from", "until"];
    let programs =
        ["plane", "input", "output", "state", "manual", "setup_at_ns", "up_from_ns", "until_ns"];
    let mut rows = header(exact, &people, &programs);
    // Most networks have none that was set by hand.
    let by_hand = exact || c.circuits.iter().any(|c| c.manual);
    if !by_hand {
        rows = Rows::new(&people.into_iter().filter(|p| *p != "by hand").collect::<Vec<_>>());
    }
    for c in &c.circuits {
        let state = match c.state {
            wire::CircuitState::Promised => "promised",
            wire::CircuitState::SettingUp => "setting-up",
            wire::CircuitState::Up => "up",
        };
        let manual = if exact {
            c.manual.to_string()
        } else {
            if c.manual { "yes" } else { "" }.to_string()
        };
        rows.rows.push(vec![
            c.plane.to_string(),
            RackId(c.input).to_string(),
            RackId(c.output).to_string(),
            state.into(),
            manual,
            instant(exact, c.setup_at_ns),
            instant(exact, c.up_from_ns),
            or_none(exact, c.until_ns, |t| instant(exact, t)),
        ]);
        if !by_hand {
            rows.rows.last_mut().expect("one was added").remove(4);
        }
    }
    rows
}

/// The pairs of racks that have anything.
fn demand(d: &wire::Demand, exact: bool) -> Rows {
    let people = ["from", "to", "demand", "sent", "over OCS", "waiting"];
    let programs = ["from", "to", "demand_bytes", "sent_bytes", "over_ocs_bytes", "backlog_bytes"];
    let mut rows = header(exact, &people, &programs);
    let matrices = [&d.demand_bytes, &d.sent_bytes, &d.over_ocs_bytes, &d.backlog_bytes];
    let racks = d.sent_bytes.len();
    for (i, j) in (0..racks).flat_map(|i| (0..racks).map(move |j| (i, j))) {
        let cells = matrices.map(|m| m.get(i).and_then(|row| row.get(j)).copied().unwrap_or(0));
        if cells.iter().any(|&c| c > 0) {
            let cells = cells.map(|c| data(exact, c));
            rows.rows.push(
                [i, j].map(|r| RackId::from(r).to_string()).into_iter().chain(cells).collect(),
            );
        }
    }
    rows
}

fn coflows(c: &wire::Coflows, exact: bool) -> Rows {
    let people = [
        "coflow",
        "id",
        "state",
        "pairs",
        "bytes",
        "received",
        "OCS share",
        "arrival",
        "CCT",
        "bound",
    ];
    let programs = [
        "name",
        "id",
        "state",
        "pairs",
        "asked_bytes",
        "received_bytes",
        "over_ocs_bytes",
        "arrival_ns",
        "cct_ns",
        "bound_ns",
    ];
    let mut rows = header(exact, &people, &programs);
    for c in &c.coflows {
        let share = c.over_ocs_bytes as f64 / c.received_bytes.max(1) as f64;
        rows.rows.push(vec![
            c.name.clone(),
            c.id.to_string(),
            c.state.name().into(),
            c.pairs.len().to_string(),
            data(exact, c.asked_bytes),
            data(exact, c.received_bytes),
            quantity(exact, c.over_ocs_bytes, |_| percent(share)),
            instant(exact, c.arrival_ns),
            or_none(exact, c.cct_ns, |t| length(exact, t)),
            length(exact, c.bound_ns),
        ]);
    }
    rows
}

fn ports(p: &wire::Ports, exact: bool) -> Rows {
    let people = [
        "plane",
        "rack",
        "sends to",
        "receives from",
        "crossed",
        "packets",
        "sent back",
        "misdelivered",
        "fault",
    ];
    let programs = [
        "plane",
        "rack",
        "sends_to",
        "receives_from",
        "crossed_bytes",
        "crossed_packets",
        "late_packets",
        "misdelivered_packets",
        "faulty",
    ];
    let mut rows = header(exact, &people, &programs);
    for p in &p.ports {
        rows.rows.push(vec![
            p.plane.to_string(),
            RackId(p.rack).to_string(),
            or_none(exact, p.sends_to, |r| RackId(r).to_string()),
            or_none(exact, p.receives_from, |r| RackId(r).to_string()),
            data(exact, p.crossed_bytes),
            p.crossed_packets.to_string(),
            p.late_packets.to_string(),
            p.misdelivered_packets.to_string(),
            p.faulty.clone().unwrap_or_default(),
        ]);
    }
    rows
}

fn hosts(t: &wire::Topology) -> Rows {
    let mut rows = Rows::new(&["host", "rack", "slots", "nic_bps", "rack_uplink_bps"]);
    for h in &t.hosts {
        let uplink = t.racks.get(h.rack as usize).map_or(0, |r| r.uplink_bps);
        rows.rows.push(vec![
            h.name.clone(),
            RackId(h.rack).to_string(),
            h.slots.to_string(),
            h.nic_bps.to_string(),
            uplink.to_string(),
        ]);
    }
    rows
}

fn topology(t: &wire::Topology) -> Rows {
    let mut rows = Rows::new(&["topology", "value"]);
    let mut row = |name: String, value: String| rows.rows.push(vec![name, value]);
    row("name".into(), t.name.clone());
    row("racks".into(), t.racks.len().to_string());
    row("hosts".into(), t.hosts.len().to_string());
    row("task slots".into(), t.hosts.iter().map(|h| u64::from(h.slots)).sum::<u64>().to_string());
    row("NIC".into(), range(t.hosts.iter().map(|h| h.nic_bps)));
    row("EPS uplink of a rack".into(), range(t.racks.iter().map(|r| r.uplink_bps)));
    row("oversubscription".into(), format!("{}:1", t.oversubscription_percent as f64 / 100.0));
    for p in &t.planes {
        let stop = if p.all_stop { "all-stop" } else { "not-all-stop" };
        let duplex = if p.duplex { "duplex" } else { "simplex" };
        row(
            format!("OCS plane {}", p.id),
            format!("{}, delta {}, {stop}, {duplex}", BitRate(p.rate_bps), Span(p.delta_ns)),
        );
    }
    rows
}

fn paths(p: &wire::Paths, names: &[String], exact: bool) -> Rows {
    let people = ["from", "to", "flow", "switches", "decided by", "held", "bytes", "rate"];
    let programs = ["from", "to", "ports", "switches", "by", "held", "bytes", "rate_bps"];
    let typed = p.paths.iter().any(|p| !p.types.is_empty() || p.types_unmet);
    let with = |names: [&'static str; 8], more: &[&'static str]| {
        [&names[..], if typed { more } else { &[] }].concat()
    };
    let mut rows =
        header(exact, &with(people, &["types"]), &with(programs, &["types", "types_unmet"]));
    for p in &p.paths {
        let by = match p.by {
            wire::DecidedBy::Default => "default",
            wire::DecidedBy::Policy => "policy",
            wire::DecidedBy::Manual => "manual",
        };
        rows.rows.push(vec![
            host_name(names, p.from),
            host_name(names, p.to),
            p.ports.map_or_else(
                || if exact { String::new() } else { "all".into() },
                |f| format!("{}:{}", f.from, f.to),
            ),
            p.switches.join(if exact { " " } else { " > " }),
            by.into(),
            if exact { p.held.to_string() } else { if p.held { "yes" } else { "not yet" }.into() },
            data(exact, p.bytes),
            rate(exact, p.rate_bps),
        ]);
        let types = || p.types.iter().map(|t| t.name()).collect::<Vec<_>>().join(" ");
        if let (true, Some(row)) = (typed, rows.rows.last_mut()) {
            row.extend(match exact {
                true => vec![types(), p.types_unmet.to_string()],
                false => {
                    vec![format!("{}{}", types(), if p.types_unmet { " (not met)" } else { "" })]
                }
            });
        }
    }
    rows
}

/// A row a switch, with the sums of its ports, and below it a row a port; for programs a row a
/// port, or one where none is measured.
fn switches(p: &wire::Paths, exact: bool) -> Rows {
    let people = [
        "switch", "tier", "pairs", "load", "capacity", "to", "rate", "sends", "bytes", "packets",
        "drops",
    ];
    let programs = [
        "switch",
        "tier",
        "pairs",
        "load_bps",
        "capacity_bps",
        "to",
        "link",
        "rate_bps",
        "sent_bps",
        "bytes",
        "packets",
        "drops",
        "backlog_bytes",
    ];
    let mut rows = header(exact, &people, &programs);
    for s in &p.switches {
        let capacity = or_none(exact, s.capacity_bps, |c| rate(exact, c));
        let own = vec![
            s.name.clone(),
            s.tier.clone(),
            s.pairs.to_string(),
            rate(exact, s.load_bps),
            capacity,
        ];
        let measured = |sent: u64, bytes: u64| vec![rate(exact, sent), data(exact, bytes)];
        let port = |q: &wire::SwitchPort| {
            let link = exact.then(|| q.link.map_or_else(String::new, |l| l.to_string()));
            let waits = exact.then(|| q.backlog_bytes.to_string());
            let counted = [q.packets.to_string(), q.drops.to_string()];
            let begin = [q.to.clone()].into_iter().chain(link).chain([rate(exact, q.rate_bps)]);
            begin
                .chain(measured(q.sent_bps, q.bytes))
                .chain(counted)
                .chain(waits)
                .collect::<Vec<_>>()
        };
        let sum = |f: fn(&wire::SwitchPort) -> u64| s.ports.iter().map(f).sum::<u64>();
        match (exact, s.ports.is_empty()) {
            (_, true) => {
                rows.rows.push([own, vec![String::new(); if exact { 8 } else { 6 }]].concat())
            }
            (true, false) => {
                rows.rows.extend(s.ports.iter().map(|q| [own.clone(), port(q)].concat()))
            }
            (false, false) => {
                let all = measured(sum(|q| q.sent_bps), sum(|q| q.bytes));
                let counted = vec![sum(|q| q.packets).to_string(), sum(|q| q.drops).to_string()];
                rows.rows.push([own, vec!["all".into(), String::new()], all, counted].concat());
                rows.rows
                    .extend(s.ports.iter().map(|q| [vec![String::new(); 5], port(q)].concat()));
            }
        }
    }
    rows
}

/// A row a queue; for people without those through which nothing went.
fn queues(q: &wire::Queues, exact: bool) -> Rows {
    let people = ["node", "port", "to", "rate", "priority", "bytes", "packets", "drops", "waits"];
    let programs = [
        "node",
        "port",
        "to",
        "rate_bps",
        "priority",
        "bytes",
        "packets",
        "drops",
        "backlog_bytes",
    ];
    let mut rows = header(exact, &people, &programs);
    for p in &q.ports {
        for q in p.queues.iter().filter(|q| exact || q.packets + q.drops + q.backlog_bytes > 0) {
            rows.rows.push(vec![
                p.node.clone(),
                p.port.clone(),
                p.to.clone(),
                rate(exact, p.rate_bps),
                q.priority.map_or_else(|| "short".into(), |p| p.to_string()),
                data(exact, q.bytes),
                q.packets.to_string(),
                q.drops.to_string(),
                data(exact, q.backlog_bytes),
            ]);
        }
    }
    rows
}

fn rate(exact: bool, bps: u64) -> String {
    quantity(exact, bps, |b| BitRate(b).to_string())
}

fn range(rates: impl Iterator<Item = u64> + Clone) -> String {
    match (rates.clone().min(), rates.max()) {
        (Some(a), Some(b)) if a == b => BitRate(a).to_string(),
        (Some(a), Some(b)) => format!("{} to {}", BitRate(a), BitRate(b)),
        _ => "-".into(),
    }
}

fn policy(p: &serde_json::Value) -> Rows {
    let mut rows = Rows::new(&["policy", "value"]);
    let text = |v: &serde_json::Value| v.as_str().map_or_else(|| v.to_string(), Into::into);
    for (key, value) in p.as_object().into_iter().flatten() {
        match value.as_object() {
            Some(inner) => {
                rows.rows.extend(inner.iter().map(|(k, v)| vec![format!("{key}.{k}"), text(v)]))
            }
            None => rows.rows.push(vec![key.clone(), text(value)]),
        }
    }
    rows
}

fn stats(s: &wire::Stats, exact: bool) -> Rows {
    let mut rows = Rows::new(&["stat", "value"]);
    let mut row = |name: &str, value: String| rows.rows.push(vec![name.into(), value]);
    // For people, words with spaces, and no rows of what has not happened; for programs, all that
    // there is, by its keys.
    let name = |key: &str| if exact { key.to_owned() } else { key.replace('_', " ") };
    row("mechanism", s.mechanism.clone());
    let always =
        [("cycles", s.cycles), ("late_cycles", s.late_cycles), ("missed_cycles", s.missed_cycles)];
    let probes = [
        ("probes_ok", s.probes_ok),
        ("probes_wrong", s.probes_wrong),
        ("probes_lost", s.probes_lost),
    ];
    let seldom =
        [("fallbacks", s.fallbacks), ("circuits_set", s.circuits_set)].into_iter().chain(probes);
    for (key, n) in always.into_iter().chain(seldom.filter(|(_, n)| exact || *n > 0)) {
        row(&name(key), n.to_string());
    }
    let parts = [("poll", s.poll), ("decide", s.decide), ("apply", s.apply), ("cycle", s.cycle)];
    for (part, q) in
        parts.into_iter().chain([("dark_asked", s.dark_asked), ("dark_achieved", s.dark_achieved)])
    {
        if !exact && q.count > 0 {
            row(
                &format!("{}, p50 / p99 / max", name(part)),
                [q.p50_ns, q.p99_ns, q.max_ns].map(|v| span(Span(v))).join(" / "),
            );
        }
        for (point, v) in
            [("p50", q.p50_ns), ("p99", q.p99_ns), ("max", q.max_ns)].into_iter().filter(|_| exact)
        {
            row(&format!("{part}_{point}_ns"), v.to_string());
        }
    }
    for d in &s.dark_by_plane {
        let (plane, parts) = (d.plane, [("asked", d.asked), ("achieved", d.achieved)]);
        for (part, q) in parts {
            let points = [("p50", q.p50_ns), ("p99", q.p99_ns), ("max", q.max_ns)];
            if exact {
                points.iter().for_each(|(point, v)| {
                    row(&format!("plane_{plane}_dark_{part}_{point}_ns"), v.to_string())
                });
            } else {
                row(
                    &format!("plane {plane}: dark {part}, p50 / p99 / max"),
                    points.map(|p| span(Span(p.1))).join(" / "),
                );
            }
        }
    }
    if let Some(t) = &s.tampered {
        let seconds = |ns: u64| span(Span(ns));
        row(
            "tampered with",
            format!(
                "from {} until {}, {} times; first: {}",
                seconds(t.from_ns),
                seconds(t.until_ns),
                t.found,
                t.what
            ),
        );
    }
    if exact || !s.failures.is_empty() {
        row("failures", s.failures.len().to_string());
    }
    for f in &s.failures {
        row(&f.what, format!("{} ({} times)", f.why, f.attempts));
    }
    rows
}

#[cfg(test)]
mod tests;
