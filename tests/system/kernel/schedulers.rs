//! Every circuit scheduler by its name, live: one fabric, one long shuffle, the policy changed
//! under way.

use std::process::Command;

use heliostat::circuits::external::{Privileges, ProgramAt};
use heliostat::coflows::elephants::Admit;
use heliostat::coflows::{CoflowSpec, FlowSpec};
use heliostat::control::Event;
use heliostat::control::policy::{CircuitPolicy, Estimator, SchedulerKind};
use heliostat::ids::{CoflowId, HostId, PlaneId, RackId};
use heliostat::runtime::settings::{ProgramSpec, RunPlan, RunSettings};
use heliostat::units::{BitRate, Bytes, Span, Time};

use super::daemon::Daemon;
use super::support::topology;

/// The program of the scheduler `external`.
const OWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/python/greedy.py");
/// Bytes that must cross while a scheduler is in force; a circuit carries 2 MB in an interval, dark
/// time taken off.
const AT_LEAST: u64 = 1_000_000;

/// Few run at a time.
mod quiet {
    use super::*;
    use crate::kernel::support::each_mechanism_quiet;

    #[test]
    fn every_scheduler_carries_bytes_over_circuits() {
        let has_python = Command::new("python3").arg("--version").output().is_ok();
        each_mechanism_quiet("every_scheduler_carries_bytes_over_circuits", |mechanism| {
            let base = CircuitPolicy { demand: Estimator::Combined, ..CircuitPolicy::default() };
            let program = has_python.then(|| ProgramSpec {
                at: ProgramAt::Command(vec!["python3".into(), OWN.into()]),
                within: Span::millis(2),
                environment: vec![],
                privileges: Privileges::Drop,
                directory: None,
            });
            let run = RunSettings { admit: Admit::All, program, ..RunSettings::default() };
            let plan = RunPlan { policy: base.clone(), run, jobs: None };
            let d = Daemon::start(
                "hst-all",
                topology(4, BitRate::mbit(200), BitRate::mbit(40), Span::millis(10)),
                plan,
                mechanism,
            );
            // Far more than will be sent: the shuffle lasts as long as the test.
            let flows = (0..4).flat_map(|a| (0..4).filter(move |b| a != *b).map(move |b| (a, b)));
            let flows = flows
                .map(|(a, b)| FlowSpec {
                    from: HostId(a),
                    to: HostId(b),
                    bytes: Bytes(2_000_000_000 + u64::from(a)),
                })
                .collect();
            d.emulation().launch(&CoflowSpec::new(CoflowId(1), "shuffle", Time::ZERO, flows));
            let handle = &d.emulation().live.handle;
            for scheduler in SchedulerKind::ALL {
                if scheduler == SchedulerKind::External && !has_python {
                    println!("SKIP external: no python3");
                    continue;
                }
                handle.notify(Event::PolicyReplaced {
                    policy: Box::new(CircuitPolicy { scheduler, ..base.clone() }),
                });
                d.wait("the policy's change", |s| s.policy.scheduler == scheduler);
                // The decision under way may still be of the last scheduler; the one after it is
                // not, and takes effect within a cycle.
                let began = d.cycles(3);
                let before = began.over_ocs.total();
                if scheduler == SchedulerKind::EpsOnly {
                    let after = d.cycles(3).over_ocs.total();
                    assert_eq!(
                        after,
                        before,
                        "eps-only carried {} bytes over circuits",
                        after - before
                    );
                    continue;
                }
                let manual = scheduler == SchedulerKind::Manual;
                if manual {
                    assert_eq!(
                        d.cycles(2).over_ocs.total(),
                        before,
                        "manual sets no circuit by itself"
                    );
                    handle.notify(Event::ManualConnect {
                        plane: PlaneId(0),
                        input: RackId(0),
                        output: RackId(1),
                    });
                }
                let s = d.wait("bytes over circuits", |s| {
                    s.over_ocs.total() >= before + AT_LEAST && s.stats.cycles > began.stats.cycles
                });
                println!(
                    "{} {scheduler:?}: {} bytes over circuits in {} cycles",
                    mechanism.name(),
                    s.over_ocs.total() - before,
                    s.stats.cycles - began.stats.cycles
                );
                if manual {
                    handle.notify(Event::ManualDisconnect { plane: PlaneId(0), input: RackId(0) });
                }
            }
            let s = d.snapshot();
            println!(
                "{}: {} cycles in which the program was late",
                mechanism.name(),
                s.stats.fallbacks
            );
            assert!(
                s.stats.probes_wrong == 0 && s.failures.is_empty(),
                "{:?}, {:?}",
                s.stats,
                s.failures
            );
            in_time!(
                s.ports.iter().all(|p| p.faulty.is_none()),
                "ports are blamed for probes that came too late: {:?}",
                s.ports
            );
            Ok(())
        });
    }
}
