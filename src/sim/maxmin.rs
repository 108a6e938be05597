//! Max-min fair shares by progressive filling, in whole bits per second.
//!
//! A user is a number of equal flows over the same links. The rates of all flows grow together
//! until a link is full. The flows of that link keep their rate; the others continue to grow. The
//! link that limits a user is its *bottleneck*. The rate at which that link is full is its *level*,
//! its fair share. Rates are whole bits a second, rounded down. So a link leaves at most one bit a
//! second unused for each of its flows, and never carries more than its capacity.
//!
//! Two things make that cheap. Links are filled in the order of level and number, and a change
//! undoes only the end of the last filling, from the first link whose rank may be another now.
//! Users between the same two racks are limited together, as one `Trunk`, when a link behind their
//! interfaces is full. The result is the same as that of filling everything, user by user.
//!
//! Source: Bertsekas and Gallager, Data Networks, 2nd edition, section 6.5.2.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::coflows::rates::Path;

mod trunks;

use trunks::{Trunk, Trunks};

/// No link, and no port.
const NOWHERE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct LinkUser {
    /// Number of flows; zero: no such user.
    flows: u32,
    /// The trunk of users that share all its links but the interfaces.
    trunk: u32,
    /// By interface: its port in the trunk, and its index among the port's users.
    ports: [(u32, u32); 2],
    /// The interface that limits this user alone.
    held_by: u32,
    /// Its bottleneck at the last [`MaxMin::refill`].
    link: u32,
}

impl Default for LinkUser {
    fn default() -> Self {
        Self { flows: 0, trunk: 0, ports: [(NOWHERE, 0); 2], held_by: NOWHERE, link: NOWHERE }
    }
}

#[derive(Clone, Debug, Default)]
struct FairLink {
    capacity: u64,
    /// Capacity that limited flows leave.
    left: u64,
    /// Flows that still grow.
    growing: u64,
    /// All flows.
    total: u64,
    /// Its level; `None` if it holds no flow back.
    level: Option<u64>,
    /// Whether it stands in [`Changed::links`].
    is_changed: bool,
    /// Of an interface: the trunks behind it, and its port in each.
    ports: Vec<(u32, u32)>,
    /// Trunks that cross it.
    trunks: Vec<u32>,
}

impl FairLink {
    /// Lets `flows` flows that were limited at `rate` bits a second each grow again, which frees
    /// their bandwidth. A negative number of flows stops growing, and each takes `rate`. New flows
    /// had no rate: 0.
    fn grow(&mut self, flows: i64, rate: u64) {
        self.growing = self.growing.wrapping_add_signed(flows);
        self.left = self.left.wrapping_add_signed(flows.wrapping_mul(rate.cast_signed()));
    }

    /// The rate at which it would be full if no other link was full before.
    fn share(&self) -> Option<u64> {
        self.left.checked_div(self.growing)
    }
}

/// Rank of a link in the order of filling: its level, then its number.
type LinkRank = (u64, u32);

/// A link that was filled.
#[derive(Clone, Copy, Debug)]
struct Filled {
    link: u32,
    /// Number of users and trunks that were limited before it.
    users: usize,
    trunks: usize,
}

/// What may have changed since the last [`MaxMin::refill`].
#[derive(Debug, Default)]
struct Changed {
    /// Links, each with its level at that time.
    links: Vec<(u32, Option<u64>)>,
    users: Vec<u32>,
    trunks: Vec<u32>,
}

/// What a filling changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FillingChanges {
    /// Links whose level changed, by number.
    pub levels: Vec<u32>,
    /// Users with another bottleneck than before, or with their first one, by number.
    pub moved: Vec<u32>,
}

/// The solver: links, their users, and the present fair rates.
#[derive(Debug)]
pub struct MaxMin {
    links: Vec<FairLink>,
    users: Vec<LinkUser>,
    /// By user.
    paths: Vec<Path>,
    trunks: Trunks,
    /// Links in the order in which they were filled.
    filled: Vec<Filled>,
    /// Users that an interface limits, and trunks that another link limits, in the order in which
    /// they were limited.
    held_users: Vec<u32>,
    held_trunks: Vec<u32>,
    changed: Changed,
}

