//! The controller over a fabric that does what the test tells it.

use std::cell::RefCell;

use super::*;
use crate::ProgressBy;
use crate::circuits::timetable::Reservation;
use crate::coflows::RackBytes;
use crate::coflows::priority::{Priorities, PriorityChange};
use crate::fabric::{Damage, Fabric, FabricError, PortCounters, ProbeReport};
use crate::ids::FlowId;
use crate::plan::OpError;
use crate::policy::{Estimator, SchedulerKind};
use crate::record::Snapshot;
use crate::sim::{SimFabric, SimSettings};
use crate::topology::{Plane, StopMode};
use crate::units::{BitRate, Bytes};

mod answers;
mod arrivals;
mod kinds;
mod misfits;

const MS: Span = Span::millis(1);
const NOTICE: Span = Span::millis(2);

/// A controller, and the world around it: time passes only where the test says so, also between a
/// question and its answer. The driver of the product (`runtime::drive`), a room below this one,
/// stands behind the tests of the API and of the runs.
struct ControllerWorld {
    c: Controller,
    now: Time,
    fabric: RefCell<SimFabric>,
    /// Circuits that the fabric shows beside those that it was asked for.
    foreign: Vec<Reservation>,
    sent: DemandMatrix,
    backlog: DemandMatrix,
    /// How long observing takes, deciding included.
    thinking: Span,
    /// What the fabric says of damage, and what its ports have carried.
    damage: Vec<Damage>,
    crossed: u64,
    /// Whether the fabric cannot be observed (`blind`), and whether it refuses operations.
    blind: bool,
    refuses: bool,
    /// Changes what the fabric shows.
    warp: Box<dyn Fn(&mut Observation)>,
    /// What a probe of a circuit meets.
    probe: fn(RackId, RackId) -> Option<RackId>,
    log: Vec<Record>,
    asked: Vec<Vec<Op>>,
    /// Changes of priorities that it asked for.
    prioritised: Vec<(CoflowId, PriorityChange)>,
}

fn at(ms: u64) -> Time {
    Time::ZERO + MS * ms
}

fn policy(scheduler: SchedulerKind) -> CircuitPolicy {
    CircuitPolicy { scheduler, demand: Estimator::Backlog, ..CircuitPolicy::default() }
}

/// A plane with 10 ms of dark time.
fn plane(id: u32, stop: StopMode, duplex: bool) -> Plane {
    Plane { id: PlaneId(id), rate: BitRate::mbit(1000), delta: MS * 10, stop, duplex }
}

/// Four racks; a cycle every 100 ms from 100 ms on, 5 ms of lead, 2 ms of notice, 10 ms of dark
/// time.
fn world(policy: CircuitPolicy) -> ControllerWorld {
    let planes = vec![plane(0, StopMode::NotAllStop, false)];
    world_of(policy, Topology::uniform("t", 4, 1, BitRate::mbit(1000), BitRate::mbit(100), planes))
}

/// The same for any network of four racks.
fn world_of(policy: CircuitPolicy, topology: Topology) -> ControllerWorld {
    let topology = Arc::new(topology);
    ControllerWorld {
        c: Controller::new(topology.clone(), policy, at(100), NOTICE),
        now: Time::ZERO,
        fabric: RefCell::new(SimFabric::new(topology, SimSettings::default())),
        foreign: vec![],
        sent: DemandMatrix::zero(4),
        backlog: DemandMatrix::zero(4),
        thinking: Span::ZERO,
        damage: vec![],
        crossed: 0,
        blind: false,
        refuses: false,
        warp: Box::new(|_| {}),
        probe: |_, output| Some(output),
        log: vec![],
        asked: vec![],
        prioritised: vec![],
    }
}

impl ControllerWorld {
    fn tell(&mut self, e: Event) -> Result<(), Rejected> {
        self.c.handle(e, self.now)
    }

