//! What a shuffle can expect of a network that carries other coflows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::table::{Table, Want, first_fit};
use super::{Open, Standing};
use crate::circuits::matching::usable_pair;
use crate::circuits::timetable::Reservation;
use crate::coflows::RackBytes;
use crate::ids::RackId;
use crate::placement::coscheduler::network::{Network, Transfer};
use crate::topology::{Plane, Topology};
use crate::units::{BitRate, Bytes, Span, Time};

/// Bytes of a pair of racks, and how they go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Way {
    /// Sending rack.
    pub from: RackId,
    /// Receiving rack.
    pub to: RackId,
    /// Payload.
    pub bytes: Bytes,
    /// Over a circuit; else over the electrical core.
    pub ocs: bool,
    /// When the last byte is through.
    pub until: Time,
}

/// What is to be expected of a shuffle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Estimate {
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

/// Bytes that share a rack's port to the electrical core, pair by pair: sorted, and the sums of the first k.
#[derive(Clone, Debug, Default)]
struct Shared {
    sizes: Vec<u64>,
    sums: Vec<u128>,
}

impl Shared {
    fn new(mut sizes: Vec<u64>) -> Self {
        sizes.sort_unstable();
        let sums = std::iter::once(0).chain(sizes.iter().scan(0u128, |s, &b| (*s += u128::from(b), Some(*s)).1)).collect();
        Self { sizes, sums }
    }

    /// What passes while a pair of `bytes` does, if all share alike.
    fn beside(&self, bytes: u64) -> u128 {
        let k = self.sizes.partition_point(|&b| b <= bytes);
        self.sums.get(k).copied().unwrap_or(0) + (self.sizes.len() - k) as u128 * u128::from(bytes)
    }
}

/// An open coflow, as it is laid out.
#[derive(Clone, Debug)]
struct Laid {
    /// T(C) of what it still has to send over circuits.
    bound: Span,
    /// Its ports (side * R + rack), and how long each is busy with it and all before it.
    ports: Vec<(usize, Span)>,
    /// When the last of them is done with it.
    done: Span,
}

/// A shuffle's own bytes at a port of the electrical core.
#[derive(Clone, Copy, Default)]
struct Own {
    total: u64,
    longest: u64,
}

/// The network as it stands, ready to be asked about shuffles.
#[derive(Clone, Debug)]
pub struct Busy<'a> {
    topology: &'a Topology,
    standing: &'a Standing,
    /// With payload for their rate.
    planes: Vec<Plane>,
    table: Table,
    /// Shortest T(C) first.
    laid: Vec<Laid>,
    /// By side and rack: the coflows that use it, and until when they and all before them do.
    queues: Vec<Vec<(usize, Span)>>,
    /// By side and rack.
    eps: Vec<Shared>,
}

/// Orders the pairs of a coflow so that all ports take turns: senders and receivers counted among those of the coflow, pair (i, j) in
/// round (j - i) modulo the larger number. Equal pairs then need no more than T(C). Circuits that are up come first.
fn rotation<'b>(pairs: impl Iterator<Item = &'b RackBytes>, is_up: impl Fn(RackId, RackId) -> bool) -> Vec<(usize, RackBytes)> {
    let all: Vec<RackBytes> = pairs.copied().collect();
    let index = |of: fn(&RackBytes) -> RackId| -> BTreeMap<RackId, usize> {
        let mut racks: Vec<RackId> = all.iter().map(of).collect();
        racks.sort_unstable();
        racks.dedup();
        racks.into_iter().enumerate().map(|(k, r)| (r, k)).collect()
    };
    let (senders, receivers) = (index(|p| p.from), index(|p| p.to));
    let rounds = senders.len().max(receivers.len()).max(1);
    let turn = |p: &RackBytes| (!is_up(p.from, p.to), (receivers[&p.to] + rounds - senders[&p.from]) % rounds, senders[&p.from]);
    let mut order: Vec<_> = all.iter().enumerate().map(|(k, p)| (turn(p), k)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, k)| (k, all[k])).collect()
}

impl<'a> Busy<'a> {
    /// Lays out what the network has to do already: open coflows and promises, shortest T(C) first.
    pub fn new(topology: &'a Topology, standing: &'a Standing) -> Self {
        let racks = topology.rack_count();
        let planes: Vec<Plane> = topology.planes.iter().map(|p| Plane { rate: topology.payload(p.rate), ..p.clone() }).collect();
        let mut busy = Self {
            table: Table::new(planes.len(), racks),
            laid: Vec::with_capacity(standing.coflows.len()),
            queues: vec![Vec::new(); 2 * racks],
            eps: Vec::new(),
            topology,
            standing,
            planes,
        };
        let mut order: Vec<(Span, &Open)> = vec![];
        let mut eps = vec![Vec::new(); 2 * racks];
        for c in &standing.coflows {
            let rides = |p: &&RackBytes| busy.may_ride(p.from, p.to);
            // A pair that waits for its circuit uses the core meanwhile.
            for p in c.light.iter().chain(&c.heavy) {
                eps[p.from.index()].push(p.bytes.0);
                eps[racks + p.to.index()].push(p.bytes.0);
            }
            if c.heavy.iter().any(|p| rides(&p)) {
                let needs = busy.needs(c.heavy.iter().filter(rides));
                order.push((needs.values().copied().max().unwrap_or(Span::ZERO), c));
            }
        }
        order.sort_by_key(|(bound, c)| (*bound, c.id));
        for (bound, c) in order {
            busy.lay(c, bound);
        }
        busy.eps = eps.into_iter().map(Shared::new).collect();
        busy
    }

