//! Bytes that tasks wait for: reads of blocks that are elsewhere, and shuffles in rounds.

use std::collections::BTreeMap;

use super::TaskScheduler;
use crate::coflows::priority::Priorities;
use crate::coflows::{CoflowSpec, FlowSpec};
use crate::ids::{CoflowId, FlowId, HostId, JobId, RackId};
use crate::placement::policy::FetchStart;
use crate::scheduler::net::Begin;
use crate::scheduler::share::{Receivers, Senders, ShuffleSpread};
use crate::scheduler::stage::Doing;
use crate::scheduler::state::{SchedulerState, Transfer};
use crate::scheduler::{SchedulerAction, TaskRef};
use crate::units::Bytes;

/// Where flows go: a place, and the task there if each has flows of its own
/// ([`SchedulerState::end`]).
type ShuffleTarget = (HostId, u32);

/// Bytes by sending place and receiving end, in any order; a pair may be there more than once.
type TargetBytes = Vec<((HostId, ShuffleTarget), u64)>;

impl TaskScheduler {
    /// A task's output is ready: has the stages after it looked at if it is time for them to fetch.
    pub(super) fn look_after(&mut self, job: JobId, stage: usize) {
        let s = self.state.stage(job, stage);
        if s.is_done() || s.log.len().is_multiple_of(self.step(job, stage)) {
            let next: Vec<_> = s.outgoing.iter().map(|&to| (job, to)).collect();
            self.look.extend(next);
        }
    }

    /// Number of new outputs of a stage that are worth another round.
    fn step(&self, job: JobId, stage: usize) -> usize {
        (self.state.stage(job, stage).tasks.len() * self.state.settings.fetch_percent as usize)
            .div_ceil(100)
            .max(1)
    }

    /// Whether a task that has just received a round shall ask for the next.
    fn worth_a_round(&self, job: JobId, stage: usize, task: u32) -> bool {
        self.state.stage(job, stage).incoming.iter().any(|e| {
            let from = self.state.stage(job, e.from);
            let new = from.log.len() - e.cursor[task as usize] as usize;
            new > 0 && (from.is_done() || new >= self.step(job, e.from))
        })
    }

    /// Starts the reads of the tasks that got slots in this dispatch: one coflow a stage.
    pub(super) fn begin_reads(&mut self) {
        while let Some(((job, stage), tasks)) = self.reads.pop_first() {
            self.read(job, stage, tasks);
        }
    }

    fn read(&mut self, job: JobId, stage: usize, tasks: Vec<u32>) {
        let spec = &self.state.jobs[job].spec.stages[stage];
        let spread = ShuffleSpread::new(spec.input.0, spec.tasks, 1);
        let mut one = Receivers::default();
        spread.receive(&mut one, 0);
        let (mut pairs, mut to, mut from) =
            (TargetBytes::new(), BTreeMap::<ShuffleTarget, Vec<u32>>::new(), Vec::new());
        for k in tasks {
            let task = &self.state.stage(job, stage).tasks[k as usize];
            if task.doing != Doing::Fetching || !task.reading {
                continue;
            }
            let mut own = Senders::default();
            spread.send(&mut own, k);
            let source = self.source(job, stage, k);
            from.push(source);
            let there = self.state.end(job, stage, k);
            pairs.push(((self.state.place(source), there), spread.between(&own, &one)));
            to.entry(there).or_default().push(k);
        }
        self.send((job, stage, false), pairs, to, from, Vec::new());
    }

