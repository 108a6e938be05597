//! Co-scheduler's OCS- and coflow-aware scheduler, which carries its guidelines out.
//!
//! Co-scheduler (ToN 2022), section IV: data lies on R_data racks, three times; maps of a
//! shuffle-heavy job run on R_map of them. When all maps are done, [`decide`] chooses the racks of
//! the reduces and how many go to each, from what the maps made and when slots become free. A free
//! slot goes to the first user that has a task, in the six classes of Algorithm 2. Under `strict`,
//! no task of a shuffle-heavy job is in the last two while its guideline has a rack for it. The
//! reduces of chosen racks come first, in the order of the choices. The shuffle begins when all
//! reduces have their slots; where they are more than the slots of the cluster, or of the racks
//! that they wait for, when no slot is left there.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{JobId, RackId};
use crate::placement::advisor::{self, PlacementRequest};
use crate::placement::cluster::Cluster;
use crate::placement::coscheduler::data::{self, Sir};
use crate::placement::coscheduler::decide::{ScheduleQuestion, decide};
use crate::placement::coscheduler::maps::MapGuideline;
use crate::placement::coscheduler::network::Idle;
use crate::placement::coscheduler::order::{self, Offer, SlotTask};
use crate::placement::coscheduler::reduces;
use crate::placement::hdfs;
use crate::placement::jobpacker::executor::output_by_rack;
use crate::placement::latency::hybrid;
use crate::placement::policy::{
    AdviceRequest, Block, FetchStart, Locality, Pick, Placement, View, is_over, startable,
};
use crate::placement::spec::{BadOption, Common, PolicyOptions, outside};
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time, exact_or_null};
use crate::workload::jobs::JobSpec;

/// Options of the policy `co-scheduler`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CoSchedulerOptions {
    /// T_e in plans, more than zero; `elephants.threshold` if left out.
    #[serde(serialize_with = "exact_or_null")]
    pub elephant: Option<Bytes>,
    /// The shuffle that is expected of a new job, in per cent of its input (section IV-D: 1.0), 1
    /// to 10000; 100 if left out.
    #[schemars(range(min = 1, max = 10000))]
    pub sir: u32,
    /// Circuits that a port holds at once, W (section VI), 1 to 1000; as many as there are planes
    /// if left out.
    #[schemars(range(min = 1, max = 1000))]
    pub wavelengths: Option<u32>,
    /// A task of a shuffle-heavy job waits for the racks of its guideline, as long as one of them
    /// is up. Otherwise any free slot takes it where nothing else can run (Algorithm 2, lines 8 and
    /// 9); false if left out.
    pub strict: bool,
    /// Reduce tasks of shuffle-heavy jobs run anywhere: data and maps are guided alone, the part
    /// that the paper measures as DP + OCAS (section V-C); false if left out.
    pub maps_only: bool,
}

impl Default for CoSchedulerOptions {
    /// The paper's.
    fn default() -> Self {
        Self { elephant: None, sir: 100, wavelengths: None, strict: false, maps_only: false }
    }
}

impl PolicyOptions for CoSchedulerOptions {
    fn check(&self) -> Vec<BadOption> {
        let elephant = self.elephant.and_then(|e| outside("elephant", e.0, (1, u64::MAX)));
        let wavelengths =
            self.wavelengths.and_then(|w| outside("wavelengths", w.into(), (1, 1_000)));
        [outside("sir", self.sir.into(), (1, 10_000)), elephant, wavelengths]
            .into_iter()
            .flatten()
            .collect()
    }

    fn build(&self, common: &Common, elephant: Bytes) -> Box<dyn Placement> {
        Box::new(CoScheduler::new(*self, common.clone(), elephant))
    }
}

/// Options of the policy `co-decided`: those of `co-scheduler`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct CoDecidedOptions(pub CoSchedulerOptions);

impl PolicyOptions for CoDecidedOptions {
    fn check(&self) -> Vec<BadOption> {
        self.0.check()
    }

    fn build(&self, common: &Common, elephant: Bytes) -> Box<dyn Placement> {
        Box::new(CoScheduler::co_decided(self.0, common.clone(), elephant))
    }
}

/// What is known of a job.
#[derive(Clone, Debug)]
struct Guide {
    maps: MapGuideline,
    /// Racks on which its maps run or ran.
    used: Vec<RackId>,
    /// By stage behind shuffles: the best schedule, once it is known. `None`: not worth circuits.
    best: BTreeMap<usize, Option<Vec<(RackId, u32)>>>,
}

