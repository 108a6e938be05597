//! By hand, against flows that are told apart where those are the same, and rates against filling everything.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::super::teams::Shares;
use crate::circuits::timetable::Reservation;
use crate::coflows::network::{Network, Within};
use crate::coflows::rates::Path;
use crate::coflows::{CoflowSpec, FlowSpec};
use crate::fabric::Fabric as _;
use crate::ids::{CoflowId, HostId, PlaneId, RackId};
use crate::plan::Op;
use crate::topology::{Framing, Plane, StopMode, Topology};
use crate::units::{BitRate, Bytes, Span, Time};
use crate::{Settings, SimFabric};

/// Bits a second of the interfaces.
const RATE: u64 = 1_000_000_000;
const NEVER: u64 = u64::MAX / 2;

/// Uplinks and circuits in parts of an interface, in per cent.
fn topology(racks: usize, hosts: usize, uplink: u64, circuit: u64) -> Arc<Topology> {
    let of = |percent: u64| BitRate(RATE / 100 * percent);
    let plane = Plane { id: PlaneId(0), rate: of(circuit), delta: Span::millis(10), stop: StopMode::NotAllStop, duplex: false };
    let mut t = Topology::uniform("t", racks, hosts, BitRate(RATE), of(uplink), vec![plane]);
    t.framing = Framing::None;
    Arc::new(t)
}

fn coflow(id: u32, arrival: u64, flows: impl IntoIterator<Item = (u32, u32, u64)>) -> CoflowSpec {
    let flows = flows.into_iter().map(|(a, b, n)| FlowSpec { from: HostId(a), to: HostId(b), bytes: Bytes(n) }).collect();
    CoflowSpec::new(CoflowId(id), "", Time(arrival), flows)
}

fn circuit(input: u32, output: u32, at: u64, long: u64) -> Op {
    let up_from = Time(at + 10_000_000);
    let (input, output, until) = (RackId(input), RackId(output), Time(up_from.0 + long));
    Op::Reserve(Reservation { plane: PlaneId(0), input, output, setup_at: Time(at), up_from, until })
}

/// When each coflow ends, in nanoseconds; all flows are marked. What has arrived is what was sent, and the rest in the books adds up.
fn ends(within: Within, t: &Arc<Topology>, coflows: &[CoflowSpec], circuits: &[(u32, u32, u64, u64)], step: u64) -> Vec<u64> {
    let mut f = SimFabric::new(t.clone(), Settings { network: Network { within, ..Network::default() }, ..Settings::default() });
    circuits.iter().for_each(|&(i, j, at, long)| _ = f.apply(&[circuit(i, j, at, long)], Time(0)));
    for c in coflows {
        let mut now = 0;
        while step > 0 && now + step < c.arrival.0 {
            now += step;
            f.observe(Time(now)).unwrap();
        }
        f.add_flows(c, &vec![true; c.flows.len()], c.arrival);
    }
    let done = f.advance(Time(NEVER));
    let seen = f.observe(Time(NEVER)).unwrap();
    let (sent, [between, over_ocs]) = (f.delivered(), f.sent_between_racks());
    assert_eq!(sent.values().map(|d| d.bytes.0).sum::<u64>(), coflows.iter().map(|c| c.bytes().0).sum::<u64>(), "all of it has arrived");
    assert_eq!(sent.values().map(|d| d.over_ocs.0).sum::<u64>().abs_diff(over_ocs.0) / (1 + coflows.len() as u64 * 16), 0);
    let total =
        |m: &crate::demand::DemandMatrix| t.racks.iter().map(|a| t.racks.iter().map(|b| m.get(a.id, b.id)).sum::<u64>()).sum::<u64>();
    assert!(total(&seen.sent).abs_diff(between.0) <= 16 && total(&seen.over_ocs).abs_diff(over_ocs.0) <= 16, "books agree");
    let end = |c: &CoflowSpec| done.iter().filter(|d| d.coflow == c.id).map(|d| d.at.0).max().unwrap_or(c.arrival.0);
    coflows.iter().map(end).collect()
}

