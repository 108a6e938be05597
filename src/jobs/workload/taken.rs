//! What became of a file when it was read over a network: what was bent so that it fits, and what
//! was left out.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a reader did to a workload, beside reading it. Nothing of a file that fits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// Its ends are more than the network has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folded: Option<Folded>,
    /// What is not in the workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// The file has this number of jobs, whose shuffles were made coflows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_jobs: Option<u64>,
    /// More coflows were asked for than there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fewer: Option<Fewer>,
}

/// Several ends of a file fall on one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Folded {
    /// What the file calls its ends: ports, nodes.
    pub what: String,
    /// How many the file has.
    pub ends: u64,
    /// Hosts that there are.
    pub hosts: u64,
    /// Flows that stay within a host by it, and those that there are.
    pub local: (u64, u64),
}

impl fmt::Display for Folded {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (local, all) = self.local;
        write!(
            f,
            "{} {} folded on {} hosts, {local} of {all} flows within a host by it",
            self.ends, self.what, self.hosts
        )
    }
}

/// A workload has fewer coflows than were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fewer {
    /// Coflows that were asked for.
    pub asked: u64,
    /// Coflows that there are.
    pub there: u64,
}

impl fmt::Display for Fewer {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} coflows, where {} were asked for", self.there, self.asked)
    }
}

/// Records that are not in a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// How many.
    pub count: u64,
    /// What they are, in the plural.
    pub what: String,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} {} left out", self.count, self.what)
    }
}

impl Taken {
    /// Nothing was done beside reading.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// Notes records that are left out, if there are any.
    pub fn leave_out(&mut self, count: u64, what: &str) {
        self.left_out.extend((count > 0).then(|| LeftOut { count, what: what.into() }));
    }
}
