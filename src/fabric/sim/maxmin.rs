//! Max-min fair shares by progressive filling, in whole bits per second.
//!
//! A user is a number of equal flows over the same links. All flows' rates grow together until a link is full; the flows
//! of that link keep the rate, the others go on growing. The link that holds a user back is its *bottleneck*, and the rate to
//! which that link is filled is its *level*. Rates are whole bits per second, rounded down, so at most one bit per second and
//! flow of a link stays unused and no link is ever above its capacity.
//!
//! Source: Bertsekas and Gallager, Data Networks, 2nd edition, section 6.5.2.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::coflows::rates::{MAX_HOPS, Path};

/// No link.
const NOWHERE: u32 = u32::MAX;

/// What a filling looks at for every user on every link.
#[derive(Clone, Copy, Debug)]
struct User {
    /// How many flows; none: not there.
    flows: u32,
    /// Its bottleneck.
    link: u32,
}

impl Default for User {
    fn default() -> Self {
        Self { flows: 0, link: NOWHERE }
    }
}

/// When a link is filled: by level, then by number. Links are filled in this order.
type Turn = (u64, u32);

/// What a filling changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Links whose level changed, by number.
    pub levels: Vec<u32>,
    /// Users that have another bottleneck than before, or one at last, by number.
    pub moved: Vec<u32>,
}

/// Links with their users. After changes, [`MaxMin::refill`] fills anew only those links that a chain of shared links joins to a
/// change, and of those only the ones whose turn does not come before anything that changed: up to there the filling goes as it
/// went before. The result is the same as that of filling everything.
#[derive(Debug)]
pub struct MaxMin {
    capacity: Vec<u64>,
    /// By link: its level; `None` if it holds no flow back.
    level: Vec<Option<u64>>,
    /// By link, in no order.
    users_of: Vec<Vec<u32>>,
    /// By link: how many flows cross it.
    total: Vec<u64>,
    users: Vec<User>,
    /// By user.
    paths: Vec<Path>,
    /// By user, then by link of its path: its place among the link's users.
    places: Vec<[u32; MAX_HOPS]>,
    /// Links of changed users.
    dirty: Vec<u32>,
    /// Up to this turn the filling goes as before, as far as flows that left are concerned.
    until: Option<Turn>,
    /// Links that got flows.
    grown: Vec<u32>,
    /// By link, during a filling: capacity that is left, and flows that still grow.
    left: Vec<(u64, u64)>,
    /// By link, during a filling: where the users that must be filled anew are in `growing`.
    spans: Vec<(u32, u32)>,
    growing: Vec<u32>,
    link_seen: Vec<bool>,
    user_seen: Vec<bool>,
}

impl MaxMin {
    /// Links with these capacities in bits per second, and no users.
    pub fn new(capacity: Vec<u64>) -> Self {
        let n = capacity.len();
        Self {
            capacity,
            level: vec![None; n],
            users_of: vec![Vec::new(); n],
            total: vec![0; n],
            users: Vec::new(),
            paths: Vec::new(),
            places: Vec::new(),
            dirty: Vec::new(),
            until: None,
            grown: Vec::new(),
            left: vec![(0, 0); n],
            spans: vec![(0, 0); n],
            growing: Vec::new(),
            link_seen: vec![false; n],
            user_seen: Vec::new(),
        }
    }

    /// The rate of each flow of a user, as of the last [`MaxMin::refill`].
    #[cfg(test)]
    pub fn rate(&self, user: u32) -> u64 {
        self.bottleneck(user).map_or(0, |l| self.level(l))
    }

    /// Links have these capacities from now on: everything is filled anew. O(links).
    pub fn limit(&mut self, capacity: &[u64]) {
        self.capacity.copy_from_slice(capacity);
        self.dirty.extend(0..capacity.len() as u32);
        self.until = Some((0, 0));
    }

    /// The link that holds a user back, as of the last [`MaxMin::refill`].
    pub fn bottleneck(&self, user: u32) -> Option<u32> {
        self.users.get(user as usize).map(|u| u.link).filter(|&l| l != NOWHERE)
    }

    /// The rate of each flow that this link holds back; zero if it holds none back.
    pub fn level(&self, link: u32) -> u64 {
        self.level[link as usize].unwrap_or(0)
    }

    /// From now on `user` is `flows` flows over `path`; none takes it away. O(links of both paths).
    pub fn set(&mut self, user: u32, path: Path, flows: u32) {
        let k = user as usize;
        if self.users.len() <= k {
            self.users.resize(k + 1, User::default());
            self.user_seen.resize(k + 1, false);
            self.places.resize(k + 1, [0; MAX_HOPS]);
            self.paths.resize(k + 1, Path::default());
        }
        let (old, same) = (self.users[k], self.paths[k] == path);
        if old.flows == flows && (flows == 0 || same) {
            return;
        }
        if old.flows > 0 && (flows == 0 || !same) {
            self.leave(user);
        }
        if flows > 0 && (old.flows == 0 || !same) {
            self.enter(user, path);
        }
        let u = &mut self.users[k];
        let before = std::mem::replace(&mut u.flows, flows);
        for &l in path.links().iter().filter(|_| flows > 0) {
            self.total[l as usize] = self.total[l as usize] + u64::from(flows) - u64::from(before);
            self.dirty.push(l);
            if flows > before {
                self.grown.push(l);
            }
        }
        if flows < before && u.link != NOWHERE {
            let turn = (self.level[u.link as usize].unwrap_or(0), u.link);
            self.until = Some(self.until.map_or(turn, |t| t.min(turn)));
        }
    }

