//! The scans in which the dense solvers spend their time, for the vectors that the processor has:
//! AVX-512, AVX2, or none.
//!
//! Which one runs is found out at run time. All give the same answer, to the choice between equals:
//! the smallest place wins, however many lanes there are. Plain loops of this kind are not turned
//! into vector code by the compiler, so the instructions are called by name. AVX-512 earns
//! its file: with AVX2 alone, assignments take 1.4 times as long (docs/circuits-speed.md).
//!
//! This module alone of the room may say `unsafe`, for two reasons: a function compiled for
//! features that the processor lacks must not be called, and vector loads and stores take pointers.
//! Every scan checks its slices' lengths before its first pointer.
#![allow(unsafe_code, reason = "vector instructions")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod plain;

pub(super) use plain::{both_ways as plain_both_ways, edges as plain_edges};

use super::num::Num;

/// More than every distance in a search that has ended well: where distances begin.
pub(super) const FAR: i64 = 1 << 60;
/// The price of a closed column, so that no offer reaches it: more than [`FAR`] after any weight is
/// taken off.
pub(super) const SHUT: i64 = 1 << 61;

/// What the processor can do. A value is the proof that it can: other files cannot make one but by
/// asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SimdLevel(SimdKind);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SimdKind {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[default]
    Plain,
}

impl SimdLevel {
    /// The best that this processor has; a few instructions after the first call.
    #[inline]
    fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512vl")
            {
                return Self(SimdKind::Avx512);
            }
            if std::is_x86_feature_detected!("avx2") {
                return Self(SimdKind::Avx2);
            }
        }
        Self(SimdKind::Plain)
    }

    /// The best for rows of `n` cells: the vector scans take sixteen at a time, and where there are
    /// fewer only cost their putting together.
    #[inline]
    pub(super) fn for_rows_of(n: usize) -> Self {
        if n < 16 { Self(SimdKind::Plain) } else { Self::best() }
    }

    /// All that this processor has.
    #[cfg(test)]
    pub(super) fn all() -> Vec<Self> {
        let mut all = vec![Self(SimdKind::Plain)];
        #[cfg(target_arch = "x86_64")]
        {
            if std::is_x86_feature_detected!("avx2") {
                all.push(Self(SimdKind::Avx2));
            }
            if std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512vl")
            {
                all.push(Self(SimdKind::Avx512));
            }
        }
        all
    }
}

/// Calls the variant of a scan that `level` names.
macro_rules! choose {
    ($level:expr, $name:ident($($arg:expr),*)) => {
        match $level.0 {
            // SAFETY: a level of `SimdKind::Avx512` is made only where the processor was asked for
            // AVX-512F and VL and has them.
            #[cfg(target_arch = "x86_64")]
            SimdKind::Avx512 => unsafe { avx512::$name($($arg),*) },
            // SAFETY: a level of `SimdKind::Avx2` is made only where the processor was asked for
            // AVX2 and has it.
            #[cfg(target_arch = "x86_64")]
            SimdKind::Avx2 => unsafe { avx2::$name($($arg),*) },
            SimdKind::Plain => plain::$name($($arg),*),
        }
    };
}

/// A list of numbers that begins where a cache line does, so that no vector of it lies in two
/// lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Lanes {
    lines: Vec<CacheLine>,
    len: usize,
}

/// A cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
struct CacheLine([i64; 8]);

impl Lanes {
    /// Gives the list `n` numbers; those that it had stay, new ones are zero.
    pub(super) fn resize(&mut self, n: usize) {
        self.lines.resize(n.div_ceil(8), CacheLine::default());
        self.len = n;
    }
}

