//! The partial assignment problem on few cells: the engine of [`super::bipartite()`] and of
//! [`super::edmonds()`] where most pairs of racks have no demand.
//!
//! The same shortest augmenting paths as in [`super::assignment`], with three differences. A row
//! may stay without a column at value zero; only cells with weight exist; and a search never looks
//! further than the cheapest way to leave some row out. Racks that are idle cost nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::select_unpredictable;
use std::ops::Range;

use super::assignment::{Assignment, NONE};
use super::blossom::{DenseNear, SparseNear, WeightedGraph};
use super::num::{Num, Scale};
use super::simd::{self, SimdLevel};
use super::symmetric::Symmetric;
use crate::demand::DemandMatrix;
use crate::ids::RackId;
use crate::{Matching, steps};

/// The cells with weight, row by row.
pub(crate) struct SparseRows<N> {
    begin: Vec<u32>,
    columns: Vec<u32>,
    weights: Vec<N>,
}

impl<N: Copy> SparseRows<N> {
    fn row(&self, i: u32) -> impl Iterator<Item = (u32, N)> + '_ {
        let range = self.begin[i as usize] as usize..self.begin[i as usize + 1] as usize;
        self.columns[range.clone()].iter().copied().zip(self.weights[range].iter().copied())
    }

    pub(crate) fn racks(&self) -> usize {
        self.begin.len() - 1
    }

    /// The same cells, column by column.
    fn turned(&self) -> Self {
        let n = self.racks();
        let mut begin = vec![0u32; n + 1];
        self.columns.iter().for_each(|&j| begin[j as usize + 1] += 1);
        (0..n).for_each(|j| begin[j + 1] += begin[j]);
        let mut next = begin.clone();
        // Every place is written below; any value will do before.
        let (mut columns, mut weights) = (vec![0; self.columns.len()], self.weights.clone());
        for i in 0..n as u32 {
            for (j, w) in self.row(i) {
                let k = next[j as usize] as usize;
                next[j as usize] += 1;
                (columns[k], weights[k]) = (i, w);
            }
        }
        Self { begin, columns, weights }
    }
}

#[cfg(test)]
impl<N: Num> SparseRows<N> {
    /// From dense weights, `n * n`, row-major.
    pub(crate) fn of(n: usize, w: &[N]) -> Self {
        let mut rows = Self { begin: vec![0], columns: Vec::new(), weights: Vec::new() };
        for row in w.chunks_exact(n.max(1)) {
            for (j, &x) in row.iter().enumerate().filter(|c| *c.1 > N::ZERO) {
                rows.columns.push(j as u32);
                rows.weights.push(x);
            }
            rows.begin.push(rows.columns.len() as u32);
        }
        rows
    }
}

/// The demand's cells as they are.
#[derive(Clone, Debug, Default)]
pub(crate) struct SparseCells {
    begin: Vec<u32>,
    columns: Vec<u32>,
    bytes: Vec<u64>,
    /// The bits of all cells, or-ed.
    bits: u64,
}

impl SparseCells {
    /// Reads a demand in one pass, or gives up early and says no where more than one cell in
    /// `sparse` has demand.
    pub(crate) fn read(&mut self, demand: &DemandMatrix, sparse: usize) -> bool {
        let (n, cells) = (demand.racks(), demand.cells());
        if n < 16 && cells.iter().filter(|c| **c > 0).count() > n * n / sparse {
            return false;
        }
        // Rows are read as long as there are no more cells than this, and whole vectors are
        // written.
        self.clear(n, (n * n / sparse + n + 8).min(24 * n));
        let level = SimdLevel::for_rows_of(n);
        for (i, row) in cells.chunks_exact(n.max(1)).enumerate() {
            self.bits |= simd::gather(level, row, &mut self.columns, &mut self.bytes);
            self.begin.push(self.columns.len() as u32);
            if self.columns.len() > (i + 1).max(n.min(8)) * n / sparse
                && self.columns.len() > n * n / sparse / 8
            {
                return false;
            }
        }
        self.columns.len() <= n * n / sparse
    }

