//! The scans, four lanes at a time.

use std::arch::x86_64::*;

use super::{RowOffer, plain};

#[target_feature(enable = "avx2")]
fn load(s: &[i64], k: usize) -> __m256i {
    debug_assert!(k + 4 <= s.len());
    // SAFETY: every caller's loop runs while k + 4 <= n, and n is the length of all slices of a
    // scan, as its front has checked; an unaligned load needs no more.
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
pub(super) fn column_max(w: &[i64], shift: u32, v: &mut [i64], best: &mut [i64]) {
    let (by, n) = (_mm_cvtsi64_si128(shift.into()), v.len());
    v.fill(i64::MIN);
    for (i, row) in (0..).zip(w.chunks_exact(n)) {
        let own = _mm256_set1_epi64x(i);
        let mut k = 0;
        while k + 4 <= n {
            let (x, old) = (_mm256_sll_epi64(load(row, k), by), load(v, k));
            let more = _mm256_cmpgt_epi64(x, old);
            store(v, k, select(more, x, old));
            let kept = select(more, own, load(best, k));
            store(best, k, kept);
            k += 4;
        }
        plain::column_max_from(k, row, shift, i, v, best);
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn two_best(w: &[i64], shift: u32, v: &[i64]) -> (i64, i64) {
    let by = _mm_cvtsi64_si128(shift.into());
    let low = _mm256_set1_epi64x(i64::MIN);
    // Two sets of lanes, so that one does not wait for the other.
    let (mut first, mut second) = ([low; 2], [low; 2]);
    let mut k = 0;
    while k + 8 <= w.len() {
        for l in 0..2 {
            let x = _mm256_sub_epi64(_mm256_sll_epi64(load(w, k + 4 * l), by), load(v, k + 4 * l));
            let more = _mm256_cmpgt_epi64(x, first[l]);
            let beaten = select(more, first[l], x);
            second[l] = select(_mm256_cmpgt_epi64(beaten, second[l]), beaten, second[l]);
            first[l] = select(more, x, first[l]);
        }
        k += 8;
    }
    let (first, second) =
        ([lanes(first[0]), lanes(first[1])], [lanes(second[0]), lanes(second[1])]);
    let of_lanes = first.as_flattened().iter().zip(second.as_flattened());
    let join = |(a, b): (i64, i64), (x, y): (i64, i64)| (a.max(x), b.max(y).max(a.min(x)));
    join(
        of_lanes.fold((i64::MIN, i64::MIN), |so_far, (&x, &y)| join(so_far, (x, y))),
        plain::two_best(&w[k..], shift, &v[k..]),
    )
}

#[target_feature(enable = "avx2")]
pub(super) fn best(w: &[i64], shift: u32, v: &[i64]) -> i64 {
    let by = _mm_cvtsi64_si128(shift.into());
    let mut most = [_mm256_set1_epi64x(i64::MIN); 2];
    let mut k = 0;
    while k + 8 <= w.len() {
        for (l, most) in most.iter_mut().enumerate() {
            let x = _mm256_sub_epi64(_mm256_sll_epi64(load(w, k + 4 * l), by), load(v, k + 4 * l));
            *most = select(_mm256_cmpgt_epi64(x, *most), x, *most);
        }
        k += 8;
    }
    let of_lanes = [lanes(most[0]), lanes(most[1])];
    of_lanes.as_flattened().iter().fold(plain::best(&w[k..], shift, &v[k..]), |a, &b| a.max(b))
}

#[target_feature(enable = "avx2")]
pub(super) fn place_of(value: i64, w: &[i64], shift: u32, v: &[i64]) -> Option<usize> {
    let (by, wanted) = (_mm_cvtsi64_si128(shift.into()), _mm256_set1_epi64x(value));
    let mut k = 0;
    while k + 4 <= w.len() {
        let x = _mm256_sub_epi64(_mm256_sll_epi64(load(w, k), by), load(v, k));
        let found = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(x, wanted)));
        if found != 0 {
            return Some(k + found.trailing_zeros() as usize);
        }
        k += 4;
    }
    plain::place_of(value, &w[k..], shift, &v[k..]).map(|j| k + j)
}

/// The compiler makes vector code of this plain loop.
#[target_feature(enable = "avx2")]
pub(super) fn lift(w: &[i64], shift: u32, base: i64, v: &mut [i64]) -> bool {
    plain::lift(w, shift, base, v)
}

#[target_feature(enable = "avx2")]
pub(super) fn relax(o: RowOffer, key: &mut [i64], from: &mut [i64]) -> (i64, usize) {
    let (by, own, base) =
        (_mm_cvtsi64_si128(o.shift.into()), _mm256_set1_epi64x(o.i), _mm256_set1_epi64x(o.base));
    let (mut least, mut at) = ([_mm256_set1_epi64x(i64::MAX); 2], [_mm256_setzero_si256(); 2]);
    let mut place = _mm256_set_epi64x(3, 2, 1, 0);
    let mut k = 0;
    while k + 8 <= o.w.len() {
        for l in 0..2 {
            let q = k + 4 * l;
            let d = _mm256_sub_epi64(
                _mm256_add_epi64(base, load(o.v, q)),
                _mm256_sll_epi64(load(o.w, q), by),
            );
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

/// The least over the lanes; the smallest place among equals.
fn join_least(least: &[i64], at: &[i64]) -> (i64, usize) {
    let lanes = least.iter().zip(at).map(|(a, k)| (*a, *k as usize));
    lanes.min().unwrap_or((i64::MAX, 0))
}
