//! `/metrics`: the newest snapshot in the OpenMetrics text format, in base units.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use super::listeners::{Listener, Listeners};
use crate::control::histogram::Histogram;
use crate::control::record::{CircuitState, ProposalState, Snapshot};
use crate::demand::DemandMatrix;
use crate::fabric::{PortTo, SwitchPort};
use crate::ids::RackId;
use crate::runtime::journal::{JournalStatus, Journaled};
use crate::units::Span;

/// The snapshot as text, and what was counted of clients and of the journal.
pub fn text(snapshot: Arc<Snapshot>, doors: Arc<Listeners>, journal: Option<Journaled>) -> String {
    let mut registry = Registry::with_prefix("heliostat");
    registry.register_collector(Box::new(SnapshotMetrics(snapshot)));
    registry
        .register_collector(Box::new(ClientMetrics { doors, journal: journal.map(|j| j.written) }));
    let mut out = String::new();
    // Writing into a string cannot fail.
    let _ = encode(&mut out, &registry);
    out
}

/// The same in Prometheus' older text format (0.0.4), where a counter's family has the name of its
/// samples, and units and ends are unknown.
pub fn older(text: &str) -> String {
    let word = |line: &str, k: usize| line.split(' ').nth(k).unwrap_or_default().to_owned();
    let counters: std::collections::BTreeSet<String> = text
        .lines()
        .filter(|l| l.starts_with("# TYPE ") && l.ends_with(" counter"))
        .map(|l| word(l, 2))
        .collect();
    let of = |line: &str| match line.split_once(' ').map(|(hash, _)| hash) {
        Some("#") if line.starts_with("# HELP ") || line.starts_with("# TYPE ") => {
            let name = word(line, 2);
            let line = if counters.contains(&name) {
                line.replacen(&name, &format!("{name}_total"), 1)
            } else {
                line.into()
            };
            let line = line
                .strip_suffix(" unknown")
                .filter(|_| line.starts_with("# TYPE "))
                .map_or(line.clone(), |l| format!("{l} untyped"));
            Some(line + "\n")
        }
        Some("#") => None,
        _ => Some(format!("{line}\n")),
    };
    text.lines().filter_map(of).collect()
}

#[derive(Debug)]
struct SnapshotMetrics(Arc<Snapshot>);

type Result = std::result::Result<(), std::fmt::Error>;

impl Collector for SnapshotMetrics {
    fn encode(&self, encoder: DescriptorEncoder) -> Result {
        let mut w = MetricsWriter(encoder);
        self.control(&mut w)?;
        self.ports(&mut w)?;
        self.racks(&mut w)?;
        self.switches(&mut w)?;
        self.coflows(&mut w)
    }
}

impl SnapshotMetrics {
    fn control(&self, w: &mut MetricsWriter) -> Result {
        let s = &self.0.stats;
        w.counter("cycles", "Control cycles decided", None, s.cycles)?;
        w.counter(
            "late_cycles",
            "Cycles whose decision came too late for its instant",
            None,
            s.late_cycles,
        )?;
        w.counter(
            "missed_cycles",
            "Deadlines skipped because a cycle outlasted them",
            None,
            s.missed_cycles,
        )?;
        w.counter(
            "fallbacks",
            "Cycles that a fallback decided, since the program of the scheduler external did not",
            None,
            s.fallbacks,
        )?;
        w.counter("circuits_set", "Circuits set up", None, s.circuits_set)?;
        let probes = [("ok", s.probes_ok), ("wrong", s.probes_wrong), ("lost", s.probes_lost)];
        let probes = probes.map(|(result, n)| ([("result", result.to_string())], n));
        w.counters("probes", "Circuit probes by result", None, probes)?;
        let h = &self.0.histograms;
        let parts =
            [("poll", &h.poll), ("decide", &h.decide), ("apply", &h.apply), ("all", &h.cycle)];
        w.histograms("cycle_duration", "Time that the parts of a cycle take", "part", &parts)?;
        let dark = [("asked", &h.dark_asked), ("achieved", &h.dark_achieved)];
        w.histograms("dark_time", "Dark time of reconfigurations", "kind", &dark)?;
        let found = self.0.tampered.as_ref().map_or(0, |t| t.found);
        w.counter(
            "damage",
            "Things of the network that another process removed, took down or changed",
            None,
            found,
        )?;
        w.gauge(
            "failures",
            "Things that failed and are being retried",
            self.0.failures.len() as u64,
        )
    }

