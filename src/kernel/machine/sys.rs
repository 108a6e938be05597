//! The system calls that no library wraps as needed: namespaces, bind mounts, scheduling, the
//! monotonic clock.
//!
//! All of `unsafe` in the kernel's room is here, but for the tests' virtual machine. It passes
//! integers, or pointers to values that outlive the call.
#![allow(unsafe_code, reason = "system calls that no library offers")]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

mod offloads;

pub use offloads::{offloads, set_offloads};

pub mod closed;

/// Turns a system call's -1 into the error that it left.
pub fn check(r: i32) -> io::Result<i32> {
    if r < 0 { Err(io::Error::last_os_error()) } else { Ok(r) }
}

fn c_path(path: &Path) -> io::Result<CString> {
    use std::os::unix::ffi::OsStrExt;
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}

/// A clock in nanoseconds. A clock that cannot be read ends the thread, as the standard library's
/// do: taken for a time it would read 0.
fn now_of(clock: libc::clockid_t) -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid timespec for the length of the call.
    let done = unsafe { libc::clock_gettime(clock, &mut t) };
    assert!(done == 0, "read clock {clock}: {}", io::Error::last_os_error());
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// CLOCK_MONOTONIC in nanoseconds: the clock of BPF programs too.
///
/// # Panics
/// The clock cannot be read.
pub fn monotonic() -> u64 {
    now_of(libc::CLOCK_MONOTONIC)
}

/// Sleeps until CLOCK_MONOTONIC reads `at`; returns at once if it does.
pub fn sleep_until(at: u64) {
    let t = libc::timespec {
        tv_sec: (at / 1_000_000_000) as i64,
        tv_nsec: (at % 1_000_000_000) as i64,
    };
    // SAFETY: `t` is valid; no remainder is asked for. EINTR is harmless: callers look at the clock
    // again.
    unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &t, std::ptr::null_mut())
    };
}

/// Makes the calling thread a member of a namespace of the given kind (`libc::CLONE_NEW*`, or 0 for
/// any).
pub fn setns(ns: BorrowedFd, kind: i32) -> io::Result<()> {
    // SAFETY: the descriptor is open for the length of the call.
    check(unsafe { libc::setns(ns.as_raw_fd(), kind) }).map(drop)
}

/// Gives the calling thread new namespaces.
pub fn unshare(flags: i32) -> io::Result<()> {
    // SAFETY: integers only.
    check(unsafe { libc::unshare(flags) }).map(drop)
}

/// Gives a file that was opened without a name (`O_TMPFILE`) its name; `AlreadyExists` if that is
/// taken.
pub fn name_file(file: &std::fs::File, path: &Path) -> io::Result<()> {
    let (from, to) =
        (c_path(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())))?, c_path(path)?);
    // SAFETY: both strings outlive the call.
    check(unsafe {
        libc::linkat(
            libc::AT_FDCWD,
            from.as_ptr(),
            libc::AT_FDCWD,
            to.as_ptr(),
            libc::AT_SYMLINK_FOLLOW,
        )
    })
    .map(drop)
}

/// Bind-mounts `from` on `to`.
pub fn bind_mount(from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (c_path(from)?, c_path(to)?);
    // SAFETY: both strings outlive the call; no data is passed.
    check(unsafe {
        libc::mount(from.as_ptr(), to.as_ptr(), c"none".as_ptr(), libc::MS_BIND, std::ptr::null())
    })
    .map(drop)
}

/// Unmounts lazily what is mounted last at a path.
pub fn unmount(path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: the string outlives the call.
    check(unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) }).map(drop)
}

/// Has all mounts at and below a directory be shared, as `ip netns` wants it of its names: the
/// directory is mounted on itself first where it is no mount.
///
/// # Errors
/// What the kernel refused.
pub fn share_mounts(directory: &Path) -> io::Result<()> {
    let at = c_path(directory)?;
    let mount = |flags| {
        // SAFETY: the strings outlive the call; no data is passed.
        check(unsafe {
            libc::mount(at.as_ptr(), at.as_ptr(), c"none".as_ptr(), flags, std::ptr::null())
        })
    };
    match mount(libc::MS_SHARED | libc::MS_REC) {
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {
            mount(libc::MS_BIND | libc::MS_REC)?;
            mount(libc::MS_SHARED | libc::MS_REC).map(drop)
        }
        done => done.map(drop),
    }
}

