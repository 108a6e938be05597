//! The forms, one error each, shipped files, and the round trip.

use proptest::prelude::*;

use super::*;
use crate::config::{read_jobs, schema_jobs};

fn one(text: &str) -> JobSpec {
    read_jobs(&format!("name: x\njobs: [{text}]"), "f")
        .unwrap_or_else(|e| panic!("{e}"))
        .jobs
        .remove(0)
}

#[test]
fn the_two_forms_of_a_map_reduce_are_one_job() {
    let short = one(
        "{name: j, queue: 2, arrival: 5ms, recurring: true, maps: 3, map_time: 10ms, input: 9MB, shuffle: 6MB, reduces: 2, \
         reduce_time: [1ms, 2ms], output: 4kB}",
    );
    let long = one(
        "{name: j, queue: 2, arrival: 5ms, recurring: true, stages: [{name: map, tasks: 3, time: 10ms, input: 9MB}, \
         {name: reduce, tasks: 2, time: [1ms, 2ms], output: 4kB}], edges: [{from: 0, to: reduce, bytes: 6MB}]}",
    );
    assert_eq!((&short, short.check()), (&long, Ok(())));
    assert_eq!(
        (short.queue, short.arrival, short.recurring, short.tasks()),
        (2, Time(5_000_000), true, 5)
    );
    assert_eq!(
        (short.work(), short.shuffle_bytes(), short.input_bytes()),
        (Span::millis(33), Bytes(6_000_000), Bytes(9_000_000))
    );
    let alone = one("{maps: 3, map_time: 10ms, output: 7}");
    assert_eq!(
        (alone.name.as_str(), alone.stages.len(), alone.stages[0].output, alone.edges.len()),
        ("job-0", 1, Bytes(7), 0)
    );
}

#[test]
fn stages_come_into_topological_order_and_jobs_into_that_of_arrival() {
    let j = one(
        "{stages: [{name: c, tasks: 1, time: 1ms}, {name: a, tasks: 2, time: 1ms}, {tasks: 3, time: 1ms}], \
         edges: [{from: stage-2, to: c}, {from: a, to: 2, bytes: 5}, {from: a, to: c, bytes: 7}]}",
    );
    assert_eq!(j.stages.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["a", "stage-2", "c"]);
    let e = |from, to, bytes| EdgeSpec::even(from, to, Bytes(bytes));
    assert_eq!((j.check(), j.edges), (Ok(()), vec![e(0, 1, 5), e(0, 2, 7), e(1, 2, 0)]));
    let list = read_jobs(
        "name: x\njobs: [{arrival: 2s, maps: 1, map_time: 1s}, {maps: 1, map_time: 1s}]",
        "f",
    )
    .unwrap();
    assert_eq!(
        list.jobs.iter().map(|j| (j.id.0, j.name.as_str())).collect::<Vec<_>>(),
        [(0, "job-1"), (1, "job-0")]
    );
}

#[test]
fn receivers_may_have_shares() {
    let short = one(
        "{name: j, maps: 3, map_time: 10ms, shuffle: 6MB, shares: [1, 3], reduces: 2, reduce_time: 1ms}",
    );
    let long = one(
        "{name: j, stages: [{name: map, tasks: 3, time: 10ms}, {name: reduce, tasks: 2, time: 1ms}], \
         edges: [{from: map, to: reduce, bytes: 6MB, shares: [1, 3]}]}",
    );
    assert_eq!((&short, short.check()), (&long, Ok(())));
    assert_eq!(short.edges[0].by_receiver(), Some(vec![1_500_000, 4_500_000]));
    for (shares, what) in [
        ("[1]", "1 shares for 2"),
        ("[0, 0]", "all zero"),
        ("[1, 2000000000]", "a share of 2000000000"),
    ] {
        let text = format!(
            "name: x\njobs: [{{maps: 3, map_time: 10ms, shuffle: 6MB, shares: {shares}, reduces: 2, reduce_time: 1ms}}]"
        );
        let e = read_jobs(&text, "f").unwrap_err().to_string();
        assert!(e.contains("jobs[0].shares") && e.contains(what), "{e}");
    }
}

