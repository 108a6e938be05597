//! Coflows by their sums between racks, where flows cross more than interfaces, under max-min (`within: sums`).
//!
//! Of a coflow is known what goes from each rack to each other one, and which part of what its hosts in a rack send (or receive) is each
//! host's. All its flows from one rack to another are a *group* ([`teams`](super::teams)): they go on together, each in the proportion of
//! its bytes, and take of links between racks what as many flows of equal rates do. Flows of a group that have the same size, between
//! hosts that have as much to do as each other, do so anyway; else those that are through sooner would leave the others more.
//!
//! An event is a coflow that comes, or a group that is through. Of s senders and r receivers in R racks, that are at most R x R, and not
//! s x r.

use std::collections::{BTreeMap, BTreeSet};

use super::FlowFinished;
use super::bundle::{BYTE, Bundle, Underway};
use super::engine::{Engine, Part, World};
use super::links::Links;
use super::paced::{Paced, Shares as Paces, paced_engine};
use super::sums;
use super::teams::Shares;
use crate::coflows::CoflowSpec;
use crate::coflows::flows::Flows;
use crate::coflows::network::{Network, NetworkKind, Within};
use crate::ids::{CoflowId, FlowId, HostId, RackId};
use crate::topology::Topology;

#[cfg(test)]
mod tests;

/// Whether a network can be known so: under max-min, where ports have one queue and all flows between two racks take the same way.
pub fn serves(network: Network, links: &Links) -> bool {
    let alike = links.topology().eps.graph().is_none() && links.queues().is_none();
    network.kind == NetworkKind::MaxMin && network.within == Within::Sums && alike
}

/// A coflow under way.
struct Coflow {
    id: CoflowId,
    flows: Flows,
    /// Places of flows that needed no time, in order.
    free: Vec<u32>,
    /// By pair of racks: its group, and its bytes in units.
    groups: BTreeMap<(RackId, RackId), (u32, u128)>,
    /// How many groups are not through.
    open: usize,
    teams: Vec<u32>,
}

/// Coflows, and their groups as bundles: one for each, with one flow that stands for all.
pub struct Groups {
    paced: Paced,
    coflows: BTreeMap<CoflowId, Coflow>,
    /// Bundles that may be used again.
    free: Vec<u32>,
    /// By host.
    racks: Vec<RackId>,
}

impl Groups {
    /// No coflows on these links.
    pub fn new(links: &Links) -> Self {
        let t = links.topology();
        let hosts = |first: usize| t.racks.iter().map(move |r| t.hosts_of(r.id).iter().map(|h| (first + h.id.index()) as u32).collect());
        let sides = hosts(0).chain(hosts(t.hosts.len())).collect();
        let shares = Paces::Grouped(Shares::new(links.capacity(), sides));
        Self {
            paced: Paced::new(shares, links.capacity().len()),
            coflows: BTreeMap::new(),
            free: Vec::new(),
            racks: t.hosts.iter().map(|h| h.rack).collect(),
        }
    }

    fn shares(&mut self) -> &mut Shares {
        match &mut self.paced.shares {
            Paces::Grouped(shares) => shares,
            _ => unreachable!("groups have shares of their own"),
        }
    }

    /// The teams of a coflow, by side. O(hosts + flows that need no time).
    fn teams(&mut self, spec: &CoflowSpec, free: &[u32], topology: &Topology) -> BTreeMap<u32, u32> {
        let (hosts, racks) = (topology.hosts.len(), topology.rack_count());
        let mut sums = spec.flows.sums().map(|list| {
            let mut of = vec![0u128; hosts];
            list.into_iter().for_each(|(host, bytes)| of[host.index()] = bytes);
            of
        });
        for f in free.iter().map(|&k| spec.flows.at(k as usize)) {
            for (side, host) in sums.iter_mut().zip([f.from, f.to]) {
                side[host.index()] -= u128::from(f.bytes.0);
            }
        }
        let mut teams = BTreeMap::new();
        for (k, of) in sums.iter().enumerate() {
            for rack in &topology.racks {
                let some = topology.hosts_of(rack.id).iter().map(|h| ((k * hosts + h.id.index()) as u32, of[h.id.index()]));
                let some: Vec<(u32, u128)> = some.filter(|h| h.1 > 0).collect();
                if !some.is_empty() {
                    let side = (k * racks + rack.id.index()) as u32;
                    teams.insert(side, self.shares().team(side, &some));
                }
            }
        }
        teams
    }

