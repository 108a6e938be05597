//! Placement and circuits decided together: where a shuffle's reduce tasks go, judged by the
//! circuits and the coflows that a controller has, and not by an idle network.
//!
//! Co-scheduler (ToN 2022) places reduces by when slots become free and by the lower bound T(C) of
//! the shuffle, alone on the network; which ports are busy it cannot know. [`decide`] takes the
//! present network ([`NetworkState`]) and a shuffle ([`PlacementRequest`]), makes placements
//! (`candidates`), estimates them (`estimate`), and answers with the best, the circuits that it
//! needs, and the losers. What a placement costs at least is known sooner than its estimate
//! (`least`): those that cannot win are not estimated.
//!
//! A pure function of its arguments: the API asks it over the controller's snapshot, a simulation
//! over the controller itself.
//!
//! # How an estimate is made
//!
//! The open coflows, those that are promised included, are laid out on the ports, shortest T(C)
//! first as Sunflow orders them; the shuffle takes the port time that is left by the coflows before
//! it. A circuit that goes on pays no dark time. Pairs below T_e, and pairs that would wait longer
//! for a circuit than they need without one, go by the electrical core, which they share with all
//! bytes there. The estimate is never below the lower bound of the placement
//! ([`crate::coflows::bounds::hybrid_racks`]).
//!
//! It is a forecast: coflows that come later may go before, and a controller whose circuit
//! scheduler is not Sunflow orders coflows in another way.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::circuits::timetable::Reservation;
use crate::circuits::{Matching, Usable};
use crate::coflows::RackBytes;
use crate::ids::{CoflowId, RackId};
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};

mod assign;
mod candidates;
mod estimate;
mod least;
mod occupancy;
mod search;
mod table;
#[cfg(test)]
mod tests;

pub use estimate::{ShuffleEstimate, Way};
pub use occupancy::Occupancy;
pub use search::{decide, decide_slowly};

/// A coflow that the network has to carry, or has promised to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingCoflow {
    /// Its number.
    pub id: CoflowId,
    /// Time at which it begins, or has begun.
    pub start: Time,
    /// Bytes left of the pairs that may use circuits.
    pub heavy: Vec<RackBytes>,
    /// Bytes left of the others.
    pub light: Vec<RackBytes>,
}

/// The network as a controller has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkState {
    /// When it was taken.
    pub now: Time,
    /// No circuit changes before.
    pub from: Time,
    /// Whether the policy sets circuits by demand.
    pub circuits: bool,
    /// The elephant threshold T_e: pairs below never use circuits.
    pub threshold: Bytes,
    /// By plane: what will be up at `from`.
    pub up: Vec<Matching>,
    /// By plane: ports that are neither faulty nor held by hand.
    pub usable: Vec<Usable>,
    /// All coflows that are open or promised, by id.
    pub coflows: Vec<Arc<PendingCoflow>>,
}

impl NetworkState {
    /// A network at rest at time zero.
    pub fn idle(topology: &Topology, threshold: Bytes) -> Self {
        let (racks, planes) = (topology.rack_count(), topology.planes.len());
        let (up, usable) = (vec![Matching::empty(racks); planes], vec![Usable::all(racks); planes]);
        Self {
            now: Time::ZERO,
            from: Time::ZERO,
            circuits: true,
            threshold,
            up,
            usable,
            coflows: vec![],
        }
    }

    /// Whether what it carries and has promised, and what its circuits are, is the same. Time and
    /// bytes may have passed.
    pub fn is_like(&self, other: &Self) -> bool {
        let key = |s: &Self| (s.circuits, s.threshold);
        let ids = |s: &Self| s.coflows.iter().map(|c| c.id).collect::<Vec<_>>();
        key(self) == key(other)
            && self.up == other.up
            && self.usable == other.usable
            && ids(self) == ids(other)
    }
}

/// What shall be shuffled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShuffleSpec {
    /// These bytes: nothing is left to place.
    Pairs(Vec<RackBytes>),
    /// Map output by rack, to reduce tasks that are placed already: every task takes the same
    /// share.
    Placed {
        /// Bytes by source rack, each rack once.
        maps: Vec<(RackId, Bytes)>,
        /// Reduce tasks by rack, each rack once.
        reduces: Vec<(RackId, u32)>,
    },
    /// Map output by rack, to reduce tasks that are to be placed.
    Open {
        /// Bytes by source rack, each rack once.
        maps: Vec<(RackId, Bytes)>,
        /// For each of `maps`: what every reduce task reads of it, together all of it. Empty: the
        /// same share each.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        by_task: Vec<Vec<Bytes>>,
        /// Number of reduce tasks.
        reduces: u32,
        /// By rack: when each slot becomes free, from now, sorted; empty for a rack that must not
        /// be used.
        free: Vec<Vec<Span>>,
        /// Most tasks in one rack.
        at_most: Option<u32>,
        /// Whether a rack may run tasks in waves, as Co-scheduler does where no rack has slots for
        /// its share.
        waves: bool,
    },
}

