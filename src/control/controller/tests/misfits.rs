//! Observations that do not fit the network: they are refused, and no observation whatever makes
//! the controller panic.

use proptest::prelude::*;

use super::*;
use crate::demand::HostFlow;
use crate::demand::hedera::Elephants;
use crate::fabric::Cut;
use crate::ids::HostId;
use crate::topology::graph::{Cable, Graph};

const OPEN: Time = Time::MAX;
const ESTIMATORS: [Estimator; 6] = [
    Estimator::Counters,
    Estimator::Backlog,
    Estimator::Hedera,
    Estimator::HederaRacks,
    Estimator::Declared,
    Estimator::Combined,
];

fn held(plane: u32, input: u32, output: u32) -> Reservation {
    let (plane, input, output) = (PlaneId(plane), RackId(input), RackId(output));
    Reservation { plane, input, output, setup_at: at(0), up_from: at(10), until: OPEN }
}

fn show(seen: &mut Observation, more: Reservation) {
    let all = &mut seen.programmed.timetable;
    *all = all.iter().copied().chain([more]).collect();
}

fn damage(seen: &mut Observation, of: Damage) {
    seen.damage.push(Damage { what: "l".into(), ..of });
}

/// A matrix as it can be read from a file: its number of racks and its cells do not belong
/// together.
fn torn() -> DemandMatrix {
    serde_json::from_str(r#"{"racks":4,"cells":[1]}"#).unwrap()
}

#[test]
fn an_observation_that_does_not_fit_is_refused_and_the_state_stays() {
    type Warp = fn(&mut Observation);
    let misfits: [(Warp, &str); 18] = [
        (|s| s.sent = DemandMatrix::zero(3), "`sent` is a matrix of 3 racks; the network has 4"),
        (
            |s| s.over_ocs = DemandMatrix::zero(5),
            "`over_ocs` is a matrix of 5 racks; the network has 4",
        ),
        (
            |s| s.backlog = DemandMatrix::zero(0),
            "`backlog` is a matrix of 0 racks; the network has 4",
        ),
        (|s| s.sent = torn(), "`sent` is no square matrix: 1 cell for 4 racks"),
        (
            |s| show(s, held(0, 9, 1)),
            "a circuit of plane 0 from rack 9 to rack 1; the network has 4 racks and 1 plane",
        ),
        (
            |s| show(s, held(0, 1, 4)),
            "a circuit of plane 0 from rack 1 to rack 4; the network has 4 racks and 1 plane",
        ),
        (
            |s| show(s, held(1, 0, 1)),
            "a circuit of plane 1 from rack 0 to rack 1; the network has 4 racks and 1 plane",
        ),
        (
            |s| s.elephants = Some(Elephants::from_cells(3, vec![0; 9])),
            "`elephants` are of 3 hosts; the network has 4",
        ),
        (|s| s.ports.clear(), "ports of 0 planes; the network has 1"),
        (|s| s.ports.push(vec![]), "ports of 2 planes; the network has 1"),
        (|s| s.ports[0].truncate(3), "3 ports of plane 0; the network has 4 racks"),
        (
            |s| s.ports[0].push(PortCounters::default()),
            "5 ports of plane 0; the network has 4 racks",
        ),
        (
            |s| damage(s, Damage { port: Some((PlaneId(0), RackId(4))), ..Damage::default() }),
            "damage of what the network has not: port 4 of plane 0",
        ),
        (
            |s| damage(s, Damage { port: Some((PlaneId(7), RackId(0))), ..Damage::default() }),
            "damage of what the network has not: port 0 of plane 7",
        ),
        (
            |s| damage(s, Damage { cut: Some(Cut::Rack(RackId(4))), ..Damage::default() }),
            "damage of what the network has not: rack 4",
        ),
        (
            |s| damage(s, Damage { cut: Some(Cut::Host(HostId(4))), ..Damage::default() }),
            "damage of what the network has not: host 4",
        ),
        (
            |s| damage(s, Damage { cable: Some(0), ..Damage::default() }),
            "damage of what the network has not: link 0 between switches",
        ),
        (|s| s.sent = DemandMatrix::default(), "`sent` is a matrix of 0 racks; the network has 4"),
    ];
    for (warp, why) in misfits {
        let mut w = world(policy(SchedulerKind::Bipartite));
        w.backlog.set(RackId(0), RackId(1), 1_000_000);
        w.run_until(at(150));
        let before = w.snapshot();
        assert_eq!(w.up(), [(0, 1)]);
        w.warp = Box::new(warp);
        w.backlog = DemandMatrix::zero(4);
        w.run_until(at(350));
        let s = w.snapshot();
        assert_eq!(
            (s.failures.len(), s.failures[0].trouble, s.failures[0].attempts),
            (1, Trouble::Observe, 2),
            "{why}"
        );
        assert_eq!(s.failures[0].why, format!("what it shows does not fit the network: {why}"));
        assert_eq!(
            (s.demand, s.circuits, s.ports, s.sent),
            (before.demand, before.circuits, before.ports, before.sent),
            "{why}"
        );
        assert_eq!(w.up(), [(0, 1)], "{why}");
        w.warp = Box::new(|_| {});
        w.run_until(at(450));
        assert!(
            w.snapshot().failures.is_empty() && w.up().is_empty(),
            "and now it is decided again: {why}"
        );
    }
}

/// Numbers around those of a network of four racks and one plane, and now and then any.
pub fn number(edge: u32) -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0..edge + 2, 1 => any::<u32>()]
}

