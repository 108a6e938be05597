//! Laws of [`diff`], [`apply`] and [`check`], over generated timetables and operations.

use proptest::prelude::*;

use super::*;
use crate::topology::{Plane, StopMode};
use crate::units::{BitRate, Span};

const RACKS: u32 = 5;
const SLOTS: usize = 4;
const DELTA: u64 = 10;
const NOW: Time = Time(100);
const PLANES: u32 = 4;

/// A plane of each kind: what an operation does to a port is the same on all of them.
fn planes() -> Vec<Plane> {
    let stop = |k| if k % 2 == 1 { StopMode::AllStop } else { StopMode::NotAllStop };
    let plane = |k| Plane {
        id: PlaneId(k),
        rate: BitRate::mbit(1000),
        delta: Span(DELTA),
        stop: stop(k),
        duplex: k >= 2,
    };
    (0..PLANES).map(plane).collect()
}

fn rules(planes: &[Plane], guard: u64) -> Rules<'_> {
    Rules { planes, racks: RACKS as usize, guard: Span(guard) }
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

fn programmed(r: impl IntoIterator<Item = Reservation>) -> Programmed {
    Programmed { timetable: r.into_iter().collect(), slots_per_port: SLOTS }
}

fn wanted(r: impl IntoIterator<Item = Reservation>) -> Wanted {
    Wanted { timetable: r.into_iter().collect() }
}

/// A circuit that no OCS refuses by itself: set up in exactly delta, within 300 ns, sometimes
/// without an end.
fn circuit(from: u64) -> impl Strategy<Value = Reservation> {
    (0..PLANES, 0..RACKS, 1..RACKS, from..300u64, 1..90u64, 0..6u8).prop_map(
        |(plane, i, step, setup, length, open)| {
            let up = setup + DELTA;
            let until = if open == 0 { u64::MAX } else { up + length };
            Reservation { plane: PlaneId(plane), ..res(i, (i + step) % RACKS, setup, up, until) }
        },
    )
}

/// Of these circuits those that fit beside the ones before them, and have a slot.
fn sound(list: impl IntoIterator<Item = Reservation>) -> Programmed {
    let (planes, mut state) = (planes(), programmed([]));
    for r in list {
        let mut with = state.clone();
        with.timetable.insert(r);
        let live = with.timetable.port(r.plane, r.input).iter().filter(|o| o.until > NOW).count();
        if live <= SLOTS && with.timetable.check(&planes, RACKS as usize).is_ok() {
            state = with;
        }
    }
    state
}

fn state() -> impl Strategy<Value = Programmed> {
    prop::collection::vec(circuit(0), 0..80).prop_map(sound)
}

/// Any operation, sensible or not; most name a circuit that `of` holds.
fn op(of: &Programmed) -> impl Strategy<Value = Op> + use<> {
    let known: Vec<Reservation> =
        of.timetable.iter().copied().chain([res(0, 1, 90, 100, 120)]).collect();
    // Ends are often now, or as soon as a guard allows.
    let end = prop_oneof![1 => Just(NOW.0), 1 => NOW.0 - 2..NOW.0 + 45, 3 => 0..320u64];
    (0..5u8, 0..known.len(), circuit(0), end, 0..RACKS + 1).prop_map(
        move |(kind, k, new, t, rack)| {
            let Reservation { plane, input, up_from, .. } = known[k];
            match kind {
                0 => Op::Cancel { plane, input, up_from },
                1 => Op::End { plane, input, up_from, until: Time(t) },
                2 => Op::Reserve(known[k]),
                3 => Op::Reserve(Reservation { output: RackId(rack), ..known[k] }),
                _ => Op::Reserve(new),
            }
        },
    )
}

fn state_and_ops() -> impl Strategy<Value = (Programmed, Vec<Op>)> {
    state().prop_flat_map(|p| {
        let ops = prop::collection::vec(op(&p), 0..12);
        (Just(p), ops)
    })
}

