//! Counters of the control loop.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::control::histogram::{BOUNDS, Histogram, Histograms};
use crate::control::record;
use crate::units::Span;

/// Counters of the control loop, and what failed and is being retried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Stats {
    /// Revision of the snapshot that they come from; grows with every change.
    pub revision: u64,
    /// Time of the snapshot.
    pub now_ns: u64,
    /// What the network is called on its machine: `--name` of `run`, else the topology's name.
    #[serde(default)]
    pub name: String,
    /// The instant from which every `_ns` of an answer or event counts, as ISO 8601 in UTC.
    #[serde(default)]
    pub started_at: Option<String>,
    /// `timed`, `netlink` or `sim`.
    pub mechanism: String,
    /// Cycles done.
    pub cycles: u64,
    /// Cycles whose decision came too late.
    pub late_cycles: u64,
    /// Deadlines skipped.
    pub missed_cycles: u64,
    /// Cycles in which the program of the scheduler `external` gave no answer in time, or a wrong
    /// one, and the fallback decided.
    pub fallbacks: u64,
    /// Cycles among these in which the answer was only late.
    #[serde(default)]
    pub late_answers: u64,
    /// Why the fallback decided: the first reason other than a late answer, else the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_fallback: Option<String>,
    /// Circuits set up.
    pub circuits_set: u64,
    /// Time to read the fabric.
    pub poll: Quantiles,
    /// Time to decide.
    pub decide: Quantiles,
    /// Time to carry out.
    pub apply: Quantiles,
    /// The three together.
    pub cycle: Quantiles,
    /// Dark time asked for.
    pub dark_asked: Quantiles,
    /// Dark time that probes saw.
    pub dark_achieved: Quantiles,
    /// Both by plane, where planes ask for different dark times; else empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dark_by_plane: Vec<PlaneDark>,
    /// Probes that came out where they should.
    pub probes_ok: u64,
    /// Probes that came out elsewhere.
    pub probes_wrong: u64,
    /// Probes that never came out.
    pub probes_lost: u64,
    /// Payload between racks that TCP has sent again since the start, of connections that have
    /// ended; of traffic that Heliostat sends itself. It is on the wire a second time.
    #[serde(default)]
    pub sent_again_bytes: Option<u64>,
    /// Coflows whose last byte was received, since the start.
    #[serde(default)]
    pub coflows_finished: u64,
    /// Coflows that were taken back, or broke, since the start.
    #[serde(default)]
    pub coflows_cancelled: u64,
    /// Payload between racks that both have received.
    #[serde(default)]
    pub coflows_received_bytes: u64,
    /// What failed and is being retried.
    pub failures: Vec<Failure>,
    /// Since when, and until when, the network was not as it was built; left out if it always was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tampered: Option<Tampered>,
    /// Durations by ranges, since the start; only if asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranges: Option<Ranges>,
}

/// Durations counted by ranges that never change, as `/metrics` has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ranges {
    /// The largest duration of each range but the last, which has none.
    pub bounds_ns: Vec<u64>,
    /// Cycles by their time to read the fabric; a number a range.
    pub poll: Vec<u64>,
    /// By their time to decide.
    pub decide: Vec<u64>,
    /// By their time to carry out.
    pub apply: Vec<u64>,
    /// By the three together.
    pub cycle: Vec<u64>,
}

impl From<&Histograms> for Ranges {
    fn from(h: &Histograms) -> Self {
        let counts = |h: &Histogram| h.ranges().map(|r| r.1).collect();
        let bounds_ns = BOUNDS.iter().map(|b| b.0).collect();
        Self {
            bounds_ns,
            poll: counts(&h.poll),
            decide: counts(&h.decide),
            apply: counts(&h.apply),
            cycle: counts(&h.cycle),
        }
    }
}

/// Another process changed the network: what was measured meanwhile may not be what it says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Tampered {
    /// When that was first found.
    pub from_ns: u64,
    /// When it was last found.
    pub until_ns: u64,
    /// What was found first.
    pub what: String,
    /// How many things were found, each once however long it lasted.
    pub found: u64,
}

/// Dark times of the circuits of one plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlaneDark {
    /// The plane.
    pub plane: u32,
    /// Dark time asked for.
    pub asked: Quantiles,
    /// Dark time that probes saw.
    pub achieved: Quantiles,
}