    /// No rows yet; room for `n` of them and for `cells`.
    fn clear(&mut self, n: usize, cells: usize) {
        self.begin.clear();
        self.begin.reserve(n + 1);
        self.begin.push(0);
        self.columns.clear();
        self.columns.reserve(cells);
        self.bytes.clear();
        self.bytes.reserve(cells);
        self.bits = 0;
    }

    /// The best partial assignment; by row. Takes the cells out.
    pub(crate) fn assign(&mut self, keep: Option<&Matching>) -> Vec<u32> {
        let scale = Scale::new(self.racks(), self.bits.into(), keep.is_some());
        if scale.narrow() {
            columns(&self.rows::<i64>(keep, &scale))
        } else {
            columns(&self.rows::<i128>(keep, &scale))
        }
    }

    fn racks(&self) -> usize {
        self.begin.len() - 1
    }

    /// `D(i,j) + D(j,i)`, by both; `None` where a sum does not fit. O(R + E).
    pub(crate) fn both_ways(&self) -> Option<Self> {
        let n = self.racks();
        let mine = SparseRows {
            begin: self.begin.clone(),
            columns: self.columns.clone(),
            weights: self.bytes.clone(),
        };
        let other = mine.turned();
        let mut c = Self::default();
        c.clear(n, 2 * self.columns.len());
        let mut too_large = false;
        for i in 0..n as u32 {
            let range = |of: &SparseRows<u64>| {
                of.begin[i as usize] as usize..of.begin[i as usize + 1] as usize
            };
            let (r, s) = (range(&mine), range(&other));
            let ((x, p), (y, q)) = (
                (&mine.columns[r.clone()], &mine.weights[r]),
                (&other.columns[s.clone()], &other.weights[s]),
            );
            let (mut a, mut b) = (0, 0);
            while a < x.len() && b < y.len() {
                let (left, right) = (x[a] <= y[b], y[b] <= x[a]);
                let (p, q) =
                    (select_unpredictable(left, p[a], 0), select_unpredictable(right, q[b], 0));
                let (bytes, over) = p.overflowing_add(q);
                too_large |= over;
                c.columns.push(x[a].min(y[b]));
                c.bytes.push(bytes);
                (a, b) = (a + usize::from(left), b + usize::from(right));
            }
            c.columns.extend(x[a..].iter().chain(&y[b..]));
            c.bytes.extend(p[a..].iter().chain(&q[b..]));
            c.begin.push(c.columns.len() as u32);
        }
        c.bits = simd::bits(SimdLevel::for_rows_of(c.bytes.len()), &c.bytes);
        (!too_large).then_some(c)
    }

    /// The bits of all cells, or-ed.
    pub(crate) fn bits(&self) -> u64 {
        self.bits
    }

    /// The cells as weights. Takes the cells out.
    pub(crate) fn rows<N: Num>(&mut self, keep: Option<&Matching>, scale: &Scale) -> SparseRows<N> {
        let one_way = |(i, j): (RackId, RackId)| (i, j, 1);
        self.weigh(keep.into_iter().flat_map(Matching::pairs).map(one_way), scale)
    }

    /// The cells as weights of [`Self::both_ways`]: a pair of which both directions are up counts
    /// twice.
    pub(crate) fn pairs<N: Num>(
        &mut self,
        keep: Option<&Matching>,
        scale: &Scale,
    ) -> SparseRows<N> {
        let mutual = |i: RackId, j: RackId| keep.is_some_and(|k| k.output(j) == Some(i));
        // A mutual pair comes twice, and counts once.
        let once =
            keep.into_iter().flat_map(Matching::pairs).filter(|&(i, j)| i < j || !mutual(i, j));
        let both = |(i, j): (RackId, RackId)| {
            [(i, j), (j, i)].map(|(a, b)| (a, b, 1 + u8::from(mutual(i, j))))
        };
        self.weigh(once.flat_map(both), scale)
    }

