//! Small schedules that are worked out by hand.

use super::*;
use crate::placement::coscheduler::executor::CoSchedulerOptions;
use crate::placement::policy::ReduceStart;
use crate::placement::registry::Spec;
use crate::placement::{Kind, Policy};

#[test]
fn a_map_reduce_on_one_host_takes_its_waves_and_no_network() {
    let t = network(1, 1, 2);
    let mut w = SchedulerWorld::new(&t, JobOrder::Fair, fair());
    // Three maps of 10 on two slots: 0-10, 0-10, 10-20. The first reduce starts at 10 beside the
    // third map and waits for it; the second gets the map's slot at 20; 20-25 both.
    w.submit(vec![map_reduce(0, (3, 10), (2, 5), 600)]);
    w.run(Time::MAX);
    assert_eq!(w.ends(), [Some(25)]);
    let j = &w.s.snapshot().jobs[0];
    assert_eq!(
        (j.slot_time, j.near, j.shuffled, j.started),
        (Span(30 + 15 + 5), [3, 0, 0], Bytes(0), Some(Time(0)))
    );
    assert_eq!(w.sent, BTreeMap::new());
}

#[test]
fn a_shuffle_between_hosts_carries_exactly_its_bytes() {
    let t = network(2, 1, 2);
    let mut w = SchedulerWorld::new(&t, JobOrder::Fair, fair());
    // Two maps a rack by turns, all at 0-10; four reduces at 10, two a rack. Of 1602 bytes over 16
    // pairs, 100 each and 2 left over.
    w.submit(vec![map_reduce(0, (4, 10), (4, 5), 1602)]);
    w.run(Time::MAX);
    let sent = w.sent[&(JobId(0), true)];
    assert!((800..=802).contains(&sent), "half of the pairs are in one place: {sent}");
    // A flow of two maps to two reduces: 400 bytes, and the odd ones on one of them.
    assert!(matches!(w.ends()[0], Some(415..=417)), "{:?}", w.ends());
    assert_eq!(w.s.snapshot().jobs[0].shuffle_ccts.len(), 1);
}

#[test]
fn a_task_that_streams_computes_while_its_bytes_come() {
    let ends = |hosts, (maps, time), bytes| {
        let t = network(hosts, 1, 2);
        let mut w = SchedulerWorld::new(&t, JobOrder::Fair, fair());
        let mut job = map_reduce(0, (maps, 10), (maps, time), bytes);
        job.stages[1].streams = true;
        w.submit(vec![job]);
        w.run(Time::MAX);
        w.ends()[0]
    };
    // As above: the bytes come from 10 to 410, and what is left then is computed.
    assert_eq!(ends(2, (4, 5), 1600), Some(410));
    assert_eq!(ends(2, (4, 450), 1600), Some(460));
    // To wait for a map is not to compute: the second wave of maps ends at 20, then come two waves
    // of reduces.
    assert_eq!(ends(1, (3, 5), 600), Some(30));
}

#[test]
fn fair_gives_two_jobs_the_same_number_of_slots_and_fifo_does_not() {
    let t = network(1, 1, 4);
    let jobs = || vec![map_reduce(0, (8, 10), (0, 0), 0), map_reduce(0, (8, 10), (0, 0), 0)];
    let ends = |order| {
        let mut w = SchedulerWorld::new(&t, order, fair());
        w.submit(jobs());
        w.run(Time::MAX);
        w.ends()
    };
    assert_eq!(ends(JobOrder::Fair), [Some(40), Some(40)]);
    assert_eq!(ends(JobOrder::Fifo), [Some(20), Some(40)]);
    assert_eq!(ends(JobOrder::Capacity), [Some(20), Some(40)]);
}

#[test]
fn queues_share_by_weight() {
    let t = network(1, 1, 4);
    let settings = SchedulerSettings {
        order: JobOrder::Capacity,
        weights: vec![1, 3],
        ..SchedulerSettings::default()
    };
    let mut w = SchedulerWorld::with(&t, settings, fair());
    let job = |queue| JobSpec { queue, ..map_reduce(0, (6, 10), (0, 0), 0) };
    w.submit(vec![job(0), job(1)]);
    w.run(Time::MAX);
    // 1 and 3 slots while both want them: queue 1 needs two waves, then queue 0 has all four.
    assert_eq!(w.ends(), [Some(30), Some(20)]);
}

