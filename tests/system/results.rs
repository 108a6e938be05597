//! Result files are as their JSON Schema says, and what is no result is refused in plain words.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::schema::Schema;

fn heliostat(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_heliostat")).args(args).output().expect("the program starts")
}

/// The result of a simulation that writes one.
fn simulated(dir: &Path, name: &str, args: &[&str]) -> PathBuf {
    let file = dir.join(name);
    let o = heliostat(
        &[&["simulate", "hybrid-8x2", "--json", file.to_str().expect("a path")], args].concat(),
    );
    assert!(o.status.success(), "{args:?}: {}", String::from_utf8_lossy(&o.stderr));
    file
}

#[test]
fn results_of_simulations_are_as_their_schema_says() {
    let (dir, schema) = (tempfile::tempdir().expect("a directory"), Schema::of_results());
    let dir = dir.path();
    let coflows = simulated(
        dir,
        "coflows.json",
        &["--policy", "c-through", "--workload", "shuffle-8", "--bucket", "100ms"],
    );
    let coflows = schema.fits(&coflows);
    assert!(
        coflows["coflows"].as_array().is_some_and(|c| c.len() > 5)
            && coflows["utilisation"].is_object()
    );
    let jobs = ["--policy", "pushbox", "--jobs", "jobs-8", "--explain", "0"];
    let jobs = schema.fits(&simulated(dir, "jobs.json", &jobs));
    assert!(jobs["jobs"].as_array().is_some_and(|j| j.len() > 5), "{}", jobs["jobs"]);
    let several = [
        "--policy",
        "c-through",
        "--policy",
        "varys",
        "--workload",
        "facebook",
        "--coflows",
        "10",
        "--repeat",
        "2",
    ];
    let file = simulated(dir, "several.json", &several);
    let told = String::from_utf8(heliostat(&["check", file.to_str().expect("a path")]).stdout)
        .expect("text");
    assert!(
        told.contains(
            "several.json: 4 results: c-through on hybrid-8x2 (sim), varys on hybrid-8x2 (sim)"
        ),
        "{told}"
    );
    let several = schema.fits(&file);
    assert_eq!(several.as_array().map(Vec::len), Some(4));

    // The schema says something: what is changed is refused.
    let changed = |of: &Value, pointer: &str, to: Value| {
        let mut all = of.clone();
        *all.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")) = to;
        schema.refuses(&all)
    };
    for (pointer, to) in [
        ("/format", json!(3)),
        ("/policy", json!(7)),
        ("/summary/makespan_ns", json!("2s")),
        ("/summary/makespan_ns", json!(-1)),
        ("/coflows/0/cct_ns", json!(0.5)),
        ("/summary/stats/cycle", json!(null)),
        ("/end", json!("somehow")),
    ] {
        assert!(changed(&coflows, pointer, to.clone()).is_some(), "{pointer} = {to}");
    }
    assert!(
        changed(&jobs, "/jobs/0/jct_ns", json!("2s")).is_some()
            && changed(&jobs, "/timeline/0/host", json!(3)).is_some()
    );
    assert!(changed(&several, "/3/topology", json!(null)).is_some());
    let mut less = coflows.clone();
    less.as_object_mut().expect("an object").remove("policy");
    assert!(schema.refuses(&less).is_some(), "a key that is always there");
}

/// Files of every format that there was, in tests/results: none is ever removed.
#[test]
fn results_and_event_logs_of_all_formats_are_read() {
    let kept = |name: &str| format!("{}/tests/results/{name}", env!("CARGO_MANIFEST_DIR"));
    let says = |args: &[&str]| {
        let o = heliostat(args);
        assert!(o.status.success(), "{args:?}: {}", String::from_utf8_lossy(&o.stderr));
        String::from_utf8(o.stdout).expect("text")
    };
    let newest = Schema::of_results()
        .id()
        .rsplit(':')
        .next()
        .and_then(|n| n.parse::<u32>().ok())
        .expect("the number of the form");
    for form in 1..=newest {
        let [coflows, jobs] = ["coflows", "jobs"].map(|kind| kept(&format!("{kind}-{form}.json")));
        let told = says(&["check", &coflows, &jobs]);
        assert!(told.matches("1 result: ").count() == 2, "{told}");
        // The first form and the last one of the same coflows say the same.
        let compared = says(&["compare", &kept("coflows-1.json"), &coflows]);
        let makespan = compared.lines().find(|l| l.starts_with(" makespan")).expect("a row");
        assert!(makespan.contains("3.795s") && makespan.contains("1.000"), "{compared}");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let drawn = dir.path().join("log.svg");
    says(&["plot", &kept("events-1.jsonl"), "--to", drawn.to_str().expect("a path")]);
    assert!(drawn.exists());
}

#[test]
fn what_is_no_result_is_refused_with_line_and_key() {
    let dir = tempfile::tempdir().expect("a directory");
    let good =
        simulated(dir.path(), "good.json", &["--policy", "c-through", "--workload", "shuffle-8"]);
    let text = std::fs::read_to_string(&good).expect("a result");
    let says = |text: &str| {
        let file = dir.path().join("bad.json");
        std::fs::write(&file, text).expect("a file");
        let o =
            heliostat(&["compare", good.to_str().expect("a path"), file.to_str().expect("a path")]);
        assert_eq!(o.status.code(), Some(3), "{o:?}");
        String::from_utf8_lossy(&o.stderr).into_owned()
    };
    let line = text.lines().position(|l| l.contains("\"makespan_ns\"")).expect("a line") + 1;
    let makespan = text.lines().nth(line - 1).expect("a line").to_owned();
    let told = says(&text.replace(&makespan, "    \"makespan_ns\": true,"));
    assert!(
        told.contains(&format!("bad.json:{line}:"))
            && told.contains("summary.makespan_ns: invalid type: boolean `true`"),
        "{told}"
    );
    assert!(
        told.contains("allowed: a result that `run`, `schedule` or `simulate` wrote with --json"),
        "{told}"
    );
    let told = says(&text.replace("\"policy\":", "\"polcy\":"));
    assert!(told.contains("missing key `policy`"), "{told}");
    let told = says(&text[..text.len() / 2]);
    assert!(told.contains("the text ends before its JSON does"), "{told}");
    let told = says("policy: x\n");
    assert!(told.contains("bad.json:1:1: this is not JSON"), "{told}");
    let told = says("{\"format\": 2, \"seq\": 0}\n{\"seq\": 1}\n");
    assert!(told.contains("this is an event log"), "{told}");
    for told in [says("[]x"), says("7"), says("{\"format\": 2, \"policy\": [3]}")] {
        assert!(!told.contains("struct") && !told.contains("Peek"), "{told}");
    }
}
