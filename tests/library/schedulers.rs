//! Every circuit scheduler under every estimator, in the control loop over the flow-level fabric:
//! all bytes arrive, none is lost in the dark, and the same input gives the same result.

use std::sync::Arc;

use heliostat::circuits::SetBy;
use heliostat::circuits::clearing::{ClearingOptions, clear};
use heliostat::circuits::external::{Privileges, ProgramAt};
use heliostat::coflows::elephants::Admit;
use heliostat::coflows::{CoflowSpec, FlowSpec, bounds};
use heliostat::config::read_workload;
use heliostat::control::policy::{CircuitPolicy, SchedulerKind};
use heliostat::demand::{DemandMatrix, Estimator};
use heliostat::ids::{CoflowId, HostId, PlaneId};
use heliostat::runtime::report::RunResult;
use heliostat::runtime::settings::{ProgramSpec, RunPlan, RunSettings};
use heliostat::runtime::simulate::simulate;
use heliostat::topology::{Plane, StopMode, Topology};
use heliostat::units::{BitRate, Bytes, Span, Time};
use heliostat::workload::Workload;

const ESTIMATORS: [Estimator; 6] = [
    Estimator::Counters,
    Estimator::Backlog,
    Estimator::Hedera,
    Estimator::HederaRacks,
    Estimator::Declared,
    Estimator::Combined,
];

fn network(planes: u32, duplex: bool, stop: StopMode) -> Arc<Topology> {
    let plane = |p| Plane {
        id: PlaneId(p),
        rate: BitRate::mbit(1000),
        delta: Span::millis(10),
        stop,
        duplex,
    };
    Arc::new(Topology::uniform(
        "test",
        5,
        2,
        BitRate::mbit(1000),
        BitRate::mbit(100),
        (0..planes).map(plane).collect(),
    ))
}

/// A shuffle of all racks, skewed, and a second one of two racks while it runs.
fn workload() -> Workload {
    let flow = |from: u32, to: u32, mb: u64| FlowSpec {
        from: HostId(from),
        to: HostId(to),
        bytes: Bytes(mb * 1_000_000),
    };
    let all = (0..10).flat_map(|a| {
        (0..10)
            .filter(move |b| a / 2 != b / 2)
            .map(move |b| flow(a, b, 1 + u64::from((a + 3 * b) % 4)))
    });
    let coflow = |id, at, flows| CoflowSpec::new(CoflowId(id), format!("c{id}"), Time(at), flows);
    Workload::new(
        "test",
        vec![
            coflow(0, 0, all.collect()),
            coflow(1, 150_000_000, vec![flow(0, 2, 30), flow(3, 1, 20)]),
        ],
    )
}

/// A policy in a network whose ToRs admit all packets to circuits.
fn all_admitted(policy: CircuitPolicy) -> RunPlan {
    RunPlan { policy, run: RunSettings { admit: Admit::All, ..RunSettings::default() }, jobs: None }
}

fn run(topology: &Arc<Topology>, scheduler: SchedulerKind, demand: Estimator) -> RunResult {
    let policy = CircuitPolicy { scheduler, demand, ..CircuitPolicy::default() };
    play(topology, &all_admitted(policy))
}

fn play(topology: &Arc<Topology>, plan: &RunPlan) -> RunResult {
    simulate(topology, plan, &workload(), None, &mut |_| {}).expect("the workload fits the network")
}

fn check(topology: &Arc<Topology>, scheduler: SchedulerKind, demand: Estimator) -> RunResult {
    let r = run(topology, scheduler, demand);
    let what = format!("{scheduler:?} on {demand:?}");
    let s = &r.summary;
    assert_eq!((s.unfinished, s.bytes_received), (0, workload().bytes()), "{what}");
    assert_eq!(
        (s.late_packets, s.misdelivered, s.stats.probes_lost, s.stats.probes_wrong),
        (0, 0, 0, 0),
        "{what}"
    );
    assert!(r.coflows.iter().all(|c| c.cct.is_some_and(|t| t >= c.bound)), "{what}");
    let sets = scheduler.build().set_by() == SetBy::Scheduler;
    assert_eq!(s.ocs_share > 0.0, sets, "{what} carried {} over circuits", s.ocs_share);
    r
}

#[test]
fn all_schedulers_on_all_estimators() {
    let topology = network(1, false, StopMode::NotAllStop);
    for scheduler in SchedulerKind::ALL {
        for demand in ESTIMATORS {
            check(&topology, scheduler, demand);
        }
    }
}

