//! The scans, eight lanes at a time.

use std::arch::x86_64::*;

use super::{RowOffer, SlackThreshold, plain};

#[target_feature(enable = "avx512f,avx512vl")]
fn load(s: &[i64], k: usize) -> __m512i {
    debug_assert!(k + 8 <= s.len());
    // SAFETY: every caller's loop runs while k + 8 <= n, and n is the length of all slices of a
    // scan, as its front has checked; an unaligned load needs no more.
    unsafe { _mm512_loadu_si512(s.as_ptr().add(k).cast()) }
}

/// As [`load`], with zeros in the lanes that are not in `mask`.
#[target_feature(enable = "avx512f,avx512vl")]
fn load_some(s: &[i64], k: usize, mask: __mmask8) -> __m512i {
    debug_assert!(mask == 0 || k + mask.count_ones() as usize <= s.len());
    // SAFETY: every caller's mask comes from `rest`, which has no lanes behind the end of a scan;
    // lanes that are masked out are not read.
    unsafe { _mm512_maskz_loadu_epi64(mask, s.as_ptr().wrapping_add(k).cast()) }
}

/// The lanes at `k` of a scan of `n`.
fn rest(k: usize, n: usize) -> __mmask8 {
    if k + 8 <= n { 0xff } else { (1u32 << n.saturating_sub(k)).wrapping_sub(1) as u8 }
}

#[target_feature(enable = "avx512f,avx512vl")]
fn store(s: &mut [i64], k: usize, mask: __mmask8, x: __m512i) {
    debug_assert!(mask == 0 || k + 8 - mask.leading_zeros() as usize <= s.len());
    // SAFETY: as in `load` and `load_some`: the mask has no lanes behind the end; the slice is
    // borrowed for writing.
    unsafe { _mm512_mask_storeu_epi64(s.as_mut_ptr().wrapping_add(k), mask, x) }
}

