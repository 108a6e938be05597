//! The thread that switches circuits whose changes the kernel cannot time by itself.
//!
//! It reads the clock and the circuits, computes what every port should do now, and changes what
//! differs: first it ends admission, then it changes the crossbar, then it begins admission. With
//! `netlink` it does all of this. With `timed`, BPF programs read the clock themselves, and the
//! thread only opens and closes the gates of queues whose packets wait for a circuit: no program
//! runs behind a queue. If it is late, the old circuit lasts longer and the new one is shorter;
//! both are recorded ([`CircuitSwitcher::late`]).

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::thread::JoinHandle;

use parking_lot::Mutex;

use super::admission::CircuitAdmission;
use super::parker::Parker;
use super::slots::Slots;
use crate::ids::{PlaneId, RackId};
use crate::network::EmulatedNetwork;
use crate::nl::{Netlink, REPLACE_FILTER};
use crate::tc::{self, Match};
use crate::topology::addresses::rack_net;
use crate::units::{Span, Time};
use crate::{Clock, sys};

/// Priority and node, on an OCS port, of the filter for the circuit's IP packets, which takes those
/// to the rack at the other end only. There is none in the dark.
pub const CIRCUIT: (u16, u32) = (1, tc::FIRST_NODE);
/// The same for the filter behind it, which takes IP packets that no circuit takes. They go back to
/// their ToR, are counted, and go on over the EPS. A packet that is so late that the port's next
/// circuit has light already must not use that circuit.
pub const LATE: (u16, u32) = (1, tc::LAST_NODE);
/// The same for the filter for frames that are not IP: probes, which must see where the light goes.
pub const LIGHT: (u16, u32) = (2, tc::SECOND_TABLE);

/// Target state of one OCS input: the rack of its output, and whether its ToR admits packets.
type PortTarget = (Option<RackId>, bool);
/// An OCS port: a plane and a rack.
type OcsPort = (usize, usize);
/// The state that was set last; `None` if it is not known.
type PortState = Option<PortTarget>;

struct SwitcherState {
    racks: usize,
    /// By plane * R + input: 1 + the output that the crossbar joins it to, 0 in the dark.
    lit: Vec<AtomicU32>,
    /// By plane * R + rack: whether its ToR admits to the plane.
    admits: Vec<AtomicBool>,
    /// Raised before each change and after it, so odd during a change.
    changes: AtomicU64,
    /// Ports that must be set again, because their state is not known any more.
    again: Mutex<BTreeSet<OcsPort>>,
    slots: Arc<Mutex<Slots>>,
    lateness: Mutex<Records>,
    /// Tells the thread to end.
    over: AtomicBool,
}

/// Number of changes whose lateness is remembered.
const REMEMBERED: usize = 4096;

/// The last changes of the thread.
#[derive(Default)]
struct Records {
    changes: u64,
    /// The last [`REMEMBERED`] ones, the oldest first.
    last: VecDeque<LateChange>,
}

impl Records {
    fn add(&mut self, late: LateChange) {
        self.changes += 1;
        if self.last.len() == REMEMBERED {
            self.last.pop_front();
        }
        self.last.push_back(late);
    }
}

/// A change that the thread made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateChange {
    /// The instant of the change, or the last one of several.
    pub due: Time,
    /// Time from then until the thread's last call into the kernel.
    pub by: Span,
}

/// Lateness of the thread's last 4,096 changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lateness {
    /// All instants at which it has changed ports.
    pub changes: u64,
    /// Median.
    pub p50: Span,
    /// 99th percentile.
    pub p99: Span,
    /// Maximum.
    pub max: Span,
}

/// Switches circuits by a thread; dropping this ends the thread.
pub struct CircuitSwitcher {
    handle: SwitcherHandle,
    thread: Option<JoinHandle<()>>,
}

/// A handle to the thread, for comparing its work with the kernel and for having it done again.
#[derive(Clone)]
pub struct SwitcherHandle {
    shared: Arc<SwitcherState>,
    parker: Parker,
    crossbars: bool,
    routes: bool,
}

impl SwitcherHandle {
    /// Whether filters that the thread replaces are the crossbar.
    pub fn has_crossbars(&self) -> bool {
        self.crossbars
    }

    /// Whether routes that come and go admit packets to circuits.
    pub fn has_routes(&self) -> bool {
        self.routes
    }

    fn at(&self, (plane, rack): (PlaneId, RackId)) -> usize {
        plane.index() * self.shared.racks + rack.index()
    }

