//! Graphs of packet switches: every flow crosses exactly the switches of its list, and changes of
//! lists lose nothing.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use heliostat::coflows::bounds::payload_rate;
use heliostat::coflows::elephants::Admit;
use heliostat::control::policy::CircuitPolicy;
use heliostat::fabric::{Fabric, PortTo, SwitchPort};
use heliostat::ids::{HostId, PlaneId, RackId};
use heliostat::kernel::msg::Route;
use heliostat::kernel::nl::Netlink;
use heliostat::kernel::route_lists::HOST_TABLES;
use heliostat::kernel::{Labelled, Mechanism, netns, queues};
use heliostat::paths::{List, Switches, Units};
use heliostat::plan::paths::{Lists, PathEnds, PathError, Ports, Steer};
use heliostat::topology::addresses::host_ip;
use heliostat::topology::graph::{Cable, Graph, Routes, Switch, Tier};
use heliostat::topology::{Core, Plane, StopMode, Topology};
use heliostat::units::{BitRate, Span};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::daemon::Daemon;
use super::support::{Bench, each_mechanism, rate};

/// A topology on a graph with `hosts` hosts at each rack; NICs and uplinks of `rate`, and `planes`
/// OCS planes.
pub fn on(graph: Graph, hosts: usize, rate: BitRate, planes: u32) -> Topology {
    let plane = |k| Plane {
        id: PlaneId(k),
        rate,
        delta: Span::millis(1),
        stop: StopMode::NotAllStop,
        duplex: false,
    };
    let uplink = BitRate(rate.0 * hosts as u64);
    let mut t = Topology::uniform(
        "lists",
        graph.racks.len(),
        hosts,
        rate,
        uplink,
        (0..planes).map(plane).collect(),
    );
    t.eps.core = Core::Graph(Box::new(graph));
    t
}

/// All lists between two hosts of a fat tree that go up and then down.
pub fn lists(net: &Switches, graph: &Graph, from: HostId, to: HostId) -> Vec<List> {
    let (a, b) = (net.stands(from), net.stands(to));
    let near = |s: u32| -> Vec<u32> {
        let ends = graph.cables.iter().map(|c| c.ends);
        ends.filter_map(|(x, y)| {
            if x == s {
                Some(y)
            } else if y == s {
                Some(x)
            } else {
                None
            }
        })
        .collect()
    };
    let up: Vec<Vec<u32>> = near(a).into_iter().map(|m| vec![a, m]).collect();
    let core =
        up.iter().flat_map(|v| near(v[1]).into_iter().map(|c| [v.clone(), vec![c]].concat()));
    let down =
        core.flat_map(|v| near(v[2]).into_iter().map(move |m| [v.clone(), vec![m, b]].concat()));
    let short = up.iter().map(|v| [v.clone(), vec![b]].concat());
    short.chain(down).map(List).filter(|l| net.check(l, (from, to)).is_ok()).collect()
}

fn steer(b: &mut Bench, from: HostId, to: HostId, list: Option<List>) -> Result<(), PathError> {
    let now = b.clock.now();
    b.fabric.steer(&[Steer { from, to, ports: None, list }], now).remove(0).outcome.map(drop)
}

/// Bytes that left every switch by its links to other switches and to racks.
pub fn carried(b: &mut Bench) -> Vec<u64> {
    b.fabric
        .switches()
        .expect("counters")
        .iter()
        .map(|s| s.ports.iter().map(|p| p.bytes).sum())
        .collect()
}

/// Waits until every packet that entered the graph has come out or was dropped at a full queue.
pub fn settled(b: &mut Bench) -> Labelled {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let l = b.fabric.labelled().expect("counters").expect("labels");
        if l.admitted == l.delivered + l.dropped {
            return l;
        }
        assert!(Instant::now() < deadline, "packets are missing: {l:?}");
        b.clock.sleep_until(b.clock.now() + Span::millis(5));
    }
}

/// Where datagrams go in [`flows_of_the_same_two_hosts_have_lists_of_their_own`].
const SINK: u16 = 5201;

