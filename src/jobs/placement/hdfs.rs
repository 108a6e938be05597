//! HDFS's default placement of replicas: what every baseline does with data, and the planners with
//! what they do not guide.
//!
//! The first replica goes to a host that is drawn (the writer is outside the cluster). The second
//! goes to a host of another rack, the third to another host of the second's rack (Hadoop 3,
//! `BlockPlacementPolicyDefault`). Hosts that are down get none.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::ids::{HostId, JobId, RackId};
use crate::placement::policy::{Block, View};
use crate::placement::replicas::Replicas;
use crate::topology::Topology;

/// The random stream of one job's data: the same for a seed and a job, whatever else happened.
pub fn stream(seed: u64, job: JobId) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(u64::from(job.0));
    rng
}

/// Default blocks for all stages of a job that read. O(tasks).
pub fn blocks(view: &dyn View, job: JobId, seed: u64) -> Vec<Vec<Block>> {
    let mut rng = stream(seed, job);
    let up = |h| view.is_up(h);
    by_stage(view, job, |_| block(view.topology(), &up, &mut rng))
}

/// Blocks by stage, each drawn by `draw`, which gets the task.
pub fn by_stage(
    view: &dyn View,
    job: JobId,
    mut draw: impl FnMut(u32) -> Block,
) -> Vec<Vec<Block>> {
    let stages = &view.job(job).stages;
    stages
        .iter()
        .map(|s| if s.input.0 == 0 { vec![] } else { (0..s.tasks).map(&mut draw).collect() })
        .collect()
}

/// A seed for what a planner draws for one job.
pub fn mixed(seed: u64, job: JobId) -> u64 {
    stream(seed, job).random()
}

/// Blocks whose replicas are in the racks that a planner chose for stage `s`: each on a drawn host
/// of its rack, none twice on a host. Where a rack has none left, another rack's host is taken.
/// O(tasks).
pub fn in_racks(
    view: &dyn View,
    job: JobId,
    seed: u64,
    mut racks: impl FnMut(usize) -> Vec<Replicas>,
) -> Vec<Vec<Block>> {
    let mut rng = stream(seed, job);
    let t = view.topology();
    let mut place = |r: Replicas| {
        let mut block = Block::with_capacity(3);
        for rack in r {
            let fresh = |h: HostId| view.is_up(h) && !block.contains(&h);
            let there = draw(t, &mut rng, Some(rack), fresh);
            let host = there.or_else(|| draw(t, &mut rng, None, fresh));
            block.extend(host);
        }
        block
    };
    let stages = view.job(job).stages.iter().enumerate();
    stages
        .map(
            |(s, st)| {
                if st.input.0 == 0 {
                    vec![]
                } else {
                    racks(s).into_iter().map(&mut place).collect()
                }
            },
        )
        .collect()
}

/// One block by default. Tries a drawn host first and takes the next that fits, so that it always
/// ends.
pub fn block(t: &Topology, up: &dyn Fn(HostId) -> bool, rng: &mut ChaCha8Rng) -> Block {
    let mut block = Block::with_capacity(3);
    let Some(a) = draw(t, rng, None, up) else { return block };
    block.push(a);
    block.extend(copies(t, up, rng, a));
    block
}

/// The hosts to which a block is copied whose first replica is on host `a`: one of another rack,
/// then another one of that rack; fewer where there are none.
pub fn copies(t: &Topology, up: &dyn Fn(HostId) -> bool, rng: &mut ChaCha8Rng, a: HostId) -> Block {
    let rack = |h: HostId| t.rack_of(h);
    let mut block = Block::with_capacity(2);
    let b = draw(t, rng, None, |h| up(h) && rack(h) != rack(a))
        .or_else(|| draw(t, rng, None, |h| up(h) && h != a));
    let Some(b) = b else { return block };
    block.push(b);
    let c = draw(t, rng, Some(rack(b)), |h| up(h) && h != b && h != a);
    block.extend(c.or_else(|| draw(t, rng, None, |h| up(h) && h != b && h != a)));
    block
}

/// A host that fits, of one rack if it is given: a drawn one, or the next after it, round the
/// network or the rack.
fn draw(
    t: &Topology,
    rng: &mut ChaCha8Rng,
    rack: Option<RackId>,
    fits: impl Fn(HostId) -> bool,
) -> Option<HostId> {
    let (first, n) = rack.map_or((0, t.hosts.len()), |r| {
        (t.racks[r.index()].first_host.index(), t.racks[r.index()].hosts as usize)
    });
    let from = rng.random_range(0..n.max(1));
    (from..n).chain(0..from).map(|k| HostId::from(first + k)).find(|&h| fits(h))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BitRate;

    fn network(racks: usize, hosts: usize) -> Topology {
        Topology::uniform("t", racks, hosts, BitRate(8), BitRate(8), vec![])
    }

    #[test]
    fn replicas_stand_in_two_racks_on_three_hosts_that_are_up() {
        let t = network(4, 3);
        let down = HostId(5);
        let mut rng = stream(7, JobId(3));
        let mut firsts = [0; 4];
        for _ in 0..400 {
            let b = block(&t, &|h| h != down, &mut rng);
            let r: Vec<u32> = b.iter().map(|&h| t.rack_of(h).0).collect();
            assert!(
                b.len() == 3 && r[0] != r[1] && r[1] == r[2] && b[1] != b[2] && !b.contains(&down),
                "{b:?}"
            );
            firsts[r[0] as usize] += 1;
        }
        assert!(firsts.iter().all(|&n| n > 50), "evenly spread: {firsts:?}");
    }

    #[test]
    fn small_networks_get_what_there_is() {
        let mut rng = stream(7, JobId(3));
        for (racks, hosts, replicas) in [(1, 1, 1), (1, 2, 2), (2, 1, 2), (1, 3, 3), (3, 1, 3)] {
            let mut b = block(&network(racks, hosts), &|_| true, &mut rng);
            b.sort_unstable();
            b.dedup();
            assert_eq!(b.len(), replicas, "{racks} x {hosts}");
        }
    }
}
