//! What experiments measure.

use serde::{Deserialize, Serialize};

/// What one run measured.
pub type Measures = std::collections::BTreeMap<Measure, f64>;

/// What is measured of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// From the first arrival to the last finish, s.
    #[serde(rename = "makespan_s")]
    Makespan,
    /// Mean job completion time, s.
    #[serde(rename = "mean_jct_s")]
    MeanJct,
    /// Median job completion time, s.
    #[serde(rename = "median_jct_s")]
    MedianJct,
    /// 95th percentile of the job completion times, s.
    #[serde(rename = "p95_jct_s")]
    P95Jct,
    /// 99th percentile, s.
    #[serde(rename = "p99_jct_s")]
    P99Jct,
    /// Mean job completion time of jobs that shuffle less than 100 MB, s.
    #[serde(rename = "small_jct_s")]
    SmallJct,
    /// Mean job completion time of the others, s.
    #[serde(rename = "large_jct_s")]
    LargeJct,
    /// Mean job completion time of jobs of at most 50 tasks, s.
    FewTasksJct,
    /// Of jobs of 51 to 500 tasks, s.
    SomeTasksJct,
    /// Of jobs of more, s.
    ManyTasksJct,
    /// Mean of the jobs that shuffle T_e or more, s.
    HeavyJct,
    /// Mean of the others, s.
    LightJct,
    /// Mean of the recurring jobs, s.
    MeanRecurring,
    /// 90th percentile of the others, s.
    P90AdHoc,
    /// From the first arrival of the others to their last finish, s.
    MakespanAdHoc,
    /// Time that all tasks held slots, s.
    SlotTime,
    /// Median over jobs of the mean time that their last stage's tasks held slots, s; attempts that
    /// were given up do not count.
    MedianReduceTime,
    /// Coefficient of variation of the racks' input data, %.
    DataSpread,
    /// Median of the recurring jobs, s.
    #[serde(rename = "median_recurring_s")]
    MedianRecurring,
    /// Median of the others, s.
    #[serde(rename = "median_ad_hoc_s")]
    MedianAdHoc,
    /// Mean time of a shuffle from its first flow to its last, s; jobs that finished and sent
    /// nothing count as zero.
    #[serde(rename = "mean_cct_s")]
    MeanCct,
    /// Share of the bytes between racks that went over circuits, %.
    #[serde(rename = "ocs_share_percent")]
    OcsShare,
    /// Bytes that crossed racks, of all that jobs read and shuffle, %.
    #[serde(rename = "crossing_percent")]
    Crossing,
    /// Time that tasks held slots without computing, of all that they held them, %.
    #[serde(rename = "waiting_percent")]
    Waiting,
    /// Time that all slots together need to compute all tasks, s: no makespan is below.
    #[serde(rename = "computing_s")]
    Computing,
    /// Tasks with a block that read it from another rack, %.
    #[serde(rename = "far_percent")]
    Far,
    /// Makespan in per cent of the time in which the jobs arrive.
    #[serde(rename = "overrun_percent")]
    Overrun,
    /// Jobs that did not finish.
    Unfinished,
    /// How far the plan is from its lower bound, %.
    #[serde(rename = "gap_percent")]
    Gap,
    /// Processor time of the planner, s.
    #[serde(rename = "plan_time_s")]
    PlanTime,
    /// Time of one decision about a free slot, us.
    #[serde(rename = "decision_us")]
    Decision,
    /// Bytes of shuffles times the switches and relaying servers that they cross, GB.
    #[serde(rename = "shuffle_cost_gb")]
    ShuffleCost,
    /// Bytes that left all switches of an emulated network, headers and acknowledgements included,
    /// over bytes of its shuffles between racks times the switches that they cross by their lists.
    CountedCost,
    /// Hosts and switches on the way of a shuffle's flow between two hosts, in the mean over flows.
    RouteLength,
    /// [`RouteLength`](Measure::RouteLength) times the delay of a hop, which is [`HOP_MICROS`]:
    /// what a flow's packet needs, us.
    #[serde(rename = "flow_delay_us")]
    FlowDelay,
    /// From the beginning of the run until a quarter of the tasks that read blocks has ended, s.
    #[serde(rename = "first_maps_s")]
    FirstMaps,
    /// Shuffled bytes over the time from the first shuffle's beginning to the last one's end, in
    /// bytes a second: more is better.
    #[serde(rename = "throughput_bytes_per_second")]
    Throughput,
    /// Time that a map task holds its slot, s; attempts that were given up do not count.
    #[serde(rename = "map_time_s")]
    MapTime,
    /// Time that a reduce task holds its slot, s; attempts that were given up do not count.
    #[serde(rename = "reduce_time_s")]
    ReduceTime,
    /// Shuffles in per cent of the bytes that go over the network.
    #[serde(rename = "shuffle_share_percent")]
    ShuffleShare,
    /// Reads of blocks in per cent of the bytes that go over the network.
    #[serde(rename = "read_share_percent")]
    ReadShare,
    /// Of the mean completion time: until the job's first task has a slot, s.
    FirstSlot,
    /// Then until the last of the tasks that wait for no other ends, s.
    Maps,
    /// Then until the task that ends last has a slot, s.
    LastSlot,
    /// Then until it has its input, s.
    LastInput,
    /// Then until it ends, s.
    LastComputing,
    /// Jobs with a shuffle over the network.
    Sending,
    /// Jain's index of the users' mean job completion times: 1 where all are alike, one over the
    /// number of users at worst.
    Jain,
    /// The mean job completion time of the user that has the longest, s.
    SlowestUser,
    /// What hosts receive of what their interfaces carry, %.
    #[serde(rename = "utilisation_percent")]
    Utilisation,
}

/// The parts of a mean job completion time, in the order of a job's course. Each is a mean over the
/// jobs that finished, so that together they are [`Measure::MeanJct`].
pub const PARTS: [Measure; 5] = [
    Measure::FirstSlot,
    Measure::Maps,
    Measure::LastSlot,
    Measure::LastInput,
    Measure::LastComputing,
];

/// The delay of a hop, in microseconds: what Hit-scheduler's paper prints for Capacity, 189 us over
/// 6.5 hops.
pub const HOP_MICROS: f64 = 189.0 / 6.5;

impl Measure {
    /// Whether it is a part of a whole, in per cent.
    pub fn is_share(self) -> bool {
        use Measure::{Crossing, Far, OcsShare, ReadShare, ShuffleShare, Utilisation, Waiting};
        matches!(self, OcsShare | Crossing | Waiting | Far | ShuffleShare | ReadShare | Utilisation)
    }

    /// Whether it is a time of the run, in seconds: it grows with the times of tasks and arrivals.
    pub fn is_time(self) -> bool {
        use Measure::{
            CountedCost, DataSpread, Decision, FlowDelay, Gap, Jain, Overrun, PlanTime,
            RouteLength, Sending, ShuffleCost, Throughput, Unfinished,
        };
        let other = [
            CountedCost,
            DataSpread,
            Decision,
            FlowDelay,
            Gap,
            Jain,
            Overrun,
            PlanTime,
            RouteLength,
            Sending,
            ShuffleCost,
            Throughput,
            Unfinished,
        ];
        !self.is_share() && !other.contains(&self)
    }

    /// Whether a system is better by more of it.
    pub fn more_is_better(self) -> bool {
        matches!(self, Self::Throughput | Self::Jain)
    }
}
