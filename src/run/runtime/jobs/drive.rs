//! The driver of the scheduler, over any network and by any clock: it tells the scheduler what
//! happens, and carries out its actions.
//!
//! [`super::live`] and [`super::simulate`] both use it. At one instant, in this order: events of
//! the network, tasks that are done, hosts that fail or come back, jobs that arrive, the
//! scheduler's own wake-up. Then the scheduler decides.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::slice::Iter;
use std::time::Duration;

use super::report::JobsTally;
use super::writes::Writes;
use crate::circuits::external::NoAnswer;
use crate::coflows::{CoflowRecord, CoflowSpec};
use crate::ids::{CoflowId, FlowId, JobId, RackId};
use crate::placement::Policy;
use crate::placement::advisor::PlacementRequest;
use crate::placement::external::ExternalOptions;
use crate::runtime::external::{ExternalProgram, MISSING};
use crate::runtime::record::{JobsHead, Recorder, RecordingEntry, RecordingTap};
use crate::runtime::report::RunEnd;
use crate::runtime::rows::{ResultRow, RowSink};
use crate::runtime::settings::ProgramSpec;
use crate::scheduler::record::EndedJobs;
use crate::scheduler::{SchedulerAction, SchedulerEvent, TaskRef, TaskScheduler};
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};
use crate::workload::jobs::JobSpec;

/// Starts the program of a placement policy, if it has one. An answer may take as long as
/// `patience`, else as long as the policy says.
///
/// # Errors
/// A program that does not start, or does not say its version.
pub fn program(
    policy: &Policy,
    patience: Option<Duration>,
) -> Result<Option<ExternalProgram>, String> {
    let Policy::External(ExternalOptions { external }) = policy else { return Ok(None) };
    ExternalProgram::start(&ProgramSpec::of(external)?, patience.unwrap_or(external.within.std()))
        .map(Some)
}

/// An event of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkEvent {
    /// A flow's last byte was received.
    Flow(CoflowId, FlowId),
    /// A coflow's last byte was received, and with it all flows that were not reported.
    Coflow(CoflowId),
}

/// A clock, and a network that moves bytes. Coflows have the scheduler's numbers.
///
/// Every method's error says why the run cannot go on.
pub trait JobsTransport {
    /// The time since the run's start.
    fn now(&self) -> Time;

    /// Lets time pass until `wake`, or until the network has an event. False if the run's time is
    /// over.
    ///
    /// # Errors
    /// Why the run cannot go on.
    fn wait(&mut self, wake: Option<Time>) -> Result<bool, String>;

    /// The next event that has happened by now; waits for nothing.
    ///
    /// # Errors
    /// Why the run cannot go on.
    fn word(&mut self) -> Result<Option<NetworkEvent>, String>;

    /// Begins to send all flows of a coflow.
    ///
    /// # Errors
    /// Why the run cannot go on.
    fn start(&mut self, coflow: &CoflowSpec) -> Result<(), String>;

    /// The coflow that starts next belongs to this job, if the network asks for that.
    fn belongs(&mut self, _coflow: CoflowId, _job: JobId) {}

    /// Stops sending a coflow, which may have ended meanwhile.
    ///
    /// # Errors
    /// Why the run cannot go on.
    fn cancel(&mut self, coflow: CoflowId) -> Result<(), String>;

    /// Gives flows of a coflow, which may have ended meanwhile, other strict priorities.
    ///
    /// # Errors
    /// Why the run cannot go on.
    fn prioritise(&mut self, coflow: CoflowId, flows: &[(FlowId, u8)]) -> Result<(), String>;

    /// Bytes left of every active flow, in the order of coflow and flow.
    ///
    /// # Errors
    /// Why the run cannot go on.
    fn left(&mut self) -> Result<Vec<(CoflowId, FlowId, Bytes)>, String>;

    /// The controller's proposal for the tasks of a stage (tasks by rack). The controller holds it
    /// until [`JobsTransport::begins`], or for some time. `None`: it has none.
    ///
    /// # Errors
    /// Why the run cannot go on.
    fn place(
        &mut self,
        what: (JobId, usize),
        request: &PlacementRequest,
    ) -> Result<Option<Vec<(RackId, u32)>>, String>;

