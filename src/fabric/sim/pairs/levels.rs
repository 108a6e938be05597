//! Levels: to which rate per flow each link is filled, where every flow crosses one link up and one down.
//!
//! A flow that ends changes nothing of what was filled before its tighter link. So a filling is undone from its end up to that link, and
//! goes on from there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// A link at which no flow is held back has no level.
const NONE: u64 = u64::MAX;

/// Links 0..n go up, n..2n down. The max-min fair rate of a flow is the smaller level of its two links.
pub struct Levels {
    n: usize,
    /// Number of flows by (up, down), and the same by (down, up).
    flows: [Vec<u32>; 2],
    level: Vec<u64>,
    /// Links in the order in which they were filled.
    filled: Vec<u32>,
    /// By link: its place among those; `u32::MAX` if it is not.
    turn: Vec<u32>,
    /// Links by level and number, as of the last [`Levels::sort`].
    sorted: Vec<u32>,
    /// By link that is not filled: what those that are leave it, and how many of its flows still grow.
    left: Vec<u64>,
    growing: Vec<u32>,
}

/// A link that is not filled.
const NO_TURN: u32 = u32::MAX;

impl Levels {
    /// No flows.
    pub fn new(capacity: Vec<u64>) -> Self {
        let links = capacity.len();
        let n = links / 2;
        Self {
            n,
            flows: [vec![0; n * n], vec![0; n * n]],
            level: vec![NONE; links],
            filled: Vec::with_capacity(links),
            turn: vec![NO_TURN; links],
            sorted: (0..links as u32).collect(),
            left: capacity,
            growing: vec![0; links],
        }
    }

    /// Links have these capacities from now on.
    pub fn limit(&mut self, capacity: &[u64]) {
        self.undo(0);
        self.left.copy_from_slice(capacity);
    }

    /// One flow more.
    pub fn add(&mut self, up: usize, down: usize) {
        self.undo(0);
        self.flows[0][up * self.n + down] += 1;
        self.flows[1][down * self.n + up] += 1;
        self.growing[up] += 1;
        self.growing[self.n + down] += 1;
    }

    /// One flow less.
    pub fn remove(&mut self, up: usize, down: usize) {
        self.undo(self.turn[up].min(self.turn[self.n + down]) as usize);
        self.flows[0][up * self.n + down] -= 1;
        self.flows[1][down * self.n + up] -= 1;
        self.growing[up] -= 1;
        self.growing[self.n + down] -= 1;
    }

    /// Takes back the filling of all links from this place on, the last one first.
    fn undo(&mut self, place: usize) {
        while self.filled.len() > place {
            let link = self.filled.pop().expect("it is longer") as usize;
            self.turn[link] = NO_TURN;
            let share = std::mem::replace(&mut self.level[link], NONE);
            let (left, growing, row) = self.others(link);
            for ((left, growing), &flows) in left.iter_mut().zip(growing).zip(row) {
                *left = left.wrapping_add(share.wrapping_mul(u64::from(flows)));
                *growing = growing.wrapping_add(flows);
            }
        }
    }

    /// What the links on the other side have left, how many of their flows grow, and how many flows they share with this link.
    fn others(&mut self, link: usize) -> (&mut [u64], &mut [u32], &[u32]) {
        let side = usize::from(link >= self.n);
        let (own, other) = (link - side * self.n, (1 - side) * self.n);
        let row = &self.flows[side][own * self.n..(own + 1) * self.n];
        (&mut self.left[other..other + self.n], &mut self.growing[other..other + self.n], row)
    }

    /// The rate of flows that this link holds back; zero if it holds none back.
    pub fn pace(&self, link: u32) -> u64 {
        let level = self.level[link as usize];
        if level == NONE { 0 } else { level }
    }

    /// Which of the two links of a flow is filled first.
    pub fn tighter(&self, up: u32, down: u32) -> u32 {
        if self.level[up as usize] <= self.level[down as usize] { up } else { down }
    }

    /// Progressive filling: the link that would be full first keeps its level, its flows' rates are taken from the links at their
    /// other ends, and so on. O(links + links that are filled anew x links), with nothing but additions in the inner loop.
    pub fn fill(&mut self) {
        let open = (0..2 * self.n).filter(|&l| self.turn[l] == NO_TURN && self.growing[l] > 0);
        let mut heap: BinaryHeap<_> = open.map(|l| Reverse((self.left[l] / u64::from(self.growing[l]), l as u32))).collect();
        // Shares only grow while others are filled, so an entry that is still right when it comes out is the smallest.
        while let Some(mut first) = heap.peek_mut() {
            let Reverse((share, l)) = *first;
            let link = l as usize;
            let now = self.left[link].checked_div(u64::from(self.growing[link]));
            if let Some(now) = now.filter(|&now| now != share) {
                *first = Reverse((now, l));
                continue;
            }
            PeekMut::pop(first);
            if now.is_none() {
                continue;
            }
            self.level[link] = share;
            self.turn[link] = self.filled.len() as u32;
            self.filled.push(l);
            // Links that are full already are changed too, which is undone before they are read again.
            let (left, growing, row) = self.others(link);
            for ((left, growing), &flows) in left.iter_mut().zip(growing).zip(row) {
                *left = left.wrapping_sub(share.wrapping_mul(u64::from(flows)));
                *growing = growing.wrapping_sub(flows);
            }
        }
    }

    /// Brings the links into the order of their levels; returns the pairs (up, down) of hosts with flows whose links changed their
    /// order. O(links + links that change places).
    pub fn sort(&mut self) -> Vec<(u32, u32)> {
        let mut moved = Vec::new();
        let n = self.n as u32;
        for k in 1..self.sorted.len() {
            let l = self.sorted[k];
            let key = (self.level[l as usize], l);
            let mut at = k;
            while at > 0 && (self.level[self.sorted[at - 1] as usize], self.sorted[at - 1]) > key {
                let other = self.sorted[at - 1];
                self.sorted[at] = other;
                at -= 1;
                if (l < n) != (other < n) {
                    let (up, down) = if l < n { (l, other - n) } else { (other, l - n) };
                    if self.flows[0][(up * n + down) as usize] > 0 {
                        moved.push((up, down));
                    }
                }
            }
            self.sorted[at] = l;
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn going_on_is_filling_from_nothing(
            capacity in prop::collection::vec(prop_oneof![1 => Just(0u64), 9 => 1u64..1000], 8),
            steps in prop::collection::vec((0usize..4, 0usize..4, any::<bool>(), any::<bool>()), 1..60),
        ) {
            let (mut levels, mut flows) = (Levels::new(capacity.clone()), vec![0; 16]);
            for (up, down, more, look) in steps {
                if more {
                    levels.add(up, down);
                    flows[4 * up + down] += 1;
                } else if flows[4 * up + down] > 0 {
                    levels.remove(up, down);
                    flows[4 * up + down] -= 1;
                }
                if look {
                    levels.fill();
                    let mut twin = Levels::new(capacity.clone());
                    (0..16).for_each(|k| (0..flows[k]).for_each(|_| twin.add(k / 4, k % 4)));
                    twin.fill();
                    prop_assert_eq!((&levels.level, &levels.filled), (&twin.level, &twin.filled));
                }
            }
        }
    }
}
