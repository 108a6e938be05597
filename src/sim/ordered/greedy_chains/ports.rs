//! What links have left from flow to flow.

use smallvec::SmallVec;

use crate::coflows::rates::FreeCapacity;

/// A flow's place in the order: coflow (counted from one), sender's interface, receiver's
/// interface.
pub type PlaceInOrder = u64;

/// Bits of an interface's number in a [`PlaceInOrder`].
pub const BITS: u32 = 20;
/// The place before all flows.
pub const FIRST: PlaceInOrder = 0;
/// A link that is never shut.
const NEVER: PlaceInOrder = u64::MAX;

/// The place of a flow.
pub fn place(coflow: usize, [up, down]: [u32; 2]) -> PlaceInOrder {
    (coflow as u64 + 1) << (2 * BITS) | step([up, down])
}

/// Distance between the places of two flows of one coflow whose interfaces differ by these numbers.
pub fn step([up, down]: [u32; 2]) -> PlaceInOrder {
    u64::from(up) << BITS | u64::from(down)
}

/// Number of coflows that begin before or at a place.
pub fn begun(at: PlaceInOrder) -> usize {
    (at >> (2 * BITS)) as usize
}

/// Interfaces of a flow.
pub fn ends_of(at: PlaceInOrder) -> [u32; 2] {
    [(at >> BITS) as u32 & ((1 << BITS) - 1), at as u32 & ((1 << BITS) - 1)]
}

/// A flow with a rate, as seen by a link.
#[derive(Clone, Copy, Debug)]
pub struct Taker {
    /// Its place.
    pub at: PlaceInOrder,
    /// Its rate.
    pub rate: u64,
    /// Its group in its coflow.
    pub group: u32,
    /// The slot of its end.
    pub slot: u32,
}

/// A link. Most have one or two takers, which need no memory of their own.
#[derive(Clone)]
struct ChainPort {
    /// Bandwidth left behind all flows. Negative while takers have more than there is.
    left: i64,
    /// Flows with a rate, in the order of places.
    takers: SmallVec<[Taker; 2]>,
}

impl ChainPort {
    /// The place at which the link is shut: the first from which on `left` is zero or less.
    fn shut(&self) -> PlaceInOrder {
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

/// Position of a flow on a link.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    /// Bandwidth that the link has for this flow and those behind it.
    pub room: i64,
    /// Its index among the takers, or the index that it would have.
    index: usize,
    /// Its rate, and the slot of its end.
    pub taker: Option<(u64, u32)>,
}

/// All links, with their takers.
#[derive(Default)]
pub struct ChainPorts {
    ports: Vec<ChainPort>,
    /// The place at which each is shut. It is stored apart because a search reads it for many
    /// links.
    shut: Vec<PlaceInOrder>,
    coflows: usize,
    /// By coflow: the links that are not shut before it, as bits, in `words` words each.
    open: Vec<u64>,
    words: usize,
}

impl ChainPorts {
    /// For `links` links, without knowledge.
    pub fn new(links: usize) -> Self {
        let port = ChainPort { left: 0, takers: SmallVec::new() };
        Self {
            ports: vec![port; links],
            shut: vec![NEVER; links],
            coflows: 0,
            open: Vec::new(),
            words: links.div_ceil(64),
        }
    }

    /// Number of links.
    pub fn links(&self) -> usize {
        self.ports.len()
    }

    /// Starts again: no flow has a rate, and links have left what `free` says.
    pub fn reset(&mut self, coflows: usize, free: &FreeCapacity) {
        for (l, p) in self.ports.iter_mut().enumerate() {
            p.takers.clear();
            p.left = free.left(l as u32) as i64;
        }
        self.shut.fill(NEVER);
        self.coflows = coflows;
        self.open.clear();
        self.open.resize(coflows * self.words, u64::MAX);
    }

    /// Bandwidth left on a link behind all flows.
    pub fn left(&self, link: u32) -> i64 {
        self.ports[link as usize].left
    }

    /// Position of a flow on its two links. O(takers behind it).
    #[inline]
    pub fn spots(&self, [up, down]: [u32; 2], at: PlaceInOrder) -> [Spot; 2] {
        [self.spot(up, at), self.spot(down, at)]
    }

    /// Position of the flow at a place. O(takers behind it).
    #[inline]
    fn spot(&self, link: u32, at: PlaceInOrder) -> Spot {
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

    /// The first link of `may` (links `64 * word ..`, as bits) with bandwidth behind a flow, as a
    /// bit; zero if there is none. The flow's place is `first` for the first of these links, and
    /// `step` later for each further one.
    pub fn open_behind(
        &self,
        word: u32,
        mut may: u64,
        first: PlaceInOrder,
        step: PlaceInOrder,
    ) -> u64 {
        while may != 0 {
            let k = may.trailing_zeros();
            if self.shut[(64 * word + k) as usize] > first + u64::from(k) * step {
                return may & may.wrapping_neg();
            }
            may &= may - 1;
        }
        0
    }

    /// The first taker behind a place that may have more than there is.
    pub fn first_to_cut(&self, link: u32, behind: PlaceInOrder) -> Option<Taker> {
        let p = &self.ports[link as usize];
        let from = self.shut[link as usize].max(behind.saturating_add(1));
        let mut index = p.takers.len();
        while index > 0 && p.takers[index - 1].at >= from {
            index -= 1;
        }
        p.takers.get(index).copied()
    }

    /// Returns bandwidth that was not a taker's, or takes it. [`ChainPorts::refresh`] must follow.
    pub fn add(&mut self, link: u32, rate: u64) {
        self.ports[link as usize].left += rate as i64;
    }

    /// Gives the flow at a spot the rate of `taker`; what it had before is returned. The spot must
    /// be up to date. [`ChainPorts::refresh`] must follow.
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

    /// Computes where a link is shut. O(takers behind that place + coflows between it and the old
    /// one).
    pub fn refresh(&mut self, link: u32) {
        let shut = self.ports[link as usize].shut();
        let before =
            begun(std::mem::replace(&mut self.shut[link as usize], shut)).min(self.coflows);
        let now = begun(shut).min(self.coflows);
        let (word, bit) = (link as usize / 64, 1 << (link % 64));
        (before..now).for_each(|c| self.open[c * self.words + word] |= bit);
        (now..before).for_each(|c| self.open[c * self.words + word] &= !bit);
    }
}
