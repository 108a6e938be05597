//! The network, its ports, circuits and traffic.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::graph::Graph;
use super::links::Links;
use super::named::{PlaneRef, RackRef};
use crate::control::record;
use crate::demand::DemandMatrix;
use crate::fabric;
use crate::ids::{PlaneId, RackId};
use crate::topology;
use crate::units::{BitRate, Span};

/// The network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Topology {
    /// Its name.
    pub name: String,
    /// The racks, by id.
    pub racks: Vec<Rack>,
    /// All hosts, rack by rack.
    pub hosts: Vec<Host>,
    /// The worst rack's sum of NICs divided by its uplink, in hundredths.
    pub oversubscription_percent: u64,
    /// The optical planes, by id.
    pub planes: Vec<Plane>,
    /// Whether rates count payload only; else they count what is on the wire.
    #[serde(default)]
    pub payload_only: bool,
    /// The packet switches behind the racks' uplinks; left out where they are one switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<Graph>,
    /// What links do beside their rates; left out where they do nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<Links>,
}

/// A rack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Rack {
    /// Its number.
    pub id: u32,
    /// Number of hosts.
    pub hosts: u32,
    /// Rate of its port to the EPS.
    pub uplink_bps: u64,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Host {
    /// Its number over the whole network.
    pub id: u32,
    /// Its name, such as `h3-1`.
    pub name: String,
    /// Its rack.
    pub rack: u32,
    /// Tasks that it runs at once.
    pub slots: u32,
    /// Rate of its network interface.
    pub nic_bps: u64,
}

/// An optical plane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Plane {
    /// Its number.
    pub id: u32,
    /// Rate of a circuit.
    pub rate_bps: u64,
    /// Reconfiguration delay.
    pub delta_ns: u64,
    /// Whether all its ports go dark when some change.
    pub all_stop: bool,
    /// Whether circuits come in pairs.
    pub duplex: bool,
}

impl From<&topology::Topology> for Topology {
    fn from(t: &topology::Topology) -> Self {
        let host = |h: &topology::Host| Host {
            id: h.id.0,
            name: t.host_name(h.id),
            rack: h.rack.0,
            slots: h.slots,
            nic_bps: h.nic.0,
        };
        let plane = |p: &topology::Plane| Plane {
            id: p.id.0,
            rate_bps: p.rate.0,
            delta_ns: p.delta.0,
            all_stop: p.stop == topology::StopMode::AllStop,
            duplex: p.duplex,
        };
        Self {
            name: t.name.clone(),
            racks: t
                .racks
                .iter()
                .map(|r| Rack { id: r.id.0, hosts: r.hosts, uplink_bps: r.uplink.0 })
                .collect(),
            hosts: t.hosts.iter().map(host).collect(),
            oversubscription_percent: t.eps.oversubscription_percent,
            planes: t.planes.iter().map(plane).collect(),
            payload_only: t.framing == topology::Framing::None,
            graph: t.eps.graph().map(Into::into),
            links: Links::of(&t.links),
        }
    }
}

/// Back from the wire: for clients that plan on the network. Pods, limits of the core and
/// background traffic are in no emulation, and are left out; so is what a simulation takes the
/// queues of ports for.
impl TryFrom<&Topology> for topology::Topology {
    type Error = String;

    fn try_from(w: &Topology) -> Result<Self, String> {
        let plane = |(k, p): (usize, &Plane)| {
            let stop = if p.all_stop {
                topology::StopMode::AllStop
            } else {
                topology::StopMode::NotAllStop
            };
            let plane = topology::Plane {
                id: PlaneId(p.id),
                rate: BitRate(p.rate_bps),
                delta: Span(p.delta_ns),
                stop,
                duplex: p.duplex,
            };
            if p.id as usize == k {
                Ok(plane)
            } else {
                Err(format!("plane {} is in place {k}", p.id))
            }
        };
        let planes = w.planes.iter().enumerate().map(plane).collect::<Result<_, _>>()?;
        let mut t = Self { planes, ..Self::uniform(&w.name, 0, 0, BitRate(0), BitRate(0), vec![]) };
        t.framing = if w.payload_only { topology::Framing::None } else { topology::Framing::Tcp };
        if w.racks.iter().map(|r| u64::from(r.hosts)).sum::<u64>() != w.hosts.len() as u64 {
            return Err("its racks and its list of hosts differ".into());
        }
        for r in &w.racks {
            t.push_rack(r.hosts as usize, 0, BitRate(0), BitRate(r.uplink_bps));
        }
        let places = t.hosts.iter().map(|h| (h.id.0, h.rack.0));
        let ids = w.racks.iter().enumerate().all(|(k, r)| r.id as usize == k);
        if !ids || !places.eq(w.hosts.iter().map(|h| (h.id, h.rack))) {
            return Err("its hosts are not listed rack by rack".into());
        }
        for (h, seen) in t.hosts.iter_mut().zip(&w.hosts) {
            (h.slots, h.nic) = (seen.slots, BitRate(seen.nic_bps));
        }
        t.eps.oversubscription_percent = w.oversubscription_percent;
        if let Some(graph) = &w.graph {
            t.eps.core = topology::Core::Graph(Box::new(graph.read(w.racks.len())?));
        }
        t.links = Box::new(w.links.as_ref().map(Links::read).unwrap_or_default());
        Ok(t)
    }
}

