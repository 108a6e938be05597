//! Max-min fairness held to a slow twin that knows single flows only, and fills everything at every
//! event.

use super::*;
use crate::demand::hedera::{self, FlowMeter};

/// A flow of the twin.
struct TwinFlow {
    of: FlowFinished,
    hosts: (HostId, HostId),
    left: u128,
}

/// The rate of every flow: look at every link, fill the one with the smallest share, begin again.
fn fill(paths: &[Vec<u32>], capacity: &[u64]) -> Vec<u64> {
    let mut rate: Vec<Option<u64>> = vec![None; paths.len()];
    loop {
        let share = |l: u32| {
            let on = || paths.iter().zip(&rate).filter(|p| p.0.contains(&l)).map(|p| *p.1);
            let growing = on().filter(Option::is_none).count() as u64;
            (capacity[l as usize] - on().flatten().sum::<u64>()).checked_div(growing)
        };
        let Some((s, l)) = (0..capacity.len() as u32).filter_map(|l| Some((share(l)?, l))).min()
        else {
            break;
        };
        for (r, _) in rate.iter_mut().zip(paths).filter(|(r, p)| r.is_none() && p.contains(&l)) {
            *r = Some(s);
        }
    }
    rate.into_iter().map(|r| r.expect("every flow crosses a link")).collect()
}

/// When every flow ends, given which circuits have light and when, and when hosts get which lists
/// of switches.
pub(super) fn twin(
    t: &Arc<Topology>,
    table: &[Reservation],
    coflows: &[CoflowSpec],
    moves: &[(u64, Steer)],
) -> Vec<FlowFinished> {
    coarse(t, table, coflows, moves, 1)
}

