//! The three programs in a user-space machine, against slow twins in Rust.

use std::sync::atomic::Ordering::Relaxed;

use proptest::prelude::*;

use super::SharedArray;
use super::programs::{
    self, CircuitArrays, FROM, OUT, PROBE_ETHERTYPE, SLOT_CELLS, SLOTS, TorProgram, UNTIL,
};
use super::vm::{Packet, PacketVerdict, plain_arrays, run};
use crate::coflows::elephants::{Admit, ELEPHANT_DSCP};
use crate::fabric::PORTS;
use crate::units::Span;

const IP: u16 = 0x0800;
/// The marked traffic's TOS byte in these tests.
const TOS: u8 = ELEPHANT_DSCP << 2;
/// What programs see as now is near this, so that times lie before and after.
const EPOCH: u64 = 1_000_000_000_000;
const GUARD: u64 = 5;
/// The first port of senders that mark no packet.
const PORT: u16 = 7080;

/// A slot: from, until, out (link, rack).
#[derive(Clone, Copy, Debug)]
struct ArraySlot {
    from: u64,
    until: u64,
    out: (u32, u32),
}

impl ArraySlot {
    fn light(&self, now: u64) -> bool {
        self.from <= now && now < self.until
    }
}

/// What all arrays hold but the ports': compared as a whole, so that nothing else is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ArrayContents {
    sent: Vec<u64>,
    admitted: Vec<[u64; 2]>,
    crossed: Vec<[u64; 2]>,
    counts: Vec<[u64; programs::COUNTERS]>,
}

impl ArrayContents {
    fn zero(racks: usize, planes: usize) -> Self {
        let pairs = racks * racks;
        Self {
            sent: vec![0; pairs],
            admitted: vec![[0; 2]; pairs],
            crossed: vec![[0; 2]; pairs],
            counts: vec![[0; programs::COUNTERS]; racks * planes],
        }
    }

    fn of(arrays: &CircuitArrays, planes: usize) -> Self {
        fn read<const K: usize>(a: &SharedArray, n: usize) -> Vec<[u64; K]> {
            (0..n).map(|i| std::array::from_fn(|k| a.cell(i, k).load(Relaxed))).collect()
        }
        let pairs = arrays.racks * arrays.racks;
        Self {
            sent: read::<1>(&arrays.sent, pairs).into_iter().map(|[b]| b).collect(),
            admitted: read(&arrays.admitted, pairs),
            crossed: read(&arrays.crossed, pairs),
            counts: read(&arrays.counts, arrays.racks * planes),
        }
    }
}

fn fill(arrays: &CircuitArrays, port: usize, slots: &[ArraySlot]) {
    for (k, s) in slots.iter().enumerate() {
        let put = |cell, v| arrays.ports.cell(port, k * SLOT_CELLS + cell).store(v, Relaxed);
        put(UNTIL, s.until);
        put(FROM, s.from);
        put(OUT, u64::from(s.out.0) << 32 | u64::from(s.out.1));
    }
}

/// The destination of an IPv4 packet that is long enough to have one.
fn destination(p: &Packet) -> Option<[u8; 4]> {
    if p.protocol != IP {
        None
    } else {
        p.bytes.get(30..34).map(|d| d.try_into().expect("four bytes"))
    }
}

/// What an OCS port should do.
fn crossbar_twin(
    c: &mut ArrayContents,
    racks: usize,
    (plane, rack): (usize, usize),
    slots: &[ArraySlot],
    p: &Packet,
    now: u64,
) -> PacketVerdict {
    let light = slots.iter().find(|s| s.light(now));
    if p.protocol == PROBE_ETHERTYPE {
        return light.map_or(PacketVerdict::Drop, |s| PacketVerdict::Out(s.out.0));
    }
    let Some(d) = destination(p) else { return PacketVerdict::Drop };
    let (counts, packets) = (&mut c.counts[plane * racks + rack], u64::from(p.segments.max(1)));
    match light {
        Some(s) if s.out.1 == u32::from(d[1]) => {
            counts[programs::CROSSED_PACKETS] += packets;
            counts[programs::CROSSED_BYTES] += payload(p);
            let pair = &mut c.crossed[rack * racks + d[1] as usize];
            *pair = [pair[0] + payload(p), pair[1] + 1];
            PacketVerdict::Out(s.out.0)
        }
        _ => {
            counts[programs::LATE] += packets;
            counts[programs::SENT_BACK] += 1;
            if usize::from(d[1]) < racks {
                let pair = &mut c.admitted[rack * racks + usize::from(d[1])];
                pair[0] = pair[0].wrapping_sub(payload(p));
            }
            PacketVerdict::Out(p.link)
        }
    }
}

