//! Strict priorities between flows on the wire: at every kind of port, changed under way, and
//! circuits beside them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use heliostat::client::Client;
use heliostat::client::remote::Remote;
use heliostat::coflows::elephants::Admit;
use heliostat::coflows::network::{NetworkKind, Service};
use heliostat::coflows::priority::{Priorities, PriorityChange};
use heliostat::coflows::{self, CoflowSpec, FlowSpec};
use heliostat::control::policy::{CircuitPolicy, SchedulerKind};
use heliostat::fabric::{Fabric, QueueCounters};
use heliostat::ids::{CoflowId, FlowId, HostId, RackId};
use heliostat::kernel::nl::Netlink;
use heliostat::kernel::traffic;
use heliostat::kernel::{Mechanism, Serving, layout, netns, priorities};
use heliostat::runtime::jobs::live::{JobsNetwork, NetworkEvent};
use heliostat::runtime::settings::{RunPlan, RunSettings};
use heliostat::topology::Topology;
use heliostat::topology::addresses::host_ip;
use heliostat::topology::graph::Graph;
use heliostat::units::{BitRate, Bytes, Span, Time};

use serde_json::json;

use super::daemon::Daemon;
use super::lists::on;
use super::support::{Bench, each_mechanism, rate, topology};
use crate::tries::Timing;

const STRICT: Serving = Serving { admit: Admit::Marked, port: None, service: Service::Strict };
const RATE: BitRate = BitRate::mbit(500);

/// A port that two flows share and nothing else narrows: their ends, and its node and link.
struct Place {
    name: &'static str,
    topology: Topology,
    high: (u32, u32),
    low: (u32, u32),
    port: fn(&mut Bench) -> (OwnedFd, u32),
}

fn ns(node: &heliostat::kernel::network::Node) -> OwnedFd {
    node.ns.as_fd().try_clone_to_owned().expect("a descriptor")
}

/// The link by which most bytes left rack 0's switch.
fn busiest_cable(b: &mut Bench) -> (OwnedFd, u32) {
    let own = format!("sw{}", b.fabric.network().topology.eps.graph().expect("a graph").racks[0]);
    let all = b.fabric.queues().expect("counters");
    let cables = all.iter().filter(|p| p.node == own && p.port.starts_with("cable"));
    let most = cables
        .max_by_key(|p| p.queues.iter().map(|q| q.bytes).sum::<u64>())
        .expect("a link to a switch");
    let number: usize = most.port.trim_start_matches("cable").parse().expect("a number");
    let node = b.fabric.network().nodes().find(|n| n.name == own).expect("the switch");
    (ns(node), layout::cable_index(number))
}

fn places() -> Vec<Place> {
    let wide = BitRate(RATE.0 * 4);
    let plain = |nic, uplink| Topology::uniform("priorities", 3, 2, nic, uplink, vec![]);
    vec![
        Place {
            name: "a host's port",
            topology: plain(RATE, wide),
            high: (0, 2),
            low: (0, 4),
            port: |b| (ns(&b.fabric.network().hosts[0].node), b.fabric.network().hosts[0].eth),
        },
        Place {
            name: "a ToR's port to a host",
            topology: plain(RATE, wide),
            high: (0, 4),
            low: (2, 4),
            port: |b| (ns(&b.fabric.network().tors[2].node), b.fabric.network().tors[2].hosts[0]),
        },
        Place {
            name: "a ToR's port to the EPS",
            topology: plain(RATE, RATE),
            high: (0, 2),
            low: (1, 4),
            port: |b| (ns(&b.fabric.network().tors[0].node), b.fabric.network().tors[0].eps),
        },
        Place {
            name: "five switches of a fat tree",
            topology: on(Graph::fat_tree(4, RATE, None), 2, RATE, 0),
            high: (0, 14),
            low: (1, 15),
            port: busiest_cable,
        },
    ]
}

fn coflow(id: u32, (from, to): (u32, u32), bytes: u64, priority: u8) -> CoflowSpec {
    let flows = vec![FlowSpec { from: HostId(from), to: HostId(to), bytes: Bytes(bytes) }];
    let priorities = Priorities { all: Some(priority), flows: vec![] };
    CoflowSpec { priorities, ..CoflowSpec::new(CoflowId(id), format!("c{id}"), Time::ZERO, flows) }
}

