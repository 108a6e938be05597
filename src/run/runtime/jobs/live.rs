//! Jobs by the wall clock: the scheduler over a network that another process controls.
//!
//! A [`JobsNetwork`] moves all bytes and reports what has arrived: over HTTP in the command line,
//! in process in experiments and tests. Blocks are in place as soon as a job is submitted, as in
//! [`super::simulate`]; scheduler and driver ([`super::drive`]) are the same.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

pub use super::drive::NetworkEvent;
use super::drive::{JobsDriver, JobsTransport, RunView, program};
use crate::coflows::CoflowSpec;
use crate::ids::{CoflowId, FlowId, JobId, RackId};
use crate::placement::advisor::PlacementRequest;
use crate::placement::decision::{Keep, PlacementDecision};
use crate::runtime::planned::scheduler;
use crate::runtime::record::{JobsHead, Recorder};
use crate::runtime::report::RunEnd;
use crate::scheduler::SchedulerEvent;
use crate::scheduler::record::{SchedulerSnapshot, TaskRun};
use crate::scheduler::spec::JobPolicy;
use crate::scheduler::state::Grain;
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};
use crate::workload::jobs::JobList;

/// The network that moves bytes. Coflows have the scheduler's numbers.
pub trait JobsNetwork {
    /// Begins to send all flows of a coflow; waits for nothing.
    ///
    /// # Errors
    /// Why nothing can be sent any more.
    fn start(&mut self, coflow: &CoflowSpec) -> Result<(), String>;

    /// Stops sending a coflow, which may have ended meanwhile.
    ///
    /// # Errors
    /// Why nothing can be stopped any more.
    fn cancel(&mut self, coflow: CoflowId) -> Result<(), String>;

    /// Gives flows of a coflow, which may have ended meanwhile, other strict priorities.
    ///
    /// # Errors
    /// Why none can be given.
    fn prioritise(&mut self, _coflow: CoflowId, _flows: &[(FlowId, u8)]) -> Result<(), String> {
        Err("this network has no priorities".into())
    }

    /// Bytes left of every active flow, in the order of coflow and flow.
    ///
    /// # Errors
    /// Why it cannot hear of it.
    fn left(&mut self) -> Result<Vec<(CoflowId, FlowId, Bytes)>, String> {
        Err("this network does not tell how far flows are".into())
    }

    /// The controller's proposal for the tasks of a stage; the controller holds it until
    /// [`JobsNetwork::begins`], or for some time.
    ///
    /// # Errors
    /// Why it cannot be asked. `None`: it was asked, and has none.
    fn place(
        &mut self,
        _what: (JobId, usize),
        _request: &PlacementRequest,
    ) -> Result<Option<Vec<(RackId, u32)>>, String> {
        Err("this network cannot be asked for placements: take another placement policy than co-decided".into())
    }

    /// The shuffle of a stage begins, so what [`JobsNetwork::place`] has held for it is not needed
    /// any more.
    ///
    /// # Errors
    /// Why nothing can be given back any more.
    fn begins(&mut self, _what: (JobId, usize)) -> Result<(), String> {
        Ok(())
    }

    /// The next event, if there is one within `patience`.
    ///
    /// # Errors
    /// Why there will be none: the network is gone, or a coflow broke.
    fn next(&mut self, patience: Duration) -> Result<Option<NetworkEvent>, String>;
}

/// The jobs to run, and the network to run them on.
pub struct LiveJobs<'a> {
    /// The network as it is.
    pub topology: &'a Arc<Topology>,
    /// How jobs are scheduled; flows go between hosts, whatever its grain says.
    pub jobs_by: &'a JobPolicy,
    /// The threshold T_e by which placement policies judge what is worth a circuit.
    pub elephant: Bytes,
    /// The jobs.
    pub jobs: &'a JobList,
    /// Hosts that fail and come back, as events for the scheduler, by time.
    pub failures: &'a [(Time, SchedulerEvent)],
}

/// Outcome of a run; times are counted from its start.
#[derive(Clone, Debug)]
pub struct JobsOutcome {
    /// The scheduler's final state.
    pub end: SchedulerSnapshot,
    /// Every attempt of a task, in the order of their ends.
    pub timeline: Vec<TaskRun>,
    /// Why it ended before all jobs had finished; `None` also if it was stopped.
    pub broken: Option<String>,
}

/// Longest wait before `stop` is looked at, and time between two calls of `watch`.
const LOOK: Span = Span::millis(100);

