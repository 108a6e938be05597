//! JobPacker's evaluation (ICPP 2019, section 5): the simulated cluster and the GENI testbed, against F-Hybrid, Corral and F-EPS.

use std::sync::Arc;

use super::Size;
use super::claim::{Claim, Printed, Side};
use super::runs::Measure::{Makespan, MedianAdHoc, MedianJct, MedianRecurring, OcsShare};
use super::setting::{Load, Setting, System, Work, network, system};
use crate::control::policy::SchedulerKind;
use crate::placement::cluster::{Cluster, ELEPHANT};
use crate::placement::{Kind, Policy};
use crate::runtime::jobs::errors::Errors;
use crate::units::{BitRate, Bytes, Span};
use crate::workload::synth_jobs::Mix;

const BATCH: &str = "batch";
const ONLINE: &str = "online";
const MIXED: &str = "mixed";
const SIZES: &str = "sizes 50 % off";
const LATE: &str = "half +-200 s";
const GENI: &str = "GENI batch";
const GENI_ONLINE: &str = "GENI online";

/// The testbed: ten virtual racks of ten slots; each task was limited to 0.1 Gb/s, which its rack's EPS link is, too.
fn geni() -> Cluster {
    let (core, ocs) = (BitRate::mbit(100), BitRate::mbit(1_000));
    Cluster { racks: 10, hosts: 1, slots: 10, nic: ocs, core, ocs, elephant: Bytes(ELEPHANT.0 / 100), ..Cluster::jobpacker() }
}

fn systems(elephant: Bytes) -> Vec<System> {
    // Periodic matching every second with a delay of 10 ms (section 5.2).
    let on = |name, kind, circuits| system(name, kind, circuits, Span::secs(1), elephant);
    vec![
        on("F-Hybrid", Kind::Fair, SchedulerKind::Bipartite),
        on("Corral", Kind::Corral, SchedulerKind::Bipartite),
        on("F-EPS", Kind::FEps, SchedulerKind::EpsOnly),
        on("JobPacker", Kind::Jobpacker, SchedulerKind::Bipartite),
    ]
}

/// What is run.
pub fn settings(size: Size) -> Vec<Setting> {
    let minutes = |m: u64| Span::secs(m * 60);
    let (simulated, testbed) = (Arc::new(network("jobpacker", &Cluster::jobpacker())), Arc::new(network("geni", &geni())));
    let load = |jobs, window, recurring| Load::new(Mix::Jobpacker, jobs, window, recurring, size);
    let setting = |name, about: &str, load: Load| {
        let small = load.scale > 1;
        let systems = systems(if small { geni().elephant } else { ELEPHANT });
        let topology = if small { &testbed } else { &simulated }.clone();
        Setting { name, about: about.into(), topology, systems, load, work: Work::Run }
    };
    let online = load(1000, minutes(90), 100);
    let sizes = Load { errors: Errors { size_percent: 50, ..Errors::default() }, ..online.clone() };
    // A delay is a number of gaps of arrivals: where jobs come in less time, it shrinks with them.
    let delay = size.free.window(Span::secs(200));
    let late = Load { errors: Errors { delayed_percent: 50, delay, ..Errors::default() }, ..online.clone() };
    let mut all = vec![
        setting(BATCH, "20 racks x 30 servers x 20 slots, 1000 jobs at once", load(1000, Span::ZERO, 100)),
        setting(ONLINE, "the same, in 90 minutes", online),
        setting(MIXED, "the same, half of the jobs ad hoc", load(1000, minutes(90), 50)),
        setting(SIZES, "online; sizes of all jobs foreseen up to 50 % wrong", sizes),
        setting(LATE, "online; half of the jobs up to 200 s sooner or later than foreseen", late),
        setting(GENI, "10 virtual racks x 10 slots, 200 jobs at once, bytes / 100", Load { scale: 100, ..load(200, Span::ZERO, 100) }),
        setting(GENI_ONLINE, "the same, in 20 minutes", Load { scale: 100, ..load(200, minutes(20), 100) }),
    ];
    for s in &mut all {
        // The paper's (section 5.3): spare containers where some jobs are ad hoc.
        let spare = if s.name == MIXED { 100 } else { 0 };
        for y in &mut s.systems {
            if let Policy::Jobpacker(options) = &mut y.jobs_by.placement.policy {
                options.over_provisioning = spare;
            }
        }
    }
    all
}

/// What the paper says of it.
pub fn claims() -> Vec<Claim> {
    let claim = |measure, setting, base, printed, source| Claim::less(measure, (setting, "JobPacker"), base, printed, source);
    let share = |setting, system, printed, source| Claim::of(OcsShare, (setting, system), printed, source);
    let (about, same) = (Printed::About, Printed::Between(-5.0, 5.0));
    // JobPacker is within 5 % of F-EPS, and better than F-Hybrid by what is printed: so F-EPS is, too.
    let implied = |c: Claim| Claim { of: Side { system: "F-EPS", ..c.of }, calibrated: true, ..c };
    vec![
        implied(claim(Makespan, BATCH, "F-Hybrid", about(47.0), "implied, fig. 8a")),
        implied(claim(MedianJct, ONLINE, "F-Hybrid", about(43.0), "implied, fig. 10a")),
        claim(Makespan, BATCH, "F-Hybrid", about(47.0), "fig. 8a"),
        claim(Makespan, BATCH, "Corral", about(29.0), "fig. 8a"),
        claim(Makespan, BATCH, "F-EPS", same, "fig. 8a"),
        share(BATCH, "JobPacker", Some(Printed::AtLeast(96.0)), "fig. 9a"),
        share(BATCH, "F-Hybrid", Some(about(0.8)), "fig. 9a"),
        share(BATCH, "Corral", Some(Printed::AtMost(23.0)), "fig. 9a"),
        claim(MedianJct, ONLINE, "F-Hybrid", about(43.0), "fig. 10a"),
        claim(MedianJct, ONLINE, "Corral", about(28.0), "fig. 10a"),
        share(ONLINE, "JobPacker", None, "fig. 11a"),
        claim(MedianRecurring, MIXED, "F-Hybrid", about(40.0), "fig. 12a"),
        claim(MedianAdHoc, MIXED, "F-Hybrid", about(38.0), "fig. 12b"),
        claim(MedianRecurring, MIXED, "Corral", about(24.0), "fig. 12a"),
        claim(MedianAdHoc, MIXED, "Corral", about(25.0), "fig. 12b"),
        claim(MedianJct, SIZES, "F-Hybrid", about(33.0), "sec. 5.4.1"),
        claim(MedianJct, SIZES, "Corral", about(25.0), "sec. 5.4.1"),
        claim(MedianJct, LATE, "F-Hybrid", about(23.0), "sec. 5.4.2"),
        claim(MedianJct, LATE, "Corral", about(22.0), "sec. 5.4.2"),
        claim(Makespan, GENI, "F-Hybrid", about(49.0), "fig. 8b"),
        claim(Makespan, GENI, "Corral", about(27.0), "fig. 8b"),
        claim(Makespan, GENI, "F-EPS", same, "fig. 8b"),
        claim(MedianJct, GENI_ONLINE, "F-Hybrid", about(42.0), "fig. 10b"),
        claim(MedianJct, GENI_ONLINE, "Corral", about(27.0), "fig. 10b"),
    ]
}