/// Two flows through a place, the high one with `priorities.0`.
fn two(place: &Place, mechanism: Mechanism, bytes: u64, priorities: (u8, u8)) -> Bench {
    let b = Bench::new(place.topology.clone(), mechanism, STRICT);
    b.traffic.launch(&coflow(0, place.high, bytes, priorities.0), |_, _| false);
    b.traffic.launch(&coflow(1, place.low, bytes, priorities.1), |_, _| false);
    b.clock.sleep_until(b.clock.now() + Span::millis(500));
    b
}

fn of(queues: &[QueueCounters], priority: u8) -> QueueCounters {
    queues[1 + usize::from(priority)]
}

/// Runs a test at every place that it has not passed yet, and counts the `done` ones; a further try
/// repeats none of them.
fn at_each_place(
    mechanism: Mechanism,
    done: &Cell<usize>,
    test: fn(&Place, Mechanism) -> Timing,
) -> Timing {
    for place in places().iter().skip(done.get()) {
        test(place, mechanism)?;
        done.set(done.get() + 1);
    }
    done.set(0);
    Ok(())
}

fn share(place: &Place, mechanism: Mechanism) -> Timing {
    let mut b = two(place, mechanism, 10_000_000_000, (0, 7));
    let (ns, link) = (place.port)(&mut b);
    let mut nl = Netlink::open(ns.as_fd()).expect("a socket");
    let mut look = || priorities::queues(&mut nl, link).expect("counters");
    let (begun, before) = (b.clock.now(), look());
    let (mut last, mut stall, mut after) =
        ((begun, of(&before, 7).bytes), Span::ZERO, before.clone());
    while b.clock.now().since(begun) < Span::millis(2500) {
        after = look();
        let now = b.clock.now();
        stall = stall.max(now.since(last.0));
        if of(&after, 7).bytes != last.1 {
            last = (now, of(&after, 7).bytes);
        }
        b.clock.sleep_until(now + Span::micros(500));
    }
    let took = b.clock.now().since(begun);
    let [high, low] = [0, 7].map(|p| rate(of(&after, p).bytes - of(&before, p).bytes, took));
    let share = |r: f64| r * 100.0 / RATE.0 as f64;
    let (high, low) = (share(high), share(low));
    println!(
        "{}, {}: priority 0 has {high:.1} % of the link, priority 7 {low:.2} %, its longest stall {stall}",
        place.name,
        mechanism.name()
    );
    in_time!(high >= 95.0, "{}: priority 0 has {high:.1} % of the link", place.name);
    in_time!(low >= 0.05, "{}: priority 7 has {low:.2} % of the link", place.name);
    // A thousandth of the link is assured: the largest segment has gone after this time.
    let segment = BitRate(RATE.0 / 1000).time_for(Bytes(66_000));
    in_time!(
        stall <= segment + Span::millis(50),
        "{}: priority 7 stalls for {stall}, {segment} at most by its share",
        place.name
    );
    Ok(())
}

/// The round trip of the flow that goes first, empty and as it is loaded now: the shortest of some
/// handshakes, and with it the longest time that some packets of its priority took to its receiver.
fn round_trip(b: &Bench, place: &Place, priority: u8) -> (Span, Span) {
    let net = b.fabric.network();
    let node = |h: u32| net.hosts[h as usize].node.ns.as_fd();
    let to = host_ip(&net.topology, HostId(place.high.1));
    let span = |begun: Instant| Span(begun.elapsed().as_nanos() as u64);
    let connect = || {
        let begun = Instant::now();
        TcpStream::connect((to, traffic::PORT)).map(|_| span(begun))
    };
    let empty = (0..5)
        .map(|_| netns::within(node(place.high.0), connect).expect("a receiver listens"))
        .min()
        .expect("some");
    let receiver =
        netns::within(node(place.high.1), || UdpSocket::bind((to, 0))).expect("a socket");
    receiver.set_read_timeout(Some(Duration::from_millis(200))).expect("a time");
    let sender = netns::within(node(place.high.0), || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))
        .expect("a socket");
    socket2::SockRef::from(&sender)
        .set_tos_v4(Service::Strict.tos(priority, false).into())
        .expect("marked");
    let address = receiver.local_addr().expect("an address");
    let one = |_| {
        let begun = Instant::now();
        sender.send_to(&[0; 400], address).expect("sent");
        // One that found no room in a queue says nothing.
        receiver.recv(&mut [0; 500]).ok().map(|_| span(begun))
    };
    (empty, empty + (0..10).filter_map(one).max().expect("some arrive"))
}

