//! Every resource, its good answers and its errors.

use serde_json::json;

use super::*;
use crate::api::state::FIRST_POSTED;
use crate::api::wire;
use crate::fabric::{ReportedEnds, Shipment};

/// The place of the n-th coflow that was posted.
fn posted(n: u32) -> String {
    format!("/api/v1/coflows/{}", FIRST_POSTED + n)
}

#[test]
fn the_network_shows_as_it_is() {
    let r = rig();
    r.tick();
    let t: wire::Topology = serde_json::from_str(&r.get("/api/v1/topology").text).unwrap();
    assert_eq!((t.name.as_str(), t.racks.len(), t.hosts.len()), ("net", 4, 8));
    assert_eq!(
        (t.hosts[3].name.as_str(), t.planes[0].delta_ns, t.racks[0].uplink_bps),
        ("h1-1", 10_000_000, 100_000_000)
    );
    let d: wire::Demand = serde_json::from_str(&r.get("/api/v1/demand").text).unwrap();
    assert_eq!(d.sent_bytes[0], [0, 100_000, 0, 0]);
    assert_eq!((d.backlog_bytes.len(), d.over_ocs_bytes[3].len()), (4, 4));
    let s: wire::Stats = serde_json::from_str(&r.get("/api/v1/stats").text).unwrap();
    assert_eq!((s.cycles, s.mechanism.as_str(), s.ranges), (1, "test", None));
    let s: wire::Stats = serde_json::from_str(&r.get("/api/v1/stats?ranges=true").text).unwrap();
    let ranges = s.ranges.unwrap();
    assert_eq!(
        (ranges.cycle.iter().sum::<u64>(), ranges.cycle.len()),
        (s.cycle.count, ranges.bounds_ns.len() + 1)
    );
    r.get("/api/v1/stats?range=true").problem(400);
    let p: wire::Ports = serde_json::from_str(&r.get("/api/v1/ports").text).unwrap();
    assert_eq!((p.ports.len(), p.ports[2].rack, p.ports[2].crossed_bytes), (4, 2, 3000));
}

#[test]
fn a_circuit_set_by_hand_gets_light_and_goes() {
    let r = rig();
    assert_eq!(r.get("/api/v1/circuits").json()["circuits"], json!([]));
    assert_eq!(r.send("PUT", "/api/v1/circuits/0/1", &json!({"output": 3})).status, 204);
    r.tick();
    r.tick();
    let c = r.get("/api/v1/circuits/0/1").json();
    assert_eq!(
        (&c["output"], &c["state"], &c["manual"], &c["until_ns"]),
        (&json!(3), &json!("up"), &json!(true), &json!(null))
    );
    assert_eq!(r.get("/api/v1/circuits").json()["circuits"].as_array().unwrap().len(), 1);
    let (_, why) = r.send("PUT", "/api/v1/circuits/0/2", &json!({"output": 3})).problem(409);
    assert!(why.contains("held by hand"), "{why}");
    assert_eq!(r.call("DELETE", "/api/v1/circuits/0/1", &[], b"").status, 204);
    r.call("DELETE", "/api/v1/circuits/0/1", &[], b"").problem(404);
    r.tick();
    r.tick();
    r.get("/api/v1/circuits/0/1").problem(404);
}

