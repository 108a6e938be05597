//! Flows that come one by one between any two hosts, in the sizes of two data centres: an open
//! load, as papers on flow scheduling use it.
//!
//! `web-search`: a cluster of web search (Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010,
//! fig. 4). `data-mining`: a cluster of large data-mining jobs (Greenberg et al., "VL2", SIGCOMM
//! 2009, fig. 2). The papers draw curves; the points below are those that generators of such
//! traffic take from them (`DCTCP_CDF.txt` and `VL2_CDF.txt` of HKUST's TrafficGenerator), straight
//! lines between them. Arrivals are a Poisson process. Everything is integer arithmetic on a ChaCha
//! stream, so one seed gives one workload on every machine.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::Workload;
use super::draws::exponential;
use crate::coflows::{CoflowSpec, FlowSpec};
use crate::ids::{CoflowId, HostId};
use crate::units::{BitRate, Bytes, Span, Time};

/// Whose flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowSizes {
    /// Web search: a mean of 1.7 MB; 30 % of the flows above 1 MB carry nearly all bytes.
    WebSearch,
    /// Data mining: a mean of 12.7 MB; half of the flows below 1.1 kB, and 2 % above 100 MB carry
    /// nearly all bytes.
    DataMining,
}

/// Shares are counted in millionths.
const ALL: u64 = 1_000_000;

/// Sizes in bytes, each with the share of the flows that are not larger, in per mille.
const WEB_SEARCH: [(u64, u64); 12] = [
    (0, 0),
    (10_000, 150),
    (20_000, 200),
    (30_000, 300),
    (50_000, 400),
    (80_000, 530),
    (200_000, 600),
    (1_000_000, 700),
    (2_000_000, 800),
    (5_000_000, 900),
    (10_000_000, 970),
    (30_000_000, 1000),
];
/// The same of data mining.
const DATA_MINING: [(u64, u64); 13] = [
    (0, 0),
    (180, 100),
    (216, 200),
    (560, 300),
    (900, 400),
    (1_100, 500),
    (1_870, 600),
    (3_160, 700),
    (10_000, 800),
    (400_000, 900),
    (3_160_000, 950),
    (100_000_000, 980),
    (1_000_000_000, 1000),
];

impl FlowSizes {
    fn points(self) -> &'static [(u64, u64)] {
        match self {
            Self::WebSearch => &WEB_SEARCH,
            Self::DataMining => &DATA_MINING,
        }
    }

    /// The size that `share` millionths of the flows do not exceed, at least a byte. O(points).
    pub fn quantile(self, share: u64) -> Bytes {
        let share = share.min(ALL);
        let line = self.points().windows(2).find(|p| share <= p[1].1 * 1000);
        let Some(&[(from, below), (to, above)]) =
            line.map(|p| <&[_; 2]>::try_from(p).expect("two points"))
        else {
            return Bytes(1);
        };
        Bytes((from + (to - from) * (share - below * 1000) / ((above - below) * 1000)).max(1))
    }

    /// The mean size, rounded down: half of the ends of each line, by its share.
    pub fn mean(self) -> Bytes {
        Bytes(
            self.points().windows(2).map(|p| (p[1].1 - p[0].1) * (p[0].0 + p[1].0)).sum::<u64>()
                / 2000,
        )
    }

    /// The mean time between two flows that together send at this rate.
    pub fn gap(self, rate: BitRate) -> Span {
        rate.time_for(self.mean())
    }
}

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomFlows {
    /// Of which sizes.
    pub sizes: FlowSizes,
    /// Number of hosts; of fewer than two there are no flows.
    pub hosts: usize,
    /// Number of flows.
    pub flows: usize,
    /// The seed.
    pub seed: u64,
    /// Mean time between two arrivals.
    pub mean_gap: Span,
}