/// Gives this process a host name of its own: other ones keep theirs.
pub fn own_host_name(name: &str) -> io::Result<()> {
    unshare(libc::CLONE_NEWUTS)?;
    // SAFETY: the bytes of the name live until the call has returned.
    check(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) }).map(drop)
}

/// Lays files of our own over those of the machine, for this process and its children only. Where
/// the machine has no such file, nothing is laid.
pub fn own_files(files: &[(PathBuf, &Path)]) -> io::Result<()> {
    unshare(libc::CLONE_NEWNS)?;
    let none = std::ptr::null();
    // What is mounted here is seen nowhere else; what the machine mounts later is seen here.
    // SAFETY: the string outlives the call; nothing else is passed.
    check(unsafe {
        libc::mount(none, c"/".as_ptr(), none, libc::MS_REC | libc::MS_SLAVE, std::ptr::null())
    })?;
    files
        .iter()
        .filter(|(_, place)| place.exists())
        .try_for_each(|(file, place)| bind_mount(file, place))
}

/// Opens a process's namespace file (`net`, `user`, `mnt`).
pub fn open_ns(path: &Path) -> io::Result<OwnedFd> {
    Ok(std::fs::File::open(path)?.into())
}

/// Wakes a socket's reader only when `bytes` bytes are there (SO_RCVLOWAT), or the stream has
/// ended.
pub fn receive_low_water(socket: BorrowedFd, bytes: i32) -> io::Result<()> {
    let length = size_of_val(&bytes) as libc::socklen_t;
    // SAFETY: `bytes` is valid for the length of the call, and `length` is its size.
    let r = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVLOWAT,
            (&raw const bytes).cast(),
            length,
        )
    };
    check(r).map(drop)
}

/// Bytes of payload that a TCP socket has sent again (`tcpi_bytes_retrans`), those included that
/// the host's own full queue dropped; nothing where the kernel does not say (before 4.19).
pub fn tcp_sent_again(socket: BorrowedFd) -> Option<u64> {
    tcp_info::<208>(socket)
}

/// Bytes that a TCP socket's peer has acknowledged (`tcpi_bytes_acked`).
pub fn tcp_acknowledged(socket: BorrowedFd) -> Option<u64> {
    tcp_info::<120>(socket)
}

/// The eight bytes at a place in `struct tcp_info` of linux/tcp.h, of which libc knows the first
/// only.
fn tcp_info<const AT: usize>(socket: BorrowedFd) -> Option<u64> {
    let mut info = [0u8; 256];
    let mut length = (AT + 8) as libc::socklen_t;
    // SAFETY: `info` is valid for the length of the call, and has at least `length` bytes.
    let r = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    let known = r == 0 && length as usize == AT + 8;
    known.then(|| u64::from_ne_bytes(info[AT..AT + 8].try_into().expect("eight bytes")))
}

/// Has a TCP socket send again at least every second what is not acknowledged, whatever it has
/// waited already, and give up no sooner than usual. Packets behind those of better priorities are
/// lost time and again; the kernel then doubles the time to the next try, up to two minutes, and
/// the connection is silent for as long after its link is free. Nothing changes before Linux 6.15,
/// which cannot be told this.
///
/// # Errors
/// The kernel refused one of the options that it knows.
pub fn tcp_tries_on(socket: BorrowedFd) -> io::Result<()> {
    // TCP_RTO_MAX_MS of linux/tcp.h; its least value.
    const RTO_MAX_MS: (libc::c_int, libc::c_int) = (44, 1000);
    // What 15 tries of two minutes at most come to, in ms; by default a number of tries decides,
    // which are now over sooner.
    const PATIENCE: libc::c_int = 924_600;
    match set_tcp(socket, RTO_MAX_MS.0, RTO_MAX_MS.1) {
        Err(e) if e.raw_os_error() == Some(libc::ENOPROTOOPT) => return Ok(()),
        done => done?,
    }
    set_tcp(socket, libc::TCP_USER_TIMEOUT, PATIENCE)?;
    // The first packet is tried as long as usual, too: it took 127 s.
    set_tcp(socket, libc::TCP_SYNCNT, 120)
}

