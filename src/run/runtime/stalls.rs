//! Bytes that wait while nothing arrives, whatever the cause is: found by what moves when bytes do,
//! and told by name.
//!
//! It compares no settings. A flow that Heliostat sends moves when its receiver counts bytes or its
//! receiver's kernel acknowledges some; so does a connection of another program between racks for
//! which a coflow was declared. What rightly waits is no stall: elephants that have no way but a
//! circuit, while there is none ([`Hold::Circuit`]); connections whose receiver does not read
//! ([`Hold::Reader`]); and under strict priorities, flows behind others that move. More flows, and
//! slower links, wait longer before they count as stalled: they take turns.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{CoflowId, FlowId, HostId, RackId};
use crate::topology::Topology;
use crate::units::{BitRate, Bytes, Span, Time};

mod watch;

pub use watch::StallsWatch;

/// Silence after which a flow is stalled: five packets in a row lost, as TCP doubles the time
/// between its tries.
const SILENCE: Span = Span::secs(5);
/// More for each flow under way.
const A_FLOW: Span = Span::millis(20);
/// What may wait before a flow's next packet in the queues of its way.
const IN_QUEUES: Bytes = Bytes(128 << 10);
/// Time with light that must have passed in the silence of what waits for circuits.
const LIGHT: Span = Span::secs(1);
/// The longest time that counts between two looks: the machine may have slept.
const LOOK: Span = Span::secs(1);

/// What is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StallKey {
    /// A flow that Heliostat sends.
    Flow(CoflowId, FlowId),
    /// A connection of another program, by its sender and the kernel's number.
    Connection(HostId, u64),
}

/// Why something may rightly wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Nothing holds it.
    No,
    /// It has no way but a circuit between its racks.
    Circuit,
    /// All that was sent is acknowledged: its receiver does not read.
    Reader,
}

/// What waits at one look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingBytes {
    /// What it is.
    pub key: StallKey,
    /// The coflow to which its bytes belong.
    pub coflow: CoflowId,
    /// Sender and receiver.
    pub ends: (HostId, HostId),
    /// Bytes that have not arrived.
    pub waits: Bytes,
    /// Differs from the last look's if any bytes have moved.
    pub moved: (u64, u64),
    /// Its strict priority; 0 where ports serve in the order of arrival.
    pub priority: u8,
    /// What may hold it.
    pub hold: Hold,
}

/// Something new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StallNews {
    /// Bytes of a coflow wait and do not move.
    Stalled(CoflowId, String),
    /// They move again, or are over.
    Moves(CoflowId),
    /// The silence has lasted longer than the run's patience.
    Overdue(CoflowId, String),
}

#[derive(Clone, Copy, Debug)]
struct Silence {
    moved: (u64, u64),
    /// How long nothing has moved, without what rightly waits.
    lasts: Span,
    /// How much of it had light between the racks.
    lit: Span,
}

/// What is known of silence. It takes looks and a time, and touches nothing.
#[derive(Debug)]
pub struct Stalls {
    topology: std::sync::Arc<Topology>,
    /// Longest silence that a run bears.
    patience: Option<Span>,
    /// What a flow may wait for the queues before it.
    queues: Span,
    silent: BTreeMap<StallKey, Silence>,
    /// Coflows that were reported, and how long their silence had lasted by then.
    told: BTreeMap<CoflowId, Span>,
    last: Time,
}

impl Stalls {
    /// Nothing is known.
    pub fn new(topology: std::sync::Arc<Topology>, patience: Option<Span>) -> Self {
        let cables = topology.eps.graph().into_iter().flat_map(|g| g.cables.iter().map(|c| c.rate));
        let hosts = topology.hosts.iter().map(|h| h.nic);
        let slowest = topology
            .racks
            .iter()
            .map(|r| r.uplink)
            .chain(hosts)
            .chain(cables)
            .min()
            .unwrap_or(BitRate(1));
        let delays: u64 = topology.links.all().map(|l| l.delay.0).sum();
        let queues = Span(slowest.time_for(IN_QUEUES).0.saturating_add(delays.saturating_mul(4)));
        Self {
            topology,
            patience,
            queues,
            silent: BTreeMap::new(),
            told: BTreeMap::new(),
            last: Time::ZERO,
        }
    }

    /// Compares all that waits with the last look. `lit` says how long there was light between two
    /// racks from a time to another. O(n log n).
    pub fn look(
        &mut self,
        now: Time,
        all: &[WaitingBytes],
        lit: impl Fn(RackId, RackId, Time, Time) -> Span,
    ) -> Vec<StallNews> {
        let (from, span) = (now.max(self.last), now.since(self.last).min(LOOK));
        let since = Time(from.0 - span.0);
        self.last = now;
        let before = std::mem::take(&mut self.silent);
        let moves = |w: &WaitingBytes| before.get(&w.key).is_none_or(|s| s.moved != w.moved);
        let ahead = Ahead::of(&self.topology, all.iter().filter(|w| moves(w)));
        for w in all {
            let racks = (self.topology.rack_of(w.ends.0), self.topology.rack_of(w.ends.1));
            let mut s = Silence { moved: w.moved, lasts: Span::ZERO, lit: Span::ZERO };
            if let Some(old) =
                before.get(&w.key).filter(|s| s.moved == w.moved && w.hold != Hold::Reader)
            {
                let light =
                    if w.hold == Hold::Circuit { lit(racks.0, racks.1, since, now) } else { span };
                let counts = light > Span::ZERO && !ahead.is_before(w, racks);
                s.lasts = old.lasts + if counts { span } else { Span::ZERO };
                s.lit = old.lit + if counts { light } else { Span::ZERO };
            }
            self.silent.insert(w.key, s);
        }
        self.words(all)
    }

