//! What holds for all jobs, networks, orders and failures.

use super::*;
use crate::placement::policy::{ReduceStart, View};
use proptest::prelude::*;

/// A job of up to four stages.
fn job() -> impl Strategy<Value = JobSpec> {
    let stages = prop::collection::vec((1u32..7, 0u64..60, prop::option::of(0u64..100)), 1..5);
    (0u64..200, 0u32..3, stages, prop::collection::vec(0u64..400, 6), any::<u8>()).prop_map(
        |(at, queue, stages, bytes, some)| {
            let n = stages.len();
            let all = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))).zip(bytes).enumerate();
            let edges: Vec<EdgeSpec> = all
                .filter(|(k, ((a, b), _))| a + 1 == *b || some >> k & 1 == 1)
                .map(|(k, ((from, to), bytes))| {
                    let share = |t: u32| {
                        u64::from(t == 0) + (k as u64 + u64::from(t) * 7 + u64::from(some)) % 5
                    };
                    let shares = (bytes % 3 == 0).then(|| (0..stages[to].0).map(share).collect());
                    EdgeSpec { shares, ..EdgeSpec::even(from, to, Bytes(bytes)) }
                })
                .collect();
            let stages = stages.into_iter().enumerate().map(|(k, (tasks, time, input))| {
                stage(&format!("s{k}"), tasks, time, input.unwrap_or(0))
            });
            JobSpec {
                id: JobId(0),
                name: "j".into(),
                queue,
                arrival: Time(at),
                recurring: some & 128 != 0,
                stages: stages.collect(),
                edges,
            }
        },
    )
}

#[derive(Clone, Debug)]
pub(super) struct Case {
    pub network: (usize, usize, u32),
    pub jobs: Vec<JobSpec>,
    pub order: JobOrder,
    pub slowstart: u32,
    pub fetch: u32,
    reduces: ReduceStart,
    waits: Option<(u64, u64)>,
    pub grain: Grain,
    failures: Vec<(u64, u32, u64)>,
}

impl Case {
    /// Its hosts fail and come back.
    pub fn fail(&self, t: &Topology, w: &mut SchedulerWorld) {
        for &(at, host, long) in &self.failures {
            let host = HostId(host % t.hosts.len() as u32);
            w.at(Time(at), SchedulerEvent::HostFailed(host));
            w.at(Time(at + long), SchedulerEvent::HostRecovered(host));
        }
    }
}

pub(super) fn case() -> impl Strategy<Value = Case> {
    let order = prop_oneof![Just(JobOrder::Fifo), Just(JobOrder::Fair), Just(JobOrder::Capacity)];
    let grain = prop_oneof![Just(Grain::Host), Just(Grain::Rack)];
    let reduces = prop_oneof![Just(ReduceStart::AllPlaced), Just(ReduceStart::RampUp)];
    let failures = prop::collection::vec((0u64..600, any::<u32>(), 1u64..300), 0..4);
    let how = (
        order,
        (0u32..=100, 1u32..=100, reduces),
        prop::option::of((0u64..40, 0u64..40)),
        grain,
        failures,
    );
    ((1usize..4, 1usize..4, 1u32..4), prop::collection::vec(job(), 1..5), how).prop_map(
        |(network, jobs, (order, (slowstart, fetch, reduces), waits, grain, failures))| Case {
            network,
            jobs,
            order,
            slowstart,
            fetch,
            reduces,
            waits,
            grain,
            failures,
        },
    )
}

fn run(c: &Case, failures: bool) -> SchedulerWorld {
    let t = network(c.network.0, c.network.1, c.network.2);
    let policy: Box<dyn Placement> = match c.waits {
        None => Box::new(Fair::new("fair", c.slowstart, 7)),
        Some((a, b)) => {
            Box::new(Delay::new("delay", Waits::by_time(Span(a), Span(b)), c.slowstart, 7))
        }
    };
    let settings = SchedulerSettings {
        order: c.order,
        weights: vec![2],
        reduces: c.reduces,
        fetch_percent: c.fetch,
        grain: c.grain,
        ..SchedulerSettings::default()
    };
    let mut w = SchedulerWorld::with(&t, settings, policy);
    w.submit(c.jobs.clone());
    if failures {
        c.fail(&t, &mut w);
    }
    w.run(Time::MAX);
    w
}

