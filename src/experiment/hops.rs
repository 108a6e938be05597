//! Over how many switches the shuffles of a run went, read from its event log.

use std::collections::BTreeMap;

use super::measure::{HOP_MICROS, Measure};
use crate::coflows::CoflowSpec;
use crate::control::record::{Record, RecordedEvent};
use crate::ids::{CoflowId, HostId};
use crate::paths::choose::default_list;
use crate::paths::{Switches, Units};
use crate::plan::paths::Lists;
use crate::runtime::jobs::simulate::EventLogLine;
use crate::scheduler::SchedulerAction;
use crate::topology::Topology;
use crate::topology::graph::Routes;
use crate::units::{Bytes, Time};

/// The flows of a shuffle: their hosts and bytes.
type ShuffleFlows = Vec<(HostId, HostId, Bytes)>;

/// What the shuffles of a run cost a network of several switches.
pub struct Hops<'a> {
    topology: &'a Topology,
    net: Switches,
    routes: Routes,
    /// Lists that pairs of hosts have now, besides the default ways.
    lists: Lists,
    open: BTreeMap<CoflowId, ShuffleFlows>,
    /// Bytes times switches and relaying servers.
    cost: u128,
    /// Bytes of flows between racks times the switches and relaying servers that they cross: those
    /// within a rack cross no port of the graph.
    between: u128,
    bytes: u128,
    flows: u64,
    /// Hosts and switches on the ways of all flows, together.
    nodes: u64,
    first: Option<Time>,
    last: Time,
}

impl<'a> Hops<'a> {
    /// Of a run on this network; `None` if it has no graph of switches.
    pub fn new(topology: &'a Topology) -> Option<Self> {
        let routes = Routes::new(topology.eps.graph()?);
        let net = Switches::new(topology, Units::default());
        let (lists, open) = Default::default();
        Some(Self {
            topology,
            net,
            routes,
            lists,
            open,
            cost: 0,
            between: 0,
            bytes: 0,
            flows: 0,
            nodes: 0,
            first: None,
            last: Time::ZERO,
        })
    }

    /// Takes a line of the event log.
    pub fn hear(&mut self, line: &EventLogLine) {
        match line {
            EventLogLine::Jobs {
                at,
                job_action: SchedulerAction::StartCoflow { coflow, shuffle: true, .. },
            } => self.begins(*at, coflow),
            EventLogLine::Jobs { .. } => {}
            EventLogLine::Network(record) => self.record(record),
        }
    }

    /// A shuffle begins.
    pub fn begins(&mut self, at: Time, shuffle: &CoflowSpec) {
        self.first.get_or_insert(at);
        self.open
            .insert(shuffle.id, shuffle.flows.iter().map(|f| (f.from, f.to, f.bytes)).collect());
    }

    /// Takes a line of the controller's log.
    pub fn record(&mut self, record: &Record) {
        match &record.what {
            RecordedEvent::Paths { lists, .. } => {
                for s in lists {
                    self.lists.follow(s);
                }
            }
            // Lists that its end gives back are told of after it.
            RecordedEvent::CoflowFinished { id, .. } => {
                if let Some(flows) = self.open.remove(id) {
                    self.last = record.at;
                    flows.into_iter().for_each(|f| self.count(f));
                }
            }
            _ => {}
        }
    }

    /// Bytes that should leave all switches and relaying servers, without headers and
    /// acknowledgements.
    pub fn between(&self) -> u128 {
        self.between
    }

    fn count(&mut self, (from, to, bytes): (HostId, HostId, Bytes)) {
        let racks = (self.topology.rack_of(from), self.topology.rack_of(to));
        let list = match self.lists.of(from, to) {
            Some(list) => list.clone(),
            None => default_list(&self.net, &self.routes, racks, (from, to)),
        };
        // Servers that relay count: they have ports like switches.
        self.cost += u128::from(bytes.0) * list.0.len() as u128;
        let links = self.routes.along(&list.0, racks.0, racks.1).map_or(0, |way| way.len());
        self.between +=
            if racks.0 == racks.1 { 0 } else { u128::from(bytes.0) * (links as u128 + 1) };
        self.bytes += u128::from(bytes.0);
        self.flows += 1;
        self.nodes += list.0.len() as u64 + 2;
    }

