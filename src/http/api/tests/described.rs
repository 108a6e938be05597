//! Answers are those that `/openapi.json` describes: status and content type, and numbers as large
//! as it says. scripts/contract asks far more, with requests that are drawn.

use super::*;

/// A request's query, headers and body.
type DescribedRequest<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [u8]);

/// Every operation of the description, the stream of events aside: method, path with places filled
/// in, description.
fn operations(doc: &Value, places: &str) -> Vec<(String, String, Value)> {
    let mut all = vec![];
    for (path, item) in
        doc["paths"].as_object().unwrap().iter().filter(|(p, _)| *p != "/api/v1/events")
    {
        let parts = path.split('/').map(|p| if p.starts_with('{') { places } else { p });
        let at = parts.collect::<Vec<_>>().join("/");
        all.extend(
            item.as_object()
                .unwrap()
                .iter()
                .map(|(m, op)| (m.to_uppercase(), at.clone(), op.clone())),
        );
    }
    all
}

/// An answer is described, and comes as the content type that is described for it.
fn is_described(op: &Value, a: &ApiAnswer, asked: &str) {
    let described = &op["responses"][a.status.to_string()];
    assert!(described.is_object(), "{asked}: {} is not described", a.status);
    let kinds = described["content"]
        .as_object()
        .map(|c| c.keys().cloned().collect::<Vec<_>>())
        .unwrap_or_default();
    let kind = a.header("content-type");
    // A text's encoding is no part of its type.
    let fits = kinds.iter().any(|k| k == kind || kind.split(';').next() == Some(k))
        || (kinds.is_empty() && a.text.is_empty());
    assert!(fits, "{asked}: {kind}, and {kinds:?} is described for {}", a.status);
}

#[test]
fn refusals_are_as_described_on_every_route() {
    let r = rig();
    let doc = r.get("/openapi.json").json();
    let json = ("content-type", "application/json");
    let requests: [DescribedRequest<'_>; 6] = [
        ("", &[], b""),
        ("", &[("content-type", "text/plain"), ("if-match", "*")], b"{}"),
        ("", &[json, ("if-match", "*")], b"\0"),
        ("", &[json, ("if-match", "*")], b"{\"nonsense\": 1}"),
        ("?nonsense=1", &[json, ("idempotency-key", "")], b"{}"),
        ("", &[json, ("sec-fetch-site", "cross-site")], b"{}"),
    ];
    for places in ["0", "nonsense", "99999999999"] {
        for (method, path, op) in operations(&doc, places) {
            for (query, headers, body) in requests {
                let a = r.call(&method, &format!("{path}{query}"), headers, body);
                is_described(
                    &op,
                    &a,
                    &format!(
                        "{method} {path}{query} {headers:?} {}",
                        String::from_utf8_lossy(body)
                    ),
                );
            }
        }
    }
}

#[test]
fn what_the_guard_answers_is_described_on_every_route() {
    let token = ServerOptions {
        listen: Some(([127, 0, 0, 1], 0).into()),
        token: Some("0123456789abcdef".into()),
        ..ServerOptions::default()
    };
    let (open, closed) = (rig(), rig_with(token));
    let doc = open.get("/openapi.json").json();
    for (method, path, op) in operations(&doc, "0") {
        is_described(
            &op,
            &closed.call(&method, &path, &[], b""),
            &format!("{method} {path} without a token"),
        );
        is_described(
            &op,
            &open.call(&method, &path, &[("host", "evil.example")], b""),
            &format!("{method} {path} of another host"),
        );
    }
    assert_eq!(doc["components"]["securitySchemes"]["token"]["scheme"], "bearer");
}

#[test]
fn numbers_may_be_as_large_as_described() {
    let r = rig();
    let doc = r.get("/openapi.json").json();
    let format = |pointer: &str| {
        doc.pointer(pointer).unwrap_or_else(|| panic!("no {pointer}"))["format"].clone()
    };
    assert_eq!(format("/components/schemas/Pair/properties/bytes"), "uint64");
    assert_eq!(format("/components/schemas/Coflow/properties/id"), "uint32");
    assert_eq!(r.get(&format!("/api/v1/coflows?limit={}", u32::MAX)).status, 200);
    assert_eq!(r.get(&format!("/api/v1/jobs?after={}", u64::MAX)).status, 200);
    assert_eq!(r.get(&format!("/api/v1/utilisation?from_ns={}", u64::MAX)).status, 200);
}

/// Passes each value of a JSON document with its JSON Pointer to `see`, the whole document first.
fn each<'a>(at: &str, v: &'a Value, see: &mut dyn FnMut(&str, &'a Value)) {
    see(at, v);
    match v {
        Value::Object(m) => m.iter().for_each(|(k, v)| {
            each(&format!("{at}/{}", k.replace('~', "~0").replace('/', "~1")), v, see)
        }),
        Value::Array(a) => {
            a.iter().enumerate().for_each(|(i, v)| each(&format!("{at}/{i}"), v, see))
        }
        _ => {}
    }
}

#[test]
fn generators_of_clients_find_all_schemas_and_only_what_they_know() {
    let doc = rig().get("/openapi.json").json();
    let mut references = 0;
    each("", &doc, &mut |at, v| {
        if let Some(to) = v.get("$ref").and_then(Value::as_str) {
            references += 1;
            assert!(doc.pointer(to.trim_start_matches('#')).is_some(), "{at}: nothing at {to}");
        }
        assert!(v.get("items").is_none_or(|i| !i.is_boolean()), "{at}: `items` is no schema");
    });
    assert!(references > 100, "{references}");
    // Each kind of event is one object with all its fields, and has a name.
    let kinds = doc["components"]["schemas"]["Record"]["oneOf"].as_array().unwrap();
    assert!(kinds.len() > 10);
    for kind in kinds {
        let (event, required) = (
            kind["properties"]["event"]["enum"][0].as_str().unwrap(),
            kind["required"].as_array().unwrap(),
        );
        assert_eq!(kind["title"], format!("record-{event}"));
        for field in ["seq", "at_ns", "event"] {
            assert!(
                required.contains(&field.into()) && kind["properties"][field].is_object(),
                "{event}: {field}"
            );
        }
    }
}
