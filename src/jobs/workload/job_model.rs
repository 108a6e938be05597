//! From bytes to tasks: the model that turns a [`SwimJob`] (input, shuffle, output) into a
//! MapReduce with tasks and times.
//!
//! - A map task reads one block: `maps = ceil(input / block)`, at least one.
//! - Reduce tasks: one for every `reduce_bytes` of shuffle, or a share of the map tasks. Where the
//!   shuffle is larger than the input it is a share of the shuffle's blocks: else a job that makes
//!   its data would have one endless reduce task. None without a shuffle, else at least one.
//! - A port of a trace of coflows is cut into tasks of at most `port_block`
//!   ([`trace_jobs`](super::trace_jobs)).
//! - A stage has at most `max_tasks` tasks; its tasks then are larger.
//! - A map task computes for `setup + (input / maps) / map_rate`, a reduce task for `setup +
//!   (shuffle / reduces) / reduce_rate`: time in proportion to data, as Corral's latency response
//!   functions assume (section 4.3).
//! - `noise` of n per cent multiplies every task's time by its own factor, even in `[1 - n/100, 1 +
//!   n/100]`.
//! - A job is recurring with the given probability, and belongs to a queue drawn evenly.
//!
//! The papers replayed SWIM's rows on a Hadoop node and published neither all block sizes nor
//! rates; those of the presets are ours unless the preset says otherwise. Rates of JobPacker and
//! Co-scheduler are read from the latencies of the job that both print.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::jobs::{JobList, JobSpec, StageSpec, TaskTimes};
pub use super::swim::SwimJob;
use crate::units::{Bytes, NANOS, Span};

/// The largest block, and the most that a task processes in a second: a petabyte.
const MOST: Bytes = Bytes(1_000_000_000_000_000);

/// How rows become jobs. As a file: any of these keys; the others keep the values of the preset
/// `default`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct JobModel {
    /// Bytes that a map task reads.
    pub block: Bytes,
    /// Bytes a second that a map task processes.
    pub map_rate: Bytes,
    /// Bytes a second that a reduce task processes.
    pub reduce_rate: Bytes,
    /// Time that every task takes besides.
    pub setup: Span,
    /// Bytes of shuffle for every reduce task; not used if `reduce_share` is given.
    pub reduce_bytes: Bytes,
    /// Reduce tasks in per cent of the blocks of the input or the shuffle, whichever has more,
    /// rounded up; zero: by `reduce_bytes`.
    pub reduce_share: u32,
    /// The most bytes of a task of a trace of coflows, whose ports are cut into tasks; zero: a port
    /// is a task.
    pub port_block: Bytes,
    /// The most tasks of a stage.
    pub max_tasks: u32,
    /// How far a task's time may be off, in per cent (0 to 100).
    pub noise: u32,
    /// Share of recurring jobs, in per cent (0 to 100).
    pub recurring: u32,
    /// Number of queues (users) among which the jobs are spread.
    pub queues: u32,
}

impl Default for JobModel {
    fn default() -> Self {
        Self {
            block: Bytes(128_000_000),
            map_rate: Bytes(50_000_000),
            reduce_rate: Bytes(50_000_000),
            setup: Span::secs(1),
            reduce_bytes: Bytes(1_000_000_000),
            reduce_share: 0,
            port_block: Bytes(1_000_000_000),
            max_tasks: 5_000,
            noise: 0,
            recurring: 0,
            queues: 1,
        }
    }
}

/// Named models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Preset {
    /// Blocks of 128 MB, 50 MB/s, a reduce task a GB of shuffle
    #[default]
    Default,
    /// JobPacker: all jobs recurring; reduce tasks 5% of the maps (169 of 3472), a map task of 84
    /// s, reduce tasks of 7.8 MB/s (figure 5)
    Jobpacker,
    /// Co-scheduler: blocks of 256 MB, reduce tasks a quarter of the maps (section II-D), 20 users,
    /// 40% recurring; task times as JobPacker
    CoScheduler,
    /// Corral: all jobs recurring, blocks of 256 MB
    Corral,
    /// Hit-scheduler: blocks of 250 MB, reduce tasks a quarter of the maps
    Puma,
    /// PushBox's testbed: blocks of 1 GB (section 6.2), reduce tasks a quarter of the maps
    Pushbox,
    /// Hive's queries on Corral's testbed: as `corral`, a task for every 256 MB of shuffle, as Hive
    /// 0.14 has it
    Tpch,
}

