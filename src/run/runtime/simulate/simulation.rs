//! A run in virtual time, step by step.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::circuits::SetBy;
use crate::circuits::external::{Advice, NoAnswer, Question};
use crate::coflows::network::NetworkKind;
use crate::coflows::priority::PriorityChange;
use crate::coflows::{CoflowRecord, CoflowSpec, RackBytes, bounds, elephants};
use crate::control::record::Record;
use crate::control::{Controller, Event, Rejected, Skip};
use crate::fabric::{Fabric, PROBE_PATIENCE, ProbeReport, ProbeRequest};
use crate::ids::{CoflowId, FlowId, JobId};
use crate::placement::advisor::{self, PlacementRequest, Proposal};
use crate::runtime::drive::{Driver, DriverHost};
use crate::runtime::external::{self, ExternalProgram};
use crate::runtime::record::Recorder;
use crate::runtime::report::{FabricCounts, ResultNames, RunResult, Tally};
use crate::runtime::settings::{ProgramSpec, RunPlan};
use crate::sim::faults::{BrokenPart, Fault, Which};
use crate::sim::{FlowFinished, SimFabric, SimSettings};
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};

#[cfg(test)]
mod resting;

/// Intervals without a flow that moves after which a run is taken to be stuck.
const PATIENCE: u64 = 1000;

/// What has finished since the last look, in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finished {
    /// Flows.
    pub flows: Vec<FlowFinished>,
    /// Coflows that the network knows as wholes: all of their flows that were not told.
    pub wholes: Vec<CoflowId>,
    /// Coflows, each with the instant of its last byte.
    pub coflows: Vec<(CoflowId, Time)>,
}

/// A coflow of the run.
struct Known {
    record: CoflowRecord,
    /// Flows that have not finished.
    left: usize,
    /// When the last of those that have did.
    last: Time,
}

/// What else a network in virtual time is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extras<'a> {
    /// What breaks, and when.
    pub faults: &'a [Fault],
    /// What links carry is kept, at first in buckets of this length.
    pub bucket: Option<Span>,
    /// What ends of flows leave is shared again at multiples of this only
    /// ([`SimSettings::resolution`]); zero: at once.
    pub resolution: Span,
    /// Whether proposals will be asked for ([`Simulation::propose`]).
    pub proposals: bool,
}

/// What becomes of a probe at its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probe {
    Arrives,
    IsGivenUp,
}

/// The controller and the fabric of one run. A caller goes from instant to instant:
///
/// ```text
/// loop {
///     t = the earlier of next_event() and what the caller waits for
///     advance(t)             everything before t happens, and at t flows finish and circuits change
///     take_finished()        the caller decides
///     arrive(coflow) ...     new coflows begin at t
///     wake()                 probes arrive and the controller acts at t
/// }
/// result(name, [])
/// ```
pub struct Simulation<'a> {
    topology: Arc<Topology>,
    plan: RunPlan,
    /// Whether the policy decides about circuits.
    circuits: bool,
    /// When a flow last moved.
    moved: Time,
    /// Coflows that have not ended.
    coflows: BTreeMap<CoflowId, Known>,
    /// The accounts of those that have, and sums over all that ever did.
    ended: Vec<CoflowRecord>,
    sums: Tally,
    /// Bytes that these received.
    received: Bytes,
    finished: Finished,
    /// What breaks, and what is mended, by time.
    faults: VecDeque<(Time, bool, Fault)>,
    driver: Driver<SimFabric, SimHost<'a>>,
}

/// What the driver needs of a run in virtual time.
struct SimHost<'a> {
    now: Time,
    /// By time, then as they were sent: probes that arrive then if the circuit has light, or are
    /// given up.
    probes: VecDeque<(Time, ProbeReport, Probe)>,
    /// Decides about circuits under the scheduler `external`, from the first question on.
    program: Option<ExternalProgram>,
    command: Option<ProgramSpec>,
    log: &'a mut dyn FnMut(Record),
}

