//! The controller: a state machine that decides and touches nothing.
//!
//! [`Controller::handle`] takes an [`Event`], [`Controller::poll_timeout`] says when it wants to be
//! woken, and [`Controller::poll_action`] gives what it wants done. There is no clock, socket, task
//! or random number inside; the same controller runs live on the kernel and in virtual time.
//! [`Controller::skip_until`] stands for ticks that would decide nothing. The other methods change
//! nothing: they are questions of the driver ([`Controller::follows`], [`Controller::takes`],
//! [`Controller::reads_flows`]) and views ([`Controller::snapshot`], [`Controller::standing`]).
#![forbid(unsafe_code)]

use heliostat_base::{ids, paths, topology, units};
use heliostat_circuits as circuits;
use heliostat_circuits::{coflows, demand};
use heliostat_jobs::placement;
use heliostat_seam::{fabric, plan};
#[cfg(test)]
use heliostat_sim as sim;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::circuits::external::{Advice, NoAnswer, Question};
use crate::coflows::priority::{Priorities, PriorityChange};
use crate::coflows::{CoflowSpec, FlowSpec, RackBytes};
use crate::fabric::{Observation, OpResult, ProbeReport};
use crate::ids::{CoflowId, FlowId, HostId, PlaneId, RackId};
use crate::paths::List;
use crate::placement::advisor::Proposal;
use crate::plan::Op;
use crate::plan::paths::{Ports, Steer, SteerResult};
use crate::topology::types::Types;
use crate::units::{Bytes, Span, Time};

mod account;
mod accounts;
pub mod closed;
mod coflow;
mod controller;
mod counter_progress;
mod faults;
mod held;
pub mod histogram;
pub mod live;
mod manual;
pub mod meter;
pub mod policy;
pub mod previous_run;
mod proposals;
pub mod record;
pub mod routes;
mod trouble;
pub mod used_ids;
mod world;

#[cfg(test)]
#[path = "../testing.rs"]
mod testing;

pub use controller::Controller;
pub use trouble::{LogFile, Trouble, recovered};

use policy::CircuitPolicy;