proptest! {
    #![proptest_config(crate::testing::drawn(150))]

    /// Without failures every task runs exactly once, every job ends, and shuffles carry what their
    /// places ask: the bytes between different places, each once. (That no slot is used twice,
    /// [`SchedulerWorld`] checks at every start.)
    #[test]
    fn every_task_runs_once(c in case()) {
        let c = Case { reduces: ReduceStart::AllPlaced, ..c };
        let w = run(&c, false);
        let s = w.s.snapshot();
        prop_assert!(s.jobs.iter().all(|j| j.finished.is_some()), "{:?}", s);
        prop_assert!(w.starts.values().chain(w.done.values()).all(|&n| n == 1));
        prop_assert_eq!(w.done.len() as u64, s.jobs.iter().map(|j| j.tasks).sum::<u64>());
        let at_rest = (s.free_slots, s.computing, s.fetching, s.coflows);
        prop_assert_eq!(at_rest, (w.topology.hosts.iter().map(|h| u64::from(h.slots)).sum(), 0, 0, 0));
        for j in &s.jobs {
            let moved = w.sent.get(&(j.id, true)).copied().unwrap_or(0);
            prop_assert_eq!(moved, j.shuffled.0);
            prop_assert_eq!(moved, between_places(&w, j.id), "job {}", j.id);
        }
        prop_assert_eq!(w.s.state().inbound.iter().sum::<u64>(), 0);
        prop_assert!(w.held.is_empty());
    }

    /// Where reduces start before the last maps, every job ends, too; a task starts again only if
    /// it gave way, and none is left that holds a slot or bytes.
    #[test]
    fn tasks_that_start_early_give_way(c in case()) {
        let w = run(&Case { reduces: ReduceStart::RampUp, ..c }, false);
        let s = w.s.snapshot();
        prop_assert!(s.jobs.iter().all(|j| j.finished.is_some()), "{:?}", s);
        prop_assert_eq!(w.starts.values().map(|&n| u64::from(n) - 1).sum::<u64>(), s.counters.preempted);
        prop_assert_eq!((s.computing, s.fetching, s.coflows, w.s.state().inbound.iter().sum::<u64>()), (0, 0, 0, 0));
        prop_assert_eq!(w.s.state().jobs.iter().count(), 0, "nothing is held of a job that is over");
        prop_assert!(w.done.values().all(|&n| n == 1) && w.held.is_empty());
    }

    /// Whatever fails and comes back, every job ends, and a task runs again only if its host
    /// failed, its output was lost or it gave way.
    #[test]
    fn failures_are_survived(c in case()) {
        let w = run(&c, true);
        let s = w.s.snapshot();
        prop_assert!(s.jobs.iter().all(|j| j.finished.is_some()), "{:?}", s);
        prop_assert_eq!(w.done.len() as u64, s.jobs.iter().map(|j| j.tasks).sum::<u64>());
        let again: u64 = w.starts.values().map(|&n| u64::from(n) - 1).sum();
        prop_assert_eq!(again, s.jobs.iter().map(|j| u64::from(j.reruns)).sum::<u64>());
        let stopped = w.s.timeline().iter().filter(|r| !r.finished).count() as u64;
        prop_assert_eq!(again, stopped + s.counters.outputs_lost);
        prop_assert_eq!((s.computing, s.fetching, s.coflows, w.s.state().inbound.iter().sum::<u64>()), (0, 0, 0, 0));
        prop_assert_eq!(w.s.state().jobs.iter().count(), 0, "nothing is held of a job that is over");
        prop_assert!(w.held.is_empty());
        if c.failures.is_empty() {
            prop_assert_eq!(again, s.counters.preempted);
        }
    }

    /// The same events give the same actions, word for word.
    #[test]
    fn it_is_deterministic(c in case()) {
        prop_assert_eq!(run(&c, true).log, run(&c, true).log);
    }

    /// Fair and FIFO leave no slot free while a task may start: after every instant, no job is
    /// ready or no slot is free.
    #[test]
    fn fair_is_work_conserving(c in case()) {
        let t = network(c.network.0, c.network.1, c.network.2);
        let mut w = SchedulerWorld::new(&t, c.order, Box::new(Fair::new("fair", c.slowstart, 7)));
        w.submit(c.jobs.clone());
        for t in (0..2000).step_by(7) {
            w.run(Time(t));
            prop_assert!(w.s.state().ready().next().is_none() || w.s.state().slots.free() == 0);
        }
    }
}

