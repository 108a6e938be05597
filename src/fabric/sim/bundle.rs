//! Flows between the same two hosts that go the same way, and therefore at the same rate.
//!
//! Work is counted in *units* of one bit per second times one nanosecond: a byte is 8 * 10^9 units, and a flow of rate r does
//! exactly r * t units in t nanoseconds. Nothing is ever rounded, so bytes in are bytes out; only the instant of a finish
//! is rounded up to the next nanosecond, and what the rate would have carried beyond the last byte is not counted.

use std::collections::BTreeSet;

use crate::ids::{CoflowId, FlowId, HostId, PlaneId, RackId};
use crate::units::{Bytes, NANOS, Time};

/// Units of work in a byte.
pub const BYTE: u128 = 8 * NANOS as u128;

/// Units as whole bytes, rounded down.
pub fn bytes(units: u128) -> Bytes {
    Bytes(u64::try_from(units / BYTE).unwrap_or(u64::MAX))
}

/// Which way flows go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// They stay in their rack.
    Local,
    /// Through the packet switch.
    Eps,
    /// Nowhere: they wait for a circuit.
    Wait,
    /// Over the circuit of the rack pair on this plane.
    Ocs(PlaneId),
}

/// A flow that is on its way. It orders by when it will be done, then by its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Underway {
    /// The bundle's service at which this flow is done.
    pub due: u128,
    /// Its coflow.
    pub coflow: CoflowId,
    /// Its place in the coflow's list.
    pub flow: FlowId,
    /// The bundle's service over circuits when the flow began.
    ocs_before: u128,
    /// Its size in units.
    pub size: u128,
}

/// Flows of equal route and rate.
#[derive(Debug)]
pub struct Bundle {
    /// Sender.
    pub from: HostId,
    /// Receiver.
    pub to: HostId,
    /// The racks of both.
    pub racks: (RackId, RackId),
    /// Whether its packets are marked.
    pub elephant: bool,
    /// Which way it goes now.
    pub route: Route,
    /// Bits per second of each flow, since `since`.
    pub rate: u64,
    since: Time,
    /// Units that one flow which had always been there would have sent.
    service: u128,
    /// Of these, over circuits.
    service_ocs: u128,
    /// By when they are done.
    pub flows: BTreeSet<Underway>,
    /// Grows with every new forecast, so that old ones can be told.
    pub forecast: u64,
}

impl Bundle {
    /// No flows.
    pub fn new(from: HostId, to: HostId, racks: (RackId, RackId), elephant: bool) -> Self {
        let route = if racks.0 == racks.1 { Route::Local } else { Route::Eps };
        let (since, flows) = (Time::ZERO, BTreeSet::new());
        Self { from, to, racks, elephant, route, rate: 0, since, service: 0, service_ocs: 0, flows, forecast: 0 }
    }

    /// Adds a flow. The bundle must be settled at its start.
    pub fn push(&mut self, coflow: CoflowId, flow: FlowId, size: Bytes) {
        let size = u128::from(size.0) * BYTE;
        self.flows.insert(Underway { due: self.service + size, coflow, flow, ocs_before: self.service_ocs, size });
    }

    /// Does the work up to `now`; returns the units of all its flows together (those past their end included until
    /// [`Bundle::pop`] takes them out).
    pub fn settle(&mut self, now: Time) -> u128 {
        let each = u128::from(self.rate) * u128::from(now.since(self.since).0);
        self.since = self.since.max(now);
        self.service += each;
        if matches!(self.route, Route::Ocs(_)) {
            self.service_ocs += each;
        }
        each * self.flows.len() as u128
    }

    /// The next flow that is done, its units over circuits, and how many units were counted beyond its end.
    pub fn pop(&mut self) -> Option<(Underway, u128, u128)> {
        let first = *self.flows.first().filter(|f| f.due <= self.service)?;
        self.flows.pop_first();
        let beyond = self.service - first.due;
        Some((first, self.over_ocs(&first), beyond))
    }

    /// What a flow has sent so far, in units.
    pub fn sent(&self, f: &Underway) -> u128 {
        f.size - self.left(f)
    }

    /// What a flow still has to send, in units.
    pub fn left(&self, f: &Underway) -> u128 {
        f.due.saturating_sub(self.service)
    }

    /// What a flow has sent over circuits, in units.
    pub fn over_ocs(&self, f: &Underway) -> u128 {
        let beyond = if matches!(self.route, Route::Ocs(_)) { self.service.saturating_sub(f.due) } else { 0 };
        self.service_ocs - f.ocs_before - beyond
    }

    /// When the first flow will be done at this rate; `None` if never. The bundle must be settled at `now`.
    pub fn next_finish(&self, now: Time) -> Option<Time> {
        let left = self.left(self.flows.first()?);
        let ns = left.checked_add(u128::from(self.rate.max(1)) - 1)?.checked_div(u128::from(self.rate))?;
        now.0.checked_add(u64::try_from(ns).ok()?).map(Time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_exact_and_what_lies_beyond_the_end_is_known() {
        let mut b = Bundle::new(HostId(0), HostId(1), (RackId(0), RackId(1)), true);
        b.push(CoflowId(0), FlowId(0), Bytes(1));
        b.rate = 3_000_000_000;
        assert_eq!(b.next_finish(Time(0)), Some(Time(3)), "8 bits at 3 Gb/s take 2.67 ns");
        assert_eq!(b.settle(Time(1)), 3_000_000_000);
        assert_eq!(b.pop(), None);
        b.route = Route::Ocs(PlaneId(0));
        b.settle(Time(3));
        let (f, ocs, beyond) = b.pop().unwrap();
        assert_eq!((f.size, ocs, beyond), (BYTE, 5_000_000_000, 1_000_000_000));
        b.rate = 0;
        b.push(CoflowId(0), FlowId(1), Bytes(1));
        assert_eq!(b.next_finish(Time(3)), None);
    }
}
