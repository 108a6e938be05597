//! The queues of every port: rates by HTB, FIFOs in bytes, acknowledgements before bulk.
//!
//! Sizes were chosen by measurement; the default leaf (1000 packets of up to 64 kB) would hold half a second; behind a full EPS
//! queue without priority for acknowledgements, circuits carry 46 to 81 % only.

use netlink_packet_route::RouteNetlinkMessage as Message;

use super::nl::{NEW, Request};
use super::tc::{self, Class, Match};
use crate::coflows::elephants::Admit;
use crate::coflows::network::Service;
use crate::coflows::priority::{LAST, dscp};
use crate::ids::RackId;
use crate::topology::Topology;
use crate::topology::addresses::rack_net;
use crate::units::{BitRate, Bytes, Span};

/// The largest segment that hosts hand down: half a millisecond of a circuit, so that slow circuits have fine grain.
pub fn gso_max(rate: BitRate) -> u32 {
    (rate.bytes_in(Span::micros(500)).0 as u32).clamp(9_000, 65_536)
}

/// The limit of a virtual output queue: three milliseconds, and on slow circuits still room for the smallest windows of some flows
/// (18 kB cost four flows a fifth of 100 Mb/s). Sixteen racks that rotate at 1 Gb/s use 84 % of their light with 1 ms, whose overflow
/// throws windows back when a circuit comes up, 88 % with 2 or 3 ms, and 86 % with 4 ms, whose drain takes that time from the light.
pub fn voq_limit(rate: BitRate) -> u32 {
    (rate.bytes_in(Span::millis(3)).0 as u32).max(64_000).max(2 * gso_max(rate))
}

/// How long before a circuit ends its admission must end, so that its queue has drained: the queue's length in time, and
/// what a busy machine takes to move packets between namespaces.
pub fn guard(rate: BitRate) -> Span {
    rate.time_for(Bytes(u64::from(voq_limit(rate)))) + Span::millis(1)
}

/// Bytes that a shaper may send at once: one segment. More would hit the next queue as a burst whenever a path changes.
fn burst(rate: BitRate) -> u32 {
    (rate.bytes_in(Span::micros(60)).0 as u32).max(gso_max(rate)).min(1 << 20)
}

fn class(minor: u16, parent: u16, rate: BitRate, ceil: BitRate, priority: u32) -> Class {
    Class { minor, parent, rate, ceil, burst: burst(ceil), priority }
}

/// A host's port, either end: one queue, or one for every priority.
pub fn host_port(link: u32, rate: BitRate, service: Service) -> Vec<Request> {
    let limit = (rate.bytes_in(Span::millis(4)).0 as u32).clamp(256 << 10, 8 << 20);
    if service == Service::Strict {
        return strict_port(link, rate, limit);
    }
    vec![(tc::htb(link, 1), NEW), (class(1, 0, rate, rate, 0).add(link), NEW), (tc::bfifo(link, 1, limit), NEW)]
}

/// Minor number of the class for short packets.
pub const SMALL: u16 = 2;
const BULK: u16 = 3;

/// Minor number of the class for a strict priority, 0 to [`LAST`].
pub fn priority_class(priority: u8) -> u16 {
    0x10 + u16::from(priority)
}

/// What of a link every strict priority is assured, however busy those before it are: so that its connections live on.
const ASSURED: u64 = 1000;

/// A port that serves strict priorities, each with a queue of `limit` bytes, and short packets before all of them. What carries no class
/// goes with the last. HTB counts all of them to one link: a class of smaller `prio` takes what its siblings leave of their assured rates
/// first, and half of the link is assured to short packets, which never need it.
fn strict_port(link: u32, rate: BitRate, limit: u32) -> Vec<Request> {
    let mut v = vec![
        (tc::htb(link, priority_class(LAST)), NEW),
        (class(1, 0, rate, rate, 0).add(link), NEW),
        (class(SMALL, 1, BitRate(rate.0 / 2), rate, 0).add(link), NEW),
        (tc::bfifo(link, SMALL, limit), NEW),
        (tc::classify(link, tc::HTB, 1, Match::SMALL, SMALL), NEW),
    ];
    for p in 0..=LAST {
        let c = priority_class(p);
        v.push((class(c, 1, BitRate(rate.0 / ASSURED), rate, u32::from(p)).add(link), NEW));
        v.push((tc::bfifo(link, c, limit), NEW));
        if p < LAST {
            v.push((tc::classify(link, tc::HTB, 2 + u16::from(p), Match::class_selector(dscp(p)), c), NEW));
        }
    }
    v
}

/// A port of the EPS, either end: short packets first. `limit`: bytes that a queue holds.
pub fn eps_port(link: u32, rate: BitRate, limit: u32, service: Service) -> Vec<Request> {
    if service == Service::Strict {
        return strict_port(link, rate, limit);
    }
    let half = BitRate(rate.0 / 2);
    vec![
        (tc::htb(link, BULK), NEW),
        (class(1, 0, rate, rate, 0).add(link), NEW),
        (class(SMALL, 1, half, rate, 0).add(link), NEW),
        (class(BULK, 1, half, rate, 1).add(link), NEW),
        (tc::bfifo(link, SMALL, limit), NEW),
        (tc::bfifo(link, BULK, limit), NEW),
        (tc::classify(link, tc::handle(1, 0), 1, Match::SMALL, SMALL), NEW),
    ]
}

