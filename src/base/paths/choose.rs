//! Which list of switches a flow gets without looking at the load: one shortest way for all, or one
//! over a random switch.

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use super::optimise::RoutedFlow;
use super::search::lowest;
use super::{List, SwitchRates, Switches};
use crate::ids::{HostId, RackId};
use crate::topology::graph::{Routes, Tier};

/// How the flows of coflows get their lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum PathPolicy {
    /// By the network's default: a shortest way, equal ones shared by a hash of the two racks.
    #[default]
    Ecmp,
    /// The shortest way with the lowest numbers of switches, the same for all flows between two
    /// switches.
    Shortest,
    /// Up to a random switch of the highest tier and down from there (valiant load balancing);
    /// drawn once for each pair of hosts.
    Vlb,
    /// Hit-scheduler's Algorithm 1 over all active flows, when a coflow begins and when one ends.
    Hit,
}

impl PathPolicy {
    /// Whether it is the default.
    pub fn is_ecmp(&self) -> bool {
        *self == Self::Ecmp
    }
}

/// The most ways up from a switch to one of the highest tier that [`valiant`] looks at.
const MOST_WAYS: usize = 64;

/// The shortest list between two hosts, whatever the load: of equal ones the one with the lowest
/// numbers. `None`: there is no way. O(switches + links) in a layered network.
pub fn shortest(net: &Switches, hosts: (HostId, HostId)) -> Option<List> {
    lowest(net, hosts)
}

/// The list of the network's default way ([`Routes::way`]) between two hosts of these racks.
/// O(length x degree).
pub fn default_list(
    net: &Switches,
    routes: &Routes,
    (a, b): (RackId, RackId),
    (from, to): (HostId, HostId),
) -> List {
    let own =
        [from, to].map(|h| net.stands(h)).map(|s| Some(s).filter(|&s| net.tier(s) == Tier::Server));
    let way = routes.way(a, b);
    let whole = std::iter::once(routes.switch_of(a)).chain(way.iter().map(|h| h.to));
    List(whole.filter(|&s| !own.contains(&Some(s))).collect())
}

/// A list over a random switch of the highest tier, drawn from the seed and the two hosts: up to
/// it, and down from it over other switches. The shortest list where both hosts are at one switch,
/// where servers relay or links leave out a tier, and where no such list exists. `None`: there is
/// no way. O(ways up).
///
/// Source: Greenberg et al., *VL2: a scalable and flexible data center network*, SIGCOMM 2009,
/// section 4.2.1: a flow bounces off a random intermediate switch.
///
/// ```
/// use heliostat_base::ids::HostId;
/// use heliostat_base::paths::{Switches, Units, choose::valiant};
/// use heliostat_base::topology::{Core, Topology, graph::Graph};
/// use heliostat_base::units::BitRate;
///
/// // Two leaves, 0 and 1, below two spines.
/// let mut t = Topology::uniform("t", 2, 1, BitRate(1), BitRate(1), vec![]);
/// t.eps.core = Core::Graph(Box::new(Graph::leaf_spine(2, 2, BitRate(1), None)));
/// let net = Switches::new(&t, Units::default());
/// let over: std::collections::BTreeSet<u32> = (0..20).map(|s| valiant(&net, (HostId(0), HostId(1)), s).unwrap().0[1]).collect();
/// assert_eq!(over, [2, 3].into());
/// ```
pub fn valiant(net: &Switches, (from, to): (HostId, HostId), seed: u64) -> Option<List> {
    let (a, b) = (net.stands(from), net.stands(to));
    let top = net.height.iter().copied().max().unwrap_or(0);
    if !net.layered || a == b {
        return shortest(net, (from, to));
    }
    let mut bytes = [0u8; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..12].copy_from_slice(&from.0.to_le_bytes());
    bytes[12..16].copy_from_slice(&to.0.to_le_bytes());
    let mut rng = ChaCha8Rng::from_seed(bytes);
    let (up, down) = (rising(net, a, top), rising(net, b, top));
    let meets = |u: &Vec<u32>, d: &Vec<u32>| {
        u.last() == d.last() && !u[..u.len() - 1].iter().any(|s| d.contains(s))
    };
    let pairs: Vec<(usize, usize)> = (0..up.len())
        .flat_map(|i| (0..down.len()).map(move |j| (i, j)))
        .filter(|&(i, j)| meets(&up[i], &down[j]))
        .collect();
    // Every switch of the highest tier first, then one of the ways over it, so that none is
    // favoured for the number of its ways.
    let mut tops: Vec<u32> = pairs.iter().filter_map(|p| up[p.0].last().copied()).collect();
    tops.sort_unstable();
    tops.dedup();
    if tops.is_empty() {
        return shortest(net, (from, to));
    }
    let over = tops[rng.random_range(0..tops.len())];
    let ways: Vec<&(usize, usize)> =
        pairs.iter().filter(|p| up[p.0].last() == Some(&over)).collect();
    let &(i, j) = ways[rng.random_range(0..ways.len())];
    let back = down[j].iter().rev().skip(1);
    Some(List(up[i].iter().chain(back).copied().collect()))
}

