//! One side of the links: all up, or all down. What is left of each, and by which share each would be full.
//!
//! Everything here is a whole number below 2^53, so `f64` holds it exactly, and divides eight of them in the time of one whole
//! division. The loops are written so that the compiler makes vector code of them, for the best vectors that the processor turns out
//! to have.

use multiversion::multiversion;

/// Links that a loop takes at a time.
const LANES: usize = 8;

type Lanes = [f64; LANES];

/// The most that a link may carry for this arithmetic, in bits per second: the share is rounded with 2^52, and no product exceeds it.
pub const MAX_RATE: u64 = 1 << 52;

/// What fillings change of a side, as it was at an instant.
pub struct State {
    left: Vec<Lanes>,
    growing: Vec<Lanes>,
}

impl State {
    /// As many flows more at a link that was not filled.
    pub fn change(&mut self, own: usize, by: i32) {
        self.growing.as_flattened_mut()[own] += f64::from(by);
    }
}

/// The links of a side, and their flows to those of the other side.
pub struct Side {
    /// By link: what the flows of the filled links on the other side leave it.
    left: Vec<Lanes>,
    /// How many of its flows still grow.
    growing: Vec<Lanes>,
    /// 1 if it is not filled, otherwise 0.
    open: Vec<Lanes>,
    /// By link that is not filled: the rate of its growing flows at which it is full; infinite without any, and if it is filled.
    share: Vec<Lanes>,
    /// Number of flows by own link and link of the other side: rows of whole lanes.
    flows: Vec<[i32; LANES]>,
}

impl Side {
    /// Links of these capacities without flows, and as many on the other side.
    pub fn new(capacity: &[u64]) -> Self {
        let width = capacity.len().div_ceil(LANES);
        let mut side = Self {
            left: vec![[0.0; LANES]; width],
            growing: vec![[0.0; LANES]; width],
            open: vec![[1.0; LANES]; width],
            share: vec![[f64::INFINITY; LANES]; width],
            flows: vec![[0; LANES]; width * capacity.len()],
        };
        side.limit(capacity);
        side
    }

    /// Links that are not filled, nor any on the other side, have these capacities from now on.
    pub fn limit(&mut self, capacity: &[u64]) {
        debug_assert!(capacity.iter().all(|&c| c < MAX_RATE));
        self.left.as_flattened_mut().iter_mut().zip(capacity).for_each(|(l, &c)| *l = c as f64);
    }

    /// As many flows more between a link and one of the other side, neither of which is filled.
    pub fn change(&mut self, own: usize, other: usize, by: i32) {
        let width = self.left.len();
        self.flows[own * width + other / LANES][other % LANES] += by;
        self.growing.as_flattened_mut()[own] += f64::from(by);
    }

    /// Flows between a link and one of the other side.
    pub fn flows(&self, own: usize, other: usize) -> i32 {
        self.flows[own * self.left.len() + other / LANES][other % LANES]
    }

    fn row(&self, own: usize) -> &[[i32; LANES]] {
        let width = self.left.len();
        &self.flows[own * width..(own + 1) * width]
    }

    /// What fillings change. O(links).
    pub fn state(&self) -> State {
        State { left: self.left.clone(), growing: self.growing.clone() }
    }

    /// Brings that back; which links are filled stays. O(links).
    pub fn restore(&mut self, state: &State) {
        self.left.copy_from_slice(&state.left);
        self.growing.copy_from_slice(&state.growing);
    }

    /// A link is not filled any more, where [`Side::restore`] follows.
    pub fn open(&mut self, own: usize) {
        self.open.as_flattened_mut()[own] = 1.0;
    }

    /// Fills a link of this side to `share`: each of its flows takes `share` from its link of `other`, if that is not filled. O(links).
    pub fn fill(&mut self, own: usize, share: f64, other: &mut Side) {
        self.open.as_flattened_mut()[own] = 0.0;
        give(&mut other.left, &mut other.growing, &other.open, self.row(own), -1.0, share);
    }

    /// Takes that back. O(links).
    pub fn undo(&mut self, own: usize, share: f64, other: &mut Side) {
        self.open.as_flattened_mut()[own] = 1.0;
        give(&mut other.left, &mut other.growing, &other.open, self.row(own), 1.0, share);
    }

    /// Computes all shares anew; returns the smallest. O(links).
    pub fn refresh(&mut self) -> f64 {
        divide(&self.left, &self.growing, &self.open, &mut self.share)
    }

    /// Takes out the links of shares below `bound`, and appends (share, link) of each to `found`; returns the smallest share of the rest.
    /// O(links).
    pub fn below(&mut self, bound: f64, found: &mut Vec<(f64, u32)>) -> f64 {
        take_below(&mut self.share, bound, found)
    }
}

/// The share at which a link is full that has `left` for `growing` flows: the floor of the quotient.
#[inline(always)]
fn full_at(left: f64, growing: f64) -> f64 {
    const WHOLE: f64 = MAX_RATE as f64;
    let quotient = left / growing;
    // From 2^52 on there are no fractions: this rounds to the nearest, and no processor lacks it.
    let nearest = (quotient + WHOLE) - WHOLE;
    let floor = nearest - if nearest > quotient { 1.0 } else { 0.0 };
    if growing > 0.0 { floor } else { f64::INFINITY }
}

#[inline(always)]
fn lower(a: f64, b: f64) -> f64 {
    if b < a { b } else { a }
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn give(left: &mut [Lanes], growing: &mut [Lanes], open: &[Lanes], flows: &[[i32; LANES]], sign: f64, share: f64) {
    let (left, growing) = (left.as_flattened_mut().iter_mut(), growing.as_flattened_mut());
    for (((left, growing), open), &flows) in left.zip(growing).zip(open.as_flattened()).zip(flows.as_flattened()) {
        let flows = sign * f64::from(flows) * open;
        *left += share * flows;
        *growing += flows;
    }
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn divide(left: &[Lanes], growing: &[Lanes], open: &[Lanes], shares: &mut [Lanes]) -> f64 {
    let mut least = [f64::INFINITY; LANES];
    for (((left, growing), open), shares) in left.iter().zip(growing).zip(open).zip(shares) {
        for k in 0..LANES {
            shares[k] = full_at(left[k], growing[k] * open[k]);
            least[k] = lower(least[k], shares[k]);
        }
    }
    least.into_iter().fold(f64::INFINITY, lower)
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn take_below(shares: &mut [Lanes], bound: f64, found: &mut Vec<(f64, u32)>) -> f64 {
    let mut least = [f64::INFINITY; LANES];
    // A loop of its own: beside a list that may grow, `least` would not stay in registers.
    for shares in shares.iter() {
        for k in 0..LANES {
            least[k] = lower(least[k], if shares[k] < bound { f64::INFINITY } else { shares[k] });
        }
    }
    for (at, shares) in shares.iter_mut().enumerate() {
        // Without a way out of the loop it is one comparison of vectors.
        if shares.iter().fold(false, |any, &s| any | (s < bound)) {
            for (k, s) in shares.iter_mut().enumerate().filter(|s| *s.1 < bound) {
                found.push((std::mem::replace(s, f64::INFINITY), (at * LANES + k) as u32));
            }
        }
    }
    least.into_iter().fold(f64::INFINITY, lower)
}
