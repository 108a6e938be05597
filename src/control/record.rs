//! What the controller tells the world: the [`Snapshot`] that the API shows, and the [`Record`]s of
//! the event log.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::closed::Closed;
pub use super::coflow::CoflowView;
use super::histogram::Histograms;
use super::live::LiveAccounts;
use super::policy::CircuitPolicy;
use super::routes::PathsView;
use super::trouble::Trouble;
use super::used_ids::UsedIds;
use crate::circuits::external::NoAnswer;
use crate::demand::DemandMatrix;
use crate::fabric::{PortCounters, PortQueueCounters, SwitchCounters};
use crate::ids::{CoflowId, FlowId, PlaneId, RackId};
use crate::placement::advisor::{NetworkState, PendingCoflow, Proposal};
use crate::plan::paths::Steer;
use crate::units::{BitRate, Bytes, Span, Time, is_zero};

/// Everything that the API shows, taken at one instant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Snapshot {
    /// Grows with every change.
    pub revision: u64,
    /// When it was taken.
    pub now: Time,
    /// `timed`, `netlink` or `sim`.
    pub mechanism: String,
    /// How circuits are decided now.
    pub policy: CircuitPolicy,
    /// Circuits with light, being set up, or promised.
    pub circuits: Vec<CircuitView>,
    /// By plane, then rack.
    pub ports: Vec<PortView>,
    /// The demand that the last decision saw.
    pub demand: DemandMatrix,
    /// Bytes sent between racks since the start.
    pub sent: DemandMatrix,
    /// Bytes among these that went over circuits.
    pub over_ocs: DemandMatrix,
    /// Bytes waiting at the senders now.
    pub backlog: DemandMatrix,
    /// All coflows that are remembered.
    pub coflows: Coflows,
    /// Coflows that were proposed, by id: held, expired, or confirmed and then in `coflows` too.
    /// The oldest are forgotten.
    pub proposals: Vec<Arc<ProposalView>>,
    /// What is held of the proposals, by id.
    pub held: Vec<Arc<PendingCoflow>>,
    /// What placements are judged by, without coflows: [`Snapshot::standing`] has them.
    pub ground: NetworkState,
    /// Counters of the control loop.
    pub stats: Stats,
    /// Durations by ranges, since the start.
    #[serde(default)]
    pub histograms: Histograms,
    /// The ways of flows through a network of several switches; `None` where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Arc<PathsView>>,
    /// What the ports of packet switches carried, read at most once a second; `None` in virtual
    /// time and before the first reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switches: Option<Arc<SwitchesSeen>>,
    /// What the queues of ports that serve strict priorities carried, read with the switches;
    /// `None` where none do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<Arc<QueuesSeen>>,
    /// What failed and is being retried.
    pub failures: Vec<Failure>,
    /// Since when, and until when, another process has changed the network; `None` if none has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tampered: Option<Tampered>,
}

impl Stats {
    /// The fallback decided a cycle.
    pub(crate) fn fell_back(&mut self, why: &NoAnswer) {
        why.count(&mut self.fallbacks, &mut self.late_answers, &mut self.first_fallback);
    }
}

impl Snapshot {
    /// What placements are judged by. O(open coflows, and the pairs of those that have changed).
    pub fn standing(&self) -> NetworkState {
        standing(self.ground.clone(), &self.coflows.live, self.held.iter().cloned())
    }
}

/// What placements are judged by: `ground`, and all coflows that are open or `held`.
pub(super) fn standing(
    ground: NetworkState,
    live: &LiveAccounts,
    held: impl Iterator<Item = Arc<PendingCoflow>>,
) -> NetworkState {
    let mut coflows = live.to_carry(ground.threshold);
    coflows.extend(held);
    coflows.sort_by_key(|c| c.id);
    NetworkState { coflows, ..ground }
}

/// The network was not as it was built: what was measured meanwhile may not be what it says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tampered {
    /// When that was first found.
    #[serde(rename = "from_ns")]
    pub from: Time,
    /// When it was last found.
    #[serde(rename = "until_ns")]
    pub until: Time,
    /// What was found first.
    pub what: String,
    /// How many things were found, each once however long it lasted.
    pub found: u64,
}

/// The packet switches of a live fabric, as their counters were read last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchesSeen {
    /// When they were read.
    pub at: Time,
    /// Counters by number of the switch. Packets and drops go on where the kernel's 32-bit numbers
    /// begin again.
    pub switches: Vec<SwitchCounters>,
    /// By switch, then port: what left between the last two readings; zero after the first.
    pub rates: Vec<Vec<BitRate>>,
}

/// The queues of a live fabric by strict priority, as their counters were read last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuesSeen {
    /// When they were read.
    pub at: Time,
    /// Hosts' ports, then ToRs', then switches'. Packets and drops go on where the kernel's 32-bit
    /// numbers begin again.
    pub ports: Vec<PortQueueCounters>,
}

