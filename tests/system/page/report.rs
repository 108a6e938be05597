//! Reports of simulated and live runs, opened from a file.

use super::browser::{Browser, missing};
use super::views::can_run;
use crate::support::{
    Scratch, assert_nothing_left, file, heliostat, output, said, together, unique,
};

/// Simulates the demo's workload or jobs under a policy; the result is `NAME.json`, the event log
/// `NAME.jsonl`.
fn simulate(d: &Scratch, policy: &str, what: &[&str]) {
    let mut c = heliostat();
    c.current_dir(file(""))
        .arg("simulate")
        .args(["topologies/hybrid-8x2.yaml", "--policy", &format!("policies/{policy}.yaml")])
        .args(what);
    c.arg("--json")
        .arg(d.0.join(format!("{policy}.json")))
        .arg("--events")
        .arg(d.0.join(format!("{policy}.jsonl")));
    let o = output(&mut c);
    assert!(o.status.success(), "{policy}: {}", said(&o));
}

fn report(d: &Scratch, files: &[&str]) -> Browser {
    report_of(d, files, 4)
}

/// The report of some files, which has at least this number of charts.
fn report_of(d: &Scratch, files: &[&str], charts: u32) -> Browser {
    let to = d.0.join("report.html");
    let mut c = heliostat();
    let o = output(
        c.arg("report")
            .args(files.iter().map(|f| d.0.join(f)))
            .arg("--to")
            .arg(&to)
            .args(["--title", "Two runs </script>"]),
    );
    assert!(o.status.success(), "{}", said(&o));
    let b = Browser::open(&format!("file://{}", to.display()), 1280, 900);
    b.until(&format!("document.querySelectorAll('canvas').length >= {charts}"));
    assert_eq!(b.text("h1"), "Two runs </script>");
    b
}

#[test]
fn a_report_has_runs_side_by_side_and_asks_for_nothing_else() {
    let test = "a_report_has_runs_side_by_side_and_asks_for_nothing_else";
    if let Some(why) = missing() {
        return println!("SKIP {test}: {why}");
    }
    let d = Scratch::new("report");
    for policy in ["c-through", "eps-only"] {
        simulate(&d, policy, &["--workload", "workloads/shuffle-8.yaml"]);
    }
    let b = report(&d, &["c-through.json", "eps-only.json", "c-through.jsonl"]);
    let row = |name: &str| {
        let row = b.value(&format!("[...document.querySelectorAll('tr')].find((r) => r.cells[0].textContent === {name:?}).textContent"));
        row.as_str().expect("a row").to_owned()
    };
    assert_eq!(row("policy"), "policyc-througheps-only");
    assert_eq!(row("finished"), "finished1414");
    assert!(
        row("average CCT").contains('×') && row("OCS share").ends_with("0.0\u{202f}%"),
        "{} {}",
        row("average CCT"),
        row("OCS share")
    );
    let titles = b.value("[...document.querySelectorAll('h2')].map((h) => h.textContent).join()");
    for part in [
        "Coflow completion times",
        "Utilisation: eps-only",
        "Circuits: c-through",
        "Coflows: eps-only",
        "Coflow by coflow",
    ] {
        assert!(titles.as_str().expect("text").contains(part), "{part}: {titles}");
    }
    // What is drawn is drawn of numbers: the bars of the circuits are those of the event log.
    let log = std::fs::read_to_string(d.0.join("c-through.jsonl")).expect("the log");
    let set = log.lines().filter(|l| l.contains("\"circuit-set\"")).count() as u64;
    let bars = b
        .value("JSON.parse(document.getElementById('data').textContent).runs[0].circuits.length")
        .as_u64()
        .expect("a number");
    assert!(bars > 0 && bars <= set, "{bars} circuits of {set}");
    // Everything over time has one axis, for both runs.
    let ends = "[...document.querySelectorAll('.wide .chart')].map((x) => Heliostat.chartOf(x).chart.getOption().xAxis[0]).filter((x) => !x.name).map((x) => x.max)";
    let ends = b.value(ends);
    let ends = ends.as_array().expect("a list");
    assert!(ends.len() >= 5 && ends.iter().all(|e| *e == ends[0]), "{ends:?}");
    // If the times of the two runs differ by more than twenty, the axis is logarithmic at once.
    let pressed = |is: bool| {
        format!("document.querySelector('#log').getAttribute('aria-pressed') === '{is}'")
    };
    let times = "JSON.parse(document.getElementById('data').textContent).runs.flatMap((r) => r.coflows.map((c) => c.cct_ns))";
    let wide = b
        .value(&format!(
            "((t) => Math.max(...t) > 20 * Math.min(...t.filter((x) => x > 0)))({times})"
        ))
        .as_bool()
        .expect("a truth");
    b.until(&pressed(wide));
    b.click("#log");
    b.until(&pressed(!wide));
    let theme = b.value("document.documentElement.dataset.theme");
    b.click("#theme");
    b.until(&format!("document.documentElement.dataset.theme !== {theme}"));
    assert_eq!(b.value("performance.getEntriesByType('resource').length"), 0);
    // A run of other coflows is beside them, and not compared.
    simulate(&d, "helios", &["--workload", "workloads/shuffle-4.yaml"]);
    let b = report(&d, &["c-through.json", "eps-only.json", "helios.json"]);
    let cells = b.value("[...document.querySelectorAll('tr')].find((r) => r.cells[0].textContent === 'average CCT').textContent.split('×').length");
    assert_eq!(cells, 2);
    let note = b.value("document.querySelector('.panel .when').textContent");
    assert_eq!(
        note,
        "times in brackets are against c-through shuffle-8: multiples of its own; \
         no multiples for helios shuffle-4: other jobs or coflows"
    );
    assert_eq!(b.errors(), Vec::<String>::new());
}

