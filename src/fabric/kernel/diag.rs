//! Bytes that wait in the hosts' sockets, by destination rack: what c-Through reads from its hosts' buffers.
//!
//! One INET_DIAG dump a host: `wqueue` of an established connection is what was written and not acknowledged yet.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::BorrowedFd;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_SOCK_DIAG};

use super::netns;
use super::wire::{self, Ended};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const DUMP_REQUEST: u16 = 0x301;
const ESTABLISHED_AND_CLOSING: u32 = 1 << 1 | 1 << 4 | 1 << 8;
/// Offsets in `struct inet_diag_msg`.
const DESTINATION: usize = 4 + 4 + 16;
const WQUEUE: usize = 4 + 48 + 8;

/// Asks one host.
pub struct SocketQueues {
    socket: Socket,
    buffer: Vec<u8>,
    request: [u8; 72],
    /// Number of the last request: answers carry it.
    sequence: u32,
}

impl SocketQueues {
    /// Opens a socket in a host's namespace.
    ///
    /// # Errors
    /// When the kernel has no INET_DIAG or refuses.
    pub fn open(ns: BorrowedFd) -> io::Result<Self> {
        let socket = netns::within(ns, || {
            let mut s = Socket::new(NETLINK_SOCK_DIAG)?;
            s.bind_auto()?;
            Ok(s)
        })?;
        let mut request = [0u8; 72];
        request[..4].copy_from_slice(&72u32.to_ne_bytes());
        request[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        request[6..8].copy_from_slice(&DUMP_REQUEST.to_ne_bytes());
        request[16] = libc::AF_INET as u8;
        request[17] = libc::IPPROTO_TCP as u8;
        request[20..24].copy_from_slice(&ESTABLISHED_AND_CLOSING.to_ne_bytes());
        Ok(Self { socket, buffer: vec![0; 64 << 10], request, sequence: 0 })
    }

    /// Passes destination and waiting bytes of every connection that has any.
    ///
    /// # Errors
    /// What the kernel refused, or an answer that cannot be read. Nothing is passed then.
    pub fn read(&mut self, mut each: impl FnMut(Ipv4Addr, u64)) -> io::Result<()> {
        for _ in 0..wire::TRIES {
            self.sequence = self.sequence.wrapping_add(1);
            self.request[8..12].copy_from_slice(&self.sequence.to_ne_bytes());
            self.socket.send_to(&self.request, &SocketAddr::new(0, 0), 0)?;
            let (ended, all) = wire::gather(&mut self.buffer, self.sequence, wire::from(&self.socket), waiting)?;
            if ended == Ended::Whole {
                all.into_iter().for_each(|(to, bytes)| each(to, bytes));
                return Ok(());
            }
        }
        Err(wire::restless())
    }
}

/// The destination of a connection and the bytes that wait for it, if any.
fn waiting(_: u16, body: &[u8]) -> io::Result<Option<(Ipv4Addr, u64)>> {
    let four = |at: usize| body.get(at..at + 4).and_then(|b| <[u8; 4]>::try_from(b).ok());
    match (four(DESTINATION), four(WQUEUE).map(u32::from_ne_bytes)) {
        (Some(to), Some(bytes)) => Ok((bytes > 0).then(|| (Ipv4Addr::from(to), u64::from(bytes)))),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, format!("a connection's {} bytes are too few", body.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_read_by_its_offsets_and_a_short_one_is_an_error() {
        let mut body = [0u8; WQUEUE + 12];
        body[DESTINATION..DESTINATION + 4].copy_from_slice(&[10, 3, 0, 2]);
        assert_eq!(waiting(SOCK_DIAG_BY_FAMILY, &body).unwrap(), None, "nothing waits");
        body[WQUEUE..WQUEUE + 4].copy_from_slice(&1500u32.to_ne_bytes());
        assert_eq!(waiting(SOCK_DIAG_BY_FAMILY, &body).unwrap(), Some(([10, 3, 0, 2].into(), 1500)));
        for n in 0..WQUEUE + 4 {
            assert!(waiting(SOCK_DIAG_BY_FAMILY, &body[..n]).is_err(), "{n}");
        }
    }
}