/// The same; what flows leave that end is shared again at multiples of `resolution` nanoseconds
/// only.
fn coarse(
    t: &Arc<Topology>,
    table: &[Reservation],
    coflows: &[CoflowSpec],
    moves: &[(u64, Steer)],
    resolution: u64,
) -> Vec<FlowFinished> {
    // Links that may fail are in every path, also where they are never the tightest.
    let mut links = links::Links::new(t.clone(), true, true, true);
    let (mut now, mut next, mut flows, mut done) = (0u64, 0, Vec::<TwinFlow>::new(), Vec::new());
    loop {
        while next < coflows.len() && coflows[next].arrival.0 <= now {
            for (k, f) in coflows[next].flows.iter().enumerate() {
                let of = FlowFinished { coflow: coflows[next].id, flow: k.into(), at: Time(now) };
                match f.from == f.to || f.bytes.0 == 0 {
                    true => done.push(of),
                    false => flows.push(TwinFlow {
                        of,
                        hosts: (f.from, f.to),
                        left: u128::from(f.bytes.0) * bundle::WORK_PER_BYTE,
                    }),
                }
            }
            next += 1;
        }
        for (_, m) in moves.iter().filter(|m| m.0 == now) {
            links.steer((m.from, m.to), m.list.as_ref()).unwrap();
        }
        let path = |f: &TwinFlow| {
            let racks = (t.rack_of(f.hosts.0), t.rack_of(f.hosts.1));
            let light = table.iter().find(|r| (r.input, r.output) == racks && r.is_up(Time(now)));
            let route = match light {
                Some(r) => bundle::BundleRoute::Ocs(r.plane),
                None if racks.0 == racks.1 => bundle::BundleRoute::Local,
                None => links
                    .list_of(f.hosts)
                    .map_or(bundle::BundleRoute::Eps, bundle::BundleRoute::List),
            };
            links.path(f.hosts.0, f.hosts.1, route).links().to_vec()
        };
        let rates = fill(&flows.iter().map(path).collect::<Vec<_>>(), links.capacity());
        let end = |f: &TwinFlow, r: u64| now + f.left.div_ceil(u128::from(r)) as u64;
        let ends = flows
            .iter()
            .zip(&rates)
            .filter(|f| *f.1 > 0)
            .map(|(f, &r)| end(f, r).next_multiple_of(resolution));
        let edges = table
            .iter()
            .flat_map(|r| [r.up_from.0, r.until.0])
            .filter(|&t| t > now && !flows.is_empty());
        let arrival = coflows.get(next).map(|c| c.arrival.0);
        let steered = moves.iter().map(|m| m.0).filter(|&at| at > now);
        let Some(then) = ends.chain(edges).chain(arrival).chain(steered).min() else { break };
        for (f, rate) in flows.iter_mut().zip(rates).filter(|f| f.1 > 0) {
            f.of.at = Time(end(f, rate));
            f.left = f.left.saturating_sub(u128::from(rate) * u128::from(then - now));
        }
        done.extend(flows.extract_if(.., |f| f.left == 0).map(|f| f.of));
        now = then;
    }
    done.sort();
    done
}

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    #[test]
    fn links_with_clocks_are_single_flows_to_the_bit(
        s in script(),
        big: bool,
        resolution in resolution(),
        looks in prop::collection::vec(span(90_000_000), 0..4),
    ) {
        // A big switch without circuits has another engine than racks whose uplinks bind.
        let t = if big { topology(8, 1, 1000) } else { tree(&s) };
        let settings = SimSettings { admit: s.admit(), circuits: !big, resolution, ..SimSettings::default() };
        let mut f = SimFabric::new(t.clone(), settings);
        let mut table = Vec::new();
        if !big {
            for &(i, j, at, long) in &s.circuits {
                f.apply(&[circuit(i, j, at, at + 10_000_000 + long)], Time(0));
            }
            table.extend(f.observe(Time(0)).unwrap().programmed.timetable.iter().copied());
        }
        let (mut at, mut coflows, mut done) = (0, Vec::new(), Vec::new());
        for (k, flows) in s.flows.iter().enumerate() {
            at += s.gaps[k];
            let c = coflow(k as u32, at, flows);
            f.add_flows(&c, &vec![true; c.flows.len()], Time(at));
            coflows.push(c);
        }
        // Observing changes nothing.
        for look in looks {
            at += look;
            done.extend(f.advance(Time(at)));
            f.observe(Time(at)).unwrap();
            f.progress(|_| true);
        }
        done.extend(f.advance(Time(NEVER)));
        done.sort();
        prop_assert_eq!(done, coarse(&t, &table, &coflows, &[], resolution.0.max(1)));
    }

    #[test]
    fn links_that_are_never_the_tightest_may_be_left_out(s in script(), plane in prop::sample::select(vec![500u64, 1000, 3000])) {
        let mut t = (*topology(8, 1, s.uplink)).clone();
        t.planes[0].rate = BitRate::mbit(plane);
        let t = Arc::new(t);
        let play = |may_fail| {
            let mut f = SimFabric::new(t.clone(), SimSettings { admit: s.admit(), network: s.network, may_fail, ..SimSettings::default() });
            for &(i, j, at, long) in &s.circuits {
                f.apply(&[circuit(i, j, at, at + 10_000_000 + long)], Time(0));
            }
            let (mut at, mut done) = (0, Vec::new());
            for (k, flows) in s.flows.iter().enumerate() {
                at += s.gaps[k];
                f.add_flows(&coflow(k as u32, at, flows), &vec![true; flows.len()], Time(at));
            }
            done.extend(f.advance(Time(at + 200_000_000)));
            // Flows that end at one instant are reported in another order.
            done.sort();
            (done, f.observe(Time(at + 200_000_000)).unwrap(), f.delivered())
        };
        prop_assert_eq!(play(false), play(true));
    }

    #[test]
    fn circuits_as_wide_as_interfaces_change_no_rate(
        s in script(), hosts in 1usize..3, some: bool, looks in prop::collection::vec(span(60_000_000), 1..4), gone: bool,
    ) {
        let mut t = (*topology(8 / hosts, hosts, 2000)).clone();
        t.planes[0].rate = BitRate::mbit(1000 * hosts as u64);
        let t = Arc::new(t);
        let admit = if some { Admit::Marked } else { Admit::All };
        let racks = t.rack_count() as u32;
        let play = |by_link: bool, counters, backlog| {
            let settings = SimSettings { admit, counters, backlog, buffer: Bytes(700_000), ..SimSettings::default() };
            let mut f = SimFabric::new(t.clone(), settings);
            assert!(f.links.two_sided(true));
            if by_link {
                f.engine = Box::new(fair_share::FairShare::new(f.links.capacity(), None));
            }
            for &(i, j, at, long) in &s.circuits {
                f.apply(&[circuit(i % racks, j % racks, at, at + 10_000_000 + long)], Time(0));
            }
            // Flows that end at one instant are reported in another order.
            let until = |f: &mut SimFabric, at| {
                let mut done = f.advance(at);
                done.sort();
                done
            };
            let (mut at, mut told) = (0, Vec::new());
            for (k, flows) in s.flows.iter().enumerate() {
                at += s.gaps[k];
                let marks: Vec<bool> = flows.iter().map(|f| f.2 % 3 > 0).collect();
                f.add_flows(&coflow(k as u32, at, flows), &marks, Time(at));
                let mut now = at;
                for look in &looks {
                    now += look % (s.gaps.get(k + 1).copied().unwrap_or(90_000_000) / 4 + 1);
                    told.push((until(&mut f, Time(now)), f.observe(Time(now)).unwrap(), f.progress(|id| id.0 % 2 == 0), f.left(Time(now))));
                }
                at = at.max(now);
                if gone && k == 1 {
                    f.cancel(CoflowId(0), Time(at));
                }
            }
            (told, until(&mut f, Time(NEVER)), f.delivered())
        };
        let (by_pair, by_link) = (play(false, true, true), play(true, true, true));
        prop_assert_eq!(&by_pair, &by_link);
        // Of pairs without a circuit it need not know what waits.
        let few = play(false, false, false);
        for (a, b) in few.0.iter().zip(&by_pair.0) {
            let waits = |(from, to)| a.1.backlog.get(from, to) == b.1.backlog.get(from, to);
            let mut lit = b.1.programmed.timetable.iter().filter(|r| r.is_up(b.1.at)).map(|r| (r.input, r.output));
            prop_assert!(a.0 == b.0 && a.1.ports == b.1.ports && lit.all(waits) && a.1.backlog.entries().all(|e| waits((e.0, e.1))));
        }
        prop_assert_eq!((&few.1, &few.2), (&by_pair.1, &by_pair.2));
        let without = play(false, false, true);
        for (a, b) in without.0.iter().zip(&by_pair.0) {
            prop_assert_eq!((&a.0, &a.1.backlog, &a.1.ports), (&b.0, &b.1.backlog, &b.1.ports));
            prop_assert!(a.1.sent.is_zero() && a.1.over_ocs.is_zero());
        }
        prop_assert_eq!((without.1, without.2), (by_pair.1, by_pair.2));
    }
}

