//! What a node's kernel holds, reduced to what must not change: every queue, class, filter,
//! neighbour, route, rule and address as a number that stands for its settings. Counters, and what
//! changes with circuits, are left out.
//!
//! Answers are read as bytes: a ToR of 64 racks has some 400 objects, and most are only compared.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;

use netlink_packet_route::RouteNetlinkMessage as Message;

use super::nl::Netlink;
use super::wire::attribute;
use super::{msg, tc};
use crate::admission::TABLE;
use crate::build_log::{LinkPart, NodePart};
use crate::route_lists::RACK_RULES;
use crate::settings::LinkSettings;
use crate::switched::RULE_PRIORITY;
use crate::switcher::{CIRCUIT, LIGHT};

/// A fingerprint of the settings of one object.
type Print = u64;

/// What comes and goes in a node with circuits, besides the state of gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutable {
    /// Nothing.
    Nothing,
    /// Filters of ports of an OCS.
    Crossbar,
    /// Routes in a ToR's table of circuits.
    Admission,
}

/// A link.
#[derive(Clone, Debug)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// It is up and has a carrier.
    pub up: bool,
    /// Its settings.
    pub settings: LinkSettings,
}

/// What a node holds.
#[derive(Debug, Default)]
pub struct Inventory {
    /// Its links, by their index.
    pub links: BTreeMap<u32, Link>,
    /// By part: its objects, in order.
    pub parts: BTreeMap<NodePart, Vec<Print>>,
    /// Links that have the filter for a circuit's packets.
    pub circuits: Vec<u32>,
    /// Links that have a route in the table of circuits.
    pub admitted: Vec<u32>,
}

/// Reads `parts`, which are sorted, and all links from the kernel. O(objects), some microseconds
/// each.
///
/// # Errors
/// What the kernel refused.
pub fn read(nl: &mut Netlink, parts: &[NodePart], mutable: Mutable) -> io::Result<Inventory> {
    let mut links = nl.dump_as(&msg::link_dump(), |_, body| Ok(link(body)))?;
    links.iter_mut().for_each(|(_, l)| l.settings.ask(nl, &l.name));
    let mut found = Inventory { links: links.into_iter().collect(), ..Inventory::default() };
    let mut all = vec![];
    for dump in dumps(parts) {
        all.extend(nl.dump_as(&dump, |kind, body| Ok(object(kind, body)))?);
    }
    for Object { part, print, place } in all {
        match place {
            ObjectIdentity::Filter(at) if mutable == Mutable::Crossbar && at == CIRCUIT => {
                found.circuits.push(part.link)
            }
            ObjectIdentity::Circuits if mutable == Mutable::Admission => {
                found.admitted.push(part.link)
            }
            _ if parts.binary_search(&part).is_ok() => {
                found.parts.entry(part).or_default().push(print)
            }
            _ => {}
        }
    }
    found.parts.values_mut().for_each(|p| p.sort_unstable());
    Ok(found)
}

/// The dumps that show these parts.
fn dumps(parts: &[NodePart]) -> Vec<Message> {
    let mut v = vec![];
    if parts.iter().any(|p| p.side == LinkPart::Ways) {
        v.extend([msg::neighbour_dump(), msg::route_dump(), msg::rule_dump(), msg::address_dump()]);
    }
    if parts.iter().any(|p| p.side != LinkPart::Ways) {
        v.push(tc::queue_dump());
    }
    for p in parts {
        match p.side {
            LinkPart::Queues => {
                v.extend([tc::class_dump(p.link), tc::filter_dump(p.link, tc::HTB)])
            }
            LinkPart::Filters => v.extend([
                tc::filter_dump(p.link, tc::INGRESS),
                tc::filter_dump(p.link, tc::EGRESS),
            ]),
            LinkPart::Ways => {}
        }
    }
    v
}

/// An object of the kernel.
struct Object {
    part: NodePart,
    print: Print,
    place: ObjectIdentity,
}

/// Identity of an object, where it matters.
enum ObjectIdentity {
    /// A filter of this priority and node.
    Filter((u16, u32)),
    /// In the table of circuits.
    Circuits,
    Other,
}

const NEW_ADDRESS: u16 = 20;
const NEW_ROUTE: u16 = 24;
const NEW_NEIGHBOUR: u16 = 28;
const NEW_RULE: u16 = 32;
const NEW_QUEUE: u16 = 36;
const NEW_CLASS: u16 = 40;
const NEW_FILTER: u16 = 44;

fn object(kind: u16, body: &[u8]) -> Option<Object> {
    let other = |(part, print)| Object { part, print, place: ObjectIdentity::Other };
    match kind {
        NEW_QUEUE | NEW_CLASS => queue(kind, body).map(other),
        NEW_FILTER => filter(body),
        NEW_NEIGHBOUR => neighbour(body).map(other),
        NEW_ROUTE => route(body),
        NEW_RULE => rule(body).map(other),
        NEW_ADDRESS => address(body).map(other),
        _ => None,
    }
}

