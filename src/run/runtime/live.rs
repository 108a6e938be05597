//! The live runtime: one thread drives the controller over a fabric by the monotonic clock.
//!
//! Cycles keep their deadlines however many commands come: a cycle that is due goes first, and
//! between two looks at the deadline only a bounded number of commands is taken. All of those that
//! were taken together are answered after one snapshot, which shows what they did.

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{broadcast, oneshot};

use super::drive::{self, Driver};
use super::external::{self, ExternalProgram};
use super::handle::{Command, Handle, HandlePeer};
use super::meter::LinkMeter;
use super::panics::panic_text;
use super::record::Recorder;
use super::settings::RunPlan;
use crate::circuits::external::{Advice, NoAnswer, Question};
use crate::coflows::priority::PriorityChange;
use crate::control::previous_run::PreviousRun;
use crate::control::record::{Record, RecordedEvent};
use crate::control::{Controller, Event, Rejected};
use crate::fabric::{Fabric, Observation, ProbeRequest};
use crate::ids::CoflowId;
use crate::kernel::prober::Prober;
use crate::kernel::{Clock, KernelFabric, sys};
use crate::topology::Topology;
use crate::units::{Span, Time};

mod switches;
#[cfg(test)]
mod tests;

/// A controller on its thread. Dropping it stops the thread and takes the fabric down.
pub struct LiveController<F = KernelFabric> {
    /// How to speak to it.
    pub handle: Handle,
    /// When the first cycle begins; the others follow an interval apart.
    pub first_cycle: Time,
    /// All log lines from the first on, if the controller goes on from another one; for one reader.
    pub first_events: Mutex<Option<broadcast::Receiver<Arc<Record>>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<F>>,
    /// The thread has not ended when it was asked to.
    hangs: bool,
}

/// Who carries coflows over the fabric: the controller hears of them by it, and changes by it how
/// they are carried.
pub trait Carrier: Send {
    /// Called at the beginning of every cycle; its events go to the controller before the fabric is
    /// observed.
    fn feed(&mut self) -> Vec<Event>;

    /// Gives flows of a coflow other strict priorities; it may be over already.
    fn prioritise(&mut self, _coflow: CoflowId, _change: &PriorityChange) {}

    /// Adds to what the fabric saw what only senders know: bytes that wait for their sockets.
    fn complete(&mut self, _seen: &mut Observation) {}
}

/// How long the control loop may take to end.
const ENDING: Duration = Duration::from_secs(2);

/// The carrier of a controller, on its thread.
pub type Feed = Box<dyn Carrier>;

impl LiveController {
    /// Starts the control loop over `fabric`; its first cycle begins now. It goes on from `past`,
    /// if there is one. What it hears and wants goes to `recorder`, if there is one.
    ///
    /// # Errors
    /// When probes cannot be sent or no thread be had; or the past is that of another network.
    pub fn start(
        fabric: KernelFabric,
        plan: RunPlan,
        clock: Clock,
        feed: Feed,
        recorder: Option<Recorder>,
        past: Option<PreviousRun>,
    ) -> io::Result<Self> {
        let topology = fabric.network().topology.clone();
        let pulses = fabric.pulses();
        let prober = |fabric: &KernelFabric, probes: Handle| {
            let report = move |report| probes.notify(Event::Probed { report });
            Prober::start(fabric.network(), clock, fabric.may_probe(), report).map(Some)
        };
        let live = Self::over(fabric, topology, (plan, recorder, past), clock, feed, prober)?;
        pulses.into_iter().for_each(|(pulse, does)| live.handle.mind(pulse, does));
        Ok(live)
    }
}

