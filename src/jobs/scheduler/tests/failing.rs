//! Hosts and racks that fail.

use super::*;

#[test]
fn a_task_on_a_dead_host_runs_again_elsewhere() {
    let t = network(2, 1, 1);
    let mut w = SchedulerWorld::new(&t, JobOrder::Fair, fair());
    w.submit(vec![map_reduce(0, (2, 100), (0, 0), 0)]);
    w.at(Time(50), SchedulerEvent::HostFailed(HostId(1)));
    w.run(Time::MAX);
    assert_eq!(w.ends(), [Some(200)]);
    let j = &w.s.snapshot().jobs[0];
    assert_eq!(
        (j.reruns, j.slot_time, w.starts.values().sum::<u32>()),
        (1, Span(50 + 100 + 100), 3)
    );
}

#[test]
fn outputs_that_are_still_needed_are_computed_again() {
    let t = network(2, 1, 2);
    let mut w = SchedulerWorld::new(&t, JobOrder::Fair, fair());
    // Maps 0-100; the reduces fetch 1000 bytes or more from 100 on; rack 1 dies at 200 with two
    // outputs and half the reduces.
    w.submit(vec![map_reduce(0, (4, 100), (2, 10), 8000)]);
    w.at(Time(200), SchedulerEvent::RackFailed(RackId(1)));
    w.run(Time::MAX);
    let s = w.s.snapshot();
    assert_eq!(
        (s.counters.outputs_lost, s.counters.hosts_failed, s.counters.jobs_finished),
        (2, 1, 1)
    );
    // Two slots are left: the two maps take 200-300 if the surviving reduce gives way, else one
    // after the other.
    assert!((310..=420).contains(&w.ends()[0].unwrap()), "{:?}", w.ends());
    assert!(w.done.iter().all(|(r, n)| *n == if r.stage == 0 && w.starts[r] == 2 { 2 } else { 1 }));
}

#[test]
fn outputs_that_nobody_needs_stay_lost_until_somebody_does() {
    let t = network(3, 1, 1);
    let mut w = SchedulerWorld::new(&t, JobOrder::Fair, Box::new(Fair::new("fair", 100, 1)));
    // Three maps 0-100; one reduce on some host computes 1000 long. The hosts that it does not run
    // on die: nothing is lost.
    w.submit(vec![map_reduce(0, (3, 100), (1, 1000), 30)]);
    w.run(Time(500));
    let on = *w.held.keys().next().unwrap();
    let others: Vec<HostId> = (0..3).map(HostId).filter(|h| *h != on.0).collect();
    w.at(Time(600), SchedulerEvent::HostFailed(others[0]));
    w.run(Time(700));
    assert_eq!((w.s.snapshot().counters.outputs_lost, w.held.len()), (0, 1));
    // Now the reduce's host dies, and everything but one output is gone.
    w.at(Time(800), SchedulerEvent::HostFailed(on.0));
    w.run(Time::MAX);
    let s = w.s.snapshot();
    assert_eq!((s.counters.outputs_lost, s.counters.jobs_finished), (2, 1));
    assert!(w.ends()[0].unwrap() >= 800 + 200 + 1000, "{:?}", w.ends());
}

#[test]
fn a_dead_cluster_goes_on_when_it_comes_back() {
    let t = network(2, 2, 1);
    let mut w = SchedulerWorld::new(&t, JobOrder::Fair, fair());
    w.submit(vec![map_reduce(0, (8, 100), (3, 10), 500)]);
    for r in 0..2 {
        w.at(Time(150), SchedulerEvent::RackFailed(RackId(r)));
        w.at(Time(5000), SchedulerEvent::RackRecovered(RackId(r)));
    }
    w.run(Time::MAX);
    assert!(w.ends()[0].unwrap() > 5000);
    assert_eq!(w.s.snapshot().counters.hosts_failed, 4);
}

#[test]
fn a_block_whose_replicas_are_all_gone_is_restored() {
    let t = network(4, 1, 1);
    let mut w = SchedulerWorld::new(&t, JobOrder::Fair, fair());
    w.submit(vec![map_reduce(0, (1, 100), (0, 0), 0)]);
    w.run(Time(10));
    let near = w.s.state().stage(JobId(0), 0).blocks[0].clone();
    near.iter().for_each(|&h| w.at(Time(50), SchedulerEvent::HostFailed(h)));
    w.run(Time::MAX);
    let s = w.s.snapshot();
    assert_eq!((s.counters.blocks_restored, s.jobs[0].reruns, s.counters.jobs_finished), (1, 1, 1));
}
