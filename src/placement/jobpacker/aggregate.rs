//! JobPacker's shuffle data aggregation (section 4.2): a reduce task that has its container does not fetch at once. The reduces of a
//! rack begin together, when what they fetch from a map rack is worth a circuit.

use crate::units::Bytes;

use super::super::cluster::Cluster;

/// Whether the reduce tasks that wait in one rack may begin to fetch.
///
/// `maps` is the map output by rack, as far as it is known; `waiting` of the job's `reduces` tasks have containers in this rack;
/// `all_assigned` says that no reduce task of the job is without one. Racks whose output is below T_e never get a circuit, and are
/// not waited for. A job that is not shuffle-heavy fetches at once. O(map racks).
pub fn may_fetch(maps: &[Bytes], waiting: u32, reduces: u32, all_assigned: bool, cluster: &Cluster) -> bool {
    let heavy = maps.iter().filter(|b| cluster.has_circuits() && **b >= cluster.elephant).min();
    let Some(smallest) = heavy else { return waiting > 0 };
    let reaches = u128::from(smallest.0) * u128::from(waiting) >= u128::from(cluster.elephant.0) * u128::from(reduces);
    waiting > 0 && (all_assigned || reaches)
}
