//! JobPacker's evaluation (ICPP 2019, section 5): the simulated cluster and the GENI testbed,
//! against F-Hybrid, Corral and F-EPS.

use std::sync::Arc;

use super::Size;
use super::claim::{Claim, ClaimSide, Printed};
use super::runs::Measure::{Makespan, MedianAdHoc, MedianJct, MedianRecurring, OcsShare};
use super::setting::{ExperimentSetting, JobSource, SettingWork, System, network, system};
use crate::control::policy::SchedulerKind;
use crate::placement::cluster::{Cluster, ELEPHANT};
use crate::placement::jobpacker::aggregate::Aggregate;
use crate::placement::jobpacker::executor::JobPackerOptions;
use crate::placement::latency::hybrid::ShuffleModel;
use crate::placement::{Kind, Policy};
use crate::runtime::jobs::errors::Errors;
use crate::scheduler::state::Grain;
use crate::units::{BitRate, Bytes, Span};
use crate::workload::swim::SwimJob;
use crate::workload::synth_jobs::Mix;

const BATCH: &str = "batch";
const ONLINE: &str = "online";
const MIXED: &str = "mixed";
const SIZES: &str = "sizes 50 % off";
const LATE: &str = "half +-200 s";
const GENI: &str = "GENI batch";
const GENI_ONLINE: &str = "GENI online";
const GENI_MIXED: &str = "GENI mixed";
const PACKER: &str = "JobPacker";
/// With what ours does besides, as `policies/jobpacker-ours.yaml` has it.
const OURS: &str = "JobPacker, ours";
/// A change of options.
type OptionsChange = fn(&mut JobPackerOptions);

/// With T_e counted from all map racks together, and with one of the three things that are ours
/// ([`JobPackerOptions`]).
const VARIANTS: [(&str, OptionsChange); 4] = [
    ("JobPacker, T_e in total", |o| o.aggregate = Aggregate::Total),
    ("JobPacker, whole elephants", |o| o.aggregate = Aggregate::Whole),
    ("JobPacker, exact tasks", |o| o.exact_tasks = true),
    ("JobPacker, pairs that keep elephants", |o| o.keep_elephants = true),
];
/// The whole batch at once, and twenty sub-batches (figure 18); 5 elsewhere.
const BATCHES: [(&str, u32); 2] = [("JobPacker, B = 1", 1), ("JobPacker, B = 20", 20)];
/// Containers planned beyond the estimate, in per cent (figure 16); 100 elsewhere, where jobs are
/// mixed.
const SPARE: [(&str, u32); 2] = [("JobPacker, no spare", 0), ("JobPacker, twice spare", 200)];
/// Time between configurations of the OCS (figure 17); a second elsewhere.
const SLOW: &str = "JobPacker, every 3 s";
const FAST: &str = "JobPacker, every 100 ms";
const INTERVALS: [(&str, u64); 2] = [(SLOW, 3000), (FAST, 100)];

/// The slowstart, in per cent, and whether a quick run has it (figure 15); 70 elsewhere.
const SLOWSTART: [(&str, u32, bool); 5] = [
    ("JobPacker, slowstart 20", 20, true),
    ("JobPacker, slowstart 40", 40, false),
    ("JobPacker, slowstart 50", 50, true),
    ("JobPacker, slowstart 60", 60, false),
    ("JobPacker, slowstart 80", 80, true),
];
/// Points of the sweeps that quick runs leave out: sub-batches, spare containers in per cent,
/// milliseconds between configurations.
const MORE_BATCHES: [(&str, u32); 2] = [("JobPacker, B = 2", 2), ("JobPacker, B = 10", 10)];
const MORE_SPARE: [(&str, u32); 2] = [("JobPacker, half spare", 50), ("JobPacker, 1.5 spare", 150)];
const MORE_INTERVALS: [(&str, u64); 2] =
    [("JobPacker, every 500 ms", 500), ("JobPacker, every 2 s", 2000)];
