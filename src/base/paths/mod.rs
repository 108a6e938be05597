//! Flow paths: the list of switches that a flow crosses, what it costs, and its choice under the
//! switches' capacities.
//!
//! [`Switches`] is a topology's packet network made ready for search. A [`List`] is the switches
//! between two hosts in their order; [`Switches::check`] says whether one holds together,
//! [`Switches::cost`] what it costs. [`search`] finds the cheapest list, [`optimise`] gives every
//! flow one (Hit-scheduler's Algorithm 1 with both ends fixed), [`choose`] by other rules.
//!
//! Source: Yang, Rang and Cheng, *Hit: a scheduler that optimises shuffle traffic by joint task
//! placement and flow policies* (ICPP 2018), sections 3 to 5.

use std::collections::BTreeSet;

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::ids::HostId;
use crate::topology::Topology;
use crate::topology::graph::{Graph, Tier};
use crate::topology::types::Types;
use crate::units::BitRate;

pub mod choose;
pub mod optimise;
pub mod search;
pub mod searches;
pub mod types;

/// The switches that a flow crosses, by number in their order; none between two tasks of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct List(pub Vec<u32>);

/// The unit cost of entering a switch, by its tier; a server that relays costs nothing.
///
/// Source: the unit cost c_s of section 3.1 in the paper; its case study counts switches, so every
/// tier has 1 by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct Units {
    /// Cost of an access switch, 0 to 1000000; 1 if left out.
    #[cfg_attr(feature = "schema", schemars(range(max = 1_000_000)))]
    pub access: u32,
    /// Cost of an aggregation switch, 0 to 1000000; 1 if left out.
    #[cfg_attr(feature = "schema", schemars(range(max = 1_000_000)))]
    pub aggregation: u32,
    /// Cost of a core switch, 0 to 1000000; 1 if left out.
    #[cfg_attr(feature = "schema", schemars(range(max = 1_000_000)))]
    pub core: u32,
}

impl Default for Units {
    fn default() -> Self {
        Self { access: 1, aggregation: 1, core: 1 }
    }
}

/// The most that a byte may cost a switch.
pub const MAX_UNIT: u32 = 1_000_000;

impl Units {
    /// Whether every switch costs 1.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    /// Cost of a switch of this tier.
    pub fn of(self, tier: Tier) -> u32 {
        match tier {
            Tier::Server => 0,
            Tier::Access => self.access,
            Tier::Aggregation => self.aggregation,
            Tier::Core => self.core,
        }
    }
}

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum PathEnd {
    /// Where flows begin.
    First,
    /// Where they end.
    Last,
}

impl std::fmt::Display for PathEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if *self == Self::First { "first" } else { "last" })
    }
}

/// Why a list of switches cannot carry a flow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum ListError {
    /// A number that no switch has.
    #[error("there is no switch {number}: they are 0 to {last}")]
    Unknown {
        /// The number.
        number: u32,
        /// The highest number of a switch.
        last: u32,
    },
    /// The list does not begin or end at the switch of the flow's host.
    #[error("the {side} switch of the list is {given}, and {host} is at {expected}")]
    WrongEnd {
        /// Which end.
        side: PathEnd,
        /// The switch of the list, or `none` for an empty list.
        given: String,
        /// The host at that end of the flow, by name.
        host: String,
        /// The switch of the host.
        expected: String,
    },
    /// Two neighbours in the list that no link joins.
    #[error("no link joins {0} and {1}")]
    NoLink(String, String),
    /// A switch that is in the list twice.
    #[error("switch {0} is in the list twice: a flow would go in a circle")]
    Loop(String),
    /// A switch that is higher than the one before it, after the list has gone down already.
    #[error(
        "the list goes up to {0} after it went down: in this network a way goes up, and then down"
    )]
    Valley(String),
    /// A switch of another tier than the flow's types have at its place.
    #[error("switch {place} of the list, {switch}, is of the tier {}, and the flow's types want {}", tier.name(), wanted.name())]
    WrongTier {
        /// Its place in the list, from 1.
        place: usize,
        /// The switch.
        switch: String,
        /// Its tier.
        tier: Tier,
        /// The tier that the types have there.
        wanted: Tier,
    },
    /// Fewer or more switches than the flow's types.
    #[error("the list has {given} switches, and the flow's types are {}: {types}", types.0.len())]
    WrongLength {
        /// Switches of the list.
        given: usize,
        /// The types.
        types: Types,
    },
    /// A switch that cannot carry the flow besides what it has.
    #[error("{switch} carries {} of {}: {} more do not fit", BitRate(*load), BitRate(*capacity), BitRate(*rate))]
    Full {
        /// The switch.
        switch: String,
        /// What it carries now, in bits a second.
        load: u64,
        /// What it can carry, in bits a second.
        capacity: u64,
        /// What the flow needs, in bits a second.
        rate: u64,
    },
}

