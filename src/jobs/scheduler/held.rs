//! Values by job, from its arrival until it is dropped.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use crate::ids::JobId;

/// A value for each job that is held on to. Jobs come by number and are dropped in any order.
/// Memory: a pointer for each job since the oldest that is held, and the values of those that are.
#[derive(Clone, Debug)]
pub struct HeldJobs<T> {
    /// Number of the job of `all`'s first place.
    first: usize,
    all: VecDeque<Option<Box<T>>>,
}

impl<T> Default for HeldJobs<T> {
    fn default() -> Self {
        Self { first: 0, all: VecDeque::new() }
    }
}

impl<T> HeldJobs<T> {
    /// How many jobs have ever come: the next one has this number.
    pub fn total(&self) -> usize {
        self.first + self.all.len()
    }

    /// Whether a job has come and been dropped.
    pub fn is_dropped(&self, job: JobId) -> bool {
        job.index() < self.total() && self.get(job).is_none()
    }

    /// The value of the next job.
    pub fn push(&mut self, value: T) {
        self.all.push_back(Some(Box::new(value)));
    }

    /// A job's value; `None` if it has not come, or was dropped. O(1).
    pub fn get(&self, job: JobId) -> Option<&T> {
        self.all.get(job.index().checked_sub(self.first)?)?.as_deref()
    }

    /// The same, to write.
    pub fn get_mut(&mut self, job: JobId) -> Option<&mut T> {
        self.all.get_mut(job.index().checked_sub(self.first)?)?.as_deref_mut()
    }

    /// Drops a job and gives its value. O(1) amortised.
    pub fn remove(&mut self, job: JobId) -> Option<T> {
        let value = self.all.get_mut(job.index().checked_sub(self.first)?)?.take()?;
        while self.all.front().is_some_and(Option::is_none) {
            self.all.pop_front();
            self.first += 1;
        }
        Some(*value)
    }

    /// The jobs that are held, by number. O(jobs since the oldest of them).
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (JobId, &T)> {
        let first = self.first;
        self.all
            .iter()
            .enumerate()
            .filter_map(move |(k, v)| Some((JobId::from(first + k), v.as_deref()?)))
    }
}

impl<T> Index<JobId> for HeldJobs<T> {
    type Output = T;

    /// # Panics
    /// If the job has not come, or was dropped.
    fn index(&self, job: JobId) -> &T {
        self.get(job).expect("a job that is held")
    }
}

impl<T> IndexMut<JobId> for HeldJobs<T> {
    fn index_mut(&mut self, job: JobId) -> &mut T {
        self.get_mut(job).expect("a job that is held")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        /// A plain map holds the same, and no place is kept before the oldest job that is held.
        #[test]
        fn what_is_held_is_that_of_a_plain_map(steps in prop::collection::vec((any::<bool>(), 0..30u32), 0..80)) {
            let (mut held, mut plain, mut total) = (HeldJobs::default(), BTreeMap::new(), 0u32);
            for (comes, job) in steps {
                if comes {
                    held.push(total * 7);
                    plain.insert(JobId(total), total * 7);
                    total += 1;
                } else {
                    prop_assert_eq!(held.remove(JobId(job)), plain.remove(&JobId(job)));
                }
                prop_assert!(held.iter().map(|(j, v)| (j, *v)).eq(plain.iter().map(|(j, v)| (*j, *v))));
                prop_assert!(held.iter().rev().map(|e| e.0).eq(plain.keys().rev().copied()));
                prop_assert_eq!(held.total(), total as usize);
                for j in (0..35).map(JobId) {
                    prop_assert_eq!(held.get(j), plain.get(&j));
                    prop_assert_eq!(held.is_dropped(j), j.0 < total && !plain.contains_key(&j));
                }
                let oldest = plain.keys().next().map_or(total, |j| j.0);
                prop_assert_eq!(held.all.len(), (total - oldest) as usize);
            }
        }
    }
}
