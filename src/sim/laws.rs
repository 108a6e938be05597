//! The laws that the model must keep, whatever happens in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::circuits::timetable::Reservation;
use crate::coflows::network::NetworkKind::{
    Aalo, FairPerCoflow, Fifo, MaxMin, Priority, Sincronia, Sunflow, Varys,
};
use crate::coflows::network::{Decide, Guard, NetworkKind, Within};
use crate::coflows::orders::{self, Sharing};
use crate::coflows::priority::{LAST, PLAIN, Priorities, WITHIN_RACK};
use crate::coflows::rates::{self, Demand, FreeCapacity, HostGroup, Rates};
use crate::coflows::{FlowSpec, bounds};
use crate::fabric::SEND_BUFFER;
use crate::ids::HostId;
use crate::topology::graph::Graph;
use crate::topology::links::LinkSpec;
use crate::topology::{Core, Plane, PortQueues, StopMode};
use crate::units::{BitRate, Bytes, Span};

mod capacity;
mod max_min;
mod priorities;
mod reach;
mod steered;

use capacity::within_capacity;

fn topology(racks: usize, hosts: usize, uplink: u64) -> Arc<Topology> {
    let plane = Plane {
        id: PlaneId(0),
        rate: BitRate::mbit(1000),
        delta: Span::millis(10),
        stop: StopMode::NotAllStop,
        duplex: false,
    };
    Arc::new(Topology::uniform(
        "t",
        racks,
        hosts,
        BitRate::mbit(1000),
        BitRate::mbit(uplink),
        vec![plane],
    ))
}

/// The network of a script: with pods, half of the core is taken by others.
fn tree(s: &Script) -> Arc<Topology> {
    let mut t = (*topology(4, 2, s.uplink)).clone();
    if s.pods == 4 {
        let mut graph = Graph::leaf_spine(4, 2, BitRate::mbit(s.uplink.max(1)), None);
        graph.switches[4].rate = Some(BitRate::mbit(s.uplink + s.uplink / 2));
        (t.eps.core, t.eps.background_percent) = (Core::Graph(Box::new(graph)), 50);
    } else if s.pods > 0 {
        let uplink = BitRate::mbit(s.uplink * u64::from(s.pods) / 2);
        let pods = crate::topology::Pods { racks: s.pods, uplink };
        (t.eps.core, t.eps.background_percent) =
            (Core::Pods(pods, Some(BitRate::mbit(s.uplink))), 50);
    }
    Arc::new(t)
}

/// The same; ports to the EPS may have a queue for each rack.
fn queued(s: &Script, queues: bool) -> Arc<Topology> {
    let mut t = (*tree(s)).clone();
    t.eps.queues = if queues { PortQueues::Racks } else { PortQueues::One };
    Arc::new(t)
}

fn coflow(id: u32, arrival: u64, flows: &[(u32, u32, u64)]) -> CoflowSpec {
    let flows: Vec<_> = flows
        .iter()
        .map(|&(a, b, n)| FlowSpec { from: HostId(a), to: HostId(b), bytes: Bytes(n) })
        .collect();
    let own = |f: &FlowSpec| Some((f.bytes.0 % 16) as u8).filter(|p| *p <= LAST);
    let priorities = Priorities {
        all: Some((id % 10) as u8).filter(|p| *p <= LAST),
        flows: flows.iter().map(own).collect(),
    };
    CoflowSpec {
        id: CoflowId(id),
        name: String::new(),
        arrival: Time(arrival),
        weight: 1 + id % 3,
        types: Default::default(),
        priorities,
        flows: flows.into(),
    }
}

fn circuit(i: u32, j: u32, setup: u64, until: u64) -> Op {
    let up_from = Time(setup + 10_000_000);
    Op::Reserve(Reservation {
        plane: PlaneId(0),
        input: RackId(i),
        output: RackId(j),
        setup_at: Time(setup),
        up_from,
        until: Time(until),
    })
}

/// Payload time at `mbit`, rounded up.
fn time(mbit: u64, bytes: u64) -> u64 {
    bounds::payload_rate(BitRate::mbit(mbit)).time_for(Bytes(bytes)).0
}

