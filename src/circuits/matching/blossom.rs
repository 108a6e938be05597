//! The search machine of [`super::edmonds()`]: blossoms, labels, duals, and one alternating tree at a time.
//!
//! Weights are doubled, so that all duals stay integers. A vertex has a dual `y >= 0`; a blossom B has a dual `z_B >= 0`, of
//! which half is stored. Then `slack(i,j) = y_i + y_j - 2 w_ij + sum of z_B over blossoms that hold both >= 0`, matched edges
//! have no slack, and when every exposed vertex has `y = 0` the matching is of maximum weight.
//!
//! The search may begin from any feasible duals. It grows a tree from one exposed vertex and ends when the tree meets another
//! exposed vertex, or when some outer vertex reaches `y = 0`, which is then left exposed instead. O(n^2) a search.

use super::num::Num;
use crate::circuits::steps;

mod cycles;

/// No vertex, blossom or edge.
pub(super) const NONE: u32 = u32::MAX;

/// An edge, oriented: (near end, far end).
type Edge = (u32, u32);
const NO_EDGE: Edge = (NONE, NONE);

/// What a top-level blossom is in the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Label {
    /// A blossom that is not in the tree.
    Free,
    /// A blossom at even distance from the root: its vertices look for edges.
    Outer,
    /// A blossom at odd distance.
    Inner,
}

/// A vertex (numbers below n) or an odd cycle of blossoms.
struct Blossom<N> {
    parent: u32,
    /// The vertex that is matched outside, or exposed.
    base: u32,
    /// Half of z.
    half: N,
    label: Label,
    /// The tree edge that gave the label: (vertex outside, vertex inside).
    via: Edge,
    /// The cycle, from the child with the base on.
    children: Vec<u32>,
    /// `links[k]` joins child k (near end) and child k + 1 (far end).
    links: Vec<Edge>,
    /// By vertex outside an outer cycle: the vertex inside with least slack to it.
    nearest: Vec<u32>,
    /// The edge of an outer blossom to another outer one with the least slack, and that slack.
    rival: (N, Edge),
}

/// Symmetric weights of a graph's edges.
pub(super) trait Graph<N> {
    /// The weight of an edge; zero where there is none.
    fn weight(&self, u: u32, v: u32) -> N;
    /// Passes all edges of a vertex: (far end, weight).
    fn edges(&self, u: u32) -> impl Iterator<Item = (u32, N)> + '_;
}

/// A table of `n * n` weights, 0: no edge.
pub(super) struct Table<'a, N>(pub(super) usize, pub(super) &'a [N]);

impl<N: Num> Graph<N> for Table<'_, N> {
    fn weight(&self, u: u32, v: u32) -> N {
        self.1[u as usize * self.0 + v as usize]
    }
    fn edges(&self, u: u32) -> impl Iterator<Item = (u32, N)> + '_ {
        let row = &self.1[u as usize * self.0..(u as usize + 1) * self.0];
        row.iter().enumerate().filter(|e| *e.1 > N::ZERO).map(|(v, &w)| (v as u32, w))
    }
}

/// Matching, duals and blossoms; see the module's notes.
pub(super) struct Machine<'a, N, G> {
    n: usize,
    w: &'a G,
    pub(super) mate: Vec<u32>,
    pub(super) y: Vec<N>,
    blossoms: Vec<Blossom<N>>,
    unused: Vec<u32>,
    /// By vertex: its top-level blossom, and that one's label.
    top: Vec<u32>,
    labels: Vec<Label>,
    /// By vertex not outer: the outer vertex with least slack to it, and that slack.
    near: Vec<(N, u32)>,
    /// Outer vertices whose edges are still to be looked at.
    queue: Vec<u32>,
    /// Top-level cycles in the tree or out of it.
    cycles: Vec<u32>,
}

/// What the next change of the duals leads to.
enum Step {
    /// An outer vertex has reached zero.
    Zero(u32),
    /// A free blossom is reached by a tight edge from an outer vertex.
    Grow(Edge),
    /// Two outer blossoms are joined by a tight edge.
    Merge(Edge),
    /// An inner cycle's dual has reached zero.
    Expand(u32),
}

impl<'a, N: Num, G: Graph<N>> Machine<'a, N, G> {
    /// A machine for the symmetric weights `w` of `n` vertices with feasible duals `y` and a matching of tight edges.
    pub(super) fn new(n: usize, w: &'a G, y: Vec<N>, mate: Vec<u32>) -> Self {
        let blossoms = (0..n as u32).map(Blossom::vertex).collect();
        let top = (0..n as u32).collect();
        let labels = vec![Label::Free; n];
        Self { n, w, mate, y, blossoms, unused: vec![], top, labels, near: vec![(N::MAX, NONE); n], queue: vec![], cycles: vec![] }
    }

