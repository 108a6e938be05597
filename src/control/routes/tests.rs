//! Decisions over a small fat tree and a leaf-spine network, and what is set by hand.

use super::*;
use crate::topology::Core;
use crate::topology::graph::{Cable, Graph, Switch};
use crate::units::Time;
use proptest::prelude::*;

/// Two hosts at each of four leaves (0 to 3) below two spines (4, 5); spine 4 carries `limit`.
fn leaves(limit: Option<u64>) -> Arc<Topology> {
    let mut t = Topology::uniform("t", 4, 2, BitRate(100), BitRate(100), vec![]);
    let mut graph = Graph::leaf_spine(4, 2, BitRate(100), None);
    graph.switches[4].rate = limit.map(BitRate);
    t.eps.core = Core::Graph(Box::new(graph));
    Arc::new(t)
}

fn flow(from: u32, to: u32, bytes: u64) -> FlowSpec {
    FlowSpec { from: HostId(from), to: HostId(to), bytes: Bytes(bytes) }
}

/// Carries changes out as a fabric does.
fn carry(p: &mut Paths) -> usize {
    let ops = p.ops();
    let n = ops.len();
    if n > 0 {
        assert_eq!(p.ops(), [], "it waits for the answer");
        let done = ops.into_iter().map(|op| SteerResult { op, outcome: Ok(Time(0)) }).collect();
        assert_eq!(p.answered(done), None);
    }
    n
}

fn lists(p: &Paths) -> Vec<Vec<u32>> {
    p.view().unwrap().pairs.iter().map(|v| v.list.0.clone()).collect()
}

#[test]
fn under_ecmp_nothing_is_asked_and_the_default_ways_are_shown() {
    let mut p = Paths::new(leaves(None), PathPolicy::Ecmp, 1);
    p.begin(CoflowId(0), &[flow(0, 7, 100), flow(0, 1, 50), flow(3, 3, 9)], &Types::default())
        .unwrap();
    let d = p.decide().unwrap();
    assert_eq!((carry(&mut p), d), (0, Decided { saturated: 0, before: 350, after: 350 }));
    let view = p.view().unwrap();
    assert!(view.pairs.iter().all(|v| v.held && v.by == DecidedBy::Default));
    assert_eq!(view.pairs[0].list, List(vec![0]));
    // 150 bytes from host 0 at 100 b/s: 12 s.
    assert_eq!(
        (view.switches[3].load, view.switches[0].load, view.switches[3].pairs),
        (BitRate(66), BitRate(99), 1)
    );
    assert!(p.end(CoflowId(0)) && !p.end(CoflowId(0)));
    assert_eq!((p.view().unwrap().pairs.len(), p.view().unwrap().cost), (0, 0));
}

#[test]
fn hit_leaves_a_full_switch_and_moves_nothing_without_need() {
    // Spine 4 takes one flow of 100 b/s.
    let mut p = Paths::new(leaves(Some(100)), PathPolicy::Hit, 1);
    p.begin(CoflowId(0), &[flow(0, 7, 1000)], &Types::default()).unwrap();
    p.decide();
    assert_eq!(carry(&mut p), 1);
    p.begin(CoflowId(1), &[flow(2, 6, 900)], &Types::default()).unwrap();
    p.decide();
    assert_eq!(carry(&mut p), 1);
    let over: Vec<u32> = lists(&p).iter().map(|l| l[1]).collect();
    assert!(over.contains(&4) && over.contains(&5) || over == [5, 5], "{over:?}");
    // When the first ends its pair goes back to the default way, and the other stays.
    let before = lists(&p)[1].clone();
    p.end(CoflowId(0));
    p.decide();
    assert_eq!((carry(&mut p), lists(&p)), (1, vec![before]));
}

