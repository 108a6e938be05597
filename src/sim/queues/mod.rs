//! A queue for every other rack at both ends of a rack's link to the EPS, as the ports of an emulation have: at the ToR's port for every
//! destination rack, at the EPS's port for every source rack.
//!
//! A port with one queue shares its rate among flows. A port with a queue for every rack serves these queues in turn: each
//! has the same part of the rate, and what one does not need goes to the others; only within a queue do flows have equal rates. So each
//! queue is a link of its own, which its flows cross, and what these links carry follows from what the flows can use.
//!
//! Shares are *fair* if all of this holds:
//!
//! - No link and no port carries more than its rate.
//! - Every flow is held back by a link or a queue. The flows that one holds back have the same rate, and no flow on it is faster.
//! - A link that holds flows back is full. A queue that does has as much of its port as any other queue of it, and the port is full.
//!
//! Full is what leaves no more than [`TOLERANCE`] says. Where links on a circle of flows take long to agree, it may be some times as much.
//!
//! # More than one sharing may be fair
//!
//! Two ports `a` and `b` of 90 send to hosts `x` and `y` of two other racks, whose interfaces carry 90 and whose racks' ports carry more.
//! From `a` two flows go to `x` and one to `y`, from `b` one to `x` and two to `y`. If the queues of two flows have 60, all flows have 30:
//! every interface gives its flows the same. If all queues have 45, the single flows have 45 and the others 22.5: every port gives its
//! queues the same. Both are fair, and so is all between, such as 26 for each of two flows and 38 for the single ones. Which sharing holds
//! follows from what was before. The same calls give the same. Where nothing but these ports holds flows back, one sharing only is
//! fair: that which is max-min fair between pairs of racks, as if each pair was one flow.
//!
//! Source: the hierarchical scheduling of `tor_eps_port` and `rack_eps_port` (HTB classes of one priority and equal assured rates, served
//! by deficit round robin: Shreedhar and Varghese, SIGCOMM 1995).

mod solver;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod twin;

pub use solver::QueueSolver;
#[cfg(test)]
use solver::water_level;

/// What may be left of a full link: one part of two to this power, which is a thousandth.
pub const TOLERANCE: u32 = 10;

/// The queues of all ports: which links they are.
#[derive(Clone, Copy, Debug)]
pub struct Queues {
    /// Number of queues of each port, and of ports of each kind.
    racks: u32,
    /// The link of the first port, and the link of its first queue.
    ports: u32,
    first: u32,
}

impl Queues {
    /// Queues whose links begin at `first`: those of the first rack's port to the EPS, the link `ports`, to every rack, then those of the
    /// next one; behind them, in the same way, those of the EPS's ports to the racks, whose links come behind the racks' ports.
    pub fn new(racks: usize, ports: u32, first: u32) -> Self {
        Self { racks: racks as u32, ports, first }
    }

    /// The link of the port that a queue is of; `None`: the link is no queue.
    fn port_of(&self, link: u32) -> Option<u32> {
        link.checked_sub(self.first).map(|k| self.ports + k / self.racks)
    }

    /// The port whose link this is, counted from 0.
    fn port(&self, link: u32) -> Option<usize> {
        link.checked_sub(self.ports).filter(|&k| k < 2 * self.racks).map(|k| k as usize)
    }
}
