//! The `netlink` mechanism: u32 and mirred filters are the crossbar, routes are admission, and a
//! thread makes every change.
//!
//! For kernels that refuse bpf(), such as those in a user namespace without root.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use netlink_packet_route::RouteNetlinkMessage as Message;
use parking_lot::Mutex;

use super::admission::{self, CircuitAdmission, TABLE};
use super::slots::Slots;
use super::switcher::{CircuitSwitcher, LATE, LIGHT, dark_action};
use crate::coflows::elephants::Admit;
use crate::coflows::network::Service;
use crate::demand::DemandMatrix;
use crate::fabric::{OpResult, PortCounters, low_gained};
use crate::ids::{PlaneId, RackId};
use crate::layout::{self, PortKind};
use crate::msg::{self, Route, VethEnd};
use crate::network::{EmulatedNetwork, Node};
use crate::nl::{NEW, Netlink, NetlinkRequest};
use crate::plan::{Op, Programmed};
use crate::tc::{self, Match};
use crate::topology::PAYLOAD;
use crate::topology::Topology;
use crate::topology::addresses::rack_net;
use crate::units::{Span, Time};
use crate::{Clock, Serving, packet, queues};

/// The rule's place among the node's rules.
pub const RULE_PRIORITY: u32 = 1000;
/// Name of the sink's near end: packets without a destination are sent there, and counted.
pub const SINK_NAME: &str = "sink0";
/// Indexes of the sink's two ends, far above those that the kernel hands out in nodes of others.
const SINK: (u32, u32) = (1_000_000_000, 1_000_000_001);
/// The thread that switches, and sockets for reading counters.
pub struct Switched {
    clock: Clock,
    slots: Arc<Mutex<Slots>>,
    switcher: CircuitSwitcher,
    /// The link in every ToR whose classes count what goes to the EPS by rack; `None`: its port to
    /// the EPS.
    counting: Option<u32>,
    /// By link of a ToR and destination: a queue that is written again counts from zero, and one
    /// that is gone counts no more.
    counted: BTreeMap<(RackId, TorLink, RackId), Odometer>,
    /// By plane and rack, packets that came out at the wrong rack, and that came too late for their
    /// circuit: a filter that is written again counts from zero.
    filtered: BTreeMap<(usize, usize), (Odometer, Odometer)>,
}

/// The link by which a packet leaves its ToR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TorLink {
    Eps,
    Ocs(usize),
}

/// A counter that continues where the kernel's starts again.
#[derive(Clone, Copy, Debug, Default)]
struct Odometer {
    /// Bytes and packets.
    total: (u64, u64),
    /// The counter's numbers at the last reading.
    last: (u64, u64),
}

impl Odometer {
    fn read(&mut self, now: (u64, u64)) {
        let gained = if now.0 < self.last.0 {
            now
        } else {
            (now.0 - self.last.0, low_gained(now.1, self.last.1))
        };
        self.total = (self.total.0 + gained.0, self.total.1 + gained.1);
        self.last = now;
    }

    /// The same for a counter of packets alone; gives the total.
    fn packets(&mut self, now: u64) -> u64 {
        self.read((now, now));
        self.total.1
    }
}

