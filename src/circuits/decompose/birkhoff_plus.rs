//! Birkhoff+: a barrier keeps the permutations away from thin cells, so that few of them carry
//! most.

use super::bvn::{slices, within};
use super::sequences;
use super::stuffed::Stuffed;
use crate::demand::DemandMatrix;
use crate::matching::assignment;
use crate::topology::Plane;
use crate::units::{BitRate, Span};
use crate::{Ask, Decision, Scheduler, Slot};

/// The cost of a cell as thick as the mean of its row.
const UNIT: u128 = 1 << 20;
/// The cost of the thinnest cells; a matching of [`crate::config`]'s most racks of them stays far
/// below 2^58.
const MOST: i64 = 1 << 44;

/// Configurations that serve all of `demand`, with light in sum equal to the busiest port's, in few
/// configurations.
///
/// The matrix is stuffed to equal sums. Each configuration is the vertex that a Frank-Wolfe step
/// along the barrier's gradient finds: the permutation with the least sum of `1 / rest` over its
/// cells. It has no thin cells, but looks at all cells and not only at the thinnest. It lasts as
/// long as all its cells do (Birkhoff's step).
///
/// # Arguments
/// Those of [`super::bvn()`].
///
/// # Complexity
/// One assignment problem a configuration, O(R^3) at worst each, with weights in fixed point (the
/// mean cell costs 2^20).
///
/// # Example
/// ```
/// use heliostat_circuits::{decompose::birkhoff_plus, demand::DemandMatrix, units::{BitRate, Span}};
/// let d = DemandMatrix::from_rows(&[&[0, 90, 10], &[10, 0, 90], &[90, 10, 0]]);
/// let slots = birkhoff_plus(&d, BitRate(8_000_000_000), Span::MAX); // a byte a nanosecond
/// assert_eq!(slots.iter().map(|s| s.hold.unwrap().0).collect::<Vec<_>>(), [90, 10]);
/// ```
///
/// # Source
/// Valls, Iosifidis and Tassiulas, *Birkhoff's decomposition revisited: sparse scheduling for
/// high-speed circuit switches*, IEEE/ACM Transactions on Networking 29 (2021), algorithm 4, with
/// one barrier step a configuration.
pub fn birkhoff_plus(demand: &DemandMatrix, rate: BitRate, window: Span) -> Vec<Slot> {
    within(
        window,
        slices(Stuffed::of_demand(demand, rate), |s| {
            let column = thickest(demand.racks(), s.cells())?;
            Some(s.cut_along(column))
        }),
    )
}

/// The perfect matching on the cells with light that has the least sum of `1 / rest`; `None` when
/// no light is left.
fn thickest(n: usize, cells: &[u64]) -> Option<Vec<u32>> {
    let sum: u128 = cells.iter().take(n).map(|&c| u128::from(c)).sum();
    if sum == 0 {
        return None;
    }
    let mean = sum.div_ceil(n as u128);
    // A cell without light is worse than a whole row of the thinnest.
    let none = MOST * (n as i64 + 1);
    let cost =
        |c: u64| if c == 0 { none } else { (mean * UNIT / u128::from(c)).min(MOST as u128) as i64 };
    let profits: Vec<i64> = cells.iter().map(|&c| -cost(c)).collect();
    Some(assignment::solve(n, &profits).column)
}

/// [`birkhoff_plus()`] every interval, as far as it goes.
pub struct BirkhoffPlus;

impl Scheduler for BirkhoffPlus {
    fn decide(&mut self, ask: &Ask) -> Decision {
        sequences(ask, |demand, plane| birkhoff_plus(demand, plane.rate, ask.interval))
    }
    fn plans_ahead(&self, plane: &Plane) -> bool {
        !plane.duplex
    }
}