#[test]
fn a_report_of_many_runs_can_be_read() {
    let test = "a_report_of_many_runs_can_be_read";
    if let Some(why) = missing() {
        return println!("SKIP {test}: {why}");
    }
    let d = Scratch::new("reportmany");
    let grid = d.write(
        "grid.yaml",
        "topologies: [hybrid-4x2, hybrid-8x2]\npolicies: [helios, c-through]\nworkloads: facebook\nseeds: 1-1\n\
         options: {coflows: 5, scale: [1, 10, 100]}\n",
    );
    let o = output(heliostat().arg("sweep").arg(grid).arg("--out").arg(d.0.join("out")));
    assert!(o.status.success(), "{}", said(&o));
    let b = report_of(&d, &["out"], 1);
    // No number and no name of a run is cut, and what lies beside is reached by scrolling.
    let cut = "[...document.querySelectorAll('.even th, .even td')].filter((e) => /^(makespan|average|OCS|)/.test(e.parentElement.cells[0].textContent) && !/options|SHA/.test(e.parentElement.cells[0].textContent) && e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent)";
    assert_eq!(b.value(cut), serde_json::json!([]));
    assert_eq!(b.value("document.documentElement.scrollWidth <= innerWidth"), true);
    assert_eq!(row(&b, "seed"), "seed 1 in all runs");
    let note = b.value("document.querySelector('.panel .when').textContent");
    assert!(note.as_str().expect("text").contains("no multiples for 10 runs: other"), "{note}");
    // The names of the lines are above the chart, and no two lines look alike.
    let above = "document.querySelector('.panel p.legend').getBoundingClientRect().bottom <= document.querySelector('.chart').getBoundingClientRect().top";
    assert_eq!(b.value(above), true);
    let alike = "new Set([...document.querySelector('.panel p.legend').querySelectorAll('line')].map((l) => l.getAttribute('stroke') + l.getAttribute('stroke-dasharray'))).size";
    assert_eq!(b.value(alike), 12);
    // What is over time is folded, and drawn once it is opened.
    let drawn = b.value("document.querySelectorAll('canvas').length").as_u64().expect("a number");
    assert_eq!(b.value("document.querySelectorAll('details').length"), 12);
    b.click("details summary");
    b.until(&format!("document.querySelectorAll('canvas').length > {drawn}"));
    assert_eq!(b.errors(), Vec::<String>::new());
}

#[test]
fn a_report_of_jobs_has_their_tasks() {
    let test = "a_report_of_jobs_has_their_tasks";
    if let Some(why) = missing() {
        return println!("SKIP {test}: {why}");
    }
    let d = Scratch::new("reportjobs");
    simulate(&d, "corral", &["--jobs", "workloads/jobs-8.yaml"]);
    let b = report(&d, &["corral.json"]);
    let titles = b.value("[...document.querySelectorAll('h2')].map((h) => h.textContent).join()");
    for part in ["Job completion times", "Tasks on slots: corral", "Job by job"] {
        assert!(titles.as_str().expect("text").contains(part), "{part}: {titles}");
    }
    assert_eq!(b.errors(), Vec::<String>::new());
}

/// The text of a row of the report's tables, with a space between its cells.
fn row(b: &Browser, name: &str) -> String {
    let found = format!(
        "[...document.querySelectorAll('tr')].find((r) => r.cells[0].textContent === {name:?})"
    );
    b.value(&format!("[...{found}.cells].map((c) => c.textContent).join(' ')"))
        .as_str()
        .expect("a row")
        .to_owned()
}

