//! What links carry over time: whole bytes in buckets of equal length.
//!
//! The counters behind it are exact and cumulative, and are read at the end of every bucket, so the bytes of a link's buckets sum up
//! to what it carried. When all buckets are full, neighbours become one and the next ones are twice as long: a run of any length
//! takes the memory of [`BUCKETS`] numbers a link.

use serde::{Deserialize, Serialize};

use super::bundle::{Route, bytes};
use super::links::Links;
use crate::ids::RackId;
use crate::topology::Topology;
use crate::units::{BitRate, Span, Time};

/// A run never has more buckets than this. Even.
pub const BUCKETS: usize = 256;

/// What links carried over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Utilisation {
    /// Length of every bucket but the last; the first begins at zero.
    #[serde(rename = "bucket_ns")]
    pub bucket: Span,
    /// Where the last one ends.
    #[serde(rename = "until_ns")]
    pub until: Time,
    /// First what stays within racks (`local`), if any rack has several hosts; then every rack's link to the EPS, up and down
    /// (`r0.up`, `r0.down`), and every plane with all its ports together (`ocs0`).
    pub links: Vec<Carried>,
}

/// What one link, or several together, carried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// Its name.
    pub name: String,
    /// What it can carry when all is well, in bits of payload per second; background traffic is taken off.
    #[serde(rename = "rate_bps")]
    pub rate: BitRate,
    /// Payload by bucket.
    pub bytes: Vec<u64>,
}

/// Cumulative counters, in units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Within racks.
    pub local: u128,
    /// By rack: over its link to the EPS.
    pub up: Vec<u128>,
    /// The same, from there.
    pub down: Vec<u128>,
    /// By plane.
    pub planes: Vec<u128>,
}

impl Totals {
    /// Totals of zero.
    pub fn new(topology: &Topology) -> Self {
        let zero = vec![0; topology.rack_count()];
        Self { local: 0, up: zero.clone(), down: zero, planes: vec![0; topology.planes.len()] }
    }

    /// Adds `units` that went from rack to rack by this route.
    pub fn count(&mut self, racks: (RackId, RackId), route: Route, units: u128) {
        match route {
            Route::Local => self.local += units,
            Route::Eps | Route::List(_) | Route::Wait => {
                self.up[racks.0.index()] += units;
                self.down[racks.1.index()] += units;
            }
            Route::Ocs(plane) => self.planes[plane.index()] += units,
        }
    }

    /// The sum of both.
    pub fn plus(mut self, other: &Self) -> Self {
        let lists = [(&mut self.up, &other.up), (&mut self.down, &other.down), (&mut self.planes, &other.planes)];
        lists.into_iter().for_each(|(to, from)| to.iter_mut().zip(from).for_each(|(to, from)| *to += from));
        self.local += other.local;
        self
    }

    /// All totals, in the order in which [`Meter`] names them.
    fn each(&self) -> impl Iterator<Item = u128> + '_ {
        let racks = self.up.iter().zip(&self.down).flat_map(|(&up, &down)| [up, down]);
        std::iter::once(self.local).chain(racks).chain(self.planes.iter().copied())
    }
}

/// Reads counters at the end of every bucket.
#[derive(Debug)]
pub struct Meter {
    bucket: Span,
    /// End of the bucket that is being filled.
    edge: Time,
    /// By link: whole bytes at the beginning of that bucket.
    before: Vec<u64>,
    links: Vec<Carried>,
}

impl Meter {
    /// Buckets of `bucket` to begin with, one nanosecond at least.
    pub fn new(bucket: Span, links: &Links) -> Self {
        let t = links.topology();
        let named = |name: String, rate: u64| Carried { name, rate: BitRate(rate), bytes: Vec::new() };
        let nics = t.hosts.iter().map(|h| t.payload(h.nic).0).fold(0, u64::saturating_add);
        let mut list = vec![named("local".into(), nics)];
        for r in &t.racks {
            let rate = links.uplink(r.id);
            list.extend([named(format!("r{}.up", r.id.0), rate), named(format!("r{}.down", r.id.0), rate)]);
        }
        let all = |rate: BitRate| t.payload(rate).0.saturating_mul(t.rack_count() as u64);
        list.extend(t.planes.iter().map(|p| named(format!("ocs{}", p.id.0), all(p.rate))));
        let bucket = bucket.max(Span(1));
        Self { bucket, edge: Time::ZERO + bucket, before: vec![0; list.len()], links: list }
    }

    /// When it must be read next.
    pub fn edge(&self) -> Time {
        self.edge
    }

