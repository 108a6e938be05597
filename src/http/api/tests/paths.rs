//! Lists of switches: what is shown, what a dry run says, what is set by hand, and every mistake.

use serde_json::json;

use super::*;
use crate::api::wire;
use crate::control::policy::PathPolicy;
use crate::topology::Core;
use crate::topology::graph::Graph;

/// Two hosts at each of four leaves below two spines, of which the first carries 150 Mb/s.
fn leaves() -> Topology {
    let mut t = network();
    let mut graph = Graph::leaf_spine(4, 2, BitRate::mbit(1000), None);
    graph.switches[4].rate = Some(BitRate::mbit(150));
    t.eps.core = Core::Graph(Box::new(graph));
    t
}

fn rig_of(paths: PathPolicy) -> Rig {
    let policy =
        CircuitPolicy { scheduler: SchedulerKind::Manual, paths, ..CircuitPolicy::default() };
    rig_on(
        leaves(),
        policy,
        ServerOptions { listen: Some(([127, 0, 0, 1], 0).into()), ..ServerOptions::default() },
    )
}

fn list(r: &Rig) -> wire::Paths {
    serde_json::from_str(&r.get("/api/v1/paths").text).unwrap()
}

fn begin(r: &Rig, from: u32, to: u32) {
    let body = json!({"flows": [{"from": from, "to": to, "bytes": 1_000_000}]});
    assert_eq!(r.send("POST", "/api/v1/coflows", &body).status, 201);
}

#[test]
fn coflows_show_their_ways_and_what_switches_carry() {
    let r = rig_of(PathPolicy::Hit);
    begin(&r, 0, 7);
    let seen = list(&r);
    assert_eq!(
        (seen.policy.as_str(), seen.cost, seen.paths.len(), seen.switches.len()),
        ("hit", 3_000_000, 1, 6)
    );
    let p = &seen.paths[0];
    assert_eq!(
        (p.switches[0].as_str(), p.switches[2].as_str(), p.by, p.held),
        ("leaf0", "leaf3", wire::DecidedBy::Policy, true)
    );
    // The flow fills its hosts' interfaces, and only the second spine has room for that.
    assert_eq!((p.switches[1].as_str(), p.rate_bps), ("spine1", 1_000_000_000));
    assert_eq!(
        (seen.switches[5].load_bps, seen.switches[4].capacity_bps, seen.switches[5].pairs),
        (1_000_000_000, Some(150_000_000), 1)
    );
    assert_eq!(seen.switches[4].tier, "core");
    assert_eq!(
        r.call("DELETE", "/api/v1/coflows/0", &[], b"").status / 100,
        4,
        "that is not its number"
    );
}

#[test]
fn clients_plan_on_the_switches_that_there_are() {
    let r = rig_of(PathPolicy::Hit);
    let seen: wire::Topology = serde_json::from_str(&r.get("/api/v1/topology").text).unwrap();
    assert_eq!(Topology::try_from(&seen), Ok(leaves()));
}

#[test]
fn a_dry_run_says_what_a_list_by_hand_then_does() {
    let r = rig_of(PathPolicy::Shortest);
    let body = json!({"switches": ["leaf0", "spine1", "leaf3"]});
    let before = list(&r);
    let dry: wire::PathChange =
        serde_json::from_str(&r.send("PUT", "/api/v1/paths/0/7?dryRun=true", &body).text).unwrap();
    assert_eq!((dry.made, dry.paths.len(), dry.paths[0].by), (false, 1, wire::DecidedBy::Manual));
    assert_eq!(list(&r), before, "nothing has changed");
    // No flow is under way: the switches of both lists are shown all the same, with loads that
    // stay.
    let told = |c: &wire::PathChange| {
        c.switches.iter().map(|s| (s.name.clone(), s.before_bps, s.after_bps)).collect::<Vec<_>>()
    };
    assert_eq!(told(&dry), ["leaf0", "leaf3", "spine1"].map(|s| (s.to_owned(), 0, 0)));
    let done: wire::PathChange =
        serde_json::from_str(&r.send("PUT", "/api/v1/paths/0/7", &body).text).unwrap();
    assert_eq!(
        (done.made, &done.paths[0].switches, done.paths[0].held),
        (true, &dry.paths[0].switches, true)
    );
    let text = r.call("DELETE", "/api/v1/paths/0/7?dryRun=true", &[], b"").text;
    assert_eq!(
        told(&serde_json::from_str(&text).unwrap()),
        told(&dry),
        "what is given back is told too"
    );
    // A coflow between the two goes where its list says; a dry run of giving the list back shows
    // the loads of both spines.
    begin(&r, 0, 7);
    assert_eq!(list(&r).switches[5].load_bps, 1_000_000_000);
    let text = r.call("DELETE", "/api/v1/paths/0/7?dryRun=true", &[], b"").text;
    let dry: wire::PathChange = serde_json::from_str(&text).unwrap();
    let loads: Vec<(&str, u64, u64)> =
        dry.switches.iter().map(|s| (s.name.as_str(), s.before_bps, s.after_bps)).collect();
    assert_eq!(
        loads,
        [
            ("leaf0", 1_000_000_000, 1_000_000_000),
            ("leaf3", 1_000_000_000, 1_000_000_000),
            ("spine0", 0, 1_000_000_000),
            ("spine1", 1_000_000_000, 0)
        ]
    );
    assert_eq!((dry.cost_before, dry.cost_after), (3_000_000, 3_000_000));
    assert_eq!(r.call("DELETE", "/api/v1/paths/0/7", &[], b"").status, 200);
    r.call("DELETE", "/api/v1/paths/0/7", &[], b"").problem(404);
    assert_eq!(list(&r).paths[0].by, wire::DecidedBy::Policy);
}

