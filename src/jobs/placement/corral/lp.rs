//! Lower bounds on what any planner of whole racks can reach (Corral, appendix A): how far a plan
//! can be from the best.
//!
//! LP-Batch needs no solver. For a makespan T, each job takes the least rack time of which a mix of
//! widths is capable whose mean latency is at most T: a point on the lower hull of its (latency,
//! rack time) pairs. That sum falls with T, while what the racks offer, T R, grows; the optimum is
//! where they meet.
//!
//! The paper leaves out LP-Online. Ours is the largest of several bounds on the sum of completion
//! times, see [`online`].

use super::PlanningProblem;

/// The lower hull of a job's (latency, rack time) pairs, from the shortest latency to the least
/// rack time.
struct Hull(Vec<(f64, f64)>);

impl Hull {
    fn of(curve: &[crate::units::Span]) -> Self {
        Self(
            super::hull::widths(curve)
                .iter()
                .map(|w| (w.latency as f64, w.rack_time as f64))
                .collect(),
        )
    }

    /// The shortest latency.
    fn shortest(&self) -> f64 {
        self.0.first().map_or(0.0, |p| p.0)
    }

    /// The least rack time.
    fn least(&self) -> f64 {
        self.0.last().map_or(0.0, |p| p.1)
    }

    /// The least rack time of a mix with a mean latency of `t`, which is not below the shortest.
    /// O(log R).
    fn rack_time(&self, t: f64) -> f64 {
        let k = self.0.partition_point(|p| p.0 <= t);
        if k == self.0.len() {
            return self.least();
        }
        let (a, b) = (self.0[k - 1], self.0[k]);
        a.1 + (b.1 - a.1) * (t - a.0) / (b.0 - a.0)
    }
}

/// The optimum of LP-Batch in nanoseconds: no plan has a smaller makespan. O(J R log R + J log R)
/// for each of some 100 halvings.
pub fn batch(problem: &PlanningProblem) -> f64 {
    let hulls: Vec<Hull> = problem.jobs.iter().map(|j| Hull::of(&j.curve)).collect();
    let racks = problem.racks as f64;
    let enough = |t: f64| hulls.iter().map(|h| h.rack_time(t)).sum::<f64>() <= t * racks;
    let shortest = hulls.iter().map(Hull::shortest).fold(0.0, f64::max);
    if hulls.is_empty() || enough(shortest) {
        return shortest;
    }
    let (mut low, mut high) = (shortest, hulls.iter().map(Hull::least).sum::<f64>().max(shortest));
    // The lower end stays a bound; halving ends when no number is left between the two.
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return low;
        }
        if enough(middle) { high = middle } else { low = middle }
    }
}

/// A lower bound on the mean time from arrival to completion, in nanoseconds: the largest of
///
/// 1. every job alone, where racks have prices ([`super::price`]), which may be zero;
/// 2. one machine as fast as all racks together, that takes the least rack time of each job and may
///    interrupt: shortest remaining first is then the best, and no plan beats it;
/// 3. a job's mean busy time and half its latency. That one machine works on the job with the least
///    rack time first; no plan's mean busy times sum to less (Goemans). A job that holds its racks
///    until it ends has its mean busy time half its latency before its completion (Schulz and
///    Skutella).
///
/// `found` is the sum of some plan; it only says how far the search for prices may reach.
pub fn online(problem: &PlanningProblem, found: f64) -> f64 {
    if problem.jobs.is_empty() {
        return 0.0;
    }
    let hulls: Vec<Hull> = problem.jobs.iter().map(|j| Hull::of(&j.curve)).collect();
    let alone: f64 = hulls.iter().map(Hull::shortest).sum();
    let work: Vec<(f64, f64)> = problem
        .jobs
        .iter()
        .zip(&hulls)
        .map(|(j, h)| (j.arrival.0 as f64, h.least() / problem.racks as f64))
        .collect();
    let arrivals: f64 = work.iter().map(|w| w.0).sum();
    let shared = one_machine(&work, true).completions - arrivals;
    let busy = one_machine(&work, false).mean_busy - arrivals + alone / 2.0;
    super::price::bound(problem, found).max(alone).max(shared).max(busy) / problem.jobs.len() as f64
}

/// Sums over the jobs of a machine that may interrupt.
struct MachineSums {
    completions: f64,
    mean_busy: f64,
}

/// Serves (arrival, length) pairs on one machine, always the job with the least length, or the
/// least `remaining` length. O(J log J).
fn one_machine(jobs: &[(f64, f64)], remaining: bool) -> MachineSums {
    let mut by_arrival: Vec<usize> = (0..jobs.len()).collect();
    by_arrival.sort_by(|&a, &b| jobs[a].0.total_cmp(&jobs[b].0).then(a.cmp(&b)));
    // Bits of a float that is not negative order as the float does.
    let mut waiting: std::collections::BTreeMap<(u64, usize), f64> =
        std::collections::BTreeMap::new();
    let (mut now, mut next) = (0.0f64, 0);
    let mut out = MachineSums { completions: 0.0, mean_busy: 0.0 };
    loop {
        while let Some(&j) = by_arrival.get(next).filter(|&&j| jobs[j].0 <= now) {
            waiting.insert((jobs[j].1.to_bits(), j), jobs[j].1);
            next += 1;
        }
        let arrival = by_arrival.get(next).map(|&j| jobs[j].0);
        let Some(((key, j), left)) = waiting.pop_first() else {
            match arrival {
                Some(t) => now = t,
                None => return out,
            }
            continue;
        };
        // Whether it ends is asked of the times, not of what rounding leaves of its length: that
        // might never reach zero.
        let ends = now + left;
        let until = arrival.map_or(ends, |t| t.min(ends));
        let done = until - now;
        out.mean_busy += if jobs[j].1 > 0.0 { done / jobs[j].1 * (now + until) / 2.0 } else { now };
        now = until;
        if until == ends {
            out.completions += now;
        } else {
            let left = (left - done).max(0.0);
            waiting.insert((if remaining { left.to_bits() } else { key }, j), left);
        }
    }
}
