//! NEAT: a task goes to the host where its transfer, predicted by how the network serves its flows,
//! costs least.
//!
//! Munir, He, Raghavendra, Le and Liu, "Network scheduling aware task placement in datacenters",
//! CoNEXT 2016. For each candidate host the completion time of the task's transfer is predicted
//! from what is on its way there ([`predict`]), by how much others are delayed counted in. A host
//! where no flow with less left than the task brings is delayed goes before all others (preferred
//! hosts). Tasks of a coflow are placed one by one, the largest first, and each counts on its host
//! for the next (the sequential heuristic).
//!
//! The paper's full text was not at hand: this follows its abstract, its patent (US 9,940,175) and
//! what PushBox says of it. PushBox compares itself with the version for coflows of least total
//! size first (CCT-TCF). NEAT assumes slots enough. Where there are fewer than tasks, the first job
//! in the order gives its largest waiting task the best free host; it neither waits nor yields.
//!
//! A map task goes where its block is if a slot is free there. Else, and for tasks that receive
//! shuffles, a host costs what its receiving side costs, or the sending side of the nearest replica
//! if that is more.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::coflows::priority::LAST;
use crate::ids::{CoflowId, FlowId, HostId, JobId, RackId};
use crate::placement::hdfs;
use crate::placement::policy::{Block, Locality, Needs, Pick, Placement, View, startable};
use crate::placement::spec::{Common, PolicyOptions};
use crate::topology::Topology;
use crate::units::{Bytes, Span, exact};

pub mod predict;

use predict::{LinkTransfer, Predict, cost};

/// Options of the policy `neat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NeatOptions {
    /// How the network is taken to serve flows: tcf, coflows of least total size first; srpt, least
    /// left first; fair; fcfs; las, least sent first. Tcf if left out.
    pub predict: Predict,
    /// Shortest time between two samples of how far flows are; 100 ms if left out.
    #[serde(serialize_with = "exact")]
    pub sample: Span,
}

impl Default for NeatOptions {
    fn default() -> Self {
        Self { predict: Predict::Tcf, sample: Span::millis(100) }
    }
}

impl PolicyOptions for NeatOptions {
    const BY_HOST: bool = true;

    fn build(&self, common: &Common, _: Bytes) -> Box<dyn Placement> {
        Box::new(Neat { options: *self, slowstart: common.slowstart, seed: common.seed })
    }
}

/// The policy.
pub struct Neat {
    options: NeatOptions,
    slowstart: u32,
    seed: u64,
}

/// A side of a host: what is on its way there, and what it carries.
#[derive(Clone, Debug, Default)]
struct HostSide {
    transfers: Vec<LinkTransfer>,
    /// Tasks of the same coflow: each is delayed by all that a further one brings.
    equals: u32,
    /// Bits a second of payload.
    rate: u64,
}

/// What a host comes to for a task: the smallest is best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Grade {
    /// Whether it is not preferred: a transfer with less left would be delayed.
    delays: bool,
    /// Growth of all completion times, ns.
    cost: u128,
    /// More free slots go before fewer.
    free: Reverse<u32>,
    host: HostId,
}

impl HostSide {
    /// Growth of all completion times in ns, and the least that a transfer here has left.
    fn grade(&self, by: Predict, new: LinkTransfer) -> (u128, u64) {
        let least =
            self.transfers.iter().map(|t| t.left).filter(|&l| l > 0).min().unwrap_or(u64::MAX);
        let bytes =
            cost(by, new, &self.transfers).sum() + u128::from(self.equals) * u128::from(new.left);
        (bytes.saturating_mul(8_000_000_000) / u128::from(self.rate.max(1)), least)
    }
}

impl Neat {
    /// What a host receives, and will for tasks that have slots there: by task; where coflows count
    /// by coflow, and tasks of `own` are equals. O(tasks that receive there).
    fn receives(&self, view: &dyn View, host: HostId, own: (JobId, usize)) -> HostSide {
        let (mut transfers, mut coflows, mut equals) =
            (Vec::new(), BTreeMap::<(JobId, usize), LinkTransfer>::new(), 0);
        for i in view.inputs(host) {
            let left = i.left.0;
            if self.options.predict == Predict::Tcf {
                if (i.job, i.stage) == own {
                    equals += 1;
                    continue;
                }
                let all = coflows.entry((i.job, i.stage)).or_default();
                (all.left, all.total) = (all.left + left, i.coflow.0);
            } else {
                let sent = view.input_of(i.job, i.stage, i.task).0.saturating_sub(left);
                transfers.push(LinkTransfer { sent, left, total: i.coflow.0 });
            }
        }
        transfers.extend(coflows.into_values());
        HostSide { transfers, equals, rate: nic(view, host) }
    }

    /// What a host sends, by coflow; what its flows there have sent that are not at their end yet.
    /// O(flows there).
    fn sends(&self, view: &dyn View, host: HostId) -> HostSide {
        let mut coflows = BTreeMap::<CoflowId, LinkTransfer>::new();
        for f in view.flows_out_of(host) {
            let all = coflows.entry(f.coflow).or_default();
            let total = view.coflow_size(f.job, f.stage).0;
            *all = LinkTransfer { sent: all.sent + f.sent.0, left: all.left + f.left.0, total };
        }
        HostSide { transfers: coflows.into_values().collect(), equals: 0, rate: nic(view, host) }
    }

