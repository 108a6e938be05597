//! Addresses derived from ids, the same on every fabric: host k of rack r is `10.r.0.(k + 2)`, its
//! rack `10.r.0.0/16`.

use std::net::Ipv4Addr;

use super::Topology;
use crate::ids::{HostId, RackId};

/// The most racks that have an address of their own: the rack is one byte of the address.
pub const MAX_RACKS: usize = 250;
/// The most hosts of a rack that have an address.
pub const MAX_HOSTS_PER_RACK: usize = 250;

/// The address of a host.
pub fn host_ip(topology: &Topology, host: HostId) -> Ipv4Addr {
    let h = &topology.hosts[host.index()];
    Ipv4Addr::new(10, h.rack.0 as u8, 0, 2 + h.index as u8)
}

/// The network of a rack, to be read with a prefix length of 16.
pub fn rack_net(rack: RackId) -> Ipv4Addr {
    Ipv4Addr::new(10, rack.0 as u8, 0, 0)
}

/// The host that has an address, if it is one of ours.
pub fn host_of_ip(topology: &Topology, ip: Ipv4Addr) -> Option<HostId> {
    let rack = &topology.racks[rack_of_ip(topology, ip)?.index()];
    let [.., 0, last] = ip.octets() else { return None };
    let k = usize::from(last).checked_sub(2)?;
    (k < rack.hosts as usize).then(|| HostId::from(rack.first_host.index() + k))
}

/// The rack that an address belongs to, if it is one of ours.
pub fn rack_of_ip(topology: &Topology, ip: Ipv4Addr) -> Option<RackId> {
    let o = ip.octets();
    (o[0] == 10 && usize::from(o[1]) < topology.rack_count()).then(|| RackId(u32::from(o[1])))
}
