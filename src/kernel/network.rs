//! The emulated network: a namespace for every node, veth pairs between them, addresses, neighbours
//! and routes.
//!
//! No ARP, no IPv6, nothing that asks: every neighbour is permanent, so the first packet of a run
//! is like all others.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use netlink_packet_route::RouteNetlinkMessage as Message;

use super::build_log::BuildLog;
use super::layout::{self, NodeId, PortKind};
use super::msg::{self, Route, Tcp, VethEnd};
use super::nl::{NEW, Netlink, NetlinkRequest};
pub use super::node::Node;
use super::ownership::link_mark;
use super::packet::{self, PacketSwitch};
use super::{detach, netns, sys};
use crate::ids::{HostId, RackId};
use crate::topology::Topology;
use crate::topology::addresses::{MAX_HOSTS_PER_RACK, MAX_RACKS, host_ip};

/// A top-of-rack switch.
pub struct Tor {
    /// Its node.
    pub node: Node,
    /// Index of its port to the EPS.
    pub eps: u32,
    /// Indexes of its ports to the OCS planes.
    pub ocs: Vec<u32>,
    /// Indexes of its ports to its hosts.
    pub hosts: Vec<u32>,
}

/// An OCS.
pub struct OcsNode {
    /// Its node.
    pub node: Node,
    /// Indexes of its ports, by rack.
    pub ports: Vec<u32>,
}

/// A host.
pub struct HostNode {
    /// Its node.
    pub node: Node,
    /// Index of its port.
    pub eth: u32,
}

/// All nodes of an emulated network.
pub struct EmulatedNetwork {
    /// What it emulates.
    pub topology: Arc<Topology>,
    /// The mark on what is ours in it.
    pub mark: String,
    /// The fabric that must leave the nodes as they were: they belong to others. `None`: they are
    /// ours, and go as a whole.
    guest: Option<String>,
    /// The packet switches: one, or those of the topology's graph by number.
    pub eps: Vec<PacketSwitch>,
    /// The optical switches, by plane.
    pub ocs: Vec<OcsNode>,
    /// The ToR of each rack.
    pub tors: Vec<Tor>,
    /// The node of each host.
    pub hosts: Vec<HostNode>,
}

/// The most places for hosts, racks times the hosts of the largest one, beside a graph of switches:
/// there is a cell for every pair.
pub const MAX_PLACES: usize = 1024;
/// The most links between switches.
const MAX_CABLES: usize = 65_535;

/// Why this topology cannot be emulated, if so: our address plan has no room, or its graph of
/// switches is too large.
pub fn too_large(topology: &Topology) -> Option<String> {
    let hosts = topology.racks.iter().map(|r| r.hosts as usize).max().unwrap_or(0);
    let (racks, planes) = (topology.rack_count(), topology.planes.len());
    let graph = topology.eps.graph();
    let (places, cables) = graph.map_or((0, 0), |g| (racks * hosts, g.cables.len()));
    [
        (racks, MAX_RACKS, "racks"),
        (hosts, MAX_HOSTS_PER_RACK, "hosts in a rack"),
        (planes, 14, "OCS planes"),
        (
            places,
            MAX_PLACES,
            "places for hosts beside a graph of switches (racks times the hosts of the largest)",
        ),
        (cables, MAX_CABLES, "links between switches"),
    ]
    .into_iter()
    .find(|&(n, most, _)| n > most)
    .map(|(n, most, what)| format!("{n} {what}; at most {most} can be emulated"))
}

