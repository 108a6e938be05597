//! Fair shares under queues, found anew only where something changed.
//!
//! Every link has a *level*, and a flow has the least level on its way. A link's level is right if its flows fill the link, or if it is
//! so high that it holds none back. A change makes the levels of some links wrong. Each of these finds its own level from what its flows
//! could have elsewhere. That gives other rates to the flows that it holds back, which may make levels on their ways wrong, and so on. A
//! level that leaves a little of a link stays ([`TOLERANCE`]), one at which a link carries too much never does, so the search ends near
//! where something changed.
//!
//! Source: the constrained fair shares of Charny, Clark and Jain, Congestion control with explicit rate indication, ICC 1995, to which
//! queues were added.

use std::collections::VecDeque;

use super::super::maxmin::Changes;
use super::{Queues, TOLERANCE};
use crate::coflows::rates::{MAX_HOPS, Path};

/// No link.
const NOWHERE: u32 = u32::MAX;

/// From the fourth time on that a link finds its level while changes spread, it leaves half of what it may leave. Else links on a circle
/// hand on a small part of their capacities for long, one that carries too much to one that carries too little.
const SPARING: u16 = 4;

/// From the sixteenth time on it goes half of the way up only.
const CAREFUL: u16 = 16;

/// Each time that it has found its level this often again, it may leave twice as much.
const PATIENCE: u16 = 64;

#[derive(Clone, Copy, Debug)]
struct User {
    /// How many flows; none: not there.
    flows: u32,
    /// The link that holds it back, and the same as of the last [`Shares::refill`].
    link: u32,
    told: u32,
    /// Whether it is in [`Shares::moved`].
    is_moved: bool,
    /// Of each flow.
    rate: u64,
}

impl Default for User {
    fn default() -> Self {
        Self { flows: 0, link: NOWHERE, told: NOWHERE, is_moved: false, rate: 0 }
    }
}

/// A link, a queue or a port.
#[derive(Debug, Default)]
struct Link {
    /// What it may carry, in bits per second; of a queue, what its port gives to each of its queues at most.
    capacity: u64,
    /// The most that a flow may have here; of a port, a queue.
    level: u64,
    /// The level as of the last [`Shares::refill`] after which it held flows back.
    told: u64,
    /// What its flows have.
    used: u64,
    /// Flows that it holds back; of a port, those that its queues do.
    held: u64,
    /// Its users, and which link of their paths it is; of a port, its queues that have flows.
    users: Vec<(u32, u32)>,
    /// A queue's port, and its place among the queues of it that have flows.
    port: u32,
    place: u32,
    /// How often it found its level in this [`Shares::refill`].
    tries: u16,
    /// Whether it is in [`Shares::work`].
    waits: bool,
    /// Whether it is in [`Shares::changed`], and whether a user that it held back is not held back by it any more.
    is_changed: bool,
    is_left: bool,
}

/// Links with their users.
#[derive(Debug)]
pub struct QueueSolver {
    queues: Queues,
    /// What a full link may leave: one part of two to this power.
    exact: u32,
    links: Vec<Link>,
    users: Vec<User>,
    /// By user: its links, and its place among the users of each.
    paths: Vec<Path>,
    places: Vec<[u32; MAX_HOPS]>,
    /// Links whose levels may be wrong; ports stand for their queues.
    work: VecDeque<u32>,
    /// Links that have found levels in this [`Shares::refill`].
    tried: Vec<u32>,
    /// Links with another level, or whose users were moved, and users that were.
    changed: Vec<u32>,
    moved: Vec<u32>,
    /// Wants of users or queues, while a level is found.
    wants: Vec<(u64, u64)>,
}

impl QueueSolver {
    /// Links with these capacities in bits per second, some of which are `queues`, and no users. The flows of a link times its capacity
    /// must stay below 2^64.
    pub fn new(capacity: &[u64], queues: Queues) -> Self {
        Self::within(capacity, queues, TOLERANCE)
    }