#[test]
fn a_failed_switch_is_left_by_all_flows_that_can() {
    let mut p = Paths::new(leaves(None), PathPolicy::Hit, 1);
    let flows: Vec<FlowSpec> = (0..6).map(|k| flow(k, (k + 2) % 8, 100)).collect();
    p.begin(CoflowId(0), &flows, &Types::default()).unwrap();
    p.decide();
    carry(&mut p);
    let over = |p: &Paths, spine: u32| lists(p).iter().filter(|l| l.contains(&spine)).count();
    assert!(over(&p, 4) > 0 && over(&p, 5) > 0, "both are used");
    let moved = over(&p, 4);
    p.fault(4, false).unwrap();
    assert_eq!(p.decide().unwrap().saturated, 0);
    assert_eq!((carry(&mut p), over(&p, 4)), (moved, 0));
    let view = p.view().unwrap();
    let mut copy = Paths::of(leaves(None), &view);
    copy.decide();
    assert_eq!(copy.view().unwrap(), view, "what is tried on a copy leaves the failed switch, too");
    // Without any spine no list is better; when one is well again, flows have a way.
    p.fault(5, false).unwrap();
    assert_eq!(p.decide().unwrap().saturated, 6);
    p.fault(4, true).unwrap();
    assert_eq!((p.decide().unwrap().saturated, over(&p, 5)), (0, 0));
    assert!(p.fault(6, false).unwrap_err().to_string().starts_with("switch 6"));
}

#[test]
fn flows_leave_a_link_that_is_down() {
    let mut p = Paths::new(leaves(None), PathPolicy::Hit, 1);
    p.begin(CoflowId(0), &[flow(0, 7, 100), flow(1, 5, 100)], &Types::default()).unwrap();
    p.decide();
    carry(&mut p);
    let graph = leaves(None).eps.graph().unwrap().clone();
    let cable = |a: u32, b: u32| {
        graph.cables.iter().position(|c| c.ends == (a, b) || c.ends == (b, a)).unwrap() as u32
    };
    let spine = lists(&p)[0][1];
    assert!(
        p.down([cable(0, spine)].into_iter()) && !p.down([cable(0, spine)].into_iter()),
        "said twice it is no news"
    );
    assert_eq!(p.decide().unwrap().saturated, 0);
    carry(&mut p);
    assert!(lists(&p).iter().all(|l| l[0] != 0 || l[1] == 9 - spine), "{:?}", lists(&p));
    let view = p.view().unwrap();
    assert_eq!(view.apart, [(0, spine)]);
    assert_eq!(Paths::of(leaves(None), &view).view().unwrap().apart, view.apart);
    let by_hand = p
        .set(PathEnds::pair(HostId(0), HostId(7)), List(vec![0, spine, 3]))
        .unwrap_err()
        .to_string();
    assert!(by_hand.contains("a link of the list is down"), "{by_hand}");
    assert!(p.down(std::iter::empty()));
    p.set(PathEnds::pair(HostId(0), HostId(7)), List(vec![0, spine, 3])).unwrap();
    // A number that no link has is of no link of ours.
    assert!(!p.down([9999].into_iter()));
}

#[test]
fn what_goes_back_to_a_sender_leaves_a_link_that_is_down_too() {
    let mut p = Paths::new(leaves(None), PathPolicy::Hit, 1);
    p.begin(CoflowId(0), &[flow(0, 7, 100)], &Types::default()).unwrap();
    p.decide();
    carry(&mut p);
    let (back, web) = (PathEnds::pair(HostId(7), HostId(0)), p.web.clone().unwrap());
    let default = p.default_list(&web, back.hosts());
    let graph = leaves(None).eps.graph().unwrap().clone();
    let link = |c: &crate::topology::graph::Cable| {
        [c.ends.0, c.ends.1].iter().all(|end| default.0[..2].contains(end))
    };
    let down = graph.cables.iter().position(link).unwrap() as u32;
    p.down([down].into_iter());
    p.decide();
    carry(&mut p);
    let own = p.held.at(back).expect("a list of its own").clone();
    assert!(own != default && p.web.as_ref().unwrap().net.holds(&own), "{own:?}");
    p.down(std::iter::empty());
    p.decide();
    carry(&mut p);
    assert_eq!(p.held.at(back), None, "the default way again");
}

