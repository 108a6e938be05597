//! The order of jobs: remaining work, and the guard against waiting for ever.

use crate::ids::JobId;
use crate::placement::policy::View;
use crate::topology::Topology;
use crate::units::{BitRate, Bytes, Span, Time};
use crate::workload::jobs::JobSpec;

/// How many times as long as under fair sharing a job may wait before it goes first.
const PATIENCE: u64 = 2;

/// A job goes before shorter ones when its path is this part of the time that all slots need for
/// all work, or more.
const TAIL: (u128, u128) = (3, 2);
/// The class in a job's key if it goes first for that reason.
pub const TAILS: u8 = 1;

/// What a slot is worth to the network: the rate at which a task receives while all slots of its
/// host do.
#[derive(Clone, Copy, Debug, Default)]
pub struct SlotRate {
    /// Slots of the cluster, one at least.
    pub slots: u64,
    rate: BitRate,
}

impl SlotRate {
    /// Of a network. O(hosts).
    pub fn of(t: &Topology) -> Self {
        let slots = t.hosts.iter().map(|h| u64::from(h.slots)).sum::<u64>().max(1);
        let nics = t.hosts.iter().map(|h| u128::from(t.payload(h.nic).0)).sum::<u128>();
        Self { slots, rate: BitRate((nics / u128::from(slots)) as u64) }
    }

    /// The slot time that a task of `tasks` holds while they all receive `bytes`.
    fn receives(self, bytes: Bytes, tasks: u32) -> Span {
        if self.rate == BitRate::ZERO {
            Span::ZERO
        } else {
            self.rate.time_for(Bytes(bytes.0 / u64::from(tasks.max(1))))
        }
    }
}

/// What tasks of jobs that are known or have run took, by whether they wait for a shuffle: what is
/// expected of others.
#[derive(Clone, Copy, Debug, Default)]
pub struct Learnt {
    kinds: [FittedLine; 2],
    /// Bytes read and shuffled by jobs whose last stage is known.
    bytes: (u128, u128),
}

/// Sums over tasks for the line of least squares through their times by their bytes, in kilobytes
/// and microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct FittedLine {
    n: i128,
    x: i128,
    y: i128,
    xx: i128,
    xy: i128,
}

impl FittedLine {
    /// `tasks` tasks have `bytes` and take `time`, each.
    pub fn note(&mut self, tasks: u32, bytes: u64, time: Span) {
        let (n, x, y) = (i128::from(tasks), i128::from(bytes / 1000), i128::from(time.0 / 1000));
        *self = Self {
            n: self.n + n,
            x: self.x + n * x,
            y: self.y + n * y,
            xx: self.xx + n * x * x,
            xy: self.xy + n * x * y,
        };
    }

    /// The time of a task of `bytes`: the mean where times do not grow with bytes, and never faster
    /// than in proportion to them.
    pub fn at(&self, bytes: u64) -> Span {
        let Self { n, x, y, xx, xy } = *self;
        if n == 0 {
            return Span::ZERO;
        }
        let minus = |a: i128, b: i128, c: i128, d: i128| {
            a.saturating_mul(b).saturating_sub(c.saturating_mul(d))
        };
        let (spread, both) = (minus(n, xx, x, x), minus(n, xy, x, y));
        // In 65536ths of a microsecond for a kilobyte.
        let ratio = |a: i128, b: i128| a.saturating_mul(65_536).checked_div(b).unwrap_or(0).max(0);
        let slope = if spread > 0 { ratio(both, spread).min(ratio(y, x)) } else { 0 };
        let beyond = n.saturating_mul(i128::from(bytes / 1000)).saturating_sub(x);
        let sum = y.saturating_add(slope.saturating_mul(beyond) / 65_536);
        Span(u64::try_from((sum / n).max(0)).unwrap_or(u64::MAX).saturating_mul(1000))
    }
}

impl Learnt {
    /// A stage is known. O(tasks of unequal times).
    pub fn note(&mut self, job: &JobSpec, stage: usize) {
        let (s, late) = (&job.stages[stage], receives(job, stage));
        let (bytes, tasks) =
            (if late { bytes_into(job, stage) } else { s.input }, u64::from(s.tasks.max(1)));
        self.kinds[usize::from(late)].note(
            s.tasks,
            bytes.0 / tasks,
            Span(s.times.total(s.tasks).0 / tasks),
        );
        if late {
            self.bytes = (
                self.bytes.0 + u128::from(read_before(job, stage)),
                self.bytes.1 + u128::from(bytes.0),
            );
        }
    }

