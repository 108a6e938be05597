use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use super::assumptions::Assumptions;
use super::claim::{Claim, ClaimSide, ClaimVerdict, Printed};
use super::report::ExperimentReport;
use super::runs::{FLOOR, Measure, Outcomes, run};
use super::setting::JobSource;
use super::*;
use crate::units::{Bytes, Span};
use crate::workload::synth_jobs::Mix;

const PAPERS: [Paper; 5] =
    [Paper::Jobpacker, Paper::CoScheduler, Paper::Corral, Paper::Hit, Paper::Pushbox];

fn size(repeats: usize, jobs_percent: usize) -> Size {
    Size { seed: 5, repeats, jobs_percent, thin: false, free: Assumptions::default() }
}

#[test]
fn every_claim_is_about_something_that_is_run() {
    for paper in PAPERS {
        let e = paper.experiment(size(1, 100));
        let known: BTreeSet<(&str, &str)> = e
            .settings
            .iter()
            .flat_map(|s| s.systems.iter().map(move |y| (s.name, y.name)))
            .collect();
        let systems = e.settings.iter().map(|s| s.systems.len()).sum::<usize>();
        assert_eq!(known.len(), systems, "{paper:?}: names are used once");
        for c in &e.claims {
            assert!(known.contains(&(c.of.setting, c.of.system)), "{c:?}");
            assert!(c.against.is_none_or(|b| known.contains(&(b.setting, b.system))), "{c:?}");
        }
    }
}

#[test]
fn the_shipped_cluster_is_the_papers() {
    let file = include_str!("../../topologies/jobpacker-20.yaml");
    let shipped = crate::config::read_topology(file, "jobpacker-20.yaml").expect("it is valid");
    assert_eq!(
        shipped,
        setting::network("jobpacker-20", &crate::placement::cluster::Cluster::jobpacker())
    );
}

#[test]
fn what_pushboxs_experiment_runs_is_what_is_shipped() {
    let e = Paper::Pushbox.experiment(size(1, 100));
    let files = [
        ("PushBox", include_str!("../../policies/pushbox.yaml")),
        ("NEAT", include_str!("../../policies/neat.yaml")),
    ];
    for (name, file) in files {
        let shipped = crate::config::read_policy(file, name).expect("it is valid");
        let jobs_by = shipped.jobs.as_ref().expect("it places tasks");
        let ran = |setting: &str| {
            e.settings
                .iter()
                .find(|s| s.name == setting)
                .unwrap()
                .systems
                .iter()
                .find(|s| s.name == name)
                .unwrap()
        };
        // The testbed's slowstart is the shipped one; where the trace's arrivals are its shuffles',
        // reduces wait for all maps.
        assert_eq!(ran("W1").jobs_by.placement, jobs_by.placement);
        // In the paper's network between clusters a rack is as good as local.
        for s in e
            .settings
            .iter()
            .filter(|s| s.name != "FIFO" && !(s.name.starts_with("fan-in") && name == "PushBox"))
            .flat_map(|s| &s.systems)
            .filter(|s| s.name == name)
        {
            assert_eq!(s.plan.run.network, shipped.run.network, "{name}");
            assert_eq!(s.jobs_by.placement.policy, jobs_by.placement.policy, "{name}");
            let of = |s: &crate::scheduler::state::SchedulerSettings| (s.fetch_percent, s.flows);
            assert_eq!(of(&s.jobs_by.settings), of(&jobs_by.settings));
        }
    }
}

#[test]
fn the_papers_loads_are_drawn() {
    let load = JobSource::new(Mix::Jobpacker, 1000, Span::secs(5400), 50, size(1, 100));
    let list = load.draw(3);
    let recurring = list.jobs.iter().filter(|j| j.recurring).count();
    let last = list.jobs.last().unwrap().arrival;
    assert!(
        list.jobs.len() == 1000
            && (430..570).contains(&recurring)
            && (5300..=5400).contains(&(last.0 / 1_000_000_000))
    );
    assert_eq!(
        (load.draw(3), JobSource { scale: 100, ..load.clone() }.draw(3).jobs[7].tasks()),
        (list.clone(), list.jobs[7].tasks())
    );
    let small = JobSource { scale: 100, ..load }.draw(3).jobs[7].shuffle_bytes().0;
    assert_eq!(small, list.jobs[7].shuffle_bytes().0.div_ceil(100));
}

