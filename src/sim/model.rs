//! Which of the models carries the flows of a network: chosen here and nowhere else.

use std::fmt;
use std::sync::Arc;

use super::engine::Engine;
use super::links::Links;
use super::pairs::{self, MAX_CHANGING, MAX_HOSTS};
use super::{ordered, shared, sums, sunflow};
use crate::coflows::elephants::Admit;
use crate::coflows::network::{Network, NetworkKind, Within};
use crate::topology::Topology;

/// How a network is simulated. Each model promises the same laws; docs/simulation.md says what it costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Coflows take circuits one after the other.
    Sunflow,
    /// Fair shares on a network where nothing is narrower than the hosts' interfaces: the flows of a pair of hosts are one.
    Pairs {
        /// Into how many classes the flows of a pair fall, of which each may go another way.
        classes: usize,
        /// Whether circuits change their ways.
        circuits: bool,
    },
    /// Fair shares on any network.
    Shared {
        /// Whether ports to the packet network have a queue for each rack.
        queued: bool,
    },
    /// Coflow after coflow, flow by flow.
    Ordered,
    /// What each sender and receiver of a coflow has left, and no flows ([`Within::Sums`]).
    Sums {
        /// Whether all coflows share links fairly; else one after another.
        fair: bool,
    },
}

/// Why coflows are not known by their sums, though [`Within::Sums`] asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSums {
    /// Circuits tell the flows of a coflow apart.
    Circuits,
    /// Something is narrower than the hosts' interfaces, or there are several ways between racks.
    Limits,
}

impl Model {
    /// The model of a network; `circuits`: some may be set. O(hosts + racks log racks).
    ///
    /// # Errors
    /// [`Within::Sums`], where something tells the flows of a coflow apart.
    pub fn of(topology: &Topology, network: Network, admit: Admit, circuits: bool) -> Result<Self, NoSums> {
        let dark = !circuits || topology.planes.is_empty();
        let links = Links::new(Arc::new(topology.clone()), !dark, false, network.kind == NetworkKind::MaxMin);
        Self::choose(&links, network, admit, dark)
    }

    /// [`Self::of`] for links that are there; `dark`: no circuit can ever come.
    pub(super) fn choose(links: &Links, network: Network, admit: Admit, dark: bool) -> Result<Self, NoSums> {
        let fair = network.kind == NetworkKind::MaxMin;
        if network.within == Within::Sums && network.kind.has_within(Within::Sums) {
            return match links.topology().eps.graph().is_none() && links.two_sided(false) {
                _ if !dark => Err(NoSums::Circuits),
                false => Err(NoSums::Limits),
                true => Ok(Self::Sums { fair }),
            };
        }
        Ok(match network.kind {
            NetworkKind::Sunflow => Self::Sunflow,
            NetworkKind::MaxMin => match classes(links, dark, admit) {
                Some(classes) => Self::Pairs { classes, circuits: !dark },
                None => Self::Shared { queued: links.queues().is_some() },
            },
            _ => Self::Ordered,
        })
    }

    /// Makes it, without flows.
    pub(super) fn build(self, links: &Links, network: Network) -> Box<dyn Engine> {
        let topology = links.topology();
        let interfaces = &links.capacity()[..2 * topology.hosts.len()];
        match self {
            Self::Sunflow => Box::new(sunflow::Sunflow::new(network, &links.shared_topology())),
            Self::Pairs { classes, circuits: false } => Box::new(pairs::Pairs::<pairs::Fixed>::new(interfaces, classes)),
            Self::Pairs { classes, circuits: true } => Box::new(pairs::Pairs::<pairs::Changing>::new(interfaces, classes)),
            Self::Shared { .. } => Box::new(shared::Shared::new(links.capacity(), links.queues())),
            Self::Ordered => Box::new(ordered::Ordered::new(network, links.capacity())),
            Self::Sums { fair: true } => Box::new(sums::MaxMin::new(interfaces)),
            Self::Sums { fair: false } => Box::new(sums::Sums::new(network, interfaces)),
        }
    }

