//! How a link is looked at: which level it has by what others hold back, and whom it holds back by that.

use std::cmp::Reverse;

use crate::coflows::rates::Path;

use super::{Crossing, Group, Link, NEVER, NOWHERE, ROUNDING, Shares, Team, Turn, rate};

impl Shares {
    /// A link has to be looked at.
    pub(super) fn open(&mut self, link: u32) {
        let l = &mut self.links[link as usize];
        if !std::mem::replace(&mut l.is_open, true) {
            self.open.push(Reverse((l.level.unwrap_or(u64::MAX), link)));
            self.bound(link);
        }
    }

    /// The level of a link by the rates that other links give its groups; `None` if it holds none back. Leaves the crossings of a link
    /// between racks in `self.crossings`, with turns and flows. O(crossings) a step of the search.
    pub(super) fn find_level(&mut self, link: u32) -> Option<u64> {
        let Link { capacity, level, trunks, .. } = &self.links[link as usize];
        if let Some(&(side, host)) = self.at.get(link as usize) {
            let side = &self.sides[side as usize];
            return settle(link, *level, |turn| {
                let (held, growing) = side.split(host as usize, turn);
                let left = (*capacity as f64 - held).max(0.0);
                (growing > 0.0).then(|| (growing, (left / growing * (1.0 + ROUNDING)) as u64))
            });
        }
        let by_others = |turn: Turn| if turn.1 == link { NEVER } else { turn };
        self.crossings.clear();
        for &number in trunks {
            let t = &self.trunks[number as usize];
            if t.flows > 0 {
                self.crossings.push((Crossing::Trunk(number), by_others(t.turn), t.flows));
            }
            let alone = t.groups[1].iter().map(|&k| (k, &self.groups[k as usize]));
            self.crossings.extend(alone.map(|(k, g)| (Crossing::Group(k), by_others(g.turn), g.flows.into())));
        }
        settle(link, *level, |turn| {
            let (mut held, mut growing) = (0, 0);
            for (_, by, flows) in &self.crossings {
                match *by < turn {
                    true => held += u128::from(*flows) * u128::from(by.0),
                    false => growing += u128::from(*flows),
                }
            }
            let left = u128::from(*capacity).saturating_sub(held);
            left.checked_div(growing).map(|share| (growing, share as u64))
        })
    }

    /// A link has this level: what crosses it and links before it do not hold back has that rate. Those of links between racks are in
    /// `self.crossings`.
    pub(super) fn hold(&mut self, link: u32, level: Option<u64>) {
        if std::mem::replace(&mut self.links[link as usize].level, level) != level {
            self.leveled.push(link);
        }
        let Some(level) = level else { return };
        let turn = (level, link);
        let mut held = std::mem::take(&mut self.held);
        match self.at.get(link as usize).copied() {
            Some((side, host)) => {
                self.sides[side as usize].beyond(host as usize, turn, &mut held);
                for crossing in held.drain(..) {
                    match crossing {
                        Crossing::Group(k) => self.hold_alone(k, turn),
                        Crossing::Trunk(t) => {
                            let t = &self.trunks[t as usize];
                            let end = usize::from(t.sides[0] != side);
                            let part = |k: u32| self.teams[self.groups[k as usize].teams[end] as usize].parts[host as usize];
                            let there: Vec<u32> = t.groups[0].iter().copied().filter(|&k| part(k) > 0.0).collect();
                            there.into_iter().for_each(|k| self.hold_alone(k, turn));
                        }
                    }
                }
            }
            None => {
                held.extend(self.crossings.iter().filter(|c| c.1 > turn).map(|c| c.0));
                held.drain(..).for_each(|crossing| match crossing {
                    Crossing::Group(k) => self.join_again(k, turn),
                    Crossing::Trunk(t) => self.hold_trunk(t, turn),
                });
            }
        }
        self.held = held;
    }

    /// An interface holds a group back.
    fn hold_alone(&mut self, group: u32, turn: Turn) {
        let old = self.turn_of(group);
        if old == turn {
            return;
        }
        if !self.groups[group as usize].is_alone {
            self.take_out(group);
            self.put(group, true);
        }
        self.turn(Crossing::Group(group), turn);
        self.change(group, old, turn);
    }

    /// A link holds back the groups of a trunk that are together.
    fn hold_trunk(&mut self, trunk: u32, turn: Turn) {
        let old = self.turn(Crossing::Trunk(trunk), turn);
        if old == turn {
            return;
        }
        let t = &self.trunks[trunk as usize];
        if old.1 != turn.1 {
            self.turned.extend_from_slice(&t.groups[0]);
        }
        for (&side, takes) in t.sides.iter().zip(&t.takes) {
            self.sides[side as usize].carry(takes, rate(turn) - rate(old), side, &mut self.stirred);
        }
        let (links, flows) = (t.links, t.flows);
        self.carry_between(links, flows, old, turn);
    }

