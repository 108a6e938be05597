//! From what is wanted to what must be done: the wanted fabric and the observed fabric are two types, and [`diff`] is the
//! one function between them.

use serde::{Deserialize, Serialize};

use crate::circuits::timetable::{Clash, Reservation, Timetable};
use crate::ids::{PlaneId, RackId};
use crate::topology::Plane;
use crate::units::Time;

/// What the controller wants the OCS planes to do.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Wanted {
    /// Every circuit from now on.
    pub timetable: Timetable,
}

/// What the fabric said that its planes are programmed to do.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Programmed {
    /// The reservations in the hardware, those that ended left out.
    pub timetable: Timetable,
    /// How many reservations an input port holds at once; later ones are written when there is room.
    pub slots_per_port: usize,
}

/// One change of one input port. An operation is idempotent: doing it twice is doing it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "op")]
pub enum Op {
    /// Ends (or prolongs, or shortens) the circuit that this port has from `up_from` on, at `until`.
    End {
        /// The plane.
        plane: PlaneId,
        /// The input port.
        input: RackId,
        /// Which circuit: the one with this start.
        up_from: Time,
        /// Its new end.
        until: Time,
    },
    /// Takes back a circuit that has not begun.
    Cancel {
        /// The plane.
        plane: PlaneId,
        /// The input port.
        input: RackId,
        /// Which circuit: the one with this start.
        up_from: Time,
    },
    /// Writes a circuit.
    Reserve(Reservation),
}

impl Op {
    /// The port that this operation changes.
    pub fn port(&self) -> (PlaneId, RackId) {
        match *self {
            Self::End { plane, input, .. } | Self::Cancel { plane, input, .. } => (plane, input),
            Self::Reserve(r) => (r.plane, r.input),
        }
    }
}

/// The operations that bring `observed` to `wanted`, ordered so that no port ever holds two circuits: cancellations, then
/// ends, then new reservations by start. Circuits that end before `now` are left alone. O(n log n).
///
/// A converged fabric gives no operation.
pub fn diff(wanted: &Wanted, observed: &Programmed, now: Time) -> Vec<Op> {
    let (mut cancels, mut ends, mut news) = (vec![], vec![], vec![]);
    let key = |r: &Reservation| (r.plane, r.input, r.up_from, r.output);
    let live = |r: &&Reservation| r.until > now;
    let mut have = observed.timetable.iter().filter(live).peekable();
    let mut want = wanted.timetable.iter().filter(live).peekable();
    loop {
        let take_have = match (have.peek(), want.peek()) {
            (None, None) => break,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(h), Some(w)) if key(h) == key(w) => {
                if h.until != w.until {
                    ends.push(Op::End { plane: h.plane, input: h.input, up_from: h.up_from, until: w.until });
                }
                have.next();
                want.next();
                continue;
            }
            (Some(h), Some(w)) => key(h) < key(w),
        };
        if take_have {
            let h = have.next().expect("peeked");
            if h.up_from > now {
                cancels.push(Op::Cancel { plane: h.plane, input: h.input, up_from: h.up_from });
            } else {
                ends.push(Op::End { plane: h.plane, input: h.input, up_from: h.up_from, until: now });
            }
        } else {
            news.push(*want.next().expect("peeked"));
        }
    }
    news.sort_by_key(|r| (r.up_from, r.plane, r.input));
    let room = |r: &Reservation, given: usize| {
        let held = observed.timetable.port(r.plane, r.input).iter().filter(|h| h.until > now).count();
        let freed = cancels.iter().filter(|c| c.port() == (r.plane, r.input)).count();
        held - freed.min(held) + given < observed.slots_per_port
    };
    let mut given = std::collections::BTreeMap::new();
    let mut fits = Vec::with_capacity(news.len());
    for r in news {
        let g = given.entry((r.plane, r.input)).or_insert(0usize);
        if room(&r, *g) {
            *g += 1;
            fits.push(Op::Reserve(r));
        }
    }
    cancels.into_iter().chain(ends).chain(fits).collect()
}

