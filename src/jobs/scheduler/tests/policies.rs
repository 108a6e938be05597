//! What holds under every placement policy, for all jobs, networks and failures: slots, tasks, and
//! guidelines as the planners gave them.

use proptest::prelude::*;

use super::laws::{Case, case};
use super::*;
use crate::placement::baselines::shuffle_watcher::ShuffleWatcherOptions;
use crate::placement::cluster::Cluster;
use crate::placement::corral::executor::{AdHoc, LocalShuffleOptions, recurring, scenario};
use crate::placement::jobpacker::aggregate::Aggregate;
use crate::placement::registry::Spec;
use crate::placement::{Kind, Policy};
use crate::placement::{corral, jobpacker};
use crate::scheduler::record::TaskRun;

/// T_e: some shuffles are elephants, some are not.
const ELEPHANT: Bytes = Bytes(60);

/// Where a planner said that a stage's tasks are to run, and how many of them in each rack if it
/// said that.
type Promises = BTreeMap<(JobId, usize), (Vec<RackId>, Option<Vec<u32>>)>;

/// What the offline planner answers, asked here once more.
fn promises(spec: &Spec, t: &Topology, jobs: &[JobSpec]) -> Promises {
    let (known, cluster) = (recurring(jobs), Cluster::of(t, ELEPHANT));
    let mut all = Promises::new();
    if known.is_empty() {
        return all;
    }
    let scenario = scenario(&known);
    match &spec.policy {
        Policy::Corral(o) | Policy::LocalShuffle(LocalShuffleOptions(o)) => {
            let options = corral::CorralPlanOptions {
                scenario,
                imbalance_percent: o.imbalance,
                provisioning: o.provisioning,
            };
            for (p, job) in corral::guidelines(&known, &cluster, options).into_iter().zip(&known) {
                (0..job.stages.len())
                    .for_each(|s| drop(all.insert((job.id, s), (p.racks.clone(), None))));
            }
        }
        Policy::Jobpacker(o) => {
            let (shuffle_model, sub_batches, seed) =
                (o.shuffle_model, o.sub_batches, spec.common.seed);
            let keep_elephants = o.keep_elephants;
            let options = jobpacker::JobPackerPlanOptions {
                scenario,
                shuffle_model,
                sub_batches,
                keep_elephants,
                seed,
                ..jobpacker::JobPackerPlanOptions::default()
            };
            for p in jobpacker::plan(&known, &cluster, options).jobs {
                for s in &p.stages {
                    let tasks = |r: &RackId| {
                        s.groups.iter().filter(|g| g.rack == *r).map(|g| g.tasks).sum()
                    };
                    let racks = s.racks();
                    let counts = o.exact_tasks.then(|| racks.iter().map(tasks).collect());
                    all.insert((p.job, s.stage), (racks, counts));
                }
            }
        }
        _ => {}
    }
    all
}

/// A run under a policy as it is by default, and what was promised for it.
fn run(c: &Case, kind: Kind, failures: bool) -> (SchedulerWorld, Promises) {
    played(c, Spec::new(kind), failures)
}

/// A run under a policy, and what was promised for it.
fn played(c: &Case, mut spec: Spec, failures: bool) -> (SchedulerWorld, Promises) {
    let t = network(c.network.0, c.network.1, c.network.2);
    spec.common.slowstart = c.slowstart;
    let jobs = JobList::new("l", c.jobs.clone()).jobs;
    let mut placement = spec.build(ELEPHANT);
    placement.plan(&t, &jobs).expect("it plans");
    let settings = SchedulerSettings {
        order: c.order,
        weights: vec![2],
        fetch_percent: c.fetch,
        grain: c.grain,
        ..SchedulerSettings::default()
    };
    let mut w = SchedulerWorld::with(&t, settings, placement);
    w.submit(jobs.clone());
    if failures {
        c.fail(&t, &mut w);
    }
    w.run(Time::MAX);
    (w, promises(&spec, &t, &jobs))
}

/// Every attempt was on a rack that its job's planner named, but for jobs whose guideline was
/// dropped, with word of it.
fn keeps(w: &SchedulerWorld, promised: &Promises) -> Result<(), TestCaseError> {
    let s = w.s.snapshot();
    prop_assert_eq!(s.counters.violations, 0, "by the scheduler's own count");
    let dropped: BTreeSet<JobId> = s.fallbacks.iter().map(|f| f.0).collect();
    for r in w.s.timeline() {
        let rack = w.topology.rack_of(r.host);
        if let Some((racks, _)) = promised.get(&(r.task.job, r.task.stage as usize)) {
            let (job, stage) = (r.task.job, r.task.stage);
            prop_assert!(
                racks.contains(&rack) || dropped.contains(&job),
                "stage {stage} of {job} ran on {rack}, not on {racks:?}"
            );
        }
    }
    Ok(())
}

