//! Incremental sharing where flows cross two links each and take, one after another, all that these
//! have left.
//!
//! All flows are in one order: by coflow, then sender, then receiver. A flow's *place* is its
//! position in that order. The bandwidth left on a link falls from place to place; from where
//! nothing is left, the link is *shut*. A flow that ends frees bandwidth on two links. Behind its
//! place both have more, so the next flow of either link takes it, unless that flow's other link is
//! shut. If a later flow had that bandwidth before, it now has less, its other link has more, and
//! so on. This is a chain that only goes forward. It ends where no flow can take what is left. All
//! other flows keep their rates and are not looked at.
//!
//! The result is exact: every flow has the smaller of what its two links have left at its place, as
//! if all were decided in order. `Ordered::slow` is the slow twin, which does that.

use super::active::{ActiveCoflow, Gone};
use crate::coflows::rates::FreeCapacity;
use crate::earliest::EarliestTimes;
use crate::engine::EngineWorld;
use crate::units::Time;

mod ports;
mod work_list;

use ports::{BITS, ChainPorts, FIRST, PlaceInOrder, Spot, Taker, begun, ends_of, place, step};
use work_list::{WorkItem, WorkList};

/// Flows with a rate, and when they end.
pub struct GreedyChains {
    ready: bool,
    ports: ChainPorts,
    /// Interfaces from this one on receive.
    downs: u32,
    /// By link: coflows that may have active flows there, as bits, in `words` words each.
    present: Vec<u64>,
    words: usize,
    /// By slot: when a taker ends. While takers replace each other, old and new ones are both here:
    /// at most two for each link.
    ends: EarliestTimes,
    /// By slot: the flow's place and group.
    slots: Vec<(PlaceInOrder, u32)>,
    spare: Vec<u32>,
    /// Slots that are due, while they are looked at.
    over: Vec<u32>,
    /// Bandwidth freed for flows behind a place, as (link, place).
    gains: Vec<(u32, PlaceInOrder)>,
    /// Bandwidth that base rates returned in this pass, as (link, bits/s); offered to all coflows
    /// in the next one.
    back: Vec<(u32, u64)>,
    turns: WorkList,
    /// Links on which the bandwidth left may have changed, each once.
    touched: Vec<u32>,
    is_touched: Vec<bool>,
}

impl GreedyChains {
    /// For `links` links, without knowledge.
    pub fn new(links: usize) -> Self {
        // A place has [`BITS`] bits for an interface.
        let links = if links < 1 << BITS { links } else { 0 };
        Self {
            ready: false,
            ports: ChainPorts::new(links),
            downs: 0,
            present: Vec::new(),
            words: 0,
            ends: EarliestTimes::new(2 * links),
            slots: Vec::new(),
            spare: Vec::new(),
            over: Vec::new(),
            gains: Vec::new(),
            back: Vec::new(),
            turns: WorkList::new(links),
            touched: Vec::new(),
            is_touched: vec![false; links],
        }
    }

    /// Whether [`GreedyChains::follow`] may be called.
    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// Drops what it knows, which is out of date.
    pub fn forget(&mut self) {
        self.ready = false;
    }

    /// When the first taker ends.
    pub fn next(&self) -> Option<Time> {
        self.ends.first().filter(|_| self.ready)
    }

    /// Appends the takers that are due to `list`, in order, as (coflow, group).
    pub fn due(&mut self, now: Time, list: &mut Vec<(usize, u32)>) {
        if !self.ready {
            return;
        }
        self.ends.up_to(now, &mut self.over);
        self.over.sort_unstable_by_key(|&s| self.slots[s as usize].0);
        let ended = self.over.drain(..).map(|s| self.slots[s as usize]);
        list.extend(ended.map(|(at, g)| (begun(at) - 1, g)));
    }

