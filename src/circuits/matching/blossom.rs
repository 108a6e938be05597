//! The search machine of [`super::edmonds()`]: blossoms, labels, duals, and one alternating tree at
//! a time.
//!
//! Weights are doubled, so that all duals stay integers. A vertex has a dual `y >= 0`; a blossom B
//! has a dual `z_B >= 0`, of which half is stored. Then `slack(i,j) = y_i + y_j - 2 w_ij + sum of
//! z_B over blossoms that hold both >= 0`, matched edges have no slack, and when every exposed
//! vertex has `y = 0` the matching is of maximum weight.
//!
//! The search may begin from any feasible duals. It grows a tree from one exposed vertex and ends
//! when the tree meets another exposed vertex, or when some outer vertex reaches `y = 0`, which is
//! then left exposed instead. O(n^2 log n) a search at worst.
//!
//! A change of the duals only moves a clock. Duals and slacks that change with it are stored with
//! the clock added or taken off, so that a stored number stays the same as long as its vertex keeps
//! its label. A heap says what happens next. After Z. Galil, S. Micali and H. N. Gabow, *An O(EV
//! log V) algorithm for finding a maximal weighted matching in general graphs* (1986).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::simd::SlackThreshold;
use super::symmetric::Symmetric;
use crate::steps;

mod cycles;
mod near;

use near::Near;
pub(super) use near::{DenseNear, SparseNear};

/// No vertex, blossom or edge.
pub(super) const NONE: u32 = u32::MAX;

/// An edge, oriented: (near end, far end).
type OrientedEdge = (u32, u32);
const NO_EDGE: OrientedEdge = (NONE, NONE);

/// What a top-level blossom is in the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BlossomLabel {
    /// A blossom that is not in the tree.
    Free,
    /// A blossom at even distance from the root: its vertices look for edges.
    Outer,
    /// A blossom at odd distance.
    Inner,
}

/// A vertex (numbers below n) or an odd cycle of blossoms.
struct Blossom<N, L> {
    parent: u32,
    /// How many vertices.
    size: u32,
    /// One of its vertices, by which its vertices are told from others while it is at the top
    /// level.
    mark: u32,
    /// The vertex that is matched outside, or exposed.
    base: u32,
    /// Half of z. Of a top-level cycle, the clock is added while it is inner, and taken off while
    /// it is outer.
    half: N,
    /// A number that grows from one cycle at the top level to the next.
    serial: u32,
    label: BlossomLabel,
    /// The tree edge that gave the label: (vertex outside, vertex inside).
    via: OrientedEdge,
    /// The cycle, from the child with the base on.
    children: Vec<u32>,
    /// `links[k]` joins child k (near end) and child k + 1 (far end).
    links: Vec<OrientedEdge>,
    /// Of an outer cycle, the edges of least slack to vertices outside.
    nearest: L,
    /// The edge of an outer blossom to another outer one with the least slack, and that slack with
    /// twice the clock added.
    rival: (N, OrientedEdge),
}

/// Symmetric weights of a graph's edges.
pub(super) trait WeightedGraph<N: Symmetric>: Sized {
    /// How the edges of least slack of an outer cycle are kept.
    type Near: Near<N, Self>;
    /// The weight of an edge; zero where there is none.
    fn weight(&self, u: u32, v: u32) -> N;
    /// The edges of a vertex: (far end, weight), ascending.
    fn row(&self, u: u32) -> impl Iterator<Item = (u32, N)> + '_;
    /// Appends those edges of a vertex that reach the bar. By far end: what is stored as its dual,
    /// and as the least slack to it.
    fn edges(
        &self,
        u: u32,
        y: &[N],
        near: &[N],
        bar: SlackThreshold<N>,
        found: &mut Vec<(u32, N)>,
    ) {
        found.extend(
            self.row(u).filter(|&(v, w)| bar.is_reached(w, y[v as usize], near[v as usize])),
        );
    }
    /// Where a vertex has an edge, and `y` less twice its weight is less than the key, or equal to
    /// it and the vertex before `from`: these become key and `from`.
    fn offer(&self, u: u32, y: N, keys: &mut [N], from: &mut [u32]) {
        for (v, w) in self.row(u) {
            let (v, key) = (v as usize, y - w - w);
            if (key, u) < (keys[v], from[v]) {
                (keys[v], from[v]) = (key, u);
            }
        }
    }
}

/// A table of `n * n` weights, 0: no edge.
pub(super) struct WeightTable<'a, N>(pub(super) usize, pub(super) &'a [N]);

