//! How the task scheduler asks a placement policy: one trait, and the view of the cluster that it
//! is given.
//!
//! The scheduler keeps the books (slots, queues, tasks, blocks, shuffles) and knows no strategy; a
//! [`Placement`] knows one and keeps only what it needs for it. It is asked at five moments: before
//! the run (offline planning of recurring jobs), when a job's data is placed, when a rack has a
//! free slot, when a shuffle could start, when the cluster changes.

use super::advisor::PlacementRequest;
use super::decision::{Keep, PlacementDecision};
pub use super::locality::Locality;
pub use super::network::{FlowAt, Needs, TaskInput};
use super::offers::{OfferAnswer, OfferQuestion};
use super::why::Why;
use crate::circuits::external::NoAnswer;
use crate::ids::{CoflowId, FlowId, HostId, JobId, RackId};
use crate::topology::Topology;
use crate::units::{BitRate, Bytes, Span, Time};
use crate::workload::jobs::JobSpec;

/// Offers that a fallback decided, since a program did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unanswered<'a> {
    /// How many.
    pub offers: u64,
    /// Those among them for which the answer was only late.
    pub late: u64,
    /// Why the first of them.
    pub first: Option<&'a str>,
}

/// The hosts that hold a data block: the first replica first. At most one a host; empty only on a
/// network without hosts.
pub type Block = Vec<HostId>;

/// The order in which jobs get slots, as [`View::ready`] gives them.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Default,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Order")]
pub enum JobOrder {
    /// As they came, whatever their queue.
    Fifo,
    /// Queues by slots held over weight, jobs of a queue by slots held.
    #[default]
    Fair,
    /// Queues by slots held over weight, jobs of a queue as they came.
    Capacity,
    /// By the work that has no slot yet, the least first, whatever their queue; what tasks take is
    /// known ahead.
    Srpt,
}

impl JobOrder {
    /// Whether all queues are served as one.
    pub fn is_one_queue(self) -> bool {
        matches!(self, Self::Fifo | Self::Srpt)
    }

    /// Whether the jobs of a queue are served as they came.
    pub fn is_by_arrival(self) -> bool {
        matches!(self, Self::Fifo | Self::Capacity)
    }
}

/// When tasks that wait for the stages before theirs get slots, once the slowstart is reached.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Default,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ReduceStart {
    /// When every task before them has a slot or has ended.
    #[default]
    AllPlaced,
    /// As in Yarn: before the other tasks of their job, in a number that grows with what has
    /// finished; they give way when those before them have no slot left.
    RampUp,
}

/// A task of this stage shall start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// Whose.
    pub job: JobId,
    /// Which stage.
    pub stage: usize,
    /// On this host, in whatever rack; `None`: on the host of the rack that was offered that suits
    /// the stage best. A host without a free slot counts as `None`.
    pub host: Option<HostId>,
    /// This task; `None`: the one whose block is nearest to the host. A task that is not pending
    /// counts as `None`.
    pub task: Option<u32>,
}

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskAt {
    /// Nowhere: it holds no slot and has not finished.
    Pending,
    /// It holds a slot of this host.
    Running(HostId),
    /// It has finished, and its output is on this host.
    Finished(HostId),
}

impl Pick {
    /// Any task of a stage, on any host of the rack that was offered.
    pub fn of(job: JobId, stage: usize) -> Self {
        Self { job, stage, host: None, task: None }
    }
}

/// Whether reduce tasks that hold slots may begin to fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchStart {
    /// What there is to fetch is fetched now, as one coflow.
    Start,
    /// Those in these racks fetch, the others wait on; they are asked about again when a task of
    /// the job starts or finishes, and fetch at this time at the latest.
    Racks(Vec<RackId>, Time),
    /// Not yet; asked again when a task of the job starts or finishes, and at this time at the
    /// latest.
    Hold(Time),
}

/// What a policy asks the controller of the network: where the tasks of a stage shall go.
#[derive(Clone, Debug, PartialEq)]
pub struct AdviceRequest {
    /// Whose.
    pub job: JobId,
    /// Which stage.
    pub stage: usize,
    /// What it will shuffle.
    pub request: PlacementRequest,
}

