//! Jobs in virtual time: the scheduler and the controller over the simulated fabric.
//!
//! At one instant, in this order: flows finish and circuits change, tasks finish, hosts fail or
//! come back, jobs arrive, the scheduler decides and its coflows begin, the controller wakes.
//! Blocks are where they shall be as soon as a job is submitted: uploading is not part of a run.
//! Nothing reads a clock or a random number, so one input gives one event log, byte for byte.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use super::drive::{EndedRows, JobsDriver, JobsTransport, NetworkEvent, RunView, program};
use super::report::{JobsResult, JobsTally};
use super::writes::Writes;
use crate::coflows::{CoflowRecord, CoflowSpec};
use crate::control::Rejected;
use crate::control::record::Record;
use crate::fabric::meter::bucket_for;
use crate::ids::{CoflowId, FlowId, JobId, RackId};
use crate::placement::advisor::PlacementRequest;
use crate::placement::policy::Placement;
use crate::runtime::external::PATIENCE;
use crate::runtime::planned::scheduler;
use crate::runtime::record::{JobsHead, Recorder};
use crate::runtime::report::RunResult;
use crate::runtime::report::caveats::Given;
use crate::runtime::rows::{ResultRow, RowSink};
use crate::runtime::settings::RunPlan;
use crate::runtime::simulate::{Extras, Finished, Simulation, told};
use crate::scheduler::spec::JobPolicy;
use crate::scheduler::state::{Grain, rack_level};
use crate::scheduler::{SchedulerAction, SchedulerEvent};
use crate::sim::faults::{BrokenPart, Fault, Which};
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};
use crate::workload::jobs::{JobList, JobSpec, StageSpec, TaskTimes};

/// The jobs to run, and the network to run them on.
pub struct SimulatedJobs<'a> {
    /// The network.
    pub topology: &'a Topology,
    /// How circuits are decided, and what the fabric is like.
    pub plan: &'a RunPlan,
    /// How jobs are scheduled; its grain is the run's.
    pub jobs_by: &'a JobPolicy,
    /// The jobs.
    pub jobs: &'a JobList,
    /// Hosts that fail and come back, as events for the scheduler, by time.
    pub failures: &'a [(Time, SchedulerEvent)],
    /// Faults of the network, by time; the scheduler is not told.
    pub faults: &'a [Fault],
    /// Ends the run then, even if jobs are unfinished.
    pub until: Option<Time>,
}

/// A line of a run's event log.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum EventLogLine<'a> {
    /// A record of the controller.
    Network(Record),
    /// An action of the scheduler: what it wanted done.
    Jobs {
        /// When the scheduler wanted it.
        at: Time,
        /// The action.
        job_action: &'a SchedulerAction,
    },
}

/// Runs jobs until all have finished, or until `until`, or until nothing can move any more. Every
/// line of the event log goes to `log`.
///
/// # Errors
/// Jobs that the policy cannot plan, or what the scheduler or the controller refuses.
pub fn simulate(
    ask: &SimulatedJobs,
    log: &mut dyn FnMut(EventLogLine),
) -> Result<JobsResult, String> {
    simulate_with(ask, &JobRunOptions::default(), log)
}

/// Options of a simulated run of jobs.
#[derive(Clone, Copy, Default)]
pub struct JobRunOptions<'a> {
    /// The jobs as planners see them, with the ids of the real ones; `None`: as they are.
    pub foreseen: Option<&'a [JobSpec]>,
    /// Per cent by which estimates of remaining times are off at most, and the seed of the errors.
    pub remaining: Option<(u32, u64)>,
    /// Looked at now and then: the run ends there when it is set, like with `until`.
    pub stop: Option<&'a AtomicBool>,
    /// What links carry over time is kept, at first in buckets of this length ([`bucket`]).
    pub bucket: Option<Span>,
    /// What ends of flows leave is shared again at multiples of this only; zero: at once
    /// ([`Extras::resolution`]).
    pub resolution: Span,
    /// Is told now and then how far the run is, and at its end.
    pub watch: Option<&'a dyn Fn(JobsProgress)>,
    /// Takes what both machines hear and want.
    pub record: Option<&'a Recorder>,
    /// The job of which the result says why its tasks started where they did.
    pub explain: Option<JobId>,
    /// Takes everything that ends; the result has no lists then, and sums over all.
    pub rows: Option<RowSink<'a>>,
    /// Whether tasks write what their stages make for good: HDFS copies it over the network before
    /// they are done.
    pub writes: bool,
}

/// How far a run of jobs is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobsProgress {
    /// Virtual time.
    pub now: Time,
    /// Instants at which something has happened.
    pub events: u64,
    /// Jobs that have not arrived.
    pub coming: usize,
    /// Coflows that are under way.
    pub coflows: usize,
}

/// Events between two reports to the watcher of a run.
const LOOK: u64 = 100;

/// A length of buckets for a run of `jobs`. O(stages).
pub fn bucket(topology: &Topology, jobs: &JobList) -> Span {
    bucket_for(least(topology, jobs))
}

