//! The scans in which the dense solvers spend their time, for the vectors that the processor has: AVX-512, AVX2, or none.
//!
//! Which one runs is found out at run time. All give the same answer, to the choice between equals: the smallest place wins, however
//! many lanes there are. Plain loops of this kind are not turned into vector code by the compiler, hence the instructions by name.
//!
//! This file alone of the room may say `unsafe`, for two reasons: a function compiled for features that the processor lacks must not be
//! called, and vector loads and stores take pointers. Every scan checks its slices' lengths before its first pointer.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// More than every distance in a search that has ended well: where distances begin.
pub(super) const FAR: i64 = 1 << 60;
/// The price of a closed column, so that no offer reaches it: more than [`FAR`] after any weight is taken off.
pub(super) const SHUT: i64 = 1 << 61;

/// What the processor can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Level {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[default]
    Plain,
}

impl Level {
    /// The best that this processor has; a few instructions after the first call.
    #[inline]
    fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if std::is_x86_feature_detected!("avx512f") {
                return Self::Avx512;
            }
            if std::is_x86_feature_detected!("avx2") {
                return Self::Avx2;
            }
        }
        Self::Plain
    }

    /// The best for rows of `n` cells: the vector scans take sixteen at a time, and where there are fewer only cost their putting together.
    #[inline]
    pub(super) fn for_rows_of(n: usize) -> Self {
        if n < 16 { Self::Plain } else { Self::best() }
    }

    /// All that this processor has.
    #[cfg(test)]
    pub(super) fn all() -> Vec<Self> {
        let mut all = vec![Self::Plain];
        #[cfg(target_arch = "x86_64")]
        {
            if std::is_x86_feature_detected!("avx2") {
                all.push(Self::Avx2);
            }
            if std::is_x86_feature_detected!("avx512f") {
                all.push(Self::Avx512);
            }
        }
        all
    }
}

/// Calls the variant of a scan that `level` names.
macro_rules! choose {
    ($level:expr, $name:ident($($arg:expr),*)) => {
        match $level {
            // SAFETY: `Level::Avx512` is made only where the processor was asked for AVX-512F and has it.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { avx512::$name($($arg),*) },
            // SAFETY: `Level::Avx2` is made only where the processor was asked for AVX2 and has it.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { avx2::$name($($arg),*) },
            Level::Plain => plain::$name($($arg),*),
        }
    };
}

/// Bytes as the signed numbers in which the solvers compute: the same bits.
pub(super) fn signed(cells: &[u64]) -> &[i64] {
    // SAFETY: `u64` and `i64` have the same size and alignment, and every bit pattern is a value of both; the slice's length and
    // lifetime stay as they are, and nothing can be written through it.
    unsafe { std::slice::from_raw_parts(cells.as_ptr().cast(), cells.len()) }
}

/// `v[j] = max(v[j], w[j] << shift)`, and `best[j] = i` where that is more than before.
///
/// # Panics
/// If the slices differ in length.
#[inline]
pub(super) fn column_max(level: Level, w: &[i64], shift: u32, i: i64, v: &mut [i64], best: &mut [i64]) {
    assert!(w.len() == v.len() && w.len() == best.len(), "rows of one matrix");
    choose!(level, column_max(w, shift, i, v, best))
}

/// The largest `(w[j] << shift) - v[j]`, the first place where it is, and the second largest (the same, if it stands twice).
///
/// # Panics
/// If the slices differ in length.
#[inline]
pub(super) fn two_best(level: Level, w: &[i64], shift: u32, v: &[i64]) -> (i64, usize, i64) {
    assert!(w.len() == v.len(), "rows of one matrix");
    choose!(level, two_best(w, shift, v))
}

/// An offer of a row to all columns.
#[derive(Clone, Copy)]
pub(super) struct Offer<'a> {
    /// The row's weights.
    pub(super) w: &'a [i64],
    pub(super) shift: u32,
    /// Prices of the columns.
    pub(super) v: &'a [i64],
    /// The distance at which the row stands, less the price and plus the weight of its own column.
    pub(super) base: i64,
    /// The row's number.
    pub(super) i: i64,
}

/// Where `base + v[j] - (w[j] << shift)` is less than `key[j]`, it becomes the key, and `from[j] = i`. Returns the least key of all, and
/// the first place where it is.
///
/// # Panics
/// If the slices differ in length.
#[inline]
pub(super) fn relax(level: Level, o: Offer, key: &mut [i64], from: &mut [i64]) -> (i64, usize) {
    let n = o.w.len();
    assert!(o.v.len() == n && key.len() == n && from.len() == n, "rows of one matrix");
    choose!(level, relax(o, key, from))
}