impl MaxMin {
    /// Links with these capacities in bits a second, without users.
    pub fn new(capacity: Vec<u64>) -> Self {
        let link = |capacity| FairLink { capacity, left: capacity, ..FairLink::default() };
        Self {
            links: capacity.into_iter().map(link).collect(),
            users: Vec::new(),
            paths: Vec::new(),
            trunks: Trunks::default(),
            filled: Vec::new(),
            held_users: Vec::new(),
            held_trunks: Vec::new(),
            changed: Changed::default(),
        }
    }

    /// Rate of each flow of a user at the last [`MaxMin::refill`].
    #[cfg(test)]
    pub fn rate(&self, user: u32) -> u64 {
        self.bottleneck(user).map_or(0, |l| self.level(l))
    }

    /// Sets the capacities; everything is filled again.
    pub fn limit(&mut self, capacity: &[u64]) {
        self.undo_from((0, 0));
        for (link, &capacity) in self.links.iter_mut().zip(capacity) {
            (link.capacity, link.left) = (capacity, capacity);
        }
    }

    /// The link that limits a user at the last [`MaxMin::refill`].
    pub fn bottleneck(&self, user: u32) -> Option<u32> {
        self.users.get(user as usize).map(|u| u.link).filter(|&l| l != NOWHERE)
    }

    /// Rate of each flow that this link limits at the last [`MaxMin::refill`]; zero if it limits
    /// none.
    pub fn level(&self, link: u32) -> u64 {
        self.links[link as usize].level.unwrap_or(0)
    }

    /// Sets `user` to `flows` flows over `path`; zero removes it. O(links of both paths) besides
    /// what the change undoes.
    pub fn set(&mut self, user: u32, path: Path, flows: u32) {
        let k = user as usize;
        if self.users.len() <= k {
            self.users.resize(k + 1, LinkUser::default());
            self.paths.resize(k + 1, Path::default());
        }
        let (before, same) = (self.users[k].flows, self.paths[k] == path);
        if before == flows && (flows == 0 || same) {
            return;
        }
        let stays = before > 0 && flows > 0 && same;
        if before > 0 && !(stays && flows > before) {
            self.release(user);
        }
        if before > 0 && !stays {
            self.count(user, before, 0);
            self.leave(user);
        }
        if flows > 0 {
            if !stays {
                self.enter(user, path);
            }
            self.count(user, if stays { before } else { 0 }, flows);
        }
    }

    /// Undoes the filling from the link on that limits a user, so that the user grows.
    fn release(&mut self, user: u32) {
        let u = &self.users[user as usize];
        let link = if u.held_by != NOWHERE { u.held_by } else { self.trunks.at(u.trunk).held_by };
        if link != NOWHERE {
            self.undo_from((self.level(link), link));
        }
    }

    /// Changes the number of a user's flows from `before` to `flows`. If it falls, the user must be
    /// growing.
    fn count(&mut self, user: u32, before: u32, flows: u32) {
        let path = self.paths[user as usize];
        for &l in path.links() {
            let link = &mut self.links[l as usize];
            link.total = link.total + u64::from(flows) - u64::from(before);
        }
        if flows > before {
            // Shares only grow while filling goes on, so the share of all its flows gives a link's
            // earliest rank.
            let first = |&l: &u32| {
                let link = &self.links[l as usize];
                (
                    link.capacity
                        .checked_div(link.total)
                        .unwrap_or(u64::MAX)
                        .min(link.level.unwrap_or(u64::MAX)),
                    l,
                )
            };
            if let Some(turn) = path.links().iter().map(first).min() {
                self.undo_from(turn);
            }
        }
        self.users[user as usize].flows = flows;
        self.grow(user, i64::from(flows) - i64::from(before), 0);
    }

