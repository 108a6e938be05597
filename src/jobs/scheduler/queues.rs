//! Queues of users: which job shall have the next slot.
//!
//! FIFO takes jobs as they came, over all queues. Fair gives every queue slots in proportion to its
//! weight, and within a queue every job the same number; the one that has the least comes first.
//! Capacity gives queues slots in proportion to their weight too, but within a queue the oldest job
//! goes first. No queue has a limit: slots that others do not need are lent. SRPT takes the job
//! whose tasks without slots need the least slot time, over all queues.
//!
//! Queues may have orders of their own. Slots are then shared between queues by weight, and a queue
//! of FIFO is served as one of Capacity.

use std::collections::BTreeSet;

use super::held::HeldJobs;
use crate::ids::JobId;
pub use crate::placement::policy::JobOrder;

#[derive(Clone, Debug)]
struct JobQueue {
    weight: u64,
    order: JobOrder,
    running: u64,
    /// Jobs that have not finished.
    open: BTreeSet<JobId>,
    /// Jobs that have a task which may start, by their key.
    ready: BTreeSet<(u64, JobId)>,
}

#[derive(Clone, Copy, Debug)]
struct QueuedJob {
    queue: u32,
    running: u64,
    ready: bool,
    /// See [`JobQueues::ready_below`].
    least: u64,
    /// Slot time of its tasks without slots, ns.
    work: u64,
}

/// All queues and the jobs in them. Every change is O(log n).
#[derive(Clone, Debug)]
pub struct JobQueues {
    order: JobOrder,
    /// Orders of the first queues, where they differ.
    orders: Vec<JobOrder>,
    queues: Vec<JobQueue>,
    jobs: HeldJobs<QueuedJob>,
    /// Queues with ready jobs, by what they hold over their weight.
    by_share: BTreeSet<(u64, u32)>,
    /// Ready jobs by what the smallest of their coflows comes to.
    by_least: BTreeSet<(u64, JobId)>,
}

/// The most jobs that [`JobQueues::ready_below`] puts into their order; more are looked for among
/// all.
const FEW: usize = 64;

impl JobQueues {
    /// Queues of these weights (zero counts as one); a job of a queue beyond them opens it with
    /// weight one. The first queues have these `orders`, others have `order`.
    pub fn new(order: JobOrder, orders: &[JobOrder], weights: &[u32]) -> Self {
        let (by_share, by_least) = (BTreeSet::new(), BTreeSet::new());
        let mut all = Self {
            order,
            orders: orders.to_vec(),
            queues: Vec::new(),
            jobs: HeldJobs::default(),
            by_share,
            by_least,
        };
        weights.iter().for_each(|&w| all.open_queue(w.max(1)));
        all
    }

    fn open_queue(&mut self, weight: u32) {
        let order = self.orders.get(self.queues.len()).copied().unwrap_or(self.order);
        self.queues.push(JobQueue {
            weight: u64::from(weight),
            order,
            running: 0,
            open: BTreeSet::new(),
            ready: BTreeSet::new(),
        });
    }

    /// Takes in the next job by id; it is not ready yet.
    pub fn join(&mut self, queue: u32) {
        let queue = if self.order.is_one_queue() && self.orders.is_empty() { 0 } else { queue };
        while self.queues.len() <= queue as usize {
            self.open_queue(1);
        }
        self.queues[queue as usize].open.insert(JobId::from(self.jobs.total()));
        self.jobs.push(QueuedJob { queue, running: 0, ready: false, least: 0, work: 0 });
    }

    /// A job has finished and will not be asked about again.
    pub fn forget(&mut self, job: JobId) {
        self.jobs.remove(job);
    }

    /// A job has finished.
    pub fn leave(&mut self, job: JobId) {
        let queue = self.jobs[job].queue;
        self.queues[queue as usize].open.remove(&job);
    }

    /// The order of a job's queue.
    pub fn order_of(&self, job: JobId) -> JobOrder {
        self.queues[self.jobs[job].queue as usize].order
    }

    /// The oldest job of a job's queue that has not finished. O(log jobs).
    pub fn head(&self, job: JobId) -> Option<JobId> {
        self.queues[self.jobs[job].queue as usize].open.first().copied()
    }

