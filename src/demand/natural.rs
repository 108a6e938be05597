//! Hedera's demand estimation: sources raise their flows, overbooked destinations cut theirs, until nothing changes.
//!
//! All flows of a source that no destination has cut have the same share of its link, and those that a destination has cut have the same
//! share of its link. So there are two levels, of the sources and of the destinations, and a flow has the smaller one of its two ends.
//! Levels of sources only rise and those of destinations only fall, each to where its link is full.

use std::ops::Div;

use multiversion::multiversion;

/// Hedera's demand estimation on any set of flows.
///
/// # Arguments
/// - `pairs`: source, destination and number of flows of each pair that has any, in the order of sources (all flows of a pair get the
///   same).
/// - `out`, `into`: what each end can send and receive, in bytes; equally many, and all ends of flows are among them.
///
/// # Returns
/// Bytes by pair, in the same order: the sum over its flows, rounded down a flow. No end sends more than `out` or receives more than
/// `into`.
///
/// # Complexity
/// O(N + P) for N ends and P pairs, and a round goes over the pairs of each end at which something has changed in the round before:
/// several times, once more than its flows have limits below its level at most; several pairs at a time where most ends have flows to most
/// others. There are as many rounds as destinations are cut one after the other, O(N) at most.
///
/// # Source
/// Hedera, NSDI 2010, figures 7 and 8.
pub fn natural(pairs: &[Pair], out: &[u64], into: &[u64]) -> Vec<Pair> {
    assert_eq!(out.len(), into.len(), "each end sends and receives");
    let flows = u128::from(pairs.iter().map(|p| p.2).max().unwrap_or(0)) * pairs.len() as u128;
    let most = out.iter().chain(into).max().copied().unwrap_or(0);
    let dense = pairs.len() * DENSE >= out.len() * out.len();
    // Sums of flows' shares then fit in 64 bits.
    if flows.saturating_mul(most.into()) < 1 << 63 {
        settle::<u64>(pairs, out, into, dense)
    } else {
        settle::<u128>(pairs, out, into, dense)
    }
}

/// What was asked last, and the answer: mostly the same pairs have large flows in the next interval.
#[derive(Clone, Debug, Default)]
pub struct Shares {
    flows: Vec<Pair>,
    /// What is asked now.
    next: Vec<Pair>,
    /// What ends could send and receive.
    ends: [Vec<u64>; 2],
    bytes: Vec<Pair>,
}

impl Shares {
    /// [`natural()`], at once where it is what was asked last.
    pub fn natural(&mut self, flows: impl Iterator<Item = Pair>, out: &[u64], into: &[u64]) -> &[Pair] {
        self.next.clear();
        self.next.extend(flows);
        if self.next != self.flows || self.ends != [out, into] {
            self.bytes = natural(&self.next, out, into);
            self.ends = [out.to_vec(), into.to_vec()];
            std::mem::swap(&mut self.flows, &mut self.next);
        }
        &self.bytes
    }
}

/// Source, destination, and a number of flows or bytes.
pub type Pair = (u32, u32, u64);

/// Bytes, or a number of flows.
trait Amount: Copy + Ord + From<u64> + Div<Output = Self> {
    const ZERO: Self;
    const MAX: Self;

    fn less(self, other: Self) -> Self;

    /// The bytes of some flows that have as many each; no end has more than fit.
    fn of(self, flows: u64) -> u64;

    /// Of flows (`counts`) with limits: the bytes of those whose limit is less than `at`, and how many others there are.
    fn split(counts: &[Self], limits: &[Self], at: Self) -> (Self, Self);
}

