//! A network scheduler is one type: the example of docs/extending.md.

use super::youngest_first::YoungestFirst;
use super::*;
use crate::coflows::FlowSpec;
use crate::fabric::sim::{Settings, SimFabric};
use crate::topology::Topology;
use crate::units::{BitRate, Span};

/// Two coflows of a megabyte each over one link of 80 Mb/s, the second 10 ms after the first.
fn ends(discipline: Option<Box<dyn Discipline>>) -> Vec<(u32, Time)> {
    let rate = BitRate::mbit(80);
    let topology = std::sync::Arc::new(Topology::uniform("t", 2, 1, rate, rate, vec![]));
    let network = Network { kind: crate::coflows::network::NetworkKind::Fifo, ..Network::default() };
    let mut f = SimFabric::new(topology, Settings { network, ..Settings::default() });
    if let Some(discipline) = discipline {
        f.engine = Box::new(Ordered::under(discipline, f.links.capacity()));
    }
    let mut ended = vec![];
    for (k, at) in [(0, Time::ZERO), (1, Time::ZERO + Span::millis(10))] {
        ended.extend(f.advance(at));
        let flow = FlowSpec { from: HostId(0), to: HostId(1), bytes: Bytes(1_000_000) };
        let (name, priorities) = (String::new(), Default::default());
        let coflow = CoflowSpec { id: CoflowId(k), name, arrival: at, weight: 1, priorities, flows: vec![flow] };
        f.add_flows(&coflow, &[], at);
    }
    ended.extend(f.advance(Time::ZERO + Span::secs(1)));
    ended.into_iter().map(|e| (e.coflow.0, e.at)).collect()
}

#[test]
fn the_youngest_goes_first_and_the_older_one_goes_on_behind_it() {
    let first_come = ends(None);
    let alone = first_come[0].1.since(Time::ZERO);
    assert_eq!(first_come, [(0, Time::ZERO + alone), (1, Time::ZERO + alone * 2)]);
    let youngest_first = ends(Some(Box::new(YoungestFirst)));
    assert_eq!(youngest_first, [(1, Time::ZERO + Span::millis(10) + alone), (0, Time::ZERO + alone * 2)]);
}
