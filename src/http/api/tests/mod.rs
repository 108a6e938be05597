//! The API over a real socket, against the real controller over a fabric that does what it is asked
//! to do.

mod answers;
mod crowds;
mod described;
mod events;
mod hangs_up;
mod hostile;
mod launch;
mod named;
mod outside;
mod page;
mod paths;
mod priorities;
mod proposals;
mod resources;
mod roles;
mod serving;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use serde_json::Value;

use super::{ServerOptions, serve};
use crate::control::policy::{CircuitPolicy, SchedulerKind};
use crate::control::{Controller, Event};
use crate::fabric::ProbeReport;
use crate::ids::{CoflowId, PlaneId, RackId};
use crate::rig::{Rig, network, rig_by, rig_on, rig_with};
use crate::runtime::handle::{Handle, HandlePeer};
use crate::topology::Topology;
use crate::units::{BitRate, Span, Time};

/// What came back.
#[derive(Debug)]
struct ApiAnswer {
    status: u16,
    headers: Vec<(String, String)>,
    text: String,
}

impl ApiAnswer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|h| h.0 == name).map_or("", |h| &h.1)
    }

    /// Checks that this is a problem with this status, and gives its pointer and detail.
    fn problem(&self, status: u16) -> (String, String) {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        let p: super::problem::ProblemDetails = serde_json::from_str(&self.text).unwrap();
        assert_eq!((p.status, &*p.r#type), (status, "about:blank"));
        (p.pointer.unwrap_or_default().into(), p.detail.into())
    }
}

fn rig() -> Rig {
    rig_with(ServerOptions { listen: Some(([127, 0, 0, 1], 0).into()), ..ServerOptions::default() })
}

impl Rig {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.server.address.unwrap()).unwrap();
        // Shorter than the keep-alive of the event stream: a test that waits for nothing fails.
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    }

    fn call(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> ApiAnswer {
        exchange(self.connect(), method, path, headers, body)
    }

    fn get(&self, path: &str) -> ApiAnswer {
        self.call("GET", path, &[], b"")
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> ApiAnswer {
        self.call(
            method,
            path,
            &[("content-type", "application/json")],
            body.to_string().as_bytes(),
        )
    }

    /// The probes of a circuit come out at a wrong rack: the port is faulty.
    fn spoil(&self, input: u32) {
        let (plane, input, output) = (PlaneId(0), RackId(input), RackId((input + 1) % 4));
        self.handle.notify(Event::ManualConnect { plane, input, output });
        self.tick();
        self.tick();
        let arrived = Some((RackId((input.0 + 2) % 4), Time::ZERO));
        let at =
            self.handle.snapshot().circuits.iter().find(|c| c.input == input).expect("up").up_from;
        let report = ProbeReport { plane, input, output, at, arrived, dark: None };
        self.handle.notify(Event::Probed { report: report.clone() });
        self.handle.notify(Event::Probed { report });
        self.handle.notify(Event::ManualDisconnect { plane, input });
        // A cycle between: the port is seen to be faulty.
        self.tick();
    }
}

/// One request, one answer, one connection.
fn exchange(
    mut stream: impl Read + Write,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> ApiAnswer {
    let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
    if !headers.iter().any(|h| h.0 == "host") {
        head += "host: localhost\r\n";
    }
    if method != "GET" {
        head += &format!("content-length: {}\r\n", body.len());
    }
    for (k, v) in headers {
        head += &format!("{k}: {v}\r\n");
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
    // A server that refuses a large body may close before it has read all of it.
    let _ = stream.write_all(body);
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> ApiAnswer {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let (head, text) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines
        .filter_map(|l| l.split_once(": "))
        .map(|(k, v)| (k.to_ascii_lowercase(), v.to_string()))
        .collect();
    let answer = ApiAnswer { status, headers, text: text.to_string() };
    // Streams of events are read as they come, in their chunks.
    let in_chunks = answer.header("transfer-encoding") == "chunked"
        && answer.header("content-type") == "application/json";
    if in_chunks { ApiAnswer { text: joined(&answer.text), ..answer } } else { answer }
}

/// The chunks of an answer without their lengths (RFC 9112, section 7.1).
fn joined(mut chunks: &str) -> String {
    let mut whole = String::new();
    while let Some((length, rest)) = chunks.split_once("\r\n") {
        let (chunk, rest) = rest.split_at(usize::from_str_radix(length, 16).expect("a length"));
        whole.push_str(chunk);
        chunks = rest.strip_prefix("\r\n").expect("a chunk's end");
    }
    whole
}
