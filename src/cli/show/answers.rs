//! Answers of the API as tables: rounded for people, exact for programs.

use super::host_name;
use crate::api::wire;
use crate::cli::tables::{TextTable, bytes, percent, span};
use crate::ids::RackId;
use crate::units::{BitRate, Bytes, Span, Time};

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

fn header(exact: bool, people: &[&'static str], programs: &[&'static str]) -> TextTable {
    TextTable::new(if exact { programs } else { people })
}

pub(in crate::cli) fn circuits(c: &wire::Circuits, exact: bool) -> TextTable {
    let people =
        ["plane", "input", "output", "state", "by hand", "set up at", "light from", "until"];
    let programs =
        ["plane", "input", "output", "state", "manual", "setup_at_ns", "up_from_ns", "until_ns"];
    let mut rows = header(exact, &people, &programs);
    // Most networks have none that was set by hand.
    let by_hand = exact || c.circuits.iter().any(|c| c.manual);
    if !by_hand {
        rows = TextTable::new(&people.into_iter().filter(|p| *p != "by hand").collect::<Vec<_>>());
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
pub(super) fn demand(d: &wire::Demand, exact: bool) -> TextTable {
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

pub(super) fn coflows(c: &wire::Coflows, exact: bool) -> TextTable {
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

pub(super) fn ports(p: &wire::Ports, exact: bool) -> TextTable {
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

pub(super) fn hosts(t: &wire::Topology) -> TextTable {
    let mut rows = TextTable::new(&["host", "rack", "slots", "nic_bps", "rack_uplink_bps"]);
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

pub(super) fn topology(t: &wire::Topology) -> TextTable {
    let mut rows = TextTable::new(&["topology", "value"]);
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

pub(super) fn paths(p: &wire::Paths, names: &[String], exact: bool) -> TextTable {
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
pub(super) fn switches(p: &wire::Paths, exact: bool) -> TextTable {
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
pub(super) fn queues(q: &wire::Queues, exact: bool) -> TextTable {
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

pub(super) fn policy(p: &serde_json::Value) -> TextTable {
    let mut rows = TextTable::new(&["policy", "value"]);
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

pub(super) fn stats(s: &wire::Stats, exact: bool) -> TextTable {
    let mut rows = TextTable::new(&["stat", "value"]);
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

/// Where tasks were put, and which placements lost.
pub(super) fn decisions(all: &wire::Decisions, exact: bool) -> TextTable {
    let name = |job: u32| {
        let found = all.jobs.iter().find(|j| j.id == job);
        found.map_or_else(|| job.to_string(), |j| j.name.clone())
    };
    crate::cli::decisions::table(&all.decisions, name, exact)
}
