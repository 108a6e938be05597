//! The offloads of a link, as `ethtool -K` reads and sets them.

use std::io;
use std::os::fd::AsRawFd;

use super::check;

/// From linux/ethtool.h and linux/sockios.h.
const GET: u32 = 0x3a;
const SET: u32 = 0x3b;
const SIOCETHTOOL: libc::Ioctl = 0x8946;
/// Words of 32 offloads each that we have room for; kernels have two.
const WORDS: usize = 4;

/// `struct ethtool_gfeatures` (available, requested, active, never changed) and `struct
/// ethtool_sfeatures` (valid, requested).
#[repr(C)]
struct Features {
    command: u32,
    words: u32,
    rest: [u32; 4 * WORDS],
}

fn ask(socket: &impl AsRawFd, link: &str, features: &mut Features) -> io::Result<()> {
    // SAFETY: all zeros are a valid value of this plain structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let name = link.as_bytes();
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    request.ifr_name.iter_mut().zip(name).for_each(|(to, &from)| *to = from as libc::c_char);
    request.ifr_ifru.ifru_data = std::ptr::from_mut(features).cast();
    // SAFETY: the request and what it points to outlive the call; there is room for the words that
    // it names.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) }).map(drop)
}

/// The offloads that are asked of a link of the socket's namespace.
///
/// # Errors
/// What the kernel refused.
pub fn offloads(socket: &impl AsRawFd, link: &str) -> io::Result<Vec<u32>> {
    let mut f = Features { command: GET, words: WORDS as u32, rest: [0; 4 * WORDS] };
    ask(socket, link, &mut f)?;
    let words = (f.words as usize).min(WORDS);
    Ok((0..words).map(|k| f.rest[4 * k + 1]).collect())
}

/// Asks a link for `wanted` offloads where it has others `now`.
///
/// # Errors
/// What the kernel refused.
pub fn set_offloads(
    socket: &impl AsRawFd,
    link: &str,
    wanted: &[u32],
    now: &[u32],
) -> io::Result<()> {
    let words = wanted.len().min(now.len()).min(WORDS);
    let mut f = Features { command: SET, words: words as u32, rest: [0; 4 * WORDS] };
    for k in 0..words {
        (f.rest[2 * k], f.rest[2 * k + 1]) = (wanted[k] ^ now[k], wanted[k]);
    }
    ask(socket, link, &mut f)
}
