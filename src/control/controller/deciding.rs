//! The middle of a cycle: from what was observed over demand to the circuits that are wanted, by a
//! scheduler or by a program.

use super::{Controller, Phase};
use crate::circuits::external::{Advice, NoAnswer, Question};
use crate::circuits::layout::lay_out;
use crate::circuits::timetable::Reservation;
use crate::circuits::{Ask, Decision, Matching, OpenCoflow, PlaneDecision, SetBy, Slot, Usable};
use crate::demand::hedera::tenths;
use crate::demand::{DemandMatrix, Inputs};
use crate::fabric::{FabricError, Misfit, Observation};
use crate::held::HeldDemand;
use crate::ids::{PlaneId, RackId};
use crate::policy::{CircuitPolicy, Estimator};
use crate::record::RecordedEvent;
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};
use crate::{Action, Trouble};

/// A decision that is being made: what it is made by, beside the controller's own state.
pub(super) struct Pending {
    /// What was observed.
    seen: Observation,
    /// The instant at which it takes effect.
    at: Time,
    /// Whether that is later than the policy asks for.
    late: bool,
    /// By plane: circuits that are up, being set up, or promised for then.
    current: Vec<Matching>,
    /// By plane: the ports that may be used.
    usable: Vec<Usable>,
    /// Open coflows, where demand is what they declare.
    coflows: Vec<OpenCoflow>,
}

impl Pending {
    /// All that a scheduler may look at.
    fn ask<'a>(
        &'a self,
        demand: &'a DemandMatrix,
        topology: &'a Topology,
        policy: &CircuitPolicy,
        cycle: u64,
    ) -> Ask<'a> {
        Ask {
            demand,
            current: &self.current,
            planes: &topology.planes,
            usable: &self.usable,
            at: self.at,
            interval: policy.interval,
            cycle,
            eps: topology.racks.iter().map(|r| r.uplink).min().unwrap_or_default(),
            coflows: &self.coflows,
        }
    }
}

impl Controller {
    /// Whether an observation is one of this controller's network; all others are refused, and its
    /// state stays. O(planes + circuits + damage).
    ///
    /// # Errors
    /// What does not fit.
    pub fn takes(&self, seen: &Observation) -> Result<(), Misfit> {
        seen.fits(&self.topology)
    }

    /// Whether it works demand out from flows between hosts.
    pub fn reads_flows(&self) -> bool {
        self.policy.demand.reads_flows()
    }

    /// By host: what a large flow has in an interval at least, in bytes. O(hosts).
    pub fn tenths(&self) -> Vec<u64> {
        tenths(&self.topology, self.policy.interval)
    }

    pub(super) fn observed(&mut self, result: Result<Observation, FabricError>, now: Time) {
        let Phase::Observing { decide } = self.phase else { return };
        self.phase = Phase::Idle;
        let seen = match result {
            Ok(seen) => seen,
            Err(e) => return self.failed(Trouble::Observe, e.to_string(), now),
        };
        if let Err(e) = self.takes(&seen) {
            return self.failed(
                Trouble::Observe,
                format!("what it shows does not fit the network: {e}"),
                now,
            );
        }
        self.failures.remove(&Trouble::Observe);
        self.look_at_the_world(&seen, now);
        if self.paths.is_refused() {
            self.steer(now);
        }
        let Some(deadline) = decide else {
            self.write(&seen, None, now);
            self.last = Some(seen);
            return;
        };
        let pending = self.begin_decision(seen, deadline, now);
        if self.scheduler.set_by() == SetBy::Program {
            let ask = pending.ask(&self.demand, &self.topology, &self.policy, self.cycle);
            self.actions.push_back(Action::Consult { question: Question::from(&ask) });
            self.phase = Phase::Consulting;
            self.pending = Some(pending);
        } else {
            self.schedule(&pending, now);
            self.end_decision(pending, now);
        }
    }

    /// Takes the scheduler's decision.
    fn schedule(&mut self, pending: &Pending, now: Time) {
        let decision = self.scheduler.decide(&pending.ask(
            &self.demand,
            &self.topology,
            &self.policy,
            self.cycle,
        ));
        match self.lay(decision, pending) {
            Ok(()) => drop(self.failures.remove(&Trouble::Follow)),
            Err(clash) => {
                self.failed(
                    Trouble::Follow,
                    format!("{}: {clash}", self.policy.scheduler.name()),
                    now,
                );
                // A scheduler whose decision no switch can follow has not decided, as little as a
                // program.
                self.stats.fell_back(&clash.into());
            }
        }
    }