/// What a ToR's OCS port should do.
fn arrivals_twin(
    c: &mut ArrayContents,
    racks: usize,
    (plane, rack): (usize, usize),
    p: &Packet,
) -> PacketVerdict {
    let at = |k: usize| p.bytes.get(k..k + 4).map(|a| a[1]);
    if p.protocol != IP
        || [at(30), at(26)].iter().any(|net| net.is_none_or(|n| usize::from(n) == rack))
    {
        return PacketVerdict::Pass;
    }
    c.counts[plane * racks + rack][programs::MISDELIVERED] += u64::from(p.segments.max(1));
    PacketVerdict::Drop
}

/// Its payload, were it TCP with timestamps; none if it may be all headers.
fn payload(p: &Packet) -> u64 {
    if p.len <= 14 + 20 + 60 { 0 } else { u64::from(p.len) - (14 + 20 + 32) }
}

/// Whether the kernel's IP would forward it.
fn is_sound(p: &Packet) -> bool {
    let Some(header) = p.bytes.get(14..34) else { return false };
    let words = header.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
    let sum = words.fold(0, |a, w| (a + w) % 0xffff);
    let (bytes, total) =
        (u32::from(header[0] & 15) * 4, u32::from(u16::from_be_bytes([header[2], header[3]])));
    let fits = bytes <= total && total <= p.len.wrapping_sub(14);
    p.kind == 0
        && !p.tagged
        && header[0] >> 4 == 4
        && bytes >= 20
        && header[8] > 1
        && fits
        && (bytes > 20 || sum == 0)
}

/// Writes the sum of a frame's IPv4 header without options.
fn sum(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let words = frame[14..34].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
    let sum = !(words.fold(0, |a, w| (a + w) % 0xffff) as u16);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
}

/// Whether it is TCP from one of the ports that begin with `first`.
fn is_from(p: &Packet, first: u16) -> bool {
    let [header, port] = [p.bytes.get(14..34), p.bytes.get(34..36)].map(Option::unwrap_or_default);
    let of = |b: &[u8]| u16::from_be_bytes([b[0], b[1]]);
    !port.is_empty()
        && header[0] == 0x45
        && header[9] == 6
        && of(&header[6..8]) & 0x1fff == 0
        && (first..first + PORTS).contains(&of(port))
}

/// What a ToR's host port should do; `slots` by plane. What comes from the program's ports counts
/// as marked until the time of its pair in `by_port`.
fn tor_twin(
    c: &mut ArrayContents,
    racks: usize,
    tor: &TorProgram,
    (slots, by_port): (&[Vec<ArraySlot>], &[u64]),
    p: &Packet,
    now: u64,
) -> PacketVerdict {
    let Some([10, to, ..]) = destination(p).filter(|_| is_sound(p)) else {
        return PacketVerdict::Pass;
    };
    if usize::from(to) == tor.rack || usize::from(to) >= racks {
        return PacketVerdict::Pass;
    }
    let pair = tor.rack * racks + usize::from(to);
    c.sent[pair] += payload(p);
    let by_port = now < by_port[pair] && tor.port.is_some_and(|port| is_from(p, port));
    if tor.admit.tos().is_some_and(|t| p.bytes[15] & t == 0) && !by_port {
        return PacketVerdict::Pass;
    }
    let stays =
        |s: &ArraySlot| s.out.1 == u32::from(to) && s.light(now) && s.light(now + tor.guard.0);
    let plane = if tor.admit.waits() {
        (p.len >= programs::SHORT as u32).then_some(0)
    } else {
        slots.iter().position(|s| s.iter().any(stays))
    };
    let Some(plane) = plane else { return PacketVerdict::Pass };
    c.admitted[pair] = [c.admitted[pair][0] + payload(p), c.admitted[pair][1] + 1];
    let class = if p.len < programs::SHORT as u32 { 0x1_0002 } else { 0x1_0100 + u32::from(to) };
    PacketVerdict::Hop { link: tor.ocs[plane], neighbour: [169, 254, 3, to], class }
}

fn slot(racks: usize) -> impl Strategy<Value = ArraySlot> {
    let until = prop_oneof![1 => Just(0), 1 => Just(u64::MAX), 6 => EPOCH..EPOCH + 40];
    (EPOCH..EPOCH + 40, until, 0..racks as u32).prop_map(|(from, until, rack)| ArraySlot {
        from,
        until,
        out: (100 + rack, rack),
    })
}

