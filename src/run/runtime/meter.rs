//! What the links of a live network carry over time, from the counters that the controller reads in
//! every cycle.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::fabric::meter::{Buckets, Utilisation, links};
use crate::fabric::{Observation, Uplink};
use crate::ids::RackId;
use crate::topology::Topology;
use crate::units::{Span, Time};

/// Buckets of a live run, which may last for days: finer than those of a result, which is of a part
/// of it.
const MOST: usize = 2048;
/// The first length of a bucket, where cycles are not longer.
const SHORTEST: Span = Span::millis(10);

/// What the links have carried since the start; other threads ask for it while the controller's
/// thread adds to it.
#[derive(Clone)]
pub struct LinkMeter(Arc<Mutex<LinkTotals>>);

struct LinkTotals {
    /// The clock's reading at the start, from which the times below are counted.
    zero: Time,
    racks: usize,
    /// How far apart the counters are read.
    interval: Span,
    buckets: Buckets,
    /// When the counters were read last, and by link what they showed.
    read: (Time, Vec<u64>),
}

impl LinkMeter {
    /// Of a network that starts at `zero`, and whose counters are read once an `interval`.
    pub fn new(t: &Topology, interval: Span, zero: Time) -> Self {
        // No background traffic is made in a live network.
        let all = links(t, |r| t.payload(t.racks[r].uplink).0);
        let read = (Time::ZERO, vec![0; all.len()]);
        Self(Arc::new(Mutex::new(LinkTotals {
            zero,
            racks: t.rack_count(),
            interval,
            buckets: Buckets::new(MOST, interval.max(SHORTEST), all),
            read,
        })))
    }

    /// Takes in what the fabric saw, and what the racks' links to the EPS carried by `now` where
    /// that is counted by itself. Between two looks bytes count as evenly spread, so that one look
    /// may be left out while another thread reads: the control loop never waits for it. O(racks x
    /// racks).
    pub fn look(&self, now: Time, seen: &Observation, uplinks: Option<&[Uplink]>) {
        let here = if uplinks.is_some() { now } else { seen.at };
        let now = totals(seen, uplinks);
        let Some(mut inner) = self.0.try_lock() else { return };
        let here = Time(here.since(inner.zero).0);
        let (at, before) = std::mem::take(&mut inner.read);
        // Counters only grow, except where another process has removed what counts.
        let now: Vec<u64> = now
            .into_iter()
            .zip(before.iter().chain(std::iter::repeat(&0)))
            .map(|(n, b)| n.max(*b))
            .collect();
        while inner.buckets.edge() <= here {
            let (part, whole) = (inner.buckets.edge().since(at).0, here.since(at).0.max(1));
            let then = before.iter().zip(&now).map(|(b, n)| {
                b + (u128::from(n - b) * u128::from(part) / u128::from(whole)) as u64
            });
            inner.buckets.read(then);
        }
        inner.read = (here, now);
    }

    /// When the counters were read last, and what each rack's link had carried by then. O(racks).
    pub fn uplinks(&self) -> (Time, Vec<Uplink>) {
        let inner = self.0.lock();
        let (at, all) = &inner.read;
        let links = all.chunks_exact(2).take(inner.racks).map(|l| Uplink { up: l[0], down: l[1] });
        (inner.zero + Span(at.0), links.collect())
    }

    /// From `from` on until the last look, and the instant that is the zero of its times: `from`,
    /// as far as the meter ran then. O(links x buckets).
    pub fn since(&self, from: Time) -> (Time, Utilisation) {
        let (buckets, (at, totals), interval, zero) = {
            let inner = self.0.lock();
            (inner.buckets.clone(), inner.read.clone(), inner.interval, inner.zero)
        };
        let from = Time(from.since(zero).0).min(at);
        (zero + Span(from.0), buckets.finish(totals, at).since(from, interval))
    }
}

/// What each link has carried: racks' links to the EPS, up and down, then planes.
fn totals(seen: &Observation, uplinks: Option<&[Uplink]>) -> Vec<u64> {
    let eps: Vec<Uplink> = uplinks.map_or_else(|| over_eps(seen), <[Uplink]>::to_vec);
    let planes = seen.ports.iter().map(|ports| ports.iter().map(|p| p.crossed_bytes).sum());
    eps.into_iter().flat_map(|l| [l.up, l.down]).chain(planes).collect()
}