    /// The replica from which a task reads: one in its rack if there is one, else by the task's
    /// number. Where all are gone, the block is restored on a host that is up, by the task's
    /// number.
    fn source(&mut self, job: JobId, stage: usize, k: u32) -> HostId {
        let t = &self.state.topology;
        let s = self.state.stage(job, stage);
        let host = s.tasks[k as usize].host;
        let up: Vec<HostId> =
            s.blocks[k as usize].iter().copied().filter(|&h| self.state.slots.is_up(h)).collect();
        let near: Vec<HostId> =
            up.iter().copied().filter(|&h| t.rack_of(h) == t.rack_of(host)).collect();
        let choice = if near.is_empty() { &up } else { &near };
        if let Some(&h) = choice.get(k as usize % choice.len().max(1)) {
            return h;
        }
        let alive: Vec<HostId> =
            t.hosts.iter().map(|h| h.id).filter(|&h| self.state.slots.is_up(h)).collect();
        self.counters.blocks_restored += 1;
        alive[k as usize % alive.len()]
    }

    /// Looks at every stage whose waiting tasks may have something to fetch, and asks the policy.
    pub(super) fn begin_shuffles(&mut self) {
        while let Some((job, stage)) = self.look.pop_first() {
            self.holds.remove(&(job, stage));
            if self.state.stage(job, stage).waiting.is_empty() {
                continue;
            }
            match self.policy.shuffle(&self.state, job, stage) {
                FetchStart::Start => drop(self.fetch(job, stage, None)),
                FetchStart::Racks(racks, until) => {
                    self.fetch(job, stage, Some(&racks));
                    if !self.state.stage(job, stage).waiting.is_empty() {
                        self.holds.insert((job, stage), until);
                    }
                }
                FetchStart::Hold(until) => drop(self.holds.insert((job, stage), until)),
            }
        }
    }

    /// Waiting tasks of a stage (in these racks) fetch the outputs that are ready, if they are
    /// enough or all. Tasks that have everything compute. Returns whether anything happened.
    pub(super) fn fetch(&mut self, job: JobId, stage: usize, racks: Option<&[RackId]>) -> bool {
        let mut groups: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
        let mut complete = Vec::new();
        let s = self.state.stage(job, stage);
        for &k in &s.waiting {
            let there = self.state.topology.rack_of(s.tasks[k as usize].host);
            if self.state.has_all(job, stage, k) {
                complete.push(k);
            } else if racks.is_some_and(|r| !r.contains(&there)) {
                continue;
            } else {
                groups
                    .entry(s.incoming.iter().map(|e| e.cursor[k as usize]).collect())
                    .or_default()
                    .push(k);
            }
        }
        let upto: Vec<u32> =
            s.incoming.iter().map(|e| self.state.stage(job, e.from).log.len() as u32).collect();
        let (mut pairs, mut to, mut any) =
            (TargetBytes::new(), BTreeMap::<ShuffleTarget, Vec<u32>>::new(), !complete.is_empty());
        for (cursors, tasks) in groups {
            if cursors == upto {
                continue;
            }
            any = true;
            for (e, &cursor) in cursors.iter().enumerate() {
                add_pairs(&self.state, (job, stage, e), cursor, &tasks, &mut pairs);
            }
            for k in tasks {
                to.entry(self.state.end(job, stage, k)).or_default().push(k);
            }
        }
        for k in complete {
            self.state.stage_mut(job, stage).waiting.remove(&k);
            self.compute_if_ready(TaskRef { job, stage: stage as u32, task: k });
        }
        self.send((job, stage, true), pairs, to, Vec::new(), upto);
        any
    }

