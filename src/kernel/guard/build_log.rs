//! The messages that built a node, part by part: what must stay there, and how it is written again.

use std::collections::BTreeMap;
use std::fmt;
use std::os::fd::OwnedFd;

use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::neighbour::NeighbourMessage;
use netlink_packet_route::route::{RouteAttribute, RouteMessage};
use netlink_packet_route::tc::TcMessage;

use crate::nl::NetlinkRequest;
use crate::tc;

/// A part of a node that is compared, and written again, as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodePart {
    /// The link; 0 for the rules, which belong to none.
    pub link: u32,
    /// Which part of the link.
    pub side: LinkPart,
}

/// The parts of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkPart {
    /// Outgoing queues and classes, and the filters that choose between them.
    Queues,
    /// The hooks of `clsact` and the filters on them.
    Filters,
    /// Addresses, neighbours, routes and rules.
    Ways,
}

impl fmt::Display for LinkPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queues => "the queues",
            Self::Filters => "the filters",
            Self::Ways => "the addresses, neighbours and routes",
        })
    }
}

/// The messages in order, and the programs that filters name by their descriptors.
#[derive(Default)]
pub struct BuildLog {
    written: BTreeMap<NodePart, Vec<NetlinkRequest>>,
    programs: Vec<OwnedFd>,
    is_closed: bool,
}

impl BuildLog {
    /// Notes messages that are sent, until the log is taken. Later changes come and go; their
    /// makers note them.
    pub fn note(&mut self, messages: &[NetlinkRequest]) {
        if !self.is_closed {
            for request in messages {
                if let Some(part) = part_of(&request.0) {
                    self.written.entry(part).or_default().push(request.clone());
                }
            }
        }
    }

    /// Keeps programs open: their filters can only be written again with them.
    pub fn hold(&mut self, programs: impl IntoIterator<Item = OwnedFd>) {
        self.programs.extend(programs);
    }

    /// Takes the log; no more messages are noted.
    pub fn take(&mut self) -> Self {
        std::mem::replace(self, Self { is_closed: true, ..Self::default() })
    }

    /// The parts that were written.
    pub fn parts(&self) -> impl Iterator<Item = NodePart> + '_ {
        self.written.keys().copied()
    }

    /// The messages that wrote a part.
    pub fn of(&self, part: NodePart) -> &[NetlinkRequest] {
        self.written.get(&part).map_or(&[], Vec::as_slice)
    }
}

/// The part that a message writes.
fn part_of(message: &Message) -> Option<NodePart> {
    let on = |t: &TcMessage| {
        let hook = t.header.parent == tc::INGRESS.into() || t.header.parent == tc::CLSACT.into();
        NodePart {
            link: t.header.index.unsigned_abs(),
            side: if hook { LinkPart::Filters } else { LinkPart::Queues },
        }
    };
    let ways = |link| NodePart { link, side: LinkPart::Ways };
    match message {
        Message::NewQueueDiscipline(t)
        | Message::NewTrafficClass(t)
        | Message::NewTrafficFilter(t) => Some(on(t)),
        Message::NewNeighbour(NeighbourMessage { header, .. }) => Some(ways(header.ifindex)),
        Message::NewAddress(a) => Some(ways(a.header.index)),
        Message::NewRoute(r) => Some(ways(over(r))),
        Message::NewRule(_) => Some(ways(0)),
        _ => None,
    }
}

/// The link of a route.
fn over(r: &RouteMessage) -> u32 {
    r.attributes
        .iter()
        .find_map(|a| if let RouteAttribute::Oif(link) = a { Some(*link) } else { None })
        .unwrap_or(0)
}