    /// The shuffle of a stage begins, so what [`JobsTransport::place`] has held for it is not
    /// needed any more.
    ///
    /// # Errors
    /// Why the run cannot go on.
    fn begins(&mut self, what: (JobId, usize)) -> Result<(), String>;

    /// The scheduler has decided everything for this instant.
    ///
    /// # Errors
    /// Why the run cannot go on.
    fn settle(&mut self) -> Result<(), String>;

    /// Whether everything that was started is over.
    fn is_over(&self) -> bool;

    /// Records of coflows that have ended since the last call, which are not kept; empty for a
    /// network that keeps none.
    fn take_ended(&mut self) -> Vec<CoflowRecord> {
        Vec::new()
    }

    /// Whether the network has no more events unless something is started.
    fn is_stuck(&self) -> bool;

    /// Shows the network an action of the scheduler before it is carried out.
    fn log(&mut self, _action: &SchedulerAction) {}
}

/// Events at times that are known before: tasks that are done, hosts that fail and come back, jobs
/// that arrive.
struct Agenda<'a> {
    /// Tasks that compute, by when they are done, and then by the order in which they began.
    timers: BTreeMap<(Time, u64), (TaskRef, u32)>,
    timers_set: u64,
    failures: Peekable<Iter<'a, (Time, SchedulerEvent)>>,
    coming: Peekable<Iter<'a, JobSpec>>,
}

impl Agenda<'_> {
    /// When the next event is due. O(1).
    fn next(&mut self) -> Option<Time> {
        let (job, failure) =
            (self.coming.peek().map(|j| j.arrival), self.failures.peek().map(|f| f.0));
        [job, failure, self.timers.keys().next().map(|k| k.0)].into_iter().flatten().min()
    }

    /// The next event that is due by `now`. O(log timers).
    fn due(&mut self, now: Time) -> Option<SchedulerEvent> {
        if let Some(e) = self.timers.first_entry().filter(|e| e.key().0 <= now) {
            let (task, attempt) = e.remove();
            return Some(SchedulerEvent::TaskFinished(task, attempt));
        }
        if let Some((_, e)) = self.failures.next_if(|f| f.0 <= now) {
            return Some(e.clone());
        }
        self.coming
            .next_if(|j| j.arrival <= now)
            .map(|j| SchedulerEvent::Submitted(Box::new(j.clone())))
    }

    fn set_timer(&mut self, at: Time, task: (TaskRef, u32)) {
        self.timers_set += 1;
        self.timers.insert((at, self.timers_set), task);
    }
}

/// The present state of a run, for its watchers.
pub struct RunView<'a, T> {
    /// The scheduler.
    pub scheduler: &'a TaskScheduler,
    /// Clock and network.
    pub transport: &'a T,
    /// Number of jobs that have not arrived.
    pub coming: usize,
    /// Whether the run ends here.
    pub ends: bool,
}

/// Writer of rows about what has ended.
pub struct EndedRows<'a> {
    rows: RowSink<'a>,
    topology: &'a Topology,
    /// Jobs that were written.
    pub jobs: JobsTally,
}

impl<'a> EndedRows<'a> {
    /// Nothing yet; rows name the hosts of `topology`.
    pub fn new(rows: RowSink<'a>, topology: &'a Topology) -> Self {
        Self { rows, topology, jobs: JobsTally::default() }
    }

    /// Writes what has ended.
    pub fn tell(&mut self, ended: EndedJobs, coflows: &[CoflowRecord]) {
        coflows.iter().for_each(|c| (self.rows)(ResultRow::Coflow(c)));
        ended.tasks.iter().for_each(|t| (self.rows)(ResultRow::Task(&t.named(self.topology))));
        for job in &ended.jobs {
            self.jobs.add(job);
            (self.rows)(ResultRow::Job(job));
        }
    }
}

/// A scheduler, its transport, and the known events.
pub struct JobsDriver<'a, T> {
    /// Decides.
    pub scheduler: TaskScheduler,
    /// Clock and network.
    pub transport: T,
    agenda: Agenda<'a>,
    tap: RecordingTap,
    /// Decides about slots under the placement policy `external`.
    pub program: Option<ExternalProgram>,
    /// Writes of tasks over the network before they are done, if they write.
    pub writes: Option<Writes<'a>>,
    /// Takes what has ended, which is not kept then.
    pub told: Option<EndedRows<'a>>,
    /// Instants in a row at which the scheduler woke by itself and wanted nothing, and the network
    /// had no event.
    in_vain: u32,
}

