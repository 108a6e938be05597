//! A square matrix whose rows and columns all have one sum, and the perfect matchings on it that
//! Birkhoff promises.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use multiversion::multiversion;

use super::Lit;
use crate::demand::DemandMatrix;
use crate::ids::RackId;
use crate::matching::wide::Wide;
use crate::matching::{at_most, gather};
use crate::units::BitRate;
use crate::{Matching, steps};

/// No row or column.
const NONE: u32 = u32::MAX;

/// A search reads all cells of a row where at least one in this number has light, for it reads
/// eight at a time; else those with light only.
const DENSE: usize = 8;

/// Light by cell, the diagonal included: what stuffing puts there is sent nowhere. It is cut along
/// one perfect matching after the other, each of which begins from what is left of the one before.
pub(super) struct Stuffed {
    n: usize,
    cells: Vec<u64>,
    /// By row: the columns that had light at first, once a search asked for them.
    filled: Option<RowLists<u32>>,
    /// Whether at least one cell in [`DENSE`] has light, so that a search reads all cells.
    dense: bool,
    /// By row: the columns into which light was stuffed, and how much. A cell's demand is served
    /// first, so what is left of it is what the cell holds beyond this.
    extra: RowLists<(u32, u64)>,
    /// The sum of every row and column.
    sum: u64,
    /// What the demand still needs, by row and by column.
    rest: [Vec<u64>; 2],
    /// The matching, by row and by column; all its cells are at least `threshold`.
    column: Vec<u32>,
    row: Vec<u32>,
    threshold: u64,
    /// What the last cut took out of the matching.
    lost: Vec<(u32, u32)>,
    /// Search state for thresholds that are powers of two.
    wide: Option<Wide>,
}

/// Lists by row, one behind the other.
struct RowLists<T> {
    /// Where each begins; last the number of all.
    starts: Vec<u32>,
    list: Vec<T>,
}

impl<T> RowLists<T> {
    /// Of entries in the order of their rows.
    fn new(n: usize, entries: impl Iterator<Item = (u32, T)>) -> Self {
        let (mut starts, mut list) =
            (Vec::with_capacity(n + 1), Vec::with_capacity(entries.size_hint().0));
        entries.for_each(|(i, x)| {
            starts.resize((i as usize + 1).max(starts.len()), list.len() as u32);
            list.push(x);
        });
        starts.resize(n + 1, list.len() as u32);
        Self { starts, list }
    }

    fn row(&self, i: usize) -> &[T] {
        &self.list[self.starts[i] as usize..self.starts[i + 1] as usize]
    }
}

/// The columns that a search has reached and not yet left: those as wide as counts, then the others
/// by width.
struct ColumnSearch {
    width: Vec<u64>,
    from: Vec<u32>,
    wide: Vec<u32>,
    narrow: BinaryHeap<(u64, Reverse<u32>)>,
}

impl ColumnSearch {
    fn next(&mut self) -> Option<u32> {
        if let Some(j) = self.wide.pop() {
            return Some(j);
        }
        loop {
            let (w, Reverse(j)) = self.narrow.pop()?;
            if w == self.width[j as usize] {
                return Some(j);
            }
        }
    }
}

/// Of a search that found no path: the widest cell from a row that it reached to a column that it
/// did not. With a threshold above that it would reach the same rows. O(R) for each of them.
fn widest_way_on(s: &Stuffed, wide: &Wide) -> u64 {
    wide.reached()
        .iter()
        .map(|&i| wide.largest_beyond(&s.cells[i as usize * s.n..(i as usize + 1) * s.n]))
        .max()
        .unwrap_or(0)
}

/// Light by cell, its sums by row and column, and the most of a cell.
type Light = (Vec<u64>, [Vec<u64>; 2], u64);

/// What a demand needs, where most cells have some, and a byte takes a whole number of nanoseconds;
/// `None` elsewhere, where [`Lit`] is as fast.
fn many_cells(demand: &DemandMatrix, rate: BitRate) -> Option<Light> {
    /// As many rows are looked at to find out.
    const ROWS: usize = 8;
    let n = demand.racks();
    let by = Lit::whole(rate).filter(|_| n >= ROWS)?;
    let some = demand.cells().chunks_exact(n).step_by(n / ROWS).take(ROWS);
    let with_light = some.flatten().filter(|&&c| c > 0).count();
    if DENSE * with_light < n * ROWS
        || u128::from(at_most(demand)) * u128::from(by) > u128::from(Lit::most(n))
    {
        return None;
    }
    let (mut cells, mut rows, mut columns, mut most) = (vec![0; n * n], vec![0; n], vec![0; n], 0);
    for ((row, light), sum) in
        demand.cells().chunks_exact(n).zip(cells.chunks_exact_mut(n)).zip(&mut rows)
    {
        let of_row = shine(row, by, light, &mut columns);
        (*sum, most) = (of_row.0, of_row.1.max(most));
    }
    Some((cells, [rows, columns], most))
}

