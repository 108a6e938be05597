//! What the flows of a bundle have still to send, each counted up to a limit, without going over them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// When flows are due, by the service of their bundle.
#[derive(Debug)]
pub struct Waiting {
    /// Flows that had more than the limit left when it was last asked.
    far: BinaryHeap<Reverse<u128>>,
    /// When the first of those is due, so that the heap need not be looked into; the largest number if there is none.
    next: u128,
    /// How many others there are, and the sum of when they are due, modulo 2^128.
    near: u64,
    dues: u128,
}

impl Waiting {
    /// Adds a flow.
    pub fn push(&mut self, due: u128) {
        self.far.push(Reverse(due));
        self.next = self.next.min(due);
    }

    /// Takes out the flow that is due first, which is at `due`.
    pub fn pop(&mut self, due: u128) {
        self.approach(due);
        self.near -= 1;
        self.dues = self.dues.wrapping_sub(due);
    }

    /// What all flows have left at this service, of each at most `most`, which must be the same at every call or grow. No flow is overdue.
    /// O(1), and O(log flows) once for every flow.
    pub fn sum(&mut self, service: u128, most: u128) -> u128 {
        self.approach(service.saturating_add(most));
        let near = self.dues.wrapping_sub(service.wrapping_mul(self.near.into()));
        most * self.far.len() as u128 + near
    }

    /// After a sum: of how many flows what waits falls as they send, and when the first of the others is due.
    pub fn line(&self) -> (u32, Option<u128>) {
        (self.near as u32, Some(self.next).filter(|&next| next != u128::MAX))
    }

    /// What may wait at most, of each flow `most`; `None` if that is more than there are numbers.
    pub fn most(&self, most: u128) -> Option<u128> {
        most.checked_mul(u128::from(self.near) + self.far.len() as u128)
    }

    /// Flows that are due up to this service are near from now on.
    fn approach(&mut self, service: u128) {
        while self.next <= service
            && let Some(Reverse(due)) = self.far.pop()
        {
            self.next = first(&self.far);
            self.near += 1;
            self.dues = self.dues.wrapping_add(due);
        }
    }
}

/// The smallest number of a heap, or the largest there is.
fn first(heap: &BinaryHeap<Reverse<u128>>) -> u128 {
    heap.peek().map_or(u128::MAX, |d| d.0)
}

impl FromIterator<u128> for Waiting {
    fn from_iter<I: IntoIterator<Item = u128>>(dues: I) -> Self {
        let far: BinaryHeap<_> = dues.into_iter().map(Reverse).collect();
        Self { next: first(&far), far, near: 0, dues: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn it_is_the_sum_over_a_list(
            first in prop::collection::vec(0u128..50, 0..5),
            steps in prop::collection::vec((0u128..20, prop::option::of(0u128..60)), 0..30),
            most in 0u128..40,
        ) {
            let (mut waiting, mut list, mut service) = (first.iter().copied().collect::<Waiting>(), first, 0);
            for (on, new) in steps {
                service += on;
                while let Some(due) = list.iter().copied().min().filter(|&due| due <= service) {
                    waiting.pop(due);
                    list.remove(list.iter().position(|&d| d == due).unwrap());
                }
                if let Some(size) = new {
                    waiting.push(service + size + 1);
                    list.push(service + size + 1);
                }
                prop_assert_eq!(waiting.sum(service, most), list.iter().map(|due| (due - service).min(most)).sum::<u128>());
            }
        }
    }
}
