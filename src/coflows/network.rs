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

/// How the ports of an emulated packet network serve what waits in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// In the order of arrival, acknowledgements first.
    #[default]
    Fifo,
    /// By strict priority of flows ([`super::priority`]), which their packets carry as DSCP; acknowledgements first.
    Strict,
}

impl Service {
    /// The TOS byte of the packets of a flow of strict `priority`, an elephant or not. Its class is said under [`Service::Strict`] only.
    pub fn tos(self, priority: u8, elephant: bool) -> u8 {
        let class = if self == Self::Strict { super::priority::dscp(priority) } else { 0 };
        let mark = if elephant { super::elephants::ELEPHANT_DSCP } else { 0 };
        (class | mark) << 2
    }
}

impl NetworkKind {
    /// How ports serve what waits where this scheduler is emulated: TCP decides under all but [`NetworkKind::Priority`].
    pub fn service(self) -> Service {
        if self == Self::Priority { Service::Strict } else { Service::Fifo }
    }

    /// Whether [`Within`] counts.
    pub fn has_within(self) -> bool {
        matches!(self, Self::Fifo | Self::Aalo | Self::Priority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coflows::priority::WITHIN_RACK;

    #[test]
    fn a_mark_says_the_class_above_and_the_elephant_beside_it() {
        let strict = |p, e| Service::Strict.tos(p, e);
        // Class selectors CS7 to CS0, and the old "maximise throughput" beside them.
        assert_eq!([0, 1, 4, 7, WITHIN_RACK].map(|p| strict(p, false)), [0xe0, 0xc0, 0x60, 0x00, 0x00]);
        assert_eq!([0, 7].map(|p| strict(p, true)), [0xe8, 0x08]);
        assert_eq!([Service::Fifo.tos(0, false), Service::Fifo.tos(0, true)], [0, 0x08], "without priorities nothing changes");
        assert_eq!(NetworkKind::Priority.service(), Service::Strict);
        assert_eq!(NetworkKind::default().service(), Service::Fifo);
    }
}
