//! The scheduler over a world that does what it is asked to do: computing takes its time, a byte of
//! the network takes one nanosecond.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::queues::JobOrder;
use super::state::{Grain, SchedulerSettings};
use super::*;
use crate::placement::advisor;
use crate::placement::baselines::delay::{Delay, Waits};
use crate::placement::baselines::fair::Fair;
use crate::placement::policy::Placement;
use crate::topology::Topology;
use crate::units::{BitRate, Bytes};
use crate::workload::jobs::{EdgeSpec, JobList, StageSpec, TaskTimes};

mod by_hand;
mod drawn;
mod failing;
mod joint;
mod laws;
mod network;
mod policies;
mod pushbox;

/// `racks` x `hosts` x `slots`.
pub(super) fn network(racks: usize, hosts: usize, slots: u32) -> Arc<Topology> {
    let mut t = Topology::uniform("t", 0, 0, BitRate(8), BitRate(8), vec![]);
    (0..racks).for_each(|_| t.push_rack(hosts, slots, BitRate(8), BitRate(8)));
    Arc::new(t)
}

pub(super) fn stage(name: &str, tasks: u32, time: u64, input: u64) -> StageSpec {
    StageSpec {
        name: name.into(),
        tasks,
        times: TaskTimes::Even(Span(time)),
        input: Bytes(input),
        output: Bytes(0),
        streams: false,
    }
}

pub(super) fn map_reduce(at: u64, map: (u32, u64), reduce: (u32, u64), shuffle: u64) -> JobSpec {
    let input = u64::from(map.0) * 10;
    JobSpec::map_reduce(
        "j",
        Time(at),
        stage("map", map.0, map.1, input),
        stage("reduce", reduce.0, reduce.1, 0),
        Bytes(shuffle),
    )
}

/// A flow of the world.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowOnItsWay {
    pub from: HostId,
    pub to: HostId,
    pub ends: Time,
}

/// A scheduler, and a world that checks it at every step.
pub(super) struct SchedulerWorld {
    pub s: TaskScheduler,
    pub topology: Arc<Topology>,
    pub now: Time,
    queue: BTreeMap<(Time, u64), SchedulerEvent>,
    seq: u64,
    /// Slots that are held, and the task and attempt that hold them.
    held: BTreeMap<(HostId, u32), (TaskRef, u32)>,
    pub starts: BTreeMap<TaskRef, u32>,
    /// Where each task started last.
    pub hosts: BTreeMap<TaskRef, HostId>,
    /// All jobs, by number.
    pub specs: Vec<JobSpec>,
    pub done: BTreeMap<TaskRef, u32>,
    cancelled: BTreeSet<CoflowId>,
    /// Flows on their way.
    pub flying: BTreeMap<(CoflowId, FlowId), FlowOnItsWay>,
    pub sent: BTreeMap<(JobId, bool), u64>,
    pub log: Vec<String>,
}

impl SchedulerWorld {
    pub fn new(topology: &Arc<Topology>, order: JobOrder, policy: Box<dyn Placement>) -> Self {
        Self::with(topology, SchedulerSettings { order, ..SchedulerSettings::default() }, policy)
    }

    pub fn with(
        topology: &Arc<Topology>,
        settings: SchedulerSettings,
        policy: Box<dyn Placement>,
    ) -> Self {
        Self {
            s: TaskScheduler::new(topology.clone(), settings, policy),
            topology: topology.clone(),
            now: Time::ZERO,
            queue: BTreeMap::new(),
            seq: 0,
            held: BTreeMap::new(),
            starts: BTreeMap::new(),
            hosts: BTreeMap::new(),
            specs: vec![],
            done: BTreeMap::new(),
            cancelled: BTreeSet::new(),
            flying: BTreeMap::new(),
            sent: BTreeMap::new(),
            log: vec![],
        }
    }

    pub fn at(&mut self, t: Time, e: SchedulerEvent) {
        self.seq += 1;
        self.queue.insert((t, self.seq), e);
    }

    pub fn submit(&mut self, jobs: Vec<JobSpec>) {
        for j in JobList::new("l", jobs).jobs {
            self.specs.push(j.clone());
            self.at(j.arrival, SchedulerEvent::Submitted(Box::new(j)));
        }
    }

    /// When the next thing happens.
    pub fn next(&self) -> Option<Time> {
        let wake = self.s.poll_timeout();
        self.queue.keys().next().map(|k| k.0).into_iter().chain(wake).min().map(|t| t.max(self.now))
    }

