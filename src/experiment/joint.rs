//! `joint` beside every published system in that one's own setting, beside what no scheduler can be
//! below, and beside baselines that are as strong as they can be: the published systems with the
//! least remaining work first and late reduces.
//!
//! What `joint` gains against these, and not against the published ones, is what deciding placement
//! and circuits together brings.

use super::claim::Claim;
use super::measure::Measure::{
    self, Makespan, MeanCct, MeanJct, MedianJct, P95Jct, P99Jct, ShuffleCost,
};
use super::setting::{ExperimentSetting, System, electrical, system};
use super::{Experiment, Paper, Size, Traces};
use crate::coflows::elephants::Admit;
use crate::coflows::network::NetworkKind;
use crate::control::policy::SchedulerKind;
use crate::placement::joint::executor::JointOptions;
use crate::placement::policy::{JobOrder, ReduceStart};
use crate::placement::{Kind, Policy};
use crate::topology::Topology;
use crate::units::{Bytes, Span};

/// The system.
pub const JOINT: &str = "joint";

/// The first draw that was not looked at while the constants of the policy were chosen.
pub const HELD_OUT: u64 = 21;

/// `joint` without one of its parts.
type Without = (&'static str, fn(&mut System));
/// All of them.
pub const WITHOUT: [Without; 9] = [
    ("joint, no order", |s| options(s, |o| o.no_order = true)),
    ("joint, no guard", |s| options(s, |o| o.no_guard = true)),
    ("joint, no tails", |s| options(s, |o| o.no_tails = true)),
    ("joint, no slots kept", |s| options(s, |o| o.no_kept_slots = true)),
    ("joint, no homes", |s| options(s, |o| o.no_homes = true)),
    ("joint, no estimate", |s| options(s, |o| o.no_estimate = true)),
    ("joint, no ways", |s| options(s, |o| o.no_ways = true)),
    // Reduces get slots when one map in twenty has finished.
    ("joint, early reduces", |s| s.jobs_by.placement.common.slowstart = 5),
    // A matching of racks by their bytes, instead of coflow after coflow.
    ("joint, matching", |s| s.plan.policy.scheduler = SchedulerKind::Bipartite),
];

/// Share of a setting's jobs that `--ablate --quick` runs, in per cent.
pub const LOOK_PERCENT: usize = 20;

fn options(s: &mut System, change: fn(&mut JointOptions)) {
    if let Policy::Joint(o) = &mut s.jobs_by.placement.policy {
        change(o);
    }
}

/// Leaves only `joint`, as it is and without each of its parts; for a look, only settings that a
/// look has.
pub fn ablate(e: &mut Experiment, look: bool) {
    let keeps = |name: &str| name == JOINT || WITHOUT.iter().any(|w| w.0 == name);
    e.settings.retain(|s| !look || SETTINGS.iter().any(|c| c.2 == s.name && c.3));
    e.settings.iter_mut().for_each(|s| s.systems.retain(|y| keeps(y.name)));
    e.claims.clear();
}

/// A paper's setting, what it is called here, and whether a quick run has it.
type ChosenSetting = (Paper, &'static str, &'static str, bool);
const SETTINGS: [ChosenSetting; 26] = [
    (Paper::Jobpacker, "batch", "JobPacker batch", true),
    (Paper::Jobpacker, "online", "JobPacker online", true),
    (Paper::Jobpacker, "GENI batch", "GENI batch", true),
    (Paper::Jobpacker, "GENI online", "GENI online", true),
    (Paper::CoScheduler, "half recurring", "Co-scheduler", true),
    (Paper::Corral, "W1 batch", "Corral W1 batch", true),
    (Paper::Corral, "W1 online", "Corral W1 online", true),
    (Paper::Corral, "W2 batch", "Corral W2 batch", true),
    (Paper::Corral, "W2 online", "Corral W2 online", true),
    (Paper::Corral, "W3 batch", "Corral W3 batch", true),
    (Paper::Corral, "W3 online", "Corral W3 online", true),
    (Paper::Hit, "one heavy job", "Hit, one heavy job", true),
    (Paper::Hit, "6 jobs", "Hit, 6 jobs", true),
    (Paper::Hit, "12 jobs", "Hit, 12 jobs", false),
    (Paper::Hit, "18 jobs", "Hit, 18 jobs", true),
    (Paper::Hit, "testbed", "Hit, testbed", true),
    (Paper::Hit, "fat-tree", "Hit, fat tree", true),
    (Paper::Hit, "VL2", "Hit, VL2", true),
    (Paper::Hit, "BCube", "Hit, BCube", true),
    (Paper::Pushbox, "Fair", "PushBox, Fair", true),
    (Paper::Pushbox, "fan-in 6:1", "PushBox, fan-in 6:1", false),
    (Paper::Jobpacker, "sizes 50 % off", "JobPacker, sizes 50 % off", false),
    (Paper::Jobpacker, "half +-200 s", "JobPacker, half +-200 s", false),
    (Paper::Jobpacker, "mixed", "JobPacker, half ad hoc", false),
    (Paper::CoScheduler, "T_rem 50 % off", "Co-scheduler, T_rem 50 % off", false),
    (Paper::CoScheduler, "none recurring", "Co-scheduler, none recurring", false),
];

/// Published systems, and what each is called with the least remaining work first and late reduces.
/// F-EPS has another network.
pub(super) const PUBLISHED: [(&str, &str); 15] = [
    ("F-Hybrid", "F-Hybrid, SRPT"),
    ("Corral", "Corral, SRPT"),
    ("JobPacker", "JobPacker, SRPT"),
    ("Fair", "Fair, SRPT"),
    ("Co-scheduler", "Co-scheduler, SRPT"),
    ("co-decided", "co-decided, SRPT"),
    ("Yarn-CS", "Yarn-CS, SRPT"),
    ("LocalShuffle", "LocalShuffle, SRPT"),
    ("ShuffleWatcher", "ShuffleWatcher, SRPT"),
    ("Capacity", "Capacity, SRPT"),
    ("PNA", "PNA, SRPT"),
    ("Hit", "Hit, SRPT"),
    ("Hadoop", "Hadoop, SRPT"),
    ("NEAT", "NEAT, SRPT"),
    ("PushBox", "PushBox, SRPT"),
];

/// What is run.
pub fn settings(size: Size, traces: &Traces) -> Vec<ExperimentSetting> {
    let papers = [Paper::Jobpacker, Paper::CoScheduler, Paper::Corral, Paper::Hit, Paper::Pushbox];
    papers.into_iter().flat_map(|p| of_paper(p, size, traces)).collect()
}

fn of_paper(paper: Paper, size: Size, traces: &Traces) -> Vec<ExperimentSetting> {
    let all = paper.experiment_with(Size { thin: false, ..size }, traces).settings;
    let named = |s: ExperimentSetting| {
        let chosen = SETTINGS
            .iter()
            .find(|c| (c.0, c.1) == (paper, s.name))
            .filter(|c| c.3 || !size.thin)?;
        Some(ExperimentSetting { name: chosen.2, systems: systems(&s, size.thin), ..s })
    };
    all.into_iter().filter_map(named).collect()
}

/// The published systems of a setting as they are and as strong as they can be, and `joint`; unless
/// this is a look, also without one of its parts.
fn systems(s: &ExperimentSetting, look: bool) -> Vec<System> {
    let published =
        || s.systems.iter().filter_map(|y| Some((y, PUBLISHED.iter().find(|p| p.0 == y.name)?.1)));
    let mut all: Vec<System> = published().map(|(y, _)| y.clone()).collect();
    all.extend(published().map(|(y, name)| strong(name, y)));
    let Some(like) = s.systems.first() else { return all };
    let whole = joint(&s.topology, like, &s.systems);
    let circuits = !s.topology.planes.is_empty();
    let has_it = |name: &str| circuits || !["joint, no ways", "joint, matching"].contains(&name);
    let without = WITHOUT.iter().filter(|w| !look && has_it(w.0)).map(|&(name, change)| {
        let mut part = System { name, ..whole.clone() };
        change(&mut part);
        part
    });
    all.extend(without);
    all.push(whole);
    all
}

/// A system with the least remaining work first, and reduces when all maps are done.
fn strong(name: &'static str, of: &System) -> System {
    let mut s = System { name, ..of.clone() };
    let settings = &mut s.jobs_by.settings;
    (settings.order, settings.reduces) = (JobOrder::Srpt, ReduceStart::AllPlaced);
    settings.orders.clear();
    s.jobs_by.placement.common.slowstart = 100;
    s
}

/// Ours, with flows between the same places as those of the others, and strict priorities where one
/// of them has some.
fn joint(topology: &Topology, like: &System, others: &[System]) -> System {
    let network = |y: &System| y.plan.run.network.kind;
    let ranked = others.iter().map(network).find(|&k| k == NetworkKind::Priority);
    let mut s = match topology.planes.is_empty() {
        true => electrical(JOINT, Kind::Joint, ranked.unwrap_or(network(like))),
        false => system(
            JOINT,
            Kind::Joint,
            SchedulerKind::Sunflow,
            Span::millis(100),
            worth_a_circuit(topology),
        ),
    };
    s.plan.run.admit = Admit::Marked;
    s.jobs_by.settings.grain = like.jobs_by.settings.grain;
    s.jobs_by.settings.flows = like.jobs_by.settings.flows;
    s
}

/// The bytes from which on a circuit is sooner than the core, its dark time included: m / E = d + m
/// / C.
pub fn worth_a_circuit(t: &Topology) -> Bytes {
    let core = t.racks.iter().map(|r| r.uplink.0).min().unwrap_or(0);
    let worth = t.planes.iter().filter(|p| p.rate.0 > core).map(|p| {
        let bits = u128::from(p.delta.0) * u128::from(core) * u128::from(p.rate.0)
            / (u128::from(p.rate.0 - core) * 1_000_000_000);
        u64::try_from(bits / 8).unwrap_or(u64::MAX)
    });
    Bytes(worth.min().unwrap_or(u64::MAX))
}

/// Against the best published system, and against the best strong baseline.
pub fn claims() -> Vec<Claim> {
    let against = |setting, bases: &[&'static str], measures: &[Measure]| -> Vec<Claim> {
        let one = |(&m, &base): (&Measure, &&'static str)| {
            Claim::less(m, (setting, JOINT), base, None, "ours")
        };
        measures.iter().flat_map(|m| bases.iter().map(move |b| (m, b))).map(one).collect()
    };
    let usual = [Makespan, MeanJct, MedianJct, P95Jct, MeanCct];
    let mut all = Vec::new();
    for &(_, _, name, _) in SETTINGS[..4].iter().chain(&SETTINGS[21..24]) {
        all.extend(against(
            name,
            &["JobPacker", "Corral", "JobPacker, SRPT", "Corral, SRPT"],
            &usual,
        ));
    }
    let beside = ["Co-scheduler", "co-decided", "Co-scheduler, SRPT", "co-decided, SRPT"];
    all.extend(against(SETTINGS[4].2, &beside, &usual));
    all.extend(against(SETTINGS[24].2, &["Co-scheduler", "Co-scheduler, SRPT"], &usual));
    let beside = ["Corral", "Co-scheduler", "Corral, SRPT", "Co-scheduler, SRPT"];
    all.extend(against(SETTINGS[25].2, &beside, &usual));
    for &(_, _, name, _) in &SETTINGS[5..11] {
        all.extend(against(
            name,
            &["Yarn-CS", "Corral", "LocalShuffle", "Yarn-CS, SRPT", "Corral, SRPT"],
            &usual[..4],
        ));
    }
    for &(_, _, name, _) in &SETTINGS[11..19] {
        all.extend(against(
            name,
            &["Capacity", "Hit", "Capacity, SRPT", "Hit, SRPT"],
            &[Makespan, MeanJct, ShuffleCost],
        ));
    }
    for &(_, _, name, _) in &SETTINGS[19..21] {
        all.extend(against(
            name,
            &["PushBox", "NEAT", "PushBox, SRPT", "NEAT, SRPT"],
            &[MeanJct, MedianJct, P95Jct, P99Jct],
        ));
    }
    all
}
