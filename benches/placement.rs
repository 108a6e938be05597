//! The planners: how long they take, how that grows, and how far their plans are from the lower
//! bounds: `cargo bench --bench placement [FILTER]`. One line a case: the median of several runs
//! after one for warming up.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use heliostat::coflows::RackBytes;
use heliostat::experiment::decision::{crowded, decisions};
use heliostat::experiment::setting::network;
use heliostat::ids::{CoflowId, PlaneId, RackId};
use heliostat::paths::{Switches, Units};
use heliostat::placement::Kind;
use heliostat::placement::advisor::{
    self, NetworkState, PendingCoflow, PlacementRequest, ShuffleSpec,
};
use heliostat::placement::cluster::Cluster;
use heliostat::placement::corral::{self, CorralPlanOptions, Scenario};
use heliostat::placement::coscheduler::decide::{ScheduleQuestion, decide};
use heliostat::placement::coscheduler::network::Idle;
use heliostat::placement::coscheduler::reduces::widths;
use heliostat::placement::coscheduler::schedule::schedule;
use heliostat::placement::decision::Keep;
use heliostat::placement::hit;
use heliostat::placement::jobpacker;
use heliostat::placement::latency::hybrid::ShuffleModel;
use heliostat::placement::policy::{JobOrder, View};
use heliostat::placement::pushbox::PushBoxOptions;
use heliostat::placement::registry::Spec;
use heliostat::scheduler::state::{Grain, SchedulerSettings};
use heliostat::scheduler::{SchedulerAction, SchedulerEvent, TaskScheduler};
use heliostat::topology::graph::Graph;
use heliostat::topology::{Core, Plane, StopMode, Topology};
use heliostat::units::{BitRate, Bytes, Span, Time};
use heliostat::workload::jobs::{JobList, JobSpec, StageSpec, TaskTimes};
use heliostat::workload::synth_jobs::{Mix, SynthJobs, synth_jobs};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A published mix; arrivals uniform over `minutes` minutes, as in the papers.
fn mix(mix: Mix, jobs: usize, minutes: u64) -> Vec<JobSpec> {
    let list = synth_jobs(&SynthJobs {
        mix,
        model: mix.preset().model(),
        jobs,
        seed: 1,
        mean_gap: Span::ZERO,
    });
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut at =
        |job| JobSpec { arrival: Time(rng.random_range(0..=minutes * 60_000_000_000)), ..job };
    JobList::new("bench", list.jobs.into_iter().map(&mut at).collect()).jobs
}

/// The median time of `runs` runs, and the last result.
fn time<T>(runs: usize, mut work: impl FnMut() -> T) -> (Duration, T) {
    let mut result = work();
    let mut times: Vec<Duration> = vec![];
    for _ in 0..runs {
        let start = Instant::now();
        result = black_box(work());
        times.push(start.elapsed());
    }
    times.sort();
    (times[runs / 2], result)
}

fn corral_case(which: Mix, jobs: usize, racks: usize, scenario: Scenario, minutes: u64) {
    // Figure 5: 40 machines a rack; 8 tasks a machine (240 slots in a rack of 30, figure 2), 10
    // Gb/s and 5:1 as in section 6.1.
    let cluster = Cluster {
        racks,
        hosts: 40,
        slots: 8,
        nic: BitRate::mbit(10_000),
        core: BitRate::mbit(80_000),
        ..Cluster::corral()
    };
    let list = mix(which, jobs, minutes);
    let (took, plan) = time(5, || {
        corral::plan(
            &list,
            &cluster,
            CorralPlanOptions { scenario, ..CorralPlanOptions::default() },
        )
    });
    // How busy the racks are while jobs arrive.
    let work: f64 = plan
        .jobs
        .iter()
        .map(|p| p.finish.since(p.start).as_secs_f64() * p.racks.len() as f64)
        .sum();
    let load = if minutes == 0 { 1.0 } else { work / (minutes as f64 * 60.0 * racks as f64) };
    let (name, gap, n) = (which.name(), plan.gap * 100.0, plan.laid_out);
    println!(
        "{name} {scenario:?} {minutes}min\t{jobs} jobs\t{racks} racks\tload {load:.2}\t{took:?}\tgap {gap:.2}%\t{n} laid out"
    );
}

fn corral() {
    use Mix::{CorralW1, CorralW2, CorralW3};
    for (jobs, racks) in [
        (100, 100),
        (200, 100),
        (300, 100),
        (400, 100),
        (500, 100),
        (1000, 100),
        (500, 25),
        (500, 50),
        (500, 200),
    ] {
        corral_case(CorralW1, jobs, racks, Scenario::Batch, 0);
    }
    corral_case(CorralW2, 500, 100, Scenario::Batch, 0);
    corral_case(CorralW3, 500, 100, Scenario::Batch, 0);
    for (which, minutes) in [
        (CorralW1, 15),
        (CorralW1, 30),
        (CorralW1, 60),
        (CorralW1, 120),
        (CorralW2, 60),
        (CorralW3, 60),
    ] {
        corral_case(which, 500, 100, Scenario::Online, minutes);
    }
}

