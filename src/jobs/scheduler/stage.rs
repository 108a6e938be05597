//! The books of one stage: what each task does and where, which tasks wait near which block, and
//! where outputs are.
//!
//! Everything about a task is an entry of a vector by its number in the stage, so that a stage of
//! ten thousand tasks is a few flat arrays. Lists of pending tasks may name tasks that have started
//! since; they are skipped when a task is taken.

use std::collections::{BTreeMap, BTreeSet};

use super::share::ShuffleSpread;
use crate::ids::{HostId, RackId};
use crate::placement::policy::{Block, Locality, StageCounts};
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};
use crate::workload::jobs::JobSpec;

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Waits for a slot.
    Pending,
    /// Holds a slot and waits for its input.
    Fetching,
    /// Computes.
    Computing,
    /// Has finished.
    Finished,
}

/// A task in the cluster.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// What it does.
    pub doing: Doing,
    /// Where it runs or ran.
    pub host: HostId,
    /// Slot of the host in which it runs.
    pub slot: u32,
    /// How often it has started.
    pub attempt: u32,
    /// How near to its block it runs.
    pub near: Locality,
    /// When it got its slot.
    pub started: Time,
    /// When it last began to fetch.
    pub fetches: Time,
    /// When it began to compute, with all its input.
    pub computes: Time,
    /// When its slot is expected to become free.
    pub eta: Time,
    /// Whether its block is still to be read over the network.
    pub reading: bool,
    /// Whether it is part of a shuffle coflow that is on its way.
    pub shuffling: bool,
    /// Whether its output was lost while no receiver needed it.
    pub output_lost: bool,
}

/// The output of one finished task, in the order of finishing.
#[derive(Clone, Debug)]
pub struct TaskOutput {
    /// The task.
    pub task: u32,
    /// The host that has it.
    pub host: HostId,
    /// Whether it is lost.
    pub void: bool,
    /// After a rerun: receivers (stage, task) that have fetched an earlier copy.
    pub have: Vec<(usize, u32)>,
}

/// One shuffle into the stage.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// The sending stage.
    pub from: usize,
    /// How much each sender sends to each receiver.
    pub spread: ShuffleSpread,
    /// All its bytes.
    pub bytes: Bytes,
    /// The least that a task gets of them.
    pub least: u64,
    /// By task: how much of the sender's list of outputs it has fetched.
    pub cursor: Vec<u32>,
}

/// Pending tasks that have a block on a host.
#[derive(Clone, Debug)]
struct LocalTasks {
    host: HostId,
    count: u32,
    tasks: Vec<u32>,
}

/// The books of one stage.
#[derive(Clone, Debug, Default)]
pub struct Stage {
    /// The tasks, by number.
    pub tasks: Vec<Task>,
    /// Numbers of its tasks by what they do.
    pub counts: StageCounts,
    /// How long a task computes, in the mean.
    pub mean: Span,
    /// Whether its tasks may get slots.
    pub open: bool,
    /// Since when they may.
    pub opened: Time,
    /// When a slot was last taken from one of its tasks, since nothing moved. At that instant it
    /// gets none.
    pub unstuck: Option<Time>,
    /// By task; empty if it reads none.
    pub blocks: Vec<Block>,
    /// Shuffles that it waits for.
    pub incoming: Vec<Incoming>,
    /// Stages that wait for its output.
    pub outgoing: Vec<usize>,
    /// Outputs in the order in which their tasks finished.
    pub log: Vec<TaskOutput>,
    /// By task that runs again: the receivers that had its output.
    pub had: BTreeMap<u32, Vec<(usize, u32)>>,
    /// Tasks that hold a slot, have not all their shuffle and fetch nothing now.
    pub waiting: BTreeSet<u32>,
    /// By rack: tasks that hold a slot.
    pub running_in: Vec<u32>,
    /// By rack: number of outputs there.
    pub output_in: Vec<u32>,
    /// By host that has any: number of outputs there.
    pub output_on: BTreeMap<HostId, u32>,
    /// When its shuffle's first flow began and its last one ended.
    pub shuffle: Option<(Time, Time)>,
    any: Vec<u32>,
    /// Tasks by the input that they get from shuffles, the most first; those before `first` are not
    /// pending.
    by_input: Vec<u32>,
    first: usize,
    near: Vec<LocalTasks>,
    in_rack: Vec<(u32, Vec<u32>)>,
}

