//! The packet network: one switch that all ToRs' uplinks lead to, or a namespace for every switch
//! of the topology's graph.
//!
//! A rack's ToR is a node of its own before the rack's switch, with the uplink between them, as in
//! the simulator. So what a ToR does with circuits is the same in every network. A server that
//! relays (BCube) is a switch here, before its own ToR.

use std::io;
use std::os::fd::AsFd;

use crate::coflows::network::Service;
use crate::fabric::{PortTo, SwitchCounters, SwitchPort};
use crate::ids::RackId;
use crate::layout::{self, NodeId, PortKind};
use crate::msg::{self, Mac, Route, VethEnd};
use crate::nl::{NEW, NetlinkRequest};
use crate::node::Node;
use crate::queues;
use crate::tc::{self, Match};
use crate::topology::Topology;
use crate::topology::addresses::rack_net;
use crate::topology::graph::Graph;
use crate::topology::links::LinkSpec;

/// A packet switch.
pub struct PacketSwitch {
    /// Its node.
    pub node: Node,
    /// The racks whose uplinks end here, and the indexes of their ports.
    pub racks: Vec<(usize, u32)>,
    /// The links to other switches that end here, by number, and the indexes of their ports.
    pub cables: Vec<(usize, u32)>,
    /// Where its rate is limited: the way in and the way out of a pair of links through which all
    /// packets go ([`limit`]).
    pub limit: Option<(u32, u32)>,
}

impl PacketSwitch {
    /// The indexes of all ports.
    pub fn links(&self) -> impl Iterator<Item = u32> {
        self.racks.iter().chain(&self.cables).map(|&(_, link)| link)
    }

    /// The indexes and names of all ports.
    pub fn named_links(&self) -> Vec<(u32, String)> {
        let racks = self.racks.iter().map(|&(r, link)| (link, format!("tor{r}")));
        racks.chain(self.cables.iter().map(|&(c, link)| (link, format!("cable{c}")))).collect()
    }
}

/// By rack: the number of its switch.
pub fn stands(topology: &Topology) -> Vec<usize> {
    match topology.eps.graph() {
        Some(g) => g.racks.iter().map(|&s| s as usize).collect(),
        None => vec![0; topology.rack_count()],
    }
}

/// By switch: the racks and the cables that end there.
fn ends(topology: &Topology) -> Vec<(Vec<usize>, Vec<usize>)> {
    let mut ends = vec![(vec![], vec![]); topology.eps.graph().map_or(1, |g| g.switches.len())];
    stands(topology).into_iter().enumerate().for_each(|(r, s)| ends[s].0.push(r));
    for (c, cable) in topology.eps.graph().iter().flat_map(|g| g.cables.iter().enumerate()) {
        ends[cable.ends.0 as usize].1.push(c);
        ends[cable.ends.1 as usize].1.push(c);
    }
    ends
}

/// The hardware address of the port to which a rack's uplink leads.
pub fn mac_to(topology: &Topology, rack: RackId) -> Mac {
    match topology.eps.graph() {
        Some(g) => layout::mac(PortKind::Switch, g.racks[rack.index()] as usize),
        None => layout::mac(PortKind::Eps, rack.index()),
    }
}

/// The switches in fresh namespaces that `make` gives, their ports not yet made.
///
/// # Errors
/// What the kernel refused.
pub fn build(
    topology: &Topology,
    mut make: impl FnMut(NodeId) -> io::Result<Node>,
) -> io::Result<Vec<PacketSwitch>> {
    let ports =
        |v: Vec<usize>, index: fn(usize) -> u32| v.into_iter().map(|k| (k, index(k))).collect();
    let all = NodeId::packet_switches(topology).into_iter().zip(ends(topology));
    all.map(|(id, (racks, cables))| {
        Ok(PacketSwitch {
            node: make(id)?,
            racks: ports(racks, layout::rack_index),
            cables: ports(cables, layout::cable_index),
            limit: None,
        })
    })
    .collect()
}

/// The switches in nodes that others made and `open` gives.
///
/// # Errors
/// A node or link that is not there.
pub fn attach(
    topology: &Topology,
    mut open: impl FnMut(NodeId) -> io::Result<Node>,
) -> io::Result<Vec<PacketSwitch>> {
    let mut all = vec![];
    for (id, (racks, cables)) in NodeId::packet_switches(topology).into_iter().zip(ends(topology)) {
        let mut node = open(id)?;
        let names: Vec<String> = racks
            .iter()
            .map(|r| format!("tor{r}"))
            .chain(cables.iter().map(|c| format!("cable{c}")))
            .collect();
        let links = node.find_links(&names)?;
        let (own, others) = links.split_at(racks.len());
        all.push(PacketSwitch {
            node,
            racks: racks.into_iter().zip(own.iter().copied()).collect(),
            cables: cables.into_iter().zip(others.iter().copied()).collect(),
            limit: None,
        });
    }
    Ok(all)
}