    /// Ends a bucket at [`Meter::edge`]. O(links).
    pub fn read(&mut self, totals: &Totals) {
        self.push(totals);
        if self.links.first().is_some_and(|l| l.bytes.len() == BUCKETS) {
            self.links.iter_mut().for_each(|l| l.bytes = l.bytes.chunks(2).map(|two| two.iter().sum()).collect());
            self.bucket = self.bucket * 2;
        }
        self.edge = Time(self.edge.0.saturating_add(self.bucket.0));
    }

    fn push(&mut self, totals: &Totals) {
        for ((link, before), units) in self.links.iter_mut().zip(&mut self.before).zip(totals.each()) {
            let now = bytes(units).0;
            link.bytes.push(now - std::mem::replace(before, now));
        }
    }

    /// All buckets, the last one cut short at `now`.
    pub fn finish(mut self, totals: &Totals, now: Time, topology: &Topology) -> Utilisation {
        let begun = Time(self.edge.0.saturating_sub(self.bucket.0));
        if now > begun {
            self.push(totals);
        }
        if topology.racks.iter().all(|r| r.hosts < 2) {
            self.links.remove(0);
        }
        Utilisation { bucket: self.bucket, until: now, links: self.links }
    }
}

/// A length for buckets of a run that takes at least `least`: 1, 2 or 5 times a power of ten, one microsecond at least, and not more than
/// [`BUCKETS`] of them up to there.
pub fn bucket_for(least: Span) -> Span {
    let wanted = least.0.div_ceil(BUCKETS as u64 - 1).max(1000);
    let power = 10u64.pow(wanted.ilog10());
    Span([1, 2, 5, 10].into_iter().map(|k| power.saturating_mul(k)).find(|&l| l >= wanted).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::super::bundle::BYTE;
    use super::*;
    use crate::ids::PlaneId;
    use crate::topology::{Plane, StopMode};

    fn topology() -> Arc<Topology> {
        let plane = Plane { id: PlaneId(0), rate: BitRate(800), delta: Span(1), stop: StopMode::NotAllStop, duplex: false };
        let mut t = Topology::uniform("t", 2, 2, BitRate(1000), BitRate(500), vec![plane]);
        t.framing = crate::topology::Framing::None;
        t.eps.background_percent = 50;
        Arc::new(t)
    }

    #[test]
    fn links_are_named_with_what_they_carry() {
        let t = topology();
        let m = Meter::new(Span(10), &Links::new(t.clone(), true, false));
        let u = m.finish(&Totals::new(&t), Time(3), &t);
        let names: Vec<_> = u.links.iter().map(|l| (l.name.as_str(), l.rate.0, l.bytes.len())).collect();
        assert_eq!(
            names,
            [("local", 4000, 1), ("r0.up", 250, 1), ("r0.down", 250, 1), ("r1.up", 250, 1), ("r1.down", 250, 1), ("ocs0", 1600, 1)]
        );
        assert_eq!((u.bucket, u.until), (Span(10), Time(3)));
    }

    #[test]
    fn the_first_length_is_round() {
        let lengths = [0, 1, 255_000, 256_000, 3_600_000_000_000, u64::MAX].map(|l| bucket_for(Span(l)).0);
        assert_eq!(lengths, [1000, 1000, 1000, 2000, 20_000_000_000, 100_000_000_000_000_000]);
    }

    proptest! {
        #[test]
        fn buckets_sum_up_and_are_those_of_a_slow_twin(
            steps in prop::collection::vec((0u64..40_000, 0u128..3 * BYTE), 1..40),
            bucket in 1u64..9,
        ) {
            let t = topology();
            let mut m = Meter::new(Span(bucket), &Links::new(t.clone(), true, false));
            let mut totals = Totals::new(&t);
            // By step: when, and whole bytes since the beginning.
            let (mut now, mut told) = (0, vec![(0, 0)]);
            for (gap, units) in steps {
                now += gap;
                while m.edge() < Time(now) {
                    m.read(&totals);
                }
                totals.up[1] += units;
                told.push((now, bytes(totals.up[1]).0));
            }
            while m.edge() <= Time(now) {
                m.read(&totals);
            }
            let u = m.finish(&totals, Time(now), &t);
            let line = &u.links[3];
            prop_assert!(line.name == "r1.up" && line.bytes.len() <= BUCKETS);
            prop_assert_eq!(line.bytes.iter().sum::<u64>(), bytes(totals.up[1]).0);
            prop_assert!(u.bucket.0.is_multiple_of(bucket) && (u.bucket.0 / bucket).is_power_of_two());
            let at = |t: u64| told.iter().rfind(|x| x.0 <= t).unwrap().1;
            for (k, &b) in (0u64..).zip(&line.bytes) {
                let (from, to) = (k * u.bucket.0, ((k + 1) * u.bucket.0).min(now));
                prop_assert_eq!(b, at(to) - if k == 0 { 0 } else { at(from) }, "bucket {} of {:?}", k, u.bucket);
            }
        }
    }
}
