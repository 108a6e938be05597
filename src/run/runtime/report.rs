//! The result of a run, live or simulated: the same columns, so that the two can be compared coflow
//! by coflow.

pub mod caveats;
pub mod form;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use caveats::Caveat;

use crate::coflows::CoflowRecord;
use crate::control::record::{Snapshot, Stats, Tampered};
use crate::fabric::meter::Utilisation;
use crate::runtime::spans::SpanList;
use crate::units::{Bytes, Span, Time};

/// Everything that a run measured; what `--json` writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunResult {
    /// Where the result comes from.
    pub origin: ResultOrigin,
    /// `timed`, `netlink` or `sim`.
    pub mechanism: String,
    /// How a simulation carried the flows: `sunflow`, `pairs`, `links`, `queues`, `ordered` or
    /// `sums` ([`crate::sim::Model`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Name of the topology.
    pub topology: String,
    /// Name of the policy.
    pub policy: String,
    /// Name of the workload.
    pub workload: String,
    /// TCP congestion control (`-` in simulation).
    pub congestion: String,
    /// Whether the run went outside the scale that this machine can really carry.
    pub forced: bool,
    /// Why the run ended.
    #[serde(default)]
    pub end: RunEnd,
    /// The instant, by the daemon's clock and its event log, from which this result counts its
    /// times; only of live runs.
    #[serde(default, rename = "zero_ns", skip_serializing_if = "Option::is_none")]
    pub zero: Option<Time>,
    /// Since when, and until when, another process changed the network under the run: what was
    /// measured may not be what it says.
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
    /// The machine: of live runs what it is and what it did; of simulations what the run took, if
    /// asked for. All else is the same on every machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<RunMachine>,
    /// Why the run is not, or not wholly, what its name says; empty if nothing speaks against it.
    #[serde(default)]
    pub caveats: Vec<Caveat>,
}

/// Where a result comes from: whether two results are of the same inputs can be told from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Origin")]
pub struct ResultOrigin {
    /// Heliostat's version.
    pub version: String,
    /// What was drawn, was drawn from this; absent of live runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// SHA-256 of the topology's file in hexadecimal; absent if it was read from no file, or from a
    /// pipe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology_sha256: Option<String>,
    /// The same of the policy's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_sha256: Option<String>,
    /// The same of the file of the workload or the jobs; absent of mixes, which the seed decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_sha256: Option<String>,
    /// What ends of flows left was shared again at multiples of this only; absent of live runs, and
    /// where it was shared at once.
    #[serde(default, rename = "resolution_ns", skip_serializing_if = "Option::is_none")]
    pub resolution: Option<Span>,
    /// Options of the command that the result depends on, such as `scale`, as they were given; not
    /// the seed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// The policy: all its keys with their values, also those that its file leaves out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Name of the machine. Simulations have it, and `started_at`, only if asked for: all else is
    /// the same on every machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// When the run began, in UTC (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
}

impl Default for ResultOrigin {
    /// This version, and nothing else.
    fn default() -> Self {
        let version = env!("CARGO_PKG_VERSION").into();
        let (topology_sha256, policy_sha256, workload_sha256) = Default::default();
        let (options, settings, seed, resolution, host, started_at) = Default::default();
        Self {
            version,
            seed,
            topology_sha256,
            policy_sha256,
            workload_sha256,
            resolution,
            options,
            settings,
            host,
            started_at,
        }
    }
}

/// What a run was of.
#[derive(Clone, Copy, Debug)]
pub struct ResultNames<'a> {
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
    /// A run that has ended by itself: its coflows by id, what was counted, and what was received
    /// of the coflows.
    pub fn new(
        of: ResultNames<'_>,
        coflows: Vec<CoflowRecord>,
        counted: impl Into<FabricCounts>,
        received: Bytes,
    ) -> Self {
        let sums = coflows.iter().collect();
        Self::summed(of, coflows, sums, counted, received)
    }

    /// The same where sums are over more coflows than are listed.
    pub fn summed(
        of: ResultNames<'_>,
        coflows: Vec<CoflowRecord>,
        sums: Tally,
        counted: impl Into<FabricCounts>,
        received: Bytes,
    ) -> Self {
        let counted = counted.into();
        Self {
            origin: ResultOrigin::default(),
            mechanism: of.mechanism.into(),
            model: None,
            topology: of.topology.into(),
            policy: of.policy.into(),
            workload: of.workload.into(),
            congestion: "-".into(),
            forced: false,
            end: RunEnd::Finished,
            zero: None,
            tampered: counted.tampered.clone(),
            events: None,
            summary: Summary::of(sums, counted, received),
            coflows,
            utilisation: None,
            machine: None,
            caveats: vec![],
        }
    }
}

/// Why a run ended. All but the first leave a result in part.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "End")]
pub enum RunEnd {
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

/// The machine of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Machine")]
pub struct RunMachine {
    /// Wall-clock time of the run, without reading files and writing results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Events of a simulation in a second of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events_per_second: Option<f64>,
    /// Release of the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Model of the processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// Number of processors that may be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<usize>,
    /// Git revision of the sources from which this binary was built, where the build knew it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// What the machine did during a live run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<MachineUse>,
}

/// What a machine did during a live run: shares of the processors' time, 0..=1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Busy")]
pub struct MachineUse {
    /// What other programs took.
    #[serde(rename = "others_share")]
    pub others: f64,
    /// What the host of a virtual machine took away.
    #[serde(rename = "stolen_share")]
    pub stolen: f64,
    /// Share of the run in which something waited for a processor (`/proc/pressure/cpu`); absent
    /// where the kernel does not say.
    #[serde(rename = "waited_for_cpu_share", default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<f64>,
    /// The same for memory.
    #[serde(rename = "waited_for_memory_share", default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<f64>,
    /// The same for disks.
    #[serde(rename = "waited_for_io_share", default, skip_serializing_if = "Option::is_none")]
    pub io: Option<f64>,
}

/// Share of the processors' time that other programs may take: beyond it, what is measured says
/// nothing of the machine.
pub const MOST_OF_OTHERS: f64 = 0.1;

impl RunMachine {
    /// The speed of a run of `events` events.
    pub fn new(events: u64, took: std::time::Duration) -> Self {
        let seconds = took.as_secs_f64();
        let events_per_second = Some(events as f64 / seconds.max(1e-9));
        Self { seconds: Some(seconds), events_per_second, ..Self::default() }
    }