macro_rules! amount {
    ($t:ty, $split:path) => {
        impl Amount for $t {
            const ZERO: Self = 0;
            const MAX: Self = Self::MAX;
            fn less(self, other: Self) -> Self {
                self.saturating_sub(other)
            }
            fn of(self, flows: u64) -> u64 {
                u64::try_from(self.saturating_mul(flows.into())).unwrap_or(u64::MAX)
            }
            fn split(counts: &[Self], limits: &[Self], at: Self) -> (Self, Self) {
                $split(counts, limits, at)
            }
        }
    };
}
amount!(u64, split);
amount!(u128, plain_split);

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn split(counts: &[u64], limits: &[u64], at: u64) -> (u64, u64) {
    let (limits, mut used, mut open) = (&limits[..counts.len()], 0, 0);
    for k in 0..counts.len() {
        let below = limits[k] < at;
        used += if below { counts[k] * limits[k] } else { 0 };
        open += if below { 0 } else { counts[k] };
    }
    (used, open)
}

fn plain_split(counts: &[u128], limits: &[u128], at: u128) -> (u128, u128) {
    let add = |(used, open): (u128, u128), (&n, &limit): (&u128, &u128)| {
        if limit < at { (used.saturating_add(n.saturating_mul(limit)), open) } else { (used, open + n) }
    };
    counts.iter().zip(limits).fold((0, 0), add)
}

/// The flows of each end of one side, sources or destinations.
struct Side<T> {
    /// Where those of each end begin; last their number.
    starts: Vec<usize>,
    counts: Vec<T>,
    /// The other ends of the same. Empty, if each end has a count for all others, most of which are not zero.
    others: Vec<u32>,
}

impl<T: Amount> Side<T> {
    /// `pairs`: own end, other end and how many flows.
    fn new(ends: usize, pairs: impl Iterator<Item = Pair> + Clone, dense: bool) -> Self {
        if dense {
            let mut counts = vec![T::ZERO; ends * ends];
            pairs.for_each(|(own, other, count)| counts[own as usize * ends + other as usize] = count.into());
            return Self { starts: (0..=ends).map(|k| k * ends).collect(), counts, others: Vec::new() };
        }
        // A counting sort: first how many pairs each end has, then where its pairs begin.
        let mut starts = vec![0; ends + 1];
        pairs.clone().for_each(|p| starts[p.0 as usize + 1] += 1);
        (0..ends).for_each(|k| starts[k + 1] += starts[k]);
        let (mut next, all) = (starts.clone(), starts[ends]);
        let (mut counts, mut others) = (vec![T::ZERO; all], vec![0; all]);
        for (own, other, count) in pairs {
            let place = &mut next[own as usize];
            (counts[*place], others[*place]) = (count.into(), other);
            *place += 1;
        }
        Self { starts, counts, others }
    }

    fn own(&self, k: usize) -> std::ops::Range<usize> {
        self.starts[k]..self.starts[k + 1]
    }

    /// The level of an end: the most that each of its flows may have beside its own limit, by its other end, so that all fit; looked for
    /// from a level that is none too high. `None`: all fit with their limits. `room` is for their limits.
    fn level(&self, k: usize, limits: &[T], capacity: T, from: T, room: &mut Vec<T>) -> Option<T> {
        let own = self.own(k);
        let limits = if self.others.is_empty() {
            limits
        } else {
            room.clear();
            room.extend(self.others[own.clone()].iter().map(|&k| limits[k as usize]));
            room
        };
        let mut at = from;
        loop {
            let (used, open) = T::split(&self.counts[own.clone()], limits, at);
            if open == T::ZERO {
                return None;
            }
            let next = capacity.less(used) / open;
            if next <= at {
                return Some(at);
            }
            at = next;
        }
    }

    /// Marks the other ends of an end's flows.
    fn mark(&self, k: usize, marks: &mut [bool]) {
        if self.others.is_empty() {
            marks.fill(true);
        } else {
            self.others[self.own(k)].iter().for_each(|&k| marks[k as usize] = true);
        }
    }
}

/// One pair in this many of all that there could be: from then on, sides have counts for all other ends.
const DENSE: usize = 8;

