//! Incremental sharing where the flows of a coflow share max-min fairly what the coflows before it
//! leave.
//!
//! A flow that ends frees bandwidth on two links. Its own coflow then has other [`CoflowLevels`],
//! and leaves more or less on some links. That changes each later coflow with active flows on one
//! of these links, and so on. All other coflows keep their rates and are not looked at; the same
//! holds for flows whose links keep their levels.
//!
//! Where queues have weights, a coflow shares twice: its queue's part of each link, and then what
//! all queues have left.
//!
//! The result is exact: `Ordered::slow` is the slow twin, which shares among all flows each time.

use super::active::{ActiveCoflow, Gone};
use super::shares::parts;
use crate::coflows::orders::Aalo;
use crate::coflows::rates::{CoflowLevels, Deltas, FreeCapacity, LevelsScratch};
use crate::earliest::EarliestTimes;
use crate::units::Time;

/// A coflow, by its index in the order, and its levels.
type LevelStep = (usize, CoflowLevels);

/// Levels of all coflows.
pub struct FairLevels {
    ready: bool,
    links: usize,
    /// With weighted queues: by queue, its coflows in order, within the queue's part.
    queues: Vec<Vec<LevelStep>>,
    /// All coflows in order, over what those parts leave.
    rest: Vec<LevelStep>,
    /// By coflow: its queue and its index there, with weighted queues.
    places: Vec<(usize, usize)>,
    /// By coflow: when its groups end, and when the first one does.
    ends: Vec<(EarliestTimes, Option<Time>)>,
    /// By coflow: whether a group has ended since its levels were computed.
    stale: Vec<bool>,
    /// Bandwidth that ended groups have freed, as (link, bits/s).
    back: Vec<(u32, u64)>,
    deltas: Deltas,
    scratch: LevelsScratch,
    over: Vec<u32>,
}

impl FairLevels {
    /// For `links` links, without knowledge; for none, it never learns.
    pub fn new(links: usize) -> Self {
        Self {
            ready: false,
            links,
            queues: Vec::new(),
            rest: Vec::new(),
            places: Vec::new(),
            ends: Vec::new(),
            stale: Vec::new(),
            back: Vec::new(),
            deltas: Deltas::new(links),
            scratch: LevelsScratch::default(),
            over: Vec::new(),
        }
    }

    /// Whether [`FairLevels::follow`] may be called.
    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// Drops what it knows, which is out of date.
    pub fn forget(&mut self) {
        self.ready = false;
    }

    /// Shares what is free among coflows, which have no rates yet, and remembers the levels. False
    /// if it cannot. O(coflows x (links log links) + groups).
    pub fn learn(
        &mut self,
        coflows: &mut [ActiveCoflow],
        free: &mut FreeCapacity,
        weighted: Option<&Aalo>,
    ) -> bool {
        if self.links != free.links() {
            return false;
        }
        (self.queues, self.rest, self.places) = (Vec::new(), Vec::new(), Vec::new());
        let scratch = &mut self.scratch;
        if let Some(aalo) = weighted {
            let (mut parts, mut k) = (parts(aalo, coflows, free).into_iter(), 0);
            for same in coflows.chunk_by(|a, b| a.queue == b.queue) {
                let mut own = parts.next().expect("a part for each queue");
                let before: Vec<u64> = (0..own.links() as u32).map(|l| own.left(l)).collect();
                let mut steps = Vec::with_capacity(same.len());
                for c in same {
                    self.places.push((self.queues.len(), steps.len()));
                    steps.push((k, CoflowLevels::new(&c.demand, &mut own, scratch)));
                    k += 1;
                }
                before
                    .iter()
                    .zip(0..)
                    .for_each(|(&before, l)| free.take_link(l, before - own.left(l)));
                self.queues.push(steps);
            }
        }
        for (k, c) in coflows.iter_mut().enumerate() {
            self.rest.push((k, CoflowLevels::new(&c.demand, free, scratch)));
            let first = self.places.get(k).map(|&(q, at)| &self.queues[q][at].1);
            let levels: Vec<&CoflowLevels> = first.into_iter().chain([&self.rest[k].1]).collect();
            c.demand.rates(&levels, |g, rate| {
                if rate > 0 {
                    c.extra.add(g, rate);
                }
            });
        }
        self.ready = true;
        true
    }

