//! Lists of switches: what the controller hears of flows, and what it asks of the fabric.

use super::Controller;
use crate::ids::CoflowId;
use crate::plan::paths::PathEnds;
use crate::record::RecordedEvent;
use crate::units::Time;
use crate::{Action, Event, Rejected, Trouble};

impl Controller {
    /// Takes an event about the ways of flows.
    ///
    /// # Errors
    /// What cannot be accepted; the state is then as before.
    pub(super) fn steering(&mut self, event: Event, now: Time) -> Result<(), Rejected> {
        match event {
            Event::CoflowFlows { id, flows, types } => {
                self.accounts.expect_open(id)?;
                if !self.paths.is_known() {
                    return Ok(());
                }
                self.paths.begin(id, &flows, &types)?;
                self.steer(now);
                let pairs = self.paths.unmet_of(id);
                if pairs > 0 {
                    self.log(now, RecordedEvent::TypesUnmet { id, pairs });
                }
                return Ok(());
            }
            Event::SwitchFault { switch, over } => self.paths.fault(switch, over)?,
            Event::ManualList { from, to, ports, list } => {
                self.paths.set(PathEnds { from, to, ports }, list)?
            }
            Event::ManualListEnds { from, to, ports } => {
                self.paths.unset(PathEnds { from, to, ports })?
            }
            Event::Steered { .. } if !self.paths.is_asked() => return Ok(()),
            Event::Steered { results } => {
                match self.paths.answered(results) {
                    // It is asked for again in the next cycle.
                    Some(why) => self.failed(Trouble::Paths, why, now),
                    None => {
                        self.failures.remove(&Trouble::Paths);
                        self.steer(now);
                    }
                }
                return Ok(());
            }
            _ => return Ok(()),
        }
        self.steer(now);
        Ok(())
    }

    /// The flows of a coflow that is over leave room to others.
    pub(super) fn flows_ended(&mut self, id: CoflowId, now: Time) {
        if self.paths.end(id) {
            self.steer(now);
        }
    }

    /// Decides the lists of all flows, and asks for what the fabric does not hold.
    pub(super) fn steer(&mut self, now: Time) {
        if self.paths.rests() {
            return;
        }
        let Some(decided) = self.paths.decide() else { return };
        let ops = self.paths.ops();
        if ops.is_empty() {
            return;
        }
        let (saturated, before, after) = (decided.saturated, decided.before, decided.after);
        self.log(now, RecordedEvent::Paths { lists: ops.clone(), saturated, before, after });
        self.actions.push_back(Action::Steer { ops });
    }
}