impl EmulatedNetwork {
    /// Builds the network in fresh namespaces. `mark` is written on every namespace's loopback
    /// link; `tcp` is that of the hosts.
    ///
    /// Costs about 2 ms a namespace, most of it the kernel's.
    ///
    /// # Errors
    /// What the kernel refused. Nothing is left behind then: unnamed namespaces go with their
    /// descriptors.
    pub fn build(topology: Arc<Topology>, mark: &str, tcp: Option<Tcp<'_>>) -> io::Result<Self> {
        let mut nodes = make_nodes(&topology, mark)?;
        let mut make = |id: NodeId| {
            nodes
                .remove(&id)
                .ok_or_else(|| io::Error::other(format!("no node {}", id.name(&topology))))
        };
        let mut eps = packet::build(&topology, &mut make)?;
        let mut ocs = Vec::with_capacity(topology.planes.len());
        for p in &topology.planes {
            let ports = (0..topology.rack_count()).map(layout::rack_index).collect();
            ocs.push(OcsNode { node: make(NodeId::Ocs(p.id))?, ports });
        }
        let stands = packet::stands(&topology);
        let (mut tors, mut hosts) = (Vec::new(), Vec::new());
        for rack in &topology.racks {
            let mut tor = Tor {
                node: make(NodeId::Tor(rack.id))?,
                eps: layout::FIRST,
                ocs: (0..ocs.len()).map(layout::ocs_index).collect(),
                hosts: (0..rack.hosts as usize).map(layout::host_index).collect(),
            };
            let mut own = Vec::with_capacity(rack.hosts as usize);
            for h in topology.hosts_of(rack.id) {
                own.push(HostNode { node: make(NodeId::Host(h.id))?, eth: layout::FIRST });
            }
            tor.node.send(wire_tor(
                &topology,
                rack.id,
                &tor,
                &own,
                &eps[stands[rack.id.index()]],
                &ocs,
            ))?;
            for (h, n) in topology.hosts_of(rack.id).iter().zip(&mut own) {
                n.node.send(wire_host(&topology, h.id, tcp))?;
            }
            tors.push(tor);
            hosts.extend(own);
        }
        packet::wire(&topology, &mut eps)?;
        for o in &mut ocs {
            o.node.send(o.ports.iter().map(|&p| (msg::up(p), 0)).collect())?;
        }
        Ok(Self { topology, mark: mark.into(), guest: None, eps, ocs, tors, hosts })
    }

    /// Enters nodes that others made (Mininet): `open` gives the namespace of a node by its name.
    /// Links are found by their names and marked as `fabric`'s; what fabrics that are not `running`
    /// left on them is removed. Dropping the network leaves the nodes as they were found.
    ///
    /// # Errors
    /// A node or link that is not there, or is not free ([`detach::claim`]).
    pub fn attach(
        topology: Arc<Topology>,
        fabric: &str,
        running: &[String],
        mut open: impl FnMut(&str) -> io::Result<OwnedFd>,
    ) -> io::Result<Self> {
        let mut node = |id: NodeId| -> io::Result<Node> {
            let name = id.name(&topology);
            let ns =
                open(&name).map_err(|e| io::Error::new(e.kind(), format!("node {name}: {e}")))?;
            Node::new(name, ns)
        };
        let named =
            |prefix: &str, n: usize| (0..n).map(|k| format!("{prefix}{k}")).collect::<Vec<_>>();
        let eps = packet::attach(&topology, &mut node)?;
        let mut core = |id: NodeId| -> io::Result<OcsNode> {
            let mut node = node(id)?;
            let ports = node.find_links(&named("tor", topology.rack_count()))?;
            Ok(OcsNode { node, ports })
        };
        let ocs =
            topology.planes.iter().map(|p| core(NodeId::Ocs(p.id))).collect::<io::Result<_>>()?;
        let (mut tors, mut hosts) = (vec![], vec![]);
        for rack in &topology.racks {
            let mut n = node(NodeId::Tor(rack.id))?;
            let eps = n.find_links(&named("eps", 1))?[0];
            let ocs = n.find_links(&named("ocs", topology.planes.len()))?;
            let own = n.find_links(&named("host", rack.hosts as usize))?;
            tors.push(Tor { node: n, eps, ocs, hosts: own });
            for h in topology.hosts_of(rack.id) {
                let mut n = node(NodeId::Host(h.id))?;
                let eth = n.find_links(&named("eth", 1))?[0];
                hosts.push(HostNode { node: n, eth });
            }
        }
        let mut net = Self {
            topology,
            mark: link_mark(fabric),
            guest: Some(fabric.into()),
            eps,
            ocs,
            tors,
            hosts,
        };
        for (node, links) in net.nodes_and_links() {
            detach::claim(node, &links, fabric, running)?;
        }
        Ok(net)
    }

