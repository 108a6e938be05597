//! One active coflow over circuits of its own.

use crate::FlowFinished;
use crate::bundle::{BundleRoute, WORK_PER_BYTE, bytes};
use crate::circuits::sunflow::need::LightNeed;
use crate::circuits::sunflow::{Order, OrderKey};
use crate::coflows::CoflowSpec;
use crate::engine::{EngineWorld, InFlight};
use crate::ids::{CoflowId, FlowId, HostId, PlaneId, RackId};
use crate::units::{Span, Time};

/// A flow between racks.
#[derive(Clone, Copy, Debug)]
struct RackFlow {
    flow: FlowId,
    hosts: (HostId, HostId),
    /// Bits a second while its circuit has light.
    rate: u64,
    /// Work asked.
    size: u128,
    /// Nanoseconds of light that it needs altogether, and that it still needs.
    light: u64,
    left: u64,
    /// Work booked.
    booked: u128,
}

impl RackFlow {
    fn sent(&self) -> u128 {
        self.size.min(u128::from(self.rate) * u128::from(self.light - self.left))
    }
}

/// A coflow's flows between racks; those of one pair go one after another.
pub struct LiveCoflow {
    /// Its number.
    pub id: CoflowId,
    arrival: Time,
    weight: u32,
    /// Light that its rack pairs need.
    pub need: LightNeed,
    /// By rack pair, then by number.
    flows: Vec<RackFlow>,
    /// By rack pair: the first of its flows that is not done, and the end of its flows.
    pairs: Vec<(u32, u32)>,
    /// Work booked.
    sent: u128,
    /// Whether it is cancelled and needs no more light.
    pub cancelled: bool,
}

impl LiveCoflow {
    /// The flows `list` of `coflow`, which go between racks, at `rate` or what their interfaces
    /// carry.
    pub fn new(coflow: &CoflowSpec, list: &[usize], rate: u64, world: &EngineWorld) -> Self {
        let t = world.links.topology();
        let racks = |f: &RackFlow| (t.rack_of(f.hosts.0), t.rack_of(f.hosts.1));
        let flow = |&k: &usize| {
            let f = coflow.flows.at(k);
            let slowest = [f.from, f.to]
                .map(|h| t.payload(t.hosts[h.index()].nic).0)
                .into_iter()
                .min()
                .unwrap_or(0);
            let (rate, size) = (rate.min(slowest), u128::from(f.bytes.0) * WORK_PER_BYTE);
            let light = size.checked_div(u128::from(rate)).map_or(u64::MAX, |_| light(size, rate));
            RackFlow {
                flow: k.into(),
                hosts: (f.from, f.to),
                rate,
                size,
                light,
                left: light,
                booked: 0,
            }
        };
        let mut flows: Vec<RackFlow> = list.iter().map(flow).collect();
        flows.sort_by_key(|f| (racks(f), f.flow));
        let (mut pairs, mut cells, mut at) = (Vec::new(), Vec::new(), 0);
        for same in flows.chunk_by(|a, b| racks(a) == racks(b)) {
            let (from, to) = racks(&same[0]);
            pairs.push((at, at + same.len() as u32));
            at += same.len() as u32;
            cells.push((
                from.0,
                to.0,
                same.iter().fold(0, |sum: u64, f| sum.saturating_add(f.light)),
            ));
        }
        let (id, arrival, weight) = (coflow.id, world.now, coflow.weight);
        Self {
            id,
            arrival,
            weight,
            need: LightNeed::new(t.rack_count(), &cells),
            flows,
            pairs,
            sent: 0,
            cancelled: false,
        }
    }

    /// Its key in the order of coflows.
    pub fn key(&self, order: Order, delta: Span) -> (OrderKey, CoflowId) {
        (
            order.key(
                &|d| self.need.bound(d),
                delta,
                bytes(self.sent).0,
                self.arrival,
                self.weight,
            ),
            self.id,
        )
    }

    /// When the next flow of a pair ends if the pair has light from `t` on and had `light` before.
    pub fn next_end(&self, pair: u32, t: Time, light: u64) -> Time {
        let (first, end) = self.pairs[pair as usize];
        let ends = self.flows[first as usize..end as usize].iter().scan(0u64, |sum, f| {
            *sum = sum.saturating_add(f.left);
            Some(*sum)
        });
        ends.into_iter().find(|&sum| sum > light).map_or(Time::MAX, |sum| t + Span(sum - light))
    }

    /// A pair had light for `ns` from `from` on: flows that are done finish.
    pub fn use_light(&mut self, pair: u32, from: Time, ns: u64, world: &mut EngineWorld) {
        self.need.use_light(pair, ns);
        let (mut left, mut at) = (ns, from);
        while left > 0 && self.pairs[pair as usize].0 < self.pairs[pair as usize].1 {
            let k = self.pairs[pair as usize].0;
            let part = left.min(self.flows[k as usize].left);
            self.flows[k as usize].left -= part;
            (left, at) = (left - part, at + Span(part));
            self.book(k, world);
            let f = self.flows[k as usize];
            if f.left == 0 {
                self.pairs[pair as usize].0 += 1;
                let t = world.links.topology();
                world.ledger.close(
                    self.id,
                    (t.rack_of(f.hosts.0), t.rack_of(f.hosts.1)),
                    f.size,
                    f.size,
                );
                world.done.push(FlowFinished { coflow: self.id, flow: f.flow, at });
            }
        }
    }

    /// Closes all its flows as they are.
    pub fn cancel(&mut self, world: &mut EngineWorld) {
        let t = world.links.topology();
        for f in self.underway() {
            world.ledger.close(
                self.id,
                (t.rack_of(f.hosts.0), t.rack_of(f.hosts.1)),
                f.booked,
                f.booked,
            );
        }
        self.cancelled = true;
    }

    fn book(&mut self, k: u32, world: &mut EngineWorld) {
        let f = &mut self.flows[k as usize];
        let t = world.links.topology();
        let racks: (RackId, RackId) = (t.rack_of(f.hosts.0), t.rack_of(f.hosts.1));
        let units = f.sent() - f.booked;
        world.ledger.carried(racks, BundleRoute::Ocs(PlaneId(0)), units, 0);
        f.booked += units;
        self.sent += units;
    }

    /// What is in flight.
    pub fn parts(&self, each: &mut dyn FnMut(InFlight)) {
        for f in self.underway() {
            let (sent, left) = (f.booked, f.size - f.booked);
            each(InFlight {
                coflow: self.id,
                flow: f.flow,
                flows: 1,
                hosts: f.hosts,
                sent,
                over_ocs: sent,
                left,
            });
        }
    }

    /// What every flow has still to send.
    pub fn left(&self, each: &mut dyn FnMut(CoflowId, FlowId, u128)) {
        self.underway().for_each(|f| each(self.id, f.flow, f.size - f.booked));
    }

    fn underway(&self) -> impl Iterator<Item = &RackFlow> {
        self.pairs.iter().flat_map(|&(a, b)| &self.flows[a as usize..b as usize])
    }
}

fn light(size: u128, rate: u64) -> u64 {
    u64::try_from(size.div_ceil(u128::from(rate))).unwrap_or(u64::MAX)
}
