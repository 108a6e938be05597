//! Sticky: a free slot goes to the job that already has most tasks in the rack, up to a limit.

use heliostat::ids::{JobId, RackId};
use heliostat::placement::hdfs;
use heliostat::placement::policy::{Block, Pick, Placement, View, startable};
use heliostat::placement::spec::{BadOption, Common, PolicyOptions, outside};
use heliostat::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Options of the policy `sticky`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StickyOptions {
    /// Tasks of one stage that a rack runs at once, 1 to 1000; 8 if left out.
    #[schemars(range(min = 1, max = 1000))]
    pub most: u32,
}

impl Default for StickyOptions {
    fn default() -> Self {
        Self { most: 8 }
    }
}

impl PolicyOptions for StickyOptions {
    fn check(&self) -> Vec<BadOption> {
        outside("most", self.most.into(), (1, 1000)).into_iter().collect()
    }

    fn build(&self, common: &Common, _elephant: Bytes) -> Box<dyn Placement> {
        Box::new(Sticky { options: *self, common: common.clone() })
    }
}

/// The policy.
pub struct Sticky {
    options: StickyOptions,
    common: Common,
}

impl Placement for Sticky {
    fn name(&self) -> &'static str {
        "sticky"
    }

    fn place_data(&mut self, view: &dyn View, job: JobId) -> Vec<Vec<Block>> {
        hdfs::blocks(view, job, self.common.seed)
    }

    fn slowstart(&self, _: &dyn View, _: JobId) -> u32 {
        self.common.slowstart
    }

    fn offer(&mut self, view: &dyn View, rack: RackId) -> Option<Pick> {
        let all = view
            .ready()
            .flat_map(|job| startable(view, job).map(move |stage| Pick::of(job, stage)));
        let running = |p: &Pick| view.running_in(p.job, p.stage, rack);
        all.filter(|p| running(p) < self.options.most).min_by_key(|p| std::cmp::Reverse(running(p)))
    }
}
