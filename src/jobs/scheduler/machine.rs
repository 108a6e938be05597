//! The [`TaskScheduler`]: events in, actions out.
//!
//! Events only change the books. What follows from them (tasks for free slots, reads and shuffles
//! that may begin) is decided when the next action is asked for. So everything that happens at one
//! instant is seen together: tasks that start together read together, as one coflow.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::record::{EndedJobs, Explained, SchedulerCounters, TaskRun};
use super::stage::{Doing, Stage, TaskOutput};
use super::state::{JobAccount, JobState, SchedulerSettings, SchedulerState, Transfer};
use super::{NEVER, RejectedEvent, SchedulerAction, SchedulerEvent, TaskRef};
use crate::ids::{CoflowId, HostId, JobId, RackId};
use crate::placement::decision::{Keep, KeptDecisions};
use crate::placement::policy::{Locality, Pick, Placement, ReduceStart};
use crate::topology::Topology;
use crate::units::Time;
use crate::workload::jobs::JobSpec;

mod dispatch;
mod failures;
mod shuffle;
mod views;

/// Decides about tasks. See the room's documentation.
pub struct TaskScheduler {
    state: SchedulerState,
    policy: Box<dyn Placement>,
    actions: VecDeque<SchedulerAction>,
    /// Whether anything happened since the last dispatch.
    stirred: bool,
    /// Racks whose free slots must be offered.
    dirty: BTreeSet<RackId>,
    /// The rack that was served last.
    last: RackId,
    /// Stages whose waiting tasks may have something to fetch.
    look: BTreeSet<(JobId, usize)>,
    /// Stages whose tasks may have slots since the last dispatch.
    arrivals: BTreeSet<(JobId, usize)>,
    /// Stages with tasks that hold slots where none of those before them may have one, and some
    /// wait for one; and when tasks last gave theirs up.
    starved: BTreeMap<(JobId, usize), Option<Time>>,
    /// When slots were last taken since nothing moved; stages that gave them may have slots again
    /// after that instant.
    unstuck: Option<Time>,
    /// Tasks that must read their block over the network.
    reads: BTreeMap<(JobId, usize), Vec<u32>>,
    /// Shuffles that the policy holds back, until when.
    holds: BTreeMap<(JobId, usize), Time>,
    next_coflow: u32,
    counters: SchedulerCounters,
    /// Jobs that have finished and wait for nothing: they are dropped when the event is over.
    over: Vec<JobId>,
    ended: EndedJobs,
    /// The job whose starts are explained, when its tasks last gave a slot up, and why they
    /// started.
    explains: Option<JobId>,
    given_up: BTreeMap<TaskRef, Time>,
    explained: Vec<Explained>,
    /// Decisions of the policy, for those who ask.
    decisions: KeptDecisions,
}

impl TaskScheduler {
    /// A scheduler over an empty cluster.
    pub fn new(
        topology: Arc<Topology>,
        settings: SchedulerSettings,
        mut policy: Box<dyn Placement>,
    ) -> Self {
        let needs = policy.needs(&topology);
        Self {
            dirty: topology.racks.iter().map(|r| r.id).collect(),
            state: SchedulerState::new(topology, settings, needs),
            policy,
            actions: VecDeque::new(),
            stirred: false,
            last: RackId(0),
            look: BTreeSet::new(),
            arrivals: BTreeSet::new(),
            unstuck: None,
            starved: BTreeMap::new(),
            reads: BTreeMap::new(),
            holds: BTreeMap::new(),
            next_coflow: 0,
            counters: SchedulerCounters::default(),
            over: Vec::new(),
            ended: EndedJobs::default(),
            explains: None,
            given_up: BTreeMap::new(),
            explained: Vec::new(),
            decisions: KeptDecisions::default(),
        }
    }

    /// Makes estimates of a task's remaining time wrong by at most `percent` per cent, drawn for
    /// each task from the seed.
    pub fn misjudge_remaining(&mut self, percent: u32, seed: u64) {
        self.state.slots.misjudge(percent, seed);
    }

    /// When the scheduler wants [`SchedulerEvent::Tick`].
    pub fn poll_timeout(&self) -> Option<Time> {
        let holds = self.holds.values().copied().filter(|&t| t != NEVER).min();
        holds.into_iter().chain(self.policy.wake_at()).min().map(|t| t.max(self.state.now))
    }

