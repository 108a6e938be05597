//! The queues of every port: rates by HTB, FIFOs in bytes, acknowledgements before bulk.
//!
//! Hosts hand down segments of up to 64 kB, which take 5 ms of 100 Mb/s. With `eps.segments:
//! frames` the ports of the EPS cut them into frames: else a mouse waits for whole segments of
//! others, and its time is luck.
//!
//! A topology may give a kind of link queues of another length, marks, delay and loss
//! ([`LinkSpec`]). Then each class has, in the order in which packets pass them, a netem (delay,
//! loss) and a RED that marks, or a FIFO.
//!
//! Sizes were chosen by measurement. The default leaf (1000 packets of up to 64 kB) would hold half
//! a second. Behind a full EPS queue without priority for acknowledgements, circuits carry 46 to 81
//! % only.

use std::net::Ipv4Addr;

use netlink_packet_route::RouteNetlinkMessage as Message;

use super::nl::{NEW, NetlinkRequest};
use super::tc::{self, HtbClass, Match};
use crate::coflows::elephants::Admit;
use crate::coflows::network::Service;
use crate::coflows::priority::{LAST, dscp};
use crate::ids::RackId;
use crate::topology::addresses::rack_net;
use crate::topology::links::{LinkSpec, Loss};
use crate::topology::{Plane, PortQueues, Segments, Topology};
use crate::units::{BitRate, Bytes, Span};

/// The largest segment that hosts hand down: half a millisecond of a circuit, so that slow circuits
/// have fine grain.
pub fn gso_max(rate: BitRate) -> u32 {
    (rate.bytes_in(Span::micros(500)).0 as u32).clamp(9_000, 65_536)
}

/// The largest segment that hosts hand down for a kind of link. Two fit into its queue, and one is
/// no longer than what is not marked yet. Where packets are lost, each is lost alone. With four to
/// a queue, and bursts of one, coflows took five times as long on a busy machine.
fn grain(spec: &LinkSpec) -> u32 {
    let half = spec.buffer.map_or(u64::MAX, |b| b.0 / 2);
    let bytes =
        if spec.loss > Loss::default() { 0 } else { half.min(spec.ecn.map_or(u64::MAX, |e| e.0)) };
    bytes.clamp(FRAME, 65_536) as u32
}

/// A full frame, as `tc` counts it.
const FRAME: u64 = 1514;

/// The largest segment that hosts of a network hand down.
pub fn segment(topology: &Topology) -> u32 {
    let cables = topology.eps.graph().into_iter().flat_map(|g| g.cables.iter().map(|c| c.rate));
    let rates = topology.planes.iter().map(|p| p.rate).chain(cables).map(gso_max);
    rates.chain(topology.links.all().map(grain)).min().unwrap_or(65_536)
}

/// What a queue does beside its class's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Bytes that it holds.
    limit: u32,
    spec: LinkSpec,
    /// Whether it cuts segments into frames.
    cuts: bool,
}

impl Leaf {
    /// The queue of a kind of link, of `limit` bytes if the topology does not say how long it is.
    fn new(spec: LinkSpec, limit: u32) -> Self {
        let limit =
            spec.buffer.map_or_else(|| limit.max(2 * bytes(spec.ecn.unwrap_or_default())), bytes);
        Self { limit, spec, cuts: false }
    }

    /// Puts the queue under class 1:`minor` of a link.
    fn under(&self, link: u32, minor: u16) -> Vec<NetlinkRequest> {
        let LinkSpec { delay, loss, ecn, .. } = self.spec;
        let (mut v, (mut parent, own)) = (vec![], tc::leaf(minor));
        if delay > Span::ZERO || loss > Loss::default() {
            let netem = tc::handle(NETEM + minor, 0);
            v.push((tc::netem(link, (parent, netem), delay, loss), NEW));
            parent = netem | 1;
        }
        v.push(match ecn {
            // Acknowledgements carry no marks.
            Some(from) if minor != SMALL => {
                (tc::red(link, (parent, own), self.limit, bytes(from)), NEW)
            }
            _ if minor != SMALL && self.cuts => (tc::cutter(link, (parent, own), self.limit), NEW),
            _ => (tc::bfifo(link, (parent, own), self.limit), NEW),
        });
        v
    }

