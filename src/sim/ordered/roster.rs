//! Facts about a coflow's groups beside their links, in little memory: there may be millions of
//! groups.

use std::sync::Arc;

use crate::bit_set::BitSet;
use crate::bundle::{BundleRoute, WORK_PER_BYTE};
use crate::coflows::flows::Shuffle;
use crate::ids::{FlowId, HostId, RackId};
use crate::topology::Topology;

/// Facts about a group, whose flows end together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupFacts {
    /// Sender and receiver.
    pub hosts: (HostId, HostId),
    /// Their racks.
    pub racks: (RackId, RackId),
    /// Whether its packets are marked.
    pub marked: bool,
    /// Its present route.
    pub route: BundleRoute,
    /// The first of its flows.
    pub flow: FlowId,
    /// Bytes of all its flows.
    pub bytes: u64,
}

impl GroupFacts {
    /// Work asked.
    pub fn size(&self) -> u128 {
        u128::from(self.bytes) * WORK_PER_BYTE
    }
}

/// Flows and bytes by group.
enum GroupBytes {
    /// The first flow of each, and the bytes of all its flows.
    Each(Vec<FlowId>, Vec<u64>),
    /// Each flow of a shuffle is a group.
    Shuffle(Arc<Shuffle<HostId>>),
}

/// The groups of a coflow, by number. Senders and receivers follow from the interfaces, which the
/// caller has.
pub struct Roster {
    topology: Arc<Topology>,
    asked: GroupBytes,
    marked: BitSet,
    /// By group: its route; empty while every group goes through the packet switch or stays in its
    /// rack.
    routes: Vec<BundleRoute>,
}

impl Roster {
    /// No groups yet.
    pub fn new(topology: Arc<Topology>) -> Self {
        let asked = GroupBytes::Each(Vec::new(), Vec::new());
        Self { topology, asked, marked: BitSet::default(), routes: Vec::new() }
    }

    /// For groups that are the flows of a shuffle, in their order.
    pub fn of(topology: Arc<Topology>, shuffle: Arc<Shuffle<HostId>>) -> Self {
        Self { asked: GroupBytes::Shuffle(shuffle), ..Self::new(topology) }
    }

    /// Adds the next group, `group`.
    pub fn push(&mut self, group: u32, about: &GroupFacts) {
        if let GroupBytes::Each(flows, bytes) = &mut self.asked {
            flows.push(about.flow);
            bytes.push(about.bytes);
        }
        if about.marked {
            self.marked.insert(group);
        }
        self.set_route(group, about.route);
    }

    /// The hosts of these interfaces, and their racks.
    pub fn between(&self, [up, down]: [u32; 2]) -> ((HostId, HostId), (RackId, RackId)) {
        let hosts = (HostId(up), HostId(down - self.topology.hosts.len() as u32));
        (hosts, (self.topology.rack_of(hosts.0), self.topology.rack_of(hosts.1)))
    }

    /// Facts about the group between these interfaces.
    pub fn about(&self, group: u32, ends: [u32; 2]) -> GroupFacts {
        let ((flow, bytes), (hosts, racks)) = (self.asked(group), self.between(ends));
        let route = if racks.0 == racks.1 {
            BundleRoute::Local
        } else {
            self.routes.get(group as usize).copied().unwrap_or(BundleRoute::Eps)
        };
        GroupFacts { hosts, racks, marked: self.marked.contains(group), route, flow, bytes }
    }

    /// Its first flow, and the bytes of all its flows.
    pub fn asked(&self, group: u32) -> (FlowId, u64) {
        match &self.asked {
            GroupBytes::Each(flows, bytes) => (flows[group as usize], bytes[group as usize]),
            GroupBytes::Shuffle(shuffle) => (FlowId(group), shuffle.bytes(group as usize).0),
        }
    }

    /// Changes the route of a group.
    pub fn set_route(&mut self, group: u32, route: BundleRoute) {
        let (at, is_plain) =
            (group as usize, matches!(route, BundleRoute::Local | BundleRoute::Eps));
        if is_plain && at >= self.routes.len() {
            return;
        }
        if at >= self.routes.len() {
            self.routes.resize(at + 1, BundleRoute::Eps);
        }
        self.routes[at] = route;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coflows::FlowSpec;
    use crate::coflows::flows::Flows;
    use crate::units::{BitRate, Bytes};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        /// The groups of a shuffle are the same as when they are added one by one.
        #[test]
        fn a_shuffle_is_its_flows(
            (m, r) in (5u32..9, 5u32..9),
            odd in prop::collection::vec((0u32..81, 1u64..9), 0..3),
            ways in prop::collection::vec((0u32..81, 0u32..3), 0..4),
        ) {
            let rate = BitRate::mbit(80);
            let t = Arc::new(Topology::uniform("t", 9, 2, rate, rate, vec![]));
            let bytes = |k: u32| odd.iter().find(|o| o.0 == k).map_or(u64::from(k % r), |o| o.1);
            let flow = |k: u32| FlowSpec { from: HostId(k / r), to: HostId(3 + k % r), bytes: Bytes(bytes(k)) };
            let list: Vec<FlowSpec> = (0..m * r).map(flow).collect();
            let flows = Flows::from(list.clone());
            prop_assume!(flows.as_shuffle().is_some());
            let shuffle = flows.as_shuffle().expect("assumed").clone();
            let (mut a, mut b) = (Roster::of(t.clone(), shuffle), Roster::new(t.clone()));
            let ends = |f: &FlowSpec| [f.from.0, t.hosts.len() as u32 + f.to.0];
            for (g, f) in (0u32..).zip(&list) {
                let racks = (t.rack_of(f.from), t.rack_of(f.to));
                let route = if racks.0 == racks.1 { BundleRoute::Local } else { BundleRoute::Eps };
                let about = GroupFacts { hosts: (f.from, f.to), racks, marked: g % 5 == 0, route, flow: FlowId(g), bytes: f.bytes.0 };
                a.push(g, &about);
                b.push(g, &about);
                prop_assert_eq!(a.about(g, ends(f)), about);
            }
            for (g, list) in ways.into_iter().filter(|w| w.0 < m * r) {
                let route = if list == 0 { BundleRoute::Eps } else { BundleRoute::List(list) };
                a.set_route(g, route);
                b.set_route(g, route);
            }
            for (g, f) in (0u32..).zip(&list) {
                prop_assert_eq!(a.about(g, ends(f)), b.about(g, ends(f)));
            }
        }
    }
}
