//! How a link is looked at: which level it has by what others hold back, and whom it holds back by that.

use std::cmp::Reverse;

use super::{Crossing, Group, NEVER, NOWHERE, ROUNDING, Shares, Team, Turn, rate};

impl Shares {
    /// A link has to be looked at.
    pub(super) fn open(&mut self, link: u32) {
        let l = &mut self.links[link as usize];
        if !std::mem::replace(&mut l.is_open, true) {
            self.open.push(Reverse((l.level.unwrap_or(u64::MAX), link)));
        }
    }

    /// The level of a link by the rates that other links give its groups; `None` if it holds none back. Leaves its groups in
    /// `self.crossings`. O(its groups).
    pub(super) fn find_level(&mut self, link: u32) -> Option<u64> {
        self.crossings.clear();
        let (groups, teams, crossings) = (&self.groups, &self.teams, &mut self.crossings);
        let by_others = |turn: Turn| if turn.1 == link { NEVER } else { turn };
        let alone = |number: u32, part: f64| {
            let g = &groups[number as usize];
            Crossing { number, is_trunk: false, turn: by_others(g.turn), flows: g.flows.into(), takes: part * f64::from(g.flows) }
        };
        let is_interface = (link as usize) < self.at.len();
        if is_interface {
            let (side, host) = self.at[link as usize];
            let side_at = &self.sides[side as usize];
            for &number in &side_at.trunks {
                let t = &self.trunks[number as usize];
                let takes = t.takes[usize::from(t.sides[0] != side)][host as usize];
                if takes > 0.0 {
                    crossings.push(Crossing { number, is_trunk: true, turn: by_others(t.turn), flows: t.flows, takes });
                }
            }
            for team in side_at.teams.iter().map(|&t| &teams[t as usize]) {
                let part = team.parts[host as usize];
                if part > 0.0 {
                    crossings.extend(team.alone.iter().map(|&k| alone(k, part)));
                }
            }
        }
        for &number in &self.links[link as usize].trunks {
            let t = &self.trunks[number as usize];
            if t.flows > 0 {
                crossings.push(Crossing { number, is_trunk: true, turn: by_others(t.turn), flows: t.flows, takes: 0.0 });
            }
            crossings.extend(t.groups[1].iter().map(|&k| alone(k, 0.0)));
        }
        let capacity = self.links[link as usize].capacity;
        let crossings = &self.crossings;
        if is_interface {
            settle(link, |turn| {
                let (mut growing, mut held, mut count) = (0.0, 0.0, 0);
                for c in crossings {
                    if c.turn < turn {
                        held += c.takes * c.turn.0 as f64;
                        count += 1;
                    } else {
                        growing += c.takes;
                    }
                }
                let left = (capacity as f64 - held).max(0.0);
                (count < crossings.len()).then(|| (count, (left / growing * (1.0 + ROUNDING)) as u64))
            })
        } else {
            settle(link, |turn| {
                let (mut growing, mut held, mut count) = (0, 0, 0);
                for c in crossings {
                    if c.turn < turn {
                        held += u128::from(c.flows) * u128::from(c.turn.0);
                        count += 1;
                    } else {
                        growing += u128::from(c.flows);
                    }
                }
                let left = u128::from(capacity).saturating_sub(held);
                left.checked_div(growing).map(|share| (count, share as u64))
            })
        }
    }

    /// A link has this level: its groups that links before it do not hold back have that rate. They are in `self.crossings`.
    pub(super) fn hold(&mut self, link: u32, level: Option<u64>) {
        if std::mem::replace(&mut self.links[link as usize].level, level) != level {
            self.leveled.push(link);
            self.bound(link);
        }
        let Some(level) = level else { return };
        let turn = (level, link);
        let crossings = std::mem::take(&mut self.crossings);
        for c in crossings.iter().filter(|c| c.turn > turn) {
            match (self.at.get(link as usize).copied(), c.is_trunk) {
                (Some(_), false) => self.hold_alone(c.number, turn),
                (Some((side, host)), true) => {
                    let t = &self.trunks[c.number as usize];
                    let end = usize::from(t.sides[0] != side);
                    let part = |k: u32| self.teams[self.groups[k as usize].teams[end] as usize].parts[host as usize];
                    let there: Vec<u32> = t.groups[0].iter().copied().filter(|&k| part(k) > 0.0).collect();
                    there.into_iter().for_each(|k| self.hold_alone(k, turn));
                }
                (None, true) => self.hold_trunk(c.number, turn),
                (None, false) => self.join_again(c.number, turn),
            }
        }
        self.crossings = crossings;
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
        self.groups[group as usize].turn = turn;
        self.change(group, old, turn);
    }

