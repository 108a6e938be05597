//! Jobs as a file that [`crate::config::read_jobs`] reads back exactly.

use std::fmt::Write as _;

use crate::units::{Bytes, Quantity as _, Span};
use crate::workload::jobs::{EdgeSpec, JobList, JobSpec, StageSpec, TaskTimes};

/// The jobs as YAML: one line a MapReduce, one a stage and one an edge of any other job.
pub fn write(list: &JobList) -> String {
    let mut out = format!(
        "name: {}\njobs:{}\n",
        quote(&list.name),
        if list.jobs.is_empty() { " []" } else { "" }
    );
    for job in &list.jobs {
        let mut head = vec![format!("name: {}", quote(&job.name))];
        head.extend((job.queue > 0).then(|| format!("queue: {}", job.queue)));
        head.push(format!("arrival: {}", span(Span(job.arrival.0))));
        head.extend(job.recurring.then(|| "recurring: true".into()));
        match short(job) {
            Some(short) => {
                let _ = writeln!(out, "  - {{{}, {short}}}", head.join(", "));
            }
            None => graph(&mut out, &head.join("\n    "), job),
        }
    }
    out
}

fn quote(s: &str) -> String {
    serde_json::to_string(s).expect("a string is JSON, and JSON is YAML")
}

fn span(s: Span) -> String {
    s.exact()
}

fn times(t: &TaskTimes) -> String {
    match t {
        TaskTimes::Even(t) => span(*t),
        TaskTimes::Each(all) => {
            format!("[{}]", all.iter().map(|t| span(*t)).collect::<Vec<_>>().join(", "))
        }
    }
}

/// `, key: bytes` unless there are none.
fn bytes(key: &str, b: Bytes) -> String {
    if b == Bytes::ZERO { String::new() } else { format!(", {key}: {}", b.exact()) }
}

/// `, shares: [..]` if there are any.
fn shares(edge: &EdgeSpec) -> String {
    edge.shares.as_ref().map_or(String::new(), |s| format!(", shares: {s:?}"))
}

/// `, types: [..]` if there are any.
fn types(edge: &EdgeSpec) -> String {
    if edge.types.are_free() { String::new() } else { format!(", types: [{}]", edge.types) }
}

/// The keys of a MapReduce, if the job is one.
fn short(job: &JobSpec) -> Option<String> {
    let maps = |s: &StageSpec| {
        format!("maps: {}, map_time: {}{}", s.tasks, times(&s.times), bytes("input", s.input))
    };
    if job.stages.iter().any(|s| s.streams) {
        return None;
    }
    match (&job.stages[..], &job.edges[..]) {
        ([map], []) if map.name == "map" => Some(maps(map) + &bytes("output", map.output)),
        ([map, reduce], [shuffle]) => {
            let plain = map.name == "map"
                && reduce.name == "reduce"
                && map.output == Bytes::ZERO
                && reduce.input == Bytes::ZERO;
            let end = format!(", reduces: {}, reduce_time: {}", reduce.tasks, times(&reduce.times));
            plain.then(|| {
                maps(map)
                    + &bytes("shuffle", shuffle.bytes)
                    + &shares(shuffle)
                    + &types(shuffle)
                    + &end
                    + &bytes("output", reduce.output)
            })
        }
        _ => None,
    }
}

fn graph(out: &mut String, head: &str, job: &JobSpec) {
    let _ = writeln!(out, "  - {head}\n    stages:");
    for s in &job.stages {
        let streams = if s.streams { ", streams: true" } else { "" };
        let ends = bytes("input", s.input) + &bytes("output", s.output) + streams;
        let _ = writeln!(
            out,
            "      - {{name: {}, tasks: {}, time: {}{ends}}}",
            quote(&s.name),
            s.tasks,
            times(&s.times)
        );
    }
    if job.edges.is_empty() {
        return;
    }
    let names: std::collections::BTreeSet<&str> =
        job.stages.iter().map(|s| s.name.as_str()).collect();
    let name = |k: usize| {
        if names.len() == job.stages.len() { quote(&job.stages[k].name) } else { k.to_string() }
    };
    out.push_str("    edges:\n");
    for e in &job.edges {
        let _ = writeln!(
            out,
            "      - {{from: {}, to: {}{}{}{}}}",
            name(e.from),
            name(e.to),
            bytes("bytes", e.bytes),
            shares(e),
            types(e)
        );
    }
}