impl std::ops::Deref for Lanes {
    type Target = [i64];
    #[inline]
    fn deref(&self) -> &[i64] {
        // SAFETY: a line is eight numbers and nothing else (64 bytes of size and alignment), lines
        // follow one another in the list, and `resize` alone sets `len`, to at most eight times as
        // many.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl std::ops::DerefMut for Lanes {
    #[inline]
    fn deref_mut(&mut self) -> &mut [i64] {
        // SAFETY: as in `deref`; the list is borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

/// Bytes as the signed numbers in which the solvers compute: the same bits.
pub(super) fn signed(cells: &[u64]) -> &[i64] {
    // SAFETY: `u64` and `i64` have the same size and alignment, and every bit pattern is a value of
    // both; the slice's length and lifetime stay as they are, and nothing can be written through
    // it.
    unsafe { std::slice::from_raw_parts(cells.as_ptr().cast(), cells.len()) }
}

/// Of rows as long as `v`: `v[j]` becomes the largest `w[i][j] << shift`, and `best[j]` the first
/// row that has it. Of no rows, `i64::MIN`.
///
/// # Panics
/// If `v` and `best` differ in length, or there are not whole rows.
#[inline]
pub(super) fn column_max(level: SimdLevel, w: &[i64], shift: u32, v: &mut [i64], best: &mut [i64]) {
    assert!(v.len() == best.len() && w.len().checked_rem(v.len()) == Some(0), "rows of one matrix");
    choose!(level, column_max(w, shift, v, best))
}

/// The largest `(w[j] << shift) - v[j]` and the second largest (the same, if it occurs twice). Of
/// fewer than two, `i64::MIN`.
///
/// # Panics
/// If the slices differ in length.
#[inline]
pub(super) fn two_best(level: SimdLevel, w: &[i64], shift: u32, v: &[i64]) -> (i64, i64) {
    assert!(w.len() == v.len(), "rows of one matrix");
    choose!(level, two_best(w, shift, v))
}

/// The largest `(w[j] << shift) - v[j]`. Of none, `i64::MIN`.
///
/// # Panics
/// If the slices differ in length.
#[inline]
pub(super) fn best(level: SimdLevel, w: &[i64], shift: u32, v: &[i64]) -> i64 {
    assert!(w.len() == v.len(), "rows of one matrix");
    choose!(level, best(w, shift, v))
}

/// The first place of which `(w[j] << shift) - v[j]` is the value.
///
/// # Panics
/// If the slices differ in length.
#[inline]
pub(super) fn place_of(
    level: SimdLevel,
    value: i64,
    w: &[i64],
    shift: u32,
    v: &[i64],
) -> Option<usize> {
    assert!(w.len() == v.len(), "rows of one matrix");
    choose!(level, place_of(value, w, shift, v))
}

/// `v[j] += by`, so that the next scan of `v` need not wait for it.
///
/// # Panics
/// If `j` is out of range.
#[inline]
pub(super) fn raise(level: SimdLevel, v: &mut [i64], j: usize, by: i64) {
    match level.0 {
        // SAFETY: as in `choose`.
        #[cfg(target_arch = "x86_64")]
        SimdKind::Avx512 => unsafe { avx512::raise(v, j, by) },
        _ => v[j] += by,
    }
}

/// Raises each price `v[j]` to `base + (w[j] << shift)` at least, and tells whether it was less
/// anywhere.
///
/// # Panics
/// If the slices differ in length.
#[inline]
pub(super) fn lift(level: SimdLevel, w: &[i64], shift: u32, base: i64, v: &mut [i64]) -> bool {
    assert!(w.len() == v.len(), "rows of one matrix");
    choose!(level, lift(w, shift, base, v))
}

/// An offer of a row to all columns.
#[derive(Clone, Copy)]
pub(super) struct RowOffer<'a> {
    /// The row's weights.
    pub(super) w: &'a [i64],
    pub(super) shift: u32,
    /// Prices of the columns.
    pub(super) v: &'a [i64],
    /// `distance[i] - v[m] + (w[m] << shift)` of row i, whose own column is m.
    pub(super) base: i64,
    /// The row's number.
    pub(super) i: i64,
}

/// Where `base + v[j] - (w[j] << shift)` is less than `key[j]`, it becomes the key, and `from[j] =
/// i`. Returns the least key of all, and the first place where it is.
///
/// # Panics
/// If the slices differ in length.
#[inline]
pub(super) fn relax(
    level: SimdLevel,
    o: RowOffer,
    key: &mut [i64],
    from: &mut [i64],
) -> (i64, usize) {
    let n = o.w.len();
    assert!(o.v.len() == n && key.len() == n && from.len() == n, "rows of one matrix");
    choose!(level, relax(o, key, from))
}

/// Appends the places and the values of a row's cells that are not zero, and returns all its bits.
///
/// # Panics
/// If the lists differ in length.
#[inline]
pub(super) fn gather(
    level: SimdLevel,
    row: &[u64],
    columns: &mut Vec<u32>,
    bytes: &mut Vec<u64>,
) -> u64 {
    assert!(columns.len() == bytes.len(), "lists of the same cells");
    match level.0 {
        // SAFETY: as in `choose`.
        #[cfg(target_arch = "x86_64")]
        SimdKind::Avx512 => unsafe { avx512::gather(row, columns, bytes) },
        _ => plain::gather(row, columns, bytes),
    }
}

/// Writes which of a row's cells are at least `threshold`: a bit a cell, the first one lowest.
///
/// # Panics
/// If there are not as many words as the cells' bits take.
#[inline]
pub(super) fn at_least(level: SimdLevel, row: &[u64], threshold: u64, bits: &mut [u64]) {
    assert!(bits.len() == row.len().div_ceil(64), "a bit a cell");
    match level.0 {
        // SAFETY: as in `choose`.
        #[cfg(target_arch = "x86_64")]
        SimdKind::Avx512 => unsafe { avx512::at_least(row, threshold, bits) },
        _ => plain::at_least(row, threshold, bits),
    }
}

/// The largest of those of a row's cells whose bits are set: a bit a cell, the first one lowest.
/// Zero if there is none.
///
/// # Panics
/// If there are not as many words as the cells' bits take.
#[inline]
pub(super) fn largest_of(level: SimdLevel, row: &[u64], bits: &[u64]) -> u64 {
    assert!(bits.len() == row.len().div_ceil(64), "a bit a cell");
    match level.0 {
        // SAFETY: as in `choose`.
        #[cfg(target_arch = "x86_64")]
        SimdKind::Avx512 => unsafe { avx512::largest_of(row, bits) },
        _ => plain::largest_of(row, bits),
    }
}

/// What an edge (u, v) of outer vertex u must reach to be looked at: the least slack to v may be
/// less with it, and its slack may be gone before this search ends.
#[derive(Clone, Copy)]
pub(crate) struct SlackThreshold<N> {
    /// Its weight at least, which is positive.
    pub(crate) least: N,
    /// What is stored as the dual of u.
    pub(crate) own: N,
    /// Slacks, as the search stores them, must be below this,
    pub(crate) most: N,
    /// and to other outer vertices below this.
    pub(crate) most_outer: N,
}

impl<N: Num> SlackThreshold<N> {
    /// Whether an edge of weight `w` does. Of its far end v, `y` is stored as the dual and `near`
    /// as the least slack so far.
    #[inline(always)]
    pub(crate) fn is_reached(&self, w: N, y: N, near: N) -> bool {
        let most = if near == N::MAX { self.most_outer } else { near.min(self.most) };
        w >= self.least && w + w - y + most > self.own
    }
}

/// Appends the places and values of those weights of a row that reach the bar.
///
/// # Panics
/// If the slices differ in length.
#[inline]
pub(super) fn edges(
    level: SimdLevel,
    row: &[i64],
    y: &[i64],
    near: &[i64],
    bar: SlackThreshold<i64>,
    found: &mut Vec<(u32, i64)>,
) {
    assert!(row.len() == y.len() && row.len() == near.len(), "two numbers by place");
    match level.0 {
        // SAFETY: as in `choose`.
        #[cfg(target_arch = "x86_64")]
        SimdKind::Avx512 => unsafe { avx512::edges(row, y, near, bar, found) },
        _ => plain::edges(row, y, near, bar, found),
    }
}

/// `sums` becomes `cells(i,j) + cells(j,i)` of an `n x n` matrix, `shift` bits to the left.
///
/// # Panics
/// If there are not n^2 cells.
pub(super) fn both_ways(
    level: SimdLevel,
    n: usize,
    cells: &[u64],
    shift: u32,
    sums: &mut Vec<i64>,
) {
    assert!(cells.len() == n * n, "a square matrix");
    match level.0 {
        // SAFETY: as in `choose`.
        #[cfg(target_arch = "x86_64")]
        SimdKind::Avx512 => unsafe { avx512::both_ways(n, signed(cells), shift, sums) },
        _ => plain::both_ways(n, cells, shift, sums),
    }
}

/// The bits of all cells, or-ed.
#[inline]
pub(super) fn bits(level: SimdLevel, cells: &[u64]) -> u64 {
    match level.0 {
        // SAFETY: as in `choose`.
        #[cfg(target_arch = "x86_64")]
        SimdKind::Avx512 => unsafe { avx512::bits(cells) },
        _ => plain::bits(cells),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn all_levels_agree_with_the_plain_scans(
            v in prop::collection::vec((0i64..6, -4i64..5, 0i64..9), 1..70), shift in 1u32..4, base in -9i64..9, top in 0u32..50,
        ) {
            let w: Vec<i64> = v.iter().map(|x| x.0 << top).collect();
            let price: Vec<i64> = v.iter().map(|x| x.1 << top).collect();
            let key: Vec<i64> = v.iter().map(|x| x.2 << top).collect();
            let rows: Vec<i64> = (0..v.len()).flat_map(|k| w[k..].iter().chain(&w[..k])).copied().collect();
            for level in SimdLevel::all() {
                prop_assert_eq!(two_best(level, &w, shift, &price), plain::two_best(&w, shift, &price));
                let (mut a, mut b) = ((key.clone(), vec![7; w.len()]), (key.clone(), vec![7; w.len()]));
                let offer = RowOffer { w: &w, shift, v: &price, base, i: 3 };
                prop_assert_eq!(relax(level, offer, &mut a.0, &mut a.1), plain::relax(offer, &mut b.0, &mut b.1));
                prop_assert_eq!(&a, &b);
                for some in [&rows[..w.len()], &rows[..rows.len() / 3 / w.len() * w.len()], &rows] {
                    column_max(level, some, shift, &mut a.0, &mut a.1);
                    plain::column_max(some, shift, &mut b.0, &mut b.1);
                    prop_assert_eq!(&a, &b);
                }
                prop_assert_eq!(best(level, &w, shift, &price), two_best(level, &w, shift, &price).0);
            }
            let cells: Vec<u64> = w.iter().map(|&x| x as u64).collect();
            prop_assert_eq!(signed(&cells), &w[..]);
            let some = |(j, &c): (usize, &u64)| (c > 0).then_some((j as u32, c));
            let (columns, bytes): (Vec<u32>, Vec<u64>) = cells.iter().enumerate().filter_map(some).unzip();
            for level in SimdLevel::all() {
                let mut some = vec![9; cells.len().div_ceil(64)];
                at_least(level, &cells, cells[0], &mut some);
                prop_assert!(cells.iter().enumerate().all(|(j, &c)| (some[j / 64] >> (j % 64) & 1 == 1) == (c >= cells[0])));
                let count = cells.iter().filter(|&&c| c >= cells[0]).count();
                prop_assert_eq!(some.iter().map(|w| w.count_ones() as usize).sum::<usize>(), count);
                let largest = cells.iter().enumerate().filter(|(j, _)| some[j / 64] >> (j % 64) & 1 == 1).map(|c| *c.1).max();
                prop_assert_eq!(largest_of(level, &cells, &some), largest.unwrap_or(0));
                let (mut a, mut b) = (vec![9], vec![9]);
                let all = cells.iter().fold(0, |a, b| a | b);
                prop_assert_eq!((gather(level, &cells, &mut a, &mut b), bits(level, &cells)), (all, all));
                prop_assert_eq!((&a[1..], &b[1..]), (&columns[..], &bytes[..]));
                let near: Vec<i64> = v.iter().map(|x| if x.2 == 8 { i64::MAX } else { x.2 << top }).collect();
                for (least, own) in [(1, base), (w[0], w[0] + w[0] - price[0]), (1, w[0] - price[0])] {
                    let bar = SlackThreshold { least, own, most: 5 << top, most_outer: 11 << top };
                    let (mut a, mut b) = (vec![(7, 7)], vec![(7, 7)]);
                    edges(level, &w, &price, &near, bar, &mut a);
                    plain::edges(&w, &price, &near, bar, &mut b);
                    prop_assert_eq!(a, b);
                }
                for n in [w.len(), w.len() / 3 + 1] {
                    let square: Vec<u64> = rows.iter().cycle().take(n * n).map(|&x| x as u64).collect();
                    let mut sums = rows.clone();
                    both_ways(level, n, &square, shift, &mut sums);
                    let sum = |k: usize| (square[k] + square[k % n * n + k / n]) << shift;
                    prop_assert!(sums.len() == n * n && (0..n * n).all(|k| sums[k] as u64 == sum(k)));
                }
                let value = two_best(level, &w, shift, &price).0;
                prop_assert_eq!(place_of(level, value, &w, shift, &price), plain::place_of(value, &w, shift, &price));
                prop_assert_eq!(place_of(level, value + 1, &w, shift, &price), None);
                let (mut a, mut b) = (price.clone(), price.clone());
                prop_assert_eq!(lift(level, &w, shift, base, &mut a), plain::lift(&w, shift, base, &mut b));
                prop_assert_eq!(a, b);
                for j in 0..w.len() {
                    let (mut lanes, mut plain) = (Lanes::default(), price.clone());
                    lanes.resize(w.len());
                    lanes.copy_from_slice(&price);
                    raise(level, &mut lanes, j, base);
                    plain[j] += base;
                    prop_assert_eq!(&lanes[..], &plain[..]);
                    prop_assert_eq!(lanes.as_ptr().addr() % 64, 0);
                }
            }
        }
    }
}
