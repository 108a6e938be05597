//! Flows between the same two hosts on one route, which therefore have one rate.
//!
//! Work is counted in *units* of one bit a second times one nanosecond. A byte is 8 * 10^9 units,
//! and a flow of rate r does exactly r * t units in t nanoseconds. Nothing is rounded, so bytes in
//! are bytes out. Only the instant of an end is rounded up to the next nanosecond, and what the
//! rate would have carried after the last byte is not counted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::waiting::BundleEnds;
use crate::ids::{CoflowId, FlowId, HostId, PlaneId, RackId};
use crate::units::{Bytes, NANOS};

/// Units of work in a byte.
pub const WORK_PER_BYTE: u128 = 8 * NANOS as u128;

/// Units as whole bytes, rounded down.
pub fn bytes(units: u128) -> Bytes {
    // A byte has 2^12 x 5^9 units: after a shift, the rest nearly always fits in 64 bits.
    let shift = WORK_PER_BYTE.trailing_zeros();
    match u64::try_from(units >> shift) {
        Ok(small) => Bytes(small / (WORK_PER_BYTE >> shift) as u64),
        Err(_) => Bytes(u64::try_from(units / WORK_PER_BYTE).unwrap_or(u64::MAX)),
    }
}

/// The route of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BundleRoute {
    /// Within their rack.
    Local,
    /// Through the packet switch; where there are several, over the default list of the two racks.
    Eps,
    /// Over the list of switches that the change with this number gave to its hosts.
    List(u32),
    /// None: they wait for a circuit.
    Wait,
    /// Over the circuit of the rack pair on this plane.
    Ocs(PlaneId),
}

/// An active flow. Ordered by its end, then by its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Underway {
    /// The bundle's service at which this flow ends.
    pub due: u128,
    /// Its coflow.
    pub coflow: CoflowId,
    /// Its number in its coflow.
    pub flow: FlowId,
    /// The bundle's service over circuits when the flow began.
    ocs_before: u128,
    /// Its work in units.
    pub size: u128,
}

/// Flows of one route and rate. The *service* of a bundle is the work of a flow that had always
/// been there, in units.
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
    /// Its present route.
    pub route: BundleRoute,
    /// The link whose clock measures its service.
    pub link: Option<u32>,
    /// The service minus the clock's reading, modulo 2^128; without a clock, the service itself.
    pub ahead: u128,
    /// Service that was booked.
    booked: u128,
    /// Part of it that went over circuits.
    booked_ocs: u128,
    /// The first to end on top.
    pub flows: BinaryHeap<Reverse<Underway>>,
    /// When that one ends, so that the heap need not be read.
    due: u128,
    /// When all of them end; `None` until it was asked for.
    waiting: Option<Box<BundleEnds>>,
}

impl Bundle {
    /// No flows.
    pub fn new(from: HostId, to: HostId, racks: (RackId, RackId), elephant: bool) -> Self {
        let route = if racks.0 == racks.1 { BundleRoute::Local } else { BundleRoute::Eps };
        Self {
            from,
            to,
            racks,
            elephant,
            route,
            link: None,
            ahead: 0,
            booked: 0,
            booked_ocs: 0,
            flows: BinaryHeap::new(),
            due: u128::MAX,
            waiting: None,
        }
    }

    /// The racks, the present route, and the service minus the clock's reading.
    pub fn at(&self) -> ((RackId, RackId), BundleRoute, u128) {
        (self.racks, self.route, self.ahead)
    }

    /// Adds a flow of this work. The bundle must be booked up to its start.
    pub fn push(&mut self, coflow: CoflowId, flow: FlowId, size: u128) {
        let due = self.booked + size;
        self.flows.push(Reverse(Underway { due, coflow, flow, ocs_before: self.booked_ocs, size }));
        self.due = self.due.min(due);
        self.waiting.iter_mut().for_each(|w| w.push(due));
    }

    /// The flow that ends first.
    pub fn first(&self) -> Option<&Underway> {
        self.flows.peek().map(|f| &f.0)
    }

    /// All flows, in no order.
    pub fn flows(&self) -> impl Iterator<Item = &Underway> {
        self.flows.iter().map(|f| &f.0)
    }

    /// Whether its first flow is due at this reading of the clock of `link`.
    pub fn is_due_at(&self, link: u32, reading: u128) -> bool {
        self.link == Some(link)
            && !self.flows.is_empty()
            && self.due.wrapping_sub(self.ahead) == reading
    }

