//! Coflows, declared and watched.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::named::{Amount, HostRef, RackRef};
use crate::coflows::priority::LAST;
use crate::coflows::{CoflowSpec, FlowSpec, RackBytes};
use crate::control::record;
use crate::fabric::FlowProgress;
use crate::ids::RackId;
use crate::units::Bytes;

/// A list of coflows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Coflows {
    /// Revision of the snapshot that they come from; grows with every change.
    pub revision: u64,
    /// Time of the snapshot.
    pub now_ns: u64,
    /// How many coflows have ended since the start, in any way.
    #[serde(default)]
    pub ended: u64,
    /// Whether there are others with larger ids, beyond the `limit` that was asked for.
    #[serde(default)]
    pub more: bool,
    /// The coflows, by id.
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
    pub pairs: Vec<RackPair>,
    /// Their sum.
    pub asked_bytes: u64,
    /// Payload received so far.
    pub received_bytes: u64,
    /// Bytes between racks that went over circuits (an estimate where coflows share a pair of
    /// racks). After the end it may grow for two more control cycles, until the counters of its
    /// last bytes have been read.
    pub over_ocs_bytes: u64,
    /// When its last byte was received.
    pub finished_ns: Option<u64>,
    /// Why it was cancelled, if it broke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Coflow completion time.
    pub cct_ns: Option<u64>,
    /// No schedule on this network is faster.
    pub bound_ns: u64,
    /// The strict priority that was said of its flows between racks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// What was proposed, if it began as a proposal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<super::HeldProposal>,
    /// Whether Heliostat will send the bytes of a proposal itself.
    #[serde(skip)]
    pub send: bool,
    /// Of a coflow that Heliostat sends: its flows, in their order. Lists leave it out, and it is
    /// forgotten some time after the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<Vec<FlowView>>,
}

/// How far a flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FlowView {
    /// Sending host.
    pub from: u32,
    /// Receiving host.
    pub to: u32,
    /// Payload asked.
    pub bytes: u64,
    /// Payload that its receiver has counted.
    pub received_bytes: u64,
    /// When that was all of it.
    pub finished_ns: Option<u64>,
    /// Its strict priority, 0 (first) to 7; it counts where the policy says `network: priority`.
    #[serde(default)]
    pub priority: u8,
}

impl From<&FlowProgress> for FlowView {
    fn from(f: &FlowProgress) -> Self {
        let s = f.spec;
        let finished_ns = f.finished.map(|t| t.0);
        Self {
            from: s.from.0,
            to: s.to.0,
            bytes: s.bytes.0,
            received_bytes: f.received.0,
            finished_ns,
            priority: f.priority.min(LAST),
        }
    }
}

/// Bytes from a host to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Sending host.
    pub from: HostRef,
    /// Receiving host.
    pub to: HostRef,
    /// Payload.
    pub bytes: Amount,
    /// Its own strict priority, 0 (first) to 7; that of its coflow if left out, and within a rack
    /// the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 7)]
    pub priority: Option<u8>,
}

impl Flow {
    /// The flows of a coflow, each with its own priority if it has one.
    pub fn of(coflow: &CoflowSpec) -> Vec<Self> {
        let own = |k: usize| coflow.priorities.flows.get(k).copied().flatten();
        let flow = |(k, f): (usize, FlowSpec)| Self {
            from: HostRef::Number(f.from.0),
            to: HostRef::Number(f.to.0),
            bytes: Amount(f.bytes.0),
            priority: own(k),
        };
        coflow.flows.iter().enumerate().map(flow).collect()
    }
}

/// Whether a coflow is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CoflowState {
    /// Proposed, held for a time, and not confirmed.
    Proposed,
    /// Proposed, and not confirmed in time.
    Expired,
    /// Some of its bytes have not been received.
    Active,
    /// All of its bytes have been received.
    Finished,
    /// Taken back, or its sender's connection broke: what had not been received by then is not
    /// waited for.
    Cancelled,
}

impl CoflowState {
    /// Its name, as the API writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::Expired => "expired",
            Self::Active => "active",
            Self::Finished => "finished",
            Self::Cancelled => "cancelled",
        }
    }
}

impl From<&record::CoflowView> for CoflowState {
    fn from(c: &record::CoflowView) -> Self {
        match (c.finished, c.cancelled) {
            (Some(_), _) => Self::Finished,
            (None, Some(_)) => Self::Cancelled,
            (None, None) => Self::Active,
        }
    }
}

/// Bytes from a rack to a rack, as they are posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PairBody {
    /// Sending rack.
    pub from: RackRef,
    /// Receiving rack.
    pub to: RackRef,
    /// Payload.
    pub bytes: Amount,
}

