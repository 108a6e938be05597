//! The controller over the flow-level fabric in virtual time.
//!
//! The very [`Controller`] that runs live is driven here: the loop goes to the earliest of its timeout, the fabric's next
//! event, the next arrival and the next probe, and carries out every action at once. At one instant, in this order: flows
//! finish and circuits change, coflows arrive, probes arrive, the controller wakes. Nothing reads a clock or a random number,
//! so one input gives one event log, byte for byte.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::report::{RunResult, Summary};
use crate::coflows::{CoflowRecord, CoflowSpec, RackBytes, bounds, elephants};
use crate::control::policy::{Admit, Policy};
use crate::control::record::{Record, Snapshot};
use crate::control::{Action, Controller, Event, ProgressBy, Rejected};
use crate::fabric::sim::{FlowFinished, SimFabric};
use crate::fabric::{Fabric, ProbeReport};
use crate::ids::CoflowId;
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};
use crate::workload::Workload;

/// A run in which no flow moves for so many intervals, and no coflow is still to come, will never end.
const PATIENCE: u64 = 1000;

/// Runs `workload` in virtual time until every coflow has finished, or until `until`, or until nothing can move any more.
/// Every line of the event log goes to `log`.
///
/// # Errors
/// What the controller refuses; a workload over this topology is never refused.
pub fn simulate(
    topology: &Arc<Topology>,
    policy: &Policy,
    workload: &Workload,
    until: Option<Time>,
    log: &mut dyn FnMut(Record),
) -> Result<RunResult, Rejected> {
    let fabric = SimFabric::new(topology.clone(), policy.elephants.admit == Admit::All);
    // Workloads begin between two decisions, here as in an emulation: half an interval before the first.
    let first = Time(policy.interval.0 / 2);
    let controller = Controller::new(topology.clone(), policy.clone(), first, fabric.notice());
    let mut run = Run {
        topology: topology.clone(),
        threshold: policy.elephants.threshold,
        coflows: &workload.coflows,
        arrived: 0,
        left: workload.coflows.iter().map(|c| c.flows.len()).collect(),
        finished: vec![None; workload.coflows.len()],
        probes: BTreeMap::new(),
        probes_sent: 0,
        fabric,
        controller,
        log,
    };
    let end = run.play(until.unwrap_or(Time::MAX), policy.interval * PATIENCE)?;
    Ok(run.result(policy, workload, end))
}

struct Run<'a> {
    topology: Arc<Topology>,
    threshold: Bytes,
    coflows: &'a [CoflowSpec],
    /// How many have arrived.
    arrived: usize,
    /// By coflow: flows that have not finished.
    left: Vec<usize>,
    finished: Vec<Option<Time>>,
    /// By arrival and order: what to report if the circuit has light then.
    probes: BTreeMap<(Time, u64), ProbeReport>,
    probes_sent: u64,
    fabric: SimFabric,
    controller: Controller,
    log: &'a mut dyn FnMut(Record),
}

