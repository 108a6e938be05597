//! The seam: a [`Fabric`] does and decides nothing.
//!
//! `kernel` drives network namespaces by netlink, tc and BPF; `sim` is a flow-level model in
//! virtual time. Both take the same operations and answer with the same observations, so the same
//! controller runs over both.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::demand::hedera::Elephants;
use crate::demand::{DemandMatrix, HostFlow};
use crate::ids::{HostId, PlaneId, RackId};
use crate::plan::paths::{Lists, PathError, Steer, SteerResult};
use crate::plan::{Op, OpError, Programmed};
use crate::units::{BitRate, Bytes, Span, Time};

mod fits;
pub mod meter;
mod shipment;

pub use fits::Misfit;
pub use shipment::{FlowProgress, ReportedEnds, Shipment};

/// What a socket holds of what was written and not acknowledged: a sender's backlog is at most this
/// a flow. Large, as in c-Through, whose demand is what waits in the senders' buffers; one socket's
/// share of the kernel's memory all the same.
pub const SEND_BUFFER: Bytes = Bytes(2 << 20);

/// How many TCP ports a policy names by the first of them ([`Fabric::admit_by_port`]). A program
/// whose port is taken by another one in its host takes one of the next.
pub const PORTS: u16 = 16;

/// Time after which a probe is lost, counted from when its circuit should have light: long against
/// what a busy machine delays a frame, short against an interval.
pub const PROBE_PATIENCE: Span = Span::millis(30);

/// Reservations that an input port holds at once, in every fabric: the slots of a port in the
/// kernel's arrays. A controller writes what does not fit later, when circuits have ended.
pub const SLOTS_PER_PORT: usize = 8;

/// Everything that we own, as the fabric saw it at one instant; never a part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// When it was observed.
    pub at: Time,
    /// What the planes are programmed to do.
    pub programmed: Programmed,
    /// Since the fabric was built: payload that hosts of the row's rack sent to the column's rack,
    /// in bytes, repetitions included. `timed` counts payload as hosts hand it to their ToR.
    /// `netlink` counts frames that leave the ToR's queues, as if all were full, so that small
    /// packets count for more than they carry. `sim` knows the payload, and repeats nothing.
    pub sent: DemandMatrix,
    /// Bytes among these that went over a circuit and came out of the crossbar at the right rack.
    pub over_ocs: DemandMatrix,
    /// Bytes that wait in the senders' rack for the column's rack: what sockets hold until it is
    /// acknowledged, and so what is in the ToR's queues too.
    pub backlog: DemandMatrix,
    /// Bytes that ToRs hold until a circuit has light, where traffic waits for it and the fabric
    /// knows them. They are not among `sent` yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<DemandMatrix>,
    /// Flows between hosts that are under way, where demand is worked out from them; in no order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<Vec<HostFlow>>,
    /// How many of these are large, where the fabric tells that at once instead of the flows
    /// ([`Fabric::elephants`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elephants: Option<Elephants>,
    /// By plane, then rack.
    pub ports: Vec<Vec<PortCounters>>,
    /// What is not as it was built, or was not since the last observation and has been mended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<Damage>,
}

/// Payload that a rack's link to the packet network carried, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uplink {
    /// From the rack.
    pub up: u64,
    /// To the rack.
    pub down: u64,
}

/// Something of ours that another process removed, took down or changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// What, and what was found: `link ocs0 of tor3 is gone`.
    pub what: String,
    /// The port of an OCS that carries nothing because of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<(PlaneId, RackId)>,
    /// Who cannot send or receive any more, whatever is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
    /// The link between two switches, by number, that carries nothing because of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cable: Option<u32>,
}

/// What is cut off for good: its link was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// A host, from all others.
    Host(HostId),
    /// A rack, from all others.
    Rack(RackId),
}