impl Stage {
    /// Stage `s` of a job, nothing started, no block placed.
    pub fn new(job: &JobSpec, s: usize, racks: usize) -> Self {
        let n = job.stages[s].tasks;
        let task = Task {
            doing: Doing::Pending,
            host: HostId(0),
            slot: 0,
            attempt: 0,
            near: Locality::Host,
            started: Time::ZERO,
            fetches: Time::ZERO,
            computes: Time::ZERO,
            eta: Time::ZERO,
            reading: false,
            shuffling: false,
            output_lost: false,
        };
        let incoming: Vec<Incoming> = job
            .edges_into(s)
            .map(|e| {
                let senders = job.stages[e.from].tasks;
                let spread = match e.by_receiver() {
                    None => ShuffleSpread::new(e.bytes.0, senders, n),
                    Some(bytes) => ShuffleSpread::by_receiver(&bytes, senders),
                };
                let least = (0..n).map(|k| spread.all_to(senders, k)).min().unwrap_or(0);
                Incoming {
                    from: e.from,
                    spread,
                    bytes: e.bytes,
                    least,
                    cursor: vec![0; n as usize],
                }
            })
            .collect();
        Self {
            tasks: vec![task; n as usize],
            counts: StageCounts { pending: n, ..StageCounts::default() },
            mean: Span(job.stages[s].times.total(n).0 / u64::from(n.max(1))),
            open: false,
            opened: Time::ZERO,
            unstuck: None,
            blocks: Vec::new(),
            by_input: by_input(&incoming, job, n),
            first: 0,
            incoming,
            outgoing: job.edges.iter().filter(|e| e.from == s).map(|e| e.to).collect(),
            log: Vec::new(),
            had: BTreeMap::new(),
            waiting: BTreeSet::new(),
            running_in: vec![0; racks],
            output_in: vec![0; racks],
            output_on: BTreeMap::new(),
            shuffle: None,
            any: (0..n).rev().collect(),
            near: Vec::new(),
            in_rack: Vec::new(),
        }
    }

    /// Takes note of where its blocks are. O(blocks log hosts).
    pub fn place(&mut self, blocks: Vec<Block>, t: &Topology) {
        self.in_rack = vec![(0, Vec::new()); if blocks.is_empty() { 0 } else { t.rack_count() }];
        let mut pairs: Vec<(HostId, u32)> = Vec::with_capacity(blocks.len() * 3);
        for (k, b) in blocks.iter().enumerate().rev() {
            pairs.extend(b.iter().map(|&h| (h, k as u32)));
            racks_of(b, t, |r| {
                self.in_rack[r.index()].0 += 1;
                self.in_rack[r.index()].1.push(k as u32);
            });
        }
        pairs.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        for group in pairs.chunk_by(|a, b| a.0 == b.0) {
            let tasks: Vec<u32> = group.iter().map(|p| p.1).collect();
            self.near.push(LocalTasks { host: group[0].0, count: tasks.len() as u32, tasks });
        }
        self.blocks = blocks;
    }

    /// Hosts of a rack that hold a pending task's block.
    fn near_in(&self, t: &Topology, rack: RackId) -> &[LocalTasks] {
        let r = &t.racks[rack.index()];
        let of = |h: u32| self.near.partition_point(|n| n.host.0 < h);
        &self.near[of(r.first_host.0)..of(r.first_host.0 + r.hosts)]
    }

    /// Of the rack's hosts that hold a pending task's block, the one with the most free slots.
    pub fn best_host(
        &self,
        t: &Topology,
        rack: RackId,
        free: impl Fn(HostId) -> u32,
    ) -> Option<HostId> {
        let open = self
            .near_in(t, rack)
            .iter()
            .filter(|n| n.count > 0)
            .map(|n| (free(n.host), std::cmp::Reverse(n.host)));
        open.max().filter(|b| b.0 > 0).map(|b| b.1.0)
    }

    /// How near a pending task would run on a free slot of the rack.
    pub fn locality(
        &self,
        t: &Topology,
        rack: RackId,
        free: impl Fn(HostId) -> u32,
    ) -> Option<Locality> {
        match () {
            () if self.counts.pending == 0 => None,
            () if self.blocks.is_empty()
                || self.near_in(t, rack).iter().any(|n| n.count > 0 && free(n.host) > 0) =>
            {
                Some(Locality::Host)
            }
            () if self.in_rack[rack.index()].0 > 0 => Some(Locality::Rack),
            () => Some(Locality::Remote),
        }
    }