    /// Wakes the controller at `t`, however early or late that is, and does all that it wants.
    fn wake(&mut self, t: Time) {
        self.now = self.now.max(t);
        self.tell(Event::Tick).unwrap();
        let mut probes = vec![];
        while let Some(action) = self.c.poll_action() {
            match action {
                Action::Observe => {
                    let seen = self.observe();
                    self.now += self.thinking;
                    self.tell(Event::Observed { result: seen }).unwrap();
                }
                Action::Consult { .. } => self
                    .tell(Event::Advised { result: Err("no program".to_owned().into()) })
                    .unwrap(),
                Action::Apply { ops } => {
                    let refuse = |&op: &Op| OpResult { op, outcome: Err(OpError::NoCircuits) };
                    let results = if self.refuses {
                        ops.iter().map(refuse).collect()
                    } else {
                        self.fabric.get_mut().apply(&ops, self.now)
                    };
                    self.asked.push(ops);
                    self.tell(Event::Applied { results }).unwrap();
                }
                Action::Probe { plane, input, output, at, .. } => {
                    let found = (self.probe)(input, output).map(|rack| (rack, at));
                    probes.push(ProbeReport {
                        plane,
                        input,
                        output,
                        at,
                        arrived: found,
                        dark: found.map(|_| MS * 10),
                    });
                }
                Action::Steer { ops } => {
                    let results = self.fabric.get_mut().steer(&ops, self.now);
                    self.tell(Event::Steered { results }).unwrap();
                }
                Action::Prioritise { id, change } => self.prioritised.push((id, change)),
                Action::Log { record } => self.log.push(record),
            }
        }
        for report in probes {
            self.now = self.now.max(report.at + MS);
            self.probed(report);
        }
    }

    fn probed(&mut self, report: ProbeReport) {
        self.tell(Event::Probed { report }).unwrap();
        while let Some(action) = self.c.poll_action() {
            match action {
                Action::Probe { plane, input, output, at, .. } => {
                    self.now += MS;
                    let arrived = (self.probe)(input, output).map(|rack| (rack, self.now));
                    self.probed(ProbeReport { plane, input, output, at, arrived, dark: None });
                }
                Action::Log { record } => self.log.push(record),
                other => panic!("{other:?}"),
            }
        }
    }

    fn programmed(&self) -> Programmed {
        let seen = self.fabric.borrow_mut().observe(self.now).expect("a model can be observed");
        let mut programmed = seen.programmed;
        programmed.timetable = programmed.timetable.iter().chain(&self.foreign).copied().collect();
        programmed
    }

    fn observe(&self) -> Result<Observation, FabricError> {
        if self.blind {
            return Err(FabricError::Refused {
                what: "read the counters".into(),
                why: "no".into(),
            });
        }
        let mut seen = Observation {
            at: self.now,
            programmed: self.programmed(),
            sent: self.sent.clone(),
            over_ocs: DemandMatrix::zero(4),
            backlog: self.backlog.clone(),
            held: None,
            flows: None,
            elephants: None,
            ports: vec![
                vec![
                    PortCounters { crossed_bytes: self.crossed, ..PortCounters::default() };
                    4
                ];
                self.c.topology.planes.len()
            ],
            damage: self.damage.clone(),
        };
        (self.warp)(&mut seen);
        Ok(seen)
    }

    /// Wakes the controller whenever it wants, until `end`.
    fn run_until(&mut self, end: Time) {
        while let Some(t) = self.c.poll_timeout().map(|w| w.at).filter(|&t| t <= end) {
            self.wake(t);
        }
        self.now = self.now.max(end);
    }

    fn snapshot(&self) -> Snapshot {
        self.c.snapshot(self.now, "test")
    }

    fn reserved(&self) -> Vec<Reservation> {
        let new = |op: &Op| if let Op::Reserve(r) = op { Some(*r) } else { None };
        self.asked.iter().flatten().filter_map(new).collect()
    }

    fn up(&self) -> Vec<(u32, u32)> {
        self.programmed()
            .timetable
            .iter()
            .filter(|r| r.is_up(self.now))
            .map(|r| (r.input.0, r.output.0))
            .collect()
    }

    fn faulty(&self) -> Vec<u32> {
        self.snapshot().ports.iter().filter(|p| p.faulty.is_some()).map(|p| p.rack.0).collect()
    }
}

#[test]
fn a_decision_takes_effect_at_deadline_lead_and_notice_however_fast_it_was() {
    for thinking in [0, 1, 2] {
        let mut w = world(policy(SchedulerKind::Bipartite));
        w.backlog.set(RackId(0), RackId(1), 1_000_000);
        w.thinking = MS * thinking;
        w.wake(at(100));
        let r = w.reserved()[0];
        assert_eq!(
            (r.input, r.output, r.setup_at, r.up_from),
            (RackId(0), RackId(1), at(107), at(117)),
            "thought {thinking} ms"
        );
        assert_eq!(w.snapshot().stats.late_cycles, 0);
    }
}

