//! A lower bound on the mean completion time that knows what racks are worth, and when.
//!
//! The paper leaves LP-Online out but for its objective, the mean of latencies and delays. The
//! natural programme has a variable for each job, width and start; each job starts once, and at no
//! time are more than R racks held. Its dual is what is computed here. Let a rack cost p(t) at time
//! t. A job alone then takes the width and the start that make its completion time and its bill
//! smallest. In any plan the bills of all jobs together are at most what all racks cost, as no rack
//! is used twice. So the sum of the jobs' smallest sums, less the cost of all racks, is a bound,
//! whatever the prices; good prices make it a good one.
//!
//! Prices are constant within each of 64 stretches of time, and zero afterwards. The search begins
//! with one price until one end. Then prices rise where the jobs' choices hold more than R racks
//! and fall where they hold fewer: a subgradient, with Polyak's step towards the value of a plan.
//! It ends after 200 sets of prices, or when four million starts have been judged.

use super::{Malleable, PlanningProblem};

/// Stretches of time with a price each.
const CELLS: usize = 64;
/// Sets of prices that are tried.
const TRIES: usize = 200;
/// Starts of jobs that are judged; a bound on the time that the search takes.
const LOOKS: usize = 4_000_000;
/// Number of tries without a better bound after which the step gets smaller.
const PATIENCE: usize = 6;

/// A job: arrival, and the widths worth having (more racks, shorter) with their latencies, the
/// widest first.
struct PricedJob {
    arrival: f64,
    widths: Vec<(f64, f64)>,
}

impl PricedJob {
    fn of(job: &Malleable) -> Self {
        let mut widths: Vec<(f64, f64)> = vec![];
        for (k, l) in job.curve.iter().enumerate() {
            if widths.last().is_none_or(|w| (l.0 as f64) < w.1) {
                widths.push((k as f64 + 1.0, l.0 as f64));
            }
        }
        widths.reverse();
        Self { arrival: job.arrival.0 as f64, widths }
    }

    /// The smallest completion time and bill, where racks cost `price` until `end`. A start between
    /// its arrival and `end` is never the best: both change linearly, first upwards, then with one
    /// slope until `end`.
    fn at_one_price(&self, price: f64, end: f64) -> f64 {
        let open = (end - self.arrival).max(0.0);
        let later = open + self.widths.first().map_or(0.0, |w| w.1);
        self.widths.iter().map(|&(r, l)| l + price * r * l.min(open)).fold(later, f64::min)
    }

    /// The smallest completion time and bill. Both change linearly until a start or an end passes
    /// from one stretch to the next, so only those starts are judged. No more are judged as soon as
    /// a job would end later without any bill.
    fn cheapest(&self, prices: &RackPrices, looks: &mut usize) -> Choice {
        let mut best = Choice { cost: f64::INFINITY, start: self.arrival, racks: 0.0, length: 0.0 };
        for &(racks, length) in &self.widths {
            let mut look = |start: f64| {
                *looks += 1;
                let took = start + length - self.arrival;
                let cost = took + racks * (prices.until(start + length) - prices.until(start));
                if cost < best.cost {
                    best = Choice { cost, start, racks, length };
                }
                took >= best.cost
            };
            if look(self.arrival) {
                continue;
            }
            let edges = |from: f64| (prices.first_edge(from)..=CELLS).map(|k| prices.edge(k));
            let _ = edges(self.arrival).any(&mut look);
            let _ = edges(self.arrival + length).any(|e| look((e - length).max(self.arrival)));
        }
        best
    }
}

/// What a job would do.
struct Choice {
    cost: f64,
    start: f64,
    racks: f64,
    length: f64,
}

/// What a rack costs.
#[derive(Clone)]
struct RackPrices {
    begin: f64,
    /// The length of a stretch.
    cell: f64,
    /// By stretch, a nanosecond.
    each: Vec<f64>,
    /// By edge, from the beginning to it.
    sums: Vec<f64>,
}

impl RackPrices {
    fn new(begin: f64, end: f64) -> Self {
        Self {
            begin,
            cell: (end - begin) / CELLS as f64,
            each: vec![0.0; CELLS],
            sums: vec![0.0; CELLS + 1],
        }
    }

    fn set(&mut self, price: impl Fn(usize, f64) -> f64) {
        for k in 0..CELLS {
            self.each[k] = price(k, self.each[k]).max(0.0);
            self.sums[k + 1] = self.sums[k] + self.each[k] * self.cell;
        }
    }

    fn edge(&self, k: usize) -> f64 {
        self.begin + k as f64 * self.cell
    }

    /// The first edge that is not before a time.
    fn first_edge(&self, time: f64) -> usize {
        ((time - self.begin) / self.cell).ceil() as usize
    }

