//! Fair rates with queues, computed again only where something has changed.
//!
//! Every link has a *level*, its fair share: a flow has the lowest level on its route. The level of
//! a link is right if its flows fill the link, or if it is so high that it limits no flow. A change
//! makes the levels of some links wrong. Each of these computes its level from what its flows could
//! have elsewhere. That changes the rates of the flows that it limits, which may make other levels
//! on their routes wrong, and so on. A level that leaves a little of a link stays ([`TOLERANCE`]);
//! one with which a link carries too much never does. So the search ends near the change.
//!
//! Source: the constrained fair shares of Charny, Clark and Jain, Congestion control with explicit
//! rate indication, ICC 1995, to which queues were added.

use std::collections::VecDeque;

use super::super::maxmin::FillingChanges;
use super::{Queues, TOLERANCE};
use crate::coflows::rates::{MAX_HOPS, Path};

/// No link.
const NOWHERE: u32 = u32::MAX;

/// From its fourth computation in one call on, a link uses half of its tolerance. Otherwise links
/// on a cycle pass a small part of their capacities on for long, from one that carries too much to
/// one that carries too little.
const SPARING: u16 = 4;

/// From its sixteenth computation on, a level moves half of the way.
const CAREFUL: u16 = 16;

/// After every further number of computations like this one, the tolerance doubles.
const PATIENCE: u16 = 64;

#[derive(Clone, Copy, Debug)]
struct QueueUser {
    /// Number of flows; zero: no such user.
    flows: u32,
    /// The link that limits it, now and at the last [`QueueSolver::refill`].
    link: u32,
    told: u32,
    /// Whether it stands in [`QueueSolver::moved`].
    is_moved: bool,
    /// Rate of each flow.
    rate: u64,
}

impl Default for QueueUser {
    fn default() -> Self {
        Self { flows: 0, link: NOWHERE, told: NOWHERE, is_moved: false, rate: 0 }
    }
}

/// A link, a queue or a port.
#[derive(Debug, Default)]
struct QueueLink {
    /// Capacity in bits a second; of a queue, the most that its port gives to each of its queues.
    capacity: u64,
    /// The most that a flow may have here; of a port, a queue.
    level: u64,
    /// The level at the last [`QueueSolver::refill`] after which it limited flows.
    told: u64,
    /// Sum of the rates of its flows.
    used: u64,
    /// Flows that it limits; of a port, flows that its queues limit.
    held: u64,
    /// Its users, and the position of this link on their paths; of a port, its queues with flows.
    users: Vec<(u32, u32)>,
    /// Port of a queue, and the queue's index among those of the port that have flows.
    port: u32,
    place: u32,
    /// How often its level was computed in this [`QueueSolver::refill`].
    tries: u16,
    /// Whether it stands in [`QueueSolver::work`].
    waits: bool,
    /// Whether it stands in [`QueueSolver::changed`], and whether it has stopped limiting a user.
    is_changed: bool,
    is_left: bool,
}

/// The solver: links, their users, and the present fair rates.
#[derive(Debug)]
pub struct QueueSolver {
    queues: Queues,
    /// A full link may leave one part of two to this power.
    exact: u32,
    links: Vec<QueueLink>,
    users: Vec<QueueUser>,
    /// By user: its links, and its index among the users of each.
    paths: Vec<Path>,
    places: Vec<[u32; MAX_HOPS]>,
    /// Links whose levels may be wrong; a port stands for its queues.
    work: VecDeque<u32>,
    /// Links whose levels were computed in this [`QueueSolver::refill`].
    tried: Vec<u32>,
    /// Links whose level or users have changed, and users that have moved.
    changed: Vec<u32>,
    moved: Vec<u32>,
    /// What users or queues want, while a level is computed.
    wants: Vec<(u64, u64)>,
}

