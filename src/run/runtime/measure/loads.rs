//! How much networks of packet switches really carry: more and more hosts send at the rate of
//! their interfaces, until one of them does not get it.

use std::io;
use std::sync::Arc;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::switches::{MARK, work};
use super::{CLOSE, COUNTED, HONEST, RACKS, WARM_UP, others, processor_time};
use crate::coflows::bounds::payload_rate;
use crate::coflows::elephants::Admit;
use crate::coflows::{CoflowSpec, FlowSpec};
use crate::ids::{CoflowId, HostId};
use crate::kernel::msg::Tcp;
use crate::kernel::network::{EmulatedNetwork, settle};
use crate::kernel::scale::Capacity;
use crate::kernel::traffic::Traffic;
use crate::kernel::{Clock, KernelFabric, Mechanism};
use crate::topology::graph::Routes;
use crate::topology::{Core, Topology};
use crate::units::{BitRate, Bytes, Span};

/// What a network carried of flows of one rate, each from a host of its own to a host of its own.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CarriedFlows {
    /// The topology's name.
    pub network: String,
    /// Rate of every host's interface.
    #[serde(rename = "rate_bps")]
    pub rate: BitRate,
    /// The most flows that all had their rate at the same time; 0 if the first few had not.
    pub flows: usize,
    /// Rate of those flows together.
    #[serde(rename = "total_bps")]
    pub total: BitRate,
    /// Whether every host sent, so that the network may carry more than was asked.
    pub all: bool,
    /// Mean number of links that one of those flows crosses, those of its hosts and their ToRs
    /// included.
    pub links: f64,
    /// Processors for each Gb/s and link, the hosts' part included; `None` where the kernel does
    /// not say, or other programs took as much.
    pub processors: Option<f64>,
}

/// Finds how many hosts of the topology's shape can send at `rate` at once, each to another. Only
/// hosts' interfaces limit the flows: the question is what this machine carries, not what the
/// topology's links do.
///
/// # Errors
/// What the kernel refused.
pub fn carried(
    topology: &Topology,
    rate: BitRate,
    mechanism: Mechanism,
) -> io::Result<CarriedFlows> {
    let topology = Arc::new(wide(topology, rate));
    let (pairs, steps) = (ring(topology.hosts.len()), steps(topology.hosts.len()));
    let links = links(&topology, &pairs);
    let first = first(&steps, rate, links.iter().sum::<usize>() as f64 / links.len() as f64);
    let found = climb(&topology, rate, mechanism, (&pairs, &links), &steps[first..])?;
    // Flows cannot be taken back, so what is less than expected is found in a network of its own.
    if found.flows == 0 && first > 0 {
        climb(&topology, rate, mechanism, (&pairs, &links), &steps[..first])
    } else {
        Ok(found)
    }
}

/// Lets more and more of the pairs send, until one of them has less than its rate.
fn climb(
    topology: &Arc<Topology>,
    rate: BitRate,
    mechanism: Mechanism,
    (pairs, links): (&[(HostId, HostId)], &[usize]),
    steps: &[usize],
) -> io::Result<CarriedFlows> {
    let tcp = Tcp::default();
    let mean = |n: usize| links[..n].iter().sum::<usize>() as f64 / n.max(1) as f64;
    let _settled = settle(super::switches::PATIENCE)?;
    let clock = Clock::start();
    let net = EmulatedNetwork::build(topology.clone(), MARK, Some(tcp))?;
    let fabric = KernelFabric::install(net, mechanism, Admit::Marked, clock)?;
    let traffic =
        Traffic::start(topology.clone(), fabric.host_namespaces()?, clock, tcp.congestion, |_| {})?;
    let idle = others(Span::millis(200));
    let enough = Bytes(rate.bytes_per_second().saturating_mul(120));
    let mut best = CarriedFlows {
        network: topology.name.clone(),
        rate,
        flows: 0,
        total: BitRate(0),
        all: false,
        links: mean(pairs.len()),
        processors: None,
    };
    let (mut sending, mut second_chance) = (0, true);
    for &n in steps {
        for (k, &(from, to)) in pairs.iter().enumerate().take(n).skip(sending) {
            let flows = vec![FlowSpec { from, to, bytes: enough }];
            let id = CoflowId::from(k);
            let spec = CoflowSpec::new(id, "", clock.now(), flows);
            traffic.launch(&spec, |_, _| false);
        }
        sending = n;
        let (mut share, mut average, mut busy) = look(&traffic, clock, n, rate, idle);
        // What disturbs a look only ever makes it worse.
        if share < HONEST && average > CLOSE && std::mem::take(&mut second_chance) {
            (share, average, busy) = look(&traffic, clock, n, rate, idle);
        }
        tracing::debug!(network = topology.name, %rate, n, share, average, "what flows got");
        if share < HONEST {
            break;
        }
        let total = BitRate(rate.0 * n as u64);
        let processors = busy.map(|p| p / (total.0 as f64 / 1e9) / mean(n));
        best = CarriedFlows {
            flows: n,
            total,
            all: n == pairs.len(),
            links: mean(n),
            processors,
            ..best
        };
    }
    Ok(best)
}