impl Preset {
    /// The model of that name.
    pub fn model(self) -> JobModel {
        let base = JobModel::default();
        // Both papers print the same job, of 3472 maps and 169 reduces (JobPacker's figure 5,
        // Co-scheduler's figure 4). A wave of maps takes 84 s: 630 s, 373 s, 287 s and 201 s with
        // six, three, two waves and one. Its shuffle takes 12 s over a circuit of 100 Gb/s (211 s,
        // 205 s, 203 s with one, two, three): 150 GB. What is left of 211 s are 115 s for a reduce
        // task's 888 MB.
        let timed = |block: Bytes| JobModel {
            block,
            map_rate: Bytes(block.0 / 83),
            reduce_rate: Bytes(7_790_000),
            ..base
        };
        match self {
            Self::Default => base,
            Self::Jobpacker => JobModel { recurring: 100, reduce_share: 5, ..timed(base.block) },
            Self::CoScheduler => JobModel {
                reduce_share: 25,
                queues: 20,
                recurring: 40,
                ..timed(Bytes(256_000_000))
            },
            Self::Puma => JobModel { block: Bytes(250_000_000), reduce_share: 25, ..base },
            Self::Pushbox => JobModel { block: Bytes(1_000_000_000), reduce_share: 25, ..base },
            Self::Corral => JobModel { recurring: 100, block: Bytes(256_000_000), ..base },
            Self::Tpch => JobModel { reduce_bytes: Bytes(256_000_000), ..Self::Corral.model() },
        }
    }
}

