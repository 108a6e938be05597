//! HDFS's default placement of replicas: what every baseline does with data, and the planners with what they do not guide.
//!
//! The first replica goes to a host that is drawn (the writer is outside the cluster), the second to a host of another rack, the
//! third to another host of the second's rack (Hadoop 3, `BlockPlacementPolicyDefault`). Hosts that are down get none.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::ids::{HostId, JobId, RackId};
use crate::placement::policy::{Block, View};
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
    by_stage(view, job, |_| block(view.topology(), &up, &mut rng, None))
}

/// Blocks by stage, each drawn by `draw`, which is told the task.
pub fn by_stage(view: &dyn View, job: JobId, mut draw: impl FnMut(u32) -> Block) -> Vec<Vec<Block>> {
    let stages = &view.job(job).stages;
    stages.iter().map(|s| if s.input.0 == 0 { vec![] } else { (0..s.tasks).map(&mut draw).collect() }).collect()
}

/// One block: the first replica in one of the `first` racks if any is given, the others by default. Tries a drawn host first and
/// takes the next that fits, so that it always ends.
pub fn block(t: &Topology, up: &dyn Fn(HostId) -> bool, rng: &mut ChaCha8Rng, first: Option<&[RackId]>) -> Block {
    let rack = |h: HostId| t.rack_of(h);
    let mut block = Block::with_capacity(3);
    let wanted = |h: HostId| first.is_none_or(|racks| racks.contains(&rack(h)));
    let Some(a) = draw(t, rng, |h| up(h) && wanted(h)).or_else(|| draw(t, rng, up)) else { return block };
    block.push(a);
    let b = draw(t, rng, |h| up(h) && rack(h) != rack(a)).or_else(|| draw(t, rng, |h| up(h) && h != a));
    let Some(b) = b else { return block };
    block.push(b);
    let c = draw(t, rng, |h| up(h) && h != b && h != a && rack(h) == rack(b)).or_else(|| draw(t, rng, |h| up(h) && h != b && h != a));
    block.extend(c);
    block
}

/// A host that fits: a drawn one, or the next after it, round the network.
fn draw(t: &Topology, rng: &mut ChaCha8Rng, fits: impl Fn(HostId) -> bool) -> Option<HostId> {
    let n = t.hosts.len();
    for _ in 0..8 {
        let h = HostId::from(rng.random_range(0..n.max(1)));
        if h.index() < n && fits(h) {
            return Some(h);
        }
    }
    let from = rng.random_range(0..n.max(1));
    (from..n).chain(0..from).map(HostId::from).find(|&h| fits(h))
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
            let b = block(&t, &|h| h != down, &mut rng, None);
            let r: Vec<u32> = b.iter().map(|&h| t.rack_of(h).0).collect();
            assert!(b.len() == 3 && r[0] != r[1] && r[1] == r[2] && b[1] != b[2] && !b.contains(&down), "{b:?}");
            firsts[r[0] as usize] += 1;
        }
        assert!(firsts.iter().all(|&n| n > 50), "evenly spread: {firsts:?}");
    }

    #[test]
    fn small_networks_get_what_there_is() {
        let mut rng = stream(7, JobId(3));
        for (racks, hosts, replicas) in [(1, 1, 1), (1, 2, 2), (2, 1, 2), (1, 3, 3), (3, 1, 3)] {
            let mut b = block(&network(racks, hosts), &|_| true, &mut rng, None);
            b.sort_unstable();
            b.dedup();
            assert_eq!(b.len(), replicas, "{racks} x {hosts}");
        }
    }

    #[test]
    fn the_first_replica_goes_where_it_is_wanted_while_that_stands() {
        let t = network(4, 2);
        let mut rng = stream(1, JobId(0));
        for _ in 0..50 {
            let b = block(&t, &|_| true, &mut rng, Some(&[RackId(2)]));
            assert!(t.rack_of(b[0]) == RackId(2) && t.rack_of(b[1]) != RackId(2));
            let gone = |h: HostId| t.rack_of(h) != RackId(2);
            assert_eq!(block(&t, &gone, &mut rng, Some(&[RackId(2)])).len(), 3);
        }
    }
}
