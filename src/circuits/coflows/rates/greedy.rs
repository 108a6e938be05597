//! Flow after flow takes all that is left.

use super::{Demand, FreeCapacity, Rates};

/// Gives every group of the coflow, in their order, all that its links have left, on top of what it
/// has.
///
/// Called coflow after coflow it is an order-preserving, work-conserving allocation: no flow waits
/// while its links have room, and none gives way to a later coflow. Each group that is given
/// something fills a link, so at most as many run as there are links; on a switch of equal ports
/// the running flows are a matching. Called after another rule it is that rule's backfilling.
///
/// O(senders + groups that are given something), where receivers without room are passed over 64 at
/// a time.
///
/// Source: Agarwal et al., *Sincronia: near-optimal network design for coflows*, SIGCOMM 2018,
/// section 3.3 (greedy rate allocation); Chowdhury et al., *Efficient coflow scheduling with
/// Varys*, SIGCOMM 2014, section 5.3.4 (work conservation).
pub fn greedy(demand: &Demand, free: &mut FreeCapacity, rates: &mut Rates) {
    greedy_but(demand, free, rates, |_| false);
}

/// [`greedy()`], where a group that could be given something may be passed over: `but(group)`.
pub fn greedy_but(
    demand: &Demand,
    free: &mut FreeCapacity,
    rates: &mut Rates,
    mut but: impl FnMut(u32) -> bool,
) {
    let plain = demand.is_plain();
    demand.open_groups(free, |free, g, [up, down]| {
        let room =
            if plain { free.left(up).min(free.left(down)) } else { free.room(&demand.path(g)) };
        if room > 0 && !but(g) {
            demand.take(g, room, free);
            rates.add(g, room);
        }
    });
}
