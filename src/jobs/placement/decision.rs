//! Where a policy put tasks of a stage, and why: what it expected of that, and what it expected of
//! the placements that lost.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::ids::{JobId, RackId};
use crate::units::{Bytes, Span, Time};

/// The most placements that lost that are kept of a decision: those that came nearest.
pub const MOST_LOST: usize = 5;
/// The most racks of a placement that are named: those with most tasks.
pub const MOST_RACKS: usize = 32;
/// The most decisions that are kept where those of all jobs are wanted: the newest.
pub const MOST_KEPT: usize = 1024;

/// Which decisions are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// None: a run does not pay for what is not asked for.
    #[default]
    None,
    /// Those about one job.
    Job(JobId),
    /// Those about all jobs.
    All,
}

impl Keep {
    /// Whether those about this job are kept.
    pub fn has(self, job: JobId) -> bool {
        match self {
            Self::None => false,
            Self::Job(j) => j == job,
            Self::All => true,
        }
    }
}

/// Why tasks were put where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// They had free slots where their blocks are, or have no blocks.
    Home,
    /// They read over the network, since that ends sooner than waiting for slots at home.
    FromAfar,
    /// They receive, and of all placements that were estimated this one has the least price.
    LeastPrice,
    /// They receive, and no placement was estimated.
    FreeSlots,
}

/// By what a job has its place in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Turn {
    /// From one.
    pub place: u32,
    /// Jobs that had a task which may start.
    pub of: u32,
    /// What decided.
    pub by: OrderedBy,
    /// Its value.
    #[serde(rename = "value_ns")]
    pub value: Span,
}

/// Tasks on a rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RackTasks {
    /// The rack.
    pub rack: RackId,
    /// How many.
    pub tasks: u32,
}

/// Slots that are free on a rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OpenSlots {
    /// The rack.
    pub rack: RackId,
    /// How many.
    pub slots: u32,
}

/// What limits a shuffle, each as if it were alone, and how its bytes go.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Limits {
    /// The pair of racks that takes longest.
    #[serde(rename = "pair_ns")]
    pub pair: Span,
    /// The rack's port that is busy longest, with what is on its way there.
    #[serde(rename = "port_ns")]
    pub port: Span,
    /// The hosts' interfaces.
    #[serde(rename = "interfaces_ns")]
    pub interfaces: Span,
    /// The cable or switch of a graph that is busy longest.
    #[serde(rename = "switches_ns")]
    pub switches: Span,
    /// Pairs of racks that a circuit carries.
    pub circuit_pairs: u32,
    /// What they send.
    pub circuit_bytes: Bytes,
    /// What other pairs send over the core.
    pub core_bytes: Bytes,
}

impl Limits {
    /// The largest of them: how long the shuffle takes.
    pub fn longest(&self) -> Span {
        self.pair.max(self.port).max(self.interfaces).max(self.switches)
    }

    /// Whether a circuit carries some of it.
    pub fn is_lit(&self) -> bool {
        self.circuit_pairs > 0
    }
}

/// A placement that was estimated. Times count from the decision on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Estimate {
    /// Tasks by rack: the 32 racks with most tasks.
    pub racks: Vec<RackTasks>,
    /// Until all tasks have slots.
    #[serde(rename = "slots_ns")]
    pub slots: Span,
    /// How long the shuffle takes from then on.
    #[serde(rename = "shuffle_ns")]
    pub shuffle: Span,
    /// What limits it.
    pub limits: Limits,
    /// How long others wait for it, in all.
    #[serde(rename = "others_ns")]
    pub others: Span,
    /// What decides, the least first: the sum of the three.
    #[serde(rename = "price_ns")]
    pub price: Span,
}

/// Why maps read from afar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Afar {
    /// How long they read.
    #[serde(rename = "reads_ns")]
    pub reads: Span,
    /// How long they would have waited at home.
    #[serde(rename = "waits_ns")]
    pub waits: Span,
}

/// Where tasks of a stage were put at an instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Decision")]
pub struct PlacementDecision {
    /// The job.
    pub job: JobId,
    /// The stage, from 0.
    pub stage: u32,
    /// The instant.
    #[serde(rename = "at_ns")]
    pub at: Time,
    /// The job's place in the order.
    pub turn: Option<Turn>,
    /// Why they are there.
    pub rule: Rule,
    /// Whether they had been promised other slots, which did not come in time.
    pub again: bool,
    /// Tasks by rack: the 32 racks with most tasks.
    pub racks: Vec<RackTasks>,
    /// Of maps: free slots of racks with blocks of the stage, before it got some; of 32 racks.
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
    pub lost: Vec<Estimate>,
}

/// The racks with most tasks. O(racks log racks).
pub fn most(tasks: impl Iterator<Item = (usize, u32)>) -> Vec<RackTasks> {
    let named = tasks
        .filter(|t| t.1 > 0)
        .map(|(rack, tasks)| RackTasks { rack: RackId::from(rack), tasks });
    let mut all: Vec<RackTasks> = named.collect();
    if all.len() > MOST_RACKS {
        all.sort_by_key(|t| (std::cmp::Reverse(t.tasks), t.rack));
        all.truncate(MOST_RACKS);
        all.sort_by_key(|t| t.rack);
    }
    all
}

