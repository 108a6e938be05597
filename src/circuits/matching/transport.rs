//! The transportation problem with equal capacities and gains that do not grow: the engine of
//! [`super::b_matching()`].
//!
//! Phase k raises the capacity of every row and column from k - 1 to k. The optimal prices (duals)
//! of phase k - 1 stay feasible, and R shortest augmenting paths, one a row, make rows and columns
//! full again; units without gain fill what nothing better does. At a phase's beginning every
//! column has room, so most paths are one step long.
//!
//! The scans are those of [`super::dense`], and so are the marks: all numbers are even, and the
//! lowest bit of a distance says that the column is full.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::num::Num;
use super::simd::{self, RowOffer, SimdLevel};
use crate::steps;

/// Integers over which a row can be offered to all columns at once.
pub(super) trait Scan: Num {
    /// More than every distance, and a price that shuts a column out.
    const FAR: Self;
    const SHUT: Self;
    const ONE: Self;

    /// Whether the lowest bit is set.
    fn odd(self) -> bool;

    /// As [`simd::relax`], with the weights as they are.
    fn relax(o: TransportRow<Self>, key: &mut [Self], from: &mut [i64]) -> (Self, usize);
}

/// An offer of a row to all columns.
#[derive(Clone, Copy)]
pub(super) struct TransportRow<'a, N> {
    level: SimdLevel,
    w: &'a [N],
    v: &'a [N],
    base: N,
    i: i64,
}

impl Scan for i64 {
    const FAR: Self = simd::FAR;
    const SHUT: Self = simd::SHUT;
    const ONE: Self = 1;

    fn odd(self) -> bool {
        self & 1 != 0
    }

    fn relax(o: TransportRow<Self>, key: &mut [Self], from: &mut [i64]) -> (Self, usize) {
        simd::relax(o.level, RowOffer { w: o.w, shift: 0, v: o.v, base: o.base, i: o.i }, key, from)
    }
}

impl Scan for i128 {
    const FAR: Self = 1 << 120;
    const SHUT: Self = 1 << 121;
    const ONE: Self = 1;

    fn odd(self) -> bool {
        self & 1 != 0
    }

    fn relax(o: TransportRow<Self>, key: &mut [Self], from: &mut [i64]) -> (Self, usize) {
        for ((w, v), (key, from)) in o.w.iter().zip(o.v).zip(key.iter_mut().zip(from)) {
            let d = o.base + v - w;
            if d < *key {
                (*key, *from) = (d, o.i);
            }
        }
        least(key)
    }
}

/// The least, and the first place where it is.
fn least<N: Num>(key: &[N]) -> (N, usize) {
    let mut found = (N::MAX, 0);
    for (j, &k) in key.iter().enumerate() {
        if k < found.0 {
            found = (k, j);
        }
    }
    found
}

/// Units of rows in columns; `gain(i, j, k)` of unit number k is even, not negative, and not more
/// than that of unit k - 1.
struct TransportProblem<N, F> {
    n: usize,
    level: SimdLevel,
    gain: F,
    /// By pair: its units.
    used: Vec<u32>,
    /// By pair: the gain of one more.
    next: Vec<N>,
    /// By column: its rows, and its units in all.
    holders: Vec<Vec<u32>>,
    filled: Vec<u32>,
    /// `u[i] + v[j]` is at least the gain of one more unit, and at most that of the last one.
    u: Vec<N>,
    v: Vec<N>,
    /// `v`, one more where the column is full.
    marked: Vec<N>,
    search: DistanceSearch<N>,
}

/// One search's distances.
struct DistanceSearch<N> {
    /// By column: its distance, and the row before it.
    key: Vec<N>,
    from: Vec<i64>,
    /// By row: its distance, and the column before it.
    dist: Vec<N>,
    before: Vec<u32>,
    open: BinaryHeap<Reverse<(N, u32)>>,
    /// Reached for good.
    rows: Vec<u32>,
    columns: Vec<(u32, N)>,
}