    /// Its word in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sunflow => "sunflow",
            Self::Pairs { .. } => "pairs",
            Self::Shared { queued: false } => "links",
            Self::Shared { queued: true } => "queues",
            Self::Ordered => "ordered",
            Self::Sums { .. } => "sums",
        }
    }

    /// Whether it knows coflows by their sums, and no flows.
    pub fn knows_sums(self) -> bool {
        matches!(self, Self::Sums { .. })
    }

    /// Bytes that it keeps from its beginning on, beside links and matrices, for so many hosts and racks; docs/memory.md has what
    /// was measured.
    pub fn bytes(self, hosts: u64, racks: u64) -> u64 {
        let pairs = |of: u64, bytes: u64| of.saturating_mul(of).saturating_mul(bytes);
        match self {
            Self::Pairs { circuits: false, .. } => pairs(hosts, 150),
            Self::Pairs { circuits: true, classes } => pairs(hosts, 200 * classes as u64),
            // Two queues for each pair of racks.
            Self::Shared { queued: true } => pairs(racks, 2 * 190),
            Self::Sunflow | Self::Shared { queued: false } | Self::Ordered | Self::Sums { .. } => 0,
        }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sunflow => "coflows that take circuits one after the other",
            Self::Pairs { .. } => "fair shares, the flows of two hosts as one, since nothing is narrower than the hosts' interfaces",
            Self::Shared { queued: true } => "fair shares, with a queue for each rack at the ports of the packet network",
            Self::Shared { queued: false } => "fair shares of every link",
            Self::Ordered => "coflow after coflow, flow by flow",
            Self::Sums { fair: true } => "fair shares of coflows that are known by their sums",
            Self::Sums { fair: false } => "coflow after coflow, known by their sums",
        })
    }
}

/// Where every flow crosses the interfaces of its two hosts and nothing narrower, the flows of a pair of hosts are one under max-min: then
/// into how many classes they fall.
fn classes(links: &Links, dark: bool, admit: Admit) -> Option<usize> {
    let hosts = links.topology().hosts.len();
    let classes = match admit {
        _ if dark => 1,
        Admit::All => 1,
        Admit::Marked => 2,
        Admit::Wait => return None,
    };
    let most = if dark { MAX_HOSTS } else { MAX_CHANGING };
    (hosts <= most && links.two_sided(!dark) && pairs::serves(&links.capacity()[..2 * hosts])).then_some(classes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::PlaneId;
    use crate::topology::graph::Graph;
    use crate::topology::{Core, Plane, PortQueues, StopMode};
    use crate::units::{BitRate, Span};

    /// Two hosts of 1 Gb/s a rack, uplinks and circuits of these rates.
    fn network(hosts: usize, uplink: u64, circuits: Option<u64>) -> Topology {
        let rate = |mbit| BitRate::mbit(mbit);
        let plane = |r| Plane { id: PlaneId(0), rate: rate(r), delta: Span(1), stop: StopMode::NotAllStop, duplex: false };
        Topology::uniform("t", hosts / 2, 2, rate(1000), rate(uplink), circuits.map(plane).into_iter().collect())
    }

    #[test]
    fn each_network_has_the_model_that_the_manual_says() {
        let of = |kind, within| Network { kind, within, ..Network::default() };
        let fair = of(NetworkKind::MaxMin, Network::default().within);
        let (wide, narrow) = (network(4, 2000, Some(2000)), network(4, 100, Some(2000)));
        let one = |t: &Topology, n, admit, circuits| Model::of(t, n, admit, circuits);
        let pairs = |classes, circuits| Ok(Model::Pairs { classes, circuits });
        assert_eq!(one(&wide, fair, Admit::All, true), pairs(1, true));
        assert_eq!(one(&wide, fair, Admit::Marked, true), pairs(2, true));
        assert_eq!(one(&wide, fair, Admit::Marked, false), pairs(1, false));
        let shared = Ok(Model::Shared { queued: false });
        assert_eq!(one(&wide, fair, Admit::Wait, true), shared);
        assert_eq!(one(&narrow, fair, Admit::All, true), shared);
        assert_eq!(one(&network(4, 2000, Some(500)), fair, Admit::All, true), shared, "circuits are narrower than interfaces");
        assert_eq!(one(&network(2 * MAX_HOSTS, 2000, None), fair, Admit::All, false), shared);
        let mut queued = narrow.clone();
        queued.eps.queues = PortQueues::Racks;
        assert_eq!(one(&queued, fair, Admit::All, true), Ok(Model::Shared { queued: true }));
        assert_eq!(one(&queued, of(NetworkKind::Varys, fair.within), Admit::All, true), Ok(Model::Ordered));
        assert_eq!(one(&wide, of(NetworkKind::Sunflow, fair.within), Admit::All, true), Ok(Model::Sunflow));
        for kind in NetworkKind::ALL.into_iter().filter(|k| k.has_within(Within::Sums)) {
            let sums = of(kind, Within::Sums);
            let known = Ok(Model::Sums { fair: kind == NetworkKind::MaxMin });
            assert_eq!(one(&wide, sums, Admit::All, false), known, "{kind:?}");
            assert_eq!(one(&wide, sums, Admit::All, true), Err(NoSums::Circuits), "{kind:?}");
            assert_eq!(one(&narrow, sums, Admit::All, false), Err(NoSums::Limits), "{kind:?}");
            let graph = Graph { switches: vec![], cables: vec![], racks: vec![] };
            let mut other = wide.clone();
            other.eps.core = Core::Graph(Box::new(graph));
            assert_eq!(one(&other, sums, Admit::All, false), Err(NoSums::Limits), "{kind:?}");
        }
    }
}
