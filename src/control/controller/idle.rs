//! Cycles that change nothing ([`Skip`]): they are counted, and cost next to nothing.

use super::{Controller, Phase};
use crate::circuits::SetBy;
use crate::circuits::timetable::Timetable;
use crate::fabric::Observation;
use crate::record::RecordedEvent;
use crate::units::{Bytes, Span, Time};
use crate::{Event, Skip};

/// What a whole cycle takes: a tick, what was observed, what it cost and what was applied.
const EVENTS: u64 = 4;

/// Whether an event is the rest of a cycle that has been decided, and says nothing new.
pub(super) fn ends_a_cycle(event: &Event) -> bool {
    matches!(event, Event::CycleCost { .. } | Event::Applied { .. })
}

impl Controller {
    /// Whether the next cycle may be skipped. O(1).
    pub(super) fn skip(&self) -> Skip {
        match (self.is_passive(), self.resting) {
            (true, _) => Skip::Always,
            (false, true) => Skip::IfQuiet,
            (false, false) => Skip::Never,
        }
    }

    /// Skips the cycles whose deadlines have come by `now`, and says whether it did; else they are
    /// due as before. They are counted as cycles that cost nothing, and logged where a cycle could
    /// have decided something else ([`Skip::IfQuiet`]; there only at the deadline itself, one by
    /// one). The caller has looked at [`Wake::skip`](crate::Wake::skip). O(1).
    pub fn skip_until(&mut self, now: Time) -> bool {
        match self.skip() {
            _ if self.phase != Phase::Idle || now < self.next_cycle => false,
            Skip::Never => false,
            Skip::Always => {
                let n = now.since(self.next_cycle).0 / self.policy.interval.0.max(1) + 1;
                self.next_cycle += self.policy.interval * n;
                self.count_cycles(n);
                true
            }
            Skip::IfQuiet if now > self.next_cycle => false,
            Skip::IfQuiet => {
                self.revision += EVENTS;
                self.next_cycle = now + self.policy.interval;
                self.last.iter_mut().for_each(|seen| seen.at = now);
                self.count_cycles(1);
                self.log(
                    now,
                    RecordedEvent::Cycle {
                        cycle: self.cycle - 1,
                        demand: Bytes::ZERO,
                        ops: 0,
                        late: false,
                    },
                );
                true
            }
        }
    }

    /// Whether every cycle provably decides nothing: the network or the policy has no circuits,
    /// nothing is set or set by hand, and no progress is read from the counters.
    pub(super) fn is_passive(&self) -> bool {
        let nothing =
            self.wanted.timetable.is_empty() && self.manual.is_empty() && self.failures.is_empty();
        let dark = self.last.as_ref().is_none_or(|l| l.programmed.timetable.is_empty());
        !self.decides_circuits() && nothing && dark && !self.accounts.read_counters()
    }

    /// Whether the network has circuits and the policy sets them.
    pub(super) fn decides_circuits(&self) -> bool {
        !self.topology.planes.is_empty() && self.scheduler.set_by() != SetBy::NoCircuits
    }

    /// Whether the next cycle will do what the one that saw this did, which was nothing: there was
    /// nothing to carry, no circuit is about to change, and no estimate is fading. O(R^2 +
    /// circuits).
    pub(super) fn may_rest(&self, seen: &Observation, now: Time) -> bool {
        let steady =
            |table: &Timetable| table.iter().all(|r| r.up_from <= now && r.until == Time::MAX);
        let by_hand =
            !self.manual.is_empty() || !self.failures.is_empty() || self.top_up_at.is_some();
        let unchanged =
            self.wanted.timetable == seen.programmed.timetable && steady(&self.wanted.timetable);
        let asked = !self.demand.is_zero() || !seen.backlog.is_zero() || self.accounts.any_open();
        !by_hand && unchanged && !asked && self.estimator.rests() && self.scheduler.rests()
    }

