//! Messages about links, addresses, neighbours, routes and rules.

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{DefaultNla, Nla};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{InfoData, InfoVeth, LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{RouteAttribute, RouteMetric};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage, RulePortRange};
use rtnetlink::{LinkMessageBuilder, LinkUnspec, LinkVeth, RouteMessageBuilder};

use crate::units::Span;

/// Number of the metric of a route that holds TCP's shortest retransmission timeout
/// (linux/rtnetlink.h).
const RTAX_RTO_MIN: u32 = 13;

/// A hardware address.
pub type Mac = [u8; 6];

/// One end of a veth pair.
pub struct VethEnd<'a> {
    /// Interface name.
    pub name: &'a str,
    /// The namespace; `None` for that of the socket.
    pub ns: Option<BorrowedFd<'a>>,
    /// Interface index, chosen by us so that programs and messages need no look-up.
    pub index: u32,
    /// Hardware address.
    pub mac: Mac,
}

const MTU: u32 = 1500;
const QUEUE: u32 = 1000;

/// A veth pair in one message. The second end cannot be made up at once (the kernel says ENOTCONN):
/// see [`up`].
pub fn veth(a: &VethEnd, b: &VethEnd) -> Message {
    let mut peer = LinkMessageBuilder::<LinkUnspec>::new()
        .name(b.name)
        .address(b.mac.to_vec())
        .mtu(MTU)
        .txqueuelen(QUEUE)
        .build();
    place(&mut peer, b);
    let mut link = LinkMessageBuilder::<LinkVeth>::new(a.name, b.name)
        .address(a.mac.to_vec())
        .mtu(MTU)
        .up()
        .txqueuelen(QUEUE)
        .set_info_data(InfoData::Veth(InfoVeth::Peer(peer)))
        .build();
    place(&mut link, a);
    Message::NewLink(link)
}

fn place(link: &mut LinkMessage, end: &VethEnd) {
    // By default the kernel makes a queue a processor, with objects in sysfs that take as long as
    // the rest; our ports have one queue.
    link.attributes.extend([LinkAttribute::NumTxQueues(1), LinkAttribute::NumRxQueues(1)]);
    if let Some(ns) = end.ns {
        link.attributes.push(LinkAttribute::NetNsFd(ns.as_raw_fd()));
    }
    link.header.index = end.index;
}

fn change(index: u32) -> LinkMessage {
    let mut link = LinkMessage::default();
    link.header.index = index;
    link
}

/// Brings a link up.
pub fn up(index: u32) -> Message {
    let mut link = change(index);
    link.header.flags = LinkFlags::Up;
    link.header.change_mask = LinkFlags::Up;
    Message::SetLink(link)
}

/// Writes a link's alias: our mark in a namespace.
pub fn alias(index: u32, text: &str) -> Message {
    let mut link = change(index);
    link.attributes.push(LinkAttribute::IfAlias(text.into()));
    Message::SetLink(link)
}

/// Takes a link's alias away.
pub fn no_alias(index: u32) -> Message {
    const ALIAS: u16 = 20;
    let mut link = change(index);
    // The typed attribute always ends its text with a zero byte, and one byte is still an alias.
    link.attributes.push(LinkAttribute::Other(DefaultNla::new(ALIAS, vec![])));
    Message::SetLink(link)
}

/// Removes a link, and a veth's other end with it.
pub fn remove_link(index: u32) -> Message {
    Message::DelLink(change(index))
}

/// Limits the segments that a host hands down at once, so that slow links have fine grain.
pub fn gso_max(index: u32, bytes: u32) -> Message {
    const GSO_IPV4_MAX_SIZE: u16 = 63;
    let mut link = change(index);
    link.attributes.push(LinkAttribute::GsoMaxSize(bytes));
    link.attributes.push(LinkAttribute::Other(DefaultNla::new(
        GSO_IPV4_MAX_SIZE,
        bytes.to_ne_bytes().to_vec(),
    )));
    Message::SetLink(link)
}

