//! An evaluation on the emulated network of this machine, beside virtual time: the same jobs on the
//! same network, smaller and faster.
//!
//! No machine really carries 64 hosts of 1 Gb/s. So rates are divided by one number, times by
//! another, and bytes by both: a flow then takes a part of its time, and everything else is in
//! proportion. What is measured is multiplied back, so that it compares with the paper's.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::broadcast::Receiver;

use super::hops::Hops;
use super::measure::Measure;
use super::runs::{ExperimentProgress, Measures, Outcomes, SystemRun, outcome, simulated};
use super::setting::{ExperimentSetting, SettingWork, System};
use super::{Experiment, Size};
use crate::config::Select;
use crate::control::record::{Record, Snapshot};
use crate::kernel::Mechanism;
use crate::kernel::ownership::Owned;
use crate::placement::Policy;
use crate::runtime::emulation::{Emulation, EmulationOptions};
use crate::runtime::jobs::emulated::Emulated;
use crate::runtime::jobs::live::{self, JobsOutcome as Ended};
use crate::runtime::jobs::report::JobsResult;
use crate::runtime::jobs::simulate::{JobRunOptions, SimulatedJobs};
use crate::runtime::report::{FabricCounts, ResultNames, RunResult};
use crate::scheduler::spec::JobPolicy;
use crate::topology::{Core, Framing, Topology};
use crate::units::{BitRate, Bytes};
use crate::workload::jobs::JobList;

/// How long the counters of switches may take to be read; they are read once a second.
const PATIENCE: Duration = Duration::from_secs(15);

/// What a queue of Mininet's links holds, on which the paper measured: a thousand packets. TCP
/// begins with ten packets a flow however small the flow is made, so that shorter queues lose some
/// where many flows come to one host, and these flows wait for timeouts.
const QUEUE: Bytes = Bytes(1_500_000);

/// By how much the emulated network is slower and its jobs are shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Slower {
    /// Rates are divided by this.
    pub rates: u64,
    /// Times are divided by this, and bytes by both.
    pub times: u64,
}

impl Default for Slower {
    fn default() -> Self {
        Self { rates: 50, times: 10 }
    }
}

impl Slower {
    /// A network of slower links. Its frames have headers, as the emulated ones do, and its queues
    /// are as long as Mininet's unless it says.
    fn network(self, t: &Topology) -> Topology {
        let slow = |r: &mut BitRate| r.0 = r.0.div_ceil(self.rates);
        let mut t = t.clone();
        t.framing = Framing::default();
        t.racks.iter_mut().for_each(|r| slow(&mut r.uplink));
        t.hosts.iter_mut().for_each(|h| slow(&mut h.nic));
        [&mut t.links.nic, &mut t.links.uplink]
            .into_iter()
            .chain(&mut t.links.cables)
            .for_each(|l| _ = l.buffer.get_or_insert(QUEUE));
        if let Core::Graph(g) = &mut t.eps.core {
            g.cables.iter_mut().for_each(|c| slow(&mut c.rate));
            g.switches.iter_mut().filter_map(|s| s.rate.as_mut()).for_each(slow);
        }
        t
    }

    fn jobs(self, list: JobList) -> JobList {
        Select { scale: self.rates * self.times, time_scale: self.times, ..Select::default() }
            .of(list, 0)
    }

    /// A policy whose own times are in proportion, too, but for Yarn's heartbeat of a second. TCP's
    /// shortest timeout is not: packets have their full size, so that the first ten of each flow
    /// wait longer for a slower link, and a short timeout sends them again meanwhile.
    fn policy(self, of: &JobPolicy, seed: u64) -> JobPolicy {
        let mut p = of.clone();
        let c = &mut p.placement.common;
        c.seed = seed;
        for time in [&mut c.wait.0, &mut c.wait.1, &mut c.patience] {
            time.0 /= self.times;
        }
        match &mut p.placement.policy {
            Policy::Pna(options) => options.retry.0 /= self.times,
            Policy::ShuffleWatcher(options) => options.busy.0 /= self.times,
            _ => {}
        }
        p
    }

    /// What was measured, at the size of the paper.
    fn back(self, outcome: Measures) -> Measures {
        let factor = |m: Measure| match m {
            Measure::ShuffleCost => self.rates * self.times,
            Measure::Throughput => self.rates,
            time if time.is_time() => self.times,
            _ => 1,
        };
        // Jobs of 100 MB and more are large ones in the paper's size only.
        let holds = |m: &Measure| {
            self.rates * self.times == 1 || !matches!(m, Measure::SmallJct | Measure::LargeJct)
        };
        outcome
            .into_iter()
            .filter(|(m, _)| holds(m))
            .map(|(m, v)| (m, v * factor(m) as f64))
            .collect()
    }
}

