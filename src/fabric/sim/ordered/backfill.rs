//! Greedy shares that are kept up to date: only what a change reaches is decided anew.
//!
//! Coflow after coflow and group after group, each takes all that its two links have left ([`crate::coflows::rates::greedy`]).
//! What a link has left before a group is what it has left in the end and what that group and those behind it hold. So when a group
//! ends, those behind it see a difference on its two links only, until somebody takes up what it held; if that is a group which held
//! less before, those behind it see a difference on its other link, and so on. [`Backfill::sweep`] goes from coflow to coflow
//! with the links that look different, decides only for groups that cross one of them, and ends when no link looks different
//! any more. The rates are those of giving all of them back and sharing anew, to the bit.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::limit_of;
use super::live::Live;
use crate::coflows::network::Network;
use crate::coflows::rates::Free;
use crate::fabric::sim::engine::World;
use crate::fabric::sim::soonest::Soonest;
use crate::units::Time;

/// A group that holds a part of a link.
#[derive(Clone, Copy, Debug)]
struct Holder {
    place: u32,
    group: u32,
    rate: u64,
}

/// A group that ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// The place of its coflow.
    pub place: usize,
    /// Its number.
    pub group: u32,
    /// The rates that it had: base and extra.
    pub rates: (u64, u64),
}

/// A link that looks different from what a coflow saw.
#[derive(Clone, Copy, Debug, Default)]
struct Look {
    /// What it has left now.
    now: u64,
    /// What it had left, for those who saw it.
    before: u64,
    /// Coflows before this place have not seen it.
    unseen: u32,
    /// The place of the next coflow that holds a part of it, or [`NOWHERE`].
    next: u32,
}

/// Behind all coflows.
const NOWHERE: u32 = u32::MAX;

impl Look {
    /// Whether a group of the coflow at `place` that held nothing of the link may take from it now. Where it had something left before,
    /// it was the group's other link that had not.
    fn opened(self, place: usize) -> bool {
        self.now > 0 && (self.before == 0 || self.unseen as usize > place)
    }

    /// Whether it looks no different any more to coflows from `place` on.
    fn settled(self, place: usize) -> bool {
        self.now == self.before && self.unseen as usize <= place
    }
}

/// What goes back to the links of groups that turned out to be through, for those who come after this sweep.
type Late = Vec<([u32; 2], u64)>;

/// Who holds what of which link, and when each group with an extra rate ends.
pub struct Backfill {
    /// By link, by place and group.
    holders: Vec<Vec<Holder>>,
    /// By place, then by word: links that have something left before that coflow.
    open: Vec<u64>,
    words: usize,
    /// By link: coflows before this place have not seen what was given back to it.
    unseen: Vec<u32>,
    any_unseen: bool,
    /// By link; right for those in `changed`.
    looks: Vec<Look>,
    changed: Vec<u32>,
    is_changed: Vec<bool>,
    /// Groups of one coflow that are to be decided.
    work: BinaryHeap<Reverse<u32>>,
    /// By end: place and group; some are out of date.
    ends: BinaryHeap<Reverse<(Time, u32, u32)>>,
    /// By place: when the coflow itself must be looked at.
    own: Soonest,
}

impl Backfill {
    /// Nobody holds anything of so many links.
    pub fn new(links: usize) -> Self {
        Self {
            holders: vec![Vec::new(); links],
            open: Vec::new(),
            words: links.div_ceil(64),
            unseen: vec![0; links],
            any_unseen: false,
            looks: vec![Look::default(); links],
            changed: Vec::new(),
            is_changed: vec![false; links],
            work: BinaryHeap::new(),
            ends: BinaryHeap::new(),
            own: Soonest::new(0),
        }
    }

    /// Begins anew with what coflows were given. Those before `from` may not have seen all that links have left.
    /// O(groups with extra rates + coflows x links / 64).
    pub fn rebuild(&mut self, coflows: &[Live], free: &Free, from: usize) {
        self.holders.iter_mut().for_each(Vec::clear);
        self.ends.clear();
        self.unseen.fill(from as u32);
        self.any_unseen = from > 0;
        self.own = Soonest::new(coflows.len());
        for (place, c) in coflows.iter().enumerate() {
            for (group, rate) in c.extra.running() {
                for l in c.demand.ends(group) {
                    self.holders[l as usize].push(Holder { place: place as u32, group, rate });
                }
                self.expect(place, group, c);
            }
            self.own.set(place as u32, c.own);
        }
        for list in &mut self.holders {
            list.sort_unstable_by_key(|h| (h.place, h.group));
            // Who had stopped and began again was listed twice.
            list.dedup_by_key(|h| (h.place, h.group));
        }
        let words = self.words;
        self.open.clear();
        self.open.resize(coflows.len() * words, 0);
        let mut open: Vec<u64> = (0..words as u32).map(|w| free.open(w)).collect();
        for (place, c) in coflows.iter().enumerate().rev() {
            for (group, _) in c.extra.running() {
                c.demand.ends(group).iter().for_each(|&l| open[l as usize / 64] |= 1 << (l % 64));
            }
            self.open[place * words..(place + 1) * words].copy_from_slice(&open);
        }
    }