/// Settings of the sweeps over errors that quick runs leave out (figure 14): per cent by which
/// shuffles are off, and of jobs that are late.
const MORE_SIZES: [(&str, u32); 4] = [
    ("sizes 10 % off", 10),
    ("sizes 20 % off", 20),
    ("sizes 30 % off", 30),
    ("sizes 40 % off", 40),
];
const MORE_LATE: [(&str, u32); 4] =
    [("10 % +-200 s", 10), ("20 % +-200 s", 20), ("30 % +-200 s", 30), ("40 % +-200 s", 40)];

/// Why the online rows against Corral cannot be told.
const ONLINE_CORRAL: &str = "Corral keeps nearly every job in a rack, where bytes take no time here, so that its jobs end as on an ideal network; what \
                             its jobs lost within racks or across them in the paper's simulator is not printed (docs/experiments/jobpacker.md)";

/// The testbed: ten virtual racks of ten slots, each a host of its own, since every task was
/// limited to 0.1 Gb/s.
fn geni() -> Cluster {
    let (task, core, ocs) = (BitRate::mbit(100), BitRate::mbit(100), BitRate::mbit(1_000));
    Cluster {
        racks: 10,
        hosts: 10,
        slots: 1,
        nic: task,
        core,
        ocs,
        elephant: Bytes(ELEPHANT.0 / 100),
        ..Cluster::jobpacker()
    }
}

/// A system with the settings of all runs (section 5.2): periodic matching with a delay of 10 ms, a
/// slowstart of 0.7.
fn on(name: &'static str, kind: Kind, interval: Span, elephant: Bytes) -> System {
    let circuits =
        if kind == Kind::FEps { SchedulerKind::EpsOnly } else { SchedulerKind::Bipartite };
    let mut s = system(name, kind, circuits, interval, elephant);
    s.jobs_by.placement.common.slowstart = 70;
    s
}

fn systems(elephant: Bytes) -> Vec<System> {
    let all = [
        ("F-Hybrid", Kind::Fair),
        ("Corral", Kind::Corral),
        ("F-EPS", Kind::FEps),
        (PACKER, Kind::Jobpacker),
    ];
    all.into_iter().map(|(name, kind)| on(name, kind, Span::secs(1), elephant)).collect()
}

/// JobPacker with another slowstart.
fn starts(name: &'static str, percent: u32) -> System {
    let mut s = packer(name, Span::secs(1), ELEPHANT, |_| ());
    s.jobs_by.placement.common.slowstart = percent;
    s
}

/// With all that is ours.
fn ours(o: &mut JobPackerOptions) {
    o.shuffle_model = ShuffleModel::Bottleneck;
    (o.aggregate, o.exact_tasks, o.keep_elephants) = (Aggregate::Whole, true, true);
}

/// JobPacker with other options.
fn packer(
    name: &'static str,
    interval: Span,
    elephant: Bytes,
    change: impl Fn(&mut JobPackerOptions),
) -> System {
    let mut s = on(name, Kind::Jobpacker, interval, elephant);
    if let Policy::Jobpacker(options) = &mut s.jobs_by.placement.policy {
        change(options);
    }
    s
}

/// The points of a sweep: those of a quick run, and the others.
fn points<T: Copy>(thin: bool, quick: &'static [T], more: &'static [T]) -> impl Iterator<Item = T> {
    quick.iter().chain(if thin { &[] } else { more }).copied()
}

