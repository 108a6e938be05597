//! PushBox's evaluation (TPDS 2022, sections 4, 6 and 7): a testbed of nine machines, and twenty
//! machines on which Facebook's coflows are jobs, against Hadoop's Fair Scheduler with delay
//! scheduling, ShuffleWatcher and NEAT.

use std::sync::Arc;

use super::Size;
use super::claim::{Claim, ClaimSide, Printed};
use super::runs::Measure::{
    self, Decision, LargeJct, MeanJct, P95Jct, P99Jct, SmallJct, Utilisation,
};
use super::setting::{
    ExperimentSetting, JobSource, SettingWork, System, TRACE_JOBS, electrical, network,
};
use crate::coflows::network::NetworkKind::{self, Fifo, MaxMin, Priority};
use crate::placement::cluster::Cluster;
use crate::placement::policy::{FlowGranularity, ReduceStart};
use crate::placement::pushbox::PushBoxOptions;
use crate::placement::pushbox::estimate::RackLocal;
use crate::placement::{Kind, Policy};
use crate::scheduler::queues::JobOrder;
use crate::scheduler::state::Grain;
use crate::topology::Topology;
use crate::units::{BitRate, Span};
use crate::workload::coflow_benchmark::Trace;
use crate::workload::synth_jobs::Mix;

const HADOOP: &str = "Hadoop";
const WATCHER: &str = "ShuffleWatcher";
const NEAT: &str = "NEAT";
const PUSHBOX: &str = "PushBox";
/// Hadoop as it is: its coflows share max-min, whatever the order of its jobs.
const UNORDERED: &str = "Hadoop, max-min";
/// The other baselines as they are, whatever the order of jobs.
const WATCHER_AS_IT_IS: &str = "ShuffleWatcher, max-min";
const NEAT_AS_IT_IS: &str = "NEAT, priority";
/// Why nothing can be said against ShuffleWatcher.
const WATCHER_UNTOLD: &str = "how ShuffleWatcher chooses among machines that are no racks is not printed, and no rate of tasks brings it 29 % \
                              before Hadoop, as figure 9a implies";
/// PushBox as shipped, with what comes from the same rack counted as all else, though the network
/// between racks is narrow.
const RACK_COUNTS: &str = "PushBox, rack_local: never";
/// PushBox without one of its parts: global priority, random selection, no hinder test, no wild
/// card.
const ABLATIONS: [&str; 4] = ["PushBox-GP", "PushBox-RS", "PushBox-H", "PushBox-W"];
/// PushBox, and the factor by which it takes inputs to be larger or smaller than they are, at most.
const MISJUDGED: [(&str, u32); 2] = [("PushBox-E2", 2), ("PushBox-E4", 4)];