#[test]
fn a_flow_ends_the_delay_of_its_way_later_and_shares_links_as_before() {
    // Host 0 and 1 at rack 0, 2 and 3 at rack 1, of a graph of two leaves and one spine.
    let mut t = (*topology(2, 2, 1000)).clone();
    t.eps.core = Core::Graph(Box::new(Graph::leaf_spine(2, 1, BitRate::mbit(1000), None)));
    let flows = [(0, 2, 1_000_000), (0, 1, 500_000), (3, 0, 800_000), (1, 1, 5), (1, 3, 0)];
    let ends = |t: &Topology, kind| {
        let settings = SimSettings {
            network: Network { kind, ..Network::default() },
            ..SimSettings::default()
        };
        let mut f = SimFabric::new(Arc::new(t.clone()), settings);
        f.add_flows(&coflow(7, 0, &flows), &[false; 5], Time(0));
        let (mut all, mut now) = (vec![], Time(0));
        while let Some(next) = f.next_event() {
            all.extend(
                f.advance(next).into_iter().inspect(|d| assert!(now <= d.at && d.at <= next)),
            );
            now = next;
        }
        all.extend(f.advance(now));
        assert!(!f.is_moving());
        all.sort_by_key(|d| d.flow);
        all.iter().map(|d| d.at.0).collect::<Vec<_>>()
    };
    let mut slow = t.clone();
    (slow.links.nic.delay, slow.links.uplink.delay) = (Span(7), Span(100));
    slow.links.cables = [Span(9_000_000); 4].map(|delay| LinkSpec { delay, ..LinkSpec::default() });
    let (within, between) = (14, 14 + 200 + 18_000_000);
    for kind in [MaxMin, Varys, Fifo] {
        let later: Vec<u64> =
            ends(&slow, kind).into_iter().zip(ends(&t, kind)).map(|(a, b)| a - b).collect();
        assert_eq!(later, [between, within, between, 0, 0], "{kind:?}");
    }
}

#[test]
fn what_is_taken_back_on_its_way_never_arrives() {
    let mut t = (*topology(2, 1, 1000)).clone();
    t.links.uplink.delay = Span::secs(1);
    let mut f = SimFabric::new(Arc::new(t), SimSettings::default());
    f.add_flows(&coflow(0, 0, &[(0, 1, 1_000)]), &[false], Time(0));
    assert_eq!((f.advance(Time(1_000_000_000)), f.is_moving()), (vec![], true));
    f.cancel(CoflowId(0), Time(1_000_000_001));
    assert_eq!((f.next_event(), f.advance(Time(9_000_000_000))), (None, vec![]));
}

#[test]
fn an_elephant_that_must_wait_takes_nothing_but_its_circuit() {
    // Two elephants and a mouse; a circuit for one pair after 50 ms.
    for kind in [MaxMin, Varys] {
        let network = Network { kind, ..Network::default() };
        let settings = SimSettings { admit: Admit::Wait, network, ..SimSettings::default() };
        let mut f = SimFabric::new(topology(3, 1, 1000), settings);
        f.add_flows(
            &coflow(0, 0, &[(0, 1, 1_000_000), (0, 2, 1_000_000), (1, 2, 1_000)]),
            &[true, true, false],
            Time(0),
        );
        f.apply(&[circuit(0, 1, 40_000_000, 90_000_000)], Time(0));
        let done = f.advance(Time(100_000_000));
        let ends: Vec<(usize, u64)> = done.iter().map(|d| (d.flow.index(), d.at.0)).collect();
        assert_eq!(
            ends,
            [(2, time(1000, 1_000)), (0, 50_000_000 + time(1000, 1_000_000))],
            "{kind:?}"
        );
        let seen = f.observe(Time(100_000_000)).unwrap();
        assert_eq!(
            (seen.sent.get(RackId(0), RackId(2)), f.is_moving()),
            (0, false),
            "{kind:?}: the other waits"
        );
    }
}