    /// Each pair of `kept` comes once.
    fn weigh<N: Num>(
        &mut self,
        kept: impl Iterator<Item = (RackId, RackId, u8)>,
        scale: &Scale,
    ) -> SparseRows<N> {
        let Self { begin, columns, bytes, .. } = std::mem::take(self);
        let mut weights: Vec<N> = bytes.into_iter().map(|b| scale.plain(b)).collect();
        for (i, j, up) in kept {
            let range = begin[i.index()] as usize..begin[i.index() + 1] as usize;
            if let Ok(k) = columns[range.clone()].binary_search(&j.0) {
                scale.keep(&mut weights[range.start + k], up);
            }
        }
        SparseRows { begin, columns, weights }
    }
}

impl<N: Symmetric> WeightedGraph<N> for SparseRows<N> {
    type Near = SparseNear<N>;
    fn weight(&self, u: u32, v: u32) -> N {
        let range = self.begin[u as usize] as usize..self.begin[u as usize + 1] as usize;
        self.columns[range.clone()]
            .binary_search(&v)
            .map_or(N::ZERO, |k| self.weights[range.start + k])
    }
    fn row(&self, u: u32) -> impl Iterator<Item = (u32, N)> + '_ {
        self.row(u)
    }
}

/// The same edges for searches that keep those of least slack by rack.
pub(crate) struct RankedRows<'a, N>(pub(crate) &'a SparseRows<N>);

impl<N: Symmetric> WeightedGraph<N> for RankedRows<'_, N> {
    type Near = DenseNear<N>;
    fn weight(&self, u: u32, v: u32) -> N {
        self.0.weight(u, v)
    }
    fn row(&self, u: u32) -> impl Iterator<Item = (u32, N)> + '_ {
        self.0.row(u)
    }
}

/// A row may drive out another one, this one the next, and so on for this many rows, of few cells
/// and of many. Longer chains are mostly a few rows that bid for too few columns by small steps;
/// another pass, or a search, ends that sooner (measured, `scripts/peers`). Tests cut chains short,
/// so that small matrices need searches.
const CHAIN: [usize; 2] = if cfg!(test) { [3, 5] } else { [32, 128] };

/// Rows that were driven out bid again in as many passes, of few cells and of many; then they
/// search (measured likewise).
const PASSES: [usize; 2] = [3, 8];

/// From this many cells on it pays to put the heavy ones of each row first (measured,
/// `scripts/peers`). Tests try both on small matrices.
const MANY: usize = if cfg!(test) { 40 } else { 3500 };

/// Many cells in an order of their own: the heavy ones of a row come first, those of more than half
/// of its heaviest. Most scans need not look at the others. Of few cells it is empty.
struct Ranked<N> {
    columns: Vec<u32>,
    weights: Vec<N>,
    /// By row: where its heavy cells end, and the heaviest of the others.
    light: Vec<(u32, N)>,
}

impl<N: Num> Ranked<N> {
    fn new(rows: &SparseRows<N>) -> Self {
        let cells = rows.columns.len();
        let mut ranked = Self { columns: Vec::new(), weights: Vec::new(), light: Vec::new() };
        if cells < MANY {
            return ranked;
        }
        ranked.columns.resize(cells, 0);
        ranked.weights.resize(cells, N::ZERO);
        ranked.light.reserve(rows.racks());
        for bounds in rows.begin.windows(2) {
            let range = bounds[0] as usize..bounds[1] as usize;
            let (columns, weights) =
                (&mut ranked.columns[range.clone()], &mut ranked.weights[range.clone()]);
            let limit = rows.weights[range.clone()].iter().fold(N::ZERO, |a, &w| a.max(w)).half();
            let (mut low, mut high, mut rest) = (0, columns.len(), N::ZERO);
            for (&w, &j) in rows.weights[range.clone()].iter().zip(&rows.columns[range]) {
                // Each cell is written to both ends of what is empty, and one end moves: no branch
                // has to be guessed.
                let heavy = w > limit;
                (columns[low], weights[low], columns[high - 1], weights[high - 1]) = (j, w, j, w);
                (low, high) = (low + usize::from(heavy), high - usize::from(!heavy));
                rest = rest.max(if heavy { N::ZERO } else { w });
            }
            ranked.light.push((bounds[0] + low as u32, rest));
        }
        ranked
    }
}

