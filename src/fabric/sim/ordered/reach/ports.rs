//! What links have left from flow to flow.

use crate::coflows::rates::Free;

/// Where a flow stands: coflow (from one), sender's interface, receiver's interface.
pub type Place = u64;

/// Bits of an interface's number in a [`Place`].
pub const BITS: u32 = 20;
/// Before all flows.
pub const FIRST: Place = 0;
/// A link that is never shut.
const NEVER: Place = u64::MAX;

/// The place of a flow.
pub fn place(coflow: usize, [up, down]: [u32; 2]) -> Place {
    (coflow as u64 + 1) << (2 * BITS) | step([up, down])
}

/// How far it is from a flow's place to that of the next one, with interfaces further by so many in the same coflow.
pub fn step([up, down]: [u32; 2]) -> Place {
    u64::from(up) << BITS | u64::from(down)
}

/// How many coflows have begun before or at a place.
pub fn begun(at: Place) -> usize {
    (at >> (2 * BITS)) as usize
}

/// The interfaces of a flow.
pub fn ends_of(at: Place) -> [u32; 2] {
    [(at >> BITS) as u32 & ((1 << BITS) - 1), at as u32 & ((1 << BITS) - 1)]
}

/// A flow that is given something by a link.
#[derive(Clone, Copy, Debug)]
pub struct Taker {
    /// Where it stands.
    pub at: Place,
    /// What it takes.
    pub rate: u64,
    /// Its group in its coflow.
    pub group: u32,
    /// Where its end stands.
    pub slot: u32,
}

/// By link: who takes what, in the order of places.
#[derive(Default)]
pub struct Ports {
    /// What is left behind all flows. Below zero while takers have more than there is.
    left: Vec<i64>,
    takers: Vec<Vec<Taker>>,
    /// The place at which nothing is left any more.
    shut: Vec<Place>,
    coflows: usize,
    /// By coflow: the links that are not shut before it, as bits; so many words each.
    open: Vec<u64>,
    words: usize,
}

impl Ports {
    /// Links of which nothing is known.
    pub fn new(links: usize) -> Self {
        let (left, takers, shut, words) = (vec![0; links], vec![Vec::new(); links], vec![NEVER; links], links.div_ceil(64));
        Self { left, takers, shut, coflows: 0, open: Vec::new(), words }
    }

    /// How many links there are.
    pub fn links(&self) -> usize {
        self.left.len()
    }

    /// Nobody takes anything; links have so much left.
    pub fn reset(&mut self, coflows: usize, free: &Free) {
        self.takers.iter_mut().for_each(Vec::clear);
        (0..self.links()).for_each(|l| self.left[l] = free.left(l as u32) as i64);
        self.shut.fill(NEVER);
        self.coflows = coflows;
        self.open.clear();
        self.open.resize(coflows * self.words, u64::MAX);
    }

    /// What a link has left behind all flows.
    pub fn left(&self, link: u32) -> i64 {
        self.left[link as usize]
    }

    /// What it has left for the flow at a place and those behind it. O(those that take).
    pub fn room(&self, link: u32, at: Place) -> i64 {
        let behind = self.takers[link as usize].iter().rev().take_while(|t| t.at >= at);
        self.left[link as usize] + behind.map(|t| t.rate as i64).sum::<i64>()
    }

    /// The links that are not shut before a coflow, as bits.
    pub fn open(&self, coflow: usize) -> &[u64] {
        &self.open[coflow * self.words..(coflow + 1) * self.words]
    }

    /// Of the links `64 * word ..` the first one of `may`, as a bit, that has something left behind a flow; zero if there is none. The flow
    /// stands for the first of those links at `first`, and for every further one `step` later.
    pub fn open_behind(&self, word: u32, mut may: u64, first: Place, step: Place) -> u64 {
        while may != 0 {
            let k = may.trailing_zeros();
            if self.shut[(64 * word + k) as usize] > first + u64::from(k) * step {
                return may & may.wrapping_neg();
            }
            may &= may - 1;
        }
        0
    }

    /// Behind a place, the first of those that may have more than there is.
    pub fn first_to_cut(&self, link: u32, behind: Place) -> Option<Taker> {
        let from = self.shut[link as usize].max(behind.saturating_add(1));
        let list = &self.takers[link as usize];
        list.get(list.iter().rposition(|t| t.at < from).map_or(0, |k| k + 1)).copied()
    }

    /// The flow at a place, if it takes something.
    pub fn taker(&self, link: u32, at: Place) -> Option<&Taker> {
        self.takers[link as usize].iter().rev().find(|t| t.at <= at).filter(|t| t.at == at)
    }

    /// What was given to others than takers comes back, or the other way round. [`Ports::refresh`] must follow.
    pub fn add(&mut self, link: u32, rate: u64) {
        self.left[link as usize] += rate as i64;
    }

    /// A flow takes so much from now on: what it had before goes back. [`Ports::refresh`] must follow.
    pub fn set(&mut self, link: u32, taker: Taker) {
        let list = &mut self.takers[link as usize];
        let k = list.iter().rposition(|t| t.at <= taker.at);
        match k.filter(|&k| list[k].at == taker.at) {
            Some(k) => {
                self.left[link as usize] += list[k].rate as i64;
                if taker.rate > 0 {
                    list[k] = taker;
                } else {
                    list.remove(k);
                }
            }
            None if taker.rate > 0 => list.insert(k.map_or(0, |k| k + 1), taker),
            None => {}
        }
        self.left[link as usize] -= taker.rate as i64;
    }

    /// Finds out anew where a link is shut. O(takers behind that + coflows between there and where it was).
    pub fn refresh(&mut self, link: u32) {
        let k = link as usize;
        let (mut left, mut shut) = (self.left[k], NEVER);
        if left <= 0 {
            shut = FIRST;
            for t in self.takers[k].iter().rev() {
                shut = t.at;
                left += t.rate as i64;
                if left > 0 {
                    break;
                }
                shut = FIRST;
            }
        }
        let before = begun(std::mem::replace(&mut self.shut[k], shut)).min(self.coflows);
        let now = begun(shut).min(self.coflows);
        let (word, bit) = (k / 64, 1 << (k % 64));
        (before..now).for_each(|c| self.open[c * self.words + word] |= bit);
        (now..before).for_each(|c| self.open[c * self.words + word] &= !bit);
    }
}
