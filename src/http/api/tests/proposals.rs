//! Shuffles that the controller places: proposed, held, confirmed, late, repeated, taken back.

use serde_json::json;

use super::*;
use crate::api::wire::{self, CoflowState};
use crate::control::policy::Estimator;
use crate::units::Bytes;

const MB: u64 = 1_000_000;
const MS: u64 = 1_000_000;

/// Four racks, circuits by Sunflow; a cycle every 100 ms of the rig's time, elephants from 1 MB.
fn sunflow() -> Rig {
    let elephant_threshold = Bytes(MB);
    let policy = CircuitPolicy {
        scheduler: SchedulerKind::Sunflow,
        demand: Estimator::Declared,
        elephant_threshold,
        ..CircuitPolicy::default()
    };
    rig_by(
        policy,
        ServerOptions { listen: Some(([127, 0, 0, 1], 0).into()), ..ServerOptions::default() },
    )
}

/// 50 MB on rack 0 for one reduce task that may run in rack 2 or 3.
fn ask() -> Value {
    json!({"name": "sort", "place": {
        "maps": [{"rack": 0, "bytes": 50 * MB}], "tasks": 1, "slots": [{"rack": 2, "free": 1}, {"rack": 3, "free": 1}]
    }})
}

fn coflow(a: &ApiAnswer) -> wire::Coflow {
    serde_json::from_str(&a.text).unwrap_or_else(|e| panic!("{e}: {a:?}"))
}

#[test]
fn a_dry_run_says_what_would_be_and_changes_nothing() {
    let r = sunflow();
    r.tick();
    let before = r.handle.snapshot();
    let a = r.send("POST", "/api/v1/coflows?dryRun=true", &ask());
    let p: wire::Proposal = serde_json::from_str(&a.text).unwrap();
    assert_eq!(
        (a.status, p.chosen.racks[0], p.losers[0].racks[0].rack),
        (200, wire::RackTasks { rack: 2, tasks: 1 }, 3)
    );
    assert_eq!((p.pairs.len(), p.pairs[0].way, p.circuits[0].output), (1, wire::SentOver::Ocs, 2));
    let (c, s) = (&p.chosen, p.chosen.score);
    assert!(
        c.cct_ns >= c.bound_ns
            && c.bound_ns > 360 * MS
            && s.total_ns == s.wait_ns + s.cct_ns + s.others_ns
    );
    assert_eq!(
        (p.losers[0].why.as_deref(), &c.why),
        (Some("as good; on more racks, or found later"), &None)
    );
    // What-if for a coflow whose pairs are known.
    let pairs =
        json!({"pairs": [{"from": 0, "to": 1, "bytes": 5 * MB}, {"from": 1, "to": 0, "bytes": 9}]});
    let p: wire::Proposal =
        serde_json::from_str(&r.send("POST", "/api/v1/coflows?dryRun=true", &pairs).text).unwrap();
    assert_eq!(
        (p.chosen.found_by, p.pairs[1].way, p.losers.len() + p.excluded.len()),
        (wire::PlacementOrigin::Given, wire::SentOver::Eps, 0)
    );
    assert_eq!(*r.handle.snapshot(), *before);
    r.send("POST", "/api/v1/coflows?dry=true", &ask()).problem(400);
    r.send("POST", "/api/v1/coflows?dryRun=perhaps", &ask()).problem(400);
}

#[test]
fn what_is_proposed_at_once_is_not_promised_twice() {
    let r = sunflow();
    r.tick();
    let all: Vec<wire::Coflow> = std::thread::scope(|s| {
        let posts: Vec<_> = (0..8)
            .map(|_| s.spawn(|| coflow(&r.send("POST", "/api/v1/coflows", &ask()))))
            .collect();
        posts.into_iter().map(|p| p.join().unwrap()).collect()
    });
    // All leave by the one port of rack 0: one after the other, as if they had been asked so.
    let mut spans: Vec<(u64, u64)> = all
        .iter()
        .flat_map(|c| &c.proposal.as_ref().unwrap().proposal.circuits)
        .map(|c| (c.setup_at_ns, c.until_ns))
        .collect();
    spans.sort_unstable();
    assert!(spans.len() == 8 && spans.windows(2).all(|w| w[0].1 <= w[1].0), "{spans:?}");
    assert_eq!(all.iter().map(|c| c.id).collect::<std::collections::BTreeSet<_>>().len(), 8);
}

