//! Types of lists against all simple ways.

use proptest::prelude::*;

use super::*;
use crate::paths::optimise::{RoutedFlow, optimise};
use crate::paths::search;
use crate::paths::searches::Searches;
use crate::paths::tests::{all_ways, net, on, rises_then_falls, shape, weight};
use crate::paths::{Units, types};
use crate::topology::graph::Graph;
use crate::units::BitRate;
use Tier::{Access, Aggregation, Core, Server};

fn find(n: &Switches, from: u32, to: u32, types: &[Tier]) -> Option<Vec<String>> {
    let (list, _) =
        cheapest(n, &SwitchRates::new(n), (HostId(from), HostId(to)), 1, &Types(types.to_vec()))?;
    Some(n.names(&list).into_iter().map(Into::into).collect())
}

#[test]
fn lists_have_the_tiers_that_are_asked_for_or_there_is_none() {
    let up = [Access, Aggregation, Core, Aggregation, Access];
    let fat = net(Graph::fat_tree(4, BitRate(10), None), 2);
    assert_eq!(
        find(&fat, 0, 15, &up).unwrap(),
        ["edge0-0", "agg0-0", "core0", "agg3-0", "edge3-1"]
    );
    assert_eq!(
        find(&fat, 0, 2, &[Access, Aggregation, Access]).unwrap(),
        ["edge0-0", "agg0-0", "edge0-1"]
    );
    assert_eq!(find(&fat, 0, 2, &up), None, "one aggregation switch of a pod is below a core");
    assert_eq!(
        find(&fat, 0, 1, &up),
        None,
        "a list that begins and ends at one switch has only that"
    );
    assert_eq!(find(&fat, 0, 1, &[Access]).unwrap(), ["edge0-0"]);
    assert_eq!(find(&fat, 0, 0, &up).unwrap(), [""; 0], "within a host nothing is crossed");
    assert_eq!(find(&fat, 0, 15, &[Access, Aggregation, Access]), None);
    // In VL2 all aggregation switches are below all cores: two racks that share theirs may go over
    // a core as well.
    let vl2 = net(Graph::vl2(4, 4, BitRate(10), None), 2);
    let near = find(&vl2, 0, 4, &[Access, Aggregation, Access]).unwrap();
    let far = find(&vl2, 0, 4, &up).unwrap();
    assert_eq!((near.len(), far.len()), (3, 5));
    assert!(far[1] != far[3], "{far:?}");
    // A relaying server is of the tier `server`.
    let bcube = net(Graph::bcube(2, 1, BitRate(10), None), 1);
    assert_eq!(find(&bcube, 0, 3, &[Access, Server, Access]).unwrap().len(), 3);
    assert_eq!(find(&bcube, 0, 3, &[Access, Access]), None, "a server stands between two switches");
}

#[test]
fn types_that_no_two_hosts_can_have_are_known() {
    let fat = net(Graph::fat_tree(4, BitRate(10), None), 2);
    let any = |n: &Switches, types: &[Tier]| n.any_has(&Types(types.to_vec()));
    assert!(
        any(&fat, &[])
            && any(&fat, &[Access])
            && any(&fat, &[Access, Aggregation, Core, Aggregation, Access])
    );
    assert!(
        !any(&fat, &[Core])
            && !any(&fat, &[Access, Core, Access])
            && !any(&fat, &[Access, Aggregation])
    );
    assert!(
        !any(&net(Graph::fat_tree(4, BitRate(10), None), 1), &[Access]),
        "no rack has a second host"
    );
    let too_many = Types(vec![Access; 17]).check().unwrap_err();
    assert_eq!(too_many, ("17 types".into(), "at most 16".into()));
}

#[test]
fn a_list_of_other_tiers_is_refused_with_its_reason() {
    let n = net(Graph::fat_tree(4, BitRate(10), None), 2);
    let of = |names: &[&str]| {
        List(
            names.iter().map(|s| (0..n.len() as u32).find(|&k| n.name(k) == *s).unwrap()).collect(),
        )
    };
    let up = Types(vec![Access, Aggregation, Core, Aggregation, Access]);
    let check =
        |names: &[&str], types: &Types| n.check_types(&of(names), types).map_err(|e| e.to_string());
    let near = ["edge0-0", "agg0-0", "edge0-1"];
    assert_eq!(check(&["edge0-0", "agg0-1", "core2", "agg3-1", "edge3-1"], &up), Ok(()));
    assert_eq!(check(&near, &Types::default()), Ok(()));
    assert_eq!(check(&[], &up), Ok(()));
    assert_eq!(
        check(&near, &up).unwrap_err(),
        "switch 3 of the list, edge0-1, is of the tier access, and the flow's types want core"
    );
    let short = check(&["edge0-0"], &up).unwrap_err();
    assert_eq!(
        short,
        "the list has 1 switches, and the flow's types are 5: access, aggregation, core, aggregation, access"
    );
}

#[test]
fn a_switch_that_carries_nothing_is_on_no_list_of_types() {
    let mut g = Graph::fat_tree(4, BitRate(10), None);
    g.switches.iter_mut().filter(|s| s.tier == Core).for_each(|s| s.rate = Some(BitRate(0)));
    let n = net(g, 2);
    assert_eq!(find(&n, 0, 15, &[Access, Aggregation, Core, Aggregation, Access]), None);
}

