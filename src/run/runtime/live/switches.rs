//! The counters of packet switches and of queues by priority, read now and then between two cycles.

use std::sync::Arc;

use crate::control::record::{QueuesSeen, SwitchesSeen};
use crate::fabric::{Fabric, PortQueueCounters, SwitchCounters, low_gained};
use crate::units::{BitRate, Span, Time};

/// Shortest time between two readings of the counters.
const EVERY: Span = Span::millis(1000);
/// Longest time between two readings, even where one takes longer than there is between two cycles.
const AT_LEAST: Span = Span::millis(10_000);

/// Reads the counters of switches and queues.
#[derive(Debug, Default)]
pub(super) struct SwitchesReader {
    queues: QueuesReader,
    /// The kernel's numbers at the last reading.
    raw: Vec<SwitchCounters>,
    seen: Option<Arc<SwitchesSeen>>,
    /// When it was last tried, and how long that took.
    tried: Option<Time>,
    cost: Span,
}

impl SwitchesReader {
    /// What was read last; `None` where links are not counted.
    pub(super) fn seen(&self) -> Option<Arc<SwitchesSeen>> {
        self.seen.clone()
    }

    /// What was read last of queues; `None` where no port serves strict priorities.
    pub(super) fn queues(&self) -> Option<Arc<QueuesSeen>> {
        self.queues.seen.clone()
    }

    /// Reads the counters if that is due and there is time for it until the `next` cycle. O(ports).
    pub(super) fn read<F: Fabric>(
        &mut self,
        fabric: &mut F,
        now: impl Fn() -> Time,
        next: Option<Time>,
    ) {
        let begun = now();
        let fits = next.is_none_or(|t| begun + self.cost * 2 < t);
        if self.tried.is_some_and(|t| begun.since(t) < if fits { EVERY } else { AT_LEAST }) {
            return;
        }
        self.tried = Some(begun);
        match fabric.switches() {
            Ok(raw) if raw.is_empty() => {}
            Ok(raw) => self.take(raw, begun),
            // What is gone is what the next observation fails for, and tells.
            Err(why) => tracing::debug!("{why}"),
        }
        match fabric.queues() {
            Ok(raw) if raw.is_empty() => {}
            Ok(raw) => self.queues.take(raw, begun),
            Err(why) => tracing::debug!("{why}"),
        }
        self.cost = now().since(begun);
    }

    /// Adds what was gained since the last reading.
    fn take(&mut self, raw: Vec<SwitchCounters>, at: Time) {
        let mut switches = raw.clone();
        let mut rates: Vec<Vec<BitRate>> =
            raw.iter().map(|s| vec![BitRate(0); s.ports.len()]).collect();
        if let Some(last) = &self.seen {
            let took = at.since(last.at).0.max(1);
            for (k, s) in switches.iter_mut().enumerate() {
                let (before, sums) = (&self.raw[k], &last.switches[k]);
                for (i, port) in s.ports.iter_mut().enumerate() {
                    let (was, sum) = (&before.ports[i], &sums.ports[i]);
                    let [bytes, packets, drops] = gained(
                        [port.bytes, port.packets, port.drops],
                        [was.bytes, was.packets, was.drops],
                    );
                    rates[k][i] =
                        BitRate((u128::from(bytes) * 8_000_000_000 / u128::from(took)) as u64);
                    (port.bytes, port.packets, port.drops) =
                        (sum.bytes + bytes, sum.packets + packets, sum.drops + drops);
                }
            }
        }
        self.raw = raw;
        self.seen = Some(Arc::new(SwitchesSeen { at, switches, rates }));
    }
}

/// The counters of queues.
#[derive(Debug, Default)]
struct QueuesReader {
    /// The kernel's numbers at the last reading.
    raw: Vec<PortQueueCounters>,
    seen: Option<Arc<QueuesSeen>>,
}