fn jobpacker() {
    for (jobs, racks) in [(250, 20), (500, 20), (1000, 20), (2000, 20), (1000, 10), (1000, 40)] {
        let cluster = Cluster { racks, ..Cluster::jobpacker() };
        let list = mix(Mix::Jobpacker, jobs, 0);
        let options = jobpacker::JobPackerPlanOptions {
            shuffle_model: ShuffleModel::Figure,
            ..jobpacker::JobPackerPlanOptions::default()
        };
        let (took, plan) = time(3, || jobpacker::plan(&list, &cluster, options));
        let heavy = plan.jobs.iter().filter(|p| p.pair.is_some()).count();
        println!(
            "jobpacker batch\t{jobs} jobs\t{racks} racks\t{took:?}\t{heavy} heavy\tmakespan {:?}",
            plan.makespan
        );
    }
}

/// One decision for one job on 60 racks of 200 busy slots.
fn co_scheduler() {
    let cluster = Cluster::co_scheduler();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut rack = || {
        let mut free: Vec<Span> =
            (0..200).map(|_| Span(rng.random_range(0..60_000_000_000))).collect();
        free.sort();
        free
    };
    let free: Vec<Vec<Span>> = (0..60).map(|_| rack()).collect();
    // 82 GB is the 95th percentile of the papers' shuffles; 20 racks of 60 T_e are the most that
    // can be asked.
    for (gb, racks, reduces) in [(10, 2, 10), (82, 8, 80), (1350, 20, 1000)] {
        let maps: Vec<(RackId, Bytes)> =
            (0..racks).map(|r| (RackId(r), Bytes(gb * 1_000_000_000 / u64::from(racks)))).collect();
        let decision = || {
            let widths = widths(&maps, reduces, &cluster);
            decide(
                &ScheduleQuestion {
                    cluster: &cluster,
                    maps: &maps,
                    reduces,
                    widths: &widths,
                    free: &free,
                },
                &Idle(&cluster),
            )
        };
        let (took, found) = time(101, decision);
        let (all, best) = found.map_or((0, 0), |d| (d.candidates.len(), d.best().racks.len()));
        println!(
            "co-scheduler decision\t{gb} GB on {racks} racks\t{reduces} reduces\t{took:?}\tbest of {all}: {best} racks"
        );
        // The whole plan of one job: racks of its data, of its maps, and of its reduces.
        let blocks = (gb * 1_000_000_000 / 256_000_000).max(1) as u32;
        let stage = |tasks, input| StageSpec {
            name: String::new(),
            tasks,
            times: TaskTimes::Even(Span::secs(80)),
            input: Bytes(input),
            output: Bytes(0),
            streams: false,
        };
        let (map, reduce) = (stage(blocks, gb * 1_000_000_000), stage(reduces, 0));
        for recurring in [true, false] {
            let job = JobSpec::map_reduce(
                "one",
                Time::ZERO,
                map.clone(),
                reduce.clone(),
                Bytes(gb * 1_000_000_000),
            );
            let list = [JobSpec { recurring, ..job }];
            let (took, _) = time(101, || schedule(&list, &cluster, 1));
            let kind = if recurring { "recurring" } else { "new" };
            println!(
                "co-scheduler whole\t{gb} GB, {blocks} maps, {reduces} reduces, {kind}\t{took:?}"
            );
        }
    }
}

