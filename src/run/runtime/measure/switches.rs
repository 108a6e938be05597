//! What this machine carries through networks of packet switches: goodput, processor time, building
//! and taking down, changes of lists.

use std::io;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use serde::Serialize;

use super::{others, processor_time};
use crate::coflows::bounds::payload_rate;
use crate::coflows::elephants::Admit;
use crate::coflows::{CoflowSpec, FlowSpec};
use crate::fabric::Fabric;
use crate::ids::{CoflowId, HostId, RackId};
use crate::kernel::msg::Tcp;
use crate::kernel::network::{EmulatedNetwork, settle};
use crate::kernel::traffic::{Traffic, TrafficEvent};
use crate::kernel::{Clock, KernelFabric, Mechanism};
use crate::paths::List;
use crate::plan::paths::Steer;
use crate::topology::graph::{Graph, Level, Routes};
use crate::topology::{Core, Topology};
use crate::units::{BitRate, Bytes, Span};

/// The mark of networks that are measured.
pub(super) const MARK: &str = "heliostat:doctor";
/// A flow that takes longer has met something else than its links.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// Beyond this share of all processors what other programs take would hide what a flow takes.
const BUSY: f64 = 0.1;
/// How often a list is changed.
const CHANGES: usize = 400;

/// One TCP flow through switches whose links have one rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Goodput {
    /// Rate of every link.
    #[serde(rename = "rate_bps")]
    pub rate: BitRate,
    /// Switches of the graph on its way.
    pub switches: usize,
    /// Share of the link's nominal payload rate that it got, 0..=1; a hair above 1 while queues'
    /// bursts last.
    pub share: f64,
    /// Processors for each Gb/s and link, the hosts' part included; `None` where the kernel does
    /// not say, or other programs took as much.
    pub processors: Option<f64>,
}

/// A network that was built and taken down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Built {
    /// The topology's name.
    pub network: String,
    /// Namespaces.
    pub nodes: usize,
    /// Pairs of interfaces: those of hosts, of ToRs and between switches.
    pub links: usize,
    /// How long building took, queues and programs included.
    #[serde(rename = "up_ns")]
    pub up: Span,
    /// How long taking down took, as far as the process waits for it.
    #[serde(rename = "down_ns")]
    pub down: Span,
    /// How long until the kernel had taken all of it down.
    #[serde(rename = "gone_ns")]
    pub gone: Span,
}

/// How long changes of a list of five switches took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ListChangeTimes {
    /// Half of them took no longer.
    #[serde(rename = "median_ns")]
    pub median: Span,
    /// 99 of 100 took no longer.
    #[serde(rename = "p99_ns")]
    pub p99: Span,
}

/// Goodput through one, three and five switches.
///
/// # Errors
/// What the kernel refused, or a flow that does not end.
pub fn goodput(rate: BitRate, mechanism: Mechanism) -> io::Result<Vec<Goodput>> {
    // Two racks at each switch of two pods below one root.
    let levels = [2, 2].map(|join| Level { join, uplink: rate });
    let topology = on(Graph::tree(8, &levels, None), rate);
    let (clock, racks, tcp) = (Clock::start(), topology.rack_count(), Tcp::default());
    debug_assert_eq!(racks, 8);
    let net = EmulatedNetwork::build(topology.clone(), MARK, Some(tcp))?;
    let fabric = KernelFabric::install(net, mechanism, Admit::Marked, clock)?;
    let (tell, heard) = mpsc::channel();
    let traffic =
        Traffic::start(topology, fabric.host_namespaces()?, clock, tcp.congestion, move |e| {
            drop(tell.send(e))
        })?;
    let mut all = vec![];
    for (k, (to, switches)) in [(1, 1), (2, 3), (4, 5)].into_iter().enumerate() {
        // A second's worth, and while nothing is sent, what the machine does beside it.
        let bytes = Bytes(rate.bytes_per_second());
        let idle = others(Span::millis(200));
        let (before, start) = (processor_time(), clock.now());
        let flows = vec![FlowSpec { from: HostId(0), to: HostId(to), bytes }];
        let id = CoflowId::from(k);
        let spec = CoflowSpec::new(id, "", start, flows);
        traffic.launch(&spec, |_, _| false);
        let at = loop {
            match heard.recv_timeout(PATIENCE).map_err(io::Error::other)? {
                TrafficEvent::Finished { at, .. } => break at,
                TrafficEvent::Failed { why, .. } => return Err(io::Error::other(why)),
                TrafficEvent::FlowFinished { .. } => {}
            }
        };
        let (got, after) = (bytes.0 as f64 * 8.0 / at.since(start).as_secs_f64(), processor_time());
        // Beside the cables there are four links: of the two hosts, and of their ToRs.
        let links = (switches - 1 + 4) as f64;
        let processors =
            before.zip(after).filter(|_| idle < BUSY).and_then(|(b, a)| work(b, a, idle));
        let processors = processors.map(|p| p / (got / 1e9) / links);
        all.push(Goodput { rate, switches, share: got / payload_rate(rate).0 as f64, processors });
    }
    Ok(all)
}