impl QueuesReader {
    /// Adds what was gained since the last reading.
    fn take(&mut self, raw: Vec<PortQueueCounters>, at: Time) {
        let mut ports = raw.clone();
        if let Some(last) = &self.seen {
            let sums = last.ports.iter().flat_map(|p| &p.queues);
            let before = self.raw.iter().flat_map(|p| &p.queues).zip(sums);
            for (q, (before, sum)) in ports.iter_mut().flat_map(|p| &mut p.queues).zip(before) {
                let [bytes, packets, drops] = gained(
                    [q.bytes, q.packets, q.drops],
                    [before.bytes, before.packets, before.drops],
                );
                (q.bytes, q.packets, q.drops) =
                    (sum.bytes + bytes, sum.packets + packets, sum.drops + drops);
            }
        }
        self.raw = raw;
        self.seen = Some(Arc::new(QueuesSeen { at, ports }));
    }
}

/// Bytes, packets and drops that a queue gained between two readings. Bytes fall only where the
/// queue was written again, and then it counts from zero.
fn gained(now: [u64; 3], before: [u64; 3]) -> [u64; 3] {
    if now[0] < before[0] {
        return now;
    }
    [now[0] - before[0], low_gained(now[1], before[1]), low_gained(now[2], before[2])]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::{PortTo, QueueCounters, SwitchPort};
    use crate::ids::RackId;

    fn counters(bytes: u64, packets: u32, drops: u32) -> Vec<SwitchCounters> {
        let (packets, drops) = (packets.into(), drops.into());
        let port = SwitchPort {
            to: PortTo::Rack(RackId(0)),
            rate: BitRate::mbit(10),
            bytes,
            packets,
            drops,
            backlog: 7,
        };
        vec![SwitchCounters { switch: 0, strays: 0, ports: vec![port] }]
    }

    #[test]
    fn queues_go_on_where_the_kernels_numbers_begin_again() {
        let port = |bytes, packets: u32, drops: u32| {
            let of = |priority| QueueCounters {
                priority,
                bytes,
                packets: packets.into(),
                drops: drops.into(),
                backlog: 3,
            };
            let queues = [None, Some(0), Some(7)].map(of).to_vec();
            vec![PortQueueCounters {
                node: "h0-0".into(),
                port: "eth0".into(),
                to: "tor0".into(),
                rate: BitRate::mbit(10),
                queues,
            }]
        };
        let mut q = QueuesReader::default();
        q.take(port(10, u32::MAX - 1, 5), Time(1));
        q.take(port(20, 3, 5), Time(2));
        q.take(port(30, 4, 6), Time(3));
        let last = |q: &QueuesReader| q.seen.as_ref().unwrap().ports[0].queues[2];
        let all = |q: QueueCounters| (q.bytes, q.packets, q.drops, q.backlog);
        assert_eq!(all(last(&q)), (30, u64::from(u32::MAX) + 5, 6, 3));
        // Another process removed the queue, and it was written again.
        q.take(port(12, 2, 0), Time(4));
        assert_eq!(all(last(&q)), (42, u64::from(u32::MAX) + 7, 6, 3));
    }

    #[test]
    fn rates_are_of_the_last_two_readings_and_numbers_never_begin_again() {
        let mut r = SwitchesReader::default();
        r.take(counters(1_000, u32::MAX - 1, u32::MAX), Time(5));
        let first = r.seen().unwrap();
        assert_eq!(
            (first.rates[0][0], first.switches[0].ports[0].packets),
            (BitRate(0), u64::from(u32::MAX) - 1)
        );
        r.take(counters(251_000, 3, 0), Time(2_000_000_005));
        let port = r.seen().unwrap().switches[0].ports[0];
        assert_eq!(r.seen().unwrap().rates[0][0], BitRate(1_000_000), "250 kB in two seconds");
        assert_eq!(
            (port.packets, port.drops, port.backlog),
            (u64::from(u32::MAX) + 4, u64::from(u32::MAX) + 1, 7)
        );
        r.take(counters(251_000, 3, 0), Time(3_000_000_005));
        assert_eq!(
            (r.seen().unwrap().rates[0][0], r.seen().unwrap().switches[0].ports[0]),
            (BitRate(0), port)
        );
        r.take(counters(125_000, 1, 1), Time(4_000_000_005));
        let again = r.seen().unwrap().switches[0].ports[0];
        assert_eq!(
            r.seen().unwrap().rates[0][0],
            BitRate(1_000_000),
            "a port that was written again counts from zero"
        );
        assert_eq!(
            (again.bytes, again.packets, again.drops),
            (376_000, port.packets + 1, port.drops + 1)
        );
    }
}
