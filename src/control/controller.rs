//! The [`Controller`] itself: one cycle is observe, demand, circuits, plan, operations.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::accounts::{Accounts, Opening};
use super::faults::Faults;
use super::manual::ManualCircuits;
use super::meter::DurationMeter;
use super::policy::{CircuitPolicy, SchedulerKind};
use super::proposals::Proposals;
use super::record::{Failure, ProposalState, ProposalView, Record, RecordedEvent, Stats};
use super::routes::Paths;
use super::world::ObservedDamage;
use super::{Action, Event, Rejected, Skip, Trouble, Wake, WakeReason};
use crate::circuits::Scheduler;
use crate::circuits::timetable::{Reservation, Timetable};
use crate::demand::{DemandMatrix, EstimatorState};
use crate::fabric::{Observation, OpResult};
use crate::ids::{CoflowId, PlaneId, RackId};
use crate::plan::{self, CheckError, Op, Programmed, Wanted};
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};

mod coflows;
mod deciding;
mod idle;
mod probes;
mod steering;
#[cfg(test)]
mod tests;
mod views;
mod world;

use deciding::Pending;

/// What the controller waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// The next deadline.
    Idle,
    /// An observation. `decide`: of a cycle with this deadline; else only to write what had no room
    /// before.
    Observing { decide: Option<Time> },
    /// The answer of the program that decides.
    Consulting,
    /// The results of these operations, which must be in force by then.
    Applying { ops: Vec<Op>, by: Time },
}

/// Operations, and what the planes hold when all of them are done.
struct PlannedOperations {
    ops: Vec<Op>,
    then: Programmed,
}

/// Decides about circuits. See the module's documentation.
pub struct Controller {
    topology: Arc<Topology>,
    policy: CircuitPolicy,
    scheduler: Box<dyn Scheduler>,
    /// Decides where a program gives no answer.
    fallback: Option<Box<dyn Scheduler>>,
    /// The decision about which a program is asked.
    pending: Option<Pending>,
    estimator: EstimatorState,
    /// How long before it takes effect an operation must be in place in the fabric.
    notice: Span,
    next_cycle: Time,
    /// Since when a coflow has been waiting for a decision of its own.
    arrived: Option<Time>,
    cycle: u64,
    phase: Phase,
    /// Reservations that had no room in the fabric are written then.
    top_up_at: Option<Time>,
    wanted: Wanted,
    last: Option<Observation>,
    demand: DemandMatrix,
    /// No demand between the network's racks.
    nothing: DemandMatrix,
    accounts: Accounts,
    promises: Proposals,
    manual: ManualCircuits,
    paths: Paths,
    faults: Faults,
    failures: BTreeMap<Trouble, Failure>,
    world: ObservedDamage,
    actions: VecDeque<Action>,
    seq: u64,
    revision: u64,
    stats: Stats,
    meters: Meters,
    /// Whether the last cycle changed nothing, and the next one will not either unless an event
    /// comes before it. The simulator may then skip cycles.
    resting: bool,
}

#[derive(Default)]
struct Meters {
    poll: DurationMeter,
    decide: DurationMeter,
    apply: DurationMeter,
    cycle: DurationMeter,
    dark_asked: DurationMeter,
    dark_achieved: DurationMeter,
    /// The two by plane, where planes ask for different dark times.
    dark_by_plane: BTreeMap<PlaneId, (DurationMeter, DurationMeter)>,
}

impl Controller {
    /// A controller whose first cycle begins at `start`. `notice` is how long before it takes
    /// effect an operation must be in place in the fabric ([`crate::fabric::Fabric::notice`]).
    pub fn new(topology: Arc<Topology>, policy: CircuitPolicy, start: Time, notice: Span) -> Self {
        let racks = topology.rack_count();
        Self {
            scheduler: policy.scheduler.build(),
            fallback: policy.fallback.map(SchedulerKind::build),
            pending: None,
            estimator: EstimatorState::new(policy.demand, policy.ageing, racks),
            paths: Paths::new(topology.clone(), policy.paths, policy.paths_seed)
                .priced(policy.units),
            topology,
            policy,
            notice,
            next_cycle: start,
            arrived: None,
            cycle: 0,
            phase: Phase::Idle,
            top_up_at: None,
            wanted: Wanted::default(),
            last: None,
            demand: DemandMatrix::zero(racks),
            nothing: DemandMatrix::zero(racks),
            accounts: Accounts::default(),
            promises: Proposals::default(),
            manual: ManualCircuits::default(),
            faults: Faults::default(),
            failures: BTreeMap::new(),
            world: ObservedDamage::default(),
            actions: VecDeque::new(),
            seq: 0,
            revision: 0,
            stats: Stats::default(),
            meters: Meters::default(),
            resting: false,
        }
    }

