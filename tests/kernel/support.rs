//! A small network, its fabric and its traffic, for one test.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::time::Duration;

use heliostat::circuits::timetable::Reservation;
use heliostat::coflows::elephants::Admit;
use heliostat::coflows::{CoflowSpec, FlowSpec};
use heliostat::fabric::Fabric;
use heliostat::fabric::kernel::network::Network;
use heliostat::fabric::kernel::{Clock, KernelFabric, Mechanism, sys};
use heliostat::fabric::traffic::{Traffic, TrafficEvent};
use heliostat::ids::{CoflowId, HostId, PlaneId, RackId};
use heliostat::plan::Op;
use heliostat::topology::{Plane, StopMode, Topology};
use heliostat::units::{BitRate, Bytes, Span, Time};

/// Throughput tests must not share the two cores with each other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Holds the machine for one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Where the tests' emulations keep their notes: in one place, so that what a killed run left goes with the next one's start.
pub fn base() -> PathBuf {
    std::env::temp_dir().join(format!("heliostat-test-{}", sys::uid_gid().0))
}

/// A built network with traffic.
pub struct Bench {
    pub fabric: KernelFabric,
    pub traffic: Traffic,
    pub clock: Clock,
    events: mpsc::Receiver<TrafficEvent>,
}

/// `racks` racks of one host; circuits of `ocs`, an EPS of `eps`, NICs faster than both.
pub fn topology(racks: usize, ocs: BitRate, eps: BitRate, delta: Span) -> Topology {
    let nic = BitRate(ocs.0.max(eps.0) * 2);
    let plane = Plane { id: PlaneId(0), rate: ocs, delta, stop: StopMode::NotAllStop, duplex: false };
    Topology::uniform("test", racks, 1, nic, eps, vec![plane])
}

/// Tries that a test has. What is asserted here are times and rates of a machine that may be busy with something else just then;
/// a defect fails every time.
const TRIES: u32 = 3;

/// Runs a test over every mechanism that this kernel allows, one test at a time.
pub fn each_mechanism(name: &str, test: impl Fn(Mechanism)) {
    let _alone = alone();
    if let Err(e) = Network::build(Arc::new(topology(1, BitRate::mbit(1), BitRate::mbit(1), Span::ZERO)), "heliostat:probe", None) {
        println!("SKIP {name}: no network namespaces: {e}");
        return;
    }
    for m in [Mechanism::Timed, Mechanism::Netlink] {
        match m.probe() {
            Ok(()) => try_hard(name, || test(m)),
            Err(e) => println!("SKIP {name} ({}): {e}", m.name()),
        }
    }
}

fn try_hard(name: &str, test: impl Fn()) {
    for k in 1..=TRIES {
        match catch_unwind(AssertUnwindSafe(&test)) {
            Ok(()) => return,
            Err(_) if k < TRIES => println!("{name}: try {k} of {TRIES} failed; once more"),
            Err(panic) => resume_unwind(panic),
        }
    }
}

impl Bench {
    pub fn new(topology: Topology, mechanism: Mechanism, admit: Admit) -> Self {
        let topology = Arc::new(topology);
        let clock = Clock::start();
        let net = Network::build(topology.clone(), "heliostat:test", Some("cubic")).expect("network");
        let fabric = KernelFabric::install(net, mechanism, admit, clock).expect("fabric");
        let (tx, events) = mpsc::channel();
        let traffic = Traffic::start(topology, fabric.host_namespaces().expect("descriptors"), clock, "cubic", move |e| {
            let _ = tx.send(e);
        })
        .expect("traffic");
        Self { fabric, traffic, clock, events }
    }

    /// Sets circuits up, from now on, without end.
    pub fn connect(&mut self, pairs: &[(u32, u32)]) -> Time {
        let at = self.clock.now() + self.fabric.notice();
        let delta = self.fabric.network().topology.planes[0].delta;
        let ops: Vec<Op> = pairs
            .iter()
            .map(|&(i, j)| {
                Op::Reserve(Reservation {
                    plane: PlaneId(0),
                    input: RackId(i),
                    output: RackId(j),
                    setup_at: at,
                    up_from: at + delta,
                    until: Time::MAX,
                })
            })
            .collect();
        for r in self.fabric.apply(&ops, self.clock.now()) {
            r.outcome.expect("applied");
        }
        self.clock.sleep_until(at + delta);
        at + delta
    }

    /// Starts coflows, each a list of (from host, to host, bytes, elephant).
    pub fn launch(&self, coflows: &[Vec<(u32, u32, u64, bool)>]) {
        for (k, flows) in coflows.iter().enumerate() {
            let spec = CoflowSpec {
                id: CoflowId::from(k),
                name: format!("c{k}"),
                arrival: self.clock.now(),
                weight: 1,
                priorities: Default::default(),
                flows: flows.iter().map(|f| FlowSpec { from: HostId(f.0), to: HostId(f.1), bytes: Bytes(f.2) }).collect(),
            };
            let elephant = flows[0].3;
            self.traffic.launch(&spec, |_, _| elephant);
        }
    }

    /// Sends coflows, each a list of (from host, to host, bytes, elephant), and gives their completion times.
    pub fn send(&self, coflows: &[Vec<(u32, u32, u64, bool)>]) -> Vec<Span> {
        let start = self.clock.now();
        self.launch(coflows);
        self.finished(coflows.len()).into_iter().map(|at| at.since(start)).collect()
    }

    /// When each of `n` coflows that were started had ended.
    pub fn finished(&self, n: usize) -> Vec<Time> {
        let mut done = BTreeMap::new();
        while done.len() < n {
            match self.events.recv_timeout(Duration::from_secs(60)).expect("traffic moves within a minute") {
                TrafficEvent::Finished { coflow, at } => drop(done.insert(coflow, at)),
                TrafficEvent::FlowFinished { coflow, flow, .. } => panic!("nobody watches {flow} of {coflow}"),
                TrafficEvent::Failed { coflow, why } => panic!("{coflow}: {why}"),
            }
        }
        done.into_values().collect()
    }
}

/// Payload rate in b/s.
pub fn rate(bytes: u64, took: Span) -> f64 {
    bytes as f64 * 8.0 / took.as_secs_f64()
}
