//! Where the three replicas of each data block go, by rack.
//!
//! Every policy is a pure function of a seed. No block has two replicas in one rack, unless its
//! policy wants it (HDFS keeps the second and third together) or there are too few racks.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use crate::ids::{RackId, by_name};
use crate::units::Bytes;

/// The racks of a block's replicas; the first is where its task is meant to run.
pub type Replicas = [RackId; 3];

/// Racks for the first, second and third replicas of a job's blocks (Co-scheduler section IV-D.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplicaSets {
    /// Each in ascending order.
    #[serde(serialize_with = "by_name::lists")]
    pub sets: [Vec<RackId>; 3],
    /// Whether no rack is in two sets. False where the cluster has too few racks: then each is in
    /// as few sets as can be.
    pub disjoint: bool,
}

impl ReplicaSets {
    /// `width` random racks of `racks` for each set; a width above the number of racks is taken as
    /// all of them. O(racks).
    ///
    /// # Panics
    /// If either number is zero.
    pub fn random(racks: usize, width: usize, seed: u64) -> Self {
        assert!(racks > 0 && width > 0, "a set of racks is not empty");
        let width = width.min(racks);
        let mut all: Vec<RackId> = (0..racks).map(RackId::from).collect();
        all.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        // One walk around the shuffled racks: where it must begin again, every rack was taken
        // equally often, give or take one.
        let mut walk = all.iter().cycle();
        let sets = [(); 3].map(|()| {
            let mut set: Vec<RackId> = walk.by_ref().take(width).copied().collect();
            set.sort_unstable();
            set
        });
        Self { sets, disjoint: 3 * width <= racks }
    }

    /// Spreads `blocks` blocks evenly over each set. O(blocks * width) at worst.
    pub fn blocks(&self, blocks: u32) -> Vec<Replicas> {
        (0..blocks as usize).map(|b| self.block(b)).collect()
    }

    fn block(&self, b: usize) -> Replicas {
        let mut taken: Vec<RackId> = vec![];
        for set in &self.sets {
            let in_turn = (0..set.len()).map(|i| set[(b + i) % set.len()]);
            let free = in_turn.clone().find(|r| !taken.contains(r));
            taken.push(free.unwrap_or(set[b % set.len()]));
        }
        [taken[0], taken[1], taken[2]]
    }

    /// All racks that hold data, in ascending order.
    pub fn racks(&self) -> Vec<RackId> {
        let mut all: Vec<RackId> = self.sets.iter().flatten().copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// HDFS: each block in two random racks, its second and third replica in the same one.
///
/// # Panics
/// If there is no rack.
pub fn hdfs(blocks: u32, racks: usize, seed: u64) -> Vec<Replicas> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..blocks)
        .map(|_| {
            let first = RackId::from(rng.random_range(0..racks));
            two_racks(first, racks, &mut rng)
        })
        .collect()
}

/// The first replica in `first`, the other two in one random rack besides.
fn two_racks(first: RackId, racks: usize, rng: &mut ChaCha8Rng) -> Replicas {
    let other = match racks {
        0 | 1 => first,
        _ => RackId::from((first.index() + rng.random_range(1..racks)) % racks),
    };
    [first, other, other]
}

/// JobPacker (section 4.4): the first replica of each block in a random rack of the job's map
/// racks, the other two in one of the other racks (besides the map racks, unless those are all).
/// Every map rack gets as many blocks as the schedule gives it map tasks, `(rack, tasks)`. Drawn
/// rack by rack, some racks would have fewer blocks than tasks, which then read over the core. So
/// it would be, too, if a map rack took blocks of another for near. O(blocks + racks).
pub fn jobpacker(maps: &[(RackId, u32)], racks: usize, seed: u64) -> Vec<Replicas> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut firsts: Vec<RackId> =
        maps.iter().flat_map(|&(r, n)| std::iter::repeat_n(r, n as usize)).collect();
    firsts.shuffle(&mut rng);
    let others: Vec<RackId> =
        (0..racks).map(RackId::from).filter(|r| maps.iter().all(|m| m.0 != *r)).collect();
    let one = |first: RackId| match others.len() {
        0 => two_racks(first, racks, &mut rng),
        n => {
            let other = others[rng.random_range(0..n)];
            [first, other, other]
        }
    };
    firsts.into_iter().map(one).collect()
}