fn set_tcp(socket: BorrowedFd, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `value` lives for the length of the call, and `size` is its size.
    let r = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            option,
            (&raw const value).cast(),
            size,
        )
    };
    if r == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// What the kernel says of a frame that a socket of frames received.
pub struct FrameSeen {
    /// Its length, though the buffer may have been shorter.
    pub length: usize,
    /// The number of its interface.
    pub index: u32,
    /// Whether it was sent there; else it was received.
    pub outgoing: bool,
    /// When, since 1970.
    pub at: std::time::Duration,
}

/// Has the kernel stamp what a socket receives.
pub fn stamp_frames(socket: BorrowedFd) -> io::Result<()> {
    match last_stamp(socket) {
        // There is none yet, and from now on there will be.
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        stamped => stamped.map(drop),
    }
}

/// When the frame that was received last came, since 1970.
fn last_stamp(socket: BorrowedFd) -> io::Result<std::time::Duration> {
    // SIOCGSTAMPNS of linux/sockios.h.
    const LAST_STAMP: libc::Ioctl = 0x8907;
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid timespec for the length of the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), LAST_STAMP, &mut t) })?;
    Ok(std::time::Duration::new(t.tv_sec as u64, t.tv_nsec as u32))
}

/// Receives a frame from a socket of frames (AF_PACKET); what does not fit into the buffer is cut
/// off.
pub fn receive_frame(socket: BorrowedFd, buffer: &mut [u8]) -> io::Result<FrameSeen> {
    // SAFETY: all zeros are a valid value of this plain structure.
    let mut from: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut length = size_of_val(&from) as libc::socklen_t;
    let (into, at) = (buffer.as_mut_ptr().cast(), (&raw mut from).cast());
    // SAFETY: buffer and address are valid for writing for the length of the call, with the lengths
    // that it is told.
    let r = unsafe {
        libc::recvfrom(socket.as_raw_fd(), into, buffer.len(), libc::MSG_TRUNC, at, &raw mut length)
    };
    check(r.clamp(-1, 0) as i32)?;
    let (index, outgoing) = (from.sll_ifindex as u32, from.sll_pkttype == libc::PACKET_OUTGOING);
    Ok(FrameSeen { length: r as usize, index, outgoing, at: last_stamp(socket)? })
}

/// How many frames a socket of frames has lost since the last call.
pub fn frames_lost(socket: BorrowedFd) -> io::Result<u32> {
    // PACKET_STATISTICS and `struct tpacket_stats` of linux/if_packet.h.
    const STATISTICS: i32 = 6;
    let mut counted = [0u32; 2];
    let mut length = size_of_val(&counted) as libc::socklen_t;
    let into = (&raw mut counted).cast();
    // SAFETY: `counted` is valid for the length of the call, and `length` is its size.
    check(unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_PACKET, STATISTICS, into, &raw mut length)
    })?;
    Ok(counted[1])
}

/// The number of the calling thread.
pub fn thread_id() -> i32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Whether a child of ours has ended. It stays, with its number, until it is waited for.
pub fn child_has_ended(child: u32) -> io::Result<bool> {
    // SAFETY: all zeros are a valid value of this plain structure, which outlives the call that
    // writes into it.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    check(unsafe {
        libc::waitid(libc::P_PID, child, &mut info, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT)
    })?;
    // SAFETY: of a child the kernel fills in its number, and it stays zero if none has ended.
    Ok(unsafe { info.si_pid() } != 0)
}

/// Kills all of the process group that a child of ours leads, which must not have been waited for
/// yet: its number is its own until then.
pub fn kill_group(leader: u32) -> io::Result<()> {
    let leader =
        i32::try_from(leader).ok().filter(|&l| l > 1).ok_or(io::ErrorKind::InvalidInput)?;
    // SAFETY: takes integers.
    check(unsafe { libc::kill(-leader, libc::SIGKILL) }).map(drop)
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
    // SAFETY: a set of processors is plain bits, for which zero is valid, and it lives through the
    // calls; 0 is the calling thread.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set) == 0
    }
}

/// Time of a processor that the calling thread has taken.
#[cfg(test)]
pub fn thread_time() -> std::time::Duration {
    std::time::Duration::from_nanos(now_of(libc::CLOCK_THREAD_CPUTIME_ID))
}

