//! What links carry over time: whole bytes in buckets of equal length.
//!
//! Counters are exact and cumulative, and are read at the end of every bucket, so the bytes of a
//! link's buckets sum up to what it carried. When all buckets are full, neighbours become one and
//! the next ones are twice as long: a run of any length takes the memory of a fixed number of
//! buckets a link.

use serde::{Deserialize, Serialize};

use crate::topology::Topology;
use crate::units::{BitRate, Span, Time};

/// A result never has more buckets than this. Even.
pub const BUCKETS: usize = 256;

/// What links carried over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Utilisation {
    /// Length of every bucket but the last; the first begins at zero.
    #[serde(rename = "bucket_ns")]
    pub bucket: Span,
    /// Where the last one ends.
    #[serde(rename = "until_ns")]
    pub until: Time,
    /// First what stays within racks (`local`), if that is counted and any rack has several hosts.
    /// Then every rack's link to the EPS, up and down (`r0.up`, `r0.down`), and every plane with
    /// all its ports together (`ocs0`).
    pub links: Vec<Carried>,
}

/// What one link, or several together, carried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Carried {
    /// Its name.
    pub name: String,
    /// What it can carry when all is well, in bits of payload per second; background traffic is
    /// taken off.
    #[serde(rename = "rate_bps")]
    pub rate: BitRate,
    /// Payload by bucket.
    pub bytes: Vec<u64>,
}

/// The links of racks to the EPS, by `uplink` in bits of payload per second, and the planes of a
/// network.
pub fn links(t: &Topology, uplink: impl Fn(usize) -> u64) -> Vec<Carried> {
    let named = |name: String, rate: u64| Carried { name, rate: BitRate(rate), bytes: Vec::new() };
    let both = |r: usize| {
        [("up", uplink(r)), ("down", uplink(r))]
            .map(|(way, rate)| named(format!("r{r}.{way}"), rate))
    };
    let all = |rate: BitRate| t.payload(rate).0.saturating_mul(t.rack_count() as u64);
    let planes = t.planes.iter().map(|p| named(format!("ocs{}", p.id.0), all(p.rate)));
    (0..t.rack_count()).flat_map(both).chain(planes).collect()
}

/// What links carried within racks, at the rates of hosts' interfaces.
pub fn local(t: &Topology) -> Carried {
    let nics = t.hosts.iter().map(|h| t.payload(h.nic).0).fold(0, u64::saturating_add);
    Carried { name: "local".into(), rate: BitRate(nics), bytes: Vec::new() }
}

/// Buckets that fill up.
#[derive(Clone, Debug)]
pub struct Buckets {
    most: usize,
    bucket: Span,
    /// End of the bucket that is being filled.
    edge: Time,
    /// By link: whole bytes at the beginning of that bucket.
    before: Vec<u64>,
    links: Vec<Carried>,
}

impl Buckets {
    /// At most `most` buckets, an even number, of `bucket` to begin with, one nanosecond at least.
    pub fn new(most: usize, bucket: Span, links: Vec<Carried>) -> Self {
        let bucket = bucket.max(Span(1));
        Self { most, bucket, edge: Time::ZERO + bucket, before: vec![0; links.len()], links }
    }

    /// When they must get the counters next.
    pub fn edge(&self) -> Time {
        self.edge
    }

    /// Ends a bucket at [`Buckets::edge`], when the links had carried these bytes in all. O(links).
    pub fn read(&mut self, totals: impl IntoIterator<Item = u64>) {
        self.push(totals);
        if self.links.first().is_some_and(|l| l.bytes.len() == self.most) {
            self.links
                .iter_mut()
                .for_each(|l| l.bytes = l.bytes.chunks(2).map(|two| two.iter().sum()).collect());
            self.bucket = self.bucket * 2;
        }
        self.edge = Time(self.edge.0.saturating_add(self.bucket.0));
    }

    fn push(&mut self, totals: impl IntoIterator<Item = u64>) {
        for ((link, before), now) in self.links.iter_mut().zip(&mut self.before).zip(totals) {
            link.bytes.push(now.saturating_sub(*before));
            *before = now.max(*before);
        }
    }

    /// All buckets, the last one cut short at `now`.
    pub fn finish(mut self, totals: impl IntoIterator<Item = u64>, now: Time) -> Utilisation {
        let begun = Time(self.edge.0.saturating_sub(self.bucket.0));
        if now > begun {
            self.push(totals);
        }
        Utilisation { bucket: self.bucket, until: now, links: self.links }
    }
}