    /// Takes a user off its links.
    fn leave(&mut self, user: u32) {
        let u = std::mem::take(&mut self.users[user as usize]);
        if u.link != NOWHERE {
            let turn = (self.level[u.link as usize].unwrap_or(0), u.link);
            self.until = Some(self.until.map_or(turn, |t| t.min(turn)));
        }
        for (&l, place) in self.paths[user as usize].links().iter().zip(self.places[user as usize]) {
            self.dirty.push(l);
            self.total[l as usize] -= u64::from(u.flows);
            let list = &mut self.users_of[l as usize];
            list.swap_remove(place as usize);
            if let Some(&other) = list.get(place as usize) {
                let hop = self.paths[other as usize].links().iter().position(|&k| k == l).expect("it crosses this link");
                self.places[other as usize][hop] = place;
            }
        }
    }

    /// Puts a user on its links.
    fn enter(&mut self, user: u32, path: Path) {
        self.paths[user as usize] = path;
        for (&l, place) in path.links().iter().zip(&mut self.places[user as usize]) {
            let list = &mut self.users_of[l as usize];
            *place = list.len() as u32;
            list.push(user);
        }
    }

    /// The turn before which nothing can have changed.
    fn unchanged_until(&mut self) -> Turn {
        let grown = std::mem::take(&mut self.grown);
        let mut until = self.until.take().unwrap_or((u64::MAX, u32::MAX));
        for l in grown {
            // Shares only grow while a filling goes on, so this is the earliest that its turn can come.
            let first = self.capacity[l as usize].checked_div(self.total[l as usize]).unwrap_or(u64::MAX);
            let before = self.level[l as usize].unwrap_or(u64::MAX);
            until = until.min((first.min(before), l));
        }
        until
    }

    /// Brings the rates up to date; says what changed.
    /// O((links + users) log links) of the part of the network that changes can reach.
    pub fn refill(&mut self) -> Changes {
        let until = self.unchanged_until();
        let links = self.open(until);
        let mut heap = BinaryHeap::with_capacity(links.len());
        let mut before = Vec::with_capacity(links.len());
        for &l in &links {
            let (left, flows) = self.left[l as usize];
            heap.extend(left.checked_div(flows).map(|share| Reverse((share, l))));
            before.push(self.level[l as usize].take());
        }
        let mut changes = Changes::default();
        // Shares only grow while others are filled, so an entry that is still right when it comes out is the smallest.
        while let Some(Reverse((share, l))) = heap.pop() {
            let (left, flows) = self.left[l as usize];
            if flows == 0 {
                continue;
            }
            if left / flows != share {
                heap.push(Reverse((left / flows, l)));
                continue;
            }
            self.fill(l, share, &mut changes.moved);
        }
        for (&l, before) in links.iter().zip(before) {
            self.link_seen[l as usize] = false;
            if self.level[l as usize] != before {
                changes.levels.push(l);
            }
        }
        changes.levels.sort_unstable();
        changes.moved.sort_unstable();
        changes
    }

    /// A link's turn has come: its users keep this rate.
    fn fill(&mut self, link: u32, share: u64, moved: &mut Vec<u32>) {
        self.level[link as usize] = Some(share);
        let (from, to) = self.spans[link as usize];
        for &u in &self.growing[from as usize..to as usize] {
            if !std::mem::take(&mut self.user_seen[u as usize]) {
                continue;
            }
            let user = &mut self.users[u as usize];
            if user.link != link {
                user.link = link;
                moved.push(u);
            }
            let gone = u64::from(user.flows);
            for &k in self.paths[u as usize].links() {
                let (left, flows) = &mut self.left[k as usize];
                *left -= share * gone;
                *flows -= gone;
            }
        }
    }