struct SparseSolver<'a, N> {
    rows: &'a SparseRows<N>,
    /// The cells, ranked if they are many.
    columns: &'a [u32],
    weights: &'a [N],
    light: &'a [(u32, N)],
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
#[derive(Clone, Copy)]
enum SearchEnd {
    Column(u32),
    Row(u32),
}

/// Gives rows columns of their own so that the sum of the weights is largest; rows and columns may
/// stay alone.
///
/// The duals are not negative, `u[i] + v[j] >= w[i][j]` for all cells, equal on assigned ones, and
/// zero for all that stay alone. Complexity O(R (E + R) log R) at worst for E cells, far less on
/// most. Deterministic.
pub(crate) fn solve<N: Num>(rows: &SparseRows<N>) -> Assignment<N> {
    let n = rows.racks();
    let ranked = Ranked::new(rows);
    let mut s = SparseSolver::new(rows, &ranked, vec![N::ZERO; n]);
    s.place((0..n as u32).collect(), PASSES[usize::from(s.is_ranked())]);
    s.assignment()
}

/// [`solve`] without duals; by row.
fn columns<N: Num>(rows: &SparseRows<N>) -> Vec<u32> {
    let n = rows.racks();
    let ranked = Ranked::new(rows);
    let mut s = SparseSolver::new(rows, &ranked, vec![N::ZERO; n]);
    s.place((0..n as u32).collect(), PASSES[usize::from(s.is_ranked())]);
    s.column
}

/// [`solve`], from the prices and the matching of similar weights; columns without a row must have
/// the price zero.
pub(crate) fn solve_from<N: Num>(
    rows: &SparseRows<N>,
    prices: Vec<N>,
    column: &[u32],
) -> Assignment<N> {
    let ranked = Ranked::new(rows);
    let mut s = SparseSolver::new(rows, &ranked, prices);
    let free = s.keep_tight(column);
    s.place(free, 1);
    // A column that has lost its row must lower its price to zero, or find another: the same
    // search, with the sides exchanged.
    let over: Vec<u32> = (0..rows.racks() as u32)
        .filter(|&j| s.row[j as usize] == NONE && s.v[j as usize] > N::ZERO)
        .collect();
    if over.is_empty() {
        return s.assignment();
    }
    let a = s.assignment();
    let turned = rows.turned();
    let ranked = Ranked::new(&turned);
    let mut t = SparseSolver::new(&turned, &ranked, a.u);
    for (i, &j) in a.column.iter().enumerate().filter(|c| *c.1 != NONE) {
        t.join(j, i as u32);
    }
    over.into_iter().for_each(|j| t.augment(j));
    let column = t.row.clone();
    let a = t.assignment();
    Assignment { column, u: a.v, v: a.u }
}

impl<'a, N: Num> SparseSolver<'a, N> {
    fn new(rows: &'a SparseRows<N>, ranked: &'a Ranked<N>, v: Vec<N>) -> Self {
        let (n, few) = (rows.racks(), ranked.light.is_empty());
        Self {
            rows,
            columns: if few { &rows.columns } else { &ranked.columns },
            weights: if few { &rows.weights } else { &ranked.weights },
            light: &ranked.light,
            v,
            column: vec![NONE; n],
            pay: vec![N::ZERO; n],
            row: vec![NONE; n],
            dist: vec![N::MAX; n],
            from: vec![(NONE, N::ZERO); n],
            reached: Vec::new(),
            shut: Vec::new(),
            heap: BinaryHeap::new(),
        }
    }