fn change(place: &Place, mechanism: Mechanism) -> Timing {
    const BYTES: u64 = 80_000_000;
    let mut b = two(place, mechanism, BYTES, (2, 5));
    let (ns, link) = (place.port)(&mut b);
    let (rtt, loaded) = round_trip(&b, place, 2);
    let mut nl = Netlink::open(ns.as_fd()).expect("a socket");
    let mut look = || priorities::queues(&mut nl, link).expect("counters");
    let prioritise = |id: u32, p: u8| {
        b.traffic
            .prioritise(CoflowId(id), &PriorityChange { all: None, flows: vec![(FlowId(0), p)] })
            .expect("marked");
    };
    let (before, begun) = (look(), b.clock.now());
    // The flow that waits has sent a largest segment, which goes once what was before it has gone.
    let loaded = loaded + RATE.time_for(Bytes(66_000));
    prioritise(0, 7);
    prioritise(1, 1);
    let (mut first, mut drained, mut old) = (None, Span::ZERO, of(&before, 2).bytes);
    let (mut seen, mut now) = (before.clone(), begun);
    while now.since(begun) < Span::millis(200) {
        // A look that never rests would take a processor from the senders.
        b.clock.sleep_until(now + Span::micros(100));
        seen = look();
        now = b.clock.now();
        if of(&seen, 1).bytes > 0 {
            first.get_or_insert(now.since(begun));
        }
        if of(&seen, 2).bytes != old {
            (old, drained) = (of(&seen, 2).bytes, now.since(begun));
        }
    }
    let has = rate(of(&seen, 1).bytes, now.since(begun)) * 100.0 / RATE.0 as f64;
    b.finished(2);
    for id in 0..2 {
        let flows = b.traffic.flows(CoflowId(id)).expect("remembered");
        assert_eq!(
            (flows[0].received, flows[0].finished.is_some()),
            (Bytes(BYTES), true),
            "{}: bytes are lost",
            place.name
        );
    }
    assert_eq!(b.traffic.flows(CoflowId(1)).expect("remembered")[0].priority, 1);
    // A starved flow whose packets were dropped sends again when its timer says so, which may be
    // later than the looks.
    in_time!(first.is_some(), "{}: the flow with the new mark sent nothing in 200 ms", place.name);
    let first: Span = first.unwrap_or_default();
    println!(
        "{}, {}: the new mark leaves the port after {first} (round trip {rtt} empty, {loaded} as it is loaded), the last of the old one after \
         {drained}; the flow that goes first now has {has:.1} % of the link in the next 200 ms; 0 bytes lost, {} sent again",
        place.name,
        mechanism.name(),
        b.traffic.sent_again(),
    );
    in_time!(
        first <= loaded + Span::millis(1),
        "{}: the change takes hold after {first}; the round trip is {loaded}",
        place.name
    );
    in_time!(has >= 60.0, "{}: the flow that goes first has {has:.1} % of the link", place.name);
    Ok(())
}

#[test]
fn circuits_work_beside_priorities_and_counters_stay_right() {
    each_mechanism("circuits_work_beside_priorities_and_counters_stay_right", |mechanism| {
        const BYTES: u64 = 20_000_000;
        let mut b = Bench::new(
            topology(3, BitRate::mbit(400), BitRate::mbit(200), Span::millis(1)),
            mechanism,
            STRICT,
        );
        b.connect(&[(0, 1)]);
        b.traffic.launch(&coflow(0, (0, 1), BYTES, 3), |_, _| true);
        b.traffic.launch(&coflow(1, (0, 2), BYTES / 2, 0), |_, _| false);
        b.traffic.launch(&coflow(2, (0, 1), BYTES / 4, 6), |_, _| false);
        b.finished(3);
        let seen = b.fabric.observe(b.clock.now()).expect("observed");
        // What TCP sends again, and headers of frames that are not full, count too.
        let about = |bytes: u64| bytes..bytes + bytes / 5;
        let (zero, one, two) = (RackId(0), RackId(1), RackId(2));
        let over = seen.over_ocs.get(zero, one);
        assert!(
            about(BYTES).contains(&over),
            "{}: an elephant of priority 3 has {over} bytes over its circuit",
            mechanism.name()
        );
        for (to, bytes) in [(one, BYTES + BYTES / 4), (two, BYTES / 2)] {
            let sent = seen.sent.get(zero, to);
            assert!(
                about(bytes).contains(&sent),
                "{}: {sent} bytes to rack {}, {bytes} were sent",
                mechanism.name(),
                to.0
            );
        }
        let queues = b.fabric.queues().expect("counters");
        let port = |node: &str, port: &str| {
            queues.iter().find(|q| q.node == node && q.port == port).expect("a port").queues.clone()
        };
        let (host, uplink) = (port("h0-0", "eth0"), port("tor0", "eps0"));
        for (p, at_host, at_uplink) in
            [(0, BYTES / 2, BYTES / 2), (3, BYTES, 0), (6, BYTES / 4, BYTES / 4)]
        {
            assert!(
                of(&host, p).bytes >= at_host,
                "{}: the host's port carried {} of {p}",
                mechanism.name(),
                of(&host, p).bytes
            );
            let up = of(&uplink, p).bytes;
            assert!(
                up >= at_uplink && (at_uplink > 0 || up == 0),
                "{}: the uplink carried {up} of {p}",
                mechanism.name()
            );
        }
        assert!(
            queues[1]
                .queues
                .iter()
                .all(|q| q.priority.is_none_or(|p| of(&queues[1].queues, p).bytes == 0)),
            "h1-0 sends no data"
        );
    });
}

