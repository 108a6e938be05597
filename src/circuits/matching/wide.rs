//! Augmenting paths among cells that either count or do not: as bits, sixty-four columns at a time.

use super::simd;
use crate::steps;

/// No row or column.
const NONE: u32 = u32::MAX;

/// The cells that count, and searches among them.
pub(crate) struct Wide {
    words: usize,
    /// By row: a bit a column.
    cells: Vec<u64>,
    /// The columns without a row.
    free: Vec<u64>,
    /// Of a search: the columns not reached yet, the row before each that is, and the rows to be
    /// looked at.
    open: Vec<u64>,
    from: Vec<u32>,
    queue: Vec<u32>,
}

impl Wide {
    /// No cell counts, and all of `n` columns are free.
    pub(crate) fn new(n: usize) -> Self {
        let words = n.div_ceil(64);
        let mut free = vec![u64::MAX; words];
        if !n.is_multiple_of(64) {
            free[words - 1] = (1 << (n % 64)) - 1;
        }
        Self {
            words,
            cells: vec![0; words * n],
            free,
            open: vec![0; words],
            from: vec![NONE; n],
            queue: Vec::new(),
        }
    }

    /// All cells of row `i` that are at least `threshold` count from now on. O(R), several cells at
    /// a time.
    pub(crate) fn fill_all(&mut self, i: usize, row: &[u64], threshold: u64) {
        steps::count(1);
        let bits = &mut self.cells[i * self.words..(i + 1) * self.words];
        simd::at_least(simd::SimdLevel::for_rows_of(row.len()), row, threshold, bits);
    }

    /// Which of these columns of row `i` count from now on; no others do.
    pub(crate) fn fill(&mut self, i: usize, columns: impl Iterator<Item = (u32, bool)>) {
        steps::count(1);
        let bits = &mut self.cells[i * self.words..(i + 1) * self.words];
        bits.fill(0);
        columns.for_each(|(j, counts)| bits[j as usize / 64] |= u64::from(counts) << (j % 64));
    }

    /// Column `j` has lost its row `i`; `still` says whether their cell counts on.
    pub(crate) fn lose(&mut self, i: u32, j: u32, still: bool) {
        let (word, bit) = (j as usize / 64, 1 << (j % 64));
        self.free[word] |= bit;
        if !still {
            self.cells[i as usize * self.words + word] &= !bit;
        }
    }

    /// Column `j` has a row.
    pub(crate) fn take(&mut self, j: u32) {
        self.free[j as usize / 64] &= !(1 << (j % 64));
    }

    /// Rows that the last search reached, if it found no path.
    pub(crate) fn reached(&self) -> &[u32] {
        &self.queue
    }

    /// The largest of a row's cells in columns that that search did not reach. O(R).
    pub(crate) fn largest_beyond(&self, row: &[u64]) -> u64 {
        steps::count(1);
        simd::largest_of(simd::SimdLevel::for_rows_of(row.len()), row, &self.open)
    }

    /// Gives row `f` a column along an augmenting path, breadth first; says whether there is one.
    pub(crate) fn place(&mut self, f: u32, column: &mut [u32], row: &mut [u32]) -> bool {
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
