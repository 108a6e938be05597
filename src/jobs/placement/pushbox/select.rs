//! Which task of a job is the candidate for a slot: the one that is critical for the job.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::estimate::Misjudged;
use crate::ids::{HostId, JobId};
use crate::placement::baselines::delay::Waits;
use crate::placement::policy::{Locality, TaskAt, View, startable};
use crate::units::{Bytes, Span};

/// A task that might have a slot of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CandidateTask {
    /// Its stage.
    pub stage: usize,
    /// Its number.
    pub task: u32,
    /// Whether the scheduler chooses the task: the nearest of a stage that reads blocks.
    pub nearest: bool,
    /// Bytes that it would fetch over the network.
    pub fetches: Bytes,
    /// How long it would compute.
    pub computing: Span,
}

impl CandidateTask {
    /// Whether it needs nothing of the network on the host.
    pub fn is_local(&self) -> bool {
        self.fetches == Bytes::ZERO
    }
}

/// Selects tasks.
#[derive(Clone, Debug)]
pub struct Selector {
    waits: Waits,
    rack_local: bool,
    /// Any task of a stage that shuffles, drawn from this, instead of the largest.
    random: Option<u64>,
    wrong: Misjudged,
    /// By stage, what its tasks are taken to have of input, where that is wrong.
    judged: BTreeMap<(JobId, usize), Vec<Bytes>>,
    /// By job with several stages, by stage: the longest way to the job's end.
    ways: BTreeMap<JobId, Vec<Span>>,
}

impl Selector {
    /// With the waits of delay scheduling for stages that read blocks, and errors in what tasks are
    /// taken to receive.
    pub fn new(waits: Waits, rack_local: bool, random: Option<u64>, wrong: Misjudged) -> Self {
        Self { waits, rack_local, random, wrong, judged: BTreeMap::new(), ways: BTreeMap::new() }
    }

    /// From now on tasks are drawn from this, or the largest are taken.
    #[cfg(test)]
    pub fn draw(&mut self, seed: Option<u64>) {
        self.random = seed;
    }

    /// Delay scheduling's waits.
    pub fn waits(&mut self) -> &mut Waits {
        &mut self.waits
    }

    /// When the first wait ends.
    pub fn wake_at(&self) -> Option<crate::units::Time> {
        self.waits.wake_at()
    }

    /// How near a task is, where its rack may be as good as its host.
    pub fn nearness(&self, near: Locality) -> Locality {
        if self.rack_local && near == Locality::Rack { Locality::Host } else { near }
    }

    /// A job came: how long the ways from its stages to its end are, by the largest computing time
    /// and the largest input at the rate of a NIC. O(tasks + edges).
    pub fn submitted(&mut self, view: &dyn View, job: JobId) {
        let spec = view.job(job);
        if spec.stages.len() < 2 {
            return;
        }
        let t = view.topology();
        let nic = t.payload(t.hosts.iter().map(|h| h.nic).max().unwrap_or_default());
        let mut ways = vec![Span::ZERO; spec.stages.len()];
        for s in (0..spec.stages.len()).rev() {
            let stage = &spec.stages[s];
            let input =
                (0..stage.tasks).map(|k| view.input_of(job, s, k)).max().unwrap_or_default();
            let after = spec
                .edges
                .iter()
                .filter(|e| e.from == s)
                .map(|e| ways[e.to])
                .max()
                .unwrap_or_default();
            ways[s] = after + stage.times.longest() + nic.time_for(input);
        }
        self.ways.insert(job, ways);
    }

    /// A job is over.
    pub fn forget(&mut self, job: JobId) {
        self.ways.remove(&job);
        self.judged.retain(|of, _| of.0 != job);
    }

    /// Of the stages with tasks that may start, the one with the longest way to the job's end, the
    /// first among equals.
    pub fn critical(&self, view: &dyn View, job: JobId) -> Option<usize> {
        let way = |s: usize| self.ways.get(&job).map_or(Span::ZERO, |w| w[s]);
        startable(view, job).max_by_key(|&s| (way(s), Reverse(s)))
    }

    /// The paper's `selectTask` (Algorithm 1, lines 1 to 8) among the tasks of a stage. Of one that
    /// reads blocks, it is what delay scheduling gives to this host, which may be nothing. Else it
    /// is the task with the most input. O(log hosts), and what [`View::largest`] takes.
    pub fn select(
        &mut self,
        view: &dyn View,
        (job, stage): (JobId, usize),
        host: HostId,
    ) -> Option<CandidateTask> {
        let reads =
            !view.blocks(job, stage).is_empty() && view.job(job).edges_into(stage).next().is_none();
        let task = if reads {
            let (task, near) = view.nearest(job, stage, host)?;
            let near = self.nearness(near);
            if !self.waits.may(view, (job, stage), near) {
                return None;
            }
            task
        } else {
            match self.random {
                None if self.wrong.factor > 1 => self.seemingly_largest(view, (job, stage))?,
                None => view.largest(job, stage)?,
                Some(seed) => drawn(view, (job, stage), seed)?,
            }
        };
        let fetches = view.input_from_afar(job, stage, task, host);
        Some(CandidateTask {
            stage,
            task,
            nearest: reads,
            fetches,
            computing: view.computing_time(job, stage, task),
        })
    }
}

impl Selector {
    /// The pending task that is taken to have the most input, the first among equals. O(tasks).
    fn seemingly_largest(&mut self, view: &dyn View, (job, stage): (JobId, usize)) -> Option<u32> {
        let wrong = self.wrong;
        let one = |k| wrong.bytes((job, stage, k), view.input_of(job, stage, k));
        let judged = self
            .judged
            .entry((job, stage))
            .or_insert_with(|| (0..view.job(job).stages[stage].tasks).map(one).collect());
        let waiting = view
            .tasks(job, stage)
            .zip(judged.iter())
            .enumerate()
            .filter(|(_, (at, _))| *at == TaskAt::Pending);
        waiting.max_by_key(|&(k, (_, bytes))| (*bytes, Reverse(k))).map(|(k, _)| k as u32)
    }
}

/// One of the pending tasks of a stage; the same one until some task of the stage starts. O(tasks).
pub fn drawn(view: &dyn View, (job, stage): (JobId, usize), seed: u64) -> Option<u32> {
    let pending = view.counts(job, stage).pending;
    if pending == 0 {
        return None;
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(u64::from(job.0) << 32 | (stage as u64) << 20 | u64::from(pending));
    let n = rng.random_range(0..pending) as usize;
    let waiting = view.tasks(job, stage).enumerate().filter(|t| t.1 == TaskAt::Pending);
    waiting.map(|t| t.0 as u32).nth(n)
}