pub fn instant() -> impl Strategy<Value = Time> {
    prop_oneof![4 => (0u64..500).prop_map(at), 1 => any::<u64>().prop_map(Time), 1 => Just(Time::MAX)]
}

fn matrix() -> impl Strategy<Value = DemandMatrix> {
    let racks = prop_oneof![6 => Just(4usize), 1 => 0..6usize];
    let square = racks.prop_flat_map(|n| {
        let cell = prop_oneof![2 => Just(0u64), 2 => 0..1u64 << 32, 1 => any::<u64>()];
        prop::collection::vec(cell, n * n).prop_map(move |cells| {
            let mut m = DemandMatrix::zero(n);
            m.set_all(
                cells
                    .iter()
                    .enumerate()
                    .map(|(k, &b)| (RackId::from(k / n), RackId::from(k % n), b)),
            );
            m
        })
    });
    prop_oneof![20 => square, 1 => Just(torn())]
}

pub fn reservation() -> impl Strategy<Value = Reservation> {
    (number(1), number(4), number(4), instant(), instant(), instant()).prop_map(
        |(plane, input, output, a, b, c)| {
            let mut times = [a, b, c];
            // Times in order are the rule: the others are told apart by the first look.
            if a.0 % 8 > 0 {
                times.sort();
            }
            let [setup_at, up_from, until] = times;
            Reservation {
                plane: PlaneId(plane),
                input: RackId(input),
                output: RackId(output),
                setup_at,
                up_from,
                until,
            }
        },
    )
}

fn harm() -> impl Strategy<Value = Damage> {
    let port = prop::option::of((number(1), number(4)).prop_map(|(p, r)| (PlaneId(p), RackId(r))));
    let host = number(4).prop_map(|k| Cut::Host(HostId(k)));
    let cut = prop::option::of(prop_oneof![host, number(4).prop_map(|k| Cut::Rack(RackId(k)))]);
    (port, cut, prop::option::of(number(0))).prop_map(|(port, cut, cable)| Damage {
        what: "l".into(),
        port,
        cut,
        cable,
    })
}

