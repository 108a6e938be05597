//! What the end of a flow reaches, against giving rates again to all coflows behind it, to the bit:
//! chains of flows, and levels of links.

use super::*;

/// All that a run tells: every finish in its order, looks in between and what every coflow has
/// received in the end.
type ReachRun = (Vec<FlowFinished>, Vec<Observation>, BTreeMap<CoflowId, CoflowReceipt>);

/// Runs coflows on a big switch; `struck` halves an interface for a while, and takes the first
/// coflow back.
fn run(
    t: &Arc<Topology>,
    (network, resolution): (Network, Span),
    flows: &[Vec<(u32, u32, u64)>],
    gaps: &[u64],
    (slow, struck): (bool, bool),
) -> ReachRun {
    let mut f = SimFabric::new(
        t.clone(),
        SimSettings { circuits: false, network, resolution, ..SimSettings::default() },
    );
    assert!(f.links.two_sided(false));
    if slow {
        f.engine = Box::new(ordered::Ordered::slow(network, f.links.capacity()));
    }
    let (mut at, mut done, mut seen) = (0, Vec::new(), Vec::new());
    for (k, flows) in flows.iter().enumerate() {
        at += gaps[k % gaps.len()];
        f.add_flows(&coflow(k as u32, at, flows), &[], Time(at));
        if struck && k == 1 {
            f.prefer(CoflowId(1), 0, Time(at));
            f.cancel(CoflowId(0), Time(at));
        }
        if struck && k > 1 {
            f.prioritise(
                CoflowId(k as u32 - 1),
                &[(FlowId(0), 1), (FlowId(2), k as u8 % 8)],
                Time(at),
            );
        }
        if struck && k % 3 == 2 {
            let half = BrokenPart::Links { which: Which::Nic(HostId(k as u32 % 8)), percent: 50 };
            f.strike(&half, k % 2 == 0, Time(at));
        }
        done.extend(f.advance(Time(at + 1)));
        seen.push(f.observe(Time(at + 1)).unwrap());
    }
    done.extend(f.advance(Time(NEVER)));
    // Where flows share max-min, those of one instant are reported in no order.
    if network.within == Within::MaxMin {
        done.sort_unstable_by_key(|d| (d.at, d.coflow, d.flow));
    }
    (done, seen, f.delivered())
}

/// Sizes that are often equal, so that many flows end at once; or that never are.
fn size() -> impl Strategy<Value = u64> {
    prop_oneof![1 => Just(0u64), 4 => (1u64..5).prop_map(|k| 250_000 * k), 4 => 1u64..3_000_000]
}

/// All pairs of some senders and receivers, as a shuffle; or a few pairs.
fn flows() -> impl Strategy<Value = Vec<(u32, u32, u64)>> {
    let few = prop::collection::vec((0u32..8, 0u32..8, size()), 0..12);
    let hosts = || prop::collection::btree_set(0u32..8, 1..6);
    let all =
        (hosts(), hosts(), prop::collection::vec(size(), 1..8)).prop_map(|(from, to, sizes)| {
            let pairs = from.iter().flat_map(|&a| to.iter().map(move |&b| (a, b)));
            pairs.enumerate().map(|(k, (a, b))| (a, b, sizes[k % sizes.len()])).collect()
        });
    prop_oneof![few, all]
}