/// Counters of one OCS port since the fabric was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortCounters {
    /// Packets from this input that crossed to the right rack.
    pub crossed_packets: u64,
    /// Their bytes.
    pub crossed_bytes: u64,
    /// Packets that reached this input after its circuit had ended, in the dark or when its next
    /// circuit had light already, because this machine was late to drain their queue. They go back
    /// to their ToR and on over the EPS: none is lost. A machine that keeps up has none.
    pub late_packets: u64,
    /// Packets that came out of the OCS at this port's rack and were not for it. Its ToR drops
    /// them. The OCS looks where each packet is to go, so there are none unless another program
    /// changes the network.
    pub misdelivered: u64,
}

/// A packet switch, and what its ports carried since the fabric was built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchCounters {
    /// Its number.
    pub switch: u32,
    /// Packets that it dropped because they had no list, or it is not on theirs: to addresses that
    /// no host has. Counted with `timed` in a graph only.
    pub strays: u64,
    /// First the racks at this switch, then the links to other switches, each by number.
    pub ports: Vec<SwitchPort>,
}

/// What a counter of 32 bits gained between two readings: it begins again from zero.
pub fn low_gained(now: u64, before: u64) -> u64 {
    u64::from((now as u32).wrapping_sub(before as u32))
}

/// The way out of a port of a packet switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchPort {
    /// Where it leads.
    pub to: PortTo,
    /// Its rate.
    pub rate: BitRate,
    /// Bytes that left by it, headers included.
    pub bytes: u64,
    /// Packets that left by it; a 32-bit number of the kernel's, which begins again from zero.
    pub packets: u64,
    /// Packets that found no room in its queue, aggregates counted once; TCP sends them again.
    pub drops: u64,
    /// Bytes that wait in it.
    pub backlog: u64,
}

/// Where a port of a packet switch leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PortTo {
    /// A rack's ToR.
    Rack(RackId),
    /// A switch, over a link of the graph.
    Switch {
        /// The link, by number.
        cable: u32,
        /// The switch.
        switch: u32,
    },
}

/// A port of the packet network that serves strict priorities, and what its queues carried since
/// the fabric was built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortQueueCounters {
    /// The node that sends by it: `h0-1`, `tor0`, `eps`, `sw3`.
    pub node: String,
    /// Its name there: `eth0`, `host1`, `eps0`, `tor2`, `cable7`.
    pub port: String,
    /// The node to which it leads.
    pub to: String,
    /// Its rate.
    pub rate: BitRate,
    /// Its queues: short packets, then by priority.
    pub queues: Vec<QueueCounters>,
}

/// What a queue carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueCounters {
    /// Priority of the packets that it holds, 0 (first) to 7; `None`: packets below 128 bytes,
    /// acknowledgements above all, whatever their priority is.
    pub priority: Option<u8>,
    /// Bytes that left it, headers included.
    pub bytes: u64,
    /// Packets that left it; a 32-bit number of the kernel's, which begins again from zero.
    pub packets: u64,
    /// Packets that found no room in it, aggregates counted once; TCP sends them again.
    pub drops: u64,
    /// Bytes that wait in it.
    pub backlog: u64,
}

/// What became of one operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpResult {
    /// The operation.
    pub op: Op,
    /// When the fabric held it, or why it was refused.
    pub outcome: Result<Time, OpError>,
}

/// A probe to be made: a frame to be sent into a newly connected input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeRequest {
    /// The plane.
    pub plane: PlaneId,
    /// Where to send.
    pub input: RackId,
    /// Where it should come out.
    pub output: RackId,
    /// When the mirrors began to move.
    pub dark_from: Time,
    /// When the circuit should have light.
    pub at: Time,
}

/// What became of a circuit probe: a frame sent into a newly connected input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// The plane.
    pub plane: PlaneId,
    /// Where the frame was sent from.
    pub input: RackId,
    /// Where it should come out.
    pub output: RackId,
    /// When its circuit should have had light, as asked.
    pub at: Time,
    /// Where it came out, and when; `None` if nowhere within the time allowed.
    pub arrived: Option<(RackId, Time)>,
    /// From the last instant at which the port was known to be dark-bound (its set-up) to the
    /// arrival: the dark time achieved, as far as probes can see it.
    pub dark: Option<Span>,
}

