//! The controller over the flow-level fabric in virtual time.
//!
//! The very [`Controller`](crate::control::Controller) that runs live is driven here. [`simulate`]
//! plays a workload; a [`Simulation`] is the same run for a caller that decides while it goes on
//! which coflows come, such as a task scheduler. At one instant, in this order: flows finish and
//! circuits change, coflows arrive, probes arrive, the controller wakes. Nothing reads a clock or a
//! random number, so one input gives one event log, byte for byte.

use std::sync::Arc;

use super::record::Recorder;
use super::report::caveats::Given;
use super::report::{RunEnd, RunResult};
use super::rows::{ResultRow, RowSink};
use super::settings::RunPlan;
use crate::control::Rejected;
use crate::control::record::Record;
use crate::fabric::meter::bucket_for;
use crate::topology::Topology;
use crate::units::{BitRate, Bytes, Span, Time};
use crate::workload::Workload;

mod alone;
mod simulation;
#[cfg(test)]
mod tests;

pub use alone::simulate_alone;
pub use simulation::{Extras, Finished, Simulation};

/// Events between two reports to the watcher of a run.
const LOOK: u64 = 100;

/// Runs `workload` in virtual time until every coflow has finished, or until `until`, or until
/// nothing can move any more. Every line of the event log goes to `log`.
///
/// # Errors
/// What the controller refuses; a workload over this topology is never refused.
pub fn simulate(
    topology: &Arc<Topology>,
    plan: &RunPlan,
    workload: &Workload,
    until: Option<Time>,
    log: &mut dyn FnMut(Record),
) -> Result<RunResult, Rejected> {
    simulate_watched(
        topology,
        plan,
        workload,
        &SimOptions { until, ..SimOptions::default() },
        log,
        &mut |_| true,
    )
}

/// What else a run is asked for.
#[derive(Clone, Copy, Default)]
pub struct SimOptions<'a> {
    /// Ends the run then, even if coflows are unfinished.
    pub until: Option<Time>,
    /// What breaks, and what else the network is asked for.
    pub extras: Extras<'a>,
    /// Takes what the controller hears and wants.
    pub record: Option<&'a Recorder>,
    /// Takes every coflow's account as it ends; the result has none of them then, and sums over
    /// all.
    pub rows: Option<RowSink<'a>>,
}

/// A length of buckets for a run of `workload`. It takes at least up to the last arrival, and as
/// long as any rack needs for what it sends to other racks, or gets from them, over its uplink and
/// all planes at once. O(flows + racks).
pub fn bucket(topology: &Topology, workload: &Workload) -> Span {
    let last = workload.coflows.last().map_or(Time::ZERO, |c| c.arrival).since(Time::ZERO);
    let mut bytes = vec![(0u64, 0u64); topology.rack_count()];
    for f in workload.coflows.iter().flat_map(|c| &c.flows) {
        let (from, to) = (topology.rack_of(f.from).index(), topology.rack_of(f.to).index());
        if from != to {
            bytes[from].0 = bytes[from].0.saturating_add(f.bytes.0);
            bytes[to].1 = bytes[to].1.saturating_add(f.bytes.0);
        }
    }
    let planes = topology.planes.iter().map(|p| p.rate.0).fold(0, u64::saturating_add);
    let busiest = topology.racks.iter().zip(&bytes).map(|(rack, &(out, into))| {
        match rack.uplink.0.saturating_add(planes) {
            0 => Span::ZERO,
            rate => BitRate(rate).time_for(Bytes(out.max(into))),
        }
    });
    bucket_for(busiest.chain([last]).max().unwrap_or(Span::ZERO))
}

/// How long bytes between racks take at least, on all links at once.
pub fn least(topology: &Topology, bytes: Bytes) -> Span {
    let uplinks = topology.racks.iter().map(|r| r.uplink.0).fold(0, u64::saturating_add);
    let planes =
        topology.planes.iter().map(|p| p.rate.0.saturating_mul(topology.rack_count() as u64));
    let all = planes.fold(uplinks, u64::saturating_add);
    if all == 0 { Span::ZERO } else { BitRate(all).time_for(bytes) }
}

/// A result whose coflows that are left are written, and not kept, if rows are wanted.
pub fn told(result: RunResult, rows: Option<RowSink>) -> RunResult {
    let Some(rows) = rows else { return result };
    result.coflows.iter().for_each(|c| rows(ResultRow::Coflow(c)));
    RunResult { coflows: Vec::new(), ..result }
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Virtual time.
    pub now: Time,
    /// Instants at which something has happened.
    pub events: u64,
    /// Coflows that have arrived and not finished.
    pub open: usize,
    /// Coflows that have not arrived.
    pub coming: usize,
}

/// [`simulate`], looked at every now and then by `watch`, which says whether to go on, and once at
/// the end. If it says no the result is that of the run so far, as with `until`.
///
/// # Errors
/// What the controller refuses; a workload over this topology is never refused.
pub fn simulate_watched(
    topology: &Arc<Topology>,
    plan: &RunPlan,
    workload: &Workload,
    how: &SimOptions,
    log: &mut dyn FnMut(Record),
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<RunResult, Rejected> {
    let until = how.until.unwrap_or(Time::MAX);
    let (mut events, mut end) = (0, None);
    let mut run = Simulation::with(topology, plan, how.extras, log);
    how.record.inspect(|r| run.record(r));
    let mut coming = workload.coflows.iter().peekable();
    while coming.peek().is_some() || (run.unfinished() > 0 && !run.is_stuck()) {
        if events % LOOK == 0
            && !watch(Progress {
                now: run.now(),
                events,
                open: run.unfinished(),
                coming: coming.len(),
            })
        {
            end = Some(RunEnd::Stopped);
            break;
        }
        events += 1;
        let arrival = coming.peek().map(|c| c.arrival);
        let next =
            arrival.into_iter().chain(run.next_event()).min().unwrap_or(Time::MAX).max(run.now());
        if next > until {
            run.advance(until)?;
            end = Some(RunEnd::Until);
            break;
        }
        run.advance(next)?;
        while let Some(c) = coming.next_if(|c| c.arrival <= next) {
            run.arrive(c)?;
        }
        run.wake()?;
        run.forget_finished();
        how.rows.inspect(|rows| run.take_ended().iter().for_each(|c| rows(ResultRow::Coflow(c))));
    }
    watch(Progress { now: run.now(), events, open: run.unfinished(), coming: coming.len() });
    let rest = coming.collect::<Vec<_>>();
    let end = end.unwrap_or(if run.unfinished() > 0 { RunEnd::Stuck } else { RunEnd::Finished });
    let result = run.result(&workload.name, &rest);
    let given = Given { taken: workload.taken.clone(), faults: how.extras.faults.len() as u64 };
    Ok(told(RunResult { end, events: Some(events), ..result }.judged(&given), how.rows))
}
