//! Coflows: sets of flows that are finished only together, their bounds and their accounts.

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::demand::DemandMatrix;
use crate::ids::{CoflowId, HostId, RackId};
use crate::topology::Topology;
use crate::topology::types::Types;
use crate::units::{Bytes, Span, Time};

pub mod bounds;
pub mod elephants;
pub mod flows;
pub mod network;
pub mod orders;
pub mod priority;
pub mod rates;

use flows::{Edge, Flows};
use priority::Priorities;

/// One flow of a coflow: bytes from a host to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct FlowSpec {
    /// Sender.
    pub from: HostId,
    /// Receiver.
    pub to: HostId,
    /// Payload.
    pub bytes: Bytes,
}

/// A coflow as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct CoflowSpec {
    /// Its number in this run.
    pub id: CoflowId,
    /// What people call it.
    pub name: String,
    /// When its flows start.
    pub arrival: Time,
    /// Its weight, 1 at least: under `sunflow-weighted`, of two alike the one of twice the weight
    /// may take twice as long to be next.
    pub weight: u32,
    /// What is said of its flows' strict priorities, which count under `network: priority`.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Priorities::is_plain"))]
    pub priorities: Priorities,
    /// The tiers of the switches that its flows must cross, in their order; empty: any.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Types::are_free"))]
    pub types: Types,
    /// Its flows.
    pub flows: Flows,
}

impl CoflowSpec {
    /// A coflow of plain weight, whose flows have no priorities and no types.
    pub fn new(id: CoflowId, name: impl Into<String>, arrival: Time, flows: Vec<FlowSpec>) -> Self {
        let (priorities, types) = Default::default();
        Self {
            id,
            name: name.into(),
            arrival,
            weight: Self::plain_weight(),
            priorities,
            types,
            flows: flows.into(),
        }
    }

    /// The weight of a coflow of which none is said.
    pub const fn plain_weight() -> u32 {
        1
    }

    /// All payload bytes, those within a rack included.
    pub fn bytes(&self) -> Bytes {
        self.flows.bytes()
    }

    /// The bytes of its longest flow.
    pub fn longest_flow(&self) -> Bytes {
        self.flows.largest()
    }

    /// The payload bytes between racks.
    pub fn bytes_between_racks(&self, topology: &Topology) -> Bytes {
        let within = self
            .flows
            .inside(|h| topology.rack_of(h))
            .iter()
            .map(|e| u128::from(e.1.bytes.0))
            .sum::<u128>();
        let all = self.flows.sums()[0].iter().map(|x| x.1).sum::<u128>();
        Bytes(u64::try_from(all - within).unwrap_or(u64::MAX))
    }

    /// Bytes by rack pair; what stays in a rack is left out.
    pub fn matrix(&self, topology: &Topology) -> DemandMatrix {
        let mut m = DemandMatrix::zero(topology.rack_count());
        for f in &self.flows {
            m.add(topology.rack_of(f.from), topology.rack_of(f.to), f.bytes.0);
        }
        m
    }
}

/// A coflow that is under way, as a scheduler sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCoflow {
    /// Its number.
    pub id: CoflowId,
    /// When it arrived.
    pub arrival: Time,
    /// Its weight: of two alike, the one of twice the weight may take twice as long to be next.
    pub weight: u32,
    /// Bytes that have arrived so far.
    pub sent: u64,
    /// Bytes still to be sent, by (input, output); no pair twice, none of zero.
    pub rest: Vec<(RackId, RackId, u64)>,
}

/// The final account of one coflow: a line of every result table, live and simulated.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CoflowRecord {
    /// Its number.
    pub id: CoflowId,
    /// Its name.
    pub name: String,
    /// Number of flows.
    pub flows: usize,
    /// Payload bytes, all of them.
    pub bytes: Bytes,
    /// Payload bytes of its longest flow; absent in results of older versions.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "longest_flow_bytes", default, skip_serializing_if = "Option::is_none")
    )]
    pub longest_flow: Option<Bytes>,
    /// Payload bytes between racks.
    #[cfg_attr(feature = "serde", serde(rename = "between_racks_bytes"))]
    pub bytes_between_racks: Bytes,
    /// Share of the bytes between racks that went over circuits, 0..=1.
    pub ocs_share: f64,
    /// When it arrived.
    #[cfg_attr(feature = "serde", serde(rename = "arrival_ns"))]
    pub arrival: Time,
    /// When its last byte was received; `None` if the run ended first.
    #[cfg_attr(feature = "serde", serde(rename = "finished_ns"))]
    pub finished: Option<Time>,
    /// Coflow completion time.
    #[cfg_attr(feature = "serde", serde(rename = "cct_ns"))]
    pub cct: Option<Span>,
    /// Why it can never finish, if that is so.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub lost: Option<String>,
    /// No schedule on this network is faster ([`bounds::hybrid`]).
    #[cfg_attr(feature = "serde", serde(rename = "bound_ns"))]
    pub bound: Span,
}

impl CoflowRecord {
    /// The account of a coflow that finished at `finished` (or not), `ocs_share` of whose bytes
    /// between racks went over circuits.
    pub fn new(
        spec: &CoflowSpec,
        topology: &Topology,
        finished: Option<Time>,
        ocs_share: f64,
    ) -> Self {
        let cct = finished.map(|t| t.since(spec.arrival));
        Self {
            ocs_share,
            finished,
            cct,
            ..Self::unfinished(spec, topology, bounds::hybrid(spec, topology))
        }
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

/// A pair of racks with bytes: the aggregate in which the controller thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct RackBytes {
    /// Sending rack.
    pub from: RackId,
    /// Receiving rack.
    pub to: RackId,
    /// Payload.
    pub bytes: Bytes,
}

impl RackBytes {
    /// The pairs of racks between which flows send, by sender and receiver, each with the sum of
    /// its flows; what stays in a rack is left out. O(flows log flows), and O(flows) if they are in
    /// the order of their racks.
    pub fn of(flows: impl IntoIterator<Item = FlowSpec>, topology: &Topology) -> Vec<Self> {
        let pair = |f: FlowSpec| Self {
            from: topology.rack_of(f.from),
            to: topology.rack_of(f.to),
            bytes: f.bytes,
        };
        let mut pairs: Vec<Self> = flows
            .into_iter()
            .map(pair)
            .filter(|p| p.from != p.to && p.bytes > Bytes::ZERO)
            .collect();
        pairs.sort_by_key(Edge::ends);
        pairs.dedup_by(|next, sum| {
            let is_same = next.ends() == sum.ends();
            if is_same {
                sum.bytes = sum.bytes.saturating_add(next.bytes);
            }
            is_same
        });
        pairs
    }
}
