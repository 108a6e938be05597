//! Corral's latency response function L_j(r) (section 4.3), and the price of uneven data (section
//! 4.5).
//!
//! With machines that run several tasks, a "machine" of the paper is a task slot: k slots a rack,
//! each with its share B of a NIC. Then a rack sends k B / V, its link to the core, whatever V is,
//! and k B in all.

use crate::units::{BitRate, Bytes, Span};
use crate::workload::jobs::JobSpec;

use super::super::cluster::{Cluster, share_time};

/// L_j(r): the latency of a job on `racks` racks. A MapReduce is map, shuffle and reduce one after
/// another; in a graph of stages each stage is a shuffle of all its incoming bytes and its own
/// computing, and the longest path counts. O(stages + edges).
///
/// # Panics
/// If `racks` is zero.
pub fn latency(job: &JobSpec, racks: usize, cluster: &Cluster) -> Span {
    let stage = |s: usize| {
        let spec = &job.stages[s];
        let bytes: Bytes = job.edges_into(s).map(|e| e.bytes).sum();
        shuffle(bytes, racks, cluster) * cluster.waves(spec.tasks, racks)
            + super::compute(spec, racks, cluster)
    };
    super::critical_path(job, stage, |_| Span::ZERO)
}

/// One wave of a shuffle of `bytes` within `racks` racks: the longer of l_core and l_local.
///
/// The paper has V > 1, so that the core takes B / V of a NIC and leaves B - B / V to the rack.
/// Where the core holds all NICs (V <= 1) that split means nothing: then each NIC carries what
/// leaves its machine.
///
/// # Panics
/// If `racks` is zero.
pub fn shuffle(bytes: Bytes, racks: usize, cluster: &Cluster) -> Span {
    let (r, k) = (racks as u64, u64::from(cluster.rack_slots()));
    let (all, core) = (cluster.rack_nic(), cluster.core);
    if core >= all {
        return share_time(all, bytes, r * k - 1, r * k * r);
    }
    let across = share_time(core, bytes, r - 1, r * r);
    let within = share_time(BitRate(all.0 - core.0), bytes, k - 1, r * r * k);
    across.max(within)
}

/// The price of uneven data (section 4.5): alpha * D_I / r, where alpha is `percent` hundredths of
/// the inverse of the rate between a rack and the core, the paper's choice at 100. It models the
/// time of loading the input into a rack.
///
/// # Panics
/// If `racks` is zero.
pub fn imbalance(job: &JobSpec, racks: usize, cluster: &Cluster, percent: u64) -> Span {
    share_time(cluster.core, job.input_bytes(), percent, 100 * racks as u64)
}

/// L'_j(r) for r = 1 ..= R, at index r - 1: latency and price of uneven data. O(R (stages +
/// edges)).
pub fn curve(job: &JobSpec, cluster: &Cluster, percent: u64) -> Vec<Span> {
    (1..=cluster.racks)
        .map(|r| latency(job, r, cluster) + imbalance(job, r, cluster, percent))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::samples::{any_map_reduce, map_reduce, stage};
    use super::*;
    use crate::workload::jobs::EdgeSpec;
    use proptest::prelude::*;

    /// Section 6.1: 7 racks x 30 machines, 10 Gb/s, 60 Gb/s a rack to the core (5:1), one task a
    /// machine.
    fn testbed() -> Cluster {
        Cluster {
            racks: 7,
            hosts: 30,
            slots: 1,
            nic: BitRate::mbit(10_000),
            core: BitRate::mbit(60_000),
            ..Cluster::corral()
        }
    }

    /// The equations of section 4.3 with the paper's symbols, in floating point.
    fn printed(shuffle: f64, n_r: f64, r: f64, k: f64, b: f64, v: f64) -> f64 {
        let waves = (n_r / (r * k)).ceil();
        let core = if r > 1.0 { shuffle / (r * k) * (r - 1.0) / r / (b / v) } else { 0.0 };
        let local = shuffle / (r * k) / r / (b - b / v) * (k - 1.0) / k;
        waves * core.max(local)
    }

    #[test]
    fn the_shuffle_is_as_printed_for_every_number_of_racks() {
        let c = testbed();
        let job = map_reduce((1, 0), (100, 0), 600_000);
        for r in 1..=7usize {
            let expect = printed(600e9 * 8.0, 100.0, r as f64, 30.0, 10e9, 5.0);
            let got = latency(&job, r, &c).as_secs_f64();
            assert!((got - expect).abs() < 1e-6 * expect + 1e-8, "r = {r}: {got} and {expect}");
        }
    }

    #[test]
    fn section_3_3_says_how_a_wide_shuffle_scales() {
        // (r - 1) S V / (r^2 B): from 2 to 3 racks it falls by (1/4) / (2/9), and towards V / r of
        // one rack's S / B.
        let c = Cluster { hosts: 1000, core: BitRate::mbit(2_000_000), ..testbed() };
        let t = |r| shuffle(Bytes(9_000_000_000_000), r, &c).as_secs_f64();
        assert!((t(2) / t(3) - (1.0 / 4.0) / (2.0 / 9.0)).abs() < 1e-6);
        let one_rack_at_full_rate = 9e12 * 8.0 / 10e12;
        assert!((t(100) / one_rack_at_full_rate - 5.0 * 99.0 / 10_000.0).abs() < 1e-6);
    }

    #[test]
    fn a_map_reduce_is_the_sum_of_its_three_stages() {
        let c = testbed();
        let job = map_reduce((100, 7_000), (40, 3_000), 60_000);
        let sum = Span::secs(4 * 7 + 2 * 3) + shuffle(Bytes(60_000_000_000), 1, &c) * 2;
        assert_eq!(latency(&job, 1, &c), sum);
        assert_eq!(latency(&job, 4, &c), Span::secs(10) + shuffle(Bytes(60_000_000_000), 4, &c));
    }

    #[test]
    fn a_graph_takes_its_longest_path() {
        let c = testbed();
        let mut job = map_reduce((1, 1000), (1, 1000), 60_000);
        job.stages.push(stage(1, Span::secs(50)));
        job.edges.push(EdgeSpec::even(1, 2, Bytes(90_000_000_000)));
        let first = shuffle(Bytes(60_000_000_000), 2, &c);
        assert_eq!(
            latency(&job, 2, &c),
            Span::secs(52) + first + shuffle(Bytes(90_000_000_000), 2, &c)
        );
        // A third edge, from the maps to the last stage: both shuffles into it share its NICs.
        job.edges.insert(1, EdgeSpec::even(0, 2, Bytes(30_000_000_000)));
        assert_eq!(
            latency(&job, 2, &c),
            Span::secs(52) + first + shuffle(Bytes(120_000_000_000), 2, &c)
        );
    }

    #[test]
    fn uneven_data_costs_the_time_of_loading_it() {
        let (c, job) = (testbed(), map_reduce((1, 0), (1, 0), 60_000));
        assert_eq!(
            (imbalance(&job, 1, &c, 100), imbalance(&job, 4, &c, 50)),
            (Span::secs(8), Span::secs(1))
        );
        assert_eq!(curve(&job, &c, 0)[1], latency(&job, 2, &c));
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn a_full_core_never_makes_a_shuffle_slower(job in any_map_reduce(), r in 1usize..20) {
            let full = Cluster { core: BitRate(u64::MAX), ..Cluster::jobpacker() };
            prop_assert!(latency(&job, r, &full) <= latency(&job, r, &Cluster::jobpacker()));
        }
    }
}