/// The flow with the least left goes first: what a scheduler of tasks may want of a network.
fn shortest_first(net: &mut dyn JobsNetwork, has: &mut BTreeMap<(CoflowId, FlowId), u8>) {
    let left = net.left().expect("an answer");
    let first = left.iter().min_by_key(|l| (l.2, l.0, l.1)).map(|l| (l.0, l.1));
    for &(coflow, flow, _) in &left {
        let priority = if first == Some((coflow, flow)) { 1 } else { 6 };
        if has.insert((coflow, flow), priority) != Some(priority) {
            net.prioritise(coflow, &[(flow, priority)]).expect("taken");
        }
    }
}

/// Each has the machine alone.
mod alone {
    use super::*;
    use crate::kernel::support::each_mechanism_alone;

    #[test]
    fn the_first_priority_has_the_link_and_the_last_one_its_share() {
        let done = Cell::new(0);
        each_mechanism_alone(
            "the_first_priority_has_the_link_and_the_last_one_its_share",
            |mechanism| at_each_place(mechanism, &done, share),
        );
    }

    #[test]
    fn a_change_of_priorities_under_way_takes_hold_and_loses_nothing() {
        let done = Cell::new(0);
        each_mechanism_alone(
            "a_change_of_priorities_under_way_takes_hold_and_loses_nothing",
            |mechanism| at_each_place(mechanism, &done, change),
        );
    }

    /// Many flows wait behind one that goes first, and lose packets at their full queue meanwhile.
    /// When that one has ended, each of them goes on within a few seconds, however often it has
    /// tried before.
    #[test]
    fn what_has_waited_goes_on_when_its_link_is_free() {
        each_mechanism_alone("what_has_waited_goes_on_when_its_link_is_free", |mechanism| {
            let uplink = BitRate::mbit(100);
            let b = Bench::new(
                Topology::uniform("priorities", 2, 4, RATE, uplink, vec![]),
                mechanism,
                STRICT,
            );
            let low = CoflowSpec {
                flows: (0..32)
                    .map(|k| FlowSpec {
                        from: HostId(k % 4),
                        to: HostId(4 + k / 8),
                        bytes: Bytes(1_000_000_000),
                    })
                    .collect(),
                ..coflow(1, (0, 4), 0, 7)
            };
            b.traffic.launch(&low, |_, _| false);
            b.clock.sleep_until(b.clock.now() + Span::millis(300));
            // At the rate of the link for 12 s.
            b.traffic.launch(&coflow(0, (0, 4), 150_000_000, 0), |_, _| false);
            let received = |id: u32| {
                b.traffic
                    .flows(CoflowId(id))
                    .expect("it is there")
                    .into_iter()
                    .map(|f| f.received.0)
                    .collect::<Vec<_>>()
            };
            let deadline = b.clock.now() + Span::secs(60);
            let ended = || b.traffic.flows(CoflowId(0)).expect("it is there")[0].finished.is_some();
            while !ended() {
                assert!(b.clock.now() < deadline, "the first flow does not end");
                b.clock.sleep_until(b.clock.now() + Span::millis(2));
            }
            let (free, before) = (b.clock.now(), received(1));
            let still =
                || received(1).iter().zip(&before).filter(|(now, then)| now <= then).count();
            while still() > 0 && b.clock.now().since(free) < Span::secs(30) {
                b.clock.sleep_until(b.clock.now() + Span::millis(2));
            }
            let took = b.clock.now().since(free);
            println!(
                "{}: 32 flows that waited for 12 s all go on {took} after their link is free",
                mechanism.name()
            );
            // Tries that begin together lose packets again, so that one of them in a second is not
            // enough for all; with times that double it takes 20 s and more.
            in_time!(
                took <= Span::secs(8),
                "flows that waited go on {took} after their link is free"
            );
            Ok(())
        });
    }
}