#[test]
fn by_hand() {
    // Two racks of two hosts; uplinks as wide as an interface. Of 1 MB hosts 0 and 1 have a quarter and three, all for host 2; a megabyte
    // takes 8 ms of the uplink.
    let t = topology(2, 2, 100, 1_000);
    let a = coflow(0, 0, [(0, 2, 250_000), (1, 2, 750_000)]);
    let tenths = |coflows: &[CoflowSpec], circuits: &[_]| -> Vec<u64> {
        ends(Within::Sums, &t, coflows, circuits, 0).iter().map(|ns| (ns + 50_000) / 100_000).collect()
    };
    assert_eq!(tenths(std::slice::from_ref(&a), &[]), [80]);
    // Another coflow of one flow to host 3 has a third of the uplink, as each of those two has.
    let b = coflow(1, 0, [(0, 3, 500_000)]);
    assert_eq!(tenths(&[a.clone(), b.clone()], &[]), [120, 120]);
    // From 10 ms on a circuit carries more than interfaces can: a sixth is left then of both. Host 2 holds back the first coflow, which
    // takes 1.3 ms; that leaves the other one three quarters of host 0, and 0.9 ms.
    assert_eq!(tenths(&[a, b], &[(0, 1, 0, 1_000_000_000)]), [113, 109]);
}

#[test]
fn a_host_where_coflows_meet_is_shared() {
    // Three racks of two hosts with wide uplinks. Hosts 0 and 2 send to host 4, whose interface they share: 2 MB take 16 ms. Host 1 sends
    // 1 MB to host 5, and shares no interface: 8 ms.
    let t = topology(3, 2, 1_000, 1_000);
    let coflows = [coflow(0, 0, [(0, 4, 1_000_000)]), coflow(1, 0, [(2, 4, 1_000_000)]), coflow(2, 0, [(1, 5, 1_000_000)])];
    assert_eq!(ends(Within::Sums, &t, &coflows, &[], 0), [16_000_000, 16_000_000, 8_000_000]);
    // Within a rack, too, where nothing else holds flows back.
    let local = [coflow(0, 0, [(0, 1, 1_000_000)]), coflow(1, 0, [(0, 1, 500_000)]), coflow(2, 0, [(1, 0, 1_000_000)])];
    assert_eq!(ends(Within::Sums, &t, &local, &[], 0), [12_000_000, 8_000_000, 8_000_000]);
}

/// Coflows, circuits and how wide uplinks and circuits are.
type Script = (Vec<(u64, Vec<(u32, u32, u64)>)>, Vec<(u32, u32, u64, u64)>, u64, u64);

/// Senders and receivers are racks: in each coflow a pair has one flow.
fn script(racks: u32) -> impl Strategy<Value = Script> {
    let flows = prop::collection::btree_map((0..racks, 0..racks), 1u64..3_000_000, 1..6);
    let flows = flows.prop_map(|m| m.into_iter().map(|((a, b), n)| (a, b, n)).collect());
    let coflows = prop::collection::vec((0u64..30_000_000, flows), 1..6);
    let circuits = prop::collection::vec((0..racks, 0..racks, 0u64..60_000_000, 1u64..60_000_000), 0..8);
    let percent = prop::sample::select(vec![30u64, 70, 100, 150, 400]);
    (coflows, circuits, percent.clone(), percent)
}

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    /// Hosts of a rack that have the same to do, and flows of the same size between two racks: nothing is lost in sums.
    #[test]
    fn hosts_that_are_alike_are_as_by_flows(s in script(3), hosts in 1u32..4, step in prop::sample::select(vec![0u64, 700_000])) {
        let (flows, circuits, uplink, circuit) = s;
        let t = topology(3, hosts as usize, uplink * u64::from(hosts), circuit * u64::from(hosts));
        let mut at = 0;
        let spread = |(a, b, n): (u32, u32, u64)| {
            let pairs = (0..hosts).flat_map(move |i| (0..hosts).map(move |j| (a * hosts + i, b * hosts + j, n)));
            // A host has nothing for itself; so within a rack all hosts but one are there for each.
            pairs.filter(|(i, j, _)| i != j)
        };
        let coflows: Vec<CoflowSpec> = flows.into_iter().enumerate().map(|(k, (gap, flows))| {
            at += gap;
            coflow(k as u32, at, flows.into_iter().flat_map(spread))
        }).collect();
        let [sums, flows] = [Within::Sums, Within::Greedy].map(|within| ends(within, &t, &coflows, &circuits, step));
        for (sums, flows) in sums.iter().zip(&flows) {
            prop_assert!(sums.abs_diff(*flows) <= 1_000, "{sums} {flows}");
        }
    }

    #[test]
    fn rates_are_those_of_filling_everything(
        steps in prop::collection::vec(step(), 1..25),
        capacity in prop::collection::vec(1u64..2_000_000_000, 12 + 6 + 2),
    ) {
        let mut capacity = capacity;
        // Three racks of two hosts: 6 interfaces up, 6 down; uplinks 12 to 14, down 15 to 17, two circuits.
        let side = |k: u32| [2 * k, 2 * k + 1];
        let mut shares = Shares::new(&capacity, (0..6).map(|k| side(k).to_vec()).collect());
        let mut all: BTreeMap<usize, Twin> = BTreeMap::new();
        for (k, (a, b), flows, way, parts, (link, width), looks) in steps {
            if let Some(width) = width {
                capacity[link] = width;
                shares.limit(&capacity);
            }
            if let Some(old) = all.remove(&k) {
                shares.set(k as u32, Path::default(), 0);
                old.teams.into_iter().for_each(|team| shares.disband(team));
            }
            if flows > 0 && (0..2).all(|s| parts[2 * s] + parts[2 * s + 1] > 0) {
                let hosts = [a, 3 + b].map(side);
                let list = |s: usize| hosts[s].into_iter().zip(parts[2 * s..].iter().copied()).filter(|h| h.1 > 0).collect::<Vec<_>>();
                let lists = [list(0), list(1)];
                let teams = [shares.team(a, &lists[0]), shares.team(3 + b, &lists[1])];
                let between = match way {
                    _ if a == b => vec![],
                    0 => vec![12 + a, 15 + b],
                    way => vec![17 + way as u32],
                };
                let path: Vec<u32> = hosts.map(|h| h[0]).into_iter().chain(between.iter().copied()).collect();
                shares.join(k as u32, teams);
                shares.set(k as u32, Path::new(&path), flows);
                all.insert(k, Twin { teams, flows, between, hosts: lists });
            }
            let before: BTreeMap<usize, _> = all.keys().map(|&k| (k, shares.bottleneck(k as u32))).collect();
            let changes = shares.refill_within(looks);
            let rates = twin(&capacity, &all);
            for &k in all.keys() {
                let link = shares.bottleneck(k as u32).expect("a group that is there has a bottleneck");
                let rate = shares.level(link) as f64;
                prop_assert!((rate - rates[&k]).abs() <= 4.0 + rate * 1e-6, "group {k}: {rate}, filling everything {}", rates[&k]);
                prop_assert_eq!(changes.moved.contains(&(k as u32)), before[&k] != Some(link));
            }
        }
    }
}