impl<N> WeightTable<'_, N> {
    /// The weights of a vertex's edges.
    fn weights(&self, u: u32) -> &[N] {
        &self.1[u as usize * self.0..(u as usize + 1) * self.0]
    }
}

impl<N: Symmetric> WeightedGraph<N> for WeightTable<'_, N> {
    type Near = DenseNear<N>;
    fn weight(&self, u: u32, v: u32) -> N {
        self.1[u as usize * self.0 + v as usize]
    }
    fn row(&self, u: u32) -> impl Iterator<Item = (u32, N)> + '_ {
        self.weights(u).iter().enumerate().filter(|e| *e.1 > N::ZERO).map(|(v, &w)| (v as u32, w))
    }
    fn edges(
        &self,
        u: u32,
        y: &[N],
        near: &[N],
        bar: SlackThreshold<N>,
        found: &mut Vec<(u32, N)>,
    ) {
        N::edges(self.weights(u), y, near, bar, found);
    }
    fn offer(&self, u: u32, y: N, keys: &mut [N], from: &mut [u32]) {
        N::offer(self.weights(u), y, u, keys, from);
    }
}

/// Matching, duals and blossoms; see the module's notes.
pub(super) struct BlossomState<'a, N: Symmetric, G: WeightedGraph<N>> {
    n: usize,
    w: &'a G,
    pub(super) mate: Vec<u32>,
    /// Duals. The clock is added while a vertex is outer, and taken off while it is inner.
    pub(super) y: Vec<N>,
    blossoms: Vec<Blossom<N, G::Near>>,
    unused: Vec<u32>,
    /// By vertex: the mark of its top-level blossom, and by mark that blossom. Blossoms that become
    /// one keep the mark of the largest, so that only the vertices of the others get another one.
    marks: Vec<u32>,
    tops: Vec<u32>,
    /// By vertex: the label of its top-level blossom.
    labels: Vec<BlossomLabel>,
    /// By how much outer duals have sunk in this search.
    clock: N,
    /// What may happen next. Events that no longer hold are recognised when they come out.
    events: BinaryHeap<Reverse<TreeEvent<N>>>,
    /// The first outer vertex to reach zero, and when.
    end: (N, u32),
    /// By vertex not outer: the least slack to it of an outer vertex. The clock is added while the
    /// vertex is free. Half of the largest number, if there is none; the largest number for an
    /// outer vertex.
    near: Vec<N>,
    /// By vertex not outer: that outer vertex.
    nearest: Vec<u32>,
    /// By outer vertex, what is stored as its dual; half of the largest number for all others.
    outer: Vec<N>,
    /// The vertices that have a label or an outer vertex near: a search costs as much as it
    /// reaches.
    reached: Vec<u32>,
    is_reached: Vec<bool>,
    /// Outer vertices whose edges are still to be looked at.
    queue: Vec<u32>,
    /// Top-level cycles in the tree or out of it.
    cycles: Vec<u32>,
    /// The last number that a cycle was given.
    serial: u32,
    scratch: Scratch<N>,
}

/// What happens, and at which time. Among equals the first vertex comes first (growth at it, or a
/// merger of the blossom of which it is the base), then cycles by age.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TreeEvent<N> {
    at: N,
    /// The vertex, or none for a cycle that expands.
    vertex: u32,
    /// The blossom of a merger, or the cycle that expands; none for growth.
    blossom: (u32, u32),
}

/// Lists that are empty between two uses.
struct Scratch<N> {
    /// By vertex: the least slack to it so far, and where it is in the list of those found.
    best: Vec<(N, u32)>,
    /// By blossom: whether a walk has been there.
    seen: Vec<bool>,
    /// Edges of a vertex: (far end, weight).
    edges: Vec<(u32, N)>,
}

/// What the next change of the duals leads to.
enum DualStep {
    /// An outer vertex has reached zero.
    Zero(u32),
    /// A free blossom is reached by a tight edge from an outer vertex.
    Grow(OrientedEdge),
    /// Two outer blossoms are joined by a tight edge.
    Merge(OrientedEdge),
    /// An inner cycle's dual has reached zero.
    Expand(u32),
}

