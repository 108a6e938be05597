//! Networks, systems and jobs of an evaluation.

use std::sync::Arc;

use rand::seq::SliceRandom as _;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::Size;
use super::assumptions::Assumptions;
use crate::coflows::elephants::Admit;
use crate::coflows::network::{Network, NetworkKind, Within};
use crate::control::policy::{CircuitPolicy, Estimator, SchedulerKind};
use crate::ids::PlaneId;
use crate::placement::Kind;
use crate::placement::cluster::Cluster;
use crate::placement::corral::Scenario;
use crate::runtime::jobs::errors::Errors;
use crate::runtime::settings::{RunPlan, RunSettings};
use crate::runtime::study::SMALL_JOB;
use crate::scheduler::spec::JobPolicy;
use crate::scheduler::state::Grain;
use crate::topology::{Framing, Plane, StopMode, Topology};
use crate::units::{Bytes, Span, Time};
use crate::workload::coflow_benchmark::{Trace, TraceCoflow};
use crate::workload::job_model::{JobModel, SwimJob};
use crate::workload::jobs::{JobList, JobSpec};
use crate::workload::puma::{self, ShuffleClass};
use crate::workload::synth_jobs::{Mix, SynthJobs, synth_jobs};
use crate::workload::trace_jobs::to_jobs;

/// A system under comparison: how jobs are scheduled, and how the network is.
#[derive(Clone, Debug)]
pub struct System {
    /// Its name in the report.
    pub name: &'static str,
    /// How circuits are decided, and what the network is like.
    pub plan: RunPlan,
    /// The scheduler's.
    pub jobs_by: JobPolicy,
}

/// Jobs of a published mix, or of a trace.
#[derive(Clone, Debug)]
pub struct JobSource {
    /// Sizes and tasks.
    pub mix: Mix,
    /// The first jobs are those of this trace's coflows, which come when those do; the mix says
    /// only what the trace does not.
    pub trace: Option<Arc<Trace>>,
    /// The jobs are drawn from these rows of a trace; the mix says only what they do not.
    pub rows: Option<Arc<[SwimJob]>>,
    /// Bytes in per cent of the trace's or the mix's; tasks compute longer in proportion.
    pub bytes_percent: u64,
    /// Jobs from the first on that come at the beginning, whatever the window.
    pub first: usize,
    /// Small jobs are in queue 0, the others in queue 1.
    pub small_apart: bool,
    /// How many.
    pub jobs: usize,
    /// Time in which they arrive uniformly at random; zero: all at once.
    pub window: Span,
    /// Per cent that are recurring.
    pub recurring: u32,
    /// Jobs that are not come all at once, at the beginning.
    pub ad_hoc_at_once: bool,
    /// Ad-hoc jobs beside them, all at once at the beginning.
    pub beside: Option<AdHocJobs>,
    /// Bytes are divided by this; tasks and times stay.
    pub scale: u64,
    /// What is foreseen wrongly.
    pub errors: Errors,
    /// Only jobs of this class of PUMA.
    pub class: Option<ShuffleClass>,
    /// Whether map tasks read blocks; else their input costs them time only.
    pub reads: bool,
    /// Reduce tasks in per cent of the map tasks, if not the mix's own.
    pub reduce_share: Option<u32>,
    /// Bytes that a map task reads, if not the mix's own.
    pub block: Option<Bytes>,
    /// Whether output is written over the network, as HDFS does.
    pub writes: bool,
    /// What the paper does not print; its window is in `window` already.
    pub free: Assumptions,
}

/// Coflows of Facebook's trace.
pub const TRACE_JOBS: usize = 526;

/// Ad-hoc jobs beside those of a load.
#[derive(Clone, Copy, Debug)]
pub struct AdHocJobs {
    /// Sizes and tasks.
    pub mix: Mix,
    /// How many.
    pub jobs: usize,
    /// Whether they have a queue of their own, the second one; else all jobs share the first.
    pub apart: bool,
}

