//! Levels of links by progressive filling, where every flow crosses one link up and one link down.
//!
//! When a flow ends, the links that were filled before its tighter link keep their levels. So
//! filling is undone from its end back to that link, and continues from there. Where that is a long
//! way, a snapshot is restored instead, and the few fillings after it are repeated.

mod side;

pub use side::MAX_RATE;
use side::{LinkSide, SideSnapshot};

/// Level of a link that limits no flow.
const NONE: u64 = u64::MAX;

/// Rank of a link that is not filled.
const NO_TURN: u32 = u32::MAX;

/// Fillings between two snapshots; few in tests, whose networks are small.
const STRIDE: usize = if cfg!(test) { 4 } else { 32 };

/// Restoring a snapshot costs as much as about this number of fillings.
const COPIES: usize = 4;

/// Links 0..n go up, n..2n down. The max-min fair rate of a flow is the lower level of its two
/// links.
pub struct Levels {
    n: usize,
    /// Links up, and links down.
    sides: [LinkSide; 2],
    level: Vec<u64>,
    /// Links in the order in which they were filled.
    filled: Vec<u32>,
    /// Snapshots of both sides before the fillings 0, [`STRIDE`], 2 x [`STRIDE`] and so on.
    kept: Vec<[SideSnapshot; 2]>,
    /// By link: its index in `filled`, or `NO_TURN`.
    turn: Vec<u32>,
    /// Links by level and number, at the last [`Levels::sort`].
    sorted: Vec<u32>,
    /// Links that are filled next, as (share, number on its side); a buffer that is kept.
    found: Vec<(f64, u32)>,
}

impl Levels {
    /// No flows. Capacities are below [`MAX_RATE`].
    pub fn new(capacity: &[u64]) -> Self {
        let n = capacity.len() / 2;
        Self {
            n,
            sides: [LinkSide::new(&capacity[..n]), LinkSide::new(&capacity[n..])],
            level: vec![NONE; 2 * n],
            filled: Vec::with_capacity(2 * n),
            kept: Vec::new(),
            turn: vec![NO_TURN; 2 * n],
            sorted: (0..2 * n as u32).collect(),
            found: Vec::new(),
        }
    }

    /// Sets the capacities.
    pub fn limit(&mut self, capacity: &[u64]) {
        self.undo(0);
        self.sides
            .iter_mut()
            .zip(capacity.chunks_exact(self.n.max(1)))
            .for_each(|(side, capacity)| side.limit(capacity));
    }

    /// Adds one flow.
    pub fn add(&mut self, up: usize, down: usize) {
        self.undo(0);
        self.change(up, down, 1);
    }

    /// Removes one flow.
    pub fn remove(&mut self, up: usize, down: usize) {
        self.undo(self.turn[up].min(self.turn[self.n + down]) as usize);
        self.change(up, down, -1);
    }

    fn change(&mut self, up: usize, down: usize, by: i32) {
        self.sides[0].change(up, down, by);
        self.sides[1].change(down, up, by);
        for [ups, downs] in &mut self.kept {
            ups.change(up, by);
            downs.change(down, by);
        }
    }

    /// Undoes all fillings from this index on: step by step, or by a snapshot where that is
    /// shorter.
    fn undo(&mut self, place: usize) {
        let back = self.filled.len().saturating_sub(place);
        if back > place % STRIDE + COPIES {
            self.return_to(place);
        } else {
            (0..back).for_each(|_| self.undo_last());
        }
        self.kept.truncate(self.filled.len().div_ceil(STRIDE));
    }

    fn undo_last(&mut self) {
        let link = self.filled.pop().expect("a link is filled") as usize;
        self.turn[link] = NO_TURN;
        let share = std::mem::replace(&mut self.level[link], NONE);
        let side = link / self.n;
        let (own, other) = both(&mut self.sides, side);
        own.undo(link - side * self.n, share as f64, other);
    }

    /// Restores the last snapshot before this index, and repeats the fillings from there up to it.
    fn return_to(&mut self, place: usize) {
        let kept = place / STRIDE;
        let links = self.filled.split_off(kept * STRIDE);
        self.sides.iter_mut().zip(&self.kept[kept]).for_each(|(side, state)| side.restore(state));
        links.iter().map(|&l| l as usize).for_each(|l| self.sides[l / self.n].open(l % self.n));
        self.kept.truncate(kept);
        for (k, l) in links.into_iter().map(|l| l as usize).enumerate() {
            let level = std::mem::replace(&mut self.level[l], NONE);
            self.turn[l] = NO_TURN;
            if k < place % STRIDE {
                self.fill_link(l, level as f64);
            }
        }
    }

