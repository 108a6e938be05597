//! Number of large flows of each pair, for readers that ask often.
//!
//! A flow is large if it had at least the asked amount left at the last call, or when it began. So
//! the service at which it stops being large is known when it begins, and a call costs what has
//! changed since the last one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use multiversion::multiversion;

use super::super::bit_set::BitSet;
use super::super::bundle::WORK_PER_BYTE;
use super::PairService;
use crate::demand::hedera::Elephants;

/// The large flows of each pair, by sender and receiver; then those of marked flows, if they may
/// take another route.
#[derive(Default)]
pub struct Large {
    hosts: usize,
    /// By sender: the work that a large flow has left at least.
    least: Vec<u128>,
    /// By pair: the services at which its flows stop being large. Flows that have ended are not
    /// among them.
    stops: Vec<BinaryHeap<Reverse<u128>>>,
    /// By pair: how many.
    counts: Vec<u32>,
    /// The last answer, while no number changes.
    last: Option<Elephants>,
    /// By pair: the reading in whole bytes up to which none stops being large. The complement, if
    /// the clock is the receiver's.
    first: Vec<i64>,
    /// Pairs for which that is not known.
    stale: BitSet,
    /// Readings of the senders' and receivers' clocks in whole bytes; a buffer that is kept.
    bytes: [Vec<i64>; 2],
}

impl Large {
    /// Whether the numbers are kept: they were asked for.
    pub fn is_kept(&self) -> bool {
        !self.least.is_empty()
    }

    /// Whether the last call asked for this.
    pub fn is_for(&self, least: &[u128]) -> bool {
        self.is_kept() && self.least == least
    }

    /// Starts without flows; [`Self::push`] adds them.
    pub fn begin(&mut self, hosts: usize, pairs: usize, least: &[u128]) {
        let stops = std::iter::repeat_with(BinaryHeap::new).take(pairs).collect();
        let (least, counts, first) = (least.to_vec(), vec![0; pairs], vec![i64::MAX; pairs]);
        *self = Self { hosts, least, stops, counts, first, ..Self::default() };
    }

    fn sender(&self, pair: u32) -> usize {
        pair as usize / self.hosts % self.hosts
    }

    /// Adds a new flow, if it is large. `due`: its pair's service at which it ends; `left`: the
    /// work that it has left. O(log F) for F large flows of the pair.
    pub fn push(&mut self, pair: u32, due: u128, left: u128) {
        if !self.is_kept() {
            return;
        }
        let least = self.least[self.sender(pair)];
        if left >= least {
            self.stops[pair as usize].push(Reverse(due - least));
            self.set(pair, self.counts[pair as usize] + 1);
        }
    }

    /// Removes the first flow of a pair, which ended at service `due`. O(log F) for F large flows
    /// of the pair.
    pub fn pop(&mut self, pair: u32, due: u128) {
        if !self.is_kept() {
            return;
        }
        let stop = due.checked_sub(self.least[self.sender(pair)]);
        let stops = &mut self.stops[pair as usize];
        if stops.peek().is_some_and(|first| Some(first.0) == stop) {
            stops.pop();
            self.set(pair, self.counts[pair as usize] - 1);
        }
    }

    /// Removes the cancelled flows of a pair; those that remain end at the services `dues`. O(F log
    /// F) for F flows.
    pub fn keep(&mut self, pair: u32, dues: impl Iterator<Item = u128>) {
        if !self.is_kept() {
            return;
        }
        let (k, least) = (pair as usize, self.least[self.sender(pair)]);
        let mut left: Vec<u128> = dues.filter_map(|due| due.checked_sub(least)).collect();
        left.sort_unstable();
        let mut left = left.into_iter().peekable();
        let stops = std::mem::take(&mut self.stops[k]).into_sorted_vec().into_iter().rev();
        self.stops[k] = stops
            .filter(|stop| {
                while left.next_if(|&l| l < stop.0).is_some() {}
                left.next_if(|&l| l == stop.0).is_some()
            })
            .collect();
        self.set(pair, self.stops[k].len() as u32);
    }

    /// Sets the number of a pair.
    fn set(&mut self, pair: u32, count: u32) {
        self.counts[pair as usize] = count;
        self.stale.insert(pair);
        self.last = None;
    }

    /// A pair changes its clock; its service stays. O(1).
    pub fn go_over(&mut self, pair: u32) {
        if self.is_kept() && self.counts[pair as usize] > 0 {
            self.stale.insert(pair);
        }
    }

    /// Number of large flows between each two hosts. From now on, large means at least the asked
    /// amount left at this call. `readings`: those of the clocks in units, first all senders, then
    /// all receivers. O(P) for P pairs of hosts, and O(log F) for each flow that is no longer large
    /// and for each changed pair of F flows.
    pub fn ask(&mut self, readings: &[u128], places: &[PairService]) -> Elephants {
        let (found, hosts) = (self.last.take().unwrap_or_else(|| self.sums()), self.hosts);
        self.last = Some(found.clone());
        let whole = |r: &u128| i64::try_from(r / WORK_PER_BYTE).unwrap_or(i64::MAX - 1);
        let [up, down] = &mut self.bytes;
        for (bytes, readings) in [up, down].into_iter().zip(readings.chunks_exact(hosts)) {
            bytes.clear();
            bytes.extend(readings.iter().map(whole));
        }
        let [up, down] = &self.bytes;
        for (row, first) in self.first.chunks_exact(hosts).enumerate() {
            let up = up[row % hosts];
            if some_stop(first, up, down) {
                let stops = |to: usize| {
                    if first[to] < 0 { !first[to] <= down[to] } else { first[to] <= up }
                };
                (0..hosts)
                    .filter(|&to| stops(to))
                    .for_each(|to| self.stale.insert((row * hosts + to) as u32));
            }
        }
        let mut stale = std::mem::take(&mut self.stale);
        stale.drain(|pair| self.look(pair, readings, places[pair as usize]));
        self.stale = stale;
        found
    }

    /// Removes the flows of a pair that have fallen below the threshold, and stores the reading at
    /// which the next one will.
    fn look(&mut self, pair: u32, readings: &[u128], place: PairService) {
        let (k, service) = (pair as usize, place.service(|l| readings[l]));
        let stops = &mut self.stops[k];
        while stops.peek().is_some_and(|stop| stop.0 < service) {
            stops.pop();
        }
        if self.counts[k] != stops.len() as u32 {
            (self.counts[k], self.last) = (stops.len() as u32, None);
        }
        let first = stops.peek().map_or(i64::MAX, |stop| {
            // The reading has not passed the stop, so the difference is not negative.
            i64::try_from(stop.0.wrapping_sub(place.ahead) / WORK_PER_BYTE).unwrap_or(i64::MAX)
        });
        self.first[k] =
            if place.link.is_some_and(|l| l as usize >= self.hosts) { !first } else { first };
    }

    /// Numbers by two hosts, over all routes of their flows.
    fn sums(&self) -> Elephants {
        let n = self.hosts;
        let (one, other) = self.counts.split_at(n * n);
        let mut sums: Vec<u64> = one.iter().copied().map(u64::from).collect();
        sums.iter_mut().zip(other).for_each(|(sum, &n)| *sum += u64::from(n));
        Elephants::from_cells(n, sums)
    }
}

/// Whether a flow of these pairs of one sender stops being large.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn some_stop(first: &[i64], up: i64, down: &[i64]) -> bool {
    let (down, mut some) = (&down[..first.len()], false);
    for k in 0..first.len() {
        let receiver = first[k] >> 63;
        some |= first[k] ^ receiver <= if receiver < 0 { down[k] } else { up };
    }
    some
}