/// The share of its rate that the worst of the first `n` flows had, what the average had, and the
/// processors that worked.
fn look(
    traffic: &Traffic,
    clock: Clock,
    n: usize,
    rate: BitRate,
    idle: f64,
) -> (f64, f64, Option<f64>) {
    let arrived = || -> Vec<u64> {
        let mut by_flow = vec![0; n];
        for (id, pairs) in traffic.progress() {
            by_flow[id.index()] = pairs.iter().map(|p| p.bytes.0).sum();
        }
        by_flow
    };
    clock.sleep_until(clock.now() + WARM_UP);
    let (ticks, begun, before) = (processor_time(), clock.now(), arrived());
    clock.sleep_until(begun + COUNTED);
    let (ended, after) = (clock.now(), arrived());
    let busy = ticks.zip(processor_time()).and_then(|(b, a)| work(b, a, idle));
    let nominal = payload_rate(rate).0 as f64 * ended.since(begun).as_secs_f64() / 8.0;
    let shares: Vec<f64> =
        before.iter().zip(&after).map(|(b, a)| a.saturating_sub(*b) as f64 / nominal).collect();
    (
        shares.iter().copied().fold(f64::INFINITY, f64::min),
        shares.iter().sum::<f64>() / n as f64,
        busy,
    )
}

/// Numbers of flows that are tried.
fn steps(hosts: usize) -> Vec<usize> {
    let more = (0..).map(|k| 128 << k).take_while(|&n| n < hosts);
    RACKS.into_iter().chain(more).filter(|&n| n < hosts).chain([hosts]).collect()
}

/// The place in `steps` of the number of flows to begin with: a quarter of what this machine should
/// carry, in flows of `rate` that cross `links` links each.
fn first(steps: &[usize], rate: BitRate, links: f64) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let assumed = Capacity::assumed(cores);
    let all = if rate >= BitRate::mbit(1000) { assumed.fast } else { assumed.slow };
    // The table is of four links.
    let quarter = (all.0 as f64 / rate.0 as f64 / links) as usize;
    steps.iter().rposition(|&n| n <= quarter).unwrap_or(0)
}

/// All hosts in a ring, in a random but fixed order: each sends to the next.
fn ring(hosts: usize) -> Vec<(HostId, HostId)> {
    let mut order: Vec<HostId> = (0..hosts).map(HostId::from).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(1));
    (0..hosts).map(|k| (order[k], order[(k + 1) % hosts])).collect()
}

/// Links that each pair's packets cross.
fn links(topology: &Topology, pairs: &[(HostId, HostId)]) -> Vec<usize> {
    let routes = topology.eps.graph().map(Routes::new);
    let one = |&(from, to): &(HostId, HostId)| {
        let (a, z) = (topology.rack_of(from), topology.rack_of(to));
        // Between racks the two hosts' links and their ToRs' beside those between switches; within
        // one only the hosts'.
        if a == z { 2 } else { 4 + routes.as_ref().map_or(0, |r| r.way(a, z).len()) }
    };
    pairs.iter().map(one).collect()
}

/// The same switches with interfaces of `rate`, and with all other links so wide that they limit
/// nothing.
fn wide(topology: &Topology, rate: BitRate) -> Topology {
    let all = BitRate(rate.0 * topology.hosts.len() as u64 * 2);
    let mut t = topology.clone();
    t.planes.clear();
    t.hosts.iter_mut().for_each(|h| h.nic = rate);
    t.racks.iter_mut().for_each(|r| r.uplink = all);
    if let Core::Graph(graph) = &mut t.eps.core {
        graph.cables.iter_mut().for_each(|c| c.rate = all);
        graph.switches.iter_mut().for_each(|s| s.rate = None);
    }
    t
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::graph::Graph;

    fn tree(hosts: usize) -> Topology {
        let rate = BitRate::mbit(10);
        let mut t = Topology::uniform("tree", 4, hosts, rate, rate, vec![]);
        t.eps.core = Core::Graph(Box::new(Graph::hierarchy(3, 2, 1, rate, Some(rate))));
        t
    }

    #[test]
    fn only_interfaces_limit() {
        let t = wide(&tree(2), BitRate::mbit(100));
        assert!(t.hosts.iter().all(|h| h.nic == BitRate::mbit(100)));
        let graph = t.eps.graph().unwrap();
        let least =
            graph.cables.iter().map(|c| c.rate).chain(t.racks.iter().map(|r| r.uplink)).min();
        assert_eq!(least, Some(BitRate::mbit(1600)));
        assert!(graph.switches.iter().all(|s| s.rate.is_none()));
    }

    #[test]
    fn every_host_sends_and_receives_once() {
        let pairs = ring(8);
        for side in
            [pairs.iter().map(|p| p.0).collect::<Vec<_>>(), pairs.iter().map(|p| p.1).collect()]
        {
            let mut hosts: Vec<u32> = side.iter().map(|h| h.0).collect();
            hosts.sort_unstable();
            assert_eq!(hosts, (0..8).collect::<Vec<_>>());
        }
        assert!(pairs.iter().all(|(a, z)| a != z));
    }

    #[test]
    fn links_are_those_of_hosts_tors_and_cables() {
        let host = |n| HostId(n);
        let pairs = [(host(0), host(1)), (host(0), host(2)), (host(0), host(7))];
        assert_eq!(links(&tree(2), &pairs), [2, 6, 8]);
    }

    #[test]
    fn steps_end_with_all_hosts() {
        assert_eq!(steps(3), [2, 3]);
        assert_eq!(steps(1), [1]);
        let many = steps(512);
        assert_eq!(many[many.len() - 4..], [96, 128, 256, 512]);
        assert_eq!(
            (
                first(&[100_000, 200_000], BitRate::mbit(100), 4.0),
                first(&[1, 200_000], BitRate::mbit(100), 4.0)
            ),
            (0, 0)
        );
    }
}
