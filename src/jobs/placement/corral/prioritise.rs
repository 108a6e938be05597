//! Corral's prioritisation phase (section 4.2, figure 4): lays out one allocation of racks to jobs
//! in time.
//!
//! Jobs are taken widest first, then longest (batch), or by arrival and then the same (online).
//! Each takes the racks that are free soonest, and waits for the last of them. Which racks they are
//! is only worth knowing for the best allocation; to compare allocations, the sorted times suffice.

use crate::ids::RackId;
use crate::units::{Span, Time};

use super::free::FreeRacks;
use super::{PlanningProblem, Scenario};

/// Where one job was laid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaidJob {
    /// Its place in the problem.
    pub job: usize,
    /// R_j, in ascending order.
    pub racks: Vec<RackId>,
    /// T_j.
    pub start: Time,
    /// T_j + L_j.
    pub finish: Time,
}

/// The order in which jobs are laid out; ties break by the job's place. `racks[j]` is r_j. O(J log
/// J).
pub fn order(problem: &PlanningProblem, racks: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..racks.len()).collect();
    // In a batch all arrive at zero.
    order.sort_unstable_by_key(|&j| sort_key(problem, racks, j));
    order
}

/// By arrival (in a batch all arrive at zero), widest first, longest first.
pub(super) fn sort_key(
    problem: &PlanningProblem,
    racks: &[usize],
    job: usize,
) -> (Time, std::cmp::Reverse<(usize, Span)>, usize) {
    let (own, r) = (&problem.jobs[job], racks[job]);
    (own.arrival, std::cmp::Reverse((r, own.curve[r - 1])), job)
}

/// Lays out an allocation, in the order of [`order`]. O(J (R + log J)).
pub fn layout(problem: &PlanningProblem, racks: &[usize]) -> Vec<LaidJob> {
    // (F_i, i), always sorted.
    let mut free: Vec<(Time, RackId)> =
        (0..problem.racks).map(|i| (Time::ZERO, RackId::from(i))).collect();
    let place = |job: usize| {
        let r = racks[job];
        let start = free[r - 1].0.max(problem.jobs[job].arrival);
        let finish = start + problem.jobs[job].curve[r - 1];
        let mut taken: Vec<RackId> = free[..r].iter().map(|f| f.1).collect();
        taken.sort_unstable();
        free[..r].fill((Time::MAX, RackId(0)));
        for (slot, &rack) in free[..r].iter_mut().zip(&taken) {
            *slot = (finish, rack);
        }
        free.sort();
        LaidJob { job, racks: taken, start, finish }
    };
    order(problem, racks).into_iter().map(place).collect()
}

/// The objective of an allocation, without saying which racks: the makespan, or the sum of all
/// times from arrival to completion, in nanoseconds. Gives up with `None` as soon as it must exceed
/// `limit`.
pub struct Evaluator<'a> {
    problem: &'a PlanningProblem,
    free: FreeRacks,
}

impl<'a> Evaluator<'a> {
    /// An evaluator of allocations of one problem.
    pub fn new(problem: &'a PlanningProblem) -> Self {
        Self { problem, free: FreeRacks::default() }
    }

    /// The objective of `racks`, laid out in `order`. O(J x jobs that run at a time), which are at
    /// most R.
    pub fn value(&mut self, order: &[usize], racks: &[usize], limit: u128) -> Option<u128> {
        match self.problem.scenario {
            Scenario::Batch => self.makespan(order, racks, limit),
            Scenario::Online => self.completions(order, racks, limit),
        }
    }

    fn makespan(&mut self, order: &[usize], racks: &[usize], limit: u128) -> Option<u128> {
        self.free = FreeRacks::new(self.problem.racks);
        let mut last = 0;
        for &j in order {
            let job = &self.problem.jobs[j];
            last = last.max(self.free.place(job.arrival.0, job.curve[racks[j] - 1].0, racks[j]));
            if u128::from(last) > limit {
                return None;
            }
        }
        Some(u128::from(last))
    }

    fn completions(&mut self, order: &[usize], racks: &[usize], limit: u128) -> Option<u128> {
        self.free = FreeRacks::new(self.problem.racks);
        // No job completes sooner than without waiting.
        let length = |j: usize| u128::from(self.problem.jobs[j].curve[racks[j] - 1].0);
        let mut sum: u128 = order.iter().map(|&j| length(j)).sum();
        for &j in order {
            let job = &self.problem.jobs[j];
            let (arrival, length) = (job.arrival.0, job.curve[racks[j] - 1].0);
            self.free.pass(arrival);
            let finish = self.free.place(arrival, length, racks[j]);
            sum += u128::from(finish.saturating_sub(arrival).saturating_sub(length));
            if sum > limit {
                return None;
            }
        }
        Some(sum)
    }
}
