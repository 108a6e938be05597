//! Each kind of file by its keys, each error with its place, and files that do not fit together.

use super::*;

const TOPOLOGY: &str = "name: net\nracks: 4\nhosts_per_rack: 2\nnic: 1Gb/s\neps: {uplink: 100Mb/s}\nocs: [{rate: 1Gb/s, delta: 10ms}]\n";
const POLICY: &str = "name: p\ninterval: 100ms\ndemand: backlog\nscheduler: edmonds\n";
const WORKLOAD: &str = "name: w\ncoflows:\n- flows: [{from: h0-0, to: h3-1, bytes: 25MB}]\n";
const JOBS: &str = "name: j\njobs: [{maps: 4, map_time: 1s, reduces: 2, reduce_time: 1s, shuffle: 8MB, recurring: true}]\n";
const TRACE: &str = "3 1\n1 0 1 0 1 1:2.0\n";

fn checked(texts: &[&str]) -> CheckedFiles {
    let file = |(k, text): (usize, &&str)| File { name: format!("f{k}"), text: (*text).into() };
    check(texts.iter().enumerate().map(file).collect(), CheckedFiles::default())
}

#[test]
fn kinds_are_told_by_their_keys() {
    let found = checked(&[WORKLOAD, POLICY, TOPOLOGY, TRACE]);
    assert_eq!(found.errors, Vec::<String>::new());
    assert_eq!(
        found.said,
        "f1: policy p: circuits by edmonds from backlog every 100ms, threshold 0B, network max-min\n\
         f2: topology net: 4 racks, 8 hosts with NICs of 1Gb/s, EPS uplinks 100Mb/s, 1 OCS plane of 1Gb/s with 10ms of dark time\n\
         f0: workload w on net: 1 coflow, 25MB\nf3: workload f3 in the format of coflow-benchmark on net: 1 coflow, 2MB\n\
         p on net: simulated as fair shares of every link\n"
    );
    assert!(
        checked(&["a\t1\t1\t5\t0\t7\n", "0 1 5 9\n"])
            .said
            .starts_with("f0: jobs f0: 1 job (0 recurring), 1 tasks")
    );
    assert!(checked(&[JOBS]).said == "f0: jobs j: 1 job (1 recurring), 6 tasks, 8MB of shuffles\n");
    let strict = checked(&[&format!("{POLICY}network: priority\n")]).said;
    assert!(
        strict.ends_with(
            ", network priority, strict priorities at every port of the packet network\n"
        ),
        "{strict}"
    );
    let jobs = checked(&[&format!(
        "{}placement: {{policy: fair}}\n",
        POLICY.replace("edmonds", "eps-only")
    )])
    .said;
    assert_eq!(jobs, "f0: policy p: no circuits, network max-min, tasks placed by fair\n");
    let placing = format!("{POLICY}placement: {{policy: fair}}\n");
    let of = |load: &str| checked(&[TOPOLOGY, &placing, load]).advice;
    let why = "p: its placement has no part in this run: coflows have no tasks to place";
    assert_eq!((of(WORKLOAD), of(JOBS)), (vec![why.to_owned()], vec![]));
    assert!(checked(&[WORKLOAD, TRACE]).said.starts_with("f0: workload; name a topology"));
}

#[test]
fn every_file_has_its_error() {
    let texts = [
        "name: x\n",
        "",
        "[",
        "racks: 1\n",
        "interval: 1s\n",
        "coflows: 3\n",
        "jobs: 3\n",
        "1 1\nx\n",
        TOPOLOGY,
    ];
    let found = checked(&texts);
    assert_eq!(found.errors.len(), texts.len() - 1, "{:#?}", found.errors);
    for k in 0..texts.len() - 1 {
        assert!(
            found.errors.iter().any(|e| e.contains(&format!("f{k}:"))),
            "f{k} in {:#?}",
            found.errors
        );
    }
    assert!(found.errors[0].contains("neither a topology, nor a policy, nor a workload, nor jobs"));
}

#[test]
fn files_are_checked_against_each_other() {
    let slow = POLICY.replace("100ms", "12ms");
    let far = WORKLOAD.replace("h3-1", "h4-0");
    let found = checked(&[TOPOLOGY, &slow, &far]);
    assert_eq!(found.errors.len(), 2, "{:#?}", found.errors);
    assert!(found.errors[0].contains("f2:3:"), "{:#?}", found.errors);
    let endless = checked(&[
        &TOPOLOGY.replace("1Gb/s", "9b/s").replace("Mb/s", "b/s"),
        POLICY,
        &WORKLOAD.replace("25MB", "900TB"),
    ]);
    assert!(
        endless.advice.iter().any(|a| a.contains("does not end within virtual time")),
        "{:#?}",
        endless.advice
    );
    let slow = checked(&[TOPOLOGY, POLICY, &JOBS.replace("1s", "1000000000s")]);
    assert!(
        slow.advice.iter().any(|a| a.contains("control cycles of 100ms")),
        "{:#?}",
        slow.advice
    );
    assert_eq!(
        (endless.errors, slow.errors),
        (vec![], vec![]),
        "they may be meant to be ended before"
    );
    let larger = TOPOLOGY.replace("racks: 4", "racks: 5").replace("net", "larger");
    let found_larger = checked(&[TOPOLOGY, &larger, &far]);
    assert_eq!(found_larger.errors, Vec::<String>::new());
    assert!(found_larger.said.ends_with("f2: workload w on larger: 1 coflow, 25MB\n"));
    assert!(found.errors[1].contains("no time with light"), "{:#?}", found.errors);
    let fast = TOPOLOGY.replace("10ms", "1ms").replace("net", "fast");
    let some = checked(&[TOPOLOGY, &fast, &POLICY.replace("100ms", "12ms")]);
    assert_eq!(
        (some.errors, some.advice),
        (vec![], vec!["policy p does not fit 1 of the 2 topologies: net".into()])
    );
    let none =
        checked(&[TOPOLOGY, &TOPOLOGY.replace("net", "other"), &POLICY.replace("100ms", "12ms")]);
    assert!(
        none.errors.len() == 1 && none.errors[0].contains("no time with light"),
        "{:#?}",
        none.errors
    );
}
