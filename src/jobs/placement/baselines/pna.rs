//! PNA: a free slot goes to the task that would move its input over the fewest switches, with a
//! probability that falls with that cost.
//!
//! Shen, Sarker, Yu and Deng, "Probabilistic network-aware task placement for MapReduce
//! scheduling", IEEE CLUSTER 2016. When a slot is free the jobs are asked in their order. A job
//! answers with the task that costs least on this host: bytes x switches between the host and where
//! its input is. That is the nearest replica of a block, or the hosts of the tasks that send to it.
//! With C this cost and C_avg its mean over all hosts with free slots, the task starts with the
//! probability 1 - exp(-C_avg / C), and not at all below a threshold. Else the next job is asked,
//! and this one again after a while. Hit-scheduler compares itself with it.
//!
//! The way between two hosts is fixed, and the loads of links are not looked at. What a running
//! task will have sent is taken as known: the estimate by its progress is exact where tasks send in
//! proportion. Where the threshold would refuse every free host, as it does above 1 - 1/e when all
//! cost the same, the cheapest of them is not held to it. The threshold, the formula and the limit
//! of one reduce task a host are as other papers report them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{HostId, JobId, RackId};
use crate::paths::{SwitchRates, Switches, Units};
use crate::placement::hdfs;
use crate::placement::hit::wave::{Distances, TaskPair};
use crate::placement::policy::{
    Block, JobOrder, OfferAlarm, Pick, Placement, TaskAt, View, startable,
};
use crate::placement::spec::{BadOption, Common, PolicyOptions, outside};
use crate::units::{Bytes, Span, Time, exact};

/// Options of the policy `pna`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PnaOptions {
    /// The lowest probability, in per cent, with which a task may start on a host, 0 to 99; 40 if
    /// left out. Where PNA computes a lower one the task is not drawn, so that the slot waits for a
    /// cheaper task.
    #[schemars(range(max = 99))]
    pub p_min: u32,
    /// Time after which a job that refused a host is asked about it again, at least 1 ms; 1 s if
    /// left out.
    #[serde(serialize_with = "exact")]
    pub retry: Span,
    /// Whether a host has at most one reduce task of a job while another host has a free slot; true
    /// if left out.
    pub spread: bool,
}

impl Default for PnaOptions {
    fn default() -> Self {
        Self { p_min: 40, retry: Span::secs(1), spread: true }
    }
}

impl PolicyOptions for PnaOptions {
    const ORDER: JobOrder = JobOrder::Capacity;
    const BY_HOST: bool = true;

    fn check(&self) -> Vec<BadOption> {
        let short = self.retry < Span::millis(1);
        let retry = || BadOption {
            key: "retry".into(),
            message: format!("a host that was refused is asked about again after {}", self.retry),
            allowed: "1 ms or more".into(),
        };
        outside("p_min", self.p_min.into(), (0, 99)).into_iter().chain(short.then(retry)).collect()
    }

    fn build(&self, common: &Common, _: Bytes) -> Box<dyn Placement> {
        Box::new(Pna::new(*self, common))
    }
}

/// One, as a probability.
const ONE: u64 = 1 << 32;

/// The probability 1 - exp(-`mean` / `cost`) in units of 2^-32, with `mean` = `sum` / `n`; one
/// where the cost is zero. Integers only, so that every machine draws alike: exp(-x) is a power of
/// 1/e times a Taylor series. Exact to 2^-31. O(1).
///
/// ```
/// use heliostat_jobs::placement::baselines::pna::chance;
///
/// let percent = |sum, n, cost| chance(sum, n, cost) * 100 / (1 << 32);
/// // A host that costs as much as the mean, twice, and half as much.
/// assert_eq!((percent(7, 1, 7), percent(7, 1, 14), percent(14, 1, 7)), (63, 39, 86));
/// ```
pub fn chance(sum: u128, n: u64, cost: u128) -> u64 {
    let whole = u128::from(n).saturating_mul(cost);
    if whole == 0 {
        return ONE;
    }
    // Costs beyond 2^90 lose their last digits.
    let shift = (128 - sum.leading_zeros()).max(128 - whole.leading_zeros()).saturating_sub(90);
    let x = ((sum >> shift) << 32) / (whole >> shift).max(1);
    if x >> 32 >= 32 {
        return ONE;
    }
    let unit = 1i128 << 62;
    // exp(-f) of a fraction f in units of 2^-32, in units of 2^-62.
    let exp = |f: i128| {
        let (mut term, mut all) = (unit, unit);
        for k in 1..30 {
            term = -((term * f) >> 32) / k;
            all += term;
        }
        all
    };
    let inverse = exp(1 << 32);
    let whole_part = (0..x >> 32).fold(unit, |p, _| (p * inverse) >> 62);
    let rest = (whole_part * exp((x & 0xffff_ffff) as i128)) >> 62;
    ((unit - rest) >> 30) as u64
}