    /// A program has answered, or has not.
    pub(super) fn advised(&mut self, result: Result<Advice, NoAnswer>, now: Time) {
        let Some(pending) = self.pending.take() else { return };
        self.phase = Phase::Idle;
        let racks = self.topology.rack_count();
        let done = result.and_then(|answer| {
            let decision = answer.decision(&self.topology.planes, racks, pending.at)?;
            Ok(self.lay(decision, &pending)?)
        });
        match done {
            Ok(()) => drop(self.failures.remove(&Trouble::Follow)),
            Err(why) => {
                self.failed(
                    Trouble::Follow,
                    format!("{}: {why}", self.policy.scheduler.name()),
                    now,
                );
                self.stats.fell_back(&why);
                self.fall_back(&pending, now);
            }
        }
        self.end_decision(pending, now);
    }

    /// Takes the fallback's decision; without one the circuits stay as they are.
    fn fall_back(&mut self, pending: &Pending, now: Time) {
        let Some(fallback) = &mut self.fallback else { return };
        let decision =
            fallback.decide(&pending.ask(&self.demand, &self.topology, &self.policy, self.cycle));
        if let Err(why) = self.lay(decision, pending) {
            self.failed(
                Trouble::Follow,
                format!("the fallback of {}: {why}", self.policy.scheduler.name()),
                now,
            );
        }
    }

    /// Works out the demand, and what else a decision depends on.
    fn begin_decision(&mut self, seen: Observation, deadline: Time, now: Time) -> Pending {
        let racks = self.topology.rack_count();
        self.account(&seen, now);
        let by_coflow = self.policy.demand.reads_coflows();
        let threshold = self.policy.elephant_threshold;
        let mut declared = if by_coflow {
            self.accounts.remaining(racks, threshold)
        } else {
            self.nothing.clone()
        };
        let mut coflows = if by_coflow { self.accounts.open_coflows(threshold) } else { vec![] };
        if let Some(bytes) = seen.held.as_ref().filter(|_| by_coflow) {
            let last = self.last.as_ref();
            let held = HeldDemand::new(
                bytes,
                last.map_or_else(|| self.nothing.clone(), |l| seen.over_ocs.since(&l.over_ocs)),
            );
            declared = held.demand(&declared);
            held.filter(&mut coflows);
        }
        let inputs = Inputs {
            sent: &seen.sent,
            backlog: &seen.backlog,
            declared: &declared,
            flows: seen.flows.as_deref(),
            elephants: seen.elephants.as_ref(),
            interval: self.policy.interval,
            topology: &self.topology,
        };
        let per_pair = self.policy.demand != Estimator::Declared && threshold > Bytes(0);
        self.demand = self.estimator.update(&inputs);
        if per_pair {
            self.demand = crate::demand::elephants::filter(&self.demand, threshold);
        }
        let asked = deadline + self.policy.lead + self.notice;
        // Half of the lead is for polling, half for deciding and writing: a decision with less time
        // left would be refused by the fabric.
        let soonest = now + Span(self.policy.lead.0 / 2) + self.notice;
        // A cycle that decides nothing has no instant to be late for.
        let late = soonest > asked && !self.is_passive();
        let at = asked.max(soonest);
        self.stats.cycles += 1;
        self.stats.late_cycles += u64::from(late);
        // What the fabric holds is the truth; what was wanted and refused is decided again.
        self.wanted.timetable = seen.programmed.timetable.clone();
        self.wanted.timetable.forget_before(now);
        let (current, usable) = (self.current(at), self.usable());
        Pending { seen, at, late, current, usable, coflows }
    }

    /// Makes a decision, with the circuits set by hand, what is wanted.
    ///
    /// # Errors
    /// Why no OCS could follow it; what was wanted is then as before.
    fn lay(&mut self, mut decision: Decision, pending: &Pending) -> Result<(), String> {
        let (planes, racks) = (&self.topology.planes, self.topology.rack_count());
        self.add_manual(&mut decision, &pending.usable, pending.at);
        let table = lay_out(&self.wanted.timetable, &decision, planes, racks, pending.at);
        table.check(planes, racks).map_err(|clash| clash.to_string())?;
        self.wanted.timetable = table;
        Ok(())
    }

    /// The rest of a cycle after its decision.
    fn end_decision(&mut self, pending: Pending, now: Time) {
        self.write(&pending.seen, Some(&pending), now);
        self.resting = self.may_rest(&pending.seen, now);
        self.last = Some(pending.seen);
    }

