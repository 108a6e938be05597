//! Busiest sender first: the rack with the most to send takes the receiver that it has most for,
//! then the next one.

use heliostat::circuits::matching::{greedy_pairs, plane_by_plane};
use heliostat::circuits::{Ask, Decision, Matching, Scheduler};
use heliostat::demand::DemandMatrix;
use heliostat::ids::RackId;

/// Racks in the order of what they have to send, each joined with the free receiver that it has
/// most for.
///
/// # Arguments
/// - `demand`: bytes by (input, output), `R x R`. Of equal racks the smaller number is first.
///
/// # Complexity
/// O(R^2) for R racks.
pub fn busiest_first(demand: &DemandMatrix) -> Matching {
    let racks = demand.racks();
    let mut order: Vec<RackId> = (0..racks).map(RackId::from).collect();
    let sends = |r: &RackId| demand.row(*r).iter().map(|&b| u128::from(b)).sum::<u128>();
    order.sort_by_key(|r| (std::cmp::Reverse(sends(r)), *r));
    let mut matching = Matching::empty(racks);
    let mut taken = vec![false; racks];
    for input in order {
        let wanted = (0..racks).filter(|&j| !taken[j] && demand.row(input)[j] > 0);
        if let Some(j) = wanted.min_by_key(|&j| std::cmp::Reverse(demand.row(input)[j])) {
            taken[j] = matching.connect(input, RackId::from(j));
        }
    }
    matching
}

/// One matching a plane and interval.
pub struct BusiestFirst;

impl Scheduler for BusiestFirst {
    fn decide(&mut self, ask: &Ask) -> Decision {
        plane_by_plane(ask, false, |p, demand| {
            if ask.planes[p].duplex { greedy_pairs(demand) } else { busiest_first(demand) }
        })
    }
}