impl DriverHost<SimFabric> for SimHost<'_> {
    fn now(&self) -> Time {
        self.now
    }

    /// Progress only of coflows that the decision may read: the others are not looked at before
    /// they end.
    fn feed(&mut self, fabric: &mut SimFabric, controller: &Controller) -> Vec<Event> {
        let progress = fabric.progress(|id| controller.follows(id)).into_iter();
        progress.map(|(id, received)| Event::CoflowProgress { id, received }).collect()
    }

    /// Time stands still while the program thinks: a run gives the same results on a slow machine.
    fn consult(&mut self, question: &Question) -> Result<Result<Advice, NoAnswer>, Rejected> {
        if let (None, Some(command)) = (&self.program, &self.command) {
            self.program = Some(
                ExternalProgram::start(command, external::PATIENCE).map_err(Rejected::Invalid)?,
            );
        }
        Ok(self
            .program
            .as_mut()
            .map_or_else(|| Err(NoAnswer::Broken(external::MISSING.into())), |p| p.ask(question)))
    }

    /// Takes the priorities of single flows; a simulation has no others.
    fn prioritise(&mut self, fabric: &mut SimFabric, coflow: CoflowId, change: &PriorityChange) {
        fabric.prioritise(coflow, &change.flows, self.now);
    }

    fn probe(&mut self, probe: ProbeRequest) {
        let ProbeRequest { plane, input, output, dark_from, at } = probe;
        let (arrived, dark) = (Some((output, at)), Some(at.since(dark_from)));
        let report = ProbeReport { plane, input, output, at, arrived, dark };
        self.wait_for(at.max(self.now), report, Probe::Arrives);
    }

    fn log(&mut self, record: Record) {
        (self.log)(record);
    }

    fn refused(&mut self, why: Rejected) -> Result<(), Rejected> {
        Err(why)
    }
}

impl SimHost<'_> {
    /// A probe arrives, or is given up, at `at`. O(log P) for P probes under way: mostly the last
    /// one arrives last.
    fn wait_for(&mut self, at: Time, report: ProbeReport, what: Probe) {
        let place = self.probes.partition_point(|p| p.0 <= at);
        self.probes.insert(place, (at, report, what));
    }
}

/// No coflow finishes sooner in the model: Sunflow's has flows within a rack that do not share
/// their hosts' interfaces.
fn bound(coflow: &CoflowSpec, topology: &Topology, kind: NetworkKind) -> Span {
    if kind == NetworkKind::Sunflow {
        bounds::locals_apart(coflow, topology)
    } else {
        bounds::hybrid(coflow, topology)
    }
}

/// The account of a coflow of which so much went over circuits.
fn with_share(record: CoflowRecord, over_ocs: Bytes) -> CoflowRecord {
    CoflowRecord {
        ocs_share: over_ocs.0 as f64 / record.bytes_between_racks.0.max(1) as f64,
        ..record
    }
}

/// Workloads begin between two decisions, here as in an emulation: half an interval before the
/// first.
fn first_cycle(plan: &RunPlan) -> Time {
    Time(plan.policy.interval.0 / 2)
}

impl<'a> Simulation<'a> {
    /// A network at rest at time zero. Every line of the event log goes to `log`.
    pub fn new(topology: &Arc<Topology>, plan: &RunPlan, log: &'a mut dyn FnMut(Record)) -> Self {
        Self::with(topology, plan, Extras::default(), log)
    }

