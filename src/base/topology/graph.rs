//! An electrical network of switches and links behind the racks' uplinks, and the ways through it.

use petgraph::graph::{NodeIndex, UnGraph};
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::ids::RackId;
use crate::units::BitRate;

/// The most switches of a graph: the distances between all of them are kept.
pub const MAX_SWITCHES: usize = 4096;

/// A switch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Switch {
    /// What people call it.
    pub name: String,
    /// Its place between the hosts and the core.
    pub tier: Tier,
    /// What it carries in all; `None`: all that comes.
    pub rate: Option<BitRate>,
}

/// The place of a switch between the hosts and the core, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Tier {
    /// A server that relays for others (BCube).
    Server,
    /// A switch with hosts: a rack's ToR.
    Access,
    /// A switch between the two.
    Aggregation,
    /// The highest: a root, spine or intermediate switch.
    Core,
}

impl Tier {
    /// Its name, as topologies write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Access => "access",
            Self::Aggregation => "aggregation",
            Self::Core => "core",
        }
    }
}

/// A link between two switches, alike in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Cable {
    /// The switches at its ends, by number.
    pub ends: (u32, u32),
    /// Rate, each direction.
    pub rate: BitRate,
}

/// Switches, links, and where the racks' uplinks end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Graph {
    /// The switches, by number.
    pub switches: Vec<Switch>,
    /// The cables, by number; two switches may be joined by several.
    pub cables: Vec<Cable>,
    /// By rack: the switch that its uplink leads to.
    pub racks: Vec<u32>,
}

/// The shape of a tree's level, from the racks upwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// How many racks, or switches of the level below, a switch of this level joins; the last one
    /// may have fewer.
    pub join: u32,
    /// Rate of each of its links to the level above.
    pub uplink: BitRate,
}

impl Graph {
    pub(super) fn switch(&mut self, name: String, tier: Tier, rate: Option<BitRate>) -> u32 {
        self.switches.push(Switch { name, tier, rate });
        (self.switches.len() - 1) as u32
    }

    pub(super) fn join(&mut self, a: u32, b: u32, rate: BitRate) {
        self.cables.push(Cable { ends: (a, b), rate });
    }

    pub(super) fn empty() -> Self {
        Self { switches: vec![], cables: vec![], racks: vec![] }
    }

    /// A leaf a rack, each joined with every one of `spines` switches. `switch` is what every
    /// switch carries.
    pub fn leaf_spine(racks: usize, spines: u32, rate: BitRate, switch: Option<BitRate>) -> Self {
        let mut g = Self::empty();
        g.racks = (0..racks).map(|k| g.switch(format!("leaf{k}"), Tier::Access, switch)).collect();
        let spines: Vec<u32> =
            (0..spines).map(|k| g.switch(format!("spine{k}"), Tier::Core, switch)).collect();
        for leaf in g.racks.clone() {
            spines.iter().for_each(|&s| g.join(leaf, s, rate));
        }
        g
    }

    /// A fat tree of switches of `k` ports, `k` even: k pods of k/2 edge and k/2 aggregation
    /// switches, and (k/2)^2 core switches. Rack r is at edge switch r: there are k^2 / 2. All
    /// links have one rate.
    ///
    /// Source: Al-Fares, Loukissas and Vahdat, *A scalable, commodity data center network
    /// architecture*, SIGCOMM 2008, section 3.
    pub fn fat_tree(k: u32, rate: BitRate, switch: Option<BitRate>) -> Self {
        let (mut g, half) = (Self::empty(), k / 2);
        g.racks = (0..k * half)
            .map(|e| g.switch(format!("edge{}-{}", e / half, e % half), Tier::Access, switch))
            .collect();
        let middle: Vec<u32> = (0..k * half)
            .map(|a| g.switch(format!("agg{}-{}", a / half, a % half), Tier::Aggregation, switch))
            .collect();
        let core: Vec<u32> =
            (0..half * half).map(|c| g.switch(format!("core{c}"), Tier::Core, switch)).collect();
        for pod in 0..k {
            for (e, a) in (0..half).flat_map(|e| (0..half).map(move |a| (e, a))) {
                g.join(g.racks[(pod * half + e) as usize], middle[(pod * half + a) as usize], rate);
            }
        }
        for (pod, a, c) in
            (0..k).flat_map(|p| (0..half).flat_map(move |a| (0..half).map(move |c| (p, a, c))))
        {
            g.join(middle[(pod * half + a) as usize], core[(a * half + c) as usize], rate);
        }
        g
    }