/// Wake-ups in a row without any effect after which a run counts as stuck: a policy may look at a
/// broken network again and again.
const PATIENCE: u32 = 10_000;

impl<'a, T: JobsTransport> JobsDriver<'a, T> {
    /// A driver of a new scheduler. `jobs` by arrival; `failures` are hosts that fail and come
    /// back, by time.
    pub fn new(
        scheduler: TaskScheduler,
        transport: T,
        jobs: &'a [JobSpec],
        failures: &'a [(Time, SchedulerEvent)],
    ) -> Self {
        let (failures, coming) = (failures.iter().peekable(), jobs.iter().peekable());
        Self {
            scheduler,
            transport,
            agenda: Agenda { timers: BTreeMap::new(), timers_set: 0, failures, coming },
            tap: RecordingTap::default(),
            program: None,
            writes: None,
            told: None,
            in_vain: 0,
        }
    }

    /// Records everything from now on; nothing must have happened. `head` describes the scheduler.
    pub fn record(&mut self, recorder: &Recorder, head: JobsHead) {
        recorder.put(RecordingEntry::Jobs(Box::new(head)));
        self.tap = RecordingTap::new(Some(recorder.clone()));
    }

    /// Runs until all jobs have finished, the transport's time is over, nothing can move any more,
    /// or `watch` returns false. `watch` is called at every instant at which something happens, and
    /// at the end.
    ///
    /// # Errors
    /// What the transport could not do, or the scheduler refused.
    pub fn play(&mut self, watch: &mut dyn FnMut(&RunView<T>) -> bool) -> Result<RunEnd, String> {
        loop {
            let wake = self.agenda.next().into_iter().chain(self.scheduler.poll_timeout()).min();
            let coming = self.agenda.coming.len();
            let done = coming == 0 && self.scheduler.is_idle() && self.transport.is_over();
            let stuck = (wake.is_none() || self.in_vain >= PATIENCE) && self.transport.is_stuck();
            let ends = done || stuck;
            let goes_on = watch(&RunView {
                scheduler: &self.scheduler,
                transport: &self.transport,
                coming,
                ends,
            });
            match (done, goes_on, stuck) {
                (true, ..) => return Ok(RunEnd::Finished),
                (_, false, _) => return Ok(RunEnd::Stopped),
                (_, _, true) => return Ok(RunEnd::Stuck),
                (false, true, false) => {}
            }
            let in_time = self.transport.wait(wake)?;
            let heard = self.hear()?;
            if !in_time {
                return Ok(RunEnd::Until);
            }
            let now = self.transport.now();
            let alone = heard == 0 && self.agenda.next().is_none();
            while let Some(event) = self.agenda.due(now) {
                match event {
                    SchedulerEvent::TaskFinished(task, attempt)
                        if self.write((task, attempt))? => {}
                    event => self.tell(event)?,
                }
            }
            if self.scheduler.poll_timeout().is_some_and(|t| t <= now) {
                self.tell(SchedulerEvent::Tick)?;
            }
            let acts = self.act()?;
            self.in_vain = if alone && acts == 0 { self.in_vain.saturating_add(1) } else { 0 };
            self.transport.settle()?;
            if let Some(told) = &mut self.told {
                told.tell(self.scheduler.take_ended(), &self.transport.take_ended());
            }
        }
    }

    /// Begins to write a task's output. False if it has nothing to write.
    fn write(&mut self, of: (TaskRef, u32)) -> Result<bool, String> {
        let now = self.transport.now();
        let Some(coflow) = self.writes.as_mut().and_then(|w| w.begin(of, now)) else {
            return Ok(false);
        };
        self.transport.belongs(coflow.id, of.0.job);
        self.transport.start(&coflow)?;
        Ok(true)
    }