/// Raises the limit of open files to what is allowed; returns it.
pub fn raise_open_files() -> u64 {
    let mut l = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `l` is valid for both calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut l) == 0 {
            l.rlim_cur = l.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &l);
        }
    }
    l.rlim_cur
}

/// Takes an exclusive lock on an open file without waiting.
pub fn try_lock(file: &std::fs::File) -> io::Result<()> {
    // SAFETY: the descriptor is open for the length of the call.
    check(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }).map(drop)
}

/// Takes an exclusive lock on an open file, and waits for it this long. Returns whether it was had:
/// who may read a file may hold its lock as long as they like.
pub fn lock_within(file: &std::fs::File, longest: Duration) -> bool {
    let begun = Instant::now();
    while try_lock(file).is_err() {
        if begun.elapsed() >= longest {
            return false;
        }
        std::thread::sleep(longest / 100);
    }
    true
}

/// Takes a shared lock on an open file without waiting.
pub fn try_share(file: &std::fs::File) -> io::Result<()> {
    // SAFETY: the descriptor is open for the length of the call.
    check(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_SH | libc::LOCK_NB) }).map(drop)
}

/// A process, whatever process its number is given to once it has ended.
pub struct Process(OwnedFd);

impl Process {
    /// The process that has this number now.
    pub fn open(pid: u32) -> io::Result<Self> {
        // SAFETY: integers only; a descriptor that the kernel gives is new.
        let fd = check(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as i32)?;
        // SAFETY: as above.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Waits for its end; says whether it came in time.
    pub fn ends_within(&self, patience: std::time::Duration) -> io::Result<bool> {
        let mut p = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, valid for the length of the call.
        check(unsafe { libc::poll(&mut p, 1, patience.as_millis().min(i32::MAX as u128) as i32) })
            .map(|n| n > 0)
    }

    /// Asks it to end (SIGTERM).
    pub fn terminate(&self) -> io::Result<()> {
        self.signal(libc::SIGTERM)
    }

    /// Ends it (SIGKILL).
    pub fn kill(&self) -> io::Result<()> {
        self.signal(libc::SIGKILL)
    }

    fn signal(&self, signal: i32) -> io::Result<()> {
        let nothing = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: the descriptor is open for the length of the call; the kernel fills in what is
        // not given.
        check(unsafe {
            libc::syscall(libc::SYS_pidfd_send_signal, self.0.as_raw_fd(), signal, nothing, 0)
        } as i32)
        .map(drop)
    }
}

/// Gives a command a session of its own when it is started: no terminal's end is its end.
pub fn own_session(command: &mut std::process::Command) -> &mut std::process::Command {
    use std::os::unix::process::CommandExt as _;
    // SAFETY: what runs between fork and exec is one call into the kernel, which takes nothing.
    unsafe { command.pre_exec(|| check(libc::setsid()).map(drop)) }
}

/// Asks a command to end (SIGTERM) when the thread that starts it does.
pub fn ends_with_parent(command: &mut std::process::Command) -> &mut std::process::Command {
    use std::os::unix::process::CommandExt as _;
    // SAFETY: what runs between fork and exec is one call into the kernel, which takes integers.
    unsafe {
        command.pre_exec(|| {
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM, 0, 0, 0)).map(drop)
        })
    }
}

/// Has a command run without any capability, now and in all that it starts, and none comes back by
/// a set-user-ID program.
pub fn without_capabilities(command: &mut std::process::Command) {
    use std::os::unix::process::CommandExt as _;
    const VERSION_3: u32 = 0x2008_0522;
    let drop_all = || {
        // SAFETY: between fork and exec: calls into the kernel only, which take integers, and
        // memory that outlives them.
        unsafe {
            check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
            let (header, none) = ([VERSION_3, 0], [0_u32; 6]);
            check(libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) as i32).map(drop)
        }
    };
    // SAFETY: as above.
    unsafe { command.pre_exec(drop_all) };
}

/// Whether the process may write to a file, or make files in a directory, with its effective
/// rights.
pub fn may_write(path: &Path) -> bool {
    let Ok(path) = c_path(path) else { return false };
    // SAFETY: the string outlives the call.
    unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::W_OK, libc::AT_EACCESS) == 0 }
}