    /// Whether the scheduler wants [`SchedulerEvent::Progress`] before it decides about what it has
    /// heard by `now`.
    pub fn wants_progress(&self, now: Time) -> bool {
        self.stirred && self.state.net.is_due(now)
    }

    /// The next thing to do, if any. Tell everything that happened at this instant before asking.
    pub fn poll_action(&mut self) -> Option<SchedulerAction> {
        if self.actions.is_empty() && std::mem::take(&mut self.stirred) {
            self.dispatch();
            if self.decisions.keep != Keep::None {
                self.decisions.keep(self.policy.take_decisions());
            }
        }
        self.actions.pop_front()
    }

    /// Takes one event. Word of what was given up (a task's earlier attempt, a cancelled coflow) is
    /// no error: it was on its way.
    ///
    /// # Errors
    /// What cannot be; the books are then as before.
    pub fn handle(&mut self, event: SchedulerEvent, now: Time) -> Result<(), RejectedEvent> {
        self.state.pass(now);
        if self.unstuck.take_if(|t| *t < now).is_some() {
            self.all_dirty();
        }
        self.take(event)?;
        self.drop_over();
        self.stirred = true;
        Ok(())
    }

    fn take(&mut self, event: SchedulerEvent) -> Result<(), RejectedEvent> {
        let now = self.state.now;
        match event {
            SchedulerEvent::Submitted(job) => self.submitted(*job)?,
            SchedulerEvent::DataPlaced(job) => self.placed(job)?,
            SchedulerEvent::TaskFinished(task, attempt) => self.finished(task, attempt)?,
            SchedulerEvent::FlowFinished(id, flow) => self.flow_finished(id, flow),
            SchedulerEvent::CoflowFinished(id) => self.coflow_finished(id),
            SchedulerEvent::Progress { left } => self.state.net.progress(&left, now),
            SchedulerEvent::HostFailed(host) => self.hosts_failed(&[self.known(host)?]),
            SchedulerEvent::HostRecovered(host) => self.hosts_recovered(&[self.known(host)?]),
            SchedulerEvent::RackFailed(rack) => self.hosts_failed(&self.hosts_of(rack)?),
            SchedulerEvent::RackRecovered(rack) => self.hosts_recovered(&self.hosts_of(rack)?),
            SchedulerEvent::Placed { job, stage, racks } => self.answered(job, stage, racks)?,
            SchedulerEvent::Advised { answer } => self.policy.advised(answer),
            SchedulerEvent::Tick => self.tick(),
        }
        Ok(())
    }

    fn answered(
        &mut self,
        job: JobId,
        stage: usize,
        racks: Option<Vec<(RackId, u32)>>,
    ) -> Result<(), RejectedEvent> {
        match self.state.jobs.get(job) {
            Some(j) if stage < j.stages.len() => {
                self.policy.answered(&self.state, job, stage, racks);
                self.all_dirty();
                Ok(())
            }
            None if self.state.jobs.is_dropped(job) => Ok(()),
            _ => Err(RejectedEvent(format!("no stage {stage} of job {}", job.0))),
        }
    }

    fn known(&self, host: HostId) -> Result<HostId, RejectedEvent> {
        let n = self.state.topology.hosts.len();
        if host.index() < n {
            Ok(host)
        } else {
            Err(RejectedEvent(format!("no host {}; there are {n}", host.0)))
        }
    }

    fn hosts_of(&self, rack: RackId) -> Result<Vec<HostId>, RejectedEvent> {
        let t = &self.state.topology;
        if rack.index() >= t.rack_count() {
            return Err(RejectedEvent(format!("no rack {}; there are {}", rack.0, t.rack_count())));
        }
        Ok(t.hosts_of(rack).iter().map(|h| h.id).collect())
    }

    fn submitted(&mut self, spec: JobSpec) -> Result<(), RejectedEvent> {
        spec.check().map_err(RejectedEvent)?;
        let job = spec.id;
        if job.index() != self.state.jobs.total() {
            return Err(RejectedEvent(format!(
                "job {} out of order: the next is {}",
                job.0,
                self.state.jobs.total()
            )));
        }
        self.state.queues.join(spec.queue);
        let racks = self.state.topology.rack_count();
        let stages: Vec<Stage> =
            (0..spec.stages.len()).map(|s| Stage::new(&spec, s, racks)).collect();
        let unfinished = stages.len() as u32;
        self.state.jobs.push(JobState {
            spec,
            stages,
            slowstart: 100,
            racks: None,
            placed: false,
            unfinished,
            sending: 0,
            account: JobAccount::default(),
        });
        let blocks = self.policy.place_data(&self.state, job);
        for (s, b) in blocks.iter().enumerate() {
            let SchedulerState { topology, jobs, .. } = &mut self.state;
            jobs[job].stages[s].place(b.clone(), topology);
        }
        self.actions.push_back(SchedulerAction::PlaceData { job, blocks });
        Ok(())
    }