/// Corral (sections 3.1 and 4.5): the first replica in a random rack of R_j, the other two in the
/// rack besides that holds the least data. `held` is what each rack holds, and grows. O(blocks *
/// racks).
///
/// # Panics
/// If `own` is empty.
pub fn corral(
    blocks: u32,
    size: Bytes,
    own: &[RackId],
    held: &mut [Bytes],
    seed: u64,
) -> Vec<Replicas> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let one = |_| {
        let first = own[rng.random_range(0..own.len())];
        let besides = (0..held.len()).filter(|&r| r != first.index()).min_by_key(|&r| (held[r], r));
        let other = besides.map_or(first, RackId::from);
        for rack in [first, other, other] {
            held[rack.index()] = held[rack.index()].saturating_add(size);
        }
        [first, other, other]
    };
    (0..blocks).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counts(racks: usize, of: impl Iterator<Item = RackId>) -> Vec<u32> {
        let mut n = vec![0; racks];
        of.for_each(|r| n[r.index()] += 1);
        n
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn sets_are_as_disjoint_as_can_be(racks in 1usize..40, width in 1usize..20, seed in 0u64..99) {
            let s = ReplicaSets::random(racks, width, seed);
            let n = counts(racks, s.sets.iter().flatten().copied());
            prop_assert!(s.sets.iter().all(|set| set.len() == width.min(racks) && set.windows(2).all(|w| w[0] < w[1])));
            prop_assert!(n.iter().max().unwrap() - n.iter().min().unwrap() <= 1);
            prop_assert_eq!(s.disjoint, n.iter().all(|&k| k <= 1));
            prop_assert_eq!(s.racks().len(), (3 * width.min(racks)).min(racks));
            prop_assert_eq!(ReplicaSets::random(racks, width, seed), s);
        }

        #[test]
        fn blocks_are_spread_evenly_and_apart(racks in 3usize..40, width in 1usize..14, blocks in 0u32..60) {
            let s = ReplicaSets::random(racks, width, 7);
            let all = s.blocks(blocks);
            prop_assert!(all.iter().all(|b| (0..3).all(|k| s.sets[k].contains(&b[k]))));
            prop_assert!(!s.disjoint || all.iter().all(|b| b[0] != b[1] && b[1] != b[2] && b[0] != b[2]));
            let first = counts(racks, all.iter().map(|b| b[0]));
            let of_set: Vec<u32> = s.sets[0].iter().map(|r| first[r.index()]).collect();
            prop_assert!(of_set.iter().max().unwrap() - of_set.iter().min().unwrap() <= 1);
        }

        #[test]
        fn the_first_replica_is_where_the_plan_says(racks in 2usize..20, own in 1usize..5, seed in 0u64..99) {
            let own: Vec<RackId> = (0..own.min(racks)).map(RackId::from).collect();
            let mut held = vec![Bytes::ZERO; racks];
            let c = corral(50, Bytes(10), &own, &mut held, seed);
            let shares: Vec<(RackId, u32)> = own.iter().map(|&r| (r, 10 + r.0)).collect();
            let j = jobpacker(&shares, racks, seed);
            for b in c.iter().chain(&j) {
                prop_assert!(own.contains(&b[0]) && b[1] != b[0] && b[1] == b[2] && b[1].index() < racks);
            }
            let firsts = counts(racks, j.iter().map(|b| b[0]));
            prop_assert!(shares.iter().all(|&(r, n)| firsts[r.index()] == n), "as many blocks as tasks");
            prop_assert_eq!(held.iter().copied().sum::<Bytes>(), Bytes(1500));
            prop_assert!(hdfs(20, racks, seed).iter().all(|b| b[0] != b[1]));
        }
    }

    #[test]
    fn corral_fills_the_emptiest_rack() {
        let mut held = [90, 50, 20, 0].map(Bytes);
        let got = corral(3, Bytes(15), &[RackId(0)], &mut held, 1);
        assert_eq!(got.iter().map(|b| b[1].0).collect::<Vec<_>>(), [3, 2, 3]);
        assert_eq!(ReplicaSets::random(1, 4, 0).blocks(1), [[RackId(0); 3]]);
    }
}