/// Writes a row's light and adds it to the columns' sums; its sum, and its largest cell.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn shine(row: &[u64], by: u64, light: &mut [u64], columns: &mut [u64]) -> (u64, u64) {
    let (light, columns, mut sum, mut most) =
        (&mut light[..row.len()], &mut columns[..row.len()], 0, 0);
    for k in 0..row.len() {
        let x = row[k] * by;
        light[k] = x;
        columns[k] += x;
        sum += x;
        most = x.max(most);
    }
    (sum, most)
}

/// No perfect matching has a cell above this: the smallest of all rows' and columns' largest cells.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn bottleneck_at_most(cells: &[u64], n: usize) -> u64 {
    let (mut columns, mut least) = (vec![0; n], u64::MAX);
    for row in cells.chunks_exact(n.max(1)) {
        let mut most = 0;
        for (column, &x) in columns.iter_mut().zip(row) {
            *column = x.max(*column);
            most = x.max(most);
        }
        least = least.min(most);
    }
    columns.into_iter().fold(least, u64::min)
}

impl Stuffed {
    /// Solstice's QuickStuff: raises every row and column to `sum`, at least the busiest, which it
    /// is if left out; first in cells that have light anyway, then anywhere. O(R^2) for the room,
    /// O(E + R log R) beside for E cells with light.
    pub(super) fn of(lit: &Lit, sum: Option<u64>) -> Self {
        let n = lit.racks();
        let (mut cells, mut rest) = (vec![0; n * n], [vec![0; n], vec![0; n]]);
        for (i, row) in cells.chunks_exact_mut(n.max(1)).enumerate() {
            for (j, x) in lit.row(i) {
                row[j as usize] = x;
                rest[0][i] += x;
                rest[1][j as usize] += x;
            }
        }
        let threshold = lit.light.iter().copied().max().unwrap_or(0);
        let dense = DENSE * (lit.light.len() + n) >= n * n;
        Self::stuff(cells, rest, threshold, sum, dense, |i, _| lit.columns(i).iter().copied())
    }

    /// [`Self::of`] what a demand needs, to the busiest sum. O(R^2), several cells at a time where
    /// most cells have demand.
    pub(super) fn of_demand(demand: &DemandMatrix, rate: BitRate) -> Self {
        let Some((cells, rest, threshold)) = many_cells(demand, rate) else {
            return Self::of(&Lit::of(demand, rate), None);
        };
        let n = demand.racks() as u32;
        Self::stuff(cells, rest, threshold, None, true, |_, first| first..n)
    }

    /// `cells` have the light, `rest` its sums by row and column, and `threshold` is the most of a
    /// cell. `columns` gives those of a row that may have light, at least from a column on.
    fn stuff<C: Iterator<Item = u32>>(
        mut cells: Vec<u64>,
        rest: [Vec<u64>; 2],
        mut threshold: u64,
        sum: Option<u64>,
        dense: bool,
        columns: impl Fn(usize, u32) -> C,
    ) -> Self {
        let n = rest[0].len();
        let sum = sum.unwrap_or_else(|| rest.iter().flatten().copied().max().unwrap_or(0));
        // What columns lack. All before the first one lack nothing.
        let mut lack: Vec<u64> = rest[1].iter().map(|x| sum - x).collect();
        let mut first = 0;
        let mut extra = Vec::new();
        let mut rows = Vec::with_capacity(n);
        for (i, row) in cells.chunks_exact_mut(n.max(1)).enumerate() {
            let mut left = sum - rest[0][i];
            while lack.get(first).is_some_and(|&l| l == 0) {
                first += 1;
            }
            for j in columns(i, first as u32) {
                if left == 0 {
                    break;
                }
                let (cell, column) = (&mut row[j as usize], &mut lack[j as usize]);
                let more = if *cell > 0 { left.min(*column) } else { 0 };
                if more > 0 {
                    *cell += more;
                    left -= more;
                    *column -= more;
                    extra.push((i as u32, (j, more)));
                    threshold = threshold.max(*cell);
                }
            }
            rows.push(left);
        }
        // Where a row and a column still lack light, their cell has none: the first column that
        // lacks some takes what the first row lacks.
        let mut j = 0;
        for (i, mut left) in rows.into_iter().enumerate() {
            while left > 0 {
                let more = left.min(lack[j]);
                if more > 0 {
                    left -= more;
                    lack[j] -= more;
                    cells[i * n + j] = more;
                    extra.push((i as u32, (j as u32, more)));
                    threshold = threshold.max(more);
                }
                j += usize::from(lack[j] == 0);
            }
        }
        extra.sort_unstable();
        let extra = RowLists::new(n, extra.into_iter());
        let (column, row) = (vec![NONE; n], vec![NONE; n]);
        Self {
            n,
            cells,
            filled: None,
            dense,
            extra,
            sum,
            rest,
            column,
            row,
            threshold,
            lost: Vec::new(),
            wide: None,
        }
    }

