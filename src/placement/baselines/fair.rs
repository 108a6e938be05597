//! Hadoop's Fair Scheduler: the job that holds the fewest slots has the next one, wherever that is.
//!
//! The order of jobs is the queues' business; this policy takes the first that has a task. On the slot's rack the scheduler
//! prefers a task whose block is near, but nobody waits for that. JobPacker calls it F-Hybrid on a hybrid network, and F-EPS on a
//! packet core that is as fast as the circuits.

use super::{first_of, hdfs};
use crate::ids::{JobId, RackId};
use crate::placement::policy::{Block, Pick, Placement, View};

/// The policy.
#[derive(Clone, Debug)]
pub struct Fair {
    name: &'static str,
    slowstart: u32,
    seed: u64,
}

impl Fair {
    /// Under a name; `slowstart` in per cent, `seed` for the placement of data.
    pub fn new(name: &'static str, slowstart: u32, seed: u64) -> Self {
        Self { name, slowstart, seed }
    }
}

impl Placement for Fair {
    fn name(&self) -> &'static str {
        self.name
    }

    fn place_data(&mut self, view: &dyn View, job: JobId) -> Vec<Vec<Block>> {
        hdfs::blocks(view, job, self.seed)
    }

    fn slowstart(&self, _: &dyn View, _: JobId) -> u32 {
        self.slowstart
    }

    fn offer(&mut self, view: &dyn View, _: RackId) -> Option<Pick> {
        first_of(view, |_, _| true)
    }
}