/// Why a fabric could not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum FabricError {
    /// The kernel refused.
    #[error("{what}: {why}")]
    Refused {
        /// What was tried.
        what: String,
        /// What the kernel said.
        why: String,
    },
}

/// A network that carries out operations and can be observed.
pub trait Fabric: Send {
    /// The whole world that we own.
    ///
    /// # Errors
    /// When any part of it cannot be read.
    fn observe(&mut self, now: Time) -> Result<Observation, FabricError>;

    /// Carries out operations in order; one exact result for each, in order.
    fn apply(&mut self, ops: &[Op], now: Time) -> Vec<OpResult>;

    /// Whether the policy names TCP ports: packets from them may use circuits without a mark,
    /// between the pairs of racks of [`Fabric::admit_by_port`].
    fn admits_by_port(&self) -> bool {
        false
    }

    /// Has packets of the policy's TCP ports count as marked from now on between these pairs of
    /// racks, and no others. It lasts for a second at least, and not for ever: without a controller
    /// that renews it, these packets take the packet network.
    fn admit_by_port(&mut self, _pairs: &BTreeSet<(RackId, RackId)>) {}

    /// Changes lists of switches in order; one exact result for each, in order.
    /// [`crate::plan::paths::apply`] says what a change does.
    fn steer(&mut self, ops: &[Steer], _now: Time) -> Vec<SteerResult> {
        let none = || PathError::NotHere("its packet network is one switch".into());
        ops.iter().map(|op| SteerResult { op: op.clone(), outcome: Err(none()) }).collect()
    }

    /// The lists that pairs of hosts have by a change; all others take the default way of their
    /// racks.
    fn steered(&self) -> Lists {
        Lists::default()
    }

    /// Flows between hosts that are under way, at the last [`Fabric::observe`]. A fabric that is
    /// asked for the first time may know of none yet.
    ///
    /// # Errors
    /// When they cannot be read.
    fn flows(&mut self) -> Result<Vec<HostFlow>, FabricError>;

    /// The same, where a fabric can tell at once how many of them are large. A flow under way is
    /// large if it had at least a tenth left when this was last asked, or when it began after that.
    /// At the first call it is if it has that now. `tenths`: by sender, in bytes
    /// ([`crate::demand::hedera::tenths`]). `None`: ask for the flows.
    ///
    /// # Errors
    /// When they cannot be read.
    fn elephants(&mut self, _tenths: &[u64]) -> Result<Option<Elephants>, FabricError> {
        Ok(None)
    }

    /// The packet switches and what their ports carried, by number; none where links are not
    /// counted (`sim`).
    ///
    /// # Errors
    /// When a counter cannot be read.
    fn switches(&mut self) -> Result<Vec<SwitchCounters>, FabricError> {
        Ok(vec![])
    }

    /// The ports that serve strict priorities: hosts', then ToRs', then switches'; none where ports
    /// serve in the order of arrival, and where queues are not counted (`sim`).
    ///
    /// # Errors
    /// When a counter cannot be read.
    fn queues(&mut self) -> Result<Vec<PortQueueCounters>, FabricError> {
        Ok(vec![])
    }

    /// By rack: payload that its link to the packet network carried since the fabric was built, up
    /// and down, behind the queues. `None` where that is what [`Self::observe`] says was sent and
    /// did not go over a circuit (`sim`).
    fn uplinks(&mut self) -> Option<&[Uplink]> {
        None
    }

    /// How long before it takes effect an operation must be in place: the time that a ToR's queue
    /// needs to drain before its circuit goes dark, and a margin. Operations that come later are
    /// carried out as soon as that allows.
    fn notice(&self) -> Span;

    /// How a run names this mechanism in its results: `timed`, `netlink` or `sim`.
    fn mechanism(&self) -> &'static str;

    /// Which part of the fabric's own machinery has died, so that it can never again do what it is
    /// asked. What the network itself refuses is an error of [`Fabric::observe`] or
    /// [`Fabric::apply`] instead.
    fn lost(&self) -> Option<String> {
        None
    }
}