    /// Finds out which cells have light, before the first cut.
    fn find_filled(&mut self) {
        if self.filled.is_none() {
            let (mut starts, mut list, mut light) =
                (Vec::with_capacity(self.n + 1), Vec::new(), Vec::new());
            for row in self.cells.chunks_exact(self.n.max(1)) {
                starts.push(list.len() as u32);
                gather(row, &mut list, &mut light);
            }
            starts.push(list.len() as u32);
            self.filled = Some(RowLists { starts, list });
        }
    }

    /// Tells a search which cells count at the present threshold.
    fn fill(&mut self, wide: &mut Wide) {
        if !self.dense {
            self.find_filled();
        }
        for i in 0..self.n {
            let row = &self.cells[i * self.n..(i + 1) * self.n];
            match &self.filled {
                Some(filled) if !self.dense => wide
                    .fill(i, filled.row(i).iter().map(|&j| (j, row[j as usize] >= self.threshold))),
                _ => wide.fill_all(i, row, self.threshold),
            }
        }
    }

    /// Cuts along the perfect matching whose smallest cell is largest: that much of light, and the
    /// circuits among it that some demand still needed. `None` when nothing is left. O(R^2) for
    /// every circuit that has to be replaced.
    ///
    /// Cells only shrink, so the thresholds never rise: what is left of the last matching above the
    /// threshold is a good beginning. A row without a column searches the widest augmenting path;
    /// if that is narrower than the threshold, Hall's condition fails above its width, and the
    /// threshold comes down.
    pub(super) fn cut(&mut self) -> Option<(Matching, u64)> {
        if self.sum == 0 {
            return None;
        }
        self.find_filled();
        for i in 0..self.n {
            if self.column[i] == NONE {
                let width = self.place(i as u32);
                if width < self.threshold {
                    self.threshold = width;
                }
            }
        }
        Some((self.take(self.threshold), self.threshold))
    }

    /// [`Self::cut`] with thresholds that are powers of two, as in Solstice's BigSlice. It cuts
    /// along a perfect matching whose cells are all at least the largest power of two for which
    /// there is one, for as long as all of them last. O(R) for a circuit that has to be replaced,
    /// as a rule; O(R^2 / 64) at worst, and O(R^2) whenever the threshold comes down.
    pub(super) fn cut_power(&mut self) -> Option<(Matching, u64)> {
        if self.sum == 0 {
            return None;
        }
        let mut wide = self.wide.take().unwrap_or_else(|| {
            // The largest cell of all would be a valid beginning, too. But each threshold without a
            // perfect matching costs as much as this.
            self.threshold = 1 << bottleneck_at_most(&self.cells, self.n).ilog2();
            let mut wide = Wide::new(self.n);
            self.fill(&mut wide);
            wide
        });
        for i in 0..self.n as u32 {
            while self.column[i as usize] == NONE && !wide.place(i, &mut self.column, &mut self.row)
            {
                // Hall's condition fails at this threshold, and at all above the widest way on; at
                // 1 it holds (Birkhoff).
                let way = widest_way_on(self, &wide);
                debug_assert!(way > 0 && way < self.threshold, "a way on: {way}");
                self.threshold = 1 << way.ilog2();
                self.fill(&mut wide);
            }
        }
        let time = self.thinnest();
        let m = self.take(time);
        for &(i, j) in &self.lost {
            wide.lose(i, j, self.cells[i as usize * self.n + j as usize] >= self.threshold);
        }
        self.wide = Some(wide);
        Some((m, time))
    }

