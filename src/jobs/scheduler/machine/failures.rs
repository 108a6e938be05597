//! Hosts that go down and come back: what ran there starts again, outputs there are computed again
//! if a task needs them.

use std::collections::BTreeSet;

use super::TaskScheduler;
use crate::ids::{CoflowId, HostId, JobId};
use crate::scheduler::stage::Doing;
use crate::scheduler::{SchedulerAction, TaskRef};

/// A receiver: its stage and its number.
type StageReceiver = (usize, u32);

impl TaskScheduler {
    pub(super) fn hosts_failed(&mut self, hosts: &[HostId]) {
        let dead: BTreeSet<HostId> =
            hosts.iter().copied().filter(|&h| self.state.slots.is_up(h)).collect();
        let jobs: Vec<JobId> = self
            .state
            .jobs
            .iter()
            .filter(|(_, j)| j.account.finished.is_none())
            .map(|j| j.0)
            .collect();
        for &job in &jobs {
            for stage in 0..self.state.jobs[job].stages.len() {
                let running: Vec<u32> = self.state.running(job, stage).collect();
                for task in running {
                    let on = self.state.stage(job, stage).tasks[task as usize];
                    if dead.contains(&on.host) {
                        self.give_up(TaskRef { job, stage: stage as u32, task }, on.doing);
                    }
                }
            }
        }
        dead.iter().for_each(|&h| self.state.slots.take_down(h));
        let mut hit = BTreeSet::new();
        for &job in &jobs {
            // Later stages first: what they lose tells whether earlier outputs are needed.
            for stage in (0..self.state.jobs[job].stages.len()).rev() {
                if self.void(job, stage, &dead) {
                    hit.extend(self.state.stage(job, stage).outgoing.iter().map(|&to| (job, to)));
                }
            }
            self.state.refresh(job);
        }
        let ids = self.state.transfers.iter();
        let lost = ids.filter(|(_, t)| {
            if t.shuffle {
                hit.contains(&(t.job, t.stage))
            } else {
                t.from.iter().any(|h| dead.contains(h))
            }
        });
        let lost: Vec<CoflowId> = lost.map(|e| *e.0).collect();
        lost.into_iter().for_each(|id| self.cancel(id));
        self.counters.hosts_failed += dead.len() as u64;
        self.cluster_changed();
    }

    pub(super) fn hosts_recovered(&mut self, hosts: &[HostId]) {
        hosts.iter().for_each(|&h| self.state.slots.bring_up(h));
        self.cluster_changed();
    }

    fn cluster_changed(&mut self) {
        self.policy.cluster_changed(&self.state);
        let jobs: Vec<JobId> = self.state.jobs.iter().map(|j| j.0).collect();
        jobs.into_iter().for_each(|j| self.confine(j));
        self.all_dirty();
    }

    /// A task that holds a slot gives it up and waits for another, with nothing fetched.
    pub(super) fn give_up(&mut self, r: TaskRef, doing: Doing) {
        let (job, s) = (r.job, r.stage as usize);
        let attempt = self.state.stage(job, s).tasks[r.task as usize].attempt;
        self.actions.push_back(SchedulerAction::StopTask { task: r, attempt });
        self.state.net.left(r);
        self.free_slot(r, false);
        *(if doing == Doing::Computing {
            &mut self.state.computing
        } else {
            &mut self.state.fetching
        }) -= 1;
        for t in self.state.transfers.values_mut().filter(|t| (t.job, t.stage) == (job, s)) {
            t.to.values_mut().for_each(|d| d.1.retain(|&k| k != r.task));
        }
        let stage = self.state.stage_mut(job, s);
        stage.waiting.remove(&r.task);
        let task = &mut stage.tasks[r.task as usize];
        (task.doing, task.reading, task.shuffling) = (Doing::Pending, false, false);
        stage.counts.pending += 1;
        stage.incoming.iter_mut().for_each(|e| e.cursor[r.task as usize] = 0);
        let senders: Vec<usize> = stage.incoming.iter().map(|e| e.from).collect();
        let t = self.state.topology.clone();
        self.state.stage_mut(job, s).put_back(&t, r.task);
        for from in senders {
            self.forget_receiver(job, from, (s, r.task));
        }
        self.reopen(job, s);
        self.reopen_after(job, s);
        self.state.refresh(job);
    }

    /// A receiver starts again: it has none of the stage's outputs any more, and those that were
    /// lost while no receiver needed them are needed again.
    fn forget_receiver(&mut self, job: JobId, stage: usize, receiver: StageReceiver) {
        let s = self.state.stage_mut(job, stage);
        s.log.iter_mut().for_each(|o| o.have.retain(|h| *h != receiver));
        s.had.values_mut().for_each(|h| h.retain(|h| *h != receiver));
        let lost: Vec<u32> =
            (0..s.tasks.len() as u32).filter(|&k| s.tasks[k as usize].output_lost).collect();
        for k in lost {
            let at = self
                .state
                .stage(job, stage)
                .log
                .iter()
                .rposition(|o| o.task == k)
                .expect("what was lost is in the list");
            self.compute_again(job, stage, at, Some(receiver));
        }
    }

