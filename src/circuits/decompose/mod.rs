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
//! All are for circuits one way: on a duplex plane their schedulers fall back to one [`edmonds()`] matching. Times are integer
//! nanoseconds of light at the plane's rate.

use super::matching::{edmonds, usable_pair};
use super::{Ask, Decision, Slot};
use crate::demand::DemandMatrix;
use crate::ids::RackId;
use crate::topology::Plane;
use crate::units::{BitRate, Bytes, Span};

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

/// The light that a demand needs: nanoseconds at `rate`, rounded up; far beyond every run at rate zero.
fn light(demand: &DemandMatrix, rate: BitRate) -> DemandMatrix {
    // R cells of a row must add up without overflow.
    let most = u64::MAX / 2 / demand.racks().max(1) as u64;
    demand.map(|b| rate.time_for(Bytes(b)).0.min(most))
}

/// The largest sum of a row or column: no schedule of one plane serves the demand in less light. O(R^2).
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

/// Asks `one` plane after plane for a sequence that fills the interval; what it carries is taken from the demand first. The
/// last configuration stays until the next decision.
fn sequences(ask: &Ask, mut one: impl FnMut(&DemandMatrix, &Plane) -> Vec<Slot>) -> Decision {
    let mut left = ask.demand.clone();
    let mut all = Vec::with_capacity(ask.planes.len());
    for (p, plane) in ask.planes.iter().enumerate() {
        let wanted = left.map_pairs(|i, j, d| if usable_pair(&ask.usable[p], plane.duplex, i, j) { d } else { 0 });
        let mut slots =
            if plane.duplex { vec![Slot { matching: edmonds(&wanted, ask.current.get(p)), hold: None }] } else { one(&wanted, plane) };
        if slots.is_empty() {
            slots.push(Slot { matching: super::Matching::empty(left.racks()), hold: None });
        }
        let mut room = ask.interval;
        for (k, slot) in slots.iter_mut().enumerate() {
            room = room.saturating_sub(plane.delta);
            let lit = slot.hold.unwrap_or(room).min(room);
            for (i, j) in slot.matching.pairs() {
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
