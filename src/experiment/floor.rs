//! What no scheduler can be below: bounds on the completion times of a setting's jobs, whatever is
//! decided.
//!
//! Three bounds, of which each figure takes the largest:
//!
//! - *path*: a job alone in the cluster. Its stages compute one after another, since a task waits
//!   for all tasks before it; a stage takes as long as its longest task, and as its work over all
//!   slots.
//! - *network by port*: of a MapReduce some host has the most maps, q of them. They take as many
//!   waves as its slots need for q, and a reduce task receives at least what the other maps send
//!   it, through one interface. The bound is the least over q. If reduces get slots only when all
//!   maps are done, what they receive comes after the maps; else it may come meanwhile.
//! - *work*: of the mean, all slots as one machine that serves the least remaining work first; of
//!   the makespan, what is still to be computed when a job arrives.
//!
//! The network counts where flows go between hosts and there are no circuits. That jobs wait for
//! each other's bytes, or for an order that a queue has, no bound knows: what is left above a floor
//! need not be reachable.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::measure::{Measure, Measures};
use super::setting::ExperimentSetting;
use crate::runtime::study::SMALL_JOB;
use crate::scheduler::state::Grain;
use crate::topology::Topology;
use crate::units::Span;
use crate::workload::jobs::{EdgeSpec, JobSpec, StageSpec};

/// What bounds a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClusterBounds {
    /// Slots of all hosts, and of the host that has the most.
    slots: (f64, u64),
    /// Hosts.
    hosts: f64,
    /// Bytes of payload a second into a host; none: the network does not count.
    port: Option<f64>,
    /// Reduces receive only when all maps are done.
    late: bool,
}

impl ClusterBounds {
    /// Of a setting, for all its systems.
    pub fn of(s: &ExperimentSetting) -> Self {
        let by_host = s.topology.planes.is_empty()
            && s.systems.iter().all(|y| y.jobs_by.settings.grain == Grain::Host);
        Self::new(
            &s.topology,
            by_host,
            s.systems.iter().all(|y| y.jobs_by.placement.common.slowstart == 100),
        )
    }

    fn new(t: &Topology, by_host: bool, late: bool) -> Self {
        let slots = t.hosts.iter().map(|h| u64::from(h.slots));
        let port = t.hosts.iter().map(|h| t.payload(h.nic).0).max();
        Self {
            slots: (slots.clone().sum::<u64>().max(1) as f64, slots.max().unwrap_or(1).max(1)),
            hosts: t.hosts.len().max(1) as f64,
            port: port.filter(|_| by_host).map(|bits| bits as f64 / 8.0),
            late,
        }
    }

    /// The least time of a stage whose tasks all have what they wait for, s.
    fn phase(&self, s: &StageSpec) -> f64 {
        seconds(s.times.longest()).max(seconds(s.times.total(s.tasks)) / self.slots.0)
    }

    /// The least completion time of a job, s. O(stages x edges); of a MapReduce, O(reduce tasks x
    /// waves of one host's maps).
    fn path(&self, job: &JobSpec) -> f64 {
        let mut ends: Vec<f64> = Vec::new();
        // Edges go from earlier stages to later ones.
        for (k, s) in job.stages.iter().enumerate() {
            let begins = job
                .edges_into(k)
                .map(|e| ends.get(e.from).copied().unwrap_or(0.0))
                .fold(0.0, f64::max);
            ends.push(begins + self.phase(s));
        }
        let path = ends.into_iter().fold(0.0, f64::max);
        let ([map, reduce], [edge], Some(port)) = (&job.stages[..], &job.edges[..], self.port)
        else {
            return path;
        };
        path.max(self.map_reduce((map, reduce), edge, port))
    }

    fn map_reduce(
        &self,
        (map, reduce): (&StageSpec, &StageSpec),
        edge: &EdgeSpec,
        port: f64,
    ) -> f64 {
        let all = u64::from(map.tasks);
        let even = || {
            (0..u64::from(reduce.tasks))
                .map(|k| (edge.bytes.0 + k) / u64::from(reduce.tasks))
                .collect()
        };
        let bytes: Vec<u64> = edge.by_receiver().unwrap_or_else(even);
        let shortest = (0..map.tasks as usize).map(|k| map.times.of(k)).min().map_or(0.0, seconds);
        let computes = |k: usize| seconds(reduce.times.of(k));
        // More maps in the last wave of the busiest host take no longer, and leave less to send.
        let waves = all.div_ceil(self.slots.1);
        let of = |wave: u64| {
            let far = 1.0 - (wave * self.slots.1).min(all) as f64 / all as f64;
            let maps = self.phase(map).max(wave as f64 * shortest);
            let receives = |k: usize| bytes[k] as f64 * far / port;
            let all_receive =
                bytes.iter().map(|&b| b as f64).sum::<f64>() * far / (port * self.hosts);
            let each = (0..bytes.len()).map(|k| match self.late {
                true => maps + receives(k) + computes(k),
                false => (shortest + receives(k)).max(maps) + computes(k),
            });
            let together = if self.late { maps + all_receive } else { shortest + all_receive };
            each.fold(together.max(maps + self.phase(reduce)), f64::max)
        };
        (1..=waves).map(of).fold(f64::INFINITY, f64::min)
    }
}

