//! Faults of the model, and their effects.
//!
//! A link that fails carries a part of its rate, or nothing. Flows without another route wait, and
//! continue when it works again. A port of an OCS that fails has no light where it was asked to.
//! The controller is not told: its probes find out.

pub use crate::circuits::timetable::Side;
use crate::ids::{HostId, PlaneId, RackId};
use crate::units::{Span, Time};

/// Something breaks at `at` and works again at `until`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The fault as it was written: what the event log says.
    pub text: String,
    /// When it begins.
    pub at: Time,
    /// When it ends; `None`: never.
    pub until: Option<Time>,
    /// What it is.
    pub what: BrokenPart,
}

/// What is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokenPart {
    /// Links carry only `percent` of their rate.
    Links {
        /// The links.
        which: Which,
        /// 0 to 99.
        percent: u32,
    },
    /// A port of an OCS.
    Port {
        /// Its plane.
        plane: PlaneId,
        /// Input or output.
        side: Side,
        /// The rack.
        rack: RackId,
        /// What is wrong with it.
        how: PortFault,
    },
}

/// Links that fail together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// A host's interface, both ways.
    Nic(HostId),
    /// A rack's link to the EPS, both ways.
    Uplink(RackId),
    /// A rack's switch: the interfaces of all its hosts.
    Tor(RackId),
    /// A pod's switch: its racks' links to it.
    Pod(u32),
    /// The core of the EPS.
    Core,
    /// The whole EPS: every rack's link to it.
    Eps,
    /// All cables between two switches of the EPS graph, by number, both ways.
    Cables(u32, u32),
    /// A switch of the EPS graph: all its cables, and the links of racks to it.
    Switch(u32),
}

/// What is wrong with a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortFault {
    /// Its mirror does not move: it stays connected to the port to which it had light when this
    /// began.
    Stuck,
    /// No light.
    Dark,
    /// Its circuits get their light later than asked, by this time.
    Slow(Span),
    /// Its commands are acknowledged and not carried out.
    Deaf,
}