/// By rack: bytes between racks that were sent and did not go over a circuit. O(racks x racks).
fn over_eps(seen: &Observation) -> Vec<Uplink> {
    let racks = seen.sent.racks();
    let mut all = vec![Uplink::default(); racks];
    for (from, to) in
        (0..racks).flat_map(|f| (0..racks).map(move |t| (f, t))).filter(|(f, t)| f != t)
    {
        let pair = (RackId::from(from), RackId::from(to));
        let over_eps =
            seen.sent.get(pair.0, pair.1).saturating_sub(seen.over_ocs.get(pair.0, pair.1));
        all[from].up += over_eps;
        all[to].down += over_eps;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demand::DemandMatrix;
    use crate::fabric::PortCounters;
    use crate::ids::PlaneId;
    use crate::plan::Programmed;
    use crate::topology::{Plane, StopMode};
    use crate::units::BitRate;

    fn seen(at: u64, sent: u64, over: u64) -> Observation {
        let matrix = |v: u64| DemandMatrix::from_rows(&[&[7, v], &[0, 0]]);
        Observation {
            at: Time(at),
            programmed: Programmed::default(),
            sent: matrix(sent),
            over_ocs: matrix(over),
            backlog: matrix(0),
            held: None,
            flows: None,
            elephants: None,
            ports: vec![vec![
                PortCounters { crossed_bytes: over, ..PortCounters::default() },
                PortCounters::default(),
            ]],
            damage: vec![],
        }
    }

    #[test]
    fn links_are_told_apart_and_times_are_cut() {
        let plane = Plane {
            id: PlaneId(0),
            rate: BitRate::mbit(100),
            delta: Span(1),
            stop: StopMode::NotAllStop,
            duplex: false,
        };
        let t = Topology::uniform("t", 2, 2, BitRate::mbit(10), BitRate::mbit(10), vec![plane]);
        let m = LinkMeter::new(&t, Span::millis(10), Time::ZERO);
        assert_eq!(m.since(Time::ZERO).1.until, Time::ZERO);
        m.look(Time::ZERO, &seen(5_000_000, 300, 100), None);
        m.look(Time::ZERO, &seen(25_000_000, 700, 300), None);
        // Counters that were set back count for nothing.
        m.look(Time::ZERO, &seen(30_000_000, 600, 0), None);
        let u = m.since(Time::ZERO).1;
        let names: Vec<(&str, &[u64])> =
            u.links.iter().map(|l| (l.name.as_str(), &l.bytes[..])).collect();
        // 200 by 5 ms, of the next 200 a quarter by 10 ms and three quarters by 20 ms; of the
        // circuits' alike.
        let eps: &[u64] = &[250, 100, 50 + 200];
        assert_eq!(names[0].0, "r0.up");
        assert_eq!(
            names[1..],
            [
                ("r0.down", &[0, 0, 0][..]),
                ("r1.up", &[0, 0, 0]),
                ("r1.down", names[0].1),
                ("ocs0", &[150, 100, 50])
            ]
        );
        assert_eq!(
            (u.bucket, u.until, names[0].1[..2].to_vec()),
            (Span::millis(10), Time(30_000_000), eps[..2].to_vec())
        );
        // All since the last reading before: of the second bucket on.
        let rest = m.since(Time(20_000_000)).1;
        assert_eq!((rest.until, rest.links[4].bytes.as_slice()), (Time(10_000_000), &[150u64][..]));
    }

    #[test]
    fn what_is_counted_behind_the_queues_goes_before_what_was_sent() {
        let t = Topology::uniform("t", 2, 2, BitRate::mbit(10), BitRate::mbit(10), vec![]);
        let m = LinkMeter::new(&t, Span::millis(10), Time(5));
        let link = |up, down| Uplink { up, down };
        m.look(Time(10_000_005), &seen(9_000_000, 900, 0), Some(&[link(300, 1), link(0, 200)]));
        let u = m.since(Time(5)).1;
        assert_eq!(
            u.links.iter().map(|l| l.bytes.clone()).collect::<Vec<_>>(),
            [[300], [1], [0], [200]]
        );
        assert_eq!(m.uplinks(), (Time(10_000_005), vec![link(300, 1), link(0, 200)]));
    }

    #[test]
    fn a_clock_that_goes_on_from_an_earlier_daemon_makes_no_longer_buckets() {
        let t = Topology::uniform("t", 2, 2, BitRate::mbit(10), BitRate::mbit(10), vec![]);
        let day = 86_400_000_000_000;
        let m = LinkMeter::new(&t, Span::millis(10), Time(day));
        m.look(Time::ZERO, &seen(day + 30_000_000, 300, 0), None);
        let (zero, u) = m.since(Time(day));
        assert_eq!((zero, m.since(Time(day + 10_000_000)).0), (Time(day), Time(day + 10_000_000)));
        assert_eq!(m.since(Time::ZERO), (Time(day), u.clone()), "before it ran");
        assert_eq!(m.since(Time(u64::MAX)).0, Time(day + 30_000_000), "after its last look");
        assert_eq!(
            (u.bucket, u.until, u.links[0].bytes.as_slice()),
            (Span::millis(10), Time(30_000_000), &[100u64, 100, 100][..])
        );
    }
}