#[test]
fn a_task_far_from_its_block_reads_it_first() {
    let t = network(2, 1, 1);
    let mut w = SchedulerWorld::new(&t, JobOrder::Fair, fair());
    // With two hosts each block is on both: no read. With a third rack, one of three has none.
    w.submit(vec![map_reduce(0, (2, 10), (0, 0), 0)]);
    w.run(Time::MAX);
    assert_eq!((w.ends(), w.sent.len()), (vec![Some(10)], 0));
    let t = network(8, 1, 1);
    let mut far = 0;
    for seed in 0..20 {
        let mut w = SchedulerWorld::new(&t, JobOrder::Fair, Box::new(Fair::new("fair", 5, seed)));
        w.submit(vec![map_reduce(0, (8, 10), (0, 0), 0)]);
        w.run(Time::MAX);
        let remote = w.s.snapshot().jobs[0].near[2];
        let read = w.sent.get(&(JobId(0), false)).copied().unwrap_or(0);
        assert_eq!(
            (read, w.ends()[0]),
            (u64::from(remote) * 10, Some(if remote > 0 { 20 } else { 10 })),
            "seed {seed}"
        );
        far += remote;
    }
    assert!(far > 0, "three of eight hosts hold a block: some task is far from its block");
}

#[test]
fn delay_scheduling_waits_for_its_block_and_no_longer_than_it_says() {
    // Six hosts of one slot become free one after the other; the second job's two blocks are on
    // three of them each.
    let near = |policy: Box<dyn Placement>| {
        let t = network(6, 1, 1);
        let mut w = SchedulerWorld::new(&t, JobOrder::Fifo, policy);
        let mut first = map_reduce(0, (6, 100), (0, 0), 0);
        first.stages[0].times = TaskTimes::Each((1..=6).map(|k| Span(100 * k)).collect());
        w.submit(vec![first, map_reduce(1, (2, 30), (0, 0), 0)]);
        w.run(Time::MAX);
        let j = w.s.snapshot().jobs[1].clone();
        (j.near, j.finished.unwrap().0)
    };
    let waits =
        |host, rack| Box::new(Delay::new("delay", Waits::by_time(Span(host), Span(rack)), 5, 1));
    let (patient, end) = near(waits(1000, 1000));
    assert_eq!(patient, [2, 0, 0]);
    let (hasty, soon) = near(waits(0, 0));
    // A job that takes the first slots that come, at 100 and 130 (or 140, after reading), runs away
    // from its blocks, and is done first.
    assert!(hasty[2] > 0 && soon <= 240 && end > soon, "{hasty:?} {soon} {end}");
    // A wait that ends at 350 + 1 is over before the fourth slot comes.
    let (middling, at) = near(waits(175, 175));
    assert!(soon <= at && at <= end, "{middling:?}: {soon} {at} {end}");
}

/// Jobs on four slots, where reduces may start when half of the maps are done.
fn ramped(reduces: ReduceStart, order: JobOrder, jobs: Vec<JobSpec>) -> SchedulerWorld {
    let settings = SchedulerSettings { order, reduces, ..SchedulerSettings::default() };
    let mut w =
        SchedulerWorld::with(&network(1, 1, 4), settings, Box::new(Fair::new("fair", 50, 1)));
    w.submit(jobs);
    w.run(Time::MAX);
    w
}

