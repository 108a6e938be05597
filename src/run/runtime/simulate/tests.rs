//! The virtual run as a whole: repeatable, honest about what is unfinished, and helped by circuits.

use super::*;
use crate::coflows::elephants::Admit;
use crate::coflows::network::NetworkKind::{
    Aalo, FairPerCoflow, Fifo, MaxMin, Priority, Sincronia, Varys,
};
use crate::coflows::network::{Decide, Guard, Network, NetworkKind, Within};
use crate::coflows::{CoflowSpec, FlowSpec};
use crate::control::policy::{CircuitPolicy, Estimator, SchedulerKind};
use crate::control::record::RecordedEvent;
use crate::fabric::SEND_BUFFER;
use crate::ids::{CoflowId, FlowId, HostId, PlaneId, RackId};
use crate::topology::{Framing, Plane, StopMode};
use crate::units::{BitRate, Bytes, Span};
use crate::workload::synth::{Synth, synth};

mod arrivals;

fn network(racks: usize, hosts: usize, uplink: u64) -> Arc<Topology> {
    let plane = Plane {
        id: PlaneId(0),
        rate: BitRate::mbit(1000),
        delta: Span::millis(10),
        stop: StopMode::NotAllStop,
        duplex: false,
    };
    Arc::new(Topology::uniform(
        "t",
        racks,
        hosts,
        BitRate::mbit(1000),
        BitRate::mbit(uplink),
        vec![plane],
    ))
}

fn policy(scheduler: SchedulerKind) -> RunPlan {
    CircuitPolicy { scheduler, ..CircuitPolicy::default() }.into()
}

/// No circuits, and a packet network that coflows share by `kind`.
fn shared_by(kind: NetworkKind) -> RunPlan {
    under(kind, SchedulerKind::EpsOnly)
}

fn under(kind: NetworkKind, scheduler: SchedulerKind) -> RunPlan {
    let mut plan = policy(scheduler);
    plan.run.network.kind = kind;
    plan
}

/// Aalo's queues one after another, as its prototype has them.
fn strict() -> crate::coflows::orders::Aalo {
    crate::coflows::orders::Aalo {
        sharing: crate::coflows::orders::Sharing::Strict,
        ..Default::default()
    }
}

fn workload(t: &Topology, seed: u64) -> Workload {
    let ask =
        Synth { racks: t.rack_count(), hosts: 2, coflows: 12, seed, mean_gap: Span::millis(300) };
    let w = synth(&ask).to_workload("w", t, &Default::default()).unwrap();
    w.adjusted(&crate::workload::Adjust { scale: 10, ..Default::default() })
}

fn run(t: &Arc<Topology>, p: &RunPlan, w: &Workload, until: Option<Time>) -> (RunResult, String) {
    let mut log = String::new();
    let result = simulate(t, p, w, until, &mut |r| {
        log.push_str(&(serde_json::to_string(&r).unwrap() + "\n"))
    })
    .unwrap();
    (result, log)
}

#[test]
fn the_same_input_gives_the_same_log_byte_for_byte() {
    let t = network(4, 2, 100);
    for scheduler in [
        SchedulerKind::RoundRobin,
        SchedulerKind::Bipartite,
        SchedulerKind::Edmonds,
        SchedulerKind::EpsOnly,
    ] {
        let (p, w) = (policy(scheduler), workload(&t, 5));
        let (a, b) = (run(&t, &p, &w, None), run(&t, &p, &w, None));
        assert_eq!(a, b);
        assert_eq!((a.0.summary.unfinished, a.0.summary.bytes_received), (0, w.bytes()));
        assert!(a.0.coflows.iter().all(|c| c.cct.unwrap() >= c.bound));
        assert_eq!(
            (
                a.0.summary.late_packets,
                a.0.summary.stats.probes_lost,
                a.0.summary.stats.probes_wrong
            ),
            (0, 0, 0)
        );
    }
}

#[test]
fn without_a_way_the_run_ends_and_says_what_is_unfinished() {
    let t = network(4, 2, 0);
    let r = run(&t, &policy(SchedulerKind::EpsOnly), &workload(&t, 1), None).0;
    assert!(r.summary.unfinished > 0 && r.coflows.iter().any(|c| c.cct.is_none()));
    assert_eq!(r.summary.ocs_share, 0.0);
}

#[test]
fn until_cuts_the_run_short() {
    let t = network(4, 2, 100);
    let r = run(&t, &policy(SchedulerKind::EpsOnly), &workload(&t, 2), Some(Time(500_000_000))).0;
    assert_eq!(r.summary.ended, Time(500_000_000));
    assert!(r.summary.unfinished > 0 && r.summary.bytes_received < r.summary.bytes_asked);
}