#[test]
fn a_flow_without_a_way_leaves_the_others_theirs() {
    let mut p = Paths::new(leaves(None), PathPolicy::Hit, 1);
    // The largest flow, which is looked at first, leaves a leaf whose links are all down.
    p.begin(CoflowId(0), &[flow(4, 0, 900), flow(0, 2, 100), flow(1, 3, 100)], &Types::default())
        .unwrap();
    let graph = leaves(None).eps.graph().unwrap().clone();
    let of_leaf_2 =
        (0..).zip(&graph.cables).filter(|(_, c)| c.ends.0 == 2 || c.ends.1 == 2).map(|(k, _)| k);
    p.down(of_leaf_2.collect::<Vec<u32>>().into_iter());
    assert_eq!(p.decide().unwrap().saturated, 1);
    let by_default = vec![2, 4, 0];
    assert_eq!((carry(&mut p), lists(&p)), (2, vec![vec![0, 4, 1], vec![0, 5, 1], by_default]));
    p.down(std::iter::empty());
    assert_eq!((p.decide().unwrap().saturated, carry(&mut p), lists(&p).len()), (0, 1, 3));
}

#[test]
fn other_policies_choose_once_a_pair() {
    for policy in [PathPolicy::Shortest, PathPolicy::Vlb] {
        let mut p = Paths::new(leaves(None), policy, 3);
        p.begin(CoflowId(0), &[flow(0, 7, 10), flow(1, 6, 10)], &Types::default()).unwrap();
        p.decide();
        assert_eq!(carry(&mut p), 2);
        let first = lists(&p);
        p.begin(CoflowId(1), &[flow(0, 7, 10)], &Types::default()).unwrap();
        p.decide();
        assert_eq!((carry(&mut p), lists(&p)), (0, first.clone()), "{policy:?}");
        p.end(CoflowId(0));
        assert_eq!(lists(&p).len(), 1, "the second coflow still sends");
        assert!(policy == PathPolicy::Vlb || first[0][1] == 4, "the lowest number");
    }
}

#[test]
fn what_is_set_by_hand_stays_and_mistakes_change_nothing() {
    let mut p = Paths::new(leaves(Some(60)), PathPolicy::Hit, 1);
    p.begin(CoflowId(0), &[flow(0, 7, 1000), flow(1, 6, 1000)], &Types::default()).unwrap();
    p.decide();
    carry(&mut p);
    let before = p.view().unwrap();
    let ends = PathEnds::pair(HostId(0), HostId(7));
    let refused = [
        (ends, vec![0, 9, 3], "there is no switch 9"),
        (ends, vec![0, 4, 2], "the last switch of the list is leaf2"),
        (ends, vec![0, 3], "no link joins leaf0 and leaf3"),
        (ends, vec![0, 4, 0, 5, 3], "switch leaf0 is in the list twice"),
        (ends, vec![0, 4, 3], "spine0 carries 0b/s of 60b/s: 100b/s more do not fit"),
        (PathEnds::pair(HostId(0), HostId(8)), vec![0], "there is no host 8"),
    ];
    for (ends, list, why) in refused {
        let e = p.set(ends, List(list)).unwrap_err().to_string();
        assert!(e.starts_with(why), "{e}");
        assert_eq!(p.view().unwrap(), before);
    }
    assert!(p.unset(ends).unwrap_err().to_string().contains("set by hand from h0-0 to h3-1"));
    p.set(ends, List(vec![0, 5, 3])).unwrap();
    p.decide();
    carry(&mut p);
    assert_eq!(p.view().unwrap().pairs[0].by, DecidedBy::Manual);
    p.end(CoflowId(0));
    p.decide();
    carry(&mut p);
    assert_eq!(lists(&p), [vec![0, 5, 3]], "it stays without flows");
    p.unset(ends).unwrap();
    assert_eq!((carry(&mut p), p.ops().len(), lists(&p).len()), (1, 0, 0));
    let flat = Arc::new(Topology::uniform("t", 2, 1, BitRate(1), BitRate(1), vec![]));
    let mut flat = Paths::new(flat, PathPolicy::Hit, 1);
    assert!(flat.set(ends, List(vec![0])).unwrap_err().to_string().contains("one switch"));
    assert!(flat.decide().is_none() && flat.view().is_none() && flat.ops().is_empty());
}