    /// Says whether a job has a task that may start: what the smallest of its coflows comes to, 0
    /// if a task might need none.
    pub fn set_ready(&mut self, job: JobId, least: Option<u64>) {
        let j = self.jobs[job];
        if j.ready == least.is_some() && least.is_none_or(|l| l == j.least) {
            return;
        }
        if j.ready {
            self.by_least.remove(&(j.least, job));
        }
        if let Some(least) = least {
            self.jobs[job].least = least;
            self.by_least.insert((least, job));
        }
        if j.ready != least.is_some() {
            self.change(job, |j| j.ready = least.is_some());
        }
    }

    /// Whether the order looks at the work of jobs: [`Self::set_work`] must be called at every
    /// change.
    pub fn by_work(&self) -> bool {
        self.order == JobOrder::Srpt || self.orders.contains(&JobOrder::Srpt)
    }

    /// Says how much slot time the tasks of a job need that have no slot, ns.
    pub fn set_work(&mut self, job: JobId, work: u64) {
        self.change(job, |j| j.work = work);
    }

    /// A job holds one slot more.
    pub fn took(&mut self, job: JobId) {
        self.change(job, |j| j.running += 1);
    }

    /// A job holds one slot less.
    pub fn gave(&mut self, job: JobId) {
        self.change(job, |j| j.running -= 1);
    }

    /// Whether no job is ready.
    pub fn is_idle(&self) -> bool {
        self.by_share.is_empty()
    }

    /// Ready jobs: the one that shall have the next slot comes first.
    pub fn ready(&self) -> impl Iterator<Item = JobId> + '_ {
        self.by_share.iter().flat_map(|&(_, q)| self.queues[q as usize].ready.iter().map(|e| e.1))
    }

    /// Of the ready jobs, in their order, those of which a coflow is smaller than `bound`, and
    /// those that might need none. O(c log c) of c such jobs if they are few, else O(ready jobs).
    pub fn ready_below(&self, bound: u64) -> Box<dyn Iterator<Item = JobId> + '_> {
        let bound = bound.max(1);
        let mut few: Vec<(u64, u32, u64, JobId)> = Vec::new();
        for &(_, job) in self.by_least.range(..(bound, JobId(0))) {
            if few.len() == FEW {
                return Box::new(self.ready().filter(move |&j| self.jobs[j].least < bound));
            }
            let j = &self.jobs[job];
            let q = &self.queues[j.queue as usize];
            few.push((share(q), j.queue, key(q.order, j), job));
        }
        few.sort_unstable();
        Box::new(few.into_iter().map(|f| f.3))
    }

    fn change(&mut self, job: JobId, f: impl FnOnce(&mut QueuedJob)) {
        let j = &mut self.jobs[job];
        let q = &mut self.queues[j.queue as usize];
        if !q.ready.is_empty() {
            self.by_share.remove(&(share(q), j.queue));
        }
        if j.ready {
            q.ready.remove(&(key(q.order, j), job));
        }
        let before = j.running;
        f(j);
        q.running = q.running + j.running - before;
        if j.ready {
            q.ready.insert((key(q.order, j), job));
        }
        if !q.ready.is_empty() {
            self.by_share.insert((share(q), j.queue));
        }
    }
}

fn key(order: JobOrder, j: &QueuedJob) -> u64 {
    match order {
        JobOrder::Fair => j.running,
        JobOrder::Srpt => j.work,
        JobOrder::Fifo | JobOrder::Capacity => 0,
    }
}

