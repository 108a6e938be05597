//! Bad requests: each has its status, none is ours to blame.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::json;

use super::*;

#[test]
fn bad_bodies_have_their_status() {
    let r = rig();
    let json = [("content-type", "application/json")];
    let post =
        |headers: &[(&str, &str)], body: &[u8]| r.call("POST", "/api/v1/coflows", headers, body);
    post(&json, b"{").problem(400);
    post(&json, b"").problem(400);
    post(&json, br#"{"pairs": []} x"#).problem(400);
    post(&json, &[0xff, 0xfe]).problem(400);
    post(&json, "[".repeat(100_000).as_bytes()).problem(422);
    post(&json, format!("{{\"pairs\":{}", "[".repeat(100_000)).as_bytes()).problem(422);
    post(&json, br#"["name", [{"from": 0, "to": 1, "bytes": 1}], false]"#).problem(422);
    let good = br#"{"pairs": [{"from": 0, "to": 1, "bytes": 1}]}"#;
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "",
        "application/jsonx",
        "multipart/form-data; boundary=x",
    ] {
        post(&[("content-type", kind)], good).problem(415);
    }
    post(&[], good).problem(415);
    assert_eq!(post(&[("content-type", "application/json; charset=utf-8")], good).status, 201);
    post(&json, &vec![b' '; crate::api::MAX_BODY + 1]).problem(413);
}

#[test]
fn unknown_places_and_methods_are_problems() {
    let r = rig();
    for path in [
        "/page",
        "/page/",
        "/page/../mod.rs",
        "/api",
        "/api/v1",
        "/api/v1/circuit",
        "/api/v1/coflows/0/x",
        "/api/v2/topology",
    ] {
        r.get(path).problem(404);
    }
    for (method, path) in [
        ("POST", "/api/v1/topology"),
        ("DELETE", "/api/v1/coflows"),
        ("PATCH", "/api/v1/policy"),
        ("PUT", "/metrics"),
    ] {
        r.call(method, path, &[], b"").problem(405);
    }
}

/// Requests that change something, with bodies that nearly make sense.
fn request() -> impl Strategy<Value = (&'static str, String, Vec<u8>)> {
    let place = prop_oneof![
        Just(("POST", "/api/v1/coflows".to_string())),
        "[0-9a-z%.-]{1,12}".prop_map(|id| ("PUT", format!("/api/v1/coflows/{id}"))),
        "[0-9a-z%]{1,2}/[0-9]{1,2}".prop_map(|p| ("PUT", format!("/api/v1/circuits/{p}"))),
        "[0-3]/[0-9]".prop_map(|p| ("DELETE", format!("/api/v1/ports/{p}/fault"))),
        Just(("PUT", "/api/v1/policy".to_string())),
    ];
    (place, body()).prop_map(|((method, path), body)| (method, path, body))
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let number = || prop_oneof![0u64..6, any::<u64>()];
    let pair = (number(), number(), number())
        .prop_map(|(from, to, bytes)| json!({"from": from, "to": to, "bytes": bytes}));
    let coflow = (prop::option::of(".{0,9}"), prop::collection::vec(pair, 0..5), any::<bool>())
        .prop_map(|(name, pairs, send)| json!({"name": name, "pairs": pairs, "send": send}));
    let circuit = number().prop_map(|output| json!({ "output": output }));
    let scheduler = prop_oneof![
        Just("edmonds"),
        Just("bipartite"),
        Just("round-robin"),
        Just("manual"),
        Just("x")
    ];
    let policy = (number(), number(), scheduler, ".{0,6}").prop_map(
        |(interval, lead, s, name)| json!({"name": name, "interval": interval, "lead": lead, "demand": "declared", "scheduler": s}),
    );
    let text = prop_oneof![coflow, circuit, policy].prop_map(|v| v.to_string().into_bytes());
    prop_oneof![
        2 => text.clone(),
        1 => (text, any::<prop::sample::Index>(), any::<u8>()).prop_map(|(mut t, k, b)| {
            let k = k.index(t.len());
            t[k] = b;
            t
        }),
        1 => prop::collection::vec(any::<u8>(), 0..60),
    ]
}

#[test]
fn no_request_is_answered_by_a_server_error() {
    let r = rig();
    let headers = [("content-type", "application/json"), ("if-match", "*")];
    TestRunner::default()
        .run(&request(), |(method, path, body)| {
            let a = r.call(method, &path, &headers, &body);
            prop_assert!(
                a.status < 500,
                "{} {} {:?}: {:?}",
                method,
                path,
                String::from_utf8_lossy(&body),
                a
            );
            Ok(())
        })
        .unwrap();
    r.tick();
    assert_eq!(r.get("/readyz").status, 200);
}

#[test]
fn reading_changes_nothing() {
    let r = rig();
    r.tick();
    let before = r.handle.snapshot().revision;
    for path in [
        "topology",
        "ports",
        "circuits",
        "circuits/0/0",
        "demand",
        "coflows",
        "coflows/0",
        "policy",
        "stats",
    ] {
        r.get(&format!("/api/v1/{path}"));
    }
    assert_eq!(r.handle.snapshot().revision, before);
}
