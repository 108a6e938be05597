//! The reservation in each slot of the kernel, for both mechanisms. What operations mean is decided
//! by [`plan::apply`].

use std::sync::Arc;

use crate::bpf::programs::SLOTS;
use crate::circuits::timetable::Reservation;
use crate::fabric::OpResult;
use crate::plan::{self, CircuitChange, Op, Programmed, Rules};
use crate::topology::Topology;
use crate::units::{Span, Time};

/// Reservations by port and slot.
pub struct Slots {
    topology: Arc<Topology>,
    guard: Span,
    /// Reservations that have not ended, and perhaps some that have.
    state: Programmed,
    /// By plane * R + rack: what the kernel holds. A circuit that has ended keeps its slot until
    /// another one takes it.
    ports: Vec<[Option<Reservation>; SLOTS]>,
}

impl Slots {
    /// Empty slots. `guard`: how long before its end a lit circuit can be changed at the latest.
    pub fn new(topology: Arc<Topology>, guard: Span) -> Self {
        let ports = (topology.planes.len() * topology.rack_count()).max(1);
        let state = Programmed { slots_per_port: SLOTS, ..Programmed::default() };
        Self { topology, guard, state, ports: vec![[None; SLOTS]; ports] }
    }

    /// All reservations, ended ones too, port by port.
    pub fn all(&self) -> impl Iterator<Item = &Reservation> {
        self.ports.iter().flatten().flatten()
    }

    /// Every slot: its port, its number there, and its reservation.
    pub fn held(&self) -> impl Iterator<Item = (usize, usize, Option<Reservation>)> + '_ {
        self.ports.iter().enumerate().flat_map(|(port, slots)| {
            slots.iter().enumerate().map(move |(slot, held)| (port, slot, *held))
        })
    }

    /// Reservations that have not ended.
    pub fn programmed(&self, now: Time) -> Programmed {
        let timetable = self.state.timetable.iter().filter(|r| r.until > now).copied().collect();
        Programmed { timetable, slots_per_port: SLOTS }
    }

    /// Carries out operations in order, each as [`plan::apply`] says at its own instant;
    /// `write(port, slot, reservation)` puts a change into the kernel.
    pub fn apply_all(
        &mut self,
        ops: &[Op],
        clock: impl Fn() -> Time,
        mut write: impl FnMut(usize, usize, Option<Reservation>),
    ) -> Vec<OpResult> {
        self.state.timetable.forget_before(clock());
        let each = |&op: &Op| {
            let now = clock();
            let rules = Rules {
                planes: &self.topology.planes,
                racks: self.topology.rack_count(),
                guard: self.guard,
            };
            let outcome = plan::apply(&mut self.state, &op, &rules, now).map(|change| {
                let (r, held) = match change {
                    CircuitChange::Kept => return clock(),
                    CircuitChange::Written(r) => (r, Some(r)),
                    CircuitChange::Removed(r) => (r, None),
                };
                let port = r.plane.index() * self.topology.rack_count() + r.input.index();
                let slot = slot_of(&self.ports[port], &r, now);
                self.ports[port][slot] = held;
                write(port, slot, held);
                clock()
            });
            OpResult { op, outcome }
        };
        ops.iter().map(each).collect()
    }
}

/// The slot of this circuit, or the first free one: [`plan::apply`] never gives a port more
/// circuits than it has slots.
fn slot_of(slots: &[Option<Reservation>; SLOTS], r: &Reservation, now: Time) -> usize {
    let its = slots.iter().position(|s| s.is_some_and(|o| o.up_from == r.up_from && o.until > now));
    let free = || slots.iter().position(|s| s.is_none_or(|o| o.until <= now));
    its.or_else(free).expect("a port never holds more circuits than it has slots")
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;
    use crate::fabric::Fabric;
    use crate::ids::{PlaneId, RackId};
    use crate::sim::{SimFabric, SimSettings};
    use crate::topology::{Plane, StopMode};
    use crate::units::BitRate;

    const RACKS: u32 = 4;
    /// One of each kind.
    const PLANES: u32 = 4;

    fn network() -> Arc<Topology> {
        let rate = BitRate::mbit(1000);
        let stop = |k| if k % 2 == 1 { StopMode::AllStop } else { StopMode::NotAllStop };
        let plane =
            |k| Plane { id: PlaneId(k), rate, delta: Span(10), stop: stop(k), duplex: k >= 2 };
        Arc::new(Topology::uniform(
            "slots",
            RACKS as usize,
            1,
            rate,
            rate,
            (0..PLANES).map(plane).collect(),
        ))
    }

    /// An operation near `now`. Starts are few, so that operations often name circuits that exist.
    fn op() -> impl Strategy<Value = (u64, Op)> {
        let place = (0..PLANES, 0..RACKS, 1..RACKS, 0..40u64, 1..200u64, 0..10u8, 0..20u64);
        place.prop_map(|(plane, i, step, start, length, kind, wait)| {
            let (plane, input, up_from) = (PlaneId(plane), RackId(i), Time(start * 20 + 10));
            let until = if length % 7 == 0 { Time::MAX } else { up_from + Span(length) };
            let output = RackId((i + step) % RACKS);
            let op = match kind {
                0 => Op::Cancel { plane, input, up_from },
                1 | 2 => Op::End { plane, input, up_from, until },
                _ => Op::Reserve(Reservation {
                    plane,
                    input,
                    output,
                    setup_at: Time(start * 20),
                    up_from,
                    until,
                }),
            };
            (wait, op)
        })
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(512))]

        /// The slots of the kernel and the crossbars of the model agree in every answer and in what
        /// they hold; so do the cells that the slots had written.
        #[test]
        fn slots_and_crossbars_are_one(script in prop::collection::vec(op(), 1..120)) {
            let topology = network();
            let mut slots = Slots::new(topology.clone(), Span::ZERO);
            let mut model = SimFabric::new(topology, SimSettings::default());
            let mut cells = vec![[None; SLOTS]; (PLANES * RACKS) as usize];
            let now = Cell::new(Time::ZERO);
            for (wait, op) in script {
                now.set(now.get() + Span(wait));
                let write = |port: usize, slot: usize, held: Option<Reservation>| cells[port][slot] = held;
                let answer = slots.apply_all(&[op], || now.get(), write);
                prop_assert_eq!(answer, model.apply(&[op], now.get()));
                let seen = model.observe(now.get()).expect("a model can be observed").programmed;
                prop_assert_eq!(slots.programmed(now.get()), seen.clone());
                let live = |s: &&Reservation| s.until > now.get();
                let written = cells.iter().flatten().flatten().filter(live).copied().collect();
                prop_assert_eq!(seen.timetable, written);
            }
        }
    }
}
