//! The valid network: racks, hosts, task slots, the electrical packet switch (EPS) and the optical
//! planes (OCS).
//!
//! A [`Topology`] is made by the crate `run` from YAML, or in code by [`Topology::uniform`]; it
//! never changes afterwards, and everything else takes it by reference.

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::ids::{HostId, PlaneId, RackId};
use crate::units::{BitRate, Span};

pub mod addresses;
pub mod graph;
pub mod links;
mod shapes;
pub mod types;

use graph::Graph;
use links::LinkSpecs;

/// A hybrid network of racks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Topology {
    /// The name given in the file; it also names the namespaces of an emulation.
    pub name: String,
    /// The racks, in the order of their ids.
    pub racks: Vec<Rack>,
    /// All hosts, rack by rack, in the order of their ids.
    pub hosts: Vec<Host>,
    /// The electrical side.
    pub eps: Eps,
    /// The optical planes; empty for a purely electrical network.
    pub planes: Vec<Plane>,
    /// What links do beside their rates.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "LinkSpecs::is_plain"))]
    pub links: Box<LinkSpecs>,
    /// What a rate counts.
    pub framing: Framing,
    /// Simulations only: what a host sends to itself crosses its interface, out and in, as in
    /// simulators whose hosts are ports. Else it takes no time.
    pub loopback: bool,
}

/// What the rates of a topology count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Framing {
    /// What is on the wire: payload passes at [`PAYLOAD`] of it, as with full TCP segments.
    #[default]
    Tcp,
    /// Payload itself, as in simulators that know no headers.
    None,
}

/// Payload share of the wire: 1448 bytes of TCP payload (timestamps on) in a frame of 1514 bytes as
/// `tc` counts it.
pub const PAYLOAD: (u64, u64) = (1448, 1514);

/// A rack and its ToR.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Rack {
    /// Its number.
    pub id: RackId,
    /// First host and number of hosts: the hosts of a rack are consecutive.
    pub first_host: HostId,
    /// Number of hosts.
    pub hosts: u32,
    /// The ToR's port to the EPS, each direction.
    pub uplink: BitRate,
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Host {
    /// Its number over the whole network.
    pub id: HostId,
    /// Its rack.
    pub rack: RackId,
    /// Its number within the rack.
    pub index: u32,
    /// Tasks that it runs at once.
    pub slots: u32,
    /// Its network interface, each direction.
    pub nic: BitRate,
}

/// The electrical packet network between the ToRs: one non-blocking switch behind the racks'
/// uplinks, or a tree or any graph of switches. Pods, limits of the core and background traffic
/// exist in simulations only.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Eps {
    /// Sum of a rack's NICs divided by its uplink, in hundredths, as configured or derived (500 is
    /// 5:1).
    pub oversubscription_percent: u64,
    /// How much of every uplink, and of every link behind it, other traffic takes all the time.
    pub background_percent: u64,
    /// What lies behind the uplinks.
    pub core: Core,
    /// The queues of the ports between each rack and the EPS.
    #[cfg_attr(feature = "serde", serde(default))]
    pub queues: PortQueues,
    /// What the ports of the EPS send, in an emulation.
    #[cfg_attr(feature = "serde", serde(default))]
    pub segments: Segments,
}

/// What the ports of an emulated EPS make of the segments of up to 64 kB that hosts hand down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Segments {
    /// They send them whole, which costs processors least.
    #[default]
    Whole,
    /// They cut them into frames, as all ports of real networks see them: a mouse waits for frames
    /// of others and not for segments.
    Frames,
}

/// How the ports between a rack and the EPS share their rate: the ToR's port to the EPS, and the
/// EPS's port to the rack. In a simulation under `network: max-min` only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum PortQueues {
    /// One queue: all flows have the same share. (In an emulation a ToR's port has a queue for each
    /// destination rack all the same, where circuits may throw their packets back.)
    #[default]
    One,
    /// A queue for each other rack: at a ToR's port for each destination rack, at the EPS's port
    /// for each source rack. Racks have the same share, and flows between the same racks share
    /// that.
    Racks,
}

/// The switches behind the racks' uplinks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Core {
    /// One switch, and what it carries in all; `None`: all that comes.
    Flat(Option<BitRate>),
    /// Racks in groups, each behind a switch of its own, and one switch above, with what that
    /// carries in all.
    Pods(Pods, Option<BitRate>),
    /// Any network of switches.
    Graph(Box<Graph>),
}

/// A tier of switches between the ToRs and the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Pods {
    /// Racks a pod; the last pod may have fewer. Traffic within a pod stays below its switch.
    pub racks: u32,
    /// Rate of each pod's link to the core, each direction.
    pub uplink: BitRate,
}

impl Eps {
    /// One non-blocking switch without other traffic.
    pub fn flat(oversubscription_percent: u64) -> Self {
        Self {
            oversubscription_percent,
            background_percent: 0,
            core: Core::Flat(None),
            queues: PortQueues::One,
            segments: Segments::Whole,
        }
    }

    /// The tier of pods, if there is one.
    pub fn pods(&self) -> Option<Pods> {
        if let Core::Pods(pods, _) = &self.core { Some(*pods) } else { None }
    }

