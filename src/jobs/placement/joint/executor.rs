//! The policy: a plan for all free slots, made once an instant, and promises to stages whose
//! shuffles are placed.

use std::collections::{BTreeMap, VecDeque};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::maps::Maps;
use self::order::ServedJob;
use super::homes::Homes;
use super::index::{Index, Learnt, SlotRate, bytes_into, receives};
use super::price::EstimatedNetwork;
use crate::ids::{CoflowId, FlowId, HostId, JobId, RackId};
use crate::placement::baselines::neat::level;
use crate::placement::decision::{Keep, Noted, PlacementDecision, Rule};
use crate::placement::hdfs;
use crate::placement::policy::{
    Block, FetchStart, JobOrder, Locality, Needs, OfferAlarm, Pick, Placement, View, is_over,
    startable,
};
use crate::placement::pushbox::priorities::by_size;
use crate::placement::replicas::ReplicaSets;
use crate::placement::spec::{Common, PolicyOptions};
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};
use crate::workload::jobs::JobSpec;

mod maps;
mod order;
mod reduces;

/// Options of the policy `joint`: which of its parts are left out, to see what each brings. Nobody
/// must set one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct JointOptions {
    /// Ablation: jobs are served as they came; false if left out.
    pub no_order: bool,
    /// Ablation: a job may wait for ever behind smaller ones; false if left out.
    pub no_guard: bool,
    /// Ablation: jobs that would end last of all do not go first; false if left out.
    pub no_tails: bool,
    /// Ablation: no slots are kept for small jobs; false if left out.
    pub no_kept_slots: bool,
    /// Ablation: blocks are placed at random, as HDFS does; false if left out.
    pub no_homes: bool,
    /// Ablation: tasks that receive take slots that are free, near most of their input, without an
    /// estimate; false if left out.
    pub no_estimate: bool,
    /// Ablation: estimates have all bytes go over the core, and no slots are held for circuits;
    /// false if left out.
    pub no_ways: bool,
}

impl PolicyOptions for JointOptions {
    const SLOWSTART: u32 = 100;
    /// It has an order of its own.
    const ORDER: JobOrder = JobOrder::Fifo;

    fn build(&self, common: &Common, elephant: Bytes) -> Box<dyn Placement> {
        Box::new(Joint::new(*self, common.clone(), elephant))
    }
}

/// What is kept of a job that is not over.
#[derive(Clone, Debug)]
struct ActiveJob {
    index: Index,
    /// Its work, as it was expected when it came.
    work: u64,
    /// By stage that reads: its homes, and the work of its maps, until they are done.
    homes: BTreeMap<usize, (ReplicaSets, u64)>,
    started: bool,
}

/// Slots that a stage was promised.
#[derive(Clone, Debug)]
struct PromisedSlots {
    /// By rack: tasks that have not started.
    left: Vec<u32>,
    /// When all were to have slots.
    by: Time,
    /// Until when it is kept though they have not: twice as long.
    until: Time,
    /// Tasks wait for all others: circuits carry the shuffle.
    holds: bool,
    /// Some have started.
    begun: bool,
}

/// Some tasks of a stage that start on a rack.
#[derive(Clone, Copy, Debug)]
struct StagePart {
    job: JobId,
    stage: usize,
    tasks: u32,
    /// Though their blocks are in other racks.
    from_afar: bool,
}

/// What starts on the free slots of an instant.
#[derive(Clone, Debug, Default)]
struct StartPlan {
    at: Option<Time>,
    /// Jobs with a task that may start, by their keys, the smallest first.
    order: Vec<((u8, u64), JobId)>,
    /// By rack.
    parts: Vec<VecDeque<StagePart>>,
    /// By rack: free slots that are left for nobody.
    left: Vec<u32>,
    /// By rack: tasks among the parts that were promised their slots.
    promised: Vec<u32>,
    /// By rack: the bytes of the smallest shuffle of which a task waits for its interfaces, and
    /// those that tasks of this plan receive there.
    full: Vec<u64>,
    fetched: Vec<u64>,
    /// By rack: when each slot will be free; empty until a stage is placed.
    releases: Vec<Vec<Time>>,
}

