//! Runs in virtual time: stopped by Ctrl-C at a terminal, repeated, refused.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::*;

/// A run that would take many minutes: hours of circuits every tenth of a second.
fn long_run(what: &str, json: &std::path::Path) -> String {
    let (topology, policies) = (file("topologies/hybrid-8x2.yaml"), file("policies"));
    let binary = env!("CARGO_BIN_EXE_heliostat");
    let what = what.replace("POLICIES", &policies.display().to_string());
    // `exec`: a shell that waits for its child would end by Ctrl-C itself.
    format!(
        "exec '{binary}' simulate '{}' {what} --json '{}' -o csv",
        topology.display(),
        json.display()
    )
}

/// The last virtual time, in seconds, that the line about the progress of a run told.
fn simulated(said: &str) -> Option<f64> {
    let (before, _) = said.rsplit_once(" s simulated")?;
    before.split_whitespace().last()?.parse().ok()
}

/// Runs a command at a terminal of its own, and types Ctrl-C once virtual time has passed: its exit
/// code, if it ended in time, and what it said.
fn interrupted(command: &str) -> (Option<i32>, String) {
    let mut c = Command::new("script");
    // A terminal of no kind has no line of progress.
    c.env("TERM", "xterm")
        .args(["-qefc", command, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
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
        let o = output(
            heliostat()
                .args(["workload", "synth", "--mix", "jobpacker", "--jobs", "300", "--to"])
                .arg(&jobs),
        );
        assert!(o.status.success(), "{}", said(&o));
        let command = long_run(&what.replace("JOBS", &jobs.display().to_string()), &result);
        let (code, told) = interrupted(&command);
        assert_eq!(code, Some(1), "{told}");
        assert!(told.contains("did not finish: interrupted"), "{told}");
        assert!(
            told.contains("events/s")
                && told.contains("open")
                && told.contains("stopped: the result is that of the run so far"),
            "{told}"
        );
        let r: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&result).expect("a result")).expect("JSON");
        let (finished, unfinished) = (
            r["summary"]["finished"].as_u64().unwrap(),
            r["summary"]["unfinished"].as_u64().unwrap(),
        );
        assert_eq!(r["end"], "stopped");
        assert!(unfinished > 0 && r["events"].as_u64() > Some(0), "{}", r["summary"]);
        let all = r[list].as_array().expect("a list");
        assert!(
            all.len() as u64 >= finished
                && all.iter().filter(|c| !c["finished_ns"].is_null()).count() as u64 == finished
        );
        let links = r["utilisation"]["links"].as_array().expect("links");
        let lengths: std::collections::BTreeSet<_> =
            links.iter().map(|l| l["bytes"].as_array().map(Vec::len)).collect();
        assert!(lengths.len() == 1 && r["utilisation"]["until_ns"].as_u64() > Some(0));
    }
}

/// Repetitions of runs of jobs: each is the run of its seed, the threads change nothing, and the
/// printed mean is theirs.
#[test]
fn runs_of_jobs_are_repeated_over_seeds() {
    let scratch = Scratch::new("repeat");
    let results = |options: &[&str], name: &str| -> (serde_json::Value, String) {
        let json = scratch.0.join(name);
        let mut c = heliostat();
        c.arg("simulate")
            .arg(file("topologies/hybrid-8x2.yaml"))
            .arg("--policy")
            .arg(file("policies/jobpacker.yaml"));
        c.args([
            "--jobs",
            "jobpacker",
            "--first",
            "8",
            "--scale",
            "20",
            "-o",
            "json",
            "--size-error",
            "0.3",
        ])
        .args(options);
        let o = output(c.arg("--json").arg(&json));
        assert!(o.status.success(), "{}", said(&o));
        let written =
            serde_json::from_slice(&std::fs::read(&json).expect("results")).expect("JSON");
        (written, String::from_utf8(o.stdout).expect("text"))
    };
    let (one, printed) = results(&["--seed", "4", "--repeat", "3", "--threads", "1"], "1.json");
    assert_eq!(
        (&one, &printed),
        (&results(&["--seed", "4", "--repeat", "3", "--threads", "3"], "3.json").0, &printed)
    );
    let runs = one.as_array().expect("a list");
    assert_eq!(runs.len(), 3);
    assert_eq!(runs[0], results(&["--seed", "4"], "plain.json").0, "the first is the plain run");
    let makespans: Vec<f64> = runs
        .iter()
        .map(|r| r["summary"]["makespan_ns"].as_u64().expect("a number") as f64 / 1e9)
        .collect();
    assert!(
        makespans[0] != makespans[1] && makespans[1] != makespans[2],
        "other seeds, other runs: {makespans:?}"
    );
    let figures: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    let figures = figures["policies"][0]["figures"].as_array().expect("a list");
    let figure = figures.iter().find(|f| f["name"] == "makespan").expect("a makespan");
    let mean = makespans.iter().sum::<f64>() / 3.0;
    assert!(
        (figure["mean"].as_f64().expect("a number") - mean).abs() < 1e-9
            && figure["half"].as_f64() > Some(0.0),
        "{figure}"
    );

    let mut c = heliostat();
    c.arg("simulate")
        .arg(file("topologies/hybrid-8x2.yaml"))
        .arg("--policy")
        .arg(file("policies/fair.yaml"));
    let o = output(c.args(["--jobs", "facebook"]));
    assert!(o.status.code() == Some(2) && said(&o).contains("a mix of coflows"), "{}", said(&o));
}