/// What a slow reader of [`Op`]'s description would do: copy the list, change it, look at all of it
/// again.
fn slowly(
    state: &Programmed,
    op: &Op,
    rules: &Rules,
    now: Time,
) -> Result<Programmed, &'static str> {
    let live: Vec<Reservation> =
        state.timetable.iter().copied().filter(|r| r.until > now).collect();
    let (plane, input) = op.port();
    let start = match *op {
        Op::End { up_from, .. } | Op::Cancel { up_from, .. } => up_from,
        Op::Reserve(r) => r.up_from,
    };
    let (own, mut then): (Vec<Reservation>, Vec<Reservation>) =
        live.into_iter().partition(|r| (r.plane, r.input, r.up_from) == (plane, input, start));
    match (*op, own.first()) {
        (Op::Cancel { .. }, Some(held)) if held.up_from <= now => return Err("too late"),
        (Op::Cancel { .. }, _) => {}
        (Op::End { until, .. }, None) if until > now && until > start => return Err("gone"),
        (Op::End { .. }, None) => {}
        (Op::End { until, .. }, Some(h))
            if until != h.until && h.up_from <= now && until < now + rules.guard =>
        {
            return Err("too late");
        }
        (Op::End { until, .. }, Some(_)) if until <= start => {}
        (Op::End { until, .. }, Some(h)) => then.push(Reservation { until, ..*h }),
        (Op::Reserve(r), None) => {
            if then
                .iter()
                .chain([&r])
                .copied()
                .collect::<Timetable>()
                .check(rules.planes, rules.racks)
                .is_err()
            {
                return Err("clash");
            }
            if r.until <= now {
                return Err("too late");
            }
            if then.iter().filter(|o| (o.plane, o.input) == (plane, input)).count()
                == state.slots_per_port
            {
                return Err("full");
            }
            then.push(r);
        }
        (Op::Reserve(r), Some(h)) if r == *h => then.push(r),
        (Op::Reserve(_), Some(_)) => return Err("clash"),
    }
    let then = Programmed { timetable: then.into_iter().collect(), ..*state };
    if then.timetable.check(rules.planes, rules.racks).is_ok() { Ok(then) } else { Err("clash") }
}

fn word(e: &OpError) -> &'static str {
    match e {
        OpError::Clash(_) => "clash",
        OpError::Full { .. } => "full",
        OpError::TooLate { .. } => "too late",
        OpError::Gone { .. } => "gone",
        OpError::NoCircuits => "no circuits",
    }
}

fn live(p: &Programmed) -> Programmed {
    let mut p = p.clone();
    p.timetable.forget_before(NOW);
    p
}

proptest! {
    #![proptest_config(crate::testing::drawn(1024))]

    #[test]
    fn apply_does_what_the_slow_reader_does_and_twice_is_once((start, ops) in state_and_ops(), guard in 0..40u64) {
        let planes = planes();
        let rules = rules(&planes, guard);
        let mut state = start;
        for op in ops {
            let slow = slowly(&state, &op, &rules, NOW);
            let before = state.clone();
            let answer = apply(&mut state, &op, &rules, NOW);
            prop_assert_eq!(answer.as_ref().map(|_| live(&state)).map_err(word), slow.map(|s| live(&s)), "{:?}", op);
            match answer {
                Err(_) => prop_assert_eq!(&state, &before, "a refusal changes nothing"),
                Ok(change) => {
                    prop_assert_eq!(change == CircuitChange::Kept, state == before);
                    let once = state.clone();
                    prop_assert_eq!(apply(&mut state, &op, &rules, NOW), Ok(CircuitChange::Kept), "{:?} again", op);
                    prop_assert_eq!(&state, &once);
                }
            }
            prop_assert_eq!(live(&state).timetable.check(&planes, RACKS as usize), Ok(()), "{:?}", op);
        }
    }

    #[test]
    fn check_finds_the_first_operation_that_cannot_be_done((start, ops) in state_and_ops()) {
        let planes = planes();
        let rules = rules(&planes, 0);
        let mut slow = Ok(live(&start));
        for (k, op) in ops.iter().enumerate() {
            slow = slow.and_then(|s| slowly(&s, op, &rules, NOW).map_err(|word| (k, word)));
        }
        let fast = check(&start, &ops, &rules, NOW).map_err(|e| (e.at.expect("the start is sound"), word(&e.why)));
        prop_assert_eq!(fast, slow.map(|s| live(&s)));
    }

    /// From any sound state to any other that a controller may want at that time: circuits kept,
    /// ended, prolonged and taken back, and new ones that are set up from now on.
    #[test]
    fn a_plan_leads_to_what_is_wanted_and_back(
        start in state(), fates in prop::collection::vec((0..4u8, 1..60u64), 80), news in prop::collection::vec(circuit(NOW.0), 0..40),
    ) {
        let planes = planes();
        let rules = rules(&planes, 0);
        let start = live(&start);
        // Circuits with light that are not wanted any more hold their ports until now.
        let mut dark = vec![];
        let mut next: Vec<Reservation> = vec![];
        for (r, &(fate, by)) in start.timetable.iter().zip(&fates) {
            match fate {
                0 if r.up_from <= NOW => dark.push(Reservation { until: NOW, ..*r }),
                0 => {}
                1 => next.push(Reservation { until: r.up_from.max(NOW) + Span(by), ..*r }),
                _ => next.push(*r),
            }
        }
        let dark: Vec<_> = dark.into_iter().filter(|r| r.up_from < r.until).collect();
        let all = sound(dark.into_iter().chain(next).chain(news));
        let want = Wanted { timetable: live(&all).timetable };
        let ops = diff(&want, &start, NOW);
        let there = check(&start, &ops, &rules, NOW).map_err(|e| TestCaseError::fail(format!("{e:?} of {ops:?}")))?;
        // Every prefix by itself, too.
        for k in 0..ops.len() {
            prop_assert!(check(&start, &ops[..k], &rules, NOW).is_ok());
        }
        let port = |r: &Reservation| start.timetable.port(r.plane, r.input).len() + want.timetable.port(r.plane, r.input).len();
        if want.timetable.iter().all(|r| port(r) <= SLOTS) {
            prop_assert_eq!(&there.timetable, &want.timetable);
            prop_assert_eq!(diff(&want, &there, NOW), []);
        }
        // What had no room is all that a second plan still asks for, and it changes nothing else.
        prop_assert!(diff(&want, &there, NOW).iter().all(|op| matches!(op, Op::Reserve(_))));
        prop_assert_eq!(diff(&Wanted { timetable: start.timetable.clone() }, &start, NOW), []);
        // And back, if nothing that has begun was ended: light that went out stays out.
        let stays = |r: &Reservation| want.timetable.port(r.plane, r.input).iter().any(|w| (w.up_from, w.output) == (r.up_from, r.output));
        if start.timetable.iter().all(|r| r.up_from > NOW || stays(r)) && want.timetable.iter().all(|r| port(r) <= SLOTS) {
            let ops = diff(&Wanted { timetable: start.timetable.clone() }, &there, NOW);
            let back = check(&there, &ops, &rules, NOW).map_err(|e| TestCaseError::fail(format!("{e:?} of {ops:?}")))?;
            prop_assert_eq!(back.timetable, start.timetable);
        }
    }
}