    /// Whether the crossbar joins this input to an output.
    pub fn lit(&self, place: (PlaneId, RackId)) -> bool {
        self.shared.lit[self.at(place)].load(SeqCst) > 0
    }

    /// Whether the ToR admits packets to this plane.
    pub fn admits(&self, place: (PlaneId, RackId)) -> bool {
        self.shared.admits[self.at(place)].load(SeqCst)
    }

    /// Twice the number of changes so far; odd during a change.
    pub fn changes(&self) -> u64 {
        self.shared.changes.load(SeqCst)
    }

    /// Asks for a port to be set again.
    pub fn again(&self, (plane, rack): (PlaneId, RackId)) {
        self.shared.again.lock().insert((plane.index(), rack.index()));
        self.parker.wake();
    }
}

/// The thread: its sockets, and what it has set.
struct Worker {
    shared: Arc<SwitcherState>,
    clock: Clock,
    guard: Span,
    racks: usize,
    planes: usize,
    /// By plane; empty where programs are the crossbar.
    crossbars: Vec<(Netlink, Vec<u32>)>,
    /// By plane, then rack: whether the port may have a filter for a circuit's packets.
    circuits: Vec<Vec<bool>>,
    admission: CircuitAdmission,
    /// By plane, then rack.
    set: Vec<Vec<PortState>>,
    /// When anything was last changed.
    turned: Time,
    /// By plane, then rack: the rack to which its ToR admits packets.
    admits: Vec<Vec<Option<RackId>>>,
    /// By plane, then rack: a port that refused a change stays dark until then.
    retry: Vec<Vec<Time>>,
}

/// Delay before a port that refused a change is tried again; other ports do not wait for it.
const RETRY: Span = Span::millis(50);

/// The shared action of an OCS port in the dark; numbers are the namespace's own.
pub fn dark_action(rack: usize) -> u32 {
    1 + rack as u32
}

impl CircuitSwitcher {
    /// Starts the thread for a network whose queues and filters are set. It carries out `slots`.
    /// `crossbars`: it also changes the crossbars. A circuit's admission ends `guard` before the
    /// circuit.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn start(
        net: &EmulatedNetwork,
        admission: CircuitAdmission,
        crossbars: bool,
        guard: Span,
        slots: Arc<Mutex<Slots>>,
        clock: Clock,
    ) -> io::Result<Self> {
        let (racks, planes) = (net.topology.rack_count(), net.topology.planes.len());
        let shared = Arc::new(SwitcherState {
            racks,
            lit: (0..racks * planes).map(|_| AtomicU32::new(0)).collect(),
            admits: (0..racks * planes).map(|_| AtomicBool::new(false)).collect(),
            changes: AtomicU64::new(0),
            again: Mutex::default(),
            slots,
            lateness: Mutex::default(),
            over: AtomicBool::new(false),
        });
        let routes = admission.are_routes();
        let turned = net.ocs.iter().take(if crossbars { planes } else { 0 });
        let mut worker = Worker {
            shared: shared.clone(),
            clock,
            guard,
            racks,
            planes,
            crossbars: turned
                .map(|c| Ok((Netlink::open(c.node.ns.as_fd())?, c.ports.clone())))
                .collect::<io::Result<_>>()?,
            circuits: vec![vec![false; racks]; planes],
            admission,
            set: vec![vec![Some((None, false)); racks]; planes],
            turned: Time::ZERO,
            admits: vec![vec![None; racks]; planes],
            retry: vec![vec![Time::ZERO; racks]; planes],
        };
        let parker = Parker::default();
        let rung = parker.clone();
        let thread = std::thread::Builder::new().name("flip".into()).spawn(move || {
            sys::realtime(20);
            worker.run(&rung);
        })?;
        Ok(Self {
            handle: SwitcherHandle { shared, parker, crossbars, routes },
            thread: Some(thread),
        })
    }

    /// Whether the thread still changes circuits.
    pub fn is_alive(&self) -> bool {
        self.thread.as_ref().is_some_and(|t| !t.is_finished())
    }

    /// Wakes the thread because its slots have changed.
    pub fn wake(&self) {
        self.handle.parker.wake();
    }

    /// A handle to the thread.
    pub fn handle(&self) -> SwitcherHandle {
        self.handle.clone()
    }

    /// For probes: whether the crossbar connects their ports now.
    pub fn light(&self) -> super::prober::MaySend {
        let shared = self.handle.shared.clone();
        Arc::new(move |r| {
            shared.lit[r.plane.index() * shared.racks + r.input.index()].load(Acquire)
                == 1 + r.output.0
        })
    }

    /// The last 4,096 changes, the oldest first.
    pub fn late(&self) -> Vec<LateChange> {
        self.handle.shared.lateness.lock().last.iter().copied().collect()
    }

    /// Lateness of its changes. O(n log n) for those that are remembered.
    pub fn lateness(&self) -> Lateness {
        let changes = self.handle.shared.lateness.lock().changes;
        let mut by: Vec<Span> = self.late().into_iter().map(|l| l.by).collect();
        by.sort_unstable();
        let at = |percent: usize| {
            by.get((by.len() * percent / 100).min(by.len().saturating_sub(1)))
                .copied()
                .unwrap_or_default()
        };
        Lateness { changes, p50: at(50), p99: at(99), max: at(100) }
    }
}

