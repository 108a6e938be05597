//! A synthesiser of jobs with the distributions that papers publish, from a seed.
//!
//! - `jobpacker`: table 1 has shuffles of 0.1, 2.5 and 82 GB at the 5th, 50th and 95th percentile.
//!   Ours: log-normal between; input = shuffle (the ratio that Co-scheduler, section IV-D, starts
//!   from) = output.
//! - `co-scheduler`: 20 users, blocks of 256 MB, a quarter as many reduce tasks as maps. Ours:
//!   sizes as `jobpacker`, since both papers took SWIM's Facebook jobs.
//! - `corral-w1`: section 6.1 has small (<= 50 tasks), medium (<= 500) and large (>= 1000) jobs,
//!   selectivities between 4:1 and 1:4. Ours: a third each, at most 5000 tasks, even logarithms.
//! - `corral-w2`: section 6.2 has 90 % of the jobs below 200 MB of input and 75 MB of shuffle; 2 of
//!   400 read 5.5 TB and shuffle 1.8 times that. Ours: the rest between, even logarithms; 720
//!   reduce tasks for each of the two.
//! - `corral-w3`: table 1 has 180 and 2060 tasks, 7.1 and 162.3 GB of input, 6 and 71.5 GB of
//!   intermediate data at the 50th and 95th percentile. Ours: log-normal, all three by one draw;
//!   output = intermediate.
//! - `puma`: Hit-scheduler's table 1, kinds of jobs by their shares ([`puma`]).
//! - `pushbox-w1`, `pushbox-w2`: the lists of PushBox's testbed ([`super::pushbox`]).
//! - `tpch`: the 22 queries of TPC-H, as graphs of stages ([`tpch`]).
//! - `facebook-jobs`: coflows of Facebook's published classes over 150 ports
//!   ([`synth`](super::synth)), each the shuffle of a job.
//!
//! Draws are stratified: of n jobs, one lies in each n-th part of the distribution, so that the
//! percentiles come out for every seed. What a model does not say of tasks and times comes from a
//! [`JobModel`].

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::draws::{LogNormal, exponential, log_uniform, strata};
use super::job_model::{JobModel, Preset, SwimJob};
use super::jobs::JobList;
use super::synth::{Synth, synth};
use super::{puma, pushbox, tpch, trace_jobs};
use crate::units::{Bytes, Span, Time};

const MB: u64 = 1_000_000;
const GB: u64 = 1_000_000_000;
/// Reduce tasks of the two large jobs of Corral's W2: as many as run at once on three of its racks
/// of 240 slots, which is what the paper's planner gives each of them.
const W2_REDUCES: u32 = 720;
/// The largest input or shuffle of a job: the tail of a distribution ends here.
const LARGEST: u64 = 100_000 * GB;

/// Published mixes of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Mix {
    /// JobPacker's table 1
    Jobpacker,
    /// Co-scheduler's users and tasks, sizes as JobPacker's
    CoScheduler,
    /// Corral's W1, small, medium and large
    CorralW1,
    /// Corral's W2, most of them tiny
    CorralW2,
    /// Corral's W3 (table 1)
    CorralW3,
    /// Hit-scheduler's PUMA benchmarks, heavy, medium and light
    Puma,
    /// PushBox's testbed, two sorts and 28 queries (30 jobs)
    PushboxW1,
    /// PushBox's testbed, benchmarks of PUMA (29 jobs)
    PushboxW2,
    /// coflows of Facebook's four classes, each the shuffle of a job
    FacebookJobs,
    /// TPC-H's queries on 200 GB, as graphs of stages
    Tpch,
}