#[test]
fn reduces_ramp_up_while_maps_wait_for_slots_as_in_yarn() {
    let job = || map_reduce(0, (12, 10), (4, 5), 0);
    let started = |w: &SchedulerWorld| -> Vec<u64> {
        let mut all: Vec<u64> =
            w.s.timeline().iter().filter(|r| r.task.stage == 1).map(|r| r.started.0).collect();
        all.sort_unstable();
        all
    };
    // Maps at 0-10, 10-20, 20-30 in all four slots; then the reduces, 30-35.
    let w = ramped(ReduceStart::AllPlaced, JobOrder::Fifo, vec![job()]);
    assert_eq!((started(&w), w.ends()), (vec![30; 4], vec![Some(35)]));
    // At 20, 8 of 12 maps are done and 4 wait: two of four slots (at most half) for reduces, so
    // maps run at 20-30 and 30-40. At 30 no map waits: the other reduces have slots, and wait until
    // 40.
    let w = ramped(ReduceStart::RampUp, JobOrder::Fifo, vec![job()]);
    assert_eq!(
        (started(&w), w.ends(), w.s.counters().preempted),
        (vec![20, 20, 40, 40], vec![Some(45)], 0)
    );
}

#[test]
fn reduces_give_way_where_no_map_of_their_job_has_a_slot() {
    // From 10 on the first job has two reduces and two long maps. When those end, at 100, the
    // second job has their slots by its fair share: one of the reduces gives way to a map.
    let mut first = map_reduce(0, (8, 10), (4, 5), 0);
    first.stages[0].times = TaskTimes::Each([10, 10, 10, 10, 90, 90, 90, 90].map(Span).to_vec());
    let second = map_reduce(11, (12, 40), (0, 0), 0);
    let w = ramped(ReduceStart::RampUp, JobOrder::Fair, vec![first, second]);
    assert!(w.ends().iter().all(Option::is_some) && w.s.counters().preempted == 1);
    assert_eq!(
        w.s.timeline()
            .iter()
            .filter(|r| !r.finished)
            .map(|r| (r.started.0, r.ended.0))
            .collect::<Vec<_>>(),
        [(10, 100)]
    );
    for r in w.s.timeline().iter().filter(|r| !r.finished) {
        let running = |t: u64| {
            w.s.timeline().iter().any(|m| {
                m.task.job == r.task.job && m.task.stage == 0 && m.started.0 < t && m.ended.0 > t
            })
        };
        assert!(
            r.task.stage == 1 && !running(r.ended.0),
            "a reduce gives way only where no map of its job runs: {r:?}"
        );
    }
}

#[test]
fn slowstart_holds_reduces_back() {
    let started = |slowstart| {
        let t = network(1, 1, 8);
        let mut w =
            SchedulerWorld::new(&t, JobOrder::Fair, Box::new(Fair::new("fair", slowstart, 1)));
        let mut job = map_reduce(0, (4, 10), (1, 5), 0);
        job.stages[0].times = TaskTimes::Each(vec![Span(10), Span(20), Span(30), Span(40)]);
        w.submit(vec![job]);
        w.run(Time::MAX);
        assert_eq!(w.ends(), [Some(45)]);
        w.s.timeline().iter().find(|r| r.task.stage == 1).unwrap().started.0
    };
    assert_eq!(
        [started(0), started(5), started(25), started(26), started(70), started(100)],
        [0, 10, 10, 20, 30, 40]
    );
}

#[test]
fn a_graph_of_stages_runs_in_order() {
    let t = network(2, 2, 2);
    let mut w = SchedulerWorld::new(&t, JobOrder::Fair, Box::new(Fair::new("fair", 100, 1)));
    let mut job = map_reduce(0, (2, 10), (2, 5), 40);
    job.stages = vec![
        stage("left", 2, 10, 20),
        stage("right", 2, 30, 20),
        stage("join", 2, 5, 0),
        stage("out", 1, 7, 0),
    ];
    let edge = |from, to, bytes| EdgeSpec::even(from, to, Bytes(bytes));
    job.edges = vec![edge(0, 2, 80), edge(1, 2, 80), edge(2, 3, 0)];
    w.submit(vec![job]);
    w.run(Time::MAX);
    let end = w.ends()[0].unwrap();
    assert!((30 + 5 + 7..=30 + 40 + 5 + 7).contains(&end), "{end}");
    assert_eq!(w.done.len(), 7);
}