/// The packet network of a topology, ready for search.
#[derive(Clone, Debug)]
pub struct Switches {
    names: Vec<String>,
    tiers: Vec<Tier>,
    units: Vec<u32>,
    /// By switch: what it carries in all, in bits a second.
    capacity: Vec<Option<u64>>,
    /// Whether none has a capacity.
    limitless: bool,
    /// By switch: the switches that links join with it, in the order of their numbers.
    neighbours: Vec<Vec<u32>>,
    /// By switch: how many links lie between it and the nearest rack's switch.
    height: Vec<u32>,
    /// The switches in the order of their heights.
    by_height: Vec<u32>,
    /// Whether every link joins two neighbouring heights, and no server relays: a way then goes up,
    /// and then down.
    layered: bool,
    /// By host: its switch, or the host's own node where servers relay (BCube).
    stands: Vec<u32>,
    /// By host: what people call it.
    hosts: Vec<String>,
}

impl Switches {
    /// The network of `topology`: its graph of switches, or what its uplinks, pods and core amount
    /// to. O(switches + links + hosts).
    pub fn new(topology: &Topology, units: Units) -> Self {
        let built;
        let graph = match topology.eps.graph() {
            Some(graph) => graph,
            None => {
                built = tree_of(topology);
                &built
            }
        };
        let n = graph.switches.len();
        let mut neighbours = vec![BTreeSet::new(); n];
        for (a, b) in graph.cables.iter().map(|c| c.ends) {
            neighbours[a as usize].insert(b);
            neighbours[b as usize].insert(a);
        }
        let neighbours: Vec<Vec<u32>> =
            neighbours.into_iter().map(|s| s.into_iter().collect()).collect();
        let height = heights(&neighbours, &graph.racks);
        let adjacent = |c: &(u32, u32)| height[c.0 as usize].abs_diff(height[c.1 as usize]) == 1;
        let relays = graph.switches.iter().any(|s| s.tier == Tier::Server);
        let layered = !relays && graph.cables.iter().all(|c| adjacent(&c.ends));
        let mut by_height: Vec<u32> = (0..n as u32).collect();
        by_height.sort_by_key(|&s| (height[s as usize], s));
        Self {
            names: graph.switches.iter().map(|s| s.name.clone()).collect(),
            tiers: graph.switches.iter().map(|s| s.tier).collect(),
            units: graph.switches.iter().map(|s| units.of(s.tier)).collect(),
            capacity: graph.switches.iter().map(|s| s.rate.map(|r| r.0)).collect(),
            limitless: graph.switches.iter().all(|s| s.rate.is_none()),
            neighbours,
            height,
            by_height,
            layered,
            stands: topology.hosts.iter().map(|h| graph.racks[h.rack.index()]).collect(),
            hosts: topology.hosts.iter().map(|h| topology.host_name(h.id)).collect(),
        }
    }

    /// How many switches there are, relaying servers included.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is no switch.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// How many hosts there are.
    pub fn hosts(&self) -> usize {
        self.stands.len()
    }

    /// What people call a host.
    pub fn host_name(&self, host: HostId) -> &str {
        &self.hosts[host.index()]
    }

    /// What people call a switch.
    pub fn name(&self, switch: u32) -> &str {
        &self.names[switch as usize]
    }