    /// A group, which takes part from the next sharing on.
    fn group(&mut self, bundle: Bundle, teams: [u32; 2]) -> u32 {
        let racks = bundle.racks;
        let b = match self.free.pop() {
            Some(b) => {
                self.paced.bundles[b as usize] = bundle;
                b
            }
            None => {
                self.paced.bundles.push(bundle);
                (self.paced.bundles.len() - 1) as u32
            }
        };
        self.paced.by_racks.entry(racks).or_default().push(b);
        self.shares().join(b, teams);
        b
    }

    /// Finishes what is due; says whether anything is.
    fn finish_all(&mut self, world: &mut World) -> bool {
        let Self { paced, coflows, free, .. } = self;
        paced.finish_all(world, |paced, b, link, world| {
            paced.book(b, world);
            let service = paced.service(b, world.now);
            let bundle = &mut paced.bundles[b as usize];
            let (width, (racks, route, ahead)) = (u128::from(bundle.width), bundle.at());
            let Some((f, over_ocs, beyond)) = bundle.pop() else { return };
            let c = coflows.get_mut(&f.coflow).expect("a group has a coflow");
            let size = c.groups[&racks].1;
            // Flows are rounded up to whole units.
            let more = width * f.size - size;
            world.ledger.carried(racks, route, 0, beyond + more);
            world.ledger.close(f.coflow, racks, size, (width * over_ocs).min(size));
            c.open -= 1;
            if c.open == 0 {
                let at = paced.when(link, f.due, ahead, world.now);
                match world.over.as_mut() {
                    Some(over) => over.push((c.id, at)),
                    None => world.done.extend(c.flows.beside(&c.free).map(|(k, _)| FlowFinished { coflow: c.id, flow: k.into(), at })),
                }
            }
            leave(paced, b, service, world);
            free.push(b);
            if c.open == 0 {
                retire(paced, coflows.remove(&f.coflow));
            }
        })
    }
}

/// Takes a group away that has no flow any more.
fn leave(paced: &mut Paced, b: u32, service: u128, world: &World) {
    paced.rest(b, service);
    paced.enter(b, world);
    let racks = paced.bundles[b as usize].racks;
    if let Some(list) = paced.by_racks.get_mut(&racks) {
        list.retain(|&other| other != b);
    }
}

/// The teams of a coflow that is over are no more.
fn retire(paced: &mut Paced, coflow: Option<Coflow>) {
    if let Paces::Grouped(shares) = &mut paced.shares {
        coflow.into_iter().flat_map(|c| c.teams).for_each(|team| shares.disband(team));
    }
}

impl Engine for Groups {
    fn add(&mut self, coflow: &CoflowSpec, marked: &[bool], world: &mut World) {
        let topology = world.links.shared_topology();
        let free = sums::finish_free(coflow, world);
        // By pair of racks: bytes, flows, and the place of the first one.
        let racks = topology.rack_count();
        let mut cells = vec![(0u128, 0u32, 0usize); racks * racks];
        for (k, f) in coflow.flows.beside(&free) {
            let cell = &mut cells[topology.rack_of(f.from).index() * racks + topology.rack_of(f.to).index()];
            *cell = (cell.0 + u128::from(f.bytes.0), cell.1 + 1, if cell.1 == 0 { k } else { cell.2 });
        }
        let teams = self.teams(coflow, &free, &topology);
        let mut groups = BTreeMap::new();
        for (cell, (bytes, flows, first)) in cells.into_iter().enumerate().filter(|(_, c)| c.1 > 0) {
            let (from, to) = (cell / racks, cell % racks);
            let pair = (RackId::from(from), RackId::from(to));
            let f = coflow.flows.at(first);
            let mut bundle = Bundle::new(f.from, f.to, pair, marked.get(first).copied().unwrap_or(false));
            bundle.width = flows;
            bundle.push(coflow.id, first.into(), (bytes * BYTE).div_ceil(flows.into()));
            let team = |side: usize| teams[&(side as u32)];
            let b = self.group(bundle, [team(from), team(racks + to)]);
            groups.insert(pair, (b, bytes * BYTE));
            self.paced.active.insert(b);
            self.paced.enter(b, world);
        }
        if groups.is_empty() {
            return;
        }
        world.ledger.open_all(coflow.id, groups.len());
        let teams = teams.into_values().collect();
        let open = groups.len();
        self.coflows.insert(coflow.id, Coflow { id: coflow.id, flows: coflow.flows.clone(), free, groups, open, teams });
        self.paced.rerate(world);
    }

