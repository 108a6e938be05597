//! The coflows of a simulated schedule, sent live at the same times with the same priorities: then
//! nothing differs but the network.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::tries::Timing;

const TOPOLOGY: &str = "topologies/hybrid-8x2.yaml";

/// Ports that serve by priority, and nothing else; written beside the coflows.
const POLICY: &str = "{name: ports, interval: 100ms, demand: declared, scheduler: eps-only, network: priority, within: max-min, probes: false}";

fn heliostat(args: &[&str]) {
    let mut c = Command::new(env!("CARGO_BIN_EXE_heliostat"));
    let out =
        c.current_dir(env!("CARGO_MANIFEST_DIR")).args(args).output().expect("the program starts");
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
}

/// The coflows that the scheduler of a recorded run began, as a workload of hosts that have two to
/// a rack.
fn began(record: &str) -> Value {
    let host = |h: &Value| h.as_u64().map(|h| format!("h{}-{}", h / 2, h % 2)).expect("a host");
    let coflow = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("a line of JSON");
        let c = line.pointer("/job_act/action/StartCoflow/coflow")?;
        let flow = |(k, f): (usize, &Value)| {
            let mut flow =
                json!({"from": host(&f["from"]), "to": host(&f["to"]), "bytes": f["bytes"]});
            if let Some(p) = c["priorities"]["flows"].get(k).filter(|p| p.is_number()) {
                flow["priority"] = p.clone();
            }
            flow
        };
        let flows: Vec<Value> = c["flows"].as_array()?.iter().enumerate().map(flow).collect();
        let us = c["arrival"].as_u64().expect("a time") / 1_000;
        Some(
            json!({"name": format!("{}-{}", c["name"].as_str()?.replace('/', "-"), c["id"]), "arrival": format!("{us}us"), "flows": flows}),
        )
    };
    json!({"name": "began", "coflows": record.lines().filter_map(coflow).collect::<Vec<_>>()})
}

fn average_cct(result: &Path) -> f64 {
    let result: Value =
        serde_json::from_slice(&std::fs::read(result).expect("the result was written"))
            .expect("JSON");
    let s = &result["summary"];
    assert_eq!((&s["unfinished"], &s["received_bytes"]), (&json!(0), &s["asked_bytes"]), "{s}");
    s["average_cct_ns"].as_u64().expect("a time") as f64 / 1e9
}

/// Each has the machine alone.
mod alone {
    use super::*;
    use crate::kernel::support::each_mechanism_alone;

    /// Many flows of one priority share a port, and others wait behind them.
    #[test]
    fn coflows_of_strict_priorities_take_as_long_live_as_in_virtual_time() {
        each_mechanism_alone(
            "coflows_of_strict_priorities_take_as_long_live_as_in_virtual_time",
            |mechanism| -> Timing {
                let scratch = tempfile::tempdir().expect("a directory");
                let [record, policy, coflows, live, simulated] =
                    ["jobs.jsonl", "ports.yaml", "coflows.yaml", "live.json", "simulated.json"]
                        .map(|f| scratch.path().join(f));
                let text = |p: &Path| p.to_string_lossy().into_owned();
                let jobs = [
                    "--policy",
                    "policies/pushbox.yaml",
                    "--jobs",
                    "workloads/jobs-20.yaml",
                    "--record",
                    &text(&record),
                ];
                heliostat(&[&["simulate", TOPOLOGY][..], &jobs].concat());
                let workload = began(&std::fs::read_to_string(&record).expect("a record"));
                assert!(workload["coflows"].as_array().is_some_and(|c| c.len() > 40), "{workload}");
                std::fs::write(&coflows, workload.to_string()).expect("a file");
                std::fs::write(&policy, POLICY).expect("a file");
                let what = ["--policy", &text(&policy), "--workload", &text(&coflows)];
                let ways = [
                    "--mechanism",
                    mechanism.name(),
                    "--name",
                    "hst-began",
                    "--listen",
                    "127.0.0.1:0",
                    "--json",
                    &text(&live),
                ];
                heliostat(&[&["run", TOPOLOGY][..], &what, &ways].concat());
                heliostat(
                    &[&["simulate", TOPOLOGY][..], &what, &["--json", &text(&simulated)]].concat(),
                );
                let (a, b) = (average_cct(&live), average_cct(&simulated));
                println!(
                    "{}: average CCT {a:.2} s live, {b:.2} s simulated, {:+.1} %",
                    mechanism.name(),
                    (a / b - 1.0) * 100.0
                );
                in_time!(
                    (a / b - 1.0).abs() <= 0.1,
                    "coflows take {a:.2} s live, {b:.2} s simulated"
                );
                Ok(())
            },
        );
    }
}
