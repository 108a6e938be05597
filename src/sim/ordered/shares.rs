//! Sharing of what is free among the flows of a coflow, and among coflows.

use super::active::ActiveCoflow;
use crate::coflows::orders::Aalo;
use crate::coflows::rates::{self, FreeCapacity, Rates};

/// Shares what is free among the flows of one coflow.
pub fn within(fair: bool, c: &mut ActiveCoflow, free: &mut FreeCapacity) {
    if fair {
        rates::max_min(&[&c.demand], free, std::slice::from_mut(&mut c.extra));
    } else {
        rates::greedy(&c.demand, free, &mut c.extra);
    }
}

/// Shares what is free among the flows of several coflows.
pub fn together(coflows: &mut [ActiveCoflow], free: &mut FreeCapacity) {
    let mut rates: Vec<Rates> = coflows.iter_mut().map(|c| std::mem::take(&mut c.extra)).collect();
    rates::max_min(&coflows.iter().map(|c| &c.demand).collect::<Vec<_>>(), free, &mut rates);
    coflows.iter_mut().zip(rates).for_each(|(c, r)| c.extra = r);
}

/// Aalo with weights: first every queue within its part of each link, then all in order over what
/// is left.
pub fn weighted(aalo: &Aalo, fair: bool, coflows: &mut [ActiveCoflow], free: &mut FreeCapacity) {
    let mut parts = parts(aalo, coflows, free).into_iter();
    for same in coflows.chunk_by_mut(|a, b| a.queue == b.queue) {
        let mut own = parts.next().expect("a part for each queue");
        for c in same {
            within(fair, c, &mut own);
            c.extra.running().for_each(|(g, rate)| c.demand.take(g, rate, free));
        }
    }
    coflows.iter_mut().for_each(|c| within(fair, c, free));
}

/// What is free for each queue that has coflows, in the order of queues. Coflows are in the order
/// of their queues.
pub fn parts(aalo: &Aalo, coflows: &[ActiveCoflow], free: &FreeCapacity) -> Vec<FreeCapacity> {
    let weight = |q: u32| u64::from(aalo.queues.saturating_sub(q).max(1));
    let queues = || coflows.chunk_by(|a, b| a.queue == b.queue).map(|same| weight(same[0].queue));
    let total: u64 = queues().sum();
    let part = |own: u64| {
        let of = |l: u32| (u128::from(free.left(l)) * u128::from(own) / u128::from(total)) as u64;
        FreeCapacity::new(&(0..free.links() as u32).map(of).collect::<Vec<_>>())
    };
    queues().map(part).collect()
}