    /// Its place between hosts and core.
    pub fn tier(&self, switch: u32) -> Tier {
        self.tiers[switch as usize]
    }

    /// How many links lie between it and the nearest switch of a rack.
    pub fn height(&self, switch: u32) -> u32 {
        self.height[switch as usize]
    }

    /// The pairs of switches that links join, each once, the lower number first.
    pub fn links(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let all = self
            .neighbours
            .iter()
            .enumerate()
            .flat_map(|(a, list)| list.iter().map(move |&b| (a as u32, b)));
        all.filter(|(a, b)| a < b)
    }

    /// The switch of a host; its own node where servers relay.
    pub fn stands(&self, host: HostId) -> u32 {
        self.stands[host.index()]
    }

    /// What a switch carries in all, in bits a second; `None`: all that comes.
    pub fn capacity(&self, switch: u32) -> Option<u64> {
        self.capacity[switch as usize]
    }

    /// The same network in which these switches carry nothing, and no link joins these pairs of
    /// switches. O(switches + links).
    #[must_use]
    pub fn without(&self, dead: &BTreeSet<u32>, apart: &BTreeSet<(u32, u32)>) -> Self {
        let mut net = self.clone();
        dead.iter().for_each(|&s| net.capacity[s as usize] = Some(0));
        net.limitless &= dead.is_empty();
        for &(a, b) in apart {
            net.neighbours[a as usize].retain(|&s| s != b);
            net.neighbours[b as usize].retain(|&s| s != a);
        }
        net
    }

    /// Whether links join all neighbours in a list. O(length x log degree).
    pub fn holds(&self, list: &List) -> bool {
        list.0.windows(2).all(|w| self.neighbours[w[0] as usize].binary_search(&w[1]).is_ok())
    }

    /// Whether no switch has a limit to what it carries.
    pub fn is_limitless(&self) -> bool {
        self.limitless
    }

    /// The sum of unit costs of a list: the cost of a byte that goes over it (section 3.1, with the
    /// unit cost charged for the switch that a segment enters). O(length).
    pub fn cost(&self, list: &List) -> u64 {
        list.0.iter().map(|&s| u64::from(self.units[s as usize])).sum()
    }

    /// A list as people read it.
    pub fn names(&self, list: &List) -> Vec<&str> {
        list.0.iter().map(|&s| self.name(s)).collect()
    }

    /// Whether a flow from one host to another can take a list. Links join its switches, and none
    /// is in the list twice. It begins and ends at the hosts' switches, and goes up and then down
    /// where the network is layered. Capacities are left out: see [`SwitchRates::check`]. O(length
    /// x degree).
    ///
    /// # Errors
    /// The first thing that is wrong, from the front of the list.
    pub fn check(&self, list: &List, (from, to): (HostId, HostId)) -> Result<(), ListError> {
        if let Some(&number) = list.0.iter().find(|&&s| s as usize >= self.len()) {
            return Err(ListError::Unknown { number, last: self.len() as u32 - 1 });
        }
        if from == to && list.0.is_empty() {
            return Ok(());
        }
        let whole = self.with_ends(list, (from, to));
        for (side, given, host) in
            [(PathEnd::First, whole.first(), from), (PathEnd::Last, whole.last(), to)]
        {
            let stands = self.stands(host);
            if given != Some(&stands) {
                let given = given.map_or("none".into(), |&s| self.name(s).to_owned());
                return Err(ListError::WrongEnd {
                    side,
                    given,
                    host: self.host_name(host).to_owned(),
                    expected: self.name(stands).to_owned(),
                });
            }
        }
        let (mut seen, mut down) = (BTreeSet::new(), false);
        for (k, &s) in whole.iter().enumerate() {
            if !seen.insert(s) {
                return Err(ListError::Loop(self.name(s).into()));
            }
            let Some(&next) = whole.get(k + 1) else { break };
            if self.neighbours[s as usize].binary_search(&next).is_err() {
                return Err(ListError::NoLink(self.name(s).into(), self.name(next).into()));
            }
            let up = self.height[next as usize] > self.height[s as usize];
            if self.layered && up && down {
                return Err(ListError::Valley(self.name(next).into()));
            }
            down |= !up;
        }
        Ok(())
    }

