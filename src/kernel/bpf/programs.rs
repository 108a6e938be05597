//! The two programs of the `timed` mechanism, and the layout of the arrays that they share with the
//! daemon.
//!
//! Every OCS port holds a ring of [`SLOTS`] circuits with their times. The programs compare them
//! with their own clock (CLOCK_MONOTONIC), so that a circuit goes up and down at its nanosecond
//! whatever the daemon does then. A slot is written while its `until` is zero or past, `until`
//! last; programs read `until` first. That order suffices where loads are not reordered among
//! themselves, nor stores (x86-64). Elsewhere (aarch64) a program could read the `until` of a
//! slot's next circuit beside the `from` and `out` of its last one, in the nanoseconds in which it
//! is written. It would light that one again, so `timed` is meant for x86-64.

use std::os::fd::OwnedFd;

use super::asm::When::{Eq, Ge, Gt, Lt, Ne};
use super::asm::Width::{Byte, Long, Word};
use super::asm::{Asm, FP, R0, R1, R2, R3, R4, R5, R6, R7, R8, R9};
use super::{SharedArray, load, map_number};
use crate::coflows::elephants::Admit;
use crate::fabric::PORTS;
use crate::units::Span;

/// Circuits that a port holds at once.
pub const SLOTS: usize = crate::fabric::SLOTS_PER_PORT;
/// Cells of a slot: `until`, `from` (CLOCK_MONOTONIC ns) and `out` (interface index << 32 | rack).
pub const SLOT_CELLS: usize = 3;
/// Cell of a slot: its end; zero for an empty slot.
pub const UNTIL: usize = 0;
/// Cell of a slot: when it has light.
pub const FROM: usize = 1;
/// Cell of a slot: the way out.
pub const OUT: usize = 2;

/// Counters of an OCS port, as cells.
pub const CROSSED_PACKETS: usize = 0;
/// Payload of those, in bytes.
pub const CROSSED_BYTES: usize = 1;
/// Packets that came after their circuit had ended, and were sent back to their ToR.
pub const LATE: usize = 2;
/// Packets that came out at the port's rack and were for another one. Its ToR drops them.
pub const MISDELIVERED: usize = 3;

/// Packets sent back, as the kernel handles them (aggregated).
pub const SENT_BACK: usize = 4;
/// Cells of a port's counters.
pub const COUNTERS: usize = 5;

/// EtherType of circuit probes (IEEE 802 local experimental 1).
pub const PROBE_ETHERTYPE: u16 = 0x88b5;

// Offsets in struct __sk_buff.
pub(super) const LEN: i16 = 0;
pub(super) const PROTOCOL: i16 = 16;
const PRIORITY: i16 = 32;
const IFINDEX: i16 = 40;
const GSO_SEGS: i16 = 164;

const MAP_LOOKUP: i32 = 1;
const KTIME: i32 = 5;
pub(super) const REDIRECT: i32 = 23;
pub(super) const LOAD_BYTES: i32 = 26;
const REDIRECT_NEIGH: i32 = 152;

pub(super) const SHOT: i32 = 2;
const PASS: i32 = 0;

const PACKET_TYPE: i16 = 4;
const TAGGED: i16 = 20;
const CHECKSUM: i32 = 28;

/// Offsets in a frame: an IPv4 packet behind an Ethernet header, its source and its destination.
const PACKET_AT: i32 = 14;
const SOURCE_AT: i32 = 26;
const DESTINATION_AT: i32 = 30;

/// The arrays that all programs of one fabric share.
#[derive(Debug)]
pub struct CircuitArrays {
    /// Number of racks, R.
    pub racks: usize,
    /// By plane * R + rack: [`SLOTS`] slots.
    pub ports: SharedArray,
    /// By source * R + destination: payload that hosts sent to another rack.
    pub sent: SharedArray,
    /// By source * R + destination: payload that ToRs admitted to a circuit, less what an OCS sent
    /// back; and packets as the kernel handles them (aggregated), also those sent back.
    pub admitted: SharedArray,
    /// By source * R + destination: payload, and packets as the kernel handles them, that crossed
    /// an OCS to the right rack.
    pub crossed: SharedArray,
    /// By plane * R + rack: the port's counters.
    pub counts: SharedArray,
    /// By source * R + destination: until when (CLOCK_MONOTONIC ns) what comes from the ports of
    /// [`TorProgram::port`] counts as marked. A daemon that is killed writes no later time, so that
    /// nothing is held up for long.
    pub by_port: SharedArray,
}