#[test]
fn a_whole_configuration_is_set_at_one_instant() {
    let r = rig();
    let set = |pairs: &[(u32, u32)]| {
        let all: Vec<Value> =
            pairs.iter().map(|(i, o)| json!({"plane": 0, "input": i, "output": o})).collect();
        r.send("PUT", "/api/v1/circuits", &json!({ "circuits": all }))
    };
    let up = || {
        r.tick();
        r.tick();
        let circuits: wire::Circuits =
            serde_json::from_str(&r.get("/api/v1/circuits").text).unwrap();
        circuits
            .circuits
            .into_iter()
            .filter(|c| c.state == wire::CircuitState::Up)
            .map(|c| ((c.input, c.output), c.setup_at_ns))
            .collect::<Vec<_>>()
    };
    assert_eq!(set(&[(0, 1), (1, 2), (2, 3)]).status, 204);
    let first = up();
    assert_eq!(first.iter().map(|c| c.0).collect::<Vec<_>>(), [(0, 1), (1, 2), (2, 3)]);
    assert!(first.iter().all(|c| c.1 == first[0].1), "{first:?}");

    // One stays as it is, two change, all at one instant.
    assert_eq!(set(&[(0, 1), (1, 3), (2, 0)]).status, 204);
    let then = up();
    assert_eq!(then.iter().map(|c| c.0).collect::<Vec<_>>(), [(0, 1), (1, 3), (2, 0)]);
    assert!(
        then[0] == first[0] && then[1].1 > first[1].1 && then[1].1 == then[2].1,
        "{first:?}, {then:?}"
    );

    // What clashes changes nothing.
    let (_, why) = set(&[(0, 1), (3, 1)]).problem(409);
    assert!(why.contains("held by hand"), "{why}");
    assert_eq!(
        set(&[(0, 9)]).problem(422),
        ("/circuits/0/output".into(), "no rack 9: they are 0 to 3, or r0 to r3".into())
    );
    assert_eq!(set(&[(0, 1), (2, 2)]).problem(422).0, "/circuits/1/output");
    assert_eq!(up(), then);
    assert_eq!(set(&[]).status, 204);
    assert_eq!(up(), []);
}

#[test]
fn impossible_circuits_are_refused() {
    let r = rig();
    r.send("PUT", "/api/v1/circuits/1/0", &json!({"output": 3})).problem(404);
    r.send("PUT", "/api/v1/circuits/0/4", &json!({"output": 3})).problem(404);
    r.send("PUT", "/api/v1/circuits/0/x", &json!({"output": 3})).problem(404);
    r.send("PUT", "/api/v1/circuits/0/-1", &json!({"output": 3})).problem(404);
    let (pointer, why) = r.send("PUT", "/api/v1/circuits/0/1", &json!({"output": 9})).problem(422);
    assert_eq!(
        (pointer.as_str(), why.as_str()),
        ("/output", "no rack 9: they are 0 to 3, or r0 to r3")
    );
    assert_eq!(
        r.send("PUT", "/api/v1/circuits/0/1", &json!({"output": 1})).problem(422).0,
        "/output"
    );
    assert_eq!(
        r.send("PUT", "/api/v1/circuits/0/1", &json!({"output": "a"})).problem(422).0,
        "/output"
    );
    assert_eq!(
        r.send("PUT", "/api/v1/circuits/0/1", &json!({"output": 2, "x": 1})).problem(422).0,
        "/x"
    );
    r.get("/api/v1/circuits/7/1").problem(404);
}

#[test]
fn a_faulty_port_shows_and_is_mended() {
    let r = rig();
    r.spoil(2);
    let ports = r.get("/api/v1/ports").json();
    assert!(ports["ports"][2]["faulty"].as_str().unwrap().contains("came out at"), "{ports}");
    r.send("PUT", "/api/v1/circuits/0/2", &json!({"output": 3})).problem(409);
    assert_eq!(r.call("DELETE", "/api/v1/ports/0/2/fault", &[], b"").status, 204);
    r.call("DELETE", "/api/v1/ports/0/2/fault", &[], b"").problem(404);
    r.call("DELETE", "/api/v1/ports/0/9/fault", &[], b"").problem(404);
    assert_eq!(r.get("/api/v1/ports").json()["ports"][2]["faulty"], json!(null));
}