/// The policy.
pub struct Pna {
    options: PnaOptions,
    slowstart: u32,
    seed: u64,
    /// Switches between hosts.
    far: Option<Distances>,
    refused: BTreeMap<(JobId, usize, HostId), RefusedHost>,
    alarm: OfferAlarm,
}

/// A host that was drawn for a stage, and not taken.
#[derive(Clone, Copy, Debug, Default)]
struct RefusedHost {
    /// Number of times.
    times: u32,
    /// Time until which it is not asked again.
    until: Time,
}

/// What there is to know of a stage to say what its tasks cost.
struct Costs {
    /// Shuffles into the stage.
    shuffles: Vec<IncomingShuffle>,
    /// Pending tasks.
    pending: Vec<u32>,
    /// Hosts on which tasks of the stage run.
    running: Vec<HostId>,
    /// What a task reads, and its blocks.
    input: u64,
}

/// A shuffle into a stage.
struct IncomingShuffle {
    bytes: u64,
    /// By receiving task, if they differ.
    by_receiver: Option<Vec<u64>>,
    senders: u128,
    receivers: u64,
    /// By host, the switches between it and the senders, summed over them.
    far: Vec<u128>,
}

impl IncomingShuffle {
    /// What a task receives.
    fn of(&self, k: u32) -> u64 {
        self.by_receiver.as_ref().map_or(self.bytes / self.receivers, |b| b[k as usize])
    }
}

impl Pna {
    /// A policy with its options; data is placed as HDFS does, drawn from the seed.
    pub fn new(options: PnaOptions, common: &Common) -> Self {
        Self {
            options,
            slowstart: common.slowstart,
            seed: common.seed,
            far: None,
            refused: BTreeMap::new(),
            alarm: OfferAlarm::default(),
        }
    }

    fn far(&mut self, view: &dyn View) -> &Distances {
        self.far.get_or_insert_with(|| {
            let t = view.topology();
            let net = Switches::new(t, Units::default());
            Distances::new(
                &net,
                &SwitchRates::new(&net),
                t.hosts.len(),
                &[TaskPair { from: 0, to: 0, bytes: 0, rate: 0 }],
            )
        })
    }

    /// What is to be known of a stage to say what its tasks cost. O(tasks + senders' hosts x
    /// hosts).
    fn costs(&mut self, view: &dyn View, job: JobId, stage: usize) -> Costs {
        let (mut pending, mut running) = (vec![], vec![]);
        for (k, at) in view.tasks(job, stage).enumerate() {
            match at {
                TaskAt::Pending => pending.push(k as u32),
                TaskAt::Running(h) => running.push(h),
                TaskAt::Finished(_) => {}
            }
        }
        let spec = view.job(job);
        let hosts = view.topology().hosts.len();
        let far = self.far(view);
        let shuffles = spec.edges_into(stage).map(|e| {
            let mut senders: BTreeMap<HostId, u128> = BTreeMap::new();
            let at = view.tasks(job, e.from).filter_map(|at| match at {
                TaskAt::Running(h) | TaskAt::Finished(h) => Some(h),
                TaskAt::Pending => None,
            });
            at.for_each(|h| *senders.entry(h).or_default() += 1);
            let (from, to) = (&spec.stages[e.from], &spec.stages[stage]);
            let far = from_all(far, &senders, hosts);
            IncomingShuffle {
                bytes: e.bytes.0,
                by_receiver: e.by_receiver(),
                senders: from.tasks.into(),
                receivers: to.tasks.into(),
                far,
            }
        });
        let shuffles = shuffles.collect();
        Costs {
            shuffles,
            pending,
            running,
            input: spec.stages[stage].input.0 / u64::from(spec.stages[stage].tasks),
        }
    }

