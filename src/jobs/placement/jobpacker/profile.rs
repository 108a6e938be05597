//! JobPacker's job profiler (section 4.3.1): the feasible pairs of widths of a job, its width, and
//! its latency.

use crate::units::Span;
use crate::workload::jobs::JobSpec;

use super::super::cluster::Cluster;
use super::super::latency::hybrid::{self, ShuffleModel, reads_blocks};
use super::super::latency::matrix::Matrix;

/// What the job manager knows of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Feasible (map-width, reduce-width) pairs; none if the job is not shuffle-heavy.
    pub pairs: Vec<(usize, usize)>,
    /// Its width in containers, so that both kinds of jobs compare in integers. It is the largest
    /// r_map + r_red racks of its pairs, or all its tasks, which the paper divides by the
    /// containers of a rack.
    pub width: u64,
    /// Its latency on an idle cluster: with its best pair; or on the fewest racks that run all
    /// tasks of a stage at once.
    pub latency: Span,
}

/// Whether with these widths the two racks that have the fewest tasks still exchange T_e, for every
/// heavy shuffle of the job.
fn keeps_elephants(job: &JobSpec, (maps, reduces): (usize, usize), cluster: &Cluster) -> bool {
    let width = |s: usize| if reads_blocks(job, s) { maps } else { reduces };
    let fewest = |s: usize| u128::from(job.stages[s].tasks / width(s) as u32);
    let mut heavy = job.edges.iter().filter(|e| e.bytes >= cluster.elephant);
    let all = |s: usize| u128::from(job.stages[s].tasks);
    heavy.all(|e| {
        let least = u128::from(e.bytes.0) * fewest(e.from) * fewest(e.to);
        least >= u128::from(cluster.elephant.0) * all(e.from) * all(e.to)
    })
}

/// Profiles a job. `keep_elephants`: pairs with which some racks would exchange less than T_e,
/// since tasks come whole, are left out if there are others; the paper takes the whole zone. O(R^2
/// (stages + edges)).
pub fn profile(
    job: &JobSpec,
    cluster: &Cluster,
    model: ShuffleModel,
    keep_elephants: bool,
) -> Profile {
    if hybrid::shuffle_heavy(job, cluster) {
        let matrix = Matrix::of(job, cluster, model);
        let zone: Vec<_> = matrix.zone().collect();
        // Tasks come whole: where they do not divide by a width, a rack with fewer sends less than
        // its even share.
        let kept = zone
            .iter()
            .filter(|c| keep_elephants && keeps_elephants(job, (c.maps, c.reduces), cluster))
            .copied()
            .collect::<Vec<_>>();
        let zone = if kept.is_empty() { zone } else { kept };
        let pairs: Vec<(usize, usize)> = zone.iter().map(|c| (c.maps, c.reduces)).collect();
        if let Some(latency) = zone.iter().map(|c| c.latency).min() {
            let widest = pairs.iter().map(|p| p.0 + p.1).max().unwrap_or(0);
            return Profile {
                pairs,
                width: widest as u64 * u64::from(cluster.rack_slots()),
                latency,
            };
        }
    }
    let racks = |blocks: bool| {
        let tasks = (0..job.stages.len())
            .filter(|&s| reads_blocks(job, s) == blocks)
            .map(|s| job.stages[s].tasks)
            .max();
        (tasks.unwrap_or(1).div_ceil(cluster.rack_slots()) as usize).clamp(1, cluster.racks.max(1))
    };
    let latency = hybrid::latency(job, racks(true), racks(false), cluster, model);
    Profile { pairs: vec![], width: job.tasks(), latency }
}