#[test]
fn what_is_proposed_is_held_shown_and_seen_by_others() {
    let r = sunflow();
    r.tick();
    let a = r.send("POST", "/api/v1/coflows", &ask());
    let first = coflow(&a);
    let held = first.proposal.as_ref().unwrap();
    assert_eq!((a.status, first.state, first.asked_bytes), (201, CoflowState::Proposed, 50 * MB));
    assert_eq!(
        (held.proposal.chosen.racks[0].rack, held.expires_ns - held.proposed_ns),
        (2, 10_000 * MS)
    );
    assert_eq!(coflow(&r.get(a.header("location"))), first);
    assert_eq!(
        r.get("/api/v1/coflows?state=proposed").json()["coflows"].as_array().unwrap().len(),
        1
    );
    assert!(r.get("/metrics").text.contains("heliostat_proposals_held 1"));
    // The port of rack 0 is spoken for: the next one waits, wherever it goes.
    let dry = || {
        serde_json::from_str::<wire::Proposal>(
            &r.send("POST", "/api/v1/coflows?dryRun=true", &ask()).text,
        )
        .unwrap()
    };
    let second = dry();
    assert!(second.chosen.cct_ns > held.proposal.chosen.cct_ns + 400 * MS, "{second:?}");
    assert!(second.circuits[0].setup_at_ns >= held.proposal.circuits[0].until_ns);
    // Taken back, it is forgotten.
    assert_eq!(r.call("DELETE", a.header("location"), &[], b"").status, 204);
    assert!(r.get(a.header("location")).problem(410).1.contains("its proposal was taken back"));
    assert_eq!(dry().chosen, held.proposal.chosen);
    r.send("POST", &format!("{}/confirm", a.header("location")), &json!({})).problem(410);
    r.send("PUT", a.header("location"), &json!({"pairs": [{"from": 0, "to": 1, "bytes": 1}]}))
        .problem(409);
}

#[test]
fn circuits_follow_what_is_confirmed() {
    let r = sunflow();
    r.tick();
    let a = r.send("POST", "/api/v1/coflows", &ask());
    let place = a.header("location").to_string();
    r.tick();
    r.tick();
    assert_eq!(
        r.get("/api/v1/circuits").json()["circuits"],
        json!([]),
        "what is held is no demand yet"
    );
    let confirm = || r.send("POST", &format!("{place}/confirm"), &json!({}));
    let begun = coflow(&confirm());
    assert_eq!(
        (begun.state, begun.pairs.len(), begun.arrival_ns),
        (CoflowState::Active, 1, 300 * MS)
    );
    assert_eq!(begun.proposal, coflow(&a).proposal, "what was promised stays visible");
    assert_eq!(coflow(&confirm()), begun, "asking again changes nothing");
    assert_eq!(
        coflow(&r.call("POST", &format!("{place}/confirm"), &[], b"")),
        begun,
        "nor without a body"
    );
    r.tick();
    r.tick();
    let circuits = r.get("/api/v1/circuits").json();
    assert_eq!(
        (&circuits["circuits"][0]["input"], &circuits["circuits"][0]["output"]),
        (&json!(0), &json!(2)),
        "{circuits}"
    );
    assert_eq!(r.call("DELETE", &place, &[], b"").status, 204);
    // A coflow that was declared was never proposed.
    let b =
        r.send("POST", "/api/v1/coflows", &json!({"pairs": [{"from": 0, "to": 1, "bytes": 1}]}));
    r.send("POST", &format!("{}/confirm", b.header("location")), &json!({})).problem(409);
    r.send("POST", "/api/v1/coflows/7/confirm", &json!({})).problem(404);
}

#[test]
fn late_and_repeated_requests_are_safe() {
    let r = sunflow();
    r.tick();
    let mut body = ask();
    body["place"]["hold_ns"] = json!(50 * MS);
    let key = [("content-type", "application/json"), ("idempotency-key", "place-1")];
    let post = || r.call("POST", "/api/v1/coflows", &key, body.to_string().as_bytes());
    let (a, b) = (post(), post());
    assert_eq!((coflow(&a), b.header("idempotency-replayed")), (coflow(&b), "true"));
    let place = a.header("location").to_string();
    r.tick();
    let late = r.send("POST", &format!("{place}/confirm"), &json!({})).problem(410).1;
    assert!(
        late.contains("held until 150000000 ns and not confirmed: ask for another one"),
        "{late}"
    );
    assert_eq!(coflow(&r.get(&place)).state, CoflowState::Expired);
    assert_eq!(
        coflow(&post()).state,
        CoflowState::Expired,
        "the key stays that of the first answer"
    );
    r.call("DELETE", &place, &[], b"").problem(410);
    // Its ports are free again.
    let p = serde_json::from_str::<wire::Proposal>(
        &r.send("POST", "/api/v1/coflows?dryRun=true", &ask()).text,
    )
    .unwrap();
    assert!(p.chosen.cct_ns < 600 * MS, "{p:?}");
    r.send("PUT", &place, &json!({"pairs": [{"from": 0, "to": 1, "bytes": 1}]})).problem(409);
}

