//! Sweeps and comparisons from outside: killed and started again, in shards, with runs that fail,
//! and read by the other commands.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::{Scratch, heliostat, output, root, run, said, unique, until};

/// 24 runs of a few milliseconds to a few tenths of a second each.
const GRID: &str = "topologies: hybrid-8x2\npolicies: [c-through, helios, eps-only]\nworkloads: facebook\nseeds: 1-8\noptions: {coflows: 60, scale: 100}\n";

pub fn sweep(grid: &Path, out: &Path) -> Command {
    let mut c = heliostat();
    c.arg("sweep").arg(grid).arg("--out").arg(out);
    c
}

pub fn good(c: &mut Command) -> Output {
    let o = output(c);
    assert!(o.status.success(), "{}", said(&o));
    o
}

/// The results in a directory, by name.
pub fn results(out: &Path) -> BTreeMap<String, Vec<u8>> {
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

pub fn lines(c: &mut Command) -> Vec<Value> {
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
