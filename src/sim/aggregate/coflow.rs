//! One coflow by its sums: what each sender has still to send and each receiver to receive.

use super::super::FlowFinished;
use super::super::bundle::WORK_PER_BYTE;
use super::super::engine::{EngineWorld, InFlight};
use super::endpoints::{Endpoints, Sum};
use super::residual::{LEAST, Residual, divide};
use crate::coflows::flows::Flows;
use crate::coflows::{CoflowSpec, FlowSpec};
use crate::ids::{CoflowId, FlowId, HostId, JobId, RackId};
use crate::units::{Span, Time};

/// An active coflow.
pub struct AggregateCoflow {
    /// Its number.
    pub id: CoflowId,
    /// When it came.
    pub arrival: Time,
    /// What its completion time counts, 1 at least.
    pub weight: u32,
    /// Aalo's queue.
    pub queue: u32,
    /// The job to which it belongs, and the work that the job's other coflows had done when the
    /// order was last made.
    pub job: Option<JobId>,
    pub before: u128,
    flows: Flows,
    /// Indices of the flows that needed no time, in order.
    free: Vec<u32>,
    /// Bytes of the other flows.
    bytes: u64,
    /// Senders and receivers.
    sides: [Endpoints; 2],
    /// The side whose sums differ less: its largest sum is closer to their mean.
    alike: usize,
    /// Mean number of flows of a pair of sender and receiver, and whether no host has a flow to
    /// itself.
    density: f64,
    is_apart: bool,
    /// Bits sent by `since`, and bits a second from then on.
    sent: f64,
    speed: f64,
    since: Time,
    /// Whether it has rates on top of its base rates.
    has_more: bool,
    /// Whether its rates must be computed even if the capacities are as before.
    pub is_stale: bool,
    /// Bits and capacity of its bottleneck when it is alone on the network; `None`: not known yet.
    slowest: Option<(u64, u64)>,
    /// Bytes within racks, and how much of this work has been booked.
    local: u64,
    booked: u128,
    /// Work of each flow that stands in the matrices of pairs of racks, if these are kept; flows
    /// that needed no time have none.
    pairs: Vec<u128>,
}

fn whole(bytes: u128) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

impl AggregateCoflow {
    /// A coflow that arrives at `world.now`, with all rates zero. Flows that need no time are
    /// finished; `None` if all do. `pairs`: bytes between pairs of racks are counted. O(hosts +
    /// flows of other bytes + flows within racks) for a shuffle, else O(flows log flows).
    pub fn new(
        spec: &CoflowSpec,
        job: Option<JobId>,
        pairs: bool,
        world: &mut EngineWorld,
    ) -> Option<Self> {
        let topology = world.links.shared_topology();
        let rack = |h: HostId| topology.rack_of(h);
        let free = finish_free(spec, world);
        world.ledger.open_all(spec.id, spec.flows.len() - free.len());
        // By host: all bytes, and those between racks.
        let mut of_hosts = [(); 2].map(|()| vec![(0u128, 0u128); topology.hosts.len()]);
        for (side, sums) in of_hosts.iter_mut().zip(spec.flows.sums()) {
            sums.into_iter().for_each(|(host, bytes)| side[host.index()] = (bytes, bytes));
        }
        let mut local = 0u128;
        for (k, f) in spec.flows.inside(rack) {
            let (bytes, is_free) = (u128::from(f.bytes.0), free.binary_search(&(k as u32)).is_ok());
            local += if is_free { 0 } else { bytes };
            for (side, host) in of_hosts.iter_mut().zip([f.from, f.to]) {
                let sum = &mut side[host.index()];
                *sum = (sum.0 - if is_free { bytes } else { 0 }, sum.1 - bytes);
            }
        }
        let bytes = whole(of_hosts[0].iter().map(|s| s.0).sum());
        let hosts = topology.hosts.len();
        let [up, down] = of_hosts.map(|sums| {
            let some = sums.into_iter().zip(0..).filter(|(s, _)| s.0 > 0);
            some.map(|((all, between), host)| Sum {
                host: HostId(host),
                bytes: whole(all),
                between: whole(between),
            })
            .collect()
        });
        if bytes == 0 {
            return None;
        }
        let sides = [Endpoints::new(0, up, hosts), Endpoints::new(1, down, hosts)];
        let is_apart = !topology.loopback || spec.flows.inside(|h| h).is_empty();
        let [all, both] = [
            sides[0].len() * sides[1].len(),
            if is_apart { sides[0].in_common(&sides[1]) } else { 0 },
        ];
        let density = (spec.flows.len() - free.len()) as f64 / (all - both) as f64;
        let above = sides.each_ref().map(Endpoints::above_mean);
        Some(Self {
            id: spec.id,
            arrival: world.now,
            weight: spec.weight.max(1),
            queue: 0,
            job,
            before: 0,
            flows: spec.flows.clone(),
            free,
            bytes,
            // Missing flows of hosts to themselves make sums differ a little. A side with one host
            // counts as equal.
            alike: usize::from(sides[1].len() == 1 || above[0] > 1.1 * above[1]),
            density,
            is_apart,
            sides,
            sent: 0.0,
            speed: 0.0,
            since: world.now,
            has_more: false,
            is_stale: true,
            slowest: None,
            local: whole(local),
            booked: 0,
            pairs: vec![0; if pairs { spec.flows.len() } else { 0 }],
        })
    }

