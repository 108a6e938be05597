//! What sweeps and comparisons tell apart, pool and refuse: programs that do not decide, keys of
//! files, and how policies differ.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use super::sweeps::{good, sweep};
use crate::support::{Scratch, heliostat, output, root, run, said, unique};

/// All that a command says, on both ways.
fn told_by(o: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&o.stdout), said(o))
}

/// A policy whose program says its version, and then does something else than decide; `key` is
/// `external` of circuits.
fn broken(name: &str, then: &str) -> String {
    let program = format!("read hello; echo '{{\"protocol\":1}}'; {then}");
    let program = Value::from(program);
    format!(
        "name: {name}\ninterval: 100ms\nlead: 5ms\nbuffer: 100MB\ndemand: backlog\nelephants: {{admit: all}}\nscheduler: external\n\
         external: {{command: [sh, -c, {program}]}}\n"
    )
}

/// Programs that do not decide, and why.
const BROKEN: [(&str, &str, &str); 3] = [
    ("crash", "read question; exit 1", "has ended (exit status: 1)"),
    ("babble", "while read q; do echo sun; done", "`sun`: "),
    (
        "elsewhere",
        "sed -u 's/{\"cycle\":\\([0-9]*\\).*/{\"cycle\":\\1,\"planes\":[[{\"pairs\":[[0,99]]}]]}/'",
        "99",
    ),
];

#[test]
fn a_program_that_does_not_decide_is_no_row_of_its_policy() {
    let scratch = Scratch::new("sweep-crash");
    for (name, then, why) in BROKEN {
        let policy = scratch.write(&format!("{name}.yaml"), &broken(name, then));
        let mut c = heliostat();
        c.args(["simulate", "hybrid-4x2", "--policy", "c-through", "--policy"])
            .arg(&policy)
            .args(["--workload", "shuffle-4"]);
        let o = output(&mut c);
        let told = told_by(&o);
        assert_eq!(o.status.code(), Some(1), "{name}: {told}");
        assert!(
            told.contains(&format!("{name} (!)")) && told.contains(" cycles by the fallback: "),
            "{name}: {told}"
        );
        assert!(told.contains(why) && told.contains("--allow-fallback"), "{name}: {told}");
        let json = scratch.0.join(format!("{name}.json"));
        let o = good(
            heliostat()
                .args([
                    "simulate",
                    "hybrid-4x2",
                    "--workload",
                    "shuffle-4",
                    "--allow-fallback",
                    "--policy",
                ])
                .arg(&policy)
                .arg("--json")
                .arg(&json),
        );
        let result: Value =
            serde_json::from_slice(&std::fs::read(&json).expect("a result")).expect("JSON");
        let (cycles, caveat) = (&result["summary"]["stats"]["cycles"], &result["caveats"][0]);
        assert_eq!(
            (caveat["kind"].as_str(), &caveat["count"]),
            (Some("fallback"), cycles),
            "{caveat}"
        );
        assert!(
            told_by(&o).contains(&format!("(!) {cycles} of {cycles} cycles by the fallback: ")),
            "{}",
            told_by(&o)
        );
        crate::schema::Schema::of_results().fits(&json);
    }
    // Read again, wherever it is shown.
    let good_one = scratch.0.join("c-through.json");
    good(
        heliostat()
            .args([
                "simulate",
                "hybrid-4x2",
                "--policy",
                "c-through",
                "--workload",
                "shuffle-4",
                "--json",
            ])
            .arg(&good_one),
    );
    let both = [good_one, scratch.0.join("crash.json")];
    let compared = told_by(&good(heliostat().arg("compare").args(&both)));
    assert!(
        compared.contains("\n(!) crash: ")
            && compared.contains("Ratios and differences are against c-through."),
        "{compared}"
    );
    for kind in ["cct", "normalised"] {
        let svg = scratch.0.join("chart.svg");
        good(heliostat().arg("plot").args(&both).args(["--kind", kind, "--to"]).arg(&svg));
        assert!(
            std::fs::read_to_string(&svg).expect("a chart").contains("cycles by the fallback"),
            "{kind}"
        );
    }
    let html = scratch.0.join("r.html");
    good(heliostat().arg("report").args(&both).arg("--to").arg(&html));
    assert!(
        std::fs::read_to_string(&html).expect("a report").contains("cycles by the fallback: sh -c")
    );
}