#[test]
fn a_small_experiment_runs_and_does_not_depend_on_the_threads() {
    let size = size(2, 5);
    let mut e = Paper::Jobpacker.experiment(size);
    e.settings.retain(|s| s.name == "GENI batch");
    let one = |threads| run(&e, size, threads, &AtomicBool::new(false), &|_| {}).unwrap();
    let outcomes = one(1);
    assert_eq!(outcomes, one(3));
    let unfinished = outcomes.values("GENI batch", "JobPacker", Measure::Unfinished);
    assert_eq!((unfinished, outcomes.is_partial()), (vec![0.0, 0.0], false));
    let r = ExperimentReport::new(&e, &outcomes, 1.0, 1);
    let batch = r.rows.iter().find(|r| r.setting == "GENI batch").unwrap();
    assert_eq!(
        r.tally().iter().map(|t| t.1).sum::<usize>(),
        r.rows.iter().filter(|r| r.verdict.is_prediction()).count()
    );
    assert!(
        batch.values.len() == 2 && batch.half.is_some() && batch.verdict != ClaimVerdict::NotRun
    );
    assert!(
        r.rows.iter().filter(|r| r.setting == "online").all(|r| r.verdict == ClaimVerdict::NotRun)
    );
}

#[test]
fn floors_are_of_the_repetitions_that_all_systems_have() {
    let size = size(2, 5);
    let mut e = Paper::Jobpacker.experiment(size);
    e.settings.retain(|s| s.name == "GENI batch");
    let outcomes = run(&e, size, 2, &AtomicBool::new(false), &|_| {}).unwrap();
    let bounds = |keep: &dyn Fn(usize, &str) -> bool| {
        let (setting, mut runs) = (&e.settings[0], vec![]);
        for name in setting.systems.iter().map(|y| y.name).chain([FLOOR]) {
            let of = outcomes.of(setting.name, name).iter().cloned().enumerate();
            runs.extend(of.map(|(k, o)| ((setting.name, name), o.filter(|_| keep(k, name)))));
        }
        ExperimentReport::new(&e, &Outcomes::new(size, runs), 1.0, 1).bounds
    };
    let (first, stopped) = (bounds(&|k, _| k == 0), bounds(&|k, name| k == 0 || name != "Corral"));
    assert!(!first.is_empty() && first.iter().all(|b| b.runs == 1));
    assert_eq!(stopped, first, "the second repetition has no Corral");
    assert!(bounds(&|_, _| true).iter().all(|b| b.runs == 2));
}

#[test]
fn the_systems_of_a_setting_have_one_grain() {
    for paper in [Paper::Jobpacker, Paper::CoScheduler, Paper::Corral] {
        for s in paper.experiment(size(1, 100)).settings {
            assert!(
                s.systems
                    .windows(2)
                    .all(|y| y[0].jobs_by.settings.grain == y[1].jobs_by.settings.grain),
                "{paper:?}, {}",
                s.name
            );
        }
    }
}

#[test]
fn flows_go_between_the_places_that_are_asked_for() {
    for paper in PAPERS {
        let mut e = paper.experiment(size(1, 100));
        let grains = |e: &Experiment, grain| {
            e.settings.iter().flat_map(|s| &s.systems).all(|y| y.jobs_by.settings.grain == grain)
        };
        e.between(Grain::Host).expect("every system may look at hosts");
        assert!(grains(&e, Grain::Host), "{paper:?}");
        let by_host = matches!(paper, Paper::Hit | Paper::Pushbox);
        let told = e.between(Grain::Rack);
        assert!(
            told.as_ref().is_err_and(|why| why.contains("allowed: host")) == by_host,
            "{paper:?}: {told:?}"
        );
        assert!(grains(&e, if by_host { Grain::Host } else { Grain::Rack }), "{paper:?}");
    }
}

