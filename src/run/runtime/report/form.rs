//! The form of JSON documents: its number, and how results of older forms are read.
//!
//! Form 1 had no number, keys without units, and hosts by number. Form 2 says the unit of every
//! quantity in its key, as the API does, names hosts, and tells in `origin` where the result comes
//! from.

use serde::Serialize;
use serde_json::{Map, Value};

/// The number of the form that is written.
pub const FORMAT: u64 = 2;

/// A document as it is written: what it holds, with the number of its form before it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Document<'a, T> {
    format: u64,
    #[serde(flatten)]
    content: &'a T,
}

impl<'a, T> Document<'a, T> {
    /// Of something that is an object in JSON.
    pub fn of(content: &'a T) -> Self {
        Self { format: FORMAT, content }
    }
}

/// Old and new names of keys.
type KeyRenames = &'static [(&'static str, &'static str)];

/// What results have been renamed since form 1, by place: `[]` is each of a list, `*` each of an
/// object.
const RENAMED: [(&str, KeyRenames); 12] = [
    ("coflows.[]", COFLOW),
    ("jobs.[]", JOB),
    ("summary", SUMS),
    ("network", SUMS),
    ("summary.stats.*", QUANTILES),
    ("network.stats.*", QUANTILES),
    ("tampered", &[("from", "from_ns"), ("until", "until_ns")]),
    ("utilisation", &[("bucket", "bucket_ns"), ("until", "until_ns")]),
    ("utilisation.links.[]", &[("rate", "rate_bps")]),
    ("timeline.[]", ATTEMPT),
    ("explained.[]", ATTEMPT),
    (
        "explained.[].why",
        &[("fetches", "fetch_bytes"), ("transfer", "transfer_ns"), ("computing", "computing_ns")],
    ),
];
const COFLOW: KeyRenames = &[
    ("longest_flow", "longest_flow_bytes"),
    ("bytes_between_racks", "between_racks_bytes"),
    ("arrival", "arrival_ns"),
    ("finished", "finished_ns"),
    ("cct", "cct_ns"),
    ("bound", "bound_ns"),
];
const JOB: KeyRenames = &[
    ("arrival", "arrival_ns"),
    ("started", "started_ns"),
    ("finished", "finished_ns"),
    ("jct", "jct_ns"),
    ("slot_time", "slot_time_ns"),
    ("shuffled", "shuffled_bytes"),
    ("read", "read_bytes"),
    ("between_racks", "between_racks_bytes"),
    ("shuffle_ccts", "shuffle_ccts_ns"),
];
/// The sums of coflows and of jobs.
const SUMS: KeyRenames = &[
    ("makespan", "makespan_ns"),
    ("average_cct", "average_cct_ns"),
    ("median_cct", "median_cct_ns"),
    ("p95_cct", "p95_cct_ns"),
    ("average_jct", "average_jct_ns"),
    ("median_jct", "median_jct_ns"),
    ("p95_jct", "p95_jct_ns"),
    ("slot_time", "slot_time_ns"),
    ("bytes_asked", "asked_bytes"),
    ("bytes_planned", "planned_bytes"),
    ("bytes_received", "received_bytes"),
    ("bytes_between_racks", "between_racks_bytes"),
    ("bytes_on_wire", "on_wire_bytes"),
    ("bytes_sent_again", "sent_again_bytes"),
    ("ended", "ended_ns"),
];
const QUANTILES: KeyRenames = &[("p50", "p50_ns"), ("p99", "p99_ns"), ("max", "max_ns")];
const ATTEMPT: KeyRenames = &[
    ("waited_since", "waited_since_ns"),
    ("started", "started_ns"),
    ("computes", "computes_ns"),
    ("ended", "ended_ns"),
];

/// A result, a list of results or any other document in the form of today. One of form 1 has its
/// hosts as `host 3`: what they are called is not in it. Linear in its size.
///
/// # Errors
/// A form that only a later version knows.
pub fn current(mut document: Value) -> Result<Value, String> {
    match &mut document {
        Value::Array(all) => all.iter_mut().try_for_each(upgrade)?,
        one => upgrade(one)?,
    }
    Ok(document)
}

