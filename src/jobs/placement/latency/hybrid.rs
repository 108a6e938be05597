//! The latency of a job whose maps and reduces have widths of their own, on a network with
//! circuits: JobPacker eq. (1), Co-scheduler eq. (8) to (10).
//!
//! The papers print a shuffle time that is zero with one reduce rack, and show a matrix whose first
//! column has the longest shuffles. Hence [`ShuffleModel`]: what is printed, what fits the shown
//! matrix, and one that counts ports.

use serde::{Deserialize, Serialize};

use crate::units::{BitRate, Bytes, Span};
use crate::workload::jobs::JobSpec;

use super::super::cluster::{Cluster, share_time};

/// Which formula gives the time of a shuffle.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ShuffleModel {
    /// As the equations are printed: D = D_s / (r_map r_red) (r_red - 1), over BW.
    Printed,
    /// As the papers' matrices show: D_s / min(r_map, r_red) over BW_OCS, or D_s / r_map over
    /// BW_EPS.
    #[default]
    Figure,
    /// Ours: the busiest map rack's sending or the busiest reduce rack's receiving, whichever is
    /// longer; bytes that stay in a rack left out, one delta a circuit.
    Bottleneck,
}

/// Whether a shuffle of `bytes` from `maps` racks to `reduces` racks goes by circuits: its share of
/// one pair reaches T_e.
pub fn uses_circuits(bytes: Bytes, maps: usize, reduces: usize, cluster: &Cluster) -> bool {
    let pairs = u128::from(maps as u64) * u128::from(reduces as u64);
    cluster.has_circuits()
        && u128::from(bytes.0) >= u128::from(cluster.elephant.0) * pairs
        && bytes > Bytes::ZERO
}

/// The time of a shuffle of `bytes` from `maps` racks to `reduces` racks, on an idle network.
///
/// # Panics
/// If a width is zero.
pub fn shuffle(
    bytes: Bytes,
    maps: usize,
    reduces: usize,
    cluster: &Cluster,
    model: ShuffleModel,
) -> Span {
    let circuits = uses_circuits(bytes, maps, reduces, cluster);
    let rate = if circuits { cluster.ocs } else { cluster.core };
    let (m, r) = (maps as u64, reduces as u64);
    match model {
        ShuffleModel::Printed => share_time(rate, bytes, r - 1, m * r),
        ShuffleModel::Figure if circuits => share_time(rate, bytes, 1, m.min(r)),
        ShuffleModel::Figure => share_time(rate, bytes, 1, m),
        ShuffleModel::Bottleneck => bottleneck(bytes, m, r, rate, circuits, cluster),
    }
}

/// Maps and reduces have racks of their own as far as the cluster has racks; `common` of them must
/// hold both.
fn bottleneck(
    bytes: Bytes,
    maps: u64,
    reduces: u64,
    rate: BitRate,
    circuits: bool,
    cluster: &Cluster,
) -> Span {
    let common = (maps + reduces).saturating_sub(cluster.racks as u64).min(maps.min(reduces));
    let peers = |own: u64, other: u64| if own > common { other } else { other - 1 };
    let port = |partners: u64| {
        let time = share_time(rate, bytes, partners, maps * reduces);
        if circuits {
            sharing(
                time + cluster.delta * partners,
                longest(bytes, maps * reduces, cluster),
                cluster,
            )
        } else {
            time
        }
    };
    port(peers(maps, reduces)).max(port(peers(reduces, maps)))
}

/// The time of one pair's circuit.
fn longest(bytes: Bytes, pairs: u64, cluster: &Cluster) -> Span {
    share_time(cluster.ocs, bytes, 1, pairs) + cluster.delta
}

/// A port's time shared by the circuits that it holds at once, but never less than one pair needs
/// (Co-scheduler section VI).
fn sharing(port: Span, longest: Span, cluster: &Cluster) -> Span {
    if port == Span::ZERO {
        port
    } else {
        Span(port.0.div_ceil(u64::from(cluster.circuits.max(1)))).max(longest)
    }
}

/// L(r_map, r_red): stages that read data blocks (those without incoming edges) on `maps` racks,
/// all others on `reduces`. A graph of stages takes its longest path; shuffles between two of the
/// others go from `reduces` racks to as many.
///
/// # Panics
/// If a width is zero.
pub fn latency(
    job: &JobSpec,
    maps: usize,
    reduces: usize,
    cluster: &Cluster,
    model: ShuffleModel,
) -> Span {
    let width = |s: usize| if reads_blocks(job, s) { maps } else { reduces };
    let stage = |s: usize| super::compute(&job.stages[s], width(s), cluster);
    let edge =
        |e: usize| shuffle(job.edges[e].bytes, width(job.edges[e].from), reduces, cluster, model);
    super::critical_path(job, stage, edge)
}

/// Whether a stage waits for no shuffle: a MapReduce's map stage.
pub fn reads_blocks(job: &JobSpec, stage: usize) -> bool {
    job.edges_into(stage).next().is_none()
}

