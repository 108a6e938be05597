//! Facts of the kernel on which lists of switches rest: what happens to a packet that programs send
//! from link to link.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use heliostat::coflows::elephants::Admit;
use heliostat::fabric::Fabric;
use heliostat::ids::HostId;
use heliostat::kernel::nl::Netlink;
use heliostat::kernel::{Mechanism, netns, queues, tc};
use heliostat::paths::{List, Switches, Units};
use heliostat::plan::paths::Steer;
use heliostat::topology::Topology;
use heliostat::topology::addresses::host_ip;
use heliostat::topology::graph::Graph;
use heliostat::units::BitRate;
use netlink_packet_route::RouteNetlinkMessage as Message;

use super::lists::{lists, on, settled};
use super::support::{Bench, each_mechanism};

/// Hosts in two pods: five switches lie between them.
const ENDS: (HostId, HostId) = (HostId(0), HostId(15));

/// A fat tree, and a list over five switches for what goes from the first host to the last.
fn fat_tree(mechanism: Mechanism) -> (Bench, Topology, List) {
    let rate = BitRate::mbit(10_000);
    let t = on(Graph::fat_tree(4, rate, None), 2, rate, 0);
    let (net, graph) =
        (Switches::new(&t, Units::default()), t.eps.graph().expect("a graph").clone());
    let mut b = Bench::new(t.clone(), mechanism, Admit::Marked);
    let list = lists(&net, &graph, ENDS.0, ENDS.1).swap_remove(0);
    assert_eq!(list.0.len(), 5);
    let (op, now) =
        (Steer { from: ENDS.0, to: ENDS.1, ports: None, list: Some(list.clone()) }, b.clock.now());
    b.fabric.steer(&[op], now).remove(0).outcome.expect("steered");
    (b, t, list)
}

fn inside<T: Send>(b: &Bench, node: &str, f: impl FnOnce() -> std::io::Result<T> + Send) -> T {
    netns::within(b.fabric.network().namespace(node).expect("a node"), f)
        .expect("done in the node's namespace")
}

/// A socket at each end; the receiver's gives up after a while.
fn datagrams(b: &Bench, t: &Topology) -> (UdpSocket, UdpSocket) {
    let [sender, receiver] = [ENDS.0, ENDS.1]
        .map(|h| inside(b, &t.host_name(h), || UdpSocket::bind((host_ip(t, h), 7777))));
    receiver.set_read_timeout(Some(Duration::from_secs(10))).expect("a deadline");
    sender.connect((host_ip(t, ENDS.1), 7777)).expect("a route");
    (sender, receiver)
}

/// Programs send packets on without the IP layer, so that only the two ToRs take one off. A packet
/// that is in a circle would never end: that is why lists are checked, and why what has no list is
/// dropped.
#[test]
fn labelled_packets_keep_their_ttl() {
    each_mechanism("labelled_packets_keep_their_ttl", |mechanism| {
        let (b, t, list) = fat_tree(mechanism);
        let (sender, receiver) = datagrams(&b, &t);
        let tors = 2;
        let least = tors + 1 + if mechanism == Mechanism::Timed { 0 } else { list.0.len() as u32 };
        // They take the same way, so that the one that follows proves that the one before is not to
        // come.
        for (ttl, arrives) in [(least - 1, false), (least, true), (64, true)] {
            sender.set_ttl(ttl).expect("an option of IP");
            sender.send(&[ttl as u8]).expect("sent");
            if arrives {
                let mut got = [0];
                receiver.recv(&mut got).expect("it arrives");
                assert_eq!(u32::from(got[0]), ttl, "{}", mechanism.name());
            }
        }
    });
}

/// A class that the sender names by SO_PRIORITY counts at its own interface only: a link between
/// two namespaces takes it off.
#[test]
fn a_sender_chooses_no_queue_of_a_switch() {
    each_mechanism("a_sender_chooses_no_queue_of_a_switch", |mechanism| {
        const COUNT: u64 = 50;
        let (b, t, list) = fat_tree(mechanism);
        let (sender, receiver) = datagrams(&b, &t);
        let class = 0x1_0000 | u32::from(queues::SMALL);
        socket2::SockRef::from(&sender).set_priority(class).expect("an option of sockets");
        for k in 0..COUNT {
            sender.send(&[k as u8; 1000]).expect("sent");
        }
        let mut room = [0; 2000];
        (0..COUNT).for_each(|k| {
            assert_eq!(receiver.recv(&mut room).expect("it arrives"), 1000, "datagram {k}")
        });
        // By the ports of every switch of the list: bytes of the class for short packets, and of
        // all classes that hold packets.
        let (mut short, mut all) = (0, 0);
        for &s in &list.0 {
            let switch = &b.fabric.network().eps[s as usize];
            let links: Vec<u32> = switch.links().collect();
            let mut nl = inside(&b, &format!("sw{s}"), Netlink::here);
            for link in links {
                nl.dump(tc::class_dump(link), |m| {
                    if let Message::NewTrafficClass(t) = &m {
                        let c = tc::counters(t);
                        short += if c.handle == class { c.bytes } else { 0 };
                        all += if c.handle & 0xffff > 1 { c.bytes } else { 0 };
                    }
                })
                .expect("a dump");
            }
        }
        println!(
            "{}: {all} bytes at the ports of {} switches, {short} as short packets",
            mechanism.name(),
            list.0.len()
        );
        assert!(all >= COUNT * 1000 * list.0.len() as u64, "{all}");
        assert_eq!(short, 0);
    });
}

/// Few run at a time.
mod quiet {
    use super::*;
    use crate::kernel::support::each_mechanism_quiet;

    /// A label is written into a packet of up to 64 kB that is still to be cut and has no checksum
    /// yet. Five links further on TCP takes it.
    #[test]
    fn large_packets_cross_five_switches_whole() {
        each_mechanism_quiet("large_packets_cross_five_switches_whole", |mechanism| {
            const BYTES: usize = 8_000_000;
            let (mut b, t, _) = fat_tree(mechanism);
            let at = (host_ip(&t, ENDS.1), 7777);
            let listener = inside(&b, &t.host_name(ENDS.1), || TcpListener::bind(at));
            let mut sender = inside(&b, &t.host_name(ENDS.0), || TcpStream::connect(at));
            let sent: Vec<u8> = (0..BYTES).map(|k| (k * 31 % 251) as u8).collect();
            let before = b.fabric.labelled().expect("counters");
            let own = sent.clone();
            let sending = std::thread::spawn(move || sender.write_all(&own).expect("sent"));
            let mut got = vec![];
            listener.accept().expect("a connection").0.read_to_end(&mut got).expect("it arrives");
            sending.join().expect("sent");
            assert!(got == sent, "other bytes arrived");
            if let Some(before) = before {
                let l = settled(&mut b);
                // Both ways, acknowledgements included; in segments of 1,448 bytes the data alone
                // would be 5,525 packets.
                let packets = l.admitted - before.admitted;
                println!("{}: {BYTES} bytes crossed in {packets} packets", mechanism.name());
                assert_eq!(l.strays, 0, "{l:?}");
                // A port's queue holds two packets of 64 kB, so that some may be dropped: TCP sends
                // them again. A busy machine sends smaller ones.
                in_time!(packets < BYTES as u64 / 1448 / 2, "{packets} packets");
            }
            Ok(())
        });
    }
}
