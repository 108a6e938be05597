//! Sunflow in time against plans to the end, and its laws.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use crate::circuits::sunflow::Order;
use crate::circuits::sunflow::need::LightNeed;
use crate::circuits::sunflow::window::{HeldCircuit, plan};
use crate::coflows::network::{Guard, Network, NetworkKind};
use crate::coflows::{CoflowSpec, FlowSpec, bounds};
use crate::fabric::Fabric;
use crate::ids::{CoflowId, HostId, PlaneId};
use crate::topology::{Framing, Plane, StopMode, Topology};
use crate::units::{BitRate, Bytes, Span, Time};
use crate::{SimFabric, SimSettings};

const RACKS: usize = 5;

/// Racks of one host; a byte takes a microsecond.
fn topology(delta: u64) -> Arc<Topology> {
    let rate = BitRate::mbit(8);
    let plane = Plane {
        id: PlaneId(0),
        rate,
        delta: Span(delta),
        stop: StopMode::NotAllStop,
        duplex: false,
    };
    let mut t = Topology::uniform("t", RACKS, 1, rate, BitRate::ZERO, vec![plane]);
    t.framing = Framing::None;
    Arc::new(t)
}

fn fabric(t: &Arc<Topology>, order: Order, starvation: Option<Guard>) -> SimFabric {
    let network = Network { kind: NetworkKind::Sunflow, order, starvation, ..Network::default() };
    SimFabric::new(t.clone(), SimSettings { circuits: false, network, ..SimSettings::default() })
}

fn coflow(id: usize, arrival: u64, flows: &[(u32, u32, u64)]) -> CoflowSpec {
    let flows = flows
        .iter()
        .map(|&(a, b, n)| FlowSpec { from: HostId(a), to: HostId(b), bytes: Bytes(n) })
        .collect();
    CoflowSpec {
        weight: 1 + id as u32 % 3,
        ..CoflowSpec::new(CoflowId::from(id), "", Time(arrival), flows)
    }
}

/// By coflow: when it ends if every plan is made to the end and thrown away when a coflow comes or
/// ends.
fn twin(t: &Topology, order: Order, coflows: &[CoflowSpec]) -> Vec<Time> {
    let plane = &t.planes[0];
    let mut ends: Vec<Time> = coflows.iter().map(|c| c.arrival).collect();
    let mut active: Vec<(usize, LightNeed, u64)> = Vec::new();
    let (mut now, mut held) = (Time::ZERO, Vec::<HeldCircuit>::new());
    // The end of a coflow that needs no circuit is no event.
    let mut coming = (0..coflows.len()).filter(|&k| coflows[k].matrix(t).total() > 0).peekable();
    loop {
        while let Some(k) = coming.next_if(|&k| coflows[k].arrival <= now) {
            let cells: Vec<_> =
                coflows[k].matrix(t).entries().map(|(i, j, b)| (i.0, j.0, 1000 * b)).collect();
            active.push((k, LightNeed::new(RACKS, &cells), 0));
        }
        active.retain(|a| a.1.pending() > 0);
        active.sort_by_key(|a| {
            (
                order.key(
                    &|d| a.1.bound(d),
                    plane.delta,
                    a.2 / 1000,
                    coflows[a.0].arrival,
                    coflows[a.0].weight,
                ),
                a.0,
            )
        });
        let needs: Vec<&LightNeed> = active.iter().map(|a| &a.1).collect();
        let window = plan(&needs, plane.delta, &held, now, Span::MAX);
        let first = if active.is_empty() { Time::MAX } else { window.horizon };
        let then = coming.peek().map_or(first, |&k| coflows[k].arrival.min(first));
        if then == Time::MAX {
            return ends;
        }
        let standing = window.circuits.iter().filter(|c| c.from < then && c.until >= then);
        held = standing
            .map(|c| HeldCircuit {
                ports: active[c.place].1.pair(c.pair),
                ready: c.up_from,
                owner: 0,
            })
            .collect();
        for c in window.circuits.iter().filter(|c| c.from < then) {
            let light = c.until.min(then).since(c.up_from).0;
            active[c.place].1.use_light(c.pair, light);
            active[c.place].2 += light;
            if active[c.place].1.pending() == 0 {
                ends[active[c.place].0] = then;
            }
        }
        now = then;
    }
}

fn coflows() -> impl Strategy<Value = Vec<CoflowSpec>> {
    let flow = (0u32..5, 0u32..5, 1u64..300);
    // A byte takes a microsecond: coflows come when others end, too.
    let gap = prop_oneof![1 => (0u64..400).prop_map(|us| us * 1000), 1 => 0u64..400_000];
    prop::collection::vec((gap, prop::collection::vec(flow, 0..12)), 1..8).prop_map(|list| {
        let mut at = 0;
        let mut all = Vec::new();
        for (k, (gap, flows)) in list.into_iter().enumerate() {
            at += gap;
            all.push(coflow(k, at, &flows));
        }
        all
    })
}

