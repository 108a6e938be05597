//! What goes to a program and what it answers, and each mistake in an answer.

use super::*;
use crate::SchedulerKind;
use crate::demand::DemandMatrix;
use crate::layout::lay_out;
use crate::timetable::Timetable;
use crate::units::BitRate;
use crate::{Usable, laws};
use proptest::prelude::*;

const AT: Time = Time(1000);

fn planes(duplex: bool, stop: StopMode) -> Vec<Plane> {
    let plane =
        |p| Plane { id: PlaneId(p), rate: BitRate::mbit(100), delta: Span(10), stop, duplex };
    vec![plane(0), plane(1)]
}

fn decision(json: &str, planes: &[Plane]) -> Result<Decision, String> {
    serde_json::from_str::<Advice>(json).map_err(|e| e.to_string())?.decision(planes, 3, AT)
}

#[test]
fn an_answer_becomes_a_decision() {
    let simplex = planes(false, StopMode::NotAllStop);
    let Ok(Decision(by_plane)) = decision(
        r#"{"cycle":1,"planes":[[{"pairs":[[0,1],[1,2]],"hold_ns":50},{"pairs":[[2,0]]}],[]]}"#,
        &simplex,
    ) else {
        panic!("configurations")
    };
    let (first, second) =
        (Matching::from_pairs(3, [(0, 1), (1, 2)]), Matching::from_pairs(3, [(2, 0)]));
    let slots =
        vec![Slot { matching: first, hold: Some(Span(50)) }, Slot { matching: second, hold: None }];
    assert_eq!(by_plane[0], PlaneDecision::Sequence(slots));
    assert_eq!(
        by_plane[1],
        PlaneDecision::hold(Matching::empty(3)),
        "no configuration is darkness"
    );
    let circuits = r#"{"cycle":1,"circuits":[{"plane":1,"input":0,"output":2,"up_from_ns":1010,"until_ns":1500},
        {"plane":0,"input":1,"output":0,"up_from_ns":7}]}"#;
    let (plane, input, output) = (PlaneId(1), RackId(0), RackId(2));
    let first =
        Reservation { plane, input, output, setup_at: AT, up_from: Time(1010), until: Time(1500) };
    let (plane, input, output) = (PlaneId(0), RackId(1), RackId(0));
    let goes_on = Reservation { plane, input, output, setup_at: AT, up_from: AT, until: Time::MAX };
    assert_eq!(
        decision(circuits, &simplex),
        Ok(Decision(vec![
            PlaneDecision::Reservations(vec![goes_on]),
            PlaneDecision::Reservations(vec![first])
        ]))
    );
}

