//! What can fail and is tried again.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{CoflowId, PlaneId, RackId};

/// Something that the daemon does again and again, and that can fail: the key of a
/// [`super::record::Failure`]. They are listed in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// To change what the port of a rack on a plane holds.
    Port(PlaneId, RackId),
    /// To change which lists of switches flows take.
    Paths,
    /// To find the namespaces of the emulation by their names.
    Names,
    /// To write the event log, the recording or the journal to their files.
    File(LogFile),
    /// To lay what the circuit scheduler decided out in time.
    Follow,
    /// To observe the fabric.
    Observe,
    /// To keep the network as it was built.
    World,
    /// To prove the operations before they are carried out.
    Plan,
    /// To carry a coflow: its bytes wait, and nothing has arrived for seconds.
    Carry(CoflowId),
}

/// A file that a run writes as it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFile {
    /// Of `--events`.
    Events,
    /// Of `--record`.
    Recording,
    /// Of `--journal`.
    Journal,
}

impl fmt::Display for LogFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Events => "event log",
            Self::Recording => "recording",
            Self::Journal => "journal",
        })
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(plane, rack) => write!(f, "change port {} of plane {}", rack.0, plane.0),
            Self::Paths => f.write_str("change the lists of switches"),
            Self::Names => f.write_str("find the namespaces by name"),
            Self::File(file) => write!(f, "write the {file}"),
            Self::Follow => f.write_str("follow the circuit scheduler"),
            Self::Observe => f.write_str("observe the fabric"),
            Self::World => f.write_str("the network is not as it was built"),
            Self::Carry(coflow) => write!(f, "carry coflow {}", coflow.0),
            Self::Plan => f.write_str("plan the operations"),
        }
    }
}