    fn left(&self, each: &mut dyn FnMut(CoflowId, FlowId, u128)) {
        for c in self.coflows.values() {
            // By pair of racks: bytes of the flows before.
            let mut before = BTreeMap::<(RackId, RackId), u128>::new();
            for (k, f) in c.flows.beside(&c.free) {
                let pair = (self.racks[f.from.index()], self.racks[f.to.index()]);
                let (b, size) = c.groups[&pair];
                let bundle = &self.paced.bundles[b as usize];
                // A group that is through may have given its bundle to another coflow's.
                let left = bundle.flows().find(|f| f.coflow == c.id).map_or(0, |f| left(bundle, f, size));
                let bytes = before.entry(pair).or_default();
                let up_to = |bytes: u128| part(left, bytes, size / BYTE);
                let less = up_to(*bytes);
                *bytes += u128::from(f.bytes.0);
                each(c.id, k.into(), up_to(*bytes) - less);
            }
        }
    }

    fn cancel(&mut self, coflow: CoflowId, world: &mut World) {
        let Some(c) = self.coflows.remove(&coflow) else { return };
        for (&racks, &(b, size)) in &c.groups {
            let is_there = self.paced.active.contains(b) && self.paced.bundles[b as usize].flows().any(|f| f.coflow == coflow);
            if !is_there {
                continue;
            }
            self.paced.book(b, world);
            let service = self.paced.service(b, world.now);
            let bundle = &mut self.paced.bundles[b as usize];
            if let Some(f) = bundle.flows().next() {
                let sent = size - left(bundle, f, size);
                world.ledger.close(coflow, racks, sent, over_ocs(bundle, f, sent));
            }
            bundle.cancel(coflow);
            leave(&mut self.paced, b, service, world);
            self.free.push(b);
        }
        retire(&mut self.paced, Some(c));
        self.paced.rerate(world);
    }

    paced_engine!();

    fn steer(&mut self, _: &BTreeSet<(HostId, HostId)>, _: &mut World) {}

    fn parts(&self, each: &mut dyn FnMut(Part)) {
        for b in self.paced.underway() {
            for f in b.flows() {
                let size = self.coflows[&f.coflow].groups[&b.racks].1;
                let left = left(b, f, size);
                let sent = size - left;
                let (coflow, flow, flows, hosts) = (f.coflow, f.flow, b.width, (b.from, b.to));
                each(Part { coflow, flow, flows, hosts, sent, over_ocs: over_ocs(b, f, sent), left });
            }
        }
    }
}

/// `bytes` of `all` of what is left, rounded down.
fn part(left: u128, bytes: u128, all: u128) -> u128 {
    left / all * bytes + left % all * bytes / all
}

/// What a group of this size has still to send, in units.
fn left(group: &Bundle, f: &Underway, size: u128) -> u128 {
    (group.left(f) * u128::from(group.width)).min(size)
}

/// What of all that it has sent went over circuits, in units.
fn over_ocs(group: &Bundle, f: &Underway, sent: u128) -> u128 {
    (group.over_ocs(f) * u128::from(group.width)).min(sent)
}
