//! The whole machine: control loop, circuits, probes and traffic together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use heliostat::coflows::elephants::Admit;
use heliostat::coflows::{CoflowSpec, FlowSpec};
use heliostat::control::policy::{CircuitPolicy, Estimator, SchedulerKind};
use heliostat::fabric::SEND_BUFFER;
use heliostat::ids::{CoflowId, HostId, RackId};
use heliostat::kernel::Mechanism;
use heliostat::runtime::emulation::EmulationOptions;
use heliostat::runtime::report::{RunEnd, RunResult};
use heliostat::runtime::settings::{RunPlan, RunSettings};
use heliostat::units::{BitRate, Bytes, Span, Time};
use heliostat::workload::Workload;

use serde_json::json;

use super::daemon::Daemon;
use super::support::{each_mechanism, emulation, topology};
use crate::tries::base;

/// A shuffle from two racks to the two others, and mice.
fn workload() -> Workload {
    let flow = |from: u32, to: u32, kb: u64| FlowSpec {
        from: HostId(from),
        to: HostId(to),
        bytes: Bytes(kb * 1000),
    };
    let coflow = |id: u32, at: u64, flows: Vec<FlowSpec>| {
        CoflowSpec::new(CoflowId(id), format!("c{id}"), Time(at * 1_000_000), flows)
    };
    Workload {
        name: "test".into(),
        taken: Default::default(),
        coflows: vec![
            coflow(0, 0, vec![flow(0, 2, 20_000), flow(1, 3, 20_000), flow(0, 3, 5_000)]),
            coflow(1, 100, vec![flow(2, 0, 20_000), flow(3, 1, 20_000)]),
            coflow(2, 200, vec![flow(1, 0, 50)]),
        ],
    }
}

pub fn run(plan: &RunPlan, mechanism: Mechanism, name: &str) -> RunResult {
    let topology = Arc::new(topology(4, BitRate::mbit(1000), BitRate::mbit(100), Span::millis(10)));
    let base = base();
    let options = EmulationOptions {
        name: name.into(),
        mechanism: Some(mechanism),
        base: base.clone(),
        attach: None,
        patience: None,
    };
    let e = emulation(topology, plan.clone(), &options);
    let result = e.run(&workload(), &AtomicBool::new(false), |_| {});
    drop(e);
    let left = std::fs::read_dir("/run/netns")
        .into_iter()
        .flatten()
        .flatten()
        .filter(|f| f.file_name().to_string_lossy().starts_with(name))
        .count();
    assert_eq!(left, 0, "namespaces left behind");
    assert_eq!(result.tampered, None, "no process has touched it");
    assert!(!base.join(name).exists(), "notes left behind");
    result
}

/// The most demand that any of ten decisions sees while 40 MB go from rack 0 to rack 1 over 10
/// Mb/s.
fn seen(buffer: Bytes, mechanism: Mechanism) -> u64 {
    let policy = CircuitPolicy {
        demand: Estimator::Backlog,
        scheduler: SchedulerKind::EpsOnly,
        ..CircuitPolicy::default()
    };
    let plan =
        RunPlan { policy, run: RunSettings { buffer, ..RunSettings::default() }, jobs: None };
    let slow = topology(2, BitRate::mbit(10), BitRate::mbit(10), Span::millis(1));
    let d = Daemon::start("hst-buffer", slow, plan, mechanism);
    let (status, body) =
        d.call("POST", "coflows", Some(&json!({ "name": "much", "pairs": [{ "from": 0, "to": 1, "bytes": 40_000_000 }], "send": true })));
    assert_eq!(status, 201, "{body}");
    let (mut most, mut decisions, mut cycle) = (0, 0, 0);
    d.wait("ten decisions", |s| {
        let demand = s.demand.get(RackId(0), RackId(1));
        if demand > 0 && s.stats.cycles > cycle {
            (most, decisions, cycle) = (most.max(demand), decisions + 1, s.stats.cycles);
        }
        decisions == 10
    });
    most
}

#[test]
fn a_large_buffer_shows_what_waits_and_a_small_one_what_its_socket_holds() {
    each_mechanism(
        "a_large_buffer_shows_what_waits_and_a_small_one_what_its_socket_holds",
        |mechanism| {
            let [large, small] =
                [Bytes(100_000_000), SEND_BUFFER].map(|buffer| seen(buffer, mechanism));
            println!(
                "{}: a decision sees {large} bytes with a buffer of 100 MB, {small} with one of 2 MiB",
                mechanism.name()
            );
            assert!((30_000_000..=42_000_000).contains(&large), "{large}");
            // What a socket holds, and what has left it for a queue of the network.
            assert!((500_000..8_000_000).contains(&small), "{small}");
        },
    );
}