    /// The same with extras.
    pub fn with(
        topology: &Arc<Topology>,
        plan: &RunPlan,
        extras: Extras,
        log: &'a mut dyn FnMut(Record),
    ) -> Self {
        let Extras { faults, bucket, resolution, proposals } = extras;
        let circuits = !topology.planes.is_empty()
            && plan.policy.scheduler.build().set_by() != SetBy::NoCircuits;
        let (admit, network, buffer) = (plan.run.admit, plan.run.network, plan.run.buffer);
        let counters = plan.policy.demand.reads_counters();
        // A circuit that carries nothing is looked for where bytes wait for it. One that is broken
        // may have no light.
        let backlog = plan.policy.demand.reads_backlog() || !faults.is_empty();
        let progress = proposals || plan.policy.demand.reads_coflows();
        let settings = SimSettings {
            admit,
            circuits,
            network,
            buffer,
            may_fail: !faults.is_empty(),
            bucket,
            counters,
            backlog,
            progress,
            wholes: true,
            resolution,
        };
        let fabric = SimFabric::new(topology.clone(), settings);
        let controller = Controller::new(
            topology.clone(),
            plan.policy.clone(),
            first_cycle(plan),
            fabric.notice(),
        );
        let command = plan.run.program.clone();
        let host =
            SimHost { now: Time::ZERO, probes: VecDeque::new(), program: None, command, log };
        Self {
            topology: topology.clone(),
            plan: plan.clone(),
            circuits,
            moved: Time::ZERO,
            coflows: BTreeMap::new(),
            ended: Vec::new(),
            sums: Tally::default(),
            received: Bytes::ZERO,
            finished: Finished::default(),
            faults: by_time(faults),
            driver: Driver::new(controller, fabric, host),
        }
    }

    /// Records everything from now on, which must be before anything has happened.
    pub fn record(&mut self, recorder: &Recorder) {
        let timing = (first_cycle(&self.plan), self.driver.fabric.notice());
        self.driver.fabric.tell_all();
        let head =
            recorder.head(&self.topology, &self.plan, timing, self.driver.fabric.mechanism());
        self.driver.record(recorder.clone(), head);
    }

    /// The instant up to which everything has happened.
    pub fn now(&self) -> Time {
        self.driver.host.now
    }

    /// Coflows that have arrived and not ended.
    pub fn unfinished(&self) -> usize {
        self.coflows.len()
    }

    /// When something will next happen by itself: a flow finishes, a circuit gets or loses its
    /// light, a probe arrives or the controller wakes. `None`: never. Cycles that provably decide
    /// nothing are no events ([`Skip::Always`]).
    pub fn next_event(&self) -> Option<Time> {
        let probe = self.driver.host.probes.front().map(|p| p.0);
        let wake =
            self.driver.controller.poll_timeout().filter(|w| w.skip != Skip::Always).map(|w| w.at);
        let fault = self.faults.front().map(|f| f.0);
        [probe, wake, fault, self.driver.fabric.next_event()]
            .into_iter()
            .flatten()
            .min()
            .map(|t| t.max(self.driver.host.now))
    }

    /// Whether coflows wait and nothing will ever move again, unless others come.
    pub fn is_stuck(&self) -> bool {
        let waiting =
            self.unfinished() > 0 && !self.driver.fabric.is_moving() && self.faults.is_empty();
        waiting
            && (self.next_event().is_none()
                || self.driver.host.now.since(self.moved) > self.plan.policy.interval * PATIENCE)
    }

    /// Lets time pass up to `to`: what happens before `to` happens altogether, and at `to` flows
    /// finish and circuits change.
    ///
    /// # Errors
    /// What the controller refuses.
    pub fn advance(&mut self, to: Time) -> Result<(), Rejected> {
        while let Some(t) = self.next_event().filter(|&t| t < to && !self.is_stuck()) {
            self.enter(t)?;
            self.wake()?;
        }
        self.enter(to)
    }