impl From<&record::PlaneDark> for PlaneDark {
    fn from(d: &record::PlaneDark) -> Self {
        Self { plane: d.plane, asked: (&d.asked).into(), achieved: (&d.achieved).into() }
    }
}

impl From<&PlaneDark> for record::PlaneDark {
    fn from(d: &PlaneDark) -> Self {
        Self { plane: d.plane, asked: (&d.asked).into(), achieved: (&d.achieved).into() }
    }
}

/// Distribution of a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Quantiles {
    /// How many were measured.
    pub count: u64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Largest.
    pub max_ns: u64,
}

impl From<&record::Quantiles> for Quantiles {
    fn from(q: &record::Quantiles) -> Self {
        Self { count: q.count, p50_ns: q.p50.0, p99_ns: q.p99.0, max_ns: q.max.0 }
    }
}

/// Something that failed, kept until it succeeds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Failure {
    /// What was tried.
    pub what: String,
    /// Why it failed.
    pub why: String,
    /// Number of attempts so far.
    pub attempts: u32,
    /// When it is tried again.
    pub retry_at_ns: u64,
}

fn tampered(t: &record::Tampered) -> Tampered {
    Tampered { from_ns: t.from.0, until_ns: t.until.0, what: t.what.clone(), found: t.found }
}

impl From<&record::Snapshot> for Stats {
    fn from(s: &record::Snapshot) -> Self {
        let failure = |f: &record::Failure| {
            let (what, why) = (f.trouble.to_string(), f.why.clone());
            Failure { what, why, attempts: f.attempts, retry_at_ns: f.retry_at.0 }
        };
        Self {
            revision: s.revision,
            now_ns: s.now.0,
            name: String::new(),
            started_at: None,
            mechanism: s.mechanism.clone(),
            cycles: s.stats.cycles,
            late_cycles: s.stats.late_cycles,
            missed_cycles: s.stats.missed_cycles,
            fallbacks: s.stats.fallbacks,
            late_answers: s.stats.late_answers,
            first_fallback: s.stats.first_fallback.clone(),
            circuits_set: s.stats.circuits_set,
            poll: (&s.stats.poll).into(),
            decide: (&s.stats.decide).into(),
            apply: (&s.stats.apply).into(),
            cycle: (&s.stats.cycle).into(),
            dark_asked: (&s.stats.dark_asked).into(),
            dark_achieved: (&s.stats.dark_achieved).into(),
            dark_by_plane: s.stats.dark_by_plane.iter().map(Into::into).collect(),
            probes_ok: s.stats.probes_ok,
            probes_wrong: s.stats.probes_wrong,
            probes_lost: s.stats.probes_lost,
            sent_again_bytes: None,
            coflows_finished: s.coflows.totals.finished,
            coflows_cancelled: s.coflows.totals.cancelled,
            coflows_received_bytes: s.coflows.totals.received.0,
            failures: s.failures.iter().map(failure).collect(),
            tampered: s.tampered.as_ref().map(tampered),
            ranges: None,
        }
    }
}

impl From<&Quantiles> for record::Quantiles {
    fn from(q: &Quantiles) -> Self {
        Self { count: q.count, p50: Span(q.p50_ns), p99: Span(q.p99_ns), max: Span(q.max_ns) }
    }
}

impl From<&Stats> for record::Stats {
    fn from(s: &Stats) -> Self {
        Self {
            cycles: s.cycles,
            late_cycles: s.late_cycles,
            missed_cycles: s.missed_cycles,
            fallbacks: s.fallbacks,
            late_answers: s.late_answers,
            first_fallback: s.first_fallback.clone(),
            circuits_set: s.circuits_set,
            poll: (&s.poll).into(),
            decide: (&s.decide).into(),
            apply: (&s.apply).into(),
            cycle: (&s.cycle).into(),
            dark_asked: (&s.dark_asked).into(),
            dark_achieved: (&s.dark_achieved).into(),
            dark_by_plane: s.dark_by_plane.iter().map(Into::into).collect(),
            probes_ok: s.probes_ok,
            probes_wrong: s.probes_wrong,
            probes_lost: s.probes_lost,
        }
    }
}