#[test]
fn jobpacker_is_the_published_one_and_ours_is_the_shipped_file() {
    let e = Paper::Jobpacker.experiment(size(1, 100));
    for setting in ["batch", "online", "mixed", "GENI batch", "GENI online", "GENI mixed"] {
        let s = e.settings.iter().find(|s| s.name == setting).unwrap();
        let options = |name: &str| match s
            .systems
            .iter()
            .find(|y| y.name == name)
            .unwrap()
            .jobs_by
            .placement
            .policy
        {
            crate::placement::Policy::Jobpacker(o) => {
                (o.shuffle_model, o.aggregate, o.exact_tasks, o.keep_elephants)
            }
            _ => panic!("JobPacker's options"),
        };
        let file = |name: &str| {
            let text = crate::testing::shipped(&format!("policies/{name}.yaml"));
            match crate::config::read_policy(&text, name).unwrap().jobs.unwrap().placement.policy {
                crate::placement::Policy::Jobpacker(o) => {
                    (o.shuffle_model, o.aggregate, o.exact_tasks, o.keep_elephants)
                }
                _ => panic!("JobPacker's options"),
            }
        };
        assert_eq!(
            (options("JobPacker"), options("JobPacker, ours")),
            (file("jobpacker"), file("jobpacker-ours"))
        );
        assert_ne!(options("JobPacker"), options("JobPacker, ours"));
    }
}

#[test]
fn hits_shuffles_cross_fewer_switches_than_capacitys() {
    let size = size(1, 100);
    let mut e = Paper::Hit.experiment(size);
    e.settings.retain(|s| s.name == "one heavy job");
    let outcomes = run(&e, size, 1, &AtomicBool::new(false), &|_| {}).unwrap();
    let of = |system, measure| outcomes.values("one heavy job", system, measure)[0];
    let both = |measure| (of("Capacity", measure), of("Hit", measure));
    // 10 GB from 16 maps to 4 reduces, over 1 to 5 switches; hops count both hosts.
    let (capacity, hit) = both(Measure::ShuffleCost);
    assert!(hit < 0.8 * capacity && capacity < 50.0, "{hit} {capacity}");
    let (capacity, hit) = both(Measure::RouteLength);
    assert!(
        hit < capacity && (3.0..=7.0).contains(&hit) && (3.0..=7.0).contains(&capacity),
        "{hit} {capacity}"
    );
    assert_eq!(
        (both(Measure::ShuffleShare), both(Measure::Unfinished)),
        ((100.0, 100.0), (0.0, 0.0)),
        "nothing is read from afar"
    );
    assert!(of("PNA", Measure::Throughput) > 0.0 && of("Hit", Measure::ReduceTime) > 0.0);
}

#[test]
fn pushboxs_systems_run_on_its_testbed_and_on_a_trace() {
    let text = "4 3\n1 0 2 0 1 2 2:40.0 3:120.0\n2 900 1 2 1 0:3.0\n3 1000 3 0 1 2 1 3:300.0\n";
    let trace = std::sync::Arc::new(crate::workload::coflow_benchmark::parse(text).unwrap());
    let traces = Traces { coflows: Some(trace), ..Traces::default() };
    let size = Size { thin: true, ..size(1, 100) };
    let mut e = Paper::Pushbox.experiment_with(size, &traces);
    let sweeps = |e: &Experiment| {
        e.settings
            .iter()
            .filter(|s| s.name.ends_with("machines") || s.name.starts_with("fan-in"))
            .count()
    };
    assert_eq!(
        (
            sweeps(&e),
            sweeps(&Paper::Pushbox.experiment_with(Size { thin: false, ..size }, &traces))
        ),
        (5, 11)
    );
    let queues = e.settings.iter().find(|s| s.name == "multi-queue").unwrap().load.draw(1);
    assert_eq!(
        queues.jobs.iter().map(|j| (j.queue, j.arrival.0 / 1_000_000)).collect::<Vec<_>>(),
        [(1, 0), (0, 900), (1, 1000)]
    );
    let double = JobSource { bytes_percent: 200, ..e.settings[2].load.clone() }.draw(1);
    assert_eq!(double.jobs[0].edges[0].by_receiver().unwrap(), [80_000_000, 240_000_000]);
    e.only(
        &[
            "W2".into(),
            "Fair".into(),
            "FIFO".into(),
            "multi-queue".into(),
            "m = 2".into(),
            "400 coflows".into(),
        ],
        &[],
    )
    .unwrap();
    let outcomes = run(&e, size, 2, &AtomicBool::new(false), &|_| {}).unwrap();
    for s in &e.settings {
        for y in &s.systems {
            let of = |m| outcomes.values(s.name, y.name, m).first().copied();
            if s.name == "m = 2" {
                assert!(of(Measure::Utilisation).is_some_and(|u| u > 80.0 && u <= 100.0));
                continue;
            }
            if s.name == "400 coflows" {
                assert!(of(Measure::Decision).is_some_and(|us| us > 0.0));
                continue;
            }
            assert_eq!(of(Measure::Unfinished), Some(0.0), "{}, {}", s.name, y.name);
            let [mean, p95, p99] =
                [Measure::MeanJct, Measure::P95Jct, Measure::P99Jct].map(|m| of(m).unwrap());
            assert!(
                mean > 0.0 && mean <= p95 && p95 <= p99,
                "{}, {}: {mean} {p95} {p99}",
                s.name,
                y.name
            );
        }
    }
    let drawn =
        Paper::Pushbox.experiment(Size { jobs_percent: 10, ..size }).settings[2].load.draw(3);
    let bytes: u64 = drawn.jobs.iter().map(|j| j.shuffle_bytes().0).sum();
    let last = drawn.jobs.last().unwrap().arrival.since(crate::units::Time::ZERO);
    // 35.5 TB in 3629 s.
    let load = bytes as f64 / last.as_secs_f64() / (35.5e12 / 3629.0);
    assert!(drawn.jobs.len() == 53 && (1.0..1.3).contains(&load), "{load}");
}

