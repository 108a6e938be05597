//! Network schedulers by name: how coflows share the packet network.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::orders::{Aalo, Order};

/// The network schedulers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkKind {
    /// All flows share max-min fairly, as many long TCP flows roughly do.
    #[default]
    MaxMin,
    /// All coflows make progress at the same pace, each in the proportion of its bytes.
    FairPerCoflow,
    /// Coflows in the order of their arrival.
    Fifo,
    /// Varys: smallest effective bottleneck first, flows of a coflow end together, what is left is filled in order.
    Varys,
    /// Aalo: coflows that have sent little go first, without knowing what they still have.
    Aalo,
    /// Sincronia: bottleneck, select, scale, iterate; each flow takes what earlier ones leave.
    Sincronia,
    /// Strict priorities of coflows, as switches with queues by DSCP have.
    Priority,
    /// Sunflow: no packet network at all, but circuits for each coflow, reserved anew when a coflow comes or ends.
    Sunflow,
}

/// A network scheduler with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Network {
    /// Which.
    pub kind: NetworkKind,
    /// How the flows of one coflow share what its place in the order leaves it, where the scheduler leaves that open
    /// ([`NetworkKind::has_within`]).
    pub within: Within,
    /// Of [`NetworkKind::Aalo`].
    pub aalo: Aalo,
    /// Of [`NetworkKind::Sunflow`]: which coflow reserves first.
    pub order: Order,
}

/// How the flows of one coflow share what its place in the order leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Within {
    /// Flow after flow takes all that its links have left.
    #[default]
    Greedy,
    /// Max-min fairly; coflows of equal priority too.
    MaxMin,
}

impl NetworkKind {
    /// Whether [`Within`] counts.
    pub fn has_within(self) -> bool {
        matches!(self, Self::Fifo | Self::Aalo | Self::Priority)
    }

    /// Whether the flows of a coflow have rates in the proportion of their bytes, which are decided when a coflow comes or ends;
    /// only what they leave free is given away anew when a flow ends.
    pub fn decides_by_coflow(self) -> bool {
        matches!(self, Self::FairPerCoflow | Self::Varys)
    }
}