/// The same questions, asked of a controller that carries `coflows` coflows from 8 racks to 8: its
/// answer beside that of the slow twin, which estimates every candidate. Of the 200 slots of a rack
/// `now` in 100 are free, the others within a minute.
fn co_decided(coflows: u32, now: u32) {
    let cluster = Cluster::co_scheduler();
    let plane = Plane {
        id: PlaneId(0),
        rate: cluster.ocs,
        delta: cluster.delta,
        stop: StopMode::NotAllStop,
        duplex: false,
    };
    let t = Topology::uniform(
        "bench",
        cluster.racks,
        cluster.hosts as usize,
        cluster.nic,
        cluster.core,
        vec![plane],
    );
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut rack = || {
        let slot = |_| {
            Span(if rng.random_range(0..100) < now {
                0
            } else {
                rng.random_range(0..60_000_000_000)
            })
        };
        let mut free: Vec<Span> = (0..200).map(slot).collect();
        free.sort_unstable();
        free
    };
    let free: Vec<Vec<Span>> = (0..cluster.racks).map(|_| rack()).collect();
    let mut open = |k: u32| {
        let racks = rand::seq::index::sample(&mut rng, cluster.racks, 16).into_vec();
        let pair = |k: usize| RackBytes {
            from: RackId::from(racks[k / 8]),
            to: RackId::from(racks[8 + k % 8]),
            bytes: Bytes(rng.random_range(cluster.elephant.0..2 * cluster.elephant.0)),
        };
        Arc::new(PendingCoflow {
            id: CoflowId(k),
            start: Time::ZERO,
            heavy: (0..64).map(pair).collect(),
            light: vec![],
        })
    };
    let standing = NetworkState {
        coflows: (0..coflows).map(&mut open).collect(),
        ..NetworkState::idle(&t, cluster.elephant)
    };
    let (laid, _) = time(21, || advisor::Occupancy::new(&t, &standing));
    println!("co-decided\t{coflows} open\tlaid out\t{laid:?}");
    for (gb, racks, reduces) in [(10, 2, 10), (82, 8, 80), (1350, 20, 1000)] {
        let maps: Vec<(RackId, Bytes)> =
            (0..racks).map(|r| (RackId(r), Bytes(gb * 1_000_000_000 / u64::from(racks)))).collect();
        let shuffle = ShuffleSpec::Open {
            maps,
            by_task: vec![],
            reduces,
            free: free.clone(),
            at_most: None,
            waves: true,
        };
        let request = PlacementRequest { shuffle, ready: Span::ZERO, deadline: None };
        let (took, p) =
            time(51, || advisor::decide(&t, &standing, &request).expect("there are slots"));
        let (slowly, twin) =
            time(5, || advisor::decide_slowly(&t, &standing, &request).expect("there are slots"));
        assert_eq!(p.chosen, twin.chosen);
        let (judged, all) = (p.losers.len() + 1, twin.losers.len() + 1);
        println!(
            "co-decided\t{coflows} open\t{now}% free\t{gb} GB on {racks} racks\t{took:?}\tslowly {slowly:?}\t{judged} of {all} estimated"
        );
    }
}

fn co_decided_cases() {
    for coflows in [0, 20, 100] {
        [0, 90].into_iter().for_each(|now| co_decided(coflows, now));
    }
}

/// Algorithms 1 and 2 with waves for a job of 40 x 10 tasks, on trees of three tiers, half of the
/// two slots of each host busy.
fn hit() {
    for (fan, hosts) in [(4_u32, 4), (8, 8), (12, 14)] {
        let rate = BitRate::mbit(1000);
        let graph = Graph::hierarchy(3, fan, 1, rate, None);
        let (racks, n) = (graph.racks.len(), graph.racks.len() * hosts);
        let mut topology = Topology::uniform(
            "tree",
            racks,
            hosts,
            rate,
            BitRate::mbit(1000 * u64::from(fan)),
            vec![],
        );
        topology.eps.core = Core::Graph(Box::new(graph));
        let net = Switches::new(&topology, Units::default());
        let (name, times) = (String::new(), TaskTimes::Even(Span::secs(10)));
        let map =
            StageSpec { name, tasks: 40, times, input: Bytes(0), output: Bytes(0), streams: false };
        let reduce = StageSpec { tasks: 10, ..map.clone() };
        let job = JobSpec::map_reduce("one", Time::ZERO, map, reduce, Bytes(10_000_000_000));
        let (took, plan) = time(11, || {
            hit::plan::plan(&job, &topology, &net, vec![1; n], hit::plan::HitPlanOptions::default())
                .expect("a plan")
        });
        let saved = 100.0 - plan.after as f64 * 100.0 / plan.before as f64;
        println!(
            "hit\t40 x 10 tasks\t{n} hosts\t{took:?}\t{} rounds\t{saved:.1} % of the cost saved",
            plan.rounds
        );
    }
}

/// PushBox: one decision about a free slot: where the first job gets it; where all hosts have more
/// than m tasks that fetch, and no coflow that waits is small enough for a wild card, so that no
/// job gets it; and there without wild cards.
fn pushbox() {
    for jobs in [400, 800, 1400] {
        let s = crowded(jobs);
        let (wait, coflows) = (s.state().ready().count(), s.snapshot().coflows);
        let most = PushBoxOptions { input_tasks: 1_000_000, ..PushBoxOptions::default() };
        let (usual, tame) = (
            PushBoxOptions::default(),
            PushBoxOptions { no_wild_card: true, ..PushBoxOptions::default() },
        );
        for (what, options) in [("room", most), ("full", usual), ("full, no wild cards", tame)] {
            let (times, taken) = decisions(&s, options);
            let (median, p99, n) =
                (times[times.len() / 2], times[times.len() * 99 / 100], times.len());
            println!(
                "pushbox {what}\t{coflows} open coflows\t{wait} jobs wait\tp50 {median:?}\tp99 {p99:?}\t{taken} of {n} taken"
            );
        }
    }
}

