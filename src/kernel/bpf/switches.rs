//! The two programs of a packet switch in a graph, and the arrays that they share with the daemon.
//!
//! Every packet carries the number of its path in its destination MAC ([`LABEL`]). The first switch
//! looks the number up by the packet's hosts, and by its ports if flows between these hosts have
//! paths of their own, and writes it. Every switch finds itself in the path's record, which says
//! where the packet goes out. The last one writes the MAC of the rack's ToR. A record never changes
//! while a packet may carry its number, so that no packet sees two lists.

use std::os::fd::OwnedFd;

use super::asm::When::{Eq, Ge, Gt, Lt, Ne};
use super::asm::Width::{Byte, Half, Long, Word};
use super::asm::{Asm, FP, R1, R2, R3, R4, R5, R6, R7, R8, R9, Reg};
use super::programs::{LEN, LOAD_BYTES, PROTOCOL, REDIRECT, SHOT, count_one, load_bytes, look_up};
use super::{SharedArray, load};
use crate::plan::paths::Ports;

/// The most switches of a path: the cells of its record.
pub const HOPS: usize = 16;
/// How a MAC begins that carries a path's number in its last four bytes, little endian.
pub const LABEL: [u8; 2] = [0x02, 0xfe];
/// Flows between two hosts that have paths of their own: the cells of a set.
pub const FLOWS: usize = 16;
/// Pairs of hosts with such flows: the sets, of which the first is never used.
pub const SETS: usize = 4096;
/// Counters of a path, as cells: packets as the kernel handles them (aggregated), and bytes, that
/// its first switch sent off.
pub const ADMITTED: usize = 0;
/// The same at its last switch.
pub const DELIVERED: usize = 2;
/// Cells of a path's counters.
pub const COUNTERS: usize = 4;

/// `bpf_skb_store_bytes`.
const STORE_BYTES: i32 = 9;
/// In a frame: source and destination of an IPv4 packet behind an Ethernet header.
const ADDRESSES_AT: i32 = 26;
/// Bytes 2 to 4 of the MAC of a ToR's port to its switch ([`crate::layout::mac`]), little endian.
const TOR: i32 = 0x0000_0100;

/// One switch of a path, as its record holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathEntry {
    /// The switch.
    pub switch: u16,
    /// The link by which it goes on.
    pub out: u32,
    /// The rack whose ToR that link leads to, at the last switch.
    pub rack: Option<u8>,
}

impl PathEntry {
    /// The cell: the link below, then the switch's number plus one, whether it is the last, and the
    /// rack.
    pub fn cell(self) -> u64 {
        let last = self.rack.map_or(0, |r| 1 | u64::from(r) << 8);
        u64::from(self.out) | (u64::from(self.switch) + 1) << 32 | last << 48
    }
}

/// The arrays that the programs of one fabric share.
#[derive(Debug)]
pub struct PathArrays {
    /// Number of racks, R.
    pub racks: usize,
    /// Places for hosts in a rack.
    pub places: usize,
    /// By pair of places ([`PathArrays::pair`]): the number of its path, 0 for that of its racks,
    /// `from * R + to`. In the upper half is the set of its flows that have paths of their own, 0
    /// for none.
    pub pairs: SharedArray,
    /// By set: flows and the numbers of their paths ([`flow_cell`]); 0: nothing.
    pub flows: SharedArray,
    /// By path: its switches from the first to the last ([`PathEntry::cell`]), then zeros.
    pub paths: SharedArray,
    /// By path: [`ADMITTED`] and [`DELIVERED`].
    pub counts: SharedArray,
    /// By switch: packets that it dropped because it is not on their path, or they have none.
    pub strays: SharedArray,
}

impl PathArrays {
    /// Arrays for `racks` racks of at most `places` hosts each, for `switches` switches and for
    /// `paths` paths.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn new(
        racks: usize,
        places: usize,
        switches: usize,
        paths: usize,
    ) -> std::io::Result<Self> {
        Self::made_by([racks, places, switches, paths], SharedArray::new)
    }

    /// The same, each array made by `make` (entries, cells of an entry).
    pub(super) fn made_by(
        [racks, places, switches, paths]: [usize; 4],
        make: impl Fn(usize, usize) -> std::io::Result<SharedArray>,
    ) -> std::io::Result<Self> {
        let hosts = racks * places;
        Ok(Self {
            racks,
            places,
            pairs: make(hosts * hosts, 1)?,
            flows: make(SETS, FLOWS)?,
            paths: make(paths, HOPS)?,
            counts: make(paths, COUNTERS)?,
            strays: make(switches, 1)?,
        })
    }

    /// Where `pairs` holds the path from one host to another, each given by its rack and its number
    /// there.
    pub fn pair(&self, from: (usize, usize), to: (usize, usize)) -> usize {
        let place = |(rack, k)| rack * self.places + k;
        place(from) * self.racks * self.places + place(to)
    }
}

