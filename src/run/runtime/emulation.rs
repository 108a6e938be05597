//! A whole emulation on this machine: namespaces, fabric, control loop and traffic, started and
//! taken down together.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::completions::Completions;
use super::live::{Carrier, LiveController};
use super::record::Recorder;
use super::report::{FabricCounts, ResultNames, RunEnd, RunResult};
use super::settings::RunPlan;
use super::stalls;
use crate::coflows::elephants::is_elephant;
use crate::coflows::priority::PriorityChange;
use crate::coflows::{CoflowRecord, CoflowSpec, RackBytes, bounds};
use crate::control::previous_run::PreviousRun;
use crate::control::record::{Snapshot, Tampered};
use crate::control::{Event, LogFile, Trouble};
use crate::fabric::{Observation, SEND_BUFFER};
use crate::ids::CoflowId;
use crate::kernel::attached::Processes;
use crate::kernel::missing::{self, MissingFeature};
use crate::kernel::network::{EmulatedNetwork, too_large};
use crate::kernel::ownership::{self, NamespaceName, NoteFiles, OwnError, Owned, mark};
use crate::kernel::traffic::{Traffic, TrafficEvent};
use crate::kernel::{Clock, KernelFabric, Mechanism, Serving, features, programs, rights, sys};
use crate::topology::Topology;
use crate::units::{Bytes, Span, Time};
use crate::workload::Workload;

/// Time between two looks at a run under way: is the network there, how far are the coflows.
const WATCH: Span = Span::millis(200);

/// How an emulation is started.
#[derive(Clone, Debug)]
pub struct EmulationOptions {
    /// The fabric's name; namespaces are called `NAME-h3-1`.
    pub name: String,
    /// Which mechanism; `None` for the best that the kernel allows.
    pub mechanism: Option<Mechanism>,
    /// Where running fabrics keep their notes.
    pub base: PathBuf,
    /// Nodes that Mininet made: their processes.
    pub attach: Option<Processes>,
    /// Time after which a coflow of which bytes wait and do not move is broken off; `None`: never.
    pub patience: Option<Span>,
}