    /// Begins a coflow now, whatever its arrival says. Its number must be new.
    ///
    /// # Errors
    /// What the controller refuses.
    pub fn arrive(&mut self, coflow: &CoflowSpec) -> Result<(), Rejected> {
        let now = self.driver.host.now;
        let (id, bound, pairs) =
            (coflow.id, self.bound(coflow), RackBytes::of(&coflow.flows, &self.topology));
        // Marks are for circuits.
        let threshold = self.plan.policy.elephant_threshold;
        let marks = if self.circuits {
            elephants::marks(coflow, &pairs, &self.topology, threshold)
        } else {
            vec![]
        };
        self.driver.tell_of(Event::arrival(coflow, pairs, bound), now)?;
        if self.topology.eps.graph().is_some() {
            self.driver.tell_of(
                Event::CoflowFlows {
                    id,
                    flows: coflow.flows.to_vec(),
                    types: coflow.types.clone(),
                },
                now,
            )?;
        }
        let record = CoflowRecord {
            arrival: now,
            ..CoflowRecord::unfinished(coflow, &self.topology, bound)
        };
        self.coflows.insert(id, Known { record, left: coflow.flows.len(), last: now });
        self.driver.fabric.add_flows(coflow, &marks, now);
        if coflow.flows.is_empty() {
            self.over(id, now)?;
        }
        self.enter(now)
    }

    fn bound(&self, coflow: &CoflowSpec) -> Span {
        bound(coflow, &self.topology, self.plan.run.network.kind)
    }

    /// Takes a coflow back now, if it has not finished: what it has not sent is never sent, and it
    /// counts as unfinished.
    ///
    /// # Errors
    /// What the controller refuses.
    pub fn cancel(&mut self, coflow: CoflowId) -> Result<(), Rejected> {
        // Flows that finish at this instant have finished.
        self.enter(self.driver.host.now)?;
        if !self.coflows.contains_key(&coflow) {
            return Ok(());
        }
        self.driver.fabric.cancel(coflow, self.driver.host.now);
        self.end(coflow, None);
        self.driver.tell_of(Event::CoflowCancelled { id: coflow, why: None }, self.driver.host.now)
    }

    /// What the controller proposes for a shuffle on the present network; it holds that under this
    /// number until the shuffle should have begun and for `grace` more. Nothing if the shuffle
    /// cannot be placed.
    ///
    /// # Errors
    /// What the controller refuses.
    ///
    /// # Panics
    /// If it was not said that proposals will be asked for ([`Extras::proposals`]).
    pub fn propose(
        &mut self,
        id: CoflowId,
        request: &PlacementRequest,
        grace: Span,
    ) -> Result<Option<Arc<Proposal>>, Rejected> {
        let now = self.driver.host.now;
        for (id, received) in self.driver.fabric.progress(|_| true) {
            self.driver.tell_of(Event::CoflowProgress { id, received }, now)?;
        }
        let Ok(proposal) =
            advisor::decide(&self.topology, &self.driver.controller.standing(now), request)
        else {
            return Ok(None);
        };
        let (proposal, name) = (Arc::new(proposal), format!("proposal-{}", id.0));
        let expires = proposal.chosen.start + grace;
        let held = Event::CoflowProposed {
            id,
            name,
            proposal: proposal.clone(),
            weight: 1,
            expires,
            send: false,
        };
        self.driver.tell_of(held, now)?;
        Ok(Some(proposal))
    }

    /// Has the controller forget what it holds under this number, if it still does.
    pub fn withdraw(&mut self, id: CoflowId) {
        // Late: it is forgotten already.
        let _ = self.driver.tell_of(Event::CoflowCancelled { id, why: None }, self.driver.host.now);
    }

    /// From now on `coflow`, which may come later, goes before those of larger `priority`, where
    /// the policy's network has strict priorities. A coflow of which nothing is said has its bytes
    /// for a priority: the smallest goes first.
    pub fn prefer(&mut self, coflow: CoflowId, priority: u64) {
        self.driver.fabric.prefer(coflow, priority, self.driver.host.now);
    }

    /// `coflow`, which comes next, is one of a job's: Aalo counts what the job's other ones have
    /// sent, too.
    pub fn belongs(&mut self, coflow: CoflowId, job: JobId) {
        self.driver.fabric.belongs(coflow, job);
    }