    /// Every node with its links, ToRs first: they decide where packets go.
    pub fn nodes_and_links(&mut self) -> Vec<(&mut Node, Vec<u32>)> {
        fn split(t: &mut Tor) -> (&mut Node, Vec<u32>) {
            let Tor { node, eps, ocs, hosts } = t;
            (
                node,
                std::iter::once(*eps)
                    .chain(ocs.iter().copied())
                    .chain(hosts.iter().copied())
                    .collect(),
            )
        }
        let eps = self.eps.iter_mut().map(|s| {
            let links = s.links().collect();
            (&mut s.node, links)
        });
        let core = eps.chain(self.ocs.iter_mut().map(|c| (&mut c.node, c.ports.clone())));
        let hosts = self.hosts.iter_mut().map(|h| (&mut h.node, vec![h.eth]));
        self.tors.iter_mut().map(split).chain(core).chain(hosts).collect()
    }

    /// The namespace of a node by its name.
    pub fn namespace(&self, name: &str) -> Option<BorrowedFd<'_>> {
        self.nodes().find(|n| n.name == name).map(|n| n.ns.as_fd())
    }

    /// Every node, to speak to; in the order of [`EmulatedNetwork::nodes`].
    pub fn nodes_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        let core = self
            .eps
            .iter_mut()
            .map(|s| &mut s.node)
            .chain(self.ocs.iter_mut().map(|c| &mut c.node));
        core.chain(self.tors.iter_mut().map(|t| &mut t.node))
            .chain(self.hosts.iter_mut().map(|h| &mut h.node))
    }

    /// Every node.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        let core = self.eps.iter().map(|s| &s.node).chain(self.ocs.iter().map(|c| &c.node));
        core.chain(self.tors.iter().map(|t| &t.node)).chain(self.hosts.iter().map(|h| &h.node))
    }
}

impl Drop for EmulatedNetwork {
    fn drop(&mut self) {
        if let Some(fabric) = self.guest.take() {
            detach::leave(self, &fabric);
        }
    }
}

/// Every node of a network in a fresh namespace of its own, by all processors at once.
fn make_nodes(topology: &Topology, mark: &str) -> io::Result<BTreeMap<NodeId, Node>> {
    let nursery = netns::nursery()?;
    let marks = topology.links.all().any(|l| l.ecn.is_some());
    let make = |id: NodeId| -> io::Result<(NodeId, Node)> {
        let forward = !matches!(id, NodeId::Ocs(_) | NodeId::Host(_));
        // The thread is in the new namespace, so that its socket is, too.
        let ns = netns::enter_new(Some(nursery.as_fd()), forward)?;
        let mut node = Node {
            name: id.name(topology),
            ns,
            netlink: Netlink::here()?,
            log: BuildLog::default(),
        };
        // Without lo up there is no local table, and next hops on a link are refused.
        node.send(vec![(msg::alias(1, mark), 0), (msg::up(1), 0)])?;
        if marks && matches!(id, NodeId::Host(_)) {
            netns::ask_for_marks(node.ns.as_fd())?;
        }
        Ok((id, node))
    };
    Ok(sys::by_processors(&mut NodeId::all(topology), |&mut id| make(id))?.into_iter().collect())
}

