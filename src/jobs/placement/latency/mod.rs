//! Latency response functions: how long a job will take, as a function of how many racks it gets.
//!
//! They are proxies for planning, not predictions (Corral, section 4.3): stages one after another,
//! bytes and tasks spread evenly. [`corral`] knows one number of racks, for maps and reduces alike;
//! [`hybrid`] knows two, and circuits; [`matrix`] lays the latter out for every pair of widths,
//! with the zone that is worth considering.

use crate::units::Span;
use crate::workload::jobs::{JobSpec, StageSpec, TaskTimes};

use super::cluster::Cluster;

pub mod corral;
pub mod hybrid;
pub mod matrix;

/// How long a stage computes on `racks` racks: waves times the mean task (Corral, section 4.3,
/// l_map and l_reduce), but never less than its longest task, which the paper's equal tasks do not
/// have.
///
/// # Panics
/// If `racks` is zero.
pub fn compute(stage: &StageSpec, racks: usize, cluster: &Cluster) -> Span {
    let waves = cluster.waves(stage.tasks, racks);
    match &stage.times {
        TaskTimes::Even(t) => *t * waves,
        TaskTimes::Each(_) => {
            let all = u128::from(stage.times.total(stage.tasks).0) * u128::from(waves);
            let mean = all.div_ceil(u128::from(stage.tasks.max(1)));
            Span(u64::try_from(mean).unwrap_or(u64::MAX)).max(stage.times.longest())
        }
    }
}

/// The longest path through the job's stages (Corral, section 4.3, general DAGs): a stage takes
/// `stage(s)`, an edge `edge(e)` before it. Zero for a job without stages. O(stages + edges).
pub fn critical_path(
    job: &JobSpec,
    stage: impl Fn(usize) -> Span,
    edge: impl Fn(usize) -> Span,
) -> Span {
    finishes(job, stage, edge).into_iter().max().unwrap_or(Span::ZERO)
}

/// When each stage finishes, counted from the job's start, if nothing waits but for its inputs.
pub fn finishes(
    job: &JobSpec,
    stage: impl Fn(usize) -> Span,
    edge: impl Fn(usize) -> Span,
) -> Vec<Span> {
    let mut ready = vec![Span::ZERO; job.stages.len()];
    let mut finish = vec![Span::ZERO; job.stages.len()];
    // Edges are in the order of their first stage, and lead to later ones: when a stage is reached,
    // all that it waits for is known.
    let mut edges = job.edges.iter().enumerate().peekable();
    for s in 0..job.stages.len() {
        finish[s] = ready[s] + stage(s);
        while let Some((k, e)) = edges.next_if(|(_, e)| e.from == s) {
            ready[e.to] = ready[e.to].max(finish[s] + edge(k));
        }
    }
    finish
}

#[cfg(test)]
pub(crate) mod samples {
    //! Jobs for the tests of the planners.

    use super::*;
    use crate::units::{Bytes, Time};
    use proptest::prelude::*;

    /// A stage of even tasks.
    pub fn stage(tasks: u32, time: Span) -> StageSpec {
        StageSpec {
            name: "s".into(),
            tasks,
            times: TaskTimes::Even(time),
            input: Bytes::ZERO,
            output: Bytes::ZERO,
            streams: false,
        }
    }

    /// A MapReduce: (tasks, milliseconds a task) of both stages, and megabytes of shuffle. Its
    /// input is as large as its shuffle.
    pub fn map_reduce(map: (u32, u64), reduce: (u32, u64), shuffle_mb: u64) -> JobSpec {
        let bytes = Bytes(shuffle_mb * 1_000_000);
        let mut maps = stage(map.0, Span::millis(map.1));
        maps.input = bytes;
        JobSpec::map_reduce("j", Time::ZERO, maps, stage(reduce.0, Span::millis(reduce.1)), bytes)
    }

    prop_compose! {
        /// Any small MapReduce.
        pub fn any_map_reduce()(m in 1u32..60, tm in 1u64..9000, r in 1u32..30, tr in 1u64..9000, mb in 0u64..40_000) -> JobSpec {
            map_reduce((m, tm), (r, tr), mb)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;
    use crate::workload::jobs::EdgeSpec;

    #[test]
    fn uneven_tasks_take_the_mean_a_wave_but_not_less_than_the_longest() {
        let cluster = Cluster { racks: 4, hosts: 2, slots: 1, ..Cluster::jobpacker() };
        let mut s = samples::stage(5, Span::secs(4));
        assert_eq!(
            (compute(&s, 1, &cluster), compute(&s, 2, &cluster)),
            (Span::secs(12), Span::secs(8))
        );
        s.times = TaskTimes::Each([1, 1, 1, 1, 6].map(Span::secs).to_vec());
        assert_eq!(
            (compute(&s, 1, &cluster), compute(&s, 3, &cluster)),
            (Span::secs(6), Span::secs(6))
        );
    }

    #[test]
    fn the_critical_path_is_the_longest_of_all_paths() {
        // 0 -> 1 -> 3, 0 -> 2 -> 3, and 4 alone.
        let edge = |from, to| EdgeSpec::even(from, to, Bytes(1));
        let mut job = samples::map_reduce((1, 1), (1, 1), 1);
        job.stages = (0..5).map(|_| samples::stage(1, Span::ZERO)).collect();
        job.edges = vec![edge(0, 1), edge(0, 2), edge(1, 3), edge(2, 3)];
        let stage = |s: usize| Span([10, 1, 5, 7, 3][s]);
        let edges = |e: usize| Span([100, 2, 1, 50][e]);
        assert_eq!(critical_path(&job, stage, edges), Span(10 + 100 + 1 + 1 + 7));
        assert_eq!(finishes(&job, stage, |_| Span::ZERO), [10, 11, 15, 22, 3].map(Span));
    }
}