    /// What was measured: cost in GB x switches, the mean route in hosts and switches, and bytes a
    /// second from the first shuffle's beginning to the last one's end.
    pub fn measures(&self) -> Vec<(Measure, f64)> {
        let time = self.last.since(self.first.unwrap_or(self.last)).as_secs_f64();
        let mut all = vec![(Measure::ShuffleCost, self.cost as f64 / 1e9)];
        let hops = (self.flows > 0).then(|| self.nodes as f64 / self.flows as f64);
        all.extend(
            hops.iter()
                .flat_map(|&n| [(Measure::RouteLength, n), (Measure::FlowDelay, n * HOP_MICROS)]),
        );
        all.extend((time > 0.0).then(|| (Measure::Throughput, self.bytes as f64 / time)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coflows::FlowSpec;
    use crate::ids::JobId;
    use crate::paths::List;
    use crate::plan::paths::Steer;
    use crate::topology::Core;
    use crate::topology::graph::Graph;
    use crate::units::{BitRate, Span};

    #[test]
    fn flows_count_with_the_lists_that_they_have_at_their_end() {
        // Two hosts at each of two access switches (0, 1) below two roots (2, 3).
        let mut t = Topology::uniform("t", 2, 2, BitRate(8), BitRate(8), vec![]);
        t.eps.core = Core::Graph(Box::new(Graph::hierarchy(2, 2, 2, BitRate(8), None)));
        let mut w = Hops::new(&t).unwrap();
        let flow =
            |from, to, bytes| FlowSpec { from: HostId(from), to: HostId(to), bytes: Bytes(bytes) };
        let coflow = |id, flows| CoflowSpec::new(CoflowId(id), "", Time(0), flows);
        let start = |coflow, shuffle| SchedulerAction::StartCoflow {
            coflow,
            job: JobId(0),
            stage: 1,
            shuffle,
        };
        let (a, read) = (
            start(coflow(0, vec![flow(0, 1, 10_000_000_000), flow(0, 3, 1_000_000_000)]), true),
            start(coflow(1, vec![flow(0, 3, 5)]), false),
        );
        w.hear(&EventLogLine::Jobs { at: Time::ZERO + Span::secs(1), job_action: &a });
        w.hear(&EventLogLine::Jobs { at: Time::ZERO + Span::secs(1), job_action: &read });
        let at = |secs, what| {
            EventLogLine::Network(Record { seq: 0, at: Time::ZERO + Span::secs(secs), what })
        };
        let finished = |id| RecordedEvent::CoflowFinished { id: CoflowId(id), cct: Span::secs(1) };
        let steer =
            Steer { from: HostId(0), to: HostId(3), ports: None, list: Some(List(vec![0, 3, 1])) };
        w.hear(&at(
            1,
            RecordedEvent::Paths { lists: vec![steer], saturated: 0, before: 0, after: 0 },
        ));
        w.hear(&at(2, finished(1)));
        w.hear(&at(3, finished(0)));
        // 10 GB over one switch, 1 GB over three; three and five nodes; 11 GB in two seconds. Reads
        // of blocks are left out.
        let all: BTreeMap<Measure, f64> = w.measures().into_iter().collect();
        assert_eq!(
            (all[&Measure::ShuffleCost], all[&Measure::RouteLength], all[&Measure::Throughput]),
            (13.0, 4.0, 5.5e9)
        );
        assert!(Hops::new(&Topology::uniform("t", 2, 2, BitRate(8), BitRate(8), vec![])).is_none());
    }
}
