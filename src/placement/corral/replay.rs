//! Lays one allocation after another out, each of which differs from the last in one job, for the online objective.
//!
//! Online, jobs are laid out by arrival, so that a job that gets another rack changes nothing for the jobs before it: the state
//! after each job is kept, and the layout is taken up again where it changed. It is left again as soon as the jobs so far have
//! waited more than the limit allows; the next allocation often begins behind that place, and is then refused at once.

use super::Problem;
use super::prioritise::{place, sort_key};

/// The layout of the allocation that was asked for last.
pub struct Replay<'a> {
    problem: &'a Problem,
    racks: Vec<usize>,
    /// Jobs in the order of prioritisation.
    order: Vec<usize>,
    /// By job: where those with the same arrival begin and end in `order`.
    peers: Vec<(usize, usize)>,
    /// The sorted F_i before each place of `order`, and after the last.
    free: Vec<u64>,
    /// Waiting of all jobs before each place.
    waited: Vec<u128>,
    /// States up to this place are those of the allocation.
    valid: usize,
    /// Sum of L_j(r_j).
    length: u128,
}

impl<'a> Replay<'a> {
    /// Begins with an allocation. O(J (R + log J)).
    pub fn new(problem: &'a Problem, racks: &[usize]) -> Self {
        let n = problem.jobs.len();
        let racks = racks.to_vec();
        let order = super::prioritise::order(problem, &racks);
        let arrival = |place: usize| problem.jobs[order[place]].arrival;
        let mut peers = vec![(0, 0); n];
        let mut begin = 0;
        for end in 1..=n {
            if end == n || arrival(end) != arrival(begin) {
                order[begin..end].iter().for_each(|&j| peers[j] = (begin, end));
                begin = end;
            }
        }
        let length = problem.jobs.iter().zip(&racks).map(|(j, &r)| u128::from(j.curve[r - 1].0)).sum();
        Self { problem, racks, order, peers, free: vec![0; (n + 1) * problem.racks], waited: vec![0; n + 1], valid: 0, length }
    }

    /// Gives a job another number of racks.
    pub fn widen(&mut self, job: usize, racks: usize) {
        let curve = &self.problem.jobs[job].curve;
        let before = std::mem::replace(&mut self.racks[job], racks);
        self.length = self.length + u128::from(curve[racks - 1].0) - u128::from(curve[before - 1].0);
        let (begin, end) = self.peers[job];
        let (problem, racks) = (self.problem, &self.racks);
        self.order[begin..end].sort_unstable_by_key(|&j| sort_key(problem, racks, j));
        self.valid = self.valid.min(begin);
    }

    /// The sum of all times from arrival to completion, if it does not exceed `limit`. O(R) a job that is laid out anew.
    pub fn completions(&mut self, limit: u128) -> Option<u128> {
        let r = self.problem.racks;
        while self.length + self.waited[self.valid] <= limit {
            let Some(&j) = self.order.get(self.valid) else { return Some(self.length + self.waited[self.valid]) };
            let (before, after) = self.free.split_at_mut((self.valid + 1) * r);
            let after = &mut after[..r];
            after.copy_from_slice(&before[self.valid * r..]);
            let job = &self.problem.jobs[j];
            let finish = place(after, job, self.racks[j]);
            let waited = finish.saturating_sub(job.arrival.0).saturating_sub(job.curve[self.racks[j] - 1].0);
            self.waited[self.valid + 1] = self.waited[self.valid] + u128::from(waited);
            self.valid += 1;
        }
        None
    }
}
