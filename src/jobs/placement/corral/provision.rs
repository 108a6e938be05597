//! Corral's provisioning phase (section 4.2): racks are given to jobs one after another, and of the
//! allocations on this way the one with the best layout is taken.
//!
//! Two ways are walked. The paper's begins with one rack a job; the longest job gets one rack more,
//! again and again, until every job has all racks. That suits a makespan, and only jobs that are
//! alike: a job that stays long on all racks takes them all before any shorter one gets its second.
//! The other way, which is ours, begins with the widths that take the least rack time. It widens
//! the job that saves most latency for the rack time that this costs ([`super::hull`]). Each
//! allocation on it has the smallest sum of latencies of all that take no more rack time in all.
//! [`Provisioning`] says whether both are walked.
//!
//! The paper lays all J R allocations out, O(J^2 R^2). The answer is the same if an allocation is
//! skipped whose lower bound is no better than what was found. So a way is walked first, with a
//! bound for each step. Then steps are laid out by their bound, best first, until no bound is below
//! the best layout. Online the bound says less, and steps are laid out one after another, each from
//! where it differs from the last ([`super::replay`]). Among equally good allocations the earliest
//! on the way is taken, as in the paper's loop.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::hull::widths;
use super::prioritise::{Evaluator, order};
use super::replay::Replay;
use super::{PlanningProblem, Provisioning, Scenario, WideningRule};

/// The best allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Best {
    /// Racks by job: r_j.
    pub racks: Vec<usize>,
    /// The way on which it was found, and the number of steps.
    pub at: (WideningRule, u32),
    /// Its objective in nanoseconds: makespan, or sum of completion times.
    pub value: u128,
    /// How many allocations were laid out, in part or in full.
    pub laid_out: usize,
}

/// The best step of a way, and its objective.
struct BestStep {
    step: u32,
    value: u128,
    laid_out: usize,
}

impl BestStep {
    fn offer(&mut self, step: u32, value: Option<u128>) {
        self.laid_out += 1;
        if let Some(value) = value.filter(|&v| (v, step) < (self.value, self.step)) {
            (self.value, self.step) = (value, step);
        }
    }
}

/// A way through allocations.
struct AllocationWay {
    /// r_j where it begins.
    first: Vec<usize>,
    /// A job, and how many racks it has after the step. Step s leads from allocation s to s + 1.
    /// There are up to J R of them.
    steps: Vec<(u32, u32)>,
}

impl AllocationWay {
    /// A step.
    fn step(&self, s: usize) -> Option<(usize, usize)> {
        self.steps.get(s).map(|&(j, r)| (j as usize, r as usize))
    }

    /// The paper's. O(J R log J).
    fn longest(problem: &PlanningProblem) -> Self {
        let length = |j: usize, r: usize| problem.jobs[j].curve[r - 1].0;
        let mut racks = vec![1; problem.jobs.len()];
        let mut steps = vec![];
        // The longest first; among equals the first.
        let mut growing: BinaryHeap<_> =
            (0..racks.len()).map(|j| (length(j, 1), Reverse(j))).collect();
        if problem.racks == 1 {
            growing.clear();
        }
        while let Some((_, Reverse(j))) = growing.pop() {
            racks[j] += 1;
            steps.push((j as u32, racks[j] as u32));
            if racks[j] < problem.racks {
                growing.push((length(j, racks[j]), Reverse(j)));
            }
        }
        Self { first: vec![1; racks.len()], steps }
    }

    /// By what a width saves for what it costs. O(J R log(J R)).
    fn by_gain(problem: &PlanningProblem) -> Self {
        let mut steps = vec![];
        let mut first = vec![];
        for (j, job) in problem.jobs.iter().enumerate() {
            let hull = widths(&job.curve);
            first.push(hull.last().map_or(1, |w| w.racks));
            // Along the hull the gain falls, so that a job's steps keep their order.
            for (k, w) in hull.windows(2).rev().enumerate() {
                let saved = u128::from(w[1].latency - w[0].latency) << 40;
                steps.push((Reverse(saved / (w[0].rack_time - w[1].rack_time)), j, k, w[0].racks));
            }
        }
        steps.sort_unstable();
        Self { first, steps: steps.into_iter().map(|s| (s.1 as u32, s.3 as u32)).collect() }
    }

    /// r_j after `step` steps. O(J + steps).
    fn racks_at(&self, step: u32) -> Vec<usize> {
        let mut racks = self.first.clone();
        self.steps[..step as usize].iter().for_each(|&(j, r)| racks[j as usize] = r as usize);
        racks
    }

    /// By allocation, 0 ..= number of steps: what no layout of it beats. O((J + steps) log(J +
    /// steps)).
    fn bounds(&self, problem: &PlanningProblem) -> Vec<u128> {
        let mut sums = ObjectiveSums::new(problem, &self.first);
        let mut bounds = vec![sums.bound(problem)];
        for &(j, r) in &self.steps {
            sums.change(problem, j as usize, r as usize);
            bounds.push(sums.bound(problem));
        }
        bounds
    }

    /// The best layout of an allocation on the way that is below `limit`; if there is none,
    /// `limit`.
    fn best(&self, problem: &PlanningProblem, limit: u128) -> BestStep {
        // A step that equals the limit never wins.
        let found = BestStep { step: 0, value: limit, laid_out: 0 };
        match problem.scenario {
            Scenario::Batch => self.by_bound(problem, found),
            Scenario::Online => self.one_by_one(problem, found),
        }
    }