/// What is run; with rows of a trace, the jobs are drawn from them.
pub fn settings(size: Size, rows: Option<&Arc<[SwimJob]>>) -> Vec<ExperimentSetting> {
    let mut all = simulated(size, rows);
    all.extend(on_geni(Size { free: size.free.on_testbed(), ..size }, rows));
    let second = Span::secs(1);
    for s in &mut all {
        let on_geni = [GENI, GENI_ONLINE, GENI_MIXED].contains(&s.name);
        let elephant = if on_geni { geni().elephant } else { ELEPHANT };
        let with = |name, change: OptionsChange| packer(name, second, elephant, change);
        if [BATCH, ONLINE, MIXED, GENI, GENI_ONLINE, GENI_MIXED].contains(&s.name) {
            s.systems.push(with(OURS, ours));
        }
        if [BATCH, ONLINE, GENI, GENI_ONLINE].contains(&s.name) {
            s.systems.extend(VARIANTS.map(|(name, change)| with(name, change)));
        }
        match s.name {
            BATCH => s.systems.extend(
                points(size.thin, &BATCHES, &MORE_BATCHES)
                    .map(|(name, b)| packer(name, second, elephant, |o| o.sub_batches = b)),
            ),
            ONLINE => {
                let every = |(name, ms)| packer(name, Span::millis(ms), elephant, |_| ());
                s.systems.extend(points(size.thin, &INTERVALS, &MORE_INTERVALS).map(every));
                let points = SLOWSTART.iter().filter(|p| !size.thin || p.2);
                s.systems.extend(points.map(|&(name, percent, _)| starts(name, percent)));
            }
            _ => {}
        }
        // Spare containers where some jobs are ad hoc (section 5.3).
        let spare = if [MIXED, GENI_MIXED].contains(&s.name) { 100 } else { 0 };
        for y in &mut s.systems {
            if let Policy::Jobpacker(options) = &mut y.jobs_by.placement.policy {
                options.over_provisioning = spare;
            }
        }
        if s.name == MIXED {
            let spared = points(size.thin, &SPARE, &MORE_SPARE);
            s.systems.extend(spared.map(|(name, more)| {
                packer(name, second, elephant, |o| o.over_provisioning = more)
            }));
        }
        if on_geni {
            // A task's limit is its host's.
            s.systems.iter_mut().for_each(|s| s.jobs_by.settings.grain = Grain::Host);
        }
    }
    all
}

fn load(
    jobs: usize,
    window: Span,
    recurring: u32,
    size: Size,
    rows: Option<&Arc<[SwimJob]>>,
) -> JobSource {
    JobSource {
        rows: rows.cloned(),
        ..JobSource::new(Mix::Jobpacker, jobs, window, recurring, size)
    }
}

fn simulated(size: Size, rows: Option<&Arc<[SwimJob]>>) -> Vec<ExperimentSetting> {
    let topology = Arc::new(network("jobpacker", &Cluster::jobpacker()));
    let setting = |name, about: &str, load: JobSource| ExperimentSetting {
        name,
        about: about.into(),
        topology: topology.clone(),
        systems: systems(ELEPHANT),
        load,
        work: SettingWork::Run,
    };
    let load = |window, recurring| load(1000, window, recurring, size, rows);
    let online = load(Span::secs(5400), 100);
    let sizes =
        JobSource { errors: Errors { shuffle_percent: 50, ..Errors::default() }, ..online.clone() };
    // A delay is a number of gaps of arrivals: where jobs come in less time, it shrinks with them.
    let delay = size.free.window(Span::secs(200));
    let late = JobSource {
        errors: Errors { delayed_percent: 50, delay, ..Errors::default() },
        ..online.clone()
    };
    let mut all = vec![
        setting(
            BATCH,
            "20 racks x 30 servers x 20 slots, 1000 jobs at once",
            load(Span::ZERO, 100),
        ),
        setting(ONLINE, "the same, in 90 minutes", online),
        setting(MIXED, "the same, half of the jobs ad hoc", load(Span::secs(5400), 50)),
        setting(SIZES, "online; shuffles of all jobs foreseen up to 50 % wrong", sizes.clone()),
        setting(
            LATE,
            "online; half of the jobs up to 200 s sooner or later than foreseen",
            late.clone(),
        ),
    ];
    // Baselines foresee no sizes, but Corral.
    let alone =
        |s: &mut ExperimentSetting| s.systems.retain(|y| [PACKER, "Corral"].contains(&y.name));
    let more = MORE_SIZES.iter().map(|&(name, shuffle_percent)| {
        let load =
            JobSource { errors: Errors { shuffle_percent, ..Errors::default() }, ..sizes.clone() };
        setting(name, "online; the same with smaller errors", load)
    });
    let later = MORE_LATE.iter().map(|&(name, delayed_percent)| {
        let load = JobSource {
            errors: Errors { delayed_percent, delay, ..Errors::default() },
            ..late.clone()
        };
        setting(name, "online; the same with fewer jobs", load)
    });
    if !size.thin {
        all.extend(more.chain(later).map(|mut s| {
            alone(&mut s);
            s
        }));
    }
    all
}