/// What a queue of the EPS holds: all that a flow had on its way over a circuit, which it throws at the EPS when the circuit ends.
/// Sixteen racks that rotate used 69 % of their light with one queue of 150 kB for all racks, 84 % with one of 150 kB a rack, and 88 %
/// with 400 or 700 kB a rack.
pub fn eps_limit(topology: &Topology) -> u32 {
    topology.planes.iter().map(|p| voq_limit(p.rate)).max().unwrap_or(0).clamp(150_000, 4 << 20)
}

/// Rack `own`'s ToR's port to the EPS: short packets first, and a queue for every destination rack, as on its OCS ports: what waits
/// for one rack does not hold up the others. The queues' counters are the traffic to the racks. Under strict priorities there is a queue
/// for each priority instead, and [`counting_port`] counts.
pub fn tor_eps_port(link: u32, topology: &Topology, own: usize, service: Service) -> Vec<Request> {
    let (rate, limit, racks) = (topology.racks[own].uplink, eps_limit(topology), topology.rack_count());
    let mut v = eps_port(link, rate, limit, service);
    if service == Service::Strict {
        return v;
    }
    for j in (0..racks).filter(|&j| j != own) {
        let c = rack_class(j);
        v.push((class(c, 1, BitRate(rate.0 / 2 / racks as u64), rate, 1).add(link), NEW));
        v.push((tc::bfifo(link, c, limit), NEW));
        v.push((tc::classify(link, tc::handle(1, 0), 2 + j as u16, Match::to(rack_net(RackId::from(j)), 16), c), NEW));
    }
    v
}

/// A port that holds nothing up and counts by destination rack what goes through it, as rack `own`'s ToR's port to the EPS does where
/// it has a queue for every rack.
pub fn counting_port(link: u32, own: usize, racks: usize) -> Vec<Request> {
    // Above all that veth pairs carry.
    let rate = BitRate(1_000_000_000_000);
    let mut v = vec![(tc::htb(link, SMALL), NEW), (class(SMALL, 0, rate, rate, 0).add(link), NEW)];
    for j in (0..racks).filter(|&j| j != own) {
        let c = rack_class(j);
        v.push((class(c, 0, rate, rate, 0).add(link), NEW));
        v.push((tc::classify(link, tc::HTB, 1 + j as u16, Match::to(rack_net(RackId::from(j)), 16), c), NEW));
    }
    v
}

/// Minor number of the class for a destination rack.
pub fn rack_class(rack: usize) -> u16 {
    0x100 + rack as u16
}

/// The limit of a queue whose packets wait for their circuit. Sixteen racks that rotate at 1 Gb/s use 84 to 96 % of their light (`netlink`)
/// with the queue of those that do not wait, 94 to 96 % with four times that, and no more with ten.
fn waiting_limit(rate: BitRate) -> u32 {
    voq_limit(rate) * 4
}

/// The gate of a virtual output queue whose packets wait for their circuit.
pub fn gate(link: u32, rate: BitRate, to: usize, open: bool) -> Message {
    tc::gate(link, rack_class(to), rate, waiting_limit(rate), open)
}

/// How a packet finds its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classes {
    /// By filters that look at its address.
    ByAddress,
    /// The program that sends it to the port names it.
    ByProgram,
}

/// A ToR's port to an OCS: the circuit's rate, and a virtual output queue for every destination rack; where packets wait for their circuit
/// the queues are gates, and shut.
pub fn ocs_port(link: u32, rate: BitRate, (own, racks): (usize, usize), classes: Classes, admit: Admit) -> Vec<Request> {
    // What no class claims (probes) goes by 1:2.
    let mut v = vec![
        (tc::htb(link, SMALL), NEW),
        (class(1, 0, rate, rate, 0).add(link), NEW),
        (class(SMALL, 1, BitRate(rate.0 / 1000), rate, 0).add(link), NEW),
        (tc::bfifo(link, SMALL, 16_384), NEW),
    ];
    for j in (0..racks).filter(|&j| j != own) {
        let c = rack_class(j);
        v.push((class(c, 1, BitRate(rate.0 / 1000), rate, 1).add(link), NEW));
        v.push((if admit.waits() { gate(link, rate, j, false) } else { tc::bfifo(link, c, voq_limit(rate)) }, NEW));
        if classes == Classes::ByAddress {
            v.push((tc::classify(link, tc::handle(1, 0), 1 + j as u16, Match::to(rack_net(RackId::from(j)), 16), c), NEW));
        }
    }
    v
}

/// Takes the queues of a link away.
pub fn remove(link: u32) -> Request {
    (tc::remove_htb(link), 0)
}