#[test]
fn the_coflows_and_circuits_that_there_are_decide() {
    let r = sunflow();
    r.tick();
    // Rack 2 will receive 20 MB before us; rack 3 is as free as it was.
    assert_eq!(
        r.send(
            "POST",
            "/api/v1/coflows",
            &json!({"pairs": [{"from": 1, "to": 2, "bytes": 20 * MB}]})
        )
        .status,
        201
    );
    let p = serde_json::from_str::<wire::Proposal>(
        &r.send("POST", "/api/v1/coflows?dryRun=true", &ask()).text,
    )
    .unwrap();
    let out = &p.excluded[0];
    assert_eq!((p.chosen.racks[0].rack, out.racks[0].rack, p.losers.len()), (3, 2, 0));
    assert!(
        out.least_ns > p.chosen.score.total_ns
            && out.why.starts_with("not estimated: its score is"),
        "{out:?}"
    );
    // Slots that are free soon, at most one task a rack, no rack 3, a deadline that no placement
    // meets.
    let mut body = ask();
    body["place"] = json!({"maps": [{"rack": 0, "bytes": 50 * MB}], "tasks": 2, "at_most": 1, "forbidden": [3], "deadline_ns": 1,
        "slots": [{"rack": 1, "soon": [{"in_ns": 5000 * MS, "slots": 4}]}, {"rack": 2, "free": 3}, {"rack": 3, "free": 9}]});
    let p = serde_json::from_str::<wire::Proposal>(
        &r.send("POST", "/api/v1/coflows?dryRun=true", &body).text,
    )
    .unwrap();
    let racks: Vec<(u32, u32)> = p.chosen.racks.iter().map(|x| (x.rack, x.tasks)).collect();
    assert_eq!(
        (racks, p.chosen.score.wait_ns, p.chosen.on_time),
        (vec![(1, 1), (2, 1)], 5000 * MS, false)
    );
    // Tasks that are placed already, and all of the topology's slots.
    body["place"] = json!({"maps": [{"rack": 0, "bytes": 50 * MB}], "reduces": [{"rack": 0, "tasks": 1}, {"rack": 1, "tasks": 1}]});
    let p = serde_json::from_str::<wire::Proposal>(
        &r.send("POST", "/api/v1/coflows?dryRun=true", &body).text,
    )
    .unwrap();
    assert_eq!(
        (p.chosen.found_by, p.pairs.len(), p.pairs[0].bytes),
        (wire::PlacementOrigin::Given, 1, 25 * MB)
    );
    body["place"] =
        json!({"maps": [{"rack": 0, "bytes": 50 * MB}], "tasks": 8, "allowed": [0, 1, 2, 3]});
    let p = serde_json::from_str::<wire::Proposal>(
        &r.send("POST", "/api/v1/coflows?dryRun=true", &body).text,
    )
    .unwrap();
    assert_eq!(p.chosen.racks.iter().map(|x| x.tasks).sum::<u32>(), 8);
}

