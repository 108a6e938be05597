//! By hand, against flows that are told apart where those are the same, and laws.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use crate::bundle::WORK_PER_BYTE;
use crate::coflows::network::NetworkKind::{Aalo, FairPerCoflow, Fifo, MaxMin, Sincronia, Varys};
use crate::coflows::network::{Guard, Network, NetworkKind, Within};
use crate::coflows::orders::Sharing;
use crate::coflows::{CoflowSpec, FlowSpec, bounds};
use crate::fabric::Fabric as _;
use crate::ids::{CoflowId, HostId};
use crate::topology::Topology;
use crate::units::{BitRate, Bytes, Span, Time};
use crate::{FlowFinished, SimFabric, SimSettings};

/// Bits a second of payload of the interfaces.
const RATE: u64 = 1_000_000_000;
const NEVER: u64 = u64::MAX / 2;
const KINDS: [NetworkKind; 6] = [MaxMin, Fifo, Varys, Sincronia, FairPerCoflow, Aalo];

fn topology(hosts: usize) -> Arc<Topology> {
    let mut t = Topology::uniform("t", hosts, 1, BitRate(RATE), BitRate(RATE), vec![]);
    t.framing = crate::topology::Framing::None;
    Arc::new(t)
}

fn coflow(id: u32, arrival: u64, flows: &[(u32, u32, u64)]) -> CoflowSpec {
    let flows = flows
        .iter()
        .map(|&(a, b, n)| FlowSpec { from: HostId(a), to: HostId(b), bytes: Bytes(n) })
        .collect();
    CoflowSpec::new(CoflowId(id), "", Time(arrival), flows)
}

fn network(kind: NetworkKind, within: Within) -> Network {
    let mut n = Network { kind, within, ..Network::default() };
    (n.aalo.queues, n.aalo.first, n.aalo.interval, n.aalo.sharing) =
        (3, Bytes(200_000), Span::ZERO, Sharing::Strict);
    n
}

/// Every end of a flow; `pairs`: books are kept by pair of racks.
fn ends(n: Network, t: &Arc<Topology>, coflows: &[CoflowSpec], pairs: bool) -> Vec<FlowFinished> {
    let settings = SimSettings {
        network: n,
        circuits: false,
        counters: pairs,
        progress: pairs,
        ..SimSettings::default()
    };
    let mut f = SimFabric::new(t.clone(), settings);
    coflows.iter().for_each(|c| f.add_flows(c, &[], c.arrival));
    let mut done = f.advance(Time(NEVER));
    done.sort();
    let sent: u64 = f.delivered().values().map(|d| d.bytes.0).sum();
    assert_eq!(sent, coflows.iter().map(|c| c.bytes().0).sum::<u64>(), "all of it has arrived");
    done
}

/// When each coflow ends, in nanoseconds.
fn last(n: Network, t: &Arc<Topology>, coflows: &[CoflowSpec]) -> Vec<u64> {
    let done = ends(n, t, coflows, false);
    let end = |c: &CoflowSpec| {
        done.iter().filter(|d| d.coflow == c.id).map(|d| d.at.0).max().unwrap_or(c.arrival.0)
    };
    coflows.iter().map(end).collect()
}

/// The same in tenths of a millisecond, rounded.
fn tenths(kind: NetworkKind, coflows: &[CoflowSpec]) -> Vec<u64> {
    last(network(kind, Within::Sums), &topology(4), coflows)
        .iter()
        .map(|ns| (ns + 50_000) / 100_000)
        .collect()
}

