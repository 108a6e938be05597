//! The API over a real socket, against the real controller over a fabric that does what it is told.

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
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use serde_json::Value;

use super::{Options, Server, serve};
use crate::circuits::external::{Advice, NoAnswer, Question};
use crate::coflows::priority::Change;
use crate::control::policy::{CircuitPolicy, SchedulerKind};
use crate::control::record::Record;
use crate::control::{Controller, Event, Rejected};
use crate::demand::DemandMatrix;
use crate::fabric::sim::{Settings, SimFabric};
use crate::fabric::{Observation, PortCounters, ProbeReport, ProbeRequest};
use crate::ids::{CoflowId, PlaneId, RackId};
use crate::runtime::drive::{Driver, Host};
use crate::runtime::handle::{Ends, Handle};
use crate::runtime::settings::RunPlan;
use crate::topology::{Plane, StopMode, Topology};
use crate::units::{BitRate, Span, Time};

/// A server, and the controller behind it.
pub(crate) struct Rig {
    pub(crate) server: Server,
    pub(crate) handle: Handle,
    stop: Arc<AtomicBool>,
}

/// What came back.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    text: String,
}

impl Answer {
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
        let p: super::problem::Problem = serde_json::from_str(&self.text).unwrap();
        assert_eq!((p.status, &*p.r#type), (status, "about:blank"));
        (p.pointer.unwrap_or_default().into(), p.detail.into())
    }
}

fn network() -> Topology {
    let plane = Plane { id: PlaneId(0), rate: BitRate::mbit(1000), delta: Span::millis(10), stop: StopMode::NotAllStop, duplex: false };
    Topology::uniform("net", 4, 2, BitRate::mbit(1000), BitRate::mbit(100), vec![plane])
}

fn rig() -> Rig {
    rig_with(Options { listen: Some(([127, 0, 0, 1], 0).into()), ..Options::default() })
}

pub(crate) fn rig_with(options: Options) -> Rig {
    rig_by(CircuitPolicy { scheduler: SchedulerKind::Manual, ..CircuitPolicy::default() }, options)
}

fn rig_by(policy: CircuitPolicy, options: Options) -> Rig {
    rig_on(network(), policy, options)
}

fn rig_on(topology: Topology, plan: impl Into<RunPlan>, options: Options) -> Rig {
    let (topology, plan) = (Arc::new(topology), Arc::new(plan.into()));
    let below = topology.clone();
    let controller = Controller::new(topology.clone(), plan.policy.clone(), Time(Span::millis(100).0), Span::ZERO);
    let (handle, ends) = Handle::new(topology, plan, controller.snapshot(Time::ZERO, "test"), 0);
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    std::thread::spawn(move || drive(controller, below, &ends, &stopped));
    let server = serve(handle.clone(), options).unwrap();
    Rig { server, handle, stop }
}

/// The outside of the driver: a clock that stands between ticks, and racks that always want the same.
struct Outside {
    now: Time,
    events: tokio::sync::broadcast::Sender<Arc<Record>>,
}

impl Host<SimFabric> for Outside {
    fn now(&self) -> Time {
        self.now
    }

    fn feed(&mut self, _: &mut SimFabric, _: &Controller) -> Vec<Event> {
        vec![]
    }

    fn complete(&mut self, _: &mut SimFabric, seen: &mut Observation) {
        let zero = DemandMatrix::zero(4);
        let mut sent = zero.clone();
        sent.set(RackId(0), RackId(1), seen.at.0 / 1000);
        let ports = vec![vec![PortCounters { crossed_packets: 2, crossed_bytes: 3000, late_packets: 1, misdelivered: 0 }; 4]];
        let (at, programmed) = (seen.at, std::mem::take(&mut seen.programmed));
        *seen = Observation {
            at,
            programmed,
            sent,
            over_ocs: zero.clone(),
            backlog: zero,
            flows: None,
            elephants: None,
            ports,
            damage: vec![],
        };
    }

    fn consult(&mut self, _: &Question) -> Result<Result<Advice, NoAnswer>, Rejected> {
        Ok(Err(NoAnswer::Broken("no program".into())))
    }

    fn probe(&mut self, _: ProbeRequest) {}

    fn prioritise(&mut self, _: &mut SimFabric, _: CoflowId, _: &Change) {}

    fn log(&mut self, record: Record) {
        let _ = self.events.send(Arc::new(record));
    }

    fn refused(&mut self, why: Rejected) -> Result<(), Rejected> {
        Err(why)
    }
}

/// Drives the controller: every tick that is sent is one cycle, 100 ms later.
fn drive(controller: Controller, topology: Arc<Topology>, ends: &Ends, stop: &AtomicBool) {
    let outside = Outside { now: Time::ZERO, events: ends.events.clone() };
    let mut driver = Driver::new(controller, SimFabric::new(topology, Settings::default()), outside);
    while let Ok(command) = ends.commands.recv() {
        if stop.load(Relaxed) {
            return;
        }
        if command.event == Event::Tick {
            driver.host.now += Span::millis(100);
        }
        let answer = driver.tell(command.event);
        driver.act().expect("the controller takes what it asked for");
        ends.snapshot.send_replace(Arc::new(driver.controller.snapshot(driver.host.now, "test")));
        if let Some(reply) = command.reply {
            let _ = reply.send(answer);
        }
    }
}

impl Rig {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.server.address.unwrap()).unwrap();
        // Shorter than the keep-alive of the event stream: a test that waits for nothing fails.
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    }

    fn call(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        exchange(self.connect(), method, path, headers, body)
    }

    fn get(&self, path: &str) -> Answer {
        self.call("GET", path, &[], b"")
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.call(method, path, &[("content-type", "application/json")], body.to_string().as_bytes())
    }

    /// One cycle, done when this returns: answers come in order.
    pub(crate) fn tick(&self) {
        let done = self.handle.tell(Event::Tick);
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(done).unwrap();
    }

    /// The probes of a circuit come out at a wrong rack: the port is faulty.
    fn spoil(&self, input: u32) {
        let (plane, input, output) = (PlaneId(0), RackId(input), RackId((input + 1) % 4));
        self.handle.notify(Event::ManualConnect { plane, input, output });
        self.tick();
        self.tick();
        let arrived = Some((RackId((input.0 + 2) % 4), Time::ZERO));
        let at = self.handle.snapshot().circuits.iter().find(|c| c.input == input).expect("up").up_from;
        let report = ProbeReport { plane, input, output, at, arrived, dark: None };
        self.handle.notify(Event::Probed { report: report.clone() });
        self.handle.notify(Event::Probed { report });
        self.handle.notify(Event::ManualDisconnect { plane, input });
        // A cycle between: the port is seen to be faulty.
        self.tick();
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.handle.notify(Event::Tick);
    }
}

/// One request, one answer, one connection.
fn exchange(mut stream: impl Read + Write, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
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

fn parse(bytes: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let (head, text) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines.filter_map(|l| l.split_once(": ")).map(|(k, v)| (k.to_ascii_lowercase(), v.to_string())).collect();
    let answer = Answer { status, headers, text: text.to_string() };
    // Streams of events are read as they come, in their chunks.
    let in_chunks = answer.header("transfer-encoding") == "chunked" && answer.header("content-type") == "application/json";
    if in_chunks { Answer { text: joined(&answer.text), ..answer } } else { answer }
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