/// The least time that a run of `jobs` takes: up to the last arrival, and as long as all tasks
/// compute on all slots at once. O(stages).
pub fn least(topology: &Topology, jobs: &JobList) -> Span {
    let last = jobs.jobs.last().map_or(Time::ZERO, |j| j.arrival).since(Time::ZERO);
    let slots: u64 = topology.hosts.iter().map(|h| u64::from(h.slots)).sum();
    let work: u128 = jobs.jobs.iter().flat_map(|j| &j.stages).map(work).sum();
    last.max(Span(u64::try_from(work / u128::from(slots.max(1))).unwrap_or(u64::MAX)))
}

/// Nanoseconds that all tasks of a stage compute, at most.
fn work(s: &StageSpec) -> u128 {
    match &s.times {
        TaskTimes::Even(t) => u128::from(t.0) * u128::from(s.tasks),
        TaskTimes::Each(all) => all.iter().map(|t| u128::from(t.0)).sum(),
    }
}

/// [`simulate`] with errors of foresight, or a flag that may stop it.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_with(
    ask: &SimulatedJobs,
    course: &JobRunOptions,
    log: &mut dyn FnMut(EventLogLine),
) -> Result<JobsResult, String> {
    simulate_as(ask, ask.jobs_by.placement.build(ask.plan.policy.elephant_threshold), course, log)
}

/// [`simulate_with`] under a placement policy that is made already, be it one without a name; of
/// the one in `ask.jobs_by` only the network that it is meant for counts.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_as(
    ask: &SimulatedJobs,
    placement: Box<dyn Placement>,
    course: &JobRunOptions,
    log: &mut dyn FnMut(EventLogLine),
) -> Result<JobsResult, String> {
    let topology = Arc::new(ask.jobs_by.placement.network(ask.topology));
    let grain = ask.jobs_by.settings.grain;
    let network =
        if grain == Grain::Rack { Arc::new(rack_level(&topology)) } else { topology.clone() };
    if grain == Grain::Rack
        && ask
            .faults
            .iter()
            .any(|f| matches!(f.what, BrokenPart::Links { which: Which::Nic(_), .. }))
    {
        return Err(
            "racks as a whole have no hosts' interfaces that could fail; ask for --grain host"
                .into(),
        );
    }
    let named = ask.jobs_by.placement.kind().name();
    if course.record.is_some() && placement.name() != named {
        return Err(format!(
            "a recording names its placement policy, and `{}` is not `{named}`",
            placement.name()
        ));
    }
    let (elephant, foreseen) =
        (ask.plan.policy.elephant_threshold, course.foreseen.unwrap_or(&ask.jobs.jobs));
    let mut scheduler = scheduler(
        topology.clone(),
        placement,
        ask.jobs_by.settings.clone(),
        foreseen,
        course.remaining,
    )?;
    course.explain.into_iter().for_each(|job| scheduler.explain(job));
    let lines = std::cell::RefCell::new(log);
    let mut from_network = |r| (lines.borrow_mut())(EventLogLine::Network(r));
    let extras = Extras {
        faults: ask.faults,
        bucket: course.bucket,
        resolution: course.resolution,
        proposals: true,
    };
    let transport = VirtualTransport {
        network: Simulation::with(&network, ask.plan, extras, &mut from_network),
        promised: BTreeMap::new(),
        promises: 0,
        words: VecDeque::new(),
        now: Time::ZERO,
        until: ask.until.unwrap_or(Time::MAX),
        events: 0,
        log: &mut |at, job_action| (lines.borrow_mut())(EventLogLine::Jobs { at, job_action }),
    };
    let mut run = JobsDriver::new(scheduler, transport, &ask.jobs.jobs, ask.failures);
    // Time stands still while the program thinks: a run gives the same results on a slow machine.
    run.program = program(&ask.jobs_by.placement.policy, Some(PATIENCE))?;
    let seed = ask.jobs_by.placement.common.seed;
    run.writes = course.writes.then(|| Writes::new(&ask.jobs.jobs, topology.clone(), grain, seed));
    run.told = course.rows.map(|rows| EndedRows::new(rows, ask.topology));
    if let Some(recorder) = course.record {
        let (topology, policy, foreseen) =
            ((*topology).clone(), ask.jobs_by.clone(), foreseen.to_vec());
        run.transport.network.record(recorder);
        run.record(
            recorder,
            JobsHead { topology, policy, elephant, foreseen, misjudged: course.remaining },
        );
    }
    let end = run.play(&mut |r: &RunView<VirtualTransport>| {
        let stopped = course.stop.is_some_and(|s| s.load(Ordering::Relaxed));
        let (now, events, coflows) =
            (r.transport.now, r.transport.events, r.transport.network.unfinished());
        if events.is_multiple_of(LOOK) || r.ends || stopped {
            course
                .watch
                .inspect(|tell| tell(JobsProgress { now, events, coming: r.coming, coflows }));
        }
        !stopped
    })?;
    let grain = if grain == Grain::Rack { "rack" } else { "host" };
    let explained = run.scheduler.explained().iter().map(|e| e.named(ask.topology)).collect();
    let decisions = run.scheduler.decisions().after(0).cloned().collect();
    let VirtualTransport { network, events, .. } = run.transport;
    let network = RunResult {
        end,
        events: Some(events),
        ..told(network.result(&ask.jobs.name, &[]), course.rows)
    };
    let before = run.told.map_or_else(JobsTally::default, |t| t.jobs);
    let result = JobsResult::summed(
        before,
        run.scheduler.snapshot(),
        run.scheduler.timeline(),
        ask.topology,
        grain,
        network,
    );
    let down = ask
        .failures
        .iter()
        .filter(|f| matches!(f.1, SchedulerEvent::HostFailed(_) | SchedulerEvent::RackFailed(_)))
        .count();
    let result =
        result.judged(&Given { faults: (ask.faults.len() + down) as u64, ..Given::default() });
    let result = JobsResult { explained, decisions, ..result };
    let Some(rows) = course.rows else { return Ok(result) };
    result.timeline.iter().for_each(|t| rows(ResultRow::Task(t)));
    result.jobs.iter().for_each(|j| rows(ResultRow::Job(j)));
    Ok(JobsResult { jobs: Vec::new(), timeline: Vec::new(), ..result })
}