fn seconds(t: Span) -> f64 {
    t.as_secs_f64()
}

/// What no scheduler can be below, in seconds, of jobs that arrive as they say. O(jobs log jobs),
/// and a job's path each.
pub fn floors(c: &ClusterBounds, jobs: &[JobSpec]) -> Measures {
    if jobs.is_empty() {
        return Measures::new();
    }
    let paths: Vec<(&JobSpec, f64)> = jobs.iter().map(|j| (j, c.path(j))).collect();
    let mut sorted: Vec<f64> = paths.iter().map(|p| p.1).collect();
    sorted.sort_by(f64::total_cmp);
    let rank = |percent: usize| sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1];
    let mean = |keep: &dyn Fn(&JobSpec) -> bool| {
        let of: Vec<f64> = paths.iter().filter(|p| keep(p.0)).map(|p| p.1).collect();
        (!of.is_empty()).then(|| of.iter().sum::<f64>() / of.len() as f64)
    };
    let mut out = BTreeMap::from([
        (Measure::Makespan, makespan(c, &paths)),
        (Measure::MeanJct, mean(&|_| true).unwrap_or(0.0).max(least_work_first(c, jobs))),
        (Measure::MedianJct, rank(50)),
        (Measure::P95Jct, rank(95)),
        (Measure::P99Jct, rank(99)),
    ]);
    let some = [
        (Measure::SmallJct, mean(&|j| j.shuffle_bytes() < SMALL_JOB)),
        (Measure::LargeJct, mean(&|j| j.shuffle_bytes() >= SMALL_JOB)),
    ];
    out.extend(some.into_iter().filter_map(|(m, v)| Some((m, v?))));
    out
}

/// From the first arrival to the last end: the path of any job, and what is to be computed from any
/// arrival on.
fn makespan(c: &ClusterBounds, paths: &[(&JobSpec, f64)]) -> f64 {
    let at = |j: &JobSpec| j.arrival.0 as f64 / 1e9;
    let mut by_arrival: Vec<(f64, f64)> =
        paths.iter().map(|p| (at(p.0), seconds(p.0.work()) / c.slots.0)).collect();
    by_arrival.sort_by(|a, b| b.0.total_cmp(&a.0));
    let first = by_arrival.last().map_or(0.0, |a| a.0);
    let (mut work, mut end) = (0.0, paths.iter().map(|p| at(p.0) + p.1).fold(0.0, f64::max));
    for (arrival, more) in by_arrival {
        work += more;
        end = f64::max(end, arrival + work);
    }
    end - first
}