/// The least share of all processors that ticks tell apart from nothing.
const TOLD: f64 = 0.02;

/// Processors that worked between two readings of busy and all ticks, beyond the share that was
/// busy before; `None` if they are no more than what was busy before, or than ticks can tell.
pub(super) fn work(
    (busy, all): (u64, u64),
    (busy_now, all_now): (u64, u64),
    idle: f64,
) -> Option<f64> {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get()) as f64;
    let share = (busy_now - busy) as f64 / (all_now - all).max(1) as f64 - idle;
    (share > idle.max(TOLD)).then_some(share * cores)
}

/// Builds a network and takes it down three times, each time after what was taken down before has
/// gone; the one that was built in the median time.
///
/// # Errors
/// What the kernel refused.
pub fn build(topology: &Topology, mechanism: Mechanism) -> io::Result<Built> {
    let mut all =
        (0..3).map(|_| build_once(topology, mechanism)).collect::<io::Result<Vec<_>>>()?;
    all.sort_by_key(|b| b.up);
    Ok(all.swap_remove(1))
}

fn build_once(topology: &Topology, mechanism: Mechanism) -> io::Result<Built> {
    let _settled = settle(PATIENCE)?;
    let clock = Clock::start();
    let fabric = KernelFabric::install(
        EmulatedNetwork::build(Arc::new(topology.clone()), MARK, None)?,
        mechanism,
        Admit::Marked,
        clock,
    )?;
    let (up, nodes) = (clock.now(), fabric.network().nodes().count());
    let cables = topology.eps.graph().map_or(0, |g| g.cables.len());
    let links = topology.hosts.len() + topology.rack_count() * (1 + topology.planes.len()) + cables;
    drop(fabric);
    let down = clock.now().since(up);
    let _gone = settle(PATIENCE)?;
    Ok(Built {
        network: topology.name.clone(),
        nodes,
        links,
        up: Span(up.0),
        down,
        gone: clock.now().since(up),
    })
}

/// Has a list of five switches go over one core switch and the other of a fat tree, by turns.
///
/// # Errors
/// What the kernel refused.
pub fn changes(mechanism: Mechanism) -> io::Result<ListChangeTimes> {
    let topology = on(Graph::fat_tree(4, BitRate::mbit(1000), None), BitRate::mbit(1000));
    let graph = topology.eps.graph().expect("a fat tree");
    let (from, to) = (HostId(0), HostId(7));
    let way = Routes::new(graph).way(RackId(0), RackId(7));
    let own: Vec<u32> = std::iter::once(graph.racks[0]).chain(way.iter().map(|h| h.to)).collect();
    let joined = |a: u32, b: u32| graph.cables.iter().any(|c| c.ends == (a, b) || c.ends == (b, a));
    let core = (0..graph.switches.len() as u32)
        .find(|&s| s != own[2] && joined(own[1], s) && joined(s, own[3]));
    let mut other = own.clone();
    other[2] = core.expect("two core switches join two aggregation switches");
    let clock = Clock::start();
    let mut fabric = KernelFabric::install(
        EmulatedNetwork::build(topology.clone(), MARK, None)?,
        mechanism,
        Admit::Marked,
        clock,
    )?;
    let mut took = Vec::with_capacity(CHANGES);
    for k in 0..CHANGES {
        let list = Some(List(if k % 2 == 0 { other.clone() } else { own.clone() }));
        let begun = clock.now();
        let made = fabric.steer(&[Steer { from, to, ports: None, list }], begun).remove(0);
        took.push(clock.now().since(begun));
        made.outcome.map_err(io::Error::other)?;
    }
    took.sort_unstable();
    Ok(ListChangeTimes { median: took[CHANGES / 2], p99: took[CHANGES * 99 / 100] })
}

/// One host a rack; only the graph's links are of `rate`.
fn on(graph: Graph, rate: BitRate) -> Arc<Topology> {
    let wide = BitRate(rate.0 * 2);
    let mut t = Topology::uniform("doctor", graph.racks.len(), 1, wide, rate, vec![]);
    t.eps.core = Core::Graph(Box::new(graph));
    Arc::new(t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_what_is_beyond_the_idle_share() {
        let cores = std::thread::available_parallelism().unwrap().get() as f64;
        assert!((work((100, 1000), (300, 2000), 0.05).unwrap() - 0.15 * cores).abs() < 1e-9);
        assert_eq!(work((100, 1000), (290, 2000), 0.1), None, "as much was busy before");
        assert_eq!(work((100, 1000), (110, 2000), 0.0), None, "too little to tell");
        assert_eq!(work((100, 1000), (100, 1000), 0.0), None);
    }
}
