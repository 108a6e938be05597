//! The `netlink` mechanism: u32 and mirred filters as crossbar, routes as admission, a thread that wakes for every change.
//!
//! For kernels that refuse bpf(), such as a user namespace without root. The thread looks at the clock and at the circuits,
//! works out what every port should do now, and changes what differs: routes away first, then the crossbar, then routes in.
//! What it is late by lengthens the old circuit and shortens the new one; both are recorded ([`Switched::lateness`]).

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;

use hdrhistogram::Histogram;
use netlink_packet_route::RouteNetlinkMessage as Message;

use super::msg::{self, End, Route};
use super::network::{Network, Node};
use super::nl::{NEW, Netlink, REPLACE_FILTER, Request};
use super::slots::Slots;
use super::tc::{self, Match};
use super::{Clock, layout, queues, sys};
use crate::coflows::elephants::{Admit, ELEPHANT_DSCP};
use crate::demand::DemandMatrix;
use crate::fabric::{OpResult, PortCounters};
use crate::ids::{PlaneId, RackId};
use crate::plan::Op;
use crate::topology::PAYLOAD;
use crate::topology::Topology;
use crate::topology::addresses::rack_net;
use crate::units::{Span, Time};

/// The routing table of circuits.
pub const TABLE: u32 = 100;
/// The rule's place among the node's rules.
pub const RULE_PRIORITY: u32 = 1000;
/// Name of the sink's near end: packets that go nowhere are sent there, and counted.
pub const SINK_NAME: &str = "sink0";
/// Indexes of the sink's two ends, far above those that the kernel hands out in somebody else's nodes.
const SINK: (u32, u32) = (1_000_000_000, 1_000_000_001);
/// Priorities of the filters on an OCS port: the circuit, and a filter that is never reached and keeps the dark action alive.
const LIGHT: (u16, u32) = (1, tc::FIRST_NODE);
const KEEP: (u16, u32) = (9, 0);

/// What a circuit's input does at an instant: its output's rack, and whether its ToR admits.
type Wish = (Option<RackId>, bool);
/// A plane and a rack.
type Place = (usize, usize);
/// What was set last; `None` if that is not known.
type Known = Option<Wish>;

struct Shared {
    /// By plane * R + input: 1 + the output that the crossbar joins it to, 0 in the dark.
    lit: Vec<AtomicU32>,
    slots: Mutex<Slots>,
    lateness: Mutex<Histogram<u64>>,
}

/// The flip thread, and sockets to read counters with.
pub struct Switched {
    shared: Arc<Shared>,
    clock: Clock,
    wake: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The thread's own view: what it set last, and sockets of its own.
struct Flipper {
    shared: Arc<Shared>,
    clock: Clock,
    guard: Span,
    racks: usize,
    /// By plane.
    ocs: Vec<(Netlink, Vec<u32>)>,
    /// By rack.
    tors: Vec<(Netlink, Vec<u32>)>,
    /// By plane, then rack.
    set: Vec<Vec<Known>>,
    /// When something was last changed.
    turned: Time,
    /// By plane, then rack: the route by which its ToR admits.
    routes: Vec<Vec<Option<RackId>>>,
    /// By plane, then rack: a port that refused a change is left alone, dark, until then.
    retry: Vec<Vec<Time>>,
}

/// A port that refused a change is tried again so much later; the others do not wait for it.
const RETRY: Span = Span::millis(50);

impl Switched {
    /// Sets queues, filters and rules up and starts the thread.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn install(net: &mut Network, admit: Admit, clock: Clock) -> io::Result<Self> {
        let topology = net.topology.clone();
        let racks = topology.rack_count();
        let tos = (admit != Admit::All).then_some(ELEPHANT_DSCP << 2);
        for (r, tor) in net.tors.iter_mut().enumerate() {
            add_sink(&mut tor.node, &net.mark)?;
            let mut v = queues::tor_eps_port(tor.eps, &topology, r);
            for (p, &link) in topology.planes.iter().zip(&tor.ocs) {
                v.extend(queues::ocs_port(link, p.rate, r, racks, true));
                v.extend(only_own(link, RackId::from(r)));
            }
            v.push((msg::rule(tos, TABLE, RULE_PRIORITY), NEW));
            tor.node.send(v)?;
        }
        let mut flipper = Flipper {
            shared: Arc::new(Shared {
                lit: (0..racks * topology.planes.len()).map(|_| AtomicU32::new(0)).collect(),
                slots: Mutex::new(Slots::new(racks, topology.planes.len(), super::guard(&topology))),
                lateness: Mutex::new(Histogram::new_with_bounds(1, 60_000_000_000, 3).map_err(io::Error::other)?),
            }),
            clock,
            guard: super::guard(&topology),
            racks,
            ocs: vec![],
            tors: vec![],
            set: vec![vec![Some((None, false)); racks]; topology.planes.len()],
            turned: Time::ZERO,
            routes: vec![vec![None; racks]; topology.planes.len()],
            retry: vec![vec![Time::ZERO; racks]; topology.planes.len()],
        };
        for core in &mut net.ocs {
            let mut v = vec![];
            for (r, &port) in core.ports.iter().enumerate() {
                v.push((tc::clsact(port), NEW));
                v.push((tc::redirect(port, LIGHT, Match::ANY, port, dark_action(r)), NEW));
                v.push((tc::redirect(port, KEEP, Match::ANY, port, dark_action(r)), NEW));
            }
            core.node.send(v)?;
            flipper.ocs.push((Netlink::open(core.node.ns.as_fd())?, core.ports.clone()));
        }
        for tor in &net.tors {
            flipper.tors.push((Netlink::open(tor.node.ns.as_fd())?, tor.ocs.clone()));
        }
        let shared = flipper.shared.clone();
        let (wake, woken) = mpsc::channel();
        let thread = std::thread::Builder::new().name("flip".into()).spawn(move || {
            sys::realtime(20);
            flipper.run(&woken);
        })?;
        Ok(Self { shared, clock, wake: Some(wake), thread: Some(thread) })
    }

