//! Max-min fair shares of one coflow, link by link: the rate at which each is full.
//!
//! [`max_min`](super::super::max_min()) gives a group the share of the link that is full first, and the shares only grow from link to
//! link. So a group's rate is the smaller of its two links' levels, and to know all rates is to know a number a link. When a flow ends, most
//! levels stay, and only groups of a link with another level are looked at.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Demand;
use super::words::{Word, bit};
use crate::coflows::rates::Free;

/// By link, what it has left more or less than before, and which links that is not zero for.
#[derive(Clone, Debug, Default)]
pub struct Deltas {
    more: Vec<i64>,
    dirty: Vec<u64>,
}

impl Deltas {
    /// None, for `links` links.
    pub fn new(links: usize) -> Self {
        Self { more: vec![0; links.next_multiple_of(64)], dirty: vec![0; links.div_ceil(64)] }
    }

    /// A link has this much more.
    pub fn add(&mut self, link: u32, more: i64) {
        let (of, bit) = (&mut self.more[link as usize], bit(link));
        *of += more;
        let word = &mut self.dirty[link as usize / 64];
        *word = if *of == 0 { *word & !bit } else { *word | bit };
    }

    /// Takes them all out.
    pub fn drain(&mut self, mut each: impl FnMut(u32, i64)) {
        for w in 0..self.dirty.len() {
            let mut bits = std::mem::take(&mut self.dirty[w]);
            while bits != 0 {
                let link = 64 * w + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                each(link as u32, std::mem::take(&mut self.more[link]));
            }
        }
    }
}

/// The levels of one coflow whose groups cross two links each. A link's place is that of its bit among the words of the coflow's senders,
/// and behind them of its receivers.
#[derive(Clone, Debug)]
pub struct Levels {
    /// By place: what the link has for this coflow.
    seen: Vec<u64>,
    /// By place: what its groups take of that.
    used: Vec<u64>,
    /// By place: the rate of the groups that the link was the first to stop; `u64::MAX` where others stop all of its groups.
    level: Vec<u64>,
    /// Places with another level since they were last asked for, as bits.
    changed: Vec<u64>,
}

/// Kept for its memory.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    used: Vec<u64>,
    level: Vec<u64>,
    left: Vec<u64>,
    growing: Vec<u32>,
    open: Vec<u64>,
    heap: BinaryHeap<Reverse<(u64, u32, u32)>>,
}

impl Levels {
    /// Those of a coflow for which links have what is free. Needs [`Demand::is_plain`]. What it takes is taken from there.
    /// O(senders x receivers / 64 + groups + links log links).
    pub fn new(demand: &Demand, free: &mut Free, scratch: &mut Scratch) -> Self {
        let places = 64 * (demand.ups.len() + demand.downs.len());
        let mut all = Self {
            seen: vec![0; places],
            used: vec![0; places],
            level: vec![u64::MAX; places],
            changed: vec![0; demand.ups.len() + demand.downs.len()],
        };
        demand.places(|place, link| all.seen[place] = free.left(link));
        all.fill(demand, scratch);
        demand.places(|place, link| free.take_link(link, all.used[place]));
        all
    }

    /// Links have so much more or less for the coflow. Says whether any has with which it has live groups. O(links / 64 + those).
    pub fn shift(&mut self, demand: &Demand, deltas: &Deltas) -> bool {
        let mut any = false;
        for (w, word) in demand.ups.iter().chain(&demand.downs).enumerate() {
            let mut bits = word.live & deltas.dirty[word.index as usize];
            any |= bits != 0;
            while bits != 0 {
                let k = bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let seen = &mut self.seen[64 * w + k];
                *seen = seen.checked_add_signed(deltas.more[64 * word.index as usize + k]).expect("no one has more than there is");
            }
        }
        any
    }

    /// Finds the levels for what links have now, and what they have more or less for those behind. Says whether any level is another one.
    /// O(senders x receivers / 64 + groups + links log links).
    pub fn update(&mut self, demand: &Demand, deltas: &mut Deltas, scratch: &mut Scratch) -> bool {
        std::mem::swap(&mut self.used, &mut scratch.used);
        std::mem::swap(&mut self.level, &mut scratch.level);
        self.fill(demand, scratch);
        let mut any = false;
        demand.places(|place, link| {
            let (before, now) = (scratch.used[place], self.used[place]);
            if before != now {
                deltas.add(link, before as i64 - now as i64);
            }
            if scratch.level[place] != self.level[place] {
                any = true;
                self.changed[place / 64] |= bit(place as u32);
            }
        });
        any
    }