    fn expect(&mut self, place: usize, group: u32, c: &Live) {
        if let Some(t) = c.end_of(group) {
            self.ends.push(Reverse((t, place as u32, group)));
        }
    }

    /// When a coflow itself must be looked at next.
    pub fn own(&self) -> &Soonest {
        &self.own
    }

    /// When something will happen next.
    pub fn next(&mut self, coflows: &[Live]) -> Option<Time> {
        while let Some(&Reverse((t, place, group))) = self.ends.peek() {
            if coflows[place as usize].end_of(group) == Some(t) {
                break;
            }
            self.ends.pop();
        }
        self.ends.peek().map(|e| e.0.0).into_iter().chain(self.own.first()).min()
    }

    /// Ends the groups that are due; what they held of links is not given back yet. By place and group.
    pub fn end_due(&mut self, coflows: &mut [Live], world: &mut World) -> Vec<Ended> {
        let mut due = Vec::new();
        while let Some(&Reverse((t, place, group))) = self.ends.peek().filter(|e| e.0.0 <= world.now) {
            self.ends.pop();
            let c = &mut coflows[place as usize];
            if c.end_of(group) == Some(t) {
                let rates = (c.base.of(group), c.extra.of(group));
                let ended = c.settle_one(group, world);
                debug_assert!(ended, "it was due");
                due.push(Ended { place: place as usize, group, rates });
            }
        }
        due.sort_unstable_by_key(|e| (e.place, e.group));
        due
    }

    /// Gives what the groups that ended held to the coflows from the place of the first of them on: these see, too, what those before
    /// them have not taken. O(coflows + groups that cross links which look different).
    pub fn sweep(&mut self, network: &Network, (coflows, free): (&mut [Live], &mut Free), ended: &[Ended], world: &mut World) {
        let Some(from) = ended.first().map(|e| e.place) else { return };
        if std::mem::take(&mut self.any_unseen) {
            self.show_unseen(from, free);
        }
        for e in ended.iter().filter(|e| e.rates.0 > 0) {
            for l in coflows[e.place].demand.ends(e.group) {
                self.enter(l, (from as u32, 0), free);
                self.looks[l as usize].now += e.rates.0;
                self.unseen[l as usize] = from as u32;
                self.any_unseen = true;
            }
        }
        for &l in self.changed.iter().filter(|&&l| self.looks[l as usize].now > 0) {
            self.open[from * self.words + l as usize / 64] |= 1 << (l % 64);
        }
        let (mut place, mut rest, mut late) = (from, ended, Late::new());
        while let Some(c) = coflows.get_mut(place) {
            while let Some((e, others)) = rest.split_first().filter(|(e, _)| e.place == place) {
                self.work.push(Reverse(e.group));
                rest = others;
            }
            if self.visit(place, c, free, world, &mut late) {
                c.forecast_own(world.now, limit_of(network, c));
                self.own.set(place as u32, c.own);
            }
            place = self.go_on(place, rest.first().map_or(coflows.len(), |e| e.place));
        }
        for l in std::mem::take(&mut self.changed) {
            self.is_changed[l as usize] = false;
            free.set(l, self.looks[l as usize].now);
        }
        for (links, rate) in late {
            for l in links {
                free.give_link(l, rate);
                self.unseen[l as usize] = coflows.len() as u32;
                self.any_unseen = true;
            }
        }
    }

    /// Coflows from `from` on see what was given back before and those before `until` have not seen.
    fn show_unseen(&mut self, from: usize, free: &Free) {
        for l in 0..self.unseen.len() as u32 {
            let unseen = self.unseen[l as usize];
            if unseen > from as u32 {
                self.enter(l, (from as u32, 0), free);
                self.looks[l as usize].unseen = unseen;
                self.unseen[l as usize] = from as u32;
            }
            self.any_unseen |= self.unseen[l as usize] > 0;
        }
    }

    /// The next place after `place` and up to `end` at which anything may change. Up to there the coflows see which links are open.
    fn go_on(&mut self, place: usize, end: usize) -> usize {
        let step = |&l: &u32| if self.looks[l as usize].opened(place + 1) { place + 1 } else { self.looks[l as usize].next as usize };
        let next = self.changed.iter().map(step).min().map_or(end, |n| n.min(end));
        for &l in &self.changed {
            let look = self.looks[l as usize];
            if look.now > 0 && !look.opened(place + 1) {
                continue;
            }
            for words in self.open.chunks_mut(self.words).take(next + 1).skip(place + 1) {
                let (word, bit) = (&mut words[l as usize / 64], 1 << (l % 64));
                *word = if look.now > 0 { *word | bit } else { *word & !bit };
            }
        }
        next
    }

    /// From this place and group on a link looks different, or will.
    fn enter(&mut self, l: u32, (place, group): (u32, u32), free: &Free) {
        if std::mem::replace(&mut self.is_changed[l as usize], true) {
            return;
        }
        let left = self.left(l, (place, group), free);
        self.looks[l as usize] = Look { now: left, before: left, unseen: 0, next: self.next_holder(l, place) };
        self.changed.push(l);
    }

