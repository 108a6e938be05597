//! Traffic demand between racks: the [`DemandMatrix`] and the estimators that fill it.
//!
//! | estimator | reads | after |
//! |---|---|---|
//! | [`counters`] | the ToRs' byte counters, aged | the simplest |
//! | backlog | bytes that wait at the senders | c-Through (SIGCOMM 2010) |
//! | [`hedera`] | which large flows hosts have; what they would send were only the hosts' links the limit | Hedera (NSDI 2010), Helios |
//! | [`hedera::between_racks`] | the same by busy pairs of racks, from the ToRs' counters | ours |
//! | [`declared`] | what the posted coflows still have to send | Varys (SIGCOMM 2014) |
//! | combined | the larger of declared and backlog, cell by cell | |
//!
//! [`EstimatorState`] is the one front before them; [`elephants`] filters what they find.

use std::collections::{BTreeMap, btree_map};
use std::sync::Arc;

use cells::Cells;
pub use cells::MOST_SIDE_BY_SIDE;
use multiversion::multiversion;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::ids::RackId;

mod cells;
pub mod counters;
pub mod declared;
pub mod elephants;
mod estimator;
pub mod hedera;
pub mod natural;

pub use estimator::{Estimator, EstimatorState, Inputs};
pub use hedera::HostFlow;

/// An `R x R` matrix of bytes, row = source rack, column = destination rack. The diagonal is always
/// zero: a rack's own traffic never reaches a ToR's uplinks. A copy shares the cells until one of
/// the two changes, so it costs nothing. Of more than 1,024 racks only the cells that are not zero
/// are kept, as long as they are few and nothing asks for all of them side by side.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct DemandMatrix {
    racks: usize,
    cells: Cells,
}

impl DemandMatrix {
    /// No demand between `racks` racks.
    pub fn zero(racks: usize) -> Self {
        Self { racks, cells: Cells::zero(racks) }
    }

    /// A matrix of these rows; the diagonal is dropped.
    ///
    /// # Panics
    /// If the rows do not form a square.
    pub fn from_rows(rows: &[&[u64]]) -> Self {
        let mut m = Self::zero(rows.len());
        for (i, row) in rows.iter().enumerate() {
            assert_eq!(row.len(), rows.len(), "a demand matrix is square");
            for (j, &v) in row.iter().enumerate() {
                m.set(RackId::from(i), RackId::from(j), v);
            }
        }
        m
    }

    /// A matrix of these cells, row by row; the diagonal is dropped.
    ///
    /// # Panics
    /// If there are not `racks * racks` of them.
    pub fn from_cells(racks: usize, mut cells: Vec<u64>) -> Self {
        assert_eq!(cells.len(), racks * racks, "a demand matrix is square");
        cells.iter_mut().step_by(racks + 1).for_each(|c| *c = 0);
        Self { racks, cells: Cells::All(Arc::new(cells)) }
    }

    /// No demand any more. O(R^2).
    pub fn clear(&mut self) {
        if !self.is_zero() {
            *self = Self::zero(self.racks);
        }
    }

    /// Whether there is no demand. O(R^2) if there is none or little, several cells at a time.
    pub fn is_zero(&self) -> bool {
        self.cells
            .few()
            .map_or_else(|| self.cells.all().chunks(LINE).all(is_empty), BTreeMap::is_empty)
    }

    /// Number of racks, R.
    pub fn racks(&self) -> usize {
        self.racks
    }

    fn place(&self, from: RackId, to: RackId) -> usize {
        debug_assert!(from.index() < self.racks && to.index() < self.racks, "racks of the matrix");
        from.index() * self.racks + to.index()
    }

    /// Bytes from `from` to `to`.
    pub fn get(&self, from: RackId, to: RackId) -> u64 {
        self.cells.get(self.place(from, to))
    }

    /// Sets a cell; the diagonal stays zero.
    pub fn set(&mut self, from: RackId, to: RackId, bytes: u64) {
        self.set_all([(from, to, bytes)]);
    }

