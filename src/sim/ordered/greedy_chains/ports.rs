//! What links have left from flow to flow.

use smallvec::SmallVec;

use crate::coflows::rates::Free;

/// A flow's place in the order: coflow (from one), sender's interface, receiver's interface.
pub type Place = u64;

/// Bits of an interface's number in a [`Place`].
pub const BITS: u32 = 20;
/// The place before all flows.
pub const FIRST: Place = 0;
/// A link that is never shut.
const NEVER: Place = u64::MAX;

/// The place of a flow.
pub fn place(coflow: usize, [up, down]: [u32; 2]) -> Place {
    (coflow as u64 + 1) << (2 * BITS) | step([up, down])
}

/// Distance between the places of two flows of one coflow whose interfaces are these numbers apart.
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
    /// Its place.
    pub at: Place,
    /// What it takes.
    pub rate: u64,
    /// Its group in its coflow.
    pub group: u32,
    /// The slot of its end.
    pub slot: u32,
}

/// A link. Of ports of one rate few have more than one flow that takes something, which then needs no memory of its own.
#[derive(Clone)]
struct Port {
    /// What is left behind all flows. Below zero while takers have more than there is.
    left: i64,
    /// Flows that take something, in the order of places.
    takers: SmallVec<[Taker; 2]>,
}

impl Port {
    /// The place at which nothing is left any more: the first from which on `left` is zero or less.
    fn shut(&self) -> Place {
        let mut left = self.left;
        if left > 0 {
            return NEVER;
        }
        for t in self.takers.iter().rev() {
            left += t.rate as i64;
            if left > 0 {
                return t.at;
            }
        }
        FIRST
    }
}

/// Where a flow is on a link, as of now.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    /// What the link has left for it and those behind it.
    pub room: i64,
    /// Its index among those that take something, or the index that it would have.
    index: usize,
    /// What it takes, and the slot of its end.
    pub taker: Option<(u64, u32)>,
}

/// All links, with the flows that take something.
#[derive(Default)]
pub struct Ports {
    ports: Vec<Port>,
    /// The place at which each is shut. Apart from all else about it, since a search reads those of many links.
    shut: Vec<Place>,
    coflows: usize,
    /// By coflow: the links that are not shut before it, as bits; `words` words each.
    open: Vec<u64>,
    words: usize,
}

impl Ports {
    /// Links of which nothing is known.
    pub fn new(links: usize) -> Self {
        let port = Port { left: 0, takers: SmallVec::new() };
        Self { ports: vec![port; links], shut: vec![NEVER; links], coflows: 0, open: Vec::new(), words: links.div_ceil(64) }
    }

    /// How many links there are.
    pub fn links(&self) -> usize {
        self.ports.len()
    }

    /// Starts anew: no flow takes anything, and links have left what `free` says.
    pub fn reset(&mut self, coflows: usize, free: &Free) {
        for (l, p) in self.ports.iter_mut().enumerate() {
            p.takers.clear();
            p.left = free.left(l as u32) as i64;
        }
        self.shut.fill(NEVER);
        self.coflows = coflows;
        self.open.clear();
        self.open.resize(coflows * self.words, u64::MAX);
    }

    /// What a link has left behind all flows.
    pub fn left(&self, link: u32) -> i64 {
        self.ports[link as usize].left
    }

    /// Finds a flow on its two links. O(those that take something behind it there).
    #[inline]
    pub fn spots(&self, [up, down]: [u32; 2], at: Place) -> [Spot; 2] {
        [self.spot(up, at), self.spot(down, at)]
    }

    /// Finds the flow at a place. O(those that take something behind it).
    #[inline]
    fn spot(&self, link: u32, at: Place) -> Spot {
        let p = &self.ports[link as usize];
        let (mut room, mut index) = (p.left, p.takers.len());
        while index > 0 {
            let t = &p.takers[index - 1];
            if t.at < at {
                break;
            }
            (room, index) = (room + t.rate as i64, index - 1);
            if t.at == at {
                return Spot { room, index, taker: Some((t.rate, t.slot)) };
            }
        }
        Spot { room, index, taker: None }
    }

    /// The links that are not shut before a coflow, as bits.
    pub fn open(&self, coflow: usize) -> &[u64] {
        &self.open[coflow * self.words..(coflow + 1) * self.words]
    }

    /// Of the links `64 * word ..` the first one of `may`, as a bit, that has something left behind a flow; zero if there is none. The
    /// flow's place is `first` for the first of those links, and `step` later for every further one.
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
        let p = &self.ports[link as usize];
        let from = self.shut[link as usize].max(behind.saturating_add(1));
        let mut index = p.takers.len();
        while index > 0 && p.takers[index - 1].at >= from {
            index -= 1;
        }
        p.takers.get(index).copied()
    }

    /// What was given to others than takers comes back, or the other way round. [`Ports::refresh`] must follow.
    pub fn add(&mut self, link: u32, rate: u64) {
        self.ports[link as usize].left += rate as i64;
    }

    /// Gives the flow at a spot the rate of `taker` from now on: what it had before goes back. The spot must be as it was found.
    /// [`Ports::refresh`] must follow.
    pub fn set(&mut self, link: u32, spot: &Spot, taker: Taker) {
        let p = &mut self.ports[link as usize];
        p.left += spot.taker.map_or(0, |t| t.0 as i64) - taker.rate as i64;
        match (spot.taker.is_some(), taker.rate > 0) {
            (true, true) => p.takers[spot.index] = taker,
            // Few have to move: cheaper than a general insertion.
            (true, false) => {
                let behind = &mut p.takers[spot.index..];
                (1..behind.len()).for_each(|k| behind[k - 1] = behind[k]);
                p.takers.pop();
            }
            (false, true) => {
                p.takers.push(taker);
                let behind = &mut p.takers[spot.index..];
                (1..behind.len()).rev().for_each(|k| behind[k] = behind[k - 1]);
                behind[0] = taker;
            }
            (false, false) => {}
        }
    }

    /// Finds out anew where a link is shut. O(takers behind that + coflows between there and where it was).
    pub fn refresh(&mut self, link: u32) {
        let shut = self.ports[link as usize].shut();
        let before = begun(std::mem::replace(&mut self.shut[link as usize], shut)).min(self.coflows);
        let now = begun(shut).min(self.coflows);
        let (word, bit) = (link as usize / 64, 1 << (link % 64));
        (before..now).for_each(|c| self.open[c * self.words + word] |= bit);
        (now..before).for_each(|c| self.open[c * self.words + word] &= !bit);
    }
}