#[test]
fn what_thinks_too_long_is_late_and_pays_for_it() {
    let mut w = world(policy(SchedulerKind::Bipartite));
    w.backlog.set(RackId(0), RackId(1), 1_000_000);
    w.thinking = MS * 30;
    w.wake(at(100));
    assert_eq!(
        w.reserved()[0].setup_at,
        at(134) + Span::micros(500),
        "30 ms of thought, half the lead to write, and the notice"
    );
    let s = w.snapshot().stats;
    assert_eq!((s.cycles, s.late_cycles, s.missed_cycles), (1, 1, 0));
    assert!(matches!(w.log[0].what, RecordedEvent::Cycle { late: true, .. }), "{:?}", w.log);
}

#[test]
fn deadlines_that_pass_are_counted_and_never_served_twice() {
    let mut w = world(policy(SchedulerKind::Bipartite));
    assert_eq!(w.c.poll_timeout().map(|w| w.at), Some(at(100)));
    w.wake(at(99));
    assert_eq!(w.snapshot().stats.cycles, 0, "not before its time");
    w.wake(at(100));
    // Asleep over the deadlines of 200, 300 and 400 ms: the last is served, late, and two are
    // missed.
    w.wake(at(450));
    let s = w.snapshot().stats;
    assert_eq!((s.cycles, s.late_cycles, s.missed_cycles), (2, 1, 2));
    assert_eq!(w.c.poll_timeout().map(|w| w.at), Some(at(500)), "deadlines are absolute");
    w.wake(at(451));
    assert_eq!(w.snapshot().stats.cycles, 2);
    w.wake(at(500));
    assert_eq!((w.snapshot().stats.cycles, w.snapshot().stats.missed_cycles), (3, 2));
}

#[test]
fn a_fabric_that_cannot_be_seen_keeps_its_circuits() {
    let mut w = world(policy(SchedulerKind::Bipartite));
    w.backlog.set(RackId(0), RackId(1), 1_000_000);
    w.run_until(at(150));
    assert_eq!(w.up(), [(0, 1)]);
    w.blind = true;
    w.backlog = DemandMatrix::zero(4);
    w.run_until(at(350));
    assert_eq!(w.up(), [(0, 1)]);
    let f = w.snapshot().failures;
    assert_eq!(
        (f.len(), f[0].trouble, f[0].attempts, f[0].retry_at),
        (1, Trouble::Observe, 2, at(400))
    );
    assert!(f[0].why.contains("read the counters"), "{f:?}");
    assert_eq!(w.snapshot().circuits.len(), 1, "the API still shows it");
    w.blind = false;
    w.run_until(at(450));
    assert!(w.snapshot().failures.is_empty());
    assert!(w.up().is_empty(), "and now it is decided again");
}

#[test]
fn what_was_refused_is_tried_again_in_the_next_cycle() {
    let mut w = world(policy(SchedulerKind::Bipartite));
    w.backlog.set(RackId(2), RackId(1), 1_000_000);
    w.refuses = true;
    w.run_until(at(250));
    let f = w.snapshot().failures;
    assert_eq!(
        (f.len(), f[0].trouble.to_string().as_str(), &*f[0].why, f[0].attempts),
        (1, "cannot change port 2 of plane 0", "this model was made without circuits", 2)
    );
    assert!(w.snapshot().circuits.iter().all(|c| !w.up().contains(&(c.input.0, c.output.0))));
    w.refuses = false;
    w.run_until(at(350));
    assert_eq!((w.up(), w.snapshot().failures.len()), (vec![(2, 1)], 0));
    // A refused change that is not wanted any more is no failure either.
    w.refuses = true;
    w.backlog = DemandMatrix::zero(4);
    w.backlog.set(RackId(2), RackId(3), 1_000_000);
    w.run_until(at(450));
    assert_eq!(w.snapshot().failures.len(), 1);
    w.backlog = DemandMatrix::zero(4);
    w.backlog.set(RackId(2), RackId(1), 1_000_000);
    w.run_until(at(550));
    assert_eq!((w.up(), w.snapshot().failures), (vec![(2, 1)], vec![]));
}

