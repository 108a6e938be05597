//! Every coflow by itself: what its completion time would be if it were the only one.

use std::sync::Arc;

use super::{Progress, simulate};
use crate::coflows::CoflowSpec;
use crate::control::Rejected;
use crate::runtime::report::caveats::Given;
use crate::runtime::report::{FabricCounts, RunEnd, RunResult, Summary};
use crate::runtime::settings::RunPlan;
use crate::topology::Topology;
use crate::units::{Bytes, Time};
use crate::workload::Workload;

/// Runs each coflow of `workload` on a network of its own, at rest when it comes. In the result
/// each begins at its arrival and finishes its completion time later; bytes are sums over all runs,
/// and of the control loops only the circuits are counted. `watch` is asked before every coflow, as
/// in [`super::simulate_watched`].
///
/// # Errors
/// What the controller refuses; a workload over this topology is never refused.
pub fn simulate_alone(
    topology: &Arc<Topology>,
    plan: &RunPlan,
    workload: &Workload,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<RunResult, Rejected> {
    let mut all =
        simulate(topology, plan, &Workload::new(&workload.name, vec![]), None, &mut |_| {})?;
    let (mut received, mut counted, mut over_ocs, mut events) =
        (Bytes::ZERO, FabricCounts::default(), 0.0, 0);
    let mut cycles = 0;
    for (k, c) in workload.coflows.iter().enumerate() {
        if !watch(Progress {
            now: c.arrival,
            events,
            open: 1,
            coming: workload.coflows.len() - k - 1,
        }) {
            all.end = RunEnd::Stopped;
            break;
        }
        let first =
            Workload::new(&workload.name, vec![CoflowSpec { arrival: Time::ZERO, ..c.clone() }]);
        let one = simulate(topology, plan, &first, None, &mut |_| {})?;
        let at = |t: Time| c.arrival + t.since(Time::ZERO);
        all.coflows.extend(one.coflows.into_iter().map(|r| crate::coflows::CoflowRecord {
            arrival: c.arrival,
            finished: r.finished.map(at),
            ..r
        }));
        events += one.events.unwrap_or(0);
        received = received.saturating_add(one.summary.bytes_received);
        counted.sent = counted.sent.saturating_add(one.summary.bytes_on_wire);
        over_ocs += one.summary.ocs_share * one.summary.bytes_on_wire.0 as f64;
        let (all, own) = (&mut counted.stats, one.summary.stats);
        all.circuits_set += own.circuits_set;
        all.fallbacks += own.fallbacks;
        all.first_fallback = all.first_fallback.take().or(own.first_fallback);
        cycles += own.cycles;
    }
    if counted.stats.fallbacks > 0 {
        counted.stats.cycles = cycles;
    }
    all.events = Some(events);
    all.coflows.sort_by_key(|c| c.id);
    counted.over_ocs = Bytes(over_ocs.round() as u64);
    counted.ended = all.coflows.iter().filter_map(|c| c.finished).max().unwrap_or(Time::ZERO);
    all.summary = Summary::new(&all.coflows, counted, received);
    Ok(all.judged(&Given { taken: workload.taken.clone(), faults: 0 }))
}
