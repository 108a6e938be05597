//! Jobs of a task scheduler on this network.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::RackTasks;
use crate::placement::decision;

/// A job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Its number.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Number of its queue.
    pub queue: u32,
    /// How many tasks it has.
    pub tasks: u64,
    /// How many of them have done their work.
    pub tasks_finished: u64,
    /// Slots in which its tasks compute.
    pub computing: u64,
    /// Slots that its tasks hold while they wait for their input.
    pub waiting: u64,
    /// When it was submitted.
    pub arrival_ns: u64,
    /// When its first task got a slot.
    pub started_ns: Option<u64>,
    /// When its last task finished.
    pub finished_ns: Option<u64>,
}

/// What a task scheduler reports of its jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobsReport {
    /// Tells this run of the scheduler from others; a number that is not chosen twice, such as the
    /// time of its beginning.
    pub run: u64,
    /// The scheduler's clock: the zero of times in the report is its own.
    pub now_ns: u64,
    /// Name of the list of jobs.
    pub workload: String,
    /// Name of the placement policy.
    pub policy: String,
    /// Slots in all.
    pub slots: u64,
    /// Jobs that have changed since the report before.
    pub jobs: Vec<Job>,
    /// Where tasks were put since the report before, and why; only some policies say that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 400)]
    pub decisions: Vec<Decision>,
}

/// The jobs of a scheduler: of several at once, of the one that came first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Jobs {
    /// Time of the answer.
    pub now_ns: u64,
    /// Which run of a scheduler they are of.
    pub run: u64,
    /// Name of the list of jobs; empty if no scheduler has reported.
    pub workload: String,
    /// Name of the placement policy.
    pub policy: String,
    /// Slots in all.
    pub slots: u64,
    /// Those that were submitted, by number.
    pub jobs: Vec<Job>,
    /// Who held slots when: one sample for each report.
    pub samples: Vec<SlotsSample>,
}

/// Who held slots at an instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SlotsSample {
    /// The instant, in ns since the start of the run.
    pub at_ns: u64,
    /// By job, those that hold any.
    pub held: Vec<SlotsHeld>,
}

/// The slots that the tasks of a job hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SlotsHeld {
    /// The job's number.
    pub job: u32,
    /// Slots in which its tasks compute.
    pub computing: u64,
    /// Slots that its tasks hold while they wait for their input.
    pub waiting: u64,
}

/// Where tasks were put, and why, as far as the scheduler whose jobs are shown says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Decisions {
    /// Time of the answer.
    pub now_ns: u64,
    /// Which run of a scheduler they are of.
    pub run: u64,
    /// Name of the placement policy; empty if no scheduler has reported.
    pub policy: String,
    /// The jobs that they are about, by number.
    pub jobs: Vec<JobName>,
    /// The decisions, by time.
    pub decisions: Vec<Decision>,
}

/// What a job is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobName {
    /// Its number.
    pub id: u32,
    /// Its name.
    pub name: String,
}

/// Why tasks were put where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlacedBy {
    /// They had free slots where their blocks are, or have no blocks.
    Home,
    /// Reading over the network ends sooner than waiting for slots at home.
    FromAfar,
    /// They receive, and of all placements that were estimated this one has the least price.
    LeastPrice,
    /// They receive, and no placement was estimated.
    FreeSlots,
}

/// By what a job has its place in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OrderedBy {
    /// It has waited for as long as it may: for how long its turn has come.
    Guard,
    /// It would end last of all: how long its path is.
    Path,
    /// The slot time that its tasks without slots need.
    Work,
    /// How long ago it came.
    Arrival,
}

/// The place of a job in the order, when its tasks were placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// From one.
    pub place: u32,
    /// Jobs that had a task which may start.
    pub of: u32,
    /// What decided.
    pub by: OrderedBy,
    /// Its value.
    pub value_ns: u64,
}

/// Slots that are free on a rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenSlots {
    /// The rack.
    pub rack: u32,
    /// How many.
    pub slots: u32,
}

/// Why maps read from afar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Afar {
    /// How long they read.
    pub reads_ns: u64,
    /// How long they would have waited at home.
    pub waits_ns: u64,
}

/// What limits a shuffle, each as if it were alone, and how its bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// The pair of racks that takes longest.
    pub pair_ns: u64,
    /// The rack's port that is busy longest, with what is on its way there.
    pub port_ns: u64,
    /// The hosts' interfaces.
    pub interfaces_ns: u64,
    /// The cable or switch of a graph that is busy longest.
    pub switches_ns: u64,
    /// Pairs of racks that a circuit carries.
    pub circuit_pairs: u32,
    /// What they send.
    pub circuit_bytes: u64,
    /// What other pairs send over the core.
    pub core_bytes: u64,
}

