//! A task scheduler that has planned the jobs that it foresees: made for a run, and again for its
//! replay.

use std::sync::Arc;

use crate::placement::policy::Placement;
use crate::scheduler::TaskScheduler;
use crate::scheduler::state::SchedulerSettings;
use crate::topology::Topology;
use crate::workload::jobs::JobSpec;

/// A scheduler under a placement policy that has planned `foreseen`; it was not told anything yet.
/// `misjudged`: per cent by which estimates of remaining times are off at most, and the seed of the
/// errors.
///
/// # Errors
/// Jobs that the policy cannot plan.
pub fn scheduler(
    topology: Arc<Topology>,
    mut placement: Box<dyn Placement>,
    settings: SchedulerSettings,
    foreseen: &[JobSpec],
    misjudged: Option<(u32, u64)>,
) -> Result<TaskScheduler, String> {
    placement.plan(&topology, foreseen)?;
    let mut scheduler = TaskScheduler::new(topology, settings, placement);
    if let Some((percent, seed)) = misjudged {
        scheduler.misjudge_remaining(percent, seed);
    }
    Ok(scheduler)
}