    /// Searches from every exposed vertex that has a positive dual.
    pub(super) fn run(&mut self) {
        for v in 0..self.n as u32 {
            while self.mate[v as usize] == NONE && self.y[v as usize] > N::ZERO {
                self.search(v);
            }
        }
    }

    fn slack(&self, u: u32, v: u32) -> N {
        let w = self.w.weight(u, v);
        self.y[u as usize] + self.y[v as usize] - w - w
    }

    fn top(&self, v: u32) -> u32 {
        self.top[v as usize]
    }

    fn at(&self, b: u32) -> &Blossom<N> {
        &self.blossoms[b as usize]
    }

    fn at_mut(&mut self, b: u32) -> &mut Blossom<N> {
        &mut self.blossoms[b as usize]
    }

    fn label(&self, v: u32) -> Label {
        self.labels[v as usize]
    }

    fn is_cycle(&self, b: u32) -> bool {
        b as usize >= self.n
    }

    /// The vertices of a blossom.
    fn leaves(&self, b: u32) -> Vec<u32> {
        let (mut out, mut stack) = (Vec::new(), vec![b]);
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
        self.near.fill((N::MAX, NONE));
        self.make_outer(self.top(root), NO_EDGE);
        loop {
            while let Some(v) = self.queue.pop() {
                self.scan(v);
            }
            let (delta, step) = self.next_step();
            self.shift_duals(delta);
            match step {
                Step::Zero(v) => {
                    self.flip(v, NONE);
                    break;
                }
                Step::Grow((u, v)) => {
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
                Step::Merge((u, v)) => self.merge(u, v),
                Step::Expand(b) => self.expand_inner(b),
            }
        }
        self.end_search();
    }

    fn make_inner(&mut self, b: u32, via: Edge) {
        let x = self.at_mut(b);
        (x.label, x.via) = (Label::Inner, via);
        self.set_labels(b, Label::Inner);
    }

    fn set_labels(&mut self, b: u32, label: Label) {
        if !self.is_cycle(b) {
            self.labels[b as usize] = label;
            return;
        }
        for v in self.leaves(b) {
            self.labels[v as usize] = label;
        }
    }

    fn make_outer(&mut self, b: u32, via: Edge) {
        let nothing = (N::MAX, NO_EDGE);
        let x = self.at_mut(b);
        (x.label, x.via, x.rival) = (Label::Outer, via, nothing);
        self.set_labels(b, Label::Outer);
        if !self.is_cycle(b) {
            self.queue.push(b);
            return;
        }
        let leaves = self.leaves(b);
        self.at_mut(b).nearest = self.nearest_of(b, &leaves, &[]);
        self.queue.extend(leaves.iter().rev());
    }

    /// By vertex outside `b`: the vertex with least slack to it among `singles` and the `nearest` lists of `cycles`.
    fn nearest_of(&self, b: u32, singles: &[u32], cycles: &[u32]) -> Vec<u32> {
        steps::count(1 + singles.len() + cycles.len());
        let mut best = vec![(N::MAX, NONE); self.n];
        for &u in singles {
            for (x, w) in self.w.edges(u).filter(|e| self.top(e.0) != b) {
                let offer = (self.y[u as usize] + self.y[x as usize] - w - w, u);
                best[x as usize] = best[x as usize].min(offer);
            }
        }
        for &c in cycles {
            for (x, &u) in self.at(c).nearest.iter().enumerate().filter(|e| *e.1 != NONE && self.top[e.0] != b) {
                best[x] = best[x].min((self.slack(u, x as u32), u));
            }
        }
        best.into_iter().map(|(_, u)| u).collect()
    }

    /// Looks at the edges of a vertex that has become outer.
    fn scan(&mut self, u: u32) {
        steps::count(1);
        let own = self.top(u);
        let w = self.w;
        for (v, w) in w.edges(u) {
            if self.top(v) == own {
                continue;
            }
            let s = self.y[u as usize] + self.y[v as usize] - w - w;
            if self.label(v) == Label::Outer {
                self.offer_rival(own, s, (u, v));
                self.offer_rival(self.top(v), s, (v, u));
            } else if s < self.near[v as usize].0 {
                self.near[v as usize] = (s, u);
            }
        }
    }

    fn offer_rival(&mut self, b: u32, slack: N, edge: Edge) {
        let x = self.at_mut(b);
        if slack < x.rival.0 {
            x.rival = (slack, edge);
        }
    }

    /// The smallest change of the duals that makes something happen. Ends come before growth, so that trees stay small.
    fn next_step(&self) -> (N, Step) {
        steps::count(1);
        let mut best: Option<(N, Step)> = None;
        let mut offer = |d: N, s: Step| {
            if best.as_ref().is_none_or(|b| d < b.0) {
                best = Some((d, s));
            }
        };
        for v in 0..self.n as u32 {
            match self.label(v) {
                Label::Outer => {
                    offer(self.y[v as usize], Step::Zero(v));
                    let b = self.top(v);
                    let (s, e) = self.at(b).rival;
                    if self.at(b).base == v && e != NO_EDGE {
                        offer(s.half(), Step::Merge(e));
                    }
                }
                Label::Free => {
                    let (s, u) = self.near[v as usize];
                    if u != NONE {
                        offer(s, Step::Grow((u, v)));
                    }
                }
                Label::Inner => {}
            }
        }
        for &b in &self.cycles {
            if self.at(b).label == Label::Inner {
                offer(self.at(b).half, Step::Expand(b));
            }
        }
        best.expect("a tree has an outer vertex, whose dual bounds the step")
    }

    fn shift_duals(&mut self, d: N) {
        if d == N::ZERO {
            return;
        }
        for v in 0..self.n as u32 {
            let k = v as usize;
            match self.label(v) {
                Label::Outer => {
                    self.y[k] -= d;
                    let b = self.top(v);
                    if self.at(b).base == v && self.at(b).rival.1 != NO_EDGE {
                        self.at_mut(b).rival.0 -= d + d;
                    }
                }
                Label::Inner => self.y[k] += d,
                Label::Free if self.near[k].1 != NONE => self.near[k].0 -= d,
                Label::Free => {}
            }
        }
        for k in 0..self.cycles.len() {
            let x = self.at_mut(self.cycles[k]);
            match x.label {
                Label::Outer => x.half += d,
                Label::Inner => x.half -= d,
                Label::Free => {}
            }
        }
    }

    /// Takes all labels off, and dissolves outer cycles without dual.
    fn end_search(&mut self) {
        self.queue.clear();
        for v in 0..self.n {
            (self.blossoms[v].label, self.blossoms[v].via) = (Label::Free, NO_EDGE);
        }
        self.labels.fill(Label::Free);
        let mut todo = self.cycles.clone();
        while let Some(b) = todo.pop() {
            let x = self.at_mut(b);
            (x.label, x.via, x.nearest) = (Label::Free, NO_EDGE, Vec::new());
            if x.half == N::ZERO {
                let (children, _) = self.dissolve(b);
                todo.extend(children.into_iter().filter(|&c| self.is_cycle(c)));
            }
        }
    }
}

impl<N: Num> Blossom<N> {
    fn vertex(v: u32) -> Self {
        Self {
            parent: NONE,
            base: v,
            half: N::ZERO,
            label: Label::Free,
            via: NO_EDGE,
            children: Vec::new(),
            links: Vec::new(),
            nearest: Vec::new(),
            rival: (N::MAX, NO_EDGE),
        }
    }
}

#[cfg(test)]
impl<N: Num, G: Graph<N>> Machine<'_, N, G> {
    /// Proves the optimum by the duals: feasible, tight where matched, zero where exposed, and the sums equal.
    pub(super) fn certify(&self) {
        let n = self.n;
        let chain = |v: u32| std::iter::successors(Some(v), |&b| Some(self.at(b).parent).filter(|&p| p != NONE)).skip(1);
        for i in 0..n as u32 {
            assert!(self.y[i as usize] >= N::ZERO);
            for j in (0..i).filter(|&j| self.w.weight(i, j) > N::ZERO) {
                let others: Vec<u32> = chain(j).collect();
                let z: i128 = chain(i).filter(|b| others.contains(b)).map(|b| 2 * self.at(b).half.wide()).sum();
                let s = self.slack(i, j).wide() + z;
                assert!(s >= 0, "edge {i}-{j} has slack {s}");
                assert!(self.mate[i as usize] != j || s == 0);
            }
        }
        let roots = self.blossoms[n..].iter().enumerate().filter(|(k, _)| !self.unused.contains(&((n + k) as u32)));
        let z: i128 = roots
            .map(|(k, b)| {
                assert!(b.half >= N::ZERO);
                b.half.wide() * (self.leaves((n + k) as u32).len() as i128 - 1)
            })
            .sum();
        let matched = |i: usize| if self.mate[i] == NONE { 0 } else { self.w.weight(i as u32, self.mate[i]).wide() };
        let total: i128 = (0..n).map(matched).sum();
        assert_eq!(self.y.iter().map(|y| y.wide()).sum::<i128>() + z, total, "twice the weight is the sum of the duals");
    }
}
