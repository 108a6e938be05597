//! Netlink messages as bytes: which of them answer a request, and when a dump is whole. Pure, but
//! for a function that receives.
//!
//! A dump is complete or an error, never a part. So answers are taken by the request's sequence
//! number only. A list that changed while the kernel made it (`NLM_F_DUMP_INTR`) or that had no
//! room in the socket (`ENOBUFS`) is no answer. What cannot be read fails the dump after all of it
//! was received: what is left in the socket would make the kernel refuse the next dump.

use std::io;

use netlink_packet_core::NLM_F_DUMP_INTR;
use netlink_sys::Socket;

const NOOP: u16 = 1;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const OVERRUN: u16 = 4;

/// Length of a message's header.
const HEADER: usize = 16;

/// One netlink message in a receive buffer.
struct Raw<'a> {
    kind: u16,
    flags: u16,
    sequence: u32,
    /// Of the socket that it is for, or in news of the one that asked for the change.
    port: u32,
    body: &'a [u8],
}

impl Raw<'_> {
    /// The refusal in an acknowledgement or at the end of a dump, with the kernel's extended words
    /// if it sent them.
    fn error(&self) -> Option<io::Error> {
        let code = i32::from_ne_bytes(self.body.get(..4)?.try_into().ok()?);
        if code == 0 {
            return None;
        }
        let plain = io::Error::from_raw_os_error(code.checked_neg().unwrap_or(libc::EPROTO));
        const TLVS: u16 = 0x200;
        // With capped acknowledgements the attributes follow the 4 + 16 bytes of code and echoed
        // header.
        let words =
            (self.kind == ERROR && self.flags & TLVS != 0).then(|| self.body.get(24..)).flatten();
        // So it calls a route that is not there.
        let kind = if plain.raw_os_error() == Some(libc::ESRCH) {
            io::ErrorKind::NotFound
        } else {
            plain.kind()
        };
        Some(match words {
            Some(w) => {
                let text = String::from_utf8_lossy(w);
                io::Error::new(
                    kind,
                    format!("{plain} [{}]", text.trim_matches(|c: char| c.is_control())),
                )
            }
            None if kind != plain.kind() => io::Error::new(kind, plain.to_string()),
            None => plain,
        })
    }
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the kernel's answer cannot be read: {what}"),
    )
}

/// The messages of a datagram; the last item is an error if the datagram ends in the middle of one.
fn messages(datagram: &[u8]) -> impl Iterator<Item = io::Result<Raw<'_>>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let first = next(rest);
        rest = first.as_ref().map_or(&[], |(_, rest)| *rest);
        Some(first.map(|(m, _)| m).ok_or_else(|| malformed("a message is cut short")))
    })
}

/// The first message of a datagram, and what follows it.
fn next(datagram: &[u8]) -> Option<(Raw<'_>, &[u8])> {
    let header = datagram.get(..HEADER)?;
    let word = |i: usize| u32::from_ne_bytes(header[i..i + 4].try_into().expect("four bytes"));
    let half = |i: usize| u16::from_ne_bytes(header[i..i + 2].try_into().expect("two bytes"));
    let length = word(0) as usize;
    let m = Raw {
        kind: half(4),
        flags: half(6),
        sequence: word(8),
        port: word(12),
        body: datagram.get(HEADER..length)?,
    };
    Some((m, datagram.get(length.next_multiple_of(4)..).unwrap_or(&[])))
}

/// The ports from which the changes were asked for of which a datagram of news tells; zero for
/// those that the kernel makes by itself, and for what cannot be read.
pub fn senders(datagram: &[u8]) -> impl Iterator<Item = u32> + '_ {
    messages(datagram).map(|m| m.map_or(0, |m| m.port))
}

/// How a dump that the kernel did not refuse has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpEnd {
    /// The answers are the whole list, as it was at one instant.
    Whole,
    /// The list changed while the kernel made it, or answers had no room in the socket: some may be
    /// missing, or be there twice. Ask again.
    Interrupted,
}

/// A dump under way: it takes datagrams until its end.
struct Dump {
    sequence: u32,
    interrupted: bool,
    failed: Option<io::Error>,
}