    /// Whether some plane may join two racks.
    fn may_ride(&self, from: RackId, to: RackId) -> bool {
        let usable = |p: &Plane| self.standing.usable.get(p.id.index()).is_some_and(|u| usable_pair(u, p.duplex, from, to));
        self.standing.circuits && from != to && self.planes.iter().any(usable)
    }

    fn is_up(&self, from: RackId, to: RackId) -> bool {
        self.standing.up.iter().any(|m| m.racks() > from.index() && m.output(from) == Some(to))
    }

    /// How long each port (side * R + rack) must hold circuits for these pairs; several planes share.
    fn needs<'b>(&self, pairs: impl Iterator<Item = &'b RackBytes>) -> BTreeMap<usize, Span> {
        let racks = self.topology.rack_count();
        let mut needs = BTreeMap::<usize, Span>::new();
        for p in pairs {
            let Some(fastest) = self.planes.iter().max_by_key(|p| p.rate) else { continue };
            let time = fastest.rate.time_for(p.bytes) + fastest.delta;
            *needs.entry(p.from.index()).or_default() += time;
            *needs.entry(racks + p.to.index()).or_default() += time;
        }
        let n = self.planes.len().max(1) as u64;
        needs.values_mut().for_each(|t| *t = Span(t.0.div_ceil(n)));
        needs
    }

    /// Gives an open coflow its circuits.
    fn lay(&mut self, c: &Open, bound: Span) {
        let rank = self.laid.len();
        let pairs: Vec<RackBytes> = c.heavy.iter().filter(|p| self.may_ride(p.from, p.to)).copied().collect();
        let own = Table::new(self.planes.len(), self.topology.rack_count());
        for (_, p) in rotation(pairs.iter(), |i, j| self.is_up(i, j)) {
            if let Some(r) = self.circuit(&own, &p, c.start, rank) {
                let want = self.want(&self.planes[r.plane.index()], &p, c.start);
                let mut table = std::mem::replace(&mut self.table, Table::new(0, 0));
                table.take(&want, &r, rank);
                self.table = table;
            }
        }
        let begins = c.start.since(self.standing.from);
        let mut ports = vec![];
        for (port, need) in self.needs(pairs.iter()) {
            let before = self.queues[port].last().map_or(Span::ZERO, |q| q.1);
            let until = before.max(begins) + need;
            self.queues[port].push((rank, until));
            ports.push((port, until));
        }
        let done = ports.iter().map(|p| p.1).max().unwrap_or(Span::ZERO);
        self.laid.push(Laid { bound, ports, done });
    }

    fn want<'b>(&self, plane: &'b Plane, p: &RackBytes, start: Time) -> Want<'b> {
        Want { plane, input: p.from, output: p.to, light: plane.rate.time_for(p.bytes), start }
    }

    /// The circuit that has a pair through soonest, over all planes.
    fn circuit(&self, own: &Table, p: &RackBytes, start: Time, rank: usize) -> Option<Reservation> {
        let one = |plane: &Plane| {
            let k = plane.id.index();
            let usable = self.standing.usable.get(k).is_some_and(|u| usable_pair(u, plane.duplex, p.from, p.to));
            let up = self.standing.up.get(k)?;
            let fit = || first_fit(&self.table, own, up, self.standing.from, &self.want(plane, p, start), rank);
            if usable { fit() } else { None }
        };
        self.planes.iter().filter_map(one).min_by_key(|r| (r.until, r.plane))
    }

    /// When a rack's receiving ports have done what goes before a coflow whose T(C) is `bound`.
    pub(super) fn receiver_free(&self, rack: RackId, bound: Span) -> Time {
        let rank = self.rank(bound);
        let queue = &self.queues[self.topology.rack_count() + rack.index()];
        let k = queue.partition_point(|q| q.0 < rank);
        self.standing.from + queue[..k].last().map_or(Span::ZERO, |q| q.1)
    }

    /// How many open coflows go before one whose T(C) is `bound`: equal ones came sooner.
    fn rank(&self, bound: Span) -> usize {
        self.laid.partition_point(|l| l.bound <= bound)
    }

    /// Whether a coflow that goes before one of this T(C) has a port (plane, side, rack) at `t`.
    #[cfg(test)]
    pub(super) fn is_taken(&self, port: (crate::ids::PlaneId, usize, RackId), t: Time, bound: Span) -> bool {
        self.table.is_taken(port, t, self.rank(bound))
    }

    /// T(C) of these pairs, as far as they ride.
    pub(super) fn bound_of(&self, pairs: &[RackBytes]) -> Span {
        self.needs(pairs.iter()).into_values().max().unwrap_or(Span::ZERO)
    }

    /// What a coflow that begins at `start` can expect. Each pair of racks stands at most once; bytes that stay in a rack take no
    /// time. O(pairs log spans + open coflows + R^2).
    pub fn estimate(&self, coflow: &[Transfer], start: Time) -> Estimate {
        let crossing = || coflow.iter().filter(|t| t.from != t.to && t.bytes > Bytes::ZERO);
        let pairs: Vec<RackBytes> = crossing().map(|t| RackBytes { from: t.from, to: t.to, bytes: t.bytes }).collect();
        let rides = |p: &RackBytes| p.bytes >= self.standing.threshold && self.may_ride(p.from, p.to);
        let needs = self.needs(pairs.iter().filter(|p| rides(p)));
        let rank = self.rank(needs.values().copied().max().unwrap_or(Span::ZERO));
        let mut way: Vec<Option<Reservation>> = vec![None; pairs.len()];
        let mut core = vec![Own::default(); 2 * self.topology.rack_count()];
        pairs.iter().filter(|p| !rides(p)).for_each(|p| self.load(&mut core, p));
        let mut own = Table::new(self.planes.len(), self.topology.rack_count());
        let turns = rotation(pairs.iter(), |i, j| self.is_up(i, j));
        for (k, p) in turns.into_iter().filter(|(_, p)| rides(p)) {
            let slow = start + self.core_time(&core, &p, p.bytes.0);
            match self.circuit(&own, &p, start, rank).filter(|r| r.until <= slow) {
                Some(r) => {
                    own.take(&self.want(&self.planes[r.plane.index()], &p, start), &r, 0);
                    way[k] = Some(r);
                }
                None => self.load(&mut core, &p),
            }
        }
        let until = |(p, r): (&RackBytes, &Option<Reservation>)| Way {
            from: p.from,
            to: p.to,
            bytes: p.bytes,
            ocs: r.is_some(),
            until: r.map_or_else(|| start + self.core_time(&core, p, 0), |r| r.until),
        };
        let ways: Vec<Way> = pairs.iter().zip(&way).map(until).collect();
        let bound = super::bound(coflow, self.topology);
        let took = ways.iter().map(|w| w.until.since(start)).max().unwrap_or(Span::ZERO);
        let mut circuits: Vec<Reservation> = way.into_iter().flatten().collect();
        circuits.sort_unstable_by_key(|r| (r.setup_at, r.plane, r.input));
        Estimate { cct: took.max(bound), bound, others: self.delays(&needs, rank, start), pairs: ways, circuits }
    }

    fn load(&self, core: &mut [Own], p: &RackBytes) {
        for port in [p.from.index(), self.topology.rack_count() + p.to.index()] {
            let own = &mut core[port];
            own.total = own.total.saturating_add(p.bytes.0);
            own.longest = own.longest.max(p.bytes.0);
        }
    }

    /// How long the core takes for all of a shuffle's bytes at the two ports of a pair, and `more` of this pair: what others have there
    /// shares alike, pair by pair.
    fn core_time(&self, core: &[Own], p: &RackBytes, more: u64) -> Span {
        let racks = self.topology.rack_count();
        let port = |rack: RackId, port: usize| {
            let own = core[port];
            let all = u128::from(own.total) + u128::from(more) + self.eps[port].beside(own.longest.max(more));
            let rate: BitRate = self.topology.payload(self.topology.racks[rack.index()].uplink);
            rate.time_for(Bytes(u64::try_from(all).unwrap_or(u64::MAX)))
        };
        port(p.from, p.from.index()).max(port(p.to, racks + p.to.index()))
    }

    /// By how much the coflows from `rank` on end later if these ports are busy for so long before them: each by what it waits at its
    /// worst port. What is over before the shuffle begins waits for nothing.
    fn delays(&self, needs: &BTreeMap<usize, Span>, rank: usize, start: Time) -> Span {
        let begins = start.since(self.standing.from);
        let late = |l: &Laid| {
            let then =
                |&(port, until): &(usize, Span)| if until > begins { until + needs.get(&port).copied().unwrap_or_default() } else { until };
            l.ports.iter().map(then).max().unwrap_or(Span::ZERO).saturating_sub(l.done)
        };
        self.laid[rank..].iter().map(late).fold(Span::ZERO, |a, b| a + b)
    }
}

impl Network for Busy<'_> {
    fn completion(&self, coflow: &[Transfer], start: Span) -> Span {
        self.estimate(coflow, self.standing.now + start).cct
    }
}