/// When jobs came, and what they brought.
#[derive(Clone, Copy, Debug, Default)]
struct Arrivals {
    jobs: u64,
    work: u128,
    first: Time,
    last: Time,
}

/// Shortest time between two looks at how far flows are.
const SAMPLE: Span = Span::millis(100);
/// A promise is kept for this long at least.
const SOONEST: Span = Span::millis(1);

/// The policy.
pub struct Joint {
    options: JointOptions,
    common: Common,
    threshold: Bytes,
    net: EstimatedNetwork,
    share: SlotRate,
    /// Each rack is one host, and there are neither circuits nor a graph of switches: what is on
    /// its way to each task is looked at.
    by_host: bool,
    learnt: Learnt,
    foreseen: BTreeMap<JobId, JobSpec>,
    jobs: BTreeMap<JobId, ActiveJob>,
    /// By user: jobs that are not over, and their work.
    users: BTreeMap<u32, (u32, u64)>,
    homes: Homes,
    promises: BTreeMap<(JobId, usize), PromisedSlots>,
    arrivals: Arrivals,
    /// Jobs that are known to come.
    to_come: usize,
    plan: StartPlan,
    /// Something else may start since the plan was made.
    stale: bool,
    /// When a promise has been kept for long enough, while slots are free.
    alarm: OfferAlarm,
    /// What is kept for those who ask why.
    noted: Noted,
    /// Whether the last map that was picked reads from afar.
    from_afar: bool,
}

impl Joint {
    fn new(options: JointOptions, common: Common, threshold: Bytes) -> Self {
        Self {
            options,
            common,
            threshold,
            net: EstimatedNetwork::default(),
            share: SlotRate::default(),
            by_host: false,
            learnt: Learnt::default(),
            foreseen: BTreeMap::new(),
            jobs: BTreeMap::new(),
            users: BTreeMap::new(),
            homes: Homes::default(),
            promises: BTreeMap::new(),
            arrivals: Arrivals::default(),
            to_come: 0,
            plan: StartPlan::default(),
            stale: true,
            alarm: OfferAlarm::default(),
            noted: Noted::default(),
            from_afar: false,
        }
    }

    /// A job comes: what is known of it, its place in the account of its user, and its guard.
    fn take_in(&mut self, view: &dyn View, job: JobId) {
        let spec = view.job(job);
        let mut index = Index::new(spec, self.foreseen.get(&job), self.share);
        let work = index.work(spec, &self.learnt);
        let now = view.now();
        let a = &mut self.arrivals;
        *a = Arrivals {
            jobs: a.jobs + 1,
            work: a.work + u128::from(work),
            first: if a.jobs == 0 { now } else { a.first },
            last: now,
        };
        self.to_come -= usize::from(self.foreseen.contains_key(&job));
        let user = self.users.entry(spec.queue).or_default();
        *user = (user.0 + 1, user.1.saturating_add(work));
        let open = user.1;
        let users = self.users.len() as u64;
        if !self.options.no_guard {
            index.guard(spec, now, &self.learnt, (open, users), self.share);
        }
        self.jobs.insert(job, ActiveJob { index, work, homes: BTreeMap::new(), started: false });
    }

    fn leave(&mut self, job: JobId) {
        let Some(j) = self.jobs.remove(&job) else { return };
        self.foreseen.remove(&job);
        self.promises.retain(|k, _| k.0 != job);
        j.homes.values().for_each(|(sets, work)| self.homes.leave(sets, *work));
        if let Some(user) = self.users.get_mut(&j.index.queue) {
            *user = (user.0 - 1, user.1.saturating_sub(j.work));
            if user.0 == 0 {
                self.users.remove(&j.index.queue);
            }
        }
    }

