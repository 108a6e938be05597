//! Lists of switches by rules and routes, for kernels that refuse bpf().
//!
//! At every switch a rule sends packets from a rack to a table of that rack, which holds its
//! default ways to the other racks. A rule for a host with a list of its own comes before it, and
//! before that a rule for a flow with one. A change is made from the last switch to the first, so
//! that wherever a packet meets the new list, all of the rest is there: none is lost and none goes
//! in a circle. A packet on its way meanwhile may cross the beginning of the old list and the end
//! of the new one.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::Ipv4Addr;

use super::egress::EgressMap;
use crate::bpf::switches::PathEntry;
use crate::ids::{HostId, RackId};
use crate::msg::{self, Route};
use crate::network::EmulatedNetwork;
use crate::nl::{NEW, NetlinkRequest, REPLACE};
use crate::plan::paths::{Lists, PathEnds, PathError, Steer};
use crate::topology::addresses::{host_ip, rack_net};
use crate::units::{Span, Time};
use crate::{layout, queues};

/// The places of flows' rules, before those of hosts.
pub const FLOW_RULES: u32 = 1500;
/// The places of hosts' rules, before those of racks, before the main table.
pub const HOST_RULES: u32 = 2000;
/// The place of racks' rules.
pub const RACK_RULES: u32 = 3000;
/// The first table of a rack.
const RACK_TABLES: u32 = 1000;
/// The first table of a host with lists.
pub const HOST_TABLES: u32 = 10_000;
/// The first table of a flow with a list.
pub const FLOW_TABLES: u32 = 100_000;
/// The most flows with lists: every packet is held against all of their rules.
const FLOWS: usize = 1000;

/// What was written into the switches.
pub struct RouteLists {
    ways: EgressMap,
    lists: Lists,
    /// By pair or flow: the switches that have a route for it.
    routes: BTreeMap<PathEnds, BTreeSet<u16>>,
    /// Of those, the ones that are not on its list any more, and when packets that are on their way
    /// to them have passed.
    stale: BTreeMap<(PathEnds, u16), Time>,
    /// Hosts' rules, by switch and host.
    rules: BTreeSet<(u16, HostId)>,
    /// By flow that has routes: the number of its table.
    tables: BTreeMap<PathEnds, u32>,
    drain: Span,
}