/// Whether one of the job's shuffles reaches T_e, so that a circuit may carry it (JobPacker section
/// 2.2).
pub fn shuffle_heavy(job: &JobSpec, cluster: &Cluster) -> bool {
    cluster.has_circuits()
        && job.edges.iter().any(|e| e.bytes >= cluster.elephant && e.bytes > Bytes::ZERO)
}

#[cfg(test)]
mod tests {
    use super::super::samples::{any_map_reduce, map_reduce};
    use super::*;
    use proptest::prelude::*;

    const GB: u64 = 1_000_000_000;

    #[test]
    fn the_threshold_is_per_pair_of_racks() {
        let c = Cluster::jobpacker();
        let at = |gb: u64, m, r| uses_circuits(Bytes(gb * GB), m, r, &c);
        assert!(at(9, 2, 4) && !at(9, 3, 3) && at(9, 1, 1));
        assert!(!uses_circuits(Bytes(9 * GB), 1, 1, &Cluster { circuits: 0, ..c }));
    }

    #[test]
    fn the_three_models_differ_as_described() {
        let c = Cluster { elephant: Bytes(GB), ..Cluster::jobpacker() };
        let t = |m, r, model| shuffle(Bytes(100 * GB), m, r, &c, model);
        // 100 GB at 100 Gb/s take 8 s in one pair.
        assert_eq!(
            (t(1, 1, ShuffleModel::Printed), t(1, 1, ShuffleModel::Figure)),
            (Span::ZERO, Span::secs(8))
        );
        assert_eq!(
            (t(4, 2, ShuffleModel::Printed), t(4, 2, ShuffleModel::Figure)),
            (Span::secs(1), Span::secs(4))
        );
        assert_eq!(t(4, 2, ShuffleModel::Bottleneck), Span::secs(4) + Span::millis(40));
        // 8 x 16 pairs are too many: 30 Gb/s.
        assert_eq!(
            t(8, 16, ShuffleModel::Figure),
            BitRate::mbit(30_000).time_for(Bytes(100 * GB / 8))
        );
        // All 20 racks hold both, or all but one: bytes that stay in a rack are left out.
        let eps = |bytes: u64| BitRate::mbit(30_000).time_for(Bytes(bytes));
        assert_eq!(t(20, 20, ShuffleModel::Bottleneck), eps(100 * GB / 400 * 19));
        assert_eq!(t(19, 20, ShuffleModel::Bottleneck), eps((100 * GB * 19).div_ceil(380)));
    }

    #[test]
    fn several_circuits_at_once_share_a_port_but_not_a_pair() {
        let c = Cluster { elephant: Bytes(GB), circuits: 3, ..Cluster::jobpacker() };
        let t = |m, r| shuffle(Bytes(100 * GB), m, r, &c, ShuffleModel::Bottleneck);
        assert_eq!(
            (t(1, 1), t(1, 2)),
            (Span::secs(8) + Span::millis(10), Span::secs(4) + Span::millis(10))
        );
        assert_eq!(t(1, 8), Span((Span::secs(8) + Span::millis(80)).0.div_ceil(3)));
    }

    #[test]
    fn what_is_heavy() {
        let c = Cluster::jobpacker();
        assert!(
            !shuffle_heavy(&map_reduce((1, 1), (1, 1), 1_124), &c)
                && shuffle_heavy(&map_reduce((1, 1), (1, 1), 1_125), &c)
        );
        assert!(!shuffle_heavy(&map_reduce((1, 1), (0, 1), 9_000), &c));
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn no_shuffle_beats_its_ports(job in any_map_reduce(), m in 1usize..20, r in 1usize..20) {
            let c = Cluster::jobpacker();
            let bytes = job.shuffle_bytes();
            let circuits = uses_circuits(bytes, m, r, &c);
            let rate = if circuits { c.ocs } else { c.core };
            // Each map rack holds a share, each reduce rack gets one; at most one share in `max(m,
            // r)` stays at home.
            let busiest = bytes.0 / (m.min(r) as u64) / (m.max(r) as u64) * (m.max(r) as u64 - 1);
            let t = shuffle(bytes, m, r, &c, ShuffleModel::Bottleneck);
            prop_assert!(m + r > 20 || t >= rate.time_for(Bytes(bytes.0 / m.min(r) as u64)));
            prop_assert!(t >= rate.time_for(Bytes(busiest)));
        }

        #[test]
        fn a_job_takes_at_least_its_computing(job in any_map_reduce(), m in 1usize..20, r in 1usize..20) {
            let c = Cluster::jobpacker();
            for model in [ShuffleModel::Printed, ShuffleModel::Figure, ShuffleModel::Bottleneck] {
                let compute = super::super::compute(&job.stages[0], m, &c) + super::super::compute(&job.stages[1], r, &c);
                let shuffle = shuffle(job.shuffle_bytes(), m, r, &c, model);
                prop_assert_eq!(latency(&job, m, r, &c, model), compute + shuffle);
            }
        }
    }
}