fn any_types() -> impl Strategy<Value = Types> {
    let tier = prop::sample::select(vec![Access, Access, Aggregation, Aggregation, Core, Server]);
    let usual = prop::sample::select(vec![
        vec![Access],
        vec![Access, Core, Access],
        vec![Access, Aggregation, Access],
        vec![Access, Aggregation, Core, Aggregation, Access],
        vec![Access, Aggregation, Core, Core, Aggregation, Access],
        vec![Access, Server, Access],
    ]);
    prop_oneof![2 => usual, 1 => prop::collection::vec(tier, 1..6)].prop_map(Types)
}

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    /// The search finds the least weight of all simple ways whose switches have the types, and
    /// nothing where there is none; so does a search that is kept for later flows. `any_has` is
    /// true just where some two racks have a list of the types.
    #[test]
    fn the_cheapest_list_of_types_is_the_least_of_all(
        g in shape(),
        rates in prop::collection::vec(prop::option::of(0u64..30), 25),
        limits in any::<bool>(),
        carried in prop::collection::vec(0u64..20, 25),
        units in (0u32..3, 0u32..3, 0u32..3),
        rate in 0u64..20,
        ends in (0usize..8, 0usize..8),
        types in any_types(),
    ) {
        let mut g = g;
        g.switches.iter_mut().zip(rates).for_each(|(s, r)| s.rate = r.filter(|_| limits).map(BitRate));
        let racks = g.racks.len();
        let (a, b) = (HostId::from(ends.0 % racks), HostId::from(ends.1 % racks));
        let n = Switches::new(&on(g, 1), Units { access: units.0, aggregation: units.1, core: units.2 });
        let mut load = SwitchRates::new(&n);
        (0..n.len() as u32).zip(carried).for_each(|(s, c)| load.take(&List(vec![s]), c));
        let fits = |a: HostId, b: HostId| -> Vec<Vec<u32>> {
            let own = |h: HostId| n.tier(n.stands(h)) == Server;
            let inner = |w: &[u32]| w[usize::from(own(a))..w.len() - usize::from(own(b))].to_vec();
            let tiers = |w: &[u32]| inner(w).iter().map(|&s| n.tier(s)).collect::<Vec<_>>() == types.0;
            let ways = all_ways(&n, n.stands(a), n.stands(b)).into_iter();
            ways.filter(|w| n.stands(a) != n.stands(b) || w.len() == 1)
                .filter(|w| w.iter().all(|&s| n.capacity(s) != Some(0)))
                .filter(|w| !n.layered || rises_then_falls(&n, w))
                .filter(|w| w.len() > usize::from(own(a)) + usize::from(own(b)) && tiers(w))
                .collect()
        };
        let found = cheapest(&n, &load, (a, b), rate, &types);
        prop_assert_eq!(&found, &Searches::default().of_types(&n, &load, (a, b), rate, &types));
        if a == b {
            prop_assert_eq!(found, Some((List::default(), Weight::default())));
        } else {
            let least = fits(a, b).iter().map(|w| weight(&n, &load, w, rate)).min();
            prop_assert_eq!(found.as_ref().map(|f| f.1), least);
            if let Some((list, w)) = found {
                prop_assert_eq!(weight(&n, &load, &n.with_ends(&list, (a, b)), rate), w);
                prop_assert_eq!(n.check(&list, (a, b)), Ok(()));
                prop_assert_eq!(n.check_types(&list, &types), Ok(()));
            }
        }
        let pairs = (0..racks).flat_map(|a| (0..racks).map(move |b| (HostId::from(a), HostId::from(b)))).filter(|(a, b)| a != b);
        prop_assert_eq!(n.any_has(&types), pairs.into_iter().any(|(a, b)| !fits(a, b).is_empty()));
    }

    /// Flows with types have lists of their types. Those between whose hosts no list has them are
    /// counted, and go as flows without types. Where switches have no limits, flows do not crowd
    /// each other out: those without types have the lists that they would have alone, and a second
    /// run of the algorithm changes nothing.
    #[test]
    fn optimising_binds_types(
        flows in prop::collection::vec((0u32..16, 0u32..16, 1u64..100, 1u64..10, prop::option::of(any_types())), 1..24),
        limit in prop::option::of(5u64..60),
    ) {
        let n = net(Graph::fat_tree(4, BitRate(10), limit.map(BitRate)), 2);
        let of = |f: &(u32, u32, u64, u64, Option<Types>)| RoutedFlow {
            from: HostId(f.0), to: HostId(f.1), bytes: f.2, rate: f.3, list: List::default(), types: f.4.clone().unwrap_or_default(),
        };
        let mut flows: Vec<RoutedFlow> = flows.iter().map(of).collect();
        let mut load = SwitchRates::new(&n);
        let done = optimise(&n, &mut load, &mut flows);
        let empty = SwitchRates::new(&n);
        let none = |f: &&RoutedFlow| types::cheapest(&n, &empty, (f.from, f.to), 0, &f.types).is_none() && !f.types.are_free();
        prop_assert_eq!(done.unmet, flows.iter().filter(none).count());
        for f in &flows {
            prop_assert_eq!(n.check(&f.list, (f.from, f.to)), Ok(()));
            prop_assert!(none(&f) || n.check_types(&f.list, &f.types).is_ok());
            if limit.is_none() && (f.types.are_free() || none(&f)) {
                prop_assert_eq!(n.cost(&f.list), search::cheapest(&n, &empty, (f.from, f.to), 0).unwrap().1.cost);
            }
        }
        if limit.is_none() {
            prop_assert_eq!(optimise(&n, &mut load, &mut flows).changed, 0);
        }
    }
}
