//! A small network, its fabric and its traffic, for one test.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use heliostat::circuits::timetable::Reservation;
use heliostat::coflows::elephants::Admit;
use heliostat::coflows::{CoflowSpec, FlowSpec};
use heliostat::fabric::Fabric;
use heliostat::ids::{CoflowId, HostId, PlaneId, RackId};
use heliostat::kernel::msg::Tcp;
use heliostat::kernel::network::EmulatedNetwork;
use heliostat::kernel::ownership::Owned;
use heliostat::kernel::traffic::{Traffic, TrafficEvent};
use heliostat::kernel::{Clock, KernelFabric, Mechanism, Serving};
use heliostat::plan::Op;
use heliostat::runtime::emulation::{Emulation, EmulationOptions};
use heliostat::runtime::settings::RunPlan;
use heliostat::topology::{Plane, StopMode, Topology};
use heliostat::units::{BitRate, Bytes, Span, Time};

use crate::tries::{
    TRIES, Timing, alone, is_robbed, quick, skip, together, tries, tries_and_tells,
};

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
    let plane =
        Plane { id: PlaneId(0), rate: ocs, delta, stop: StopMode::NotAllStop, duplex: false };
    Topology::uniform("test", racks, 1, nic, eps, vec![plane])
}

/// Takes a name and starts an emulation under it.
pub fn emulation(topology: Arc<Topology>, plan: RunPlan, options: &EmulationOptions) -> Emulation {
    let owned = Owned::take(&options.base, &options.name).expect("the name is free");
    Emulation::start(owned, topology, plan, options, None).expect("started")
}

/// Runs a test of facts over every mechanism that this kernel allows, beside other tests of facts.
pub fn each_mechanism(name: &str, test: impl Fn(Mechanism)) {
    let _turn = together();
    allowed(name, &BOTH, |_, m| test(m));
}

/// Runs a test that looks at times over every mechanism that this kernel allows, and where tests
/// are [`quick`] over `timed` alone. Few tests run beside it. A try that was too slow is followed
/// by another.
pub fn each_mechanism_quiet(name: &str, test: impl Fn(Mechanism) -> Timing) {
    let _turn = together();
    measured(name, test);
}

/// As [`each_mechanism_quiet`], for a test that measures what the machine can do: no other test
/// runs beside it.
pub fn each_mechanism_alone(name: &str, test: impl Fn(Mechanism) -> Timing) {
    let _turn = alone();
    measured(name, test);
}

fn measured(name: &str, test: impl Fn(Mechanism) -> Timing) {
    allowed(name, if quick() { &[Mechanism::Timed] } else { &BOTH }, |each, m| {
        tries(each, || test(m))
    });
}

const BOTH: [Mechanism; 2] = [Mechanism::Timed, Mechanism::Netlink];

fn allowed(name: &str, mechanisms: &[Mechanism], test: impl Fn(&str, Mechanism)) {
    if let Err(e) = EmulatedNetwork::build(
        Arc::new(topology(1, BitRate::mbit(1), BitRate::mbit(1), Span::ZERO)),
        "heliostat:probe",
        None,
    ) {
        return skip(name, &format!("no network namespaces: {e}"));
    }
    for &m in mechanisms {
        let each = format!("{name} ({})", m.name());
        match m.probe() {
            Ok(()) => test(&each, m),
            Err(e) => skip(&each, &e.to_string()),
        }
    }
}

#[test]
fn only_a_try_that_was_too_slow_is_followed_by_another() {
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    let run = |test: &dyn Fn(u32) -> Timing| {
        let begun = Cell::new(0);
        let next = || {
            begun.set(begun.get() + 1);
            test(begun.get())
        };
        (
            catch_unwind(AssertUnwindSafe(|| tries_and_tells("a test of tries", next, |_| {})))
                .is_ok(),
            begun.get(),
        )
    };
    let slow = |k: u32, fast: u32| -> Timing {
        in_time!(k >= fast, "try {k} is made slow on purpose");
        Ok(())
    };
    assert_eq!(run(&|k| slow(k, 1)), (true, 1));
    assert_eq!(run(&|k| slow(k, TRIES)), (true, TRIES), "the last try counts");
    assert_eq!(run(&|k| slow(k, TRIES + 1)), (false, TRIES), "always too slow is a failure");
    assert_eq!(run(&|_| panic!("lost on purpose")), (false, 1), "what is wrong fails at once");
}