#[test]
fn an_empty_workload_and_a_local_coflow_take_no_time() {
    let t = network(2, 2, 100);
    assert_eq!(
        run(&t, &RunPlan::default(), &Workload::default(), None).0.summary.makespan,
        Span::ZERO
    );
    let flows = vec![FlowSpec { from: HostId(0), to: HostId(0), bytes: Bytes(9) }];
    let w = Workload::new("x", vec![CoflowSpec::new(CoflowId(0), "local", Time(3), flows)]);
    let r = run(&t, &RunPlan::default(), &w, None).0;
    assert_eq!((r.coflows[0].cct, r.coflows[0].ocs_share), (Some(Span::ZERO), 0.0));
}

#[test]
fn sums_are_those_of_all_bytes_whether_a_policy_reads_counters_or_not() {
    let (t, w) = (network(4, 2, 100), workload(&network(4, 2, 100), 3));
    for scheduler in [SchedulerKind::Bipartite, SchedulerKind::EpsOnly] {
        for demand in [Estimator::Counters, Estimator::Backlog, Estimator::Declared] {
            let mut p = policy(scheduler);
            p.policy.demand = demand;
            let r = run(&t, &p, &w, None).0;
            let between = r.coflows.iter().map(|c| c.bytes_between_racks).sum();
            assert_eq!(r.summary.bytes_on_wire, between, "{scheduler:?} on {demand:?}");
            let ocs: f64 =
                r.coflows.iter().map(|c| c.ocs_share * c.bytes_between_racks.0 as f64).sum();
            assert!(
                (r.summary.ocs_share - ocs / between.0 as f64).abs() < 1e-6,
                "{scheduler:?} on {demand:?}"
            );
            assert_eq!(r.summary.ocs_share > 0.0, scheduler == SchedulerKind::Bipartite);
        }
    }
}

#[test]
fn circuits_help_when_the_scheduler_sets_them() {
    let t = network(4, 2, 100);
    let w = workload(&t, 3);
    let (with, log) = run(&t, &policy(SchedulerKind::Bipartite), &w, None);
    let without = run(&t, &policy(SchedulerKind::EpsOnly), &w, None).0;
    assert!(with.summary.average_cct < without.summary.average_cct && log.contains("circuit-set"));
    assert!(with.summary.ocs_share > 0.5 && without.summary.ocs_share == 0.0);
    let cycles = log
        .lines()
        .filter(|l| {
            matches!(serde_json::from_str::<Record>(l).unwrap().what, RecordedEvent::Cycle { .. })
        })
        .count();
    assert_eq!(cycles as u64, with.summary.stats.cycles);
}

#[test]
fn rows_are_the_coflows_of_the_result_and_its_sums_are_over_all_of_them() {
    let t = network(4, 2, 100);
    let (p, w) = (policy(SchedulerKind::Bipartite), workload(&t, 5));
    for until in [None, Some(Time(300_000_000))] {
        let told = std::cell::RefCell::new(vec![]);
        let take = |row: ResultRow| match row {
            ResultRow::Coflow(c) => told.borrow_mut().push(c.clone()),
            ResultRow::Job(_) | ResultRow::Task(_) => panic!("there are no jobs"),
        };
        let how = SimOptions { until, rows: Some(&take), ..SimOptions::default() };
        let r = simulate_watched(&t, &p, &w, &how, &mut |_| (), &mut |_| true).unwrap();
        assert!(r.coflows.is_empty(), "nothing is kept");
        let mut coflows = told.take();
        assert_eq!(coflows.len(), w.coflows.len());
        coflows.sort_by_key(|c| c.id);
        assert_eq!(RunResult { coflows, ..r }, run(&t, &p, &w, until).0, "{until:?}");
    }
}

#[test]
fn a_caller_may_decide_while_it_goes_on() {
    // The same workload, handed over coflow by coflow: a second coflow begins when the first has
    // finished.
    let t = network(2, 1, 100);
    let flows = vec![FlowSpec { from: HostId(0), to: HostId(1), bytes: Bytes(1_000_000) }];
    let coflow =
        |id, arrival| CoflowSpec::new(CoflowId(id), format!("c{id}"), arrival, flows.clone());
    let mut quiet = |_| ();
    let mut run = Simulation::new(&t, &policy(SchedulerKind::EpsOnly), &mut quiet);
    run.arrive(&coflow(5, Time::ZERO)).unwrap();
    assert!(run.arrive(&coflow(5, Time::ZERO)).is_err(), "the number is taken");
    run.wake().unwrap();
    let first = run.next_event().unwrap();
    run.advance(first).unwrap();
    assert_eq!(run.take_finished().coflows, [(CoflowId(5), first)]);
    run.arrive(&coflow(2, Time::ZERO)).unwrap();
    run.wake().unwrap();
    let second = run.next_event().unwrap();
    run.advance(second).unwrap();
    assert_eq!(run.take_finished().flows.len(), 1);
    assert_eq!((second.since(first), run.unfinished()), (first.since(Time::ZERO), 0));
    let r = run.result("w", &[]);
    assert_eq!(
        r.coflows.iter().map(|c| (c.id.0, c.arrival)).collect::<Vec<_>>(),
        [(2, first), (5, Time::ZERO)]
    );
}

