//! PushBox: few tasks fetch on a host at once, by strict priority, and others compute meanwhile.
//!
//! Tian et al., "PushBox: Making Use of Every Bit of Time to Accelerate Completion of Data-Parallel
//! Jobs", IEEE TPDS 2022. A host has about m tasks that fetch over the network. Their flows go one
//! task after the other by strict priority, so it can be foreseen how long the network of a host is
//! busy: bytes that have still to come, over the rate at which the host has received of late. A
//! free slot goes to the jobs in their order. A job's candidate is its largest task, or by delay
//! scheduling one near its block ([`select`]). A task that must fetch gets the slot if the host has
//! room for it, or under fair sharing if its coflow is smaller than all there (wild card); else the
//! job yields ([`concurrency`]). After a job yielded, a task that needs no network gets the slot
//! only if it ends before the network of the host has nothing left to do.
//!
//! A stage that has just come to wait for slots is placed on the hosts whose networks are free
//! soonest (Algorithm 3); slots that become free later are given one by one (Algorithm 2). Flows
//! are ranked host by host ([`priorities`]).
//!
//! Where the paper is silent: a task counts as fetching from its start if any of its input is, or
//! will be, elsewhere. The size of a coflow is that of the shuffles into its stage.
//!
//! Where it contradicts itself: by Algorithm 2 (line 6) a job yields, too, that waits for a slot
//! near its data, so that no local task starts on a host whose network has nothing to do. By
//! section 5.2 a slot is yielded if, and only if, the network is congested. We follow the section
//! ([`Yields`]).

use std::cmp::Reverse;
use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::baselines::delay::Waits;
use super::hdfs;
use super::network::Needs;
use super::policy::{Block, FlowGranularity, Locality, Pick, Placement, View, is_over};
use super::spec::{BadOption, Common, PolicyOptions, outside};
use super::why::{MAX_LEFT, Moment, Refusal, Why};
use crate::ids::{CoflowId, FlowId, HostId, JobId, RackId};
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time, exact};

pub mod concurrency;
pub mod estimate;
pub mod priorities;
pub mod select;

use concurrency::{HostLoad, MayStart, can_be_placed, hinders_not, wild_below};
use estimate::{Misjudged, RackLocal, transfer_time};
use select::{CandidateTask, Selector};

/// What it means for a job to yield a slot: local tasks of the jobs behind it must then not hinder
/// the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Yields {
    /// The host had no room for its task, which must fetch (section 5.2).
    #[default]
    Network,
    /// It started no task there, for whatever reason (Algorithm 2, line 6).
    Any,
}

/// Options of the policy `pushbox`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PushBoxOptions {
    /// m: tasks that may fetch over the network on a host at once, 1 to 1000; no more than the host
    /// has slots; 3 if left out.
    #[schemars(range(min = 1, max = 1000))]
    pub input_tasks: u32,
    /// The most that may with wild cards, 1 to 1000; no limit if left out.
    #[schemars(range(min = 1, max = 1000))]
    pub most_input_tasks: Option<u32>,
    /// Per cent of a new sample in the moving average of a host's receive rate, 1 to 100; 25 if
    /// left out.
    #[schemars(range(min = 1, max = 100))]
    pub ema: u32,
    /// Shortest time between two samples of how far flows are; 100 ms if left out.
    #[serde(serialize_with = "exact")]
    pub sample: Span,
    /// Time by which a task that needs no network may compute longer than the network of its host
    /// is busy; 0 s if left out.
    #[serde(serialize_with = "exact")]
    pub hinder_slack: Span,
    /// When a job yields a slot: network, where the host has no room for its task; any, also where
    /// it waits for a slot near its data, as the paper's Algorithm 2 prints it. Network if left
    /// out.
    pub yields: Yields,
    /// Whether what comes from the same rack is as good as local: auto, where the network between
    /// racks carries less than their hosts; always; never. Never if left out: it was better where
    /// it was compared (docs/pushbox.md).
    pub rack_local: RackLocal,
    /// What a task receives is taken to be f^(2u - 1) times as much as it is, with u drawn evenly
    /// from 0 to 1 for each task. f is 1 to 1000; 1, no error, if left out.
    #[schemars(range(min = 1, max = 1000))]
    pub input_error: u32,
    /// Ablation: priorities by the coflow's size in tenfold steps, the same on all hosts, instead
    /// of ranks by host; false if left out.
    pub global_priority: bool,
    /// Ablation: any task of a stage instead of its largest; false if left out.
    pub random_task: bool,
    /// Ablation: after a yield any task that needs no network gets the slot; false if left out.
    pub no_hinder: bool,
    /// Ablation: small coflows do not go beyond the limit of tasks that fetch; false if left out.
    pub no_wild_card: bool,
}