/// Waits until the namespaces that were left before have gone, but no longer than `patience`. The
/// kernel takes them down later, in batches, and a network that is built meanwhile waits for its
/// locks. The socket is in a namespace of its own, which goes when it is dropped: after the
/// measurement.
///
/// # Errors
/// What the kernel refused.
pub fn settle(patience: Duration) -> io::Result<Netlink> {
    let (here, away) = (netns::create(false)?, netns::create(false)?);
    let mut netlink = Netlink::open(here.as_fd())?;
    let end = |ns| VethEnd { name: "end", ns, index: 10, mac: [2, 0, 0, 0, 0, 1] };
    netlink.send(vec![(msg::veth(&end(None), &end(Some(away.as_fd()))), NEW)])?;
    // The pair goes with the namespace of its other end, in the batch after those that wait
    // already.
    drop(away);
    let begun = Instant::now();
    let mut there = true;
    while there && begun.elapsed() < patience {
        there = false;
        netlink.dump(msg::link_dump(), |m| {
            there |= matches!(m, Message::NewLink(l) if l.header.index == 10)
        })?;
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(netlink)
}

fn wire_tor(
    topology: &Topology,
    rack: RackId,
    tor: &Tor,
    hosts: &[HostNode],
    eps: &PacketSwitch,
    ocs: &[OcsNode],
) -> Vec<NetlinkRequest> {
    let r = rack.index();
    let far = format!("tor{r}");
    let there = |ns, index, mac| VethEnd { name: far.as_str(), ns: Some(ns), index, mac };
    let mut v = vec![(
        msg::veth(
            &VethEnd {
                name: "eps0",
                ns: None,
                index: tor.eps,
                mac: layout::mac(PortKind::TorEps, r),
            },
            &there(eps.node.ns.as_fd(), layout::rack_index(r), packet::mac_to(topology, rack)),
        ),
        NEW,
    )];
    for (p, o) in ocs.iter().enumerate() {
        let name = format!("ocs{p}");
        let end = VethEnd {
            name: &name,
            ns: None,
            index: tor.ocs[p],
            mac: layout::mac(PortKind::TorOcs(p), r),
        };
        v.push((
            msg::veth(
                &end,
                &there(o.node.ns.as_fd(), o.ports[r], layout::mac(PortKind::Ocs(p), r)),
            ),
            NEW,
        ));
    }
    for (k, h) in hosts.iter().enumerate() {
        let name = format!("host{k}");
        let a = VethEnd {
            name: &name,
            ns: None,
            index: tor.hosts[k],
            mac: layout::mac(PortKind::TorHost, r * 256 + k),
        };
        let b = VethEnd {
            name: "eth0",
            ns: Some(h.node.ns.as_fd()),
            index: h.eth,
            mac: layout::mac(PortKind::Host, r * 256 + k),
        };
        v.push((msg::veth(&a, &b), NEW));
    }
    for (k, h) in topology.hosts_of(rack).iter().enumerate() {
        let ip = host_ip(topology, h.id);
        v.push((Route::new((ip, 32), None, tor.hosts[k]).add(), NEW));
        v.push((msg::neighbour(tor.hosts[k], ip, layout::mac(PortKind::Host, r * 256 + k)), NEW));
    }
    v.push((msg::neighbour(tor.eps, layout::EPS_GATEWAY, packet::mac_to(topology, rack)), NEW));
    v.push((
        Route::new((std::net::Ipv4Addr::UNSPECIFIED, 0), Some(layout::EPS_GATEWAY), tor.eps).add(),
        NEW,
    ));
    for (p, &link) in tor.ocs.iter().enumerate() {
        let others = (0..topology.rack_count()).filter(|&j| j != r);
        v.extend(others.map(|j| {
            (
                msg::neighbour(link, layout::ocs_neighbour(j), layout::mac(PortKind::TorOcs(p), j)),
                NEW,
            )
        }));
    }
    v
}

fn wire_host(topology: &Topology, host: HostId, tcp: Option<Tcp<'_>>) -> Vec<NetlinkRequest> {
    let h = &topology.hosts[host.index()];
    let number = h.rack.index() * 256 + h.index as usize;
    let up = layout::FIRST;
    let mut default =
        Route::new((std::net::Ipv4Addr::UNSPECIFIED, 0), Some(layout::TOR_GATEWAY), up);
    default.tcp = tcp;
    vec![
        (msg::up(up), 0),
        (msg::address(up, host_ip(topology, host), 32), NEW),
        (msg::neighbour(up, layout::TOR_GATEWAY, layout::mac(PortKind::TorHost, number)), NEW),
        (default.add(), NEW),
    ]
}