#[test]
fn shuffles_may_have_types() {
    use crate::topology::graph::{Graph, Tier};
    let short = one(
        "{name: j, maps: 3, map_time: 10ms, shuffle: 6MB, types: [access, core, access], reduces: 2, reduce_time: 1ms}",
    );
    let long = one(
        "{name: j, stages: [{name: map, tasks: 3, time: 10ms}, {name: reduce, tasks: 2, time: 1ms}], \
         edges: [{from: map, to: reduce, bytes: 6MB, types: [access, core, access]}]}",
    );
    assert_eq!((&short, short.check()), (&long, Ok(())));
    assert_eq!(short.types_into(1).0, [Tier::Access, Tier::Core, Tier::Access]);
    let with = |types: &str| {
        format!(
            "name: x\njobs:\n  - {{maps: 3, map_time: 10ms, types: {types}, reduces: 2, reduce_time: 1ms}}\n"
        )
    };
    let e = |text: &str| read_jobs(text, "f").unwrap_err().to_string();
    let unknown = e(&with("[access, spine]"));
    let all = ["server", "access", "aggregation", "core"];
    assert!(
        unknown.starts_with("f:3:")
            && unknown.contains("spine")
            && all.iter().all(|t| unknown.contains(t)),
        "{unknown}"
    );
    assert!(e(&with("[]")).starts_with("f:3:38: jobs[0].types: no types"), "{}", e(&with("[]")));
    let long = format!("[{}]", ["core"; 17].join(", "));
    assert!(e(&with(&long)).contains("jobs[0].types: 17 types"), "{}", e(&with(&long)));
    assert!(
        e("name: x\njobs: [{maps: 3, map_time: 10ms, types: [core]}]")
            .contains("jobs[0].types: types of no shuffle")
    );
    let mixed = "name: x\njobs:\n  - stages: [{name: a, tasks: 1, time: 1s}, {name: b, tasks: 1, time: 1s}, \
         {name: c, tasks: 1, time: 1s}]\n    edges: [{from: a, to: c, types: [access]}, {from: b, to: c}]\n";
    let mixed = e(mixed);
    assert!(
        mixed.contains("jobs[0].edges[1]: other types than those of the shuffle from `a`")
            && mixed.contains("[access]"),
        "{mixed}"
    );
    // Types that no two hosts of a network can have, at their place in the file.
    let mut t = crate::topology::Topology::uniform(
        "leaves",
        2,
        2,
        crate::units::BitRate(1),
        crate::units::BitRate(1),
        vec![],
    );
    let check = |t: &crate::topology::Topology, text: &str| {
        crate::config::check_types(&read_jobs(text, "f").unwrap(), t, text, "f")
    };
    let flat = check(&t, &with("[access]")).unwrap_err().to_string();
    assert!(flat.contains("the packet network of topology leaves is one switch"), "{flat}");
    t.eps.core = crate::topology::Core::Graph(Box::new(Graph::leaf_spine(
        2,
        2,
        crate::units::BitRate(1),
        None,
    )));
    assert_eq!(check(&t, &with("[access, core, access]")), Ok(()));
    let none = check(&t, &with("[access, aggregation, access]")).unwrap_err().to_string();
    assert!(
        none.starts_with("f:3:38: jobs[0].types: no two hosts of topology leaves have a list"),
        "{none}"
    );
    assert!(none.contains("[access] or [access, core, access]"), "{none}");
}