    fn count_cycles(&mut self, n: u64) {
        self.cycle += n;
        self.stats.cycles += n;
        for meter in [
            &mut self.meters.poll,
            &mut self.meters.decide,
            &mut self.meters.apply,
            &mut self.meters.cycle,
        ] {
            meter.add_many(Span::ZERO, n);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::circuits::layout::lay_out;
    use crate::circuits::timetable::Reservation;
    use crate::circuits::{Ask, Decision, Matching, OpenCoflow, Scheduler, Usable};
    use crate::demand::DemandMatrix;
    use crate::ids::{CoflowId, PlaneId, RackId};
    use crate::policy::SchedulerKind;
    use crate::topology::{Plane, StopMode};
    use crate::units::{BitRate, Span, Time};

    const RACKS: usize = 5;

    fn planes(stop: StopMode, duplex: bool) -> Vec<Plane> {
        let plane = |k| Plane {
            id: PlaneId(k),
            rate: BitRate::mbit(1000),
            delta: Span::millis(10),
            stop,
            duplex,
        };
        vec![plane(0), plane(1)]
    }

    /// Asks for these cells at the cycle of this number; says what it decided, and what is up from
    /// then on.
    fn ask(
        s: &mut dyn Scheduler,
        planes: &[Plane],
        cells: &[(u32, u32, u64)],
        up: &[Matching],
        cycle: u64,
    ) -> (Decision, Vec<Matching>) {
        let mut demand = DemandMatrix::zero(RACKS);
        cells.iter().for_each(|&(i, j, b)| demand.add(RackId(i), RackId(j), b));
        let (at, interval) = (Time(cycle * 100_000_000), Span::millis(100));
        let rest: Vec<_> = demand.entries().collect();
        let coflow = OpenCoflow { id: CoflowId(0), arrival: Time::ZERO, weight: 1, sent: 0, rest };
        let coflows = if coflow.rest.is_empty() { vec![] } else { vec![coflow] };
        let usable = vec![Usable::all(RACKS); planes.len()];
        let (eps, demand, coflows) = (BitRate::mbit(100), &demand, &coflows[..]);
        let decision = s.decide(&Ask {
            demand,
            current: up,
            planes,
            usable: &usable,
            at,
            interval,
            cycle,
            eps,
            coflows,
        });
        let before = up.iter().zip(planes).flat_map(|(m, p)| {
            m.pairs().map(|(input, output)| {
                let (setup_at, up_from, until) = (Time::ZERO, Time::ZERO, Time::MAX);
                Reservation { plane: p.id, input, output, setup_at, up_from, until }
            })
        });
        let table = lay_out(&before.collect(), &decision, planes, RACKS, at);
        // Of every plane what it joins when the interval ends.
        let then =
            planes.iter().map(|p| table.matching_at(p.id, RACKS, at + Span::millis(99))).collect();
        (decision, then)
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        /// Of two that are asked the same, one is asked three times more while nothing is wanted
        /// and its circuits stay: both decide the same ever after.
        #[test]
        fn a_scheduler_that_rests_does_not_miss_what_it_is_not_asked(
            k in 0..SchedulerKind::ALL.len(), duplex: bool, all_stop: bool,
            steps in prop::collection::vec((any::<bool>(), prop::collection::vec((0..5u32, 0..5u32, 1..50_000_000u64), 1..8)), 2..8),
        ) {
            let kind = SchedulerKind::ALL[k];
            let planes = planes(if all_stop { StopMode::AllStop } else { StopMode::NotAllStop }, duplex);
            let (mut a, mut b) = (kind.build(), kind.build());
            prop_assume!(a.rests());
            let mut up = vec![Matching::empty(RACKS); 2];
            let mut cycle = 0;
            for (idle, cells) in steps {
                let cells = if idle { vec![] } else { cells };
                let mut last = None;
                // Until the circuits stay with nothing to carry.
                while last.as_ref() != Some(&up) {
                    last = Some(up.clone());
                    let (said, then) = ask(&mut *a, &planes, &cells, &up, cycle);
                    prop_assert_eq!(&said, &ask(&mut *b, &planes, &cells, &up, cycle).0, "{:?}", kind);
                    (up, cycle) = (then, cycle + 1);
                    if !idle { break; }
                }
                for _ in 0..if idle { 3 } else { 0 } {
                    let (_, then) = ask(&mut *b, &planes, &cells, &up, cycle);
                    prop_assert_eq!(&then, &up, "{:?} sets circuits without demand", kind);
                    cycle += 1;
                }
            }
        }
    }

    #[test]
    fn only_a_rotation_never_rests() {
        let restless: Vec<_> =
            SchedulerKind::ALL.into_iter().filter(|k| !k.build().rests()).collect();
        assert_eq!(restless, [SchedulerKind::RoundRobin, SchedulerKind::External]);
    }
}
