//! Circuit scheduling: which racks to join, and when.
//!
//! A [`Scheduler`] looks at an [`Ask`] (demand, what is up now, which ports are usable) and answers
//! a [`Decision`]. Every decision ends in one [`timetable::Timetable`] of port reservations,
//! whichever algorithm made it. The table at the end of this file names every scheduler.
//!
#![doc = include_str!("README.md")]
#![deny(unsafe_code)]

pub use heliostat_base::{ids, topology, units};

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

pub use crate::coflows::OpenCoflow;
use crate::coflows::orders::Order;
use crate::demand::DemandMatrix;
use crate::ids::RackId;
use crate::topology::Plane;
use crate::units::{BitRate, Span, Time};
use timetable::Reservation;

pub mod clearing;
pub mod coflows;
pub mod decompose;
pub mod demand;
pub mod external;
#[cfg(test)]
mod laws;
pub mod layout;
pub mod matching;
mod registry;
mod steps;
pub mod sunflow;
pub mod timetable;

#[cfg(test)]
#[path = "../testing.rs"]
mod testing;

use registry::schedulers;

/// A (partial) matching of inputs to outputs on one plane: at most one output an input, at most one
/// input an output.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Matching {
    out: Vec<Option<RackId>>,
}

impl Matching {
    /// A matching without circuits.
    pub fn empty(racks: usize) -> Self {
        Self { out: vec![None; racks] }
    }

    /// A matching of these pairs.
    ///
    /// # Panics
    /// If a port is used twice, or a rack is matched with itself.
    pub fn from_pairs(racks: usize, pairs: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut m = Self::empty(racks);
        for (i, j) in pairs {
            assert!(
                m.connect(RackId::from(i), RackId::from(j)),
                "port twice, or a rack with itself: {i} -> {j}"
            );
        }
        m
    }

    /// Number of racks, R.
    pub fn racks(&self) -> usize {
        self.out.len()
    }

    /// The output of an input.
    pub fn output(&self, input: RackId) -> Option<RackId> {
        self.out[input.index()]
    }

    /// The input of an output; linear in R.
    pub fn input(&self, output: RackId) -> Option<RackId> {
        self.out.iter().position(|&o| o == Some(output)).map(RackId::from)
    }

    /// Joins two free ports; says whether it could.
    pub fn connect(&mut self, input: RackId, output: RackId) -> bool {
        if input == output || self.out[input.index()].is_some() || self.input(output).is_some() {
            return false;
        }
        self.out[input.index()] = Some(output);
        true
    }

    /// Frees an input.
    pub fn disconnect(&mut self, input: RackId) {
        self.out[input.index()] = None;
    }

    /// The pairs, by input.
    pub fn pairs(&self) -> impl Iterator<Item = (RackId, RackId)> + '_ {
        self.out.iter().enumerate().filter_map(|(i, o)| o.map(|o| (RackId::from(i), o)))
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.out.iter().flatten().count()
    }

    /// Whether it has no circuits.
    pub fn is_empty(&self) -> bool {
        self.out.iter().all(Option::is_none)
    }

    /// Sum of the matched cells of `demand`.
    pub fn weight(&self, demand: &DemandMatrix) -> u128 {
        self.pairs().map(|(i, j)| u128::from(demand.get(i, j))).sum()
    }
}

/// Which ports of a plane may be used: those that are not faulty and not held by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Usable {
    /// By rack: its input port may be given a circuit.
    pub input: Vec<bool>,
    /// By rack: its output port may be given a circuit.
    pub output: Vec<bool>,
}

impl Usable {
    /// Every port of `racks` racks.
    pub fn all(racks: usize) -> Self {
        Self { input: vec![true; racks], output: vec![true; racks] }
    }

    /// Whether that is every port.
    pub fn is_all(&self) -> bool {
        self.input.iter().chain(&self.output).all(|&usable| usable)
    }
}

/// What a scheduler is asked: everything it may look at.
pub struct Ask<'a> {
    /// Bytes wanted, `R x R`, without mice. It holds those of ports that may not be used, too:
    /// `usable` says which those are.
    pub demand: &'a DemandMatrix,
    /// By plane: what is up (or being set up) now.
    pub current: &'a [Matching],
    /// The planes: rate, delta, stop mode, duplex.
    pub planes: &'a [Plane],
    /// By plane: the usable ports.
    pub usable: &'a [Usable],
    /// When the decision takes effect: no port may change before.
    pub at: Time,
    /// Time until the next decision.
    pub interval: Span,
    /// Number of the cycle, from zero.
    pub cycle: u64,
    /// A rack's rate on the electrical network, each way: the slowest rack's; zero if there is
    /// none.
    pub eps: BitRate,
    /// The open coflows by id, where demand is what coflows declare; what `demand` holds beyond
    /// them belongs to none. Empty where demand comes from elsewhere.
    pub coflows: &'a [OpenCoflow],
}

/// One configuration of one plane: a matching, and for how long its circuits carry data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The circuits.
    pub matching: Matching,
    /// Time with light, without the reconfiguration before it. `None`: until further notice (only
    /// in the last slot).
    pub hold: Option<Span>,
}

/// What one plane does from [`Ask::at`] on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaneDecision {
    /// Configurations, one after another. When circuits go dark follows from what is up before
    /// ([`layout::lay_out`]).
    Sequence(Vec<Slot>),
    /// Circuits with times of their own (Sunflow), on a plane on which one port's change leaves the
    /// others alone: neither duplex nor all-stop ([`Plane::ports_turn_alone`]).
    Reservations(Vec<Reservation>),
}