    /// A tree: each level joins what the level below has, and one root joins the switches of the
    /// last.
    pub fn tree(racks: usize, levels: &[Level], switch: Option<BitRate>) -> Self {
        let mut g = Self::empty();
        let mut below: Vec<u32> = Vec::new();
        for (n, level) in levels.iter().enumerate() {
            let join = level.join.max(1) as usize;
            let width = if n == 0 { racks } else { below.len() };
            let tier = if n == 0 { Tier::Access } else { Tier::Aggregation };
            let own: Vec<u32> = (0..width.div_ceil(join))
                .map(|k| g.switch(format!("s{n}-{k}"), tier, switch))
                .collect();
            if n == 0 {
                g.racks = (0..racks).map(|r| own[r / join]).collect();
            } else {
                let rate = levels[n - 1].uplink;
                below.iter().enumerate().for_each(|(k, &s)| g.join(s, own[k / join], rate));
            }
            below = own;
        }
        let root = g.switch(
            "root".into(),
            if levels.is_empty() { Tier::Access } else { Tier::Core },
            switch,
        );
        if let Some(last) = levels.last() {
            below.into_iter().for_each(|s| g.join(s, root, last.uplink));
        } else {
            g.racks = vec![root; racks];
        }
        g
    }
}

/// One step of a way: a cable, whether it is gone along from its first end to its second, and the
/// switch it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Its number.
    pub cable: u32,
    /// Whether it goes from `ends.0` to `ends.1`.
    pub forward: bool,
    /// Where it leads, by number.
    pub to: u32,
}

/// Shortest ways between racks, by number of cables.
#[derive(Clone, Debug)]
pub struct Routes {
    racks: Vec<u32>,
    /// By switch: its hops, by number of the cable.
    hops: Vec<Vec<Hop>>,
    /// By switch that has racks (see `slot`), then by switch: how many cables lie between;
    /// `u16::MAX`: no way.
    distance: Vec<Vec<u16>>,
    /// By switch: its place in `distance`.
    slot: Vec<Option<u32>>,
}

impl Routes {
    /// All distances. O(switches with racks x (switches + cables)).
    pub fn new(graph: &Graph) -> Self {
        let n = graph.switches.len();
        let ends = graph.cables.iter().enumerate().map(|(k, c)| (c.ends.0, c.ends.1, k as u32));
        let mut g: UnGraph<(), u32> = UnGraph::with_capacity(n, graph.cables.len());
        for _ in 0..n {
            g.add_node(());
        }
        for (a, b, k) in ends {
            g.add_edge(NodeIndex::new(a as usize), NodeIndex::new(b as usize), k);
        }
        let hops = (0..n).map(|s| hops(&g, graph, s)).collect();
        let (mut distance, mut slot) = (Vec::new(), vec![None; n]);
        for &s in &graph.racks {
            slot[s as usize].get_or_insert_with(|| {
                distance.push(distances(&g, s));
                (distance.len() - 1) as u32
            });
        }
        Self { racks: graph.racks.clone(), hops, distance, slot }
    }

    /// How many cables lie between two racks; `None` if there is no way.
    pub fn between(&self, from: RackId, to: RackId) -> Option<usize> {
        let far = self.to_switch(to)[self.racks[from.index()] as usize];
        (far < u16::MAX).then_some(usize::from(far))
    }

    /// The most cables that lie between two racks.
    ///
    /// # Errors
    /// Two switches that have racks and no way between them.
    pub fn longest(&self) -> Result<usize, (u32, u32)> {
        let mut most = 0;
        let stand = || self.slot.iter().enumerate().filter_map(|(s, slot)| Some((s, (*slot)?)));
        for ((a, slot), (b, _)) in stand().flat_map(|x| stand().map(move |y| (x, y))) {
            match self.distance[slot as usize][b] {
                u16::MAX => return Err((a as u32, b as u32)),
                far => most = most.max(usize::from(far)),
            }
        }
        Ok(most)
    }

    fn to_switch(&self, to: RackId) -> &[u16] {
        let slot = self.slot[self.racks[to.index()] as usize].expect("the switch of a rack");
        &self.distance[slot as usize]
    }

    /// The switch of a rack.
    pub fn switch_of(&self, rack: RackId) -> u32 {
        self.racks[rack.index()]
    }

