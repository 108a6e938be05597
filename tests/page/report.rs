//! A report of simulated runs, opened from a file.

use crate::browser::{Browser, missing};
use crate::support::{Scratch, file, heliostat, output, said};

/// Simulates the demo's workload or jobs under a policy; the result is `NAME.json`, the event log `NAME.jsonl`.
fn simulate(d: &Scratch, policy: &str, what: &[&str]) {
    let mut c = heliostat();
    c.current_dir(file("")).arg("simulate").args(["topologies/hybrid-8x2.yaml", "--policy", &format!("policies/{policy}.yaml")]).args(what);
    c.arg("--json").arg(d.0.join(format!("{policy}.json"))).arg("--events").arg(d.0.join(format!("{policy}.jsonl")));
    let o = output(&mut c);
    assert!(o.status.success(), "{policy}: {}", said(&o));
}

fn report(d: &Scratch, files: &[&str]) -> Browser {
    let to = d.0.join("report.html");
    let mut c = heliostat();
    let o = output(c.arg("report").args(files.iter().map(|f| d.0.join(f))).arg("--to").arg(&to).args(["--title", "Two runs </script>"]));
    assert!(o.status.success(), "{}", said(&o));
    let b = Browser::open(&format!("file://{}", to.display()), 1280, 900);
    b.until("document.querySelectorAll('canvas').length > 3");
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
    assert!(row("average CCT").contains('×') && row("OCS share").ends_with("0.0\u{202f}%"), "{} {}", row("average CCT"), row("OCS share"));
    let titles = b.value("[...document.querySelectorAll('h2')].map((h) => h.textContent).join()");
    for part in ["Coflow completion times", "Utilisation: eps-only", "Circuits: c-through", "Coflows: eps-only", "Coflow by coflow"] {
        assert!(titles.as_str().expect("text").contains(part), "{part}: {titles}");
    }
    // What is drawn is drawn of numbers: the bars of the circuits are those of the event log.
    let log = std::fs::read_to_string(d.0.join("c-through.jsonl")).expect("the log");
    let set = log.lines().filter(|l| l.contains("\"circuit-set\"")).count() as u64;
    let bars = b.value("JSON.parse(document.getElementById('data').textContent).runs[0].circuits.length").as_u64().expect("a number");
    assert!(bars > 0 && bars <= set, "{bars} circuits of {set}");
    b.click("#log");
    b.until("document.querySelector('#log').getAttribute('aria-pressed') === 'true'");
    let theme = b.value("document.documentElement.dataset.theme");
    b.click("#theme");
    b.until(&format!("document.documentElement.dataset.theme !== {theme}"));
    assert_eq!(b.value("performance.getEntriesByType('resource').length"), 0);
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
    for part in ["Job completion times", "Tasks on slots: corral"] {
        assert!(titles.as_str().expect("text").contains(part), "{part}: {titles}");
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