#[test]
fn costs_of_switches_are_those_of_the_policy() {
    // Two racks joined by an aggregation switch (2), which carries one flow of 100 b/s, and by
    // three core switches (3 to 5) in a row.
    let mut t = Topology::uniform("t", 2, 2, BitRate(100), BitRate(100), vec![]);
    let switch = |name: &str, tier, rate: Option<u64>| Switch {
        name: name.into(),
        tier,
        rate: rate.map(BitRate),
    };
    let switches = vec![
        switch("a", Tier::Access, None),
        switch("b", Tier::Access, None),
        switch("middle", Tier::Aggregation, None),
        switch("top", Tier::Core, None),
    ];
    let cable = |a, b| Cable { ends: (a, b), rate: BitRate(100) };
    let cables = vec![cable(0, 2), cable(2, 1), cable(0, 3), cable(3, 1)];
    t.eps.core = Core::Graph(Box::new(Graph { switches, cables, racks: vec![0, 1] }));
    let t = Arc::new(t);
    for (units, over) in [
        (Units { access: 1, aggregation: 5, core: 9 }, 2),
        (Units { access: 1, aggregation: 9, core: 5 }, 3),
    ] {
        let mut p = Paths::new(t.clone(), PathPolicy::Hit, 1).priced(units);
        p.begin(CoflowId(0), &[flow(0, 2, 100)], &Types::default()).unwrap();
        assert_eq!(p.decide().unwrap().after, 100 * 7);
        carry(&mut p);
        let view = p.view().unwrap();
        assert_eq!((lists(&p), view.units), (vec![vec![0, over, 1]], units));
        assert_eq!(
            &Paths::of(t.clone(), &view).view().unwrap(),
            &view,
            "what is tried on a copy has the same costs"
        );
        p.price(Units::default());
        assert_eq!(p.view().unwrap().cost, 300);
    }
}

#[test]
fn a_list_that_is_too_full_says_what_each_switch_would_carry() {
    let mut p = Paths::new(leaves(Some(60)), PathPolicy::Hit, 1);
    p.begin(CoflowId(0), &[flow(0, 7, 1000), flow(1, 6, 1000)], &Types::default()).unwrap();
    p.decide();
    carry(&mut p);
    let why =
        p.set(PathEnds::pair(HostId(0), HostId(7)), List(vec![0, 4, 3])).unwrap_err().to_string();
    let what_if = "with it leaf0 would carry 200b/s of any load, spine0 would carry 100b/s of 60b/s, leaf3 would carry 200b/s of any load";
    assert!(why.ends_with(what_if), "{why}");
}

#[test]
fn a_flow_has_its_list_beside_that_of_its_pair() {
    let mut p = Paths::new(leaves(Some(1000)), PathPolicy::Hit, 1);
    p.begin(CoflowId(0), &[flow(0, 7, 1000)], &Types::default()).unwrap();
    let pair = PathEnds::pair(HostId(0), HostId(7));
    let single = PathEnds { ports: Some(Ports { from: 40_000, to: 5201 }), ..pair };
    assert!(p.set(single, List(vec![0, 3])).unwrap_err().to_string().contains("no link joins"));
    p.set(single, List(vec![0, 5, 3])).unwrap();
    p.set(pair, List(vec![0, 4, 3])).unwrap();
    p.decide();
    let before = p.view().unwrap();
    let seen: Vec<_> =
        before.pairs.iter().map(|v| (v.ports, v.list.0.clone(), v.held, v.bytes)).collect();
    assert_eq!(
        seen,
        [
            (None, vec![0, 4, 3], false, Bytes(1000)),
            (single.ports, vec![0, 5, 3], false, Bytes::ZERO)
        ]
    );
    assert_eq!(carry(&mut p), 2);
    assert!(p.view().unwrap().pairs.iter().all(|v| v.held && v.by == DecidedBy::Manual));
    let copy = Paths::of(leaves(Some(1000)), &p.view().unwrap());
    assert_eq!(
        copy.view().unwrap().pairs,
        p.view().unwrap().pairs,
        "a view is enough to try changes on"
    );
    p.unset(pair).unwrap();
    let why = p
        .unset(PathEnds { ports: Some(Ports { from: 1, to: 5201 }), ..pair })
        .unwrap_err()
        .to_string();
    assert!(why.contains("from h0-0 to h3-1 of the flow from port 1 to port 5201"), "{why}");
    p.decide();
    carry(&mut p);
    assert_eq!(p.view().unwrap().pairs[1].list, List(vec![0, 5, 3]), "the flow keeps its own");
    p.unset(single).unwrap();
    p.decide();
    assert_eq!(p.ops(), [Steer::new(single, None)]);
}

