//! Traffic control messages: HTB classes, FIFO leaves, u32 and mirred filters, BPF classifiers,
//! statistics.
//!
//! netlink-packet-route types u32, mirred, cls_bpf and statistics; HTB's structures are written
//! here by hand (`struct tc_htb_glob`, `struct tc_htb_opt` of linux/pkt_sched.h).

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::DefaultNla;
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::tc::*;

use super::nl::Netlink;
use crate::units::BitRate;

mod modules;

pub use modules::{netem, red};

/// The root of a link's egress.
pub const ROOT: u32 = 0xffff_ffff;
/// The place of `clsact`.
pub const CLSACT: u32 = 0xffff_fff1;
/// Its ingress hook.
pub const INGRESS: u32 = 0xffff_fff2;
/// Its egress hook.
pub const EGRESS: u32 = 0xffff_fff3;

/// The handle of a link's HTB.
pub const HTB: u32 = handle(1, 0);

/// A class or queue handle.
pub const fn handle(major: u16, minor: u16) -> u32 {
    (major as u32) << 16 | minor as u32
}

fn base(link: u32, parent: u32, handle: u32, kind: &str) -> TcMessage {
    let mut m = TcMessage::with_index(link as i32);
    m.header.parent = parent.into();
    m.header.handle = handle.into();
    m.attributes.push(TcAttribute::Kind(kind.into()));
    m
}

fn raw(kind: u16, value: Vec<u8>) -> TcOption {
    TcOption::Other(DefaultNla::new(kind, value))
}

/// Hooks for filters on a link's way in and out.
pub fn clsact(link: u32) -> Message {
    Message::NewQueueDiscipline(base(link, CLSACT, 0xffff_0000, "clsact"))
}

/// Takes a link's hooks away, and every filter on them.
pub fn remove_clsact(link: u32) -> Message {
    Message::DelQueueDiscipline(base(link, CLSACT, 0xffff_0000, "clsact"))
}

/// An HTB as a link's root, handle 1:, with the class for packets that no filter names.
pub fn htb(link: u32, default_class: u16) -> Message {
    let mut m = base(link, ROOT, HTB, "htb");
    let version_3 = [3u32, 10, u32::from(default_class), 0, 0];
    let glob = version_3.iter().flat_map(|v| v.to_ne_bytes()).collect();
    const DIRECT_QLEN: u16 = 5;
    m.attributes.push(TcAttribute::Options(vec![
        raw(2, glob),
        raw(DIRECT_QLEN, 1000u32.to_ne_bytes().to_vec()),
    ]));
    Message::NewQueueDiscipline(m)
}

/// Takes a link's HTB away.
pub fn remove_htb(link: u32) -> Message {
    Message::DelQueueDiscipline(base(link, ROOT, HTB, "htb"))
}

/// Takes a link's root away, whatever it is.
pub fn remove_root(link: u32) -> Message {
    let mut m = TcMessage::with_index(link as i32);
    m.header.parent = ROOT.into();
    Message::DelQueueDiscipline(m)
}

/// The queues of all links.
pub fn queue_dump() -> Message {
    Message::GetQueueDiscipline(TcMessage::default())
}

/// A queue, or hooks, of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qdisc {
    /// The link.
    pub link: u32,
    /// Its handle; 0 for what the kernel puts there by itself.
    pub handle: u32,
    /// `htb`, `clsact`, `noqueue`...
    pub kind: String,
}

/// The queues of all links of a namespace.
///
/// # Errors
/// What the kernel refused.
pub fn queues(nl: &mut Netlink) -> io::Result<Vec<Qdisc>> {
    let mut found = vec![];
    nl.dump(queue_dump(), |m| {
        if let Message::NewQueueDiscipline(q) = m {
            let kind = q
                .attributes
                .iter()
                .find_map(|a| if let TcAttribute::Kind(k) = a { Some(k.clone()) } else { None });
            let link = q.header.index.unsigned_abs();
            found.push(Qdisc {
                link,
                handle: q.header.handle.into(),
                kind: kind.unwrap_or_default(),
            });
        }
    })?;
    Ok(found)
}

/// What every link's HTB has carried, dropped and holds, by the link.
///
/// # Errors
/// What the kernel refused.
pub fn link_counters(nl: &mut Netlink) -> io::Result<BTreeMap<u32, QdiscCounters>> {
    let mut found = BTreeMap::new();
    nl.dump(queue_dump(), |m| {
        if let Message::NewQueueDiscipline(q) = m
            && u32::from(q.header.handle) == HTB
        {
            found.insert(q.header.index.unsigned_abs(), counters(&q));
        }
    })?;
    Ok(found)
}

