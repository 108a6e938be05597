//! What flows have left, and priorities that change while they are under way.

use super::*;
use crate::circuits::sunflow::Order;

/// A change: the coflow, flows and their new priorities, and when.
type PriorityUpdate = (u32, Vec<(u32, u8)>, u64);

fn changes() -> impl Strategy<Value = Vec<PriorityUpdate>> {
    let flows = prop_oneof![
        3 => prop::collection::vec((0u32..7, 0u8..=LAST), 1..5),
        1 => (0u8..=LAST).prop_map(|p| (0..7).map(|f| (f, p)).collect()),
    ];
    prop::collection::vec((0u32..6, flows, span(120_000_000)), 0..12)
}

/// Coflows of which many have several flows between the same two hosts.
fn crowded() -> impl Strategy<Value = Script> {
    let flow = (0u32..3, 2u32..5, prop_oneof![1u64..3_000_000, 1u64..9]);
    (script(), prop::collection::vec(prop::collection::vec(flow, 0..7), 1..6), any::<bool>())
        .prop_map(|(s, flows, crowd)| if crowd { Script { flows, ..s } } else { s })
}

fn coflows(s: &Script) -> Vec<CoflowSpec> {
    let arrivals = s.gaps.iter().scan(0, |at, gap| {
        *at += gap;
        Some(*at)
    });
    s.flows
        .iter()
        .zip(arrivals)
        .enumerate()
        .map(|(k, (flows, at))| coflow(k as u32, at, flows))
        .collect()
}

fn strict(s: &Script) -> Network {
    Network { kind: Priority, decide: Decide::FlowEnds, ..s.network }
}

/// A network and the priorities that its flows have by now.
struct PriorityNetwork {
    f: SimFabric,
    /// By coflow and flow.
    now: Vec<Vec<u8>>,
}

impl PriorityNetwork {
    fn new(t: &Arc<Topology>, coflows: &[CoflowSpec], settings: SimSettings) -> Self {
        let local = |f: FlowSpec| t.rack_of(f.from) == t.rack_of(f.to);
        let of = |c: &CoflowSpec| {
            c.flows.iter().enumerate().map(|(k, f)| c.priorities.of(k, local(f))).collect()
        };
        Self { f: SimFabric::new(t.clone(), settings), now: coflows.iter().map(of).collect() }
    }

    fn change(&mut self, (coflow, flows, at): &PriorityUpdate) {
        let under_way: BTreeSet<FlowId> = self
            .f
            .left(Time(*at))
            .into_iter()
            .filter(|l| l.0 == CoflowId(*coflow))
            .map(|l| l.1)
            .collect();
        let list: Vec<(FlowId, u8)> = flows.iter().map(|&(f, p)| (FlowId(f), p)).collect();
        self.f.prioritise(CoflowId(*coflow), &list, Time(*at));
        for (flow, p) in list.into_iter().filter(|l| under_way.contains(&l.0)) {
            self.now[*coflow as usize][flow.index()] = p;
        }
    }

    /// Adds what comes and changes what changes up to `until`, by time; what comes goes first.
    fn until(&mut self, until: u64, coflows: &[CoflowSpec], changes: &[PriorityUpdate]) {
        let mut times: BTreeSet<u64> =
            changes.iter().map(|c| c.2).chain(coflows.iter().map(|c| c.arrival.0)).collect();
        times.retain(|&t| t <= until);
        for at in times {
            for c in coflows.iter().filter(|c| c.arrival.0 == at) {
                self.f.add_flows(c, &vec![true; c.flows.len()], Time(at));
            }
            changes.iter().filter(|c| c.2 == at).for_each(|c| self.change(c));
        }
    }

    /// Units that every flow under way has left.
    fn units(&mut self) -> BTreeMap<(CoflowId, FlowId), u128> {
        let f = &mut self.f;
        f.engine.settle(world!(f));
        let mut units = BTreeMap::new();
        f.engine.left(&mut |c, flow, left| {
            assert!(units.insert((c, flow), left).is_none(), "each flow once")
        });
        units
    }
}

