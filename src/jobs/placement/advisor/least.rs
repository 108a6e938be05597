//! What a placement costs at least: cheap, and never above its estimate.

use super::estimate::{OwnBytes, takes};
use super::occupancy::Occupancy;
use crate::ids::RackId;
use crate::placement::coscheduler::network::RackTransfer;
use crate::units::{Bytes, Span, Time};

/// What a port has to pass of a shuffle.
#[derive(Clone, Copy, Default)]
struct ShufflePort {
    /// Bytes of pairs that may ride.
    heavy: u64,
    /// The number of these pairs, and of those among them to which no circuit is laid yet.
    circuits: u64,
    dark: u64,
    /// The smallest of these pairs.
    smallest: u64,
    /// Bytes of all other pairs.
    light: OwnBytes,
}

impl ShufflePort {
    fn carry(&mut self, bytes: u64, rides: bool, joined: bool) {
        if !rides {
            self.light.total = self.light.total.saturating_add(bytes);
            self.light.longest = self.light.longest.max(bytes);
            return;
        }
        self.smallest = if self.circuits == 0 { bytes } else { self.smallest.min(bytes) };
        self.heavy = self.heavy.saturating_add(bytes);
        self.circuits += 1;
        self.dark += u64::from(!joined);
    }
}

/// A lower bound on all estimates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Least {
    /// The completion time.
    pub cct: Span,
    /// The delay of open coflows.
    pub others: Span,
}

impl Occupancy<'_> {
    /// The least that [`Occupancy::estimate`] can say of a coflow. O(pairs + ports (log S + s) +
    /// ports of open coflows).
    ///
    /// At each port the larger of two. One is all bytes over all that the port has. The other is
    /// either all pairs that ride, in the port time that is left by the coflows before it, or one
    /// of them at least, the smallest, over the core.
    pub(super) fn least(&self, coflow: &[RackTransfer], start: Time) -> Least {
        let ports = self.tally(coflow);
        let (low, high) = self.needs_between(&ports);
        let most = |needs: &[Span]| needs.iter().copied().max().unwrap_or(Span::ZERO);
        // Needs are known to the nanosecond a pair, so nearly always these are the same.
        let (first, last) = (self.rank(most(&low)), self.rank(most(&high)));
        let all = self.least_time(ports.iter().map(|p| p.heavy.saturating_add(p.light.total)));
        let one = |(k, port): (usize, &ShufflePort)| self.port_takes(k, port, start, first);
        let worst = ports.iter().enumerate().map(one).max().unwrap_or(Span::ZERO);
        Least { cct: all.max(worst), others: self.delays(&low, last, start) }
    }

    fn tally(&self, coflow: &[RackTransfer]) -> Vec<ShufflePort> {
        let racks = self.topology.rack_count();
        let mut ports = vec![ShufflePort::default(); 2 * racks];
        for t in coflow.iter().filter(|t| t.from != t.to && t.bytes > Bytes::ZERO) {
            let rides = t.bytes >= self.standing.threshold && self.may_ride(t.from, t.to);
            let joined = rides && self.joined[t.from.index() * racks + t.to.index()];
            ports[t.from.index()].carry(t.bytes.0, rides, joined);
            ports[racks + t.to.index()].carry(t.bytes.0, rides, joined);
        }
        ports
    }

    /// Each port's need ([`Occupancy::needs`]), between what its bytes take together and a
    /// nanosecond more a pair.
    fn needs_between(&self, ports: &[ShufflePort]) -> (Vec<Span>, Vec<Span>) {
        let Some(fastest) = self.fastest.map(|k| &self.planes[k]) else {
            return (vec![Span::ZERO; ports.len()], vec![Span::ZERO; ports.len()]);
        };
        let n = self.planes.len() as u64;
        let need = |p: &ShufflePort| {
            let least = fastest.rate.time_for(Bytes(p.heavy)) + fastest.delta * p.circuits;
            (Span(least.0.div_ceil(n)), Span((least + Span(p.circuits)).0.div_ceil(n)))
        };
        ports.iter().map(need).unzip()
    }

    /// How long a port takes at least, from `start`, if the coflows before `rank` go first.
    fn port_takes(&self, k: usize, port: &ShufflePort, start: Time, rank: usize) -> Span {
        let racks = self.topology.rack_count();
        let (side, rack) = (k / racks, k % racks);
        let core = |more: u64| self.core_bytes(port.light, k, more);
        let rate = self.uplinks[rack];
        let time = |bytes: u128| rate.time_for(Bytes(u64::try_from(bytes).unwrap_or(u64::MAX)));
        let light = if port.light.total > 0 { time(core(0)) } else { Span::ZERO };
        let Some(fastest) = self.fastest.filter(|_| port.circuits > 0) else { return light };
        let need = self.planes[fastest].rate.time_for(Bytes(port.heavy)) + self.dark * port.dark;
        let end = self.table.free_for(
            (side, RackId::from(rack)),
            start.max(self.standing.from),
            need,
            rank,
        );
        let ride = end.since(start);
        // One pair over the core, if that is sooner.
        let ride =
            if takes(rate, core(port.smallest), ride) { ride } else { time(core(port.smallest)) };
        light.max(ride)
    }
}
