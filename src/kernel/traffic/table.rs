//! What is on its way: coflows, their flows, and what has been received of each.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

use super::early::Early;
use crate::coflows::network::Service;
use crate::coflows::priority::{Priorities, PriorityChange};
use crate::coflows::{FlowSpec, RackBytes};
use crate::fabric::{Cut, FlowProgress, ReportedEnds, Shipment};
use crate::ids::{CoflowId, FlowId, RackId};
use crate::topology::Topology;
use crate::units::{Bytes, Time};
use crate::{Clock, sys};

/// Number of finished coflows that are remembered, flow by flow.
pub const KEPT: usize = 1024;
/// Largest number of their flows together; beyond it fewer coflows are remembered.
pub const KEPT_FLOWS: usize = 1 << 18;

/// What the traffic has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrafficEvent {
    /// A flow's last byte was received. Only of coflows that were launched so; always before their
    /// coflow's end.
    FlowFinished {
        /// Whose.
        coflow: CoflowId,
        /// Its place in the coflow.
        flow: FlowId,
        /// Payload that its receiver counted.
        bytes: Bytes,
        /// When, by the receiver's clock.
        at: Time,
    },
    /// A coflow's last byte was received.
    Finished {
        /// The coflow.
        coflow: CoflowId,
        /// When, by the receiver's clock.
        at: Time,
    },
    /// A flow broke; its coflow cannot finish, and its other flows are broken off.
    Failed {
        /// The coflow.
        coflow: CoflowId,
        /// What was said.
        why: String,
    },
}

/// A flow that has not arrived, and what moves when its bytes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFlow {
    /// Whose.
    pub coflow: CoflowId,
    /// Its place in the coflow.
    pub flow: FlowId,
    /// As it was asked.
    pub spec: FlowSpec,
    /// Payload that its receiver has counted.
    pub received: Bytes,
    /// Bytes that the receiver's kernel has acknowledged.
    pub acknowledged: u64,
    /// Its packets are marked as an elephant's.
    pub elephant: bool,
    /// Its strict priority.
    pub priority: u8,
}

/// Not finished.
const NEVER: u64 = u64::MAX;

struct TrafficFlow {
    spec: FlowSpec,
    racks: (RackId, RackId),
    /// A receiver counts it: what comes for it on another connection is not ours.
    begun: AtomicBool,
    received: AtomicU64,
    /// Payload that was not handed to its socket.
    unsent: AtomicU64,
    /// Nanoseconds, or [`NEVER`].
    finished: AtomicU64,
    mark: Mutex<FlowMark>,
}

/// How the packets of a flow are marked.
#[derive(Default)]
struct FlowMark {
    priority: u8,
    elephant: bool,
    /// Its connection, from when it is open until all has arrived.
    connection: Weak<TcpStream>,
}

impl FlowMark {
    /// Marks what its connection sends from now on.
    fn apply(&self, service: Service, connection: &TcpStream) -> io::Result<()> {
        SockRef::from(connection).set_tos_v4(service.tos(self.priority, self.elephant).into())
    }
}

impl TrafficFlow {
    /// Whether there is anything to send: neither zero bytes nor from a host to itself.
    fn is_sent(&self) -> bool {
        self.spec.from != self.spec.to && self.spec.bytes.0 > 0
    }
}

/// A coflow on its way, or one that has arrived.
pub struct OnItsWay {
    flows: Vec<TrafficFlow>,
    left: AtomicU64,
    report: ReportedEnds,
    senders: Vec<AbortHandle>,
    /// What has been said of priorities.
    said: Mutex<Priorities>,
}

impl OnItsWay {
    /// A coflow before its senders begin.
    pub fn new(Shipment { coflow, report }: Shipment<'_>, topology: &Topology) -> Self {
        let flow = |(k, f): (usize, FlowSpec)| {
            let racks = (topology.rack_of(f.from), topology.rack_of(f.to));
            let mark = FlowMark {
                priority: coflow.priorities.of(k, racks.0 == racks.1),
                ..FlowMark::default()
            };
            TrafficFlow {
                spec: f,
                racks,
                begun: AtomicBool::new(false),
                received: AtomicU64::new(0),
                unsent: AtomicU64::new(f.bytes.0),
                finished: AtomicU64::new(NEVER),
                mark: Mutex::new(mark),
            }
        };
        let flows: Vec<TrafficFlow> = coflow.flows.iter().enumerate().map(flow).collect();
        let left = flows.iter().filter(|f| f.is_sent()).count() as u64;
        Self {
            flows,
            left: AtomicU64::new(left),
            report,
            senders: Vec::new(),
            said: Mutex::new(coflow.priorities.clone()),
        }
    }

