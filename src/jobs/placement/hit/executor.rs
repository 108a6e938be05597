//! Hit-scheduler as a policy: every task of a shuffle has a wanted host, from a plan that is made
//! when its job may have a slot.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::plan::{HitPlanOptions, plan};
use super::wave::{Ends, Grading, How, MAX_ROUNDS};
use crate::ids::{HostId, JobId, RackId};
use crate::paths::{MAX_UNIT, Switches, Units};
use crate::placement::hdfs;
use crate::placement::policy::{
    Block, JobOrder, Locality, OfferAlarm, Pick, Placement, View, startable,
};
use crate::placement::spec::{BadOption, Common, PolicyOptions, outside};
use crate::topology::Host;
use crate::units::{Bytes, Span, Time};

/// Options of the policy `hit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HitOptions {
    /// Which tasks move at once: reduces and maps in turns (alternate), or both at once as the
    /// paper prints it (both); alternate if left out.
    pub ends: Ends,
    /// By what hosts rank tasks: by what is saved (utility), or by how many flows vote for them, as
    /// Algorithm 1 prints it (count); utility if left out.
    pub grades: Grading,
    /// The most rounds of turns, 1 to 10; 10 if left out.
    #[schemars(range(min = 1, max = 10))]
    pub rounds: u32,
    /// What a byte costs a switch that it crosses, by the switch's tier; 1 each if left out.
    pub units: Units,
}

impl Default for HitOptions {
    fn default() -> Self {
        let How { ends, grades, rounds } = How::default();
        Self { ends, grades, rounds, units: Units::default() }
    }
}

impl HitOptions {
    /// How a wave is placed.
    fn how(self) -> How {
        How { ends: self.ends, grades: self.grades, rounds: self.rounds }
    }
}

impl PolicyOptions for HitOptions {
    const ORDER: JobOrder = JobOrder::Capacity;
    const BY_HOST: bool = true;

    fn check(&self) -> Vec<BadOption> {
        let Units { access, aggregation, core } = self.units;
        let unit = |(key, value): (&str, u32)| {
            let bad = outside(key, value.into(), (0, MAX_UNIT.into()))?;
            Some(BadOption { key: "units".into(), ..bad })
        };
        let units = [("access", access), ("aggregation", aggregation), ("core", core)];
        outside("rounds", self.rounds.into(), (1, MAX_ROUNDS.into()))
            .into_iter()
            .chain(units.into_iter().filter_map(unit))
            .collect()
    }

    fn units(&self) -> Units {
        self.units
    }

    fn build(&self, common: &Common, _: Bytes) -> Box<dyn Placement> {
        Box::new(Hit::new(*self, common))
    }
}

/// The policy.
pub struct Hit {
    options: HitOptions,
    slowstart: u32,
    seed: u64,
    /// How long a stage waits for a slot on a wanted host before a task takes another one.
    wait: Span,
    net: Option<Switches>,
    /// Jobs that have their plans.
    planned: BTreeSet<JobId>,
    stages: BTreeMap<(JobId, usize), WantedHosts>,
    alarm: OfferAlarm,
}

/// Where the tasks of a stage are wanted. Where they all send and receive alike, it is hosts that
/// are counted.
#[derive(Clone, Debug, Default)]
struct WantedHosts {
    /// By host: tasks that are wanted there and have not started.
    hosts: BTreeMap<HostId, u32>,
    /// All of them.
    all: u32,
    /// By task where it is wanted, if tasks receive different shares.
    by_task: BTreeMap<u32, HostId>,
    /// All hosts, the best first: for tasks that are wanted nowhere.
    others: Vec<HostId>,
    /// Since when its tasks have been waiting for wanted hosts without a slot.
    since: Option<Time>,
}

impl WantedHosts {
    fn want(&mut self, host: HostId) {
        *self.hosts.entry(host).or_default() += 1;
        self.all += 1;
    }