/// Other priorities go by the controller, as they do live: it logs them, refuses what it does not
/// know, and says them once.
#[test]
fn priorities_under_way_go_by_the_controller() {
    let t = network(2, 1, 100);
    let flows = vec![FlowSpec { from: HostId(0), to: HostId(1), bytes: Bytes(1_000_000) }];
    let id = CoflowId(5);
    let coflow = CoflowSpec::new(id, "c", Time::ZERO, flows);
    let mut said = Vec::new();
    {
        let mut log = |r: Record| {
            if let RecordedEvent::CoflowPrioritised { flows, priority, .. } = r.what {
                said.push((r.at, priority, flows));
            }
        };
        let mut run = Simulation::new(&t, &policy(SchedulerKind::EpsOnly), &mut log);
        run.arrive(&coflow).unwrap();
        run.prioritise(id, &[(FlowId(0), 1)]).unwrap();
        run.prioritise(id, &[(FlowId(0), 1)]).unwrap();
        assert!(
            run.prioritise(id, &[(FlowId(0), 8)]).is_err()
                && run.prioritise(CoflowId(6), &[(FlowId(0), 1)]).is_err()
        );
        run.wake().unwrap();
        let end = run.next_event().unwrap();
        run.advance(end).unwrap();
        run.wake().unwrap();
        run.prioritise(id, &[(FlowId(0), 2)]).unwrap();
    }
    assert_eq!(said, [(Time::ZERO, None, 1)], "what is over changes no more");
}

#[test]
fn cycles_that_decide_nothing_are_counted_and_cost_nothing() {
    let t = network(2, 1, 1);
    let flows = vec![FlowSpec { from: HostId(0), to: HostId(1), bytes: Bytes(10_000_000) }];
    let w = Workload::new("x", vec![CoflowSpec::new(CoflowId(0), "slow", Time(0), flows)]);
    let (r, log) = run(&t, &policy(SchedulerKind::EpsOnly), &w, None);
    let (cct, interval) = (r.coflows[0].cct.unwrap(), Span::millis(100));
    assert_eq!(r.summary.stats.cycles, (cct.0 - interval.0 / 2) / interval.0 + 1);
    assert_eq!(r.summary.stats.cycle.count, r.summary.stats.cycles);
    assert_eq!(log.lines().count(), 2, "an arrival and a finish: {log}");
}

#[test]
fn who_watches_may_end_the_run_and_keeps_what_it_has() {
    let t = network(4, 2, 100);
    let (p, w) = (policy(SchedulerKind::Bipartite), workload(&t, 2));
    let whole = simulate(&t, &p, &w, None, &mut |_| ()).unwrap();
    let mut seen = Vec::new();
    let mut watch = |at: Progress| {
        seen.push(at);
        seen.len() < 2
    };
    let part =
        simulate_watched(&t, &p, &w, &SimOptions::default(), &mut |_| (), &mut watch).unwrap();
    assert_eq!(
        (seen.len(), seen[0].events, seen[0].coming, seen[1].events),
        (3, 0, w.coflows.len(), LOOK)
    );
    assert_eq!(seen[1], seen[2], "the end");
    assert!(part.summary.finished < whole.summary.finished && part.summary.ended == seen[1].now);
    for (a, b) in part.coflows.iter().zip(&whole.coflows).filter(|(a, _)| a.finished.is_some()) {
        assert_eq!(a.cct, b.cct);
    }
    assert_eq!(
        simulate_watched(&t, &p, &w, &SimOptions::default(), &mut |_| (), &mut |_| true).unwrap(),
        whole
    );
}

#[test]
fn no_network_scheduler_beats_the_bound_and_all_carry_everything() {
    let t = network(4, 2, 100);
    let w = workload(&t, 7);
    for kind in [MaxMin, FairPerCoflow, Fifo, Varys, Aalo, Sincronia, Priority] {
        for scheduler in [SchedulerKind::EpsOnly, SchedulerKind::Bipartite] {
            let p = under(kind, scheduler);
            let (a, b) = (run(&t, &p, &w, None), run(&t, &p, &w, None));
            assert_eq!(a, b, "{kind:?}");
            assert_eq!(
                (a.0.summary.unfinished, a.0.summary.bytes_received),
                (0, w.bytes()),
                "{kind:?}"
            );
            assert!(a.0.coflows.iter().all(|c| c.cct.unwrap() >= c.bound), "{kind:?}");
        }
    }
}