impl<F: Fabric + 'static> LiveController<F> {
    /// [`LiveController::start`] over any fabric. `prober` makes what sends probes; where it makes
    /// nothing, none are sent.
    fn over(
        fabric: F,
        topology: Arc<Topology>,
        (plan, recorder, past): (RunPlan, Option<Recorder>, Option<PreviousRun>),
        clock: Clock,
        feed: Feed,
        prober: impl FnOnce(&F, Handle) -> io::Result<Option<Prober>>,
    ) -> io::Result<Self> {
        let program = plan
            .run
            .program
            .as_ref()
            .map(|p| ExternalProgram::start(p, p.within.std()))
            .transpose()
            .map_err(io::Error::other)?;
        // The first cycle shall not be late because threads are still being made.
        let start = clock.now() + Span::millis(20);
        let controller =
            Controller::new(topology.clone(), plan.policy.clone(), start, fabric.notice());
        let head = recorder
            .as_ref()
            .map(|r| r.head(&topology, &plan, (start, fabric.notice()), fabric.mechanism()));
        // Coflows that were open when the daemon before was killed end with an event each.
        let told = past.as_ref().map_or(0, |p| p.open.len());
        let (handle, ends) = Handle::new(
            topology,
            Arc::new(plan),
            controller.snapshot(start, fabric.mechanism()),
            told,
        );
        let prober = prober(&fabric, handle.clone())?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut control = ControlLoop::new((controller, fabric), clock, (feed, prober), ends);
        control.driver.host.program = program;
        if let Some((recorder, head)) = recorder.zip(head) {
            control.driver.record(recorder, head);
        }
        let first_events = Mutex::new(past.is_some().then(|| handle.events()));
        if let Some(past) = past {
            control
                .driver
                .tell(Event::Resumed { past: Box::new(past) })
                .map_err(io::Error::other)?;
            control.show();
        }
        let stopped = stop.clone();
        let thread = std::thread::Builder::new().name("controller".into()).spawn(move || {
            sys::realtime(10);
            control.run(&stopped);
            control.driver.fabric
        })?;
        Ok(Self {
            handle,
            first_cycle: start,
            first_events,
            stop,
            thread: Some(thread),
            hangs: false,
        })
    }

    /// Stops the control loop and gives the fabric back.
    pub fn stop(mut self) -> Option<F> {
        self.halt()
    }

    /// Stops the control loop and takes the fabric down; says whether its thread has ended, and not
    /// been left to the end of the process.
    pub fn end(mut self) -> bool {
        drop(self.halt());
        !self.hangs
    }

    /// Whether the control thread still decides.
    pub fn is_alive(&self) -> bool {
        self.lost().is_none()
    }

    /// Why the control thread decides nothing any more, if that is so: it, or a thread that it
    /// needs, has died.
    pub fn lost(&self) -> Option<String> {
        self.handle.ended()
    }
}

impl<F> LiveController<F> {
    fn halt(&mut self) -> Option<F> {
        self.stop.store(true, Relaxed);
        // Wakes the thread.
        self.handle.notify(Event::Tick);
        let begun = Instant::now();
        while self.thread.as_ref().is_some_and(|t| !t.is_finished()) && begun.elapsed() < ENDING {
            std::thread::park_timeout(ENDING / 1000);
        }
        // One that hangs can only be ended with the process.
        if self.thread.as_ref().is_some_and(|t| !t.is_finished()) {
            tracing::error!("the controller's thread does not end");
            self.hangs = true;
            drop(self.thread.take());
        }
        self.thread.take().and_then(|t| t.join().ok())
    }
}

impl<F> Drop for LiveController<F> {
    fn drop(&mut self) {
        drop(self.halt());
    }
}

/// A clock that the control loop goes by.
trait LoopClock {
    fn now(&self) -> Time;
}

impl LoopClock for Clock {
    fn now(&self) -> Time {
        Self::now(*self)
    }
}

/// What the driver needs of a live run.
struct LiveHost<C> {
    clock: C,
    feed: Feed,
    prober: Option<Prober>,
    meter: LinkMeter,
    /// Decides about circuits under the scheduler `external`.
    program: Option<ExternalProgram>,
    events: broadcast::Sender<Arc<Record>>,
    /// Failures that are in the log, and why.
    told: BTreeMap<String, String>,
}

impl<F: Fabric, C: LoopClock> drive::DriverHost<F> for LiveHost<C> {
    fn now(&self) -> Time {
        self.clock.now()
    }

    fn feed(&mut self, _: &mut F, _: &Controller) -> Vec<Event> {
        self.feed.feed()
    }