    /// What a class of a port of `rate` sends in its turn: half a millisecond of it, but two frames
    /// at least. Whole segments take longer.
    fn turn(&self, rate: BitRate) -> u32 {
        let half = rate.bytes_in(Span::micros(500)).0.clamp(2 * FRAME, tc::SEGMENT_TURN.into());
        if self.cuts { half as u32 } else { tc::SEGMENT_TURN }
    }

    /// What the port's class may send at once. Where the topology says how long the queue is, it is
    /// no more than half of that, so that little more than the queue holds gets past a busy link.
    fn burst(&self, rate: BitRate) -> u32 {
        if self.cuts {
            return rate.bytes_in(Span::millis(1)).0.clamp(4 * FRAME, 1 << 20) as u32;
        }
        let least = rate.bytes_in(Span::micros(60)).0 as u32;
        self.spec.buffer.map_or_else(|| burst(rate), |b| burst(rate).min(least.max(bytes(b) / 2)))
    }
}

/// What is added to a class's number for the major number of the netem before its queue.
const NETEM: u16 = 0x2000;

fn bytes(b: Bytes) -> u32 {
    u32::try_from(b.0).unwrap_or(u32::MAX)
}

/// The limit of a virtual output queue: three milliseconds, and on slow circuits still room for the
/// smallest windows of some flows (18 kB cost four flows a fifth of 100 Mb/s). Sixteen racks that
/// rotate at 1 Gb/s use 84 % of their light with 1 ms, whose overflow throws windows back when a
/// circuit comes up. They use 88 % with 2 or 3 ms, and 86 % with 4 ms, whose drain takes that time
/// from the light.
fn voq_limit(topology: &Topology, rate: BitRate) -> u32 {
    let least = || (rate.bytes_in(Span::millis(3)).0 as u32).max(64_000).max(2 * gso_max(rate));
    topology.links.ocs.buffer.map_or_else(least, bytes)
}

/// How long before a circuit ends its admission must end, so that its queue has drained: the
/// queue's length in time, and what a busy machine takes to move packets between namespaces.
pub fn guard(topology: &Topology, rate: BitRate) -> Span {
    rate.time_for(Bytes(u64::from(voq_limit(topology, rate)))) + Span::millis(1)
}

/// Bytes that a shaper may send at once: one segment. More would hit the next queue as a burst
/// whenever a path changes.
fn burst(rate: BitRate) -> u32 {
    (rate.bytes_in(Span::micros(60)).0 as u32).max(gso_max(rate)).min(1 << 20)
}

fn class(minor: u16, parent: u16, rate: BitRate, ceil: BitRate, priority: u32) -> HtbClass {
    HtbClass { minor, parent, rate, ceil, burst: burst(ceil), priority, turn: tc::SEGMENT_TURN }
}

/// A port of one kind of link: its rate, and what its queues do.
#[derive(Clone, Copy, Debug)]
struct QueuedPort {
    link: u32,
    rate: BitRate,
    leaf: Leaf,
}

impl QueuedPort {
    /// A class of the port's rate at most, without a queue of its own.
    fn class(&self, minor: u16, parent: u16, rate: BitRate, priority: u32) -> NetlinkRequest {
        let (burst, turn) = (self.leaf.burst(self.rate), self.leaf.turn(self.rate));
        (
            HtbClass { minor, parent, rate, ceil: self.rate, burst, priority, turn }.add(self.link),
            NEW,
        )
    }

    /// The same with its queue.
    fn queue(&self, minor: u16, parent: u16, rate: BitRate, priority: u32) -> Vec<NetlinkRequest> {
        std::iter::once(self.class(minor, parent, rate, priority))
            .chain(self.leaf.under(self.link, minor))
            .collect()
    }

