//! What tasks write for good: before a task whose stage has an output is done, HDFS has copied its
//! part to two other hosts.
//!
//! As Hadoop's pipeline has it, the first copy stays on the task's host, one goes to a host of
//! another rack, and that host sends one to a neighbour. The task holds its slot meanwhile. The
//! scheduler knows nothing of this: to it, the task computes longer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::coflows::{CoflowSpec, FlowSpec};
use crate::ids::{CoflowId, HostId};
use crate::placement::hdfs;
use crate::scheduler::state::Grain;
use crate::scheduler::{SchedulerEvent, TaskRef};
use crate::topology::Topology;
use crate::units::{Bytes, Time};
use crate::workload::jobs::JobSpec;

/// The number of the first coflow that writes; the scheduler counts its own from zero.
const FIRST: u32 = 1 << 30;

/// One attempt of a task.
type TaskAttempt = (TaskRef, u32);

/// The writes of a run.
pub struct Writes<'a> {
    jobs: &'a [JobSpec],
    topology: Arc<Topology>,
    grain: Grain,
    seed: u64,
    /// Where tasks run that have not ended.
    hosts: BTreeMap<TaskRef, HostId>,
    down: BTreeSet<HostId>,
    begun: u32,
    /// By coflow: whose it is, and how many of its flows are on their way.
    flying: BTreeMap<CoflowId, (TaskAttempt, usize)>,
}

impl<'a> Writes<'a> {
    /// None yet. `jobs` by number; `seed` decides where copies go.
    pub fn new(jobs: &'a [JobSpec], topology: Arc<Topology>, grain: Grain, seed: u64) -> Self {
        let (hosts, down, flying) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        Self { jobs, topology, grain, seed, hosts, down, begun: 0, flying }
    }

    /// Whether a coflow is one of these.
    pub fn has(coflow: CoflowId) -> bool {
        coflow.0 >= FIRST
    }

    /// A task has got a slot of this host.
    pub fn started(&mut self, task: TaskRef, host: HostId) {
        self.hosts.insert(task, host);
    }

    /// Takes note of hosts that go down and come back: those that are down get no copies.
    pub fn heard(&mut self, event: &SchedulerEvent) {
        let of = |rack| self.topology.hosts_of(rack).iter().map(|h| h.id);
        match *event {
            SchedulerEvent::HostFailed(host) => self.down.extend([host]),
            SchedulerEvent::RackFailed(rack) => self.down.extend(of(rack)),
            SchedulerEvent::HostRecovered(host) => self.down.retain(|h| *h != host),
            SchedulerEvent::RackRecovered(rack) => {
                self.down.retain(|h| self.topology.rack_of(*h) != rack)
            }
            _ => {}
        }
    }

    /// The coflow that writes what a task has made, which has computed by now; `None`: it writes
    /// nothing, and is done. O(hosts) at worst.
    pub fn begin(&mut self, of: TaskAttempt, now: Time) -> Option<CoflowSpec> {
        let (task, host) = (of.0, self.hosts.remove(&of.0)?);
        let job = self.jobs.get(task.job.index())?;
        let stage = &job.stages[task.stage as usize];
        let upto = |k: u64| u128::from(stage.output.0) * u128::from(k) / u128::from(stage.tasks);
        let bytes = Bytes((upto(u64::from(task.task) + 1) - upto(task.task.into())) as u64);
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed.wrapping_add(1 + u64::from(task.stage)));
        rng.set_stream(u64::from(task.job.0) << 32 | u64::from(task.task));
        let copies = hdfs::copies(&self.topology, &|h| !self.down.contains(&h), &mut rng, host);
        let place = |h: HostId| {
            if self.grain == Grain::Rack { HostId(self.topology.rack_of(h).0) } else { h }
        };
        let hops: Vec<HostId> = std::iter::once(host).chain(copies).map(place).collect();
        let there = hops.windows(2).filter(|w| w[0] != w[1] && bytes > Bytes::ZERO);
        let flows: Vec<FlowSpec> =
            there.map(|w| FlowSpec { from: w[0], to: w[1], bytes }).collect();
        if flows.is_empty() {
            return None;
        }
        let id = CoflowId(FIRST + self.begun);
        self.begun += 1;
        self.flying.insert(id, (of, flows.len()));
        let name = format!("{}/{}-output", job.name, stage.name);
        Some(CoflowSpec::new(id, name, now, flows))
    }

    /// A flow of a coflow has ended (`all`: the whole coflow). The task that is done by that, if
    /// any.
    pub fn ended(&mut self, coflow: CoflowId, all: bool) -> Option<TaskAttempt> {
        let (of, left) = self.flying.get_mut(&coflow)?;
        *left = if all { 0 } else { *left - 1 };
        let done = (*left == 0).then_some(*of);
        if done.is_some() {
            self.flying.remove(&coflow);
        }
        done
    }

    /// An attempt is given up: its coflow, if it was writing. O(coflows on their way).
    pub fn stopped(&mut self, of: TaskAttempt) -> Option<CoflowId> {
        let id = self.flying.iter().find(|f| f.1.0 == of).map(|f| *f.0)?;
        self.flying.remove(&id);
        Some(id)
    }
}
