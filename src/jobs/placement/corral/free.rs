//! When racks become free, without saying which: what is needed to compare layouts.

/// Times at which racks become free, ascending and each once, with how many racks do then.
///
/// Racks that were given to one job are one entry, so that there are as many entries as jobs that
/// run, and at most as many as racks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreeRacks {
    runs: Vec<(u64, usize)>,
}

impl FreeRacks {
    /// All `racks` from the beginning.
    pub fn new(racks: usize) -> Self {
        Self { runs: vec![(0, racks)] }
    }

    /// Time is `now`: racks that were free before are free then. No job of a later arrival is laid
    /// out otherwise by that.
    pub fn pass(&mut self, now: u64) {
        let passed = self.runs.partition_point(|r| r.0 <= now);
        if passed > 0 {
            self.runs[passed - 1] = (now, self.runs[..passed].iter().map(|r| r.1).sum());
            self.runs.drain(..passed - 1);
        }
    }

    /// Gives a job that arrives at `arrival` and takes `length` the `racks` that are free soonest;
    /// gives its end. O(entries).
    ///
    /// # Panics
    /// If there are fewer racks.
    pub fn place(&mut self, arrival: u64, length: u64, racks: usize) -> u64 {
        let (mut left, mut last) = (racks, 0);
        while left > self.runs[last].1 {
            left -= self.runs[last].1;
            last += 1;
        }
        let finish = self.runs[last].0.max(arrival).saturating_add(length);
        self.runs[last].1 -= left;
        let first = last + usize::from(self.runs[last].1 == 0);
        let at = first + self.runs[first..].partition_point(|r| r.0 < finish);
        match self.runs.get_mut(at) {
            Some(same) if same.0 == finish => {
                same.1 += racks;
                self.runs.drain(..first);
            }
            _ if first == 0 => self.runs.insert(at, (finish, racks)),
            _ => {
                self.runs.copy_within(first..at, first - 1);
                self.runs[at - 1] = (finish, racks);
                self.runs.drain(..first - 1);
            }
        }
        finish
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same with a sorted list of all racks' times.
    fn place(free: &mut [u64], arrival: u64, length: u64, racks: usize) -> u64 {
        let finish = free[racks - 1].max(arrival) + length;
        free[..racks].fill(finish);
        free.sort_unstable();
        finish
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn jobs_end_when_they_do_with_a_list_of_all_racks(
            racks in 1..9usize,
            jobs in prop::collection::vec((0..6u64, 0..9u64, 1..9usize, any::<bool>()), 0..30),
        ) {
            let (mut free, mut list, mut now) = (FreeRacks::new(racks), vec![0; racks], 0);
            for (gap, length, wanted, passes) in jobs {
                now += gap;
                if passes {
                    free.pass(now);
                }
                let wanted = wanted.min(racks);
                prop_assert_eq!(free.place(now, length, wanted), place(&mut list, now, length, wanted));
                prop_assert!(free.runs.windows(2).all(|w| w[0].0 < w[1].0) && free.runs.iter().all(|r| r.1 > 0), "{:?}", free);
                prop_assert_eq!(free.runs.iter().map(|r| r.1).sum::<usize>(), racks);
            }
        }
    }
}
