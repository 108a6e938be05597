//! Sweeps and comparisons from outside: killed and started again, in shards, with runs that fail,
//! and read by the other commands.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::{Scratch, heliostat, output, root, run, said, unique, until};

/// 24 runs of a few milliseconds to a few tenths of a second each.
const GRID: &str = "topologies: hybrid-8x2\npolicies: [c-through, helios, eps-only]\nworkloads: facebook\nseeds: 1-8\noptions: {coflows: 60, scale: 100}\n";

fn sweep(grid: &Path, out: &Path) -> Command {
    let mut c = heliostat();
    c.arg("sweep").arg(grid).arg("--out").arg(out);
    c
}

fn good(c: &mut Command) -> Output {
    let o = output(c);
    assert!(o.status.success(), "{}", said(&o));
    o
}

/// The results in a directory, by name.
fn results(out: &Path) -> BTreeMap<String, Vec<u8>> {
    let all = std::fs::read_dir(out).into_iter().flatten().map(|e| e.expect("an entry").path());
    let json = all.filter(|f| f.extension().is_some_and(|e| e == "json"));
    json.map(|f| {
        (
            f.file_name().expect("a name").to_string_lossy().into_owned(),
            std::fs::read(&f).expect("a result"),
        )
    })
    .collect()
}

fn lines(c: &mut Command) -> Vec<Value> {
    let text = String::from_utf8(good(c).stdout).expect("text");
    text.lines().map(|l| serde_json::from_str(l).expect("a line of JSON")).collect()
}

#[test]
fn a_sweep_that_was_killed_ends_with_the_same_bytes() {
    let scratch = Scratch::new("sweep-killed");
    let grid = scratch.write("grid.yaml", GRID);
    let (whole, broken) = (scratch.0.join("whole"), scratch.0.join("broken"));
    let first = good(&mut sweep(&grid, &whole));
    let want = results(&whole);
    assert_eq!(want.len(), 24);
    let mut child = sweep(&grid, &broken)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    until("some runs have ended", || results(&broken).len() >= 2);
    let _ = child.kill();
    let _ = child.wait();
    let before = results(&broken);
    assert!(before.len() < 24, "it was killed too late to tell anything");
    assert!(before.iter().all(|(name, text)| want[name] == *text), "what is there is whole");
    let written = |out: &Path, name: &str| {
        out.join(name).metadata().and_then(|m| m.modified()).expect("a time")
    };
    let times: Vec<_> = before.keys().map(|name| written(&broken, name)).collect();
    let again = good(&mut sweep(&grid, &broken));
    assert_eq!((results(&broken), &again.stdout), (want, &first.stdout));
    assert_eq!(
        before.keys().map(|name| written(&broken, name)).collect::<Vec<_>>(),
        times,
        "what was there is not run again"
    );
    assert!(
        said(&again).contains(&format!("{} of 24 runs are there already", before.len())),
        "{}",
        said(&again)
    );
}

#[test]
fn shards_and_runs_by_themselves_give_what_one_sweep_gives() {
    let scratch = Scratch::new("sweep-shards");
    let grid = scratch.write("grid.yaml", GRID);
    let (whole, parts, alone) =
        (scratch.0.join("whole"), scratch.0.join("parts"), scratch.0.join("alone"));
    let table = good(&mut sweep(&grid, &whole)).stdout;
    for k in 0..3 {
        let o = good(sweep(&grid, &parts).args(["--shard", &format!("{k}/3")]));
        assert_eq!((o.stdout.len(), results(&parts).len()), (0, 8 * (k + 1)));
    }
    assert_eq!(results(&parts), results(&whole));
    assert_eq!(good(&mut sweep(&grid, &parts)).stdout, table, "nothing is left to run");
    // One by its arguments, one by its id.
    let listed = lines(sweep(&grid, &alone).arg("--list"));
    assert!(listed.len() == 24 && listed.iter().all(|l| l["state"] == "missing"));
    assert_eq!(
        (&listed[1]["policy"], &listed[1]["seed"], &listed[3]["seed"]),
        (&"helios".into(), &1.into(), &2.into())
    );
    std::fs::create_dir(&alone).expect("a directory");
    let argv =
        listed[4]["argv"].as_array().expect("arguments").iter().map(|a| a.as_str().expect("text"));
    good(heliostat().args(argv));
    good(sweep(&grid, &alone).args(["--only", listed[7]["id"].as_str().expect("an id")]));
    let want = results(&whole);
    assert!(
        results(&alone).len() == 2
            && results(&alone).iter().all(|(name, text)| want[name] == *text)
    );
    let states =
        lines(sweep(&grid, &alone).arg("--list")).iter().filter(|l| l["state"] == "done").count();
    assert_eq!(states, 2);
    for wrong in ["3/3", "x", "1", "-1/2"] {
        assert_eq!(
            output(sweep(&grid, &whole).arg(format!("--shard={wrong}"))).status.code(),
            Some(2),
            "{wrong}"
        );
    }
}

