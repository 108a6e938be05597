//! The emulated fabric on this machine's kernel: the only place that knows netlink, tc, BPF,
//! namespaces and errno.
//!
//! Two mechanisms carry circuits, chosen by what the kernel allows and named in every result.
//! [`timed`] has BPF programs that compare each circuit's times with their own clock. [`switched`]
//! has u32 and mirred filters, replaced by a thread that wakes for each change. Both live in the
//! same namespaces, behind the same [`KernelFabric`].
//!
//! There are five folders. [`netlink`] speaks to the kernel, [`optical`] has both mechanisms, and
//! [`graph`] the packet networks of several switches. [`mod@guard`] compares the network with what
//! was built, and [`machine`] knows what this machine and this process may do. Beside them stand
//! the BPF programs ([`bpf`]), the senders and receivers ([`traffic`]), and what builds, names,
//! owns and removes a network.
#![deny(unsafe_code)]

use heliostat_base::{ids, paths, topology, units};
use heliostat_circuits as circuits;
use heliostat_circuits::{coflows, demand};
use heliostat_seam::{fabric, plan};
#[cfg(test)]
use heliostat_sim as sim;

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

pub mod attached;
pub mod bpf;
pub mod capture;
pub mod detach;
pub mod graph;
pub mod guard;
pub mod layout;
pub mod machine;
pub mod names;
pub mod netlink;
pub mod netns;
pub mod network;
pub mod node;
pub mod optical;
pub mod ownership;
pub mod pulse;
pub mod queues;
pub mod traffic;

use graph::uplinks;
pub use graph::{egress, labels, packet, priorities, route_lists, steering};
use guard::believed;
pub use guard::{build_log, drift, settings, watched};
pub use machine::{features, missing, programs, rights, scale, sys};
pub use netlink::{diag, inventory, msg, nl, tc, wire};
pub use optical::{admission, backlog, prober, queue_waker, slots, switched, switcher, timed};

#[cfg(test)]
#[path = "../testing.rs"]
mod testing;

use network::EmulatedNetwork;
use steering::Steering;
use switcher::{CircuitSwitcher, LateChange, Lateness};

use crate::coflows::elephants::Admit;
use crate::coflows::network::Service;
use crate::demand::{DemandMatrix, HostFlow};
use crate::fabric::{
    Fabric, FabricError, Observation, OpResult, PortCounters, PortQueueCounters, SwitchCounters,
    Uplink,
};
use crate::ids::RackId;
use crate::plan::Op;
use crate::plan::paths::{Lists, PathError, Steer, SteerResult};
use crate::topology::Topology;
use crate::units::{Span, Time};

/// The run's clock: CLOCK_MONOTONIC, counted from the run's epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Before zero if the clock goes on from a run before the machine was started.
    epoch: i64,
}

impl Clock {
    /// A clock that reads zero now.
    pub fn start() -> Self {
        Self::from(Time::ZERO)
    }

    /// A clock that reads `time` now.
    pub fn from(time: Time) -> Self {
        Self { epoch: sys::monotonic() as i64 - time.0 as i64 }
    }

    /// The time since the epoch.
    pub fn now(self) -> Time {
        Time((sys::monotonic() as i64 - self.epoch) as u64)
    }

    /// The kernel's clock at `t`; an open end stays open.
    pub fn to_kernel(self, t: Time) -> u64 {
        if t == Time::MAX { u64::MAX } else { t.0.saturating_add_signed(self.epoch) }
    }

    /// Sleeps until `t`.
    pub fn sleep_until(self, t: Time) {
        sys::sleep_until(self.to_kernel(t));
    }
}

/// How circuits are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mechanism {
    /// BPF programs with times.
    Timed,
    /// Filters replaced by netlink.
    Netlink,
}

impl Mechanism {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Timed => "timed",
            Self::Netlink => "netlink",
        }
    }

    /// Whether this process may use it.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn probe(self) -> io::Result<()> {
        match self {
            Self::Timed => timed::probe(),
            Self::Netlink => switched::probe(),
        }
    }

    /// The best that this process may use.
    pub fn best() -> Self {
        if Self::Timed.probe().is_ok() { Self::Timed } else { Self::Netlink }
    }
}

/// Time before the end of a circuit at which the gate of its queue is shut, where packets wait for
/// circuits. A busy machine shuts it late, and takes some time to move packets between namespaces.
const GATE_GUARD: Span = Span::millis(1);

