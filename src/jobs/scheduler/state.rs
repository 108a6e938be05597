//! The books of the whole cluster, and what a placement policy sees of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::TaskRef;
use super::held::HeldJobs;
use super::net::{InputKind, Net};
use super::queues::{JobOrder, JobQueues};
use super::ramp::Sides;
use super::slots::ClusterSlots;
use super::stage::{Doing, Incoming, Stage};
use crate::ids::{CoflowId, HostId, JobId, RackId};
use crate::placement::network::{FlowAt, Needs, TaskInput};
use crate::placement::policy::{
    Block, FlowGranularity, Locality, Offers, ReduceStart, StageCounts, TaskAt, View,
};
use crate::topology::Topology;
use crate::units::{BitRate, Bytes, Span, Time};
use crate::workload::jobs::JobSpec;

/// How the scheduler works, whatever the placement policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulerSettings {
    /// The order of jobs.
    pub order: JobOrder,
    /// Orders of the first queues, where they differ; others have `order`. With any, queues are
    /// served apart under `JobOrder::Fifo` too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<JobOrder>,
    /// Weights of the queues, by number; others have one.
    pub weights: Vec<u32>,
    /// When tasks that wait for others get slots.
    #[serde(default)]
    pub reduces: ReduceStart,
    /// Per cent of the sending stage's tasks that must have finished since before a waiting reduce
    /// task fetches again, 1 to 100.
    pub fetch_percent: u32,
    /// Whether each task has flows of its own; under a policy that needs them they have them anyway
    /// ([`Needs::flows_by_task`]).
    #[serde(default, skip_serializing_if = "FlowGranularity::is_usual")]
    pub flows: FlowGranularity,
    /// Between which places flows go.
    pub grain: Grain,
}

impl Default for SchedulerSettings {
    fn default() -> Self {
        Self {
            order: JobOrder::Fair,
            orders: Vec::new(),
            weights: Vec::new(),
            reduces: ReduceStart::AllPlaced,
            fetch_percent: 20,
            flows: FlowGranularity::Host,
            grain: Grain::Host,
        }
    }
}

/// Between which places flows go.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Grain {
    /// Hosts: what real traffic needs. A shuffle has as many flows as pairs of hosts.
    #[default]
    Host,
    /// Racks: host r of a coflow is rack r as a whole, and what stays in a rack takes no time. For
    /// large networks in virtual time; the network under it has one host a rack ([`rack_level`]).
    Rack,
}

/// The network of [`Grain::Rack`]: each rack is one host with the NICs of all its hosts.
pub fn rack_level(t: &Topology) -> Topology {
    let mut flat = Topology { racks: Vec::new(), hosts: Vec::new(), ..t.clone() };
    for r in &t.racks {
        let slots = t.hosts_of(r.id).iter().map(|h| h.slots).sum();
        flat.push_rack(1, slots, t.rack_nic(r.id), r.uplink);
    }
    flat
}

/// A job in the cluster.
#[derive(Clone, Debug)]
pub struct JobState {
    /// As it was asked for.
    pub spec: JobSpec,
    /// Its stages, in the order of the file.
    pub stages: Vec<Stage>,
    /// Per cent of the stages before that must have finished.
    pub slowstart: u32,
    /// Racks outside of which none of its tasks runs, if it has such.
    pub racks: Option<Vec<RackId>>,
    /// Its blocks are where they shall be.
    pub placed: bool,
    /// Number of stages with tasks that have not finished, or must run again.
    pub unfinished: u32,
    /// Its coflows on their way: a finished job may have some, for attempts of tasks that were
    /// given up.
    pub sending: u32,
    /// What is reported.
    pub account: JobAccount,
}

/// What is counted of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobAccount {
    /// When its first task got a slot.
    pub started: Option<Time>,
    /// When its last task finished.
    pub finished: Option<Time>,
    /// Time that its tasks held slots.
    pub slot_time: Span,
    /// Tasks started with their block on their host, in their rack, elsewhere.
    pub near: [u32; 3],
    /// Starts beyond one a task.
    pub reruns: u32,
    /// Bytes of blocks read over the network, between hosts.
    pub read: Bytes,
    /// Bytes of shuffles sent over the network, between hosts (or racks).
    pub shuffled: Bytes,
    /// Of `read` and `shuffled`, bytes between racks.
    pub between_racks: Bytes,
}