    /// The links that chains of shared links join to the changed links and whose turn is not before `until`, each with what the users
    /// filled before leave it in `left`. They stay marked as seen, and so do the users that must be filled anew.
    fn open(&mut self, until: Turn) -> Vec<u32> {
        let mut links = Vec::new();
        let level = &self.level;
        let before = |l: u32| level[l as usize].is_some_and(|level| (level, l) < until);
        for l in std::mem::take(&mut self.dirty) {
            if !before(l) && !std::mem::replace(&mut self.link_seen[l as usize], true) {
                links.push(l);
            }
        }
        let mut next = 0;
        self.growing.clear();
        while let Some(&l) = links.get(next) {
            next += 1;
            let (mut left, mut growing, first) = (self.capacity[l as usize], 0, self.growing.len() as u32);
            for &u in &self.users_of[l as usize] {
                let user = self.users[u as usize];
                if user.link != NOWHERE && before(user.link) {
                    left -= level[user.link as usize].unwrap_or(0) * u64::from(user.flows);
                    continue;
                }
                growing += u64::from(user.flows);
                self.growing.push(u);
                if std::mem::replace(&mut self.user_seen[u as usize], true) {
                    continue;
                }
                for &k in self.paths[u as usize].links() {
                    if !std::mem::replace(&mut self.link_seen[k as usize], true) {
                        links.push(k);
                    }
                }
            }
            self.left[l as usize] = (left, growing);
            self.spans[l as usize] = (first, self.growing.len() as u32);
        }
        links
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The slow twin: look at every link, fill the one with the smallest share, begin again.
    fn twin(capacity: &[u64], users: &[(Vec<u32>, u64)]) -> Vec<u64> {
        let mut rate = vec![None; users.len()];
        loop {
            let share = |l: u32| {
                let on = || users.iter().zip(&rate).filter(|(u, _)| u.0.contains(&l));
                let used: u64 = on().filter_map(|(u, r)| r.map(|r: u64| r * u.1)).sum();
                let growing: u64 = on().filter(|(_, r)| r.is_none()).map(|(u, _)| u.1).sum();
                (growing > 0).then(|| (capacity[l as usize] - used) / growing)
            };
            let Some((s, l)) = (0..capacity.len() as u32).filter_map(|l| share(l).map(|s| (s, l))).min() else { break };
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
        // One long flow over three links and one short flow on each; the second link is half as fast, the third twice.
        let mut m = MaxMin::new(vec![10, 5, 20]);
        m.set(0, Path::new(&[0, 1, 2]), 1);
        (0..3).for_each(|l| m.set(1 + l, Path::new(&[l]), 1));
        // The second link is full first, then the first, then the third.
        assert_eq!(m.refill(), Changes { levels: vec![0, 1, 2], moved: vec![0, 1, 2, 3] });
        assert_eq!((0..4).map(|u| m.rate(u)).collect::<Vec<_>>(), [2, 8, 2, 18]);
        m.set(2, Path::new(&[1]), 0);
        // The long flow now shares the first link as an equal: no other link holds it back.
        assert_eq!(m.refill(), Changes { levels: vec![0, 1, 2], moved: vec![0] });
        assert_eq!((0..4).map(|u| m.rate(u)).collect::<Vec<_>>(), [5, 5, 0, 15]);
        assert_eq!(m.refill(), Changes::default());
    }

    fn user() -> impl Strategy<Value = (Vec<u32>, u64)> {
        (prop::collection::btree_set(0u32..7, 1..=4), 0u64..5).prop_map(|(l, n)| (l.into_iter().collect(), n))
    }

    proptest! {
        #[test]
        fn incremental_filling_is_the_slow_twin(
            capacity in prop::collection::vec(0u64..1000, 7),
            steps in prop::collection::vec((0usize..9, user(), any::<bool>()), 1..40),
        ) {
            let mut m = MaxMin::new(capacity.clone());
            let mut users = vec![(vec![0u32], 0u64); 9];
            for (k, u, fill) in steps {
                m.set(k as u32, Path::new(&u.0), u.1 as u32);
                users[k] = u;
                if fill {
                    let before: Vec<_> = (0..9).map(|k| (m.rate(k), m.bottleneck(k))).collect();
                    let changes = m.refill();
                    let rates: Vec<_> = (0..9).map(|k| m.rate(k)).collect();
                    prop_assert_eq!(&rates, &twin(&capacity, &users));
                    for k in (0u32..9).filter(|&k| users[k as usize].1 > 0) {
                        let (rate, link) = before[k as usize];
                        let now = m.bottleneck(k);
                        prop_assert_eq!(changes.moved.contains(&k), link != now);
                        prop_assert!(link != now || rate == m.rate(k) || changes.levels.contains(&now.unwrap()));
                    }
                    laws(&capacity, &users, &rates)?;
                }
            }
        }
    }

    fn laws(capacity: &[u64], users: &[(Vec<u32>, u64)], rates: &[u64]) -> Result<(), TestCaseError> {
        let on = |l: u32| users.iter().zip(rates).filter(move |(u, _)| u.1 > 0 && u.0.contains(&l));
        let used = |l: u32| on(l).map(|(u, r)| u.1 * r).sum::<u64>();
        for (l, &c) in (0u32..).zip(capacity) {
            prop_assert!(used(l) <= c);
        }
        for (u, r) in users.iter().zip(rates).filter(|u| u.0.1 > 0) {
            // A bottleneck: full but for the rounding, and no flow on it is faster but for the rounding.
            let flows = |l| on(l).map(|(u, _)| u.1).sum::<u64>();
            let is = |&l: &u32| capacity[l as usize] - used(l) < flows(l) && on(l).all(|(_, other)| *other <= *r);
            prop_assert!(u.0.iter().any(is));
        }
        Ok(())
    }
}