#[test]
fn faults_name_file_line_column_and_key() {
    let mut wrong = vec![];
    for (job, start) in [
        ("{maps: 0, map_time: 1s}", "f:3:12: jobs[0].maps: 0 tasks"),
        ("{maps: -1, map_time: 1s}", "f:3:12: jobs[0].maps: invalid type"),
        ("{maps: 2}", "f:3:5: jobs[0]: a job without stages"),
        ("{}", "f:3:5: jobs[0]: a job without stages"),
        (
            "{maps: 2, map_time: 1}\n  - {maps: 2, map_time: [1s]}",
            "f:4:25: jobs[1].map_time: 1 times for 2 tasks",
        ),
        ("{maps: 2, map_time: 1h1}", "f:3:25: jobs[0].map_time: `1h1` is not"),
        ("{maps: 1, map_time: [1s, x]}", "f:3:30: jobs[0].map_time[1]: `x` is not"),
        ("{maps: 2, map_time: 1s, reduces: 2}", "f:3:38: jobs[0].reduces: reduce tasks without"),
        ("{maps: 2, map_time: 1s, shuffle: 2}", "f:3:38: jobs[0].shuffle: a shuffle to no"),
        ("{maps: 2, map_time: 1s, input: 2000TB}", "f:3:36: jobs[0].input: 2000TB are too many"),
        ("{maps: 2, map_time: 1s, queue: 10000}", "f:3:36: jobs[0].queue: queue 10000"),
        ("{maps: 2, map_time: 1s, maps: 3}", "f:3:35: jobs[0]: duplicate key `maps`"),
        (
            "{maps: 2, map_time: 1s, mops: 3}",
            "f:3:29: jobs[0].mops: unknown key `mops`, did you mean `maps`? allowed:",
        ),
        ("{maps: 2, stages: []}", "f:3:12: jobs[0].maps: `maps` beside `stages`"),
        ("{stages: []}", "f:3:14: jobs[0].stages: 0 stages"),
        ("{stages: [{tasks: 1}]}", "f:3:15: jobs[0].stages[0]: missing key `time`"),
        (
            "{stages: [{tasks: 1, time: 40000000min}]}",
            "f:3:32: jobs[0].stages[0].time: 2400000000s are too long",
        ),
        (
            "{stages: [{tasks: 1, time: 1s}], edges: [{from: a, to: 0}]}",
            "f:3:53: jobs[0].edges[0].from: `a` is not a stage",
        ),
        (
            "{stages: [{tasks: 1, time: 1s}], edges: [{from: 0, to: 1}]}",
            "f:3:60: jobs[0].edges[0].to: there is no stage 1",
        ),
        (
            "{stages: [{tasks: 1, time: 1s}], edges: [{from: 0, to: 0}]}",
            "f:3:45: jobs[0].edges: the stages wait for each other",
        ),
    ] {
        let e = read_jobs(&format!("name: x\njobs:\n  - {job}\n"), "f").unwrap_err().to_string();
        wrong.extend((!e.starts_with(start)).then(|| format!("{e}\nnot {start}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    let twice = "name: x\njobs: [{stages: [{name: a, tasks: 1, time: 1s}, {name: b, tasks: 1, time: 1s}, {name: b, tasks: 1, time: 1s}], \
                 edges: [{from: a, to: 1}, {from: a, to: b}, {from: 0, to: 1}]}]";
    let e = read_jobs(twice, "f").unwrap_err();
    assert_eq!(e.problems.len(), 2, "{e}");
    assert!(
        e.problems[0].message.contains("several stages")
            && e.problems[1].message.contains("second edge"),
        "{e}"
    );
}

#[test]
fn shipped_jobs_are_valid_and_survive_the_round_trip() {
    for name in ["jobs-8", "jobs-20", "dag-8"] {
        let text = &crate::testing::shipped(&format!("workloads/{name}.yaml"));
        let list = read_jobs(text, name).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(
            (list.name.as_str(), list.jobs.iter().find_map(|j| j.check().err())),
            (name, None)
        );
        assert_eq!(read_jobs(&write(&list), name), Ok(list));
    }
}

#[test]
fn the_schema_describes_every_key() {
    let s = schema_jobs();
    assert_eq!(
        (&s["additionalProperties"], &s["required"]),
        (&false.into(), &serde_json::json!(["name", "jobs"]))
    );
    for (shape, keys) in [
        ("JobEntry", &["maps", "stages", "queue"][..]),
        ("StageEntry", &["tasks", "time"]),
        ("EdgeEntry", &["from"]),
    ] {
        for key in keys {
            assert!(
                s["$defs"][shape]["properties"][key]["description"].is_string(),
                "{shape}.{key}"
            );
        }
    }
}

fn a_stage() -> impl Strategy<Value = StageSpec> {
    let times = |n: u32| {
        prop_oneof![
            (0u64..1 << 40).prop_map(|t| TaskTimes::Even(Span(t))),
            prop::collection::vec((0u64..1 << 40).prop_map(Span), n as usize)
                .prop_map(TaskTimes::Each),
        ]
    };
    let name = prop_oneof!["map|reduce|a", "[ -~ß]{0,9}"];
    let all = (name, 1u32..4, 0u64..1 << 45, 0u64..3, any::<bool>());
    all.prop_flat_map(move |(name, tasks, input, output, streams)| {
        let stage = move |times| StageSpec {
            name: name.clone(),
            tasks,
            times,
            input: Bytes(input),
            output: Bytes(output),
            streams,
        };
        times(tasks).prop_map(stage)
    })
}

/// Any job: of its stages, all pairs that a bit of `pairs` asks for are joined.
fn a_job() -> impl Strategy<Value = JobSpec> {
    let rest = ("[ -~ß]{0,9}", 0u32..3, 0u64..1 << 45, any::<bool>());
    (prop::collection::vec(a_stage(), 1..5), any::<u16>(), rest).prop_map(
        |(stages, pairs, (name, queue, at, recurring))| {
            let all = (0..stages.len()).flat_map(|a| (a + 1..stages.len()).map(move |b| (a, b)));
            let some = all.enumerate().filter(|(k, _)| pairs >> k & 1 == 1);
            let shares = |k: usize, to: usize| {
                (k % 2 == 1).then(|| (1..=u64::from(stages[to].tasks)).collect())
            };
            use crate::topology::graph::Tier::{Access, Core};
            let types =
                |to: usize| Types(if to % 2 == 1 { vec![Access, Core, Access] } else { vec![] });
            let edge = |(k, (from, to))| EdgeSpec {
                shares: shares(k, to),
                types: types(to),
                ..EdgeSpec::even(from, to, Bytes(k as u64 * 77_000))
            };
            let edges = some.map(edge).collect();
            JobSpec { id: JobId(0), name, queue, arrival: Time(at), recurring, stages, edges }
        },
    )
}

#[test]
fn drawn_queries_survive_the_round_trip() {
    use crate::workload::synth_jobs::{Mix, SynthJobs, synth_jobs};
    let ask = SynthJobs {
        mix: Mix::Tpch,
        model: Mix::Tpch.preset().model(),
        jobs: 22,
        seed: 4,
        mean_gap: Span::secs(9),
    };
    let list = synth_jobs(&ask);
    assert_eq!(read_jobs(&write(&list), "f"), Ok(list));
}

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    #[test]
    fn what_is_written_is_read_back(name in "[ -~äß\u{1f600}]{0,12}", jobs in prop::collection::vec(a_job(), 0..5)) {
        let list = JobList::new(name, jobs);
        prop_assert_eq!(read_jobs(&write(&list), "f"), Ok(list));
    }

    #[test]
    fn never_panics(s in "((name|jobs|maps|map_time|stages|edges|tasks|time|from|to): ?|1s|9MB|a|[-{}\\[\\], \n&*])(\\PC{0,2}| |\n  ){0,14}") {
        let _ = read_jobs(&s, "f").map_err(|e| e.to_string());
    }

    #[test]
    fn mutated_files_never_panic_and_what_is_accepted_is_sound(
        edits in prop::collection::vec((0usize..2000, 0usize..9, "[-0-9a-z:{}\\[\\], \n]{0,5}"), 1..5),
    ) {
        let mut bytes = include_bytes!("../../../../workloads/dag-8.yaml").to_vec();
        for (at, len, new) in edits {
            let at = at.min(bytes.len());
            let end = (at + len).min(bytes.len());
            bytes.splice(at..end, new.bytes());
        }
        if let Ok(list) = read_jobs(&String::from_utf8_lossy(&bytes), "f") {
            prop_assert!(list.jobs.iter().all(|j| j.check().is_ok()));
        }
    }
}
