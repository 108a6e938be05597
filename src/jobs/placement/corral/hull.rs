//! Which widths are worth considering for a job of which both its latency and the rack time that it
//! takes count.

use crate::units::Span;

/// A width of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobWidth {
    /// r.
    pub racks: usize,
    /// L(r) in nanoseconds.
    pub latency: u64,
    /// r L(r).
    pub rack_time: u128,
}

/// The widths on the lower hull of (latency, rack time), from the shortest latency to the least
/// rack time. Whatever a nanosecond on a rack costs, one of these has the smallest sum of latency
/// and cost. `curve` is L(r) for r = 1, 2 .. O(R log R).
pub fn widths(curve: &[Span]) -> Vec<JobWidth> {
    let width = |(k, l): (usize, &Span)| JobWidth {
        racks: k + 1,
        latency: l.0,
        rack_time: u128::from(l.0) * (k as u128 + 1),
    };
    let mut all: Vec<JobWidth> = curve.iter().enumerate().map(width).collect();
    all.sort_by_key(|w| (w.latency, w.rack_time));
    let mut hull: Vec<JobWidth> = vec![];
    for w in all {
        // Longer and no less rack time: of no use.
        if hull.last().is_some_and(|last| w.rack_time >= last.rack_time) {
            continue;
        }
        while let [.., a, b] = hull[..] {
            let fall = |to: JobWidth| a.rack_time - to.rack_time;
            let longer = |to: JobWidth| u128::from(to.latency - a.latency);
            if fall(b).saturating_mul(longer(w)) > fall(w).saturating_mul(longer(b)) {
                break;
            }
            hull.pop();
        }
        hull.push(w);
    }
    hull
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn the_best_width_at_any_price_is_on_the_hull(curve in prop::collection::vec(1u64..1000, 1..12), price in 0u64..50) {
            let curve: Vec<Span> = curve.into_iter().map(Span).collect();
            // In hundredths of a nanosecond, and for free.
            let cost = |latency: u64, rack_time: u128| u128::from(latency) * 100 + rack_time * u128::from(price);
            let all = curve.iter().enumerate().map(|(k, l)| cost(l.0, u128::from(l.0) * (k as u128 + 1))).min();
            let hull = widths(&curve);
            prop_assert_eq!(hull.iter().map(|w| cost(w.latency, w.rack_time)).min(), all);
            prop_assert!(hull.windows(2).all(|w| w[0].latency < w[1].latency && w[0].rack_time > w[1].rack_time));
        }
    }
}
