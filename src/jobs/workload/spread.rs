//! Jobs as coflows, without a task scheduler: every shuffle becomes a coflow of a cluster that
//! spreads tasks evenly.
//!
//! A stage's tasks are on consecutive hosts, one after the other and around, from a host drawn from
//! the seed. A shuffle's coflow arrives when its sending stage would end if every task ran at once
//! and the network took no time. So this is a load for a network, not a schedule: what depends on
//! slots or on the network needs the task scheduler.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::jobs::{EdgeSpec, JobList, JobSpec};
use super::{Taken, Workload};
use crate::coflows::{CoflowSpec, FlowSpec};
use crate::ids::{CoflowId, HostId};
use crate::units::{Bytes, Time};

/// The most flows of all coflows together.
const MAX_FLOWS: u64 = 50_000_000;

/// The coflows of `list` on `hosts` hosts. Shuffles of no bytes have none. O(flows).
///
/// # Errors
/// When there is no host, or too many flows.
pub fn spread(list: &JobList, hosts: usize, seed: u64) -> Result<Workload, String> {
    if hosts == 0 {
        return Err("the topology has no host".into());
    }
    let wide = |tasks: u32| u64::from(tasks).min(hosts as u64);
    let pairs =
        |j: &JobSpec, e: &EdgeSpec| wide(j.stages[e.from].tasks) * wide(j.stages[e.to].tasks);
    let flows: u64 = list
        .jobs
        .iter()
        .flat_map(|j| j.edges.iter().map(move |e| pairs(j, e)))
        .fold(0, u64::saturating_add);
    if flows > MAX_FLOWS {
        return Err(format!(
            "{flows} flows; at most {MAX_FLOWS}: take fewer jobs, or a model with fewer tasks"
        ));
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut coflows = Vec::new();
    for j in &list.jobs {
        let starts: Vec<usize> = j.stages.iter().map(|_| rng.random_range(0..hosts)).collect();
        let ends = ends(j);
        for e in j.edges.iter().filter(|e| e.bytes > Bytes::ZERO) {
            let side = |stage: usize| counts(starts[stage], j.stages[stage].tasks, hosts);
            let to = match &e.shares {
                None => side(e.to),
                Some(shares) => weights(starts[e.to], shares, hosts),
            };
            let flows = flows_of(&side(e.from), &to, e.bytes);
            let name = format!("{}/{}-{}", j.name, j.stages[e.from].name, j.stages[e.to].name);
            coflows.push(CoflowSpec {
                types: e.types.clone(),
                ..CoflowSpec::new(CoflowId(0), name, ends[e.from], flows)
            });
        }
    }
    let taken = Taken { from_jobs: Some(list.jobs.len() as u64), ..Taken::default() };
    Ok(Workload { taken, ..Workload::new(list.name.clone(), coflows) })
}

/// When each stage ends with a slot for every task and no time for the network.
fn ends(job: &JobSpec) -> Vec<Time> {
    let mut ends: Vec<Time> = Vec::with_capacity(job.stages.len());
    for (k, s) in job.stages.iter().enumerate() {
        let ready = job.edges_into(k).map(|e| ends[e.from]).max().unwrap_or(job.arrival);
        ends.push(ready + s.times.longest());
    }
    ends
}

/// Tasks by host, for hosts that have any, by host.
fn counts(start: usize, tasks: u32, hosts: usize) -> Vec<(HostId, u64)> {
    let (each, more) = (u64::from(tasks) / hosts as u64, tasks as usize % hosts);
    let of = |h: usize| each + u64::from((h + hosts - start) % hosts < more);
    (0..hosts).map(|h| (HostId::from(h), of(h))).filter(|c| c.1 > 0).collect()
}

/// Sums of the tasks' shares by host, for hosts that have any, by host.
fn weights(start: usize, shares: &[u64], hosts: usize) -> Vec<(HostId, u64)> {
    let mut of = vec![0; hosts];
    shares.iter().enumerate().for_each(|(k, s)| of[(start + k) % hosts] += s);
    of.into_iter().enumerate().filter(|w| w.1 > 0).map(|(h, w)| (HostId::from(h), w)).collect()
}

/// Every pair of tasks sends the same, or in proportion to the receiver's share; what does not
/// divide is spread so that the sum is exact.
fn flows_of(from: &[(HostId, u64)], to: &[(HostId, u64)], bytes: Bytes) -> Vec<FlowSpec> {
    let sum = |side: &[(HostId, u64)]| side.iter().map(|c| u128::from(c.1)).sum::<u128>();
    let all = (sum(from) * sum(to)).max(1);
    let (mut before, mut sent) = (0u128, 0u64);
    let mut flows = Vec::with_capacity(from.len() * to.len());
    for &(a, n) in from {
        for &(b, m) in to {
            before += u128::from(n) * u128::from(m);
            let until = (u128::from(bytes.0) * before / all) as u64;
            if until > sent {
                flows.push(FlowSpec { from: a, to: b, bytes: Bytes(until - sent) });
            }
            sent = until;
        }
    }
    flows
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::JobId;
    use crate::units::Span;
    use crate::workload::jobs::{StageSpec, TaskTimes};

    fn job(tasks: [u32; 3], bytes: [u64; 2]) -> JobSpec {
        let stage = |(k, &tasks): (usize, &u32)| StageSpec {
            name: format!("s{k}"),
            tasks,
            times: TaskTimes::Even(Span::secs(1 + k as u64)),
            input: Bytes(0),
            output: Bytes(0),
            streams: false,
        };
        let edges =
            vec![EdgeSpec::even(0, 2, Bytes(bytes[0])), EdgeSpec::even(1, 2, Bytes(bytes[1]))];
        let stages = tasks.iter().enumerate().map(stage).collect();
        JobSpec {
            id: JobId(0),
            name: "j".into(),
            queue: 0,
            arrival: Time(7),
            recurring: false,
            stages,
            edges,
        }
    }

    #[test]
    fn shuffles_become_coflows_after_their_stages() {
        let w = spread(&JobList::new("l", vec![job([3, 1, 2], [12, 0])]), 8, 1).unwrap();
        assert_eq!(
            (w.coflows.len(), w.coflows[0].name.as_str(), w.coflows[0].arrival),
            (1, "j/s0-s2", Time(1_000_000_007))
        );
        assert_eq!(w.coflows[0].flows.iter().map(|f| f.bytes.0).collect::<Vec<_>>(), [2; 6]);
        assert!(spread(&JobList::default(), 0, 1).is_err());
        assert!(
            spread(&JobList::new("l", vec![job([9000; 3], [1, 1])]), 8000, 1)
                .unwrap_err()
                .contains("at most")
        );
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn no_byte_is_lost_and_hosts_are_loaded_evenly(
            tasks in [1u32..30, 1u32..30, 1u32..30],
            a in 0u64..1 << 40,
            hosts in 1usize..12,
            seed: u64,
        ) {
            let w = spread(&JobList::new("l", vec![job(tasks, [a, 77])]), hosts, seed).unwrap();
            prop_assert_eq!(w.bytes().0, a + 77);
            let c = counts(seed as usize % hosts, tasks[0], hosts);
            prop_assert_eq!(c.iter().map(|c| c.1).sum::<u64>(), u64::from(tasks[0]));
            prop_assert!(c.iter().map(|c| c.1).max().unwrap() - c.iter().map(|c| c.1).min().unwrap() <= 1);
        }
    }
}