#[test]
fn strict_priorities_by_flow() {
    // Over the interface of the first host, 1 MB each: what stays in the rack, 6 of one coflow, 5
    // of another that has 0 for one flow.
    let t = topology(4, 2, 1000);
    let network = Network { kind: Priority, ..Network::default() };
    let mut f =
        SimFabric::new(t, SimSettings { circuits: false, network, ..SimSettings::default() });
    let spec = |id, all, flows: Vec<Option<u8>>, hosts: &[u32]| {
        let list: Vec<_> = hosts.iter().map(|&to| (0, to, 1_000_000)).collect();
        CoflowSpec { priorities: Priorities { all, flows }, ..coflow(id, 0, &list) }
    };
    f.add_flows(&spec(0, None, vec![], &[1]), &[], Time(0));
    f.add_flows(&spec(1, Some(6), vec![], &[2]), &[], Time(0));
    f.add_flows(&spec(2, Some(5), vec![None, Some(0)], &[3, 4]), &[], Time(0));
    f.add_flows(&spec(3, None, vec![], &[6]), &[], Time(0));
    let order: Vec<_> =
        f.advance(Time(NEVER)).iter().map(|d| (d.coflow.0, d.flow.0, d.at.0)).collect();
    let end = |n: u64| time(1000, n * 1_000_000);
    let want = [(2, 1, end(1)), (3, 0, end(2)), (2, 0, end(3)), (1, 0, end(4)), (0, 0, end(5))];
    assert_eq!(
        order, want,
        "0, then {PLAIN} of which nothing is said, 5, 6, and last what stays in its rack"
    );
}

#[test]
fn one_flow_over_the_eps_takes_its_bound_and_two_share() {
    let t = topology(3, 2, 100);
    let mut f = SimFabric::new(t.clone(), SimSettings::default());
    let c = coflow(0, 0, &[(0, 2, 1_000_000), (1, 3, 1_000_000), (4, 4, 9), (0, 1, 1_000_000)]);
    f.add_flows(&c, &[true; 4], Time(0));
    let done: Vec<_> = f.advance(Time(NEVER)).iter().map(|d| (d.flow.0, d.at.0)).collect();
    // The local flow has what the EPS leaves it of the NIC: 1000 - 50.
    let rate = bounds::payload_rate(BitRate::mbit(1000)).0
        - bounds::payload_rate(BitRate::mbit(100)).0 / 2;
    assert_eq!(
        done,
        [
            (2, 0),
            (3, BitRate(rate).time_for(Bytes(1_000_000)).0),
            (0, time(100, 2_000_000)),
            (1, time(100, 2_000_000))
        ]
    );
    assert!(bounds::hybrid(&c, &t).0 < time(100, 2_000_000), "the bound counts on a circuit");
    assert_eq!((f.next_event(), f.delivered()[&CoflowId(0)].bytes), (None, Bytes(3_000_009)));
}

const NEVER: u64 = 1 << 60;

#[test]
fn a_flow_changes_over_when_light_comes_and_goes() {
    let t = topology(2, 1, 100);
    let mut f = SimFabric::new(t, SimSettings::default());
    let size = 10_000_000;
    f.add_flows(&coflow(0, 0, &[(0, 1, size)]), &[true], Time(0));
    f.add_flows(&coflow(1, 0, &[(0, 1, size)]), &[false], Time(0));
    assert!(f.apply(&[circuit(0, 1, 0, 40_000_000)], Time(0))[0].outcome.is_ok());
    assert!(!f.is_up(PlaneId(0), RackId(0), RackId(1)));
    // 10 ms at half of 100 Mb/s; then the marked flow alone on the circuit, beside 100 Mb/s of the
    // NIC for the other.
    let mb = |mbit, ns| bounds::payload_rate(BitRate::mbit(mbit)).bytes_in(Span(ns)).0;
    f.advance(Time(40_000_000));
    let seen = f.observe(Time(40_000_000)).unwrap();
    let ocs = seen.over_ocs.get(RackId(0), RackId(1));
    assert!(ocs.abs_diff(mb(900, 30_000_000)) < 3, "{ocs}");
    assert_eq!(ocs, seen.ports[0][0].crossed_bytes);
    let sent = seen.sent.get(RackId(0), RackId(1));
    assert!(sent.abs_diff(ocs + mb(100, 40_000_000)) < 3, "{sent}");
    assert_eq!(seen.backlog.get(RackId(0), RackId(1)), 2 * SEND_BUFFER.0);
    assert_eq!(seen.programmed.timetable.len(), 0, "it has ended");
    let progress = f.progress(|_| true);
    assert_eq!(progress.iter().map(|p| p.1[0].bytes.0).sum::<u64>().abs_diff(sent), 0);
    f.advance(Time(NEVER));
    let d = f.delivered();
    assert_eq!((d[&CoflowId(0)].bytes.0, d[&CoflowId(0)].over_ocs.0.abs_diff(ocs)), (size, 0));
    assert_eq!((d[&CoflowId(1)].bytes.0, d[&CoflowId(1)].over_ocs.0), (size, 0));
}