#[test]
fn facebooks_mix_takes_by_sums_what_it_takes_by_flows() {
    let mut t = Topology::uniform("t", 40, 1, BitRate::mbit(1000), BitRate::mbit(1000), vec![]);
    t.framing = Framing::None;
    let t = Arc::new(t);
    // How far CCTs of single coflows may be apart on average: coflows that wait behind others take
    // what these leave, and that differs.
    let greedy =
        [(MaxMin, 0.05), (Fifo, 0.4), (Varys, 0.02), (Sincronia, 0.05), (FairPerCoflow, 0.08)]
            .map(|(kind, most)| (kind, Within::Greedy, most));
    for (kind, flows, most) in greedy.into_iter().chain([(Aalo, Within::MaxMin, 0.05)]) {
        // Of all loads together: the sums of CCTs by sums and by flows, and of how far those of a
        // coflow are apart (logarithms).
        let (mut totals, mut apart, mut coflows) = ([0.0, 0.0], 0.0, 0.0);
        for seed in 1..=4 {
            let ask =
                Synth { racks: 40, hosts: 1, coflows: 60, seed, mean_gap: Span::millis(5000) };
            let w = synth(&ask).to_workload("w", &t, &Default::default()).unwrap();
            let ccts = [Within::Sums, flows].map(|within| {
                let mut p = shared_by(kind);
                (p.policy.demand, p.policy.probes, p.run.network.within) =
                    (Estimator::Backlog, false, within);
                let r = run(&t, &p, &w, None).0;
                assert_eq!((r.summary.unfinished, r.summary.bytes_received), (0, w.bytes()));
                assert!(r.coflows.iter().all(|c| c.cct.unwrap() + Span(20) >= c.bound), "{kind:?}");
                r.coflows.iter().map(|c| c.cct.unwrap().as_secs_f64()).collect::<Vec<f64>>()
            });
            for (total, ccts) in totals.iter_mut().zip(&ccts) {
                *total += ccts.iter().sum::<f64>();
            }
            apart += ccts[0].iter().zip(&ccts[1]).map(|(a, b)| (a / b).ln().abs()).sum::<f64>();
            coflows += ccts[0].len() as f64;
        }
        let (ratio, apart) = (totals[0] / totals[1], apart / coflows);
        assert!((ratio - 1.0).abs() < 0.05 && apart < most, "{kind:?}: {ratio}, {apart}");
    }
}

#[test]
fn a_broken_port_is_found_by_probes_routed_around_and_mended() {
    let t = network(4, 2, 100);
    let w = workload(&t, 3);
    let faults: Vec<_> =
        ["ocs0.in1=dark@200ms+2s", "ocs0.out2=stuck@300ms+1s", "r3.uplink=50%@100ms+1s"]
            .map(|f| crate::config::faults::read_fault(f, &t).unwrap())
            .into();
    let run = || {
        let mut log = String::new();
        let mut write = |r| log.push_str(&(serde_json::to_string(&r).unwrap() + "\n"));
        let how = SimOptions {
            extras: Extras { faults: &faults, ..Extras::default() },
            ..SimOptions::default()
        };
        let r = simulate_watched(
            &t,
            &policy(SchedulerKind::Bipartite),
            &w,
            &how,
            &mut write,
            &mut |_| true,
        )
        .unwrap();
        (r, log)
    };
    let ((r, log), again) = (run(), run());
    assert_eq!((&r, &log), (&again.0, &again.1));
    assert_eq!((r.summary.unfinished, r.summary.bytes_received), (0, w.bytes()));
    assert!(r.summary.stats.probes_lost > 0);
    let at = |what: &str| {
        log.lines().position(|l| l.contains(what)).unwrap_or_else(|| panic!("no {what}"))
    };
    assert!(at("ocs0.in1=dark") < at("port-faulty") && at("port-faulty") < at("port-repaired"));
    assert_eq!(log.matches("\"event\":\"fault\"").count(), 6);
    assert!(
        r.summary.average_cct
            > simulate(&t, &policy(SchedulerKind::Bipartite), &w, None, &mut |_| ())
                .unwrap()
                .summary
                .average_cct
    );
}

