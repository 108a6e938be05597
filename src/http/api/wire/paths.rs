//! The ways of flows through a network of several switches.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::control::record::SwitchesSeen;
use crate::control::routes as of;
use crate::fabric::{self, PortTo};
use crate::plan::paths::Ports;
use crate::topology::graph::Tier;
use crate::topology::types::Types;

/// The ways of flows, and what switches carry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Paths {
    /// Revision of the snapshot that they come from; grows with every change.
    pub revision: u64,
    /// Time of the snapshot.
    pub now_ns: u64,
    /// How they are decided: `ecmp`, `shortest`, `vlb` or `hit`.
    pub policy: String,
    /// Bytes of all open coflows times the switches that they cross, each with the cost that the
    /// policy's `units` give it.
    pub cost: u64,
    /// By pair of hosts: between which open coflows send, or whose list was set by hand.
    pub paths: Vec<PathView>,
    /// When the counters of ports were read; `null` where they are not: in virtual time.
    #[serde(default)]
    pub measured_ns: Option<u64>,
    /// All switches, by number.
    pub switches: Vec<SwitchLoad>,
    /// Pairs of switches whose link is down, by name.
    #[serde(default)]
    pub links_down: Vec<(String, String)>,
}

/// The way from one host to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PathView {
    /// The host where it begins.
    pub from: u32,
    /// The host where it ends.
    pub to: u32,
    /// The one flow that takes it; left out: all of the pair that have no list of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<FlowPorts>,
    /// The names of the switches on it.
    pub switches: Vec<String>,
    /// What decided it.
    pub by: DecidedBy,
    /// Whether the fabric holds it.
    pub held: bool,
    /// What open coflows send over it.
    pub bytes: u64,
    /// What they take of each switch.
    pub rate_bps: u64,
    /// The tiers that the list must have, in their order; left out: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<SwitchTier>,
    /// Whether an open coflow sends over it whose types the list has not: no list has them, or
    /// another coflow's hold.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub types_unmet: bool,
}

/// The place of a switch between the hosts and the core, as a flow's types name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchTier {
    /// A server that relays for others (BCube).
    Server,
    /// A switch with hosts: a rack's ToR.
    Access,
    /// A switch between the two.
    Aggregation,
    /// The highest: a root, spine or intermediate switch.
    Core,
}

impl From<Tier> for SwitchTier {
    fn from(t: Tier) -> Self {
        match t {
            Tier::Server => Self::Server,
            Tier::Access => Self::Access,
            Tier::Aggregation => Self::Aggregation,
            Tier::Core => Self::Core,
        }
    }
}

impl From<SwitchTier> for Tier {
    fn from(t: SwitchTier) -> Self {
        match t {
            SwitchTier::Server => Self::Server,
            SwitchTier::Access => Self::Access,
            SwitchTier::Aggregation => Self::Aggregation,
            SwitchTier::Core => Self::Core,
        }
    }
}

impl SwitchTier {
    /// Its name, as it is written.
    pub fn name(self) -> &'static str {
        Tier::from(self).name()
    }

    /// The types of a flow's list.
    pub fn all(types: &Types) -> Vec<Self> {
        types.0.iter().map(|&t| t.into()).collect()
    }
}

/// The TCP or UDP ports of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FlowPorts {
    /// That of the sender.
    pub from: u16,
    /// That of the receiver.
    pub to: u16,
}

impl From<Ports> for FlowPorts {
    fn from(Ports { from, to }: Ports) -> Self {
        Self { from, to }
    }
}

/// What decided a list of switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DecidedBy {
    /// The network: the pair of hosts has the default way of its racks.
    Default,
    /// The policy's `paths`.
    Policy,
    /// An operator.
    Manual,
}

/// A switch and what it carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SwitchLoad {
    /// Its name.
    pub name: String,
    /// Its place: `server`, `access`, `aggregation` or `core`.
    pub tier: String,
    /// What open coflows take of it.
    pub load_bps: u64,
    /// What it carries at most; `null`: all that comes.
    pub capacity_bps: Option<u64>,
    /// Pairs of hosts whose flows cross it.
    pub pairs: u32,
    /// Packets that it dropped because they had no list, counted with `timed` only.
    #[serde(default)]
    pub strays: u64,
    /// The ways out of it, as measured: first to racks, then to other switches. Empty in virtual
    /// time.
    #[serde(default)]
    pub ports: Vec<SwitchPort>,
}

/// The way out of a port of a switch, and what left by it since the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SwitchPort {
    /// The switch to which it leads, by name, or `r3`.
    pub to: String,
    /// Number of the link, where it leads to a switch: two switches may be joined by several.
    pub link: Option<u32>,
    /// Its rate.
    pub rate_bps: u64,
    /// What left by it between the last two readings, which are a second apart.
    pub sent_bps: u64,
    /// Bytes that left by it, headers included.
    pub bytes: u64,
    /// Their packets.
    pub packets: u64,
    /// Packets that found no room in its queue, aggregates counted once; TCP sends them again.
    pub drops: u64,
    /// Bytes that waited in its queue.
    pub backlog_bytes: u64,
}

/// The list that a pair of hosts shall have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PathBody {
    /// The names of the switches, from the first host's to the last one's.
    pub switches: Vec<String>,
}

/// What a change of a list does, or would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PathChange {
    /// Whether it was made; else it was a dry run.
    pub made: bool,
    /// Bytes of all open coflows times the switches that they cross, each with its cost, before.
    pub cost_before: u64,
    /// The same afterwards.
    pub cost_after: u64,
    /// Lists that are different afterwards, those of other pairs too if the policy moves them.
    pub paths: Vec<PathView>,
    /// Switches on lists that change, before or afterwards, and those whose load changes, by
    /// number.
    pub switches: Vec<LoadChange>,
}

