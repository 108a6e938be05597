//! When the first flow of each pair ends, by the clocks of its links.

use std::ops::Range;

/// Pairs that share one minimum; a cache line holds four readings.
const CHUNK: usize = 16;

/// The reading for a pair that is not on the link's clock.
const NEVER: u128 = u128::MAX;

/// For each link, the clock's reading at which pairs are due, by the index of a pair among those of
/// the link. In a heap, a pair that changes its clock would leave an entry behind; here it does
/// not, and most changes touch no chunk's minimum.
pub struct Dues {
    /// Chunks of each link.
    chunks: usize,
    /// By link, then index.
    readings: Vec<u128>,
    /// By link, then chunk.
    earliest: Vec<u128>,
    /// The minimum of each link.
    first: Vec<u128>,
}

impl Dues {
    /// Nothing is due. Each link has `places` pairs.
    pub fn new(links: usize, places: usize) -> Self {
        let chunks = places.div_ceil(CHUNK);
        Self {
            chunks,
            readings: vec![NEVER; links * chunks * CHUNK],
            earliest: vec![NEVER; links * chunks],
            first: vec![NEVER; links],
        }
    }

    fn chunks_of(&self, link: u32) -> Range<usize> {
        let from = link as usize * self.chunks;
        from..from + self.chunks
    }

    /// A pair is due at this reading, or never. O(1); O(chunks + length of one) if it was the
    /// first.
    pub fn set(&mut self, link: u32, place: usize, reading: Option<u128>) {
        let reading = reading.unwrap_or(NEVER);
        let at = self.chunks_of(link).start * CHUNK + place;
        let old = std::mem::replace(&mut self.readings[at], reading);
        if reading == old {
            return;
        }
        let chunk = at / CHUNK;
        if reading <= self.earliest[chunk] {
            self.earliest[chunk] = reading;
        } else if old == self.earliest[chunk] {
            self.earliest[chunk] = least(&self.readings[chunk * CHUNK..(chunk + 1) * CHUNK]);
        }
        if reading <= self.first[link as usize] {
            self.first[link as usize] = reading;
        } else if old == self.first[link as usize] {
            self.first[link as usize] = least(&self.earliest[self.chunks_of(link)]);
        }
    }

    /// When a pair is due. O(1).
    pub fn get(&self, link: u32, place: usize) -> Option<u128> {
        Some(self.readings[self.chunks_of(link).start * CHUNK + place]).filter(|&r| r != NEVER)
    }

    /// When the first pair of a link is due. O(1).
    pub fn first(&self, link: u32) -> Option<u128> {
        Some(self.first[link as usize]).filter(|&r| r != NEVER)
    }

    /// Appends the pairs that are due up to a reading (not the largest number) to `found`, as
    /// (reading, index), in order. O(chunks + f (length of a chunk + log f)) for f of them.
    pub fn up_to(&self, link: u32, reading: u128, found: &mut Vec<(u128, u32)>) {
        let (chunks, before) = (self.chunks_of(link), found.len());
        for chunk in chunks.clone().filter(|&c| self.earliest[c] <= reading) {
            let first = (chunk - chunks.start) * CHUNK;
            let places =
                self.readings[chunk * CHUNK..(chunk + 1) * CHUNK].iter().zip(first as u32..);
            found.extend(
                places.filter(|(due, _)| **due <= reading).map(|(&due, place)| (due, place)),
            );
        }
        found[before..].sort_unstable();
    }
}

fn least(readings: &[u128]) -> u128 {
    readings.iter().copied().fold(NEVER, u128::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn it_is_a_table(
            places in 1usize..40,
            steps in prop::collection::vec((0u32..3, 0usize..40, prop::option::of(0u128..30), 0u128..30), 0..80),
        ) {
            let (mut dues, mut table) = (Dues::new(3, places), vec![vec![None; places]; 3]);
            for (link, place, reading, bound) in steps {
                let (place, row) = (place % places, &mut table[link as usize]);
                prop_assert_eq!(dues.get(link, place), row[place]);
                dues.set(link, place, reading);
                row[place] = reading;
                prop_assert_eq!(dues.first(link), row.iter().flatten().copied().min());
                let mut found = vec![(40, 1)];
                dues.up_to(link, bound, &mut found);
                let mut due: Vec<_> = row.iter().zip(0..).filter_map(|(r, k)| r.filter(|&r| r <= bound).map(|r| (r, k))).collect();
                due.sort_unstable();
                prop_assert_eq!(found[0], (40, 1));
                prop_assert_eq!(&found[1..], due);
            }
        }
    }
}
