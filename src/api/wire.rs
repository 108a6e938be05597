//! The API's own types: what travels as JSON. Racks, planes and coflows are integers, times and spans end in `_ns` (from
//! the run's epoch), amounts of data in `_bytes`, rates in `_bps` (bits per second).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::coflows::RackBytes;
use crate::control::record;
use crate::demand::DemandMatrix;
use crate::ids::{CoflowId, RackId};
use crate::topology;
use crate::units::{Bytes, Span, Time};

/// The network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Topology {
    /// Its name.
    pub name: String,
    /// By id.
    pub racks: Vec<Rack>,
    /// All hosts, rack by rack.
    pub hosts: Vec<Host>,
    /// The worst rack's sum of NICs divided by its uplink, in hundredths.
    pub oversubscription_percent: u64,
    /// The optical planes, by id.
    pub planes: Vec<Plane>,
}

/// A rack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Rack {
    /// Its number.
    pub id: u32,
    /// How many hosts.
    pub hosts: u32,
    /// Rate of its port to the EPS.
    pub uplink_bps: u64,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Host {
    /// Its number over the whole network.
    pub id: u32,
    /// Its name, such as `h3-1`.
    pub name: String,
    /// The rack that it stands in.
    pub rack: u32,
    /// Tasks that it runs at once.
    pub slots: u32,
    /// Rate of its network interface.
    pub nic_bps: u64,
}

/// An optical plane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Plane {
    /// Its number.
    pub id: u32,
    /// Rate of a circuit.
    pub rate_bps: u64,
    /// Reconfiguration delay.
    pub delta_ns: u64,
    /// Whether all its ports go dark when some change.
    pub all_stop: bool,
    /// Whether circuits come in pairs.
    pub duplex: bool,
}

impl From<&topology::Topology> for Topology {
    fn from(t: &topology::Topology) -> Self {
        let host = |h: &topology::Host| Host { id: h.id.0, name: t.host_name(h.id), rack: h.rack.0, slots: h.slots, nic_bps: h.nic.0 };
        let plane = |p: &topology::Plane| Plane {
            id: p.id.0,
            rate_bps: p.rate.0,
            delta_ns: p.delta.0,
            all_stop: p.stop == topology::StopMode::AllStop,
            duplex: p.duplex,
        };
        Self {
            name: t.name.clone(),
            racks: t.racks.iter().map(|r| Rack { id: r.id.0, hosts: r.hosts, uplink_bps: r.uplink.0 }).collect(),
            hosts: t.hosts.iter().map(host).collect(),
            oversubscription_percent: t.eps.oversubscription_percent,
            planes: t.planes.iter().map(plane).collect(),
        }
    }
}

/// All ports of the OCS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ports {
    /// Of the snapshot that they come from; grows with every change.
    pub revision: u64,
    /// When.
    pub now_ns: u64,
    /// By plane, then rack.
    pub ports: Vec<Port>,
}

/// A port of the OCS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Port {
    /// The plane.
    pub plane: u32,
    /// Whose port.
    pub rack: u32,
    /// Where its input goes, if it has light.
    pub sends_to: Option<u32>,
    /// Where its output comes from, if it has light.
    pub receives_from: Option<u32>,
    /// Why it is not used any more, if a probe found it faulty.
    pub faulty: Option<String>,
    /// Packets from this input that crossed to the right rack.
    pub crossed_packets: u64,
    /// Their bytes.
    pub crossed_bytes: u64,
    /// Packets that came to this input while it was dark.
    pub lost_dark_packets: u64,
    /// Packets that would have come out at a wrong rack, and were dropped.
    pub misdelivered_packets: u64,
}

impl From<&record::PortView> for Port {
    fn from(p: &record::PortView) -> Self {
        Self {
            plane: p.plane.0,
            rack: p.rack.0,
            sends_to: p.sends_to.map(|r| r.0),
            receives_from: p.receives_from.map(|r| r.0),
            faulty: p.faulty.clone(),
            crossed_packets: p.counters.crossed_packets,
            crossed_bytes: p.counters.crossed_bytes,
            lost_dark_packets: p.counters.lost_dark,
            misdelivered_packets: p.counters.misdelivered,
        }
    }
}

