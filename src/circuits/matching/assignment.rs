//! The assignment problem: the engine of [`super::bipartite()`] and the first half of
//! [`super::edmonds()`].
//!
//! R. Jonker and A. Volgenant, *A shortest augmenting path algorithm for dense and sparse linear
//! assignment problems*, Computing 38 (1987). Its steps are column reduction, reduction transfer,
//! two passes of augmenting row reduction, then one shortest augmenting path for each row still
//! free. Written for profits (largest sum) instead of costs.

use super::num::Num;
use crate::steps;

/// No row or column.
pub(crate) const NONE: u32 = u32::MAX;

/// An optimal assignment and the prices that prove it.
pub(crate) struct Assignment<N> {
    /// By row: its column; [`NONE`] where [`super::sparse`] leaves a row alone.
    pub(crate) column: Vec<u32>,
    /// By row: the dual u. With v: `u[i] + v[j] >= p[i][j]` for all cells, equal on assigned ones.
    pub(crate) u: Vec<N>,
    /// By column: the dual v.
    pub(crate) v: Vec<N>,
}

struct Jv<'a, N> {
    n: usize,
    p: &'a [N],
    v: Vec<N>,
    column: Vec<u32>,
    row: Vec<u32>,
}

/// Assigns every row to a column of its own so that the sum of the profits is largest.
///
/// `p` holds `n * n` profits, row-major. Complexity O(n^3) at worst, near O(n^2) on most matrices.
/// Deterministic.
pub(crate) fn solve<N: Num>(n: usize, p: &[N]) -> Assignment<N> {
    debug_assert_eq!(p.len(), n * n);
    let mut s = Jv { n, p, v: vec![N::ZERO; n], column: vec![NONE; n], row: vec![NONE; n] };
    if n > 0 {
        let mut free = s.reduce_columns();
        for _ in 0..2 {
            free = s.reduce_rows(&free);
        }
        let mut scratch = AssignmentScratch {
            dist: vec![N::ZERO; n],
            from: vec![0; n],
            open: Vec::new(),
            shut: Vec::new(),
        };
        for f in free {
            s.augment(f as usize, &mut scratch);
        }
    }
    let u = (0..n).map(|i| p[i * n + s.column[i] as usize] - s.v[s.column[i] as usize]).collect();
    Assignment { column: s.column, u, v: s.v }
}

struct AssignmentScratch<N> {
    dist: Vec<N>,
    from: Vec<u32>,
    /// Columns not yet reached for good, and those that are, in order.
    open: Vec<u32>,
    shut: Vec<u32>,
}

