//! Sunflow as a circuit scheduler of the control loop.

use super::sunflow;
use crate::circuits::matching::{bipartite, edmonds, usable_pair};
use crate::circuits::timetable::Reservation;
use crate::circuits::{Ask, Decision, Matching, Scheduler};
use crate::topology::{Plane, StopMode};
use crate::units::Time;

/// [`sunflow()`] every interval, with the whole demand as one coflow, since that is what an [`Ask`] shows. Circuits that would
/// begin after the interval are left to the next decision.
///
/// Circuits with times of their own need a plane on which one port's change leaves the others alone: duplex and all-stop planes
/// get one maximum weight matching for the interval instead.
pub struct Sunflow;

impl Scheduler for Sunflow {
    fn name(&self) -> &'static str {
        "sunflow"
    }
    fn decide(&mut self, ask: &Ask) -> Decision {
        let mut left = ask.demand.clone();
        let mut all = Vec::new();
        let end = ask.at + ask.interval;
        for (p, plane) in ask.planes.iter().enumerate() {
            let wanted = left.map_pairs(|i, j, d| if usable_pair(&ask.usable[p], plane.duplex, i, j) { d } else { 0 });
            let nothing = Matching::empty(left.racks());
            let current = ask.current.get(p).unwrap_or(&nothing);
            let mut list = if plane.duplex {
                steady(&edmonds(&wanted, Some(current)), current, plane, ask.at)
            } else if plane.stop == StopMode::AllStop {
                steady(&bipartite(&wanted, Some(current)), current, plane, ask.at)
            } else {
                sunflow(&[&wanted], plane, current, ask.at).reservations
            };
            list.retain(|r| r.setup_at < end);
            for r in &list {
                let carried = plane.rate.bytes_in(r.until.min(end).since(r.up_from)).0;
                left.set(r.input, r.output, left.get(r.input, r.output).saturating_sub(carried));
            }
            all.extend(list);
        }
        Decision::Reservations(all)
    }
}

/// One matching from `at` on: what goes on does not blink, unless the plane is all-stop and something changes.
fn steady(next: &Matching, current: &Matching, plane: &Plane, at: Time) -> Vec<Reservation> {
    let dark = plane.stop == StopMode::AllStop && next != current;
    let circuit = |(input, output)| {
        let up_from = if !dark && current.output(input) == Some(output) { at } else { at + plane.delta };
        Reservation { plane: plane.id, input, output, setup_at: at, up_from, until: Time::MAX }
    };
    next.pairs().map(circuit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::circuits::timetable::{Timetable, lay_out};
    use crate::circuits::{Usable, matching::round_robin};
    use crate::demand::DemandMatrix;
    use crate::ids::PlaneId;
    use crate::units::{BitRate, Span};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_ends_in_a_timetable_that_an_ocs_can_follow(
            r in 1usize..6, v in prop::collection::vec(prop_oneof![Just(0u64), 0..3000u64], 25), mask: u64, all_stop: bool, shift: u64,
        ) {
            let d = DemandMatrix::zero(r).map_pairs(|i, j, _| v[i.index() * 5 + j.index()]);
            let stop = if all_stop { StopMode::AllStop } else { StopMode::NotAllStop };
            // A byte a nanosecond; the third plane is duplex.
            let planes: Vec<Plane> = (0..3)
                .map(|p| Plane { id: PlaneId(p), rate: BitRate(8_000_000_000), delta: Span(10), stop, duplex: p == 2 })
                .collect();
            let bits = |shift: usize| (0..r).map(|i| mask & (1 << (shift + i)) == 0).collect::<Vec<_>>();
            let usable: Vec<Usable> = (0..3).map(|p| Usable { input: bits(p * 10), output: bits(p * 10 + 5) }).collect();
            let current = [round_robin(r, shift), round_robin(r, shift.wrapping_add(1)), Matching::empty(r)];
            let up = current.iter().enumerate().flat_map(|(p, m)| {
                let circuit = move |(input, output)| Reservation {
                    plane: PlaneId::from(p), input, output, setup_at: Time(0), up_from: Time(10), until: Time::MAX,
                };
                m.pairs().map(circuit).collect::<Vec<_>>()
            });
            let before: Timetable = up.collect();
            let (at, interval) = (Time(5000), Span(1000));
            let ask = Ask { demand: &d, current: &current, planes: &planes, usable: &usable, at, interval, cycle: 0 };
            let decision = Sunflow.decide(&ask);
            let Decision::Reservations(list) = &decision else { unreachable!() };
            for c in list {
                let p = c.plane.index();
                prop_assert!(usable_pair(&usable[p], planes[p].duplex, c.input, c.output));
                prop_assert!(planes[p].duplex || d.get(c.input, c.output) > 0);
                prop_assert!(c.setup_at >= at && c.setup_at < at + interval);
            }
            prop_assert_eq!(lay_out(&before, &decision, &planes, r, at).check(&planes, r), Ok(()));
        }
    }
}
