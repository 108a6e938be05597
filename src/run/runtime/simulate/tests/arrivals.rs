//! Decisions that are made when a coflow arrives, beside those of each interval.

use super::*;

#[test]
fn a_lone_coflow_is_sooner_if_it_is_decided_at_its_arrival() {
    let t = network(4, 2, 100);
    let gain = |ms: u64| {
        let flow = FlowSpec { from: HostId(0), to: HostId(2), bytes: Bytes(20_000_000) };
        let at = Time::ZERO + Span::millis(ms);
        let w = Workload::new("w", vec![CoflowSpec::new(CoflowId(0), "c", at, vec![flow])]);
        let [late, soon] = [false, true].map(|at_arrivals| {
            let (scheduler, demand) = (SchedulerKind::Sunflow, Estimator::Declared);
            let p = CircuitPolicy { scheduler, demand, at_arrivals, ..CircuitPolicy::default() };
            let (a, b) = (run(&t, &p.clone().into(), &w, None), run(&t, &p.into(), &w, None));
            assert_eq!(a, b);
            a.0.coflows[0].cct.unwrap()
        });
        assert!(soon <= late, "at {ms} ms: {soon}, not {late}");
        late.0 - soon.0
    };
    // It waits for up to an interval less; meanwhile the packet core would have carried a tenth.
    let gains: Vec<u64> = (0..10).map(|k| gain(103 + 10 * k)).collect();
    let most = Span(*gains.iter().max().unwrap());
    assert!((Span::millis(80)..=Span::millis(90)).contains(&most), "{gains:?}");
}