#[test]
fn the_planners_own_figures_are_measured_without_a_run() {
    let size = size(1, 1);
    let mut e = Paper::Corral.experiment(size);
    e.settings.retain(|s| s.name.starts_with("plan"));
    let outcomes = run(&e, size, 1, &AtomicBool::new(false), &|_| {}).unwrap();
    assert!(outcomes.values("plan batch", "planner", Measure::Gap)[0] >= 0.0);
    assert!(outcomes.values("plan batch", "planner", Measure::Makespan).is_empty());
}

#[test]
fn verdicts_say_how_ours_stands_to_the_papers() {
    let side = ClaimSide { setting: "s", system: "y" };
    let claim = |against: bool, printed| Claim {
        against: against.then_some(side),
        ..Claim::of(Measure::OcsShare, ("s", "y"), printed, "")
    };
    let verdict = |printed, mean, half| claim(true, printed).verdict(mean, Some(half));
    use ClaimVerdict::{
        CannotTell, Differs, FarLess, Near, Opposite, Same, SameDirection, Unclear,
    };
    let about = Printed::About(40.0);
    // A tenth of it, a third, more; less than a third of it; and intervals that hold zero, or that
    // are wider than what is printed.
    let found = [(44.0, 1.0), (53.0, 1.0), (70.0, 1.0), (26.0, 1.0), (13.0, 1.0), (-3.0, 1.0)]
        .map(|(m, h)| verdict(about, m, h));
    assert_eq!(found, [Same, Near, SameDirection, SameDirection, FarLess, Opposite]);
    assert_eq!(
        [(9.0, 20.0), (39.5, 36.2), (26.0, 15.0)].map(|(m, h)| verdict(about, m, h)),
        [Unclear; 3]
    );
    // A gain of nothing is no gain of fifteen per cent, however sure it is.
    assert_eq!(
        [(0.1, 0.1), (0.1, 0.05), (4.0, 1.0)].map(|(m, h)| verdict(Printed::About(15.0), m, h)),
        [Unclear, FarLess, FarLess]
    );
    let range = Printed::Between(10.0, 33.0);
    // The mean is as printed, but the interval holds zero; up to its very end.
    let near_zero = [(15.2, 22.2), (15.2, 15.2), (15.2, 15.1), (-15.2, 15.2), (-15.2, 15.1)]
        .map(|(m, h)| verdict(range, m, h));
    assert_eq!(near_zero, [Unclear, Unclear, Same, Unclear, Opposite]);
    assert_eq!(verdict(Printed::Between(30.0, 56.0), 43.2, 44.4), Unclear);
    assert_eq!(claim(true, range).verdict(15.2, None), Same, "one repetition has no interval");
    assert_eq!(
        [10.0, 33.0, 34.0, 60.0, 7.0, 3.0].map(|m| verdict(range, m, 0.5)),
        [Same, Same, Near, SameDirection, Near, FarLess]
    );
    // Within 5 % of each other: no side is meant to be better.
    let equal = Printed::Between(-5.0, 5.0);
    assert_eq!(
        [(-4.0, 9.0), (-6.0, 0.5), (-9.4, 9.0), (30.0, 5.0)].map(|(m, h)| verdict(equal, m, h)),
        [Same, Near, Unclear, Differs]
    );
    let share = |printed, mean, half| claim(false, printed).verdict(mean, Some(half));
    assert_eq!(
        (share(Printed::AtLeast(96.0), 99.0, 1.0), share(Printed::AtMost(23.0), 25.0, 1.0)),
        (Same, Near)
    );
    assert_eq!(
        [(95.2, 98.4, 0.4), (0.8, 0.0, 0.0), (33.0, 9.3, 28.9), (33.0, 9.3, 2.0)]
            .map(|(p, m, h)| share(Printed::About(p), m, h)),
        [Same, Same, Unclear, Differs]
    );
    assert_eq!(
        [(0.04, 0.01), (-0.04, 0.0)].map(|(m, h)| verdict(Printed::AtLeast(0.0), m, h)),
        [Unclear; 2],
        "it is shown as 0.0"
    );
    assert_eq!(
        [(0.0, 0.0), (3.0, 0.0), (-3.0, 1.0)].map(|(m, h)| verdict(Printed::AtLeast(0.0), m, h)),
        [Unclear, Same, Opposite]
    );
    let time = Claim { measure: Measure::MeanJct, ..claim(false, Printed::About(1200.0)) };
    assert_eq!([1250.0, 1350.0, 700.0].map(|t| time.verdict(t, Some(1.0))), [Same, Near, Differs]);
    let open = Claim { untold: Some("the paper does not say"), ..claim(true, about) }
        .verdict(40.0, Some(0.1));
    assert!(open == CannotTell && !open.is_prediction(), "no agreement, however near");
}

