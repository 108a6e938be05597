//! Every number of reduce racks that keeps a shuffle on circuits, and the tasks that each rack then
//! gets (Co-scheduler section IV-E.2).

use crate::ids::RackId;
use crate::units::Bytes;

use super::super::cluster::Cluster;
use super::super::latency::matrix::Matrix;

/// The map racks that count: those whose output reaches T_e. What the others hold goes by the
/// electrical core whatever is done.
///
/// Where one rack has too few slots for all reduce tasks, they take m racks at least, and the racks
/// that count are those that have T_e for each of m, if there are any. The paper is silent on this;
/// without it, one map rack with little output would confine any number of reduce tasks to few
/// racks, where they run in waves.
pub fn heavy_racks(
    maps: &[(RackId, Bytes)],
    reduces: u32,
    cluster: &Cluster,
) -> Vec<(RackId, Bytes)> {
    let reach = |bytes: u64| {
        maps.iter().copied().filter(|m| m.1.0 >= bytes && m.1 > Bytes::ZERO).collect::<Vec<_>>()
    };
    let least = u64::from(reduces.div_ceil(cluster.rack_slots().max(1)))
        .clamp(1, cluster.racks.max(1) as u64);
    let roomy = reach(cluster.elephant.0.saturating_mul(least));
    if roomy.is_empty() { reach(cluster.elephant.0) } else { roomy }
}

/// Every R_red to consider: 1 to floor(SM_1 / T_e) (eq. 11), where SM_1 is the smallest output of
/// the racks that count; no more than all racks or all reduce tasks. Nothing if no rack counts:
/// then the job is not shuffle-heavy.
pub fn widths(maps: &[(RackId, Bytes)], reduces: u32, cluster: &Cluster) -> Vec<usize> {
    let Some(smallest) = heavy_racks(maps, reduces, cluster).iter().map(|m| m.1).min() else {
        return vec![];
    };
    let most =
        (smallest.0 / cluster.elephant.0.max(1)).min(cluster.racks as u64).min(u64::from(reduces));
    (1..=most as usize).collect()
}

/// Of a recurring job: the reduce widths of its green zone for the map width that it has. What its
/// maps really made may be less than was foreseen: widths that no longer keep T_e are left out, and
/// if none is left, [`widths`] decides.
pub fn recurring_widths(
    matrix: &Matrix,
    maps: &[(RackId, Bytes)],
    reduces: u32,
    cluster: &Cluster,
) -> Vec<usize> {
    let possible = widths(maps, reduces, cluster);
    let width = heavy_racks(maps, reduces, cluster).len();
    let zone: Vec<usize> = matrix
        .zone()
        .filter(|c| c.maps == width && possible.contains(&c.reduces))
        .map(|c| c.reduces)
        .collect();
    if zone.is_empty() { possible } else { zone }
}

/// D: how many of `reduces` tasks each of `width` racks gets, in descending order; nothing if a
/// rack would get none.
///
/// Rack after rack is filled until what it takes from the rack with the smallest output reaches
/// T_e; the tasks that are left go one by one to the rack with the least. All reduce tasks take the
/// same share. O(width + reduces).
pub fn spread(smallest: Bytes, reduces: u32, width: usize, cluster: &Cluster) -> Option<Vec<u32>> {
    let whole = u128::from(cluster.elephant.0) * u128::from(reduces);
    let enough =
        whole.div_ceil(u128::from(smallest.0.max(1))).clamp(1, u128::from(u32::MAX)) as u32;
    let mut left = reduces;
    let mut tasks: Vec<u32> = (0..width)
        .map(|_| {
            let own = enough.min(left);
            left -= own;
            own
        })
        .collect();
    if tasks.is_empty() || tasks.contains(&0) {
        return None;
    }
    // Only the last may have fewer than the rest; once it has caught up, all get one in turn.
    let catch_up = left.min(enough - tasks[width - 1]);
    tasks[width - 1] += catch_up;
    left -= catch_up;
    for (k, own) in tasks.iter_mut().enumerate() {
        *own += left / width as u32 + u32::from((k as u32) < left % width as u32);
    }
    tasks.sort_unstable_by(|a, b| b.cmp(a));
    Some(tasks)
}