/// Bytes on their way for tasks that wait for them.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Whose.
    pub job: JobId,
    /// For tasks of this stage.
    pub stage: usize,
    /// A shuffle; else reads of blocks.
    pub shuffle: bool,
    /// When it began.
    pub began: Time,
    /// By flow: where it goes; `None` once it has arrived.
    pub flows: Vec<Option<(HostId, u32)>>,
    /// How many have not arrived.
    pub missing: usize,
    /// By flow: from which rack into which other how many bytes go; none within a rack.
    pub crossing: Vec<(RackId, RackId, Bytes)>,
    /// By receiving end ([`SchedulerState::end`]): flows that are missing, and the tasks that wait
    /// for them.
    pub to: BTreeMap<(HostId, u32), (u32, Vec<u32>)>,
    /// Of a shuffle: by incoming edge, how far the tasks' cursors go when it is there.
    pub upto: Vec<u32>,
    /// Hosts that send.
    pub from: Vec<HostId>,
}

/// The books.
pub struct SchedulerState {
    /// The network.
    pub topology: Arc<Topology>,
    /// How the scheduler works.
    pub settings: SchedulerSettings,
    /// The time of the last event.
    pub now: Time,
    /// Nanoseconds until then in which a host had a free slot, over all hosts.
    pub idle: u128,
    /// Jobs that have not finished, or have coflows on their way.
    pub jobs: HeldJobs<JobState>,
    /// Who shall have the next slot.
    pub queues: JobQueues,
    /// Who has which.
    pub slots: ClusterSlots,
    /// Coflows on their way.
    pub transfers: BTreeMap<CoflowId, Transfer>,
    /// How far they are, for policies that want to know.
    pub net: Net,
    /// By rack: bytes of shuffles on their way into it.
    pub inbound: Vec<u64>,
    /// By rack: bytes of shuffles and blocks on their way into it and out of it.
    pub between: Vec<(u64, u64)>,
    /// Tasks that compute.
    pub computing: u64,
    /// Tasks that hold a slot and do not compute.
    pub fetching: u64,
}

impl SchedulerState {
    /// A cluster at rest.
    pub fn new(topology: Arc<Topology>, settings: SchedulerSettings, mut needs: Needs) -> Self {
        needs.flows_by_task |= settings.flows == FlowGranularity::Task;
        Self {
            net: Net::new(&topology, needs),
            slots: ClusterSlots::new(&topology),
            queues: JobQueues::new(settings.order, &settings.orders, &settings.weights),
            inbound: vec![0; topology.rack_count()],
            between: vec![(0, 0); topology.rack_count()],
            topology,
            settings,
            now: Time::ZERO,
            idle: 0,
            jobs: HeldJobs::default(),
            transfers: BTreeMap::new(),
            computing: 0,
            fetching: 0,
        }
    }

    /// A stage's books.
    pub fn stage(&self, job: JobId, stage: usize) -> &Stage {
        &self.jobs[job].stages[stage]
    }

    /// A stage's books, to write.
    pub fn stage_mut(&mut self, job: JobId, stage: usize) -> &mut Stage {
        &mut self.jobs[job].stages[stage]
    }

    /// The place of a host in coflows.
    pub fn place(&self, host: HostId) -> HostId {
        match self.settings.grain {
            Grain::Host => host,
            Grain::Rack => HostId(self.topology.rack_of(host).0),
        }
    }

    /// The rack of a place in coflows.
    pub fn rack_of_place(&self, place: HostId) -> RackId {
        match self.settings.grain {
            Grain::Host => self.topology.rack_of(place),
            Grain::Rack => RackId(place.0),
        }
    }

    /// Where flows for a task go: its place, and its number if each task has flows of its own.
    pub fn end(&self, job: JobId, stage: usize, task: u32) -> (HostId, u32) {
        let place = self.place(self.stage(job, stage).tasks[task as usize].host);
        (place, if self.net.needs.flows_by_task { task } else { 0 })
    }

    /// A task got its slot: what it will have to fetch.
    pub fn expect_input(&mut self, r: TaskRef, host: HostId) {
        if self.net.needs.network {
            let (job, stage) = (r.job, r.stage as usize);
            let block = self.block_from_afar(job, stage, r.task, host);
            let shuffle = self.shuffle_from_afar(job, stage, r.task, (host, None));
            let place = self.place(host);
            self.net.started(r, place, block, shuffle);
        }
    }

    /// What a task that holds a slot has still to ask for: all of its block, or of its shuffles
    /// what is beyond its cursors. What is on its way now is left out, and so is what is beyond
    /// `upto`.
    pub fn foresee(
        &mut self,
        (job, stage, shuffle): (JobId, usize, bool),
        task: u32,
        upto: Option<&[u32]>,
    ) {
        if self.net.needs.network {
            let host = self.stage(job, stage).tasks[task as usize].host;
            let (part, bytes) = match shuffle {
                true => {
                    (InputKind::Shuffle, self.shuffle_from_afar(job, stage, task, (host, upto)))
                }
                false if upto.is_some() => (InputKind::Block, 0),
                false => (InputKind::Block, self.block_from_afar(job, stage, task, host)),
            };
            self.net.to_come(TaskRef { job, stage: stage as u32, task }, part, bytes);
        }
    }

