//! The senders of a coflow, or its receivers.

use super::reduce;
use super::residual::Residual;
use crate::bundle::WORK_PER_BYTE;
use crate::ids::HostId;

/// Less than one bit counts as nothing: amounts are real numbers.
const NOTHING: f64 = 1.0;

/// Total of one host as a sender, or as a receiver.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    /// The host.
    pub host: HostId,
    /// All its bytes.
    pub bytes: u64,
    /// Those of them between racks.
    pub between: u64,
}

/// The senders of a coflow, or its receivers. Hosts that are not done come first.
pub struct Endpoints {
    /// Senders: 0, receivers: 1.
    side: usize,
    sums: Vec<Sum>,
    /// Work between racks that has been booked.
    booked: Vec<u128>,
    /// Of the hosts that are not done: host, bits left, bits a second, and the base rate, which
    /// stays until all coflows are decided again.
    hosts: Vec<u32>,
    left: Vec<f64>,
    rates: Vec<f64>,
    base: Vec<f64>,
    /// Hosts that are done, with the rates in bits a second that were not returned yet.
    freed: Vec<(u32, f64)>,
    /// Hosts that are not done, as bits.
    live: Vec<u64>,
}

impl Endpoints {
    /// All rates zero, in a network of `hosts` hosts.
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

    /// Hosts that are not done.
    pub fn hosts(&self) -> &[u32] {
        &self.hosts
    }

    /// Number of hosts, done or not.
    pub fn len(&self) -> usize {
        self.sums.len()
    }

    /// Number of hosts that are not done on either side.
    pub fn in_common(&self, other: &Self) -> usize {
        self.live.iter().zip(&other.live).map(|(a, b)| (a & b).count_ones() as usize).sum()
    }

    /// Bytes of the largest sum, divided by the mean of all.
    pub fn above_mean(&self) -> f64 {
        let bytes = |s: &Sum| s.bytes as f64;
        let all: f64 = self.sums.iter().map(bytes).sum();
        self.sums.iter().map(bytes).fold(0.0, f64::max) * self.sums.len() as f64 / all
    }

    /// Hosts that are not done, as bits.
    pub fn live(&self) -> &[u64] {
        &self.live
    }

    /// Whether all hosts are done.
    pub fn is_over(&self) -> bool {
        self.left.is_empty()
    }

    /// Hosts that are not done, with their bits left.
    pub fn loads(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.hosts.iter().zip(&self.left).map(|(&host, &left)| (host as usize, left))
    }

    /// Bits left of each host that is not done.
    pub fn left(&self) -> &[f64] {
        &self.left
    }

    /// Sum of all rates, in bits a second.
    pub fn speed(&self) -> f64 {
        reduce::sum(&self.rates)
    }

    /// Writes what `room` has for each host that is not done into `into`, in bits a second. Returns
    /// the sum.
    pub fn room(&self, room: &Residual, into: &mut Vec<f64>) -> f64 {
        let there = room.left(self.side);
        into.clear();
        into.extend(self.hosts.iter().map(|&host| there[host as usize]));
        reduce::sum(into)
    }

    /// The sum of the base rates.
    pub fn base(&self) -> f64 {
        reduce::sum(&self.base)
    }

    /// Sets the base rates in bits a second, in the order of [`Endpoints::hosts`].
    pub fn set_base(&mut self, rates: &[f64]) {
        self.base.copy_from_slice(rates);
    }

    /// Sets the base rate of each host to `part` times the bits that it has left, in bits a second.
    pub fn set_base_part(&mut self, part: f64) {
        self.base.iter_mut().zip(&self.left).for_each(|(base, left)| *base = left * part);
    }

    /// Takes the base rates from `room`.
    pub fn hold_base(&self, room: &mut Residual) {
        self.take(&self.base, room);
    }

    /// Sets all base rates to zero, and drops the rates that were to be returned: all interfaces
    /// are whole again.
    pub fn clear_base(&mut self) {
        self.freed.clear();
        self.base.fill(0.0);
    }

    /// Multiplies all base rates by `part`.
    pub fn scale_base(&mut self, part: f64) {
        self.base.iter_mut().for_each(|base| *base *= part);
    }

    /// Sets the rates in bits a second, in the order of [`Endpoints::hosts`].
    pub fn set_rates(&mut self, rates: &[f64]) {
        self.rates.copy_from_slice(rates);
    }

    /// Multiplies all rates by `part`.
    pub fn scale(&mut self, part: f64) {
        self.rates.iter_mut().for_each(|rate| *rate *= part);
    }

    /// Returns the rates of all hosts to `room`, with those of hosts that are done.
    pub fn give(&mut self, room: &mut Residual) {
        let all = self.hosts.iter().copied().zip(self.rates.iter().copied());
        all.chain(self.freed.drain(..))
            .for_each(|(host, rate)| room.give(self.side, host as usize, rate));
    }

    /// Sets the rate of each host to its base rate plus `more`, in bits a second. Takes `more` from
    /// `room`; the base rates were taken before.
    pub fn go(&mut self, more: Option<&[f64]>, room: &mut Residual) {
        self.rates.copy_from_slice(&self.base);
        if let Some(more) = more {
            self.speed_up(more, room);
        }
    }

    /// Adds `by` to the rates, in bits a second, and takes it from `room`.
    pub fn speed_up(&mut self, by: &[f64], room: &mut Residual) {
        self.rates.iter_mut().zip(by).for_each(|(rate, by)| *rate += by);
        self.take(by, room);
    }

    fn take(&self, rates: &[f64], room: &mut Residual) {
        self.hosts
            .iter()
            .zip(rates)
            .for_each(|(&host, &rate)| room.take(self.side, host as usize, rate));
    }

    /// Seconds until the first host is done.
    pub fn ends(&self) -> f64 {
        // A rate of zero makes that infinite.
        reduce::least(&self.left, &self.rates, |left, rate| left / rate)
    }

    /// Lets `seconds` pass at the present rates. True if a host is done.
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

    /// Moves hosts that are done behind the others; the last host that is not done takes the index
    /// of each.
    fn part(&mut self) {
        for k in (0..self.left.len()).rev() {
            if self.left[k] >= NOTHING {
                continue;
            }
            let host = self.hosts.swap_remove(k);
            self.live[host as usize / 64] &= !(1 << (host % 64));
            self.freed.push((host, self.rates[k]));
            [&mut self.left, &mut self.rates, &mut self.base]
                .into_iter()
                .for_each(|list| _ = list.swap_remove(k));
            let last = self.hosts.len();
            self.sums.swap(k, last);
            self.booked.swap(k, last);
        }
    }

    /// Hosts that are done since the last call of this or of [`Endpoints::give`], in the order in
    /// which others took their indices.
    pub fn lost(&mut self) -> impl Iterator<Item = u32> {
        self.freed.drain(..).map(|(host, _)| host)
    }

    /// Passes the work between racks up to `seconds` from now that was not passed before, as (host,
    /// work). `None`: all of it.
    pub fn book(&mut self, seconds: Option<f64>, mut each: impl FnMut(HostId, u128)) {
        for (k, (&Sum { host, bytes, between }, booked)) in
            self.sums.iter().zip(&mut self.booked).enumerate()
        {
            let whole = u128::from(between) * WORK_PER_BYTE;
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

/// Bits left after `seconds` at `rate` bits a second. Rounding never makes them negative.
fn after(left: f64, rate: f64, seconds: f64) -> f64 {
    let left = left - rate * seconds;
    if left > 0.0 { left } else { 0.0 }
}