    /// What a host comes to for a task that reads a block from one of these hosts, if it reads one.
    /// O(tasks that receive there + coflows that leave these hosts).
    fn grade(
        &self,
        view: &dyn View,
        (job, stage, k): (JobId, usize, u32),
        replicas: &[(HostId, HostSide)],
        host: HostId,
    ) -> Grade {
        let bytes = view.input_from_afar(job, stage, k, host).0;
        let new = LinkTransfer { sent: 0, left: bytes, total: view.coflow_size(job, stage).0 };
        let (mut growth, mut least) =
            self.receives(view, host, (job, stage)).grade(self.options.predict, new);
        let others = replicas.iter().filter(|r| r.0 != host);
        if let Some((sending, there)) =
            others.map(|r| r.1.grade(self.options.predict, new)).min_by_key(|g| g.0)
        {
            (growth, least) = (growth.max(sending), least.min(there));
        }
        let growth = if bytes == 0 { 0 } else { growth };
        Grade {
            delays: bytes > 0 && least < bytes,
            cost: growth,
            free: Reverse(view.free_on(host)),
            host,
        }
    }

    /// The best free host for the largest waiting task of a stage. O(flows out of its replicas'
    /// hosts + free hosts x tasks that receive there).
    fn place(&self, view: &dyn View, job: JobId, stage: usize) -> Option<Pick> {
        let hosts: Vec<HostId> =
            view.topology().hosts.iter().map(|h| h.id).filter(|&h| view.free_on(h) > 0).collect();
        let blocks = view.blocks(job, stage);
        if !blocks.is_empty() {
            let local =
                |h: &HostId| view.nearest(job, stage, *h).is_some_and(|n| n.1 == Locality::Host);
            if let Some(&host) =
                hosts.iter().filter(|h| local(h)).min_by_key(|&&h| (Reverse(view.free_on(h)), h))
            {
                return Some(Pick { host: Some(host), ..Pick::of(job, stage) });
            }
        }
        let k = view.largest(job, stage)?;
        let up = blocks.get(k as usize).into_iter().flatten().copied().filter(|&h| view.is_up(h));
        let replicas: Vec<(HostId, HostSide)> = up.map(|h| (h, self.sends(view, h))).collect();
        let best =
            hosts.into_iter().map(|h| self.grade(view, (job, stage, k), &replicas, h)).min()?;
        Some(Pick { host: Some(best.host), task: Some(k), ..Pick::of(job, stage) })
    }
}

/// What a host's interface carries of payload.
fn nic(view: &dyn View, host: HostId) -> u64 {
    let t = view.topology();
    t.payload(t.hosts[host.index()].nic).0
}

/// The priority of a coflow by its size, in tenfold steps from 10 MB.
pub fn level(size: Bytes) -> u8 {
    (0..LAST - 1).find(|&k| size.0 < 10_000_000 * 10u64.pow(k.into())).unwrap_or(LAST - 1)
}

impl Placement for Neat {
    fn name(&self) -> &'static str {
        "neat"
    }

    fn place_data(&mut self, view: &dyn View, job: JobId) -> Vec<Vec<Block>> {
        hdfs::blocks(view, job, self.seed)
    }

    fn slowstart(&self, _: &dyn View, _: JobId) -> u32 {
        self.slowstart
    }

    fn needs(&mut self, _: &Topology) -> Needs {
        Needs { network: true, sample: self.options.sample, ema_percent: 100, ..Needs::default() }
    }

    fn offer(&mut self, view: &dyn View, _: RackId) -> Option<Pick> {
        view.ready()
            .find_map(|job| startable(view, job).find_map(|stage| self.place(view, job, stage)))
    }

    fn prioritise(&mut self, view: &dyn View, hosts: &[HostId]) -> Vec<(CoflowId, FlowId, u8)> {
        let into = hosts.iter().flat_map(|&h| view.flows_into(h));
        into.map(|f| (f.coflow, f.flow, level(view.coflow_size(f.job, f.stage)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn levels_are_tenfold() {
        let sizes =
            [0, 9_999_999, 10_000_000, 99_999_999, 1_000_000_000, 1_000_000_000_000, u64::MAX];
        assert_eq!(sizes.map(|s| level(Bytes(s))), [0, 0, 1, 1, 3, 6, 6]);
    }

    /// Completion times of coflows on one link, the smallest first, of equal ones the first in the
    /// list, as bytes carried until then.
    fn ends(link: &[LinkTransfer]) -> Vec<u128> {
        let mut order: Vec<usize> = (0..link.len()).collect();
        order.sort_by_key(|&k| link[k].total);
        let mut ends = vec![0; link.len()];
        order.into_iter().fold(0u128, |sum, k| {
            ends[k] = sum + u128::from(link[k].left);
            ends[k]
        });
        ends
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        /// Compared with placing the task on every host in turn and adding up when all transfers
        /// end.
        #[test]
        fn the_best_host_is_that_of_brute_force(
            hosts in prop::collection::vec((prop::collection::vec((1u64..50, 0u64..50), 0..5), 1u64..4), 1..6),
            (s, total) in (1u64..40, 0u64..90),
        ) {
            let new = LinkTransfer { sent: 0, left: s, total: s + total };
            let side = |(link, rate): &(Vec<(u64, u64)>, u64)| HostSide {
                transfers: link.iter().map(|&(left, more)| LinkTransfer { sent: more, left, total: left + more }).collect(),
                equals: 0,
                rate: *rate * 1_000_000,
            };
            let brute = |side: &HostSide| {
                let before: u128 = ends(&side.transfers).iter().sum();
                let mut with = side.transfers.clone();
                with.push(new);
                (ends(&with).iter().sum::<u128>() - before) * 8_000_000_000 / u128::from(side.rate)
            };
            let sides: Vec<HostSide> = hosts.iter().map(side).collect();
            for side in &sides {
                let (growth, least) = side.grade(Predict::Tcf, new);
                prop_assert_eq!(growth, brute(side));
                prop_assert_eq!(least, side.transfers.iter().map(|t| t.left).min().unwrap_or(u64::MAX));
            }
        }
    }
}