/// The numbers of units, by pair, row by row, with the largest sum of gains: up to `capacity` a row
/// and a column, none without gain.
///
/// Complexity O(W R^3) at worst for the capacity W, near O(W R^2) on most. Deterministic.
pub(super) fn solve<N: Scan, F: Fn(usize, usize, u32) -> N>(
    n: usize,
    capacity: u32,
    gain: F,
) -> Vec<u32> {
    let mut t = TransportProblem::new(n, gain);
    for k in 1..=capacity {
        t.phase(k);
    }
    for (at, used) in t.used.iter_mut().enumerate() {
        while *used > 0 && (t.gain)(at / n, at % n, *used - 1) == N::ZERO {
            *used -= 1;
        }
    }
    t.used
}

impl<N: Scan, F: Fn(usize, usize, u32) -> N> TransportProblem<N, F> {
    fn new(n: usize, gain: F) -> Self {
        let next: Vec<N> = (0..n * n).map(|at| gain(at / n, at % n, 0)).collect();
        let mut v = vec![N::ZERO; n];
        for row in next.chunks_exact(n.max(1)) {
            v.iter_mut().zip(row).for_each(|(v, &w)| *v = (*v).max(w));
        }
        let best = |row: &[N]| row.iter().zip(&v).map(|(&w, &v)| w - v).max().unwrap_or(N::ZERO);
        let u = next.chunks_exact(n.max(1)).map(best).collect();
        let search = DistanceSearch {
            key: vec![N::ZERO; n],
            from: vec![0; n],
            dist: vec![N::MAX; n],
            before: vec![0; n],
            open: BinaryHeap::new(),
            rows: Vec::new(),
            columns: Vec::new(),
        };
        let level = SimdLevel::for_rows_of(n);
        let (holders, filled) = (vec![Vec::new(); n], vec![0; n]);
        Self {
            n,
            level,
            gain,
            used: vec![0; n * n],
            next,
            holders,
            filled,
            u,
            marked: v.clone(),
            v,
            search,
        }
    }

    /// Room for one unit more in every row and column, `capacity` in all, and the units that fill
    /// it.
    fn phase(&mut self, capacity: u32) {
        // Prices count only against each other; near zero they stay within the largest gain.
        let low = self.v.iter().copied().min().unwrap_or(N::ZERO);
        self.v.iter_mut().for_each(|v| *v -= low);
        self.u.iter_mut().for_each(|u| *u += low);
        self.marked.copy_from_slice(&self.v);
        for i in 0..self.n {
            let end = self.search(i);
            self.turn(i, end);
            self.filled[end] += 1;
            if self.filled[end] == capacity {
                self.marked[end] = self.v[end] + N::ONE;
            }
        }
    }

    /// Dijkstra over the reduced costs from row `root` to the nearest column with room, and the
    /// prices after it.
    fn search(&mut self, root: usize) -> usize {
        let s = &mut self.search;
        s.key.fill(N::FAR - N::ONE);
        s.columns.clear();
        s.dist[root] = N::ZERO;
        let (mut near, mut j) = self.relax(root);
        loop {
            let far = if near.odd() { near - N::ONE } else { near };
            if let Some(i) = self.nearer_row(far, false) {
                (near, j) = self.relax(i);
            } else if near.odd() {
                self.shut(j, far);
                (near, j) = match self.nearer_row(far, true) {
                    Some(i) => self.relax(i),
                    None => least(&self.search.key),
                };
            } else {
                self.reprice(near);
                return j;
            }
        }
    }

    /// Takes out the nearest row that is reached but not yet offered, if it is nearer than `far`
    /// (or as near).
    fn nearer_row(&mut self, far: N, or_equal: bool) -> Option<usize> {
        let s = &mut self.search;
        while let Some(&Reverse((d, i))) =
            s.open.peek().filter(|top| top.0.0 < far || (or_equal && top.0.0 == far))
        {
            s.open.pop();
            // A row that has been reached more than once is in the heap with its old distances,
            // too.
            if d == s.dist[i as usize] {
                return Some(i as usize);
            }
        }
        None
    }