    /// What a rack costs from the beginning to a time.
    fn until(&self, time: f64) -> f64 {
        let k = ((time - self.begin) / self.cell) as usize;
        if k >= CELLS {
            self.sums[CELLS]
        } else {
            self.sums[k] + self.each[k] * (time - self.edge(k))
        }
    }

    /// The bound, and how many rack nanoseconds more than there are the jobs would hold in each
    /// stretch.
    fn value(&self, jobs: &[PricedJob], racks: f64, looks: &mut usize) -> (f64, Vec<f64>) {
        let mut excess = vec![-racks * self.cell; CELLS];
        let mut value = -racks * self.sums[CELLS];
        for job in jobs {
            let c = job.cheapest(self, looks);
            value += c.cost;
            let (from, to) = (c.start, c.start + c.length);
            let held = (((from - self.begin) / self.cell) as usize..CELLS)
                .take_while(|&k| self.edge(k) < to);
            held.for_each(|k| {
                excess[k] += c.racks * (self.edge(k + 1).min(to) - self.edge(k).max(from)).max(0.0)
            });
        }
        (value, excess)
    }
}

/// The bound on the sum of times from arrival to completion, in nanoseconds. `found` is that sum in
/// some plan.
pub fn bound(problem: &PlanningProblem, found: f64) -> f64 {
    let jobs: Vec<PricedJob> = problem.jobs.iter().map(PricedJob::of).collect();
    let begin = jobs.iter().map(|j| j.arrival).fold(f64::INFINITY, f64::min);
    let last = jobs.iter().map(|j| j.arrival).fold(begin, f64::max);
    let work: f64 =
        jobs.iter().map(|j| j.widths.iter().map(|w| w.0 * w.1).fold(f64::INFINITY, f64::min)).sum();
    let racks = problem.racks as f64;
    let mut prices = RackPrices::new(begin, last + work / racks);
    // Floats cannot tell the stretches of time apart: only the trivial bound is left.
    if prices.edge(1) <= begin {
        return 0.0;
    }
    let (first, price, end) = one_price(&prices, &jobs, racks);
    prices.set(|k, _| if k < end { price } else { 0.0 });
    first.max(ascend(prices, &jobs, racks, found))
}

/// The best bound with one price until one edge, that price, and the edge.
fn one_price(grid: &RackPrices, jobs: &[PricedJob], racks: f64) -> (f64, f64, usize) {
    let mut best = (0.0, 0.0, 0);
    for end in (1..=8).map(|eighth| eighth * CELLS / 8) {
        let until = grid.edge(end);
        let value = |price: f64| {
            jobs.iter().map(|j| j.at_one_price(price, until)).sum::<f64>()
                - racks * price * (until - grid.begin)
        };
        let (v, price) = best_price(value);
        if v > best.0 {
            best = (v, price, end);
        }
    }
    best
}

/// The greatest value over prices from 10^-6 to 10, and the price: concave in it, so thirds of its
/// logarithm close in on it.
fn best_price(value: impl Fn(f64) -> f64) -> (f64, f64) {
    let (mut low, mut high) = (1e-6f64.ln(), 10f64.ln());
    let mut best = (value(0.0), 0.0);
    for _ in 0..24 {
        let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        let (x, y) = (value(a.exp()), value(b.exp()));
        for (v, at) in [(x, a), (y, b)] {
            if v > best.0 {
                best = (v, at.exp());
            }
        }
        if x < y { low = a } else { high = b }
    }
    best
}

/// The best bound that a subgradient finds from these prices on.
fn ascend(mut prices: RackPrices, jobs: &[PricedJob], racks: f64, found: f64) -> f64 {
    let (mut best, mut at, mut looks) = (f64::NEG_INFINITY, prices.clone(), 0);
    let (mut share, mut waited) = (1.0, 0);
    for _ in 0..TRIES {
        let (value, excess) = prices.value(jobs, racks, &mut looks);
        if value > best {
            waited = if value > best + 1e-5 * best.abs() { 0 } else { waited + 1 };
            (best, at) = (value, prices.clone());
        } else {
            waited += 1;
        }
        if looks >= LOOKS {
            break;
        }
        if waited >= PATIENCE {
            (share, waited) = (share * 0.6, 0);
            prices = at.clone();
            continue;
        }
        let free = |k: usize| prices.each[k] <= 0.0 && excess[k] < 0.0;
        let steep: f64 = (0..CELLS).filter(|&k| !free(k)).map(|k| excess[k] * excess[k]).sum();
        if steep == 0.0 {
            break;
        }
        let step = share * (found - value).max(found * 0.01) / steep;
        prices.set(|k, p| p + step * excess[k]);
    }
    best.max(0.0)
}