    fn placed(&mut self, job: JobId) -> Result<(), RejectedEvent> {
        if self.state.jobs.is_dropped(job) {
            return Ok(());
        }
        let Some(j) = self.state.jobs.get_mut(job) else {
            return Err(RejectedEvent(format!("no job {}", job.0)));
        };
        if std::mem::replace(&mut j.placed, true) {
            return Ok(());
        }
        self.policy.submitted(&self.state, job);
        let percent = self.policy.slowstart(&self.state, job).min(100);
        self.state.jobs[job].slowstart = percent;
        self.confine(job);
        let stages = self.state.jobs[job].stages.len();
        (0..stages).for_each(|s| self.reopen(job, s));
        self.state.refresh(job);
        Ok(())
    }

    /// Takes note of the racks of a job.
    fn confine(&mut self, job: JobId) {
        self.state.jobs[job].racks = self.policy.guideline(job, 0).map(<[RackId]>::to_vec);
    }

    /// Whether the tasks of a stage may have slots: enough of what is before it has finished and,
    /// unless they ramp up, nothing is pending.
    fn reopen(&mut self, job: JobId, stage: usize) {
        let ramps = self.state.settings.reduces == ReduceStart::RampUp;
        let j = &self.state.jobs[job];
        let enough = j.stages[stage].incoming.iter().all(|e| {
            let c = j.stages[e.from].counts;
            (ramps || c.pending == 0)
                && u64::from(c.finished) * 100 >= u64::from(c.tasks()) * u64::from(j.slowstart)
        });
        let open = j.placed && enough;
        if ramps && self.state.sides(job, stage).is_starved() {
            self.starved.entry((job, stage)).or_default();
        }
        let s = self.state.stage_mut(job, stage);
        if s.open != open {
            s.open = open;
            if open {
                self.arrivals.insert((job, stage));
                self.state.stage_mut(job, stage).opened = self.state.now;
                self.all_dirty();
            }
        }
    }

    /// The stages after this one are looked at again.
    fn reopen_after(&mut self, job: JobId, stage: usize) {
        for k in 0..self.state.stage(job, stage).outgoing.len() {
            let next = self.state.stage(job, stage).outgoing[k];
            self.reopen(job, next);
        }
    }

    fn all_dirty(&mut self) {
        self.dirty.extend(self.state.topology.racks.iter().map(|r| r.id));
    }

    fn tick(&mut self) {
        let now = self.state.now;
        if self.policy.wake_at().is_some_and(|t| t <= now) {
            self.policy.woken(now);
            self.all_dirty();
        }
        let due: Vec<_> = self.holds.iter().filter(|h| *h.1 <= now).map(|h| *h.0).collect();
        for key in due {
            self.holds.remove(&key);
            self.fetch(key.0, key.1, None);
        }
    }

    /// A task has computed: its slot is free and its output is ready.
    fn finished(&mut self, r: TaskRef, attempt: u32) -> Result<(), RejectedEvent> {
        let (job, s) = (r.job, r.stage as usize);
        if self.state.jobs.is_dropped(job) {
            return Ok(());
        }
        let known = self
            .state
            .jobs
            .get(job)
            .and_then(|j| j.stages.get(s))
            .and_then(|s| s.tasks.get(r.task as usize));
        let Some(task) = known.copied() else {
            return Err(RejectedEvent(format!("no task {} of stage {s} of job {}", r.task, job.0)));
        };
        if task.doing != Doing::Computing || task.attempt != attempt {
            return Ok(());
        }
        self.state.computing -= 1;
        self.free_slot(r, true);
        let rack = self.state.topology.rack_of(task.host);
        let stage = self.state.stage_mut(job, s);
        stage.tasks[r.task as usize].doing = Doing::Finished;
        stage.counts.finished += 1;
        stage.output_in[rack.index()] += 1;
        *stage.output_on.entry(task.host).or_default() += 1;
        if !stage.outgoing.is_empty() {
            let have = self.take_have(job, s, r.task);
            self.state.stage_mut(job, s).log.push(TaskOutput {
                task: r.task,
                host: task.host,
                void: false,
                have,
            });
            self.reopen_after(job, s);
            self.look_after(job, s);
        }
        if self.state.stage(job, s).is_done() {
            self.stage_done(job, s);
        }
        self.state.refresh(job);
        Ok(())
    }

