//! `joint`: the worked example of docs/joint.md, and what holds for all jobs.

use proptest::prelude::*;

use super::*;
use crate::placement::decision::{
    Estimate, Keep, OpenSlots, PlacementDecision, RackTasks, Rule, Turn,
};
use crate::placement::joint::executor::JointOptions;
use crate::placement::policy::FlowGranularity;
use crate::placement::registry::Spec;
use crate::placement::{Kind, Policy};
use crate::units::BitRate;

/// A byte takes a nanosecond, here and in the world.
fn fast(racks: usize, slots: u32) -> Arc<Topology> {
    let rate = BitRate(8_000_000_000);
    let mut t = Topology::uniform("t", 0, 0, rate, rate, vec![]);
    (0..racks).for_each(|_| t.push_rack(1, slots, rate, rate));
    t.framing = crate::topology::Framing::None;
    Arc::new(t)
}

fn run_with(t: &Arc<Topology>, kind: Kind, order: JobOrder, jobs: Vec<JobSpec>) -> SchedulerWorld {
    run_by(t, Spec::new(kind), order, jobs)
}

fn run_by(
    t: &Arc<Topology>,
    mut spec: Spec,
    order: JobOrder,
    jobs: Vec<JobSpec>,
) -> SchedulerWorld {
    let jobs = JobList::new("l", jobs).jobs;
    spec.common.slowstart = 100;
    let mut policy = spec.build(Bytes(0));
    policy.plan(t, &jobs).unwrap();
    let mut w = SchedulerWorld::with(
        t,
        SchedulerSettings { order, ..SchedulerSettings::default() },
        policy,
    );
    w.s.keep_decisions(Keep::All);
    w.submit(jobs);
    w.run(Time::MAX);
    w
}

fn no_blocks(
    at: u64,
    map: (u32, u64),
    reduce: (u32, u64),
    shuffle: u64,
    recurring: bool,
) -> JobSpec {
    let job = JobSpec::map_reduce(
        "j",
        Time(at),
        stage("map", map.0, map.1, 0),
        stage("reduce", reduce.0, reduce.1, 0),
        Bytes(shuffle),
    );
    JobSpec { recurring, ..job }
}

/// Two racks of two slots, and three jobs at once, all known. A has 4 maps of 10 and 2 reduces of
/// 10 with 40 bytes; B 2 of 5 and 2 of 5 with 20; C 2 of 4 and one of 4 with 8.
fn example() -> Vec<JobSpec> {
    let job = |map, reduce, shuffle| no_blocks(0, map, reduce, shuffle, true);
    vec![job((4, 10), (2, 10), 40), job((2, 5), (2, 5), 20), job((2, 4), (1, 4), 8)]
}

#[test]
fn the_worked_example_of_the_document() {
    let t = fast(2, 2);
    let ends = |kind, order| {
        run_with(&t, kind, order, example())
            .ends()
            .into_iter()
            .map(Option::unwrap)
            .collect::<Vec<u64>>()
    };
    let all =
        [(Kind::Fair, JobOrder::Fifo), (Kind::Fair, JobOrder::Srpt), (Kind::Joint, JobOrder::Fifo)]
            .map(|(kind, order)| ends(kind, order));
    assert_eq!(all, [[30, 25, 37], [45, 15, 12], [40, 10, 8]]);
}

