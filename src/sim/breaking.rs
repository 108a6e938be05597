//! Laws while things break and coflows are cancelled, and the effect of each fault.

mod conserving;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::faults::{BrokenPart, PortFault, Side, Which};
use super::*;
use crate::circuits::timetable::Reservation;
use crate::coflows::FlowSpec;
use crate::coflows::network::NetworkKind::{
    Aalo, FairPerCoflow, Fifo, MaxMin, Priority, Sincronia, Sunflow, Varys,
};
use crate::coflows::network::Within;
use crate::ids::HostId;
use crate::topology::{Plane, PortQueues, StopMode};
use crate::units::{BitRate, Bytes};

const MS: u64 = 1_000_000;
const NEVER: u64 = 1 << 50;

fn topology() -> Arc<Topology> {
    queued(false)
}

/// Ports to the EPS may have a queue for each rack.
fn queued(queues: bool) -> Arc<Topology> {
    let plane = Plane {
        id: PlaneId(0),
        rate: BitRate::mbit(1000),
        delta: Span::millis(10),
        stop: StopMode::NotAllStop,
        duplex: false,
    };
    let mut t = Topology::uniform("t", 4, 2, BitRate::mbit(1000), BitRate::mbit(100), vec![plane]);
    t.eps.queues = if queues { PortQueues::Racks } else { PortQueues::One };
    Arc::new(t)
}

fn coflow(id: usize, flows: &[(u32, u32, u64)]) -> CoflowSpec {
    let flows = flows
        .iter()
        .map(|&(a, b, n)| FlowSpec { from: HostId(a), to: HostId(b), bytes: Bytes(n) })
        .collect();
    CoflowSpec::new(CoflowId::from(id), "", Time::ZERO, flows)
}

fn circuit(i: u32, j: u32, setup: u64, until: u64) -> Op {
    let (setup_at, up_from, until) = (Time(setup * MS), Time((setup + 10) * MS), Time(until * MS));
    Op::Reserve(Reservation {
        plane: PlaneId(0),
        input: RackId(i),
        output: RackId(j),
        setup_at,
        up_from,
        until,
    })
}

#[derive(Clone, Debug)]
enum FaultEvent {
    Arrive(usize),
    Cancel(usize),
    Strike(BrokenPart, bool),
}

#[derive(Clone, Debug)]
struct FaultScript {
    coflows: Vec<CoflowSpec>,
    events: Vec<(u64, FaultEvent)>,
    cancelled: BTreeSet<usize>,
    kind: NetworkKind,
    within: Within,
    circuits: bool,
    queues: bool,
}

fn broken() -> impl Strategy<Value = BrokenPart> {
    let which = prop_oneof![
        (0u32..8).prop_map(|h| Which::Nic(HostId(h))),
        (0u32..4).prop_map(|r| Which::Uplink(RackId(r))),
        (0u32..4).prop_map(|r| Which::Tor(RackId(r))),
        Just(Which::Eps),
    ];
    let how = prop::sample::select(vec![
        PortFault::Stuck,
        PortFault::Dark,
        PortFault::Slow(Span::millis(7)),
        PortFault::Deaf,
    ]);
    let port = (any::<bool>(), 0u32..4, how).prop_map(|(input, r, how)| {
        let side = if input || matches!(how, PortFault::Slow(_) | PortFault::Deaf) {
            Side::Input
        } else {
            Side::Output
        };
        BrokenPart::Port { plane: PlaneId(0), side, rack: RackId(r), how }
    });
    let links = (which, prop::sample::select(vec![0u32, 0, 50]))
        .prop_map(|(which, percent)| BrokenPart::Links { which, percent });
    prop_oneof![2 => links, 1 => port]
}