impl QueueSolver {
    /// Links with these capacities in bits a second, some of which are `queues`, without users. The
    /// number of flows of a link times its capacity must stay below 2^64.
    pub fn new(capacity: &[u64], queues: Queues) -> Self {
        Self::within(capacity, queues, TOLERANCE)
    }

    /// The same; a full link may leave one part of two to the power of `exact`.
    pub(super) fn within(capacity: &[u64], queues: Queues, exact: u32) -> Self {
        let link = |(l, &capacity): (u32, &u64)| QueueLink {
            capacity,
            level: capacity,
            port: queues.port_of(l).unwrap_or(NOWHERE),
            ..QueueLink::default()
        };
        Self {
            queues,
            exact,
            links: (0..).zip(capacity).map(link).collect(),
            users: Vec::new(),
            paths: Vec::new(),
            places: Vec::new(),
            work: VecDeque::new(),
            tried: Vec::new(),
            changed: Vec::new(),
            moved: Vec::new(),
            wants: Vec::new(),
        }
    }

    /// Rate of each flow of a user at the last [`QueueSolver::refill`].
    #[cfg(test)]
    pub fn rate(&self, user: u32) -> u64 {
        self.users[user as usize].rate
    }

    /// The link that limits a user at the last [`QueueSolver::refill`].
    pub fn bottleneck(&self, user: u32) -> Option<u32> {
        self.users.get(user as usize).map(|u| u.link).filter(|&l| l != NOWHERE)
    }

    /// Rate of each flow that this link limits at the last [`QueueSolver::refill`].
    pub fn level(&self, link: u32) -> u64 {
        self.links[link as usize].level
    }

    /// Sets the capacities; everything is computed again. O(links + users).
    pub fn limit(&mut self, capacity: &[u64]) {
        for l in 0..capacity.len() as u32 {
            let own = capacity[self.port_of(l).unwrap_or(l) as usize];
            let link = &mut self.links[l as usize];
            (link.capacity, link.level, link.used, link.held) = (own, own, 0, 0);
            self.note(l);
        }
        for user in 0..self.users.len() as u32 {
            if self.users[user as usize].flows > 0 {
                let (rate, link) = self.least(user, NOWHERE);
                let u = &mut self.users[user as usize];
                (u.rate, u.link) = (rate, link);
                self.note_user(user);
                self.count(user, i64::from(self.users[user as usize].flows));
            }
        }
    }

    /// Sets `user` to `flows` flows over `path`; zero removes it. O(links of both paths).
    pub fn set(&mut self, user: u32, path: Path, flows: u32) {
        let k = user as usize;
        if self.users.len() <= k {
            self.users.resize(k + 1, QueueUser::default());
            self.paths.resize(k + 1, Path::default());
            self.places.resize(k + 1, [0; MAX_HOPS]);
        }
        let (before, same) = (self.users[k].flows, self.paths[k] == path);
        if before > 0 && flows > 0 && same {
            self.users[k].flows = flows;
            self.count(user, i64::from(flows) - i64::from(before));
            return;
        }
        if before > 0 {
            self.leave(user);
        }
        if flows > 0 {
            self.enter(user, path, flows);
        }
    }

    /// Removes a user from its links.
    fn leave(&mut self, user: u32) {
        let u = self.users[user as usize];
        self.count(user, -i64::from(u.flows));
        self.note(u.link);
        self.links[u.link as usize].is_left = true;
        self.users[user as usize] = QueueUser { is_moved: u.is_moved, ..QueueUser::default() };
        let path = self.paths[user as usize];
        for (hop, &l) in path.links().iter().enumerate() {
            let place = self.places[user as usize][hop];
            let link = &mut self.links[l as usize];
            link.users.swap_remove(place as usize);
            let last = link.users.is_empty();
            if let Some(&(other, hop)) = link.users.get(place as usize) {
                self.places[other as usize][hop as usize] = place;
            }
            if let Some(port) = self.port_of(l).filter(|_| last) {
                let place = self.links[l as usize].place;
                let list = &mut self.links[port as usize].users;
                list.swap_remove(place as usize);
                if let Some(&(other, _)) = list.get(place as usize) {
                    self.links[other as usize].place = place;
                }
            }
        }
    }