    /// What the core switch carries in all; `None`: it carries all that comes, or there is no core
    /// switch.
    pub fn core_rate(&self) -> Option<BitRate> {
        match &self.core {
            Core::Flat(rate) | Core::Pods(_, rate) => *rate,
            Core::Graph(_) => None,
        }
    }

    /// The network of switches, if it is one of any form.
    pub fn graph(&self) -> Option<&Graph> {
        if let Core::Graph(graph) = &self.core { Some(graph) } else { None }
    }
}

/// One optical circuit switch: every rack has one input and one output port on it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Plane {
    /// Its number.
    pub id: PlaneId,
    /// Rate of a circuit.
    pub rate: BitRate,
    /// Reconfiguration delay (delta): how long a port that changes carries nothing.
    pub delta: Span,
    /// Which ports go dark when some change.
    pub stop: StopMode,
    /// Whether a circuit i -> j always comes with j -> i, as in c-Through.
    pub duplex: bool,
}

impl Plane {
    /// Whether a port's change leaves all others alone: the plane is neither duplex nor all-stop.
    pub fn ports_turn_alone(&self) -> bool {
        !self.duplex && self.stop == StopMode::NotAllStop
    }
}

/// Which ports of an OCS lose light in a reconfiguration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum StopMode {
    /// Only ports whose circuit changes.
    #[default]
    NotAllStop,
    /// All ports of the plane.
    AllStop,
}

impl Topology {
    /// `racks` equal racks of `hosts` hosts with `nic`, an EPS uplink of `uplink` a rack, and the
    /// given planes.
    pub fn uniform(
        name: &str,
        racks: usize,
        hosts: usize,
        nic: BitRate,
        uplink: BitRate,
        planes: Vec<Plane>,
    ) -> Self {
        let mut t = Self {
            name: name.into(),
            racks: Vec::with_capacity(racks),
            hosts: Vec::with_capacity(racks * hosts),
            eps: Eps::flat(100),
            planes,
            links: Box::default(),
            framing: Framing::Tcp,
            loopback: false,
        };
        for _ in 0..racks {
            t.push_rack(hosts, 1, nic, uplink);
        }
        t.eps.oversubscription_percent = t.oversubscription_percent();
        t
    }

    /// The rate at which payload can pass a link of `rate`.
    pub fn payload(&self, rate: BitRate) -> BitRate {
        match self.framing {
            Framing::None => rate,
            Framing::Tcp => {
                BitRate((u128::from(rate.0) * u128::from(PAYLOAD.0) / u128::from(PAYLOAD.1)) as u64)
            }
        }
    }

    /// Appends a rack; used while a topology is being made.
    pub fn push_rack(&mut self, hosts: usize, slots: u32, nic: BitRate, uplink: BitRate) {
        let id = RackId::from(self.racks.len());
        let first_host = HostId::from(self.hosts.len());
        for k in 0..hosts {
            let host = HostId::from(self.hosts.len());
            self.hosts.push(Host { id: host, rack: id, index: k as u32, slots, nic });
        }
        self.racks.push(Rack { id, first_host, hosts: hosts as u32, uplink });
    }

    /// The worst rack's ratio of host capacity to uplink, in hundredths.
    pub fn oversubscription_percent(&self) -> u64 {
        self.racks
            .iter()
            .map(|r| self.rack_nic(r.id).0.saturating_mul(100) / r.uplink.0.max(1))
            .max()
            .unwrap_or(100)
    }

    /// Number of racks, R.
    pub fn rack_count(&self) -> usize {
        self.racks.len()
    }

    /// The hosts of a rack.
    pub fn hosts_of(&self, rack: RackId) -> &[Host] {
        let r = &self.racks[rack.index()];
        &self.hosts[r.first_host.index()..r.first_host.index() + r.hosts as usize]
    }

    /// The rack of a host.
    pub fn rack_of(&self, host: HostId) -> RackId {
        self.hosts[host.index()].rack
    }

    /// The sum of a rack's NICs.
    pub fn rack_nic(&self, rack: RackId) -> BitRate {
        BitRate(self.hosts_of(rack).iter().map(|h| h.nic.0).sum())
    }

    /// The sum of all planes' rates: the most that circuits give one rack.
    pub fn ocs_rate(&self) -> BitRate {
        BitRate(self.planes.iter().map(|p| p.rate.0).sum())
    }

    /// The name of a host, such as `h3-1`: host 1 of rack 3, both from zero.
    pub fn host_name(&self, host: HostId) -> String {
        let h = &self.hosts[host.index()];
        format!("h{}-{}", h.rack.0, h.index)
    }

    /// The host of that name.
    pub fn host_by_name(&self, name: &str) -> Option<HostId> {
        let (r, k) = name.strip_prefix('h')?.split_once('-')?;
        let (r, k): (usize, usize) = (r.parse().ok()?, k.parse().ok()?);
        let rack = self.racks.get(r)?;
        (k < rack.hosts as usize).then(|| HostId::from(rack.first_host.index() + k))
    }
}