fn dark_time() -> impl Strategy<Value = u64> {
    prop_oneof![1 => (0u64..90).prop_map(|us| us * 1000), 1 => 0u64..90_000]
}

fn order() -> impl Strategy<Value = Order> {
    prop::sample::select(vec![
        Order::Shortest,
        Order::Sebf,
        Order::Fifo,
        Order::Las,
        Order::Weighted,
    ])
}

/// When each coflow ends, looked at every `step`.
fn run(
    t: &Arc<Topology>,
    order: Order,
    coflows: &[CoflowSpec],
    step: Option<u64>,
) -> Result<(Vec<Time>, SimFabric), TestCaseError> {
    guarded(t, (order, None), coflows, step)
}

/// The same with a guard against starvation.
fn guarded(
    t: &Arc<Topology>,
    (order, guard): (Order, Option<Guard>),
    coflows: &[CoflowSpec],
    step: Option<u64>,
) -> Result<(Vec<Time>, SimFabric), TestCaseError> {
    let mut f = fabric(t, order, guard);
    let mut ends: Vec<Time> = coflows.iter().map(|c| c.arrival).collect();
    let mut left: BTreeMap<CoflowId, usize> =
        coflows.iter().map(|c| (c.id, c.flows.len())).collect();
    let mut last = f.observe(Time::ZERO).unwrap();
    let mut done = Vec::new();
    for c in coflows {
        f.add_flows(c, &[], c.arrival);
    }
    for k in 1..400 {
        done.extend(f.advance(
            step.map_or(Time(1 << 40), |s| Time(coflows.last().unwrap().arrival.0 + k * s)),
        ));
        let seen = f.observe(Time::ZERO).unwrap();
        let most = (seen.at.since(last.at).0 / 1000) + 1;
        for (a, b) in seen.ports[0].iter().zip(&last.ports[0]) {
            prop_assert!(a.crossed_bytes - b.crossed_bytes <= most);
        }
        last = seen;
    }
    done.extend(f.advance(Time(1 << 40)));
    for d in done {
        ends[d.coflow.index()] = ends[d.coflow.index()].max(d.at);
        *left.get_mut(&d.coflow).unwrap() -= 1;
    }
    prop_assert!(left.values().all(|&n| n == 0), "every flow ends once");
    Ok((ends, f))
}

proptest! {
    #![proptest_config(crate::testing::drawn(200))]

    #[test]
    fn coflows_end_as_in_plans_to_the_end(all in coflows(), order in order(), delta in dark_time(), step in 1_000u64..90_000) {
        let t = topology(delta);
        let (ends, mut f) = run(&t, order, &all, Some(step))?;
        prop_assert_eq!(&ends, &twin(&t, order, &all));
        prop_assert_eq!(&ends, &run(&t, order, &all, None)?.0, "looking changes nothing");
        let d = f.delivered();
        for (c, end) in all.iter().zip(&ends).filter(|(c, _)| !c.flows.is_empty()) {
            prop_assert_eq!(d[&c.id].bytes, c.bytes());
            prop_assert_eq!(d[&c.id].over_ocs, d[&c.id].between_racks);
            prop_assert_eq!(d[&c.id].over_ocs.0, c.matrix(&t).total());
            // Another's circuit may be gone on with, so dark time is not sure.
            prop_assert!(end.since(c.arrival) >= bounds::circuit(&c.matrix(&t), BitRate::mbit(8), Span::ZERO));
        }
    }

    #[test]
    fn with_a_guard_all_coflows_get_through_and_looking_changes_nothing(
        all in coflows(), order in order(), delta in dark_time(), step in 1_000u64..90_000, every in 1u64..400_000, share in 1u64..200_000,
    ) {
        // A window and a round that are both shorter than a circuit's dark time carry nothing.
        let (t, guard) = (topology(delta), Some(Guard { every: Span(every + delta), share: Span(share + delta) }));
        let (ends, mut f) = guarded(&t, (order, guard), &all, Some(step))?;
        prop_assert_eq!(&ends, &guarded(&t, (order, guard), &all, None)?.0);
        let d = f.delivered();
        for (c, end) in all.iter().zip(&ends).filter(|(c, _)| !c.flows.is_empty()) {
            prop_assert_eq!((d[&c.id].bytes, d[&c.id].over_ocs.0), (c.bytes(), c.matrix(&t).total()));
            prop_assert!(end.since(c.arrival) >= bounds::circuit(&c.matrix(&t), BitRate::mbit(8), Span::ZERO));
        }
    }

    #[test]
    fn one_coflow_alone_takes_at_most_twice_its_bound(c in coflows(), delta in dark_time()) {
        let (t, c) = (topology(delta), CoflowSpec { arrival: Time::ZERO, id: CoflowId(0), ..c[0].clone() });
        let end = run(&t, Order::Shortest, std::slice::from_ref(&c), None)?.0[0].since(Time::ZERO);
        let bound = bounds::circuit(&c.matrix(&t), BitRate::mbit(8), Span(delta));
        prop_assert!(bound <= end && end <= bound * 2);
    }
}