#[test]
fn a_coflow_is_declared_watched_and_taken_back() {
    let r = rig();
    let body = json!({"name": "sort", "pairs": [{"from": 0, "to": 1, "bytes": 150_000}, {"from": 2, "to": 3, "bytes": 7}]});
    let a = r.send("POST", "/api/v1/coflows", &body);
    assert_eq!((a.status, a.header("location")), (201, posted(0).as_str()));
    let c: wire::Coflow = serde_json::from_str(&a.text).unwrap();
    assert_eq!(
        (c.id - FIRST_POSTED, c.name.as_str(), c.asked_bytes, c.received_bytes, c.state),
        (0, "sort", 150_007, 0, wire::CoflowState::Active)
    );
    assert!(
        c.bound_ns > 1_100_000 && c.bound_ns < 1_200_000,
        "150 kB over 1.1 Gb/s: {}",
        c.bound_ns
    );
    r.tick();
    let c: wire::Coflow = serde_json::from_str(&r.get(&posted(0)).text).unwrap();
    assert_eq!(c.received_bytes, 100_000, "progress is read from the counters");
    let b =
        r.send("POST", "/api/v1/coflows", &json!({"pairs": [{"from": 0, "to": 1, "bytes": 1}]}));
    assert_eq!(
        (b.header("location"), &b.json()["name"]),
        (posted(1).as_str(), &json!(format!("coflow-{}", FIRST_POSTED + 1)))
    );
    r.tick();
    let ids = |q: &str| {
        let all: wire::Coflows =
            serde_json::from_str(&r.get(&format!("/api/v1/coflows{q}")).text).unwrap();
        all.coflows.iter().map(|c| c.id - FIRST_POSTED).collect::<Vec<_>>()
    };
    assert_eq!(
        (ids(""), ids("?state=active"), ids("?state=finished")),
        (vec![0, 1], vec![0], vec![1])
    );
    r.get("/api/v1/coflows?state=lost").problem(400);
    r.get("/api/v1/coflows?stat=active").problem(400);
    assert_eq!(r.call("DELETE", &posted(0), &[], b"").status, 204);
    r.call("DELETE", &posted(1), &[], b"").problem(409);
    r.call("DELETE", "/api/v1/coflows/77", &[], b"").problem(404);
    let c: wire::Coflow = serde_json::from_str(&r.get(&posted(0)).text).unwrap();
    assert_eq!(
        (c.state, c.received_bytes, ids("?state=cancelled")),
        (wire::CoflowState::Cancelled, 150_000, vec![0])
    );
    assert_eq!(r.call("DELETE", &posted(0), &[], b"").status, 204, "it is taken back");
    // The id of a coflow that was taken back is not given again.
    let c =
        r.send("POST", "/api/v1/coflows", &json!({"pairs": [{"from": 0, "to": 1, "bytes": 1}]}));
    assert_eq!(c.header("location"), posted(2));
}

#[test]
fn a_client_that_sends_says_when_all_has_arrived() {
    let r = rig();
    let post =
        |body: Value| r.send("POST", "/api/v1/coflows", &body).header("location").to_string();
    let id = post(json!({"name": "sort", "pairs": [{"from": 0, "to": 1, "bytes": 150_000}]}));
    let finish = |id: &str| r.call("POST", &format!("{id}/finish"), &[], b"");
    r.tick();
    let first = finish(&id);
    let c: wire::Coflow = serde_json::from_str(&first.text).unwrap();
    assert_eq!(
        (first.status, c.state, c.received_bytes, c.asked_bytes),
        (200, wire::CoflowState::Finished, 150_000, 150_000)
    );
    assert_eq!(
        c.cct_ns,
        c.finished_ns.map(|at| at - c.arrival_ns),
        "it takes no longer than until then"
    );
    assert_eq!(
        (finish(&id).status, finish(&id).text),
        (200, first.text),
        "asking again changes nothing"
    );
    assert_eq!(r.get("/api/v1/stats").json()["coflows_finished"], json!(1));
    let back = post(json!({"pairs": [{"from": 0, "to": 1, "bytes": 5}]}));
    assert_eq!(r.call("DELETE", &back, &[], b"").status, 204);
    finish(&back).problem(410);
    let slots = json!([{"rack": 1, "free": 1}]);
    finish(&post(
        json!({"place": {"maps": [{"rack": 0, "bytes": 5}], "tasks": 1, "slots": slots}}),
    ))
    .problem(409);
    finish("/api/v1/coflows/77").problem(404);
}

