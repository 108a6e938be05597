//! Packets of a node's interfaces, as a socket of frames (AF_PACKET) sees them: what comes in
//! before any filter, what goes out as it leaves.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use pnet::datalink;
use socket2::{Domain, Protocol, Socket, Type};

use super::sys;

/// The longest frame: segments that the kernel has put together, or has still to cut.
pub const LONGEST: usize = 1 << 18;
/// What the kernel keeps until it is read.
const WAITING: usize = 16 << 20;

/// An interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name, such as `ocs0`.
    pub name: String,
    /// The kernel's number of it.
    index: u32,
}

/// A frame on an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedFrame {
    /// The place of its interface in [`FrameTap::interfaces`].
    pub interface: usize,
    /// When the kernel saw it, since 1970.
    pub at: Duration,
    /// Whether it was sent; else it was received.
    pub outgoing: bool,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// How many it had; more than `bytes` of one that is longer than [`LONGEST`].
    pub length: usize,
}

/// A socket that sees the frames of interfaces.
pub struct FrameTap {
    socket: Socket,
    /// What it listens on.
    pub interfaces: Vec<Interface>,
    buffer: Vec<u8>,
    lost: u64,
}

impl FrameTap {
    /// Listens on one interface of this thread's network namespace, or on all but its loopback.
    ///
    /// # Errors
    /// `NotFound` if there is no such interface, with those that there are; else what the kernel
    /// refused.
    pub fn open(name: Option<&str>) -> io::Result<Self> {
        let all: Vec<_> = datalink::interfaces().into_iter().filter(|i| !i.is_loopback()).collect();
        let wanted = all.iter().filter(|i| name.is_none_or(|n| n == i.name));
        let interfaces: Vec<Interface> =
            wanted.map(|i| Interface { name: i.name.clone(), index: i.index }).collect();
        if interfaces.is_empty() {
            let there: Vec<&str> = all.iter().map(|i| i.name.as_str()).collect();
            let why = format!(
                "no interface {}; there are {}",
                name.unwrap_or("but the loopback"),
                there.join(", ")
            );
            return Err(io::Error::new(io::ErrorKind::NotFound, why));
        }
        let every = Protocol::from(i32::from((libc::ETH_P_ALL as u16).to_be()));
        let socket = Socket::new(Domain::PACKET, Type::RAW, Some(every))?;
        // As much as is allowed: what does not fit is counted as lost.
        let _ = socket.set_recv_buffer_size(WAITING);
        sys::stamp_frames(socket.as_fd())?;
        Ok(Self { socket, interfaces, buffer: vec![0; LONGEST], lost: 0 })
    }

    /// The next frame; `None` if none comes within `patience`, which is above zero.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn next(&mut self, patience: Duration) -> io::Result<Option<CapturedFrame>> {
        self.socket.set_read_timeout(Some(patience))?;
        let seen = match sys::receive_frame(self.socket.as_fd(), &mut self.buffer) {
            Ok(seen) => seen,
            Err(e)
                if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
            {
                return Ok(None);
            }
            Err(e) => return Err(e),
        };
        let Some(interface) = self.interfaces.iter().position(|i| i.index == seen.index) else {
            return Ok(None);
        };
        let bytes = self.buffer[..seen.length.min(LONGEST)].to_vec();
        Ok(Some(CapturedFrame {
            interface,
            at: seen.at,
            outgoing: seen.outgoing,
            bytes,
            length: seen.length,
        }))
    }

    /// How many frames came while there was no room for them.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn lost(&mut self) -> io::Result<u64> {
        self.lost += u64::from(sys::frames_lost(self.socket.as_fd())?);
        Ok(self.lost)
    }
}