impl Utilisation {
    /// The part from `from` on, which is then its zero, in at most [`BUCKETS`] buckets that are not
    /// shorter than those here. Within a bucket bytes count as evenly spread. The first bucket also
    /// has what was counted up to `slack` before `from`. Where buckets are no longer than `slack`,
    /// it has all of the bucket in which that instant lies: counters that are read `slack` apart
    /// note bytes that much later. O(links x buckets).
    pub fn since(&self, from: Time, slack: Span) -> Self {
        let from = from.min(self.until);
        let bucket = bucket_for(self.until.since(from)).max(self.bucket);
        let until = Time(self.until.since(from).0);
        let earliest = from.saturating_sub(slack);
        let first = if self.bucket > slack {
            earliest
        } else {
            Time(earliest.0 / self.bucket.0 * self.bucket.0)
        };
        let edges = |k: u64| Time(from.0 + bucket.0.saturating_mul(k).min(until.0));
        let cut = |l: &Carried| {
            let totals = self.totals_at(
                l,
                std::iter::once(first).chain((1..=until.0.div_ceil(bucket.0)).map(edges)),
            );
            Carried { bytes: totals.windows(2).map(|t| t[1] - t[0]).collect(), ..l.clone() }
        };
        Self { bucket, until, links: self.links.iter().map(cut).collect() }
    }

    /// What a link had carried by some times, which grow.
    fn totals_at(&self, link: &Carried, times: impl Iterator<Item = Time>) -> Vec<u64> {
        let (mut k, mut before) = (0, 0);
        let begins = |k: usize| Time(self.bucket.0.saturating_mul(k as u64).min(self.until.0));
        times
            .map(|t| {
                while k < link.bytes.len() && begins(k + 1) <= t {
                    before += link.bytes[k];
                    k += 1;
                }
                let Some(&here) = link.bytes.get(k) else { return before };
                let (part, whole) = (t.since(begins(k)).0, begins(k + 1).since(begins(k)).0.max(1));
                before + (u128::from(here) * u128::from(part) / u128::from(whole)) as u64
            })
            .collect()
    }
}

/// A length for buckets of a run that takes at least `least`: 1, 2 or 5 times a power of ten, one
/// microsecond at least, and not more than [`BUCKETS`] of them up to there.
pub fn bucket_for(least: Span) -> Span {
    let wanted = least.0.div_ceil(BUCKETS as u64 - 1).max(1000);
    let power = 10u64.pow(wanted.ilog10());
    Span(
        [1, 2, 5, 10]
            .into_iter()
            .map(|k| power.saturating_mul(k))
            .find(|&l| l >= wanted)
            .unwrap_or(u64::MAX),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_length_is_round() {
        let lengths =
            [0, 1, 255_000, 256_000, 3_600_000_000_000, u64::MAX].map(|l| bucket_for(Span(l)).0);
        assert_eq!(lengths, [1000, 1000, 1000, 2000, 20_000_000_000, 100_000_000_000_000_000]);
    }

    /// Buckets of one link that carried these bytes.
    fn of(bucket: u64, until: u64, bytes: &[u64]) -> Utilisation {
        let link = Carried { name: "r0.up".into(), rate: BitRate(8), bytes: bytes.to_vec() };
        Utilisation { bucket: Span(bucket), until: Time(until), links: vec![link] }
    }

    #[test]
    fn a_part_begins_at_its_own_zero() {
        // Buckets of 1 ms up to 3.5 ms; from 1.5 ms on.
        let all = of(1_000_000, 3_500_000, &[10, 20, 30, 40]);
        assert_eq!(
            all.since(Time(1_500_000), Span::ZERO),
            of(1_000_000, 2_000_000, &[10 + 15, 15 + 40])
        );
        assert_eq!(
            all.since(Time(1_500_000), Span(600_000)),
            of(1_000_000, 2_000_000, &[1 + 20 + 15, 15 + 40])
        );
        assert_eq!(
            all.since(Time(1_500_000), Span(1_000_000)),
            of(1_000_000, 2_000_000, &[10 + 20 + 15, 15 + 40])
        );
        assert_eq!(
            of(1000, 3000, &[1, 2, 3]).since(Time::ZERO, Span(5)),
            of(1000, 3000, &[1, 2, 3])
        );
        assert_eq!(of(1000, 3000, &[1, 2, 3]).since(Time(9000), Span::ZERO), of(1000, 0, &[]));
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn parts_lose_nothing(bytes in prop::collection::vec(0u64..1 << 40, 0..600), short in 0u64..1000, from in 0u64..1_000_000) {
            let until = (bytes.len() as u64 * 1000).saturating_sub(short);
            let all: u64 = bytes.iter().sum();
            let whole = of(1000, until, &bytes);
            let u = whole.since(Time(from), Span::ZERO);
            prop_assert!(u.links[0].bytes.len() <= BUCKETS && u.bucket.0 >= 1000);
            prop_assert_eq!(u.links[0].bytes.len() as u64, u.until.0.div_ceil(u.bucket.0));
            let before = whole.totals_at(&whole.links[0], [Time(from.min(until))].into_iter())[0];
            prop_assert_eq!(u.links[0].bytes.iter().sum::<u64>(), if from < until { all - before } else { 0 });
        }
    }
}