impl<'a, N: Symmetric, G: WeightedGraph<N>> BlossomState<'a, N, G> {
    /// A machine for the symmetric weights `w` of `n` vertices with feasible duals `y` and a
    /// matching of tight edges.
    pub(super) fn new(n: usize, w: &'a G, y: Vec<N>, mate: Vec<u32>) -> Self {
        let blossoms = (0..n as u32).map(Blossom::vertex).collect();
        let marks: Vec<u32> = (0..n as u32).collect();
        let tops = marks.clone();
        let (labels, near, nearest, outer) = (
            vec![BlossomLabel::Free; n],
            vec![N::MAX.half(); n],
            vec![NONE; n],
            vec![N::MAX.half(); n],
        );
        let scratch = Scratch { best: vec![], seen: vec![false; n], edges: vec![] };
        let (unused, reached, is_reached, queue, cycles) =
            (vec![], vec![], vec![false; n], vec![], vec![]);
        let (clock, events, end, serial) = (N::ZERO, BinaryHeap::new(), (N::MAX, NONE), 0);
        Self {
            n,
            w,
            mate,
            y,
            blossoms,
            unused,
            marks,
            tops,
            labels,
            clock,
            events,
            end,
            near,
            nearest,
            outer,
            reached,
            is_reached,
            queue,
            cycles,
            serial,
            scratch,
        }
    }

    /// Searches from every exposed vertex that has a positive dual.
    pub(super) fn run(&mut self) {
        for v in 0..self.n as u32 {
            while self.mate[v as usize] == NONE && self.y[v as usize] > N::ZERO {
                self.search(v);
            }
        }
    }

    #[cfg(test)]
    fn slack(&self, u: u32, v: u32) -> N {
        let w = self.w.weight(u, v);
        self.dual(u) + self.dual(v) - w - w
    }

    /// A vertex's dual by now.
    fn dual(&self, v: u32) -> N {
        match self.label(v) {
            BlossomLabel::Free => self.y[v as usize],
            BlossomLabel::Outer => self.y[v as usize] - self.clock,
            BlossomLabel::Inner => self.y[v as usize] + self.clock,
        }
    }

    /// Half of a top-level cycle's z by now.
    fn half(&self, b: u32) -> N {
        let x = self.at(b);
        match x.label {
            BlossomLabel::Free => x.half,
            BlossomLabel::Outer => x.half + self.clock,
            BlossomLabel::Inner => x.half - self.clock,
        }
    }

    fn top(&self, v: u32) -> u32 {
        self.tops[self.marks[v as usize] as usize]
    }

    fn at(&self, b: u32) -> &Blossom<N, G::Near> {
        &self.blossoms[b as usize]
    }

    fn at_mut(&mut self, b: u32) -> &mut Blossom<N, G::Near> {
        &mut self.blossoms[b as usize]
    }

    fn label(&self, v: u32) -> BlossomLabel {
        self.labels[v as usize]
    }

    fn is_cycle(&self, b: u32) -> bool {
        b as usize >= self.n
    }

    /// The vertices of a blossom.
    fn leaves(&self, b: u32) -> Vec<u32> {
        if !self.is_cycle(b) {
            return vec![b];
        }
        let (mut out, mut stack) = (Vec::with_capacity(8), vec![b]);
        while let Some(b) = stack.pop() {
            if self.is_cycle(b) {
                stack.extend(self.at(b).children.iter().rev());
            } else {
                out.push(b);
            }
        }
        out
    }

    /// One tree, from exposed vertex `root` to the end of its search.
    fn search(&mut self, root: u32) {
        self.make_outer(self.top(root), NO_EDGE);
        loop {
            while let Some(v) = self.queue.pop() {
                self.scan(v);
            }
            match self.next_step() {
                DualStep::Zero(v) => {
                    self.flip(v, NONE);
                    break;
                }
                DualStep::Grow((u, v)) => {
                    let b = self.top(v);
                    let base = self.at(b).base;
                    if self.mate[base as usize] == NONE {
                        self.rebase(b, v);
                        self.mate[v as usize] = u;
                        self.flip(u, v);
                        break;
                    }
                    self.make_inner(b, (u, v));
                    let next = self.mate[base as usize];
                    self.make_outer(self.top(next), (base, next));
                }
                DualStep::Merge((u, v)) => self.merge(u, v),
                DualStep::Expand(b) => self.expand_inner(b),
            }
        }
        self.end_search();
    }

    fn make_inner(&mut self, b: u32, via: OrientedEdge) {
        let half = self.half(b) + self.clock;
        let x = self.at_mut(b);
        (x.label, x.via, x.half) = (BlossomLabel::Inner, via, half);
        if self.is_cycle(b) {
            self.happens(TreeEvent { at: half, vertex: NONE, blossom: (self.at(b).serial, b) });
        }
        self.set_labels(b, BlossomLabel::Inner);
    }

    /// What is later than the end of the search does not happen.
    fn happens(&mut self, e: TreeEvent<N>) {
        if e.at <= self.end.0 {
            self.events.push(Reverse(e));
        }
    }

