//! Runs in virtual time that are stopped: by Ctrl-C at a terminal.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::*;

/// A run that would take many minutes: hours of circuits every tenth of a second.
fn long_run(what: &str, json: &std::path::Path) -> String {
    let (topology, policies) = (file("topologies/hybrid-8x2.yaml"), file("policies"));
    let binary = env!("CARGO_BIN_EXE_heliostat");
    let what = what.replace("POLICIES", &policies.display().to_string());
    // `exec`: a shell that waits for its child would end by Ctrl-C itself.
    format!("exec '{binary}' simulate '{}' {what} --json '{}' -o csv", topology.display(), json.display())
}

/// The last virtual time, in seconds, that the line about the progress of a run told.
fn simulated(said: &str) -> Option<f64> {
    let (before, _) = said.rsplit_once(" s simulated")?;
    before.split_whitespace().last()?.parse().ok()
}

/// Runs a command at a terminal of its own, and types Ctrl-C once virtual time has passed: its exit code, if it ended in time, and what
/// it said.
fn interrupted(command: &str) -> (Option<i32>, String) {
    let mut c = Command::new("script");
    // A terminal of no kind has no line of progress.
    c.env("TERM", "xterm").args(["-qefc", command, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = c.spawn().expect("script");
    let (mut said, mut out) = (String::new(), child.stdout.take().expect("piped"));
    let mut keyboard = child.stdin.take().expect("piped");
    let (pieces, heard) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = out.read(&mut buffer) {
            let _ = pieces.send(String::from_utf8_lossy(&buffer[..n]).into_owned());
        }
    });
    let (end, mut typed) = (Instant::now() + Duration::from_secs(60), false);
    while let Ok(piece) = heard.recv_timeout(end.saturating_duration_since(Instant::now())) {
        said += &piece;
        if !typed && simulated(&said) > Some(0.0) {
            typed = true;
            keyboard.write_all(b"\x03").expect("the terminal takes it");
            keyboard.flush().expect("the terminal takes it");
        }
    }
    let late = Instant::now() >= end;
    if late {
        let _ = child.kill();
    }
    let status = child.wait().expect("our child");
    (status.code().filter(|_| !late), said)
}

#[test]
fn ctrl_c_at_a_terminal_leaves_valid_results_in_part() {
    let test = "ctrl_c_at_a_terminal_leaves_valid_results_in_part";
    if Command::new("script").arg("--version").output().is_err() {
        return println!("SKIP {test}: no `script` (util-linux), which gives a terminal");
    }
    let scratch = Scratch::new("virtual");
    let result = scratch.0.join("part.json");
    for (what, list) in [
        ("--policy POLICIES/c-through.yaml --workload facebook --coflows 4000", "coflows"),
        ("--policy POLICIES/co-scheduler.yaml --jobs JOBS", "jobs"),
    ] {
        let jobs = scratch.0.join("jobs.yaml");
        let o = output(heliostat().args(["workload", "synth", "--mix", "jobpacker", "--jobs", "300", "--to"]).arg(&jobs));
        assert!(o.status.success(), "{}", said(&o));
        let command = long_run(&what.replace("JOBS", &jobs.display().to_string()), &result);
        let (code, told) = interrupted(&command);
        assert_eq!(code, Some(0), "{told}");
        assert!(
            told.contains("events/s") && told.contains("open") && told.contains("stopped: the result is that of the run so far"),
            "{told}"
        );
        let r: serde_json::Value = serde_json::from_slice(&std::fs::read(&result).expect("a result")).expect("JSON");
        let (finished, unfinished) = (r["summary"]["finished"].as_u64().unwrap(), r["summary"]["unfinished"].as_u64().unwrap());
        assert_eq!(r["end"], "stopped");
        assert!(unfinished > 0 && r["events"].as_u64() > Some(0), "{}", r["summary"]);
        let all = r[list].as_array().expect("a list");
        assert!(all.len() as u64 >= finished && all.iter().filter(|c| !c["finished"].is_null()).count() as u64 == finished);
        let links = r["utilisation"]["links"].as_array().expect("links");
        let lengths: std::collections::BTreeSet<_> = links.iter().map(|l| l["bytes"].as_array().map(Vec::len)).collect();
        assert!(lengths.len() == 1 && r["utilisation"]["until"].as_u64() > Some(0));
    }
}

#[test]
fn what_says_something_of_jobs_is_refused_without_them() {
    for option in [["--timeline", "x.svg"], ["--grain", "rack"], ["--fail", "r0@1s"], ["--size-error", "0.1"], ["--block", "1MB"]] {
        let mut c = heliostat();
        c.arg("simulate").arg(topology()).arg("--policy").arg(file("policies/c-through.yaml"));
        let o = output(c.arg("--workload").arg(file("workloads/shuffle-4.yaml")).args(option));
        assert_eq!(o.status.code(), Some(2), "{option:?}: {}", said(&o));
        assert!(
            said(&o).contains(&format!("{} says something of jobs, and none are run; it is allowed with --jobs FILE", option[0])),
            "{}",
            said(&o)
        );
    }
    let o = output(run(&unique("refused")).args(["--batch"]));
    assert!(o.status.code() == Some(2) && said(&o).contains("it is allowed with --schedule FILE"), "{}", said(&o));
}
