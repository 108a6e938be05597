//! Every matrix of five racks over few weights, against all matchings. Ignored tests for a release
//! build: `cargo test --release --lib exhaustive -- --ignored --nocapture`.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Workspace;
use crate::Matching;
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
                while let Some(k) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&k| k < parts)
                {
                    sum.fetch_add(work(k), Ordering::Relaxed);
                }
            });
        }
    });
    sum.into_inner()
}

/// The bytes of a matching that is lawful: no port twice, no rack with itself, no pair without
/// demand in `carries`.
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

/// For duplex circuits a matrix counts by its sums `D(i,j) + D(j,i)` only, so that all `base^20`
/// matrices over `0..base` are the graphs over `0..2 * base - 1`. Which solver is asked depends on
/// the number of cells with demand as well: few cells are solved by both.
fn every_duplex_matrix(base: u64) {
    let sums = 2 * base - 1;
    let pairs: Vec<(usize, usize)> = (0..R).flat_map(|i| (i + 1..R).map(move |j| (i, j))).collect();
    let at = |i: usize, j: usize| pairs.iter().position(|&p| p == (i.min(j), i.max(j))).unwrap();
    // One rack stays alone, the others are two pairs in one of three ways.
    let matchings: Vec<[usize; 2]> = (0..R)
        .flat_map(|alone| {
            let o: Vec<usize> = (0..R).filter(|&k| k != alone).collect();
            [
                [at(o[0], o[1]), at(o[2], o[3])],
                [at(o[0], o[2]), at(o[1], o[3])],
                [at(o[0], o[3]), at(o[1], o[2])],
            ]
        })
        .collect();
    let seen = on_all_processors(sums.pow(2), |first| {
        let (mut one_way, mut split) = (DemandMatrix::zero(R), DemandMatrix::zero(R));
        let mut room = Workspace::default();
        for rest in 0..sums.pow(8) {
            let (mut code, mut w) = (rest * sums.pow(2) + first, [0u64; 10]);
            for (w, &(i, j)) in w.iter_mut().zip(&pairs) {
                *w = code % sums;
                code /= sums;
                one_way.set(RackId::from(i), RackId::from(j), *w);
                split.set(RackId::from(i), RackId::from(j), *w / 2);
                split.set(RackId::from(j), RackId::from(i), w.div_ceil(2));
            }
            let best = matchings.iter().map(|m| w[m[0]] + w[m[1]]).max().unwrap();
            let few = w.iter().filter(|w| **w > 0).count() <= 3;
            for d in [&one_way, &split].into_iter().take(1 + usize::from(few)) {
                let m = room.edmonds(d, None);
                assert_eq!(
                    lawful_weight(&m, d, |i, j| m.output(j) == Some(i)
                        && d.get(i, j) + d.get(j, i) > 0),
                    best,
                    "{d:?}"
                );
            }
        }
        sums.pow(8)
    });
    assert_eq!(seen, sums.pow(10));
}

#[test]
fn every_duplex_matrix_of_five_racks_over_two_weights() {
    every_duplex_matrix(2);
}

#[test]
#[ignore = "13 s of processor time in a release build"]
fn every_duplex_matrix_of_five_racks_over_three_weights() {
    every_duplex_matrix(3);
}

#[test]
#[ignore = "6.4 minutes of processor time in a release build"]
fn every_duplex_matrix_of_five_racks_over_four_weights() {
    every_duplex_matrix(4);
}

/// What an input may send to four others over `0..base`, the heaviest first: what does not change
/// when racks are renamed.
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
        let joined =
            (0..R).filter(|&j| set & (1 << j) != 0).map(|j| row[j] + best[set & !(1 << j)]);
        joined.fold(best[set], u64::max)
    })
}

/// All orders of `0..R`.
fn orders() -> Vec<[usize; R]> {
    let all = (0..R.pow(R as u32)).map(|k| std::array::from_fn(|i| k / R.pow(i as u32) % R));
    all.filter(|o: &[usize; R]| (0..R).all(|i| o.contains(&i))).collect()
}

/// A walk over the matrices whose inputs are in order of kind, of which it takes one of each set
/// that differ only in names.
struct MatrixWalk<'a> {
    rows: &'a [([u64; 4], [u64; 4])],
    /// By last input, and by the set of inputs of the same kind as the one before: how racks may be
    /// renamed so that later ones keep their names, and the kinds stay in order.
    renamings: &'a [Vec<Vec<[usize; R]>>],
    d: DemandMatrix,
    room: Workspace,
}