impl From<&PairBody> for RackBytes {
    fn from(p: &PairBody) -> Self {
        Self { from: RackId(p.from.0), to: RackId(p.to.0), bytes: Bytes(p.bytes.0) }
    }
}
impl From<&RackPair> for PairBody {
    fn from(p: &RackPair) -> Self {
        Self { from: RackRef(p.from), to: RackRef(p.to), bytes: Amount(p.bytes) }
    }
}

/// Bytes from a rack to a rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Pair)]
pub struct RackPair {
    /// Sending rack.
    pub from: u32,
    /// Receiving rack.
    pub to: u32,
    /// Payload.
    pub bytes: u64,
}

impl From<&RackBytes> for RackPair {
    fn from(p: &RackBytes) -> Self {
        Self { from: p.from.0, to: p.to.0, bytes: p.bytes.0 }
    }
}
impl From<&RackPair> for RackBytes {
    fn from(p: &RackPair) -> Self {
        Self { from: RackId(p.from), to: RackId(p.to), bytes: Bytes(p.bytes) }
    }
}

impl From<&record::CoflowView> for Coflow {
    fn from(c: &record::CoflowView) -> Self {
        Self {
            id: c.id.0,
            name: c.name.clone(),
            state: c.into(),
            arrival_ns: c.arrival.0,
            pairs: c.pairs.iter().map(|p| RackPair::from(&p)).collect(),
            asked_bytes: c.bytes.0,
            received_bytes: c.received.0,
            over_ocs_bytes: c.over_ocs.0,
            finished_ns: c.finished.map(|t| t.0),
            why: c.why.clone(),
            cct_ns: c.cct.map(|s| s.0),
            bound_ns: c.bound.0,
            priority: c.priority,
            flows: None,
            proposal: None,
            send: false,
        }
    }
}

/// A coflow that was proposed and has not begun.
impl From<&record::ProposalView> for Coflow {
    fn from(p: &record::ProposalView) -> Self {
        let pairs = p.proposal.pairs.iter().map(|w| RackPair {
            from: w.from.0,
            to: w.to.0,
            bytes: w.bytes.0,
        });
        Self {
            id: p.id.0,
            name: p.name.clone(),
            state: p.state.into(),
            arrival_ns: p.proposed.0,
            pairs: pairs.collect(),
            asked_bytes: p.proposal.pairs.iter().map(|w| w.bytes).sum::<Bytes>().0,
            received_bytes: 0,
            over_ocs_bytes: 0,
            finished_ns: None,
            why: None,
            cct_ns: None,
            bound_ns: p.proposal.chosen.bound.0,
            priority: None,
            proposal: Some(p.into()),
            send: p.send,
            flows: None,
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
    /// Bytes by rack pair: each pair once, between two racks, above zero. Left out if there are
    /// `flows`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<PairBody>,
    /// Bytes by flow: between two hosts, also of one rack, above zero, at most 10000. The pairs
    /// follow from them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<Flow>,
    /// A shuffle for whose reduce tasks the controller proposes racks and circuits; it begins when
    /// that is confirmed. Neither `pairs` nor `flows` are given then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<super::PlaceRequest>,
    /// Whether Heliostat sends the bytes itself: the flows, or each pair's bytes evenly from the
    /// hosts of its rack. If not, its progress is read from the ToRs' counters.
    #[serde(default)]
    pub send: bool,
    /// Its weight for policies that order coflows by weight; 1 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub weight: Option<u32>,
    /// The strict priority of its flows between racks, 0 (first) to 7; 4 if left out. Of a coflow
    /// with `place` it is said when that is confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 7)]
    pub priority: Option<u8>,
    /// The tiers of the switches that its `flows` must cross, in their order: `server`, `access`,
    /// `aggregation` and `core`; any if left out. Only where the packet network has several
    /// switches. Of a coflow with `place` they are said when that is confirmed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 16)]
    pub types: Vec<super::SwitchTier>,
}

/// Other strict priorities of a coflow's flows, 0 (first) to 7: one of the two at least.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CoflowChange {
    /// Priority of all its flows between racks that have none of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 7)]
    pub priority: Option<u8>,
    /// Priorities of single flows, each once: their own from now on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowPriority>,
}

/// The strict priority of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowPriority {
    /// Its place in its coflow, from 0.
    pub flow: u32,
    /// 0 (first) to 7.
    #[schema(maximum = 7)]
    pub priority: u8,
}

/// What the flows on their way have still to send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OpenFlows {
    /// The time of this answer, in ns since the start of the run.
    pub now_ns: u64,
    /// The coflows that Heliostat sends and that have not ended, by id.
    pub coflows: Vec<CoflowLeft>,
}

/// What the flows of a coflow have still to send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CoflowLeft {
    /// Its number.
    pub id: u32,
    /// Its flows that have not arrived, by number.
    pub flows: Vec<FlowLeft>,
}

/// What a flow has still to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FlowLeft {
    /// Its place in its coflow, from 0.
    pub flow: u32,
    /// Payload that its receiver has not counted.
    pub left_bytes: u64,
}