    /// Learns which flows take what; interfaces from `downs` on receive. The rates of coflows must
    /// be those of giving all that is left to one flow after another. O(links + takers + coflows x
    /// (links / 64 + active interfaces)).
    pub fn learn(&mut self, coflows: &mut [ActiveCoflow], free: &FreeCapacity, downs: usize) {
        if self.ports.links() != free.links() || coflows.len() >= 1 << (63 - 2 * BITS) {
            return;
        }
        (0..self.slots.len()).for_each(|s| self.ends.set(s as u32, None));
        self.slots.clear();
        self.spare.clear();
        self.gains.clear();
        self.downs = downs as u32;
        self.words = coflows.len().div_ceil(64);
        self.present.clear();
        self.present.resize(free.links() * self.words, 0);
        self.ports.reset(coflows.len(), free);
        for (k, c) in coflows.iter_mut().enumerate() {
            c.demand.live_ends(|l| self.present[l as usize * self.words + k / 64] |= 1 << (k % 64));
            c.extra.tidy();
            for (group, rate) in c.extra.running() {
                let at = place(k, c.demand.ends(group));
                self.take(
                    Taker { at, rate, group, slot: 0 },
                    c.end(group),
                    self.ports.spots(ends_of(at), at),
                );
            }
        }
        // What takers have is not in what is left.
        for c in coflows.iter() {
            c.extra.running().for_each(|(g, rate)| {
                c.demand.ends(g).iter().for_each(|&l| self.ports.add(l, rate))
            });
        }
        (0..free.links() as u32).for_each(|l| self.ports.refresh(l));
        self.ready = true;
    }

    /// Gives a flow the rate of `taker` until `end`. `spots`: its positions on its two links.
    fn take(&mut self, mut taker: Taker, end: Option<Time>, spots: [Spot; 2]) {
        let old = spots[0].taker.map(|t| t.1);
        taker.slot = old.or_else(|| self.spare.pop()).unwrap_or(self.slots.len() as u32);
        if taker.slot as usize == self.slots.len() {
            self.slots.push((taker.at, taker.group));
        }
        self.slots[taker.slot as usize] = (taker.at, taker.group);
        self.ends.set(taker.slot, end);
        if taker.rate == 0 {
            self.spare.push(taker.slot);
        }
        for (l, spot) in ends_of(taker.at).into_iter().zip(&spots) {
            self.ports.set(l, spot, taker);
        }
    }

    /// Notes that the bandwidth left on a link may have changed.
    fn touch(&mut self, link: u32) {
        if !std::mem::replace(&mut self.is_touched[link as usize], true) {
            self.touched.push(link);
        }
    }

    /// A group of the coflow at index `k` has ended.
    pub fn leave(&mut self, k: usize, c: &ActiveCoflow, gone: &Gone) {
        let ends = c.demand.ends(gone.group);
        let at = place(k, ends);
        if gone.extra > 0 {
            let spots = self.ports.spots(ends, at);
            self.take(Taker { at, rate: 0, group: gone.group, slot: 0 }, None, spots);
            self.gains.extend(ends.map(|l| (l, at)));
        }
        if gone.base > 0 {
            ends.iter().for_each(|&l| self.ports.add(l, gone.base));
            self.gains.extend(ends.map(|l| (l, FIRST)));
        }
    }

    /// Gives the bandwidth that was freed to the flows that may have it. True if a coflow has ended
    /// by that.
    pub fn follow(
        &mut self,
        coflows: &mut [ActiveCoflow],
        free: &mut FreeCapacity,
        world: &mut EngineWorld,
    ) -> bool {
        let mut noticed = false;
        loop {
            self.begin(coflows);
            while let Some(turn) = self.turns.pop() {
                self.turn(turn, coflows, free, world);
            }
            if self.back.is_empty() {
                break;
            }
            noticed = true;
            for (link, rate) in std::mem::take(&mut self.back) {
                self.ports.add(link, rate);
                self.gains.push((link, FIRST));
            }
        }
        for l in self.touched.drain(..) {
            self.is_touched[l as usize] = false;
            free.set(l, self.ports.left(l) as u64);
        }
        noticed && coflows.iter().any(|c| c.demand.live() == 0)
    }

    /// Finds the first items of the work list.
    fn begin(&mut self, coflows: &[ActiveCoflow]) {
        let mut gains = std::mem::take(&mut self.gains);
        gains.sort_unstable();
        gains.dedup_by_key(|g| g.0);
        gains.iter().for_each(|g| self.ports.refresh(g.0));
        for (link, at) in gains.drain(..) {
            self.touch(link);
            self.seek(link, at, coflows);
        }
        self.gains = gains;
    }