    /// The first place from `place` on whose coflow holds a part of a link.
    fn next_holder(&self, l: u32, place: u32) -> u32 {
        let holders = &self.holders[l as usize];
        holders.get(holders.partition_point(|h| h.place < place)).map_or(NOWHERE, |h| h.place)
    }

    /// What a link that does not look different has left before a group.
    fn left(&self, l: u32, (place, group): (u32, u32), free: &Free) -> u64 {
        let behind = self.holders[l as usize].iter().rev().take_while(|h| (h.place, h.group) >= (place, group));
        free.left(l) + behind.map(|h| h.rate).sum::<u64>()
    }

    /// Decides anew for the groups of a coflow in `work` and for those that cross a link which looks different; says whether any rate
    /// changed.
    fn visit(&mut self, place: usize, c: &mut Live, free: &Free, world: &mut World, late: &mut Late) -> bool {
        for k in 0..self.changed.len() {
            let l = self.changed[k];
            let look = self.looks[l as usize];
            if look.next == place as u32 {
                self.list_holders(l, place, 0);
            }
            if look.opened(place) {
                self.list_others(l, place, 0, c);
            }
        }
        let (mut last, mut any) = (None, false);
        while let Some(Reverse(group)) = self.work.pop() {
            if last.replace(group) != Some(group) {
                any |= self.decide(place, group, c, free, world, late);
            }
        }
        let mut changed = std::mem::take(&mut self.changed);
        changed.retain(|&l| {
            self.is_changed[l as usize] = !self.looks[l as usize].settled(place + 1);
            if self.looks[l as usize].next <= place as u32 {
                self.looks[l as usize].next = self.next_holder(l, place as u32 + 1);
            }
            self.is_changed[l as usize]
        });
        self.changed = changed;
        any
    }

    /// Lists the groups of a coflow from number `first` on that hold a part of a link.
    fn list_holders(&mut self, l: u32, place: usize, first: u32) {
        let holders = &self.holders[l as usize];
        let from = holders.partition_point(|h| (h.place, h.group) < (place as u32, first));
        self.work.extend(holders[from..].iter().take_while(|h| h.place == place as u32).map(|h| Reverse(h.group)));
    }

    /// Lists the groups of a coflow from number `first` on that cross a link and another one that is open.
    fn list_others(&mut self, l: u32, place: usize, first: u32, c: &Live) {
        let open = &self.open[place * self.words..(place + 1) * self.words];
        c.demand.crossing(l, open, |g| {
            if g >= first {
                self.work.push(Reverse(g));
            }
        });
    }

    /// Decides anew for one group; says whether its rate changed.
    fn decide(&mut self, place: usize, group: u32, c: &mut Live, free: &Free, world: &mut World, late: &mut Late) -> bool {
        let (links, at) = (c.demand.ends(group), (place as u32, group));
        let holders = &self.holders[links[0] as usize];
        let held = holders.binary_search_by_key(&at, |h| (h.place, h.group)).map_or(0, |k| holders[k].rate);
        let left = |l: u32| if self.is_changed[l as usize] { self.looks[l as usize].now } else { self.left(l, at, free) };
        let rate = if c.demand.left(group) == 0 { 0 } else { left(links[0]).min(left(links[1])) };
        let fresh = if rate == held { [false; 2] } else { links.map(|l| !self.is_changed[l as usize]) };
        for (l, fresh) in links.into_iter().zip(fresh) {
            if fresh {
                self.enter(l, at, free);
            }
            if self.is_changed[l as usize] {
                let look = &mut self.looks[l as usize];
                (look.now, look.before) = (look.now - rate, look.before - held);
            }
        }
        if rate == held {
            for l in links.into_iter().filter(|_| held > 0) {
                let look = self.looks[l as usize];
                if self.is_changed[l as usize] && look.now > 0 && look.before == 0 {
                    self.list_others(l, place, group + 1, c);
                }
            }
            return false;
        }
        let ended = c.demand.left(group) > 0 && c.change(group, rate, world).inspect(|base| late.push((links, rate + base))).is_some();
        for (l, fresh) in links.into_iter().zip(fresh) {
            self.hold(l, at, if ended { 0 } else { rate });
            if fresh {
                self.list_holders(l, place, group + 1);
            }
            // Now at the latest groups behind this one could not take from it before.
            let look = self.looks[l as usize];
            if look.now > 0 && look.before == 0 && (fresh || held > 0) {
                self.list_others(l, place, group + 1, c);
            }
        }
        self.expect(place, group, c);
        true
    }

    /// A group holds so much of a link from now on.
    fn hold(&mut self, l: u32, (place, group): (u32, u32), rate: u64) {
        let holders = &mut self.holders[l as usize];
        match (holders.binary_search_by_key(&(place, group), |h| (h.place, h.group)), rate) {
            (Ok(k), 0) => drop(holders.remove(k)),
            (Ok(k), _) => holders[k].rate = rate,
            (Err(_), 0) => {}
            (Err(k), _) => holders.insert(k, Holder { place, group, rate }),
        }
    }
}