/// Between hosts and between racks as wholes, on a network whose uplinks never bind.
#[test]
fn jobs_may_be_known_by_their_sums() {
    let scratch = Scratch::new("sums");
    let shipped = std::fs::read_to_string(file("policies/fair.yaml")).expect("a policy");
    let by_sums = shipped
        .replace("scheduler: bipartite", "scheduler: eps-only\nnetwork: max-min\nwithin: sums");
    let policy = scratch.write("sums.yaml", &by_sums);
    let circuits = scratch.write("circuits.yaml", &by_sums.replace("eps-only", "bipartite"));
    let shipped = std::fs::read_to_string(file("topologies/hybrid-8x2.yaml")).expect("a topology");
    let topology =
        scratch.write("plain.yaml", &shipped.replace("uplink: 100Mb/s", "uplink: 2Gb/s"));
    let run = |topology: &Path, policy: &Path, grain: &str| {
        let mut c = heliostat();
        c.arg("simulate").arg(topology).arg("--policy").arg(policy);
        output(c.args(["--jobs", "jobs-8", "--grain", grain, "--summary"]))
    };
    for grain in ["host", "rack"] {
        let o = run(&topology, &policy, grain);
        assert!(
            o.status.success() && String::from_utf8_lossy(&o.stdout).contains("makespan"),
            "{grain}: {}",
            said(&o)
        );
    }
    // Uplinks that bind are another limit, and circuits tell flows apart.
    let refused = [
        (Path::new("hybrid-8x2"), &policy, "has other limits"),
        (&topology, &circuits, "circuits tell the flows"),
    ];
    for (topology, policy, why) in refused {
        let o = run(topology, policy, "host");
        assert!(o.status.code() == Some(3) && said(&o).contains(why), "{}", said(&o));
    }
}

/// Coflows and jobs that can never end: the exit code says so, and the result so far is there.
#[test]
fn a_run_that_is_stuck_fails_and_leaves_its_result() {
    let scratch = Scratch::new("stuck");
    let result = scratch.0.join("part.json");
    for (policy, what) in [("c-through", "--workload"), ("fair", "--jobs")] {
        let load =
            if what == "--jobs" { "workloads/jobs-20.yaml" } else { "workloads/shuffle-8.yaml" };
        let mut c = heliostat();
        c.arg("simulate")
            .arg(file("topologies/hybrid-8x2.yaml"))
            .arg("--policy")
            .arg(file(&format!("policies/{policy}.yaml")));
        let o = output(
            c.arg(what).arg(file(load)).args(["--fault", "r3.tor=down@0s", "--json"]).arg(&result),
        );
        assert!(
            o.status.code() == Some(1) && said(&o).contains("nothing moves any more"),
            "{what}: {}",
            said(&o)
        );
        let r: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&result).expect("a result")).expect("JSON");
        assert!(
            r["end"] == "stuck" && r["summary"]["unfinished"].as_u64() > Some(0),
            "{what}: {}",
            r["summary"]
        );
    }
}

#[test]
fn what_says_something_of_jobs_is_refused_without_them() {
    for option in [
        ["--timeline", "x.svg"],
        ["--grain", "rack"],
        ["--fail", "r0@1s"],
        ["--size-error", "0.1"],
        ["--block", "1MB"],
    ] {
        let mut c = heliostat();
        c.arg("simulate").arg(topology()).arg("--policy").arg(file("policies/c-through.yaml"));
        let o = output(c.arg("--workload").arg(file("workloads/shuffle-4.yaml")).args(option));
        assert_eq!(o.status.code(), Some(2), "{option:?}: {}", said(&o));
        assert!(
            said(&o).contains(&format!(
                "{} says something of jobs, and none are run; it is allowed with --jobs FILE",
                option[0]
            )),
            "{}",
            said(&o)
        );
    }
    let o = output(run(&unique("refused")).args(["--batch"]));
    assert!(
        o.status.code() == Some(2) && said(&o).contains("it is allowed with --schedule FILE"),
        "{}",
        said(&o)
    );
}

