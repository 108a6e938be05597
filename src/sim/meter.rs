//! What the links of the model carry over time: its counters, read at the end of every bucket into
//! [`Buckets`].

use super::bundle::{BundleRoute, bytes};
use super::links::Links;
use crate::fabric::meter::{BUCKETS, Buckets, Utilisation, links, local};
use crate::ids::RackId;
use crate::topology::Topology;
use crate::units::{Span, Time};

/// Cumulative counters, as work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Within racks.
    pub local: u128,
    /// By rack: over its link to the EPS.
    pub up: Vec<u128>,
    /// The same, from there.
    pub down: Vec<u128>,
    /// Over the circuits of each plane.
    pub planes: Vec<u128>,
}

impl Totals {
    /// Totals of zero.
    pub fn new(topology: &Topology) -> Self {
        let zero = vec![0; topology.rack_count()];
        Self { local: 0, up: zero.clone(), down: zero, planes: vec![0; topology.planes.len()] }
    }

    /// Adds `units` that went from rack to rack over this route.
    pub fn count(&mut self, racks: (RackId, RackId), route: BundleRoute, units: u128) {
        match route {
            BundleRoute::Local => self.local += units,
            BundleRoute::Eps | BundleRoute::List(_) | BundleRoute::Wait => {
                self.up[racks.0.index()] += units;
                self.down[racks.1.index()] += units;
            }
            BundleRoute::Ocs(plane) => self.planes[plane.index()] += units,
        }
    }

    /// The sum of both.
    pub fn plus(mut self, other: &Self) -> Self {
        let lists = [
            (&mut self.up, &other.up),
            (&mut self.down, &other.down),
            (&mut self.planes, &other.planes),
        ];
        lists
            .into_iter()
            .for_each(|(to, from)| to.iter_mut().zip(from).for_each(|(to, from)| *to += from));
        self.local += other.local;
        self
    }

    /// All totals, in the order in which [`BucketMeter`] names them.
    fn each(&self) -> impl Iterator<Item = u128> + '_ {
        let racks = self.up.iter().zip(&self.down).flat_map(|(&up, &down)| [up, down]);
        std::iter::once(self.local).chain(racks).chain(self.planes.iter().copied())
    }
}

/// Reads counters at the end of every bucket.
#[derive(Debug)]
pub struct BucketMeter(Buckets);

impl BucketMeter {
    /// Buckets of `bucket` at first, at least one nanosecond.
    pub fn new(bucket: Span, of: &Links) -> Self {
        let t = of.topology();
        let all =
            std::iter::once(local(t)).chain(links(t, |r| of.uplink(RackId::from(r)))).collect();
        Self(Buckets::new(BUCKETS, bucket, all))
    }

    /// When it must be read next.
    pub fn edge(&self) -> Time {
        self.0.edge()
    }

    /// Ends a bucket at [`BucketMeter::edge`]. O(links).
    pub fn read(&mut self, totals: &Totals) {
        self.0.read(totals.each().map(|units| bytes(units).0));
    }

    /// All buckets, the last one cut off at `now`.
    pub fn finish(self, totals: &Totals, now: Time, topology: &Topology) -> Utilisation {
        let mut all = self.0.finish(totals.each().map(|units| bytes(units).0), now);
        if topology.racks.iter().all(|r| r.hosts < 2) {
            all.links.remove(0);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::super::bundle::WORK_PER_BYTE;
    use super::*;
    use crate::ids::PlaneId;
    use crate::topology::{Plane, StopMode};
    use crate::units::BitRate;

    fn topology() -> Arc<Topology> {
        let plane = Plane {
            id: PlaneId(0),
            rate: BitRate(800),
            delta: Span(1),
            stop: StopMode::NotAllStop,
            duplex: false,
        };
        let mut t = Topology::uniform("t", 2, 2, BitRate(1000), BitRate(500), vec![plane]);
        t.framing = crate::topology::Framing::None;
        t.eps.background_percent = 50;
        Arc::new(t)
    }

    #[test]
    fn links_are_named_with_what_they_carry() {
        let t = topology();
        let m = BucketMeter::new(Span(10), &Links::new(t.clone(), true, false, true));
        let u = m.finish(&Totals::new(&t), Time(3), &t);
        let names: Vec<_> =
            u.links.iter().map(|l| (l.name.as_str(), l.rate.0, l.bytes.len())).collect();
        assert_eq!(
            names,
            [
                ("local", 4000, 1),
                ("r0.up", 250, 1),
                ("r0.down", 250, 1),
                ("r1.up", 250, 1),
                ("r1.down", 250, 1),
                ("ocs0", 1600, 1)
            ]
        );
        assert_eq!((u.bucket, u.until), (Span(10), Time(3)));
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn buckets_sum_up_and_are_those_of_a_slow_twin(
            steps in prop::collection::vec((0u64..40_000, 0u128..3 * WORK_PER_BYTE), 1..40),
            bucket in 1u64..9,
        ) {
            let t = topology();
            let mut m = BucketMeter::new(Span(bucket), &Links::new(t.clone(), true, false, true));
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
