//! How a graph of switches carries lists: by labels or by routes, depending on the mechanism of
//! circuits.

use std::io;

use super::labels::Labels;
use super::packet;
use super::route_lists::RouteLists;
use crate::coflows::network::Service;
use crate::fabric::Damage;
use crate::network::EmulatedNetwork;
use crate::plan::paths::{Lists, PathError, Steer};
use crate::units::Time;
use crate::{Clock, Mechanism};

/// The lists of a fabric.
#[allow(clippy::large_enum_variant, reason = "there is one of it")]
pub enum Steering {
    /// By labels that BPF programs read.
    Labels(Labels),
    /// By rules and routes.
    Routes(RouteLists),
}

impl Steering {
    /// Sets up the default routes of all racks; `None` if the packet network is one switch.
    ///
    /// # Errors
    /// What the kernel refused, or a route that is too long.
    pub fn install(
        net: &mut EmulatedNetwork,
        (mechanism, service): (Mechanism, Service),
        clock: Clock,
    ) -> io::Result<Option<Self>> {
        let Some(ways) = super::egress::EgressMap::new(net) else { return Ok(None) };
        let (topology, mark) = (net.topology.clone(), net.mark.clone());
        packet::limit(&topology, &mut net.eps, &mark, (mechanism == Mechanism::Timed, service))?;
        Ok(Some(match mechanism {
            Mechanism::Timed => Self::Labels(Labels::install(net, ways, clock)?),
            Mechanism::Netlink => Self::Routes(RouteLists::install(net, ways)?),
        }))
    }

    /// Changes the list of one pair of hosts; returns when the fabric had it.
    ///
    /// # Errors
    /// Why not; the fabric has not changed then.
    pub fn steer(
        &mut self,
        net: &mut EmulatedNetwork,
        op: &Steer,
        now: Time,
    ) -> Result<Time, PathError> {
        match self {
            Self::Labels(l) => l.steer(op),
            Self::Routes(r) => r.steer(net, op, now),
        }
    }

    /// Compares the programs' arrays with what was written into them ([`Labels::keep`]); routes are
    /// compared with the rest of their nodes.
    pub fn keep(&mut self) -> Vec<Damage> {
        match self {
            Self::Labels(l) => l.keep(),
            Self::Routes(_) => vec![],
        }
    }

    /// The lists of pairs of hosts that were changed.
    pub fn steered(&self) -> Lists {
        match self {
            Self::Labels(l) => l.steered(),
            Self::Routes(r) => r.steered(),
        }
    }

    /// By switch, the packets that it dropped because it is not on their path; with routes none are
    /// counted.
    pub fn strays(&self) -> Vec<u64> {
        match self {
            Self::Labels(l) => l.strays(),
            Self::Routes(_) => vec![],
        }
    }
}
