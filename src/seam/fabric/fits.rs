//! Whether an observation is one of this network: nothing in it may lead past the racks and planes
//! that there are.

use super::{Cut, Damage, Observation};
use crate::circuits::timetable::Reservation;
use crate::demand::DemandMatrix;
use crate::demand::hedera::Elephants;
use crate::topology::Topology;

/// Why an observation is not one of this network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// A matrix of another number of racks.
    #[error("`{name}` is a matrix of {found} racks; the network has {racks}")]
    Matrix {
        /// Which field.
        name: &'static str,
        /// Its racks.
        found: usize,
        /// The network's.
        racks: usize,
    },
    /// A matrix with cells missing or left over, as a file can hold it.
    #[error("`{name}` is no square matrix: {cells} cell{s} for {racks} racks", s = plural(*cells))]
    Cells {
        /// Which field.
        name: &'static str,
        /// Its cells.
        cells: usize,
        /// The network's racks.
        racks: usize,
    },
    /// A circuit of a plane or between racks that are not there.
    #[error(
        "a circuit of plane {} from rack {} to rack {}; the network has {racks} racks and {planes} plane{s}",
        circuit.plane.0, circuit.input.0, circuit.output.0, s = plural(*planes)
    )]
    Circuit {
        /// The circuit.
        circuit: Box<Reservation>,
        /// The network's racks.
        racks: usize,
        /// The network's planes.
        planes: usize,
    },
    /// Counters of another number of planes.
    #[error("ports of {found} planes; the network has {planes}")]
    Planes {
        /// The planes with counters.
        found: usize,
        /// The network's.
        planes: usize,
    },
    /// Counters of another number of ports.
    #[error("{found} ports of plane {plane}; the network has {racks} racks")]
    Ports {
        /// The plane.
        plane: usize,
        /// Its ports with counters.
        found: usize,
        /// The network's racks, each of which has a port.
        racks: usize,
    },
    /// A flow of a host that is not there.
    #[error("a flow of host {host}; the network has {hosts}")]
    Flow {
        /// The host.
        host: usize,
        /// The network's hosts.
        hosts: usize,
    },
    /// Large flows of another number of hosts.
    #[error("`elephants` are of {found} hosts; the network has {hosts}")]
    Elephants {
        /// Their hosts.
        found: usize,
        /// The network's.
        hosts: usize,
    },
    /// Damage of a port, host, rack or link that is not there.
    #[error("damage of what the network has not: {0}")]
    Damage(String),
}

fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

impl Observation {
    /// Whether everything in it belongs to a network of this topology: a reader that looks things
    /// up by it asks this first. Sizes are compared, and nothing is allocated if all fit:
    /// O(planes + circuits + flows + damage).
    ///
    /// # Errors
    /// The first thing that does not.
    pub fn fits(&self, topology: &Topology) -> Result<(), Misfit> {
        let (racks, planes) = (topology.rack_count(), topology.planes.len());
        let all = [("sent", &self.sent), ("over_ocs", &self.over_ocs), ("backlog", &self.backlog)];
        for (name, m) in all.into_iter().chain(self.held.iter().map(|m| ("held", m))) {
            matrix(name, m, racks)?;
        }
        let strange = |r: &&Reservation| {
            r.plane.index() >= planes || r.input.index() >= racks || r.output.index() >= racks
        };
        if let Some(r) = self.programmed.timetable.iter().find(strange) {
            return Err(Misfit::Circuit { circuit: Box::new(*r), racks, planes });
        }
        if self.ports.len() != planes {
            return Err(Misfit::Planes { found: self.ports.len(), planes });
        }
        if let Some((plane, ports)) = self.ports.iter().enumerate().find(|(_, p)| p.len() != racks)
        {
            return Err(Misfit::Ports { plane, found: ports.len(), racks });
        }
        let hosts = topology.hosts.len();
        let stranger =
            self.flows.iter().flatten().flat_map(|f| [f.from, f.to]).find(|h| h.index() >= hosts);
        if let Some(host) = stranger {
            return Err(Misfit::Flow { host: host.index(), hosts });
        }
        if let Some(found) =
            self.elephants.as_ref().map(Elephants::hosts).filter(|&found| found != hosts)
        {
            return Err(Misfit::Elephants { found, hosts });
        }
        self.damage.iter().try_for_each(|d| damage(d, topology))
    }
}

fn matrix(name: &'static str, m: &DemandMatrix, racks: usize) -> Result<(), Misfit> {
    if m.racks() != racks {
        return Err(Misfit::Matrix { name, found: m.racks(), racks });
    }
    let cells = m.cell_count();
    if cells == racks * racks { Ok(()) } else { Err(Misfit::Cells { name, cells, racks }) }
}

fn damage(d: &Damage, topology: &Topology) -> Result<(), Misfit> {
    let racks = topology.rack_count();
    if let Some((plane, rack)) =
        d.port.filter(|(p, r)| p.index() >= topology.planes.len() || r.index() >= racks)
    {
        return Err(Misfit::Damage(format!("port {} of plane {}", rack.0, plane.0)));
    }
    match d.cut {
        Some(Cut::Host(host)) if host.index() >= topology.hosts.len() => {
            return Err(Misfit::Damage(format!("host {}", host.0)));
        }
        Some(Cut::Rack(rack)) if rack.index() >= racks => {
            return Err(Misfit::Damage(format!("rack {}", rack.0)));
        }
        Some(_) | None => {}
    }
    let cables = topology.eps.graph().map_or(0, |g| g.cables.len());
    match d.cable.filter(|&c| c as usize >= cables) {
        Some(c) => Err(Misfit::Damage(format!("link {c} between switches"))),
        None => Ok(()),
    }
}