#[test]
fn large_flows_are_those_that_a_meter_counts() {
    let t = topology(4, 1, 1000);
    let (interval, settings) =
        (Span::millis(100), SimSettings { circuits: false, ..SimSettings::default() });
    let (mut f, mut meter, mut most) =
        (SimFabric::new(t.clone(), settings), FlowMeter::default(), 0);
    let tenths = hedera::tenths(&t, interval);
    // Some are large throughout, some when they begin, some never.
    let mut flows = (1..40)
        .map(|k| (k % 4, (k * 7 + k / 4) % 4, 700_000 * u64::from(k % 9 + 1) + u64::from(k)));
    for k in 0..60 {
        let now = Time(7_000_003 * k);
        if k % 4 == 1 {
            f.add_flows(
                &coflow(k as u32, now.0, &flows.by_ref().take(4).collect::<Vec<_>>()),
                &[],
                now,
            );
        }
        if k == 22 {
            f.cancel(CoflowId(21), now);
        }
        f.observe(now).unwrap();
        let elephants =
            f.elephants(&tenths).unwrap().expect("a big switch keeps count of large flows");
        most = most.max(elephants.iter().map(|e| e.2).sum());
        assert_eq!(elephants, meter.elephants(&f.flows().unwrap(), &t, interval), "at {now}");
    }
    assert!(
        most > 4 && f.elephants(&tenths).unwrap().is_some_and(|e| e.iter().next().is_none()),
        "{most}"
    );
}