    fn complete(&mut self, fabric: &mut F, seen: &mut Observation) {
        self.feed.complete(seen);
        let uplinks = fabric.uplinks();
        self.meter.look(self.clock.now(), seen, uplinks);
    }

    fn consult(&mut self, question: &Question) -> Result<Result<Advice, NoAnswer>, Rejected> {
        Ok(self
            .program
            .as_mut()
            .map_or_else(|| Err(NoAnswer::Broken(external::MISSING.into())), |p| p.ask(question)))
    }

    fn prioritise(&mut self, _: &mut F, coflow: CoflowId, change: &PriorityChange) {
        self.feed.prioritise(coflow, change);
    }

    fn probe(&mut self, probe: ProbeRequest) {
        if let Some(prober) = &self.prober {
            prober.request(probe);
        }
    }

    fn log(&mut self, record: Record) {
        tracing::trace!(seq = record.seq, at = %record.at, "{:?}", record.what);
        self.tell(&record.what);
        // An error only says that there are no listeners.
        let _ = self.events.send(Arc::new(record));
    }

    /// Word of a coflow that has ended meanwhile, most likely.
    fn refused(&mut self, why: Rejected) -> Result<(), Rejected> {
        tracing::debug!("{why}");
        Ok(())
    }
}

impl<C> LiveHost<C> {
    /// What an operator must know goes to the log: a failure when it begins or changes, not every
    /// time that it is tried again.
    fn tell(&mut self, what: &RecordedEvent) {
        match what {
            RecordedEvent::Failed { what, why }
                if self.told.insert(what.clone(), why.clone()).as_ref() != Some(why) =>
            {
                tracing::warn!("{what}: {why}");
            }
            RecordedEvent::Recovered { what } if self.told.remove(what).is_some() => {
                tracing::info!("{}", crate::control::recovered(what))
            }
            RecordedEvent::PortFaulty { plane, rack, why } => {
                tracing::warn!("the port of {rack} on plane {} is faulty: {why}", plane.0)
            }
            _ => {}
        }
    }
}

/// The control thread's work.
struct ControlLoop<F, C> {
    driver: Driver<F, LiveHost<C>>,
    ends: HandlePeer,
    /// Commands that were taken and not answered: their answers come with the next snapshot.
    unanswered: Vec<CommandAnswer>,
    switches: switches::SwitchesReader,
    /// When the last snapshot was made, and what it took.
    shown: Time,
    show_cost: Span,
    /// The last step was a cycle.
    ticked: bool,
}

/// A command's answer, and where it goes.
type CommandAnswer = (oneshot::Sender<Result<(), Rejected>>, Result<(), Rejected>);

/// Longest time between two snapshots while events come in.
const SHOW_EVERY: Span = Span::millis(20);
/// The most commands that are taken before the loop acts, answers and looks at everything again.
const BATCH: usize = 256;
/// Number of commands that are taken between two cycles even if the second is due already, so that
/// a machine that is too slow for its interval still answers.
const LEAST: usize = 16;
/// The longest wait where there is no deadline.
const PAUSE: Span = Span::millis(100);

/// Why the control thread ends although it was not stopped.
type Lost = String;

impl<F: Fabric, C: LoopClock> ControlLoop<F, C> {
    fn new(
        (controller, fabric): (Controller, F),
        clock: C,
        (feed, prober): (Feed, Option<Prober>),
        ends: HandlePeer,
    ) -> Self {
        let shown = clock.now();
        let host = LiveHost {
            clock,
            feed,
            prober,
            meter: ends.meter.clone(),
            program: None,
            events: ends.events.clone(),
            told: BTreeMap::new(),
        };
        let driver = Driver::new(controller, fabric, host);
        Self {
            driver,
            ends,
            unanswered: vec![],
            switches: switches::SwitchesReader::default(),
            shown,
            show_cost: Span::ZERO,
            ticked: false,
        }
    }

