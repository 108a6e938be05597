//! What a controller makes of its circuit probes.

use super::Controller;
use crate::fabric::ProbeReport;
use crate::faults::BlameChanges;
use crate::ids::{PlaneId, RackId};
use crate::record::RecordedEvent;
use crate::units::Time;
use crate::{Action, Rejected};

impl Controller {
    pub(super) fn probed(&mut self, report: &ProbeReport, now: Time) {
        let &ProbeReport { plane, input, output, at, arrived, dark } = report;
        let asked = self
            .wanted
            .timetable
            .port(plane, input)
            .iter()
            .find(|r| r.output == output && r.is_up(at))
            .copied();
        let why = match arrived {
            Some((rack, _)) if rack == output => {
                self.stats.probes_ok += 1;
                // A repeated probe says nothing about the dark time.
                if let (Some(r), Some(dark)) = (asked.filter(|r| r.up_from == at), dark) {
                    let wanted = r.up_from.since(r.setup_at);
                    self.meters.dark_asked.add(wanted);
                    self.meters.dark_achieved.add(dark);
                    if self.topology.planes.windows(2).any(|p| p[0].delta != p[1].delta) {
                        let (asked, achieved) = self.meters.dark_by_plane.entry(plane).or_default();
                        asked.add(wanted);
                        achieved.add(dark);
                    }
                }
                let changes = self.faults.passed(plane, input, output);
                return self.blame_moved(changes, now);
            }
            // A circuit that was over before its probe was given up proves nothing, wherever its
            // frames went.
            _ if asked.is_none_or(|r| !r.is_up(now)) => return,
            Some((rack, _)) => {
                self.stats.probes_wrong += 1;
                format!("a probe from {input} for {output} came out at {rack}")
            }
            None => {
                self.stats.probes_lost += 1;
                format!("a probe from {input} for {output} never came out")
            }
        };
        match self.faults.failed(plane, input, output, why) {
            Some(changes) => self.blame_moved(changes, now),
            None => self.actions.push_back(Action::Probe {
                plane,
                input,
                output,
                dark_from: now,
                at: now,
            }),
        }
    }

    pub(super) fn repaired(
        &mut self,
        plane: PlaneId,
        rack: RackId,
        now: Time,
    ) -> Result<(), Rejected> {
        self.port_exists(plane, rack)?;
        if let Some(why) = self.faults.why_down((plane, rack)) {
            return Err(Rejected::Conflict(format!(
                "{why}; the port is used again when that is mended"
            )));
        }
        let none = || Rejected::NotFound(format!("a fault of plane {} port {}", plane.0, rack.0));
        let changes = self.faults.repaired((plane, rack)).ok_or_else(none)?;
        self.blame_moved(changes, now);
        Ok(())
    }

    pub(super) fn blame_moved(&mut self, changes: BlameChanges, now: Time) {
        for (plane, rack) in changes.cleared {
            self.log(now, RecordedEvent::PortRepaired { plane, rack });
        }
        for ((plane, rack), why) in changes.faulty {
            self.log(now, RecordedEvent::PortFaulty { plane, rack, why });
        }
    }
}