#[test]
fn each_mistake_has_one_clear_error_and_changes_nothing() {
    let r = rig_of(PathPolicy::Hit);
    begin(&r, 0, 7);
    let before = list(&r);
    let put = |path: &str, switches: &[&str], status: u16| {
        let (pointer, why) = r
            .send("PUT", &format!("/api/v1/paths/{path}"), &json!({"switches": switches}))
            .problem(status);
        assert_eq!(list(&r).paths, before.paths, "{why}");
        (pointer, why)
    };
    assert_eq!(put("0/7", &["leaf0", "spine9", "leaf3"], 422).0, "/switches/1");
    for (path, switches, status, why) in [
        ("0/7", &["leaf0", "leaf3"][..], 422, "no link joins leaf0 and leaf3"),
        (
            "0/7",
            &["leaf0", "spine0", "leaf0", "spine1", "leaf3"],
            422,
            "switch leaf0 is in the list twice",
        ),
        (
            "0/7",
            &["leaf0", "spine0", "leaf1", "spine1", "leaf3"],
            422,
            "the list goes up to spine1 after it went down",
        ),
        ("0/7", &["leaf0", "spine0", "leaf2"], 422, "the last switch of the list is leaf2"),
        ("0/7", &[], 422, "the first switch of the list is none"),
        ("0/0", &["leaf0"], 422, "h0-0 reaches itself"),
        ("0/7", &["leaf0", "spine0", "leaf3"], 409, "spine0 carries 0b/s of 150Mb/s"),
        ("0/8", &["leaf0"], 404, "no host `8`"),
        ("x/7", &["leaf0"], 404, "no host `x`: they have names such as h0-0, or they are 0 to 7"),
        ("h0-0/h4-0", &["leaf0"], 404, "no host `h4-0`"),
        ("h0-0/h0-0", &["leaf0"], 422, "h0-0 reaches itself"),
    ] {
        for how in ["", "?dryRun=true"] {
            let said = put(&format!("{path}{how}"), switches, status).1;
            assert!(said.starts_with(why), "{said}");
        }
    }
    r.send("PUT", "/api/v1/paths/0/7?dry=true", &json!({"switches": []})).problem(400);
    assert_eq!(r.send("PUT", "/api/v1/paths/0/7", &json!({"list": []})).problem(422).0, "/list");
    let flat = rig();
    for answer in
        [flat.get("/api/v1/paths"), flat.send("PUT", "/api/v1/paths/0/7", &json!({"switches": []}))]
    {
        assert!(answer.problem(404).1.contains("one switch"));
    }
}

#[test]
fn types_of_a_coflow_bind_its_lists() {
    let r = rig_of(PathPolicy::Ecmp);
    let of = |to: u32, types: Value| json!({"flows": [{"from": 0, "to": to, "bytes": 1_000_000}], "types": types});
    assert_eq!(
        r.send("POST", "/api/v1/coflows", &of(7, json!(["access", "core", "access"]))).status,
        201
    );
    let seen = list(&r);
    let p = &seen.paths[0];
    assert_eq!((p.switches.len(), p.types.len(), p.types_unmet), (3, 3, false));
    // Within a rack no list leads over a spine.
    assert_eq!(
        r.send("POST", "/api/v1/coflows", &of(1, json!(["access", "core", "access"]))).status,
        201
    );
    let within = list(&r).paths.iter().find(|p| p.to == 1).cloned().unwrap();
    assert_eq!((within.switches.len(), within.types_unmet), (1, true));
    let bad = |b: Value| r.send("POST", "/api/v1/coflows", &b).problem(422);
    let (pointer, why) = bad(of(7, json!(["access", "aggregation", "access"])));
    assert_eq!(pointer, "/types");
    assert!(
        why.starts_with("no two hosts of topology")
            && why.ends_with("such as [access] or [access, core, access]"),
        "{why}"
    );
    assert_eq!(
        bad(of(7, json!(vec!["core"; 17]))),
        ("/types".into(), "17 types: at most 16".into())
    );
    let pairs = json!({"pairs": [{"from": 0, "to": 1, "bytes": 1}], "types": ["access"]});
    assert_eq!(
        bad(pairs),
        (
            "/types".into(),
            "types are of flows between hosts: give `flows` instead of `pairs`".into()
        )
    );
    assert_eq!(r.send("POST", "/api/v1/coflows", &of(7, json!(["spine"]))).status / 100, 4);
    let body = json!({"switches": ["leaf0", "spine1", "leaf3"]});
    assert_eq!(r.send("PUT", "/api/v1/paths/0/7", &body).status, 200);
    let place = json!({"maps": [{"rack": 0, "bytes": 5}], "reduces": [{"rack": 1, "tasks": 1}]});
    assert_eq!(bad(json!({"types": ["access"], "place": place})).0, "/types");
}
