//! Admission of packets to circuits by the ToRs, where no program decides it: by a route, or by the
//! gate of a queue.

use std::io;
use std::os::fd::AsFd;

use super::queue_waker::QueueWaker;
use crate::ids::RackId;
use crate::msg::Route;
use crate::network::EmulatedNetwork;
use crate::nl::{Netlink, REPLACE};
use crate::topology::addresses::rack_net;
use crate::units::BitRate;
use crate::{layout, queues};

/// The routing table of circuits.
pub const TABLE: u32 = 100;

/// Admission at all ToRs, with a socket for each.
pub struct CircuitAdmission {
    kind: AdmissionKind,
    /// By rack: a socket, and the ports on the planes.
    tors: Vec<(Netlink, Vec<u32>)>,
}

enum AdmissionKind {
    /// A ToR admits packets by a route in [`TABLE`].
    Routes,
    /// A ToR admits packets by opening the gate of the queue in which they wait.
    Gates {
        /// By plane: its rate, and the bytes of a queue.
        queues: Vec<(BitRate, u32)>,
        waker: QueueWaker,
    },
}

impl CircuitAdmission {
    /// Admission by routes.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn routes(net: &EmulatedNetwork) -> io::Result<Self> {
        Ok(Self { kind: AdmissionKind::Routes, tors: sockets(net)? })
    }

    /// Admission by the gates of the queues of the ToRs' OCS ports; all are closed at first.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn gates(net: &EmulatedNetwork) -> io::Result<Self> {
        let t = &net.topology;
        let queues = t.planes.iter().map(|p| (p.rate, queues::waiting_limit(t, p.rate))).collect();
        Ok(Self {
            kind: AdmissionKind::Gates { queues, waker: QueueWaker::start(net)? },
            tors: sockets(net)?,
        })
    }

    /// Whether it is by routes.
    pub fn are_routes(&self) -> bool {
        matches!(self.kind, AdmissionKind::Routes)
    }

    /// Begins to admit packets of a rack for another to a plane.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn open(&mut self, plane: usize, rack: usize, to: RackId) -> io::Result<()> {
        let (nl, ports) = &mut self.tors[rack];
        match &mut self.kind {
            AdmissionKind::Routes => nl.send(vec![(route(ports[plane], to).add(), REPLACE)]),
            AdmissionKind::Gates { queues: of, waker } => {
                nl.send(vec![(queues::gate(ports[plane], of[plane], to.index(), true), 0)])?;
                waker.wake((rack, plane));
                Ok(())
            }
        }
    }

    /// Stops admitting packets of a rack for another to a plane.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn shut(&mut self, plane: usize, rack: usize, to: RackId) -> io::Result<()> {
        let (nl, ports) = &mut self.tors[rack];
        nl.send(vec![match &self.kind {
            AdmissionKind::Routes => (route(ports[plane], to).delete(), 0),
            AdmissionKind::Gates { queues: of, .. } => {
                (queues::gate(ports[plane], of[plane], to.index(), false), 0)
            }
        }])
    }
}

fn sockets(net: &EmulatedNetwork) -> io::Result<Vec<(Netlink, Vec<u32>)>> {
    net.tors.iter().map(|t| Ok((Netlink::open(t.node.ns.as_fd())?, t.ocs.clone()))).collect()
}

/// The route by which a ToR sends what a rule picks to another rack over its OCS port `link`.
pub fn route(link: u32, to: RackId) -> Route<'static> {
    Route {
        to: (rack_net(to), 16),
        via: Some(layout::ocs_neighbour(to.index())),
        link,
        table: Some(TABLE),
        tcp: None,
    }
}