impl CircuitArrays {
    /// Arrays for a network.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn new(racks: usize, planes: usize) -> std::io::Result<Self> {
        Self::made_by(racks, planes, SharedArray::new)
    }

    /// Arrays for a network, each made by `make` (entries, cells of an entry).
    pub(super) fn made_by(
        racks: usize,
        planes: usize,
        make: impl Fn(usize, usize) -> std::io::Result<SharedArray>,
    ) -> std::io::Result<Self> {
        let pairs = racks * racks;
        let ports = (planes * racks).max(1);
        Ok(Self {
            racks,
            ports: make(ports, SLOTS * SLOT_CELLS)?,
            sent: make(pairs, 1)?,
            admitted: make(pairs, 2)?,
            crossed: make(pairs, 2)?,
            counts: make(ports, COUNTERS)?,
            by_port: make(pairs, 1)?,
        })
    }
}

/// What the program of a ToR must know.
pub struct TorProgram<'a> {
    /// The ToR's rack.
    pub rack: usize,
    /// Interface indexes of its OCS ports, by plane.
    pub ocs: &'a [u32],
    /// Which packets go to circuits. Those that wait do so in the ToR's first OCS port, however
    /// long; short ones ([`SHORT`]) never do.
    pub admit: Admit,
    /// The first of [`PORTS`] TCP ports of senders that mark no packet: what comes from them counts
    /// as marked while [`CircuitArrays::by_port`] says so of its pair of racks.
    pub port: Option<u16>,
    /// Time before a circuit's end at which admission ends, so that its queue drains. Below 2 s.
    pub guard: Span,
}

/// Frames below this carry no data to speak of, but connections' beginnings and ends.
pub const SHORT: i32 = 128;

/// `array[key on the stack at FP + at]` into R0, or to label `none`.
pub(super) fn look_up(a: &mut Asm, array: &SharedArray, at: i32, none: &str) {
    a.copy(R2, FP).add(R2, at).map(R1, map_number(array)).call(MAP_LOOKUP).jump_if(R0, Eq, 0, none);
}

/// `bytes` of the packet at `from` onto the stack at FP + `at`, or to label `none`.
pub(super) fn load_bytes(a: &mut Asm, from: i32, at: i32, bytes: i32, none: &str) {
    a.copy(R1, R6)
        .set(R2, from)
        .copy(R3, FP)
        .add(R3, at)
        .set(R4, bytes)
        .call(LOAD_BYTES)
        .jump_if(R0, Ne, 0, none);
}

/// Bytes of a frame that are not payload: Ethernet, IPv4, and TCP with timestamps, as all our hosts
/// speak it.
pub const HEADERS: i32 = 14 + 20 + 32;

/// The longest frame that may hold nothing but headers: TCP has up to 40 bytes of options, and an
/// acknowledgement that says what is missing (SACK) uses them. Were those payload, every shuffle
/// that loses a segment would be demand in the other direction, too.
pub const EMPTY: i32 = 14 + 20 + 60;

/// The packet's payload into R1; of an aggregated packet, which has one header, that of all its
/// segments.
fn payload(a: &mut Asm, label: &str) {
    a.load(Word, R1, R6, LEN)
        .jump_if(R1, Gt, EMPTY, label)
        .set(R1, HEADERS)
        .label(label)
        .add(R1, -HEADERS);
}

/// Adds one to the cell at R0 + 8 `k`.
pub(super) fn count_one(a: &mut Asm, k: usize) {
    a.set(R1, 1).atomic_add(R0, 8 * k as i16, R1);
}

/// The key of the pair of racks onto the stack: `first` is that of its row, R7 the other rack.
fn pair_from(a: &mut Asm, first: usize) {
    a.copy(R1, R7).add(R1, first as i32).store(Word, FP, PAIR_KEY as i16, R1);
}

const DESTINATION: i32 = -8;
const SOURCE_PORT: i32 = -8;
/// Where TCP's source port is in a frame whose IPv4 header has no options.
const SOURCE_PORT_AT: i32 = 34;
const TCP: i32 = 6;
const PAIR_KEY: i32 = -12;
const PORT_KEY: i32 = -20;
const NEXT_HOP: i32 = -40;
/// An IPv4 header without options.
const HEADER: i16 = -64;
const HEADER_BYTES: i32 = 20;