fn script() -> impl Strategy<Value = FaultScript> {
    let flows = prop::collection::vec((0u32..8, 0u32..8, 0u64..2_000_000), 0..6);
    let coflows = prop::collection::vec((0u64..200, flows, prop::option::of(0u64..150)), 1..6);
    let faults = prop::collection::vec((0u64..200, 1u64..150, broken()), 0..5);
    let kind = prop::sample::select(NetworkKind::ALL.to_vec());
    let within = prop::sample::select(vec![Within::Greedy, Within::Sums]);
    (coflows, faults, (kind, within), any::<bool>(), any::<bool>()).prop_map(
        |(list, faults, (kind, within), circuits, queues)| {
            let (mut events, mut cancelled) = (Vec::new(), BTreeSet::new());
            for (k, (at, _, gone)) in list.iter().enumerate() {
                events.push((at * MS, FaultEvent::Arrive(k)));
                if let Some(after) = gone {
                    events.push(((at + after) * MS, FaultEvent::Cancel(k)));
                    cancelled.insert(k);
                }
            }
            for (at, long, b) in faults {
                events.extend([
                    (at * MS, FaultEvent::Strike(b, true)),
                    ((at + long) * MS, FaultEvent::Strike(b, false)),
                ]);
            }
            events.sort_by_key(|e| e.0);
            let coflows = list.iter().enumerate().map(|(k, c)| coflow(k, &c.1)).collect();
            FaultScript {
                coflows,
                events,
                cancelled,
                kind,
                within,
                circuits: circuits && kind != Sunflow,
                queues,
            }
        },
    )
}

type FaultOutcome = (Vec<FlowFinished>, BTreeMap<CoflowId, CoflowReceipt>, Observation);

/// Plays a script, looks at the network every `step`, and checks the laws at every look.
fn play(s: &FaultScript, step: u64, may_fail: bool) -> Result<FaultOutcome, TestCaseError> {
    let t = queued(s.queues);
    let network = Network { kind: s.kind, within: s.within, ..Network::default() };
    let mut f = SimFabric::new(
        t.clone(),
        SimSettings {
            admit: Admit::All,
            circuits: s.circuits,
            network,
            may_fail,
            ..SimSettings::default()
        },
    );
    if s.circuits {
        f.apply(&[circuit(0, 1, 0, 90), circuit(1, 2, 20, 200), circuit(0, 3, 90, 300)], Time(0));
    }
    let (mut done, mut events, mut last) =
        (Vec::new(), s.events.iter().peekable(), f.observe(Time(0)).unwrap());
    let (mut eps_down, mut dark): (usize, bool) = (0, false);
    for k in 1..=400 * MS / step {
        let look = k * step;
        while let Some((at, e)) = events.next_if(|e| e.0 < look) {
            match e {
                FaultEvent::Arrive(c) => f.add_flows(&s.coflows[*c], &[], Time(*at)),
                FaultEvent::Cancel(c) => f.cancel(CoflowId::from(*c), Time(*at)),
                FaultEvent::Strike(b, begins) => {
                    f.strike(b, *begins, Time(*at));
                    if matches!(b, BrokenPart::Links { which: Which::Eps, percent: 0 }) {
                        eps_down = if *begins { eps_down + 1 } else { eps_down - 1 };
                        dark = false;
                    }
                }
            }
        }
        done.extend(f.advance(Time(look)));
        let seen = f.observe(Time(look)).unwrap();
        let (sent, ocs) =
            (seen.sent.since(&last.sent).total(), seen.over_ocs.since(&last.over_ocs).total());
        prop_assert!(!dark || sent.abs_diff(ocs) <= 16, "nothing crosses an EPS that is down");
        prop_assert!(ocs <= 4 * (125 * step / 1000) + 16);
        // The next look is dark if nothing changes before it.
        dark = eps_down > 0;
        last = seen;
    }
    done.extend(f.advance(Time(NEVER)));
    done.sort();
    let last = f.observe(Time(NEVER)).unwrap();
    Ok((done, f.delivered(), last))
}

proptest! {
    #![proptest_config(crate::testing::drawn(160))]

    #[test]
    fn bytes_are_conserved_while_things_break_and_coflows_are_taken_back(s in script()) {
        let (done, delivered, last) = play(&s, 5 * MS, true)?;
        let mut between = 0;
        for (k, c) in s.coflows.iter().enumerate() {
            let mine = done.iter().filter(|d| d.coflow == c.id).count();
            let d = delivered.get(&c.id).copied().unwrap_or_default();
            between += d.between_racks.0;
            prop_assert!(d.over_ocs <= d.between_racks && d.between_racks <= d.bytes && d.bytes <= c.bytes());
            prop_assert!(mine == c.flows.len() || s.cancelled.contains(&k), "all is well in the end");
            prop_assert!((mine == c.flows.len()) == (d.bytes == c.bytes()) || s.cancelled.contains(&k));
        }
        prop_assert!(last.sent.total().abs_diff(between) <= 16 + s.coflows.len() as u64);
        prop_assert_eq!(last.backlog.total(), 0, "nothing is left behind");
    }

    #[test]
    fn looking_changes_nothing_while_things_break(s in script()) {
        prop_assert_eq!(play(&s, 4 * MS, true)?, play(&s, 100 * MS, true)?);
    }

    #[test]
    fn a_network_that_may_fail_and_does_not_is_the_same(s in script()) {
        let events = s.events.iter().filter(|e| !matches!(e.1, FaultEvent::Strike(..))).cloned().collect();
        let s = FaultScript { events, queues: false, ..s };
        prop_assert_eq!(play(&s, 50 * MS, true)?, play(&s, 50 * MS, false)?);
    }
}