/// All ways from a switch up to those of the highest tier, by number, [`MOST_WAYS`] at most.
fn rising(net: &Switches, from: u32, top: u32) -> Vec<Vec<u32>> {
    let (mut open, mut done) = (vec![vec![from]], vec![]);
    while let Some(way) = open.pop() {
        let at = *way.last().expect("a way has a beginning");
        if net.height[at as usize] == top {
            done.push(way);
            if done.len() == MOST_WAYS {
                break;
            }
            continue;
        }
        let higher = net.neighbours[at as usize]
            .iter()
            .rev()
            .filter(|&&t| net.height[t as usize] > net.height[at as usize]);
        open.extend(higher.map(|&t| [way.as_slice(), &[t]].concat()));
    }
    done
}

/// What each flow of a coflow takes of every switch that it crosses, in bits a second: its share of
/// the time that the busiest interface needs for the coflow, at least 1. `nic` says a host's rate
/// in bits a second. O(flows log hosts).
///
/// Source: the paper's section 3.1 profiles rates; this is the largest rate at which all flows end
/// together.
pub fn rates(flows: &[(HostId, HostId, u64)], nic: impl Fn(HostId) -> u64) -> Vec<u64> {
    let mut ends: std::collections::BTreeMap<(bool, HostId), u128> = Default::default();
    for &(from, to, bytes) in flows.iter().filter(|f| f.0 != f.1) {
        *ends.entry((true, from)).or_default() += u128::from(bytes);
        *ends.entry((false, to)).or_default() += u128::from(bytes);
    }
    let time = |(&(_, host), &bytes): (&(bool, HostId), &u128)| {
        bytes * 8_000_000_000 / u128::from(nic(host).max(1))
    };
    let longest = ends.iter().map(time).max().unwrap_or(0).max(1);
    flows
        .iter()
        .map(|f| {
            u64::try_from(u128::from(f.2) * 8_000_000_000 / longest).unwrap_or(u64::MAX).max(1)
        })
        .collect()
}

/// What each switch carries of these flows.
pub fn load_of<'a>(net: &Switches, flows: impl IntoIterator<Item = &'a RoutedFlow>) -> SwitchRates {
    let mut load = SwitchRates::new(net);
    flows.into_iter().for_each(|f| load.take(&f.list, f.rate));
    load
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::Units;
    use crate::topology::graph::Graph;
    use crate::topology::{Core, Topology};
    use crate::units::BitRate;
    use std::collections::BTreeSet;

    fn net(racks: usize, graph: Graph) -> Switches {
        let mut t = Topology::uniform("t", racks, 2, BitRate(100), BitRate(100), vec![]);
        t.eps.core = Core::Graph(Box::new(graph));
        Switches::new(&t, Units::default())
    }

    #[test]
    fn every_list_holds_together_and_every_core_is_drawn() {
        let (fat, vl2) =
            (Graph::fat_tree(4, BitRate(100), None), Graph::vl2(4, 4, BitRate(100), None));
        for (racks, graph, top) in [(8, fat, 4), (4, vl2, 2)] {
            let net = net(racks, graph);
            let mut over = BTreeSet::new();
            for (a, b) in (0..2 * racks as u32)
                .flat_map(|a| (0..2 * racks as u32).map(move |b| (HostId(a), HostId(b))))
            {
                for seed in 0..5 {
                    let list = valiant(&net, (a, b), seed).unwrap();
                    assert_eq!(net.check(&list, (a, b)), Ok(()), "{a} {b} {list:?}");
                    assert_eq!(valiant(&net, (a, b), seed), Some(list.clone()));
                    over.extend(
                        list.0
                            .iter()
                            .copied()
                            .filter(|&s| net.tier(s) == crate::topology::graph::Tier::Core),
                    );
                    let short = shortest(&net, (a, b)).unwrap();
                    assert!(net.check(&short, (a, b)).is_ok() && short.0.len() <= list.0.len());
                }
            }
            assert_eq!(over.len(), top, "all are used");
        }
    }

    #[test]
    fn rates_fill_the_busiest_interface() {
        let h = |k| HostId(k);
        // Host 9 receives 300 bytes in all at 100 b/s: 24 s.
        let flows =
            [(h(0), h(9), 100), (h(1), h(9), 200), (h(1), h(2), 50), (h(3), h(3), 1_000_000)];
        assert_eq!(rates(&flows, |_| 100)[..3], [33, 66, 16]);
        assert_eq!(rates(&[(h(0), h(1), 0)], |_| 100), [1]);
        assert_eq!(rates(&[], |_| 100), [] as [u64; 0]);
    }
}