    /// The way of all flows from one rack to another: a shortest one. Where several next hops are
    /// equally short, a hash of the two racks chooses one (equal-cost multipath). With h =
    /// [`spread`]`(from, to)`, hop h mod n of the n in the order of their cables is taken, and h
    /// becomes h / n. Empty if there is no way. O(length x degree).
    pub fn way(&self, from: RackId, to: RackId) -> Vec<Hop> {
        let far = self.to_switch(to);
        let (mut at, mut h, mut way) =
            (self.racks[from.index()] as usize, spread(from, to), Vec::new());
        if far[at] == u16::MAX {
            return way;
        }
        while far[at] > 0 {
            let closer: Vec<Hop> =
                self.hops[at].iter().filter(|s| far[s.to as usize] < far[at]).copied().collect();
            let n = closer.len() as u64;
            let hop = closer[(h % n) as usize];
            h /= n;
            at = hop.to as usize;
            way.push(hop);
        }
        way
    }

    /// The hops of flows between two racks over a list of switches. Where the racks' own nodes
    /// relay (BCube) the list need not name them. Of several cables between two switches the
    /// default way's are taken if the list is that of the way, else those that `h` picks as there.
    /// `None` if two neighbours have no cable. O(length x degree).
    pub fn along(&self, list: &[u32], from: RackId, to: RackId) -> Option<Vec<Hop>> {
        let (first, last) = (self.racks[from.index()], self.racks[to.index()]);
        let before = Some(first).filter(|s| list.first() != Some(s));
        let after = Some(last).filter(|s| list.last().unwrap_or(&first) != s);
        let on = || before.into_iter().chain(list.iter().copied()).chain(after).skip(1);
        let way = self.way(from, to);
        if on().eq(way.iter().map(|h| h.to)) {
            return Some(way);
        }
        let (mut at, mut h, mut hops) = (first, spread(from, to), Vec::new());
        for next in on() {
            let between: Vec<Hop> =
                self.hops[at as usize].iter().filter(|s| s.to == next).copied().collect();
            let n = between.len() as u64;
            hops.push(*between.get((h.checked_rem(n)?) as usize)?);
            h /= n;
            at = next;
        }
        Some(hops)
    }
}