/// The numbers of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct StageCounts {
    /// Tasks that hold no slot and have not finished.
    pub pending: u32,
    /// Tasks that hold a slot.
    pub running: u32,
    /// Of those, how many wait for (more of) their input and fetch nothing now.
    pub waiting: u32,
    /// Tasks that have finished and need not run again.
    pub finished: u32,
}

impl StageCounts {
    /// All tasks.
    pub fn tasks(&self) -> u32 {
        self.pending + self.running + self.finished
    }
}

/// What hosts with free slots have offered since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// Nanoseconds in which a host had a free slot, over all hosts.
    pub idle: u128,
    /// Slots that have become free.
    pub freed: u64,
}

/// What a policy sees of the cluster. Every question is answered from an index.
pub trait View {
    /// The time.
    fn now(&self) -> Time;
    /// The network.
    fn topology(&self) -> &Topology;
    /// A job that was submitted and has not finished. Others are not known any more, here and
    /// wherever a job is asked about; they have no tasks, and none may start.
    fn job(&self, job: JobId) -> &JobSpec;
    /// Jobs that have a task which may start now, in the order of the queues: who shall have the
    /// next slot comes first.
    fn ready(&self) -> Box<dyn Iterator<Item = JobId> + '_>;
    /// The same jobs in the same order, but for those of which every task that may start would
    /// fetch over the network on any host, for a coflow of at least `size`. Under policies that do
    /// not look at the network, all. O(c log c) of c such jobs if they are few, else O(ready jobs).
    fn ready_below(&self, size: Bytes) -> Box<dyn Iterator<Item = JobId> + '_>;
    /// Number of tasks of a stage by what they do.
    fn counts(&self, job: JobId, stage: usize) -> StageCounts;
    /// Where the tasks of a stage are, by number.
    fn tasks(&self, job: JobId, stage: usize) -> Box<dyn Iterator<Item = TaskAt> + '_>;
    /// Whether a task of the stage could start now if there were a slot. The job's data is placed,
    /// and enough of the stages before this one has finished. No slot was taken from the stage at
    /// this instant since anything moved.
    fn may_start(&self, job: JobId, stage: usize) -> bool;
    /// Whether tasks before those of the stage wait for slots: only under [`ReduceStart::RampUp`]
    /// may it start then.
    fn is_ahead(&self, job: JobId, stage: usize) -> bool;
    /// The nearest that a pending task of the stage would run to its block on a free slot of this
    /// rack; `None` if none is pending. O(hosts of the rack).
    fn locality(&self, job: JobId, stage: usize, rack: RackId) -> Option<Locality>;
    /// The pending task of the stage that a start on this host takes if none is named, the nearest
    /// to its block, and how near that is; `None` if none is pending. O(log hosts), and tasks near
    /// the host that have started elsewhere.
    fn nearest(&self, job: JobId, stage: usize, host: HostId) -> Option<(u32, Locality)>;
    /// The pending task of the stage with the most input, the first among equals. O(1) where tasks
    /// start in this order.
    fn largest(&self, job: JobId, stage: usize) -> Option<u32>;
    /// Where the blocks of a stage are, one a task; empty for a stage that reads none.
    fn blocks(&self, job: JobId, stage: usize) -> &[Block];
    /// Tasks of a stage that hold a slot in the rack.
    fn running_in(&self, job: JobId, stage: usize, rack: RackId) -> u32;
    /// Of those, tasks that wait for (more of) their input and fetch nothing now. O(waiting tasks).
    fn waiting_in(&self, job: JobId, stage: usize, rack: RackId) -> u32;
    /// Finished tasks of a stage whose output is in the rack.
    fn output_in(&self, job: JobId, stage: usize, rack: RackId) -> u32;
    /// Free slots of a rack.
    fn free(&self, rack: RackId) -> u32;
    /// Slots of a rack on hosts that are up.
    fn slots(&self, rack: RackId) -> u32;
    /// Hosts of a rack that are up.
    fn hosts_up(&self, rack: RackId) -> u32;
    /// Hosts of the cluster that have a free slot. O(1).
    fn hosts_open(&self) -> u32;
    /// What hosts with free slots have offered since the beginning. O(1).
    fn offers(&self) -> Offers;
    /// Whether a host is up.
    fn is_up(&self, host: HostId) -> bool;
    /// Free slots of a host; none while it is down.
    fn free_on(&self, host: HostId) -> u32;
    /// When `n` slots of the rack will be free at once, by the estimated remaining times of the
    /// tasks that hold them; `None` if the rack has fewer. O(n log).
    fn released(&self, rack: RackId, n: u32) -> Option<Time>;
    /// When each slot of the rack will be free, in ascending order; a free one is now. O(slots).
    fn releases(&self, rack: RackId) -> Vec<Time>;
    /// Bytes of shuffles that are on their way into the rack from others.
    fn shuffling_into(&self, rack: RackId) -> Bytes;
    /// Bytes of shuffles and blocks that are on their way between the rack and others: into it, and
    /// out of it.
    fn crossing(&self, rack: RackId) -> (Bytes, Bytes);

