//! The result of a run, live or simulated: the same columns, so that the two can be compared coflow by coflow.

pub mod form;

use serde::{Deserialize, Serialize};

use crate::coflows::{CoflowRecord, CoflowSpec, bounds};
use crate::control::record::{Snapshot, Stats, Tampered};
use crate::fabric::meter::Utilisation;
use crate::runtime::spans::Spans;
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};

/// Everything that a run measured; what `--json` writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunResult {
    /// Where the result comes from.
    pub origin: Origin,
    /// `timed`, `netlink` or `sim`.
    pub mechanism: String,
    /// Name of the topology.
    pub topology: String,
    /// Name of the policy.
    pub policy: String,
    /// Name of the workload.
    pub workload: String,
    /// TCP congestion control (`-` in simulation).
    pub congestion: String,
    /// Whether the run went outside the scale that this machine carries honestly.
    pub forced: bool,
    /// Why the run ended.
    #[serde(default)]
    pub end: End,
    /// The instant, by the daemon's clock and its event log, from which this result counts its times; only of live runs.
    #[serde(default, rename = "zero_ns", skip_serializing_if = "Option::is_none")]
    pub zero: Option<Time>,
    /// Since when, and until when, another process changed the network under the run: what was measured may not be what it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tampered: Option<Tampered>,
    /// Instants at which something happened; only in simulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// Every coflow, by id.
    pub coflows: Vec<CoflowRecord>,
    /// The sums.
    pub summary: Summary,
    /// What links carried over time; of simulations only if asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<Utilisation>,
    /// What the run took on the machine that it ran on, if asked for: all else is the same on every machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
}

/// Where a result comes from: whether two results are of the same inputs can be told from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Origin {
    /// Heliostat's version.
    pub version: String,
    /// What was drawn, was drawn from this; absent of live runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// SHA-256 of the topology's file in hexadecimal; absent if it was read from no file, or from a pipe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology_sha256: Option<String>,
    /// The same of the policy's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_sha256: Option<String>,
    /// The same of the file of the workload or the jobs; absent of mixes, which the seed decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_sha256: Option<String>,
    /// What ends of flows left was shared anew at multiples of this only; absent of live runs, and where it was shared at once.
    #[serde(default, rename = "resolution_ns", skip_serializing_if = "Option::is_none")]
    pub resolution: Option<Span>,
    /// Name of the machine. Simulations have it, and `started_at`, only if asked for: all else is the same on every machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// When the run began, in UTC (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
}

impl Default for Origin {
    /// This version, and nothing else.
    fn default() -> Self {
        let version = env!("CARGO_PKG_VERSION").into();
        let (topology_sha256, policy_sha256, workload_sha256) = Default::default();
        Self { version, seed: None, topology_sha256, policy_sha256, workload_sha256, resolution: None, host: None, started_at: None }
    }
}

/// What a run was of.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// `timed`, `netlink` or `sim`.
    pub mechanism: &'a str,
    /// Name of the topology.
    pub topology: &'a str,
    /// Name of the policy.
    pub policy: &'a str,
    /// Name of the workload.
    pub workload: &'a str,
}

impl RunResult {
    /// A run that has ended by itself: its coflows by id, what was counted, and what was received of the coflows.
    pub fn new(of: Names<'_>, coflows: Vec<CoflowRecord>, counted: impl Into<Counted>, received: Bytes) -> Self {
        let sums = coflows.iter().collect();
        Self::summed(of, coflows, sums, counted, received)
    }

    /// The same where sums are over more coflows than are listed.
    pub fn summed(of: Names<'_>, coflows: Vec<CoflowRecord>, sums: Tally, counted: impl Into<Counted>, received: Bytes) -> Self {
        let counted = counted.into();
        Self {
            origin: Origin::default(),
            mechanism: of.mechanism.into(),
            topology: of.topology.into(),
            policy: of.policy.into(),
            workload: of.workload.into(),
            congestion: "-".into(),
            forced: false,
            end: End::Finished,
            zero: None,
            tampered: counted.tampered.clone(),
            events: None,
            summary: Summary::of(sums, counted, received),
            coflows,
            utilisation: None,
            machine: None,
        }
    }
}

/// Why a run ended. All but the first leave a result in part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Everything had finished.
    #[default]
    Finished,
    /// The time that it was given was over.
    Until,
    /// The run was stopped.
    Stopped,
    /// Nothing could move any more.
    Stuck,
}

/// What a simulation took on its machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Machine {
    /// Wall-clock time of the run, without reading files and writing results.
    pub seconds: f64,
    /// Events a second of that.
    pub events_per_second: f64,
}

impl Machine {
    /// The speed of a run of `events` events.
    pub fn new(events: u64, took: std::time::Duration) -> Self {
        let seconds = took.as_secs_f64();
        Self { seconds, events_per_second: events as f64 / seconds.max(1e-9) }
    }
}

