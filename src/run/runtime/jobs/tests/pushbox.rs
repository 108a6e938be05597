//! PushBox: the paper's examples (figures 2 and 4) in virtual time, with their printed numbers.
//!
//! A host receives a unit of data a second; map outputs are on another one with a far wider NIC,
//! whose slots others hold.

use std::collections::BTreeMap;

use crate::coflows::network::NetworkKind;
use crate::control::policy::{CircuitPolicy, SchedulerKind};
use crate::ids::{CoflowId, FlowId, HostId, JobId, RackId};
use crate::placement::Kind;
use crate::placement::baselines::fair::Fair;
use crate::placement::network::Needs;
use crate::placement::policy::JobOrder;
use crate::placement::policy::{Block, Locality, Pick, Placement, View};
use crate::placement::pushbox::{PushBox, PushBoxOptions};
use crate::placement::spec::Common;
use crate::runtime::jobs::report::JobsResult;
use crate::runtime::jobs::simulate::{JobRunOptions, SimulatedJobs, simulate_as};
use crate::runtime::settings::RunPlan;
use crate::scheduler::spec::JobPolicy;
use crate::topology::{Framing, Topology};
use crate::units::{BitRate, Bytes, Span, Time};
use crate::workload::jobs::{EdgeSpec, JobList, JobSpec, StageSpec, TaskTimes};

/// Bytes that the receiver takes in a second.
const UNIT: u64 = 1_000_000;
const RECEIVER: HostId = HostId(0);
const SENDER: HostId = HostId(1);

/// A policy whose first tasks are where the example has them.
struct Pinned {
    under: Box<dyn Placement>,
    /// Stages, and where their tasks go as soon as there is a slot.
    pins: Vec<(JobId, usize, HostId)>,
}

impl Placement for Pinned {
    fn name(&self) -> &'static str {
        self.under.name()
    }
    fn place_data(&mut self, view: &dyn View, job: JobId) -> Vec<Vec<Block>> {
        self.under.place_data(view, job)
    }
    fn slowstart(&self, view: &dyn View, job: JobId) -> u32 {
        self.under.slowstart(view, job)
    }
    fn needs(&mut self, topology: &Topology) -> Needs {
        self.under.needs(topology)
    }
    fn submitted(&mut self, view: &dyn View, job: JobId) {
        self.under.submitted(view, job);
    }
    fn arrived(&mut self, view: &dyn View, job: JobId, stage: usize) {
        self.under.arrived(view, job, stage);
    }
    fn offer(&mut self, view: &dyn View, rack: RackId) -> Option<Pick> {
        let waits = |job, stage| {
            view.ready().any(|j| j == job)
                && view.may_start(job, stage)
                && view.counts(job, stage).pending > 0
        };
        let pinned = self
            .pins
            .iter()
            .find(|&&(job, stage, host)| waits(job, stage) && view.free_on(host) > 0);
        match pinned {
            Some(&(job, stage, host)) => Some(Pick { host: Some(host), ..Pick::of(job, stage) }),
            None => self.under.offer(view, rack),
        }
    }
    fn prioritise(&mut self, view: &dyn View, hosts: &[HostId]) -> Vec<(CoflowId, FlowId, u8)> {
        self.under.prioritise(view, hosts)
    }
    fn wake_at(&self) -> Option<Time> {
        self.under.wake_at()
    }
    fn woken(&mut self, now: Time) {
        self.under.woken(now);
    }
    fn started(&mut self, view: &dyn View, pick: Pick, rack: RackId, near: Locality) {
        self.under.started(view, pick, rack, near);
    }
    fn stage_finished(&mut self, view: &dyn View, job: JobId, stage: usize) {
        self.under.stage_finished(view, job, stage);
    }
}

fn seconds(s: f64) -> Span {
    Span((s * 1e9) as u64)
}

fn at(s: f64) -> Time {
    Time::ZERO + seconds(s)
}

/// One map without input.
fn map_only(name: &str, arrival: Time, computes: Span) -> JobSpec {
    let map = StageSpec {
        name: "map".into(),
        tasks: 1,
        times: TaskTimes::Even(computes),
        input: Bytes(0),
        output: Bytes(0),
        streams: false,
    };
    let none = StageSpec { tasks: 0, ..map.clone() };
    JobSpec::map_reduce(name, arrival, map, none, Bytes(0))
}