#[test]
fn a_shorter_coflow_takes_its_ports_and_a_circuit_that_goes_on_does_not_blink() {
    // 100 us of light and 10 us in the dark; the second one comes at 50 us and needs another
    // output.
    let t = topology(10_000);
    let (long, short) =
        (coflow(0, 0, &[(0, 1, 100), (2, 3, 100)]), coflow(1, 50_000, &[(0, 2, 20)]));
    let ends = run(&t, Order::Shortest, &[long, short], None).unwrap().0;
    // Its circuit lies dark until 60 and shines until 80; then the first goes on after 10 more in
    // the dark, with 60 left.
    assert_eq!(ends, [Time(150_000), Time(80_000)]);
    // A second coflow over the same circuit: no dark time at all.
    let ends = run(
        &t,
        Order::Fifo,
        &[coflow(0, 0, &[(0, 1, 100)]), coflow(1, 50_000, &[(0, 1, 20)])],
        None,
    )
    .unwrap()
    .0;
    assert_eq!(ends, [Time(110_000), Time(130_000)]);
}

#[test]
fn a_guard_joins_fixed_pairs_for_a_share_of_the_time() {
    // From 100 us on a round of 50: the first assignment joins 0 to 1, which goes on, and both
    // coflows have half of it.
    let (t, guard) = (topology(10_000), Some(Guard { every: Span(100_000), share: Span(50_000) }));
    let pair = [coflow(0, 0, &[(0, 1, 200)]), coflow(1, 0, &[(0, 1, 300)])];
    let ends = guarded(&t, (Order::Fifo, guard), &pair, None).unwrap().0;
    // The first has 90 and 25 by 150, and goes on; the other three rounds join 0 to others.
    assert_eq!(ends[0], Time(235_000));
    // The second has 25 and 15 by 250, 90 in each of the two windows after that, and the last 80
    // from 610 on.
    assert_eq!(ends[1], Time(690_000));
}

#[test]
fn a_guard_ends_what_the_shortest_first_would_let_wait() {
    // 300 bytes to a rack, and 90 to another one each time those before are through, 300 times: the
    // sender's port is never free.
    let t = topology(10_000);
    let small = (1..300).map(|k| coflow(k, 90_000 * (k as u64 - 1), &[(0, 2, 90)]));
    let all: Vec<CoflowSpec> = std::iter::once(coflow(0, 0, &[(0, 1, 300)])).chain(small).collect();
    let waits = run(&t, Order::Shortest, &all, None).unwrap().0;
    assert_eq!(waits[0], *waits.iter().max().unwrap(), "the last of all");
    let guard = Some(Guard { every: Span(200_000), share: Span(100_000) });
    let ends = guarded(&t, (Order::Shortest, guard), &all, None).unwrap().0;
    // Every fourth round joins the two racks: 90 us of light each 1,200 us. After the third, at
    // 2,700, it is the shortest, with 30 left.
    assert_eq!(ends[0], Time(2_730_000));
    assert!(waits[0] > Time(27_000_000));
}

#[test]
fn flows_within_a_rack_and_a_host_take_no_circuit() {
    let rate = BitRate::mbit(8);
    let plane = Plane {
        id: PlaneId(0),
        rate,
        delta: Span(10_000),
        stop: StopMode::NotAllStop,
        duplex: false,
    };
    let mut t = Topology::uniform("t", 2, 2, rate, BitRate::ZERO, vec![plane]);
    t.framing = Framing::None;
    let mut f = fabric(&Arc::new(t), Order::Shortest, None);
    f.add_flows(&coflow(0, 0, &[(0, 0, 5), (0, 1, 30), (1, 2, 30), (0, 3, 0)]), &[], Time(0));
    let ends: Vec<_> = f.advance(Time(1 << 40)).iter().map(|d| (d.flow.0, d.at.0)).collect();
    assert_eq!(ends, [(0, 0), (3, 0), (1, 30_000), (2, 40_000)]);
    assert_eq!((f.delivered()[&CoflowId(0)].bytes, f.next_event()), (Bytes(65), None));
}