    /// Adds a user to its links. It begins with the lowest of their levels.
    fn enter(&mut self, user: u32, path: Path, flows: u32) {
        self.paths[user as usize] = path;
        for (hop, &l) in path.links().iter().enumerate() {
            let first = self.links[l as usize].users.is_empty();
            if first {
                // Nothing is left of what was.
                let port = self.port_of(l);
                let open = self.open(l);
                if let Some(port) = port {
                    let place = self.links[port as usize].users.len() as u32;
                    self.links[port as usize].users.push((l, 0));
                    let part = self.links[port as usize].level;
                    let queue = &mut self.links[l as usize];
                    (queue.place, queue.capacity) = (place, part);
                }
                self.set_level(l, open);
            }
            let link = &mut self.links[l as usize];
            self.places[user as usize][hop] = link.users.len() as u32;
            link.users.push((user, hop as u32));
        }
        let (rate, link) = self.least(user, NOWHERE);
        let is_moved = self.users[user as usize].is_moved;
        self.users[user as usize] = QueueUser { flows, link, told: NOWHERE, is_moved, rate };
        self.note_user(user);
        self.note(link);
        self.count(user, flows.into());
    }

    /// The level at which a link limits no flow.
    fn open(&self, link: u32) -> u64 {
        self.links[self.port_of(link).unwrap_or(link) as usize].capacity
    }

    /// The lowest level of a user's links except `but`, and the first link that has it.
    fn least(&self, user: u32, but: u32) -> (u64, u32) {
        let links = self.paths[user as usize].links().iter().filter(|&&l| l != but);
        links.fold((u64::MAX, NOWHERE), |least, &l| {
            let level = self.links[l as usize].level;
            if level < least.0 { (level, l) } else { least }
        })
    }

    /// Adds `flows` flows of a user, a negative number removes some, at its rate and bottleneck.
    fn count(&mut self, user: u32, flows: i64) {
        let u = self.users[user as usize];
        let path = self.paths[user as usize];
        for &l in path.links() {
            self.load(
                l,
                flows.wrapping_mul(u.rate.cast_signed()),
                if l == u.link { flows } else { 0 },
            );
        }
    }

    /// Adds `used` to what a link carries and `held` to the flows that it limits, also at its port
    /// if it is a queue.
    fn load(&mut self, l: u32, used: i64, held: i64) {
        let add = |link: &mut QueueLink| {
            link.used = link.used.wrapping_add_signed(used);
            link.held = link.held.wrapping_add_signed(held);
        };
        add(&mut self.links[l as usize]);
        let Some(port) = self.port_of(l) else {
            if self.is_wrong(l) {
                self.push(l);
            }
            return;
        };
        add(&mut self.links[port as usize]);
        if self.is_queue_wrong(l, port) || self.is_port_wrong(port) {
            self.push(port);
        }
    }

    fn push(&mut self, l: u32) {
        if !std::mem::replace(&mut self.links[l as usize].waits, true) {
            self.work.push_back(l);
        }
    }

    /// Whether a link carries too much; or limits flows and leaves more than rounding and its
    /// tolerance allow.
    fn is_off(&self, l: u32, rounding: u64, exact: u32, tries: u16) -> bool {
        let link = &self.links[l as usize];
        if link.used > link.capacity || link.held == 0 {
            return link.used > link.capacity;
        }
        let slack = link.capacity >> Self::shift(exact, tries) | 1;
        link.used + link.held + rounding + slack < link.capacity
    }

    fn is_wrong(&self, l: u32) -> bool {
        self.is_off(l, 0, self.exact, self.links[l as usize].tries)
    }