fn packet() -> impl Strategy<Value = Packet> {
    let protocol = prop_oneof![8 => Just(IP), 1 => Just(PROBE_ETHERTYPE), 1 => Just(0x86dd)];
    // Marked or not, with each of the priorities.
    let class =
        (0..8u8, any::<bool>()).prop_map(|(p, marked)| p << 5 | if marked { TOS } else { 0 });
    let tos = prop_oneof![3 => Just(TOS), 1 => Just(TOS | 3), 2 => class, 1 => any::<u8>()];
    let net = prop_oneof![8 => Just(10), 1 => any::<u8>()];
    let to = prop_oneof![8 => 0..6u8, 1 => any::<u8>()];
    let cut = prop_oneof![8 => Just(64usize), 1 => 0..40usize];
    let odd = prop_oneof![9 => Just(0u8), 1 => 1..9u8];
    let source = prop_oneof![3 => PORT - 1..PORT + PORTS + 1, 1 => any::<u16>()];
    (
        protocol,
        tos,
        net,
        to,
        any::<[u8; 2]>(),
        prop_oneof![4 => 0..65_000u32, 1 => 0..200u32],
        (0..46u32, odd),
        (cut, source),
    )
        .prop_map(|(protocol, tos, net, to, host, len, (segments, odd), (cut, source))| {
            let mut bytes = vec![0x45; 64];
            bytes[15] = tos;
            bytes[20..22].fill(0);
            bytes[23] = 6;
            bytes[34..36].copy_from_slice(&source.to_be_bytes());
            bytes[16..18].copy_from_slice(&(len.saturating_sub(14) as u16).to_be_bytes());
            bytes[22] = if odd == 1 { host[0] % 3 } else { 64 };
            bytes[27] = host[0] % 6;
            bytes[30..34].copy_from_slice(&[net, to, host[0], host[1]]);
            match odd {
                2 => bytes[14] = host[1],
                3 => bytes[16..18].copy_from_slice(&host),
                7 => bytes[20..22].copy_from_slice(&host),
                8 => bytes[23] = host[0],
                _ => {}
            }
            sum(&mut bytes);
            bytes[25] ^= if odd == 4 { host[0] } else { 0 };
            bytes.truncate(cut);
            Packet {
                len,
                protocol,
                segments,
                link: 777,
                kind: if odd == 5 { 3 } else { 0 },
                tagged: odd == 6,
                bytes,
            }
        })
}

const PACKETS: std::ops::Range<usize> = 1..12;

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    #[test]
    fn a_crossbar_does_what_its_twin_does(
        (racks, planes, plane, rack, slots) in (1..6usize, 1..3usize).prop_flat_map(|(racks, planes)| {
            (Just(racks), Just(planes), 0..planes, 0..racks, prop::collection::vec(slot(racks), 0..=SLOTS))
        }),
        traffic in prop::collection::vec((packet(), EPOCH..EPOCH + 45), PACKETS),
    ) {
        let arrays = plain_arrays(racks, planes);
        fill(&arrays, plane * racks + rack, &slots);
        let code = programs::crossbar(&arrays, plane, rack);
        let mut expected = ArrayContents::zero(racks, planes);
        for (p, now) in traffic {
            let twin = crossbar_twin(&mut expected, racks, (plane, rack), &slots, &p, now);
            prop_assert_eq!(run(&code, &arrays, &p, now), twin, "{:?} at {}", p, now - EPOCH);
            prop_assert_eq!(&ArrayContents::of(&arrays, planes), &expected);
        }
    }

    #[test]
    fn a_tor_lets_in_what_its_twin_does(
        (racks, planes, plane, rack) in (1..6usize, 1..3usize).prop_flat_map(|(racks, planes)| {
            (Just(racks), Just(planes), 0..planes, 0..racks)
        }),
        traffic in prop::collection::vec(packet(), PACKETS),
    ) {
        let arrays = plain_arrays(racks, planes);
        let code = programs::arrivals(&arrays, plane, rack);
        let mut expected = ArrayContents::zero(racks, planes);
        for p in traffic {
            let twin = arrivals_twin(&mut expected, racks, (plane, rack), &p);
            prop_assert_eq!(run(&code, &arrays, &p, EPOCH), twin, "{:?}", p);
            prop_assert_eq!(&ArrayContents::of(&arrays, planes), &expected);
        }
    }

    #[test]
    fn a_tor_does_what_its_twin_does(
        (racks, rack, slots) in (1..6usize, 1..4usize).prop_flat_map(|(racks, planes)| {
            (Just(racks), 0..racks, prop::collection::vec(prop::collection::vec(slot(racks), 0..=SLOTS), planes))
        }),
        admit in prop::sample::select(vec![Admit::All, Admit::Marked, Admit::Wait]),
        port in prop::sample::select(vec![None, Some(1), Some(PORT), Some(u16::MAX - PORTS)]),
        by_port in prop::collection::vec(prop_oneof![Just(0), EPOCH..EPOCH + 45, Just(u64::MAX)], 36),
        traffic in prop::collection::vec((packet(), EPOCH..EPOCH + 45), PACKETS),
    ) {
        let planes = slots.len();
        let arrays = plain_arrays(racks, planes);
        for (p, s) in slots.iter().enumerate() {
            fill(&arrays, p * racks + rack, s);
        }
        let links: Vec<u32> = (0..planes as u32).map(|p| 10 + p).collect();
        let tor = TorProgram { rack, ocs: &links, admit, port, guard: Span(GUARD) };
        (0..racks * racks).for_each(|k| arrays.by_port.cell(k, 0).store(by_port[k], Relaxed));
        let code = programs::tor(&arrays, &tor);
        let mut expected = ArrayContents::zero(racks, planes);
        for (p, now) in traffic {
            let twin = tor_twin(&mut expected, racks, &tor, (&slots, &by_port), &p, now);
            prop_assert_eq!(run(&code, &arrays, &p, now), twin, "{:?} at {}", p, now - EPOCH);
            prop_assert_eq!(&ArrayContents::of(&arrays, planes), &expected);
        }
    }
}

