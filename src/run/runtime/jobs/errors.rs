//! What is foreseen wrongly: the error models of Corral (section 6.5), JobPacker (section 5.4) and
//! Co-scheduler (section V-D).
//!
//! A run has the true jobs; a planner, who knows recurring jobs ahead, sees others. All is drawn
//! from a seed.

use rand::seq::index;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Span, Time};
use crate::workload::jobs::{JobList, JobSpec, TaskTimes};

/// How wrong planners and estimators are. The default: not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// Per cent by which foreseen bytes of a recurring job, and the times of its tasks with them,
    /// are off at most: one factor a job, drawn evenly.
    pub size_percent: u32,
    /// The same for the bytes of its shuffles alone.
    #[serde(default)]
    pub shuffle_percent: u32,
    /// Per cent of the jobs that come at another time than foreseen.
    pub delayed_percent: u32,
    /// How much sooner or later at most, drawn evenly; never before time zero.
    pub delay: Span,
    /// Per cent by which the estimated remaining time of a running task is off at most, drawn for
    /// each task.
    pub remaining_percent: u32,
    /// Seed from which all of this is drawn.
    pub seed: u64,
}

impl Errors {
    /// The jobs as they come, and as they are foreseen: the same ids, other sizes, times and
    /// arrivals. O(jobs log jobs + task times).
    pub fn apply(&self, jobs: &JobList) -> (JobList, Vec<JobSpec>) {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let n = jobs.jobs.len();
        let mut real: Vec<(JobSpec, Time)> =
            jobs.jobs.iter().map(|j| (j.clone(), j.arrival)).collect();
        let mut late =
            index::sample(&mut rng, n, n * self.delayed_percent.min(100) as usize / 100).into_vec();
        late.sort_unstable();
        for k in late {
            let shift = rng.random_range(0..=2 * self.delay.0);
            let at = u128::from(real[k].1.0) + u128::from(shift);
            real[k].0.arrival = Time(
                u64::try_from(at.saturating_sub(u128::from(self.delay.0))).unwrap_or(u64::MAX),
            );
        }
        real.sort_by_key(|j| j.0.arrival);
        let foreseen: Vec<Time> = real.iter().map(|j| j.1).collect();
        let real = JobList::new(jobs.name.clone(), real.into_iter().map(|j| j.0).collect());
        let seen = real
            .jobs
            .iter()
            .zip(foreseen)
            .map(|(j, arrival)| self.seen(&JobSpec { arrival, ..j.clone() }, &mut rng))
            .collect();
        (real, seen)
    }

    fn seen(&self, job: &JobSpec, rng: &mut ChaCha8Rng) -> JobSpec {
        // In thousandths.
        let off = u64::from(self.size_percent.max(self.shuffle_percent).min(100)) * 10;
        let factor = rng.random_range(1000 - off..=1000 + off);
        let mut job = job.clone();
        if !job.recurring || factor == 1000 {
            return job;
        }
        let scaled =
            |n: u64| u64::try_from(u128::from(n) * u128::from(factor) / 1000).unwrap_or(u64::MAX);
        for s in job.stages.iter_mut().filter(|_| self.size_percent > 0) {
            (s.input, s.output) = (Bytes(scaled(s.input.0)), Bytes(scaled(s.output.0)));
            match &mut s.times {
                TaskTimes::Even(t) => *t = Span(scaled(t.0)),
                TaskTimes::Each(all) => all.iter_mut().for_each(|t| *t = Span(scaled(t.0))),
            }
        }
        job.edges.iter_mut().for_each(|e| e.bytes = Bytes(scaled(e.bytes.0)));
        job
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::synth_jobs::{Mix, SynthJobs, synth_jobs};

    fn jobs() -> JobList {
        let model = Mix::CoScheduler.preset().model();
        synth_jobs(&SynthJobs {
            mix: Mix::CoScheduler,
            model,
            jobs: 200,
            seed: 3,
            mean_gap: Span::secs(9),
        })
    }

    #[test]
    fn without_errors_nothing_changes() {
        let (real, seen) = Errors::default().apply(&jobs());
        assert_eq!((&real, &seen), (&jobs(), &jobs().jobs));
    }

    #[test]
    fn sizes_are_off_by_at_most_so_much_and_only_where_they_are_foreseen() {
        let e = Errors { size_percent: 50, seed: 4, ..Errors::default() };
        let (real, seen) = e.apply(&jobs());
        assert_eq!((&real, e.apply(&jobs()).1), (&jobs(), seen.clone()));
        let mut off = 0;
        for (a, b) in real.jobs.iter().zip(&seen) {
            let (x, y) = (a.shuffle_bytes().0, b.shuffle_bytes().0);
            assert!(
                y * 1000 + 1000 >= x * 500 && y * 1000 <= x * 1500 && (a.recurring || a == b),
                "{x} {y}"
            );
            off += u32::from(x.abs_diff(y) * 4 > x);
        }
        // Of some 80 recurring jobs, half are more than a quarter off.
        assert!((20..70).contains(&off), "{off}");
    }

    #[test]
    fn an_error_of_shuffles_touches_nothing_else() {
        let e = Errors { shuffle_percent: 50, seed: 4, ..Errors::default() };
        let (real, seen) = e.apply(&jobs());
        assert!(
            real.jobs
                .iter()
                .zip(&seen)
                .all(|(a, b)| a.stages == b.stages && a.arrival == b.arrival)
        );
        let other = Errors { size_percent: 50, seed: 4, ..Errors::default() }.apply(&jobs()).1;
        assert!(
            seen.iter().zip(&other).all(|(a, b)| a.edges == b.edges)
                && seen.iter().zip(&real.jobs).any(|(a, b)| a != b)
        );
    }

    #[test]
    fn some_jobs_come_at_another_time_and_all_keep_their_names() {
        let e =
            Errors { delayed_percent: 30, delay: Span::secs(200), seed: 4, ..Errors::default() };
        let (real, seen) = e.apply(&jobs());
        assert!(real.jobs.windows(2).all(|w| w[0].arrival <= w[1].arrival));
        let moved = real.jobs.iter().zip(&seen).filter(|(a, b)| a.arrival != b.arrival).count();
        assert_eq!(moved, 60);
        for (a, b) in real.jobs.iter().zip(&seen) {
            assert!(
                a.id == b.id
                    && a.name == b.name
                    && a.arrival.0.abs_diff(b.arrival.0) <= Span::secs(200).0
            );
            assert_eq!(jobs().jobs.iter().find(|j| j.name == a.name).unwrap().arrival, b.arrival);
        }
    }
}
