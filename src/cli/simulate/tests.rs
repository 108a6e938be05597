//! Every pair of options of a simulation at least once: a run ends, and carries what it was asked
//! for.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::time::Duration;

use clap::Parser as _;

use super::*;
use crate::cli::{Cli, Command};

/// No run takes a second, however slow the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// What may be chosen, one of each: parts of a topology, a policy, and options. The first of each
/// is the plain one.
const CHOICES: [&[&str]; 12] = [
    &[
        "",
        "links: {nic: {delay: 1ms}}\n",
        "links: {uplink: {delay: 70us}}\n",
        "links: {nic: {delay: 1us}, uplink: {delay: 30ms}}\n",
    ],
    &[
        "{uplink: 100Mb/s}",
        "{uplink: 100Mb/s, queues: racks}",
        "{uplink: 1Gb/s, graph: {leaf-spine: {spines: 2, rate: 300Mb/s}}}",
    ],
    &[
        "[{rate: 1Gb/s, delta: 10ms}]",
        "[]",
        "[{rate: 1Gb/s, delta: 1ms, duplex: true}, {rate: 500Mb/s, delta: 5ms, stop: all-stop}]",
    ],
    &[
        "c-through",
        "eps-only",
        "helios",
        "round-robin",
        "varys",
        "aalo",
        "sincronia",
        "priority",
        "fair-coflow",
        "fifo",
        "wait",
        "f-eps",
    ],
    &["", "--resolution 1ms", "--resolution 1ns", "--resolution 300ms"],
    &["", "--bucket 1ms", "--bucket 10s"],
    &["", "--until 700ms", "--until 20ms"],
    &[
        "",
        "--fault r1.uplink=down@10ms+50ms",
        "--fault h0-0.nic=50%@1ms",
        "--fault r0.tor=down@5ms+20ms",
    ],
    &["", "--time-scale 7", "--coflows 2"],
    &["", "--scale 3"],
    &["", "--seed 9"],
    &["shuffles", "trace", "flows"],
];

fn text_of(load: &str) -> &'static str {
    match load {
        "shuffles" => {
            "name: w\ncoflows:\n- {shuffle: {from: [r0, r1], to: [r2, r3], bytes: 6MB}}\n- {arrival: 15ms, weight: 2, priority: 1, shuffle: \
             {from: [r0], to: [r0, r1], bytes: 3MB}}\n- {arrival: 15ms, flows: [{from: h0-0, to: h3-1, bytes: 1B}]}\n"
        }
        "trace" => "4 2\n1 0 2 0 1 1 3:2.5\n2 40 1 2 2 0:1.0 1:0.0\n",
        _ => "0 7 2000000 0\n0 7 1000000 0\n3 3 5 10\n6 1 0 20000000\n6 1 900000 20000000\n",
    }
}

/// Rows of which each pair of values of two choices is in one: each row is the one of many that has
/// the most pairs which are not yet.
fn rows() -> Vec<[usize; CHOICES.len()]> {
    let mut left = std::collections::BTreeSet::new();
    for (a, xs) in CHOICES.iter().enumerate() {
        for (b, ys) in CHOICES.iter().enumerate().skip(a + 1) {
            left.extend((0..xs.len()).flat_map(|x| (0..ys.len()).map(move |y| (a, x, b, y))));
        }
    }
    let pairs = |row: &[usize; CHOICES.len()]| {
        let row = *row;
        (0..row.len())
            .flat_map(move |a| (a + 1..row.len()).map(move |b| (a, row[a], b, row[b])))
            .collect::<Vec<_>>()
    };
    let (mut rows, mut state) = (vec![], 1u64);
    while let Some(&(a, x, b, y)) = left.first() {
        let mut draw = |most: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % most
        };
        let mut one = || {
            let mut row: [usize; CHOICES.len()] = std::array::from_fn(|k| draw(CHOICES[k].len()));
            (row[a], row[b]) = (x, y);
            row
        };
        let best = (0..60)
            .map(|_| one())
            .max_by_key(|row| pairs(row).iter().filter(|p| left.contains(p)).count())
            .expect("some");
        for p in pairs(&best) {
            left.remove(&p);
        }
        rows.push(best);
    }
    rows
}

/// Ends a run's thread's silence: what it came to, or that it never ends.
fn ends(words: Vec<String>, told: &str) -> Result<Option<AnyResult>, CliError> {
    let (done, wait) = mpsc::channel();
    let Command::Simulate(args) =
        Cli::try_parse_from(words).expect("options that go together").command
    else {
        unreachable!()
    };
    std::thread::spawn(move || drop(done.send(quietly(&args, &AtomicBool::new(false)))));
    wait.recv_timeout(PATIENCE).unwrap_or_else(|e| panic!("{e}: {told}"))
}