/// The results that the documentation shows: each verdict follows from the numbers in its row.
#[test]
fn the_verdicts_in_the_results_are_those_of_their_numbers() {
    let number = |t: &str| -> f64 { t.parse().unwrap_or_else(|_| panic!("no number: {t}")) };
    let printed = |t: &str| match (t.strip_prefix("> "), t.strip_prefix("< "), t.split_once(" to "))
    {
        (Some(a), ..) => Printed::AtLeast(number(a)),
        (_, Some(b), _) => Printed::AtMost(number(b)),
        (_, _, Some((a, b))) => Printed::Between(number(a), number(b)),
        _ => Printed::About(number(t)),
    };
    let mut seen = 0;
    for paper in PAPERS {
        let name = clap::ValueEnum::to_possible_value(&paper).unwrap();
        let text =
            crate::testing::shipped(&format!("docs/results/experiment-{}.csv", name.get_name()));
        for line in text.lines().filter(|l| !l.starts_with('#')).skip(1) {
            // Cells with commas stand in quotes.
            let quoted: Vec<String> = line
                .split('"')
                .enumerate()
                .map(|(k, t)| if k % 2 == 1 { t.replace(',', ";") } else { t.into() })
                .collect();
            let line = quoted.concat();
            let cells: Vec<&str> = line.split(',').collect();
            let [setting, figure, unit, paper, mean, half, _, _, verdict, source] = cells[..]
            else {
                panic!("{line}")
            };
            let settled = [
                ClaimVerdict::Calibrated,
                ClaimVerdict::CannotTell,
                ClaimVerdict::BeyondBound,
                ClaimVerdict::Ours,
            ]
            .iter()
            .any(|v| v.words() == verdict);
            if paper.is_empty() || half.is_empty() || settled {
                continue;
            }
            let side = ClaimSide { setting: "s", system: "y" };
            let measure = match unit {
                "hops" => Measure::RouteLength,
                "GB" => Measure::ShuffleCost,
                "us" => Measure::Decision,
                "s" => Measure::MeanJct,
                _ if ["gap", "variation", "makespan of"].iter().any(|w| figure.starts_with(w)) => {
                    Measure::Gap
                }
                _ => Measure::OcsShare,
            };
            let against = figure.contains(" vs ").then_some(side);
            let claim = Claim { against, ..Claim::of(measure, ("s", "y"), printed(paper), "") };
            let found = claim.verdict(number(mean), Some(number(half)));
            assert_eq!(
                found.words(),
                verdict,
                "{setting}, {figure} ({source}): {paper}, measured {mean} +- {half}"
            );
            seen += 1;
        }
    }
    assert!(seen > 200, "only {seen} rows were read");
}

