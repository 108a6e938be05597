//! Work left of a bundle's flows, each counted up to a limit, without going through them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// When flows end, by the service of their bundle.
#[derive(Debug)]
pub struct BundleEnds {
    /// Flows that had more than the limit left at the last call.
    far: BinaryHeap<Reverse<u128>>,
    /// When the first of those ends, so that the heap need not be read; the largest number if there
    /// is none.
    next: u128,
    /// Number of the other flows, and the sum of their ends, modulo 2^128.
    near: u64,
    dues: u128,
}

impl BundleEnds {
    /// Adds a flow.
    pub fn push(&mut self, due: u128) {
        self.far.push(Reverse(due));
        self.next = self.next.min(due);
    }

    /// Removes the first flow, which ends at `due`.
    pub fn pop(&mut self, due: u128) {
        self.approach(due);
        self.near -= 1;
        self.dues = self.dues.wrapping_sub(due);
    }

    /// Work left of all flows at this service, at most `most` of each; `most` must be the same at
    /// every call or grow. No flow is overdue. O(1), and O(log flows) once for every flow.
    pub fn sum(&mut self, service: u128, most: u128) -> u128 {
        self.approach(service.saturating_add(most));
        let near = self.dues.wrapping_sub(service.wrapping_mul(self.near.into()));
        most * self.far.len() as u128 + near
    }

    /// After a sum: the number of flows with which the sum falls, and when the first of the other
    /// flows ends.
    pub fn line(&self) -> (u32, Option<u128>) {
        (self.near as u32, Some(self.next).filter(|&next| next != u128::MAX))
    }

    /// The largest sum possible, with `most` for each flow; `None` if that overflows.
    pub fn most(&self, most: u128) -> Option<u128> {
        most.checked_mul(u128::from(self.near) + self.far.len() as u128)
    }

    /// Flows that end by this service are near from now on.
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

/// The smallest number of a heap, or the largest possible one.
fn first(heap: &BinaryHeap<Reverse<u128>>) -> u128 {
    heap.peek().map_or(u128::MAX, |d| d.0)
}

impl FromIterator<u128> for BundleEnds {
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
            let (mut waiting, mut list, mut service) = (first.iter().copied().collect::<BundleEnds>(), first, 0);
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
