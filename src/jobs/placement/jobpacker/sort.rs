//! The order in which JobPacker lays jobs out (section 4.3.2, figure 6).
//!
//! Widest first alone would bring all extremely shuffle-heavy jobs to the beginning. So a batch is
//! divided into B sub-batches of similar demands by Tetris' packing; each is sorted widest first,
//! then longest; and they follow each other in random order.

use std::cmp::Reverse;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::workload::jobs::JobSpec;

use super::super::cluster::Cluster;
use super::super::corral::Scenario;
use super::super::latency::hybrid::reads_blocks;
use super::JobPackerPlanOptions;
use super::profile::Profile;

/// Demands on the network, on map containers and on reduce containers.
type Demands = [f64; 3];

/// The places of the jobs, first to last. O(J^2) in a batch, else O(J log J).
pub fn order(
    jobs: &[JobSpec],
    profiles: &[Profile],
    cluster: &Cluster,
    options: JobPackerPlanOptions,
) -> Vec<usize> {
    let widest = |&j: &usize| (Reverse((profiles[j].width, profiles[j].latency)), j);
    if options.scenario == Scenario::Online {
        let mut all: Vec<usize> = (0..jobs.len()).collect();
        all.sort_by_key(|j| (jobs[*j].arrival, widest(j)));
        return all;
    }
    let mut batches = sub_batches(jobs, cluster, options.sub_batches.max(1) as usize);
    for batch in &mut batches {
        batch.sort_by_key(widest);
    }
    batches.shuffle(&mut ChaCha8Rng::seed_from_u64(options.seed));
    batches.concat()
}

/// Divides jobs into `count` sub-batches by Tetris' packing. The sub-batch with the most left
/// takes, of the jobs that fit it, the one whose demands fit what is left best (the greatest dot
/// product). If none fits, it takes the one with the greatest dot product of all.
///
/// A sub-batch has the capacity of the cluster. Where the whole workload asks for more than `count`
/// times that in some dimension, it has its share of the workload instead: all jobs must go
/// somewhere, and the sub-batches are to be alike. Each dimension counts in units of the capacity.
/// Ties break by place. O(J^2).
pub fn sub_batches(jobs: &[JobSpec], cluster: &Cluster, count: usize) -> Vec<Vec<usize>> {
    let mut demands: Vec<Demands> = jobs.iter().map(demand).collect();
    let capacity = capacity(&demands, cluster, count);
    demands.iter_mut().for_each(|d| (0..3).for_each(|k| d[k] /= capacity[k]));
    let mut left = vec![[1.0; 3]; count];
    let mut batches = vec![vec![]; count];
    let mut waiting: Vec<usize> = (0..jobs.len()).collect();
    while !waiting.is_empty() {
        let room = |b: &usize| left[*b].iter().sum::<f64>();
        let b = (0..count)
            .max_by(|x, y| room(x).total_cmp(&room(y)).then(y.cmp(x)))
            .expect("at least one sub-batch");
        let fits = |j: usize| (0..3).all(|k| demands[j][k] <= left[b][k]);
        let score = |j: usize| (0..3).map(|k| demands[j][k] * left[b][k].max(0.0)).sum::<f64>();
        let better = |x: &usize, y: &usize| {
            let (x, y) = (waiting[*x], waiting[*y]);
            fits(x).cmp(&fits(y)).then(score(x).total_cmp(&score(y))).then(y.cmp(&x))
        };
        let at = (0..waiting.len()).max_by(better).expect("a job is waiting");
        let j = waiting.remove(at);
        (0..3).for_each(|k| left[b][k] -= demands[j][k]);
        batches[b].push(j);
    }
    batches
}

fn demand(job: &JobSpec) -> Demands {
    let tasks = |blocks: bool| -> f64 {
        (0..job.stages.len())
            .filter(|&s| reads_blocks(job, s) == blocks)
            .map(|s| f64::from(job.stages[s].tasks))
            .sum()
    };
    [job.shuffle_bytes().0 as f64, tasks(true), tasks(false)]
}

fn capacity(demands: &[Demands], cluster: &Cluster, count: usize) -> Demands {
    let containers = cluster.racks as f64 * f64::from(cluster.rack_slots());
    // Cross-rack bytes in one second.
    let network = cluster.racks as f64
        * (cluster.core.0 as f64 + cluster.ocs.0 as f64 * f64::from(cluster.circuits))
        / 8.0;
    let own = [network, containers, containers];
    [0, 1, 2].map(|k| own[k].max(demands.iter().map(|d| d[k]).sum::<f64>() / count as f64).max(1.0))
}
