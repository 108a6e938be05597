//! Sockets, tokens, health, metrics and the description of it all.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

use super::*;
use crate::api::ServeError;
use crate::control::Trouble;

#[test]
fn health_says_what_is() {
    let r = rig();
    assert_eq!((r.get("/livez").status, r.get("/livez").text.as_str()), (200, "ok\n"));
    r.get("/readyz").problem(503);
    r.tick();
    assert_eq!(r.get("/readyz").status, 200);
    let trouble = |what, why: Option<&str>| {
        let told = r.handle.ask(Event::Trouble { what, why: why.map(str::to_owned) });
        told.unwrap().blocking_recv().unwrap().unwrap();
    };
    trouble(Trouble::World, Some("link eth0 of h0-0 is gone"));
    assert_eq!(r.get("/readyz").status, 200, "the rest is under control");
    trouble(Trouble::Plan, Some("two circuits on a port"));
    assert_eq!(
        r.get("/readyz").problem(503).1,
        "cannot plan the operations: two circuits on a port"
    );
    trouble(Trouble::Plan, None);
    assert_eq!(r.get("/readyz").status, 200);
    trouble(Trouble::Carry(CoflowId(7)), Some("flow h0-0 -> h2-0: nothing has moved for 6 s"));
    assert!(r.get("/readyz").problem(503).1.starts_with("cannot carry coflow 7: flow h0-0"));
    trouble(Trouble::Carry(CoflowId(7)), None);
    assert_eq!(r.get("/readyz").status, 200);
    r.stop.store(true, Relaxed);
    r.handle.notify(Event::Tick);
    let mut watch = r.handle.watch();
    let gone = async { while watch.changed().await.is_ok() {} };
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(gone);
    r.get("/readyz").problem(503);
    let body = serde_json::json!({"pairs": [{"from": 0, "to": 1, "bytes": 1}]});
    assert_eq!(
        r.send("POST", "/api/v1/coflows", &body).problem(503).1,
        "the controller has stopped"
    );
    assert_eq!(r.get("/livez").problem(503).1, "the controller has stopped");
}

#[test]
fn a_controller_that_died_is_neither_live_nor_ready_and_the_reason_is_told() {
    let topology = Arc::new(network());
    let controller =
        Controller::new(topology.clone(), CircuitPolicy::default(), Time::ZERO, Span::ZERO);
    let (handle, ends) =
        Handle::new(topology, Default::default(), controller.snapshot(Time::ZERO, "test"), 0);
    let options =
        ServerOptions { listen: Some(([127, 0, 0, 1], 0).into()), ..ServerOptions::default() };
    let r = Rig { server: serve(handle.clone(), options).unwrap(), handle, stop: Arc::default() };
    assert_eq!(r.get("/livez").status, 200);
    // One that has come round lately works, and one that has not hangs.
    let now = crate::kernel::sys::monotonic();
    ends.pulse.beat_at(now);
    assert_eq!(r.get("/livez").status, 200);
    ends.pulse.beat_at(now.saturating_sub(7_000_000_000));
    for path in ["/livez", "/readyz"] {
        assert_eq!(
            r.get(path).problem(503).1,
            "the controller hangs: it has done nothing for 7 s",
            "{path}"
        );
    }
    ends.say_why("the controller's thread died: boom".into());
    for path in ["/livez", "/readyz"] {
        assert_eq!(r.get(path).problem(503).1, "the controller's thread died: boom", "{path}");
    }
}

#[test]
fn a_coflow_that_a_late_controller_did_not_confirm_is_taken_back() {
    let topology = Arc::new(network());
    let controller =
        Controller::new(topology.clone(), CircuitPolicy::default(), Time::ZERO, Span::ZERO);
    // No thread reads the commands until the API has given up.
    let (handle, ends) =
        Handle::new(topology, Default::default(), controller.snapshot(Time::ZERO, "test"), 0);
    let server = serve(
        handle.clone(),
        ServerOptions { listen: Some(([127, 0, 0, 1], 0).into()), ..ServerOptions::default() },
    )
    .unwrap();
    let rig = Rig { server, handle, stop: Arc::default() };
    let body = serde_json::json!({"pairs": [{"from": 0, "to": 1, "bytes": 1}]});
    assert_eq!(
        rig.send("POST", "/api/v1/coflows", &body).problem(503).1,
        "the controller does not answer"
    );
    let told: Vec<Event> =
        std::iter::from_fn(|| ends.commands.try_recv().ok()).map(|c| c.event).collect();
    let [Event::CoflowArrived { id: came, .. }, Event::CoflowCancelled { id: went, .. }] =
        &told[..]
    else {
        panic!("{told:?}")
    };
    assert_eq!(came, went);
}