/// Where and how the network is emulated.
#[derive(Clone, Debug)]
pub struct EmulationSetup {
    /// The fabric's name, and the folder of running fabrics.
    pub options: EmulationOptions,
    /// The scale.
    pub slower: Slower,
}

/// What both ways of running gave, by setting, system and repetition.
#[derive(Clone, Debug, PartialEq)]
pub struct Both {
    /// On the emulated network.
    pub live: Outcomes,
    /// In virtual time.
    pub simulated: Outcomes,
    /// The mechanism of the emulation.
    pub mechanism: &'static str,
}

/// A measure of a system on a setting, in the mean of its repetitions, both ways.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveAndSimulated {
    /// The setting.
    pub setting: &'static str,
    /// The system.
    pub system: &'static str,
    /// What is measured.
    pub measure: Measure,
    /// In virtual time.
    pub simulated: f64,
    /// On the emulated network.
    pub live: f64,
    /// How much more that is, in per cent.
    pub more_percent: f64,
}

impl Both {
    /// Everything that both ways measured, system after system.
    pub fn pairs(&self, e: &Experiment) -> Vec<LiveAndSimulated> {
        let of = |setting, system, measure| {
            let mean = |o: &Outcomes| {
                crate::runtime::statistics::mean(&o.values(setting, system, measure))
            };
            let (simulated, live) = (mean(&self.simulated), mean(&self.live));
            let more_percent =
                if simulated == 0.0 { 0.0 } else { 100.0 * (live / simulated - 1.0) };
            LiveAndSimulated { setting, system, measure, simulated, live, more_percent }
        };
        let systems =
            e.settings.iter().flat_map(|s| s.systems.iter().map(move |y| (s.name, y.name)));
        let shown = [Measure::MeanJct, Measure::RouteLength, Measure::ShuffleCost];
        let was_run = |s, y| self.live.of(s, y).iter().any(Option::is_some);
        systems
            .filter(|&(s, y)| was_run(s, y))
            .flat_map(|(s, y)| shown.map(|m| of(s, y, m)))
            .collect()
    }
}

/// Runs every system on every setting for every seed: in virtual time, then on a network that is
/// built for that run.
///
/// # Errors
/// The first run that failed: which, and why.
pub fn run(
    e: &Experiment,
    size: Size,
    place: &EmulationSetup,
    stop: &AtomicBool,
    watch: &dyn Fn(ExperimentProgress),
) -> Result<Both, String> {
    if let Some(s) = e.settings.iter().find(|s| !matches!(s.work, SettingWork::Run)) {
        return Err(format!(
            "{}: no jobs run there, so nothing can be run on an emulated network",
            s.name
        ));
    }
    let pairs: Vec<(&ExperimentSetting, &System)> =
        e.settings.iter().flat_map(|s| s.systems.iter().map(move |y| (s, y))).collect();
    let total = pairs.len() * size.repeats;
    let (mut live, mut simulated): (Vec<SystemRun>, Vec<SystemRun>) = (vec![], vec![]);
    for k in 0..total {
        let ((setting, system), seed) =
            (pairs[k % pairs.len()], size.seed + (k / pairs.len()) as u64);
        let (of, began) = ((setting.name, system.name), Instant::now());
        let both = if stop.load(Relaxed) { None } else { play(setting, system, seed, place, stop) }
            .transpose();
        let both =
            both.map_err(|why| format!("{}, {}, seed {seed}: {why}", setting.name, system.name))?;
        let (a, b) = both.unzip();
        simulated.push((of, a));
        live.push((of, b));
        watch(ExperimentProgress {
            done: (k + 1, total),
            last: (setting.name, system.name, seed),
            took: began.elapsed().as_secs_f64(),
        });
    }
    let mechanism = place.options.mechanism.unwrap_or_else(Mechanism::best).name();
    Ok(Both {
        live: Outcomes::new(size, live),
        simulated: Outcomes::new(size, simulated),
        mechanism,
    })
}

/// One run in virtual time, and on the emulated network; `None` if it was stopped.
fn play(
    setting: &ExperimentSetting,
    system: &System,
    seed: u64,
    place: &EmulationSetup,
    stop: &AtomicBool,
) -> Option<Result<(Measures, Measures), String>> {
    let slower = place.slower;
    let (topology, jobs) =
        (Arc::new(slower.network(&setting.topology)), slower.jobs(setting.load.draw(seed)));
    let jobs_by = slower.policy(&system.jobs_by, seed);
    let ask = SimulatedJobs {
        topology: &topology,
        plan: &system.plan,
        jobs_by: &jobs_by,
        jobs: &jobs,
        failures: &[],
        faults: &[],
        until: None,
    };
    let course = JobRunOptions { stop: Some(stop), ..JobRunOptions::default() };
    let both = simulated(&ask, &course, setting.load.window)
        .and_then(|s| Ok((s, emulated(&ask, &topology, setting, place, stop)?)));
    let stopped = stop.load(Relaxed);
    match both {
        Ok((simulated, live)) => {
            (!stopped).then(|| Ok((slower.back(simulated), slower.back(live))))
        }
        Err(why) => (!stopped).then_some(Err(why)),
    }
}

