//! Work list of flows that must be looked at, the first one first.

use super::ports::PlaceInOrder;

/// A flow that must be looked at because of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkItem {
    /// Its place.
    pub at: PlaceInOrder,
    /// The link because of which it must be looked at.
    pub link: u32,
    /// Its group in its coflow.
    pub group: u32,
}

/// At most one item for each link.
#[derive(Default)]
pub struct WorkList {
    /// By place, the first one last. Few: a chain goes on at some ten places at a time.
    list: Vec<WorkItem>,
    /// By link: whether it has an item, so that no search is made for one that is not there.
    waits: Vec<bool>,
}

impl WorkList {
    /// Empty, for `links` links.
    pub fn new(links: usize) -> Self {
        Self { list: Vec::new(), waits: vec![false; links] }
    }

    /// Whether a link has an item.
    pub fn waits(&self, link: u32) -> bool {
        self.waits[link as usize]
    }

    /// Removes the first item. O(1).
    pub fn pop(&mut self) -> Option<WorkItem> {
        let turn = self.list.pop()?;
        self.waits[turn.link as usize] = false;
        Some(turn)
    }

    /// Replaces the item of a link. O(items).
    pub fn set(&mut self, link: u32, turn: Option<WorkItem>) {
        let waited = std::mem::replace(&mut self.waits[link as usize], turn.is_some());
        if waited && let Some(k) = self.list.iter().position(|t| t.link == link) {
            self.list.remove(k);
        }
        if let Some(turn) = turn {
            // Few have to move: cheaper than a general insertion.
            let mut k = self.list.len();
            self.list.push(turn);
            while k > 0 && self.list[k - 1].at < turn.at {
                self.list[k] = self.list[k - 1];
                k -= 1;
            }
            self.list[k] = turn;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn the_first_of_one_a_link_comes_out(steps in prop::collection::vec((0u32..6, prop::option::of(1u64..20)), 0..40)) {
            let (mut turns, mut twin) = (WorkList::new(6), std::collections::BTreeMap::new());
            for (k, (link, at)) in steps.into_iter().enumerate() {
                if k % 3 == 2 {
                    let out = turns.pop();
                    prop_assert_eq!(out.map(|t| t.at), twin.values().map(|t: &WorkItem| t.at).min());
                    prop_assert_eq!(out, out.and_then(|t| twin.remove(&t.link)));
                }
                let turn = at.map(|at| WorkItem { at, link, group: k as u32 });
                turns.set(link, turn);
                twin.remove(&link);
                twin.extend(turn.map(|t| (link, t)));
                (0..6).for_each(|l| assert_eq!(turns.waits(l), twin.contains_key(&l)));
            }
            let rest: Vec<_> = std::iter::from_fn(|| turns.pop()).map(|t| t.at).collect();
            prop_assert!(rest.is_sorted() && rest.len() == twin.len());
        }
    }
}