/// How long before a circuit ends its admission ends, on the slowest plane.
pub fn guard(topology: &Topology, admit: Admit) -> Span {
    if admit.waits() {
        return GATE_GUARD;
    }
    topology.planes.iter().map(|p| queues::guard(topology, p.rate)).max().unwrap_or(Span::ZERO)
}

/// What the queues of a fabric are made for; it cannot be changed afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Serving {
    /// Which packets a ToR admits to a circuit.
    pub admit: Admit,
    /// The first TCP port of senders that mark no packet ([`bpf::programs::TorProgram::port`]).
    pub port: Option<u16>,
    /// How the ports of hosts, ToRs and packet switches serve what waits. Circuits' queues are
    /// served in the order of arrival.
    pub service: Service,
}

impl From<Admit> for Serving {
    /// Without priorities.
    fn from(admit: Admit) -> Self {
        Self { admit, port: None, service: Service::Fifo }
    }
}

/// What threads do.
const READS: &str = "reads what waits in the hosts' sockets";
const COMPARES: &str = "compares the network with what was built";

/// What an operation needs beyond the guard: the time to write it.
const MARGIN: Span = Span::millis(1);

#[allow(clippy::large_enum_variant, reason = "there is one of it")]
enum CircuitMechanism {
    Timed(timed::Timed),
    Switched(switched::Switched),
}

impl CircuitMechanism {
    /// The thread that changes what the kernel cannot time by itself.
    fn switcher(&self) -> Option<&CircuitSwitcher> {
        match self {
            Self::Timed(t) => t.gates(),
            Self::Switched(s) => Some(s.switcher()),
        }
    }
}

/// What became of packets on their way to circuits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// Packets that ToRs put into the queues of circuits.
    pub admitted: u64,
    /// Came out at the right rack.
    pub crossed: u64,
    /// Came to the OCS when the circuit was gone, and went back.
    pub sent_back: u64,
    /// Did not fit into their queue: TCP sends them again.
    pub dropped: u64,
}

/// What became of packets in a graph of switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Labelled {
    /// Packets that first switches sent off on a path.
    pub admitted: u64,
    /// Came to the last switch of their path.
    pub delivered: u64,
    /// Had no path, or came to a switch that is not on theirs: to addresses that no host has.
    pub strays: u64,
    /// Did not fit into a port's queue, at the first switch or later: TCP sends them again.
    pub dropped: u64,
}

/// The emulated fabric.
pub struct KernelFabric {
    /// Comes first: it must not write again what is taken down at the end.
    drift: drift::DriftMonitor,
    /// Comes before the network: the thread that changes circuits must have stopped when attached
    /// nodes are left.
    circuits: CircuitMechanism,
    /// Where the packet network is a graph.
    steering: Option<Steering>,
    net: EmulatedNetwork,
    service: Service,
    by_port: bool,
    guard: Span,
    backlog: backlog::Backlog,
    uplinks: uplinks::Uplinks,
    /// Of `timed`, whose counters are in arrays that other programs can write.
    believed: believed::Believed,
}