    fn is_port_wrong(&self, port: u32) -> bool {
        let link = &self.links[port as usize];
        self.is_off(port, 2 * link.users.len() as u64, self.exact, link.tries)
    }

    /// Half of the tolerance is for the queues, because what they leave is missing at their port.
    fn is_queue_wrong(&self, l: u32, port: u32) -> bool {
        self.is_off(l, 0, self.exact + 1, self.links[port as usize].tries)
    }

    fn port_of(&self, l: u32) -> Option<u32> {
        Some(self.links[l as usize].port).filter(|&p| p != NOWHERE)
    }

    /// Changes a user's rate or bottleneck.
    fn change(&mut self, user: u32, rate: u64, link: u32) {
        let u = &mut self.users[user as usize];
        let (flows, before, from) = (i64::from(u.flows), u.rate, u.link);
        if (before, from) == (rate, link) {
            return;
        }
        (u.rate, u.link) = (rate, link);
        let more = flows.wrapping_mul(rate.wrapping_sub(before).cast_signed());
        if from != link {
            self.note_user(user);
            self.note(from);
            self.note(link);
            self.links[from as usize].is_left = true;
        }
        let path = self.paths[user as usize];
        for &l in path.links() {
            let held = if from == link {
                0
            } else {
                flows * (i64::from(l == link) - i64::from(l == from))
            };
            self.load(l, more, held);
        }
    }

    fn note(&mut self, l: u32) {
        if !std::mem::replace(&mut self.links[l as usize].is_changed, true) {
            self.changed.push(l);
        }
    }

    fn note_user(&mut self, user: u32) {
        if !std::mem::replace(&mut self.users[user as usize].is_moved, true) {
            self.moved.push(user);
        }
    }

    fn set_level(&mut self, l: u32, level: u64) {
        if std::mem::replace(&mut self.links[l as usize].level, level) != level {
            self.note(l);
        }
    }

    /// Brings the rates up to date; returns what has changed. O(for each level that is computed,
    /// the link's users x the links of their paths).
    pub fn refill(&mut self) -> FillingChanges {
        while let Some(l) = self.work.pop_front() {
            self.links[l as usize].waits = false;
            let port = self.queues.port(l);
            let wrong = match port {
                None => self.is_wrong(l),
                Some(_) => {
                    let list = &self.links[l as usize].users;
                    self.is_port_wrong(l) || list.iter().any(|&(q, _)| self.is_queue_wrong(q, l))
                }
            };
            if !wrong {
                continue;
            }
            let link = &mut self.links[l as usize];
            if link.tries == 0 {
                self.tried.push(l);
            }
            link.tries = link.tries.saturating_add(1);
            if port.is_some() {
                self.fill_port(l);
            } else {
                self.fill_link(l, self.target(l));
            }
        }
        self.tried.drain(..).for_each(|l| self.links[l as usize].tries = 0);
        self.changes()
    }

    /// What a link may leave whose level was computed this often, as a power of two.
    fn shift(exact: u32, tries: u16) -> u32 {
        exact.saturating_sub((tries / PATIENCE).into())
    }

    /// The sum that a link's flows are to have.
    fn target(&self, l: u32) -> u64 {
        let link = &self.links[l as usize];
        if link.tries < SPARING {
            link.capacity
        } else {
            link.capacity - (link.capacity >> Self::shift(self.exact + 1, link.tries))
        }
    }

    /// A link's next level, given the one that it should have. Links that are computed again and
    /// again might else overshoot in turn.
    fn step(&self, l: u32, level: u64) -> u64 {
        let link = &self.links[l as usize];
        if link.tries >= CAREFUL && level > link.level { link.level.midpoint(level) } else { level }
    }

    /// What a flow of a user could have without the link `but`.
    fn want(&self, user: u32, but: u32) -> u64 {
        let u = &self.users[user as usize];
        if u.link == but { self.least(user, but).0 } else { u.rate }
    }