fn share(q: &JobQueue) -> u64 {
    q.running * (1 << 20) / q.weight
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(order: JobOrder) -> JobQueues {
        filled_by(order, &[])
    }

    fn filled_by(order: JobOrder, orders: &[JobOrder]) -> JobQueues {
        let mut q = JobQueues::new(order, orders, &[3, 1]);
        for queue in [0, 1, 0, 1] {
            q.join(queue);
        }
        (0..4).for_each(|j| q.set_ready(JobId(j), Some(0)));
        q
    }

    #[test]
    fn srpt_takes_the_least_work_of_all_queues() {
        let mut q = filled(JobOrder::Srpt);
        [30, 10, 20, 10]
            .into_iter()
            .enumerate()
            .for_each(|(j, work)| q.set_work(JobId::from(j), work));
        let order = |q: &JobQueues| q.ready().map(|j| j.0).collect::<Vec<_>>();
        assert_eq!(order(&q), [1, 3, 2, 0]);
        // What it holds does not count, what it still needs does.
        q.took(JobId(1));
        q.set_work(JobId(2), 5);
        assert_eq!(
            (order(&q), q.by_work(), filled(JobOrder::Fair).by_work()),
            (vec![2, 1, 3, 0], true, false)
        );
    }

    /// Jobs that get the first `n` slots, each job wanting all it can have.
    fn served(mut q: JobQueues, n: usize) -> Vec<u32> {
        let next = |q: &mut JobQueues| {
            let j = q.ready().next().unwrap();
            q.took(j);
            j.0
        };
        (0..n).map(|_| next(&mut q)).collect()
    }

    #[test]
    fn fair_shares_by_weight_between_queues_and_evenly_within() {
        assert_eq!(served(filled(JobOrder::Fair), 8), [0, 1, 2, 0, 2, 3, 0, 2]);
        let many = served(filled(JobOrder::Fair), 400);
        let of = |j| many.iter().filter(|&&k| k == j).count();
        assert_eq!([of(0), of(1), of(2), of(3)], [150, 50, 150, 50]);
    }

    #[test]
    fn capacity_shares_between_queues_and_keeps_their_order_within() {
        assert_eq!(served(filled(JobOrder::Capacity), 8), [0, 1, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn fifo_knows_no_queues() {
        let mut q = filled(JobOrder::Fifo);
        assert_eq!(q.ready().map(|j| j.0).collect::<Vec<_>>(), [0, 1, 2, 3]);
        q.set_ready(JobId(0), None);
        assert_eq!(served(q, 3), [1, 1, 1]);
    }

    #[test]
    fn queues_may_have_orders_of_their_own() {
        // Shares as under Capacity: the first queue goes by age, the second by slots held.
        let mixed = filled_by(JobOrder::Fair, &[JobOrder::Fifo, JobOrder::Fair]);
        assert_eq!(served(mixed.clone(), 8), [0, 1, 0, 0, 0, 3, 0, 0]);
        assert_eq!([0, 1].map(|j| mixed.order_of(JobId(j))), [JobOrder::Fifo, JobOrder::Fair]);
        assert_eq!(
            served(filled_by(JobOrder::Fifo, &[JobOrder::Fair]), 8),
            [0, 1, 2, 0, 2, 1, 0, 2]
        );
    }

    #[test]
    fn the_head_of_a_queue_is_its_oldest_job_until_that_leaves() {
        let mut q = filled(JobOrder::Fair);
        q.set_ready(JobId(0), None);
        assert_eq!((q.head(JobId(2)), q.head(JobId(3))), (Some(JobId(0)), Some(JobId(1))));
        q.leave(JobId(0));
        assert_eq!(q.head(JobId(2)), Some(JobId(2)));
        assert_eq!(filled(JobOrder::Fifo).head(JobId(3)), Some(JobId(0)));
    }

    #[test]
    fn jobs_with_small_coflows_are_found_in_the_order_of_all() {
        for jobs in [5u32, 40, 400] {
            let mut q = JobQueues::new(JobOrder::Fair, &[], &[3, 1, 2]);
            (0..jobs).for_each(|k| q.join(k % 3));
            let least = |k: u32| u64::from(k * 7919 % jobs);
            (0..jobs).filter(|k| k % 7 > 0).for_each(|k| q.set_ready(JobId(k), Some(least(k))));
            for k in 0..jobs {
                (0..k * 13 % 5).for_each(|_| q.took(JobId(k)));
            }
            q.set_ready(JobId(2), None);
            q.set_ready(JobId(3), Some(0));
            for bound in [0, 1, 2, 20, 100, 1000] {
                let slow: Vec<JobId> = q
                    .ready()
                    .filter(|j| j.0 == 3 || least(j.0) < bound || least(j.0) == 0)
                    .collect();
                assert_eq!(
                    q.ready_below(bound).collect::<Vec<_>>(),
                    slow,
                    "{jobs} jobs, below {bound}"
                );
            }
            assert!(q.ready_below(0).any(|j| j == JobId(3)) && q.ready().all(|j| j != JobId(2)));
        }
    }

    #[test]
    fn who_is_not_ready_is_not_asked_and_still_counts() {
        let mut q = filled(JobOrder::Fair);
        (0..6).for_each(|_| q.took(JobId(0)));
        q.set_ready(JobId(0), None);
        assert_eq!(q.ready().map(|j| j.0).collect::<Vec<_>>(), [1, 3, 2]);
        (0..6).for_each(|_| q.gave(JobId(0)));
        (1..4).for_each(|j| q.set_ready(JobId(j), None));
        assert!(q.is_idle());
    }
}