impl Default for PushBoxOptions {
    fn default() -> Self {
        Self {
            input_tasks: 3,
            most_input_tasks: None,
            ema: 25,
            sample: Span::millis(100),
            hinder_slack: Span::ZERO,
            yields: Yields::Network,
            rack_local: RackLocal::Never,
            input_error: 1,
            global_priority: false,
            random_task: false,
            no_hinder: false,
            no_wild_card: false,
        }
    }
}

impl PolicyOptions for PushBoxOptions {
    const BY_HOST: bool = true;
    const FLOWS: FlowGranularity = FlowGranularity::Task;

    fn check(&self) -> Vec<BadOption> {
        let numbers = [
            outside("input_tasks", self.input_tasks.into(), (1, 1000)),
            self.most_input_tasks
                .and_then(|most| outside("most_input_tasks", most.into(), (1, 1000))),
            outside("ema", self.ema.into(), (1, 100)),
            outside("input_error", self.input_error.into(), (1, 1000)),
        ];
        numbers.into_iter().flatten().collect()
    }

    fn build(&self, common: &Common, _: Bytes) -> Box<dyn Placement> {
        Box::new(PushBox::new(*self, common))
    }
}

/// The policy.
#[derive(Clone, Debug)]
pub struct PushBox {
    options: PushBoxOptions,
    slowstart: u32,
    seed: u64,
    wait: (Span, Span),
    selector: Selector,
    /// Stages that have just come to wait for slots, and when.
    arrivals: VecDeque<(JobId, usize)>,
    arrived: Time,
    why: Option<Why>,
}

impl PushBox {
    /// A policy with its options; data is placed as HDFS does, drawn from the seed.
    pub fn new(options: PushBoxOptions, common: &Common) -> Self {
        let (slowstart, seed, wait) = (common.slowstart, common.seed, common.wait);
        // Whether racks are local is known with the network.
        let selector = Selector::new(
            Waits::by_time(wait.0, wait.1),
            false,
            None,
            Misjudged { factor: 1, seed },
        );
        Self {
            options,
            slowstart,
            seed,
            wait,
            selector,
            arrivals: VecDeque::new(),
            arrived: Time::ZERO,
            why: None,
        }
    }

    #[cfg(test)]
    pub(crate) fn options_mut(&mut self) -> &mut PushBoxOptions {
        &mut self.options
    }

    /// From now on tasks are drawn from this, or the largest are taken.
    #[cfg(test)]
    pub(crate) fn draw_tasks(&mut self, seed: Option<u64>) {
        self.selector.draw(seed);
    }