    /// A queue for each other rack than `own` of `racks` beside the others of a port of the EPS,
    /// for the packets that `of` a rack's network matches.
    fn rack_queues(
        &self,
        own: usize,
        racks: usize,
        of: fn(Ipv4Addr, u8) -> Match,
    ) -> Vec<NetlinkRequest> {
        let queue = |j| {
            let c = rack_class(j);
            let filter = tc::classify(
                self.link,
                tc::HTB,
                2 + j as u16,
                of(rack_net(RackId::from(j)), 16),
                c,
            );
            self.queue(c, 1, BitRate(self.rate.0 / 2 / racks as u64), 1)
                .into_iter()
                .chain([(filter, NEW)])
        };
        (0..racks).filter(|&j| j != own).flat_map(queue).collect()
    }
}

/// A host's port, either end: one queue, or one for every priority.
pub fn host_port(
    link: u32,
    rate: BitRate,
    topology: &Topology,
    service: Service,
) -> Vec<NetlinkRequest> {
    let limit = (rate.bytes_in(Span::millis(4)).0 as u32).clamp(256 << 10, 8 << 20);
    let port = QueuedPort { link, rate, leaf: Leaf::new(topology.links.nic, limit) };
    if service == Service::Strict {
        return strict_port(&port);
    }
    std::iter::once((tc::htb(link, 1), NEW)).chain(port.queue(1, 0, rate, 0)).collect()
}

/// Minor number of the class for short packets.
pub const SMALL: u16 = 2;
const BULK: u16 = 3;

/// Minor number of the class for a strict priority, 0 to [`LAST`].
pub fn priority_class(priority: u8) -> u16 {
    0x10 + u16::from(priority)
}

/// What of a link every strict priority is assured, however busy those before it are: so that its
/// connections live on.
const ASSURED: u64 = 1000;

/// A port that serves strict priorities, each with a queue, and short packets before all of them.
/// What carries no class goes with the last. HTB counts all of them to one link. A class of smaller
/// `prio` takes what its siblings leave of their assured rates first, and half of the link is
/// assured to short packets, which never need it.
fn strict_port(port: &QueuedPort) -> Vec<NetlinkRequest> {
    let &QueuedPort { link, rate, .. } = port;
    let mut v = vec![(tc::htb(link, priority_class(LAST)), NEW), port.class(1, 0, rate, 0)];
    v.extend(port.queue(SMALL, 1, BitRate(rate.0 / 2), 0));
    v.push((tc::classify(link, tc::HTB, 1, Match::SMALL, SMALL), NEW));
    for p in 0..=LAST {
        let c = priority_class(p);
        v.extend(port.queue(c, 1, BitRate(rate.0 / ASSURED), u32::from(p)));
        if p < LAST {
            v.push((
                tc::classify(link, tc::HTB, 2 + u16::from(p), Match::class_selector(dscp(p)), c),
                NEW,
            ));
        }
    }
    v
}

/// A port of the EPS, either end: short packets first.
pub fn eps_port(link: u32, rate: BitRate, leaf: Leaf, service: Service) -> Vec<NetlinkRequest> {
    if service == Service::Strict {
        return strict_port(&QueuedPort { link, rate, leaf: Leaf { cuts: false, ..leaf } });
    }
    let port = QueuedPort { link, rate, leaf };
    let half = BitRate(rate.0 / 2);
    let mut v = vec![(tc::htb(link, BULK), NEW), port.class(1, 0, rate, 0)];
    v.extend(port.queue(SMALL, 1, half, 0));
    v.extend(port.queue(BULK, 1, half, 1));
    v.push((tc::classify(link, tc::handle(1, 0), 1, Match::SMALL, SMALL), NEW));
    v
}