    /// That others took more of the processors than may be, if they did.
    pub fn busy(&self) -> Option<String> {
        let MachineUse { others, stolen, .. } = self.load?;
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let taken = match (others >= MOST_OF_OTHERS, stolen >= MOST_OF_OTHERS) {
            (true, true) => format!(
                "{} busy with other programs, {} stolen by the host",
                percent(others),
                percent(stolen)
            ),
            (false, true) => format!("{} stolen by the host", percent(stolen)),
            _ if others + stolen >= MOST_OF_OTHERS => {
                format!("{} busy with other programs", percent(others + stolen))
            }
            _ => return None,
        };
        Some(format!("processors: {taken}"))
    }
}

/// The sums of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Summary {
    /// Coflows that finished.
    pub finished: usize,
    /// Coflows that did not.
    pub unfinished: usize,
    /// Those that finished and took no time, since they stayed within their hosts: zeros among the
    /// completion times.
    #[serde(default, skip_serializing_if = "crate::units::is_zero")]
    pub took_no_time: u64,
    /// Time from the first arrival to the last finish.
    #[serde(rename = "makespan_ns")]
    pub makespan: Span,
    /// Mean completion time of the finished coflows.
    #[serde(rename = "average_cct_ns")]
    pub average_cct: Span,
    /// Median of their completion times (nearest rank); zero in results of older versions.
    #[serde(rename = "median_cct_ns", default)]
    pub median_cct: Span,
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
    /// Ports of circuit switches that were faulty at the end.
    #[serde(default, skip_serializing_if = "crate::units::is_zero")]
    pub faulty_ports: u64,
    /// When the run ended.
    #[serde(rename = "ended_ns")]
    pub ended: Time,
    /// The control loop's counters.
    pub stats: Stats,
}

/// What a fabric and its control loop counted over a run.
#[derive(Clone, Debug, Default)]
pub struct FabricCounts {
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
    /// Ports of circuit switches that are not used since they are faulty.
    pub faulty_ports: u64,
    /// When the run ended.
    pub ended: Time,
    /// Since when, and until when, another process changed the network.
    pub tampered: Option<Tampered>,
    /// The control loop's counters.
    pub stats: Stats,
}

impl From<&Snapshot> for FabricCounts {
    fn from(s: &Snapshot) -> Self {
        Self {
            sent: Bytes(s.sent.total()),
            over_ocs: Bytes(s.over_ocs.total()),
            sent_again: None,
            late_packets: s.ports.iter().map(|p| p.counters.late_packets).sum(),
            misdelivered: s.ports.iter().map(|p| p.counters.misdelivered).sum(),
            faulty_ports: s.ports.iter().filter(|p| p.faulty.is_some()).count() as u64,
            ended: s.now,
            tampered: s.tampered.clone(),
            stats: s.stats.clone(),
        }
    }
}

/// What the sums over coflows are made of.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    ccts: SpanList,
    unfinished: usize,
    took_no_time: u64,
    /// First arrival and last finish.
    first: Option<Time>,
    last: Option<Time>,
    asked: Bytes,
}

impl Tally {
    /// Counts a coflow.
    pub fn add(&mut self, c: &CoflowRecord) {
        self.took_no_time += u64::from(c.cct == Some(Span::ZERO));
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
    /// The sums over `coflows`, and what was counted up to the run's end: that of a snapshot if
    /// everything since the start counts. O(n).
    pub fn new(
        coflows: &[CoflowRecord],
        counted: impl Into<FabricCounts>,
        bytes_received: Bytes,
    ) -> Self {
        Self::of(coflows.iter().collect(), counted, bytes_received)
    }

    /// The same of coflows that were counted one by one.
    pub fn of(mut coflows: Tally, counted: impl Into<FabricCounts>, bytes_received: Bytes) -> Self {
        let counted = counted.into();
        let first = coflows.first.unwrap_or(Time::ZERO);
        let last = coflows.last.unwrap_or(first);
        let (sent, over_ocs) = (counted.sent.0, counted.over_ocs.0);
        Self {
            finished: coflows.ccts.len(),
            unfinished: coflows.unfinished,
            took_no_time: coflows.took_no_time,
            makespan: last.since(first),
            average_cct: coflows.ccts.mean(),
            median_cct: coflows.ccts.percentile(50),
            p95_cct: coflows.ccts.percentile(95),
            ocs_share: if sent == 0 { 0.0 } else { over_ocs as f64 / sent as f64 },
            bytes_asked: coflows.asked,
            bytes_received,
            bytes_on_wire: Bytes(sent),
            bytes_sent_again: counted.sent_again,
            late_packets: counted.late_packets,
            misdelivered: counted.misdelivered,
            faulty_ports: counted.faulty_ports,
            ended: counted.ended,
            stats: counted.stats,
        }
    }
}
