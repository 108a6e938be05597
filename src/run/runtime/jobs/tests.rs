//! Jobs in virtual time, scheduler and controller together.

mod combinations;
mod pushbox;

use std::cell::RefCell;

use super::report::JobsResult;
use super::simulate::{EventLogLine, JobRunOptions, SimulatedJobs, simulate, simulate_with};
use crate::coflows::network::Within;
use crate::control::policy::{CircuitPolicy, Estimator, SchedulerKind};
use crate::ids::{HostId, PlaneId, RackId};
use crate::placement::coscheduler::executor::CoSchedulerOptions;
use crate::placement::{Kind, Policy};
use crate::runtime::report::RunEnd;
use crate::runtime::rows::{ResultRow, RowSink};
use crate::runtime::settings::RunPlan;
use crate::scheduler::SchedulerEvent;
use crate::scheduler::spec::JobPolicy;
use crate::scheduler::state::Grain;
use crate::sim::faults::{BrokenPart, Fault, Which};
use crate::topology::{Plane, StopMode, Topology};
use crate::units::{BitRate, Bytes, Span, Time};
use crate::workload::jobs::{JobList, JobSpec, StageSpec, TaskTimes};

pub(crate) fn network() -> Topology {
    racks(4, 2)
}

/// Racks of hosts with two slots each; circuits ten times as fast as the packet core.
pub(super) fn racks(n: u32, hosts: usize) -> Topology {
    let plane = Plane {
        id: PlaneId(0),
        rate: BitRate::mbit(1000),
        delta: Span::millis(10),
        stop: StopMode::NotAllStop,
        duplex: false,
    };
    let mut t = Topology::uniform("t", 0, 0, BitRate(8), BitRate(8), vec![plane]);
    (0..n).for_each(|_| t.push_rack(hosts, 2, BitRate::mbit(1000), BitRate::mbit(100)));
    t
}

/// A stage of `tasks` tasks of `ms` milliseconds each, which read `mb` megabytes together.
pub(super) fn stage(name: &str, tasks: u32, ms: u64, mb: u64) -> StageSpec {
    StageSpec {
        name: name.into(),
        tasks,
        times: TaskTimes::Even(Span::millis(ms)),
        input: Bytes(mb * 1_000_000),
        output: Bytes(0),
        streams: false,
    }
}

/// Six jobs, every other one recurring, a quarter of a second apart.
pub(crate) fn jobs() -> JobList {
    let job = |k: u64| {
        let (map, reduce) = (
            stage("map", 3 + k as u32, 400 + 30 * k, 8),
            stage("reduce", 2 + k as u32 % 3, 300, 0),
        );
        let spec = JobSpec::map_reduce(
            format!("j{k}"),
            Time(k * 250_000_000),
            map,
            reduce,
            Bytes(6_000_000 * (k + 1)),
        );
        JobSpec { recurring: k.is_multiple_of(2), queue: k as u32 % 2, ..spec }
    };
    JobList::new("six", (0..6).map(job).collect())
}

/// One run, and its event log; `rows` takes what ends.
fn run_with(
    kind: Kind,
    grain: Grain,
    failures: &[(Time, SchedulerEvent)],
    until: Option<Time>,
    rows: Option<RowSink>,
) -> (JobsResult, String) {
    let elephant_threshold = Bytes(2_000_000);
    let policy = CircuitPolicy {
        demand: Estimator::Declared,
        scheduler: SchedulerKind::Bipartite,
        elephant_threshold,
        ..CircuitPolicy::default()
    };
    let mut jobs_by = JobPolicy::new(kind);
    jobs_by.settings.grain = grain;
    let (topology, jobs) = (network(), jobs());
    let mut log = String::new();
    let ask = SimulatedJobs {
        topology: &topology,
        plan: &policy.into(),
        jobs_by: &jobs_by,
        jobs: &jobs,
        failures,
        faults: &[],
        until,
    };
    let mut line =
        |line: EventLogLine| log.push_str(&(serde_json::to_string(&line).unwrap() + "\n"));
    let r = simulate_with(&ask, &JobRunOptions { rows, ..JobRunOptions::default() }, &mut line)
        .unwrap();
    (r, log)
}

fn run(
    kind: Kind,
    grain: Grain,
    failures: &[(Time, SchedulerEvent)],
    until: Option<Time>,
) -> (JobsResult, String) {
    run_with(kind, grain, failures, until, None)
}

/// Every policy there is.
pub(crate) fn kinds() -> Vec<Kind> {
    // A program is asked by the runtime only.
    Kind::ALL.into_iter().filter(|k| *k != Kind::External).collect()
}

