//! The one driver of the controller: it tells the controller what happens and carries out what the
//! controller wants, over any fabric and by any clock.
//!
//! [`super::live`] and [`super::simulate`] both go by it, so the controller hears the same events
//! in the same order in both. First comes the progress of coflows, then what was observed; after
//! operations first what the cycle cost, then their results.

use super::record::{Recorder, RecordingEntry, RecordingHead, RecordingTap};
use crate::circuits::external::{Advice, NoAnswer, Question};
use crate::coflows::priority::PriorityChange;
use crate::control::record::Record;
use crate::control::{Action, Controller, Event, Rejected};
use crate::demand::HostFlow;
use crate::demand::hedera::Elephants;
use crate::fabric::{Fabric, FabricError, Observation, ProbeRequest};
use crate::ids::CoflowId;
use crate::units::{Span, Time};

/// Large flows between hosts at once, or else all flows.
fn look_at_flows<F: Fabric>(
    fabric: &mut F,
    controller: &Controller,
) -> Result<(Option<Elephants>, Option<Vec<HostFlow>>), FabricError> {
    let elephants = fabric.elephants(&controller.tenths())?;
    let flows = if elephants.is_none() { Some(fabric.flows()?) } else { None };
    Ok((elephants, flows))
}

/// What a driver needs beside a fabric: a clock, and places for what the controller wants done that
/// is no business of the fabric.
pub trait DriverHost<F> {
    /// The time by the run's clock.
    fn now(&self) -> Time;

    /// What the controller must hear before it sees the fabric: how far coflows are.
    fn feed(&mut self, fabric: &mut F, controller: &Controller) -> Vec<Event>;

    /// Adds to what the fabric saw what only those know that send.
    fn complete(&mut self, _fabric: &mut F, _seen: &mut Observation) {}

    /// Asks the program that decides about circuits. The inner error is for the controller, which
    /// then falls back.
    ///
    /// # Errors
    /// Why the run cannot go on without it; ends [`Driver::act`].
    fn consult(&mut self, question: &Question) -> Result<Result<Advice, NoAnswer>, Rejected>;

    /// Sends a probe; its report comes back later as [`Event::Probed`].
    fn probe(&mut self, probe: ProbeRequest);

    /// Gives flows of a coflow other strict priorities; it may be over already.
    fn prioritise(&mut self, fabric: &mut F, coflow: CoflowId, change: &PriorityChange);

    /// Takes a line of the event log.
    fn log(&mut self, record: Record);

    /// The controller did not accept what the driver itself told it. An error ends [`Driver::act`].
    ///
    /// # Errors
    /// The refusal, where it should not have come to that.
    fn refused(&mut self, why: Rejected) -> Result<(), Rejected>;
}

/// A controller, its fabric and its host.
pub struct Driver<F, H> {
    /// Decides.
    pub controller: Controller,
    /// Carries circuits.
    pub fabric: F,
    /// Clock and log.
    pub host: H,
    /// What the last observation and the decision upon it took.
    spent: (Span, Span),
    /// The fabric was told of pairs of racks last ([`Fabric::admit_by_port`]).
    by_port: bool,
    tap: RecordingTap,
}

impl<F: Fabric, H: DriverHost<F>> Driver<F, H> {
    /// A driver of a controller that has not been told anything.
    pub fn new(controller: Controller, fabric: F, host: H) -> Self {
        Self {
            controller,
            fabric,
            host,
            spent: (Span::ZERO, Span::ZERO),
            by_port: false,
            tap: RecordingTap::default(),
        }
    }

    /// Records everything from now on, which must be before it hears anything. `head` says what the
    /// controller was made of.
    pub fn record(&mut self, recorder: Recorder, head: RecordingHead) {
        recorder.put(RecordingEntry::Head(Box::new(head)));
        self.tap = RecordingTap::new(Some(recorder));
    }

    /// Tells the controller what happens now.
    ///
    /// # Errors
    /// What it refuses; it is then as before.
    pub fn tell(&mut self, event: Event) -> Result<(), Rejected> {
        self.tell_of(event, self.host.now())
    }

