//! A machine in user space for the programs' tests: rbpf, with the kernel's helpers over plain
//! memory.
#![allow(unsafe_code, reason = "the interpreter of the tests reads raw memory")]

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::programs::CircuitArrays;
use super::{SharedArray, map_number};
use crate::sys;

/// Size of `__sk_buff` in bytes.
const CONTEXT: usize = 192;
/// TC_ACT_REDIRECT.
const REDIRECTED: u64 = 7;
const EFAULT: u64 = -14i64 as u64;

/// A packet as a classifier sees it.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Length, of an aggregated packet of all its segments.
    pub len: u32,
    /// EtherType.
    pub protocol: u16,
    /// Segments; 0 for a packet that is not aggregated.
    pub segments: u32,
    /// The link it came in by.
    pub link: u32,
    /// To whom its MAC is: 0 to the link's.
    pub kind: u32,
    /// It has a VLAN tag.
    pub tagged: bool,
    /// From its Ethernet header on; may be cut short.
    pub bytes: Vec<u8>,
}

/// What a program did with a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PacketVerdict {
    /// On to the kernel's routes.
    Pass,
    /// Dropped.
    Drop,
    /// Out of this link, unchanged.
    Out(u32),
    /// Out of a link to a next hop, with a class.
    Hop {
        /// The link.
        link: u32,
        /// IPv4 address of the neighbour.
        neighbour: [u8; 4],
        /// skb->priority: the class.
        class: u32,
    },
}

#[derive(Default)]
struct VmMemory {
    /// By map number: address, bytes of an entry, entries.
    maps: BTreeMap<u64, (u64, u64, u64)>,
    now: u64,
    packet: Vec<u8>,
    out: Option<(u32, Option<[u8; 20]>)>,
}

thread_local! {
    // rbpf's helpers are plain functions.
    static WORLD: RefCell<VmMemory> = RefCell::default();
}

/// Arrays over files without names: no right to use bpf() is needed.
pub fn plain_arrays(racks: usize, planes: usize) -> CircuitArrays {
    CircuitArrays::made_by(racks, planes, plain_array)
        .expect("files in the directory for temporary files")
}

/// An array over a file without a name.
pub fn plain_array(entries: usize, width: usize) -> std::io::Result<SharedArray> {
    let file = tempfile::tempfile()?;
    file.set_len((entries * width * 8) as u64)?;
    SharedArray::over(file.into(), entries, width)
}

/// Runs a program on one packet at an instant.
pub fn run(code: &[u64], arrays: &CircuitArrays, packet: &Packet, now: u64) -> PacketVerdict {
    let CircuitArrays { ports, sent, admitted, crossed, counts, by_port, .. } = arrays;
    let all = [ports, sent, admitted, crossed, counts, by_port];
    run_over(code, &all, packet, now).0
}

/// Runs a program that uses these arrays; gives the packet's bytes as it leaves them, too.
pub fn run_over(
    code: &[u64],
    all: &[&SharedArray],
    packet: &Packet,
    now: u64,
) -> (PacketVerdict, Vec<u8>) {
    let at = |a: &SharedArray| std::ptr::from_ref(a.cell(0, 0)) as u64;
    let maps: BTreeMap<u64, (u64, u64, u64)> = all
        .iter()
        .map(|a| (map_number(a) as u64, (at(a), a.width as u64 * 8, a.entries as u64)))
        .collect();
    WORLD.set(VmMemory { maps: maps.clone(), now, packet: packet.bytes.clone(), out: None });
    let program = program(code);
    let mut context = [0u8; CONTEXT];
    for (at, v) in [
        (0, packet.len),
        (4, packet.kind),
        (16, u32::from(packet.protocol.to_be())),
        (20, u32::from(packet.tagged)),
        (32, 0xdead_beef),
        (40, packet.link),
        (164, packet.segments),
    ] {
        context[at..at + 4].copy_from_slice(&v.to_ne_bytes());
    }
    let code = {
        let mut vm = rbpf::EbpfVmRaw::new(Some(&program)).expect("a well-formed program");
        let helpers: [(u32, rbpf::ebpf::Helper); 7] = [
            (1, look_up),
            (5, |_, _, _, _, _| WORLD.with_borrow(|w| w.now)),
            (9, store_bytes),
            (23, redirect),
            (26, load_bytes),
            (28, checksum),
            (152, redirect_neigh),
        ];
        for (number, helper) in helpers {
            vm.register_helper(number, helper).expect("a helper");
        }
        for (at, width, entries) in maps.into_values() {
            vm.register_allowed_memory(at..at + width * entries);
        }
        vm.execute_program(&mut context).expect("runs to its end")
    };
    let priority = u32::from_ne_bytes(context[32..36].try_into().expect("four bytes"));
    let (out, bytes) = WORLD.with_borrow_mut(|w| (w.out.take(), std::mem::take(&mut w.packet)));
    let verdict = match (code, out) {
        (0, None) => PacketVerdict::Pass,
        (2, None) => PacketVerdict::Drop,
        (REDIRECTED, Some((link, None))) => PacketVerdict::Out(link),
        (REDIRECTED, Some((link, Some(hop)))) => {
            assert_eq!(u32::from_ne_bytes(hop[..4].try_into().expect("four bytes")), 2, "AF_INET");
            assert_eq!(hop[8..], [0; 12]);
            PacketVerdict::Hop {
                link,
                neighbour: hop[4..8].try_into().expect("four bytes"),
                class: priority,
            }
        }
        other => panic!("no verdict: {other:?}"),
    };
    (verdict, bytes)
}