    /// The scheduler's event for one of the network; `None` if a task has still something to write.
    fn meaning(&mut self, word: NetworkEvent) -> Option<SchedulerEvent> {
        let (coflow, all) = match word {
            NetworkEvent::Flow(coflow, _) => (coflow, false),
            NetworkEvent::Coflow(coflow) => (coflow, true),
        };
        match (&mut self.writes, word) {
            (Some(writes), _) if Writes::has(coflow) => writes
                .ended(coflow, all)
                .map(|(task, attempt)| SchedulerEvent::TaskFinished(task, attempt)),
            (_, NetworkEvent::Flow(coflow, flow)) => {
                Some(SchedulerEvent::FlowFinished(coflow, flow))
            }
            (_, NetworkEvent::Coflow(coflow)) => Some(SchedulerEvent::CoflowFinished(coflow)),
        }
    }

    fn tell(&mut self, event: SchedulerEvent) -> Result<(), String> {
        self.writes.iter_mut().for_each(|w| w.heard(&event));
        let at = self.transport.now();
        self.tap.put(|| RecordingEntry::JobTell { at, event: event.clone() });
        self.scheduler.handle(event, at).map_err(|e| {
            let why = e.to_string();
            self.tap.put(|| RecordingEntry::JobRefused { why: why.clone() });
            why
        })
    }

    /// Passes the network's events to the scheduler; returns their number.
    fn hear(&mut self) -> Result<u64, String> {
        let mut heard = 0;
        while let Some(word) = self.transport.word()? {
            heard += 1;
            if let Some(event) = self.meaning(word) {
                self.tell(event)?;
            }
        }
        Ok(heard)
    }

    /// Carries out the scheduler's actions until there are none; returns their number.
    fn act(&mut self) -> Result<u64, String> {
        if self.scheduler.wants_progress(self.transport.now()) {
            let mut left = self.transport.left()?;
            left.retain(|l| self.writes.is_none() || !Writes::has(l.0));
            self.tell(SchedulerEvent::Progress { left })?;
        }
        let mut acts = 0;
        while let Some(action) = self.scheduler.poll_action() {
            // A question is no event of the run: a program that is asked and starts nothing has
            // done nothing.
            if !matches!(action, SchedulerAction::Consult { .. }) {
                acts += 1;
                self.transport.log(&action);
            }
            self.tap.put(|| RecordingEntry::JobAct { action: action.clone() });
            match action {
                SchedulerAction::PlaceData { job, .. } => {
                    self.tell(SchedulerEvent::DataPlaced(job))?
                }
                SchedulerAction::Compute { task, attempt, span } => {
                    self.compute(span, (task, attempt))
                }
                SchedulerAction::AskPlacement { job, stage, request } => {
                    let racks = self.transport.place((job, stage), &request)?;
                    self.tell(SchedulerEvent::Placed { job, stage, racks })?;
                }
                SchedulerAction::StartCoflow { coflow, job, stage, shuffle } => {
                    if shuffle {
                        self.transport.begins((job, stage))?;
                    }
                    self.transport.belongs(coflow.id, job);
                    self.transport.start(&coflow)?;
                    // Flows without bytes are over at once.
                    self.hear()?;
                }
                SchedulerAction::CancelCoflow(coflow) => self.transport.cancel(coflow)?,
                SchedulerAction::Prioritise { coflow, flows } => {
                    self.transport.prioritise(coflow, &flows)?
                }
                SchedulerAction::Consult { question } => {
                    let answer = self.program.as_mut().map_or_else(
                        || Err(NoAnswer::Broken(MISSING.into())),
                        |p| p.ask(&*question),
                    );
                    self.tell(SchedulerEvent::Advised { answer })?;
                }
                SchedulerAction::StartTask { task, host, .. } => {
                    self.writes.iter_mut().for_each(|w| w.started(task, host))
                }
                SchedulerAction::StopTask { task, attempt } => {
                    if let Some(coflow) =
                        self.writes.as_mut().and_then(|w| w.stopped((task, attempt)))
                    {
                        self.transport.cancel(coflow)?;
                    }
                }
                SchedulerAction::FinishJob(_) => {}
            }
        }
        self.tap.idle(RecordingEntry::JobIdle {});
        Ok(acts)
    }

    fn compute(&mut self, span: Span, task: (TaskRef, u32)) {
        self.agenda.set_timer(self.transport.now() + span, task);
    }
}