    /// Sets cells; the diagonal stays zero.
    pub fn set_all(&mut self, entries: impl IntoIterator<Item = (RackId, RackId, u64)>) {
        let racks = self.racks;
        let apart = entries.into_iter().filter(|e| e.0 != e.1);
        self.cells.set(apart.map(|(from, to, bytes)| (from.index() * racks + to.index(), bytes)));
    }

    /// Sets cells by their places, row by row, none of them on the diagonal.
    pub fn set_cells(&mut self, entries: impl IntoIterator<Item = (usize, u64)>) {
        let racks = self.racks;
        self.cells.set(
            entries
                .into_iter()
                .inspect(|e| debug_assert_ne!(e.0 % (racks + 1), 0, "the diagonal stays zero")),
        );
    }

    /// Adds to a cell, stopping at `u64::MAX`; the diagonal stays zero.
    pub fn add(&mut self, from: RackId, to: RackId, bytes: u64) {
        let v = self.get(from, to).saturating_add(bytes);
        self.set(from, to, v);
    }

    /// Row-major cells, `R * R` of them. Of many racks all of them are kept from now on, until one
    /// changes.
    pub fn cells(&self) -> &[u64] {
        self.cells.all()
    }

    /// How many cells it has: `R * R`, but for one that was read.
    pub fn cell_count(&self) -> usize {
        self.cells.count()
    }

    /// One row, `R` cells: what `from` sends.
    pub fn row(&self, from: RackId) -> &[u64] {
        &self.cells()[from.index() * self.racks..(from.index() + 1) * self.racks]
    }

    /// The cells that are not zero, in row-major order. O(R^2), several cells at a time where there
    /// is nothing.
    pub fn entries(&self) -> impl Iterator<Item = (RackId, RackId, u64)> + '_ {
        let few = self.cells.few().map(BTreeMap::iter);
        let all = if few.is_some() { &[][..] } else { self.cells.all() };
        Entries { racks: self.racks, few, all, row: 0, next: 0, first: 0, some: 0 }
    }

    /// The sum of all cells, stopping at `u64::MAX`. O(R^2), several cells at a time.
    pub fn total(&self) -> u64 {
        // Sums of halves have no carry to look for: there are fewer than 2^32 cells.
        if let Some(few) = self.cells.few() {
            return few.values().fold(0, |sum, &c| sum.saturating_add(c));
        }
        let (low, high) = sums_of_halves(self.cells.all());
        u64::try_from(u128::from(low) + (u128::from(high) << 32)).unwrap_or(u64::MAX)
    }

    /// This matrix with every cell, the diagonal left out, passed through `f`. O(R^2).
    #[must_use]
    pub fn map(&self, mut f: impl FnMut(u64) -> u64) -> Self {
        self.map_pairs(|_, _, b| f(b))
    }

    /// This matrix with every cell, the diagonal left out, passed through `f(from, to, bytes)`.
    /// O(R^2).
    #[must_use]
    pub fn map_pairs(&self, mut f: impl FnMut(RackId, RackId, u64) -> u64) -> Self {
        let mut cells = Vec::with_capacity(self.cells.count());
        for (i, row) in self.cells().chunks_exact(self.racks.max(1)).enumerate() {
            let cell = |(j, &c): (usize, &u64)| {
                if i == j { 0 } else { f(RackId(i as u32), RackId(j as u32), c) }
            };
            cells.extend(row.iter().enumerate().map(cell));
        }
        Self { racks: self.racks, cells: Cells::All(Arc::new(cells)) }
    }

    /// Cell by cell `self - other`, nothing below zero: what cumulative counters gained.
    #[must_use]
    pub fn since(&self, other: &Self) -> Self {
        self.with(other, u64::saturating_sub)
    }

    /// Cell by cell `f(self, other)`, which must be zero where both are. O(R^2), several cells at a
    /// time where `f` allows it.
    ///
    /// # Panics
    /// If the matrices are of different sizes.
    #[must_use]
    pub fn with(&self, other: &Self, f: impl Fn(u64, u64) -> u64) -> Self {
        assert_eq!(self.racks, other.racks, "matrices of one network");
        debug_assert_eq!(f(0, 0), 0, "the diagonal stays zero");
        if self.cells.few().is_some() && other.cells.few().is_some() {
            let mut both = Self::zero(self.racks);
            let of_one = self.entries().map(|(i, j, a)| (i, j, f(a, other.get(i, j))));
            let of_other = other
                .entries()
                .filter(|&(i, j, _)| self.get(i, j) == 0)
                .map(|(i, j, b)| (i, j, f(0, b)));
            both.set_all(of_one.chain(of_other));
            return both;
        }
        let cells = self.cells().iter().zip(other.cells()).map(|(&a, &b)| f(a, b)).collect();
        Self { racks: self.racks, cells: Cells::All(Arc::new(cells)) }
    }
}

