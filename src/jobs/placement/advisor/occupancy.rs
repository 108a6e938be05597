//! What a network has to carry already, laid out on its ports.

use super::NetworkState;
use super::table::{PortSpans, Want, first_fit};
use crate::circuits::matching::usable_pair;
use crate::circuits::timetable::Reservation;
use crate::coflows::RackBytes;
use crate::ids::{CoflowId, RackId};
use crate::topology::{Plane, Rack, Topology};
use crate::units::{BitRate, Bytes, Span, Time};

/// Bytes that share a rack's port to the electrical core, pair by pair: sorted, and the sums of the
/// first k.
#[derive(Clone, Debug, Default)]
pub(super) struct CoreShare {
    sizes: Vec<u64>,
    sums: Vec<u128>,
}

impl CoreShare {
    fn new(mut sizes: Vec<u64>) -> Self {
        sizes.sort_unstable();
        let sums = std::iter::once(0)
            .chain(sizes.iter().scan(0u128, |s, &b| (*s += u128::from(b), Some(*s)).1))
            .collect();
        Self { sizes, sums }
    }

    /// What passes while a pair of `bytes` does, if all share alike.
    pub fn beside(&self, bytes: u64) -> u128 {
        let k = self.sizes.partition_point(|&b| b <= bytes);
        self.sums.get(k).copied().unwrap_or(0) + (self.sizes.len() - k) as u128 * u128::from(bytes)
    }
}

/// An open coflow, as it is laid out.
#[derive(Clone, Debug)]
struct LaidOut {
    /// T(C) of what it still has to send over circuits.
    bound: Span,
    /// Its ports (side * R + rack), and how long each is busy with it and all before it.
    ports: Vec<(usize, Span)>,
    /// When the last of them is done with it.
    done: Span,
}

/// An open coflow that is to be laid out.
struct Laying {
    start: Time,
    /// The pairs that ride.
    pairs: Vec<RackBytes>,
    lights: Vec<Span>,
    needs: Vec<Span>,
}

/// The present network, ready to be asked about shuffles.
#[derive(Clone, Debug)]
pub struct Occupancy<'a> {
    pub(super) topology: &'a Topology,
    pub(super) standing: &'a NetworkState,
    /// The planes, with payload for their rate.
    pub(super) planes: Vec<Plane>,
    /// The place of the fastest in `planes`, by which needs are counted.
    pub(super) fastest: Option<usize>,
    /// By rack: its link to the core, in payload.
    pub(super) uplinks: Vec<BitRate>,
    /// By rack: the most that passes its core link and its circuits together, and its hosts'
    /// interfaces.
    pub(super) through: Vec<BitRate>,
    pub(super) table: PortSpans,
    /// By pair of racks (from * R + to): a circuit is up or laid, which another coflow may find
    /// lit.
    pub(super) joined: Vec<bool>,
    /// The dark time before a circuit that is not `joined`, at least.
    pub(super) dark: Span,
    /// Shortest T(C) first.
    laid: Vec<LaidOut>,
    /// By side and rack: the coflows that use it, and until when they and all before them do.
    queues: Vec<Vec<(usize, Span)>>,
    /// By side and rack.
    pub(super) eps: Vec<CoreShare>,
}

/// Orders the pairs of a coflow so that all ports take turns: senders and receivers counted among
/// those of the coflow, pair (i, j) in round (j - i) modulo the larger number. Equal pairs then
/// need no more than T(C). Circuits that are up come first. The places of the pairs; O(R + pairs
/// log pairs).
pub(super) fn rotation(
    pairs: &[RackBytes],
    racks: usize,
    is_up: impl Fn(RackId, RackId) -> bool,
) -> Vec<usize> {
    let count = |of: fn(&RackBytes) -> RackId| {
        let mut index = vec![0u32; racks];
        pairs.iter().for_each(|p| index[of(p).index()] = 1);
        let mut n = 0;
        for i in &mut index {
            (*i, n) = (n, n + *i);
        }
        (index, n)
    };
    let ((senders, s), (receivers, r)) = (count(|p| p.from), count(|p| p.to));
    let rounds = s.max(r).max(1);
    let key = |(k, p): (usize, &RackBytes)| {
        let (i, j) = (senders[p.from.index()], receivers[p.to.index()]);
        (!is_up(p.from, p.to), (j + rounds - i) % rounds, i, k)
    };
    let mut order: Vec<(bool, u32, u32, usize)> = pairs.iter().enumerate().map(key).collect();
    order.sort_unstable();
    order.into_iter().map(|o| o.3).collect()
}