fn observation() -> impl Strategy<Value = Observation> {
    let port = (any::<u64>(), any::<u64>()).prop_map(|(n, b)| PortCounters {
        crossed_packets: n,
        crossed_bytes: b,
        ..Default::default()
    });
    let width = prop_oneof![12 => Just(4usize), 1 => 0..6usize];
    let plane = width.prop_flat_map(move |n| prop::collection::vec(port.clone(), n));
    let ports = prop_oneof![12 => Just(1usize), 1 => 0..3usize]
        .prop_flat_map(move |n| prop::collection::vec(plane.clone(), n));
    let table = (prop::collection::vec(reservation(), 0..6), 0..10usize);
    let programmed = table.prop_map(|(list, slots_per_port)| Programmed {
        timetable: list.into_iter().collect(),
        slots_per_port,
    });
    let flow = (number(4), number(4), 0..3u64, 0..3u32, any::<u64>(), any::<u64>()).prop_map(
        |(from, to, id, flows, sent, waits)| HostFlow {
            from: HostId(from),
            to: HostId(to),
            id,
            flows,
            sent,
            waits,
        },
    );
    let flows = prop::option::of(prop::collection::vec(flow, 0..4));
    let counts = |hosts| {
        prop::collection::vec(0..3u64, hosts * hosts)
            .prop_map(move |counts| Elephants::from_cells(hosts, counts))
    };
    let elephants =
        prop::option::of(prop_oneof![8 => Just(4usize), 1 => 0..6usize].prop_flat_map(counts));
    (
        instant(),
        programmed,
        matrix(),
        matrix(),
        (matrix(), prop::option::of(matrix()), flows, elephants),
        ports,
        prop::collection::vec(harm(), 0..2),
    )
        .prop_map(
            |(at, programmed, sent, over_ocs, (backlog, held, flows, elephants), ports, damage)| {
                Observation {
                    at,
                    programmed,
                    sent,
                    over_ocs,
                    backlog,
                    held,
                    flows,
                    elephants,
                    ports,
                    damage,
                }
            },
        )
}

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    #[test]
    fn no_observation_makes_the_controller_panic(
        shown in prop::collection::vec(observation(), 1..4),
        (scheduler, demand) in (prop::sample::select(SchedulerKind::ALL.to_vec()), prop::sample::select(ESTIMATORS.to_vec())),
        (probes, elephant_threshold) in (any::<bool>(), prop_oneof![Just(Bytes(0)), Just(Bytes(1000))]),
    ) {
        let mut w = world(CircuitPolicy { scheduler, demand, probes, elephant_threshold, ..CircuitPolicy::default() });
        let pairs = vec![RackBytes { from: RackId(0), to: RackId(1), bytes: Bytes(1 << 20) }];
        let (id, name, bound, priorities) = (CoflowId(1), String::new(), Span::ZERO, Priorities::default());
        w.tell(Event::CoflowArrived { id, name, pairs, bound, progress: ProgressBy::Counters, weight: 1, priorities }).unwrap();
        for (k, other) in shown.into_iter().enumerate() {
            let fits = other.fits(&w.c.topology).is_ok();
            w.warp = Box::new(move |seen| seen.clone_from(&other));
            // The answer to a probe of a later circuit moves the clock: a cycle begins in any case.
            w.run_until(at(100 * k as u64 + 150).max(w.now + MS * 200));
            let s = w.snapshot();
            prop_assert_eq!(!fits, s.failures.iter().any(|f| f.trouble == Trouble::Observe));
        }
    }
}

#[test]
fn a_link_of_the_graph_fits() {
    let w = world(policy(SchedulerKind::Bipartite));
    let mut seen = w.observe().unwrap();
    let mut topology = (*w.c.topology).clone();
    let graph = Graph {
        switches: vec![],
        cables: vec![Cable { ends: (0, 0), rate: BitRate::mbit(1) }],
        racks: vec![],
    };
    topology.eps.core = crate::topology::Core::Graph(Box::new(graph));
    damage(&mut seen, Damage { cable: Some(0), ..Damage::default() });
    assert_eq!(seen.fits(&topology), Ok(()));
    damage(&mut seen, Damage { cable: Some(1), ..Damage::default() });
    assert!(seen.fits(&topology).is_err());
}