    // What follows is known only under policies that say so by their needs.

    /// Tasks on the host that have input to come over the network, in the order in which they got
    /// their slots.
    fn inputs(&self, host: HostId) -> Box<dyn Iterator<Item = TaskInput> + '_>;
    /// Bytes that they have still to get. O(1).
    fn inputs_left(&self, host: HostId) -> Bytes;
    /// Flows on their way into the host, in the order of coflow and flow. O(flows log coflows).
    fn flows_into(&self, host: HostId) -> Box<dyn Iterator<Item = FlowAt> + '_>;
    /// Flows on their way out of the host, in the order of coflow and flow. O(flows log coflows).
    fn flows_out_of(&self, host: HostId) -> Box<dyn Iterator<Item = FlowAt> + '_>;
    /// How fast the host receives: a moving average over the time in which something is on its way
    /// to it. It begins at what its NIC can carry of payload, and never falls below a hundredth of
    /// that. O(1).
    fn receive_rate(&self, host: HostId) -> BitRate;
    /// All input of a task, wherever it is: its block, and its share of the shuffles into its
    /// stage. O(incoming edges).
    fn input_of(&self, job: JobId, stage: usize, task: u32) -> Bytes;
    /// Bytes that count which a pending task would fetch over the network, were it on this host;
    /// outputs that are not ready yet are taken to come from elsewhere. O(incoming edges +
    /// replicas).
    fn input_from_afar(&self, job: JobId, stage: usize, task: u32, host: HostId) -> Bytes;
    /// The size of the coflow into a stage, known or expected: all bytes of the shuffles into it;
    /// of blocks, those of its tasks that read now, one at least. O(incoming edges).
    fn coflow_size(&self, job: JobId, stage: usize) -> Bytes;
    /// How long a task will compute.
    fn computing_time(&self, job: JobId, stage: usize, task: u32) -> Span;
    /// The order of the job's queue.
    fn order(&self, job: JobId) -> JobOrder;
    /// The oldest unfinished job of the job's queue; of all queues if they are served as one
    /// ([`JobOrder::is_one_queue`] for all).
    fn head(&self, job: JobId) -> Option<JobId>;
}

/// A placement policy. Methods that have a default are for policies that care.
pub trait Placement: Send {
    /// Its name in results.
    fn name(&self) -> &'static str;

    /// Before the run: plans for the recurring jobs, whose sizes and times are known ahead. `jobs`
    /// are all jobs of the run; a policy looks at those that are recurring only.
    ///
    /// # Errors
    /// Why these jobs cannot be planned on this network.
    fn plan(&mut self, topology: &Topology, jobs: &[JobSpec]) -> Result<(), String> {
        let _ = (topology, jobs);
        Ok(())
    }

    /// Where the data blocks of a job's stages go: by stage, one block a task; an empty list for a
    /// stage without input.
    fn place_data(&mut self, view: &dyn View, job: JobId) -> Vec<Vec<Block>>;

