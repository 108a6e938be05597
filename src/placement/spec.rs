//! Placement policies by name, with their parameters: what the `placement` section of a policy file says.

use serde::{Deserialize, Serialize};

use super::baselines::corral::Corral;
use super::baselines::coscheduler::CoScheduler;
use super::baselines::delay::Delay;
use super::baselines::fair::Fair;
use super::baselines::jobpacker::JobPacker;
use super::baselines::shuffle_watcher::ShuffleWatcher;
use super::baselines::tetris::Tetris;
use super::corral::{Provisioning, Scenario};
use super::latency::hybrid::ShuffleModel;
use super::policy::Placement;
use crate::topology::Topology;
use crate::units::{BitRate, Bytes, Span};

/// The policies by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Hadoop's Fair Scheduler; on a hybrid network, F-Hybrid.
    Fair,
    /// Fair on a packet core as fast as the circuits, without circuits.
    FEps,
    /// Queues of capacity and delay scheduling: Yarn-CS.
    Capacity,
    /// Fair with delay scheduling.
    Delay,
    /// Corral's tasks, HDFS's data.
    LocalShuffle,
    /// Each job on the racks between which it moves the fewest bytes.
    ShuffleWatcher,
    /// Packing of slots and network.
    Tetris,
    /// Each planned job's data and tasks on racks of its own.
    Corral,
    /// Widths of maps and reduces that keep shuffles on circuits, planned ahead.
    Jobpacker,
    /// Data, maps and reduces placed so that shuffles use many circuits, decided when the maps are done.
    CoScheduler,
    /// Co-scheduler, with the reduces where the network's controller would have them, by the circuits and coflows that it has.
    CoDecided,
}

/// A placement policy and its parameters. Those that a policy does not use do nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// Which.
    pub kind: Kind,
    /// Per cent of the tasks before that must have finished before a stage gets slots.
    pub slowstart: u32,
    /// Where data goes is drawn from this.
    pub seed: u64,
    /// Delay scheduling: how long a job waits for a slot on a host of its blocks, and then for one in their rack.
    pub wait: (Span, Span),
    /// A shuffle that is held back until more reduce tasks have slots begins after so long at the latest.
    pub patience: Span,
    /// A guideline is dropped when more than so many per cent of the hosts that it names are down.
    pub lost_percent: u32,
    /// ShuffleWatcher: the network into a rack is loaded when what is on its way takes longer than this.
    pub busy: Span,
    /// Options of the planners.
    pub planner: Planner,
}

/// Options of Corral, LocalShuffle, JobPacker and Co-scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planner {
    /// Corral, LocalShuffle, JobPacker: what counts; `None`: the makespan if all planned jobs arrive at once, else the mean completion.
    pub objective: Option<Scenario>,
    /// Corral, LocalShuffle: price of uneven data, alpha, in per cent of the paper's (section 4.5).
    pub imbalance_percent: u64,
    /// Corral, LocalShuffle: which allocations are laid out.
    pub provisioning: Provisioning,
    /// JobPacker: B (section 4.3.2).
    pub sub_batches: u32,
    /// JobPacker: containers beyond the estimate, in per cent of it.
    pub over_provisioning_percent: u32,
    /// JobPacker, Co-scheduler: which formula gives the time of a shuffle.
    pub shuffle_model: ShuffleModel,
    /// All: T_e in plans; `None`: the threshold of the policy's elephants.
    pub elephant: Option<Bytes>,
    /// Co-scheduler: the ratio of shuffle to input that is expected of a new job, in per cent (section IV-D: 1.0).
    pub sir_percent: u32,
    /// Co-scheduler: circuits that a port holds at once, W (section VI); `None`: as many as there are planes.
    pub wavelengths: Option<u32>,
    /// Co-scheduler: a task of a shuffle-heavy job waits for the racks of its guideline, as long as one of them is up. Otherwise any free
    /// slot takes it where nothing else can run (Algorithm 2, lines 8 and 9).
    pub strict: bool,
}

impl Default for Planner {
    /// The papers' values.
    fn default() -> Self {
        let (shuffle_model, objective, elephant, wavelengths) = (ShuffleModel::default(), None, None, None);
        let (imbalance_percent, sub_batches, over_provisioning_percent, sir_percent) = (100, 5, 0, 100);
        let strict = false;
        Self {
            objective,
            imbalance_percent,
            provisioning: Provisioning::Longest,
            sub_batches,
            over_provisioning_percent,
            shuffle_model,
            elephant,
            sir_percent,
            wavelengths,
            strict,
        }
    }
}

impl Spec {
    /// Of a kind, with its usual parameters: a slowstart of 5 per cent as in Hadoop (JobPacker: 70, section 5.2), waits of three seconds
    /// each, as far as the kind waits at all; guidelines are dropped when most of their hosts are down.
    pub fn new(kind: Kind) -> Self {
        let slowstart = if kind == Kind::Jobpacker { 70 } else { 5 };
        let wait = (Span::secs(3), Span::secs(3));
        Self {
            kind,
            slowstart,
            seed: 1,
            wait,
            patience: Span::secs(30),
            lost_percent: 50,
            busy: Span::secs(1),
            planner: Planner::default(),
        }
    }

    /// The policy. `elephant` is the threshold T_e, unless the planner's options have one.
    pub fn build(&self, elephant: Bytes) -> Box<dyn Placement> {
        let (spec, elephant) = (self.clone(), self.planner.elephant.unwrap_or(elephant));
        let (slowstart, seed) = (self.slowstart, self.seed);
        match self.kind {
            Kind::Fair => Box::new(Fair::new("fair", slowstart, seed)),
            Kind::FEps => Box::new(Fair::new("f-eps", slowstart, seed)),
            Kind::Capacity => Box::new(Delay::new("capacity", self.wait, slowstart, seed)),
            Kind::Delay => Box::new(Delay::new("delay", self.wait, slowstart, seed)),
            Kind::LocalShuffle => Box::new(Corral::local_shuffle(spec, elephant)),
            Kind::ShuffleWatcher => Box::new(ShuffleWatcher::new(spec)),
            Kind::Tetris => Box::new(Tetris::new(spec)),
            Kind::Corral => Box::new(Corral::new(spec, elephant)),
            Kind::Jobpacker => Box::new(JobPacker::new(spec, elephant)),
            Kind::CoScheduler => Box::new(CoScheduler::new(spec, elephant)),
            Kind::CoDecided => Box::new(CoScheduler::co_decided(spec, elephant)),
        }
    }

    /// The network that the policy is meant for: F-EPS has an EPS as fast as all circuits of a rack together, and no planes.
    pub fn network(&self, t: &Topology) -> Topology {
        let mut t = t.clone();
        if self.kind == Kind::FEps {
            let fast = t.ocs_rate();
            t.racks.iter_mut().for_each(|r| r.uplink = BitRate(r.uplink.0.max(fast.0)));
            t.planes.clear();
            t.eps.oversubscription_percent = t.oversubscription_percent();
        }
        t
    }
}