impl<N: Num> Jv<'_, N> {
    fn profits(&self, i: usize) -> &[N] {
        &self.p[i * self.n..(i + 1) * self.n]
    }

    /// Prices each column at its best profit and gives it to the first row that offers it; returns
    /// the rows without one.
    fn reduce_columns(&mut self) -> Vec<u32> {
        let n = self.n;
        let mut best = vec![0u32; n];
        self.v.copy_from_slice(&self.p[..n]);
        for i in 1..n {
            steps::count(1);
            let p = &self.p[i * n..(i + 1) * n];
            for ((v, b), &p) in self.v.iter_mut().zip(&mut best).zip(p) {
                if p > *v {
                    (*v, *b) = (p, i as u32);
                }
            }
        }
        let mut wins = vec![0u32; n];
        for (j, &i) in best.iter().enumerate() {
            wins[i as usize] += 1;
            if wins[i as usize] == 1 {
                self.column[i as usize] = j as u32;
                self.row[j] = i;
            }
        }
        let mut free = Vec::new();
        for (i, &won) in wins.iter().enumerate() {
            match won {
                0 => free.push(i as u32),
                1 if n > 1 => self.transfer(i),
                _ => {}
            }
        }
        free
    }

    /// A row that won one column only pays for it up to the point where its second choice is as
    /// good.
    fn transfer(&mut self, i: usize) {
        steps::count(1);
        let own = self.column[i] as usize;
        let second = self
            .profits(i)
            .iter()
            .zip(&self.v)
            .enumerate()
            .filter(|c| c.0 != own)
            .map(|(_, (&p, &v))| p - v)
            .max();
        self.v[own] -= second.unwrap_or(N::ZERO);
    }

    /// The two best columns of a row at the present prices: (value, column) each.
    fn two_best(&self, i: usize) -> ((N, usize), (N, usize)) {
        steps::count(1);
        let (mut a, mut b) = ((-N::MAX, 0), (-N::MAX, 0));
        for (j, (&p, &v)) in self.profits(i).iter().zip(&self.v).enumerate() {
            let x = p - v;
            if x > b.0 {
                if x > a.0 {
                    b = a;
                    a = (x, j);
                } else {
                    b = (x, j);
                }
            }
        }
        (a, b)
    }

    /// Each free row takes its best column and raises its price to the second best; the row that it
    /// drives out tries at once (price wars are cut short) or in the next pass. Returns the rows
    /// still free.
    fn reduce_rows(&mut self, free: &[u32]) -> Vec<u32> {
        let mut left = Vec::new();
        let mut wars = 4 * self.n;
        for &f in free {
            let mut i = f;
            loop {
                let ((best, mut j), (second, j2)) = self.two_best(i as usize);
                let strict = self.n > 1 && best > second;
                if strict {
                    self.v[j] += best - second;
                } else if self.row[j] != NONE && self.n > 1 {
                    j = j2;
                }
                let out = std::mem::replace(&mut self.row[j], i);
                self.column[i as usize] = j as u32;
                if out == NONE {
                    break;
                }
                self.column[out as usize] = NONE;
                if !strict || wars == 0 {
                    left.push(out);
                    break;
                }
                wars -= 1;
                i = out;
            }
        }
        left
    }

    /// Dijkstra from free row `f` over the reduced costs to the nearest free column, then shifts
    /// the path.
    fn augment(&mut self, f: usize, s: &mut AssignmentScratch<N>) {
        let n = self.n;
        s.open.clear();
        s.open.extend(0..n as u32);
        s.shut.clear();
        s.from.fill(f as u32);
        for (d, (&p, &v)) in s.dist.iter_mut().zip(self.profits(f).iter().zip(&self.v)) {
            *d = v - p;
        }
        let mut next = nearest_open(&s.open, &mut s.dist, &self.row, |_, d| d);
        let (end, far) = loop {
            let (near, at, nearest) = next;
            let i = self.row[nearest as usize];
            if i == NONE {
                break (nearest, near);
            }
            s.open.swap_remove(at);
            s.shut.push(nearest);
            // Offer row i to the open columns, and find the nearest of them in the same pass.
            let base = near - self.v[nearest as usize] + self.p[i as usize * n + nearest as usize];
            let p = &self.p[i as usize * n..(i as usize + 1) * n];
            let from = &mut s.from;
            let v = &self.v;
            next = nearest_open(&s.open, &mut s.dist, &self.row, |j, old| {
                let d = base + v[j] - p[j];
                if d < old {
                    from[j] = i;
                }
                d.min(old)
            });
        };
        for &j in &s.shut {
            self.v[j as usize] += far - s.dist[j as usize];
        }
        let mut j = end;
        loop {
            let i = s.from[j as usize];
            self.row[j as usize] = i;
            j = std::mem::replace(&mut self.column[i as usize], j);
            if i as usize == f {
                return;
            }
        }
    }
}

/// Passes the distances of the open columns through `f` and gives the least: (distance, place in
/// `open`, column). Among equals a free column is taken, then the one that comes first.
fn nearest_open<N: Num>(
    open: &[u32],
    dist: &mut [N],
    row: &[u32],
    mut f: impl FnMut(usize, N) -> N,
) -> (N, usize, u32) {
    steps::count(1);
    let (mut near, mut at) = (N::MAX, 0);
    for (k, &j) in open.iter().enumerate() {
        let d = f(j as usize, dist[j as usize]);
        dist[j as usize] = d;
        if d <= near && (d < near || (row[j as usize] == NONE && row[open[at] as usize] != NONE)) {
            (near, at) = (d, k);
        }
    }
    (near, at, open[at])
}
