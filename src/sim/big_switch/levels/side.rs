//! One side of the links: all up, or all down. What is left of each, and the share at which each
//! would be full.
//!
//! All numbers here are whole and below 2^53, so `f64` holds them exactly. It also divides eight of
//! them in the time of one integer division. The loops are written so that the compiler vectorises
//! them, for the best vectors of the processor.

use multiversion::multiversion;

/// Links that one step of a loop takes.
const LANES: usize = 8;

type LinkLanes = [f64; LANES];

/// Largest capacity of a link for this arithmetic, in bits a second: shares are rounded with 2^52,
/// and no product exceeds it.
pub const MAX_RATE: u64 = 1 << 52;

/// Snapshot of what filling changes on a side.
pub struct SideSnapshot {
    left: Vec<LinkLanes>,
    growing: Vec<LinkLanes>,
}

impl SideSnapshot {
    /// Adds flows at a link that was not filled.
    pub fn change(&mut self, own: usize, by: i32) {
        self.growing.as_flattened_mut()[own] += f64::from(by);
    }
}

/// The links of a side, and their flows to those of the other side.
pub struct LinkSide {
    /// By link: capacity that the flows of filled links on the other side leave.
    left: Vec<LinkLanes>,
    /// Flows that still grow.
    growing: Vec<LinkLanes>,
    /// 1 if the link is not filled, else 0.
    open: Vec<LinkLanes>,
    /// By link: the rate of its growing flows at which it is full. Infinite without any, and if it
    /// is filled.
    share: Vec<LinkLanes>,
    /// Flows by own link and link of the other side: rows of whole lanes.
    flows: Vec<[i32; LANES]>,
}

impl LinkSide {
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

    /// Sets the capacities while no link of either side is filled.
    pub fn limit(&mut self, capacity: &[u64]) {
        debug_assert!(capacity.iter().all(|&c| c < MAX_RATE));
        self.left.as_flattened_mut().iter_mut().zip(capacity).for_each(|(l, &c)| *l = c as f64);
    }

    /// Adds `by` flows between a link and one of the other side, neither of which is filled.
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

    /// The snapshot. O(links).
    pub fn state(&self) -> SideSnapshot {
        SideSnapshot { left: self.left.clone(), growing: self.growing.clone() }
    }

    /// Restores a snapshot; which links are filled stays. O(links).
    pub fn restore(&mut self, state: &SideSnapshot) {
        self.left.copy_from_slice(&state.left);
        self.growing.copy_from_slice(&state.growing);
    }

    /// Marks a link as not filled; [`LinkSide::restore`] must follow.
    pub fn open(&mut self, own: usize) {
        self.open.as_flattened_mut()[own] = 1.0;
    }

    /// Fills a link at `share`: each of its flows takes `share` from its link of `other`, unless
    /// that is filled. O(links).
    pub fn fill(&mut self, own: usize, share: f64, other: &mut LinkSide) {
        self.open.as_flattened_mut()[own] = 0.0;
        give(&mut other.left, &mut other.growing, &other.open, self.row(own), -1.0, share);
    }

    /// Undoes [`LinkSide::fill`]. O(links).
    pub fn undo(&mut self, own: usize, share: f64, other: &mut LinkSide) {
        self.open.as_flattened_mut()[own] = 1.0;
        give(&mut other.left, &mut other.growing, &other.open, self.row(own), 1.0, share);
    }

    /// Computes all shares; returns the smallest. O(links).
    pub fn refresh(&mut self) -> f64 {
        divide(&self.left, &self.growing, &self.open, &mut self.share)
    }

    /// Removes links with shares below `bound`, and appends each to `found` as (share, link).
    /// Returns the smallest of the other shares. O(links).
    pub fn below(&mut self, bound: f64, found: &mut Vec<(f64, u32)>) -> f64 {
        take_below(&mut self.share, bound, found)
    }
}

/// Share at which a link is full that has `left` for `growing` flows: the quotient, rounded down.
#[inline(always)]
fn full_at(left: f64, growing: f64) -> f64 {
    const WHOLE: f64 = MAX_RATE as f64;
    let quotient = left / growing;
    // From 2^52 on there are no fractions. This rounds to the nearest, and every processor can do
    // it.
    let nearest = (quotient + WHOLE) - WHOLE;
    let floor = nearest - if nearest > quotient { 1.0 } else { 0.0 };
    if growing > 0.0 { floor } else { f64::INFINITY }
}

#[inline(always)]
fn lower(a: f64, b: f64) -> f64 {
    if b < a { b } else { a }
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn give(
    left: &mut [LinkLanes],
    growing: &mut [LinkLanes],
    open: &[LinkLanes],
    flows: &[[i32; LANES]],
    sign: f64,
    share: f64,
) {
    let (left, growing) = (left.as_flattened_mut().iter_mut(), growing.as_flattened_mut());
    for (((left, growing), open), &flows) in
        left.zip(growing).zip(open.as_flattened()).zip(flows.as_flattened())
    {
        let flows = sign * f64::from(flows) * open;
        *left += share * flows;
        *growing += flows;
    }
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn divide(
    left: &[LinkLanes],
    growing: &[LinkLanes],
    open: &[LinkLanes],
    shares: &mut [LinkLanes],
) -> f64 {
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
fn take_below(shares: &mut [LinkLanes], bound: f64, found: &mut Vec<(f64, u32)>) -> f64 {
    let mut least = [f64::INFINITY; LANES];
    // A loop of its own: beside a list that may grow, `least` would not stay in registers.
    for shares in shares.iter() {
        for k in 0..LANES {
            least[k] = lower(least[k], if shares[k] < bound { f64::INFINITY } else { shares[k] });
        }
    }
    for (at, shares) in shares.iter_mut().enumerate() {
        // Without an early exit the loop is one comparison of vectors.
        if shares.iter().fold(false, |any, &s| any | (s < bound)) {
            for (k, s) in shares.iter_mut().enumerate().filter(|s| *s.1 < bound) {
                found.push((std::mem::replace(s, f64::INFINITY), (at * LANES + k) as u32));
            }
        }
    }
    least.into_iter().fold(f64::INFINITY, lower)
}
