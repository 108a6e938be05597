//! Which flows are elephants.

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use super::flows::Edge;
use super::{CoflowSpec, RackBytes};
use crate::ids::RackId;
use crate::topology::Topology;
use crate::units::Bytes;

/// Which packets a ToR admits to a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Admit {
    /// All packets to a rack with a circuit, as c-Through and Helios do.
    All,
    /// Only packets marked as elephants (the bit [`ELEPHANT_DSCP`] of their DSCP).
    #[default]
    Marked,
    /// As `marked`, and elephants have no other way: they wait for their circuit. So the papers'
    /// simulators have it (JobPacker section 2.2: elephants are sent via the OCS, all else via the
    /// EPS). Live they wait in their ToR, and there must be one OCS plane.
    Wait,
}

impl Admit {
    /// The bit of the TOS byte that packets must have to be admitted, whatever the others are;
    /// `None`: all are.
    pub fn tos(self) -> Option<u8> {
        (self != Self::All).then_some(ELEPHANT_DSCP << 2)
    }

    /// Whether elephants wait for their circuit.
    pub fn waits(self) -> bool {
        self == Self::Wait
    }
}

/// The bit of the DSCP that marks an elephant; the bits above it may say a priority
/// ([`super::priority::dscp`]). As a TOS byte it is 0x08, the old "maximise throughput", which
/// every kernel's routing rules can match (until 6.12 they saw only the bits 0x1c).
pub const ELEPHANT_DSCP: u8 = 2;

/// Whether a coflow's flows from one rack to another are elephants: whether all the bytes that it
/// sends from the one to the other, as its pairs of racks ([`RackBytes::of`]) say, reach
/// `threshold`. Flows within a rack never are. O(log pairs).
///
/// The rule is that of JobPacker and Co-scheduler: below T_e an aggregate is not worth a circuit,
/// above it all its flows are.
pub fn is_elephant(pairs: &[RackBytes], from: RackId, to: RackId, threshold: Bytes) -> bool {
    let bytes = || {
        pairs.binary_search_by_key(&(from, to), Edge::ends).map_or(Bytes::ZERO, |k| pairs[k].bytes)
    };
    from != to && bytes() >= threshold
}

/// [`is_elephant`] for each flow of a coflow with these pairs of racks, in their order. O(F log
/// pairs).
pub fn marks(
    coflow: &CoflowSpec,
    pairs: &[RackBytes],
    topology: &Topology,
    threshold: Bytes,
) -> Vec<bool> {
    coflow
        .flows
        .iter()
        .map(|f| is_elephant(pairs, topology.rack_of(f.from), topology.rack_of(f.to), threshold))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coflows::FlowSpec;
    use crate::ids::{CoflowId, HostId};
    use crate::units::{BitRate, Time};

    #[test]
    fn the_aggregate_decides_not_the_flow() {
        let t = Topology::uniform("t", 3, 2, BitRate(8), BitRate(8), vec![]);
        let flow = |a, b, n| FlowSpec { from: HostId(a), to: HostId(b), bytes: Bytes(n) };
        let flows = vec![flow(0, 2, 4), flow(1, 3, 6), flow(0, 4, 9), flow(0, 1, 99)];
        let c = CoflowSpec::new(CoflowId(0), "", Time(0), flows);
        let pairs = RackBytes::of(&c.flows, &t);
        assert_eq!(marks(&c, &pairs, &t, Bytes(10)), [true, true, false, false]);
        assert_eq!(marks(&c, &pairs, &t, Bytes(0)), [true, true, true, false]);
    }
}