#[test]
fn clients_may_choose_ids_and_ask_again() {
    let r = rig();
    let body = json!({"name": "a", "pairs": [{"from": 3, "to": 1, "bytes": 5}, {"from": 0, "to": 1, "bytes": 5}]});
    assert_eq!(r.send("PUT", "/api/v1/coflows/41", &body).status, 201);
    assert_eq!(r.send("PUT", "/api/v1/coflows/41", &body).status, 200);
    r.send("PUT", "/api/v1/coflows/41", &json!({"pairs": [{"from": 0, "to": 1, "bytes": 6}]}))
        .problem(409);
    r.send("PUT", "/api/v1/coflows/4294967295", &body).problem(400);
    r.send("PUT", "/api/v1/coflows/x", &body).problem(400);
    let key = [("content-type", "application/json"), ("idempotency-key", "k-1")];
    let post = |body: &Value| r.call("POST", "/api/v1/coflows", &key, body.to_string().as_bytes());
    let (first, second) = (post(&body), post(&body));
    assert_eq!(
        (first.status, first.header("location"), first.header("idempotency-replayed")),
        (201, posted(0).as_str(), "")
    );
    assert_eq!(
        (second.status, second.header("location"), second.header("idempotency-replayed")),
        (201, posted(0).as_str(), "true")
    );
    post(&json!({"pairs": []})).problem(422);
    assert_eq!(r.call("DELETE", &posted(0), &[], b"").status, 204);
    let third: wire::Coflow = serde_json::from_str(&post(&body).text).unwrap();
    assert_eq!(third.state, wire::CoflowState::Cancelled, "the answer says what became of it");
    let long = "k".repeat(129);
    for bad in ["", long.as_str()] {
        let headers = [("content-type", "application/json"), ("idempotency-key", bad)];
        r.call("POST", "/api/v1/coflows", &headers, body.to_string().as_bytes()).problem(400);
    }
    assert_eq!(r.get("/api/v1/coflows").json()["coflows"].as_array().unwrap().len(), 2);
}

#[test]
fn impossible_coflows_are_refused_with_a_pointer() {
    let r = rig();
    let post = |body: Value, status| r.send("POST", "/api/v1/coflows", &body).problem(status).0;
    let pair = |from: u64, to: u64, bytes: u64| json!({"from": from, "to": to, "bytes": bytes});
    assert_eq!(post(json!({"pairs": []}), 422), "/pairs");
    assert_eq!(post(json!({"pairs": [pair(0, 1, 1), pair(9, 1, 1)]}), 422), "/pairs/1/from");
    assert_eq!(post(json!({"pairs": [pair(0, 4, 1)]}), 422), "/pairs/0/to");
    assert_eq!(post(json!({"pairs": [pair(2, 2, 1)]}), 422), "/pairs/0/to");
    assert_eq!(post(json!({"pairs": [pair(0, 1, 0)]}), 422), "/pairs/0/bytes");
    assert_eq!(post(json!({"pairs": [pair(0, 1, u64::MAX)]}), 422), "/pairs/0/bytes");
    assert_eq!(post(json!({"pairs": [pair(0, 1, 1), pair(0, 1, 1)]}), 422), "/pairs/1");
    assert_eq!(post(json!({"pairs": [{"from": 0, "to": -1, "bytes": 1}]}), 422), "/pairs/0/to");
    assert_eq!(post(json!({"pairs": [pair(0, 1, 1)], "name": ""}), 422), "/name");
    assert_eq!(post(json!({"pairs": [pair(0, 1, 1)], "name": "a\nb"}), 422), "/name");
    assert_eq!(post(json!({"pairs": [pair(0, 1, 1)], "send": true}), 409), "/send");
    assert_eq!(post(json!({"name": "a"}), 422), "/pairs");
    assert_eq!(post(json!([]), 422), "");
    assert_eq!(r.get("/api/v1/coflows").json()["coflows"], json!([]));
}

/// Another value of a key of a policy file, with what it takes beside it.
fn changed(policy: &mut Value, key: &str) {
    let mut set = |key: &str, value: Value| policy[key] = value;
    match key {
        "name" => set(key, json!("other")),
        "interval" => set(key, json!("200ms")),
        "lead" => set(key, json!("7ms")),
        "at_arrivals" => (set("demand", json!("declared")), set(key, json!(true))).1,
        "elephants.admit" => policy["elephants"]["admit"] = json!("all"),
        "elephants.port" => policy["elephants"]["port"] = json!(7080),
        "elephants.threshold" => policy["elephants"]["threshold"] = json!("1MB"),
        "demand" => set(key, json!("backlog")),
        "ageing" => set(key, json!(7)),
        "scheduler" => set(key, json!("greedy")),
        "external" => {
            (set("scheduler", json!("external")), set(key, json!({"command": ["true"]}))).1
        }
        "network" => set(key, json!("varys")),
        "within" => (set("network", json!("fifo")), set(key, json!("max-min"))).1,
        "aalo" => (set("network", json!("aalo")), set(key, json!({"queues": 3}))).1,
        "decide" => (set("network", json!("varys")), set(key, json!("coflow-events"))).1,
        "starvation" => {
            (set("network", json!("varys")), set(key, json!({"every": "2s", "share": "1s"}))).1
        }
        "buffer" => set(key, json!("3MB")),
        "order" => {
            (
                set("network", json!("sunflow")),
                set("scheduler", json!("eps-only")),
                set(key, json!("fifo")),
            )
                .2
        }
        "scale" => set(key, json!(3)),
        "congestion" => set(key, json!("reno")),
        "rto_min" => set(key, json!("10ms")),
        "probes" => set(key, json!(false)),
        "paths" => set(key, json!("hit")),
        "paths_seed" => (set("paths", json!("vlb")), set(key, json!(7))).1,
        "placement" => set(key, json!({"policy": "fair"})),
        other => panic!(
            "give `{other}` another value here, and say in docs/api.md whether PUT may change it"
        ),
    }
}