/// No two attempts held one slot at once, by the timeline that results show.
fn no_slot_twice(w: &SchedulerWorld) -> Result<(), TestCaseError> {
    let mut held: BTreeMap<(HostId, u32), Vec<(Time, Time)>> = BTreeMap::new();
    for r in w.s.timeline() {
        held.entry((r.host, r.slot)).or_default().push((r.started, r.ended));
    }
    for (slot, mut times) in held {
        times.sort_unstable();
        prop_assert!(times.windows(2).all(|p| p[0].1 <= p[1].0), "{slot:?}: {times:?}");
    }
    Ok(())
}

/// The policies that ask no program.
fn by_itself() -> Vec<Kind> {
    Kind::ALL.into_iter().filter(|k| *k != Kind::External).collect()
}

/// Free slots at time 1 of a run under ShuffleWatcher: on four hosts of two slots, each a rack,
/// jobs of 6, 4 and 3 maps.
fn free_slots(confine: bool) -> u64 {
    let t = network(4, 1, 2);
    let mut spec = Spec::new(Kind::ShuffleWatcher);
    spec.policy = Policy::ShuffleWatcher(ShuffleWatcherOptions { confine, ..Default::default() });
    let mut w = SchedulerWorld::with(&t, SchedulerSettings::default(), spec.build(ELEPHANT));
    w.submit([6, 4, 3].map(|maps| map_reduce(0, (maps, 1000), (2, 5), 4000)).to_vec());
    w.run(Time(1));
    let free = w.s.snapshot().free_slots;
    w.run(Time::MAX);
    assert!(w.s.snapshot().jobs.iter().all(|j| j.finished.is_some()));
    free
}

#[test]
fn shuffle_watcher_leaves_no_slot_empty_unless_jobs_are_confined() {
    assert_eq!(free_slots(false), 0);
    assert!(free_slots(true) > 0);
}

/// JobPacker with what is ours: whether shares of racks are exact, when reduces fetch, whether
/// pairs are left out.
fn jobpacker_with(exact_tasks: bool, aggregate: Aggregate, keep_elephants: bool) -> Spec {
    let mut spec = Spec::new(Kind::Jobpacker);
    let Policy::Jobpacker(o) = &mut spec.policy else { panic!("JobPacker's options") };
    (o.exact_tasks, o.aggregate, o.keep_elephants) = (exact_tasks, aggregate, keep_elephants);
    spec
}

#[test]
fn a_planned_rack_takes_what_another_has_no_slot_for_unless_tasks_are_exact() {
    // Two racks of two slots. An ad-hoc job holds one of them and half of the other; the recurring
    // job has two tasks for each.
    let last = |spec: Spec| {
        let t = network(2, 1, 2);
        let maps = |at, tasks, time, recurring| {
            let stages = vec![stage("map", tasks, time, 0)];
            JobSpec { recurring, stages, edges: vec![], ..map_reduce(at, (1, 1), (1, 1), 1) }
        };
        let jobs = JobList::new("l", vec![maps(0, 3, 1000, false), maps(1, 4, 10, true)]).jobs;
        let mut placement = spec.build(ELEPHANT);
        placement.plan(&t, &jobs).unwrap();
        let mut w = SchedulerWorld::with(&t, SchedulerSettings::default(), placement);
        w.submit(jobs);
        w.run(Time::MAX);
        w.s.snapshot().jobs[1].finished.unwrap()
    };
    // One slot runs all four; or two tasks wait for the rack that is full.
    let exact = jobpacker_with(true, Aggregate::Pair, false);
    assert_eq!((last(Spec::new(Kind::Jobpacker)), last(exact)), (Time(41), Time(1010)));
}

/// Corral with ad-hoc jobs that have their share of each rack, or what planned jobs leave.
fn corral_with(ad_hoc: AdHoc) -> Spec {
    let mut spec = Spec::new(Kind::Corral);
    let Policy::Corral(o) = &mut spec.policy else { panic!("Corral's options") };
    o.ad_hoc = ad_hoc;
    spec
}