impl Dump {
    /// Takes one datagram, and passes kind and body of every answer until one cannot be read; says
    /// whether the dump is over.
    fn take(
        &mut self,
        datagram: &[u8],
        mut each: impl FnMut(u16, &[u8]) -> io::Result<()>,
    ) -> bool {
        for m in messages(datagram) {
            let m = match m {
                Ok(m) => m,
                Err(e) => {
                    self.failed.get_or_insert(e);
                    return false;
                }
            };
            if m.sequence != self.sequence {
                continue;
            }
            self.interrupted |= m.flags & NLM_F_DUMP_INTR != 0;
            let read = match m.kind {
                DONE | ERROR => {
                    self.failed = self.failed.take().or_else(|| m.error());
                    return true;
                }
                NOOP => Ok(()),
                OVERRUN => Err(malformed("answers were lost")),
                kind if self.failed.is_none() => each(kind, m.body),
                _ => Ok(()),
            };
            if let Err(e) = read {
                self.failed.get_or_insert(e);
            }
        }
        false
    }

    fn end(self) -> io::Result<DumpEnd> {
        match self.failed {
            Some(e) => Err(e),
            None if self.interrupted => Ok(DumpEnd::Interrupted),
            None => Ok(DumpEnd::Whole),
        }
    }
}

/// The value of the first attribute of this kind; nothing if there is none.
pub fn attribute(mut attributes: &[u8], kind: u16) -> &[u8] {
    const FLAGS: u16 = 0xc000;
    while let [a, b, c, d, ..] = *attributes {
        let (length, own) =
            (usize::from(u16::from_ne_bytes([a, b])), u16::from_ne_bytes([c, d]) & !FLAGS);
        match attributes.get(4..length) {
            Some(value) if own == kind => return value,
            Some(_) => attributes = attributes.get(length.next_multiple_of(4)..).unwrap_or(&[]),
            None => break,
        }
    }
    &[]
}

/// Receives the answers to the dump that was asked for with this sequence number, all up to its
/// end. `receive` fills the buffer with one datagram and gives its length; it must not wait when it
/// is asked not to. `read` makes something of an answer's kind and body.
///
/// # Errors
/// What the kernel refused, an answer that cannot be read, or a socket that fails.
pub fn gather<T>(
    buffer: &mut [u8],
    sequence: u32,
    mut receive: impl FnMut(&mut [u8], bool) -> io::Result<usize>,
    mut read: impl FnMut(u16, &[u8]) -> io::Result<Option<T>>,
) -> io::Result<(DumpEnd, Vec<T>)> {
    let mut dump = Dump { sequence, interrupted: false, failed: None };
    let (mut all, mut overrun) = (vec![], false);
    loop {
        // The end may be in what was lost or could not be read: only what is there already is
        // received then.
        let got = match receive(buffer, overrun || dump.failed.is_some()) {
            Ok(got) => got,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) => {
                (overrun, dump.interrupted) = (true, true);
                continue;
            }
            Err(_) if overrun && dump.failed.is_none() => {
                return dump.end().map(|ended| (ended, all));
            }
            Err(e) => return Err(dump.failed.unwrap_or(e)),
        };
        let datagram =
            buffer.get(..got).ok_or_else(|| malformed("it is longer than the buffer"))?;
        let over = dump.take(datagram, |kind, body| {
            all.extend(read(kind, body)?);
            Ok(())
        });
        if over {
            return dump.end().map(|ended| (ended, all));
        }
    }
}

/// Receives from a socket, as [`gather`] asks for it.
pub fn from(socket: &Socket) -> impl FnMut(&mut [u8], bool) -> io::Result<usize> + '_ {
    |buffer, no_wait| socket.recv(&mut &mut *buffer, if no_wait { libc::MSG_DONTWAIT } else { 0 })
}

/// Dumps that are asked for in a row while the list keeps changing.
pub const TRIES: usize = 5;

/// The error when the list changed during each of [`TRIES`] dumps.
pub fn restless() -> io::Error {
    io::Error::other(format!("the list changed while the kernel made it, {TRIES} times in a row"))
}

/// Takes the answers in one datagram to the `n` messages whose sequence numbers begin at `start`:
/// gives whether the last message has its answer, and passes the place and the reason of every
/// refusal.
///
/// # Errors
/// When the datagram cannot be read.
pub fn acknowledged(
    datagram: &[u8],
    start: u32,
    n: usize,
    mut refused: impl FnMut(usize, io::Error),
) -> io::Result<bool> {
    let mut last = false;
    for m in messages(datagram) {
        let m = m?;
        let place = m.sequence.wrapping_sub(start) as usize;
        if m.kind == ERROR && place < n {
            last |= place + 1 == n;
            if let Some(why) = m.error() {
                refused(place, why);
            }
        }
    }
    Ok(last)
}

#[cfg(test)]
mod tests;
