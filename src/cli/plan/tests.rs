use clap::Parser;

use super::inputs::rack_list;
use crate::cli::Cli;
use crate::ids::RackId;

fn root(file: &str) -> String {
    crate::testing::repository(file).display().to_string()
}

/// Runs a planner on the example files; the chart that it drew.
fn plan(args: &[&str]) -> Result<String, String> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("plan.svg");
    let mut all = vec!["heliostat", "plan", args[0]];
    let (jobs, topology) = (root("workloads/jobs-8.yaml"), root("topologies/hybrid-8x2.yaml"));
    let svg = file.display().to_string();
    all.extend([jobs.as_str(), "--topology", &topology, "--elephant", "11.25MB"]);
    if args[0] != "latency" {
        all.extend(["--svg", &svg]);
    }
    all.extend(&args[1..]);
    let parsed = Cli::try_parse_from(&all).map_err(|e| e.to_string())?;
    parsed.command.run().map_err(|e| e.to_string())?;
    Ok(std::fs::read_to_string(&file).unwrap_or_default())
}

#[test]
fn every_planner_runs_on_the_example_files_in_every_form() {
    for planner in ["corral", "jobpacker", "co-scheduler", "latency"] {
        for output in ["table", "json", "csv"] {
            let svg = plan(&[planner, "-o", output]).unwrap_or_else(|e| panic!("{planner}: {e}"));
            assert_eq!(
                planner != "latency",
                svg.starts_with("<svg") && svg.contains("sort-1"),
                "{planner}"
            );
        }
    }
    plan(&["corral", "--scenario", "online", "--imbalance", "0"]).unwrap();
    plan(&[
        "jobpacker",
        "--scenario",
        "online",
        "--shuffle-model",
        "figure",
        "--over-provisioning",
        "100",
    ])
    .unwrap();
    plan(&["latency", "--job", "sort-1", "--shuffle-model", "printed"]).unwrap();
}

#[test]
fn wrong_names_are_refused_with_what_is_allowed() {
    let e = plan(&["latency", "--job", "nobody"]).unwrap_err();
    assert!(e.contains("nobody") && e.contains("sort-1"), "{e}");
    let e = plan(&["corral", "--scenario", "never"]).unwrap_err();
    assert!(e.contains("batch") && e.contains("online"), "{e}");
    assert!(plan(&["jobpacker", "--sub-batches", "0"]).is_err());
}

#[test]
fn racks_are_listed_in_runs() {
    let racks: Vec<RackId> = [0, 1, 2, 5, 7, 8].map(RackId).to_vec();
    assert_eq!((rack_list(&racks), rack_list(&[])), ("r0-r2 r5 r7-r8".into(), String::new()));
}