    /// Fills a link at `share`.
    fn fill_link(&mut self, link: usize, share: f64) {
        if self.filled.len().is_multiple_of(STRIDE) {
            self.kept.push([self.sides[0].state(), self.sides[1].state()]);
        }
        let side = link / self.n;
        let (own, other) = both(&mut self.sides, side);
        own.fill(link - side * self.n, share, other);
        (self.level[link], self.turn[link]) = (share as u64, self.filled.len() as u32);
        self.filled.push(link as u32);
    }

    /// The rate of flows that this link limits; zero if it limits none.
    pub fn pace(&self, link: u32) -> u64 {
        let level = self.level[link as usize];
        if level == NONE { 0 } else { level }
    }

    /// Which of the two links of a flow is filled first.
    pub fn tighter(&self, up: u32, down: u32) -> u32 {
        if self.level[up as usize] <= self.level[down as usize] { up } else { down }
    }

    /// Progressive filling: the link with the smallest share gets its level, the rates of its flows
    /// are taken from the links at their other ends, and so on. O(links + links that are filled
    /// again x links).
    ///
    /// Filling a link raises the shares on the other side only. So all links of one side that are
    /// full before the first of the other side are filled in one pass.
    pub fn fill(&mut self) {
        let mut first = [self.sides[0].refresh(), self.sides[1].refresh()];
        let mut found = std::mem::take(&mut self.found);
        while first[0].is_finite() || first[1].is_finite() {
            // Of equal shares the smaller number is first, which is a link up.
            let (side, bound) =
                if first[0] <= first[1] { (0, first[1].next_up()) } else { (1, first[0]) };
            first[side] = self.sides[side].below(bound, &mut found);
            found.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            for (share, k) in found.drain(..) {
                self.fill_link(side * self.n + k as usize, share);
            }
            first[1 - side] = self.sides[1 - side].refresh();
        }
        self.found = found;
    }

    /// Sorts the links by level. Returns the pairs (up, down) with flows whose two links have
    /// changed their order. O(links + links that change their rank).
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
                    if self.sides[0].flows(up as usize, down as usize) > 0 {
                        moved.push((up, down));
                    }
                }
            }
            self.sorted[at] = l;
        }
        moved
    }
}

/// One side and the other.
fn both(sides: &mut [LinkSide; 2], side: usize) -> (&mut LinkSide, &mut LinkSide) {
    let [up, down] = sides;
    if side == 0 { (up, down) } else { (down, up) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The slow twin: progressive filling by definition, in whole numbers, from nothing. Levels,
    /// and the order in which links are filled.
    fn twin(capacity: &[u64], flows: &[u64], n: usize) -> (Vec<u64>, Vec<u32>) {
        let (mut left, mut level, mut filled) = (capacity.to_vec(), vec![NONE; 2 * n], Vec::new());
        let of = |l: usize, other: usize| {
            if l < n { flows[l * n + other - n] } else { flows[other * n + l - n] }
        };
        let others = |l: usize| if l < n { n..2 * n } else { 0..n };
        loop {
            let growing =
                |l: usize| others(l).filter(|&o| level[o] == NONE).map(|o| of(l, o)).sum::<u64>();
            let open = (0..2 * n).filter(|&l| level[l] == NONE && growing(l) > 0);
            let Some((share, l)) = open.map(|l| (left[l] / growing(l), l)).min() else {
                return (level, filled);
            };
            others(l).filter(|&o| level[o] == NONE).for_each(|o| left[o] -= share * of(l, o));
            level[l] = share;
            filled.push(l as u32);
        }
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn going_on_is_filling_from_nothing_by_the_book(
            n in 1usize..20,
            rates in prop::collection::vec(prop_oneof![1 => Just(0u64), 4 => 1u64..50, 4 => 1u64..1000, 1 => MAX_RATE - 99..MAX_RATE], 40),
            steps in prop::collection::vec((0usize..20, 0usize..20, 1u32..4, any::<bool>(), any::<bool>()), 1..60),
        ) {
            let (mut levels, mut flows) = (Levels::new(&rates[..2 * n]), vec![0; n * n]);
            for (up, down, times, more, look) in steps {
                let (up, down) = (up % n, down % n);
                for _ in 0..times {
                    if more {
                        levels.add(up, down);
                        flows[n * up + down] += 1;
                    } else if flows[n * up + down] > 0 {
                        levels.remove(up, down);
                        flows[n * up + down] -= 1;
                    }
                }
                if look {
                    levels.fill();
                    let (level, filled) = twin(&rates[..2 * n], &flows, n);
                    prop_assert_eq!((&levels.level, &levels.filled), (&level, &filled));
                }
            }
        }
    }
}
