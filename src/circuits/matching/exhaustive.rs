//! Every matrix of five racks over few weights, against all matchings. Ignored tests for a release build:
//! `cargo test --release --lib exhaustive -- --ignored --nocapture`.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{bipartite, edmonds};
use crate::circuits::Matching;
use crate::demand::DemandMatrix;
use crate::ids::RackId;

/// Racks.
const R: usize = 5;

/// Shares `0..parts` out to a thread a processor; the sum of what `work` counts.
fn on_all_processors(parts: u64, work: impl Fn(u64) -> u64 + Sync) -> u64 {
    let (next, sum) = (AtomicU64::new(0), AtomicU64::new(0));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|s| {
        for _ in 0..threads {
            s.spawn(|| {
                while let Some(k) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&k| k < parts) {
                    sum.fetch_add(work(k), Ordering::Relaxed);
                }
            });
        }
    });
    sum.into_inner()
}

/// The bytes of a matching that is lawful: no port twice, no rack with itself, no pair without demand in `carries`.
fn lawful_weight(m: &Matching, d: &DemandMatrix, carries: impl Fn(RackId, RackId) -> bool) -> u64 {
    let mut taken = 0u32;
    m.pairs()
        .map(|(i, j)| {
            assert!(i != j && taken & (1 << j.0) == 0 && carries(i, j), "{m:?} on {d:?}");
            taken |= 1 << j.0;
            d.get(i, j)
        })
        .sum()
}

/// For duplex circuits a matrix counts by its sums `D(i,j) + D(j,i)` only, so that all 4^20 matrices over {0,1,2,3} are the 7^10 graphs
/// over 0..=6. Which solver is asked depends on the number of cells with demand as well: few cells are solved by both.
#[test]
#[ignore = "over three minutes on two cores in a release build"]
fn every_duplex_matrix_of_five_racks_over_four_weights() {
    let pairs: Vec<(usize, usize)> = (0..R).flat_map(|i| (i + 1..R).map(move |j| (i, j))).collect();
    let at = |i: usize, j: usize| pairs.iter().position(|&p| p == (i.min(j), i.max(j))).unwrap();
    // One rack stays alone, the others are two pairs in one of three ways.
    let matchings: Vec<[usize; 2]> = (0..R)
        .flat_map(|alone| {
            let o: Vec<usize> = (0..R).filter(|&k| k != alone).collect();
            [[at(o[0], o[1]), at(o[2], o[3])], [at(o[0], o[2]), at(o[1], o[3])], [at(o[0], o[3]), at(o[1], o[2])]]
        })
        .collect();
    let seen = on_all_processors(7 * 7, |first| {
        let (mut one_way, mut split) = (DemandMatrix::zero(R), DemandMatrix::zero(R));
        for rest in 0..7u64.pow(8) {
            let (mut code, mut w) = (rest * 49 + first, [0u64; 10]);
            for (w, &(i, j)) in w.iter_mut().zip(&pairs) {
                *w = code % 7;
                code /= 7;
                one_way.set(RackId::from(i), RackId::from(j), *w);
                split.set(RackId::from(i), RackId::from(j), *w / 2);
                split.set(RackId::from(j), RackId::from(i), w.div_ceil(2));
            }
            let best = matchings.iter().map(|m| w[m[0]] + w[m[1]]).max().unwrap();
            let few = w.iter().filter(|w| **w > 0).count() <= 3;
            for d in [&one_way, &split].into_iter().take(1 + usize::from(few)) {
                let m = edmonds(d, None);
                assert_eq!(lawful_weight(&m, d, |i, j| m.output(j) == Some(i) && d.get(i, j) + d.get(j, i) > 0), best, "{d:?}");
            }
        }
        7u64.pow(8)
    });
    assert_eq!(seen, 7u64.pow(10));
}

/// What an input may send to four others over `0..base`, the heaviest first: what does not change when racks are renamed.
fn kind(cells: [u64; 4]) -> [u64; 4] {
    let mut kind = cells;
    kind.sort_unstable();
    kind.reverse();
    kind
}

