//! The event stream: ids, resuming, gaps, the end.

use std::io::{BufRead, BufReader};

use serde_json::json;

use super::*;
use crate::api::state::{FIRST_POSTED, RING, RecentEvents};
use crate::api::wire;
use crate::control::record::{Record, RecordedEvent};
use crate::ids::CoflowId;

/// Reads `n` events: (id, event, data).
fn read(
    r: &Rig,
    last: Option<&str>,
    n: usize,
    ready: impl FnOnce(),
) -> Vec<(String, String, Value)> {
    read_of(r, "", last, n, ready)
}

/// The same of what a query leaves.
fn read_of(
    r: &Rig,
    query: &str,
    last: Option<&str>,
    n: usize,
    ready: impl FnOnce(),
) -> Vec<(String, String, Value)> {
    let mut stream = r.connect();
    let last = last.map(|l| format!("last-event-id: {l}\r\n")).unwrap_or_default();
    stream
        .write_all(
            format!("GET /api/v1/events{query} HTTP/1.1\r\nhost: localhost\r\n{last}\r\n")
                .as_bytes(),
        )
        .unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    assert!(lines.any(|l| l.is_empty()), "the end of the headers");
    ready();
    let (mut out, mut id, mut event) = (vec![], String::new(), String::new());
    while out.len() < n {
        let line = lines.next().expect("more events");
        match line.split_once(": ") {
            Some(("id", v)) => id = v.into(),
            Some(("event", v)) => event = v.into(),
            Some(("data", v)) => out.push((
                std::mem::take(&mut id),
                std::mem::take(&mut event),
                serde_json::from_str(v).unwrap(),
            )),
            _ => {}
        }
    }
    out
}

fn declare(r: &Rig) {
    assert_eq!(
        r.send("POST", "/api/v1/coflows", &json!({"pairs": [{"from": 2, "to": 1, "bytes": 5}]}))
            .status,
        201
    );
}

#[test]
fn events_come_with_ids_and_resume() {
    let r = rig();
    let got = read(&r, None, 3, || {
        declare(&r);
        declare(&r);
        r.call("DELETE", &format!("/api/v1/coflows/{FIRST_POSTED}"), &[], b"");
    });
    let names: Vec<_> = got.iter().map(|e| (e.0.as_str(), e.1.as_str())).collect();
    assert_eq!(
        names,
        [("0", "coflow-arrived"), ("1", "coflow-arrived"), ("2", "coflow-cancelled")]
    );
    assert_eq!(
        got[0].2,
        json!({"seq": 0, "at_ns": 0, "event": "coflow-arrived", "id": FIRST_POSTED, "asked_bytes": 5})
    );
    assert_eq!(read(&r, Some("0"), 2, || {}), got[1..], "from after the last one seen");
    assert_eq!(read(&r, Some("2"), 1, || declare(&r))[0].0, "3");
    // A number from another life of the controller: from now on.
    assert_eq!(read(&r, Some("99"), 1, || declare(&r))[0].0, "4");
    r.call("GET", "/api/v1/events", &[("last-event-id", "x")], b"").problem(400);
    // The log of a new life is empty.
    let r = rig();
    assert_eq!(read(&r, Some("500"), 1, || declare(&r))[0].0, "0");
}

#[test]
fn a_client_names_the_events_that_it_wants() {
    let r = rig();
    let happens = || {
        declare(&r);
        r.call("DELETE", &format!("/api/v1/coflows/{FIRST_POSTED}"), &[], b"");
        declare(&r);
    };
    let got = read_of(&r, "?types=coflow-cancelled,coflow-finished", None, 1, happens);
    assert_eq!((got[0].0.as_str(), got[0].1.as_str()), ("1", "coflow-cancelled"));
    let both = read_of(&r, "?types=coflow-cancelled,coflow-arrived", Some("0"), 2, || {});
    assert_eq!(
        both.iter().map(|e| e.1.as_str()).collect::<Vec<_>>(),
        ["coflow-cancelled", "coflow-arrived"],
        "none is missed by a gap"
    );
    for wrong in ["?types=coflow-finish", "?types=", "?type=cycle"] {
        r.call("GET", &format!("/api/v1/events{wrong}"), &[], b"").problem(400);
    }
    // The list is that of the description, which is made from the type.
    let doc = r.get("/openapi.json").json();
    let kinds = doc["components"]["schemas"]["Record"]["oneOf"].as_array().unwrap();
    let mut tags: Vec<&str> =
        kinds.iter().map(|k| k["properties"]["event"]["enum"][0].as_str().unwrap()).collect();
    let mut names = wire::What::NAMES.to_vec();
    tags.sort_unstable();
    names.sort_unstable();
    assert_eq!(tags, names);
}

#[test]
fn forgotten_events_are_a_gap() {
    let log = RecentEvents::default();
    for seq in 0..RING as u64 + 10 {
        log.push(Arc::new(Record {
            seq,
            at: Time::ZERO,
            what: RecordedEvent::CoflowCancelled { id: CoflowId(0), why: None },
        }));
    }
    assert_eq!(log.next(None).unwrap().record.seq, 10);
    assert_eq!(log.next(Some(3)).unwrap().record.seq, 10);
    assert_eq!(log.next(Some(20)).unwrap().record.seq, 21);
    assert!(log.next(Some(RING as u64 + 9)).is_none());
}

#[test]
fn an_open_stream_ends_when_the_server_stops() {
    let r = rig();
    let mut stream = r.connect();
    stream.write_all(b"GET /api/v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines();
    assert!(lines.by_ref().any(|l| l.unwrap().is_empty()));
    let start = std::time::Instant::now();
    drop(r);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    let rest = lines.collect::<Result<Vec<_>, _>>().expect("an orderly end");
    let said: Vec<&str> = rest.iter().map(String::as_str).filter(|l| l.contains(": ")).collect();
    assert_eq!(said, ["event: end", "data: {\"at_ns\":0}"]);
}