    /// What a flow's connection carries before it is open: its class and nothing else. The
    /// handshake is no elephant, and must not wait for a circuit that is not asked for before there
    /// is data.
    pub fn tos(&self, flow: FlowId, service: Service) -> u8 {
        service.tos(self.flows[flow.index()].mark.lock().priority, false)
    }

    /// A flow's connection is open: it is marked, and follows changes from now on.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn connected(
        &self,
        flow: FlowId,
        elephant: bool,
        service: Service,
        connection: &Arc<TcpStream>,
    ) -> io::Result<()> {
        let mut mark = self.flows[flow.index()].mark.lock();
        (mark.elephant, mark.connection) = (elephant, Arc::downgrade(connection));
        if service == Service::Strict || elephant {
            mark.apply(service, connection)
        } else {
            Ok(())
        }
    }

    /// A flow's connection is over.
    pub fn closes(&self, flow: FlowId) {
        self.flows[flow.index()].mark.lock().connection = Weak::new();
    }

    /// Gives flows other priorities, which what they send from now on carries. Flows that the
    /// coflow does not have are ignored. O(flows of the coflow) if all are named.
    fn prioritise(&self, change: &PriorityChange, service: Service) -> io::Result<()> {
        let mut said = self.said.lock();
        let mut done = Ok(());
        let mut give = |f: &TrafficFlow, priority: u8| {
            let mut mark = f.mark.lock();
            if std::mem::replace(&mut mark.priority, priority) != priority
                && service == Service::Strict
                && let Some(connection) = mark.connection.upgrade()
                && let Err(e) = mark.apply(service, &connection)
            {
                done = Err(e);
            }
        };
        for &(flow, priority) in &change.flows {
            let Some(f) = self.flows.get(flow.index()) else { continue };
            if said.flows.len() <= flow.index() {
                said.flows.resize(flow.index() + 1, None);
            }
            said.flows[flow.index()] = Some(priority);
            give(f, priority);
        }
        if change.all.is_some() {
            said.all = change.all;
            for (k, f) in self.flows.iter().enumerate() {
                give(f, said.of(k, f.racks.0 == f.racks.1));
            }
        }
        done
    }

    /// What the flows that have not arrived have still to send.
    fn left(&self) -> Vec<(FlowId, Bytes)> {
        let open = self
            .flows
            .iter()
            .enumerate()
            .filter(|(_, f)| f.is_sent() && f.finished.load(Relaxed) == NEVER);
        open.map(|(k, f)| {
            (FlowId::from(k), Bytes(f.spec.bytes.0.saturating_sub(f.received.load(Relaxed))))
        })
        .collect()
    }

    /// The flows that have anything to send, with their places.
    pub fn to_send(&self) -> impl Iterator<Item = (FlowId, FlowSpec)> + '_ {
        self.flows
            .iter()
            .enumerate()
            .filter(|(_, f)| f.is_sent())
            .map(|(k, f)| (FlowId::from(k), f.spec))
    }

    /// Notes that `left` of a flow was not handed to its socket.
    pub fn unsent(&self, flow: FlowId, left: Bytes) {
        self.flows[flow.index()].unsent.store(left.0, Relaxed);
    }

    /// Where the receiver of a flow counts, once only; `None` if this is not one of its flows and
    /// of this size.
    pub fn begin(&self, flow: FlowId, asked: Bytes) -> Option<&AtomicU64> {
        let f = self.flows.get(flow.index()).filter(|f| f.is_sent() && f.spec.bytes == asked)?;
        (!f.begun.swap(true, Relaxed)).then_some(&f.received)
    }

    /// Why it cannot arrive, if one of its flows that have not needs who is cut off.
    fn is_cut(&self, cut: &BTreeMap<Cut, String>) -> Option<String> {
        let open = self.flows.iter().filter(|f| f.is_sent() && f.finished.load(Relaxed) == NEVER);
        let needs = |f: &TrafficFlow| {
            let racks = [f.racks.0, f.racks.1]
                .into_iter()
                .filter(|_| f.racks.0 != f.racks.1)
                .map(Cut::Rack);
            [f.spec.from, f.spec.to]
                .into_iter()
                .map(Cut::Host)
                .chain(racks)
                .find_map(|c| cut.get(&c).cloned())
        };
        open.into_iter().find_map(needs)
    }

    /// Passes the flows that have not arrived. O(flows), a system call each.
    fn each_open(&self, coflow: CoflowId, mut each: impl FnMut(OpenFlow)) {
        for (k, f) in self.flows.iter().enumerate() {
            if f.is_sent() && f.finished.load(Relaxed) == NEVER {
                let mark = f.mark.lock();
                let acknowledged = mark
                    .connection
                    .upgrade()
                    .and_then(|c| sys::tcp_acknowledged(c.as_fd()))
                    .unwrap_or(0);
                let received = Bytes(f.received.load(Relaxed));
                let (elephant, priority) = (mark.elephant, mark.priority);
                each(OpenFlow {
                    coflow,
                    flow: FlowId::from(k),
                    spec: f.spec,
                    received,
                    acknowledged,
                    elephant,
                    priority,
                });
            }
        }
    }

    fn by_pair(&self) -> Vec<RackBytes> {
        let mut sums = BTreeMap::new();
        for f in self.flows.iter().filter(|f| f.is_sent()) {
            *sums.entry(f.racks).or_insert(0) += f.received.load(Relaxed);
        }
        sums.into_iter().map(|((from, to), b)| RackBytes { from, to, bytes: Bytes(b) }).collect()
    }

    fn progress(&self) -> Vec<FlowProgress> {
        let one = |f: &TrafficFlow| FlowProgress {
            spec: f.spec,
            received: Bytes(f.received.load(Relaxed)),
            finished: Some(f.finished.load(Relaxed)).filter(|&t| t != NEVER).map(Time),
            priority: f.mark.lock().priority,
        };
        self.flows.iter().map(one).collect()
    }
}

