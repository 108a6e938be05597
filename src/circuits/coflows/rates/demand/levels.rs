//! Max-min fair shares of one coflow, link by link: the rate at which each is full.
//!
//! [`max_min`](super::super::max_min()) gives a group the share of the link that is full first, and
//! the shares only grow from link to link. So a group's rate is the smaller of its two links'
//! levels, and to know all rates is to know a number a link. When a flow ends, most levels stay,
//! and only groups of a link with another level are looked at.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Demand;
use super::words::{LinkWord, bit};
use crate::coflows::rates::FreeCapacity;

/// By how much the bits per second that are left on each link have changed.
#[derive(Clone, Debug, Default)]
pub struct Deltas {
    /// By link: bits per second, fewer if negative.
    more: Vec<i64>,
    /// The links for which that is not zero, as bits.
    dirty: Vec<u64>,
}

impl Deltas {
    /// No change, of `links` links.
    pub fn new(links: usize) -> Self {
        Self { more: vec![0; links.next_multiple_of(64)], dirty: vec![0; links.div_ceil(64)] }
    }

    /// A link has `more` bits per second more, or fewer if negative.
    pub fn add(&mut self, link: u32, more: i64) {
        let (of, bit) = (&mut self.more[link as usize], bit(link));
        *of += more;
        let word = &mut self.dirty[link as usize / 64];
        *word = if *of == 0 { *word & !bit } else { *word | bit };
    }

    /// Calls `each(link, bits per second)` for all changes, by link, and forgets them. O(links /
    /// 64 + changes).
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

/// The levels of one coflow whose groups cross two links each. A link's place is that of its bit
/// among the words of the coflow's senders, and behind them of its receivers.
#[derive(Clone, Debug)]
pub struct CoflowLevels {
    /// By place: what the link has for this coflow.
    seen: Vec<u64>,
    /// By place: what its groups take of that.
    used: Vec<u64>,
    /// By place: the rate of the groups that the link was the first to stop; `u64::MAX` where
    /// others stop all of its groups.
    level: Vec<u64>,
    /// Places with another level since they were last asked for, as bits.
    changed: Vec<u64>,
    /// Levels below this one are right for what has changed since they were found.
    sound: u64,
}

/// Lists that are filled again for every coflow, and whose memory is used again.
#[derive(Clone, Debug, Default)]
pub struct LevelsScratch {
    used: Vec<u64>,
    level: Vec<u64>,
    left: Vec<u64>,
    growing: Vec<u32>,
    open: Vec<u64>,
    heap: BinaryHeap<Reverse<(u64, u32, u32)>>,
}

impl CoflowLevels {
    /// Those of a coflow for which links have what is free. Needs [`Demand::is_plain`]. What it
    /// takes is taken from there. O(senders x receivers / 64 + groups + links log links).
    pub fn new(demand: &Demand, free: &mut FreeCapacity, scratch: &mut LevelsScratch) -> Self {
        let places = 64 * (demand.ups.len() + demand.downs.len());
        let mut all = Self {
            seen: vec![0; places],
            used: vec![0; places],
            level: vec![u64::MAX; places],
            changed: vec![0; demand.ups.len() + demand.downs.len()],
            sound: 0,
        };
        demand.places(|place, link| all.seen[place] = free.left(link));
        all.fill(demand, scratch);
        demand.places(|place, link| free.take_link(link, all.used[place]));
        all
    }

    /// A group has ended: its two links are full later than before, if ever.
    pub fn ended(&mut self, demand: &Demand, group: u32) {
        let [up, down] = demand.ends(group);
        let place = |words, link: u32| {
            LinkWord::place(words, link / 64).expect("it is one of them") * 64 + link as usize % 64
        };
        let [up, down] =
            [place(&demand.ups, up), 64 * demand.ups.len() + place(&demand.downs, down)];
        self.sound = self.sound.min(self.level[up]).min(self.level[down]);
    }

    /// What links have for the coflow changes by `deltas`. Says whether one of them carries a live
    /// group of it. O(links of the coflow / 64 + those that change).
    pub fn shift(&mut self, demand: &Demand, deltas: &Deltas) -> bool {
        let mut any = false;
        for (w, word) in demand.ups.iter().chain(&demand.downs).enumerate() {
            let mut bits = word.live & deltas.dirty[word.index as usize];
            any |= bits != 0;
            while bits != 0 {
                let k = bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let place = 64 * w + k;
                let more = deltas.more[64 * word.index as usize + k];
                let seen = self.seen[place]
                    .checked_add_signed(more)
                    .expect("no one has more than there is");
                self.seen[place] = seen;
                // With less it may be full sooner, but not before all its groups have as much.
                let (line, _) = demand.line_of(place);
                let groups: u32 =
                    if more < 0 { line.iter().map(|l| l.count_ones()).sum() } else { 0 };
                self.sound = self
                    .sound
                    .min(self.level[place])
                    .min(seen.checked_div(groups.into()).unwrap_or(u64::MAX));
            }
        }
        any
    }