/// Stops a run when it goes: a test that fails beside a run does not wait for its end.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// A run while others use the API: their coflows end nothing, its own numbers are not given to
/// them, and a coflow of its own that is taken back is over.
fn beside_others(mechanism: Mechanism) {
    let plan = CircuitPolicy { scheduler: SchedulerKind::EpsOnly, ..CircuitPolicy::default() };
    let d = Daemon::start(
        "fx-own",
        topology(4, BitRate::mbit(1000), BitRate::mbit(100), Span::millis(10)),
        plan,
        mechanism,
    );
    let coflow = |id: u32, (from, to): (u32, u32), bytes: u64, at: Time| {
        CoflowSpec::new(
            CoflowId(id),
            format!("c{id}"),
            at,
            vec![FlowSpec { from: HostId(from), to: HostId(to), bytes: Bytes(bytes) }],
        )
    };
    let late = Time(Span::secs(2).0);
    let own = vec![
        coflow(0, (0, 1), 100_000_000_000, Time::ZERO),
        coflow(1, (2, 3), 1_000_000, Time::ZERO),
        coflow(7, (2, 3), 1_000_000, late),
    ];
    let (workload, stop) = (
        Workload { name: "w".into(), coflows: own, ..Workload::default() },
        AtomicBool::new(false),
    );
    let result = std::thread::scope(|s| {
        let run = s.spawn(|| d.emulation().run(&workload, &stop, |_| {}));
        let _ends = Stops(&stop);
        d.wait("the first two coflows", |s| s.coflows.get(CoflowId(1)).is_some());
        let body = json!({ "pairs": [{ "from": 3, "to": 2, "bytes": 1000 }], "send": true });
        let (status, refused) = d.call("PUT", "coflows/5", Some(&body));
        assert!(status == 409 && refused.to_string().contains("up to 7"), "{refused}");
        for _ in 0..4 {
            let posted = CoflowId(d.send(3, 2, 1000) as u32);
            d.wait("the end of a coflow that was posted", |s| {
                s.coflows.get(posted).is_some_and(|c| c.finished.is_some())
            });
        }
        d.wait("the last coflow's end", |s| {
            s.coflows.get(CoflowId(7)).is_some_and(|c| c.finished.is_some())
        });
        d.cycles(3);
        assert!(!run.is_finished(), "coflow 0 is on its way");
        assert_eq!(d.call("DELETE", "coflows/0", None).0, 204);
        run.join().expect("a result")
    });
    assert_eq!(
        (result.end, result.summary.finished, result.summary.unfinished),
        (RunEnd::Finished, 2, 1)
    );
    assert_eq!(result.coflows[0].lost.as_deref(), Some("it was taken back"));
    assert_eq!(
        d.call(
            "PUT",
            "coflows/5",
            Some(&json!({ "pairs": [{ "from": 3, "to": 2, "bytes": 1000 }] }))
        )
        .0,
        201,
        "after the run"
    );
}

#[test]
fn a_run_ends_with_its_own_coflows_whatever_others_send() {
    each_mechanism("a_run_ends_with_its_own_coflows_whatever_others_send", beside_others);
}

/// Few run at a time.
mod quiet {
    use super::*;
    use crate::kernel::support::each_mechanism_quiet;

    #[test]
    fn circuits_carry_coflows_and_lose_nothing() {
        each_mechanism_quiet("circuits_carry_coflows_and_lose_nothing", |mechanism| {
            for scheduler in [
                SchedulerKind::Edmonds,
                SchedulerKind::Bipartite,
                SchedulerKind::Greedy,
                SchedulerKind::Hold,
                SchedulerKind::RoundRobin,
            ] {
                let plan = RunPlan::from(CircuitPolicy {
                    scheduler,
                    name: format!("{scheduler:?}"),
                    ..CircuitPolicy::default()
                });
                let r = run(&plan, mechanism, "hst-circuits");
                println!(
                    "{} {}: makespan {} OCS share {:.2} {:?}",
                    mechanism.name(),
                    plan.policy.name,
                    r.summary.makespan,
                    r.summary.ocs_share,
                    r.summary.stats
                );
                assert_eq!((r.summary.finished, r.summary.unfinished), (3, 0));
                assert_eq!(r.summary.bytes_received, r.summary.bytes_asked);
                assert!(r.summary.bytes_on_wire >= r.summary.bytes_asked);
                let (s, stats) = (&r.summary, &r.summary.stats);
                assert_eq!((s.misdelivered, stats.probes_wrong), (0, 0), "{stats:?}");
                assert!(
                    r.coflows.iter().all(|c| c.cct >= Some(c.bound)),
                    "faster than the bound: {:?}",
                    r.coflows
                );
                in_time!(
                    s.late_packets == 0,
                    "{} packets were too late for their circuits",
                    s.late_packets
                );
                in_time!(stats.probes_ok > 0 && stats.probes_lost == 0, "probes: {stats:?}");
                in_time!(s.ocs_share > 0.1, "share of the OCS {}", s.ocs_share);
            }
            Ok(())
        });
    }

    #[test]
    fn elephants_that_wait_go_over_the_ocs_alone() {
        each_mechanism_quiet("elephants_that_wait_go_over_the_ocs_alone", |mechanism| {
            let settings = RunSettings { admit: Admit::Wait, ..RunSettings::default() };
            let demand = Estimator::Declared;
            let policy = CircuitPolicy {
                elephant_threshold: Bytes(1_000_000),
                demand,
                scheduler: SchedulerKind::Bipartite,
                name: "wait".into(),
                ..CircuitPolicy::default()
            };
            let plan = RunPlan { policy, run: settings, jobs: None };
            let r = run(&plan, mechanism, "hst-wait");
            assert_eq!((r.summary.finished, r.summary.unfinished), (3, 0));
            assert_eq!(r.summary.bytes_received, r.summary.bytes_asked);
            assert_eq!(r.summary.misdelivered, 0);
            println!(
                "{}: OCS share {:.4}, makespan {}",
                mechanism.name(),
                r.summary.ocs_share,
                r.summary.makespan
            );
            // All but the mice, and what a stall of the machine makes late.
            in_time!(r.summary.ocs_share > 0.95, "share of the OCS {}", r.summary.ocs_share);
            Ok(())
        });
    }
}
