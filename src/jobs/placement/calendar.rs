//! Slot calendars: when each container of each rack is free next (JobPacker's T_ik, section 4.3.2).
//!
//! The containers of a rack are alike, so a calendar keeps how many become free at each time, not
//! which. As the tasks of a job end together, a rack of thousands of containers is a handful of
//! numbers.

use crate::ids::RackId;
use crate::units::{Span, Time};

/// One rack's containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RackCalendar {
    /// When, and how many; by time, each time once, no number zero.
    free: Vec<(Time, u32)>,
    slots: u32,
}

impl RackCalendar {
    /// `slots` containers, all free from the beginning.
    pub fn new(slots: u32) -> Self {
        Self { free: if slots > 0 { vec![(Time::ZERO, slots)] } else { vec![] }, slots }
    }

    /// How many containers the rack has.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// When `count` containers are free; nothing if the rack has fewer. O(different times).
    pub fn ready(&self, count: u32) -> Option<Time> {
        let mut sum = 0;
        let enough = |f: &&(Time, u32)| {
            sum += f.1;
            sum >= count.max(1)
        };
        self.free.iter().find(enough).map(|f| f.0)
    }

    /// By container, how long after `now` it becomes free, sorted. O(containers).
    pub fn releases(&self, now: Time) -> Vec<Span> {
        self.free.iter().flat_map(|f| std::iter::repeat_n(f.0.since(now), f.1 as usize)).collect()
    }

    /// Takes the `count` containers that are free soonest; gives when, and how many then. They are
    /// gone until [`Self::give`].
    ///
    /// # Panics
    /// If fewer are left.
    pub fn take(&mut self, count: u32) -> Vec<(Time, u32)> {
        let (mut left, mut taken) = (count, vec![]);
        let whole = self
            .free
            .iter()
            .take_while(|f| {
                f.1 <= left && {
                    left -= f.1;
                    true
                }
            })
            .count();
        taken.extend(self.free.drain(..whole));
        if left > 0 {
            let first = self.free.first_mut().expect("fewer containers than were asked for");
            first.1 -= left;
            taken.push((first.0, left));
        }
        taken
    }

    /// Gives `count` containers back, free from `from`. O(different times).
    pub fn give(&mut self, count: u32, from: Time) {
        match self.free.binary_search_by_key(&from, |f| f.0) {
            _ if count == 0 => {}
            Ok(at) => self.free[at].1 += count,
            Err(at) => self.free.insert(at, (from, count)),
        }
    }
}

/// All racks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calendar {
    /// The calendar of each rack.
    pub racks: Vec<RackCalendar>,
}

impl Calendar {
    /// `racks` racks of `slots` free containers.
    pub fn new(racks: usize, slots: u32) -> Self {
        Self { racks: vec![RackCalendar::new(slots); racks] }
    }

    /// The `count` racks that have `each` containers free soonest: sorted by that time, then by
    /// rack. Nothing if fewer racks have so many. O(R (different times + log R)).
    pub fn soonest(&self, count: usize, each: u32) -> Option<Vec<(Time, RackId)>> {
        let ready = |(r, c): (usize, &RackCalendar)| Some((c.ready(each)?, RackId::from(r)));
        let mut all: Vec<(Time, RackId)> =
            self.racks.iter().enumerate().filter_map(ready).collect();
        all.sort_unstable();
        all.truncate(count);
        (all.len() == count).then_some(all)
    }

    /// The first `count` containers of all racks: how many of each rack, by time, then rack. When
    /// there are fewer, all of them. O(R * different times * log).
    pub fn first(&self, count: u32) -> Vec<(RackId, u32)> {
        let mut all: Vec<(Time, usize, u32)> = self
            .racks
            .iter()
            .enumerate()
            .flat_map(|(r, c)| c.free.iter().map(move |f| (f.0, r, f.1)))
            .collect();
        all.sort_unstable();
        let (mut left, mut of) = (count, vec![0; self.racks.len()]);
        for (_, r, n) in all {
            let n = n.min(left);
            left -= n;
            of[r] += n;
        }
        of.into_iter()
            .enumerate()
            .filter(|(_, n)| *n > 0)
            .map(|(r, n)| (RackId::from(r), n))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The slow twin: one number a container, as T_ik is written.
    fn slow_take(free: &mut [u64], count: usize, until: u64) {
        free.sort_unstable();
        free[..count].fill(until);
        free.sort_unstable();
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn counts_are_as_good_as_containers(slots in 1u32..30, work in prop::collection::vec((1u32..30, 0u64..50), 0..40)) {
            let mut fast = RackCalendar::new(slots);
            let mut slow = vec![0u64; slots as usize];
            for (count, length) in work {
                let count = count.min(slots);
                let at = fast.ready(count).unwrap();
                prop_assert_eq!(at.0, slow[count as usize - 1]);
                let taken: Vec<u64> = fast.take(count).iter().flat_map(|t| vec![t.0.0; t.1 as usize]).collect();
                prop_assert_eq!(&taken[..], &slow[..count as usize]);
                fast.give(count, Time(at.0 + length));
                slow_take(&mut slow, count as usize, at.0 + length);
                prop_assert_eq!(fast.free.iter().map(|f| f.1).sum::<u32>(), slots);
            }
            prop_assert!(fast.ready(slots + 1).is_none() && fast.free.is_sorted_by(|a, b| a.0 < b.0) && fast.slots() == slots);
        }
    }

    #[test]
    fn racks_and_containers_come_soonest_first() {
        let mut c = Calendar::new(3, 4);
        for (rack, count, until) in [(0, 3, 10), (1, 4, 5)] {
            c.racks[rack].take(count);
            c.racks[rack].give(count, Time(until));
        }
        let soonest = |n, each| {
            c.soonest(n, each).map(|v| v.into_iter().map(|(t, r)| (t.0, r.0)).collect::<Vec<_>>())
        };
        assert_eq!(soonest(3, 1), Some(vec![(0, 0), (0, 2), (5, 1)]));
        assert_eq!((soonest(2, 2), soonest(1, 5)), (Some(vec![(0, 2), (5, 1)]), None));
        assert_eq!(c.racks[0].releases(Time(3)), [0, 7, 7, 7].map(Span));
        assert_eq!(c.first(6), [(RackId(0), 1), (RackId(1), 1), (RackId(2), 4)]);
        assert_eq!(c.first(99).iter().map(|f| f.1).sum::<u32>(), 12);
    }
}
