//! Jobs of a trace of coflows: every coflow is the shuffle of a MapReduce.
//!
//! A port of Facebook's trace is a rack of a cluster of 3,000 machines: what its tasks send and
//! receive is summed. So a port is cut into tasks of at most [`JobModel::port_block`] bytes: a
//! mapper has its even part of the shuffle, a reducer what the trace gives it. The job is submitted
//! when the coflow comes. What the trace does not hold comes from a [`JobModel`]. A job reads as
//! many bytes as it shuffles; a map task computes for its even part of them, and a reduce task for
//! its own bytes. Where tasks run is decided by placement: ports are forgotten.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::coflow_benchmark::{Trace, TraceCoflow};
use super::job_model::{JobModel, SwimJob};
use super::jobs::{JobList, JobSpec, MAX_SHARE};
use crate::units::{Bytes, Span, Time};

/// The jobs of a trace's coflows, in their order; those without a mapper have one. The seed decides
/// what the model draws. O(tasks).
pub fn to_jobs(name: &str, trace: &Trace, model: &JobModel, seed: u64) -> JobList {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    JobList::new(name, trace.coflows.iter().map(|c| job(c, model, &mut rng)).collect())
}

fn job(c: &TraceCoflow, model: &JobModel, rng: &mut ChaCha8Rng) -> JobSpec {
    let ports: Vec<u64> = c.reducers.iter().map(|r| r.1.0).collect();
    let shuffle = ports.iter().fold(0, |sum: u64, b| sum.saturating_add(*b));
    let mappers = c.mappers.len().max(1) as u64;
    let share = shuffle.div_ceil(mappers);
    let maps = mappers * cut(share, block(model, shuffle, mappers)).count() as u64;
    let block = block(model, shuffle, ports.len() as u64);
    let bytes: Vec<u64> = ports.into_iter().flat_map(|b| cut(b, block)).collect();
    let shuffle = Bytes(shuffle);
    let arrival = Time::ZERO + Span::millis(c.arrival_ms);
    let row =
        SwimJob { name: c.id.to_string(), arrival, input: shuffle, shuffle, output: Bytes::ZERO };
    let mut job = model.job(&row, (maps as u32, bytes.len() as u32), rng);
    skew(&mut job, &bytes, model, rng);
    job
}

/// The most bytes of a task of a stage whose ports have `all` bytes: the model's, or as many as
/// keep the stage within its most tasks.
fn block(model: &JobModel, all: u64, ports: u64) -> u64 {
    match u64::from(model.max_tasks).saturating_sub(ports) {
        _ if model.port_block == Bytes::ZERO => u64::MAX,
        0 => u64::MAX,
        more => model.port_block.0.max(all.div_ceil(more)),
    }
}

/// The bytes of a port, cut evenly into the fewest parts of at most `block`; one part, if there are
/// none.
fn cut(bytes: u64, block: u64) -> impl Iterator<Item = u64> {
    let parts = bytes.div_ceil(block).max(1);
    (0..parts).map(move |k| bytes / parts + u64::from(k < bytes % parts))
}

/// Divides the shuffle of a MapReduce among its reduce tasks in proportion to `bytes`, and gives
/// each the time of its own part.
pub(super) fn skew(job: &mut JobSpec, bytes: &[u64], model: &JobModel, rng: &mut ChaCha8Rng) {
    let [edge] = &mut job.edges[..] else { return };
    edge.shares = shares(bytes);
    if let Some(each) = edge.by_receiver() {
        job.stages[1].times = model.times_of(&each, model.reduce_rate, rng);
    }
}

