//! The paper's figure 2, and laws against all simple ways.

use proptest::prelude::*;

use super::optimise::{RoutedFlow, cost, optimise};
use super::search::{Weight, cheapest};
use super::searches::Searches;
use super::*;
use crate::topology::Core;
use crate::topology::graph::{Cable, Switch};
use crate::units::BitRate;

/// One host a rack, on a graph.
pub(super) fn on(graph: Graph, hosts: usize) -> Topology {
    let mut t =
        Topology::uniform("t", graph.racks.len(), hosts, BitRate(100), BitRate(100), vec![]);
    t.eps.core = Core::Graph(Box::new(graph));
    t
}

pub(super) fn net(graph: Graph, hosts: usize) -> Switches {
    Switches::new(&on(graph, hosts), Units::default())
}

fn flow(from: u32, to: u32, bytes: u64, rate: u64) -> RoutedFlow {
    RoutedFlow {
        from: HostId(from),
        to: HostId(to),
        bytes,
        rate,
        list: List::default(),
        types: Types::default(),
    }
}

/// Figure 2: leaves w2 and w4 below the roots w1 and w3.
fn figure_2(w1: u64, w3: u64) -> (Switches, [u32; 4]) {
    let mut g = Graph::leaf_spine(2, 2, BitRate(100), None);
    g.switches[2].rate = Some(BitRate(w1));
    g.switches[3].rate = Some(BitRate(w3));
    (net(g, 1), [2, 0, 3, 1])
}

#[test]
fn figure_2_takes_the_root_that_has_room() {
    for (w1, w3, expected, saturated) in
        [(5, 20, 2, 0), (100, 20, 0, 0), (20, 100, 2, 0), (8, 5, 0, 1)]
    {
        let (n, w) = figure_2(w1, w3);
        let mut flows = [flow(0, 1, 1000, 10)];
        let done = optimise(&n, &mut SwitchRates::new(&n), &mut flows);
        assert_eq!(flows[0].list, List(vec![w[1], w[expected], w[3]]), "{w1} {w3}");
        assert_eq!((done.changed, done.saturated, done.after), (1, saturated, 3000));
    }
    // None fits, and none is better: the list that the flow has stays.
    let (n, w) = figure_2(5, 5);
    let mut flows = [RoutedFlow { list: List(vec![w[1], w[2], w[3]]), ..flow(0, 1, 1000, 10) }];
    let mut load = SwitchRates::new(&n);
    load.take(&flows[0].list, 10);
    let done = optimise(&n, &mut load, &mut flows);
    assert_eq!(
        (done.changed, done.saturated, flows[0].list.0.clone()),
        (0, 1, vec![w[1], w[2], w[3]])
    );
    assert_eq!(load.of(w[2]), 10);
}

/// Between two nodes: links of the shortest way, and how many ways are that short. Breadth first
/// over all links.
fn shortest_ways(net: &Switches, from: u32, to: u32) -> (usize, u64) {
    let mut seen = vec![(usize::MAX, 0u64); net.len()];
    seen[from as usize] = (0, 1);
    let mut queue = std::collections::VecDeque::from([from]);
    while let Some(at) = queue.pop_front() {
        let (far, ways) = seen[at as usize];
        for &next in &net.neighbours[at as usize] {
            let there = &mut seen[next as usize];
            if there.0 == usize::MAX {
                *there = (far + 1, 0);
                queue.push_back(next);
            }
            if there.0 == far + 1 {
                there.1 += ways;
            }
        }
    }
    seen[to as usize]
}

