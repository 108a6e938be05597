//! The thread that looks at what waits, and tells the controller.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;

use super::{Hold, StallKey, StallNews, Stalls, WaitingBytes};
use crate::coflows::network::Service;
use crate::coflows::priority::LAST;
use crate::control::record::{Record, RecordedEvent, Snapshot};
use crate::control::{Event, Trouble};
use crate::ids::{CoflowId, HostId, PlaneId, RackId};
use crate::kernel::Clock;
use crate::kernel::diag::SocketQueues;
use crate::kernel::pulse::Pulse;
use crate::kernel::traffic::{PORT, Traffic};
use crate::runtime::handle::Handle;
use crate::topology::addresses::{host_of_ip, rack_of_ip};
use crate::units::{Bytes, Span, Time};

/// Between two looks.
const EVERY: Duration = Duration::from_millis(500);
/// A pause lasts at least this many times as long as the look before it.
const TIMES: u32 = 20;
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(3);
/// How long circuits that have ended are remembered.
const KEPT: Span = Span::secs(5);

/// The thread; dropping this ends it.
pub struct StallsWatch {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl StallsWatch {
    /// Starts it. `hosts` are the hosts' namespaces; what has stalled for longer than `patience`,
    /// if there is one, is broken off.
    ///
    /// # Errors
    /// No thread can be had.
    pub fn start(
        handle: Handle,
        traffic: Arc<Traffic>,
        hosts: Arc<Vec<OwnedFd>>,
        clock: Clock,
        patience: Option<Span>,
    ) -> io::Result<Self> {
        let waits = handle.plan.run.admit.waits();
        let mut work = StallsThread {
            stalls: Stalls::new(handle.topology.clone(), patience),
            lights: Lights { news: waits.then(|| handle.events()), all: BTreeMap::new() },
            strict: handle.plan.run.network.kind.service() == Service::Strict,
            queues: hosts.iter().map(|_| None).collect(),
            handle,
            traffic,
            hosts,
            clock,
            hangs: false,
        };
        let (stop, stopped) = mpsc::channel();
        let pulse = Pulse::default();
        pulse.beat();
        work.handle.mind(pulse.clone(), "looks for bytes that are stuck");
        let thread = std::thread::Builder::new().name("stalls".into()).spawn(move || {
            let mut pause = EVERY;
            // Nothing is ever sent: the other end goes when the thread shall end.
            while stopped.recv_timeout(pause) == Err(mpsc::RecvTimeoutError::Timeout) {
                pulse.beat();
                let begun = Instant::now();
                work.look();
                pause = EVERY.max(begun.elapsed() * TIMES).min(LONGEST);
            }
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }

    /// Whether the thread still looks.
    pub fn is_alive(&self) -> bool {
        self.thread.as_ref().is_some_and(|t| !t.is_finished())
    }
}

impl Drop for StallsWatch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(t) = self.thread.take() {
            let _ = t.join();
        }
    }
}

struct StallsThread {
    stalls: Stalls,
    lights: Lights,
    /// Ports serve by strict priority.
    strict: bool,
    /// By host: asks it for its connections; opened when that is first needed.
    queues: Vec<Option<SocketQueues>>,
    handle: Handle,
    traffic: Arc<Traffic>,
    hosts: Arc<Vec<OwnedFd>>,
    clock: Clock,
    /// The control loop hung at the last look.
    hangs: bool,
}

impl StallsThread {
    fn look(&mut self) {
        let hangs = self.handle.hangs();
        if let Some(why) = hangs.as_ref().filter(|_| !self.hangs) {
            tracing::error!("{why}");
        }
        self.hangs = hangs.is_some();
        let mut all = self.sent();
        self.connections(&mut all);
        let now = self.clock.now();
        self.lights.hear(now);
        let lights = &self.lights;
        for word in self.stalls.look(now, &all, |i, j, from, to| lights.between(i, j, from, to)) {
            match word {
                StallNews::Stalled(id, why) => self.tell(id, Some(why)),
                StallNews::Moves(id) => self.tell(id, None),
                StallNews::Overdue(id, why) if self.traffic.carries(id) => {
                    self.traffic.give_up(id, why)
                }
                StallNews::Overdue(..) => {}
            }
        }
    }

    fn tell(&self, id: CoflowId, why: Option<String>) {
        self.handle.notify(Event::Trouble { what: Trouble::Carry(id), why });
    }