/// Gives a link a MAC address.
pub fn mac(index: u32, address: &[u8]) -> Message {
    let mut link = change(index);
    link.attributes.push(LinkAttribute::Address(address.to_vec()));
    Message::SetLink(link)
}

/// Gives a link an MTU.
pub fn mtu(index: u32, bytes: u32) -> Message {
    let mut link = change(index);
    link.attributes.push(LinkAttribute::Mtu(bytes));
    Message::SetLink(link)
}

/// All links.
pub fn link_dump() -> Message {
    Message::GetLink(LinkMessage::default())
}

/// An address on a link.
pub fn address(index: u32, ip: Ipv4Addr, length: u8) -> Message {
    let mut m = AddressMessage::default();
    m.header.family = AddressFamily::Inet;
    m.header.prefix_len = length;
    m.header.index = index;
    m.attributes =
        vec![AddressAttribute::Local(IpAddr::V4(ip)), AddressAttribute::Address(IpAddr::V4(ip))];
    Message::NewAddress(m)
}

/// A neighbour that never ages: no ARP request is sent for it.
pub fn neighbour(index: u32, ip: Ipv4Addr, mac: Mac) -> Message {
    let mut n = NeighbourMessage::default();
    n.header.family = AddressFamily::Inet;
    n.header.ifindex = index;
    n.header.state = NeighbourState::Permanent;
    n.attributes = vec![
        NeighbourAttribute::Destination(NeighbourAddress::from(IpAddr::V4(ip))),
        NeighbourAttribute::LinkLayerAddress(mac.to_vec()),
    ];
    Message::NewNeighbour(n)
}

/// TCP of a host's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp<'a> {
    /// Congestion control, by its name in the kernel.
    pub congestion: &'a str,
    /// Shortest retransmission timeout, in whole milliseconds.
    pub rto_min: Span,
}

impl Default for Tcp<'_> {
    /// CUBIC, and the shortest timeout that Linux has by itself.
    fn default() -> Self {
        Self { congestion: "cubic", rto_min: Span::millis(200) }
    }
}

/// Where a route leads.
#[derive(Clone, Copy)]
pub struct Route<'a> {
    /// Destination and prefix length.
    pub to: (Ipv4Addr, u8),
    /// Next hop, taken to be on the link.
    pub via: Option<Ipv4Addr>,
    /// Outgoing link.
    pub link: u32,
    /// Routing table; `None` is main.
    pub table: Option<u32>,
    /// TCP of connections over it; `None` is the kernel's own.
    pub tcp: Option<Tcp<'a>>,
}

impl Route<'_> {
    /// A route to a prefix over a link, in the main table.
    pub fn new(to: (Ipv4Addr, u8), via: Option<Ipv4Addr>, link: u32) -> Self {
        Self { to, via, link, table: None, tcp: None }
    }

    fn build(&self) -> netlink_packet_route::route::RouteMessage {
        let mut b = RouteMessageBuilder::<Ipv4Addr>::new()
            .destination_prefix(self.to.0, self.to.1)
            .output_interface(self.link);
        if let Some(via) = self.via {
            b = b.gateway(via).onlink();
        }
        if let Some(t) = self.table {
            b = b.table_id(t);
        }
        let mut m = b.build();
        if let Some(tcp) = self.tcp {
            let rto_min = u32::try_from(tcp.rto_min.0 / 1_000_000).unwrap_or(u32::MAX);
            // TCP takes a timeout from a route only if the metric is locked.
            let metrics = vec![
                RouteMetric::Lock(1 << RTAX_RTO_MIN),
                RouteMetric::RtoMin(rto_min),
                RouteMetric::CcAlgo(tcp.congestion.into()),
            ];
            m.attributes.push(RouteAttribute::Metrics(metrics));
        }
        m
    }

    /// Adds (or, with [`super::nl::REPLACE`], replaces) it.
    pub fn add(&self) -> Message {
        Message::NewRoute(self.build())
    }

    /// Deletes it.
    pub fn delete(&self) -> Message {
        Message::DelRoute(self.build())
    }
}

/// All IPv4 neighbours.
pub fn neighbour_dump() -> Message {
    let mut n = NeighbourMessage::default();
    n.header.family = AddressFamily::Inet;
    Message::GetNeighbour(n)
}