impl KernelFabric {
    /// Sets the queues and circuits of a network up.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn install(
        mut net: EmulatedNetwork,
        mechanism: Mechanism,
        serving: impl Into<Serving>,
        clock: Clock,
    ) -> io::Result<Self> {
        let serving = serving.into();
        let Serving { admit, port, service } = serving;
        let topology = net.topology.clone();
        let guard = guard(&topology, admit);
        if admit.waits() && topology.planes.len() > 1 {
            let why = "`elephants.admit: wait` needs a topology with one OCS plane: packets wait in the queue of a plane, and of several they would not know which";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        let gso = queues::segment(&topology);
        for (host, h) in net.hosts.iter_mut().zip(&topology.hosts) {
            let mut v = queues::host_port(host.eth, h.nic, &topology, service);
            v.push((msg::gso_max(host.eth, gso), 0));
            host.node.send(v)?;
        }
        for (tor, rack) in net.tors.iter_mut().zip(&topology.racks) {
            let hosts = topology.hosts_of(rack.id);
            tor.node.send(
                tor.hosts
                    .iter()
                    .zip(hosts)
                    .flat_map(|(&l, h)| queues::host_port(l, h.nic, &topology, service))
                    .collect(),
            )?;
        }
        packet::shape(&topology, &mut net.eps, service)?;
        let circuits = match mechanism {
            Mechanism::Timed => {
                CircuitMechanism::Timed(timed::Timed::install(&mut net, serving, clock)?)
            }
            Mechanism::Netlink => {
                CircuitMechanism::Switched(switched::Switched::install(&mut net, serving, clock)?)
            }
        };
        let steering = Steering::install(&mut net, (mechanism, service), clock)?;
        let backlog = backlog::Backlog::start(&net)?;
        let uplinks = uplinks::Uplinks::open(&net)?;
        let handle = circuits.switcher().map(CircuitSwitcher::handle);
        let drift = drift::DriftMonitor::start(&mut net, handle)?;
        let believed = believed::Believed::new(net.topology.clone());
        let by_port = port.is_some();
        Ok(Self {
            drift,
            net,
            circuits,
            steering,
            service,
            by_port,
            guard,
            backlog,
            uplinks,
            believed,
        })
    }

    /// The network.
    pub fn network(&self) -> &EmulatedNetwork {
        &self.net
    }

    /// The mechanism in use.
    pub fn kind(&self) -> Mechanism {
        match self.circuits {
            CircuitMechanism::Timed(_) => Mechanism::Timed,
            CircuitMechanism::Switched(_) => Mechanism::Netlink,
        }
    }

    /// Descriptors of the hosts' namespaces, by host, to open sockets there.
    ///
    /// # Errors
    /// When descriptors run out.
    pub fn host_namespaces(&self) -> io::Result<Arc<Vec<OwnedFd>>> {
        Ok(Arc::new(
            self.net.hosts.iter().map(|h| h.node.ns.try_clone()).collect::<io::Result<_>>()?,
        ))
    }

    /// How late circuits were switched. With `timed` circuits are never late: there it is how late
    /// the gates of packets that wait for them were, and `None` where no packets wait.
    pub fn lateness(&self) -> Option<Lateness> {
        self.circuits.switcher().map(CircuitSwitcher::lateness)
    }

    /// The changes of which [`KernelFabric::lateness`] tells, the oldest first; none where that is
    /// `None`.
    pub fn late(&self) -> Vec<LateChange> {
        self.circuits.switcher().map(CircuitSwitcher::late).unwrap_or_default()
    }

    /// What became of every packet that ToRs admitted to circuits, as the kernel handles them;
    /// `None` where they are not counted one by one (`netlink`). When nothing is on its way, the
    /// first is the sum of the others.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn admitted(&mut self) -> io::Result<Option<Admitted>> {
        let CircuitMechanism::Timed(t) = &self.circuits else { return Ok(None) };
        let mut dropped = 0;
        for tor in &mut self.net.tors {
            for &link in &tor.ocs {
                switched::class_bytes(&mut tor.node.netlink, link, t.racks(), |_, c| {
                    dropped += u64::from(c.drops)
                })?;
            }
        }
        let [admitted, crossed, sent_back] = t.packets();
        Ok(Some(Admitted { admitted, crossed, sent_back, dropped }))
    }

    /// What became of every packet that entered the graph of switches, as the kernel handles them;
    /// `None` where they are not counted one by one (`netlink`) and where the packet network is one
    /// switch.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn labelled(&mut self) -> io::Result<Option<Labelled>> {
        let Some(Steering::Labels(l)) = &self.steering else { return Ok(None) };
        let [admitted, delivered] = l.packets();
        let strays = l.strays().iter().sum();
        let mut dropped = 0;
        for s in &mut self.net.eps {
            dropped += tc::link_counters(&mut s.node.netlink)?
                .values()
                .map(|c| u64::from(c.drops))
                .sum::<u64>();
        }
        Ok(Some(Labelled { admitted, delivered, strays, dropped }))
    }

    /// The pulses of its threads, and what each of them does.
    pub fn pulses(&self) -> Vec<(pulse::Pulse, &'static str)> {
        vec![(self.backlog.pulse(), READS), (self.drift.pulse(), COMPARES)]
    }

    /// When a probe's frames may be sent.
    pub fn may_probe(&self) -> prober::MaySend {
        match &self.circuits {
            CircuitMechanism::Timed(_) => Arc::new(|_| true),
            CircuitMechanism::Switched(s) => s.switcher().light(),
        }
    }

    fn counters(&mut self) -> io::Result<(DemandMatrix, DemandMatrix, Vec<Vec<PortCounters>>)> {
        match &mut self.circuits {
            CircuitMechanism::Timed(t) => {
                let (sent, crossed) = t.counters();
                Ok((sent, crossed, t.ports()))
            }
            CircuitMechanism::Switched(s) => s.counters(&mut self.net),
        }
    }
}