/// Runs coflows up to their ends; before what comes after each of `looks` the bytes that every rack
/// has sent by then are seen.
fn carried(
    f: &mut SimFabric,
    flows: &[Vec<(u32, u32, u64)>],
    gaps: &[u64],
    looks: &[Time],
) -> Vec<Vec<u64>> {
    let arrivals = (0..flows.len()).scan(0, |at, k| {
        *at += gaps[k % gaps.len()];
        Some((Time(*at), Some(k)))
    });
    let mut all: Vec<(Time, Option<usize>)> =
        arrivals.chain(looks.iter().map(|&at| (at, None))).collect();
    all.sort_unstable();
    let mut seen = Vec::new();
    for (at, what) in all {
        if let Some(k) = what {
            f.add_flows(&coflow(k as u32, at.0, &flows[k]), &[], at);
        } else {
            let sent = f.observe(at).unwrap().sent;
            seen.push(
                (0..8).map(|r| (0..8).map(|to| sent.get(RackId(r), RackId(to))).sum()).collect(),
            );
        }
    }
    while let Some(t) = f.next_event() {
        f.advance(t);
    }
    seen
}

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    #[test]
    fn what_links_carry_over_time_is_what_is_seen_in_between(
        coflows in prop::collection::vec(flows(), 1..9),
        gaps in prop::collection::vec(span(30_000_000), 1..6),
        network in network(),
        resolution in resolution(),
    ) {
        let t = topology(8, 1, 1000);
        let settings = |bucket| SimSettings { circuits: false, network, bucket, resolution, ..SimSettings::default() };
        let new = |bucket| SimFabric::new(t.clone(), settings(bucket));
        let mut f = new(Some(Span(5_000_000)));
        carried(&mut f, &coflows, &gaps, &[]);
        let u = f.utilisation().unwrap();
        let looks: Vec<Time> = (1..u.links[0].bytes.len() as u64).map(|k| Time(k * u.bucket.0)).collect();
        for (k, seen) in carried(&mut new(None), &coflows, &gaps, &looks).into_iter().enumerate() {
            let told: Vec<u64> = (0..8).map(|rack| u.links[2 * rack].bytes[..=k].iter().sum()).collect();
            if network.within == Within::Sums {
                // Pairs have equal parts of their bytes there, whatever their senders have sent:
                // only all racks together are the same.
                let (told, seen) = (told.iter().sum::<u64>(), seen.iter().sum::<u64>());
                prop_assert!(told.abs_diff(seen) < 64, "{} and {} in bucket {} of {:?}", told, seen, k, u.bucket);
                continue;
            }
            for (rack, (seen, told)) in seen.into_iter().zip(told).enumerate() {
                // Of each of eight pairs less than a byte is not told.
                prop_assert!(seen <= told && told < seen + 8, "r{}: {} and {} in bucket {} of {:?}", rack, told, seen, k, u.bucket);
            }
        }
    }
}

proptest! {
    #![proptest_config(crate::testing::drawn(512))]

    #[test]
    fn following_is_deciding_for_all(
        coflows in prop::collection::vec(flows(), 1..9),
        gaps in prop::collection::vec(span(30_000_000), 1..6),
        network in flow_by_flow(),
        resolution in resolution(),
        speeds in prop::collection::vec(prop::sample::select(vec![1000u64, 1000, 400, 100, 7]), 8),
        struck in any::<bool>(),
    ) {
        let kind = if network.kind == MaxMin { Varys } else { network.kind };
        let mut t = (*topology(8, 1, 1000)).clone();
        t.hosts.iter_mut().zip(speeds).for_each(|(h, mbit)| h.nic = BitRate::mbit(mbit));
        let (t, network) = (Arc::new(t), Network { kind, ..network });
        let network = (network, resolution);
        let (fast, slow) = (run(&t, network, &coflows, &gaps, (false, struck)), run(&t, network, &coflows, &gaps, (true, struck)));
        prop_assert_eq!(fast, slow);
    }

    /// A shuffle that is kept by its two sides is its flows one by one: one more flow, which takes
    /// no time, makes it a list.
    #[test]
    fn a_shuffle_is_its_flows(
        coflows in prop::collection::vec(flows(), 1..9),
        gaps in prop::collection::vec(span(30_000_000), 1..6),
        network in network(),
        struck in any::<bool>(),
    ) {
        let t = topology(8, 1, 1000);
        let mut lists = coflows.clone();
        lists.iter_mut().filter(|flows| !flows.is_empty()).for_each(|flows| flows.push((7, 7, 0)));
        prop_assert!(lists.iter().all(|flows| coflow(0, 0, flows).flows.as_shuffle().is_none()));
        let [mut one, mut all] = [&coflows, &lists].map(|flows| run(&t, (network, Span::ZERO), flows, &gaps, (false, struck)));
        all.0.retain(|d| d.flow.index() < coflows[d.coflow.index()].len());
        // What takes no time comes first in one case and last in the other.
        [&mut one, &mut all].into_iter().for_each(|r| r.0.sort_unstable_by_key(|d| (d.at, d.coflow, d.flow)));
        prop_assert_eq!(one, all);
    }
}
