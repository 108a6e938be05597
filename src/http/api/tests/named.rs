//! Requests name racks, planes and hosts and give quantities with units, as files do; numbers mean
//! the same.

use serde_json::json;

use super::*;

fn send(r: &Rig, method: &str, path: &str, body: &Value) -> ApiAnswer {
    r.call(
        method,
        path,
        &[("content-type", "application/json"), ("if-match", "*")],
        body.to_string().as_bytes(),
    )
}

#[test]
fn circuits_are_set_by_name_and_by_number() {
    let r = rig();
    let set = |path: &str, output: Value| {
        send(&r, "PUT", &format!("/api/v1/circuits/{path}"), &json!({"output": output}))
    };
    assert_eq!(set("p0/r0", json!("r2")).status, 204);
    assert_eq!(set("0/1", json!("3")).status, 204);
    r.tick();
    let circuits = r.get("/api/v1/circuits").json();
    let ends = circuits["circuits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| (c["input"].clone(), c["output"].clone()));
    assert_eq!(
        ends.collect::<Vec<_>>(),
        [(json!(0), json!(2)), (json!(1), json!(3))],
        "answers have numbers"
    );
    assert_eq!(r.call("DELETE", "/api/v1/circuits/0/r1", &[], b"").status, 204);
    let all = json!({"circuits": [{"plane": "p0", "input": "r3", "output": "r1"}, {"plane": 0, "input": 2, "output": 0.0}]});
    assert_eq!(send(&r, "PUT", "/api/v1/circuits", &all).status, 204);
    let allowed = "they are 0 to 3, or r0 to r3";
    assert_eq!(
        set("0/0", json!("r4")).problem(422),
        ("/output".into(), format!("no rack 4: {allowed}"))
    );
    for wrong in [
        json!("h0-0"),
        json!("rack 3"),
        json!("r-1"),
        json!("r+1"),
        json!(""),
        json!("r99999999999"),
    ] {
        let (pointer, why) = set("0/0", wrong).problem(422);
        assert!(
            pointer == "/output"
                && why.ends_with("is no rack; allowed: a name such as r0, or its number"),
            "{pointer} {why}"
        );
    }
    for wrong in [json!(-1), json!(0.5), json!(1u64 << 32), json!([0]), json!(null), json!(true)] {
        let (pointer, why) = set("0/0", wrong).problem(422);
        assert!(
            pointer == "/output"
                && why.contains("expected a rack: a name such as r0, or its number"),
            "{pointer} {why}"
        );
    }
    let (_, why) = set("0/r9", json!("r1")).problem(404);
    assert_eq!(why, "no rack `r9`: they have names such as r0, or they are 0 to 3");
}

#[test]
fn coflows_are_posted_with_names_and_units() {
    let r = rig();
    let post = |body: Value| send(&r, "POST", "/api/v1/coflows", &body);
    let pairs = post(json!({"pairs": [{"from": "r0", "to": 1, "bytes": "5MB"}, {"from": 0, "to": "r2", "bytes": "1.5 kB"}]})).json();
    assert_eq!(
        pairs["pairs"],
        json!([{"from": 0, "to": 1, "bytes": 5_000_000}, {"from": 0, "to": 2, "bytes": 1500}])
    );
    let id = 7;
    let put = |body: Value| send(&r, "PUT", &format!("/api/v1/coflows/{id}"), &body);
    assert_eq!(put(json!({"flows": [{"from": "h0-1", "to": "h3-0", "bytes": "2kB"}]})).status, 201);
    assert_eq!(
        put(json!({"flows": [{"from": 1, "to": 6, "bytes": 2000}]})).status,
        200,
        "the same in numbers"
    );
    let (pointer, why) =
        post(json!({"flows": [{"from": "h0-0", "to": "h0-2", "bytes": 1}]})).problem(422);
    assert_eq!(
        (pointer.as_str(), why.as_str()),
        ("/flows/0/to", "no host h0-2: they are 0 to 7, or h0-0 to h3-1")
    );
    let (pointer, why) =
        post(json!({"pairs": [{"from": 0, "to": 1, "bytes": "5 MiB"}]})).problem(422);
    assert!(
        pointer == "/pairs/0/bytes" && why.contains("did you mean 5MB? Units: TB, GB, MB, kB, B"),
        "{pointer} {why}"
    );
    let place = |key: &str, value: Value| {
        let mut place = json!({"maps": [{"rack": "r0", "bytes": "1MB"}], "tasks": 1, "forbidden": ["r0", "r1", 2]});
        place[key] = value;
        post(json!({"place": place}))
    };
    let held = place("hold_ns", json!("2s")).json();
    let proposal = &held["proposal"];
    let ns = |key: &str| proposal[key].as_u64().unwrap();
    assert_eq!(
        (ns("expires_ns") - ns("proposed_ns"), &proposal["chosen"]["racks"][0]["rack"]),
        (2_000_000_000, &json!(3))
    );
    assert_eq!(place("ready_ns", json!("8d")).problem(422).0, "/place/ready_ns");
}

#[test]
fn what_is_wrong_is_said_in_the_words_of_the_field() {
    let r = rig();
    let said = |path: &str| r.get(path).problem(400).1;
    assert_eq!(said("/api/v1/coflows?limit=x"), "limit: it is not a whole number");
    let why = said("/api/v1/coflows?lmit=1");
    assert!(why.starts_with("unknown parameter `lmit`, did you mean `limit`?"), "{why}");
    assert_eq!(r.get("/api/v1/utilisation?from_ns=100ms").status, 200);
    let (_, why) = send(&r, "PUT", "/api/v1/circuits/0/0", &json!({})).problem(422);
    assert_eq!(why, "missing key `output`");
}

#[test]
fn a_policy_is_taken_as_its_file() {
    let r = rig();
    let put = |kind: &str, body: &str| {
        r.call(
            "PUT",
            "/api/v1/policy",
            &[("content-type", kind), ("if-match", "*")],
            body.as_bytes(),
        )
    };
    let file = "# by hand\nname: other\ninterval: 200ms\ndemand: counters\nscheduler: manual\n";
    let taken = put("application/yaml", file);
    assert_eq!((taken.status, taken.json()["name"].clone()), (200, json!("other")), "{taken:?}");
    let (pointer, _) = put("application/yaml", &file.replace("200ms", "1 fortnight")).problem(422);
    assert_eq!(pointer, "/interval");
    put("application/yaml", "a: [").problem(400);
    assert!(put("text/plain", file).problem(415).1.contains("application/yaml"));
    let circuit = [("content-type", "application/yaml")];
    r.call("PUT", "/api/v1/circuits/0/0", &circuit, b"output: r1").problem(415);
}

#[test]
fn a_run_tells_its_name_and_when_it_began() {
    let run = crate::api::RunIdentity {
        name: Some("aud1".into()),
        started_at: Some("2026-01-02T03:04:05.678Z".into()),
    };
    let r = rig_with(ServerOptions {
        listen: Some(([127, 0, 0, 1], 0).into()),
        run,
        ..ServerOptions::default()
    });
    let stats = r.get("/api/v1/stats").json();
    assert_eq!(
        (&stats["name"], &stats["started_at"]),
        (&json!("aud1"), &json!("2026-01-02T03:04:05.678Z"))
    );
    assert_eq!(
        rig().get("/api/v1/stats").json()["name"],
        "net",
        "else it is called as its topology"
    );
}
