//! The bpf() system call: maps shared with this process by mmap, and program loading. No compiler at run time.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64;

use super::sys;

pub mod asm;
pub mod programs;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vm;

const MAP_CREATE: u32 = 0;
const PROG_LOAD: u32 = 5;
const ARRAY: u32 = 2;
const MMAPABLE: u32 = 1 << 10;
const SCHED_CLS: u32 = 3;

/// The attribute block of a bpf() call; the kernel reads a prefix of it.
fn block(words: &[(usize, u32)], longs: &[(usize, u64)]) -> [u64; 16] {
    let mut bytes = [0u8; 128];
    for &(at, v) in words {
        bytes[at..at + 4].copy_from_slice(&v.to_ne_bytes());
    }
    for &(at, v) in longs {
        bytes[at..at + 8].copy_from_slice(&v.to_ne_bytes());
    }
    std::array::from_fn(|i| u64::from_ne_bytes(bytes[i * 8..i * 8 + 8].try_into().expect("eight bytes")))
}

/// An array of 64-bit cells that programs and this process share: reading and writing need no system call.
#[derive(Debug)]
pub struct SharedArray {
    fd: OwnedFd,
    mapping: sys::Mapping,
    /// 64-bit cells of an entry: what a program's look-up of one key returns.
    width: usize,
    entries: usize,
}

impl SharedArray {
    /// `entries` entries of `width` cells each, all zero.
    ///
    /// # Errors
    /// What the kernel refused: without the right to use bpf(), `PermissionDenied`.
    pub fn new(entries: usize, width: usize) -> io::Result<Self> {
        let mut a = block(&[(0, ARRAY), (4, 4), (8, width as u32 * 8), (12, entries as u32), (16, MMAPABLE)], &[]);
        let fd = sys::own(sys::bpf(MAP_CREATE, &mut a)?);
        Self::over(fd, entries, width)
    }

    /// The same over any file that can be mapped and is long enough.
    fn over(fd: OwnedFd, entries: usize, width: usize) -> io::Result<Self> {
        let mapping = sys::Mapping::new(fd.as_fd(), entries * width * 8)?;
        Ok(Self { fd, mapping, width, entries })
    }

    /// Cell `k` of entry `entry`.
    pub fn cell(&self, entry: usize, k: usize) -> &AtomicU64 {
        assert!(entry < self.entries && k < self.width);
        self.mapping.cell(entry * self.width + k)
    }

    /// The map, for a program's instructions.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Loads a classifier program.
///
/// # Errors
/// The verifier's words.
pub fn load(instructions: &[u64], name: &str) -> io::Result<OwnedFd> {
    let licence = c"GPL";
    let mut log = vec![0u8; 1 << 16];
    let mut a =
        block(&[(0, SCHED_CLS), (4, instructions.len() as u32)], &[(8, instructions.as_ptr() as u64), (16, licence.as_ptr() as u64)]);
    if let Ok(fd) = sys::bpf(PROG_LOAD, &mut a) {
        return Ok(sys::own(fd));
    }
    // Once more with a log, to say why.
    let mut a = block(
        &[(0, SCHED_CLS), (4, instructions.len() as u32), (24, 1), (28, log.len() as u32)],
        &[(8, instructions.as_ptr() as u64), (16, licence.as_ptr() as u64), (32, log.as_mut_ptr() as u64)],
    );
    match sys::bpf(PROG_LOAD, &mut a) {
        Ok(fd) => Ok(sys::own(fd)),
        Err(e) => {
            let words = String::from_utf8_lossy(&log);
            Err(io::Error::new(e.kind(), format!("BPF program {name}: {e}: {}", words.trim_matches('\0').trim())))
        }
    }
}

/// The number by which instructions name a map.
pub fn map_number(map: &SharedArray) -> i32 {
    map.as_fd().as_raw_fd()
}
