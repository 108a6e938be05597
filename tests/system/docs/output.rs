//! The tables of docs/result-file.md against results.

use std::collections::BTreeSet;
use std::sync::Arc;

use heliostat::control::record::{PlaneDark, Tampered};
use heliostat::fabric::meter::{Carried, Utilisation};
use heliostat::placement::decision::Afar;
use heliostat::runtime::jobs::report::JobsResult;
use heliostat::runtime::jobs::simulate::{JobRunOptions, SimulatedJobs, simulate_with};
use heliostat::runtime::report::caveats::Given;
use heliostat::runtime::report::form::Document;
use heliostat::runtime::report::{MachineUse, ResultOrigin, RunMachine, RunResult};
use heliostat::runtime::simulate::simulate;
use heliostat::units::{BitRate, Bytes, Span, Time};
use heliostat::{config, ids};
use serde_json::Value;

use super::text;

/// A run of coflows with everything that a result can have.
fn coflows() -> RunResult {
    let topology = Arc::new(
        config::read_topology(&text("topologies/hybrid-4x2.yaml"), "topology").expect("a topology"),
    );
    let plan = config::read_policy(&text("policies/c-through.yaml"), "policy").expect("a policy");
    let workload = config::read_workload(
        &text("workloads/shuffle-4.yaml"),
        "workload",
        &topology,
        &Default::default(),
    );
    let mut r = simulate(&topology, &plan, &workload.expect("a workload"), None, &mut |_| ())
        .expect("a run");
    let some = || Some(String::new());
    let load =
        MachineUse { cpu: Some(0.0), memory: Some(0.0), io: Some(0.0), ..MachineUse::default() };
    let machine = RunMachine {
        kernel: some(),
        processor: some(),
        cores: Some(1),
        revision: some(),
        load: Some(load),
        ..RunMachine::default()
    };
    r.machine = Some(RunMachine { seconds: Some(1.0), events_per_second: Some(1.0), ..machine });
    r.summary.bytes_sent_again = Some(Bytes(1));
    r.events = Some(1);
    let (topology_sha256, policy_sha256, workload_sha256, host, started_at) =
        (some(), some(), some(), some(), some());
    let (seed, resolution) = (Some(1), Some(Span::millis(1)));
    let options = [("scale".to_owned(), "10".to_owned())].into();
    let settings = config::settings(&plan);
    r.origin = ResultOrigin {
        seed,
        resolution,
        topology_sha256,
        policy_sha256,
        workload_sha256,
        host,
        started_at,
        options,
        settings,
        ..r.origin
    };
    r.zero = Some(Time(1));
    r.tampered = Some(Tampered { from: Time(1), until: Time(2), what: "a queue".into(), found: 1 });
    (r.coflows[0].lost, r.summary.stats.fallbacks, r.summary.stats.late_answers) =
        (Some("cut off".into()), 1, 1);
    (r.summary.faulty_ports, r.summary.took_no_time) = (1, 1);
    r.summary.stats.first_fallback = Some("no answer".into());
    let dark = r.summary.stats.dark_achieved;
    r.summary.stats.dark_by_plane = vec![PlaneDark { plane: 0, asked: dark, achieved: dark }];
    let link = Carried { name: "ocs0".into(), rate: BitRate(1), bytes: vec![1] };
    r.utilisation = Some(Utilisation { bucket: Span(1), until: Time(1), links: vec![link] });
    r.judged(&Given::default())
}