/// Few run at a time.
mod quiet {
    use super::*;
    use crate::kernel::support::each_mechanism_quiet;

    #[test]
    fn a_scheduler_gives_priorities_over_the_api_and_the_shortest_goes_first() {
        each_mechanism_quiet(
            "a_scheduler_gives_priorities_over_the_api_and_the_shortest_goes_first",
            |mechanism| {
                const MB: u64 = 1_000_000;
                let nic = BitRate::mbit(200);
                let run = RunSettings {
                    network: coflows::network::Network {
                        kind: NetworkKind::Priority,
                        ..Default::default()
                    },
                    ..Default::default()
                };
                let policy =
                    CircuitPolicy { scheduler: SchedulerKind::EpsOnly, ..CircuitPolicy::default() };
                let net = Topology::uniform("priorities", 3, 1, nic, BitRate(nic.0 * 4), vec![]);
                let d =
                    Daemon::start("hst-prio", net, RunPlan { policy, run, jobs: None }, mechanism);
                let mut remote =
                    Remote::new(Arc::new(Client::new(&d.url(), None).expect("an address")))
                        .expect("it answers");
                let plain = |id, to, mb: u64| CoflowSpec {
                    priorities: Priorities::default(),
                    ..coflow(id, (0, to), mb * MB, 0)
                };
                let begun = Instant::now();
                for c in [plain(0, 1, 30), plain(1, 2, 15)] {
                    remote.start(&c).expect("started");
                }
                let (mut has, mut ended) = (BTreeMap::new(), BTreeMap::new());
                let mut told = 0;
                while ended.len() < 2 {
                    shortest_first(&mut remote, &mut has);
                    told += 1;
                    match remote.next(Duration::from_millis(20)).expect("it runs") {
                        Some(NetworkEvent::Coflow(id)) => drop(ended.insert(id.0, begun.elapsed())),
                        _ => {
                            assert!(begun.elapsed() < Duration::from_secs(60), "coflows do not end")
                        }
                    }
                }
                let alone = nic.time_for(Bytes(15 * MB)).std();
                println!(
                    "{}: 15 MB beside 30 MB over 200 Mb/s ended after {:?} and {:?}, {:?} and {:?} on the wire; {told} looks",
                    mechanism.name(),
                    ended[&1],
                    ended[&0],
                    alone,
                    alone * 3
                );
                let queues = d.wait("queues that were read after the end", |s| {
                    s.coflows.open == 0
                        && s.queues.as_ref().is_some_and(|q| {
                            q.ports[0].queues[2].bytes >= 15 * MB && q.ports[0].queues[7].bytes > 0
                        })
                });
                assert_eq!(queues.queues.as_ref().expect("seen").ports[0].node, "h0-0");
                let shown = d.get("queues");
                assert_eq!(
                    (&shown["ports"][0]["node"], &shown["ports"][0]["queues"][2]["priority"]),
                    (&json!("h0-0"), &json!(1)),
                    "{shown}"
                );
                let flows: Vec<_> = d.get("coflows")["coflows"]
                    .as_array()
                    .expect("a list")
                    .iter()
                    .map(|c| c["id"].clone())
                    .collect();
                for id in flows {
                    let c = d.get(&format!("coflows/{id}"));
                    assert!(
                        c["state"] == "finished" && c["flows"][0]["priority"] == 1,
                        "the last one is the shortest in the end: {c}"
                    );
                }
                remote.close().expect("closed");
                // Fairly shared it would have taken twice as long.
                in_time!(
                    ended[&1] < alone * 3 / 2,
                    "the shortest took {:?}, {alone:?} by itself",
                    ended[&1]
                );
                Ok(())
            },
        );
    }
}