/// The cell of a set for a flow with these ports, whose path has this number.
pub fn flow_cell(ports: Ports, number: u32) -> u64 {
    let [a, b] = [ports.from.to_be_bytes(), ports.to.to_be_bytes()];
    u64::from(number) | u64::from(u32::from_ne_bytes([a[0], a[1], b[0], b[1]])) << 32
}

const SOURCE: i16 = -8;
const DESTINATION: i16 = -4;
const KEY: i16 = -12;
/// Two bytes, and behind them the path's number at a multiple of four.
const MAC: i16 = -22;
const NUMBER: i16 = -20;
/// An IPv4 header without options, and the ports that are behind it and its options.
const HEADER: i16 = -48;
const HEADER_BYTES: i32 = 20;
/// In a frame: where that header begins.
const HEADER_AT: i32 = 14;

/// The program on a port of switch `own` to rack `rack`. Packets get the number of their path, and
/// go on where its record says. With `divert` all go to that link, through which the switch sends
/// what it carries in all, and behind which [`next`] takes them on.
pub fn first(arrays: &PathArrays, own: u16, rack: usize, divert: Option<u32>) -> Vec<u64> {
    let mut a = Asm::default();
    a.copy(R6, R1).load(Word, R1, R6, PROTOCOL).jump_if(
        R1,
        Ne,
        i32::from(0x0800u16.to_be()),
        "stray",
    );
    load_bytes(&mut a, ADDRESSES_AT, i32::from(SOURCE), 8, "stray");
    for at in [SOURCE, DESTINATION] {
        a.load(Byte, R1, FP, at)
            .jump_if(R1, Ne, 10, "stray")
            .load(Byte, R1, FP, at + 2)
            .jump_if(R1, Ne, 0, "stray");
    }
    a.load(Byte, R1, FP, SOURCE + 1).jump_if(R1, Ne, rack as i32, "stray");
    a.load(Byte, R8, FP, DESTINATION + 1).jump_if(R8, Ge, arrays.racks as i32, "stray");
    let place = |a: &mut Asm, r: Reg, at: i16| {
        // Below two wraps to a number that is too large.
        a.load(Byte, r, FP, at + 3).add(r, -2).jump_if(r, Ge, arrays.places as i32, "stray");
    };
    place(&mut a, R9, SOURCE);
    place(&mut a, R7, DESTINATION);
    a.add(R9, (rack * arrays.places) as i32)
        .mul(R9, (arrays.racks * arrays.places) as i32)
        .add_reg(R9, R7);
    a.copy(R1, R8).mul(R1, arrays.places as i32).add_reg(R9, R1).store(Word, FP, KEY, R9);
    look_up(&mut a, &arrays.pairs, i32::from(KEY), "stray");
    a.load(Long, R9, R0_CELL, 0).jump_if(R9, Eq, 0, "default");
    flow(&mut a, arrays);
    a.label("pair").shl(R9, 32).shr(R9, 32).jump_if(R9, Ne, 0, "steered");
    a.label("default").copy(R9, R8).add(R9, (rack * arrays.racks) as i32).label("steered");
    a.store(Word, FP, NUMBER, R9);
    find(&mut a, arrays, own);
    count(&mut a, arrays, ADMITTED);
    match divert {
        Some(link) => a.set(R7, link as i32),
        None => a.copy(R1, R7).shr(R1, 48).jump_if(R1, Ne, 0, "last"),
    };
    a.set(R1, i32::from(u16::from_le_bytes(LABEL))).store(Half, FP, MAC, R1);
    write_mac(&mut a);
    leave(&mut a, arrays, own, divert.is_none());
    a.finish()
}