#[derive(Clone, Debug)]
struct Script {
    flows: Vec<Vec<(u32, u32, u64)>>,
    gaps: Vec<u64>,
    circuits: Vec<(u32, u32, u64, u64)>,
    admit_all: bool,
    uplink: u64,
    network: Network,
    resolution: Span,
    /// Racks in a pod, whose uplink is half as fast as its racks together; 0: one switch; 4: a
    /// graph instead.
    pods: u32,
}

impl Script {
    fn admit(&self) -> Admit {
        if self.admit_all { Admit::All } else { Admit::Marked }
    }
}

/// A span of time below `most` nanoseconds: often none, whole milliseconds, or what quarters of a
/// megabyte take, so that events fall together.
fn span(most: u64) -> impl Strategy<Value = u64> {
    prop_oneof![
        1 => Just(0),
        1 => (0..most / 1_000_000).prop_map(|ms| ms * 1_000_000),
        1 => (1u64..9).prop_map(move |k| time(1000, 250_000 * k) % most),
        3 => 0..most,
    ]
}

fn script() -> impl Strategy<Value = Script> {
    let size = prop_oneof![1 => (0u64..12).prop_map(|k| 250_000 * k), 2 => 0u64..3_000_000];
    let flow = (0u32..8, 0u32..8, size);
    let coflows = prop::collection::vec(prop::collection::vec(flow, 0..6), 1..6);
    let long = span(60_000_000).prop_map(|long| long.max(1));
    let circuits = prop::collection::vec((0u32..4, 0u32..4, span(80_000_000), long), 0..10);
    let uplink = prop::sample::select(vec![0u64, 1, 100, 1000]);
    let gaps = prop::collection::vec(span(30_000_000), 6);
    (coflows, gaps, circuits, any::<bool>(), uplink, network(), resolution(), 0u32..5).prop_map(
        |(flows, gaps, circuits, admit_all, uplink, network, resolution, pods)| Script {
            flows,
            gaps,
            circuits,
            admit_all,
            uplink,
            network,
            resolution,
            pods,
        },
    )
}

/// How coarsely ends of flows are noticed; every other time at once.
fn resolution() -> impl Strategy<Value = Span> {
    prop::sample::select(vec![0u64, 0, 0, 1, 700_000, 10_000_000]).prop_map(Span)
}

/// Every network scheduler with every setting that changes how it works.
fn network() -> impl Strategy<Value = Network> {
    let within = prop::sample::select(vec![Within::Greedy, Within::MaxMin, Within::Sums]);
    (flow_by_flow(), within).prop_map(|(network, within)| Network { within, ..network })
}

/// The same where flows of a coflow have rates of their own.
fn flow_by_flow() -> impl Strategy<Value = Network> {
    let kinds: Vec<NetworkKind> = NetworkKind::ALL.into_iter().filter(|&k| k != Sunflow).collect();
    let within = prop::sample::select(vec![Within::Greedy, Within::MaxMin]);
    let aalo = prop::sample::select(vec![Sharing::Strict, Sharing::Weighted]).prop_map(|sharing| {
        orders::Aalo { queues: 3, first: Bytes(100_000), factor: 10, sharing, interval: Span::ZERO }
    });
    let interval = prop::sample::select(vec![Span::ZERO, Span::micros(700), Span::millis(10)]);
    let decide =
        prop::sample::select(vec![Decide::FlowEnds, Decide::FlowEnds, Decide::CoflowEvents]);
    let spans = (200_000u64..20_000_000, 200_000u64..20_000_000)
        .prop_map(|(every, share)| Guard { every: Span(every), share: Span(share) });
    let guard = prop::option::of(spans);
    (prop::sample::select(kinds), within, aalo, interval, decide, guard).prop_map(
        |(kind, within, aalo, interval, decide, starvation)| Network {
            kind,
            within,
            aalo: orders::Aalo { interval, ..aalo },
            decide,
            starvation,
            ..Network::default()
        },
    )
}

