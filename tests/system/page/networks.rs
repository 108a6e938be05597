//! Networks of several packet switches, and jobs, as a viewer sees them.

use std::path::Path;
use std::process::Command;

use super::views::{can_run, page};
use crate::support::{Daemon, file, heliostat, together, unique};

/// A daemon on the shipped network of this name.
fn daemon(name: &str, topology: &str, policy: &str) -> Daemon {
    let mut c = heliostat();
    c.arg("run").arg(file(&format!("topologies/{topology}.yaml"))).args([
        "--name",
        name,
        "--listen",
        "127.0.0.1:0",
        "--policy",
    ]);
    let d = Daemon::spawn(name, c.arg(file(&format!("policies/{policy}.yaml"))));
    d.until_says("is up");
    d
}

#[test]
fn switches_and_links_show_their_load_and_what_is_down() {
    let test = "switches_and_links_show_their_load_and_what_is_down";
    if !can_run(test) {
        return;
    }
    let _turn = together();
    let name = unique("pagegraph");
    let d = daemon(&name, "fat-tree-4", "hit");
    let b = page(&d);
    b.until("document.querySelectorAll('#fabric-picture .switch-item').length === 20");
    assert_eq!(b.value("document.querySelectorAll('#fabric-picture .cable').length"), 32);
    // Core above aggregation above access, none beside the page, and no two in one place.
    let places = "[...document.querySelectorAll('#fabric-picture .switch')].map((r) => [+r.getAttribute('x'), +r.getAttribute('y')])";
    assert_eq!(b.value(&format!("new Set({places}.map((p) => p.join())).size")), 20);
    assert_eq!(b.value(&format!("new Set({places}.map((p) => p[1])).size")), 3);
    let top = |tier: &str| {
        let of = format!(
            "[...document.querySelectorAll('#fabric-picture .switch-item')].filter((g) => g.getAttribute('aria-label').startsWith('Switch {tier}'))"
        );
        b.value(&format!(
            "Math.max(...{of}.map((g) => +g.querySelector('.switch').getAttribute('y')))"
        ))
        .as_f64()
        .expect("a place")
    };
    assert!(
        top("core") < top("agg") && top("agg") < top("edge"),
        "{} {} {}",
        top("core"),
        top("agg"),
        top("edge")
    );
    let width = "document.querySelector('#fabric-picture svg').viewBox.baseVal.width";
    assert_eq!(b.value(&format!("{places}.every((p) => p[0] > 0 && p[0] < {width})")), true);
    // Bytes from the first rack to the last one cross five switches, for longer than this test
    // looks at them.
    let body = serde_json::json!({"name": "far", "send": true, "pairs": [{"from": 0, "to": 7, "bytes": 6_000_000_000_u64}]});
    let posted = ureq::post(format!("{}/api/v1/coflows", d.api())).send_json(&body).expect("taken");
    assert_eq!(posted.status(), 201);
    b.until("document.querySelectorAll('#fabric-picture .cable.busy').length >= 4");
    let wide = "[...document.querySelectorAll('#fabric-picture .cable.busy .cable-line')].some((p) => +p.getAttribute('stroke-width') > 2)";
    b.until(wide);
    b.value("document.querySelector('#fabric-picture .cable.busy').dispatchEvent(new MouseEvent('click'))");
    b.until_says("#details-body", "rate, each way");
    b.until("document.querySelectorAll('#details table tbody tr').length === 2");
    // Numbers change, and the button that a pointer may be on stays.
    let changed = "(() => { const { details, store } = Heliostat.page; const rows = () => document.querySelector('#details tbody'); \
                   const [button, text] = [rows().querySelector('button'), rows().textContent]; \
                   for (const s of store.switches) for (const p of s.ports) p.drops += 1234567; \
                   details.update(store.now()); return [button.isConnected, rows().textContent !== text]; })()";
    assert_eq!(b.value(changed), serde_json::json!([true, true]));
    // From the link to one of its switches.
    b.click("#details table button");
    b.until_says("#details-h", "Switch");
    b.until_says("#details-body", "pairs of hosts that cross it");
    b.until("document.querySelectorAll('#details table tbody tr').length >= 3");
    b.click("#details-close");
    // A link that is taken down is marked, in words too, and is well again.
    let one_end =
        b.value("Heliostat.page.store.topology.graph.links[0].from").as_u64().expect("a number");
    let link = |state: &str| {
        let ns = format!("{name}-sw{one_end}");
        let done = Command::new("ip")
            .args(["-n", &ns, "link", "set", "cable0", state])
            .status()
            .expect("iproute2");
        assert!(done.success(), "ip -n {ns} link set cable0 {state}");
    };
    link("down");
    b.until("document.querySelectorAll('#fabric-picture .cable.faulty').length === 1");
    let marked = b.value(
        "document.querySelector('#fabric-picture .cable.faulty').getAttribute('aria-label')",
    );
    let ends = b
        .value("(({ switches, links }) => [links[0].from, links[0].to].map((s) => switches[s].name))(Heliostat.page.store.topology.graph)");
    let named = |k: usize| {
        marked
            .as_str()
            .zip(ends[k].as_str())
            .is_some_and(|(m, end)| m.contains(end) && m.ends_with("down"))
    };
    assert!(named(0) && named(1), "{marked}, not the link of {ends}");
    link("up");
    b.until("!document.querySelector('#fabric-picture .cable.faulty')");
    assert_eq!(b.errors(), Vec::<String>::new());
}

