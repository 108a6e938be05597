//! Decompositions: one demand matrix into a sequence of configurations, each with its time.
//!
//! | function | finds |
//! |---|---|
//! | [`bvn()`] | the whole demand in exactly the busiest port's time, dark time not counted; many configurations |
//! | [`bvn_bottleneck()`] | the same with the thickest configurations first |
//! | [`birkhoff_plus()`] | the same with fewer configurations, by a barrier against thin cells |
//! | [`clearance()`] | the same without stuffing: a preemptive open shop, in which circuits go on where they can |
//! | [`tms()`] | shares of one period in proportion to the demand |
//! | [`solstice()`] | the demand but for what the electrical network carries meanwhile, in few configurations |
//! | [`eclipse()`] | most bytes within a window, dark time counted |
//!
//! All are for circuits one way: on a duplex plane their schedulers fall back to one [`edmonds()`]
//! matching. Times are integer nanoseconds of light at the plane's rate.

use super::matching::{edmonds, gather, usable_pair};
use super::{Ask, Decision, Slot};
use crate::demand::DemandMatrix;
use crate::ids::RackId;
use crate::topology::Plane;
use crate::units::{BitRate, Bytes, NANOS, Span};

mod birkhoff_plus;
mod bvn;
mod clearance;
mod eclipse;
mod solstice;
mod stuffed;
mod tms;

pub use birkhoff_plus::{BirkhoffPlus, birkhoff_plus};
pub use bvn::{Bvn, BvnBottleneck, bvn, bvn_bottleneck};
pub use clearance::{Clearance, clearance};
pub use eclipse::{Eclipse, eclipse};
pub use solstice::{Solstice, solstice};
pub use tms::{Tms, tms};

/// The cells with light, row by row.
struct Lit {
    /// By row: where its cells begin; last their number.
    starts: Vec<u32>,
    columns: Vec<u32>,
    /// Nanoseconds, none of them zero.
    light: Vec<u64>,
}

impl Lit {
    /// What a demand needs: nanoseconds at `rate`, rounded up; far beyond every run at rate zero.
    /// O(R^2), several cells at a time where there is nothing.
    fn of(demand: &DemandMatrix, rate: BitRate) -> Self {
        let n = demand.racks();
        let (mut starts, mut columns, mut light) =
            (Vec::with_capacity(n + 1), Vec::new(), Vec::new());
        for row in demand.cells().chunks_exact(n.max(1)) {
            starts.push(columns.len() as u32);
            gather(row, &mut columns, &mut light);
        }
        starts.push(columns.len() as u32);
        let (most, whole) = (Self::most(n), Self::whole(rate));
        let time = |b: u64| {
            whole.map_or_else(|| rate.time_for(Bytes(b)).0, |a_byte| b.saturating_mul(a_byte))
        };
        light.iter_mut().for_each(|b| *b = time(*b).min(most));
        Self { starts, columns, light }
    }

    /// The nanoseconds of a byte, if these are a whole number, as at most rates: that saves a
    /// division for each cell.
    fn whole(rate: BitRate) -> Option<u64> {
        (rate.0 > 0 && (8 * NANOS).is_multiple_of(rate.0)).then(|| rate.time_for(Bytes(1)).0)
    }

    /// The most light of a cell: `n` cells of a row must add up without overflow.
    fn most(n: usize) -> u64 {
        u64::MAX / 2 / n.max(1) as u64
    }

    /// Of cells in the order of rows and columns.
    fn from_cells(n: usize, cells: &[(RackId, RackId, u64)]) -> Self {
        let starts = (0..=n).map(|i| cells.partition_point(|c| c.0.index() < i) as u32).collect();
        Self {
            starts,
            columns: cells.iter().map(|c| c.1.0).collect(),
            light: cells.iter().map(|c| c.2).collect(),
        }
    }

    fn racks(&self) -> usize {
        self.starts.len() - 1
    }

    fn own(&self, i: usize) -> std::ops::Range<usize> {
        self.starts[i] as usize..self.starts[i + 1] as usize
    }

    /// Columns of a row.
    fn columns(&self, i: usize) -> &[u32] {
        &self.columns[self.own(i)]
    }

    /// Columns and light of a row.
    fn row(&self, i: usize) -> impl Iterator<Item = (u32, u64)> {
        self.columns(i).iter().copied().zip(self.light[self.own(i)].iter().copied())
    }
}

/// The same as a matrix.
fn light(demand: &DemandMatrix, rate: BitRate) -> DemandMatrix {
    let (lit, mut light) = (Lit::of(demand, rate), DemandMatrix::zero(demand.racks()));
    light.set_all(
        (0..lit.racks())
            .flat_map(|i| lit.row(i).map(move |(j, x)| (RackId::from(i), RackId(j), x))),
    );
    light
}

/// The largest sum of a row or column: no schedule of one plane serves the demand in less light.
/// O(R^2).
fn busiest(light: &DemandMatrix) -> u64 {
    let n = light.racks();
    let mut columns = vec![0u64; n];
    let mut most = 0;
    for i in 0..n {
        let row = light.row(RackId::from(i));
        most = most.max(row.iter().sum());
        columns.iter_mut().zip(row).for_each(|(c, x)| *c += x);
    }
    columns.into_iter().fold(most, u64::max)
}

/// Asks `one` plane after plane for a sequence that fills the interval; what it carries is taken
/// from the demand first. The last configuration stays until the next decision.
fn sequences(ask: &Ask, mut one: impl FnMut(&DemandMatrix, &Plane) -> Vec<Slot>) -> Decision {
    let mut left = ask.demand.clone();
    let mut all = Vec::with_capacity(ask.planes.len());
    for (p, plane) in ask.planes.iter().enumerate() {
        let usable = &ask.usable[p];
        let may = |i, j, d| if usable_pair(usable, plane.duplex, i, j) { d } else { 0 };
        let wanted = if usable.is_all() { left.clone() } else { left.map_pairs(may) };
        let mut slots = if plane.duplex {
            vec![Slot { matching: edmonds(&wanted, ask.current.get(p)), hold: None }]
        } else {
            one(&wanted, plane)
        };
        drop(wanted);
        if slots.is_empty() {
            slots.push(Slot { matching: super::Matching::empty(left.racks()), hold: None });
        }
        let mut room = ask.interval;
        for (k, slot) in slots.iter_mut().enumerate() {
            room = room.saturating_sub(plane.delta);
            let lit = slot.hold.unwrap_or(room).min(room);
            // What the last plane leaves is not asked for.
            for (i, j) in slot.matching.pairs().filter(|_| p + 1 < ask.planes.len()) {
                left.set(i, j, left.get(i, j).saturating_sub(plane.rate.bytes_in(lit).0));
            }
            room = room.saturating_sub(lit);
            if room == Span::ZERO {
                slots.truncate(k + 1);
                break;
            }
        }
        if let Some(last) = slots.last_mut() {
            last.hold = None;
        }
        all.push(slots);
    }
    Decision::sequences(all)
}

#[cfg(test)]
mod tests;