/// The mean completion time on one machine as fast as all slots, which serves the job with the
/// least left first.
fn least_work_first(c: &ClusterBounds, jobs: &[JobSpec]) -> f64 {
    let mut by_arrival: Vec<(u64, u64)> =
        jobs.iter().map(|j| (j.arrival.0, (seconds(j.work()) / c.slots.0 * 1e9) as u64)).collect();
    by_arrival.sort_unstable();
    let (mut open, mut now, mut sum) = (BinaryHeap::<Reverse<(u64, u64)>>::new(), 0u64, 0.0);
    let mut next = by_arrival.into_iter().peekable();
    while next.peek().is_some() || !open.is_empty() {
        let until = next.peek().map_or(u64::MAX, |n| n.0);
        match open.pop() {
            Some(Reverse((left, arrival))) if now + left <= until => {
                now += left;
                sum += (now - arrival) as f64 / 1e9;
                continue;
            }
            Some(Reverse((left, arrival))) => open.push(Reverse((left - (until - now), arrival))),
            None => {}
        }
        now = until;
        open.extend(next.next().map(|(arrival, work)| Reverse((work, arrival))));
    }
    sum / jobs.len() as f64
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::coflows::network::NetworkKind;
    use crate::placement::Kind;
    use crate::runtime::jobs::simulate::{SimulatedJobs, simulate};
    use crate::scheduler::queues::JobOrder;
    use crate::setting::electrical;
    use crate::topology::Framing;
    use crate::units::{BitRate, Bytes, Time};
    use crate::workload::jobs::{JobList, TaskTimes};

    fn job(
        at: u64,
        (maps, map_ms): (u32, u64),
        (reduces, reduce_ms): (u32, u64),
        bytes: u64,
    ) -> JobSpec {
        let stage = |name: &str, tasks, ms| StageSpec {
            name: name.into(),
            tasks,
            times: TaskTimes::Even(Span::millis(ms)),
            input: Bytes::ZERO,
            output: Bytes::ZERO,
            streams: false,
        };
        JobSpec::map_reduce(
            "j",
            Time::ZERO + Span::millis(at),
            stage("map", maps, map_ms),
            stage("reduce", reduces, reduce_ms),
            Bytes(bytes),
        )
    }

    fn flat(hosts: usize, slots: u32) -> Topology {
        let rate = BitRate::mbit(8);
        let mut t = Topology::uniform("t", 0, 0, rate, rate, vec![]);
        (0..hosts).for_each(|_| t.push_rack(1, slots, rate, rate));
        t.framing = Framing::None;
        t
    }

    #[test]
    fn by_hand() {
        // Two hosts of two slots, 1 MB/s; four maps of 1 s, one reduce of 2 s with 4 MB.
        let c = |late| ClusterBounds::new(&flat(2, 2), true, late);
        let j = job(0, (4, 1000), (1, 2000), 4_000_000);
        // Maps on both hosts: a second, and 2 MB from the other. All on one host: two seconds, and
        // nothing to send.
        assert_eq!((c(true).path(&j), c(false).path(&j)), (4.0, 4.0));
        // With maps of 5 s a second wave costs more than 2 MB; without the slowstart these come
        // meanwhile.
        let long = job(0, (4, 5000), (1, 2000), 4_000_000);
        assert_eq!(
            (c(true).path(&long), ClusterBounds { port: None, ..c(true) }.path(&long)),
            (9.0, 7.0)
        );
        assert_eq!(
            c(false).path(&long),
            9.0,
            "the last maps' bytes may all have come but for those of the first"
        );
        // Least work first: 1.5 s and 0.5 s of work that come at once.
        let two = [job(0, (4, 1000), (1, 2000), 0), job(0, (2, 1000), (0, 0), 0)];
        assert_eq!(least_work_first(&c(true), &two), (0.5 + 2.0) / 2.0);
        let f = floors(&c(true), &two);
        assert_eq!((f[&Measure::Makespan], f[&Measure::MeanJct]), (3.0, 2.0));
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(64))]

        /// No policy is below, whatever the network.
        #[test]
        fn no_run_is_below(
            drawn in prop::collection::vec((0u64..3000, (1u32..7, 1u64..900), (0u32..4, 1u64..900), 0u64..3_000_000), 1..6),
            (hosts, slots) in (1usize..4, 1u32..4),
            late in any::<bool>(),
            kind in prop::sample::select(vec![Kind::Fair, Kind::Delay, Kind::Pushbox, Kind::Neat]),
        ) {
            let jobs: Vec<JobSpec> = drawn.into_iter().map(|(at, m, r, b)| job(at, m, r, if r.0 == 0 { 0 } else { b })).collect();
            let t = Arc::new(flat(hosts, slots));
            let mut system = electrical("y", kind, NetworkKind::MaxMin);
            system.jobs_by.settings.grain = Grain::Host;
            system.jobs_by.settings.order = JobOrder::Fair;
            system.jobs_by.placement.common.slowstart = if late { 100 } else { 5 };
            let list = JobList::new("l", jobs);
            let (plan, jobs_by) = (&system.plan, &system.jobs_by);
            let ask = SimulatedJobs { topology: &t, plan, jobs_by, jobs: &list, failures: &[], faults: &[], until: None };
            let r = simulate(&ask, &mut |_| ()).unwrap();
            let floor = floors(&ClusterBounds::new(&t, true, late), &list.jobs);
            let mean = r.jobs.iter().map(|j| seconds(j.jct.unwrap())).sum::<f64>() / r.jobs.len() as f64;
            let s = &r.summary;
            let [makespan, median, p95] = [s.makespan, s.median_jct, s.p95_jct].map(seconds);
            let all = [(mean, Measure::MeanJct), (makespan, Measure::Makespan), (median, Measure::MedianJct), (p95, Measure::P95Jct)];
            for (measured, which) in all {
                prop_assert!(measured >= floor[&which] - 1e-6, "{:?}: {} < {}", which, measured, floor[&which]);
            }
        }
    }
}
