//! Answers of a fabric that it was not asked for: they are refused or ignored, and none makes the
//! controller panic.

use proptest::prelude::*;

use super::misfits::{instant, number, reservation};
use super::*;
use crate::coflows::FlowSpec;
use crate::ids::HostId;
use crate::paths::List;
use crate::plan::paths::{PathError, Ports, Steer, SteerResult};
use crate::policy::PathPolicy;
use crate::topology::Core;
use crate::topology::graph::Graph;

/// Four racks below two spines, and two planes of circuits.
fn network() -> Topology {
    let planes = vec![plane(0, StopMode::NotAllStop, false), plane(1, StopMode::AllStop, true)];
    let mut t = Topology::uniform("t", 4, 1, BitRate::mbit(1000), BitRate::mbit(100), planes);
    t.eps.core = Core::Graph(Box::new(Graph::leaf_spine(4, 2, BitRate::mbit(100), None)));
    t
}

fn op() -> impl Strategy<Value = Op> {
    let port =
        || (number(2), number(4), instant()).prop_map(|(p, i, t)| (PlaneId(p), RackId(i), t));
    prop_oneof![
        reservation().prop_map(Op::Reserve),
        (port(), instant()).prop_map(|((plane, input, up_from), until)| Op::End {
            plane,
            input,
            up_from,
            until
        }),
        port().prop_map(|(plane, input, up_from)| Op::Cancel { plane, input, up_from }),
    ]
}

fn applied() -> impl Strategy<Value = Event> {
    let refused = prop_oneof![
        Just(OpError::NoCircuits),
        (number(2), number(4), instant()).prop_map(|(p, i, t)| OpError::Gone {
            plane: PlaneId(p),
            input: RackId(i),
            up_from: t
        }),
    ];
    let result = (op(), prop_oneof![instant().prop_map(Ok), refused.prop_map(Err)])
        .prop_map(|(op, outcome)| OpResult { op, outcome });
    prop::collection::vec(result, 0..4).prop_map(|results| Event::Applied { results })
}

fn steered() -> impl Strategy<Value = Event> {
    let list = prop::option::of(prop::collection::vec(number(6), 0..5).prop_map(List));
    let ports = prop::option::weighted(
        0.2,
        (any::<u16>(), any::<u16>()).prop_map(|(from, to)| Ports { from, to }),
    );
    let refused = prop_oneof![
        Just(PathError::NotHere("here".into())),
        number(4).prop_map(|number| PathError::NoHost { number, last: 3 }),
        Just(PathError::Full(9)),
    ];
    let op = (number(4), number(4), ports, list).prop_map(|(from, to, ports, list)| Steer {
        from: HostId(from),
        to: HostId(to),
        ports,
        list,
    });
    let result = (op, prop_oneof![3 => instant().prop_map(Ok), 1 => refused.prop_map(Err)]);
    let result = result.prop_map(|(op, outcome)| SteerResult { op, outcome });
    prop::collection::vec(result, 0..4).prop_map(|results| Event::Steered { results })
}

fn probed() -> impl Strategy<Value = Event> {
    let found = prop::option::of((number(4).prop_map(RackId), instant()));
    let dark = prop::option::of(any::<u64>().prop_map(Span));
    (number(2), number(4), number(4), instant(), found, dark).prop_map(
        |(p, i, o, at, arrived, dark)| {
            let (plane, input, output) = (PlaneId(p), RackId(i), RackId(o));
            Event::Probed { report: ProbeReport { plane, input, output, at, arrived, dark } }
        },
    )
}

fn cost() -> impl Strategy<Value = Event> {
    let span = || {
        prop_oneof![(0..1u64 << 40).prop_map(Span), any::<u64>().prop_map(Span), Just(Span::MAX)]
    };
    (span(), span(), span()).prop_map(|(poll, decide, apply)| Event::CycleCost {
        poll,
        decide,
        apply,
    })
}

fn answer() -> impl Strategy<Value = Event> {
    prop_oneof![4 => applied(), 4 => steered(), 4 => probed(), 1 => cost()]
}

impl ControllerWorld {
    /// Does what the controller wants; `said` is given instead of the answer of its kind, as often
    /// as it is asked for.
    fn answer(&mut self, said: Option<&Event>) {
        let mut asked = 0;
        while let Some(action) = self.c.poll_action() {
            asked += 1;
            assert!(asked < 1000, "an answer must not make it ask again and again");
            let instead = said.filter(|s| {
                let kinds = (&action, s);
                matches!(
                    kinds,
                    (Action::Apply { .. }, Event::Applied { .. })
                        | (Action::Steer { .. }, Event::Steered { .. })
                        | (Action::Probe { .. }, Event::Probed { .. })
                )
            });
            let told = match (instead, action) {
                (Some(said), _) => said.clone(),
                (None, Action::Observe) => Event::Observed { result: self.observe() },
                (None, Action::Consult { .. }) => {
                    Event::Advised { result: Err("no program".to_owned().into()) }
                }
                (None, Action::Apply { ops }) => {
                    Event::Applied { results: self.fabric.get_mut().apply(&ops, self.now) }
                }
                (None, Action::Steer { ops }) => {
                    Event::Steered { results: self.fabric.get_mut().steer(&ops, self.now) }
                }
                (None, Action::Probe { .. } | Action::Prioritise { .. } | Action::Log { .. }) => {
                    continue;
                }
            };
            self.tell(told).expect("an answer is no request");
        }
    }
}

