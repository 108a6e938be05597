//! The system calls that this crate needs: rustix's where it has them, libc's elsewhere.
//!
//! All of `unsafe` in the kernel's room is here, but for the tests' virtual machine. It passes
//! integers, or pointers to values that outlive the call.
#![allow(unsafe_code, reason = "system calls that no library offers")]

use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::thread::ClockId;
use rustix::time::{Timespec, clock_gettime};

mod bpf;
pub mod closed;
mod namespaces;
mod offloads;
mod processes;
mod sockets;
mod users;

pub use bpf::{MemoryMapping, bpf_array, bpf_classifier};
#[cfg(test)]
pub use bpf::{peek, poke};
pub use namespaces::{
    Kind, become_namespace_root, bind_mount, in_first_user_namespace, name_file, open_ns,
    own_files, own_host_name, own_network, setns, share_mounts, unmount,
};
pub use offloads::{offloads, set_offloads};
pub use processes::{
    ProcessHandle, child_has_ended, ends_with_parent, kill_group, own_session, without_capabilities,
};
pub use sockets::{
    FrameSeen, frames_lost, receive_frame, receive_low_water, stamp_frames, tcp_acknowledged,
    tcp_sent_again, tcp_tries_on,
};
pub use users::{caller, is_root, make_shared, may_write, uid_gid, user_outside};

/// Turns a system call's -1 into the error that it left.
fn check(r: i32) -> io::Result<i32> {
    if r < 0 { Err(io::Error::last_os_error()) } else { Ok(r) }
}

/// A clock in nanoseconds.
fn now_of(clock: ClockId) -> u64 {
    let t = clock_gettime(clock);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// CLOCK_MONOTONIC in nanoseconds: the clock of BPF programs too.
pub fn monotonic() -> u64 {
    now_of(ClockId::Monotonic)
}

/// Time of a processor that the calling thread has taken.
#[cfg(test)]
pub fn thread_time() -> Duration {
    Duration::from_nanos(now_of(ClockId::ThreadCPUTime))
}

/// Sleeps until CLOCK_MONOTONIC reads `at`; returns at once if it does. A signal may end the sleep
/// early: callers look at the clock again.
pub fn sleep_until(at: u64) {
    let t = Timespec { tv_sec: (at / 1_000_000_000) as i64, tv_nsec: (at % 1_000_000_000) as i64 };
    rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &t).ok();
}

/// The number of the calling thread.
pub fn thread_id() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Asks for SCHED_FIFO at a priority; says whether it was granted.
pub fn realtime(priority: i32) -> bool {
    let p = libc::sched_param { sched_priority: priority };
    // SAFETY: `p` is valid for the length of the call; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &p) == 0 }
}

/// Keeps the calling thread on one processor; says whether that was granted.
#[cfg(test)]
pub fn pin(processor: usize) -> bool {
    let mut set = rustix::thread::CpuSet::new();
    set.set(processor);
    rustix::thread::sched_setaffinity(None, &set).is_ok()
}

/// Has a signal do nothing until there is a handler for it.
pub fn ignore_signal(signal: libc::c_int) {
    // SAFETY: no handler of ours is replaced by one that could be unsafe.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// Raises the limit of open files to what is allowed; returns it.
pub fn raise_open_files() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).ok();
    limit.current.unwrap_or(u64::MAX)
}

/// Takes an exclusive lock on an open file, and waits for it this long. Returns whether it was had:
/// who may read a file may hold its lock as long as they like.
pub fn lock_within(file: &File, longest: Duration) -> bool {
    let begun = Instant::now();
    while file.try_lock().is_err() {
        if begun.elapsed() >= longest {
            return false;
        }
        std::thread::sleep(longest / 100);
    }
    true
}

/// `work` of all, in their order, by a thread a processor; each thread has a part of them, and ends
/// with it.
///
/// # Errors
/// The first of the errors, after all threads have ended.
pub fn by_processors<T: Send, R: Send>(
    all: &mut [T],
    work: impl Fn(&mut T) -> io::Result<R> + Sync,
) -> io::Result<Vec<R>> {
    let each =
        all.len().div_ceil(std::thread::available_parallelism().map_or(1, |n| n.get())).max(1);
    let work = &work;
    std::thread::scope(|s| {
        let begin =
            |part| s.spawn(move || <[T]>::iter_mut(part).map(work).collect::<io::Result<Vec<R>>>());
        let parts: Vec<_> = all.chunks_mut(each).map(begin).collect();
        let mut done = vec![];
        for part in parts {
            done.extend(part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(done)
    })
}