#[test]
fn every_policy_finishes_every_job_and_every_byte_arrives() {
    for kind in kinds() {
        for grain in [Grain::Host, Grain::Rack] {
            let (r, _) = run(kind, grain, &[], None);
            let s = &r.summary;
            assert_eq!(
                (s.finished, s.unfinished, s.counters.violations),
                (6, 0, 0),
                "{kind:?} {grain:?}"
            );
            assert_eq!(s.bytes_planned, s.bytes_received, "{kind:?} {grain:?}");
            assert_eq!(
                s.counters.starts,
                r.jobs.iter().map(|j| j.tasks).sum::<u64>(),
                "{kind:?}: every task once"
            );
            assert!(
                r.timeline.len() as u64 == s.counters.starts
                    && r.jobs.iter().all(|j| j.jct.unwrap() >= Span::millis(700))
            );
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_log_byte_for_byte() {
    for kind in kinds() {
        let (a, b) = (run(kind, Grain::Host, &[], None), run(kind, Grain::Host, &[], None));
        assert_eq!(a, b, "{kind:?}");
        assert!(a.1.contains("job_action") && a.1.contains("\"event\""), "both halves speak");
    }
}

#[test]
fn hosts_and_racks_may_fail_under_every_policy() {
    let at = |ms: u64| Time(ms * 1_000_000);
    let failures = [
        (at(500), SchedulerEvent::HostFailed(HostId(1))),
        (at(900), SchedulerEvent::RackFailed(RackId(2))),
        (at(1500), SchedulerEvent::RackRecovered(RackId(2))),
        (at(2500), SchedulerEvent::HostRecovered(HostId(1))),
    ];
    for kind in kinds() {
        let (r, _) = run(kind, Grain::Host, &failures, None);
        let s = &r.summary;
        assert_eq!(
            (s.finished, s.counters.violations, s.counters.hosts_failed),
            (6, 0, 3),
            "{kind:?}"
        );
        assert!(r.jobs.iter().map(|j| j.reruns).sum::<u32>() > 0, "{kind:?}: something ran there");
    }
}

/// What a run with rows tells, as the result that the same run has without them; and its event log.
fn told(
    kind: Kind,
    grain: Grain,
    failures: &[(Time, SchedulerEvent)],
    until: Option<Time>,
) -> (JobsResult, String) {
    let told = RefCell::new((vec![], vec![], vec![]));
    let take = |row: ResultRow| match row {
        ResultRow::Coflow(c) => told.borrow_mut().0.push(c.clone()),
        ResultRow::Job(j) => told.borrow_mut().1.push(j.clone()),
        ResultRow::Task(t) => told.borrow_mut().2.push(t.clone()),
    };
    let (r, log) = run_with(kind, grain, failures, until, Some(&take));
    assert!(r.jobs.is_empty() && r.coflows.is_empty() && r.timeline.is_empty(), "nothing is kept");
    let (mut coflows, mut jobs, timeline) = told.into_inner();
    coflows.sort_by_key(|c| c.id);
    jobs.sort_by_key(|j| j.id);
    (JobsResult { coflows, jobs, timeline, ..r }, log)
}

#[test]
fn rows_are_the_lists_of_the_result_and_its_sums_are_over_all_of_them() {
    let at = |ms: u64| Time(ms * 1_000_000);
    let failures = [
        (at(500), SchedulerEvent::HostFailed(HostId(1))),
        (at(900), SchedulerEvent::RackFailed(RackId(2))),
        (at(1500), SchedulerEvent::RackRecovered(RackId(2))),
        (at(2500), SchedulerEvent::HostRecovered(HostId(1))),
    ];
    for kind in kinds() {
        for grain in [Grain::Host, Grain::Rack] {
            for (failures, until) in
                [(&[][..], None), (&failures[..], None), (&failures[..], Some(at(1600)))]
            {
                assert_eq!(
                    told(kind, grain, failures, until),
                    run(kind, grain, failures, until),
                    "{kind:?} {grain:?} {until:?}"
                );
            }
        }
    }
}

/// A task of a second that makes 12.5 MB, on a network where a rack's uplink carries that in a
/// second; how long the job takes, and bytes.
fn written(tasks: u32, writes: bool, grain: Grain, kind: Kind) -> (Span, Bytes) {
    let topology = Topology { framing: crate::topology::Framing::None, ..network() };
    let policy = CircuitPolicy { scheduler: SchedulerKind::EpsOnly, ..CircuitPolicy::default() };
    let mut jobs_by = JobPolicy::new(kind);
    jobs_by.settings.grain = grain;
    let map =
        StageSpec { output: Bytes(u64::from(tasks) * 12_500_000), ..stage("map", tasks, 1000, 0) };
    let spec = JobSpec {
        stages: vec![map.clone()],
        edges: vec![],
        ..JobSpec::map_reduce("j", Time::ZERO, map.clone(), map, Bytes(1))
    };
    let jobs = JobList::new("one", vec![spec]);
    let ask = SimulatedJobs {
        topology: &topology,
        plan: &policy.into(),
        jobs_by: &jobs_by,
        jobs: &jobs,
        failures: &[],
        faults: &[],
        until: None,
    };
    let r = simulate_with(&ask, &JobRunOptions { writes, ..JobRunOptions::default() }, &mut |_| {})
        .unwrap();
    (r.jobs[0].jct.unwrap(), r.summary.bytes_received)
}

#[test]
fn a_task_is_done_when_its_output_is_on_two_other_hosts() {
    assert_eq!(written(1, false, Grain::Host, Kind::Fair), (Span::secs(1), Bytes::ZERO));
    // To another rack in a second, and from there to the neighbour by ten times as fast interfaces.
    assert_eq!(written(1, true, Grain::Host, Kind::Fair), (Span::secs(2), Bytes(25_000_000)));
    // Between racks as wholes only the first of the two takes time.
    assert_eq!(written(1, true, Grain::Rack, Kind::Fair), (Span::secs(2), Bytes(12_500_000)));
    // 4 racks of 4 slots write 16 x 12.5 MB over 4 uplinks: four seconds at least.
    let (all, bytes) = written(16, true, Grain::Rack, Kind::Corral);
    assert!(all >= Span::secs(5) && bytes == Bytes(16 * 12_500_000), "{all} {bytes}");
}

#[test]
fn jobs_that_write_finish_under_every_policy_whatever_fails() {
    let at = |ms: u64| Time(ms * 1_000_000);
    let failures = [
        (at(500), SchedulerEvent::HostFailed(HostId(1))),
        (at(900), SchedulerEvent::RackFailed(RackId(2))),
        (at(1500), SchedulerEvent::RackRecovered(RackId(2))),
    ];
    for (kind, grain) in kinds().into_iter().flat_map(|k| [(k, Grain::Host), (k, Grain::Rack)]) {
        let mut list = jobs();
        list.jobs.iter_mut().for_each(|j| j.stages[1].output = Bytes(9_000_001));
        let (topology, plan) = (network(), CircuitPolicy::default().into());
        let mut jobs_by = JobPolicy::new(kind);
        jobs_by.settings.grain = grain;
        let play = |failures| {
            let ask = SimulatedJobs {
                topology: &topology,
                plan: &plan,
                jobs_by: &jobs_by,
                jobs: &list,
                failures,
                faults: &[],
                until: None,
            };
            simulate_with(
                &ask,
                &JobRunOptions { writes: true, ..JobRunOptions::default() },
                &mut |_| {},
            )
            .unwrap()
        };
        let (r, calm) = (play(&failures), play(&[]));
        assert_eq!((r.summary.finished, calm.summary.finished), (6, 6), "{kind:?} {grain:?}");
        // Besides what the scheduler asked for, one copy of everything crosses racks; another one
        // goes to a neighbour.
        let copies = if grain == Grain::Rack { 1 } else { 2 };
        assert_eq!(
            calm.summary.bytes_received,
            calm.summary.bytes_planned + Bytes(copies * 6 * 9_000_001),
            "{kind:?} {grain:?}"
        );
        assert_eq!(play(&failures), r, "the same, to the byte");
    }
}

/// Between hosts whose uplinks never bind, without circuits.
#[test]
fn jobs_take_by_sums_about_what_they_take_by_flows() {
    let (mut topology, jobs) = (network(), jobs());
    topology.racks.iter_mut().for_each(|r| r.uplink = BitRate::mbit(2000));
    for kind in [Kind::Fair, Kind::Jobpacker, Kind::CoScheduler, Kind::Corral] {
        let [sums, flows] = [Within::Sums, Within::Greedy].map(|within| {
            let policy =
                CircuitPolicy { scheduler: SchedulerKind::EpsOnly, ..CircuitPolicy::default() };
            let mut jobs_by = JobPolicy::new(kind);
            jobs_by.settings.grain = Grain::Host;
            let mut plan: RunPlan = policy.into();
            plan.run.network.within = within;
            let ask = SimulatedJobs {
                topology: &topology,
                plan: &plan,
                jobs_by: &jobs_by,
                jobs: &jobs,
                failures: &[],
                faults: &[],
                until: None,
            };
            let r = simulate(&ask, &mut |_| ()).unwrap();
            assert_eq!(
                (r.summary.unfinished, r.summary.bytes_planned),
                (0, r.summary.bytes_received)
            );
            r
        });
        let ratio =
            sums.summary.average_jct.as_secs_f64() / flows.summary.average_jct.as_secs_f64();
        // Tasks that come a little later are placed elsewhere.
        assert!((ratio - 1.0).abs() < 0.1, "{kind:?}: {ratio}");
    }
}

#[test]
fn until_cuts_a_run_short() {
    let (r, _) = run(Kind::Fair, Grain::Host, &[], Some(Time(600_000_000)));
    assert!(r.summary.unfinished > 0 && r.network.ended == Time(600_000_000));
}

#[test]
fn a_fast_packet_core_needs_no_circuits() {
    let (fast, hybrid) =
        (run(Kind::FEps, Grain::Host, &[], None).0, run(Kind::Fair, Grain::Host, &[], None).0);
    assert!(fast.summary.average_cct < hybrid.summary.average_cct && fast.summary.ocs_share == 0.0);
}

#[test]
fn co_decided_asks_the_controller_which_holds_its_answer_until_the_shuffle_begins() {
    let (r, log) = run(Kind::CoDecided, Grain::Host, &[], None);
    let lines = |what: &str| log.lines().filter(|l| l.contains(what)).count();
    let (asked, held) = (lines("AskPlacement"), lines("coflow-proposed"));
    assert!(
        asked > 0 && asked == held && held == lines("coflow-cancelled"),
        "{asked} asked, {held} held"
    );
    assert_eq!((r.placement.as_str(), r.summary.finished), ("co-decided", 6));
    assert_eq!(run(Kind::CoScheduler, Grain::Host, &[], None).1.matches("AskPlacement").count(), 0);
}

/// Jobs under Co-scheduler with strict guidelines and T_e of 2 MB, whose shuffles wait ten minutes
/// for slots.
fn strictly(topology: &Topology, jobs: Vec<JobSpec>) -> JobsResult {
    let policy = CircuitPolicy {
        demand: Estimator::Declared,
        scheduler: SchedulerKind::Sunflow,
        elephant_threshold: Bytes(2_000_000),
        ..CircuitPolicy::default()
    };
    let mut jobs_by = JobPolicy::new(Kind::CoScheduler);
    jobs_by.placement.policy =
        Policy::CoScheduler(CoSchedulerOptions { strict: true, ..CoSchedulerOptions::default() });
    jobs_by.placement.common.patience = Span::secs(600);
    let jobs = JobList::new("strict", jobs);
    let ask = SimulatedJobs {
        topology,
        plan: &policy.into(),
        jobs_by: &jobs_by,
        jobs: &jobs,
        failures: &[],
        faults: &[],
        until: None,
    };
    simulate(&ask, &mut |_| {}).unwrap()
}

/// Racks in which reduces ran.
fn reduce_racks(r: &JobsResult) -> std::collections::BTreeSet<&str> {
    r.timeline
        .iter()
        .filter(|t| t.task.stage == 1)
        .map(|t| t.host.split('-').next().unwrap())
        .collect()
}

#[test]
fn reduces_that_wait_for_racks_with_fewer_slots_than_they_are_begin_when_those_are_full() {
    // Maps make 2.5 MB in one rack, T_e is 2 MB: one reduce rack keeps it, and has four slots for
    // six reduces.
    let job = JobSpec::map_reduce(
        "j",
        Time::ZERO,
        stage("map", 2, 300, 2),
        stage("reduce", 6, 300, 0),
        Bytes(2_500_000),
    );
    let r = strictly(&network(), vec![job]);
    assert_eq!((r.summary.finished, reduce_racks(&r).len()), (1, 1), "two waves in one rack");
    assert!(
        r.summary.average_jct < Span::secs(10),
        "{}: no task waits for a slot that does not exist",
        r.summary.average_jct
    );
}

#[test]
fn jobs_that_want_the_same_racks_do_not_wait_for_each_other() {
    // Twelve users, whose reduces take all slots of three racks. A slot for each in turn would
    // leave all with a part of what they need.
    let job = |queue| {
        let (maps, reduces) =
            (stage("map", 3, 300 + 10 * u64::from(queue), 2), stage("reduce", 12, 300, 0));
        JobSpec {
            queue,
            ..JobSpec::map_reduce(format!("j{queue}"), Time::ZERO, maps, reduces, Bytes(60_000_000))
        }
    };
    let r = strictly(&racks(4, 2), (0..12).map(job).collect());
    assert_eq!(r.summary.finished, 12);
    assert!(r.summary.makespan < Span::secs(15), "{}", r.summary.makespan);
}

#[test]
fn no_policy_looks_for_ever_at_a_network_that_is_dead() {
    let dead = Fault {
        text: "eps".into(),
        at: Time(0),
        until: None,
        what: BrokenPart::Links { which: Which::Eps, percent: 0 },
    };
    let policy = CircuitPolicy { scheduler: SchedulerKind::EpsOnly, ..CircuitPolicy::default() };
    for kind in kinds() {
        let (topology, jobs) = (network(), jobs());
        let jobs_by = JobPolicy::new(kind);
        let faults = std::slice::from_ref(&dead);
        let plan = policy.clone().into();
        let ask = SimulatedJobs {
            topology: &topology,
            plan: &plan,
            jobs_by: &jobs_by,
            jobs: &jobs,
            failures: &[],
            faults,
            until: None,
        };
        let r = simulate(&ask, &mut |_: EventLogLine| ()).unwrap();
        let end = if r.summary.unfinished > 0 { RunEnd::Stuck } else { RunEnd::Finished };
        assert_eq!(r.end, end, "{kind:?}");
    }
}

#[test]
fn jobs_with_types_have_lists_of_them_and_what_is_not_met_is_told() {
    use crate::control::policy::PathPolicy;
    use crate::control::record::{Record, RecordedEvent};
    use crate::topology::graph::{Graph, Tier};
    use crate::topology::types::Types;
    let mut topology =
        Topology::uniform("t", 4, 2, BitRate::mbit(1000), BitRate::mbit(2000), vec![]);
    topology.hosts.iter_mut().for_each(|h| h.slots = 2);
    let graph = Graph::vl2(4, 4, BitRate::mbit(1000), None);
    topology.eps.core = crate::topology::Core::Graph(Box::new(graph.clone()));
    let over = vec![Tier::Access, Tier::Aggregation, Tier::Core, Tier::Aggregation, Tier::Access];
    for (kind, paths) in [(Kind::Hit, PathPolicy::Hit), (Kind::Capacity, PathPolicy::Ecmp)] {
        let policy =
            CircuitPolicy { scheduler: SchedulerKind::EpsOnly, paths, ..CircuitPolicy::default() };
        let mut all = jobs();
        let run = |all: &JobList| {
            let (jobs_by, mut lists, mut unmet) = (JobPolicy::new(kind), vec![], 0);
            let (plan, failures) = (policy.clone().into(), []);
            let ask = SimulatedJobs {
                topology: &topology,
                plan: &plan,
                jobs_by: &jobs_by,
                jobs: all,
                failures: &failures,
                faults: &[],
                until: None,
            };
            let r = simulate(&ask, &mut |line: EventLogLine| match line {
                EventLogLine::Network(Record {
                    what: RecordedEvent::Paths { lists: l, .. },
                    ..
                }) => lists.extend(l.into_iter().filter_map(|s| s.list)),
                EventLogLine::Network(Record {
                    what: RecordedEvent::TypesUnmet { pairs, .. },
                    ..
                }) => unmet += pairs,
                _ => {}
            });
            assert_eq!(r.unwrap().summary.finished, 6);
            (lists, unmet)
        };
        let (free, none) = run(&all);
        assert_eq!((none, free.is_empty()), (0, paths == PathPolicy::Ecmp), "{kind:?}");
        all.jobs.iter_mut().flat_map(|j| &mut j.edges).for_each(|e| e.types = Types(over.clone()));
        let (typed, unmet) = run(&all);
        let tiers = |l: &crate::paths::List| {
            l.0.iter().map(|&s| graph.switches[s as usize].tier).collect::<Vec<_>>()
        };
        let (met, others): (Vec<_>, Vec<_>) = typed.iter().partition(|l| tiers(l) == over);
        assert!(
            !met.is_empty() && others.iter().all(|l| l.0.len() == 1 || l.0.len() == 3),
            "{kind:?}: {others:?}"
        );
        println!(
            "{kind:?}: {} lists with the types, {} others, {unmet} pairs without",
            met.len(),
            others.len()
        );
    }
}
