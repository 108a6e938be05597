//! Lines of the event log.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::FlowPorts;
use crate::control::record;
use crate::ids::CoflowId;
use crate::plan::paths::Steer;
use crate::units::{Span, Time};

/// A line of the event log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Record {
    /// Dense from zero; the id of the server-sent event.
    pub seq: u64,
    /// Time of the event.
    pub at_ns: u64,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

/// The list of switches of a pair of hosts, or of one flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Steered {
    /// The host where it begins.
    pub from: u32,
    /// The host where it ends.
    pub to: u32,
    /// The one flow that takes it; left out: all of the pair that have no list of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<FlowPorts>,
    /// The switches, by their place in `GET /api/v1/paths`; `null`: the default way, and of a flow
    /// that of its pair.
    pub switches: Option<Vec<u32>>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the fields are those of the API's other types")]
pub enum What {
    /// A cycle decided.
    Cycle { cycle: u64, demand_bytes: u64, ops: usize, late: bool },
    /// A circuit was written; `demand_bytes` is the demand of its pair that the last decision saw
    /// (left out in logs of older versions).
    CircuitSet {
        plane: u32,
        input: u32,
        output: u32,
        setup_at_ns: u64,
        up_from_ns: u64,
        until_ns: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        demand_bytes: Option<u64>,
    },
    /// The end of the circuit that has light from `up_from_ns` on was set, or another one.
    CircuitEnd { plane: u32, input: u32, up_from_ns: u64, until_ns: u64 },
    /// A coflow arrived.
    CoflowArrived { id: u32, asked_bytes: u64 },
    /// Strict priorities of a coflow's flows have changed: flows between racks without one of their
    /// own have `priority` (`null`: as before), and `flows` flows have another one of their own.
    CoflowPrioritised { id: u32, priority: Option<u8>, flows: usize },
    /// A flow's last byte was received; of coflows that were posted with `flows` and `send`.
    FlowFinished { id: u32, flow: u32, received_bytes: u64 },
    /// A coflow's last byte was received.
    CoflowFinished { id: u32, cct_ns: u64 },
    /// A coflow was proposed.
    CoflowProposed { id: u32, finish_ns: u64, expires_ns: u64 },
    /// A coflow, or a proposal, was taken back, or the coflow broke: then `why` says how.
    CoflowCancelled {
        id: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// A port is not used any more.
    PortFaulty { plane: u32, rack: u32, why: String },
    /// A faulty port is used again.
    PortRepaired { plane: u32, rack: u32 },
    /// Flows take other lists of switches.
    Paths { lists: Vec<Steered>, saturated: usize, cost_before: u64, cost_after: u64 },
    /// Between `pairs` pairs of hosts of a coflow no list has its types, or another coflow's hold:
    /// its flows there cross other tiers.
    TypesUnmet { id: u32, pairs: usize },
    /// Something failed.
    Failed { what: String, why: String },
    /// What failed works again, or is over: coflows whose bytes move again, files, names.
    Recovered { what: String },
    /// Something was broken on purpose, or mended.
    Fault { what: String, over: bool },
    /// The policy was replaced.
    PolicyChanged { name: String },
}

impl What {
    /// The names of all server-sent events of the log.
    pub const NAMES: [&str; 17] = [
        "cycle",
        "circuit-set",
        "circuit-end",
        "coflow-arrived",
        "coflow-prioritised",
        "flow-finished",
        "coflow-finished",
        "coflow-proposed",
        "coflow-cancelled",
        "port-faulty",
        "port-repaired",
        "paths",
        "types-unmet",
        "failed",
        "recovered",
        "fault",
        "policy-changed",
    ];

    /// The name of the server-sent event.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Cycle { .. } => "cycle",
            Self::CircuitSet { .. } => "circuit-set",
            Self::CircuitEnd { .. } => "circuit-end",
            Self::CoflowArrived { .. } => "coflow-arrived",
            Self::CoflowPrioritised { .. } => "coflow-prioritised",
            Self::FlowFinished { .. } => "flow-finished",
            Self::CoflowFinished { .. } => "coflow-finished",
            Self::CoflowProposed { .. } => "coflow-proposed",
            Self::CoflowCancelled { .. } => "coflow-cancelled",
            Self::PortFaulty { .. } => "port-faulty",
            Self::PortRepaired { .. } => "port-repaired",
            Self::Paths { .. } => "paths",
            Self::TypesUnmet { .. } => "types-unmet",
            Self::Failed { .. } => "failed",
            Self::Recovered { .. } => "recovered",
            Self::Fault { .. } => "fault",
            Self::PolicyChanged { .. } => "policy-changed",
        }
    }
}

impl From<&record::Record> for Record {
    fn from(r: &record::Record) -> Self {
        use record::RecordedEvent as W;
        let (Time(at_ns), seq) = (r.at, r.seq);
        let what = match r.what.clone() {
            W::Cycle { cycle, demand, ops, late } => {
                What::Cycle { cycle, demand_bytes: demand.0, ops, late }
            }
            W::CircuitSet { plane, input, output, setup_at, up_from, until, demand } => {
                What::CircuitSet {
                    plane: plane.0,
                    input: input.0,
                    output: output.0,
                    setup_at_ns: setup_at.0,
                    up_from_ns: up_from.0,
                    until_ns: until.map(|t| t.0),
                    demand_bytes: demand.map(|d| d.0),
                }
            }
            W::CircuitEnd { plane, input, up_from, until } => What::CircuitEnd {
                plane: plane.0,
                input: input.0,
                up_from_ns: up_from.0,
                until_ns: until.0,
            },
            W::CoflowArrived { id, bytes } => {
                What::CoflowArrived { id: id.0, asked_bytes: bytes.0 }
            }
            W::CoflowPrioritised { id, priority, flows } => {
                What::CoflowPrioritised { id: id.0, priority, flows }
            }
            W::FlowFinished { id, flow, bytes } => {
                What::FlowFinished { id: id.0, flow: flow.0, received_bytes: bytes.0 }
            }
            W::CoflowFinished { id, cct: Span(cct_ns) } => {
                What::CoflowFinished { id: id.0, cct_ns }
            }
            W::CoflowProposed { id, finish, expires } => {
                What::CoflowProposed { id: id.0, finish_ns: finish.0, expires_ns: expires.0 }
            }
            W::CoflowCancelled { id: CoflowId(id), why } => What::CoflowCancelled { id, why },
            W::PortFaulty { plane, rack, why } => {
                What::PortFaulty { plane: plane.0, rack: rack.0, why }
            }
            W::PortRepaired { plane, rack } => What::PortRepaired { plane: plane.0, rack: rack.0 },
            W::Paths { lists, saturated, before, after } => {
                let one = |s: Steer| Steered {
                    from: s.from.0,
                    to: s.to.0,
                    ports: s.ports.map(FlowPorts::from),
                    switches: s.list.map(|l| l.0),
                };
                let lists = lists.into_iter().map(one).collect();
                What::Paths { lists, saturated, cost_before: before, cost_after: after }
            }
            W::TypesUnmet { id, pairs } => What::TypesUnmet { id: id.0, pairs },
            W::Failed { what, why } => What::Failed { what, why },
            W::Recovered { what } => What::Recovered { what },
            W::Fault { what, over } => What::Fault { what, over },
            W::PolicyChanged { name } => What::PolicyChanged { name },
        };
        Self { seq, at_ns, what }
    }
}
