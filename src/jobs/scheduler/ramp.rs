//! Yarn's rule for tasks that wait for others: how many may hold slots while those before them have
//! none, and how many give way.
//!
//! MapReduce's application master (`RMContainerAllocator` in Hadoop) asks for reduce tasks from the
//! slowstart on. While maps wait for slots it keeps the reduces to a share of the slots that the
//! job could have: what has finished of the maps, and at most half
//! (`yarn.app.mapreduce.am.job.reduce.rampup.limit`). Slots that the maps do not need are theirs,
//! too. Reduces go before maps, so that they get this share. When no map has a slot and none is
//! free, reduces give theirs up: as many as there are maps, and at most half of the job's slots
//! (`..preemption.limit`). So those that hold slots never wait for ever for those that have none.

/// The reduces' share of a job's slots at most, in per cent.
const RAMP_UP: u64 = 50;
/// Of a job's slots those that give way at once, in per cent.
const PREEMPT: u64 = 50;

/// The two sides of a stage's shuffles, in tasks, and the slots of the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sides {
    /// Free slots in the racks where the job may run.
    pub free: u64,
    /// Tasks before the stage that hold no slot and have not finished.
    pub pending: u64,
    /// Those that hold one.
    pub running: u64,
    /// Those that have finished.
    pub finished: u64,
    /// Tasks of the stage that hold one.
    pub receiving: u64,
}

impl Sides {
    /// Slots that the job holds or could have.
    fn limit(&self) -> u64 {
        self.free + self.running + self.receiving
    }

    /// How many tasks of the stage may hold slots.
    pub fn allowed(&self) -> u64 {
        if self.pending == 0 {
            return u64::MAX;
        }
        let (limit, tasks) = (self.limit(), self.pending + self.running + self.finished);
        let ideal = (limit * self.finished / tasks).min(limit * RAMP_UP / 100);
        ideal + (limit - ideal).saturating_sub(self.pending + self.running)
    }

    /// Whether tasks of the stage hold slots and those before them have none, though they need
    /// some.
    pub fn is_starved(&self) -> bool {
        self.receiving > 0 && self.pending > 0 && self.running == 0
    }

    /// How many tasks of the stage shall give their slots up now.
    pub fn giving_way(&self) -> u64 {
        let full = self.is_starved() && self.free == 0;
        if full {
            (self.limit() * PREEMPT).div_ceil(100).min(self.pending).min(self.receiving)
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sides(free: u64, [pending, running, finished]: [u64; 3], receiving: u64) -> Sides {
        Sides { free, pending, running, finished, receiving }
    }

    #[test]
    fn reduces_get_the_share_of_maps_that_have_finished_and_half_at_most() {
        // 30 slots, all held: a fifth of the maps has finished, then four fifths.
        assert_eq!(sides(0, [50, 30, 20], 0).allowed(), 6);
        assert_eq!(sides(0, [50, 24, 26], 6).allowed(), 7);
        assert_eq!(sides(0, [5, 15, 80], 15).allowed(), 15);
        assert_eq!(sides(0, [5, 10, 85], 15).allowed(), 12);
        // What the last maps leave of their half.
        assert_eq!(sides(20, [5, 10, 85], 5).allowed(), 20);
        assert_eq!(sides(100, [5, 10, 85], 5).allowed(), 100);
        assert_eq!(sides(0, [0, 15, 85], 15).allowed(), u64::MAX);
    }

    #[test]
    fn reduces_give_way_when_no_map_has_a_slot() {
        assert_eq!(sides(0, [50, 0, 50], 10).giving_way(), 5);
        assert_eq!(sides(0, [3, 0, 50], 10).giving_way(), 3);
        assert_eq!(sides(0, [3, 0, 50], 1).giving_way(), 1);
        for calm in
            [sides(1, [50, 0, 50], 10), sides(0, [50, 1, 49], 10), sides(0, [0, 0, 100], 10)]
        {
            assert_eq!(calm.giving_way(), 0, "{calm:?}");
        }
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        /// Reduces leave a slot to the maps, so a slot that was given up is not taken by the task
        /// that gave it.
        #[test]
        fn a_slot_is_left_to_maps(free in 0u64..50, maps in [1u64..50, 0..50, 0..50], receiving in 0u64..50) {
            let s = sides(free, maps, receiving);
            prop_assert!(s.limit() == 0 || s.allowed() < s.limit());
            let after = Sides { free: s.giving_way(), receiving: receiving - s.giving_way(), ..s };
            prop_assert!(s.giving_way() == 0 || after.allowed() <= after.receiving, "{:?}", s);
        }
    }
}