#[test]
fn by_hand() {
    // A megabyte takes 8 ms of an interface. Host 0 has 2 MB of the first to send: 16 ms; both
    // receivers get half. Of host 3 the second has half until then, 1 MB; the other one takes 8 ms.
    let a = coflow(0, 0, &[(0, 2, 1_000_000), (0, 3, 1_000_000)]);
    let b = coflow(1, 0, &[(1, 3, 2_000_000)]);
    assert_eq!(tenths(Fifo, &[a.clone(), b.clone()]), [160, 240]);
    // Both take 16 ms alone: the first stays first. With a little less the second has host 3 for
    // itself, and the first sends to host 2.
    assert_eq!(tenths(Varys, &[a.clone(), b.clone()]), [160, 240]);
    let shorter = coflow(1, 0, &[(1, 3, 1_990_000)]);
    assert_eq!(tenths(Varys, &[a.clone(), shorter]), [239, 159]);
    // Host 3 has 3 MB to receive, and the second puts most of it there: it goes last. The other way
    // round if its weight is 3.
    assert_eq!(tenths(Sincronia, &[a.clone(), b.clone()]), [160, 240]);
    let heavy = CoflowSpec { weight: 3, ..b.clone() };
    assert_eq!(tenths(Sincronia, &[a.clone(), heavy]), [240, 160]);
    // At one pace host 3 has a third for the first and two for the second. Host 0 sends what it has
    // left over to host 2, which has its megabyte after 12 ms. The third of host 3 stays.
    assert_eq!(tenths(FairPerCoflow, &[a.clone(), b.clone()]), [240, 240]);
    // The first has sent 200 kB after 1.6 ms, and leaves the first queue. The second, with 100 kB,
    // has host 3 for itself until it has sent as much, for 0.8 ms. Then the first, which came
    // before it, goes on; host 0 was never idle.
    assert_eq!(tenths(Aalo, &[a.clone(), b.clone()]), [160, 240]);
    // Both have half of host 3. The second has all of it when the first has ended.
    assert_eq!(tenths(MaxMin, &[a, b]), [160, 240]);
}

#[test]
fn a_coflow_alone_takes_its_bound() {
    let t = topology(4);
    let c = coflow(0, 5, &[(0, 2, 1_234_567), (0, 3, 89), (1, 3, 1_000_003), (2, 3, 7)]);
    // Equal flows do not end together.
    for kind in KINDS.into_iter().filter(|&k| k != MaxMin) {
        let bound = bounds::hybrid(&c, &t);
        let [end] = last(network(kind, Within::Sums), &t, std::slice::from_ref(&c))[..] else {
            unreachable!()
        };
        assert!(end.abs_diff(5 + bound.0) <= 8, "{kind:?}: {end}, {bound}");
    }
}

fn load(
    flows: impl Strategy<Value = Vec<(u32, u32, u64)>>,
) -> impl Strategy<Value = Vec<CoflowSpec>> {
    prop::collection::vec((0u64..20_000_000, flows), 1..7).prop_map(|list| {
        let mut at = 0;
        let coflow = |(k, (gap, flows)): (usize, (u64, Vec<_>))| {
            at += gap;
            coflow(k as u32, at, &flows)
        };
        list.into_iter().enumerate().map(coflow).collect()
    })
}

fn any_flows() -> impl Strategy<Value = Vec<(u32, u32, u64)>> {
    let bytes = prop_oneof![1 => Just(0u64), 1 => Just(250_000), 4 => 1u64..3_000_000];
    prop::collection::vec((0u32..5, 0u32..5, bytes), 0..8)
}