    fn stage_done(&mut self, job: JobId, stage: usize) {
        self.policy.stage_finished(&self.state, job, stage);
        for a in self.policy.take_asks() {
            self.actions.push_back(SchedulerAction::AskPlacement {
                job: a.job,
                stage: a.stage,
                request: Box::new(a.request),
            });
        }
        self.all_dirty();
        let now = self.state.now;
        let j = &mut self.state.jobs[job];
        j.unfinished -= 1;
        if j.unfinished == 0 && j.account.finished.is_none() {
            j.account.finished = Some(now);
            j.stages.iter_mut().for_each(Stage::retire);
            self.state.queues.leave(job);
            if self.state.queues.order_of(job).is_by_arrival() {
                self.state.net.touch_all();
            }
            self.counters.jobs_finished += 1;
            self.actions.push_back(SchedulerAction::FinishJob(job));
            if j.sending == 0 {
                self.over.push(job);
            }
        }
    }

    /// A coflow is not on its way any more.
    fn take_transfer(&mut self, id: CoflowId) -> Option<Transfer> {
        let t = self.state.transfers.remove(&id)?;
        let j = &mut self.state.jobs[t.job];
        j.sending -= 1;
        if j.sending == 0 && j.account.finished.is_some() {
            self.over.push(t.job);
        }
        Some(t)
    }

    /// Jobs that have finished and wait for nothing are not held any longer; their accounts are.
    fn drop_over(&mut self) {
        for job in std::mem::take(&mut self.over) {
            let Some(j) = self.state.jobs.remove(job) else { continue };
            self.ended.jobs.push(views::record(&j));
            self.state.queues.forget(job);
            self.starved.retain(|k, _| k.0 != job);
            self.look.retain(|k| k.0 != job);
            self.arrivals.retain(|k| k.0 != job);
            self.holds.retain(|k, _| k.0 != job);
        }
    }

    /// Gives a task's slot back and books its time. `finished`: it has done its work.
    fn free_slot(&mut self, r: TaskRef, finished: bool) {
        let now = self.state.now;
        let task = self.state.stage(r.job, r.stage as usize).tasks[r.task as usize];
        let rack = self.state.topology.rack_of(task.host);
        self.state.slots.give(task.host, task.slot, task.eta);
        self.state.queues.gave(r.job);
        self.dirty.insert(rack);
        let stage = self.state.stage_mut(r.job, r.stage as usize);
        stage.counts.running -= 1;
        stage.running_in[rack.index()] -= 1;
        self.state.jobs[r.job].account.slot_time += now.since(task.started);
        if !finished && self.explains == Some(r.job) {
            self.given_up.insert(r, now);
        }
        self.ended.tasks.push(TaskRun {
            task: r,
            attempt: task.attempt,
            host: task.host,
            slot: task.slot,
            near: task.near,
            started: task.started,
            computes: if task.doing == Doing::Computing { Some(task.computes) } else { None },
            ended: now,
            finished,
        });
    }

