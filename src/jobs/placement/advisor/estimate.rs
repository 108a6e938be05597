//! What a shuffle can expect of a network that carries other coflows.

use std::convert::Infallible;

use serde::{Deserialize, Serialize};

use super::occupancy::{Occupancy, rotation};
use super::table::PortSpans;
use crate::circuits::timetable::Reservation;
use crate::coflows::RackBytes;
use crate::ids::RackId;
use crate::placement::coscheduler::network::{CoflowForecaster, RackTransfer};
use crate::units::{BitRate, Bytes, NANOS, Span, Time};

/// Bytes of a pair of racks, and how they go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Way {
    /// Sending rack.
    pub from: RackId,
    /// Receiving rack.
    pub to: RackId,
    /// Payload.
    pub bytes: Bytes,
    /// Whether they go over a circuit; else over the electrical core.
    pub ocs: bool,
    /// When the last byte has been carried.
    pub until: Time,
}

/// What is to be expected of a shuffle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShuffleEstimate {
    /// Its completion time.
    pub cct: Span,
    /// No schedule is faster.
    pub bound: Span,
    /// By how much open coflows end later because of it, in all.
    pub others: Span,
    /// Its pairs between racks, as they were given.
    pub pairs: Vec<Way>,
    /// The circuits that it takes, by time, plane and input.
    pub circuits: Vec<Reservation>,
}

/// A shuffle's own bytes at a port of the electrical core.
#[derive(Clone, Copy, Default)]
pub(super) struct OwnBytes {
    pub total: u64,
    pub longest: u64,
}

/// Whether `bytes` take `long` or longer: [`BitRate::time_for`] compared, without its division.
pub(super) fn takes(rate: BitRate, bytes: u128, long: Span) -> bool {
    // ceil(bits / rate) >= long.
    let bits = bytes.min(u64::MAX.into()) * 8 * u128::from(NANOS);
    long == Span::ZERO || (bytes > 0 && bits > u128::from(long.0 - 1) * u128::from(rate.0))
}

