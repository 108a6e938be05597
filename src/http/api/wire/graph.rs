//! The network of packet switches behind the racks' uplinks, where it is more than one switch.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::topology::graph::{self, MAX_SWITCHES, Tier};
use crate::units::BitRate;

/// Switches, the links between them, and where the racks' uplinks end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Graph {
    /// The switches, by number.
    pub switches: Vec<GraphSwitch>,
    /// The links, by number; two switches may be joined by several.
    pub links: Vec<GraphLink>,
    /// By rack: the number of the switch that its uplink leads to.
    pub racks: Vec<u32>,
}

/// A packet switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GraphSwitch {
    /// Its name.
    pub name: String,
    /// Its place: `server`, `access`, `aggregation` or `core`.
    #[schema(value_type = String)]
    pub tier: Tier,
    /// What it carries at most; `null`: all that comes.
    pub capacity_bps: Option<u64>,
}

/// A link between two switches, alike in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GraphLink {
    /// The switch at one end.
    pub from: u32,
    /// The switch at the other.
    pub to: u32,
    /// Rate, each direction.
    pub rate_bps: u64,
}

impl From<&graph::Graph> for Graph {
    fn from(g: &graph::Graph) -> Self {
        let switch = |s: &graph::Switch| GraphSwitch {
            name: s.name.clone(),
            tier: s.tier,
            capacity_bps: s.rate.map(|r| r.0),
        };
        let link =
            |c: &graph::Cable| GraphLink { from: c.ends.0, to: c.ends.1, rate_bps: c.rate.0 };
        Self {
            switches: g.switches.iter().map(switch).collect(),
            links: g.cables.iter().map(link).collect(),
            racks: g.racks.clone(),
        }
    }
}

impl Graph {
    /// Back from the wire, for a network of `racks` racks.
    ///
    /// # Errors
    /// What of it makes no sense.
    pub(super) fn read(&self, racks: usize) -> Result<graph::Graph, String> {
        let n = self.switches.len();
        if n > MAX_SWITCHES {
            return Err(format!("it has {n} switches, where {MAX_SWITCHES} are the most"));
        }
        if self.racks.len() != racks {
            return Err(format!(
                "its switches join {} racks, and it has {racks}",
                self.racks.len()
            ));
        }
        let unknown = |&s: &u32| s as usize >= n;
        if let Some(s) = self
            .racks
            .iter()
            .copied()
            .chain(self.links.iter().flat_map(|l| [l.from, l.to]))
            .find(unknown)
        {
            return Err(format!("it has no switch {s}: there are {n}"));
        }
        let switch = |s: &GraphSwitch| graph::Switch {
            name: s.name.clone(),
            tier: s.tier,
            rate: s.capacity_bps.map(BitRate),
        };
        let cable =
            |l: &GraphLink| graph::Cable { ends: (l.from, l.to), rate: BitRate(l.rate_bps) };
        Ok(graph::Graph {
            switches: self.switches.iter().map(switch).collect(),
            cables: self.links.iter().map(cable).collect(),
            racks: self.racks.clone(),
        })
    }
}