    /// Carries out operations in order.
    pub fn apply_all(&mut self, ops: &[Op]) -> Vec<OpResult> {
        let results = self.shared.slots.lock().expect("no panic in the slots").apply_all(ops, || self.clock.now(), |_, _, _| {});
        if let Some(w) = &self.wake {
            let _ = w.send(());
        }
        results
    }

    /// What the slots hold, without what has ended.
    pub fn programmed(&self, now: Time) -> crate::circuits::timetable::Timetable {
        self.shared.slots.lock().expect("no panic in the slots").programmed(now)
    }

    /// Says whether the crossbar joins a probe's ports now.
    pub fn light(&self, racks: usize) -> super::prober::MaySend {
        let shared = self.shared.clone();
        Arc::new(move |r| shared.lit[r.plane.index() * racks + r.input.index()].load(Acquire) == 1 + r.output.0)
    }

    /// How late changes were made: median, 99th percentile and maximum.
    pub fn lateness(&self) -> [Span; 3] {
        let h = self.shared.lateness.lock().expect("no panic in the histogram");
        [h.value_at_quantile(0.5), h.value_at_quantile(0.99), h.max()].map(Span)
    }

    /// Reads the classes' and filters' counters: bytes sent, bytes crossed, and every port's counters.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn counters(&mut self, net: &mut Network) -> io::Result<(DemandMatrix, DemandMatrix, Vec<Vec<PortCounters>>)> {
        let racks = net.topology.rack_count();
        let (mut sent, mut crossed) = (DemandMatrix::zero(racks), DemandMatrix::zero(racks));
        let mut ports = vec![vec![PortCounters::default(); racks]; net.ocs.len()];
        for (r, tor) in net.tors.iter_mut().enumerate() {
            let from = RackId::from(r);
            class_bytes(&mut tor.node.netlink, tor.eps, racks, |to, c| sent.add(from, to, c.bytes))?;
            for (p, &link) in tor.ocs.iter().enumerate() {
                class_bytes(&mut tor.node.netlink, link, racks, |to, c| {
                    sent.add(from, to, c.bytes);
                    crossed.add(from, to, c.bytes);
                    ports[p][r].crossed_bytes += c.bytes;
                    ports[p][r].crossed_packets += u64::from(c.packets);
                })?;
                let strays = filter_packets(&mut tor.node.netlink, link, STRAYS)?;
                ports[p][r].misdelivered = strays;
            }
        }
        for (p, core) in net.ocs.iter_mut().enumerate() {
            for (r, &port) in core.ports.iter().enumerate() {
                let late = filter_packets(&mut core.node.netlink, port, KEEP)?;
                ports[p][r].late_packets = late;
                ports[p][r].crossed_packets = ports[p][r].crossed_packets.saturating_sub(late);
            }
        }
        Ok((sent, crossed, ports))
    }
}

impl Drop for Switched {
    fn drop(&mut self) {
        drop(self.wake.take());
        if let Some(t) = self.thread.take() {
            let _ = t.join();
        }
    }
}

