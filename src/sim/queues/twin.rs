//! The slow twin: all links are shared again in rounds.
//!
//! Each round first fills flows max-min fairly over all links; a queue has the part that its port
//! gives it. Then each port computes these parts again, max-min fairly by what the flows of its
//! queues could have elsewhere. If a flow crosses no more than a queue and one other link, higher
//! parts at some ports only ever raise the parts at others. So rounds that begin with the lowest
//! parts rise to the lowest fair rates, those that begin with the highest fall to the highest, and
//! all fair rates lie between.
//!
//! Source: Tarski, A lattice-theoretical fixpoint theorem and its applications, Pacific Journal of
//! Mathematics 5, 1955.

use super::super::maxmin::MaxMin;
use super::{Queues, water_level};
use crate::coflows::rates::Path;

/// The most rounds.
const ROUNDS: usize = 4096;

/// The parts with which rounds begin.
#[derive(Clone, Copy, Debug)]
pub enum RoundStart {
    /// Equal parts of the ports for all queues.
    Low,
    /// The rates of the ports.
    High,
}

/// Rate of each flow by user, where a user is a path and a number of flows. Rounds end when no part
/// changes; `None`: they do not end.
pub fn rates(
    capacity: &[u64],
    queues: Queues,
    users: &[(Path, u32)],
    start: RoundStart,
) -> Option<Vec<u64>> {
    let on =
        |l: u32| users.iter().enumerate().filter(move |(_, u)| u.1 > 0 && u.0.links().contains(&l));
    let port = |p: u32| {
        let own = queues.first + p * queues.racks..queues.first + (p + 1) * queues.racks;
        (
            capacity[(queues.ports + p) as usize],
            own.filter(|&q| on(q).count() > 0).collect::<Vec<_>>(),
        )
    };
    let ports: Vec<(u64, Vec<u32>)> = (0..2 * queues.racks).map(port).collect();
    let first = |(rate, list): &(u64, Vec<u32>)| match start {
        RoundStart::Low => rate / list.len().max(1) as u64,
        RoundStart::High => *rate,
    };
    let mut parts: Vec<u64> = ports.iter().map(first).collect();
    let mut given = capacity.to_vec();
    for _ in 0..ROUNDS {
        for ((_, list), &part) in ports.iter().zip(&parts) {
            list.iter().for_each(|&q| given[q as usize] = part);
        }
        let mut m = MaxMin::new(given.clone());
        users.iter().enumerate().for_each(|(k, u)| m.set(k as u32, u.0, u.1));
        m.refill();
        let held: Vec<bool> = (0..given.len() as u32)
            .map(|l| on(l).any(|(k, _)| m.bottleneck(k as u32) == Some(l)))
            .collect();
        // Without this queue.
        let rest = |path: &Path, q: u32| {
            let others = path.links().iter().filter(|&&l| l != q);
            others
                .map(|&l| if held[l as usize] { m.level(l) } else { capacity[l as usize] })
                .min()
                .unwrap_or(u64::MAX)
        };
        let want = |q: u32| {
            on(q)
                .map(|(_, u)| rest(&u.0, q).saturating_mul(u.1.into()))
                .fold(0, u64::saturating_add)
        };
        let now = |(rate, list): &(u64, Vec<u32>)| {
            water_level(*rate, &mut list.iter().map(|&q| (want(q), 1)).collect()).unwrap_or(*rate)
        };
        let next: Vec<u64> = ports.iter().map(now).collect();
        if next == parts {
            return Some((0..users.len() as u32).map(|k| m.rate(k)).collect());
        }
        parts = next;
    }
    None
}