impl Drop for CircuitSwitcher {
    fn drop(&mut self) {
        self.handle.shared.over.store(true, Relaxed);
        self.handle.parker.wake();
        if let Some(t) = self.thread.take() {
            let _ = t.join();
        }
    }
}

impl Worker {
    fn run(&mut self, parker: &Parker) {
        while !self.shared.over.load(Relaxed) {
            let next = self.turn();
            let ahead = next.saturating_sub(Span::micros(200));
            let pause =
                ahead.since(self.clock.now()).std().min(std::time::Duration::from_secs(3600));
            if !parker.wait(pause) {
                self.clock.sleep_until(next);
            }
        }
    }

    /// Sets the kernel to what should be now; returns when the next change is due.
    fn turn(&mut self) -> Time {
        let now = self.clock.now();
        self.forget();
        let (wanted, last, next) = self.wishes(now);
        let all = (0..self.planes).flat_map(|p| (0..self.racks).map(move |r| (p, r)));
        let (due, waiting): (Vec<_>, Vec<_>) = all
            .filter(|&(p, r)| self.set[p][r] != Some(wanted[p][r]))
            .partition(|&(p, r)| self.retry[p][r] <= now);
        let mut next = waiting.iter().map(|&(p, r)| self.retry[p][r]).fold(next, Time::min);
        if due.is_empty() {
            return next;
        }
        self.shared.changes.fetch_add(1, SeqCst);
        let refused = self.change(&wanted, &due);
        for &(p, r) in &due {
            self.shared.admits[p * self.racks + r].store(self.admits[p][r].is_some(), SeqCst);
        }
        self.shared.changes.fetch_add(1, SeqCst);
        let then = self.clock.now();
        for &(p, r) in &due {
            self.set[p][r] = Some(wanted[p][r]);
            if refused.iter().all(|f| f.0 != (p, r)) {
                self.retry[p][r] = Time::ZERO;
            }
        }
        for ((p, r), why) in refused {
            // Logged once, not at every try.
            if self.retry[p][r] == Time::ZERO {
                tracing::warn!("the circuit of rack {r} on plane {p} cannot be changed: {why}");
            }
            self.set[p][r] = None;
            self.retry[p][r] = then + RETRY;
            next = next.min(self.retry[p][r]);
        }
        // A change that came by an order, not by an instant, cannot be late.
        if last > self.turned {
            self.shared.lateness.lock().add(LateChange { due: last, by: then.since(last) });
        }
        self.turned = now;
        next
    }

    /// Marks what another process has changed, so that it is set again.
    fn forget(&mut self) {
        for (p, r) in std::mem::take(&mut *self.shared.again.lock()) {
            (self.set[p][r], self.admits[p][r], self.retry[p][r]) = (None, None, Time::ZERO);
            self.circuits[p][r] = true;
        }
    }

    /// The target state of every port at `now`, the last instant that changed it, and the next one.
    fn wishes(&self, now: Time) -> (Vec<Vec<PortTarget>>, Time, Time) {
        let slots = self.shared.slots.lock();
        let mut wanted = vec![vec![(None, false); self.racks]; self.planes];
        let (mut last, mut next) = (Time::ZERO, Time::MAX);
        for r in slots.all() {
            let closes =
                if r.until == Time::MAX { Time::MAX } else { r.until.saturating_sub(self.guard) };
            if r.is_up(now) {
                wanted[r.plane.index()][r.input.index()] = (Some(r.output), now < closes);
            }
            for edge in [r.up_from, closes, r.until] {
                if edge <= now {
                    last = last.max(edge);
                } else {
                    next = next.min(edge);
                }
            }
        }
        (wanted, last, next)
    }

