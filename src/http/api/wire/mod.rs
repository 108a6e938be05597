//! The API's own types: what travels as JSON. Racks, planes and coflows are integers (requests may
//! name racks, planes and hosts), times and spans end in `_ns` (from the run's epoch), amounts of
//! data in `_bytes`, rates in `_bps` (bits per second).

mod coflows;
mod events;
mod graph;
mod jobs;
mod links;
mod named;
mod network;
mod paths;
mod placement;
mod stats;
mod utilisation;

pub use coflows::{
    Coflow, CoflowBody, CoflowChange, CoflowLeft, CoflowState, Coflows, Flow, FlowLeft,
    FlowPriority, FlowView, OpenFlows, PairBody, RackPair,
};
pub use events::{Record, Steered, What};
pub use graph::{Graph, GraphLink, GraphSwitch};
pub use jobs::{
    Afar, Decision, Decisions, Estimate, Job, JobName, Jobs, JobsReport, Limits, OpenSlots,
    OrderedBy, PlacedBy, SlotsHeld, SlotsSample, Turn,
};
pub use links::{LinkBehaviour, Links};
pub use named::{Amount, HostRef, Length, Named, PlaneRef, RackRef};
pub use network::{
    Circuit, CircuitBody, CircuitState, Circuits, ConfigurationBody, Demand, Host, ManualCircuit,
    Plane, Port, PortQueues, Ports, Queue, Queues, Rack, Topology, Uplink,
};
pub use paths::{
    DecidedBy, FlowPorts, LoadChange, PathBody, PathChange, PathView, Paths, SwitchLoad,
    SwitchPort, SwitchTier,
};
pub use placement::{
    Candidate, Confirmation, Excluded, HeldProposal, PairWay, PlaceRequest, PlacedTasks,
    PlacementOrigin, Proposal, RackOutput, RackSlots, RackTasks, ReservedCircuit, Score, SentOver,
    SoonFree,
};
pub use stats::{Failure, Quantiles, Ranges, Stats};
pub use utilisation::{LinkLoad, Utilisation};