    /// Bytes of the block of a task; none for a stage that reads none.
    fn block_of(&self, job: JobId, stage: usize, task: u32) -> u64 {
        let s = &self.jobs[job].spec.stages[stage];
        let (n, input) = (
            u64::from(s.tasks),
            if self.stage(job, stage).blocks.is_empty() { 0 } else { s.input.0 },
        );
        input / n + u64::from(u64::from(task) < input % n)
    }

    /// Those that it would read over the network on a host. O(replicas).
    fn block_from_afar(&self, job: JobId, stage: usize, task: u32, host: HostId) -> u64 {
        let t = &self.topology;
        let near = |&h: &HostId| {
            h == host || (self.net.needs.rack_local && t.rack_of(h) == t.rack_of(host))
        };
        let block = self.stage(job, stage).blocks.get(task as usize);
        if block.is_none_or(|b| b.iter().any(near)) { 0 } else { self.block_of(job, stage, task) }
    }

    /// Bytes of shuffles that a task would fetch over the network on a host. Of outputs beyond its
    /// cursors or beyond `upto`, as many in a hundred come from elsewhere as of all. Outputs that
    /// are not ready yet will be elsewhere. O(incoming edges).
    fn shuffle_from_afar(
        &self,
        job: JobId,
        stage: usize,
        task: u32,
        (host, upto): (HostId, Option<&[u32]>),
    ) -> u64 {
        let s = self.stage(job, stage);
        let of = |(k, e): (usize, &Incoming)| {
            let from = self.stage(job, e.from);
            let all = from.tasks.len() as u64;
            let near = match self.net.needs.rack_local {
                true => from.output_in[self.topology.rack_of(host).index()],
                false => from.output_on.get(&host).copied().unwrap_or(0),
            };
            let past = upto.map_or(e.cursor[task as usize], |u| u[k]);
            let (rest, far) = (all.saturating_sub(past.into()), all - u64::from(near).min(all));
            let bytes = u128::from(e.spread.all_to(all as u32, task));
            (bytes * u128::from(rest) * u128::from(far)).div_ceil(u128::from(all) * u128::from(all))
                as u64
        };
        s.incoming.iter().enumerate().map(of).sum()
    }

    /// Whether a task may start: in the right state, with a pending task.
    pub fn startable(&self, job: JobId, stage: usize) -> bool {
        self.may_start(job, stage) && self.stage(job, stage).counts.pending > 0
    }

    /// The two sides of the shuffles into a stage, and the slots of its job. O(incoming edges +
    /// racks of the job).
    pub fn sides(&self, job: JobId, stage: usize) -> Sides {
        let j = &self.jobs[job];
        let free = j.racks.as_ref().map_or(self.slots.free(), |r| {
            r.iter().map(|&r| u64::from(self.slots.free_in(r))).sum()
        });
        let own = &j.stages[stage];
        let before = own.incoming.iter().map(|e| j.stages[e.from].counts);
        before.fold(
            Sides { free, receiving: own.counts.running.into(), ..Sides::default() },
            |s, c| Sides {
                pending: s.pending + u64::from(c.pending),
                running: s.running + u64::from(c.running),
                finished: s.finished + u64::from(c.finished),
                ..s
            },
        )
    }

    /// Looks again whether a job has a task that may start, and tells the queues. O(stages).
    pub fn refresh(&mut self, job: JobId) {
        let waits = |s: &&Stage| s.open && s.counts.pending > 0;
        let least = self.jobs[job].stages.iter().filter(waits).map(|s| self.least(job, s)).min();
        self.queues.set_ready(job, least);
        self.note_work(job);
    }

    /// Tasks of a job got slots or gave them up: its place in the order may be another. O(stages).
    pub fn note_work(&mut self, job: JobId) {
        if self.queues.by_work() {
            let work = self.jobs[job]
                .stages
                .iter()
                .map(|s| s.mean.0.saturating_mul(s.counts.pending.into()));
            let work = work.fold(0, u64::saturating_add);
            self.queues.set_work(job, work);
        }
    }

