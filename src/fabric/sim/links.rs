//! The links of the model, and which of them a flow crosses.

use std::sync::Arc;

use super::bundle::Route;
use crate::coflows::rates::Path;
use crate::ids::HostId;
use crate::topology::Topology;

/// Every host's interface up and down, every rack's EPS uplink up and down, and every circuit, in this order.
#[derive(Debug)]
pub struct Links {
    topology: Arc<Topology>,
    /// In bits of payload per second.
    capacity: Vec<u64>,
    /// By rack: its uplink carries all that its hosts can send, so it is never the tightest link of a flow, and left out of paths.
    wide: Vec<bool>,
}

impl Links {
    /// The links of `topology`.
    pub fn new(topology: Arc<Topology>) -> Self {
        let nics = || topology.hosts.iter().map(|h| h.nic);
        let uplinks = || topology.racks.iter().map(|r| r.uplink);
        let circuits = topology.planes.iter().flat_map(|p| std::iter::repeat_n(p.rate, topology.rack_count()));
        let rates = nics().chain(nics()).chain(uplinks()).chain(uplinks()).chain(circuits);
        let capacity = rates.map(|r| topology.payload(r).0).collect();
        let all =
            |r: &crate::topology::Rack| topology.hosts_of(r.id).iter().map(|h| topology.payload(h.nic).0).fold(0, u64::saturating_add);
        let wide = topology.racks.iter().map(|r| all(r) <= topology.payload(r.uplink).0).collect();
        Self { capacity, wide, topology }
    }

    /// The network.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// By link: bits of payload per second.
    pub fn capacity(&self) -> &[u64] {
        &self.capacity
    }

    /// Whether no path through the EPS has more than its two interfaces.
    pub fn two_sided(&self) -> bool {
        self.wide.iter().all(|&w| w)
    }

    /// The links of a flow that goes this way.
    pub fn path(&self, from: HostId, to: HostId, route: Route) -> Path {
        let (hosts, racks) = (self.topology.hosts.len() as u32, self.topology.rack_count() as u32);
        let (a, b) = (self.topology.rack_of(from), self.topology.rack_of(to));
        let (mut list, mut n) = ([from.0, hosts + to.0, 0, 0], 2);
        let mut push = |link| {
            list[n] = link;
            n += 1;
        };
        match route {
            Route::Local => {}
            Route::Eps => {
                if !self.wide[a.index()] {
                    push(2 * hosts + a.0);
                }
                if !self.wide[b.index()] {
                    push(2 * hosts + racks + b.0);
                }
            }
            Route::Ocs(plane) => push(2 * hosts + (2 + plane.0) * racks + a.0),
        }
        Path::new(&list[..n])
    }
}