    /// The task that is wanted on a host, if it matters which.
    fn task_for(&self, host: HostId) -> Option<u32> {
        self.by_task.iter().find(|t| *t.1 == host).map(|t| *t.0)
    }

    /// A task started on a host.
    fn started(&mut self, task: Option<u32>, host: Option<HostId>) {
        let wanted = task.and_then(|k| self.by_task.remove(&k));
        let none_by_task = self.by_task.is_empty() && wanted.is_none();
        wanted.or(host.filter(|_| none_by_task)).into_iter().for_each(|h| self.one_less(h));
    }

    /// A task started there, or a place is given up; any of the stage's tasks may have been the one
    /// that was wanted.
    fn one_less(&mut self, host: HostId) {
        let Some(n) = self.hosts.get_mut(&host) else { return };
        (*n, self.all) = (*n - 1, self.all - 1);
        if *n == 0 {
            self.hosts.remove(&host);
        }
    }
}

impl Hit {
    /// A policy with its options; data is placed as HDFS does, drawn from the seed.
    pub fn new(options: HitOptions, common: &Common) -> Self {
        let (slowstart, seed, wait) = (common.slowstart, common.seed, common.wait.0);
        Self {
            options,
            slowstart,
            seed,
            wait,
            net: None,
            planned: BTreeSet::new(),
            stages: BTreeMap::new(),
            alarm: OfferAlarm::default(),
        }
    }

    /// Plans a job when it may have its first slot, on the slots that are free then. In a cluster
    /// that is full its tasks that receive are planned on all slots, and its first ones go where a
    /// slot becomes free, the best such host first.
    fn plan_once(&mut self, view: &dyn View, job: JobId) {
        if !self.planned.insert(job) {
            return;
        }
        let (topology, spec) = (view.topology(), view.job(job));
        let net = self.net.get_or_insert_with(|| Switches::new(topology, self.options.units));
        let slots = |free: bool| -> Vec<u32> {
            let of = |h: &Host| if free { view.free_on(h.id) } else { h.slots };
            topology.hosts.iter().map(|h| if view.is_up(h.id) { of(h) } else { 0 }).collect()
        };
        let largest = spec.edges.iter().map(|e| spec.stages[e.to].tasks).max().unwrap_or(0);
        let mut places = slots(true);
        let full = places.iter().copied().map(u64::from).sum::<u64>() <= u64::from(largest);
        if full {
            places = slots(false);
        }
        let options = HitPlanOptions {
            how: self.options.how(),
            seed: self.seed ^ u64::from(job.0),
            matrix: false,
        };
        // Fewer than two slots: every host is as good as any other.
        let Ok(mut plan) = plan(spec, topology, net, places, options) else { return };
        for t in &plan.tasks {
            let receives = spec.edges_into(t.stage).next().is_some();
            let wanted = self.stages.entry((job, t.stage)).or_default();
            if t.later || full && !receives {
                continue;
            }
            wanted.want(t.host);
            if spec.edges_into(t.stage).any(|e| e.shares.is_some()) {
                wanted.by_task.insert(t.task, t.host);
            }
        }
        for (&(_, stage), wanted) in self.stages.range_mut((job, 0)..=(job, usize::MAX)) {
            wanted.others = plan.orders.remove(&stage).unwrap_or_default();
        }
    }

    /// A host for a task of this stage: a wanted one with a free slot. If a task is wanted nowhere,
    /// or after the wait, the best other one. O(hosts).
    fn choose(&mut self, view: &dyn View, job: JobId, stage: usize) -> Option<Pick> {
        let Some(wanted) = self.stages.get_mut(&(job, stage)) else {
            return Some(Pick::of(job, stage));
        };
        let is_free = |h: &HostId| view.free_on(*h) > 0;
        if let Some(&host) = wanted.hosts.keys().find(|h| is_free(h)) {
            return Some(Pick {
                host: Some(host),
                task: wanted.task_for(host),
                ..Pick::of(job, stage)
            });
        }
        let mut task = None;
        if view.counts(job, stage).pending <= wanted.all {
            let due = *wanted.since.get_or_insert(view.now()) + self.wait;
            if view.now() < due {
                self.alarm.by(due);
                return None;
            }
            // One task of the stage gives up its wish.
            let given_up = wanted.hosts.keys().next().copied();
            task = given_up.and_then(|h| wanted.task_for(h));
            given_up.into_iter().for_each(|h| wanted.one_less(h));
            wanted.by_task.retain(|k, _| Some(*k) != task);
        }
        Some(Pick {
            task,
            host: wanted.others.iter().copied().find(is_free),
            ..Pick::of(job, stage)
        })
    }
}

