//! What is compared of a run, in the order of tables.

use serde::Serialize;

use crate::runtime::jobs::report::JobsResult;
use crate::runtime::report::RunResult;
use crate::runtime::spans::percentile;
use crate::units::Span;

/// One number of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// Its name.
    pub name: &'static str,
    /// The name of its column where it has its base unit.
    pub key: &'static str,
    /// Its unit.
    pub unit: FigureUnit,
    /// In that unit.
    pub value: f64,
}

/// Units of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum FigureUnit {
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// A share from 0 to 1.
    #[serde(rename = "share")]
    Share,
    /// Gigabytes.
    #[serde(rename = "GB")]
    Gigabytes,
    /// A number of things.
    #[serde(rename = "count")]
    Count,
}

fn span(name: &'static str, key: &'static str, value: Span) -> Figure {
    Figure { name, key, unit: FigureUnit::Seconds, value: value.as_secs_f64() }
}

fn count(name: &'static str, key: &'static str, value: u64) -> Figure {
    Figure { name, key, unit: FigureUnit::Count, value: value as f64 }
}

/// Of a run of coflows.
pub(super) fn of_coflows(r: &RunResult) -> Vec<Figure> {
    let s = &r.summary;
    let ccts: Vec<Span> = r.coflows.iter().filter_map(|c| c.cct).collect();
    vec![
        count("coflows finished", "coflows_finished", s.finished as u64),
        count("coflows unfinished", "coflows_unfinished", s.unfinished as u64),
        span("makespan", "makespan_ns", s.makespan),
        span("average CCT", "average_cct_ns", s.average_cct),
        span("median CCT", "median_cct_ns", percentile(&ccts, 50)),
        span("p95 CCT", "p95_cct_ns", s.p95_cct),
        Figure { name: "OCS share", key: "ocs_share", unit: FigureUnit::Share, value: s.ocs_share },
        count("circuits set", "circuits_set", s.stats.circuits_set),
    ]
}

/// Of a run of jobs.
pub(super) fn of_jobs(r: &JobsResult) -> Vec<Figure> {
    let s = &r.summary;
    let gigabytes = |name, key, bytes: crate::units::Bytes| Figure {
        name,
        key,
        unit: FigureUnit::Gigabytes,
        value: bytes.0 as f64 / 1e9,
    };
    vec![
        count("jobs finished", "jobs_finished", s.finished as u64),
        count("jobs unfinished", "jobs_unfinished", s.unfinished as u64),
        span("makespan", "makespan_ns", s.makespan),
        span("average JCT", "average_jct_ns", s.average_jct),
        span("median JCT", "median_jct_ns", s.median_jct),
        span("p95 JCT", "p95_jct_ns", s.p95_jct),
        span("average shuffle CCT", "average_cct_ns", s.average_cct),
        span("median shuffle CCT", "median_cct_ns", s.median_cct),
        span("p95 shuffle CCT", "p95_cct_ns", s.p95_cct),
        count("jobs that send", "jobs_sending", s.sending as u64),
        span("slot time", "slot_time_ns", s.slot_time),
        Figure { name: "OCS share", key: "ocs_share", unit: FigureUnit::Share, value: s.ocs_share },
        gigabytes("bytes planned", "planned_bytes", s.bytes_planned),
        gigabytes("of these between racks", "between_racks_bytes", s.bytes_between_racks),
        count("starts outside a guideline", "violations", s.counters.violations),
    ]
}
