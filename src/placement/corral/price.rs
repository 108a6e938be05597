//! A lower bound on the mean completion time that knows the price of racks: the dual of the time-indexed programme that the paper
//! calls LP-Online.
//!
//! Let every rack cost `price` for each nanosecond until `end`, and nothing afterwards. A job alone then takes the width and start
//! that make its completion time and its bill smallest. In any plan the bills of all jobs together are at most what all racks cost
//! until `end`, as no rack is used twice. So the sum of the jobs' smallest sums, less that, is a bound, whatever the price and the
//! end; the best of many pairs is taken.

use super::Problem;

/// A job: arrival, and the widths worth having (more racks, shorter) with their latencies.
struct Job {
    arrival: f64,
    widths: Vec<(f64, f64)>,
    shortest: f64,
}

impl Job {
    fn of(job: &super::Malleable) -> Self {
        let mut widths: Vec<(f64, f64)> = vec![];
        for (k, l) in job.curve.iter().enumerate() {
            if widths.last().is_none_or(|w| (l.0 as f64) < w.1) {
                widths.push((k as f64 + 1.0, l.0 as f64));
            }
        }
        let shortest = widths.last().map_or(0.0, |w| w.1);
        Self { arrival: job.arrival.0 as f64, widths, shortest }
    }

    /// The smallest completion time and bill. A start between its arrival and `end` is never the best: both change linearly, first
    /// upwards, then with one slope until `end`.
    fn least(&self, price: f64, end: f64) -> f64 {
        let open = (end - self.arrival).max(0.0);
        let later = open + self.shortest;
        self.widths.iter().map(|&(r, l)| l + price * r * l.min(open)).fold(later, f64::min)
    }
}

/// The bound on the sum of times from arrival to completion, in nanoseconds. O(J R) for each of some 500 pairs of price and end.
pub fn bound(problem: &Problem) -> f64 {
    let jobs: Vec<Job> = problem.jobs.iter().map(Job::of).collect();
    let begin = jobs.iter().map(|j| j.arrival).fold(f64::INFINITY, f64::min);
    let last = jobs.iter().map(|j| j.arrival).fold(begin, f64::max);
    let work: f64 = jobs.iter().map(|j| j.widths.iter().map(|w| w.0 * w.1).fold(f64::INFINITY, f64::min)).sum();
    let racks = problem.racks as f64;
    let value = |price: f64, end: f64| jobs.iter().map(|j| j.least(price, end)).sum::<f64>() - racks * price * (end - begin);
    let ends = [(0.5, 0.0), (0.8, 0.0), (0.95, 0.0), (1.0, 0.0), (1.0, 0.1), (1.0, 0.3), (0.0, 0.5), (0.0, 1.0), (1.0, 1.0)];
    let best = |(share, rest): (f64, f64)| best_price(|p| value(p, begin + (last - begin) * share + work / racks * rest));
    ends.into_iter().map(best).fold(0.0, f64::max)
}

/// The greatest value over prices from 10^-6 to 10: concave in the price, so thirds of its logarithm close in on it.
fn best_price(value: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (1e-6f64.ln(), 10f64.ln());
    let mut best = value(0.0);
    for _ in 0..24 {
        let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        let (x, y) = (value(a.exp()), value(b.exp()));
        best = best.max(x).max(y);
        if x < y { low = a } else { high = b }
    }
    best
}