/// The keys of a policy file that PUT may not change: those that it refuses.
fn fixed() -> Vec<&'static str> {
    vec![
        "elephants.admit",
        "elephants.port",
        "external",
        "network",
        "within",
        "aalo",
        "decide",
        "starvation",
        "order",
        "scale",
        "buffer",
        "congestion",
        "rto_min",
        "placement",
    ]
}

/// Every key of the schema either changes or is refused, as the description of the API and the
/// documentation say.
#[test]
fn what_was_fixed_when_a_run_started_is_said_everywhere() {
    let r = rig();
    let base = r.get("/api/v1/policy").json();
    let schema = crate::config::schema_policy();
    let keys = schema["properties"].as_object().unwrap().keys().flat_map(|k| match k.as_str() {
        "elephants" => {
            ["admit", "port", "threshold"].map(|key| format!("elephants.{key}")).to_vec()
        }
        _ => vec![k.clone()],
    });
    let headers = [("content-type", "application/json"), ("if-match", "*")];
    let put = |body: &Value| r.call("PUT", "/api/v1/policy", &headers, body.to_string().as_bytes());
    let mut refused = vec![];
    for key in keys {
        let mut body = base.clone();
        changed(&mut body, &key);
        let answer = put(&body);
        match answer.status {
            200 => assert_eq!(put(&base).status, 200),
            _ => refused.push((answer.problem(409).1.contains(&format!("`{key}`")), key)),
        }
    }
    let mut said: Vec<(bool, String)> = fixed().into_iter().map(|k| (true, k.to_owned())).collect();
    refused.sort();
    said.sort();
    assert_eq!(refused, said, "each is named by its refusal");
    let doc = r.get("/openapi.json").json();
    let conflict = doc
        .pointer("/paths/~1api~1v1~1policy/put/responses/409/description")
        .unwrap()
        .as_str()
        .unwrap()
        .to_owned();
    let manual = crate::testing::shipped("docs/api.md");
    let row = manual.lines().find(|l| l.contains("PUT /api/v1/policy")).unwrap().to_owned();
    for text in [conflict, row] {
        for key in fixed() {
            assert!(text.contains(&format!("`{key}`")), "{text} does not name {key}");
        }
    }
}