    /// Tells the controller what happened at `at`.
    ///
    /// # Errors
    /// What it refuses; it is then as before.
    pub fn tell_of(&mut self, event: Event, at: Time) -> Result<(), Rejected> {
        self.tap.put(|| RecordingEntry::Tell { at, event: event.clone() });
        let told = self.controller.handle(event, at);
        if let Err(why) = &told {
            self.tap.put(|| RecordingEntry::Refused { why: why.to_string() });
        }
        told
    }

    /// Wakes the controller if that is due. `quiet`: the fabric shows what it showed when it was
    /// last observed, and cycles that then provably decide nothing are skipped.
    ///
    /// # Errors
    /// What the controller refuses.
    pub fn wake(&mut self, quiet: bool) -> Result<(), Rejected> {
        let now = self.host.now();
        let Some(wake) = self.controller.poll_timeout().filter(|w| w.at <= now) else {
            return Ok(());
        };
        if wake.skip.is_allowed(quiet) && self.controller.skip_until(now) {
            self.tap.put(|| RecordingEntry::Skip { at: now });
            return Ok(());
        }
        self.tell_of(Event::Tick, now)
    }

    /// Carries out what the controller wants, until it wants nothing more.
    ///
    /// # Errors
    /// What [`DriverHost::refused`] says.
    pub fn act(&mut self) -> Result<(), Rejected> {
        while let Some(action) = self.controller.poll_action() {
            self.tap.put(|| RecordingEntry::Act { action: action.clone() });
            match action {
                Action::Observe => self.observe()?,
                Action::Consult { question } => {
                    let begun = self.host.now();
                    let result = self.host.consult(&question)?;
                    self.say(Event::Advised { result })?;
                    self.spent.1 += self.host.now().since(begun);
                }
                Action::Apply { ops } => {
                    let begun = self.host.now();
                    let results = self.fabric.apply(&ops, begun);
                    let apply = self.host.now().since(begun);
                    let (poll, decide) = self.spent;
                    self.say(Event::CycleCost { poll, decide, apply })?;
                    self.say(Event::Applied { results })?;
                }
                Action::Steer { ops } => {
                    let results = self.fabric.steer(&ops, self.host.now());
                    self.say(Event::Steered { results })?;
                }
                Action::Probe { plane, input, output, dark_from, at } => {
                    self.host.probe(ProbeRequest { plane, input, output, dark_from, at });
                }
                Action::Prioritise { id, change } => {
                    self.host.prioritise(&mut self.fabric, id, &change)
                }
                Action::Log { record } => self.host.log(record),
            }
        }
        if self.fabric.admits_by_port() {
            let pairs = self.controller.elephants_of_clients();
            // What lasts is said again and again, since a fabric forgets it.
            if !pairs.is_empty() || self.by_port {
                self.fabric.admit_by_port(&pairs);
                self.by_port = !pairs.is_empty();
            }
        }
        self.tap.idle(RecordingEntry::Idle {});
        Ok(())
    }

    fn observe(&mut self) -> Result<(), Rejected> {
        for event in self.host.feed(&mut self.fabric, &self.controller) {
            self.say(event)?;
        }
        let begun = self.host.now();
        let mut result = self.fabric.observe(begun);
        // The controller refuses what does not fit; nothing is looked up by it before.
        if let Some(seen) = result.as_mut().ok().filter(|seen| self.controller.takes(seen).is_ok())
        {
            self.host.complete(&mut self.fabric, seen);
            if self.controller.reads_flows() {
                match look_at_flows(&mut self.fabric, &self.controller) {
                    Ok((elephants, flows)) => (seen.elephants, seen.flows) = (elephants, flows),
                    Err(e) => result = Err(e),
                }
            }
        }
        let seen = self.host.now();
        self.say(Event::Observed { result })?;
        self.spent = (seen.since(begun), self.host.now().since(seen));
        Ok(())
    }

    /// Tells the controller something that it asked for.
    fn say(&mut self, event: Event) -> Result<(), Rejected> {
        let told = self.tell(event);
        told.or_else(|why| self.host.refused(why))
    }
}
