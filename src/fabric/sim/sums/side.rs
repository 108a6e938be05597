//! The senders of a coflow, or its receivers.

use super::lanes;
use super::room::Room;
use crate::fabric::sim::bundle::BYTE;
use crate::ids::HostId;

/// What is less than a bit is nothing: amounts are real numbers.
const NOTHING: f64 = 1.0;

/// What a host sends, or receives.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    /// The host.
    pub host: HostId,
    /// All its bytes.
    pub bytes: u64,
    /// Those of them that go to another rack.
    pub between: u64,
}

/// The senders of a coflow, or its receivers. Those that have something left come first, in order.
pub struct Side {
    /// Senders: 0, receivers: 1.
    side: usize,
    sums: Vec<Sum>,
    /// Units between racks that are in the books.
    booked: Vec<u128>,
    /// Of those that have something left: its host, bits that it has still to carry, bits a second at which it does, and how many of these
    /// stay until all coflows are decided anew (its base rate).
    hosts: Vec<u32>,
    left: Vec<f64>,
    rates: Vec<f64>,
    base: Vec<f64>,
    /// Rates of those that are through and have not given them back: host and bits a second.
    freed: Vec<(u32, f64)>,
    /// Hosts that have something left, as bits.
    live: Vec<u64>,
}

impl Side {
    /// At rest, in a network of `hosts` hosts.
    pub fn new(side: usize, sums: Vec<Sum>, hosts: usize) -> Self {
        let mut live = vec![0; hosts.div_ceil(64)];
        sums.iter().for_each(|s| live[s.host.index() / 64] |= 1 << (s.host.index() % 64));
        Self {
            side,
            booked: vec![0; sums.len()],
            hosts: sums.iter().map(|s| s.host.0).collect(),
            left: sums.iter().map(|s| 8.0 * s.bytes as f64).collect(),
            rates: vec![0.0; sums.len()],
            base: vec![0.0; sums.len()],
            freed: Vec::new(),
            live,
            sums,
        }
    }

    /// Hosts that have something left, as bits.
    pub fn live(&self) -> &[u64] {
        &self.live
    }

    /// Whether nothing is left.
    pub fn is_over(&self) -> bool {
        self.left.is_empty()
    }

    /// Those that have something left: host and bits.
    pub fn loads(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.hosts.iter().zip(&self.left).map(|(&host, &left)| (host as usize, left))
    }

    /// What each of those has left to carry.
    pub fn left(&self) -> &[f64] {
        &self.left
    }

    /// Bits a second of all together.
    pub fn speed(&self) -> f64 {
        lanes::sum(&self.rates)
    }

    /// What there is for each that has something left. Returns the sum.
    pub fn room(&self, room: &Room, into: &mut Vec<f64>) -> f64 {
        let there = room.left(self.side);
        into.clear();
        into.extend(self.hosts.iter().map(|&host| there[host as usize]));
        lanes::sum(into)
    }

    /// The sum of the base rates.
    pub fn base(&self) -> f64 {
        lanes::sum(&self.base)
    }

    /// Each of those that have something left has this base rate; none: nobody has one.
    pub fn set_base(&mut self, rates: Option<&[f64]>) {
        match rates {
            Some(rates) => self.base.copy_from_slice(rates),
            None => self.base.fill(0.0),
        }
    }

    /// Each has this part of what it has left for its base rate.
    pub fn set_base_part(&mut self, part: f64) {
        self.base.iter_mut().zip(&self.left).for_each(|(base, left)| *base = left * part);
    }

    /// Takes the base rates from its interfaces.
    pub fn hold_base(&self, room: &mut Room) {
        self.take(&self.base, room);
    }

    /// Nobody has a base rate, and nothing is taken.
    pub fn clear_base(&mut self) {
        self.freed.clear();
        self.base.fill(0.0);
    }

    /// Each has this part of its base rate from now on.
    pub fn scale_base(&mut self, part: f64) {
        self.base.iter_mut().for_each(|base| *base *= part);
    }

    /// Gives all rates back, those of who is through, too.
    pub fn give(&mut self, room: &mut Room) {
        let all = self.hosts.iter().copied().zip(self.rates.iter().copied());
        all.chain(self.freed.drain(..)).for_each(|(host, rate)| room.give(self.side, host as usize, rate));
    }

    /// Each goes as fast as its base rate, and `more` if there is any, which is taken from `room`.
    pub fn go(&mut self, more: Option<&[f64]>, room: &mut Room) {
        self.rates.copy_from_slice(&self.base);
        if let Some(more) = more {
            self.speed_up(more, room);
        }
    }

    /// Each goes faster by this, which is taken from `room`.
    pub fn speed_up(&mut self, by: &[f64], room: &mut Room) {
        self.rates.iter_mut().zip(by).for_each(|(rate, by)| *rate += by);
        self.take(by, room);
    }

    /// Takes the rates from its interfaces.
    pub fn hold(&self, room: &mut Room) {
        self.take(&self.rates, room);
    }

    fn take(&self, rates: &[f64], room: &mut Room) {
        self.hosts.iter().zip(rates).for_each(|(&host, &rate)| room.take(self.side, host as usize, rate));
    }

    /// Seconds until the first has nothing left.
    pub fn ends(&self) -> f64 {
        // A rate of zero makes that infinite.
        lanes::least(&self.left, &self.rates, |left, rate| left / rate)
    }

    /// Time passes. Says whether one has nothing left any more.
    pub fn advance(&mut self, seconds: f64) -> bool {
        let mut any = false;
        for (left, rate) in self.left.iter_mut().zip(&self.rates) {
            *left = after(*left, *rate, seconds);
            any |= *left < NOTHING;
        }
        if any {
            self.part();
        }
        any
    }

    /// Those that have something left come first.
    fn part(&mut self) {
        let mut kept = 0;
        for k in 0..self.left.len() {
            if self.left[k] < NOTHING {
                let host = self.hosts[k];
                self.live[host as usize / 64] &= !(1 << (host % 64));
                self.freed.push((host, self.rates[k]));
            } else {
                self.sums.swap(kept, k);
                self.booked.swap(kept, k);
                (self.hosts[kept], self.left[kept]) = (self.hosts[k], self.left[k]);
                (self.rates[kept], self.base[kept]) = (self.rates[k], self.base[k]);
                kept += 1;
            }
        }
        self.hosts.truncate(kept);
        [&mut self.left, &mut self.rates, &mut self.base].into_iter().for_each(|list| list.truncate(kept));
    }

    /// Passes what went between racks up to `seconds` from now and was not passed before: host and units. `None`: all that there is.
    pub fn book(&mut self, seconds: Option<f64>, mut each: impl FnMut(HostId, u128)) {
        for (k, (&Sum { host, bytes, between }, booked)) in self.sums.iter().zip(&mut self.booked).enumerate() {
            let whole = u128::from(between) * BYTE;
            let units = match (seconds, self.left.get(k)) {
                (Some(s), Some(&left)) => {
                    let left = after(left, self.rates[k], s) / (8.0 * bytes as f64);
                    ((whole as f64 * (1.0 - left)) as u128).min(whole)
                }
                _ => whole,
            };
            let news = units.saturating_sub(*booked);
            if news > 0 {
                *booked += news;
                each(host, news);
            }
        }
    }
}

/// What is left of this much at this rate after so long.
fn after(left: f64, rate: f64, seconds: f64) -> f64 {
    let left = left - rate * seconds;
    if left > 0.0 { left } else { 0.0 }
}
