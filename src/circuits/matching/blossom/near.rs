//! The edges of least slack of an outer cycle: for each vertex outside the best one.

use super::super::symmetric::Symmetric;
use super::{BlossomLabel, BlossomState, NONE, OrientedEdge, WeightedGraph};
use crate::steps;

/// Of an outer cycle: to vertices outside, the edge with the least slack.
pub(in super::super) trait Near<N: Symmetric, G: WeightedGraph<N, Near = Self>>:
    Default
{
    /// Those of the new cycle `b`, whose vertices are outer: of its vertices `singles`, and of its
    /// `cycles`, which lose theirs.
    fn of(m: &mut BlossomState<N, G>, b: u32, singles: &[u32], cycles: &[u32]) -> Self;

    /// The edge with the least slack to another outer vertex, and the slack; among equals the one
    /// of the first vertex, to the first vertex.
    fn rival(&self, m: &BlossomState<N, G>) -> Option<(N, OrientedEdge)>;
}

/// A list of vertices outside, each with the vertex inside that has least slack to it, and the
/// edge's weight: for graphs with few edges.
pub(in super::super) struct SparseNear<N>(Vec<(u32, u32, N)>);

impl<N> Default for SparseNear<N> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<N: Symmetric, G: WeightedGraph<N, Near = Self>> Near<N, G> for SparseNear<N> {
    fn of(m: &mut BlossomState<N, G>, b: u32, singles: &[u32], cycles: &[u32]) -> Self {
        steps::count(1 + singles.len() + cycles.len());
        let most = m.most();
        let mut best = std::mem::take(&mut m.scratch.best);
        best.resize(m.n, (N::MAX, NONE));
        let mut found: Vec<(u32, u32, N)> = Vec::new();
        let mut offer = |x: u32, u: u32, w: N| {
            if m.top(x) == b {
                return;
            }
            let slack = m.dual(u) + m.dual(x) - w - w;
            if slack > most {
                return;
            }
            let best = &mut best[x as usize];
            if best.1 == NONE {
                *best = (slack, found.len() as u32);
                found.push((x, u, w));
            } else if (slack, u) < (best.0, found[best.1 as usize].1) {
                best.0 = slack;
                found[best.1 as usize] = (x, u, w);
            }
        };
        for &u in singles {
            let least = m.least(u);
            m.w.row(u).filter(|e| e.1 >= least).for_each(|(x, w)| offer(x, u, w));
        }
        for &c in cycles {
            m.at(c).nearest.0.iter().for_each(|&(x, u, w)| offer(x, u, w));
        }
        for f in &found {
            best[f.0 as usize].1 = NONE;
        }
        m.scratch.best = best;
        for &c in cycles {
            m.at_mut(c).nearest = Self::default();
        }
        Self(found)
    }

    fn rival(&self, m: &BlossomState<N, G>) -> Option<(N, OrientedEdge)> {
        let outer = self.0.iter().filter(|e| m.label(e.0) == BlossomLabel::Outer);
        outer.map(|&(x, u, w)| (m.dual(u) + m.dual(x) - w - w, (u, x))).min()
    }
}

/// A rival is looked for among as many vertices at a time.
const PART: usize = 64;

/// By vertex, the vertex inside with the least slack to it: for graphs of not too many vertices,
/// since each outer cycle at the top has a place for each of them.
pub(in super::super) struct DenseNear<N> {
    /// The stored dual of the vertex inside, less twice the edge's weight: by so much its slack and
    /// the other end's dual differ. Half of the largest number if there is no edge; for vertices
    /// inside less than any other key, so that these stay as they are.
    keys: Vec<N>,
    from: Vec<u32>,
}

impl<N> Default for DenseNear<N> {
    fn default() -> Self {
        Self { keys: Vec::new(), from: Vec::new() }
    }
}

impl<N: Symmetric, G: WeightedGraph<N, Near = Self>> Near<N, G> for DenseNear<N> {
    fn of(m: &mut BlossomState<N, G>, _b: u32, singles: &[u32], cycles: &[u32]) -> Self {
        steps::count(1 + singles.len() + cycles.len());
        let mut lists = cycles.iter().map(|&c| std::mem::take(&mut m.blossoms[c as usize].nearest));
        let none = || Self { keys: vec![N::MAX.half(); m.n], from: vec![NONE; m.n] };
        let mut all = lists.next().unwrap_or_else(none);
        for list in lists {
            N::join(&list.keys, &list.from, &mut all.keys, &mut all.from);
        }
        singles.iter().for_each(|&u| all.keys[u as usize] = -N::MAX);
        for &u in singles {
            m.w.offer(u, m.y[u as usize], &mut all.keys, &mut all.from);
        }
        all
    }

    fn rival(&self, m: &BlossomState<N, G>) -> Option<(N, OrientedEdge)> {
        let mut best = (N::MAX.half(), (NONE, NONE));
        for (part, begin) in self.keys.chunks(PART).zip((0..).step_by(PART)) {
            let outer = &m.outer[begin..begin + part.len()];
            let least = N::least_sum(part, outer);
            if least <= best.0 {
                let equal =
                    part.iter().zip(outer).zip(begin..).filter(|&((&key, &y), _)| key + y == least);
                best = equal.map(|(_, x)| (least, (self.from[x], x as u32))).fold(best, Ord::min);
            }
        }
        // Both duals are stored with the clock added.
        (best.1.0 != NONE).then_some((best.0 - m.clock - m.clock, best.1))
    }
}