    fn ports(&self, w: &mut MetricsWriter) -> Result {
        let count = |state| self.0.circuits.iter().filter(|c| c.state == state).count() as u64;
        let states = [
            ("promised", CircuitState::Promised),
            ("setting-up", CircuitState::SettingUp),
            ("up", CircuitState::Up),
        ];
        let states = states.map(|(name, state)| ([("state", name.to_string())], count(state)));
        w.gauges("circuits", "Circuits by state", states)?;
        w.gauge(
            "faulty_ports",
            "Ports of the OCS that are not used: a probe found them faulty, or they are down",
            self.0.ports.iter().filter(|p| p.faulty.is_some()).count() as u64,
        )?;
        let ports = || {
            self.0.ports.iter().map(|p| {
                ([("plane", p.plane.0.to_string()), ("rack", p.rack.0.to_string())], p.counters)
            })
        };
        let bytes = ports().map(|(l, c)| (l, c.crossed_bytes));
        w.counters(
            "port_crossed",
            "Bytes that crossed the OCS to the right rack, by input port",
            Some(Unit::Bytes),
            bytes,
        )?;
        let packets = ports().map(|(l, c)| (l, c.crossed_packets));
        w.counters(
            "port_crossed_packets",
            "Packets that crossed the OCS to the right rack",
            None,
            packets,
        )?;
        w.counters(
            "port_late_packets",
            "Packets that came after their circuit had ended and went back to their ToR",
            None,
            ports().map(|(l, c)| (l, c.late_packets)),
        )?;
        let wrong = ports().map(|(l, c)| (l, c.misdelivered));
        w.counters(
            "port_misdelivered_packets",
            "Packets that came out at a wrong rack",
            None,
            wrong,
        )
    }

    fn racks(&self, w: &mut MetricsWriter) -> Result {
        let rows = |m: &DemandMatrix| {
            let row = |i| m.row(RackId::from(i)).iter().fold(0u64, |a, &b| a.saturating_add(b));
            (0..m.racks()).map(|i| ([("rack", i.to_string())], row(i))).collect::<Vec<_>>()
        };
        w.counters(
            "rack_sent",
            "Bytes sent to other racks",
            Some(Unit::Bytes),
            rows(&self.0.sent),
        )?;
        w.counters(
            "rack_over_ocs",
            "Of the bytes sent, those over circuits",
            Some(Unit::Bytes),
            rows(&self.0.over_ocs),
        )?;
        w.gauges(
            "rack_backlog_bytes",
            "Bytes that wait at the rack's senders",
            rows(&self.0.backlog),
        )?;
        w.gauges("rack_demand_bytes", "Demand that the last decision saw", rows(&self.0.demand))
    }

    /// Ports of packet switches, as they were read last.
    fn switches(&self, w: &mut MetricsWriter) -> Result {
        let (Some(seen), paths) = (&self.0.switches, &self.0.paths) else { return Ok(()) };
        let name = |s: u32| {
            paths
                .as_ref()
                .and_then(|p| p.switches.get(s as usize))
                .map_or_else(|| s.to_string(), |s| s.name.clone())
        };
        let to = |to| match to {
            PortTo::Rack(r) => format!("rack {}", r.0),
            PortTo::Switch { cable, switch } => format!("{} by link {cable}", name(switch)),
        };
        let port = |p: &SwitchPort, s: u32| [("switch", name(s)), ("to", to(p.to))];
        let ports =
            || seen.switches.iter().flat_map(|s| s.ports.iter().map(|p| (port(p, s.switch), *p)));
        let bytes = ports().map(|(l, p)| (l, p.bytes));
        w.counters(
            "switch_port_sent",
            "Bytes that left by the port of a packet switch",
            Some(Unit::Bytes),
            bytes,
        )?;
        w.counters(
            "switch_port_sent_packets",
            "Packets that left by it",
            None,
            ports().map(|(l, p)| (l, p.packets)),
        )?;
        w.counters(
            "switch_port_dropped_packets",
            "Packets that found no room in its queue",
            None,
            ports().map(|(l, p)| (l, p.drops)),
        )?;
        w.gauges(
            "switch_port_backlog_bytes",
            "Bytes that wait in its queue",
            ports().map(|(l, p)| (l, p.backlog)),
        )
    }

    fn coflows(&self, w: &mut MetricsWriter) -> Result {
        let totals = self.0.coflows.totals;
        w.counter(
            "coflows_finished",
            "Coflows whose last byte was received",
            None,
            totals.finished,
        )?;
        w.counter(
            "coflows_cancelled",
            "Coflows that were taken back, or broke",
            None,
            totals.cancelled,
        )?;
        w.histogram(
            "cct",
            "Completion times of coflows that have finished",
            &self.0.histograms.cct,
        )?;
        w.gauge("coflows_active", "Coflows that are not finished", self.0.coflows.open as u64)?;
        let held =
            self.0.proposals.iter().filter(|p| p.state == ProposalState::Held).count() as u64;
        w.gauge("proposals_held", "Coflows that are proposed and held, not confirmed", held)
    }
}

