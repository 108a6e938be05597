//! Lists of switches by rules and routes, for kernels that refuse bpf().
//!
//! At every switch a rule sends packets from a rack to a table of that rack, which holds its default ways to the other racks; a rule for a
//! host with a list of its own comes before it. A change is made from the last switch to the first, so that wherever a packet meets the
//! new list, all of the rest is there: none is lost and none goes in a circle. A packet on its way meanwhile may cross the beginning of
//! the old list and the end of the new one.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::Ipv4Addr;

use super::bpf::switches::Entry;
use super::msg::{self, Route};
use super::network::Network;
use super::nl::{NEW, REPLACE, Request};
use super::ways::Ways;
use super::{layout, queues};
use crate::ids::{HostId, RackId};
use crate::plan::paths::{Lists, PathError, Steer};
use crate::topology::addresses::{host_ip, rack_net};
use crate::units::{Span, Time};

/// The places of hosts' rules, before those of racks, before the main table.
pub const HOST_RULES: u32 = 2000;
/// The place of racks' rules.
pub const RACK_RULES: u32 = 3000;
/// The first table of a rack.
const RACK_TABLES: u32 = 1000;
/// The first table of a host with lists.
pub const HOST_TABLES: u32 = 10_000;

type Pair = (HostId, HostId);

/// What was written into the switches.
pub struct RouteLists {
    ways: Ways,
    lists: Lists,
    /// By pair: the switches that have a route for it.
    routes: BTreeMap<Pair, BTreeSet<u16>>,
    /// Of those, the ones that are not on the pair's list any more, and when packets that are on their way to them have passed.
    stale: BTreeMap<(Pair, u16), Time>,
    /// Hosts' rules, by switch and host.
    rules: BTreeSet<(u16, HostId)>,
    drain: Span,
}

impl RouteLists {
    /// Writes the default ways of all racks.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn install(net: &mut Network, ways: Ways) -> io::Result<Self> {
        let racks = ways.racks();
        let mut messages: Vec<Vec<Request>> = net.eps.iter().map(|_| vec![]).collect();
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
        let drain = queues::drain(&net.topology, net.eps.len().min(super::bpf::switches::HOPS));
        let (routes, stale, rules) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        Ok(Self { ways, lists: Lists::default(), routes, stale, rules, drain })
    }

    /// Changes the list of one pair of hosts; gives when all switches had it.
    ///
    /// # Errors
    /// Why not. If the kernel refused a route the pair has its old list, at worst with the new one's end.
    pub fn steer(&mut self, net: &mut Network, op: &Steer, now: Time) -> Result<Time, PathError> {
        let wanted = self.ways.wanted(op)?;
        let pair = (op.from, op.to);
        self.sweep(net, now).map_err(refused)?;
        if self.lists.of(op.from, op.to) == op.list.as_ref() {
            return Ok(now);
        }
        let (from, to) = (host_ip(&net.topology, op.from), host_ip(&net.topology, op.to));
        let table = HOST_TABLES + op.from.0;
        for e in wanted.iter().rev() {
            let mut v = vec![(route((to, 32), *e, table).add(), REPLACE)];
            if !self.rules.contains(&(e.switch, op.from)) {
                v.push((msg::rule_from((from, 32), table, HOST_RULES), NEW));
            }
            net.eps[usize::from(e.switch)].node.send(v).map_err(refused)?;
            self.rules.insert((e.switch, op.from));
            self.stale.remove(&(pair, e.switch));
            self.routes.entry(pair).or_default().insert(e.switch);
        }
        let on = |s: u16| op.list.is_some() && wanted.iter().any(|e| e.switch == s);
        let old = self.routes.get(&pair).into_iter().flatten().copied().filter(|&s| !on(s));
        self.stale.extend(old.map(|s| ((pair, s), now + self.drain)));
        self.lists.follow(op);
        Ok(now)
    }

    /// Takes routes away that no packet needs any more.
    fn sweep(&mut self, net: &mut Network, now: Time) -> io::Result<()> {
        let over: Vec<(Pair, u16)> = self.stale.iter().filter(|(_, until)| **until <= now).map(|(k, _)| *k).collect();
        for ((pair, s), to) in over.into_iter().map(|k| (k, host_ip(&net.topology, k.0.1))) {
            let gone = Route { table: Some(HOST_TABLES + pair.0.0), ..Route::new((to, 32), None, 0) };
            match net.eps[usize::from(s)].node.netlink.send(vec![(gone.delete(), 0)]) {
                // Another process has removed it.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                done => done?,
            }
            self.stale.remove(&(pair, s));
            self.routes.entry(pair).or_default().remove(&s);
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
fn route(to: (Ipv4Addr, u8), e: Entry, table: u32) -> Route<'static> {
    let via = e.rack.map_or(layout::EPS_GATEWAY, |r| layout::eps_neighbour(usize::from(r)));
    Route { table: Some(table), ..Route::new(to, Some(via), e.out) }
}
