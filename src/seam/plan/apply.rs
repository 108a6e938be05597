//! What an operation means: the one pure function that the simulator's crossbars, the kernel's
//! slots and the tests use.

use serde::{Deserialize, Serialize};

use super::{Op, Programmed};
use crate::circuits::timetable::{Clash, Reservation, Side};
use crate::ids::{PlaneId, RackId};
use crate::topology::Plane;
use crate::units::{Span, Time};

/// What operations are judged by.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// The network's planes, by number.
    pub planes: &'a [Plane],
    /// Number of racks, R.
    pub racks: usize,
    /// A circuit that has light may not end sooner than this after the order: its queue at the ToR
    /// needs that time to drain.
    pub guard: Span,
}

/// What an operation changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CircuitChange {
    /// Nothing: it was so already.
    Kept,
    /// The port holds this circuit now: a new one, or one with a new end.
    Written(Reservation),
    /// The port does not hold this circuit any more.
    Removed(Reservation),
}

/// Why an operation was refused; the state is then as before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpError {
    /// Two circuits would hold one port, or the circuit is impossible by itself. The same operation
    /// helps only after the other circuit was taken back or ended sooner: observe and plan again.
    #[error(transparent)]
    Clash(#[from] Clash),
    /// All slots of the input port hold circuits that have not ended. The same operation succeeds
    /// once one of them has ended.
    #[error("the port of {input} on plane {} holds {slots} reservations already", .plane.0)]
    Full {
        /// The plane.
        plane: PlaneId,
        /// The rack whose input port it is.
        input: RackId,
        /// Reservations that the port can hold.
        slots: usize,
    },
    /// The circuit has light and its packets are on their way, or the whole reservation lies in the
    /// past. The same operation never succeeds; one with an end at `soonest` or later does, if it
    /// comes at once.
    #[error(
        "too late: a circuit of {input} on {plane} that begins at {up_from} can end at {soonest} at the soonest"
    )]
    TooLate {
        /// The plane.
        plane: PlaneId,
        /// The rack whose input port it is.
        input: RackId,
        /// Which circuit: the one with this start.
        up_from: Time,
        /// The soonest end that is allowed now.
        soonest: Time,
    },
    /// A circuit that was to go on does not exist, or has ended. The same operation never succeeds:
    /// reserve a new circuit.
    #[error("no circuit of {input} on {plane} begins at {up_from}")]
    Gone {
        /// The plane.
        plane: PlaneId,
        /// The rack whose input port it is.
        input: RackId,
        /// The start that was looked for.
        up_from: Time,
    },
    /// The simulator models no circuits, as it was asked. No operation ever succeeds.
    #[error("this model was made without circuits")]
    NoCircuits,
}

/// Carries out one operation at `now`, or refuses it and leaves `state` as it was. Circuits that
/// ended at or before `now` count as gone. What each operation does, and what it is refused for, is
/// said at [`Op`]. O(reservations of the plane).
///
/// The result is free of clashes if `state` was.
///
/// # Errors
/// Why it cannot be done.
pub fn apply(
    state: &mut Programmed,
    op: &Op,
    rules: &Rules,
    now: Time,
) -> Result<CircuitChange, OpError> {
    match *op {
        Op::Reserve(r) => reserve(state, r, rules, now),
        Op::Cancel { plane, input, up_from } => {
            let Some(held) = held(state, plane, input, up_from, now) else {
                return Ok(CircuitChange::Kept);
            };
            if held.up_from <= now {
                return Err(OpError::TooLate { plane, input, up_from, soonest: now + rules.guard });
            }
            state.timetable.remove(&held);
            Ok(CircuitChange::Removed(held))
        }
        Op::End { plane, input, up_from, until } => match held(state, plane, input, up_from, now) {
            Some(held) => end(state, held, until, rules, now),
            // It is dark at `until`, as asked: over by now, or taken back before it had light.
            None if until <= now.max(up_from) => Ok(CircuitChange::Kept),
            None => Err(OpError::Gone { plane, input, up_from }),
        },
    }
}

/// The circuit of a port that begins at `up_from` and has not ended.
fn held(
    state: &Programmed,
    plane: PlaneId,
    input: RackId,
    up_from: Time,
    now: Time,
) -> Option<Reservation> {
    state
        .timetable
        .port(plane, input)
        .iter()
        .find(|r| r.up_from == up_from && r.until > now)
        .copied()
}

fn end(
    state: &mut Programmed,
    held: Reservation,
    until: Time,
    rules: &Rules,
    now: Time,
) -> Result<CircuitChange, OpError> {
    let Reservation { plane, input, up_from, .. } = held;
    if held.until == until {
        return Ok(CircuitChange::Kept);
    }
    if up_from <= now && until < now + rules.guard {
        return Err(OpError::TooLate { plane, input, up_from, soonest: now + rules.guard });
    }
    if until <= up_from {
        state.timetable.remove(&held);
        return Ok(CircuitChange::Removed(held));
    }
    let ended = Reservation { until, ..held };
    if until > held.until {
        state.timetable.check_one(&ended, rules.planes, rules.racks, now)?;
    }
    state.timetable.end(&held, until);
    Ok(CircuitChange::Written(ended))
}

fn reserve(
    state: &mut Programmed,
    r: Reservation,
    rules: &Rules,
    now: Time,
) -> Result<CircuitChange, OpError> {
    let Reservation { plane, input, up_from, .. } = r;
    let (mut same, mut count) = (None, 0);
    for o in state.timetable.port(plane, input).iter().filter(|o| o.until > now) {
        count += 1;
        same = same.or((o.up_from == up_from).then_some(*o));
    }
    if let Some(a) = same {
        let other = || Clash::Port {
            plane,
            side: Side::Input,
            rack: input,
            a: Box::new(a),
            b: Box::new(r),
        };
        return if a == r { Ok(CircuitChange::Kept) } else { Err(other().into()) };
    }
    state.timetable.check_one(&r, rules.planes, rules.racks, now)?;
    if r.until <= now {
        return Err(OpError::TooLate { plane, input, up_from, soonest: now + rules.guard });
    }
    if count >= state.slots_per_port {
        return Err(OpError::Full { plane, input, slots: state.slots_per_port });
    }
    state.timetable.insert(r);
    Ok(CircuitChange::Written(r))
}

/// Why a plan may not be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckError {
    /// The number of the first operation that would be refused; `None` if every operation can be
    /// done, but the fabric holds circuits that clash and the plan does not end them.
    pub at: Option<usize>,
    /// What is wrong.
    pub why: OpError,
}

/// Proves a plan before it is carried out, operation by operation: after each one the planes could
/// follow what they hold, if they could before. Gives what they hold after the last.
/// O((operations + log n) x n) for n reservations.
///
/// # Errors
/// The first operation that cannot be done, or what the fabric holds that no OCS could follow.
pub fn check(
    observed: &Programmed,
    ops: &[Op],
    rules: &Rules,
    now: Time,
) -> Result<Programmed, CheckError> {
    let mut then = observed.clone();
    then.timetable.forget_before(now);
    for (k, op) in ops.iter().enumerate() {
        apply(&mut then, op, rules, now).map_err(|why| CheckError { at: Some(k), why })?;
    }
    then.timetable.forget_before(now);
    match then.timetable.check(rules.planes, rules.racks) {
        Ok(()) => Ok(then),
        Err(clash) => Err(CheckError { at: None, why: clash.into() }),
    }
}
