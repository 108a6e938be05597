//! What is on its way: flows, the tasks that wait for them, and how fast hosts receive.
//!
//! Kept only under policies that ask for it ([`Needs::network`]). Everything that a flow adds (to
//! its two hosts, its coflow, its tasks) is taken off and put back when it changes, so that sums
//! are at hand. Memory is that of what is open.

use std::collections::{BTreeMap, BTreeSet};

use super::TaskRef;
use crate::ids::{CoflowId, FlowId, HostId, JobId};
use crate::placement::network::{FlowAt, Needs};
use crate::topology::Topology;
use crate::units::{BitRate, Bytes, Span, Time};

/// A flow that begins.
#[derive(Clone, Debug)]
pub struct Begin {
    /// From this place.
    pub from: HostId,
    /// To this one.
    pub to: HostId,
    /// Its bytes.
    pub bytes: u64,
    /// Whether they count as bytes over the network.
    pub counts: bool,
    /// The tasks that wait for it, all at `to`.
    pub tasks: Vec<u32>,
}

#[derive(Clone, Debug)]
struct ActiveFlow {
    from: HostId,
    to: HostId,
    /// Bytes in all, and those that have still to arrive.
    bytes: u64,
    left: u64,
    counts: bool,
    /// Places in [`Net::inputs`] of the tasks that wait for it and have bytes to come.
    inputs: Vec<u32>,
    /// Its only task, where each has flows of its own.
    task: Option<u32>,
    /// The strict priority that the network has; none yet.
    priority: Option<u8>,
}

/// A coflow on its way.
#[derive(Clone, Debug)]
struct CoflowOnItsWay {
    job: JobId,
    stage: usize,
    flows: Vec<ActiveFlow>,
}

/// A task with input to come over the network.
#[derive(Clone, Copy, Debug)]
pub struct WaitingTask {
    /// The task.
    pub task: TaskRef,
    /// Where it holds its slot.
    pub at: HostId,
    /// It reads its block over the network.
    reads: bool,
    /// Of its flows on their way: bytes that count.
    flying: u64,
    /// Of its block: bytes not yet asked for.
    block: u64,
    /// Of its shuffles: bytes not yet asked for, as far as they can be foreseen.
    shuffle: u64,
}

impl WaitingTask {
    /// Whether some of them are on their way.
    pub fn is_coming(&self) -> bool {
        self.flying > 0
    }

    /// Bytes that have still to come.
    pub fn left(&self) -> Bytes {
        Bytes(self.flying + self.block + self.shuffle)
    }
}

/// The kind of input that a task has still to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// Its block.
    Block,
    /// Its shuffles.
    Shuffle,
}

#[derive(Clone, Debug)]
struct PlaceBooks {
    /// Flows to it and from it.
    incoming: BTreeSet<(CoflowId, FlowId)>,
    outgoing: BTreeSet<(CoflowId, FlowId)>,
    /// Tasks here with bytes to come, in the order in which they got their slots.
    inputs: Vec<u32>,
    /// Bytes that they have still to get.
    inputs_left: u64,
    meter: ReceiveMeter,
}

/// The receive rate of a place: a moving average over the time in which something was on its way to
/// it.
#[derive(Clone, Copy, Debug)]
struct ReceiveMeter {
    full: BitRate,
    rate: BitRate,
    /// Bytes since the last sample, and the busy time that has ended in which they came.
    received: u64,
    busy: Span,
    /// Since when something is on its way.
    since: Time,
}

impl ReceiveMeter {
    /// Takes a sample if it was busy for at least `least` since the last one.
    fn sample(&mut self, now: Time, is_busy: bool, (least, percent): (Span, u32)) {
        let busy = self.busy + if is_busy { now.since(self.since) } else { Span::ZERO };
        if busy == Span::ZERO || busy < least {
            return;
        }
        let measured = u128::from(self.received) * 8_000_000_000 / u128::from(busy.0);
        let (new, old) = (u128::from(percent), u128::from(100 - percent.min(100)));
        let mean = (u128::from(self.rate.0) * old + measured * new) / 100;
        self.rate = BitRate(u64::try_from(mean).unwrap_or(u64::MAX).max(self.full.0 / 100).max(1));
        (self.received, self.busy, self.since) = (0, Span::ZERO, now);
    }
}

/// The books of the network, by place: hosts, or racks where flows go between racks as wholes.
#[derive(Clone, Debug)]
pub struct Net {
    /// What the policy asked for.
    pub needs: Needs,
    open: BTreeMap<CoflowId, CoflowOnItsWay>,
    places: Vec<PlaceBooks>,
    inputs: Vec<Option<WaitingTask>>,
    spare: Vec<u32>,
    by_task: BTreeMap<TaskRef, u32>,
    /// By stage: tasks that read their block over the network.
    readers: BTreeMap<(JobId, usize), u64>,
    told: Option<Time>,
    /// Places whose inputs or flows into them have changed since this was asked last.
    touched: BTreeSet<HostId>,
}