/// A result of a policy by name or file, with more options.
fn result(scratch: &Scratch, name: &str, policy: &str, more: &[&str]) -> Vec<u8> {
    let json = scratch.0.join(name);
    let mut c = heliostat();
    c.arg("simulate")
        .arg(topology())
        .args(["--policy", policy, "--workload", "shuffle-4", "--bucket", "1s"])
        .args(more);
    let o = output(c.arg("--json").arg(&json));
    assert!(o.status.success(), "{}", said(&o));
    std::fs::read(&json).expect("a result")
}

#[test]
fn results_say_where_they_come_from_and_are_the_same_wherever_they_are_made() {
    let scratch = Scratch::new("origin");
    let policy = file("policies/c-through.yaml");
    let first = result(&scratch, "a.json", "c-through", &[]);
    assert!(
        first == result(&scratch, "b.json", policy.to_str().expect("text"), &[]),
        "a name and its file are the same input"
    );
    let sum =
        String::from_utf8(output(Command::new("sha256sum").arg(&policy)).stdout).expect("text");
    let r: serde_json::Value = serde_json::from_slice(&first).expect("JSON");
    let o = &r["origin"];
    assert_eq!(
        (&r["format"], o["policy_sha256"].as_str(), &o["seed"]),
        (&2.into(), sum.split_whitespace().next(), &1.into())
    );
    assert!(
        o["topology_sha256"].is_string()
            && o["workload_sha256"].is_string()
            && o["host"].is_null()
            && o["started_at"].is_null(),
        "{o}"
    );
    let timed = result(&scratch, "c.json", "c-through", &["--timing"]);
    let r: serde_json::Value = serde_json::from_slice(&timed).expect("JSON");
    assert!(
        r["origin"]["host"].is_string()
            && r["origin"]["started_at"].as_str().is_some_and(|t| t.ends_with('Z')),
        "{}",
        r["origin"]
    );
}

#[test]
fn a_resolution_is_told_with_the_result_and_the_finest_is_exact() {
    let scratch = Scratch::new("resolution");
    let read = |name: &str, policy: &str, more: &[&str]| -> serde_json::Value {
        serde_json::from_slice(&result(&scratch, name, policy, more)).expect("JSON")
    };
    // Circuits change before two seconds are over, and with them all rates: few coflows of
    // c-through feel the resolution, or none.
    for (policy, longer) in [("eps-only", true), ("varys", true), ("c-through", false)] {
        let [exact, mut finest, coarse] =
            [&[][..], &["--resolution", "1ns"], &["--resolution", "2s"]]
                .map(|more| read("r.json", policy, more));
        assert_eq!(
            (&finest["origin"]["resolution_ns"], &exact["origin"]["resolution_ns"]),
            (&1.into(), &serde_json::Value::Null)
        );
        finest["origin"] = exact["origin"].clone();
        assert!(finest == exact, "{policy}");
        let number =
            |r: &serde_json::Value, key: &str| r["summary"][key].as_u64().expect("a number");
        let [exact_cct, coarse_cct] = [&exact, &coarse].map(|r| number(r, "average_cct_ns"));
        assert!(
            coarse_cct > exact_cct || !longer && coarse_cct == exact_cct,
            "{policy}: {exact_cct} and {coarse_cct}"
        );
        assert_eq!(number(&coarse, "received_bytes"), number(&exact, "received_bytes"), "{policy}");
    }
    let [exact, mut finest, coarse] = ["0s", "1ns", "2s"].map(|resolution| {
        let mut c = heliostat();
        c.arg("simulate").arg(topology()).args([
            "--policy",
            "fair",
            "--jobs",
            "jobs-8",
            "-o",
            "json",
            "--resolution",
            resolution,
        ]);
        serde_json::from_slice::<serde_json::Value>(&output(&mut c).stdout).expect("JSON")
    });
    finest["origin"] = exact["origin"].clone();
    let jct = |r: &serde_json::Value| r["summary"]["average_jct_ns"].as_u64().expect("a number");
    assert!(
        finest == exact && jct(&coarse) > jct(&exact),
        "jobs: {} and {}",
        jct(&exact),
        jct(&coarse)
    );
    let refused = |more: &[&str]| {
        let mut c = heliostat();
        c.arg("simulate")
            .arg(topology())
            .args(["--workload", "shuffle-4", "--resolution", "1ms"])
            .args(more);
        let o = output(&mut c);
        assert_eq!(o.status.code(), Some(2), "{}", said(&o));
        said(&o)
    };
    assert!(refused(&["--policy", "sunflow"]).contains("`network: sunflow` reserves circuits"));
    assert!(refused(&["--policy", "varys", "--alone"]).contains("--alone"));
}