#[test]
fn a_run_that_fails_is_a_row_and_not_the_end() {
    let scratch = Scratch::new("sweep-fails");
    // `network: sunflow` knows no faults.
    let text = "topologies: hybrid-8x2\npolicies: [c-through, sunflow]\nworkloads: shuffle-8\noptions: {fault: r1.uplink=50%@1s}\n";
    let grid = scratch.write("grid.yaml", text);
    let out = scratch.0.join("out");
    let o = output(&mut sweep(&grid, &out));
    assert_eq!(o.status.code(), Some(1), "{}", said(&o));
    assert!(
        said(&o).contains("1 of 2 runs failed")
            && said(&o).contains("policy sunflow")
            && said(&o).contains("knows no faults"),
        "{}",
        said(&o)
    );
    assert!(String::from_utf8_lossy(&o.stdout).contains("c-through") && results(&out).len() == 1);
    let rows = scratch.0.join("rows.jsonl");
    good(sweep(&grid, &out).arg("--collect").arg(&rows));
    let text = std::fs::read_to_string(&rows).expect("rows");
    let rows: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    assert_eq!(
        (&rows[0]["state"], &rows[0]["end"], &rows[0]["error"]),
        (&"done".into(), &"finished".into(), &Value::Null)
    );
    assert!(
        rows[1]["state"] == "failed"
            && rows[1]["error"].as_str().is_some_and(|e| e.contains("knows no faults"))
            && rows[1]["makespan_ns"].is_null()
    );
}