/// A circuit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CircuitView {
    /// The plane.
    pub plane: PlaneId,
    /// Sending rack.
    pub input: RackId,
    /// Receiving rack.
    pub output: RackId,
    /// Whether it carries data now.
    pub state: CircuitState,
    /// Whether it was set by hand over the API.
    pub manual: bool,
    /// The mirrors begin to move.
    pub setup_at: Time,
    /// Light.
    pub up_from: Time,
    /// Its end, `None` for an open one.
    pub until: Option<Time>,
}

/// Whether a circuit carries data now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CircuitState {
    /// Its set-up has not begun.
    Promised,
    /// Dark, mirrors moving.
    SettingUp,
    /// Light.
    Up,
}

/// A port of the OCS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortView {
    /// The plane.
    pub plane: PlaneId,
    /// The port's rack.
    pub rack: RackId,
    /// Where its input goes, if it has light.
    pub sends_to: Option<RackId>,
    /// Where its output comes from, if it has light.
    pub receives_from: Option<RackId>,
    /// Why it is not used any more, if a probe found it faulty.
    pub faulty: Option<String>,
    /// Counted since the start.
    pub counters: PortCounters,
}

/// What is remembered of coflows. All of it is shared with the controller and other snapshots until
/// it changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Coflows {
    /// Coflows that are open, and those that have ended and whose bytes are not split between
    /// circuits and EPS yet; by id.
    pub live: LiveAccounts,
    /// How many are open: have neither finished nor been cancelled.
    pub open: usize,
    /// The last that have ended.
    pub closed: Closed,
    /// Counted since the start.
    pub totals: CoflowTotals,
    /// All numbers that were given, those of proposals included.
    pub used: UsedIds,
}

impl Coflows {
    /// All coflows that are remembered: the live ones by id, then the closed ones in the order of
    /// their ends.
    pub fn iter(&self) -> impl Iterator<Item = &CoflowView> {
        self.live.iter().chain(self.closed.iter())
    }

    /// The coflow of this number, if it is remembered.
    pub fn get(&self, id: CoflowId) -> Option<&CoflowView> {
        self.live.get(id).or_else(|| self.closed.get(id))
    }
}

/// Sums over all coflows since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoflowTotals {
    /// Number of coflows whose last byte was received.
    pub finished: u64,
    /// Number of coflows that were taken back, or broke.
    pub cancelled: u64,
    /// Payload between racks that both have received.
    pub received: Bytes,
}

/// A coflow that was proposed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposalView {
    /// Its number.
    pub id: CoflowId,
    /// What people call it.
    pub name: String,
    /// Its weight.
    pub weight: u32,
    /// When it was proposed.
    pub proposed: Time,
    /// Time until which it is held.
    pub expires: Time,
    /// Whether it still is.
    pub state: ProposalState,
    /// Whether its bytes are to be sent once it is confirmed.
    pub send: bool,
    /// What was proposed.
    pub proposal: Arc<Proposal>,
}

/// What became of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProposalState {
    /// Its circuits are kept in mind when others are judged.
    Held,
    /// Its coflow has begun.
    Confirmed,
    /// It was not confirmed in time.
    Expired,
}

/// Distribution of a duration, with three significant digits.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Quantiles {
    /// How many were measured.
    pub count: u64,
    /// Median.
    #[serde(rename = "p50_ns")]
    pub p50: Span,
    /// 99th percentile.
    #[serde(rename = "p99_ns")]
    pub p99: Span,
    /// Largest, exact.
    #[serde(rename = "max_ns")]
    pub max: Span,
}

/// Dark times of the circuits of one plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlaneDark {
    /// The plane's number.
    pub plane: u32,
    /// Dark time asked for, of circuits that were probed.
    pub asked: Quantiles,
    /// Dark time that the probes saw.
    pub achieved: Quantiles,
}

/// Counters of the control loop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Stats {
    /// Cycles done.
    pub cycles: u64,
    /// Cycles whose decision came too late for its instant; each is counted once and none is done
    /// twice.
    pub late_cycles: u64,
    /// Deadlines skipped altogether because a cycle outlasted them.
    pub missed_cycles: u64,
    /// Cycles in which the program of the scheduler `external` gave no answer in time, or a wrong
    /// one, and the fallback decided.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fallbacks: u64,
    /// Cycles among these in which the answer was only late.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late_answers: u64,
    /// Why the fallback decided: the first reason other than a late answer, else the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_fallback: Option<String>,
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
    /// Dark time asked for, of circuits that were probed.
    pub dark_asked: Quantiles,
    /// Dark time that the probes saw.
    pub dark_achieved: Quantiles,
    /// Both by plane, where planes ask for different dark times; else empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dark_by_plane: Vec<PlaneDark>,
    /// Probes that came out where they should.
    pub probes_ok: u64,
    /// Probes that came out elsewhere.
    pub probes_wrong: u64,
    /// Probes that never came out.
    pub probes_lost: u64,
}