impl Net {
    /// Nothing on its way. Rates begin at what a host's NIC can carry of payload.
    pub fn new(t: &Topology, needs: Needs) -> Self {
        let place = |k: usize| {
            let full = t.payload(t.hosts.get(k).map_or(BitRate(1), |h| h.nic));
            let meter =
                ReceiveMeter { full, rate: full, received: 0, busy: Span::ZERO, since: Time::ZERO };
            PlaceBooks {
                incoming: BTreeSet::new(),
                outgoing: BTreeSet::new(),
                inputs: Vec::new(),
                inputs_left: 0,
                meter,
            }
        };
        let n = if needs.network { t.hosts.len().max(t.rack_count()) } else { 0 };
        Self {
            needs,
            open: BTreeMap::new(),
            places: (0..n).map(place).collect(),
            inputs: Vec::new(),
            spare: Vec::new(),
            by_task: BTreeMap::new(),
            readers: BTreeMap::new(),
            told: None,
            touched: BTreeSet::new(),
        }
    }

    /// Whether it is time to ask the network how far flows are.
    pub fn is_due(&self, now: Time) -> bool {
        !self.open.is_empty() && self.told.is_none_or(|t| now >= t + self.needs.sample)
    }

    /// A task got its slot, with bytes of its block and its shuffles still to come; without any it
    /// is no matter of the network.
    pub fn started(&mut self, task: TaskRef, at: HostId, block: u64, shuffle: u64) {
        if !self.needs.network || block + shuffle == 0 {
            return;
        }
        let w = WaitingTask { task, at, reads: block > 0, flying: 0, block, shuffle };
        let k = self.spare.pop().unwrap_or_else(|| {
            self.inputs.push(None);
            self.inputs.len() as u32 - 1
        });
        self.inputs[k as usize] = Some(w);
        self.by_task.insert(task, k);
        let place = &mut self.places[at.index()];
        place.inputs.push(k);
        place.inputs_left += block + shuffle;
        self.touched.insert(at);
        if block > 0 {
            *self.readers.entry((task.job, task.stage as usize)).or_default() += 1;
        }
    }

    /// A task waits for nothing any more, or was given up. O(log tasks); of one whose flows are on
    /// their way, O(flows into its place).
    pub fn left(&mut self, task: TaskRef) {
        self.read(task);
        let Some(k) = self.by_task.remove(&task) else { return };
        let WaitingTask { at, flying, .. } = self.inputs[k as usize].expect("listed by its task");
        // Flows that have arrived know their tasks no more.
        let flows: Vec<(CoflowId, FlowId)> = match flying > 0 || !self.needs.flows_by_task {
            true => self.places[at.index()].incoming.iter().copied().collect(),
            false => Vec::new(),
        };
        for (id, flow) in flows {
            if self.open[&id].flows[flow.index()].inputs.contains(&k) {
                self.change(id, flow, |f| f.inputs.retain(|&i| i != k));
            }
        }
        let w = self.inputs[k as usize].take().expect("listed by its task");
        let place = &mut self.places[at.index()];
        place.inputs_left -= w.left().0;
        place.inputs.retain(|&i| i != k);
        self.spare.push(k);
        self.touched.insert(at);
    }

    /// A task has read its block, if it had to.
    pub fn read(&mut self, task: TaskRef) {
        let waiting = self.by_task.get(&task).and_then(|&k| self.inputs[k as usize].as_mut());
        if !waiting.is_some_and(|w| std::mem::take(&mut w.reads)) {
            return;
        }
        let key = (task.job, task.stage as usize);
        if let Some(n) = self.readers.get_mut(&key) {
            *n -= 1;
            if *n == 0 {
                self.readers.remove(&key);
            }
        }
    }

    /// Tasks of a stage that read their block over the network.
    pub fn readers(&self, job: JobId, stage: usize) -> u64 {
        self.readers.get(&(job, stage)).copied().unwrap_or(0)
    }

    /// Sets the bytes of a part that a task has still to ask for.
    pub fn to_come(&mut self, task: TaskRef, part: InputKind, bytes: u64) {
        let Some(w) = self.by_task.get(&task).and_then(|&k| self.inputs[k as usize].as_mut())
        else {
            return;
        };
        let old = std::mem::replace(
            if part == InputKind::Block { &mut w.block } else { &mut w.shuffle },
            bytes,
        );
        let sum = &mut self.places[w.at.index()].inputs_left;
        *sum = *sum + bytes - old;
    }