/// All cells' bits, and how many cells are not zero.
pub(super) fn survey(cells: &[u64]) -> (u64, usize) {
    let (mut bits, mut filled) = ([0u64; 8], [0u64; 8]);
    let (chunks, rest) = cells.as_chunks::<8>();
    for c in chunks {
        for l in 0..8 {
            bits[l] |= c[l];
            filled[l] += u64::from(c[l] != 0);
        }
    }
    for c in rest {
        bits[0] |= c;
        filled[0] += u64::from(*c != 0);
    }
    (bits.iter().fold(0, |a, b| a | b), filled.iter().sum::<u64>() as usize)
}

/// What the lanes of a two-best scan found, put together.
fn join_best(first: &[i64], at: &[i64], second: &[i64]) -> (i64, usize, i64) {
    let (mut a, mut k, mut b) = (first[0], at[0], second[0]);
    for l in 1..first.len() {
        if first[l] > a || (first[l] == a && at[l] < k) {
            b = b.max(a).max(second[l]);
            (a, k) = (first[l], at[l]);
        } else {
            b = b.max(first[l]);
        }
    }
    (a, k as usize, b)
}

/// The least over the lanes; the smallest place among equals.
fn join_least(least: &[i64], at: &[i64]) -> (i64, usize) {
    let lanes = least.iter().zip(at).map(|(a, k)| (*a, *k as usize));
    lanes.min().unwrap_or((i64::MAX, 0))
}

/// The scans as anybody would write them.
mod plain {
    use super::Offer;

    pub(super) fn column_max(w: &[i64], shift: u32, i: i64, v: &mut [i64], best: &mut [i64]) {
        for ((w, v), best) in w.iter().zip(v).zip(best) {
            let x = w << shift;
            if x > *v {
                (*v, *best) = (x, i);
            }
        }
    }

    pub(super) fn two_best(w: &[i64], shift: u32, v: &[i64]) -> (i64, usize, i64) {
        two_best_from(0, w, shift, v, (i64::MIN, 0, i64::MIN))
    }

    /// Goes on after `so_far` at place `k`.
    pub(super) fn two_best_from(k: usize, w: &[i64], shift: u32, v: &[i64], so_far: (i64, usize, i64)) -> (i64, usize, i64) {
        let (mut a, mut at, mut b) = so_far;
        for (j, (w, v)) in (k..).zip(w[k..].iter().zip(&v[k..])) {
            let x = (w << shift) - v;
            if x > b {
                if x > a {
                    (b, a, at) = (a, x, j);
                } else {
                    b = x;
                }
            }
        }
        (a, at, b)
    }

    pub(super) fn relax(o: Offer, key: &mut [i64], from: &mut [i64]) -> (i64, usize) {
        relax_from(0, o, key, from, (i64::MAX, 0))
    }

    /// Goes on after `so_far` at place `k`.
    pub(super) fn relax_from(k: usize, o: Offer, key: &mut [i64], from: &mut [i64], so_far: (i64, usize)) -> (i64, usize) {
        let (mut least, mut at) = so_far;
        let offered = o.w[k..].iter().zip(&o.v[k..]);
        for (j, ((w, v), (key, from))) in (k..).zip(offered.zip(key[k..].iter_mut().zip(&mut from[k..]))) {
            let d = o.base + v - (w << o.shift);
            if d < *key {
                (*key, *from) = (d, o.i);
            }
            if *key < least {
                (least, at) = (*key, j);
            }
        }
        (least, at)
    }
}