/// The best and the second best of all lanes, of each of which both are given.
#[target_feature(enable = "avx512f,avx512vl")]
fn join_best(first: [__m512i; 2], second: [__m512i; 2]) -> (i64, i64) {
    let (a, b) = (_mm512_max_epi64(first[0], first[1]), _mm512_max_epi64(second[0], second[1]));
    let b = _mm512_max_epi64(b, _mm512_min_epi64(first[0], first[1]));
    let (a, a2) = (_mm512_castsi512_si256(a), _mm512_extracti64x4_epi64(a, 1));
    let (b, b2) = (_mm512_castsi512_si256(b), _mm512_extracti64x4_epi64(b, 1));
    let (a, b) = (
        _mm256_max_epi64(a, a2),
        _mm256_max_epi64(_mm256_max_epi64(b, b2), _mm256_min_epi64(a, a2)),
    );
    let (a, a2) = (_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    let (b, b2) = (_mm256_castsi256_si128(b), _mm256_extracti128_si256(b, 1));
    let (a, b) = (_mm_max_epi64(a, a2), _mm_max_epi64(_mm_max_epi64(b, b2), _mm_min_epi64(a, a2)));
    let (a2, b2) = (_mm_unpackhi_epi64(a, a), _mm_unpackhi_epi64(b, b));
    let (a, b) = (_mm_max_epi64(a, a2), _mm_max_epi64(_mm_max_epi64(b, b2), _mm_min_epi64(a, a2)));
    (_mm_cvtsi128_si64(a), _mm_cvtsi128_si64(b))
}

/// The least of all lanes.
#[target_feature(enable = "avx512f,avx512vl")]
fn join_least(least: [__m512i; 2]) -> __m128i {
    let a = _mm512_min_epi64(least[0], least[1]);
    let a = _mm256_min_epi64(_mm512_castsi512_si256(a), _mm512_extracti64x4_epi64(a, 1));
    let a = _mm_min_epi64(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    _mm_min_epi64(a, _mm_unpackhi_epi64(a, a))
}

/// The smallest place of a lane that has the value.
#[target_feature(enable = "avx512f,avx512vl")]
fn lane_of(value: __m128i, lanes: [__m512i; 2], at: [__m512i; 2]) -> usize {
    let value = _mm512_broadcastq_epi64(value);
    let equal =
        [_mm512_cmpeq_epi64_mask(lanes[0], value), _mm512_cmpeq_epi64_mask(lanes[1], value)];
    let mut places = [0; 16];
    store(&mut places, 0, 0xff, at[0]);
    store(&mut places, 8, 0xff, at[1]);
    let both = u16::from_le_bytes(equal);
    // Nearly always one lane: then nothing has to be compared.
    if both & (both - 1) == 0 {
        return places[both.trailing_zeros() as usize] as usize;
    }
    _mm512_mask_reduce_min_epi64(equal[0], at[0]).min(_mm512_mask_reduce_min_epi64(equal[1], at[1]))
        as usize
}

/// Four vectors of columns at a time stay in registers over all rows.
#[target_feature(enable = "avx512f,avx512vl")]
pub(super) fn column_max(w: &[i64], shift: u32, v: &mut [i64], best: &mut [i64]) {
    const WIDTH: usize = 4;
    let (by, n) = (_mm_cvtsi64_si128(shift.into()), v.len());
    for begin in (0..n).step_by(8 * WIDTH) {
        let k: [usize; WIDTH] = std::array::from_fn(|l| begin + 8 * l);
        let some = k.map(|k| rest(k, n));
        let (mut most, mut at) =
            ([_mm512_set1_epi64(i64::MIN); WIDTH], [_mm512_setzero_si512(); WIDTH]);
        for (i, row) in (0..).zip(w.chunks_exact(n)) {
            let own = _mm512_set1_epi64(i);
            for l in 0..WIDTH {
                let x = _mm512_sll_epi64(load_some(row, k[l], some[l]), by);
                let more = _mm512_cmpgt_epi64_mask(x, most[l]);
                most[l] = _mm512_max_epi64(most[l], x);
                at[l] = _mm512_mask_mov_epi64(at[l], more, own);
            }
        }
        for l in 0..WIDTH {
            store(v, k[l], some[l], most[l]);
            if !w.is_empty() {
                store(best, k[l], some[l], at[l]);
            }
        }
    }
}

#[target_feature(enable = "avx512f,avx512vl")]
pub(super) fn two_best(w: &[i64], shift: u32, v: &[i64]) -> (i64, i64) {
    let by = _mm_cvtsi64_si128(shift.into());
    let low = _mm512_set1_epi64(i64::MIN);
    // Two sets of lanes, so that one does not wait for the other.
    let (mut first, mut second) = ([low; 2], [low; 2]);
    let mut k = 0;
    while k + 16 <= w.len() {
        for l in 0..2 {
            let x = _mm512_sub_epi64(_mm512_sll_epi64(load(w, k + 8 * l), by), load(v, k + 8 * l));
            second[l] = _mm512_max_epi64(second[l], _mm512_min_epi64(x, first[l]));
            first[l] = _mm512_max_epi64(first[l], x);
        }
        k += 16;
    }
    for l in 0..2 {
        let (k, some) = (k + 8 * l, rest(k + 8 * l, w.len()));
        if some != 0 {
            let x = _mm512_sub_epi64(
                _mm512_sll_epi64(load_some(w, k, some), by),
                load_some(v, k, some),
            );
            let x = _mm512_mask_mov_epi64(low, some, x);
            second[l] = _mm512_max_epi64(second[l], _mm512_min_epi64(x, first[l]));
            first[l] = _mm512_max_epi64(first[l], x);
        }
    }
    join_best(first, second)
}

#[target_feature(enable = "avx512f,avx512vl")]
pub(super) fn best(w: &[i64], shift: u32, v: &[i64]) -> i64 {
    let by = _mm_cvtsi64_si128(shift.into());
    let low = _mm512_set1_epi64(i64::MIN);
    let mut most = [low; 2];
    let mut k = 0;
    while k + 16 <= w.len() {
        for (l, most) in most.iter_mut().enumerate() {
            let x = _mm512_sub_epi64(_mm512_sll_epi64(load(w, k + 8 * l), by), load(v, k + 8 * l));
            *most = _mm512_max_epi64(*most, x);
        }
        k += 16;
    }
    for (l, most) in most.iter_mut().enumerate() {
        let (k, some) = (k + 8 * l, rest(k + 8 * l, w.len()));
        if some != 0 {
            let x = _mm512_sub_epi64(
                _mm512_sll_epi64(load_some(w, k, some), by),
                load_some(v, k, some),
            );
            *most = _mm512_mask_max_epi64(*most, some, *most, x);
        }
    }
    _mm512_reduce_max_epi64(_mm512_max_epi64(most[0], most[1]))
}

#[target_feature(enable = "avx512f,avx512vl")]
pub(super) fn place_of(value: i64, w: &[i64], shift: u32, v: &[i64]) -> Option<usize> {
    let (by, wanted) = (_mm_cvtsi64_si128(shift.into()), _mm512_set1_epi64(value));
    let mut k = 0;
    while k + 8 <= w.len() {
        let x = _mm512_sub_epi64(_mm512_sll_epi64(load(w, k), by), load(v, k));
        let found = _mm512_cmpeq_epi64_mask(x, wanted);
        if found != 0 {
            return Some(k + found.trailing_zeros() as usize);
        }
        k += 8;
    }
    plain::place_of(value, &w[k..], shift, &v[k..]).map(|j| k + j)
}

/// As one vector, which a scan right after gets from the store buffer; a single number in it would
/// have to reach the cache first.
#[target_feature(enable = "avx512f,avx512vl")]
pub(super) fn raise(v: &mut [i64], j: usize, by: i64) {
    let k = j & !7;
    if k + 8 > v.len() {
        v[j] += by;
        return;
    }
    let more = _mm512_maskz_set1_epi64(1 << (j - k), by);
    let sum = _mm512_add_epi64(load(v, k), more);
    // SAFETY: k + 8 <= v.len(), as was looked at; an unaligned store needs no more.
    unsafe { _mm512_storeu_si512(v.as_mut_ptr().add(k).cast(), sum) }
}

/// The compiler makes vector code of this plain loop.
#[target_feature(enable = "avx512f,avx512vl")]
pub(super) fn lift(w: &[i64], shift: u32, base: i64, v: &mut [i64]) -> bool {
    plain::lift(w, shift, base, v)
}

#[target_feature(enable = "avx512f,avx512vl")]
pub(super) fn relax(o: RowOffer, key: &mut [i64], from: &mut [i64]) -> (i64, usize) {
    let (by, own, base) =
        (_mm_cvtsi64_si128(o.shift.into()), _mm512_set1_epi64(o.i), _mm512_set1_epi64(o.base));
    let (mut least, mut at) = ([_mm512_set1_epi64(i64::MAX); 2], [_mm512_setzero_si512(); 2]);
    let mut place = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    let mut k = 0;
    while k + 16 <= o.w.len() {
        for l in 0..2 {
            let q = k + 8 * l;
            let d = _mm512_sub_epi64(
                _mm512_add_epi64(base, load(o.v, q)),
                _mm512_sll_epi64(load(o.w, q), by),
            );
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
    for l in 0..2 {
        let (q, some) = (k + 8 * l, rest(k + 8 * l, o.w.len()));
        if some != 0 {
            let (w, v) = (load_some(o.w, q, some), load_some(o.v, q, some));
            let (d, old) = (
                _mm512_sub_epi64(_mm512_add_epi64(base, v), _mm512_sll_epi64(w, by)),
                load_some(key, q, some),
            );
            let less = _mm512_mask_cmplt_epi64_mask(some, d, old);
            store(key, q, less, d);
            store(from, q, less, own);
            let new = _mm512_min_epi64(d, old);
            let nearer = _mm512_mask_cmplt_epi64_mask(some, new, least[l]);
            least[l] = _mm512_mask_mov_epi64(least[l], nearer, new);
            at[l] = _mm512_mask_mov_epi64(at[l], nearer, place);
            place = _mm512_add_epi64(place, _mm512_set1_epi64(8));
        }
    }
    let d = join_least(least);
    (_mm_cvtsi128_si64(d), lane_of(d, least, at))
}

#[target_feature(enable = "avx512f,avx512vl")]
pub(super) fn gather(row: &[u64], columns: &mut Vec<u32>, bytes: &mut Vec<u64>) -> u64 {
    // Eight places more than can be filled: whole vectors are written.
    columns.reserve(row.len() + 8);
    bytes.reserve(row.len() + 8);
    let first = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
    let (chunks, rest) = row.as_chunks::<8>();
    let (mut bits, mut filled) = (_mm512_setzero_si512(), bytes.len());
    for (k, chunk) in chunks.iter().enumerate() {
        // SAFETY: a chunk is eight cells, and an unaligned load needs no more.
        let x = unsafe { _mm512_loadu_si512(chunk.as_ptr().cast()) };
        let some = _mm512_test_epi64_mask(x, x);
        if some == 0 {
            continue;
        }
        bits = _mm512_or_si512(bits, x);
        let place = _mm256_add_epi32(first, _mm256_set1_epi32(8 * k as i32));
        let (x, place) =
            (_mm512_maskz_compress_epi64(some, x), _mm256_maskz_compress_epi32(some, place));
        // SAFETY: both lists have room for this row and eight more, no more than the row's cells
        // are counted as filled, and eight places from there are written.
        unsafe {
            _mm512_storeu_si512(bytes.as_mut_ptr().add(filled).cast(), x);
            _mm256_storeu_si256(columns.as_mut_ptr().add(filled).cast(), place);
        }
        filled += some.count_ones() as usize;
    }
    // SAFETY: all places up to `filled` were written above, or held before; both lists have as
    // many.
    unsafe {
        bytes.set_len(filled);
        columns.set_len(filled);
    }
    let begin = columns.len();
    let rest_bits = plain::gather(rest, columns, bytes);
    columns[begin..].iter_mut().for_each(|j| *j += (row.len() - rest.len()) as u32);
    _mm512_reduce_or_epi64(bits).cast_unsigned() | rest_bits
}

#[target_feature(enable = "avx512f,avx512vl")]
pub(super) fn at_least(row: &[u64], threshold: u64, bits: &mut [u64]) {
    let least = _mm512_set1_epi64(threshold.cast_signed());
    for (line, word) in row.chunks(64).zip(bits) {
        let (chunks, rest) = line.as_chunks::<8>();
        let mut some = 0;
        for (k, chunk) in chunks.iter().enumerate() {
            // SAFETY: a chunk is eight cells, and an unaligned load needs no more.
            let x = unsafe { _mm512_loadu_si512(chunk.as_ptr().cast()) };
            some |= u64::from(_mm512_cmpge_epu64_mask(x, least)) << (8 * k);
        }
        *word = rest
            .iter()
            .zip(8 * chunks.len()..)
            .fold(some, |some, (&c, k)| some | u64::from(c >= threshold) << k);
    }
}

#[target_feature(enable = "avx512f,avx512vl")]
pub(super) fn largest_of(row: &[u64], bits: &[u64]) -> u64 {
    let (mut most, mut rest_of_row) = (_mm512_setzero_si512(), 0);
    for (line, &word) in row.chunks(64).zip(bits) {
        let (chunks, rest) = line.as_chunks::<8>();
        for (k, chunk) in chunks.iter().enumerate() {
            // SAFETY: a chunk is eight cells, and an unaligned load needs no more.
            let x = unsafe { _mm512_loadu_si512(chunk.as_ptr().cast()) };
            most = _mm512_mask_max_epu64(most, (word >> (8 * k)) as u8, most, x);
        }
        let word = word.checked_shr(8 * chunks.len() as u32).unwrap_or(0);
        rest_of_row = plain::largest_of(
            rest,
            if rest.is_empty() { &[] } else { std::slice::from_ref(&word) },
        )
        .max(rest_of_row);
    }
    _mm512_reduce_max_epu64(most).max(rest_of_row)
}

#[target_feature(enable = "avx512f,avx512vl")]
pub(super) fn bits(cells: &[u64]) -> u64 {
    let mut bits = [_mm512_setzero_si512(); 4];
    let (chunks, rest) = cells.as_chunks::<32>();
    for chunk in chunks {
        for (l, bits) in bits.iter_mut().enumerate() {
            // SAFETY: a chunk is thirty-two cells, and l < 4; an unaligned load needs no more.
            *bits = _mm512_or_si512(*bits, unsafe {
                _mm512_loadu_si512(chunk.as_ptr().add(8 * l).cast())
            });
        }
    }
    let all = _mm512_or_si512(_mm512_or_si512(bits[0], bits[1]), _mm512_or_si512(bits[2], bits[3]));
    _mm512_reduce_or_epi64(all).cast_unsigned() | plain::bits(rest)
}

#[target_feature(enable = "avx512f,avx512vl")]
pub(super) fn edges(
    row: &[i64],
    y: &[i64],
    near: &[i64],
    bar: SlackThreshold<i64>,
    found: &mut Vec<(u32, i64)>,
) {
    let (least, own) = (_mm512_set1_epi64(bar.least), _mm512_set1_epi64(bar.own));
    let (most, most_outer) = (_mm512_set1_epi64(bar.most), _mm512_set1_epi64(bar.most_outer));
    for k in (0..row.len()).step_by(8) {
        let some = rest(k, row.len());
        let (w, y, near) =
            (load_some(row, k, some), load_some(y, k, some), load_some(near, k, some));
        let outer = _mm512_cmpeq_epi64_mask(near, _mm512_set1_epi64(i64::MAX));
        let most = _mm512_mask_mov_epi64(_mm512_min_epi64(near, most), outer, most_outer);
        let heavy = _mm512_mask_cmpge_epi64_mask(some, w, least);
        let slack = _mm512_sub_epi64(y, _mm512_add_epi64(w, w));
        let mut reach = _mm512_mask_cmpgt_epi64_mask(heavy, _mm512_sub_epi64(most, slack), own);
        while reach != 0 {
            let at = k + reach.trailing_zeros() as usize;
            found.push((at as u32, row[at]));
            reach &= reach - 1;
        }
    }
}

/// Eight rows of eight numbers as columns.
#[target_feature(enable = "avx512f,avx512vl")]
fn turned(r: [__m512i; 8]) -> [__m512i; 8] {
    let mut columns = [_mm512_setzero_si512(); 8];
    for odd in 0..2 {
        // Of each two rows the pairs of columns 0, 2, 4 and 6, or those of 1, 3, 5 and 7.
        let mut pairs = [_mm512_setzero_si512(); 4];
        for (k, pair) in pairs.iter_mut().enumerate() {
            let (a, b) = (r[2 * k], r[2 * k + 1]);
            *pair =
                if odd == 0 { _mm512_unpacklo_epi64(a, b) } else { _mm512_unpackhi_epi64(a, b) };
        }
        // Every second pair of two lists of pairs, then of the lists that this gives.
        let upper = [
            _mm512_shuffle_i64x2(pairs[0], pairs[1], 0x88),
            _mm512_shuffle_i64x2(pairs[0], pairs[1], 0xdd),
        ];
        let lower = [
            _mm512_shuffle_i64x2(pairs[2], pairs[3], 0x88),
            _mm512_shuffle_i64x2(pairs[2], pairs[3], 0xdd),
        ];
        for two in 0..2 {
            columns[2 * two + odd] = _mm512_shuffle_i64x2(upper[two], lower[two], 0x88);
            columns[2 * two + odd + 4] = _mm512_shuffle_i64x2(upper[two], lower[two], 0xdd);
        }
    }
    columns
}

/// Tiles of eight by eight, each with its mirror image.
#[target_feature(enable = "avx512f,avx512vl")]
pub(super) fn both_ways(n: usize, cells: &[i64], shift: u32, sums: &mut Vec<i64>) {
    let by = _mm_cvtsi64_si128(shift.into());
    sums.resize(n * n, 0);
    for top in (0..n).step_by(8) {
        let tall = rest(top, n);
        for left in (0..=top).step_by(8) {
            let wide = rest(left, n);
            let (mut here, mut there) = ([_mm512_setzero_si512(); 8], [_mm512_setzero_si512(); 8]);
            for (k, row) in here.iter_mut().zip(cells[top * n..].chunks_exact(n)) {
                *k = load_some(row, left, wide);
            }
            for (k, row) in there.iter_mut().zip(cells[left * n..].chunks_exact(n)) {
                *k = load_some(row, top, tall);
            }
            let back = turned(there);
            for k in 0..8 {
                here[k] = _mm512_sll_epi64(_mm512_add_epi64(here[k], back[k]), by);
            }
            for (&x, row) in here.iter().zip(sums[top * n..].chunks_exact_mut(n)) {
                store(row, left, wide, x);
            }
            for (&x, row) in turned(here).iter().zip(sums[left * n..].chunks_exact_mut(n)) {
                store(row, top, tall, x);
            }
        }
    }
}