/// A world with demand for circuits and a flow over the switches.
fn busy(policy: CircuitPolicy) -> ControllerWorld {
    let mut w = world_of(CircuitPolicy { paths: PathPolicy::Hit, ..policy }, network());
    w.backlog.set(RackId(0), RackId(1), 90_000_000);
    let (id, name, bound, priorities) =
        (CoflowId(1), String::new(), Span::ZERO, Priorities::default());
    let pairs = vec![RackBytes { from: RackId(0), to: RackId(1), bytes: Bytes(1 << 20) }];
    w.tell(Event::CoflowArrived {
        id,
        name,
        pairs,
        bound,
        progress: ProgressBy::Counters,
        weight: 1,
        priorities,
    })
    .unwrap();
    w.tell(Event::CoflowFlows {
        id,
        flows: vec![FlowSpec { from: HostId(0), to: HostId(1), bytes: Bytes(1 << 20) }],
        types: Default::default(),
    })
    .unwrap();
    w.tell(Event::ManualList {
        from: HostId(0),
        to: HostId(1),
        ports: None,
        list: List(vec![0, 5, 1]),
    })
    .unwrap();
    w
}

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    #[test]
    fn no_answer_makes_the_controller_panic(
        said in prop::collection::vec((answer(), any::<bool>()), 1..10),
        (scheduler, probes) in (prop::sample::select(SchedulerKind::ALL.to_vec()), any::<bool>()),
    ) {
        let mut w = busy(CircuitPolicy { probes, ..policy(scheduler) });
        for (k, (said, asked)) in (0u64..).zip(&said) {
            w.now = at(100 * k + 100);
            w.tell(Event::Tick).unwrap();
            w.answer(asked.then_some(said));
            // Once more, when nothing was asked.
            w.tell(said.clone()).expect("an answer is no request");
            w.answer(None);
            let seen = w.snapshot();
            prop_assert!(seen.paths.is_some_and(|p| p.pairs.len() == 1), "no pair but that which sends");
        }
        // A fabric that answers as it is asked is under control again.
        let k = said.len() as u64;
        for n in 0..3 {
            w.now = at(100 * (k + n) + 100);
            w.tell(Event::Tick).unwrap();
            w.answer(None);
        }
        let failures = w.snapshot().failures;
        // There is no program.
        prop_assert!(failures.iter().all(|f| f.trouble == Trouble::Follow), "{:?}", failures);
    }
}

#[test]
fn an_answer_to_other_operations_is_a_failure_of_those_that_were_asked_for() {
    let mut w = busy(policy(SchedulerKind::Bipartite));
    // One interval on one plane.
    w.backlog.set(RackId(0), RackId(1), 1_000_000);
    let foreign = Op::Reserve(Reservation {
        plane: PlaneId(7),
        input: RackId(9),
        output: RackId(8),
        setup_at: at(1),
        up_from: at(2),
        until: Time::MAX,
    });
    let said = Event::Applied { results: vec![OpResult { op: foreign, outcome: Ok(at(1)) }] };
    w.now = at(100);
    w.tell(Event::Tick).unwrap();
    w.answer(Some(&said));
    let s = w.snapshot();
    let told: Vec<(Trouble, &str)> = s.failures.iter().map(|f| (f.trouble, &*f.why)).collect();
    assert_eq!(
        told,
        [(
            Trouble::Port(PlaneId(0), RackId(0)),
            "the fabric answered to other operations than it was asked for"
        )]
    );
    assert_eq!(s.stats.circuits_set, 0);
    w.now = at(200);
    w.tell(Event::Tick).unwrap();
    w.answer(None);
    assert_eq!((w.snapshot().failures, w.programmed().timetable.len()), (vec![], 1));
}

#[test]
fn an_answer_to_other_changes_of_lists_changes_nothing_and_is_tried_again() {
    let mut w = busy(policy(SchedulerKind::EpsOnly));
    let op = Steer { from: HostId(0), to: HostId(9), ports: None, list: Some(List(vec![0, 77])) };
    let said = Event::Steered { results: vec![SteerResult { op, outcome: Ok(at(1)) }] };
    w.answer(Some(&said));
    let s = w.snapshot();
    assert_eq!((s.failures.len(), s.failures[0].trouble), (1, Trouble::Paths));
    assert_eq!(s.failures[0].why, "the fabric answered to other changes than it was asked for");
    assert_eq!(s.paths.unwrap().pairs.len(), 1);
    for k in 1..3 {
        w.now = at(100 * k);
        w.tell(Event::Tick).unwrap();
        w.answer(None);
    }
    assert!(w.snapshot().failures.is_empty());
}