    /// What Heliostat itself sends.
    fn sent(&self) -> Vec<WaitingBytes> {
        let (mut all, waits) = (vec![], self.lights.news.is_some());
        self.traffic.each_open(|f| {
            let racks = [f.spec.from, f.spec.to].map(|h| self.handle.topology.rack_of(h));
            let held = waits && f.elephant && racks[0] != racks[1];
            all.push(WaitingBytes {
                key: StallKey::Flow(f.coflow, f.flow),
                coflow: f.coflow,
                ends: (f.spec.from, f.spec.to),
                waits: Bytes(f.spec.bytes.0.saturating_sub(f.received.0)),
                moved: (f.received.0, f.acknowledged),
                priority: if self.strict { f.priority } else { 0 },
                hold: if held { Hold::Circuit } else { Hold::No },
            });
        });
        all
    }

    /// Connections of other programs between racks for which a coflow was declared and is open.
    fn connections(&mut self, all: &mut Vec<WaitingBytes>) {
        let snapshot = self.handle.snapshot();
        let pairs = self.declared(&snapshot);
        let topology = self.handle.topology.clone();
        let (strict, waits) = (self.strict, self.lights.news.is_some());
        let senders: std::collections::BTreeSet<RackId> = pairs.keys().map(|p| p.0).collect();
        for from in senders.into_iter().flat_map(|r| topology.hosts_of(r)).map(|h| h.id) {
            let queues = &mut self.queues[from.index()];
            if queues.is_none() {
                let opened = SocketQueues::open(self.hosts[from.index()].as_fd());
                *queues = opened
                    .map(SocketQueues::with_beginning)
                    .inspect_err(|e| tracing::debug!("{e}"))
                    .ok();
            }
            let Some(queues) = queues else { continue };
            let read = queues.read(true, |c| {
                let pair = rack_of_ip(&topology, c.to).map(|to| (topology.rack_of(from), to));
                let Some(&coflow) =
                    pair.and_then(|p| pairs.get(&p)).filter(|_| c.waits > 0 && c.port != PORT)
                else {
                    return;
                };
                all.push(WaitingBytes {
                    key: StallKey::Connection(from, c.cookie),
                    coflow,
                    ends: (from, host_of_ip(&topology, c.to).unwrap_or(HostId(u32::MAX))),
                    waits: Bytes(c.waits),
                    moved: (c.acknowledged, 0),
                    priority: if strict { LAST } else { 0 },
                    hold: if c.tries == 0 {
                        Hold::Reader
                    } else if waits {
                        Hold::Circuit
                    } else {
                        Hold::No
                    },
                });
            });
            if let Err(e) = read {
                tracing::debug!("{}: {e}", topology.host_name(from));
            }
        }
        all.retain(|w| w.ends.1 != HostId(u32::MAX));
    }

    /// The oldest declared coflow that is open, by its pairs of racks.
    fn declared(&self, snapshot: &Snapshot) -> BTreeMap<(RackId, RackId), CoflowId> {
        let mut pairs = BTreeMap::new();
        let live = &snapshot.coflows.live;
        for id in live.ids().filter(|id| !self.traffic.carries(*id)) {
            let Some(view) = live.get(id).filter(|v| v.closed().is_none() && v.received < v.bytes)
            else {
                continue;
            };
            for p in view.pairs.iter() {
                pairs.entry((p.from, p.to)).or_insert(id);
            }
        }
        pairs
    }
}

/// When there was light, by the events of the log. Needed where flows wait for it.
struct Lights {
    news: Option<Receiver<Arc<Record>>>,
    /// By plane, input and when it begins: output and end.
    all: BTreeMap<(PlaneId, RackId, Time), (RackId, Time)>,
}

impl Lights {
    fn hear(&mut self, now: Time) {
        let Some(news) = &mut self.news else { return };
        loop {
            match news.try_recv().map(|r| r.what.clone()) {
                Ok(RecordedEvent::CircuitSet { plane, input, output, up_from, until, .. }) => {
                    self.all.insert((plane, input, up_from), (output, until.unwrap_or(Time::MAX)));
                }
                Ok(RecordedEvent::CircuitEnd { plane, input, up_from, until }) => {
                    self.all.entry((plane, input, up_from)).and_modify(|c| c.1 = until);
                }
                Ok(_) => {}
                // What was missed may have been the end of any of them.
                Err(TryRecvError::Lagged(_)) => self.all.clear(),
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        self.all.retain(|_, c| c.1.0.saturating_add(KEPT.0) >= now.0);
    }

    /// How long there was light from a rack to another between two times.
    fn between(&self, input: RackId, output: RackId, from: Time, to: Time) -> Span {
        let own = self.all.iter().filter(|(k, c)| k.1 == input && c.0 == output);
        Span(
            own.map(|(k, c)| c.1.min(to).since(k.2.max(from)).0).sum::<u64>().min(to.since(from).0),
        )
    }
}
