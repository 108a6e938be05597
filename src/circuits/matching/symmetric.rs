//! Symmetric weights of circuits in pairs, and what the general solver does with whole rows of
//! them, for the vectors that the processor has.

use multiversion::multiversion;

use super::num::{Num, Scale};
use super::simd::{self, SimdLevel, SlackThreshold};
use crate::Matching;
use crate::demand::DemandMatrix;

/// `w` becomes the `R x R` symmetric weights `D(i,j) + D(j,i)` of circuits in pairs.
pub(crate) fn both_ways<N: Symmetric>(
    demand: &DemandMatrix,
    keep: Option<&Matching>,
    scale: &Scale,
    w: &mut Vec<N>,
) {
    let r = demand.racks();
    N::both_ways(r, demand.cells(), scale.bits(), w);
    for (i, j) in keep.into_iter().flat_map(Matching::pairs) {
        let both = keep.is_some_and(|k| k.output(j) == Some(i));
        let x = scale
            .weigh(u128::from(demand.get(i, j)) + u128::from(demand.get(j, i)), 1 + u8::from(both));
        w[i.index() * r + j.index()] = x;
        w[j.index() * r + i.index()] = x;
    }
}

/// Whole rows of symmetric weights. In all of them zero is no edge.
pub(crate) trait Symmetric: Num {
    /// `sums` becomes `cells(i,j) + cells(j,i)` of an `n x n` matrix, `shift` bits to the left,
    /// already known to fit.
    fn both_ways(n: usize, cells: &[u64], shift: u32, sums: &mut Vec<Self>);

    /// Appends the places and values of those weights of a row that reach the bar. By place: what
    /// is stored as dual, and as least slack.
    fn edges(
        row: &[Self],
        y: &[Self],
        near: &[Self],
        bar: SlackThreshold<Self>,
        found: &mut Vec<(u32, Self)>,
    );

    /// Where there is an edge, and `y` less twice its weight is less than the key, or equal to it
    /// and `u` less than `from`: these become key and `from`.
    fn offer(row: &[Self], y: Self, u: u32, keys: &mut [Self], from: &mut [u32]);

    /// Where other keys are less than keys, or equal to them and the others' `from` less: these
    /// become key and `from`.
    fn join(other: &[Self], others: &[u32], keys: &mut [Self], from: &mut [u32]);

    /// The least `a[k] + b[k]` of those of which `a[k]` is not the largest number's opposite; of
    /// none, the largest number.
    fn least_sum(a: &[Self], b: &[Self]) -> Self;
}

impl Symmetric for i64 {
    fn both_ways(n: usize, cells: &[u64], shift: u32, sums: &mut Vec<Self>) {
        simd::both_ways(SimdLevel::for_rows_of(n), n, cells, shift, sums);
    }
    fn edges(
        row: &[Self],
        y: &[Self],
        near: &[Self],
        bar: SlackThreshold<Self>,
        found: &mut Vec<(u32, Self)>,
    ) {
        simd::edges(SimdLevel::for_rows_of(row.len()), row, y, near, bar, found);
    }
    fn offer(row: &[Self], y: Self, u: u32, keys: &mut [Self], from: &mut [u32]) {
        several::offer(row, y, u, keys, from);
    }
    fn join(other: &[Self], others: &[u32], keys: &mut [Self], from: &mut [u32]) {
        several::join(other, others, keys, from);
    }
    fn least_sum(a: &[Self], b: &[Self]) -> Self {
        several::least_sum(a, b)
    }
}

impl Symmetric for i128 {
    fn both_ways(n: usize, cells: &[u64], shift: u32, sums: &mut Vec<Self>) {
        simd::plain_both_ways(n, cells, shift, sums);
    }
    fn edges(
        row: &[Self],
        y: &[Self],
        near: &[Self],
        bar: SlackThreshold<Self>,
        found: &mut Vec<(u32, Self)>,
    ) {
        simd::plain_edges(row, y, near, bar, found);
    }
    fn offer(row: &[Self], y: Self, u: u32, keys: &mut [Self], from: &mut [u32]) {
        offer(row, y, u, keys, from);
    }
    fn join(other: &[Self], others: &[u32], keys: &mut [Self], from: &mut [u32]) {
        join(other, others, keys, from);
    }
    fn least_sum(a: &[Self], b: &[Self]) -> Self {
        least_sum(a, b)
    }
}

