//! A link's clock: the work of a flow that this link limits.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::units::Time;

/// Runs at the level of its link, in units (bits a second times nanoseconds).
#[derive(Default)]
pub struct LinkClock {
    reading: u128,
    since: Time,
    pace: u64,
}

impl LinkClock {
    /// Its reading at `now`, which must not lie before the last change.
    pub fn at(&self, now: Time) -> u128 {
        self.reading + u128::from(self.pace) * u128::from(now.since(self.since).0)
    }

    /// When it read `reading`, which lies between its last change and `now`, rounded up to a
    /// nanosecond.
    pub fn when(&self, reading: u128, now: Time) -> Time {
        let beyond =
            self.at(now).saturating_sub(reading).checked_div(u128::from(self.pace)).unwrap_or(0);
        Time(now.0.saturating_sub(u64::try_from(beyond).unwrap_or(u64::MAX)))
    }

    /// When it will read `reading` at this pace, rounded up to a nanosecond; `now` if it does
    /// already. `None`: never.
    pub fn will_read(&self, reading: u128, now: Time) -> Option<Time> {
        let left = reading.saturating_sub(self.at(now));
        let ns = match u64::try_from(left) {
            _ if self.pace == 0 => None,
            Ok(small) => Some(small.div_ceil(self.pace)),
            Err(_) => u64::try_from(left.div_ceil(u128::from(self.pace))).ok(),
        };
        ns.and_then(|ns| now.0.checked_add(ns)).map(Time)
    }

    /// Units a nanosecond.
    pub fn pace(&self) -> u64 {
        self.pace
    }

    /// Changes its pace.
    pub fn set_pace(&mut self, pace: u64, now: Time) {
        self.settle(now);
        self.pace = pace;
    }

    /// Brings the reading up to `now`.
    pub fn settle(&mut self, now: Time) {
        (self.reading, self.since) = (self.at(now), now);
    }

    /// The reading at the last [`LinkClock::settle`].
    pub fn settled(&self) -> u128 {
        self.reading
    }
}

/// When bundles are due, by a clock's readings.
#[derive(Default)]
pub struct Expected {
    /// (reading at which the first flow of a bundle ends, bundle); some are out of date.
    dues: BinaryHeap<Reverse<(u128, u32)>>,
}

impl Expected {
    /// Notes that a bundle's first flow ends at this reading.
    pub fn expect(&mut self, reading: u128, bundle: u32) {
        self.dues.push(Reverse((reading, bundle)));
    }

    /// Removes and returns the next bundle that is due up to this reading.
    pub fn due(&mut self, reading: u128) -> Option<u32> {
        let Reverse((_, bundle)) = *self.dues.peek().filter(|e| e.0.0 <= reading)?;
        self.dues.pop();
        Some(bundle)
    }

    /// The reading at which the next flow ends; `holds(reading, bundle)` says whether an entry is
    /// still right.
    pub fn next(&mut self, holds: impl Fn(u128, u32) -> bool) -> Option<u128> {
        while self.dues.peek().is_some_and(|e| !holds(e.0.0, e.0.1)) {
            self.dues.pop();
        }
        self.dues.peek().map(|e| e.0.0)
    }
}