/// Runs jobs until all have finished, until `stop`, or until the network fails. Coflows that are
/// still active are left to the caller. `watch` is called a few times a second, with the decisions
/// that the policy noted since the last call. `recorder`, if there is one, takes the scheduler's
/// events and actions.
///
/// # Errors
/// Jobs that the policy cannot plan. Nothing was started then.
pub fn run(
    ask: &LiveJobs,
    recorder: Option<&Recorder>,
    network: &mut dyn JobsNetwork,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(&SchedulerSnapshot, Vec<PlacementDecision>),
) -> Result<JobsOutcome, String> {
    let settings = crate::scheduler::state::SchedulerSettings {
        grain: Grain::Host,
        ..ask.jobs_by.settings.clone()
    };
    let policy = JobPolicy { settings, ..ask.jobs_by.clone() };
    let (elephant, foreseen) = (ask.elephant, &ask.jobs.jobs);
    let placement = policy.placement.build(elephant);
    let mut scheduler =
        scheduler(ask.topology.clone(), placement, policy.settings.clone(), foreseen, None)?;
    scheduler.keep_decisions(Keep::All);
    let program = program(&policy.placement.policy, None)?;
    let wall = LiveTransport {
        network,
        heard: None,
        on_their_way: BTreeSet::new(),
        began: Instant::now(),
    };
    let mut run = JobsDriver::new(scheduler, wall, &ask.jobs.jobs, ask.failures);
    run.program = program;
    if let Some(recorder) = recorder {
        let (topology, foreseen) = ((**ask.topology).clone(), foreseen.clone());
        run.record(recorder, JobsHead { topology, policy, elephant, foreseen, misjudged: None });
    }
    let (mut looked, mut known) = (Time::ZERO, 0);
    let mut look = |r: &RunView<LiveTransport>| {
        let now = r.transport.now();
        if now.since(looked) >= LOOK {
            looked = now;
            let decisions = r.scheduler.decisions();
            watch(&r.scheduler.snapshot(), decisions.after(known).cloned().collect());
            known = decisions.made();
        }
        !stop.load(Relaxed)
    };
    let broken = match run.play(&mut look) {
        Ok(RunEnd::Stuck) => Some("nothing moves any more, and jobs are unfinished".into()),
        Ok(_) => None,
        Err(why) => Some(why),
    };
    let end = run.scheduler.snapshot();
    watch(&end, run.scheduler.decisions().after(known).cloned().collect());
    Ok(JobsOutcome { end, timeline: run.scheduler.timeline().to_vec(), broken })
}

/// A network with the wall clock.
struct LiveTransport<'a> {
    network: &'a mut dyn JobsNetwork,
    /// The event that ended the last wait.
    heard: Option<NetworkEvent>,
    /// Coflows that were started, and have neither ended nor been cancelled.
    on_their_way: BTreeSet<CoflowId>,
    began: Instant,
}

