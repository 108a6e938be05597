//! Two runs of the same jobs, job by job: live and simulated, or under two policies.

use serde::Serialize;

use super::{RunNames, difference};
use crate::cli::tables::{self, TextTable, ratio};
use crate::ids::JobId;
use crate::runtime::jobs::report::{JobsResult, JobsSummary};
use crate::runtime::report::caveats::Caveat;
use crate::scheduler::record::JobRecord;
use crate::units::Span;

/// Two runs side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobsComparison {
    /// What the first run was: topology, placement policy, mechanism.
    pub run_a: String,
    /// What the second run was.
    pub run_b: String,
    /// The first run's sums.
    pub a: JobsSummary,
    /// The second run's sums.
    pub b: JobsSummary,
    /// Why the first run is not what its name says.
    pub caveats_a: Vec<Caveat>,
    /// Why the second is not.
    pub caveats_b: Vec<Caveat>,
    /// By job.
    pub jobs: Vec<ComparedJob>,
    /// Mean of the jobs' ratios; absent if no job has one.
    pub mean_ratio: Option<f64>,
    /// Mean of the jobs' distances from a ratio of one.
    pub mean_error: Option<f64>,
}

/// One job in both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedJob {
    /// Its number.
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// Completion time in the first run.
    #[serde(rename = "jct_a_ns")]
    pub jct_a: Option<Span>,
    /// Completion time in the second run.
    #[serde(rename = "jct_b_ns")]
    pub jct_b: Option<Span>,
    /// The second over the first; absent unless both finished.
    pub ratio: Option<f64>,
    /// Its longest shuffle in the first run.
    #[serde(rename = "shuffle_cct_a_ns")]
    pub cct_a: Option<Span>,
    /// Its longest shuffle in the second run.
    #[serde(rename = "shuffle_cct_b_ns")]
    pub cct_b: Option<Span>,
}

/// Two runs of the same jobs: same numbers, names, tasks and shuffles.
///
/// # Errors
/// Which jobs are not the same.
pub fn compare(a: &JobsResult, b: &JobsResult) -> Result<JobsComparison, String> {
    let what = |j: &JobRecord| {
        format!(
            "{} `{}` of {} tasks and {}",
            j.id.0,
            j.name,
            j.tasks,
            tables::bytes(j.shuffle_bytes)
        )
    };
    let key = |j: &JobRecord| (j.id, j.name.clone(), j.tasks, j.shuffle_bytes);
    let differ = a.jobs.iter().zip(&b.jobs).find(|(x, y)| key(x) != key(y));
    if let Some((x, y)) = differ {
        return Err(format!(
            "these are not runs of the same jobs: the first has job {}, the second {}",
            what(x),
            what(y)
        ));
    }
    if a.jobs.len() != b.jobs.len() {
        return Err(format!(
            "these are not runs of the same jobs: the first has {}, the second {}",
            a.jobs.len(),
            b.jobs.len()
        ));
    }
    let line = |(x, y): (&JobRecord, &JobRecord)| ComparedJob {
        id: x.id,
        name: x.name.clone(),
        jct_a: x.jct,
        jct_b: y.jct,
        ratio: x.jct.zip(y.jct).and_then(|(x, y)| ratio(y, x)),
        cct_a: x.shuffle_ccts.iter().max().copied(),
        cct_b: y.shuffle_ccts.iter().max().copied(),
    };
    let jobs: Vec<ComparedJob> = a.jobs.iter().zip(&b.jobs).map(line).collect();
    let ratios: Vec<f64> = jobs.iter().filter_map(|l| l.ratio).collect();
    let mean = |f: fn(f64) -> f64| {
        (!ratios.is_empty())
            .then(|| ratios.iter().map(|&r| f(r)).sum::<f64>() / ratios.len() as f64)
    };
    let run = |r: &JobsResult| format!("{} {} {}", r.topology, r.placement, r.mechanism);
    let (a_sums, b_sums) = (a.summary.clone(), b.summary.clone());
    let (caveats_a, caveats_b) = (a.caveats.clone(), b.caveats.clone());
    let (mean_ratio, mean_error) = (mean(|r| r), mean(|r| (r - 1.0).abs()));
    Ok(JobsComparison {
        run_a: run(a),
        run_b: run(b),
        a: a_sums,
        b: b_sums,
        caveats_a,
        caveats_b,
        jobs,
        mean_ratio,
        mean_error,
    })
}

/// The jobs, for people.
pub fn lines(c: &JobsComparison, names: &RunNames) -> TextTable {
    let ([jct_a, jct_b], [cct_a, cct_b]) = (names.both("JCT"), names.both("shuffle CCT"));
    let mut rows =
        TextTable::new(&["job", &jct_a, &jct_b, "difference", &names.ratio(), &cct_a, &cct_b]);
    let or = |s: Option<Span>, none: &str| s.map_or(none.into(), tables::span);
    for l in &c.jobs {
        let difference = l.jct_a.zip(l.jct_b).map_or("-".into(), |(a, b)| difference(a, b));
        let ratio = l.ratio.map_or("-".into(), |r| format!("{r:.3}"));
        let (a, b) = (or(l.jct_a, "unfinished"), or(l.jct_b, "unfinished"));
        rows.rows.push(vec![
            l.name.clone(),
            a,
            b,
            difference,
            ratio,
            or(l.cct_a, "-"),
            or(l.cct_b, "-"),
        ]);
    }
    rows
}