/// To the label `pass` with what the kernel's routes would drop or answer. That is frames with
/// another MAC than the ToR's or with a VLAN tag, and packets whose header is broken or whose time
/// is over. So both mechanisms carry the same. The header is on the stack then; the sum of one with
/// options is left to the kernel behind the circuit.
fn only_sound(a: &mut Asm) {
    a.load(Word, R1, R6, PACKET_TYPE).jump_if(R1, Ne, 0, "pass");
    a.load(Word, R1, R6, TAGGED).jump_if(R1, Ne, 0, "pass");
    load_bytes(a, PACKET_AT, i32::from(HEADER), HEADER_BYTES, "pass");
    a.load(Byte, R1, FP, HEADER).jump_if(R1, Lt, 0x45, "pass").jump_if(R1, Gt, 0x4f, "pass");
    a.load(Byte, R2, FP, HEADER + 8).jump_if(R2, Lt, 2, "pass");
    // Its length: not below that of the header, and not beyond the frame.
    a.load(Byte, R2, FP, HEADER + 2).shl(R2, 8).load(Byte, R3, FP, HEADER + 3).add_reg(R2, R3);
    a.copy(R3, R1).and(R3, 15).shl(R3, 2).jump_if_reg(R2, Lt, R3, "pass");
    a.load(Word, R3, R6, LEN).add(R3, -PACKET_AT).jump_if_reg(R3, Lt, R2, "pass");
    a.jump_if(R1, Ne, 0x45, "sound");
    a.set(R1, 0)
        .set(R2, 0)
        .copy(R3, FP)
        .add(R3, i32::from(HEADER))
        .set(R4, HEADER_BYTES)
        .set(R5, 0)
        .call(CHECKSUM);
    for _ in 0..2 {
        a.copy(R1, R0).shl(R1, 48).shr(R1, 48).shr(R0, 16).add_reg(R0, R1);
    }
    a.jump_if(R0, Ne, 0xffff, "pass").label("sound");
}

/// To the label `pass` with what is not TCP from one of [`PORTS`] ports, or is between racks whose
/// time in [`CircuitArrays::by_port`] is over.
fn from_port(a: &mut Asm, arrays: &CircuitArrays, port: u16) {
    a.load(Byte, R1, FP, HEADER).jump_if(R1, Ne, 0x45, "pass");
    a.load(Byte, R1, FP, HEADER + 9).jump_if(R1, Ne, TCP, "pass");
    // Only the first fragment of a packet has ports.
    a.load(Byte, R1, FP, HEADER + 6).and(R1, 0x1f).jump_if(R1, Ne, 0, "pass");
    a.load(Byte, R1, FP, HEADER + 7).jump_if(R1, Ne, 0, "pass");
    load_bytes(a, SOURCE_PORT_AT, SOURCE_PORT, 2, "pass");
    let at = SOURCE_PORT as i16;
    a.load(Byte, R1, FP, at).shl(R1, 8).load(Byte, R2, FP, at + 1).add_reg(R1, R2);
    a.add(R1, -i32::from(port)).jump_if(R1, Ge, i32::from(PORTS), "pass");
    look_up(a, &arrays.by_port, PAIR_KEY, "pass");
    a.load(Long, R8, R0, 0).call(KTIME).jump_if_reg(R0, Ge, R8, "pass");
}

