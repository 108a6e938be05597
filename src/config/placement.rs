//! The `placement` section of policy files: how jobs are scheduled.

use clap::ValueEnum as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Flaws;
use super::policy::{exact, exact_or_null};
use crate::placement::corral::{Provisioning, Scenario};
use crate::placement::latency::hybrid::ShuffleModel;
use crate::placement::spec::{Kind, Planner, Spec};
use crate::scheduler::queues::Order;
use crate::scheduler::spec::{JobPolicy, usual_order};
use crate::scheduler::state::{Grain, Settings};
use crate::units::{Bytes, Span};

/// The most queues with a weight of their own.
const MAX_QUEUES: usize = 10_000;

/// How jobs are scheduled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawPlacement {
    /// Which tasks go where.
    policy: Kind,
    /// Which job is next; the policy's own order if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    order: Option<Order>,
    /// Weights of the queues from queue 0 on; a queue beyond them has 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    weights: Vec<u32>,
    /// Per cent of a stage's tasks that must have finished before tasks of the next get slots, 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 100))]
    slowstart: Option<u32>,
    /// A waiting reduce task fetches again when so many per cent of the map tasks have finished since, 1 to 100; 20 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    fetch: Option<u32>,
    /// Where data goes is drawn from this; 1 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    /// Delay scheduling: how long a job waits for a slot near its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wait: Option<RawWait>,
    /// A shuffle that is held back until more reduce tasks have slots begins after so long at the latest; 30 s if left out.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "exact_or_null")]
    patience: Option<Span>,
    /// A guideline is dropped when more than so many per cent of its hosts are down, 0 to 100; 50 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 100))]
    lost: Option<u32>,
    /// ShuffleWatcher: maps go first while what is on its way into a rack takes longer than this; 1 s if left out.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "exact_or_null")]
    busy: Option<Span>,
    /// Corral, LocalShuffle, JobPacker: what a plan is good at; batch if all planned jobs arrive at once, else online, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    objective: Option<Scenario>,
    /// Corral, LocalShuffle: the price of uneven data, in per cent of the paper's, 0 to 10000; 100 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 10000))]
    imbalance: Option<u64>,
    /// Corral, LocalShuffle: which allocations of racks are laid out: longest (the paper's) or best (those and others); longest if left
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provisioning: Option<Provisioning>,
    /// JobPacker: into how many sub-batches a batch is divided, 1 to 1000; 5 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    sub_batches: Option<u32>,
    /// JobPacker: slots that are planned beyond the estimate, in per cent of it, 0 to 1000; 0 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1000))]
    over_provisioning: Option<u32>,
    /// JobPacker, Co-scheduler: which formula gives the time of a shuffle; bottleneck if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shuffle_model: Option<ShuffleModel>,
    /// Corral, LocalShuffle, JobPacker, Co-scheduler: T_e in plans, more than zero; `elephants.threshold` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "exact_or_null")]
    elephant: Option<Bytes>,
    /// Co-scheduler: the shuffle that is expected of a new job, in per cent of its input, 1 to 10000; 100 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000))]
    sir: Option<u32>,
    /// Co-scheduler: circuits that a port holds at once, 1 to 1000; as many as there are planes if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    wavelengths: Option<u32>,
    /// Co-scheduler: tasks of shuffle-heavy jobs wait for the racks of their guideline; false if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

/// A value that is not the usual one.
fn differs<T: PartialEq>(value: T, usual: T) -> Option<T> {
    (value != usual).then_some(value)
}

/// How long a job waits for a slot near its data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawWait {
    /// For one on a host that holds a block.
    #[serde(serialize_with = "exact")]
    host: Span,
    /// And then for one in the rack of a block.
    #[serde(serialize_with = "exact")]
    rack: Span,
}

impl RawPlacement {
    /// The checked section; what makes no sense goes to `flaws`.
    pub(super) fn check(&self, flaws: &mut Flaws) -> JobPolicy {
        let usual = Spec::new(self.policy);
        let at = |key: &str| vec!["placement".into(), key.into()];
        let slowstart = self.slowstart.unwrap_or(usual.slowstart);
        flaws.unless(slowstart <= 100, at("slowstart"), format!("a slowstart of {slowstart} %"), "0 to 100");
        let fetch_percent = self.fetch.unwrap_or(Settings::default().fetch_percent);
        flaws.unless((1..=100).contains(&fetch_percent), at("fetch"), format!("a fetch of {fetch_percent} %"), "1 to 100");
        let many = self.weights.len() <= MAX_QUEUES && self.weights.iter().all(|&w| (1..=1_000_000).contains(&w));
        flaws.unless(many, at("weights"), "weights that no queue can have", format!("1 to 1000000 each, of at most {MAX_QUEUES} queues"));
        let wait = self.wait.map_or(usual.wait, |w| (w.host, w.rack));
        let lost_percent = self.lost.unwrap_or(usual.lost_percent);
        flaws.unless(lost_percent <= 100, at("lost"), format!("a loss of {lost_percent} %"), "0 to 100");
        let (patience, busy) = (self.patience.unwrap_or(usual.patience), self.busy.unwrap_or(usual.busy));
        let order = self.order.unwrap_or(usual_order(self.policy));
        JobPolicy {
            placement: Spec {
                slowstart,
                seed: self.seed.unwrap_or(usual.seed),
                wait,
                patience,
                lost_percent,
                busy,
                planner: self.check_planner(flaws),
                ..usual
            },
            settings: Settings { order, weights: self.weights.clone(), fetch_percent, grain: Grain::Host },
        }
    }
}