    /// Marks the outputs that were on dead hosts; those that a task needs are computed again.
    /// Returns whether there were any.
    fn void(&mut self, job: JobId, stage: usize, dead: &BTreeSet<HostId>) -> bool {
        let s = self.state.stage_mut(job, stage);
        let gone: Vec<usize> =
            (0..s.log.len()).filter(|&i| !s.log[i].void && dead.contains(&s.log[i].host)).collect();
        for &i in &gone {
            let host = self.state.stage(job, stage).log[i].host;
            let rack = self.state.topology.rack_of(host);
            let s = self.state.stage_mut(job, stage);
            s.log[i].void = true;
            s.output_in[rack.index()] -= 1;
            s.output_on.entry(host).and_modify(|n| *n -= 1);
            let task = s.log[i].task;
            s.tasks[task as usize].output_lost = true;
            let s = self.state.stage(job, stage);
            let receivers: usize =
                s.outgoing.iter().map(|&to| self.state.stage(job, to).tasks.len()).sum();
            if self.holders(job, stage, i).len() < receivers {
                self.compute_again(job, stage, i, None);
            }
        }
        !gone.is_empty()
    }

    /// The receivers that have output `at` of the stage's list, or need none of it any more.
    fn holders(&self, job: JobId, stage: usize, at: usize) -> Vec<StageReceiver> {
        let s = self.state.stage(job, stage);
        let mut found = Vec::new();
        for &to in &s.outgoing {
            let next = self.state.stage(job, to);
            let edge = next.incoming.iter().find(|e| e.from == stage).expect("edges have two ends");
            let has = |k: usize| {
                let past = next.tasks[k].doing != Doing::Pending && edge.cursor[k] as usize > at;
                past || matches!(next.tasks[k].doing, Doing::Computing | Doing::Finished)
                    || s.log[at].have.contains(&(to, k as u32))
            };
            found.extend((0..next.tasks.len()).filter(|&k| has(k)).map(|k| (to, k as u32)));
        }
        found
    }

    /// Runs the producer of output `at` again. Receivers that hold a copy keep it, and do not fetch
    /// it twice; `lost_by` is the receiver whose copy is gone.
    fn compute_again(
        &mut self,
        job: JobId,
        stage: usize,
        at: usize,
        lost_by: Option<StageReceiver>,
    ) {
        let have: Vec<StageReceiver> =
            self.holders(job, stage, at).into_iter().filter(|h| Some(*h) != lost_by).collect();
        let was_done = self.state.stage(job, stage).is_done();
        let t = self.state.topology.clone();
        let s = self.state.stage_mut(job, stage);
        let k = s.log[at].task;
        s.had.insert(k, have);
        let task = &mut s.tasks[k as usize];
        (task.doing, task.output_lost) = (Doing::Pending, false);
        s.counts.finished -= 1;
        s.counts.pending += 1;
        s.put_back(&t, k);
        let senders: Vec<usize> =
            s.incoming.iter_mut().map(|e| (e.cursor[k as usize] = 0, e.from).1).collect();
        self.state.jobs[job].unfinished += u32::from(was_done);
        self.counters.outputs_lost += 1;
        for from in senders {
            self.forget_receiver(job, from, (stage, k));
        }
        self.reopen(job, stage);
        self.reopen_after(job, stage);
        self.state.refresh(job);
    }

    /// The receivers that had the output of a task that ran again.
    pub(super) fn take_have(&mut self, job: JobId, stage: usize, task: u32) -> Vec<StageReceiver> {
        self.state.stage_mut(job, stage).had.remove(&task).unwrap_or_default()
    }

    /// Breaks a transfer off; its tasks wait again.
    fn cancel(&mut self, id: CoflowId) {
        let Some(t) = self.take_transfer(id) else { return };
        self.actions.push_back(SchedulerAction::CancelCoflow(id));
        self.state.net.closed(id, self.state.now);
        let open = t.flows.iter().zip(&t.crossing).filter(|f| f.0.is_some());
        open.for_each(|(_, &crossing)| self.state.pass_between(crossing, t.shuffle, false));
        for k in t.to.into_values().flat_map(|d| d.1) {
            self.state.foresee((t.job, t.stage, t.shuffle), k, None);
            let s = self.state.stage_mut(t.job, t.stage);
            if t.shuffle {
                s.tasks[k as usize].shuffling = false;
                s.waiting.insert(k);
                self.look.insert((t.job, t.stage));
            } else {
                self.reads.entry((t.job, t.stage)).or_default().push(k);
            }
        }
    }
}
