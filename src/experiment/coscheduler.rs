//! Co-scheduler's evaluation (ToN 2022, section V): the simulated cluster under Sunflow, against
//! Fair and Corral.

use std::sync::Arc;

use super::Size;
use super::claim::{Claim, ClaimSide, Printed};
use super::runs::Measure::{HeavyJct, LightJct, Makespan, MeanCct, MeanJct, OcsShare, Overrun};
use super::setting::{ExperimentSetting, JobSource, SettingWork, System, network, system};
use crate::control::policy::SchedulerKind;
use crate::placement::cluster::{Cluster, ELEPHANT};
use crate::placement::coscheduler::executor::CoDecidedOptions;
use crate::placement::{Kind, Policy};
use crate::runtime::jobs::errors::Errors;
use crate::topology::Topology;
use crate::units::{BitRate, Span};
use crate::workload::swim::SwimJob;
use crate::workload::synth_jobs::Mix;

const MIXED: &str = "half recurring";
const JUDGED: &str = "T_rem 50 % off";
const CO: &str = "Co-scheduler";
/// Its Algorithm 2 to the letter: any free slot takes a task of a shuffle-heavy job where nothing
/// else can run.
const LITERAL: &str = "Co-scheduler, any slot";
/// Ours: the controller decides with the scheduler where reduces go.
const DECIDED: &str = "co-decided";
/// Its data and map guidelines alone, DP + OCAS; OCAS is Fair (section V-C).
const MAPS: &str = "Co-scheduler, maps only";
const WIDE: &str = "3:1";
const NARROW: &str = "20:1";
const AD_HOC: &str = "none recurring";
const RECURRING: &str = "all recurring";
/// Points of the sweeps that quick runs leave out: Mb/s of a rack's uplink (figure 8), per cent of
/// the jobs that are recurring (figure 9), per cent by which estimates are off (figure 10).
const MORE_RATIOS: [(&str, u64); 2] = [("5:1", 20_000), ("15:1", 6_667)];
const MORE_RECURRING: [(&str, u32); 2] =
    [("a quarter recurring", 25), ("three quarters recurring", 75)];
const MORE_JUDGED: [(&str, u32); 4] = [
    ("T_rem 10 % off", 10),
    ("T_rem 20 % off", 20),
    ("T_rem 30 % off", 30),
    ("T_rem 40 % off", 40),
];

/// A shuffle begins when all reduces have their slots (section IV-A), however long that takes.
const PATIENCE: Span = Span::secs(600);

// Sunflow decides at arrivals in the paper; here at the next cycle.
fn on(name: &'static str, kind: Kind) -> System {
    let mut s = system(name, kind, SchedulerKind::Sunflow, Span::millis(100), ELEPHANT);
    if kind == Kind::Corral {
        // Without recurring jobs it is Fair (section V-D), which waits for no data.
        (s.jobs_by.placement.common.wait, s.jobs_by.placement.common.missed) =
            ((Span::ZERO, Span::ZERO), None);
    }
    s
}

/// A system whose guidelines are strict.
fn strict(name: &'static str, kind: Kind, maps_only: bool) -> System {
    let mut s = on(name, kind);
    if let Policy::CoScheduler(options) | Policy::CoDecided(CoDecidedOptions(options)) =
        &mut s.jobs_by.placement.policy
    {
        (options.strict, options.maps_only) = (true, maps_only);
    }
    s.jobs_by.placement.common.patience = PATIENCE;
    s
}

fn systems() -> Vec<System> {
    let own = [
        strict(CO, Kind::CoScheduler, false),
        strict(MAPS, Kind::CoScheduler, true),
        on(LITERAL, Kind::CoScheduler),
    ];
    let others = [
        on("Fair", Kind::Fair),
        on("Corral", Kind::Corral),
        strict(DECIDED, Kind::CoDecided, false),
    ];
    others.into_iter().chain(own).collect()
}

/// What is run; with rows of a trace, the jobs are drawn from them.
pub fn settings(size: Size, rows: Option<&Arc<[SwimJob]>>) -> Vec<ExperimentSetting> {
    let at = |core| {
        Arc::new(network(
            "co-scheduler",
            &Cluster { core: BitRate::mbit(core), ..Cluster::co_scheduler() },
        ))
    };
    let usual = at(10_000);
    // Figure 4's job has 169 reduce tasks for 3472 maps.
    let load = |recurring| JobSource {
        rows: rows.cloned(),
        reduce_share: Some(5),
        ..JobSource::new(Mix::CoScheduler, 1000, Span::secs(90 * 60), recurring, size)
    };
    let judged =
        JobSource { errors: Errors { remaining_percent: 50, ..Errors::default() }, ..load(50) };
    let some = |names: &[&str]| systems().into_iter().filter(|s| names.contains(&s.name)).collect();
    let setting = |name, about: &str, topology: &Arc<Topology>, systems, load| ExperimentSetting {
        name,
        about: about.into(),
        topology: topology.clone(),
        systems,
        load,
        work: SettingWork::Run,
    };
    let about = "60 racks x 10 servers x 20 slots, 1000 jobs of 20 users in 90 minutes, half of them recurring, Sunflow";
    let mut all = vec![
        setting(MIXED, about, &usual, systems(), load(50)),
        setting(
            JUDGED,
            "the same; estimates of remaining times up to 50 % off",
            &usual,
            some(&[CO]),
            judged,
        ),
        setting(
            WIDE,
            "half recurring, with an oversubscription of 3:1",
            &at(33_333),
            some(&[CO]),
            load(50),
        ),
        setting(
            NARROW,
            "half recurring, with an oversubscription of 20:1",
            &at(5_000),
            some(&[CO, "Fair"]),
            load(50),
        ),
        setting(AD_HOC, "the same, no job recurring", &usual, some(&[CO, "Corral"]), load(0)),
        setting(
            RECURRING,
            "the same, all jobs recurring",
            &usual,
            some(&[CO, "Corral"]),
            load(100),
        ),
    ];
    if !size.thin {
        let three = [CO, "Corral", "Fair"];
        // The systems that quick runs leave out, and the points.
        for (name, more) in [(WIDE, &three[1..]), (NARROW, &three[1..2])] {
            all.iter_mut().filter(|s| s.name == name).for_each(|s| s.systems.extend(some(more)));
        }
        for (name, core) in MORE_RATIOS {
            all.push(setting(
                name,
                "half recurring, with another oversubscription",
                &at(core),
                some(&three),
                load(50),
            ));
        }
        for (name, percent) in MORE_RECURRING {
            all.push(setting(
                name,
                "the same, another part of the jobs recurring",
                &usual,
                some(&three[..2]),
                load(percent),
            ));
        }
        for (name, remaining_percent) in MORE_JUDGED {
            let load =
                JobSource { errors: Errors { remaining_percent, ..Errors::default() }, ..load(50) };
            all.push(setting(
                name,
                "half recurring; estimates of remaining times off by less",
                &usual,
                some(&three[..1]),
                load,
            ));
        }
    }
    all
}