/// Matrices of all pairs of racks would take 15 GB.
#[test]
fn a_packet_network_of_16384_racks_is_simulated_in_two_gigabytes() {
    let scratch = Scratch::new("huge");
    let network = scratch.write(
        "huge.yaml",
        "name: huge\nracks: 16384\nhosts_per_rack: 1\nnic: 1Gb/s\neps: {uplink: 1Gb/s}\n",
    );
    let workload = "name: far\ncoflows:\n  - {name: a, arrival: 0ms, shuffle: [{from: [r0], to: [r16383], bytes: 125MB}]}\n";
    let workload = scratch.write("far.yaml", workload);
    let mut run = heliostat();
    run.arg("simulate")
        .arg(&network)
        .args(["--policy", "varys", "-o", "csv", "--workload"])
        .arg(&workload);
    let o = output(run.env("HELIOSTAT_MEMORY", "2GB"));
    assert!(
        o.status.success() && String::from_utf8_lossy(&o.stdout).contains("125000000"),
        "{}",
        said(&o)
    );
}

#[test]
fn what_takes_more_memory_than_there_may_be_is_refused() {
    let scratch = Scratch::new("memory");
    let huge = "name: huge\nracks: 65536\nhosts_per_rack: 1\nnic: 1Gb/s\neps: {uplink: 1Gb/s}\n";
    let network =
        scratch.write("huge.yaml", &format!("{huge}ocs: [{{rate: 1Gb/s, delta: 1ms}}]\n"));
    let check = |memory: &str| {
        output(
            heliostat().arg("check").arg(&network).arg("c-through").env("HELIOSTAT_MEMORY", memory),
        )
    };
    let o = check("8GB");
    let words = "a run on 65536 racks takes about 412.3GB of memory; 8GB are allowed by $HELIOSTAT_MEMORY; HELIOSTAT_MEMORY=413GB";
    assert!(o.status.code() == Some(3) && said(&o).contains(words), "{}", said(&o));
    assert_eq!(check("413GB").status.code(), Some(0));
    let o = check("much");
    assert!(o.status.code() != Some(0) && said(&o).contains("HELIOSTAT_MEMORY: "), "{}", said(&o));
}

#[test]
fn runs_that_end_early_or_break_are_marked_where_they_are_compared() {
    let scratch = Scratch::new("early");
    let simulate = |with: &[&str]| {
        let mut c = heliostat();
        let o = output(
            c.args([
                "simulate",
                "hybrid-4x2",
                "--policy",
                "c-through",
                "--policy",
                "eps-only",
                "--workload",
                "shuffle-4",
            ])
            .args(with),
        );
        assert!(o.status.success(), "{}", said(&o));
        format!("{}{}", String::from_utf8_lossy(&o.stdout), said(&o))
    };
    let told = simulate(&["--until", "1s"]);
    assert!(
        told.contains("c-through (!)")
            && told.contains("ended by --until, ")
            && told.contains(" coflows unfinished"),
        "{told}"
    );
    let told = simulate(&["--fault", "r0.uplink=50%@1s+1s", "--fault", "r1.uplink=50%@1s+1s"]);
    assert!(told.contains("(!) c-through, eps-only: with 2 faults on purpose"), "{told}");
    assert!(!simulate(&[]).contains("(!)"));
    let json = scratch.0.join("r.json");
    simulate(&["--until", "1s", "--json", json.to_str().expect("a path")]);
    let o = output(heliostat().arg("compare").arg(&json));
    assert!(
        o.status.success()
            && String::from_utf8_lossy(&o.stdout)
                .contains("(!) c-through, eps-only: ended by --until, "),
        "{}",
        said(&o)
    );
}

#[test]
fn a_result_is_not_lost_without_a_word_where_stdout_is_closed() {
    let run = |closed: &str| {
        let command = format!(
            "exec '{}' simulate hybrid-4x2 --policy varys --workload shuffle-4 -o json {closed}",
            env!("CARGO_BIN_EXE_heliostat")
        );
        output(Command::new("sh").args(["-c", &command]))
    };
    let o = run(">&-");
    assert!(
        o.status.code() == Some(1) && said(&o).contains("stdout: it is closed"),
        "{}",
        said(&o)
    );
    for open in ["", ">/dev/null", "<>/dev/null >&0"] {
        assert_eq!(run(open).status.code(), Some(0), "{open}");
    }
}
