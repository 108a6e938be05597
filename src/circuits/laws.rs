//! What every circuit scheduler of the table must do, whichever algorithm it is.

use proptest::prelude::*;

use super::layout::lay_out;
use super::matching::{round_robin, usable_pair};
use super::timetable::{Reservation, Timetable};
use super::{Ask, Decision, Matching, PlaneDecision, SchedulerKind, Usable};
use crate::coflows::OpenCoflow;
use crate::demand::DemandMatrix;
use crate::ids::{CoflowId, PlaneId, RackId};
use crate::topology::{Plane, StopMode};
use crate::units::{BitRate, Span, Time};

/// A byte a nanosecond.
const RATE: BitRate = BitRate(8_000_000_000);

fn any_demand() -> impl Strategy<Value = DemandMatrix> {
    (1usize..8, prop_oneof![Just(4u64), Just(1000), Just(1 << 40), Just(u64::MAX)], 0u32..4)
        .prop_flat_map(|(r, top, thin)| {
            let cell = if thin == 0 {
                (0..top).boxed()
            } else {
                prop_oneof![thin => Just(0), 1 => 0..top].boxed()
            };
            prop::collection::vec(cell, r * r).prop_map(move |v| {
                DemandMatrix::zero(r).map_pairs(|i, j, _| v[i.index() * r + j.index()])
            })
        })
}

/// A network with a plane of each kind, some ports of which are not usable, and what is up on it.
#[derive(Debug)]
pub(super) struct PlanesWorld {
    demand: DemandMatrix,
    planes: Vec<Plane>,
    usable: Vec<Usable>,
    current: Vec<Matching>,
    coflows: Vec<OpenCoflow>,
    cycle: u64,
}

impl PlanesWorld {
    const AT: Time = Time(5000);

    pub(super) fn ask(&self) -> Ask<'_> {
        let Self { demand, planes, usable, current, coflows, cycle } = self;
        let (at, interval, eps) = (Self::AT, Span(1000), BitRate::ZERO);
        Ask { demand, current, planes, usable, at, interval, cycle: *cycle, eps, coflows }
    }

    /// The circuits of `current` as the timetable in force.
    fn before(&self) -> Timetable {
        let up = self.current.iter().enumerate().flat_map(|(p, m)| {
            let circuit = move |(input, output)| Reservation {
                plane: PlaneId::from(p),
                input,
                output,
                setup_at: Time(0),
                up_from: Time(10),
                until: Time::MAX,
            };
            m.pairs().map(circuit).collect::<Vec<_>>()
        });
        up.collect()
    }

    /// Whether a circuit uses two ports of a plane that may be used.
    fn allows(&self, plane: usize, input: RackId, output: RackId) -> bool {
        usable_pair(&self.usable[plane], self.planes[plane].duplex, input, output)
    }
}

/// Circuits in pairs, for a duplex plane.
fn pairs(racks: usize, any: bool) -> Matching {
    let list =
        (0..racks / 2).filter(|_| any).flat_map(|k| [(2 * k, 2 * k + 1), (2 * k + 1, 2 * k)]);
    Matching::from_pairs(racks, list)
}

prop_compose! {
    pub(super) fn any_world()(demand in any_demand(), mask: u64, shift in 0u64..8, cycle in 0u64..9, known: bool) -> PlanesWorld {
        let r = demand.racks();
        let stop = |p: usize| if p % 2 == 1 { StopMode::AllStop } else { StopMode::NotAllStop };
        let plane = |p: usize| Plane { id: PlaneId::from(p), rate: RATE, delta: Span(10), stop: stop(p), duplex: p >= 2 };
        let bits = |first: usize| (0..r).map(|i| mask & (1 << (first + i)) == 0).collect::<Vec<_>>();
        let usable = (0..4).map(|p| Usable { input: bits(p * 16), output: bits(p * 16 + 8) }).collect();
        let current = vec![round_robin(r, shift), round_robin(r, shift + 1), pairs(r, shift % 2 == 1), pairs(r, shift >= 4)];
        // Half of the demand is of a coflow.
        let rest = demand.entries().map(|(i, j, b)| (i, j, b / 2)).filter(|x| x.2 > 0).collect();
        let coflow = OpenCoflow { id: CoflowId(0), arrival: Time(7), weight: 2, sent: 9, rest };
        let coflows = if known { vec![coflow] } else { vec![] };
        PlanesWorld { demand, planes: (0..4).map(plane).collect(), usable, current, coflows, cycle }
    }
}

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    #[test]
    fn every_scheduler_ends_in_a_timetable_that_an_ocs_can_follow(w in any_world()) {
        for kind in SchedulerKind::ALL {
            let mut scheduler = kind.build();
            let decision = scheduler.decide(&w.ask());
            let name = kind.name();
            prop_assert_eq!(decision.0.len(), w.planes.len());
            for (p, decided) in decision.0.iter().enumerate() {
                match decided {
                    PlaneDecision::Sequence(slots) => {
                        let last = slots.last().expect("a plane has one configuration at least");
                        prop_assert!(last.hold.is_none() && slots.iter().rev().skip(1).all(|s| s.hold.is_some()), "{name}: {slots:?}");
                        for slot in slots {
                            let m = &slot.matching;
                            let again = Matching::from_pairs(m.racks(), m.pairs().map(|(i, j)| (i.index(), j.index())));
                            prop_assert_eq!(&again, m, "{}", name);
                            for (i, j) in m.pairs() {
                                prop_assert!(w.allows(p, i, j), "{name} uses {i} -> {j} on plane {p}");
                                prop_assert!(!w.planes[p].duplex || m.output(j) == Some(i), "{name} leaves {j} -> {i} out");
                            }
                        }
                    }
                    PlaneDecision::Reservations(list) => {
                        prop_assert!(w.planes[p].ports_turn_alone(), "{name}: plane {p} is duplex or all-stop");
                        for c in list {
                            prop_assert!(c.plane.index() == p && w.allows(p, c.input, c.output), "{name}: {c:?}");
                            prop_assert!(c.setup_at >= PlanesWorld::AT && c.setup_at < PlanesWorld::AT + w.ask().interval, "{name}: {c:?}");
                        }
                    }
                }
            }
            for before in [w.before(), Timetable::default()] {
                let table = lay_out(&before, &decision, &w.planes, w.demand.racks(), PlanesWorld::AT);
                prop_assert_eq!(table.check(&w.planes, w.demand.racks()), Ok(()), "{}", name);
                prop_assert_eq!(table.check_all_stop(&w.planes), Ok(()), "{}", name);
            }
            prop_assert_eq!(kind.build().decide(&w.ask()), decision, "{} answers the same again", name);
        }
    }

    #[test]
    fn who_sets_no_circuits_decides_for_none(w in any_world()) {
        use super::SetBy;
        for kind in SchedulerKind::ALL.into_iter().filter(|k| k.build().set_by() != SetBy::Scheduler) {
            prop_assert_eq!(kind.build().decide(&w.ask()), Decision::hold(w.planes.iter().map(|_| Matching::empty(w.demand.racks()))));
        }
    }
}