/// Something that failed, kept until it succeeds (invariant 3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What was tried.
    pub trouble: Trouble,
    /// Why it failed.
    pub why: String,
    /// Number of attempts so far.
    pub attempts: u32,
    /// When it is tried again.
    #[serde(rename = "retry_at_ns")]
    pub retry_at: Time,
}

/// One line of the event log; also what `/api/v1/events` streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Dense from zero.
    pub seq: u64,
    /// When it happened.
    pub at: Time,
    /// What happened.
    #[serde(flatten)]
    pub what: RecordedEvent,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum RecordedEvent {
    /// A cycle decided.
    Cycle {
        /// Its number.
        cycle: u64,
        /// Total demand that it saw.
        demand: Bytes,
        /// Operations that it asked for.
        ops: usize,
        /// Whether its decision came too late for its instant.
        late: bool,
    },
    /// A circuit was written.
    CircuitSet {
        /// The plane.
        plane: PlaneId,
        /// Sending rack.
        input: RackId,
        /// Receiving rack.
        output: RackId,
        /// When its ports go dark for it.
        setup_at: Time,
        /// When it has light.
        up_from: Time,
        /// When that ends, if it was set at once.
        until: Option<Time>,
        /// Demand of its pair that the last decision saw; logs of older versions do not say it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        demand: Option<Bytes>,
    },
    /// A circuit's end was set, or another one.
    CircuitEnd {
        /// The plane.
        plane: PlaneId,
        /// Sending rack.
        input: RackId,
        /// Which of the port's circuits: the one that has light from here on.
        up_from: Time,
        /// When it goes dark; not after `up_from`: it was taken back.
        until: Time,
    },
    /// A coflow arrived.
    CoflowArrived {
        /// Its number.
        id: CoflowId,
        /// Its bytes.
        bytes: Bytes,
    },
    /// Flows of a coflow have other strict priorities.
    CoflowPrioritised {
        /// Its number.
        id: CoflowId,
        /// Priority of all its flows between racks that have none of their own, if that changed.
        priority: Option<u8>,
        /// How many flows have another one of their own.
        flows: usize,
    },
    /// A flow's last byte was received.
    FlowFinished {
        /// Its coflow.
        id: CoflowId,
        /// Its place in the coflow.
        flow: FlowId,
        /// Payload that its receiver counted.
        bytes: Bytes,
    },
    /// A coflow's last byte was received.
    CoflowFinished {
        /// Its number.
        id: CoflowId,
        /// Its completion time.
        cct: Span,
    },
    /// A coflow was proposed.
    CoflowProposed {
        /// Its number.
        id: CoflowId,
        /// When it would be over.
        finish: Time,
        /// Time until which it is held.
        expires: Time,
    },
    /// A coflow, or a proposal, was taken back.
    CoflowCancelled {
        /// Its number.
        id: CoflowId,
        /// What broke, if no request asked for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// A port is not used any more.
    PortFaulty {
        /// The plane.
        plane: PlaneId,
        /// The port's rack.
        rack: RackId,
        /// What the probe found.
        why: String,
    },
    /// A faulty port is used again: it was mended, or another one explains what its probes found.
    PortRepaired {
        /// The plane.
        plane: PlaneId,
        /// The port's rack.
        rack: RackId,
    },
    /// Flows take other lists of switches.
    Paths {
        /// The lists that are changed.
        lists: Vec<Steer>,
        /// Pairs whose flows no list has room for.
        saturated: usize,
        /// Bytes of all open coflows times the switches that they cross, before.
        before: u64,
        /// The same afterwards.
        after: u64,
    },
    /// Between some hosts of a coflow no list has the types that it asks for, or another coflow's
    /// hold: its flows there cross others.
    TypesUnmet {
        /// The coflow.
        id: CoflowId,
        /// Pairs of hosts where it is so.
        pairs: usize,
    },
    /// Something failed.
    Failed {
        /// What was tried.
        what: String,
        /// Why it failed.
        why: String,
    },
    /// What failed works again, or is not needed any more: of what drivers tell, and of the network
    /// that others changed.
    Recovered {
        /// What was tried.
        what: String,
    },
    /// Something was broken on purpose, or mended.
    Fault {
        /// The fault.
        what: String,
        /// Whether the fault has ended.
        over: bool,
    },
    /// The policy was replaced.
    PolicyChanged {
        /// Its name.
        name: String,
    },
}
