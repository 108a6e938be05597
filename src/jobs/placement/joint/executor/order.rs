//! The order in which jobs get slots, and which slots some of them leave to others.

use std::collections::BTreeMap;

use super::{Arrivals, Joint};
use crate::ids::JobId;
use crate::placement::decision::{OrderedBy, Turn};
use crate::placement::joint::index::{JobRank, TAILS};
use crate::placement::policy::View;
use crate::units::{Span, Time};

/// More jobs are expected for this many mean gaps after the last one.
const GAPS: u64 = 20;
/// Slots of a rack for each one that is kept for small jobs while more jobs are expected. A rack
/// keeps one at least.
const KEPT: u32 = 50;
/// The fewest slots of a rack of which one is kept.
const FEW: u32 = 10;
/// Slots of the cluster for each one that jobs which would end last of all may have, while others
/// wait. Such jobs go first in the order.
const AHEAD: u64 = 2;
/// A job is small if it has this many times less work than jobs have in the mean.
const SMALL: u128 = 4;

/// A job that has a task which may start.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServedJob {
    pub job: JobId,
    /// It may take slots that are kept for small jobs.
    pub small: bool,
    /// It goes first since it would end last of all if it waited.
    pub tail: bool,
}

impl Joint {
    /// Jobs that have a task which may start, in the order in which they are served. O(jobs log
    /// jobs).
    pub(super) fn ranked(&mut self, view: &dyn View) -> Vec<ServedJob> {
        let mean = self.arrivals.work / u128::from(self.arrivals.jobs.max(1));
        let (learnt, share) = (self.learnt, self.share);
        let all: BTreeMap<JobId, JobRank> = self
            .jobs
            .iter_mut()
            .map(|(&job, j)| (job, j.index.rank(view, job, &learnt, share)))
            .collect();
        let work: u128 = all.values().map(|r| u128::from(r.work)).sum();
        let ends = !self.more_expected(view.now()) && !self.options.no_tails;
        let horizon = work / u128::from(share.slots);
        let ready = view.ready().filter_map(|job| {
            Some((self.key(view, job, all.get(&job)?, ends.then_some(horizon)), job))
        });
        let mut order: Vec<((u8, u64), JobId)> = ready.collect();
        order.sort_unstable();
        let small = |job: JobId| u128::from(all[&job].work) * SMALL <= mean;
        let served = |&((class, _), job): &((u8, u64), JobId)| ServedJob {
            job,
            small: small(job),
            tail: class == TAILS,
        };
        let ranked = order.iter().map(served).collect();
        self.plan.order = order;
        ranked
    }

    /// The place of a job in the order, smallest first.
    fn key(&self, view: &dyn View, job: JobId, rank: &JobRank, horizon: Option<u128>) -> (u8, u64) {
        if self.options.no_order { (0, view.job(job).arrival.0) } else { rank.key(horizon) }
    }

    /// How many slots jobs that would end last may still take before others are served: half of
    /// all, with those that they hold. Only stages that are wider wait then, and only until others
    /// have ended. O(jobs + their stages).
    pub(super) fn ahead(&self, view: &dyn View, ranked: &[ServedJob]) -> u32 {
        let tails = ranked.iter().filter(|s| s.tail).map(|s| s.job);
        let held = tails.flat_map(|job| (0..view.job(job).stages.len()).map(move |s| (job, s)));
        let held: u64 = held.map(|(job, s)| u64::from(view.counts(job, s).running)).sum();
        (self.share.slots / AHEAD).saturating_sub(held) as u32
    }

    /// Whether a stage that receives goes before all maps: it ends its job. While more jobs are
    /// expected, a stage that would take more than an even share of the slots waits for its job's
    /// turn, unless it holds slots for a circuit already. O(1).
    pub(super) fn is_early(&self, view: &dyn View, key: (JobId, usize)) -> bool {
        let holds = || self.promises.get(&key).is_some_and(|p| p.holds && p.begun);
        u64::from(view.counts(key.0, key.1).pending) <= self.even_share()
            || holds()
            || !self.more_expected(view.now())
    }

    /// Slots of the cluster by open jobs.
    pub(super) fn even_share(&self) -> u64 {
        self.share.slots / (self.jobs.len() as u64).max(1)
    }

    /// Whether more jobs are expected: some are known to come, or the last came not long ago.
    pub(super) fn more_expected(&self, now: Time) -> bool {
        let Arrivals { jobs, first, last, .. } = self.arrivals;
        let gap = last.since(first).0 / jobs.saturating_sub(1).max(1);
        last > first && (self.to_come > 0 || now.since(last).0 / GAPS < gap)
    }

    /// By rack: slots that only small jobs may take, since others would have to wait for long tasks
    /// to end.
    pub(super) fn kept(&self, view: &dyn View) -> Vec<u32> {
        let more = self.more_expected(view.now()) && !self.options.no_kept_slots;
        let of = |slots: u32| if more && slots >= FEW { (slots / KEPT).max(1) } else { 0 };
        view.topology().racks.iter().map(|r| of(view.slots(r.id))).collect()
    }

    /// The place of a job in the order of the plan. O(jobs).
    pub(super) fn turn(&self, view: &dyn View, job: JobId) -> Option<Turn> {
        let order = &self.plan.order;
        let place = order.iter().position(|o| o.1 == job)?;
        let (class, value) = order[place].0;
        let (by, value) = match class {
            _ if self.options.no_order => (OrderedBy::Arrival, view.now().since(Time(value)).0),
            0 => (OrderedBy::Guard, view.now().since(Time(value)).0),
            TAILS => (OrderedBy::Path, u64::MAX - value),
            _ => (OrderedBy::Work, value),
        };
        Some(Turn { place: place as u32 + 1, of: order.len() as u32, by, value: Span(value) })
    }
}
