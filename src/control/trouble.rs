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

/// A trouble in words, once it is over: `can write the journal again`.
pub fn recovered(trouble: &str) -> String {
    match trouble.strip_prefix("cannot ") {
        Some(what) => format!("can {what} again"),
        None => trouble.replacen(" is not ", " is again ", 1),
    }
}

/// What is wrong, in words that a reason may follow.
impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(plane, rack) => {
                write!(f, "cannot change port {} of plane {}", rack.0, plane.0)
            }
            Self::Paths => f.write_str("cannot change the lists of switches"),
            Self::Names => f.write_str("cannot find the namespaces by name"),
            Self::File(file) => write!(f, "cannot write the {file}"),
            Self::Follow => f.write_str("cannot follow the circuit scheduler"),
            Self::Observe => f.write_str("cannot observe the network"),
            Self::World => f.write_str("the network is not as it was built"),
            Self::Carry(coflow) => write!(f, "cannot carry coflow {}", coflow.0),
            Self::Plan => f.write_str("cannot plan the operations"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trouble_is_a_sentence_and_so_is_its_end() {
        let all = [
            Trouble::Port(PlaneId(0), RackId(2)),
            Trouble::Paths,
            Trouble::Names,
            Trouble::File(LogFile::Journal),
            Trouble::Follow,
            Trouble::Observe,
            Trouble::World,
            Trouble::Plan,
            Trouble::Carry(CoflowId(7)),
        ];
        for t in all.map(|t| t.to_string()) {
            assert!(t.starts_with("cannot ") != t.contains(" is not "), "{t}");
            assert_ne!(recovered(&t), t);
        }
        assert_eq!(recovered(&Trouble::World.to_string()), "the network is again as it was built");
        assert_eq!(
            recovered(&Trouble::File(LogFile::Journal).to_string()),
            "can write the journal again"
        );
    }
}