#[test]
fn a_policy_is_replaced_only_by_who_knows_it() {
    let r = rig();
    let old = r.get("/api/v1/policy");
    let tag = old.header("etag").to_string();
    assert_eq!(
        (&old.json()["name"], &old.json()["interval"]),
        (&json!("default"), &json!("100ms"))
    );
    let mut next = old.json();
    next["scheduler"] = json!("edmonds");
    next["name"] = json!("mine");
    let put = |tag: &str, body: &Value| {
        let headers = [("content-type", "application/json"), ("if-match", tag)];
        r.call("PUT", "/api/v1/policy", &headers, body.to_string().as_bytes())
    };
    r.send("PUT", "/api/v1/policy", &next).problem(428);
    put("\"0\"", &next).problem(412);
    let taken = put(&tag, &next);
    assert_eq!((taken.status, taken.json()), (200, next.clone()));
    assert_ne!(taken.header("etag"), tag);
    assert_eq!(r.get("/api/v1/policy").header("etag"), taken.header("etag"));
    put(&tag, &next).problem(412);
    assert_eq!(put("*", &next).status, 200);
    let bad = |key: &str, value: Value| {
        let mut body = next.clone();
        body[key] = value;
        put("*", &body).problem(422).0
    };
    assert_eq!(bad("interval", json!("1ms")), "/lead");
    assert_eq!(bad("interval", json!("12ms")), "/interval", "no time with light");
    assert_eq!(bad("interval", json!("soon")), "/interval");
    assert_eq!(bad("elephants", json!({"admit": "some"})), "/elephants/admit");
    assert_eq!(bad("color", json!(1)), "/color");
    put("*", &json!({"name": "x"})).problem(422);
    assert_eq!(
        put(
            "*",
            &json!({"name": "x", "interval": "100ms", "demand": "backlog", "scheduler": "manual"})
        )
        .status,
        200
    );
    assert_eq!(put("*", &next).status, 200);
    for key in fixed() {
        let mut body = next.clone();
        changed(&mut body, key);
        let (_, why) = put("*", &body).problem(409);
        assert!(why.contains(&format!("`{key}`")) && why.contains("start another run"), "{why}");
    }
    assert_eq!(r.get("/api/v1/policy").json(), next, "the old one is kept");
}

/// A run whose fixed keys are not the usual ones is given a policy that names those that can
/// change, and no others.
#[test]
fn what_was_fixed_need_not_be_given_again() {
    let file = "name: p\ninterval: 100ms\nelephants: {admit: all, threshold: 1MB}\ndemand: declared\nscale: 2\nbuffer: 3MB\n\
        congestion: reno\nrto_min: 10ms\nplacement: {policy: fair, slowstart: 20}\n";
    let ordered = "starvation: {every: 2s, share: 1s}\n";
    let runs = [
        format!(
            "scheduler: edmonds\nnetwork: aalo\nwithin: max-min\naalo: {{queues: 3}}\ndecide: coflow-events\n{ordered}"
        ),
        "scheduler: external\nexternal: {command: [\"true\"], within: 1ms, fallback: greedy}\n"
            .into(),
        "scheduler: eps-only\nnetwork: sunflow\norder: fifo\n".into(),
    ];
    for run in runs {
        let plan = crate::config::read_policy(&format!("{file}{run}"), "p.yaml").unwrap();
        let r = rig_on(
            network(),
            plan,
            ServerOptions { listen: Some(([127, 0, 0, 1], 0).into()), ..ServerOptions::default() },
        );
        let headers = [("content-type", "application/json"), ("if-match", "*")];
        let put =
            |body: &Value| r.call("PUT", "/api/v1/policy", &headers, body.to_string().as_bytes());
        let before = r.get("/api/v1/policy").json();
        let scheduler = before["scheduler"].clone();
        let few =
            json!({"name": "x", "interval": "200ms", "demand": "backlog", "scheduler": scheduler});
        let taken = put(&few);
        assert_eq!(taken.status, 200, "{run}: {}", taken.text);
        let mut wanted = before.clone();
        for (key, value) in few.as_object().unwrap() {
            wanted[key] = value.clone();
        }
        wanted["elephants"]["threshold"] = json!("0B");
        if !wanted["external"].is_null() {
            wanted["external"].as_object_mut().unwrap().remove("fallback");
        }
        assert_eq!(
            taken.json(),
            wanted,
            "what can change is as in a file that leaves it out: {run}"
        );
        assert_eq!(r.get("/api/v1/policy").header("etag"), taken.header("etag"));
        let with = |key: &str, value: Value| {
            let mut body = few.clone();
            body[key] = value;
            put(&body)
        };
        let some = with("elephants", json!({"threshold": "2MB"})).json();
        assert_eq!(
            some["elephants"],
            json!({"admit": "all", "threshold": "2MB"}),
            "half of a section: {run}"
        );
        assert_eq!(with("placement", json!({"policy": "fair"})).status, 200, "{run}");
        for (key, value, named) in [
            ("scale", json!(3), "`scale`"),
            ("elephants", json!({"admit": "marked"}), "`elephants.admit`"),
            ("placement", json!({"policy": "fair", "slowstart": 30}), "`placement.slowstart`"),
            ("placement", json!({"policy": "corral", "imbalance": 3}), "`placement.policy`"),
            ("network", json!("varys"), "`network`"),
        ] {
            let (_, why) = with(key, value).problem(409);
            assert!(why.contains(named), "{run}: {why}");
        }
        if scheduler == "external" {
            assert_eq!(
                with("external", json!({"fallback": "edmonds"})).json()["external"]["fallback"],
                json!("edmonds")
            );
            let (_, why) = with("external", json!({"url": "http://127.0.0.1:9/"})).problem(409);
            assert!(why.contains("external.url"), "{why}");
            assert_eq!(with("scheduler", json!("greedy")).status, 200);
            assert_eq!(
                put(&few).json()["external"],
                json!({"command": ["true"], "within": "1ms"}),
                "it is still there"
            );
        }
    }
}