/// A network that begins at `now` with what another one has left then.
fn resumed(
    p: &mut PriorityNetwork,
    t: &Arc<Topology>,
    coflows: &[CoflowSpec],
    settings: SimSettings,
    now: Time,
) -> SimFabric {
    let units = p.units();
    let state = |c: &CoflowSpec| {
        let left = |k: usize| units.get(&(c.id, FlowId::from(k))).copied().unwrap_or(0);
        (c.clone(), (0..c.flows.len()).map(|k| (p.now[c.id.index()][k], left(k))).collect())
    };
    let list: Vec<_> = coflows.iter().filter(|c| c.arrival <= now).map(state).collect();
    let mut g = SimFabric::new(t.clone(), settings);
    g.run(now);
    g.engine =
        Box::new(ordered::Ordered::resume(settings.network, g.links.capacity(), &list, world!(g)));
    g
}

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    /// The slow twin of a change is a network that begins then, with what is left and the new
    /// priorities.
    #[test]
    fn after_a_change_all_goes_on_as_if_it_began_then(s in crowded(), changes in changes(), big in any::<bool>(), at in span(120_000_000)) {
        let t = if big { topology(4, 2, 2000) } else { tree(&s) };
        let (coflows, settings) = (coflows(&s), SimSettings { circuits: false, network: strict(&s), ..SimSettings::default() });
        let mut p = PriorityNetwork::new(&t, &coflows, settings);
        p.until(at, &coflows, &changes);
        p.f.advance(Time(at));
        let mut g = resumed(&mut p, &t, &coflows, settings, Time(at));
        let (mut ends, mut again) = (Vec::new(), Vec::new());
        for c in coflows.iter().filter(|c| c.arrival.0 > at) {
            p.f.add_flows(c, &[], c.arrival);
            g.add_flows(c, &[], c.arrival);
        }
        ends.extend(p.f.advance(Time(NEVER)));
        again.extend(g.advance(Time(NEVER)));
        ends.sort();
        again.sort();
        prop_assert_eq!(ends, again);
    }

    /// As ports and TCP have it: flows of one priority are alike, however large their coflows are.
    #[test]
    fn flows_of_one_priority_share_as_flows_without_any_do(s in script(), priority in 0u8..=LAST) {
        let (t, one) = (tree(&Script { uplink: s.uplink.max(100), ..s.clone() }), |mut c: CoflowSpec| {
            // Flows between the same two hosts would share as one.
            let mut seen = BTreeSet::new();
            c.flows = c.flows.iter().filter(|f| seen.insert((f.from, f.to))).collect();
            CoflowSpec { priorities: Priorities { all: None, flows: vec![Some(priority); c.flows.len()] }, ..c }
        });
        let coflows: Vec<CoflowSpec> = coflows(&s).into_iter().map(one).collect();
        let network = Network { kind: Priority, within: Within::MaxMin, ..Network::default() };
        let mut f = SimFabric::new(t.clone(), SimSettings { circuits: false, network, ..SimSettings::default() });
        coflows.iter().for_each(|c| f.add_flows(c, &[], c.arrival));
        let mut done = f.advance(Time(NEVER));
        done.sort();
        prop_assert_eq!(done, max_min::twin(&t, &[], &coflows, &[]));
    }

    #[test]
    fn no_byte_is_lost_by_a_change_of_priority(s in crowded(), changes in changes()) {
        let s = Script { uplink: s.uplink.max(100), ..s };
        let (t, coflows) = (tree(&s), coflows(&s));
        let mut p = PriorityNetwork::new(&t, &coflows, SimSettings { admit: s.admit(), network: strict(&s), ..SimSettings::default() });
        for &(i, j, at, long) in &s.circuits {
            p.f.apply(&[circuit(i, j, at, at + 10_000_000 + long)], Time(0));
        }
        p.until(NEVER, &coflows, &changes);
        let mut ends: Vec<_> = p.f.advance(Time(NEVER)).iter().map(|d| (d.coflow, d.flow)).collect();
        let n = ends.len();
        ends.sort();
        ends.dedup();
        prop_assert_eq!((ends.len(), n), (n, coflows.iter().map(|c| c.flows.len()).sum::<usize>()), "every flow ends once");
        let delivered = p.f.delivered();
        for c in coflows.iter().filter(|c| !c.flows.is_empty()) {
            let d = delivered[&c.id];
            prop_assert_eq!(d.bytes, c.bytes());
            prop_assert!(d.over_ocs <= d.between_racks);
        }
        let seen = p.f.observe(Time(NEVER)).unwrap();
        let between: u64 = delivered.values().map(|d| d.between_racks.0).sum();
        prop_assert_eq!((seen.sent.total(), seen.backlog.total()), (between, 0));
    }

    /// The priority that a flow has anyway is no change, and neither is any under other network
    /// schedulers: not one nanosecond.
    #[test]
    fn the_same_priority_changes_nothing(s in crowded(), changes in changes(), strict_too in any::<bool>()) {
        let (t, coflows) = (tree(&s), coflows(&s));
        let network = if strict_too { strict(&s) } else { s.network };
        let settings = SimSettings { admit: s.admit(), network, ..SimSettings::default() };
        let now = PriorityNetwork::new(&t, &coflows, settings).now;
        let of = |c: u32, f: u32| now.get(c as usize).and_then(|c| c.get(f as usize)).copied();
        let same = |(c, flows, at): &PriorityUpdate| {
            let own = |&(f, p): &(u32, u8)| if network.kind == Priority { of(*c, f).map(|p| (f, p)) } else { Some((f, p)) };
            (*c, flows.iter().filter_map(own).collect(), *at)
        };
        let changes: Vec<PriorityUpdate> = changes.iter().map(same).collect();
        let told = |changes: &[PriorityUpdate]| {
            let mut p = PriorityNetwork::new(&t, &coflows, settings);
            for &(i, j, at, long) in &s.circuits {
                p.f.apply(&[circuit(i, j, at, at + 10_000_000 + long)], Time(0));
            }
            p.until(NEVER, &coflows, changes);
            (p.f.advance(Time(NEVER)), p.f.delivered(), p.f.observe(Time(NEVER)).unwrap())
        };
        prop_assert_eq!(told(&changes), told(&[]));
    }

    /// Under every network scheduler what flows have left is what coflows have left, of each no
    /// more than it had, and only ever less.
    #[test]
    fn what_is_left_is_what_was_not_sent(
        s in crowded(),
        sunflow in any::<bool>(),
        looks in prop::collection::btree_set(1u64..200_000_000, 1..6),
    ) {
        let network = if sunflow { Network { kind: NetworkKind::Sunflow, order: Order::Fifo, ..s.network } } else { s.network };
        for circuits in [false, true] {
            let t = if circuits || sunflow { tree(&s) } else { topology(4, 2, 2000) };
            let coflows = coflows(&s);
            let settings = SimSettings { circuits: circuits || sunflow, network, ..SimSettings::default() };
            let mut p = PriorityNetwork::new(&t, &coflows, settings);
            let (mut ended, mut before) = (BTreeSet::new(), BTreeMap::new());
            let mut from = 0;
            for &at in &looks {
                for c in coflows.iter().filter(|c| from <= c.arrival.0 && c.arrival.0 < at) {
                    p.f.add_flows(c, &[], c.arrival);
                }
                from = at;
                ended.extend(p.f.advance(Time(at)).iter().map(|d| (d.coflow, d.flow)));
                let units = p.units();
                let mut parts: BTreeMap<CoflowId, u128> = BTreeMap::new();
                p.f.engine.parts(&mut |part| *parts.entry(part.coflow).or_default() += part.left);
                for c in coflows.iter().filter(|c| c.arrival.0 < at) {
                    let mut sum = 0;
                    for (k, flow) in c.flows.iter().enumerate() {
                        let id = (c.id, FlowId::from(k));
                        prop_assert_eq!(units.contains_key(&id), !ended.contains(&id), "it is under way until it ends");
                        let left = units.get(&id).copied().unwrap_or(0);
                        let whole = u128::from(flow.bytes.0) * bundle::WORK_PER_BYTE;
                        prop_assert!(left <= before.insert(id, left).unwrap_or(whole) + bundle::WORK_PER_BYTE);
                        sum += left;
                    }
                    prop_assert_eq!(sum, parts.get(&c.id).copied().unwrap_or(0));
                }
                let whole = |u: u128| bundle::bytes(u.next_multiple_of(bundle::WORK_PER_BYTE));
                prop_assert_eq!(p.f.left(Time(at)), units.iter().map(|(&(c, f), &u)| (c, f, whole(u))).collect::<Vec<_>>());
            }
        }
    }
}