#[test]
fn what_links_carry_over_time_is_all_that_is_carried_and_changes_nothing() {
    let t = network(4, 2, 100);
    let (p, w) = (policy(SchedulerKind::Bipartite), workload(&t, 2));
    let how = SimOptions {
        extras: Extras { bucket: Some(bucket(&t, &w)), ..Extras::default() },
        ..SimOptions::default()
    };
    let r = simulate_watched(&t, &p, &w, &how, &mut |_| (), &mut |_| true).unwrap();
    let u = r.utilisation.clone().unwrap();
    let sum = |end: &str| {
        u.links.iter().filter(|l| l.name.ends_with(end)).flat_map(|l| &l.bytes).sum::<u64>()
    };
    let (up, ocs) = (sum(".up"), u.links.last().unwrap().bytes.iter().sum::<u64>());
    assert!((up + ocs).abs_diff(r.summary.bytes_on_wire.0) <= 16 && up.abs_diff(sum(".down")) <= 4);
    assert!(ocs > up && sum("local") > 0 && u.until == r.summary.ended);
    for l in &u.links {
        let whole = l.rate.bytes_in(u.bucket).0 + 4;
        assert!(l.bytes.iter().all(|&b| b <= whole), "{} is above what it carries", l.name);
    }
    assert_eq!(
        RunResult { utilisation: None, ..r },
        simulate(&t, &p, &w, None, &mut |_| ()).unwrap()
    );
}

#[test]
fn a_result_says_why_the_run_ended() {
    let t = network(4, 2, 100);
    let (p, w) = (policy(SchedulerKind::EpsOnly), workload(&t, 2));
    let end = |t: &Arc<Topology>, until, go_on: bool| {
        let how = SimOptions { until, ..SimOptions::default() };
        let r = simulate_watched(t, &p, &w, &how, &mut |_| (), &mut |at| go_on || at.events < LOOK)
            .unwrap();
        (r.end, r.events.unwrap() > 0)
    };
    assert_eq!(end(&t, None, true), (RunEnd::Finished, true));
    assert_eq!(end(&t, Some(Time(500_000_000)), true), (RunEnd::Until, true));
    assert_eq!(end(&t, None, false), (RunEnd::Stopped, true));
    assert_eq!(end(&network(4, 2, 0), None, true), (RunEnd::Stuck, true));
}

#[test]
fn a_cancelled_coflow_stops_and_makes_room() {
    let t = network(2, 1, 100);
    let flows = vec![FlowSpec { from: HostId(0), to: HostId(1), bytes: Bytes(1_000_000) }];
    let coflow = |id| CoflowSpec::new(CoflowId(id), format!("c{id}"), Time::ZERO, flows.clone());
    let mut log = Vec::new();
    let mut keep = |r: Record| log.push(r.what);
    let mut run = Simulation::new(&t, &policy(SchedulerKind::EpsOnly), &mut keep);
    run.arrive(&coflow(0)).unwrap();
    run.arrive(&coflow(1)).unwrap();
    run.wake().unwrap();
    run.advance(Time(20_000_000)).unwrap();
    run.cancel(CoflowId(0)).unwrap();
    // The second time changes nothing.
    run.cancel(CoflowId(0)).unwrap();
    run.cancel(CoflowId(7)).unwrap();
    run.wake().unwrap();
    assert_eq!(run.unfinished(), 1);
    let end = run.next_event().unwrap();
    run.advance(end).unwrap();
    assert_eq!((run.take_finished().coflows, run.unfinished()), (vec![(CoflowId(1), end)], 0));
    let r = run.result("w", &[]);
    // Half of the first 20 ms was the other's.
    let alone = t.payload(BitRate::mbit(100)).time_for(Bytes(1_000_000));
    assert!(end.since(Time::ZERO).0.abs_diff(alone.0 + 10_000_000) < 10, "{end:?}");
    assert_eq!((r.summary.finished, r.coflows[0].cct), (1, None));
    assert!(
        r.summary.bytes_received < Bytes(1_150_000)
            && log.contains(&RecordedEvent::CoflowCancelled { id: CoflowId(0), why: None })
    );
}

#[test]
fn alone_nobody_waits_for_another() {
    let t = network(4, 2, 100);
    let w = workload(&t, 2);
    for p in [policy(SchedulerKind::EpsOnly), policy(SchedulerKind::Bipartite)] {
        let r = simulate_alone(&t, &p, &w, &mut |_| true).unwrap();
        assert_eq!((r.summary.unfinished, r.summary.bytes_received), (0, w.bytes()));
        for (k, c) in r.coflows.iter().enumerate() {
            let mut own = w.clone();
            own.coflows = vec![CoflowSpec { arrival: Time::ZERO, ..w.coflows[k].clone() }];
            let one = simulate(&t, &p, &own, None, &mut |_| ()).unwrap();
            assert_eq!((c.cct, c.arrival), (one.coflows[0].cct, w.coflows[k].arrival));
            assert_eq!(c.finished, Some(c.arrival + c.cct.unwrap()));
        }
        let three = simulate_alone(&t, &p, &w, &mut |at| at.coming > w.coflows.len() - 4).unwrap();
        assert_eq!(three.coflows, r.coflows[..3]);
    }
}