#[test]
fn every_shape_has_the_published_number_of_equal_shortest_lists() {
    let rate = BitRate(10);
    // By switches on the list: how many lists are that short. A tree has r^(2u - 1) over an
    // ancestor u tiers above the access switches, a fat tree k/2 and k^2/4, VL2 2 and 2 D_A, BCube
    // h! where h digits differ.
    type Case<'a> = (&'a str, Graph, usize, &'a [(usize, u64)]);
    let cases: [Case<'_>; 11] = [
        ("tree(2,8)", Graph::hierarchy(2, 8, 1, rate, None), 2, &[(1, 1), (3, 1)]),
        ("tree(2,8), 2 copies", Graph::hierarchy(2, 8, 2, rate, None), 2, &[(1, 1), (3, 2)]),
        ("tree(3,4)", Graph::hierarchy(3, 4, 1, rate, None), 2, &[(1, 1), (3, 1), (5, 1)]),
        (
            "tree(3,4), 2 copies",
            Graph::hierarchy(3, 4, 2, rate, None),
            2,
            &[(1, 1), (3, 2), (5, 8)],
        ),
        ("tree(3,8)", Graph::hierarchy(3, 8, 1, rate, None), 2, &[(1, 1), (3, 1), (5, 1)]),
        ("fat-tree(4)", Graph::fat_tree(4, rate, None), 2, &[(1, 1), (3, 2), (5, 4)]),
        ("fat-tree(8)", Graph::fat_tree(8, rate, None), 2, &[(1, 1), (3, 4), (5, 16)]),
        ("VL2(8,4)", Graph::vl2(8, 4, rate, None), 2, &[(1, 1), (3, 2), (5, 16)]),
        ("VL2(4,4)", Graph::vl2(4, 4, rate, None), 2, &[(1, 1), (3, 2), (5, 8)]),
        ("BCube(8,1)", Graph::bcube(8, 1, rate, None), 1, &[(1, 1), (2, 2)]),
        ("BCube(4,2)", Graph::bcube(4, 2, rate, None), 1, &[(1, 1), (2, 2), (3, 6)]),
    ];
    for (name, graph, hosts, expected) in cases {
        let n = net(graph, hosts);
        let all = (0..n.hosts()).flat_map(|a| {
            (0..n.hosts()).filter(move |&b| a != b).map(move |b| (HostId::from(a), HostId::from(b)))
        });
        let found: BTreeSet<(usize, u64)> = all
            .map(|pair| {
                let (links, ways) = shortest_ways(&n, n.stands(pair.0), n.stands(pair.1));
                let (list, _) = cheapest(&n, &SwitchRates::new(&n), pair, 0).unwrap();
                let switches = list.0.iter().filter(|&&s| n.tier(s) != Tier::Server).count();
                // Where servers relay, every second node is one of them.
                assert_eq!(
                    switches,
                    if hosts == 1 { links / 2 } else { links + 1 },
                    "{name}: the search finds a shortest one"
                );
                (switches, ways)
            })
            .collect();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), expected, "{name}");
    }
}

#[test]
fn the_longest_lists_of_every_shape_have_the_published_length() {
    // (graph, hosts a rack, switches between the first and the last host, servers among them)
    for (g, hosts, length, servers) in [
        (Graph::hierarchy(3, 4, 1, BitRate(10), None), 4, 5, 0),
        (Graph::fat_tree(4, BitRate(10), None), 2, 5, 0),
        (Graph::vl2(8, 4, BitRate(10), None), 8, 5, 0),
        (Graph::bcube(4, 2, BitRate(10), None), 1, 5, 2),
    ] {
        let last = HostId::from(g.racks.len() * hosts - 1);
        let n = net(g, hosts);
        let (list, weight) = cheapest(&n, &SwitchRates::new(&n), (HostId(0), last), 1).unwrap();
        assert_eq!(list.0.len(), length);
        assert_eq!(list.0.iter().filter(|&&s| n.tier(s) == Tier::Server).count(), servers);
        assert_eq!((weight.beyond, weight.cost), (0, (length - servers) as u64));
        n.check(&list, (HostId(0), last)).unwrap();
        if hosts > 1 {
            assert_eq!(
                cheapest(&n, &SwitchRates::new(&n), (HostId(0), HostId(1)), 1).unwrap().0,
                List(vec![n.stands(HostId(0))])
            );
        }
        assert_eq!(
            cheapest(&n, &SwitchRates::new(&n), (HostId(0), HostId(0)), 1).unwrap().0,
            List::default()
        );
    }
}

#[test]
fn flat_networks_and_pods_are_trees_too() {
    let mut t = Topology::uniform("t", 4, 2, BitRate(100), BitRate(100), vec![]);
    let n = Switches::new(&t, Units::default());
    assert_eq!(
        n.names(&cheapest(&n, &SwitchRates::new(&n), (HostId(0), HostId(7)), 1).unwrap().0),
        ["s0-0", "root", "s0-3"]
    );
    t.eps.core = Core::Pods(crate::topology::Pods { racks: 2, uplink: BitRate(50) }, None);
    let n = Switches::new(&t, Units { access: 1, aggregation: 2, core: 4 });
    let of = |a, b| cheapest(&n, &SwitchRates::new(&n), (HostId(a), HostId(b)), 1).unwrap();
    assert_eq!((of(0, 7).0.0.len(), of(0, 7).1.cost, of(0, 2).1.cost), (5, 10, 4));
}