/// A length of time of a run.
type SpanOf = fn(&JobsSummary) -> Span;

/// The sums, for people.
pub fn sums(c: &JobsComparison, names: &RunNames) -> TextTable {
    let mut rows = names.sums();
    let (a, b) = (&c.a, &c.b);
    let mut row = |name: &str, a: String, b: String, r: Option<f64>| {
        rows.rows.push(vec![name.into(), a, b, r.map_or(String::new(), |r| format!("{r:.3}"))]);
    };
    row("run", c.run_a.clone(), c.run_b.clone(), None);
    row("jobs finished", a.finished.to_string(), b.finished.to_string(), None);
    let spans: [(&str, SpanOf); 7] = [
        ("makespan", |s| s.makespan),
        ("JCT average", |s| s.average_jct),
        ("JCT median", |s| s.median_jct),
        ("JCT p95", |s| s.p95_jct),
        ("shuffle CCT average", |s| s.average_cct),
        ("shuffle CCT p95", |s| s.p95_cct),
        ("slot time", |s| s.slot_time),
    ];
    for (name, of) in spans {
        row(name, tables::span(of(a)), tables::span(of(b)), ratio(of(b), of(a)));
    }
    row("jobs that send", a.sending.to_string(), b.sending.to_string(), None);
    row("OCS share", tables::percent(a.ocs_share), tables::percent(b.ocs_share), None);
    row("bytes planned", tables::bytes(a.bytes_planned), tables::bytes(b.bytes_planned), None);
    row(
        "of these between racks",
        tables::bytes(a.bytes_between_racks),
        tables::bytes(b.bytes_between_racks),
        None,
    );
    let near = |s: &JobsSummary| format!("{} / {} / {}", s.near[0], s.near[1], s.near[2]);
    row("tasks at their block / in its rack / far", near(a), near(b), None);
    row("mean of the jobs' ratios", String::new(), String::new(), c.mean_ratio);
    row("mean distance of these from 1", String::new(), String::new(), c.mean_error);
    rows
}

/// The jobs in base units.
pub fn exact(c: &JobsComparison) -> TextTable {
    let mut rows = TextTable::new(&[
        "job",
        "jct_a_ns",
        "jct_b_ns",
        "ratio",
        "shuffle_cct_a_ns",
        "shuffle_cct_b_ns",
    ]);
    let ns = |s: Option<Span>| s.map_or(String::new(), |s| s.0.to_string());
    for l in &c.jobs {
        let ratio = l.ratio.map_or(String::new(), |r| format!("{r:.6}"));
        rows.rows.push(vec![
            l.name.clone(),
            ns(l.jct_a),
            ns(l.jct_b),
            ratio,
            ns(l.cct_a),
            ns(l.cct_b),
        ]);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use crate::runtime::jobs::simulate::{SimulatedJobs, simulate};

    fn result(policy: &str, jobs: usize) -> JobsResult {
        let text = |f: &str| std::fs::read_to_string(f).unwrap();
        let t = config::read_topology(&text("topologies/hybrid-8x2.yaml"), "t").unwrap();
        let p = config::read_policy(&text(policy), policy).unwrap();
        let mut list = config::read_jobs(&text("workloads/jobs-20.yaml"), "j").unwrap();
        list.jobs.truncate(jobs);
        let jobs_by = p.jobs.clone().unwrap();
        let ask = SimulatedJobs {
            topology: &t,
            plan: &p,
            jobs_by: &jobs_by,
            jobs: &list,
            failures: &[],
            faults: &[],
            until: None,
        };
        simulate(&ask, &mut |_| ()).unwrap()
    }

    #[test]
    fn jobs_stand_side_by_side() {
        let (a, b) = (result("policies/fair.yaml", 4), result("policies/co-scheduler.yaml", 4));
        let c = compare(&a, &b).unwrap();
        let names = RunNames { a: "fair".into(), b: "co".into(), differences: String::new() };
        assert_eq!(lines(&c, &names).header[1..5], ["JCT fair", "JCT co", "difference", "co/fair"]);
        assert_eq!(
            (c.jobs.len(), lines(&c, &names).rows.len(), exact(&c).csv().lines().count()),
            (4, 4, 5)
        );
        let (x, y) = (a.jobs[2].jct.unwrap().0 as f64, b.jobs[2].jct.unwrap().0 as f64);
        assert!((c.jobs[2].ratio.unwrap() - y / x).abs() < 1e-12 && c.jobs[0].cct_a.is_some());
        assert!(sums(&c, &names).table().contains("JCT p95") && c.run_b.contains("co-scheduler"));
        let same = compare(&a, &a).unwrap();
        assert_eq!((same.mean_ratio, same.mean_error), (Some(1.0), Some(0.0)));
        assert!(
            compare(&a, &result("policies/fair.yaml", 3))
                .unwrap_err()
                .contains("the first has 4, the second 3")
        );
        let mut other = b;
        other.jobs[1].name = "x".into();
        assert!(
            compare(&a, &other)
                .unwrap_err()
                .contains("`lookup-1` of 3 tasks and 600kB, the second 1 `x`")
        );
    }
}
