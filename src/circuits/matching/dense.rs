//! The assignment problem on dense 64-bit weights: [`super::assignment`] made fast.
//!
//! The same method (Jonker and Volgenant, Computing 38, 1987), laid out for vector scans
//! ([`super::simd`]). There is no list of open columns but a price that shuts a column out, so that
//! every scan runs over whole rows. Weights come straight from the demand, without a table of their
//! own.
//!
//! All numbers are multiples of a power of two. Where there is room, a price has its column's
//! number in its spare bits, so that the best of a row says where it is; else it is looked for. In
//! a search the lowest bit says that the column is taken, so that the least distance prefers a free
//! column without looking.

use super::assignment::{Assignment, NONE};
use super::num::{QUICK_LIMIT, places};
use super::simd::{self, FAR, Lanes, RowOffer, SHUT, SimdLevel};
use crate::steps;

/// A pass of reductions stops after this many rows with two best columns that have demand, and
/// [`STRICT`] more for each row with one best.
const TIES: i64 = 4;
const STRICT: i64 = 7;

/// How often a warm start goes over all rows to raise prices along the old matching. Of 150 racks
/// whose demand drifts, 71 rows are free without, 22 after one pass, 18, 16 and 16 after two, three
/// and four.
const LIFTS: usize = 3;

/// Weights of `n * n` pairs: `cells << shift`, and a bonus for those that are to be kept.
pub(super) struct Weights<'a> {
    pub(super) n: usize,
    cells: &'a [i64],
    shift: u32,
    /// How many of the lowest bits are zero.
    spare: u32,
    keep: &'a [u32],
    symmetric: bool,
}

impl<'a> Weights<'a> {
    /// `cells << shift`, with `spare` zero bits below ([`super::num::Scale::shift`]); and by row
    /// the column whose pair weighs one more, or [`NONE`]. `keep` may be empty.
    pub(super) fn new(
        n: usize,
        cells: &'a [i64],
        (shift, spare): (u32, u32),
        keep: &'a [u32],
    ) -> Self {
        Self { n, cells, shift: shift + spare, spare, keep, symmetric: false }
    }

    /// The same of a symmetric matrix: with ties, reductions are not cut short, since they leave
    /// fewer odd cycles.
    pub(super) fn symmetric(self) -> Self {
        Self { symmetric: true, ..self }
    }

    fn row(&self, i: usize) -> &[i64] {
        &self.cells[i * self.n..(i + 1) * self.n]
    }

    fn kept(&self, i: usize) -> Option<usize> {
        self.keep
            .get(i)
            .filter(|&&j| j != NONE && self.cells[i * self.n + j as usize] > 0)
            .map(|&j| j as usize)
    }

    pub(super) fn at(&self, i: usize, j: usize) -> i64 {
        let bonus = if self.kept(i) == Some(j) { 1 << self.spare } else { 0 };
        (self.cells[i * self.n + j] << self.shift) + bonus
    }
}