/// Eight lanes.
#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::*;

    #[target_feature(enable = "avx512f")]
    fn load(s: &[i64], k: usize) -> __m512i {
        debug_assert!(k + 8 <= s.len());
        // SAFETY: every caller's loop runs while k + 8 <= n, and n is the length of all slices of a scan, as its front has checked; an
        // unaligned load needs no more.
        unsafe { _mm512_loadu_si512(s.as_ptr().add(k).cast()) }
    }

    #[target_feature(enable = "avx512f")]
    fn store(s: &mut [i64], k: usize, mask: __mmask8, x: __m512i) {
        debug_assert!(k + 8 <= s.len());
        // SAFETY: as in `load`; the slice is borrowed for writing.
        unsafe { _mm512_mask_storeu_epi64(s.as_mut_ptr().add(k), mask, x) }
    }

    #[target_feature(enable = "avx512f")]
    fn lanes(x: __m512i) -> [i64; 8] {
        let mut out = [0; 8];
        store(&mut out, 0, 0xff, x);
        out
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn column_max(w: &[i64], shift: u32, i: i64, v: &mut [i64], best: &mut [i64]) {
        let (by, own) = (_mm_cvtsi64_si128(shift.into()), _mm512_set1_epi64(i));
        let mut k = 0;
        while k + 8 <= w.len() {
            let (x, old) = (_mm512_sll_epi64(load(w, k), by), load(v, k));
            let more = _mm512_cmpgt_epi64_mask(x, old);
            store(v, k, more, x);
            store(best, k, more, own);
            k += 8;
        }
        plain::column_max(&w[k..], shift, i, &mut v[k..], &mut best[k..]);
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn two_best(w: &[i64], shift: u32, v: &[i64]) -> (i64, usize, i64) {
        let by = _mm_cvtsi64_si128(shift.into());
        let low = _mm512_set1_epi64(i64::MIN);
        // Two sets of lanes, so that one does not wait for the other.
        let (mut first, mut second, mut at) = ([low; 2], [low; 2], [_mm512_setzero_si512(); 2]);
        let mut place = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
        let mut k = 0;
        while k + 16 <= w.len() {
            for l in 0..2 {
                let x = _mm512_sub_epi64(_mm512_sll_epi64(load(w, k + 8 * l), by), load(v, k + 8 * l));
                let more = _mm512_cmpgt_epi64_mask(x, first[l]);
                second[l] = _mm512_max_epi64(second[l], _mm512_min_epi64(x, first[l]));
                first[l] = _mm512_max_epi64(first[l], x);
                at[l] = _mm512_mask_mov_epi64(at[l], more, place);
                place = _mm512_add_epi64(place, _mm512_set1_epi64(8));
            }
            k += 16;
        }
        let all = |x: [__m512i; 2]| [lanes(x[0]), lanes(x[1])];
        let (first, second, at) = (all(first), all(second), all(at));
        let found = join_best(first.as_flattened(), at.as_flattened(), second.as_flattened());
        plain::two_best_from(k, w, shift, v, found)
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn relax(o: Offer, key: &mut [i64], from: &mut [i64]) -> (i64, usize) {
        let (by, own, base) = (_mm_cvtsi64_si128(o.shift.into()), _mm512_set1_epi64(o.i), _mm512_set1_epi64(o.base));
        let (mut least, mut at) = ([_mm512_set1_epi64(i64::MAX); 2], [_mm512_setzero_si512(); 2]);
        let mut place = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
        let mut k = 0;
        while k + 16 <= o.w.len() {
            for l in 0..2 {
                let q = k + 8 * l;
                let d = _mm512_sub_epi64(_mm512_add_epi64(base, load(o.v, q)), _mm512_sll_epi64(load(o.w, q), by));
                let old = load(key, q);
                let less = _mm512_cmplt_epi64_mask(d, old);
                let new = _mm512_min_epi64(d, old);
                if less != 0 {
                    store(key, q, less, d);
                    store(from, q, less, own);
                }
                let nearer = _mm512_cmplt_epi64_mask(new, least[l]);
                least[l] = _mm512_min_epi64(least[l], new);
                at[l] = _mm512_mask_mov_epi64(at[l], nearer, place);
                place = _mm512_add_epi64(place, _mm512_set1_epi64(8));
            }
            k += 16;
        }
        let (least, at) = ([lanes(least[0]), lanes(least[1])], [lanes(at[0]), lanes(at[1])]);
        let found = join_least(least.as_flattened(), at.as_flattened());
        plain::relax_from(k, o, key, from, found)
    }
}

/// Four lanes.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::*;

    #[target_feature(enable = "avx2")]
    fn load(s: &[i64], k: usize) -> __m256i {
        debug_assert!(k + 4 <= s.len());
        // SAFETY: every caller's loop runs while k + 4 <= n, and n is the length of all slices of a scan, as its front has checked; an
        // unaligned load needs no more.
        unsafe { _mm256_loadu_si256(s.as_ptr().add(k).cast()) }
    }

    #[target_feature(enable = "avx2")]
    fn store(s: &mut [i64], k: usize, x: __m256i) {
        debug_assert!(k + 4 <= s.len());
        // SAFETY: as in `load`; the slice is borrowed for writing.
        unsafe { _mm256_storeu_si256(s.as_mut_ptr().add(k).cast(), x) }
    }

    #[target_feature(enable = "avx2")]
    fn lanes(x: __m256i) -> [i64; 4] {
        let mut out = [0; 4];
        store(&mut out, 0, x);
        out
    }

    /// `yes` where the mask's lanes are all ones, `no` where they are zero.
    #[target_feature(enable = "avx2")]
    fn select(mask: __m256i, yes: __m256i, no: __m256i) -> __m256i {
        _mm256_blendv_epi8(no, yes, mask)
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn column_max(w: &[i64], shift: u32, i: i64, v: &mut [i64], best: &mut [i64]) {
        let (by, own) = (_mm_cvtsi64_si128(shift.into()), _mm256_set1_epi64x(i));
        let mut k = 0;
        while k + 4 <= w.len() {
            let (x, old) = (_mm256_sll_epi64(load(w, k), by), load(v, k));
            let more = _mm256_cmpgt_epi64(x, old);
            store(v, k, select(more, x, old));
            let kept = select(more, own, load(best, k));
            store(best, k, kept);
            k += 4;
        }
        plain::column_max(&w[k..], shift, i, &mut v[k..], &mut best[k..]);
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn two_best(w: &[i64], shift: u32, v: &[i64]) -> (i64, usize, i64) {
        let by = _mm_cvtsi64_si128(shift.into());
        let low = _mm256_set1_epi64x(i64::MIN);
        let (mut first, mut second, mut at) = ([low; 2], [low; 2], [_mm256_setzero_si256(); 2]);
        let mut place = _mm256_set_epi64x(3, 2, 1, 0);
        let mut k = 0;
        while k + 8 <= w.len() {
            for l in 0..2 {
                let x = _mm256_sub_epi64(_mm256_sll_epi64(load(w, k + 4 * l), by), load(v, k + 4 * l));
                let more = _mm256_cmpgt_epi64(x, first[l]);
                let beaten = select(more, first[l], x);
                second[l] = select(_mm256_cmpgt_epi64(beaten, second[l]), beaten, second[l]);
                first[l] = select(more, x, first[l]);
                at[l] = select(more, place, at[l]);
                place = _mm256_add_epi64(place, _mm256_set1_epi64x(4));
            }
            k += 8;
        }
        let all = |x: [__m256i; 2]| [lanes(x[0]), lanes(x[1])];
        let (first, second, at) = (all(first), all(second), all(at));
        let found = join_best(first.as_flattened(), at.as_flattened(), second.as_flattened());
        plain::two_best_from(k, w, shift, v, found)
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn relax(o: Offer, key: &mut [i64], from: &mut [i64]) -> (i64, usize) {
        let (by, own, base) = (_mm_cvtsi64_si128(o.shift.into()), _mm256_set1_epi64x(o.i), _mm256_set1_epi64x(o.base));
        let (mut least, mut at) = ([_mm256_set1_epi64x(i64::MAX); 2], [_mm256_setzero_si256(); 2]);
        let mut place = _mm256_set_epi64x(3, 2, 1, 0);
        let mut k = 0;
        while k + 8 <= o.w.len() {
            for l in 0..2 {
                let q = k + 4 * l;
                let d = _mm256_sub_epi64(_mm256_add_epi64(base, load(o.v, q)), _mm256_sll_epi64(load(o.w, q), by));
                let old = load(key, q);
                let less = _mm256_cmpgt_epi64(old, d);
                let new = select(less, d, old);
                if _mm256_testz_si256(less, less) == 0 {
                    store(key, q, new);
                    let kept = select(less, own, load(from, q));
                    store(from, q, kept);
                }
                let nearer = _mm256_cmpgt_epi64(least[l], new);
                least[l] = select(nearer, new, least[l]);
                at[l] = select(nearer, place, at[l]);
                place = _mm256_add_epi64(place, _mm256_set1_epi64x(4));
            }
            k += 8;
        }
        let (least, at) = ([lanes(least[0]), lanes(least[1])], [lanes(at[0]), lanes(at[1])]);
        let found = join_least(least.as_flattened(), at.as_flattened());
        plain::relax_from(k, o, key, from, found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn all_levels_agree_with_the_plain_scans(
            v in prop::collection::vec((0i64..6, -4i64..5, 0i64..9), 1..70), shift in 1u32..4, base in -9i64..9, top in 0u32..50,
        ) {
            let w: Vec<i64> = v.iter().map(|x| x.0 << top).collect();
            let price: Vec<i64> = v.iter().map(|x| x.1 << top).collect();
            let key: Vec<i64> = v.iter().map(|x| x.2 << top).collect();
            for level in Level::all() {
                prop_assert_eq!(two_best(level, &w, shift, &price), plain::two_best(&w, shift, &price));
                let (mut a, mut b) = ((key.clone(), vec![7; w.len()]), (key.clone(), vec![7; w.len()]));
                let offer = Offer { w: &w, shift, v: &price, base, i: 3 };
                prop_assert_eq!(relax(level, offer, &mut a.0, &mut a.1), plain::relax(offer, &mut b.0, &mut b.1));
                prop_assert_eq!(&a, &b);
                column_max(level, &w, shift, 3, &mut a.0, &mut a.1);
                plain::column_max(&w, shift, 3, &mut b.0, &mut b.1);
                prop_assert_eq!(a, b);
            }
            let cells: Vec<u64> = w.iter().map(|&x| x as u64).collect();
            let or = cells.iter().fold(0, |a, b| a | b);
            prop_assert_eq!(survey(&cells), (or, cells.iter().filter(|c| **c > 0).count()));
            prop_assert_eq!(signed(&cells), &w[..]);
        }
    }
}