#[derive(Default)]
struct CoflowTable {
    active: BTreeMap<CoflowId, Arc<OnItsWay>>,
    /// The last that arrived, the oldest first.
    past: VecDeque<(CoflowId, Arc<OnItsWay>)>,
    /// Their flows.
    past_flows: usize,
    early: Early,
}

/// Who hears of it.
type Tell = Box<dyn FnMut(TrafficEvent) + Send>;

/// What senders, receivers and askers share.
pub struct SharedTable {
    pub topology: Arc<Topology>,
    pub clock: Clock,
    /// Payload between racks that was sent again.
    pub sent_again: AtomicU64,
    /// The task of a flow ended in a panic.
    pub flow_died: AtomicBool,
    /// What every sender says first: connections of strangers to our receivers' port do not know
    /// it.
    pub secret: u64,
    table: Mutex<CoflowTable>,
    /// Who is cut off for good, and why.
    cut: Mutex<BTreeMap<Cut, String>>,
    events: Mutex<Tell>,
}

impl SharedTable {
    pub fn new(topology: Arc<Topology>, clock: Clock, secret: u64, events: Tell) -> Self {
        let (table, cut, events) = (Mutex::default(), Mutex::default(), Mutex::new(events));
        Self {
            topology,
            clock,
            sent_again: AtomicU64::new(0),
            flow_died: AtomicBool::new(false),
            secret,
            table,
            cut,
            events,
        }
    }