/// The simulated network, and its clock.
struct VirtualTransport<'a> {
    network: Simulation<'a>,
    /// What the controller holds for shuffles that have not begun.
    promised: BTreeMap<(JobId, usize), CoflowId>,
    promises: u32,
    /// What the network has said and the scheduler has not heard.
    words: VecDeque<NetworkEvent>,
    now: Time,
    until: Time,
    events: u64,
    log: &'a mut dyn FnMut(Time, &SchedulerAction),
}

/// Time for which promises are held after they should have begun.
const GRACE: Span = Span::secs(30);

fn refused(e: &Rejected) -> String {
    e.to_string()
}

impl JobsTransport for VirtualTransport<'_> {
    fn now(&self) -> Time {
        self.now
    }

    fn wait(&mut self, wake: Option<Time>) -> Result<bool, String> {
        let next = wake.into_iter().chain(self.network.next_event()).min().unwrap_or(Time::MAX);
        self.events += 1;
        self.now = next.min(self.until).max(self.now);
        self.network.advance(self.now).map_err(|e| refused(&e))?;
        Ok(next <= self.until)
    }

    fn word(&mut self) -> Result<Option<NetworkEvent>, String> {
        if self.words.is_empty() {
            let Finished { flows, wholes, .. } = self.network.take_finished();
            self.words.extend(flows.into_iter().map(|f| NetworkEvent::Flow(f.coflow, f.flow)));
            self.words.extend(wholes.into_iter().map(NetworkEvent::Coflow));
        }
        Ok(self.words.pop_front())
    }

    fn start(&mut self, coflow: &CoflowSpec) -> Result<(), String> {
        self.network.arrive(coflow).map_err(|e| refused(&e))
    }

    fn belongs(&mut self, coflow: CoflowId, job: JobId) {
        self.network.belongs(coflow, job);
    }

    fn cancel(&mut self, coflow: CoflowId) -> Result<(), String> {
        self.network.cancel(coflow).map_err(|e| refused(&e))
    }

    fn prioritise(&mut self, coflow: CoflowId, flows: &[(FlowId, u8)]) -> Result<(), String> {
        self.network.prioritise(coflow, flows).map_err(|e| refused(&e))
    }

    fn left(&mut self) -> Result<Vec<(CoflowId, FlowId, Bytes)>, String> {
        Ok(self.network.left())
    }

    /// Asks the controller in its present state; it holds what it says until the shuffle begins.
    fn place(
        &mut self,
        what: (JobId, usize),
        request: &PlacementRequest,
    ) -> Result<Option<Vec<(RackId, u32)>>, String> {
        self.begins(what)?;
        // The scheduler counts its coflows from zero.
        let id = CoflowId(u32::MAX - self.promises);
        let Some(p) = self.network.propose(id, request, GRACE).map_err(|e| refused(&e))? else {
            return Ok(None);
        };
        self.promises += 1;
        self.promised.insert(what, id);
        Ok(Some(p.chosen.racks.clone()))
    }

    fn begins(&mut self, what: (JobId, usize)) -> Result<(), String> {
        if let Some(old) = self.promised.remove(&what) {
            self.network.withdraw(old);
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<(), String> {
        self.network.wake().map_err(|e| refused(&e))
    }

    fn is_over(&self) -> bool {
        self.network.unfinished() == 0
    }

    fn take_ended(&mut self) -> Vec<CoflowRecord> {
        self.network.take_ended()
    }

    fn is_stuck(&self) -> bool {
        self.network.unfinished() == 0
            || self.network.is_stuck()
            || self.network.next_event().is_none()
    }

    fn log(&mut self, action: &SchedulerAction) {
        (self.log)(self.now, action);
    }
}