/// What the ways of a pair of racks are chosen by: the finaliser of SplitMix64 on `from x 2^32 +
/// to`.
///
/// Source: Steele, Lea and Flood, *Fast splittable pseudorandom number generators*, OOPSLA 2014,
/// figure 16 (`mix64variant13`).
pub fn spread(from: RackId, to: RackId) -> u64 {
    let mut z = (u64::from(from.0) << 32 | u64::from(to.0)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The hops of a switch, by number of the cable.
fn hops(g: &UnGraph<(), u32>, graph: &Graph, s: usize) -> Vec<Hop> {
    let mut list: Vec<Hop> = g
        .edges(NodeIndex::new(s))
        .map(|e| {
            let (a, b) = graph.cables[*e.weight() as usize].ends;
            let forward = a as usize == s;
            Hop { cable: *e.weight(), forward, to: if forward { b } else { a } }
        })
        .collect();
    list.sort_unstable_by_key(|h| h.cable);
    list
}

/// How far every switch is from `from`, breadth first.
fn distances(g: &UnGraph<(), u32>, from: u32) -> Vec<u16> {
    let mut far = vec![u16::MAX; g.node_count()];
    far[from as usize] = 0;
    let mut bfs = petgraph::visit::Bfs::new(g, NodeIndex::new(from as usize));
    while let Some(s) = bfs.next(g) {
        for next in g.neighbors(s) {
            far[next.index()] = far[next.index()].min(far[s.index()].saturating_add(1));
        }
    }
    far
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_fat_tree_has_as_many_of_each_as_the_paper_says() {
        let g = Graph::fat_tree(4, BitRate(10), None);
        assert_eq!((g.racks.len(), g.switches.len(), g.cables.len()), (8, 20, 32));
        let r = Routes::new(&g);
        let name = |h: &Hop| g.switches[h.to as usize].name.clone();
        let way = |a, b| r.way(RackId(a), RackId(b)).iter().map(name).collect::<Vec<_>>();
        assert_eq!(
            r.between(RackId(0), RackId(1)),
            Some(2),
            "within a pod over one aggregation switch"
        );
        assert_eq!(way(0, 1)[1], "edge0-1");
        assert_eq!(way(0, 7)[3], "edge3-1");
        assert_eq!(way(3, 3), [] as [&str; 0]);
        // Between pods every core switch is used by some pair.
        let cores: std::collections::BTreeSet<String> = (0..2)
            .flat_map(|a| (2..8).map(move |b| (a, b)))
            .map(|(a, b)| way(a, b)[1].clone())
            .collect();
        assert_eq!(cores.len(), 4);
    }

    #[test]
    fn leaves_and_trees() {
        let g = Graph::leaf_spine(3, 2, BitRate(10), Some(BitRate(5)));
        assert_eq!(
            (g.racks.clone(), g.cables.len(), g.switches[4].rate),
            (vec![0, 1, 2], 6, Some(BitRate(5)))
        );
        let levels =
            [Level { join: 2, uplink: BitRate(10) }, Level { join: 2, uplink: BitRate(20) }];
        let g = Graph::tree(7, &levels, None);
        // Four switches of two racks, two of two switches, and the root.
        assert_eq!(
            (g.racks.clone(), g.switches.len(), g.cables.len()),
            (vec![0, 0, 1, 1, 2, 2, 3], 7, 6)
        );
        let r = Routes::new(&g);
        assert_eq!([1, 2, 4].map(|b| r.between(RackId(0), RackId(b))), [Some(0), Some(2), Some(4)]);
        let alone = Graph { cables: vec![], ..g };
        assert_eq!(Routes::new(&alone).between(RackId(0), RackId(2)), None);
        assert_eq!(Routes::new(&alone).way(RackId(0), RackId(2)), []);
    }

    #[test]
    fn the_hops_of_a_list_are_its_cables() {
        // Two cables between 0 and 1, one between 1 and 2, and one between 0 and 2.
        let switches = (0..3)
            .map(|k| Switch { name: format!("s{k}"), tier: Tier::Access, rate: None })
            .collect();
        let cables =
            [(0, 1), (1, 0), (1, 2), (0, 2)].map(|ends| Cable { ends, rate: BitRate(1) }).to_vec();
        let r = Routes::new(&Graph { switches, cables, racks: vec![0, 1, 2, 2] });
        let along = |list: &[u32], a, b| {
            r.along(list, RackId(a), RackId(b))
                .map(|v| v.iter().map(|h| h.cable).collect::<Vec<_>>())
        };
        assert_eq!(along(&[0, 2], 0, 2), Some(vec![3]));
        assert_eq!(along(&[0, 1, 2], 0, 2).unwrap()[1], 2);
        assert_eq!(
            along(&[1], 0, 2),
            along(&[0, 1, 2], 0, 2),
            "the racks' own nodes may be left out"
        );
        assert_eq!((along(&[2], 2, 3), along(&[], 2, 3)), (Some(vec![]), Some(vec![])));
        assert_eq!((along(&[0, 2, 2], 0, 2), along(&[0, 9], 0, 1)), (None, None));
        let way: Vec<u32> = r.way(RackId(0), RackId(1)).iter().map(|h| h.cable).collect();
        assert_eq!(along(&[0, 1], 0, 1), Some(way));
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn ways_are_shortest_and_hold_together(
            cables in prop::collection::vec((0u32..6, 0u32..6), 0..14),
            racks in prop::collection::vec(0u32..6, 1..5),
        ) {
            let switches = (0..6).map(|k| Switch { name: format!("s{k}"), tier: Tier::Access, rate: None }).collect();
            let cables: Vec<Cable> = cables.into_iter().filter(|e| e.0 != e.1).map(|ends| Cable { ends, rate: BitRate(1) }).collect();
            let g = Graph { switches, cables, racks };
            // The slow twin: Floyd and Warshall.
            let mut far = [[99usize; 6]; 6];
            (0..6).for_each(|s| far[s][s] = 0);
            g.cables.iter().for_each(|c| {
                far[c.ends.0 as usize][c.ends.1 as usize] = 1;
                far[c.ends.1 as usize][c.ends.0 as usize] = 1;
            });
            for (k, i, j) in (0..216).map(|n| (n / 36, n / 6 % 6, n % 6)) {
                far[i][j] = far[i][j].min(far[i][k] + far[k][j]);
            }
            let r = Routes::new(&g);
            for (a, b) in (0..g.racks.len()).flat_map(|a| (0..g.racks.len()).map(move |b| (a, b))) {
                let (mut at, end) = (g.racks[a], g.racks[b]);
                let way = r.way(RackId::from(a), RackId::from(b));
                let real = far[at as usize][end as usize];
                prop_assert_eq!(r.between(RackId::from(a), RackId::from(b)), (real < 99).then_some(real));
                for h in &way {
                    let (x, y) = g.cables[h.cable as usize].ends;
                    prop_assert_eq!(if h.forward { (x, y) } else { (y, x) }, (at, h.to));
                    at = h.to;
                }
                prop_assert!(real == 99 && way.is_empty() || at == end && way.len() == real);
            }
        }
    }
}
