//! A view on which the largest task of a stage is one that is drawn.

use crate::ids::{HostId, JobId, RackId};
use crate::placement::network::{FlowAt, TaskInput};
use crate::placement::policy::{Block, JobOrder, Locality, Offers, StageCounts, TaskAt, View};
use crate::placement::pushbox::select::drawn;
use crate::topology::Topology;
use crate::units::{BitRate, Bytes, Span, Time};
use crate::workload::jobs::JobSpec;

/// The view, and what decides the draws.
pub struct Drawn<'a>(pub &'a dyn View, pub u64);

/// Methods that give what the view gives.
macro_rules! same {
    ($(fn $name:ident($($arg:ident: $of:ty),*) -> $out:ty;)*) => {
        $(fn $name(&self, $($arg: $of),*) -> $out { self.0.$name($($arg),*) })*
    };
}

impl View for Drawn<'_> {
    fn largest(&self, job: JobId, stage: usize) -> Option<u32> {
        drawn(self.0, (job, stage), self.1)
    }
    same! {
        fn now() -> Time;
        fn topology() -> &Topology;
        fn job(job: JobId) -> &JobSpec;
        fn ready() -> Box<dyn Iterator<Item = JobId> + '_>;
        fn ready_below(size: Bytes) -> Box<dyn Iterator<Item = JobId> + '_>;
        fn counts(job: JobId, stage: usize) -> StageCounts;
        fn tasks(job: JobId, stage: usize) -> Box<dyn Iterator<Item = TaskAt> + '_>;
        fn may_start(job: JobId, stage: usize) -> bool;
        fn is_ahead(job: JobId, stage: usize) -> bool;
        fn locality(job: JobId, stage: usize, rack: RackId) -> Option<Locality>;
        fn nearest(job: JobId, stage: usize, host: HostId) -> Option<(u32, Locality)>;
        fn blocks(job: JobId, stage: usize) -> &[Block];
        fn running_in(job: JobId, stage: usize, rack: RackId) -> u32;
        fn waiting_in(job: JobId, stage: usize, rack: RackId) -> u32;
        fn output_in(job: JobId, stage: usize, rack: RackId) -> u32;
        fn free(rack: RackId) -> u32;
        fn slots(rack: RackId) -> u32;
        fn hosts_up(rack: RackId) -> u32;
        fn hosts_open() -> u32;
        fn offers() -> Offers;
        fn is_up(host: HostId) -> bool;
        fn free_on(host: HostId) -> u32;
        fn released(rack: RackId, n: u32) -> Option<Time>;
        fn releases(rack: RackId) -> Vec<Time>;
        fn shuffling_into(rack: RackId) -> Bytes;
        fn crossing(rack: RackId) -> (Bytes, Bytes);
        fn inputs(host: HostId) -> Box<dyn Iterator<Item = TaskInput> + '_>;
        fn inputs_left(host: HostId) -> Bytes;
        fn flows_into(host: HostId) -> Box<dyn Iterator<Item = FlowAt> + '_>;
        fn flows_out_of(host: HostId) -> Box<dyn Iterator<Item = FlowAt> + '_>;
        fn receive_rate(host: HostId) -> BitRate;
        fn input_of(job: JobId, stage: usize, task: u32) -> Bytes;
        fn input_from_afar(job: JobId, stage: usize, task: u32, host: HostId) -> Bytes;
        fn coflow_size(job: JobId, stage: usize) -> Bytes;
        fn computing_time(job: JobId, stage: usize, task: u32) -> Span;
        fn order(job: JobId) -> JobOrder;
        fn head(job: JobId) -> Option<JobId>;
    }
}