impl JobsTransport for LiveTransport<'_> {
    fn now(&self) -> Time {
        Time(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn wait(&mut self, wake: Option<Time>) -> Result<bool, String> {
        let patience = wake.unwrap_or(Time::MAX).since(self.now()).min(LOOK);
        self.heard = self.network.next(patience.std())?;
        Ok(true)
    }

    fn word(&mut self) -> Result<Option<NetworkEvent>, String> {
        let word = match self.heard.take() {
            None => self.network.next(Duration::ZERO)?,
            heard => heard,
        };
        if let Some(NetworkEvent::Coflow(coflow)) = word {
            self.on_their_way.remove(&coflow);
        }
        Ok(word)
    }

    fn start(&mut self, coflow: &CoflowSpec) -> Result<(), String> {
        self.on_their_way.insert(coflow.id);
        self.network.start(coflow)
    }

    fn cancel(&mut self, coflow: CoflowId) -> Result<(), String> {
        self.on_their_way.remove(&coflow);
        self.network.cancel(coflow)
    }

    fn prioritise(&mut self, coflow: CoflowId, flows: &[(FlowId, u8)]) -> Result<(), String> {
        self.network.prioritise(coflow, flows)
    }

    fn left(&mut self) -> Result<Vec<(CoflowId, FlowId, Bytes)>, String> {
        self.network.left()
    }

    fn place(
        &mut self,
        what: (JobId, usize),
        request: &PlacementRequest,
    ) -> Result<Option<Vec<(RackId, u32)>>, String> {
        self.network.place(what, request)
    }

    fn begins(&mut self, what: (JobId, usize)) -> Result<(), String> {
        self.network.begins(what)
    }

    fn settle(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// A run ends with its last job: the scheduler has given up what is still active.
    fn is_over(&self) -> bool {
        true
    }

    fn is_stuck(&self) -> bool {
        self.on_their_way.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::ids::{FlowId, HostId};
    use crate::placement::Kind;
    use crate::placement::advisor;
    use crate::runtime::jobs::tests::{jobs, kinds, network};
    use crate::scheduler::TaskRef;

    /// Delivers every flow after the same time, the last first, and remembers what was asked.
    #[derive(Default)]
    struct FakeNetwork {
        words: std::collections::VecDeque<(Instant, NetworkEvent)>,
        takes: Duration,
        cancelled: usize,
        sent: u64,
        open: BTreeSet<CoflowId>,
        /// Flows that have not arrived, of coflows that were not cancelled.
        flying: BTreeMap<(CoflowId, FlowId), Bytes>,
        /// Placements that were asked for, and whose shuffles have not begun.
        held: BTreeSet<(JobId, usize)>,
        /// Delivers nothing from this coflow on.
        silent_from: Option<u32>,
        /// Fails at this coflow.
        breaks_at: Option<u32>,
    }

    impl JobsNetwork for FakeNetwork {
        fn start(&mut self, c: &CoflowSpec) -> Result<(), String> {
            if self.breaks_at.is_some_and(|k| c.id.0 >= k) {
                return Err("the cable is cut".into());
            }
            assert!(
                c.flows.iter().all(|f| f.from != f.to && f.bytes.0 > 0) && self.open.insert(c.id)
            );
            self.sent += c.bytes().0;
            self.flying
                .extend(c.flows.iter().enumerate().map(|(k, f)| ((c.id, k.into()), f.bytes)));
            if self.silent_from.is_none_or(|k| c.id.0 < k) {
                let due = Instant::now() + self.takes;
                self.words.extend(
                    (0..c.flows.len())
                        .rev()
                        .map(|k| (due, NetworkEvent::Flow(c.id, FlowId::from(k)))),
                );
                self.words.push_back((due, NetworkEvent::Coflow(c.id)));
            }
            Ok(())
        }

        fn cancel(&mut self, c: CoflowId) -> Result<(), String> {
            // Word of it still comes: it was on its way.
            self.cancelled += usize::from(self.open.remove(&c));
            self.flying.retain(|k, _| k.0 != c);
            Ok(())
        }

        fn prioritise(&mut self, _: CoflowId, flows: &[(FlowId, u8)]) -> Result<(), String> {
            assert!(
                flows.is_sorted_by(|a, b| a.0 < b.0) && flows.iter().all(|f| f.1 <= 7),
                "each flow once"
            );
            Ok(())
        }

        /// Half of every flow that has not arrived.
        fn left(&mut self) -> Result<Vec<(CoflowId, FlowId, Bytes)>, String> {
            Ok(self.flying.iter().map(|(k, b)| (k.0, k.1, Bytes(b.0 / 2))).collect())
        }

        fn place(
            &mut self,
            what: (JobId, usize),
            request: &PlacementRequest,
        ) -> Result<Option<Vec<(RackId, u32)>>, String> {
            let t = network();
            let p =
                advisor::decide(&t, &advisor::NetworkState::idle(&t, Bytes(2_000_000)), request)
                    .map_err(|e| e.to_string())?;
            self.held.insert(what);
            Ok(Some(p.chosen.racks))
        }

        fn begins(&mut self, what: (JobId, usize)) -> Result<(), String> {
            self.held.remove(&what);
            Ok(())
        }

        fn next(&mut self, patience: Duration) -> Result<Option<NetworkEvent>, String> {
            let due = self
                .words
                .front()
                .map_or(patience, |w| w.0.saturating_duration_since(Instant::now()));
            if !due.is_zero() {
                std::thread::park_timeout(due.min(patience));
            }
            let word = if self.words.front().is_some_and(|w| w.0 <= Instant::now()) {
                self.words.pop_front().map(|w| w.1)
            } else {
                None
            };
            match word {
                Some(NetworkEvent::Flow(c, k)) => drop(self.flying.remove(&(c, k))),
                Some(NetworkEvent::Coflow(c)) => drop(self.open.remove(&c)),
                None => {}
            }
            Ok(word)
        }
    }

    /// The six jobs of the simulation's tests, twenty times as fast.
    fn quick() -> JobList {
        let mut list = jobs();
        let how = crate::config::Select { time_scale: 20, ..crate::config::Select::default() };
        how.shrink(&mut list.jobs);
        list
    }

    fn play(
        kind: Kind,
        fake: &mut FakeNetwork,
        failures: &[(Time, SchedulerEvent)],
    ) -> JobsOutcome {
        let (topology, jobs) = (Arc::new(network()), quick());
        let mut by = JobPolicy::new(kind);
        by.placement.common.missed = None;
        (by.placement.common.wait, by.placement.common.patience) =
            ((Span::millis(5), Span::millis(5)), Span::millis(50));
        let ask = LiveJobs {
            topology: &topology,
            jobs_by: &by,
            elephant: Bytes(2_000_000),
            jobs: &jobs,
            failures,
        };
        run(&ask, None, fake, &AtomicBool::new(false), &mut |_, _| ()).unwrap()
    }

    /// No slot is held by two tasks at once.
    fn slots_are_used_once(timeline: &[TaskRun]) {
        let mut by_slot: BTreeMap<_, Vec<_>> = BTreeMap::new();
        timeline
            .iter()
            .for_each(|t| by_slot.entry((t.host, t.slot)).or_default().push((t.started, t.ended)));
        for (slot, mut held) in by_slot {
            held.sort_unstable();
            assert!(held.windows(2).all(|w| w[0].1 <= w[1].0), "{slot:?}: {held:?}");
        }
    }

    #[test]
    fn every_policy_runs_every_task_once_by_the_clock() {
        for kind in kinds() {
            let mut fake = FakeNetwork::default();
            let o = play(kind, &mut fake, &[]);
            assert_eq!(o.broken, None, "{kind:?}");
            let tasks: u64 = quick().jobs.iter().map(|j| j.tasks()).sum();
            let once: BTreeSet<TaskRef> =
                o.timeline.iter().filter(|t| t.finished).map(|t| t.task).collect();
            // On a slow machine a reduce may have given its slot to a map, and starts again.
            let starts = tasks + o.end.counters.preempted;
            assert_eq!((once.len() as u64, o.timeline.len() as u64), (tasks, starts), "{kind:?}");
            slots_are_used_once(&o.timeline);
            let asked: u64 = o.end.jobs.iter().map(|j| j.shuffled.0 + j.read.0).sum();
            assert!(
                asked == fake.sent
                    && fake.open.is_empty()
                    && fake.held.is_empty()
                    && o.end.counters.violations == 0,
                "{kind:?}"
            );
            for (j, spec) in o.end.jobs.iter().zip(quick().jobs) {
                let longest: Span =
                    spec.stages.iter().map(|s| s.times.longest()).fold(Span::ZERO, |a, b| a + b);
                assert!(j.jct.unwrap() >= longest, "{kind:?}: tasks took their time: {j:?}");
            }
        }
    }

    #[test]
    fn hosts_and_racks_fail_by_the_clock_under_every_policy() {
        let at = |ms: u64| Time(ms * 1_000_000);
        let failures = [
            (at(20), SchedulerEvent::HostFailed(HostId(1))),
            (at(45), SchedulerEvent::RackFailed(RackId(2))),
            (at(75), SchedulerEvent::RackRecovered(RackId(2))),
            (at(125), SchedulerEvent::HostRecovered(HostId(1))),
        ];
        let (mut cancelled, mut reruns) = (0, 0);
        for kind in kinds() {
            let mut fake =
                FakeNetwork { takes: Duration::from_millis(10), ..FakeNetwork::default() };
            let o = play(kind, &mut fake, &failures);
            assert_eq!(
                (o.broken, o.end.counters.hosts_failed, o.end.counters.violations),
                (None, 3, 0),
                "{kind:?}"
            );
            let once: BTreeSet<TaskRef> =
                o.timeline.iter().filter(|t| t.finished).map(|t| t.task).collect();
            assert_eq!(
                once.len() as u64,
                quick().jobs.iter().map(|j| j.tasks()).sum::<u64>(),
                "{kind:?}: every task has finished"
            );
            slots_are_used_once(&o.timeline);
            assert!(fake.open.is_empty(), "{kind:?}: {:?}", fake.open);
            cancelled += fake.cancelled;
            reruns += o.end.jobs.iter().map(|j| j.reruns).sum::<u32>();
        }
        assert!(
            cancelled > 0 && reruns > 0,
            "something was on its way to them, and ran there: {cancelled} cancelled, {reruns} run again"
        );
    }

    #[test]
    fn who_stops_or_loses_the_network_keeps_what_was_done() {
        let mut cut = FakeNetwork { breaks_at: Some(3), ..FakeNetwork::default() };
        let o = play(Kind::Fair, &mut cut, &[]);
        assert_eq!(o.broken.as_deref(), Some("the cable is cut"));
        assert!(o.end.jobs.iter().any(|j| j.finished.is_none()) && !o.timeline.is_empty());

        let stop = AtomicBool::new(false);
        let (topology, jobs) = (Arc::new(network()), quick());
        let by = JobPolicy::new(Kind::Fair);
        let ask = LiveJobs {
            topology: &topology,
            jobs_by: &by,
            elephant: Bytes(0),
            jobs: &jobs,
            failures: &[],
        };
        let mut silent = FakeNetwork { silent_from: Some(2), ..FakeNetwork::default() };
        // Told to stop when only silence is left.
        let mut watch = |s: &SchedulerSnapshot, _: Vec<PlacementDecision>| {
            stop.store(s.coflows > 0 && s.computing == 0, Relaxed)
        };
        let o = run(&ask, None, &mut silent, &stop, &mut watch).unwrap();
        assert!(
            o.broken.is_none() && o.end.coflows > 0 && !silent.open.is_empty(),
            "what is open is the caller's to cancel"
        );
    }
}