    /// Offers a row at its distance to the open columns; the nearest of them.
    fn relax(&mut self, i: usize) -> (N, usize) {
        steps::count(1);
        let s = &mut self.search;
        s.rows.push(i as u32);
        let w = &self.next[i * self.n..(i + 1) * self.n];
        N::relax(
            TransportRow {
                level: self.level,
                w,
                v: &self.marked,
                base: s.dist[i] + self.u[i],
                i: i as i64,
            },
            &mut s.key,
            &mut s.from,
        )
    }

    /// Column `j` is reached for good: so are, by giving up a unit in it, its rows.
    fn shut(&mut self, j: usize, far: N) {
        steps::count(1);
        let s = &mut self.search;
        s.columns.push((j as u32, far));
        (self.marked[j], s.key[j]) = (N::SHUT, N::FAR);
        for &i in &self.holders[j] {
            let k = i as usize;
            let d = far + (self.gain)(k, j, self.used[k * self.n + j] - 1) - self.u[k] - self.v[j];
            if d < s.dist[k] {
                (s.dist[k], s.before[k]) = (d, j as u32);
                s.open.push(Reverse((d, i)));
            }
        }
    }

    fn reprice(&mut self, far: N) {
        let s = &mut self.search;
        for &(j, dist) in &s.columns {
            let j = j as usize;
            self.v[j] += far - dist;
            self.marked[j] = self.v[j] + N::ONE;
        }
        for i in s.rows.drain(..) {
            self.u[i as usize] -= far - std::mem::replace(&mut s.dist[i as usize], N::MAX);
        }
        for Reverse((_, i)) in s.open.drain() {
            s.dist[i as usize] = N::MAX;
        }
    }

    /// One more unit for row `root`, along the path that ends in column `j`.
    fn turn(&mut self, root: usize, mut j: usize) {
        loop {
            let i = self.search.from[j] as usize;
            self.hold(i, j, self.used[i * self.n + j] + 1);
            if i == root {
                return;
            }
            j = self.search.before[i] as usize;
            self.hold(i, j, self.used[i * self.n + j] - 1);
        }
    }