    /// Cuts along any perfect matching, for as long as all its cells last: Birkhoff's own step.
    /// `None` when nothing is left.
    pub(super) fn cut_any(&mut self) -> Option<(Matching, u64)> {
        if self.sum == 0 {
            return None;
        }
        self.find_filled();
        self.threshold = 1;
        for i in 0..self.n {
            if self.column[i] == NONE {
                self.place(i as u32);
            }
        }
        Some(self.cut_whole())
    }

    /// Cuts along a given perfect matching (by row) of cells with light, for as long as all of them
    /// last.
    pub(super) fn cut_along(&mut self, column: Vec<u32>) -> (Matching, u64) {
        column.iter().enumerate().for_each(|(i, &j)| self.row[j as usize] = i as u32);
        self.column = column;
        self.threshold = 1;
        self.cut_whole()
    }

    fn cut_whole(&mut self) -> (Matching, u64) {
        let time = self.thinnest();
        (self.take(time), time)
    }

    /// The smallest cell of the matching, which is perfect.
    fn thinnest(&self) -> u64 {
        (0..self.n).map(|i| self.cells[i * self.n + self.column[i] as usize]).min().unwrap_or(0)
    }

    /// Light by cell, row-major: what is left to cut.
    pub(super) fn cells(&self) -> &[u64] {
        &self.cells
    }

    /// Takes `time` off the matching's cells; those with less than the threshold left are no longer
    /// matched.
    fn take(&mut self, time: u64) -> Matching {
        steps::count(1);
        let mut m = Matching::empty(self.n);
        self.lost.clear();
        for i in 0..self.n {
            let j = self.column[i];
            let cell = &mut self.cells[i * self.n + j as usize];
            let extra = self.extra.row(i).iter().find(|e| e.0 == j).map_or(0, |e| e.1);
            let needed = cell.saturating_sub(extra);
            *cell -= time;
            if *cell < self.threshold {
                self.column[i] = NONE;
                self.row[j as usize] = NONE;
                self.lost.push((i as u32, j));
            }
            if needed > 0 {
                let served = needed.min(time);
                self.rest[0][i] -= served;
                self.rest[1][j as usize] -= served;
                m.out[i] = Some(RackId(j));
            }
        }
        self.sum -= time;
        m
    }

    /// Gives row `f` a column along the widest augmenting path (wider than the threshold counts no
    /// more), and says how wide.
    fn place(&mut self, f: u32) -> u64 {
        let mut s = ColumnSearch {
            width: vec![0; self.n],
            from: vec![NONE; self.n],
            wide: Vec::new(),
            narrow: BinaryHeap::new(),
        };
        let (mut i, mut reach) = (f, self.threshold);
        let end = loop {
            if let Some(j) = self.reach_from(i, reach, &mut s) {
                break j;
            }
            let j = s.next().expect("equal sums promise a perfect matching (Birkhoff)");
            if self.row[j as usize] == NONE {
                break j;
            }
            (i, reach) = (self.row[j as usize], s.width[j as usize]);
        };
        let mut j = end;
        loop {
            let i = s.from[j as usize];
            self.row[j as usize] = i;
            j = std::mem::replace(&mut self.column[i as usize], j);
            if i == f {
                return s.width[end as usize];
            }
        }
    }

    /// Widens the ways to row `i`'s columns; ends early at a free column that is as wide as counts.
    fn reach_from(&self, i: u32, reach: u64, s: &mut ColumnSearch) -> Option<u32> {
        steps::count(1);
        let Some(filled) = &self.filled else { return None };
        for &j in filled.row(i as usize) {
            let k = j as usize;
            let w = self.cells[i as usize * self.n + k].min(reach);
            if w > s.width[k] {
                (s.width[k], s.from[k]) = (w, i);
                if w < self.threshold {
                    s.narrow.push((w, Reverse(j)));
                } else if self.row[k] == NONE {
                    return Some(j);
                } else {
                    s.wide.push(j);
                }
            }
        }
        None
    }

    /// The light that the demand's busiest port still needs. O(R).
    pub(super) fn busiest_rest(&self) -> u64 {
        self.rest.iter().flatten().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
