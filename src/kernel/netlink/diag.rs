//! Bytes that wait in the hosts' sockets, by destination rack: what c-Through reads from its hosts'
//! buffers.
//!
//! One INET_DIAG dump a host: `wqueue` of an established connection is what was written and not
//! acknowledged yet.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::BorrowedFd;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_SOCK_DIAG};

use super::wire::{self, DumpEnd};
use crate::netns;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const DUMP_REQUEST: u16 = 0x301;
const ESTABLISHED_AND_CLOSING: u32 = 1 << 1 | 1 << 4 | 1 << 8;
/// Connections whose first packet has not been answered.
const BEGINNING: u32 = 1 << 2;
/// Offsets in `struct inet_diag_msg`.
const TIMER: usize = 2;
const TRIES: usize = 3;
/// The timer after which a packet is sent again, and the one after which a receiver that does not
/// read is asked again.
const AGAIN: u8 = 1;
const ASKS: u8 = 4;
const PORT: usize = 4 + 2;
const DESTINATION: usize = 4 + 4 + 16;
const COOKIE: usize = 4 + 40;
const WQUEUE: usize = 4 + 48 + 8;
/// Length of it; attributes follow.
const MESSAGE: usize = 72;
/// The attribute that holds `struct tcp_info`, and where that has `tcpi_bytes_acked` (Linux 4.1).
const INFO: u8 = 2;
const ACKNOWLEDGED: usize = 120;

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

    /// Lists connections, too, that are not open yet.
    pub fn with_beginning(mut self) -> Self {
        self.request[20..24].copy_from_slice(&(ESTABLISHED_AND_CLOSING | BEGINNING).to_ne_bytes());
        self
    }

    /// Passes every connection on which bytes wait; with `all` those on which nothing waits, too,
    /// and what each has sent.
    ///
    /// # Errors
    /// What the kernel refused, or an answer that cannot be read. Nothing is passed then.
    pub fn read(&mut self, all: bool, each: impl FnMut(Connection)) -> io::Result<()> {
        self.request[18] = if all { 1 << (INFO - 1) } else { 0 };
        for _ in 0..wire::TRIES {
            self.sequence = self.sequence.wrapping_add(1);
            self.request[8..12].copy_from_slice(&self.sequence.to_ne_bytes());
            self.socket.send_to(&self.request, &SocketAddr::new(0, 0), 0)?;
            let one = |_: u16, body: &[u8]| {
                connection(body).map(|c| Some(c).filter(|c| all || c.waits > 0))
            };
            let (ended, found) =
                wire::gather(&mut self.buffer, self.sequence, wire::from(&self.socket), one)?;
            if ended == DumpEnd::Whole {
                found.into_iter().for_each(each);
                return Ok(());
            }
        }
        Err(wire::restless())
    }
}

/// One end of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The other end.
    pub to: Ipv4Addr,
    /// Its port.
    pub port: u16,
    /// How often in a row a packet was sent again, or the receiver asked, without an answer; up to
    /// 255.
    pub tries: u8,
    /// The kernel's number of the socket.
    pub cookie: u64,
    /// Bytes that were written and are not acknowledged.
    pub waits: u64,
    /// Bytes that were acknowledged; 0 if that was not asked for, or by a kernel that does not tell
    /// it.
    pub acknowledged: u64,
}

/// Reads a connection from its `struct inet_diag_msg` and the attributes behind that.
fn connection(body: &[u8]) -> io::Result<Connection> {
    let short = || {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a connection's {} bytes are too few", body.len()),
        )
    };
    let to: [u8; 4] = bytes(body, DESTINATION).ok_or_else(short)?;
    let waits = bytes(body, WQUEUE).map(u32::from_ne_bytes).ok_or_else(short)?;
    let cookie = bytes(body, COOKIE).map(u64::from_ne_bytes).ok_or_else(short)?;
    let port = bytes(body, PORT).map(u16::from_be_bytes).ok_or_else(short)?;
    let tries = match *body.get(TIMER..=TRIES).unwrap_or_default() {
        [AGAIN, tries] => tries,
        // The last question may just be on its way.
        [ASKS, tries] => tries.saturating_sub(1),
        _ => 0,
    };
    let info = wire::attribute(body.get(MESSAGE..).unwrap_or_default(), INFO.into());
    let acknowledged = bytes(info, ACKNOWLEDGED).map_or(0, u64::from_ne_bytes);
    Ok(Connection { to: to.into(), port, tries, cookie, waits: waits.into(), acknowledged })
}

fn bytes<const N: usize>(of: &[u8], at: usize) -> Option<[u8; N]> {
    of.get(at..at + N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_read_by_its_offsets_and_a_short_one_is_an_error() {
        let mut body = vec![0u8; MESSAGE];
        body[DESTINATION..DESTINATION + 4].copy_from_slice(&[10, 3, 0, 2]);
        body[WQUEUE..WQUEUE + 4].copy_from_slice(&1500u32.to_ne_bytes());
        body[COOKIE..COOKIE + 8].copy_from_slice(&7u64.to_ne_bytes());
        (body[TIMER], body[TRIES]) = (AGAIN, 3);
        body[PORT..PORT + 2].copy_from_slice(&5201u16.to_be_bytes());
        let plain = Connection {
            to: [10, 3, 0, 2].into(),
            port: 5201,
            tries: 3,
            cookie: 7,
            waits: 1500,
            acknowledged: 0,
        };
        assert_eq!(connection(&body).unwrap(), plain);
        for n in 0..WQUEUE + 4 {
            assert!(connection(&body[..n]).is_err(), "{n}");
        }
        // Another attribute, then the kernel's `struct tcp_info`.
        body.extend([8, 0, 8, 0, 1, 0, 0, 0]);
        body.extend([4 + 136, 0, INFO, 0]);
        body.extend([0; 136]);
        let at = MESSAGE + 12 + ACKNOWLEDGED;
        body[at..at + 8].copy_from_slice(&5_000_000_000u64.to_ne_bytes());
        assert_eq!(connection(&body).unwrap(), Connection { acknowledged: 5_000_000_000, ..plain });
    }
}
