//! Smallest effective bottleneck first.

use crate::coflows::rates::{Demand, bottleneck};

/// Orders coflows by the time that each would take alone on the whole network with what it still
/// has to send. Needs [`Demand::weigh`]. O(n (links + log n)) for n coflows.
///
/// Source: Chowdhury et al., *Efficient coflow scheduling with Varys*, SIGCOMM 2014, section 5.3.2.
pub fn sebf(demands: &[&Demand], capacity: &[u64]) -> Vec<usize> {
    by_time(
        &demands
            .iter()
            .map(|d| bottleneck(d, |l| capacity[l as usize]).unwrap_or((0, 1)))
            .collect::<Vec<_>>(),
    )
}

/// Orders coflows by the time that each takes on its slowest link, given as (bits, bits per
/// second). O(n log n).
pub fn by_time(slowest: &[(u64, u64)]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..slowest.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (slowest[a], slowest[b]);
        (u128::from(a.0) * u128::from(b.1)).cmp(&(u128::from(b.0) * u128::from(a.1)))
    });
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coflows::rates::{HostGroup, Path};
    use crate::units::NANOS;

    #[test]
    fn the_bottleneck_decides_not_the_size() {
        // Links 0 and 1 send, 2 and 3 receive; link 1 is slow.
        let d = |list: &[(u32, u32, u64)]| {
            let group = |&(a, b, bits): &(u32, u32, u64)| HostGroup {
                path: Path::new(&[a, b]),
                left: u128::from(bits) * u128::from(NANOS),
            };
            let mut d = Demand::new(list.iter().map(group));
            d.weigh();
            d
        };
        let (wide, narrow, slow) =
            (d(&[(0, 2, 50), (0, 3, 40)]), d(&[(0, 2, 80)]), d(&[(1, 3, 10)]));
        let order = sebf(&[&wide, &narrow, &slow, &d(&[])], &[10, 1, 10, 10]);
        assert_eq!(order, [3, 1, 0, 2], "nothing, 8 s, 9 s, 10 s");
        assert_eq!(
            sebf(&[&wide, &narrow], &[10, 1, 0, 10]),
            [0, 1],
            "both never end: they keep their order"
        );
    }
}