#[test]
fn a_list_that_does_not_hold_together_is_refused_with_its_reason() {
    let n = net(Graph::fat_tree(4, BitRate(10), Some(BitRate(40))), 2);
    let of = |names: &[&str]| {
        List(
            names.iter().map(|s| (0..n.len() as u32).find(|&k| n.name(k) == *s).unwrap()).collect(),
        )
    };
    let (a, b) = (HostId(0), HostId(15));
    let check = |names: &[&str]| n.check(&of(names), (a, b)).unwrap_err().to_string();
    n.check(&of(&["edge0-0", "agg0-1", "core2", "agg3-1", "edge3-1"]), (a, b)).unwrap();
    assert_eq!(
        check(&["edge0-0", "agg0-1", "core0", "agg3-0", "edge3-1"]),
        "no link joins agg0-1 and core0"
    );
    assert_eq!(
        check(&["edge0-0", "agg0-0", "edge0-0"]),
        "the last switch of the list is edge0-0, and h7-1 is at edge3-1"
    );
    let round = ["edge0-0", "agg0-0", "core0", "agg0-0", "core1", "agg3-0", "edge3-1"];
    assert_eq!(check(&round), "switch agg0-0 is in the list twice: a flow would go in a circle");
    let valley = ["edge0-0", "agg0-0", "core0", "agg1-0", "core1", "agg3-0", "edge3-1"];
    assert!(check(&valley).starts_with("the list goes up to core1 after it went down"));
    assert_eq!(
        n.check(&List(vec![]), (a, b)).unwrap_err().to_string(),
        "the first switch of the list is none, and h0-0 is at edge0-0"
    );
    assert_eq!(
        n.check(&List(vec![99]), (a, b)).unwrap_err().to_string(),
        "there is no switch 99: they are 0 to 19"
    );
    let (list, mut load) = (of(&["edge0-0"]), SwitchRates::new(&n));
    load.take(&list, 35);
    assert_eq!(
        load.check(&n, &list, 6).unwrap_err().to_string(),
        "edge0-0 carries 35b/s of 40b/s: 6b/s more do not fit"
    );
    load.check(&n, &list, 5).unwrap();
}

/// All simple ways between two switches.
pub(super) fn all_ways(n: &Switches, from: u32, to: u32) -> Vec<Vec<u32>> {
    let mut found = vec![];
    let mut open = vec![vec![from]];
    while let Some(way) = open.pop() {
        let at = *way.last().unwrap();
        if at == to {
            found.push(way);
            continue;
        }
        for &next in n.neighbours[at as usize].iter().filter(|t| !way.contains(t)) {
            open.push(way.iter().copied().chain([next]).collect());
        }
    }
    found
}

pub(super) fn weight(n: &Switches, load: &SwitchRates, way: &[u32], rate: u64) -> Weight {
    way.iter().fold(Weight::default(), |w, &s| Weight {
        beyond: w.beyond + u128::from(load.beyond(n, s, rate)),
        cost: w.cost + u64::from(n.units[s as usize]),
        length: w.length + 1,
    })
}

pub(super) fn rises_then_falls(n: &Switches, way: &[u32]) -> bool {
    let up: Vec<bool> =
        way.windows(2).map(|w| n.height[w[1] as usize] > n.height[w[0] as usize]).collect();
    up.windows(2).all(|w| w[0] || !w[1])
}

pub(super) fn shape() -> impl Strategy<Value = Graph> {
    let listed =
        (prop::collection::vec((0u32..7, 0u32..7), 0..12), prop::collection::vec(0u32..7, 2..5))
            .prop_map(|(cables, racks)| {
                let switches = (0..7)
                    .map(|k| Switch { name: format!("s{k}"), tier: Tier::Access, rate: None })
                    .collect();
                let cables = cables
                    .into_iter()
                    .filter(|e| e.0 != e.1)
                    .map(|ends| Cable { ends, rate: BitRate(1) })
                    .collect();
                let mut g = Graph { switches, cables, racks };
                g.tiers_by_distance();
                g
            });
    prop_oneof![
        listed,
        Just(Graph::hierarchy(3, 2, 2, BitRate(1), None)),
        Just(Graph::fat_tree(4, BitRate(1), None)),
        Just(Graph::vl2(4, 4, BitRate(1), None)),
        Just(Graph::bcube(2, 1, BitRate(1), None)),
    ]
}