/// Flows of host 0, or to it.
fn one_ended() -> impl Strategy<Value = Vec<CoflowSpec>> {
    let others = prop::collection::btree_map(1u32..5, 1u64..3_000_000, 1..5);
    (
        load(
            others
                .prop_map(|others| others.into_iter().map(|(to, bytes)| (0, to, bytes)).collect()),
        ),
        any::<bool>(),
    )
        .prop_map(|(list, sends)| {
            let turn = |c: CoflowSpec| {
                let flows = c
                    .flows
                    .iter()
                    .map(|f| if sends { f } else { FlowSpec { from: f.to, to: f.from, ..f } })
                    .collect();
                CoflowSpec { flows, ..c }
            };
            list.into_iter().map(turn).collect()
        })
}

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    #[test]
    fn no_coflow_is_lost_or_faster_than_its_bound(list in load(any_flows()), kind in prop::sample::select(KINDS.to_vec()), weighted: bool) {
        let (mut n, t) = (network(kind, Within::Sums), topology(5));
        n.aalo.sharing = if weighted { Sharing::Weighted } else { Sharing::Strict };
        let (one, apart) = (ends(n, &t, &list, false), ends(n, &t, &list, true));
        prop_assert_eq!(&one, &apart, "books change nothing");
        prop_assert_eq!(one.len(), list.iter().map(|c| c.flows.len()).sum::<usize>());
        for (c, end) in list.iter().zip(last(n, &t, &list)) {
            prop_assert!(end + 8 >= c.arrival.0 + bounds::hybrid(c, &t).0, "{c:?} {end}");
        }
    }

    #[test]
    fn where_all_have_one_end_coflows_end_as_if_flows_were_told_apart(list in one_ended()) {
        let t = topology(5);
        for kind in [MaxMin, Fifo, Varys, Sincronia, Aalo] {
            let [sums, flows] = [Within::Sums, Within::Greedy].map(|within| last(network(kind, within), &t, &list));
            for (a, b) in sums.into_iter().zip(flows) {
                prop_assert!(a.abs_diff(b) <= 100, "{kind:?}: {a} {b}");
            }
        }
    }

    #[test]
    fn looking_changes_nothing(
        list in load(any_flows()),
        kind in prop::sample::select(KINDS.to_vec()),
        (starves, weighted) in any::<(bool, bool)>(),
        step in 1u64..5_000_000,
        resolution in prop::sample::select(vec![0u64, 1_000_000, 70_000_000]),
        gone in prop::option::of((0usize..7, 0u64..40_000_000)),
    ) {
        let (mut n, t) = (network(kind, Within::Sums), topology(5));
        n.aalo.sharing = if weighted { Sharing::Weighted } else { Sharing::Strict };
        n.aalo.interval = Span(700_000);
        n.starvation = starves.then_some(Guard { every: Span(3_000_000), share: Span(1_000_000) });
        let play = |step: Option<u64>, wholes| {
            let settings = SimSettings { network: n, circuits: false, wholes, resolution: Span(resolution), ..SimSettings::default() };
            let mut f = SimFabric::new(t.clone(), settings);
            let (mut over, mut now, mut before) = (BTreeMap::new(), 0, vec![0; 10]);
            let mut told = |f: &mut SimFabric, to: u64| {
                for (id, at) in f.advance(Time(to)).into_iter().map(|d| (d.coflow, d.at)).chain(f.take_over()) {
                    let last = over.entry(id).or_insert(Time::ZERO);
                    *last = at.max(*last);
                }
            };
            let mut events: Vec<(u64, Option<&CoflowSpec>)> = list.iter().map(|c| (c.arrival.0, Some(c))).collect();
            events.extend(gone.map(|g| (g.1, None)));
            events.sort_by_key(|e| e.0);
            for (at, what) in events.into_iter().chain([(NEVER, None)]) {
                while let Some(step) = step.filter(|&step| at < NEVER && now + step < at) {
                    now += step;
                    told(&mut f, now);
                    f.observe(Time(now)).unwrap();
                    let t = f.ledger.totals();
                    let carried: Vec<u128> = t.up.iter().chain(&t.down).copied().collect();
                    for (now, before) in carried.iter().zip(&before) {
                        assert!(now - before <= u128::from(step) * u128::from(RATE) + 100 * WORK_PER_BYTE, "more than an interface can");
                    }
                    before = carried;
                }
                told(&mut f, at);
                match (what, gone) {
                    (Some(c), _) => f.add_flows(c, &[], Time(at)),
                    (None, Some((k, when))) if when == at => f.cancel(CoflowId(k as u32), Time(at)),
                    _ => {}
                }
            }
            (over, f.delivered())
        };
        let (over, delivered) = play(None, true);
        prop_assert_eq!(&over, &play(Some(step), true).0);
        let singly = play(Some(step), false);
        prop_assert_eq!((over, delivered), singly);
    }
}