/// The shared action of an OCS port in the dark; numbers are the namespace's own.
fn dark_action(rack: usize) -> u32 {
    1 + rack as u32
}

/// A pair of links whose far end nobody listens on.
fn add_sink(node: &mut Node, mark: &str) -> io::Result<()> {
    let end = |name, index, last| End { name, ns: None, index, mac: [2, 0, 0, 0xee, 0, last] };
    node.send(vec![
        (msg::veth(&end(SINK_NAME, SINK.0, 0), &end("sink1", SINK.1, 1)), NEW),
        (msg::alias(SINK.0, mark), 0),
        (msg::up(SINK.1), 0),
    ])
}

/// Priority of the filter for what is not for this rack.
const STRAYS: (u16, u32) = (3, 0);

/// On a ToR's OCS port: packets for the own rack pass, and so do those from it, which the OCS sent back; other IP packets go to the
/// sink. They must not reach the routes, which would carry them to their rack after all, over the EPS, and hide the fault.
fn only_own(link: u32, rack: RackId) -> [Request; 4] {
    let net = rack_net(rack);
    let ip = Match { offset: 0, value: 0x4000_0000, mask: 0xf000_0000 };
    [
        (tc::clsact(link), NEW),
        (tc::classify(link, tc::INGRESS, 1, Match::to(net, 16), 1), NEW),
        (tc::classify(link, tc::INGRESS, 2, Match::from(net, 16), 1), NEW),
        (tc::redirect(link, STRAYS, ip, SINK.0, 1), NEW),
    ]
}

pub(super) fn class_bytes(nl: &mut Netlink, link: u32, racks: usize, mut each: impl FnMut(RackId, tc::Counters)) -> io::Result<()> {
    nl.dump(tc::class_dump(link), |m| {
        if let Message::NewTrafficClass(t) = &m {
            let mut c = tc::counters(t);
            // Classes count frames with their headers. Their packets are a 32-bit number, which wraps: as if all were full.
            c.bytes = (u128::from(c.bytes) * u128::from(PAYLOAD.0) / u128::from(PAYLOAD.1)) as u64;
            let minor = (c.handle & 0xffff) as usize;
            if let Some(to) = minor.checked_sub(usize::from(queues::rack_class(0))).filter(|&j| j < racks) {
                each(RackId::from(to), c);
            }
        }
    })
}

fn filter_packets(nl: &mut Netlink, link: u32, (priority, _): (u16, u32)) -> io::Result<u64> {
    let mut packets = 0;
    nl.dump(tc::ingress_filter_dump(link), |m| {
        if let Message::NewTrafficFilter(t) = &m
            && (t.header.info >> 16) as u16 == priority
        {
            packets = packets.max(tc::action_packets(t));
        }
    })?;
    Ok(packets)
}