    /// What task `k` of the stage costs on a host, and its bytes.
    fn cost(
        &self,
        view: &dyn View,
        (job, stage, k): (JobId, usize, u32),
        costs: &Costs,
        host: HostId,
    ) -> (u128, u64) {
        let far = self.far.as_ref().expect("the costs were made with it");
        let blocks = view.blocks(job, stage).get(k as usize);
        let nearest = blocks.and_then(|b| {
            b.iter().filter(|&&h| view.is_up(h)).map(|&h| far.between(h, host, 0)).min()
        });
        let read = u128::from(costs.input) * u128::from(nearest.unwrap_or(0));
        let shuffled: u128 = costs
            .shuffles
            .iter()
            .map(|s| u128::from(s.of(k)) * s.far[host.index()] / s.senders)
            .sum();
        (
            read.saturating_add(shuffled),
            costs.input + costs.shuffles.iter().map(|s| s.of(k)).sum::<u64>(),
        )
    }

    /// The task of a job that costs least on a host, if it may start there now.
    fn candidate(
        &mut self,
        view: &dyn View,
        job: JobId,
        all: &[(usize, Costs)],
        host: HostId,
    ) -> Option<Pick> {
        let closed = |(s, _): &(usize, Costs)| {
            self.refused.get(&(job, *s, host)).map(|r| r.until).filter(|&t| t > view.now())
        };
        if let Some(until) = all
            .iter()
            .map(closed)
            .collect::<Option<Vec<Time>>>()
            .and_then(|all| all.into_iter().min())
        {
            self.alarm.by(until);
            return None;
        }
        let tasks = all.iter().flat_map(|(s, c)| c.pending.iter().map(move |&k| (*s, k, c)));
        let rated = tasks.map(|(s, k, c)| {
            let (cost, bytes) = self.cost(view, (job, s, k), c, host);
            (cost, Reverse(bytes), s, k)
        });
        let (cost, _, stage, k) = rated.min()?;
        let costs = &all.iter().find(|(s, _)| *s == stage)?.1;
        let free = || view.topology().hosts.iter().map(|h| h.id).filter(|&h| view.free_on(h) > 0);
        let reduces = self.options.spread && !costs.shuffles.is_empty();
        if reduces && costs.running.contains(&host) && free().any(|h| !costs.running.contains(&h)) {
            return None;
        }
        let refused = self.refused.get(&(job, stage, host)).copied().unwrap_or_default();
        if refused.until > view.now() {
            self.alarm.by(refused.until);
            return None;
        }
        let others = free().map(|h| self.cost(view, (job, stage, k), costs, h).0);
        let (sum, n, least) =
            others.fold((0u128, 0u64, cost), |(s, n, l), c| (s.saturating_add(c), n + 1, l.min(c)));
        let p = chance(sum, n, cost);
        let enough = cost == least || p * 100 >= u64::from(self.options.p_min) * ONE;
        if enough && draw(self.seed, [job.0, stage as u32, k, host.0, refused.times]) < p {
            return Some(Pick { host: Some(host), task: Some(k), ..Pick::of(job, stage) });
        }
        let until = view.now() + self.options.retry;
        self.refused.insert((job, stage, host), RefusedHost { times: refused.times + 1, until });
        self.alarm.by(until);
        None
    }
}

/// By host, the switches between it and all senders, each counted as often as it has tasks.
fn from_all(far: &Distances, senders: &BTreeMap<HostId, u128>, hosts: usize) -> Vec<u128> {
    let at =
        |to: HostId| senders.iter().map(|(&h, &n)| n * u128::from(far.between(h, to, 0))).sum();
    (0..hosts).map(|h| at(HostId::from(h))).collect()
}

/// A number below 2^32, the same for the same seed, job, stage, task, host and attempt.
fn draw(seed: u64, about: [u32; 5]) -> u64 {
    let mut bytes = [0u8; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..28].chunks_mut(4).zip(about).for_each(|(b, n)| b.copy_from_slice(&n.to_le_bytes()));
    u64::from(ChaCha8Rng::from_seed(bytes).random::<u32>())
}