#[test]
fn a_fabric_that_shows_two_circuits_on_a_port_is_a_failure_until_it_does_not() {
    let mut w = world(policy(SchedulerKind::Bipartite));
    let held = |i| Reservation {
        plane: PlaneId(0),
        input: RackId(i),
        output: RackId(1),
        setup_at: at(0),
        up_from: at(10),
        until: Time::MAX,
    };
    w.foreign = vec![held(0), held(2)];
    w.run_until(at(250));
    assert_eq!(w.asked, Vec::<Vec<Op>>::new(), "nothing is asked for over a world that cannot be");
    let f = w.snapshot().failures;
    let told = |what: &str| {
        f.iter()
            .find(|f| f.trouble.to_string() == what)
            .unwrap_or_else(|| panic!("{what}: {f:?}"))
            .clone()
    };
    assert_eq!((f.len(), told("cannot plan the operations").attempts), (2, 2));
    assert!(
        told("cannot plan the operations")
            .why
            .starts_with("the fabric holds what no OCS could follow: p0: output port of r1"),
        "{f:?}"
    );
    assert!(
        told("cannot follow the circuit scheduler").why.contains("held by two circuits"),
        "{f:?}"
    );
    let ops =
        |r: &Record| if let RecordedEvent::Cycle { ops, .. } = r.what { Some(ops) } else { None };
    assert_eq!(
        w.log.iter().filter_map(ops).collect::<Vec<_>>(),
        [0, 0],
        "the log says what was handed over"
    );
    w.foreign.clear();
    w.run_until(at(350));
    assert_eq!((w.snapshot().failures, w.asked.len()), (vec![], 1));
}

#[test]
fn a_circuit_set_by_hand_survives_whatever_is_decided() {
    for scheduler in [
        SchedulerKind::RoundRobin,
        SchedulerKind::Bipartite,
        SchedulerKind::Edmonds,
        SchedulerKind::Solstice,
        SchedulerKind::Sunflow,
        SchedulerKind::EpsOnly,
    ] {
        let mut w = world(policy(scheduler));
        for (i, j) in [(0, 1), (1, 0), (2, 3), (3, 1)] {
            w.backlog.set(RackId(i), RackId(j), 9_000_000);
        }
        let hand = (PlaneId(0), RackId(0), RackId(2));
        w.tell(Event::ManualConnect { plane: hand.0, input: hand.1, output: hand.2 }).unwrap();
        w.run_until(at(150));
        for k in 2..8 {
            w.run_until(at(k * 100 + 5));
            assert!(w.up().contains(&(0, 2)), "{scheduler:?} at {}: {:?}", w.now, w.up());
        }
        assert_eq!(
            w.reserved().iter().filter(|r| r.input == hand.1).count(),
            1,
            "{scheduler:?}: set once, never blinked"
        );
        w.tell(Event::ManualDisconnect { plane: hand.0, input: hand.1 }).unwrap();
        w.run_until(at(850));
        assert!(
            scheduler == SchedulerKind::RoundRobin || !w.up().contains(&(0, 2)),
            "{scheduler:?}: {:?}",
            w.up()
        );
    }
}

#[test]
fn a_faulty_port_is_not_used_until_it_is_mended() {
    for scheduler in [
        SchedulerKind::RoundRobin,
        SchedulerKind::Edmonds,
        SchedulerKind::Bvn,
        SchedulerKind::Sunflow,
    ] {
        let mut w = world(policy(scheduler));
        for i in 0..4 {
            (1..4).for_each(|s| {
                w.backlog.set(RackId(i), RackId((i + s) % 4), 2_000_000 + u64::from(i * s))
            });
        }
        // Nothing that rack 1 sends comes out.
        w.probe = |input, output| (input != RackId(1)).then_some(output);
        w.run_until(at(450));
        assert_eq!(w.faulty(), [1], "{scheduler:?}");
        let told = |w: &ControllerWorld, f: fn(&RecordedEvent) -> bool| {
            w.log.iter().filter(|r| f(&r.what)).count()
        };
        assert_eq!(told(&w, |e| matches!(e, RecordedEvent::PortFaulty { rack: RackId(1), .. })), 1);
        w.run_until(at(550));
        let seen = w.asked.len();
        w.run_until(at(1050));
        let used: Vec<Reservation> = w.reserved();
        let later = &used
            [w.asked[..seen].iter().flatten().filter(|o| matches!(o, Op::Reserve(_))).count()..];
        assert!(
            later.iter().all(|r| r.input != RackId(1) && r.output != RackId(1)),
            "{scheduler:?}: {later:?}"
        );
        assert!(w.up().iter().all(|c| c.0 != 1 && c.1 != 1), "{scheduler:?}: {:?}", w.up());
        assert!(!w.up().is_empty(), "{scheduler:?}: the others go on");
        w.probe = |_, output| Some(output);
        w.tell(Event::PortRepaired { plane: PlaneId(0), rack: RackId(1) }).unwrap();
        assert!(w.tell(Event::PortRepaired { plane: PlaneId(0), rack: RackId(1) }).is_err());
        w.run_until(at(1500));
        assert!(w.faulty().is_empty());
        let again = w
            .reserved()
            .iter()
            .any(|r| r.setup_at > at(1050) && (r.input == RackId(1) || r.output == RackId(1)));
        assert!(again, "{scheduler:?}: used again");
    }
}