impl PlaneDecision {
    /// One matching until further notice.
    pub fn hold(matching: Matching) -> Self {
        Self::Sequence(vec![Slot { matching, hold: None }])
    }
}

/// A scheduler's answer: what each plane does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision(pub Vec<PlaneDecision>);

impl Decision {
    /// One matching a plane, until further notice: what the periodic schedulers answer.
    pub fn hold(matchings: impl IntoIterator<Item = Matching>) -> Self {
        Self(matchings.into_iter().map(PlaneDecision::hold).collect())
    }

    /// A sequence of configurations a plane.
    pub fn sequences(by_plane: impl IntoIterator<Item = Vec<Slot>>) -> Self {
        Self(by_plane.into_iter().map(PlaneDecision::Sequence).collect())
    }
}

/// What sets circuits under a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetBy {
    /// The scheduler, as it decides.
    Scheduler,
    /// People over the API; the scheduler sets none.
    Hand,
    /// A program of the user's, which is asked every cycle ([`external`]).
    Program,
    /// No circuits are set: the network is electrical only.
    NoCircuits,
}

/// A circuit scheduling algorithm. State between intervals (a rotor's position, warm duals) is its
/// own; it holds no clock and no randomness, so the same asks give the same answers. Its name is in
/// the table of [`SchedulerKind`].
pub trait Scheduler: Send {
    /// Decides what the planes do from `ask.at` on.
    fn decide(&mut self, ask: &Ask) -> Decision;
    /// Whether it rests with the network: asked again one interval later, with the same circuits
    /// and still no demand, it decides the same again and remembers the same. Where it does not (a
    /// rotation goes on), every cycle must ask it.
    fn rests(&self) -> bool {
        true
    }
    /// Whether, on a plane like this, one decision is meant for the whole demand, in many
    /// configurations, and not for one interval.
    fn plans_ahead(&self, plane: &Plane) -> bool {
        let _ = plane;
        false
    }
    /// What sets circuits under it.
    fn set_by(&self) -> SetBy {
        SetBy::Scheduler
    }
    /// What would be better on a plane like this, as a sentence for people who chose it.
    fn advice(&self, plane: &Plane) -> Option<String> {
        let _ = plane;
        None
    }
}

// A new scheduler is a file here, its `mod` above and its line below, and its row in
// docs/circuits.md.
schedulers! {
    /// Maximum weight matching of a general graph; circuits in pairs.
    Edmonds = "edmonds" => matching::Edmonds::default(),
    /// Maximum weight bipartite matching; circuits one way.
    Bipartite = "bipartite" => matching::Bipartite::default(),
    /// Maximum weight b-matching over all planes at once.
    BMatching = "b-matching" => matching::BMatching,
    /// Heaviest pair first.
    Greedy = "greedy" => matching::Greedy,
    /// Most circuits, whatever their weight.
    HopcroftKarp = "hopcroft-karp" => matching::HopcroftKarp,
    /// Most circuits, the thinnest of them as thick as can be.
    Bottleneck = "bottleneck" => matching::Bottleneck,
    /// iSLIP: blind to weights, fair over time.
    Islip = "islip" => matching::Islip::default(),
    /// Fixed rotation, blind to demand.
    RoundRobin = "round-robin" => matching::RoundRobin,
    /// Bipartite, but a change must pay for its dark time.
    Hold = "hold" => matching::DarkTimeAware,
    /// Birkhoff-von Neumann: the whole demand, cut into configurations.
    Bvn = "bvn" => decompose::Bvn,
    /// Birkhoff-von Neumann, thickest configurations first.
    BvnBottleneck = "bvn-bottleneck" => decompose::BvnBottleneck,
    /// Birkhoff+: fewer configurations, by a barrier against thin cells.
    BirkhoffPlus = "birkhoff-plus" => decompose::BirkhoffPlus,
    /// Preemptive optimal clearance: an open shop; circuits go on where they can.
    Clearance = "clearance" => decompose::Clearance,
    /// Mordia's traffic matrix scheduling: shares of the interval in proportion to demand.
    Tms = "tms" => decompose::Tms,
    /// Solstice: few long configurations first.
    Solstice = "solstice" => decompose::Solstice,
    /// Eclipse: most bytes within the interval, every dark time counted.
    Eclipse = "eclipse" => decompose::Eclipse,
    /// Sunflow: every circuit with times of its own; coflows by shortest lower bound.
    Sunflow = "sunflow" => sunflow::Sunflow { order: Order::Shortest },
    /// Sunflow, smallest effective bottleneck first.
    SunflowSebf = "sunflow-sebf" => sunflow::Sunflow { order: Order::Sebf },
    /// Sunflow, first come first served.
    SunflowFifo = "sunflow-fifo" => sunflow::Sunflow { order: Order::Fifo },
    /// Sunflow, least attained service first.
    SunflowLas = "sunflow-las" => sunflow::Sunflow { order: Order::Las },
    /// Sunflow, shortest lower bound over weight first.
    SunflowWeighted = "sunflow-weighted" => sunflow::Sunflow { order: Order::Weighted },
    /// A program of the user's own decides.
    External = "external" => external::External,
    /// Only circuits set by hand over the API.
    Manual = "manual" => matching::Manual,
    /// No circuits.
    EpsOnly = "eps-only" => matching::EpsOnly,
}
