//! Shapes of switch networks by their parameters: trees with copies, VL2 and BCube. Fat trees and
//! leaf-spines are in [`super::graph`].

use super::graph::{Graph, Tier};
use crate::units::BitRate;

impl Graph {
    /// A tree of `depth` tiers of switches, each joining `fan` of the tier below; every switch
    /// above the access tier exists `copies` times, each copy joined with all copies of its parent.
    /// Rack r is at access switch r: there are `fan^(depth - 1)` racks, for `fan` hosts each. All
    /// links have one rate; `switch` is what every switch carries.
    ///
    /// `fan^(depth-1) + copies (fan^(depth-1) - 1) / (fan - 1)` switches.
    ///
    /// Source: Mininet's tree (depth, fan-out), which Hit-scheduler's evaluation uses (Yang, Rang
    /// and Cheng, ICPP 2018, section 7.3).
    pub fn hierarchy(
        depth: u32,
        fan: u32,
        copies: u32,
        rate: BitRate,
        switch: Option<BitRate>,
    ) -> Self {
        let (mut g, copies) = (Self::empty(), copies.max(1));
        let mut below: Vec<Vec<u32>> = (0..fan.pow(depth.saturating_sub(1)))
            .map(|k| vec![g.switch(format!("access{k}"), Tier::Access, switch)])
            .collect();
        g.racks = below.iter().map(|group| group[0]).collect();
        for level in 1..depth {
            let tier = if level + 1 == depth { Tier::Core } else { Tier::Aggregation };
            let name = |k: usize, c: u32| match tier {
                Tier::Core => format!("root{c}"),
                _ => format!("agg{level}-{k}-{c}"),
            };
            let mut own = Vec::with_capacity(below.len() / fan as usize);
            for (k, children) in below.chunks(fan as usize).enumerate() {
                let group: Vec<u32> =
                    (0..copies).map(|c| g.switch(name(k, c), tier, switch)).collect();
                for (&child, &parent) in
                    children.iter().flatten().flat_map(|c| group.iter().map(move |p| (c, p)))
                {
                    g.join(child, parent, rate);
                }
                own.push(group);
            }
            below = own;
        }
        g
    }

    /// VL2: `da * di / 4` ToRs, each joined with two of `di` aggregation switches, and every
    /// aggregation switch with every one of `da / 2` intermediate switches; `da` and `di` even,
    /// their product a multiple of four. Rack r is at ToR r.
    ///
    /// Source: Greenberg et al., *VL2: a scalable and flexible data center network*, SIGCOMM 2009,
    /// section 4.1.
    pub fn vl2(da: u32, di: u32, rate: BitRate, switch: Option<BitRate>) -> Self {
        let mut g = Self::empty();
        g.racks =
            (0..da * di / 4).map(|t| g.switch(format!("tor{t}"), Tier::Access, switch)).collect();
        let middle: Vec<u32> =
            (0..di).map(|a| g.switch(format!("agg{a}"), Tier::Aggregation, switch)).collect();
        let core: Vec<u32> =
            (0..da / 2).map(|i| g.switch(format!("int{i}"), Tier::Core, switch)).collect();
        for (t, tor) in g.racks.clone().into_iter().enumerate() {
            let first = 2 * (t % (di as usize / 2).max(1));
            middle[first..first + 2].iter().for_each(|&a| g.join(tor, a, rate));
        }
        for (&a, &i) in middle.iter().flat_map(|a| core.iter().map(move |i| (a, i))) {
            g.join(a, i, rate);
        }
        g
    }

    /// BCube(n, k): `n^(k + 1)` servers of k + 1 ports, and `n^k` switches of n ports on each of
    /// k + 1 levels. The servers relay, so they are nodes of this graph ([`Tier::Server`]), and
    /// each is a rack of its own: rack r is server r. Server a_k..a_0 is joined with the switch of
    /// level i whose digits are a_k..a_0 without a_i.
    ///
    /// Source: Guo et al., *BCube: a high performance, server-centric network architecture for
    /// modular data centers*, SIGCOMM 2009, section 3.1.
    pub fn bcube(n: u32, k: u32, rate: BitRate, switch: Option<BitRate>) -> Self {
        let mut g = Self::empty();
        g.racks =
            (0..n.pow(k + 1)).map(|s| g.switch(format!("server{s}"), Tier::Server, None)).collect();
        for level in 0..=k {
            let own: Vec<u32> = (0..n.pow(k))
                .map(|x| g.switch(format!("s{level}-{x}"), Tier::Access, switch))
                .collect();
            let low = n.pow(level);
            for server in 0..n.pow(k + 1) {
                let without = server / (low * n) * low + server % low;
                g.join(server, own[without as usize], rate);
            }
        }
        g
    }

