//! How blossoms are made, fall apart and turn: the structure that a search changes, without its
//! duals.

use super::super::symmetric::Symmetric;
use super::near::Near;
use super::{Blossom, BlossomLabel, BlossomState, NO_EDGE, NONE, OrientedEdge, WeightedGraph};

impl<N: Symmetric, G: WeightedGraph<N>> BlossomState<'_, N, G> {
    /// Tight edge (u, v) closes an odd cycle through the tree: it becomes one outer blossom.
    pub(super) fn merge(&mut self, u: u32, v: u32) {
        let meet = self.common_ancestor(self.top(u), self.top(v));
        let (mut children, mut links) = (Vec::new(), vec![(u, v)]);
        let mut b = self.top(u);
        while b != meet {
            children.push(b);
            links.push(self.at(b).via);
            b = self.top(self.at(b).via.0);
        }
        children.push(meet);
        children.reverse();
        links.reverse();
        let mut b = self.top(v);
        while b != meet {
            children.push(b);
            let (outside, inside) = self.at(b).via;
            links.push((inside, outside));
            b = self.top(outside);
        }
        let new = self.new_cycle(children, links);
        self.become_outer_cycle(new);
    }

    fn common_ancestor(&mut self, a: u32, b: u32) -> u32 {
        let mut seen = std::mem::take(&mut self.scratch.seen);
        seen.resize(self.blossoms.len(), false);
        let up = |b: u32| {
            let out = self.at(b).via.0;
            (out != NONE).then(|| self.top(out))
        };
        let mut visited = Vec::new();
        let mut walk = [Some(a), Some(b)];
        let meet = 'walk: loop {
            for w in &mut walk {
                if let Some(b) = *w {
                    if std::mem::replace(&mut seen[b as usize], true) {
                        break 'walk b;
                    }
                    visited.push(b);
                    *w = up(b);
                }
            }
        };
        visited.into_iter().for_each(|b| seen[b as usize] = false);
        self.scratch.seen = seen;
        meet
    }

    /// Takes `children` into one blossom at the top level.
    fn new_cycle(&mut self, children: Vec<u32>, links: Vec<OrientedEdge>) -> u32 {
        let id = self.unused.pop().unwrap_or(self.blossoms.len() as u32);
        let first = self.at(children[0]);
        let (base, via, half) = (first.base, first.via, -self.clock);
        let largest = children
            .iter()
            .copied()
            .max_by_key(|&c| self.at(c).size)
            .expect("a cycle has children");
        let (mark, size) = (self.at(largest).mark, children.iter().map(|&c| self.at(c).size).sum());
        for &c in children.iter().filter(|&&c| c != largest) {
            self.leaves(c).into_iter().for_each(|v| self.marks[v as usize] = mark);
        }
        self.tops[mark as usize] = id;
        let made = Blossom {
            size,
            mark,
            base,
            half,
            label: BlossomLabel::Outer,
            via,
            children,
            links,
            ..Blossom::vertex(NONE)
        };
        if id as usize == self.blossoms.len() {
            self.blossoms.push(made);
        } else {
            self.blossoms[id as usize] = made;
        }
        for k in 0..self.at(id).children.len() {
            let c = self.at(id).children[k];
            let half = self.half(c);
            (self.at_mut(c).parent, self.at_mut(c).half) = (id, half);
        }
        self.cycles.retain(|&c| self.blossoms[c as usize].parent == NONE);
        self.add_cycle(id);
        id
    }

    /// Cycle `b` is at the top level now.
    fn add_cycle(&mut self, b: u32) {
        self.serial += 1;
        self.at_mut(b).serial = self.serial;
        self.cycles.push(b);
    }

    /// Brings the new cycle's edges together: those of its outer cycles from their lists, all
    /// others vertex by vertex. What was inner has become outer and is looked at again.
    fn become_outer_cycle(&mut self, b: u32) {
        let (mut singles, mut cycles) = (Vec::new(), Vec::new());
        for c in self.at(b).children.clone() {
            if self.at(c).label == BlossomLabel::Outer {
                if self.is_cycle(c) {
                    cycles.push(c)
                } else {
                    singles.push(c)
                }
                continue;
            }
            let leaves = self.leaves(c);
            self.queue.extend(leaves.iter().rev());
            singles.extend(&leaves);
            leaves.into_iter().for_each(|v| self.relabel(v, BlossomLabel::Outer));
        }
        let nearest = G::Near::of(self, b, &singles, &cycles);
        if let Some((slack, edge)) = nearest.rival(self) {
            self.offer_rival(b, slack, edge);
        }
        self.at_mut(b).nearest = nearest;
    }

    /// Dissolves a top-level cycle into its children, unlabelled.
    pub(super) fn dissolve(&mut self, b: u32) -> (Vec<u32>, Vec<OrientedEdge>) {
        let x = self.at_mut(b);
        let (children, links) = (std::mem::take(&mut x.children), std::mem::take(&mut x.links));
        self.cycles.retain(|&c| c != b);
        self.unused.push(b);
        // At the end of a search no vertex has a label any more.
        let (kept, is_free) = (self.at(b).mark, self.label(self.at(b).mark) == BlossomLabel::Free);
        for &c in &children {
            let x = self.at_mut(c);
            (x.parent, x.label, x.via) = (NONE, BlossomLabel::Free, NO_EDGE);
            let mark = x.mark;
            if self.is_cycle(c) {
                self.add_cycle(c);
            }
            self.tops[mark as usize] = c;
            for v in if is_free && mark == kept { vec![] } else { self.leaves(c) } {
                self.marks[v as usize] = mark;
                if !is_free {
                    self.relabel(v, BlossomLabel::Free);
                }
            }
        }
        (children, links)
    }

    /// An inner cycle without dual falls apart: the even way from where the tree entered it to its
    /// base stays in the tree.
    pub(super) fn expand_inner(&mut self, b: u32) {
        let via = self.at(b).via;
        let (children, links) = self.dissolve(b);
        let len = children.len();
        let entry = children
            .iter()
            .position(|&c| c == self.top(via.1))
            .expect("the tree entered through a child");
        let forward = entry % 2 == 1;
        let (mut k, mut via) = (entry, via);
        loop {
            self.make_inner(children[k], via);
            if k == 0 {
                break;
            }
            let inner_to_outer = link(&links, k, forward);
            k = step(k, len, forward);
            self.make_outer(children[k], inner_to_outer);
            via = link(&links, k, forward);
            k = step(k, len, forward);
        }
    }

    /// Turns the tree path around from outer vertex `u` to the root: `u` gets `mate` (or is left
    /// exposed).
    pub(super) fn flip(&mut self, u: u32, mate: u32) {
        let (mut s, mut partner) = (u, mate);
        loop {
            let b = self.top(s);
            self.rebase(b, s);
            self.mate[s as usize] = partner;
            let outside = self.at(b).via.0;
            if outside == NONE {
                return;
            }
            let inner = self.top(outside);
            let (next, inside) = self.at(inner).via;
            self.rebase(inner, inside);
            self.mate[inside as usize] = next;
            (s, partner) = (next, inside);
        }
    }

    /// Re-matches the inside of a blossom so that `v` becomes its base.
    pub(super) fn rebase(&mut self, b: u32, v: u32) {
        if !self.is_cycle(b) {
            return;
        }
        let mut child = v;
        while self.at(child).parent != b {
            child = self.at(child).parent;
        }
        self.rebase(child, v);
        let (children, links) = (self.at(b).children.clone(), self.at(b).links.clone());
        let len = children.len();
        let from = children.iter().position(|&c| c == child).expect("a child");
        let forward = from % 2 == 1;
        let mut k = from;
        while k != 0 {
            k = step(k, len, forward);
            let (p, q) = link(&links, k, forward);
            self.rebase(children[k], p);
            k = step(k, len, forward);
            self.rebase(children[k], q);
            self.mate[p as usize] = q;
            self.mate[q as usize] = p;
        }
        let x = self.at_mut(b);
        x.children.rotate_left(from);
        x.links.rotate_left(from);
        x.base = v;
    }
}

/// The edge from child `k` of a cycle to the next one in the given direction, oriented that way.
fn link(links: &[OrientedEdge], k: usize, forward: bool) -> OrientedEdge {
    if forward {
        links[k]
    } else {
        let (p, q) = links[(k + links.len() - 1) % links.len()];
        (q, p)
    }
}

fn step(k: usize, len: usize, forward: bool) -> usize {
    if forward { (k + 1) % len } else { (k + len - 1) % len }
}