#[test]
fn a_sweep_of_a_program_that_does_not_decide_has_failed_runs() {
    let scratch = Scratch::new("sweep-broken");
    let (name, then, why) = BROKEN[0];
    scratch.write("crash.yaml", &broken(name, then));
    let text = "topologies: hybrid-4x2\npolicies: [crash.yaml, c-through]\nworkloads: shuffle-4\n";
    let (grid, out, rows) =
        (scratch.write("grid.yaml", text), scratch.0.join("out"), scratch.0.join("rows.jsonl"));
    let collected = || {
        good(heliostat().arg("sweep").arg("--out").arg(&out).arg("--collect").arg(&rows));
        let text = std::fs::read_to_string(&rows).expect("rows");
        text.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect::<Vec<Value>>()
    };
    let o = output(&mut sweep(&grid, &out));
    assert_eq!(o.status.code(), Some(1), "{}", told_by(&o));
    // The first of the grid is missing in its table, and that is said.
    assert!(
        String::from_utf8_lossy(&o.stdout).contains("crash.yaml: 1 of 1 runs have no result"),
        "{}",
        told_by(&o)
    );
    let found = collected();
    assert!(
        found[0]["state"] == "failed"
            && found[0]["error"].as_str().is_some_and(|e| e.contains(why)),
        "{}",
        found[0]
    );
    assert!(
        found[1]["state"] == "done" && found[1]["fallbacks"] == 0 && found[1]["caveats"].is_null(),
        "{}",
        found[1]
    );
    let grid = scratch.write("grid.yaml", &format!("{text}options: {{allow-fallback: true}}\n"));
    let o = good(&mut sweep(&grid, &out));
    assert!(
        told_by(&o).contains("crash.yaml (!)") && told_by(&o).contains("(!) crash.yaml: "),
        "{}",
        told_by(&o)
    );
    let found = collected();
    assert!(
        found[0]["state"] == "done"
            && found[0]["fallbacks"].as_u64() > Some(0)
            && found[0]["caveats"] == "fallback",
        "{}",
        found[0]
    );
    // One that places tasks.
    let placing = "name: place\ninterval: 100ms\ndemand: declared\nscheduler: bipartite\nplacement:\n  policy: external\n  \
                   external: {command: [sh, -c, \"read hello; echo '{\\\"protocol\\\":1}'; exit 3\"]}\n";
    let policy = scratch.write("place.yaml", placing);
    let o = output(
        heliostat()
            .args(["simulate", "hybrid-8x2", "--jobs", "jobs-8", "--first", "3", "--policy"])
            .arg(&policy),
    );
    assert!(
        o.status.code() == Some(1) && told_by(&o).contains("of slots by the fallback: sh -c"),
        "{}",
        told_by(&o)
    );
}

#[test]
fn programs_are_found_beside_their_policy() {
    let scratch = Scratch::new("sweep-beside");
    std::fs::create_dir(scratch.0.join("mine")).expect("a directory");
    scratch.write("mine/decide.sh", "read hello; echo '{\"protocol\":1}'\nwhile read q; do echo \"$q\" | sed 's/{\"cycle\":\\([0-9]*\\).*/{\"cycle\":\\1,\"planes\":[[]]}/'; done\n");
    let text = "name: mine\ninterval: 100ms\nlead: 5ms\ndemand: backlog\nscheduler: external\nexternal: {command: [sh, decide.sh]}\n";
    let policy = scratch.write("mine/own.yaml", text);
    let simulate = |policy: &Path| {
        good(
            heliostat()
                .current_dir("/")
                .args(["simulate", "hybrid-4x2", "--workload", "shuffle-4", "--policy"])
                .arg(policy),
        )
    };
    assert!(!told_by(&simulate(&policy)).contains("(!)"));
    // By its own path, too.
    scratch.write("mine/own.yaml", &text.replace("[sh, decide.sh]", "[./decide]"));
    let script = scratch.write(
        "mine/decide",
        &format!(
            "#!/bin/sh\n{}",
            std::fs::read_to_string(scratch.0.join("mine/decide.sh")).expect("a script")
        ),
    );
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("a mode");
    assert!(!told_by(&simulate(&policy)).contains("(!)"));
}