/// What the controller hears.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// An earlier controller of this network has left records: said once, before all else.
    Resumed {
        /// The records.
        past: Box<previous_run::PreviousRun>,
    },
    /// Time has passed: the deadline of [`Controller::poll_timeout`] is reached.
    Tick,
    /// The answer to [`Action::Observe`].
    Observed {
        /// The world, or why it could not be read.
        result: Result<Observation, crate::fabric::FabricError>,
    },
    /// The answer to [`Action::Consult`].
    Advised {
        /// What the program answered, or why it did not.
        result: Result<Advice, NoAnswer>,
    },
    /// The answer to [`Action::Apply`].
    Applied {
        /// One for each operation.
        results: Vec<OpResult>,
    },
    /// How long the runtime measured the last cycle's parts to take.
    CycleCost {
        /// Reading the fabric.
        poll: Span,
        /// Deciding.
        decide: Span,
        /// Carrying out.
        apply: Span,
    },
    /// The answer to [`Action::Probe`].
    Probed {
        /// What became of it.
        report: ProbeReport,
    },
    /// A coflow begins.
    CoflowArrived {
        /// Its number, chosen by the caller, not in use.
        id: CoflowId,
        /// What people call it.
        name: String,
        /// Bytes by rack pair.
        pairs: Vec<RackBytes>,
        /// Lower bound of its completion time, from its flows.
        bound: Span,
        /// What tells when bytes have arrived.
        progress: ProgressBy,
        /// Its weight among the others, 1 at least.
        #[serde(default = "one")]
        weight: u32,
        /// What is said of its flows' strict priorities.
        #[serde(default, skip_serializing_if = "Priorities::is_plain")]
        priorities: Priorities,
    },
    /// Flows of an open coflow get other strict priorities; what is as it was changes nothing.
    CoflowPrioritised {
        /// Its number.
        id: CoflowId,
        /// The flows that change, and their new priorities.
        change: PriorityChange,
    },
    /// The hosts between which the flows of an open coflow go: said once, when it has begun, where
    /// the network has several switches.
    CoflowFlows {
        /// Its number.
        id: CoflowId,
        /// Its flows.
        flows: Vec<FlowSpec>,
        /// The tiers of the switches that they must cross, in their order; empty: any.
        #[serde(default, skip_serializing_if = "Types::are_free")]
        types: Types,
    },
    /// The answer to [`Action::Steer`].
    Steered {
        /// One for each change.
        results: Vec<SteerResult>,
    },
    /// A switch of the packet network carries nothing any more.
    SwitchFault {
        /// Its number.
        switch: u32,
        /// Whether the switch carries packets again.
        over: bool,
    },
    /// All flows from one host to another, or one of them, get a list of switches by hand, and keep
    /// it.
    ManualList {
        /// Where they begin.
        from: HostId,
        /// Where they end.
        to: HostId,
        /// The one flow; `None`: all that have no list of their own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ports: Option<Ports>,
        /// The switches.
        list: List,
    },
    /// A list set by hand is given back.
    ManualListEnds {
        /// Where its flows begin.
        from: HostId,
        /// Where they end.
        to: HostId,
        /// The one flow, if it is the list of one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ports: Option<Ports>,
    },
    /// Payload of a coflow that has been received so far, by rack pair (cumulative).
    CoflowProgress {
        /// Its number.
        id: CoflowId,
        /// Received by rack pair.
        received: Vec<RackBytes>,
    },
    /// A flow of an open coflow has arrived: readers of the event log hear of it. Nothing is
    /// decided by it.
    FlowFinished {
        /// Its coflow.
        id: CoflowId,
        /// Its place in the coflow.
        flow: FlowId,
        /// Payload that its receiver counted.
        bytes: Bytes,
    },
    /// A coflow's last byte was received at `at`.
    CoflowFinished {
        /// Its number.
        id: CoflowId,
        /// When, at the receiver.
        at: Time,
    },
    /// The client that sends a coflow says that all of it has arrived: it finishes now, whatever
    /// the counters say.
    CoflowEnded {
        /// Its number.
        id: CoflowId,
    },
    /// A coflow is proposed: what it needs is held until `expires`, and then forgotten unless it is
    /// confirmed.
    CoflowProposed {
        /// Its number, chosen by the caller, not in use.
        id: CoflowId,
        /// What people call it.
        name: String,
        /// Where it goes, when, and over which circuits.
        proposal: Arc<Proposal>,
        /// Its weight among the others, 1 at least.
        weight: u32,
        /// Time at which it is not held any longer.
        expires: Time,
        /// Whether its bytes are to be sent once it is confirmed.
        send: bool,
    },
    /// A coflow that was proposed begins; nothing happens if it has begun already. Refused if it
    /// was taken back since.
    CoflowConfirmed {
        /// Its number.
        id: CoflowId,
        /// Bytes by rack pair, as they are now.
        pairs: Vec<RackBytes>,
        /// Lower bound of its completion time.
        bound: Span,
        /// What tells when bytes have arrived.
        progress: ProgressBy,
        /// What is said of its flows' strict priorities.
        #[serde(default, skip_serializing_if = "Priorities::is_plain")]
        priorities: Priorities,
    },
    /// A coflow, or a proposal, is taken back.
    CoflowCancelled {
        /// Its number.
        id: CoflowId,
        /// What broke, if no request asked for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// A circuit is set by hand, and stays.
    ManualConnect {
        /// The plane.
        plane: PlaneId,
        /// Sending rack.
        input: RackId,
        /// Receiving rack.
        output: RackId,
    },
    /// A circuit set by hand is given back.
    ManualDisconnect {
        /// The plane.
        plane: PlaneId,
        /// Sending rack.
        input: RackId,
    },
    /// All circuits are set by hand at one instant; those that are not among them are given back.
    ManualConfiguration {
        /// Plane, sending rack and receiving rack of each.
        circuits: Vec<(PlaneId, RackId, RackId)>,
    },
    /// A faulty port was mended.
    PortRepaired {
        /// The plane.
        plane: PlaneId,
        /// The port's rack.
        rack: RackId,
    },
    /// Something that the controller does not do itself failed (`why`), or is well again (`None`).
    Trouble {
        /// What failed.
        what: Trouble,
        /// Reason of the failure; `None` once what failed works again.
        why: Option<String>,
    },
    /// Something is broken on purpose, or mended: for the event log. Nothing is done about it until
    /// probes find it.
    Fault {
        /// The fault.
        what: String,
        /// Whether the fault has ended.
        over: bool,
    },
    /// Decide by this policy from the next cycle on.
    PolicyReplaced {
        /// The policy, already checked.
        policy: Box<CircuitPolicy>,
    },
}