impl Fabric for KernelFabric {
    fn observe(&mut self, now: Time) -> Result<Observation, FabricError> {
        let refused = |what: &str, e: io::Error| FabricError::Refused {
            what: what.into(),
            why: e.to_string(),
        };
        let backlog = self.backlog.newest().map_err(|e| refused("read the hosts' sockets", e))?;
        let (mut sent, mut over_ocs, ports) =
            self.counters().map_err(|e| refused("read the counters", e))?;
        let (mut damage, mut held) = (self.drift.damage(), None);
        let programmed = match &mut self.circuits {
            CircuitMechanism::Timed(t) => {
                let written;
                (sent, over_ocs, written) = self.believed.take(sent, over_ocs, now);
                damage.extend(written.into_iter().chain(t.keep()));
                held = t.held().cloned();
                t.programmed(now)
            }
            CircuitMechanism::Switched(s) => s.programmed(now),
        };
        damage.extend(self.steering.iter_mut().flat_map(Steering::keep));
        Ok(Observation {
            at: now,
            programmed,
            sent,
            over_ocs,
            backlog,
            held,
            flows: None,
            elephants: None,
            ports,
            damage,
        })
    }

    fn flows(&mut self) -> Result<Vec<HostFlow>, FabricError> {
        let refused = |e: io::Error| FabricError::Refused {
            what: "read the hosts' sockets".into(),
            why: e.to_string(),
        };
        self.backlog.flows().map_err(refused)
    }

    fn apply(&mut self, ops: &[Op], _now: Time) -> Vec<OpResult> {
        match &mut self.circuits {
            CircuitMechanism::Timed(t) => t.apply_all(ops),
            CircuitMechanism::Switched(s) => s.apply_all(ops),
        }
    }

    fn admits_by_port(&self) -> bool {
        self.by_port
    }

    fn admit_by_port(&mut self, pairs: &BTreeSet<(RackId, RackId)>) {
        if let CircuitMechanism::Timed(t) = &self.circuits {
            t.admit_by_port(pairs);
        }
    }

    fn steer(&mut self, ops: &[Steer], now: Time) -> Vec<SteerResult> {
        let net = &mut self.net;
        let mut one = |op: &Steer| match &mut self.steering {
            Some(s) => s.steer(net, op, now),
            None => Err(PathError::NotHere("its packet network is one switch".into())),
        };
        ops.iter().map(|op| SteerResult { op: op.clone(), outcome: one(op) }).collect()
    }

    fn steered(&self) -> Lists {
        self.steering.as_ref().map(Steering::steered).unwrap_or_default()
    }

    fn switches(&mut self) -> Result<Vec<SwitchCounters>, FabricError> {
        let strays = self.steering.as_ref().map(Steering::strays).unwrap_or_default();
        let refused = |e: io::Error| FabricError::Refused {
            what: "read the switches' counters".into(),
            why: e.to_string(),
        };
        packet::counters(&self.net.topology, &mut self.net.eps, &strays).map_err(refused)
    }

    fn queues(&mut self) -> Result<Vec<PortQueueCounters>, FabricError> {
        if self.service == Service::Fifo {
            return Ok(vec![]);
        }
        let refused = |e: io::Error| FabricError::Refused {
            what: "read the queues' counters".into(),
            why: e.to_string(),
        };
        priorities::counters(&mut self.net).map_err(refused)
    }

    fn uplinks(&mut self) -> Option<&[Uplink]> {
        Some(self.uplinks.newest())
    }

    fn notice(&self) -> Span {
        self.guard + MARGIN
    }

    fn mechanism(&self) -> &'static str {
        self.kind().name()
    }

    fn lost(&self) -> Option<String> {
        let threads = [
            (self.circuits.switcher().is_none_or(CircuitSwitcher::is_alive), "switches circuits"),
            (self.backlog.is_alive(), READS),
            (self.drift.is_alive(), COMPARES),
        ];
        threads.iter().find(|t| !t.0).map(|(_, what)| format!("the thread that {what} has died"))
    }
}
