//! Co-scheduler's evaluation (ToN 2022, section V): the simulated cluster under Sunflow, against Fair and Corral.

use std::sync::Arc;

use super::Size;
use super::claim::{Claim, Printed, Side};
use super::runs::Measure::{Makespan, MeanCct, MeanJct, OcsShare, Overrun};
use super::setting::{Load, Setting, System, Work, network, system};
use crate::control::policy::SchedulerKind;
use crate::placement::cluster::{Cluster, ELEPHANT};
use crate::placement::coscheduler::executor::CoDecidedOptions;
use crate::placement::{Kind, Policy};
use crate::runtime::jobs::errors::Errors;
use crate::units::Span;
use crate::workload::synth_jobs::Mix;

const MIXED: &str = "half recurring";
const JUDGED: &str = "T_rem 50 % off";
const CO: &str = "Co-scheduler";
/// Its Algorithm 2 to the letter: any free slot takes a task of a shuffle-heavy job where nothing else can run.
const LITERAL: &str = "Co-scheduler, any slot";
/// Ours: the controller decides with the scheduler where reduces go.
const DECIDED: &str = "co-decided";

/// A shuffle begins when all reduces have their slots (section IV-A), however long that takes.
const PATIENCE: Span = Span::secs(600);

fn systems() -> Vec<System> {
    // Sunflow decides at arrivals in the paper; here at the next cycle.
    let on = |name, kind| system(name, kind, SchedulerKind::Sunflow, Span::millis(100), ELEPHANT);
    let strict = |name, kind| {
        let mut s = on(name, kind);
        if let Policy::CoScheduler(options) | Policy::CoDecided(CoDecidedOptions(options)) = &mut s.jobs_by.placement.policy {
            options.strict = true;
        }
        s.jobs_by.placement.common.patience = PATIENCE;
        s
    };
    let literal = on(LITERAL, Kind::CoScheduler);
    vec![on("Fair", Kind::Fair), on("Corral", Kind::Corral), strict(CO, Kind::CoScheduler), literal, strict(DECIDED, Kind::CoDecided)]
}

/// What is run.
pub fn settings(size: Size) -> Vec<Setting> {
    let topology = Arc::new(network("co-scheduler", &Cluster::co_scheduler()));
    let load = Load::new(Mix::CoScheduler, 1000, Span::secs(90 * 60), 50, size);
    let judged = Load { errors: Errors { remaining_percent: 50, ..Errors::default() }, ..load.clone() };
    let about = "60 racks x 10 servers x 20 slots, 1000 jobs of 20 users in 90 minutes, half of them recurring, Sunflow";
    let only_co = systems().into_iter().filter(|s| s.name == CO).collect();
    let setting = |name, about: &str, systems, load| Setting {
        name,
        about: about.into(),
        topology: topology.clone(),
        systems,
        load,
        work: Work::Run,
    };
    vec![setting(MIXED, about, systems(), load), setting(JUDGED, "the same; estimates of remaining times up to 50 % off", only_co, judged)]
}

/// What the paper says of it.
pub fn claims() -> Vec<Claim> {
    // Fair and Corral estimate no remaining times: they are what they were.
    let claim = |measure, setting, base, printed, source| Claim {
        against: Some(Side { setting: MIXED, system: base }),
        ..Claim::of(measure, (setting, CO), Printed::About(printed), source)
    };
    let share = |system, printed| Claim::of(OcsShare, (MIXED, system), Printed::About(printed), "fig. 5b");
    let ours = |measure, system, base| Claim::less(measure, (MIXED, system), base, None, "ours");
    // No system ends before the last arrival: if Co-scheduler takes 56 % less than Fair, Fair takes 1 / 0.44 of the arrivals' time or more.
    let fair = Claim { measure: Overrun, printed: Some(Printed::About(227.0)), source: "implied, fig. 5a", ..share("Fair", 0.0) };
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
        claim(Makespan, JUDGED, "Fair", 43.0, "fig. 10a"),
        claim(Makespan, JUDGED, "Corral", 18.0, "fig. 10a"),
        claim(MeanJct, JUDGED, "Fair", 51.0, "fig. 10b"),
        claim(MeanJct, JUDGED, "Corral", 21.0, "fig. 10b"),
    ]
}