impl Guide {
    /// The racks of a stage's best schedule that still have room for a task of it.
    fn open(&self, view: &dyn View, job: JobId, stage: usize) -> impl Iterator<Item = RackId> {
        let best = self.best.get(&stage).into_iter().flatten().flatten();
        best.filter(move |e| {
            view.running_in(job, stage, e.0) + view.output_in(job, stage, e.0) < e.1
        })
        .map(|e| e.0)
    }
}

/// The policy.
#[derive(Clone, Debug)]
pub struct CoScheduler {
    options: CoSchedulerOptions,
    common: Common,
    cluster: Cluster,
    /// Recurring jobs as they are foreseen.
    foreseen: BTreeMap<JobId, JobSpec>,
    guides: BTreeMap<JobId, Guide>,
    /// Whether the controller is asked where reduces go: the policy `co-decided`.
    asks: bool,
    /// Questions that have not been taken.
    asked: Vec<AdviceRequest>,
    /// Stages whose tasks wait for an answer.
    unanswered: BTreeSet<(JobId, usize)>,
    /// If guidelines are strict: stages whose racks are chosen, the first choice first, until all
    /// their tasks have started.
    chosen: Vec<(JobId, usize)>,
}

impl CoScheduler {
    /// A policy with parameters; `elephant` is T_e, unless the options have one.
    fn new(options: CoSchedulerOptions, common: Common, elephant: Bytes) -> Self {
        let cluster =
            Cluster { elephant: options.elephant.unwrap_or(elephant), ..Cluster::co_scheduler() };
        Self {
            options,
            common,
            cluster,
            foreseen: BTreeMap::new(),
            guides: BTreeMap::new(),
            asks: false,
            asked: Vec::new(),
            unanswered: BTreeSet::new(),
            chosen: Vec::new(),
        }
    }

    /// The same, but where reduces go is asked of the network's controller
    /// ([`crate::placement::advisor`]).
    fn co_decided(options: CoSchedulerOptions, common: Common, elephant: Bytes) -> Self {
        Self { asks: true, ..Self::new(options, common, elephant) }
    }

    /// A job as far as it is foreseen.
    fn known<'a>(&'a self, view: &'a dyn View, job: JobId) -> &'a JobSpec {
        self.foreseen.get(&job).unwrap_or_else(|| view.job(job))
    }

    /// Whether a job is shuffle-heavy, as far as it is known: by its sizes if it is recurring, else
    /// by its input and the ratio learnt from the maps that have finished.
    fn is_heavy(&self, view: &dyn View, job: JobId) -> bool {
        let spec = self.known(view, job);
        if spec.recurring {
            hybrid::shuffle_heavy(spec, &self.cluster)
        } else {
            self.expected(view, job) >= self.cluster.elephant
        }
    }

    /// The shuffle to expect of a job that never ran before.
    fn expected(&self, view: &dyn View, job: JobId) -> Bytes {
        let (spec, mut sir) = (view.job(job), Sir::starting(self.options.sir));
        for e in &spec.edges {
            let (from, done) = (&spec.stages[e.from], view.counts(job, e.from).finished);
            let part = |b: Bytes| {
                Bytes((u128::from(b.0) * u128::from(done) / u128::from(from.tasks)) as u64)
            };
            if from.input > Bytes::ZERO && done > 0 {
                sir.finished(part(from.input), part(e.bytes));
            }
        }
        sir.shuffle_of(spec.input_bytes())
    }

    /// What the maps of a stage have made, by rack.
    fn output(view: &dyn View, job: JobId, stage: usize) -> Vec<(RackId, Bytes)> {
        let made = output_by_rack(view, job, stage);
        made.into_iter()
            .enumerate()
            .map(|(r, b)| (RackId::from(r), b))
            .filter(|m| m.1.0 > 0)
            .collect()
    }

    /// By rack: when each slot becomes free, from now.
    fn releases(view: &dyn View) -> Vec<Vec<Span>> {
        let (now, racks) = (view.now(), &view.topology().racks);
        racks
            .iter()
            .map(|r| view.releases(r.id).into_iter().map(|t: Time| t.since(now)).collect())
            .collect()
    }

    /// The question to the controller about a stage whose maps are done; nothing if it is not worth
    /// circuits.
    fn question(&self, view: &dyn View, job: JobId, stage: usize) -> Option<AdviceRequest> {
        let (maps, reduces) = (Self::output(view, job, stage), view.job(job).stages[stage].tasks);
        if reduces::widths(&maps, reduces, &self.cluster).is_empty() {
            return None;
        }
        let shuffle = advisor::ShuffleSpec::Open {
            maps,
            by_task: vec![],
            reduces,
            free: Self::releases(view),
            at_most: None,
            waves: true,
        };
        Some(AdviceRequest {
            job,
            stage,
            request: PlacementRequest { shuffle, ready: Span::ZERO, deadline: None },
        })
    }

