//! A handle to a running controller: how the API, the traffic and the command line speak to it.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::sync::{broadcast, oneshot, watch};

use super::meter::LinkMeter;
use super::queue;
use super::settings::RunPlan;
use crate::control::record::{Record, Snapshot};
use crate::control::{Event, Rejected};
use crate::fabric::Uplink;
use crate::fabric::meter::Utilisation;
use crate::kernel::pulse::Pulse;
use crate::topology::Topology;
use crate::units::Time;

/// An event for the controller, and where its answer goes.
pub struct Command {
    /// What happened, or what is asked.
    pub event: Event,
    /// Receives the answer once the controller has taken or refused the event; `None` if no caller
    /// waits for it.
    pub reply: Option<oneshot::Sender<Result<(), Rejected>>>,
}

/// Speaks to a controller that runs on another thread. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    /// The network; it never changes.
    pub topology: Arc<Topology>,
    /// What the run was started with; the policy in force is the snapshot's.
    pub plan: Arc<RunPlan>,
    commands: queue::QueueSender<Command>,
    snapshot: watch::Receiver<Arc<Snapshot>>,
    events: broadcast::Sender<Arc<Record>>,
    meter: LinkMeter,
    ended: Arc<OnceLock<String>>,
    pulses: Arc<Mutex<Vec<(Pulse, String)>>>,
}

/// The controller's thread's ends of a [`Handle`].
pub struct HandlePeer {
    /// Commands, in order.
    pub commands: queue::QueueReceiver<Command>,
    /// Where a new snapshot is put.
    pub snapshot: watch::Sender<Arc<Snapshot>>,
    /// Where log lines go.
    pub events: broadcast::Sender<Arc<Record>>,
    /// What the links carry.
    pub meter: LinkMeter,
    ended: Arc<OnceLock<String>>,
    /// That of the control loop.
    pub pulse: Pulse,
}

impl HandlePeer {
    /// Says why the thread ends although it was not stopped; to be called before the other ends are
    /// dropped.
    pub fn say_why(&self, why: String) {
        let _ = self.ended.set(why);
    }
}

impl Handle {
    /// A handle, and the ends for the thread that runs the controller. `first` is a snapshot of the
    /// start, and `told` a number of events that come before anything reads them.
    pub fn new(
        topology: Arc<Topology>,
        plan: Arc<RunPlan>,
        first: Snapshot,
        told: usize,
    ) -> (Self, HandlePeer) {
        let (command_tx, command_rx) = queue::queue();
        let meter = LinkMeter::new(&topology, plan.policy.interval, first.now);
        let (snapshot_tx, snapshot_rx) = watch::channel(Arc::new(first));
        let (events, _) = broadcast::channel(4096 + told);
        let ended = Arc::new(OnceLock::new());
        let pulse = Pulse::default();
        let pulses = Arc::new(Mutex::new(vec![(pulse.clone(), "the controller".to_owned())]));
        let ends = HandlePeer {
            commands: command_rx,
            snapshot: snapshot_tx,
            events: events.clone(),
            meter: meter.clone(),
            ended: ended.clone(),
            pulse,
        };
        (
            Self {
                topology,
                plan,
                commands: command_tx,
                snapshot: snapshot_rx,
                events,
                meter,
                ended,
                pulses,
            },
            ends,
        )
    }

    /// The newest snapshot; it costs nothing and never waits.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.borrow().clone()
    }

    /// Watches for new snapshots.
    pub fn watch(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.snapshot.clone()
    }

    /// Why the controller decides nothing any more; `None` while it runs. O(1).
    pub fn ended(&self) -> Option<String> {
        let stopped = || {
            self.snapshot.has_changed().is_err().then(|| "the controller has stopped".to_owned())
        };
        self.ended.get().cloned().or_else(stopped)
    }

    /// Minds a thread by its pulse; `does` says what it does.
    pub fn mind(&self, pulse: Pulse, does: &str) {
        self.pulses.lock().push((pulse, format!("the thread that {does}")));
    }

    /// That the control loop or another thread hangs, if one does: it runs, and has not come round
    /// for seconds. O(threads).
    pub fn hangs(&self) -> Option<String> {
        let pulses = self.pulses.lock();
        let found = pulses.iter().find_map(|(p, who)| Some((who, p.hangs()?)));
        found.map(|(who, silent)| {
            format!("{who} hangs: it has done nothing for {} s", silent.0 / 1_000_000_000)
        })
    }

    /// What links have carried since `from` until the last cycle, and the zero of its times:
    /// `from`, or the start of the controller, if that was later. O(links).
    pub fn utilisation(&self, from: Time) -> (Time, Utilisation) {
        self.meter.since(from)
    }

    /// When the last cycle read the counters, and what each rack's link to the EPS had carried by
    /// then. O(racks).
    pub fn uplinks(&self) -> (Time, Vec<Uplink>) {
        self.meter.uplinks()
    }

    /// Log lines from now on.
    pub fn events(&self) -> broadcast::Receiver<Arc<Record>> {
        self.events.subscribe()
    }

    /// Tells the controller and waits for its answer.
    ///
    /// # Errors
    /// What the controller refused, or [`Rejected::Stopped`].
    pub async fn tell(&self, event: Event) -> Result<(), Rejected> {
        self.ask(event)?.await.unwrap_or(Err(Rejected::Stopped))
    }

    /// Tells the controller; its answer comes later. Once it is there, [`Handle::snapshot`] shows
    /// what was done.
    ///
    /// # Errors
    /// [`Rejected::Stopped`].
    pub fn ask(&self, event: Event) -> Result<oneshot::Receiver<Result<(), Rejected>>, Rejected> {
        let (tx, rx) = oneshot::channel();
        self.commands.send(Command { event, reply: Some(tx) }).map_err(|_| Rejected::Stopped)?;
        Ok(rx)
    }

    /// Tells the controller without waiting; nothing happens if it has stopped.
    pub fn notify(&self, event: Event) {
        let _ = self.commands.send(Command { event, reply: None });
    }
}
