//! Coflows as equals: all make progress at the same pace.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::madd::in_proportion;
use super::{Demand, FreeCapacity, Rates, Remainder};

/// One in the fixed point in which a coflow's loads are measured against its largest.
const ONE: u128 = 1 << 40;

/// Gives every coflow rates in the proportion of what its groups still have to send. All coflows
/// grow together, measured by what each has on its own busiest link, until a link is full; every
/// coflow on that link keeps what it has, the others go on. So each link is shared by coflows, not
/// by flows, and a coflow's flows end together.
///
/// Rates are rounded down to bits per second. Returns of each the group that ends last. Needs
/// [`Demand::weigh`]. O(groups + coflows x links).
///
/// Source: the first stage of Chowdhury et al., *HUG: multi-resource fairness for correlated and
/// elastic demands*, NSDI 2016, which is dominant resource fairness over links.
pub fn equal_progress(
    demands: &[&Demand],
    free: &mut FreeCapacity,
    rates: &mut [Rates],
) -> Vec<Option<Remainder>> {
    let loads: Vec<Vec<(u32, u64)>> = demands.iter().map(|d| d.loads().collect()).collect();
    let left: Vec<u64> = (0..free.links() as u32).map(|l| free.left(l)).collect();
    let (paces, most) = (paces(&loads, &left), loads.iter().map(|l| most(l)));
    let each = demands.iter().zip(rates).zip(paces.into_iter().zip(most)).map(
        |((d, rates), (pace, most))| {
            let share = (u128::from(pace) << 64).checked_div(u128::from(most)).unwrap_or(0);
            in_proportion(d, share, free, rates)
        },
    );
    each.collect()
}

/// What a coflow has on its busiest link.
fn most(loads: &[(u32, u64)]) -> u64 {
    loads.iter().map(|l| l.1).max().unwrap_or(0)
}

/// The bits per second that each coflow has on its busiest link where all grow together, until a
/// link of theirs has nothing left of `left`. Their loads are by link. O(coflows x links + links
/// log links).
pub fn paces<L: AsRef<[(u32, u64)]>>(loads: &[L], left: &[u64]) -> Vec<u64> {
    let most: Vec<u64> = loads.iter().map(|l| most(l.as_ref())).collect();
    let used = |c: usize| loads[c].as_ref().iter().copied().filter(|x| x.1 > 0);
    let weight = |c: usize, bits: u64| (u128::from(bits) * ONE).div_ceil(u128::from(most[c]));
    // By link: what is left, in the fixed point; the weights that still grow; the coflows that have
    // them.
    let mut links: Vec<(u128, u128, Vec<u32>)> =
        left.iter().map(|&l| (u128::from(l) * ONE, 0, vec![])).collect();
    for c in 0..loads.len() {
        for (l, bits) in used(c) {
            let link = &mut links[l as usize];
            link.1 += weight(c, bits);
            link.2.push(c as u32);
        }
    }
    let mut pace: Vec<Option<u64>> = vec![None; loads.len()];
    let shares =
        links.iter().enumerate().filter_map(|(l, s)| Some(Reverse((s.0.checked_div(s.1)?, l))));
    let mut heap: BinaryHeap<_> = shares.collect();
    while let Some(Reverse((x, l))) = heap.pop() {
        let (left, growing) = (links[l].0, links[l].1);
        if growing == 0 {
            continue;
        }
        if left / growing != x {
            heap.push(Reverse((left / growing, l)));
            continue;
        }
        for c in std::mem::take(&mut links[l].2).into_iter().map(|c| c as usize) {
            if pace[c].is_none() {
                pace[c] = Some(u64::try_from(x).unwrap_or(u64::MAX));
                for (k, bits) in used(c) {
                    let (s, w) = (&mut links[k as usize], weight(c, bits));
                    (s.0, s.1) = (s.0 - x * w, s.1 - w);
                }
            }
        }
    }
    pace.into_iter().map(|p| p.unwrap_or(0)).collect()
}