impl Placement for Hit {
    fn name(&self) -> &'static str {
        "hit"
    }

    fn place_data(&mut self, view: &dyn View, job: JobId) -> Vec<Vec<Block>> {
        hdfs::blocks(view, job, self.seed)
    }

    fn slowstart(&self, _: &dyn View, _: JobId) -> u32 {
        self.slowstart
    }

    fn offer(&mut self, view: &dyn View, _: RackId) -> Option<Pick> {
        let ready: Vec<JobId> = view.ready().collect();
        for job in ready {
            self.plan_once(view, job);
            let stages: Vec<usize> = startable(view, job).collect();
            if let Some(pick) = stages.into_iter().find_map(|s| self.choose(view, job, s)) {
                return Some(pick);
            }
        }
        None
    }

    fn wake_at(&self) -> Option<Time> {
        self.alarm.at()
    }

    fn woken(&mut self, now: Time) {
        self.alarm.woken(now);
    }

    fn started(&mut self, _: &dyn View, pick: Pick, _: RackId, _: Locality) {
        let Some(wanted) = self.stages.get_mut(&(pick.job, pick.stage)) else { return };
        if pick.host.is_some_and(|h| wanted.hosts.contains_key(&h)) {
            // As in delay scheduling, a stage that has waited waits again when it has got what it
            // wants.
            wanted.since = None;
        }
        wanted.started(pick.task, pick.host);
    }

    fn stage_finished(&mut self, _: &dyn View, job: JobId, stage: usize) {
        // Tasks that run again because an output is lost go where their blocks are.
        self.stages.remove(&(job, stage));
    }

    fn cluster_changed(&mut self, view: &dyn View) {
        for wanted in self.stages.values_mut() {
            wanted.hosts.retain(|h, _| view.is_up(*h));
            wanted.by_task.retain(|_, h| view.is_up(*h));
            wanted.all = wanted.hosts.values().sum();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_wanted_as_often_as_tasks_are_to_start_there() {
        let mut w = WantedHosts::default();
        [1, 1, 2].into_iter().for_each(|h| w.want(HostId(h)));
        w.one_less(HostId(1));
        w.one_less(HostId(7));
        assert_eq!((w.all, w.hosts.clone()), (2, BTreeMap::from([(HostId(1), 1), (HostId(2), 1)])));
        w.one_less(HostId(1));
        w.one_less(HostId(1));
        assert_eq!((w.all, w.hosts.len()), (1, 1));
    }

    #[test]
    fn of_tasks_with_shares_each_has_its_own_host() {
        let mut w = WantedHosts::default();
        for (k, h) in [(0, 1), (1, 2), (2, 1)] {
            w.want(HostId(h));
            w.by_task.insert(k, HostId(h));
        }
        assert_eq!(
            (w.task_for(HostId(2)), w.task_for(HostId(1)), w.task_for(HostId(3))),
            (Some(1), Some(0), None)
        );
        // Task 2 runs elsewhere: its wish is gone, and nothing of that host's.
        w.started(Some(2), Some(HostId(2)));
        assert_eq!((w.all, w.hosts.clone()), (2, BTreeMap::from([(HostId(1), 1), (HostId(2), 1)])));
        // A task of a later wave takes no other task's wish.
        w.started(Some(7), Some(HostId(2)));
        assert_eq!(w.all, 2);
    }
}