    fn assignment(self) -> Assignment<N> {
        let n = self.row.len();
        let u = (0..n)
            .map(|i| {
                if self.column[i] == NONE {
                    N::ZERO
                } else {
                    self.pay[i] - self.v[self.column[i] as usize]
                }
            })
            .collect();
        Assignment { column: self.column, u, v: self.v }
    }

    fn is_ranked(&self) -> bool {
        !self.light.is_empty()
    }

    /// Gives row `i` its column `j`, which has a cell.
    fn join(&mut self, i: u32, j: u32) {
        let w = self.rows.row(i).find(|c| c.0 == j).map_or(N::ZERO, |c| c.1);
        (self.column[i as usize], self.pay[i as usize], self.row[j as usize]) = (j, w, i);
    }

    /// Keeps those of the old matching that are still a row's best; returns the rows without.
    fn keep_tight(&mut self, column: &[u32]) -> Vec<u32> {
        let mut free = Vec::new();
        for (i, &own) in column.iter().enumerate() {
            steps::count(1);
            let (mut best, mut held) = (N::ZERO, None);
            for (j, w) in self.rows.row(i as u32) {
                let x = w - self.v[j as usize];
                best = best.max(x);
                if j == own {
                    held = Some((x, w));
                }
            }
            match held.filter(|h| h.0 == best) {
                Some((_, w)) => {
                    (self.column[i], self.pay[i], self.row[own as usize]) = (own, w, i as u32)
                }
                None => free.push(i as u32),
            }
        }
        free
    }

    /// Places free rows: some passes of reductions, and searches for those that remain.
    fn place(&mut self, mut free: Vec<u32>, passes: usize) {
        for _ in 0..passes {
            free = self.reduce_rows(&free);
        }
        for f in free {
            self.augment(f);
        }
    }

    /// Each row takes its best column and pays up to its second choice (to stay alone is one); the
    /// row that it drives out tries at once or in the next pass. Returns the rows to be placed by a
    /// search.
    fn reduce_rows(&mut self, free: &[u32]) -> Vec<u32> {
        let mut left = Vec::new();
        let mut wars = 4 * self.row.len();
        for &f in free {
            let (mut i, mut chain) = (f, CHAIN[usize::from(self.is_ranked())]);
            loop {
                steps::count(1);
                let (mut best, second) = self.two_best(i);
                if best.1 == NONE {
                    break;
                }
                let strict = best.0 > second;
                if strict {
                    self.v[best.1 as usize] += best.0 - second;
                } else {
                    best = self.first_not_taken(i, best.0);
                }
                let out = std::mem::replace(&mut self.row[best.1 as usize], i);
                (self.column[i as usize], self.pay[i as usize]) = (best.1, best.2);
                if out == NONE {
                    break;
                }
                self.column[out as usize] = NONE;
                if !strict || wars == 0 || chain == 0 {
                    left.push(out);
                    break;
                }
                (wars, chain) = (wars - 1, chain - 1);
                i = out;
            }
        }
        left
    }

    /// Where a row's heavy cells end, and the heaviest of the others, of which the last is before
    /// `end`.
    fn light(&self, i: u32, end: usize) -> (usize, N) {
        self.light.get(i as usize).map_or((end, N::ZERO), |l| (l.0 as usize, l.1))
    }

    /// The best cell of a row (value, column, weight) and the second best value, which may be as
    /// good; to stay alone is worth nothing.
    #[inline]
    fn two_best(&self, i: u32) -> ((N, u32, N), N) {
        let (begin, end) =
            (self.rows.begin[i as usize] as usize, self.rows.begin[i as usize + 1] as usize);
        let (middle, rest) = self.light(i, end);
        let (best, second) = self.better((N::ZERO, NONE, N::ZERO), N::ZERO, begin..middle);
        // Prices are not negative, so no cell is worth more than its weight.
        if second < rest { self.better(best, second, middle..end) } else { (best, second) }
    }