/// The program's bytes, each atomic addition (which rbpf lacks) as load, add and store by R5, which
/// our programs do not use.
pub fn program(code: &[u64]) -> Vec<u8> {
    const ATOMIC_ADD: u8 = 0xdb;
    let (mut new, mut place) = (vec![], Vec::with_capacity(code.len()));
    let mut wide = false;
    for &c in code {
        place.push(new.len());
        let (op, dst, src, offset) = (c as u8, c >> 8 & 15, c >> 12 & 15, c & 0xffff_0000);
        if op == ATOMIC_ADD && !wide {
            new.extend([
                0x79 | 5 << 8 | dst << 12 | offset,
                0x0f | 5 << 8 | src << 12,
                0x7b | dst << 8 | 5 << 12 | offset,
            ]);
        } else {
            new.push(c);
        }
        wide = op == 0x18 && !wide;
    }
    let mut wide = false;
    for (at, &c) in code.iter().enumerate() {
        let op = c as u8;
        let jumps = op & 7 == 5 && op != 0x85 && op != 0x95;
        if jumps && !wide {
            let target = (at as i64 + 1 + i64::from((c >> 16) as i16)) as usize;
            let offset = place[target] as i64 - place[at] as i64 - 1;
            new[place[at]] = c & !0xffff_0000 | u64::from(offset as u16) << 16;
        }
        wide = op == 0x18 && !wide;
    }
    new.into_iter().flat_map(u64::to_le_bytes).collect()
}

fn look_up(map: u64, key: u64, _: u64, _: u64, _: u64) -> u64 {
    let mut k = [0; 4];
    // SAFETY: programs pass a key of four bytes on the machine's stack, which outlives the call.
    unsafe { sys::peek(key, &mut k) };
    let k = u64::from(u32::from_ne_bytes(k));
    let (at, width, entries) = WORLD.with_borrow(|w| w.maps[&map]);
    if k < entries { at + k * width } else { 0 }
}

fn load_bytes(_: u64, from: u64, to: u64, length: u64, _: u64) -> u64 {
    WORLD.with_borrow(|w| match w.packet.get(from as usize..(from + length) as usize) {
        Some(bytes) => {
            // SAFETY: programs pass room for `length` bytes on the machine's stack, which outlives
            // the call.
            unsafe { sys::poke(to, bytes) };
            0
        }
        None => EFAULT,
    })
}

fn checksum(_: u64, none: u64, at: u64, length: u64, seed: u64) -> u64 {
    assert_eq!((none, seed), (0, 0), "of one piece");
    let mut bytes = vec![0; length as usize];
    // SAFETY: programs pass `length` bytes on the machine's stack, which outlives the call.
    unsafe { sys::peek(at, &mut bytes) };
    bytes.chunks(2).map(|w| u64::from(u16::from_ne_bytes([w[0], w[1]]))).sum()
}

fn store_bytes(_: u64, to: u64, from: u64, length: u64, flags: u64) -> u64 {
    assert_eq!(flags, 0, "no checksum covers what is written");
    let mut bytes = vec![0; length as usize];
    // SAFETY: programs pass `length` bytes on the machine's stack, which outlives the call.
    unsafe { sys::peek(from, &mut bytes) };
    WORLD.with_borrow_mut(|w| match w.packet.get_mut(to as usize..(to + length) as usize) {
        Some(place) => {
            place.copy_from_slice(&bytes);
            0
        }
        None => EFAULT,
    })
}

fn redirect(link: u64, flags: u64, _: u64, _: u64, _: u64) -> u64 {
    assert_eq!(flags, 0, "to the link's way out");
    WORLD.with_borrow_mut(|w| w.out = Some((link as u32, None)));
    REDIRECTED
}

fn redirect_neigh(link: u64, hop: u64, length: u64, flags: u64, _: u64) -> u64 {
    assert_eq!((length, flags), (20, 0));
    let mut bytes = [0; 20];
    // SAFETY: programs pass a next hop of twenty bytes (asserted) on the machine's stack, which
    // outlives the call.
    unsafe { sys::peek(hop, &mut bytes) };
    WORLD.with_borrow_mut(|w| w.out = Some((link as u32, Some(bytes))));
    REDIRECTED
}
