//! Planes of all kinds: on those that are all-stop circuits go dark together, on those that are
//! duplex they come in pairs.

use proptest::prelude::*;

use super::*;
use crate::circuits::SetBy;

fn network(planes: Vec<Plane>) -> Topology {
    Topology::uniform("t", 4, 1, BitRate::mbit(1000), BitRate::mbit(100), planes)
}

/// A plane of each kind.
fn all_kinds() -> Vec<Plane> {
    use StopMode::{AllStop, NotAllStop};
    [(NotAllStop, false), (AllStop, false), (NotAllStop, true), (AllStop, true)]
        .into_iter()
        .zip(0..)
        .map(|((stop, duplex), id)| plane(id, stop, duplex))
        .collect()
}

/// When circuits of an input of plane 0 were set.
fn set(w: &ControllerWorld, input: u32) -> Vec<Time> {
    w.reserved()
        .iter()
        .filter(|r| (r.plane.0, r.input.0) == (0, input))
        .map(|r| r.setup_at)
        .collect()
}

#[test]
fn a_circuit_set_by_hand_darkens_an_all_stop_plane_once() {
    let one = || vec![plane(0, StopMode::AllStop, false)];
    let beside = || vec![plane(0, StopMode::AllStop, false), plane(1, StopMode::NotAllStop, false)];
    let schedulers = [
        SchedulerKind::Bipartite,
        SchedulerKind::Greedy,
        SchedulerKind::Sunflow,
        SchedulerKind::SunflowLas,
    ];
    for (scheduler, planes) in schedulers.into_iter().flat_map(|s| [(s, one()), (s, beside())]) {
        let mut w = world_of(policy(scheduler), network(planes));
        w.backlog.set(RackId(0), RackId(1), 900_000_000_000);
        let hand = (PlaneId(0), RackId(2), RackId(3));
        w.run_until(at(150));
        w.tell(Event::ManualConnect { plane: hand.0, input: hand.1, output: hand.2 }).unwrap();
        w.run_until(at(950));
        assert_eq!(
            (set(&w, 0), set(&w, 2)),
            (vec![at(107), at(207)], vec![at(207)]),
            "{scheduler:?}"
        );
        w.tell(Event::ManualDisconnect { plane: hand.0, input: hand.1 }).unwrap();
        w.run_until(at(1950));
        assert_eq!(
            (set(&w, 0), set(&w, 2).len()),
            (vec![at(107), at(207), at(1007)], 1),
            "{scheduler:?}"
        );
        assert!(w.snapshot().failures.is_empty(), "{scheduler:?}");
    }
}

/// The first circuit of a duplex plane without the circuit back.
fn alone(table: &Timetable, planes: &[Plane]) -> Option<Reservation> {
    let back = |r: &Reservation| {
        let b = Reservation { input: r.output, output: r.input, ..*r };
        table.port(r.plane, r.output).contains(&b)
    };
    table.iter().find(|r| planes[r.plane.index()].duplex && !back(r)).copied()
}

/// An interval of a generated run: demand, a circuit set by hand, one given back, and a port that
/// is down.
#[derive(Debug)]
struct IntervalStep {
    demand: Vec<(u32, u32, u64)>,
    hand: Option<(u32, u32, u32)>,
    back: Option<(u32, u32)>,
    down: Option<(u32, u32)>,
}

prop_compose! {
    fn step()(
        demand in prop::collection::vec((0..4u32, 0..4u32, 1..50_000_000u64), 0..8),
        hand in prop::option::of((0..4u32, 0..4u32, 0..4u32)),
        back in prop::option::of((0..4u32, 0..4u32)),
        down in prop::option::weighted(0.2, (0..4u32, 0..4u32)),
    ) -> IntervalStep {
        IntervalStep { demand, hand, back, down }
    }
}

impl ControllerWorld {
    /// Lives through a step that ends at `end`.
    fn step(&mut self, step: &IntervalStep, end: Time) {
        self.backlog = DemandMatrix::zero(4);
        step.demand.iter().for_each(|&(i, j, b)| self.backlog.add(RackId(i), RackId(j), b));
        // Some are refused: a port that is taken, down, or has no circuit.
        if let Some((p, i, j)) = step.hand {
            let _ = self.tell(Event::ManualConnect {
                plane: PlaneId(p),
                input: RackId(i),
                output: RackId(j),
            });
        }
        if let Some((p, i)) = step.back {
            let _ = self.tell(Event::ManualDisconnect { plane: PlaneId(p), input: RackId(i) });
        }
        let down = |(p, r)| Damage {
            what: "gone".into(),
            port: Some((PlaneId(p), RackId(r))),
            ..Damage::default()
        };
        self.damage = step.down.map(down).into_iter().collect();
        self.run_until(end);
    }
}

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    /// Whatever decides, is set by hand or breaks: the circuits that are wanted, and those that the
    /// fabric holds, suit the kind of each plane.
    #[test]
    fn what_is_wanted_suits_every_kind_of_plane(
        kind in prop::sample::select(SchedulerKind::ALL.to_vec()), interval in prop_oneof![Just(100u64), Just(8)],
        steps in prop::collection::vec(step(), 1..8),
    ) {
        let planes = all_kinds();
        let mut w = world_of(CircuitPolicy { interval: MS * interval, ..policy(kind) }, network(all_kinds()));
        for (k, s) in (0u64..).zip(&steps) {
            w.step(s, at(100 + interval * k + interval / 2));
            let held = w.programmed().timetable;
            for table in [&w.c.wanted.timetable, &held] {
                prop_assert_eq!(table.check(&planes, 4), Ok(()), "{:?}", kind);
                prop_assert_eq!(table.check_all_stop(&planes), Ok(()), "{:?}", kind);
                prop_assert_eq!(alone(table, &planes), None, "{:?}: {:?}", kind, table);
            }
        }
        // Nothing breaks and nothing is wanted any more: what is set by hand stays, all else ends,
        // and no circuit blinks.
        let rest = IntervalStep { demand: vec![], hand: None, back: None, down: None };
        let still = steps.len() as u64 + 400 / interval;
        w.step(&rest, at(100 + interval * still));
        let asked = w.asked.concat().len();
        w.step(&rest, at(100 + interval * (still + 5)));
        let rotates = kind == SchedulerKind::RoundRobin;
        prop_assert!(rotates || w.asked.concat().len() == asked, "{:?}: {:?}", kind, w.asked);
        let seen = w.snapshot();
        let by_hand = seen.circuits.iter().filter(|c| c.manual).count();
        let program = kind.build().set_by() == SetBy::Program;
        prop_assert!(program || by_hand == w.c.manual.iter().count(), "{:?}: {:?}", kind, seen.circuits);
        prop_assert_eq!(w.snapshot().failures.iter().filter(|f| f.trouble == Trouble::Plan).count(), 0);
    }
}