/// All circuits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Circuits {
    /// Of the snapshot that they come from; grows with every change.
    pub revision: u64,
    /// When.
    pub now_ns: u64,
    /// With light, being set up, or promised.
    pub circuits: Vec<Circuit>,
}

/// A circuit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Circuit {
    /// The plane.
    pub plane: u32,
    /// Sending rack.
    pub input: u32,
    /// Receiving rack.
    pub output: u32,
    /// Whether it carries data now.
    pub state: CircuitState,
    /// Set by hand.
    pub manual: bool,
    /// The mirrors begin to move.
    pub setup_at_ns: u64,
    /// Light.
    pub up_from_ns: u64,
    /// Its end; `null` for an open one.
    pub until_ns: Option<u64>,
}

/// Whether a circuit carries data now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CircuitState {
    /// Its set-up has not begun.
    Promised,
    /// Dark, mirrors moving.
    SettingUp,
    /// Light.
    Up,
}

impl From<&record::CircuitView> for Circuit {
    fn from(c: &record::CircuitView) -> Self {
        Self {
            plane: c.plane.0,
            input: c.input.0,
            output: c.output.0,
            state: match c.state {
                record::CircuitState::Promised => CircuitState::Promised,
                record::CircuitState::SettingUp => CircuitState::SettingUp,
                record::CircuitState::Up => CircuitState::Up,
            },
            manual: c.manual,
            setup_at_ns: c.setup_at.0,
            up_from_ns: c.up_from.0,
            until_ns: c.until.map(|t| t.0),
        }
    }
}

/// Where a circuit that is set by hand shall go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CircuitBody {
    /// Receiving rack.
    pub output: u32,
}

/// Traffic between racks; each matrix has a row for every sending and a column for every receiving rack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Demand {
    /// Of the snapshot that it comes from; grows with every change.
    pub revision: u64,
    /// When.
    pub now_ns: u64,
    /// What the last decision saw.
    pub demand_bytes: Vec<Vec<u64>>,
    /// Sent since the start.
    pub sent_bytes: Vec<Vec<u64>>,
    /// Of those, over circuits.
    pub over_ocs_bytes: Vec<Vec<u64>>,
    /// Waiting at the senders now.
    pub backlog_bytes: Vec<Vec<u64>>,
}

fn rows(m: &DemandMatrix) -> Vec<Vec<u64>> {
    (0..m.racks()).map(|i| m.row(RackId::from(i)).to_vec()).collect()
}

impl From<&record::Snapshot> for Demand {
    fn from(s: &record::Snapshot) -> Self {
        Self {
            revision: s.revision,
            now_ns: s.now.0,
            demand_bytes: rows(&s.demand),
            sent_bytes: rows(&s.sent),
            over_ocs_bytes: rows(&s.over_ocs),
            backlog_bytes: rows(&s.backlog),
        }
    }
}

/// A list of coflows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Coflows {
    /// Of the snapshot that they come from; grows with every change.
    pub revision: u64,
    /// When.
    pub now_ns: u64,
    /// By id.
    pub coflows: Vec<Coflow>,
}

/// A coflow's progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Coflow {
    /// Its number.
    pub id: u32,
    /// What people call it.
    pub name: String,
    /// Whether it is over.
    pub state: CoflowState,
    /// When it arrived.
    pub arrival_ns: u64,
    /// Bytes asked, by rack pair.
    pub pairs: Vec<Pair>,
    /// Their sum.
    pub asked_bytes: u64,
    /// Payload received so far.
    pub received_bytes: u64,
    /// Of the bytes between racks, those over circuits (an estimate where coflows share a pair of racks).
    pub over_ocs_bytes: u64,
    /// When its last byte was received.
    pub finished_ns: Option<u64>,
    /// Coflow completion time.
    pub cct_ns: Option<u64>,
    /// No schedule on this network is faster.
    pub bound_ns: u64,
}