#[test]
fn a_report_of_a_study_has_means_with_intervals() {
    let test = "a_report_of_a_study_has_means_with_intervals";
    if let Some(why) = missing() {
        return println!("SKIP {test}: {why}");
    }
    let d = Scratch::new("reportstudy");
    let mut c = heliostat();
    c.current_dir(file("")).args([
        "simulate",
        "hybrid-8x2",
        "--policy",
        "c-through",
        "--policy",
        "eps-only",
        "--workload",
        "facebook",
    ]);
    let o = output(
        c.args(["--coflows", "20", "--repeat", "3"]).arg("--json").arg(d.0.join("study.json")),
    );
    assert!(o.status.success(), "{}", said(&o));
    let b = report_of(&d, &["study.json"], 1);
    assert_eq!(row(&b, "runs"), "runs 3 3");
    assert_eq!(row(&b, "finished"), "finished 20 ± 0 20 ± 0");
    let mean = row(&b, "average CCT");
    assert_eq!((mean.matches('±').count(), mean.matches('×').count()), (2, 1), "{mean}");
    let times =
        "JSON.parse(document.getElementById('data').textContent).runs.map((r) => r.coflows.length)";
    assert_eq!(b.value(times), serde_json::json!([60, 60]), "the distribution is that of all runs");
    assert_eq!(b.errors(), Vec::<String>::new());
}

#[test]
fn a_live_and_a_simulated_run_are_in_one_report() {
    let test = "a_live_and_a_simulated_run_are_in_one_report";
    if !can_run(test) {
        return;
    }
    let _turn = together();
    let (d, name) = (Scratch::new("reportboth"), unique("reportlive"));
    let few = ["--workload", "workloads/shuffle-4.yaml", "--coflows", "3"];
    for live in [true, false] {
        let mut c = heliostat();
        let verb: &[&str] =
            if live { &["run", "--name", &name, "--listen", "127.0.0.1:0"] } else { &["simulate"] };
        c.current_dir(file(""))
            .args(verb)
            .args(["topologies/hybrid-4x2.yaml", "--policy", "policies/c-through.yaml"])
            .args(few);
        let to = if live { ["live.json", "live.jsonl"] } else { ["sim.json", "sim.jsonl"] };
        let o = output(c.arg("--json").arg(d.0.join(to[0])).arg("--events").arg(d.0.join(to[1])));
        assert!(o.status.success(), "{to:?}: {}", said(&o));
    }
    assert_nothing_left(&name);
    let b = report_of(&d, &["live.json", "live.jsonl", "sim.json", "sim.jsonl"], 5);
    let mechanism = row(&b, "mechanism");
    assert!(["mechanism timed sim", "mechanism netlink sim"].contains(&&*mechanism), "{mechanism}");
    assert_eq!(row(&b, "finished"), "finished 3 3");
    assert!(row(&b, "dark time achieved, p50, p99").contains("ms"), "only live runs have probes");
    let data = |what: &str| {
        b.value(&format!(
            "JSON.parse(document.getElementById('data').textContent).runs.map((r) => {what})"
        ))
    };
    assert_eq!(data("r.coflows.length"), serde_json::json!([3, 3]));
    assert_eq!(
        data("r.circuits.length > 0 && r.demand.length > 0"),
        serde_json::json!([true, true])
    );
    assert_eq!(data("r.utilisation.links.length > 0"), serde_json::json!([true, true]));
    // Both event logs are by the clocks of their results: light began within the run, for a demand
    // that the log tells.
    assert_eq!(
        data(
            "r.circuits.some((c) => c.up < r.ended_ns && c.demand > 0) && r.circuits.every((c) => c.demand !== null)"
        ),
        serde_json::json!([true, true])
    );
    let titles = b.value("[...document.querySelectorAll('h2')].map((h) => h.textContent).join()");
    let live = mechanism.split(' ').nth(1).expect("a mechanism");
    for part in [
        format!("Circuits: {live}"),
        "Circuits: sim".into(),
        format!("Utilisation: {live}"),
        format!("Coflows: {live}"),
    ] {
        assert!(titles.as_str().expect("text").contains(&part), "{part}: {titles}");
    }
    assert_eq!(b.errors(), Vec::<String>::new());
}

#[test]
fn files_that_are_no_results_are_refused_by_name() {
    let d = Scratch::new("reportbad");
    let bad = d.write("bad.json", "{\"policy\": \"p\"}");
    let o = output(heliostat().arg("report").arg(&bad).arg("--to").arg(d.0.join("x.html")));
    assert_eq!(o.status.code(), Some(3), "{}", said(&o));
    assert!(said(&o).contains("bad.json: neither a result nor an event log"), "{}", said(&o));
    assert!(!d.0.join("x.html").exists());
}