    /// When the controller wants [`Event::Tick`], and why; `None` while it waits for an answer of
    /// the fabric. O(1).
    pub fn poll_timeout(&self) -> Option<Wake> {
        if self.phase != Phase::Idle {
            return None;
        }
        let cycle = Wake { at: self.next_cycle, why: WakeReason::Cycle, skip: self.skip() };
        let early = [(self.arrived, WakeReason::Arrival), (self.top_up_at, WakeReason::Room)];
        let early = early.into_iter().filter_map(|(at, why)| Some((at?, why)));
        let first = early.min_by_key(|e| e.0).filter(|e| e.0 < self.next_cycle);
        Some(first.map_or(cycle, |(at, why)| Wake { at, why, skip: Skip::Never }))
    }

    /// Whether the next decision may depend on how far a coflow is: it has an aggregate worth
    /// circuits, and the policy reads coflows.
    pub fn follows(&self, coflow: CoflowId) -> bool {
        self.policy.demand.reads_coflows()
            && self.accounts.is_heavy(coflow, self.policy.elephant_threshold)
    }

    /// The pairs of racks between which a client still sends an elephant: an aggregate of a coflow
    /// that reaches the policy's threshold. O(pairs of such coflows).
    pub fn elephants_of_clients(&self) -> BTreeSet<(RackId, RackId)> {
        self.accounts.elephants_of_clients(self.policy.elephant_threshold)
    }

    /// The next thing to do, if any.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Takes one event.
    ///
    /// # Errors
    /// What cannot be accepted; the state is then as before.
    pub fn handle(&mut self, event: Event, now: Time) -> Result<(), Rejected> {
        self.revision += 1;
        self.resting &= idle::ends_a_cycle(&event);
        match event {
            Event::Resumed { past } => self.resumed(*past, now)?,
            Event::Tick => self.tick(now),
            Event::Observed { result } => self.observed(result, now),
            Event::Advised { result } => self.advised(result, now),
            Event::Applied { results } => self.applied(results, now),
            Event::CycleCost { poll, decide, apply } => {
                self.meters.poll.add(poll);
                self.meters.decide.add(decide);
                self.meters.apply.add(apply);
                self.meters.cycle.add(poll + decide + apply);
            }
            Event::Probed { report } => self.probed(&report, now),
            Event::CoflowArrived { id, name, pairs, bound, progress, weight, priorities } => {
                let new = Opening {
                    id,
                    name,
                    weight: weight.max(1),
                    pairs: &pairs,
                    bound,
                    progress,
                    priorities: &priorities,
                };
                let bytes = self.accounts.declare(new, now, self.topology.rack_count())?;
                self.has_arrived(id, bytes, now);
            }
            Event::CoflowPrioritised { id, change } => self.prioritised(id, &change, now)?,
            Event::CoflowProgress { id, received } => self.accounts.progress(id, &received)?,
            Event::FlowFinished { id, flow, bytes } => {
                self.accounts.expect_open(id)?;
                self.log(now, RecordedEvent::FlowFinished { id, flow, bytes });
            }
            Event::CoflowFinished { id, at } => {
                let cct = self.accounts.finish(id, at)?;
                self.log(now, RecordedEvent::CoflowFinished { id, cct });
                self.flows_ended(id, now);
            }
            Event::CoflowEnded { id } => {
                self.accounts.expect_counted(id)?;
                self.handle(Event::CoflowFinished { id, at: now }, now)?;
            }
            Event::CoflowProposed { id, name, proposal, weight, expires, send } => {
                self.proposed(
                    ProposalView {
                        id,
                        name,
                        weight,
                        proposed: now,
                        expires,
                        state: ProposalState::Held,
                        send,
                        proposal,
                    },
                    now,
                )?;
            }
            Event::CoflowConfirmed { id, pairs, bound, progress, priorities } => {
                self.confirmed(id, (&pairs, &priorities), (bound, progress), now)?;
            }
            Event::CoflowCancelled { id, why } => {
                if !self.promises.cancel(id, now)? {
                    self.accounts.cancel(id, why.clone(), now)?;
                }
                self.log(now, RecordedEvent::CoflowCancelled { id, why });
                self.flows_ended(id, now);
            }
            Event::CoflowFlows { .. }
            | Event::Steered { .. }
            | Event::SwitchFault { .. }
            | Event::ManualList { .. }
            | Event::ManualListEnds { .. } => {
                self.steering(event, now)?;
            }
            Event::ManualConnect { plane, input, output } => {
                self.manual_connect(plane, input, output)?
            }
            Event::ManualDisconnect { plane, input } => self.manual_disconnect(plane, input)?,
            Event::ManualConfiguration { circuits } => self.manual_configuration(&circuits)?,
            Event::Trouble { what, why: Some(why) } => self.failed(what, why, now),
            Event::Trouble { what, why: None } if self.failures.remove(&what).is_some() => {
                self.log(now, RecordedEvent::Recovered { what: what.to_string() });
            }
            Event::Trouble { why: None, .. } => {}
            Event::PortRepaired { plane, rack } => self.repaired(plane, rack, now)?,
            Event::Fault { what, over } => self.log(now, RecordedEvent::Fault { what, over }),
            Event::PolicyReplaced { policy } => self.replace_policy(*policy, now),
        }
        Ok(())
    }