impl Mix {
    /// The model of tasks that belongs to it.
    pub fn preset(self) -> Preset {
        match self {
            Self::Jobpacker => Preset::Jobpacker,
            Self::CoScheduler => Preset::CoScheduler,
            Self::CorralW1 | Self::CorralW2 | Self::CorralW3 => Preset::Corral,
            Self::Puma => Preset::Puma,
            Self::PushboxW1 | Self::PushboxW2 => Preset::Pushbox,
            Self::FacebookJobs => Preset::Default,
            Self::Tpch => Preset::Tpch,
        }
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jobpacker => "jobpacker",
            Self::CoScheduler => "co-scheduler",
            Self::CorralW1 => "corral-w1",
            Self::CorralW2 => "corral-w2",
            Self::CorralW3 => "corral-w3",
            Self::Puma => "puma",
            Self::PushboxW1 => "pushbox-w1",
            Self::PushboxW2 => "pushbox-w2",
            Self::FacebookJobs => "facebook-jobs",
            Self::Tpch => "tpch",
        }
    }
}

/// What is asked of the synthesiser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynthJobs {
    /// The mix of sizes.
    pub mix: Mix,
    /// Tasks and times.
    pub model: JobModel,
    /// Number of jobs.
    pub jobs: usize,
    /// The seed.
    pub seed: u64,
    /// Mean time between two arrivals, a Poisson process; zero: a batch, all at once.
    pub mean_gap: Span,
}

/// Bytes of a job, and its tasks if the mix says them.
struct JobShape {
    input: u64,
    shuffle: u64,
    output: u64,
    tasks: Option<(u32, u32)>,
    /// What kind of job it is, if the mix has kinds.
    name: Option<&'static str>,
}

/// The jobs. O(n log n), with noise O(tasks).
pub fn synth_jobs(ask: &SynthJobs) -> JobList {
    let name = format!("{}-{}-seed-{}", ask.mix.name(), ask.jobs, ask.seed);
    match ask.mix {
        Mix::PushboxW1 => {
            return pushbox::draw(
                name,
                pushbox::Testbed::W1,
                &ask.model,
                (ask.jobs, ask.seed),
                ask.mean_gap,
            );
        }
        Mix::PushboxW2 => {
            return pushbox::draw(
                name,
                pushbox::Testbed::W2,
                &ask.model,
                (ask.jobs, ask.seed),
                ask.mean_gap,
            );
        }
        Mix::Tpch => return tpch::draw(name, &ask.model, (ask.jobs, ask.seed), ask.mean_gap),
        Mix::FacebookJobs => {
            let trace = synth(&Synth {
                racks: 150,
                hosts: 1,
                coflows: ask.jobs,
                seed: ask.seed,
                mean_gap: ask.mean_gap,
            });
            return trace_jobs::to_jobs(&name, &trace, &ask.model, ask.seed);
        }
        _ => {}
    }
    let mut rng = ChaCha8Rng::seed_from_u64(ask.seed);
    let ranks = strata(&mut rng, ask.jobs);
    let shapes: Vec<JobShape> = ranks.iter().map(|&u| shape(ask, u, &mut rng)).collect();
    let mut at = Time::ZERO;
    let jobs = shapes.iter().enumerate().map(|(k, s)| {
        let bytes = |b: u64| Bytes(b.min(LARGEST));
        let row = SwimJob {
            name: format!("{}-{k}", s.name.unwrap_or("job")),
            arrival: at,
            input: bytes(s.input),
            shuffle: bytes(s.shuffle),
            output: bytes(s.output),
        };
        at += exponential(&mut rng, ask.mean_gap);
        let tasks = s.tasks.unwrap_or_else(|| ask.model.tasks(row.input, row.shuffle));
        ask.model.job(&row, tasks, &mut rng)
    });
    JobList::new(name, jobs.collect())
}

/// The job at `u / 2^32` of the distribution, where the mix is one.
fn shape(ask: &SynthJobs, u: u32, rng: &mut ChaCha8Rng) -> JobShape {
    match ask.mix {
        Mix::Jobpacker
        | Mix::CoScheduler
        | Mix::PushboxW1
        | Mix::PushboxW2
        | Mix::FacebookJobs
        | Mix::Tpch => {
            let shuffle = LogNormal { p5: Some(GB / 10), p50: 25 * GB / 10, p95: 82 * GB }.at(u);
            JobShape { input: shuffle, shuffle, output: shuffle, tasks: None, name: None }
        }
        Mix::Puma => {
            let (name, class) = puma::at(u);
            JobShape {
                input: puma::INPUT,
                shuffle: puma::INPUT / 100 * class.percent(),
                output: 0,
                tasks: None,
                name: Some(name),
            }
        }
        Mix::CorralW1 => w1(&ask.model, u, rng),
        Mix::CorralW2 => w2(&ask.model, u, rng),
        Mix::CorralW3 => {
            let two = |p50, p95| LogNormal { p5: None, p50, p95 }.at(u);
            let (tasks, shuffle) = (two(180, 2060), two(6 * GB, 71_500 * MB));
            JobShape {
                input: two(7_100 * MB, 162_300 * MB),
                shuffle,
                output: shuffle,
                tasks: Some(split(&ask.model, tasks)),
                name: None,
            }
        }
    }
}