fn upgrade(document: &mut Value) -> Result<(), String> {
    match document.get("format").map(Value::as_u64) {
        Some(Some(FORMAT)) => return Ok(()),
        Some(_) => {
            return Err(format!(
                "format {}; this version reads {FORMAT}, and those without a number",
                document["format"]
            ));
        }
        None => {}
    }
    for (place, names) in RENAMED {
        at(document, place, &mut |object| rename(object, names));
    }
    for place in ["timeline.[]", "explained.[]"] {
        at(document, place, &mut name_host);
    }
    at(document, "", &mut gather_origin);
    document.get_mut("baseline").map_or(Ok(()), upgrade)
}

/// Changes the objects at a place.
fn at(value: &mut Value, place: &str, change: &mut dyn FnMut(&mut Map<String, Value>)) {
    let (step, rest) = place.split_once('.').unwrap_or((place, ""));
    match (step, value) {
        ("", Value::Object(object)) => change(object),
        ("[]", Value::Array(all)) => all.iter_mut().for_each(|v| at(v, rest, change)),
        ("*", Value::Object(all)) => all.values_mut().for_each(|v| at(v, rest, change)),
        (key, Value::Object(object)) => {
            if let Some(v) = object.get_mut(key) {
                at(v, rest, change);
            }
        }
        _ => {}
    }
}

fn rename(object: &mut Map<String, Value>, names: KeyRenames) {
    for (old, new) in names {
        if let Some(value) = object.remove(*old) {
            object.insert((*new).into(), value);
        }
    }
}

fn name_host(attempt: &mut Map<String, Value>) {
    if let Some(host) = attempt.get_mut("host").filter(|h| h.is_number()) {
        *host = format!("host {host}").into();
    }
}

fn gather_origin(result: &mut Map<String, Value>) {
    if let Some(version) = result.remove("version") {
        let mut origin = Map::from_iter([("version".to_owned(), version)]);
        origin.extend(result.remove("seed").map(|seed| ("seed".to_owned(), seed)));
        result.insert("origin".into(), origin.into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::runtime::jobs::report::JobsResult;
    use crate::runtime::report::RunResult;
    use crate::units::{Bytes, Span, Time};

    fn old(file: &str) -> Value {
        serde_json::from_str(&crate::testing::shipped(&format!("tests/results/{file}"))).unwrap()
    }

    #[test]
    fn results_of_form_1_lose_nothing() {
        let r: RunResult = serde_json::from_value(current(old("coflows-1.json")).unwrap()).unwrap();
        assert_eq!(
            (r.origin.version.as_str(), r.origin.seed, r.summary.bytes_asked),
            ("0.1.0", Some(1), r.summary.bytes_received)
        );
        let c = &r.coflows[0];
        assert_eq!(
            (c.cct, c.finished.map(|t| t.since(c.arrival))),
            (Some(Span(1_919_236_193)), c.cct)
        );
        assert!(
            c.longest_flow.is_some() && c.bytes_between_racks > Bytes::ZERO && c.bound > Span::ZERO
        );
        assert!(r.summary.ended > Time::ZERO && r.summary.stats.dark_asked.p50 > Span::ZERO);
        assert!(
            r.utilisation
                .is_some_and(|u| u.bucket > Span::ZERO && u.links.iter().all(|l| l.rate.0 > 0))
        );
        let r: JobsResult = serde_json::from_value(current(old("jobs-1.json")).unwrap()).unwrap();
        assert_eq!(
            (r.jobs[0].jct, r.jobs[0].shuffled, r.timeline[0].host.as_str()),
            (Some(Span(4_509_392_290)), Bytes(45_000_000), "host 0")
        );
        assert!(
            r.explained.iter().any(|e| e.why.as_ref().is_some_and(|w| w.fetches > Bytes::ZERO))
        );
        // Written again and read back it is the same.
        let written = serde_json::to_value(Document::of(&r)).unwrap();
        assert_eq!(
            serde_json::from_value::<JobsResult>(current(written.clone()).unwrap()).unwrap(),
            r
        );
        assert_eq!(written["format"], FORMAT);
    }

    #[test]
    fn lists_and_baselines_are_read_too_and_later_forms_are_not() {
        let with = json!([{"version": "0.1.0", "summary": {"makespan": 3}, "baseline": {"version": "0.1.0", "summary": {"ended": 4}}}]);
        let now = current(with).unwrap();
        assert_eq!(
            (&now[0]["summary"]["makespan_ns"], &now[0]["baseline"]["summary"]["ended_ns"]),
            (&json!(3), &json!(4))
        );
        assert!(
            current(json!({"format": 3}))
                .unwrap_err()
                .starts_with("format 3; this version reads 2")
        );
    }
}