/// Sends datagrams from a port of one host to [`SINK`] of another, and waits until all have
/// arrived.
fn datagrams(b: &Bench, t: &Topology, (from, to): (HostId, HostId), port: u16, count: usize) {
    let inside = |host: HostId, bind: u16| {
        let own = &t.hosts[host.index()];
        let name = format!("h{}-{}", own.rack.0, own.index);
        let ns = b
            .fabric
            .network()
            .namespace(&name)
            .expect("a host")
            .as_fd()
            .try_clone_to_owned()
            .expect("a descriptor");
        netns::within(ns.as_fd(), || UdpSocket::bind((host_ip(t, host), bind))).expect("bound")
    };
    let (sender, receiver) = (inside(from, port), inside(to, SINK));
    receiver.set_read_timeout(Some(Duration::from_secs(10))).expect("a deadline");
    for k in 0..count {
        sender.send_to(&[k as u8; 1000], (host_ip(t, to), SINK)).expect("sent");
    }
    let mut room = [0; 2000];
    (0..count).for_each(|k| {
        assert_eq!(receiver.recv(&mut room).expect("it arrives"), 1000, "datagram {k}")
    });
}

/// What became of numbered packets.
#[derive(Debug)]
struct Numbered {
    sent: usize,
    missing: usize,
    twice: usize,
    /// Came after one with a higher number.
    late: usize,
}

/// Sends numbered datagrams from a host to another, 5,000 a second, until `stop`; the queues on
/// their way never fill.
fn numbered(b: &Bench, from: HostId, to: HostId, stop: Arc<AtomicBool>) -> JoinHandle<Numbered> {
    let t = &b.fabric.network().topology;
    let socket = |host: HostId, at: &str| {
        let ns = b.fabric.network().namespace(&t.host_name(host)).expect("a host");
        netns::within(ns, || UdpSocket::bind(at)).expect("a socket")
    };
    let (sender, receiver) = (socket(from, "0.0.0.0:0"), socket(to, "0.0.0.0:7777"));
    sender.connect((host_ip(t, to), 7777)).expect("a route");
    receiver.set_read_timeout(Some(Duration::from_millis(500))).expect("a time-out");
    let clock = b.clock;
    let sending = std::thread::spawn(move || {
        let mut sent = 0usize;
        while !stop.load(Relaxed) {
            sender.send(&sent.to_be_bytes()).expect("sent");
            sent += 1;
            clock.sleep_until(clock.now() + Span::micros(200));
        }
        sent
    });
    std::thread::spawn(move || {
        let (mut seen, mut highest, mut twice, mut late) = (BTreeSet::new(), 0, 0, 0);
        let mut number = [0; 8];
        loop {
            let over = sending.is_finished();
            if receiver.recv(&mut number).is_ok() {
                let n = usize::from_be_bytes(number);
                twice += usize::from(!seen.insert(n));
                late += usize::from(n < highest);
                highest = highest.max(n);
            } else if over {
                break;
            }
        }
        let sent = sending.join().expect("the sender ended well");
        Numbered { sent, missing: sent - seen.len(), twice, late }
    })
}

#[test]
fn a_route_that_somebody_else_removed_stops_no_change() {
    each_mechanism("a_route_that_somebody_else_removed_stops_no_change", |mechanism| {
        if mechanism == Mechanism::Timed {
            return;
        }
        let t = on(Graph::leaf_spine(3, 2, BitRate::mbit(100), None), 1, BitRate::mbit(100), 0);
        let drain = queues::drain(&t, 16);
        let to = host_ip(&t, HostId(2));
        let mut b = Bench::new(t, mechanism, Admit::Marked);
        let over = |spine: u32| Some(List(vec![0, spine, 2]));
        steer(&mut b, HostId(0), HostId(2), over(3)).expect("steered");
        steer(&mut b, HostId(0), HostId(2), over(4)).expect("steered");
        // The first spine's route is not needed any more, and goes once no packet can be on its way
        // there.
        let ns = b
            .fabric
            .network()
            .namespace("sw3")
            .expect("a switch")
            .as_fd()
            .try_clone_to_owned()
            .expect("a descriptor");
        let gone = Route { table: Some(HOST_TABLES), ..Route::new((to, 32), None, 0) };
        Netlink::open(ns.as_fd())
            .and_then(|mut nl| nl.send(vec![(gone.delete(), 0)]))
            .expect("removed");
        let end = b.clock.now() + drain * 2;
        while b.clock.now() < end {
            steer(&mut b, HostId(0), HostId(1), Some(List(vec![0, 4, 1]))).expect("steered");
            steer(&mut b, HostId(0), HostId(1), None).expect("steered");
        }
    });
}