    /// What a stage is expected to receive, by what the stages before it read.
    pub fn expected(&self, job: &JobSpec, stage: usize) -> Bytes {
        let bytes = u128::from(read_before(job, stage)) * self.bytes.1 / self.bytes.0.max(1);
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// What a task of a stage takes as far as is known, network included; a nanosecond where
    /// nothing is, so that the fewest tasks go first. What it receives is known if it is `sent`;
    /// else it is expected by what the stages before it read.
    fn each(&self, job: &JobSpec, stage: usize, sent: bool, share: SlotRate) -> Span {
        let (s, late) = (&job.stages[stage], receives(job, stage));
        let bytes = match (late, sent) {
            (false, _) => s.input.0,
            (true, true) => bytes_into(job, stage).0,
            (true, false) => self.expected(job, stage).0,
        };
        let computes = self.kinds[usize::from(late)].at(bytes / u64::from(s.tasks.max(1)));
        computes.max(Span(1))
            + if late { share.receives(Bytes(bytes), s.tasks) } else { Span::ZERO }
    }
}

/// What the stages read that send to a stage.
fn read_before(job: &JobSpec, stage: usize) -> u64 {
    job.edges_into(stage).map(|e| job.stages[e.from].input.0).fold(0, u64::saturating_add)
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
    /// By stage: what it receives is known, since all that it waits for has finished.
    sent: Vec<bool>,
    share: SlotRate,
    /// When its turn has come, whatever others need.
    due: Time,
}

impl Index {
    /// Of a job that has come; `foreseen`: as it is known ahead. Its guard is set by
    /// [`Self::guard`]. O(stages + tasks of unequal times).
    pub fn new(job: &JobSpec, foreseen: Option<&JobSpec>, share: SlotRate) -> Self {
        let known = |s: usize| foreseen.map(|f| whole(f, s, share));
        Self {
            queue: job.queue,
            each: (0..job.stages.len()).map(known).collect(),
            sent: vec![false; job.stages.len()],
            share,
            due: Time::MAX,
        }
    }

    /// Sets the guard: `open` is the work of its user's unfinished jobs, its own included, and
    /// `users` the number of users that have some.
    pub fn guard(
        &mut self,
        job: &JobSpec,
        now: Time,
        learnt: &Learnt,
        (open, users): (u64, u64),
        share: SlotRate,
    ) {
        let path: Span =
            (0..job.stages.len()).map(|s| self.task(job, s, learnt)).fold(Span::ZERO, |a, b| a + b);
        let fair = (u128::from(open) * u128::from(users.max(1)) / u128::from(share.slots))
            .min(u128::from(u64::MAX)) as u64;
        self.due = now + (Span(fair) + path) * PATIENCE;
    }

    /// All slot time that the job needs, ns.
    pub fn work(&self, job: &JobSpec, learnt: &Learnt) -> u64 {
        let of = |s: usize| self.task(job, s, learnt).0.saturating_mul(job.stages[s].tasks.into());
        (0..job.stages.len()).map(of).fold(0, u64::saturating_add)
    }

    /// What a task of a stage takes, as far as is known.
    pub fn task(&self, job: &JobSpec, stage: usize, learnt: &Learnt) -> Span {
        self.each[stage].unwrap_or_else(|| learnt.each(job, stage, self.sent[stage], self.share))
    }

    /// What decides its place among jobs that wait. Learns what can be seen by now. O(stages).
    pub fn rank(
        &mut self,
        view: &dyn View,
        job: JobId,
        learnt: &Learnt,
        share: SlotRate,
    ) -> JobRank {
        let spec = view.job(job);
        let (mut work, mut path) = (0u64, 0u64);
        for s in 0..spec.stages.len() {
            let counts = view.counts(job, s);
            if self.each[s].is_none() && counts.finished > 0 {
                self.each[s] = Some(whole(spec, s, share));
            }
            if self.each[s].is_none() && !self.sent[s] {
                self.sent[s] = spec
                    .edges_into(s)
                    .all(|e| view.counts(job, e.from).finished == spec.stages[e.from].tasks);
            }
            let each = self.task(spec, s, learnt).0;
            let stage = each.saturating_mul(counts.pending.into());
            work = work.saturating_add(stage);
            path = path.saturating_add(if counts.pending == 0 {
                0
            } else {
                each.max(stage / share.slots)
            });
        }
        JobRank { due: (self.due <= view.now()).then_some(self.due), work, path }
    }
}

/// What decides the place of a job.
#[derive(Clone, Copy, Debug)]
pub struct JobRank {
    /// Its turn has come, and when.
    due: Option<Time>,
    /// Slot time that its tasks without slots need, ns.
    pub work: u64,
    /// How long they take at least, one stage after another.
    path: u64,
}

impl JobRank {
    /// The place, smallest first: jobs whose turn has come by when it came; jobs that would end
    /// last of all if they waited, the longest first; the others by work. `horizon`: how long all
    /// slots need for all work, if no more jobs are expected.
    pub fn key(&self, horizon: Option<u128>) -> (u8, u64) {
        let is_tail = horizon.is_some_and(|h| u128::from(self.path) * TAIL.1 >= h * TAIL.0);
        match self.due {
            Some(due) => (0, due.0),
            None if is_tail => (TAILS, u64::MAX - self.path),
            None => (2, self.work),
        }
    }
}

/// The slot time of a task of a stage, in the mean: it receives, and computes.
fn whole(job: &JobSpec, stage: usize, share: SlotRate) -> Span {
    let s = &job.stages[stage];
    Span(s.times.total(s.tasks).0 / u64::from(s.tasks.max(1)))
        + share.receives(bytes_into(job, stage), s.tasks)
}
