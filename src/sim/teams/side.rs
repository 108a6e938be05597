//! Hosts of a rack that send, or that receive, and what crosses their interfaces.

use multiversion::multiversion;

use super::{Crossing, NEVER, Turn};

/// How many numbers are compared or summed up side by side.
const LANES: usize = 8;

/// [`NEVER`] in numbers that can be multiplied by 0.
const LATE: (f64, f64) = (f64::MAX, f64::MAX);

/// Hosts of a rack that send, or that receive. What is known of their crossings is in lists, in the same order, since a look at an
/// interface goes through all of them.
#[derive(Debug)]
pub(super) struct Side {
    /// Their interfaces.
    pub links: Vec<u32>,
    /// What crosses them, in no order.
    crossings: Vec<Crossing>,
    /// When links hold these back, as levels and numbers of links. Both are whole numbers for which floats have room: rates end at
    /// 100 Tb/s.
    levels: Vec<f64>,
    holders: Vec<f64>,
    /// By host: what its interface has to carry of each, by rate of a flow.
    takes: Vec<Vec<f64>>,
    /// By host: its interface has to be looked at when it carries another load than before that is larger than this.
    pub bounds: Vec<f64>,
    /// By host: what its interface carries; and what it did before links were looked at, where that is not the same.
    pub loads: Vec<f64>,
    before: Vec<f64>,
}

impl Side {
    pub(super) fn new(links: Vec<u32>) -> Self {
        let zeros = || vec![0.0; links.len()];
        let (bounds, loads, takes) = (zeros(), zeros(), vec![Vec::new(); links.len()]);
        Self { crossings: Vec::new(), levels: Vec::new(), holders: Vec::new(), takes, bounds, loads, before: Vec::new(), links }
    }

    /// Another crossing, which nothing holds back yet. Returns its place. O(hosts).
    pub(super) fn push(&mut self, crossing: Crossing) -> u32 {
        self.crossings.push(crossing);
        self.levels.push(LATE.0);
        self.holders.push(LATE.1);
        self.takes.iter_mut().for_each(|takes| takes.push(0.0));
        self.crossings.len() as u32 - 1
    }

    /// Takes out the crossing in this place; returns the one that is there now. O(hosts).
    pub(super) fn take_out(&mut self, place: u32) -> Option<Crossing> {
        let k = place as usize;
        self.crossings.swap_remove(k);
        self.levels.swap_remove(k);
        self.holders.swap_remove(k);
        self.takes.iter_mut().for_each(|takes| _ = takes.swap_remove(k));
        self.crossings.get(k).copied()
    }

    /// What hosts' interfaces have to carry of a crossing by rate of a flow: `times` these.
    pub(super) fn takes(&mut self, place: u32, by_host: &[f64], times: f64) {
        for (takes, of) in self.takes.iter_mut().zip(by_host) {
            takes[place as usize] = of * times;
        }
    }

    /// What holds a crossing back, and when.
    pub(super) fn turn(&mut self, place: u32, turn: Turn) {
        let (level, holder) = if turn == NEVER { LATE } else { as_floats(turn) };
        self.levels[place as usize] = level;
        self.holders[place as usize] = holder;
    }

    /// What a host's interface carries of that which other links hold back before this turn, in bit/s, and what it has to carry of all else
    /// by rate of a flow. O(crossings).
    pub(super) fn split(&self, host: usize, turn: Turn) -> (f64, f64) {
        split(&self.takes[host], &self.levels, &self.holders, as_floats(turn), f64::from(self.links[host]))
    }

    /// What crosses a host's interface that no other link holds back before its turn, but for what it holds back in this turn already.
    /// O(crossings).
    pub(super) fn beyond(&self, host: usize, turn: Turn, found: &mut Vec<Crossing>) {
        beyond(&self.takes[host], &self.levels, &self.holders, as_floats(turn), &self.crossings, found);
    }

    /// Its interfaces carry so much more, times these parts; `stirred` are the sides of which that is so.
    pub(super) fn carry(&mut self, parts: &[f64], more: f64, number: u32, stirred: &mut Vec<u32>) {
        if more == 0.0 {
            return;
        }
        if self.before.is_empty() {
            self.before.clone_from(&self.loads);
            stirred.push(number);
        }
        add(&mut self.loads, parts, more);
    }

    /// Interfaces that have to be looked at, since they carry more or less than before.
    pub(super) fn risen(&mut self, found: &mut Vec<u32>) {
        risen(&self.loads, &self.before, &self.bounds, &self.links, found);
        self.before.clear();
    }
}

fn as_floats(turn: Turn) -> (f64, f64) {
    (turn.0 as f64, f64::from(turn.1))
}

/// Adds `b`, times a factor, to `a`.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
pub(super) fn add(a: &mut [f64], b: &[f64], times: f64) {
    for (a, b) in a.iter_mut().zip(b) {
        *a += b * times;
    }
}

/// Whether another link than this interface holds something back before this turn.
#[inline(always)]
fn is_early(level: f64, holder: f64, turn: (f64, f64), interface: f64) -> bool {
    ((level < turn.0) | ((level == turn.0) & (holder < turn.1))) & (holder != interface)
}

