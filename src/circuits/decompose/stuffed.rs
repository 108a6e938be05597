//! A square matrix whose rows and columns all have one sum, and the perfect matchings on it that Birkhoff promises.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::circuits::Matching;
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
    /// How thresholds are rounded down.
    round: fn(u64) -> u64,
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

impl Stuffed {
    /// Solstice's QuickStuff: raises every row and column to `sum` (at least the busiest), first in cells that have light
    /// anyway, then anywhere. O(R^2). `round` says at which thresholds it is to be cut.
    pub(super) fn of(light: &DemandMatrix, sum: u64, round: fn(u64) -> u64) -> Self {
        let n = light.racks();
        let mut cells = light.cells().to_vec();
        let (mut rows, mut columns) = (vec![sum; n], vec![sum; n]);
        for (k, &x) in cells.iter().enumerate() {
            rows[k / n] -= x;
            columns[k % n] -= x;
        }
        let used = |left: &[u64]| left.iter().map(|x| sum - x).collect();
        let rest = [used(&rows), used(&columns)];
        for empty in [false, true] {
            for (k, c) in cells.iter_mut().enumerate().filter(|c| (*c.1 == 0) == empty) {
                let more = rows[k / n].min(columns[k % n]);
                *c += more;
                rows[k / n] -= more;
                columns[k % n] -= more;
            }
        }
        let full = |row: &[u64]| row.iter().enumerate().filter(|c| *c.1 > 0).map(|c| c.0 as u32).collect();
        let filled = cells.chunks_exact(n.max(1)).map(full).collect();
        let threshold = round(cells.iter().copied().max().unwrap_or(0));
        Self { n, cells, filled, sum, real: light.clone(), rest, column: vec![NONE; n], row: vec![NONE; n], threshold, round }
    }

    /// Cuts along the perfect matching whose smallest cell, rounded down, is largest: that much of light, and the circuits among
    /// it that some demand still needed. `None` when nothing is left. O(R^2) for every circuit that has to be replaced.
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
                    self.threshold = (self.round)(width);
                }
            }
        }
        Some((self.take(self.threshold), self.threshold))
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
        self.cut_whole()
    }

    fn cut_whole(&mut self) -> (Matching, u64) {
        let time = (0..self.n).map(|i| self.cells[i * self.n + self.column[i] as usize]).min().unwrap_or(0);
        let m = self.take(time);
        for i in 0..self.n {
            let j = self.column[i];
            if j != NONE && self.cells[i * self.n + j as usize] == 0 {
                (self.column[i], self.row[j as usize]) = (NONE, NONE);
            }
        }
        (m, time)
    }

    /// Light by cell, row-major: what is left to cut.
    pub(super) fn cells(&self) -> &[u64] {
        &self.cells
    }

    /// Takes `time` off the matching's cells; those with less than `time` left are no longer matched.
    fn take(&mut self, time: u64) -> Matching {
        let mut m = Matching::empty(self.n);
        for i in 0..self.n {
            let j = self.column[i];
            let cell = &mut self.cells[i * self.n + j as usize];
            *cell -= time;
            if *cell < time {
                self.column[i] = NONE;
                self.row[j as usize] = NONE;
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
            for round in [(|x| x) as fn(u64) -> u64, |x| if x == 0 { 0 } else { 1 << x.ilog2() }] {
                let mut s = Stuffed::of(&light, super::super::busiest(&light) + more, round);
                for k in 0..r {
                    prop_assert_eq!(s.cells[k * r..(k + 1) * r].iter().sum::<u64>(), s.sum);
                    prop_assert_eq!((0..r).map(|i| s.cells[i * r + k]).sum::<u64>(), s.sum);
                }
                loop {
                    let best = brute(&s, 0, 0);
                    let Some((_, time)) = s.cut() else { break };
                    prop_assert_eq!(time, round(best));
                }
                prop_assert!(s.cells.iter().all(|&c| c == 0) && s.busiest_rest() == 0 && s.real.total() == 0);
            }
        }
    }
}
