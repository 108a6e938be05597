//! Lays one allocation after another out, each of which differs from the last in one job, for the
//! online objective.
//!
//! Online, jobs are laid out by arrival, so that a job that gets another rack changes nothing for
//! the jobs before it. The state before each job is kept. The layout is taken up again at the first
//! job that changed, until the state is what it was: from there on nothing is different up to the
//! next job that changed. In a cluster that is not always full that is soon. The layout is left as
//! soon as the jobs so far have waited more than the limit allows; the next allocation often begins
//! behind that place, and is then refused at once.

use std::collections::BTreeSet;

use super::PlanningProblem;
use super::free::FreeRacks;
use super::prioritise::sort_key;

/// The layout of the allocation that was asked for last.
pub struct Replay<'a> {
    problem: &'a PlanningProblem,
    racks: Vec<usize>,
    /// Jobs in the order of prioritisation.
    order: Vec<usize>,
    /// By job: where those with the same arrival begin and end in `order`.
    peers: Vec<(usize, usize)>,
    /// When racks become free before each place of `order`, at the arrival of its job.
    free: Vec<FreeRacks>,
    /// Waiting of the job of each place.
    waited: Waited,
    /// Places whose job, or the state before it, has changed since its waiting was known.
    changed: BTreeSet<usize>,
    /// Sum of L_j(r_j).
    length: u128,
}

impl<'a> Replay<'a> {
    /// Begins with an allocation. O(J log J).
    pub fn new(problem: &'a PlanningProblem, racks: &[usize]) -> Self {
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
        let length =
            problem.jobs.iter().zip(&racks).map(|(j, &r)| u128::from(j.curve[r - 1].0)).sum();
        let mut free = vec![FreeRacks::default(); n];
        if let Some(first) = free.first_mut() {
            *first = FreeRacks::new(problem.racks);
            first.pass(arrival(0).0);
        }
        Self {
            problem,
            racks,
            order,
            peers,
            free,
            waited: Waited::new(n),
            changed: (0..n).collect(),
            length,
        }
    }

    /// Gives a job another number of racks.
    pub fn widen(&mut self, job: usize, racks: usize) {
        let curve = &self.problem.jobs[job].curve;
        let before = std::mem::replace(&mut self.racks[job], racks);
        self.length =
            self.length + u128::from(curve[racks - 1].0) - u128::from(curve[before - 1].0);
        let (begin, end) = self.peers[job];
        if end - begin > 1 {
            let (problem, racks, old) =
                (self.problem, &self.racks, self.order[begin..end].to_vec());
            self.order[begin..end].sort_unstable_by_key(|&j| sort_key(problem, racks, j));
            let moved = old
                .iter()
                .zip(&self.order[begin..end])
                .enumerate()
                .filter(|(_, (a, b))| a != b || **b == job);
            self.changed.extend(moved.map(|(k, _)| begin + k));
        } else {
            self.changed.insert(begin);
        }
    }

    /// The sum of all times from arrival to completion, if it does not exceed `limit`. O(log J +
    /// jobs that run) a job that is laid out again.
    pub fn completions(&mut self, limit: u128) -> Option<u128> {
        let room = limit.checked_sub(self.length)?;
        let Some(&first) = self.changed.first() else { return self.whole(room) };
        let (mut place, mut before) = (first, self.waited.up_to(first));
        loop {
            if before > room {
                return None;
            }
            self.changed.remove(&place);
            let (job, r) = (&self.problem.jobs[self.order[place]], self.racks[self.order[place]]);
            let (arrival, length) = (job.arrival.0, job.curve[r - 1].0);
            let mut after = self.free[place].clone();
            let waited =
                after.place(arrival, length, r).saturating_sub(arrival).saturating_sub(length);
            self.waited.set(place, waited);
            before += u128::from(waited);
            place += 1;
            if let Some(next) = self.order.get(place) {
                after.pass(self.problem.jobs[*next].arrival.0);
                if self.free[place] != after {
                    self.free[place] = after;
                    self.changed.insert(place);
                }
            }
            let Some(&next) = self.changed.first() else { return self.whole(room) };
            if next > place {
                before = self.waited.up_to(next);
            }
            place = next;
        }
    }

    fn whole(&self, room: u128) -> Option<u128> {
        (self.waited.sum <= room).then_some(self.length + self.waited.sum)
    }
}

/// Waiting by place, with sums of all places before one (a Fenwick tree).
struct Waited {
    by_place: Vec<u64>,
    tree: Vec<u128>,
    sum: u128,
}

impl Waited {
    fn new(n: usize) -> Self {
        Self { by_place: vec![0; n], tree: vec![0; n + 1], sum: 0 }
    }

    /// Waiting of all places before this one. O(log J).
    fn up_to(&self, place: usize) -> u128 {
        let (mut k, mut sum) = (place, 0);
        while k > 0 {
            sum += self.tree[k];
            k &= k - 1;
        }
        sum
    }

    fn set(&mut self, place: usize, waited: u64) {
        let before = std::mem::replace(&mut self.by_place[place], waited);
        if before == waited {
            return;
        }
        let change = |sum: &mut u128| *sum = *sum + u128::from(waited) - u128::from(before);
        change(&mut self.sum);
        let mut k = place + 1;
        while k < self.tree.len() {
            change(&mut self.tree[k]);
            k += k & k.wrapping_neg();
        }
    }
}