#[test]
fn a_converged_fabric_needs_nothing_and_a_diff_converges() {
    let a = [res(0, 1, 0, 10, u64::MAX), res(1, 0, 0, 10, u64::MAX)];
    let b = [res(0, 1, 0, 10, 100), res(0, 2, 100, 110, u64::MAX), res(1, 0, 0, 10, u64::MAX)];
    let ops = diff(&wanted(b), &programmed(a), Time(50));
    assert_eq!(
        ops,
        [
            Op::End { plane: PlaneId(0), input: RackId(0), up_from: Time(10), until: Time(100) },
            Op::Reserve(res(0, 2, 100, 110, u64::MAX))
        ]
    );
    let planes = planes();
    let then = check(&programmed(a), &ops, &rules(&planes, 0), Time(50)).unwrap();
    assert_eq!(diff(&wanted(b), &then, Time(50)), []);
    let back = diff(&wanted(a), &then, Time(50));
    assert_eq!(
        check(&then, &back, &rules(&planes, 0), Time(50)),
        Ok(programmed(a)),
        "a change and its reverse leave the same state"
    );
}

#[test]
fn a_full_port_waits_for_room() {
    let many: Vec<_> = (0..6)
        .map(|k| res(0, 1 + k % 2, k as u64 * 100, k as u64 * 100 + 10, k as u64 * 100 + 90))
        .collect();
    let ops = diff(&wanted(many.clone()), &programmed([]), Time(0));
    assert_eq!(ops.len(), 4);
    let planes = planes();
    let held = check(&programmed([]), &ops, &rules(&planes, 0), Time(0)).unwrap();
    assert_eq!(diff(&wanted(many.clone()), &held, Time(50)), []);
    assert_eq!(diff(&wanted(many), &held, Time(150)).len(), 1);
}

#[test]
fn a_world_that_clashes_is_found_without_any_operation() {
    let world = programmed([res(0, 1, 0, 10, u64::MAX), res(2, 1, 40, 50, 200)]);
    let planes = planes();
    let found = check(&world, &[], &rules(&planes, 0), NOW).unwrap_err();
    assert_eq!((found.at, word(&found.why)), (None, "clash"));
    // A plan that ends the clash is a good plan.
    let ops = [Op::End { plane: PlaneId(0), input: RackId(2), up_from: Time(50), until: NOW }];
    assert_eq!(
        check(&world, &ops, &rules(&planes, 0), NOW),
        Ok(programmed([res(0, 1, 0, 10, u64::MAX)]))
    );
}

#[test]
fn refusals_name_the_circuit_and_what_is_allowed() {
    let planes = planes();
    let mut state = programmed([res(0, 1, 0, 10, u64::MAX)]);
    let mut told =
        |op: Op| apply(&mut state, &op, &rules(&planes, 5), NOW).unwrap_err().to_string();
    let (plane, input, up_from) = (PlaneId(0), RackId(0), Time(10));
    let late = format!(
        "too late: a circuit of r0 on p0 that begins at {up_from} can end at {} at the soonest",
        Time(105)
    );
    assert_eq!(told(Op::Cancel { plane, input, up_from }), late);
    assert_eq!(told(Op::End { plane, input, up_from, until: Time(104) }), late);
    let gone = format!("no circuit of r0 on p0 begins at {}", Time(11));
    assert_eq!(told(Op::End { plane, input, up_from: Time(11), until: Time(150) }), gone);
    assert!(
        told(Op::Reserve(res(2, 1, 200, 210, 220)))
            .starts_with("p0: output port of r1 is held by two circuits")
    );
    assert!(told(Op::Reserve(res(2, 9, 200, 210, 220))).ends_with("no such rack"));
}
