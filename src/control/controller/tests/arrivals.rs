//! Decisions that are made when a coflow arrives, beside those of each interval.

use super::*;

fn declared(at_arrivals: bool) -> CircuitPolicy {
    CircuitPolicy {
        scheduler: SchedulerKind::Sunflow,
        demand: Estimator::Declared,
        elephant_threshold: Bytes(1_000_000),
        at_arrivals,
        ..CircuitPolicy::default()
    }
}

fn arrive(w: &mut ControllerWorld, id: u32, bytes: u64) {
    let pairs = vec![RackBytes { from: RackId(id), to: RackId(3), bytes: Bytes(bytes) }];
    w.tell(Event::CoflowArrived {
        id: CoflowId(id),
        name: "c".into(),
        pairs,
        bound: Span::ZERO,
        progress: ProgressBy::Counters,
        weight: 1,
        priorities: Priorities::default(),
    })
    .unwrap();
}

#[test]
fn a_coflow_waits_for_the_lead_and_not_for_the_interval() {
    for (at_arrivals, cycle) in [(false, 200), (true, 130)] {
        let mut w = world(declared(at_arrivals));
        w.run_until(at(130));
        arrive(&mut w, 0, 50_000_000);
        w.run_until(at(250));
        assert_eq!(w.reserved()[0].setup_at, at(cycle + 7), "lead and notice after the cycle");
    }
}

#[test]
fn the_cycles_of_the_interval_stay_where_they_are() {
    let mut w = world(declared(true));
    w.run_until(at(130));
    arrive(&mut w, 0, 50_000_000);
    arrive(&mut w, 1, 50_000_000);
    let wake = w.c.poll_timeout().unwrap();
    assert_eq!(
        (wake.at, wake.why, wake.skip),
        (at(130), crate::WakeReason::Arrival, crate::Skip::Never)
    );
    w.run_until(at(130));
    let stats = |w: &ControllerWorld| (w.snapshot().stats.cycles, w.snapshot().stats.missed_cycles);
    assert_eq!(stats(&w), (2, 0), "one for both, and that at 100 ms");
    assert_eq!(w.c.poll_timeout().map(|w| w.at), Some(at(200)));
    // One that comes with a cycle has that one.
    w.run_until(at(199));
    w.now = at(200);
    arrive(&mut w, 2, 50_000_000);
    w.run_until(at(299));
    assert_eq!(stats(&w), (3, 0));
}

#[test]
fn what_needs_no_circuit_causes_no_decision() {
    let mut w = world(declared(true));
    w.run_until(at(130));
    arrive(&mut w, 0, 999_999);
    assert_eq!(w.c.poll_timeout().map(|w| w.at), Some(at(200)), "below the threshold");
    w.tell(Event::CoflowFinished { id: CoflowId(0), at: at(130) }).unwrap();
    let mut w = world(CircuitPolicy { scheduler: SchedulerKind::EpsOnly, ..declared(true) });
    w.run_until(at(130));
    arrive(&mut w, 0, 50_000_000);
    assert_ne!(w.c.poll_timeout().map(|w| w.why), Some(crate::WakeReason::Arrival));
}