    /// Lets `flows` flows of a user grow again on every link of its path, or stop growing if
    /// negative ([`FairLink::grow`]). Its trunk and ports count them, too.
    fn grow(&mut self, user: u32, flows: i64, rate: u64) {
        let u = &self.users[user as usize];
        let trunk = self.trunks.at_mut(u.trunk);
        trunk.growing = trunk.growing.wrapping_add_signed(flows);
        for &(port, _) in u.ports.iter().filter(|p| p.0 != NOWHERE) {
            let port = &mut trunk.ports[port as usize];
            port.growing = port.growing.wrapping_add_signed(flows);
        }
        self.paths[user as usize]
            .links()
            .iter()
            .for_each(|&l| self.links[l as usize].grow(flows, rate));
    }

    /// Stops all growing flows of a trunk at this rate; `back`: they had it, and grow again.
    fn grow_trunk(&mut self, trunk: u32, back: bool, rate: u64) {
        let trunk: &Trunk = self.trunks.at(trunk);
        let flows = |n: u64| if back { n.cast_signed() } else { -n.cast_signed() };
        trunk
            .links
            .links()
            .iter()
            .for_each(|&l| self.links[l as usize].grow(flows(trunk.growing), rate));
        for port in trunk.ports.iter().filter(|p| p.growing > 0) {
            self.links[port.link as usize].grow(flows(port.growing), rate);
        }
    }

    /// Removes a user without flows from its ports.
    fn leave(&mut self, user: u32) {
        let u = std::mem::take(&mut self.users[user as usize]);
        for (port, place) in u.ports.into_iter().filter(|p| p.0 != NOWHERE) {
            let list = &mut self.trunks.at_mut(u.trunk).ports[port as usize].users;
            list.swap_remove(place as usize);
            if let Some(&other) = list.get(place as usize) {
                let own = self.users[other as usize].ports.iter_mut().find(|p| p.0 == port);
                own.expect("a user of a port knows it").1 = place;
            }
        }
    }

    /// Adds a user without flows to its ports.
    fn enter(&mut self, user: u32, path: Path) {
        self.paths[user as usize] = path;
        let (ends, between) = path.links().split_at(path.links().len().min(2));
        let trunk = self.trunks.over(between, |l, trunk| self.links[l as usize].trunks.push(trunk));
        let u = &mut self.users[user as usize];
        u.trunk = trunk;
        for (own, &link) in u.ports.iter_mut().zip(ends) {
            let port = self
                .trunks
                .port(trunk, link, |port| self.links[link as usize].ports.push((trunk, port)));
            let list = &mut self.trunks.at_mut(trunk).ports[port as usize].users;
            *own = (port, list.len() as u32);
            list.push(user);
        }
        self.changed.users.push(user);
    }

    /// Undoes the filling of all links whose rank is not before this one, the last one first.
    fn undo_from(&mut self, turn: LinkRank) {
        while let Some(&last) = self.filled.last() {
            let level = self.level(last.link);
            if (level, last.link) < turn {
                break;
            }
            self.set_level(last.link, None);
            self.filled.pop();
            for user in self.held_users.split_off(last.users) {
                self.users[user as usize].held_by = NOWHERE;
                let flows = self.users[user as usize].flows;
                self.grow(user, flows.into(), level);
                self.changed.users.push(user);
            }
            for trunk in self.held_trunks.split_off(last.trunks) {
                self.trunks.at_mut(trunk).held_by = NOWHERE;
                self.grow_trunk(trunk, true, level);
                self.changed.trunks.push(trunk);
            }
        }
    }

    fn set_level(&mut self, link: u32, level: Option<u64>) {
        let l = &mut self.links[link as usize];
        let before = std::mem::replace(&mut l.level, level);
        if !std::mem::replace(&mut l.is_changed, true) {
            self.changed.links.push((link, before));
        }
    }

