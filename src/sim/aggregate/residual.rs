//! Bandwidth that interfaces have left while coflows are given rates.

use super::reduce;

/// Less than one bit a second counts as nothing: rates are real numbers.
pub const LEAST: f64 = 1.0;

/// Bandwidth left on each interface, in bits a second, and which interfaces have any: by side,
/// senders first, then by host.
#[derive(Clone, Debug, Default)]
pub struct Residual {
    left: [Vec<f64>; 2],
    /// Hosts whose interface has bandwidth left, as bits.
    open: [Bits; 2],
}

/// A set of hosts as bits, and which of its words are not zero.
#[derive(Clone, Debug, Default)]
struct Bits {
    words: Vec<u64>,
    some: Vec<u64>,
}

impl Bits {
    fn of(words: Vec<u64>) -> Self {
        let some = words
            .chunks(64)
            .map(|words| words.iter().enumerate().map(|(k, &w)| u64::from(w != 0) << k).sum())
            .collect();
        Self { words, some }
    }

    fn remove(&mut self, host: usize) {
        let k = host / 64;
        self.words[k] &= !(1 << (host % 64));
        if self.words[k] == 0 {
            self.some[k / 64] &= !(1 << (k % 64));
        }
    }

    fn insert(&mut self, host: usize) {
        let k = host / 64;
        self.words[k] |= 1 << (host % 64);
        self.some[k / 64] |= 1 << (k % 64);
    }

    /// Words that are not zero: index and bits.
    fn words(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.some.iter().enumerate().flat_map(move |(n, &some)| {
            ones(some).map(move |k| (64 * n + k, self.words[64 * n + k]))
        })
    }
}

/// Positions of the ones in a word, in order.
fn ones(word: u64) -> impl Iterator<Item = usize> {
    let mut rest = word;
    std::iter::from_fn(move || {
        let k = (rest != 0).then(|| rest.trailing_zeros() as usize);
        rest &= rest.wrapping_sub(1);
        k
    })
}

impl Residual {
    /// The whole capacity: the interfaces that send, by host, then those that receive.
    pub fn new(capacity: &[f64]) -> Self {
        Self::part(capacity, 1.0)
    }

    /// `part` times the capacity.
    pub fn part(capacity: &[f64], part: f64) -> Self {
        let (up, down) = capacity.split_at(capacity.len() / 2);
        Self::of([up, down].map(|side| side.iter().map(|all| all * part).collect()))
    }

    fn of(mut left: [Vec<f64>; 2]) -> Self {
        let open = [0, 1].map(|side| {
            let left: &mut Vec<f64> = &mut left[side];
            let word = |hosts: &mut [f64]| {
                let bit = |(k, left): (usize, &mut f64)| {
                    *left = if *left < LEAST { 0.0 } else { *left };
                    u64::from(*left > 0.0) << k
                };
                hosts.iter_mut().enumerate().map(bit).sum::<u64>()
            };
            Bits::of(left.chunks_mut(64).map(word).collect())
        });
        Self { left, open }
    }

    /// Bandwidth left on the interfaces of a side, by host.
    pub fn left(&self, side: usize) -> &[f64] {
        &self.left[side]
    }

    /// Takes `rate` from an interface, or what it has left if that is less.
    pub fn take(&mut self, side: usize, host: usize, rate: f64) {
        let left = &mut self.left[side][host];
        *left -= rate;
        if *left < LEAST {
            *left = 0.0;
            self.open[side].remove(host);
        }
    }

    /// Returns `rate` to an interface.
    pub fn give(&mut self, side: usize, host: usize, rate: f64) {
        let left = &mut self.left[side][host];
        *left += rate;
        if *left < LEAST {
            *left = 0.0;
        } else {
            self.open[side].insert(host);
        }
    }

    /// Whether one host can send and one can receive.
    pub fn is_open(&self) -> bool {
        self.open.iter().all(|bits| bits.some.iter().any(|&some| some != 0))
    }

    /// Whether one of these hosts, given as bits, has bandwidth left on a side. O(hosts / 64), and
    /// less where few have any.
    pub fn has_any(&self, side: usize, hosts: &[u64]) -> bool {
        self.open[side].words().any(|(k, open)| open & hosts[k] != 0)
    }