    /// Decides by another policy from the next cycle on.
    fn replace_policy(&mut self, policy: CircuitPolicy, now: Time) {
        self.scheduler = policy.scheduler.build();
        self.fallback = policy.fallback.map(SchedulerKind::build);
        self.estimator.switch_to(policy.demand, policy.ageing);
        self.log(now, RecordedEvent::PolicyChanged { name: policy.name.clone() });
        self.paths.switch_to(policy.paths, policy.paths_seed);
        self.paths.price(policy.units);
        self.policy = policy;
        self.steer(now);
    }

    fn tick(&mut self, now: Time) {
        if self.phase != Phase::Idle {
            return;
        }
        if now >= self.next_cycle {
            // A deadline that passed unserved is skipped, not served late: cycles are never
            // doubled.
            let behind = now.since(self.next_cycle).0 / self.policy.interval.0.max(1);
            self.stats.missed_cycles += behind;
            let deadline = self.next_cycle + self.policy.interval * behind;
            self.next_cycle = deadline + self.policy.interval;
            self.phase = Phase::Observing { decide: Some(deadline) };
        } else if self.arrived.is_some() {
            self.phase = Phase::Observing { decide: Some(now) };
        } else if self.top_up_at.is_some_and(|t| now >= t) {
            self.phase = Phase::Observing { decide: None };
        } else {
            return;
        }
        (self.top_up_at, self.arrived) = (None, None);
        self.actions.push_back(Action::Observe);
    }

    /// What brings the planes from what they hold to what is wanted, proved; or why that cannot be
    /// done.
    fn plan(&self, programmed: &Programmed, now: Time) -> Result<PlannedOperations, String> {
        let ops = plan::diff(&self.wanted, programmed, now);
        // Whether an operation comes too late for the guard is the fabric's answer: it knows how
        // long carrying it out took.
        let rules = plan::Rules {
            planes: &self.topology.planes,
            racks: self.topology.rack_count(),
            guard: Span::ZERO,
        };
        match plan::check(programmed, &ops, &rules, now) {
            Ok(then) => Ok(PlannedOperations { ops, then }),
            Err(CheckError { at: Some(k), why }) => Err(format!("{:?}: {why}", ops[k])),
            Err(CheckError { at: None, why }) => {
                Err(format!("the fabric holds what no OCS could follow: {why}"))
            }
        }
    }

    /// Asks for what is wanted and not programmed yet.
    fn program(&mut self, plan: PlannedOperations, effective: Time, cycle: bool, now: Time) {
        let PlannedOperations { ops, then } = plan;
        // A port that needs no change any more has nothing left to fail.
        let changed: BTreeSet<(PlaneId, RackId)> = ops.iter().map(Op::port).collect();
        self.failures.retain(|k, _| match *k {
            Trouble::Plan => false,
            Trouble::Port(plane, rack) => changed.contains(&(plane, rack)),
            Trouble::Carry(_)
            | Trouble::Names
            | Trouble::Paths
            | Trouble::File(_)
            | Trouble::Follow
            | Trouble::Observe
            | Trouble::World => true,
        });
        self.top_up_at = self.next_room(&then.timetable, now);
        if ops.is_empty() && !cycle {
            return;
        }
        self.phase = Phase::Applying { ops: ops.clone(), by: effective };
        self.actions.push_back(Action::Apply { ops });
    }

    /// When a port that has more reservations than fit will have room again.
    fn next_room(&self, programmed: &Timetable, now: Time) -> Option<Time> {
        let mut ports = programmed.ports();
        let wanted = self
            .wanted
            .timetable
            .iter()
            .filter(|w| w.until > now)
            .map(|w| (w, ports.port(w.plane, w.input)));
        let waiting = wanted.filter(|(w, port)| !port.contains(w));
        let room =
            waiting.filter_map(|(_, port)| port.iter().map(|r| r.until).filter(|&t| t > now).min());
        room.filter(|&t| t < Time::MAX).min()
    }

