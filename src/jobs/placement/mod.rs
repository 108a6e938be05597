//! Placement: where data and tasks go.
//!
//! Each published system, and each baseline, is a file or folder; what they share (latency response
//! functions, replicas, slot calendars) is there once. Planners are pure functions of jobs and a
//! cluster; the executor beside each carries its plan out as a [`Placement`]. The table at the end
//! of this file names every policy.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::paths::Units;
use crate::topology::Topology;
use crate::units::Bytes;

pub mod advisor;
pub mod baselines;
pub mod calendar;
pub mod cluster;
pub mod corral;
pub mod coscheduler;
pub mod decision;
pub mod external;
pub mod hdfs;
pub mod hit;
pub mod jobpacker;
pub mod joint;
pub mod latency;
pub mod locality;
pub mod network;
pub mod offers;
pub mod policy;
pub mod pushbox;
pub mod registry;
pub mod replicas;
pub mod spec;
pub mod why;

use policy::{FlowGranularity, JobOrder, Placement, ReduceStart};
use registry::policies;
use spec::{BadOption, Common, PolicyOptions as _};

// A new policy is a file here with its options, its `mod` above and its line below, a file in
// policies/, and its row in docs/scheduler.md.
policies! {
    /// Hadoop's Fair Scheduler; on a hybrid network, F-Hybrid.
    Fair = "fair" => baselines::fair::FairOptions,
    /// Fair on a packet core as fast as the circuits, without circuits.
    FEps = "f-eps" => baselines::fair::FEpsOptions,
    /// Queues of capacity and delay scheduling: Yarn-CS.
    Capacity = "capacity" => baselines::delay::CapacityOptions,
    /// Fair with delay scheduling.
    Delay = "delay" => baselines::delay::DelayOptions,
    /// Corral's tasks, HDFS's data.
    LocalShuffle = "local-shuffle" => corral::executor::LocalShuffleOptions,
    /// Each job on the racks between which it moves the fewest bytes.
    ShuffleWatcher = "shuffle-watcher" => baselines::shuffle_watcher::ShuffleWatcherOptions,
    /// Packing of slots and network.
    Tetris = "tetris" => baselines::tetris::TetrisOptions,
    /// Tasks whose input crosses few switches, with a probability that falls with that cost.
    Pna = "pna" => baselines::pna::PnaOptions,
    /// Tasks on the hosts where their transfers are predicted to cost least.
    Neat = "neat" => baselines::neat::NeatOptions,
    /// Each planned job's data and tasks on racks of its own.
    Corral = "corral" => corral::executor::CorralOptions,
    /// Widths of maps and reduces that keep shuffles on circuits, planned ahead.
    Jobpacker = "jobpacker" => jobpacker::executor::JobPackerOptions,
    /// Data, maps and reduces placed so that shuffles use many circuits, decided when the maps are
    /// done.
    CoScheduler = "co-scheduler" => coscheduler::executor::CoSchedulerOptions,
    /// Co-scheduler, with the reduces where the network's controller would have them, by the
    /// circuits and coflows that it has.
    CoDecided = "co-decided" => coscheduler::executor::CoDecidedOptions,
    /// Tasks on hosts whose shuffles cross few switches, by a stable matching.
    Hit = "hit" => hit::executor::HitOptions,
    /// Few tasks that fetch on a host at once, by strict priority, and others that compute
    /// meanwhile.
    Pushbox = "pushbox" => pushbox::PushBoxOptions,
    /// Ours: the least remaining work first, late reduces where their shuffles end first, and
    /// circuits for them.
    Joint = "joint" => joint::executor::JointOptions,
    /// A program of the user's says which task starts where.
    External = "external" => external::ExternalOptions,
}