/// Job A: a map that takes no time, and reduces of (data, computing time).
fn job_a(reduces: &[(u64, f64)]) -> JobSpec {
    let map = StageSpec {
        name: "map".into(),
        tasks: 1,
        times: TaskTimes::Even(Span(1)),
        input: Bytes(0),
        output: Bytes(0),
        streams: false,
    };
    let times = TaskTimes::Each(reduces.iter().map(|r| seconds(r.1)).collect());
    let reduce =
        StageSpec { name: "reduce".into(), tasks: reduces.len() as u32, times, ..map.clone() };
    let all: u64 = reduces.iter().map(|r| r.0).sum();
    let mut job = JobSpec::map_reduce("a", Time(0), map, reduce, Bytes(all * UNIT));
    job.edges[0] =
        EdgeSpec { shares: Some(reduces.iter().map(|r| r.0).collect()), ..job.edges[0].clone() };
    job
}

/// What is run: job A, others after it, and until when an earlier job holds a slot of the receiver.
struct Example {
    slots: u32,
    a: JobSpec,
    others: Vec<JobSpec>,
    held_until: Option<f64>,
}

/// When tasks got their slots, had their input and ended, in seconds since A's reduces could start,
/// by job's name and number of its task on the receiver.
struct Played {
    result: JobsResult,
    names: BTreeMap<JobId, String>,
}

impl Played {
    fn times(&self, name: &str, task: u32) -> (f64, f64, f64) {
        let of = |t: Time| (t.0 as f64 / 1e6).round() / 1e3;
        let mut there = self.result.timeline.iter().filter(|t| t.host == "h0-0");
        let t = there.find(|t| self.names[&t.task.job] == name && t.task.task == task).unwrap();
        (of(t.started), of(t.computes.unwrap()), of(t.ended))
    }
    /// Job completion time.
    fn jct(&self, name: &str) -> f64 {
        let job = self.result.jobs.iter().find(|j| j.name == name).unwrap();
        (job.jct.unwrap().as_secs_f64() * 1e3).round() / 1e3
    }
}

fn play(e: &Example, under: Box<dyn Placement>, network: NetworkKind) -> Played {
    let nic = BitRate(8 * UNIT);
    let mut t =
        Topology { framing: Framing::None, ..Topology::uniform("t", 0, 0, nic, nic, vec![]) };
    t.push_rack(1, e.slots, nic, nic);
    t.push_rack(1, 1, BitRate(8000 * UNIT), BitRate(8000 * UNIT));
    let mut jobs = vec![JobSpec { id: JobId(0), ..e.a.clone() }];
    jobs.extend(e.held_until.map(|s| map_only("early", Time(0), seconds(s))));
    jobs.extend(e.others.clone());
    // The sender's slot is free for A's map only.
    jobs.push(map_only("late", Time(1), Span::secs(1000)));
    let jobs = JobList::new("toy", jobs);
    let id = |name: &str| jobs.jobs.iter().find(|j| j.name == name).map(|j| j.id);
    let pin = |name: &str, host| id(name).map(|j| (j, 0, host));
    let pins = [pin("a", SENDER), pin("late", SENDER), pin("early", RECEIVER)]
        .into_iter()
        .flatten()
        .collect();
    let policy = CircuitPolicy { scheduler: SchedulerKind::EpsOnly, ..CircuitPolicy::default() };
    let mut plan: RunPlan = policy.into();
    plan.run.network.kind = network;
    let mut jobs_by = JobPolicy::new(Kind::Pushbox);
    jobs_by.settings.order = JobOrder::Fifo;
    let ask = SimulatedJobs {
        topology: &t,
        plan: &plan,
        jobs_by: &jobs_by,
        jobs: &jobs,
        failures: &[],
        faults: &[],
        until: Some(at(500.0)),
    };
    let result =
        simulate_as(&ask, Box::new(Pinned { under, pins }), &JobRunOptions::default(), &mut |_| {})
            .unwrap();
    Played { result, names: jobs.jobs.iter().map(|j| (j.id, j.name.clone())).collect() }
}

fn hadoop() -> Box<dyn Placement> {
    Box::new(Fair::new("fair", 100, 1))
}

fn pushbox(input_tasks: u32, hinder_slack: Span) -> Box<dyn Placement> {
    let options = PushBoxOptions { input_tasks, hinder_slack, ..PushBoxOptions::default() };
    Box::new(PushBox::new(options, &Common { slowstart: 100, ..Common::default() }))
}

/// Cases 1 to 3: R1 has 1 unit of data and computes 1, R2 has 3 of each; the second slot is free at
/// 2.
fn case_1() -> Example {
    Example { slots: 2, a: job_a(&[(1, 1.0), (3, 3.0)]), others: vec![], held_until: Some(2.0) }
}

#[test]
fn case_1a_the_small_task_first() {
    let p = play(&case_1(), hadoop(), NetworkKind::MaxMin);
    assert_eq!(
        (p.times("a", 0), p.times("a", 1), p.jct("a")),
        ((0.0, 1.0, 2.0), (2.0, 5.0, 8.0), 8.0)
    );
}