#[test]
fn keys_of_files_are_swept_and_drawn() {
    let scratch = Scratch::new("sweep-set");
    let text = "topologies: hybrid-4x2\npolicies: [c-through, round-robin]\nworkloads: facebook\nseeds: 1-2\n\
                options: {coflows: 5, scale: 100}\nset: {ocs.0.delta: [1ms, 20ms], interval: 200ms}\n";
    let (grid, out) = (scratch.write("grid.yaml", text), scratch.0.join("out"));
    let swept = String::from_utf8(good(&mut sweep(&grid, &out)).stdout).expect("text");
    assert!(swept.contains("scale 100, interval 200ms, ocs.0.delta 20ms\n"), "{swept}");
    // A run by itself is the same, and says what was changed.
    let one = |delta: &str| {
        let set = format!("ocs.0.delta={delta}");
        let mut c = heliostat();
        c.args([
            "simulate",
            "hybrid-4x2",
            "--policy",
            "c-through",
            "--workload",
            "facebook",
            "--coflows",
            "5",
            "--scale",
            "100",
        ]);
        let o =
            good(c.args(["--seed", "1", "--set", &set, "--set", "interval=200ms", "-o", "json"]));
        serde_json::from_slice::<serde_json::Value>(&o.stdout).expect("JSON")
    };
    let (fast, slow) = (one("1ms"), one("20ms"));
    assert_eq!(slow["origin"]["options"]["ocs.0.delta"], "20ms");
    assert!(
        slow["summary"]["stats"]["dark_asked"]["max_ns"].as_u64() >= Some(20_000_000),
        "{}",
        slow["summary"]["stats"]
    );
    assert_ne!(fast["summary"]["average_cct_ns"], slow["summary"]["average_cct_ns"]);
    let all: Vec<serde_json::Value> = std::fs::read_dir(&out)
        .expect("a directory")
        .filter_map(|f| Some(f.ok()?.path()).filter(|p| p.extension().is_some_and(|e| e == "json")))
        .map(|p| serde_json::from_slice(&std::fs::read(p).expect("a result")).expect("JSON"))
        .collect();
    assert_eq!(all.len(), 8);
    assert!(
        all.iter().any(|r| r["summary"] == slow["summary"])
            && all.iter().any(|r| r["summary"] == fast["summary"])
    );
    let plot = |with: &[&str]| {
        output(heliostat().arg("plot").arg(&out).args(["--kind", "sweep", "--to", "-"]).args(with))
    };
    let drawn = plot(&[]);
    let svg = String::from_utf8(drawn.stdout.clone()).expect("SVG");
    assert!(
        drawn.status.success()
            && ["ocs.0.delta", "1ms", "20ms", "average CCT (", "round-robin"]
                .iter()
                .all(|t| svg.contains(t)),
        "{svg}"
    );
    let wrong = plot(&["--figure", "speed"]);
    assert!(
        wrong.status.code() == Some(2) && told_by(&wrong).contains("--figure speed: there are"),
        "{}",
        told_by(&wrong)
    );
    // A path that leads nowhere is an error of the grid, with its place.
    let grid = scratch
        .write("bad.yaml", &text.replace("ocs.0.delta: [1ms, 20ms]", "ocs.3.delta: [1ms, 20ms]"));
    let o = output(&mut sweep(&grid, &out));
    assert!(
        o.status.code() == Some(3) && told_by(&o).contains("`ocs` has no item 3"),
        "{}",
        told_by(&o)
    );
}