    /// The list with the hosts' own nodes at its ends, where servers relay.
    fn with_ends(&self, list: &List, (from, to): (HostId, HostId)) -> Vec<u32> {
        let own = |h: HostId| Some(self.stands(h)).filter(|&s| self.tier(s) == Tier::Server);
        own(from).into_iter().chain(list.0.iter().copied()).chain(own(to)).collect()
    }
}

/// By switch, the number of links to the nearest rack's switch. Breadth first.
fn heights(neighbours: &[Vec<u32>], racks: &[u32]) -> Vec<u32> {
    let mut height = vec![u32::MAX; neighbours.len()];
    let mut queue: std::collections::VecDeque<u32> = racks.iter().copied().collect();
    queue.iter().for_each(|&s| height[s as usize] = 0);
    while let Some(s) = queue.pop_front() {
        for &t in &neighbours[s as usize] {
            if height[t as usize] == u32::MAX {
                height[t as usize] = height[s as usize] + 1;
                queue.push_back(t);
            }
        }
    }
    height
}

/// The tree that a topology without a graph amounts to: a switch a rack, one a pod if there are
/// pods, and one core.
fn tree_of(topology: &Topology) -> Graph {
    use crate::topology::graph::Level;
    let uplink = topology.racks.iter().map(|r| r.uplink).max().unwrap_or_default();
    let mut levels = vec![Level { join: 1, uplink }];
    levels.extend(topology.eps.pods().map(|p| Level { join: p.racks, uplink: p.uplink }));
    let mut graph = Graph::tree(topology.rack_count(), &levels, None);
    if let (Some(rate), Some(root)) = (topology.eps.core_rate(), graph.switches.last_mut()) {
        root.rate = Some(rate);
    }
    graph
}

/// What every switch carries, in bits a second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchRates {
    carried: Vec<u64>,
}

impl SwitchRates {
    /// No load.
    pub fn new(net: &Switches) -> Self {
        Self { carried: vec![0; net.len()] }
    }

    /// What a switch carries, in bits a second.
    pub fn of(&self, switch: u32) -> u64 {
        self.carried[switch as usize]
    }

    /// What a switch can still carry, in bits a second; the largest number less its load where it
    /// has no limit.
    pub fn residual(&self, net: &Switches, switch: u32) -> u64 {
        net.capacity[switch as usize].unwrap_or(u64::MAX).saturating_sub(self.of(switch))
    }

    /// Part of `rate` more that would go beyond the switch's capacity; nothing where it has none.
    fn beyond(&self, net: &Switches, switch: u32, rate: u64) -> u64 {
        net.capacity[switch as usize]
            .map_or(0, |c| rate.saturating_sub(c.saturating_sub(self.of(switch))))
    }

    /// Adds a flow to every switch of its list.
    pub fn take(&mut self, list: &List, rate: u64) {
        for &s in &list.0 {
            let c = &mut self.carried[s as usize];
            *c = c.saturating_add(rate);
        }
    }

    /// Takes a flow off every switch of its list.
    pub fn give_back(&mut self, list: &List, rate: u64) {
        for &s in &list.0 {
            let c = &mut self.carried[s as usize];
            *c = c.saturating_sub(rate);
        }
    }

    /// Whether a flow of `rate` fits on every switch of a list besides what they carry.
    ///
    /// # Errors
    /// The first switch that is too full.
    pub fn check(&self, net: &Switches, list: &List, rate: u64) -> Result<(), ListError> {
        match list.0.iter().find(|&&s| self.beyond(net, s, rate) > 0) {
            None => Ok(()),
            Some(&s) => {
                let capacity = net.capacity[s as usize].unwrap_or(u64::MAX);
                Err(ListError::Full {
                    switch: net.name(s).into(),
                    load: self.of(s),
                    capacity,
                    rate,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests;