/// What one run of a script tells: every finish, and the last observation.
type ScriptOutcome = (Vec<FlowFinished>, Observation, BTreeMap<CoflowId, CoflowReceipt>);

/// Runs a script, looking at the network every `step`, and checks what must hold at every look.
fn play(s: &Script, t: &Arc<Topology>, step: u64) -> Result<ScriptOutcome, TestCaseError> {
    let mut f = SimFabric::new(
        t.clone(),
        SimSettings {
            admit: s.admit(),
            network: s.network,
            resolution: s.resolution,
            ..SimSettings::default()
        },
    );
    for &(i, j, at, long) in &s.circuits {
        let refused = f.apply(&[circuit(i, j, at, at + 10_000_000 + long)], Time(0));
        prop_assert_eq!(refused.len(), 1);
    }
    let mut arrivals: Vec<(u64, CoflowSpec)> = Vec::new();
    let mut at = 0;
    for (k, flows) in s.flows.iter().enumerate() {
        at += s.gaps[k];
        arrivals.push((at, coflow(k as u32, at, flows)));
    }
    let table = f.observe(Time(0)).unwrap().programmed.timetable;
    let (mut done, mut last) = (Vec::new(), f.observe(Time(0)).unwrap());
    let mut now = 0;
    let end = 400_000_000;
    while now < end {
        // In the end one long look: even 90 MB through one uplink are over after ten seconds.
        let next = if now + step < end { (now / step + 1) * step } else { 100 * end };
        for (at, c) in arrivals.iter().filter(|a| now <= a.0 && a.0 < next) {
            f.add_flows(c, &vec![true; c.flows.len()], Time(*at));
        }
        now = next;
        done.extend(f.advance(Time(now)));
        let seen = f.observe(Time(now)).unwrap();
        within_capacity(t, &last, &seen)?;
        for r in t.racks.iter().flat_map(|a| t.racks.iter().map(move |b| (a.id, b.id))) {
            let light = table
                .iter()
                .any(|c| (c.input, c.output) == r && c.up_from < seen.at && c.until > last.at);
            let crossed = seen.over_ocs.get(r.0, r.1) - last.over_ocs.get(r.0, r.1);
            prop_assert!(light || crossed == 0, "no progress in the dark");
        }
        last = seen;
    }
    let delivered = f.delivered();
    Ok((done, last, delivered))
}