/// The flows, each a coflow of its own, from a host to another one, all pairs alike. O(flows).
pub fn flows(name: &str, ask: &RandomFlows) -> Workload {
    let mut rng = ChaCha8Rng::seed_from_u64(ask.seed);
    let (hosts, mut at) = (ask.hosts as u32, 0u64);
    let mut one = |k: usize| {
        let from = rng.random_range(0..hosts);
        let to = (from + rng.random_range(1..hosts)) % hosts;
        let bytes = ask.sizes.quantile(rng.random_range(1..=ALL));
        let arrival = Time(at);
        at = at.saturating_add(exponential(&mut rng, ask.mean_gap).0);
        CoflowSpec::new(
            CoflowId(k as u32),
            format!("flow-{}", k + 1),
            arrival,
            vec![FlowSpec { from: HostId(from), to: HostId(to), bytes }],
        )
    };
    let many = if hosts < 2 { 0 } else { ask.flows };
    Workload::new(name, (0..many).map(&mut one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOTH: [FlowSizes; 2] = [FlowSizes::WebSearch, FlowSizes::DataMining];

    #[test]
    fn sizes_are_those_of_the_curves() {
        let of = |sizes: FlowSizes, shares: [u64; 4]| shares.map(|s| sizes.quantile(s).0);
        // At a point, between two points (a quarter of the way from 50 kB to 80 kB), at the ends.
        assert_eq!(
            of(FlowSizes::WebSearch, [530_000, 432_500, 0, ALL]),
            [80_000, 57_500, 1, 30_000_000]
        );
        assert_eq!(
            of(FlowSizes::DataMining, [500_000, 990_000, 1, 2 * ALL]),
            [1_100, 550_000_000, 1, 1_000_000_000]
        );
        // The means that papers state: 1.7 MB and 12.7 MB.
        assert_eq!(BOTH.map(|s| s.mean().0), [1_711_250, 12_658_198]);
        assert_eq!(FlowSizes::WebSearch.gap(BitRate::mbit(1000)), Span(13_690_000));
    }

    #[test]
    fn drawn_flows_have_the_mean_and_the_load_that_are_asked_for() {
        let ask = RandomFlows {
            sizes: FlowSizes::WebSearch,
            hosts: 16,
            flows: 20_000,
            seed: 3,
            mean_gap: Span::millis(10),
        };
        let w = flows("w", &ask);
        let (bytes, last) = (w.bytes().0 as f64, w.coflows.last().unwrap().arrival.0 as f64);
        assert!((bytes / 20_000.0 / 1_711_250.0 - 1.0).abs() < 0.05, "{bytes}");
        assert!((last / 20_000.0 / 1e7 - 1.0).abs() < 0.05, "{last}");
        let small = w.coflows.iter().filter(|c| c.bytes().0 <= 80_000).count();
        assert!(small.abs_diff(10_600) < 300, "{small}");
        let from = |h: u32| w.coflows.iter().filter(|c| c.flows.at(0).from == HostId(h)).count();
        assert!((0..16).all(|h| from(h).abs_diff(1250) < 200), "all hosts send alike");
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn a_seed_gives_one_workload_between_different_hosts(hosts in 0usize..9, n in 0usize..40, seed: u64, data in any::<bool>()) {
            let ask = RandomFlows { sizes: BOTH[usize::from(data)], hosts, flows: n, seed, mean_gap: Span::millis(7) };
            let w = flows("w", &ask);
            prop_assert_eq!(w.coflows.len(), if hosts < 2 { 0 } else { n });
            for f in w.coflows.iter().flat_map(|c| &c.flows) {
                prop_assert!(f.from != f.to && f.from.index().max(f.to.index()) < hosts && f.bytes > Bytes(0), "{:?}", f);
            }
            prop_assert!(w.coflows.windows(2).all(|c| c[0].arrival <= c[1].arrival));
            prop_assert_eq!(flows("w", &ask), w);
        }

        /// Larger shares have sizes no smaller; the twin goes through the points one by one in
        /// floating point.
        #[test]
        fn quantiles_rise_and_are_those_of_a_slow_twin(share in 0..=ALL, data in any::<bool>()) {
            let sizes = BOTH[usize::from(data)];
            prop_assert!(sizes.quantile(share) <= sizes.quantile(share + 1));
            let (mut slow, x) = (0.0, share as f64 / 1000.0);
            for p in sizes.points().windows(2) {
                let part = ((x - p[0].1 as f64) / (p[1].1 - p[0].1) as f64).clamp(0.0, 1.0);
                slow += part * (p[1].0 - p[0].0) as f64;
            }
            prop_assert!((sizes.quantile(share).0 as f64 - slow.max(1.0)).abs() <= 1.0, "{} {}", share, slow);
        }
    }
}
