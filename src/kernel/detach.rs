//! Leaving nodes that others made as they were found.
//!
//! Our own namespaces go as a whole; Mininet's stay when we leave. There every link that we shape
//! carries our mark as its alias, from before the first change until after the last. So the next
//! run or `heliostat clean` can also clear what a killed one left. Only marked links, and a ToR's
//! rule and routes for them, are touched.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;

use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::link::LinkAttribute;
use netlink_packet_route::route::{RouteAttribute, RouteFlags, RouteMessage};
use netlink_packet_route::rule::RuleAttribute;

use super::admission::TABLE;
use super::attached;
use super::network::{EmulatedNetwork, Node};
use super::nl::{Netlink, NetlinkRequest};
use super::ownership::{PREFIX, link_mark};
use super::packet::LIMIT_NAME;
use super::route_lists::{FLOW_RULES, HOST_RULES, RACK_RULES};
use super::switched::{COUNT_NAME, RULE_PRIORITY, SINK_NAME};
use super::{msg, tc};

/// What the kernel gives a new veth as its largest segment: GSO_LEGACY_MAX_SIZE.
const GSO_DEFAULT: u32 = 65_536;

struct NamedLink {
    index: u32,
    name: String,
    alias: String,
}

impl NamedLink {
    /// The fabric whose mark it carries.
    fn fabric(&self) -> Option<&str> {
        self.alias.strip_prefix(PREFIX)
    }
}

fn links(nl: &mut Netlink) -> io::Result<Vec<NamedLink>> {
    let mut found = vec![];
    nl.dump(msg::link_dump(), |m| {
        if let Message::NewLink(l) = m {
            let mut link =
                NamedLink { index: l.header.index, name: String::new(), alias: String::new() };
            for a in l.attributes {
                match a {
                    LinkAttribute::IfName(n) => link.name = n,
                    LinkAttribute::IfAlias(t) => link.alias = t,
                    _ => {}
                }
            }
            found.push(link);
        }
    })?;
    Ok(found)
}

/// Makes links of a node ours: what dead fabrics left on them is removed, then each gets `fabric`'s
/// mark. `running` are the fabrics whose links may not be taken. The caller has its
/// [`turn`](super::ownership::turn).
///
/// # Errors
/// When a link belongs to a running fabric, carries somebody else's alias, or has somebody else's
/// queues; it is not touched then.
pub fn claim(node: &mut Node, wanted: &[u32], fabric: &str, running: &[String]) -> io::Result<()> {
    let refuse = |link: &str, why: &str| {
        Err(io::Error::other(format!("link {link} of node {} {why}", node.name)))
    };
    let all = links(&mut node.netlink)?;
    for l in all.iter().filter(|l| wanted.contains(&l.index)) {
        match l.fabric() {
            Some(f) if f != fabric && running.iter().any(|r| r == f) => {
                return refuse(
                    &l.name,
                    &format!("is controlled by the fabric {f} already; stop it first"),
                );
            }
            None if !l.alias.is_empty() => {
                return refuse(&l.name, &format!("is somebody else's: its alias is `{}`", l.alias));
            }
            _ => {}
        }
    }
    strip(&mut node.netlink, |f| f == fabric || !running.iter().any(|r| r == f))?;
    for q in tc::queues(&mut node.netlink)? {
        if wanted.contains(&q.link) && q.handle != 0 {
            let name = all.iter().find(|l| l.index == q.link).map_or("", |l| &l.name);
            return refuse(
                name,
                &format!("has a queue already ({}); was it made with `--link tc`?", q.kind),
            );
        }
    }
    let text = link_mark(fabric);
    node.send(wanted.iter().map(|&l| (msg::alias(l, &text), 0)).collect())
}

