//! Max-min fair shares of one or several coflows by progressive filling.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Demand, FreeCapacity, Rates};

/// Gives all live groups of these coflows their max-min fair rates over what is left, and takes
/// those from `free`. All grow together until a link is full; its groups keep their rate, and the
/// others go on. Rates are rounded down to bits per second. Needs [`Demand::index`].
///
/// O(groups + links log links).
///
/// Source: Bertsekas and Gallager, *Data Networks*, 2nd edition, section 6.5.2.
pub fn max_min(demands: &[&Demand], free: &mut FreeCapacity, rates: &mut [Rates]) {
    let mut waits: Vec<Vec<bool>> = demands.iter().map(|d| vec![false; d.groups()]).collect();
    // By link: what is left, and how many groups still grow.
    let mut links: Vec<(u64, u64)> = (0..free.links() as u32).map(|l| (free.left(l), 0)).collect();
    for (c, d) in demands.iter().enumerate() {
        d.open_groups(free, |free, g, _| {
            let path = d.path(g);
            if free.room(&path) > 0 {
                waits[c][g as usize] = true;
                path.links().iter().for_each(|&l| links[l as usize].1 += 1);
            }
        });
    }
    let shares = links
        .iter()
        .enumerate()
        .filter_map(|(l, s)| Some(Reverse((s.0.checked_div(s.1)?, l as u32))));
    let mut heap: BinaryHeap<_> = shares.collect();
    while let Some(Reverse((share, l))) = heap.pop() {
        let (left, growing) = links[l as usize];
        if growing == 0 {
            continue;
        }
        if left / growing != share {
            heap.push(Reverse((left / growing, l)));
            continue;
        }
        for (c, d) in demands.iter().enumerate() {
            for &g in d.members(l) {
                if std::mem::take(&mut waits[c][g as usize]) {
                    let path = d.path(g);
                    for &k in path.links() {
                        let (left, growing) = &mut links[k as usize];
                        (*left, *growing) = (*left - share, *growing - 1);
                    }
                    free.take(&path, share);
                    rates[c].add(g, share);
                }
            }
        }
    }
}