    /// Plans what starts on the slots that are free now. O(jobs log jobs + jobs that get slots x
    /// racks), and [`best`](super::price::Question::best) for each shuffle that is placed.
    fn make_plan(&mut self, view: &dyn View) {
        let racks = view.topology().rack_count();
        let mut free: Vec<u32> = (0..racks).map(|r| view.free(RackId::from(r))).collect();
        let (parts, none) = (vec![VecDeque::new(); racks], vec![0; racks]);
        let (full, fetched, releases) = (vec![u64::MAX; racks], vec![0; racks], Vec::new());
        self.plan = StartPlan {
            at: Some(view.now()),
            order: Vec::new(),
            parts,
            left: none.clone(),
            promised: none,
            full,
            fetched,
            releases,
        };
        self.stale = false;
        self.alarm = OfferAlarm::default();
        if free.iter().all(|&f| f == 0) {
            return;
        }
        let kept = self.kept(view);
        let ranked = self.ranked(view);
        let stages = |job: JobId, late: bool| {
            startable(view, job).filter(move |&s| receives(view.job(job), s) == late)
        };
        let early = |s: &Self, job: JobId, stage: usize| s.is_early(view, (job, stage));
        for &ServedJob { job, small, .. } in &ranked {
            for stage in
                stages(job, true).filter(|&stage| early(self, job, stage)).collect::<Vec<_>>()
            {
                self.apart(small, &kept, &mut free, |s, free| {
                    s.serve_reduces(view, (job, stage), small, free)
                });
            }
        }
        // Over several switches a job stays in few racks while others wait.
        let share = if self.net.has_ways() { self.even_share() } else { u64::MAX };
        let mut waiting: Vec<Maps> = Vec::new();
        let mut ahead = self.ahead(view, &ranked);
        for &ServedJob { job, small, tail } in &ranked {
            if free.iter().all(|&f| f == 0) {
                break;
            }
            for stage in
                stages(job, true).filter(|&stage| !early(self, job, stage)).collect::<Vec<_>>()
            {
                self.apart(small, &kept, &mut free, |s, free| {
                    s.serve_reduces(view, (job, stage), small, free)
                });
            }
            for stage in stages(job, false) {
                let pending = view.counts(job, stage).pending;
                let at_once = if tail { pending.min(ahead) } else { pending };
                let maps = Maps { job, stage, left: at_once, share };
                let left =
                    self.apart(small, &kept, &mut free, |s, free| s.serve_maps(view, maps, free));
                if tail {
                    ahead -= at_once - left;
                }
                let left = left + pending - at_once;
                if left > 0 {
                    waiting.push(Maps { left, share: u64::MAX, ..maps });
                }
            }
        }
        if share < u64::MAX || ranked.iter().any(|s| s.tail) {
            for m in &mut waiting {
                m.left =
                    self.apart(false, &kept, &mut free, |s, free| s.serve_maps(view, *m, free));
            }
            waiting.retain(|m| m.left > 0);
        }
        if free.iter().any(|&f| f > 0) {
            self.apart(false, &kept, &mut free, |s, free| s.send_maps_away(view, &waiting, free));
        }
        if free.iter().any(|&f| f > 0) {
            let open = self.promises.values().filter(|p| p.left.iter().any(|&n| n > 0));
            open.for_each(|p| self.alarm.by(p.until.max(view.now() + SOONEST)));
        }
        self.plan.left = free;
    }

    /// Over how many racks the data of a stage goes at least. Only where each rack is one host, a
    /// stage would else send all that it has through few interfaces.
    fn width(&self, view: &dyn View, job: JobId, stage: usize) -> usize {
        let (spec, racks) = (view.job(job), view.topology().rack_count() as u64);
        let next = spec.edges.iter().find(|e| e.from == stage).map(|e| e.to);
        let Some(to) = next.filter(|_| self.by_host) else { return 1 };
        let bytes = match self.foreseen.get(&job) {
            Some(known) => bytes_into(known, to),
            None => self.learnt.expected(spec, to),
        };
        let (maps, reduces) = (spec.stages[stage].tasks, spec.stages[to].tasks);
        self.net.width(maps, reduces, bytes, self.share.slots / racks, self.jobs.len() as u64)
    }

    /// Serves a job without the slots that are kept for small ones, if it is none.
    fn apart<T>(
        &mut self,
        small: bool,
        kept: &[u32],
        free: &mut [u32],
        serve: impl FnOnce(&mut Self, &mut [u32]) -> T,
    ) -> T {
        if small {
            return serve(self, free);
        }
        let aside: Vec<u32> = free.iter().zip(kept).map(|(f, k)| *f.min(k)).collect();
        free.iter_mut().zip(&aside).for_each(|(f, a)| *f -= a);
        let result = serve(self, free);
        free.iter_mut().zip(&aside).for_each(|(f, a)| *f += a);
        result
    }

