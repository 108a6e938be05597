//! The assignment problem on dense 64-bit weights: [`super::assignment`] made fast.
//!
//! The same method (Jonker and Volgenant, Computing 38, 1987), laid out for vector scans ([`super::simd`]): no list of open columns
//! but a price that shuts a column out, so that every scan runs over whole rows; and weights straight from the demand, without a
//! table of their own.
//!
//! A price has its column's number in its lowest bits, so that the best of a row says where it is, and of equals the first is the best.
//! In a search these bits say instead whether the column is taken, so that the least distance prefers a free column without looking.

use super::assignment::{Assignment, NONE};
use super::num::places;
use super::simd::{self, FAR, Lanes, Level, Offer, SHUT};

/// Weights of `n * n` pairs: `cells << shift`, and a bonus for those that are to be kept.
pub(super) struct Weights<'a> {
    pub(super) n: usize,
    cells: &'a [i64],
    shift: u32,
    keep: &'a [u32],
}

impl<'a> Weights<'a> {
    /// `cells << shift`, all of them below 2^53 / n; and by row the column whose pair weighs one more, or [`NONE`]. `keep` may be empty.
    pub(super) fn new(n: usize, cells: &'a [i64], shift: u32, keep: &'a [u32]) -> Self {
        Self { n, cells, shift: shift + places(n), keep }
    }

    fn row(&self, i: usize) -> &[i64] {
        &self.cells[i * self.n..(i + 1) * self.n]
    }

    fn kept(&self, i: usize) -> Option<usize> {
        self.keep.get(i).filter(|&&j| j != NONE && self.cells[i * self.n + j as usize] > 0).map(|&j| j as usize)
    }

    pub(super) fn at(&self, i: usize, j: usize) -> i64 {
        let bonus = if self.kept(i) == Some(j) { 1 << places(self.n) } else { 0 };
        (self.cells[i * self.n + j] << self.shift) + bonus
    }
}

/// A row's best column at the present prices, and the value of the second best.
struct Best {
    value: i64,
    column: usize,
    second: i64,
    /// The column of the second.
    other: usize,
}

/// Prices, matching and scratch; prices stand for any matrix, the matching for the present one. Solved again, it needs no new memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Dense {
    level: Level,
    n: usize,
    /// By column: its price, and its number.
    v: Lanes,
    /// By column: its price, one more where it is taken.
    marked: Lanes,
    pub(super) column: Vec<u32>,
    row: Vec<u32>,
    key: Lanes,
    from: Lanes,
    shut: Vec<(u32, i64)>,
    /// Rows that are still to be placed, and those that a pass leaves.
    free: Vec<u32>,
    left: Vec<u32>,
}

impl Dense {
    /// Nothing matched; the prices are still to be set.
    fn begin(&mut self, n: usize) {
        (self.level, self.n) = (Level::for_rows_of(n), n);
        for list in [&mut self.v, &mut self.marked, &mut self.key, &mut self.from] {
            list.resize(n);
        }
        for list in [&mut self.column, &mut self.row] {
            list.resize(n, NONE);
            list.fill(NONE);
        }
        self.free.clear();
    }

    fn price(&self, j: usize) -> i64 {
        self.v[j] - j as i64
    }

    /// Sets all prices.
    fn set_prices(&mut self, prices: &[i64]) {
        for (j, (v, price)) in self.v.iter_mut().zip(prices).enumerate() {
            *v = price + j as i64;
        }
    }

    /// Duals in the unit of the cells that [`Weights::new`] was given, shifted as it was told.
    pub(super) fn assignment(&self, w: &Weights) -> Assignment<i64> {
        let unit = places(self.n);
        let u = self.column.iter().enumerate().map(|(i, &j)| (w.at(i, j as usize) - self.price(j as usize)) >> unit).collect();
        Assignment { column: self.column.clone(), u, v: (0..self.n).map(|j| self.price(j) >> unit).collect() }
    }

    /// Prices near zero: they count only against each other, and so never run away.
    pub(super) fn prices(&self) -> Vec<i64> {
        let mut prices: Vec<i64> = (0..self.n).map(|j| self.price(j)).collect();
        let least = prices.iter().copied().min().unwrap_or(0);
        prices.iter_mut().for_each(|p| *p -= least);
        prices
    }

    /// Solves from nothing.
    pub(super) fn cold(&mut self, w: &Weights) {
        self.begin(w.n);
        if w.n < 2 {
            self.v.fill(0);
            (0..w.n).for_each(|i| self.take(i, 0));
        } else {
            self.reduce_columns(w);
            self.place(w, 2);
        }
    }

    /// Solves from the prices and the matching of similar weights: rows whose column is still the best keep it.
    pub(super) fn warm(&mut self, w: &Weights, v: &[i64], column: &[u32]) {
        if w.n < 2 {
            return self.cold(w);
        }
        self.begin(w.n);
        self.set_prices(v);
        for (i, &own) in column.iter().enumerate() {
            let best = self.two_best(w, i).value;
            let own = own as usize;
            if w.at(i, own) - self.price(own) == best {
                self.take(i, own);
            } else {
                self.free.push(i as u32);
            }
        }
        self.place(w, 2);
    }

    /// After cell (i, j) has changed: if the row's column is no longer its best, the row alone searches for another. All other rows
    /// keep duals that prove them right. Says whether the prices are still near enough to each other to go on.
    pub(super) fn repair(&mut self, w: &Weights, i: usize) -> bool {
        if w.n < 2 {
            return true;
        }
        let own = self.column[i] as usize;
        if w.at(i, own) - self.price(own) < self.two_best(w, i).value {
            self.row[own] = NONE;
            self.set_prices(&self.prices());
            self.mark();
            self.augment(w, i);
        }
        self.v.iter().all(|&v| v < FAR >> 3)
    }

