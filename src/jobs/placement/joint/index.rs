//! The order of jobs: remaining work, and the guard against waiting for ever.

use crate::ids::JobId;
use crate::placement::policy::View;
use crate::topology::Topology;
use crate::units::{BitRate, Bytes, Span, Time};
use crate::workload::jobs::JobSpec;

/// How many times as long as under fair sharing a job may wait before it goes first.
const PATIENCE: u64 = 2;

/// A job goes before shorter ones when its path is this part of the time that all slots need for all work, or more.
const TAIL: (u128, u128) = (3, 2);

/// What a slot is worth to the network: the rate at which a task receives while all slots of its host do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Share {
    /// Slots of the cluster, one at least.
    pub slots: u64,
    rate: BitRate,
}

impl Share {
    /// Of a network. O(hosts).
    pub fn of(t: &Topology) -> Self {
        let slots = t.hosts.iter().map(|h| u64::from(h.slots)).sum::<u64>().max(1);
        let nics = t.hosts.iter().map(|h| u128::from(t.payload(h.nic).0)).sum::<u128>();
        Self { slots, rate: BitRate((nics / u128::from(slots)) as u64) }
    }

    /// The slot time that a task of `tasks` holds while they all receive `bytes`.
    fn receives(self, bytes: Bytes, tasks: u32) -> Span {
        if self.rate == BitRate::ZERO { Span::ZERO } else { self.rate.time_for(Bytes(bytes.0 / u64::from(tasks.max(1)))) }
    }
}

/// Mean times of tasks of jobs that are known or have run, by whether they wait for a shuffle: what is expected of others.
#[derive(Clone, Copy, Debug, Default)]
pub struct Learnt([(u64, u64); 2]);

impl Learnt {
    /// A stage is known.
    pub fn note(&mut self, job: &JobSpec, stage: usize) {
        let (s, (time, tasks)) = (&job.stages[stage], &mut self.0[usize::from(receives(job, stage))]);
        *time = time.saturating_add(s.times.total(s.tasks).0);
        *tasks += u64::from(s.tasks);
    }

    /// What a task of a stage takes as far as is known; a nanosecond where nothing is, so that the fewest tasks go first.
    fn each(&self, job: &JobSpec, stage: usize) -> Span {
        let (time, tasks) = self.0[usize::from(receives(job, stage))];
        Span((time / tasks.max(1)).max(1))
    }
}

/// Whether a stage waits for others.
pub fn receives(job: &JobSpec, stage: usize) -> bool {
    job.edges_into(stage).next().is_some()
}

/// Bytes of the shuffles into a stage.
pub fn bytes_into(job: &JobSpec, stage: usize) -> Bytes {
    job.edges_into(stage).map(|e| e.bytes).sum()
}

/// What is kept of a job for its place in the order.
#[derive(Clone, Debug)]
pub struct Index {
    /// Whose it is.
    pub queue: u32,
    /// By stage: what a task takes, network included; `None`: not known yet.
    each: Vec<Option<Span>>,
    /// When its turn has come, whatever others need.
    due: Time,
}

impl Index {
    /// Of a job that has come; `foreseen`: as it is known ahead. Its guard is set by [`Self::guard`]. O(stages + tasks of unequal times).
    pub fn new(job: &JobSpec, foreseen: Option<&JobSpec>, share: Share) -> Self {
        let known = |s: usize| foreseen.map(|f| whole(f, s, share));
        Self { queue: job.queue, each: (0..job.stages.len()).map(known).collect(), due: Time::MAX }
    }

    /// Sets the guard: `open` is the work of its user's unfinished jobs, its own included, and `users` the number of users that have some.
    pub fn guard(&mut self, job: &JobSpec, now: Time, learnt: &Learnt, (open, users): (u64, u64), share: Share) {
        let path: Span = (0..job.stages.len()).map(|s| self.task(job, s, learnt)).fold(Span::ZERO, |a, b| a + b);
        let fair = (u128::from(open) * u128::from(users.max(1)) / u128::from(share.slots)).min(u128::from(u64::MAX)) as u64;
        self.due = now + (Span(fair) + path) * PATIENCE;
    }

    /// All slot time that the job needs, ns.
    pub fn work(&self, job: &JobSpec, learnt: &Learnt) -> u64 {
        let of = |s: usize| self.task(job, s, learnt).0.saturating_mul(job.stages[s].tasks.into());
        (0..job.stages.len()).map(of).fold(0, u64::saturating_add)
    }

    /// What a task of a stage takes, as far as is known.
    pub fn task(&self, job: &JobSpec, stage: usize, learnt: &Learnt) -> Span {
        self.each[stage].unwrap_or_else(|| learnt.each(job, stage))
    }

    /// What decides its place among jobs that wait. Learns what can be seen by now. O(stages).
    pub fn rank(&mut self, view: &dyn View, job: JobId, learnt: &Learnt, share: Share) -> Rank {
        let spec = view.job(job);
        let (mut work, mut path) = (0u64, 0u64);
        for s in 0..spec.stages.len() {
            let counts = view.counts(job, s);
            if self.each[s].is_none() && counts.finished > 0 {
                self.each[s] = Some(whole(spec, s, share));
            }
            let each = self.task(spec, s, learnt).0;
            let stage = each.saturating_mul(counts.pending.into());
            work = work.saturating_add(stage);
            path = path.saturating_add(if counts.pending == 0 { 0 } else { each.max(stage / share.slots) });
        }
        Rank { due: (self.due <= view.now()).then_some(self.due), work, path }
    }
}

/// What decides the place of a job.
#[derive(Clone, Copy, Debug)]
pub struct Rank {
    /// Its turn has come, and when.
    due: Option<Time>,
    /// Slot time that its tasks without slots need, ns.
    pub work: u64,
    /// How long they take at least, one stage after another.
    path: u64,
}

impl Rank {
    /// The place, smallest first: jobs whose turn has come by when it came; jobs that would end last of all if they waited, the longest
    /// first; the others by work. `horizon`: how long all slots need for all work, if no more jobs are expected.
    pub fn key(&self, horizon: Option<u128>) -> (u8, u64) {
        let is_tail = horizon.is_some_and(|h| u128::from(self.path) * TAIL.1 >= h * TAIL.0);
        match self.due {
            Some(due) => (0, due.0),
            None if is_tail => (1, u64::MAX - self.path),
            None => (2, self.work),
        }
    }
}

/// The slot time of a task of a stage, in the mean: it receives, and computes.
fn whole(job: &JobSpec, stage: usize, share: Share) -> Span {
    let s = &job.stages[stage];
    Span(s.times.total(s.tasks).0 / u64::from(s.tasks.max(1))) + share.receives(bytes_into(job, stage), s.tasks)
}