    /// Silence after which a flow among `flows` is stalled.
    fn bears(&self, flows: usize) -> Span {
        let turns = A_FLOW.0.saturating_mul(flows as u64);
        Span(SILENCE.0.saturating_add(self.queues.0).saturating_add(turns))
    }

    fn words(&mut self, all: &[WaitingBytes]) -> Vec<StallNews> {
        let bears = self.bears(all.len());
        let mut stalled: BTreeMap<CoflowId, Vec<(Span, &WaitingBytes)>> = BTreeMap::new();
        for w in all {
            let s = self.silent[&w.key];
            if s.lasts >= bears && (w.hold != Hold::Circuit || s.lit >= LIGHT) {
                stalled.entry(w.coflow).or_default().push((s.lasts, w));
            }
        }
        let mut words = vec![];
        for (&id, flows) in &stalled {
            let longest = flows.iter().map(|f| f.0).max().unwrap_or(Span::ZERO);
            if self.patience.is_some_and(|p| longest >= p) {
                let patience = self.patience.unwrap_or(Span::ZERO);
                words.push(StallNews::Overdue(
                    id,
                    format!("{} (patience: {patience})", self.say(flows, longest)),
                ));
            }
            // Said again each time that it has become twice as long.
            let due = self.told.get(&id).is_none_or(|t| longest.0 >= t.0.saturating_mul(2));
            if due {
                self.told.insert(id, longest);
                words.push(StallNews::Stalled(id, self.say(flows, longest)));
            }
        }
        let over: Vec<CoflowId> =
            self.told.keys().filter(|id| !stalled.contains_key(id)).copied().collect();
        for id in over {
            self.told.remove(&id);
            words.push(StallNews::Moves(id));
        }
        words
    }

    /// The flow of the longest silence by name, and how many more.
    fn say(&self, flows: &[(Span, &WaitingBytes)], longest: Span) -> String {
        let name = |h: HostId| self.topology.host_name(h);
        let first = flows.iter().find(|f| f.0 == longest).map_or(flows[0].1, |f| f.1);
        let (from, to) = (name(first.ends.0), name(first.ends.1));
        let what = match first.key {
            StallKey::Flow(..) => {
                format!("flow {from} -> {to}: {} of it have not arrived", first.waits)
            }
            StallKey::Connection(..) => {
                format!("connection {from} -> {to}: {} wait in its sender", first.waits)
            }
        };
        let seconds = longest.0 / 1_000_000_000;
        let more = match flows.len() - 1 {
            0 => String::new(),
            n => {
                let ends: BTreeSet<String> = flows.iter().map(|f| name(f.1.ends.1)).collect();
                let ends = ends.into_iter().take(4).collect::<Vec<_>>().join(", ");
                format!("; with {n} more that have stopped (to {ends})")
            }
        };
        format!("{what}, and nothing has moved for {seconds} s{more}")
    }
}

/// The best strict priorities of what moves, where ports serve by priority.
#[derive(Default)]
struct Ahead {
    senders: BTreeMap<HostId, u8>,
    receivers: BTreeMap<HostId, u8>,
    /// By rack and direction: out, in.
    racks: BTreeMap<(RackId, bool), u8>,
    /// Between racks, where their ways may share links of a graph.
    graph: Option<u8>,
}

impl Ahead {
    fn of<'a>(topology: &Topology, moving: impl Iterator<Item = &'a WaitingBytes>) -> Self {
        let mut a = Self::default();
        let is_graph = topology.eps.graph().is_some();
        for w in moving {
            let better = |old: Option<u8>| Some(old.map_or(w.priority, |o| o.min(w.priority)));
            let racks = (topology.rack_of(w.ends.0), topology.rack_of(w.ends.1));
            let put = |old: &mut u8| *old = (*old).min(w.priority);
            put(a.senders.entry(w.ends.0).or_insert(u8::MAX));
            put(a.receivers.entry(w.ends.1).or_insert(u8::MAX));
            if racks.0 != racks.1 {
                put(a.racks.entry((racks.0, false)).or_insert(u8::MAX));
                put(a.racks.entry((racks.1, true)).or_insert(u8::MAX));
                a.graph = if is_graph { better(a.graph) } else { None };
            }
        }
        a
    }

    /// Whether something of a better priority moves that shares a port with it.
    fn is_before(&self, w: &WaitingBytes, racks: (RackId, RackId)) -> bool {
        let ports = [self.senders.get(&w.ends.0), self.receivers.get(&w.ends.1)];
        let uplinks = [
            self.racks.get(&(racks.0, false)),
            self.racks.get(&(racks.1, true)),
            self.graph.as_ref(),
        ];
        let uplinks = uplinks.into_iter().filter(|_| racks.0 != racks.1);
        ports.into_iter().chain(uplinks).flatten().any(|&p| p < w.priority)
    }
}

#[cfg(test)]
mod tests;