#[test]
fn a_sender_sends_or_says_why_not() {
    struct Picky(std::sync::Mutex<Vec<u32>>);
    impl crate::api::CoflowSender for Picky {
        fn send(&self, Shipment { coflow, report }: Shipment<'_>) -> Result<(), String> {
            assert!(
                report == ReportedEnds::Coflow && coflow.flows.len() == 2,
                "nine bytes from two hosts: {coflow:?}"
            );
            self.0.lock().unwrap().push(coflow.id.0);
            if coflow.name == "no" { Err("no such traffic".into()) } else { Ok(()) }
        }
    }
    let sender = Arc::new(Picky(Default::default()));
    let listen = Some(([127, 0, 0, 1], 0).into());
    let r = rig_with(ServerOptions {
        listen,
        sender: Some(sender.clone()),
        ..ServerOptions::default()
    });
    let post = |name: &str| {
        r.send(
            "POST",
            "/api/v1/coflows",
            &json!({"name": name, "send": true, "pairs": [{"from": 0, "to": 1, "bytes": 9}]}),
        )
    };
    assert_eq!(post("yes").status, 201);
    assert_eq!(post("no").problem(409).1, "no such traffic");
    assert_eq!(*sender.0.lock().unwrap(), [FIRST_POSTED, FIRST_POSTED + 1]);
    assert_eq!(r.get(&posted(1)).json()["state"], json!("cancelled"));
    r.tick();
    assert_eq!(
        r.get(&posted(0)).json()["received_bytes"],
        json!(0),
        "the sender reports, not the counters"
    );
}

/// Sends nothing, and says what it was asked.
#[derive(Default)]
struct RecordingSender(std::sync::Mutex<Vec<(crate::coflows::CoflowSpec, ReportedEnds)>>);

impl crate::api::CoflowSender for RecordingSender {
    fn send(&self, what: Shipment<'_>) -> Result<(), String> {
        self.0.lock().unwrap().push((what.coflow.clone(), what.report));
        Ok(())
    }

    fn cancel(&self, id: crate::ids::CoflowId) {
        self.0.lock().unwrap().retain(|c| c.0.id != id);
    }

    fn flows(&self, id: crate::ids::CoflowId) -> Option<Vec<crate::fabric::FlowProgress>> {
        let asked = self.0.lock().unwrap();
        let c = &asked.iter().find(|c| c.0.id == id)?.0;
        let flow = |f: crate::coflows::FlowSpec| crate::fabric::FlowProgress {
            spec: f,
            received: crate::units::Bytes(f.bytes.0 / 2),
            finished: None,
            priority: 4,
        };
        Some(c.flows.iter().map(flow).collect())
    }
}

