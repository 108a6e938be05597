//! Frames that hosts make up: both mechanisms carry, and count, the same ones.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;

use heliostat::coflows::elephants::Admit;
use heliostat::fabric::Fabric as _;
use heliostat::ids::RackId;
use heliostat::kernel::layout::{PortKind, mac};
use heliostat::kernel::{Mechanism, netns};
use heliostat::units::{BitRate, Span};
use pnet::datalink::{self, Channel, DataLinkSender, NetworkInterface};
use pnet::packet::ip::IpNextHeaderProtocols;
use pnet::packet::ipv4::{self, MutableIpv4Packet};

use super::support::{Bench, each_mechanism, topology};

const FRAMES: u64 = 50;
const LENGTH: usize = 514;

/// A sender of frames in host 0, whose packets leave as they are given.
fn sender(b: &Bench) -> Box<dyn DataLinkSender> {
    let host = &b.fabric.network().hosts[0];
    let interface = NetworkInterface {
        name: "eth0".into(),
        description: String::new(),
        index: host.eth,
        mac: None,
        ips: vec![],
        flags: 0,
    };
    netns::within(host.node.ns.as_fd(), || {
        match datalink::channel(&interface, datalink::Config::default())? {
            Channel::Ethernet(tx, _) => Ok(tx),
            _ => Err(std::io::Error::other("no channel")),
        }
    })
    .expect("a packet socket in the host")
}

/// A frame of UDP from host 0 to host 1, to the MAC of its ToR's port.
fn plain() -> Vec<u8> {
    let mut frame =
        [&mac(PortKind::TorHost, 0)[..], &mac(PortKind::Host, 0), &[8, 0], &[0; LENGTH - 14]]
            .concat();
    let mut p = MutableIpv4Packet::new(&mut frame[14..]).expect("long enough");
    p.set_version(4);
    p.set_header_length(5);
    p.set_total_length((LENGTH - 14) as u16);
    p.set_ttl(64);
    p.set_next_level_protocol(IpNextHeaderProtocols::Udp);
    p.set_source(Ipv4Addr::new(10, 0, 0, 2));
    p.set_destination(Ipv4Addr::new(10, 1, 0, 2));
    sum(&mut frame);
    frame
}

fn sum(frame: &mut [u8]) {
    let mut p = MutableIpv4Packet::new(&mut frame[14..]).expect("long enough");
    let sum = ipv4::checksum(&p.to_immutable());
    p.set_checksum(sum);
}

/// What a frame is called, whether it passes, and what is done to a good one.
type Kind = (&'static str, bool, fn(&mut Vec<u8>));

/// What is made of the plain frame, and whether it crosses.
const KINDS: [Kind; 12] = [
    ("plain", true, |_| {}),
    ("the MAC of another port", false, |f| f[5] ^= 0x40),
    ("the MAC of a path", false, |f| f[..6].copy_from_slice(&[2, 0xfe, 1, 0, 0, 0])),
    ("broadcast", false, |f| f[..6].fill(0xff)),
    ("a VLAN tag", false, |f| drop(f.splice(12..12, [0x81, 0, 0, 5]))),
    ("a header of one word", false, |f| f[14] = 0x41),
    ("version 6", false, |f| f[14] = 0x65),
    ("a wrong sum", false, |f| f[24] ^= 1),
    ("a length beyond the frame", false, |f| {
        f[16..18].copy_from_slice(&1400u16.to_be_bytes());
        sum(f);
    }),
    ("a length within the header", false, |f| {
        f[16..18].copy_from_slice(&12u16.to_be_bytes());
        sum(f);
    }),
    ("a time that is over", false, |f| {
        f[22] = 1;
        sum(f);
    }),
    ("a source of another rack", true, |f| {
        f[26..30].copy_from_slice(&[10, 3, 0, 2]);
        sum(f);
    }),
];

/// Sends frames of each kind over a circuit; how many bytes crossed of each.
fn crosses(mechanism: Mechanism) -> BTreeMap<&'static str, u64> {
    let mut b = Bench::new(
        topology(4, BitRate::mbit(100), BitRate::mbit(100), Span::millis(1)),
        mechanism,
        Admit::All,
    );
    b.connect(&[(0, 1)]);
    let (mut tx, good) = (sender(&b), plain());
    let crossed = |b: &mut Bench| {
        b.clock.sleep_until(b.clock.now() + Span::millis(60));
        b.fabric.observe(b.clock.now()).expect("observed").over_ocs.get(RackId(0), RackId(1))
    };
    let mut all = BTreeMap::new();
    for (kind, _, make) in KINDS {
        let mut frame = good.clone();
        make(&mut frame);
        let before = crossed(&mut b);
        for _ in 0..FRAMES {
            tx.send_to(&frame, None).expect("room").expect("sent");
        }
        all.insert(kind, crossed(&mut b) - before);
    }
    all
}

#[test]
fn frames_that_a_router_would_not_forward_cross_no_circuit() {
    each_mechanism("frames_that_a_router_would_not_forward_cross_no_circuit", |mechanism| {
        let seen = crosses(mechanism);
        for (kind, passes, _) in KINDS {
            // Payload as each mechanism counts it is a little less than the frames.
            let enough = FRAMES * (LENGTH as u64 - 80);
            assert_eq!(seen[kind] >= enough, passes, "{kind}: {seen:?}");
            assert!(passes || seen[kind] == 0, "{kind}: {seen:?}");
        }
    });
}