fn word(body: &[u8], at: usize) -> Option<u32> {
    body.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

fn print(of: impl Hash) -> Print {
    let mut h = DefaultHasher::new();
    of.hash(&mut h);
    h.finish()
}

/// A link by its `struct ifinfomsg`.
fn link(body: &[u8]) -> Option<(u32, Link)> {
    const UP_WITH_CARRIER: u32 = 1 | 1 << 16;
    const NAME: u16 = 3;
    let name =
        String::from_utf8_lossy(attribute(body.get(16..)?, NAME)).trim_end_matches('\0').to_owned();
    let up = word(body, 8)? & UP_WITH_CARRIER == UP_WITH_CARRIER;
    Some((word(body, 4)?, Link { name, up, settings: LinkSettings::of(body.get(16..)?) }))
}

/// Length of `struct tcmsg`: padding, link, handle, parent, priority and protocol.
const TC: usize = 20;
const KIND: u16 = 1;
const OPTIONS: u16 = 2;

fn queue(kind: u16, body: &[u8]) -> Option<(NodePart, Print)> {
    let (link, handle, parent) = (word(body, 4)?, word(body, 8)?, word(body, 12)?);
    let attributes = body.get(TC..)?;
    let (name, options) = (attribute(attributes, KIND), attribute(attributes, OPTIONS));
    let settings = match (kind, name) {
        // The kernel's own queues.
        (NEW_QUEUE, _) if handle == 0 => return None,
        // `struct tc_htb_glob` ends with a counter.
        (NEW_QUEUE, b"htb\0") => attribute(options, 2).get(..16).unwrap_or(&[]),
        // A gate opens and shuts with its circuit.
        (_, b"tbf\0") => &[],
        _ => options,
    };
    let side = if parent == tc::CLSACT { LinkPart::Filters } else { LinkPart::Queues };
    Some((NodePart { link, side }, print((kind, handle, parent, name, settings))))
}

fn filter(body: &[u8]) -> Option<Object> {
    let (link, node, parent, info) =
        (word(body, 4)?, word(body, 8)?, word(body, 12)?, word(body, 16)?);
    let attributes = body.get(TC..)?;
    let (name, options) = (attribute(attributes, KIND), attribute(attributes, OPTIONS));
    let place = ((info >> 16) as u16, node);
    let settings = match name {
        // Class, name, tag and number of the program.
        b"bpf\0" => [3, 7, 10, 11].map(|k| attribute(options, k)),
        // Class, size of the table, what is compared, and where to send it.
        b"u32\0" => {
            let to = if place == LIGHT { &[] } else { target(attribute(options, 7)) };
            [attribute(options, 1), attribute(options, 4), attribute(options, 5), to]
        }
        _ => [options, &[], &[], &[]],
    };
    let side = if [tc::INGRESS, tc::EGRESS].contains(&parent) {
        LinkPart::Filters
    } else {
        LinkPart::Queues
    };
    let print = print((NEW_FILTER, place, parent, info, name, settings));
    Some(Object { part: NodePart { link, side }, print, place: ObjectIdentity::Filter(place) })
}

/// What the first action does and to which link: the end of `struct tc_mirred`.
fn target(actions: &[u8]) -> &[u8] {
    const FIRST: u16 = 1;
    const PARAMETERS: u16 = 2;
    attribute(attribute(attribute(actions, FIRST), OPTIONS), PARAMETERS).get(20..28).unwrap_or(&[])
}

fn neighbour(body: &[u8]) -> Option<(NodePart, Print)> {
    const PERMANENT: u8 = 0x80;
    let link = word(body, 4)?;
    let attributes = body.get(12..)?;
    let lasts = body[0] == libc::AF_INET as u8 && body[8] & PERMANENT != 0;
    let print = print((NEW_NEIGHBOUR, attribute(attributes, 1), attribute(attributes, 2)));
    lasts.then_some((NodePart { link, side: LinkPart::Ways }, print))
}

fn route(body: &[u8]) -> Option<Object> {
    const BY_KERNEL: u8 = 2;
    let attributes = body.get(12..)?;
    let own = |kind| attribute(attributes, kind);
    let (to, link, via, table) = (own(1), word(own(4), 0)?, own(5), word(own(15), 0)?);
    if body[5] == BY_KERNEL {
        return None;
    }
    let place = if table == TABLE { ObjectIdentity::Circuits } else { ObjectIdentity::Other };
    Some(Object {
        part: NodePart { link, side: LinkPart::Ways },
        print: print((NEW_ROUTE, body[1], to, via, table)),
        place,
    })
}

fn rule(body: &[u8]) -> Option<(NodePart, Print)> {
    let attributes = body.get(12..)?;
    let own = |kind| attribute(attributes, kind);
    let priority = word(own(6), 0)?;
    // Those of hosts and flows come and go with their lists.
    let lasts = [RULE_PRIORITY, RACK_RULES].contains(&priority);
    let print = print((NEW_RULE, &body[1..4], own(2), priority, own(15), own(25), own(30)));
    lasts.then_some((NodePart { link: 0, side: LinkPart::Ways }, print))
}

fn address(body: &[u8]) -> Option<(NodePart, Print)> {
    let (length, link) = (body.get(1)?, word(body, 4)?);
    Some((
        NodePart { link, side: LinkPart::Ways },
        print((NEW_ADDRESS, length, attribute(body.get(8..)?, 2))),
    ))
}