/// What a queue of the EPS holds: all that a flow had on its way over a circuit, which it throws at
/// the EPS when the circuit ends. Sixteen racks that rotate used 69 % of their light with one queue
/// of 150 kB for all racks. They used 84 % with one of 150 kB a rack, and 88 % with 400 or 700 kB a
/// rack.
fn eps_limit(topology: &Topology) -> u32 {
    topology
        .planes
        .iter()
        .map(|p| voq_limit(topology, p.rate))
        .max()
        .unwrap_or(0)
        .clamp(150_000, 4 << 20)
}

/// A queue of the EPS, of a graph of switches or of an uplink.
pub fn eps_leaf(topology: &Topology, spec: LinkSpec) -> Leaf {
    // A queue of a length that the topology says gets small segments anyway, and one that marks
    // cannot cut.
    let cuts =
        topology.eps.segments == Segments::Frames && spec.buffer.is_none() && spec.ecn.is_none();
    Leaf { cuts, ..Leaf::new(spec, eps_limit(topology)) }
}

/// How long packets may be on their way through the full queues of `switches` switches, each of the
/// slowest rate of all, and a margin.
pub fn drain(topology: &Topology, switches: usize) -> Span {
    let graph = topology.eps.graph();
    let cables = graph.into_iter().flat_map(|g| g.cables.iter().map(|c| c.rate));
    let limits = graph.into_iter().flat_map(|g| g.switches.iter().filter_map(|s| s.rate));
    let slowest = cables
        .chain(limits)
        .chain(topology.racks.iter().map(|r| r.uplink))
        .min()
        .unwrap_or_default();
    let longest =
        topology.links.all().map(|&spec| eps_leaf(topology, spec).limit).max().unwrap_or(0);
    let delay = topology.links.all().map(|spec| spec.delay).max().unwrap_or_default();
    (slowest.time_for(Bytes(u64::from(longest))) * 2 + delay) * switches as u64 + Span::millis(10)
}

/// Whether a ToR's port to the EPS has queues for all racks together: by priority, or one whose
/// length or marks are to be those of the whole port.
pub fn uplink_is_shared(topology: &Topology, service: Service) -> bool {
    let LinkSpec { buffer, ecn, .. } = topology.links.uplink;
    service == Service::Strict || buffer.is_some() || ecn.is_some()
}

/// Rack `own`'s ToR's port to the EPS: short packets first, and a queue for every destination rack,
/// as on its OCS ports: what waits for one rack does not hold up the others. The queues' counters
/// are the traffic to the racks. With `shared`, all racks share the port's queues, and the traffic
/// to each is counted elsewhere: by [`counting_port`], or by the ToR's BPF program.
pub fn tor_eps_port(
    link: u32,
    topology: &Topology,
    own: usize,
    service: Service,
    shared: bool,
) -> Vec<NetlinkRequest> {
    let (rate, leaf) = (topology.racks[own].uplink, eps_leaf(topology, topology.links.uplink));
    let mut v = eps_port(link, rate, leaf, service);
    if !shared {
        v.extend(QueuedPort { link, rate, leaf }.rack_queues(
            own,
            topology.rack_count(),
            Match::to,
        ));
    }
    v
}

/// The EPS's port to rack `to`: short packets first, and with `eps.queues: racks` a queue for every
/// source rack, so that each gets the same part of the port, however much it sends. A FIFO gives
/// more to what comes in faster, until TCP has lost a packet.
pub fn rack_eps_port(
    link: u32,
    topology: &Topology,
    to: usize,
    service: Service,
) -> Vec<NetlinkRequest> {
    let (rate, leaf) = (topology.racks[to].uplink, eps_leaf(topology, topology.links.uplink));
    let mut v = eps_port(link, rate, leaf, service);
    if topology.eps.queues == PortQueues::Racks && !uplink_is_shared(topology, service) {
        v.extend(QueuedPort { link, rate, leaf }.rack_queues(
            to,
            topology.rack_count(),
            Match::from,
        ));
    }
    v
}