/// A run of jobs, likewise.
fn jobs(network: &RunResult) -> JobsResult {
    let topology =
        config::read_topology(&text("topologies/hybrid-8x2.yaml"), "topology").expect("a topology");
    let mut jobs = config::read_jobs(&text("workloads/jobs-8.yaml"), "jobs").expect("jobs");
    jobs.jobs.truncate(3);
    let explained = |policy: &str| {
        let plan = config::read_policy(&text(policy), "policy").expect("a policy");
        let jobs_by = plan.jobs.clone().expect("a policy for jobs");
        let ask = SimulatedJobs {
            topology: &topology,
            plan: &plan,
            jobs_by: &jobs_by,
            jobs: &jobs,
            failures: &[],
            faults: &[],
            until: None,
        };
        let course = JobRunOptions { explain: Some(ids::JobId(0)), ..JobRunOptions::default() };
        simulate_with(&ask, &course, &mut |_| ()).expect("a run")
    };
    let mut r = explained("policies/pushbox.yaml");
    r.decisions = explained("policies/joint.yaml").decisions;
    r.decisions.retain(|d| d.estimate.is_some());
    r.decisions[0].afar = Some(Afar { reads: Span(1), waits: Span(2) });
    (r.machine, r.utilisation, r.events) =
        (network.machine.clone(), network.utilisation.clone(), network.events);
    (r.summary.counters.fallbacks, r.summary.first_fallback) = (1, Some("no answer".into()));
    (r.summary.counters.late_answers, r.forced) = (1, true);
    (r.network.faulty_ports, r.network.took_no_time) = (1, 1);
    (r.origin, r.tampered, r.network.stats) =
        (network.origin.clone(), network.tampered.clone(), network.summary.stats.clone());
    r.zero = network.zero;
    r.coflows[0].lost.clone_from(&network.coflows[0].lost);
    r.network.bytes_sent_again = network.summary.bytes_sent_again;
    r.judged(&Given::default())
}

/// The keys of the object at a path such as `coflows[].name`.
fn keys(result: &Value, path: &str) -> BTreeSet<String> {
    let mut at = result;
    for step in path.split('.').filter(|s| !s.is_empty()) {
        at = &at[step.trim_end_matches("[]")];
        if step.ends_with("[]") {
            at = &at[0];
        }
    }
    let object = at.as_object().unwrap_or_else(|| panic!("no object at {path}: {at}"));
    object.keys().cloned().collect()
}

/// The words in backticks in the first column of the tables below a heading.
fn rows(manual: &str, heading: &str) -> BTreeSet<String> {
    let below = manual
        .split_once(&format!("\n## {heading}\n"))
        .unwrap_or_else(|| panic!("no heading {heading}"))
        .1;
    let section = below.split("\n#").next().expect("a section");
    let first =
        section.lines().filter(|l| l.starts_with("| `")).filter_map(|l| l.split('|').nth(1));
    first.flat_map(|cell| cell.split('`').skip(1).step_by(2).map(Into::into)).collect()
}

#[test]
fn every_key_of_a_result_has_its_row() {
    let manual = text("docs/result-file.md");
    let run = coflows();
    let mut with_baseline = serde_json::to_value(Document::of(&run)).expect("plain data");
    with_baseline["baseline"] = with_baseline.clone();
    let jobs = serde_json::to_value(Document::of(&jobs(&run))).expect("plain data");
    let tables = [
        ("Result of coflows", &with_baseline, ""),
        ("Result of jobs", &jobs, ""),
        ("`origin`", &with_baseline, "origin"),
        ("`origin`", &jobs, "origin"),
        ("`coflows[]`", &jobs, "coflows[]"),
        ("`coflows[]`", &with_baseline, "coflows[]"),
        ("`tampered`", &with_baseline, "tampered"),
        ("`summary` of coflows, `network` of jobs", &with_baseline, "summary"),
        ("`summary` of coflows, `network` of jobs", &jobs, "network"),
        ("`stats`", &with_baseline, "summary.stats"),
        ("`dark_by_plane[]`", &with_baseline, "summary.stats.dark_by_plane[]"),
        ("quantiles", &with_baseline, "summary.stats.dark_achieved"),
        ("`utilisation`", &with_baseline, "utilisation"),
        ("`utilisation.links[]`", &with_baseline, "utilisation.links[]"),
        ("`machine`", &with_baseline, "machine"),
        ("`machine.load`", &with_baseline, "machine.load"),
        ("`caveats[]`", &with_baseline, "caveats[]"),
        ("`caveats[]`", &jobs, "caveats[]"),
        ("`jobs[]`", &jobs, "jobs[]"),
        ("`summary` of jobs", &jobs, "summary"),
        ("`counters`", &jobs, "summary.counters"),
        ("`timeline[]`", &jobs, "timeline[]"),
        ("`explained[]`", &jobs, "explained[]"),
        ("`explained[].why`", &jobs, "explained[].why"),
        ("`decisions[]`", &jobs, "decisions[]"),
    ];
    for (heading, result, path) in tables {
        assert_eq!(
            rows(&manual, heading),
            keys(result, path),
            "docs/result-file.md, {heading}: its rows, and the keys of a result"
        );
    }
}