    /// A coflow begins. O(flows log).
    pub fn began(
        &mut self,
        id: CoflowId,
        (job, stage): (JobId, usize),
        now: Time,
        flows: Vec<Begin>,
    ) {
        if !self.needs.network {
            return;
        }
        let task_of = |task: &u32| {
            self.by_task.get(&TaskRef { job, stage: stage as u32, task: *task }).copied()
        };
        let by_task = self.needs.flows_by_task;
        let list = flows.iter().map(|f| ActiveFlow {
            from: f.from,
            to: f.to,
            bytes: f.bytes,
            left: 0,
            counts: f.counts,
            inputs: f.tasks.iter().filter_map(task_of).collect(),
            task: f.tasks.first().copied().filter(|_| by_task),
            priority: None,
        });
        let open = CoflowOnItsWay { job, stage, flows: list.collect() };
        self.open.insert(id, open);
        for (k, f) in flows.into_iter().enumerate() {
            self.touched.insert(f.to);
            let to = &mut self.places[f.to.index()];
            if to.incoming.is_empty() {
                to.meter.since = now;
            }
            to.incoming.insert((id, k.into()));
            self.places[f.from.index()].outgoing.insert((id, k.into()));
            self.change(id, k.into(), |flow| flow.left = f.bytes);
        }
    }

    /// Changes a flow, and every sum that it is part of.
    fn change(&mut self, id: CoflowId, flow: FlowId, f: impl FnOnce(&mut ActiveFlow)) {
        let Self { open, places, inputs, .. } = self;
        let Some(o) = open.get_mut(&id) else { return };
        let flow = &mut o.flows[flow.index()];
        change(places, inputs, flow, f);
    }

    /// A flow has arrived, all of it.
    pub fn flow_ended(&mut self, id: CoflowId, flow: FlowId, now: Time) {
        let Some(f) = self.open.get(&id).and_then(|o| o.flows.get(flow.index())) else { return };
        let (from, to, left) = (f.from, f.to, f.left);
        self.places[to.index()].meter.received += left;
        self.drop_flow(id, flow, (from, to), now);
    }

    fn drop_flow(&mut self, id: CoflowId, flow: FlowId, (from, to): (HostId, HostId), now: Time) {
        self.change(id, flow, |f| {
            f.left = 0;
            f.inputs.clear();
        });
        self.places[from.index()].outgoing.remove(&(id, flow));
        let to = &mut self.places[to.index()];
        if to.incoming.remove(&(id, flow)) && to.incoming.is_empty() {
            to.meter.busy += now.since(to.meter.since);
            to.meter.since = now;
        }
    }

    /// A coflow is over, or was taken back with what it had still to send.
    pub fn closed(&mut self, id: CoflowId, now: Time) {
        let ends =
            self.open.get(&id).into_iter().flat_map(|o| o.flows.iter().map(|f| (f.from, f.to)));
        for (k, ends) in ends.collect::<Vec<_>>().into_iter().enumerate() {
            self.drop_flow(id, k.into(), ends, now);
        }
        self.open.remove(&id);
    }

    /// Word of the network: bytes that flows have still to send, in the order of coflow and flow.
    /// Takes samples of the rates. O(flows + coflows log + hosts).
    pub fn progress(&mut self, left: &[(CoflowId, FlowId, Bytes)], now: Time) {
        let Self { open, places, inputs, .. } = self;
        for flows in left.chunk_by(|a, b| a.0 == b.0) {
            let Some(o) = open.get_mut(&flows[0].0) else { continue };
            for &(_, flow, bytes) in flows {
                let Some(f) = o.flows.get_mut(flow.index()).filter(|f| bytes.0 < f.left) else {
                    continue;
                };
                places[f.to.index()].meter.received += f.left - bytes.0;
                change(places, inputs, f, |f| f.left = bytes.0);
            }
        }
        let how = (self.needs.sample, self.needs.ema_percent);
        for p in &mut self.places {
            let busy = !p.incoming.is_empty();
            p.meter.sample(now, busy, how);
        }
        self.told = Some(now);
    }

    /// Every place with tasks that have bytes to come counts as changed.
    pub fn touch_all(&mut self) {
        let busy = self.places.iter().enumerate().filter(|(_, p)| !p.inputs.is_empty());
        self.touched.extend(busy.map(|(k, _)| HostId::from(k)));
    }

    /// Places whose tasks with bytes to come, or flows into them, have changed since the last call.
    pub fn take_touched(&mut self) -> BTreeSet<HostId> {
        std::mem::take(&mut self.touched)
    }