    fn set_labels(&mut self, b: u32, label: BlossomLabel) {
        if !self.is_cycle(b) {
            self.relabel(b, label);
            return;
        }
        for v in self.leaves(b) {
            self.relabel(v, label);
        }
    }

    /// Gives a vertex another label, and stores its dual and its least slack as that label has it.
    fn relabel(&mut self, v: u32, label: BlossomLabel) {
        let (k, clock, dual) = (v as usize, self.clock, self.dual(v));
        let known = self.nearest[k] != NONE;
        if known && self.labels[k] == BlossomLabel::Free {
            self.near[k] -= clock;
        }
        self.labels[k] = label;
        self.reach(v);
        match label {
            BlossomLabel::Free => {
                self.y[k] = dual;
                if known {
                    self.near[k] += clock;
                    self.happens(TreeEvent { at: self.near[k], vertex: v, blossom: (0, NONE) });
                }
            }
            BlossomLabel::Outer => {
                self.y[k] = dual + clock;
                (self.near[k], self.outer[k]) = (N::MAX, self.y[k]);
                self.end = self.end.min((self.y[k], v));
            }
            BlossomLabel::Inner => self.y[k] = dual - clock,
        }
    }

    fn reach(&mut self, v: u32) {
        if !std::mem::replace(&mut self.is_reached[v as usize], true) {
            self.reached.push(v);
        }
    }

    fn make_outer(&mut self, b: u32, via: OrientedEdge) {
        let half = self.half(b) - self.clock;
        let x = self.at_mut(b);
        (x.label, x.via, x.half, x.rival) = (BlossomLabel::Outer, via, half, (N::MAX, NO_EDGE));
        self.set_labels(b, BlossomLabel::Outer);
        if !self.is_cycle(b) {
            self.queue.push(b);
            return;
        }
        let leaves = self.leaves(b);
        self.at_mut(b).nearest = G::Near::of(self, b, &leaves, &[]);
        self.queue.extend(leaves.iter().rev());
    }

    /// The largest slack of an edge that can get tight in this search: one between two outer
    /// vertices loses two units a tick.
    fn most(&self) -> N {
        let left = self.end.0 - self.clock;
        left + left
    }

    /// The least weight of an edge of outer vertex `u` that can get tight in this search, since no
    /// dual is below zero.
    fn least(&self, u: u32) -> N {
        N::of(1).max((self.dual(u) - self.most()).half())
    }

    /// What an edge of outer vertex `u` must reach to lead to anything in this search.
    fn bar(&self, u: u32) -> SlackThreshold<N> {
        let most = self.end.0 + N::of(1);
        SlackThreshold {
            least: self.least(u),
            own: self.y[u as usize],
            most,
            most_outer: most + most,
        }
    }

    /// Looks at the edges of a vertex that has become outer.
    fn scan(&mut self, u: u32) {
        steps::count(1);
        let (own, dual, mut edges) =
            (self.top(u), self.dual(u), std::mem::take(&mut self.scratch.edges));
        self.w.edges(u, &self.y, &self.near, self.bar(u), &mut edges);
        for (v, w) in edges.drain(..) {
            if self.top(v) == own {
                continue;
            }
            let s = dual + self.dual(v) - w - w;
            let near = self.near[v as usize];
            match self.labels[v as usize] {
                BlossomLabel::Outer => {
                    self.offer_rival(own, s, (u, v));
                    self.offer_rival(self.top(v), s, (v, u));
                }
                BlossomLabel::Free if s + self.clock < near && s + self.clock <= self.end.0 => {
                    (self.near[v as usize], self.nearest[v as usize]) = (s + self.clock, u);
                    self.reach(v);
                    self.happens(TreeEvent { at: s + self.clock, vertex: v, blossom: (0, NONE) });
                }
                BlossomLabel::Inner if s < near => {
                    (self.near[v as usize], self.nearest[v as usize]) = (s, u)
                }
                _ => {}
            }
        }
        self.scratch.edges = edges;
    }

    fn offer_rival(&mut self, b: u32, slack: N, edge: OrientedEdge) {
        let at = slack + self.clock + self.clock;
        let x = self.at_mut(b);
        if at < x.rival.0 {
            x.rival = (at, edge);
            let vertex = x.base;
            self.happens(TreeEvent { at: at.half(), vertex, blossom: (0, b) });
        }
    }