/// All ports of the OCS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ports {
    /// Revision of the snapshot that they come from; grows with every change.
    pub revision: u64,
    /// Time of the snapshot.
    pub now_ns: u64,
    /// By plane, then rack.
    pub ports: Vec<Port>,
    /// When the counters in `uplinks` were read.
    pub uplinks_at_ns: u64,
    /// What the racks' links to the EPS carried, by rack.
    pub uplinks: Vec<Uplink>,
}

/// A rack's link to the EPS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Uplink {
    /// Payload from the rack since the start.
    pub up_bytes: u64,
    /// Payload to the rack since the start.
    pub down_bytes: u64,
}

/// A port of the OCS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Port {
    /// The plane.
    pub plane: u32,
    /// The port's rack.
    pub rack: u32,
    /// Where its input goes, if it has light.
    pub sends_to: Option<u32>,
    /// Where its output comes from, if it has light.
    pub receives_from: Option<u32>,
    /// Why it is not used any more, if a probe found it faulty.
    pub faulty: Option<String>,
    /// Packets from this input that crossed to the right rack.
    pub crossed_packets: u64,
    /// Their bytes.
    pub crossed_bytes: u64,
    /// Packets that came to this input after its circuit had ended, and went back to their ToR.
    pub late_packets: u64,
    /// Packets that came out at this rack and were for another one; its ToR dropped them.
    pub misdelivered_packets: u64,
}

impl From<&record::PortView> for Port {
    fn from(p: &record::PortView) -> Self {
        Self {
            plane: p.plane.0,
            rack: p.rack.0,
            sends_to: p.sends_to.map(|r| r.0),
            receives_from: p.receives_from.map(|r| r.0),
            faulty: p.faulty.clone(),
            crossed_packets: p.counters.crossed_packets,
            crossed_bytes: p.counters.crossed_bytes,
            late_packets: p.counters.late_packets,
            misdelivered_packets: p.counters.misdelivered,
        }
    }
}

/// All circuits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Circuits {
    /// Revision of the snapshot that they come from; grows with every change.
    pub revision: u64,
    /// Time of the snapshot.
    pub now_ns: u64,
    /// The circuits: with light, being set up, or promised.
    pub circuits: Vec<Circuit>,
}

/// A circuit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Circuit {
    /// The plane.
    pub plane: u32,
    /// Sending rack.
    pub input: u32,
    /// Receiving rack.
    pub output: u32,
    /// Whether it carries data now.
    pub state: CircuitState,
    /// Whether it was set by hand.
    pub manual: bool,
    /// The mirrors begin to move.
    pub setup_at_ns: u64,
    /// Light.
    pub up_from_ns: u64,
    /// Its end; `null` for an open one.
    pub until_ns: Option<u64>,
}

/// Whether a circuit carries data now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CircuitState {
    /// Its set-up has not begun.
    Promised,
    /// Dark, mirrors moving.
    SettingUp,
    /// Light.
    Up,
}

impl From<&record::CircuitView> for Circuit {
    fn from(c: &record::CircuitView) -> Self {
        Self {
            plane: c.plane.0,
            input: c.input.0,
            output: c.output.0,
            state: match c.state {
                record::CircuitState::Promised => CircuitState::Promised,
                record::CircuitState::SettingUp => CircuitState::SettingUp,
                record::CircuitState::Up => CircuitState::Up,
            },
            manual: c.manual,
            setup_at_ns: c.setup_at.0,
            up_from_ns: c.up_from.0,
            until_ns: c.until.map(|t| t.0),
        }
    }
}

/// Where a circuit that is set by hand shall go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CircuitBody {
    /// Receiving rack.
    pub output: RackRef,
}

/// All circuits that shall be set by hand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigurationBody {
    /// The circuits, in any order; none: all are given back to the policy.
    pub circuits: Vec<ManualCircuit>,
}

/// A circuit that shall be set by hand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ManualCircuit {
    /// OCS plane.
    pub plane: PlaneRef,
    /// Sending rack.
    pub input: RackRef,
    /// Receiving rack.
    pub output: RackRef,
}

/// Traffic between racks; each matrix has a row for every sending and a column for every receiving
/// rack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Demand {
    /// Revision of the snapshot that it comes from; grows with every change.
    pub revision: u64,
    /// Time of the snapshot.
    pub now_ns: u64,
    /// What the last decision saw.
    pub demand_bytes: Vec<Vec<u64>>,
    /// Sent since the start.
    pub sent_bytes: Vec<Vec<u64>>,
    /// Bytes among these that went over circuits.
    pub over_ocs_bytes: Vec<Vec<u64>>,
    /// Waiting at the senders now.
    pub backlog_bytes: Vec<Vec<u64>>,
}

