//! From what is wanted to what must be done: the wanted fabric and the observed fabric are two
//! types, and [`diff`] is the one function between them.

use serde::{Deserialize, Serialize};

use crate::circuits::timetable::{Reservation, Timetable};
use crate::ids::{PlaneId, RackId};
use crate::units::Time;

mod apply;
pub mod paths;

pub use apply::{CheckError, CircuitChange, OpError, Rules, apply, check};

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
    /// How many reservations an input port holds at once; later ones are written when there is
    /// room.
    pub slots_per_port: usize,
}

/// One change of one input port. [`apply`] is the one definition of what an operation does; every
/// fabric follows it.
///
/// An operation names the state that it wants, so doing it twice at one instant is doing it once,
/// in the answer too: what is so already is done. A circuit is known by its input port and its
/// start; one that has ended is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "op")]
pub enum Op {
    /// The circuit that this port has from `up_from` on ends at `until`: sooner or later than
    /// before. With an end at or before its start it is taken back. Done if there is none and it
    /// should be dark by now.
    ///
    /// Refused as [`OpError::TooLate`] if it has light and `until` is nearer than the guard.
    /// Refused as [`OpError::Gone`] if a circuit that is gone should go on, and as
    /// [`OpError::Clash`] if a later end runs into another circuit of its ports.
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
    /// The port has no circuit from `up_from` on: one that has not begun is taken back. Done if
    /// there is none.
    ///
    /// Refused as [`OpError::TooLate`] if it has light already.
    Cancel {
        /// The plane.
        plane: PlaneId,
        /// The input port.
        input: RackId,
        /// Which circuit: the one with this start.
        up_from: Time,
    },
    /// The port has this circuit. Done if it has it already.
    ///
    /// Refused as [`OpError::Clash`] if either of its ports is held by another circuit meanwhile
    /// (one with the same start too), or no OCS could have it. Refused as [`OpError::Full`] if the
    /// input port has no slot left, and as [`OpError::TooLate`] if it is over already.
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

/// The operations that bring `observed` to `wanted`, ordered so that no port ever holds two
/// circuits: cancellations, then ends, then new reservations by start. Circuits that end at or
/// before `now` are left alone. O(n log n).
///
/// A converged fabric gives no operation. A reservation for which its port has no slot is left out
/// until a later plan finds room; a slot whose circuit ends by this plan is free in the next one.
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
                    ends.push(Op::End {
                        plane: h.plane,
                        input: h.input,
                        up_from: h.up_from,
                        until: w.until,
                    });
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
                ends.push(Op::End {
                    plane: h.plane,
                    input: h.input,
                    up_from: h.up_from,
                    until: now,
                });
            }
        } else {
            news.push(*want.next().expect("peeked"));
        }
    }
    // How many circuits each port holds that is to have new ones; these come in the order of ports
    // so far.
    let mut held: Vec<((PlaneId, RackId), usize)> = Vec::with_capacity(news.len());
    let mut ports = observed.timetable.ports();
    for r in &news {
        let port = (r.plane, r.input);
        if held.last().is_none_or(|h| h.0 != port) {
            held.push((
                port,
                ports.port(r.plane, r.input).iter().filter(|h| h.until > now).count(),
            ));
        }
    }
    for port in cancels.iter().map(Op::port) {
        if let Ok(k) = held.binary_search_by_key(&port, |h| h.0) {
            held[k].1 -= 1;
        }
    }
    news.sort_by_key(|r| (r.up_from, r.plane, r.input));
    let mut fits = Vec::with_capacity(news.len());
    for r in news {
        let held =
            held.binary_search_by_key(&(r.plane, r.input), |h| h.0).ok().map(|k| &mut held[k].1);
        if let Some(n) = held.filter(|n| **n < observed.slots_per_port) {
            *n += 1;
            fits.push(Op::Reserve(r));
        }
    }
    cancels.into_iter().chain(ends).chain(fits).collect()
}

#[cfg(test)]
mod laws;
