//! How many tasks may fetch on a host at once, and which tasks may compute there meanwhile.

use super::PushBoxOptions;
use super::estimate::{Misjudged, counting, transfer_time};
use super::select::CandidateTask;
use crate::ids::{HostId, JobId};
use crate::placement::policy::View;
use crate::units::{Bytes, Span};

/// What the network of a host has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostLoad {
    /// Tasks there that have input to come, but for those that only hold their slots
    /// ([`counting`]).
    pub inputs: u32,
    /// How many may: m, but no more than there are slots.
    pub limit: u32,
    /// The smallest of their coflows.
    pub smallest: Option<Bytes>,
    /// How long it is busy for them.
    pub transfer: Span,
}

impl HostLoad {
    /// The present load of a host. O(inputs on the host).
    pub fn of(view: &dyn View, host: HostId, o: &PushBoxOptions, wrong: Misjudged) -> Self {
        let limit = o.input_tasks.min(view.topology().hosts[host.index()].slots);
        let mut load =
            Self { inputs: 0, limit, smallest: None, transfer: transfer_time(view, host, wrong) };
        for i in counting(view, host) {
            load.inputs += 1;
            load.smallest = Some(load.smallest.map_or(i.coflow, |s| s.min(i.coflow)));
        }
        load
    }

    /// Whether a task that must fetch may start whatever its coflow.
    pub fn has_room(&self) -> bool {
        self.inputs < self.limit
    }
}

/// Whether a task with input over the network may start on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayStart {
    /// The host has room for it.
    Room,
    /// The host has none, but all tasks that fetch there belong to larger coflows, and queues share
    /// fairly.
    WildCard,
    /// No.
    No,
}

/// The paper's `canBePlaced` (Algorithm 1, lines 9 to 20); fairness is that of the queue of the
/// task's job. O(edges into the stage).
pub fn can_be_placed(
    view: &dyn View,
    o: &PushBoxOptions,
    (job, c): (JobId, &CandidateTask),
    load: &HostLoad,
) -> MayStart {
    if load.has_room() {
        return MayStart::Room;
    }
    let smaller = || view.coflow_size(job, c.stage) < wild_below(o, load);
    if !view.order(job).is_by_arrival() && smaller() { MayStart::WildCard } else { MayStart::No }
}

/// Coflows that are smaller than this have wild cards.
pub fn wild_below(o: &PushBoxOptions, load: &HostLoad) -> Bytes {
    let allowed = !o.no_wild_card && o.most_input_tasks.is_none_or(|most| load.inputs < most);
    load.smallest.filter(|_| allowed).unwrap_or(Bytes::ZERO)
}

/// The paper's `notHinderTask` (Algorithm 1, lines 21 to 25): a task that needs nothing of the
/// network ends before the network of the host has nothing left to do.
pub fn hinders_not(o: &PushBoxOptions, c: &CandidateTask, load: &HostLoad) -> bool {
    o.no_hinder || c.computing < load.transfer + o.hinder_slack
}