/// All rows over `0..base`, by kind.
fn rows(base: u64) -> Vec<([u64; 4], [u64; 4])> {
    let digits = |k: u64| [k % base, k / base % base, k / base / base % base, k / base.pow(3)];
    let mut all: Vec<_> = (0..base.pow(4)).map(|k| (kind(digits(k)), digits(k))).collect();
    all.sort_unstable();
    all
}

/// Puts a row's four cells beside the diagonal.
fn put(d: &mut DemandMatrix, i: usize, cells: [u64; 4]) {
    let others = (0..R).filter(|&j| j != i);
    others.zip(cells).for_each(|(j, x)| d.set(RackId::from(i), RackId::from(j), x));
}

/// By set of outputs: the most that inputs so far and input `i` carry to them.
fn with_row(best: &[u64; 32], d: &DemandMatrix, i: usize) -> [u64; 32] {
    let row = d.row(RackId::from(i));
    std::array::from_fn(|set| {
        let joined = (0..R).filter(|&j| set & (1 << j) != 0).map(|j| row[j] + best[set & !(1 << j)]);
        joined.fold(best[set], u64::max)
    })
}

/// Inputs `i..` in order of kind, the first of them no lighter in kind than row number `least`.
fn matrices_from(rows: &[([u64; 4], [u64; 4])], least: usize, i: usize, d: &mut DemandMatrix, best: &[u64; 32]) -> u64 {
    let mut seen = 0;
    let begin = rows.partition_point(|r| r.0 < rows[least].0);
    for (k, &(_, cells)) in rows.iter().enumerate().skip(begin) {
        put(d, i, cells);
        if i + 1 < R {
            let best = with_row(best, d, i);
            seen += matrices_from(rows, k, i + 1, d, &best);
        } else {
            let row = d.row(RackId::from(i));
            let most = (0..R).map(|j| row[j] + best[31 & !(1 << j)]).fold(best[31], u64::max);
            let m = bipartite(d, None);
            assert_eq!(lawful_weight(&m, d, |i, j| d.get(i, j) > 0), most, "{d:?}");
            seen += 1;
        }
    }
    seen
}

/// All matrices of five racks over `0..base` but for the racks' names; how many that were.
fn up_to_names(base: u64) -> u64 {
    let rows = rows(base);
    on_all_processors(rows.len() as u64, |first| {
        let mut d = DemandMatrix::zero(R);
        put(&mut d, 0, rows[first as usize].1);
        let best = with_row(&[0; 32], &d, 0);
        matrices_from(&rows, first as usize, 1, &mut d, &best)
    })
}

/// Five inputs in order of their five kinds: so many choices of a row for each kind, summed over all orders.
fn ordered(base: u64) -> u64 {
    let rows = rows(base);
    let sizes: Vec<u64> = rows.chunk_by(|a, b| a.0 == b.0).map(|same| same.len() as u64).collect();
    // By kind at least which the next may be: the matrices of the inputs so far.
    let mut of = vec![0; sizes.len()];
    of[0] = 1;
    for _ in 0..R {
        let mut sum = 0;
        of = of
            .iter()
            .zip(&sizes)
            .map(|(n, size)| {
                sum += n;
                sum * size
            })
            .collect();
    }
    of.iter().sum()
}

#[test]
fn every_matrix_of_five_racks_over_two_weights_but_for_names() {
    assert_eq!(up_to_names(2), ordered(2));
}

#[test]
#[ignore = "19 s on two cores in a release build"]
fn every_matrix_of_five_racks_over_three_weights_but_for_names() {
    assert_eq!(up_to_names(3), ordered(3));
}

#[test]
#[ignore = "1.7 hours on two cores in a release build, by that of three weights and the number of matrices"]
fn every_matrix_of_five_racks_over_four_weights_but_for_names() {
    assert_eq!(up_to_names(4), ordered(4));
}