impl Placement for Pna {
    fn name(&self) -> &'static str {
        "pna"
    }

    fn place_data(&mut self, view: &dyn View, job: JobId) -> Vec<Vec<Block>> {
        hdfs::blocks(view, job, self.seed)
    }

    fn slowstart(&self, _: &dyn View, _: JobId) -> u32 {
        self.slowstart
    }

    fn offer(&mut self, view: &dyn View, rack: RackId) -> Option<Pick> {
        let mut hosts: Vec<HostId> = view
            .topology()
            .hosts_of(rack)
            .iter()
            .map(|h| h.id)
            .filter(|&h| view.free_on(h) > 0)
            .collect();
        hosts.sort_by_key(|&h| (Reverse(view.free_on(h)), h));
        let ready: Vec<JobId> = view.ready().collect();
        for job in ready {
            let stages: Vec<usize> = startable(view, job).collect();
            let all: Vec<(usize, Costs)> =
                stages.into_iter().map(|s| (s, self.costs(view, job, s))).collect();
            if let Some(pick) = hosts.iter().find_map(|&h| self.candidate(view, job, &all, h)) {
                return Some(pick);
            }
        }
        None
    }

    fn wake_at(&self) -> Option<Time> {
        self.alarm.at()
    }

    fn woken(&mut self, now: Time) {
        self.alarm.woken(now);
    }

    fn stage_finished(&mut self, _: &dyn View, job: JobId, stage: usize) {
        self.refused.retain(|k, _| (k.0, k.1) != (job, stage));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::graph::Graph;
    use crate::topology::{Core, Topology};
    use crate::units::BitRate;
    use proptest::prelude::*;

    fn percent(p: u64) -> f64 {
        p as f64 * 100.0 / ONE as f64
    }

    #[test]
    fn a_host_of_mean_cost_is_taken_in_63_per_cent_of_the_draws() {
        for (sum, n, cost, expected) in [
            (5, 1, 5, 63.212),
            (5, 1, 10, 39.347),
            (10, 1, 5, 86.466),
            (0, 4, 9, 0.0),
            (9, 3, 0, 100.0),
        ] {
            assert!((percent(chance(sum, n, cost)) - expected).abs() < 0.001, "{sum} {n} {cost}");
        }
        let drawn = (0..20_000).filter(|&k| draw(7, [0, 0, k, 3, 1]) < chance(5, 1, 5)).count();
        assert!((12_400..12_880).contains(&drawn), "{drawn}");
        assert_eq!(draw(1, [1, 2, 3, 4, 5]), draw(1, [1, 2, 3, 4, 5]));
        assert_ne!(draw(1, [1, 2, 3, 4, 5]), draw(1, [1, 2, 3, 4, 6]));
    }

    /// Hit's case study: the map on S1; the first reduce costs 34 on S2 and 102 on S4, if those are
    /// free.
    #[test]
    fn probabilities_of_the_case_study() {
        let mut t = Topology::uniform("t", 2, 2, BitRate(100), BitRate(100), vec![]);
        t.eps.core = Core::Graph(Box::new(Graph::hierarchy(2, 2, 1, BitRate(100), None)));
        let net = Switches::new(&t, Units::default());
        let far = Distances::new(
            &net,
            &SwitchRates::new(&net),
            4,
            &[TaskPair { from: 0, to: 0, bytes: 0, rate: 0 }],
        );
        let units = from_all(&far, &BTreeMap::from([(HostId(0), 1)]), 4);
        let costs: Vec<u128> = units.iter().map(|u| u * 34).collect();
        assert_eq!(costs, [0, 34, 102, 102]);
        let sum = costs[1] + costs[3];
        let p = [costs[1], costs[3]].map(|c| percent(chance(sum, 2, c)));
        assert!((p[0] - 86.466).abs() < 0.001 && (p[1] - 48.658).abs() < 0.001, "{p:?}");
    }

    #[test]
    fn options_are_checked() {
        let bad = PnaOptions { p_min: 100, retry: Span(5), spread: false }.check();
        assert_eq!(bad.iter().map(|b| b.key.as_str()).collect::<Vec<_>>(), ["p_min", "retry"]);
        assert!(PnaOptions::default().check().is_empty());
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        /// Compared with the library's exponential.
        #[test]
        fn chances_are_those_of_the_exponential(sum in 0u64.., n in 1u64..5000, cost in 0u64.., scale in 0u32..50) {
            let (sum, cost) = (u128::from(sum) << scale, u128::from(cost));
            let expected = if cost == 0 { 1.0 } else { 1.0 - (-(sum as f64) / n as f64 / cost as f64).exp() };
            prop_assert!((percent(chance(sum, n, cost)) - 100.0 * expected).abs() < 1e-6);
        }
    }
}