    /// Slot-change mode (Algorithm 2): the task that shall have a free slot of a host. Once a host
    /// has no room, a job has yielded and the first `asked` were refused, those are passed over
    /// that would be for certain: jobs that must fetch and have no wild card. O(jobs that are
    /// asked) times a selection.
    fn slot_change(&mut self, view: &dyn View, host: HostId, asked: usize) -> Option<Pick> {
        let load = HostLoad::of(view, host, &self.options, self.wrong());
        let mut left_by: Vec<(JobId, Refusal)> = Vec::new();
        let (mut n, mut yielded, mut all) = (0, false, true);
        for job in view.ready() {
            if n >= asked && yielded && !load.has_room() {
                all = false;
                break;
            }
            match self.ask(view, (job, yielded), host, &load) {
                Ok((c, placed)) => {
                    return Some(self.pick(
                        (job, c),
                        (host, placed),
                        &load,
                        (Moment::SlotChange, left_by),
                    ));
                }
                Err(why) => {
                    yielded |= why == Refusal::Network || self.options.yields == Yields::Any;
                    left_by.extend((n < MAX_LEFT).then_some((job, why)));
                }
            }
            n += 1;
        }
        if all {
            return None;
        }
        for job in view.ready_below(wild_below(&self.options, &load)) {
            // The first are refused already.
            if left_by.iter().all(|l| l.0 != job)
                && let Ok((c, placed)) = self.ask(view, (job, true), host, &load)
            {
                return Some(self.pick(
                    (job, c),
                    (host, placed),
                    &load,
                    (Moment::SlotChange, left_by),
                ));
            }
        }
        None
    }

    /// Whether a job has a task for a slot of a host; `yielded`: a job before it has none.
    fn ask(
        &mut self,
        view: &dyn View,
        (job, yielded): (JobId, bool),
        host: HostId,
        load: &HostLoad,
    ) -> Result<(CandidateTask, MayStart), Refusal> {
        let candidate = self
            .selector
            .critical(view, job)
            .and_then(|stage| self.selector.select(view, (job, stage), host));
        let c = candidate.ok_or(Refusal::Locality)?;
        if c.is_local() {
            let may = !yielded || hinders_not(&self.options, &c, load);
            return if may { Ok((c, MayStart::Room)) } else { Err(Refusal::Hinders) };
        }
        match can_be_placed(view, &self.options, (job, &c), load) {
            MayStart::No => Err(Refusal::Network),
            placed => Ok((c, placed)),
        }
    }

    /// The next task for a rack's free slots, or one that has just come to wait for any.
    fn offer_to(&mut self, view: &dyn View, rack: RackId, asked: usize) -> Option<Pick> {
        if let Some(pick) = self.arrival(view) {
            return Some(pick);
        }
        let hosts = self.soonest(view, view.topology().hosts_of(rack).iter().map(|h| h.id));
        hosts.into_iter().find_map(|host| self.slot_change(view, host, asked))
    }

    /// The same offer, with this number of jobs asked before any is passed over.
    #[cfg(test)]
    pub(crate) fn offer_asking(
        &mut self,
        view: &dyn View,
        rack: RackId,
        asked: usize,
    ) -> Option<Pick> {
        self.offer_to(view, rack, asked)
    }

    /// Task-arrival mode (Algorithm 3): a task of the stages that have just come to wait, on the
    /// host whose network is free soonest.
    fn arrival(&mut self, view: &dyn View) -> Option<Pick> {
        if self.arrived != view.now() {
            self.arrivals.clear();
        }
        while let Some(&(job, stage)) = self.arrivals.front() {
            if view.may_start(job, stage) && view.counts(job, stage).pending > 0 {
                let pick = self.place_one(view, job, stage);
                if pick.is_some() {
                    return pick;
                }
            }
            self.arrivals.pop_front();
        }
        None
    }

    /// One round of Algorithm 3 for a stage. O(hosts log hosts).
    fn place_one(&mut self, view: &dyn View, job: JobId, stage: usize) -> Option<Pick> {
        let first = view.ready().next() == Some(job);
        for host in self.soonest(view, view.topology().hosts.iter().map(|h| h.id)) {
            let Some(c) = self.selector.select(view, (job, stage), host) else { continue };
            let load = HostLoad::of(view, host, &self.options, self.wrong());
            let first = first || load.has_room() && self.options.yields == Yields::Network;
            let placed = match c.is_local() {
                true if first || hinders_not(&self.options, &c, &load) => MayStart::Room,
                true => MayStart::No,
                false => can_be_placed(view, &self.options, (job, &c), &load),
            };
            if placed != MayStart::No {
                return Some(self.pick(
                    (job, c),
                    (host, placed),
                    &load,
                    (Moment::Arrival, Vec::new()),
                ));
            }
        }
        None
    }