#[test]
fn servers_relay() {
    each_mechanism("servers_relay", |mechanism| {
        // BCube(4, 1): servers 0 to 15, then switches 16 to 19 of level 0 and 20 to 23 of level 1.
        let t = on(Graph::bcube(4, 1, BitRate::mbit(500), None), 1, BitRate::mbit(1000), 0);
        let mut b = Bench::new(t, mechanism, Admit::Marked);
        for relay in [3, 12] {
            // From server 00 to 33: by the level of the relay's other digit first.
            let list = if relay == 3 { vec![16, 3, 23] } else { vec![20, 12, 19] };
            steer(&mut b, HostId(0), HostId(15), Some(List(list.clone()))).expect("steered");
            let before = carried(&mut b);
            b.send(&[vec![(0, 15, 400_000, false)]]);
            let crossed = carried(&mut b)
                .iter()
                .zip(&before)
                .map(|(after, before)| after - before)
                .collect::<Vec<_>>();
            let seen: BTreeSet<u32> =
                (0..crossed.len() as u32).filter(|&s| crossed[s as usize] >= 400_000).collect();
            assert_eq!(
                seen,
                [vec![0, 15], list].concat().into_iter().collect(),
                "{}: {crossed:?}",
                mechanism.name()
            );
        }
        let mistaken = steer(&mut b, HostId(0), HostId(15), Some(List(vec![16, 23])));
        assert!(matches!(mistaken, Err(PathError::List(_))), "{mistaken:?}");
    });
}

#[test]
fn two_links_between_two_switches_share_the_pairs_of_racks() {
    each_mechanism("two_links_between_two_switches_share_the_pairs_of_racks", |mechanism| {
        let rate = BitRate::mbit(1000);
        let switch = |k| Switch { name: format!("s{k}"), tier: Tier::Access, rate: None };
        let cables = vec![Cable { ends: (0, 1), rate }, Cable { ends: (1, 0), rate }];
        let graph = Graph {
            switches: vec![switch(0), switch(1)],
            cables,
            racks: vec![0, 0, 0, 0, 1, 1, 1, 1],
        };
        let routes = Routes::new(&graph);
        let mut b = Bench::new(on(graph, 1, rate, 0), mechanism, Admit::Marked);
        const EACH: u64 = 200_000;
        let pairs: Vec<(u32, u32)> = (0..4).flat_map(|a| (4..8).map(move |z| (a, z))).collect();
        b.send(&[pairs.iter().map(|&(a, z)| (a, z, EACH, false)).collect()]);
        let sent = b.fabric.switches().expect("counters");
        for cable in 0..2 {
            let over = |p: &&(u32, u32)| routes.way(RackId(p.0), RackId(p.1))[0].cable == cable;
            let n = pairs.iter().filter(over).count() as u64;
            let port =
                |p: &&SwitchPort| matches!(p.to, PortTo::Switch { cable: c, .. } if c == cable);
            let bytes = sent[0].ports.iter().find(port).expect("a port").bytes;
            assert!(
                n > 0 && bytes >= n * EACH && bytes < (n + 1) * EACH,
                "{}: {n} flows, {bytes} bytes",
                mechanism.name()
            );
        }
    });
}