    /// The same, where a full link may leave one part of two to the power of `exact`.
    pub(super) fn within(capacity: &[u64], queues: Queues, exact: u32) -> Self {
        let link =
            |(l, &capacity): (u32, &u64)| Link { capacity, level: capacity, port: queues.port_of(l).unwrap_or(NOWHERE), ..Link::default() };
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

    /// The rate of each flow of a user, as of the last [`Shares::refill`].
    #[cfg(test)]
    pub fn rate(&self, user: u32) -> u64 {
        self.users[user as usize].rate
    }

    /// The link that holds a user back, as of the last [`Shares::refill`].
    pub fn bottleneck(&self, user: u32) -> Option<u32> {
        self.users.get(user as usize).map(|u| u.link).filter(|&l| l != NOWHERE)
    }

    /// The rate of each flow that this link holds back, as of the last [`Shares::refill`].
    pub fn level(&self, link: u32) -> u64 {
        self.links[link as usize].level
    }

    /// Links have these capacities from now on: everything is found anew. O(links + users).
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

    /// From now on `user` is `flows` flows over `path`; none takes it away. O(links of both paths).
    pub fn set(&mut self, user: u32, path: Path, flows: u32) {
        let k = user as usize;
        if self.users.len() <= k {
            self.users.resize(k + 1, User::default());
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

    /// Takes a user off its links.
    fn leave(&mut self, user: u32) {
        let u = self.users[user as usize];
        self.count(user, -i64::from(u.flows));
        self.note(u.link);
        self.links[u.link as usize].is_left = true;
        self.users[user as usize] = User { is_moved: u.is_moved, ..User::default() };
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

    /// Puts a new user on its links. It begins with the least level of these.
    fn enter(&mut self, user: u32, path: Path, flows: u32) {
        self.paths[user as usize] = path;
        for (hop, &l) in path.links().iter().enumerate() {
            let first = self.links[l as usize].users.is_empty();
            if first {
                // Nothing of what was is left.
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
        self.users[user as usize] = User { flows, link, told: NOWHERE, is_moved, rate };
        self.note_user(user);
        self.note(link);
        self.count(user, flows.into());
    }

    /// The level at which a link holds no flow back.
    fn open(&self, link: u32) -> u64 {
        self.links[self.port_of(link).unwrap_or(link) as usize].capacity
    }

    /// The least level of a user's links but one, and the first link that has it.
    fn least(&self, user: u32, but: u32) -> (u64, u32) {
        let links = self.paths[user as usize].links().iter().filter(|&&l| l != but);
        links.fold((u64::MAX, NOWHERE), |least, &l| {
            let level = self.links[l as usize].level;
            if level < least.0 { (level, l) } else { least }
        })
    }

    /// A user has `flows` flows more, or fewer if that is below zero, at its rate and bottleneck.
    fn count(&mut self, user: u32, flows: i64) {
        let u = self.users[user as usize];
        let path = self.paths[user as usize];
        for &l in path.links() {
            self.load(l, flows.wrapping_mul(u.rate.cast_signed()), if l == u.link { flows } else { 0 });
        }
    }

    /// A link, and its port if it is a queue, carry `used` more and hold back `held` flows more.
    fn load(&mut self, l: u32, used: i64, held: i64) {
        let add = |link: &mut Link| {
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

    /// Whether a link carries too much, or holds flows back and leaves more than rounding and a part of two to the power of `exact`.
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

    /// Half the tolerance is the queues', for what they leave is missing at their port.
    fn is_queue_wrong(&self, l: u32, port: u32) -> bool {
        self.is_off(l, 0, self.exact + 1, self.links[port as usize].tries)
    }

    fn port_of(&self, l: u32) -> Option<u32> {
        Some(self.links[l as usize].port).filter(|&p| p != NOWHERE)
    }

    /// A user has another rate or bottleneck.
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
            let held = if from == link { 0 } else { flows * (i64::from(l == link) - i64::from(l == from)) };
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

    /// Brings the rates up to date; says what changed. O(for each link that finds a level, its users x the links of their paths).
    pub fn refill(&mut self) -> Changes {
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

    /// What a link may leave that has found its level this often: one part of two to this power.
    fn shift(exact: u32, tries: u16) -> u32 {
        exact.saturating_sub((tries / PATIENCE).into())
    }

    /// What a link's flows are to have together.
    fn target(&self, l: u32) -> u64 {
        let link = &self.links[l as usize];
        if link.tries < SPARING { link.capacity } else { link.capacity - (link.capacity >> Self::shift(self.exact + 1, link.tries)) }
    }

    /// A link's next level, given the one that it should have. Links that find theirs again and again might else outdo each other in turn.
    fn step(&self, l: u32, level: u64) -> u64 {
        let link = &self.links[l as usize];
        if link.tries >= CAREFUL && level > link.level { link.level.midpoint(level) } else { level }
    }

    /// What a flow of a user could have if this link were not.
    fn want(&self, user: u32, but: u32) -> u64 {
        let u = &self.users[user as usize];
        if u.link == but { self.least(user, but).0 } else { u.rate }
    }

    /// A link finds its level, at which its flows have `capacity`.
    fn fill_link(&mut self, l: u32, capacity: u64) {
        let mut wants = std::mem::take(&mut self.wants);
        wants.clear();
        wants.extend(self.links[l as usize].users.iter().map(|&(u, _)| (self.want(u, l), self.users[u as usize].flows.into())));
        let level = water_level(capacity, &mut wants).map_or_else(|| self.open(l), |level| self.step(l, level));
        self.wants = wants;
        self.give(l, level);
    }

    /// A port finds what it gives to its queues.
    fn fill_port(&mut self, l: u32) {
        let mut wants = std::mem::take(&mut self.wants);
        wants.clear();
        wants.extend(self.links[l as usize].users.iter().map(|&(q, _)| (self.want_of_queue(q), 1)));
        let capacity = self.links[l as usize].capacity;
        let part = water_level(self.target(l), &mut wants).map_or(capacity, |part| self.step(l, part));
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

    /// What the flows of a queue could have if it were not.
    fn want_of_queue(&self, q: u32) -> u64 {
        let queue = &self.links[q as usize];
        if queue.held == 0 {
            return queue.used;
        }
        let each = |&(u, _): &(u32, u32)| self.want(u, q).saturating_mul(self.users[u as usize].flows.into());
        queue.users.iter().map(each).fold(0, u64::saturating_add)
    }

    /// A link has another level, and those of its users that it holds back have other rates, or are held back elsewhere.
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

    /// What is another way than at the last call.
    fn changes(&mut self) -> Changes {
        let mut changes = Changes::default();
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

/// The most that each of a capacity's takers gets if all have the same but for those that want less; none if all get what they want.
/// `wants` has what they want, and how many want it, and is used up. O(takers x distinct wants at most, in practice few rounds).
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
