//! Levels: to which rate per flow each link is filled, where every flow crosses one link up and one down.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A link at which no flow is held back has no level.
const NONE: u64 = u64::MAX;

/// Links 0..n go up, n..2n down. The max-min fair rate of a flow is the smaller level of its two links.
pub struct Levels {
    n: usize,
    capacity: Vec<u64>,
    /// Number of flows by (up, down), and the same by (down, up).
    flows: [Vec<u32>; 2],
    /// By link.
    total: Vec<u32>,
    level: Vec<u64>,
    /// Links by level and number, as of the last [`Levels::sort`], and their levels then.
    sorted: Vec<u32>,
    left: Vec<u64>,
    growing: Vec<u32>,
}

impl Levels {
    /// No flows.
    pub fn new(capacity: Vec<u64>) -> Self {
        let links = capacity.len();
        let n = links / 2;
        Self {
            n,
            flows: [vec![0; n * n], vec![0; n * n]],
            total: vec![0; links],
            level: vec![NONE; links],
            sorted: (0..links as u32).collect(),
            left: vec![0; links],
            growing: vec![0; links],
            capacity,
        }
    }

    /// Links have these capacities from now on.
    pub fn limit(&mut self, capacity: &[u64]) {
        self.capacity.copy_from_slice(capacity);
    }

    /// One flow more.
    pub fn add(&mut self, up: usize, down: usize) {
        self.flows[0][up * self.n + down] += 1;
        self.flows[1][down * self.n + up] += 1;
        self.total[up] += 1;
        self.total[self.n + down] += 1;
    }

    /// One flow less.
    pub fn remove(&mut self, up: usize, down: usize) {
        self.flows[0][up * self.n + down] -= 1;
        self.flows[1][down * self.n + up] -= 1;
        self.total[up] -= 1;
        self.total[self.n + down] -= 1;
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
    /// other ends, and so on. O(links x links), with nothing but additions in the inner loop.
    pub fn fill(&mut self) {
        let mut heap = BinaryHeap::with_capacity(2 * self.n);
        self.left.copy_from_slice(&self.capacity);
        self.growing.copy_from_slice(&self.total);
        for l in 0..2 * self.n {
            self.level[l] = NONE;
            if let Some(share) = self.capacity[l].checked_div(u64::from(self.total[l])) {
                heap.push(Reverse((share, l as u32)));
            }
        }
        // Shares only grow while others are filled, so an entry that is still right when it comes out is the smallest.
        while let Some(Reverse((share, l))) = heap.pop() {
            let link = l as usize;
            if self.growing[link] == 0 {
                continue;
            }
            let now = self.left[link] / u64::from(self.growing[link]);
            if now != share {
                heap.push(Reverse((now, l)));
                continue;
            }
            self.level[link] = share;
            let side = usize::from(link >= self.n);
            let (own, other) = (link - side * self.n, (1 - side) * self.n);
            let row = &self.flows[side][own * self.n..(own + 1) * self.n];
            let (left, growing) = (&mut self.left[other..other + self.n], &mut self.growing[other..other + self.n]);
            // Links that are full already are changed too, and never read again.
            for ((left, growing), &flows) in left.iter_mut().zip(growing.iter_mut()).zip(row) {
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