#[test]
fn what_was_calibrated_never_counts_as_agreement() {
    let side = ClaimSide { setting: "s", system: "y" };
    let claim = Claim {
        against: Some(side),
        calibrated: true,
        ..Claim::of(Measure::OcsShare, ("s", "y"), None, "")
    };
    for printed in [
        Printed::About(40.0),
        Printed::Between(0.0, 100.0),
        Printed::AtMost(90.0),
        Printed::AtLeast(0.0),
    ] {
        let met = Claim { printed: Some(printed), ..claim }.verdict(40.0, Some(0.1));
        assert!(met == ClaimVerdict::Calibrated && !met.is_prediction(), "{printed:?}");
    }
    for paper in PAPERS {
        let calibrated: Vec<Claim> =
            paper.experiment(size(1, 100)).claims.into_iter().filter(|c| c.calibrated).collect();
        // A row for every number that was chosen; Co-scheduler's are JobPacker's.
        let Assumptions { task_rate, testbed_rate, window_permille, p_min, .. } =
            paper.calibrated(false).free;
        let chosen = [
            task_rate.is_some(),
            testbed_rate.is_some(),
            window_permille.is_some(),
            p_min.is_some(),
        ]
        .into_iter()
        .filter(|c| *c)
        .count();
        assert_eq!(
            calibrated.len(),
            if paper == Paper::CoScheduler { 0 } else { chosen },
            "{paper:?}"
        );
        // By baselines only: no number is chosen to make the paper's own system look well.
        let own = [
            "JobPacker",
            "Co-scheduler",
            "Co-scheduler, maps only",
            "co-decided",
            "Hit",
            "PushBox",
        ];
        let ours = |s: ClaimSide| {
            own.contains(&s.system) || paper == Paper::Corral && s.system.starts_with("Corral")
        };
        assert!(
            calibrated.iter().all(|c| !ours(c.of) && !c.against.is_some_and(ours)),
            "{paper:?}"
        );
    }
}

/// Section 6.2.1: "Corral allocates 3 racks each to the two large jobs and packs most of the tiny
/// jobs on the remaining rack".
#[test]
fn corral_gives_the_two_large_jobs_of_w2_three_racks_each() {
    use crate::placement::cluster::Cluster;
    use crate::placement::corral::{CorralPlanOptions, Provisioning, Scenario, guidelines};
    let e = Paper::Corral.experiment(size(1, 100));
    let w2 = e.settings.iter().find(|s| s.name == "W2 batch").unwrap();
    for seed in [1, 2, 3] {
        let jobs = w2.load.draw(seed).jobs;
        let how = CorralPlanOptions {
            scenario: Scenario::Batch,
            provisioning: Provisioning::Longest,
            ..CorralPlanOptions::default()
        };
        let plan = guidelines(&jobs, &Cluster::of(&w2.topology, Bytes::ZERO), how);
        let large =
            plan.iter().filter(|p| jobs[p.job.index()].input_bytes() == Bytes(5_500_000_000_000));
        assert_eq!(large.map(|p| p.racks.len()).collect::<Vec<_>>(), [3, 3], "seed {seed}");
    }
}

