//! Maps lists of switches to the egress link at each switch.

use crate::bpf::switches::PathEntry;
use crate::ids::{HostId, RackId};
use crate::network::EmulatedNetwork;
use crate::paths::{List, Switches, Units};
use crate::plan::paths::{PathError, Steer, check};
use crate::topology::graph::Routes;

/// The EPS graph of a network, and the ports of its switches.
pub struct EgressMap {
    net: Switches,
    routes: Routes,
    /// The rack of each host.
    racks: Vec<RackId>,
    /// By rack: the port that leads to it, on its switch.
    down: Vec<u32>,
    /// By cable: its ports at its first and second end.
    cables: Vec<(u32, u32)>,
}

impl EgressMap {
    /// The map of a network; `None` if its packet network is one switch.
    pub fn new(net: &EmulatedNetwork) -> Option<Self> {
        let t = &net.topology;
        let graph = t.eps.graph()?;
        let mut down = vec![0; t.rack_count()];
        let mut cables = vec![(0, 0); graph.cables.len()];
        for (k, s) in net.eps.iter().enumerate() {
            s.racks.iter().for_each(|&(r, link)| down[r] = link);
            for &(c, link) in &s.cables {
                let at = &mut cables[c];
                *(if graph.cables[c].ends.0 as usize == k { &mut at.0 } else { &mut at.1 }) = link;
            }
        }
        let racks = t.hosts.iter().map(|h| h.rack).collect();
        Some(Self {
            net: Switches::new(t, Units::default()),
            routes: Routes::new(graph),
            racks,
            down,
            cables,
        })
    }

    /// Number of racks.
    pub fn racks(&self) -> usize {
        self.down.len()
    }

    /// The rack of a host.
    pub fn rack_of(&self, host: HostId) -> RackId {
        self.racks[host.index()]
    }

    /// The default route between two racks, switch by switch; empty if there is none.
    pub fn default(&self, from: RackId, to: RackId) -> Vec<PathEntry> {
        self.entries(from, to, &[]).unwrap_or_default()
    }

    /// The route that a change asks for: the switches, and the link by which packets leave each.
    ///
    /// # Errors
    /// Why the change cannot be made.
    pub fn wanted(&self, op: &Steer) -> Result<Vec<PathEntry>, PathError> {
        check(op, &self.net)?;
        let (from, to) = (self.rack_of(op.from), self.rack_of(op.to));
        let gone = || {
            PathError::Refused(format!(
                "no links join the switches of the list from {from} to {to}"
            ))
        };
        self.entries(from, to, op.list.as_ref().map_or(&[], |List(l)| l)).ok_or_else(gone)
    }

    /// The route over a list; the default route if the list is empty.
    fn entries(&self, from: RackId, to: RackId, list: &[u32]) -> Option<Vec<PathEntry>> {
        let hops = match list {
            [] => self.routes.way(from, to),
            list => self.routes.along(list, from, to)?,
        };
        let mut at = self.routes.switch_of(from);
        let mut all = Vec::with_capacity(hops.len() + 1);
        for h in hops {
            let (a, b) = self.cables[h.cable as usize];
            all.push(PathEntry {
                switch: at as u16,
                out: if h.forward { a } else { b },
                rack: None,
            });
            at = h.to;
        }
        let arrived = at == self.routes.switch_of(to);
        all.push(PathEntry {
            switch: at as u16,
            out: self.down[to.index()],
            rack: Some(to.0 as u8),
        });
        arrived.then_some(all)
    }
}