/// Takes everything of the fabrics that `whose` accepts out of a node: a ToR's rule and routes,
/// queues, filters, sinks, segment limits, and last the marks. Returns whether there was anything.
///
/// # Errors
/// What the kernel refused.
pub fn strip(nl: &mut Netlink, whose: impl Fn(&str) -> bool) -> io::Result<bool> {
    let ours: Vec<NamedLink> =
        links(nl)?.into_iter().filter(|l| l.fabric().is_some_and(&whose)).collect();
    if ours.is_empty() {
        return Ok(false);
    }
    let is_ours = |index: u32| ours.iter().any(|l| l.index == index);
    if ours.iter().any(|l| l.name.starts_with("ocs")) {
        remove_routes(nl, is_ours)?;
    }
    if ours.iter().any(|l| l.name.starts_with("cable")) {
        remove_lists(nl, is_ours)?;
    }
    let mut v: Vec<NetlinkRequest> = vec![];
    for q in tc::queues(nl)?.iter().filter(|q| is_ours(q.link)) {
        match (q.kind.as_str(), q.handle) {
            ("htb", tc::HTB) => v.push((tc::remove_htb(q.link), 0)),
            ("clsact", _) => v.push((tc::remove_clsact(q.link), 0)),
            _ => {}
        }
    }
    v.extend(
        ours.iter().filter(|l| l.name == "eth0").map(|l| (msg::gso_max(l.index, GSO_DEFAULT), 0)),
    );
    nl.send(v)?;
    let (sinks, kept): (Vec<&NamedLink>, Vec<&NamedLink>) =
        ours.iter().partition(|l| [SINK_NAME, LIMIT_NAME, COUNT_NAME].contains(&l.name.as_str()));
    let last = sinks
        .iter()
        .map(|l| msg::remove_link(l.index))
        .chain(kept.iter().map(|l| msg::no_alias(l.index)));
    nl.send(last.map(|m| (m, 0)).collect())?;
    Ok(true)
}

/// A ToR's rule for circuits, if it is there, and the routes over links of ours.
fn remove_routes(nl: &mut Netlink, is_ours: impl Fn(u32) -> bool) -> io::Result<()> {
    match nl.send(vec![(msg::remove_rule(TABLE, RULE_PRIORITY), 0)]) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let mut v = vec![];
    nl.dump(msg::route_dump(), |m| {
        if let Message::NewRoute(mut r) = m
            && u32::from(r.header.table) == TABLE
            && over(&r).is_some_and(&is_ours)
        {
            // What the kernel reports of a link's state may not be sent back.
            r.header.flags = RouteFlags::empty();
            v.push((Message::DelRoute(r), 0));
        }
    })?;
    nl.send(v)
}

/// A switch's rules for lists, and the routes of the tables to which they lead over links of ours.
fn remove_lists(nl: &mut Netlink, is_ours: impl Fn(u32) -> bool) -> io::Result<()> {
    let (mut v, mut tables) = (vec![], BTreeSet::new());
    nl.dump(msg::rule_dump(), |m| {
        let Message::NewRule(rule) = m else { return };
        let attribute =
            |pick: fn(&RuleAttribute) -> Option<u32>| rule.attributes.iter().find_map(pick);
        let place = attribute(|a| if let RuleAttribute::Priority(p) = a { Some(*p) } else { None });
        if place.is_some_and(|p| [FLOW_RULES, HOST_RULES, RACK_RULES].contains(&p)) {
            tables.extend(attribute(
                |a| if let RuleAttribute::Table(t) = a { Some(*t) } else { None },
            ));
            v.push((Message::DelRule(rule), 0));
        }
    })?;
    nl.dump(msg::route_dump(), |m| {
        if let Message::NewRoute(mut r) = m
            && table(&r).is_some_and(|t| tables.contains(&t))
            && over(&r).is_some_and(&is_ours)
        {
            r.header.flags = RouteFlags::empty();
            v.push((Message::DelRoute(r), 0));
        }
    })?;
    nl.send(v)
}

/// The table of a route.
fn table(r: &RouteMessage) -> Option<u32> {
    r.attributes.iter().find_map(|a| if let RouteAttribute::Table(t) = a { Some(*t) } else { None })
}

/// The link of a route.
fn over(r: &RouteMessage) -> Option<u32> {
    r.attributes
        .iter()
        .find_map(|a| if let RouteAttribute::Oif(link) = a { Some(*link) } else { None })
}

/// Takes everything of a fabric out of all nodes of a network. A node that does not let us is named
/// in the log.
pub fn leave(net: &mut EmulatedNetwork, fabric: &str) {
    for (node, _) in net.nodes_and_links() {
        if let Err(e) = strip(&mut node.netlink, |f| f == fabric) {
            tracing::warn!("leave node {}: {e}; `heliostat clean` tries again", node.name);
        }
    }
}

/// Clears what fabrics that are `dead` left in the networks that are announced; returns what was
/// cleared. The caller has its [`turn`](super::ownership::turn).
pub fn clean(dead: impl Fn(&str) -> bool) -> Vec<String> {
    let mut gone = vec![];
    for (network, processes) in attached::announced() {
        let clear = |node: &&str| {
            let strip_node = || strip(&mut Netlink::open(processes.open(node)?.as_fd())?, &dead);
            strip_node().unwrap_or_else(|e| {
                tracing::debug!("node {node} of {network}: {e}");
                false
            })
        };
        let nodes = processes.node_names().filter(clear).count();
        if nodes > 0 {
            gone.push(format!("what was left in {nodes} nodes of Mininet's network {network}"));
        }
    }
    gone
}