    /// What a cell of row `i` may weigh at most before the row must be repaired.
    pub(super) fn worth(&self, w: &Weights, i: usize, j: usize) -> i64 {
        let own = self.column[i] as usize;
        w.at(i, own) - self.price(own) + self.price(j)
    }

    /// Places free rows: some passes of reductions, and searches for those that remain.
    fn place(&mut self, w: &Weights, passes: usize) {
        for _ in 0..passes {
            self.reduce_rows(w);
        }
        if self.free.is_empty() {
            return;
        }
        self.mark();
        for k in 0..self.free.len() {
            self.augment(w, self.free[k] as usize);
        }
    }

    fn mark(&mut self) {
        for j in 0..self.n {
            self.marked[j] = self.price(j) + i64::from(self.row[j] != NONE);
        }
    }

    fn take(&mut self, i: usize, j: usize) {
        (self.column[i], self.row[j]) = (j as u32, i as u32);
    }

    /// Prices each column at its best weight and gives it to the first row that offers it; the others are free.
    fn reduce_columns(&mut self, w: &Weights) {
        let n = self.n;
        self.v.fill(i64::MIN);
        for i in 0..n {
            simd::column_max(self.level, w.row(i), w.shift, i as i64, &mut self.v, &mut self.from);
            if let Some(j) = w.kept(i).filter(|&j| w.at(i, j) > self.v[j]) {
                (self.v[j], self.from[j]) = (w.at(i, j), i as i64);
            }
        }
        (0..n).for_each(|j| self.v[j] += j as i64);
        // By row: how many columns it has won.
        self.key.fill(0);
        for j in 0..n {
            let i = self.from[j] as usize;
            self.key[i] += 1;
            if self.key[i] == 1 {
                self.take(i, j);
            }
        }
        for i in 0..n {
            match self.key[i] {
                0 => self.free.push(i as u32),
                1 => self.transfer(w, i),
                _ => {}
            }
        }
    }

    /// A row that won one column only pays for it up to the point where its second choice is as good.
    fn transfer(&mut self, w: &Weights, i: usize) {
        let own = self.column[i] as usize;
        let price = std::mem::replace(&mut self.v[own], FAR);
        let best = self.two_best(w, i).value;
        self.v[own] = price - best;
    }

    fn two_best(&self, w: &Weights, i: usize) -> Best {
        let (mut a, mut b) = simd::two_best(self.level, w.row(i), w.shift, &self.v);
        let place = (1 << places(self.n)) - 1;
        let column = |x: i64| (-x & place) as usize;
        if let Some(j) = w.kept(i) {
            let x = w.at(i, j) - self.v[j];
            if j == column(a) {
                a = x;
            } else {
                (a, b) = (a.max(x), a.min(b.max(x)));
            }
        }
        let (column, other) = (column(a), column(b));
        Best { value: a + column as i64, column, second: b + other as i64, other }
    }

    /// Each free row takes its best column and raises its price to the second best; the row that it drives out tries at once
    /// (price wars are cut short) or in the next pass. Leaves the rows still free.
    fn reduce_rows(&mut self, w: &Weights) {
        self.left.clear();
        let mut wars = 4 * self.n;
        for k in 0..self.free.len() {
            let mut i = self.free[k] as usize;
            loop {
                let Best { value, column: mut j, second, other } = self.two_best(w, i);
                let strict = value > second;
                if strict {
                    simd::raise(self.level, &mut self.v, j, value - second);
                } else if self.row[j] != NONE {
                    j = other;
                }
                let out = self.row[j];
                self.take(i, j);
                if out == NONE {
                    break;
                }
                self.column[out as usize] = NONE;
                if !strict || wars == 0 {
                    self.left.push(out);
                    break;
                }
                wars -= 1;
                i = out as usize;
            }
        }
        std::mem::swap(&mut self.free, &mut self.left);
    }

    /// Offers row `i` at `base`; the nearest open column, a free one among equals.
    fn relax(&mut self, w: &Weights, i: usize, base: i64) -> (i64, usize) {
        let offer = Offer { w: w.row(i), shift: w.shift, v: &self.marked, base, i: i as i64 };
        let mut near = simd::relax(self.level, offer, &mut self.key, &mut self.from);
        if let Some(j) = w.kept(i) {
            let d = base + self.marked[j] - w.at(i, j);
            if d < self.key[j] {
                (self.key[j], self.from[j]) = (d, i as i64);
                if d < near.0 {
                    near = (d, j);
                }
            }
        }
        near
    }

    /// Dijkstra from free row `f` over the reduced costs to the nearest free column, then shifts the path.
    fn augment(&mut self, w: &Weights, f: usize) {
        self.key.fill(FAR - 1);
        self.shut.clear();
        let (mut near, mut j) = self.relax(w, f, 0);
        while near & 1 != 0 {
            let dist = near - 1;
            let i = self.row[j] as usize;
            self.shut.push((j as u32, dist));
            (self.marked[j], self.key[j]) = (SHUT, FAR);
            let base = dist - self.price(j) + w.at(i, j);
            (near, j) = self.relax(w, i, base);
        }
        for &(j, dist) in &self.shut {
            let j = j as usize;
            self.v[j] += near - dist;
            self.marked[j] = self.price(j) + 1;
        }
        self.marked[j] += 1;
        loop {
            let i = self.from[j] as usize;
            self.row[j] = i as u32;
            let before = std::mem::replace(&mut self.column[i], j as u32);
            if i == f {
                return;
            }
            j = before as usize;
        }
    }
}