    /// A task gets a slot: on the host that was picked, if it has a free one, else on the rack that
    /// was offered.
    fn start(&mut self, pick: Pick, offered: RackId) {
        let Pick { job, stage: s, .. } = pick;
        let wanted = pick.host.filter(|&h| self.state.slots.free_on(h) > 0);
        let rack = wanted.map_or(offered, |h| self.state.topology.rack_of(h));
        self.counters.starts += 1;
        if self.policy.guideline(job, s).is_some_and(|racks| !racks.contains(&rack)) {
            self.counters.violations += 1;
        }
        let now = self.state.now;
        let SchedulerState { topology, slots, jobs, .. } = &mut self.state;
        let stage = &mut jobs[job].stages[s];
        let best = || {
            stage
                .best_host(topology, rack, |h| slots.free_on(h))
                .or_else(|| slots.least_loaded(rack))
        };
        let host = wanted.or_else(best).expect("a rack that is offered has a free slot");
        let asked = pick.task.and_then(|k| stage.take_task(topology, host, k));
        let (k, near) = asked.unwrap_or_else(|| stage.take(topology, host));
        let spec = &jobs[job].spec.stages[s];
        let (input, span) = (spec.input.0, spec.times.of(k as usize));
        let eta = now + span;
        let slot = slots.take(host, now, eta);
        let stage = &mut jobs[job].stages[s];
        let reading = near != Locality::Host && input > 0;
        let task = &mut stage.tasks[k as usize];
        (task.doing, task.host, task.slot, task.near, task.started, task.eta) =
            (Doing::Fetching, host, slot, near, now, eta);
        task.fetches = now;
        (task.reading, task.shuffling) = (reading, false);
        task.attempt += 1;
        let attempt = task.attempt;
        (stage.counts.pending, stage.counts.running) =
            (stage.counts.pending - 1, stage.counts.running + 1);
        stage.running_in[rack.index()] += 1;
        let (shuffles, all_started) = (!stage.incoming.is_empty(), stage.counts.pending == 0);
        if shuffles {
            stage.waiting.insert(k);
        }
        stage.pass_started();
        let account = &mut jobs[job].account;
        account.near[near as usize] += u32::from(input > 0);
        account.started.get_or_insert(now);
        account.reruns += u32::from(attempt > 1);
        self.state.queues.took(job);
        self.state.note_work(job);
        self.state.fetching += 1;
        let task = TaskRef { job, stage: s as u32, task: k };
        self.state.expect_input(task, host);
        self.note_why(task, attempt, (host, near));
        self.actions.push_back(SchedulerAction::StartTask { task, attempt, host, slot, near });
        if reading {
            self.reads.entry((job, s)).or_default().push(k);
        }
        match shuffles {
            true => drop(self.look.insert((job, s))),
            false if !reading => self.compute(task),
            false => {}
        }
        if shuffles && self.state.sides(job, s).is_starved() {
            self.starved.entry((job, s)).or_default();
        }
        if all_started {
            self.reopen_after(job, s);
            self.state.refresh(job);
        }
        self.policy.started(
            &self.state,
            Pick { host: Some(host), task: Some(k), ..pick },
            rack,
            near,
        );
    }

    /// Keeps why a task started, if its job is to be explained.
    fn note_why(&mut self, task: TaskRef, attempt: u32, (host, near): (HostId, Locality)) {
        if self.explains == Some(task.job) {
            let given_up = self.given_up.get(&task).copied();
            let opened = self.state.stage(task.job, task.stage as usize).opened;
            let (waited_since, started) =
                (given_up.map_or(opened, |t| t.max(opened)), self.state.now);
            self.explained.push(Explained {
                task,
                attempt,
                waited_since,
                started,
                host,
                near,
                why: self.policy.why().cloned(),
            });
        }
    }

    /// A task has everything: it computes.
    fn compute(&mut self, r: TaskRef) {
        let now = self.state.now;
        let SchedulerState { jobs, .. } = &mut self.state;
        let job = &mut jobs[r.job];
        let spec = &job.spec.stages[r.stage as usize];
        let task = &mut job.stages[r.stage as usize].tasks[r.task as usize];
        let mut span = spec.times.of(r.task as usize);
        if spec.streams {
            span = span.saturating_sub(now.since(task.fetches));
        }
        (task.doing, task.computes) = (Doing::Computing, now);
        let (host, slot, old, attempt) = (task.host, task.slot, task.eta, task.attempt);
        task.eta = now + span;
        self.state.slots.expect(host, slot, old, (now, now + span));
        self.state.fetching -= 1;
        self.state.computing += 1;
        self.state.net.left(r);
        if self.state.net.needs.network {
            // What the network has to do for this host has become less: its free slots are offered
            // again.
            self.dirty.insert(self.state.topology.rack_of(host));
        }
        self.actions.push_back(SchedulerAction::Compute { task: r, attempt, span });
    }

    /// Computes if nothing is missing any more.
    fn compute_if_ready(&mut self, r: TaskRef) {
        let stage = self.state.stage(r.job, r.stage as usize);
        let task = &stage.tasks[r.task as usize];
        let shuffled = !task.shuffling && !stage.waiting.contains(&r.task);
        if task.doing == Doing::Fetching && !task.reading && shuffled {
            self.compute(r);
        }
    }

    fn new_coflow(&mut self) -> CoflowId {
        self.next_coflow += 1;
        CoflowId(self.next_coflow - 1)
    }
}
