//! A decision laid out in time: the timetable that follows from one in force and what a scheduler
//! wants next.

use std::collections::BTreeMap;

use super::timetable::{Reservation, Timetable};
use super::{Decision, PlaneDecision, Slot};
use crate::ids::RackId;
use crate::topology::{Plane, StopMode};
use crate::units::Time;

/// Lays a [`Decision`] out in time, from `at` on, over what `now` already holds.
///
/// `before` is the timetable in force. Circuits of it that the first configuration keeps go on
/// without a blink (unless the plane is all-stop and something else changes); all others end at
/// `at`. Reservations of `before` that would begin at or after `at` are dropped: the new decision
/// replaces them. A circuit that is still being set up at `at` and is kept goes on being set up.
///
/// Complexity O(n log n) in the number of reservations.
pub fn lay_out(
    before: &Timetable,
    decision: &Decision,
    planes: &[Plane],
    racks: usize,
    at: Time,
) -> Timetable {
    let mut out: Vec<Reservation> = before.iter().filter(|r| r.until <= at).copied().collect();
    for (plane, decided) in planes.iter().zip(&decision.0) {
        match decided {
            PlaneDecision::Sequence(slots) => {
                lay_out_slots(before, slots, plane, racks, at, &mut out)
            }
            PlaneDecision::Reservations(list) => {
                lay_out_reservations(before, list, plane, at, &mut out)
            }
        }
    }
    out.into_iter().collect()
}

/// Circuits that come with their own times; one that is kept is listed from `at` on with the same
/// pair.
fn lay_out_reservations(
    before: &Timetable,
    list: &[Reservation],
    plane: &Plane,
    at: Time,
    out: &mut Vec<Reservation>,
) {
    let mut fresh: BTreeMap<RackId, Vec<Reservation>> = BTreeMap::new();
    for r in list {
        fresh.entry(r.input).or_default().push(*r);
    }
    for old in before.iter().filter(|r| r.plane == plane.id && r.setup_at < at && r.until > at) {
        // Where coflows follow one another over it, each has a part of its own. Parts that would be
        // over before it has light are left out, and the next one has the circuit.
        let mut until = None;
        if let Some(v) = fresh.get_mut(&old.input) {
            while until.is_none_or(|t| t <= old.up_from)
                && let Some(k) = v.iter().position(|r| {
                    r.output == old.output
                        && until.map_or(r.up_from <= at.max(old.up_from), |t| r.up_from == t)
                })
            {
                until = Some(v.remove(k).until);
            }
        }
        match until {
            Some(until) if until > old.up_from => out.push(Reservation { until, ..*old }),
            Some(_) => {}
            None if old.up_from < at => out.push(Reservation { until: at, ..*old }),
            None => {}
        }
    }
    out.extend(fresh.into_values().flatten());
}