#[test]
fn metrics_are_open_metrics_in_base_units() {
    let r = rig();
    r.tick();
    let a = r.get("/metrics");
    assert!(a.header("content-type").starts_with("application/openmetrics-text"), "{a:?}");
    for line in [
        "heliostat_cycles_total 1",
        "heliostat_port_crossed_bytes_total{plane=\"0\",rack=\"3\"} 3000",
        "heliostat_rack_sent_bytes_total{rack=\"0\"} 100000",
        "heliostat_circuits{state=\"up\"} 0",
        "# UNIT heliostat_cycle_duration_seconds seconds",
        "# TYPE heliostat_cycle_duration_seconds histogram",
        "heliostat_cycle_duration_seconds_bucket{le=\"0.00001\",part=\"poll\"} 1",
        "heliostat_cycle_duration_seconds_bucket{le=\"+Inf\",part=\"all\"} 1",
        "heliostat_cycle_duration_seconds_count{part=\"decide\"} 1",
        "heliostat_cct_seconds_bucket{le=\"1000.0\"} 0",
        "heliostat_cct_seconds_sum 0.0",
        "heliostat_probes_total{result=\"lost\"} 0",
        "# EOF",
    ] {
        assert!(a.text.lines().any(|l| l == line), "{line} is not in\n{}", a.text);
    }
    let names =
        a.text.lines().filter(|l| !l.starts_with('#')).map(|l| l.split(['{', ' ']).next().unwrap());
    for name in names.collect::<BTreeSet<_>>() {
        assert!(
            name.starts_with("heliostat_") && !name.contains("_ns") && !name.contains("_ms"),
            "{name}"
        );
    }
}

#[test]
fn the_description_lists_every_route_and_resolves() {
    let r = rig();
    let doc = r.get("/openapi.json").json();
    assert!(doc["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut listed = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for (path, item) in doc["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            listed.insert(format!("{} {path}", method.to_uppercase()));
            assert!(
                ids.insert(operation["operationId"].as_str().unwrap().to_string()),
                "{method} {path}"
            );
            assert!(
                operation["summary"].is_string()
                    && operation["responses"].as_object().is_some_and(|r| !r.is_empty())
            );
            if path == "/api/v1/events" {
                continue;
            }
            let at = path
                .replace("{plane}", "0")
                .replace("{input}", "1")
                .replace("{rack}", "1")
                .replace("{id}", "5");
            let a = r.call(&method.to_uppercase(), &at, &[], b"");
            assert!(
                a.status != 405 && !a.text.contains("there is nothing at"),
                "{method} {path}: {a:?}"
            );
        }
    }
    let expected = "DELETE /api/v1/circuits/{plane}/{input}, DELETE /api/v1/coflows/{id}, DELETE /api/v1/paths/{from}/{to}, \
        DELETE /api/v1/ports/{plane}/{rack}/fault, GET /api/v1/circuits, GET /api/v1/circuits/{plane}/{input}, GET /api/v1/coflows, \
        GET /api/v1/coflows/{id}, GET /api/v1/demand, GET /api/v1/events, GET /api/v1/flows, GET /api/v1/jobs, GET /api/v1/jobs/decisions, \
        GET /api/v1/paths, GET /api/v1/policy, GET /api/v1/ports, GET /api/v1/queues, GET /api/v1/stats, GET /api/v1/topology, \
        GET /api/v1/utilisation, GET /livez, GET /metrics, GET /readyz, PATCH /api/v1/coflows/{id}, POST /api/v1/coflows, \
        POST /api/v1/coflows/{id}/confirm, POST /api/v1/coflows/{id}/finish, PUT /api/v1/circuits, \
        PUT /api/v1/circuits/{plane}/{input}, PUT /api/v1/coflows/{id}, PUT /api/v1/jobs, \
        PUT /api/v1/paths/{from}/{to}, PUT /api/v1/policy";
    assert_eq!(listed.into_iter().collect::<Vec<_>>().join(", "), expected);
    resolve(&doc, &doc);
    assert_eq!(doc["components"]["schemas"]["RawPolicy"]["type"], "object");
}