#[test]
fn a_refusal_is_told_and_tried_again() {
    let mut p = Paths::new(leaves(None), PathPolicy::Shortest, 1);
    p.begin(CoflowId(0), &[flow(0, 7, 10)], &Types::default()).unwrap();
    p.decide();
    let op = p.ops().remove(0);
    let why =
        p.answered(vec![SteerResult { op: op.clone(), outcome: Err(PathError::Full(7)) }]).unwrap();
    assert!(why.starts_with("from h0-0 to h3-1: all 7 lists"), "{why}");
    assert!(p.is_refused() && !p.view().unwrap().pairs[0].held);
    assert_eq!((carry(&mut p), p.is_refused(), p.view().unwrap().pairs[0].held), (1, false, true));
}

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    /// Whatever begins and ends: lists hold together, the load of each switch is the sum of its
    /// flows, a state made of a view shows the same, and at the end nothing is left.
    #[test]
    fn loads_are_sums_and_nothing_is_left(
        coflows in prop::collection::vec(prop::collection::vec((0u32..8, 0u32..8, 0u64..1000), 0..6), 1..8),
        policy in prop::sample::select(vec![PathPolicy::Ecmp, PathPolicy::Shortest, PathPolicy::Vlb, PathPolicy::Hit]),
        limit in prop::option::of(50u64..300),
    ) {
        let t = leaves(limit);
        let mut p = Paths::new(t.clone(), policy, 5);
        for (k, flows) in coflows.iter().enumerate() {
            let own: Vec<FlowSpec> = flows.iter().map(|&(a, b, n)| flow(a, b, n)).collect();
            p.begin(CoflowId::from(k), &own, &Types::default()).unwrap();
            if k % 3 == 2 {
                p.end(CoflowId::from(k - 2));
            }
            p.decide();
            carry(&mut p);
            let view = p.view().unwrap();
            let net = Switches::new(&t, Units::default());
            for v in &view.pairs {
                prop_assert_eq!(net.check(&v.list, (v.from, v.to)), Ok(()));
                prop_assert!(v.held);
            }
            for (s, seen) in view.switches.iter().enumerate() {
                let own = view.pairs.iter().filter(|v| v.list.0.contains(&(s as u32))).map(|v| v.rate.0).sum::<u64>();
                prop_assert_eq!(seen.load.0, own);
            }
            prop_assert_eq!(&Paths::of(t.clone(), &view).view().unwrap(), &view);
        }
        (0..coflows.len()).for_each(|k| {
            p.end(CoflowId::from(k));
        });
        p.decide();
        carry(&mut p);
        prop_assert_eq!((lists(&p).len(), p.ops().len(), p.held.0.len()), (0, 0, 0));
    }
}

fn types(names: &[Tier]) -> Types {
    Types(names.to_vec())
}

/// Two hosts at each of four racks of VL2(4, 4): all aggregation switches are below all cores, and
/// racks 0 and 2 share theirs.
fn vl2() -> Arc<Topology> {
    let mut t = Topology::uniform("t", 4, 2, BitRate(100), BitRate(100), vec![]);
    t.eps.core = Core::Graph(Box::new(Graph::vl2(4, 4, BitRate(100), None)));
    Arc::new(t)
}