#[test]
fn a_coflow_of_flows_is_sent_flow_by_flow_and_its_pairs_follow() {
    use crate::ids::{CoflowId, FlowId};
    use crate::units::Bytes;
    let sender = Arc::new(RecordingSender::default());
    let listen = Some(([127, 0, 0, 1], 0).into());
    let r = rig_with(ServerOptions {
        listen,
        sender: Some(sender.clone()),
        ..ServerOptions::default()
    });
    let flow = |from: u64, to: u64, bytes: u64| json!({"from": from, "to": to, "bytes": bytes});
    // Two flows of one rack pair, one within a rack.
    let body = json!({"name": "sort", "send": true, "flows": [flow(0, 2, 5), flow(1, 3, 7), flow(4, 5, 9)]});
    let made: wire::Coflow =
        serde_json::from_str(&r.send("POST", "/api/v1/coflows", &body).text).unwrap();
    assert_eq!(
        (made.pairs.clone(), made.asked_bytes),
        (vec![wire::RackPair { from: 0, to: 1, bytes: 12 }], 12)
    );
    let (sent, report) = sender.0.lock().unwrap()[0].clone();
    assert!(
        report == ReportedEnds::Flows
            && sent.flows.iter().map(|f| (f.from.0, f.to.0, f.bytes.0)).eq([
                (0, 2, 5),
                (1, 3, 7),
                (4, 5, 9)
            ])
    );
    let one: wire::Coflow = serde_json::from_str(&r.get(&posted(0)).text).unwrap();
    let flows = one.flows.unwrap();
    assert_eq!(
        (flows.len(), flows[2].received_bytes, flows[2].finished_ns, flows[1].bytes),
        (3, 4, None, 7)
    );
    assert!(r.get("/api/v1/coflows").json()["coflows"][0]["flows"].is_null(), "lists stay short");
    let listed = |most: u32| {
        r.get(&format!("/api/v1/coflows?flows={most}")).json()["coflows"][0]["flows"]
            .as_array()
            .map(Vec::len)
    };
    assert_eq!((listed(2), listed(3)), (None, Some(3)), "unless they are asked for, and few");
    // The flow's end goes to the log, while its coflow is open.
    let id = CoflowId(FIRST_POSTED);
    let seen = |e: &crate::control::record::Record| {
        matches!(e.what, crate::control::record::RecordedEvent::FlowFinished { .. })
    };
    let mut log = r.handle.events();
    r.handle.notify(Event::FlowFinished { id, flow: FlowId(2), bytes: Bytes(9) });
    r.handle.notify(Event::FlowFinished { id: CoflowId(7), flow: FlowId(0), bytes: Bytes(9) });
    r.tick();
    assert!(
        std::iter::from_fn(|| log.try_recv().ok()).filter(|e| seen(e)).count() == 1,
        "only of a coflow that is known"
    );
    assert_eq!(r.call("DELETE", &posted(0), &[], b"").status, 204);
    assert!(sender.0.lock().unwrap().is_empty(), "the sender is told");
    // The same again changes nothing; other flows of the same pairs are another coflow.
    assert_eq!(r.send("PUT", "/api/v1/coflows/3", &body).status, 201);
    assert_eq!(r.send("PUT", "/api/v1/coflows/3", &body).status, 200);
    let other = json!({"name": "sort", "send": true, "flows": [flow(0, 2, 6), flow(1, 3, 6), flow(4, 5, 9)]});
    r.send("PUT", "/api/v1/coflows/3", &other).problem(409);
}

#[test]
fn impossible_flows_are_refused_with_a_pointer() {
    let r = rig();
    let post = |body: Value| r.send("POST", "/api/v1/coflows", &body).problem(422);
    let flow = |from: u64, to: u64, bytes: u64| json!({"from": from, "to": to, "bytes": bytes});
    let at = |flows: Value| post(json!({"flows": flows})).0;
    assert_eq!(at(json!([flow(0, 1, 1), flow(8, 1, 1)])), "/flows/1/from");
    assert_eq!(at(json!([flow(0, 99, 1)])), "/flows/0/to");
    assert_eq!(at(json!([flow(2, 2, 1)])), "/flows/0/to");
    assert_eq!(at(json!([flow(0, 2, 0)])), "/flows/0/bytes");
    assert_eq!(at(json!([flow(0, 2, 1), flow(0, 2, u64::MAX)])), "/flows/1/bytes");
    assert_eq!(at(json!([{"from": 0, "to": -1, "bytes": 1}])), "/flows/0/to");
    let many: Vec<Value> = (0..10_001).map(|_| flow(0, 2, 1)).collect();
    let (pointer, why) = post(json!({"flows": many}));
    assert_eq!((pointer.as_str(), why.as_str()), ("/flows", "10001 flows: at most 10000"));
    let both = post(json!({"flows": [flow(0, 2, 1)], "pairs": [flow(0, 1, 1)]}));
    assert_eq!(both.0, "/pairs");
    assert_eq!(r.get("/api/v1/coflows").json()["coflows"], json!([]));
}