/// Joins the switches by their cables and brings all their ports up; the uplinks must be there
/// already. Every far end is a permanent neighbour, and every rack at a switch has a route there.
///
/// # Errors
/// What the kernel refused.
pub fn wire(topology: &Topology, switches: &mut [PacketSwitch]) -> io::Result<()> {
    let cables = topology.eps.graph().map_or(&[][..], |g| &g.cables);
    let mac = |s: u32| layout::mac(PortKind::Switch, s as usize);
    let mut messages: Vec<Vec<NetlinkRequest>> = switches.iter().map(|_| vec![]).collect();
    for (c, cable) in cables.iter().enumerate() {
        let (a, b) = cable.ends;
        let (name, index) = (format!("cable{c}"), layout::cable_index(c));
        let far = switches[b as usize].node.ns.as_fd();
        let ends = [
            VethEnd { name: &name, ns: None, index, mac: mac(a) },
            VethEnd { name: &name, ns: Some(far), index, mac: mac(b) },
        ];
        messages[a as usize].push((msg::veth(&ends[0], &ends[1]), NEW));
    }
    for (s, m) in switches.iter_mut().zip(messages) {
        s.node.send(m)?;
    }
    for (k, s) in switches.iter_mut().enumerate() {
        let mut v = vec![];
        for &(c, link) in &s.cables {
            let (a, b) = cables[c].ends;
            v.push((msg::up(link), 0));
            v.push((
                msg::neighbour(link, layout::EPS_GATEWAY, mac(if a as usize == k { b } else { a })),
                NEW,
            ));
        }
        for &(r, link) in &s.racks {
            v.push((msg::up(link), 0));
            v.push((
                msg::neighbour(link, layout::eps_neighbour(r), layout::mac(PortKind::TorEps, r)),
                NEW,
            ));
            v.push((
                Route::new((rack_net(RackId::from(r)), 16), Some(layout::eps_neighbour(r)), link)
                    .add(),
                NEW,
            ));
        }
        s.node.send(v)?;
    }
    Ok(())
}

/// Sets the rates and queues of all ports: a rack's by its uplink, a cable's by its own.
///
/// # Errors
/// What the kernel refused.
pub fn shape(
    topology: &Topology,
    switches: &mut [PacketSwitch],
    service: Service,
) -> io::Result<()> {
    let leaf = |spec| queues::eps_leaf(topology, spec);
    let of_cable =
        |g: &Graph, c: usize| (g.cables[c].rate, leaf(topology.links.cable(g, &g.cables[c])));
    for s in switches {
        let racks =
            s.racks.iter().flat_map(|&(r, link)| queues::rack_eps_port(link, topology, r, service));
        let cables = topology
            .eps
            .graph()
            .into_iter()
            .flat_map(|g| s.cables.iter().map(move |&(c, link)| (link, of_cable(g, c))));
        s.node.send(
            racks
                .chain(
                    cables.flat_map(|(link, (rate, leaf))| {
                        queues::eps_port(link, rate, leaf, service)
                    }),
                )
                .collect(),
        )?;
    }
    Ok(())
}

/// Name of the way in of a switch's limit.
pub const LIMIT_NAME: &str = "limit0";
/// Indexes of its two ends, far above those that the kernel hands out in nodes of others.
const LIMIT: (u32, u32) = (1_000_000_002, 1_000_000_003);

/// Gives every switch of limited rate a pair of links, the way in shaped to that rate, through
/// which all that comes by its ports goes: what it carries in all. `labelled`: programs send
/// packets from racks there. The way in serves as `service` says. `mark` goes onto the way in.
///
/// # Errors
/// What the kernel refused.
pub fn limit(
    topology: &Topology,
    switches: &mut [PacketSwitch],
    mark: &str,
    (labelled, service): (bool, Service),
) -> io::Result<()> {
    let leaf = queues::eps_leaf(topology, LinkSpec::default());
    for (k, s) in switches.iter_mut().enumerate() {
        let Some(rate) = topology.eps.graph().and_then(|g| g.switches[k].rate) else { continue };
        // The address that every port of the switch has: a frame is taken as if it had come in by a
        // port.
        let end =
            |name, index| VethEnd { name, ns: None, index, mac: layout::mac(PortKind::Switch, k) };
        let mut v = vec![
            (msg::veth(&end(LIMIT_NAME, LIMIT.0), &end("limit1", LIMIT.1)), NEW),
            (msg::alias(LIMIT.0, mark), 0),
            (msg::up(LIMIT.1), 0),
        ];
        v.extend(queues::eps_port(LIMIT.0, rate, leaf, service));
        let racks = s.racks.iter().filter(|_| !labelled);
        for &(_, port) in racks.chain(&s.cables) {
            v.push((tc::clsact(port), NEW));
            v.push((tc::redirect(port, (1, tc::FIRST_NODE), Match::ANY, LIMIT.0, 0), NEW));
        }
        s.node.send(v)?;
        s.limit = Some(LIMIT);
    }
    Ok(())
}

/// What every packet switch and its ports carried; `strays` by switch.
///
/// # Errors
/// What the kernel refused.
pub fn counters(
    topology: &Topology,
    switches: &mut [PacketSwitch],
    strays: &[u64],
) -> io::Result<Vec<SwitchCounters>> {
    let joins = topology.eps.graph().map_or(&[][..], |g| &g.cables);
    let one = |(k, s): (usize, &mut PacketSwitch)| {
        let by_link = tc::link_counters(&mut s.node.netlink)?;
        let port = |link: u32, to, rate| {
            let c = by_link.get(&link).copied().unwrap_or_default();
            let [packets, drops, backlog] = [c.packets, c.drops, c.backlog].map(u64::from);
            SwitchPort { to, rate, bytes: c.bytes, packets, drops, backlog }
        };
        let racks = s
            .racks
            .iter()
            .map(|&(r, link)| port(link, PortTo::Rack(RackId::from(r)), topology.racks[r].uplink));
        let cables = s.cables.iter().map(|&(c, link)| {
            let (a, b) = joins[c].ends;
            let switch = if a as usize == k { b } else { a };
            port(link, PortTo::Switch { cable: c as u32, switch }, joins[c].rate)
        });
        Ok(SwitchCounters {
            switch: k as u32,
            strays: strays.get(k).copied().unwrap_or(0),
            ports: racks.chain(cables).collect(),
        })
    };
    switches.iter_mut().enumerate().map(one).collect()
}