fn tiers(p: &Paths, k: usize) -> Vec<Tier> {
    let view = p.view().unwrap();
    view.pairs[k].list.0.iter().map(|&s| view.switches[s as usize].tier).collect()
}

use Tier::{Access, Aggregation, Core as Top};
const OVER_A_CORE: [Tier; 5] = [Access, Aggregation, Top, Aggregation, Access];

#[test]
fn types_bind_lists_under_every_policy_as_long_as_the_coflow_is_open() {
    for policy in [PathPolicy::Ecmp, PathPolicy::Shortest, PathPolicy::Vlb, PathPolicy::Hit] {
        let mut p = Paths::new(vl2(), policy, 1);
        p.begin(CoflowId(0), &[flow(0, 4, 1000)], &Types::default()).unwrap();
        p.decide();
        carry(&mut p);
        let before = tiers(&p, 0);
        assert_eq!(before.len(), if policy == PathPolicy::Vlb { 5 } else { 3 }, "{policy:?}");
        // A coflow with types between the same hosts: the pair has its list.
        p.begin(CoflowId(1), &[flow(0, 4, 10)], &types(&OVER_A_CORE)).unwrap();
        assert!(!p.rests());
        p.decide();
        carry(&mut p);
        assert_eq!(
            (tiers(&p, 0), p.unmet_of(CoflowId(1))),
            (OVER_A_CORE.to_vec(), 0),
            "{policy:?}"
        );
        let view = p.view().unwrap();
        assert!(
            view.pairs[0].held
                && !view.pairs[0].unmet
                && view.pairs[0].types == types(&OVER_A_CORE)
        );
        p.end(CoflowId(1));
        p.decide();
        carry(&mut p);
        assert_eq!(
            (tiers(&p, 0), p.view().unwrap().pairs[0].types.clone()),
            (before, Types::default()),
            "{policy:?}"
        );
    }
}

#[test]
fn a_pair_without_a_list_of_its_types_goes_as_others_do_and_is_counted() {
    for policy in [PathPolicy::Ecmp, PathPolicy::Shortest, PathPolicy::Vlb, PathPolicy::Hit] {
        let mut p = Paths::new(vl2(), policy, 1);
        // Within a rack there is no simple list over a core.
        p.begin(CoflowId(0), &[flow(0, 1, 1000), flow(0, 4, 1000)], &types(&OVER_A_CORE)).unwrap();
        p.decide();
        carry(&mut p);
        assert_eq!(
            (tiers(&p, 0), tiers(&p, 1)),
            (vec![Access], OVER_A_CORE.to_vec()),
            "{policy:?}"
        );
        assert_eq!(p.unmet_of(CoflowId(0)), 1);
        assert_eq!(
            p.view().unwrap().pairs.iter().map(|v| v.unmet).collect::<Vec<_>>(),
            [true, false]
        );
    }
    // Two coflows with different types between the same hosts: the first has them.
    let mut p = Paths::new(vl2(), PathPolicy::Hit, 1);
    p.begin(CoflowId(0), &[flow(0, 4, 1000)], &types(&OVER_A_CORE)).unwrap();
    p.begin(CoflowId(1), &[flow(0, 4, 1000)], &types(&[Access, Aggregation, Access])).unwrap();
    p.decide();
    assert_eq!((p.unmet_of(CoflowId(0)), p.unmet_of(CoflowId(1)), tiers(&p, 0).len()), (0, 1, 5));
    p.end(CoflowId(0));
    p.decide();
    assert_eq!((p.unmet_of(CoflowId(1)), tiers(&p, 0).len()), (0, 3));
}