/// Every `$ref` of the document leads somewhere.
fn resolve(v: &Value, doc: &Value) {
    match v {
        Value::Object(m) => {
            if let Some(Value::String(to)) = m.get("$ref") {
                assert!(doc.pointer(to.trim_start_matches('#')).is_some(), "{to}");
            }
            m.values().for_each(|v| resolve(v, doc));
        }
        Value::Array(a) => a.iter().for_each(|v| resolve(v, doc)),
        _ => {}
    }
}

#[test]
fn the_page_is_served_from_the_binary() {
    let r = rig();
    let page = r.get("/docs/");
    assert_eq!(page.status, 200, "{page:?}");
    assert!(page.text.contains("swagger-ui") && !page.text.contains("https://"), "{}", page.text);
    assert!(r.get("/docs/swagger-initializer.js").text.contains("/openapi.json"));
    assert_eq!(r.get("/docs/swagger-ui-bundle.js").status, 200);
}

#[test]
fn others_need_a_token() {
    let any = |token: Option<&str>| {
        let handle = rig().handle.clone();
        serve(
            handle,
            ServerOptions {
                listen: Some(([0, 0, 0, 0], 0).into()),
                token: token.map(Into::into),
                ..ServerOptions::default()
            },
        )
    };
    assert!(matches!(any(None), Err(ServeError::NeedsToken(_))));
    assert!(matches!(any(Some("short")), Err(ServeError::WeakToken)));
    let token = "0123456789abcdef";
    let r = rig_with(ServerOptions {
        listen: Some(([127, 0, 0, 1], 0).into()),
        token: Some(token.into()),
        ..ServerOptions::default()
    });
    let get = |headers: &[(&str, &str)]| r.call("GET", "/api/v1/topology", headers, b"");
    let refused = get(&[]);
    refused.problem(401);
    assert_eq!(refused.header("www-authenticate"), "Bearer");
    get(&[("authorization", "Bearer 0123456789abcdeg")]).problem(401);
    get(&[("authorization", token)]).problem(401);
    assert_eq!(
        get(&[("authorization", &format!("Bearer {token}")), ("host", "net.example")]).status,
        200
    );
    assert_eq!(r.get("/livez").status, 200);
    r.get("/metrics").problem(401);
}

#[test]
fn a_rebound_name_is_refused() {
    let r = rig();
    let get = |host: &str| r.call("GET", "/api/v1/topology", &[("host", host)], b"");
    get("evil.example:7447").problem(421);
    assert_eq!(get("127.0.0.1:7447").status, 200);
}

#[test]
fn the_unix_socket_is_private_and_goes_with_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("api.sock");
    let options = || ServerOptions {
        socket: Some(path.clone()),
        token: Some("0123456789abcdef".into()),
        ..ServerOptions::default()
    };
    let r = rig_with(options());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let get = || {
        exchange(
            UnixStream::connect(&path).unwrap(),
            "GET",
            "/api/v1/topology",
            &[("host", "x")],
            b"",
        )
    };
    assert_eq!(get().status, 200, "the file's mode is the key, not the token");
    assert!(matches!(serve(r.handle.clone(), options()), Err(ServeError::SocketTaken(_))));
    drop(r);
    assert!(!path.exists());
    // A leftover of a killed daemon is replaced; a file that is no socket is not.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    drop(rig_with(options()));
    std::fs::write(&path, "mine").unwrap();
    assert!(matches!(serve(rig().handle.clone(), options()), Err(ServeError::Listen(..))));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
}

#[test]
fn a_taken_port_is_said() {
    let r = rig();
    let again = serve(
        r.handle.clone(),
        ServerOptions { listen: r.server.address, ..ServerOptions::default() },
    );
    assert!(matches!(again, Err(ServeError::Listen(..))));
}