#[test]
fn all_schedulers_on_all_kinds_of_planes() {
    for (planes, duplex, stop) in [
        (1, true, StopMode::NotAllStop),
        (2, false, StopMode::AllStop),
        (2, true, StopMode::AllStop),
    ] {
        let topology = network(planes, duplex, stop);
        for scheduler in SchedulerKind::ALL {
            let first = check(&topology, scheduler, Estimator::Combined);
            assert_eq!(
                first,
                run(&topology, scheduler, Estimator::Combined),
                "{scheduler:?} is not repeatable"
            );
        }
    }
}

fn program(command: &[&str]) -> ProgramSpec {
    let at = ProgramAt::Command(command.iter().map(|&c| c.into()).collect());
    ProgramSpec {
        at,
        within: Span::secs(1),
        environment: vec![],
        privileges: Privileges::Drop,
        directory: None,
    }
}

/// The run of a program that decides, which falls back on `fallback`.
fn by_program(
    topology: &Arc<Topology>,
    command: &[&str],
    fallback: Option<SchedulerKind>,
) -> RunResult {
    let policy = CircuitPolicy {
        scheduler: SchedulerKind::External,
        fallback,
        demand: Estimator::Backlog,
        ..CircuitPolicy::default()
    };
    let mut plan = all_admitted(policy);
    plan.run.program = Some(program(command));
    play(topology, &plan)
}

/// What a run decided and carried, without the name of its policy.
fn decided(r: &RunResult) -> impl PartialEq + std::fmt::Debug + use<> {
    let coflows: Vec<_> = r.coflows.iter().map(|c| (c.cct, c.ocs_share)).collect();
    (coflows, r.summary.makespan, r.summary.stats.circuits_set, r.summary.stats.cycles)
}

#[test]
fn a_program_decides_as_the_scheduler_that_it_copies() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        return println!("SKIP a_program_decides_as_the_scheduler_that_it_copies: no python3");
    }
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/python/greedy.py");
    for (planes, duplex, stop) in [
        (1, false, StopMode::NotAllStop),
        (2, true, StopMode::NotAllStop),
        (2, false, StopMode::AllStop),
    ] {
        let topology = network(planes, duplex, stop);
        let (ours, own) = (
            run(&topology, SchedulerKind::Greedy, Estimator::Backlog),
            by_program(&topology, &["python3", program], None),
        );
        assert_eq!(own.summary.stats.fallbacks, 0);
        assert!(own.summary.ocs_share > 0.0, "circuits carry something");
        assert_eq!(decided(&ours), decided(&own), "{planes} planes, duplex {duplex}, {stop:?}");
    }
}

/// `python/greedy.py` at an address: the same program, with the function that serves it exchanged.
#[test]
fn a_program_at_an_address_decides_as_the_scheduler_that_it_copies() {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};
    let code = "import heliostat, runpy, sys; heliostat.serve = lambda decide: heliostat.serve_http(0, decide); runpy.run_path(sys.argv[1])";
    let mut python = Command::new("python3");
    python
        .args(["-c", code, concat!(env!("CARGO_MANIFEST_DIR"), "/python/greedy.py")])
        .stderr(Stdio::piped());
    python
        .env("PYTHONPATH", concat!(env!("CARGO_MANIFEST_DIR"), "/python"))
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let Ok(mut served) = python.spawn() else {
        return println!(
            "SKIP a_program_at_an_address_decides_as_the_scheduler_that_it_copies: no python3"
        );
    };
    let mut said = String::new();
    BufReader::new(served.stderr.take().expect("piped"))
        .read_line(&mut said)
        .expect("it says where it listens");
    let compared = std::panic::catch_unwind(|| {
        let url = said.trim().strip_prefix("listens at ").unwrap_or_else(|| panic!("{said}"));
        for (planes, duplex, stop) in [
            (1, false, StopMode::NotAllStop),
            (2, true, StopMode::NotAllStop),
            (2, false, StopMode::AllStop),
        ] {
            let topology = network(planes, duplex, stop);
            let policy = CircuitPolicy {
                scheduler: SchedulerKind::External,
                demand: Estimator::Backlog,
                ..CircuitPolicy::default()
            };
            let mut plan = all_admitted(policy);
            plan.run.program = Some(ProgramSpec { at: ProgramAt::Url(url.into()), ..program(&[]) });
            let (ours, own) =
                (run(&topology, SchedulerKind::Greedy, Estimator::Backlog), play(&topology, &plan));
            assert!(
                own.summary.stats.fallbacks == 0 && own.summary.ocs_share > 0.0,
                "{:?}",
                own.summary.stats.first_fallback
            );
            assert_eq!(decided(&ours), decided(&own), "{planes} planes, duplex {duplex}, {stop:?}");
        }
    });
    let _ = served.kill().and_then(|()| served.wait());
    compared.unwrap_or_else(|why| std::panic::resume_unwind(why));
}

