//! What others read: the description by a validator of theirs, and the metrics that the shipped
//! dashboard names.

use std::process::Command;

use serde_json::Value;

use super::*;

#[test]
fn a_validator_accepts_the_description() {
    // Another Python than that of the path, such as one of a virtual environment, may have the
    // validator.
    let python = std::env::var("HELIOSTAT_PYTHON").unwrap_or_else(|_| "python3".into());
    let has = Command::new(&python)
        .args(["-c", "import openapi_spec_validator"])
        .output()
        .is_ok_and(|o| o.status.success());
    if !has {
        return println!(
            "SKIP a_validator_accepts_the_description: {python} has no openapi-spec-validator; HELIOSTAT_PYTHON names one"
        );
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("openapi.json");
    std::fs::write(&file, rig().get("/openapi.json").text).unwrap();
    let o =
        Command::new(&python).args(["-m", "openapi_spec_validator"]).arg(&file).output().unwrap();
    assert!(
        o.status.success(),
        "{}{}",
        String::from_utf8_lossy(&o.stdout),
        String::from_utf8_lossy(&o.stderr)
    );
}

/// The names of metrics in a text: words that begin as all of ours do.
fn metrics(text: &str) -> std::collections::BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|w| w.starts_with("heliostat_")).collect()
}

/// Checks that queries ask for nothing that `/metrics` does not have; gives how many metrics they
/// name.
fn are_exported<'a>(queries: impl Iterator<Item = &'a str>) -> usize {
    let exported = rig().get("/metrics").text;
    let samples: String =
        exported.lines().filter(|l| !l.starts_with('#')).map(|l| format!("{l}\n")).collect();
    let named: Vec<&str> = queries.flat_map(metrics).collect();
    for metric in &named {
        assert!(metrics(&samples).contains(metric), "{metric} is not in /metrics");
    }
    named.len()
}

fn file(path: &str) -> String {
    crate::testing::shipped(path)
}

#[test]
fn every_metric_of_the_dashboard_is_exported() {
    let dashboard: Value = serde_json::from_str(&file("docs/grafana.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let queries = panels
        .iter()
        .flat_map(|p| p["targets"].as_array().unwrap())
        .map(|t| t["expr"].as_str().unwrap());
    assert!(are_exported(queries) >= panels.len(), "each panel shows something");
}

#[test]
fn every_metric_of_the_alerts_is_exported() {
    let alerts: Value = serde_yaml::from_str(&file("docs/alerts.yml")).unwrap();
    let rules: Vec<&Value> = alerts["groups"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|g| g["rules"].as_array().unwrap())
        .collect();
    for rule in &rules {
        let text = |v: &Value| v.as_str().is_some_and(|t| !t.is_empty());
        assert!(
            text(&rule["alert"])
                && text(&rule["labels"]["severity"])
                && text(&rule["annotations"]["summary"]),
            "{rule}"
        );
    }
    // One asks only whether a daemon answers.
    assert!(are_exported(rules.iter().map(|r| r["expr"].as_str().unwrap())) + 1 >= rules.len());
}

#[test]
fn every_metric_has_its_row_in_the_manual() {
    let (exported, manual) = (rig().get("/metrics").text, file("docs/metrics.md"));
    let said = |what: &str, name: &str| {
        let sign = format!("# {what} {name} ");
        let line = exported.lines().find_map(|l| l.strip_prefix(&sign));
        line.unwrap_or_else(|| panic!("{name} has no {what}")).to_owned()
    };
    let families = || exported.lines().filter_map(|l| l.strip_prefix("# TYPE ")?.split(' ').next());
    for name in families() {
        let (kind, help) = (said("TYPE", name), said("HELP", name));
        // Queries name the samples.
        let end = if kind == "counter" && !name.ends_with("_total") { "_total" } else { "" };
        let (first, last) = (format!("| `{name}{end}` | {kind} | "), format!(" | {help} |"));
        let has = manual.lines().any(|l| l.starts_with(&first) && l.ends_with(&last));
        assert!(has, "docs/metrics.md lacks a row: {first}unit | labels{last}");
    }
    // The rig has no packet switches.
    let of_switches = |name: &str| name.starts_with("heliostat_switch_port_");
    let rows = manual.lines().filter_map(|l| l.strip_prefix("| `heliostat_")?.split('`').next());
    let rows = rows.filter(|r| !of_switches(&format!("heliostat_{r}"))).count();
    assert_eq!(
        rows,
        families().filter(|name| !of_switches(name)).count(),
        "rows that are no metric"
    );
}