    /// [`max_min`](super::super::max_min()) with whole links: the same shares in the same order.
    fn fill(&mut self, demand: &Demand, scratch: &mut Scratch) {
        let (ups, downs) = (&demand.ups[..], &demand.downs[..]);
        let places = self.seen.len();
        let Scratch { left, growing, open, heap, .. } = scratch;
        self.level.clear();
        self.level.resize(places, u64::MAX);
        left.clone_from(&self.seen);
        growing.clear();
        growing.resize(places, 0);
        // Links that have something left and are not full.
        open.clear();
        open.extend(ups.iter().chain(downs).enumerate().map(|(w, word)| {
            let has = |k: &u32| word.live >> k & 1 == 1 && self.seen[64 * w + *k as usize] > 0;
            (0..64).filter(has).fold(0u64, |bits, k| bits | 1 << k)
        }));
        heap.clear();
        for (w, word) in ups.iter().chain(downs).enumerate() {
            let mut bits = word.live;
            while bits != 0 {
                let k = bits.trailing_zeros();
                bits &= bits - 1;
                let place = 64 * w + k as usize;
                if open[w] >> k & 1 == 0 {
                    self.level[place] = 0;
                    continue;
                }
                let (line, from) = demand.line_of(place);
                growing[place] = line.iter().zip(&open[from..]).map(|(&live, &open)| (live & open).count_ones()).sum();
                if growing[place] > 0 {
                    heap.push(Reverse((left[place] / u64::from(growing[place]), 64 * word.index + k, place as u32)));
                }
            }
        }
        while let Some(Reverse((share, link, at))) = heap.pop() {
            let place = at as usize;
            if growing[place] == 0 {
                continue;
            }
            let now = left[place] / u64::from(growing[place]);
            if now != share {
                heap.push(Reverse((now, link, at)));
                continue;
            }
            self.level[place] = share;
            open[place / 64] &= !bit(at);
            left[place] -= share * u64::from(std::mem::take(&mut growing[place]));
            let (line, from) = demand.line_of(place);
            for (k, &live) in line.iter().enumerate() {
                let (mut bits, base) = (live & open[from + k], 64 * (from + k));
                while bits != 0 {
                    let other = base + bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    left[other] -= share;
                    growing[other] -= 1;
                }
            }
        }
        self.used.clear();
        self.used.extend(self.seen.iter().zip(left.iter()).map(|(seen, left)| seen - left));
    }

    /// The rate of the group at these places.
    fn rate(&self, [up, down]: [usize; 2]) -> u64 {
        self.level[up].min(self.level[down])
    }
}

impl Demand {
    /// Calls `each(place, link)` for all links.
    fn places(&self, mut each: impl FnMut(usize, u32)) {
        for (w, word) in self.ups.iter().chain(&self.downs).enumerate() {
            let mut bits = word.all;
            while bits != 0 {
                let k = bits.trailing_zeros();
                bits &= bits - 1;
                each(64 * w + k as usize, 64 * word.index + k);
            }
        }
    }

    /// The live groups of the link at a place, as bits of the links at their other ends, and the word of the first of these.
    fn line_of(&self, place: usize) -> (&[u64], usize) {
        let (w, k) = (place / 64, bit(place as u32));
        match w.checked_sub(self.ups.len()) {
            None => {
                let (row, width) = (self.ups[w].number(k) as usize, self.downs.len());
                (&self.to[row * width..(row + 1) * width], self.ups.len())
            }
            Some(w) => {
                let (column, width) = (self.downs[w].number(k) as usize, self.ups.len());
                (&self.from[column * width..(column + 1) * width], 0)
            }
        }
    }

    /// Calls `each(group, rate)` for the live groups, whose rates are the sums of those by these levels. O(groups).
    pub fn rates(&self, levels: &[&Levels], mut each: impl FnMut(u32, u64)) {
        for (w, word) in self.ups.iter().enumerate() {
            self.lines(w, word.live, |_| u64::MAX, |group, places| each(group, sum(levels, places)));
        }
    }

    /// The same for those groups only that cross a link whose level has changed since this was last asked; one may come that has the same
    /// rate as before. O(links + groups of those).
    pub fn changed_rates(&self, levels: &mut [&mut Levels], mut each: impl FnMut(u32, u64)) {
        let words = self.ups.len() + self.downs.len();
        let mut changed = vec![0u64; words];
        for l in levels.iter_mut() {
            changed.iter_mut().zip(&mut l.changed).for_each(|(all, own)| *all |= std::mem::take(own));
        }
        let levels: Vec<&Levels> = levels.iter().map(|l| &**l).collect();
        for (w, word) in self.ups.iter().enumerate() {
            self.lines(w, word.live & changed[w], |_| u64::MAX, |group, places| each(group, sum(&levels, places)));
            // Of the other senders, those receivers.
            let rest = word.live & !changed[w];
            self.lines(w, rest, |d| changed[self.ups.len() + d], |group, places| each(group, sum(&levels, places)));
        }
    }

    /// Calls `each(group, places)` for the live groups of these senders of a word, to those receivers that `to(word)` says.
    fn lines(&self, w: usize, mut senders: u64, to: impl Fn(usize) -> u64, mut each: impl FnMut(u32, [usize; 2])) {
        let (word, width): (&Word, usize) = (&self.ups[w], self.downs.len());
        while senders != 0 {
            let own = senders & senders.wrapping_neg();
            senders ^= own;
            let (row, up) = (word.number(own) as usize, 64 * w + own.trailing_zeros() as usize);
            for (d, (cell, live)) in self.cells[row * width..(row + 1) * width].iter().zip(&self.to[row * width..]).enumerate() {
                let mut bits = live & to(d);
                while bits != 0 {
                    let b = bits & bits.wrapping_neg();
                    bits ^= b;
                    each(cell.number(b), [up, 64 * (self.ups.len() + d) + b.trailing_zeros() as usize]);
                }
            }
        }
    }
}

fn sum(levels: &[&Levels], places: [usize; 2]) -> u64 {
    levels.iter().map(|l| l.rate(places)).sum()
}
