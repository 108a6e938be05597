//! The choice of the simulation model for a network: made here and nowhere else.

use std::fmt;
use std::sync::Arc;

use super::big_switch::{self, MAX_CHANGING, MAX_HOSTS};
use super::engine::Engine;
use super::links::Links;
use super::{aggregate, fair_share, ordered, sunflow};
use crate::coflows::elephants::Admit;
use crate::coflows::network::{Network, NetworkKind, Within};
use crate::topology::Topology;

/// How a network is simulated. Each model promises the same laws; docs/simulation.md says what it
/// costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Coflows take circuits one after another.
    Sunflow,
    /// Fair rates where nothing is narrower than the hosts' interfaces: the flows of a pair of
    /// hosts have one rate.
    Pairs {
        /// Number of classes into which the flows of a pair fall; each class may take another
        /// route.
        classes: usize,
        /// Whether circuits change their routes.
        circuits: bool,
    },
    /// Fair rates on any network.
    Shared {
        /// Whether ports to the packet network have a queue for each rack.
        queued: bool,
    },
    /// Coflows in an order, flow by flow.
    Ordered,
    /// Coflows as aggregates ([`Within::Sums`]): what each sender and receiver has left.
    Sums {
        /// Whether all coflows share links fairly; else in an order.
        fair: bool,
    },
}

/// Why coflows cannot be aggregates, though [`Within::Sums`] asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSums {
    /// With circuits, the flows of a coflow differ.
    Circuits,
    /// Something is narrower than the hosts' interfaces, or there are several routes between racks.
    Limits,
}

impl Model {
    /// The model of a network; `circuits`: some may be set. O(hosts + racks log racks).
    ///
    /// # Errors
    /// [`Within::Sums`], where the flows of a coflow differ.
    pub fn of(
        topology: &Topology,
        network: Network,
        admit: Admit,
        circuits: bool,
    ) -> Result<Self, NoSums> {
        let dark = !circuits || topology.planes.is_empty();
        let links = Links::new(
            Arc::new(topology.clone()),
            !dark,
            false,
            network.kind == NetworkKind::MaxMin,
        );
        Self::choose(&links, network, admit, dark)
    }

    /// The same as [`Self::of`], from links; `dark`: there can be no circuits.
    pub(super) fn choose(
        links: &Links,
        network: Network,
        admit: Admit,
        dark: bool,
    ) -> Result<Self, NoSums> {
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

    /// Builds it, without flows.
    pub(super) fn build(self, links: &Links, network: Network) -> Box<dyn Engine> {
        let topology = links.topology();
        let interfaces = &links.capacity()[..2 * topology.hosts.len()];
        match self {
            Self::Sunflow => {
                Box::new(sunflow::SunflowCoflows::new(network, &links.shared_topology()))
            }
            Self::Pairs { classes, circuits: false } => {
                Box::new(big_switch::RoutedPairs::<big_switch::Fixed>::new(interfaces, classes))
            }
            Self::Pairs { classes, circuits: true } => {
                Box::new(big_switch::RoutedPairs::<big_switch::Changing>::new(interfaces, classes))
            }
            Self::Shared { .. } => {
                Box::new(fair_share::FairShare::new(links.capacity(), links.queues()))
            }
            Self::Ordered => Box::new(ordered::Ordered::new(network, links.capacity())),
            Self::Sums { fair: true } => Box::new(aggregate::AggregateMaxMin::new(interfaces)),
            Self::Sums { fair: false } => Box::new(aggregate::Sums::new(network, interfaces)),
        }
    }

    /// Its name in results.
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

    /// Whether it keeps coflows as aggregates, without flows.
    pub fn knows_sums(self) -> bool {
        matches!(self, Self::Sums { .. })
    }

    /// Bytes that it allocates from the start, besides links and matrices, for this many hosts and
    /// racks; docs/memory.md has measurements.
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

/// If every flow crosses the interfaces of its two hosts and nothing narrower, the flows of a pair
/// of hosts have one rate under max-min; then the number of their classes.
fn classes(links: &Links, dark: bool, admit: Admit) -> Option<usize> {
    let hosts = links.topology().hosts.len();
    let classes = match admit {
        _ if dark => 1,
        Admit::All => 1,
        Admit::Marked => 2,
        Admit::Wait => return None,
    };
    let most = if dark { MAX_HOSTS } else { MAX_CHANGING };
    (hosts <= most && links.two_sided(!dark) && big_switch::serves(&links.capacity()[..2 * hosts]))
        .then_some(classes)
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
        let plane = |r| Plane {
            id: PlaneId(0),
            rate: rate(r),
            delta: Span(1),
            stop: StopMode::NotAllStop,
            duplex: false,
        };
        Topology::uniform(
            "t",
            hosts / 2,
            2,
            rate(1000),
            rate(uplink),
            circuits.map(plane).into_iter().collect(),
        )
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
        assert_eq!(
            one(&network(4, 2000, Some(500)), fair, Admit::All, true),
            shared,
            "circuits are narrower than interfaces"
        );
        assert_eq!(one(&network(2 * MAX_HOSTS, 2000, None), fair, Admit::All, false), shared);
        let mut queued = narrow.clone();
        queued.eps.queues = PortQueues::Racks;
        assert_eq!(one(&queued, fair, Admit::All, true), Ok(Model::Shared { queued: true }));
        assert_eq!(
            one(&queued, of(NetworkKind::Varys, fair.within), Admit::All, true),
            Ok(Model::Ordered)
        );
        assert_eq!(
            one(&wide, of(NetworkKind::Sunflow, fair.within), Admit::All, true),
            Ok(Model::Sunflow)
        );
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