    /// Of the tasks of the stages before, how many per cent must have finished before tasks of a
    /// stage get slots. ([`ReduceStart`] says what else they wait for.)
    fn slowstart(&self, view: &dyn View, job: JobId) -> u32;

    /// A rack has a free slot: a task of which stage shall have it? A policy that thinks of hosts
    /// may name one of any rack. `None`: no task, until a slot of the rack becomes free, a stage
    /// becomes startable, or [`Placement::wake_at`]. Only stages that may start, with a pending
    /// task.
    fn offer(&mut self, view: &dyn View, rack: RackId) -> Option<Pick>;

    /// Tasks of a stage have come to wait for slots, and some slot is free: told before the offers
    /// of this moment, stages in their jobs' order. Only under policies that look at the network.
    fn arrived(&mut self, view: &dyn View, job: JobId, stage: usize) {
        let _ = (view, job, stage);
    }

    /// Strict priorities, 0 (first) to 7, of flows on their way into these hosts, where tasks began
    /// or ended to receive, or where a FIFO queue has another head. What is as it was is not told
    /// again. Only under policies that look at the network.
    fn prioritise(&mut self, view: &dyn View, hosts: &[HostId]) -> Vec<(CoflowId, FlowId, u8)> {
        let _ = (view, hosts);
        Vec::new()
    }

    /// What a program must be asked before the last offer can be decided; `offer` then said `None`,
    /// and is called again for the same rack after [`Placement::advised`].
    fn take_question(&mut self) -> Option<OfferQuestion> {
        None
    }

    /// What the program has answered, or why there is no answer.
    fn advised(&mut self, answer: Result<OfferAnswer, NoAnswer>) {
        let _ = answer;
    }

    /// How many offers the fallback decided, since the program did not.
    fn unanswered(&self) -> Unanswered<'_> {
        Unanswered::default()
    }

    /// Why its last offer was what it was, if it says that.
    fn why(&self) -> Option<&Why> {
        None
    }

    /// From now on notes where it puts tasks of these jobs, and why, if it can say that.
    fn note_decisions(&mut self, keep: Keep) {
        let _ = keep;
    }

    /// What it has noted since the last call.
    fn take_decisions(&mut self) -> Vec<PlacementDecision> {
        Vec::new()
    }

    /// When offers that were declined shall be made again, though nothing happened.
    fn wake_at(&self) -> Option<Time> {
        None
    }

    /// The time of [`Placement::wake_at`] has come: the offers follow. From then on it must lie
    /// ahead.
    fn woken(&mut self, now: Time) {
        let _ = now;
    }

    /// Whether the tasks of a stage that wait for their shuffle may fetch what there is.
    fn shuffle(&mut self, view: &dyn View, job: JobId, stage: usize) -> FetchStart {
        let _ = (view, job, stage);
        FetchStart::Start
    }

    /// The strict priority, 0 (first) to 7, of a coflow of these bytes into a stage that begins
    /// now; `None`: nothing is said.
    fn priority(&self, view: &dyn View, job: JobId, stage: usize, bytes: Bytes) -> Option<u8> {
        let _ = (view, job, stage, bytes);
        None
    }

    /// The data of a job is placed: its tasks may start.
    fn submitted(&mut self, view: &dyn View, job: JobId) {
        let _ = (view, job);
    }

    /// A task started on the rack; the pick names its host and number, whether or not the policy's
    /// own did.
    fn started(&mut self, view: &dyn View, pick: Pick, rack: RackId, near: Locality) {
        let _ = (view, pick, rack, near);
    }

    /// All tasks of a stage have finished.
    fn stage_finished(&mut self, view: &dyn View, job: JobId, stage: usize) {
        let _ = (view, job, stage);
    }

    /// What is to be asked of the controller, since the last call. Each question is answered once,
    /// by [`Placement::answered`].
    fn take_asks(&mut self) -> Vec<AdviceRequest> {
        Vec::new()
    }

    /// Where the controller would have the tasks of a stage; `None`: it cannot say.
    fn answered(
        &mut self,
        view: &dyn View,
        job: JobId,
        stage: usize,
        racks: Option<Vec<(RackId, u32)>>,
    ) {
        let _ = (view, job, stage, racks);
    }

    /// Hosts went down or came up.
    fn cluster_changed(&mut self, view: &dyn View) {
        let _ = view;
    }

    /// What it needs to know of the network; asked once, before the run.
    fn needs(&mut self, topology: &Topology) -> Needs {
        let _ = topology;
        Needs::default()
    }

    /// The racks outside of which no task of this stage may start now; `None`: anywhere. What is
    /// said here is a promise that the scheduler checks at every start; a policy that falls back
    /// says `None`.
    fn guideline(&self, job: JobId, stage: usize) -> Option<&[RackId]> {
        let _ = (job, stage);
        None
    }

    /// Jobs whose guideline was dropped, and why, in the order in which that happened.
    fn fallbacks(&self) -> &[(JobId, String)] {
        &[]
    }
}