impl Flipper {
    fn run(&mut self, woken: &mpsc::Receiver<()>) {
        loop {
            let next = self.turn();
            let ahead = next.saturating_sub(Span::micros(200));
            let pause = ahead.since(self.clock.now()).std().min(std::time::Duration::from_secs(3600));
            match woken.recv_timeout(pause) {
                Ok(()) => while woken.try_recv().is_ok() {},
                Err(mpsc::RecvTimeoutError::Timeout) => self.clock.sleep_until(next),
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Brings the kernel to what should be now; returns when something changes next.
    fn turn(&mut self) -> Time {
        let now = self.clock.now();
        let (wanted, last, next) = self.wishes(now);
        let all = (0..self.ocs.len()).flat_map(|p| (0..self.racks).map(move |r| (p, r)));
        let (due, waiting): (Vec<_>, Vec<_>) =
            all.filter(|&(p, r)| self.set[p][r] != Some(wanted[p][r])).partition(|&(p, r)| self.retry[p][r] <= now);
        let mut next = waiting.iter().map(|&(p, r)| self.retry[p][r]).fold(next, Time::min);
        if due.is_empty() {
            return next;
        }
        let refused = self.change(&wanted, &due);
        let then = self.clock.now();
        for &(p, r) in &due {
            self.set[p][r] = Some(wanted[p][r]);
        }
        for ((p, r), why) in refused {
            tracing::warn!("the circuit of rack {r} on plane {p} cannot be changed: {why}");
            self.set[p][r] = None;
            self.retry[p][r] = then + RETRY;
            next = next.min(self.retry[p][r]);
        }
        // A change that an order brought, not an instant, cannot be late.
        if last > self.turned
            && let Ok(mut h) = self.shared.lateness.lock()
        {
            h.saturating_record(then.since(last).0);
        }
        self.turned = now;
        next
    }

    /// What every port should do at `now`, the last instant that changed that, and the next.
    fn wishes(&self, now: Time) -> (Vec<Vec<Wish>>, Time, Time) {
        let slots = self.shared.slots.lock().expect("no panic in the slots");
        let mut wanted = vec![vec![(None, false); self.racks]; self.ocs.len()];
        let (mut last, mut next) = (Time::ZERO, Time::MAX);
        for r in slots.all() {
            let closes = if r.until == Time::MAX { Time::MAX } else { r.until.saturating_sub(self.guard) };
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

    /// Changes ports: routes away, the crossbar, routes in. Gives those that refused.
    fn change(&mut self, wanted: &[Vec<Wish>], changes: &[Place]) -> Vec<(Place, io::Error)> {
        let admitted = |w: Wish| w.0.filter(|_| w.1);
        for &(p, r) in changes {
            let stays = admitted(wanted[p][r]);
            if let Some(to) = self.routes[p][r].filter(|&to| Some(to) != stays) {
                let away = self.route(p, r, to).delete();
                // A route that cannot be deleted has gone with its link.
                if let Err(e) = self.tors[r].0.send(vec![(away, 0)]) {
                    tracing::warn!("the route of rack {r} over plane {p} was gone: {e}");
                }
                self.routes[p][r] = None;
            }
        }
        let mut refused = self.flip(wanted, changes);
        for &(p, r) in changes {
            let fine = refused.iter().all(|f| f.0 != (p, r));
            if let Some(to) = admitted(wanted[p][r]).filter(|&to| fine && self.routes[p][r] != Some(to)) {
                let open = self.route(p, r, to).add();
                match self.tors[r].0.send(vec![(open, super::nl::REPLACE)]) {
                    Ok(()) => self.routes[p][r] = Some(to),
                    Err(e) => refused.push(((p, r), e)),
                }
            }
        }
        refused
    }

    /// All crossbar changes of a plane in one datagram, darkness first: no output is ever lit from two inputs. Gives the ports that
    /// refused.
    fn flip(&mut self, wanted: &[Vec<Wish>], changes: &[Place]) -> Vec<(Place, io::Error)> {
        let mut refused = vec![];
        let planes: BTreeSet<usize> = changes.iter().map(|c| c.0).collect();
        for p in planes {
            let (nl, ports) = &mut self.ocs[p];
            let turned = changes.iter().filter(|c| c.0 == p && self.set[p][c.1].map(|s| s.0) != Some(wanted[p][c.1].0));
            let mut turned: Vec<usize> = turned.map(|c| c.1).collect();
            turned.sort_by_key(|&r| wanted[p][r].0.is_some());
            let way = |r: usize| wanted[p][r].0.map_or((ports[r], dark_action(r)), |to| (ports[to.index()], 0));
            let messages =
                turned.iter().map(|&r| (tc::redirect(ports[r], LIGHT, Match::ANY, way(r).0, way(r).1), REPLACE_FILTER)).collect();
            match nl.send_each(messages) {
                Ok(some) => refused.extend(some.into_iter().map(|(k, why)| ((p, turned[k]), why))),
                Err(e) => refused.extend(turned.iter().map(|&r| ((p, r), io::Error::new(e.kind(), e.to_string())))),
            }
            for &r in &turned {
                let lit = wanted[p][r].0.filter(|_| refused.iter().all(|f| f.0 != (p, r)));
                self.shared.lit[p * self.racks + r].store(lit.map_or(0, |o| 1 + o.0), Release);
            }
        }
        refused
    }

    fn route(&self, plane: usize, rack: usize, to: RackId) -> Route<'static> {
        Route {
            to: (rack_net(to), 16),
            via: Some(layout::ocs_neighbour(to.index())),
            link: self.tors[rack].1[plane],
            table: Some(TABLE),
            congestion: None,
        }
    }
}

/// Whether this process may make the links, queues, filters and rules that the mechanism needs.
///
/// # Errors
/// What the kernel said.
pub fn probe() -> io::Result<()> {
    let plane = crate::topology::Plane {
        id: PlaneId(0),
        rate: crate::units::BitRate::mbit(10),
        delta: Span::ZERO,
        stop: crate::topology::StopMode::NotAllStop,
        duplex: false,
    };
    let rate = crate::units::BitRate::mbit(10);
    let tiny = Arc::new(Topology::uniform("probe", 2, 1, rate, rate, vec![plane]));
    let mut net = Network::build(tiny, "heliostat:probe", None)?;
    Switched::install(&mut net, Admit::Marked, Clock::start()).map(drop)
}