/// One link, three flows of a megabyte each; the last overtakes in the middle, then the second.
#[test]
fn a_flow_overtakes_and_the_other_keeps_what_it_has_sent() {
    let t = topology(2, 1, 1000);
    let network = Network { kind: Priority, ..Network::default() };
    let mut f =
        SimFabric::new(t, SimSettings { circuits: false, network, ..SimSettings::default() });
    let one = |id| CoflowSpec {
        priorities: Priorities::default(),
        ..coflow(id, 0, &[(0, 1, 1_000_000)])
    };
    for id in 0..3 {
        f.add_flows(&one(id), &[], Time(0));
    }
    let second = |n: u64, part: u64| Time(time(1000, n * 1_000_000 / part));
    let half = second(1, 2);
    f.prioritise(CoflowId(2), &[(FlowId(0), 1)], half);
    assert_eq!(
        f.left(half),
        [
            (CoflowId(0), FlowId(0), Bytes(500_000)),
            (CoflowId(1), FlowId(0), Bytes(1_000_000)),
            (CoflowId(2), FlowId(0), Bytes(1_000_000))
        ]
    );
    f.prioritise(CoflowId(1), &[(FlowId(0), 0)], second(1, 1));
    f.prioritise(CoflowId(1), &[(FlowId(9), 7)], second(1, 1));
    f.prioritise(CoflowId(9), &[(FlowId(0), 7)], second(1, 1));
    let ends: Vec<(u32, u64)> =
        f.advance(Time(NEVER)).iter().map(|d| (d.coflow.0, d.at.0)).collect();
    assert_eq!(ends, [(1, second(2, 1).0), (2, second(5, 2).0), (0, second(3, 1).0)]);
}

