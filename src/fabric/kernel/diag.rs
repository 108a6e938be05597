//! Bytes that wait in the hosts' sockets, by destination rack: what c-Through reads from its hosts' buffers.
//!
//! One INET_DIAG dump a host: `wqueue` of an established connection is what was written and not acknowledged yet.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::BorrowedFd;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_SOCK_DIAG};

use super::netns;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const DUMP_REQUEST: u16 = 0x301;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const ESTABLISHED_AND_CLOSING: u32 = 1 << 1 | 1 << 4 | 1 << 8;
/// Offsets in `struct inet_diag_msg`.
const DESTINATION: usize = 4 + 4 + 16;
const WQUEUE: usize = 4 + 48 + 8;

/// Asks one host.
pub struct SocketQueues {
    socket: Socket,
    buffer: Vec<u8>,
    request: [u8; 72],
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
        Ok(Self { socket, buffer: vec![0; 64 << 10], request })
    }

    /// Passes destination and waiting bytes of every connection that has any.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn read(&mut self, mut each: impl FnMut(Ipv4Addr, u64)) -> io::Result<()> {
        self.socket.send_to(&self.request, &SocketAddr::new(0, 0), 0)?;
        loop {
            let got = self.socket.recv(&mut &mut self.buffer[..], 0)?;
            let mut rest = &self.buffer[..got];
            while rest.len() >= 16 {
                let length = u32::from_ne_bytes(rest[..4].try_into().expect("four bytes")) as usize;
                let kind = u16::from_ne_bytes(rest[4..6].try_into().expect("two bytes"));
                let body = rest.get(16..length).unwrap_or(&[]);
                match kind {
                    DONE => return Ok(()),
                    ERROR => {
                        let code = body.get(..4).map_or(0, |b| i32::from_ne_bytes(b.try_into().expect("four bytes")));
                        return if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-code)) };
                    }
                    _ if body.len() >= WQUEUE + 4 => {
                        let waiting = u32::from_ne_bytes(body[WQUEUE..WQUEUE + 4].try_into().expect("four bytes"));
                        let to: [u8; 4] = body[DESTINATION..DESTINATION + 4].try_into().expect("four bytes");
                        if waiting > 0 {
                            each(Ipv4Addr::from(to), u64::from(waiting));
                        }
                    }
                    _ => {}
                }
                rest = rest.get(length.next_multiple_of(4).max(16)..).unwrap_or(&[]);
            }
        }
    }
}