    /// Starts a coflow for waiting tasks. What needs no network is there at once.
    fn send(
        &mut self,
        what: (JobId, usize, bool),
        pairs: TargetBytes,
        to: BTreeMap<ShuffleTarget, Vec<u32>>,
        from: Vec<HostId>,
        upto: Vec<u32>,
    ) {
        let (job, stage, shuffle) = what;
        if to.is_empty() {
            return;
        }
        let mut transfer = Transfer {
            job,
            stage,
            shuffle,
            began: self.state.now,
            flows: Vec::new(),
            missing: 0,
            crossing: Vec::new(),
            to: to.into_iter().map(|(h, tasks)| (h, (0, tasks))).collect(),
            upto,
            from,
        };
        let (mut flows, mut begun) = (Vec::new(), Vec::new());
        for ((a, end), bytes) in summed(pairs).into_iter().filter(|p| p.0.0 != p.0.1.0 && p.1 > 0) {
            let b = end.0;
            flows.push(FlowSpec { from: a, to: b, bytes: Bytes(bytes) });
            let racks = (self.state.rack_of_place(a), self.state.rack_of_place(b));
            let crossing = if racks.0 == racks.1 { 0 } else { bytes };
            transfer.flows.push(Some(end));
            transfer.missing += 1;
            transfer.crossing.push((racks.0, racks.1, Bytes(crossing)));
            let waits = transfer.to.get_mut(&end).expect("flows go where tasks wait");
            waits.0 += 1;
            if self.state.net.needs.network {
                let counts = !self.state.net.needs.rack_local || crossing > 0;
                begun.push(Begin { from: a, to: b, bytes, counts, tasks: waits.1.clone() });
            }
            let account = &mut self.state.jobs[job].account;
            account.between_racks += Bytes(crossing);
            *(if shuffle { &mut account.shuffled } else { &mut account.read }) += Bytes(bytes);
            self.state.pass_between((racks.0, racks.1, Bytes(crossing)), shuffle, true);
        }
        self.mark(&transfer);
        let there: Vec<ShuffleTarget> =
            transfer.to.iter().filter(|d| d.1.0 == 0).map(|d| *d.0).collect();
        let ready: Vec<(ShuffleTarget, Vec<u32>)> = there
            .into_iter()
            .map(|h| (h, transfer.to.remove(&h).map(|d| d.1).unwrap_or_default()))
            .collect();
        let (upto, now) = (transfer.upto.clone(), self.state.now);
        if !flows.is_empty() {
            let id = self.new_coflow();
            let spec = &self.state.jobs[job].spec;
            let name = format!(
                "{}/{}{}",
                spec.name,
                spec.stages[stage].name,
                if shuffle { "" } else { "-reads" }
            );
            let types = if shuffle { spec.types_into(stage) } else { Default::default() };
            let all =
                self.policy.priority(&self.state, job, stage, flows.iter().map(|f| f.bytes).sum());
            let coflow = CoflowSpec {
                types,
                priorities: Priorities { all, flows: Vec::new() },
                ..CoflowSpec::new(id, name, now, flows)
            };
            self.actions.push_back(SchedulerAction::StartCoflow { coflow, job, stage, shuffle });
            self.state.net.began(id, (job, stage), now, begun);
            self.state.jobs[job].sending += 1;
            self.state.transfers.insert(id, transfer);
        }
        for (_, tasks) in ready {
            self.arrived(what, &tasks, &upto);
        }
    }

    /// The tasks of a transfer are on their way, and do not wait.
    fn mark(&mut self, t: &Transfer) {
        let now = self.state.now;
        for &k in t.to.values().flat_map(|d| &d.1) {
            self.state.foresee((t.job, t.stage, t.shuffle), k, Some(&t.upto));
        }
        let stage = self.state.stage_mut(t.job, t.stage);
        for &k in t.to.values().flat_map(|d| &d.1) {
            let task = &mut stage.tasks[k as usize];
            task.fetches = now;
            if t.shuffle {
                task.shuffling = true;
                stage.waiting.remove(&k);
            }
        }
        if t.shuffle && !t.flows.is_empty() {
            stage.shuffle.get_or_insert((now, now));
        }
    }

    /// Tasks have received what a transfer brought them.
    fn arrived(
        &mut self,
        (job, stage, shuffle): (JobId, usize, bool),
        tasks: &[u32],
        upto: &[u32],
    ) {
        for &k in tasks {
            if !shuffle {
                self.state.net.read(TaskRef { job, stage: stage as u32, task: k });
            }
            let s = self.state.stage_mut(job, stage);
            let task = &mut s.tasks[k as usize];
            if !shuffle {
                task.reading = false;
            } else {
                task.shuffling = false;
                s.waiting.insert(k);
                s.incoming.iter_mut().zip(upto).for_each(|(e, &u)| e.cursor[k as usize] = u);
                if self.state.has_all(job, stage, k) {
                    self.state.stage_mut(job, stage).waiting.remove(&k);
                } else if self.worth_a_round(job, stage, k) {
                    self.look.insert((job, stage));
                }
            }
            self.compute_if_ready(TaskRef { job, stage: stage as u32, task: k });
        }
    }