#[test]
fn loads_and_networks_that_differ_are_not_pooled_and_the_grid_gives_the_order() {
    let scratch = Scratch::new("sweep-apart");
    let text = "topologies: [hybrid-8x2, hybrid-4x2]\npolicies: [helios, c-through]\nworkloads: [facebook, coflowsim]\nseeds: 1-2\n\
                options: {coflows: 6, scale: [10, 100]}\n";
    let (grid, out) = (scratch.write("grid.yaml", text), scratch.0.join("out"));
    let swept = String::from_utf8(good(&mut sweep(&grid, &out)).stdout).expect("text");
    assert_eq!(swept.matches("Differences are against helios.").count(), 8, "{swept}");
    let compare = |with: &[&str]| {
        String::from_utf8(good(heliostat().arg("compare").arg(&out).args(with)).stdout)
            .expect("text")
    };
    let told = compare(&[]);
    assert_eq!(told.matches("Differences are against helios.").count(), 8, "{told}");
    assert!(told.contains("topology hybrid-4x2, workload coflowsim, scale 100\n"), "{told}");
    // What is pooled is said, and pairs are of the same load.
    let pooled = compare(&["--pool", "workload,scale"]);
    assert_eq!(pooled.matches("Pooled over workload: facebook, coflowsim.").count(), 2, "{pooled}");
    assert!(
        pooled.contains("Pooled over scale: 10, 100.") && pooled.contains("\n helios         8 "),
        "{pooled}"
    );
    // One load on two networks: pairs are of the same network.
    let pooled = compare(&["--pool", "topology"]);
    assert_eq!(
        pooled.matches("Pooled over topology: hybrid-8x2, hybrid-4x2.").count(),
        4,
        "{pooled}"
    );
    assert!(pooled.contains("\n helios         4 "), "{pooled}");
    let all = good(sweep(&grid, &out).args(["--pool", "topology,workload,scale"]));
    let all = String::from_utf8(all.stdout).expect("text");
    assert!(all.ends_with(&compare(&["--pool", "topology,workload,scale"])), "{all}");
    let by = compare(&["--by", "topology", "--pool", "workload,scale", "-o", "csv"]);
    assert!(
        by.starts_with("topology,policy,figure,")
            && by.contains("\nhybrid-8x2,c-through,average CCT,s,8,"),
        "{by}"
    );
    let o = output(heliostat().arg("compare").arg(&out).args(["--pool", "load"]));
    assert!(
        o.status.code() == Some(2) && told_by(&o).contains("these runs have no such key"),
        "{}",
        told_by(&o)
    );
    let flipped = compare(&["--against", "c-through"]);
    assert_eq!(flipped.matches("Differences are against c-through.").count(), 8, "{flipped}");
    // Charts name each line by all in which runs differ.
    let svg = scratch.0.join("cct.svg");
    let drawn = |with: &[&str]| {
        good(heliostat().arg("plot").arg(&out).args(with).arg("--to").arg(&svg));
        std::fs::read_to_string(&svg).expect("a chart")
    };
    let lines = drawn(&[]);
    assert!(
        lines.contains("helios hybrid-8x2 facebook scale 10, 2 runs")
            && lines.contains("c-through hybrid-4x2 coflowsim scale 100, 2 runs")
    );
    let lines = drawn(&["--pool", "workload,scale,topology"]);
    assert!(lines.contains("helios, 16 runs") && lines.contains("c-through, 16 runs"));
    assert!(drawn(&["--kind", "normalised"]).contains("helios = 1"));
    let html = scratch.0.join("r.html");
    good(heliostat().arg("report").arg(&out).args(["--pool", "workload,scale", "--to"]).arg(&html));
    let page = std::fs::read_to_string(&html).expect("a report");
    let data = page
        .split_once("id=\"data\">")
        .expect("data")
        .1
        .split_once("</script>")
        .expect("its end")
        .0;
    let data: Value = serde_json::from_str(data).expect("JSON");
    let labels: Vec<&str> = data["runs"]
        .as_array()
        .expect("runs")
        .iter()
        .map(|r| r["label"].as_str().expect("text"))
        .collect();
    assert_eq!(labels[..2], ["helios hybrid-8x2, 8 runs", "c-through hybrid-8x2, 8 runs"]);
    // A smaller grid in the same directory: what is left of the larger one is not in its tables.
    let smaller = scratch.write(
        "smaller.yaml",
        &text.replace("[10, 100]", "10").replace("[hybrid-8x2, hybrid-4x2]", "hybrid-8x2"),
    );
    good(&mut sweep(&smaller, &out));
    let o = good(heliostat().arg("compare").arg(&out));
    assert!(told_by(&o).contains("24 results are of other grids"), "{}", told_by(&o));
    assert_eq!(
        String::from_utf8_lossy(&o.stdout).matches("Differences are against helios.").count(),
        2,
        "{}",
        told_by(&o)
    );
}