    fn table(&self) -> MutexGuard<'_, CoflowTable> {
        self.table.lock()
    }

    pub fn say(&self, e: TrafficEvent) {
        (self.events.lock())(e);
    }

    /// Enters a coflow and lets its senders begin. Returns whether it has nothing to send: then it
    /// is finished, which the caller says.
    pub fn open(
        &self,
        id: CoflowId,
        mut coflow: OnItsWay,
        begin: impl FnOnce() -> Vec<AbortHandle>,
    ) -> bool {
        let mut table = self.table();
        coflow.senders = begin();
        let now = self.clock.now();
        coflow.flows.iter().filter(|f| !f.is_sent()).for_each(|f| f.finished.store(now.0, Relaxed));
        // No sender has looked yet: the table is locked.
        if let Some(said) = table.early.take(id) {
            coflow
                .prioritise(&said.whole(), Service::Fifo)
                .expect("no connection is open that could refuse a mark");
        }
        let empty = coflow.senders.is_empty();
        let coflow = Arc::new(coflow);
        if empty {
            table.remember(id, coflow);
        } else {
            table.active.insert(id, coflow);
        }
        empty
    }

    /// A coflow on its way.
    pub fn get(&self, coflow: CoflowId) -> Option<Arc<OnItsWay>> {
        self.table().active.get(&coflow).cloned()
    }

    /// A flow's receiver has everything; the coflow is closed with its last flow.
    pub fn done(&self, coflow: CoflowId, flow: FlowId) {
        let now = self.clock.now();
        let Some(c) = self.get(coflow) else { return };
        let f = &c.flows[flow.index()];
        f.finished.store(now.0, Relaxed);
        if c.report == ReportedEnds::Flows {
            self.say(TrafficEvent::FlowFinished {
                coflow,
                flow,
                bytes: Bytes(f.received.load(Relaxed)),
                at: now,
            });
        }
        if c.left.fetch_sub(1, Relaxed) > 1 {
            return;
        }
        let mut table = self.table();
        if let Some(c) = table.active.remove(&coflow) {
            table.remember(coflow, c);
            drop(table);
            self.say(TrafficEvent::Finished { coflow, at: now });
        }
    }

    /// Takes note of who is cut off, and breaks what cannot arrive any more.
    pub fn cut_off(&self, cut: impl IntoIterator<Item = (Cut, String)>) {
        let fresh = {
            let mut known = self.cut.lock();
            let before = known.len();
            for (c, why) in cut {
                known.entry(c).or_insert(why);
            }
            known.len() > before
        };
        if fresh {
            let active: Vec<CoflowId> = self.table().active.keys().copied().collect();
            active.into_iter().for_each(|id| self.break_if_cut(id));
        }
    }

    /// Why a coflow cannot arrive, if it needs who is cut off.
    fn is_cut(&self, id: CoflowId) -> Option<String> {
        self.get(id).and_then(|c| c.is_cut(&self.cut.lock()))
    }

    /// Breaks a coflow that needs who is cut off.
    pub fn break_if_cut(&self, id: CoflowId) {
        if let Some(why) = self.is_cut(id) {
            self.failed(id, why);
        }
    }

    /// Breaks a coflow. Where one of its hosts is cut off, that is the reason given: a sender may
    /// find no route before [`break_if_cut`](Self::break_if_cut) has looked.
    pub fn failed(&self, coflow: CoflowId, why: String) {
        let why = self.is_cut(coflow).unwrap_or(why);
        if self.cancel(coflow) {
            self.say(TrafficEvent::Failed { coflow, why });
        }
    }

    /// Breaks off; says whether there was anything to break off.
    pub fn cancel(&self, coflow: CoflowId) -> bool {
        let known = {
            let mut table = self.table();
            table.early.take(coflow);
            table.active.remove(&coflow)
        };
        known.iter().flat_map(|c| &c.senders).for_each(AbortHandle::abort);
        known.is_some()
    }

    pub fn progress(&self) -> Vec<(CoflowId, Vec<RackBytes>)> {
        let active = self.table().active.clone();
        active.into_iter().map(|(id, c)| (id, c.by_pair())).collect()
    }

    pub fn each_open(&self, mut each: impl FnMut(OpenFlow)) {
        let active = self.table().active.clone();
        active.iter().for_each(|(id, c)| c.each_open(*id, &mut each));
    }

    pub fn unsent(&self, most: Bytes, mut each: impl FnMut((RackId, RackId), Bytes)) {
        let active = self.table().active.clone();
        for f in
            active.values().flat_map(|c| &c.flows).filter(|f| f.is_sent() && f.racks.0 != f.racks.1)
        {
            each(f.racks, Bytes(f.unsent.load(Relaxed)).min(most));
        }
    }

    /// Gives flows of a coflow other priorities, at once or when it is entered; one that is over is
    /// no error.
    pub fn prioritise(
        &self,
        coflow: CoflowId,
        change: &PriorityChange,
        service: Service,
    ) -> io::Result<()> {
        let active = {
            let mut table = self.table();
            let active = table.active.get(&coflow).cloned();
            if active.is_none() && table.past.iter().all(|p| p.0 != coflow) {
                table.early.say(coflow, change);
            }
            active
        };
        active.map_or(Ok(()), |c| c.prioritise(change, service))
    }

    pub fn left(&self) -> Vec<(CoflowId, Vec<(FlowId, Bytes)>)> {
        let active = self.table().active.clone();
        active.into_iter().map(|(id, c)| (id, c.left())).collect()
    }

    pub fn flows(&self, coflow: CoflowId) -> Option<Vec<FlowProgress>> {
        let table = self.table();
        let past = || table.past.iter().rev().find(|p| p.0 == coflow).map(|p| &p.1);
        table.active.get(&coflow).or_else(past).map(|c| c.progress())
    }
}

impl CoflowTable {
    fn remember(&mut self, id: CoflowId, coflow: Arc<OnItsWay>) {
        self.past_flows += coflow.flows.len();
        self.past.push_back((id, coflow));
        while self.past.len() > KEPT || (self.past_flows > KEPT_FLOWS && self.past.len() > 1) {
            let Some((_, oldest)) = self.past.pop_front() else { break };
            self.past_flows -= oldest.flows.len();
        }
    }
}

#[cfg(test)]
mod tests;