/// Prices, matching and scratch; prices are valid for any matrix, the matching for the present one
/// only. Solved again, it needs no new memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Dense {
    level: SimdLevel,
    n: usize,
    /// What prices have in their lowest bits: ones for the columns' numbers, or zero for nothing.
    mask: i64,
    /// By column: its price, and perhaps its number.
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
    fn begin(&mut self, w: &Weights) {
        let n = w.n;
        let numbered = w.spare >= places(n);
        (self.level, self.n, self.mask) =
            (SimdLevel::for_rows_of(n), n, if numbered { (1 << places(n)) - 1 } else { 0 });
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
        self.v[j] - (j as i64 & self.mask)
    }

    /// Writes the columns' numbers into prices that have none.
    fn number(&mut self) {
        for (j, v) in self.v.iter_mut().enumerate() {
            *v += j as i64 & self.mask;
        }
    }

    /// Duals in the unit of the cells that [`Weights::new`] was given, shifted by its shift.
    pub(super) fn assignment(&self, w: &Weights) -> Assignment<i64> {
        let u = self
            .column
            .iter()
            .enumerate()
            .map(|(i, &j)| (w.at(i, j as usize) - self.price(j as usize)) >> w.spare)
            .collect();
        Assignment {
            column: self.column.clone(),
            u,
            v: (0..self.n).map(|j| self.price(j) >> w.spare).collect(),
        }
    }

    /// Prices near zero, in the unit of the cells: they count only against each other, and so never
    /// run away.
    pub(super) fn prices(&self, w: &Weights) -> Vec<i64> {
        let least = (0..self.n).map(|j| self.price(j)).min().unwrap_or(0);
        (0..self.n).map(|j| (self.price(j) - least) >> w.spare).collect()
    }

    /// Solves from nothing.
    pub(super) fn cold(&mut self, w: &Weights) {
        self.begin(w);
        if w.n < 2 {
            self.v.fill(0);
            (0..w.n).for_each(|i| self.take(i, 0));
        } else {
            self.reduce_columns(w);
            self.place(w, !w.symmetric);
        }
    }

    /// Solves from the prices and the matching of similar weights: rows whose column is still the
    /// best keep it, and prices rise first where that makes it so.
    pub(super) fn warm(&mut self, w: &Weights, v: &[i64], column: &[u32]) {
        if w.n < 2 || v.iter().any(|&v| v.unsigned_abs() >= (QUICK_LIMIT >> w.spare) as u64) {
            return self.cold(w);
        }
        self.begin(w);
        self.v.iter_mut().zip(v).for_each(|(new, old)| *new = old << w.spare);
        self.lift(w, column);
        if self.v.iter().any(|&v| v >= QUICK_LIMIT as i64) {
            self.v.iter_mut().zip(v).for_each(|(new, old)| *new = old << w.spare);
            self.key.fill(i64::MIN);
        }
        self.number();
        for (i, &own) in column.iter().enumerate() {
            let own = own as usize;
            let value = w.at(i, own) - self.price(own);
            if -value == self.key[i] || value == self.best(w, i) {
                self.take(i, own);
            } else {
                self.free.push(i as u32);
            }
        }
        self.place(w, false);
    }

    /// Raises prices that have no numbers until rows like no column better than their own, or until
    /// [`LIFTS`] passes are over. The price of each column rises to what it is worth to any row,
    /// less what this row has of its own.
    ///
    /// If the old matching is still the best one, the least prices that prove it are the longest
    /// paths over the old prices. These are mostly of few steps. Otherwise rows that gain by going
    /// round in a circle raise prices in each pass, and are free in the end.
    ///
    /// Leaves in `key`, by row, what its own column cost it when it had its last turn, or the least
    /// number: while that stays, its own column is the best one.
    fn lift(&mut self, w: &Weights, column: &[u32]) {
        self.key.fill(i64::MIN);
        for _ in 0..LIFTS {
            let mut risen = false;
            for (i, &own) in column.iter().enumerate() {
                let own = own as usize;
                let base = self.v[own] - w.at(i, own);
                // Prices of this kind are not kept; so far they have room.
                if base != self.key[i] && base < QUICK_LIMIT as i64 {
                    steps::count(1);
                    self.key[i] = base;
                    risen |= simd::lift(self.level, w.row(i), w.shift, base, &mut self.v);
                    if let Some(j) = w.kept(i) {
                        self.v[j] = self.v[j].max(base + w.at(i, j));
                    }
                }
            }
            if !risen {
                return;
            }
        }
    }

    /// Places free rows: some passes of reductions, and searches for those that remain. Where most
    /// rows have two best columns, reductions only pass columns around: `hasty` ones stop early,
    /// and free columns are given away.
    fn place(&mut self, w: &Weights, hasty: bool) {
        let ties = self.reduce_rows(w, hasty) || self.reduce_rows(w, hasty);
        if self.free.is_empty() {
            return;
        }
        self.mark();
        if ties {
            self.give_away(w);
        }
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

    /// Prices each column at its best weight and gives it to the first row that offers it; the
    /// others are free.
    fn reduce_columns(&mut self, w: &Weights) {
        let n = self.n;
        steps::count(n);
        simd::column_max(self.level, w.cells, w.shift, &mut self.v, &mut self.from);
        // A kept pair weighs more than its equals, so it is enough to look at these last.
        for i in 0..n {
            if let Some(j) = w.kept(i).filter(|&j| w.at(i, j) > self.v[j]) {
                (self.v[j], self.from[j]) = (w.at(i, j), i as i64);
            }
        }
        self.number();
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

    /// A row that won one column only pays for it up to the point where its second choice is as
    /// good.
    fn transfer(&mut self, w: &Weights, i: usize) {
        let own = self.column[i] as usize;
        let price = std::mem::replace(&mut self.v[own], FAR);
        self.v[own] = price - self.best(w, i);
    }

    /// The best value of a row at the present prices.
    fn best(&self, w: &Weights, i: usize) -> i64 {
        steps::count(1);
        let a = simd::best(self.level, w.row(i), w.shift, &self.v);
        let kept = w.kept(i).map_or(i64::MIN, |j| w.at(i, j) - self.price(j));
        kept.max(a + (-a & self.mask))
    }

    /// The best value, the first column that has it, and the second best value.
    fn two_best(&self, w: &Weights, i: usize) -> (i64, usize, i64) {
        steps::count(1);
        let (a, b) = simd::two_best(self.level, w.row(i), w.shift, &self.v);
        let k = if self.mask > 0 { (-a & self.mask) as usize } else { self.place_of(w, i, a) };
        let (a, b) = (a + (k as i64 & self.mask), b + (-b & self.mask));
        let Some(j) = w.kept(i) else { return (a, k, b) };
        let x = w.at(i, j) - self.price(j);
        if j == k {
            (x, k, b)
        } else if x > a {
            (x, j, a)
        } else {
            (a, k, b.max(x))
        }
    }

    /// The first column that has the value.
    fn place_of(&self, w: &Weights, i: usize, value: i64) -> usize {
        simd::place_of(self.level, value, w.row(i), w.shift, &self.v)
            .expect("the value is one of these")
    }

    /// Another column with the value `best` than `k`.
    fn twin(&self, w: &Weights, i: usize, k: usize, best: i64) -> usize {
        (0..self.n)
            .find(|&j| j != k && w.at(i, j) - self.price(j) == best)
            .expect("the second best is as good")
    }

    /// Each free row takes its best column and raises its price to the second best; the row that it
    /// drives out tries at once (price wars are cut short) or in the next pass. Leaves the rows
    /// still free, and says whether it has stopped early because the second best was as good for
    /// most.
    fn reduce_rows(&mut self, w: &Weights, hasty: bool) -> bool {
        self.left.clear();
        let mut wars = 4 * self.n;
        let mut patience = if hasty { TIES } else { i64::MAX / 2 };
        for k in 0..self.free.len() {
            if patience <= 0 {
                self.left.extend_from_slice(&self.free[k..]);
                break;
            }
            let mut i = self.free[k] as usize;
            loop {
                let (best, mut j, second) = self.two_best(w, i);
                let strict = best > second;
                patience += if strict { STRICT } else { -i64::from(w.row(i)[j] > 0) };
                if strict {
                    simd::raise(self.level, &mut self.v, j, best - second);
                } else if self.row[j] != NONE {
                    j = self.twin(w, i, j, best);
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
        patience <= 0
    }

    /// Gives free rows a best column that is free, the first of them. Leaves the rows that have
    /// none.
    ///
    /// After a cold start no row's best is more than zero, since prices begin at the columns' best
    /// weights and only rise. So a row with a free column worth zero is done without a look at
    /// the others.
    fn give_away(&mut self, w: &Weights) {
        self.left.clear();
        // All columns before are taken.
        let mut first = 0;
        for k in 0..self.free.len() {
            steps::count(1);
            let i = self.free[k] as usize;
            while self.row.get(first).is_some_and(|&i| i != NONE) {
                first += 1;
            }
            let (level, row) = (self.level, w.row(i));
            // Only the price of a free column is even, and a kept pair is worth more than its cell
            // says.
            let sure = if w.kept(i).is_some() {
                None
            } else {
                simd::place_of(level, 0, &row[first..], w.shift, &self.marked[first..])
            };
            let found = sure.map(|j| first + j).or_else(|| {
                let best = simd::best(level, row, w.shift, &self.marked);
                match w.kept(i).map(|j| (j, w.at(i, j) - self.marked[j])).filter(|k| k.1 >= best) {
                    Some((j, value)) => (value & 1 == 0).then_some(j),
                    None if best & 1 == 0 => {
                        simd::place_of(level, best, row, w.shift, &self.marked)
                    }
                    None => None,
                }
            });
            match found {
                Some(j) => {
                    self.take(i, j);
                    self.marked[j] += 1;
                }
                None => self.left.push(i as u32),
            }
        }
        std::mem::swap(&mut self.free, &mut self.left);
    }

    /// Offers row `i` at `base`; the nearest open column, a free one among equals.
    fn relax(&mut self, w: &Weights, i: usize, base: i64) -> (i64, usize) {
        steps::count(1);
        let offer = RowOffer { w: w.row(i), shift: w.shift, v: &self.marked, base, i: i as i64 };
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

    /// Dijkstra from free row `f` over the reduced costs to the nearest free column, then shifts
    /// the path.
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