/// The program on every host port of a ToR: counts bytes by destination rack. Packets that may use
/// a circuit that is up go to the OCS port, class 1:(0x100 + rack), short ones ([`SHORT`]) class
/// 1:2. All others fall through to the kernel's routes, that is to the EPS.
pub fn tor(arrays: &CircuitArrays, tor: &TorProgram) -> Vec<u64> {
    let racks = arrays.racks as i32;
    let mut a = Asm::default();
    a.copy(R6, R1).load(Word, R1, R6, PROTOCOL).jump_if(
        R1,
        Ne,
        i32::from(0x0800u16.to_be()),
        "pass",
    );
    only_sound(&mut a);
    a.load(Byte, R7, FP, HEADER + 16).jump_if(R7, Ne, 10, "pass");
    a.load(Byte, R7, FP, HEADER + 17);
    a.jump_if(R7, Eq, tor.rack as i32, "pass").jump_if(R7, Ge, racks, "pass");
    pair_from(&mut a, tor.rack * arrays.racks);
    look_up(&mut a, &arrays.sent, PAIR_KEY, "pass");
    payload(&mut a, "sent");
    a.atomic_add(R0, 0, R1);
    if let Some(tos) = tor.admit.tos() {
        // One bit: those above it may say a priority.
        let otherwise = if tor.port.is_some() { "unmarked" } else { "pass" };
        a.load(Byte, R1, FP, HEADER + 1).and(R1, i32::from(tos)).jump_if(R1, Eq, 0, otherwise);
        if let Some(port) = tor.port {
            a.jump("marked").label("unmarked");
            from_port(&mut a, arrays, port);
            a.label("marked");
        }
    }
    if tor.admit.waits() {
        a.load(Word, R1, R6, LEN).jump_if(R1, Lt, SHORT, "pass");
    }
    a.call(KTIME).copy(R9, R0);
    let planes = if tor.admit.waits() { 1 } else { tor.ocs.len() };
    for (plane, &link) in tor.ocs.iter().enumerate().take(planes) {
        let next_plane = format!("plane{}", plane + 1);
        if !tor.admit.waits() {
            let admit = format!("admit{plane}");
            a.set(R1, plane as i32 * racks + tor.rack as i32).store(Word, FP, PORT_KEY as i16, R1);
            look_up(&mut a, &arrays.ports, PORT_KEY, "pass");
            a.copy(R8, R0);
            for slot in 0..SLOTS {
                let (at, next) = ((slot * SLOT_CELLS * 8) as i16, format!("p{plane}s{}", slot + 1));
                a.load(Long, R1, R8, at + 8 * UNTIL as i16)
                    .copy(R2, R9)
                    .add(R2, tor.guard.0 as i32)
                    .jump_if_reg(R2, Ge, R1, &next);
                a.load(Long, R1, R8, at + 8 * FROM as i16).jump_if_reg(R9, Lt, R1, &next);
                a.load(Word, R1, R8, at + 8 * OUT as i16).jump_if_reg(R1, Eq, R7, &admit);
                a.label(&next);
            }
            a.jump(&next_plane).label(&admit);
        }
        look_up(&mut a, &arrays.admitted, PAIR_KEY, "pass");
        payload(&mut a, &format!("admitted{plane}"));
        a.atomic_add(R0, 0, R1);
        count_one(&mut a, 1);
        let class = format!("class{plane}");
        a.copy(R1, R7)
            .add(R1, 0x1_0100)
            .load(Word, R2, R6, LEN)
            .jump_if(R2, Ge, SHORT, &class)
            .set(R1, 0x1_0002)
            .label(&class);
        a.store(Word, R6, PRIORITY, R1);
        // struct bpf_redir_neigh { AF_INET, 169.254.3.rack }
        a.set(R1, 2).store(Word, FP, NEXT_HOP as i16, R1);
        a.copy(R1, R7).shl(R1, 24).add(R1, 0x0003_fea9).store(Word, FP, NEXT_HOP as i16 + 4, R1);
        a.set(R1, 0);
        for o in [8, 12, 16] {
            a.store(Word, FP, NEXT_HOP as i16 + o, R1);
        }
        a.set(R1, link as i32)
            .copy(R2, FP)
            .add(R2, NEXT_HOP)
            .set(R3, 20)
            .set(R4, 0)
            .call(REDIRECT_NEIGH)
            .exit();
        a.label(&next_plane);
    }
    a.label("pass").ret(PASS);
    a.finish()
}