proptest! {
    #![proptest_config(crate::testing::drawn(128))]

    #[test]
    fn bytes_are_conserved_links_hold_and_no_coflow_beats_its_bound(s in script(), queues in any::<bool>()) {
        let t = queued(&s, queues);
        let (done, last, delivered) = play(&s, &t, 7_000_000)?;
        let mut at = 0;
        let mut between = 0;
        for (k, flows) in s.flows.iter().enumerate() {
            at += s.gaps[k];
            let c = coflow(k as u32, at, flows);
            let mine: Vec<_> = done.iter().filter(|d| d.coflow == c.id).collect();
            prop_assert!(mine.iter().collect::<std::collections::BTreeSet<_>>().len() == mine.len());
            let d = delivered.get(&c.id).copied().unwrap_or_default();
            between += d.between_racks.0;
            prop_assert!(d.over_ocs <= d.between_racks && d.between_racks <= d.bytes && d.bytes <= c.bytes());
            if mine.len() == flows.len() {
                prop_assert_eq!(d.bytes, c.bytes());
                let cct = mine.iter().map(|d| d.at.since(c.arrival)).max().unwrap_or(Span::ZERO);
                prop_assert!(cct >= bounds::hybrid(&c, &t), "{:?} < {:?}", cct, bounds::hybrid(&c, &t));
            } else {
                prop_assert!(d.bytes < c.bytes());
            }
            // A flow that waits for the end of a coflow may wait long.
            if s.uplink >= 100 && s.network.decide == Decide::FlowEnds {
                prop_assert_eq!(mine.len(), flows.len(), "every flow has a way and time enough");
            }
        }
        prop_assert!(last.sent.total().abs_diff(between) <= 16 + s.flows.len() as u64, "what left is what came");
    }

    #[test]
    fn looking_changes_nothing(s in script(), queues in any::<bool>()) {
        let t = queued(&s, queues);
        let (often, rarely) = (play(&s, &t, 1_000_000)?, play(&s, &t, 50_000_000)?);
        prop_assert_eq!(often, rarely);
    }

    #[test]
    fn deciding_for_some_is_deciding_for_all(
        s in script(),
        network in flow_by_flow(),
        uplink in prop::sample::select(vec![100u64, 1000, 2000]),
    ) {
        // The last is a big switch. The other networks decide base rates by coflow, which only
        // looks the same.
        let kind = if matches!(network.kind, MaxMin | Varys | FairPerCoflow) { Sincronia } else { network.kind };
        let (network, t) = (Network { kind, ..network }, topology(4, 2, uplink));
        let mut f = SimFabric::new(t.clone(), SimSettings { circuits: false, network, ..SimSettings::default() });
        let (mut at, mut arrivals) = (0, Vec::new());
        for (k, flows) in s.flows.iter().enumerate() {
            at += s.gaps[k];
            let c = coflow(k as u32, at, flows);
            f.add_flows(&c, &[], Time(at));
            arrivals.push(c);
        }
        let mut ends: Vec<u64> = arrivals.iter().map(|c| c.arrival.0).collect();
        for d in f.advance(Time(NEVER)) {
            ends[d.coflow.index()] = ends[d.coflow.index()].max(d.at.0);
        }
        prop_assert_eq!(ends, twin(&network, &t, &arrivals));
    }

    #[test]
    fn a_resolution_of_a_nanosecond_is_exact(s in script(), queues in any::<bool>()) {
        let (t, step) = (queued(&s, queues), 9_000_000);
        let run = |ns| play(&Script { resolution: Span(ns), ..s.clone() }, &t, step);
        let (mut exact, mut finest) = (run(0)?, run(1)?);
        // Flows that end at one instant are reported in another order.
        exact.0.sort();
        finest.0.sort();
        prop_assert_eq!(exact, finest);
    }

    #[test]
    fn clocks_by_link_are_the_bundles_to_the_bit(s in script(), shape in prop::sample::select(vec![(2, 2000), (1, 1000), (1, 300)])) {
        // Uplinks that carry all that their hosts send, or have one host only; without circuits
        // both engines may be asked.
        let (hosts, uplink) = shape;
        let t = topology(8 / hosts, hosts, uplink);
        let run = |circuits| {
            let mut f = SimFabric::new(t.clone(), SimSettings { circuits, resolution: s.resolution, ..SimSettings::default() });
            let (mut at, mut done, mut seen) = (0, Vec::new(), Vec::new());
            for (k, flows) in s.flows.iter().enumerate() {
                at += s.gaps[k];
                f.add_flows(&coflow(k as u32, at, flows), &[], Time(at));
                seen.push(f.observe(Time(at + 1)).unwrap());
                seen.last_mut().unwrap().ports.clear();
                done.extend(f.advance(Time(at + 1)));
            }
            let delivered = f.delivered();
            done.extend(f.advance(Time(NEVER)));
            done.sort();
            (done, seen, delivered, f.delivered())
        };
        prop_assert_eq!(run(false), run(true));
    }
}

/// A coflow of the slow twin, or its flows of one priority: those between the same two hosts are
/// one group.
struct SlowCoflow {
    id: usize,
    class: u8,
    arrival: u64,
    bytes: u64,
    demand: Demand,
    sent: u128,
    queue: u32,
    weight: u32,
}

