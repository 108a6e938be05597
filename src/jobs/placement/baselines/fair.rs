//! Hadoop's Fair Scheduler: the job that holds the fewest slots has the next one, wherever that is.
//!
//! The order of jobs is the queues' business; this policy takes the first that has a task. On the
//! slot's rack the scheduler prefers a task whose block is near, but no job waits for that.
//! JobPacker calls it F-Hybrid on a hybrid network, and F-EPS on a packet core that is as fast as
//! the circuits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{JobId, RackId};
use crate::placement::hdfs;
use crate::placement::policy::{Block, Pick, Placement, ReduceStart, View, first_of};
use crate::placement::spec::{Common, PolicyOptions};
use crate::topology::Topology;
use crate::units::{BitRate, Bytes};

/// Options of the policy `fair`: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FairOptions {}

impl PolicyOptions for FairOptions {
    const REDUCES: ReduceStart = ReduceStart::RampUp;

    fn build(&self, common: &Common, _: Bytes) -> Box<dyn Placement> {
        Box::new(Fair::new("fair", common.slowstart, common.seed))
    }
}

/// Options of the policy `f-eps`: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FEpsOptions {}

impl PolicyOptions for FEpsOptions {
    const REDUCES: ReduceStart = ReduceStart::RampUp;

    /// An EPS as fast as all circuits of a rack together, and no planes.
    fn network(&self, topology: &Topology) -> Topology {
        let mut t = topology.clone();
        let fast = t.ocs_rate();
        t.racks.iter_mut().for_each(|r| r.uplink = BitRate(r.uplink.0.max(fast.0)));
        t.planes.clear();
        t.eps.oversubscription_percent = t.oversubscription_percent();
        t
    }

    fn build(&self, common: &Common, _: Bytes) -> Box<dyn Placement> {
        Box::new(Fair::new("f-eps", common.slowstart, common.seed))
    }
}

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