#[test]
fn a_probe_that_is_lost_once_blames_nobody() {
    let mut w = world(policy(SchedulerKind::Bipartite));
    w.backlog.set(RackId(0), RackId(1), 1_000_000);
    w.run_until(at(150));
    let lost = ProbeReport {
        plane: PlaneId(0),
        input: RackId(0),
        output: RackId(1),
        at: at(117),
        arrived: None,
        dark: None,
    };
    w.probed(lost.clone());
    let s = w.snapshot();
    assert_eq!(
        (s.stats.probes_ok, s.stats.probes_lost, w.faulty().len()),
        (2, 1, 0),
        "the second came out"
    );
    // Over before the probe was given up: nothing is known.
    w.backlog = DemandMatrix::zero(4);
    w.run_until(at(250));
    w.probed(lost);
    assert_eq!(w.snapshot().stats.probes_lost, 1);
}

#[test]
fn a_new_policy_does_not_take_the_history_for_an_interval() {
    let mut w = world(policy(SchedulerKind::Manual));
    w.sent.set(RackId(0), RackId(1), 8_000_000_000);
    w.run_until(at(150));
    let next = CircuitPolicy {
        demand: Estimator::Counters,
        scheduler: SchedulerKind::Bipartite,
        ..CircuitPolicy::default()
    };
    w.tell(Event::PolicyReplaced { policy: Box::new(next.clone()) }).unwrap();
    w.sent.set(RackId(0), RackId(1), 8_000_000_700);
    w.run_until(at(250));
    assert_eq!(w.snapshot().demand.get(RackId(0), RackId(1)), 700);
    assert_eq!(w.snapshot().policy, next);
}

#[test]
fn the_same_events_give_the_same_log_byte_for_byte() {
    let run = || {
        let mut w = world(policy(SchedulerKind::Greedy));
        for k in 0..10u64 {
            let (i, j) = ((k * 7 % 4) as u32, (k * 5 % 3 + 1) as u32);
            w.backlog = DemandMatrix::zero(4);
            w.backlog.add(RackId(i), RackId((i + j) % 4), 1_000_000);
            w.backlog.add(RackId((i + 1) % 4), RackId((i + 3) % 4), 1_000_000);
            w.blind = k == 4;
            w.refuses = k == 6;
            w.run_until(at(k * 100 + 130));
        }
        (serde_json::to_string(&w.log).unwrap(), w.snapshot())
    };
    let (a, b) = (run(), run());
    assert_eq!(a, b);
    assert!(a.0.len() > 500, "{}", a.0);
}

#[test]
fn other_priorities_are_asked_for_once_and_only_of_what_is_open() {
    let mut w = world(CircuitPolicy::default());
    let arrived = |id: u32, priorities| Event::CoflowArrived {
        id: CoflowId(id),
        name: String::new(),
        pairs: vec![RackBytes { from: RackId(0), to: RackId(1), bytes: Bytes(9) }],
        bound: Span::ZERO,
        progress: ProgressBy::Sender,
        weight: 1,
        priorities,
    };
    w.tell(arrived(1, Priorities { all: None, flows: vec![Some(2)] })).unwrap();
    let change = |all, flows: &[(u32, u8)]| PriorityChange {
        all,
        flows: flows.iter().map(|&(f, p)| (FlowId(f), p)).collect(),
    };
    let mut tell = |id: u32, change: &PriorityChange| {
        let told = w.tell(Event::CoflowPrioritised { id: CoflowId(id), change: change.clone() });
        w.wake(w.now);
        (told, std::mem::take(&mut w.prioritised))
    };
    let asked = |c: PriorityChange| (Ok(()), vec![(CoflowId(1), c)]);
    assert_eq!(
        tell(1, &change(None, &[(0, 2), (7, 1)])),
        asked(change(None, &[(7, 1)])),
        "flow 0 has had it since it began"
    );
    assert_eq!(tell(1, &change(None, &[(7, 1)])), (Ok(()), vec![]));
    assert_eq!(tell(1, &change(Some(0), &[])), asked(change(Some(0), &[])));
    for (id, bad) in
        [(1, change(Some(8), &[])), (1, change(Some(1), &[(0, 9)])), (2, change(Some(1), &[]))]
    {
        assert!(
            matches!(tell(id, &bad), (Err(Rejected::Invalid(_) | Rejected::NotFound(_)), asked) if asked.is_empty()),
            "{bad:?}"
        );
    }
    assert_eq!(
        w.snapshot().coflows.get(CoflowId(1)).unwrap().priority,
        Some(0),
        "what is refused changes nothing"
    );
    w.tell(Event::CoflowFinished { id: CoflowId(1), at: w.now }).unwrap();
    let over = w.tell(Event::CoflowPrioritised { id: CoflowId(1), change: change(Some(1), &[]) });
    assert!(matches!(over, Err(Rejected::Conflict(_))), "{over:?}");
}