/// Whether a coflow is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CoflowState {
    /// Some of its bytes have not been received.
    Active,
    /// All of them have.
    Finished,
}

/// Bytes from a rack to a rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// Sending rack.
    pub from: u32,
    /// Receiving rack.
    pub to: u32,
    /// Payload.
    pub bytes: u64,
}

impl From<&RackBytes> for Pair {
    fn from(p: &RackBytes) -> Self {
        Self { from: p.from.0, to: p.to.0, bytes: p.bytes.0 }
    }
}
impl From<&Pair> for RackBytes {
    fn from(p: &Pair) -> Self {
        Self { from: RackId(p.from), to: RackId(p.to), bytes: Bytes(p.bytes) }
    }
}

impl From<&record::CoflowView> for Coflow {
    fn from(c: &record::CoflowView) -> Self {
        Self {
            id: c.id.0,
            name: c.name.clone(),
            state: if c.finished.is_some() { CoflowState::Finished } else { CoflowState::Active },
            arrival_ns: c.arrival.0,
            pairs: c.pairs.iter().map(Pair::from).collect(),
            asked_bytes: c.bytes.0,
            received_bytes: c.received.0,
            over_ocs_bytes: c.over_ocs.0,
            finished_ns: c.finished.map(|t| t.0),
            cct_ns: c.cct.map(|s| s.0),
            bound_ns: c.bound.0,
        }
    }
}

/// A coflow that is declared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CoflowBody {
    /// What people call it; `coflow-<id>` if left out. At most 64 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Bytes by rack pair: each pair once, between two racks, above zero.
    pub pairs: Vec<Pair>,
    /// Whether Heliostat sends the bytes itself. If not, its progress is read from the ToRs' counters.
    #[serde(default)]
    pub send: bool,
}

/// Counters of the control loop, and what failed and is being retried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Stats {
    /// Of the snapshot that they come from; grows with every change.
    pub revision: u64,
    /// When.
    pub now_ns: u64,
    /// `timed`, `netlink` or `sim`.
    pub mechanism: String,
    /// Cycles done.
    pub cycles: u64,
    /// Cycles whose decision came too late.
    pub late_cycles: u64,
    /// Deadlines skipped.
    pub missed_cycles: u64,
    /// Circuits set up.
    pub circuits_set: u64,
    /// Time to read the fabric.
    pub poll: Quantiles,
    /// Time to decide.
    pub decide: Quantiles,
    /// Time to carry out.
    pub apply: Quantiles,
    /// The three together.
    pub cycle: Quantiles,
    /// Dark time asked for.
    pub dark_asked: Quantiles,
    /// Dark time that probes saw.
    pub dark_achieved: Quantiles,
    /// Probes that came out where they should.
    pub probes_ok: u64,
    /// Probes that came out elsewhere.
    pub probes_wrong: u64,
    /// Probes that never came out.
    pub probes_lost: u64,
    /// What failed and is being retried.
    pub failures: Vec<Failure>,
}

/// Distribution of a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Quantiles {
    /// How many were measured.
    pub count: u64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Largest.
    pub max_ns: u64,
}

impl From<&record::Quantiles> for Quantiles {
    fn from(q: &record::Quantiles) -> Self {
        Self { count: q.count, p50_ns: q.p50.0, p99_ns: q.p99.0, max_ns: q.max.0 }
    }
}

/// Something that failed, kept until it succeeds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Failure {
    /// What was tried.
    pub what: String,
    /// What was said.
    pub why: String,
    /// How often so far.
    pub attempts: u32,
    /// When it is tried again.
    pub retry_at_ns: u64,
}

