//! What ToRs hold until a circuit has light, by the counters of what they admitted and of what
//! crossed.

use crate::circuits::timetable::Reservation;
use crate::demand::DemandMatrix;
use crate::units::{Span, Time};

/// How long nothing must cross a circuit with light before its queue counts as empty.
const EMPTY: Span = Span::millis(50);

/// The counters of a network whose packets wait, `R x R` each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairCounters {
    /// Payload that hosts sent.
    pub sent: DemandMatrix,
    /// Of it, what ToRs admitted to circuits and no OCS sent back.
    pub admitted: DemandMatrix,
    /// Of it, what crossed an OCS.
    pub crossed: DemandMatrix,
}

/// What ToRs hold, followed from one look at the counters to the next.
#[derive(Clone, Debug)]
pub struct HeldBytes {
    /// What was sent at the last look, without what was held then.
    sent: DemandMatrix,
    held: DemandMatrix,
    /// What was admitted and found no room in its queue; TCP sends it again.
    lost: DemandMatrix,
    /// A look at least [`EMPTY`] ago, or the first, and when that was.
    earlier: Option<(Time, PairCounters)>,
}

impl HeldBytes {
    /// Nothing, in a network of R racks.
    pub fn new(racks: usize) -> Self {
        let zero = DemandMatrix::zero(racks);
        Self { sent: zero.clone(), held: zero.clone(), lost: zero, earlier: None }
    }

    /// What ToRs held at the last look.
    pub fn held(&self) -> &DemandMatrix {
        &self.held
    }

    /// Looks at the counters, while these circuits are programmed. Gives what was sent and is not
    /// held. O(R^2 + circuits).
    pub fn look(
        &mut self,
        counted: PairCounters,
        circuits: impl Iterator<Item = Reservation>,
        now: Time,
    ) -> &DemandMatrix {
        let inside = |c: &PairCounters| c.admitted.with(&c.crossed, u64::saturating_sub);
        let within = inside(&counted);
        if let Some((at, before)) = &self.earlier {
            let was = inside(before);
            for r in circuits.filter(|r| now.since(*at) >= EMPTY && r.is_up(*at) && r.is_up(now)) {
                let (i, j) = (r.input, r.output);
                if counted.crossed.get(i, j) == before.crossed.get(i, j) {
                    self.lost.set(i, j, was.get(i, j));
                }
            }
        }
        self.lost = self.lost.with(&within, u64::min);
        self.held = within.with(&self.lost, u64::saturating_sub);
        // Packets may pass between two counters; what was sent once stays sent.
        self.sent = counted.sent.with(&self.held, u64::saturating_sub).with(&self.sent, u64::max);
        if self.earlier.as_ref().is_none_or(|(at, _)| now.since(*at) >= EMPTY) {
            self.earlier = Some((now, counted));
        }
        &self.sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{PlaneId, RackId};

    const PAIR: (RackId, RackId) = (RackId(0), RackId(1));

    fn look(w: &mut HeldBytes, ms: u64, [sent, admitted, crossed]: [u64; 3], up: bool) -> [u64; 2] {
        let of = |bytes| DemandMatrix::from_rows(&[&[0, bytes], &[0, 0]]);
        let counted = PairCounters { sent: of(sent), admitted: of(admitted), crossed: of(crossed) };
        let circuit = Reservation {
            plane: PlaneId(0),
            input: PAIR.0,
            output: PAIR.1,
            setup_at: Time::ZERO,
            up_from: Time::ZERO,
            until: Time::MAX,
        };
        let now = Time::ZERO + Span::millis(ms);
        let sent = w.look(counted, up.then_some(circuit).into_iter(), now).get(PAIR.0, PAIR.1);
        [sent, w.held().get(PAIR.0, PAIR.1)]
    }

    #[test]
    fn what_waits_is_not_sent_and_what_was_dropped_does_not_wait() {
        let mut w = HeldBytes::new(2);
        assert_eq!(look(&mut w, 0, [10, 8, 0], false), [2, 8]);
        // Without light it waits, however long that is.
        assert_eq!(look(&mut w, 900, [10, 8, 0], false), [2, 8]);
        // With light it crosses. The last two bytes were dropped: nothing crosses any more.
        assert_eq!(look(&mut w, 1000, [10, 8, 6], true), [8, 2]);
        assert_eq!(look(&mut w, 1020, [10, 8, 6], true), [8, 2]);
        assert_eq!(look(&mut w, 1060, [10, 8, 6], true), [10, 0]);
        // They are sent again.
        assert_eq!(look(&mut w, 1070, [12, 10, 6], true), [10, 2]);
        assert_eq!(look(&mut w, 1080, [12, 10, 8], true), [12, 0]);
    }

    #[test]
    fn what_crosses_late_was_not_dropped() {
        let mut w = HeldBytes::new(2);
        look(&mut w, 0, [8, 8, 0], true);
        assert_eq!(look(&mut w, 60, [8, 8, 0], true), [8, 0]);
        assert_eq!(look(&mut w, 70, [8, 8, 5], true), [8, 0]);
        assert_eq!(look(&mut w, 80, [8, 8, 8], true), [8, 0]);
        // Nothing was lost, so all of what comes now is held.
        assert_eq!(look(&mut w, 90, [12, 12, 8], false), [8, 4]);
    }
}