const FAIR: &str = "Fair";
const FIFO: &str = "FIFO";
const QUEUES: &str = "multi-queue";
/// Time in which the testbed's queries and small jobs come, beside the two sorts that are there
/// from the beginning.
const QUERIES: Span = Span::secs(120);
const TESTBED: [(&str, Mix, usize); 2] = [("W1", Mix::PushboxW1, 30), ("W2", Mix::PushboxW2, 29)];
/// Name, value, and whether a quick run has it.
type SweepPoint = (&'static str, u64, bool);
const FAN_IN: [SweepPoint; 6] = [
    ("fan-in 1:1", 1, true),
    ("fan-in 2:1", 2, false),
    ("fan-in 3:1", 3, false),
    ("fan-in 4:1", 4, false),
    ("fan-in 5:1", 5, false),
    ("fan-in 6:1", 6, true),
];
const MACHINES: [SweepPoint; 5] = [
    ("10 machines", 10, true),
    ("40 machines", 40, false),
    ("60 machines", 60, true),
    ("80 machines", 80, false),
    ("110 machines", 110, true),
];
const SLOTS: [SweepPoint; 3] =
    [("8 slots", 8, true), ("12 slots", 12, true), ("16 slots", 16, false)];
const LOADS: [SweepPoint; 3] =
    [("load x 0.5", 50, true), ("load x 1.5", 150, false), ("load x 2", 200, true)];
/// Tasks that fetch on each host (figure 3a).
const INPUT_TASKS: [&str; 8] =
    ["m = 1", "m = 2", "m = 3", "m = 4", "m = 5", "m = 6", "m = 7", "m = 8"];
const PRIORITIES: &str = "strict priorities";
/// Coflows on their way at a decision (figure 14b).
const DECISIONS: [(&str, u32); 3] =
    [("400 coflows", 400), ("800 coflows", 800), ("1400 coflows", 1400)];

/// Racks of `hosts` hosts with `slots` slots each, 10 Gb/s, and what a rack's link to the others
/// carries.
fn machines(name: &str, (racks, hosts): (usize, u32), slots: u32, core: BitRate) -> Topology {
    network(
        name,
        &Cluster { racks, hosts, slots, nic: BitRate::mbit(10_000), core, ..Cluster::corral() },
    )
}

/// One switch that carries all: a machine a rack.
fn flat(machines_: u64, slots: u32) -> Topology {
    machines("pushbox", (machines_ as usize, 1), slots, BitRate::mbit(10_000))
}

/// A system on a network without circuits, where each task has connections of its own (section 4);
/// tasks receive when `slowstart` per cent of the maps are done.
fn on(name: &'static str, kind: Kind, net: NetworkKind, slowstart: u32, order: JobOrder) -> System {
    let mut s = electrical(name, kind, net);
    s.jobs_by.settings.grain = Grain::Host;
    s.jobs_by.settings.order = order;
    s.jobs_by.settings.flows = FlowGranularity::Task;
    s.jobs_by.placement.common.slowstart = slowstart;
    s
}

/// The four of a comparison; the network of Hadoop and ShuffleWatcher, and that of NEAT.
fn four((plain, neat): (NetworkKind, NetworkKind), slowstart: u32, order: JobOrder) -> Vec<System> {
    vec![
        on(HADOOP, Kind::Delay, plain, slowstart, order),
        on(WATCHER, Kind::ShuffleWatcher, plain, slowstart, order),
        on(NEAT, Kind::Neat, neat, slowstart, order),
        on(PUSHBOX, Kind::Pushbox, Priority, slowstart, order),
    ]
}

fn fair(slowstart: u32) -> Vec<System> {
    four((MaxMin, Priority), slowstart, JobOrder::Fair)
}

/// PushBox without one of its parts, and with errors of foresight.
fn dissected(slowstart: u32) -> impl Iterator<Item = System> {
    let usual = PushBoxOptions::default();
    let parts = [
        PushBoxOptions { global_priority: true, ..usual },
        PushBoxOptions { random_task: true, ..usual },
        PushBoxOptions { no_hinder: true, ..usual },
        PushBoxOptions { no_wild_card: true, ..usual },
    ];
    let misjudged = MISJUDGED
        .into_iter()
        .map(move |(name, f)| (name, PushBoxOptions { input_error: f, ..usual }));
    ABLATIONS
        .into_iter()
        .zip(parts)
        .chain(misjudged)
        .map(move |(name, options)| with(name, options, slowstart))
}

/// PushBox with other options.
fn with(name: &'static str, options: PushBoxOptions, slowstart: u32) -> System {
    let mut s = on(name, Kind::Pushbox, Priority, slowstart, JobOrder::Fair);
    s.jobs_by.placement.policy = Policy::Pushbox(options);
    s
}

/// What is run; without the trace, Facebook's published classes.
pub fn settings(size: Size, trace: Option<&Arc<Trace>>) -> Vec<ExperimentSetting> {
    let setting =
        |name: &'static str, about: String, topology: Topology, systems, load| ExperimentSetting {
            name,
            about,
            topology: Arc::new(topology),
            systems,
            load,
            work: SettingWork::Run,
        };
    // The trace's arrivals are those of its shuffles: reduce tasks wait for all maps.
    let late = 100;
    let load = JobSource {
        trace: trace.cloned(),
        ..JobSource::new(Mix::FacebookJobs, TRACE_JOBS, Span::ZERO, 0, size)
    };
    let jobs = || load.clone();
    let mut all = Vec::new();
    for (name, mix, n) in TESTBED {
        let about = format!(
            "9 machines of 10 slots at one switch, 10 Gb/s; two sorts at once, the other jobs within {QUERIES}"
        );
        let load = JobSource { first: 2, ..JobSource::new(mix, n, QUERIES, 0, size) };
        let mut systems = fair(5);
        // Hadoop 3's application master ramps reduces up; PushBox is about which tasks hold slots.
        systems
            .iter_mut()
            .filter(|s| s.name != PUSHBOX)
            .for_each(|s| s.jobs_by.settings.reduces = ReduceStart::RampUp);
        all.push(setting(name, about, flat(9, 10), systems, load));
    }
    let about = "20 machines of 20 slots at one switch, 10 Gb/s; Facebook's coflows as jobs";
    all.push(setting(
        FAIR,
        format!("{about}, one Fair queue"),
        flat(20, 20),
        fair(late).into_iter().chain(dissected(late)).collect(),
        jobs(),
    ));
    let mut ordered = four((Fifo, Fifo), late, JobOrder::Fifo);
    let as_they_are = [
        (UNORDERED, Kind::Delay, MaxMin),
        (WATCHER_AS_IT_IS, Kind::ShuffleWatcher, MaxMin),
        (NEAT_AS_IT_IS, Kind::Neat, Priority),
    ];
    ordered.extend(as_they_are.map(|(name, kind, net)| on(name, kind, net, late, JobOrder::Fifo)));
    all.push(setting(
        FIFO,
        "the same, jobs and, but for the last three, coflows as they came".into(),
        flat(20, 20),
        ordered,
        jobs(),
    ));
    let mut queues = fair(late);
    queues
        .iter_mut()
        .for_each(|s| s.jobs_by.settings.orders = vec![JobOrder::Fifo, JobOrder::Fair]);
    let about_queues =
        "the same, jobs below 100 MB in a FIFO queue, the others in a Fair one".into();
    all.push(setting(
        QUEUES,
        about_queues,
        flat(20, 20),
        queues,
        JobSource { small_apart: true, ..jobs() },
    ));
    for (name, ratio, _) in points(&FAN_IN, size) {
        let core = BitRate(16 * BitRate::mbit(10_000).0 / ratio);
        let about = "64 machines of 20 slots in 4 clusters; the same jobs, one Fair queue".into();
        let mut systems = fair(late);
        let paper = PushBoxOptions { rack_local: RackLocal::Auto, ..PushBoxOptions::default() };
        systems
            .iter_mut()
            .filter(|s| s.name == PUSHBOX)
            .for_each(|s| *s = with(PUSHBOX, paper, late));
        systems.push(with(RACK_COUNTS, PushBoxOptions::default(), late));
        all.push(setting(name, about, machines("pushbox-64", (4, 16), 20, core), systems, jobs()));
    }
    for (name, n, _) in points(&MACHINES, size) {
        all.push(setting(
            name,
            "as Fair, with other machines".into(),
            flat(n, 20),
            fair(late),
            jobs(),
        ));
    }
    for (name, slots, _) in points(&SLOTS, size) {
        all.push(setting(
            name,
            "as Fair, with other slots".into(),
            flat(20, slots as u32),
            fair(late),
            jobs(),
        ));
    }
    for (name, percent, _) in points(&LOADS, size) {
        let load = JobSource { bytes_percent: percent, ..jobs() };
        all.push(setting(
            name,
            "as Fair; bytes and computing are changed by this factor".into(),
            flat(20, 20),
            fair(late),
            load,
        ));
    }
    for (k, name) in INPUT_TASKS.into_iter().enumerate() {
        let about = "20 machines; on each m tasks fetch without end, each from 5 machines at random, by random strict priority".into();
        let one = on(PRIORITIES, Kind::Fair, Priority, late, JobOrder::Fair);
        let work = SettingWork::Concurrency(k as u32 + 1);
        all.push(ExperimentSetting {
            work,
            ..setting(name, about, flat(20, 20), vec![one], jobs())
        });
    }
    for (name, coflows) in DECISIONS {
        let about = "20 machines, on which more than m tasks fetch; this number of jobs has a coflow on its way, and as many wait".into();
        let one = on(PUSHBOX, Kind::Pushbox, Priority, late, JobOrder::Fair);
        all.push(ExperimentSetting {
            work: SettingWork::Decide(coflows),
            ..setting(name, about, flat(20, 20), vec![one], jobs())
        });
    }
    all
}