    /// Gives flows of a coflow other strict priorities, 0 (first) to 7; they count where the
    /// policy's network has priorities. Nothing happens if it has ended.
    ///
    /// # Errors
    /// What the controller refuses: a coflow that never began, or a priority that does not exist.
    pub fn prioritise(&mut self, coflow: CoflowId, flows: &[(FlowId, u8)]) -> Result<(), Rejected> {
        let change = PriorityChange { all: None, flows: flows.to_vec() };
        match self.driver.tell(Event::CoflowPrioritised { id: coflow, change }) {
            Err(Rejected::Conflict(_)) => Ok(()),
            told => told.and_then(|()| self.driver.act()),
        }
    }

    /// Bytes that every flow on its way has still to send, in the order of coflow and flow.
    /// O(flows).
    pub fn left(&mut self) -> Vec<(CoflowId, FlowId, Bytes)> {
        self.driver.fabric.left(self.driver.host.now)
    }

    /// Lets probes arrive and the controller act at this instant.
    ///
    /// # Errors
    /// What the controller refuses.
    pub fn wake(&mut self) -> Result<(), Rejected> {
        let now = self.driver.host.now;
        self.probe(now)?;
        // Without coflows the fabric shows nothing new: what was still under way when it was last
        // observed has been told.
        self.driver.wake(self.unfinished() == 0)?;
        self.driver.act()?;
        if self.driver.fabric.is_moving() || self.unfinished() == 0 {
            self.moved = now;
        }
        Ok(())
    }

    /// What has finished since the last call.
    pub fn take_finished(&mut self) -> Finished {
        std::mem::take(&mut self.finished)
    }

    /// Forgets what has finished since the last look, for a caller that does not ask.
    pub fn forget_finished(&mut self) {
        self.finished.flows.clear();
        self.finished.wholes.clear();
        self.finished.coflows.clear();
    }

    /// Flows finish and circuits change up to `to`.
    fn enter(&mut self, to: Time) -> Result<(), Rejected> {
        self.driver.host.now = self.driver.host.now.max(to);
        let done = self.driver.fabric.advance(self.driver.host.now);
        while self.faults.front().is_some_and(|f| f.0 <= self.driver.host.now) {
            let (_, begins, fault) = self.faults.pop_front().expect("there is a first one");
            self.strike(&fault, begins)?;
        }
        for d in done {
            self.finished.flows.push(d);
            let known = self.coflows.get_mut(&d.coflow).expect("only flows of known coflows run");
            known.left -= 1;
            known.last = known.last.max(d.at);
            if known.left == 0 {
                let last = known.last;
                self.over(d.coflow, last)?;
            }
        }
        for (id, at) in self.driver.fabric.take_over() {
            self.finished.wholes.push(id);
            self.over(id, at)?;
        }
        Ok(())
    }

    /// Something breaks now, or is mended; the repair of a port is reported to the controller, as
    /// an operator would do.
    fn strike(&mut self, fault: &Fault, begins: bool) -> Result<(), Rejected> {
        self.driver.fabric.strike(&fault.what, begins, self.driver.host.now);
        self.driver.tell_of(
            Event::Fault { what: fault.text.clone(), over: !begins },
            self.driver.host.now,
        )?;
        if let BrokenPart::Links { which: Which::Switch(switch), percent: 0 } = fault.what
            && !self.plan.policy.paths.is_ecmp()
        {
            // Its neighbours see their ports go down.
            self.driver
                .tell_of(Event::SwitchFault { switch, over: !begins }, self.driver.host.now)?;
        }
        if let (BrokenPart::Port { plane, rack, .. }, false) = (fault.what, begins) {
            // It may never have been found.
            let _ = self.driver.tell_of(Event::PortRepaired { plane, rack }, self.driver.host.now);
        }
        Ok(())
    }

    fn over(&mut self, id: CoflowId, at: Time) -> Result<(), Rejected> {
        self.end(id, Some(at));
        self.finished.coflows.push((id, at));
        self.driver.tell_of(Event::CoflowFinished { id, at }, at)
    }

