//! A queue for every other rack at both ends of a rack's link to the EPS, as in an emulation. At
//! the ToR's port there is one for every destination rack, at the EPS's port one for every source
//! rack.
//!
//! A port with one queue shares its rate among flows. A port with a queue for every rack serves
//! these queues in turn: each gets the same part of the rate, and what one does not need goes to
//! the others. Flows have equal rates only within a queue. So each queue is a link of its own that
//! its flows cross, and the rates of these links depend on what the flows can use.
//!
//! Rates are *fair* if all of this is true:
//!
//! - No link and no port carries more than its rate.
//! - Every flow is limited by a link or a queue. All flows that one link or queue limits have the
//!   same rate, and no flow on it is faster.
//! - A link that limits flows is full. A queue that limits flows has as much of its port as any
//!   other queue there, and the port is full.
//!
//! A full link may leave as much as [`TOLERANCE`] says, and some times that where links on a cycle
//! of flows need many steps to agree.
//!
//! # Several rates may be fair
//!
//! Two ports `a` and `b` of 90 send to hosts `x` and `y` of two other racks, whose interfaces carry
//! 90 and whose racks' ports carry more. Port `a` sends two flows to `x` and one to `y`; port `b`
//! sends one to `x` and two to `y`. If the queues with two flows have 60, all flows have 30: every
//! interface gives its flows the same. If all queues have 45, the single flows have 45 and the
//! others 22.5: every port gives its queues the same. Both are fair, and so is everything between,
//! such as 26 for each of two flows and 38 for the single ones. Which one results depends on the
//! rates before; the same calls give the same rates. If only these ports limit flows, there is one
//! fair result. It is max-min fair between pairs of racks, as if each pair was one flow.
//!
//! Source: the hierarchical scheduling of `tor_eps_port` and `rack_eps_port` (HTB classes of one
//! priority and equal assured rates, served by deficit round robin: Shreedhar and Varghese, SIGCOMM
//! 1995).

mod solver;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod twin;

pub use solver::QueueSolver;
#[cfg(test)]
use solver::water_level;

/// A full link may leave one part of two to this power, which is a thousandth.
pub const TOLERANCE: u32 = 10;

/// The queues of all ports, by the numbers of their links.
#[derive(Clone, Copy, Debug)]
pub struct Queues {
    /// Number of queues of each port, and of ports of each kind.
    racks: u32,
    /// The link of the first port, and the link of its first queue.
    ports: u32,
    first: u32,
}

impl Queues {
    /// Queues whose links begin at `first`. First come those of the racks' ports to the EPS, whose
    /// links begin at `ports`: for every rack, one queue to each rack. Then follow those of the
    /// EPS's ports to the racks in the same order; the links of these ports follow those of the
    /// racks' ports.
    pub fn new(racks: usize, ports: u32, first: u32) -> Self {
        Self { racks: racks as u32, ports, first }
    }

    /// The port of a queue, by its link; `None`: the link is no queue.
    fn port_of(&self, link: u32) -> Option<u32> {
        link.checked_sub(self.first).map(|k| self.ports + k / self.racks)
    }

    /// Index of the port with this link.
    fn port(&self, link: u32) -> Option<usize> {
        link.checked_sub(self.ports).filter(|&k| k < 2 * self.racks).map(|k| k as usize)
    }
}