fn emulated(
    ask: &SimulatedJobs,
    topology: &Arc<Topology>,
    setting: &ExperimentSetting,
    place: &EmulationSetup,
    stop: &AtomicBool,
) -> Result<Measures, String> {
    let o = &place.options;
    let owned = Owned::take(&o.base, &o.name).map_err(|e| e.to_string())?;
    let e = Emulation::start(owned, topology.clone(), ask.plan.clone(), o, None)
        .map_err(|e| e.to_string())?;
    let mut events = e.live.handle.events();
    let mut ways = Hops::new(topology).ok_or("the network has no graph of switches")?;
    let began = std::cell::RefCell::new(vec![]);
    let mut note = |at, coflow: &_| began.borrow_mut().push((at, Clone::clone(coflow)));
    let mut network = Emulated::new(&e, &mut note);
    let live = live::LiveJobs {
        topology,
        jobs_by: ask.jobs_by,
        elephant: ask.plan.policy.elephant_threshold,
        jobs: ask.jobs,
        failures: &[],
    };
    let mut missed = Ok(());
    let mut hear = |ways: &mut Hops| {
        began.borrow_mut().drain(..).for_each(|(at, c)| ways.begins(at, &c));
        let heard = listen(&mut events, |r| ways.record(r));
        missed = std::mem::replace(&mut missed, Ok(())).and(heard);
    };
    let ended = live::run(&live, None, &mut network, stop, &mut |_, _| hear(&mut ways))?;
    if let Some(why) = &ended.broken {
        return Err(why.clone());
    }
    if stop.load(Relaxed) {
        return Ok(Measures::new());
    }
    let counted = counted(&e)?;
    hear(&mut ways);
    missed?;
    let mut out =
        outcome(&result(ask, &ended, &e), ask.jobs, topology, setting.load.window, Some(&ways));
    out.extend(
        (ways.between() > 0)
            .then(|| (Measure::CountedCost, counted as f64 / ways.between() as f64)),
    );
    Ok(out)
}

/// Takes the lines of the controller's log that there are.
fn listen(events: &mut Receiver<Arc<Record>>, mut take: impl FnMut(&Record)) -> Result<(), String> {
    use tokio::sync::broadcast::error::TryRecvError;
    loop {
        match events.try_recv() {
            Ok(record) => take(&record),
            Err(TryRecvError::Lagged(n)) => {
                return Err(format!("{n} lines of the event log came too fast to be read"));
            }
            Err(TryRecvError::Empty | TryRecvError::Closed) => return Ok(()),
        }
    }
}

/// Bytes that left all switches of a network that carries nothing any more.
fn counted(e: &Emulation) -> Result<u64, String> {
    let (now, deadline) = (e.clock.now(), Instant::now() + PATIENCE);
    let sum = |s: &Snapshot| {
        let seen = s.switches.as_ref().filter(|seen| seen.at > now)?;
        Some(seen.switches.iter().flat_map(|s| &s.ports).map(|p| p.bytes).sum())
    };
    loop {
        if let Some(bytes) = sum(&e.live.handle.snapshot()) {
            return Ok(bytes);
        }
        if Instant::now() > deadline {
            return Err(format!(
                "the counters of the switches were not read within {} s",
                PATIENCE.as_secs()
            ));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What the scheduler says of a run whose network is measured elsewhere.
fn result(ask: &SimulatedJobs, ended: &Ended, e: &Emulation) -> JobsResult {
    let policy = &ask.plan.policy.name;
    let names = ResultNames {
        mechanism: e.mechanism.name(),
        topology: &ask.topology.name,
        policy,
        workload: &ask.jobs.name,
    };
    let network = RunResult::new(
        names,
        vec![],
        FabricCounts { ended: ended.end.now, ..FabricCounts::default() },
        Bytes::ZERO,
    );
    JobsResult::new(ended.end.clone(), &ended.timeline, ask.topology, "host", network)
}

/// Options for the networks of an experiment, whose name is this process's own.
pub fn options(base: PathBuf, mechanism: Option<Mechanism>) -> EmulationOptions {
    EmulationOptions {
        name: format!("experiment{}", std::process::id()),
        mechanism,
        base,
        attach: None,
        patience: None,
    }
}
