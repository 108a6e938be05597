//! A square matrix whose rows and columns all have one sum, and the perfect matchings on it that Birkhoff promises.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::circuits::{Matching, steps};
use crate::demand::DemandMatrix;
use crate::ids::RackId;

/// No row or column.
const NONE: u32 = u32::MAX;

/// Light by cell, the diagonal included: what stuffing puts there is sent nowhere. It is cut along one perfect matching after
/// the other, each of which begins from what is left of the one before.
pub(super) struct Stuffed {
    n: usize,
    cells: Vec<u64>,
    /// By row: the columns that had light at first.
    filled: Vec<Vec<u32>>,
    /// The sum of every row and column.
    sum: u64,
    /// What the demand still needs.
    real: DemandMatrix,
    /// Its sums by row and by column.
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

/// The columns that a search has reached and not yet left: those as wide as counts, then the others by width.
struct Search {
    width: Vec<u64>,
    from: Vec<u32>,
    wide: Vec<u32>,
    narrow: BinaryHeap<(u64, Reverse<u32>)>,
}

impl Search {
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

/// The cells of at least the threshold, as bits, and searches among them that look at sixty-four columns at a time.
struct Wide {
    words: usize,
    /// By row: a bit a column.
    cells: Vec<u64>,
    /// The columns without a row.
    free: Vec<u64>,
    /// Of a search: the columns not reached yet, the row before each that is, and the rows to be looked at.
    open: Vec<u64>,
    from: Vec<u32>,
    queue: Vec<u32>,
}

impl Wide {
    fn new(s: &Stuffed) -> Self {
        let words = s.n.div_ceil(64);
        let mut free = vec![u64::MAX; words];
        if !s.n.is_multiple_of(64) {
            free[words - 1] = (1 << (s.n % 64)) - 1;
        }
        let mut w = Self { words, cells: vec![0; words * s.n], free, open: vec![0; words], from: vec![NONE; s.n], queue: Vec::new() };
        w.fill(s);
        w
    }

    /// Reads the cells anew, at a new threshold.
    fn fill(&mut self, s: &Stuffed) {
        steps::count(s.n);
        for (i, filled) in s.filled.iter().enumerate() {
            let (row, bits) = (&s.cells[i * s.n..(i + 1) * s.n], &mut self.cells[i * self.words..(i + 1) * self.words]);
            bits.fill(0);
            for &j in filled.iter().filter(|&&j| row[j as usize] >= s.threshold) {
                bits[j as usize / 64] |= 1 << (j % 64);
            }
        }
    }

    /// Column `j` has lost its row `i`; `still` says whether their cell counts on.
    fn lose(&mut self, i: u32, j: u32, still: bool) {
        let (word, bit) = (j as usize / 64, 1 << (j % 64));
        self.free[word] |= bit;
        if !still {
            self.cells[i as usize * self.words + word] &= !bit;
        }
    }

    /// Gives row `f` a column along an augmenting path, breadth first; says whether there is one.
    fn place(&mut self, f: u32, column: &mut [u32], row: &mut [u32]) -> bool {
        self.open.fill(u64::MAX);
        self.queue.clear();
        self.queue.push(f);
        let mut k = 0;
        while k < self.queue.len() {
            steps::count(1);
            let i = self.queue[k];
            k += 1;
            let bits = &self.cells[i as usize * self.words..(i as usize + 1) * self.words];
            if let Some(w) = (0..self.words).find(|&w| bits[w] & self.free[w] != 0) {
                let mut j = (w * 64) as u32 + (bits[w] & self.free[w]).trailing_zeros();
                self.free[w] &= !(1 << (j % 64));
                let mut i = i;
                loop {
                    row[j as usize] = i;
                    let before = std::mem::replace(&mut column[i as usize], j);
                    if i == f {
                        return true;
                    }
                    j = before;
                    i = self.from[j as usize];
                }
            }
            for (w, (bits, open)) in bits.iter().zip(&mut self.open).enumerate() {
                let mut new = bits & *open;
                *open &= !new;
                while new != 0 {
                    let j = w * 64 + new.trailing_zeros() as usize;
                    new &= new - 1;
                    self.from[j] = i;
                    self.queue.push(row[j]);
                }
            }
        }
        false
    }
}

impl Stuffed {
    /// Solstice's QuickStuff: raises every row and column to `sum` (at least the busiest), first in cells that have light
    /// anyway, then anywhere. O(R^2).
    pub(super) fn of(light: &DemandMatrix, sum: u64) -> Self {
        let n = light.racks();
        let mut cells = light.cells().to_vec();
        let (mut rows, mut columns) = (vec![sum; n], vec![sum; n]);
        for (row, left) in cells.chunks_exact(n.max(1)).zip(&mut rows) {
            for (x, column) in row.iter().zip(&mut columns) {
                *left -= x;
                *column -= x;
            }
        }
        let used = |left: &[u64]| left.iter().map(|x| sum - x).collect();
        let rest = [used(&rows), used(&columns)];
        for empty in [false, true] {
            for (row, left) in cells.chunks_exact_mut(n.max(1)).zip(&mut rows) {
                for (c, column) in row.iter_mut().zip(&mut columns).filter(|(c, _)| (**c == 0) == empty) {
                    if *left == 0 {
                        break;
                    }
                    let more = (*left).min(*column);
                    *c += more;
                    *left -= more;
                    *column -= more;
                }
            }
        }
        let full = |row: &[u64]| row.iter().enumerate().filter(|c| *c.1 > 0).map(|c| c.0 as u32).collect();
        let filled = cells.chunks_exact(n.max(1)).map(full).collect();
        let threshold = cells.iter().copied().max().unwrap_or(0);
        let (column, row) = (vec![NONE; n], vec![NONE; n]);
        Self { n, cells, filled, sum, real: light.clone(), rest, column, row, threshold, lost: Vec::new(), wide: None }
    }