#[test]
fn a_flow_stands_still_while_its_link_is_down_and_a_cancelled_one_makes_room() {
    let t = topology();
    for kind in [MaxMin, Fifo, Varys] {
        let network = Network { kind, ..Network::default() };
        let mut f = SimFabric::new(
            t.clone(),
            SimSettings { circuits: false, network, may_fail: true, ..SimSettings::default() },
        );
        let alone = t.payload(BitRate::mbit(100)).time_for(Bytes(1_000_000)).0;
        let down = BrokenPart::Links { which: Which::Uplink(RackId(1)), percent: 0 };
        f.add_flows(&coflow(0, &[(0, 2, 1_000_000)]), &[], Time(0));
        f.strike(&down, true, Time(10 * MS));
        assert!(!f.is_moving(), "{kind:?}");
        f.strike(&down, false, Time(35 * MS));
        assert_eq!(f.advance(Time(NEVER))[0].at, Time(alone + 25 * MS), "{kind:?}");
        f.add_flows(&coflow(1, &[(0, 2, 1_000_000)]), &[], Time(NEVER));
        f.cancel(CoflowId(1), Time(NEVER + 5 * MS));
        let sent = f.delivered()[&CoflowId(1)].bytes;
        assert_eq!(
            (sent, f.next_event()),
            (t.payload(BitRate::mbit(100)).bytes_in(Span::millis(5)), None),
            "{kind:?}"
        );
    }
}

#[test]
fn a_port_that_is_broken_gives_no_light_where_it_was_asked_to() {
    let port =
        |side, rack, how| BrokenPart::Port { plane: PlaneId(0), side, rack: RackId(rack), how };
    let look = |b: BrokenPart, begins_ms: u64, at_ms: u64| {
        let mut f = SimFabric::new(topology(), SimSettings::default());
        f.advance(Time(begins_ms.min(1) * MS));
        f.apply(&[circuit(0, 1, 5, 50), circuit(0, 2, 50, 100)], Time(MS));
        f.strike(&b, true, Time(begins_ms * MS));
        f.advance(Time(at_ms * MS));
        f.comes_out(PlaneId(0), RackId(0)).map(|r| r.0)
    };
    let stuck = port(Side::Input, 0, PortFault::Stuck);
    assert_eq!(
        [look(stuck, 2, 20), look(stuck, 30, 40), look(stuck, 30, 70)],
        [None, Some(1), Some(1)]
    );
    let output = port(Side::Output, 2, PortFault::Stuck);
    assert_eq!([look(output, 30, 40), look(output, 30, 70)], [Some(1), None]);
    let dark = port(Side::Output, 2, PortFault::Dark);
    assert_eq!([look(dark, 2, 20), look(dark, 2, 70)], [Some(1), None]);
    let slow = port(Side::Input, 0, PortFault::Slow(Span::millis(20)));
    assert_eq!(
        [look(slow, 2, 34), look(slow, 2, 35), look(slow, 2, 79), look(slow, 2, 80)],
        [None, Some(1), None, Some(2)]
    );
    let mut f = SimFabric::new(topology(), SimSettings::default());
    f.strike(&port(Side::Input, 0, PortFault::Deaf), true, Time(0));
    let ops = [circuit(0, 1, 5, 50), circuit(3, 2, 5, 50)];
    assert!(f.apply(&ops, Time(0)).iter().all(|r| r.outcome.is_ok()), "it hears that all is well");
    let seen = f.observe(Time(MS)).unwrap().programmed.timetable;
    assert_eq!(seen.iter().map(|r| r.input.0).collect::<Vec<_>>(), [3]);
}