    /// The best schedule of a stage whose maps are done; `None` if it is not worth circuits.
    fn choose(&self, view: &dyn View, job: JobId, stage: usize) -> Option<Vec<(RackId, u32)>> {
        let maps = Self::output(view, job, stage);
        let spec = view.job(job);
        let tasks = spec.stages[stage].tasks;
        let widths = match spec.recurring {
            true => reduces::recurring_widths(
                &data::matrix(self.known(view, job), &self.cluster),
                &maps,
                tasks,
                &self.cluster,
            ),
            false => reduces::widths(&maps, tasks, &self.cluster),
        };
        let free = Self::releases(view);
        let question = ScheduleQuestion {
            cluster: &self.cluster,
            maps: &maps,
            reduces: tasks,
            widths: &widths,
            free: &free,
        };
        decide(&question, &Idle(&self.cluster)).map(|d| d.best().racks.clone())
    }

    /// A task of this stage on this rack, as Algorithm 2 sees it; nothing if it waits for other
    /// racks.
    fn classify(&self, view: &dyn View, job: JobId, stage: usize, rack: RackId) -> Option<Offer> {
        let heavy = self.is_heavy(view, job);
        let Some(g) = self.guides.get(&job) else {
            return Some(Offer { kind: SlotTask::Map, heavy, guided: false });
        };
        if view.job(job).edges_into(stage).next().is_none() {
            let allowed = || match self.options.strict {
                true => g.maps.open(&g.used).any(|r| r == rack),
                false => g.maps.allows(rack, &g.used),
            };
            let guided = allowed() && self.has_data(view, job, stage, rack);
            let elsewhere = || {
                g.maps
                    .open(&g.used)
                    .any(|r| view.slots(r) > 0 && self.has_data(view, job, stage, r))
            };
            let waits = self.options.strict && heavy && !guided && elsewhere();
            return (!waits).then_some(Offer { kind: SlotTask::Map, heavy, guided });
        }
        let guided = g.open(view, job, stage).any(|r| r == rack);
        let elsewhere = || g.open(view, job, stage).any(|r| view.slots(r) > 0);
        // What its maps really made decides, not what was foreseen.
        let heavy = g.best.get(&stage).is_some_and(Option::is_some);
        let waits = self.options.strict && heavy && !guided && elsewhere();
        (!waits).then_some(Offer { kind: SlotTask::Reduce, heavy, guided })
    }

    /// Keeps a choice of racks. `None`: the shuffle is not worth circuits.
    fn choose_racks(&mut self, job: JobId, stage: usize, racks: Option<Vec<(RackId, u32)>>) {
        let Some(g) = self.guides.get_mut(&job) else { return };
        // Maps that ran again choose again; the turn stays.
        if racks.is_some() && self.options.strict && !self.chosen.contains(&(job, stage)) {
            self.chosen.push((job, stage));
        }
        g.best.insert(stage, racks);
    }

    /// The reduce task that comes before all users: of the first choice of racks that still has
    /// room here.
    ///
    /// A shuffle begins when all its reduces have slots. If two jobs each held slots that the other
    /// waits for, neither would begin; in the order of their choices one of them always gets all of
    /// its own.
    fn first_chosen(&mut self, view: &dyn View, rack: RackId) -> Option<Pick> {
        let guides = &self.guides;
        self.chosen.retain(|&(job, stage)| {
            guides.contains_key(&job) && view.counts(job, stage).pending > 0
        });
        let room = |&(job, stage): &(JobId, usize)| {
            guides[&job].open(view, job, stage).any(|r| r == rack)
                && startable(view, job).any(|s| s == stage)
        };
        self.chosen.iter().copied().find(room).map(|(job, stage)| Pick::of(job, stage))
    }

    /// Whether a pending task of the stage would find its block in the rack.
    fn has_data(&self, view: &dyn View, job: JobId, stage: usize, rack: RackId) -> bool {
        view.locality(job, stage, rack).is_some_and(|n| n < Locality::Remote)
    }
}

