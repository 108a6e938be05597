//! Cycles at rest are passed over without a trace: a twin whose controller is woken for each of
//! them writes the same.

use proptest::prelude::*;

use super::*;
use crate::coflows::FlowSpec;
use crate::control::Trouble;
use crate::control::policy::{CircuitPolicy, Estimator, SchedulerKind};
use crate::ids::{HostId, PlaneId};
use crate::topology::{Plane, StopMode};
use crate::units::BitRate;

fn network(duplex: bool) -> Arc<Topology> {
    let plane = Plane {
        id: PlaneId(0),
        rate: BitRate::mbit(1000),
        delta: Span::millis(10),
        stop: StopMode::NotAllStop,
        duplex,
    };
    Arc::new(Topology::uniform("t", 4, 1, BitRate::mbit(1000), BitRate::mbit(100), vec![plane]))
}

/// Plays coflows that come after gaps (milliseconds), and 3 s more; gives the event log, the
/// result, and how many cycles were passed over. The twin hears, whenever it is woken, of a trouble
/// that is over: that is nothing to log, but it may not rest.
fn play(
    t: &Arc<Topology>,
    p: &RunPlan,
    coflows: &[(u64, CoflowSpec)],
    twin: bool,
) -> (Vec<String>, RunResult, usize) {
    let (mut log, mut rested, mut at) = (Vec::new(), 0, Time::ZERO);
    let mut write = |r: Record| log.push(serde_json::to_string(&r).expect("a record is JSON"));
    let mut run = Simulation::new(t, p, &mut write);
    let arrivals: Vec<(Time, &CoflowSpec)> = coflows
        .iter()
        .map(|(gap, c)| {
            at += Span::millis(*gap);
            (at, c)
        })
        .collect();
    let (mut arrivals, end) = (arrivals.into_iter().peekable(), at + Span::secs(3));
    while run.now() < end {
        let next = arrivals
            .peek()
            .map(|a| a.0)
            .into_iter()
            .chain(run.next_event())
            .chain([end])
            .min()
            .expect("the end");
        run.advance(next).expect("nothing is refused");
        while let Some((_, c)) = arrivals.next_if(|a| a.0 <= next) {
            run.arrive(c).expect("a new coflow");
        }
        if twin {
            run.driver
                .tell(Event::Trouble { what: Trouble::Names, why: None })
                .expect("it is heard");
        }
        let due = run.driver.controller.poll_timeout().filter(|w| w.at <= next);
        rested +=
            usize::from(run.unfinished() == 0 && due.is_some_and(|w| w.skip == Skip::IfQuiet));
        run.wake().expect("nothing is refused");
    }
    let result = run.result("w", &[]);
    (log, result, rested)
}

/// A coflow's flows: sending host, receiving host, kilobytes.
type FlowsInKilobytes = Vec<(u32, u32, u64)>;

fn coflows(raw: Vec<(u64, FlowsInKilobytes)>) -> Vec<(u64, CoflowSpec)> {
    let flow =
        |(from, to, kb)| FlowSpec { from: HostId(from), to: HostId(to), bytes: Bytes(kb * 1000) };
    let spec = |(k, (gap, flows)): (usize, (u64, FlowsInKilobytes))| {
        let (id, flows) = (CoflowId::from(k), flows.into_iter().map(flow).collect());
        (gap, CoflowSpec::new(id, format!("c{k}"), Time::ZERO, flows))
    };
    raw.into_iter().enumerate().map(spec).collect()
}

const ESTIMATORS: [Estimator; 6] = [
    Estimator::Counters,
    Estimator::Backlog,
    Estimator::Hedera,
    Estimator::HederaRacks,
    Estimator::Declared,
    Estimator::Combined,
];

fn policy(scheduler: SchedulerKind, demand: Estimator, ageing: u8) -> RunPlan {
    CircuitPolicy {
        scheduler,
        demand,
        ageing,
        elephant_threshold: Bytes(300_000),
        ..CircuitPolicy::default()
    }
    .into()
}

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    #[test]
    fn who_rests_writes_what_the_restless_twin_writes(
        k in 0..SchedulerKind::ALL.len(),
        demand in prop::sample::select(ESTIMATORS.to_vec()),
        (ageing, duplex) in (prop::sample::select(vec![0u8, 75]), any::<bool>()),
        raw in prop::collection::vec((0..2500u64, prop::collection::vec((0..4u32, 0..4u32, 0..3000u64), 0..6)), 1..6),
    ) {
        let (t, p, coflows) = (network(duplex), policy(SchedulerKind::ALL[k], demand, ageing), coflows(raw));
        let (a, b) = (play(&t, &p, &coflows, false), play(&t, &p, &coflows, true));
        prop_assert_eq!(a.0, b.0);
        prop_assert_eq!(a.1, b.1);
        prop_assert_eq!(b.2, 0);
    }
}

#[test]
fn an_idle_network_rests_but_for_a_rotation() {
    let coflows = coflows(vec![(0, vec![(0, 1, 2000)]), (60_000, vec![(1, 2, 2000)])]);
    for (scheduler, least, most) in
        [(SchedulerKind::Bipartite, 600, 630), (SchedulerKind::RoundRobin, 0, 0)]
    {
        let (log, _, rested) =
            play(&network(false), &policy(scheduler, Estimator::Declared, 0), &coflows, false);
        assert!((least..=most).contains(&rested), "{rested} cycles of {}", scheduler.name());
        assert!(log.len() > 630, "and every cycle is logged");
    }
}
