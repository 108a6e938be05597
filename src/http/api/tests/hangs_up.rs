//! Clients that hang up before they are answered: what they asked for is done to its end.

use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use serde_json::{Value, json};

use super::launch::{LateController, late};
use super::*;
use crate::api::listeners;
use crate::ids::CoflowId;
use crate::runtime::handle::Command;

/// A server before a controller that is driven by hand.
fn served() -> (LateController, Rig) {
    let l = late();
    let options = ServerOptions {
        listen: Some(([127, 0, 0, 1], 0).into()),
        sender: l.app.sender.clone(),
        ..ServerOptions::default()
    };
    let server = serve(l.app.handle.clone(), options).unwrap();
    let rig = Rig { server, handle: l.app.handle.clone(), stop: Arc::default() };
    (l, rig)
}

/// A request whose client hangs up while the controller has it; the server has seen the client's
/// end when this returns.
fn hangs_up(l: &LateController, r: &Rig, head: &str, body: &Value) -> Command {
    let (mut client, body) = (r.connect(), body.to_string());
    let head = format!(
        "{head} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nidempotency-key: k"
    );
    client
        .write_all(format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes())
        .unwrap();
    let command =
        l.ends.commands.recv_timeout(Duration::from_secs(60)).expect("the controller is told");
    drop(client);
    // One thread serves all, in the order in which the kernel gives them.
    assert_eq!(r.get("/livez").status, 200);
    command
}

/// Waits until this many are noted.
fn noted(of: &std::sync::Mutex<Vec<CoflowId>>, count: usize) -> Vec<CoflowId> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let noted = of.lock().unwrap().clone();
        if noted.len() >= count {
            return noted;
        }
        assert!(Instant::now() < deadline, "{noted:?}");
        std::thread::yield_now();
    }
}

#[test]
fn a_client_that_hangs_up_leaves_no_coflow_without_a_sender_and_no_key_without_its_coflow() {
    let (mut l, r) = served();
    let body = json!({"send": true, "flows": [{"from": 0, "to": 2, "bytes": 5}]});
    let posted = hangs_up(&l, &r, "POST /api/v1/coflows", &body);
    let reply = posted.reply.as_ref().expect("it is answered");
    assert!(!reply.is_closed(), "the request ended with its client");
    assert!(l.takes(posted));
    let [id] = noted(&l.notes.sent, 1)[..] else { panic!("{:?}", l.notes.sent) };
    // The same request again, as its client sends it that has heard nothing.
    let key = [("content-type", "application/json"), ("idempotency-key", "k")];
    let again = r.call("POST", "/api/v1/coflows", &key, body.to_string().as_bytes());
    assert_eq!(
        (again.status, again.header("idempotency-replayed"), again.json()["id"].clone()),
        (201, "true", json!(id.0)),
        "{again:?}"
    );
    assert_eq!((l.said(), l.app.snapshot().coflows.open), (vec!["arrived"], 1));
    let deleted = hangs_up(&l, &r, &format!("DELETE /api/v1/coflows/{}", id.0), &json!({}));
    assert!(l.takes(deleted));
    assert_eq!(noted(&l.notes.stopped, 1), [id]);
    assert_eq!((l.notes.sent.lock().unwrap().len(), l.app.snapshot().coflows.open), (1, 0));
}

#[test]
fn a_proposal_that_is_confirmed_by_a_client_that_hangs_up_is_sent() {
    let (mut l, r) = served();
    let place =
        json!({"place": {"maps": [{"rack": 0, "bytes": 5}], "reduces": [{"rack": 1, "tasks": 1}]}});
    let posted = hangs_up(&l, &r, "POST /api/v1/coflows", &place);
    let Event::CoflowProposed { id, .. } = posted.event else { panic!("{:?}", posted.event) };
    assert!(l.takes(posted));
    let confirmed =
        hangs_up(&l, &r, &format!("POST /api/v1/coflows/{}/confirm", id.0), &json!({"send": true}));
    assert!(l.takes(confirmed));
    assert_eq!(noted(&l.notes.sent, 1), [id]);
}

#[test]
fn requests_of_clients_that_hung_up_count_as_connections_until_they_end() {
    let (mut l, dir) = (late(), tempfile::tempdir().unwrap());
    let socket = dir.path().join("api.sock");
    let options = ServerOptions {
        listen: Some(([127, 0, 0, 1], 0).into()),
        socket: Some(socket.clone()),
        ..ServerOptions::default()
    };
    let r = Rig {
        server: serve(l.app.handle.clone(), options).unwrap(),
        handle: l.app.handle.clone(),
        stop: Arc::default(),
    };
    let body = json!({"pairs": [{"from": 0, "to": 1, "bytes": 5}]}).to_string();
    let post = format!(
        "POST /api/v1/coflows HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}",
        body.len()
    );
    let connect = || UnixStream::connect(&socket).unwrap();
    // The same thread answers over TCP, and has done all that it could of the others meanwhile.
    let turns = || (0..20).for_each(|_| assert_eq!(r.get("/livez").status, 200));
    let clients: Vec<UnixStream> = (0..listeners::UNIX.connections).map(|_| connect()).collect();
    clients
        .iter()
        .for_each(|mut c| c.write_all(format!("{post}\r\n\r\n{body}").as_bytes()).unwrap());
    turns();
    drop(clients);
    let mut next = connect();
    next.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    turns();
    next.set_nonblocking(true).unwrap();
    let mut answer = [0; 12];
    assert_eq!(
        next.read(&mut answer).map_err(|e| e.kind()),
        Err(ErrorKind::WouldBlock),
        "all connections are taken"
    );
    // One of the requests has its turn, the others wait for theirs.
    let deadline = Instant::now() + Duration::from_secs(60);
    while next.read(&mut answer).is_err() {
        assert!(Instant::now() < deadline, "no connection is free");
        if let Ok(command) = l.ends.commands.recv_timeout(Duration::from_millis(1)) {
            assert!(l.takes(command));
        }
    }
}