    /// Asks for what is wanted and not programmed yet; `decided`: after a decision.
    fn write(&mut self, seen: &Observation, decided: Option<&Pending>, now: Time) {
        let plan = self.plan(&seen.programmed, now);
        if let Some(d) = decided {
            let ops = plan.as_ref().map_or(0, |p| p.ops.len());
            self.log(
                now,
                RecordedEvent::Cycle {
                    cycle: self.cycle,
                    demand: Bytes(self.demand.total()),
                    ops,
                    late: d.late,
                },
            );
            self.cycle += 1;
        }
        let effective = decided.map_or(now + self.notice, |d| d.at);
        match plan {
            Ok(plan) => self.program(plan, effective, decided.is_some(), now),
            Err(why) => self.failed(Trouble::Plan, why, now),
        }
    }

    /// Books what the counters gained since the last cycle.
    fn account(&mut self, seen: &Observation, now: Time) {
        let last = self.last.as_ref();
        let gained = |from, to| {
            let (sent, ocs) =
                last.map_or((0, 0), |l| (l.sent.get(from, to), l.over_ocs.get(from, to)));
            (
                seen.sent.get(from, to).saturating_sub(sent),
                seen.over_ocs.get(from, to).saturating_sub(ocs),
            )
        };
        let held = |from, to| seen.held.as_ref().map_or(0, |held| held.get(from, to));
        for id in self.accounts.count(gained, held, now) {
            if let Ok(cct) = self.accounts.finish(id, seen.at) {
                self.log(now, RecordedEvent::CoflowFinished { id, cct });
                self.flows_ended(id, now);
            }
        }
    }

    /// Circuits that are up, being set up, or promised for `at`, by plane.
    pub(super) fn current(&self, at: Time) -> Vec<Matching> {
        let racks = self.topology.rack_count();
        self.topology
            .planes
            .iter()
            .map(|p| self.wanted.timetable.matching_at(p.id, racks, at))
            .collect()
    }

    /// Ports that a scheduler may use: not faulty, not held by hand.
    pub(super) fn usable(&self) -> Vec<Usable> {
        let racks = self.topology.rack_count();
        let mut all: Vec<Usable> =
            self.topology.planes.iter().map(|_| Usable::all(racks)).collect();
        for (plane, rack) in self.faults.ports() {
            all[plane.index()].input[rack.index()] = false;
            all[plane.index()].output[rack.index()] = false;
        }
        for (plane, input, output) in self.manual.iter() {
            all[plane.index()].input[input.index()] = false;
            all[plane.index()].output[output.index()] = false;
        }
        all
    }

    /// Adds the circuits set by hand, and takes out what a scheduler should not have used.
    fn add_manual(&self, decision: &mut Decision, usable: &[Usable], at: Time) {
        let works = |p: PlaneId, rack: RackId| self.faults.why((p, rack)).is_none();
        let manual = |p: PlaneId| {
            self.manual
                .iter()
                .filter(move |&(plane, i, o)| plane == p && works(p, i) && works(p, o))
        };
        for (k, decided) in decision.0.iter_mut().enumerate() {
            let (plane, may) = (PlaneId::from(k), |i: RackId, j: RackId| {
                usable[k].input[i.index()] && usable[k].output[j.index()]
            });
            match decided {
                PlaneDecision::Sequence(slots) => {
                    if slots.is_empty() && manual(plane).next().is_some() {
                        slots.push(Slot {
                            matching: Matching::empty(self.topology.rack_count()),
                            hold: None,
                        });
                    }
                    for slot in slots {
                        let bad: Vec<RackId> = slot
                            .matching
                            .pairs()
                            .filter(|&(i, j)| !may(i, j))
                            .map(|(i, _)| i)
                            .collect();
                        bad.into_iter().for_each(|i| slot.matching.disconnect(i));
                        for (_, input, output) in manual(plane) {
                            slot.matching.connect(input, output);
                        }
                    }
                }
                PlaneDecision::Reservations(list) => {
                    list.retain(|r| may(r.input, r.output));
                    list.extend(manual(plane).map(|(plane, input, output)| {
                        self.manual_reservation(plane, input, output, at)
                    }));
                }
            }
        }
    }

    fn manual_reservation(
        &self,
        plane: PlaneId,
        input: RackId,
        output: RackId,
        at: Time,
    ) -> Reservation {
        let held = self
            .wanted
            .timetable
            .port(plane, input)
            .iter()
            .find(|r| r.output == output && r.setup_at < at && r.until > at);
        let fresh = Reservation {
            plane,
            input,
            output,
            setup_at: at,
            up_from: at + self.topology.planes[plane.index()].delta,
            until: Time::MAX,
        };
        held.map_or(fresh, |r| Reservation { until: Time::MAX, ..*r })
    }
}