    /// Bytes begin to go between racks, or, not `on`, do so no more.
    pub fn pass_between(
        &mut self,
        (from, to, bytes): (RackId, RackId, Bytes),
        shuffle: bool,
        on: bool,
    ) {
        let change = |n: &mut u64| *n = if on { *n + bytes.0 } else { *n - bytes.0 };
        change(&mut self.between[to.index()].0);
        change(&mut self.between[from.index()].1);
        if shuffle {
            change(&mut self.inbound[to.index()]);
        }
    }

    /// What the coflow into a stage comes to, if each of its tasks must fetch whatever host it is
    /// on; else 0. Known only for policies that look at the network. O(incoming edges x hosts with
    /// outputs).
    fn least(&self, job: JobId, stage: &Stage) -> u64 {
        let rack_local = self.net.needs.rack_local;
        let in_one_place = |from: &Stage| {
            let all = from.tasks.len() as u32;
            let holds_all = |n: &u32| *n >= all;
            from.is_done()
                && if rack_local {
                    from.output_in.iter().any(holds_all)
                } else {
                    from.output_on.values().any(holds_all)
                }
        };
        let is_remote = |e: &Incoming| e.least > 0 && !in_one_place(self.stage(job, e.from));
        match self.net.needs.network && stage.incoming.iter().any(is_remote) {
            true => stage.incoming.iter().map(|e| e.bytes.0).sum(),
            false => 0,
        }
    }

    /// Whether a waiting task has everything that it waits for.
    pub fn has_all(&self, job: JobId, stage: usize, task: u32) -> bool {
        let j = &self.jobs[job];
        j.stages[stage].incoming.iter().all(|e| {
            let from = &j.stages[e.from];
            let rest = &from.log[e.cursor[task as usize] as usize..];
            from.is_done() && rest.iter().all(|o| !from.needed(o, (stage, task)))
        })
    }

    /// Tasks of a stage that hold slots, by number.
    pub fn running(&self, job: JobId, stage: usize) -> impl Iterator<Item = u32> + '_ {
        let tasks = self.stage(job, stage).tasks.iter().enumerate();
        tasks
            .filter(|(_, t)| matches!(t.doing, Doing::Fetching | Doing::Computing))
            .map(|(k, _)| k as u32)
    }
}

impl SchedulerState {
    /// The clock goes on to an instant; one that has passed changes nothing.
    pub fn pass(&mut self, now: Time) {
        if now > self.now {
            self.idle += u128::from(now.since(self.now).0) * u128::from(self.slots.hosts_open());
            self.now = now;
        }
    }
}

