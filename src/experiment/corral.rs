//! Corral's evaluation (SIGCOMM 2015, section 6): the testbed against Yarn-CS, the simulated cluster with TCP and Varys, and the planner
//! itself.

use std::sync::Arc;

use super::Size;
use super::claim::{Claim, Printed, Side};
use super::runs::Measure::{self, Gap, Makespan, MedianJct, PlanTime};
use super::setting::{Load, Setting, System, Work, electrical, network};
use crate::coflows::network::NetworkKind::{MaxMin, Varys};
use crate::placement::Kind;
use crate::placement::cluster::Cluster;
use crate::placement::corral::Scenario;
use crate::runtime::jobs::errors::Errors;
use crate::topology::Topology;
use crate::units::{BitRate, Span};
use crate::workload::synth_jobs::Mix;

const YARN: &str = "Yarn-CS";
const YARN_VARYS: &str = "Yarn-CS+Varys";
const CORRAL: &str = "Corral";
const CORRAL_VARYS: &str = "Corral+Varys";
const PLANNER: &str = "planner";
const BATCH: [&str; 3] = ["W1 batch", "W2 batch", "W3 batch"];
const ONLINE: [&str; 3] = ["W1 online", "W2 online", "W3 online"];
const SIZES: &str = "W1 sizes 50 % off";
const LATE: &str = "W1 half +-4 min";
const LARGE: &str = "W1 simulated";
const PLAN_BATCH: &str = "plan batch";
const PLAN_ONLINE: &str = "plan online";
const MIXES: [Mix; 3] = [Mix::CorralW1, Mix::CorralW2, Mix::CorralW3];
/// W1: four minutes are 6.67 times the mean gap of its arrivals in 60 minutes (section 6.5), so 100 jobs; W2 has 400 jobs, W3 200.
const JOBS: [usize; 3] = [100, 400, 200];

/// The testbed: 7 racks x 30 machines, 10 Gb/s, 5:1; 240 slots a rack (figure 2), half of the core is background.
fn testbed() -> Topology {
    let (nic, core) = (BitRate::mbit(10_000), BitRate::mbit(60_000));
    let mut t = network("corral", &Cluster { racks: 7, hosts: 30, slots: 8, nic, core, ..Cluster::corral() });
    t.eps.background_percent = 50;
    t
}

/// The planner's cluster (figure 5): 100 racks x 40 machines.
fn planned() -> Topology {
    let (nic, core) = (BitRate::mbit(10_000), BitRate::mbit(80_000));
    network("corral-planner", &Cluster { racks: 100, hosts: 40, slots: 8, nic, core, ..Cluster::corral() })
}

