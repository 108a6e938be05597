//! On how many racks a job's input lies (Co-scheduler section IV-D).

use serde::{Deserialize, Serialize};

use crate::units::Bytes;
use crate::workload::jobs::JobSpec;

use super::super::cluster::Cluster;
use super::super::latency::hybrid::ShuffleModel;
use super::super::latency::matrix::Matrix;
use super::super::replicas::ReplicaSets;

/// The ratio of a job's shuffle to its input (SIR): 1.0 at first, and learnt while its maps finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sir {
    read: u64,
    made: u64,
    /// What is expected before a map has finished, in per cent.
    first_percent: u32,
}

impl Default for Sir {
    fn default() -> Self {
        Self::starting(100)
    }
}

impl Sir {
    /// A ratio of `first_percent` per cent until a map task has finished.
    pub fn starting(first_percent: u32) -> Self {
        Self { read: 0, made: 0, first_percent }
    }

    /// A map task has read `input` and made `output` bytes of shuffle data.
    pub fn finished(&mut self, input: Bytes, output: Bytes) {
        self.read = self.read.saturating_add(input.0);
        self.made = self.made.saturating_add(output.0);
    }

    /// The shuffle to expect of a job with this input.
    pub fn shuffle_of(&self, input: Bytes) -> Bytes {
        match self.read {
            0 => Bytes(
                u64::try_from(u128::from(input.0) * u128::from(self.first_percent) / 100)
                    .unwrap_or(u64::MAX),
            ),
            read => Bytes(
                u64::try_from(u128::from(input.0) * u128::from(self.made) / u128::from(read))
                    .unwrap_or(u64::MAX),
            ),
        }
    }
}

/// R_data = R_map of a job that never ran before, from the shuffle to expect (eq. 7): max(1,
/// floor(sqrt(shuffle / T_e))), and no more than all racks.
pub fn width(shuffle: Bytes, cluster: &Cluster) -> usize {
    let pairs = shuffle.0 / cluster.elephant.0.max(1);
    (pairs.isqrt() as usize).clamp(1, cluster.racks.max(1))
}

/// R_data = R_map of a recurring job: the smallest map width in the green zone of its latency
/// matrix. A job without such a zone has nothing to aggregate: it gets the fewest racks on which
/// all its maps run at once (the paper is silent).
pub fn recurring_width(job: &JobSpec, matrix: &Matrix, cluster: &Cluster) -> usize {
    let zone = matrix.zone().map(|c| c.maps).min();
    let maps = job
        .stages
        .iter()
        .enumerate()
        .filter(|(s, _)| job.edges_into(*s).next().is_none())
        .map(|(_, s)| s.tasks)
        .sum::<u32>();
    let parallel = maps.div_ceil(cluster.rack_slots()) as usize;
    zone.unwrap_or(parallel).clamp(1, cluster.racks.max(1))
}

/// Where a job's input is to lie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DataGuideline {
    /// R_data, and R_map (eq. 3).
    pub width: usize,
    /// Three disjoint sets of `width` racks, for the three replicas.
    pub sets: ReplicaSets,
}

/// The latency matrix of a recurring job, of which decisions read the green zone only: no formula
/// of a shuffle's time changes that. O(R^2 (stages + edges)).
pub fn matrix(job: &JobSpec, cluster: &Cluster) -> Matrix {
    Matrix::of(job, cluster, ShuffleModel::default())
}

/// The data guideline of a job, recurring or not. O(R^2 (stages + edges)) for a recurring job, else
/// O(R).
///
/// # Panics
/// If the cluster has no rack.
pub fn guideline(job: &JobSpec, cluster: &Cluster, sir: Sir, seed: u64) -> DataGuideline {
    let width = match job.recurring {
        true => recurring_width(job, &matrix(job, cluster), cluster),
        false => width(sir.shuffle_of(job.input_bytes()), cluster),
    };
    DataGuideline { width, sets: ReplicaSets::random(cluster.racks, width, seed) }
}