/// [`Symmetric::offer`] for all numbers.
#[inline(always)]
fn offer<N: Num>(row: &[N], y: N, u: u32, keys: &mut [N], from: &mut [u32]) {
    let n = row.len();
    let (keys, from) = (&mut keys[..n], &mut from[..n]);
    for k in 0..n {
        let key = y - row[k] - row[k];
        let better = row[k] > N::ZERO && (key < keys[k] || key == keys[k] && u < from[k]);
        keys[k] = if better { key } else { keys[k] };
        from[k] = if better { u } else { from[k] };
    }
}

/// [`Symmetric::join`] for all numbers.
#[inline(always)]
fn join<N: Num>(other: &[N], others: &[u32], keys: &mut [N], from: &mut [u32]) {
    let n = other.len();
    let (others, keys, from) = (&others[..n], &mut keys[..n], &mut from[..n]);
    for k in 0..n {
        let better = other[k] < keys[k] || other[k] == keys[k] && others[k] < from[k];
        keys[k] = if better { other[k] } else { keys[k] };
        from[k] = if better { others[k] } else { from[k] };
    }
}

/// [`Symmetric::least_sum`] for all numbers.
#[inline(always)]
fn least_sum<N: Num>(a: &[N], b: &[N]) -> N {
    let (b, mut least) = (&b[..a.len()], N::MAX);
    for k in 0..a.len() {
        let sum = if a[k] == -N::MAX { N::MAX } else { a[k] + b[k] };
        least = if sum < least { sum } else { least };
    }
    least
}

/// The same for the vectors that the processor has.
mod several {
    use super::multiversion;

    #[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2"))]
    pub(super) fn offer(row: &[i64], y: i64, u: u32, keys: &mut [i64], from: &mut [u32]) {
        super::offer(row, y, u, keys, from);
    }

    #[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2"))]
    pub(super) fn join(other: &[i64], others: &[u32], keys: &mut [i64], from: &mut [u32]) {
        super::join(other, others, keys, from);
    }

    #[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2"))]
    pub(super) fn least_sum(a: &[i64], b: &[i64]) -> i64 {
        super::least_sum(a, b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn several_at_a_time_are_one_by_one(
            cells in prop::collection::vec((0i64..5, 0i64..9, 0u32..4, 0i64..9, 0u32..4), 1..80), y in 0i64..20, u in 0u32..4,
        ) {
            let wide = |list: &[i64]| list.iter().map(|&x| i128::from(x)).collect::<Vec<_>>();
            let key = |&(_, key, ..): &(i64, i64, u32, i64, u32)| if key == 8 { -i64::MAX } else { key };
            let row: Vec<i64> = cells.iter().map(|c| c.0).collect();
            let (mut keys, mut from): (Vec<i64>, Vec<u32>) = cells.iter().map(|c| (key(c), c.2)).unzip();
            let (other, others): (Vec<i64>, Vec<u32>) = cells.iter().map(|c| (c.3, c.4)).unzip();
            // The marks for vertices inside are the opposites of the largest numbers, of which each
            // width has its own.
            let marked = |list: &[i64]| wide(list).into_iter().map(|x| if x == -i128::from(i64::MAX) { -i128::MAX } else { x }).collect();
            let (mut slow_keys, mut slow_from): (Vec<i128>, _) = (marked(&keys), from.clone());
            i64::offer(&row, y, u, &mut keys, &mut from);
            i128::offer(&wide(&row), y.into(), u, &mut slow_keys, &mut slow_from);
            prop_assert_eq!((marked(&keys), &from), (slow_keys.clone(), &slow_from));
            i64::join(&other, &others, &mut keys, &mut from);
            i128::join(&wide(&other), &others, &mut slow_keys, &mut slow_from);
            prop_assert_eq!((marked(&keys), &from), (slow_keys.clone(), &slow_from));
            let sums = keys.iter().zip(&row).filter(|(key, _)| **key != -i64::MAX).map(|(key, w)| key + w);
            prop_assert_eq!(i64::least_sum(&keys, &row), sums.min().unwrap_or(i64::MAX));
        }
    }
}