#[test]
fn corrals_ad_hoc_jobs_have_their_share_of_a_rack_or_what_is_left() {
    // One rack of four slots; a recurring and an ad-hoc job of eight maps of 10 each, at once.
    let ends = |ad_hoc| {
        let t = network(1, 1, 4);
        let maps = |recurring| JobSpec {
            recurring,
            stages: vec![stage("map", 8, 10, 0)],
            edges: vec![],
            ..map_reduce(0, (1, 1), (1, 1), 1)
        };
        let jobs = JobList::new("l", vec![maps(true), maps(false)]).jobs;
        let mut placement = corral_with(ad_hoc).build(ELEPHANT);
        placement.plan(&t, &jobs).unwrap();
        let mut w = SchedulerWorld::with(&t, SchedulerSettings::default(), placement);
        w.submit(jobs);
        w.run(Time::MAX);
        [0, 1].map(|k| w.s.snapshot().jobs[k].finished.unwrap())
    };
    // Two waves of the planned job, then two of the other; or two slots each, in four waves.
    assert_eq!(
        (ends(AdHoc::Rest), ends(AdHoc::Fair)),
        ([Time(20), Time(40)], [Time(40), Time(40)])
    );
}

/// All jobs have ended, every task ran once, where its planner said, and as many in a rack as it
/// said if it did.
fn all_once_where_promised(w: &SchedulerWorld, promised: &Promises) -> Result<(), TestCaseError> {
    let s = w.s.snapshot();
    prop_assert!(s.jobs.iter().all(|j| j.finished.is_some()), "{s:?}");
    prop_assert!(w.starts.values().chain(w.done.values()).all(|&n| n == 1));
    prop_assert_eq!(w.done.len() as u64, s.jobs.iter().map(|j| j.tasks).sum::<u64>());
    prop_assert!(s.fallbacks.is_empty());
    no_slot_twice(w)?;
    keeps(w, promised)?;
    for (&(job, stage), (racks, counts)) in promised {
        let ran = |r: &RackId| {
            let here = |x: &&TaskRun| {
                (x.task.job, x.task.stage as usize, w.topology.rack_of(x.host)) == (job, stage, *r)
            };
            w.s.timeline().iter().filter(here).count() as u32
        };
        if let Some(counts) = counts {
            prop_assert_eq!(
                &racks.iter().map(ran).collect::<Vec<_>>(),
                counts,
                "stage {} of {} on {:?}",
                stage,
                job,
                racks
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(crate::testing::drawn(400))]

    /// With every option, JobPacker runs every task once, in racks of its schedule, and with exact
    /// tasks as many as it says.
    #[test]
    fn jobpacker_runs_every_task_once_in_its_racks(
        c in case(), exact in any::<bool>(), keep in any::<bool>(),
        aggregate in prop_oneof![Just(Aggregate::Total), Just(Aggregate::Pair), Just(Aggregate::Whole)],
    ) {
        let (w, promised) = played(&c, jobpacker_with(exact, aggregate, keep), false);
        all_once_where_promised(&w, &promised)?;
    }

    /// Ad-hoc jobs with a share of each rack change no guideline, whatever fails.
    #[test]
    fn corral_with_shares_for_ad_hoc_jobs_runs_all_in_their_racks(c in case(), fails in any::<bool>()) {
        let (w, promised) = played(&c, corral_with(AdHoc::Fair), fails);
        prop_assert!(w.s.snapshot().jobs.iter().all(|j| j.finished.is_some()));
        keeps(&w, &promised)?;
    }

    /// Without failures every task runs exactly once, where its planner said.
    #[test]
    fn every_policy_runs_every_task_once_and_keeps_its_guidelines(c in case(), k in 0..by_itself().len()) {
        let (w, promised) = run(&c, by_itself()[k], false);
        all_once_where_promised(&w, &promised)?;
    }

    /// Whatever fails, every job ends; a task leaves its planner's racks only when its job's
    /// guideline was dropped.
    #[test]
    fn guidelines_are_kept_or_dropped_with_word_of_it(c in case(), k in 0..by_itself().len()) {
        let (w, promised) = run(&c, by_itself()[k], true);
        let s = w.s.snapshot();
        prop_assert!(s.jobs.iter().all(|j| j.finished.is_some()), "{s:?}");
        no_slot_twice(&w)?;
        keeps(&w, &promised)?;
    }
}