    fn hold(&mut self, i: usize, j: usize, units: u32) {
        let at = i * self.n + j;
        let had = std::mem::replace(&mut self.used[at], units);
        self.next[at] = (self.gain)(i, j, units);
        if had == 0 {
            self.holders[j].push(i as u32);
        } else if units == 0 {
            self.holders[j].retain(|&k| k as usize != i);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NONE: u32 = u32::MAX;

    /// The slow twin: successive shortest paths from all rows with room to all columns with room,
    /// one at a time, over plain lists. Costs are gains left out.
    struct SlowTransport<'a> {
        n: usize,
        gain: &'a dyn Fn(usize, usize, u32) -> i128,
        used: Vec<u32>,
        /// Units that a row, a column may still have.
        room: [Vec<u32>; 2],
        /// Potentials: rows, columns, all rows' common source, all columns' common sink.
        height: [Vec<i128>; 2],
        source: i128,
        sink: i128,
    }

    impl<'a> SlowTransport<'a> {
        fn new(n: usize, capacity: u32, gain: &'a dyn Fn(usize, usize, u32) -> i128) -> Self {
            let best = |j: usize| (0..n).map(|i| gain(i, j, 0)).max().unwrap_or(0);
            let height = [vec![0; n], (0..n).map(|j| -best(j)).collect()];
            let sink = height[1].iter().copied().min().unwrap_or(0).min(0);
            Self {
                n,
                gain,
                used: vec![0; n * n],
                room: [vec![capacity; n], vec![capacity; n]],
                height,
                source: 0,
                sink,
            }
        }

        /// Adds one more unit, if that gains more (Dijkstra over reduced costs); says whether it
        /// did.
        fn augment(&mut self) -> bool {
            let n = self.n;
            let mut dist = [vec![i128::MAX; n], vec![i128::MAX; n]];
            let mut from = [vec![NONE; n], vec![NONE; n]];
            let mut shut = [vec![false; n], vec![false; n]];
            let (mut far, mut last) = (i128::MAX, NONE);
            for i in (0..n).filter(|&i| self.room[0][i] > 0) {
                dist[0][i] = self.source - self.height[0][i];
            }
            loop {
                let open =
                    (0..2).flat_map(|s| (0..n).map(move |k| (s, k))).filter(|&(s, k)| !shut[s][k]);
                let Some((s, k)) = open
                    .min_by_key(|&(s, k)| (dist[s][k], s, k))
                    .filter(|&(s, k)| dist[s][k] < far)
                else {
                    break;
                };
                shut[s][k] = true;
                let d = dist[s][k];
                if s == 1 && self.room[1][k] > 0 && d + self.height[1][k] - self.sink < far {
                    (far, last) = (d + self.height[1][k] - self.sink, k as u32);
                }
                for o in (0..n).filter(|&o| !shut[1 - s][o]) {
                    let (i, j) = if s == 0 { (k, o) } else { (o, k) };
                    let used = self.used[i * n + j];
                    let cost = match s {
                        0 => -(self.gain)(i, j, used),
                        _ if used > 0 => (self.gain)(i, j, used - 1),
                        _ => 0,
                    };
                    let reach = d + cost + self.height[s][k] - self.height[1 - s][o];
                    if cost != 0 && reach < dist[1 - s][o] {
                        (dist[1 - s][o], from[1 - s][o]) = (reach, k as u32);
                    }
                }
            }
            if last == NONE || far + self.sink - self.source >= 0 {
                return false;
            }
            for s in 0..2 {
                for k in (0..n).filter(|&k| shut[s][k] && dist[s][k] < far) {
                    self.height[s][k] += dist[s][k] - far;
                }
            }
            self.source -= far;
            self.turn(&from, last as usize);
            true
        }

        fn turn(&mut self, from: &[Vec<u32>; 2], last: usize) {
            self.room[1][last] -= 1;
            let mut j = last;
            loop {
                let i = from[1][j] as usize;
                self.used[i * self.n + j] += 1;
                if from[0][i] == NONE {
                    self.room[0][i] -= 1;
                    return;
                }
                j = from[0][i] as usize;
                self.used[i * self.n + j] -= 1;
            }
        }
    }

    /// What units gain together; none is without gain, and no row and no column has more than its
    /// capacity.
    fn total(
        n: usize,
        capacity: u32,
        used: &[u32],
        gain: &dyn Fn(usize, usize, u32) -> i128,
    ) -> i128 {
        let (mut rows, mut columns, mut sum) = (vec![0; n], vec![0; n], 0);
        for (at, &units) in used.iter().enumerate() {
            rows[at / n] += units;
            columns[at % n] += units;
            for k in 0..units {
                assert!(gain(at / n, at % n, k) > 0);
                sum += gain(at / n, at % n, k);
            }
        }
        assert!(rows.iter().chain(&columns).all(|&x| x <= capacity));
        sum
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(200))]

        #[test]
        fn it_equals_the_slow_twin(
            n in 0usize..24, capacity in 0u32..6, part in 1u64..9, thin in 0u64..4, seed: u64,
            top in prop_oneof![Just(3u64), Just(30), Just(1 << 45)],
        ) {
            let cell = |i: usize, j: usize| (seed ^ (i * 41 + j) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29) >> 4;
            let piece = (top / part).max(1);
            let bytes = |i: usize, j: usize| if i == j || cell(j, i) % 4 < thin { 0 } else { cell(i, j) % top };
            let gain = |i: usize, j: usize, k: u32| i128::from(bytes(i, j).saturating_sub(piece * u64::from(k)).min(piece)) * 2;
            let mut slow = SlowTransport::new(n, capacity, &gain);
            while slow.augment() {}
            let most = total(n, capacity, &slow.used, &gain);
            let wide = solve(n, capacity, gain);
            prop_assert_eq!(total(n, capacity, &wide, &gain), most);
            // The vector scans break ties as the plain ones do.
            prop_assert_eq!(solve(n, capacity, |i, j, k| gain(i, j, k) as i64), wide);
        }
    }
}
