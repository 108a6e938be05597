//! Backlog of every host pair as a linear function of its clock, so that a poll is one
//! multiplication a pair.
//!
//! A poll counts at most a given amount of each flow. While the same flows of a pair are below that
//! amount, their backlog falls along a line: a constant minus the number of flows times the clock's
//! reading. Where a line has ended, and where flows began or ended, [`BundleEnds`] gives the next
//! one.

use multiversion::multiversion;

use super::super::bit_set::BitSet;
use super::super::bundle::WORK_PER_BYTE;
use super::super::waiting::BundleEnds;
use super::PairService;

/// Line of each pair, by sender and receiver.
#[derive(Default)]
pub struct PairLines {
    hosts: usize,
    /// The most that is counted of a flow, in units.
    most: u128,
    /// Backlog at reading zero, in units, modulo 2^64.
    begin: Vec<u64>,
    /// Number of flows: the backlog falls by so much for each unit of the reading. The complement
    /// if the clock is the receiver's.
    slope: Vec<i32>,
    /// The line holds while the reading is below this, in whole bytes. Zero: no line, because the
    /// backlog may exceed 64 bits.
    end: Vec<u64>,
    /// Pairs whose flows have changed since their line was computed.
    stale: BitSet,
    /// Readings of the senders' and receivers' clocks.
    up: Vec<ClockReading>,
    down: [Vec<u64>; 2],
}

/// Reading of a clock.
#[derive(Clone, Copy)]
struct ClockReading {
    /// In units, modulo 2^64.
    units: u64,
    /// In whole bytes, or the largest number.
    bytes: u64,
}

impl From<u128> for ClockReading {
    fn from(units: u128) -> Self {
        Self {
            units: units as u64,
            bytes: u64::try_from(units / WORK_PER_BYTE).unwrap_or(u64::MAX),
        }
    }
}

impl PairLines {
    /// Whether lines are kept.
    fn is_kept(&self) -> bool {
        !self.begin.is_empty()
    }

    /// Drops all lines until they are asked for.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The flows of a pair have changed. O(1).
    pub fn change(&mut self, pair: u32) {
        if self.is_kept() {
            self.stale.insert(pair);
        }
    }

    /// A pair changes its clock; its service stays. O(1).
    pub fn go_over(&mut self, pair: u32, old: PairService, new: PairService) {
        if !self.is_kept() {
            return;
        }
        let k = pair as usize;
        // The new clock reads more by this.
        let more = old.ahead.wrapping_sub(new.ahead);
        let flows = flows(self.slope[k]);
        self.begin[k] = self.begin[k].wrapping_add((more as u64).wrapping_mul(flows.into()));
        self.slope[k] = self.towards(flows, new);
        if !matches!(self.end[k], 0 | u64::MAX) {
            let more = more.cast_signed().div_euclid(WORK_PER_BYTE.cast_signed());
            // Rounded down twice: the line may end a little early.
            self.end[k] = u64::try_from(i128::from(self.end[k]) + more).unwrap_or(0);
        }
    }

    /// The slope for this number of flows: the number, or its complement if the pair is on its
    /// receiver's clock.
    fn towards(&self, flows: u32, place: PairService) -> i32 {
        let flows = flows.cast_signed();
        if place.link.is_some_and(|l| l as usize >= self.hosts) { !flows } else { flows }
    }

    /// Backlog of each pair in whole bytes, at most `most` units of each flow. `readings` are those
    /// of the clocks: first all senders, then all receivers. O(pairs), eight at a time, and
    /// [`BundleEnds::sum`] for each whose line has ended.
    pub fn bytes(
        &mut self,
        most: u128,
        readings: &[u128],
        waiting: &mut [BundleEnds],
        places: &[PairService],
    ) -> Vec<u64> {
        let n = readings.len() / 2;
        if !self.is_kept() || self.most != most {
            let mut all = BitSet::default();
            (0..waiting.len() as u32).for_each(|pair| all.insert(pair));
            let (begin, slope, end) = (vec![0; n * n], vec![0; n * n], vec![0; n * n]);
            *self = Self { hosts: n, most, begin, slope, end, stale: all, ..Self::default() };
        }
        let mut stale = std::mem::take(&mut self.stale);
        stale.drain(|pair| {
            self.draw(pair, readings, waiting, places);
        });
        self.stale = stale;
        let (up, down) = readings.split_at(n);
        self.up.clear();
        self.up.extend(up.iter().map(|&r| ClockReading::from(r)));
        self.down.iter_mut().for_each(Vec::clear);
        for r in down.iter().map(|&r| ClockReading::from(r)) {
            self.down[0].push(r.units);
            self.down[1].push(r.bytes);
        }
        let mut bytes = Vec::with_capacity(n * n);
        for from in 0..n {
            let of = from * n..(from + 1) * n;
            let row = SenderLines {
                begin: &self.begin[of.clone()],
                slope: &self.slope[of.clone()],
                end: &self.end[of.clone()],
                up: self.up[from],
                down: [&self.down[0], &self.down[1]],
            };
            if look(&row, &mut bytes) {
                for k in of {
                    if self.has_ended(k) {
                        bytes[k] = super::bytes(self.draw(k as u32, readings, waiting, places)).0;
                    }
                }
            }
        }
        bytes
    }

