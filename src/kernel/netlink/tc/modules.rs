//! Queues that are modules of their own, which not every kernel has: netem delays and loses
//! packets, RED marks them.

use netlink_packet_core::DefaultNla;
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::tc::TcAttribute;

use super::{base, raw};
use crate::topology::links::Loss;
use crate::units::Span;

/// Nanoseconds of the kernel's tick.
const TICK: u64 = 64;
/// Packets that netem holds: more than a second of short ones.
const PACKETS: u32 = 1_000_000;

/// A netem of this handle under a parent: every packet waits for `delay`, and of a million it loses
/// as many as `loss` says.
pub fn netem(link: u32, (parent, own): (u32, u32), delay: Span, loss: Loss) -> Message {
    let mut m = base(link, parent, own, "netem");
    // struct tc_netem_qopt: latency, limit, loss of 2^32, gap, duplicate, jitter. It is the
    // attribute itself, not a nest.
    let lost = (((u64::from(loss.0) << 32) + 500_000) / 1_000_000) as u32;
    let latency = u32::try_from(delay.0 / TICK).unwrap_or(u32::MAX);
    let parms = [latency, PACKETS, lost, 0, 0, 0];
    m.attributes.push(TcAttribute::Other(DefaultNla::new(
        2,
        parms.iter().flat_map(|v| v.to_ne_bytes()).collect(),
    )));
    Message::NewQueueDiscipline(m)
}

/// A RED of this handle under a parent, which holds at most `limit` bytes and marks every packet
/// that finds more than `from` in it, as DCTCP wants its switches to. What cannot be marked waits
/// like all others.
pub fn red(link: u32, (parent, own): (u32, u32), limit: u32, from: u32) -> Message {
    let mut m = base(link, parent, own, "red");
    // struct tc_red_qopt. A weight of 2^0: the average queue is the queue itself. Between the two
    // thresholds, a byte apart, packets are marked by chance, and above the second all of them.
    let mut parms: Vec<u8> = [limit, from, from + 1].iter().flat_map(|v| v.to_ne_bytes()).collect();
    parms.extend([0, 0, 0, 0]);
    // After any pause the average is zero: shifted right by 31.
    const STAB: [u8; 256] = [31; 256];
    const ECN_AND_NODROP: u32 = 1 | 8;
    let flags = [ECN_AND_NODROP, ECN_AND_NODROP].iter().flat_map(|v| v.to_ne_bytes()).collect();
    let options = vec![
        raw(1, parms),
        raw(2, STAB.to_vec()),
        raw(3, u32::MAX.to_ne_bytes().to_vec()),
        raw(4, flags),
    ];
    m.attributes.push(TcAttribute::Options(options));
    Message::NewQueueDiscipline(m)
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::Emitable as _;

    use super::*;

    fn options(m: &Message) -> Vec<u8> {
        let Message::NewQueueDiscipline(q) = m else { panic!("not a queue") };
        let last = q.attributes.last().expect("options");
        let mut bytes = vec![0; last.buffer_len()];
        last.emit(&mut bytes);
        bytes
    }

    /// What `tc qdisc add dev v0 parent 1:1 handle 2001: netem delay 10ms loss 1% limit 1000000`
    /// sent, by strace.
    #[test]
    fn netem_is_what_iproute2_sends() {
        let tc =
            b"\x1c\0\x02\0\x5a\x62\x02\x00\x40\x42\x0f\x00\x29\x5c\x8f\x02\0\0\0\0\0\0\0\0\0\0\0\0";
        assert_eq!(options(&netem(2, (0x1_0001, 0x2001_0000), Span::millis(10), Loss(10_000))), tc);
    }

    /// The places of all fields as in what `tc qdisc add ... red limit 400000 min 30000 max 30001
    /// ... ecn nodrop probability 1` sent; its weight and table, which say how slowly the average
    /// follows the queue, are others.
    #[test]
    fn red_has_its_fields_where_iproute2_has_them() {
        let sent = options(&red(2, (0x1_0001, 0x1001_0000), 400_000, 30_000));
        assert_eq!(sent[..4], [48, 1, 2, 0][..]);
        assert_eq!(sent[4..24], *b"\x14\0\x01\0\x80\x1a\x06\0\x30\x75\0\0\x31\x75\0\0\0\0\0\0");
        assert_eq!(
            (&sent[24..28], sent[28..284].iter().all(|&b| b == 31)),
            (&b"\x04\x01\x02\0"[..], true)
        );
        assert_eq!(sent[284..], *b"\x08\0\x03\0\xff\xff\xff\xff\x0c\0\x04\0\x09\0\0\0\x09\0\0\0");
    }
}
