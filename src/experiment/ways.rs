//! Over how many switches the shuffles of a run went, read from its event log.

use std::collections::BTreeMap;

use super::runs::Measure;
use crate::control::record::What;
use crate::ids::{CoflowId, HostId};
use crate::paths::choose::default_list;
use crate::paths::{List, Switches, Units};
use crate::runtime::jobs::simulate::Line;
use crate::scheduler::Action;
use crate::topology::Topology;
use crate::topology::graph::Routes;
use crate::units::{Bytes, Time};

/// The flows of a shuffle: their hosts and bytes.
type Flows = Vec<(HostId, HostId, Bytes)>;

/// What the shuffles of a run cost a network of several switches.
pub struct Ways<'a> {
    topology: &'a Topology,
    net: Switches,
    routes: Routes,
    /// Lists that pairs of hosts have now, besides the default ways.
    lists: BTreeMap<(HostId, HostId), List>,
    open: BTreeMap<CoflowId, Flows>,
    /// Bytes times switches.
    cost: u128,
    bytes: u128,
    flows: u64,
    /// Hosts and switches on the ways of all flows, together.
    nodes: u64,
    first: Option<Time>,
    last: Time,
}

impl<'a> Ways<'a> {
    /// Of a run on this network; `None` if it has no graph of switches.
    pub fn new(topology: &'a Topology) -> Option<Self> {
        let routes = Routes::new(topology.eps.graph()?);
        let net = Switches::new(topology, Units::default());
        let (lists, open) = Default::default();
        Some(Self { topology, net, routes, lists, open, cost: 0, bytes: 0, flows: 0, nodes: 0, first: None, last: Time::ZERO })
    }

    /// Takes a line of the event log.
    pub fn hear(&mut self, line: &Line) {
        match line {
            Line::Jobs { at, job_action: Action::StartCoflow { coflow, shuffle: true, .. } } => {
                self.first.get_or_insert(*at);
                self.open.insert(coflow.id, coflow.flows.iter().map(|f| (f.from, f.to, f.bytes)).collect());
            }
            Line::Jobs { .. } => {}
            Line::Network(record) => match &record.what {
                What::Paths { lists, .. } => {
                    for s in lists {
                        match &s.list {
                            Some(list) => drop(self.lists.insert((s.from, s.to), list.clone())),
                            None => drop(self.lists.remove(&(s.from, s.to))),
                        }
                    }
                }
                // Lists that its end gives back are told of after it.
                What::CoflowFinished { id, .. } => {
                    if let Some(flows) = self.open.remove(id) {
                        self.last = record.at;
                        flows.into_iter().for_each(|f| self.count(f));
                    }
                }
                _ => {}
            },
        }
    }

    fn count(&mut self, (from, to, bytes): (HostId, HostId, Bytes)) {
        let list = match self.lists.get(&(from, to)) {
            Some(list) => list.clone(),
            None => default_list(&self.net, &self.routes, (self.topology.rack_of(from), self.topology.rack_of(to)), (from, to)),
        };
        self.cost += u128::from(bytes.0) * u128::from(self.net.cost(&list));
        self.bytes += u128::from(bytes.0);
        self.flows += 1;
        self.nodes += list.0.len() as u64 + 2;
    }

    /// What was measured: cost in GB x switches, the mean route in hosts and switches, and bytes a second from the first shuffle's
    /// beginning to the last one's end.
    pub fn measures(&self) -> Vec<(Measure, f64)> {
        let time = self.last.since(self.first.unwrap_or(self.last)).as_secs_f64();
        let mut all = vec![(Measure::ShuffleCost, self.cost as f64 / 1e9)];
        all.extend((self.flows > 0).then(|| (Measure::RouteLength, self.nodes as f64 / self.flows as f64)));
        all.extend((time > 0.0).then(|| (Measure::Throughput, self.bytes as f64 / time)));
        all
    }
}
