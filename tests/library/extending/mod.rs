//! The examples of docs/extending.md: they compile, do what they are for, and are in the
//! documentation as they are here.

use std::sync::Arc;

use heliostat::circuits::clearing::{ClearingOptions, clear};
use heliostat::circuits::{Matching, matching::greedy};
use heliostat::config::{read_jobs, read_topology};
use heliostat::control::policy::CircuitPolicy;
use heliostat::demand::DemandMatrix;
use heliostat::ids::PlaneId;
use heliostat::placement::Kind;
use heliostat::placement::spec::{self, Common, PolicyOptions as _};
use heliostat::runtime::jobs::simulate::{JobRunOptions, SimulatedJobs, simulate_as};
use heliostat::runtime::settings::RunPlan;
use heliostat::scheduler::spec::JobPolicy;
use heliostat::topology::graph::Routes;
use heliostat::topology::{Core, Plane, StopMode};
use heliostat::units::{BitRate, Bytes, Span};

mod busiest_first;
mod ring;
mod sticky;

use busiest_first::{BusiestFirst, busiest_first};
use sticky::StickyOptions;

fn text(path: &str) -> String {
    std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn the_documentation_shows_the_examples_as_they_are() {
    let manual = text("docs/extending.md");
    let examples = [
        "tests/library/extending/busiest_first.rs",
        "tests/library/extending/sticky.rs",
        "tests/library/extending/ring.rs",
    ];
    for path in examples.into_iter().chain(["src/sim/ordered/youngest_first.rs"]) {
        assert!(
            manual.contains(&format!("```rust\n{}```", text(path))),
            "docs/extending.md shows another {path}"
        );
    }
}

#[test]
fn a_circuit_scheduler_clears_a_matrix() {
    let d = DemandMatrix::from_rows(&[&[0, 60, 50], &[70, 0, 0], &[0, 40, 0]]);
    // Rack 0 has most to send; greedy would begin with the pair 1 -> 0.
    assert_eq!(busiest_first(&d), Matching::from_pairs(3, [(0, 1), (1, 0)]));
    assert_eq!(greedy(&d).weight(&d), busiest_first(&d).weight(&d));
    for duplex in [false, true] {
        let plane = |p| Plane {
            id: PlaneId(p),
            rate: BitRate(8_000_000_000),
            delta: Span(10),
            stop: StopMode::NotAllStop,
            duplex,
        };
        let planes = [plane(0), plane(1)];
        let setting = ClearingOptions { planes: &planes, eps: BitRate::ZERO, interval: Span(50) };
        let c = clear(&mut BusiestFirst, &d, &setting).unwrap();
        let carried: u64 = c.circuits.iter().map(|x| x.1.0).sum();
        assert_eq!((carried, c.left), (220, Bytes::ZERO));
    }
}

#[test]
fn a_placement_policy_runs_jobs() {
    let options =
        |json: serde_json::Value| spec::read::<StickyOptions>(json.as_object().unwrap().clone());
    assert_eq!(options(serde_json::json!({})).unwrap(), StickyOptions::default());
    assert_eq!(options(serde_json::json!({"most": 0})).unwrap_err()[0].allowed, "1 to 1000");
    let topology = read_topology(&text("topologies/hybrid-8x2.yaml"), "t").unwrap();
    let jobs = read_jobs(&text("workloads/jobs-20.yaml"), "j").unwrap();
    // The scheduler's own settings are those of another policy here; in the table the policy has a
    // kind of its own.
    let (plan, mut jobs_by) = (RunPlan::from(CircuitPolicy::default()), JobPolicy::new(Kind::Fair));
    jobs_by.settings.reduces = StickyOptions::REDUCES;
    let run = |most| {
        let policy = options(serde_json::json!({"most": most}))
            .unwrap()
            .build(&Common::default(), Bytes::ZERO);
        let ask = SimulatedJobs {
            topology: &topology,
            plan: &plan,
            jobs_by: &jobs_by,
            jobs: &jobs,
            failures: &[],
            faults: &[],
            until: None,
        };
        simulate_as(&ask, policy, &JobRunOptions::default(), &mut |_| {}).unwrap()
    };
    let (narrow, wide) = (run(1), run(1000));
    assert_eq!(
        (narrow.placement.as_str(), narrow.summary.finished, wide.summary.finished),
        ("sticky", 20, 20)
    );
    assert_ne!(
        narrow.summary.makespan, wide.summary.makespan,
        "how many tasks of a stage a rack takes at once matters"
    );
}

#[test]
fn a_shape_joins_all_racks() {
    let ring = ring::ring(5, BitRate::mbit(1000));
    assert_eq!(Routes::new(&ring).longest().unwrap(), 2, "half-way round");
    let mut topology = read_topology(&text("topologies/hybrid-8x2.yaml"), "t").unwrap();
    topology.eps.core = Core::Graph(Box::new(ring));
    assert_eq!(Arc::new(topology).eps.graph().unwrap().cables.len(), 5);
}