impl RouteLists {
    /// Writes the default ways of all racks.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn install(net: &mut EmulatedNetwork, ways: EgressMap) -> io::Result<Self> {
        let racks = ways.racks();
        let mut messages: Vec<Vec<NetlinkRequest>> = net.eps.iter().map(|_| vec![]).collect();
        for from in (0..racks).map(RackId::from) {
            let table = RACK_TABLES + from.0;
            let mut ruled = BTreeSet::new();
            for to in (0..racks).map(RackId::from).filter(|&to| to != from) {
                for e in ways.default(from, to) {
                    let m = &mut messages[usize::from(e.switch)];
                    if ruled.insert(e.switch) {
                        m.push((msg::rule_from((rack_net(from), 16), table, RACK_RULES), NEW));
                    }
                    m.push((route((rack_net(to), 16), e, table).add(), NEW));
                }
            }
        }
        for (s, m) in net.eps.iter_mut().zip(messages) {
            s.node.send(m)?;
        }
        let drain = queues::drain(&net.topology, net.eps.len().min(crate::bpf::switches::HOPS));
        let (lists, routes, stale, rules, tables) = Default::default();
        Ok(Self { ways, lists, routes, stale, rules, tables, drain })
    }

    /// Changes the list of one pair of hosts, or of one flow; gives when all switches had it.
    ///
    /// # Errors
    /// Why not. If the kernel refused a route the pair has its old list, at worst with the new
    /// one's end.
    pub fn steer(
        &mut self,
        net: &mut EmulatedNetwork,
        op: &Steer,
        now: Time,
    ) -> Result<Time, PathError> {
        let wanted = self.ways.wanted(op)?;
        let ends = op.ends();
        self.sweep(net, now).map_err(refused)?;
        if self.lists.at(ends) == op.list.as_ref() {
            return Ok(now);
        }
        let on = |s: u16| op.list.is_some() && wanted.iter().any(|e| e.switch == s);
        if op.list.is_none() && ends.ports.is_some() {
            self.join_pair(net, ends)?;
        } else {
            let table = self.table(ends)?;
            for &e in wanted.iter().rev() {
                self.write(net, ends, table, e)?;
            }
        }
        let old = self.routes.get(&ends).into_iter().flatten().copied().filter(|&s| !on(s));
        self.stale.extend(old.map(|s| ((ends, s), now + self.drain)));
        self.lists.follow(op);
        Ok(now)
    }

    /// A flow takes the way of its pair from now on: its rules go where it crosses that way, the
    /// last switch first. Elsewhere they stay until the packets that are on their way have arrived.
    fn join_pair(&mut self, net: &mut EmulatedNetwork, ends: PathEnds) -> Result<(), PathError> {
        let pair = PathEnds { ports: None, ..ends };
        let way = self.ways.wanted(&Steer::new(pair, self.lists.at(pair).cloned()))?;
        for e in way
            .iter()
            .rev()
            .filter(|e| self.routes.get(&ends).is_some_and(|r| r.contains(&e.switch)))
            .collect::<Vec<_>>()
        {
            self.take_away(net, ends, e.switch).map_err(refused)?;
        }
        Ok(())
    }

    /// The table of a pair's sender, or of a flow.
    fn table(&mut self, ends: PathEnds) -> Result<u32, PathError> {
        if ends.ports.is_none() {
            return Ok(HOST_TABLES + ends.from.0);
        }
        if let Some(&table) = self.tables.get(&ends) {
            return Ok(table);
        }
        let free = (FLOW_TABLES..).take(FLOWS).find(|t| self.tables.values().all(|used| used != t));
        let table = free.ok_or(PathError::Full(FLOWS))?;
        self.tables.insert(ends, table);
        Ok(table)
    }

    /// Writes the route of a switch on a list, and the rule that leads to it.
    fn write(
        &mut self,
        net: &mut EmulatedNetwork,
        ends: PathEnds,
        table: u32,
        e: PathEntry,
    ) -> Result<(), PathError> {
        let hosts = (host_ip(&net.topology, ends.from), host_ip(&net.topology, ends.to));
        let mut v = vec![(route((hosts.1, 32), e, table).add(), REPLACE)];
        let has_route = self.routes.get(&ends).is_some_and(|r| r.contains(&e.switch));
        match ends.ports {
            Some(p) if !has_route => {
                v.push((msg::rule_of_flow(hosts, (p.from, p.to), table, FLOW_RULES), NEW))
            }
            None if !self.rules.contains(&(e.switch, ends.from)) => {
                v.push((msg::rule_from((hosts.0, 32), table, HOST_RULES), NEW))
            }
            _ => {}
        }
        net.eps[usize::from(e.switch)].node.send(v).map_err(refused)?;
        if ends.ports.is_none() {
            self.rules.insert((e.switch, ends.from));
            // Flows of the pair that have no list any more take the pair's way here, too.
            let over = self.stale.keys().filter(|k| k.1 == e.switch).map(|k| k.0);
            let flows: Vec<PathEnds> = over
                .filter(|f| {
                    f.ports.is_some() && f.hosts() == ends.hosts() && self.lists.at(*f).is_none()
                })
                .collect();
            for flow in flows {
                self.take_away(net, flow, e.switch).map_err(refused)?;
            }
        }
        self.stale.remove(&(ends, e.switch));
        self.routes.entry(ends).or_default().insert(e.switch);
        Ok(())
    }

    /// Takes routes away that no packet needs any more, and with those of flows their rules.
    fn sweep(&mut self, net: &mut EmulatedNetwork, now: Time) -> io::Result<()> {
        let over: Vec<(PathEnds, u16)> =
            self.stale.iter().filter(|(_, until)| **until <= now).map(|(k, _)| *k).collect();
        over.into_iter().try_for_each(|(ends, s)| self.take_away(net, ends, s))
    }

    /// Takes the route of a pair or flow away from one switch, and with that of a flow its rule,
    /// which goes first.
    fn take_away(
        &mut self,
        net: &mut EmulatedNetwork,
        ends: PathEnds,
        switch: u16,
    ) -> io::Result<()> {
        let hosts = (host_ip(&net.topology, ends.from), host_ip(&net.topology, ends.to));
        let of_flow = ends.ports.zip(self.tables.get(&ends).copied());
        let table = of_flow.map_or(HOST_TABLES + ends.from.0, |(_, table)| table);
        let route = Route { table: Some(table), ..Route::new((hosts.1, 32), None, 0) };
        let rule = of_flow.map(|(p, table)| {
            msg::without_rule(msg::rule_of_flow(hosts, (p.from, p.to), table, FLOW_RULES))
        });
        for m in rule.into_iter().chain([route.delete()]) {
            match net.eps[usize::from(switch)].node.netlink.send(vec![(m, 0)]) {
                // Another process has removed it.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                done => done?,
            }
        }
        self.stale.remove(&(ends, switch));
        let left = self.routes.entry(ends).or_default();
        left.remove(&switch);
        if left.is_empty() {
            self.routes.remove(&ends);
            self.tables.remove(&ends);
        }
        Ok(())
    }

    /// The lists that pairs have by a change.
    pub fn steered(&self) -> Lists {
        self.lists.clone()
    }
}

fn refused(e: io::Error) -> PathError {
    PathError::Refused(e.to_string())
}

/// The route of a switch on a path.
fn route(to: (Ipv4Addr, u8), e: PathEntry, table: u32) -> Route<'static> {
    let via = e.rack.map_or(layout::EPS_GATEWAY, |r| layout::eps_neighbour(usize::from(r)));
    Route { table: Some(table), ..Route::new(to, Some(via), e.out) }
}
