//! The two mixes of jobs of PushBox's testbed (Tian et al., TPDS 2022, section 6.2).
//!
//! W1 is two terasorts (300 and 100 GB) and 28 small query jobs. W2 is benchmarks of PUMA: the same
//! terasorts, a wordcount of 50 GB, three greps of 5 GB, three of 1 GB, ten teragens of 100 MB and
//! ten of 10 MB. The paper says that these are 30, and they are 29.
//!
//! Ours, where the paper is silent: a query reads 5 GB. What all but terasort shuffle is a light
//! job's part of its input, as in [`puma`](super::puma). A reducer of a terasort, whose data the
//! paper skews, has one to three parts of it.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::draws::exponential;
use super::job_model::{JobModel, SwimJob};
use super::jobs::{JobList, JobSpec};
use super::puma::ShuffleClass;
use super::trace_jobs::skew;
use crate::units::{Bytes, Span, Time};

const MB: u64 = 1_000_000;
const GB: u64 = 1_000_000_000;

/// What a job does with its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// Shuffles and writes all that it reads; the data are skewed.
    Sort,
    /// Shuffles little.
    Search,
    /// Reads nothing, and writes.
    Make,
}

/// Jobs of one kind: name, how many, bytes.
type JobKind = (&'static str, u32, u64, Does);

const W1: [JobKind; 3] = [
    ("terasort-300GB", 1, 300 * GB, Does::Sort),
    ("terasort-100GB", 1, 100 * GB, Does::Sort),
    ("query-5GB", 28, 5 * GB, Does::Search),
];
const W2: [JobKind; 7] = [
    ("terasort-300GB", 1, 300 * GB, Does::Sort),
    ("terasort-100GB", 1, 100 * GB, Does::Sort),
    ("wordcount-50GB", 1, 50 * GB, Does::Search),
    ("grep-5GB", 3, 5 * GB, Does::Search),
    ("grep-1GB", 3, GB, Does::Search),
    ("teragen-100MB", 10, 100 * MB, Does::Make),
    ("teragen-10MB", 10, 10 * MB, Does::Make),
];

/// The mix of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Testbed {
    /// Sorts and queries.
    W1,
    /// Benchmarks.
    W2,
}

impl Testbed {
    fn kinds(self) -> &'static [JobKind] {
        match self {
            Self::W1 => &W1,
            Self::W2 => &W2,
        }
    }

    /// Jobs of the whole mix.
    pub fn jobs(self) -> usize {
        self.kinds().iter().map(|k| k.1 as usize).sum()
    }
}

/// The first `n` jobs of a mix, the largest first; after the last it begins again. Gaps between
/// arrivals are exponential. O(tasks).
pub(super) fn draw(
    name: String,
    mix: Testbed,
    model: &JobModel,
    (n, seed): (usize, u64),
    mean_gap: Span,
) -> JobList {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let all: Vec<JobKind> = mix.kinds().iter().flat_map(|&k| (0..k.1).map(move |_| k)).collect();
    let mut at = Time::ZERO;
    let jobs = (0..n).map(|k| {
        let job = job(k, all[k % all.len()], at, model, &mut rng);
        at += exponential(&mut rng, mean_gap);
        job
    });
    JobList::new(name, jobs.collect())
}

fn job(
    k: usize,
    (name, _, bytes, does): JobKind,
    arrival: Time,
    model: &JobModel,
    rng: &mut ChaCha8Rng,
) -> JobSpec {
    let shuffle = match does {
        Does::Sort => bytes,
        Does::Search => bytes / 100 * ShuffleClass::Light.percent(),
        Does::Make => 0,
    };
    let output = Bytes(if does == Does::Make { bytes } else { shuffle });
    let row = SwimJob {
        name: format!("{name}-{k}"),
        arrival,
        input: Bytes(bytes),
        shuffle: Bytes(shuffle),
        output,
    };
    let mut job = model.job(&row, model.tasks(row.input, row.shuffle), rng);
    if does == Does::Make {
        job.stages[0].input = Bytes::ZERO;
    }
    if does == Does::Sort {
        let parts: Vec<u64> =
            (0..job.stages[1].tasks).map(|_| rng.random_range(MB..=3 * MB)).collect();
        skew(&mut job, &parts, model, rng);
    }
    job
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::job_model::Preset;

    #[test]
    fn the_testbed_s_jobs_are_the_papers() {
        let model = Preset::Pushbox.model();
        let drawn = |mix: Testbed| draw("t".into(), mix, &model, (mix.jobs(), 3), Span::secs(1));
        let (one, two) = (drawn(Testbed::W1), drawn(Testbed::W2));
        assert_eq!((one.jobs.len(), two.jobs.len()), (30, 29));
        let read = |list: &JobList| list.jobs.iter().map(|j| j.input_bytes().0).sum::<u64>() / GB;
        assert_eq!((read(&one), read(&two)), (400 + 28 * 5, 400 + 50 + 15 + 3));
        let sort = &one.jobs[0];
        assert_eq!(
            (sort.stages[0].tasks, sort.stages[1].tasks, sort.shuffle_bytes()),
            (300, 75, Bytes(300 * GB))
        );
        let each = sort.edges[0].by_receiver().unwrap();
        let (least, most) = (each.iter().min().unwrap(), each.iter().max().unwrap());
        assert!((2.0..=3.0).contains(&(*most as f64 / *least as f64)), "{least} {most}");
        let made = two.jobs.iter().find(|j| j.name.starts_with("teragen-100MB")).unwrap();
        assert_eq!(
            (made.stages.len(), made.stages[0].tasks, made.input_bytes(), made.stages[0].output),
            (1, 1, Bytes(0), Bytes(100 * MB))
        );
        assert!(one.jobs.iter().chain(&two.jobs).all(|j| j.check().is_ok()));
        assert_ne!(
            drawn(Testbed::W1),
            draw("t".into(), Testbed::W1, &model, (30, 4), Span::secs(1))
        );
    }
}
