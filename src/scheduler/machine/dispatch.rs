//! What follows from events: offers of free slots, reads and shuffles that begin, and the way out when nothing moves.

use super::Scheduler;
use crate::ids::{JobId, RackId};
use crate::scheduler::TaskRef;
use crate::scheduler::stage::Doing;

impl Scheduler {
    /// Decides everything that can be decided now.
    pub(super) fn dispatch(&mut self) {
        loop {
            self.offer_slots();
            self.begin_reads();
            self.begin_shuffles();
            if !self.is_stuck() || !self.unstick() {
                return;
            }
        }
    }

    /// Offers free slots rack by rack, one a turn, until everybody has declined.
    fn offer_slots(&mut self) {
        while !self.state.queues.is_idle() {
            let Some(rack) = self.next_rack() else { return };
            match self.policy.offer(&self.state, rack).filter(|p| self.state.startable(p.job, p.stage)) {
                Some(pick) => {
                    self.last = rack;
                    self.start(pick, rack);
                }
                None => drop(self.dirty.remove(&rack)),
            }
        }
    }

    /// The next rack after the last one that has a free slot nobody declined.
    fn next_rack(&mut self) -> Option<RackId> {
        loop {
            let after = self.dirty.range(RackId(self.last.0 + 1)..).next();
            let rack = *after.or_else(|| self.dirty.first())?;
            if self.state.slots.free_in(rack) > 0 {
                return Some(rack);
            }
            self.dirty.remove(&rack);
        }
    }

    /// Whether tasks wait and nothing is on its way that could end that.
    fn is_stuck(&self) -> bool {
        let s = &self.state;
        s.fetching > 0 && s.computing == 0 && s.transfers.is_empty() && s.jobs.iter().all(|j| j.placed)
    }

    /// Lets a held shuffle go; if there is none, takes a slot from a waiting task, the youngest of the youngest job. Returns whether
    /// anything was done.
    fn unstick(&mut self) -> bool {
        if let Some((&key, _)) = self.holds.first_key_value() {
            self.holds.remove(&key);
            if self.fetch(key.0, key.1, None) {
                self.counters.released_holds += 1;
            }
            return true;
        }
        if self.policy.wake_at().is_some() {
            return false;
        }
        let Some(r) = (0..self.state.jobs.len()).rev().find_map(|j| self.blocker(JobId::from(j))) else { return false };
        self.counters.preempted += 1;
        self.give_up(r, Doing::Fetching);
        true
    }

    /// The last waiting task of a job that waits for one without a slot.
    fn blocker(&self, job: JobId) -> Option<TaskRef> {
        let stages = &self.state.jobs[job.index()].stages;
        stages.iter().enumerate().rev().find_map(|(s, stage)| {
            let needs = stage.incoming.iter().any(|e| stages[e.from].counts.pending > 0);
            let last = stage.waiting.last().filter(|_| needs)?;
            Some(TaskRef { job, stage: s as u32, task: *last })
        })
    }
}