#[test]
fn impossible_shuffles_are_refused_with_a_pointer() {
    let r = sunflow();
    let mut body = ask();
    let mut post = |place: Value, status: u16| {
        body["place"] = place;
        r.send("POST", "/api/v1/coflows", &body).problem(status).0
    };
    let maps = || json!([{"rack": 0, "bytes": 9}]);
    assert_eq!(post(json!({"maps": [], "tasks": 1}), 422), "/place/maps");
    assert_eq!(
        post(json!({"maps": [{"rack": 4, "bytes": 9}], "tasks": 1}), 422),
        "/place/maps/0/rack"
    );
    assert_eq!(
        post(json!({"maps": [{"rack": 1, "bytes": 9}, {"rack": 1, "bytes": 9}], "tasks": 1}), 422),
        "/place/maps/1/rack"
    );
    assert_eq!(
        post(json!({"maps": [{"rack": 1, "bytes": 0}], "tasks": 1}), 422),
        "/place/maps/0/bytes"
    );
    assert_eq!(post(json!({"maps": maps()}), 422), "/place");
    assert_eq!(
        post(json!({"maps": maps(), "tasks": 1, "reduces": [{"rack": 1, "tasks": 1}]}), 422),
        "/place/tasks"
    );
    assert_eq!(post(json!({"maps": maps(), "tasks": 0}), 422), "/place/tasks");
    assert_eq!(post(json!({"maps": maps(), "tasks": 9}), 422), "/place/tasks");
    assert_eq!(
        post(json!({"maps": maps(), "tasks": 2, "slots": [{"rack": 1, "free": 1}]}), 422),
        "/place/tasks"
    );
    assert_eq!(post(json!({"maps": maps(), "tasks": 1, "at_most": 0}), 422), "/place/at_most");
    assert_eq!(
        post(json!({"maps": maps(), "tasks": 1, "slots": [{"rack": 9, "free": 1}]}), 422),
        "/place/slots/0/rack"
    );
    assert_eq!(
        post(json!({"maps": maps(), "tasks": 1, "slots": [{"rack": 1, "free": 200_000}]}), 422),
        "/place/slots/0/free"
    );
    let soon = |ns: u64, n: u32| json!([{"rack": 1, "soon": [{"in_ns": 1, "slots": 1}, {"in_ns": ns, "slots": n}]}]);
    assert_eq!(
        post(json!({"maps": maps(), "tasks": 1, "slots": soon(1 << 60, 1)}), 422),
        "/place/slots/0/soon/1/in_ns"
    );
    assert_eq!(
        post(json!({"maps": maps(), "tasks": 1, "slots": soon(1, 200_000)}), 422),
        "/place/slots/0/soon/1/slots"
    );
    assert_eq!(
        post(json!({"maps": maps(), "tasks": 1, "allowed": [1, 7]}), 422),
        "/place/allowed/1"
    );
    assert_eq!(
        post(json!({"maps": maps(), "tasks": 1, "forbidden": [2, 2]}), 422),
        "/place/forbidden/1"
    );
    assert_eq!(post(json!({"maps": maps(), "tasks": 1, "hold_ns": 5}), 422), "/place/hold_ns");
    assert_eq!(
        post(json!({"maps": maps(), "tasks": 1, "ready_ns": u64::MAX}), 422),
        "/place/ready_ns"
    );
    assert_eq!(
        post(json!({"maps": maps(), "tasks": 1, "deadline_ns": u64::MAX}), 422),
        "/place/deadline_ns"
    );
    assert_eq!(post(json!({"maps": maps(), "reduces": []}), 422), "/place/reduces");
    assert_eq!(
        post(json!({"maps": maps(), "reduces": [{"rack": 1, "tasks": 0}]}), 422),
        "/place/reduces/0/tasks"
    );
    assert_eq!(
        post(json!({"maps": maps(), "reduces": [{"rack": 1, "tasks": 1}], "forbidden": [2]}), 422),
        "/place/forbidden"
    );
    assert_eq!(post(json!({"maps": maps(), "tasks": 1, "wish": 1}), 422), "/place/wish");
    let by_task = |n: Value| json!([{"rack": 0, "bytes": 9, "by_task": n}]);
    for wrong in [json!([4, 4, 1]), json!([4, 4]), json!([u64::MAX, 10])] {
        let at = post(json!({"maps": by_task(wrong), "tasks": 2}), 422);
        assert_eq!(at, "/place/maps/0/by_task");
    }
    let some = json!([{"rack": 0, "bytes": 9, "by_task": [9]}, {"rack": 1, "bytes": 9}]);
    assert_eq!(post(json!({"maps": some, "tasks": 1}), 422), "/place/maps/1/by_task");
    let many = json!([{"rack": 0, "bytes": 20_001, "by_task": vec![1; 20_001]}]);
    assert_eq!(post(json!({"maps": many, "tasks": 20_001}), 422), "/place/maps/0/by_task");
    assert_eq!(
        post(json!({"maps": by_task(json!([9])), "reduces": [{"rack": 1, "tasks": 1}]}), 422),
        "/place/maps"
    );
    body["place"] = json!({"maps": maps(), "tasks": 1});
    body["pairs"] = json!([{"from": 0, "to": 1, "bytes": 1}]);
    assert_eq!(r.send("POST", "/api/v1/coflows", &body).problem(422).0, "/pairs");
    body["pairs"] = json!([]);
    assert_eq!(r.send("PUT", "/api/v1/coflows/5", &body).problem(422).0, "/place");
    body["send"] = json!(true);
    assert_eq!(r.send("POST", "/api/v1/coflows", &body).problem(409).0, "/send");
    assert_eq!(r.get("/api/v1/coflows").json()["coflows"], json!([]));
}

