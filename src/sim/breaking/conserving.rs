//! Work is conserved while coflows are taken back: no flow waits, or goes slower than it could,
//! while every link of its path has room.
//!
//! Scripts have few hosts and many coflows between the same two, so a cancelled coflow often has
//! the first flow of a bundle. Between two instants at which something happens every flow has one
//! rate, and what it has sent tells it, to the unit.

use super::*;
use crate::bundle::BundleRoute;
use crate::coflows::network::Within;
use crate::coflows::orders::{Aalo as Queues, Sharing};
use crate::units::NANOS;

/// Bits per second of a link that rounding may leave unused.
const ROUNDING: u64 = 1000;

/// Units of a link that the flows of one script may leave unused together where all flows of a
/// coflow are to end at once. Rates are whole bits per second, rounded up. So each flow ends up to
/// one bit early for each second, and what it had is given away when the last one ends. At most 18
/// flows of 3 MB take at most 4.4 s.
const EARLY: u128 = 80 * NANOS as u128;

/// A big switch of four ports, or two racks of two hosts (and one more) with uplinks that bind and
/// a plane.
fn network(big_switch: bool) -> Arc<Topology> {
    let plane = Plane {
        id: PlaneId(0),
        rate: BitRate::mbit(1000),
        delta: Span::millis(10),
        stop: StopMode::NotAllStop,
        duplex: false,
    };
    let (nic, uplink) = (BitRate::mbit(100), BitRate::mbit(150));
    Arc::new(match big_switch {
        true => Topology::uniform("t", 4, 1, nic, nic, vec![]),
        false => Topology::uniform("t", 3, 2, nic, uplink, vec![plane]),
    })
}

/// A coflow: when it comes, its flows, and after how long it is taken back, if it is.
type Coming = (u64, Vec<(u32, u32, u64)>, Option<u64>);

#[derive(Clone, Debug)]
struct SmallCase {
    big_switch: bool,
    network: Network,
    coflows: Vec<Coming>,
}

fn few() -> impl Strategy<Value = SmallCase> {
    let kind =
        prop::sample::select(vec![MaxMin, FairPerCoflow, Fifo, Varys, Aalo, Sincronia, Priority]);
    let within = prop::sample::select(vec![Within::Greedy, Within::MaxMin]);
    let sharing = prop::sample::select(vec![Sharing::Strict, Sharing::Weighted]);
    let network = (kind, within, sharing).prop_map(|(kind, within, sharing)| {
        let aalo = Queues {
            queues: 3,
            first: Bytes(200_000),
            factor: 5,
            sharing,
            interval: crate::units::Span::ZERO,
        };
        Network { kind, within, aalo, ..Network::default() }
    });
    let flows = prop::collection::vec((0u32..2, 2u32..4, 200_000u64..3_000_000), 1..4);
    let comes = prop_oneof![1 => (0u64..8).prop_map(|k| k * 10 * MS), 2 => 0u64..80 * MS];
    let coflows = prop::collection::vec((comes, flows, prop::option::of(MS..120 * MS)), 2..7);
    (any::<bool>(), network, coflows).prop_map(|(big_switch, network, coflows)| SmallCase {
        big_switch,
        network,
        coflows,
    })
}

/// What every flow that has not finished has sent, and the links on its way.
fn underway(f: &mut SimFabric) -> Vec<(CoflowId, u128, Vec<u32>)> {
    let parts = f.parts(|_| true);
    let way = |((a, b), p): ((RackId, RackId), InFlight)| {
        let route = if a == b {
            BundleRoute::Local
        } else {
            f.crossbars.plane(a, b).map_or(BundleRoute::Eps, BundleRoute::Ocs)
        };
        (p.coflow, p.sent, f.links.path(p.hosts.0, p.hosts.1, route).links().to_vec())
    };
    parts.into_iter().map(way).collect()
}