/// All tasks as map and reduce tasks, in the model's proportion (4 to 1 if it has none).
fn split(model: &JobModel, tasks: u64) -> (u32, u32) {
    let share = if model.reduce_share == 0 { 25 } else { u64::from(model.reduce_share) };
    let tasks = tasks.clamp(2, 1_000_000);
    let reduces = (tasks * share / (100 + share)).clamp(1, tasks - 1);
    ((tasks - reduces) as u32, reduces as u32)
}

fn w1(model: &JobModel, u: u32, rng: &mut ChaCha8Rng) -> JobShape {
    // The thirds of the distribution are the classes; what is left of u places the job within its
    // class.
    let (class, within) = ((u64::from(u) * 3) >> 32, (u64::from(u) * 3) as u32);
    let (low, high) = [(2, 50), (51, 500), (1000, 5000)][class as usize];
    let tasks = split(model, log_uniform(low, high, within));
    let input = (u64::from(tasks.0) * model.block.0).min(LARGEST);
    let mut selected =
        |bytes: u64| log_uniform((bytes / 4).max(1), bytes.saturating_mul(4), rng.random());
    let shuffle = selected(input);
    JobShape { input, shuffle, output: selected(shuffle), tasks: Some(tasks), name: None }
}

fn w2(model: &JobModel, u: u32, rng: &mut ChaCha8Rng) -> JobShape {
    // Parts of 400: the lowest 360 are tiny, the highest 2 large.
    let part = (u64::from(u) * 400) >> 32;
    let mut tasks = None;
    let (input, shuffle) = match part {
        0..360 => {
            (log_uniform(MB, 200 * MB, rng.random()), log_uniform(MB / 10, 75 * MB, rng.random()))
        }
        360..398 => {
            let input = log_uniform(200 * MB, 1000 * GB, rng.random());
            (input, log_uniform(input / 8 * 3, input / 10 * 18, rng.random()))
        }
        _ => {
            tasks = Some((model.tasks(Bytes(5_500 * GB), Bytes::ZERO).0, W2_REDUCES));
            (5_500 * GB, 9_900 * GB)
        }
    };
    JobShape { input, shuffle, output: shuffle, tasks, name: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::job_stats::job_stats;

    const ALL: [Mix; 10] = [
        Mix::Jobpacker,
        Mix::CoScheduler,
        Mix::CorralW1,
        Mix::CorralW2,
        Mix::CorralW3,
        Mix::Puma,
        Mix::PushboxW1,
        Mix::PushboxW2,
        Mix::FacebookJobs,
        Mix::Tpch,
    ];

    fn jobs(mix: Mix, jobs: usize, seed: u64) -> JobList {
        synth_jobs(&SynthJobs {
            mix,
            model: mix.preset().model(),
            jobs,
            seed,
            mean_gap: Span::secs(1),
        })
    }

    /// Within `percent` of what the paper prints.
    fn near(got: u64, want: u64, percent: u64) -> bool {
        got.abs_diff(want) * 100 <= want * percent
    }

    #[test]
    fn jobpackers_table_1_comes_out() {
        for seed in [1, 2, 99] {
            let s = job_stats(&jobs(Mix::Jobpacker, 1000, seed)).job_shuffle;
            assert!(
                near(s.p5, 100 * MB, 5) && near(s.p50, 2500 * MB, 3) && near(s.p95, 82 * GB, 5),
                "{s:?}"
            );
        }
    }

    #[test]
    fn corrals_table_1_comes_out() {
        for seed in [1, 2, 99] {
            let s = job_stats(&jobs(Mix::CorralW3, 200, seed));
            assert!(
                near(s.job_tasks.p50, 180, 5) && near(s.job_tasks.p95, 2060, 10),
                "{:?}",
                s.job_tasks
            );
            assert!(
                near(s.job_input.p50, 7_100 * MB, 5) && near(s.job_input.p95, 162_300 * MB, 10),
                "{:?}",
                s.job_input
            );
            assert!(
                near(s.job_shuffle.p50, 6 * GB, 5) && near(s.job_shuffle.p95, 71_500 * MB, 10),
                "{:?}",
                s.job_shuffle
            );
        }
    }

    #[test]
    fn corrals_classes_come_out() {
        let w1 = jobs(Mix::CorralW1, 300, 5);
        let count =
            |low, high| w1.jobs.iter().filter(|j| (low..=high).contains(&j.tasks())).count();
        assert_eq!((count(2, 50), count(51, 500), count(1000, 5000)), (100, 100, 100));
        for j in &w1.jobs {
            let (input, shuffle) = (j.input_bytes().0, j.shuffle_bytes().0);
            assert!(
                shuffle >= input / 4 && shuffle <= input * 4 && j.stages[1].output.0 <= shuffle * 4
            );
        }
        let w2 = jobs(Mix::CorralW2, 400, 5);
        let tiny = w2
            .jobs
            .iter()
            .filter(|j| j.input_bytes().0 <= 200 * MB && j.shuffle_bytes().0 <= 75 * MB)
            .count();
        let large = w2.jobs.iter().filter(|j| j.input_bytes().0 == 5_500 * GB).count();
        assert!(tiny.abs_diff(360) <= 1 && large == 2, "{tiny} {large}");
    }

    #[test]
    fn the_largest_model_overflows_nothing() {
        let most = Bytes(1_000_000_000_000_000);
        let model = JobModel {
            block: most,
            map_rate: most,
            reduce_rate: most,
            reduce_bytes: most,
            ..JobModel::default()
        };
        assert_eq!(model.check(), Ok(()));
        for mix in ALL {
            let list =
                synth_jobs(&SynthJobs { mix, model, jobs: 30, seed: 1, mean_gap: Span::secs(1) });
            assert!(list.jobs.iter().all(|j| j.check().is_ok()), "{mix:?}");
        }
    }

    #[test]
    fn hits_table_1_comes_out() {
        let list = jobs(Mix::Puma, 20, 5);
        let of =
            |class| list.jobs.iter().filter(|j| puma::class_of(&j.name) == Some(class)).count();
        assert_eq!(
            [puma::ShuffleClass::Heavy, puma::ShuffleClass::Medium, puma::ShuffleClass::Light]
                .map(of),
            [8, 4, 8]
        );
        let heavy = list.jobs.iter().find(|j| j.name.starts_with("terasort")).unwrap();
        assert_eq!(
            (heavy.stages[0].tasks, heavy.stages[1].tasks, heavy.shuffle_bytes()),
            (40, 10, heavy.input_bytes())
        );
    }

    #[test]
    fn a_seed_gives_one_valid_list() {
        for mix in ALL {
            let a = jobs(mix, 60, 3);
            assert_eq!(a, jobs(mix, 60, 3));
            assert_ne!(a, jobs(mix, 60, 4));
            assert!(a.jobs.len() == 60 && a.jobs.iter().all(|j| j.check().is_ok()));
            assert_eq!(jobs(mix, 0, 3).jobs.len(), 0);
        }
        let batch = synth_jobs(&SynthJobs {
            mean_gap: Span::ZERO,
            ..SynthJobs {
                mix: Mix::CorralW3,
                model: JobModel::default(),
                jobs: 9,
                seed: 1,
                mean_gap: Span::secs(1),
            }
        });
        assert!(batch.jobs.iter().all(|j| j.arrival == Time::ZERO));
        let users = jobs(Mix::CoScheduler, 1000, 1);
        assert_eq!(job_stats(&users).queues, 20);
    }
}