    /// A link holds back the groups of a trunk that are together.
    fn hold_trunk(&mut self, trunk: u32, turn: Turn) {
        let t = &mut self.trunks[trunk as usize];
        let old = std::mem::replace(&mut t.turn, turn);
        if old == turn {
            return;
        }
        if old.1 != turn.1 {
            self.turned.extend_from_slice(&t.groups[0]);
        }
        for (&side, takes) in t.sides.iter().zip(&t.takes) {
            self.sides[side as usize].carry(takes, rate(turn) - rate(old), side, &mut self.stirred);
        }
        let links = t.links;
        links.links().iter().filter(|&&l| l != turn.1).for_each(|&l| self.open(l));
    }

    /// A link comes before the interface that holds a group back, which joins those that are together.
    fn join_again(&mut self, group: u32, turn: Turn) {
        let Group { trunk, turn: old, .. } = self.groups[group as usize];
        self.take_out(group);
        let t = &mut self.trunks[trunk as usize];
        t.turn = t.turn.min(turn);
        let now = t.turn;
        self.put(group, false);
        self.change(group, old, now);
    }

    /// A group has another turn. Its other links have to be looked at; interfaces, once [`Shares::open_stirred`] has found which.
    pub(super) fn change(&mut self, group: u32, old: Turn, now: Turn) {
        self.turned.push(group);
        let g = self.groups[group as usize];
        let links = self.trunks[g.trunk as usize].links;
        links.links().iter().filter(|&&l| l != now.1).for_each(|&l| self.open(l));
        if old.1 != now.1 && old.1 != NOWHERE {
            self.open(old.1);
        }
        for team in g.teams {
            let Team { side, parts, .. } = &self.teams[team as usize];
            self.sides[*side as usize].carry(parts, (rate(now) - rate(old)) * f64::from(g.flows), *side, &mut self.stirred);
        }
    }

    /// Interfaces that carry more or less than before have to be looked at, if they hold any group back or might; but not `looked_at`.
    pub(super) fn open_stirred(&mut self, looked_at: u32) {
        let mut stirred = std::mem::take(&mut self.stirred);
        for side in stirred.drain(..) {
            for host in 0..self.sides[side as usize].links.len() {
                let at = &self.sides[side as usize];
                if at.loads[host] != at.before[host] && at.loads[host] > at.bounds[host] && at.links[host] != looked_at {
                    self.open(at.links[host]);
                }
            }
            self.sides[side as usize].before.clear();
        }
        self.stirred = stirred;
    }
}

/// The level of a link. `share` says, if it holds back no group of a turn before this one, how many groups that are and which level it
/// has for the others; `None` if there are no others.
fn settle(link: u32, share: impl Fn(Turn) -> Option<(usize, u64)>) -> Option<u64> {
    let (mut count, mut level) = share((0, 0))?;
    // A level only grows when others hold back more of its groups; where rounding says otherwise, that is the end.
    loop {
        let (now, next) = share((level, link))?;
        if now <= count {
            return Some(level);
        }
        (count, level) = (now, next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_ends_the_search_for_a_level() {
        // Level 100 counts two groups that others hold back, which leaves 99 by rounding, and 99 counts one, which leaves 100.
        let share = |turn: Turn| Some(if turn >= (100, 7) { (2, 99) } else { (1, 100) });
        assert_eq!(settle(7, share), Some(99));
        // Two of three groups have 1 and 4 bits a second from other links; of 12 the third has the rest.
        let crossings = [(1, 0), (4, 1), NEVER];
        let share = |turn: Turn| {
            let held: Vec<u64> = crossings.iter().filter(|c| **c < turn).map(|c| c.0).collect();
            (12 - held.iter().sum::<u64>()).checked_div(3 - held.len() as u64).map(|share| (held.len(), share))
        };
        assert_eq!(settle(7, share), Some(7));
    }
}