/// What a class of whole segments sends in one turn, in bytes: about the largest segment. With
/// 9,000, five queues of 8 MB each on a port of 100 Mb/s ended up to an eighth apart, since a turn
/// is a segment at least; with this within a hundredth.
pub const SEGMENT_TURN: u32 = 60_000;

/// An HTB class.
#[derive(Clone, Copy, Debug)]
pub struct HtbClass {
    /// Its handle's minor number.
    pub minor: u16,
    /// The parent's minor number; 0 is the root.
    pub parent: u16,
    /// What it is promised.
    pub rate: BitRate,
    /// What it may borrow up to.
    pub ceil: BitRate,
    /// Bytes that it may send at once.
    pub burst: u32,
    /// Smaller is served first.
    pub priority: u32,
    /// Bytes that it sends in one turn, where several classes of one priority want more than they
    /// are assured.
    pub turn: u32,
}

impl HtbClass {
    /// Adds the class to a link's HTB.
    pub fn add(&self, link: u32) -> Message {
        let (rate, ceil) =
            (self.rate.bytes_per_second().max(1), self.ceil.bytes_per_second().max(1));
        let mut m = base(link, handle(1, self.parent), handle(1, self.minor), "htb");
        let mut parms = rate_spec(rate);
        parms.extend(rate_spec(ceil));
        for v in [ticks(self.burst, rate), ticks(self.burst, ceil), self.turn, 0, self.priority] {
            parms.extend(v.to_ne_bytes());
        }
        let mut options = vec![raw(1, parms)];
        // Above 2^32 bytes/s the 32-bit fields are full and 64-bit attributes follow.
        if rate > u64::from(u32::MAX) {
            options.push(raw(6, rate.to_ne_bytes().to_vec()));
        }
        if ceil > u64::from(u32::MAX) {
            options.push(raw(7, ceil.to_ne_bytes().to_vec()));
        }
        m.attributes.push(TcAttribute::Options(options));
        Message::NewTrafficClass(m)
    }
}

/// `struct tc_ratespec`. The link layer must be Ethernet (1), else the kernel demands a rate table.
fn rate_spec(rate: u64) -> Vec<u8> {
    let mut v = vec![0u8, 1, 0, 0, 0, 0, 0, 0];
    v.extend((rate.min(u64::from(u32::MAX)) as u32).to_ne_bytes());
    v
}

/// The time of `bytes` at `rate` (bytes/s) in the kernel's ticks of 64 ns.
fn ticks(bytes: u32, rate: u64) -> u32 {
    (u128::from(bytes) * 1_000_000_000 / u128::from(rate) / 64).min(u128::from(u32::MAX)) as u32
}

/// The parent and the handle of the queue of class 1:`minor`.
pub const fn leaf(minor: u16) -> (u32, u32) {
    (handle(1, minor), handle(0x1000 + minor, 0))
}

/// A byte-limited FIFO of this handle under a parent.
pub fn bfifo(link: u32, (parent, own): (u32, u32), limit: u32) -> Message {
    let mut m = base(link, parent, own, "bfifo");
    // struct tc_fifo_qopt is the attribute itself, not a nest.
    m.attributes.push(TcAttribute::Other(DefaultNla::new(2, limit.to_ne_bytes().to_vec())));
    Message::NewQueueDiscipline(m)
}

/// What [`cutter`] sends at once, in bytes. Longer packets are cut.
const CUT_BURST: u32 = 6_000;
/// How fast [`cutter`] sends, in bytes/s: faster than a processor asks for packets.
const CUT_RATE: u64 = 12_500_000_000;

/// A byte-limited FIFO of this handle under a parent that cuts segments into frames when they come
/// in. It is a token bucket, which does so with what is longer than its burst, and which holds
/// nothing up.
pub fn cutter(link: u32, (parent, own): (u32, u32), limit: u32) -> Message {
    token_bucket(link, (parent, own), (CUT_RATE, 0), limit, (CUT_BURST, true))
}

/// What a gate that lets packets through holds of them at once, in bytes.
const OPEN_BURST: u32 = 1 << 20;
/// The cost that a shut gate sees in a packet, in bytes: above [`SHUT_BURST`], so that none leaves.
const SHUT_COST: u16 = u16::MAX;
/// What a shut gate saves up, in bytes: above every segment, which would be cut into frames else.
const SHUT_BURST: u32 = 65_500;
/// What a shut gate gets, in bytes/s: it looks again whenever what it lacks has come, every 10 ms.
const SHUT_RATE: u64 = (SHUT_COST as u64 - SHUT_BURST as u64) * 100;