#[test]
fn tasks_that_read_unequal_parts_have_a_rack_each() {
    let r = sunflow();
    r.tick();
    // Task 1 reads nearly all, and most of that is in rack 2.
    let row =
        |rack: u32, own: [u64; 2]| json!({"rack": rack, "bytes": own[0] + own[1], "by_task": own});
    let body = json!({"name": "skewed", "place": {
        "maps": [row(0, [2 * MB, 10 * MB]), row(2, [2 * MB, 40 * MB])],
        "tasks": 2, "slots": [{"rack": 0, "free": 1}, {"rack": 2, "free": 1}]
    }});
    let c = coflow(&r.send("POST", "/api/v1/coflows", &body));
    let p = c.proposal.unwrap().proposal;
    assert_eq!(p.tasks, [0, 2]);
    let pairs: Vec<_> = p.pairs.iter().map(|w| (w.from, w.to, w.bytes)).collect();
    assert_eq!(pairs, [(0, 2, 10 * MB), (2, 0, 2 * MB)]);
    // What is declared is what was proposed.
    let c = coflow(&r.send("POST", &format!("/api/v1/coflows/{}/confirm", c.id), &json!({})));
    assert_eq!((c.state, c.asked_bytes), (CoflowState::Active, 12 * MB));
}

#[test]
fn a_proposal_may_begin_with_the_flows_as_the_tasks_stand() {
    use crate::coflows::CoflowSpec;
    use crate::fabric::{ReportedEnds, Shipment};
    use crate::ids::HostId;
    #[derive(Default)]
    struct Notes(std::sync::Mutex<Vec<(CoflowSpec, ReportedEnds)>>);
    impl crate::api::CoflowSender for Notes {
        fn send(&self, what: Shipment<'_>) -> Result<(), String> {
            self.0.lock().unwrap().push((what.coflow.clone(), what.report));
            Ok(())
        }
    }
    let notes = Arc::new(Notes::default());
    let r = rig_with(ServerOptions {
        listen: Some(([127, 0, 0, 1], 0).into()),
        sender: Some(notes.clone()),
        ..ServerOptions::default()
    });
    let post = || r.send("POST", "/api/v1/coflows", &ask()).header("location").to_string();
    let first = post();
    let refused = |body: Value, status: u16| {
        r.send("POST", &format!("{first}/confirm"), &body).problem(status).0
    };
    assert_eq!(refused(json!({"flows": [{"from": 0, "to": 99, "bytes": 1}]}), 422), "/flows/0/to");
    assert_eq!(refused(json!({"flow": []}), 422), "/flow");
    assert_eq!(
        coflow(&r.get(&first)).state,
        CoflowState::Proposed,
        "what was refused changed nothing"
    );
    let flows = json!({"flows": [{"from": 0, "to": 4, "bytes": 30}, {"from": 1, "to": 5, "bytes": 20}, {"from": 4, "to": 5, "bytes": 9}], "send": true});
    let begun = coflow(&r.send("POST", &format!("{first}/confirm"), &flows));
    assert_eq!(
        (begun.state, begun.pairs),
        (CoflowState::Active, vec![wire::RackPair { from: 0, to: 2, bytes: 50 }])
    );
    r.send("POST", &format!("{first}/confirm"), &flows);
    let second = post();
    assert_eq!(
        coflow(&r.send("POST", &format!("{second}/confirm"), &json!({"send": true}))).asked_bytes,
        50 * MB
    );
    let sent = notes.0.lock().unwrap();
    let (a, b) = (&sent[0], &sent[1]);
    assert_eq!(
        (sent.len(), a.1, a.0.flows.len(), a.0.flows.at(1).to, b.1),
        (2, ReportedEnds::Flows, 3, HostId(5), ReportedEnds::Coflow)
    );
    assert!(b.0.flows.len() > 1 && b.0.bytes() == Bytes(50 * MB), "spread over the rack's hosts");
}