    /// The best cell and the second best value, of some more cells.
    #[inline(always)]
    fn better(&self, mut best: (N, u32, N), second: N, cells: Range<usize>) -> ((N, u32, N), N) {
        let mut second = (second, NONE, N::ZERO);
        for (&j, &w) in self.columns[cells.clone()].iter().zip(&self.weights[cells]) {
            let x = w - self.v[j as usize];
            if x > second.0 {
                second = (x, j, w);
                if x > best.0 {
                    std::mem::swap(&mut best, &mut second);
                }
            }
        }
        (best, second.0)
    }

    /// Of the first two cells with this value, the second if the first one's column is taken.
    fn first_not_taken(&self, i: u32, value: N) -> (N, u32, N) {
        let cells = self.rows.row(i).map(|(j, w)| (w - self.v[j as usize], j, w));
        let mut equal = cells.filter(|c| c.0 == value);
        let first = equal.next().expect("the value is one of these");
        if self.row[first.1 as usize] == NONE { first } else { equal.next().unwrap_or(first) }
    }

    /// Dijkstra over the reduced costs from free row `f`, then the path is shifted.
    fn augment(&mut self, f: u32) {
        let Some(u) =
            self.rows.row(f).map(|(j, w)| w - self.v[j as usize]).max().filter(|&u| u > N::ZERO)
        else {
            return;
        };
        let mut goal = (u, SearchEnd::Row(f));
        self.relax(f, u, &mut goal);
        while let Some(Reverse((d, j))) = self.heap.pop().filter(|top| top.0.0 < goal.0) {
            if d > self.dist[j as usize] {
                continue;
            }
            let i = self.row[j as usize];
            self.shut.push(j);
            let reach = d + self.pay[i as usize] - self.v[j as usize];
            if reach < goal.0 {
                goal = (reach, SearchEnd::Row(i));
            }
            self.relax(i, reach, &mut goal);
        }
        let (far, end) = goal;
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

    /// Offers row `i`, whose dual and distance add up to `base`, to its columns. A free column
    /// nearer than the goal is the goal, and what is not nearer is not looked at.
    fn relax(&mut self, i: u32, base: N, goal: &mut (N, SearchEnd)) {
        steps::count(1);
        let (begin, end) =
            (self.rows.begin[i as usize] as usize, self.rows.begin[i as usize + 1] as usize);
        let (middle, rest) = self.light(i, end);
        // The free column that this row makes the goal: the first among equals.
        let mut mine = 0;
        self.offer(i, base, begin..middle, goal, &mut mine);
        // Prices are not negative, so no cell is nearer than by its weight.
        if base - rest <= goal.0 {
            self.offer(i, base, middle..end, goal, &mut mine);
        }
    }

    fn offer(
        &mut self,
        i: u32,
        base: N,
        cells: Range<usize>,
        goal: &mut (N, SearchEnd),
        mine: &mut u32,
    ) {
        for (&j, &w) in self.columns[cells.clone()].iter().zip(&self.weights[cells]) {
            let k = j as usize;
            let d = base + self.v[k] - w;
            if d > goal.0 || d >= self.dist[k] || (d == goal.0 && j >= *mine) {
                continue;
            }
            if self.row[k] == NONE {
                (*goal, *mine) = ((d, SearchEnd::Column(j)), j);
            } else if d == goal.0 {
                continue;
            } else {
                self.heap.push(Reverse((d, j)));
            }
            if self.dist[k] == N::MAX {
                self.reached.push(j);
            }
            (self.dist[k], self.from[k]) = (d, (i, w));
        }
    }

    fn shift(&mut self, f: u32, end: SearchEnd) {
        let mut j = match end {
            SearchEnd::Column(j) => j,
            SearchEnd::Row(r) => std::mem::replace(&mut self.column[r as usize], NONE),
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