/// A gate under class 1:`minor`, a token bucket of at most `limit` bytes. Open, packets leave as
/// fast as classes of `rate` ask for them. Shut, packets come in and none leaves, because the least
/// cost of one is above what the bucket holds. (The kernel compares a packet's true length when it
/// comes in.) Sent again it changes the gate, and what waits in it stays.
pub fn gate(link: u32, minor: u16, rate: BitRate, limit: u32, open: bool) -> Message {
    let (rate, burst, cost) = if open {
        (rate.bytes_per_second().max(1) * 20, OPEN_BURST, 0)
    } else {
        (SHUT_RATE, SHUT_BURST, SHUT_COST)
    };
    token_bucket(link, leaf(minor), (rate, cost), limit, (burst, open))
}

/// A token bucket of `rate` bytes/s that holds at most `limit` bytes, and the least cost of a
/// packet. With `exact`, packets longer than the burst are cut; else the kernel derives the longest
/// packet from the burst's time, rounded.
fn token_bucket(
    link: u32,
    (parent, own): (u32, u32),
    (rate, cost): (u64, u16),
    limit: u32,
    (burst, exact): (u32, bool),
) -> Message {
    let mut m = base(link, parent, own, "tbf");
    // struct tc_tbf_qopt: the rate, no peak rate, limit, buffer, mtu.
    let mut parms = rate_spec(rate);
    parms[6..8].copy_from_slice(&cost.to_ne_bytes());
    parms.extend([0; 12]);
    for v in [limit, ticks(burst, rate), 0] {
        parms.extend(v.to_ne_bytes());
    }
    let mut options = vec![raw(1, parms)];
    if rate > u64::from(u32::MAX) {
        options.push(raw(4, rate.to_ne_bytes().to_vec()));
    }
    if exact {
        options.push(raw(6, burst.to_ne_bytes().to_vec()));
    }
    m.attributes.push(TcAttribute::Options(options));
    Message::NewQueueDiscipline(m)
}

const ETH_P_ALL: u16 = 0x0003;
const ETH_P_IP: u16 = 0x0800;

fn filter(
    link: u32,
    parent: u32,
    (priority, protocol): (u16, u16),
    id: u32,
    kind: &str,
) -> TcMessage {
    let mut m = base(link, parent, id, kind);
    m.header.info = u32::from(priority) << 16 | u32::from(protocol.to_be());
    m
}

/// A direct-action BPF program on a link's way in.
pub fn bpf_ingress(link: u32, program: BorrowedFd, name: &str) -> Message {
    let mut m = filter(link, INGRESS, (1, ETH_P_ALL), 1, "bpf");
    m.attributes.push(TcAttribute::Options(vec![
        TcOption::Bpf(TcFilterBpfOption::ProgFd(program.as_raw_fd() as u32)),
        TcOption::Bpf(TcFilterBpfOption::ProgName(name.into())),
        TcOption::Bpf(TcFilterBpfOption::Flags(TcBpfFlags::DirectAction)),
    ]));
    Message::NewTrafficFilter(m)
}

/// What a u32 filter compares: a 32-bit word of the IP header (network byte order) under a mask.
#[derive(Clone, Copy)]
pub struct Match {
    /// Offset in the IP header, a multiple of four.
    pub offset: i32,
    /// Value.
    pub value: u32,
    /// Mask.
    pub mask: u32,
}

impl Match {
    /// Everything.
    pub const ANY: Self = Self { offset: 0, value: 0, mask: 0 };
    /// IP packets shorter than 128 bytes: acknowledgements.
    pub const SMALL: Self = Self { offset: 0, value: 0, mask: 0x0000_ff80 };

    /// Packets of a class selector: the upper three bits of the DSCP.
    pub fn class_selector(dscp: u8) -> Self {
        Self { offset: 0, value: u32::from(dscp) << 18 & 0x00e0_0000, mask: 0x00e0_0000 }
    }

    /// Packets to a prefix.
    pub fn to(net: Ipv4Addr, length: u8) -> Self {
        Self { offset: 16, ..Self::from(net, length) }
    }

    /// Packets from a prefix.
    pub fn from(net: Ipv4Addr, length: u8) -> Self {
        let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
        Self { offset: 12, value: u32::from(net) & mask, mask }
    }
}

fn u32_base(
    link: u32,
    parent: u32,
    priority: u16,
    m: Match,
    node: u32,
) -> (TcMessage, TcU32Selector) {
    let protocol = if m.mask == 0 { ETH_P_ALL } else { ETH_P_IP };
    let message = filter(link, parent, (priority, protocol), node, "u32");
    let mut key = TcU32Key::default();
    // The library writes both in network byte order.
    (key.val, key.mask, key.off) = (m.value, m.mask, m.offset);
    let mut selector = TcU32Selector::default();
    selector.flags = TcU32SelectorFlags::Terminal;
    selector.nkeys = 1;
    selector.keys = vec![key];
    (message, selector)
}

