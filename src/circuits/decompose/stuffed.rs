//! A square matrix whose rows and columns all have one sum, and the perfect matchings on it that Birkhoff promises.

use crate::circuits::Matching;
use crate::circuits::matching::cardinality::{NONE, most};
use crate::demand::DemandMatrix;
use crate::ids::RackId;

/// Light by cell, the diagonal included: what stuffing puts there is sent nowhere.
pub(super) struct Stuffed {
    n: usize,
    cells: Vec<u64>,
    /// The sum of every row and column.
    pub(super) sum: u64,
    /// What the demand still needs.
    real: DemandMatrix,
}

impl Stuffed {
    /// Solstice's QuickStuff: raises every row and column to `sum` (at least the busiest), first in cells that have light
    /// anyway, then anywhere. O(R^2).
    pub(super) fn of(light: &DemandMatrix, sum: u64) -> Self {
        let n = light.racks();
        let mut cells = light.cells().to_vec();
        let (mut rows, mut columns) = (vec![sum; n], vec![sum; n]);
        for (k, &x) in cells.iter().enumerate() {
            rows[k / n] -= x;
            columns[k % n] -= x;
        }
        for empty in [false, true] {
            for (k, c) in cells.iter_mut().enumerate().filter(|c| (*c.1 == 0) == empty) {
                let more = rows[k / n].min(columns[k % n]);
                *c += more;
                rows[k / n] -= more;
                columns[k % n] -= more;
            }
        }
        Self { n, cells, sum, real: light.clone() }
    }

    /// The largest cell.
    pub(super) fn largest(&self) -> u64 {
        self.cells.iter().copied().max().unwrap_or(0)
    }

    /// A perfect matching on the cells of at least `threshold`, by row, if there is one.
    pub(super) fn perfect(&self, threshold: u64) -> Option<Vec<u32>> {
        Some(most(self.n, &self.cells, threshold)).filter(|m| !m.contains(&NONE))
    }

    /// The perfect matching whose smallest cell is largest, and that cell, for a sum above zero. O(R^2.5 log R).
    pub(super) fn thickest(&self) -> (Vec<u32>, u64) {
        let mut weights: Vec<u64> = self.cells.iter().copied().filter(|&c| c > 0).collect();
        weights.sort_unstable();
        weights.dedup();
        let (mut low, mut high) = (0, weights.len());
        let mut best = self.perfect(1).expect("equal sums promise a perfect matching (Birkhoff)");
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            match self.perfect(weights[middle]) {
                Some(m) => (low, best) = (middle, m),
                None => high = middle,
            }
        }
        (best, weights[low])
    }

    /// Takes `time` of light from every matched cell, and gives the circuits among them that some demand still needed.
    pub(super) fn take(&mut self, columns: &[u32], time: u64) -> Matching {
        let mut m = Matching::empty(self.n);
        for (i, &j) in columns.iter().enumerate() {
            self.cells[i * self.n + j as usize] -= time;
            let (i, j) = (RackId::from(i), RackId(j));
            let needed = self.real.get(i, j);
            if needed > 0 {
                self.real.set(i, j, needed.saturating_sub(time));
                m.out[i.index()] = Some(j);
            }
        }
        self.sum -= time;
        m
    }

    /// What the demand still needs.
    pub(super) fn real(&self) -> &DemandMatrix {
        &self.real
    }
}