impl Event {
    /// A coflow begins whose senders say when bytes have arrived.
    ///
    /// # Arguments
    /// - `pairs`: its bytes by pair of racks ([`RackBytes::of`]).
    /// - `bound`: lower bound of its completion time.
    pub fn arrival(coflow: &CoflowSpec, pairs: Vec<RackBytes>, bound: Span) -> Self {
        let (id, name, weight) = (coflow.id, coflow.name.clone(), coflow.weight);
        Self::CoflowArrived {
            id,
            name,
            pairs,
            bound,
            progress: ProgressBy::Sender,
            weight,
            priorities: coflow.priorities.clone(),
        }
    }
}

fn one() -> u32 {
    1
}

/// What tells when a coflow's bytes have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgressBy {
    /// The sender: [`Event::CoflowProgress`] and [`Event::CoflowFinished`] follow.
    Sender,
    /// The ToRs' counters, which are read; their bytes go to the oldest coflow of a pair first.
    Counters,
}

/// When the controller wants to be woken, and why: the answer of [`Controller::poll_timeout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wake {
    /// When it wants [`Event::Tick`].
    pub at: Time,
    /// What the wake-up is for.
    pub why: WakeReason,
    /// Whether [`Controller::skip_until`] will do instead.
    pub skip: Skip,
}

/// What a wake-up is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WakeReason {
    /// A cycle's deadline: observe, decide, write.
    Cycle,
    /// The same, since a coflow has arrived ([`policy::CircuitPolicy::at_arrivals`]).
    Arrival,
    /// A port of the fabric has room again for reservations that did not fit before: write them.
    Room,
}

/// Whether a wake-up provably changes nothing, so that it may be skipped. It matters in virtual
/// time only, where a day has 864,000 cycles of 100 ms and most of them find an empty network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    /// The wake-up may change something.
    Never,
    /// The wake-up does what the last cycle did, which was nothing, if the fabric shows what it
    /// showed then.
    IfQuiet,
    /// The network or the policy has no circuits: every cycle decides nothing, whatever the fabric
    /// shows.
    Always,
}

impl Skip {
    /// Whether the wake-up may be skipped; `quiet`: the fabric shows what it showed when it was
    /// last observed.
    pub fn is_allowed(self, quiet: bool) -> bool {
        self == Self::Always || self == Self::IfQuiet && quiet
    }
}

/// What the controller wants done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Action {
    /// Read the fabric; answer with [`Event::Observed`].
    Observe,
    /// Ask the program that decides about circuits; answer with [`Event::Advised`].
    Consult {
        /// What it may decide by.
        question: Question,
    },
    /// Carry out operations in order; answer with [`Event::Applied`].
    Apply {
        /// The operations.
        ops: Vec<Op>,
    },
    /// Change lists of switches in order; answer with [`Event::Steered`].
    Steer {
        /// The changes.
        ops: Vec<Steer>,
    },
    /// Give flows of a coflow other strict priorities; nothing answers.
    Prioritise {
        /// Its number.
        id: CoflowId,
        /// The flows that change, and their new priorities.
        change: PriorityChange,
    },
    /// Send a probe frame into `input` at `at`; answer with [`Event::Probed`].
    Probe {
        /// The plane.
        plane: PlaneId,
        /// Where to send it.
        input: RackId,
        /// Where it should come out.
        output: RackId,
        /// When the mirrors began to move: the dark time is counted from here.
        dark_from: Time,
        /// When the circuit has light.
        at: Time,
    },
    /// Write to the event log.
    Log {
        /// The line.
        record: record::Record,
    },
}

/// An event that cannot be accepted; the state is as before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Rejected {
    /// The object does not exist.
    #[error("{0} does not exist")]
    NotFound(String),
    /// The object is taken, or in the wrong state.
    #[error("{0}")]
    Conflict(String),
    /// The object was there, and its time is over.
    #[error("{0}")]
    Gone(String),
    /// The event makes no sense on this network.
    #[error("{0}")]
    Invalid(String),
    /// The controller has stopped, and takes no events.
    #[error("the controller has stopped")]
    Stopped,
}
