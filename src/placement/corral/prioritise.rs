//! Corral's prioritisation phase (section 4.2, figure 4): lays out one allocation of racks to jobs in time.
//!
//! Jobs are taken widest first, then longest (batch), or by arrival and then the same (online). Each takes the racks that are free
//! soonest, and waits for the last of them. Which racks they are is only worth knowing for the best allocation; to compare
//! allocations, the sorted times suffice.

use crate::ids::RackId;
use crate::units::{Span, Time};

use super::{Malleable, Problem, Scenario};

/// Where one job was laid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its place in the problem.
    pub job: usize,
    /// R_j, in ascending order.
    pub racks: Vec<RackId>,
    /// T_j.
    pub start: Time,
    /// T_j + L_j.
    pub finish: Time,
}

/// The order in which jobs are laid out; ties break by the job's place. `racks[j]` is r_j. O(J log J).
pub fn order(problem: &Problem, racks: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..racks.len()).collect();
    // In a batch all arrive at zero.
    order.sort_unstable_by_key(|&j| sort_key(problem, racks, j));
    order
}

/// By arrival (in a batch all arrive at zero), widest first, longest first.
pub(super) fn sort_key(problem: &Problem, racks: &[usize], job: usize) -> (Time, std::cmp::Reverse<(usize, Span)>, usize) {
    let (own, r) = (&problem.jobs[job], racks[job]);
    (own.arrival, std::cmp::Reverse((r, own.curve[r - 1])), job)
}

/// Lays out an allocation, in the order of [`order`]. O(J (R + log J)).
pub fn layout(problem: &Problem, racks: &[usize]) -> Vec<Slot> {
    // (F_i, i), always sorted.
    let mut free: Vec<(Time, RackId)> = (0..problem.racks).map(|i| (Time::ZERO, RackId::from(i))).collect();
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
        Slot { job, racks: taken, start, finish }
    };
    order(problem, racks).into_iter().map(place).collect()
}

/// The objective of an allocation, without saying which racks: the makespan, or the sum of all times from arrival to completion, in
/// nanoseconds. Gives up with `None` as soon as it must exceed `limit`.
pub struct Evaluator<'a> {
    problem: &'a Problem,
    free: Vec<u64>,
}

impl<'a> Evaluator<'a> {
    /// An evaluator of allocations of one problem.
    pub fn new(problem: &'a Problem) -> Self {
        Self { problem, free: vec![0; problem.racks] }
    }

    /// The objective of `racks`, laid out in `order`. O(J (R + log J)) with a small constant: moving a sorted list of R numbers.
    pub fn value(&mut self, order: &[usize], racks: &[usize], limit: u128) -> Option<u128> {
        match self.problem.scenario {
            Scenario::Batch => self.makespan(order, racks, limit),
            Scenario::Online => self.completions(order, racks, limit),
        }
    }

    fn makespan(&mut self, order: &[usize], racks: &[usize], limit: u128) -> Option<u128> {
        self.free.fill(0);
        let mut last = 0;
        for &j in order {
            last = last.max(place(&mut self.free, &self.problem.jobs[j], racks[j]));
            if u128::from(last) > limit {
                return None;
            }
        }
        Some(u128::from(last))
    }

    fn completions(&mut self, order: &[usize], racks: &[usize], limit: u128) -> Option<u128> {
        self.free.fill(0);
        // No job completes sooner than without waiting.
        let length = |j: usize| u128::from(self.problem.jobs[j].curve[racks[j] - 1].0);
        let mut sum: u128 = order.iter().map(|&j| length(j)).sum();
        for &j in order {
            let job = &self.problem.jobs[j];
            let finish = place(&mut self.free, job, racks[j]);
            sum += u128::from(finish.saturating_sub(job.arrival.0).saturating_sub(job.curve[racks[j] - 1].0));
            if sum > limit {
                return None;
            }
        }
        Some(sum)
    }
}

/// Gives a job the `r` racks that are free soonest, of the sorted times `free`; gives its end.
pub(super) fn place(free: &mut [u64], job: &Malleable, r: usize) -> u64 {
    let finish = free[r - 1].max(job.arrival.0).saturating_add(job.curve[r - 1].0);
    let passed = r + free[r..].partition_point(|&f| f < finish);
    free.copy_within(r..passed, 0);
    free[passed - r..passed].fill(finish);
    finish
}