    /// Computes the level at which the flows of a link have `capacity`.
    fn fill_link(&mut self, l: u32, capacity: u64) {
        let mut wants = std::mem::take(&mut self.wants);
        wants.clear();
        wants.extend(
            self.links[l as usize]
                .users
                .iter()
                .map(|&(u, _)| (self.want(u, l), self.users[u as usize].flows.into())),
        );
        let level = water_level(capacity, &mut wants)
            .map_or_else(|| self.open(l), |level| self.step(l, level));
        self.wants = wants;
        self.give(l, level);
    }

    /// Computes what a port gives to each of its queues.
    fn fill_port(&mut self, l: u32) {
        let mut wants = std::mem::take(&mut self.wants);
        wants.clear();
        wants.extend(self.links[l as usize].users.iter().map(|&(q, _)| (self.want_of_queue(q), 1)));
        let capacity = self.links[l as usize].capacity;
        let part =
            water_level(self.target(l), &mut wants).map_or(capacity, |part| self.step(l, part));
        self.wants = wants;
        self.links[l as usize].level = part;
        for k in 0..self.links[l as usize].users.len() {
            let (q, _) = self.links[l as usize].users[k];
            self.links[q as usize].capacity = part;
            let holds = self.links[q as usize].held > 0;
            if self.is_queue_wrong(q, l) {
                self.fill_link(q, part);
            } else if holds && self.want_of_queue(q) <= part {
                self.give(q, capacity);
            }
        }
    }

    /// What the flows of a queue could have without it.
    fn want_of_queue(&self, q: u32) -> u64 {
        let queue = &self.links[q as usize];
        if queue.held == 0 {
            return queue.used;
        }
        let each = |&(u, _): &(u32, u32)| {
            self.want(u, q).saturating_mul(self.users[u as usize].flows.into())
        };
        queue.users.iter().map(each).fold(0, u64::saturating_add)
    }

    /// Sets the level of a link, and the rates and bottlenecks of the users that this concerns.
    fn give(&mut self, l: u32, level: u64) {
        self.set_level(l, level);
        for k in 0..self.links[l as usize].users.len() {
            let (user, _) = self.links[l as usize].users[k];
            let u = &self.users[user as usize];
            if u.link == l {
                let (rest, other) = self.least(user, l);
                let (rate, link) = if rest <= level { (rest, other) } else { (level, l) };
                self.change(user, rate, link);
            } else if u.rate > level {
                self.change(user, level, l);
            }
        }
    }

    /// What has changed since the last call.
    fn changes(&mut self) -> FillingChanges {
        let mut changes = FillingChanges::default();
        for l in self.changed.drain(..) {
            let link = &mut self.links[l as usize];
            link.is_changed = false;
            let is_left = std::mem::take(&mut link.is_left);
            if is_left || link.held > 0 && link.level != link.told {
                link.told = link.level;
                changes.levels.push(l);
            }
        }
        for user in self.moved.drain(..) {
            let u = &mut self.users[user as usize];
            u.is_moved = false;
            if u.flows > 0 && u.link != u.told {
                u.told = u.link;
                changes.moved.push(user);
            }
        }
        changes.levels.sort_unstable();
        changes.moved.sort_unstable();
        changes
    }
}

/// The most that each taker of a capacity gets if all get the same, except those that want less;
/// `None` if all get what they want. `wants` has pairs of what takers want and how many want it,
/// and is used up. O(takers x distinct wants), in practice few rounds.
pub fn water_level(capacity: u64, wants: &mut Vec<(u64, u64)>) -> Option<u64> {
    let mut left = capacity;
    let mut takers: u64 = wants.iter().map(|w| w.1).sum();
    loop {
        let share = left.checked_div(takers)?;
        let before = wants.len();
        wants.retain(|&(want, n)| {
            let gets = want <= share;
            if gets {
                left -= want * n;
                takers -= n;
            }
            !gets
        });
        if wants.len() == before {
            return Some(share);
        }
    }
}