/// Its decisions, one a line: the instant, the job, its stage, its place in the order and why; then
/// where its tasks went, of maps where slots were open, of reduces the estimate: until they have
/// slots, the shuffle, what others wait, and the price. Placements that lost follow.
#[test]
fn the_decisions_of_the_worked_example() {
    let w = run_with(&fast(2, 2), Kind::Joint, JobOrder::Fifo, example());
    let racks = |all: &[RackTasks]| {
        all.iter().map(|r| format!("{}x r{}", r.tasks, r.rack.0)).collect::<Vec<_>>().join(" ")
    };
    let estimate = |e: &Estimate| {
        let (slots, shuffle, others) = (e.slots.0, e.shuffle.0, e.others.0);
        assert_eq!((e.shuffle, e.limits.circuit_pairs), (e.limits.longest(), 0));
        format!("{}: {slots} + {shuffle} + {others} = {}", racks(&e.racks), e.price.0)
    };
    let line = |d: &PlacementDecision| {
        assert_eq!((d.again, d.lost.len() as u32), (false, d.losers));
        let why = match (&d.estimate, d.rule) {
            (None, Rule::Home) => {
                let open = |o: &OpenSlots| RackTasks { rack: o.rack, tasks: o.slots };
                let open: Vec<_> = d.open.iter().map(open).collect();
                format!("{} of {}", racks(&d.racks), racks(&open))
            }
            (Some(e), Rule::LeastPrice) => estimate(e),
            other => panic!("{other:?}"),
        };
        let lost: String = d.lost.iter().map(|e| format!("; {}", estimate(e))).collect();
        let job = ["A", "B", "C"][d.job.index()];
        let Turn { place, of, by, value } = d.turn.unwrap();
        format!("{} {job}{} {place}/{of} {by:?} {}: {why}{lost}", d.at.0, d.stage, value.0)
    };
    let mut lines: Vec<String> = w.s.decisions().after(0).map(line).collect();
    lines.sort_by_key(|l| l.split(' ').next().unwrap().parse::<u64>().unwrap());
    let expected = [
        "0 B0 2/3 Work 60: 2x r1 of 2x r1",
        "0 C0 1/3 Work 28: 2x r0 of 2x r0 2x r1",
        "4 A0 2/2 Work 140: 1x r0 of 1x r0",
        "4 C1 1/2 Work 20: 1x r0: 0 + 0 + 0 = 0; 1x r1: 1 + 8 + 8 = 17",
        "5 B1 1/2 Work 50: 2x r1: 0 + 0 + 0 = 0; 1x r0 1x r1: 3 + 10 + 15 = 28; 2x r0: 9 + 20 + 30 = 59",
        "8 A0 1/1 Path 60: 1x r0 of 1x r0",
        "10 A0 1/1 Path 60: 2x r1 of 2x r1",
        "20 A1 1/1 Path 50: 1x r0 1x r1: 0 + 10 + 10 = 20; 2x r0: 0 + 20 + 10 = 30; 2x r1: 0 + 20 + 10 = 30",
    ];
    assert_eq!(lines, expected);
}

/// Nothing is kept, and nothing else changes, where nobody asks.
#[test]
fn decisions_are_kept_for_those_who_ask_and_change_nothing() {
    let t = fast(2, 2);
    let run = |keep: Keep| {
        let mut policy = Spec::new(Kind::Joint).build(Bytes(0));
        policy.plan(&t, &example()).unwrap();
        let mut w = SchedulerWorld::with(
            &t,
            SchedulerSettings { order: JobOrder::Fifo, ..SchedulerSettings::default() },
            policy,
        );
        w.s.keep_decisions(keep);
        w.submit(JobList::new("l", example()).jobs);
        w.run(Time::MAX);
        let jobs: BTreeSet<u32> = w.s.decisions().after(0).map(|d| d.job.0).collect();
        (w.log, jobs)
    };
    let (log, none) = run(Keep::None);
    assert_eq!(none, [].into());
    assert_eq!(run(Keep::Job(JobId(1))), (log.clone(), [1].into()));
    assert_eq!(run(Keep::All), (log, [0, 1, 2].into()));
}

fn jobs() -> impl Strategy<Value = Vec<JobSpec>> {
    let job =
        (0u64..60, (1u32..7, 1u64..30), (1u32..5, 1u64..30), 0u64..100, any::<bool>(), 0u32..3);
    let make = |(at, map, reduce, shuffle, recurring, queue)| JobSpec {
        queue,
        ..no_blocks(at, map, reduce, shuffle, recurring)
    };
    prop::collection::vec(job.prop_map(make), 1..6)
}

