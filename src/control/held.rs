//! Demand where ToRs hold bytes until a circuit has light.

use crate::coflows::OpenCoflow;
use crate::demand::DemandMatrix;
use crate::ids::RackId;

/// What ToRs hold, and which pairs of racks wait for nothing.
///
/// A client may declare more bytes of a pair of racks than it sends. The rest of that pair would
/// keep two ports busy until its coflow ends. The coflow ends only when its other pairs have sent
/// all, and these may wait for the same ports.
pub struct HeldDemand<'a> {
    bytes: &'a DemandMatrix,
    crossed: DemandMatrix,
    /// By rack: whether bytes are held that leave it, and that go to it.
    ports: [Vec<bool>; 2],
}

impl<'a> HeldDemand<'a> {
    /// From what is held, and what has crossed circuits since the last look: `R x R` each. O(R^2).
    pub fn new(bytes: &'a DemandMatrix, crossed: DemandMatrix) -> Self {
        let mut ports = [vec![false; bytes.racks()], vec![false; bytes.racks()]];
        for (i, j, _) in bytes.entries() {
            ports[0][i.index()] = true;
            ports[1][j.index()] = true;
        }
        Self { bytes, crossed, ports }
    }

    /// Whether a pair leaves its ports to others: none of its bytes are held, none have crossed
    /// since the last look, and bytes of another pair are held for one of its ports.
    fn yields(&self, i: RackId, j: RackId) -> bool {
        let idle = self.bytes.get(i, j) == 0 && self.crossed.get(i, j) == 0;
        idle && (self.ports[0][i.index()] || self.ports[1][j.index()])
    }

    /// The demand: what was declared of each pair that does not yield, and at least what is held of
    /// it, also if its coflow has ended. O(R^2).
    pub fn demand(&self, declared: &DemandMatrix) -> DemandMatrix {
        declared.map_pairs(
            |i, j, bytes| {
                if self.yields(i, j) { 0 } else { bytes.max(self.bytes.get(i, j)) }
            },
        )
    }

    /// Leaves out the pairs that yield. O(pairs).
    pub fn filter(&self, coflows: &mut Vec<OpenCoflow>) {
        coflows.retain_mut(|c| {
            c.rest.retain(|&(i, j, _)| !self.yields(i, j));
            !c.rest.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::CoflowId;
    use crate::units::Time;

    #[test]
    fn pairs_without_bytes_leave_their_ports_to_those_that_wait() {
        let of = DemandMatrix::from_rows;
        let held = of(&[&[0, 7, 0, 0], &[0, 0, 0, 0], &[0, 0, 0, 0], &[5, 0, 0, 0]]);
        let crossed = of(&[&[0, 0, 3, 0], &[0, 0, 0, 0], &[0, 0, 0, 0], &[0, 0, 0, 0]]);
        let held = HeldDemand::new(&held, crossed);
        // 0>2 sends, 0>3 and 2>1 need a port for which others wait, 1>2 needs none, and of 3>0 more
        // is held than is declared.
        let declared = of(&[&[0, 90, 90, 90], &[0, 0, 90, 0], &[0, 90, 0, 0], &[1, 0, 0, 0]]);
        let demand = of(&[&[0, 90, 90, 0], &[0, 0, 90, 0], &[0, 0, 0, 0], &[5, 0, 0, 0]]);
        assert_eq!(held.demand(&declared), demand);

        let pair = |i, j| (RackId(i), RackId(j), 90);
        let coflow = |id, rest: &[_]| OpenCoflow {
            id: CoflowId(id),
            arrival: Time::ZERO,
            weight: 1,
            sent: 0,
            rest: rest.to_vec(),
        };
        let mut coflows = vec![coflow(0, &[pair(0, 1), pair(0, 3)]), coflow(1, &[pair(2, 1)])];
        held.filter(&mut coflows);
        assert_eq!(coflows, [coflow(0, &[pair(0, 1)])]);
    }
}