/// What a coflow's flows of one priority have to send; under other schedulers all have the first.
fn slow_demand(n: &Network, links: &links::Links, c: &CoflowSpec, class: u8) -> Option<Demand> {
    let (t, mut by) = (links.topology(), BTreeMap::new());
    let local = |f: FlowSpec| t.rack_of(f.from) == t.rack_of(f.to);
    for (k, f) in c.flows.iter().enumerate().filter(|(_, f)| f.from != f.to && f.bytes.0 > 0) {
        let own = if n.kind == Priority { c.priorities.of(k, local(f)) } else { 0 };
        *by.entry((f.from, f.to)).or_insert(0) += if own == class { f.bytes.0 } else { 0 };
    }
    by.retain(|_, bytes| *bytes > 0);
    let route = |(a, b)| {
        if t.rack_of(a) == t.rack_of(b) {
            bundle::BundleRoute::Local
        } else {
            bundle::BundleRoute::Eps
        }
    };
    let group = |(&(a, b), &n): (&(HostId, HostId), &u64)| HostGroup {
        path: links.path(a, b, route((a, b))),
        left: u128::from(n) * bundle::WORK_PER_BYTE,
    };
    let mut demand = Demand::new(by.iter().map(group));
    demand.weigh();
    demand.index();
    (demand.live() > 0).then_some(demand)
}

/// When each coflow ends if at every event all rates are decided from nothing, in an order that is
/// made from nothing.
fn twin(n: &Network, t: &Arc<Topology>, coflows: &[CoflowSpec]) -> Vec<u64> {
    let links = links::Links::new(t.clone(), true, false, true);
    let (mut now, mut next, mut active) = (0u64, 0, Vec::<SlowCoflow>::new());
    let mut ends = vec![0; coflows.len()];
    // Sincronia's order is made when a coflow comes or ends, or the guard turns.
    let (mut rank, mut rates): (Vec<usize>, Vec<Rates>) = (vec![], vec![]);
    let phase = |now| {
        n.starvation.map_or((false, u64::MAX), |g| (g.phase(Time(now)).0, g.phase(Time(now)).1.0))
    };
    loop {
        let mut came = now > 0 && phase(now - 1).0 != phase(now).0;
        while next < coflows.len() && coflows[next].arrival.0 <= now {
            let c = &coflows[next];
            ends[next] = c.arrival.0;
            for class in 0..=WITHIN_RACK {
                let Some(demand) = slow_demand(n, &links, c, class) else { continue };
                came = true;
                active.push(SlowCoflow {
                    id: next,
                    class,
                    arrival: c.arrival.0,
                    bytes: c.bytes().0,
                    demand,
                    sent: 0,
                    queue: 0,
                    weight: c.weight,
                });
            }
            next += 1;
        }
        let before = active.len();
        active.retain(|c| c.demand.live() > 0);
        active.sort_by_key(|c| (c.id, c.class));
        // Where rates wait for coflows, all is decided again if nothing moves.
        let idle = n.decide == Decide::CoflowEvents && rates.iter().all(|r| r.total() == 0);
        let coflows_changed = came || idle || active.len() < before || rank.len() != active.len();
        if coflows_changed {
            active.iter_mut().for_each(|c| c.demand.weigh());
            let weights: Vec<u32> = active.iter().map(|c| c.weight).collect();
            rank = orders::bssi(
                &active.iter().map(|c| &c.demand).collect::<Vec<_>>(),
                &weights,
                links.capacity(),
            );
        }
        let seen = if n.decide == Decide::CoflowEvents {
            coflows_changed
        } else {
            n.aalo.looks_at(Time(now))
        };
        active
            .iter_mut()
            .filter(|_| seen)
            .for_each(|c| c.queue = orders::queue(bundle::bytes(c.sent), &n.aalo));
        let mut order: Vec<usize> = (0..active.len()).collect();
        match n.kind {
            Sincronia => order = rank.clone(),
            Aalo => order.sort_by_key(|&c| active[c].queue),
            Priority => order.sort_by_key(|&c| (active[c].class, active[c].bytes)),
            _ => order.sort_by_key(|&c| active[c].arrival),
        }
        if coflows_changed || n.decide == Decide::FlowEnds {
            rates = match phase(now).0 {
                true => slow_shares(&active, links.capacity()),
                false => slow_rates(n, &active, &order, links.capacity()),
            };
        }
        // The first event: a group ends, a coflow leaves its queue, a coflow comes, the guard
        // turns.
        let turn = if rates.iter().all(|r| r.total() == 0) { u64::MAX } else { phase(now).1 };
        let mut first = coflows.get(next).map_or(u64::MAX, |c| c.arrival.0).min(turn);
        for (c, r) in active.iter().zip(&rates) {
            for (g, rate) in r.running() {
                first = first.min(now + c.demand.left(g).div_ceil(u128::from(rate)) as u64);
            }
            if let (Aalo, Decide::FlowEnds, Some(limit)) = (n.kind, n.decide, n.aalo.limit(c.queue))
            {
                let left = (u128::from(limit.0) * bundle::WORK_PER_BYTE).saturating_sub(c.sent);
                let after = if left == 0 {
                    Some(1)
                } else {
                    left.checked_div(r.total().into()).map(|_| left.div_ceil(r.total().into()))
                };
                let looked = after.map(|ns| n.aalo.looks_from(Time(now + ns as u64)).0);
                first = first.min(looked.unwrap_or(u64::MAX));
            }
        }
        if first == u64::MAX {
            return ends;
        }
        for (c, r) in active.iter_mut().zip(&mut rates) {
            for (g, rate) in r.running().collect::<Vec<_>>() {
                let units = u128::from(rate) * u128::from(first - now);
                let beyond = c.demand.sent(g, units);
                c.sent += units - beyond.unwrap_or(0);
                if beyond.is_some() {
                    ends[c.id] = first;
                    r.stop(g);
                }
            }
        }
        now = first;
    }
}

