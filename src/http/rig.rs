//! For tests: the real API over a real socket, and the real controller behind it. Its fabric is the
//! simulator's.
//!
//! The tests of `cli::schedule` have this file as a module, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::api::{Server, ServerOptions, serve};
use crate::circuits::external::{Advice, NoAnswer, Question};
use crate::coflows::priority::PriorityChange;
use crate::control::policy::{CircuitPolicy, SchedulerKind};
use crate::control::record::Record;
use crate::control::{Controller, Event, Rejected};
use crate::demand::DemandMatrix;
use crate::fabric::{Observation, PortCounters, ProbeRequest};
use crate::ids::{CoflowId, PlaneId, RackId};
use crate::runtime::drive::{Driver, DriverHost};
use crate::runtime::handle::{Handle, HandlePeer};
use crate::runtime::settings::RunPlan;
use crate::sim::{SimFabric, SimSettings};
use crate::topology::{Plane, StopMode, Topology};
use crate::units::{BitRate, Span, Time};

/// A server, and the controller behind it.
pub struct Rig {
    pub server: Server,
    pub handle: Handle,
    /// Ends the controller when true.
    pub stop: Arc<AtomicBool>,
}

pub fn network() -> Topology {
    let plane = Plane {
        id: PlaneId(0),
        rate: BitRate::mbit(1000),
        delta: Span::millis(10),
        stop: StopMode::NotAllStop,
        duplex: false,
    };
    Topology::uniform("net", 4, 2, BitRate::mbit(1000), BitRate::mbit(100), vec![plane])
}

pub fn rig_with(options: ServerOptions) -> Rig {
    rig_by(CircuitPolicy { scheduler: SchedulerKind::Manual, ..CircuitPolicy::default() }, options)
}

pub fn rig_by(policy: CircuitPolicy, options: ServerOptions) -> Rig {
    rig_on(network(), policy, options)
}

pub fn rig_on(topology: Topology, plan: impl Into<RunPlan>, options: ServerOptions) -> Rig {
    let (topology, plan) = (Arc::new(topology), Arc::new(plan.into()));
    let below = topology.clone();
    let controller = Controller::new(
        topology.clone(),
        plan.policy.clone(),
        Time(Span::millis(100).0),
        Span::ZERO,
    );
    let (handle, ends) = Handle::new(topology, plan, controller.snapshot(Time::ZERO, "test"), 0);
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    std::thread::spawn(move || drive(controller, below, &ends, &stopped));
    let server = serve(handle.clone(), options).unwrap();
    Rig { server, handle, stop }
}

/// The outside of the driver: a clock that stands between ticks, and racks that always want the
/// same.
struct Outside {
    now: Time,
    events: tokio::sync::broadcast::Sender<Arc<Record>>,
}

impl DriverHost<SimFabric> for Outside {
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
        let ports = vec![vec![
            PortCounters {
                crossed_packets: 2,
                crossed_bytes: 3000,
                late_packets: 1,
                misdelivered: 0
            };
            4
        ]];
        let (at, programmed) = (seen.at, std::mem::take(&mut seen.programmed));
        *seen = Observation {
            at,
            programmed,
            sent,
            over_ocs: zero.clone(),
            backlog: zero,
            held: None,
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

    fn prioritise(&mut self, _: &mut SimFabric, _: CoflowId, _: &PriorityChange) {}

    fn log(&mut self, record: Record) {
        let _ = self.events.send(Arc::new(record));
    }

    fn refused(&mut self, why: Rejected) -> Result<(), Rejected> {
        Err(why)
    }
}

/// Drives the controller: every tick that is sent is one cycle, 100 ms later.
fn drive(controller: Controller, topology: Arc<Topology>, ends: &HandlePeer, stop: &AtomicBool) {
    let outside = Outside { now: Time::ZERO, events: ends.events.clone() };
    let mut driver =
        Driver::new(controller, SimFabric::new(topology, SimSettings::default()), outside);
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
    #[allow(dead_code, reason = "the tests of `cli::schedule` have a clock of their own")]
    /// One cycle, done when this returns: answers come in order.
    pub fn tick(&self) {
        let done = self.handle.tell(Event::Tick);
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(done).unwrap();
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.handle.notify(Event::Tick);
    }
}