/// The points of a sweep: all, or those of a quick run.
fn points(sweep: &'static [SweepPoint], size: Size) -> impl Iterator<Item = SweepPoint> {
    sweep.iter().copied().filter(move |p| !size.thin || p.2)
}

/// How much less PushBox has than Hadoop, ShuffleWatcher and NEAT.
fn three(
    measure: Measure,
    setting: &'static str,
    printed: [f64; 3],
    source: &'static str,
) -> impl Iterator<Item = Claim> {
    [HADOOP, WATCHER, NEAT]
        .into_iter()
        .zip(printed)
        .map(move |(b, p)| Claim::less(measure, (setting, PUSHBOX), b, Printed::About(p), source))
}

/// The same over a sweep, of which the paper prints from where to where it goes: mean and 99th
/// percentile.
fn sweep(
    points: &[SweepPoint],
    size: Size,
    printed: [[(f64, f64); 3]; 2],
    sources: [&'static str; 2],
) -> Vec<Claim> {
    let mut all = Vec::new();
    for &(setting, _, _) in points.iter().filter(|p| !size.thin || p.2) {
        for ((measure, of), source) in [MeanJct, P99Jct].into_iter().zip(printed).zip(sources) {
            for (base, (low, high)) in [HADOOP, WATCHER, NEAT].into_iter().zip(of) {
                all.push(Claim::less(
                    measure,
                    (setting, PUSHBOX),
                    base,
                    Printed::Between(low, high),
                    source,
                ));
            }
        }
    }
    all
}

/// What the paper says of it.
pub fn claims(size: Size) -> Vec<Claim> {
    let (about, worse) = (Printed::About, Printed::AtMost(0.0));
    let mut all = vec![
        Claim {
            calibrated: true,
            ..Claim::less(MeanJct, (FAIR, NEAT), HADOOP, about(11.3), "implied, fig. 9a")
        },
        Claim::less(MeanJct, (FAIR, WATCHER), HADOOP, about(29.2), "implied, fig. 9a"),
        Claim::less(MeanJct, ("W1", PUSHBOX), HADOOP, about(49.8), "fig. 6"),
        Claim::less(P95Jct, ("W1", PUSHBOX), HADOOP, about(21.1), "fig. 6"),
        Claim::less(MeanJct, ("W2", PUSHBOX), HADOOP, about(32.6), "fig. 6"),
        Claim::less(P95Jct, ("W2", PUSHBOX), HADOOP, about(18.8), "fig. 6"),
    ];
    all.extend(three(MeanJct, FAIR, [57.5, 40.0, 52.1], "fig. 9a"));
    all.extend(three(P95Jct, FAIR, [87.4, 39.5, 65.3], "fig. 9a"));
    all.extend(three(MeanJct, FIFO, [24.7, 2.7, 18.7], "fig. 9b"));
    all.extend(three(P95Jct, FIFO, [46.8, 19.7, 38.1], "fig. 9b"));
    // "Hadoop is the best algorithm", and the others are better than PushBox too, as long as their
    // coflows do not obey.
    all.extend(
        [UNORDERED, WATCHER_AS_IT_IS, NEAT_AS_IT_IS]
            .map(|s| Claim::less(MeanJct, (FIFO, s), PUSHBOX, Printed::AtLeast(0.0), "fig. 9b")),
    );
    for base in [WATCHER_AS_IT_IS, NEAT_AS_IT_IS] {
        all.push(Claim::less(MeanJct, (FIFO, UNORDERED), base, Printed::AtLeast(0.0), "fig. 9b"));
    }
    all.extend(three(MeanJct, QUEUES, [21.4, 19.2, 21.2], "fig. 9c"));
    all.extend(three(P99Jct, QUEUES, [33.4, 30.3, 33.2], "fig. 9c"));
    let wide =
        [[(31.7, 65.5), (23.7, 48.8), (21.8, 56.6)], [(30.1, 50.9), (30.3, 47.0), (29.4, 51.9)]];
    all.extend(sweep(&FAN_IN, size, wide, ["fig. 10a", "fig. 10b"]));
    // The upper ends of figure 10: the narrower the network, the more PushBox gains.
    for (measure, printed) in [(MeanJct, 56.6), (P99Jct, 51.9)] {
        all.push(Claim::less(measure, ("fan-in 6:1", PUSHBOX), NEAT, about(printed), "abstract"));
    }
    for base in [PUSHBOX, NEAT] {
        all.push(Claim::less(MeanJct, ("fan-in 6:1", RACK_COUNTS), base, None, "sec. 4"));
    }
    let more =
        [[(22.7, 67.0), (17.3, 43.0), (13.2, 57.9)], [(24.9, 66.2), (19.1, 57.9), (23.77, 63.0)]];
    all.extend(sweep(&MACHINES, size, more, ["fig. 11a", "fig. 11b"]));
    let slots =
        [[(31.3, 57.5), (22.9, 40.0), (21.7, 53.1)], [(4.5, 40.2), (6.9, 33.0), (4.9, 39.2)]];
    all.extend(sweep(&SLOTS, size, slots, ["fig. 12a", "fig. 12b"]));
    for system in [HADOOP, NEAT] {
        let twelve = Some(ClaimSide { setting: "12 slots", system });
        all.push(Claim {
            against: twelve,
            ..Claim::less(MeanJct, (FAIR, system), system, worse, "sec. 7.3")
        });
    }
    for base in [HADOOP, NEAT] {
        all.push(Claim::less(MeanJct, ("8 slots", WATCHER), base, worse, "sec. 7.3"));
    }
    let loads =
        [[(51.3, 64.9), (35.9, 41.5), (46.4, 58.7)], [(33.8, 67.0), (27.5, 56.3), (33.2, 66.8)]];
    all.extend(sweep(&LOADS, size, loads, ["fig. 13a", "fig. 13b"]));
    // The paper prints by how much a time grows without a part; here that is less than nothing.
    let grown = [(MeanJct, [9.9, 5.0, 7.1, 49.3]), (P95Jct, [11.1, 6.5, 44.8, 39.4])];
    let by_size = [(SmallJct, [15.3, 3.5, 36.3, 52.9]), (LargeJct, [6.7, 4.7, 9.4, 39.7])];
    for (measure, printed) in grown.into_iter().chain(by_size) {
        all.extend(
            ABLATIONS
                .into_iter()
                .zip(printed)
                .map(|(s, p)| Claim::less(measure, (FAIR, s), PUSHBOX, about(-p), "fig. 8")),
        );
    }
    for ((system, _), (mean, tail)) in MISJUDGED.into_iter().zip([(-13.8, -3.5), (-60.7, -24.3)]) {
        all.push(Claim::less(MeanJct, (FAIR, system), PUSHBOX, about(mean), "fig. 8d"));
        all.push(Claim::less(P95Jct, (FAIR, system), PUSHBOX, about(tail), "fig. 8d"));
    }
    for (k, setting) in INPUT_TASKS.into_iter().enumerate() {
        let printed = (k == 2).then_some(about(95.0));
        all.push(Claim::of(Utilisation, (setting, PRIORITIES), printed, "fig. 3a"));
    }
    // It prints 35 to 50.
    all.extend(DECISIONS.map(|(setting, _)| {
        Claim::of(Decision, (setting, PUSHBOX), Printed::AtMost(50.0), "fig. 14b")
    }));
    for c in all
        .iter_mut()
        .filter(|c| c.of.system == PUSHBOX && c.against.is_some_and(|b| b.system == WATCHER))
    {
        c.untold = Some(WATCHER_UNTOLD);
    }
    all
}