/// The sums of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Summary {
    /// Coflows that finished.
    pub finished: usize,
    /// Coflows that did not.
    pub unfinished: usize,
    /// Time from the first arrival to the last finish.
    #[serde(rename = "makespan_ns")]
    pub makespan: Span,
    /// Mean completion time of the finished coflows.
    #[serde(rename = "average_cct_ns")]
    pub average_cct: Span,
    /// 95th percentile of their completion times (nearest rank).
    #[serde(rename = "p95_cct_ns")]
    pub p95_cct: Span,
    /// Share of all bytes between racks that went over circuits, 0..=1.
    pub ocs_share: f64,
    /// Payload bytes asked.
    #[serde(rename = "asked_bytes")]
    pub bytes_asked: Bytes,
    /// Payload bytes received.
    #[serde(rename = "received_bytes")]
    pub bytes_received: Bytes,
    /// Payload that the ToRs counted on the wire between racks, sent for the first time or again.
    #[serde(rename = "on_wire_bytes")]
    pub bytes_on_wire: Bytes,
    /// Bytes among these that TCP says it sent again; live only.
    #[serde(rename = "sent_again_bytes", default, skip_serializing_if = "Option::is_none")]
    pub bytes_sent_again: Option<Bytes>,
    /// Packets that came after their circuit had ended and went back to their ToR.
    pub late_packets: u64,
    /// Packets that came out at the wrong rack, whose ToR dropped them.
    pub misdelivered: u64,
    /// When the run ended.
    #[serde(rename = "ended_ns")]
    pub ended: Time,
    /// The control loop's counters.
    pub stats: Stats,
}

impl CoflowRecord {
    /// The account of a coflow that finished at `finished` (or not), `ocs_share` of whose bytes between racks went over circuits.
    pub fn new(spec: &CoflowSpec, topology: &Topology, finished: Option<Time>, ocs_share: f64) -> Self {
        let cct = finished.map(|t| t.since(spec.arrival));
        Self { ocs_share, finished, cct, ..Self::unfinished(spec, topology, bounds::hybrid(spec, topology)) }
    }

    /// The account of a coflow that has not finished, and finishes no sooner than its bound.
    pub fn unfinished(spec: &CoflowSpec, topology: &Topology, bound: Span) -> Self {
        Self {
            id: spec.id,
            name: spec.name.clone(),
            flows: spec.flows.len(),
            bytes: spec.bytes(),
            longest_flow: Some(spec.longest_flow()),
            bytes_between_racks: spec.bytes_between_racks(topology),
            ocs_share: 0.0,
            arrival: spec.arrival,
            finished: None,
            cct: None,
            lost: None,
            bound,
        }
    }
}

/// What a fabric and its control loop counted over a run.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// Bytes sent between racks.
    pub sent: Bytes,
    /// Bytes among these that went over circuits.
    pub over_ocs: Bytes,
    /// Bytes among these that TCP sent again, where it says so.
    pub sent_again: Option<Bytes>,
    /// Packets that came after their circuit had ended.
    pub late_packets: u64,
    /// Packets that came out at the wrong rack, whose ToR dropped them.
    pub misdelivered: u64,
    /// When the run ended.
    pub ended: Time,
    /// Since when, and until when, another process changed the network.
    pub tampered: Option<Tampered>,
    /// The control loop's counters.
    pub stats: Stats,
}

impl From<&Snapshot> for Counted {
    fn from(s: &Snapshot) -> Self {
        Self {
            sent: Bytes(s.sent.total()),
            over_ocs: Bytes(s.over_ocs.total()),
            sent_again: None,
            late_packets: s.ports.iter().map(|p| p.counters.late_packets).sum(),
            misdelivered: s.ports.iter().map(|p| p.counters.misdelivered).sum(),
            ended: s.now,
            tampered: s.tampered.clone(),
            stats: s.stats.clone(),
        }
    }
}

/// What the sums over coflows are made of.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    ccts: Spans,
    unfinished: usize,
    /// First arrival and last finish.
    first: Option<Time>,
    last: Option<Time>,
    asked: Bytes,
}

impl Tally {
    /// Counts a coflow.
    pub fn add(&mut self, c: &CoflowRecord) {
        match c.cct {
            Some(cct) => self.ccts.push(cct),
            None => self.unfinished += 1,
        }
        self.first = self.first.into_iter().chain([c.arrival]).min();
        self.last = self.last.max(c.finished);
        self.asked = self.asked.saturating_add(c.bytes);
    }
}

impl<'a> FromIterator<&'a CoflowRecord> for Tally {
    fn from_iter<T: IntoIterator<Item = &'a CoflowRecord>>(all: T) -> Self {
        let mut tally = Self::default();
        all.into_iter().for_each(|c| tally.add(c));
        tally
    }
}

impl Summary {
    /// The sums over `coflows`, and what was counted up to the run's end: that of a snapshot if everything since the start counts.
    /// O(n).
    pub fn new(coflows: &[CoflowRecord], counted: impl Into<Counted>, bytes_received: Bytes) -> Self {
        Self::of(coflows.iter().collect(), counted, bytes_received)
    }

    /// The same of coflows that were counted one by one.
    pub fn of(mut coflows: Tally, counted: impl Into<Counted>, bytes_received: Bytes) -> Self {
        let counted = counted.into();
        let first = coflows.first.unwrap_or(Time::ZERO);
        let last = coflows.last.unwrap_or(first);
        let (sent, over_ocs) = (counted.sent.0, counted.over_ocs.0);
        Self {
            finished: coflows.ccts.len(),
            unfinished: coflows.unfinished,
            makespan: last.since(first),
            average_cct: coflows.ccts.mean(),
            p95_cct: coflows.ccts.percentile(95),
            ocs_share: if sent == 0 { 0.0 } else { over_ocs as f64 / sent as f64 },
            bytes_asked: coflows.asked,
            bytes_received,
            bytes_on_wire: Bytes(sent),
            bytes_sent_again: counted.sent_again,
            late_packets: counted.late_packets,
            misdelivered: counted.misdelivered,
            ended: counted.ended,
            stats: counted.stats,
        }
    }
}