#[test]
fn where_a_program_fails_its_fallback_decides_every_cycle() {
    let topology = network(1, false, StopMode::NotAllStop);
    let greeting = "read hello; echo '{\"protocol\":1}'";
    // It answers every question, but for no plane.
    let wrong = r#"sed -u 's/{"cycle":\([0-9]*\).*/{"cycle":\1,"planes":[]}/'"#;
    let programs = [("exit 3", "has ended"), ("echo sun", "`sun`: "), (wrong, "0 planes")];
    for (program, why) in programs.map(|(does, why)| (format!("{greeting}; {does}"), why)) {
        let own = by_program(&topology, &["sh", "-c", &program], Some(SchedulerKind::Bipartite));
        assert_eq!(own.summary.stats.fallbacks, own.summary.stats.cycles, "{program}");
        let told = own.summary.stats.first_fallback.clone().unwrap_or_default();
        assert!(told.contains(why), "{program}: {told}");
        let ours = run(&topology, SchedulerKind::Bipartite, Estimator::Backlog);
        assert_eq!(decided(&ours), decided(&own), "{program}");
        // Without a fallback what is up stays up, which is nothing; all goes over the electrical
        // network.
        let dark = by_program(&topology, &["sh", "-c", &program], None).summary;
        assert_eq!(
            (dark.unfinished, dark.stats.circuits_set, dark.ocs_share),
            (0, 0, 0.0),
            "{program}"
        );
    }
}

#[test]
fn a_program_that_does_not_start_is_refused() {
    let topology = network(1, false, StopMode::NotAllStop);
    for (command, why) in [
        (vec!["/nowhere/x"], "cannot be started"),
        (vec!["true"], "has ended"),
        (vec!["echo", "hello"], "said `hello` first"),
    ] {
        let policy =
            CircuitPolicy { scheduler: SchedulerKind::External, ..CircuitPolicy::default() };
        let mut plan = all_admitted(policy);
        plan.run.program = Some(program(&command));
        let refused = simulate(&topology, &plan, &workload(), None, &mut |_| {})
            .expect_err("no program")
            .to_string();
        assert!(refused.contains(why), "{refused}");
    }
}

/// Matrices at the edges, and whether circuits of 100 Gb/s get through them in a time worth waiting
/// for.
fn edges() -> Vec<(&'static str, DemandMatrix, bool)> {
    let matrix = |r: usize, f: &dyn Fn(usize, usize) -> u64| {
        DemandMatrix::zero(r).map_pairs(|i, j, _| f(i.index(), j.index()))
    };
    let mb = 1_000_000;
    vec![
        ("no rack", matrix(0, &|_, _| 1), true),
        ("one rack", matrix(1, &|_, _| 1), true),
        ("two racks, one byte", matrix(2, &|i, _| 1 - i as u64), true),
        ("nothing", matrix(5, &|_, _| 0), true),
        ("all equal", matrix(5, &|_, _| 7 * mb), true),
        ("incast", matrix(6, &|i, j| if j == 2 { mb + i as u64 } else { 0 }), true),
        ("outcast", matrix(6, &|i, j| if i == 2 { mb + j as u64 } else { 0 }), true),
        ("idle racks", matrix(6, &|i, j| if i < 3 && j >= 4 { 3 * mb } else { 0 }), true),
        ("near 2^63", matrix(4, &|i, j| (1 << 63) - (4 * i + j) as u64), false),
        ("near 2^64", matrix(4, &|i, j| u64::MAX - (4 * i + j) as u64), false),
        ("one near 2^64", matrix(4, &|i, j| if (i, j) == (1, 2) { u64::MAX } else { 1 }), false),
        ("a hundred racks", matrix(100, &|i, j| if j == (i + 1) % 100 { mb } else { 0 }), false),
        ("a thousand racks", matrix(1024, &|i, j| if j == (i + 1) % 1024 { mb } else { 0 }), false),
    ]
}