/// A question to [`decide`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacementRequest {
    /// The shuffle.
    pub shuffle: ShuffleSpec,
    /// Least time from now until it begins.
    pub ready: Span,
    /// When it shall be over, from now.
    pub deadline: Option<Span>,
}

/// How a placement was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema), schema(as = Origin))]
#[serde(rename_all = "kebab-case")]
pub enum PlacementOrigin {
    /// The placement that was asked for.
    Given,
    /// Co-scheduler's ExploreSchedule: racks that have slots soonest.
    Slots,
    /// Racks whose slots and ports are free soonest.
    Ports,
    /// Racks to which circuits from map racks are up, as far as they have slots as soon.
    Circuits,
    /// Racks that hold most of the map output, as far as they have slots as soon.
    Local,
    /// An even share on each of some racks.
    Even,
    /// The slots that are free soonest, wherever they are.
    Soonest,
    /// Where tasks read unequal parts of the map output: each where few bytes must move.
    Near,
    /// One of all placements, where there are few.
    Any,
}

/// A placement and what it would bring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// How it was found.
    pub origin: PlacementOrigin,
    /// Reduce tasks by rack; empty where pairs were given.
    pub racks: Vec<(RackId, u32)>,
    /// Time at which all reduce tasks have slots and the shuffle begins.
    pub start: Time,
    /// Estimated completion time of the shuffle, from `start`.
    pub cct: Span,
    /// No schedule on this network is faster with this placement.
    pub bound: Span,
    /// By how much open coflows would end later in all.
    pub others: Span,
    /// Whether it ends before the deadline, where there is one.
    pub on_time: bool,
    /// What decides, smallest first: from now to the end, and the delay of the others.
    pub score: Span,
}

impl Candidate {
    /// When its shuffle ends.
    pub fn finish(&self) -> Time {
        self.start + self.cct
    }

    fn key(&self) -> (bool, Span, usize, PlacementOrigin, &[(RackId, u32)]) {
        (!self.on_time, self.score, self.racks.len(), self.origin, &self.racks)
    }

    /// In words, why `winner` was taken instead.
    pub fn why(&self, winner: &Self) -> String {
        let mut parts = vec![];
        if winner.on_time && !self.on_time {
            parts.push("misses the deadline".to_owned());
        }
        for (own, its, what) in [
            (self.start.0, winner.start.0, "its slots are free"),
            (self.cct.0, winner.cct.0, "its shuffle takes"),
            (self.others.0, winner.others.0, "it delays others by"),
        ] {
            if own != its {
                let word = match (own > its, what.ends_with("free")) {
                    (true, true) => "later",
                    (false, true) => "sooner",
                    (more, _) => {
                        if more {
                            "more"
                        } else {
                            "less"
                        }
                    }
                };
                parts.push(format!("{what} {} {word}", Span(own.abs_diff(its))));
            }
        }
        if parts.is_empty() {
            "as good; on more racks, or found later".into()
        } else {
            parts.join(", ")
        }
    }
}

/// A placement that a bound alone excludes: whatever an estimate said, the winner is better.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excluded {
    /// How it was found.
    pub origin: PlacementOrigin,
    /// Reduce tasks by rack.
    pub racks: Vec<(RackId, u32)>,
    /// Time at which all reduce tasks have slots and the shuffle begins.
    pub start: Time,
    /// Whether it cannot end before the deadline.
    pub late: bool,
    /// Its score is no smaller.
    pub least: Span,
}

impl Excluded {
    /// In words, why `winner` was taken instead.
    pub fn why(&self, winner: &Candidate) -> String {
        if self.late && winner.on_time {
            return "misses the deadline".into();
        }
        format!(
            "not estimated: its score is {} more at least",
            Span(self.least.0.saturating_sub(winner.score.0))
        )
    }
}

/// What an answer promises: the winner with its circuits, and the losers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// The winner.
    pub chosen: Candidate,
    /// By reduce task: its rack. Empty where all tasks read the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<RackId>,
    /// Its bytes, by what way they go, and when they are through.
    pub pairs: Vec<Way>,
    /// The circuits that it needs.
    pub circuits: Vec<Reservation>,
    /// All other placements that were estimated, best first.
    pub losers: Vec<Candidate>,
    /// Placements that were not estimated, since a bound on their score was enough; smallest first.
    pub excluded: Vec<Excluded>,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPlacement {
    /// More tasks than slots.
    #[error(
        "{tasks} reduce tasks do not fit: the racks that may be used have {slots} slots for them"
    )]
    Slots {
        /// Tasks asked for.
        tasks: u32,
        /// Slots of the racks that may be used.
        slots: u64,
    },
}