/// All IPv4 addresses.
pub fn address_dump() -> Message {
    let mut m = AddressMessage::default();
    m.header.family = AddressFamily::Inet;
    Message::GetAddress(m)
}

/// All IPv4 routes, of every table.
pub fn route_dump() -> Message {
    Message::GetRoute(RouteMessageBuilder::<Ipv4Addr>::new().build())
}

/// Removes the rule at a priority that leads to `table`, whatever its TOS byte.
pub fn remove_rule(table: u32, priority: u32) -> Message {
    without_rule(rule(None, table, priority))
}

/// Removes the rule that a message makes.
pub fn without_rule(rule: Message) -> Message {
    match rule {
        Message::NewRule(m) => Message::DelRule(m),
        other => other,
    }
}

/// A rule: packets from a prefix look into `table` first.
pub fn rule_from(prefix: (Ipv4Addr, u8), table: u32, priority: u32) -> Message {
    Message::NewRule(from_prefix(prefix, table, priority))
}

fn from_prefix((from, length): (Ipv4Addr, u8), table: u32, priority: u32) -> RuleMessage {
    let mut m = RuleMessage::default();
    m.header.family = AddressFamily::Inet;
    m.header.src_len = length;
    m.header.action = RuleAction::ToTable;
    m.attributes = vec![
        RuleAttribute::Source(IpAddr::V4(from)),
        RuleAttribute::Table(table),
        RuleAttribute::Priority(priority),
    ];
    m
}

/// A rule: packets of one flow look into `table` first.
pub fn rule_of_flow(
    (from, to): (Ipv4Addr, Ipv4Addr),
    ports: (u16, u16),
    table: u32,
    priority: u32,
) -> Message {
    let mut m = from_prefix((from, 32), table, priority);
    m.header.dst_len = 32;
    let one = |port| RulePortRange { start: port, end: port };
    m.attributes.push(RuleAttribute::Destination(IpAddr::V4(to)));
    m.attributes.extend([
        RuleAttribute::SourcePortRange(one(ports.0)),
        RuleAttribute::DestinationPortRange(one(ports.1)),
    ]);
    Message::NewRule(m)
}

/// All IPv4 rules.
pub fn rule_dump() -> Message {
    let mut m = RuleMessage::default();
    m.header.family = AddressFamily::Inet;
    Message::GetRule(m)
}

/// A rule: packets with this TOS byte (`None`: all) look into `table` first.
pub fn rule(tos: Option<u8>, table: u32, priority: u32) -> Message {
    let mut m = RuleMessage::default();
    m.header.family = AddressFamily::Inet;
    m.header.table = table as u8;
    m.header.action = RuleAction::ToTable;
    m.header.tos = tos.unwrap_or(0);
    m.attributes = vec![RuleAttribute::Priority(priority)];
    Message::NewRule(m)
}

/// A rule: packets that have this bit of the DSCP set, whatever the others are, look into `table`
/// first. Kernels before 6.15 do not know it, and some of them take the rule without it: see
/// [`compares_bits`].
pub fn rule_by_bit(bit: u8, table: u32, priority: u32) -> Message {
    let mut m = RuleMessage::default();
    m.header.family = AddressFamily::Inet;
    m.header.table = table as u8;
    m.header.action = RuleAction::ToTable;
    let byte = |kind, value| RuleAttribute::Other(DefaultNla::new(kind, vec![value]));
    m.attributes =
        vec![RuleAttribute::Priority(priority), byte(FRA_DSCP, bit), byte(FRA_DSCP_MASK, bit)];
    Message::NewRule(m)
}

/// Whether the kernel holds a rule that compares bits of the DSCP.
pub fn compares_bits(rule: &RuleMessage) -> bool {
    rule.attributes
        .iter()
        .any(|a| matches!(a, RuleAttribute::Other(n) if n.kind() == FRA_DSCP_MASK))
}

const FRA_DSCP: u16 = 25;
const FRA_DSCP_MASK: u16 = 30;