#[test]
fn case_1b_the_large_task_first() {
    let p = play(&case_1(), pushbox(2, Span::ZERO), NetworkKind::MaxMin);
    assert_eq!(
        (p.times("a", 1), p.times("a", 0), p.jct("a")),
        ((0.0, 4.0, 7.0), (2.0, 4.0, 5.0), 7.0)
    );
}

#[test]
fn case_2c_the_large_task_first_by_strict_priority() {
    let p = play(&case_1(), pushbox(2, Span::ZERO), NetworkKind::Priority);
    assert_eq!(
        (p.times("a", 1), p.times("a", 0), p.jct("a")),
        ((0.0, 3.0, 6.0), (2.0, 4.0, 5.0), 6.0)
    );
}

/// Case 3: job B, one map of 1, comes half a unit after the second slot became free.
fn case_3(input_tasks: u32, slack: f64) -> Played {
    let e = Example { others: vec![map_only("b", at(2.5), seconds(1.0))], ..case_1() };
    play(&e, pushbox(input_tasks, seconds(slack)), NetworkKind::Priority)
}

#[test]
fn case_3_without_a_yield() {
    let p = case_3(2, 0.0);
    assert_eq!((p.times("b", 0), p.jct("b"), p.jct("a")), ((5.0, 5.0, 6.0), 3.5, 6.0));
}

#[test]
fn case_3d_the_slot_is_kept_for_who_comes() {
    let p = case_3(1, 1.0);
    assert_eq!((p.times("b", 0), p.times("a", 0)), ((2.5, 2.5, 3.5), (3.5, 4.5, 5.5)));
    assert_eq!((p.jct("b"), p.jct("a")), (1.0, 6.0));
    // By the letter B's map computes for longer than the half unit that the network has left to do:
    // the slot waits for R1.
    let letter = case_3(1, 0.0);
    assert_eq!(
        (letter.times("a", 0), letter.times("b", 0), letter.jct("b")),
        ((3.0, 4.0, 5.0), (5.0, 5.0, 6.0), 3.5)
    );
}

/// Case 4: two equal tasks of 2 and 2, and job B with one map of 1.
fn case_4(under: Box<dyn Placement>, network: NetworkKind) -> Played {
    let a = job_a(&[(2, 2.0), (2, 2.0)]);
    play(
        &Example {
            slots: 2,
            a,
            others: vec![map_only("b", at(1.0), seconds(1.0))],
            held_until: None,
        },
        under,
        network,
    )
}

#[test]
fn case_4_priorities_free_a_slot_sooner_and_cost_nothing() {
    let fair = case_4(hadoop(), NetworkKind::MaxMin);
    assert_eq!(
        [fair.times("a", 0), fair.times("a", 1), fair.times("b", 0)],
        [(0.0, 4.0, 6.0), (0.0, 4.0, 6.0), (6.0, 6.0, 7.0)]
    );
    let strict = case_4(pushbox(2, Span::ZERO), NetworkKind::Priority);
    assert_eq!(
        [strict.times("a", 0), strict.times("a", 1), strict.times("b", 0)],
        [(0.0, 2.0, 4.0), (0.0, 4.0, 6.0), (4.0, 4.0, 5.0)]
    );
    assert_eq!((fair.jct("a"), strict.jct("a")), (6.0, 6.0));
}

#[test]
fn figure_4_who_would_hinder_is_refused_and_who_ends_in_time_is_not() {
    // Four slots, m = 3. M1 is long, M2 short; R1's input ends at 1.
    let others = vec![map_only("b", at(0.5), seconds(10.0)), map_only("c", at(0.6), seconds(0.3))];
    let a = job_a(&[(1, 5.0), (1, 5.0), (1, 5.0), (1, 5.0)]);
    let e = Example { slots: 4, a, others, held_until: None };
    let p = play(&e, pushbox(3, Span::ZERO), NetworkKind::Priority);
    let starts = [0, 1, 2, 3].map(|k| p.times("a", k).0);
    assert_eq!(
        (starts, p.times("c", 0), p.times("b", 0).0),
        ([0.0, 0.0, 0.0, 1.0], (0.6, 0.6, 0.9), 6.0)
    );
    assert_eq!(
        [0, 1, 2, 3].map(|k| p.times("a", k).1),
        [1.0, 2.0, 3.0, 4.0],
        "one input after the other"
    );
    // Without the test M1 has the slot, and the network has nothing to do from 3 to 6.
    let options = PushBoxOptions { no_hinder: true, ..PushBoxOptions::default() };
    let without = PushBox::new(options, &Common { slowstart: 100, ..Common::default() });
    let p = play(&e, Box::new(without), NetworkKind::Priority);
    assert_eq!((p.times("b", 0).0, p.times("a", 3).0, p.jct("a")), (0.5, 6.0, 12.0));
}
