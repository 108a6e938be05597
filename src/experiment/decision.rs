//! How long PushBox takes for one decision, by how many coflows are on their way (PushBox, figure
//! 14b).

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::ids::{HostId, JobId, RackId};
use crate::placement::policy::{Block, Needs, Pick, Placement, View, startable};
use crate::placement::pushbox::{PushBox, PushBoxOptions};
use crate::placement::spec::Common;
use crate::scheduler::state::SchedulerSettings;
use crate::scheduler::{SchedulerAction, SchedulerEvent, TaskScheduler};
use crate::topology::Topology;
use crate::units::{BitRate, Bytes, Span, Time};
use crate::workload::jobs::{JobSpec, StageSpec, TaskTimes};

/// Decisions that are timed, and those before them that are not.
const TIMED: u32 = 3600;
const WARM: u32 = 400;

/// Puts map k of job j on host j + 7 k, the reduce task of each of the first jobs on host j, and no
/// other reduce task anywhere.
struct SpreadPolicy {
    first: u32,
}

impl Placement for SpreadPolicy {
    fn name(&self) -> &'static str {
        "spread"
    }
    fn place_data(&mut self, view: &dyn View, job: JobId) -> Vec<Vec<Block>> {
        vec![vec![]; view.job(job).stages.len()]
    }
    fn slowstart(&self, _: &dyn View, _: JobId) -> u32 {
        100
    }
    fn needs(&mut self, _: &Topology) -> Needs {
        Needs { network: true, flows_by_task: true, ..Needs::default() }
    }
    fn offer(&mut self, view: &dyn View, _: RackId) -> Option<Pick> {
        let wanted = |job: JobId, stage: usize| {
            let c = view.counts(job, stage);
            let host = HostId((job.0 + 7 * (c.tasks() - c.pending)) % HOSTS);
            let may = view.free_on(host) > 0 && (stage == 0 || job.0 < self.first);
            may.then_some(Pick { host: Some(host), ..Pick::of(job, stage) })
        };
        view.ready().find_map(|job| startable(view, job).find_map(|stage| wanted(job, stage)))
    }
}

/// Hosts of the crowded cluster.
const HOSTS: u32 = 20;

/// A cluster whose hosts have one free slot each, with as many jobs of which the only reduce task
/// fetches, `jobs` in all, as jobs of which it waits for a slot. Map outputs of a job are on two
/// hosts, so that its reduce task fetches wherever it runs. Coflows that wait are larger than those
/// on their way.
pub fn crowded(jobs: u32) -> TaskScheduler {
    let nic = BitRate::mbit(10_000);
    let mut topology = Topology::uniform("crowded", 0, 0, nic, nic, vec![]);
    (0..HOSTS).for_each(|_| topology.push_rack(1, jobs / HOSTS + 1, nic, nic));
    let mut s = TaskScheduler::new(
        Arc::new(topology),
        SchedulerSettings::default(),
        Box::new(SpreadPolicy { first: jobs }),
    );
    let stage = |tasks| StageSpec {
        name: String::new(),
        tasks,
        times: TaskTimes::Even(Span::secs(10)),
        input: Bytes(0),
        output: Bytes(0),
        streams: false,
    };
    for k in 0..2 * jobs {
        let shuffle = Bytes(100_000_000 + u64::from(k / jobs * jobs + k * 7919 % jobs) * 1_000_000);
        let job = JobSpec {
            id: JobId(k),
            ..JobSpec::map_reduce("j", Time::ZERO, stage(2), stage(1), shuffle)
        };
        s.handle(SchedulerEvent::Submitted(Box::new(job)), Time::ZERO)
            .expect("jobs come in their order");
    }
    let mut maps = vec![];
    loop {
        while let Some(action) = s.poll_action() {
            match action {
                SchedulerAction::PlaceData { job, .. } => s
                    .handle(SchedulerEvent::DataPlaced(job), Time::ZERO)
                    .expect("jobs come in their order"),
                SchedulerAction::Compute { task, attempt, .. } => maps.push((task, attempt)),
                _ => {}
            }
        }
        if maps.is_empty() {
            break;
        }
        for (task, attempt) in maps.drain(..) {
            s.handle(SchedulerEvent::TaskFinished(task, attempt), Time::ZERO).expect("it computes");
        }
    }
    s
}

/// The times of decisions about free slots of the crowded cluster, the shortest first, and how many
/// of them gave a slot away.
pub fn decisions(s: &TaskScheduler, options: PushBoxOptions) -> (Vec<Duration>, usize) {
    let view = s.state();
    let mut policy = PushBox::new(options, &Common::default());
    policy.needs(&view.topology);
    view.ready().for_each(|job| policy.submitted(view, job));
    let mut taken = 0;
    let mut decide = |k: u32| {
        let start = Instant::now();
        let pick = black_box(policy.offer(view, RackId(k % HOSTS)));
        let took = start.elapsed();
        taken += usize::from(k >= WARM && pick.is_some());
        took
    };
    let mut times: Vec<Duration> = (0..WARM + TIMED).map(&mut decide).skip(WARM as usize).collect();
    times.sort();
    (times, taken)
}

/// The median time of a decision with this number of coflows on their way, in us: on hosts that
/// have more than m tasks that fetch.
pub fn decision(coflows: u32) -> f64 {
    let (times, _) = decisions(&crowded(coflows), PushBoxOptions::default());
    times[times.len() / 2].as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cluster_is_as_crowded_as_it_says() {
        let s = crowded(60);
        assert_eq!((s.snapshot().coflows, s.state().ready().count()), (60, 60));
        let t = &s.state().topology;
        assert!(
            t.hosts
                .iter()
                .all(|h| s.state().free_on(h.id) == 1 && s.state().inputs(h.id).count() == 3)
        );
        let taken = |input_tasks, no_wild_card| {
            decisions(&s, PushBoxOptions { input_tasks, no_wild_card, ..PushBoxOptions::default() })
                .1
        };
        assert_eq!([taken(4, false), taken(3, false), taken(3, true)], [TIMED as usize, 0, 0]);
        assert_eq!(
            s.state().ready_below(Bytes(100_000_000)).count(),
            0,
            "all that waits must fetch"
        );
    }
}
