//! Bytes that the racks' links to the packet network have carried, from the kernel's counters at
//! the far ends, behind the queues of both.
//!
//! `/proc/net/dev` of a switch's namespace has all its ports in one read, without a lock that
//! packets wait for.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use crate::fabric::Uplink;
use crate::netns;
use crate::network::EmulatedNetwork;

/// Ethernet, IPv4 and TCP headers with timestamps. The kernel counts one set a packet, however many
/// segments it is cut into on a wire.
const HEADERS: u64 = 14 + 20 + 32;
/// Shortest time between two readings, for each file: a reading takes about a microsecond a port.
const PAUSE: Duration = Duration::from_millis(2);
/// Bytes of a line, and of the two lines above all others, at most.
const LINE: usize = 256;

/// Counters of a direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct UplinkCounters {
    bytes: u64,
    packets: u64,
}

/// The counters of all racks' links.
pub struct Uplinks {
    /// By switch with racks: its namespace's file.
    files: Vec<File>,
    buffer: Vec<u8>,
    read_at: Option<Instant>,
    /// By rack: the last reading, upwards and downwards.
    last: Vec<[UplinkCounters; 2]>,
    total: Vec<Uplink>,
}

impl Uplinks {
    /// Opens the files; what was carried before does not count.
    ///
    /// # Errors
    /// A namespace that cannot be entered, or no descriptors.
    pub fn open(net: &EmulatedNetwork) -> io::Result<Self> {
        let racks = net.topology.rack_count();
        let with_racks = net.eps.iter().filter(|s| !s.racks.is_empty());
        let files = with_racks
            .map(|s| netns::within(s.node.ns.as_fd(), || File::open("/proc/thread-self/net/dev")));
        let most = net.eps.iter().map(|s| s.links().count() + 4).max().unwrap_or(0) * LINE;
        let (last, total) = (vec![Default::default(); racks], vec![Uplink::default(); racks]);
        let mut new = Self {
            files: files.collect::<io::Result<_>>()?,
            buffer: vec![0; most],
            read_at: None,
            last,
            total,
        };
        new.read();
        new.total.fill(Uplink::default());
        Ok(new)
    }

    /// Payload since the network was set up, by rack, at most 2 ms for every switch ago. O(ports of
    /// switches with racks).
    pub fn newest(&mut self) -> &[Uplink] {
        if self.read_at.is_none_or(|t| t.elapsed() >= PAUSE * self.files.len() as u32) {
            self.read();
        }
        &self.total
    }

    fn read(&mut self) {
        self.read_at = Some(Instant::now());
        for file in &self.files {
            // A port that cannot be read counts as unchanged.
            let mut end = 0;
            while let Ok(n) = file.read_at(&mut self.buffer[end..], end as u64) {
                end += n;
                if n == 0 || end == self.buffer.len() {
                    break;
                }
            }
            for (rack, now) in self.buffer[..end].split(|&b| b == b'\n').filter_map(port) {
                let Some((last, total)) = self.last.get_mut(rack).zip(self.total.get_mut(rack))
                else {
                    continue;
                };
                let [up, down] = std::array::from_fn(|way| grown(last[way], now[way]));
                *total = Uplink {
                    up: total.up.saturating_add(up),
                    down: total.down.saturating_add(down),
                };
                *last = now;
            }
        }
    }
}

/// Payload between two readings. A link that was made again counts from zero.
fn grown(before: UplinkCounters, now: UplinkCounters) -> u64 {
    let before = if now.bytes < before.bytes || now.packets < before.packets {
        UplinkCounters::default()
    } else {
        before
    };
    (now.bytes - before.bytes)
        .saturating_sub((now.packets - before.packets).saturating_mul(HEADERS))
}

/// The rack of a line, and what its switch's port received and sent.
fn port(line: &[u8]) -> Option<(usize, [UplinkCounters; 2])> {
    let (name, counters) = std::str::from_utf8(line).ok()?.split_once(':')?;
    let rack = name.trim_start().strip_prefix("tor")?.parse().ok()?;
    let all: Vec<u64> =
        counters.split_ascii_whitespace().map(|n| n.parse().ok()).collect::<Option<_>>()?;
    let count = |k: usize| Some(UplinkCounters { bytes: *all.get(k)?, packets: *all.get(k + 1)? });
    Some((rack, [count(0)?, count(8)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernel_is_read() {
        let line = b"  tor3: 1000 10 0 0 0 0 0 0 3000 30 0 0 0 0 0 0";
        assert_eq!(
            port(line),
            Some((
                3,
                [
                    UplinkCounters { bytes: 1000, packets: 10 },
                    UplinkCounters { bytes: 3000, packets: 30 }
                ]
            ))
        );
        for other in [
            "    lo: 1 2 3 4 5 6 7 8 9 10",
            "torx: 1 2",
            "tor3: 1 2 3",
            "tor3: 1 2 3 4 5 6 7 8 9 x",
            "cable3: 1 2",
            "no colon",
            "",
        ] {
            assert_eq!(port(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn headers_count_for_nothing_and_a_link_that_was_made_again_counts_from_zero() {
        let count = |bytes, packets| UplinkCounters { bytes, packets };
        assert_eq!(grown(count(1000, 1), count(1000 + 1448 + HEADERS, 2)), 1448);
        assert_eq!(grown(count(1000, 1), count(1000 + HEADERS, 2)), 0, "an acknowledgement");
        assert_eq!(grown(count(1_000_000, 900), count(500 + HEADERS, 1)), 500);
    }

    proptest::proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn no_line_panics(line in proptest::collection::vec(proptest::num::u8::ANY, 0..80)) {
            let _ = port(&line);
        }
    }
}