fn renamings() -> Vec<Vec<Vec<[usize; R]>>> {
    let alike =
        |ties: usize, a: usize, b: usize| (a.min(b) + 1..=a.max(b)).all(|k| ties & (1 << k) != 0);
    let fit = |o: &&[usize; R], last: usize, ties: usize| {
        (0..R).any(|i| o[i] != i)
            && (last + 1..R).all(|i| o[i] == i)
            && (0..R).all(|i| alike(ties, i, o[i]))
    };
    let all = orders();
    (0..R)
        .map(|last| {
            (0..1 << R)
                .map(|ties| all.iter().filter(|o| fit(o, last, ties)).copied().collect())
                .collect()
        })
        .collect()
}

impl MatrixWalk<'_> {
    /// Whether no renaming makes the inputs up to `last` come earlier in the alphabet.
    fn is_first(&self, last: usize, ties: usize) -> bool {
        self.renamings[last][ties].iter().all(|o| {
            let row = |i: usize| self.d.row(RackId::from(i));
            let renamed = (0..=last).flat_map(|i| (0..R).map(move |j| row(o[i])[o[j]]));
            renamed.ge((0..=last).flat_map(|i| row(i).iter().copied()))
        })
    }

    /// Inputs `i..`, the first of them no lighter in kind than row number `least`, which the one
    /// before has; how many matrices that were.
    fn from(&mut self, least: usize, i: usize, ties: usize, best: &[u64; 32]) -> u64 {
        let mut seen = 0;
        let rows = self.rows;
        let begin = rows.partition_point(|r| r.0 < rows[least].0);
        for (k, &(kind, cells)) in rows.iter().enumerate().skip(begin) {
            put(&mut self.d, i, cells);
            let ties = ties | usize::from(kind == rows[least].0) << i;
            if !self.is_first(i, ties) {
                continue;
            }
            if i + 1 < R {
                let best = with_row(best, &self.d, i);
                seen += self.from(k, i + 1, ties, &best);
            } else {
                self.check(best);
                seen += 1;
            }
        }
        seen
    }

    /// The last input completes the matrix: the solver against the best of all matchings.
    fn check(&mut self, best: &[u64; 32]) {
        let row = self.d.row(RackId::from(R - 1));
        let most = (0..R).map(|j| row[j] + best[31 & !(1 << j)]).fold(best[31], u64::max);
        let (m, d) = (self.room.bipartite(&self.d, None), &self.d);
        assert_eq!(lawful_weight(&m, d, |i, j| d.get(i, j) > 0), most, "{d:?}");
    }
}

/// Checks one matrix of five racks over `0..base` of each set that differ only in the racks' names;
/// how many that were.
fn up_to_names(base: u64) -> u64 {
    let (rows, renamings) = (rows(base), renamings());
    on_all_processors(rows.len() as u64, |first| {
        let first = first as usize;
        let mut walk = MatrixWalk {
            rows: &rows,
            renamings: &renamings,
            d: DemandMatrix::zero(R),
            room: Workspace::default(),
        };
        put(&mut walk.d, 0, rows[first].1);
        let best = with_row(&[0; 32], &walk.d, 0);
        walk.from(first, 1, 0, &best)
    })
}

/// Number of sets of matrices that differ only in names, by Burnside's lemma. It is the mean, over
/// all renamings, of the number of matrices that a renaming leaves as they are. For these all cells
/// of a cycle must be equal.
fn sets(base: u64) -> u64 {
    let cycles = |o: &[usize; R]| {
        let mut seen = [[false; R]; R];
        let cells = (0..R * R).map(|k| (k / R, k % R)).filter(|(i, j)| i != j);
        let begins = cells.filter(|&(mut i, mut j)| {
            let new = !seen[i][j];
            while !std::mem::replace(&mut seen[i][j], true) {
                (i, j) = (o[i], o[j]);
            }
            new
        });
        begins.count() as u32
    };
    let all = orders();
    all.iter().map(|o| base.pow(cycles(o))).sum::<u64>() / all.len() as u64
}

#[test]
fn every_matrix_of_five_racks_over_two_weights_but_for_names() {
    assert_eq!(sets(2), 9608);
    assert_eq!(up_to_names(2), sets(2));
}

#[test]
#[ignore = "7 s of processor time in a release build"]
fn every_matrix_of_five_racks_over_three_weights_but_for_names() {
    assert_eq!(up_to_names(3), sets(3));
}

/// All 4^20 = 1.1e12 matrices would take 69 hours of processor time at 0.23 us each. A matrix and
/// the same one with its racks renamed (in 5! = 120 ways) have the same matchings but for those
/// names: 9 168 331 776 matrices represent all.
#[test]
#[ignore = "31 minutes of processor time in a release build"]
fn every_matrix_of_five_racks_over_four_weights_but_for_names() {
    assert_eq!(up_to_names(4), sets(4));
}