    /// Cuts along the perfect matching whose smallest cell is largest: that much of light, and the circuits among it that some
    /// demand still needed. `None` when nothing is left. O(R^2) for every circuit that has to be replaced.
    ///
    /// Cells only shrink, so the thresholds never rise: what is left of the last matching above the threshold is a good
    /// beginning. A row without a column searches the widest augmenting path; if that is narrower than the threshold, Hall's
    /// condition fails above its width, and the threshold comes down.
    pub(super) fn cut(&mut self) -> Option<(Matching, u64)> {
        if self.sum == 0 {
            return None;
        }
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

    /// [`Self::cut`] with thresholds that are powers of two, as in Solstice's BigSlice: along a perfect matching whose cells are all at
    /// least the largest power of two for which there is one, for as long as all of them last. O(R) for a circuit that has to
    /// be replaced, as a rule; O(R^2 / 64) at worst, and O(R^2) whenever the threshold comes down.
    pub(super) fn cut_power(&mut self) -> Option<(Matching, u64)> {
        if self.sum == 0 {
            return None;
        }
        let mut wide = self.wide.take().unwrap_or_else(|| {
            self.threshold = 1 << self.threshold.ilog2();
            Wide::new(self)
        });
        for i in 0..self.n as u32 {
            while self.column[i as usize] == NONE && !wide.place(i, &mut self.column, &mut self.row) {
                // Hall's condition fails at this threshold; at 1 it holds (Birkhoff).
                self.threshold >>= 1;
                wide.fill(self);
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

    /// Cuts along any perfect matching, for as long as all its cells last: Birkhoff's own step. `None` when nothing is left.
    pub(super) fn cut_any(&mut self) -> Option<(Matching, u64)> {
        if self.sum == 0 {
            return None;
        }
        self.threshold = 1;
        for i in 0..self.n {
            if self.column[i] == NONE {
                self.place(i as u32);
            }
        }
        Some(self.cut_whole())
    }

    /// Cuts along a given perfect matching (by row) of cells with light, for as long as all of them last.
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

    /// Takes `time` off the matching's cells; those with less than the threshold left are no longer matched.
    fn take(&mut self, time: u64) -> Matching {
        steps::count(1);
        let mut m = Matching::empty(self.n);
        self.lost.clear();
        for i in 0..self.n {
            let j = self.column[i];
            let cell = &mut self.cells[i * self.n + j as usize];
            *cell -= time;
            if *cell < self.threshold {
                self.column[i] = NONE;
                self.row[j as usize] = NONE;
                self.lost.push((i as u32, j));
            }
            let needed = self.real.get(RackId::from(i), RackId(j));
            if needed > 0 {
                let served = needed.min(time);
                self.real.set(RackId::from(i), RackId(j), needed - served);
                self.rest[0][i] -= served;
                self.rest[1][j as usize] -= served;
                m.out[i] = Some(RackId(j));
            }
        }
        self.sum -= time;
        m
    }

    /// Gives row `f` a column along the widest augmenting path (wider than the threshold counts no more), and says how wide.
    fn place(&mut self, f: u32) -> u64 {
        let mut s = Search { width: vec![0; self.n], from: vec![NONE; self.n], wide: Vec::new(), narrow: BinaryHeap::new() };
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
    fn reach_from(&self, i: u32, reach: u64, s: &mut Search) -> Option<u32> {
        steps::count(1);
        for &j in &self.filled[i as usize] {
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The largest smallest cell of a perfect matching, by trying all.
    fn brute(s: &Stuffed, i: usize, taken: u32) -> u64 {
        if i == s.n {
            return u64::MAX;
        }
        let free = (0..s.n).filter(|&j| taken & (1 << j) == 0);
        free.map(|j| s.cells[i * s.n + j].min(brute(s, i + 1, taken | 1 << j))).max().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn every_cut_is_the_bottleneck(r in 1usize..6, v in prop::collection::vec(prop_oneof![Just(0u64), 0..40u64], 25), more in 0u64..9) {
            let light = DemandMatrix::zero(r).map_pairs(|i, j, _| v[i.index() * 5 + j.index()]);
            for power in [false, true] {
                let mut s = Stuffed::of(&light, super::super::busiest(&light) + more);
                for k in 0..r {
                    prop_assert_eq!(s.cells[k * r..(k + 1) * r].iter().sum::<u64>(), s.sum);
                    prop_assert_eq!((0..r).map(|i| s.cells[i * r + k]).sum::<u64>(), s.sum);
                }
                loop {
                    let best = brute(&s, 0, 0);
                    let Some((_, time)) = (if power { s.cut_power() } else { s.cut() }) else { break };
                    // By powers of two: at least the largest one for which there is a matching.
                    let least = if power { 1 << best.ilog2() } else { best };
                    prop_assert!(least <= time && time <= best, "{time} is not in {least}..={best}");
                }
                prop_assert!(s.cells.iter().all(|&c| c == 0) && s.busiest_rest() == 0 && s.real.total() == 0);
            }
        }
    }
}