    /// Whether the line of a pair has ended.
    fn has_ended(&self, k: usize) -> bool {
        let (from, to) = (k / self.hosts, k % self.hosts);
        self.end[k] <= if self.slope[k] < 0 { self.down[1][to] } else { self.up[from].bytes }
    }

    /// Computes the line of a pair; returns its backlog.
    fn draw(
        &mut self,
        pair: u32,
        readings: &[u128],
        waiting: &mut [BundleEnds],
        places: &[PairService],
    ) -> u128 {
        let (k, place) = (pair as usize, places[pair as usize]);
        let waiting = &mut waiting[k];
        let reading = place.link.map_or(0, |l| readings[l as usize]);
        let units = waiting.sum(place.service(|_| reading), self.most);
        let (flows, next) = waiting.line();
        self.slope[k] = self.towards(flows, place);
        self.begin[k] = (units as u64).wrapping_add((reading as u64).wrapping_mul(flows.into()));
        let holds = waiting.most(self.most).is_some_and(|most| u64::try_from(most).is_ok())
            && (place.link.is_some() || units == 0);
        let end =
            next.map(|due| due.wrapping_sub(self.most).wrapping_sub(place.ahead) / WORK_PER_BYTE);
        self.end[k] = if holds {
            end.map_or(u64::MAX, |end| u64::try_from(end).unwrap_or(u64::MAX))
        } else {
            0
        };
        units
    }
}

/// Number of flows of this slope.
#[inline(always)]
fn flows(slope: i32) -> u32 {
    (slope ^ (slope >> 31)).cast_unsigned()
}

/// What is read for the pairs of one sender.
struct SenderLines<'a> {
    begin: &'a [u64],
    slope: &'a [i32],
    end: &'a [u64],
    up: ClockReading,
    /// By receiver: units and bytes.
    down: [&'a [u64]; 2],
}

/// Appends the backlog by the lines of a row in bytes; true if one of the lines has ended.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn look(row: &SenderLines, bytes: &mut Vec<u64>) -> bool {
    let &SenderLines { begin, slope, end, up, down } = row;
    let (n, before) = (begin.len(), bytes.len());
    bytes.resize(before + n, 0);
    // The compiler vectorises a plain loop over slices of one length.
    let (bytes, slope, end, down) =
        (&mut bytes[before..][..n], &slope[..n], &end[..n], [&down[0][..n], &down[1][..n]]);
    let mut ended = 0;
    for k in 0..n {
        let (units, whole_bytes) =
            if slope[k] < 0 { (down[0][k], down[1][k]) } else { (up.units, up.bytes) };
        bytes[k] = whole(begin[k].wrapping_sub(u64::from(flows(slope[k])).wrapping_mul(units)));
        ended |= u64::from(end[k] <= whole_bytes);
    }
    ended != 0
}

/// Units as whole bytes.
///
/// A byte has 2^12 x 5^9 units. After a shift the units have 52 bits, which `f64` holds exactly. A
/// quotient that is not whole is at least a part in 2^52 below the next whole number, and rounding
/// moves it by a part in 2^53. So the result is that of whole numbers.
#[inline(always)]
fn whole(units: u64) -> u64 {
    /// An `f64` of 2^52 or more has a whole number in its lowest bits.
    const WHOLE: u64 = 0x4330_0000_0000_0000;
    let float = |x: u64| f64::from_bits(WHOLE | x) - f64::from_bits(WHOLE);
    let quotient = float(units >> 12) / (WORK_PER_BYTE >> 12) as f64;
    (quotient.floor() + f64::from_bits(WHOLE)).to_bits() ^ WHOLE
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn a_quotient_is_whole(bytes in 0u64..=(u64::MAX as u128 / WORK_PER_BYTE) as u64, near in -2i64..3, any: u64) {
            let work = bytes * WORK_PER_BYTE as u64;
            for units in [work.saturating_add_signed(near), work.saturating_add_signed(near << 12), any] {
                prop_assert_eq!(whole(units), super::super::bytes(units.into()).0);
            }
        }
    }
}