fn rows(m: &DemandMatrix) -> Vec<Vec<u64>> {
    (0..m.racks()).map(|i| m.row(RackId::from(i)).to_vec()).collect()
}

impl From<&record::Snapshot> for Demand {
    fn from(s: &record::Snapshot) -> Self {
        Self {
            revision: s.revision,
            now_ns: s.now.0,
            demand_bytes: rows(&s.demand),
            sent_bytes: rows(&s.sent),
            over_ocs_bytes: rows(&s.over_ocs),
            backlog_bytes: rows(&s.backlog),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_comes_back_from_the_wire_as_it_was() {
        for name in ["hybrid-4x2", "hybrid-8x2", "hybrid-16x1", "geni-10", "fat-tree-4", "vl2-64"] {
            let file = format!("topologies/{name}.yaml");
            let mut t =
                crate::config::read_topology(&crate::testing::shipped(&file), &file).unwrap();
            (t.eps.queues, t.eps.segments) = (topology::PortQueues::One, topology::Segments::Whole);
            let wire = Topology::from(&t);
            let text = serde_json::to_string(&wire).unwrap();
            let back: topology::Topology =
                (&serde_json::from_str::<Topology>(&text).unwrap()).try_into().unwrap();
            assert_eq!(wire.graph.is_some(), t.eps.graph().is_some(), "{name}");
            assert_eq!(back, t, "{name}");
            let mut odd = wire.clone();
            odd.hosts.swap(0, 1);
            assert!(topology::Topology::try_from(&odd).is_err());
            odd = wire;
            odd.racks[0].hosts += 1;
            assert!(topology::Topology::try_from(&odd).is_err());
        }
    }

    #[test]
    fn a_graph_that_makes_no_sense_is_refused() {
        let text = crate::testing::shipped("topologies/fat-tree-4.yaml");
        let wire = Topology::from(&crate::config::read_topology(&text, "fat-tree-4").unwrap());
        type Spoil = fn(&mut Graph);
        let spoils: [(Spoil, &str); 4] = [
            (|g| g.links[3].to = 20, "no switch 20"),
            (|g| g.racks[0] = 99, "no switch 99"),
            (|g| g.racks.truncate(7), "join 7 racks"),
            (|g| g.switches.resize(5000, g.switches[0].clone()), "5000 switches"),
        ];
        for (spoil, says) in spoils {
            let mut odd = wire.clone();
            spoil(odd.graph.as_mut().unwrap());
            let why = topology::Topology::try_from(&odd).unwrap_err();
            assert!(why.contains(says), "{why}");
        }
    }
}

/// The queues of all ports that serve strict priorities.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Queues {
    /// Revision of the snapshot that they come from; grows with every change.
    pub revision: u64,
    /// Time of the snapshot.
    pub now_ns: u64,
    /// When the counters were read, at most once a second; `null` where no port serves strict
    /// priorities.
    pub measured_ns: Option<u64>,
    /// Hosts' ports, then ToRs', then switches'. Empty unless the run began with `network:
    /// priority`, and in virtual time.
    pub ports: Vec<PortQueues>,
}

/// The queues of a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PortQueues {
    /// The node that sends by it.
    pub node: String,
    /// The name of its link there.
    pub port: String,
    /// The node to which it leads.
    pub to: String,
    /// Its rate.
    pub rate_bps: u64,
    /// Short packets, then by priority.
    pub queues: Vec<Queue>,
}

/// A queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Queue {
    /// 0 (first) to 7; `null`: packets below 128 bytes, which go before all others whatever their
    /// priority is.
    pub priority: Option<u8>,
    /// Bytes that left it, headers included.
    pub bytes: u64,
    /// Packets that left it.
    pub packets: u64,
    /// Packets that found no room in it; TCP sends them again.
    pub drops: u64,
    /// Bytes that wait in it.
    pub backlog_bytes: u64,
}

impl From<&record::Snapshot> for Queues {
    fn from(s: &record::Snapshot) -> Self {
        let seen = s.queues.as_deref();
        let ports = seen.map(|q| q.ports.iter().map(Into::into).collect()).unwrap_or_default();
        Self { revision: s.revision, now_ns: s.now.0, measured_ns: seen.map(|q| q.at.0), ports }
    }
}

impl From<&fabric::PortQueueCounters> for PortQueues {
    fn from(p: &fabric::PortQueueCounters) -> Self {
        let queue = |q: &fabric::QueueCounters| Queue {
            priority: q.priority,
            bytes: q.bytes,
            packets: q.packets,
            drops: q.drops,
            backlog_bytes: q.backlog,
        };
        let queues = p.queues.iter().map(queue).collect();
        Self {
            node: p.node.clone(),
            port: p.port.clone(),
            to: p.to.clone(),
            rate_bps: p.rate.0,
            queues,
        }
    }
}