    /// Brings the rates up to date; returns what has changed.
    /// O(links + links filled again x (log links + the trunks and growing users of each)).
    pub fn refill(&mut self) -> FillingChanges {
        let share = |(l, link): (usize, &FairLink)| Some(Reverse((link.share()?, l as u32)));
        let mut heap: BinaryHeap<Reverse<LinkRank>> =
            self.links.iter().enumerate().filter_map(share).collect();
        // Shares only grow while other links are filled, so an entry that is still right when it is
        // popped is the smallest.
        while let Some(Reverse((share, l))) = heap.pop() {
            match self.links[l as usize].share() {
                Some(now) if now == share => self.fill_link(l, share),
                now => heap.extend(now.map(|now| Reverse((now, l)))),
            }
        }
        self.changes()
    }

    /// Fills a link: its users keep this rate.
    fn fill_link(&mut self, link: u32, share: u64) {
        let (users, trunks) = (self.held_users.len(), self.held_trunks.len());
        self.filled.push(Filled { link, users, trunks });
        self.set_level(link, Some(share));
        for &(trunk, port) in &self.links[link as usize].ports {
            let trunk = self.trunks.at(trunk);
            let port = &trunk.ports[port as usize];
            if trunk.held_by == NOWHERE && port.growing > 0 {
                self.held_users.extend(
                    port.users.iter().filter(|&&u| self.users[u as usize].held_by == NOWHERE),
                );
            }
        }
        for k in users..self.held_users.len() {
            let user = self.held_users[k];
            self.users[user as usize].held_by = link;
            let flows = self.users[user as usize].flows;
            self.grow(user, -i64::from(flows), share);
            self.changed.users.push(user);
        }
        let grows =
            |&t: &u32| self.trunks.at(t).held_by == NOWHERE && self.trunks.at(t).growing > 0;
        self.held_trunks.extend(self.links[link as usize].trunks.iter().copied().filter(grows));
        for k in trunks..self.held_trunks.len() {
            let trunk = self.held_trunks[k];
            self.trunks.at_mut(trunk).held_by = link;
            self.grow_trunk(trunk, false, share);
            self.changed.trunks.push(trunk);
        }
    }

