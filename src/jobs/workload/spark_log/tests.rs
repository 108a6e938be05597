//! Recorded logs, made ones, and lines that are wrong.

use proptest::prelude::*;

use super::*;

/// A log of Spark 4.3: two iterations of PageRank, a query that groups two tables and joins
/// them, and one that sorts a table.
fn recorded() -> String {
    let file = crate::testing::repository("spark/tests/spark-4.3.jsonl");
    std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

/// A stage, its parents and its data set, as a job plans it.
fn planned(id: u32, parents: &[u32], data: u64) -> String {
    format!(r#"{{"Stage ID":{id},"Parent IDs":{parents:?},"RDD Info":[{{"RDD ID":{data}}}]}}"#)
}

fn job(id: u32, at: u64, properties: &str, stages: &[String]) -> String {
    let stages = stages.join(",");
    format!(
        r#"{{"Event":"SparkListenerJobStart","Job ID":{id},"Submission Time":{at},"Stage Infos":[{stages}],"Properties":{properties}}}"#
    )
}

/// The end of a task that ran for a second, a tenth of which it waited.
fn task(stage: u32, partition: u32, read: u64, written: u64) -> String {
    format!(
        r#"{{"Event":"SparkListenerTaskEnd","Stage ID":{stage},"Task End Reason":{{"Reason":"Success"}},"Task Info":{{"Index":{partition}}},"Task Metrics":{{"Executor Run Time":1000,"Shuffle Read Metrics":{{"Remote Bytes Read":{read},"Local Bytes Read":1,"Fetch Wait Time":100}},"Shuffle Write Metrics":{{"Shuffle Bytes Written":{written}}},"Input Metrics":{{"Bytes Read":7}},"Output Metrics":{{"Bytes Written":9}}}}}}"#
    )
}

fn completed(stage: u32) -> String {
    format!(r#"{{"Event":"SparkListenerStageCompleted","Stage Info":{{"Stage ID":{stage}}}}}"#)
}

#[test]
fn a_recorded_application_becomes_its_jobs() {
    let list = to_jobs("l", &parse(&recorded()).unwrap());
    assert!(fits(&recorded()).is_ok() && list.jobs.iter().all(|j| j.check() == Ok(())));
    let shape = |j: &JobSpec| {
        (j.name.clone(), j.stages.len(), j.edges.iter().map(|e| (e.from, e.to)).collect::<Vec<_>>())
    };
    let shapes: Vec<_> = list.jobs.iter().map(shape).collect();
    assert_eq!(
        shapes,
        [
            // Both joins read the links, which the second stage wrote.
            ("job-0".to_string(), 5, vec![(0, 1), (1, 2), (1, 3), (2, 3), (3, 4)]),
            // Two groups, their join, and the count: four of Spark's jobs.
            ("query-0".to_string(), 4, vec![(0, 2), (1, 2), (2, 3)]),
            // The sample that says where to cut, then the sort.
            ("query-1".to_string(), 3, vec![(1, 2)]),
        ]
    );
    // What stages read is what Spark says they read.
    let all: u64 = recorded()
        .lines()
        .filter_map(|l| serde_json::from_str::<TaskEnd>(l).ok()?.metrics)
        .map(|m| m.shuffle_read.remote + m.shuffle_read.local)
        .sum();
    assert_eq!(list.jobs.iter().map(|j| j.shuffle_bytes().0).sum::<u64>(), all);
    assert_eq!(all, 300_981);
}

#[test]
fn bytes_and_times_are_those_of_the_tasks() {
    let text = [
        job(4, 5_000, "null", &[planned(0, &[], 10), planned(1, &[], 11), planned(2, &[0, 1], 12)]),
        task(0, 0, 0, 300),
        task(0, 1, 0, 300),
        completed(0),
        task(1, 0, 0, 200),
        completed(1),
        task(2, 1, 99, 0),
        task(2, 0, 299, 0),
        completed(2),
    ];
    let j = &to_jobs("l", &parse(&text.join("\n")).unwrap()).jobs[0];
    assert_eq!((j.check(), &*j.name, j.arrival, j.stages.len()), (Ok(()), "job-4", Time::ZERO, 3));
    // 400 bytes were read of 800 that were written, by the first task three times as many as by
    // the second.
    let read: Vec<_> =
        j.edges.iter().map(|e| (e.from, e.to, e.bytes.0, e.by_receiver().unwrap())).collect();
    assert_eq!(read, [(0, 2, 300, vec![225, 75]), (1, 2, 100, vec![75, 25])]);
    assert_eq!(j.stages[2].times, TaskTimes::Each(vec![Span::millis(900); 2]));
    assert_eq!(
        (j.stages[0].input, j.stages[0].output, j.stages[2].input),
        (Bytes(14 + 2), Bytes(18), Bytes(14))
    );
}

#[test]
fn queries_are_joined_and_output_of_others_is_read_as_blocks() {
    let query = |n: u32, pool: &str| {
        format!(r#"{{"spark.sql.execution.id":"{n}","spark.scheduler.pool":"{pool}"}}"#)
    };
    let text = [
        job(0, 1_000, &query(7, "b"), &[planned(0, &[], 10)]),
        task(0, 0, 0, 50),
        completed(0),
        // The next job of the query skips the stage, under another number.
        job(1, 2_000, &query(7, "b"), &[planned(1, &[], 10), planned(2, &[1], 11)]),
        task(2, 0, 49, 0),
        completed(2),
        // Another query reads the same.
        job(2, 3_000, &query(8, "a"), &[planned(3, &[], 10), planned(4, &[3], 12)]),
        task(4, 0, 39, 0),
        completed(4),
        // This one failed.
        job(3, 4_000, "{}", &[planned(5, &[], 13)]),
        r#"{"Event":"SparkListenerStageCompleted","Stage Info":{"Stage ID":5,"Failure Reason":"boom"}}"#.into(),
    ];
    let list = to_jobs("l", &parse(&text.join("\n")).unwrap());
    let of = |j: &JobSpec| {
        (j.name.clone(), j.queue, j.arrival.0 / 1_000_000, j.stages.len(), j.shuffle_bytes().0)
    };
    assert_eq!(
        list.jobs.iter().map(of).collect::<Vec<_>>(),
        [("query-7".into(), 2, 0, 2, 50), ("query-8".into(), 1, 2_000, 1, 0)]
    );
    assert_eq!(list.jobs[1].stages[0].input, Bytes(7 + 40));
}

#[test]
fn faults_are_placed() {
    let good = [completed(0), task(0, 0, 0, 1)].join("\n");
    for (from, to, says) in [
        ("\"Stage ID\":0", "\"Stage ID\":-1", "1:"),
        ("\"Index\":0", "\"Index\":\"x\"", "2:"),
        ("\"Executor Run Time\":1000,", "", "missing key"),
        ("\"Event\":\"SparkListenerTaskEnd\",", "", "2:"),
        ("1000", "2000000000000", "2:1: a time or bytes"),
        ("}}}", "", "2:"),
    ] {
        assert!(good.contains(from), "{from}");
        let e = parse(&good.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(e.contains(says), "{e}");
    }
    let e = parse(&job(0, 0, r#"{"spark.sql.execution.id":"x"}"#, &[])).unwrap_err();
    assert!((e.line, e.column) == (1, 1) && e.why.contains("no whole number"), "{e}");
}

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    #[test]
    fn mutated_logs_never_panic(edits in prop::collection::vec((0usize..6_000, 0usize..6, "[-0-9a-z\":{}\\[\\], ]{0,4}"), 1..4)) {
        let mut bytes = recorded().lines().take(12).collect::<Vec<_>>().join("\n").into_bytes();
        for (at, len, new) in edits {
            let at = at.min(bytes.len());
            let end = (at + len).min(bytes.len());
            bytes.splice(at..end, new.bytes());
        }
        if let Ok(log) = parse(&String::from_utf8_lossy(&bytes)) {
            prop_assert!(to_jobs("l", &log).jobs.iter().all(|j| j.check().is_ok()));
        }
    }
}
