//! The laws that the model must keep, whatever happens in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::circuits::timetable::Reservation;
use crate::coflows::{FlowSpec, bounds};
use crate::topology::{Plane, StopMode};
use crate::units::BitRate;

fn network(racks: usize, hosts: usize, uplink: u64) -> Arc<Topology> {
    let plane = Plane { id: PlaneId(0), rate: BitRate::mbit(1000), delta: Span::millis(10), stop: StopMode::NotAllStop, duplex: false };
    Arc::new(Topology::uniform("t", racks, hosts, BitRate::mbit(1000), BitRate::mbit(uplink), vec![plane]))
}

fn coflow(id: u32, arrival: u64, flows: &[(u32, u32, u64)]) -> CoflowSpec {
    let flows = flows.iter().map(|&(a, b, n)| FlowSpec { from: HostId(a), to: HostId(b), bytes: Bytes(n) }).collect();
    CoflowSpec { id: CoflowId(id), name: String::new(), arrival: Time(arrival), flows }
}

fn circuit(i: u32, j: u32, setup: u64, until: u64) -> Op {
    let up_from = Time(setup + 10_000_000);
    Op::Reserve(Reservation { plane: PlaneId(0), input: RackId(i), output: RackId(j), setup_at: Time(setup), up_from, until: Time(until) })
}

/// Payload time at `mbit`, rounded up.
fn time(mbit: u64, bytes: u64) -> u64 {
    bounds::payload_rate(BitRate::mbit(mbit)).time_for(Bytes(bytes)).0
}

#[test]
fn one_flow_over_the_eps_takes_its_bound_and_two_share() {
    let t = network(3, 2, 100);
    let mut f = SimFabric::new(t.clone(), false);
    let c = coflow(0, 0, &[(0, 2, 1_000_000), (1, 3, 1_000_000), (4, 4, 9), (0, 1, 1_000_000)]);
    f.add_flows(&c, &[true; 4], Time(0));
    let done: Vec<_> = f.advance(Time(NEVER)).iter().map(|d| (d.flow.0, d.at.0)).collect();
    // The local flow has what the EPS leaves it of the NIC: 1000 - 50.
    let rate = bounds::payload_rate(BitRate::mbit(1000)).0 - bounds::payload_rate(BitRate::mbit(100)).0 / 2;
    assert_eq!(done, [(2, 0), (3, BitRate(rate).time_for(Bytes(1_000_000)).0), (0, time(100, 2_000_000)), (1, time(100, 2_000_000))]);
    assert!(bounds::hybrid(&c, &t).0 < time(100, 2_000_000), "the bound counts on a circuit");
    assert_eq!((f.next_event(), f.delivered()[&CoflowId(0)].bytes), (None, Bytes(3_000_009)));
}

const NEVER: u64 = 1 << 60;

#[test]
fn a_flow_changes_over_when_light_comes_and_goes() {
    let t = network(2, 1, 100);
    let mut f = SimFabric::new(t, false);
    let size = 10_000_000;
    f.add_flows(&coflow(0, 0, &[(0, 1, size)]), &[true], Time(0));
    f.add_flows(&coflow(1, 0, &[(0, 1, size)]), &[false], Time(0));
    assert!(f.apply(&[circuit(0, 1, 0, 40_000_000)], Time(0))[0].outcome.is_ok());
    assert!(!f.is_up(PlaneId(0), RackId(0), RackId(1)));
    // 10 ms at half of 100 Mb/s; then the marked flow alone on the circuit, beside 100 Mb/s of the NIC for the other.
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
    let progress = f.progress();
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
}

fn script() -> impl Strategy<Value = Script> {
    let flow = (0u32..8, 0u32..8, 0u64..3_000_000);
    let coflows = prop::collection::vec(prop::collection::vec(flow, 0..6), 1..6);
    let circuits = prop::collection::vec((0u32..4, 0u32..4, 0u64..80_000_000, 1u64..60_000_000), 0..10);
    (coflows, prop::collection::vec(0u64..30_000_000, 6), circuits, any::<bool>(), prop::sample::select(vec![0u64, 1, 100, 1000]))
        .prop_map(|(flows, gaps, circuits, admit_all, uplink)| Script { flows, gaps, circuits, admit_all, uplink })
}

/// What one run of a script tells: every finish, and the last observation.
type Told = (Vec<FlowFinished>, Observation, BTreeMap<CoflowId, Delivered>);

/// Runs a script, looking at the network every `step`, and checks what must hold at every look.
fn play(s: &Script, t: &Arc<Topology>, step: u64) -> Result<Told, TestCaseError> {
    let mut f = SimFabric::new(t.clone(), s.admit_all);
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
            let light = table.iter().any(|c| (c.input, c.output) == r && c.up_from < seen.at && c.until > last.at);
            let crossed = seen.over_ocs.get(r.0, r.1) - last.over_ocs.get(r.0, r.1);
            prop_assert!(light || crossed == 0, "no progress in the dark");
        }
        last = seen;
    }
    let delivered = f.delivered();
    Ok((done, last, delivered))
}

/// Between two looks no rack sent or received more than its uplink and its port could carry.
fn within_capacity(t: &Topology, a: &Observation, b: &Observation) -> Result<(), TestCaseError> {
    let dt = b.at.since(a.at);
    let (sent, ocs) = (b.sent.since(&a.sent), b.over_ocs.since(&a.over_ocs));
    for r in &t.racks {
        // One byte a cell may have been begun before.
        let slack = t.rack_count() as u64;
        let out: u64 = sent.row(r.id).iter().sum::<u64>().saturating_sub(ocs.row(r.id).iter().sum::<u64>());
        prop_assert!(out <= bounds::payload_rate(r.uplink).bytes_in(dt).0 + 2 * slack);
        let into = |m: &DemandMatrix| t.racks.iter().map(|s| m.get(s.id, r.id)).sum::<u64>();
        prop_assert!(into(&sent).saturating_sub(into(&ocs)) <= bounds::payload_rate(r.uplink).bytes_in(dt).0 + 2 * slack);
        let port = bounds::payload_rate(t.planes[0].rate).bytes_in(dt).0 + slack;
        prop_assert!(ocs.row(r.id).iter().sum::<u64>() <= port && into(&ocs) <= port);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn bytes_are_conserved_links_hold_and_no_coflow_beats_its_bound(s in script()) {
        let t = network(4, 2, s.uplink);
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
            if s.uplink >= 100 {
                prop_assert_eq!(mine.len(), flows.len(), "every flow has a way and time enough");
            }
        }
        prop_assert!(last.sent.total().abs_diff(between) <= 16 + s.flows.len() as u64, "what left is what came");
    }

    #[test]
    fn looking_changes_nothing(s in script()) {
        let t = network(4, 2, s.uplink);
        let (often, rarely) = (play(&s, &t, 1_000_000)?, play(&s, &t, 50_000_000)?);
        prop_assert_eq!(often, rarely);
    }
}