    /// Gives a flow what its links have left for it.
    fn turn(
        &mut self,
        t: WorkItem,
        coflows: &mut [ActiveCoflow],
        free: &mut FreeCapacity,
        world: &mut EngineWorld,
    ) {
        let (c, ends) = (&mut coflows[begun(t.at) - 1], ends_of(t.at));
        let spots = self.ports.spots(ends, t.at);
        let (old, room) = (spots[0].taker.map_or(0, |t| t.0), spots[0].room.min(spots[1].room));
        debug_assert!(room >= 0, "those before it have no more than there is");
        if c.demand.left(t.group) == 0 || room as u64 == old {
            return self.seek(t.link, t.at, coflows);
        }
        if c.is_through(t.group, world.now) {
            if let Some(gone) = c.work(t.group, world, free) {
                self.back.extend(ends.map(|l| (l, gone.base)));
            }
            return self.seek(t.link, t.at, coflows);
        }
        let rate = room as u64;
        let end = c.set_extra(t.group, old, rate, world.now);
        self.take(Taker { at: t.at, rate, group: t.group, slot: 0 }, end, spots);
        ends.iter().for_each(|&l| self.ports.refresh(l));
        for l in ends {
            self.touch(l);
            if l == t.link || rate < old || self.turns.waits(l) || self.ports.left(l) < 0 {
                self.seek(l, t.at, coflows);
            }
        }
    }

    /// Finds the next flow of a link, behind a place, that must be looked at.
    fn seek(&mut self, link: u32, behind: PlaceInOrder, coflows: &[ActiveCoflow]) {
        let turn = match self.ports.left(link) {
            ..0 => self.ports.first_to_cut(link, behind).map(|t| WorkItem {
                at: t.at,
                link,
                group: t.group,
            }),
            0 => None,
            1.. => self.search(link, behind, coflows),
        };
        self.turns.set(link, turn);
    }

    /// The first flow of a link behind a place whose other link has bandwidth for it.
    fn search(
        &mut self,
        link: u32,
        behind: PlaceInOrder,
        coflows: &[ActiveCoflow],
    ) -> Option<WorkItem> {
        let first = begun(behind).saturating_sub(1);
        for word in first / 64..self.words {
            let mut may = self.present[link as usize * self.words + word];
            if word == first / 64 {
                may &= u64::MAX << (first % 64);
            }
            while may != 0 {
                let k = 64 * word + may.trailing_zeros() as usize;
                may &= may - 1;
                let found = if link < self.downs {
                    self.receiver(k, &coflows[k], link, behind)
                } else {
                    self.sender(k, &coflows[k], link, behind)
                };
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }

    /// The first receiver for this sender.
    fn receiver(
        &self,
        k: usize,
        c: &ActiveCoflow,
        up: u32,
        behind: PlaceInOrder,
    ) -> Option<WorkItem> {
        let (open, [u, d]) = (self.ports.open(k), ends_of(behind));
        let same = begun(behind) == k + 1;
        if same && u > up {
            return None;
        }
        let own = same && u == up;
        let found = c.demand.first_in_row(up, |index, live| {
            let may =
                live & open[index as usize] & if own { from_on(index, d + 1) } else { u64::MAX };
            self.ports.open_behind(index, may, place(k, [up, 64 * index]), step([0, 1]))
        });
        found.map(|(down, group)| WorkItem { at: place(k, [up, down]), link: up, group })
    }

    /// The first sender for this receiver.
    fn sender(
        &self,
        k: usize,
        c: &ActiveCoflow,
        down: u32,
        behind: PlaceInOrder,
    ) -> Option<WorkItem> {
        let (open, [u, d]) = (self.ports.open(k), ends_of(behind));
        let same = begun(behind) == k + 1;
        // Senders behind this one, and this one too if the receiver comes behind its own.
        let from = if d < down { u } else { u + 1 };
        let found = c.demand.first_in_column(down, |index, live| {
            let may =
                live & open[index as usize] & if same { from_on(index, from) } else { u64::MAX };
            self.ports.open_behind(index, may, place(k, [64 * index, down]), step([1, 0]))
        });
        found.map(|(up, group)| WorkItem { at: place(k, [up, down]), link: down, group })
    }
}

/// The links of a word from this one on, as bits.
fn from_on(word: u32, link: u32) -> u64 {
    match word.cmp(&(link / 64)) {
        std::cmp::Ordering::Greater => u64::MAX,
        std::cmp::Ordering::Equal => u64::MAX << (link % 64),
        std::cmp::Ordering::Less => 0,
    }
}