    fn applied(&mut self, results: Vec<OpResult>, now: Time) {
        let Phase::Applying { ops, by } = &mut self.phase else { return };
        let (ops, by, mut late) = (std::mem::take(ops), *by, false);
        self.phase = Phase::Idle;
        if !results.iter().map(|r| &r.op).eq(&ops) {
            let why = "the fabric answered to other operations than it was asked for";
            let ports: BTreeSet<(PlaneId, RackId)> = ops.iter().map(Op::port).collect();
            return ports.into_iter().for_each(|(plane, rack)| {
                self.failed(Trouble::Port(plane, rack), why.into(), now)
            });
        }
        for r in results {
            let (plane, rack) = r.op.port();
            let what = Trouble::Port(plane, rack);
            match r.outcome {
                Err(why) => self.failed(what, why.to_string(), now),
                Ok(stood) => {
                    late |= stood > by;
                    self.failures.remove(&what);
                    self.done(r.op, now);
                }
            }
        }
        self.stats.late_cycles += u64::from(late);
    }

    /// Logs an operation that was carried out, and has a new circuit probed.
    fn done(&mut self, op: Op, now: Time) {
        match op {
            Op::Reserve(r) => {
                self.stats.circuits_set += 1;
                let Reservation { plane, input, output, setup_at, up_from, until } = r;
                let until = (until < Time::MAX).then_some(until);
                let demand = Some(Bytes(self.demand.get(input, output)));
                self.log(
                    now,
                    RecordedEvent::CircuitSet {
                        plane,
                        input,
                        output,
                        setup_at,
                        up_from,
                        until,
                        demand,
                    },
                );
                if self.policy.probes {
                    self.actions.push_back(Action::Probe {
                        plane: r.plane,
                        input: r.input,
                        output: r.output,
                        dark_from: r.setup_at,
                        at: r.up_from,
                    });
                }
            }
            Op::End { plane, input, up_from, until } => {
                self.log(now, RecordedEvent::CircuitEnd { plane, input, up_from, until })
            }
            Op::Cancel { plane, input, up_from } => self.log(
                now,
                RecordedEvent::CircuitEnd { plane, input, up_from, until: now.min(up_from) },
            ),
        }
    }

    fn port_exists(&self, plane: PlaneId, rack: RackId) -> Result<(), Rejected> {
        if plane.index() >= self.topology.planes.len() {
            return Err(Rejected::NotFound(format!(
                "plane {} (planes: {})",
                plane.0,
                self.topology.planes.len()
            )));
        }
        if rack.index() >= self.topology.rack_count() {
            return Err(Rejected::NotFound(format!(
                "rack {} (racks: 0 to {})",
                rack.0,
                self.topology.rack_count() - 1
            )));
        }
        Ok(())
    }

    fn manual_connect(
        &mut self,
        plane: PlaneId,
        input: RackId,
        output: RackId,
    ) -> Result<(), Rejected> {
        self.joinable(plane, input, output)?;
        self.manual.connect(plane, input, output, self.is_duplex(plane))
    }

    fn manual_configuration(
        &mut self,
        circuits: &[(PlaneId, RackId, RackId)],
    ) -> Result<(), Rejected> {
        circuits
            .iter()
            .try_for_each(|&(plane, input, output)| self.joinable(plane, input, output))?;
        let all: Vec<_> = circuits
            .iter()
            .map(|&(plane, input, output)| (plane, input, output, self.is_duplex(plane)))
            .collect();
        self.manual.replace(all)
    }

    /// Whether a circuit could be set between two ports.
    fn joinable(&self, plane: PlaneId, input: RackId, output: RackId) -> Result<(), Rejected> {
        self.port_exists(plane, input)?;
        self.port_exists(plane, output)?;
        if input == output {
            return Err(Rejected::Invalid(format!(
                "a circuit joins two racks, not {input} with itself"
            )));
        }
        for rack in [input, output] {
            if let Some(why) = self.faults.why((plane, rack)) {
                return Err(Rejected::Conflict(format!(
                    "the port of {rack} on plane {} is faulty: {why}",
                    plane.0
                )));
            }
        }
        Ok(())
    }

    fn is_duplex(&self, plane: PlaneId) -> bool {
        self.topology.planes[plane.index()].duplex
    }

    fn manual_disconnect(&mut self, plane: PlaneId, input: RackId) -> Result<(), Rejected> {
        self.port_exists(plane, input)?;
        self.manual.disconnect(plane, input, self.is_duplex(plane))
    }

    fn failed(&mut self, trouble: Trouble, why: String, now: Time) {
        let retry_at = self.next_cycle;
        let f = self.failures.entry(trouble).or_insert(Failure {
            trouble,
            why: String::new(),
            attempts: 0,
            retry_at,
        });
        f.attempts += 1;
        f.retry_at = retry_at;
        f.why.clone_from(&why);
        self.log(now, RecordedEvent::Failed { what: trouble.to_string(), why });
    }

    fn log(&mut self, at: Time, what: RecordedEvent) {
        let record = Record { seq: self.seq, at, what };
        self.seq += 1;
        self.actions.push_back(Action::Log { record });
    }
}
