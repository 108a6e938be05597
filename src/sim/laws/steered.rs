//! Lists of switches that change while flows are under way.

use super::*;
use crate::paths::List;

/// The host pair, whether it gets a list, the spine of that, and when.
type Move = (u32, u32, Option<u32>, u64);

fn moves() -> impl Strategy<Value = Vec<Move>> {
    prop::collection::vec((0u32..8, 0u32..8, prop::option::of(4u32..6), span(120_000_000)), 0..12)
}

/// Leaf switches 0 to 3 of two hosts each below the spines 4 and 5; the first carries less than its
/// cables.
fn steer(&(from, to, spine, at): &Move) -> (u64, Steer) {
    let list = spine.map(|s| {
        if from / 2 == to / 2 { List(vec![from / 2]) } else { List(vec![from / 2, s, to / 2]) }
    });
    (at, Steer { from: HostId(from), to: HostId(to), ports: None, list })
}

/// Plays a script in which lists change; what every flow and coflow came to.
fn run(
    s: &Script,
    t: &Arc<Topology>,
    moves: &[(u64, Steer)],
) -> (Vec<FlowFinished>, Vec<CoflowSpec>, Vec<Reservation>, SimFabric) {
    let mut f = SimFabric::new(
        t.clone(),
        SimSettings { admit: s.admit(), network: s.network, ..SimSettings::default() },
    );
    for &(i, j, at, long) in &s.circuits {
        f.apply(&[circuit(i, j, at, at + 10_000_000 + long)], Time(0));
    }
    let table: Vec<Reservation> =
        f.observe(Time(0)).unwrap().programmed.timetable.iter().copied().collect();
    let (mut at, mut coflows) = (0, Vec::new());
    for (k, flows) in s.flows.iter().enumerate() {
        at += s.gaps[k];
        coflows.push(coflow(k as u32, at, flows));
    }
    let mut times: Vec<u64> =
        coflows.iter().map(|c| c.arrival.0).chain(moves.iter().map(|m| m.0)).collect();
    times.sort_unstable();
    times.dedup();
    for at in times {
        let ops: Vec<Steer> = moves.iter().filter(|m| m.0 == at).map(|m| m.1.clone()).collect();
        assert!(
            f.steer(&ops, Time(at))
                .iter()
                .all(|r| r.outcome == Ok(Time(at)) || r.op.from == r.op.to)
        );
        for c in coflows.iter().filter(|c| c.arrival.0 == at) {
            f.add_flows(c, &vec![true; c.flows.len()], Time(at));
        }
    }
    let mut done = f.advance(Time(NEVER));
    done.sort();
    (done, coflows, table, f)
}

proptest! {
    #![proptest_config(crate::testing::drawn(192))]

    #[test]
    fn changed_lists_are_single_flows_to_the_bit(s in script(), moves in moves()) {
        let s = Script { pods: 4, network: Network::default(), ..s };
        let t = tree(&s);
        let mut moves: Vec<(u64, Steer)> = moves.iter().map(steer).filter(|m| m.1.from != m.1.to).collect();
        moves.sort_by_key(|m| m.0);
        let (done, coflows, table, _) = run(&s, &t, &moves);
        prop_assert_eq!(done, max_min::twin(&t, &table, &coflows, &moves));
    }

    /// Under every network scheduler: a flow that ends has sent all its bytes once, and every flow
    /// ends that has a way.
    #[test]
    fn no_byte_is_lost_by_a_change(s in script(), moves in moves()) {
        let s = Script { pods: 4, uplink: s.uplink.max(100), ..s };
        let t = tree(&s);
        let (done, coflows, _, mut f) = run(&s, &t, &moves.iter().map(steer).collect::<Vec<_>>());
        let delivered = f.delivered();
        let mut each: Vec<_> = done.iter().map(|d| (d.coflow, d.flow)).collect();
        each.dedup();
        prop_assert_eq!(each.len(), coflows.iter().map(|c| c.flows.len()).sum::<usize>());
        for c in coflows.iter().filter(|c| !c.flows.is_empty()) {
            prop_assert_eq!(delivered[&c.id].bytes, c.bytes());
        }
    }

    /// The default ways by their names, given at any time, are no change: not one nanosecond, not
    /// one byte.
    #[test]
    fn the_default_way_as_a_list_changes_nothing(s in script(), moves in moves()) {
        let s = Script { pods: 4, ..s };
        let t = tree(&s);
        let routes = crate::topology::graph::Routes::new(t.eps.graph().unwrap());
        let same = |m: &Move| {
            let (at, mut op) = steer(m);
            let (a, b) = (t.rack_of(op.from), t.rack_of(op.to));
            let way = std::iter::once(routes.switch_of(a)).chain(routes.way(a, b).iter().map(|h| h.to)).collect();
            op.list = op.list.map(|_| List(way));
            (at, op)
        };
        let moves: Vec<(u64, Steer)> = moves.iter().map(same).collect();
        let (a, b) = (run(&s, &t, &moves), run(&s, &t, &[]));
        let (mut f, mut g) = (a.3, b.3);
        prop_assert_eq!((a.0, f.delivered(), f.observe(Time(NEVER)).unwrap()), (b.0, g.delivered(), g.observe(Time(NEVER)).unwrap()));
    }
}

#[test]
fn what_no_flow_can_take_is_refused_and_changes_nothing() {
    let s = Script {
        flows: vec![],
        gaps: vec![],
        circuits: vec![],
        admit_all: false,
        uplink: 100,
        network: Network::default(),
        resolution: Span::ZERO,
        pods: 4,
    };
    let t = tree(&s);
    let mut f = SimFabric::new(t, SimSettings::default());
    let op = |from, to, list: &[u32]| Steer {
        from: HostId(from),
        to: HostId(to),
        ports: None,
        list: Some(List(list.to_vec())),
    };
    let results = f.steer(
        &[op(0, 7, &[0, 4, 3]), op(0, 7, &[0, 4, 2]), op(3, 3, &[]), op(0, 99, &[0])],
        Time(5),
    );
    let said: Vec<String> = results
        .iter()
        .map(|r| r.outcome.as_ref().map_or_else(ToString::to_string, |at| format!("at {}", at.0)))
        .collect();
    let wrong = [
        "the last switch of the list is leaf2",
        "h1-1 reaches itself over no switch",
        "there is no host 99",
    ];
    assert!(
        said[0] == "at 5" && said[1..].iter().zip(wrong).all(|(s, w)| s.starts_with(w)),
        "{said:?}"
    );
    assert_eq!(f.steered().of(HostId(0), HostId(7)), Some(&List(vec![0, 4, 3])));
    let mut flat = SimFabric::new(topology(2, 1, 100), SimSettings::default());
    let refused = flat.steer(&[op(0, 1, &[0])], Time(0))[0].outcome.clone().unwrap_err();
    assert_eq!(
        refused.to_string(),
        "this fabric has no lists of switches: its packet network is one switch"
    );
}