impl View for SchedulerState {
    fn now(&self) -> Time {
        self.now
    }
    fn topology(&self) -> &Topology {
        &self.topology
    }
    fn job(&self, job: JobId) -> &JobSpec {
        &self.jobs[job].spec
    }
    fn ready(&self) -> Box<dyn Iterator<Item = JobId> + '_> {
        Box::new(self.queues.ready())
    }
    fn ready_below(&self, size: Bytes) -> Box<dyn Iterator<Item = JobId> + '_> {
        self.queues.ready_below(size.0)
    }
    fn counts(&self, job: JobId, stage: usize) -> StageCounts {
        // A policy may ask about a job that is over by now: it has no tasks.
        let s = self.jobs.get(job).map(|j| &j.stages[stage]);
        s.map_or_else(StageCounts::default, |s| StageCounts {
            waiting: s.waiting.len() as u32,
            ..s.counts
        })
    }
    fn tasks(&self, job: JobId, stage: usize) -> Box<dyn Iterator<Item = TaskAt> + '_> {
        Box::new(self.stage(job, stage).tasks.iter().map(|t| match t.doing {
            Doing::Pending => TaskAt::Pending,
            Doing::Fetching | Doing::Computing => TaskAt::Running(t.host),
            Doing::Finished => TaskAt::Finished(t.host),
        }))
    }
    fn may_start(&self, job: JobId, stage: usize) -> bool {
        let Some(s) = self.jobs.get(job).map(|j| &j.stages[stage]) else { return false };
        let allowed = || u64::from(s.counts.running) < self.sides(job, stage).allowed();
        s.open && s.unstuck != Some(self.now) && (!self.is_ahead(job, stage) || allowed())
    }
    fn is_ahead(&self, job: JobId, stage: usize) -> bool {
        self.stage(job, stage).incoming.iter().any(|e| self.stage(job, e.from).counts.pending > 0)
    }
    fn locality(&self, job: JobId, stage: usize, rack: RackId) -> Option<Locality> {
        self.stage(job, stage).locality(&self.topology, rack, |h| self.slots.free_on(h))
    }
    fn nearest(&self, job: JobId, stage: usize, host: HostId) -> Option<(u32, Locality)> {
        self.stage(job, stage).nearest(&self.topology, host)
    }
    fn largest(&self, job: JobId, stage: usize) -> Option<u32> {
        self.stage(job, stage).largest()
    }
    fn blocks(&self, job: JobId, stage: usize) -> &[Block] {
        &self.stage(job, stage).blocks
    }
    fn running_in(&self, job: JobId, stage: usize, rack: RackId) -> u32 {
        self.stage(job, stage).running_in.get(rack.index()).copied().unwrap_or(0)
    }
    fn waiting_in(&self, job: JobId, stage: usize, rack: RackId) -> u32 {
        let s = self.stage(job, stage);
        s.waiting
            .iter()
            .filter(|&&k| self.topology.rack_of(s.tasks[k as usize].host) == rack)
            .count() as u32
    }
    fn output_in(&self, job: JobId, stage: usize, rack: RackId) -> u32 {
        self.stage(job, stage).output_in.get(rack.index()).copied().unwrap_or(0)
    }
    fn free(&self, rack: RackId) -> u32 {
        self.slots.free_in(rack)
    }
    fn slots(&self, rack: RackId) -> u32 {
        self.slots.slots_in(rack)
    }
    fn hosts_up(&self, rack: RackId) -> u32 {
        self.slots.hosts_up(rack)
    }
    fn hosts_open(&self) -> u32 {
        self.slots.hosts_open()
    }
    fn offers(&self) -> Offers {
        Offers { idle: self.idle, freed: self.slots.freed() }
    }
    fn is_up(&self, host: HostId) -> bool {
        self.slots.is_up(host)
    }
    fn free_on(&self, host: HostId) -> u32 {
        self.slots.free_on(host)
    }
    fn released(&self, rack: RackId, n: u32) -> Option<Time> {
        self.slots.released(rack, n, self.now)
    }
    fn releases(&self, rack: RackId) -> Vec<Time> {
        self.slots.releases(rack, self.now)
    }
    fn shuffling_into(&self, rack: RackId) -> Bytes {
        Bytes(self.inbound[rack.index()])
    }
    fn crossing(&self, rack: RackId) -> (Bytes, Bytes) {
        let (into, out) = self.between[rack.index()];
        (Bytes(into), Bytes(out))
    }
    fn inputs(&self, host: HostId) -> Box<dyn Iterator<Item = TaskInput> + '_> {
        Box::new(self.net.inputs(self.place(host)).map(|w| {
            let (job, stage) = (w.task.job, w.task.stage as usize);
            TaskInput {
                job,
                stage,
                task: w.task.task,
                left: w.left(),
                is_coming: w.is_coming(),
                coflow: self.coflow_size(job, stage),
            }
        }))
    }
    fn inputs_left(&self, host: HostId) -> Bytes {
        self.net.inputs_left(self.place(host))
    }
    fn flows_into(&self, host: HostId) -> Box<dyn Iterator<Item = FlowAt> + '_> {
        Box::new(self.net.flows_into(self.place(host)))
    }
    fn flows_out_of(&self, host: HostId) -> Box<dyn Iterator<Item = FlowAt> + '_> {
        Box::new(self.net.flows_out_of(self.place(host)))
    }
    fn receive_rate(&self, host: HostId) -> BitRate {
        let full = || self.topology.payload(self.topology.hosts[host.index()].nic);
        self.net.rate(self.place(host)).unwrap_or_else(full)
    }
    fn input_of(&self, job: JobId, stage: usize, task: u32) -> Bytes {
        let s = self.stage(job, stage);
        let shuffled: u64 = s
            .incoming
            .iter()
            .map(|e| e.spread.all_to(self.stage(job, e.from).tasks.len() as u32, task))
            .sum();
        Bytes(shuffled + self.block_of(job, stage, task))
    }
    fn input_from_afar(&self, job: JobId, stage: usize, task: u32, host: HostId) -> Bytes {
        Bytes(
            self.block_from_afar(job, stage, task, host)
                + self.shuffle_from_afar(job, stage, task, (host, None)),
        )
    }
    fn coflow_size(&self, job: JobId, stage: usize) -> Bytes {
        let shuffled: Bytes = self.stage(job, stage).incoming.iter().map(|e| e.bytes).sum();
        shuffled + Bytes(self.block_of(job, stage, 0) * self.net.readers(job, stage).max(1))
    }
    fn computing_time(&self, job: JobId, stage: usize, task: u32) -> Span {
        self.jobs[job].spec.stages[stage].times.of(task as usize)
    }
    fn order(&self, job: JobId) -> JobOrder {
        self.queues.order_of(job)
    }
    fn head(&self, job: JobId) -> Option<JobId> {
        self.queues.head(job)
    }
}