/// Has a signal do nothing until there is a handler for it.
pub fn ignore_signal(signal: libc::c_int) {
    // SAFETY: no handler of ours is replaced by one that could be unsafe.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// Makes a directory that all users of the machine share. One that is not root's would let its
/// owner replace what root relies on: only root makes it, and it is refused if it is another
/// user's.
///
/// # Errors
/// It cannot be made, or is not root's.
pub fn make_shared(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let refused = |why: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    let name = directory.display();
    match std::fs::symlink_metadata(directory) {
        Ok(there) if there.uid() == 0 => Ok(()),
        Ok(there) => refused(format!(
            "{name} belongs to user {}, and must be root's; remove it as root",
            there.uid()
        )),
        Err(_) if is_root() => std::fs::create_dir_all(directory),
        Err(_) => refused(format!(
            "{name} is missing, and only root may make it: sudo install -d -m 755 {name}"
        )),
    }
}

/// Whether the process's effective user is root (in its user namespace).
pub fn is_root() -> bool {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Whether this process is in the machine's first user namespace (and its root is the machine's).
pub fn in_first_user_namespace() -> bool {
    // The first one maps every id to itself, in one line.
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().collect::<Vec<_>>() == ["0", "0", "4294967295"]
}

/// Gives a process without root a user namespace in which it is root, and a network namespace that
/// belongs to it. The process must have one thread.
pub fn become_namespace_root() -> io::Result<()> {
    let (uid, gid) = uid_gid();
    unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET)?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("0 {uid} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("0 {gid} 1"))?;
    // SAFETY: integers only. So that `exec` of the same user finds this process's namespaces below
    // /proc.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) }).map(drop)
}

/// Real user and group id.
pub fn uid_gid() -> (u32, u32) {
    // SAFETY: takes nothing, cannot fail.
    unsafe { (libc::getuid(), libc::getgid()) }
}

/// The real user id as it was outside of this process's user namespace, where root of a network
/// without root is the user who started it.
pub fn user_outside() -> u32 {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    outside(&map, uid_gid().0)
}

/// The number of the user who runs this process: under sudo, of who called it.
pub fn caller() -> u32 {
    let by_sudo = std::env::var("SUDO_UID").ok().and_then(|id| id.parse().ok());
    by_sudo.filter(|_| is_root()).unwrap_or_else(user_outside)
}

/// The user id that a map of user_namespaces(7) gives one of its namespace, or the same if it has
/// none.
fn outside(map: &str, own: u32) -> u32 {
    let mut ranges = map.lines().filter_map(|line| {
        let mut numbers = line.split_whitespace().map(str::parse::<u32>);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    let outer = ranges.find_map(|(first, outer, count)| {
        outer.checked_add(own.checked_sub(first).filter(|at| *at < count)?)
    });
    outer.unwrap_or(own)
}

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
pub struct Mapping {
    base: *mut u64,
    cells: usize,
    length: usize,
}

// SAFETY: the mapping is only ever touched through atomics, and unmapped by the last owner.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `bytes` (rounded up to pages) of `fd`.
    pub fn new(fd: BorrowedFd, bytes: usize) -> io::Result<Self> {
        let length = bytes.div_ceil(4096) * 4096;
        // SAFETY: a fresh mapping at an address that the kernel chooses.
        let p = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        if p == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { base: p.cast(), cells: bytes / 8, length })
    }

    /// The 64-bit cell number `i`.
    pub fn cell(&self, i: usize) -> &std::sync::atomic::AtomicU64 {
        assert!(i < self.cells, "cell {i} of {}", self.cells);
        // SAFETY: within the mapping (asserted), aligned (page + 8 i), alive as long as `self`; the
        // kernel writes it with 64-bit atomics only.
        unsafe { std::sync::atomic::AtomicU64::from_ptr(self.base.add(i)) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `new` made, and no reference into it is left.
        unsafe { libc::munmap(self.base.cast(), self.length) };
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_known_by_their_number_outside() {
        assert_eq!(outside("         0          0 4294967295\n", 7), 7);
        assert_eq!(outside("         0       1001          1\n", 0), 1001);
        assert_eq!(outside("0 1000 1\n1 100000 65536\n", 5), 100_004);
        for no_map in ["", "x y z\n", "0 4294967295 2\n", "9 5 1\n"] {
            assert_eq!(outside(no_map, 1), 1, "{no_map:?}");
        }
    }
}