/// The policy `joint` on 12,000 slots, with JobPacker's mix at once and coflows that take `longer`
/// times what a circuit needs: how long all that follows from what happens at one instant takes,
/// where some task started, by how many coflows are on their way. Beside it the same with all
/// decisions kept, instant by instant.
fn joint(longer: u64) {
    let topology = Arc::new(network("joint", &Cluster::jobpacker()));
    let jobs = mix(Mix::Jobpacker, 1000, 0);
    let mut both = [Keep::None, Keep::All].map(|keep| {
        let mut policy = Spec::new(Kind::Joint).build(Bytes(54_000_000));
        policy.plan(&topology, &jobs).expect("it plans");
        let settings = SchedulerSettings {
            grain: Grain::Rack,
            order: JobOrder::Fifo,
            ..SchedulerSettings::default()
        };
        let mut s = TaskScheduler::new(topology.clone(), settings, policy);
        s.keep_decisions(keep);
        s
    });
    let mut queue: BTreeMap<(Time, usize), SchedulerEvent> = jobs
        .into_iter()
        .enumerate()
        .map(|(k, j)| ((Time::ZERO, k), SchedulerEvent::Submitted(Box::new(j))))
        .collect();
    let (mut seq, mut times) = (queue.len(), Vec::<(usize, [Duration; 2])>::new());
    while let Some((&(now, _), _)) = queue.first_key_value() {
        let mut events = vec![];
        while let Some(e) = queue.first_entry().filter(|e| e.key().0 == now) {
            events.push(e.remove());
        }
        let coflows = both[0].state().transfers.len();
        let (mut took, mut wanted) = ([Duration::ZERO; 2], [vec![], vec![]]);
        // In turn: the one that goes second finds the caches warm.
        for k in [seq % 2, 1 - seq % 2] {
            let (s, events) = (&mut both[k], events.clone());
            let start = Instant::now();
            events.into_iter().for_each(|e| s.handle(e, now).expect("it happened"));
            wanted[k].extend(std::iter::from_fn(|| s.poll_action()));
            took[k] = start.elapsed();
        }
        let [actions, same] = wanted;
        assert_eq!(actions, same);
        if actions.iter().any(|a| matches!(a, SchedulerAction::StartTask { .. })) {
            times.push((coflows, took));
        }
        for a in actions {
            let then = match a {
                SchedulerAction::PlaceData { job, .. } => (now, SchedulerEvent::DataPlaced(job)),
                SchedulerAction::Compute { task, attempt, span } => {
                    (now + span, SchedulerEvent::TaskFinished(task, attempt))
                }
                SchedulerAction::StartCoflow { coflow, .. } => {
                    let most = coflow.flows.iter().map(|f| f.bytes).max().unwrap_or(Bytes::ZERO);
                    (
                        now + BitRate::mbit(100_000).time_for(most) * longer,
                        SchedulerEvent::CoflowFinished(coflow.id),
                    )
                }
                _ => continue,
            };
            queue.insert((then.0, seq), then.1);
            seq += 1;
        }
        // Shuffles that are held begin at their time.
        if let Some(t) = both[0].poll_timeout() {
            queue.insert((t.max(now + Span(1)), seq), SchedulerEvent::Tick);
            seq += 1;
        }
    }
    for (kept, least) in [0, 1].into_iter().flat_map(|k| [0, 10, 50, 100].map(|least| (k, least))) {
        let mut of: Vec<Duration> =
            times.iter().filter(|t| t.0 >= least).map(|t| t.1[kept]).collect();
        of.sort();
        let at = |percent: usize| {
            of.get((of.len() * percent / 100).min(of.len().saturating_sub(1)))
                .copied()
                .unwrap_or_default()
        };
        println!(
            "joint x{longer}{}\t{least} coflows or more\t{} instants\tmedian {:?}\tp99 {:?}\tmax {:?}\tsum {:?}",
            ["", ", decisions kept"][kept],
            of.len(),
            at(50),
            at(99),
            at(100),
            of.iter().sum::<Duration>()
        );
    }
}

fn joint_cases() {
    [1, 30].into_iter().for_each(joint);
}

fn main() {
    let filter: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    for (name, run) in [
        ("corral", corral as fn()),
        ("jobpacker", jobpacker),
        ("co-scheduler", co_scheduler),
        ("co-decided", co_decided_cases),
        ("hit", hit),
        ("pushbox", pushbox),
        ("joint", joint_cases),
    ] {
        if filter.is_empty() || filter.iter().any(|f| name.contains(f.as_str())) {
            run();
        }
    }
}