impl JobModel {
    /// Whether the parameters make sense.
    ///
    /// # Errors
    /// The first one that does not: its name, what is wrong, and what is allowed.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let percent = |v: u32| v <= 100;
        let bytes = |b: Bytes| (Bytes(1)..=MOST).contains(&b);
        for (key, ok, allowed) in [
            ("block", bytes(self.block), "1 byte to 1000TB"),
            ("map_rate", bytes(self.map_rate), "1 byte to 1000TB a second"),
            ("reduce_rate", bytes(self.reduce_rate), "1 byte to 1000TB a second"),
            ("reduce_bytes", bytes(self.reduce_bytes), "1 byte to 1000TB"),
            ("port_block", self.port_block <= MOST, "0 to 1000TB"),
            ("max_tasks", (1..=1_000_000).contains(&self.max_tasks), "1 to 1000000"),
            ("noise", percent(self.noise), "0 to 100 per cent"),
            ("recurring", percent(self.recurring), "0 to 100 per cent"),
            ("queues", (1..=10_000).contains(&self.queues), "1 to 10000"),
            ("setup", self.setup <= Span::secs(1_000_000), "at most 1000000s"),
        ] {
            if !ok {
                return Err((key, format!("{key} is out of range; allowed: {allowed}")));
            }
        }
        Ok(())
    }

    /// The same model, with tasks that take `percent` per cent of the time per byte.
    #[must_use]
    pub fn slower(self, percent: u64) -> Self {
        let rate = |r: Bytes| {
            Bytes(
                (u128::from(r.0) * 100 / u128::from(percent.max(1))).clamp(1, u128::from(u64::MAX))
                    as u64,
            )
        };
        Self { map_rate: rate(self.map_rate), reduce_rate: rate(self.reduce_rate), ..self }
    }

    /// Numbers of map and reduce tasks.
    pub fn tasks(&self, input: Bytes, shuffle: Bytes) -> (u32, u32) {
        let cap = |n: u64| n.clamp(1, u64::from(self.max_tasks.max(1))) as u32;
        let blocks = |b: Bytes| b.0.div_ceil(self.block.0.max(1));
        let maps = cap(blocks(input));
        let reduces = match (shuffle.0, self.reduce_share) {
            (0, _) => 0,
            (_, 0) => cap(shuffle.0.div_ceil(self.reduce_bytes.0.max(1))),
            (_, share) => {
                cap((blocks(input).max(blocks(shuffle)).saturating_mul(share.into())).div_ceil(100))
            }
        };
        (maps, reduces)
    }

    /// The jobs of some rows; the seed decides noise, queues and which jobs are recurring. O(tasks
    /// with noise, else rows).
    pub fn jobs(&self, name: &str, rows: &[SwimJob], seed: u64) -> JobList {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let jobs = rows.iter().map(|r| self.job(r, self.tasks(r.input, r.shuffle), &mut rng));
        JobList::new(name, jobs.collect())
    }

    /// One job with given numbers of tasks.
    pub(super) fn job(
        &self,
        row: &SwimJob,
        (maps, reduces): (u32, u32),
        rng: &mut ChaCha8Rng,
    ) -> JobSpec {
        let recurring = rng.random_range(0..100) < self.recurring;
        let queue = rng.random_range(0..self.queues.max(1));
        let (write, end) =
            if reduces == 0 { (row.output, Bytes::ZERO) } else { (Bytes::ZERO, row.output) };
        let mut stage = |name: &str, tasks: u32, bytes: Bytes, rate, input, output| {
            let times = self.times(tasks, bytes, rate, rng);
            StageSpec { name: name.into(), tasks, times, input, output, streams: false }
        };
        let map = stage("map", maps, row.input, self.map_rate, row.input, write);
        let reduce = stage("reduce", reduces, row.shuffle, self.reduce_rate, Bytes::ZERO, end);
        let job = JobSpec::map_reduce(&*row.name, row.arrival, map, reduce, row.shuffle);
        JobSpec { queue, recurring, ..job }
    }

    /// Times of `tasks` tasks that share `bytes` evenly.
    pub(super) fn times(
        &self,
        tasks: u32,
        bytes: Bytes,
        rate: Bytes,
        rng: &mut ChaCha8Rng,
    ) -> TaskTimes {
        let per_second = u128::from(rate.0.max(1)) * u128::from(tasks.max(1));
        let ns = (u128::from(bytes.0) * u128::from(NANOS)).div_ceil(per_second);
        let even = self.setup + Span(u64::try_from(ns).unwrap_or(u64::MAX / 4));
        if self.noise == 0 {
            return TaskTimes::Even(even);
        }
        TaskTimes::Each((0..tasks).map(|_| self.noisy(even, rng)).collect())
    }

    /// Times of tasks, by the bytes that each has.
    pub(super) fn times_of(&self, bytes: &[u64], rate: Bytes, rng: &mut ChaCha8Rng) -> TaskTimes {
        let one = |b: &u64| {
            let ns = (u128::from(*b) * u128::from(NANOS)).div_ceil(u128::from(rate.0.max(1)));
            self.noisy(self.setup + Span(u64::try_from(ns).unwrap_or(u64::MAX / 4)), rng)
        };
        TaskTimes::Each(bytes.iter().map(one).collect())
    }

    /// A time that is off by a factor of its own.
    fn noisy(&self, time: Span, rng: &mut ChaCha8Rng) -> Span {
        if self.noise == 0 {
            return time;
        }
        // Factors in millionths.
        let (mid, half) = (1_000_000u64, u64::from(self.noise.min(100)) * 10_000);
        let factor = rng.random_range(mid - half..=mid + half);
        Span(u64::try_from(u128::from(time.0) * u128::from(factor) / 1_000_000).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Time;

    fn row(input: u64, shuffle: u64) -> SwimJob {
        SwimJob {
            name: "j".into(),
            arrival: Time(5),
            input: Bytes(input),
            shuffle: Bytes(shuffle),
            output: Bytes(7),
        }
    }

    #[test]
    fn the_papers_counts_come_out() {
        // Co-scheduler, section II-D: 10 GB in blocks of 256 MB are 40 maps, with 10 reduce tasks.
        assert_eq!(
            Preset::CoScheduler.model().tasks(Bytes(10_000_000_000), Bytes(10_000_000_000)),
            (40, 10)
        );
        // JobPacker, figure 5: 3472 maps, 169 reduces.
        let (maps, reduces) = Preset::Jobpacker.model().tasks(Bytes(3472 * 128_000_000), Bytes(1));
        assert!(maps == 3472 && reduces.abs_diff(169) < 6, "{maps} {reduces}");
    }

    #[test]
    fn times_follow_bytes() {
        let m = JobModel {
            block: Bytes(100),
            map_rate: Bytes(50),
            reduce_rate: Bytes(10),
            reduce_bytes: Bytes(40),
            ..JobModel::default()
        };
        let j = &m.jobs("l", &[row(350, 100)], 1).jobs[0];
        assert_eq!(
            (j.stages[0].tasks, &j.stages[0].times),
            (4, &TaskTimes::Even(Span::millis(2750)))
        );
        assert_eq!((j.stages[1].tasks, j.edges[0].bytes), (3, Bytes(100)));
        assert_eq!(j.stages[1].times.of(0), Span(1_000_000_000 + 3_333_333_334));
        let alone = &m.jobs("l", &[row(0, 0)], 1).jobs[0];
        assert_eq!(
            (alone.stages.len(), alone.stages[0].tasks, alone.stages[0].output),
            (1, 1, Bytes(7))
        );
        let capped = JobModel { max_tasks: 2, ..m };
        assert_eq!(capped.tasks(Bytes(350), Bytes(100)), (2, 2));
        assert_eq!(JobModel { reduce_share: 25, ..m }.tasks(Bytes(0), Bytes(1601)), (1, 5));
    }

    #[test]
    fn noise_queues_and_recurrence_are_drawn() {
        let m = JobModel { noise: 20, recurring: 30, queues: 4, ..JobModel::default() };
        let rows: Vec<SwimJob> = (0..2000).map(|k| row(k * 1_000_000, k * 1_000)).collect();
        let a = m.jobs("l", &rows, 3);
        assert_eq!(a, m.jobs("l", &rows, 3));
        assert!(a.jobs.iter().all(|j| j.check().is_ok() && j.queue < 4));
        let recurring = a.jobs.iter().filter(|j| j.recurring).count();
        assert!((540..660).contains(&recurring), "{recurring}");
        let quiet = JobModel { noise: 0, ..m }.jobs("l", &rows, 3);
        for (x, y) in a.jobs.iter().zip(&quiet.jobs) {
            let (x, y) = (x.stages[0].times.of(0).0, y.stages[0].times.of(0).0);
            assert!(x * 10 >= y * 8 - 10 && x * 10 <= y * 12 + 10);
        }
    }

    /// JobPacker's figure 5: a wave of maps in 84 s, and 115 s for one of 169 reduce tasks of 150
    /// GB.
    #[test]
    fn the_printed_job_takes_the_printed_time() {
        for p in [Preset::Jobpacker, Preset::CoScheduler] {
            let m = p.model();
            let job = m.job(
                &row(3472 * m.block.0, 150_000_000_000),
                (3472, 169),
                &mut ChaCha8Rng::seed_from_u64(1),
            );
            let seconds = |k: usize| job.stages[k].times.of(0).0 / 1_000_000_000;
            assert_eq!((seconds(0), seconds(1)), (84, 114));
        }
    }

    #[test]
    fn parameters_are_checked() {
        for p in [
            Preset::Default,
            Preset::Jobpacker,
            Preset::CoScheduler,
            Preset::Corral,
            Preset::Puma,
            Preset::Pushbox,
            Preset::Tpch,
        ] {
            assert_eq!(p.model().check(), Ok(()));
        }
        let usual = JobModel::default();
        let bad = JobModel { noise: 101, ..usual };
        assert_eq!(bad.check().unwrap_err().0, "noise");
        for wrong in [Bytes::ZERO, Bytes(MOST.0 + 1), Bytes(u64::MAX)] {
            for (key, bad) in [
                ("block", JobModel { block: wrong, ..usual }),
                ("map_rate", JobModel { map_rate: wrong, ..usual }),
                ("reduce_rate", JobModel { reduce_rate: wrong, ..usual }),
                ("reduce_bytes", JobModel { reduce_bytes: wrong, ..usual }),
            ] {
                assert_eq!(bad.check().unwrap_err().0, key);
            }
        }
    }

    #[test]
    fn every_row_of_a_real_trace_becomes_a_job() {
        let Some(dir) = crate::testing::traces("SWIM") else { return };
        let text = std::fs::read_to_string(dir.join("FB-2009_samples_24_times_1hr_0.tsv")).unwrap();
        let rows = super::super::swim::parse(&text).unwrap();
        let list = Preset::Jobpacker.model().jobs("fb", &rows, 1);
        assert!(list.jobs.len() == rows.len() && list.jobs.iter().all(|j| j.check().is_ok()));
        assert_eq!(
            list.jobs.iter().map(|j| j.shuffle_bytes()).sum::<Bytes>(),
            rows.iter().map(|r| r.shuffle).sum()
        );
    }
}