    pub(super) fn flow_finished(&mut self, id: CoflowId, flow: FlowId) {
        let now = self.state.now;
        let Some(t) = self.state.transfers.get_mut(&id) else { return };
        let Some(end) = t.flows.get_mut(flow.index()).and_then(Option::take) else { return };
        t.missing -= 1;
        self.state.net.flow_ended(id, flow, now);
        let crossing = t.crossing[flow.index()];
        let what = (t.job, t.stage, t.shuffle);
        let done = t.to.get_mut(&end).is_some_and(|d| {
            d.0 -= 1;
            d.0 == 0
        });
        let tasks = if done { t.to.remove(&end).map(|d| d.1) } else { None };
        let last = t.missing == 0 || t.to.is_empty();
        // Few flows are the last one of any task.
        let upto = if tasks.is_some() { t.upto.clone() } else { Vec::new() };
        self.state.pass_between(crossing, what.2, false);
        if what.2
            && let Some(s) = &mut self.state.stage_mut(what.0, what.1).shuffle
        {
            s.1 = now;
        }
        if last {
            self.state.net.closed(id, now);
            self.take_transfer(id);
        }
        self.arrived(what, &tasks.unwrap_or_default(), &upto);
    }

    pub(super) fn coflow_finished(&mut self, id: CoflowId) {
        let flows = self.state.transfers.get(&id).map_or(0, |t| t.flows.len());
        (0..flows).for_each(|k| self.flow_finished(id, FlowId::from(k)));
    }
}

/// Each pair once, in their order. O(pairs) if they are in it, as those of one shuffle are; else
/// O(pairs log pairs).
fn summed(mut pairs: TargetBytes) -> TargetBytes {
    if !pairs.is_sorted_by(|a, b| a.0 < b.0) {
        pairs.sort_by_key(|p| p.0);
        pairs.dedup_by(|next, sum| {
            let same = next.0 == sum.0;
            sum.1 += if same { next.1 } else { 0 };
            same
        });
    }
    pairs
}

/// Adds what the tasks, whose cursors are at `cursor`, have still to fetch of edge `e`.
fn add_pairs(
    state: &SchedulerState,
    (job, stage, e): (JobId, usize, usize),
    cursor: u32,
    tasks: &[u32],
    pairs: &mut TargetBytes,
) {
    let own = state.stage(job, stage);
    let edge = &own.incoming[e];
    let from = state.stage(job, edge.from);
    let mut receivers: BTreeMap<ShuffleTarget, Receivers> = BTreeMap::new();
    for &k in tasks {
        edge.spread.receive(receivers.entry(state.end(job, stage, k)).or_default(), k);
    }
    let mut senders: BTreeMap<HostId, Senders> = BTreeMap::new();
    for o in from.log[cursor as usize..].iter().filter(|o| !o.void) {
        if o.have.is_empty() {
            edge.spread.send(senders.entry(state.place(o.host)).or_default(), o.task);
            continue;
        }
        // After a failure, some receivers have this output already.
        let mut one = Senders::default();
        edge.spread.send(&mut one, o.task);
        for &k in tasks.iter().filter(|&&k| from.needed(o, (stage, k))) {
            let mut to = Receivers::default();
            edge.spread.receive(&mut to, k);
            pairs.push((
                (state.place(o.host), state.end(job, stage, k)),
                edge.spread.between(&one, &to),
            ));
        }
    }
    for (&a, s) in &senders {
        for (&b, r) in &receivers {
            pairs.push(((a, b), edge.spread.between(s, r)));
        }
    }
}
