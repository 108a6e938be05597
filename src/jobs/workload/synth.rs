//! A synthesiser of coflows with the mix of Facebook's cluster, from a seed.
//!
//! Varys (Chowdhury et al., SIGCOMM 2014, table 3) sorts coflows into four classes: short or long
//! (is the longest flow above 5 MB?) and narrow or wide (more than 50 flows?). It finds 52 %
//! short-narrow, 16 % long-narrow, 15 % short-wide and 17 % long-wide. Within a class, sizes are
//! spread evenly over their powers of two, which gives the heavy tail. Arrivals are a Poisson
//! process. Everything is integer arithmetic on a ChaCha stream, so one seed gives one trace on
//! every machine.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::coflow_benchmark::{MB, Trace, TraceCoflow};
use super::draws::exponential;
use crate::units::{Bytes, Span};

/// What is asked of the synthesiser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synth {
    /// Number of racks, R.
    pub racks: usize,
    /// Hosts a rack; the trace has `racks * hosts` ports.
    pub hosts: usize,
    /// Number of coflows.
    pub coflows: usize,
    /// The seed.
    pub seed: u64,
    /// Mean time between two arrivals.
    pub mean_gap: Span,
}

/// Shares of the classes in per cent, as (percent, long, wide).
const CLASSES: [(u32, bool, bool); 4] =
    [(52, false, false), (16, true, false), (15, false, true), (17, true, true)];
/// A coflow with more flows is wide.
const NARROW: u64 = 50;
/// A coflow with a larger flow is long, in megabytes.
const SHORT_MB: u64 = 5;
/// The largest flow, in megabytes.
const LONG_MB: u64 = 1024;

/// A trace in the coflow-benchmark's terms: ports are numbered so that port p is host p / R of rack
/// p mod R, as [`super::coflow_benchmark::PortMapping`] reads them. O(coflows x ports).
pub fn synth(ask: &Synth) -> Trace {
    let mut rng = ChaCha8Rng::seed_from_u64(ask.seed);
    let ports = (ask.racks as u64).saturating_mul(ask.hosts as u64).clamp(2, 100_000);
    let mut trace = Trace { ports, coflows: Vec::with_capacity(ask.coflows) };
    let mut at = 0u64;
    let mut all: Vec<u64> = (0..ports).collect();
    for id in 1..=ask.coflows as u64 {
        let (long, wide) = class(&mut rng);
        let (m, r) = width(&mut rng, ports, wide);
        let (mappers, _) = all.partial_shuffle(&mut rng, m);
        let mut mappers = mappers.to_vec();
        mappers.sort_unstable();
        let (reducers, _) = all.partial_shuffle(&mut rng, r);
        let mut reducers: Vec<_> =
            reducers.iter().map(|&p| (p, megabytes(&mut rng, long, m as u64))).collect();
        reducers.sort_unstable();
        trace.coflows.push(TraceCoflow { id, arrival_ms: at / 1_000_000, mappers, reducers });
        at = at.saturating_add(exponential(&mut rng, ask.mean_gap).0);
    }
    trace
}

fn class(rng: &mut ChaCha8Rng) -> (bool, bool) {
    let mut x = rng.random_range(0..100);
    for (share, long, wide) in CLASSES {
        if x < share {
            return (long, wide);
        }
        x -= share;
    }
    (false, false)
}

/// Numbers of mappers and reducers, P ports at most each. A network too small for more than 50
/// flows has wide coflows over all ports.
fn width(rng: &mut ChaCha8Rng, ports: u64, wide: bool) -> (usize, usize) {
    let (m, r) = if wide && ports * ports <= NARROW {
        (ports, ports)
    } else if wide {
        let m = rng.random_range((NARROW / ports + 1)..=ports);
        (m, rng.random_range((NARROW / m + 1)..=ports))
    } else {
        let m = up_to(rng, ports.min(NARROW));
        (m, up_to(rng, (NARROW / m).min(ports)))
    };
    if rng.random() { (m as usize, r as usize) } else { (r as usize, m as usize) }
}

/// A reducer's bytes, whole megabytes, so that each of `mappers` flows is of its class.
fn megabytes(rng: &mut ChaCha8Rng, long: bool, mappers: u64) -> Bytes {
    let flow = if long { SHORT_MB + up_to(rng, LONG_MB - SHORT_MB) } else { up_to(rng, SHORT_MB) };
    Bytes(flow * mappers * MB)
}

/// 1..=max, evenly over the powers of two: small numbers are common, large ones rare.
fn up_to(rng: &mut ChaCha8Rng, max: u64) -> u64 {
    let bits = max.ilog2() + 1;
    let low = 1u64 << rng.random_range(0..bits);
    rng.random_range(low..=(2 * low - 1).min(max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::coflow_benchmark::parse;
    use proptest::prelude::*;

    #[test]
    fn the_classes_have_their_shares() {
        let t =
            synth(&Synth { racks: 150, hosts: 1, coflows: 4000, seed: 7, mean_gap: Span::secs(1) });
        let mut counts = [0usize; 4];
        for c in &t.coflows {
            let wide = c.mappers.len() * c.reducers.len() > NARROW as usize;
            let long = c.reducers.iter().any(|r| r.1.0 / MB / c.mappers.len() as u64 > SHORT_MB);
            counts[CLASSES.iter().position(|k| (k.1, k.2) == (long, wide)).unwrap()] += 1;
        }
        for (n, k) in counts.iter().zip(CLASSES) {
            assert!(n.abs_diff(4000 * k.0 as usize / 100) < 120, "{counts:?}");
        }
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn a_seed_gives_one_valid_trace(racks in 0usize..12, hosts in 0usize..4, coflows in 0usize..20, seed: u64) {
            let ask = Synth { racks, hosts, coflows, seed, mean_gap: Span::millis(700) };
            let t = synth(&ask);
            prop_assert_eq!(&parse(&t.write()).unwrap(), &t);
            prop_assert_eq!(synth(&ask), t);
        }
    }
}