    /// Computes when flows end. Their rates must be those of [`FairLevels::learn`], and all must be
    /// settled. O(groups with rates).
    pub fn forecast(&mut self, coflows: &[ActiveCoflow]) {
        if !self.ready {
            return;
        }
        self.back.clear();
        self.stale.clear();
        self.stale.resize(coflows.len(), false);
        self.ends = coflows
            .iter()
            .map(|c| {
                let mut ends = EarliestTimes::new(c.demand.groups());
                c.extra.running().for_each(|(g, _)| ends.set(g, c.end(g)));
                let first = ends.first();
                (ends, first)
            })
            .collect();
    }

    /// When the first flow ends.
    pub fn next(&self) -> Option<Time> {
        self.ends.iter().filter_map(|e| e.1).min()
    }

    /// Appends the flows that are due to `list`, in order, as (coflow, group).
    pub fn due(&mut self, now: Time, list: &mut Vec<(usize, u32)>) {
        for (k, (ends, _)) in
            self.ends.iter().enumerate().filter(|(_, e)| e.1.is_some_and(|t| t <= now))
        {
            ends.up_to(now, &mut self.over);
            list.extend(self.over.drain(..).map(|g| (k, g)));
        }
    }

    /// A group of the coflow at index `k` has ended.
    pub fn leave(&mut self, k: usize, c: &ActiveCoflow, gone: &Gone) {
        self.stale[k] = true;
        if let Some(&(q, at)) = self.places.get(k) {
            self.queues[q][at].1.ended(&c.demand, gone.group);
        }
        self.rest[k].1.ended(&c.demand, gone.group);
        self.back.extend(c.demand.ends(gone.group).map(|l| (l, gone.extra)));
        let (ends, first) = &mut self.ends[k];
        ends.set(gone.group, None);
        *first = ends.first();
    }

    /// Changes the rates that the ends of flows affect.
    pub fn follow(&mut self, coflows: &mut [ActiveCoflow], free: &mut FreeCapacity, now: Time) {
        let (deltas, scratch) = (&mut self.deltas, &mut self.scratch);
        let mut other = vec![false; coflows.len()];
        let mut walk = |steps: &mut Vec<LevelStep>, deltas: &mut Deltas| {
            for (k, levels) in steps {
                let demand = &coflows[*k].demand;
                if levels.shift(demand, deltas) | self.stale[*k] {
                    other[*k] |= levels.update(demand, deltas, scratch);
                }
            }
        };
        let mut rest = Vec::new();
        for steps in &mut self.queues {
            walk(steps, deltas);
            deltas.drain(|link, more| rest.push((link, more)));
        }
        rest.into_iter().for_each(|(link, more)| deltas.add(link, more));
        walk(&mut self.rest, deltas);
        // The bandwidth of ended flows has been returned already.
        self.back.drain(..).for_each(|(link, rate)| deltas.add(link, -(rate as i64)));
        deltas.drain(|link, more| {
            free.set(
                link,
                free.left(link).checked_add_signed(more).expect("no one has more than there is"),
            )
        });
        for (k, c) in coflows.iter_mut().enumerate() {
            let (ends, first) = &mut self.ends[k];
            if other[k] {
                let queue = self.places.get(k).map(|&(q, at)| &mut self.queues[q][at].1);
                let mut levels: Vec<&mut CoflowLevels> =
                    queue.into_iter().chain([&mut self.rest[k].1]).collect();
                let mut changed = Vec::new();
                c.demand.changed_rates(&mut levels, |g, rate| changed.push((g, rate)));
                for (g, rate) in changed {
                    let before = c.extra.of(g);
                    if rate != before {
                        ends.set(g, c.set_extra(g, before, rate, now));
                    }
                }
            }
            if other[k] | std::mem::take(&mut self.stale[k]) {
                *first = ends.first();
            }
        }
    }
}