fn run_of(
    dir: &Path,
    row: &[&str; CHOICES.len()],
) -> (String, Result<Option<AnyResult>, CliError>) {
    let [links, eps, ocs, policy, resolution, bucket, until, fault, few, scale, seed, load] = *row;
    let (topology, workload) = (dir.join("t.yaml"), dir.join(load));
    let text = format!(
        "name: t\nracks: 4\nhosts_per_rack: 2\nnic: 1Gb/s\neps: {eps}\nocs: {ocs}\n{links}"
    );
    std::fs::write(&topology, text).unwrap();
    std::fs::write(&workload, text_of(load)).unwrap();
    let mut words: Vec<String> = ["heliostat", "simulate"].map(str::to_owned).to_vec();
    words.push(topology.display().to_string());
    words.extend(["--policy", policy, "--workload"].map(str::to_owned));
    words.push(workload.display().to_string());
    words.extend(
        [resolution, bucket, until, fault, few, scale, seed]
            .iter()
            .flat_map(|o| o.split(' '))
            .filter(|o| !o.is_empty())
            .map(Into::into),
    );
    let told = format!("{row:?}");
    (told.clone(), ends(words, &told))
}

#[test]
fn a_run_ends_under_every_pair_of_options() {
    let dir = tempfile::tempdir().unwrap();
    let rows = rows();
    assert!(rows.len() >= 48, "{} rows", rows.len());
    for row in &rows {
        let row: [&str; CHOICES.len()] = std::array::from_fn(|k| CHOICES[k][row[k]]);
        let (told, result) = run_of(dir.path(), &row);
        let Ok(Some(AnyResult::Coflows(r))) = result else { panic!("{told}: {:?}", result.err()) };
        match r.end {
            RunEnd::Finished => assert_eq!(
                (r.summary.unfinished, r.summary.bytes_received),
                (0, r.summary.bytes_asked),
                "{told}"
            ),
            RunEnd::Until => assert!(told.contains("--until"), "{told}"),
            // Bytes that wait for circuits which nothing sets, or for an interface that is halved
            // for good, wait on.
            RunEnd::Stuck => assert!(told.contains("\"wait\""), "{told}"),
            RunEnd::Stopped => panic!("{told}"),
        }
    }
}

/// Last bytes that arrive while no flow ends: with a resolution they once came again and again.
#[test]
fn delays_and_a_resolution_go_together() {
    let dir = tempfile::tempdir().unwrap();
    let mut plain: [&str; CHOICES.len()] = std::array::from_fn(|k| CHOICES[k][0]);
    plain[3] = "eps-only";
    for (links, resolution) in [
        ("links: {nic: {delay: 1ms}}\n", "--resolution 1ms"),
        ("links: {uplink: {delay: 1s}}\n", "--resolution 100us"),
        ("links: {nic: {delay: 1ns}}\n", "--resolution 10s"),
    ] {
        (plain[0], plain[4]) = (links, resolution);
        let (told, result) = run_of(dir.path(), &plain);
        assert!(
            matches!(result, Ok(Some(AnyResult::Coflows(r))) if r.end == RunEnd::Finished),
            "{told}"
        );
        plain[4] = "--resolution 1ns";
        let Ok(Some(AnyResult::Coflows(finest))) = run_of(dir.path(), &plain).1 else {
            panic!("{told}")
        };
        plain[4] = "";
        let Ok(Some(AnyResult::Coflows(exact))) = run_of(dir.path(), &plain).1 else {
            panic!("{told}")
        };
        assert_eq!(finest.coflows, exact.coflows, "a resolution of a nanosecond is exact, {links}");
    }
}

#[test]
fn jobs_without_a_policy_are_placed_by_joint() {
    let parsed = |line: &str| Cli::try_parse_from(line.split(' ')).map(|c| c.command);
    let Ok(Command::Simulate(args)) =
        parsed("heliostat simulate hybrid-8x2 --jobs jobs-8 --first 3")
    else {
        panic!("not parsed")
    };
    let result = quietly(&args, &AtomicBool::new(false)).unwrap();
    let Some(AnyResult::Jobs(r)) = result else { panic!("no jobs") };
    assert_eq!(
        (r.placement.as_str(), r.policy.as_str(), r.summary.finished),
        ("joint", "joint", 3)
    );
    // Coflows want a policy, as before; one that is named is the only one.
    assert!(parsed("heliostat simulate hybrid-8x2 --workload shuffle-8").is_err());
    let Ok(Command::Simulate(args)) = parsed("heliostat simulate net --jobs jobs-8 --policy fair")
    else {
        panic!("not parsed")
    };
    assert_eq!(args.policy, [Path::new("fair")]);
}