/// What the daemon counts of its clients, and of its records on disk.
struct ClientMetrics {
    doors: Arc<Listeners>,
    journal: Option<Arc<JournalStatus>>,
}

impl std::fmt::Debug for ClientMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> Result {
        f.write_str("Served")
    }
}

impl Collector for ClientMetrics {
    fn encode(&self, encoder: DescriptorEncoder) -> Result {
        let mut w = MetricsWriter(encoder);
        let by_door = |value: fn(&Listener) -> u64| {
            self.doors.all().map(|d| ([("over", d.name.to_string())], value(d)))
        };
        w.gauges(
            "api_connections",
            "Connections to the API that are open",
            by_door(Listener::open),
        )?;
        w.gauges(
            "api_connections_most",
            "Connections that are admitted at once; more wait",
            by_door(|d| d.limits.connections as u64),
        )?;
        w.gauges("api_event_streams", "Event streams that are open", by_door(Listener::streaming))?;
        w.counters(
            "api_event_streams_refused",
            "Event streams that found no room",
            None,
            by_door(Listener::refused),
        )?;
        let times = self.doors.all().map(|d| (d.name, d.times()));
        let times = times.iter().flat_map(|(over, t)| {
            t.iter().map(|(kind, h)| ([("over", *over), ("kind", *kind)], h))
        });
        w.histograms_by(
            "api_request_duration",
            "Time until a request was answered, once its head was read",
            times,
        )?;
        let written = self.journal.as_deref();
        w.gauge(
            "journal_bytes",
            "Size of the file of the journal; 0 without one",
            written.map_or(0, |j| j.bytes.load(Relaxed)),
        )?;
        let missing = written.map_or(0, |j| j.missing.load(Relaxed));
        w.counter(
            "journal_missing_events",
            "Events that no file of the journal will have",
            None,
            missing,
        )?;
        w.gauge(
            "journal_lost_coflows",
            "Coflows that were open when the daemon before this one ended",
            written.map_or(0, |j| j.lost),
        )
    }
}

struct MetricsWriter<'a>(DescriptorEncoder<'a>);

impl MetricsWriter<'_> {
    fn counter(&mut self, name: &str, help: &str, unit: Option<&Unit>, value: u64) -> Result {
        let metric = ConstCounter::new(value);
        metric.encode(self.0.encode_descriptor(name, help, unit, metric.metric_type())?)
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) -> Result {
        let metric = ConstGauge::new(clamp(value));
        metric.encode(self.0.encode_descriptor(name, help, None, metric.metric_type())?)
    }

    fn counters<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        values: impl IntoIterator<Item = ([(&'static str, String); N], u64)>,
    ) -> Result {
        let kind = ConstCounter::new(0u64).metric_type();
        let mut family = self.0.encode_descriptor(name, help, unit.as_ref(), kind)?;
        values
            .into_iter()
            .try_for_each(|(labels, v)| ConstCounter::new(v).encode(family.encode_family(&labels)?))
    }

    fn gauges<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = ([(&'static str, String); N], u64)>,
    ) -> Result {
        let kind = ConstGauge::new(0i64).metric_type();
        let mut family = self.0.encode_descriptor(name, help, None, kind)?;
        values.into_iter().try_for_each(|(labels, v)| {
            ConstGauge::new(clamp(v)).encode(family.encode_family(&labels)?)
        })
    }

    /// Durations by ranges, in seconds.
    fn histograms(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        all: &[(&str, &Histogram)],
    ) -> Result {
        self.histograms_by(name, help, all.iter().map(|&(value, h)| ([(label, value)], h)))
    }

    /// The same with any labels.
    fn histograms_by<'h, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        all: impl IntoIterator<Item = ([(&'static str, &'h str); N], &'h Histogram)>,
    ) -> Result {
        let mut family =
            self.0.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
        all.into_iter().try_for_each(|(labels, h)| write(h, family.encode_family(&labels)?))
    }

    /// The same of one distribution, without a label.
    fn histogram(&mut self, name: &str, help: &str, h: &Histogram) -> Result {
        write(h, self.0.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?)
    }
}

fn write(h: &Histogram, mut to: MetricEncoder) -> Result {
    let ranges = h.ranges().map(|(most, n)| (most.map_or(f64::INFINITY, Span::as_secs_f64), n));
    to.encode_histogram::<NoLabelSet>(
        h.sum().as_secs_f64(),
        h.count(),
        &ranges.collect::<Vec<_>>(),
        None,
    )
}

/// Gauges are signed.
fn clamp(v: u64) -> i64 {
    i64::try_from(v).unwrap_or(i64::MAX)
}
