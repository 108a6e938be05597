//! The counters of packet switches, read now and then between two cycles.

use std::sync::Arc;

use crate::control::record::SwitchesSeen;
use crate::fabric::{Fabric, SwitchCounters, SwitchPort};
use crate::units::{BitRate, Span, Time};

/// Counters are read at most so often.
const EVERY: Span = Span::millis(1000);
/// And at least so often, even where a reading takes longer than there is time between two cycles.
const AT_LEAST: Span = Span::millis(10_000);

/// Reads the counters of switches.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// The kernel's numbers at the last reading.
    raw: Vec<SwitchCounters>,
    seen: Option<Arc<SwitchesSeen>>,
    /// When it was last tried, and how long that took.
    tried: Option<Time>,
    cost: Span,
}

impl Reader {
    /// What was read last; `None` where links are not counted.
    pub(super) fn seen(&self) -> Option<Arc<SwitchesSeen>> {
        self.seen.clone()
    }

    /// Reads the counters if that is due and there is time for it until the `next` cycle. O(ports).
    pub(super) fn read<F: Fabric>(&mut self, fabric: &mut F, now: impl Fn() -> Time, next: Option<Time>) {
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
        self.cost = now().since(begun);
    }

    /// Adds what was gained since the last reading.
    fn take(&mut self, raw: Vec<SwitchCounters>, at: Time) {
        let mut switches = raw.clone();
        let mut rates: Vec<Vec<BitRate>> = raw.iter().map(|s| vec![BitRate(0); s.ports.len()]).collect();
        if let Some(last) = &self.seen {
            let took = at.since(last.at).0.max(1);
            for (k, s) in switches.iter_mut().enumerate() {
                let (before, sums) = (&self.raw[k], &last.switches[k]);
                for (i, port) in s.ports.iter_mut().enumerate() {
                    let gained = gained(port, &before.ports[i]);
                    rates[k][i] = BitRate((u128::from(gained.bytes) * 8_000_000_000 / u128::from(took)) as u64);
                    port.packets = sums.ports[i].packets + gained.packets;
                    port.drops = sums.ports[i].drops + gained.drops;
                }
            }
        }
        self.raw = raw;
        self.seen = Some(Arc::new(SwitchesSeen { at, switches, rates }));
    }
}

/// What a port gained between two readings. Packets and drops are 32-bit numbers, which begin again from zero.
fn gained(now: &SwitchPort, before: &SwitchPort) -> SwitchPort {
    let low = |a: u64, b: u64| u64::from((a as u32).wrapping_sub(b as u32));
    SwitchPort {
        bytes: now.bytes.saturating_sub(before.bytes),
        packets: low(now.packets, before.packets),
        drops: low(now.drops, before.drops),
        ..*now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::PortTo;
    use crate::ids::RackId;

    fn counters(bytes: u64, packets: u32, drops: u32) -> Vec<SwitchCounters> {
        let (packets, drops) = (packets.into(), drops.into());
        let port = SwitchPort { to: PortTo::Rack(RackId(0)), rate: BitRate::mbit(10), bytes, packets, drops, backlog: 7 };
        vec![SwitchCounters { switch: 0, strays: 0, ports: vec![port] }]
    }

    #[test]
    fn rates_are_of_the_last_two_readings_and_numbers_never_begin_again() {
        let mut r = Reader::default();
        r.take(counters(1_000, u32::MAX - 1, u32::MAX), Time(5));
        let first = r.seen().unwrap();
        assert_eq!((first.rates[0][0], first.switches[0].ports[0].packets), (BitRate(0), u64::from(u32::MAX) - 1));
        r.take(counters(251_000, 3, 0), Time(2_000_000_005));
        let port = r.seen().unwrap().switches[0].ports[0];
        assert_eq!(r.seen().unwrap().rates[0][0], BitRate(1_000_000), "250 kB in two seconds");
        assert_eq!((port.packets, port.drops, port.backlog), (u64::from(u32::MAX) + 4, u64::from(u32::MAX) + 1, 7));
        r.take(counters(251_000, 3, 0), Time(3_000_000_005));
        assert_eq!((r.seen().unwrap().rates[0][0], r.seen().unwrap().switches[0].ports[0]), (BitRate(0), port));
    }
}
