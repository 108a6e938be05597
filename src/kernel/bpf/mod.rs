//! The bpf() system call: maps shared with this process by mmap, and program loading. No compiler
//! at run time.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64;

use super::sys;

pub mod asm;
pub mod programs;
pub mod switches;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vm;

/// An array of 64-bit cells that programs and this process share: reading and writing need no
/// system call.
#[derive(Debug)]
pub struct SharedArray {
    fd: OwnedFd,
    mapping: sys::MemoryMapping,
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
        Self::over(sys::bpf_array(width as u32 * 8, entries as u32)?, entries, width)
    }

    /// The same over any file that can be mapped and is long enough.
    fn over(fd: OwnedFd, entries: usize, width: usize) -> io::Result<Self> {
        let mapping = sys::MemoryMapping::new(fd.as_fd(), entries * width * 8)?;
        Ok(Self { fd, mapping, width, entries })
    }

    /// Cell `k` of entry `entry`.
    pub fn cell(&self, entry: usize, k: usize) -> &AtomicU64 {
        assert!(entry < self.entries && k < self.width);
        self.mapping.cell(entry * self.width + k)
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
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
    if let Ok(fd) = sys::bpf_classifier(instructions, None) {
        return Ok(fd);
    }
    // Once more with a log, to say why.
    let mut log = vec![0u8; 1 << 16];
    match sys::bpf_classifier(instructions, Some(&mut log)) {
        Ok(fd) => Ok(fd),
        Err(e) => {
            let words = String::from_utf8_lossy(&log);
            Err(io::Error::new(
                e.kind(),
                format!("BPF program {name}: {e}: {}", words.trim_matches('\0').trim()),
            ))
        }
    }
}

/// The number by which instructions name a map.
pub fn map_number(map: &SharedArray) -> i32 {
    map.as_fd().as_raw_fd()
}