#[test]
fn an_emulation_of_many_switches_leaves_nothing() {
    each_mechanism("an_emulation_of_many_switches_leaves_nothing", |mechanism| {
        let t = on(
            Graph::fat_tree(4, BitRate::mbit(100), Some(BitRate::mbit(300))),
            1,
            BitRate::mbit(100),
            1,
        );
        let d = Daemon::start("hst-lists", t, CircuitPolicy::default(), mechanism);
        let listener = d.within("h7-0", || TcpListener::bind("10.7.0.2:7777"));
        let mut stream = d.within("h0-0", || TcpStream::connect("10.7.0.2:7777"));
        stream.write_all(b"across five switches").expect("sent");
        drop(stream);
        let mut said = String::new();
        listener.accept().expect("a connection").0.read_to_string(&mut said).expect("read");
        assert_eq!(said, "across five switches");
        // A link that is taken away is missed by its name.
        d.tool("ip", "sw0", "link del cable1");
        d.wait("the loss of a link", |s| {
            s.failures.iter().any(|f| format!("{f:?}").contains("cable1 of sw"))
        });
    });
}

#[test]
fn shipped_graphs_are_built_and_joined() {
    each_mechanism("shipped_graphs_are_built_and_joined", |mechanism| {
        for name in ["fat-tree-4", "fat-tree-4x8", "tree-8x8", "tree-64", "vl2-64", "bcube-64"] {
            let file = format!("{}/topologies/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(&file).expect("a shipped file");
            let t = heliostat::config::read_topology(&text, &file).expect("valid");
            let cables = t.eps.graph().map_or(0, |g| g.cables.len());
            let links = t.hosts.len() + t.rack_count() * (1 + t.planes.len()) + cables;
            let begun = Instant::now();
            let b = Bench::new(t.clone(), mechanism, Admit::Marked);
            let built = begun.elapsed();
            let last = t.hosts.len() as u32 - 1;
            b.send(&[vec![
                (0, last, 100_000, false),
                (last, 0, 100_000, false),
                (last / 2, 1, 100_000, false),
            ]]);
            let begun = Instant::now();
            drop(b);
            let each = built / links as u32;
            println!(
                "{} {name}: {links} links built in {built:?}, {each:?} each, gone in {:?}",
                mechanism.name(),
                begun.elapsed()
            );
        }
    });
}

/// Each has the machine alone.
mod alone {
    use super::*;
    use crate::kernel::support::each_mechanism_alone;

    #[test]
    fn every_packet_survives_a_thousand_changes_once() {
        each_mechanism_alone("every_packet_survives_a_thousand_changes_once", |mechanism| {
            let rate = BitRate::mbit(1000);
            let t = on(Graph::fat_tree(4, rate, None), 2, rate, 0);
            let (net, graph) =
                (Switches::new(&t, Units::default()), t.eps.graph().expect("a graph").clone());
            let mut b = Bench::new(t, mechanism, Admit::Marked);
            let (from, to) = (HostId(0), HostId(15));
            let all = lists(&net, &graph, from, to);
            assert_eq!(all.len(), 4, "one over each core switch");
            let stop = Arc::new(AtomicBool::new(false));
            let stream = numbered(&b, from, to, stop.clone());
            let mut random = ChaCha8Rng::seed_from_u64(1000);
            for k in 0..1000 {
                let list = all.choose(&mut random).cloned().filter(|_| k % 10 > 0);
                steer(&mut b, from, to, list).expect("steered");
                b.clock.sleep_until(b.clock.now() + Span::micros(500));
            }
            stop.store(true, Relaxed);
            let n = stream.join().expect("the receiver ended well");
            println!("{}: 1000 changes: {n:?}", mechanism.name());
            assert_eq!((n.missing, n.twice), (0, 0), "{n:?}");
            in_time!(n.sent > 1000 && n.late * 10 < n.sent, "{n:?}");
            Ok(())
        });
    }

    #[test]
    fn links_of_a_graph_carry_their_rate() {
        each_mechanism_alone("links_of_a_graph_carry_their_rate", |mechanism| {
            for mbit in [10, 100, 1000] {
                let link = BitRate::mbit(mbit);
                let nominal = payload_rate(link).0 as f64;
                // Two racks at each switch of two pods below one root, so that flows cross one,
                // three and five switches.
                let levels =
                    [2, 2].map(|join| heliostat::topology::graph::Level { join, uplink: link });
                let mut t = on(Graph::tree(8, &levels, None), 1, BitRate(link.0 * 2), 0);
                t.racks.iter_mut().for_each(|r| r.uplink = link);
                let b = Bench::new(t, mechanism, Admit::Marked);
                for (to, switches) in [(1, 1), (2, 3), (4, 5)] {
                    let bytes = mbit * 125_000;
                    let once =
                        || rate(bytes, b.send(&[vec![(0, to, bytes, false)]])[0]) / nominal * 100.0;
                    // The best of three: other work on the machine takes its part of one now and
                    // then.
                    let mut share = once();
                    for _ in 0..2 {
                        share = if share < 98.0 { share.max(once()) } else { share };
                    }
                    println!(
                        "{} {mbit} Mb/s through {switches} switches: {share:.2} % of nominal",
                        mechanism.name()
                    );
                    assert!(share <= 102.0, "faster than the link: {share}");
                    // At 1 Gb/s a machine with both cores busy is the narrowest link.
                    let least = if mbit < 1000 { 97.0 } else { 50.0 };
                    in_time!(
                        share >= least,
                        "{mbit} Mb/s through {switches} switches: {share:.2} %"
                    );
                }
            }
            Ok(())
        });
    }

    /// What programs and routes cost: as much TCP as this machine carries over eight links, two
    /// flows each way through five switches.
    #[test]
    fn five_switches_carry_as_much_as_this_machine_can() {
        each_mechanism_alone("five_switches_carry_as_much_as_this_machine_can", |mechanism| {
            let link = BitRate::mbit(40_000);
            let b = Bench::new(
                on(Graph::fat_tree(4, link, None), 1, link, 0),
                mechanism,
                Admit::Marked,
            );
            const EACH: u64 = 300_000_000;
            // A few tenths of a second each: what one of them takes says little.
            let mut rates = [0; 5].map(|_| {
                rate(2 * EACH, b.send(&[vec![(0, 7, EACH, false), (7, 0, EACH, false)]])[0])
            });
            rates.sort_by(f64::total_cmp);
            let [least, .., most] = rates.map(|r| r / 1e9);
            println!(
                "{}: {:.1} Gb/s of payload through five switches, {least:.1} to {most:.1}",
                mechanism.name(),
                rates[2] / 1e9
            );
            in_time!(rates[2] > 1e8, "{rates:?}");
            Ok(())
        });
    }

    #[test]
    fn a_switch_carries_what_it_can_in_all() {
        each_mechanism_alone("a_switch_carries_what_it_can_in_all", |mechanism| {
            let (link, spine) = (BitRate::mbit(500), BitRate::mbit(100));
            let mut graph = Graph::leaf_spine(4, 1, link, None);
            graph.switches[4].rate = Some(spine);
            graph.switches[3].rate = Some(link);
            let b = Bench::new(on(graph, 1, link, 0), mechanism, Admit::Marked);
            const EACH: u64 = 5_000_000;
            let took = b.send(&[vec![(0, 1, EACH, false), (2, 3, EACH, false)]])[0];
            let share = rate(2 * EACH, took) / payload_rate(spine).0 as f64 * 100.0;
            println!(
                "{}: two flows have {share:.2} % of what the switch carries",
                mechanism.name()
            );
            assert!(share <= 102.0, "more than the switch carries: {share}");
            in_time!(share >= 95.0, "less than the switch carries: {share}");
            Ok(())
        });
    }
}

/// Few run at a time.
mod quiet {
    use super::*;
    use crate::kernel::support::each_mechanism_quiet;

    #[test]
    fn a_flow_crosses_exactly_the_switches_of_its_list() {
        each_mechanism_quiet("a_flow_crosses_exactly_the_switches_of_its_list", |mechanism| {
            let t = on(Graph::fat_tree(4, BitRate::mbit(1000), None), 2, BitRate::mbit(1000), 0);
            let (net, graph) =
                (Switches::new(&t, Units::default()), t.eps.graph().expect("a graph").clone());
            let routes = Routes::new(&graph);
            let mut b = Bench::new(t.clone(), mechanism, Admit::Marked);
            let mut random = ChaCha8Rng::seed_from_u64(13);
            const BYTES: u64 = 300_000;
            // By mechanism 100 lists that were given, and every fifth flow besides takes the
            // default way.
            let mut given = 0;
            for k in 0.. {
                if given == 100 {
                    break;
                }
                let from = HostId(random.random_range(0..16));
                let to = HostId((from.0 + random.random_range(2..14)) % 16);
                if t.rack_of(from) == t.rack_of(to) {
                    continue;
                }
                let list = lists(&net, &graph, from, to)
                    .choose(&mut random)
                    .cloned()
                    .filter(|_| k % 5 > 0);
                given += u32::from(list.is_some());
                let (a, z) = (t.rack_of(from), t.rack_of(to));
                let default = || {
                    List(
                        std::iter::once(net.stands(from))
                            .chain(routes.way(a, z).iter().map(|h| h.to))
                            .collect(),
                    )
                };
                let expected: BTreeSet<u32> =
                    list.clone().unwrap_or_else(default).0.into_iter().collect();
                steer(&mut b, from, to, list).expect("steered");
                let before = carried(&mut b);
                b.send(&[vec![(from.0, to.0, BYTES, false)]]);
                let crossed = carried(&mut b)
                    .iter()
                    .zip(&before)
                    .map(|(after, before)| after - before)
                    .collect::<Vec<_>>();
                // Acknowledgements go another way: much less than the data.
                let seen: BTreeSet<u32> =
                    (0..crossed.len() as u32).filter(|&s| crossed[s as usize] >= BYTES).collect();
                assert_eq!(seen, expected, "{} from {from} to {to}: {crossed:?}", mechanism.name());
                assert!(!crossed.iter().any(|c| (BYTES / 4..BYTES).contains(c)), "{crossed:?}");
            }
            if mechanism == Mechanism::Timed {
                let l = settled(&mut b);
                assert_eq!(l.strays, 0, "{l:?}");
                in_time!(l.dropped == 0, "full queues: {l:?}");
            }
            Ok(())
        });
    }

    #[test]
    fn flows_of_the_same_two_hosts_have_lists_of_their_own() {
        each_mechanism_quiet("flows_of_the_same_two_hosts_have_lists_of_their_own", |mechanism| {
            let t = on(Graph::fat_tree(4, BitRate::mbit(1000), None), 2, BitRate::mbit(1000), 0);
            let (net, graph) =
                (Switches::new(&t, Units::default()), t.eps.graph().expect("a graph").clone());
            let mut b = Bench::new(t.clone(), mechanism, Admit::Marked);
            let hosts = (HostId(0), HostId(14));
            let all = lists(&net, &graph, hosts.0, hosts.1);
            let ends = |port: u16| PathEnds {
                ports: (port > 0).then_some(Ports { from: port, to: SINK }),
                ..hosts.into()
            };
            let give = |b: &mut Bench, port: u16, list: Option<usize>| {
                let now = b.clock.now();
                let op = Steer::new(ends(port), list.map(|k| all[k].clone()));
                b.fabric.steer(&[op], now).remove(0).outcome.map(drop)
            };
            let crosses = |b: &mut Bench, port: u16, list: usize| {
                let before = carried(b);
                datagrams(b, &t, hosts, port, 30);
                let crossed: Vec<u64> =
                    carried(b).iter().zip(&before).map(|(after, before)| after - before).collect();
                let seen: BTreeSet<u32> =
                    (0..crossed.len() as u32).filter(|&s| crossed[s as usize] >= 30_000).collect();
                assert_eq!(
                    seen,
                    all[list].0.iter().copied().collect(),
                    "{} port {port}: {crossed:?}",
                    mechanism.name()
                );
            };
            for (port, list) in [(0, 0), (40_001, 1), (40_002, 3)] {
                give(&mut b, port, Some(list)).expect("steered");
            }
            for (port, list) in [(40_000, 0), (40_001, 1), (40_002, 3)] {
                crosses(&mut b, port, list);
            }
            give(&mut b, 0, Some(2)).expect("steered");
            give(&mut b, 40_001, None).expect("steered");
            for (port, list) in [(40_000, 2), (40_001, 2), (40_002, 3)] {
                crosses(&mut b, port, list);
            }
            assert_eq!(
                b.fabric.steered(),
                Lists([(ends(0), all[2].clone()), (ends(40_002), all[3].clone())].into())
            );
            // No datagram is lost while the list of its flow, or of its pair, becomes another one
            // or goes.
            for k in 0..200 {
                let (port, list) = if k % 3 == 0 { (0, k % 4) } else { (40_002, (k / 2) % 4) };
                give(&mut b, port, (k % 7 > 0).then_some(list)).expect("steered");
                datagrams(&b, &t, hosts, 40_002, 2);
            }
            if mechanism == Mechanism::Timed {
                (0..16).for_each(|k| {
                    give(&mut b, 50_000 + k, Some(1))
                        .unwrap_or_else(|e| assert!(k == 15, "{k}: {e}"))
                });
                let before = b.fabric.steered();
                assert_eq!(give(&mut b, 60_000, Some(1)), Err(PathError::ManyFlows(16)));
                assert_eq!(b.fabric.steered(), before);
                let l = settled(&mut b);
                assert_eq!(l.strays, 0, "{l:?}");
                in_time!(l.dropped == 0, "full queues: {l:?}");
            }
            Ok(())
        });
    }

    #[test]
    fn what_has_no_list_is_dropped_and_counted() {
        each_mechanism_quiet("what_has_no_list_is_dropped_and_counted", |mechanism| {
            let t = on(Graph::leaf_spine(3, 2, BitRate::mbit(100), None), 1, BitRate::mbit(100), 1);
            let mut b = Bench::new(t, mechanism, Admit::Marked);
            let ns = b
                .fabric
                .network()
                .namespace("h0-0")
                .expect("a host")
                .as_fd()
                .try_clone_to_owned()
                .expect("a descriptor");
            netns::within(ns.as_fd(), || {
                let s = UdpSocket::bind("0.0.0.0:0")?;
                // A rack that is not there, a host that is not there, and another address of a host
                // that is.
                for to in ["10.9.0.2:9", "10.1.0.9:9", "10.1.3.2:9"] {
                    s.send_to(b"?", to)?;
                }
                Ok(())
            })
            .expect("sent");
            let refused = steer(&mut b, HostId(0), HostId(2), Some(List(vec![0, 1, 2])));
            assert!(matches!(refused, Err(PathError::List(_))), "{refused:?}");
            assert_eq!(b.fabric.steered(), Default::default());
            steer(&mut b, HostId(0), HostId(2), Some(List(vec![0, 4, 2]))).expect("steered");
            assert_eq!(b.fabric.steered().of(HostId(0), HostId(2)), Some(&List(vec![0, 4, 2])));
            b.send(&[vec![(0, 2, 10_000, false)]]);
            if mechanism == Mechanism::Timed {
                let l = settled(&mut b);
                assert_eq!(l.strays, 3, "{l:?}");
            }
            // Circuits beside the graph: elephants ride them.
            b.connect(&[(0, 2)]);
            b.send(&[vec![(0, 2, 2_000_000, true)]]);
            let seen = b.fabric.observe(b.clock.now()).expect("observed");
            in_time!(
                seen.over_ocs.get(RackId(0), RackId(2)) >= 2_000_000,
                "{} bytes crossed the OCS",
                seen.over_ocs.total()
            );
            Ok(())
        });
    }
}
