//! Which flows are elephants.

use std::collections::BTreeMap;

use super::CoflowSpec;
use crate::topology::Topology;
use crate::units::Bytes;

/// For each flow of a coflow, in order: whether it is marked as an elephant, that is, whether all bytes that the coflow sends from
/// the flow's rack to the receiver's rack reach `threshold`. Flows within a rack are never marked. O(F log F).
///
/// The rule is that of JobPacker and Co-scheduler: below T_e an aggregate is not worth a circuit, above it all its flows are.
pub fn marks(coflow: &CoflowSpec, topology: &Topology, threshold: Bytes) -> Vec<bool> {
    let pair = |f: &super::FlowSpec| (topology.rack_of(f.from), topology.rack_of(f.to));
    let mut sums = BTreeMap::new();
    for f in &coflow.flows {
        let sum: &mut Bytes = sums.entry(pair(f)).or_default();
        *sum = sum.saturating_add(f.bytes);
    }
    coflow.flows.iter().map(|f| pair(f).0 != pair(f).1 && sums[&pair(f)] >= threshold).collect()
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
        let c = CoflowSpec { id: CoflowId(0), name: String::new(), arrival: Time(0), flows };
        assert_eq!(marks(&c, &t, Bytes(10)), [true, true, false, false]);
        assert_eq!(marks(&c, &t, Bytes(0)), [true, true, true, false]);
    }
}