/// Figures of the Facebook trace that anybody can check: the mean CCT, and that of per-flow
/// fairness over that of Varys.
#[test]
#[ignore = "half a minute in a debug build: the whole Facebook trace"]
fn the_facebook_trace() {
    let Some(dir) = crate::testing::traces("coflow-benchmark") else { return };
    let text = std::fs::read_to_string(dir.join("FB2010-1Hr-150-0.txt")).unwrap();
    let plane = Plane {
        id: PlaneId(0),
        rate: BitRate::mbit(1000),
        delta: Span::millis(10),
        stop: StopMode::NotAllStop,
        duplex: false,
    };
    let mut t =
        Topology::uniform("t", 150, 1, BitRate::mbit(1000), BitRate::mbit(1000), vec![plane]);
    t.framing = crate::topology::Framing::None;
    let trace = crate::workload::coflow_benchmark::parse(&text).unwrap();
    let w = trace.to_workload("fb", &t, &Default::default()).unwrap();
    let t = Arc::new(t);
    for (kind, mean_ms) in [(MaxMin, 57_958), (Varys, 22_050), (Sincronia, 22_169), (Aalo, 36_773)]
    {
        let mut p = shared_by(kind);
        p.run.network.aalo = strict();
        let r = simulate(&t, &p, &w, None, &mut |_| ()).unwrap();
        assert_eq!(
            (r.summary.finished, r.summary.average_cct.0 / 1_000_000),
            (526, mean_ms),
            "{kind:?}"
        );
        assert!(r.coflows.iter().all(|c| c.cct.unwrap() >= c.bound));
    }
}

/// The sums of CCTs that the simulator of Sunflow's authors prints for Aalo, on the coflows of the
/// Facebook trace that have at most 100 and 1000 flows: 275.829 and 833.075 s. It changes rates
/// only when a coflow comes or ends.
#[test]
fn aalo_at_coflow_events_is_the_public_simulator_to_half_a_per_cent() {
    let Some(dir) = crate::testing::traces("coflow-benchmark") else { return };
    let text = std::fs::read_to_string(dir.join("FB2010-1Hr-150-0.txt")).unwrap();
    let mut t = Topology::uniform("t", 150, 1, BitRate::mbit(1000), BitRate::mbit(1000), vec![]);
    t.framing = crate::topology::Framing::None;
    let (trace, t) = (crate::workload::coflow_benchmark::parse(&text).unwrap(), Arc::new(t));
    let all = trace.to_workload("fb", &t, &Default::default()).unwrap();
    for (flows, published) in [(100, 275_829), (1000, 833_075)] {
        let w = Workload::new(
            "le",
            all.coflows.iter().filter(|c| c.flows.len() <= flows).cloned().collect(),
        );
        let mut plan = shared_by(Aalo);
        let (aalo, within) =
            (crate::coflows::orders::Aalo { interval: Span::ZERO, ..strict() }, Within::MaxMin);
        plan.run.network =
            Network { decide: Decide::CoflowEvents, within, aalo, ..plan.run.network };
        let r = simulate(&t, &plan, &w, None, &mut |_| ()).unwrap();
        let sum: u64 = r.coflows.iter().map(|c| c.cct.unwrap().0 / 1_000_000).sum();
        assert!(
            sum.abs_diff(published) * 200 < published,
            "{sum} ms against {published} ms with at most {flows} flows"
        );
    }
}