#[test]
fn names_follow_contents_and_rows_hold_everything() {
    let scratch = Scratch::new("sweep-rows");
    let policy = |interval: &str| {
        format!(
            "name: mine\ninterval: {interval}\ndemand: backlog\nscheduler: edmonds\nelephants: {{admit: all}}\n"
        )
    };
    scratch.write("mine.yaml", &policy("100ms"));
    let text = "topologies: hybrid-8x2\npolicies: [mine.yaml, c-through]\nworkloads: shuffle-8\n";
    let (grid, out) = (scratch.write("grid.yaml", text), scratch.0.join("out"));
    good(&mut sweep(&grid, &out));
    let before = results(&out);
    scratch.write("mine.yaml", &policy("200ms"));
    good(&mut sweep(&grid, &out));
    let after = results(&out);
    assert_eq!((before.len(), after.len()), (2, 3), "only what the file changes is run again");
    let (runs, coflows) = (scratch.0.join("runs.csv"), scratch.0.join("coflows.csv"));
    good(sweep(&grid, &out).arg("--collect").arg(&runs));
    good(sweep(&grid, &out).arg("--collect").arg(&coflows).args(["--rows", "coflows"]));
    let read = |f: &Path| {
        std::fs::read_to_string(f).expect("rows").lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let runs = read(&runs);
    assert!(
        runs.len() == 3
            && runs[0]
                .starts_with("id,topology,policy,workload,seed,state,error,end,coflows_finished,"),
        "{}",
        runs[0]
    );
    let result = after
        .values()
        .map(|text| serde_json::from_slice::<Value>(text).expect("JSON"))
        .find(|r| r["policy"] == "c-through");
    let makespan = result.expect("a result")["summary"]["makespan_ns"].to_string();
    assert!(
        runs.iter().any(|r| r.contains(",c-through,") && r.contains(&format!(",{makespan},"))),
        "{makespan} in {runs:?}"
    );
    assert_eq!(read(&coflows).len(), 1 + 2 * 14);
}

#[test]
fn a_directory_knows_the_runs_of_its_last_sweep() {
    let scratch = Scratch::new("sweep-kept");
    let text = "topologies: hybrid-8x2\npolicies: [c-through, helios]\nworkloads: facebook\noptions: {coflows: 5, scale: [10, 100]}\n";
    let (grid, out, rows) =
        (scratch.write("grid.yaml", text), scratch.0.join("out"), scratch.0.join("rows.csv"));
    let collected = |with: &[&Path]| {
        good(
            heliostat().arg("sweep").args(with).arg("--out").arg(&out).arg("--collect").arg(&rows),
        );
        std::fs::read_to_string(&rows).expect("rows")
    };
    let without_grid = |word: &str| {
        output(
            heliostat()
                .arg("sweep")
                .arg("--out")
                .arg(&out)
                .args(word.split(' ').filter(|w| !w.is_empty())),
        )
    };
    assert_eq!(without_grid("").status.code(), Some(2), "a sweep needs its grid");
    let o = without_grid("--list");
    assert!(
        o.status.code() == Some(3)
            && said(&o).contains("runs.jsonl")
            && said(&o).contains("name the grid"),
        "{}",
        said(&o)
    );
    // By one run: what is kept are all.
    let first = lines(sweep(&grid, &out).arg("--list"))[0].clone();
    good(sweep(&grid, &out).args(["--only", first["id"].as_str().expect("an id")]));
    let states: Vec<Value> = lines(heliostat().arg("sweep").arg("--out").arg(&out).arg("--list"))
        .iter()
        .map(|l| l["state"].clone())
        .collect();
    assert_eq!(states, ["done", "missing", "missing", "missing"]);
    good(&mut sweep(&grid, &out));
    assert_eq!(collected(&[]), collected(&[&grid]));
    let listed = |c: &mut Command| lines(c.arg("--list"));
    assert_eq!(
        listed(heliostat().arg("sweep").arg("--out").arg(&out)),
        listed(&mut sweep(&grid, &out))
    );
    // Another grid, of which nothing is left to run.
    let smaller = scratch.write("smaller.yaml", &text.replace("[10, 100]", "10"));
    assert_eq!(collected(&[&smaller]).lines().count(), 3);
    assert_eq!(collected(&[]).lines().count(), 3);
    std::fs::write(out.join("runs.jsonl"), "{}\n").expect("a file");
    let o = without_grid("--list");
    assert!(
        o.status.code() == Some(3) && said(&o).contains("runs.jsonl:1: missing field"),
        "{}",
        said(&o)
    );
}

#[test]
fn several_policies_and_seeds_become_one_table_that_other_commands_read() {
    let scratch = Scratch::new("study");
    let json = scratch.0.join("all.json");
    let mut c = heliostat();
    c.args([
        "simulate",
        "hybrid-8x2",
        "--policy",
        "eps-only",
        "--policy",
        "c-through",
        "--policy",
        "helios",
        "--workload",
        "facebook",
    ]);
    c.args(["--coflows", "40", "--scale", "100", "--repeat", "4"]);
    let table = String::from_utf8(good(c.arg("--json").arg(&json)).stdout).expect("text");
    assert!(
        table.contains("average CCT")
            && table.contains("CCT over that of eps-only")
            && table.contains("c-through, p95"),
        "{table}"
    );
    let all: Value = serde_json::from_slice(&std::fs::read(&json).expect("results")).expect("JSON");
    assert_eq!(all.as_array().map(Vec::len), Some(12));
    let compared = good(heliostat().arg("compare").arg(&json)).stdout;
    assert_eq!(String::from_utf8_lossy(&compared), table, "from files as from the runs themselves");
    // By hand: the mean over seeds of the difference within each.
    let mean = |r: &Value| r["summary"]["average_cct_ns"].as_u64().expect("a time") as f64;
    let by_hand =
        (0..4).map(|k| 100.0 * (mean(&all[4 + k]) / mean(&all[k]) - 1.0)).sum::<f64>() / 4.0;
    let study: Value = serde_json::from_slice(
        &good(heliostat().arg("compare").arg(&json).args(["-o", "json"])).stdout,
    )
    .expect("JSON");
    let figures = study["policies"][1]["figures"].as_array().expect("figures");
    let found = figures.iter().find(|f| f["name"] == "average CCT").expect("a figure");
    assert!(
        (found["against_first"]["percent"]["mean"].as_f64().expect("a number") - by_hand).abs()
            < 1e-9,
        "{found}"
    );
    let svg = scratch.0.join("cct.svg");
    good(heliostat().arg("plot").arg(&json).arg("--to").arg(&svg));
    let drawn = std::fs::read_to_string(&svg).expect("a chart");
    assert!(
        ["eps-only, 4 runs", "c-through, 4 runs", "helios, 4 runs"]
            .iter()
            .all(|line| drawn.contains(line))
    );
    let log = scratch
        .write("log.jsonl", "{\"seq\":0,\"at\":0,\"event\":\"cycle\",\"cycle\":0,\"demand\":5,\"ops\":4,\"late\":false}\n{\"seq\":1}\n");
    let o = output(heliostat().arg("compare").arg(&json).arg(&log));
    assert!(
        o.status.code() == Some(3) && said(&o).contains("this is an event log"),
        "{}",
        said(&o)
    );
}

#[test]
fn policies_take_turns_on_a_real_network() {
    let name = unique("turns");
    if !root("policies_take_turns_on_a_real_network") {
        return;
    }
    let scratch = Scratch::new("turns");
    let json = scratch.0.join("live.json");
    let mut c = run(&name);
    c.args([
        "--policy",
        "c-through",
        "--policy",
        "eps-only",
        "--workload",
        "shuffle-4",
        "--scale",
        "20",
        "--json",
    ])
    .arg(&json);
    let table = String::from_utf8(good(&mut c).stdout).expect("text");
    assert!(
        table.contains("Differences are against c-through.")
            && table.contains("CCT over that of c-through"),
        "{table}"
    );
    crate::schema::Schema::of_results().fits(&json);
    let all: Vec<Value> =
        serde_json::from_slice(&std::fs::read(&json).expect("results")).expect("JSON");
    assert_eq!(
        all.iter().map(|r| r["policy"].as_str().expect("a name")).collect::<Vec<_>>(),
        ["c-through", "eps-only"]
    );
    assert!(all.iter().all(|r| r["summary"]["unfinished"] == 0 && r["mechanism"] != "sim"));
    assert_eq!(String::from_utf8_lossy(&good(heliostat().arg("compare").arg(&json)).stdout), table);
    let o = output(run(&name).args(["--policy", "c-through", "--policy", "eps-only"]));
    assert!(
        o.status.code() == Some(2)
            && said(&o).contains("several policies are compared on a --workload"),
        "{}",
        said(&o)
    );
}

#[test]
fn jobs_are_swept_as_repetitions_are() {
    let scratch = Scratch::new("sweep-jobs");
    let grid = scratch.write(
        "grid.yaml",
        "topologies: hybrid-8x2\npolicies: [fair, corral]\njobs: jobpacker\nseeds: [1, 2]\noptions: {first: 6, scale: 50}\n",
    );
    let (out, json) = (scratch.0.join("out"), scratch.0.join("all.json"));
    good(&mut sweep(&grid, &out));
    let mut c = heliostat();
    c.args([
        "simulate",
        "hybrid-8x2",
        "--policy",
        "fair",
        "--policy",
        "corral",
        "--jobs",
        "jobpacker",
        "--first",
        "6",
        "--scale",
        "50",
    ]);
    good(c.args(["--repeat", "2", "--json"]).arg(&json));
    let repeated: Vec<Value> =
        serde_json::from_slice(&std::fs::read(&json).expect("results")).expect("JSON");
    let swept: Vec<Value> =
        results(&out).values().map(|t| serde_json::from_slice(t).expect("JSON")).collect();
    assert!(
        swept.len() == 4 && swept.iter().all(|r| repeated.contains(r)),
        "data is placed by the seed in both"
    );
    let rows = scratch.0.join("jobs.csv");
    good(sweep(&grid, &out).arg("--collect").arg(&rows).args(["--rows", "jobs"]));
    assert_eq!(std::fs::read_to_string(&rows).expect("rows").lines().count(), 1 + 4 * 6);
}

#[test]
fn mistakes_in_a_grid_have_their_places() {
    let scratch = Scratch::new("sweep-wrong");
    let out = scratch.0.join("out");
    for (text, told) in [
        (GRID.replace("helios", "helio"), "grid.yaml:2:23: policies[1]:"),
        (GRID.replace("helios", "helio"), "did you mean `helios`?"),
        (GRID.replace("facebook", "facebok"), "did you mean `facebook`?"),
        (GRID.replace("coflows: 60", "coflow: 60"), "did you mean `coflows`?"),
        (
            GRID.replace("coflows: 60", "coflows: many"),
            "grid.yaml:5:20: options.coflows[0]: invalid value 'many'",
        ),
        (
            GRID.replace("coflows: 60", "json: x.json"),
            "no option of simulate that a sweep can give",
        ),
        (GRID.replace("seeds", "seed"), "unknown key `seed`"),
    ] {
        let grid = scratch.write("grid.yaml", &text);
        let o = output(&mut sweep(&grid, &out));
        assert!(o.status.code() == Some(3) && said(&o).contains(told), "{told} in {}", said(&o));
    }
    assert!(!out.exists(), "nothing is made for a grid that makes no sense");
}

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