impl RawPlacement {
    /// The planner's options; those that mean nothing under the policy are flaws.
    fn check_planner(&self, flaws: &mut Flaws) -> Planner {
        use Kind::{CoDecided, CoScheduler, Corral, Jobpacker, LocalShuffle};
        let at = |key: &str| vec!["placement".into(), key.into()];
        let mut option = |key: &str, value: Option<u64>, range: std::ops::RangeInclusive<u64>, kinds: &[Kind]| {
            let (low, high) = (*range.start(), *range.end());
            let Some(v) = value else { return };
            flaws.unless(range.contains(&v), at(key), format!("`{key}` of {v}"), format!("{low} to {high}"));
            let names: Vec<String> = kinds.iter().filter_map(Kind::to_possible_value).map(|n| n.get_name().to_owned()).collect();
            let only = format!("only with `policy: {}`", names.join("`, `"));
            flaws.unless(kinds.contains(&self.policy), at(key), format!("`{key}` says nothing under this placement policy"), only);
        };
        let usual = Planner::default();
        option("objective", self.objective.map(|_| 0), 0..=0, &[Corral, LocalShuffle, Jobpacker]);
        option("imbalance", self.imbalance, 0..=10_000, &[Corral, LocalShuffle]);
        option("provisioning", self.provisioning.map(|_| 0), 0..=0, &[Corral, LocalShuffle]);
        option("sub_batches", self.sub_batches.map(u64::from), 1..=1_000, &[Jobpacker]);
        option("over_provisioning", self.over_provisioning.map(u64::from), 0..=1_000, &[Jobpacker]);
        option("shuffle_model", self.shuffle_model.map(|_| 0), 0..=0, &[Jobpacker, CoScheduler, CoDecided]);
        option("elephant", self.elephant.map(|b| b.0), 1..=u64::MAX, &[Corral, LocalShuffle, Jobpacker, CoScheduler, CoDecided]);
        option("sir", self.sir.map(u64::from), 1..=10_000, &[CoScheduler, CoDecided]);
        option("strict", self.strict.map(u64::from), 0..=1, &[CoScheduler, CoDecided]);
        option("wavelengths", self.wavelengths.map(u64::from), 1..=1_000, &[CoScheduler, CoDecided]);
        Planner {
            objective: self.objective,
            imbalance_percent: self.imbalance.unwrap_or(usual.imbalance_percent),
            provisioning: self.provisioning.unwrap_or(usual.provisioning),
            sub_batches: self.sub_batches.unwrap_or(usual.sub_batches),
            over_provisioning_percent: self.over_provisioning.unwrap_or(usual.over_provisioning_percent),
            shuffle_model: self.shuffle_model.unwrap_or(usual.shuffle_model),
            elephant: self.elephant,
            sir_percent: self.sir.unwrap_or(usual.sir_percent),
            wavelengths: self.wavelengths,
            strict: self.strict.unwrap_or(usual.strict),
        }
    }
}

impl From<&JobPolicy> for RawPlacement {
    fn from(p: &JobPolicy) -> Self {
        let (planner, usual) = (p.placement.planner, Planner::default());
        Self {
            policy: p.placement.kind,
            order: Some(p.settings.order),
            weights: p.settings.weights.clone(),
            slowstart: Some(p.placement.slowstart),
            fetch: Some(p.settings.fetch_percent),
            seed: Some(p.placement.seed),
            wait: Some(RawWait { host: p.placement.wait.0, rack: p.placement.wait.1 }),
            patience: Some(p.placement.patience),
            lost: Some(p.placement.lost_percent),
            busy: Some(p.placement.busy),
            objective: planner.objective,
            imbalance: differs(planner.imbalance_percent, usual.imbalance_percent),
            provisioning: differs(planner.provisioning, usual.provisioning),
            sub_batches: differs(planner.sub_batches, usual.sub_batches),
            over_provisioning: differs(planner.over_provisioning_percent, usual.over_provisioning_percent),
            shuffle_model: differs(planner.shuffle_model, usual.shuffle_model),
            elephant: planner.elephant,
            sir: differs(planner.sir_percent, usual.sir_percent),
            wavelengths: planner.wavelengths,
            strict: differs(planner.strict, usual.strict),
        }
    }
}