/// What the paper says of it.
pub fn claims() -> Vec<Claim> {
    // Fair and Corral estimate no remaining times: they are what they were.
    let claim = |measure, setting, base, printed, source| Claim {
        against: Some(ClaimSide { setting: MIXED, system: base }),
        ..Claim::of(measure, (setting, CO), Printed::About(printed), source)
    };
    let share =
        |system, printed| Claim::of(OcsShare, (MIXED, system), Printed::About(printed), "fig. 5b");
    let ours = |measure, system, base| Claim::less(measure, (MIXED, system), base, None, "ours");
    let part = |measure, printed| {
        Claim::less(measure, (MIXED, MAPS), "Fair", Printed::About(printed), "fig. 7")
    };
    // Figure 6 prints no numbers that its text repeats: both kinds of jobs gain.
    let sizes = |measure, base, source| {
        Claim::less(measure, (MIXED, CO), base, Printed::AtLeast(0.0), source)
    };
    // Against the usual setting, where half of the jobs are recurring and the oversubscription is
    // 10:1; "not sensitive" is taken as 10 %.
    let level = Printed::Between(-10.0, 10.0);
    let within = |measure, of, system, printed, source| Claim {
        against: Some(ClaimSide { setting: MIXED, system }),
        ..Claim::of(measure, of, printed, source)
    };
    // No system ends before the last arrival: if Co-scheduler takes 56 % less than Fair, Fair takes
    // 1 / 0.44 of the arrivals' time or more.
    let fair = Claim {
        measure: Overrun,
        printed: Some(Printed::About(227.0)),
        source: "implied, fig. 5a",
        ..share("Fair", 0.0)
    };
    vec![
        fair,
        claim(Makespan, MIXED, "Fair", 56.0, "fig. 5a"),
        claim(Makespan, MIXED, "Corral", 44.0, "fig. 5a"),
        claim(MeanJct, MIXED, "Fair", 61.0, "fig. 5a"),
        claim(MeanJct, MIXED, "Corral", 43.0, "fig. 5a"),
        claim(MeanCct, MIXED, "Fair", 79.0, "fig. 5a"),
        claim(MeanCct, MIXED, "Corral", 63.0, "fig. 5a"),
        share(CO, 95.2),
        share("Fair", 2.2),
        share("Corral", 33.0),
        Claim { printed: None, source: "ours", ..share(LITERAL, 0.0) },
        ours(MeanJct, CO, LITERAL),
        ours(MeanCct, CO, LITERAL),
        ours(Makespan, DECIDED, CO),
        ours(MeanJct, DECIDED, CO),
        ours(MeanCct, DECIDED, CO),
        sizes(HeavyJct, "Fair", "fig. 6a"),
        sizes(LightJct, "Fair", "fig. 6a"),
        sizes(HeavyJct, "Corral", "fig. 6b"),
        sizes(LightJct, "Corral", "fig. 6b"),
        part(Makespan, 16.0),
        part(MeanJct, 21.0),
        part(MeanCct, 25.0),
        within(Makespan, (WIDE, CO), CO, level, "fig. 8a"),
        within(Makespan, (NARROW, CO), CO, level, "fig. 8a"),
        within(MeanJct, (NARROW, CO), CO, level, "fig. 8b"),
        within(MeanJct, (NARROW, "Fair"), "Fair", Printed::AtMost(0.0), "fig. 8b"),
        within(MeanJct, (AD_HOC, "Corral"), "Fair", Printed::Between(-5.0, 5.0), "sec. V-D"),
        within(MeanJct, (RECURRING, "Corral"), "Corral", Printed::AtLeast(0.0), "fig. 9b"),
        within(MeanJct, (RECURRING, CO), CO, Printed::AtLeast(0.0), "fig. 9b"),
        claim(Makespan, JUDGED, "Fair", 43.0, "fig. 10a"),
        claim(Makespan, JUDGED, "Corral", 18.0, "fig. 10a"),
        claim(MeanJct, JUDGED, "Fair", 51.0, "fig. 10b"),
        claim(MeanJct, JUDGED, "Corral", 21.0, "fig. 10b"),
    ]
}