#[test]
fn a_list_by_hand_has_the_types_of_the_flows_under_way() {
    let mut p = Paths::new(vl2(), PathPolicy::Ecmp, 1);
    p.begin(CoflowId(0), &[flow(0, 4, 1000)], &types(&OVER_A_CORE)).unwrap();
    p.decide();
    let far = p.view().unwrap().pairs[0].list.clone();
    let near = List(vec![far.0[0], far.0[1], far.0[4]]);
    let ends = PathEnds::pair(HostId(0), HostId(4));
    let why = p.set(ends, near.clone()).unwrap_err();
    assert!(
        matches!(&why, Rejected::Conflict(w) if w.contains("is of the tier access, and the flow's types want core")),
        "{why:?}"
    );
    p.set(ends, far).unwrap();
    // On a copy of what is shown as well.
    let mut copy = Paths::of(vl2(), &p.view().unwrap());
    assert!(copy.set(ends, near.clone()).is_err());
    // Set before the flows begin, it stays, and what it does not meet is counted.
    p.end(CoflowId(0));
    p.set(ends, near).unwrap();
    p.begin(CoflowId(1), &[flow(0, 4, 1000)], &types(&OVER_A_CORE)).unwrap();
    p.decide();
    assert_eq!((tiers(&p, 0).len(), p.unmet_of(CoflowId(1))), (3, 1));
}

#[test]
fn types_that_no_list_has_are_refused() {
    let mut p = Paths::new(leaves(None), PathPolicy::Hit, 1);
    let why =
        p.begin(CoflowId(0), &[flow(0, 7, 1)], &types(&[Access, Aggregation, Access])).unwrap_err();
    assert!(
        matches!(&why, Rejected::Invalid(w) if w.contains("[access] or [access, core, access]")),
        "{why:?}"
    );
    assert_eq!(p.view().unwrap().pairs, []);
}

proptest! {
    #![proptest_config(crate::testing::drawn(64))]

    /// In any order of coflows that begin and end, the list of two hosts has the types of one open
    /// coflow: the one with types that has the lowest number, if the network has a list of these
    /// types between them. The view marks each pair of hosts whose list has not.
    #[test]
    fn lists_have_their_types_whatever_begins_and_ends(
        steps in prop::collection::vec((0u32..6, prop::collection::vec((0u32..8, 0u32..8), 1..5), 0usize..4, any::<bool>()), 1..16),
        hit in any::<bool>(),
    ) {
        let net = Switches::new(&vl2(), Units::default());
        let kinds = [types(&[]), types(&OVER_A_CORE), types(&[Access, Aggregation, Access]), types(&[Access])];
        let mut p = Paths::new(vl2(), if hit { PathPolicy::Hit } else { PathPolicy::Ecmp }, 1);
        let mut open: BTreeMap<u32, (BTreeSet<HostPair>, Types)> = BTreeMap::new();
        for (id, pairs, kind, ends) in steps {
            if ends {
                p.end(CoflowId(id));
                open.remove(&id);
            } else {
                let flows: Vec<FlowSpec> = pairs.iter().map(|&(a, b)| flow(a, b, 10)).collect();
                p.begin(CoflowId(id), &flows, &kinds[kind]).unwrap();
                let pairs = pairs.into_iter().filter(|(a, b)| a != b).map(|(a, b)| (HostId(a), HostId(b))).collect();
                open.insert(id, (pairs, kinds[kind].clone()));
            }
            p.decide();
            carry(&mut p);
            let view = p.view().unwrap();
            let all: BTreeSet<HostPair> = open.values().flat_map(|o| o.0.iter().copied()).collect();
            prop_assert_eq!(view.pairs.iter().map(|v| (v.from, v.to)).collect::<BTreeSet<_>>(), all);
            for v in &view.pairs {
                let pair = (v.from, v.to);
                let of: Vec<&Types> = open.values().filter(|o| o.0.contains(&pair) && !o.1.are_free()).map(|o| &o.1).collect();
                prop_assert_eq!(Some(&v.types).filter(|t| !t.are_free()), of.first().copied());
                let exists = crate::paths::types::cheapest(&net, &SwitchRates::new(&net), pair, 0, &v.types).is_some();
                prop_assert_eq!(net.check_types(&v.list, &v.types).is_ok(), v.types.are_free() || exists);
                prop_assert_eq!(v.unmet, of.iter().any(|t| net.check_types(&v.list, t).is_err()));
                prop_assert!(v.held);
            }
        }
    }
}
