//! JobPacker's shuffle data aggregation (section 4.2): a reduce task that has its container does
//! not fetch at once. The reduces of a rack begin together, when what they fetch from a map rack is
//! worth a circuit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::cluster::Cluster;
use crate::units::Bytes;

/// When the reduces of a rack that have containers begin to fetch.
///
/// Section 4.2: until "the size of aggregated shuffle data of the reduce tasks reaches the elephant
/// flow threshold", so that "we can use high-bandwidth OCS". It does not say from where this is
/// counted. The threshold is that of a flow between two racks in section 2.2, and section 4.3.1
/// compares it with the bytes of a pair of racks, so `pair` is the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Aggregate {
    /// When what they would fetch from all map racks together reaches T_e.
    Total,
    /// When every map rack gives them T_e now, of those that ever will.
    #[default]
    Pair,
    /// When, besides, what each of these racks leaves for later is nothing or T_e again: the rest
    /// of an elephant would be a mouse. Ours.
    Whole,
}

/// What the reduce tasks of one stage in one rack could fetch.
#[derive(Clone, Copy, Debug)]
pub struct FetchRound<'a> {
    /// By map rack: bytes of the whole stage that are ready and not fetched yet.
    pub ready: &'a [Bytes],
    /// By map rack: bytes of the whole stage that its running maps will make.
    pub coming: &'a [Bytes],
    /// Tasks of this rack that have containers and wait.
    pub waiting: u32,
    /// Tasks that this rack is to run and that have no container yet.
    pub without: u32,
    /// Reduce tasks of the stage, in all racks.
    pub reduces: u32,
    /// Whether every reduce task of the stage has had its container.
    pub all_assigned: bool,
    /// Where T_e is counted.
    pub aggregate: Aggregate,
}

impl FetchRound<'_> {
    /// Whether the waiting tasks may begin to fetch.
    ///
    /// They may when they get T_e as [`Aggregate`] has it; what a map rack leaves for later is what
    /// its maps still make, and what the tasks without a container will fetch. When nothing is to
    /// come they fetch in any case. Map racks that can never give this rack T_e get no circuit, and
    /// are not waited for. If there is no other, the tasks fetch at once, as those of a job that is
    /// not shuffle-heavy do. O(map racks).
    pub fn may_fetch(&self, cluster: &Cluster) -> bool {
        if self.waiting == 0 {
            return false;
        }
        let elephant = |bytes: u128, tasks: u32| {
            bytes * u128::from(tasks) >= u128::from(cluster.elephant.0) * u128::from(self.reduces)
        };
        if self.aggregate == Aggregate::Total {
            let sum = |racks: &[Bytes]| racks.iter().map(|b| u128::from(b.0)).sum::<u128>();
            let (now, later) = (sum(self.ready), sum(self.coming));
            let never =
                !cluster.has_circuits() || !elephant(now + later, self.waiting + self.without);
            let last = later == 0 && (self.without == 0 || self.all_assigned);
            return never || last || elephant(now, self.waiting);
        }
        let worth = |bytes: u128, tasks: u32| {
            self.aggregate == Aggregate::Pair || bytes == 0 || tasks == 0 || elephant(bytes, tasks)
        };
        let racks =
            self.ready.iter().zip(self.coming).map(|(a, b)| (u128::from(a.0), u128::from(b.0)));
        let mut heavy = racks
            .filter(|(a, b)| cluster.has_circuits() && elephant(a + b, self.waiting + self.without))
            .peekable();
        if heavy.peek().is_none() {
            return true;
        }
        heavy.all(|(now, later)| {
            let last = later == 0 && (self.without == 0 || self.all_assigned);
            last || (elephant(now, self.waiting)
                && worth(later, self.waiting)
                && worth(now + later, self.without))
        })
    }
}