/// A port that holds nothing up and counts by destination rack what goes through it, as rack
/// `own`'s ToR's port to the EPS does where it has a queue for every rack.
pub fn counting_port(link: u32, own: usize, racks: usize) -> Vec<NetlinkRequest> {
    // Above all that veth pairs carry.
    let rate = BitRate(1_000_000_000_000);
    let mut v = vec![(tc::htb(link, SMALL), NEW), (class(SMALL, 0, rate, rate, 0).add(link), NEW)];
    for j in (0..racks).filter(|&j| j != own) {
        let c = rack_class(j);
        v.push((class(c, 0, rate, rate, 0).add(link), NEW));
        v.push((
            tc::classify(link, tc::HTB, 1 + j as u16, Match::to(rack_net(RackId::from(j)), 16), c),
            NEW,
        ));
    }
    v
}

/// Minor number of the class for a destination rack.
pub fn rack_class(rack: usize) -> u16 {
    0x100 + rack as u16
}

/// The limit of a queue whose packets wait for their circuit. Sixteen racks that rotate at 1 Gb/s
/// use 84 to 96 % of their light (`netlink`) with the queue of those that do not wait. They use 94
/// to 96 % with four times that, and no more with ten.
pub fn waiting_limit(topology: &Topology, rate: BitRate) -> u32 {
    topology.links.ocs.buffer.map_or_else(|| voq_limit(topology, rate) * 4, bytes)
}

/// The gate of a virtual output queue of `limit` bytes whose packets wait for their circuit.
pub fn gate(link: u32, (rate, limit): (BitRate, u32), to: usize, open: bool) -> Message {
    tc::gate(link, rack_class(to), rate, limit, open)
}

/// How a packet finds its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classes {
    /// By filters that look at its address.
    ByAddress,
    /// The program that sends it to the port names it.
    ByProgram,
}

/// Rack `own`'s ToR's port to a plane: the circuit's rate, short packets first, and a virtual
/// output queue for every destination rack; where packets wait for their circuit the queues are
/// gates, and shut.
pub fn ocs_port(
    link: u32,
    (topology, plane): (&Topology, &Plane),
    own: usize,
    classes: Classes,
    admit: Admit,
) -> Vec<NetlinkRequest> {
    let (rate, racks) = (plane.rate, topology.rack_count());
    let (limit, waiting) = (voq_limit(topology, rate), waiting_limit(topology, rate));
    // What no class claims (probes) goes by 1:2, and so do short packets. Behind the data of the
    // circuit back, acknowledgements of a pair of racks that send to each other took 3 ms, and a
    // sender whose window was small used half of its circuit.
    let mut v = vec![
        (tc::htb(link, SMALL), NEW),
        (class(1, 0, rate, rate, 0).add(link), NEW),
        (class(SMALL, 1, BitRate(rate.0 / 1000), rate, 0).add(link), NEW),
        (tc::bfifo(link, tc::leaf(SMALL), 64_000), NEW),
    ];
    // Where packets wait for their circuit, acknowledgements wait with them.
    let by_address = classes == Classes::ByAddress;
    if by_address && !admit.waits() {
        v.push((tc::classify(link, tc::HTB, 1, Match::SMALL, SMALL), NEW));
    }
    for j in (0..racks).filter(|&j| j != own) {
        let c = rack_class(j);
        v.push((class(c, 1, BitRate(rate.0 / 1000), rate, 1).add(link), NEW));
        v.push((
            if admit.waits() {
                gate(link, (rate, waiting), j, false)
            } else {
                tc::bfifo(link, tc::leaf(c), limit)
            },
            NEW,
        ));
        if by_address {
            v.push((
                tc::classify(
                    link,
                    tc::HTB,
                    2 + j as u16,
                    Match::to(rack_net(RackId::from(j)), 16),
                    c,
                ),
                NEW,
            ));
        }
    }
    v
}

/// Takes the queues of a link away.
pub fn remove(link: u32) -> NetlinkRequest {
    (tc::remove_htb(link), 0)
}
