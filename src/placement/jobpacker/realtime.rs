//! JobPacker's real-time rules (section 4.4): which task gets a container that has become free in a rack.

use serde::Serialize;

use crate::units::Bytes;

/// An ad-hoc job with more input than this is taken as shuffle-heavy (figure 7).
pub const HEAVY_INPUT: Bytes = Bytes(1_000_000_000);

/// Whether an ad-hoc job is taken as shuffle-heavy.
pub fn ad_hoc_heavy(input: Bytes) -> bool {
    input > HEAVY_INPUT
}

/// What to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Choice {
    /// The first job of the rack's sequence that has a task to run.
    Planned,
    /// The ad-hoc job at this place.
    AdHoc(usize),
}

/// Chooses for one container of a rack.
///
/// `planned`: a job of the rack's sequence has a task to run. `heavy_running`: tasks of a shuffle-heavy job run in this rack. `ad_hoc`:
/// the ad-hoc jobs with a task to run, highest priority first, each with whether it is taken as shuffle-heavy. Recurring jobs go first.
/// While a heavy job runs here, a light one is preferred, so that the rack sends large shuffles to few others; else a heavy one.
/// O(ad-hoc jobs).
pub fn choose(planned: bool, heavy_running: bool, ad_hoc: &[bool]) -> Option<Choice> {
    if planned {
        return Some(Choice::Planned);
    }
    let wanted = ad_hoc.iter().position(|&heavy| heavy != heavy_running);
    wanted.or(if ad_hoc.is_empty() { None } else { Some(0) }).map(Choice::AdHoc)
}

/// Whether the reduce tasks of a job may be scheduled: `done` of its `maps` are (slowstart, section 2.1).
pub fn slowstart(done: u32, maps: u32, threshold_percent: u32) -> bool {
    u64::from(done) * 100 >= u64::from(maps) * u64::from(threshold_percent)
}

/// Whether the plan for a rack still holds: no more than `lost_percent` of its hosts have failed. Else its jobs go by the default
/// scheduler.
pub fn plan_holds(hosts: u32, failed: u32, lost_percent: u32) -> bool {
    failed == 0 || u64::from(failed) * 100 <= u64::from(hosts) * u64::from(lost_percent)
}