impl From<&record::Snapshot> for Stats {
    fn from(s: &record::Snapshot) -> Self {
        let failure =
            |f: &record::Failure| Failure { what: f.what.clone(), why: f.why.clone(), attempts: f.attempts, retry_at_ns: f.retry_at.0 };
        Self {
            revision: s.revision,
            now_ns: s.now.0,
            mechanism: s.mechanism.clone(),
            cycles: s.stats.cycles,
            late_cycles: s.stats.late_cycles,
            missed_cycles: s.stats.missed_cycles,
            circuits_set: s.stats.circuits_set,
            poll: (&s.stats.poll).into(),
            decide: (&s.stats.decide).into(),
            apply: (&s.stats.apply).into(),
            cycle: (&s.stats.cycle).into(),
            dark_asked: (&s.stats.dark_asked).into(),
            dark_achieved: (&s.stats.dark_achieved).into(),
            probes_ok: s.stats.probes_ok,
            probes_wrong: s.stats.probes_wrong,
            probes_lost: s.stats.probes_lost,
            failures: s.failures.iter().map(failure).collect(),
        }
    }
}

/// A line of the event log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Record {
    /// Dense from zero; the id of the server-sent event.
    pub seq: u64,
    /// When.
    pub at_ns: u64,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the fields are those of the API's other types")]
pub enum What {
    /// A cycle decided.
    Cycle { cycle: u64, demand_bytes: u64, ops: usize, late: bool },
    /// A circuit was written.
    CircuitSet { plane: u32, input: u32, output: u32, up_from_ns: u64 },
    /// A circuit's end was set.
    CircuitEnd { plane: u32, input: u32, until_ns: u64 },
    /// A coflow arrived.
    CoflowArrived { id: u32, asked_bytes: u64 },
    /// A coflow's last byte was received.
    CoflowFinished { id: u32, cct_ns: u64 },
    /// A coflow was taken back.
    CoflowCancelled { id: u32 },
    /// A port is not used any more.
    PortFaulty { plane: u32, rack: u32, why: String },
    /// A faulty port is used again.
    PortRepaired { plane: u32, rack: u32 },
    /// Something failed.
    Failed { what: String, why: String },
    /// The policy was replaced.
    PolicyChanged { name: String },
}

impl What {
    /// The name of the server-sent event.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Cycle { .. } => "cycle",
            Self::CircuitSet { .. } => "circuit-set",
            Self::CircuitEnd { .. } => "circuit-end",
            Self::CoflowArrived { .. } => "coflow-arrived",
            Self::CoflowFinished { .. } => "coflow-finished",
            Self::CoflowCancelled { .. } => "coflow-cancelled",
            Self::PortFaulty { .. } => "port-faulty",
            Self::PortRepaired { .. } => "port-repaired",
            Self::Failed { .. } => "failed",
            Self::PolicyChanged { .. } => "policy-changed",
        }
    }
}

impl From<&record::Record> for Record {
    fn from(r: &record::Record) -> Self {
        use record::What as W;
        let (Time(at_ns), seq) = (r.at, r.seq);
        let what = match r.what.clone() {
            W::Cycle { cycle, demand, ops, late } => What::Cycle { cycle, demand_bytes: demand.0, ops, late },
            W::CircuitSet { plane, input, output, up_from } => {
                What::CircuitSet { plane: plane.0, input: input.0, output: output.0, up_from_ns: up_from.0 }
            }
            W::CircuitEnd { plane, input, until } => What::CircuitEnd { plane: plane.0, input: input.0, until_ns: until.0 },
            W::CoflowArrived { id, bytes } => What::CoflowArrived { id: id.0, asked_bytes: bytes.0 },
            W::CoflowFinished { id, cct: Span(cct_ns) } => What::CoflowFinished { id: id.0, cct_ns },
            W::CoflowCancelled { id: CoflowId(id) } => What::CoflowCancelled { id },
            W::PortFaulty { plane, rack, why } => What::PortFaulty { plane: plane.0, rack: rack.0, why },
            W::PortRepaired { plane, rack } => What::PortRepaired { plane: plane.0, rack: rack.0 },
            W::Failed { what, why } => What::Failed { what, why },
            W::PolicyChanged { name } => What::PolicyChanged { name },
        };
        Self { seq, at_ns, what }
    }
}
