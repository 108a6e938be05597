//! The integers in which the exact solvers compute: `i64` where the weights leave room, `i128`
//! where they do not.

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};

use crate::Matching;
use crate::demand::DemandMatrix;

/// A signed integer wide enough for weights, their duals and their sums of four.
pub(crate) trait Num:
    Copy
    + Ord
    + Debug
    + Send
    + Add<Output = Self>
    + Sub<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
{
    const ZERO: Self;
    const MAX: Self;
    /// A weight, already known to fit.
    fn of(weight: u128) -> Self;
    /// As many bytes, `shift` bits to the left, already known to fit.
    fn shifted(bytes: u64, shift: u32) -> Self;
    /// Half of an even number, or the next number below the half of an odd one.
    fn half(self) -> Self;
    #[cfg(test)]
    fn wide(self) -> i128;
}

macro_rules! num {
    ($t:ty) => {
        impl Num for $t {
            const ZERO: Self = 0;
            const MAX: Self = Self::MAX;
            #[inline]
            fn of(weight: u128) -> Self {
                weight as Self
            }
            #[inline]
            fn shifted(bytes: u64, shift: u32) -> Self {
                (bytes as Self) << shift
            }
            #[inline]
            fn half(self) -> Self {
                self >> 1
            }
            #[cfg(test)]
            fn wide(self) -> i128 {
                self.into()
            }
        }
    };
}
num!(i64);
num!(i128);

/// Duals stay below four times the largest weight (and the prices of a warm start), and the general
/// solver doubles its weights: below this limit `i64` holds everything.
pub(crate) const I64_LIMIT: u128 = 1 << 58;

/// Below this limit weights have room in the vector solver, which keeps some thirty times as much
/// for its marks. Counted are the lowest bits, too, in which it notes places.
pub(crate) const QUICK_LIMIT: u128 = 1 << 54;

/// How many bits the place of a column takes.
pub(crate) fn places(racks: usize) -> u32 {
    racks.next_power_of_two().trailing_zeros()
}

/// How weights are turned into the solvers' integers: `weight * factor + bonus`. The bonus of a
/// circuit that is up decides between matchings of equal weight. In sum it is less than one unit,
/// so it never decides between unequal ones.
pub(crate) struct Scale {
    racks: usize,
    largest: u128,
    factor: u128,
}

impl Scale {
    /// For `racks` racks and weights up to `largest`; `keeping` says whether there are circuits to
    /// keep.
    pub(crate) fn new(racks: usize, largest: u128, keeping: bool) -> Self {
        let factor = if keeping { (racks as u128 + 1).next_power_of_two() } else { 1 };
        Self { racks, largest: (largest + 1) * factor, factor }
    }

    /// Whether `i64` holds every number that a solver makes of these weights.
    pub(crate) fn narrow(&self) -> bool {
        self.largest < I64_LIMIT
    }

    /// By how many bits the factor shifts a weight.
    pub(crate) fn bits(&self) -> u32 {
        self.factor.trailing_zeros()
    }

    /// For the vector solver: the bits of the factor, and the spare bits below: those of a place
    /// where there is room for them, else one. `None` where weights have no room in it.
    pub(crate) fn shift(&self) -> Option<(u32, u32)> {
        let spare = [places(self.racks), 1].into_iter().find(|&p| self.largest < QUICK_LIMIT >> p);
        spare.map(|p| (self.bits(), p.max(1)))
    }

    /// The weight of a pair of which `kept` directions are up.
    pub(crate) fn weigh<N: Num>(&self, weight: u128, kept: u8) -> N {
        let bonus = if self.factor > 1 && weight > 0 { u128::from(kept) } else { 0 };
        N::of(weight * self.factor + bonus)
    }

    /// The weight of a pair that is not kept.
    #[inline]
    pub(crate) fn plain<N: Num>(&self, bytes: u64) -> N {
        N::shifted(bytes, self.bits())
    }

    /// Adds to the weight of a pair with demand that `kept` directions of it are up.
    pub(crate) fn keep<N: Num>(&self, weight: &mut N, kept: u8) {
        *weight += N::of(if self.factor > 1 { kept.into() } else { 0 });
    }
}

/// `R x R` weights of one-way circuits.
pub(crate) fn one_way<N: Num>(
    demand: &DemandMatrix,
    keep: Option<&Matching>,
    scale: &Scale,
) -> Vec<N> {
    let r = demand.racks();
    let mut w: Vec<N> = demand.cells().iter().map(|&c| scale.weigh(u128::from(c), 0)).collect();
    for (i, j) in keep.into_iter().flat_map(Matching::pairs) {
        w[i.index() * r + j.index()] = scale.weigh(u128::from(demand.get(i, j)), 1);
    }
    w
}