proptest! {
    #![proptest_config(crate::testing::drawn(200))]

    /// No job ends before its longest path, and all together not before the slots can have computed
    /// what came.
    #[test]
    fn no_run_is_below_a_bound(racks in 1usize..4, slots in 1u32..4, jobs in jobs()) {
        let w = run_with(&fast(racks, slots), Kind::Joint, JobOrder::Fifo, jobs.clone());
        let all = racks as u64 * u64::from(slots);
        let ends = w.ends();
        let specs = JobList::new("l", jobs).jobs;
        let work = |j: &JobSpec| j.stages.iter().map(|s| s.times.total(s.tasks).0).sum::<u64>();
        for (j, end) in specs.iter().zip(&ends) {
            let waves = |s: &StageSpec| u64::from(s.tasks).div_ceil(all) * s.times.longest().0;
            prop_assert!(end.unwrap() >= j.arrival.0 + j.stages.iter().map(waves).sum::<u64>());
        }
        let last = ends.into_iter().flatten().max().unwrap();
        for j in &specs {
            let later: u64 = specs.iter().filter(|k| k.arrival >= j.arrival).map(work).sum();
            prop_assert!(last * all >= j.arrival.0 * all + later);
        }
    }

    /// The same jobs run the same way.
    #[test]
    fn the_same_jobs_run_the_same_way(racks in 1usize..4, slots in 1u32..4, jobs in jobs()) {
        let one = || run_with(&fast(racks, slots), Kind::Joint, JobOrder::Fifo, jobs.clone()).log;
        prop_assert_eq!(one(), one());
    }

    /// Where tasks need nothing of others, no slot is free while one waits: list scheduling's bound
    /// holds.
    #[test]
    fn no_slot_is_free_while_a_task_could_start(racks in 1usize..4, slots in 1u32..4, mut jobs in jobs()) {
        for j in &mut jobs {
            (j.arrival, j.edges) = (Time::ZERO, vec![]);
        }
        let all = racks as u64 * u64::from(slots);
        let work: u64 = jobs.iter().flat_map(|j| &j.stages).map(|s| s.times.total(s.tasks).0).sum();
        let longest = jobs.iter().flat_map(|j| &j.stages).map(|s| s.times.longest().0).max().unwrap();
        let w = run_with(&fast(racks, slots), Kind::Joint, JobOrder::Fifo, jobs);
        let last = w.ends().into_iter().flatten().max().unwrap();
        prop_assert!(last * all <= work + longest * (all - 1), "{last} for {work} on {all}");
    }
}

#[test]
fn a_small_job_goes_before_the_reduces_of_a_large_one_while_more_are_expected() {
    // Two slots. Ten reduces of a large job may start at 10; a small job comes at 15, and has the
    // first slot that is free.
    let jobs =
        vec![no_blocks(0, (2, 10), (10, 10), 10, true), no_blocks(15, (1, 1), (1, 1), 1, true)];
    let ends = run_with(&fast(1, 2), Kind::Joint, JobOrder::Fifo, jobs.clone()).ends();
    assert_eq!(ends, [Some(62), Some(22)]);
    // Both at once: no more are expected, and reduces go first.
    let at_once = jobs.into_iter().map(|j| JobSpec { arrival: Time::ZERO, ..j }).collect();
    let ends = run_with(&fast(1, 2), Kind::Joint, JobOrder::Fifo, at_once).ends();
    assert!(ends[0].is_some() && ends[1].unwrap() < ends[0].unwrap(), "{ends:?}");
}

#[test]
fn parts_are_left_out() {
    let ends = |options: JointOptions, jobs: Vec<JobSpec>| {
        let spec = Spec { policy: Policy::Joint(options), ..Spec::new(Kind::Joint) };
        run_by(&fast(1, 2), spec, JobOrder::Fifo, jobs)
            .ends()
            .into_iter()
            .map(Option::unwrap)
            .collect::<Vec<u64>>()
    };
    let usual = JointOptions::default();
    // A small job after a large one, at once: the order has it go first.
    let jobs = vec![no_blocks(0, (4, 10), (1, 1), 0, true), no_blocks(0, (2, 1), (1, 1), 0, true)];
    assert!(
        ends(usual, jobs.clone())[1] < 10
            && ends(JointOptions { no_order: true, ..usual }, jobs)[1] > 20
    );
    // Small jobs without end: the guard has the large one end before them.
    let small = (0..400).map(|k| no_blocks(k * 10, (2, 10), (1, 1), 0, true));
    let jobs: Vec<JobSpec> =
        std::iter::once(no_blocks(0, (4, 40), (1, 20), 0, true)).chain(small).collect();
    assert!(
        ends(usual, jobs.clone())[0] < 1000
            && ends(JointOptions { no_guard: true, ..usual }, jobs)[0] > 4000
    );
}