/// Lets `span` pass, in which nothing happens by itself, and checks that every flow has a link on
/// its way that is full but for `unused` units.
fn no_flow_waits_for_room(
    f: &mut SimFabric,
    span: Span,
    unused: u128,
) -> Result<(), TestCaseError> {
    let (now, before) = (f.now, underway(f));
    prop_assert!(f.advance(now + span).is_empty(), "nothing was to happen");
    let after = underway(f);
    prop_assert_eq!(before.len(), after.len());
    let mut load: BTreeMap<u32, u128> = BTreeMap::new();
    for ((id, sent, way), (same, more, _)) in before.iter().zip(&after) {
        prop_assert_eq!(id, same);
        way.iter().for_each(|&l| *load.entry(l).or_default() += more - sent);
    }
    let room = |l: &u32| {
        (u128::from(f.links.capacity()[*l as usize]) * u128::from(span.0)).saturating_sub(load[l])
    };
    for (id, _, way) in &before {
        let least = way.iter().map(room).min().expect("a path has links");
        prop_assert!(
            least <= u128::from(ROUNDING * span.0) + unused,
            "at {} ns for {} ns coflow {} has room for {} bits/s on all of {:?}",
            now.0,
            span.0,
            id.0,
            least / u128::from(span.0),
            way
        );
    }
    Ok(())
}

/// Plays coflows and checks the law in every interval between two events.
fn play_few(s: &SmallCase) -> Result<(), TestCaseError> {
    let settings = SimSettings {
        admit: Admit::All,
        network: s.network,
        circuits: !s.big_switch,
        ..SimSettings::default()
    };
    let mut f = SimFabric::new(network(s.big_switch), settings);
    if !s.big_switch {
        f.apply(&[circuit(0, 1, 0, 70), circuit(1, 2, 20, 200)], Time(0));
    }
    let mut events: Vec<(u64, usize, bool)> = Vec::new();
    for (k, (at, _, gone)) in s.coflows.iter().enumerate() {
        events.push((*at, k, true));
        events.extend(gone.map(|after| (at + after, k, false)));
    }
    events.sort_unstable();
    let (mut events, mut finished) = (events.into_iter().peekable(), 0);
    let unused = if matches!(s.network.kind, FairPerCoflow | Varys) { EARLY } else { 0 };
    loop {
        while let Some((at, c, comes)) = events.next_if(|e| e.0 <= f.now.0) {
            match comes {
                true => f.add_flows(&coflow(c, &s.coflows[c].1), &[], Time(at)),
                false => f.cancel(CoflowId::from(c), Time(at)),
            }
        }
        let next = events.peek().map(|e| Time(e.0)).into_iter().chain(f.next_event()).min();
        // Where no event is ever to come a flow may wait all the same.
        let span = next.map_or(Span::millis(1), |t| t.since(f.now));
        // The flows of a coflow that end together do so to rounding, some nanoseconds apart.
        if span > Span::micros(1) {
            no_flow_waits_for_room(&mut f, Span(span.0 - 1), unused)?;
        }
        let Some(next) = next else { break };
        finished += f.advance(next).len();
    }
    prop_assert!(f.parts(|_| true).is_empty() && !f.is_moving(), "nothing is left behind");
    let all: usize = s.coflows.iter().map(|c| c.1.len()).sum();
    let kept: usize = s.coflows.iter().filter(|c| c.2.is_none()).map(|c| c.1.len()).sum();
    prop_assert!((kept..=all).contains(&finished));
    Ok(())
}

proptest! {
    #![proptest_config(crate::testing::drawn(300))]

    #[test]
    fn no_flow_waits_while_all_its_links_have_room(s in few()) {
        play_few(&s)?;
    }
}

#[test]
fn who_is_behind_a_cancelled_flow_between_the_same_hosts_takes_its_place() {
    for kind in [MaxMin, FairPerCoflow, Fifo, Varys, Aalo, Sincronia, Priority] {
        for big_switch in [true, false] {
            let network = Network { kind, ..Network::default() };
            let coflows =
                vec![(0, vec![(0, 2, 500_000)], Some(5 * MS)), (MS, vec![(0, 2, 2_000_000)], None)];
            play_few(&SmallCase { big_switch, network, coflows })
                .unwrap_or_else(|e| panic!("{kind:?}, big switch {big_switch}: {e}"));
        }
    }
}