    /// Finds the levels for what links have now, and adds to `deltas` what they leave more or less
    /// to the coflows behind. Says whether any level is another one. O(senders x receivers / 64 +
    /// groups of links that are full later than the first one that has changed + those log those).
    pub fn update(
        &mut self,
        demand: &Demand,
        deltas: &mut Deltas,
        scratch: &mut LevelsScratch,
    ) -> bool {
        scratch.used.clone_from(&self.used);
        scratch.level.clone_from(&self.level);
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
    /// Links that were full before anything changes stay as they are.
    fn fill(&mut self, demand: &Demand, scratch: &mut LevelsScratch) {
        let sound = std::mem::replace(&mut self.sound, u64::MAX);
        let LevelsScratch { left, growing, open, heap, .. } = scratch;
        left.clear();
        left.resize(self.seen.len(), 0);
        growing.clear();
        growing.resize(self.seen.len(), 0);
        // Links that have something left and are not full.
        open.clear();
        for (w, word) in demand.ups.iter().chain(&demand.downs).enumerate() {
            let (mut bits, mut may) = (word.live, 0);
            while bits != 0 {
                let k = bits.trailing_zeros();
                bits &= bits - 1;
                let place = 64 * w + k as usize;
                if self.level[place] < sound {
                    continue;
                }
                let is_open = self.seen[place] > 0;
                self.level[place] = if is_open { u64::MAX } else { 0 };
                may |= u64::from(is_open) << k;
                self.used[place] = 0;
            }
            open.push(may);
            // Nothing goes over a link whose groups are all done.
            let mut done = word.all & !word.live;
            while done != 0 {
                self.used[64 * w + done.trailing_zeros() as usize] = 0;
                done &= done - 1;
            }
        }
        heap.clear();
        for (w, word) in demand.ups.iter().chain(&demand.downs).enumerate() {
            let mut bits = open[w];
            while bits != 0 {
                let k = bits.trailing_zeros();
                bits &= bits - 1;
                let place = 64 * w + k as usize;
                let (line, from) = demand.line_of(place);
                let (mut groups, mut taken) = (0, 0);
                for (d, &live) in line.iter().enumerate() {
                    groups += (live & open[from + d]).count_ones();
                    // What full links hold.
                    let (mut full, base) = (live & !open[from + d], 64 * (from + d));
                    while full != 0 {
                        taken += self.level[base + full.trailing_zeros() as usize];
                        full &= full - 1;
                    }
                }
                (growing[place], left[place]) = (groups, self.seen[place] - taken);
                if groups > 0 {
                    heap.push(Reverse((
                        left[place] / u64::from(groups),
                        64 * word.index + k,
                        place as u32,
                    )));
                } else {
                    self.used[place] = taken;
                }
            }
        }
        let all = open.clone();
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
        for (w, &open) in all.iter().enumerate() {
            let mut bits = open;
            while bits != 0 {
                let place = 64 * w + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                self.used[place] = self.seen[place] - left[place];
            }
        }
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

    /// The live groups of the link at a place, as bits of the links at their other ends, and the
    /// word of the first of these.
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

    /// Calls `each(group, rate)` for the live groups, whose rates are the sums of those by these
    /// levels. O(groups).
    pub fn rates(&self, levels: &[&CoflowLevels], mut each: impl FnMut(u32, u64)) {
        for (w, word) in self.ups.iter().enumerate() {
            self.lines(
                w,
                word.live,
                |_| u64::MAX,
                |group, places| each(group, sum(levels, places)),
            );
        }
    }

    /// The same for those groups only that cross a link whose level has changed since this was last
    /// asked; one may come that has the same rate as before. O(links + groups of those).
    pub fn changed_rates(&self, levels: &mut [&mut CoflowLevels], mut each: impl FnMut(u32, u64)) {
        let words = self.ups.len() + self.downs.len();
        let mut changed = vec![0u64; words];
        for l in levels.iter_mut() {
            changed
                .iter_mut()
                .zip(&mut l.changed)
                .for_each(|(all, own)| *all |= std::mem::take(own));
        }
        let levels: Vec<&CoflowLevels> = levels.iter().map(|l| &**l).collect();
        for (w, word) in self.ups.iter().enumerate() {
            self.lines(
                w,
                word.live & changed[w],
                |_| u64::MAX,
                |group, places| each(group, sum(&levels, places)),
            );
            // Of the other senders, those receivers.
            let rest = word.live & !changed[w];
            self.lines(
                w,
                rest,
                |d| changed[self.ups.len() + d],
                |group, places| each(group, sum(&levels, places)),
            );
        }
    }

    /// Calls `each(group, places)` for the live groups of these senders of a word, to those
    /// receivers that `to(word)` says.
    fn lines(
        &self,
        w: usize,
        mut senders: u64,
        to: impl Fn(usize) -> u64,
        mut each: impl FnMut(u32, [usize; 2]),
    ) {
        let (word, width): (&LinkWord, usize) = (&self.ups[w], self.downs.len());
        while senders != 0 {
            let own = senders & senders.wrapping_neg();
            senders ^= own;
            let (row, up) = (word.number(own) as usize, 64 * w + own.trailing_zeros() as usize);
            for (d, live) in self.to[row * width..(row + 1) * width].iter().enumerate() {
                let (mut bits, cell) = (live & to(d), self.cell(row, d));
                while bits != 0 {
                    let b = bits & bits.wrapping_neg();
                    bits ^= b;
                    each(
                        cell.number(b),
                        [up, 64 * (self.ups.len() + d) + b.trailing_zeros() as usize],
                    );
                }
            }
        }
    }
}

fn sum(levels: &[&CoflowLevels], places: [usize; 2]) -> u64 {
    levels.iter().map(|l| l.rate(places)).sum()
}