impl Run<'_> {
    /// Returns when the run ended.
    fn play(&mut self, until: Time, patience: Span) -> Result<Time, Rejected> {
        let mut now = Time::ZERO;
        let mut moved = now;
        while self.finished.iter().any(Option::is_none) {
            let next = self.next(now);
            if next > until {
                let done = self.fabric.advance(until);
                self.finish(&done)?;
                return Ok(until);
            }
            now = next;
            let done = self.fabric.advance(now);
            self.finish(&done)?;
            self.arrive(now)?;
            self.probe(now)?;
            if self.controller.poll_timeout().is_some_and(|t| t <= now) {
                self.controller.handle(Event::Tick, now)?;
            }
            self.act(now)?;
            if self.fabric.is_moving() || self.arrived < self.coflows.len() {
                moved = now;
            } else if now.since(moved) > patience {
                break;
            }
        }
        Ok(now)
    }

    fn next(&self, now: Time) -> Time {
        let arrival = self.coflows.get(self.arrived).map(|c| c.arrival);
        let probe = self.probes.keys().next().map(|k| k.0);
        let all = [arrival, probe, self.fabric.next_event(), self.controller.poll_timeout()];
        all.into_iter().flatten().min().unwrap_or(Time::MAX).max(now)
    }

    fn arrive(&mut self, now: Time) -> Result<(), Rejected> {
        let coflows = self.coflows;
        while let Some(c) = coflows.get(self.arrived).filter(|c| c.arrival <= now) {
            self.arrived += 1;
            let pairs = c.matrix(&self.topology).entries().map(|(from, to, b)| RackBytes { from, to, bytes: Bytes(b) }).collect();
            let bound = bounds::hybrid(c, &self.topology);
            let (id, name, progress) = (c.id, c.name.clone(), ProgressBy::Sender);
            self.controller.handle(Event::CoflowArrived { id, name, pairs, bound, progress, weight: 1 }, now)?;
            self.fabric.add_flows(c, &elephants::marks(c, &self.topology, self.threshold), now);
            if c.flows.is_empty() {
                self.over(c.id, now)?;
            }
            let done = self.fabric.advance(now);
            self.finish(&done)?;
        }
        Ok(())
    }

    fn finish(&mut self, done: &[FlowFinished]) -> Result<(), Rejected> {
        for d in done {
            let left = &mut self.left[d.coflow.index()];
            *left -= 1;
            if *left == 0 {
                self.over(d.coflow, d.at)?;
            }
        }
        Ok(())
    }

    fn over(&mut self, id: CoflowId, at: Time) -> Result<(), Rejected> {
        self.finished[id.index()] = Some(at);
        self.controller.handle(Event::CoflowFinished { id, at }, at)
    }

    fn probe(&mut self, now: Time) -> Result<(), Rejected> {
        while let Some(entry) = self.probes.first_entry().filter(|e| e.key().0 <= now) {
            let mut report = entry.remove();
            if !self.fabric.is_up(report.plane, report.input, report.output) {
                (report.arrived, report.dark) = (None, None);
            }
            self.controller.handle(Event::Probed { report }, now)?;
        }
        Ok(())
    }

    /// Carries out what the controller wants, until it wants nothing more.
    fn act(&mut self, now: Time) -> Result<(), Rejected> {
        while let Some(action) = self.controller.poll_action() {
            match action {
                Action::Observe => {
                    for (id, received) in self.fabric.progress() {
                        self.controller.handle(Event::CoflowProgress { id, received }, now)?;
                    }
                    let result = self.fabric.observe(now);
                    self.controller.handle(Event::Observed { result }, now)?;
                }
                Action::Apply { ops } => {
                    let results = self.fabric.apply(&ops, now);
                    let free = Event::CycleCost { poll: Span::ZERO, decide: Span::ZERO, apply: Span::ZERO };
                    self.controller.handle(free, now)?;
                    self.controller.handle(Event::Applied { results }, now)?;
                }
                Action::Probe { plane, input, output, dark_from, at } => {
                    let (arrived, dark) = (Some((output, at)), Some(at.since(dark_from)));
                    self.probes_sent += 1;
                    self.probes.insert((at.max(now), self.probes_sent), ProbeReport { plane, input, output, at, arrived, dark });
                }
                Action::Log { record } => (self.log)(record),
            }
        }
        Ok(())
    }

    fn result(mut self, policy: &Policy, workload: &Workload, end: Time) -> RunResult {
        let delivered = self.fabric.delivered();
        let coflows: Vec<_> = self
            .coflows
            .iter()
            .map(|c| {
                let over_ocs = delivered.get(&c.id).map_or(Bytes::ZERO, |d| d.over_ocs);
                let share = over_ocs.0 as f64 / c.matrix(&self.topology).total().max(1) as f64;
                CoflowRecord::new(c, &self.topology, self.finished[c.id.index()], share)
            })
            .collect();
        let received = delivered.values().map(|d| d.bytes).sum();
        let last = self.last_snapshot(end);
        RunResult {
            version: env!("CARGO_PKG_VERSION").into(),
            mechanism: self.fabric.mechanism().into(),
            topology: self.topology.name.clone(),
            policy: policy.name.clone(),
            workload: workload.name.clone(),
            congestion: "-".into(),
            forced: false,
            summary: Summary::new(&coflows, &last, received),
            coflows,
        }
    }

    /// The controller's snapshot with the fabric's counters of this very instant, not of the last cycle.
    fn last_snapshot(&mut self, end: Time) -> Snapshot {
        let mut last = self.controller.snapshot(end, self.fabric.mechanism());
        let seen = self.fabric.observe(end).expect("the model can always be observed");
        for (port, counters) in last.ports.iter_mut().zip(seen.ports.into_iter().flatten()) {
            port.counters = counters;
        }
        Snapshot { sent: seen.sent, over_ocs: seen.over_ocs, backlog: seen.backlog, ..last }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coflows::FlowSpec;
    use crate::control::policy::SchedulerKind;
    use crate::control::record::What;
    use crate::ids::{HostId, PlaneId};
    use crate::topology::{Plane, StopMode};
    use crate::units::BitRate;
    use crate::workload::synth::{Synth, synth};

    fn network(racks: usize, hosts: usize, uplink: u64) -> Arc<Topology> {
        let plane = Plane { id: PlaneId(0), rate: BitRate::mbit(1000), delta: Span::millis(10), stop: StopMode::NotAllStop, duplex: false };
        Arc::new(Topology::uniform("t", racks, hosts, BitRate::mbit(1000), BitRate::mbit(uplink), vec![plane]))
    }

    fn policy(scheduler: SchedulerKind) -> Policy {
        Policy { scheduler, ..Policy::default() }
    }

    fn workload(t: &Topology, seed: u64) -> Workload {
        let ask = Synth { racks: t.rack_count(), hosts: 2, coflows: 12, seed, mean_gap: Span::millis(300) };
        let w = synth(&ask).to_workload("w", t, &Default::default()).unwrap();
        w.adjusted(&crate::workload::Adjust { scale: 10, ..Default::default() })
    }

    fn run(t: &Arc<Topology>, p: &Policy, w: &Workload, until: Option<Time>) -> (RunResult, String) {
        let mut log = String::new();
        let result = simulate(t, p, w, until, &mut |r| log.push_str(&(serde_json::to_string(&r).unwrap() + "\n"))).unwrap();
        (result, log)
    }

    #[test]
    fn the_same_input_gives_the_same_log_byte_for_byte() {
        let t = network(4, 2, 100);
        for scheduler in [SchedulerKind::RoundRobin, SchedulerKind::Bipartite, SchedulerKind::Edmonds, SchedulerKind::EpsOnly] {
            let (p, w) = (policy(scheduler), workload(&t, 5));
            let (a, b) = (run(&t, &p, &w, None), run(&t, &p, &w, None));
            assert_eq!(a, b);
            assert_eq!((a.0.summary.unfinished, a.0.summary.bytes_received), (0, w.bytes()));
            assert!(a.0.coflows.iter().all(|c| c.cct.unwrap() >= c.bound));
            assert_eq!((a.0.summary.late_packets, a.0.summary.stats.probes_lost, a.0.summary.stats.probes_wrong), (0, 0, 0));
        }
    }

    #[test]
    fn without_a_way_the_run_ends_and_says_what_is_unfinished() {
        let t = network(4, 2, 0);
        let r = run(&t, &policy(SchedulerKind::EpsOnly), &workload(&t, 1), None).0;
        assert!(r.summary.unfinished > 0 && r.coflows.iter().any(|c| c.cct.is_none()));
        assert_eq!(r.summary.ocs_share, 0.0);
    }

    #[test]
    fn until_cuts_the_run_short() {
        let t = network(4, 2, 100);
        let r = run(&t, &policy(SchedulerKind::EpsOnly), &workload(&t, 2), Some(Time(500_000_000))).0;
        assert_eq!(r.summary.ended, Time(500_000_000));
        assert!(r.summary.unfinished > 0 && r.summary.bytes_received < r.summary.bytes_asked);
    }

    #[test]
    fn an_empty_workload_and_a_local_coflow_take_no_time() {
        let t = network(2, 2, 100);
        assert_eq!(run(&t, &Policy::default(), &Workload::default(), None).0.summary.makespan, Span::ZERO);
        let flows = vec![FlowSpec { from: HostId(0), to: HostId(0), bytes: Bytes(9) }];
        let w = Workload::new("x", vec![CoflowSpec { id: CoflowId(0), name: "local".into(), arrival: Time(3), flows }]);
        let r = run(&t, &Policy::default(), &w, None).0;
        assert_eq!((r.coflows[0].cct, r.coflows[0].ocs_share), (Some(Span::ZERO), 0.0));
    }

    #[test]
    fn circuits_help_when_the_scheduler_sets_them() {
        let t = network(4, 2, 100);
        let w = workload(&t, 3);
        let (with, log) = run(&t, &policy(SchedulerKind::Bipartite), &w, None);
        let without = run(&t, &policy(SchedulerKind::EpsOnly), &w, None).0;
        assert!(with.summary.average_cct < without.summary.average_cct && log.contains("circuit-set"));
        assert!(with.summary.ocs_share > 0.5 && without.summary.ocs_share == 0.0);
        let cycles = log.lines().filter(|l| matches!(serde_json::from_str::<Record>(l).unwrap().what, What::Cycle { .. })).count();
        assert_eq!(cycles as u64, with.summary.stats.cycles);
    }
}