impl Placement for CoScheduler {
    fn name(&self) -> &'static str {
        if self.asks { "co-decided" } else { "co-scheduler" }
    }

    fn plan(&mut self, topology: &Topology, jobs: &[JobSpec]) -> Result<(), String> {
        self.cluster = Cluster::of(topology, self.cluster.elephant);
        self.cluster.circuits = self.options.wavelengths.unwrap_or(self.cluster.circuits);
        self.foreseen = jobs.iter().filter(|j| j.recurring).map(|j| (j.id, j.clone())).collect();
        Ok(())
    }

    fn place_data(&mut self, view: &dyn View, job: JobId) -> Vec<Vec<Block>> {
        let (spec, p) = (view.job(job), self.options);
        let (sir, seed) = (Sir::starting(p.sir), hdfs::mixed(self.common.seed, job));
        let d = data::guideline(self.known(view, job), &self.cluster, sir, seed);
        let blocks =
            hdfs::in_racks(view, job, self.common.seed, |s| d.sets.blocks(spec.stages[s].tasks));
        self.guides.insert(
            job,
            Guide { maps: MapGuideline::of(&d), used: Vec::new(), best: BTreeMap::new() },
        );
        blocks
    }

    fn slowstart(&self, _: &dyn View, _: JobId) -> u32 {
        100
    }

    fn offer(&mut self, view: &dyn View, rack: RackId) -> Option<Pick> {
        if let Some(pick) = self.first_chosen(view, rack) {
            return Some(pick);
        }
        let ready: Vec<JobId> = view.ready().collect();
        for user in ready.chunk_by(|a, b| view.job(*a).queue == view.job(*b).queue) {
            let picks: Vec<Pick> = user
                .iter()
                .flat_map(|&job| startable(view, job).map(move |stage| Pick::of(job, stage)))
                .collect();
            let answered =
                picks.into_iter().filter(|p| !self.unanswered.contains(&(p.job, p.stage)));
            let offered =
                answered.filter_map(|p| Some((p, self.classify(view, p.job, p.stage, rack)?)));
            let (picks, offers): (Vec<Pick>, Vec<Offer>) = offered.unzip();
            if let Some(k) = order::pick(offers) {
                return Some(picks[k]);
            }
        }
        None
    }

    fn started(&mut self, view: &dyn View, pick: Pick, rack: RackId, _: Locality) {
        let expected = self.expected(view, pick.job);
        let Some(g) = self.guides.get_mut(&pick.job) else { return };
        if view.job(pick.job).edges_into(pick.stage).next().is_some() {
            return;
        }
        if !view.job(pick.job).recurring {
            g.maps.width = data::width(expected, &self.cluster);
        }
        if !g.used.contains(&rack) {
            g.used.push(rack);
        }
    }

    fn stage_finished(&mut self, view: &dyn View, job: JobId, stage: usize) {
        if is_over(view, job) {
            self.guides.remove(&job);
            return;
        }
        let spec = view.job(job);
        let done = |s: usize| view.counts(job, s).finished == view.counts(job, s).tasks();
        let next: Vec<usize> =
            spec.edges.iter().filter(|e| e.from == stage).map(|e| e.to).collect();
        for to in next.into_iter().filter(|&to| spec.edges_into(to).all(|e| done(e.from))) {
            let question = if self.asks { self.question(view, job, to) } else { None };
            let best =
                if self.asks || self.options.maps_only { None } else { self.choose(view, job, to) };
            self.choose_racks(job, to, best);
            if let Some(q) = question {
                self.unanswered.insert((job, to));
                self.asked.push(q);
            }
        }
    }

    fn take_asks(&mut self) -> Vec<AdviceRequest> {
        std::mem::take(&mut self.asked)
    }

    fn answered(
        &mut self,
        _: &dyn View,
        job: JobId,
        stage: usize,
        racks: Option<Vec<(RackId, u32)>>,
    ) {
        self.unanswered.remove(&(job, stage));
        self.choose_racks(job, stage, racks);
    }

    fn shuffle(&mut self, view: &dyn View, job: JobId, stage: usize) -> FetchStart {
        let counts = view.counts(job, stage);
        let all = || view.topology().racks.iter().map(|r| (r.id, u32::MAX)).collect();
        let best = self.guides.get(&job).and_then(|g| g.best.get(&stage)?.clone());
        let racks: Vec<(RackId, u32)> = best.filter(|_| self.options.strict).unwrap_or_else(all);
        let seats: u64 = racks.iter().map(|&(r, most)| u64::from(view.slots(r).min(most))).sum();
        let crowded =
            seats < u64::from(counts.tasks()) && racks.iter().all(|r| view.free(r.0) == 0);
        if counts.pending == 0 || crowded {
            FetchStart::Start
        } else {
            FetchStart::Hold(view.now() + self.common.patience)
        }
    }
}
