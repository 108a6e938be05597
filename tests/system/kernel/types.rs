//! Flows whose lists must have given tiers, live: the counters of switches say that they cross
//! them, and the lists are those of virtual time.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use heliostat::coflows::{CoflowSpec, FlowSpec};
use heliostat::config;
use heliostat::control::record::{Record, RecordedEvent};
use heliostat::ids::{CoflowId, HostId};
use heliostat::paths::List;
use heliostat::runtime::simulate::simulate;
use heliostat::topology::graph::Graph;
use heliostat::topology::graph::Tier::{self, Access, Aggregation, Core};
use heliostat::topology::types::Types;
use heliostat::units::{BitRate, Bytes, Time};
use heliostat::workload::Workload;

use super::lists::on;
use super::steering::{Hit, by_switch, shipped};
use super::support::each_mechanism;

const BYTES: u64 = 4_000_000;

fn coflow(id: u32, types: &[Tier]) -> CoflowSpec {
    // Racks 0 and 2 share their aggregation switches; hosts 0 and 1 their rack.
    let flow = |(from, to)| FlowSpec { from: HostId(from), to: HostId(to), bytes: Bytes(BYTES) };
    let flows = [(0, 4), (5, 1), (0, 1)].map(flow).to_vec();
    CoflowSpec {
        types: Types(types.to_vec()),
        ..CoflowSpec::new(CoflowId(id), format!("c{id}"), Time::ZERO, flows)
    }
}

/// The lists that were set, in their order, and by how many pairs of hosts types were not met.
fn told(log: &[Record]) -> (Vec<List>, usize) {
    let (mut unmet, mut set) = (0, vec![]);
    for r in log {
        match &r.what {
            RecordedEvent::Paths { lists, .. } => {
                set.extend(lists.iter().filter_map(|l| l.list.clone()))
            }
            RecordedEvent::TypesUnmet { pairs, .. } => unmet += pairs,
            _ => {}
        }
    }
    (set, unmet)
}

#[test]
fn flows_with_types_cross_these_tiers() {
    each_mechanism("flows_with_types_cross_these_tiers", |mechanism| {
        let t =
            Arc::new(on(Graph::vl2(4, 4, BitRate::mbit(1000), None), 2, BitRate::mbit(1000), 0));
        let tier = |s: usize| t.eps.graph().expect("a graph").switches[s].tier;
        for paths in ["hit", "ecmp"] {
            let text =
                shipped("policies/hit.yaml").replace("paths: hit", &format!("paths: {paths}"));
            let plan = config::read_policy(&text, "hit").expect("valid");
            let mut hit = Hit::start("hst-types", &t, &plan, mechanism);
            for (id, types) in
                [(0, &[][..]), (1, &[Access, Aggregation, Core, Aggregation, Access])]
            {
                let w = Workload {
                    name: "typed".into(),
                    coflows: vec![coflow(1000 + id, types)],
                    ..Workload::default()
                };
                let before = by_switch(&hit.counters());
                hit.log();
                let r = hit.e.run(&w, &AtomicBool::new(false), |_| ());
                assert_eq!((r.summary.finished, r.summary.bytes_received), (1, Bytes(3 * BYTES)));
                let after = by_switch(&hit.counters());
                let carried = |of: Tier| {
                    (0..after.len())
                        .filter(|&s| tier(s) == of)
                        .map(|s| after[s] - before[s])
                        .sum::<u64>()
                };
                let (aggregation, core) = (carried(Aggregation), carried(Core));
                println!(
                    "{}, {paths}: types {types:?}: {aggregation} bytes by aggregation switches, {core} by cores",
                    mechanism.name()
                );
                // Two flows between racks, with headers: once over an aggregation switch, or twice
                // and over a core.
                let times = |n: u64| n * 2 * BYTES..n * 2 * BYTES + BYTES * 2 / 3;
                let log = hit.log();
                let mut model = vec![];
                simulate(&t, &plan, &w, None, &mut |r| model.push(r)).expect("accepted");
                let (set, unmet) = told(&log);
                if types.is_empty() {
                    assert!(
                        times(1).contains(&aggregation) && core < BYTES / 10,
                        "{paths}: {aggregation}, {core}"
                    );
                    assert_eq!(unmet, 0);
                } else {
                    assert!(
                        times(2).contains(&aggregation) && times(1).contains(&core),
                        "{paths}: {aggregation}, {core}"
                    );
                    // Within the rack there is no such list.
                    assert_eq!(unmet, 1);
                    assert_eq!(told(&model), (set, 1), "live and in virtual time");
                }
            }
        }
    });
}