fn on_geni(size: Size, rows: Option<&Arc<[SwimJob]>>) -> Vec<ExperimentSetting> {
    let topology = Arc::new(network("geni", &geni()));
    let setting = |name, about: &str, window, recurring| {
        let systems = systems(geni().elephant);
        let load = JobSource { scale: 100, ..load(200, window, recurring, size, rows) };
        ExperimentSetting {
            name,
            about: about.into(),
            topology: topology.clone(),
            systems,
            load,
            work: SettingWork::Run,
        }
    };
    let about = "10 virtual racks x 10 slots of 0.1 Gb/s, 200 jobs at once, bytes / 100";
    vec![
        setting(GENI, about, Span::ZERO, 100),
        setting(GENI_ONLINE, "the same, in 20 minutes", Span::secs(1200), 100),
        setting(GENI_MIXED, "the same in 15 minutes, half of the jobs ad hoc", Span::secs(900), 50),
    ]
}

/// What the paper says of it.
pub fn claims() -> Vec<Claim> {
    let claim = |measure, setting, base, printed, source| {
        Claim::less(measure, (setting, PACKER), base, printed, source)
    };
    let share =
        |setting, system, printed, source| Claim::of(OcsShare, (setting, system), printed, source);
    let (about, same) = (Printed::About, Printed::Between(-5.0, 5.0));
    // JobPacker is within 5 % of F-EPS, and better than F-Hybrid by what is printed: so F-EPS is,
    // too.
    let slight = Printed::Between(-10.0, 10.0);
    let untold = |c: Claim| Claim { untold: Some(ONLINE_CORRAL), ..c };
    let implied =
        |c: Claim| Claim { of: ClaimSide { system: "F-EPS", ..c.of }, calibrated: true, ..c };
    vec![
        implied(claim(Makespan, BATCH, "F-Hybrid", about(47.0), "implied, fig. 8a")),
        implied(claim(MedianJct, ONLINE, "F-Hybrid", about(43.0), "implied, fig. 10a")),
        implied(claim(Makespan, GENI, "F-Hybrid", about(49.0), "implied, fig. 8b")),
        claim(Makespan, BATCH, "F-Hybrid", about(47.0), "fig. 8a"),
        claim(Makespan, BATCH, "Corral", about(29.0), "fig. 8a"),
        claim(Makespan, BATCH, "F-EPS", same, "fig. 8a"),
        share(BATCH, "JobPacker", Some(Printed::AtLeast(96.0)), "fig. 9a"),
        share(BATCH, "F-Hybrid", Some(about(0.8)), "fig. 9a"),
        share(BATCH, "Corral", Some(Printed::AtMost(23.0)), "fig. 9a"),
        claim(MedianJct, ONLINE, "F-Hybrid", about(43.0), "fig. 10a"),
        untold(claim(MedianJct, ONLINE, "Corral", about(28.0), "fig. 10a")),
        share(ONLINE, "JobPacker", None, "fig. 11a"),
        share(GENI, "JobPacker", Some(Printed::AtLeast(96.0)), "fig. 9b"),
        share(GENI_ONLINE, "JobPacker", None, "fig. 11b"),
        claim(MedianRecurring, MIXED, "F-Hybrid", about(40.0), "fig. 12a"),
        claim(MedianAdHoc, MIXED, "F-Hybrid", about(38.0), "fig. 12b"),
        untold(claim(MedianRecurring, MIXED, "Corral", about(24.0), "fig. 12a")),
        untold(claim(MedianAdHoc, MIXED, "Corral", about(25.0), "fig. 12b")),
        claim(MedianJct, SIZES, "F-Hybrid", about(33.0), "sec. 5.4.1"),
        untold(claim(MedianJct, SIZES, "Corral", about(25.0), "sec. 5.4.1")),
        claim(MedianJct, LATE, "F-Hybrid", about(23.0), "sec. 5.4.2"),
        untold(claim(MedianJct, LATE, "Corral", about(22.0), "sec. 5.4.2")),
        claim(Makespan, GENI, "F-Hybrid", about(49.0), "fig. 8b"),
        claim(Makespan, GENI, "Corral", about(27.0), "fig. 8b"),
        claim(Makespan, GENI, "F-EPS", same, "fig. 8b"),
        claim(MedianJct, GENI_ONLINE, "F-Hybrid", about(42.0), "fig. 10b"),
        claim(MedianJct, GENI_ONLINE, "Corral", about(27.0), "fig. 10b"),
        claim(MedianRecurring, GENI_MIXED, "F-Hybrid", about(39.0), "fig. 13a"),
        claim(MedianAdHoc, GENI_MIXED, "F-Hybrid", about(37.0), "fig. 13b"),
        claim(MedianRecurring, GENI_MIXED, "Corral", about(26.0), "fig. 13a"),
        claim(MedianAdHoc, GENI_MIXED, "Corral", about(29.0), "fig. 13b"),
        // "Only slightly" and "minimal" are taken as 10 %.
        claim(Makespan, BATCH, BATCHES[0].0, Printed::AtLeast(0.0), "fig. 18"),
        claim(Makespan, BATCH, BATCHES[1].0, slight, "fig. 18"),
        claim(MedianRecurring, MIXED, SPARE[0].0, Printed::AtLeast(0.0), "fig. 16"),
        claim(MedianRecurring, MIXED, SPARE[1].0, slight, "fig. 16"),
        Claim::less(MedianJct, (ONLINE, SLOW), "F-Hybrid", about(38.0), "sec. 5.4.5"),
        claim(MedianJct, ONLINE, FAST, slight, "fig. 17"),
        // From 50 to 80 % "almost the same"; at 40 % and less a little longer.
        claim(MedianJct, ONLINE, SLOWSTART[0].0, Printed::AtLeast(0.0), "fig. 15"),
        claim(MedianJct, ONLINE, SLOWSTART[2].0, slight, "fig. 15"),
        claim(MedianJct, ONLINE, SLOWSTART[4].0, slight, "fig. 15"),
    ]
    .into_iter()
    .chain(beside())
    .collect()
}

/// What ours brings to the published algorithm, and each option by itself.
fn beside() -> impl Iterator<Item = Claim> {
    let one = |measure, setting, name| Claim::less(measure, (setting, name), PACKER, None, "ours");
    let in_short =
        [(Makespan, BATCH), (MedianJct, ONLINE), (Makespan, GENI), (MedianJct, GENI_ONLINE)];
    let mixed = [(MedianRecurring, MIXED), (MedianRecurring, GENI_MIXED)];
    let all = in_short
        .into_iter()
        .chain(mixed)
        .map(move |(measure, setting)| one(measure, setting, OURS));
    let parts = in_short
        .into_iter()
        .flat_map(move |(measure, setting)| VARIANTS.map(|(name, _)| one(measure, setting, name)));
    let share = in_short.into_iter().flat_map(|(_, setting)| {
        let names = std::iter::once(OURS).chain(VARIANTS.map(|v| v.0));
        names.map(move |name| Claim::of(OcsShare, (setting, name), None, "ours"))
    });
    all.chain(parts).chain(share)
}
