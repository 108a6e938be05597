//! How many large flows each pair has, for a reader that asks again and again.
//!
//! A flow counts while it had as much as asked for left when that was last asked, or when it began. So it stops to count at a service of
//! its pair that is known when it begins, and a question costs what has changed since the last one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use multiversion::multiversion;

use super::super::bundle::WORK_PER_BYTE;
use super::super::bit_set::BitSet;
use super::Place;
use crate::demand::hedera::Elephants;

/// The large flows of each pair, by sender and receiver; of those that may go another way, too.
#[derive(Default)]
pub struct Large {
    hosts: usize,
    /// By sender: what a large flow has left at least, in units.
    least: Vec<u128>,
    /// By pair: at which services its flows stop to be large. Those of flows that have ended are not among them.
    stops: Vec<BinaryHeap<Reverse<u128>>>,
    /// By pair: how many.
    counts: Vec<u32>,
    /// The last answer, while no count changes.
    last: Option<Elephants>,
    /// By pair: none stops before its clock reads as many whole bytes. The complement, if the clock is that of the receiver's link.
    first: Vec<i64>,
    /// Pairs of which that is not known.
    stale: BitSet,
    /// What the clocks of senders and receivers read, in whole bytes; kept for its memory.
    bytes: [Vec<i64>; 2],
}

impl Large {
    /// Whether anything has asked.
    pub fn is_kept(&self) -> bool {
        !self.least.is_empty()
    }

    /// Whether this was asked last.
    pub fn is_for(&self, least: &[u128]) -> bool {
        self.is_kept() && self.least == least
    }

    /// Keeps count of no flows so far: [`Self::push`] adds them.
    pub fn begin(&mut self, hosts: usize, pairs: usize, least: &[u128]) {
        let stops = std::iter::repeat_with(BinaryHeap::new).take(pairs).collect();
        let (least, counts, first) = (least.to_vec(), vec![0; pairs], vec![i64::MAX; pairs]);
        *self = Self { hosts, least, stops, counts, first, ..Self::default() };
    }

    fn sender(&self, pair: u32) -> usize {
        pair as usize / self.hosts % self.hosts
    }

    /// Counts a flow that has come, if it is large. `due`: the service of its pair at which it will have sent all, and `left`: what it
    /// has still to send, both in units. O(log F) for F large flows of the pair.
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

    /// Counts the first flow of a pair no more: it has sent all at service `due`. O(log F) for F large flows of the pair.
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

    /// Counts no flows of a pair that were taken back: those that are left are due at the services `dues`. O(F log F) for F flows.
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

    /// A pair has as many.
    fn set(&mut self, pair: u32, count: u32) {
        self.counts[pair as usize] = count;
        self.stale.insert(pair);
        self.last = None;
    }

    /// A pair goes over from one place to another; its service stays. O(1).
    pub fn go_over(&mut self, pair: u32) {
        if self.is_kept() && self.counts[pair as usize] > 0 {
            self.stale.insert(pair);
        }
    }

    /// The number of large flows of each two hosts; the next answer is about flows that are large now. `readings`:
    /// what clocks read, in units, first of all senders, then of all receivers. O(P) for P pairs of hosts, and O(log F) for each flow that
    /// is no longer large and each pair of F flows that has changed.
    pub fn ask(&mut self, readings: &[u128], places: &[Place]) -> Elephants {
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
                let stops = |to: usize| if first[to] < 0 { !first[to] <= down[to] } else { first[to] <= up };
                (0..hosts).filter(|&to| stops(to)).for_each(|to| self.stale.insert((row * hosts + to) as u32));
            }
        }
        let mut stale = std::mem::take(&mut self.stale);
        stale.drain(|pair| self.look(pair, readings, places[pair as usize]));
        self.stale = stale;
        found
    }

    /// Flows of a pair that are large no more do not count, and it is found out when the next one is not.
    fn look(&mut self, pair: u32, readings: &[u128], place: Place) {
        let (k, service) = (pair as usize, place.service(|l| readings[l]));
        let stops = &mut self.stops[k];
        while stops.peek().is_some_and(|stop| stop.0 < service) {
            stops.pop();
        }
        if self.counts[k] != stops.len() as u32 {
            (self.counts[k], self.last) = (stops.len() as u32, None);
        }
        let first = stops.peek().map_or(i64::MAX, |stop| {
            // It is at the service or beyond, so what the clock will read is no less than what it reads.
            i64::try_from(stop.0.wrapping_sub(place.ahead) / WORK_PER_BYTE).unwrap_or(i64::MAX)
        });
        self.first[k] = if place.link.is_some_and(|l| l as usize >= self.hosts) { !first } else { first };
    }

    /// How many each two hosts have, by all ways that their flows may go.
    fn sums(&self) -> Elephants {
        let n = self.hosts;
        let (one, other) = self.counts.split_at(n * n);
        let mut sums: Vec<u64> = one.iter().copied().map(u64::from).collect();
        sums.iter_mut().zip(other).for_each(|(sum, &n)| *sum += u64::from(n));
        Elephants::from_cells(n, sums)
    }
}

/// Whether a flow of these pairs of one sender stops to be large.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn some_stop(first: &[i64], up: i64, down: &[i64]) -> bool {
    let (down, mut some) = (&down[..first.len()], false);
    for k in 0..first.len() {
        let receiver = first[k] >> 63;
        some |= first[k] ^ receiver <= if receiver < 0 { down[k] } else { up };
    }
    some
}