    fn by_bound(&self, problem: &PlanningProblem, mut best: BestStep) -> BestStep {
        let bounds = self.bounds(problem);
        let mut by_bound: Vec<u32> = (0..bounds.len() as u32).collect();
        by_bound.sort_by_key(|&s| bounds[s as usize]);
        // The steps of each job, ascending.
        let mut of = vec![vec![]; self.first.len()];
        self.steps.iter().enumerate().for_each(|(s, &(j, _))| of[j as usize].push(s as u32));
        let racks_at = |step: u32, racks: &mut [usize]| {
            for ((r, of), first) in racks.iter_mut().zip(&of).zip(&self.first) {
                let done = of.partition_point(|&s| s < step);
                *r = if done == 0 { *first } else { self.steps[of[done - 1] as usize].1 as usize };
            }
        };
        let mut evaluator = Evaluator::new(problem);
        let mut racks = self.first.clone();
        for &s in &by_bound {
            let bound = bounds[s as usize];
            if bound > best.value {
                break;
            }
            if bound == best.value && s >= best.step {
                continue;
            }
            racks_at(s, &mut racks);
            best.offer(s, evaluator.value(&order(problem, &racks), &racks, best.value));
        }
        best
    }

    fn one_by_one(&self, problem: &PlanningProblem, mut best: BestStep) -> BestStep {
        let last = self.steps.len();
        let mut evaluator = Evaluator::new(problem);
        let mut racks = self.first.clone();
        let every = last.div_ceil(SAMPLES).max(1);
        for s in 0..=last {
            if s.is_multiple_of(every) {
                best.offer(s as u32, evaluator.value(&order(problem, &racks), &racks, best.value));
            }
            self.step(s).into_iter().for_each(|(j, r)| racks[j] = r);
        }
        let mut replay = Replay::new(problem, &self.first);
        for s in 0..=last {
            best.offer(s as u32, replay.completions(best.value));
            if let Some((j, r)) = self.step(s) {
                replay.widen(j, r);
            }
        }
        best
    }
}

/// How many allocations are laid out first, so that most of the others can be left early.
const SAMPLES: usize = 64;

/// What bounds the objective, kept while one job changes at a time.
struct ObjectiveSums {
    racks: Vec<usize>,
    /// Sum of r_j L_j(r_j): rack time.
    area: u128,
    /// Sum of L_j(r_j).
    length: u128,
    /// Sum of L_j(r_j) where r_j is more than half of the racks: no two of these jobs run together.
    wide: u128,
    /// L_j(r_j) of all jobs, the longest first, among values that jobs had before.
    longest: BinaryHeap<(u64, usize)>,
}

impl ObjectiveSums {
    fn new(problem: &PlanningProblem, racks: &[usize]) -> Self {
        let mut s = Self {
            racks: vec![0; racks.len()],
            area: 0,
            length: 0,
            wide: 0,
            longest: BinaryHeap::new(),
        };
        racks.iter().enumerate().for_each(|(j, &r)| s.change(problem, j, r));
        s
    }

    /// A job has `r` racks from now on.
    fn change(&mut self, problem: &PlanningProblem, j: usize, r: usize) {
        let before = std::mem::replace(&mut self.racks[j], r);
        let length = |r: usize| if r == 0 { 0 } else { problem.jobs[j].curve[r - 1].0 };
        let wide = |r: usize| if 2 * r > problem.racks { u128::from(length(r)) } else { 0 };
        let area = |r: usize| r as u128 * u128::from(length(r));
        self.length = self.length + u128::from(length(r)) - u128::from(length(before));
        self.area = self.area + area(r) - area(before);
        self.wide = self.wide + wide(r) - wide(before);
        self.longest.push((length(r), j));
    }

    fn bound(&mut self, problem: &PlanningProblem) -> u128 {
        let now = |j: usize| problem.jobs[j].curve[self.racks[j] - 1].0;
        while self.longest.peek().is_some_and(|l| now(l.1) != l.0) {
            self.longest.pop();
        }
        let longest = self.longest.peek().map_or(0, |l| l.0);
        match problem.scenario {
            Scenario::Batch => {
                self.wide.max(u128::from(longest)).max(self.area.div_ceil(problem.racks as u128))
            }
            Scenario::Online => self.length,
        }
    }
}

/// The best allocation; on the paper's way, if the other has none that is better. O(J R log(J R)),
/// and O(J (R + log J)) for each allocation that is laid out.
pub fn best(problem: &PlanningProblem) -> Best {
    let way = AllocationWay::longest(problem);
    let first = way.best(problem, u128::MAX);
    let mut best = Best {
        racks: way.racks_at(first.step),
        at: (WideningRule::Longest, first.step),
        value: first.value,
        laid_out: first.laid_out,
    };
    if problem.provisioning == Provisioning::Best {
        let way = AllocationWay::by_gain(problem);
        let other = way.best(problem, best.value);
        best.laid_out += other.laid_out;
        if other.value < best.value {
            best.racks = way.racks_at(other.step);
            (best.at, best.value) = ((WideningRule::Gain, other.step), other.value);
        }
    }
    best
}