    /// Hosts that are not done: senders, receivers.
    pub fn hosts(&self) -> [&[u32]; 2] {
        [0, 1].map(|k| self.sides[k].hosts())
    }

    /// The instant up to which its work is counted.
    pub fn since(&self) -> Time {
        self.since
    }

    /// Flows of a pair of sender and receiver, for sharing by max-min. A sender has as many flows
    /// as there are active receivers; a receiver as many as at the start. If the flows to one
    /// receiver have the same size, no sender is done before its last receiver. By sums alone some
    /// would be, because they sent more to other receivers than their flows to these had. Where
    /// receivers differ less than senders, it is the other way round.
    pub fn flows_of_a_pair(&self) -> f64 {
        let side = &self.sides[self.alike];
        self.density * (side.len() as f64 / side.hosts().len() as f64)
    }

    /// Whether a host that sends and receives has no flow to itself.
    pub fn is_apart(&self) -> bool {
        self.is_apart
    }

    /// Hosts that are done since the last call, as (side, index), in the order in which others took
    /// their indices. Senders are side 0, receivers side 1.
    pub fn lost(&mut self) -> impl Iterator<Item = (usize, u32)> {
        self.sides
            .iter_mut()
            .enumerate()
            .flat_map(|(k, side)| side.lost().map(move |host| (k, host)))
    }

    /// Hosts that are not done, as bits: senders, receivers.
    pub fn live(&self) -> [&[u64]; 2] {
        [0, 1].map(|k| self.sides[k].live())
    }

    /// Whether all senders or all receivers are done.
    pub fn is_over(&self) -> bool {
        self.sides.iter().any(Endpoints::is_over)
    }