#[test]
fn a_try_counts_unless_the_machine_s_host_took_a_twentieth_of_it() {
    let robbed =
        |taken, took| is_robbed(Duration::from_millis(taken), Duration::from_millis(took), 2);
    assert!(robbed(1000, 10_000) && !robbed(999, 10_000), "of two processors in ten seconds");
    assert!(!robbed(90, 1) && !robbed(0, 0), "one tick in a moment is chance");
}

impl Bench {
    pub fn new(topology: Topology, mechanism: Mechanism, serving: impl Into<Serving>) -> Self {
        let serving = serving.into();
        let topology = Arc::new(topology);
        let clock = Clock::start();
        let net = EmulatedNetwork::build(topology.clone(), "heliostat:test", Some(Tcp::default()))
            .expect("network");
        let fabric = KernelFabric::install(net, mechanism, serving, clock).expect("fabric");
        let (tx, events) = mpsc::channel();
        let mut traffic = Traffic::start(
            topology,
            fabric.host_namespaces().expect("descriptors"),
            clock,
            "cubic",
            move |e| {
                let _ = tx.send(e);
            },
        )
        .expect("traffic");
        traffic.serve(serving.service);
        Self { fabric, traffic, clock, events }
    }

    /// Sets circuits up, from now on, without end, and waits until they carry: the thread that sets
    /// them may be late.
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
        let changes = |b: &Self| b.fabric.lateness().map(|l| l.changes);
        let before = changes(self);
        for r in self.fabric.apply(&ops, self.clock.now()) {
            r.outcome.expect("applied");
        }
        self.clock.sleep_until(at + delta);
        while before.is_some() && changes(self) == before {
            assert!(self.clock.now() < at + delta + Span::secs(10), "no circuit was switched");
            self.clock.sleep_until(self.clock.now() + Span::micros(100));
        }
        at + delta
    }

    /// What one circuit from each rack to the next carries of TCP that never ends, in all, in bits
    /// a second: what this machine can do just now, with which circuits that move are compared.
    pub fn standing_circuits_carry(topology: Topology, mechanism: Mechanism, admit: Admit) -> f64 {
        let racks = topology.rack_count() as u32;
        let pairs: Vec<(u32, u32)> = (0..racks).map(|i| (i, (i + 1) % racks)).collect();
        let mut b = Self::new(topology, mechanism, admit);
        b.connect(&pairs);
        b.launch(&[pairs.iter().map(|&(i, j)| (i, j, 10_000_000_000, true)).collect()]);
        let mut crossed = |after: Span| {
            b.clock.sleep_until(b.clock.now() + after);
            (b.clock.now(), b.fabric.observe(b.clock.now()).expect("observed").over_ocs.total())
        };
        let (warm, end) = (crossed(Span::millis(300)), crossed(Span::millis(700)));
        rate(end.1 - warm.1, end.0.since(warm.0))
    }

    /// Starts coflows, each a list of (from host, to host, bytes, elephant).
    pub fn launch(&self, coflows: &[Vec<(u32, u32, u64, bool)>]) {
        for (k, flows) in coflows.iter().enumerate() {
            let spec = CoflowSpec::new(
                CoflowId::from(k),
                format!("c{k}"),
                self.clock.now(),
                flows
                    .iter()
                    .map(|f| FlowSpec { from: HostId(f.0), to: HostId(f.1), bytes: Bytes(f.2) })
                    .collect(),
            );
            let elephant = flows[0].3;
            self.traffic.launch(&spec, |_, _| elephant);
        }
    }

    /// Sends coflows, each a list of (from host, to host, bytes, elephant), and gives their
    /// completion times.
    pub fn send(&self, coflows: &[Vec<(u32, u32, u64, bool)>]) -> Vec<Span> {
        let start = self.clock.now();
        self.launch(coflows);
        self.finished(coflows.len()).into_iter().map(|at| at.since(start)).collect()
    }

    /// When each of `n` coflows that were started had ended.
    pub fn finished(&self, n: usize) -> Vec<Time> {
        let mut done = BTreeMap::new();
        while done.len() < n {
            match self
                .events
                .recv_timeout(Duration::from_secs(60))
                .expect("traffic moves within a minute")
            {
                TrafficEvent::Finished { coflow, at } => drop(done.insert(coflow, at)),
                TrafficEvent::FlowFinished { coflow, flow, .. } => {
                    panic!("no report of {flow} of {coflow} was asked for")
                }
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