/// What is planned for maps, and on which racks how many have started.
type PlannedMaps = (PlacementDecision, BTreeMap<RackId, u32>);

/// Decisions of a policy that have not been taken from it.
#[derive(Clone, Debug, Default)]
pub struct Noted {
    /// Which are kept.
    pub keep: Keep,
    made: Vec<PlacementDecision>,
    /// Of maps, by job, stage, and whether they read from afar.
    planned: BTreeMap<(JobId, u32, bool), PlannedMaps>,
}

impl Noted {
    /// Takes note of a decision.
    pub fn made(&mut self, d: PlacementDecision) {
        self.made.push(d);
    }

    /// Takes note of a plan for maps, which counts where one starts. The first plan of an instant
    /// says why.
    pub fn planned(&mut self, d: PlacementDecision) {
        let key = (d.job, d.stage, d.afar.is_some());
        self.planned.entry(key).or_insert((d, BTreeMap::new()));
    }

    /// A map has started as it was planned. O(log).
    pub fn started(&mut self, job: JobId, stage: u32, from_afar: bool, rack: RackId) {
        if let Some((_, racks)) = self.planned.get_mut(&(job, stage, from_afar)) {
            *racks.entry(rack).or_default() += 1;
        }
    }

    /// All, in the order of jobs' maps and then as they were made. What was planned and did not
    /// start is forgotten.
    pub fn take(&mut self) -> Vec<PlacementDecision> {
        let planned = std::mem::take(&mut self.planned).into_values();
        let begun = planned.filter(|p| !p.1.is_empty()).map(|(d, racks)| PlacementDecision {
            racks: most(racks.into_iter().map(|(r, n)| (r.index(), n))),
            ..d
        });
        let mut all: Vec<PlacementDecision> = begun.collect();
        all.append(&mut self.made);
        all
    }
}

/// Decisions that are kept for those who ask.
#[derive(Clone, Debug, Default)]
pub struct KeptDecisions {
    /// Which are kept.
    pub keep: Keep,
    all: VecDeque<PlacementDecision>,
    /// How many were made before the first that is kept.
    before: u64,
}

impl KeptDecisions {
    /// Of none yet.
    pub fn of(keep: Keep) -> Self {
        Self { keep, ..Self::default() }
    }

    /// Keeps these. Those about one job are all kept: they are no more than its tasks. Of all jobs
    /// the oldest are forgotten beyond [`MOST_KEPT`].
    pub fn keep(&mut self, made: Vec<PlacementDecision>) {
        self.all.extend(made);
        while self.keep == Keep::All && self.all.len() > MOST_KEPT {
            self.all.pop_front();
            self.before += 1;
        }
    }

    /// Those that are kept, but for the first `known` that were made.
    pub fn after(&self, known: u64) -> impl Iterator<Item = &PlacementDecision> {
        self.all.iter().skip(usize::try_from(known.saturating_sub(self.before)).unwrap_or(0))
    }

    /// How many were made.
    pub fn made(&self) -> u64 {
        self.before + self.all.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(job: u32) -> PlacementDecision {
        PlacementDecision {
            job: JobId(job),
            stage: 0,
            at: Time(0),
            turn: None,
            rule: Rule::Home,
            again: false,
            racks: vec![],
            open: vec![],
            afar: None,
            estimate: None,
            losers: 0,
            lost: vec![],
        }
    }

    #[test]
    fn the_oldest_of_all_jobs_are_forgotten_and_none_of_one() {
        let made = MOST_KEPT as u64 + 5;
        for (keep, first) in [(Keep::All, 5), (Keep::Job(JobId(1)), 0)] {
            let mut kept = KeptDecisions::of(keep);
            (0..made).for_each(|k| kept.keep(vec![decision(k as u32)]));
            let jobs = |known| kept.after(known).map(|d| u64::from(d.job.0)).collect::<Vec<_>>();
            assert_eq!((kept.made(), jobs(0)), (made, (first..made).collect()));
            assert_eq!((jobs(made - 2), jobs(made)), (vec![made - 2, made - 1], vec![]));
        }
    }

    #[test]
    fn only_maps_that_start_are_decisions_and_the_racks_with_most_are_named() {
        let mut noted = Noted::default();
        noted.planned(decision(0));
        noted.planned(decision(1));
        for rack in (0..40).chain(8..40) {
            noted.started(JobId(1), 0, false, RackId(rack));
        }
        noted.started(JobId(1), 0, true, RackId(0));
        let all = noted.take();
        assert_eq!((all.len(), all[0].job, all[0].racks.len()), (1, JobId(1), MOST_RACKS));
        assert!(all[0].racks.iter().all(|r| r.tasks == 2 && r.rack.0 >= 8), "{:?}", all[0].racks);
        assert_eq!(noted.take(), []);
    }
}
