//! How much of the network strict priorities use, by how many tasks fetch on every host (PushBox,
//! figure 3a).

use std::sync::Arc;

use rand::seq::index;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::coflows::network::Network;
use crate::coflows::{CoflowSpec, FlowSpec};
use crate::ids::{CoflowId, HostId};
use crate::sim::{SimFabric, SimSettings};
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};

/// Hosts from which a task fetches.
const SENDERS: usize = 5;
/// Bytes of a flow: none ends.
const BACKLOG: Bytes = Bytes(1_000_000_000_000);
/// How long is looked.
const LONG: Span = Span::millis(1);
/// Draws of one run.
const DRAWS: u64 = 10;

/// What hosts receive of what their interfaces carry, in per cent: every host has `m` tasks that
/// fetch without end from five others each, drawn at random, and the tasks of all hosts go before
/// one another in a random strict order. The mean of ten draws. O(draws x hosts x m) coflows.
pub fn utilisation(topology: &Arc<Topology>, network: Network, m: u32, seed: u64) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..DRAWS).map(|_| one(topology, network, m, &mut rng)).sum::<f64>() / DRAWS as f64
}

fn one(topology: &Arc<Topology>, network: Network, m: u32, rng: &mut ChaCha8Rng) -> f64 {
    let (hosts, mut f) = (
        topology.hosts.len(),
        SimFabric::new(
            topology.clone(),
            SimSettings { circuits: false, network, ..SimSettings::default() },
        ),
    );
    for to in 0..hosts {
        for k in 0..m {
            let id = CoflowId::from(to * m as usize + k as usize);
            let senders = index::sample(rng, hosts - 1, SENDERS.min(hosts - 1))
                .into_iter()
                .map(|h| HostId::from(if h < to { h } else { h + 1 }));
            let flows = senders
                .map(|from| FlowSpec { from, to: HostId::from(to), bytes: BACKLOG })
                .collect();
            f.prefer(id, rng.random(), Time::ZERO);
            f.add_flows(&CoflowSpec::new(id, "", Time::ZERO, flows), &[], Time::ZERO);
        }
    }
    let received: u64 = f.left(Time::ZERO + LONG).iter().map(|l| BACKLOG.0 - l.2.0).sum();
    let all: u64 = topology.hosts.iter().map(|h| topology.payload(h.nic).bytes_in(LONG).0).sum();
    100.0 * received as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coflows::network::{NetworkKind, Within};
    use crate::units::BitRate;

    #[test]
    fn more_tasks_use_more_and_nobody_more_than_all() {
        let rate = BitRate::mbit(10_000);
        let t = Arc::new(Topology::uniform("t", 20, 1, rate, rate, vec![]));
        let network =
            Network { kind: NetworkKind::Priority, within: Within::MaxMin, ..Network::default() };
        let used = [1, 2, 3, 8].map(|m| utilisation(&t, network, m, 1));
        assert!(used.is_sorted() && used[0] > 50.0 && used[3] <= 100.0, "{used:?}");
        assert!(used[3] - used[2] < used[1] - used[0], "the gain of one more falls: {used:?}");
        assert_eq!(utilisation(&t, network, 2, 1), used[1]);
    }
}
