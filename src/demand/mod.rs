//! Traffic demand between racks: the [`DemandMatrix`] and the estimators that fill it.
//!
//! | estimator | reads | after |
//! |---|---|---|
//! | [`counters`] | the ToRs' byte counters, aged | the simplest |
//! | backlog | bytes that wait at the senders | c-Through (SIGCOMM 2010) |
//! | [`hedera`] | which pairs are busy; what they would send were only the hosts' links the limit | Hedera (NSDI 2010), Helios |
//! | [`declared`] | what the posted coflows still have to send | Varys (SIGCOMM 2014) |
//! | combined | the larger of declared and backlog, cell by cell | |
//!
//! [`EstimatorState`] is the one front before them; [`elephants`] filters what they find.

use serde::{Deserialize, Serialize};

use crate::ids::RackId;

pub mod counters;
pub mod declared;
pub mod elephants;
mod estimator;
pub mod hedera;

pub use estimator::{Estimator, EstimatorState, Inputs};

/// An `R x R` matrix of bytes, row = source rack, column = destination rack. The diagonal is always zero: a rack's own
/// traffic never reaches a ToR's uplinks.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DemandMatrix {
    racks: usize,
    cells: Vec<u64>,
}

impl DemandMatrix {
    /// No demand between `racks` racks.
    pub fn zero(racks: usize) -> Self {
        Self { racks, cells: vec![0; racks * racks] }
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

    /// No demand any more. O(R^2).
    pub fn clear(&mut self) {
        self.cells.fill(0);
    }

    /// Number of racks, R.
    pub fn racks(&self) -> usize {
        self.racks
    }

    /// Bytes from `from` to `to`.
    pub fn get(&self, from: RackId, to: RackId) -> u64 {
        self.cells[from.index() * self.racks + to.index()]
    }

    /// Sets a cell; the diagonal stays zero.
    pub fn set(&mut self, from: RackId, to: RackId, bytes: u64) {
        if from != to {
            self.cells[from.index() * self.racks + to.index()] = bytes;
        }
    }

    /// Adds to a cell, stopping at `u64::MAX`; the diagonal stays zero.
    pub fn add(&mut self, from: RackId, to: RackId, bytes: u64) {
        let v = self.get(from, to).saturating_add(bytes);
        self.set(from, to, v);
    }

    /// Row-major cells, `R * R` of them.
    pub fn cells(&self) -> &[u64] {
        &self.cells
    }

    /// One row, `R` cells: what `from` sends.
    pub fn row(&self, from: RackId) -> &[u64] {
        &self.cells[from.index() * self.racks..(from.index() + 1) * self.racks]
    }

    /// The cells that are not zero, in row-major order.
    pub fn entries(&self) -> impl Iterator<Item = (RackId, RackId, u64)> + '_ {
        let r = self.racks;
        self.cells.iter().enumerate().filter(|c| *c.1 > 0).map(move |(k, &v)| (RackId::from(k / r), RackId::from(k % r), v))
    }

    /// The sum of all cells, stopping at `u64::MAX`.
    pub fn total(&self) -> u64 {
        self.cells.iter().fold(0, |a, &b| a.saturating_add(b))
    }

    /// This matrix with every cell passed through `f`.
    #[must_use]
    pub fn map(&self, mut f: impl FnMut(u64) -> u64) -> Self {
        let mut m = self.clone();
        for (k, c) in m.cells.iter_mut().enumerate() {
            *c = if k / self.racks == k % self.racks { 0 } else { f(*c) };
        }
        m
    }

    /// This matrix with every cell, the diagonal left out, passed through `f(from, to, bytes)`. O(R^2).
    #[must_use]
    pub fn map_pairs(&self, mut f: impl FnMut(RackId, RackId, u64) -> u64) -> Self {
        let mut m = self.clone();
        for (i, row) in m.cells.chunks_exact_mut(self.racks.max(1)).enumerate() {
            for (j, c) in row.iter_mut().enumerate().filter(|c| c.0 != i) {
                *c = f(RackId(i as u32), RackId(j as u32), *c);
            }
        }
        m
    }

    /// Cell by cell `self - other`, nothing below zero: what cumulative counters gained.
    #[must_use]
    pub fn since(&self, other: &Self) -> Self {
        assert_eq!(self.racks, other.racks, "matrices of one network");
        let cells = self.cells.iter().zip(&other.cells).map(|(a, b)| a.saturating_sub(*b)).collect();
        Self { racks: self.racks, cells }
    }
}
