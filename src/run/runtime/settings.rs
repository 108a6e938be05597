//! What a run is made of: how circuits are decided, what the fabric and the traffic take at their
//! start, and how jobs are scheduled.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::circuits::external::{Privileges, ProgramAt};
use crate::coflows::elephants::Admit;
use crate::coflows::network::Network;
use crate::control::policy::CircuitPolicy;
use crate::fabric::SEND_BUFFER;
use crate::kernel::msg::Tcp;
use crate::scheduler::spec::JobPolicy;
use crate::units::{Bytes, Span};

/// All that one policy file says, checked. While a run lasts, only [`RunPlan::policy`] can be
/// replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPlan {
    /// How the controller decides about circuits.
    pub policy: CircuitPolicy,
    /// What the fabric and the traffic take at their start.
    pub run: RunSettings,
    /// How jobs are scheduled; `None` in a file that is for runs of coflows only.
    pub jobs: Option<JobPolicy>,
}

/// What the fabric and the traffic take at their start: fixed while a run lasts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSettings {
    /// Which packets a ToR admits to a circuit.
    pub admit: Admit,
    /// The first of 16 TCP ports of programs that mark no packet. In an emulation, what they send
    /// counts as marked while a declared coflow has an elephant between its racks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// How coflows share the packet network in a simulation. A live network has what TCP and its
    /// switches give, and its ports serve by strict priority if this does
    /// ([`crate::coflows::network::NetworkKind::service`]).
    pub network: Network,
    /// Sizes and rates of the workload are divided by this, times stay (1 = as given).
    pub scale: u64,
    /// TCP congestion control of the generated traffic, by its name in the kernel.
    pub congestion: String,
    /// TCP's shortest retransmission timeout on the hosts, of all programs there.
    #[serde(default = "rto_min")]
    pub rto_min: Span,
    /// The most bytes of one flow that count as backlog: what a sender's buffer holds.
    #[serde(default = "socket")]
    pub buffer: Bytes,
    /// The program that decides under the scheduler `external`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramSpec>,
}

/// A program that decides about circuits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramSpec {
    /// Where it is.
    #[serde(flatten)]
    pub at: ProgramAt,
    /// Time that it has for an answer in a live run.
    pub within: Span,
    /// Variables of this process's environment that it gets beside the plain ones.
    #[serde(default)]
    pub environment: Vec<String>,
    /// What it may do on the machine.
    #[serde(default)]
    pub privileges: Privileges,
    /// Where it is started: the directory of the policy's file; `None`: where this process is.
    #[serde(skip)]
    pub directory: Option<PathBuf>,
}

fn rto_min() -> Span {
    Tcp::default().rto_min
}

fn socket() -> Bytes {
    SEND_BUFFER
}

impl RunSettings {
    /// TCP of the hosts.
    pub fn tcp(&self) -> Tcp<'_> {
        Tcp { congestion: &self.congestion, rto_min: self.rto_min }
    }
}

impl Default for RunSettings {
    fn default() -> Self {
        let Tcp { congestion, rto_min } = Tcp::default();
        Self {
            admit: Admit::Marked,
            port: None,
            network: Network::default(),
            scale: 1,
            congestion: congestion.into(),
            rto_min,
            buffer: SEND_BUFFER,
            program: None,
        }
    }
}

impl From<CircuitPolicy> for RunPlan {
    /// A policy for circuits under the usual settings, without jobs.
    fn from(policy: CircuitPolicy) -> Self {
        Self { policy, ..Self::default() }
    }
}

impl RunPlan {
    /// This plan under another policy for circuits: what a run becomes whose policy is replaced.
    pub fn under(&self, policy: CircuitPolicy) -> Self {
        Self { policy, ..self.clone() }
    }
}
