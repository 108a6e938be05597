//! Many clients, and clients that do not read.

use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use super::*;
use crate::api::listeners;
use crate::api::wire;

/// A client that asks for `path`, and reads nothing.
fn asks(r: &Rig, path: &str) -> TcpStream {
    let mut s = TcpStream::connect(r.server.address.expect("over TCP")).unwrap();
    s.write_all(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes()).unwrap();
    s
}

/// The first line of what comes back.
fn status(s: &mut TcpStream) -> String {
    let mut head = [0; 12];
    s.read_exact(&mut head).unwrap();
    String::from_utf8_lossy(&head).into_owned()
}

#[test]
fn a_crowd_of_readers_locks_no_other_kind_out_and_does_not_keep_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("api.sock");
    let r = rig_with(ServerOptions {
        listen: Some(([127, 0, 0, 1], 0).into()),
        socket: Some(socket.clone()),
        ..ServerOptions::default()
    });
    let mut streams: Vec<TcpStream> =
        (0..listeners::TCP.streams).map(|_| asks(&r, "/api/v1/events")).collect();
    assert!(streams.iter_mut().all(|s| status(s) == "HTTP/1.1 200"));
    assert_eq!(status(&mut asks(&r, "/api/v1/events")), "HTTP/1.1 503", "one stream too many");
    assert_eq!(r.get("/livez").status, 200, "other requests are served");
    // All connections over TCP: what comes next waits, and the owner's socket answers.
    let more: Vec<TcpStream> = (0..600).map(|_| asks(&r, "/livez")).collect();
    let over_unix = |path| exchange(UnixStream::connect(&socket).unwrap(), "GET", path, &[], &[]);
    assert_eq!(over_unix("/livez").status, 200);
    assert_eq!(over_unix("/api/v1/coflows").status, 200);
    // Its event streams have room of their own, and leave room for its other requests.
    let follow = || {
        let mut s = UnixStream::connect(&socket).unwrap();
        s.write_all(b"GET /api/v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        let mut head = [0; 12];
        s.read_exact(&mut head).unwrap();
        (s, String::from_utf8_lossy(&head).into_owned())
    };
    let own: Vec<_> = (0..listeners::UNIX.streams).map(|_| follow()).collect();
    assert!(
        own.iter().all(|s| s.1 == "HTTP/1.1 200"),
        "{:?}",
        own.iter().find(|s| s.1 != "HTTP/1.1 200").map(|s| &s.1)
    );
    assert_eq!(follow().1, "HTTP/1.1 503");
    assert_eq!(over_unix("/livez").status, 200);
    let metrics = over_unix("/metrics").text;
    for (line, value) in [
        ("heliostat_api_event_streams{over=\"tcp\"}", listeners::TCP.streams),
        ("heliostat_api_event_streams{over=\"unix\"}", listeners::UNIX.streams),
        ("heliostat_api_event_streams_refused_total{over=\"tcp\"}", 1),
        ("heliostat_api_event_streams_refused_total{over=\"unix\"}", 1),
        ("heliostat_api_connections{over=\"tcp\"}", listeners::TCP.connections),
    ] {
        assert!(metrics.contains(&format!("{line} {value}\n")), "{line} {value}: {metrics}");
    }
    // The end is not put off by clients that hold connections.
    r.server.begin_stop();
    let deadline = Instant::now() + Duration::from_secs(60);
    while r.server.is_alive() {
        assert!(Instant::now() < deadline, "the server still runs");
        std::thread::yield_now();
    }
    drop((streams, more, own));
}

#[test]
fn an_answer_that_is_not_read_is_not_kept_for_ever() {
    let r = rig();
    let name = "n".repeat(60);
    let body = serde_json::json!({"name": name, "pairs": [{"from": 0, "to": 1, "bytes": 1}]});
    (0..2000).for_each(|_| assert_eq!(r.send("POST", "/api/v1/coflows", &body).status, 201));
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(&r.server.address.expect("over TCP").into()).unwrap();
    let mut lazy = TcpStream::from(socket);
    for _ in 0..20 {
        lazy.write_all(b"GET /api/v1/coflows HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    }
    // The server gives the connection up: writing to it fails in the end.
    let deadline = Instant::now() + Duration::from_secs(60);
    let refused = loop {
        match lazy.write_all(b"\r\n") {
            Err(e) => break e.kind(),
            Ok(()) => assert!(Instant::now() < deadline, "the connection is still open"),
        }
    };
    assert!(matches!(refused, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{refused}");
    assert_eq!(r.get("/livez").status, 200);
}

#[test]
fn the_list_is_whole_in_pieces_pages_and_by_name() {
    let r = rig();
    let names = ["a", "b", "a", "c", "b", "a"];
    for n in names {
        let body = serde_json::json!({"name": n, "pairs": [{"from": 0, "to": 1, "bytes": 1}]});
        assert_eq!(r.send("POST", "/api/v1/coflows", &body).status, 201);
    }
    let list = |query: &str| {
        let answer = r.get(&format!("/api/v1/coflows{query}"));
        serde_json::from_str::<wire::Coflows>(&answer.text)
            .unwrap_or_else(|e| panic!("{query}: {e}: {answer:?}"))
    };
    let first = list("").coflows[0].id;
    let ids = |l: &wire::Coflows| l.coflows.iter().map(|c| c.id - first).collect::<Vec<_>>();
    let all = list("");
    assert_eq!((ids(&all), all.more), ((0..6).collect(), false));
    let (mut paged, mut after) = (vec![], String::new());
    loop {
        let page = list(&format!("?limit=4{after}"));
        paged.extend(page.coflows.clone());
        if !page.more {
            break;
        }
        assert_eq!(page.coflows.len(), 4);
        after = format!("&after={}", page.coflows[3].id);
    }
    assert_eq!(paged, all.coflows);
    assert_eq!(ids(&list("?name=a")), [0, 2, 5]);
    assert_eq!(ids(&list(&format!("?name=a&after={first}&limit=1"))), [2]);
    assert_eq!(ids(&list("?name=z")), [0; 0]);
    assert_eq!(
        r.send("DELETE", &format!("/api/v1/coflows/{}", first + 2), &serde_json::json!({})).status
            / 100,
        2
    );
    assert_eq!(ids(&list("?name=a&state=cancelled")), [2]);
    let (_, detail) = r.get("/api/v1/coflows?limit=0").problem(400);
    assert!(detail.contains("1 or more"), "{detail}");
}