/// What a change does to a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoadChange {
    /// Its name.
    pub name: String,
    /// What open coflows take of it before.
    pub before_bps: u64,
    /// The same afterwards.
    pub after_bps: u64,
    /// What it carries at most; `null`: all that comes.
    pub capacity_bps: Option<u64>,
}

impl PathView {
    fn new(p: &of::PairView, view: &of::PathsView) -> Self {
        Self {
            from: p.from.0,
            to: p.to.0,
            ports: p.ports.map(FlowPorts::from),
            switches: p.list.0.iter().map(|&s| name(s, view)).collect(),
            by: match p.by {
                of::DecidedBy::Default => DecidedBy::Default,
                of::DecidedBy::Policy => DecidedBy::Policy,
                of::DecidedBy::Manual => DecidedBy::Manual,
            },
            held: p.held,
            bytes: p.bytes.0,
            rate_bps: p.rate.0,
            types: SwitchTier::all(&p.types),
            types_unmet: p.unmet,
        }
    }
}

impl SwitchLoad {
    /// A switch of a view, with what was measured at its number.
    fn new(
        (number, s): (usize, &of::SwitchView),
        view: &of::PathsView,
        seen: Option<&SwitchesSeen>,
    ) -> Self {
        let measured =
            seen.and_then(|seen| Some((seen.switches.get(number)?, seen.rates.get(number)?)));
        let ports = measured.iter().flat_map(|(c, rates)| c.ports.iter().zip(*rates));
        Self {
            name: s.name.clone(),
            tier: s.tier.name().into(),
            load_bps: s.load.0,
            capacity_bps: s.capacity.map(|c| c.0),
            pairs: s.pairs,
            strays: measured.map_or(0, |(c, _)| c.strays),
            ports: ports.map(|(p, rate)| SwitchPort::new(p, rate.0, view)).collect(),
        }
    }
}

impl SwitchPort {
    fn new(p: &fabric::SwitchPort, sent_bps: u64, view: &of::PathsView) -> Self {
        let (to, link) = match p.to {
            PortTo::Rack(r) => (format!("r{}", r.0), None),
            PortTo::Switch { cable, switch } => (name(switch, view), Some(cable)),
        };
        let (bytes, packets, drops, backlog_bytes) = (p.bytes, p.packets, p.drops, p.backlog);
        Self { to, link, rate_bps: p.rate.0, sent_bps, bytes, packets, drops, backlog_bytes }
    }
}

/// What people call a switch.
fn name(switch: u32, view: &of::PathsView) -> String {
    view.switches.get(switch as usize).map_or_else(|| switch.to_string(), |s| s.name.clone())
}

impl Paths {
    /// A view at a snapshot's revision and time, with what was measured last; without pairs of
    /// hosts unless they are asked for.
    pub fn new(
        view: &of::PathsView,
        seen: Option<&SwitchesSeen>,
        (revision, now_ns): (u64, u64),
        pairs: bool,
    ) -> Self {
        let policy = serde_json::to_value(view.policy)
            .ok()
            .and_then(|v| v.as_str().map(str::to_owned))
            .unwrap_or_default();
        let paths = view.pairs.iter().filter(|_| pairs).map(|p| PathView::new(p, view)).collect();
        let switches =
            view.switches.iter().enumerate().map(|s| SwitchLoad::new(s, view, seen)).collect();
        let links_down = view.apart.iter().map(|&(a, b)| (name(a, view), name(b, view))).collect();
        Self {
            revision,
            now_ns,
            policy,
            cost: view.cost,
            paths,
            measured_ns: seen.map(|s| s.at.0),
            switches,
            links_down,
        }
    }
}

impl PathChange {
    /// The change from one view to another.
    pub fn new(before: &of::PathsView, after: &of::PathsView, made: bool) -> Self {
        let was = |p: &of::PairView| {
            before.pairs.iter().find(|b| (b.from, b.to, b.ports) == (p.from, p.to, p.ports))
        };
        let other = after
            .pairs
            .iter()
            .filter(|p| was(p).is_none_or(|b| (&b.list, b.by) != (&p.list, p.by)));
        let other: Vec<&of::PairView> = other.collect();
        // A list that was given back and that no flow had is in no view afterwards.
        let gone = before.pairs.iter().filter(|b| {
            !after.pairs.iter().any(|p| (b.from, b.to, b.ports) == (p.from, p.to, p.ports))
        });
        let old = other.iter().filter_map(|p| was(p));
        let on: BTreeSet<u32> = other
            .iter()
            .copied()
            .chain(gone)
            .chain(old)
            .flat_map(|p| p.list.0.iter().copied())
            .collect();
        let told = |k: usize, (b, a): (&of::SwitchView, &of::SwitchView)| {
            b.load != a.load || on.contains(&(k as u32))
        };
        let loads = before
            .switches
            .iter()
            .zip(&after.switches)
            .enumerate()
            .filter(|(k, pair)| told(*k, *pair))
            .map(|(_, pair)| pair);
        let load = |(b, a): (&of::SwitchView, &of::SwitchView)| LoadChange {
            name: a.name.clone(),
            before_bps: b.load.0,
            after_bps: a.load.0,
            capacity_bps: a.capacity.map(|c| c.0),
        };
        Self {
            made,
            cost_before: before.cost,
            cost_after: after.cost,
            paths: other.into_iter().map(|p| PathView::new(p, after)).collect(),
            switches: loads.map(load).collect(),
        }
    }
}
