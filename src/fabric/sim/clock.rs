//! A link's clock: how much a flow has sent whose tightest link it is.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::units::Time;

/// Runs at the level of its link, in units (bits per second times nanoseconds).
#[derive(Default)]
pub struct Clock {
    reading: u128,
    since: Time,
    pace: u64,
    /// (reading at which the first flow of a pair is due, pair); some are out of date.
    expected: BinaryHeap<Reverse<(u128, u32)>>,
    next: Option<Time>,
}

impl Clock {
    /// What it reads at `now`, which must not lie before the last change.
    pub fn at(&self, now: Time) -> u128 {
        self.reading + u128::from(self.pace) * u128::from(now.since(self.since).0)
    }

    /// When it read `reading`, which lies between its last change and `now`, on the next nanosecond.
    pub fn when(&self, reading: u128, now: Time) -> Time {
        let beyond = self.at(now).saturating_sub(reading).checked_div(u128::from(self.pace)).unwrap_or(0);
        Time(now.0.saturating_sub(u64::try_from(beyond).unwrap_or(u64::MAX)))
    }

    /// Units a nanosecond.
    pub fn pace(&self) -> u64 {
        self.pace
    }

    /// Runs at another pace from now on.
    pub fn set_pace(&mut self, pace: u64, now: Time) {
        self.settle(now);
        self.pace = pace;
    }

    /// Brings the reading up to `now`.
    pub fn settle(&mut self, now: Time) {
        (self.reading, self.since) = (self.at(now), now);
    }

    /// The reading as of the last [`Clock::settle`].
    pub fn settled(&self) -> u128 {
        self.reading
    }

    /// A pair's first flow is due at this reading.
    pub fn expect(&mut self, reading: u128, pair: u32) {
        self.expected.push(Reverse((reading, pair)));
    }

    /// The next pair that is due, taken out.
    pub fn due(&mut self, now: Time) -> Option<u32> {
        let reading = self.at(now);
        let Reverse((_, pair)) = *self.expected.peek().filter(|e| e.0.0 <= reading)?;
        self.expected.pop();
        Some(pair)
    }

    /// When a flow will next be due at this pace.
    pub fn next(&self) -> Option<Time> {
        self.next
    }

    /// Finds that out anew; `holds(reading, pair)` says whether an expectation is still right.
    pub fn forecast(&mut self, now: Time, holds: impl Fn(u128, u32) -> bool) {
        while self.expected.peek().is_some_and(|e| !holds(e.0.0, e.0.1)) {
            self.expected.pop();
        }
        let first = self.expected.peek().map(|e| e.0.0.saturating_sub(self.at(now)));
        let ns = first.filter(|_| self.pace > 0).and_then(|left| match u64::try_from(left) {
            Ok(small) => Some(small.div_ceil(self.pace)),
            Err(_) => u64::try_from(left.div_ceil(u128::from(self.pace))).ok(),
        });
        self.next = ns.and_then(|ns| now.0.checked_add(ns)).map(Time);
    }
}