    /// A decision of this instant about a stage, of which nothing else is known.
    fn decision(
        &self,
        view: &dyn View,
        (job, stage): (JobId, usize),
        rule: Rule,
    ) -> PlacementDecision {
        PlacementDecision {
            job,
            stage: stage as u32,
            at: view.now(),
            turn: self.turn(view, job),
            rule,
            again: false,
            racks: Vec::new(),
            open: Vec::new(),
            afar: None,
            estimate: None,
            losers: 0,
            lost: Vec::new(),
        }
    }

    /// The next stage of which a task starts on this rack by the plan.
    fn next(&mut self, view: &dyn View, rack: RackId) -> Option<(JobId, usize)> {
        let parts = &mut self.plan.parts[rack.index()];
        while let Some(part) = parts.front_mut() {
            let StagePart { job, stage, from_afar, .. } = *part;
            let able =
                part.tasks > 0 && view.may_start(job, stage) && view.counts(job, stage).pending > 0;
            if able
                && view.free(rack) > 0
                && (from_afar
                    || view.locality(job, stage, rack).is_some_and(|n| n < Locality::Remote))
            {
                part.tasks -= 1;
                self.from_afar = from_afar;
                return Some((job, stage));
            }
            parts.pop_front();
        }
        None
    }

    fn start(&mut self, (job, stage): (JobId, usize), rack: usize, tasks: u32, from_afar: bool) {
        self.plan.parts[rack].push_back(StagePart { job, stage, tasks, from_afar });
    }
}

/// A task of a stage: of those that wait for a shuffle, the one with the most input.
fn pick(view: &dyn View, (job, stage): (JobId, usize), host: Option<HostId>) -> Pick {
    let task = if receives(view.job(job), stage) { view.largest(job, stage) } else { None };
    Pick { job, stage, host, task }
}

/// The host of a rack with a free slot that suits a stage best: near a block, then with the most
/// free slots. O(hosts of the rack).
fn host(view: &dyn View, (job, stage): (JobId, usize), rack: RackId) -> Option<HostId> {
    let hosts =
        view.topology().hosts_of(rack).iter().map(|h| h.id).filter(|&h| view.free_on(h) > 0);
    hosts.min_by_key(|&h| {
        (view.nearest(job, stage, h).map(|n| n.1), std::cmp::Reverse(view.free_on(h)), h)
    })
}