    /// Errors of foresight.
    fn wrong(&self) -> Misjudged {
        Misjudged { factor: self.options.input_error, seed: self.seed }
    }

    /// Hosts with free slots: those whose network is free soonest first, then by more free slots,
    /// then by id.
    fn soonest(&self, view: &dyn View, hosts: impl Iterator<Item = HostId>) -> Vec<HostId> {
        let key = |h: HostId| (transfer_time(view, h, self.wrong()), Reverse(view.free_on(h)), h);
        let mut open: Vec<_> = hosts.filter(|&h| view.free_on(h) > 0).map(key).collect();
        open.sort_unstable();
        open.into_iter().map(|h| h.2).collect()
    }

    fn pick(
        &mut self,
        (job, c): (JobId, CandidateTask),
        (host, placed): (HostId, MayStart),
        load: &HostLoad,
        (moment, left_by): (Moment, Vec<(JobId, Refusal)>),
    ) -> Pick {
        let HostLoad { inputs, transfer, .. } = *load;
        let wild_card = placed == MayStart::WildCard;
        self.why = Some(Why {
            moment,
            left_by,
            inputs,
            wild_card,
            fetches: c.fetches,
            transfer,
            computing: c.computing,
        });
        Pick { job, stage: c.stage, host: Some(host), task: (!c.nearest).then_some(c.task) }
    }
}

impl Placement for PushBox {
    fn name(&self) -> &'static str {
        "pushbox"
    }

    fn place_data(&mut self, view: &dyn View, job: JobId) -> Vec<Vec<Block>> {
        hdfs::blocks(view, job, self.seed)
    }

    fn slowstart(&self, _: &dyn View, _: JobId) -> u32 {
        self.slowstart
    }

    fn needs(&mut self, topology: &Topology) -> Needs {
        let rack_local = self.options.rack_local.holds(topology);
        self.selector = Selector::new(
            Waits::by_time(self.wait.0, self.wait.1),
            rack_local,
            self.options.random_task.then_some(self.seed),
            self.wrong(),
        );
        Needs {
            network: true,
            flows_by_task: true,
            rack_local,
            sample: self.options.sample,
            ema_percent: self.options.ema,
        }
    }

    fn submitted(&mut self, view: &dyn View, job: JobId) {
        self.selector.submitted(view, job);
    }

    fn arrived(&mut self, view: &dyn View, job: JobId, stage: usize) {
        if std::mem::replace(&mut self.arrived, view.now()) != view.now() {
            self.arrivals.clear();
        }
        self.arrivals.push_back((job, stage));
    }

    fn offer(&mut self, view: &dyn View, rack: RackId) -> Option<Pick> {
        self.offer_to(view, rack, MAX_LEFT)
    }

    fn why(&self) -> Option<&Why> {
        self.why.as_ref()
    }

    fn prioritise(&mut self, view: &dyn View, hosts: &[HostId]) -> Vec<(CoflowId, FlowId, u8)> {
        hosts
            .iter()
            .flat_map(|&h| priorities::ranks(view, h, self.options.global_priority))
            .collect()
    }

    fn wake_at(&self) -> Option<Time> {
        self.selector.wake_at()
    }

    fn woken(&mut self, now: Time) {
        self.selector.waits().woken(now);
    }

    fn started(&mut self, view: &dyn View, pick: Pick, _: RackId, near: Locality) {
        let near = self.selector.nearness(near);
        self.selector.waits().started(view, pick, near);
    }

    fn stage_finished(&mut self, view: &dyn View, job: JobId, _: usize) {
        if is_over(view, job) {
            self.selector.forget(job);
            // A job whose tasks take no time may be over at the instant in which it came to wait.
            self.arrivals.retain(|a| a.0 != job);
        }
    }
}
