//! Max-min fair sharing of aggregates: flows share interfaces equally, and a coflow is known by
//! what each sender and receiver has left.
//!
//! An event is a coflow that arrives or ends, or a sender or receiver that is done. With a
//! resolution, the other hosts of its coflow keep their rates until the next multiple of it; only
//! the other side slows down.

use std::collections::BTreeSet;

use super::coflow::AggregateCoflow;
use super::levels::InterfaceLevels;
use crate::coflows::CoflowSpec;
use crate::engine::{Engine, EngineWorld, InFlight};
use crate::ids::{CoflowId, FlowId, HostId, RackId};
use crate::units::Time;

/// Active coflows.
pub struct AggregateMaxMin {
    capacity: Vec<f64>,
    coflows: Vec<AggregateCoflow>,
    /// Numbers of the coflows in `levels`.
    numbers: Vec<u32>,
    /// When the first sender or receiver of each is done; [`Time::MAX`]: never.
    through: Vec<Time>,
    /// The earliest of these.
    next: Option<Time>,
    /// The first host that is done while the rates have not been changed.
    waits: Option<Time>,
    levels: InterfaceLevels,
    /// The instant of the last [`Engine::settle`].
    settled: Time,
}

impl AggregateMaxMin {
    /// No coflows, on interfaces of these capacities: first those that send, by host, then those
    /// that receive.
    pub fn new(interfaces: &[u64]) -> Self {
        Self {
            capacity: interfaces.iter().map(|&c| c as f64).collect(),
            coflows: Vec::new(),
            numbers: Vec::new(),
            through: Vec::new(),
            next: None,
            waits: None,
            levels: InterfaceLevels::new(interfaces.len() / 2),
            settled: Time::ZERO,
        }
    }

    /// Advances coflows with a host that is done to now, and finishes those that are over.
    fn go_on(&mut self, world: &mut EngineWorld) {
        let Some(first) = self.next.filter(|&t| t <= world.now) else { return };
        self.waits = self.waits.or(Some(first));
        for (c, through) in self.coflows.iter_mut().zip(&mut self.through) {
            if *through <= world.now {
                *through = c.go_on_alone(*through, world.now);
            }
        }
        self.retire(world);
        self.next = self.first();
    }

    /// Finishes coflows that are over, each at its own end.
    fn retire(&mut self, world: &mut EngineWorld) {
        if !self.coflows.iter().any(AggregateCoflow::is_over) {
            return;
        }
        for k in (0..self.coflows.len()).rev().filter(|&k| self.coflows[k].is_over()) {
            self.levels.leave(self.numbers.remove(k));
            self.through.remove(k);
        }
        let mut over: Vec<AggregateCoflow> = self.coflows.extract_if(.., |c| c.is_over()).collect();
        over.sort_by_key(AggregateCoflow::since);
        over.into_iter().for_each(|c| c.finish(world));
    }

    fn first(&self) -> Option<Time> {
        self.through.iter().copied().min().filter(|&t| t < Time::MAX)
    }

    /// Shares all interfaces again. O(interfaces of coflows), a few times.
    fn share(&mut self, world: &mut EngineWorld) {
        self.coflows.iter_mut().for_each(|c| _ = c.advance(world.now));
        self.retire(world);
        let Self { coflows, numbers, levels, .. } = self;
        for (c, &number) in coflows.iter_mut().zip(&*numbers) {
            c.lost().for_each(|(side, host)| levels.lose(number, side, host));
        }
        levels.share(
            &self.capacity,
            numbers.iter().copied().zip(coflows.iter().map(AggregateCoflow::flows_of_a_pair)),
        );
        for ((c, &number), through) in coflows.iter_mut().zip(&*numbers).zip(&mut self.through) {
            *through = c.go(levels.rates(number));
        }
        (self.next, self.waits) = (self.first(), None);
    }
}

impl Engine for AggregateMaxMin {
    fn add(&mut self, coflow: &CoflowSpec, _: &[bool], world: &mut EngineWorld) {
        if let Some(c) = AggregateCoflow::new(coflow, None, world.ledger.counts_pairs(), world) {
            self.numbers.push(self.levels.enter(c.hosts(), c.is_apart()));
            self.coflows.push(c);
            self.through.push(Time::MAX);
            self.share(world);
        }
    }

    fn left(&self, each: &mut dyn FnMut(CoflowId, FlowId, u128)) {
        self.parts(&mut |p| each(p.coflow, p.flow, p.left));
    }

    fn cancel(&mut self, coflow: CoflowId, world: &mut EngineWorld) {
        let Some(k) = self.coflows.iter().position(|c| c.id == coflow) else { return };
        self.coflows.remove(k).cancel(world);
        self.levels.leave(self.numbers.remove(k));
        self.through.remove(k);
        self.share(world);
    }

    fn limit(&mut self, world: &mut EngineWorld) {
        let interfaces = &world.links.capacity()[..self.capacity.len()];
        self.capacity = interfaces.iter().map(|&c| c as f64).collect();
        self.share(world);
    }

    fn next_event(&self) -> Option<Time> {
        self.waits.or(self.next)
    }

    fn next_end(&self) -> Option<Time> {
        self.next
    }

    fn is_moving(&self) -> bool {
        !self.coflows.is_empty()
    }

    fn pass(&mut self, world: &mut EngineWorld) {
        self.go_on(world);
        if self.waits.is_some() {
            self.share(world);
        }
    }

    fn catch_up(&mut self, world: &mut EngineWorld) {
        self.go_on(world);
    }

    fn reroute(&mut self, _: &[(RackId, RackId)], _: &mut EngineWorld) {}

    fn steer(&mut self, _: &BTreeSet<(HostId, HostId)>, _: &mut EngineWorld) {}

    fn settle(&mut self, world: &mut EngineWorld) {
        self.settled = world.now;
        self.coflows.iter_mut().for_each(|c| c.book(Some(world.now), world));
    }

    fn parts(&self, each: &mut dyn FnMut(InFlight)) {
        self.coflows.iter().for_each(|c| c.parts(self.settled, each));
    }
}