/// Every scheduler by its name, on every kind of planes: a timetable that an OCS can follow, and no
/// byte too many or too few.
#[test]
fn all_schedulers_at_the_edges() {
    for (planes, duplex, stop) in [
        (1, false, StopMode::NotAllStop),
        (2, false, StopMode::AllStop),
        (1, true, StopMode::NotAllStop),
    ] {
        let plane = |p| Plane {
            id: PlaneId(p),
            rate: BitRate::mbit(100_000),
            delta: Span::millis(1),
            stop,
            duplex,
        };
        let planes: Vec<Plane> = (0..planes).map(plane).collect();
        for (name, demand, ends) in edges() {
            for kind in SchedulerKind::ALL {
                // Of a thousand racks one kind of plane is enough, and b-matching takes minutes in
                // a build for tests.
                if demand.racks() > 1000
                    && (planes.len() > 1 || duplex || kind == SchedulerKind::BMatching)
                {
                    continue;
                }
                let what = format!(
                    "{kind:?} on {name}, {} planes, duplex {duplex}, {stop:?}",
                    planes.len()
                );
                // What takes decades is decided once, and so are a thousand racks.
                let once = kind.build().plans_ahead(&planes[0]) || !ends;
                let interval = if once { Span::MAX } else { Span::millis(10) };
                let setting = ClearingOptions { planes: &planes, eps: BitRate::ZERO, interval };
                let c = clear(&mut *kind.build(), &demand, &setting)
                    .unwrap_or_else(|clash| panic!("{what}: {clash}"));
                let sum = |m: &DemandMatrix| m.cells().iter().map(|&b| u128::from(b)).sum::<u128>();
                let carried = c.circuits.iter().map(|x| u128::from(x.1.0)).sum::<u128>();
                assert!(carried <= sum(&demand), "{what}");
                let sets = kind.build().set_by() == SetBy::Scheduler;
                if ends && sets {
                    assert_eq!((carried, c.left), (sum(&demand), Bytes(0)), "{what}");
                    let bound =
                        bounds::circuits(&demand, &planes[0], planes.len() as u64, BitRate::ZERO);
                    assert!(
                        c.completion.is_some_and(|t| t >= bound),
                        "{what}: {:?} for a bound of {bound}",
                        c.completion
                    );
                } else {
                    assert_eq!(carried > 0, sets && sum(&demand) > 0, "{what}");
                }
            }
        }
    }
}

/// Two coflows that one rack sends, alike but for what the file says of their weights.
#[test]
fn the_weights_of_a_workload_file_decide_who_goes_first() {
    let topology = network(1, false, StopMode::NotAllStop);
    let finished = |weights: [u32; 2]| {
        let coflow = |to, w| {
            format!("  - weight: {w}\n    shuffle: {{from: [r0], to: [{to}], bytes: 60MB}}\n")
        };
        let text = format!(
            "name: two\ncoflows:\n{}{}",
            coflow("r1", weights[0]),
            coflow("r2", weights[1])
        );
        let workload = read_workload(&text, "two.yaml", &topology, &Default::default()).unwrap();
        let policy = CircuitPolicy {
            scheduler: SchedulerKind::SunflowWeighted,
            demand: Estimator::Declared,
            ..CircuitPolicy::default()
        };
        let r = simulate(&topology, &all_admitted(policy), &workload, None, &mut |_| {})
            .expect("the workload fits the network");
        assert_eq!(
            r.coflows.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(),
            ["coflow-0", "coflow-1"]
        );
        [r.coflows[0].finished.unwrap(), r.coflows[1].finished.unwrap()]
    };
    let (first, second) = (finished([3, 1]), finished([1, 3]));
    assert!(first[0] < first[1] && second[1] < second[0], "{first:?} {second:?}");
}

#[test]
fn circuits_that_follow_the_demand_beat_those_that_do_not() {
    let topology = network(1, false, StopMode::NotAllStop);
    let cct = |s| check(&topology, s, Estimator::Declared).summary.average_cct;
    let (none, blind) = (cct(SchedulerKind::EpsOnly), cct(SchedulerKind::RoundRobin));
    assert!(blind < none);
    for s in [
        SchedulerKind::Bipartite,
        SchedulerKind::Hold,
        SchedulerKind::Solstice,
        SchedulerKind::Eclipse,
        SchedulerKind::Sunflow,
    ] {
        assert!(cct(s) < none, "{s:?}");
    }
}