    /// Until nothing is left to happen, or `until`.
    pub fn run(&mut self, until: Time) {
        for steps in 0.. {
            assert!(steps < 200_000, "it never ends");
            let wake = self.s.poll_timeout();
            let next = self.queue.keys().next().map(|k| k.0);
            let Some(t) = next.into_iter().chain(wake).min().filter(|&t| t <= until) else {
                return;
            };
            self.now = self.now.max(t);
            while let Some(e) = self.queue.first_entry().filter(|e| e.key().0 <= self.now) {
                let e = e.remove();
                self.tell(e);
            }
            if wake.is_some_and(|w| w <= self.now) {
                self.s.handle(SchedulerEvent::Tick, self.now).unwrap();
            }
            if self.s.wants_progress(self.now) {
                let left = self
                    .flying
                    .iter()
                    .map(|(k, f)| (k.0, k.1, Bytes(f.ends.since(self.now).0)))
                    .collect();
                self.s.handle(SchedulerEvent::Progress { left }, self.now).unwrap();
            }
            while let Some(a) = self.s.poll_action() {
                self.log.push(format!("{} {}", self.now.0, serde_json::to_string(&a).unwrap()));
                self.act(a);
            }
        }
    }

    fn tell(&mut self, e: SchedulerEvent) {
        match &e {
            SchedulerEvent::FlowFinished(id, _) | SchedulerEvent::CoflowFinished(id)
                if self.cancelled.contains(id) =>
            {
                return;
            }
            SchedulerEvent::FlowFinished(id, flow) => drop(self.flying.remove(&(*id, *flow))),
            SchedulerEvent::TaskFinished(r, attempt) => {
                let key = self.held.iter().find(|h| *h.1 == (*r, *attempt)).map(|h| *h.0);
                let Some(key) = key else { return };
                self.held.remove(&key);
                *self.done.entry(*r).or_default() += 1;
            }
            _ => {}
        }
        self.s.handle(e, self.now).unwrap();
    }

    fn act(&mut self, a: SchedulerAction) {
        match a {
            SchedulerAction::PlaceData { job, blocks } => {
                for b in blocks.iter().flatten() {
                    assert_eq!(
                        b.iter().collect::<BTreeSet<_>>().len(),
                        b.len(),
                        "a block twice on a host"
                    );
                }
                self.at(self.now, SchedulerEvent::DataPlaced(job));
            }
            SchedulerAction::StartTask { task, attempt, host, slot, .. } => {
                assert!(slot < self.topology.hosts[host.index()].slots, "no such slot");
                assert!(
                    self.held.insert((host, slot), (task, attempt)).is_none(),
                    "slot {slot} of {host} used twice"
                );
                *self.starts.entry(task).or_default() += 1;
                self.hosts.insert(task, host);
                assert_eq!(self.starts[&task], attempt);
            }
            SchedulerAction::Compute { task, attempt, span } => {
                self.at(self.now + span, SchedulerEvent::TaskFinished(task, attempt))
            }
            SchedulerAction::StopTask { task, attempt } => {
                self.held.retain(|_, h| *h != (task, attempt))
            }
            SchedulerAction::StartCoflow { coflow, job, shuffle, .. } => {
                for (k, f) in coflow.flows.iter().enumerate() {
                    assert!(f.from != f.to && f.bytes.0 > 0);
                    *self.sent.entry((job, shuffle)).or_default() += f.bytes.0;
                    let ends = self.now + Span(f.bytes.0);
                    self.flying.insert(
                        (coflow.id, k.into()),
                        FlowOnItsWay { from: f.from, to: f.to, ends },
                    );
                    self.at(ends, SchedulerEvent::FlowFinished(coflow.id, k.into()));
                }
                let longest = coflow.flows.iter().map(|f| f.bytes.0).max().unwrap();
                self.at(self.now + Span(longest), SchedulerEvent::CoflowFinished(coflow.id));
            }
            SchedulerAction::AskPlacement { job, stage, request } => {
                // The answer takes its time.
                let idle = advisor::NetworkState::idle(&self.topology, Bytes(10));
                let racks =
                    advisor::decide(&self.topology, &idle, &request).ok().map(|p| p.chosen.racks);
                self.at(self.now + Span(7), SchedulerEvent::Placed { job, stage, racks });
            }
            SchedulerAction::CancelCoflow(id) => {
                self.flying.retain(|k, _| k.0 != id);
                self.cancelled.insert(id);
            }
            SchedulerAction::Prioritise { coflow, flows } => {
                assert!(!flows.is_empty(), "{coflow:?}")
            }
            SchedulerAction::Consult { .. } => panic!("a program is asked by the runtime only"),
            SchedulerAction::FinishJob(_) => {}
        }
    }

    /// When each job finished.
    pub fn ends(&self) -> Vec<Option<u64>> {
        self.s.snapshot().jobs.iter().map(|j| j.finished.map(|t| t.0)).collect()
    }
}

pub(super) fn fair() -> Box<dyn Placement> {
    Box::new(Fair::new("fair", 5, 1))
}