#[test]
fn a_network_without_optical_planes_has_no_circuits_to_show() {
    let test = "a_network_without_optical_planes_has_no_circuits_to_show";
    if !can_run(test) {
        return;
    }
    let _turn = together();
    let d = daemon(&unique("pagebcube"), "bcube-64", "hit");
    let b = page(&d);
    b.until("document.querySelectorAll('#fabric-picture .switch-item').length === 16");
    let body = serde_json::json!({"name": "far", "send": true, "pairs": [{"from": 0, "to": 63, "bytes": 6_000_000_000_u64}]});
    assert_eq!(
        ureq::post(format!("{}/api/v1/coflows", d.api())).send_json(&body).expect("taken").status(),
        201
    );
    b.until("document.querySelectorAll('#fabric-picture .cable.busy').length >= 3");
    b.until("[...document.querySelectorAll('#tiles .sub')].some((e) => e.textContent.endsWith('of bytes'))");
    assert_eq!(b.value("document.querySelectorAll('#tiles .tile').length"), 6);
    assert_eq!(b.value("[...document.querySelectorAll('#tiles .sub')].filter((e) => e.scrollWidth > e.clientWidth).length"), 0);
    assert_eq!(b.value("document.querySelector('#act-circuit').hidden"), true);
    assert_eq!(b.errors(), Vec::<String>::new());
}

#[test]
fn jobs_show_their_slots_and_how_far_they_are() {
    let test = "jobs_show_their_slots_and_how_far_they_are";
    if !can_run(test) {
        return;
    }
    let _turn = together();
    let d = daemon(&unique("pagejobs"), "hybrid-8x2", "c-through");
    let b = page(&d);
    assert_eq!(b.value("document.querySelector('#jobs').hidden"), true, "there are no jobs yet");
    let schedule = |workload: &Path, more: &[&str]| {
        let mut c = heliostat();
        c.args(["schedule", "--controller", &d.api(), "--policy"]).arg(file("policies/fair.yaml"));
        Daemon::spawn("schedule", c.args(more).arg("--workload").arg(workload))
    };
    let scratch = tempfile::tempdir().expect("a directory");
    let one = scratch.path().join("one.yaml");
    let job = "{name: only, arrival: 0ms, maps: 8, map_time: 3s, input: 8MB, shuffle: 8MB, reduces: 4, reduce_time: 1s}";
    std::fs::write(&one, format!("name: one\njobs: [{job}]\n")).expect("a file");
    let mut first = schedule(&one, &[]);
    b.until("!document.querySelector('#jobs').hidden");
    let states = "[...document.querySelectorAll('#job-rows tr')].map((r) => r.textContent)";
    b.until(&format!("{states}.length === 1 && /only/.test({states}[0])"));
    // Another one, whose jobs are shown from their beginning once those of the first are finished.
    let many_jobs = file("workloads/jobs-8.yaml");
    let mut schedule = schedule(&many_jobs, &["--scale", "4", "--time-scale", "4"]);
    assert_eq!(first.ended(), Some(0), "{}", first.log());
    b.until(&format!(
        "{states}.length > 1 && {states}.some((s) => /compute|waits|finished/.test(s))"
    ));
    b.until_says("#jobs-sum", "slots");
    b.until("document.querySelector('#slots canvas')");
    // Slots that compute and slots that wait were both seen, never more than there are.
    let held = "Heliostat.page.store.jobs.samples.map((s) => s.held.reduce((a, h) => [a[0] + h.computing, a[1] + h.waiting], [0, 0]))";
    b.until(&format!("{held}.some((h) => h[0] > 0) && {held}.some((h) => h[1] > 0)"));
    assert_eq!(schedule.ended(), Some(0), "{}", schedule.log());
    b.until("/0 open, [1-9]\\d* finished/.test(document.querySelector('#jobs-sum').textContent)");
    b.until("[...document.querySelectorAll('#job-rows tr')].every((r) => /finished.*100/.test(r.textContent))");
    let slots = b.value("Heliostat.page.store.jobs.slots").as_u64().expect("a number");
    assert_eq!(slots, 32);
    assert_eq!(b.value(&format!("{held}.every((h) => h[0] + h[1] <= {slots})")), true);
    // Who comes later sees the same.
    let later = page(&d);
    later.until("document.querySelectorAll('#job-rows tr').length && document.querySelector('#slots canvas')");
    let (status, said) = d.call("GET", "/api/v1/jobs", None);
    assert_eq!(status, 200, "{said}");
    let all = said["samples"].as_array().map_or(0, Vec::len);
    for seen in [&b, &later] {
        seen.until(&format!("Heliostat.page.store.jobs.samples.length === {all}"));
    }
    assert_eq!((b.errors(), later.errors()), (vec![], vec![]));
}