/// Why an emulation cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The network is larger than the address plan.
    #[error("this network cannot be emulated: {0}")]
    TooLarge(String),
    /// Links ask for what this kernel has no queue for.
    #[error("this network cannot be emulated: links.{}.{}: {}", .0.kind, .0.key, .0)]
    Lack(MissingFeature),
    /// The name cannot be had.
    #[error(transparent)]
    Own(#[from] OwnError),
    /// The hosts' kernel has no such TCP congestion control, or may not use it.
    #[error("TCP congestion control `{name}` cannot be had ({why}); available: {available}")]
    Congestion {
        /// What the policy asks for.
        name: String,
        /// What the kernel said.
        why: String,
        /// What there is.
        available: String,
    },
    /// The kernel refused.
    #[error("{0}: {1}")]
    Kernel(&'static str, io::Error),
}

fn kernel(what: &'static str) -> impl FnOnce(io::Error) -> StartError {
    move |e| StartError::Kernel(what, e)
}

/// The run of a workload.
struct UnderWay {
    /// Tells it what the traffic says.
    tell: mpsc::Sender<TrafficEvent>,
    /// The largest number of its coflows.
    last: Option<CoflowId>,
}

/// A running emulation. Dropping it takes everything down: connections, control loop, namespaces,
/// names.
pub struct Emulation {
    /// Comes first: it speaks to the others.
    stalls: stalls::StallsWatch,
    /// The control loop.
    pub live: LiveController,
    /// The traffic.
    pub traffic: Arc<Traffic>,
    /// The clock that all times are counted by.
    pub clock: Clock,
    /// The mechanism in use.
    pub mechanism: Mechanism,
    workload: Arc<Mutex<Option<UnderWay>>>,
    plan: RunPlan,
    attached: Option<Processes>,
    /// Last: the names go when nothing uses them any more.
    pub owned: Owned,
}

impl Emulation {
    /// Builds the network and starts the control loop under a name that was taken before. What the
    /// controller hears and wants goes to `recorder`, if there is one.
    ///
    /// # Errors
    /// When the kernel refuses something. Nothing is left behind then.
    pub fn start(
        owned: Owned,
        topology: Arc<Topology>,
        plan: RunPlan,
        options: &EmulationOptions,
        recorder: Option<Recorder>,
    ) -> Result<Self, StartError> {
        Self::resume(owned, topology, plan, options, (recorder, None))
    }

    /// The same for a controller that goes on from an earlier one: its records, and the time that
    /// its clock has reached.
    ///
    /// # Errors
    /// Those of [`Emulation::start`], and records of another network.
    pub fn resume(
        mut owned: Owned,
        topology: Arc<Topology>,
        plan: RunPlan,
        options: &EmulationOptions,
        (recorder, past): (Option<Recorder>, Option<(PreviousRun, Time)>),
    ) -> Result<Self, StartError> {
        too_large(&topology).map_or(Ok(()), |why| Err(StartError::TooLarge(why)))?;
        let missing = missing::lacks(&topology).map_err(kernel("try what links need"))?;
        missing.into_iter().next().map_or(Ok(()), |lack| Err(StartError::Lack(lack)))?;
        sys::raise_open_files();
        check_congestion(&plan.run.congestion)?;
        let clock = past.as_ref().map_or_else(Clock::start, |p| Clock::from(p.1));
        let net = match &options.attach {
            None => EmulatedNetwork::build(
                topology.clone(),
                &mark(&options.base, &options.name),
                Some(plan.run.tcp()),
            )
            .map_err(kernel("build the network"))?,
            Some(nodes) => {
                let _turn = ownership::turn(&options.base);
                let others: Vec<String> = ownership::held(&options.base)
                    .into_iter()
                    .filter(|n| *n != options.name)
                    .collect();
                EmulatedNetwork::attach(topology.clone(), &options.name, &others, |n| nodes.open(n))
                    .map_err(kernel("attach to the network"))?
            }
        };
        if options.attach.is_none() && rights::are_of_the_machine() {
            owned.publish(&net)?;
        }
        let mechanism = options.mechanism.unwrap_or_else(Mechanism::best);
        let serving = Serving {
            admit: plan.run.admit,
            port: plan.run.port,
            service: plan.run.network.kind.service(),
        };
        let fabric = KernelFabric::install(net, mechanism, serving, clock)
            .map_err(kernel("set the fabric up"))?;
        owned
            .built(fabric.network(), (mechanism.name(), &plan.policy.name))
            .map_err(kernel("write the fabric's note"))?;
        let hosts = fabric.host_namespaces().map_err(kernel("open the hosts' namespaces"))?;
        let workload: Arc<Mutex<Option<UnderWay>>> = Arc::default();
        let listens = workload.clone();
        let handle_slot: Arc<Mutex<Option<super::handle::Handle>>> = Arc::default();
        let slot = handle_slot.clone();
        let mut traffic =
            Traffic::start(topology, hosts.clone(), clock, &plan.run.congestion, move |e| {
                if let Some(h) = &*slot.lock() {
                    h.notify(for_the_controller(&e));
                }
                if let Some(run) = &*listens.lock() {
                    let _ = run.tell.send(e);
                }
            })
            .map_err(kernel("start the traffic"))?;
        traffic.serve(serving.service);
        let traffic = Arc::new(traffic);
        let names = NamesWatch {
            names: owned.names().to_vec(),
            note: owned.note_files(),
            next: clock.now() + NamesWatch::EVERY,
            told: None,
        };
        let recorded = recorder.clone();
        let carrier = Box::new(Sent {
            traffic: traffic.clone(),
            names,
            recorded,
            clock,
            buffer: plan.run.buffer,
        });
        let live = LiveController::start(
            fabric,
            plan.clone(),
            clock,
            carrier,
            recorder,
            past.map(|p| p.0),
        )
        .map_err(kernel("start the control loop"))?;
        *handle_slot.lock() = Some(live.handle.clone());
        let stalls = stalls::StallsWatch::start(
            live.handle.clone(),
            traffic.clone(),
            hosts,
            clock,
            options.patience,
        )
        .map_err(kernel("watch what waits"))?;
        Ok(Self {
            stalls,
            live,
            traffic,
            clock,
            mechanism,
            workload,
            plan,
            attached: options.attach.clone(),
            owned,
        })
    }

    /// Writes down where the API listens and which workload is carried, so that other commands find
    /// it.
    ///
    /// # Errors
    /// When the note cannot be written.
    pub fn announce(&self, api: &str, workload: &str) -> io::Result<()> {
        self.owned.amend(|note| {
            (note.api, note.workload) = (Some(api.to_owned()), workload.into());
        })
    }

    /// Why the run cannot go on, if that is so: the control loop or the traffic has died. O(hosts),
    /// well below a microsecond each.
    pub fn died(&self) -> Option<String> {
        let blind = (!self.stalls.is_alive())
            .then(|| "the thread that looks for bytes that are stuck has died".to_owned());
        self.live.lost().or_else(|| self.traffic.lost()).or(blind)
    }

    /// The same, or nodes that we attached to are gone, because their owner took them down. Costs
    /// about 10 us a node.
    pub fn lost(&self) -> Option<String> {
        if let Some(why) = self.died() {
            return Some(why);
        }
        let (node, pid) = self.attached.as_ref()?.lost()?;
        Some(format!("the network is gone: node {node} (process {pid}) has ended"))
    }

    /// Takes everything down, the names last. Gives what could not be removed.
    pub fn end(self) -> Vec<String> {
        let Self { stalls, live, traffic, attached, mut owned, .. } = self;
        owned.says("stopping");
        let inside = programs::of(owned.note_files().directory());
        if !inside.is_empty() {
            let list = inside.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            tracing::warn!(
                "programs run on in nodes that are taken down: {list}; `heliostat clean --end-programs` ends them"
            );
        }
        drop(stalls);
        let ended = live.end();
        drop(traffic);
        let mut left = owned.release();
        if !ended {
            left.push("the controller's thread, which hangs".into());
        }
        if !ended && attached.is_some() {
            left.push("what was set in Mininet's nodes: `heliostat clean` removes it".into());
        }
        left
    }

    /// Starts one coflow now, under the id in `spec`.
    pub fn launch(&self, spec: &CoflowSpec) {
        let topology = &self.live.handle.topology;
        let pairs = RackBytes::of(&spec.flows, topology);
        self.live.handle.notify(Event::arrival(
            spec,
            pairs.clone(),
            bounds::hybrid(spec, topology),
        ));
        if topology.eps.graph().is_some() {
            // Lists are chosen before the first byte is sent; a controller that has stopped chooses
            // none.
            let event = Event::CoflowFlows {
                id: spec.id,
                flows: spec.flows.to_vec(),
                types: spec.types.clone(),
            };
            let told = self.live.handle.ask(event);
            drop(told.map(oneshot::Receiver::blocking_recv));
        }
        let threshold = self.live.handle.snapshot().policy.elephant_threshold;
        self.traffic.launch(spec, |i, j| is_elephant(&pairs, i, j, threshold));
    }

    /// The next instant half-way between two cycles: workloads begin there, as they do in
    /// simulation, so that the two can be compared.
    fn between_cycles(&self) -> Time {
        let (first, interval) = (self.live.first_cycle, self.plan.policy.interval);
        let cycles = self.clock.now().since(first).0 / interval.0 + 1;
        first + interval * cycles + Span(interval.0 / 2)
    }

    /// The largest number of a coflow of the workload that runs, if one does. Numbers up to there
    /// are its own.
    pub(super) fn last_own(&self) -> impl Fn() -> Option<CoflowId> + Send + Sync + use<> {
        let workload = self.workload.clone();
        move || workload.lock().as_ref().and_then(|run| run.last)
    }

    /// What the traffic says from now on, until another caller or a workload listens.
    pub fn listen(&self) -> mpsc::Receiver<TrafficEvent> {
        let (tell, heard) = mpsc::channel();
        *self.workload.lock() = Some(UnderWay { tell, last: None });
        heard
    }

    /// Runs a workload, one at a time: every coflow starts at its arrival, counted from now.
    /// `watch` is called five times a second; `stop` ends the run early, with what has finished by
    /// then; so does what [`Emulation::lost`] gives.
    pub fn run(
        &self,
        workload: &Workload,
        stop: &AtomicBool,
        mut watch: impl FnMut(&Snapshot),
    ) -> RunResult {
        let (tell, heard) = mpsc::channel();
        *self.workload.lock() =
            Some(UnderWay { tell, last: workload.coflows.iter().map(|c| c.id).max() });
        let start = self.between_cycles();
        self.clock.sleep_until(start);
        let mut ends = Completions::new(workload.coflows.iter().map(|c| c.id));
        let (mut next, mut told) = (0, start);
        let mut specs: Vec<CoflowSpec> = workload.coflows.clone();
        specs.iter_mut().for_each(|c| c.arrival = start + c.arrival.since(Time::ZERO));
        while !ends.are_all() && !stop.load(Relaxed) && self.died().is_none() {
            let seen = self.live.handle.snapshot();
            while next < specs.len() && specs[next].arrival <= self.clock.now() {
                let id = specs[next].id;
                if seen.coflows.used.contains(id) {
                    ends.breaks(
                        id,
                        format!("its number {} was given to another coflow before the run", id.0),
                    );
                } else {
                    self.launch(&specs[next]);
                }
                next += 1;
            }
            let due = specs.get(next).map_or(Time::MAX, |c| c.arrival);
            let pause = due.min(told + WATCH).since(self.clock.now());
            ends.look(&seen.coflows);
            if let Ok(word) = heard.recv_timeout(pause.std()) {
                ends.hear(word);
            }
            if self.clock.now() >= told + WATCH {
                if self.lost().is_some() {
                    break;
                }
                watch(&self.live.handle.snapshot());
                told = self.clock.now();
            }
        }
        *self.workload.lock() = None;
        let end = self.settled();
        ends.look(&end.coflows);
        watch(&end);
        let ended = if ends.are_all() { RunEnd::Finished } else { RunEnd::Stopped };
        RunResult { end: ended, ..self.result(workload, start, &ends, &end) }
    }

    /// A snapshot whose counters include everything that was sent before now: that of the second
    /// cycle from now.
    fn settled(&self) -> Arc<Snapshot> {
        let cycle = self.live.handle.snapshot().stats.cycles;
        let deadline = self.clock.now() + self.plan.policy.interval * 3 + Span::secs(1);
        loop {
            let s = self.live.handle.snapshot();
            if s.stats.cycles >= cycle + 2 || self.clock.now() > deadline || !self.live.is_alive() {
                return s;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn result(
        &self,
        workload: &Workload,
        start: Time,
        ends: &Completions,
        end: &Snapshot,
    ) -> RunResult {
        let topology = &self.live.handle.topology;
        let mut received = Bytes::ZERO;
        let records: Vec<CoflowRecord> = workload
            .coflows
            .iter()
            .map(|spec| {
                let part = ends.carried(spec.id, &end.coflows);
                // Times are counted from the run's start, as a simulation counts them.
                let done = ends.finished(spec.id).map(|t| Time(t.since(start).0));
                received = received.saturating_add(if done.is_some() {
                    spec.bytes()
                } else {
                    part.received
                });
                CoflowRecord {
                    lost: ends.lost(spec.id),
                    ..CoflowRecord::new(spec, topology, done, part.ocs_share)
                }
            })
            .collect();
        let of = ResultNames {
            mechanism: self.mechanism.name(),
            topology: &topology.name,
            policy: &end.policy.name,
            workload: &workload.name,
        };
        let counted = FabricCounts { sent_again: Some(self.traffic.sent_again()), ..end.into() };
        RunResult {
            congestion: self.plan.run.congestion.clone(),
            zero: Some(start),
            tampered: end.tampered.clone().map(|t| since(t, start)),
            utilisation: Some(self.live.handle.utilisation(start).1),
            ..RunResult::new(of, records, counted, received)
        }
    }
}

/// By the run's clock, which begins with its first coflow.
fn since(t: Tampered, start: Time) -> Tampered {
    let own = |at: Time| Time(at.since(start).0);
    Tampered { from: own(t.from), until: own(t.until), ..t }
}

/// What the controller hears about the traffic. A coflow that broke gets no more circuits.
fn for_the_controller(e: &TrafficEvent) -> Event {
    match e {
        TrafficEvent::FlowFinished { coflow, flow, bytes, .. } => {
            Event::FlowFinished { id: *coflow, flow: *flow, bytes: *bytes }
        }
        TrafficEvent::Finished { coflow, at } => Event::CoflowFinished { id: *coflow, at: *at },
        TrafficEvent::Failed { coflow, why } => {
            tracing::warn!("coflow {} broke: {why}", coflow.0);
            Event::CoflowCancelled { id: *coflow, why: Some(why.clone()) }
        }
    }
}

/// What the controller hears before each cycle, and what it changes of the traffic.
struct Sent {
    traffic: Arc<Traffic>,
    names: NamesWatch,
    /// The recording, until its end has been reported.
    recorded: Option<Recorder>,
    clock: Clock,
    /// What of each flow counts as backlog, at most.
    buffer: Bytes,
}

impl Carrier for Sent {
    fn feed(&mut self) -> Vec<Event> {
        let progress = self.traffic.progress().into_iter();
        let progress = progress.map(|(id, received)| Event::CoflowProgress { id, received });
        let ended = self.recorded.take_if(|r| r.ended().is_some());
        let ended = ended.map(|r| Event::Trouble {
            what: Trouble::File(LogFile::Recording),
            why: r.ended().map(str::to_owned),
        });
        progress.chain(self.names.look(self.clock.now())).chain(ended).collect()
    }

    fn complete(&mut self, seen: &mut Observation) {
        let cut = seen.damage.iter().filter_map(|d| Some((d.cut?, d.what.clone())));
        self.traffic.cut_off(cut);
        self.traffic.unsent(self.buffer.saturating_sub(SEND_BUFFER), |(from, to), bytes| {
            seen.backlog.add(from, to, bytes.0)
        });
    }

    fn prioritise(&mut self, coflow: CoflowId, change: &PriorityChange) {
        if let Err(e) = self.traffic.prioritise(coflow, change) {
            tracing::warn!("the priorities of coflow {}: {e}", coflow.0);
        }
    }
}

/// Looks now and then whether the names of our namespaces still lead to them, and whether the note
/// is there. Without its name a namespace works on, but `ip netns` and the tools that use it no
/// longer find it; without the note our own commands do not.
struct NamesWatch {
    names: Vec<NamespaceName>,
    note: NoteFiles,
    next: Time,
    /// What was said last.
    told: Option<String>,
}

impl NamesWatch {
    /// One `stat` a name.
    const EVERY: Span = Span::secs(1);

    fn look(&mut self, now: Time) -> Option<Event> {
        if now < self.next {
            return None;
        }
        self.next = now + Self::EVERY;
        let lost: Vec<&str> =
            self.names.iter().filter(|n| !n.stands()).map(|n| n.name.as_str()).collect();
        let gone = |what: String, then: &str| {
            format!("{what} was removed while in use, or something was mounted over it; {then}")
        };
        let names = (!lost.is_empty())
            .then(|| gone(lost.join(", "), "the node works on, without its name"));
        let note = (!self.note.stand()).then(|| {
            let stop = format!("stop it by SIGTERM to process {}", std::process::id());
            gone(
                self.note.directory().display().to_string(),
                &format!("`ps`, `stop` and `exec` do not find the network: {stop}"),
            )
        });
        let why = names.into_iter().chain(note).reduce(|a, b| format!("{a}; {b}"));
        if why == self.told {
            return None;
        }
        self.told.clone_from(&why);
        Some(Event::Trouble { what: Trouble::Names, why })
    }
}

fn check_congestion(name: &str) -> Result<(), StartError> {
    features::check_congestion(name).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => {
            let available = features::congestion_controls().join(", ");
            StartError::Congestion {
                name: name.into(),
                why: "the kernel has none of this name".into(),
                available,
            }
        }
        _ => StartError::Kernel("try the TCP congestion control", e),
    })
}