    /// Moves the clock to the next event; among equals to the one at the first vertex. Ends come
    /// before growth, so that trees stay small.
    fn next_step(&mut self) -> DualStep {
        steps::count(1);
        loop {
            let next = self.events.peek().map(|e| e.0).filter(|e| (e.at, e.vertex) < self.end);
            let Some(e) = next else {
                self.clock = self.end.0;
                return DualStep::Zero(self.end.1);
            };
            self.events.pop();
            let step = match (e.vertex, e.blossom) {
                (NONE, (serial, b)) => {
                    let x = self.at(b);
                    let still = x.parent == NONE
                        && x.label == BlossomLabel::Inner
                        && x.serial == serial
                        && x.half == e.at;
                    still.then_some(DualStep::Expand(b))
                }
                (v, (_, NONE)) => {
                    let still =
                        self.label(v) == BlossomLabel::Free && self.near[v as usize] == e.at;
                    still.then(|| DualStep::Grow((self.nearest[v as usize], v)))
                }
                (v, (_, b)) => {
                    let (at, edge) = self.at(b).rival;
                    let still = self.at(b).label == BlossomLabel::Outer
                        && self.top(v) == b
                        && edge != NO_EDGE
                        && at.half() == e.at;
                    still.then_some(DualStep::Merge(edge))
                }
            };
            if let Some(step) = step {
                self.clock = e.at;
                return step;
            }
        }
    }

    /// Takes all labels off, and dissolves outer cycles without dual.
    fn end_search(&mut self) {
        self.queue.clear();
        self.events.clear();
        for v in std::mem::take(&mut self.reached) {
            let k = v as usize;
            (self.y[k], self.near[k], self.nearest[k]) = (self.dual(v), N::MAX.half(), NONE);
            (self.outer[k], self.is_reached[k]) = (N::MAX.half(), false);
            (self.blossoms[k].label, self.blossoms[k].via, self.blossoms[k].half) =
                (BlossomLabel::Free, NO_EDGE, N::ZERO);
            self.labels[k] = BlossomLabel::Free;
        }
        let mut todo = self.cycles.clone();
        for &b in &todo {
            self.at_mut(b).half = self.half(b);
        }
        (self.clock, self.end) = (N::ZERO, (N::MAX, NONE));
        while let Some(b) = todo.pop() {
            let x = self.at_mut(b);
            (x.label, x.via, x.nearest) = (BlossomLabel::Free, NO_EDGE, G::Near::default());
            if x.half == N::ZERO {
                let (children, _) = self.dissolve(b);
                todo.extend(children.into_iter().filter(|&c| self.is_cycle(c)));
            }
        }
    }
}

impl<N: Symmetric, L: Default> Blossom<N, L> {
    fn vertex(v: u32) -> Self {
        Self {
            parent: NONE,
            size: 1,
            mark: v,
            base: v,
            half: N::ZERO,
            serial: 0,
            label: BlossomLabel::Free,
            via: NO_EDGE,
            children: Vec::new(),
            links: Vec::new(),
            nearest: L::default(),
            rival: (N::MAX, NO_EDGE),
        }
    }
}

#[cfg(test)]
impl<N: Symmetric, G: WeightedGraph<N>> BlossomState<'_, N, G> {
    /// Proves the optimum by the duals: feasible, tight where matched, zero where exposed, and the
    /// sums equal.
    pub(super) fn certify(&self) {
        let n = self.n;
        let chain = |v: u32| {
            std::iter::successors(Some(v), |&b| Some(self.at(b).parent).filter(|&p| p != NONE))
                .skip(1)
        };
        for i in 0..n as u32 {
            assert!(self.y[i as usize] >= N::ZERO);
            for j in (0..i).filter(|&j| self.w.weight(i, j) > N::ZERO) {
                let others: Vec<u32> = chain(j).collect();
                let z: i128 = chain(i)
                    .filter(|b| others.contains(b))
                    .map(|b| 2 * self.at(b).half.wide())
                    .sum();
                let s = self.slack(i, j).wide() + z;
                assert!(s >= 0, "edge {i}-{j} has slack {s}");
                assert!(self.mate[i as usize] != j || s == 0);
            }
        }
        let roots = self.blossoms[n..]
            .iter()
            .enumerate()
            .filter(|(k, _)| !self.unused.contains(&((n + k) as u32)));
        let z: i128 = roots
            .map(|(k, b)| {
                assert!(b.half >= N::ZERO);
                b.half.wide() * (self.leaves((n + k) as u32).len() as i128 - 1)
            })
            .sum();
        let matched = |i: usize| {
            if self.mate[i] == NONE { 0 } else { self.w.weight(i as u32, self.mate[i]).wide() }
        };
        let total: i128 = (0..n).map(matched).sum();
        assert_eq!(
            self.y.iter().map(|y| y.wide()).sum::<i128>() + z,
            total,
            "twice the weight is the sum of the duals"
        );
    }
}