    /// Each word of 64 hosts with bandwidth left on a side: its index, and these hosts as bits.
    pub fn open(&self, side: usize) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.open[side].words()
    }

    /// Whether all of these hosts have bandwidth left. O(hosts / 64).
    pub fn has_all(&self, side: usize, hosts: &[u64]) -> bool {
        hosts.iter().zip(&self.open[side].words).all(|(h, open)| h & !open == 0)
    }
}

/// Divides `all`, less than the sum of `room`, among its places: each gets a share in proportion to
/// its weight, and at most what it had. O(n), repeated as often as places turn out to get all that
/// they had.
pub fn divide(all: f64, weights: &[f64], room: &mut [f64]) {
    // What is full at one share is full at a larger one.
    let mut share = 0.0;
    loop {
        let [given, total] = reduce::sums(weights, room, |weight, room| {
            let is_full = share * weight >= room;
            [if is_full { room } else { 0.0 }, if is_full { 0.0 } else { weight }]
        });
        let next = if total > 0.0 { (all - given) / total } else { f64::INFINITY };
        // Rounding may make it a little smaller.
        if next <= share || total == 0.0 {
            break;
        }
        share = next;
    }
    for (room, weight) in room.iter_mut().zip(weights) {
        let part = share * weight;
        *room = if part < *room { part } else { *room };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn by_hand() {
        let mut room = [10.0, 10.0, 10.0, 0.0];
        // 4:2:1 of 14 is 8, 4 and 2; of 20 the first would have more than there is, and the others
        // share 10.
        divide(14.0, &[4.0, 2.0, 1.0, 9.0], &mut room);
        assert_eq!(room, [8.0, 4.0, 2.0, 0.0]);
        let mut room = [10.0, 10.0, 10.0];
        divide(19.0, &[4.0, 2.0, 1.0], &mut room);
        assert_eq!(room, [10.0, 6.0, 3.0]);
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn who_has_something_left_is_known(
            changes in prop::collection::vec((0usize..5000, prop::sample::select(vec![-3.0, -1.0, 0.5, 2.0])), 0..200),
            asked in prop::collection::btree_set(0usize..5000, 0..9),
        ) {
            let mut room = Residual::part(&vec![1.0; 10_000], 0.0);
            for &(host, rate) in &changes {
                if rate < 0.0 { room.take(1, host, -rate) } else { room.give(1, host, rate) }
            }
            // Hosts of the last change as well: nearly no other host has bandwidth left.
            let hosts: Vec<usize> = asked.into_iter().chain(changes.last().map(|c| c.0)).collect();
            let mut bits = vec![0; 5000usize.div_ceil(64)];
            hosts.iter().for_each(|h| bits[h / 64] |= 1 << (h % 64));
            prop_assert_eq!(room.has_any(1, &bits), hosts.iter().any(|&h| room.left(1)[h] > 0.0));
            prop_assert_eq!(room.has_all(1, &bits), hosts.iter().all(|&h| room.left(1)[h] > 0.0));
            prop_assert!(!room.has_any(0, &bits));
        }

        #[test]
        fn a_part_is_as_much_as_there_is_or_in_proportion(list in prop::collection::vec((0u32..50, 1u32..50), 1..9), percent in 1u32..100) {
            let (had, weights): (Vec<f64>, Vec<f64>) = list.into_iter().map(|(a, b)| (f64::from(a), f64::from(b))).unzip();
            let all = had.iter().sum::<f64>() * f64::from(percent) / 100.0;
            let mut room = had.clone();
            divide(all, &weights, &mut room);
            prop_assert!((room.iter().sum::<f64>() - all).abs() < 1e-9);
            let share = |k: usize| room[k] / weights[k];
            for k in (0..had.len()).filter(|&k| had[k] > 0.0) {
                prop_assert!(room[k] <= had[k] + 1e-9 && room[k] > 0.0 || all == 0.0);
                // A place that did not get all that it had has the largest share.
                prop_assert!(room[k] >= had[k] - 1e-9 || (0..had.len()).all(|j| share(j) <= share(k) + 1e-9), "{had:?} {room:?}");
            }
        }
    }
}