    /// Of these priorities of flows on their way, those that the network was not told yet, by
    /// coflow and flow; from now on it was.
    pub fn prioritised(
        &mut self,
        flows: Vec<(CoflowId, FlowId, u8)>,
    ) -> BTreeMap<CoflowId, Vec<(FlowId, u8)>> {
        let mut new: BTreeMap<CoflowId, Vec<(FlowId, u8)>> = BTreeMap::new();
        for (id, flow, priority) in flows {
            let open = self
                .open
                .get_mut(&id)
                .and_then(|o| o.flows.get_mut(flow.index()))
                .filter(|f| f.left > 0);
            if open.is_some_and(|f| f.priority.replace(priority) != Some(priority)) {
                new.entry(id).or_default().push((flow, priority));
            }
        }
        new.values_mut().for_each(|flows| flows.sort_unstable());
        new
    }

    /// Tasks at a place with bytes to come, in the order in which they got their slots.
    pub fn inputs(&self, place: HostId) -> impl Iterator<Item = &WaitingTask> + '_ {
        let own = self.places.get(place.index()).into_iter().flat_map(|p| &p.inputs);
        own.filter_map(|&k| self.inputs[k as usize].as_ref())
    }

    /// Bytes that they have still to get.
    pub fn inputs_left(&self, place: HostId) -> Bytes {
        Bytes(self.places.get(place.index()).map_or(0, |p| p.inputs_left))
    }

    /// Flows into a place, in the order of coflow and flow.
    pub fn flows_into(&self, place: HostId) -> impl Iterator<Item = FlowAt> + '_ {
        let own = self.places.get(place.index()).into_iter().flat_map(|p| &p.incoming);
        own.map(|&key| self.flow(key))
    }

    /// Flows out of a place, in the order of coflow and flow.
    pub fn flows_out_of(&self, place: HostId) -> impl Iterator<Item = FlowAt> + '_ {
        let own = self.places.get(place.index()).into_iter().flat_map(|p| &p.outgoing);
        own.map(|&key| self.flow(key))
    }

    fn flow(&self, (coflow, flow): (CoflowId, FlowId)) -> FlowAt {
        let o = &self.open[&coflow];
        let f = &o.flows[flow.index()];
        FlowAt {
            coflow,
            flow,
            job: o.job,
            stage: o.stage,
            left: Bytes(f.left),
            sent: Bytes(f.bytes - f.left),
            counts: f.counts,
            task: f.task,
        }
    }

    /// Whether nothing is on its way.
    #[cfg(test)]
    pub fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// How fast a place receives; `None` without books.
    pub fn rate(&self, place: HostId) -> Option<BitRate> {
        self.places.get(place.index()).map(|p| p.meter.rate)
    }

    /// All sums again from single flows, against those at hand: a check for tests.
    #[cfg(test)]
    pub fn check(&self) {
        let mut flying = BTreeMap::<u32, u64>::new();
        for (k, p) in self.places.iter().enumerate() {
            let place = HostId::from(k);
            assert_eq!(
                p.inputs_left,
                self.inputs(place).map(|w| w.left().0).sum::<u64>(),
                "{place}"
            );
        }
        for o in self.open.values() {
            for f in o.flows.iter().filter(|f| f.counts) {
                let n = f.inputs.len() as u64;
                f.inputs
                    .iter()
                    .zip(0..)
                    .for_each(|(&k, i)| *flying.entry(k).or_default() += share(f.left, n, i));
            }
        }
        for (&task, &k) in &self.by_task {
            let w = self.inputs[k as usize].unwrap();
            assert_eq!((w.task, w.flying), (task, flying.get(&k).copied().unwrap_or(0)));
        }
        assert_eq!(self.inputs.iter().flatten().count(), self.by_task.len());
    }
}

/// Of `n` that share `left` evenly, what the i-th has.
fn share(left: u64, n: u64, i: u64) -> u64 {
    left / n + u64::from(i < left % n)
}

/// Changes a flow, and every sum that it is part of. O(its tasks).
fn change(
    places: &mut [PlaceBooks],
    inputs: &mut [Option<WaitingTask>],
    flow: &mut ActiveFlow,
    f: impl FnOnce(&mut ActiveFlow),
) {
    let mut book = |flow: &ActiveFlow, add: bool| {
        let put = |sum: &mut u64, n: u64| *sum = if add { *sum + n } else { *sum - n };
        if !flow.counts {
            return;
        }
        let n = flow.inputs.len() as u64;
        for (i, &k) in flow.inputs.iter().enumerate() {
            let Some(w) = &mut inputs[k as usize] else { continue };
            let own = share(flow.left, n, i as u64);
            put(&mut w.flying, own);
            put(&mut places[w.at.index()].inputs_left, own);
        }
    };
    book(flow, false);
    f(flow);
    book(flow, true);
}
