//! Network schedulers by name: how coflows share the packet network.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use super::orders::{Aalo, Order};
use crate::units::{Span, Time};

/// The network schedulers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum NetworkKind {
    /// All flows share max-min fairly, as many long TCP flows roughly do.
    #[default]
    MaxMin,
    /// All coflows make progress at the same pace, each in the proportion of its bytes.
    FairPerCoflow,
    /// Coflows in the order of their arrival.
    Fifo,
    /// Varys: smallest effective bottleneck first, flows of a coflow end together, what is left is
    /// filled in order.
    Varys,
    /// Aalo: coflows that have sent little go first, without knowing what they still have.
    Aalo,
    /// Sincronia: bottleneck, select, scale, iterate; each flow takes what earlier ones leave.
    Sincronia,
    /// Strict priorities of coflows, as switches with queues by DSCP have.
    Priority,
    /// Sunflow: no packet network at all, but circuits for each coflow, reserved again when a
    /// coflow comes or ends.
    Sunflow,
}

/// A network scheduler with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Network {
    /// The kind of network.
    pub kind: NetworkKind,
    /// How the flows of one coflow share what its place in the order leaves it, where the scheduler
    /// leaves that open ([`NetworkKind::has_within`]).
    pub within: Within,
    /// Queues of [`NetworkKind::Aalo`].
    pub aalo: Aalo,
    /// Order of [`NetworkKind::Sunflow`]: which coflow reserves first.
    pub order: Order,
    /// When rates change, where coflows are served one after another.
    #[cfg_attr(feature = "serde", serde(default))]
    pub decide: Decide,
    /// Keeps coflows from waiting for ever, where they are served one after another.
    #[cfg_attr(feature = "serde", serde(default))]
    pub starvation: Option<Guard>,
}

/// When rates change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Decide {
    /// When a flow ends, too: no link idles that a flow could use.
    #[default]
    FlowEnds,
    /// Only when a coflow comes or ends, and when a circuit changes: what a flow had that has ended
    /// idles until then. So do CoflowSim and the simulator of Sunflow's authors; Aalo's and Varys'
    /// own prototypes do not.
    CoflowEvents,
}

/// A guard against starvation: coflows are served in their order for the time `every`, then all
/// flows share max-min fairly for the time `share`, in turn, counted from the beginning of the run.
/// A coflow then ends after at most (`every` + `share`) / `share` times as long as it takes with a
/// fair share. Under [`NetworkKind::Sunflow`] all coflows share fixed circuits for that time, other
/// ones in each turn.
///
/// Source: Chowdhury et al., *Efficient coflow scheduling with Varys*, SIGCOMM 2014, section 5.3.3;
/// Huang et al., *Sunflow*, CoNEXT 2016, section 4.2 (its T and tau).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Guard {
    /// How long coflows go in their order; above zero.
    pub every: Span,
    /// How long all flows share; above zero.
    pub share: Span,
}

impl Guard {
    /// How many times all have shared before the turn of `now`.
    pub fn round(&self, now: Time) -> u64 {
        now.0 / self.every.0.saturating_add(self.share.0).max(1)
    }

    /// Whether all share at `now`, and when that next changes.
    pub fn phase(&self, now: Time) -> (bool, Time) {
        let period = self.every.0.saturating_add(self.share.0).max(1);
        let into = now.0 % period;
        let shares = into >= self.every.0;
        let left = if shares { period - into } else { self.every.0 - into };
        (shares, Time(now.0.saturating_add(left)))
    }

    /// Whether all flows begin or end to share at this instant.
    pub fn turns_at(&self, now: Time) -> bool {
        now > Time::ZERO && self.phase(Time(now.0 - 1)).0 != self.phase(now).0
    }
}

/// How the flows of one coflow share what its place in the order leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Within {
    /// Flow after flow takes all that its links have left.
    #[default]
    Greedy,
    /// Max-min fairly; coflows of equal priority too.
    MaxMin,
    /// As any division of what its senders send among its receivers would allow (under
    /// [`NetworkKind::MaxMin`]: as flows that are alike would share): simulations know what each
    /// sender and each receiver has left, and no flow. Not where flows must be told apart: by
    /// circuits, uplinks that bind, a graph of switches, or faults.
    Sums,
}

/// How the ports of an emulated packet network serve what waits in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Service {
    /// In the order of arrival, acknowledgements first.
    #[default]
    Fifo,
    /// By strict priority of flows ([`super::priority`]), which their packets carry as DSCP;
    /// acknowledgements first.
    Strict,
}

impl Service {
    /// The TOS byte of the packets of a flow of strict `priority`, an elephant or not. Its class is
    /// said under [`Service::Strict`] only.
    pub fn tos(self, priority: u8, elephant: bool) -> u8 {
        let class = if self == Self::Strict { super::priority::dscp(priority) } else { 0 };
        let mark = if elephant { super::elephants::ELEPHANT_DSCP } else { 0 };
        (class | mark) << 2
    }
}

impl NetworkKind {
    /// All of them: the laws of the simulator are proved for each.
    pub const ALL: [Self; 8] = [
        Self::MaxMin,
        Self::FairPerCoflow,
        Self::Fifo,
        Self::Varys,
        Self::Aalo,
        Self::Sincronia,
        Self::Priority,
        Self::Sunflow,
    ];

    /// How ports serve what waits where this scheduler is emulated: TCP decides under all but
    /// [`NetworkKind::Priority`].
    pub fn service(self) -> Service {
        if self == Self::Priority { Service::Strict } else { Service::Fifo }
    }

    /// Whether [`Within`] counts in this form.
    pub fn has_within(self, within: Within) -> bool {
        match self {
            Self::Fifo | Self::Aalo => true,
            Self::Priority => within != Within::Sums,
            Self::MaxMin | Self::Varys | Self::Sincronia | Self::FairPerCoflow => {
                within == Within::Sums
            }
            Self::Sunflow => false,
        }
    }

    /// Whether coflows are served one after another by rates: [`Decide`] counts.
    pub fn has_order(self) -> bool {
        !matches!(self, Self::MaxMin | Self::Sunflow)
    }

    /// Whether some coflows may have to wait for others: [`Guard`] counts.
    pub fn may_starve(self) -> bool {
        self != Self::MaxMin
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coflows::priority::WITHIN_RACK;

    #[test]
    fn all_names_every_kind() {
        let schema = schemars::schema_for!(NetworkKind).to_value();
        let of_the_schema: Vec<&str> = schema["oneOf"]
            .as_array()
            .unwrap()
            .iter()
            .map(|k| k["const"].as_str().unwrap())
            .collect();
        let of_all: Vec<_> =
            NetworkKind::ALL.iter().map(|k| serde_json::to_value(k).unwrap()).collect();
        assert_eq!(of_all, of_the_schema);
    }

    #[test]
    fn a_mark_says_the_class_above_and_the_elephant_beside_it() {
        let strict = |p, e| Service::Strict.tos(p, e);
        // Class selectors CS7 to CS0, and the old "maximise throughput" beside them.
        assert_eq!(
            [0, 1, 4, 7, WITHIN_RACK].map(|p| strict(p, false)),
            [0xe0, 0xc0, 0x60, 0x00, 0x00]
        );
        assert_eq!([0, 7].map(|p| strict(p, true)), [0xe8, 0x08]);
        assert_eq!(
            [Service::Fifo.tos(0, false), Service::Fifo.tos(0, true)],
            [0, 0x08],
            "without priorities nothing changes"
        );
        assert_eq!(NetworkKind::Priority.service(), Service::Strict);
        assert_eq!(NetworkKind::default().service(), Service::Fifo);
    }
}