fn lay_out_slots(
    before: &Timetable,
    slots: &[Slot],
    plane: &Plane,
    racks: usize,
    at: Time,
    out: &mut Vec<Reservation>,
) {
    // `open`: by input, the circuit that is in force at the beginning of the slot, with its own
    // start.
    let mut open: Vec<Option<Reservation>> = vec![None; racks];
    for r in before.iter().filter(|r| r.plane == plane.id && r.setup_at < at && r.until > at) {
        open[r.input.index()] = Some(Reservation { until: Time::MAX, ..*r });
    }
    let mut t = at;
    for slot in slots {
        let keeps =
            |i: usize, r: &Reservation| slot.matching.output(RackId::from(i)) == Some(r.output);
        let changes =
            (0..racks).any(|i| open[i].map(|r| r.output) != slot.matching.output(RackId::from(i)));
        let all_dark = changes && plane.stop == StopMode::AllStop;
        let mut up = t;
        for (i, held) in open.iter_mut().enumerate() {
            let kept = held.filter(|r| keeps(i, r) && !all_dark);
            if kept.is_none() {
                if let Some(r) = held.take().filter(|r| r.up_from < t) {
                    out.push(Reservation { until: t, ..r });
                }
                if let Some(output) = slot.matching.output(RackId::from(i)) {
                    *held = Some(Reservation {
                        plane: plane.id,
                        input: RackId::from(i),
                        output,
                        setup_at: t,
                        up_from: t + plane.delta,
                        until: Time::MAX,
                    });
                }
            }
            up = up.max(held.map_or(t, |r| r.up_from));
        }
        match slot.hold {
            Some(hold) => t = up + hold,
            None => {
                t = Time::MAX;
                break;
            }
        }
    }
    out.extend(
        open.into_iter().flatten().filter(|r| r.up_from < t).map(|r| Reservation { until: t, ..r }),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Matching;
    use crate::ids::PlaneId;
    use crate::timetable::Clash;
    use crate::units::{BitRate, Span};
    use proptest::prelude::*;

    fn plane(stop: StopMode) -> Plane {
        Plane { id: PlaneId(0), rate: BitRate::mbit(1000), delta: Span(10), stop, duplex: false }
    }

    fn res(i: u32, j: u32, s: u64, u: u64, e: u64) -> Reservation {
        Reservation {
            plane: PlaneId(0),
            input: RackId(i),
            output: RackId(j),
            setup_at: Time(s),
            up_from: Time(u),
            until: Time(e),
        }
    }

    fn list(t: &Timetable) -> Vec<Reservation> {
        t.iter().copied().collect()
    }

    #[test]
    fn a_circuit_that_would_end_before_it_has_light_is_left_out() {
        // Set up at 95, light from 105; at 100 the scheduler wants it, as one that is there, until
        // `until`.
        let before: Timetable = [res(0, 1, 95, 105, 200)].into_iter().collect();
        let laid = |until| {
            let wanted =
                Decision(vec![PlaneDecision::Reservations(vec![res(0, 1, 100, 100, until)])]);
            let table = lay_out(&before, &wanted, &[plane(StopMode::NotAllStop)], 2, Time(100));
            assert_eq!(table.check(&[plane(StopMode::NotAllStop)], 2), Ok(()));
            list(&table)
        };
        assert_eq!(laid(130), [res(0, 1, 95, 105, 130)]);
        assert_eq!([laid(104), laid(105)], [vec![], vec![]]);
        // Two coflows one after the other, where another circuit was before: the second one has it.
        let before: Timetable =
            [res(0, 2, 0, 10, 95), res(0, 1, 95, 105, 200)].into_iter().collect();
        let parts = vec![res(0, 1, 100, 100, 103), res(0, 1, 103, 103, 140)];
        let wanted = Decision(vec![PlaneDecision::Reservations(parts)]);
        let table = lay_out(&before, &wanted, &[plane(StopMode::NotAllStop)], 3, Time(100));
        assert_eq!(list(&table), [res(0, 2, 0, 10, 95), res(0, 1, 95, 105, 140)]);
        assert_eq!(table.check(&[plane(StopMode::NotAllStop)], 3), Ok(()));
    }

    #[test]
    fn a_kept_circuit_does_not_blink_and_a_changed_one_is_dark_for_delta() {
        let before = Timetable::from_iter([res(0, 1, 0, 10, u64::MAX), res(1, 0, 0, 10, u64::MAX)]);
        let next = Decision::hold([Matching::from_pairs(3, [(0, 1), (1, 2)])]);
        let t = lay_out(&before, &next, &[plane(StopMode::NotAllStop)], 3, Time(100));
        assert_eq!(
            list(&t),
            [res(0, 1, 0, 10, u64::MAX), res(1, 0, 0, 10, 100), res(1, 2, 100, 110, u64::MAX)]
        );
        let t = lay_out(&before, &next, &[plane(StopMode::AllStop)], 3, Time(100));
        assert_eq!(
            list(&t),
            [
                res(0, 1, 0, 10, 100),
                res(0, 1, 100, 110, u64::MAX),
                res(1, 0, 0, 10, 100),
                res(1, 2, 100, 110, u64::MAX)
            ]
        );
        t.check(&[plane(StopMode::AllStop)], 3).unwrap();
        t.check_all_stop(&[plane(StopMode::AllStop)]).unwrap();
        // What a not-all-stop plane may do, an all-stop one may not.
        let t = lay_out(&before, &next, &[plane(StopMode::NotAllStop)], 3, Time(100));
        assert_eq!(t.check_all_stop(&[plane(StopMode::NotAllStop)]), Ok(()));
        assert!(matches!(t.check_all_stop(&[plane(StopMode::AllStop)]), Err(Clash::Light { .. })));
    }

    #[test]
    fn a_sequence_pays_delta_only_for_what_changes() {
        let slots = vec![
            Slot { matching: Matching::from_pairs(3, [(0, 1), (1, 2)]), hold: Some(Span(50)) },
            Slot { matching: Matching::from_pairs(3, [(0, 1), (1, 0)]), hold: Some(Span(20)) },
        ];
        let t = lay_out(
            &Timetable::default(),
            &Decision::sequences([slots]),
            &[plane(StopMode::NotAllStop)],
            3,
            Time(100),
        );
        assert_eq!(
            list(&t),
            [res(0, 1, 100, 110, 190), res(1, 2, 100, 110, 160), res(1, 0, 160, 170, 190)]
        );
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn every_layout_passes_the_check(
            racks in 2usize..6,
            seq in prop::collection::vec((prop::collection::vec(0usize..6, 6), 1u64..60), 1..6),
            gaps in prop::collection::vec(0u64..80, 6),
            all_stop: bool,
        ) {
            let planes = [plane(if all_stop { StopMode::AllStop } else { StopMode::NotAllStop })];
            let matching = |v: &[usize]| {
                let mut m = Matching::empty(racks);
                for (i, &j) in v.iter().take(racks).enumerate() {
                    if j < racks { m.connect(RackId::from(i), RackId::from(j)); }
                }
                m
            };
            let mut table = Timetable::default();
            let mut at = Time(0);
            for k in 0..seq.len() {
                let slots: Vec<Slot> = seq[..=k].iter().map(|(m, h)| Slot { matching: matching(m), hold: Some(Span(*h)) }).collect();
                table = lay_out(&table, &Decision::sequences([slots]), &planes, racks, at);
                prop_assert_eq!(table.check(&planes, racks), Ok(()));
                prop_assert_eq!(table.check_all_stop(&planes), Ok(()));
                at += Span(gaps[k]);
            }
        }
    }
}
