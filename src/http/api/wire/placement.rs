//! Shuffles whose placement is asked for, and the answers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::named::{Amount, Length, RackRef};
use crate::circuits::timetable::Reservation;
use crate::control::record::{ProposalState, ProposalView};
use crate::ids::RackId;
use crate::placement::advisor;
pub use crate::placement::advisor::PlacementOrigin;

/// A shuffle: who sends, and the reduce tasks that receive it, each the same share of every rack's
/// bytes unless `by_task` says more. They are placed already (`reduces`), or are to be placed
/// (`tasks` and `slots`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Place)]
pub struct PlaceRequest {
    /// Map output by rack: each rack once, above zero.
    pub maps: Vec<RackOutput>,
    /// Where the reduce tasks are; not together with `tasks`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduces: Option<Vec<PlacedTasks>>,
    /// How many reduce tasks are to be placed; not together with `reduces`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub tasks: Option<u32>,
    /// With `tasks`: free and soon-free slots; racks that are left out have none. If all are left
    /// out, the topology's slots are free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<Vec<RackSlots>>,
    /// With `tasks`: only these racks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<RackRef>>,
    /// With `tasks`: none of these racks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forbidden: Vec<RackRef>,
    /// With `tasks`: no more in one rack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub at_most: Option<u32>,
    /// Least time from now until the shuffle begins; 0 if left out.
    #[serde(default)]
    pub ready_ns: Length,
    /// Time from now by which it shall be over: placements that meet it go before those that do
    /// not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<Length>,
    /// How long the proposal is held, 1 ms to 10 min; 10 s if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_ns: Option<Length>,
}

/// How a coflow that was proposed begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Confirmation {
    /// Its flows, as the tasks were placed; if left out, the bytes between racks are those that
    /// were proposed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<super::Flow>,
    /// Whether Heliostat sends the bytes itself; as the proposal said if left out.
    #[serde(default)]
    pub send: bool,
    /// The strict priority of its flows between racks, 0 (first) to 7; 4 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 7)]
    pub priority: Option<u8>,
    /// The tiers of the switches that its `flows` must cross, in their order; any if left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 16)]
    pub types: Vec<super::SwitchTier>,
}

/// What the maps of a rack have made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RackOutput {
    /// The rack.
    pub rack: RackRef,
    /// Payload.
    pub bytes: Amount,
    /// With `tasks`: how much of it each reduce task reads, in the tasks' order and `bytes` in all.
    /// Either all racks have it or none; then every task reads the same share.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_task: Vec<Amount>,
}

/// Reduce tasks that a rack has already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlacedTasks {
    /// The rack.
    pub rack: RackRef,
    /// Number of tasks.
    #[schema(minimum = 1)]
    pub tasks: u32,
}

/// Reduce tasks of a rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RackTasks {
    /// The rack.
    pub rack: u32,
    /// Number of tasks.
    #[schema(minimum = 1)]
    pub tasks: u32,
}

/// Slots of a rack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RackSlots {
    /// The rack.
    pub rack: RackRef,
    /// Slots that are free now; 0 if left out.
    #[serde(default)]
    pub free: u32,
    /// Slots that will be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub soon: Vec<SoonFree>,
}

/// Slots that become free together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SoonFree {
    /// Time from now.
    pub in_ns: Length,
    /// Number of slots.
    pub slots: u32,
}

/// An answer: the placement, the way of every pair of racks, the circuits that are reserved for it,
/// and what else was considered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Proposal {
    /// The winner.
    pub chosen: Candidate,
    /// By reduce task: its rack; left out where all tasks read the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<u32>,
    /// Its bytes between racks.
    pub pairs: Vec<PairWay>,
    /// The circuits that it needs, beside those of coflows that go before it.
    pub circuits: Vec<ReservedCircuit>,
    /// The losers that were estimated, best first.
    pub losers: Vec<Candidate>,
    /// Losers that were not, since a bound on their score was enough; smallest first.
    #[serde(default)]
    pub excluded: Vec<Excluded>,
}

/// A placement that a bound alone excludes: whatever an estimate said, the winner is better.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Excluded {
    /// How it was found.
    pub found_by: PlacementOrigin,
    /// Reduce tasks by rack.
    pub racks: Vec<RackTasks>,
    /// Time at which all reduce tasks have slots and the shuffle begins.
    pub start_ns: u64,
    /// Whether it cannot end before the deadline.
    pub late: bool,
    /// Its score's total is no smaller.
    pub least_ns: u64,
    /// Why the winner was taken instead.
    pub why: String,
}