/// Between what flows of a stage go.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Flows")]
pub enum FlowGranularity {
    /// Tasks of a stage that start to fetch at one instant on one host share a flow from each
    /// sending host.
    #[default]
    Host,
    /// Each task has flows of its own.
    Task,
}

impl FlowGranularity {
    /// Whether it is the default.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// When offers that were declined shall be made again: the earliest of several times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfferAlarm(Option<Time>);

impl OfferAlarm {
    /// At this time at the latest.
    pub fn by(&mut self, time: Time) {
        self.0 = Some(self.0.map_or(time, |t| t.min(time)));
    }

    /// For [`Placement::wake_at`].
    pub fn at(self) -> Option<Time> {
        self.0
    }

    /// For [`Placement::woken`]: a time that has come is forgotten, and set again by those that are
    /// declined again.
    pub fn woken(&mut self, now: Time) {
        self.0 = self.0.filter(|&t| t > now);
    }
}

/// Stages that may start and have a pending task: first those ahead of the stages before them,
/// which is how Yarn's priorities have it, then in the job's order.
pub fn startable(view: &dyn View, job: JobId) -> impl Iterator<Item = usize> + '_ {
    let stages = 0..view.job(job).stages.len();
    let open = move |ahead: bool| {
        move |&s: &usize| {
            view.is_ahead(job, s) == ahead
                && view.may_start(job, s)
                && view.counts(job, s).pending > 0
        }
    };
    stages.clone().filter(open(true)).chain(stages.filter(open(false)))
}

/// The first job in the queues' order that has something for this rack, and which stage.
pub fn first_of(view: &dyn View, mut fits: impl FnMut(JobId, usize) -> bool) -> Option<Pick> {
    view.ready().find_map(|job| {
        startable(view, job).find(|&s| fits(job, s)).map(|stage| Pick::of(job, stage))
    })
}

/// Whether a job has nothing left to do.
pub fn is_over(view: &dyn View, job: JobId) -> bool {
    (0..view.job(job).stages.len())
        .all(|s| view.counts(job, s).pending + view.counts(job, s).running == 0)
}

/// Of these plans, each for a job on some racks, those to be dropped: more than `percent` of the
/// hosts of their racks are down. With the reason of each.
pub fn lost_plans<'a>(
    view: &dyn View,
    plans: impl Iterator<Item = (JobId, &'a [RackId])>,
    percent: u32,
) -> Vec<(JobId, String)> {
    let over = plans.filter(|(_, racks)| gone(view, racks, percent));
    over.map(|(job, _)| (job, format!("more than {percent} % of the hosts of its racks are down")))
        .collect()
}

/// Whether more than `percent` of the hosts of these racks are down.
pub fn gone(view: &dyn View, racks: &[RackId], percent: u32) -> bool {
    let all: u64 = racks.iter().map(|r| u64::from(view.topology().racks[r.index()].hosts)).sum();
    let up: u64 = racks.iter().map(|&r| u64::from(view.hosts_up(r))).sum();
    (all - up) * 100 > all * u64::from(percent)
}