impl<'a> Occupancy<'a> {
    /// Lays out what the network has to do already: open coflows and promises, shortest T(C) first.
    /// O(P (log S + s)) for P pairs, S spans a port, and s of them in the way.
    pub fn new(topology: &'a Topology, standing: &'a NetworkState) -> Self {
        let racks = topology.rack_count();
        let planes: Vec<Plane> = topology
            .planes
            .iter()
            .map(|p| Plane { rate: topology.payload(p.rate), ..p.clone() })
            .collect();
        let ocs = topology.ocs_rate();
        let through = |r: &Rack| {
            let links = BitRate(r.uplink.0.saturating_add(ocs.0));
            topology.payload(links).min(topology.payload(topology.rack_nic(r.id)))
        };
        let mut busy = Self {
            table: PortSpans::new(planes.len(), racks),
            joined: vec![false; racks * racks],
            // On a duplex plane the way back is lit, too.
            dark: planes
                .iter()
                .map(|p| if p.duplex { Span::ZERO } else { p.delta })
                .min()
                .unwrap_or(Span::ZERO),
            laid: Vec::with_capacity(standing.coflows.len()),
            queues: vec![Vec::new(); 2 * racks],
            eps: Vec::new(),
            fastest: (0..planes.len()).max_by_key(|&k| planes[k].rate),
            uplinks: topology.racks.iter().map(|r| topology.payload(r.uplink)).collect(),
            through: topology.racks.iter().map(through).collect(),
            topology,
            standing,
            planes,
        };
        let mut order: Vec<(Span, CoflowId, Laying)> = vec![];
        let mut eps = vec![Vec::new(); 2 * racks];
        for c in &standing.coflows {
            // A pair that waits for its circuit uses the core meanwhile.
            for p in c.light.iter().chain(&c.heavy) {
                eps[p.from.index()].push(p.bytes.0);
                eps[racks + p.to.index()].push(p.bytes.0);
            }
            let pairs: Vec<RackBytes> =
                c.heavy.iter().filter(|p| busy.may_ride(p.from, p.to)).copied().collect();
            if !pairs.is_empty() {
                let lights = busy.lights(&pairs);
                let needs = busy.needs(&pairs, &lights);
                order.push((
                    needs.iter().copied().max().unwrap_or(Span::ZERO),
                    c.id,
                    Laying { start: c.start, pairs, lights, needs },
                ));
            }
        }
        order.sort_by_key(|(bound, id, _)| (*bound, *id));
        let own = PortSpans::new(busy.planes.len(), racks);
        for (bound, _, c) in order {
            busy.lay(&c, bound, &own);
        }
        for (from, up) in standing
            .up
            .iter()
            .flat_map(|m| (0..m.racks()).map(move |i| (i, m.output(RackId::from(i)))))
        {
            up.into_iter().for_each(|to| busy.joined[from * racks + to.index()] = true);
        }
        busy.eps = eps.into_iter().map(CoreShare::new).collect();
        busy
    }

    /// Whether some plane may join two racks.
    pub(super) fn may_ride(&self, from: RackId, to: RackId) -> bool {
        let usable = |p: &Plane| {
            self.standing
                .usable
                .get(p.id.index())
                .is_some_and(|u| usable_pair(u, p.duplex, from, to))
        };
        self.standing.circuits && from != to && self.planes.iter().any(usable)
    }

    /// Whether a circuit from the one to the other will be up at the beginning.
    pub(super) fn is_up(&self, from: RackId, to: RackId) -> bool {
        self.standing.up.iter().any(|m| m.racks() > from.index() && m.output(from) == Some(to))
    }

    /// How long the fastest plane takes for each of these pairs, dark time left out.
    pub(super) fn lights(&self, pairs: &[RackBytes]) -> Vec<Span> {
        let Some(fastest) = self.fastest else { return vec![Span::ZERO; pairs.len()] };
        let rate = self.planes[fastest].rate;
        // A shuffle's pairs take few sizes, one after the other.
        let mut last = [(Bytes::ZERO, Span::ZERO); 2];
        let one = |p: &RackBytes| {
            if last[0].0 != p.bytes {
                last.swap(0, 1);
                if last[0].0 != p.bytes {
                    last[0] = (p.bytes, rate.time_for(p.bytes));
                }
            }
            last[0].1
        };
        pairs.iter().map(one).collect()
    }

    /// How long each port (side * R + rack) must hold circuits for these pairs, whose `lights` are
    /// known; several planes share.
    pub(super) fn needs(&self, pairs: &[RackBytes], lights: &[Span]) -> Vec<Span> {
        let racks = self.topology.rack_count();
        let mut needs = vec![Span::ZERO; 2 * racks];
        let Some(fastest) = self.fastest else { return needs };
        let delta = self.planes[fastest].delta;
        for (p, &light) in pairs.iter().zip(lights) {
            needs[p.from.index()] += light + delta;
            needs[racks + p.to.index()] += light + delta;
        }
        let n = self.planes.len() as u64;
        needs.iter_mut().for_each(|t| *t = Span(t.0.div_ceil(n)));
        needs
    }