    /// What has changed since the last call. Looks only where something may have.
    fn changes(&mut self) -> FillingChanges {
        let mut changes = FillingChanges::default();
        let Changed { links, users, trunks } = std::mem::take(&mut self.changed);
        for (l, before) in links {
            self.links[l as usize].is_changed = false;
            if self.links[l as usize].level != before {
                changes.levels.push(l);
            }
        }
        let mut look = |user: u32, trunks: &Trunks| {
            let u = &mut self.users[user as usize];
            let now = if u.held_by != NOWHERE { u.held_by } else { trunks.at(u.trunk).held_by };
            if u.flows > 0 && u.link != now {
                u.link = now;
                changes.moved.push(user);
            }
        };
        for t in trunks {
            let trunk = self.trunks.at_mut(t);
            if std::mem::replace(&mut trunk.told, trunk.held_by) != trunk.held_by {
                self.trunks.at(t).users().for_each(|u| look(u, &self.trunks));
            }
        }
        users.into_iter().for_each(|u| look(u, &self.trunks));
        changes.levels.sort_unstable();
        changes.moved.sort_unstable();
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The slow twin: look at every link, fill the one with the smallest share, start again.
    fn twin(capacity: &[u64], users: &[(Vec<u32>, u64)]) -> Vec<u64> {
        let mut rate = vec![None; users.len()];
        loop {
            let share = |l: u32| {
                let on = || users.iter().zip(&rate).filter(|(u, _)| u.0.contains(&l));
                let used: u64 = on().filter_map(|(u, r)| r.map(|r: u64| r * u.1)).sum();
                let growing: u64 = on().filter(|(_, r)| r.is_none()).map(|(u, _)| u.1).sum();
                (growing > 0).then(|| (capacity[l as usize] - used) / growing)
            };
            let Some((s, l)) =
                (0..capacity.len() as u32).filter_map(|l| share(l).map(|s| (s, l))).min()
            else {
                break;
            };
            for (k, u) in users.iter().enumerate() {
                if u.0.contains(&l) && u.1 > 0 && rate[k].is_none() {
                    rate[k] = Some(s);
                }
            }
        }
        rate.into_iter().map(|r| r.unwrap_or(0)).collect()
    }

    #[test]
    fn the_textbook_line_network() {
        // One long flow over three links and one short flow on each; the second link is half as
        // fast, the third twice.
        let mut m = MaxMin::new(vec![10, 5, 20]);
        m.set(0, Path::new(&[0, 1, 2]), 1);
        (0..3).for_each(|l| m.set(1 + l, Path::new(&[l]), 1));
        // The second link is full first, then the first, then the third.
        assert_eq!(m.refill(), FillingChanges { levels: vec![0, 1, 2], moved: vec![0, 1, 2, 3] });
        assert_eq!((0..4).map(|u| m.rate(u)).collect::<Vec<_>>(), [2, 8, 2, 18]);
        m.set(2, Path::new(&[1]), 0);
        // The long flow now shares the first link as an equal: no other link limits it.
        assert_eq!(m.refill(), FillingChanges { levels: vec![0, 1, 2], moved: vec![0] });
        assert_eq!((0..4).map(|u| m.rate(u)).collect::<Vec<_>>(), [5, 5, 0, 15]);
        assert_eq!(m.refill(), FillingChanges::default());
    }

    fn user() -> impl Strategy<Value = (Vec<u32>, u64)> {
        (prop::collection::btree_set(0u32..7, 1..=4), 0u64..5)
            .prop_map(|(l, n)| (l.into_iter().collect(), n))
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn incremental_filling_is_the_slow_twin(
            capacity in prop::collection::vec(0u64..1000, 7),
            steps in prop::collection::vec((0usize..9, user(), any::<bool>()), 1..40),
        ) {
            let mut m = MaxMin::new(capacity.clone());
            let (mut users, mut last) = (vec![(vec![0u32], 0u64); 9], vec![0; 9]);
            for (k, u, fill) in steps {
                m.set(k as u32, Path::new(&u.0), u.1 as u32);
                users[k] = u;
                if fill {
                    let before: Vec<_> = (0..9).map(|k| m.bottleneck(k)).collect();
                    let changes = m.refill();
                    let rates: Vec<_> = (0..9).map(|k| m.rate(k)).collect();
                    prop_assert_eq!(&rates, &twin(&capacity, &users));
                    for k in (0u32..9).filter(|&k| users[k as usize].1 > 0) {
                        let (link, now) = (before[k as usize], m.bottleneck(k));
                        prop_assert_eq!(changes.moved.contains(&k), link != now);
                        prop_assert!(link != now || last[k as usize] == m.rate(k) || changes.levels.contains(&now.unwrap()));
                    }
                    last = rates.clone();
                    laws(&capacity, &users, &rates)?;
                }
            }
        }
    }

    fn laws(
        capacity: &[u64],
        users: &[(Vec<u32>, u64)],
        rates: &[u64],
    ) -> Result<(), TestCaseError> {
        let on = |l: u32| users.iter().zip(rates).filter(move |(u, _)| u.1 > 0 && u.0.contains(&l));
        let used = |l: u32| on(l).map(|(u, r)| u.1 * r).sum::<u64>();
        for (l, &c) in (0u32..).zip(capacity) {
            prop_assert!(used(l) <= c);
        }
        for (u, r) in users.iter().zip(rates).filter(|u| u.0.1 > 0) {
            // A bottleneck: full but for the rounding, and no flow on it is faster but for the
            // rounding.
            let flows = |l| on(l).map(|(u, _)| u.1).sum::<u64>();
            let is = |&l: &u32| {
                capacity[l as usize] - used(l) < flows(l) && on(l).all(|(_, other)| *other <= *r)
            };
            prop_assert!(u.0.iter().any(is));
        }
        Ok(())
    }
}