#[test]
fn a_port_that_is_down_is_left_told_of_once_and_used_again() {
    let mut w = world(policy(SchedulerKind::Edmonds));
    w.backlog.set(RackId(0), RackId(1), 50_000_000);
    w.run_until(at(250));
    let joined = |w: &ControllerWorld| {
        w.snapshot().circuits.iter().any(|c| c.input == RackId(0) && c.until.is_none())
    };
    assert!(joined(&w));
    w.damage = vec![Damage {
        what: "link ocs0 of tor0 is gone".into(),
        port: Some((PlaneId(0), RackId(0))),
        ..Damage::default()
    }];
    w.run_until(at(650));
    let s = w.snapshot();
    assert!(!joined(&w) && s.ports[0].faulty.as_deref() == Some("link ocs0 of tor0 is gone"));
    assert!(
        s.failures.len() == 1
            && s.failures[0].attempts == 4
            && s.failures[0].why == "link ocs0 of tor0 is gone",
        "{:?}",
        s.failures
    );
    let refused = w.tell(Event::PortRepaired { plane: PlaneId(0), rack: RackId(0) });
    assert!(matches!(refused, Err(Rejected::Conflict(_))), "{refused:?}");
    w.damage.clear();
    w.run_until(at(950));
    let s = w.snapshot();
    assert!(joined(&w) && s.failures.is_empty() && s.ports[0].faulty.is_none());
    let t = s.tampered.expect("it stays known");
    assert_eq!((t.from, t.until, t.found), (at(300), at(600), 1));
    let count = |of: fn(&RecordedEvent) -> bool| w.log.iter().filter(|r| of(&r.what)).count();
    assert_eq!(
        (
            count(|w| matches!(w, RecordedEvent::Failed { .. })),
            count(|w| matches!(w, RecordedEvent::Recovered { .. }))
        ),
        (1, 1)
    );
    assert_eq!(
        (
            count(|w| matches!(w, RecordedEvent::PortFaulty { .. })),
            count(|w| matches!(w, RecordedEvent::PortRepaired { .. }))
        ),
        (1, 1)
    );
}

#[test]
fn a_circuit_that_carries_nothing_though_bytes_wait_is_probed_and_left_if_it_is_dark() {
    let mut w = world(policy(SchedulerKind::Edmonds));
    w.backlog.set(RackId(0), RackId(1), 50_000_000);
    let gains = |w: &mut ControllerWorld, bytes: u64, until: u64| {
        let mut t = w.now.0 / MS.0;
        while t < until {
            (t, w.crossed) = (t + 100, w.crossed + bytes);
            w.run_until(at(t));
        }
        w.snapshot()
    };
    let s = gains(&mut w, 10_000_000, 600);
    assert_eq!(s.stats.probes_ok, s.stats.circuits_set, "only the probes of their set-ups");
    let s = gains(&mut w, 100_000, 900);
    assert!(
        s.stats.probes_ok > s.stats.circuits_set + 1 && s.ports.iter().all(|p| p.faulty.is_none()),
        "it has light: {:?}",
        s.stats
    );
    w.probe = |_, _| None;
    let s = gains(&mut w, 0, 1100);
    assert!(s.ports[0].faulty.is_some() && s.stats.probes_lost >= 2, "{:?}", s.stats);
}