impl Switched {
    /// Sets queues, filters and rules up and starts the thread.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn install(
        net: &mut EmulatedNetwork,
        Serving { admit, port, service }: Serving,
        clock: Clock,
    ) -> io::Result<Self> {
        if port.is_some() {
            let why = "`elephants.port` needs the mechanism `timed`: the routes of `netlink` know \
                       packets by their marks alone";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        let topology = net.topology.clone();
        let (racks, shared) = (topology.rack_count(), queues::uplink_is_shared(&topology, service));
        for (r, tor) in net.tors.iter_mut().enumerate() {
            add_sink(&mut tor.node, &net.mark)?;
            let mut v = queues::tor_eps_port(tor.eps, &topology, r, service, shared);
            if shared {
                v.extend(count(tor.eps, &topology, r, &net.mark));
            }
            for (p, &link) in topology.planes.iter().zip(&tor.ocs) {
                v.extend(queues::ocs_port(
                    link,
                    (&topology, p),
                    r,
                    queues::Classes::ByAddress,
                    admit,
                ));
                v.extend(only_own(link, RackId::from(r)));
            }
            if admit.waits()
                && let Some(&link) = tor.ocs.first()
            {
                v.extend(
                    (0..racks)
                        .filter(|&j| j != r)
                        .map(|j| (admission::route(link, RackId::from(j)).add(), NEW)),
                );
            }
            v.push((rule(admit, service), NEW));
            tor.node.send(v)?;
            if service == Service::Strict && admit.tos().is_some() && !topology.planes.is_empty() {
                expect_bits(&mut tor.node.netlink)?;
            }
        }
        for core in &mut net.ocs {
            let mut v = vec![];
            for (r, &port) in core.ports.iter().enumerate() {
                v.push((tc::clsact(port), NEW));
                v.push((tc::redirect(port, LATE, ANY_IP, port, dark_action(r)), NEW));
                v.push((tc::redirect(port, LIGHT, Match::ANY, port, dark_action(r)), NEW));
            }
            core.node.send(v)?;
        }
        let admission = if admit.waits() {
            CircuitAdmission::gates(net)
        } else {
            CircuitAdmission::routes(net)
        }?;
        let guard = crate::guard(&topology, admit);
        let slots = Arc::new(Mutex::new(Slots::new(topology, guard)));
        let counting = shared.then_some(COUNT.0);
        let switcher = CircuitSwitcher::start(net, admission, true, guard, slots.clone(), clock)?;
        Ok(Self {
            clock,
            counting,
            counted: BTreeMap::new(),
            filtered: BTreeMap::new(),
            switcher,
            slots,
        })
    }

    /// Carries out operations in order.
    pub fn apply_all(&mut self, ops: &[Op]) -> Vec<OpResult> {
        let results = self.slots.lock().apply_all(ops, || self.clock.now(), |_, _, _| {});
        self.switcher.wake();
        results
    }

    /// Reservations that have not ended.
    pub fn programmed(&self, now: Time) -> Programmed {
        self.slots.lock().programmed(now)
    }

    /// The thread.
    pub fn switcher(&self) -> &CircuitSwitcher {
        &self.switcher
    }

    /// Reads the classes' and filters' counters: bytes sent, bytes crossed, and every port's
    /// counters.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn counters(
        &mut self,
        net: &mut EmulatedNetwork,
    ) -> io::Result<(DemandMatrix, DemandMatrix, Vec<Vec<PortCounters>>)> {
        let (racks, counting) = (net.topology.rack_count(), self.counting);
        let (mut sent, mut crossed) = (DemandMatrix::zero(racks), DemandMatrix::zero(racks));
        let mut ports = vec![vec![PortCounters::default(); racks]; net.ocs.len()];
        for (r, tor) in net.tors.iter_mut().enumerate() {
            let from = RackId::from(r);
            let counted = &mut self.counted;
            let mut count = |way, to, c: tc::QdiscCounters| {
                counted.entry((from, way, to)).or_default().read((c.bytes, u64::from(c.packets)))
            };
            class_bytes(&mut tor.node.netlink, counting.unwrap_or(tor.eps), racks, |to, c| {
                count(TorLink::Eps, to, c)
            })?;
            for (p, &link) in tor.ocs.iter().enumerate() {
                class_bytes(&mut tor.node.netlink, link, racks, |to, c| {
                    count(TorLink::Ocs(p), to, c)
                })?;
                let strays = filter_packets(&mut tor.node.netlink, link, STRAYS)?;
                ports[p][r].misdelivered =
                    self.filtered.entry((p, r)).or_default().0.packets(strays);
            }
        }
        for (&(from, way, to), odometer) in &self.counted {
            let (bytes, packets) = odometer.total;
            sent.add(from, to, bytes);
            if let TorLink::Ocs(p) = way {
                crossed.add(from, to, bytes);
                ports[p][from.index()].crossed_bytes += bytes;
                ports[p][from.index()].crossed_packets += packets;
            }
        }
        for (p, core) in net.ocs.iter_mut().enumerate() {
            for (r, &port) in core.ports.iter().enumerate() {
                let late = filter_packets(&mut core.node.netlink, port, LATE)?;
                let late = self.filtered.entry((p, r)).or_default().1.packets(late);
                ports[p][r].late_packets = late;
                ports[p][r].crossed_packets = ports[p][r].crossed_packets.saturating_sub(late);
            }
        }
        Ok((sent, crossed, ports))
    }
}

/// Adds a pair of links whose far end has no receiver.
fn add_sink(node: &mut Node, mark: &str) -> io::Result<()> {
    let end = |name, index, last| VethEnd { name, ns: None, index, mac: [2, 0, 0, 0xee, 0, last] };
    node.send(vec![
        (msg::veth(&end(SINK_NAME, SINK.0, 0), &end("sink1", SINK.1, 1)), NEW),
        (msg::alias(SINK.0, mark), 0),
        (msg::up(SINK.1), 0),
    ])
}

/// Name of the near end of the pair of links by which a ToR sends to the EPS what is counted by
/// rack.
pub const COUNT_NAME: &str = "count0";
const COUNT: (u32, u32) = (1_000_000_004, 1_000_000_005);

