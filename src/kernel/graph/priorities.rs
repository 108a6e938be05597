//! What the queues of strict priorities carried, port by port.

use std::io;

use netlink_packet_route::RouteNetlinkMessage as Message;

use crate::coflows::priority::LAST;
use crate::fabric::{PortQueueCounters, QueueCounters};
use crate::ids::RackId;
use crate::layout::NodeId;
use crate::network::EmulatedNetwork;
use crate::nl::Netlink;
use crate::node::Node;
use crate::queues::{SMALL, priority_class};
use crate::tc;
use crate::units::BitRate;

/// The queues of a link that serves strict priorities: short packets, then by priority.
///
/// # Errors
/// What the kernel refused.
pub fn queues(nl: &mut Netlink, link: u32) -> io::Result<Vec<QueueCounters>> {
    let mut found: Vec<QueueCounters> = std::iter::once(None)
        .chain((0..=LAST).map(Some))
        .map(|priority| QueueCounters { priority, ..QueueCounters::default() })
        .collect();
    nl.dump(tc::class_dump(link), |m| {
        if let Message::NewTrafficClass(t) = &m {
            let c = tc::counters(t);
            let minor = (c.handle & 0xffff) as u16;
            let place = match minor.checked_sub(priority_class(0)) {
                Some(p) if p <= u16::from(LAST) => 1 + usize::from(p),
                _ if minor == SMALL => 0,
                _ => return,
            };
            let [packets, drops, backlog] = [c.packets, c.drops, c.backlog].map(u64::from);
            found[place] =
                QueueCounters { bytes: c.bytes, packets, drops, backlog, ..found[place] };
        }
    })?;
    Ok(found)
}

/// The ports of hosts, of ToRs to hosts and to the packet network, and of switches. A dump a port.
///
/// # Errors
/// What the kernel refused.
pub fn counters(net: &mut EmulatedNetwork) -> io::Result<Vec<PortQueueCounters>> {
    let topology = net.topology.clone();
    let mut all = vec![];
    let mut add = |node: &mut Node,
                   link: u32,
                   (port, to): (String, String),
                   rate: BitRate|
     -> io::Result<()> {
        all.push(PortQueueCounters {
            node: node.name.clone(),
            port,
            to,
            rate,
            queues: queues(&mut node.netlink, link)?,
        });
        Ok(())
    };
    let tor = |r: RackId| NodeId::Tor(r).name(&topology);
    for (host, h) in net.hosts.iter_mut().zip(&topology.hosts) {
        add(&mut host.node, host.eth, ("eth0".into(), tor(h.rack)), h.nic)?;
    }
    let switches = NodeId::packet_switches(&topology);
    let stands = super::packet::stands(&topology);
    for (t, rack) in net.tors.iter_mut().zip(&topology.racks) {
        for (k, (&link, h)) in t.hosts.iter().zip(topology.hosts_of(rack.id)).enumerate() {
            add(&mut t.node, link, (format!("host{k}"), topology.host_name(h.id)), h.nic)?;
        }
        let to = switches[stands[rack.id.index()]].name(&topology);
        add(&mut t.node, t.eps, ("eps0".into(), to), rack.uplink)?;
    }
    let cables = topology.eps.graph().map_or(&[][..], |g| &g.cables);
    for (k, s) in net.eps.iter_mut().enumerate() {
        for &(r, link) in &s.racks {
            add(
                &mut s.node,
                link,
                (format!("tor{r}"), tor(RackId::from(r))),
                topology.racks[r].uplink,
            )?;
        }
        for &(c, link) in &s.cables {
            let (a, b) = cables[c].ends;
            let far = if a as usize == k { b } else { a };
            add(
                &mut s.node,
                link,
                (format!("cable{c}"), switches[far as usize].name(&topology)),
                cables[c].rate,
            )?;
        }
    }
    Ok(all)
}