/// One comparison.
#[derive(Clone, Debug)]
pub struct ExperimentSetting {
    /// Its name in the report.
    pub name: &'static str,
    /// What it is, for people.
    pub about: String,
    /// The network.
    pub topology: Arc<Topology>,
    /// Who runs on it.
    pub systems: Vec<System>,
    /// What they run.
    pub load: JobSource,
    /// What is done with it.
    pub work: SettingWork,
}

/// What is done with the jobs of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingWork {
    /// They are run in virtual time.
    Run,
    /// Corral's planner plans them; nothing runs.
    Plan(Scenario),
    /// What strict priorities use of the network is measured, with this number of tasks that fetch
    /// on each host; no jobs run.
    Concurrency(u32),
    /// One decision of PushBox is timed, with this number of coflows on their way; no jobs run.
    Decide(u32),
    /// The case study of Hit-scheduler's paper, whose hosts have these slots free; no jobs run.
    CaseStudy([u32; 4]),
}

/// At which multiples the ends of a trace's flows are shared again: exactly, a run of PushBox takes
/// four times as long, one of NEAT ten times.
const OF_A_TRACE: Span = Span::millis(50);

impl ExperimentSetting {
    /// What ends of flows leave is shared again at multiples of this only; zero: at once.
    pub fn resolution(&self) -> Span {
        if self.load.trace.is_some() { OF_A_TRACE } else { Span::ZERO }
    }
}

impl JobSource {
    /// A mix with the tasks that belong to it; without errors.
    pub fn new(mix: Mix, jobs: usize, window: Span, recurring: u32, size: Size) -> Self {
        let jobs = (jobs * size.jobs_percent).div_ceil(100);
        Self {
            mix,
            trace: None,
            rows: None,
            bytes_percent: 100,
            first: 0,
            small_apart: false,
            jobs,
            window: size.free.window(window),
            recurring,
            ad_hoc_at_once: false,
            beside: None,
            scale: 1,
            errors: Errors::default(),
            class: None,
            reads: true,
            block: None,
            writes: false,
            reduce_share: None,
            free: size.free,
        }
    }

