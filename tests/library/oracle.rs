//! PushBox and Hadoop task by task as `oracle.py` has them, a simulation that was written from the
//! paper alone.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

use heliostat::config::{read_jobs, read_policy};
use heliostat::runtime::jobs::simulate::{SimulatedJobs, simulate};
use heliostat::scheduler::state::Grain;
use heliostat::topology::{Framing, Topology};
use heliostat::units::BitRate;

/// A large job, small ones behind it, and one without reduces.
const JOBS: &str = "
name: small
jobs:
  - {name: a, maps: 6, map_time: 1s, shuffle: 2100MB, reduces: 6, shares: [600, 500, 400, 300, 200, 100], reduce_time: 2s}
  - {name: b, arrival: 500ms, maps: 3, map_time: 1s, shuffle: 90MB, reduces: 3, reduce_time: 1s}
  - {name: c, arrival: 3s, maps: 4, map_time: 2s}
  - {name: d, arrival: 3100ms, maps: 3, map_time: 500ms, shuffle: 600MB, reduces: 6, reduce_time: 1500ms}
";
/// The same for the oracle: bytes and seconds.
const SAME_JOBS: &str = r#"{"hosts": 3, "slots": 4, "rate": 125e6, "jobs": [
  {"at": 0, "maps": [1, 1, 1, 1, 1, 1], "reduces": [[600e6, 2], [500e6, 2], [400e6, 2], [300e6, 2], [200e6, 2], [100e6, 2]]},
  {"at": 0.5, "maps": [1, 1, 1], "reduces": [[30e6, 1], [30e6, 1], [30e6, 1]]},
  {"at": 3.0, "maps": [2, 2, 2, 2], "reduces": []},
  {"at": 3.1, "maps": [0.5, 0.5, 0.5],
   "reduces": [[1e8, 1.5], [1e8, 1.5], [1e8, 1.5], [1e8, 1.5], [1e8, 1.5], [1e8, 1.5]]}]}"#;

/// Shares of the large job's reduces in both.
const SHARES: (&str, &str) = (
    ", shares: [600, 500, 400, 300, 200, 100]",
    "[600e6, 2], [500e6, 2], [400e6, 2], [300e6, 2], [200e6, 2], [100e6, 2]",
);

/// A task: job, stage, number, host, and when it starts, computes and ends, in milliseconds.
type Row = [u64; 7];

/// Flows of one priority share max-min.
const PRIORITY: &str = "priority\nwithin: max-min";

/// Three machines of four slots at one switch, 1 Gb/s of payload.
fn machines() -> Arc<Topology> {
    let rate = BitRate::mbit(1000);
    let mut t = Topology::uniform("flat", 0, 0, rate, rate, vec![]);
    (0..3).for_each(|_| t.push_rack(1, 4, rate, rate));
    t.framing = Framing::None;
    Arc::new(t)
}

fn ours(placement: &str, network: &str, jobs: &str) -> Vec<Row> {
    let policy = format!(
        "name: p\ninterval: 1s\ndemand: declared\nscheduler: eps-only\nnetwork: {network}\nprobes: false\nplacement:\n  \
         order: fair\n  slowstart: 100\n  {placement}\n"
    );
    let plan = read_policy(&policy, "p.yaml").expect("a policy");
    let (jobs, mut jobs_by) =
        (read_jobs(jobs, "j.yaml").expect("jobs"), plan.jobs.clone().expect("it places tasks"));
    jobs_by.settings.grain = Grain::Host;
    let topology = machines();
    let ask = SimulatedJobs {
        topology: &topology,
        plan: &plan,
        jobs_by: &jobs_by,
        jobs: &jobs,
        failures: &[],
        faults: &[],
        until: None,
    };
    let r = simulate(&ask, &mut |_| ()).expect("it runs");
    let ms = |ns: u64| (ns + 500_000) / 1_000_000;
    let row = |t: &heliostat::scheduler::record::TaskRun<String>| {
        let host = topology
            .hosts
            .iter()
            .find(|h| topology.host_name(h.id) == t.host)
            .expect("a host")
            .id
            .index() as u64;
        let computes = t.computes.expect("it computes").0;
        [
            t.task.job.index() as u64,
            t.task.stage.into(),
            t.task.task.into(),
            host,
            ms(t.started.0),
            ms(computes),
            ms(t.ended.0),
        ]
    };
    let mut rows: Vec<Row> = r.timeline.iter().map(row).collect();
    rows.sort_unstable();
    rows
}

/// `None`: there is no Python.
fn oracle(policy: &str, most: u32, jobs: &str) -> Option<Vec<Row>> {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/library/oracle.py");
    let mut python = Command::new("python3");
    python.args([program, policy, &most.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut started = python.spawn().ok()?;
    started.stdin.take().expect("piped").write_all(jobs.as_bytes()).expect("it reads");
    let out = started.wait_with_output().expect("it ends");
    assert!(out.status.success(), "oracle.py failed");
    let mut rows: Vec<Row> = serde_json::from_slice(&out.stdout).expect("rows of seven numbers");
    rows.sort_unstable();
    Some(rows)
}

/// The rows in which two schedules differ by more than a millisecond, or by a host.
fn differ(ours: &[Row], other: &[Row]) -> Vec<(Row, Row)> {
    assert_eq!(ours.len(), other.len(), "as many tasks");
    let same = |a: &Row, b: &Row| {
        a[..4] == b[..4] && a[4..].iter().zip(&b[4..]).all(|(x, y)| x.abs_diff(*y) <= 1)
    };
    ours.iter().zip(other).filter(|(a, b)| !same(a, b)).map(|(a, b)| (*a, *b)).collect()
}

#[test]
fn pushbox_starts_every_task_when_and_where_the_oracle_does() {
    let Some(other) = oracle("pushbox", 1, SAME_JOBS) else {
        return println!("SKIP pushbox_starts_every_task: no python3");
    };
    let own = ours("policy: pushbox\n  input_tasks: 1", PRIORITY, JOBS);
    assert_eq!((own.len(), differ(&own, &other)), (31, vec![]));
    // Another rule would be seen.
    assert!(
        !differ(
            &ours("policy: pushbox\n  input_tasks: 1\n  no_hinder: true", PRIORITY, JOBS),
            &other
        )
        .is_empty()
    );
}

/// Which of equal hosts comes first is open: so reduces have equal shares, and a stage's tasks are
/// compared by their times alone.
#[test]
fn hadoop_starts_every_task_when_the_oracle_does() {
    let same = SAME_JOBS.replace(
        SHARES.1,
        "[350e6, 2], [350e6, 2], [350e6, 2], [350e6, 2], [350e6, 2], [350e6, 2]",
    );
    let Some(other) = oracle("hadoop", 1, &same) else {
        return println!("SKIP hadoop_starts_every_task: no python3");
    };
    let own = ours("policy: delay\n  flows: task", "max-min", &JOBS.replace(SHARES.0, ""));
    let times = |rows: &[Row]| {
        let mut all: Vec<_> = rows.iter().map(|r| [r[0], r[1], 0, 0, r[4], r[5], r[6]]).collect();
        all.sort_unstable();
        all
    };
    assert_eq!((own.len(), differ(&times(&own), &times(&other))), (31, vec![]));
    let merged = ours("policy: delay\n  flows: host", "max-min", JOBS);
    assert!(
        !differ(&times(&merged), &times(&oracle("hadoop", 1, SAME_JOBS).expect("it is there")))
            .is_empty(),
        "shared flows are seen"
    );
}