#[test]
fn what_is_wrong_with_an_answer_is_told() {
    let refused = |json: &str, planes: &[Plane], says: &str| {
        let why = decision(json, planes).expect_err(json);
        assert!(why.contains(says), "{json}: {why}");
    };
    let simplex = planes(false, StopMode::NotAllStop);
    for (json, says) in [
        (r#"{"cycle":1}"#, "either `planes` or `circuits`"),
        (r#"{"cycle":1,"planes":[[]],"circuits":[]}"#, "either `planes` or `circuits`"),
        (r#"{"cycle":1,"planes":[[]]}"#, "configurations for 1 planes: there are 2"),
        (r#"{"cycle":1,"plane":[]}"#, "unknown field `plane`"),
        (
            r#"{"cycle":1,"planes":[[{"pairs":[]},{"pairs":[]}],[]]}"#,
            "plane 0, configuration 0: `hold_ns` is missing",
        ),
        (
            r#"{"cycle":1,"planes":[[],[{"pairs":[],"hold_ns":0}]]}"#,
            "plane 1, configuration 0: `hold_ns` must be above zero",
        ),
        (r#"{"cycle":1,"planes":[[{"pairs":[[0,3]]}],[]]}"#, "no rack 3: they are 0 to 2"),
        (r#"{"cycle":1,"planes":[[{"pairs":[[0,1],[2,1]]}],[]]}"#, "each port may be used once"),
        (r#"{"cycle":1,"planes":[[{"pairs":[[1,1]]}],[]]}"#, "no rack is joined to itself"),
        (
            r#"{"cycle":1,"circuits":[{"plane":2,"input":0,"output":1,"up_from_ns":9}]}"#,
            "no such plane: there are 2",
        ),
        (
            r#"{"cycle":1,"circuits":[{"plane":0,"input":0,"output":9,"up_from_ns":9}]}"#,
            "no rack 9",
        ),
        (
            r#"{"cycle":1,"circuits":[{"plane":0,"input":1,"output":1,"up_from_ns":9}]}"#,
            "it must join two racks",
        ),
        (
            r#"{"cycle":1,"circuits":[{"plane":0,"input":1,"output":0,"up_from_ns":9,"until_ns":1000}]}"#,
            "end after 1000 ns",
        ),
    ] {
        refused(json, &simplex, says);
    }
    let one = r#"{"cycle":1,"circuits":[{"plane":0,"input":1,"output":0,"up_from_ns":2000}]}"#;
    refused(one, &planes(false, StopMode::AllStop), "takes `planes`");
    refused(
        r#"{"cycle":1,"planes":[[{"pairs":[[0,1]]}],[]]}"#,
        &planes(true, StopMode::NotAllStop),
        "come in pairs",
    );
}

#[test]
fn what_a_program_died_of_goes_before_a_late_answer() {
    let (mut all, mut late, mut first) = (0, 0, None);
    let mut count = |why: NoAnswer| {
        why.count(&mut all, &mut late, &mut first);
        (all, late, first.clone().unwrap_or_default())
    };
    assert_eq!(count(NoAnswer::late("within 1ms")), (1, 1, "within 1ms".into()));
    assert_eq!(count("it ended".to_owned().into()), (2, 1, "it ended".into()));
    assert_eq!(count("it cannot be started".to_owned().into()), (3, 1, "it ended".into()));
    assert_eq!(count(NoAnswer::late("within 1ms")), (4, 2, "it ended".into()));
}

fn instant() -> impl Strategy<Value = u64> {
    prop_oneof![0..3000u64, Just(u64::MAX)]
}

/// A decision as a program would write it: configurations for all planes, or circuits for those
/// that take them.
fn written(decision: &Decision) -> Advice {
    let configuration =
        |s: &Slot| Configuration { pairs: s.matching.pairs().collect(), hold_ns: s.hold };
    let circuit = |r: &Reservation| Circuit {
        plane: r.plane,
        input: r.input,
        output: r.output,
        setup_at_ns: Some(r.setup_at),
        up_from_ns: r.up_from,
        until_ns: (r.until < Time::MAX).then_some(r.until),
    };
    let (mut planes, mut circuits, mut timed) = (vec![], vec![], false);
    for decided in &decision.0 {
        match decided {
            PlaneDecision::Sequence(slots) => {
                planes.push(slots.iter().map(configuration).collect())
            }
            PlaneDecision::Reservations(list) => {
                timed = true;
                circuits.extend(list.iter().map(circuit));
            }
        }
    }
    Advice { cycle: 0, planes: (!timed).then_some(planes), circuits: timed.then_some(circuits) }
}

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    /// Every scheduler could be a program: a question and an answer lose nothing on their way
    /// through JSON.
    #[test]
    fn every_scheduler_can_be_written_as_answers(w in laws::any_world()) {
        let ask = w.ask();
        let question = Question::from(&ask);
        let read: Question = serde_json::from_str(&serde_json::to_string(&question).unwrap()).unwrap();
        prop_assert_eq!(&read, &question);
        let demand = read.demand.iter().fold(DemandMatrix::zero(read.racks), |mut m, &(i, j, b)| { m.set(i, j, b); m });
        prop_assert_eq!(&demand, ask.demand);
        for kind in SchedulerKind::ALL {
            let mut decision = kind.build().decide(&ask);
            // Beside circuits with times of their own the other planes are dark.
            if decision.0.iter().any(|c| matches!(c, PlaneDecision::Reservations(_))) {
                let others = decision.0.iter_mut().filter(|c| matches!(c, PlaneDecision::Sequence(_)));
                others.for_each(|c| *c = PlaneDecision::hold(Matching::empty(read.racks)));
            }
            let advice: Advice = serde_json::from_str(&serde_json::to_string(&written(&decision)).unwrap()).unwrap();
            let again = advice.decision(ask.planes, read.racks, ask.at);
            prop_assert_eq!(again.as_ref(), Ok(&decision), "{}", kind.name());
        }
    }

    /// No answer of the right shape panics, and what is accepted can be laid out.
    #[test]
    fn any_answer_is_taken_or_refused(
        slots in prop::collection::vec(prop::collection::vec((prop::collection::vec((0..4u32, 0..4u32), 0..4), 0..3u64), 0..3), 0..3),
        circuits in prop::collection::vec((0..3u32, 0..4u32, 0..4u32, instant(), prop::option::of(0..u64::MAX)), 0..4),
        duplex: bool, all_stop: bool, timed: bool,
    ) {
        let planes = planes(duplex, if all_stop { StopMode::AllStop } else { StopMode::NotAllStop });
        let pair = |(i, j)| (RackId(i), RackId(j));
        let configuration = |(pairs, hold): (Vec<(u32, u32)>, u64)| Configuration {
            pairs: pairs.into_iter().map(pair).collect(),
            hold_ns: [None, Some(Span::ZERO), Some(Span::MAX)][hold as usize],
        };
        let circuit = |(p, i, j, from, until): (u32, u32, u32, u64, Option<u64>)| Circuit {
            plane: PlaneId(p),
            input: RackId(i),
            output: RackId(j),
            setup_at_ns: None,
            up_from_ns: Time(from),
            until_ns: until.map(Time),
        };
        let sequence = slots.into_iter().map(|p| p.into_iter().map(configuration).collect()).collect();
        let list = circuits.into_iter().map(circuit).collect();
        let advice = Advice { cycle: 0, planes: (!timed).then_some(sequence), circuits: timed.then_some(list) };
        if let Ok(decision) = advice.decision(&planes, 3, AT) {
            let table = lay_out(&Timetable::default(), &decision, &planes, 3, AT);
            prop_assert!(timed || table.check(&planes, 3).is_ok(), "{:?}", advice);
        }
    }
}

#[test]
fn ports_that_must_not_be_used_are_named() {
    let planes = planes(false, StopMode::NotAllStop);
    let mut usable = vec![Usable::all(3), Usable::all(3)];
    (usable[1].input[2], usable[0].output[0]) = (false, false);
    let ask = Ask {
        demand: &DemandMatrix::zero(3),
        current: &[],
        planes: &planes,
        usable: &usable,
        at: AT,
        interval: Span(5),
        cycle: 4,
        eps: BitRate(7),
        coflows: &[],
    };
    let q = Question::from(&ask);
    assert_eq!((q.cycle, q.eps_bps, q.racks, q.demand.len()), (4, 7, 3, 0));
    assert_eq!(
        (&q.planes[1].unusable_inputs[..], &q.planes[0].unusable_outputs[..]),
        (&[RackId(2)][..], &[RackId(0)][..])
    );
}