    /// The task that [`Self::take`] would take for a host, and how near it would run.
    pub fn nearest(&self, t: &Topology, host: HostId) -> Option<(u32, Locality)> {
        let pending = |list: &Vec<u32>| {
            list.iter().rev().copied().find(|&k| self.tasks[k as usize].doing == Doing::Pending)
        };
        let at = self
            .near
            .binary_search_by_key(&host, |n| n.host)
            .ok()
            .filter(|&i| self.near[i].count > 0);
        let in_rack = self.in_rack.get(t.rack_of(host).index()).filter(|r| r.0 > 0);
        let far = if self.blocks.is_empty() { Locality::Host } else { Locality::Remote };
        let local = at.and_then(|i| pending(&self.near[i].tasks)).map(|k| (k, Locality::Host));
        let near = || in_rack.and_then(|r| pending(&r.1)).map(|k| (k, Locality::Rack));
        local.or_else(near).or_else(|| pending(&self.any).map(|k| (k, far)))
    }

    /// The pending task with the most input from shuffles, the first among equals.
    pub fn largest(&self) -> Option<u32> {
        self.by_input[self.first..]
            .iter()
            .copied()
            .find(|&k| self.tasks[k as usize].doing == Doing::Pending)
    }

    /// Notes that a task has started: [`Self::largest`] and [`Self::nearest`] need not look at
    /// those at the ends of their lists again. O(1) amortised.
    pub fn pass_started(&mut self) {
        let pending = |k: u32| self.tasks[k as usize].doing == Doing::Pending;
        let first = self.by_input[self.first..].iter().take_while(|&&k| !pending(k)).count();
        let last = self.any.iter().rev().take_while(|&&k| !pending(k)).count();
        self.first += first;
        self.any.truncate(self.any.len() - last);
    }

    /// Takes a pending task for `host`: one whose block it holds, else one of the rack, else the
    /// first.
    ///
    /// # Panics
    /// If none is pending.
    pub fn take(&mut self, t: &Topology, host: HostId) -> (u32, Locality) {
        let tasks = &self.tasks;
        let pending = |list: &mut Vec<u32>| -> Option<u32> {
            while let Some(k) = list.pop() {
                if tasks[k as usize].doing == Doing::Pending {
                    return Some(k);
                }
            }
            None
        };
        let at = self
            .near
            .binary_search_by_key(&host, |n| n.host)
            .ok()
            .filter(|&i| self.near[i].count > 0);
        let rack = t.rack_of(host).index();
        let local = at.and_then(|i| pending(&mut self.near[i].tasks)).map(|k| (k, Locality::Host));
        let in_rack = self.in_rack.get_mut(rack).filter(|r| r.0 > 0);
        let (k, near) = local
            .or_else(|| in_rack.and_then(|r| pending(&mut r.1)).map(|k| (k, Locality::Rack)))
            .or_else(|| {
                pending(&mut self.any).map(|k| {
                    (k, if self.blocks.is_empty() { Locality::Host } else { Locality::Remote })
                })
            })
            .expect("a task is pending");
        self.count_blocks(t, k, false);
        (k, near)
    }

    /// Takes this task for `host`; `None` if it is not pending.
    pub fn take_task(&mut self, t: &Topology, host: HostId, k: u32) -> Option<(u32, Locality)> {
        self.tasks.get(k as usize).filter(|task| task.doing == Doing::Pending)?;
        let near = match self.blocks.get(k as usize) {
            None => Locality::Host,
            Some(b) if b.contains(&host) => Locality::Host,
            Some(b) if b.iter().any(|&h| t.rack_of(h) == t.rack_of(host)) => Locality::Rack,
            Some(_) => Locality::Remote,
        };
        self.count_blocks(t, k, false);
        Some((k, near))
    }

    /// Puts a task back among the pending ones.
    pub fn put_back(&mut self, t: &Topology, k: u32) {
        self.any.push(k);
        self.first = 0;
        self.count_blocks(t, k, true);
        let Some(block) = self.blocks.get(k as usize) else { return };
        for h in block {
            if let Ok(i) = self.near.binary_search_by_key(h, |n| n.host) {
                self.near[i].tasks.push(k);
            }
        }
        racks_of(block, t, |r| self.in_rack[r.index()].1.push(k));
    }

    fn count_blocks(&mut self, t: &Topology, k: u32, more: bool) {
        let change = |n: &mut u32| *n = if more { *n + 1 } else { *n - 1 };
        let Some(block) = self.blocks.get(k as usize) else { return };
        for h in block {
            let i = self
                .near
                .binary_search_by_key(h, |n| n.host)
                .expect("every block's host has a list");
            change(&mut self.near[i].count);
        }
        racks_of(block, t, |r| change(&mut self.in_rack[r.index()].0));
    }