/// The number of the path of the packet's flow into R9 and on to the label `steered`, if the pair
/// of hosts whose cell R9 holds has a set with that flow. Else on to `pair`. What is no whole TCP
/// or UDP packet is of no flow: only the first fragment has ports.
fn flow(a: &mut Asm, arrays: &PathArrays) {
    const FRAGMENT: i32 = 0xff3f;
    a.copy(R1, R9).shr(R1, 32).jump_if(R1, Eq, 0, "pair").store(Word, FP, KEY, R1);
    load_bytes(a, HEADER_AT, i32::from(HEADER), HEADER_BYTES, "pair");
    a.load(Byte, R1, FP, HEADER).jump_if(R1, Lt, 0x45, "pair").jump_if(R1, Gt, 0x4f, "pair");
    a.load(Half, R1, FP, HEADER + 6).and(R1, FRAGMENT).jump_if(R1, Ne, 0, "pair");
    a.load(Byte, R1, FP, HEADER + 9)
        .jump_if(R1, Eq, 6, "ports")
        .jump_if(R1, Ne, 17, "pair")
        .label("ports");
    // Options are words of four bytes.
    a.load(Byte, R2, FP, HEADER)
        .and(R2, 15)
        .shl(R2, 2)
        .add(R2, HEADER_AT)
        .copy(R1, R6)
        .copy(R3, FP);
    a.add(R3, i32::from(HEADER) + HEADER_BYTES)
        .set(R4, 4)
        .call(LOAD_BYTES)
        .jump_if(R0_CELL, Ne, 0, "pair");
    look_up(a, &arrays.flows, i32::from(KEY), "pair");
    a.load(Word, R7, FP, HEADER + HEADER_BYTES as i16);
    for k in 0..FLOWS {
        a.load(Long, R1, R0_CELL, 8 * k as i16)
            .copy(R2, R1)
            .shr(R2, 32)
            .jump_if_reg(R2, Eq, R7, "flow");
    }
    a.jump("pair").label("flow").copy(R9, R1).shl(R9, 32).shr(R9, 32).jump("steered");
}

/// The program on a port of switch `own` to another switch: packets go on where the record of their
/// path says.
pub fn next(arrays: &PathArrays, own: u16) -> Vec<u64> {
    let mut a = Asm::default();
    a.copy(R6, R1);
    load_bytes(&mut a, 0, i32::from(MAC), 6, "stray");
    a.load(Half, R1, FP, MAC).jump_if(R1, Ne, i32::from(u16::from_le_bytes(LABEL)), "stray");
    find(&mut a, arrays, own);
    a.copy(R1, R7).shr(R1, 48).jump_if(R1, Ne, 0, "last");
    leave(&mut a, arrays, own, true);
    a.finish()
}

/// Register of a look-up's result.
const R0_CELL: Reg = super::asm::R0;

/// The entry of switch `own` in the path whose number is on the stack into R7.
fn find(a: &mut Asm, arrays: &PathArrays, own: u16) {
    look_up(a, &arrays.paths, i32::from(NUMBER), "stray");
    a.copy(R8, R0_CELL);
    for k in 0..HOPS {
        a.load(Long, R7, R8, 8 * k as i16).copy(R1, R7).shl(R1, 16).shr(R1, 48).jump_if(
            R1,
            Eq,
            i32::from(own) + 1,
            "found",
        );
    }
    a.jump("stray").label("found");
}

/// Counts the packet at its path.
fn count(a: &mut Asm, arrays: &PathArrays, cell: usize) {
    look_up(a, &arrays.counts, i32::from(NUMBER), "stray");
    count_one(a, cell);
    a.load(Word, R1, R6, LEN).atomic_add(R0_CELL, 8 * (cell as i16 + 1), R1);
}

/// The destination MAC from the stack.
fn write_mac(a: &mut Asm) {
    a.copy(R1, R6)
        .set(R2, 0)
        .copy(R3, FP)
        .add(R3, i32::from(MAC))
        .set(R4, 6)
        .set(R5, 0)
        .call(STORE_BYTES);
}

/// Out of the link of the entry in R7; at the label `last`, if there is one, first to the MAC of
/// the rack's ToR; at `stray`, nowhere.
fn leave(a: &mut Asm, arrays: &PathArrays, own: u16, last: bool) {
    if last {
        a.jump("out").label("last");
        count(a, arrays, DELIVERED);
        // 02:00:00:01:00:rack.
        a.set(R1, 2)
            .store(Half, FP, MAC, R1)
            .copy(R1, R7)
            .shr(R1, 56)
            .shl(R1, 24)
            .add(R1, TOR)
            .store(Word, FP, NUMBER, R1);
        write_mac(a);
        a.label("out");
    }
    a.copy(R1, R7).shl(R1, 32).shr(R1, 32).set(R2, 0).call(REDIRECT).exit();
    a.label("stray").set(R1, i32::from(own)).store(Word, FP, KEY, R1);
    look_up(a, &arrays.strays, i32::from(KEY), "drop");
    count_one(a, 0);
    a.label("drop").ret(SHOT);
}

/// Loads [`first`].
///
/// # Errors
/// The verifier's words.
pub fn load_first(
    arrays: &PathArrays,
    own: u16,
    rack: usize,
    divert: Option<u32>,
) -> std::io::Result<OwnedFd> {
    load(&first(arrays, own, rack, divert), "heliostat_first")
}

