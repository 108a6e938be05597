//! The live runtime: one thread drives the controller over a kernel fabric by the monotonic clock.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use super::handle::{Command, Ends, Handle};
use super::settings::RunPlan;
use crate::control::record::What;
use crate::control::{Action, Controller, Event};
use crate::fabric::Fabric;
use crate::fabric::kernel::prober::{ProbeRequest, Prober};
use crate::fabric::kernel::{Clock, KernelFabric, sys};
use crate::units::{Span, Time};

/// A controller on its thread. Dropping it stops the thread and takes the fabric down.
pub struct Live {
    /// How to speak to it.
    pub handle: Handle,
    /// When the first cycle begins; the others follow an interval apart.
    pub first_cycle: Time,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<KernelFabric>>,
}

/// Called at the beginning of every cycle; its events go to the controller before the fabric is observed.
pub type Feed = Box<dyn FnMut() -> Vec<Event> + Send>;

impl Live {
    /// Starts the control loop over `fabric`; its first cycle begins now.
    ///
    /// # Errors
    /// When probes cannot be sent or no thread be had.
    pub fn start(fabric: KernelFabric, plan: RunPlan, clock: Clock, feed: Feed) -> io::Result<Self> {
        let topology = fabric.network().topology.clone();
        // The first cycle shall not be late because threads are still being made.
        let start = clock.now() + Span::millis(20);
        let controller = Controller::new(topology.clone(), plan.policy.clone(), start, fabric.notice());
        let (handle, ends) = Handle::new(topology, Arc::new(plan), controller.snapshot(start, fabric.mechanism()));
        let probes = handle.clone();
        let prober = Prober::start(fabric.network(), clock, fabric.may_probe(), move |report| probes.notify(Event::Probed { report }))?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut driver =
            Driver { fabric, controller, clock, ends, prober, feed, spent: Spent::default(), shown: start, told: BTreeMap::new() };
        let stopped = stop.clone();
        let thread = std::thread::Builder::new().name("controller".into()).spawn(move || {
            sys::realtime(10);
            while !stopped.load(Relaxed) {
                driver.step();
            }
            driver.fabric
        })?;
        Ok(Self { handle, first_cycle: start, stop, thread: Some(thread) })
    }

    /// Stops the control loop and gives the fabric back.
    pub fn stop(mut self) -> Option<KernelFabric> {
        self.halt()
    }

    fn halt(&mut self) -> Option<KernelFabric> {
        self.stop.store(true, Relaxed);
        // Wakes the thread.
        self.handle.notify(Event::Tick);
        self.thread.take().and_then(|t| t.join().ok())
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        drop(self.halt());
    }
}

/// Time spent in the parts of a cycle.
#[derive(Default)]
struct Spent {
    poll: Span,
    decide: Span,
}

struct Driver {
    fabric: KernelFabric,
    controller: Controller,
    clock: Clock,
    ends: Ends,
    prober: Prober,
    feed: Feed,
    spent: Spent,
    shown: Time,
    /// Failures that the log has told of, and why.
    told: BTreeMap<String, String>,
}

/// A snapshot is made at least so often while events come in.
const SHOW_EVERY: Span = Span::millis(20);

impl Driver {
    /// Waits for the next deadline or command, and does what it asks for.
    fn step(&mut self) {
        let deadline = self.controller.poll_timeout();
        let pause = deadline.map_or(Duration::from_millis(100), |t| t.since(self.clock.now()).std());
        match self.ends.commands.recv_timeout(pause) {
            Ok(command) => self.command(command),
            Err(mpsc::RecvTimeoutError::Timeout) => self.event(Event::Tick),
            Err(mpsc::RecvTimeoutError::Disconnected) => self.event(Event::Tick),
        }
        while let Ok(command) = self.ends.commands.try_recv() {
            self.command(command);
        }
        while let Some(action) = self.controller.poll_action() {
            self.act(action);
        }
        if self.clock.now().since(self.shown) >= SHOW_EVERY {
            self.show();
        }
    }

    fn command(&mut self, command: Command) {
        let answer = self.controller.handle(command.event, self.clock.now());
        if let Some(reply) = command.reply {
            // Whoever asked shall see what was done.
            self.show();
            let _ = reply.send(answer);
        } else if let Err(why) = answer {
            tracing::debug!("{why}");
        }
    }

    fn event(&mut self, event: Event) {
        if let Err(why) = self.controller.handle(event, self.clock.now()) {
            tracing::debug!("{why}");
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Observe => {
                (self.feed)().into_iter().for_each(|e| self.event(e));
                let begun = self.clock.now();
                let result = self.fabric.observe(begun);
                let seen = self.clock.now();
                self.event(Event::Observed { result });
                self.spent = Spent { poll: seen.since(begun), decide: self.clock.now().since(seen) };
            }
            Action::Apply { ops } => {
                let begun = self.clock.now();
                let results = self.fabric.apply(&ops, begun);
                let apply = self.clock.now().since(begun);
                self.event(Event::Applied { results });
                self.event(Event::CycleCost { poll: self.spent.poll, decide: self.spent.decide, apply });
                self.show();
            }
            Action::Probe { plane, input, output, dark_from, at } => {
                self.prober.request(ProbeRequest { plane, input, output, dark_from, at });
            }
            Action::Log { record } => {
                tracing::trace!(seq = record.seq, at = %record.at, "{:?}", record.what);
                self.tell(&record.what);
                // Nobody may be listening.
                let _ = self.ends.events.send(Arc::new(record));
            }
        }
    }

    /// What an operator must know goes to the log: a failure when it begins or changes, not every time that it is tried again.
    fn tell(&mut self, what: &What) {
        match what {
            What::Failed { what, why } if self.told.insert(what.clone(), why.clone()).as_ref() != Some(why) => {
                tracing::warn!("{what}: {why}");
            }
            What::PortFaulty { plane, rack, why } => tracing::warn!("the port of {rack} on plane {} is faulty: {why}", plane.0),
            _ => {}
        }
    }

    fn show(&mut self) {
        self.shown = self.clock.now();
        let snapshot = self.controller.snapshot(self.shown, self.fabric.mechanism());
        self.told.retain(|what, _| {
            let goes_on = snapshot.failures.iter().any(|f| f.what == *what);
            if !goes_on {
                tracing::debug!("{what}: well again");
            }
            goes_on
        });
        self.ends.snapshot.send_replace(Arc::new(snapshot));
    }
}
