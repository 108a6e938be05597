//! The partial assignment problem on few cells: the engine of [`super::bipartite()`] and of [`super::edmonds()`] where most
//! pairs of racks have no demand.
//!
//! The same shortest augmenting paths as in [`super::assignment`], but a row may stay without a column at value zero, only
//! cells with weight exist, and a search never looks further than the cheapest way to leave some row out. Racks that are idle
//! cost nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::assignment::{Assignment, NONE};
use super::num::{Num, Scale};
use crate::circuits::Matching;
use crate::demand::DemandMatrix;
use crate::ids::RackId;

/// The cells with weight, row by row.
pub(crate) struct Rows<N> {
    begin: Vec<u32>,
    cells: Vec<(u32, N)>,
}

impl<N: Num> Rows<N> {
    /// From dense weights, `n * n`, row-major.
    pub(crate) fn of(n: usize, w: &[N]) -> Self {
        let mut rows = Self { begin: Vec::with_capacity(n + 1), cells: Vec::new() };
        rows.begin.push(0);
        for row in w.chunks_exact(n.max(1)) {
            rows.cells.extend(row.iter().enumerate().filter(|c| *c.1 > N::ZERO).map(|(j, &x)| (j as u32, x)));
            rows.begin.push(rows.cells.len() as u32);
        }
        rows
    }

    /// One-way circuits straight from the demand, without a dense table between.
    pub(crate) fn one_way(demand: &DemandMatrix, keep: Option<&Matching>, scale: &Scale) -> Self {
        let n = demand.racks();
        let mut rows = Self { begin: Vec::with_capacity(n + 1), cells: Vec::new() };
        rows.begin.push(0);
        for i in (0..n).map(RackId::from) {
            let up = keep.and_then(|k| k.output(i));
            for (j, &b) in demand.row(i).iter().enumerate() {
                if b > 0 {
                    let kept = u8::from(up.is_some_and(|o| o.index() == j));
                    rows.cells.push((j as u32, scale.weigh(b.into(), kept)));
                }
            }
            rows.begin.push(rows.cells.len() as u32);
        }
        rows
    }

    fn row(&self, i: u32) -> &[(u32, N)] {
        &self.cells[self.begin[i as usize] as usize..self.begin[i as usize + 1] as usize]
    }
}

struct Solver<'a, N> {
    rows: &'a Rows<N>,
    v: Vec<N>,
    column: Vec<u32>,
    /// By row: the weight of its cell.
    pay: Vec<N>,
    row: Vec<u32>,
    dist: Vec<N>,
    /// By column reached: the row before it on the path, and the weight between them.
    from: Vec<(u32, N)>,
    reached: Vec<u32>,
    shut: Vec<u32>,
    heap: BinaryHeap<Reverse<(N, u32)>>,
}

/// Where a search ends: at a free column, or by leaving a row out.
enum End {
    Column(u32),
    Row(u32),
}

/// Gives rows columns of their own so that the sum of the weights is largest; rows and columns may stay alone.
///
/// The duals are not negative, `u[i] + v[j] >= w[i][j]` for all cells, equal on assigned ones, and zero for all that stay
/// alone. Complexity O(R (E + R) log R) at worst for E cells, far less on most. Deterministic.
pub(crate) fn solve<N: Num>(rows: &Rows<N>) -> Assignment<N> {
    let n = rows.begin.len() - 1;
    let mut s = Solver {
        rows,
        v: vec![N::ZERO; n],
        column: vec![NONE; n],
        pay: vec![N::ZERO; n],
        row: vec![NONE; n],
        dist: vec![N::MAX; n],
        from: vec![(NONE, N::ZERO); n],
        reached: Vec::new(),
        shut: Vec::new(),
        heap: BinaryHeap::new(),
    };
    let mut free: Vec<u32> = (0..n as u32).collect();
    for _ in 0..3 {
        free = s.reduce_rows(&free);
    }
    for f in free {
        s.augment(f);
    }
    let u = (0..n).map(|i| if s.column[i] == NONE { N::ZERO } else { s.pay[i] - s.v[s.column[i] as usize] }).collect();
    Assignment { column: s.column, u, v: s.v }
}

impl<N: Num> Solver<'_, N> {
    /// Each row takes its best column and pays up to its second choice (to stay alone is one); the row that it drives out
    /// tries at once or in the next pass. Returns the rows to be placed by a search.
    fn reduce_rows(&mut self, free: &[u32]) -> Vec<u32> {
        let mut left = Vec::new();
        let mut wars = 4 * self.row.len();
        for &f in free {
            let mut i = f;
            loop {
                let (mut best, mut second) = ((N::ZERO, NONE, N::ZERO), (N::ZERO, NONE, N::ZERO));
                for &(j, w) in self.rows.row(i) {
                    let x = w - self.v[j as usize];
                    if x > second.0 {
                        second = (x, j, w);
                        if x > best.0 {
                            std::mem::swap(&mut best, &mut second);
                        }
                    }
                }
                if best.1 == NONE {
                    break;
                }
                let strict = best.0 > second.0;
                if strict {
                    self.v[best.1 as usize] += best.0 - second.0;
                } else if self.row[best.1 as usize] != NONE {
                    best = second;
                }
                let out = std::mem::replace(&mut self.row[best.1 as usize], i);
                (self.column[i as usize], self.pay[i as usize]) = (best.1, best.2);
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

    /// Dijkstra over the reduced costs from free row `f`, then the path is shifted.
    fn augment(&mut self, f: u32) {
        let Some(u) = self.rows.row(f).iter().map(|&(j, w)| w - self.v[j as usize]).max().filter(|&u| u > N::ZERO) else {
            return;
        };
        let (mut bound, mut alone) = (u, f);
        self.relax(f, u, bound);
        let (end, far) = loop {
            let Some(Reverse((d, j))) = self.heap.pop().filter(|top| top.0.0 < bound) else {
                break (End::Row(alone), bound);
            };
            if d > self.dist[j as usize] {
                continue;
            }
            let i = self.row[j as usize];
            if i == NONE {
                break (End::Column(j), d);
            }
            self.shut.push(j);
            let reach = d + self.pay[i as usize] - self.v[j as usize];
            if reach < bound {
                (bound, alone) = (reach, i);
            }
            self.relax(i, reach, bound);
        };
        for &j in &self.shut {
            self.v[j as usize] += far - self.dist[j as usize];
        }
        self.shift(f, end);
        for j in self.reached.drain(..) {
            self.dist[j as usize] = N::MAX;
        }
        self.shut.clear();
        self.heap.clear();
    }

    /// Offers row `i`, whose dual and distance add up to `base`, to its columns.
    fn relax(&mut self, i: u32, base: N, bound: N) {
        for &(j, w) in self.rows.row(i) {
            let d = base + self.v[j as usize] - w;
            let k = j as usize;
            if d < bound && d < self.dist[k] {
                if self.dist[k] == N::MAX {
                    self.reached.push(j);
                }
                self.dist[k] = d;
                self.from[k] = (i, w);
                self.heap.push(Reverse((d, j)));
            }
        }
    }

    fn shift(&mut self, f: u32, end: End) {
        let mut j = match end {
            End::Column(j) => j,
            End::Row(r) => std::mem::replace(&mut self.column[r as usize], NONE),
        };
        while j != NONE {
            let (i, w) = self.from[j as usize];
            self.row[j as usize] = i;
            self.pay[i as usize] = w;
            let before = std::mem::replace(&mut self.column[i as usize], j);
            j = if i == f { NONE } else { before };
        }
    }
}
