//! Corral's provisioning phase (section 4.2): from one rack a job, the longest job gets one rack more, again and again, until every
//! job has all racks. Of the allocations on this way, the one with the best layout is taken.
//!
//! The paper lays all J R of them out, O(J^2 R^2). The answer is the same if an allocation is skipped whose lower bound is no better
//! than what was found: so the way is walked first, with a bound for each step, and steps are laid out by their bound, best first,
//! until no bound is below the best layout. Online the bound says less, and steps are laid out one after another, each from where it
//! differs from the last ([`super::replay`]). Among equally good allocations the earliest on the way is taken, as in the paper's loop.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::prioritise::{Evaluator, order};
use super::replay::Replay;
use super::{Problem, Scenario};

/// The best allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Best {
    /// r_j.
    pub racks: Vec<usize>,
    /// After how many steps of the way.
    pub step: u32,
    /// Its objective in nanoseconds: makespan, or sum of completion times.
    pub value: u128,
    /// How many allocations were laid out, in part or in full.
    pub laid_out: usize,
}

impl Best {
    fn offer(&mut self, step: u32, value: Option<u128>) {
        self.laid_out += 1;
        if let Some(value) = value.filter(|&v| (v, step) < (self.value, self.step)) {
            (self.value, self.step) = (value, step);
        }
    }
}

/// The way of the provisioning phase: which job gets a rack in each step, and no layout before or after it beats its bound.
struct Way {
    /// Steps at which a job got a rack, ascending, by job. Step s leads from allocation s to s + 1.
    steps: Vec<Vec<u32>>,
    /// By allocation, 0 ..= J (R - 1).
    bounds: Vec<u128>,
}

impl Way {
    /// O(J R log J).
    fn walk(problem: &Problem) -> Self {
        let mut sums = Sums::new(problem);
        let mut racks = vec![1; problem.jobs.len()];
        let length = |j: usize, r: usize| problem.jobs[j].curve[r - 1].0;
        let mut steps = vec![vec![]; problem.jobs.len()];
        let mut bounds = vec![];
        // The longest first; among equals the first.
        let mut growing: BinaryHeap<_> = (0..racks.len()).map(|j| (length(j, 1), Reverse(j))).collect();
        let mut full = 0;
        if problem.racks == 1 {
            full = growing.iter().map(|g| g.0).max().unwrap_or(0);
            growing.clear();
        }
        loop {
            let longest = growing.peek().map_or(0, |g| g.0).max(full);
            bounds.push(sums.bound(problem, longest));
            let Some((before, Reverse(j))) = growing.pop() else { break };
            steps[j].push(bounds.len() as u32 - 1);
            racks[j] += 1;
            let after = length(j, racks[j]);
            sums.change(problem.racks, before, after, racks[j]);
            if racks[j] < problem.racks {
                growing.push((after, Reverse(j)));
            } else {
                full = full.max(after);
            }
        }
        Self { steps, bounds }
    }

    /// r_j after so many steps. O(J log R).
    fn racks_at(&self, step: u32, racks: &mut [usize]) {
        for (r, steps) in racks.iter_mut().zip(&self.steps) {
            *r = 1 + steps.partition_point(|&s| s < step);
        }
    }
}

/// Sums over all jobs that bound the objective, kept while one job changes at a time.
struct Sums {
    /// Of r_j L_j(r_j): rack time.
    area: u128,
    /// Of L_j(r_j).
    length: u128,
    /// Of L_j(r_j) where r_j is more than half of the racks: no two such jobs run together.
    wide: u128,
}

impl Sums {
    fn new(problem: &Problem) -> Self {
        let length = problem.jobs.iter().map(|j| u128::from(j.curve[0].0)).sum();
        Self { area: length, length, wide: if problem.racks == 1 { length } else { 0 } }
    }

    /// A job's latency went from `before` to `after` when it got its `r`th rack.
    fn change(&mut self, all: usize, before: u64, after: u64, r: usize) {
        let (before, after) = (u128::from(before), u128::from(after));
        self.length = self.length + after - before;
        self.area = self.area + after * r as u128 - before * (r as u128 - 1);
        self.wide += if 2 * r > all { after } else { 0 };
        self.wide -= if 2 * (r - 1) > all { before } else { 0 };
    }

    fn bound(&self, problem: &Problem, longest: u64) -> u128 {
        match problem.scenario {
            Scenario::Batch => self.wide.max(u128::from(longest)).max(self.area.div_ceil(problem.racks as u128)),
            Scenario::Online => self.length,
        }
    }
}

/// The best allocation on the way. O(J R log(J R)), and O(J (R + log J)) for each allocation that is laid out.
pub fn best(problem: &Problem) -> Best {
    let way = Way::walk(problem);
    let mut found = match problem.scenario {
        Scenario::Batch => by_bound(problem, &way),
        Scenario::Online => one_by_one(problem, &way),
    };
    found.racks = vec![1; problem.jobs.len()];
    way.racks_at(found.step, &mut found.racks);
    found
}

fn by_bound(problem: &Problem, way: &Way) -> Best {
    let mut by_bound: Vec<u32> = (0..way.bounds.len() as u32).collect();
    by_bound.sort_by_key(|&s| way.bounds[s as usize]);
    let mut evaluator = Evaluator::new(problem);
    let mut racks = vec![1; problem.jobs.len()];
    let mut best = Best { racks: vec![], step: u32::MAX, value: u128::MAX, laid_out: 0 };
    for &s in &by_bound {
        let bound = way.bounds[s as usize];
        if bound > best.value {
            break;
        }
        if bound == best.value && s > best.step {
            continue;
        }
        way.racks_at(s, &mut racks);
        best.offer(s, evaluator.value(&order(problem, &racks), &racks, best.value));
    }
    best
}

/// How many allocations are laid out first, so that most of the others can be left early.
const SAMPLES: usize = 64;

fn one_by_one(problem: &Problem, way: &Way) -> Best {
    let last = way.bounds.len() - 1;
    let mut evaluator = Evaluator::new(problem);
    let mut racks = vec![1; problem.jobs.len()];
    let mut best = Best { racks: vec![], step: u32::MAX, value: u128::MAX, laid_out: 0 };
    for s in (0..=last).step_by(last.div_ceil(SAMPLES).max(1)) {
        way.racks_at(s as u32, &mut racks);
        best.offer(s as u32, evaluator.value(&order(problem, &racks), &racks, best.value));
    }
    let mut job_of = vec![0; last];
    for (j, steps) in way.steps.iter().enumerate() {
        steps.iter().for_each(|&s| job_of[s as usize] = j);
    }
    let mut replay = Replay::new(problem);
    for s in 0..=last {
        best.offer(s as u32, replay.completions(best.value));
        if let Some(&j) = job_of.get(s) {
            replay.widen(j);
        }
    }
    best
}