    /// Gives an open coflow its circuits; `none` is an empty table.
    fn lay(&mut self, c: &Laying, bound: Span, none: &PortSpans) {
        let rank = self.laid.len();
        for k in rotation(&c.pairs, self.topology.rack_count(), |i, j| self.is_up(i, j)) {
            // Its own circuits are in the way, too.
            if let Some((want, r)) = self.circuit(none, &c.pairs[k], c.lights[k], c.start, rank + 1)
            {
                let (plane, light) = (want.plane.clone(), want.light);
                self.joined[r.input.index() * self.topology.rack_count() + r.output.index()] = true;
                self.table.take(
                    &Want {
                        plane: &plane,
                        input: r.input,
                        output: r.output,
                        light,
                        start: c.start,
                    },
                    &r,
                    rank,
                );
            }
        }
        let begins = c.start.since(self.standing.from);
        let mut ports = vec![];
        for (port, &need) in c.needs.iter().enumerate().filter(|n| *n.1 > Span::ZERO) {
            let before = self.queues[port].last().map_or(Span::ZERO, |q| q.1);
            let until = before.max(begins) + need;
            self.queues[port].push((rank, until));
            ports.push((port, until));
        }
        let done = ports.iter().map(|p| p.1).max().unwrap_or(Span::ZERO);
        self.laid.push(LaidOut { bound, ports, done });
    }

    /// The circuit that has a pair through soonest, over all planes; `light` is what the fastest
    /// takes.
    pub(super) fn circuit(
        &self,
        own: &PortSpans,
        p: &RackBytes,
        light: Span,
        start: Time,
        rank: usize,
    ) -> Option<(Want<'_>, Reservation)> {
        let one = |n: usize| {
            let (plane, k) = (&self.planes[n], self.planes[n].id.index());
            let usable = self
                .standing
                .usable
                .get(k)
                .is_some_and(|u| usable_pair(u, plane.duplex, p.from, p.to));
            let up = self.standing.up.get(k).filter(|_| usable)?;
            let light = if Some(n) == self.fastest { light } else { plane.rate.time_for(p.bytes) };
            let want = Want { plane, input: p.from, output: p.to, light, start };
            first_fit(&self.table, own, up, self.standing.from, &want, rank).map(|r| (want, r))
        };
        (0..self.planes.len()).filter_map(one).min_by_key(|(_, r)| (r.until, r.plane))
    }

    /// When a rack's receiving ports have done what goes before a coflow whose T(C) is `bound`.
    pub(super) fn receiver_free(&self, rack: RackId, bound: Span) -> Time {
        let rank = self.rank(bound);
        let queue = &self.queues[self.topology.rack_count() + rack.index()];
        let k = queue.partition_point(|q| q.0 < rank);
        self.standing.from + queue[..k].last().map_or(Span::ZERO, |q| q.1)
    }

    /// How many open coflows go before one whose T(C) is `bound`: equal ones came sooner.
    pub(super) fn rank(&self, bound: Span) -> usize {
        self.laid.partition_point(|l| l.bound <= bound)
    }

    /// Whether a coflow that goes before one of this T(C) has a port (plane, side, rack) at `t`.
    #[cfg(test)]
    pub(super) fn is_taken(
        &self,
        port: (crate::ids::PlaneId, usize, RackId),
        t: Time,
        bound: Span,
    ) -> bool {
        self.table.is_taken(port, t, self.rank(bound))
    }

    /// T(C) of these pairs, as far as they ride.
    pub(super) fn bound_of(&self, pairs: &[RackBytes]) -> Span {
        self.needs(pairs, &self.lights(pairs)).into_iter().max().unwrap_or(Span::ZERO)
    }

    /// No schedule moves these bytes by port (side * R + rack) sooner:
    /// [`crate::coflows::bounds::hybrid_racks`]. O(R).
    pub(super) fn least_time(&self, bytes: impl Iterator<Item = u64>) -> Span {
        let rates = self.through.iter().chain(&self.through);
        let slower = |a: (u64, BitRate), b: (u64, BitRate)| {
            let more = u128::from(b.0) * u128::from(a.1.0) > u128::from(a.0) * u128::from(b.1.0);
            if more { b } else { a }
        };
        let worst = bytes.zip(rates.copied()).filter(|p| p.0 > 0).reduce(slower);
        worst.map_or(Span::ZERO, |(bytes, rate)| rate.time_for(Bytes(bytes)))
    }

    /// By how much the coflows from `rank` on end later if each port is busy for its time in
    /// `needs` before them: each by what it waits at its worst port. What is over before the
    /// shuffle begins waits for nothing. O(ports of open coflows).
    pub(super) fn delays(&self, needs: &[Span], rank: usize, start: Time) -> Span {
        let begins = start.since(self.standing.from);
        let late = |l: &LaidOut| {
            let then = |&(port, until): &(usize, Span)| {
                if until > begins { until + needs[port] } else { until }
            };
            l.ports.iter().map(then).max().unwrap_or(Span::ZERO).saturating_sub(l.done)
        };
        self.laid[rank..].iter().map(late).fold(Span::ZERO, |a, b| a + b)
    }
}