    /// Runs until told to stop, or until it cannot go on; then [`Handle::ended`] says why.
    fn run(&mut self, stopped: &AtomicBool) {
        let why = catch_unwind(AssertUnwindSafe(|| {
            while !stopped.load(Relaxed) {
                self.ends.pulse.beat();
                if let Err(why) = self.step() {
                    return Some(why);
                }
            }
            None
        }));
        let why = why.unwrap_or_else(|panic| {
            Some(format!("the controller's thread died: {}", panic_text(&*panic)))
        });
        if let Some(why) = why {
            // First where the others look.
            self.ends.say_why(why.clone());
            tracing::error!("{why}");
        }
    }

    fn now(&self) -> Time {
        self.driver.host.clock.now()
    }

    /// When the controller must be woken.
    fn deadline(&self) -> Option<Time> {
        self.driver.controller.poll_timeout().map(|w| w.at)
    }

    /// One cycle if one is due, else commands.
    fn step(&mut self) -> Result<(), Lost> {
        self.check_threads()?;
        let now = self.now();
        if !self.ticked && self.deadline().is_some_and(|t| t <= now) {
            self.ticked = true;
            // Never skipped, not even where there is nothing to decide: the counters are shown, and
            // a link may have been removed.
            if let Err(why) = self.driver.tell(Event::Tick) {
                tracing::debug!("{why}");
            }
            self.act();
            let (clock, next) =
                (&self.driver.host.clock, self.driver.controller.poll_timeout().map(|w| w.at));
            self.switches.read(&mut self.driver.fabric, || clock.now(), next);
            self.show();
            return Ok(());
        }
        self.ticked = false;
        self.take_commands(now)?;
        self.act();
        let now = self.now();
        let near = self.deadline().is_some_and(|t| now + self.show_cost >= t);
        // A snapshot that would delay a cycle waits for it.
        if !near && (!self.unanswered.is_empty() || now.since(self.shown) >= SHOW_EVERY) {
            self.show();
        }
        Ok(())
    }

    /// A fabric or prober whose thread has died does nothing any more, and says nothing either.
    fn check_threads(&self) -> Result<(), Lost> {
        let prober = self.driver.host.prober.as_ref().is_some_and(|p| !p.is_alive());
        let prober = prober.then(|| "the thread that sends probes has died".to_owned());
        self.driver.fabric.lost().or(prober).map_or(Ok(()), Err)
    }

    /// Waits for commands until the next deadline, and takes what there is.
    fn take_commands(&mut self, now: Time) -> Result<(), Lost> {
        let deadline = self.deadline().unwrap_or(now + PAUSE);
        let mut next = match self.ends.commands.recv_timeout(deadline.since(now).min(PAUSE).std()) {
            Ok(command) => Some(command),
            Err(mpsc::RecvTimeoutError::Timeout) => None,
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err("all handles to the controller are gone".into());
            }
        };
        let mut taken = 0;
        while let Some(command) = next {
            self.command(command);
            taken += 1;
            let goes_on = taken < BATCH && (taken < LEAST || self.now() < deadline);
            next = if goes_on { self.ends.commands.try_recv().ok() } else { None };
        }
        Ok(())
    }

    fn command(&mut self, command: Command) {
        let answer = self.driver.tell(command.event);
        match (command.reply, answer) {
            (Some(reply), answer) => self.unanswered.push((reply, answer)),
            (None, Err(why)) => tracing::debug!("{why}"),
            (None, Ok(())) => {}
        }
    }

    fn act(&mut self) {
        if let Err(why) = self.driver.act() {
            tracing::debug!("{why}");
        }
    }

    /// Makes a snapshot, and answers what was asked before it.
    fn show(&mut self) {
        let begun = self.now();
        let mut snapshot = self.driver.controller.snapshot(begun, self.driver.fabric.mechanism());
        (snapshot.switches, snapshot.queues) = (self.switches.seen(), self.switches.queues());
        self.driver.host.told.retain(|what, _| {
            let goes_on = snapshot.failures.iter().any(|f| f.trouble.to_string() == *what);
            if !goes_on {
                tracing::debug!("{what}: well again");
            }
            goes_on
        });
        self.ends.snapshot.send_replace(Arc::new(snapshot));
        for (reply, answer) in self.unanswered.drain(..) {
            // The caller may have given up.
            let _ = reply.send(answer);
        }
        self.shown = self.now();
        self.show_cost = self.shown.since(begun);
    }
}