/// The program on every port of an OCS: a packet goes out where the circuit leads that has light
/// now. In the dark, and if it is so late that the port's next circuit has light already, it goes
/// back to its ToR. All are counted.
pub fn crossbar(arrays: &CircuitArrays, plane: usize, rack: usize) -> Vec<u64> {
    let racks = arrays.racks;
    let mut a = Asm::default();
    a.copy(R6, R1).set(R7, -1).load(Word, R1, R6, PROTOCOL).jump_if(
        R1,
        Eq,
        i32::from(PROBE_ETHERTYPE.to_be()),
        "find",
    );
    a.jump_if(R1, Ne, i32::from(0x0800u16.to_be()), "drop");
    load_bytes(&mut a, DESTINATION_AT, DESTINATION, 4, "drop");
    a.load(Byte, R7, FP, DESTINATION as i16 + 1).label("find");
    a.set(R1, (plane * racks + rack) as i32).store(Word, FP, PORT_KEY as i16, R1);
    look_up(&mut a, &arrays.ports, PORT_KEY, "drop");
    a.copy(R8, R0).call(KTIME).copy(R9, R0);
    for slot in 0..SLOTS {
        let (at, next) = ((slot * SLOT_CELLS * 8) as i16, format!("s{}", slot + 1));
        a.load(Long, R1, R8, at + 8 * UNTIL as i16).jump_if_reg(R9, Ge, R1, &next);
        a.load(Long, R1, R8, at + 8 * FROM as i16).jump_if_reg(R9, Lt, R1, &next);
        a.load(Long, R8, R8, at + 8 * OUT as i16).jump("light").label(&next);
    }
    // In the dark: what a ToR sent too late goes back to it, and on over the EPS. Probes end here.
    a.jump_if(R7, Gt, 255, "drop").label("late");
    look_up(&mut a, &arrays.counts, PORT_KEY, "drop");
    count_packets(&mut a, "packets back");
    a.atomic_add(R0, 8 * LATE as i16, R1);
    count_one(&mut a, SENT_BACK);
    a.jump_if(R7, Ge, racks as i32, "back");
    pair_from(&mut a, rack * racks);
    look_up(&mut a, &arrays.admitted, PAIR_KEY, "back");
    payload(&mut a, "admitted");
    a.mul(R1, -1).atomic_add(R0, 0, R1).label("back");
    a.load(Word, R1, R6, IFINDEX).set(R2, 0).call(REDIRECT).exit().label("drop").ret(SHOT);

    a.label("light").jump_if(R7, Gt, 255, "out");
    a.copy(R1, R8).shl(R1, 32).shr(R1, 32).jump_if_reg(R1, Eq, R7, "right").jump("late");
    a.label("right");
    pair_from(&mut a, rack * racks);
    look_up(&mut a, &arrays.crossed, PAIR_KEY, "drop");
    payload(&mut a, "crossed");
    a.atomic_add(R0, 0, R1);
    count_one(&mut a, 1);
    look_up(&mut a, &arrays.counts, PORT_KEY, "drop");
    count_packets(&mut a, "packets");
    a.atomic_add(R0, 8 * CROSSED_PACKETS as i16, R1);
    payload(&mut a, "bytes");
    a.atomic_add(R0, 8 * CROSSED_BYTES as i16, R1);
    a.label("out").copy(R1, R8).shr(R1, 32).set(R2, 0).call(REDIRECT).exit();
    a.finish()
}

/// The program on every OCS port of a ToR: packets for its rack pass, and so do those from it,
/// which the OCS sent back. Other ones came out at the wrong rack: they are counted and dropped.
/// The routes would carry them to their rack after all, over the EPS, and hide it.
pub fn arrivals(arrays: &CircuitArrays, plane: usize, rack: usize) -> Vec<u64> {
    let mut a = Asm::default();
    a.copy(R6, R1).load(Word, R1, R6, PROTOCOL).jump_if(
        R1,
        Ne,
        i32::from(0x0800u16.to_be()),
        "pass",
    );
    for at in [DESTINATION_AT, SOURCE_AT] {
        load_bytes(&mut a, at, DESTINATION, 4, "pass");
        a.load(Byte, R7, FP, DESTINATION as i16 + 1).jump_if(R7, Eq, rack as i32, "pass");
    }
    a.set(R1, (plane * arrays.racks + rack) as i32).store(Word, FP, PORT_KEY as i16, R1);
    look_up(&mut a, &arrays.counts, PORT_KEY, "drop");
    count_packets(&mut a, "packets");
    a.atomic_add(R0, 8 * MISDELIVERED as i16, R1).label("drop").ret(SHOT);
    a.label("pass").ret(PASS);
    a.finish()
}

/// The number of packets in a (possibly aggregated) packet into R1.
fn count_packets(a: &mut Asm, label: &str) {
    a.load(Word, R1, R6, GSO_SEGS).jump_if(R1, Ne, 0, label).set(R1, 1).label(label);
}

/// Loads a ToR's program.
///
/// # Errors
/// The verifier's words.
pub fn load_tor(arrays: &CircuitArrays, t: &TorProgram) -> std::io::Result<OwnedFd> {
    load(&tor(arrays, t), "heliostat_tor")
}

/// Loads the program of a ToR's OCS port.
///
/// # Errors
/// The verifier's words.
pub fn load_arrivals(
    arrays: &CircuitArrays,
    plane: usize,
    rack: usize,
) -> std::io::Result<OwnedFd> {
    load(&arrivals(arrays, plane, rack), "heliostat_in")
}

/// Loads an OCS port's program.
///
/// # Errors
/// The verifier's words.
pub fn load_crossbar(
    arrays: &CircuitArrays,
    plane: usize,
    rack: usize,
) -> std::io::Result<OwnedFd> {
    load(&crossbar(arrays, plane, rack), "heliostat_ocs")
}
