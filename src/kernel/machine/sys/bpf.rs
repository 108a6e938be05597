//! BPF programs and arrays, and shared mappings of the latter.

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd as _, OwnedFd};
use std::sync::atomic::AtomicU64;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::check;

/// A command of `bpf(2)` that returns a new descriptor: `attr` is its attribute block, zero beyond
/// what the kernel knows of it.
///
/// # Safety
/// `command` returns a descriptor that nothing else owns, and every address in `attr` is that of
/// memory which stays valid for the call, for writing if the command writes there.
unsafe fn bpf(command: u32, attr: &mut [u64; 16]) -> io::Result<OwnedFd> {
    // SAFETY: the block is valid and writable for its whole size; the caller answers for the
    // addresses in it.
    let r = unsafe {
        libc::syscall(libc::SYS_bpf, command, attr.as_mut_ptr(), std::mem::size_of_val(attr))
    };
    let fd = check(r as i32)?;
    // SAFETY: the caller says that this descriptor is new.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The attribute block of a bpf() call: 32-bit and 64-bit values at their offsets.
fn block(words: &[(usize, u32)], longs: &[(usize, u64)]) -> [u64; 16] {
    let mut bytes = [0u8; 128];
    for &(at, v) in words {
        bytes[at..at + 4].copy_from_slice(&v.to_ne_bytes());
    }
    for &(at, v) in longs {
        bytes[at..at + 8].copy_from_slice(&v.to_ne_bytes());
    }
    std::array::from_fn(|i| {
        u64::from_ne_bytes(bytes[i * 8..i * 8 + 8].try_into().expect("eight bytes"))
    })
}

/// A BPF array that can be mapped: `entries` values of `bytes` each, all zero. Without the right to
/// use bpf(), `PermissionDenied`.
pub fn bpf_array(bytes: u32, entries: u32) -> io::Result<OwnedFd> {
    const MAP_CREATE: u32 = 0;
    const ARRAY: u32 = 2;
    const KEY: u32 = 4;
    const MMAPABLE: u32 = 1 << 10;
    let mut attr = block(&[(0, ARRAY), (4, KEY), (8, bytes), (12, entries), (16, MMAPABLE)], &[]);
    // SAFETY: this command returns a new descriptor, and no field of the block is an address.
    unsafe { bpf(MAP_CREATE, &mut attr) }
}

/// Loads a classifier program, under the GPL; the verifier's words go into `log` if there is one.
pub fn bpf_classifier(instructions: &[u64], log: Option<&mut [u8]>) -> io::Result<OwnedFd> {
    const PROG_LOAD: u32 = 5;
    const SCHED_CLS: u32 = 3;
    let mut words = vec![(0, SCHED_CLS), (4, instructions.len() as u32)];
    let mut longs = vec![(8, instructions.as_ptr() as u64), (16, c"GPL".as_ptr() as u64)];
    if let Some(log) = log {
        words.extend([(24, 1), (28, log.len() as u32)]);
        longs.push((32, log.as_mut_ptr() as u64));
    }
    // SAFETY: this command returns a new descriptor; instructions, licence and log outlive the
    // call, with the lengths that the block says, and the log may be written.
    unsafe { bpf(PROG_LOAD, &mut block(&words, &longs)) }
}

/// A shared, writable mapping of a descriptor from offset zero.
#[derive(Debug)]
pub struct MemoryMapping {
    base: *mut u64,
    cells: usize,
    length: usize,
}

// SAFETY: the mapping is only ever touched through atomics, and unmapped by the last owner.
unsafe impl Send for MemoryMapping {}
// SAFETY: as above.
unsafe impl Sync for MemoryMapping {}

impl MemoryMapping {
    /// Maps `bytes` (rounded up to pages) of `fd`.
    pub fn new(fd: BorrowedFd, bytes: usize) -> io::Result<Self> {
        let length = bytes.div_ceil(4096) * 4096;
        let (read, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a fresh mapping at an address that the kernel chooses.
        let p = unsafe { mmap(std::ptr::null_mut(), length, read, shared, fd, 0) }?;
        Ok(Self { base: p.cast(), cells: bytes / 8, length })
    }

    /// The 64-bit cell number `i`.
    pub fn cell(&self, i: usize) -> &AtomicU64 {
        assert!(i < self.cells, "cell {i} of {}", self.cells);
        // SAFETY: within the mapping (asserted), aligned (page + 8 i), alive as long as `self`; the
        // kernel writes it with 64-bit atomics only.
        unsafe { AtomicU64::from_ptr(self.base.add(i)) }
    }
}

impl Drop for MemoryMapping {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `new` made, and no reference into it is left.
        unsafe { munmap(self.base.cast(), self.length) }.ok();
    }
}

/// Reads memory of this process: what a test's virtual machine points its helpers to.
///
/// # Safety
/// As many bytes as `into` has are valid for reading at `at`.
#[cfg(test)]
pub unsafe fn peek(at: u64, into: &mut [u8]) {
    // SAFETY: the caller says so, and `into` is a valid slice.
    unsafe { std::ptr::copy(at as *const u8, into.as_mut_ptr(), into.len()) }
}

/// Writes memory of this process: what a test's virtual machine wants filled by its helpers.
///
/// # Safety
/// As many bytes as `from` has are valid for writing at `at`.
#[cfg(test)]
pub unsafe fn poke(at: u64, from: &[u8]) {
    // SAFETY: the caller says so, and `from` is a valid slice.
    unsafe { std::ptr::copy(from.as_ptr(), at as *mut u8, from.len()) }
}