/// What is run.
pub fn settings(size: Size) -> Vec<Setting> {
    let minutes = |m: u64| Span::secs(m * 60);
    let both = || vec![electrical(YARN, Kind::Capacity, MaxMin), electrical(CORRAL, Kind::Corral, MaxMin)];
    let one = || -> Vec<System> { vec![electrical(CORRAL, Kind::Corral, MaxMin)] };
    let setting = |name, about: &str, t: &Arc<Topology>, systems, load, work| Setting {
        name,
        about: about.into(),
        topology: t.clone(),
        systems,
        load,
        work,
    };
    let (testbed, planned) = (Arc::new(testbed()), Arc::new(planned()));
    let simulated = Arc::new(network("corral-simulated", &Cluster::corral()));
    let load = |k: usize, window| Load::new(MIXES[k], JOBS[k], window, 100, size);
    let mut all = Vec::new();
    for k in 0..3 {
        let about = "7 racks x 30 machines x 8 slots, 5:1, half the core is background; all jobs at once";
        all.push(setting(BATCH[k], about, &testbed, both(), load(k, Span::ZERO), Work::Run));
        all.push(setting(ONLINE[k], "the same, in 60 minutes", &testbed, both(), load(k, minutes(60)), Work::Run));
    }
    let online = load(0, minutes(60));
    let sizes = Load { errors: Errors { size_percent: 50, ..Errors::default() }, ..load(0, Span::ZERO) };
    let late = Load { errors: Errors { delayed_percent: 50, delay: minutes(4), ..Errors::default() }, ..online };
    all.push(setting(SIZES, "W1 batch; sizes foreseen up to 50 % wrong", &testbed, one(), sizes, Work::Run));
    all.push(setting(LATE, "W1 online; half of the jobs up to 4 minutes sooner or later than foreseen", &testbed, both(), late, Work::Run));
    let four = vec![
        electrical(YARN, Kind::Capacity, MaxMin),
        electrical(YARN_VARYS, Kind::Capacity, Varys),
        electrical(CORRAL, Kind::Corral, MaxMin),
        electrical(CORRAL_VARYS, Kind::Corral, Varys),
    ];
    let about = "50 racks x 40 machines x 20 slots, 1 Gb/s, 5:1, 200 jobs in 15 minutes";
    all.push(setting(LARGE, about, &simulated, four, Load::new(MIXES[0], 200, minutes(15), 100, size), Work::Run));
    let plans = |window| Load { jobs: 500, ..Load::new(Mix::CorralW1, 500, window, 100, size) };
    let planner = || vec![electrical(PLANNER, Kind::Corral, MaxMin)];
    let about = "100 racks x 40 machines, 500 jobs of W1 at once: planned, not run";
    all.push(setting(PLAN_BATCH, about, &planned, planner(), plans(Span::ZERO), Work::Plan(Scenario::Batch)));
    all.push(setting(PLAN_ONLINE, "the same, in 60 minutes", &planned, planner(), plans(minutes(60)), Work::Plan(Scenario::Online)));
    all
}

/// What the paper says of it.
pub fn claims() -> Vec<Claim> {
    let plan = |measure, setting, printed, source| Claim::of(measure, (setting, PLANNER), Printed::AtMost(printed), source);
    let mut all: Vec<Claim> = Vec::new();
    for batch in BATCH {
        all.push(Claim::less(Makespan, (batch, CORRAL), YARN, Printed::Between(10.0, 33.0), "fig. 6"));
    }
    for online in ONLINE {
        all.push(Claim::less(MedianJct, (online, CORRAL), YARN, Printed::Between(30.0, 56.0), "fig. 8"));
    }
    let sizes = Claim {
        against: Some(Side { setting: BATCH[0], system: YARN }),
        ..Claim::less(Makespan, (SIZES, CORRAL), YARN, Printed::Between(25.0, 35.0), "fig. 13a")
    };
    all.extend([
        sizes,
        Claim::less(Measure::MeanJct, (LATE, CORRAL), YARN, Printed::AtLeast(25.0), "fig. 13b"),
        // Four minutes are 20 % of the mean completion time; whose, is not said.
        Claim::of(Measure::MeanJct, (ONLINE[0], YARN), Printed::About(1200.0), "sec. 6.5"),
        Claim { calibrated: true, ..Claim::less(MedianJct, (LARGE, YARN_VARYS), YARN, Printed::About(46.0), "fig. 14") },
        Claim::less(MedianJct, (LARGE, CORRAL), YARN_VARYS, Printed::About(45.0), "fig. 14"),
        Claim::less(MedianJct, (LARGE, CORRAL_VARYS), CORRAL, Printed::AtLeast(0.0), "fig. 14"),
        Claim::less(MedianJct, (LARGE, CORRAL_VARYS), YARN_VARYS, Printed::AtLeast(0.0), "fig. 14"),
        plan(Gap, PLAN_BATCH, 3.0, "sec. 4.2"),
        plan(Gap, PLAN_ONLINE, 15.0, "sec. 4.2"),
        plan(PlanTime, PLAN_BATCH, 55.0, "fig. 5"),
    ]);
    all
}
