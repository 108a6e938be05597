//! What is known of an earlier controller of the same network, whose daemon has ended or was
//! killed.

use serde::{Deserialize, Serialize};

use super::closed::Closed;
use super::record::{CoflowTotals, CoflowView};
use super::used_ids::UsedIds;
use crate::units::Time;

/// Why a coflow is cancelled that was open when its daemon ended.
pub const LOST: &str = "lost: the daemon ended before the coflow had finished";

/// The records of an earlier controller, from which another one goes on: no number of an event or a
/// coflow is given again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PreviousRun {
    /// Number of the next event.
    pub seq: u64,
    /// Numbers of coflows that were given.
    pub used: UsedIds,
    /// The last coflows that ended.
    pub closed: Closed,
    /// Counted since the first of these controllers began.
    pub totals: CoflowTotals,
    /// Coflows that had not ended. They are lost.
    pub open: Vec<CoflowView>,
}

impl PreviousRun {
    /// A coflow has ended.
    pub fn end(&mut self, view: CoflowView) {
        let at = view.closed().unwrap_or(Time::ZERO);
        self.used.insert(view.id);
        self.totals.received = self.totals.received.saturating_add(view.received);
        match view.finished {
            Some(_) => self.totals.finished += 1,
            None => self.totals.cancelled += 1,
        }
        self.keep(view, at);
    }

    /// A coflow that ended is remembered; it is counted already.
    pub fn keep(&mut self, view: CoflowView, at: Time) {
        self.closed.push(view, at);
    }
}
