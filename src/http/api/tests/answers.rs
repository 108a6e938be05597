//! What an answer looks like: its form, none for who has it, and what would be right where there is
//! nothing.

use super::*;

#[test]
fn metrics_come_in_the_form_that_is_asked_for() {
    let r = rig();
    r.tick();
    let of = |accept: &str| r.call("GET", "/metrics", &[("accept", accept)], b"");
    for accept in [
        "*/*",
        "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5",
        "application/*",
    ] {
        let a = of(accept);
        assert!(
            a.header("content-type").starts_with("application/openmetrics-text; version=1.0.0")
                && a.text.ends_with("# EOF\n"),
            "{a:?}"
        );
    }
    let a = of("text/plain;version=0.0.4");
    assert_eq!(
        (a.status, a.header("content-type"), a.header("vary")),
        (200, "text/plain; version=0.0.4; charset=utf-8", "accept")
    );
    assert!(!a.text.contains("# EOF") && !a.text.contains("# UNIT"), "{}", a.text);
    assert!(
        a.text.contains("# TYPE heliostat_cycles_total counter\nheliostat_cycles_total 1\n"),
        "{}",
        a.text
    );
    // Every sample belongs to the family before it, as that format has it.
    let mut family = String::new();
    for line in a.text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            family = rest.split(' ').next().unwrap().into();
        } else if !line.starts_with('#') {
            assert!(line.starts_with(&family) && !family.is_empty(), "{line} under {family}");
        }
    }
    of("application/json").problem(406);
    of("text/plain;q=0").problem(406);
}

#[test]
fn what_a_client_has_is_not_sent_again() {
    let r = rig();
    let first = r.get("/api/v1/policy");
    let tag = first.header("etag").to_owned();
    for known in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".into()] {
        let a = r.call("GET", "/api/v1/policy", &[("if-none-match", &known)], b"");
        assert_eq!((a.status, a.text.as_str(), a.header("etag")), (304, "", &*tag), "{known}");
    }
    for other in ["\"x\"", "x", ""] {
        assert_eq!(
            r.call("GET", "/api/v1/policy", &[("if-none-match", other)], b"").text,
            first.text,
            "{other}"
        );
    }
    // Of an answer without a tag nothing is known.
    assert_eq!(r.call("GET", "/api/v1/stats", &[("if-none-match", "*")], b"").status, 200);
}

#[test]
fn where_there_is_nothing_it_is_said_what_would_be_right() {
    let r = rig();
    for (path, hint) in [
        ("/api/v1/coflows/", "write it without the slash at its end, /api/v1/coflows"),
        ("/api/v1/circuits/0/1/", "without the slash at its end, /api/v1/circuits/0/1"),
        ("/metrics/", "without the slash at its end, /metrics"),
        ("/api/v1/coflow", "did you mean /api/v1/coflows?"),
        ("/api/coflows", "did you mean /api/v1/coflows?"),
        ("/nothing/of/the/kind", "/openapi.json"),
    ] {
        let (_, detail) = r.get(path).problem(404);
        assert!(detail.contains(hint), "{path}: {detail}");
    }
    let (_, detail) = r.get(&format!("/{}", "x".repeat(5000))).problem(404);
    assert!(detail.len() < 300, "{detail}");
}

#[test]
fn an_id_is_a_whole_number_and_a_coflow_may_be_taken_back_twice() {
    let r = rig();
    let body = serde_json::json!({"pairs": [{"from": 0, "to": 1, "bytes": 5}]});
    for id in [
        "-1",
        "1.0",
        "0x10",
        "007",
        "9223372036854775807",
        "18446744073709551615",
        "2147483648",
        "4294967295",
        "x",
    ] {
        let (_, detail) = r.send("PUT", &format!("/api/v1/coflows/{id}"), &body).problem(400);
        assert!(
            detail.contains("a coflow's id is a whole number from 0 to 2147483647"),
            "{id}: {detail}"
        );
    }
    for id in ["-1", "18446744073709551615", "x"] {
        let (_, detail) = r.get(&format!("/api/v1/coflows/{id}")).problem(404);
        assert!(detail.contains("a whole number from 0 to 4294967295"), "{id}: {detail}");
    }
    assert_eq!(r.send("PUT", "/api/v1/coflows/2147483647", &body).status, 201);
    for _ in 0..2 {
        assert_eq!(r.call("DELETE", "/api/v1/coflows/2147483647", &[], b"").status, 204);
    }
    // Text that turns, hides or breaks is no name.
    for name in ["a\u{202e}b", "a\u{2028}b", "a\u{200b}", "a\u{1b}[2J", "a\nb"] {
        let named = serde_json::json!({"name": name, "pairs": [{"from": 0, "to": 1, "bytes": 5}]});
        let (pointer, _) = r.send("POST", "/api/v1/coflows", &named).problem(422);
        assert_eq!(pointer, "/name", "{name:?}");
    }
}