/// What a host sends to itself takes no time; with loopback it crosses the host's interface like
/// all else there, under every scheduler.
#[test]
fn a_loopback_crosses_its_hosts_interface() {
    let plain =
        Topology { framing: crate::topology::Framing::None, ..(*network(2, 2, 1000)).clone() };
    let flow =
        |a: u32, b: u32| FlowSpec { from: HostId(a), to: HostId(b), bytes: Bytes(125_000_000) };
    // Out of host 0 go 375 MB of three coflows, or 250 MB if its own are free: 3 s, or 2 s at 1
    // Gb/s. Into it come 125 MB, or none.
    let coflows: Vec<CoflowSpec> = [vec![flow(0, 0)], vec![flow(0, 1)], vec![flow(0, 2)]]
        .into_iter()
        .enumerate()
        .map(|(k, flows)| CoflowSpec::new(CoflowId(k as u32), format!("c{k}"), Time::ZERO, flows))
        .collect();
    let w = Workload::new("w", coflows);
    for kind in [MaxMin, Varys, Aalo, Sincronia, Fifo, FairPerCoflow, Priority] {
        let p = shared_by(kind);
        for (loopback, seconds) in [(false, 2), (true, 3)] {
            let t = Arc::new(Topology { loopback, ..plain.clone() });
            let (r, _) = run(&t, &p, &w, None);
            assert_eq!(
                (r.summary.unfinished, r.summary.bytes_received),
                (0, w.bytes()),
                "{kind:?}"
            );
            let late = r.summary.makespan.0.abs_diff(seconds * 1_000_000_000);
            assert!(late <= 10, "{kind:?}, loopback {loopback}: {}", r.summary.makespan);
            assert_eq!(r.coflows[0].cct == Some(Span::ZERO), !loopback, "{kind:?}");
        }
    }
}

/// No coflow beats its bound under any network scheduler, flows within racks and hosts included.
#[test]
fn no_coflow_beats_its_bound() {
    for kind in
        [MaxMin, Varys, Aalo, Sincronia, Fifo, FairPerCoflow, Priority, NetworkKind::Sunflow]
    {
        for (seed, loopback) in [(1, false), (2, true), (3, false), (4, true)] {
            let t = Arc::new(Topology { loopback, ..(*network(3, 2, 1000)).clone() });
            let mut w = workload(&t, seed);
            // All at once, and bytes enough within racks for them to be what takes longest.
            for c in &mut w.coflows {
                c.arrival = Time::ZERO;
                let locals = [(0, 1), (0, 1), (2, 3), (4, 4)].map(|(a, b)| FlowSpec {
                    from: HostId(a),
                    to: HostId(b),
                    bytes: Bytes(40_000_000),
                });
                c.flows = c.flows.iter().chain(locals).collect();
            }
            let p = shared_by(kind);
            let (r, _) = run(&t, &p, &w, None);
            assert_eq!(r.summary.unfinished, 0, "{kind:?}");
            let beats = r.coflows.iter().find(|c| c.cct < Some(c.bound));
            assert_eq!(beats, None, "{kind:?}, seed {seed}, loopback {loopback}");
        }
    }
}

/// 40 MB in four flows and 300 MB in one, from one rack to two others.
fn four_small_flows_and_a_large_one() -> Workload {
    let flow = |from: u32, to: u32, mb: u64| FlowSpec {
        from: HostId(from),
        to: HostId(to),
        bytes: Bytes(mb * 1_000_000),
    };
    let coflow = |id: u32, flows: Vec<FlowSpec>| {
        CoflowSpec::new(CoflowId(id), format!("c{id}"), Time::ZERO, flows)
    };
    let small = vec![flow(0, 4, 10), flow(0, 5, 10), flow(1, 4, 10), flow(1, 5, 10)];
    Workload::new("buffers", vec![coflow(0, small), coflow(1, vec![flow(0, 2, 300)])])
}

#[test]
fn small_buffers_show_numbers_of_flows_and_large_ones_what_waits() {
    let (t, w) = (network(4, 2, 100), four_small_flows_and_a_large_one());
    let first = |buffer| {
        let mut plan = policy(SchedulerKind::Edmonds);
        (plan.policy.demand, plan.run.admit, plan.run.buffer) =
            (Estimator::Backlog, Admit::All, buffer);
        let log = run(&t, &plan, &w, None).1;
        let set = log.lines().find_map(|l| match serde_json::from_str::<Record>(l).unwrap().what {
            RecordedEvent::CircuitSet { input: RackId(0), output, demand, .. } => {
                Some((output, demand.expect("what the decision saw")))
            }
            _ => None,
        });
        set.expect("a circuit from the first rack")
    };
    assert_eq!(first(SEND_BUFFER).0, RackId(2), "four buffers against one");
    let (output, demand) = first(Bytes(100_000_000));
    assert_eq!(output, RackId(1), "300 MB against 40 MB");
    assert!(
        demand > Bytes(40_000_000) && demand <= Bytes(300_000_000),
        "{demand}: of the pair that won"
    );
}

