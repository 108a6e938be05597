//! Max-min fair shares by progressive filling, in whole bits per second.
//!
//! A user is a number of equal flows over the same links. All flows' rates grow together until a link is full; the flows
//! of that link keep the rate, the others go on growing. Rates are whole bits per second, rounded down, so at most one bit
//! per second and flow of a link stays unused and no link is ever above its capacity.
//!
//! Source: Bertsekas and Gallager, Data Networks, 2nd edition, section 6.5.2.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::coflows::rates::Path;

#[derive(Clone, Copy, Debug, Default)]
struct User {
    path: Path,
    /// How many flows; none: not there.
    flows: u64,
    /// Of each flow.
    rate: u64,
}

/// Links with their users. After changes, [`MaxMin::refill`] computes anew the rates of those users only that a chain of
/// shared links joins to a change: the result is the same as that of filling everything.
#[derive(Debug)]
pub struct MaxMin {
    capacity: Vec<u64>,
    /// By link, in the order of their numbers.
    users_of: Vec<Vec<u32>>,
    users: Vec<User>,
    dirty: Vec<u32>,
    /// By link, during a filling: capacity that is left, and flows that still grow.
    left: Vec<(u64, u64)>,
    link_seen: Vec<bool>,
    user_seen: Vec<bool>,
}

impl MaxMin {
    /// Links with these capacities in bits per second, and no users.
    pub fn new(capacity: Vec<u64>) -> Self {
        let n = capacity.len();
        Self {
            capacity,
            users_of: vec![Vec::new(); n],
            users: Vec::new(),
            dirty: Vec::new(),
            left: vec![(0, 0); n],
            link_seen: vec![false; n],
            user_seen: Vec::new(),
        }
    }

    /// The rate of each flow of a user, as of the last [`MaxMin::refill`].
    pub fn rate(&self, user: u32) -> u64 {
        self.users.get(user as usize).map_or(0, |u| u.rate)
    }

    /// Links have these capacities from now on. O(links).
    pub fn limit(&mut self, capacity: &[u64]) {
        for (l, (old, new)) in self.capacity.iter_mut().zip(capacity).enumerate().filter(|(_, (a, b))| *a != *b) {
            *old = *new;
            self.dirty.push(l as u32);
        }
    }

    /// From now on `user` is `flows` flows over `path`; none takes it away. O(users of its links).
    pub fn set(&mut self, user: u32, path: Path, flows: u64) {
        let k = user as usize;
        if self.users.len() <= k {
            self.users.resize(k + 1, User::default());
            self.user_seen.resize(k + 1, false);
        }
        let old = self.users[k];
        if old.flows == flows && (flows == 0 || old.path == path) {
            return;
        }
        if old.flows > 0 {
            self.dirty.extend(old.path.links());
        }
        if flows > 0 {
            self.dirty.extend(path.links());
        }
        if old.flows > 0 && (flows == 0 || old.path != path) {
            for &l in old.path.links() {
                let list = &mut self.users_of[l as usize];
                if let Ok(at) = list.binary_search(&user) {
                    list.remove(at);
                }
            }
        }
        if flows > 0 && (old.flows == 0 || old.path != path) {
            for &l in path.links() {
                let list = &mut self.users_of[l as usize];
                if let Err(at) = list.binary_search(&user) {
                    list.insert(at, user);
                }
            }
        }
        let rate = if flows == 0 { 0 } else { old.rate };
        self.users[k] = User { path, flows, rate };
    }

    /// Brings the rates up to date; returns the users whose rate changed, in the order of their numbers.
    /// O((links + users) log links) of the part of the network that changes can reach.
    pub fn refill(&mut self) -> Vec<u32> {
        let (links, users) = self.reachable();
        let mut heap = BinaryHeap::with_capacity(links.len());
        for &l in &links {
            let flows = self.users_of[l as usize].iter().map(|&u| self.users[u as usize].flows).sum();
            self.left[l as usize] = (self.capacity[l as usize], flows);
            heap.extend(self.capacity[l as usize].checked_div(flows).map(|share| Reverse((share, l))));
        }
        let mut changed = Vec::new();
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
            for &u in &self.users_of[l as usize] {
                if !std::mem::take(&mut self.user_seen[u as usize]) {
                    continue;
                }
                let user = &mut self.users[u as usize];
                if user.rate != share {
                    user.rate = share;
                    changed.push(u);
                }
                for &k in user.path.links() {
                    let (left, flows) = &mut self.left[k as usize];
                    *left -= share * user.flows;
                    *flows -= user.flows;
                }
            }
        }
        for l in links {
            self.link_seen[l as usize] = false;
        }
        debug_assert!(users.iter().all(|&u| !self.user_seen[u as usize]), "every user crosses a link");
        changed.sort_unstable();
        changed
    }

    /// The links and users that chains of shared links join to the changed links; they stay marked as seen.
    fn reachable(&mut self) -> (Vec<u32>, Vec<u32>) {
        let (mut links, mut users) = (Vec::new(), Vec::new());
        for l in std::mem::take(&mut self.dirty) {
            if !std::mem::replace(&mut self.link_seen[l as usize], true) {
                links.push(l);
            }
        }
        let mut next = 0;
        while let Some(&l) = links.get(next) {
            next += 1;
            for &u in &self.users_of[l as usize] {
                if std::mem::replace(&mut self.user_seen[u as usize], true) {
                    continue;
                }
                users.push(u);
                for &k in self.users[u as usize].path.links() {
                    if !std::mem::replace(&mut self.link_seen[k as usize], true) {
                        links.push(k);
                    }
                }
            }
        }
        (links, users)
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
        assert_eq!(m.refill(), [0, 1, 2, 3]);
        assert_eq!((0..4).map(|u| m.rate(u)).collect::<Vec<_>>(), [2, 8, 2, 18]);
        m.set(2, Path::new(&[1]), 0);
        assert_eq!(m.refill(), [0, 1, 3]);
        assert_eq!((0..4).map(|u| m.rate(u)).collect::<Vec<_>>(), [5, 5, 0, 15]);
        assert_eq!(m.refill(), [] as [u32; 0]);
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
                m.set(k as u32, Path::new(&u.0), u.1);
                users[k] = u;
                if fill {
                    let before: Vec<_> = (0..9).map(|k| m.rate(k)).collect();
                    let changed = m.refill();
                    let rates: Vec<_> = (0..9).map(|k| m.rate(k)).collect();
                    prop_assert_eq!(&rates, &twin(&capacity, &users));
                    prop_assert!((0..9).all(|k| before[k] == rates[k] || changed.contains(&(k as u32))));
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
            // A bottleneck: full but for the rounding, and nobody on it is faster but for the rounding.
            let flows = |l| on(l).map(|(u, _)| u.1).sum::<u64>();
            let is = |&l: &u32| capacity[l as usize] - used(l) < flows(l) && on(l).all(|(_, other)| *other <= *r);
            prop_assert!(u.0.iter().any(is));
        }
        Ok(())
    }
}