impl Occupancy<'_> {
    /// What a coflow that begins at `start` can expect. Each pair of racks is given at most once;
    /// bytes that stay in a rack take no time. O(P (log S + s) + open coflows + R), see
    /// [`Occupancy::new`].
    pub fn estimate(&self, coflow: &[RackTransfer], start: Time) -> ShuffleEstimate {
        let Ok(e) = self.estimate_while(coflow, start, |_, _| Ok::<(), Infallible>(()));
        e
    }

    /// The same, but given up as soon as `go_on` says so of what is certain: the least completion
    /// time, and the delay of others.
    pub(super) fn estimate_while<E>(
        &self,
        coflow: &[RackTransfer],
        start: Time,
        go_on: impl Fn(Span, Span) -> Result<(), E>,
    ) -> Result<ShuffleEstimate, E> {
        let racks = self.topology.rack_count();
        let crossing = |t: &&RackTransfer| t.from != t.to && t.bytes > Bytes::ZERO;
        let pairs: Vec<RackBytes> = coflow
            .iter()
            .filter(crossing)
            .map(|t| RackBytes { from: t.from, to: t.to, bytes: t.bytes })
            .collect();
        let rides: Vec<bool> = pairs
            .iter()
            .map(|p| p.bytes >= self.standing.threshold && self.may_ride(p.from, p.to))
            .collect();
        let lights = self.lights(&pairs);
        let (riding, riding_lights): (Vec<RackBytes>, Vec<Span>) = pairs
            .iter()
            .zip(&lights)
            .zip(&rides)
            .filter(|r| *r.1)
            .map(|((p, l), _)| (*p, *l))
            .unzip();
        let needs = self.needs(&riding, &riding_lights);
        let rank = self.rank(needs.iter().copied().max().unwrap_or(Span::ZERO));
        let others = self.delays(&needs, rank, start);
        let bound = self.bound(&pairs);
        go_on(bound, others)?;
        let mut way: Vec<Option<Reservation>> = vec![None; pairs.len()];
        let mut core = vec![OwnBytes::default(); 2 * racks];
        pairs.iter().zip(&rides).filter(|r| !r.1).for_each(|(p, _)| self.load(&mut core, p));
        let mut own = PortSpans::new(self.planes.len(), racks);
        for k in rotation(&pairs, racks, |i, j| self.is_up(i, j)).into_iter().filter(|&k| rides[k])
        {
            let p = &pairs[k];
            let found = self
                .circuit(&own, p, lights[k], start, rank)
                .filter(|(_, r)| self.core_takes(&core, p, r.until.since(start)));
            match found {
                Some((want, r)) => {
                    go_on(r.until.since(start), others)?;
                    own.take(&want, &r, 0);
                    way[k] = Some(r);
                }
                None => self.load(&mut core, p),
            }
        }
        let until = |(p, r): (&RackBytes, &Option<Reservation>)| Way {
            from: p.from,
            to: p.to,
            bytes: p.bytes,
            ocs: r.is_some(),
            until: r.map_or_else(|| start + self.core_time(&core, p), |r| r.until),
        };
        let ways: Vec<Way> = pairs.iter().zip(&way).map(until).collect();
        let took = ways.iter().map(|w| w.until.since(start)).max().unwrap_or(Span::ZERO);
        let mut circuits: Vec<Reservation> = way.into_iter().flatten().collect();
        circuits.sort_unstable_by_key(|r| (r.setup_at, r.plane, r.input));
        Ok(ShuffleEstimate { cct: took.max(bound), bound, others, pairs: ways, circuits })
    }

    fn bound(&self, pairs: &[RackBytes]) -> Span {
        let racks = self.topology.rack_count();
        let mut bytes = vec![0u64; 2 * racks];
        for p in pairs {
            for port in [p.from.index(), racks + p.to.index()] {
                bytes[port] = bytes[port].saturating_add(p.bytes.0);
            }
        }
        self.least_time(bytes.into_iter())
    }

    fn load(&self, core: &mut [OwnBytes], p: &RackBytes) {
        for port in [p.from.index(), self.topology.rack_count() + p.to.index()] {
            let own = &mut core[port];
            own.total = own.total.saturating_add(p.bytes.0);
            own.longest = own.longest.max(p.bytes.0);
        }
    }

    /// What passes the core at a port with all of a shuffle's bytes there, and `more` of one pair:
    /// what others have there shares alike, pair by pair.
    pub(super) fn core_bytes(&self, own: OwnBytes, port: usize, more: u64) -> u128 {
        u128::from(own.total) + u128::from(more) + self.eps[port].beside(own.longest.max(more))
    }

    /// How long the core takes for all of a shuffle's bytes at the two ports of a pair.
    fn core_time(&self, core: &[OwnBytes], p: &RackBytes) -> Span {
        let racks = self.topology.rack_count();
        let port = |rack: RackId, port: usize| {
            let all = self.core_bytes(core[port], port, 0);
            self.uplinks[rack.index()].time_for(Bytes(u64::try_from(all).unwrap_or(u64::MAX)))
        };
        port(p.from, p.from.index()).max(port(p.to, racks + p.to.index()))
    }

    /// Whether the core would take `long` or longer for this pair, beside what it has of the
    /// shuffle.
    fn core_takes(&self, core: &[OwnBytes], p: &RackBytes, long: Span) -> bool {
        let racks = self.topology.rack_count();
        let port = |rack: RackId, port: usize| {
            takes(self.uplinks[rack.index()], self.core_bytes(core[port], port, p.bytes.0), long)
        };
        port(p.from, p.from.index()) || port(p.to, racks + p.to.index())
    }
}

impl CoflowForecaster for Occupancy<'_> {
    fn completion(&self, coflow: &[RackTransfer], start: Span) -> Span {
        self.estimate(coflow, self.standing.now + start).cct
    }
}
