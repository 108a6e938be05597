//! The earliest of many times, each of which may change.

use crate::units::Time;

/// Times by number, with the earliest at hand: a tournament.
#[derive(Debug)]
pub struct Soonest {
    /// A tree in an array: the times stand at `leaves ..`, each other place holds the earlier of the two below it.
    tree: Vec<Time>,
    leaves: usize,
}

impl Soonest {
    /// `n` times, all never.
    pub fn new(n: usize) -> Self {
        let leaves = n.next_power_of_two();
        Self { tree: vec![Time::MAX; 2 * leaves], leaves }
    }

    /// Sets a time; `None` is never. O(log n).
    pub fn set(&mut self, k: u32, time: Option<Time>) {
        let mut at = self.leaves + k as usize;
        self.tree[at] = time.unwrap_or(Time::MAX);
        while at > 1 {
            at /= 2;
            let earlier = self.tree[2 * at].min(self.tree[2 * at + 1]);
            if std::mem::replace(&mut self.tree[at], earlier) == earlier {
                break;
            }
        }
    }

    /// The earliest time. O(1).
    pub fn first(&self) -> Option<Time> {
        Some(self.tree[1]).filter(|&t| t < Time::MAX)
    }

    /// Appends the numbers of all times up to `t` to `list`, in their order. O(those x log n).
    pub fn up_to(&self, t: Time, list: &mut Vec<u32>) {
        self.below(1, t, list);
    }

    fn below(&self, at: usize, t: Time, list: &mut Vec<u32>) {
        if self.tree[at] > t || self.tree[at] == Time::MAX {
            return;
        }
        if at >= self.leaves {
            list.push((at - self.leaves) as u32);
            return;
        }
        self.below(2 * at, t, list);
        self.below(2 * at + 1, t, list);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_smallest_of_a_list(n in 1usize..20, sets in prop::collection::vec((0u32..20, prop::option::of(0u64..50)), 0..40)) {
            let (mut s, mut list) = (Soonest::new(n), vec![None; n]);
            for (k, t) in sets.into_iter().map(|(k, t)| (k % n as u32, t.map(Time))) {
                s.set(k, t);
                list[k as usize] = t;
                prop_assert_eq!(s.first(), list.iter().flatten().copied().min());
                let mut due = Vec::new();
                s.up_to(Time(25), &mut due);
                prop_assert_eq!(due, (0..n as u32).filter(|&k| list[k as usize].is_some_and(|t| t <= Time(25))).collect::<Vec<_>>());
            }
        }
    }
}