#[test]
fn helios_counts_flows_between_hosts() {
    // One flow of a host to the next rack, and four of both hosts to the one after it.
    let flow = |from: u32, to: u32, mb: u64| FlowSpec {
        from: HostId(from),
        to: HostId(to),
        bytes: Bytes(mb * 1_000_000),
    };
    let flows =
        vec![flow(0, 2, 60), flow(0, 4, 15), flow(0, 5, 15), flow(1, 4, 15), flow(1, 5, 15)];
    let mut coflow = four_small_flows_and_a_large_one().coflows[0].clone();
    coflow.flows = flows.into();
    let (t, w) = (network(4, 2, 100), Workload::new("hosts", vec![coflow]));
    let first = |demand| {
        let mut plan = policy(SchedulerKind::Bipartite);
        (plan.policy.demand, plan.run.admit) = (demand, Admit::All);
        let log = run(&t, &plan, &w, None).1;
        let set = log.lines().find_map(|l| match serde_json::from_str::<Record>(l).unwrap().what {
            RecordedEvent::CircuitSet { input: RackId(0), output, demand, .. } => {
                Some((output, demand.expect("what the decision saw")))
            }
            _ => None,
        });
        set.expect("a circuit from the first rack")
    };
    // A host's link carries 12.5 MB in 100 ms: the first host's is shared by three flows, the
    // second one's by two.
    assert_eq!(first(Estimator::Hedera), (RackId(2), Bytes(2 * 4_166_666 + 12_500_000)));
    // By pairs of racks four flows weigh as much as one: half of both links.
    assert_eq!(first(Estimator::HederaRacks), (RackId(1), Bytes(12_500_000)));
}

#[test]
fn a_guard_ends_what_an_order_would_let_wait() {
    // 20 MB over one link, and 5 MB each time the one before has ended, 60 times.
    let t = network(2, 1, 100);
    let payload = crate::coflows::bounds::payload_rate(BitRate::mbit(100));
    let stream = payload.time_for(Bytes(5_000_000));
    let coflow = |id: u32, mb: u64, arrival: Time| {
        CoflowSpec::new(
            CoflowId(id),
            format!("c{id}"),
            arrival,
            vec![FlowSpec { from: HostId(0), to: HostId(1), bytes: Bytes(mb * 1_000_000) }],
        )
    };
    let small = (1..61).map(|k| coflow(k, 5, Time::ZERO + stream * u64::from(k - 1)));
    let w =
        Workload::new("stream", std::iter::once(coflow(0, 20, Time::ZERO)).chain(small).collect());
    for kind in [Varys, Sincronia, Aalo, Priority] {
        let end = |starvation| {
            let mut plan = policy(SchedulerKind::EpsOnly);
            plan.run.network = Network { kind, starvation, aalo: strict(), ..Network::default() };
            let r = run(&t, &plan, &w, None).0;
            (r.coflows[0].finished.unwrap(), r.summary.makespan)
        };
        let (waits, all) = end(None);
        assert_eq!(waits, Time::ZERO + all, "{kind:?}: the last of all");
        let (guarded, _) = end(Some(Guard { every: Span::millis(200), share: Span::millis(200) }));
        // Half of the time it shares with one of the stream that has just come and one that is late
        // for every 5 MB that it has sent. So 20 MB take the integral of 2 (2 + sent / 5 MB) over
        // them at 11.95 MB a second, 13.4 s, and a little more as coflows are whole.
        assert!(
            guarded < Time(16_000_000_000) && waits > Time(24_000_000_000),
            "{kind:?}: {guarded} of {waits}"
        );
    }
}

#[test]
fn what_a_flow_had_idles_until_a_coflow_ends_if_rates_change_then_only() {
    // Both flows of the second coflow share their receiver with one of the first's, of which the
    // shorter ends at a third of the time.
    let t = network(4, 1, 100);
    let flow = |from: u32, to: u32, mb: u64| FlowSpec {
        from: HostId(from),
        to: HostId(to),
        bytes: Bytes(mb * 1_000_000),
    };
    let coflow = |id: u32, flows: Vec<FlowSpec>| {
        CoflowSpec::new(CoflowId(id), format!("c{id}"), Time(u64::from(id)), flows)
    };
    let w = Workload::new(
        "idle",
        vec![coflow(0, vec![flow(0, 2, 1), flow(1, 3, 3)]), coflow(1, vec![flow(0, 2, 1)])],
    );
    let ends = |decide| {
        let mut plan = policy(SchedulerKind::EpsOnly);
        plan.run.network = Network { kind: Fifo, decide, ..Network::default() };
        run(&t, &plan, &w, None).0.coflows.iter().map(|c| c.finished.unwrap()).collect::<Vec<_>>()
    };
    let mb = crate::coflows::bounds::payload_rate(BitRate::mbit(100)).time_for(Bytes(1_000_000)).0;
    let in_mb = |ends: Vec<Time>| ends.iter().map(|t| (t.0 + mb / 2) / mb).collect::<Vec<_>>();
    assert_eq!(in_mb(ends(Decide::FlowEnds)), [3, 2]);
    assert_eq!(in_mb(ends(Decide::CoflowEvents)), [3, 4]);
}
