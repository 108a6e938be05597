//! Options that a file may combine: none of the combinations may crawl.

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::coflows::network::{NetworkKind, Within};
use crate::control::policy::SchedulerKind;
use crate::placement::policy::{FlowGranularity, ReduceStart};
use crate::placement::pushbox::{PushBoxOptions, Yields};
use crate::placement::{Kind, Policy};
use crate::runtime::jobs::simulate::{SimulatedJobs, simulate};
use crate::runtime::settings::RunPlan;
use crate::scheduler::spec::JobPolicy;
use crate::topology::{Framing, Topology};
use crate::units::{BitRate, Bytes, Span, Time};
use crate::workload::job_model::JobModel;
use crate::workload::jobs::{JobList, JobSpec, StageSpec, TaskTimes};
use crate::workload::synth_jobs::{Mix, SynthJobs, synth_jobs};

/// How often a combination may take as long as the policy's own way.
const MOST: u64 = 5;
/// Loads that are tried; fewer where tests are quick.
const LOADS: u64 = 200;

/// Policies of single slots on a packet network: those that place jobs as wholes are about circuits
/// or racks.
const KINDS: [Kind; 6] =
    [Kind::Fair, Kind::Delay, Kind::Capacity, Kind::ShuffleWatcher, Kind::Neat, Kind::Pushbox];

/// A few hosts, and up to four jobs of maps that read and reduces that receive.
fn load(seed: u64) -> (Topology, JobList) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let rate = BitRate::mbit(1000);
    let mut t = Topology::uniform("t", 0, 0, rate, rate, vec![]);
    let slots = rng.random_range(2..=10);
    (0..rng.random_range(2..=4)).for_each(|_| t.push_rack(1, slots, rate, rate));
    t.framing = Framing::None;
    let stage = |rng: &mut ChaCha8Rng, name: &str, most: u32, input: Bytes| StageSpec {
        name: name.into(),
        tasks: rng.random_range(1..=most),
        times: TaskTimes::Even(Span::millis([500, 1000, 3000][rng.random_range(0..3)])),
        input,
        output: Bytes::ZERO,
        streams: false,
    };
    let jobs = (0..rng.random_range(1..=4)).map(|k| {
        let input = Bytes([100_000_000, 1_000_000_000][rng.random_range(0..2)]);
        let (map, reduce) =
            (stage(&mut rng, "map", 40, input), stage(&mut rng, "reduce", 12, Bytes::ZERO));
        JobSpec::map_reduce(
            format!("j{k}"),
            Time::ZERO,
            map,
            reduce,
            Bytes(1_000_000 * rng.random_range(10..=800)),
        )
    });
    (t, JobList::new("l", jobs.collect()))
}

fn makespan(t: &Topology, jobs: &JobList, jobs_by: &JobPolicy) -> Span {
    let mut plan = RunPlan::default();
    plan.policy.scheduler = SchedulerKind::EpsOnly;
    (plan.run.network.kind, plan.run.network.within) = (NetworkKind::Priority, Within::MaxMin);
    let ask = SimulatedJobs {
        topology: t,
        plan: &plan,
        jobs_by,
        jobs,
        failures: &[],
        faults: &[],
        until: None,
    };
    let r = simulate(&ask, &mut |_| ()).expect("it runs");
    assert_eq!(r.summary.unfinished, 0);
    r.summary.makespan
}

/// All that may be said beside a policy's name and decides who holds slots.
fn combined(kind: Kind) -> Vec<JobPolicy> {
    let mut all = Vec::new();
    for reduces in [ReduceStart::AllPlaced, ReduceStart::RampUp] {
        for flows in [FlowGranularity::Host, FlowGranularity::Task] {
            for slowstart in [0, 5, 100] {
                let mut p = JobPolicy::new(kind);
                (p.settings.reduces, p.settings.flows, p.placement.common.slowstart) =
                    (reduces, flows, slowstart);
                all.push(p);
            }
        }
    }
    if kind == Kind::Pushbox {
        let options =
            [(1, Yields::Network), (1, Yields::Any), (3, Yields::Network), (3, Yields::Any)];
        let with = |p: &JobPolicy, (input_tasks, yields)| {
            let mut p = p.clone();
            p.placement.policy = Policy::Pushbox(PushBoxOptions {
                input_tasks,
                yields,
                ..PushBoxOptions::default()
            });
            p
        };
        all = all
            .iter()
            .filter(|p| p.settings.flows == FlowGranularity::Task)
            .flat_map(|p| options.map(|o| with(p, o)))
            .collect();
    }
    all
}

#[test]
fn no_combination_of_options_crawls() {
    let loads = if std::env::var_os("HELIOSTAT_QUICK").is_some() { LOADS / 10 } else { LOADS };
    let mut worst = (0.0, String::new());
    for seed in 0..loads {
        let (t, jobs) = load(seed);
        for kind in KINDS {
            let usual = makespan(&t, &jobs, &JobPolicy::new(kind));
            for p in combined(kind) {
                let ratio = makespan(&t, &jobs, &p).as_secs_f64() / usual.as_secs_f64();
                if ratio > worst.0 {
                    worst = (
                        ratio,
                        format!("seed {seed}: {kind:?}, {:?}, {:?}", p.settings, p.placement),
                    );
                }
            }
        }
    }
    println!("the slowest takes {:.2} times as long: {}", worst.0, worst.1);
    assert!(worst.0 < MOST as f64, "{worst:?}");
}

/// PushBox's first testbed load: reduces that hold slots while maps wait are no tasks that fetch,
/// or they keep these maps out.
#[test]
fn reduces_that_ramp_up_do_not_keep_the_maps_out_for_which_they_wait() {
    let rate = BitRate::mbit(10_000);
    let mut t = Topology::uniform("t", 0, 0, rate, rate, vec![]);
    (0..9).for_each(|_| t.push_rack(1, 10, rate, rate));
    t.framing = Framing::None;
    let mix = Mix::PushboxW1;
    let model = JobModel {
        map_rate: Bytes(150_000_000),
        reduce_rate: Bytes(150_000_000),
        ..mix.preset().model()
    };
    let jobs = synth_jobs(&SynthJobs { mix, model, jobs: 30, seed: 1, mean_gap: Span::ZERO });
    let usual = JobPolicy::new(Kind::Pushbox);
    let mut ramp_up = usual.clone();
    ramp_up.settings.reduces = ReduceStart::RampUp;
    let [usual, ramp_up] = [usual, ramp_up].map(|p| makespan(&t, &jobs, &p).as_secs_f64());
    assert!(ramp_up < 1.5 * usual, "{ramp_up} s for {usual}");
}