/// A placement, judged by the circuits and coflows that there are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Candidate {
    /// How it was found.
    pub found_by: PlacementOrigin,
    /// Reduce tasks by rack; empty where pairs were given.
    pub racks: Vec<RackTasks>,
    /// Time at which all reduce tasks have slots and the shuffle begins.
    pub start_ns: u64,
    /// Its estimated completion time, from its beginning.
    pub cct_ns: u64,
    /// When it would be over.
    pub finish_ns: u64,
    /// No schedule on this network is faster with this placement.
    pub bound_ns: u64,
    /// Whether it ends before the deadline, where there is one.
    pub on_time: bool,
    /// What decides, smallest first.
    pub score: Score,
    /// Why the winner was taken instead; left out of the winner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What decides between placements: the sum of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Score {
    /// Time until the shuffle begins.
    pub wait_ns: u64,
    /// How long it then takes.
    pub cct_ns: u64,
    /// By how much open coflows end later because of it, in all.
    pub others_ns: u64,
    /// The sum.
    pub total_ns: u64,
}

/// Bytes from a rack to a rack, and how they go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PairWay {
    /// Sending rack.
    pub from: u32,
    /// Receiving rack.
    pub to: u32,
    /// Payload.
    pub bytes: u64,
    /// The way: a circuit, or the packet network.
    pub way: SentOver,
    /// When the last byte has been carried, as estimated.
    pub until_ns: u64,
}

/// How bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Way)]
pub enum SentOver {
    /// Over a circuit.
    Ocs,
    /// Over the packet network.
    Eps,
}

/// A circuit that is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReservedCircuit {
    /// The plane.
    pub plane: u32,
    /// Sending rack.
    pub input: u32,
    /// Receiving rack.
    pub output: u32,
    /// The mirrors begin to move; the same as `up_from_ns` for a circuit that goes on.
    pub setup_at_ns: u64,
    /// Light.
    pub up_from_ns: u64,
    /// Its end.
    pub until_ns: u64,
}

/// What was proposed for a coflow, and until when that is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Held)]
pub struct HeldProposal {
    /// When it was proposed.
    pub proposed_ns: u64,
    /// Time until which it is held, unless it is confirmed.
    pub expires_ns: u64,
    /// The proposal.
    #[serde(flatten)]
    pub proposal: Proposal,
}

impl From<&ProposalView> for HeldProposal {
    fn from(p: &ProposalView) -> Self {
        Self {
            proposed_ns: p.proposed.0,
            expires_ns: p.expires.0,
            proposal: Proposal::new(&p.proposal, p.proposed),
        }
    }
}

impl From<ProposalState> for super::CoflowState {
    fn from(s: ProposalState) -> Self {
        match s {
            ProposalState::Held => Self::Proposed,
            ProposalState::Expired => Self::Expired,
            ProposalState::Confirmed => Self::Active,
        }
    }
}

impl Proposal {
    /// The proposal as it travels; it was made at `now`.
    pub fn new(p: &advisor::Proposal, now: crate::units::Time) -> Self {
        let racks = |all: &[(RackId, u32)]| {
            all.iter().map(|&(r, tasks)| RackTasks { rack: r.0, tasks }).collect()
        };
        let candidate = |c: &advisor::Candidate, why| Candidate {
            found_by: c.origin,
            racks: racks(&c.racks),
            start_ns: c.start.0,
            cct_ns: c.cct.0,
            finish_ns: c.finish().0,
            bound_ns: c.bound.0,
            on_time: c.on_time,
            score: Score {
                wait_ns: c.start.since(now).0,
                cct_ns: c.cct.0,
                others_ns: c.others.0,
                total_ns: c.score.0,
            },
            why,
        };
        let excluded = |e: &advisor::Excluded| Excluded {
            found_by: e.origin,
            racks: racks(&e.racks),
            start_ns: e.start.0,
            late: e.late,
            least_ns: e.least.0,
            why: e.why(&p.chosen),
        };
        Self {
            chosen: candidate(&p.chosen, None),
            tasks: p.tasks.iter().map(|r| r.0).collect(),
            pairs: p.pairs.iter().map(Into::into).collect(),
            circuits: p.circuits.iter().map(Into::into).collect(),
            losers: p.losers.iter().map(|c| candidate(c, Some(c.why(&p.chosen)))).collect(),
            excluded: p.excluded.iter().map(excluded).collect(),
        }
    }
}

impl From<&advisor::Way> for PairWay {
    fn from(w: &advisor::Way) -> Self {
        let way = if w.ocs { SentOver::Ocs } else { SentOver::Eps };
        Self { from: w.from.0, to: w.to.0, bytes: w.bytes.0, way, until_ns: w.until.0 }
    }
}

impl From<&Reservation> for ReservedCircuit {
    fn from(r: &Reservation) -> Self {
        let (plane, input, output) = (r.plane.0, r.input.0, r.output.0);
        Self {
            plane,
            input,
            output,
            setup_at_ns: r.setup_at.0,
            up_from_ns: r.up_from.0,
            until_ns: r.until.0,
        }
    }
}