/// All flows share max-min fairly.
fn slow_shares(active: &[SlowCoflow], capacity: &[u64]) -> Vec<Rates> {
    let mut rates: Vec<Rates> = active.iter().map(|c| Rates::new(c.demand.groups())).collect();
    rates::max_min(
        &active.iter().map(|c| &c.demand).collect::<Vec<_>>(),
        &mut FreeCapacity::new(capacity),
        &mut rates,
    );
    rates
}

fn slow_rates(n: &Network, active: &[SlowCoflow], order: &[usize], capacity: &[u64]) -> Vec<Rates> {
    let mut free = FreeCapacity::new(capacity);
    let mut rates: Vec<Rates> = active.iter().map(|c| Rates::new(c.demand.groups())).collect();
    let one = |c: usize, free: &mut FreeCapacity, rates: &mut Vec<Rates>| match (n.within, n.kind) {
        (Within::MaxMin, Fifo | Aalo | Priority) => {
            rates::max_min(&[&active[c].demand], free, &mut rates[c..=c])
        }
        _ => rates::greedy(&active[c].demand, free, &mut rates[c]),
    };
    if n.kind == Priority && n.within == Within::MaxMin {
        for equals in order.chunk_by(|&a, &b| active[a].class == active[b].class) {
            let demands: Vec<&Demand> = equals.iter().map(|&c| &active[c].demand).collect();
            let mut list: Vec<Rates> = demands.iter().map(|d| Rates::new(d.groups())).collect();
            rates::max_min(&demands, &mut free, &mut list);
            equals.iter().zip(list).for_each(|(&c, r)| rates[c] = r);
        }
        return rates;
    }
    if n.kind == Aalo && n.aalo.sharing == Sharing::Weighted {
        let present: std::collections::BTreeSet<u32> = active.iter().map(|c| c.queue).collect();
        let total: u64 = present.iter().map(|q| u64::from(n.aalo.queues - q)).sum();
        for &q in &present {
            let part: Vec<u64> =
                capacity.iter().map(|c| c * u64::from(n.aalo.queues - q) / total).collect();
            let mut own = FreeCapacity::new(&part);
            for &c in order.iter().filter(|&&c| active[c].queue == q) {
                one(c, &mut own, &mut rates);
                rates[c].running().for_each(|(g, rate)| active[c].demand.take(g, rate, &mut free));
            }
        }
    }
    order.iter().for_each(|&c| one(c, &mut free, &mut rates));
    rates
}