/// A pair of links before the port to the EPS. The port has queues by priority, so it does not
/// count by rack. All packets to other racks over the EPS enter the pair in a class of their rack,
/// and come out at the port with the addresses that they would have had there. The route disappears
/// with the links.
fn count(eps: u32, topology: &Topology, rack: usize, mark: &str) -> Vec<NetlinkRequest> {
    let mac = layout::mac(PortKind::TorEps, rack);
    let end = |name, index| VethEnd { name, ns: None, index, mac };
    let everywhere = (Ipv4Addr::new(10, 0, 0, 0), 8);
    let mut v = vec![
        (msg::veth(&end(COUNT_NAME, COUNT.0), &end("count1", COUNT.1)), NEW),
        (msg::alias(COUNT.0, mark), 0),
        (msg::up(COUNT.1), 0),
        (
            msg::neighbour(
                COUNT.0,
                layout::EPS_GATEWAY,
                packet::mac_to(topology, RackId::from(rack)),
            ),
            NEW,
        ),
        (tc::clsact(COUNT.1), NEW),
        (tc::redirect(COUNT.1, (1, tc::FIRST_NODE), Match::ANY, eps, 0), NEW),
    ];
    v.extend(queues::counting_port(COUNT.0, rack, topology.rack_count()));
    v.push((Route::new(everywhere, Some(layout::EPS_GATEWAY), COUNT.0).add(), NEW));
    v
}

/// The rule that sends packets to the table of circuits. Without priorities an elephant's TOS byte
/// is compared as a whole, which every kernel can do.
fn rule(admit: Admit, service: Service) -> Message {
    match (admit.tos(), service) {
        (Some(tos), Service::Strict) => msg::rule_by_bit(tos >> 2, TABLE, RULE_PRIORITY),
        (tos, _) => msg::rule(tos, TABLE, RULE_PRIORITY),
    }
}

/// Whether the kernel has taken a rule that compares one bit: kernels ignore what they do not know.
///
/// # Errors
/// It has not, or the rules cannot be listed.
pub fn expect_bits(nl: &mut Netlink) -> io::Result<()> {
    let mut there = false;
    nl.dump(msg::rule_dump(), |m| {
        if let Message::NewRule(rule) = m {
            there |= msg::compares_bits(&rule);
        }
    })?;
    let why = "`network: priority` over `netlink` needs routing rules that compare one bit of the DSCP, which came with Linux 6.15; \
               use `timed`, or a topology without an OCS";
    if there { Ok(()) } else { Err(io::Error::new(io::ErrorKind::Unsupported, why)) }
}

/// Priority of the filter for what is not for this rack.
const STRAYS: (u16, u32) = (3, 0);
/// Matches all IP packets: their first four bits are the version.
const ANY_IP: Match = Match { offset: 0, value: 0x4000_0000, mask: 0xf000_0000 };

/// On a ToR's OCS port: packets for this rack pass, and so do packets from this rack, which the OCS
/// sent back; other IP packets go to the sink. They must not reach the routes, which would carry
/// them to their rack over the EPS and hide the fault.
fn only_own(link: u32, rack: RackId) -> [NetlinkRequest; 4] {
    let net = rack_net(rack);
    [
        (tc::clsact(link), NEW),
        (tc::classify(link, tc::INGRESS, 1, Match::to(net, 16), 1), NEW),
        (tc::classify(link, tc::INGRESS, 2, Match::from(net, 16), 1), NEW),
        (tc::redirect(link, STRAYS, ANY_IP, SINK.0, 1), NEW),
    ]
}

pub(crate) fn class_bytes(
    nl: &mut Netlink,
    link: u32,
    racks: usize,
    mut each: impl FnMut(RackId, tc::QdiscCounters),
) -> io::Result<()> {
    nl.dump(tc::class_dump(link), |m| {
        if let Message::NewTrafficClass(t) = &m {
            let mut c = tc::counters(t);
            // Classes count frames with their headers. Their packets are a 32-bit number, which
            // wraps: as if all were full.
            c.bytes = (u128::from(c.bytes) * u128::from(PAYLOAD.0) / u128::from(PAYLOAD.1)) as u64;
            let minor = (c.handle & 0xffff) as usize;
            if let Some(to) =
                minor.checked_sub(usize::from(queues::rack_class(0))).filter(|&j| j < racks)
            {
                each(RackId::from(to), c);
            }
        }
    })
}

/// Packets that the actions of a filter have taken; of all filters of its priority if it has no
/// node of its own.
fn filter_packets(nl: &mut Netlink, link: u32, (priority, node): (u16, u32)) -> io::Result<u64> {
    let mut packets = 0;
    nl.dump(tc::filter_dump(link, tc::INGRESS), |m| {
        if let Message::NewTrafficFilter(t) = &m
            && (t.header.info >> 16) as u16 == priority
            && (node == 0 || u32::from(t.header.handle) == node)
        {
            packets = packets.max(tc::action_packets(t));
        }
    })?;
    Ok(packets)
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
    let mut net = EmulatedNetwork::build(tiny, "heliostat:probe", None)?;
    Switched::install(&mut net, Admit::Marked.into(), Clock::start()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_is_written_again_loses_no_packet_that_it_counted() {
        let mut seen = Odometer::default();
        assert_eq!(
            [0, 3, 3, 0, 0, 2, 7, 1].map(|now| seen.packets(now)),
            [0, 3, 3, 3, 3, 5, 10, 11]
        );
    }
}