    /// Books the work up to `service`, all on the present route; returns the work of all its flows
    /// together. Flows past their end are included until [`Bundle::pop`] removes them.
    pub fn book(&mut self, service: u128) -> u128 {
        let each = service - self.booked;
        self.booked = service;
        if matches!(self.route, BundleRoute::Ocs(_)) {
            self.booked_ocs += each;
        }
        each * self.flows.len() as u128
    }

    /// The next flow that is done, its work over circuits, and the units that were booked beyond
    /// its end.
    pub fn pop(&mut self) -> Option<(Underway, u128, u128)> {
        let first = *self.first().filter(|f| f.due <= self.booked)?;
        self.flows.pop();
        self.due = self.first().map_or(u128::MAX, |f| f.due);
        self.waiting.iter_mut().for_each(|w| w.pop(first.due));
        let beyond = self.booked - first.due;
        Some((first, self.over_ocs(&first), beyond))
    }

    /// Removes the flows of a coflow.
    pub fn cancel(&mut self, coflow: CoflowId) {
        self.flows.retain(|f| f.0.coflow != coflow);
        self.due = self.first().map_or(u128::MAX, |f| f.due);
        self.waiting = None;
    }

    /// Work that a flow had done at the last booking.
    pub fn sent(&self, f: &Underway) -> u128 {
        f.size - self.left(f)
    }

    /// Work left of a flow.
    pub fn left(&self, f: &Underway) -> u128 {
        f.due.saturating_sub(self.booked)
    }

    /// Work left of all flows, at most `most` of each; `most` must be the same at every call or
    /// grow. No flow is overdue.
    pub fn backlog(&mut self, most: u128) -> u128 {
        // Most bundles have flows that are all far from their ends.
        if self.due.saturating_sub(self.booked) >= most {
            return most * self.flows.len() as u128;
        }
        let flows = &self.flows;
        self.waiting
            .get_or_insert_with(|| Box::new(flows.iter().map(|f| f.0.due).collect()))
            .sum(self.booked, most)
    }

    /// Work that a flow has done over circuits.
    pub fn over_ocs(&self, f: &Underway) -> u128 {
        let beyond = if matches!(self.route, BundleRoute::Ocs(_)) {
            self.booked.saturating_sub(f.due)
        } else {
            0
        };
        self.booked_ocs - f.ocs_before - beyond
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_exact_and_what_lies_beyond_the_end_is_known() {
        let mut b = Bundle::new(HostId(0), HostId(1), (RackId(0), RackId(1)), true);
        b.push(CoflowId(0), FlowId(1), 2 * WORK_PER_BYTE);
        b.push(CoflowId(0), FlowId(0), WORK_PER_BYTE);
        assert_eq!(b.book(3_000_000_000), 6_000_000_000);
        assert_eq!(b.pop(), None);
        b.route = BundleRoute::Ocs(PlaneId(0));
        b.book(9_000_000_000);
        let (f, ocs, beyond) = b.pop().unwrap();
        assert_eq!(
            (f.flow, f.size, ocs, beyond),
            (FlowId(0), WORK_PER_BYTE, 5_000_000_000, 1_000_000_000)
        );
        assert_eq!((b.pop(), b.left(b.first().unwrap())), (None, 7_000_000_000));
        b.push(CoflowId(0), FlowId(2), 9 * WORK_PER_BYTE);
        assert_eq!((b.backlog(7), b.backlog(9_000_000_000)), (14, 16_000_000_000));
        (b.link, b.ahead) = (Some(3), 2);
        assert!(b.is_due_at(3, 2 * WORK_PER_BYTE - 2) && !b.is_due_at(4, 2 * WORK_PER_BYTE - 2));
    }

    #[test]
    fn when_the_first_is_cancelled_the_next_one_is_expected() {
        let mut b = Bundle::new(HostId(0), HostId(1), (RackId(0), RackId(1)), true);
        b.push(CoflowId(0), FlowId(0), WORK_PER_BYTE);
        b.push(CoflowId(1), FlowId(0), 2 * WORK_PER_BYTE);
        b.link = Some(3);
        b.cancel(CoflowId(0));
        assert!(b.is_due_at(3, 2 * WORK_PER_BYTE) && b.flows().count() == 1);
        b.cancel(CoflowId(1));
        b.push(CoflowId(2), FlowId(0), 5 * WORK_PER_BYTE);
        assert!(b.is_due_at(3, 5 * WORK_PER_BYTE));
    }
}
