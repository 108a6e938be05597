//! Strict priorities of coflows and flows: declared, changed under way, shown; and what flows have
//! still to send.

use std::sync::Mutex;

use serde_json::json;

use super::*;
use crate::api::CoflowSender;
use crate::api::wire;
use crate::coflows::CoflowSpec;
use crate::coflows::priority::Priorities;
use crate::control::record::RecordedEvent;
use crate::fabric::{FlowProgress, Shipment};
use crate::ids::{CoflowId, FlowId};
use crate::units::Bytes;

/// Sends nothing, and remembers what it was asked.
#[derive(Default)]
struct Keeps(Mutex<Vec<CoflowSpec>>);

impl CoflowSender for Keeps {
    fn send(&self, what: Shipment<'_>) -> Result<(), String> {
        self.0.lock().unwrap().push(what.coflow.clone());
        Ok(())
    }

    fn flows(&self, id: CoflowId) -> Option<Vec<FlowProgress>> {
        let all = self.0.lock().unwrap();
        let c = all.iter().find(|c| c.id == id)?;
        let flow = |(k, f): (usize, crate::coflows::FlowSpec)| FlowProgress {
            spec: f,
            received: Bytes(0),
            finished: None,
            priority: c.priorities.of(k, f.from.0 / 2 == f.to.0 / 2),
        };
        Some(c.flows.iter().enumerate().map(flow).collect())
    }

    fn left(&self) -> Vec<(CoflowId, Vec<(FlowId, Bytes)>)> {
        let left = |c: &CoflowSpec| {
            c.flows
                .iter()
                .enumerate()
                .map(|(k, f)| (FlowId::from(k), Bytes(f.bytes.0 - 1)))
                .collect()
        };
        self.0.lock().unwrap().iter().map(|c| (c.id, left(c))).collect()
    }
}

fn sending() -> (Rig, Arc<Keeps>) {
    let sender = Arc::new(Keeps::default());
    let listen = Some(([127, 0, 0, 1], 0).into());
    (
        rig_with(ServerOptions {
            listen,
            sender: Some(sender.clone()),
            ..ServerOptions::default()
        }),
        sender,
    )
}

/// Two flows between racks, the second with a priority of its own, and one within a rack.
fn body() -> Value {
    let flow = |from: u32, to: u32, bytes: u32| json!({"from": from, "to": to, "bytes": bytes});
    let mut flows = vec![flow(0, 2, 5), flow(1, 3, 7), flow(4, 5, 9)];
    flows[1]["priority"] = json!(1);
    json!({"name": "sort", "send": true, "priority": 2, "flows": flows})
}

#[test]
fn priorities_are_declared_sent_and_shown() {
    let (r, sender) = sending();
    let made: wire::Coflow =
        serde_json::from_str(&r.send("PUT", "/api/v1/coflows/3", &body()).text).unwrap();
    let priorities = |c: &wire::Coflow| {
        (c.priority, c.flows.iter().flatten().map(|f| f.priority).collect::<Vec<_>>())
    };
    assert_eq!(priorities(&made), (Some(2), vec![2, 1, 7]), "within a rack goes with the last");
    assert_eq!(
        sender.0.lock().unwrap()[0].priorities,
        Priorities { all: Some(2), flows: vec![None, Some(1), None] }
    );
    assert_eq!(r.get("/api/v1/coflows").json()["coflows"][0]["priority"], 2);
    let plain = json!({"send": true, "flows": [{"from": 0, "to": 2, "bytes": 5}]});
    assert_eq!(r.send("PUT", "/api/v1/coflows/4", &plain).json()["priority"], Value::Null);
    assert_eq!(sender.0.lock().unwrap()[1].priorities, Priorities::default());
    let at = |b: Value| r.send("POST", "/api/v1/coflows", &b).problem(422);
    let (pointer, why) = at(json!({"priority": 8, "pairs": [{"from": 0, "to": 1, "bytes": 1}]}));
    assert_eq!(
        (pointer.as_str(), why.as_str()),
        ("/priority", "no priority 8: they are 0 (first) to 7")
    );
    assert_eq!(
        at(json!({"flows": [{"from": 0, "to": 2, "bytes": 5, "priority": 9}]})).0,
        "/flows/0/priority"
    );
    let place = json!({"maps": [{"rack": 0, "bytes": 5}], "reduces": [{"rack": 1, "tasks": 1}]});
    assert_eq!(at(json!({"priority": 1, "place": place})).0, "/priority");
    // What was proposed gets its priority with its flows.
    let proposed = r.send("POST", "/api/v1/coflows", &json!({"send": true, "place": place}));
    let at = proposed.header("location").to_owned();
    r.send("PATCH", &at, &json!({"priority": 1})).problem(409);
    let begun = r.send("POST", &format!("{at}/confirm"), &json!({"priority": 3})).json();
    assert_eq!(
        (&begun["priority"], begun["flows"][0]["priority"].as_u64()),
        (&json!(3), Some(3)),
        "{begun}"
    );
}