/// Slots that are given up within an instant come to a task that can use them, and do not go round
/// without an end. A host fails under jobs whose stages have all begun, so that tasks that hold
/// slots wait for lost ones.
#[test]
fn slots_that_are_given_up_do_not_go_round() {
    let spec = |at, queue, stages, edges| JobSpec {
        id: JobId(0),
        name: "j".into(),
        queue,
        arrival: Time(at),
        recurring: true,
        stages,
        edges,
    };
    let edge = |from, to, bytes, shares: Option<&[u64]>| EdgeSpec {
        shares: shares.map(Into::into),
        ..EdgeSpec::even(from, to, Bytes(bytes))
    };
    // Three stages of one job give way to the first.
    let edges = vec![
        edge(0, 1, 107, None),
        edge(0, 2, 311, None),
        edge(0, 3, 71, None),
        edge(1, 2, 129, Some(&[2, 3, 0, 2, 4])),
        edge(1, 3, 239, None),
        edge(2, 3, 288, Some(&[4])),
    ];
    let four = vec![
        stage("s0", 4, 59, 71),
        stage("s1", 6, 36, 0),
        stage("s2", 5, 45, 0),
        stage("s3", 1, 6, 52),
    ];
    let jobs = vec![
        spec(0, 0, vec![stage("s0", 2, 20, 0)], vec![]),
        spec(0, 1, vec![stage("s0", 5, 27, 29)], vec![]),
        spec(0, 0, four, edges),
    ];
    let (network, order, reduces, failures) =
        ((1, 2, 3), JobOrder::Fifo, ReduceStart::RampUp, vec![(193, 942_287_036, 39)]);
    let one = Case {
        network,
        jobs,
        order,
        slowstart: 2,
        fetch: 45,
        reduces,
        waits: None,
        grain: Grain::Rack,
        failures,
    };
    // The slot of a lost task is kept for its data, and other stages of its job could have it
    // meanwhile.
    let edges = vec![
        edge(0, 1, 122, None),
        edge(0, 3, 313, None),
        edge(1, 2, 32, None),
        edge(1, 3, 168, Some(&[3, 4, 1, 3, 0])),
        edge(2, 3, 243, Some(&[4, 0, 2, 4, 1])),
    ];
    let four = vec![
        stage("s0", 4, 42, 12),
        stage("s1", 6, 31, 81),
        stage("s2", 5, 52, 0),
        stage("s3", 5, 54, 0),
    ];
    let jobs = vec![
        spec(64, 0, vec![stage("s0", 6, 4, 10)], vec![]),
        spec(183, 0, four, edges),
        spec(
            42,
            2,
            vec![stage("s0", 3, 32, 8), stage("s1", 5, 11, 62)],
            vec![edge(0, 1, 302, None)],
        ),
        spec(
            21,
            0,
            vec![stage("s0", 4, 4, 0), stage("s1", 4, 21, 73)],
            vec![edge(0, 1, 338, None)],
        ),
    ];
    let (network, waits, failures) = ((1, 3, 2), Some((3, 20)), vec![(298, 1_684_335_407, 252)]);
    let kept = Case {
        network,
        jobs,
        order,
        slowstart: 20,
        fetch: 98,
        reduces,
        waits,
        grain: Grain::Rack,
        failures,
    };
    for case in [one, kept] {
        let w = run(&case, true);
        assert!(w.ends().iter().all(Option::is_some), "{:?}", w.s.snapshot());
    }
}

/// By looking at every pair of tasks: the bytes of a job's shuffles whose two tasks ran in
/// different places.
fn between_places(w: &SchedulerWorld, job: JobId) -> u64 {
    let j = &w.specs[job.index()];
    let place = |s: usize, k: usize| {
        w.s.state().place(w.hosts[&TaskRef { job, stage: s as u32, task: k as u32 }])
    };
    let mut sum = 0;
    for e in &j.edges {
        let (m, n) = (j.stages[e.from].tasks as usize, j.stages[e.to].tasks as usize);
        let own = e.by_receiver();
        for p in 0..m * n {
            let bytes = match &own {
                None => {
                    e.bytes.0 / (m * n) as u64 + u64::from((p as u64) < e.bytes.0 % (m * n) as u64)
                }
                Some(own) => own[p % n] / m as u64 + if p < n { own[p % n] % m as u64 } else { 0 },
            };
            sum += if place(e.from, p / n) == place(e.to, p % n) { 0 } else { bytes };
        }
    }
    sum
}