/// Bytes as shares: by their greatest common divisor, or a larger unit if there are shares that are
/// too large for that; `None` if all are zero.
fn shares(bytes: &[u64]) -> Option<Vec<u64>> {
    let gcd = |a: u64, b: u64| {
        let (mut a, mut b) = (a, b);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let common = bytes.iter().copied().fold(0, gcd);
    let most = bytes.iter().copied().max().filter(|&m| m > 0)?;
    let unit = common.max(most.div_ceil(MAX_SHARE));
    Some(bytes.iter().map(|b| b / unit).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::workload::coflow_benchmark::{MB, parse};

    #[test]
    fn ports_are_cut_into_tasks_of_a_block() {
        let t = parse("6 1\n7 0 3 0 1 2 2 3:250.0 4:20.0\n").unwrap();
        let of = |port_block: u64, max_tasks| {
            let model =
                JobModel { port_block: Bytes(port_block * MB), max_tasks, ..JobModel::default() };
            let job = to_jobs("t", &t, &model, 1).jobs.remove(0);
            (
                job.stages[0].tasks,
                job.edges[0]
                    .by_receiver()
                    .unwrap()
                    .into_iter()
                    .map(|b| b / 1000)
                    .collect::<Vec<_>>(),
            )
        };
        // A mapper has 90 MB.
        assert_eq!(of(100, 5000), (3, vec![83_333, 83_333, 83_333, 20_000]));
        assert_eq!(
            of(40, 5000),
            (9, vec![35_714, 35_714, 35_714, 35_714, 35_714, 35_714, 35_714, 20_000])
        );
        assert_eq!(
            [of(0, 5000), of(40, 2)],
            [(3, vec![250_000, 20_000]), (3, vec![250_000, 20_000])],
            "a port is a task"
        );
        let (maps, reduces) = of(1, 6);
        assert!(
            maps <= 6 && reduces.len() <= 6 && reduces.iter().all(|b| *b <= 68_000),
            "{maps} {reduces:?}"
        );
    }

    #[test]
    fn a_coflow_becomes_a_job_with_its_bytes_by_reducer() {
        let mut t = parse("6 1\n7 1500 3 0 1 2 2 3:60.0 4:20.0\n").unwrap();
        t.coflows.push(TraceCoflow { id: 8, arrival_ms: 1600, mappers: vec![], reducers: vec![] });
        let model = JobModel {
            map_rate: Bytes(MB),
            reduce_rate: Bytes(2 * MB),
            setup: Span::ZERO,
            ..JobModel::default()
        };
        let list = to_jobs("t", &t, &model, 1);
        let j = &list.jobs[0];
        assert_eq!(
            (j.name.as_str(), j.arrival, j.input_bytes(), j.shuffle_bytes()),
            ("7", Time(1_500_000_000), Bytes(80 * MB), Bytes(80 * MB))
        );
        assert_eq!(
            (j.stages[0].tasks, j.edges[0].shares.clone(), j.edges[0].by_receiver()),
            (3, Some(vec![3, 1]), Some(vec![60 * MB, 20 * MB]))
        );
        let seconds = |stage: usize, k| j.stages[stage].times.of(k).as_secs_f64();
        assert!(
            (seconds(0, 2) - 80.0 / 3.0).abs() < 1e-6
                && [seconds(1, 0), seconds(1, 1)] == [30.0, 10.0]
        );
        assert_eq!((list.jobs[1].stages.len(), list.jobs[1].stages[0].tasks), (1, 1));
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn parts_of_a_port_are_even_and_few(bytes in 0u64..1 << 50, block in 1u64 << 38..1 << 50) {
            let parts: Vec<u64> = cut(bytes, block).collect();
            prop_assert_eq!(parts.iter().sum::<u64>(), bytes);
            prop_assert!(parts.iter().all(|p| *p <= block && p.abs_diff(parts[0]) <= 1));
            prop_assert!(parts.len() == 1 || (parts.len() as u64 - 1) * block < bytes);
        }

        #[test]
        fn shares_keep_the_bytes(bytes in prop::collection::vec(0u64..1 << 50, 1..9)) {
            let all: u64 = bytes.iter().sum();
            let Some(shares) = shares(&bytes) else {
                prop_assert_eq!(all, 0);
                return Ok(());
            };
            prop_assert!(shares.iter().all(|&s| s <= MAX_SHARE));
            let edge = crate::workload::jobs::EdgeSpec { shares: Some(shares), ..crate::workload::jobs::EdgeSpec::even(0, 1, Bytes(all)) };
            let back = edge.by_receiver().unwrap();
            prop_assert_eq!(back.iter().sum::<u64>(), all);
            // A unit is a billionth of the largest, so that each is right to a millionth of the
            // whole.
            prop_assert!(back.iter().zip(&bytes).all(|(a, b)| a.abs_diff(*b) <= all / 1_000_000 + 1), "{:?}", back);
        }
    }

    /// 526 coflows, 10753 mappers, 10609 reducers (a row may name one twice), 35.5 TB. Cut at 1 GB,
    /// no task has 232 GB any more.
    #[test]
    fn the_facebook_trace_becomes_jobs() {
        let Some(dir) = crate::testing::traces("coflow-benchmark") else { return };
        let trace =
            parse(&std::fs::read_to_string(dir.join("FB2010-1Hr-150-0.txt")).unwrap()).unwrap();
        let cut = to_jobs("fb", &trace, &JobModel::default(), 1);
        let list =
            to_jobs("fb", &trace, &JobModel { port_block: Bytes::ZERO, ..JobModel::default() }, 1);
        for (whole, cut) in list.jobs.iter().zip(&cut.jobs) {
            assert!(
                cut.check().is_ok()
                    && whole.shuffle_bytes() == cut.shuffle_bytes()
                    && whole.arrival == cut.arrival
            );
            assert!(cut.stages.iter().all(|s| s.tasks <= 5000) && cut.tasks() >= whole.tasks());
        }
        let largest =
            |list: &JobList| list.jobs.iter().flat_map(|j| j.edges[0].by_receiver().unwrap()).max();
        assert!(
            largest(&list).unwrap() > 200_000_000_000 && largest(&cut).unwrap() < 2_000_000_000
        );
        let tasks = |k: usize| list.jobs.iter().map(|j| j.stages[k].tasks).sum::<u32>();
        assert_eq!((list.jobs.len(), tasks(0), tasks(1)), (526, 10_753, 10_609));
        assert!(list.jobs.iter().all(|j| j.check().is_ok()));
        for (c, j) in trace.coflows.iter().zip(&list.jobs) {
            let own: Vec<u64> = c.reducers.iter().map(|r| r.1.0).collect();
            assert_eq!(
                (j.edges[0].by_receiver(), j.arrival.0),
                (Some(own), c.arrival_ms * 1_000_000),
                "sizes and arrivals to the byte"
            );
        }
        assert_eq!(
            list.jobs.iter().map(|j| j.shuffle_bytes().0).sum::<u64>() / 1_000_000_000_000,
            35
        );
    }
}
