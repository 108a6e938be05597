//! Which flows go first into a host.

use crate::coflows::priority::LAST;
use crate::ids::{CoflowId, FlowId, HostId, JobId};
use crate::placement::policy::{TaskInput, View};
use crate::units::Bytes;

/// The last priority by rank; [`LAST`] is for jobs of a FIFO queue behind its head.
const LAST_RANK: usize = LAST as usize - 1;

/// Whether a job waits behind the head of its queue, whose jobs go as they came.
fn is_behind(view: &dyn View, job: JobId) -> bool {
    view.order(job).is_by_arrival() && view.head(job) != Some(job)
}

/// Priorities of flows into a host: tasks there by the sizes of their coflows, smallest first,
/// those of one job as they were placed; the rank is the priority. Jobs behind the head of a FIFO
/// queue share the last one. With `global`, what decides is the coflow's size in tenfold steps from
/// 10 MB, whatever else is on the host. O(flows log) of the host.
pub fn ranks(view: &dyn View, host: HostId, global: bool) -> Vec<(CoflowId, FlowId, u8)> {
    by_size(view, host, |job| is_behind(view, job), global)
}

/// The same, where `is_last` says of which jobs flows share the last priority.
pub fn by_size(
    view: &dyn View,
    host: HostId,
    is_last: impl Fn(JobId) -> bool,
    global: bool,
) -> Vec<(CoflowId, FlowId, u8)> {
    let mut inputs: Vec<TaskInput> = view.inputs(host).collect();
    // A stable sort: tasks of one job stay as they were placed.
    inputs.sort_by_key(|i| (is_last(i.job), i.coflow, view.job(i.job).arrival, i.job));
    let rank = |(k, i): (usize, &TaskInput)| match () {
        () if is_last(i.job) => LAST,
        () if global => step(i.coflow),
        () => k.min(LAST_RANK) as u8,
    };
    let mut by_task: Vec<((JobId, usize, u32), u8)> =
        inputs.iter().enumerate().map(|(k, i)| ((i.job, i.stage, i.task), rank((k, i)))).collect();
    by_task.sort_unstable();
    let of = |key: (JobId, usize, u32)| {
        by_task.binary_search_by_key(&key, |t| t.0).ok().map(|at| by_task[at].1)
    };
    let flows = view.flows_into(host).filter(|f| f.counts);
    flows.filter_map(|f| Some((f.coflow, f.flow, of((f.job, f.stage, f.task?))?))).collect()
}

/// The bin of a coflow's size: below 10 MB, below 100 MB, and so on.
fn step(size: Bytes) -> u8 {
    let mut bound = 10_000_000u64;
    for step in 0..LAST_RANK as u8 {
        if size.0 < bound {
            return step;
        }
        bound = bound.saturating_mul(10);
    }
    LAST_RANK as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_tenfold() {
        let sizes =
            [0, 9_999_999, 10_000_000, 99_999_999, 1_000_000_000, 1_000_000_000_000, u64::MAX];
        assert_eq!(sizes.map(|s| step(Bytes(s))), [0, 0, 1, 1, 3, 6, 6]);
    }
}
