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
        for l in 0..self.unseen.len() as u32 {
            if self.unseen[l as usize] > from as u32 {
                self.enter(l, (from as u32, 0), free);
                self.looks[l as usize].unseen = self.unseen[l as usize];
                self.unseen[l as usize] = from as u32;
            }
        }
        for e in ended.iter().filter(|e| e.rates.0 > 0) {
            for l in coflows[e.place].demand.ends(e.group) {
                self.enter(l, (from as u32, 0), free);
                self.looks[l as usize].now += e.rates.0;
                self.unseen[l as usize] = from as u32;
            }
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
            place = match (self.changed.is_empty(), rest.first()) {
                (false, _) => place + 1,
                (true, Some(e)) => e.place,
                (true, None) => break,
            };
        }
        for l in std::mem::take(&mut self.changed) {
            self.is_changed[l as usize] = false;
            free.set(l, self.looks[l as usize].now);
        }
        for (links, rate) in late {
            for l in links {
                free.give_link(l, rate);
                self.unseen[l as usize] = coflows.len() as u32;
            }
        }
    }

    /// From this place and group on a link looks different, or will.
    fn enter(&mut self, l: u32, (place, group): (u32, u32), free: &Free) {
        if std::mem::replace(&mut self.is_changed[l as usize], true) {
            return;
        }
        let left = self.left(l, (place, group), free);
        self.looks[l as usize] = Look { now: left, before: left, unseen: 0 };
        self.changed.push(l);
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
            let (word, bit) = (place * self.words + l as usize / 64, 1 << (l % 64));
            self.open[word] = if self.looks[l as usize].now > 0 { self.open[word] | bit } else { self.open[word] & !bit };
        }
        for k in 0..self.changed.len() {
            self.list(self.changed[k], place, 0, c);
        }
        let (mut last, mut any) = (None, false);
        while let Some(Reverse(group)) = self.work.pop() {
            if last.replace(group) != Some(group) {
                any |= self.decide(place, group, c, free, world, late);
            }
        }
        let (looks, is_changed) = (&self.looks, &mut self.is_changed);
        self.changed.retain(|&l| {
            let look = looks[l as usize];
            is_changed[l as usize] = look.now != look.before || look.unseen > place as u32 + 1;
            is_changed[l as usize]
        });
        any
    }

    /// Lists the groups of a coflow from number `first` on that hold a part of a link, or could.
    fn list(&mut self, l: u32, place: usize, first: u32, c: &Live) {
        let holders = &self.holders[l as usize];
        let from = holders.partition_point(|h| (h.place, h.group) < (place as u32, first));
        self.work.extend(holders[from..].iter().take_while(|h| h.place == place as u32).map(|h| Reverse(h.group)));
        if self.looks[l as usize].now > 0 {
            let open = &self.open[place * self.words..(place + 1) * self.words];
            let work = &mut self.work;
            c.demand.crossing(l, open, |g| {
                if g >= first {
                    work.push(Reverse(g))
                }
            });
        }
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
            return false;
        }
        let ended = c.demand.left(group) > 0 && c.change(group, rate, world).inspect(|base| late.push((links, rate + base))).is_some();
        for (l, fresh) in links.into_iter().zip(fresh) {
            self.hold(l, at, if ended { 0 } else { rate });
            if fresh {
                self.list(l, place, group + 1, c);
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
