//! Recorded runs, live and simulated, play again without a kernel.

use std::path::Path;

use crate::support::*;

/// Plays a recording; what the command gives as JSON.
fn replayed(record: &Path, more: &[&str]) -> serde_json::Value {
    let o = output(heliostat().arg("replay").arg(record).args(more).args(["-o", "json"]));
    assert!(o.status.success(), "replay: {}", said(&o));
    serde_json::from_slice(&o.stdout).expect("JSON")
}

#[test]
fn a_live_run_and_its_posted_coflows_play_again() {
    let test = "a_live_run_and_its_posted_coflows_play_again";
    if !root(test) {
        return;
    }
    let (_turn, name, scratch) = (together(), unique("rec"), Scratch::new("rec"));
    let record = scratch.0.join("run.jsonl");
    let mut d = Daemon::start(&name, &["--record", record.to_str().expect("a path")]);
    let mut client = heliostat();
    client
        .arg("schedule")
        .args(["--controller", &d.api()])
        .arg("--workload")
        .arg(file("workloads/jobs-20.yaml"));
    client.arg("--policy").arg(file("policies/co-decided.yaml")).args([
        "--scale",
        "20",
        "--time-scale",
        "20",
    ]);
    let o = output(&mut client);
    assert!(o.status.success(), "{}", said(&o));
    d.signal("TERM");
    assert_eq!(d.ended(), Some(0), "{}", d.log());
    let r = replayed(&record, &[]);
    assert_eq!(r["ending"], "complete", "{}", d.log());
    assert!(
        r["controller"]["events"].as_u64() > Some(100)
            && r["snapshot"]["coflows"]["totals"]["finished"].as_u64() > Some(0),
        "{}",
        r["controller"]
    );
    let early = replayed(&record, &["--at", "500ms"]);
    assert_eq!(
        (&early["ending"], &early["snapshot"]["now"]),
        (&"asked".into(), &500_000_000.into())
    );
}

#[test]
fn jobs_that_run_on_their_own_daemon_are_recorded_with_it() {
    let test = "jobs_that_run_on_their_own_daemon_are_recorded_with_it";
    if !root(test) {
        return;
    }
    let (_turn, name, scratch) = (together(), unique("recjobs"), Scratch::new("recjobs"));
    let record = scratch.0.join("run.jsonl");
    let mut c = run(&name);
    c.arg("--policy")
        .arg(file("policies/co-decided.yaml"))
        .arg("--schedule")
        .arg(file("workloads/jobs-20.yaml"));
    let o = output(
        c.args(["--scale", "20", "--time-scale", "20", "--fail", "h1-1@100ms+200ms", "--record"])
            .arg(&record),
    );
    assert!(o.status.success(), "{}", said(&o));
    let r = replayed(&record, &[]);
    assert_eq!(
        (&r["ending"], &r["jobs"]["counters"]["jobs_finished"]),
        (&"complete".into(), &20.into())
    );
    assert!(r["scheduler"]["actions"].as_u64() > Some(100), "{}", r["scheduler"]);
}

#[test]
fn a_simulated_run_plays_again_and_a_damaged_recording_is_told_with_line_and_column() {
    let scratch = Scratch::new("recsim");
    let record = scratch.0.join("run.jsonl");
    let mut c = heliostat();
    c.arg("simulate")
        .arg(file("topologies/hybrid-8x2.yaml"))
        .arg("--policy")
        .arg(file("policies/co-decided.yaml"));
    c.arg("--jobs").arg(file("workloads/jobs-20.yaml")).args([
        "--fail",
        "r2@5s+3s",
        "--fault",
        "ocs0.in3=stuck@100ms",
        "--record",
    ]);
    let o = output(c.arg(&record));
    assert!(o.status.success(), "{}", said(&o));
    assert_eq!(replayed(&record, &[])["ending"], "complete");
    let o = output(heliostat().arg("replay").arg(&record).args(["--at", "3s"]));
    let shown = String::from_utf8_lossy(&o.stdout).into_owned();
    assert!(
        o.status.success()
            && shown.contains("up to the time asked for")
            && shown.contains("light from"),
        "{shown}"
    );

    let text = std::fs::read_to_string(&record).expect("it was written");
    let broken: String = text
        .lines()
        .enumerate()
        .map(
            |(k, l)| if k == 6 { "{\"tell\":{\"at\":nine}}\n".into() } else { l.to_owned() + "\n" },
        )
        .collect();
    std::fs::write(&record, broken).expect("a file");
    let o = output(heliostat().arg("replay").arg(&record));
    assert_eq!(o.status.code(), Some(3));
    assert!(said(&o).contains("line 7, column 1"), "{}", said(&o));
}

/// The event log of a live run, drawn as that of a simulated one.
#[test]
fn the_circuits_of_a_live_run_are_drawn_from_its_event_log() {
    let test = "the_circuits_of_a_live_run_are_drawn_from_its_event_log";
    if !root(test) {
        return;
    }
    let _turn = together();
    let (name, scratch) = (unique("drawn"), Scratch::new("drawn"));
    let (events, picture) = (scratch.0.join("run.events"), scratch.0.join("circuits.svg"));
    let mut c = run(&name);
    c.args(["--policy", "c-through"])
        .arg("--workload")
        .arg(file("workloads/shuffle-4.yaml"))
        .arg("--events")
        .arg(&events);
    let o = output(&mut c);
    assert!(o.status.success(), "{}", said(&o));
    let text = std::fs::read_to_string(&events).expect("written");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    assert_eq!(
        (&lines[0]["event_log"], &lines[0]["policy"], &lines[0]["workload"]),
        (&1.into(), &"c-through".into(), &"shuffle-4".into())
    );
    let seqs: Vec<u64> =
        lines.iter().skip(1).map(|l| l["seq"].as_u64().expect("a number")).collect();
    assert!(seqs.windows(2).all(|w| w[1] == w[0] + 1), "events are missing: {seqs:?}");
    assert_eq!(text.matches("coflow-finished").count(), 7, "{text}");
    let o =
        output(heliostat().args(["plot", "--kind", "circuits", "--to"]).arg(&picture).arg(&events));
    assert!(o.status.success(), "{}", said(&o));
    assert!(std::fs::read_to_string(&picture).expect("drawn").contains("<svg"));
}
