//! What follows from events: offers of free slots, reads and shuffles that begin, and the way out
//! when nothing moves.

use super::TaskScheduler;
use crate::ids::{HostId, JobId, RackId};
use crate::scheduler::stage::{Doing, Stage};
use crate::scheduler::state::Grain;
use crate::scheduler::{SchedulerAction, TaskRef};
use crate::units::Time;

impl TaskScheduler {
    /// Decides everything that can be decided now.
    pub(super) fn dispatch(&mut self) {
        loop {
            self.tell_arrivals();
            if !self.offer_slots() {
                // It goes on from here with the program's answer.
                return;
            }
            if self.make_room() {
                continue;
            }
            self.begin_reads();
            self.begin_shuffles();
            if !self.is_stuck() || !self.unstick() {
                break;
            }
        }
        self.prioritise();
    }

    /// Tells the policy which stages have come to wait for slots, by their jobs' order, if there
    /// are free ones.
    fn tell_arrivals(&mut self) {
        let new = std::mem::take(&mut self.arrivals);
        if new.is_empty() || !self.state.net.needs.network || self.state.slots.free() == 0 {
            return;
        }
        let of = |job: JobId| new.range((job, 0)..=(job, usize::MAX)).copied();
        let by_order: Vec<(JobId, usize)> = self.state.queues.ready().flat_map(of).collect();
        for (job, stage) in by_order {
            if self.state.startable(job, stage) {
                self.policy.arrived(&self.state, job, stage);
            }
        }
    }

    /// Flows into hosts where tasks began or ended to receive get the priorities that the policy
    /// gives them: with the coflow if that begins now, else under way.
    fn prioritise(&mut self) {
        let hosts: Vec<HostId> = self.state.net.take_touched().into_iter().collect();
        if hosts.is_empty() || self.state.settings.grain != Grain::Host {
            return;
        }
        let wanted = self.policy.prioritise(&self.state, &hosts);
        let mut new = self.state.net.prioritised(wanted);
        for action in &mut self.actions {
            let SchedulerAction::StartCoflow { coflow, .. } = action else { continue };
            let Some(flows) = new.remove(&coflow.id) else { continue };
            coflow.priorities.flows = vec![None; coflow.flows.len()];
            flows.into_iter().for_each(|(flow, p)| coflow.priorities.flows[flow.index()] = Some(p));
        }
        self.actions.extend(
            new.into_iter().map(|(coflow, flows)| SchedulerAction::Prioritise { coflow, flows }),
        );
    }

    /// Offers free slots rack by rack, one a turn, until the policy has declined every rack that
    /// has any. Says whether it got there: not if a program must be asked first.
    fn offer_slots(&mut self) -> bool {
        while !self.state.queues.is_idle() {
            let Some(rack) = self.next_rack() else { break };
            let pick = self.policy.offer(&self.state, rack);
            if let Some(question) = self.policy.take_question() {
                self.actions.push_back(SchedulerAction::Consult { question: Box::new(question) });
                return false;
            }
            match pick.filter(|p| self.state.startable(p.job, p.stage)) {
                Some(pick) => {
                    self.last = rack;
                    self.start(pick, rack);
                }
                None => drop(self.dirty.remove(&rack)),
            }
        }
        true
    }

    /// The next rack, after the last one, that has a free slot and was not declined.
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

    /// Has tasks that wait for others without slots give theirs up, where the job could get no
    /// other ([`Sides::giving_way`]): the last to start first. A stage gives way at most once an
    /// instant, also if it has got slots again since: else stages could hand the same slots to each
    /// other for ever. Returns whether any did.
    fn make_room(&mut self) -> bool {
        let (mut any, now) = (false, self.state.now);
        for ((job, stage), gave) in self.starved.clone() {
            let sides = self.state.sides(job, stage);
            if gave == Some(now) {
                continue;
            }
            if !sides.is_starved() {
                self.starved.remove(&(job, stage));
            }
            let mut waiting = self.waiting_tasks(job, stage, sides.giving_way() as usize);
            if waiting.is_empty() {
                continue;
            }
            any = true;
            self.starved.insert((job, stage), Some(now));
            self.counters.preempted += waiting.len() as u64;
            waiting.drain(..).for_each(|task| {
                self.give_up(TaskRef { job, stage: stage as u32, task }, Doing::Fetching)
            });
        }
        any
    }

    /// The `wanted` tasks that started last of those of a stage that hold slots and wait for their
    /// input, the last one first; all of them, if there are fewer. O(tasks log tasks), or O(1) if
    /// none are wanted.
    fn waiting_tasks(&self, job: JobId, stage: usize, wanted: usize) -> Vec<u32> {
        if wanted == 0 {
            return Vec::new();
        }
        let tasks = self
            .state
            .stage(job, stage)
            .tasks
            .iter()
            .enumerate()
            .filter(|(_, t)| t.doing == Doing::Fetching);
        let mut by_start: Vec<(Time, u32)> = tasks.map(|(k, t)| (t.started, k as u32)).collect();
        by_start.sort_unstable_by(|a, b| b.cmp(a));
        by_start.into_iter().take(wanted).map(|t| t.1).collect()
    }

    /// Whether tasks wait and nothing is on its way that could end that.
    fn is_stuck(&self) -> bool {
        let s = &self.state;
        s.fetching > 0
            && s.computing == 0
            && s.transfers.is_empty()
            && s.jobs.iter().all(|(_, j)| j.placed)
    }

    /// Lets a held shuffle go; if there is none, takes a slot from a waiting task, the youngest of
    /// the youngest job. Its stage gets no slot at this instant: a policy that keeps the free slot
    /// for nearer data would offer it to the same task again, for ever. Returns whether anything
    /// was done.
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
        let Some(r) = self.state.jobs.iter().rev().find_map(|(job, j)| blocker(job, &j.stages))
        else {
            return false;
        };
        let now = self.state.now;
        self.state.stage_mut(r.job, r.stage as usize).unstuck = Some(now);
        self.unstuck = Some(now);
        self.counters.preempted += 1;
        self.give_up(r, Doing::Fetching);
        true
    }
}

/// The last waiting task of a job that waits for one without a slot.
fn blocker(job: JobId, stages: &[Stage]) -> Option<TaskRef> {
    stages.iter().enumerate().rev().find_map(|(s, stage)| {
        let needs = stage.incoming.iter().any(|e| stages[e.from].counts.pending > 0);
        let last = stage.waiting.last().filter(|_| needs)?;
        Some(TaskRef { job, stage: s as u32, task: *last })
    })
}
