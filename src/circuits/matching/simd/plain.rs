//! The scans as anybody would write them.

use super::super::num::Num;
use super::{RowOffer, SlackThreshold};

pub(super) fn column_max(w: &[i64], shift: u32, v: &mut [i64], best: &mut [i64]) {
    v.fill(i64::MIN);
    for (i, row) in (0..).zip(w.chunks_exact(v.len())) {
        column_max_from(0, row, shift, i, v, best);
    }
}

/// One row's part, from place `k` on.
pub(super) fn column_max_from(
    k: usize,
    row: &[i64],
    shift: u32,
    i: i64,
    v: &mut [i64],
    best: &mut [i64],
) {
    for ((w, v), best) in row[k..].iter().zip(&mut v[k..]).zip(&mut best[k..]) {
        let x = w << shift;
        if x > *v {
            (*v, *best) = (x, i);
        }
    }
}

pub(super) fn two_best(w: &[i64], shift: u32, v: &[i64]) -> (i64, i64) {
    let (mut a, mut b) = (i64::MIN, i64::MIN);
    for (w, v) in w.iter().zip(v) {
        let x = (w << shift) - v;
        (a, b) = (a.max(x), b.max(a.min(x)));
    }
    (a, b)
}

pub(super) fn best(w: &[i64], shift: u32, v: &[i64]) -> i64 {
    w.iter().zip(v).map(|(w, v)| (w << shift) - v).max().unwrap_or(i64::MIN)
}

pub(super) fn place_of(value: i64, w: &[i64], shift: u32, v: &[i64]) -> Option<usize> {
    w.iter().zip(v).position(|(w, v)| (w << shift) - v == value)
}

#[inline(always)]
pub(super) fn lift(w: &[i64], shift: u32, base: i64, v: &mut [i64]) -> bool {
    let mut less = false;
    for (v, w) in v.iter_mut().zip(w) {
        let x = base + (w << shift);
        less |= *v < x;
        *v = x.max(*v);
    }
    less
}

pub(super) fn relax(o: RowOffer, key: &mut [i64], from: &mut [i64]) -> (i64, usize) {
    relax_from(0, o, key, from, (i64::MAX, 0))
}

/// Goes on after `so_far` at place `k`.
pub(super) fn relax_from(
    k: usize,
    o: RowOffer,
    key: &mut [i64],
    from: &mut [i64],
    so_far: (i64, usize),
) -> (i64, usize) {
    let (mut least, mut at) = so_far;
    let offered = o.w[k..].iter().zip(&o.v[k..]);
    for (j, ((w, v), (key, from))) in
        (k..).zip(offered.zip(key[k..].iter_mut().zip(&mut from[k..])))
    {
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

/// Most chunks of a sparse row are empty, and eight cells are looked at as fast as one.
pub(super) fn gather(row: &[u64], columns: &mut Vec<u32>, bytes: &mut Vec<u64>) -> u64 {
    let mut bits = 0;
    for (k, chunk) in row.chunks(8).enumerate().filter(|c| c.1.iter().fold(0, |a, b| a | b) != 0) {
        for (j, &b) in chunk.iter().enumerate().filter(|c| *c.1 > 0) {
            columns.push((8 * k + j) as u32);
            bytes.push(b);
            bits |= b;
        }
    }
    bits
}

pub(super) fn at_least(row: &[u64], threshold: u64, bits: &mut [u64]) {
    for (line, word) in row.chunks(64).zip(bits) {
        *word = line.iter().zip(0..).fold(0, |some, (&c, k)| some | u64::from(c >= threshold) << k);
    }
}

pub(super) fn largest_of(row: &[u64], bits: &[u64]) -> u64 {
    let of_line = |(line, &bits): (&[u64], &u64)| {
        line.iter().zip(0..).map(|(&c, k)| c & (bits >> k & 1).wrapping_neg()).max()
    };
    row.chunks(64).zip(bits).filter_map(of_line).max().unwrap_or(0)
}

pub(super) fn bits(cells: &[u64]) -> u64 {
    let mut bits = [0u64; 8];
    let (chunks, rest) = cells.as_chunks::<8>();
    for c in chunks {
        (0..8).for_each(|l| bits[l] |= c[l]);
    }
    bits.iter().chain(rest).fold(0, |a, b| a | b)
}

pub(in super::super) fn edges<N: Num>(
    row: &[N],
    y: &[N],
    near: &[N],
    bar: SlackThreshold<N>,
    found: &mut Vec<(u32, N)>,
) {
    let reach = row
        .iter()
        .zip(y)
        .zip(near)
        .zip(0..)
        .filter(|&(((&w, &y), &near), _)| bar.is_reached(w, y, near));
    found.extend(reach.map(|(((&w, _), _), v)| (v, w)));
}

/// Tile by tile, so that a tile and its mirror image stay in the nearest cache.
pub(in super::super) fn both_ways<N: Num>(n: usize, cells: &[u64], shift: u32, sums: &mut Vec<N>) {
    const TILE: usize = 16;
    sums.resize(n * n, N::ZERO);
    for top in (0..n).step_by(TILE) {
        for left in (0..=top).step_by(TILE) {
            for i in top..(top + TILE).min(n) {
                for j in left..(left + TILE).min(i + 1) {
                    let sum =
                        N::shifted(cells[i * n + j], shift) + N::shifted(cells[j * n + i], shift);
                    (sums[i * n + j], sums[j * n + i]) = (sum, sum);
                }
            }
        }
    }
}