    /// Changes ports: admission ends, crossbar, admission begins. Returns the ports that refused.
    fn change(
        &mut self,
        wanted: &[Vec<PortTarget>],
        changes: &[OcsPort],
    ) -> Vec<(OcsPort, io::Error)> {
        let admitted = |w: PortTarget| w.0.filter(|_| w.1);
        for &(p, r) in changes {
            let stays = admitted(wanted[p][r]);
            if let Some(to) = self.admits[p][r].filter(|&to| Some(to) != stays) {
                // If admission cannot be ended, its link is gone, and admission with it.
                if let Err(e) = self.admission.shut(p, r, to) {
                    tracing::warn!("the way of rack {r} over plane {p} was gone: {e}");
                }
                self.admits[p][r] = None;
            }
        }
        let mut refused = self.flip(wanted, changes);
        for &(p, r) in changes {
            let fine = refused.iter().all(|f| f.0 != (p, r));
            if let Some(to) =
                admitted(wanted[p][r]).filter(|&to| fine && self.admits[p][r] != Some(to))
            {
                match self.admission.open(p, r, to) {
                    Ok(()) => self.admits[p][r] = Some(to),
                    Err(e) => refused.push(((p, r), e)),
                }
            }
        }
        refused
    }

    /// Sends all crossbar changes of a plane in one datagram, first those that make ports dark: no
    /// output is ever lit from two inputs. Returns the ports that refused.
    fn flip(
        &mut self,
        wanted: &[Vec<PortTarget>],
        changes: &[OcsPort],
    ) -> Vec<(OcsPort, io::Error)> {
        let mut refused = vec![];
        let planes: BTreeSet<usize> = changes.iter().map(|c| c.0).collect();
        for p in planes {
            let Some((nl, ports)) = self.crossbars.get_mut(p) else { continue };
            let turned = changes
                .iter()
                .filter(|c| c.0 == p && self.set[p][c.1].map(|s| s.0) != Some(wanted[p][c.1].0));
            let mut turned: Vec<usize> = turned.map(|c| c.1).collect();
            turned.sort_by_key(|&r| wanted[p][r].0.is_some());
            // Messages, each with its port: first removed filters of circuits, then the light, then
            // added filters of circuits.
            let mut messages = vec![];
            for &r in turned.iter().filter(|&&r| self.circuits[p][r]) {
                messages.push((r, (tc::remove_filter(ports[r], CIRCUIT), 0)));
            }
            let removed = messages.len();
            for &r in &turned {
                let (out, action) =
                    wanted[p][r].0.map_or((ports[r], dark_action(r)), |to| (ports[to.index()], 0));
                messages.push((
                    r,
                    (tc::redirect(ports[r], LIGHT, Match::ANY, out, action), REPLACE_FILTER),
                ));
            }
            for (r, to) in turned.iter().filter_map(|&r| Some((r, wanted[p][r].0?))) {
                messages.push((
                    r,
                    (
                        tc::redirect(
                            ports[r],
                            CIRCUIT,
                            Match::to(rack_net(to), 16),
                            ports[to.index()],
                            0,
                        ),
                        REPLACE_FILTER,
                    ),
                ));
            }
            let (racks, messages): (Vec<usize>, Vec<_>) = messages.into_iter().unzip();
            match nl.send_each(messages) {
                Ok(some) => {
                    // A filter that is gone already need not be removed.
                    let real = some
                        .into_iter()
                        .filter(|(k, why)| *k >= removed || why.kind() != io::ErrorKind::NotFound);
                    for (k, why) in real {
                        if refused.iter().all(|f: &(OcsPort, io::Error)| f.0 != (p, racks[k])) {
                            refused.push(((p, racks[k]), why));
                        }
                    }
                }
                Err(e) => refused.extend(
                    turned.iter().map(|&r| ((p, r), io::Error::new(e.kind(), e.to_string()))),
                ),
            }
            for &r in &turned {
                self.circuits[p][r] = wanted[p][r].0.is_some();
                let lit = wanted[p][r].0.filter(|_| refused.iter().all(|f| f.0 != (p, r)));
                self.shared.lit[p * self.racks + r].store(lit.map_or(0, |o| 1 + o.0), Release);
            }
        }
        refused
    }
}