    /// Interfaces that are not done, with their bits; first those that send, by host, then those
    /// that receive. `hosts`: number of hosts of the network.
    pub fn loads(&self, hosts: usize) -> impl Iterator<Item = (u32, f64)> + '_ {
        self.sides.iter().enumerate().flat_map(move |(k, side)| {
            side.loads().map(move |(host, bits)| ((k * hosts + host) as u32, bits))
        })
    }

    /// Bits left on its busiest interface.
    fn most(&self) -> f64 {
        self.sides.iter().flat_map(Endpoints::left).copied().fold(0.0, f64::max)
    }

    /// Bits and capacity of the interface that takes longest when the coflow is alone. O(1) before
    /// it moves, else O(interfaces).
    pub fn bottleneck(&mut self, capacity: &[f64]) -> (u64, u64) {
        let slower = |a: (f64, f64), b: (f64, f64)| if a.0 * b.1 < b.0 * a.1 { b } else { a };
        let found = self.slowest.unwrap_or_else(|| {
            let all = self.loads(capacity.len() / 2).map(|(l, bits)| (bits, capacity[l as usize]));
            let (bits, room) = all.reduce(slower).unwrap_or((0.0, 1.0));
            (bits.ceil() as u64, room as u64)
        });
        self.slowest = Some(found);
        found
    }

    /// The capacities of interfaces have changed.
    pub fn limit(&mut self) {
        self.slowest = None;
    }

    /// Sets its base rates to zero before all rates are decided again. It must have been advanced
    /// to this instant.
    pub fn restart(&mut self) {
        if self.moves() {
            self.sides.iter_mut().for_each(Endpoints::clear_base);
            self.is_stale = true;
        }
    }

    /// Gives every sender and receiver a base rate in proportion to what it has left, so that all
    /// end together. That is as fast as the tightest interface allows, and at most `pace` bits a
    /// second on the busiest one. Its base rates must be zero. O(interfaces), or O(hosts / 64) if
    /// one of its interfaces has nothing left.
    pub fn progress(&mut self, pace: f64, room: &mut Residual) {
        if !(0..2).all(|k| room.has_all(k, self.sides[k].live())) {
            return;
        }
        let most = self.most();
        let all =
            (0..2).flat_map(|k| self.sides[k].loads().map(move |(host, bits)| (k, host, bits)));
        let part = all.map(|(k, host, bits)| room.left(k)[host] / bits).fold(pace / most, f64::min);
        if part * most < LEAST {
            return;
        }
        for side in &mut self.sides {
            side.set_base_part(part);
            side.hold_base(room);
        }
        self.is_stale = true;
    }

    /// Reduces it to its base rates. Where a host is done, the others of its side keep their rates,
    /// so the other side slows down. Returns what is free to `room`. O(interfaces).
    pub fn go_on(&mut self, room: &mut Residual) {
        let totals = [0, 1].map(|k| self.sides[k].base());
        let all = totals[0].min(totals[1]);
        self.give(room);
        for (side, total) in self.sides.iter_mut().zip(totals) {
            side.scale_base(if total > 0.0 { all / total } else { 1.0 });
            side.hold_base(room);
        }
    }

    /// Returns all its rates to `room`, with those of hosts that are done. O(interfaces).
    pub fn give(&mut self, room: &mut Residual) {
        self.sides.iter_mut().for_each(|s| s.give(room));
    }

    /// Sets its base rates, which must be zero, to all that `part` has for it. Takes them from
    /// `room` as well.
    pub fn fill_base(
        &mut self,
        part: &mut Residual,
        room: &mut Residual,
        rates: &mut [Vec<f64>; 2],
    ) {
        if !self.share(part, rates) {
            return;
        }
        for (side, rates) in self.sides.iter_mut().zip(rates) {
            side.set_base(rates);
            side.hold_base(part);
            side.hold_base(room);
        }
        self.is_stale = true;
    }

    /// Whether a sender and a receiver have bandwidth left in `room`. O(hosts / 64).
    pub fn has_room(&self, room: &Residual) -> bool {
        (0..2).all(|k| room.has_any(k, self.sides[k].live()))
    }

    /// Computes the rates with which it takes all that `room` has for it: what its senders can send
    /// together or its receivers can receive together, whichever is less. The side that could do
    /// more divides this total in proportion to what its hosts have left, so that they end together
    /// where interfaces allow it. For example, two senders with 30 and 10 bits left and a total of
    /// 8 bits a second get 6 and 2. False if there are no rates. O(interfaces), and O(hosts / 64)
    /// if a side has no bandwidth.
    fn share(&self, room: &Residual, rates: &mut [Vec<f64>; 2]) -> bool {
        if !self.has_room(room) {
            return false;
        }
        let totals = [0, 1].map(|k| self.sides[k].room(room, &mut rates[k]));
        let all = totals[0].min(totals[1]);
        for k in (0..2).filter(|&k| totals[k] > all && all >= LEAST) {
            divide(all, self.sides[k].left(), &mut rates[k]);
        }
        all >= LEAST
    }

    /// Sets its rates to its base rates and all that `room` has for it. It must have been advanced
    /// to this instant if it moves. Returns when its first host is done, [`Time::MAX`] if none ever
    /// is. `None` if it had its base rates only and gets no more: then nothing changes.
    /// O(interfaces), or O(hosts / 64) where nothing changes.
    pub fn fill(
        &mut self,
        now: Time,
        room: &mut Residual,
        rates: &mut [Vec<f64>; 2],
    ) -> Option<Time> {
        let has_room = self.has_room(room);
        if !has_room && !self.is_stale && !self.has_more {
            return None;
        }
        self.advance(now);
        self.has_more = has_room && self.share(room, rates);
        for (side, rates) in self.sides.iter_mut().zip(rates) {
            side.go(self.has_more.then_some(&**rates), room);
        }
        self.is_stale = false;
        Some(self.forecast())
    }

    /// Adds all that `room` has for it to its rates. It must have been advanced to this instant.
    /// Returns the same as [`fill`](Coflow::fill).
    pub fn add(&mut self, room: &mut Residual, rates: &mut [Vec<f64>; 2]) -> Option<Time> {
        if !self.share(room, rates) {
            return None;
        }
        self.has_more = true;
        self.sides.iter_mut().zip(rates).for_each(|(side, rates)| side.speed_up(rates, room));
        Some(self.forecast())
    }

    /// Sets its rates at the instant to which it was advanced. Returns the same as
    /// [`fill`](Coflow::fill). O(interfaces).
    pub fn go(&mut self, rates: [&[f64]; 2]) -> Time {
        self.sides.iter_mut().zip(rates).for_each(|(side, rates)| side.set_rates(rates));
        self.forecast()
    }

    /// Advances it to `now` while it gets nothing new. Where a sender or receiver is done, first at
    /// `through`, the other side slows down by as much. Returns when the next host is done.
    /// O(interfaces) for each host that is done.
    pub fn go_on_alone(&mut self, mut through: Time, now: Time) -> Time {
        while through <= now {
            self.advance(through);
            if self.is_over() {
                return Time::MAX;
            }
            let speeds = [0, 1].map(|k| self.sides[k].speed());
            let least = speeds[0].min(speeds[1]);
            self.sides.iter_mut().zip(speeds).for_each(|(side, speed)| {
                side.scale(if speed > 0.0 { least / speed } else { 1.0 })
            });
            through = self.forecast();
        }
        through
    }

    /// Its rates stay: computes when its first host is done.
    fn forecast(&mut self) -> Time {
        self.speed = self.sides[0].speed();
        let seconds = self.sides.iter().map(Endpoints::ends).fold(f64::INFINITY, f64::min);
        self.after(seconds).unwrap_or(Time::MAX)
    }

    /// The first instant at least this many seconds after the one to which it was advanced.
    fn after(&self, seconds: f64) -> Option<Time> {
        let ns = (seconds * 1e9).ceil();
        // Virtual time ends before larger numbers.
        (ns < u64::MAX as f64)
            .then(|| self.since.0.checked_add((ns as u64).max(1)).map(Time))
            .flatten()
    }

    /// Whether its rate is above zero.
    pub fn moves(&self) -> bool {
        self.speed > 0.0
    }

    /// Seconds from the instant to which it was advanced until `now`.
    fn seconds(&self, now: Time) -> f64 {
        let Span(ns) = now.since(self.since);
        ns as f64 / 1e9
    }

    /// Counts its work up to `now`. True if a host is done at this instant. O(interfaces), or O(1)
    /// if its rate is zero.
    pub fn advance(&mut self, now: Time) -> bool {
        let mut any = false;
        if self.moves() && now > self.since {
            let seconds = self.seconds(now);
            self.sent += self.speed * seconds;
            self.sides.iter_mut().for_each(|s| any |= s.advance(seconds));
            self.slowest = None;
        }
        self.since = now;
        self.is_stale |= any;
        any
    }

    /// Work that it has done by `now`.
    pub fn sent(&self, now: Time) -> u128 {
        let bits = self.sent + self.speed * self.seconds(now);
        ((bits * 1e9) as u128).min(u128::from(self.bytes) * WORK_PER_BYTE)
    }

    /// When it will have done this much work in all, if it moves.
    pub fn when_sent(&self, units: u128) -> Option<Time> {
        self.moves().then(|| self.after((units as f64 / 1e9 - self.sent) / self.speed)).flatten()
    }

    /// Flows that are not done, with their indices.
    fn going(&self) -> impl Iterator<Item = (usize, FlowSpec)> {
        self.flows.beside(&self.free)
    }

    /// Work done by a flow of these bytes, if all flows have done the same fraction.
    fn part_of(&self, bytes: u64, sent: u128) -> u128 {
        let all = u128::from(self.bytes) * WORK_PER_BYTE;
        let whole = u128::from(bytes) * WORK_PER_BYTE;
        if sent >= all {
            whole
        } else {
            ((whole as f64 * (sent as f64 / all as f64)) as u128).min(whole)
        }
    }

    /// Brings the ledger up to `now`; `None`: all has been sent. O(interfaces), and O(flows) if
    /// pairs of racks are counted.
    pub fn book(&mut self, now: Option<Time>, world: &mut EngineWorld) {
        let sent = now.map_or(u128::from(self.bytes) * WORK_PER_BYTE, |t| self.sent(t));
        let units = self.part_of(self.local, sent);
        let local = units - std::mem::replace(&mut self.booked, units);
        let seconds = now.map(|t| self.seconds(t));
        let mut racks = [Vec::new(), Vec::new()];
        for (side, racks) in self.sides.iter_mut().zip(&mut racks) {
            side.book(seconds, |host, units| racks.push((world.rack(host), units)));
        }
        let [up, down] = racks;
        world.ledger.carried_by_rack(local, up.into_iter(), down.into_iter());
        let mut pairs = std::mem::take(&mut self.pairs);
        if !pairs.is_empty() {
            for (k, f) in self.going() {
                let racks = (world.rack(f.from), world.rack(f.to));
                let units = self.part_of(f.bytes.0, sent);
                let news = units - std::mem::replace(&mut pairs[k], units);
                if racks.0 != racks.1 {
                    world.ledger.count_pair(racks, false, news, 0);
                }
            }
        }
        self.pairs = pairs;
    }

    /// Finishes it at the instant to which it was advanced. It must not be among the active coflows
    /// any more.
    pub fn finish(mut self, world: &mut EngineWorld) {
        let at = self.since;
        self.book(None, world);
        self.close(u128::from(self.bytes) * WORK_PER_BYTE, world);
        match world.over.as_mut() {
            Some(over) => over.push((self.id, at)),
            None => world.done.extend(self.going().map(|(k, _)| FlowFinished {
                coflow: self.id,
                flow: k.into(),
                at,
            })),
        }
    }

    /// Counts what it has sent; the rest never comes. Returns the work done.
    pub fn cancel(&mut self, world: &mut EngineWorld) -> u128 {
        let sent = self.sent(world.now);
        self.book(Some(world.now), world);
        self.close(sent, world);
        sent
    }

    /// Closes its flows, which have done this much work together. It must be booked.
    fn close(&self, sent: u128, world: &mut EngineWorld) {
        if world.ledger.is_by_pair() {
            for (_, f) in self.going() {
                let racks: (RackId, RackId) = (world.rack(f.from), world.rack(f.to));
                world.ledger.close(self.id, racks, self.part_of(f.bytes.0, sent), 0);
            }
        } else {
            let within = self.part_of(self.local, sent);
            world.ledger.close_all(
                self.id,
                self.flows.len() - self.free.len(),
                within,
                sent - within,
            );
        }
    }

    /// What is in flight at `now`, flow by flow.
    pub fn parts(&self, now: Time, each: &mut dyn FnMut(InFlight)) {
        let all = self.sent(now);
        for (k, f) in self.going() {
            let sent = self.part_of(f.bytes.0, all);
            let (flow, hosts, left) =
                (FlowId::from(k), (f.from, f.to), u128::from(f.bytes.0) * WORK_PER_BYTE - sent);
            each(InFlight { coflow: self.id, flow, flows: 1, hosts, sent, over_ocs: 0, left });
        }
    }
}

/// Finishes the flows of a new coflow that need no time: those within a host without a loopback,
/// and those without bytes. Returns their indices, in order.
fn finish_free(spec: &CoflowSpec, world: &mut EngineWorld) -> Vec<u32> {
    let own = if world.links.topology().loopback { vec![] } else { spec.flows.inside(|h| h) };
    let mut free: Vec<u32> = own.iter().map(|f| f.0 as u32).chain(spec.flows.empty()).collect();
    free.sort_unstable();
    free.dedup();
    world.ledger.open_all(spec.id, free.len());
    for &k in &free {
        let f = spec.flows.at(k as usize);
        world.ledger.close(
            spec.id,
            (world.rack(f.from), world.rack(f.to)),
            u128::from(f.bytes.0) * WORK_PER_BYTE,
            0,
        );
        world.done.push(FlowFinished { coflow: spec.id, flow: FlowId(k), at: world.now });
    }
    free
}