    /// The jobs of a seed. O(jobs log jobs).
    pub fn draw(&self, seed: u64) -> JobList {
        let mut model = self.free.model(self.mix.preset().model());
        model.recurring = self.recurring;
        model.block = self.block.unwrap_or(model.block);
        model.reduce_share = self.reduce_share.unwrap_or(model.reduce_share);
        // What a task takes besides its data shrinks with that.
        model.setup = Span(model.setup.0 / self.scale.max(1));
        // Of 20 jobs of PUMA, each class has at least four.
        let jobs = if self.class.is_some() { self.jobs.div_ceil(4) * 20 } else { self.jobs };
        let mut list = match (&self.trace, &self.rows) {
            (Some(trace), _) => return self.traced(trace, &model, seed),
            (None, Some(rows)) => sampled(rows, &model, jobs, seed),
            (None, None) => synth_jobs(&SynthJobs {
                mix: self.mix,
                model: model.slower(self.bytes_percent),
                jobs,
                seed,
                mean_gap: Span::ZERO,
            }),
        };
        let window =
            if self.mix == Mix::FacebookJobs { facebook_window(&list) } else { self.window };
        if self.class.is_some() {
            list.jobs.retain(|j| puma::class_of(&j.name) == self.class);
            list.jobs.truncate(self.jobs);
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(1);
        let mut place = |(k, mut job): (usize, JobSpec)| {
            job.arrival = Time(rng.random_range(0..=window.0));
            if k < self.first || self.ad_hoc_at_once && !job.recurring {
                job.arrival = Time::ZERO;
            }
            let smaller = |b: &mut Bytes| {
                *b = Bytes(percent_of(b.0, self.bytes_percent).div_ceil(self.scale))
            };
            job.edges.iter_mut().for_each(|e| smaller(&mut e.bytes));
            job.stages
                .iter_mut()
                .for_each(|s| [&mut s.input, &mut s.output].into_iter().for_each(smaller));
            if !self.reads {
                job.stages.iter_mut().for_each(|s| s.input = Bytes::ZERO);
            }
            self.queued(job)
        };
        let beside = self.beside.map_or(Vec::new(), |b| self.beside(b, seed));
        JobList::new(
            list.name,
            list.jobs.into_iter().enumerate().map(&mut place).chain(beside).collect(),
        )
    }

    /// The jobs of a seed as they come, and as they are foreseen.
    pub fn errors_of(&self, seed: u64) -> (JobList, Vec<JobSpec>) {
        Errors { seed, ..self.errors }.apply(&self.draw(seed))
    }

    /// The ad-hoc jobs beside the others.
    fn beside(&self, beside: AdHocJobs, seed: u64) -> Vec<JobSpec> {
        let AdHocJobs { mix, jobs, apart } = beside;
        let model = JobModel { recurring: 0, ..self.free.model(mix.preset().model()) };
        let list = synth_jobs(&SynthJobs { mix, model, jobs, seed, mean_gap: Span::ZERO });
        list.jobs.into_iter().map(|j| JobSpec { queue: apart.into(), ..j }).collect()
    }

    /// The jobs of a trace of coflows: of windows of it, or of all of it.
    fn traced(&self, trace: &Trace, model: &JobModel, seed: u64) -> JobList {
        let window = self.free.trace_window.unwrap_or(Span::ZERO);
        let mut trace =
            Trace { ports: trace.ports, coflows: of_windows(&trace.coflows, window, seed) };
        trace.coflows.truncate((trace.coflows.len() * self.jobs).div_ceil(TRACE_JOBS));
        for (_, bytes) in trace.coflows.iter_mut().flat_map(|c| &mut c.reducers) {
            bytes.0 = percent_of(bytes.0, self.bytes_percent);
        }
        let mut list = to_jobs("facebook", &trace, model, seed);
        list.jobs = list.jobs.into_iter().map(|j| self.queued(j)).collect();
        list
    }

    /// The job in its queue.
    fn queued(&self, job: JobSpec) -> JobSpec {
        let queue =
            if self.small_apart { u32::from(job.shuffle_bytes() >= SMALL_JOB) } else { job.queue };
        JobSpec { queue, ..job }
    }
}

/// Coflows of windows of a trace that are drawn with replacement and follow one another, as many as
/// the trace has; those of all the trace, if a window has no length. They are numbered from one.
/// O(coflows).
fn of_windows(all: &[TraceCoflow], window: Span, seed: u64) -> Vec<TraceCoflow> {
    let millis = window.0 / 1_000_000;
    let last = all.iter().map(|c| c.arrival_ms).max().unwrap_or(0);
    if millis == 0 {
        return all.to_vec();
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(2);
    let windows = last / millis + 1;
    let mut drawn: Vec<TraceCoflow> = Vec::new();
    for k in 0..windows {
        let from = rng.random_range(0..windows) * millis;
        let within = all.iter().filter(|c| (from..from + millis).contains(&c.arrival_ms));
        drawn.extend(
            within
                .map(|c| TraceCoflow { arrival_ms: c.arrival_ms - from + k * millis, ..c.clone() }),
        );
    }
    drawn.iter_mut().zip(1..).for_each(|(c, id)| c.id = id);
    drawn
}

/// Strata of equal numbers of jobs, by bytes, from which rows of a trace are drawn.
const STRATA: usize = 50;
/// The strata of the largest jobs, whose rows are the same in every draw: else one job, which is in
/// some draws and not in others, decides the makespan.
const TAIL: usize = 3;

/// `jobs` jobs by rows of a trace: as many from each stratum of the shuffles' sizes, drawn with
/// replacement, so that two seeds are independent draws. In the strata of the largest they are the
/// quantiles (k + 1/2) / `jobs` instead. Their order is random. O(rows log rows).
fn sampled(rows: &[SwimJob], model: &JobModel, jobs: usize, seed: u64) -> JobList {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(3);
    let mut sorted: Vec<&SwimJob> = rows.iter().collect();
    sorted.sort_by(|a, b| (a.shuffle, a.input, &a.name).cmp(&(b.shuffle, b.input, &b.name)));
    let n = sorted.len();
    if n == 0 {
        return model.jobs("swim", &[], seed);
    }
    let row = |k: usize| {
        let stratum = k * STRATA / jobs;
        if stratum + TAIL >= STRATA {
            return (2 * k + 1) * n / (2 * jobs);
        }
        let (from, to) = (stratum * n / STRATA, (stratum + 1) * n / STRATA);
        rng.random_range(from..to.max(from + 1))
    };
    let mut drawn: Vec<SwimJob> = (0..jobs).map(row).map(|r| sorted[r].clone()).collect();
    drawn.shuffle(&mut rng);
    // A row that is drawn twice is two jobs.
    drawn.iter_mut().zip(1..).for_each(|(r, k)| r.name = format!("{}-{k}", r.name));
    model.jobs("swim", &drawn, seed)
}

/// Rows of shuffles from 80 MB on: those of FB-2009 have the percentiles of JobPacker's table 1.
pub fn shuffling(rows: Vec<SwimJob>) -> Vec<SwimJob> {
    rows.into_iter().filter(|r| r.shuffle >= Bytes(80_000_000)).collect()
}

/// `percent` per cent of `n`.
fn percent_of(n: u64, percent: u64) -> u64 {
    u64::try_from(u128::from(n) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}

/// The time in which jobs of Facebook's classes arrive: as many bytes a second as in the trace,
/// 35.5 TB in 3629 s.
fn facebook_window(list: &JobList) -> Span {
    let bytes: u128 = list.jobs.iter().map(|j| u128::from(j.shuffle_bytes().0)).sum();
    Span(u64::try_from(bytes * 3_629_000_000_000 / 35_500_000_000_000).unwrap_or(u64::MAX))
}

/// A network of equal racks as a planner sees it, in payload: the papers' simulators know no
/// headers.
pub fn network(name: &str, c: &Cluster) -> Topology {
    let plane = |k| Plane {
        id: PlaneId(k),
        rate: c.ocs,
        delta: c.delta,
        stop: StopMode::NotAllStop,
        duplex: false,
    };
    let mut t = Topology::uniform(name, 0, 0, c.nic, c.core, (0..c.circuits).map(plane).collect());
    (0..c.racks).for_each(|_| t.push_rack(c.hosts as usize, c.slots, c.nic, c.core));
    t.eps.oversubscription_percent = t.oversubscription_percent();
    t.framing = Framing::None;
    t
}

/// A system of the papers on circuits: elephants of T_e wait for a circuit, all else takes the EPS;
/// demand is what was declared.
pub fn system(
    name: &'static str,
    kind: Kind,
    circuits: SchedulerKind,
    interval: Span,
    elephant: Bytes,
) -> System {
    let policy = CircuitPolicy {
        name: name.into(),
        interval,
        lead: Span::millis(5),
        elephant_threshold: elephant,
        demand: Estimator::Declared,
        scheduler: circuits,
        ..CircuitPolicy::default()
    };
    let run = RunSettings { admit: Admit::Wait, ..RunSettings::default() };
    let mut jobs_by = JobPolicy::new(kind);
    jobs_by.settings.grain = Grain::Rack;
    System { name, plan: RunPlan { policy, run, jobs: None }, jobs_by }
}

/// A system on a packet network without circuits, where coflows share by `network`; what that
/// serves alike shares max-min, as the policies in `policies/` have it and TCP does.
pub fn electrical(name: &'static str, kind: Kind, network: NetworkKind) -> System {
    let mut s = system(name, kind, SchedulerKind::EpsOnly, Span::secs(1), Bytes::ZERO);
    s.plan.run.network = Network { kind: network, within: Within::MaxMin, ..Network::default() };
    s
}