    /// Forgets what only tasks that may run again need: its job has finished. What was done, and by
    /// which tasks, stays.
    pub fn retire(&mut self) {
        let Self { tasks, counts, open, opened, shuffle, .. } = self;
        let (tasks, counts, open, opened, shuffle) =
            (std::mem::take(tasks), *counts, *open, *opened, *shuffle);
        *self = Self { tasks, counts, open, opened, shuffle, ..Self::default() };
    }

    /// Whether a receiver still needs an output of this stage.
    pub fn needed(&self, output: &TaskOutput, receiver: (usize, u32)) -> bool {
        !output.void && !output.have.contains(&receiver)
    }

    /// Whether all tasks have finished, and none must run again.
    pub fn is_done(&self) -> bool {
        self.counts.finished == self.tasks.len() as u32
    }
}

/// Tasks by the input that they get from shuffles, the most first, the first among equals. O(tasks
/// log tasks).
fn by_input(incoming: &[Incoming], job: &JobSpec, tasks: u32) -> Vec<u32> {
    let input = |k: u32| -> u64 {
        incoming.iter().map(|e| e.spread.all_to(job.stages[e.from].tasks, k)).sum()
    };
    let mut all: Vec<u32> = (0..tasks).collect();
    all.sort_by_cached_key(|&k| std::cmp::Reverse(input(k)));
    all
}

/// Calls `f` once for every rack that holds a replica.
fn racks_of(block: &Block, t: &Topology, mut f: impl FnMut(RackId)) {
    for (i, &h) in block.iter().enumerate() {
        let r = t.rack_of(h);
        if block[..i].iter().all(|&g| t.rack_of(g) != r) {
            f(r);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BitRate;
    use crate::workload::jobs::{StageSpec, TaskTimes};

    fn stage() -> (Stage, Topology) {
        let t = Topology::uniform("t", 3, 2, BitRate(8), BitRate(8), vec![]);
        let map = StageSpec {
            name: "map".into(),
            tasks: 3,
            times: TaskTimes::Even(Span(1)),
            input: Bytes(3),
            output: Bytes(0),
            streams: false,
        };
        let none = StageSpec { tasks: 0, ..map.clone() };
        let mut s = Stage::new(&JobSpec::map_reduce("j", Time(0), map, none, Bytes(0)), 0, 3);
        // Hosts 0, 1 are rack 0; 2, 3 rack 1; 4, 5 rack 2.
        let b = |hosts: &[u32]| hosts.iter().map(|&h| HostId(h)).collect();
        s.place(vec![b(&[0, 2, 3]), b(&[1, 2, 3]), b(&[0, 1, 2])], &t);
        (s, t)
    }

    fn start(s: &mut Stage, t: &Topology, host: u32) -> (u32, Locality) {
        let (k, near) = s.take(t, HostId(host));
        s.tasks[k as usize].doing = Doing::Computing;
        s.counts.pending -= 1;
        (k, near)
    }

    #[test]
    fn tasks_go_to_their_blocks_then_to_their_racks_then_anywhere() {
        let (mut s, t) = stage();
        let all = |_| 1;
        assert_eq!(s.locality(&t, RackId(0), all), Some(Locality::Host));
        assert_eq!(s.locality(&t, RackId(2), all), Some(Locality::Remote));
        assert_eq!(s.locality(&t, RackId(1), |h| u32::from(h == HostId(3))), Some(Locality::Host));
        assert_eq!(s.best_host(&t, RackId(0), |h| h.0 + 1), Some(HostId(1)));
        assert_eq!(start(&mut s, &t, 0), (0, Locality::Host));
        assert_eq!(start(&mut s, &t, 5), (1, Locality::Remote));
        assert_eq!(s.locality(&t, RackId(1), |h| u32::from(h == HostId(3))), Some(Locality::Rack));
        assert_eq!(start(&mut s, &t, 3), (2, Locality::Rack));
        assert_eq!(s.locality(&t, RackId(1), all), None);
    }

    #[test]
    fn what_is_put_back_is_found_again_once() {
        let (mut s, t) = stage();
        let (k, _) = start(&mut s, &t, 0);
        s.tasks[k as usize].doing = Doing::Pending;
        s.counts.pending += 1;
        s.put_back(&t, k);
        let taken: Vec<u32> = (0..3).map(|_| start(&mut s, &t, 2).0).collect();
        let mut sorted = taken.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2]);
        assert!((0..3).all(|r| s.in_rack[r].0 == 0) && s.near.iter().all(|n| n.count == 0));
    }
}
