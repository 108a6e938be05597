//! How many tasks may fetch on a host at once, and who may compute there meanwhile.

use super::PushBoxOptions;
use super::estimate::transfer_time;
use super::select::Candidate;
use crate::ids::{HostId, JobId};
use crate::placement::policy::{Order, View};

/// Whether a task with input over the network may start on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// The host has room for it.
    Room,
    /// The host has none, but all tasks that fetch there belong to larger coflows, and queues share fairly.
    WildCard,
    /// No.
    No,
}

/// The paper's `canBePlaced` (Algorithm 1, lines 9 to 20); fairness is that of the queue of the task's job. O(inputs on the host).
pub fn can_be_placed(view: &dyn View, o: &PushBoxOptions, (job, c): (JobId, &Candidate), host: HostId) -> Placed {
    let (mut inputs, mut smallest) = (0, None);
    for i in view.inputs(host) {
        inputs += 1;
        smallest = Some(smallest.map_or(i.coflow, |s: crate::units::Bytes| s.min(i.coflow)));
    }
    if inputs < o.input_tasks {
        return Placed::Room;
    }
    let allowed = !o.no_wild_card && o.most_input_tasks.is_none_or(|most| inputs < most);
    let fair = view.order(job) == Order::Fair;
    let smaller = smallest.is_some_and(|s| view.coflow_size(job, c.stage) < s);
    if allowed && fair && smaller { Placed::WildCard } else { Placed::No }
}

/// The paper's `notHinderTask` (Algorithm 1, lines 21 to 25): a task that needs nothing of the network ends before the network of the host
/// has nothing left to do.
pub fn hinders_not(view: &dyn View, o: &PushBoxOptions, c: &Candidate, host: HostId) -> bool {
    o.no_hinder || c.computing < transfer_time(view, host) + o.hinder_slack
}