    /// A link comes before the interface that holds a group back, which joins those that are together.
    fn join_again(&mut self, group: u32, turn: Turn) {
        let Group { trunk, turn: old, .. } = self.groups[group as usize];
        self.take_out(group);
        self.put(group, false);
        let now = self.trunks[trunk as usize].turn.min(turn);
        self.turn(Crossing::Trunk(trunk), now);
        self.change(group, old, now);
    }

    /// A group has another turn. Its other links have to be looked at; interfaces, once [`Shares::open_stirred`] has found which.
    pub(super) fn change(&mut self, group: u32, old: Turn, now: Turn) {
        let g = self.groups[group as usize];
        let links = self.trunks[g.trunk as usize].links;
        self.carry_between(links, g.flows.into(), old, now);
        if old.1 != now.1 {
            self.turned.push(group);
            if old.1 != NOWHERE {
                self.open(old.1);
            }
        }
        let more = (rate(now) - rate(old)) * f64::from(g.flows);
        self.carries.extend(g.teams.map(|team| (team, more)));
    }

    /// Links between racks carry as many flows of another rate: they have to be looked at if they hold any back, or carry more than they
    /// can; but not the one that gives these flows their rate.
    fn carry_between(&mut self, links: Path, flows: u64, old: Turn, now: Turn) {
        for &l in links.links() {
            let link = &mut self.links[l as usize];
            let of = |turn: Turn| if turn == NEVER { 0 } else { u128::from(flows) * u128::from(turn.0) };
            link.load = link.load + of(now) - of(old);
            if l != now.1 && (link.level.is_some() || link.load > link.capacity.into()) {
                self.open(l);
            }
        }
    }

    /// Interfaces that carry more or less than before have to be looked at, if they hold any group back or might.
    pub(super) fn open_stirred(&mut self) {
        let (mut carries, mut stirred, mut risen) =
            (std::mem::take(&mut self.carries), std::mem::take(&mut self.stirred), std::mem::take(&mut self.risen));
        // What a team's groups send adds up before it is told to all of its hosts' interfaces.
        carries.sort_by_key(|c| c.0);
        for of_team in carries.chunk_by(|a, b| a.0 == b.0) {
            let Team { side, parts } = &self.teams[of_team[0].0 as usize];
            self.sides[*side as usize].carry(parts, of_team.iter().map(|c| c.1).sum(), *side, &mut stirred);
        }
        carries.clear();
        stirred.drain(..).for_each(|side| self.sides[side as usize].risen(&mut risen));
        risen.drain(..).for_each(|l| self.open(l));
        (self.carries, self.stirred, self.risen) = (carries, stirred, risen);
    }
}

/// The level of a link, which had the level `old`. `share` says, if other links hold groups back only before this turn, how much is left of
/// the others and which level the link has for those; `None` if nothing is left.
///
/// What a link carries grows with its level, and the more groups others hold back the less does it grow. So a share is never above the
/// level that is looked for, and nearer to it than a turn before that: this is Newton's method.
fn settle<T: PartialOrd>(link: u32, old: Option<u64>, share: impl Fn(Turn) -> Option<(T, u64)>) -> Option<u64> {
    let (mut growing, mut level) = match old.and_then(|old| share((old, link)).map(|next| (old, next))) {
        Some((old, (_, next))) if next < old => share((next, link))?,
        Some((_, next)) => next,
        None => share((0, 0))?,
    };
    // With more groups held back the level only grows; where rounding says otherwise, that is the end.
    loop {
        let (less, next) = share((level, link))?;
        if less >= growing {
            return Some(level);
        }
        (growing, level) = (less, next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_ends_the_search_for_a_level() {
        // Level 100 counts two groups that others hold back, which leaves 99 by rounding, and 99 counts one, which leaves 100.
        let share = |turn: Turn| Some(if turn >= (100, 7) { (1, 99) } else { (2, 100) });
        for old in [None, Some(0), Some(99), Some(100), Some(200)] {
            assert!(matches!(settle(7, old, share), Some(99 | 100)));
        }
        // Two of three groups have 1 and 4 bits a second from other links; of 12 the third has the rest.
        let crossings = [(1, 0), (4, 1), NEVER];
        let share = |turn: Turn| {
            let held: Vec<u64> = crossings.iter().filter(|c| **c < turn).map(|c| c.0).collect();
            let growing = 3 - held.len() as u64;
            (12 - held.iter().sum::<u64>()).checked_div(growing).map(|share| (growing, share))
        };
        for old in [None, Some(0), Some(2), Some(4), Some(5), Some(7), Some(8), Some(u64::MAX)] {
            assert_eq!(settle(7, old, share), Some(7));
        }
    }
}
