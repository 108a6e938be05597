//! Names, interface indexes and addresses of an emulated network; the same for namespaces of ours
//! and for Mininet's nodes.
//!
//! Inside a ToR: `eps0`, `ocs0`, `ocs1`... (one a plane), `host0`, `host1`...; inside a host:
//! `eth0`. Inside the EPS and every OCS: `tor0`, `tor1`... Inside a switch of a graph: `tor3` for
//! each rack at it, and `cable7` for each end of a link. Indexes are ours in our own namespaces; on
//! Mininet's nodes they are looked up by name.

use std::net::Ipv4Addr;

use super::msg::Mac;
use crate::ids::{HostId, PlaneId, RackId};
use crate::topology::Topology;

/// Index of `eps0` in a ToR and of `eth0` in a host.
pub const FIRST: u32 = 2;

/// Index of a ToR's port on a plane.
pub fn ocs_index(plane: usize) -> u32 {
    10 + plane as u32
}

/// Index of a ToR's port to its host number `k`.
pub fn host_index(k: usize) -> u32 {
    1000 + k as u32
}

/// Index of rack `r`'s port in the EPS and in every OCS.
pub fn rack_index(r: usize) -> u32 {
    100 + r as u32
}

/// Index of link `c` between switches, in both.
pub fn cable_index(c: usize) -> u32 {
    1000 + c as u32
}

/// The gateway that every host has: its ToR.
pub const TOR_GATEWAY: Ipv4Addr = Ipv4Addr::new(169, 254, 1, 1);
/// The gateway that every ToR has: the EPS. Switches of a graph call the far end of each of their
/// links so.
pub const EPS_GATEWAY: Ipv4Addr = Ipv4Addr::new(169, 254, 2, 1);

/// The ToR of rack `r` as its neighbours on an OCS see it.
pub fn ocs_neighbour(r: usize) -> Ipv4Addr {
    Ipv4Addr::new(169, 254, 3, r as u8)
}

/// The ToR of rack `r` as the EPS sees it.
pub fn eps_neighbour(r: usize) -> Ipv4Addr {
    Ipv4Addr::new(169, 254, 4, r as u8)
}

/// What kind of port a hardware address belongs to: its fourth byte.
#[derive(Clone, Copy)]
pub enum PortKind {
    /// A ToR's port to the EPS.
    TorEps,
    /// The EPS's port to a ToR.
    Eps,
    /// A ToR's port to the OCS of a plane.
    TorOcs(usize),
    /// An OCS's port to a ToR.
    Ocs(usize),
    /// A ToR's port to a host.
    TorHost,
    /// A host's port.
    Host,
    /// A port of a switch of a graph.
    Switch,
}

/// The hardware address of a port. All ToRs' ports on one plane share theirs, as the racks behind
/// an anycast gateway do: so a frame that an OCS sends back is accepted by the ToR that it came
/// from. All ports of a switch of a graph share theirs, and `number` is the switch's. Else `number`
/// is the rack's, or `rack * 256 + k` for host ports.
pub fn mac(port: PortKind, number: usize) -> Mac {
    let kind = match port {
        PortKind::TorEps => 0x01,
        PortKind::Eps => 0x02,
        PortKind::TorHost => 0x05,
        PortKind::Host => 0x06,
        PortKind::Switch => 0x07,
        PortKind::TorOcs(p) => return [2, 0, 0, 0x03, 0, p as u8],
        PortKind::Ocs(p) => 0x40 + p as u8,
    };
    [2, 0, 0, kind, (number >> 8) as u8, number as u8]
}

/// A node of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeId {
    /// The electrical packet switch, where there is one.
    Eps,
    /// A switch of the graph, by number.
    Switch(u32),
    /// The OCS of a plane.
    Ocs(PlaneId),
    /// A ToR.
    Tor(RackId),
    /// A host.
    Host(HostId),
}

impl NodeId {
    /// Its name: `eps`, `sw2`, `ocs0`, `tor3`, `h3-1`.
    pub fn name(self, topology: &Topology) -> String {
        match self {
            Self::Eps => "eps".into(),
            Self::Switch(k) => format!("sw{k}"),
            Self::Ocs(p) => format!("ocs{}", p.0),
            Self::Tor(r) => format!("tor{}", r.0),
            Self::Host(h) => topology.host_name(h),
        }
    }

    /// The packet switches, by number.
    pub fn packet_switches(topology: &Topology) -> Vec<Self> {
        topology.eps.graph().map_or_else(
            || vec![Self::Eps],
            |g| (0..g.switches.len() as u32).map(Self::Switch).collect(),
        )
    }

    /// Every node of a network, in the order in which they are built.
    pub fn all(topology: &Topology) -> Vec<Self> {
        let mut v = Self::packet_switches(topology);
        v.extend(topology.planes.iter().map(|p| Self::Ocs(p.id)));
        for r in &topology.racks {
            v.push(Self::Tor(r.id));
            v.extend(topology.hosts_of(r.id).iter().map(|h| Self::Host(h.id)));
        }
        v
    }
}
