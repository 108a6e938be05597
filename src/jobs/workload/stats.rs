//! What a workload looks like: counts and percentiles.

use serde::Serialize;

use super::Workload;
use crate::coflows::{CoflowSpec, RackBytes};
use crate::topology::Topology;
use crate::units::{Bytes, Span};

/// The figures of one workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkloadStats {
    /// Number of coflows.
    pub coflows: usize,
    /// Number of flows.
    pub flows: usize,
    /// Payload bytes, all.
    pub bytes: Bytes,
    /// Payload bytes between racks.
    #[serde(rename = "between_racks_bytes")]
    pub bytes_between_racks: Bytes,
    /// Time from the first arrival to the last.
    #[serde(rename = "arrivals_ns")]
    pub arrivals: Span,
    /// How many coflows are of each of Varys' classes, and their bytes (SIGCOMM 2014, table 3).
    pub classes: [VarysClass; 4],
    /// Bytes a coflow.
    pub coflow_bytes: Percentiles,
    /// Flows a coflow.
    pub coflow_width: Percentiles,
    /// Bytes a flow.
    pub flow_bytes: Percentiles,
    /// Bytes of one coflow from a rack to a rack: what the elephant threshold is compared with.
    pub pair_bytes: Percentiles,
}

/// One of Varys' classes: short or long, whether the longest flow has more than [`SHORT`]; narrow
/// or wide, whether there are more than [`NARROW`] flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VarysClass {
    /// Its name.
    pub name: &'static str,
    /// Coflows.
    pub coflows: usize,
    /// Their bytes.
    pub bytes: Bytes,
}

/// The longest flow of a short coflow.
pub const SHORT: Bytes = Bytes(5_000_000);
/// The flows of a narrow coflow.
pub const NARROW: usize = 50;

/// The names of Varys' classes, by [`class_of`].
pub const CLASSES: [&str; 4] = ["short narrow", "long narrow", "short wide", "long wide"];

/// Which of [`CLASSES`] a coflow is in, by its number of flows and the bytes of the longest one.
pub fn class_of(flows: usize, longest: Bytes) -> usize {
    usize::from(longest > SHORT) + 2 * usize::from(flows > NARROW)
}

/// The classes of coflows. Linear in the number of flows.
fn classes(coflows: &[CoflowSpec]) -> [VarysClass; 4] {
    let mut all = CLASSES.map(|name| VarysClass { name, ..VarysClass::default() });
    for c in coflows {
        let class = &mut all[class_of(c.flows.len(), c.longest_flow())];
        (class.coflows, class.bytes) = (class.coflows + 1, class.bytes.saturating_add(c.bytes()));
    }
    all
}

/// Nearest-rank percentiles of a set of numbers; all zero for an empty set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// The smallest.
    pub min: u64,
    /// 5 of 100 are not larger.
    pub p5: u64,
    /// The median.
    pub p50: u64,
    /// Nine of ten are not larger.
    pub p90: u64,
    /// 95 of 100 are not larger.
    pub p95: u64,
    /// 99 of 100 are not larger.
    pub p99: u64,
    /// The largest.
    pub max: u64,
}

/// The smallest value of a sorted list that `percent` per cent of it do not exceed (nearest rank);
/// `None` if it is empty.
pub fn nearest_rank<T: Copy>(sorted: &[T], percent: usize) -> Option<T> {
    sorted.get(place_of(sorted.len(), percent)).copied()
}

/// The place of that value in a sorted list of `n`; zero if that is empty.
pub fn place_of(n: usize, percent: usize) -> usize {
    (n * percent).div_ceil(100).clamp(1, n.max(1)) - 1
}

impl Percentiles {
    /// Percentiles of numbers in any order. O(n log n).
    pub fn of(numbers: impl IntoIterator<Item = u64>) -> Self {
        let mut v: Vec<u64> = numbers.into_iter().collect();
        v.sort_unstable();
        let p = |percent| nearest_rank(&v, percent).unwrap_or(0);
        Self { min: p(0), p5: p(5), p50: p(50), p90: p(90), p95: p(95), p99: p(99), max: p(100) }
    }
}

/// The figures of `workload` on `topology`. O(F log F).
pub fn stats(workload: &Workload, topology: &Topology) -> WorkloadStats {
    let c = &workload.coflows;
    let pairs: Vec<u64> =
        c.iter().flat_map(|c| RackBytes::of(&c.flows, topology)).map(|p| p.bytes.0).collect();
    let ends = (c.first(), c.last());
    WorkloadStats {
        coflows: c.len(),
        flows: c.iter().map(|c| c.flows.len()).sum(),
        bytes: workload.bytes(),
        bytes_between_racks: pairs.iter().map(|&b| Bytes(b)).sum(),
        arrivals: if let (Some(a), Some(b)) = ends {
            b.arrival.since(a.arrival)
        } else {
            Span::ZERO
        },
        classes: classes(c),
        coflow_bytes: Percentiles::of(c.iter().map(|c| c.bytes().0)),
        coflow_width: Percentiles::of(c.iter().map(|c| c.flows.len() as u64)),
        flow_bytes: Percentiles::of(c.iter().flat_map(|c| c.flows.iter().map(|f| f.bytes.0))),
        pair_bytes: Percentiles::of(pairs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coflows::FlowSpec;
    use crate::ids::{CoflowId, HostId};
    use crate::units::Time;

    #[test]
    fn coflows_are_counted_by_class() {
        let flows = |n: usize, bytes: u64| {
            let flow = |k: usize| FlowSpec {
                from: HostId(0),
                to: HostId::from(1 + k),
                bytes: Bytes(bytes),
            };
            let (name, id) = (String::new(), CoflowId(0));
            let flows = (0..n).map(flow).collect();
            CoflowSpec::new(id, name, Time::ZERO, flows)
        };
        let counts = classes(&[
            flows(50, 5_000_000),
            flows(51, 1),
            flows(1, 5_000_001),
            flows(60, 6_000_000),
            flows(2, 3),
        ]);
        assert_eq!(counts.map(|c| c.coflows), [2, 1, 1, 1]);
        assert_eq!(counts.map(|c| c.bytes.0), [250_000_006, 5_000_001, 51, 360_000_000]);
    }

    #[test]
    fn percentiles_are_nearest_rank() {
        let p = Percentiles::of((1..=10).rev());
        assert_eq!(p, Percentiles { min: 1, p5: 1, p50: 5, p90: 9, p95: 10, p99: 10, max: 10 });
        assert_eq!(Percentiles::of([]), Percentiles::default());
        assert_eq!(nearest_rank(&[7], 95), Some(7));
        assert_eq!(nearest_rank(&(1..=20).collect::<Vec<_>>(), 95), Some(19));
    }
}