#[test]
fn at_the_grain_of_racks_what_stays_in_a_rack_takes_no_time() {
    let t = network(1, 4, 1);
    let settings = SchedulerSettings { grain: Grain::Rack, ..SchedulerSettings::default() };
    let mut w = SchedulerWorld::with(&t, settings, fair());
    w.submit(vec![map_reduce(0, (4, 10), (4, 5), 100_000)]);
    w.run(Time::MAX);
    assert_eq!((w.ends(), w.sent.len()), (vec![Some(15)], 0));
}

#[test]
fn what_cannot_be_is_refused() {
    let t = network(1, 1, 1);
    let mut w = SchedulerWorld::new(&t, JobOrder::Fair, fair());
    let job = |id| {
        SchedulerEvent::Submitted(Box::new(JobSpec {
            id: JobId(id),
            ..map_reduce(0, (1, 1), (0, 0), 0)
        }))
    };
    let task = TaskRef { job: JobId(3), stage: 0, task: 0 };
    for bad in [
        job(1),
        SchedulerEvent::DataPlaced(JobId(0)),
        SchedulerEvent::TaskFinished(task, 1),
        SchedulerEvent::HostFailed(HostId(1)),
        SchedulerEvent::RackFailed(RackId(9)),
    ] {
        assert!(w.s.handle(bad.clone(), Time(0)).is_err(), "{bad:?}");
    }
    assert!(w.s.handle(job(0), Time(0)).is_ok());
    for late in [
        SchedulerEvent::CoflowFinished(CoflowId(7)),
        SchedulerEvent::FlowFinished(CoflowId(7), FlowId(0)),
        SchedulerEvent::Tick,
    ] {
        assert!(w.s.handle(late, Time(0)).is_ok());
    }
}

/// The racks of a job's tasks by stage, and when it ends, under Co-scheduler with an elephant
/// threshold of 30; hosts that fail for good.
fn guided(strict: bool, failed: &[(u64, u32)]) -> (Vec<BTreeSet<u32>>, Option<u64>) {
    let t = network(9, 2, 2);
    let mut spec = Spec::new(Kind::CoScheduler);
    spec.policy =
        Policy::CoScheduler(CoSchedulerOptions { strict, ..CoSchedulerOptions::default() });
    let settings = SchedulerSettings { grain: Grain::Rack, ..SchedulerSettings::default() };
    let mut policy = spec.build(Bytes(30));
    policy.plan(&t, &[]).unwrap();
    let mut w = SchedulerWorld::with(&t, settings, policy);
    // 120 bytes are four pairs of racks at T_e: two map racks of four slots for twelve maps.
    w.submit(vec![map_reduce(0, (12, 10), (6, 5), 120)]);
    failed.iter().for_each(|&(at, host)| w.at(Time(at), SchedulerEvent::HostFailed(HostId(host))));
    w.run(Time::MAX);
    let racks = |s: u32| {
        w.s.timeline().iter().filter(|r| r.task.stage == s).map(|r| r.host.0 / 2).collect()
    };
    (vec![racks(0), racks(1)], w.ends()[0])
}

#[test]
fn a_heavy_job_waits_for_its_racks_if_its_guideline_is_strict() {
    let (loose, _) = guided(false, &[]);
    assert!(loose[0].len() > 2, "slots are free everywhere: {loose:?}");
    let (strict, end) = guided(true, &[]);
    assert_eq!((strict[0].len(), strict[1].len() <= 2), (2, true), "{strict:?}");
    // Two waves of maps, then reduces of 5.
    assert!(end.is_some_and(|e| e >= 25), "{end:?}");
    // Whatever fails for good, it ends.
    for rack in 0..9 {
        assert!(
            guided(true, &[(5, 2 * rack), (5, 2 * rack + 1)]).1.is_some(),
            "without rack {rack}"
        );
    }
    for left in 0..9 {
        let all_others: Vec<(u64, u32)> =
            (0..18).filter(|h| h / 2 != left).map(|h| (5, h)).collect();
        assert!(guided(true, &all_others).1.is_some(), "with rack {left} alone");
    }
}