/// Loads [`next`].
///
/// # Errors
/// The verifier's words.
pub fn load_next(arrays: &PathArrays, own: u16) -> std::io::Result<OwnedFd> {
    load(&next(arrays, own), "heliostat_next")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use proptest::prelude::*;

    use super::super::vm::{Packet, PacketVerdict, plain_array, run_over};
    use super::*;
    use crate::layout::{PortKind, mac};

    const RACKS: usize = 3;
    const PLACES: usize = 2;
    const SWITCHES: usize = 4;
    const PATHS: usize = 12;

    fn packet(from: [u8; 4], to: [u8; 4], protocol: u16, destination: [u8; 6]) -> Packet {
        let mut bytes = vec![0; 54];
        bytes[..6].copy_from_slice(&destination);
        bytes[26..30].copy_from_slice(&from);
        bytes[30..34].copy_from_slice(&to);
        Packet { len: 900, protocol, segments: 3, link: 1, kind: 0, tagged: false, bytes }
    }

    /// Writes the header of an IPv4 packet and its ports into a frame; `odd` may make it one of no
    /// flow. Returns whether it is one of a flow.
    fn ip(frame: &mut [u8], ports: Ports, odd: u8) -> bool {
        frame[14] = if odd == 0 { 0x46 } else { 0x45 };
        // Not to be fragmented; the last of several fragments; the first one.
        frame[20..22].copy_from_slice(match odd {
            1 => &[0, 9],
            2 => &[0x20, 0],
            _ => &[0x40, 0],
        });
        frame[23] = [6, 17, 1][usize::from(odd % 3)];
        // Behind the options, if there are any.
        let at = if odd == 0 { 38 } else { 34 };
        frame[at..at + 2].copy_from_slice(&ports.from.to_be_bytes());
        frame[at + 2..at + 4].copy_from_slice(&ports.to.to_be_bytes());
        odd == 0 || odd > 2 && odd % 3 < 2
    }

    fn label(number: u32) -> [u8; 6] {
        let n = number.to_le_bytes();
        [LABEL[0], LABEL[1], n[0], n[1], n[2], n[3]]
    }

    /// By path: what was counted; and by switch the strays.
    fn counted(arrays: &PathArrays) -> (Vec<[u64; COUNTERS]>, Vec<u64>) {
        let counts = (0..PATHS)
            .map(|n| std::array::from_fn(|k| arrays.counts.cell(n, k).load(Relaxed)))
            .collect();
        (counts, (0..SWITCHES).map(|s| arrays.strays.cell(s, 0).load(Relaxed)).collect())
    }

    /// What a switch should do with a packet of a path, and what it should count; the MAC that the
    /// packet should leave with.
    fn twin(
        c: &mut (Vec<[u64; COUNTERS]>, Vec<u64>),
        paths: &[Vec<PathEntry>],
        own: u16,
        number: Option<usize>,
        enters: bool,
    ) -> (PacketVerdict, Option<[u8; 6]>) {
        let entry = number
            .filter(|&n| n < PATHS)
            .and_then(|n| paths.get(n)?.iter().find(|e| e.switch == own).copied());
        let (Some(entry), Some(n)) = (entry, number) else {
            c.1[usize::from(own)] += 1;
            return (PacketVerdict::Drop, None);
        };
        let mut add = |cell: usize| {
            c.0[n][cell] += 1;
            c.0[n][cell + 1] += 900;
        };
        if enters {
            add(ADMITTED);
        }
        let to = entry.rack.map(|r| {
            add(DELIVERED);
            mac(PortKind::TorEps, usize::from(r))
        });
        (PacketVerdict::Out(entry.out), to.or((enters).then(|| label(n as u32))))
    }

    fn paths() -> impl Strategy<Value = Vec<Vec<PathEntry>>> {
        let entry = (0..SWITCHES as u16, 2..3000u32, prop::option::of(0..RACKS as u8))
            .prop_map(|(switch, out, rack)| PathEntry { switch, out, rack });
        prop::collection::vec(prop::collection::vec(entry, 0..5), PATHS)
    }

    fn arrays(paths: &[Vec<PathEntry>]) -> PathArrays {
        let arrays = PathArrays::made_by([RACKS, PLACES, SWITCHES, PATHS], plain_array).unwrap();
        for (n, path) in paths.iter().enumerate() {
            path.iter()
                .enumerate()
                .for_each(|(k, e)| arrays.paths.cell(n, k).store(e.cell(), Relaxed));
        }
        arrays
    }

    fn run(code: &[u64], a: &PathArrays, p: &Packet) -> (PacketVerdict, Vec<u8>) {
        run_over(code, &[&a.pairs, &a.flows, &a.paths, &a.counts, &a.strays], p, 0)
    }

    #[test]
    fn the_mac_of_a_tor_is_the_layouts() {
        let [a, b, c, _] = TOR.to_le_bytes();
        assert_eq!(mac(PortKind::TorEps, 7), [2, 0, a, b, c, 7]);
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn a_first_switch_labels_what_has_a_path(
            paths in paths(),
            steered in prop::collection::vec(0..PATHS as u64 + 2, 36),
            (own, rack) in (0..SWITCHES as u16, 0..RACKS),
            (from, to) in ((0..4u8, 0..5u8), (0..4u8, 0..5u8)),
            odd in 0..12u8,
            divert in prop::option::of(5000..6000u32),
            (own_flows, header) in (prop::collection::vec((0..3u16, 1..PATHS as u32), 0..4), (0..3u16, 0..8u8)),
        ) {
            let arrays = arrays(&paths);
            // The flows of all pairs of hosts are those of one set.
            let set = if own_flows.is_empty() { 0 } else { SETS - 1 };
            steered.iter().enumerate().for_each(|(k, &n)| arrays.pairs.cell(k, 0).store(n | (set as u64) << 32, Relaxed));
            let ports = |k: u16| Ports { from: 40_000 + k, to: 5201 };
            own_flows.iter().enumerate().for_each(|(k, &(p, n))| arrays.flows.cell(set, k).store(flow_cell(ports(p), n), Relaxed));
            let mut source = [10, from.0, 0, from.1];
            let mut destination = [10, to.0, 0, to.1];
            match odd {
                0 => source[0] = 11,
                1 => destination[0] = 192,
                2 => source[2] = 1,
                3 => destination[2] = 9,
                _ => {}
            }
            let protocol = if odd == 4 { 0x0806 } else { 0x0800 };
            let mut p = packet(source, destination, protocol, [2, 0, 0, 7, 0, 0]);
            let is_whole = ip(&mut p.bytes, ports(header.0), header.1);
            let place = |x: u8| usize::from(x).checked_sub(2).filter(|&k| k < PLACES);
            let number = match (place(from.1), place(to.1)) {
                (Some(a), Some(b)) if odd > 4 && usize::from(from.0) == rack && usize::from(to.0) < RACKS => {
                    let n = steered[((rack * PLACES + a) * RACKS + usize::from(to.0)) * PLACES + b] as usize;
                    let own = own_flows.iter().find(|f| is_whole && f.0 == header.0);
                    Some(own.map_or(if n == 0 { rack * RACKS + usize::from(to.0) } else { n }, |f| f.1 as usize))
                }
                _ => None,
            };
            let mut expected = counted(&arrays);
            let (mut verdict, mut written) = twin(&mut expected, &paths, own, number, true);
            if let (Some(link), Some(n), PacketVerdict::Out(_)) = (divert, number, &verdict) {
                // Not delivered yet: that is counted behind the link.
                expected.0[n][DELIVERED] = 0;
                expected.0[n][DELIVERED + 1] = 0;
                (verdict, written) = (PacketVerdict::Out(link), Some(label(n as u32)));
            }
            let (got, bytes) = run(&first(&arrays, own, rack, divert), &arrays, &p);
            prop_assert_eq!(got, verdict);
            prop_assert_eq!(&bytes[..6], written.unwrap_or([2, 0, 0, 7, 0, 0]));
            prop_assert_eq!(&bytes[6..], &p.bytes[6..]);
            prop_assert_eq!(counted(&arrays), expected);
        }

        #[test]
        fn other_switches_follow_the_label(paths in paths(), own in 0..SWITCHES as u16, number in 0..PATHS as u32 + 2, odd in 0..6u8) {
            let arrays = arrays(&paths);
            let to = if odd == 0 { [2, 0, 0, 7, 0, 1] } else { label(number) };
            let p = packet([10, 0, 0, 2], [10, 1, 0, 2], 0x0800, to);
            let mut expected = counted(&arrays);
            let (verdict, written) = twin(&mut expected, &paths, own, (odd > 0).then_some(number as usize), false);
            let (got, bytes) = run(&next(&arrays, own), &arrays, &p);
            prop_assert_eq!(got, verdict);
            prop_assert_eq!(&bytes[..6], written.unwrap_or(to));
            prop_assert_eq!(&bytes[6..], &p.bytes[6..]);
            prop_assert_eq!(counted(&arrays), expected);
        }
    }
}
