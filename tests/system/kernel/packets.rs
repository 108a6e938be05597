//! Single packets with numbers and times, sent into and caught at the ToRs' OCS ports.

use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use heliostat::kernel::{Clock, netns};
use heliostat::units::{Span, Time};
use pnet::datalink::{
    self, Channel, ChannelType, DataLinkReceiver, DataLinkSender, NetworkInterface,
};
use pnet::packet::ip::IpNextHeaderProtocols;
use pnet::packet::ipv4::{self, MutableIpv4Packet};
use pnet::util::MacAddr;

use super::support::Bench;

/// One packet: the times just before and just after it was sent; it crossed the OCS in between.
pub struct Sent {
    pub id: u64,
    pub before: Time,
    pub after: Time,
}

const LENGTH: usize = 60;
const ID_AT: usize = 40;

/// A packet socket at a ToR's OCS port, both ways, and a descriptor of it.
fn open(b: &Bench, rack: usize) -> (Box<dyn DataLinkSender>, Box<dyn DataLinkReceiver>, OwnedFd) {
    let tor = &b.fabric.network().tors[rack];
    let index = tor.ocs[0];
    netns::within(tor.node.ns.as_fd(), || {
        let socket = socket2::Socket::new(
            socket2::Domain::PACKET,
            socket2::Type::DGRAM,
            Some(i32::from(0x0800u16.to_be()).into()),
        )?;
        socket.set_recv_buffer_size(64 << 20)?;
        let descriptor = socket.as_fd().try_clone_to_owned()?;
        let interface = NetworkInterface {
            name: "ocs0".into(),
            description: String::new(),
            index,
            mac: Some(MacAddr::broadcast()),
            ips: vec![],
            flags: 0,
        };
        let config = datalink::Config {
            channel_type: ChannelType::Layer3(0x0800),
            read_timeout: Some(Duration::ZERO),
            promiscuous: false,
            socket_fd: Some(socket.into_raw_fd()),
            ..datalink::Config::default()
        };
        match datalink::channel(&interface, config)? {
            Channel::Ethernet(tx, rx) => Ok((tx, rx, descriptor)),
            _ => Err(std::io::Error::other("no channel")),
        }
    })
    .expect("a packet socket in the ToR")
}

/// Sends numbered packets from a ToR into its OCS port.
pub struct Flood(JoinHandle<Vec<Sent>>);

impl Flood {
    /// `target` says for which rack a packet is that is sent at a time; `grain` is the time between
    /// two.
    pub fn start(
        b: &Bench,
        rack: usize,
        stop: Arc<AtomicBool>,
        grain: Span,
        target: impl Fn(Time) -> u32 + Send + 'static,
    ) -> Self {
        let (mut tx, ..) = open(b, rack);
        let clock = b.clock;
        Self(std::thread::spawn(move || {
            let mut sent = vec![];
            let mut id = 0;
            while !stop.load(Relaxed) {
                id += 1;
                let before = clock.now();
                let done = tx.send_to(&packet(id, rack as u8, target(before) as u8), None);
                let after = clock.now();
                if matches!(done, Some(Ok(()))) {
                    sent.push(Sent { id, before, after });
                }
                pause(clock, grain);
            }
            sent
        }))
    }

    pub fn join(self) -> Vec<Sent> {
        self.0.join().expect("the flood ended well")
    }
}

/// Waits: a short time on the processor, a longer one without it.
fn pause(clock: Clock, grain: Span) {
    let until = clock.now() + grain;
    if grain >= Span::micros(100) {
        return clock.sleep_until(until);
    }
    while clock.now() < until {
        std::hint::spin_loop();
    }
}

fn packet(id: u64, from: u8, to: u8) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    let mut ip = MutableIpv4Packet::new(&mut bytes).expect("room for a header");
    ip.set_version(4);
    ip.set_header_length(5);
    ip.set_total_length(LENGTH as u16);
    ip.set_ttl(4);
    ip.set_next_level_protocol(IpNextHeaderProtocols::Test1);
    ip.set_source([10, from, 0, 2].into());
    ip.set_destination([10, to, 0, 2].into());
    let sum = ipv4::checksum(&ip.to_immutable());
    ip.set_checksum(sum);
    bytes[ID_AT..ID_AT + 8].copy_from_slice(&id.to_be_bytes());
    bytes
}

/// When the numbered packets that came out at a ToR were read: at that time or before, they crossed
/// the OCS.
pub struct Arrivals {
    pub at: HashMap<u64, Time>,
    /// Packets that the kernel dropped at the test's own socket, since the test read too slowly.
    pub overflowed: u32,
}

/// Catches the packets that come out at a ToR.
pub struct Sink(JoinHandle<Arrivals>);

impl Sink {
    pub fn start(b: &Bench, rack: usize, stop: Arc<AtomicBool>) -> Self {
        let (_, mut rx, socket) = open(b, rack);
        let clock = b.clock;
        Self(std::thread::spawn(move || {
            let mut at = HashMap::new();
            let mut idle = 0;
            // What was sent before the end may still be in the socket.
            while !stop.load(Relaxed) || idle < 100 {
                match rx.next() {
                    Ok(p) if p.len() >= ID_AT + 8 => {
                        idle = 0;
                        let id = u64::from_be_bytes(
                            p[ID_AT..ID_AT + 8].try_into().expect("eight bytes"),
                        );
                        at.entry(id).or_insert_with(|| clock.now());
                    }
                    Ok(_) => {}
                    Err(_) => {
                        idle += 1;
                        std::thread::park_timeout(Duration::from_micros(200));
                    }
                }
            }
            Arrivals { at, overflowed: dropped(&socket) }
        }))
    }

    pub fn join(self) -> Arrivals {
        self.0.join().expect("the sink ended well")
    }
}

/// How many packets found no room in a packet socket.
fn dropped(socket: &OwnedFd) -> u32 {
    let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut size = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes, and `stats` has as many.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut stats).cast(),
            &raw mut size,
        )
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    stats.tp_drops
}
