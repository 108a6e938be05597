//! Sockets: options of TCP, and frames.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use super::check;

fn set_option(socket: BorrowedFd, level: i32, option: i32, value: i32) -> io::Result<()> {
    let size = size_of_val(&value) as libc::socklen_t;
    let at = (&raw const value).cast();
    // SAFETY: `value` lives for the length of the call, and `size` is its size.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, at, size) }).map(drop)
}

/// Fills `into` with an option of a socket; says how many bytes the kernel wrote.
fn option(socket: BorrowedFd, level: i32, option: i32, into: &mut [u8]) -> io::Result<usize> {
    let mut length = into.len() as libc::socklen_t;
    let at = into.as_mut_ptr().cast();
    // SAFETY: `into` is valid for writing for the length of the call, and `length` is its length.
    check(unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, at, &raw mut length) })?;
    Ok(length as usize)
}

/// Wakes a socket's reader only when `bytes` bytes are there (SO_RCVLOWAT), or the stream has
/// ended.
pub fn receive_low_water(socket: BorrowedFd, bytes: i32) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes)
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
    let mut info = [0; 256];
    let asked = &mut info[..AT + 8];
    let length = option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, asked).ok()?;
    (length == AT + 8)
        .then(|| u64::from_ne_bytes(info[AT..AT + 8].try_into().expect("eight bytes")))
}

/// Has a TCP socket send again at least every second what is not acknowledged, whatever it has
/// waited already, and give up no sooner than usual. Packets behind those of better priorities are
/// lost time and again. The kernel then doubles the time to the next try, up to two minutes, and
/// the connection is silent for as long after its link is free. Nothing changes before Linux 6.15,
/// which has no option for it.
///
/// # Errors
/// The kernel refused one of the options that it knows.
pub fn tcp_tries_on(socket: BorrowedFd) -> io::Result<()> {
    // TCP_RTO_MAX_MS of linux/tcp.h; its least value.
    const RTO_MAX_MS: (i32, i32) = (44, 1000);
    // What 15 tries of two minutes at most come to, in ms; by default a number of tries decides,
    // which are now over sooner.
    const PATIENCE: i32 = 924_600;
    let set = |option, value| set_option(socket, libc::IPPROTO_TCP, option, value);
    match set(RTO_MAX_MS.0, RTO_MAX_MS.1) {
        Err(e) if e.raw_os_error() == Some(libc::ENOPROTOOPT) => return Ok(()),
        done => done?,
    }
    set(libc::TCP_USER_TIMEOUT, PATIENCE)?;
    // The first packet is tried as long as usual, too: it took 127 s.
    set(libc::TCP_SYNCNT, 120)
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
    pub at: Duration,
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
fn last_stamp(socket: BorrowedFd) -> io::Result<Duration> {
    // SIOCGSTAMPNS of linux/sockios.h.
    const LAST_STAMP: libc::Ioctl = 0x8907;
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid timespec for the length of the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), LAST_STAMP, &mut t) })?;
    Ok(Duration::new(t.tv_sec as u64, t.tv_nsec as u32))
}

/// Receives a frame from a socket of frames (AF_PACKET); what does not fit into the buffer is cut
/// off.
pub fn receive_frame(socket: BorrowedFd, buffer: &mut [u8]) -> io::Result<FrameSeen> {
    // SAFETY: all zeros are a valid value of this plain structure.
    let mut from: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut length = size_of_val(&from) as libc::socklen_t;
    let (into, at) = (buffer.as_mut_ptr().cast(), (&raw mut from).cast());
    // SAFETY: buffer and address are valid for writing for the length of the call, with the lengths
    // that are given.
    let r = unsafe {
        libc::recvfrom(socket.as_raw_fd(), into, buffer.len(), libc::MSG_TRUNC, at, &raw mut length)
    };
    check(r.clamp(-1, 0) as i32)?;
    let (index, outgoing) = (from.sll_ifindex as u32, from.sll_pkttype == libc::PACKET_OUTGOING);
    Ok(FrameSeen { length: r as usize, index, outgoing, at: last_stamp(socket)? })
}

/// How many frames a socket of frames has lost since the last call.
pub fn frames_lost(socket: BorrowedFd) -> io::Result<u32> {
    // PACKET_STATISTICS of linux/if_packet.h; `struct tpacket_stats` has received and dropped.
    const STATISTICS: i32 = 6;
    let mut counted = [0; 8];
    option(socket, libc::SOL_PACKET, STATISTICS, &mut counted)?;
    Ok(u32::from_ne_bytes(counted[4..].try_into().expect("four bytes")))
}