fn marked_packet(to: u8) -> Packet {
    let mut bytes = vec![0x45; 64];
    bytes[15] = TOS;
    bytes[16..18].copy_from_slice(&1500u16.to_be_bytes());
    bytes[30..34].copy_from_slice(&[10, to, 0, 2]);
    sum(&mut bytes);
    Packet { len: 1514, protocol: IP, segments: 0, link: 777, kind: 0, tagged: false, bytes }
}

/// One circuit 0 -> 1 of 100 ns, guard 5 ns, looked at around every edge.
#[test]
fn edges_are_exact_to_the_nanosecond() {
    let arrays = plain_arrays(3, 1);
    fill(&arrays, 0, &[ArraySlot { from: EPOCH, until: EPOCH + 100, out: (101, 1) }]);
    let crossbar = programs::crossbar(&arrays, 0, 0);
    let tor = programs::tor(
        &arrays,
        &TorProgram { rack: 0, ocs: &[10], admit: Admit::Marked, port: None, guard: Span(GUARD) },
    );
    let at = |code: &[u64], now: u64| run(code, &arrays, &marked_packet(1), now);
    let hop = PacketVerdict::Hop { link: 10, neighbour: [169, 254, 3, 1], class: 0x1_0101 };
    assert_eq!(at(&crossbar, EPOCH - 1), PacketVerdict::Out(777));
    assert_eq!(at(&crossbar, EPOCH), PacketVerdict::Out(101));
    assert_eq!(at(&crossbar, EPOCH + 99), PacketVerdict::Out(101));
    assert_eq!(at(&crossbar, EPOCH + 100), PacketVerdict::Out(777));
    assert_eq!(run(&crossbar, &arrays, &marked_packet(2), EPOCH), PacketVerdict::Out(777));
    assert_eq!(at(&tor, EPOCH - 1), PacketVerdict::Pass);
    assert_eq!(at(&tor, EPOCH), hop);
    assert_eq!(at(&tor, EPOCH + 94), hop);
    assert_eq!(at(&tor, EPOCH + 95), PacketVerdict::Pass);
}

#[test]
fn the_last_slot_and_a_full_ring_count_too() {
    let arrays = plain_arrays(2, 1);
    let mut slots = [ArraySlot { from: EPOCH, until: EPOCH + 1, out: (100, 0) }; SLOTS];
    slots[SLOTS - 1] = ArraySlot { from: EPOCH + 10, until: u64::MAX, out: (101, 1) };
    fill(&arrays, 0, &slots);
    let code = programs::crossbar(&arrays, 0, 0);
    assert_eq!(run(&code, &arrays, &marked_packet(1), EPOCH + 10), PacketVerdict::Out(101));
    assert_eq!(run(&code, &arrays, &marked_packet(1), EPOCH + 9), PacketVerdict::Out(777));
}

/// What the daemon writes while a program reads: an empty slot is dark whatever else it holds.
#[test]
fn a_slot_without_end_is_dark() {
    let arrays = plain_arrays(2, 1);
    fill(&arrays, 0, &[ArraySlot { from: 0, until: 0, out: (101, 1) }]);
    assert_eq!(
        run(&programs::crossbar(&arrays, 0, 0), &arrays, &marked_packet(1), EPOCH),
        PacketVerdict::Out(777)
    );
}