/// What the planes are programmed to do once `ops` have been done on `observed`.
pub fn after(observed: &Programmed, ops: &[Op]) -> Programmed {
    let mut list: Vec<Reservation> = observed.timetable.iter().copied().collect();
    for op in ops {
        match *op {
            Op::Cancel { plane, input, up_from } => list.retain(|r| (r.plane, r.input, r.up_from) != (plane, input, up_from)),
            Op::End { plane, input, up_from, until } => {
                for r in list.iter_mut().filter(|r| (r.plane, r.input, r.up_from) == (plane, input, up_from)) {
                    r.until = until;
                }
                list.retain(|r| r.until > r.up_from);
            }
            Op::Reserve(r) => {
                list.retain(|o| (o.plane, o.input, o.up_from) != (r.plane, r.input, r.up_from));
                list.push(r);
            }
        }
    }
    Programmed { timetable: list.into_iter().collect(), slots_per_port: observed.slots_per_port }
}

/// Proves a plan before it is carried out: after every single operation the planes could follow what they hold.
///
/// # Errors
/// The number of the first operation after which two circuits would hold one port, and the clash.
pub fn check(observed: &Programmed, ops: &[Op], planes: &[Plane], racks: usize) -> Result<(), (usize, Clash)> {
    // Ports are independent but for outputs; checking after the groups of cancels, ends and reserves would miss an
    // order that is wrong within a group, so reserves are checked one by one on their own ports only.
    let mut state = observed.clone();
    let first_reserve = ops.iter().position(|o| matches!(o, Op::Reserve(_))).unwrap_or(ops.len());
    if ops[first_reserve..].iter().any(|o| !matches!(o, Op::Reserve(_))) {
        for k in 0..ops.len() {
            state = after(&state, &ops[k..=k]);
            state.timetable.check(planes, racks).map_err(|c| (k, c))?;
        }
        return Ok(());
    }
    // Cancels and ends that shorten only free ports; reserves only add, so the last state contains all the others.
    state = after(&state, &ops[..first_reserve]);
    state.timetable.check(planes, racks).map_err(|c| (first_reserve.saturating_sub(1), c))?;
    state = after(&state, &ops[first_reserve..]);
    state.timetable.check(planes, racks).map_err(|c| (ops.len() - 1, c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn res(i: u32, j: u32, s: u64, u: u64, e: u64) -> Reservation {
        Reservation { plane: PlaneId(0), input: RackId(i), output: RackId(j), setup_at: Time(s), up_from: Time(u), until: Time(e) }
    }
    fn programmed(r: &[Reservation]) -> Programmed {
        Programmed { timetable: r.iter().copied().collect(), slots_per_port: 4 }
    }
    fn wanted(r: &[Reservation]) -> Wanted {
        Wanted { timetable: r.iter().copied().collect() }
    }

    #[test]
    fn a_converged_fabric_needs_nothing_and_a_diff_converges() {
        let a = [res(0, 1, 0, 10, u64::MAX), res(1, 0, 0, 10, u64::MAX)];
        let b = [res(0, 1, 0, 10, 100), res(0, 2, 100, 110, u64::MAX), res(1, 0, 0, 10, u64::MAX)];
        let ops = diff(&wanted(&b), &programmed(&a), Time(50));
        assert_eq!(
            ops,
            [
                Op::End { plane: PlaneId(0), input: RackId(0), up_from: Time(10), until: Time(100) },
                Op::Reserve(res(0, 2, 100, 110, u64::MAX))
            ]
        );
        let then = after(&programmed(&a), &ops);
        assert_eq!(diff(&wanted(&b), &then, Time(50)), []);
        let back = diff(&wanted(&a), &then, Time(50));
        assert_eq!(after(&then, &back), programmed(&a), "a change and its reverse leave the same state");
    }

    #[test]
    fn a_full_port_waits_for_room() {
        let many: Vec<_> = (0..6).map(|k| res(0, 1 + k % 2, k as u64 * 100, k as u64 * 100 + 10, k as u64 * 100 + 90)).collect();
        let ops = diff(&wanted(&many), &programmed(&[]), Time(0));
        assert_eq!(ops.len(), 4);
        let held = after(&programmed(&[]), &ops);
        assert_eq!(diff(&wanted(&many), &held, Time(50)), []);
        assert_eq!(diff(&wanted(&many), &held, Time(150)).len(), 1);
    }
}