#[test]
fn a_job_that_would_end_last_goes_first_on_half_of_the_slots() {
    // Eight slots. One job has 16 maps of 10 and a reduce of 200; eight small ones have 4 maps of
    // 10 and a reduce of 1. On all slots the long one would end at 220, and they begin at 20.
    let long = no_blocks(0, (16, 10), (1, 200), 0, true);
    let small = no_blocks(0, (4, 10), (1, 1), 0, true);
    let jobs: Vec<JobSpec> = std::iter::once(long).chain(std::iter::repeat_n(small, 8)).collect();
    let ends = |no_tails| {
        let policy = Policy::Joint(JointOptions { no_tails, ..JointOptions::default() });
        let spec = Spec { policy, ..Spec::new(Kind::Joint) };
        run_by(&fast(1, 8), spec, JobOrder::Fifo, jobs.clone())
            .ends()
            .into_iter()
            .map(Option::unwrap)
            .collect::<Vec<u64>>()
    };
    let (with, without) = (ends(false), ends(true));
    assert!(with[0] == 240 && without[0] > 255, "{with:?} {without:?}");
    assert_eq!(with[1..].iter().min(), Some(&11), "{with:?}");
}

#[test]
fn a_large_job_does_not_wait_for_ever_behind_small_ones() {
    // Two slots; small jobs that fill them come without end, a large one at the beginning.
    let small = (0..400).map(|k| no_blocks(k * 10, (2, 10), (1, 1), 0, true));
    let jobs: Vec<JobSpec> =
        std::iter::once(no_blocks(0, (4, 40), (1, 20), 0, true)).chain(small).collect();
    let end = |kind, order| run_with(&fast(1, 2), kind, order, jobs.clone()).ends()[0].unwrap();
    let (guarded, starved) = (end(Kind::Joint, JobOrder::Fifo), end(Kind::Fair, JobOrder::Srpt));
    assert!(guarded < 1000 && starved > 4000, "{guarded} {starved}");
}

#[test]
fn maps_go_to_racks_with_few_switches_between_them() {
    // Racks of two slots, two to a switch, and one switch above. Rack 0 has one slot that is free:
    // rack 1 would be the emptiest, with rack 2; but rack 3 is behind the same switch as rack 2.
    let mut t = (*fast(4, 2)).clone();
    let level = |join| crate::topology::graph::Level { join, uplink: t.racks[0].uplink };
    let graph = crate::topology::graph::Graph::tree(4, &[level(1), level(2)], None);
    t.eps.core = crate::topology::Core::Graph(Box::new(graph));
    let jobs = vec![no_blocks(0, (1, 50), (1, 1), 0, true), no_blocks(1, (4, 10), (1, 1), 9, true)];
    let w = run_with(&Arc::new(t), Kind::Joint, JobOrder::Fifo, jobs);
    let maps = w.hosts.iter().filter(|h| (h.0.job, h.0.stage) == (JobId(1), 0));
    assert_eq!(maps.map(|h| h.1.0).collect::<BTreeSet<_>>(), [2, 3].into());
}

#[test]
fn flows_of_a_small_shuffle_go_first_into_a_host() {
    // Two hosts of four slots. A large shuffle is on its way when a small one begins.
    let t = fast(2, 4);
    let jobs =
        vec![no_blocks(0, (8, 10), (8, 10), 9000, true), no_blocks(1, (8, 10), (2, 10), 900, true)];
    let settings =
        SchedulerSettings { flows: FlowGranularity::Task, ..SchedulerSettings::default() };
    let mut spec = Spec::new(Kind::Joint);
    spec.common.slowstart = 100;
    let mut policy = spec.build(Bytes(0));
    policy.plan(&t, &jobs).unwrap();
    let mut w = SchedulerWorld::with(&t, settings, policy);
    w.submit(jobs);
    w.run(Time::MAX);
    let told = |job: u32, priorities: &str| {
        let (of, is) = (format!("\"job\":{job},"), format!("\"flows\":{priorities}"));
        w.log.iter().any(|l| l.contains("StartCoflow") && l.contains(&of) && l.contains(&is))
    };
    assert!(told(1, "[0,0]") && told(0, "[1,2,1,2]"), "{:#?}", w.log);
}
