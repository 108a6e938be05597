//! The circuits that every port holds: the one place that says whether an operation can still be done. Shared by both mechanisms.

use super::bpf::programs::SLOTS;
use crate::circuits::timetable::{Reservation, Timetable};
use crate::fabric::OpResult;
use crate::ids::{PlaneId, RackId};
use crate::plan::Op;
use crate::units::{Span, Time};

/// By port, what its slots hold.
pub struct Slots {
    racks: usize,
    guard: Span,
    ports: Vec<[Option<Reservation>; SLOTS]>,
}

impl Slots {
    /// Empty slots. `guard`: how long before a circuit's end the order for it must come.
    pub fn new(racks: usize, planes: usize, guard: Span) -> Self {
        Self { racks, guard, ports: vec![[None; SLOTS]; (planes * racks).max(1)] }
    }

    /// Everything held, ended circuits too, port by port.
    pub fn all(&self) -> impl Iterator<Item = &Reservation> {
        self.ports.iter().flatten().flatten()
    }

    /// What has not ended.
    pub fn programmed(&self, now: Time) -> Timetable {
        self.all().filter(|r| r.until > now).copied().collect()
    }

    /// Carries out operations in order; `write` (port, slot, what it holds now) puts a change into the kernel. Once one was
    /// refused, the reservations behind it are held against all that stands: a port whose circuit did not end in time must
    /// not get another.
    pub fn apply_all(
        &mut self,
        ops: &[Op],
        clock: impl Fn() -> Time,
        mut write: impl FnMut(usize, usize, Option<Reservation>),
    ) -> Vec<OpResult> {
        let mut refused = false;
        let mut results = Vec::with_capacity(ops.len());
        for op in ops {
            let clash = match op {
                Op::Reserve(r) if refused => self.clash(r),
                _ => None,
            };
            let change = clash.map_or_else(|| self.change(op, clock()), Err);
            refused |= change.is_err();
            let outcome = change.map(|(port, slot)| {
                write(port, slot, self.ports[port][slot]);
                clock()
            });
            results.push(OpResult { op: *op, outcome });
        }
        results
    }

    fn clash(&self, r: &Reservation) -> Option<String> {
        let standing = self.all().filter(|o| o.plane == r.plane && o.until > r.setup_at && o.up_from < r.until);
        let mut hit = standing.filter(|o| (o.input == r.input || o.output == r.output) && o.up_from != r.up_from);
        hit.next().map(|o| format!("{} -> {} still holds a port until {}", o.input, o.output, o.until))
    }

    fn change(&mut self, op: &Op, now: Time) -> Result<(usize, usize), String> {
        match *op {
            Op::Reserve(r) => self.reserve(r, now),
            Op::End { plane, input, up_from, until } => {
                let (port, k) = self.find(plane, input, up_from)?;
                // Never a cut into packets under way: a queue gets its time to drain, or the circuit stays.
                if until < now + self.guard {
                    return Err(format!("too late: a circuit ends {} after the order or later", self.guard));
                }
                if let Some(r) = &mut self.ports[port][k] {
                    r.until = until;
                }
                Ok((port, k))
            }
            Op::Cancel { plane, input, up_from } => {
                let (port, k) = self.find(plane, input, up_from)?;
                self.ports[port][k] = None;
                Ok((port, k))
            }
        }
    }

    fn find(&self, plane: PlaneId, input: RackId, up_from: Time) -> Result<(usize, usize), String> {
        let port = plane.index() * self.racks + input.index();
        let found = self.ports[port].iter().position(|s| s.is_some_and(|r| r.up_from == up_from));
        found.map(|k| (port, k)).ok_or_else(|| format!("no circuit of {input} on {plane} begins at {up_from}"))
    }

    fn reserve(&mut self, r: Reservation, now: Time) -> Result<(usize, usize), String> {
        let port = r.plane.index() * self.racks + r.input.index();
        let again = self.ports[port].iter().position(|s| s.is_some_and(|o| o.up_from == r.up_from));
        let free = || self.ports[port].iter().position(|s| s.is_none_or(|o| o.until <= now));
        let k = again.or_else(free).ok_or_else(|| format!("all {SLOTS} slots of {} on {} hold circuits", r.input, r.plane))?;
        self.ports[port][k] = Some(r);
        Ok((port, k))
    }
}