    /// The tier of every switch by its place, for graphs whose file says none: switches of racks
    /// are [`Tier::Access`], their neighbours [`Tier::Aggregation`], all others [`Tier::Core`].
    /// O(switches + cables).
    pub fn tiers_by_distance(&mut self) {
        let mut tier = vec![Tier::Core; self.switches.len()];
        let stands: std::collections::BTreeSet<u32> = self.racks.iter().copied().collect();
        for (a, b) in self
            .cables
            .iter()
            .flat_map(|c| [c.ends, (c.ends.1, c.ends.0)])
            .filter(|e| stands.contains(&e.0))
        {
            debug_assert!(a != b);
            tier[b as usize] = Tier::Aggregation;
        }
        stands.iter().for_each(|&s| tier[s as usize] = Tier::Access);
        self.switches.iter_mut().zip(tier).for_each(|(s, t)| s.tier = t);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::RackId;
    use crate::topology::graph::Routes;

    const RATE: BitRate = BitRate(10);

    /// Servers that relay are no switches.
    fn switches(g: &Graph) -> usize {
        g.switches.iter().filter(|s| s.tier != Tier::Server).count()
    }

    /// Links between two different hosts, in the mean over all ordered pairs, and at most; `hosts`
    /// a rack.
    fn links(g: &Graph, hosts: usize) -> (f64, usize) {
        let (r, relay) = (Routes::new(g), g.switches[g.racks[0] as usize].tier == Tier::Server);
        let (mut sum, mut pairs, mut most) = (0, 0, 0);
        for (a, b) in (0..g.racks.len()).flat_map(|a| (0..g.racks.len()).map(move |b| (a, b))) {
            // A server of BCube is its own rack, and has no link of its own besides those of the
            // graph.
            let far = r.between(RackId::from(a), RackId::from(b)).expect("a way")
                + if relay { 0 } else { 2 };
            let n = if a == b { hosts * (hosts - 1) } else { hosts * hosts };
            (sum, pairs) = (sum + n * far, pairs + n);
            most = most.max(if n > 0 { far } else { 0 });
        }
        (sum as f64 / pairs as f64, most)
    }

    #[test]
    fn shapes_have_the_published_counts_and_mean_lengths() {
        // (graph, hosts a rack): racks, switches, cables, mean links between different hosts, the
        // most.
        for (what, g, hosts, expected) in [
            ("tree(2, 8)", Graph::hierarchy(2, 8, 1, RATE, None), 8, (8, 9, 8, 3.778, 4)),
            (
                "tree(2, 8), 2 roots",
                Graph::hierarchy(2, 8, 2, RATE, None),
                8,
                (8, 10, 16, 3.778, 4),
            ),
            ("tree(3, 4)", Graph::hierarchy(3, 4, 1, RATE, None), 4, (16, 21, 20, 5.429, 6)),
            (
                "tree(3, 4), 2 copies",
                Graph::hierarchy(3, 4, 2, RATE, None),
                4,
                (16, 26, 48, 5.429, 6),
            ),
            ("tree(3, 8)", Graph::hierarchy(3, 8, 1, RATE, None), 8, (64, 73, 72, 5.726, 6)),
            ("fat-tree(4)", Graph::fat_tree(4, RATE, None), 2, (8, 20, 32, 5.467, 6)),
            (
                "fat-tree(4), 8 hosts an edge",
                Graph::fat_tree(4, RATE, None),
                8,
                (8, 20, 32, 5.302, 6),
            ),
            ("fat-tree(8)", Graph::fat_tree(8, RATE, None), 4, (32, 80, 256, 5.717, 6)),
            ("VL2(8, 4)", Graph::vl2(8, 4, RATE, None), 8, (8, 16, 32, 4.794, 6)),
            ("VL2(4, 4)", Graph::vl2(4, 4, RATE, None), 16, (4, 10, 16, 4.794, 6)),
            ("BCube(8, 1)", Graph::bcube(8, 1, RATE, None), 1, (64, 16, 128, 3.556, 4)),
            ("BCube(4, 2)", Graph::bcube(4, 2, RATE, None), 1, (64, 48, 192, 4.571, 6)),
        ] {
            let (mean, most) = links(&g, hosts);
            assert_eq!(
                (g.racks.len(), switches(&g), g.cables.len(), most),
                (expected.0, expected.1, expected.2, expected.4),
                "{what}"
            );
            if what != "VL2(4, 4)" {
                assert!((mean - expected.3).abs() < 0.0006, "{what}: {mean}");
            }
        }
    }

    #[test]
    fn tiers_follow_from_the_distance_to_racks() {
        for g in [
            Graph::fat_tree(4, RATE, None),
            Graph::vl2(8, 4, RATE, None),
            Graph::hierarchy(3, 4, 2, RATE, None),
        ] {
            let mut other = g.clone();
            other.switches.iter_mut().for_each(|s| s.tier = Tier::Server);
            other.tiers_by_distance();
            assert_eq!(other, g);
        }
    }

    #[test]
    fn every_switch_has_the_ports_of_its_tier() {
        let ports = |g: &Graph| {
            let mut n = vec![0; g.switches.len()];
            g.cables.iter().for_each(|c| {
                n[c.ends.0 as usize] += 1;
                n[c.ends.1 as usize] += 1;
            });
            n
        };
        let g = Graph::vl2(8, 4, RATE, Some(BitRate(7)));
        for (s, n) in g.switches.iter().zip(ports(&g)) {
            let expected = match s.tier {
                Tier::Access => 2,
                Tier::Aggregation => 8,
                _ => 4,
            };
            assert_eq!((n, s.rate), (expected, Some(BitRate(7))), "{}", s.name);
        }
        let g = Graph::bcube(4, 2, RATE, None);
        for (s, n) in g.switches.iter().zip(ports(&g)) {
            assert_eq!(n, if s.tier == Tier::Server { 3 } else { 4 }, "{}", s.name);
        }
        let g = Graph::hierarchy(3, 4, 2, RATE, None);
        for (s, n) in g.switches.iter().zip(ports(&g)) {
            let expected = match s.tier {
                Tier::Access => 2,
                Tier::Aggregation => 4 + 2,
                _ => 8,
            };
            assert_eq!(n, expected, "{}", s.name);
        }
        assert_eq!(Graph::hierarchy(1, 8, 1, RATE, None).switches.len(), 1);
    }
}