/// A u32 filter that puts packets into class 1:`minor` (at ingress: lets them pass).
pub fn classify(link: u32, parent: u32, priority: u16, m: Match, minor: u16) -> Message {
    let (mut message, selector) = u32_base(link, parent, priority, m, 0);
    message.attributes.push(TcAttribute::Options(vec![
        TcOption::U32(TcFilterU32Option::ClassId(TcHandle::from(handle(1, minor)))),
        TcOption::U32(TcFilterU32Option::Selector(selector)),
    ]));
    Message::NewTrafficFilter(message)
}

/// The node of the first u32 filter on a hook: by this handle it can be replaced in place. Later
/// filters' nodes are the kernel's to number.
pub const FIRST_NODE: u32 = 0x8000_0800;
/// The node behind all others of the first priority on a hook.
pub const LAST_NODE: u32 = 0x8000_0fff;
/// The first node of the second priority: each has a hash table, numbered as they come.
pub const SECOND_TABLE: u32 = 0x8010_0800;

/// A u32 filter on a link's way in that sends packets out of the link `out`, with the shared action
/// number `index` (0: a fresh one). `node` is one of those above or 0.
pub fn redirect(
    link: u32,
    (priority, node): (u16, u32),
    m: Match,
    out: u32,
    index: u32,
) -> Message {
    let (mut message, selector) = u32_base(link, INGRESS, priority, m, node);
    let mut mirror = TcMirror::default();
    mirror.generic.index = index;
    mirror.generic.action = TcActionType::Stolen;
    mirror.eaction = TcMirrorActionType::EgressRedir;
    mirror.ifindex = out;
    let mut action = TcAction::default();
    action.attributes = vec![
        TcActionAttribute::Kind(TcActionMirror::KIND.to_string()),
        TcActionAttribute::Options(vec![TcActionOption::Mirror(TcActionMirrorOption::Parms(
            mirror,
        ))]),
    ];
    message.attributes.push(TcAttribute::Options(vec![
        TcOption::U32(TcFilterU32Option::Selector(selector)),
        TcOption::U32(TcFilterU32Option::Action(vec![action])),
    ]));
    Message::NewTrafficFilter(message)
}

/// Takes a u32 filter for IP packets away, by its priority and node.
pub fn remove_filter(link: u32, (priority, node): (u16, u32)) -> Message {
    Message::DelTrafficFilter(filter(link, INGRESS, (priority, ETH_P_IP), node, "u32"))
}

/// All classes of a link.
pub fn class_dump(link: u32) -> Message {
    Message::GetTrafficClass(TcMessage::with_index(link as i32))
}

/// The filters of a link on a hook or queue, with their actions' statistics.
pub fn filter_dump(link: u32, parent: u32) -> Message {
    let mut m = TcMessage::with_index(link as i32);
    m.header.parent = parent.into();
    Message::GetTrafficFilter(m)
}

/// Counters of a class or queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QdiscCounters {
    /// Its handle.
    pub handle: u32,
    /// Bytes that left it.
    pub bytes: u64,
    /// Packets that left it.
    pub packets: u32,
    /// Bytes that wait in it.
    pub backlog: u32,
    /// Packets that it dropped.
    pub drops: u32,
}

/// Reads a class's (or queue's) statistics.
pub fn counters(m: &TcMessage) -> QdiscCounters {
    let mut c = QdiscCounters { handle: m.header.handle.into(), ..QdiscCounters::default() };
    let stats = m
        .attributes
        .iter()
        .filter_map(|a| if let TcAttribute::Stats2(s) = a { Some(s) } else { None });
    for s in stats.flatten() {
        match s {
            TcStats2::Basic(b) => (c.bytes, c.packets) = (b.bytes, b.packets),
            TcStats2::Queue(q) => (c.backlog, c.drops) = (q.backlog, q.drops),
            _ => {}
        }
    }
    c
}

/// Packets that the action of a u32 filter has taken.
pub fn action_packets(m: &TcMessage) -> u64 {
    let options = m
        .attributes
        .iter()
        .filter_map(|a| if let TcAttribute::Options(o) = a { Some(o) } else { None });
    let actions = options.flatten().filter_map(|o| match o {
        TcOption::U32(TcFilterU32Option::Action(a)) => Some(a),
        _ => None,
    });
    let stats = actions.flatten().flat_map(|a| &a.attributes).filter_map(|a| match a {
        TcActionAttribute::Stats(s) => Some(s),
        _ => None,
    });
    stats
        .flatten()
        .map(|s| if let TcStats2::Basic(b) = s { u64::from(b.packets) } else { 0 })
        .max()
        .unwrap_or(0)
}
