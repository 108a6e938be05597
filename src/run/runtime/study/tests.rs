use std::slice::from_ref;
use std::sync::Arc;

use super::*;
use crate::runtime::report::ResultOrigin;
use crate::runtime::settings::RunPlan;
use crate::runtime::simulate::simulate;
use crate::topology::Topology;
use crate::units::BitRate;
use crate::workload::coflow_benchmark::parse;

/// A run over uplinks of some Mb/s: twice the rate, half the time.
fn run(uplink: u64, trace: &str, seed: u64) -> AnyResult {
    let t =
        Arc::new(Topology::uniform("t", 3, 1, BitRate::mbit(1000), BitRate::mbit(uplink), vec![]));
    let w = parse(trace).unwrap().to_workload("w", &t, &Default::default()).unwrap();
    let r = simulate(&t, &RunPlan::default(), &w, None, &mut |_| ()).unwrap();
    AnyResult::Coflows(Box::new(RunResult {
        origin: ResultOrigin { seed: Some(seed), ..r.origin.clone() },
        ..r
    }))
}

fn group(label: &str, runs: &[AnyResult]) -> PolicyRuns {
    PolicyRuns { label: label.into(), runs: runs.iter().map(RunAccount::from).collect() }
}

/// One short coflow of 2 MB, and one long one of some MB a while later.
fn trace(mb: u64) -> String {
    format!("3 2\n1 0 1 0 1 1:2.0\n2 9000 1 2 1 1:{mb}.0\n")
}

#[test]
fn differences_are_taken_within_pairs_of_the_same_workload() {
    let runs = |uplink| [10, 40, 90].map(|mb| run(uplink, &trace(mb), mb));
    let study = Study::new(&[group("slow", &runs(100)), group("fast", &runs(200))]);
    let [slow, fast] = &study.policies[..] else { panic!("two policies") };
    assert_eq!((slow.pairs, fast.pairs, slow.normalised.len()), (3, 3, 0));
    let average = |p: &Policy| p.figures.iter().find(|f| f.name == "average CCT").unwrap().clone();
    assert!(average(slow).against_first.is_none());
    let against = average(fast).against_first.unwrap();
    // The runs differ by a factor of nine, yet each pair by a half: the interval is nothing.
    let percent = against.paired.percent.unwrap();
    assert!(
        (percent.mean + 50.0).abs() < 0.01 && percent.half.unwrap() < 0.01 && !against.unclear,
        "{percent:?}"
    );
    assert!(average(fast).estimate.half.unwrap() > average(fast).estimate.mean);
    let classes: Vec<(&str, usize)> = fast.normalised.iter().map(|n| (n.class, n.count)).collect();
    assert_eq!(classes, [("all", 6), ("short narrow", 3), ("long narrow", 3)]);
    assert!(
        fast.normalised
            .iter()
            .all(|n| (n.average.mean - 0.5).abs() < 1e-4 && (n.p95.mean - 0.5).abs() < 1e-4)
    );
}

#[test]
fn runs_find_their_partner_by_workload_and_seed_in_any_order() {
    let (a, b) = (run(100, &trace(10), 1), run(100, &trace(40), 2));
    let study =
        Study::new(&[group("x", &[a.clone(), b.clone()]), group("y", &[b.clone(), a.clone()])]);
    assert!(
        study.policies[1]
            .figures
            .iter()
            .all(|f| f.against_first.unwrap().paired.difference.mean == 0.0)
    );
    // The same coflows with another seed are another run, unless one of the sides has no seeds:
    // then their order counts.
    let other = run(100, &trace(10), 7);
    assert_eq!(
        Study::new(&[group("x", from_ref(&a)), group("y", from_ref(&other))]).policies[1].pairs,
        0
    );
    let AnyResult::Coflows(mut live) = other else { panic!("coflows") };
    live.origin.seed = None;
    assert_eq!(
        Study::new(&[group("x", &[a]), group("y", &[AnyResult::Coflows(live)])]).policies[1].pairs,
        1
    );
    assert_eq!(
        Study::new(&[group("x", &[b]), group("y", &[run(100, &trace(10), 2)])]).policies[1].pairs,
        0
    );
}