/// JobPacker's table 1: shuffles of 0.1, 2.5 and 82 GB at the 5th, 50th and 95th percentile.
#[test]
fn swims_rows_of_2009_with_shuffles_from_80_mb_are_jobpackers_table_1() {
    let Some(dir) = crate::testing::traces("SWIM") else { return };
    let read = |k| {
        std::fs::read_to_string(dir.join(format!("FB-2009_samples_24_times_1hr_{k}.tsv"))).unwrap()
    };
    let rows: Vec<_> =
        [0, 1].into_iter().flat_map(|k| crate::workload::swim::parse(&read(k)).unwrap()).collect();
    let rows = setting::shuffling(rows);
    let mut shuffles: Vec<f64> = rows.iter().map(|r| r.shuffle.0 as f64 / 1e9).collect();
    shuffles.sort_by(f64::total_cmp);
    let at = |p: usize| shuffles[shuffles.len() * p / 100];
    assert!(
        rows.len() == 1220
            && (at(5) - 0.1).abs() < 0.01
            && (1.5..2.5).contains(&at(50))
            && (at(95) - 82.0).abs() < 8.0,
        "{} {}",
        at(5),
        at(50)
    );
    let traces = Traces { jobs: Some(rows.into()), ..Traces::default() };
    let e = Paper::Jobpacker.experiment_with(size(1, 100), &traces);
    let list = e.settings[0].load.draw(3);
    assert!(
        list.jobs.len() == 1000 && list.jobs.iter().all(|j| j.shuffle_bytes() >= Bytes(80_000_000))
    );
    // Independent draws: what two seeds share is below what the rows and the largest jobs, which
    // all draws have, make of it.
    let rows_of = |seed| -> BTreeSet<String> {
        let jobs = e.settings[0].load.draw(seed).jobs;
        jobs.iter()
            .map(|j| j.name.rsplit_once('-').expect("a row and a number").0.to_owned())
            .collect()
    };
    let (a, b) = (rows_of(3), rows_of(4));
    assert!(
        a.intersection(&b).count() < 450 && (600..800).contains(&a.len()),
        "{} {}",
        a.intersection(&b).count(),
        a.len()
    );
    let largest = |seed| e.settings[0].load.draw(seed).jobs.iter().map(|j| j.shuffle_bytes()).max();
    assert_eq!(largest(3), largest(4));
    let bytes = |seed| {
        e.settings[0].load.draw(seed).jobs.iter().map(|j| j.shuffle_bytes().0 as f64).sum::<f64>()
    };
    assert!((bytes(3) / bytes(4) - 1.0).abs() < 0.05, "{} {}", bytes(3), bytes(4));
}

#[test]
fn free_numbers_change_times_and_arrivals() {
    let drawn = |free| {
        JobSource::new(Mix::CoScheduler, 1000, Span::secs(5400), 50, Size { free, ..size(1, 100) })
            .draw(3)
    };
    let plain = drawn(Assumptions::default());
    let slow = drawn(Assumptions { task_rate: Some(Bytes(1_000_000)), ..Assumptions::default() });
    let dense = drawn(Assumptions { window_permille: Some(125), ..Assumptions::default() });
    let last = |l: &crate::workload::jobs::JobList| l.jobs.iter().map(|j| j.arrival).max().unwrap();
    assert!(last(&dense).0.abs_diff(last(&plain).0 / 8) <= 1);
    for (k, job) in plain.jobs.iter().enumerate() {
        assert_eq!(
            (slow.jobs[k].tasks(), slow.jobs[k].input_bytes()),
            (job.tasks(), job.input_bytes())
        );
    }
    // 1 s, and as many bytes as a task has at 1 MB a second.
    let map = slow.jobs.iter().map(|j| &j.stages[0]).find(|s| s.tasks == 1).unwrap();
    assert_eq!(map.times.of(0).0, 1_000_000_000 + map.input.0 * 1000);
}

#[test]
fn settings_and_systems_are_left_out_with_what_is_claimed_of_them() {
    let mut e = Paper::CoScheduler.experiment(size(1, 1));
    e.only(&["half recurring".into()], &["Fair".into(), "Corral".into()]).unwrap();
    assert_eq!((e.settings.len(), e.settings[0].systems.len()), (1, 2));
    assert!(e.claims.iter().all(|c| c.against.is_none()) && e.claims.len() == 3, "{:?}", e.claims);
    let wrong = e.only(&["half".into()], &[]).unwrap_err();
    assert!(wrong.contains("no setting `half`") && wrong.contains("half recurring"), "{wrong}");
}