/// One link: a coflow of a megabyte, one of two, and behind them one of half a megabyte.
#[test]
fn equals_share_and_the_next_priority_waits() {
    let t = topology(2, 1, 1000);
    let ends = |within| {
        let network = Network { kind: Priority, within, ..Network::default() };
        let mut f = SimFabric::new(
            t.clone(),
            SimSettings { circuits: false, network, ..SimSettings::default() },
        );
        for (id, bytes, priority) in [(0, 2_000_000, 3), (1, 1_000_000, 3), (2, 500_000, 4)] {
            let priorities = Priorities { all: Some(priority), flows: vec![] };
            f.add_flows(
                &CoflowSpec { priorities, ..coflow(id, 0, &[(0, 1, bytes)]) },
                &[],
                Time(0),
            );
        }
        f.advance(Time(NEVER)).iter().map(|d| (d.coflow.0, d.at.0)).collect::<Vec<_>>()
    };
    let at = |bytes| time(1000, bytes);
    assert_eq!(ends(Within::MaxMin), [(1, at(2_000_000)), (0, at(3_000_000)), (2, at(3_500_000))]);
    assert_eq!(
        ends(Within::Greedy),
        [(1, at(1_000_000)), (0, at(3_000_000)), (2, at(3_500_000))],
        "the smallest first"
    );
}

/// Four flows between two hosts of one coflow are one group: they have parts of what is left by
/// their sizes. One leaves it for a class of its own and comes back.
#[test]
fn flows_leave_their_group_with_their_part_and_come_back() {
    let t = topology(2, 1, 1000);
    let network = Network { kind: Priority, ..Network::default() };
    let mut f =
        SimFabric::new(t, SimSettings { circuits: false, network, ..SimSettings::default() });
    let sizes = [100_000, 200_000, 300_000, 400_000];
    let all: Vec<_> = sizes.iter().map(|&n| (0, 1, n)).collect();
    f.add_flows(
        &CoflowSpec { priorities: Priorities::default(), ..coflow(0, 0, &all) },
        &[],
        Time(0),
    );
    let at = |bytes: u64| Time(time(1000, bytes));
    // To the byte that is under way.
    let left = |f: &mut SimFabric, now: Time, want: [u64; 4]| {
        let left: Vec<u64> = f.left(now).iter().map(|l| l.2.0).collect();
        assert!(
            left.len() == 4 && left.iter().zip(want).all(|(l, w)| l.abs_diff(w) <= 1),
            "{left:?} instead of {want:?}"
        );
    };
    left(&mut f, at(500_000), [50_000, 100_000, 150_000, 200_000]);
    f.prioritise(CoflowId(0), &[(FlowId(2), 2)], at(500_000));
    // It goes alone for 60 kB; then with the others, by what they have left: 90 of 440.
    left(&mut f, at(560_000), [50_000, 100_000, 90_000, 200_000]);
    f.prioritise(CoflowId(0), &[(FlowId(2), PLAIN)], at(560_000));
    left(&mut f, at(780_000), [25_000, 50_000, 45_000, 100_000]);
    let ends: Vec<(u32, Time)> = f.advance(Time(NEVER)).iter().map(|d| (d.flow.0, d.at)).collect();
    assert_eq!(ends, [0, 1, 2, 3].map(|k| (k, at(1_000_000))));
    assert_eq!(f.delivered()[&CoflowId(0)].bytes, Bytes(1_000_000));
}