/// Whether no other link holds something back before the turn of its interface, which has another rate for it.
#[inline(always)]
fn is_beyond(takes: f64, level: f64, holder: f64, turn: (f64, f64)) -> bool {
    (takes > 0.0) & ((level > turn.0) | ((level == turn.0) & (holder > turn.1)) | ((holder == turn.1) & (level != turn.0)))
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn split(takes: &[f64], levels: &[f64], holders: &[f64], turn: (f64, f64), interface: f64) -> (f64, f64) {
    let (mut held, mut growing) = ([0.0; LANES], [0.0; LANES]);
    let lists = takes.as_chunks::<LANES>().0.iter().zip(levels.as_chunks::<LANES>().0).zip(holders.as_chunks::<LANES>().0);
    for ((takes, levels), holders) in lists {
        for k in 0..LANES {
            let is_early = is_early(levels[k], holders[k], turn, interface);
            held[k] += if is_early { takes[k] * levels[k] } else { 0.0 };
            growing[k] += if is_early { 0.0 } else { takes[k] };
        }
    }
    for k in takes.len() / LANES * LANES..takes.len() {
        match is_early(levels[k], holders[k], turn, interface) {
            true => held[0] += takes[k] * levels[k],
            false => growing[0] += takes[k],
        }
    }
    (held.iter().sum(), growing.iter().sum())
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn beyond(takes: &[f64], levels: &[f64], holders: &[f64], turn: (f64, f64), crossings: &[Crossing], found: &mut Vec<Crossing>) {
    let lists = takes.as_chunks::<LANES>().0.iter().zip(levels.as_chunks::<LANES>().0).zip(holders.as_chunks::<LANES>().0);
    for (at, ((takes, levels), holders)) in lists.enumerate() {
        let mut any = false;
        for k in 0..LANES {
            any |= is_beyond(takes[k], levels[k], holders[k], turn);
        }
        if any {
            found.extend((0..LANES).filter(|&k| is_beyond(takes[k], levels[k], holders[k], turn)).map(|k| crossings[at * LANES + k]));
        }
    }
    let rest = takes.len() / LANES * LANES..takes.len();
    found.extend(rest.filter(|&k| is_beyond(takes[k], levels[k], holders[k], turn)).map(|k| crossings[k]));
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn risen(loads: &[f64], before: &[f64], bounds: &[f64], links: &[u32], found: &mut Vec<u32>) {
    for at in (0..loads.len()).step_by(LANES) {
        let end = (at + LANES).min(loads.len());
        let (loads, before, bounds) = (&loads[at..end], &before[at..end], &bounds[at..end]);
        let mut any = false;
        for k in 0..loads.len() {
            any |= (loads[k] != before[k]) & (loads[k] > bounds[k]);
        }
        if any {
            found.extend((0..loads.len()).filter(|&k| loads[k] != before[k] && loads[k] > bounds[k]).map(|k| links[at + k]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn late(turn: Turn, link: u32) -> Turn {
        if turn.1 == link { NEVER } else { turn }
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        /// One crossing after another, and whole numbers, of which sums do not depend on the order.
        #[test]
        fn lists_are_as_one_by_one(
            all in prop::collection::vec((prop::option::of((0u64..4, 5u32..9)), prop::array::uniform2(0u32..3), 0usize..3), 0..60),
            turn in (0u64..4, 5u32..9),
        ) {
            let mut side = Side::new(vec![7, 8]);
            let mut twin: Vec<(u32, Turn, [f64; 2])> = Vec::new();
            for (number, (turn, takes, action)) in (0..).zip(all) {
                if action == 0 && !twin.is_empty() {
                    let place = number as usize % twin.len();
                    twin.swap_remove(place);
                    let now = side.take_out(place as u32);
                    prop_assert_eq!(now, twin.get(place).map(|t| Crossing::Group(t.0)));
                }
                let (turn, takes) = (turn.unwrap_or(NEVER), takes.map(f64::from));
                let place = side.push(Crossing::Group(number));
                side.takes(place, &takes.map(|t| t / 2.0), 2.0);
                side.turn(place, turn);
                twin.push((number, turn, takes));
            }
            for (host, &link) in [7, 8].iter().enumerate() {
                let early = |t: &(u32, Turn, [f64; 2])| late(t.1, link) < turn;
                let held: f64 = twin.iter().filter(|t| early(t)).map(|t| t.2[host] * t.1.0 as f64).sum();
                let growing: f64 = twin.iter().filter(|t| !early(t)).map(|t| t.2[host]).sum();
                prop_assert_eq!(side.split(host, turn), (held, growing));
                let (at, mut found) = ((turn.0, link), Vec::new());
                side.beyond(host, at, &mut found);
                let beyond = twin.iter().filter(|t| t.2[host] > 0.0 && late(t.1, link) > at && t.1 != at);
                prop_assert_eq!(found, beyond.map(|t| Crossing::Group(t.0)).collect::<Vec<_>>());
            }
        }

        #[test]
        fn interfaces_rise_that_carry_another_load_above_their_bound(
            hosts in prop::collection::vec((0u32..3, 0u32..3, 0u32..3), 0..30),
        ) {
            let mut side = Side::new((100..).take(hosts.len()).collect());
            let parts: Vec<f64> = hosts.iter().map(|h| f64::from(h.0)).collect();
            let mut stirred = Vec::new();
            side.loads = hosts.iter().map(|h| f64::from(h.1)).collect();
            side.bounds = hosts.iter().map(|h| f64::from(h.2)).collect();
            side.carry(&parts, 0.0, 3, &mut stirred);
            prop_assert!(stirred.is_empty());
            [2.0, -1.0].into_iter().for_each(|more| side.carry(&parts, more, 3, &mut stirred));
            if !hosts.is_empty() {
                prop_assert_eq!(stirred, vec![3]);
            }
            let mut found = Vec::new();
            side.risen(&mut found);
            let now = (100..).zip(&hosts).filter(|(_, h)| h.0 > 0 && h.0 + h.1 > h.2).map(|(l, _)| l);
            prop_assert_eq!(found, now.collect::<Vec<u32>>());
        }
    }
}