/// A placement that was estimated. Times count from the decision on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// Tasks by rack; the 32 racks with most tasks.
    #[schema(max_items = 32)]
    pub racks: Vec<RackTasks>,
    /// Until all tasks have slots.
    pub slots_ns: u64,
    /// How long the shuffle takes from then on.
    pub shuffle_ns: u64,
    /// What limits it.
    pub limits: Limits,
    /// How long others wait for it, in all.
    pub others_ns: u64,
    /// What decides, the least first: the sum of the three.
    pub price_ns: u64,
}

/// Where tasks of a stage were put at an instant, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// Number of the job.
    pub job: u32,
    /// Number of its stage.
    pub stage: u32,
    /// The instant.
    pub at_ns: u64,
    /// The job's place in the order.
    pub turn: Option<Turn>,
    /// Why they are there.
    pub rule: PlacedBy,
    /// Whether they had been promised other slots, which did not come in time.
    pub again: bool,
    /// Tasks by rack; the 32 racks with most tasks.
    #[schema(max_items = 32)]
    pub racks: Vec<RackTasks>,
    /// Of maps: free slots of racks with blocks of the stage, before it got some; likewise.
    #[schema(max_items = 32)]
    pub open: Vec<OpenSlots>,
    /// Of maps that read from afar: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub afar: Option<Afar>,
    /// Of a stage that receives: what was expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// Placements that lost.
    pub losers: u32,
    /// The five that came nearest, the nearest first.
    #[schema(max_items = 5)]
    pub lost: Vec<Estimate>,
}

impl Decision {
    /// Why it is none, if its lists are too long, or a rack in them has no task.
    pub fn flaw(&self) -> Option<&'static str> {
        let racks = || {
            let estimates = self.estimate.iter().chain(&self.lost);
            estimates.map(|e| &e.racks).chain([&self.racks])
        };
        let most = decision::MOST_RACKS;
        let long = self.lost.len() > decision::MOST_LOST
            || self.open.len() > most
            || racks().any(|r| r.len() > most);
        let empty = racks().flatten().any(|r| r.tasks == 0);
        long.then_some("names more than 32 racks, or more than 5 placements that lost")
            .or(empty.then_some("names a rack without a task; allowed: at least 1 task"))
    }
}

fn tasks(all: &[decision::RackTasks]) -> Vec<RackTasks> {
    all.iter().map(|t| RackTasks { rack: t.rack.0, tasks: t.tasks }).collect()
}

impl From<&decision::Estimate> for Estimate {
    fn from(e: &decision::Estimate) -> Self {
        let l = &e.limits;
        Self {
            racks: tasks(&e.racks),
            slots_ns: e.slots.0,
            shuffle_ns: e.shuffle.0,
            limits: Limits {
                pair_ns: l.pair.0,
                port_ns: l.port.0,
                interfaces_ns: l.interfaces.0,
                switches_ns: l.switches.0,
                circuit_pairs: l.circuit_pairs,
                circuit_bytes: l.circuit_bytes.0,
                core_bytes: l.core_bytes.0,
            },
            others_ns: e.others.0,
            price_ns: e.price.0,
        }
    }
}

impl From<decision::Turn> for Turn {
    fn from(t: decision::Turn) -> Self {
        let by = match t.by {
            decision::OrderedBy::Guard => OrderedBy::Guard,
            decision::OrderedBy::Path => OrderedBy::Path,
            decision::OrderedBy::Work => OrderedBy::Work,
            decision::OrderedBy::Arrival => OrderedBy::Arrival,
        };
        Self { place: t.place, of: t.of, by, value_ns: t.value.0 }
    }
}

impl From<&decision::PlacementDecision> for Decision {
    fn from(d: &decision::PlacementDecision) -> Self {
        let rule = match d.rule {
            decision::Rule::Home => PlacedBy::Home,
            decision::Rule::FromAfar => PlacedBy::FromAfar,
            decision::Rule::LeastPrice => PlacedBy::LeastPrice,
            decision::Rule::FreeSlots => PlacedBy::FreeSlots,
        };
        let open = |o: &decision::OpenSlots| OpenSlots { rack: o.rack.0, slots: o.slots };
        Self {
            job: d.job.0,
            stage: d.stage,
            at_ns: d.at.0,
            turn: d.turn.map(Into::into),
            rule,
            again: d.again,
            racks: tasks(&d.racks),
            open: d.open.iter().map(open).collect(),
            afar: d.afar.map(|a| Afar { reads_ns: a.reads.0, waits_ns: a.waits.0 }),
            estimate: d.estimate.as_ref().map(Into::into),
            losers: d.losers,
            lost: d.lost.iter().map(Into::into).collect(),
        }
    }
}