/// A group, its racks, its flows, over which way it goes, and what its hosts have; a link and its new width; how many looks at links are
/// allowed before everything is filled anew.
type Step = (usize, (u32, u32), u32, usize, Vec<u128>, (usize, Option<u64>), usize);

fn step() -> impl Strategy<Value = Step> {
    let parts = prop::collection::vec(prop_oneof![0u128..5, Just(1 << 40)], 4);
    let link = (0usize..20, prop::option::weighted(0.2, 0u64..2_000_000_000));
    (0usize..8, (0u32..3, 0u32..3), 0u32..5, 0usize..3, parts, link, prop::sample::select(vec![0usize, 1, 3, 1_000]))
}

/// A group as the slow twin knows it.
struct Twin {
    teams: [u32; 2],
    flows: u32,
    between: Vec<u32>,
    hosts: [Vec<(u32, u128)>; 2],
}

/// Rates of the flows of each group: of all links the one with the smallest share is filled, and again.
fn twin(capacity: &[u64], all: &BTreeMap<usize, Twin>) -> BTreeMap<usize, f64> {
    let takes = |t: &Twin, link: u32| {
        let flows = f64::from(t.flows);
        let part = |hosts: &Vec<(u32, u128)>| {
            let sum: u128 = hosts.iter().map(|h| h.1).sum();
            hosts.iter().filter(|h| h.0 == link).map(|h| flows * h.1 as f64 / sum as f64).sum::<f64>()
        };
        t.hosts.iter().map(part).sum::<f64>() + if t.between.contains(&link) { flows } else { 0.0 }
    };
    let mut rates: BTreeMap<usize, f64> = BTreeMap::new();
    while rates.len() < all.len() {
        let share = |l: u32| {
            let sum = |held: bool| -> f64 {
                let of = |(k, t): (&usize, &Twin)| if held { takes(t, l) * rates.get(k).unwrap_or(&0.0) } else { takes(t, l) };
                all.iter().filter(|(k, _)| rates.contains_key(k) == held).map(of).sum()
            };
            let growing = sum(false);
            (growing > 0.0).then(|| (((capacity[l as usize] as f64 - sum(true)).max(0.0)) / growing, l))
        };
        let (level, link) = (0..capacity.len() as u32).filter_map(share).min_by(|a, b| a.0.total_cmp(&b.0)).expect("a link for each group");
        let held: Vec<usize> = all.iter().filter(|(k, t)| !rates.contains_key(k) && takes(t, link) > 0.0).map(|(&k, _)| k).collect();
        rates.extend(held.into_iter().map(|k| (k, level)));
    }
    rates
}