proptest! {
    #![proptest_config(crate::testing::drawn(64))]

    /// The search finds the least weight of all simple ways; in a layered network, of those that
    /// rise and then fall.
    #[test]
    fn the_cheapest_list_is_the_least_of_all(
        g in shape(),
        rates in prop::collection::vec(prop::option::of(0u64..30), 25),
        carried in prop::collection::vec(0u64..20, 25),
        units in (0u32..3, 0u32..3, 0u32..3),
        rate in 0u64..20,
        ends in (0usize..8, 0usize..8),
    ) {
        let mut g = g;
        g.switches.iter_mut().zip(rates).for_each(|(s, r)| s.rate = r.map(BitRate));
        let (a, b) = (HostId::from(ends.0 % g.racks.len()), HostId::from(ends.1 % g.racks.len()));
        let n = Switches::new(&on(g, 1), Units { access: units.0, aggregation: units.1, core: units.2 });
        let mut load = SwitchRates::new(&n);
        load.carried.iter_mut().zip(carried).for_each(|(l, c)| *l = c);
        let ways = all_ways(&n, n.stands(a), n.stands(b));
        let fit = ways.iter().filter(|w| !n.layered || rises_then_falls(&n, w));
        let least = fit.map(|w| weight(&n, &load, w, rate)).min();
        let found = cheapest(&n, &load, (a, b), rate);
        if a == b {
            prop_assert_eq!(found, Some((List::default(), Weight::default())));
        } else {
            prop_assert_eq!(found.as_ref().map(|f| f.1), least);
            if let Some((list, w)) = found {
                let whole = n.with_ends(&list, (a, b));
                prop_assert_eq!(weight(&n, &load, &whole, rate), w);
                prop_assert_eq!(n.check(&list, (a, b)), Ok(()));
            }
        }
    }

    /// Searches that are kept give every flow what a search of its own does, with and without
    /// limits, whatever the others take.
    #[test]
    fn searches_that_are_kept_find_the_same(
        g in shape(),
        flows in prop::collection::vec((0usize..8, 0usize..8, 1u64..10), 1..20),
        limit in prop::option::of(5u64..60),
    ) {
        let mut g = g;
        g.switches.iter_mut().for_each(|s| s.rate = limit.map(BitRate));
        let racks = g.racks.len();
        let n = net(g, 1);
        let (mut load, mut kept) = (SwitchRates::new(&n), Searches::default());
        for (from, to, rate) in flows {
            let ends = (HostId::from(from % racks), HostId::from(to % racks));
            let found = kept.cheapest(&n, &load, ends, rate);
            prop_assert_eq!(&found, &cheapest(&n, &load, ends, rate));
            load.take(&found.map(|f| f.0).unwrap_or_default(), rate);
        }
    }

    /// Every list holds together, the load is what the lists say, no flow is moved twice, and
    /// without limits each flow has the least cost.
    #[test]
    fn optimising_keeps_its_books(
        flows in prop::collection::vec((0u32..16, 0u32..16, 1u64..100, 1u64..10), 1..24),
        limit in prop::option::of(5u64..60),
    ) {
        let n = net(Graph::fat_tree(4, BitRate(10), limit.map(BitRate)), 2);
        let mut flows: Vec<RoutedFlow> = flows.iter().map(|f| flow(f.0, f.1, f.2, f.3)).collect();
        let mut load = SwitchRates::new(&n);
        let done = optimise(&n, &mut load, &mut flows);
        prop_assert_eq!((done.before, done.after), (0, cost(&n, &flows)));
        let mut again = SwitchRates::new(&n);
        for f in &flows {
            prop_assert_eq!(n.check(&f.list, (f.from, f.to)), Ok(()));
            again.take(&f.list, f.rate);
        }
        prop_assert_eq!(&again, &load);
        if limit.is_none() {
            prop_assert_eq!(done.saturated, 0);
            for f in &flows {
                let least = cheapest(&n, &SwitchRates::new(&n), (f.from, f.to), 1).unwrap().1.cost;
                prop_assert_eq!(n.cost(&f.list), least);
            }
            let kept = flows.clone();
            prop_assert_eq!(optimise(&n, &mut load, &mut flows).changed, 0);
            prop_assert_eq!(kept, flows);
        }
    }
}