#[test]
fn what_policies_differ_in_besides_their_scheduler_is_said() {
    let scratch = Scratch::new("sweep-lead");
    let text =
        std::fs::read_to_string(crate::support::file("policies/c-through.yaml")).expect("a policy");
    // The same scheduler and name with another lead, and another scheduler with the same keys.
    scratch.write("late.yaml", &text.replace("lead: 5ms", "lead: 20ms"));
    scratch.write(
        "greedy.yaml",
        &text.replace("name: c-through", "name: mine").replace("edmonds", "greedy"),
    );
    let simulate = |other: &str| {
        let mut c = heliostat();
        c.args(["simulate", "hybrid-4x2", "--policy", "c-through", "--policy"])
            .arg(scratch.0.join(other))
            .args(["--workload", "shuffle-4"]);
        told_by(&good(&mut c))
    };
    let told = simulate("late.yaml");
    assert!(
        told.contains("Besides the scheduler, the policies differ in: lead (")
            && told.contains("5ms")
            && told.contains("20ms"),
        "{told}"
    );
    assert!(!simulate("greedy.yaml").contains("Besides the scheduler"));
    // Two policies of one name in one directory are two rows.
    let grid = "topologies: hybrid-4x2\npolicies: [c-through, late.yaml]\nworkloads: shuffle-4\n";
    let (grid, out) = (scratch.write("grid.yaml", grid), scratch.0.join("out"));
    good(&mut sweep(&grid, &out));
    let told = told_by(&good(heliostat().arg("compare").arg(&out)));
    assert!(
        told.contains("Differences are against lead 5ms.") && told.contains("\n lead 20ms "),
        "{told}"
    );
}

#[test]
fn a_live_program_that_ends_fails_the_run_and_results_tell_of_the_machine() {
    let name = unique("crashed");
    if !root("a_live_program_that_ends_fails_the_run_and_results_tell_of_the_machine") {
        return;
    }
    let scratch = Scratch::new("crashed");
    let policy = scratch.write("crash.yaml", &broken("crash", BROKEN[0].1));
    let json = scratch.0.join("live.json");
    let mut c = run(&name);
    c.arg("--policy")
        .arg(&policy)
        .args(["--workload", "shuffle-4", "--scale", "50", "--json"])
        .arg(&json);
    let o = output(&mut c);
    assert!(
        o.status.code() == Some(1) && told_by(&o).contains("crash did not decide for itself: "),
        "{}",
        told_by(&o)
    );
    assert!(
        String::from_utf8_lossy(&o.stdout).contains(" cycles by the fallback: sh -c"),
        "{}",
        told_by(&o)
    );
    crate::schema::Schema::of_results().fits(&json);
    let result: Value =
        serde_json::from_slice(&std::fs::read(&json).expect("a result")).expect("JSON");
    assert_eq!(result["caveats"][0]["kind"], "fallback");
    let machine = &result["machine"];
    assert!(machine["kernel"].is_string() && machine["cores"].as_u64() > Some(0), "{machine}");
    let share = machine["load"]["others_share"].as_f64().expect("a share");
    let marked =
        result["caveats"].as_array().expect("a list").iter().any(|c| c["kind"] == "busy-machine");
    let stolen = machine["load"]["stolen_share"].as_f64().expect("a share");
    assert_eq!(marked, share + stolen >= 0.1, "{machine}");
    assert_eq!(
        (&result["origin"]["options"]["scale"], &result["origin"]["settings"]["lead"]),
        (&"50".into(), &"5ms".into())
    );
}