    /// A coflow is over, finished or not: nothing of its account changes any more.
    fn end(&mut self, id: CoflowId, finished: Option<Time>) {
        let Known { record, .. } = self.coflows.remove(&id).expect("only known coflows end");
        let delivered = self.driver.fabric.forget(id);
        let cct = finished.map(|at| at.since(record.arrival));
        let record = CoflowRecord { finished, cct, ..with_share(record, delivered.over_ocs) };
        self.received = self.received.saturating_add(delivered.bytes);
        self.sums.add(&record);
        self.ended.push(record);
    }

    fn probe(&mut self, now: Time) -> Result<(), Rejected> {
        while self.driver.host.probes.front().is_some_and(|p| p.0 <= now) {
            let Some((_, mut report, what)) = self.driver.host.probes.pop_front() else { break };
            let came = self.driver.fabric.comes_out(report.plane, report.input);
            if what == Probe::IsGivenUp || came != Some(report.output) {
                (report.arrived, report.dark) =
                    (came.filter(|_| what == Probe::Arrives).map(|r| (r, now)), None);
            }
            if what == Probe::Arrives && came.is_none() {
                self.driver.host.wait_for(now + PROBE_PATIENCE, report, Probe::IsGivenUp);
            } else {
                self.driver.tell_of(Event::Probed { report }, now)?;
            }
        }
        Ok(())
    }

    /// The accounts of coflows that have ended since the last call, in the order in which they did:
    /// for runs that are too long to keep them all.
    pub fn take_ended(&mut self) -> Vec<CoflowRecord> {
        std::mem::take(&mut self.ended)
    }

    /// The account of the run up to now; coflows of `rest` have never arrived, and count as
    /// unfinished. Sums are over all coflows; the list has those that were not taken
    /// ([`Self::take_ended`]).
    pub fn result(mut self, workload: &str, rest: &[&CoflowSpec]) -> RunResult {
        let delivered = self.driver.fabric.delivered();
        let received =
            delivered.values().map(|d| d.bytes).fold(self.received, Bytes::saturating_add);
        let last =
            self.driver.controller.snapshot(self.driver.host.now, self.driver.fabric.mechanism());
        let utilisation = self.driver.fabric.utilisation();
        let (mut coflows, listed) = (self.ended, self.coflows.len() + rest.len());
        coflows.reserve(listed);
        let over_ocs = |id: &CoflowId| delivered.get(id).map_or(Bytes::ZERO, |d| d.over_ocs);
        coflows.extend(
            self.coflows.into_iter().map(|(id, known)| with_share(known.record, over_ocs(&id))),
        );
        let bound = |c: &CoflowSpec| bound(c, &self.topology, self.plan.run.network.kind);
        coflows.extend(rest.iter().map(|c| CoflowRecord::unfinished(c, &self.topology, bound(c))));
        coflows[coflows.len() - listed..].iter().for_each(|c| self.sums.add(c));
        coflows.sort_by_key(|c| c.id);
        let of = ResultNames {
            mechanism: self.driver.fabric.mechanism(),
            topology: &self.topology.name,
            policy: &self.plan.policy.name,
            workload,
        };
        // The snapshot has what each pair of racks sent only where a policy reads that, and at the
        // last cycle.
        let [sent, over_ocs] = self.driver.fabric.sent_between_racks();
        let counted = FabricCounts { sent, over_ocs, ..FabricCounts::from(&last) };
        let model = Some(self.driver.fabric.model().name().to_owned());
        RunResult {
            model,
            utilisation,
            ..RunResult::summed(of, coflows, self.sums, counted, received)
        }
    }
}

/// Beginnings and ends by time; at one instant what is mended comes first, then as given.
fn by_time(faults: &[Fault]) -> VecDeque<(Time, bool, Fault)> {
    let ends = faults.iter().filter_map(|f| Some((f.until?, false, f.clone())));
    let mut all: Vec<_> = faults.iter().map(|f| (f.at, true, f.clone())).chain(ends).collect();
    all.sort_by_key(|f| (f.0, f.1));
    all.into()
}
