//! What a controller does about a network that another process changes: ports that carry nothing
//! are not used, and circuits that stand but carry nothing are probed again.

use std::collections::BTreeMap;

use super::Controller;
use crate::circuits::timetable::Reservation;
use crate::fabric::Observation;
use crate::faults::PlanePort;
use crate::record::{Failure, RecordedEvent};
use crate::{Action, Trouble};

/// A circuit that carried less than this part of what it could, while bytes waited for it, is
/// probed.
const IDLE: u64 = 64;

impl Controller {
    /// Takes note of what an observation says about damage, and probes circuits that should carry
    /// something and do not.
    pub(super) fn look_at_the_world(&mut self, seen: &Observation, now: crate::units::Time) {
        match self.world.look(&seen.damage, now) {
            None if self.failures.remove(&Trouble::World).is_some() => {
                self.log(now, RecordedEvent::Recovered { what: Trouble::World.to_string() });
            }
            None => {}
            Some((why, fresh)) => {
                let (trouble, retry_at) = (Trouble::World, self.next_cycle);
                let f = self.failures.entry(trouble).or_insert(Failure {
                    trouble,
                    why: String::new(),
                    attempts: 0,
                    retry_at,
                });
                (f.attempts, f.retry_at) = (f.attempts + 1, retry_at);
                f.why.clone_from(&why);
                if fresh {
                    self.log(now, RecordedEvent::Failed { what: trouble.to_string(), why });
                }
            }
        }
        let down: BTreeMap<PlanePort, String> =
            seen.damage.iter().filter_map(|d| Some((d.port?, d.what.clone()))).collect();
        let changes = self.faults.down(down);
        self.blame_moved(changes, now);
        if self.paths.down(seen.damage.iter().filter_map(|d| d.cable)) {
            self.steer(now);
        }
        for r in self.dark_circuits(seen) {
            self.actions.push_back(Action::Probe {
                plane: r.plane,
                input: r.input,
                output: r.output,
                dark_from: now,
                at: now,
            });
        }
    }

    /// Circuits that had light since the last observation and carried next to nothing, though bytes
    /// waited for them all the time. O(circuits).
    fn dark_circuits(&self, seen: &Observation) -> Vec<Reservation> {
        let Some(last) = self.last.as_ref().filter(|_| self.policy.probes) else { return vec![] };
        let is_dark = |r: &&Reservation| {
            let carried = |o: &Observation| o.ports[r.plane.index()][r.input.index()].crossed_bytes;
            let could =
                self.topology.planes[r.plane.index()].rate.bytes_in(seen.at.since(last.at)).0;
            let waits =
                last.backlog.get(r.input, r.output).min(seen.backlog.get(r.input, r.output));
            r.up_from <= last.at
                && r.until > seen.at
                && waits > could / IDLE
                && carried(seen).saturating_sub(carried(last)) < could / IDLE
                && self
                    .faults
                    .why((r.plane, r.input))
                    .or(self.faults.why((r.plane, r.output)))
                    .is_none()
        };
        seen.programmed.timetable.iter().filter(is_dark).copied().collect()
    }
}