#[test]
fn priorities_change_under_way_and_again_changes_nothing() {
    let (r, _) = sending();
    r.send("PUT", "/api/v1/coflows/3", &body());
    let mut log = r.handle.events();
    let mut changed = || {
        let said = |e: Arc<crate::control::record::Record>| match e.what {
            RecordedEvent::CoflowPrioritised { id, priority, flows } => {
                Some((id.0, priority, flows))
            }
            _ => None,
        };
        std::iter::from_fn(|| log.try_recv().ok()).filter_map(said).collect::<Vec<_>>()
    };
    let patch = |b: &Value| r.send("PATCH", "/api/v1/coflows/3", b);
    let change =
        json!({"priority": 6, "flows": [{"flow": 0, "priority": 0}, {"flow": 1, "priority": 1}]});
    assert_eq!(
        (patch(&change).status, changed()),
        (200, vec![(3, Some(6), 1)]),
        "flow 1 had it before"
    );
    assert_eq!((patch(&change).json()["priority"].as_u64(), changed()), (Some(6), vec![]), "again");
    for (body, at) in [
        (json!({}), ""),
        (json!({"flows": []}), ""),
        (json!({"priority": 8}), "/priority"),
        (json!({"flows": [{"flow": 0, "priority": 8}]}), "/flows/0/priority"),
        (
            json!({"flows": [{"flow": 0, "priority": 1}, {"flow": 3, "priority": 1}]}),
            "/flows/1/flow",
        ),
        (
            json!({"flows": [{"flow": 0, "priority": 1}, {"flow": 0, "priority": 2}]}),
            "/flows/1/flow",
        ),
        (json!({"prio": 1}), "/prio"),
    ] {
        assert_eq!(patch(&body).problem(422).0, at, "{body}");
    }
    r.send("PATCH", "/api/v1/coflows/9", &json!({"priority": 1})).problem(404);
    // Of a coflow that others send only the priority is noted, and there are no flows.
    r.send("PUT", "/api/v1/coflows/4", &json!({"pairs": [{"from": 0, "to": 1, "bytes": 1}]}));
    assert_eq!(r.send("PATCH", "/api/v1/coflows/4", &json!({"priority": 1})).json()["priority"], 1);
    r.send("PATCH", "/api/v1/coflows/4", &json!({"flows": [{"flow": 0, "priority": 1}]}))
        .problem(409);
    assert_eq!(changed(), [(4, Some(1), 0)]);
    let foreign = [("content-type", "application/json"), ("origin", "http://example.com")];
    assert_eq!(r.call("PATCH", "/api/v1/coflows/3", &foreign, br#"{"priority": 0}"#).status, 403);
    assert_eq!(r.call("DELETE", "/api/v1/coflows/3", &[], b"").status, 204);
    assert_eq!(patch(&json!({"priority": 1})).problem(409).1, "coflow 3 is over");
    assert_eq!(changed(), []);
}

#[test]
fn what_flows_have_still_to_send_is_one_answer() {
    let (r, _) = sending();
    let empty: wire::OpenFlows = serde_json::from_str(&r.get("/api/v1/flows").text).unwrap();
    assert_eq!(empty.coflows, []);
    r.send("PUT", "/api/v1/coflows/3", &body());
    r.send(
        "PUT",
        "/api/v1/coflows/5",
        &json!({"send": true, "flows": [{"from": 0, "to": 2, "bytes": 50}]}),
    );
    let answer: wire::OpenFlows =
        serde_json::from_str(&r.get("/api/v1/flows?state=open").text).unwrap();
    let all: Vec<_> = answer
        .coflows
        .iter()
        .flat_map(|c| c.flows.iter().map(|f| (c.id, f.flow, f.left_bytes)))
        .collect();
    assert_eq!(all, [(3, 0, 4), (3, 1, 6), (3, 2, 8), (5, 0, 49)]);
    r.get("/api/v1/flows?state=finished").problem(400);
    // In virtual time, and without `network: priority`, no queue is counted.
    assert_eq!(r.get("/api/v1/queues").json()["ports"], json!([]));
}