impl Placement for Joint {
    fn name(&self) -> &'static str {
        "joint"
    }

    fn plan(&mut self, topology: &Topology, jobs: &[JobSpec]) -> Result<(), String> {
        let threshold = if self.options.no_ways { Bytes(u64::MAX) } else { self.threshold };
        self.net = EstimatedNetwork::new(topology, threshold);
        self.share = SlotRate::of(topology);
        self.homes = Homes::new(topology.rack_count());
        self.foreseen = jobs.iter().filter(|j| j.recurring).map(|j| (j.id, j.clone())).collect();
        self.to_come = self.foreseen.len();
        for j in self.foreseen.values() {
            (0..j.stages.len()).for_each(|s| self.learnt.note(j, s));
        }
        Ok(())
    }

    fn place_data(&mut self, view: &dyn View, job: JobId) -> Vec<Vec<Block>> {
        self.take_in(view, job);
        let slots: Vec<u32> = view.topology().racks.iter().map(|r| view.slots(r.id)).collect();
        let stages = 0..view.job(job).stages.len();
        let widths: Vec<usize> = stages.map(|s| self.width(view, job, s)).collect();
        let Some(j) = self.jobs.get_mut(&job) else {
            return hdfs::blocks(view, job, self.common.seed);
        };
        let spec = view.job(job);
        for (s, stage) in spec
            .stages
            .iter()
            .enumerate()
            .filter(|s| s.1.input > Bytes::ZERO && !self.options.no_homes)
        {
            let work = j.index.task(spec, s, &self.learnt).0.saturating_mul(stage.tasks.into());
            let width = widths[s];
            if let Some(sets) = self.homes.choose(stage.tasks, work, &slots, width) {
                j.homes.insert(s, (sets, work));
            }
        }
        if j.homes.is_empty() {
            return hdfs::blocks(view, job, self.common.seed);
        }
        hdfs::in_racks(view, job, self.common.seed, |s| {
            j.homes.get(&s).map_or(vec![], |(sets, _)| sets.blocks(spec.stages[s].tasks))
        })
    }

    fn slowstart(&self, _: &dyn View, _: JobId) -> u32 {
        self.common.slowstart
    }

    fn offer(&mut self, view: &dyn View, rack: RackId) -> Option<Pick> {
        let r = rack.index();
        for again in [false, true] {
            let old = self.stale || self.plan.at != Some(view.now());
            let freed = || self.plan.parts[r].is_empty() && view.free(rack) > self.plan.left[r];
            if old || again && freed() {
                self.make_plan(view);
            }
            if let Some((job, stage)) = self.next(view, rack) {
                return Some(pick(view, (job, stage), None));
            }
            // A rack whose slots were declined before is not offered again when they are planned
            // for something.
            for other in view.topology().racks.iter().map(|r| r.id).filter(|&o| o != rack) {
                if let Some((job, stage)) = self.next(view, other) {
                    return Some(pick(view, (job, stage), host(view, (job, stage), other)));
                }
            }
        }
        None
    }

    fn note_decisions(&mut self, keep: Keep) {
        self.noted.keep = keep;
    }

    fn take_decisions(&mut self) -> Vec<PlacementDecision> {
        self.noted.take()
    }

    fn wake_at(&self) -> Option<Time> {
        self.alarm.at()
    }

    fn woken(&mut self, now: Time) {
        self.stale = true;
        self.alarm.woken(now);
    }

    fn started(&mut self, _: &dyn View, pick: Pick, rack: RackId, _: Locality) {
        self.noted.started(pick.job, pick.stage as u32, self.from_afar, rack);
        if let Some(j) = self.jobs.get_mut(&pick.job) {
            j.started = true;
        }
        if let Some(p) = self.promises.get_mut(&(pick.job, pick.stage)) {
            p.left[rack.index()] = p.left[rack.index()].saturating_sub(1);
            p.begun = true;
        }
    }

    fn shuffle(&mut self, view: &dyn View, job: JobId, stage: usize) -> FetchStart {
        let promise = self.promises.get(&(job, stage));
        let waits =
            promise.filter(|p| p.holds && p.by > view.now() && p.left.iter().any(|&n| n > 0));
        waits.map_or(FetchStart::Start, |p| FetchStart::Hold(p.by))
    }

    fn needs(&mut self, topology: &Topology) -> Needs {
        let alone = topology.racks.iter().all(|r| r.hosts == 1);
        self.by_host = alone && topology.planes.is_empty() && topology.eps.graph().is_none();
        Needs {
            network: self.by_host,
            flows_by_task: false,
            rack_local: false,
            sample: SAMPLE,
            ema_percent: 25,
        }
    }

    fn prioritise(&mut self, view: &dyn View, hosts: &[HostId]) -> Vec<(CoflowId, FlowId, u8)> {
        hosts.iter().flat_map(|&h| by_size(view, h, |_| false, false)).collect()
    }

    fn priority(&self, view: &dyn View, job: JobId, stage: usize, bytes: Bytes) -> Option<u8> {
        // A stage that receives part by part is as large as all of them.
        Some(level(bytes.max(bytes_into(view.job(job), stage))))
    }

    fn submitted(&mut self, _: &dyn View, _: JobId) {
        self.stale = true;
    }

    fn stage_finished(&mut self, view: &dyn View, job: JobId, stage: usize) {
        self.stale = true;
        let spec = view.job(job);
        if !self.foreseen.contains_key(&job) {
            self.learnt.note(spec, stage);
        }
        if let Some((sets, work)) = self.jobs.get_mut(&job).and_then(|j| j.homes.remove(&stage)) {
            self.homes.leave(&sets, work);
        }
        self.promises.remove(&(job, stage));
        if is_over(view, job) {
            self.leave(job);
        }
    }

    fn cluster_changed(&mut self, _: &dyn View) {
        self.stale = true;
        self.promises.clear();
    }
}