/// Raises and cuts until nothing changes; `dense`: sides have counts for all other ends.
fn settle<T: Amount>(pairs: &[Pair], out: &[u64], into: &[u64], dense: bool) -> Vec<Pair> {
    let ends = out.len();
    let (sources, destinations) =
        (Side::<T>::new(ends, pairs.iter().copied(), dense), Side::<T>::new(ends, pairs.iter().map(|&(i, j, n)| (j, i, n)), dense));
    let (mut share, mut cut) = (vec![T::ZERO; ends], vec![T::MAX; ends]);
    // Ends at which something has changed since their last turn: all others would do again what they did then.
    let (mut to_raise, mut to_limit) = (vec![true; ends], vec![true; ends]);
    let mut room = Vec::new();
    for _ in 0..4 * ends + 4 {
        for i in 0..ends {
            if std::mem::take(&mut to_raise[i]) {
                let new = sources.level(i, &cut, out[i].into(), share[i], &mut room).unwrap_or(T::MAX);
                if new != share[i] {
                    share[i] = new;
                    sources.mark(i, &mut to_limit);
                }
            }
        }
        let mut changed = false;
        for j in 0..ends {
            if std::mem::take(&mut to_limit[j]) {
                let new = destinations.level(j, &share, into[j].into(), T::ZERO, &mut room).unwrap_or(T::MAX);
                if new < cut[j] {
                    (cut[j], changed) = (new, true);
                    destinations.mark(j, &mut to_raise);
                }
            }
        }
        if !changed {
            break;
        }
    }
    let bytes = |&(i, j, flows): &Pair| (i, j, share[i as usize].min(cut[j as usize]).of(flows));
    pairs.iter().map(bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The pairs of a square of numbers that are not zero.
    fn pairs(rows: &[Vec<u64>]) -> Vec<Pair> {
        let cells = rows.iter().enumerate().flat_map(|(i, row)| row.iter().enumerate().map(move |(j, &n)| (i as u32, j as u32, n)));
        cells.filter(|c| c.2 > 0).collect()
    }

    #[test]
    fn the_papers_example() {
        // Figure 8: four hosts; the number of flows a pair, then the demand of each pair in thirds of a link.
        let flows = [[0, 1, 1, 1], [2, 0, 1, 0], [1, 0, 0, 1], [0, 2, 0, 0]].map(Vec::from);
        let thirds = [[0, 1, 1, 1], [2, 0, 1, 0], [1, 0, 0, 2], [0, 2, 0, 0]].map(|r| r.map(|x| x * 1_000_000).to_vec());
        assert_eq!(natural(&pairs(&flows), &[3_000_000; 4], &[3_000_000; 4]), pairs(&thirds));
    }

    /// The same by the book: all cells of the matrix in every round.
    fn twin(flows: &[Vec<u64>], out: &[u64], into: &[u64]) -> Vec<Vec<u64>> {
        let n = flows.len();
        let (mut each, mut cut) = (vec![vec![0u64; n]; n], vec![vec![false; n]; n]);
        for _ in 0..4 * n + 4 {
            let before = each.clone();
            for i in 0..n {
                let used: u64 = (0..n).filter(|&j| cut[i][j]).map(|j| flows[i][j] * each[i][j]).sum();
                let count: u64 = (0..n).filter(|&j| !cut[i][j]).map(|j| flows[i][j]).sum();
                let Some(share) = out[i].saturating_sub(used).checked_div(count) else { continue };
                (0..n).filter(|&j| flows[i][j] > 0 && !cut[i][j]).for_each(|j| each[i][j] = share);
            }
            for j in 0..n {
                let mut from: Vec<(u64, u64, usize)> = (0..n).map(|i| (each[i][j], flows[i][j], i)).filter(|f| f.1 > 0).collect();
                if from.iter().map(|&(d, n, _)| d * n).sum::<u64>() <= into[j] {
                    continue;
                }
                from.sort_unstable();
                let (mut left, mut count) = (into[j], from.iter().map(|f| f.1).sum::<u64>());
                for (d, n, i) in from {
                    let share = left / count;
                    if d >= share {
                        (each[i][j], cut[i][j]) = (share, true);
                    }
                    left -= each[i][j] * n;
                    count -= n;
                }
            }
            if each == before {
                break;
            }
        }
        (0..n).map(|i| (0..n).map(|j| each[i][j] * flows[i][j]).collect()).collect()
    }

    /// What an end can carry: nothing, a few bytes or many.
    fn capacity() -> impl Strategy<Value = u64> {
        prop_oneof![1 => Just(0u64), 1 => 0u64..100, 4 => 0u64..1 << 40]
    }

    proptest! {
        #[test]
        fn it_is_the_slow_one_but_for_rounding(
            ends in 1usize..12, most in 1u64..4, counts in prop::collection::vec(0u64..12, 121),
            (out, into) in (prop::collection::vec(0u64..200, 12), prop::collection::vec(0u64..100, 12)),
            picks in prop::collection::vec(0u8..10, 0..9),
        ) {
            let count = |c: u64| if c < 6 { 0 } else { c % most + 1 };
            let flows: Vec<Vec<u64>> = (0..ends).map(|i| (0..ends).map(|j| count(counts[i * 11 + j])).collect()).collect();
            let [out, into] = [out, into].map(|c| c[..ends].iter().map(|c| c * 1_000_000).collect::<Vec<_>>());
            let mut shares = Shares::default();
            for pick in picks {
                let some = || pairs(&flows).into_iter().enumerate().filter(|(k, _)| pick >> (k % 3) & 1 == 0).map(|(_, f)| f);
                let into = if pick < 8 { &into } else { &out };
                prop_assert_eq!(shares.natural(some(), &out, into), natural(&some().collect::<Vec<_>>(), &out, into));
            }
            let found = natural(&pairs(&flows), &out, &into);
            for dense in [false, true] {
                prop_assert_eq!(&settle::<u64>(&pairs(&flows), &out, &into, dense), &found);
                prop_assert_eq!(&settle::<u128>(&pairs(&flows), &out, &into, dense), &found);
            }
            let slow = twin(&flows, &out, &into);
            for (i, j, bytes) in found {
                prop_assert!(bytes.abs_diff(slow[i as usize][j as usize]) < 1000, "{i} -> {j}: {bytes}");
            }
        }

        #[test]
        fn nothing_is_overbooked_and_no_flow_could_have_more(
            racks in 1usize..7, counts in prop::collection::vec(0u64..4, 49), out in prop::collection::vec(capacity(), 7),
            into in prop::collection::vec(capacity(), 7),
        ) {
            let cell = |i: usize, j: usize| if i == j { 0 } else { counts[i * 7 + j] };
            let flows: Vec<Vec<u64>> = (0..racks).map(|i| (0..racks).map(|j| cell(i, j)).collect()).collect();
            let d = natural(&pairs(&flows), &out[..racks], &into[..racks]);
            let mut found = vec![vec![0; racks]; racks];
            d.iter().for_each(|&(i, j, bytes)| found[i as usize][j as usize] = bytes);
            let row = |i: usize| found[i].iter().sum::<u64>();
            let column = |j: usize| found.iter().map(|r| r[j]).sum::<u64>();
            for i in 0..racks {
                prop_assert!(row(i) <= out[i] && column(i) <= into[i]);
            }
            // Rounding leaves less than one byte a flow at an end, and what one end leaves the other may pass on.
            let slack = 64 * 49;
            for (i, j, _) in pairs(&flows) {
                let (i, j) = (i as usize, j as usize);
                let (full_out, full_in) = (row(i) + slack >= out[i], column(j) + slack >= into[j]);
                prop_assert!(full_out || full_in, "{i} -> {j} could have more: {d:?}");
            }
        }

        #[test]
        fn extremes_do_not_panic(cells in prop::collection::vec(any::<u64>(), 9), capacity: u64) {
            let flows = cells.chunks(3).map(<[u64]>::to_vec).collect::<Vec<_>>();
            let d = natural(&pairs(&flows), &[capacity; 3], &[capacity; 3]);
            prop_assert!(d.iter().all(|p| p.2 <= capacity));
        }
    }
}