/// The sums of the lower and of the upper 32 bits of numbers, of which there are fewer than 2^32.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2"))]
fn sums_of_halves(numbers: &[u64]) -> (u64, u64) {
    let (mut low, mut high) = (0, 0);
    for c in numbers {
        low += c & 0xffff_ffff;
        high += c >> 32;
    }
    (low, high)
}

/// What goes over the cells that are not zero.
struct Entries<'a> {
    racks: usize,
    /// Of few cells these.
    few: Option<btree_map::Iter<'a, usize, u64>>,
    /// All cells from this row on.
    all: &'a [u64],
    row: usize,
    /// The first column that was not looked at.
    next: usize,
    /// The first column of the line that was looked at last, and its cells that are not zero, as
    /// bits.
    first: usize,
    some: u32,
}

impl Entries<'_> {
    /// Goes on to the next line with cells that are not zero, if there is one.
    #[inline]
    fn next_line(&mut self) -> Option<()> {
        loop {
            if self.next >= self.racks {
                self.all = self.all.get(self.racks..)?;
                (self.row, self.next) = (self.row + 1, 0);
            }
            let line = self
                .all
                .get(self.next..(self.next + LINE).min(self.racks))
                .filter(|line| !line.is_empty())?;
            (self.first, self.next) = (self.next, self.next + LINE);
            if !is_empty(line) {
                self.some = line.iter().rev().fold(0, |some, &c| some << 1 | u32::from(c > 0));
                return Some(());
            }
        }
    }
}

impl Iterator for Entries<'_> {
    type Item = (RackId, RackId, u64);

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(few) = &mut self.few {
            return few.next().map(|(at, &bytes)| {
                (RackId::from(at / self.racks), RackId::from(at % self.racks), bytes)
            });
        }
        if self.some == 0 {
            self.next_line()?;
        }
        let column = self.first + self.some.trailing_zeros() as usize;
        self.some &= self.some - 1;
        Some((RackId::from(self.row), RackId::from(column), self.all[column]))
    }

    /// As calling `next` again and again, in less time; a line without zeros is gone over cell by
    /// cell.
    fn fold<B, F: FnMut(B, Self::Item) -> B>(mut self, init: B, mut f: F) -> B {
        if let Some(few) = self.few {
            return few.fold(init, |b, (at, &bytes)| {
                f(b, (RackId::from(at / self.racks), RackId::from(at % self.racks), bytes))
            });
        }
        let mut b = init;
        loop {
            let (row, line) = (
                RackId::from(self.row),
                &self.all[self.first..(self.first + LINE).min(self.all.len())],
            );
            if self.some == full(self.racks - self.first) {
                for (&bytes, column) in line.iter().zip(self.first..self.racks) {
                    b = f(b, (row, RackId::from(column), bytes));
                }
                self.some = 0;
            }
            while self.some != 0 {
                let k = self.some.trailing_zeros() as usize;
                self.some &= self.some - 1;
                b = f(b, (row, RackId::from(self.first + k), line[k]));
            }
            if self.next_line().is_none() {
                return b;
            }
        }
    }
}

/// A line without zeros, one bit a cell: it has [`LINE`] cells, or fewer at the end of a row, of
/// which `left` cells are left.
fn full(left: usize) -> u32 {
    (1 << left.min(LINE)) - 1
}

/// Cells that are looked at in one step where there may be nothing.
const LINE: usize = 16;

/// Whether all of these cells are zero. Without a branch a cell, so that the compiler takes several
/// at once.
fn is_empty(line: &[u64]) -> bool {
    line.iter().fold(0, |all, &c| all | c) == 0
}
